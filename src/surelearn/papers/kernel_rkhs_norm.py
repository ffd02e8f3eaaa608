"""The RKHS norm of kernel interpolants as rows and label noise grow, and its estimate from a
subsample.

The interpolant of n rows has ‖f_n‖² = yᵀK⁻¹y. With K = LLᵀ and z = L⁻¹y it is z₁² + … + z_n², and
since the factor of the first m rows is a corner of L, one factorization gives the norms of all
prefixes: f_m has z₁² + … + z_m², which never falls. Likewise f_m(x) = Σ_{i ≤ m} z_i·b_i(x) with b =
L⁻¹k(·, x). So a subsample's norm is a lower bound of the whole norm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from sklearn.datasets import load_digits

from surelearn.jobs import Runner, Task, seed_for
from surelearn.kernel.functions import Gaussian, Kernel, Laplace
from surelearn.papers.kernel_double_descent import CLASSES, flipped
from surelearn.papers.reproduction import Figure, Outcome, Reproduction, TitledTable, setting
from surelearn.report.document import PageTable

NOISES = (0.0, 0.1, 0.5)
KERNELS = ("Gaussian", "Laplace")
HALVINGS = 4
SHARE = 4  # a subsample has a quarter of the rows
MEASURED = ("norm", "test", "residual", "lower", "estimate")


@dataclass(frozen=True, kw_only=True)
class NormSettings:
    """What can be set."""

    rows: int = setting(
        1200,
        "the most rows to interpolate, 160 to 1500; the others test, and n is halved four times",
    )
    gaussian: float = setting(
        1.5, "bandwidth h of the Gaussian kernel exp(−‖x − z‖²/2h²), pixels from 0 to 1"
    )
    laplace: float = setting(3.0, "bandwidth h of the Laplace kernel exp(−‖x − z‖/h)")
    repeats: int = setting(5, "draws of rows and noise, at least 2")

    def __post_init__(self) -> None:
        if not 160 <= self.rows <= 1500:
            raise ValueError(f"rows must lie between 160 and 1500, not {self.rows}")
        if self.repeats < 2:
            raise ValueError(f"repeats must be at least 2, not {self.repeats}")
        for name in ("gaussian", "laplace"):
            if not 0 < getattr(self, name) <= 3:
                raise ValueError(
                    f"{name} must be above 0 and at most 3, where float64 suffices, not"
                    f" {getattr(self, name):g}"
                )

    def kernel(self, name: str) -> Kernel:
        """The kernel of a name."""
        return Gaussian(bandwidth=self.gaussian) if name == "Gaussian" else Laplace(self.laplace)


def sizes(rows: int) -> list[int]:
    """The numbers of rows n tried."""
    return [rows // 2**i for i in range(HALVINGS, -1, -1)]


def interpolate(
    k: Kernel, X: np.ndarray, Y: np.ndarray, Z: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """‖f_m‖² for every prefix m (n,), z (n, t) and b (n, rows of Z), so that f_m(Z) = b[:m]ᵀ
    z[:m].
    """
    L = np.linalg.cholesky(k(X, X))
    z = solve_triangular(L, Y, lower=True)
    return np.cumsum((z**2).sum(1)), z, solve_triangular(L, k(X, Z), lower=True)


def extrapolated(squared: np.ndarray, rows: int) -> float:
    """‖f_n‖ from ‖f_m‖² for m up to ``len(squared)``: the power of m through its last value and
    that at half as many rows.

    Examples
    --------
    >>> round(extrapolated(np.arange(1.0, 101.0) ** 3, 400), 6)
    8000.0
    """
    m = len(squared)
    power = np.log(squared[-1] / squared[m // 2 - 1]) / np.log(m / (m // 2))
    return float(np.sqrt(squared[-1] * (rows / m) ** power))


def measure(seed: int, k: Kernel, rows: int, noise: float) -> dict[str, list[float]]:
    """Norm, test error, largest residual, and the subsample's lower bound and estimate for
    every n; one draw.
    """
    X, y = load_digits(return_X_y=True)
    X, random = X / 16.0, np.random.RandomState(seed)
    order = random.permutation(len(y))
    fit, test = order[:rows], order[rows:]
    Y = np.eye(CLASSES)[flipped(y[fit], noise, random)]
    squared, z, b = interpolate(k, X[fit], Y, np.vstack([X[test], X[fit]]))
    found: dict[str, list[float]] = {name: [] for name in MEASURED}
    for n in sizes(rows):
        # the interpolant of the first n rows: its norm, errors, and what is left of its residual
        values = b[:n, : len(test) + n].T @ z[:n]
        found["norm"].append(float(np.sqrt(squared[n - 1])))
        found["test"].append(float(np.mean(values[: len(test)].argmax(1) != y[test])))
        found["residual"].append(float(np.max(np.abs(values[len(test) :] - Y[:n]))))
        found["lower"].append(float(np.sqrt(squared[n // SHARE - 1])))
        found["estimate"].append(extrapolated(squared[: n // SHARE], n))
    return found


def run(settings: NormSettings, seed: int, runner: Runner) -> Outcome:
    """The page."""
    asked = [(name, noise) for name in KERNELS for noise in NOISES]
    tasks = [
        Task(
            f"rkhs norm/{settings.kernel(name)}/{noise:g}/{settings.rows}/{i}",
            measure,
            {
                "seed": seed_for(f"rkhs norm/{i}", seed), "k": settings.kernel(name), "rows": settings.rows, "noise": noise,
            },
        )
        for name, noise in asked
        for i in range(settings.repeats)
    ]  # fmt: skip
    answers = runner.run(tasks, "interpolants")
    found = {}
    for j, (name, noise) in enumerate(asked):
        of = answers[j * settings.repeats : (j + 1) * settings.repeats]
        found[_name(name, noise)] = {key: [each[key] for each in of] for key in MEASURED}
    return describe(settings, found)


def describe(settings: NormSettings, found: Mapping[str, Mapping[str, Any]]) -> Outcome:
    """Sentences, figures and tables; ``found`` has, for each kernel and noise, lists over
    repeats of lists over n.
    """
    ends = {name: _mean(of["norm"])[-1] for name, of in found.items()}
    times = {name: ends[_name(name, NOISES[-1])] / ends[_name(name, 0.0)] for name in KERNELS}
    changed = f"{100 * NOISES[-1]:g}% of labels changed"
    return Outcome(
        source=(
            "EigenPro notes, task list: RKHS norm by subsampling (after Belkin, Ma and Mandal 2018,"
            " Figure 4)"
        ),
        headline=(
            f"At n = {settings.rows:,} the norm of the interpolant with {changed} is"
            f" {times['Gaussian']:.1f} times that without for the Gaussian kernel,"
            f" {times['Laplace']:.1f} times for the Laplace kernel"
        ),
        findings=(
            *(_sentence(name, of) for name, of in found.items()),
            *_estimate_sentences(found),
            _exact(found),
        ),
        figures=tuple(_figure(settings, name, found) for name in KERNELS),
        parts=(*(_part(settings, name, of) for name, of in found.items()),),
        notes=(
            (
                "Handwritten digits of scikit-learn, ten one-hot targets, no penalty; test on the"
                f" other {1797 - settings.rows:,} rows, whose labels are never changed. ‖f‖² is the"
                " sum over the ten outputs."
            ),
            (
                "One Cholesky factorization in float64 gives the norms and predictions of all"
                " prefixes of the rows."
            ),
            (
                f"A subsample holds the first n/{SHARE} rows: its norm is a lower bound, and the"
                f" power law through n/{2 * SHARE} and n/{SHARE} rows the estimate, at 1/{SHARE**3}"
                " of the factorization's cost."
            ),
        ),
        numbers={"sizes": sizes(settings.rows), **found},
    )


def _name(name: str, noise: float) -> str:
    return f"{name}, {100 * noise:g}% of labels changed" if noise else f"{name}, labels as they are"


def _mean(values: npt.ArrayLike) -> np.ndarray:
    return np.mean(np.asarray(values, float), axis=0)


def _power(norm: np.ndarray) -> float:
    """A of ‖f_n‖ ∝ n^a between the smallest and the largest n."""
    return float(np.log2(norm[-1] / norm[0]) / HALVINGS)


def _sentence(name: str, of: Mapping[str, Any]) -> str:
    norm, test = _mean(of["norm"]), 100 * _mean(of["test"])
    return (
        f"{name}: ‖f‖ grows from {norm[0]:.1f} to {norm[-1]:.1f}, as n^{_power(norm):.2f}, and the"
        f" test error goes from {test[0]:.1f}% to {test[-1]:.1f}%."
    )


def _estimate_sentences(found: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    last = {
        key: np.array([np.asarray(of[key], float)[:, -1] for of in found.values()])
        for key in MEASURED
    }
    share, low = last["estimate"] / last["norm"], last["lower"] / last["norm"]
    powers = {name: _power(_mean(of["norm"])) for name, of in found.items()}
    fast = [name for name, power in powers.items() if power > 0.5]
    grow = (
        f"‖f‖ grows faster than √n for {'; '.join(fast)}"
        if fast
        else "‖f‖ grows no faster than √n in any case"
    )
    return (
        (
            f"At the largest n the norm estimated from a quarter of the rows is {share.min():.2f}"
            f" to {share.max():.2f} times the true one over all cases and repeats; the quarter's"
            f" own norm, a lower bound, {low.min():.2f} to {low.max():.2f}."
        ),
        (
            "A bound on the risk that pays ‖f‖/√n can only fall with n where ‖f‖ grows slower than"
            f" √n: {grow}."
        ),
    )


def _exact(found: Mapping[str, Mapping[str, Any]]) -> str:
    worst = max(float(np.max(of["residual"])) for of in found.values())
    return f"All labels are met: the largest residual of all interpolants is {worst:.0e}."


def _figure(settings: NormSettings, kernel: str, found: Mapping[str, Mapping[str, Any]]) -> Figure:
    groups = {}
    for noise in NOISES:
        columns = np.asarray(found[_name(kernel, noise)]["norm"], float).T
        for n, column in zip(sizes(settings.rows), columns, strict=True):
            groups[f"{100 * noise:g}% changed, n = {n:,}"] = tuple(column.tolist())
    return Figure(
        kind="boxes",
        title=f"{kernel} kernel: norm of the interpolant by n and noise",
        groups=groups,
        axis=f"‖f‖, {settings.repeats} repeats",
        note=(
            "Boxes: quartiles and median; whiskers: farthest within 1.5 box lengths; rings: beyond;"
            " diamond: mean."
        ),
    )


def _part(settings: NormSettings, name: str, of: Mapping[str, Any]) -> TitledTable:
    norm, test, lower, estimate = (_mean(of[key]) for key in ("norm", "test", "lower", "estimate"))
    rows = tuple(
        (
            f"{n:,}",
            f"{norm[i]:.2f}",
            f"{norm[i] / np.sqrt(n):.3f}",
            f"{lower[i]:.2f}",
            f"{estimate[i]:.2f}",
            f"{100 * test[i]:.1f}%",
        )
        for i, n in enumerate(sizes(settings.rows))
    )
    header = ("n", "‖f‖", "‖f‖/√n", "of a quarter", "estimated from a quarter", "test error")
    return TitledTable(
        title=name, table=PageTable(header=header, rows=rows), note="Means of repeats."
    )


RKHS_NORM = Reproduction(run=run, settings=NormSettings)
