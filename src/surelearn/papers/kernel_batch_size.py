"""How far a larger batch saves iterations: the critical batch size of kernel SGD, with and without
EigenPro.

A step on m rows drawn with replacement is r ← r − (η/m)·K[:, B]·r_B. Of the distance to an
interpolant it leaves in mean, in a direction of eigenvalue λ of K/n, at most the share 1 − 2ηλ +
η²λ·(β + (m − 1)λ₁)/m, β = max k(x, x): a row's own term has β/m, two different rows' the rest. The
best step is therefore η(m) = m/(β + (m − 1)λ₁), and the share 1 − η(m)·λ. While m is below m* =
β/λ₁ the step grows like m; above it no longer does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

from surelearn.jobs import Runner, Task, seed_for
from surelearn.kernel.functions import Gaussian, Kernel, Laplace
from surelearn.kernel.spectrum import KernelSpectrum, kernel_spectrum
from surelearn.papers.reproduction import (
    Figure,
    Outcome,
    Reproduction,
    TitledTable,
    one_of,
    setting,
)
from surelearn.report.document import PageTable

MOST = 400_000  # iterations
BANDWIDTHS = {
    "digits": {"gaussian": 1.5, "laplace": 3.0},
    "MNIST": {"gaussian": 5.0, "laplace": 10.0},
}
WAYS = ("SGD", "EigenPro")
FOLDER = (
    "a folder with mnist.npz (pixels from 0 to 1); without it the handwritten digits of"
    " scikit-learn"
)


@dataclass(frozen=True, kw_only=True)
class BatchSizeSettings:
    """What can be set."""

    data: str = setting("", FOLDER)
    rows: int = setting(1000, "n, training rows, 100 to 1700 (4000 of MNIST)")
    kernel: str = setting("gaussian", "gaussian, exp(−‖x − z‖²/2h²), or laplace, exp(−‖x − z‖/h)")
    bandwidth: float = setting(
        0.0, "h; 0 takes 1.5 for digits, 5 for MNIST, and twice that for laplace"
    )
    directions: int = setting(20, "q, the eigendirections that EigenPro's preconditioner lowers")
    target: float = setting(
        0.01, "the training loss to reach, as a share of the loss of f = 0, 0.001 to 0.5"
    )
    repeats: int = setting(5, "draws of rows and batches, at least 2")

    def __post_init__(self) -> None:
        check_rows(self.data, self.rows)
        one_of("kernel", self.kernel, ("gaussian", "laplace"))
        if not 0 <= self.bandwidth < np.inf:
            raise ValueError(
                "bandwidth must be a number above 0, or 0 for the usual one, not"
                f" {self.bandwidth:g}"
            )
        if not 1 <= self.directions <= self.rows // 2:
            raise ValueError(
                f"directions must lie between 1 and half of rows, {self.rows // 2}, not"
                f" {self.directions}"
            )
        if not 0.001 <= self.target <= 0.5:
            raise ValueError(f"target must lie between 0.001 and 0.5, not {self.target:g}")
        if self.repeats < 2:
            raise ValueError(f"repeats must be at least 2, not {self.repeats}")


def check_rows(data: str, rows: int) -> None:
    """Refuse a folder without MNIST, and more rows than leave some to test."""
    if data and not Path(data, "mnist.npz").is_file():
        raise ValueError(
            f"data must be a folder with mnist.npz, and {data!r} is none: leave it out for digits"
        )
    most = 4000 if data else 1700
    if not 100 <= rows <= most:
        raise ValueError(f"rows must lie between 100 and {most} of {name_of(data)}, not {rows}")


def name_of(data: str) -> str:
    """The name of the images."""
    return "MNIST" if data else "digits"


@lru_cache(maxsize=1)
def images(data: str) -> tuple[np.ndarray, np.ndarray]:
    """All rows, pixels from 0 to 1, and their labels 0 to 9."""
    if not data:
        X, y = load_digits(return_X_y=True)
        return X / 16.0, y
    with np.load(Path(data, "mnist.npz")) as file:
        return file["x_train"].reshape(len(file["x_train"]), -1) / 255.0, file["y_train"].astype(
            int
        )


def kernel_of(name: str, bandwidth: float, data: str) -> Kernel:
    """The kernel of a name, of the usual bandwidth for the images where that is 0."""
    h = bandwidth or BANDWIDTHS[name_of(data)][name]
    return Gaussian(bandwidth=h) if name == "gaussian" else Laplace(h)


def batch_sizes(rows: int) -> list[int]:
    """1, 2, 4, … up to n, and n itself.

    Examples
    --------
    >>> batch_sizes(6)
    [1, 2, 4, 6]
    """
    return [2**i for i in range(rows.bit_length()) if 2**i < rows] + [rows]


def flattened(K: np.ndarray, q: int) -> np.ndarray:
    """K with its q largest eigenvalues lowered to the next: what EigenPro makes SGD see, its
    subsample being all rows.
    """
    values, vectors = np.linalg.eigh(K)
    top, kept = values[::-1][: q + 1], vectors[:, ::-1][:, :q]
    return K - (kept * (top[:q] - top[q])) @ kept.T


def iterations_to(
    K: np.ndarray,
    Y: np.ndarray,
    m: int,
    step: float,
    target: float,
    random: np.random.RandomState | None,
) -> int:
    """Steps on batches of m random rows until the loss is ``target`` of that of f = 0; all rows at
    once without ``random``.

    The loss is looked at every step at first, later every hundredth part of those taken.
    """
    R, goal = -Y, target * float(np.mean(Y**2))
    for t in range(1, MOST + 1):
        if random is None:
            R = R - (step / m) * (K @ R)
        else:
            batch = random.randint(len(Y), size=m)
            R -= (step / m) * (K[batch].T @ R[batch])
        if t % max(1, t // 100) == 0 and np.mean(R**2) <= goal:
            return t
    raise ValueError(
        f"target={target:g} is not reached in {MOST:,} iterations with a batch of {m}: take a"
        " larger target, or a smaller bandwidth"
    )


def measure(
    seed: int, data: str, rows: int, k: Kernel, directions: int, target: float
) -> dict[str, Any]:
    """Iterations by batch size, those of gradient descent, and m*, of SGD and EigenPro; one
    draw of rows.
    """
    X, y = images(data)
    random = np.random.RandomState(seed)
    order = random.permutation(len(y))[:rows]
    X, Y = X[order], np.where(y[order][:, None] == np.arange(10), 1.0, -1.0)
    spectrum, K = kernel_spectrum(k, X, size=rows, random_state=0), k(X, X)
    found: dict[str, Any] = {}
    for way, q in zip(WAYS, (0, directions), strict=True):
        seen = flattened(K, q) if q else K
        own = KernelSpectrum(spectrum.eigenvalues[q:], float(seen.diagonal().max()))
        counts = [
            iterations_to(seen, Y, m, own.step_size(m), target, random) for m in batch_sizes(rows)
        ]
        found[way] = {
            "iterations": counts,
            "descent": iterations_to(seen, Y, rows, 1 / float(own.eigenvalues[0]), target, None),
            "critical": own.critical_batch_size(),
            "critical_by_spectrum": spectrum.critical_batch_size(q),
            "beta": own.beta,
            "top": float(own.eigenvalues[0]),
        }
    return found


def run(settings: BatchSizeSettings, seed: int, runner: Runner) -> Outcome:
    """The page."""
    k = kernel_of(settings.kernel, settings.bandwidth, settings.data)
    asked = (
        f"{name_of(settings.data)}/{k}/{settings.rows}/{settings.directions}/{settings.target:g}"
    )
    tasks = [
        Task(
            f"batch size/{asked}/{i}",
            measure,
            {
                "seed": seed_for(f"batch size/{i}", seed), "data": settings.data, "rows": settings.rows, "k": k,
                "directions": settings.directions, "target": settings.target,
            },
        )
        for i in range(settings.repeats)
    ]  # fmt: skip
    answers = runner.run(tasks, "draws of rows")
    found = {
        way: {key: [each[way][key] for each in answers] for key in answers[0][way]} for way in WAYS
    }
    return describe(settings, k, found)


def describe(
    settings: BatchSizeSettings, k: Kernel, found: Mapping[str, Mapping[str, Any]]
) -> Outcome:
    """Sentences, figures and tables; ``found`` has lists over repeats for each way."""
    knees = {way: float(np.mean(knee(of))) for way, of in found.items()}
    critical = {way: float(np.mean(of["critical"])) for way, of in found.items()}
    moved = [knees["EigenPro"] / knees["SGD"], critical["EigenPro"] / critical["SGD"]]
    return Outcome(
        source="Ma, Bassily and Belkin 2018, The power of interpolation: the critical batch size",
        headline=(
            f"Batches save iterations up to about m = {knees['SGD']:.0f} for kernel SGD (m* ="
            f" {critical['SGD']:.1f}) and m = {knees['EigenPro']:.0f} with EigenPro (m* ="
            f" {critical['EigenPro']:.0f})"
        ),
        findings=(
            *(_sentence(settings, way, of) for way, of in found.items()),
            (
                f"With q = {settings.directions} the knee measured is {moved[0]:.0f} times further"
                f" to the right, m* is {moved[1]:.0f} times."
            ),
            _beta_sentence(settings, found["EigenPro"]),
        ),
        figures=(_scaling(settings, found), _epochs(settings, found), _knees(settings, found)),
        parts=tuple(_part(settings, way, of) for way, of in found.items()),
        notes=(
            (
                f"{settings.rows:,} rows of {name_of(settings.data)}, ten targets of ±1, {k}; SGD"
                f" from f = 0 until the training loss is {settings.target:g} of what it was."
                " Batches are drawn with replacement; the step is η(m) = m/(β + (m − 1)·λ₁)."
            ),
            (
                "The knee measured is T(1)/T: where the line of perfect scaling, T(1)/m, meets the"
                " iterations T of gradient descent on all rows with η = 1/λ₁."
            ),
            (
                "η(m) and m* = β/λ₁ are derived in papers/kernel_batch_size.py; they agree with the"
                " paper's abstract and with KernelSpectrum.step_size. The paper's own theorem"
                " numbers and constants were not verified. The derivation bounds the squared distance: for"
                " gradient descent it promises 1 − λ/λ₁ a step where (1 − λ/λ₁)² holds, so T may be"
                " about half of what is predicted, and the knee about twice m*."
            ),
            (
                "EigenPro's subsample is all rows here, so that its preconditioner is exact: SGD"
                " sees the kernel matrix with the q largest eigenvalues lowered to the next."
            ),
        ),
        numbers={"batch_sizes": batch_sizes(settings.rows), **found},
    )


def knee(of: Mapping[str, Any]) -> np.ndarray:
    """T(1)/T of gradient descent, one per repeat."""
    return np.asarray(of["iterations"], float)[:, 0] / np.asarray(of["descent"], float)


def _mean(values: npt.ArrayLike) -> np.ndarray:
    return np.mean(np.asarray(values, float), axis=0)


def _predicted(settings: BatchSizeSettings, of: Mapping[str, Any]) -> np.ndarray:
    """T(1)·η(1)/η(m)."""
    m, beta, top = np.array(batch_sizes(settings.rows)), np.mean(of["beta"]), np.mean(of["top"])
    return _mean(of["iterations"])[0] * (beta + (m - 1) * top) / (m * beta)


def _sentence(settings: BatchSizeSettings, way: str, of: Mapping[str, Any]) -> str:
    m, T, star = (
        np.array(batch_sizes(settings.rows)),
        _mean(of["iterations"]),
        float(np.mean(of["critical"])),
    )
    # rows read until the error is reached, relative to batches of one, at the largest m below m*
    last, descent = int(np.flatnonzero(m <= star)[-1]), float(np.mean(of["descent"]))
    share = m[last] * T[last] / T[0]
    linear = (
        "nearly linear scaling"
        if share <= 1.25
        else "up to 2 is what η(m) says"
        if share <= 2
        else "no linear scaling"
    )
    ratio = float(np.mean(knee(of))) / star
    where = (
        "near it"
        if 0.7 <= ratio < 1.5
        else "about twice, as the derivation allows"
        if 1.5 <= ratio <= 2.6
        else "not near it"
    )
    text = (
        f"{way}: at m = {m[last]}, the largest tried up to m* = {star:.1f}, {T[last]:.0f}"
        f" iterations instead of {T[0]:.0f} at m = 1, {share:.2f} times the rows ({linear}). The"
        f" knee measured is {ratio:.2f} times m* ({where})."
    )
    if m[-2] > 4 * star:
        first = int(np.flatnonzero(m > 4 * star)[0])
        text += (
            f" At m = {m[first]:,} there are {T[first]:.0f} and at m = {m[-1]:,} {T[-1]:.0f},"
            f" gradient descent needs {descent:.0f}:"
            f" {'saturation' if T[first] <= 2 * descent else 'no saturation yet'}."
        )
    return text


def _beta_sentence(settings: BatchSizeSettings, of: Mapping[str, Any]) -> str:
    own, whole = float(np.mean(of["critical"])), float(np.mean(of["critical_by_spectrum"]))
    return (
        f"KernelSpectrum.critical_batch_size({settings.directions}), β of the kernel itself over"
        f" λ_(q+1), is {whole:.0f}: the preconditioned kernel's own β is {np.mean(of['beta']):.2f}, which"
        f" makes it {own:.0f}."
    )


def _scaling(settings: BatchSizeSettings, found: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Measured lines solid, those that bend at m* between them."""
    critical = [float(np.mean(of["critical"])) for of in found.values()]
    m = np.array(sorted({*map(float, batch_sizes(settings.rows)), *critical}))
    groups = {}
    for (way, of), star, measured_first in zip(found.items(), critical, (True, False), strict=True):
        T = np.log2(_mean(of["iterations"]))
        measured = T[0] - np.interp(np.log2(m), _logs(batch_sizes(settings.rows)), T)
        both = {
            f"{way}, measured": tuple(measured.tolist()),
            f"{way}, m up to m* = {star:.1f}": _logs(np.minimum(m, star)),
        }
        groups |= both if measured_first else dict(reversed(both.items()))
    return Figure(
        kind="lines",
        title="How many times fewer iterations than with m = 1, by batch size",
        groups=groups,
        axis="log₂ of T(1)/T(m)",
        at=_logs(m),
        across="log₂ of the batch size m (3 is m = 8)",
        note=(
            f"Means of {settings.repeats} repeats. One up for each doubling is perfect scaling;"
            " flat is saturation. Broken lines scale perfectly up to the predicted m* and bend"
            " there."
        ),
    )


def _epochs(settings: BatchSizeSettings, found: Mapping[str, Mapping[str, Any]]) -> Figure:
    m = np.array(batch_sizes(settings.rows))
    return Figure(
        kind="lines",
        title="Epochs to the target by batch size: what the same iterations cost",
        groups={
            way: _logs(m * _mean(of["iterations"]) / settings.rows) for way, of in found.items()
        },
        axis="log₂ of the epochs m·T(m)/n",
        at=_logs(m),
        across="log₂ of the batch size m",
        note=(
            "Flat where batches scale perfectly; one more for each doubling after saturation. m = 1"
            " costs the fewest rows."
        ),
    )


def _logs(values: npt.ArrayLike) -> tuple[float, ...]:
    return tuple(np.log2(np.asarray(values, float)).tolist())


def _knees(settings: BatchSizeSettings, found: Mapping[str, Mapping[str, Any]]) -> Figure:
    return Figure(
        kind="boxes",
        title="The knee measured as a multiple of m*",
        groups={
            way: tuple((knee(of) / np.asarray(of["critical"], float)).tolist())
            for way, of in found.items()
        },
        axis=f"T(1)/T, divided by m*; {settings.repeats} repeats",
        note=(
            "Boxes: quartiles and median; whiskers: farthest within 1.5 box lengths; rings: beyond;"
            " diamond: mean."
        ),
    )


def _part(settings: BatchSizeSettings, way: str, of: Mapping[str, Any]) -> TitledTable:
    T, predicted = np.asarray(of["iterations"], float), _predicted(settings, of)
    rows = [
        (
            f"{m:,}", f"{T[:, i].mean():,.0f}", f"{T[:, i].min():,.0f} to {T[:, i].max():,.0f}", f"{predicted[i]:,.0f}",
            f"{T[:, 0].mean() / T[:, i].mean():.1f}", f"{m * T[:, i].mean() / settings.rows:.1f}",
        )
        for i, m in enumerate(batch_sizes(settings.rows))
    ]  # fmt: skip
    descent = np.asarray(of["descent"], float)
    spread = f"{descent.min():,.0f} to {descent.max():,.0f}"
    saved = f"{T[:, 0].mean() / descent.mean():.1f}"
    rows.append(("all rows", f"{descent.mean():,.0f}", spread, "", saved, f"{descent.mean():,.1f}"))
    header = ("m", "iterations", "over repeats", "predicted", "fewer than m = 1 by", "epochs")
    return TitledTable(
        title=f"{way}, m* = {np.mean(of['critical']):.1f}",
        table=PageTable(header=header, rows=tuple(rows)),
    )


BATCH_SIZE = Reproduction(run=run, settings=BatchSizeSettings)
