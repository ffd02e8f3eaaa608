"""What gradient descent with a smooth kernel cannot learn: the step function of "Diving into
the shallows".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from surelearn.jobs import Runner
from surelearn.papers import kernel_circle as circle
from surelearn.papers.reproduction import Figure, Outcome, Reproduction, TitledTable, setting
from surelearn.report.document import PageTable

FEW, MANY = 100, 1_000_000
SHOWN = tuple(range(1, 16, 2))
ERRORS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
SINGLE, DOUBLE = float(np.finfo(np.float32).eps), float(np.finfo(np.float64).eps)


@dataclass(frozen=True, kw_only=True)
class HeavisideSettings:
    """What the text leaves open."""

    bandwidth: float = setting(
        1.0, "h of the Gaussian kernel exp(−(x − z)²/2h²), made periodic; 0.25 to 4"
    )
    directions: int = setting(
        13, "q, the eigendirections that EigenPro's preconditioner lowers, 1 to 60"
    )
    step: float = setting(
        1.0,
        "the step size times the largest eigenvalue of what it multiplies, above 0 and at most 1",
    )
    points: int = setting(600, "equispaced points on which the expansion is checked, 100 to 2000")

    def __post_init__(self) -> None:
        if not 0.25 <= self.bandwidth <= 4:
            raise ValueError(f"bandwidth must lie between 0.25 and 4, not {self.bandwidth:g}")
        if not 1 <= self.directions <= 60:
            raise ValueError(f"directions must lie between 1 and 60, not {self.directions}")
        if not 0 < self.step <= 1:
            raise ValueError(f"step must be above 0 and at most 1, not {self.step:g}")
        if not 100 <= self.points <= 2000:
            raise ValueError(f"points must lie between 100 and 2000, not {self.points}")


def compute(settings: HeavisideSettings) -> dict[str, Any]:
    """Errors, shares learned, curves and the check, as plain numbers."""
    ways = {
        f"gradient descent, {FEW:,}": (FEW, 0),
        f"gradient descent, {MANY:,}": (MANY, 0),
        f"EigenPro, {FEW:,}": (FEW, settings.directions),
    }
    return {
        "ways": {name: _way(settings, t, q) for name, (t, q) in ways.items()},
        "curve_at": _curve_points().tolist(),
        "iterations": [_iterations(settings, error) for error in ERRORS],
        "by_directions": [_direction(settings, q) for q in range(1, 26, 4)],
        "check": _check(settings),
    }


def run(
    settings: HeavisideSettings,
    seed: int,  # noqa: ARG001 - nothing is random here
    runner: Runner,  # noqa: ARG001
) -> Outcome:
    """The page."""
    found = compute(settings)
    few, many, eigenpro = found["ways"].values()
    return Outcome(
        source="EigenPro notes, Section 1.1.1 (after Ma and Belkin 2017)",
        headline=(
            f"Root mean squared error of the step function: gradient descent {few['rms']:.3f} after"
            f" {FEW:,} iterations, {many['rms']:.3f} after {MANY:,}; EigenPro {eigenpro['rms']:.3f}"
            f" after {FEW:,}"
        ),
        findings=_findings(settings, found),
        figures=_figures(found),
        parts=(
            _ways_part(found),
            _iterations_part(settings, found),
            _directions_part(settings, found),
        ),
        notes=(
            (
                "Nothing is random: infinitely many rows, the kernel's exact eigenvalues, so that"
                " the seed changes nothing."
            ),
            (
                "λ_k = h/√(2π)·exp(−h²k²/2), once for k = 0 and twice for k ≥ 1; the"
                " step function is Σ (4/πk)·sin kx over odd k."
            ),
            (
                "EigenPro is τ = 1 of the notes, with the exact eigenfunctions instead of a"
                " subsample's."
            ),
        ),
        numbers=found,
    )


def _curve_points() -> np.ndarray:
    return 2 * math.pi * (np.arange(200) + 0.5) / 200


def _step_function(x: np.ndarray) -> np.ndarray:
    return np.where(x < math.pi, 1.0, -1.0)


def _way(settings: HeavisideSettings, t: int, q: int) -> dict[str, Any]:
    asked = (settings.bandwidth, math.log(t), settings.step, q)
    squared = circle.squared_error(*asked)
    share = circle.learned(
        settings.bandwidth, np.array(SHOWN, dtype=float), math.log(t), settings.step, q
    )
    return {
        "iterations": t,
        "directions": q,
        "squared": squared,
        "rms": math.sqrt(squared),
        "learned": share.tolist(),
        "curve": circle.approximation(_curve_points(), *asked).tolist(),
    }


def _iterations(settings: HeavisideSettings, error: float) -> dict[str, float]:
    """Ln t against its leading term: the frequencies up to K ≈ 4/(π²ε) are needed, the last at
    the rate λ_K/λ_0.
    """
    needed = circle.log_iterations_to(error, settings.bandwidth, settings.step)
    leading = settings.bandwidth**2 / 2 * (4 / (math.pi**2 * error)) ** 2
    eigenpro = circle.log_iterations_to(
        error, settings.bandwidth, settings.step, settings.directions
    )
    return {"squared": error, "log_iterations": needed, "leading": leading, "eigenpro": eigenpro}


def _direction(settings: HeavisideSettings, q: int) -> dict[str, float]:
    squared = circle.squared_error(settings.bandwidth, math.log(FEW), settings.step, q)
    top, last = circle.eigenvalues(settings.bandwidth, [0, circle.last_frequency(q)])
    return {"directions": q, "rms": math.sqrt(squared), "relative_eigenvalue": float(last / top)}


def _check(settings: HeavisideSettings) -> dict[str, Any]:
    """The expansion against the matrix K/n on equispaced points, whose eigenvectors are
    computed.
    """
    x, values, vectors = circle.discretised(settings.bandwidth, settings.points)
    exact = circle.eigenvalues(settings.bandwidth, (np.arange(settings.points) + 1) // 2)
    large = exact > 1e-10 * exact[0]
    q = min(settings.directions, int(np.sum(exact > 1e-12 * exact[0])) - 1)
    found: dict[str, Any] = {
        "eigenvalues": float(np.max(np.abs(values[large] / exact[large] - 1))),
        "compared": int(large.sum()),
    }
    for name, t, directions in (("few", FEW, 0), ("many", MANY, 0), ("eigenpro", FEW, q)):
        descended = circle.discretised_descent(
            values, vectors, _step_function(x), t, settings.step, directions
        )
        expanded = circle.approximation(
            x, settings.bandwidth, math.log(t), settings.step, directions
        )
        found[name] = float(np.max(np.abs(descended - expanded)))
    return found | {"directions": q}


def _findings(settings: HeavisideSettings, found: dict[str, Any]) -> tuple[str, ...]:
    few, many, eigenpro = found["ways"].values()
    gain = circle.log_iterations_to(
        eigenpro["squared"], settings.bandwidth, settings.step
    ) / math.log(10)
    check = found["check"]
    return (
        (
            f"{MANY // FEW:,} times as many iterations of gradient descent lower the root mean"
            f" squared error from {few['rms']:.3f} to {many['rms']:.3f}: at least half is learned"
            f" of the frequencies {_half(few)} before, and {_half(many)} after."
        ),
        (
            f"EigenPro with q = {settings.directions} directions learns {_half(eigenpro)} in"
            f" {FEW:,} iterations; gradient descent needs about 10^{gain:.1f} iterations for the"
            " same error."
        ),
        (
            "Gradient descent needs exp(O(1/ε²)) iterations for the mean squared error ε, as the"
            " notes say, that is exp(O(1/ε⁴)) for a root mean squared error ε: ln t over its"
            f" leading term 2h²·(2/π²ε)² is {_ratios(found)} for ε = {ERRORS[0]:g} to {ERRORS[-1]:g}."
        ),
        (
            "The limit of EigenPro is arithmetic: directions whose eigenvalue is below rounding"
            f" cannot be found from a kernel matrix. Of those tried, {_resolved(found, SINGLE)} are"
            f" the most that float32 resolves, {_resolved(found, DOUBLE)} float64."
        ),
        (
            f"The formula's {check['compared']} largest eigenvalues differ from those of the kernel"
            f" matrix on {settings.points} points by at most {check['eigenvalues']:.0e} of each;"
            f" the curves from {FEW:,} and {MANY:,} iterations and from EigenPro (q ="
            f" {check['directions']}) on these points differ from the expansion's by at most"
            f" {check['few']:.0e}, {check['many']:.0e} and {check['eigenpro']:.0e}."
        ),
    )


def _half(way: dict[str, Any]) -> str:
    known = [str(k) for k, share in zip(SHOWN, way["learned"], strict=True) if share >= 0.5]
    return ", ".join(known) or "none"


def _ratios(found: dict[str, Any]) -> str:
    return ", ".join(
        f"{each['log_iterations'] / each['leading']:.2f}" for each in found["iterations"]
    )


def _resolved(found: dict[str, Any], rounding: float) -> str:
    known = [
        each["directions"]
        for each in found["by_directions"]
        if each["relative_eigenvalue"] > rounding
    ]
    return f"q = {known[-1]}" if known else "none"


def _figures(found: dict[str, Any]) -> tuple[Figure, ...]:
    g = _step_function(_curve_points())
    curves = {"the step function": tuple(g.tolist())} | {
        name: tuple(way["curve"]) for name, way in found["ways"].items()
    }
    return (
        Figure(
            kind="lines",
            title="The step function and what is learned of it",
            groups=curves,
            axis="f(x)",
            at=tuple(_curve_points().tolist()),
            across="x from 0 to 2π",
        ),
        Figure(
            kind="bars",
            title="How much of each odd frequency of the step function is learned, in percent",
            groups={
                name: tuple(round(100 * s, 1) for s in way["learned"])
                for name, way in found["ways"].items()
            },
            axis="percent learned",
            labels=tuple(f"k = {k}" for k in SHOWN),
            note=(
                "Without a bar less than 0.1% is learned. The step function has (4/πk)·sin kx for"
                " every odd k."
            ),
        ),
        Figure(
            kind="boxes",
            title="Distance to the step function at 200 points of (0, 2π)",
            groups={
                name: tuple(np.abs(np.array(way["curve"]) - g).tolist())
                for name, way in found["ways"].items()
            },
            axis="|f(x) − g(x)|; near the jumps it is always 1",
            note=(
                "Boxes: quartiles and median; whiskers: farthest within 1.5 box lengths; rings:"
                " beyond; diamond: mean."
            ),
        ),
    )


def _ways_part(found: dict[str, Any]) -> TitledTable:
    rows = tuple(
        (name, f"{way['squared']:.4f}", f"{way['rms']:.4f}", _half(way), f"{max(way['curve']):.3f}")
        for name, way in found["ways"].items()
    )
    header = ("", "mean squared error", "its root", "at least half learned: k", "largest value")
    return TitledTable(title="The three curves", table=PageTable(header=header, rows=rows))


def _iterations_part(settings: HeavisideSettings, found: dict[str, Any]) -> TitledTable:
    rows = tuple(
        (
            f"{each['squared']:g}",
            *(_count(each[name]) for name in ("log_iterations", "leading", "eigenpro")),
        )
        for each in found["iterations"]
    )
    header = (
        "mean squared error",
        "gradient descent",
        "its leading term",
        f"EigenPro, q = {settings.directions}",
    )
    note = (
        "The leading term is exp(2h²·(2/π²ε)²): the frequencies above K = 4/(π²ε) hold the share ε of"
        " the step function."
    )
    return TitledTable(
        title="Iterations to an error", table=PageTable(header=header, rows=rows), note=note
    )


def _count(log_t: float) -> str:
    """A number of iterations, or its power of ten where that is all one wants to know."""
    return (
        f"{math.ceil(round(math.exp(log_t), 6)):,}"
        if log_t < math.log(1e6)
        else f"10^{log_t / math.log(10):.1f}"
    )


def _directions_part(settings: HeavisideSettings, found: dict[str, Any]) -> TitledTable:
    rows = tuple(
        (
            f"{each['directions']}",
            f"{each['relative_eigenvalue']:.1e}",
            f"{each['rms']:.4f}",
            _precision(each["relative_eigenvalue"]),
        )
        for each in found["by_directions"]
    )
    header = ("q", "λ_{q+1}/λ₁", f"root mean squared error after {FEW:,}", "λ_{q+1} is resolved by")
    return TitledTable(
        title=f"EigenPro by number of directions, h = {settings.bandwidth:g}",
        table=PageTable(header=header, rows=rows),
        note="λ₁/λ_{q+1} is the acceleration; resolved means above the rounding of λ₁.",
    )


def _precision(relative: float) -> str:
    return (
        "float32 and float64"
        if relative > SINGLE
        else "float64"
        if relative > DOUBLE
        else "neither"
    )


HEAVISIDE = Reproduction(run=run, settings=HeavisideSettings)
