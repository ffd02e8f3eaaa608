"""Gradient descent and its stochastic form, with the theorem's bound at every iteration beside
what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from surelearn import bounds, stated
from surelearn.claim import Claim, Theorem
from surelearn.losses import HINGE
from surelearn.optim.losses import RegularizedRisk
from surelearn.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


PROJECTED = (
    "iterates are projected onto a ball that holds the minimizer (A. Beck 2017, Theorem 10.21: the"
    " same rate)"
)


class Smooth(Protocol):
    """What descent asks of a function; `RegularizedRisk` and `Function` are two."""

    @property
    def smoothness(self) -> float: ...  # noqa: D102
    @property
    def strong_convexity(self) -> float: ...  # noqa: D102
    @property
    def convex(self) -> bool: ...  # noqa: D102
    @property
    def lower(self) -> float: ...  # noqa: D102

    def value(self, w: Array, /) -> float: ...  # noqa: D102
    def gradient(self, w: Array, /) -> Array: ...  # noqa: D102


@dataclass(frozen=True)
class Descent:
    """A run of an iterative method: iterate by iterate, what was measured and what the theorem
    guarantees.

    Attributes
    ----------
    solution : the last iterate; for stochastic descent the average
    measured : (k + 1,), what the theorem bounds, after 0 … k steps; NaN where it is not known
    bound : (k + 1,), the theorem's bound; infinite before the first step where the theorem says
        nothing
    quantity : what is measured and bounded
    step : the step size
    theorem, inputs : by which bound, and what it was given besides the number of iterations
    """

    solution: Array
    measured: Array
    bound: Array
    quantity: str
    step: float
    theorem: Theorem[..., Any]
    inputs: Mapping[str, Any] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether no measured number exceeds its bound, up to rounding of 1e-9 of the largest."""
        known = self.measured[~np.isnan(self.measured)]
        slack = 1e-9 * max(1e-300, float(np.abs(known).max(initial=0.0)))
        return bool((known <= self.bound[~np.isnan(self.measured)] + slack).all())

    def claim(self) -> Claim:
        """The theorem's claim about the last iterate."""
        return self.theorem.certify(
            **self.inputs, iterations=len(self.bound) - 1, assumptions=self.assumptions
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw measured numbers and bounds over the iterations, on a logarithmic scale; the
        axes.
        """
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(6, 4), layout="constrained").subplots()
        steps = np.arange(len(self.bound))
        shown = np.isfinite(self.bound) & (self.bound > 0)
        ax.plot(steps[shown], self.bound[shown], label=f"bound: {self.theorem.name}")
        seen = self.measured > 0  # rounding can leave a last iterate a hair below the optimum
        ax.plot(steps[seen], self.measured[seen], label="measured")
        ax.set(xlabel="iterations", ylabel=self.theorem.claims.label, yscale="log")
        ax.legend()
        return ax


def gradient_descent(
    f: Smooth,
    start: npt.ArrayLike,
    *,
    iterations: int = 100,
    step: float | None = None,
    minimizer: npt.ArrayLike | None = None,
    radius: float | None = None,
) -> Descent:
    """Gradient descent, x ← x − t∇f(x), with the rate of Theorems 8.5 (convex), 8.7 (strongly
    convex) or 8.8 (else).

    | f | step t by default | bounded |
    |---|---|---|
    | convex | 1/L | f(x_k) − f* ≤ D²/(2tk), D = ‖x_0 − x*‖ |
    | strongly convex | 2/(m + L) | f(x_k) − f* ≤ γ^k·(L/2)·D², γ = 1 − 2tmL/(m + L) |
    | not convex | 1/L | min ‖∇f(x_i)‖ ≤ √(2(f(x_0) − f*)/(t(k + 1))) |

    The theorems are the course's, which leaves γ open and prints strong convexity as convexity of f
    − m‖x‖²; it is that of f − (m/2)‖x‖².

    Parameters
    ----------
    f : with ``value``, ``gradient``, ``smoothness``, ``strong_convexity``, ``convex`` and ``lower``
    start : x_0
    step : at most 1/L, or 2/(m + L) for strong convexity; larger ones are refused, since no theorem
        covers them
    minimizer : x*, for D and the measured gap. Without it, D ≤ ‖∇f(x_0)‖/m where m > 0, and the gap
        is not known
    radius : project every iterate onto ‖x‖ ≤ radius; x* is then the minimizer in the ball, and the
        convex rate is claimed

    Examples
    --------
    >>> f = RegularizedRisk([[1.0, 0.0], [0.0, 2.0]], [1.0, 2.0], "squared")
    >>> run = gradient_descent(f, [0.0, 0.0], iterations=20, minimizer=[1.0, 1.0])
    >>> run.holds, run.quantity, bool(run.measured[-1] < 1e-8)
    (True, 'suboptimality', True)
    """
    x, count = np.array(start, dtype=float), _count(iterations)
    best = None if minimizer is None else np.asarray(minimizer, dtype=float)
    if radius is not None:
        _check_ball(radius, best)
    theorem, inputs = _rate(f, x, best, step, projected=radius is not None)
    if f.convex:  # before the first step: f(x_0) − f* ≤ (L/2)D² where the minimizer is free
        first = inputs["smoothness"] / 2 * inputs["distance"] ** 2 if radius is None else math.inf
        bound = np.concatenate([[first], theorem(**inputs, iterations=np.arange(1, count + 1))])
    else:
        bound = theorem(**inputs, iterations=np.arange(count + 1))
    gradient = f.gradient(x)
    values, norms = [f.value(x)], [float(np.linalg.norm(gradient))]
    for _ in range(count):
        x = project(x - inputs["step"] * gradient, radius)
        gradient = f.gradient(x)
        values.append(f.value(x))
        norms.append(float(np.linalg.norm(gradient)))
    optimum = math.nan if best is None else f.value(best)
    measured = np.array(values) - optimum if f.convex else np.minimum.accumulate(norms)
    quantity, further = theorem.claims.quantity, () if radius is None else (PROJECTED,)
    return Descent(x, measured, bound, quantity, inputs["step"], theorem, inputs, further)


def stochastic_gradient_descent(
    f: RegularizedRisk,
    *,
    norm_bound: float,
    iterations: int,
    step: float | None = None,
    lipschitz: float | None = None,
    fresh: bool = False,
    comparator: npt.ArrayLike | None = None,
    random_state: int | None = None,
) -> Descent:
    """Stochastic gradient descent, w ← Π(w − η∇ℓ_I(w)) from w = 0, Π onto ‖w‖ ≤ B; the average of
    the iterates.

    For every u with ‖u‖ ≤ B the average regret (1/k)Σ ℓ_t(w_t) − ℓ_t(u) is at most B²/(2ηk) +
    ηρ²/2, whatever the rows (S. Shalev-Shwartz and S. Ben-David 2014, Lemma 14.1); that is what
    ``measured`` and ``bound`` hold. In expectation over the draws, the same number bounds the risk
    of the average above the best u: the claim. The step is constant, η = B/(ρ√T) by default: the
    course's table prints t = 1/k for convex functions, which wants strong convexity; 1/√k is right.

    Parameters
    ----------
    norm_bound : B
    iterations : T
    lipschitz : ρ, the largest gradient of a row's loss in the ball; by default computed from the
        rows
    fresh : False draws rows with replacement: the risk is the mean over these rows. True takes each
        row once, in random order, as a fresh sample: the risk is that of the population, and ρ must
        be stated, since the largest row seen is not the largest there is
    comparator : u, for the measured regret; without it, it is not known

    Examples
    --------
    >>> f = RegularizedRisk([[1.0], [1.0], [-1.0]], [1, 1, -1], "hinge")
    >>> run = stochastic_gradient_descent(f, norm_bound=1.0, iterations=400, comparator=[1.0], random_state=0)
    >>> run.holds, round(float(run.bound[-1]), 3), run.claim().confidence
    (True, 0.05, 'in expectation')
    """
    n = len(f.y)
    rng = np.random.default_rng(random_state)
    if fresh:
        if lipschitz is None:
            raise ValueError(
                "fresh=True needs lipschitz=, a bound on the gradient of every row's loss that"
                " there can be"
            )
        if iterations > n:
            raise ValueError(
                f"fresh=True takes each row once: iterations must be at most {n}, not {iterations}"
            )
    rows = (
        rng.permutation(n)[: _count(iterations)]
        if fresh
        else rng.integers(n, size=_count(iterations))
    )
    rho = f.lipschitz(norm_bound) if lipschitz is None else float(lipschitz)
    if fresh and rho < f.lipschitz(norm_bound) * (1 - 1e-12):
        raise ValueError(
            f"lipschitz={rho:g} is exceeded by a row: state a bound that holds for every row"
        )
    eta = norm_bound / (rho * math.sqrt(iterations)) if step is None else float(step)
    best = None if comparator is None else np.asarray(comparator, dtype=float)
    _check_ball(norm_bound, best)
    # the iterate, the sum of the iterates so far, and the regret after each step
    w, total, regret = (
        np.zeros(f.dimension),
        np.zeros(f.dimension),
        np.full(iterations + 1, math.nan),
    )
    lost = 0.0
    for t, i in enumerate(rows, start=1):
        total += w
        if best is not None:
            lost += f.value_of_row(i, w) - f.value_of_row(i, best)
            regret[t] = lost / t
        w = project(w - eta * f.gradient_of_row(i, w), norm_bound)
    inputs = {"norm_bound": float(norm_bound), "lipschitz": rho, "step": eta}
    guaranteed = np.asarray(
        bounds.sgd_learnability(**inputs, iterations=np.arange(1, iterations + 1))
    )
    bound = np.concatenate([[math.inf], guaranteed])
    whose = () if fresh else ("the risk is the mean over the given rows, drawn with replacement",)
    return Descent(
        total / iterations,
        regret,
        bound,
        "average regret",
        eta,
        bounds.sgd_learnability,
        inputs,
        whose,
    )


def soft_margin_descent(
    X: npt.ArrayLike, y: npt.ArrayLike, C: float = 1.0, *, iterations: int = 1000, step: float = 1.0
) -> tuple[Array, float, Array]:
    """The course's subgradient descent for the soft-margin SVM: min ½‖w‖² + C·Σ (1 − y(⟨x, w⟩ +
    b))⁺. A teaching form.

    w ← w − t[w + C·Σ ℓ′(yŷ)·y·x], b ← b − t[C·Σ ℓ′(yŷ)·y], where ℓ′ is −1 below 1 and 0 above, with
    t = step/k: the objective is strongly convex in w. (The course prints ℓ_hinge(1 − yŷ) for the
    loss; it is ℓ_hinge(yŷ).) For use, take `surelearn.linear.SupportArrayMachine`.

    Returns
    -------
    w, b : of the iterate of least objective
    objectives : (iterations + 1,), the least objective so far; a single step need not improve it

    Examples
    --------
    >>> w, b, objectives = soft_margin_descent([[-2.0], [-1.0], [1.0], [2.0]], [-1, -1, 1, 1], C=10.0)
    >>> round(float(w[0]), 1), abs(round(b, 1))
    (1.0, 0.0)
    """
    x, labels = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise ValueError("y must be −1 and 1: write 2*y - 1 for labels 0 and 1")
    stated.positive("C", C)
    w, b, least = np.zeros(x.shape[1]), 0.0, math.inf
    best, objectives = (w, b), np.empty(_count(iterations) + 1)
    for k in range(len(objectives)):
        margins = labels * (x @ w + b)
        objective = float(w @ w / 2 + C * HINGE.value(margins).sum())
        if objective < least:
            best, least = (w, b), objective
        objectives[k] = least
        pull = -C * labels * HINGE.derivative(margins)
        t = step / (k + 1)
        w, b = w - t * (w - pull @ x), b + t * float(pull.sum())
    return best[0], best[1], objectives


def project(x: Array, radius: float | None) -> Array:
    """The nearest point of the ball ‖x‖ ≤ radius; x itself without a radius.

    Examples
    --------
    >>> project(np.array([3.0, 4.0]), 1.0)
    array([0.6, 0.8])
    """
    if radius is None:
        return x
    norm = float(np.linalg.norm(x))
    return x if norm <= radius else x * (radius / norm)


def _rate(
    f: Smooth, start: Array, minimizer: Array | None, step: float | None, projected: bool
) -> tuple[Theorem[..., Any], dict[str, float]]:
    """The theorem that covers f, and its inputs but for the number of iterations."""
    big, m = float(f.smoothness), float(f.strong_convexity)
    if not 0 < big < math.inf:
        raise ValueError(
            f"the gradient must be Lipschitz, smoothness positive and finite, not {big:g}: use a"
            " smooth loss"
        )
    if not f.convex:
        if projected or f.lower == -math.inf:
            raise ValueError(
                "a function that is not convex needs lower=, a number it never falls below, and no"
                " radius="
            )
        inputs = {
            "gap": f.value(start) - f.lower,
            "step": 1 / big if step is None else step,
            "smoothness": big,
        }
        return bounds.gradient_descent_nonconvex, inputs
    inputs = {"distance": _distance(f, start, minimizer, m), "smoothness": big}
    if m > 0 and not projected:
        inputs |= {"step": 2 / (m + big) if step is None else step, "strong_convexity": m}
        return bounds.gradient_descent_strongly_convex, inputs
    return bounds.gradient_descent_convex, inputs | {"step": 1 / big if step is None else step}


def _distance(f: Smooth, start: Array, minimizer: Array | None, m: float) -> float:
    if minimizer is not None:
        if minimizer.shape != start.shape:
            raise ValueError(
                f"minimizer must have the shape of start, {start.shape}, not {minimizer.shape}"
            )
        return float(np.linalg.norm(start - minimizer))
    if m <= 0:
        raise ValueError(
            "minimizer= is needed for the distance to it: the function is not strongly convex"
        )
    return float(np.linalg.norm(f.gradient(start))) / m


def _check_ball(radius: float, inside: Array | None) -> None:
    stated.positive("the ball's radius", radius)
    if inside is not None and np.linalg.norm(inside) > radius * (1 + 1e-12):
        raise ValueError(
            f"the minimizer or comparator has norm {np.linalg.norm(inside):g}, outside the ball of"
            f" {radius:g}"
        )


def _count(iterations: int) -> int:
    if iterations != int(iterations) or iterations < 1:
        raise ValueError(f"iterations must be a whole number of at least 1, not {iterations!r}")
    return int(iterations)
