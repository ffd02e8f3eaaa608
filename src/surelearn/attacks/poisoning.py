"""Poison aimed at given parameters: gradient cancelling, its transition at the threshold, and where
targets come from.

Course, Section 18; Y. Lu, G. Kamath and Y. Yu, ICML 2023. What comes out is a measurement: an
attack that fails proves nothing. The threshold that no attack passes is in
`surelearn.bounds.poisoning`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize
from sklearn.utils import check_random_state

from surelearn.attacks.poison_allowed import Allowed, Array, checked_count, checked_rows
from surelearn.attacks.poison_objectives import VictimObjective, check_labels, checked_parameters
from surelearn.types import RandomState, RowsLike


@dataclass(frozen=True, eq=False)
class Cancelling:
    """What gradient cancelling found.

    Attributes
    ----------
    X, y : the poison, ``count`` rows
    fraction : ε_d, poison over clean rows
    residual : ‖g(μ) + ε_d·g(ν) + (1 + ε_d)·2λw‖ at the target w; 0 where it is reached
    clean : the same norm without poison
    reached : whether the residual is at most ``tolerance`` times the clean one
    distance : ‖w′ − w‖, w′ the fit to clean rows and poison; None if it was not refitted
    damage : how much the risk on clean rows rose by that refit; None without
    """

    X: Array
    y: np.ndarray
    fraction: float
    residual: float
    clean: float
    reached: bool
    distance: float | None
    damage: float | None


@dataclass(frozen=True, eq=False)
class Corruption:
    """Parameters within ``radius`` of the fitted ones that raise the risk from ``before`` to
    ``after``: a target.
    """

    target: Array
    radius: float
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Transition:
    """Gradient cancelling below and above a threshold: fractions, residuals as shares of the
    clean one, distances.
    """

    threshold: float
    fractions: Array
    residuals: Array
    distances: Array
    reached: np.ndarray

    def plot(self, ax: Any = None) -> Any:
        """Draw the share of the gradient that is left against the fraction of poison, and the
        threshold.
        """
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(6, 4), layout="constrained").subplots()
        ax.semilogy(
            self.fractions,
            np.maximum(self.residuals, 1e-16),
            marker="o",
            label="gradient left at the target",
        )
        ax.axvline(
            self.threshold,
            color="grey",
            linestyle="--",
            label="below it no poison reaches the target",
        )
        ax.set(xlabel="poison rows / clean rows", ylabel="share of the clean gradient")
        ax.legend()
        return ax


def corrupt_parameters(
    objective: VictimObjective,
    w: Any,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    radius: float,
    steps: int = 100,
) -> Corruption:
    """Parameters with the largest risk on rows X, y found within ``radius`` of w, by projected
    gradient ascent.

    Examples
    --------
    >>> from surelearn.attacks.poison_objectives import LinearObjective
    >>> line = LinearObjective("squared", intercept=False)
    >>> corrupt_parameters(line, [1.0], [[1.0], [2.0]], [1.0, 2.1], radius=0.5).target.round(6)
    array([0.5])
    """
    X, y = checked_rows(X, y)
    check_labels(objective, y)
    if not (np.isfinite(radius) and radius > 0):
        raise ValueError(f"radius must be a number above 0, not {radius!r}")
    start = checked_parameters(objective, "w", w, X.shape[1])
    best, highest = start, objective.risk(start, X, y)
    before, at = highest, start
    for step in range(checked_count("steps", steps)):
        slope = objective.gradient(at, X, y)
        if not (norm := np.linalg.norm(slope)) > 0:
            break
        at = at + radius * (1 - step / steps) / 2 * slope / norm
        if (far := np.linalg.norm(at - start)) > radius:
            at = start + (at - start) * (radius / far)
        if (risk := objective.risk(at, X, y)) > highest:
            best, highest = at, risk
    return Corruption(target=best, radius=float(radius), before=before, after=highest)


def cancel_gradient(
    objective: VictimObjective,
    target: npt.ArrayLike | None,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    count: int,
    points: int | None = None,
    allowed: Allowed | None = None,
    start: tuple[Any, Any] | None = None,
    restarts: int = 4,
    iterations: int = 2000,
    tolerance: float = 1e-6,
    refit: bool = True,
    random_state: RandomState = 0,
) -> Cancelling:
    """Poison that makes the gradient vanish at target parameters: min ½‖g(μ) + ε_d·g(ν) + (1 +
    ε_d)·2λw‖² over ν in Γ.

    L-BFGS-B over the features, inside their range at every step, with labels drawn from those
    allowed at every restart.

    Parameters
    ----------
    target : w, the parameters to reach
    X, y : the clean rows (n, d)
    count : poison rows; ε_d = count/n
    points : how many of them are distinct, the others being copies; ``min(count, 2p + 10)`` unless
        told, p parameters
    allowed : Γ; unbounded, with the labels of y, unless told
    start : ``count`` rows and labels of the first start, such as `neutral_rows`; copies stay
        copies; drawn unless told
    restarts, iterations : starts, and the most steps of each; a start that reaches the target is
        the last
    refit : whether to fit to clean rows and poison, for ``distance`` and ``damage``

    Examples
    --------
    >>> from surelearn.attacks.poison_objectives import LinearObjective
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = (X[:, 0] + rng.logistic(size=100) > 0).astype(int)
    >>> found = cancel_gradient(LinearObjective(intercept=False), [-1.0, 0.5], X, y, count=300)
    >>> found.reached, found.distance < 1e-3
    (True, True)
    """
    X, y = checked_rows(X, y)
    check_labels(objective, y)
    w, gamma, n = (
        checked_parameters(objective, "target", target, X.shape[1]),
        allowed or Allowed(),
        len(X),
    )
    count, iterations = checked_count("count", count), checked_count("iterations", iterations)
    distinct = min(count, 2 * w.size + 10 if points is None else checked_count("points", points))
    # which of the distinct rows each poisoned row is
    which, first = np.arange(count) % distinct, None
    if start is not None:
        first, which = _given(*checked_rows(*start, "start"))
        distinct = len(first[0])
        if len(which) != count:
            raise ValueError(f"start must hold count rows, {count}, not {len(which)}")
    random, fraction = check_random_state(random_state), count / n
    copies = np.bincount(which, minlength=distinct)
    fixed = objective.gradient(w, X, y) + (1 + fraction) * 2 * objective.regularization * w
    clean = float(np.linalg.norm(objective.gradient(w, X, y) + 2 * objective.regularization * w))
    best = np.inf, X[:0], y[:0]
    for restart in range(checked_count("restarts", restarts)):
        if first is not None and restart == 0:
            begin, labels = gamma.project(first[0]), first[1]
        else:
            labels = random.choice(gamma.labels_for(y), distinct)
            begin = _start(X, distinct, restart, gamma, random)
        check_labels(objective, labels, "allowed labels")
        rows, left = _cancel(objective, w, fixed, begin, labels, copies / n, gamma, iterations)
        if not best[0] <= left:
            best = left, rows, labels
        if best[0] <= tolerance * clean:
            break
    rows, labels = (part[which] for part in best[1:])
    distance, damage = _refitted(objective, w, X, y, rows, labels) if refit else (None, None)
    reached = best[0] <= tolerance * clean
    return Cancelling(rows, labels, fraction, best[0], clean, bool(reached), distance, damage)


def _given(X: Array, y: np.ndarray) -> tuple[tuple[Array, np.ndarray], np.ndarray]:
    """The distinct rows with their labels, and which of them each row is."""
    _, first, which = np.unique(
        np.column_stack([X, y]), axis=0, return_index=True, return_inverse=True
    )
    return (X[first], y[first]), np.ravel(which)


def neutral_rows(
    X: RowsLike, y: npt.ArrayLike, count: int, allowed: Allowed, *, more: int = 0
) -> tuple[Array, np.ndarray]:
    """Poison inside a range that brings a linear fit of two classes to zero weights, if ``count``
    rows can do so at all.

    With every column scaled to [−1, 1] and labels s = ±1, the rows are −s·mean(sx)/ε_d, as many
    more of the one class as the clean rows have of the other: then Σ s·x is 0 over clean rows and
    poison, and so is the gradient at w = 0. The rows lie inside the range from ε_d =
    max(``|mean(s)|``, max_j ``|mean(s·x_j)|``) on; below, they are its nearest.

    Parameters
    ----------
    X, y : the clean rows (n, d), labels 0 and 1
    allowed : a finite range of every column
    more : so many rows more of class 1, and less of class 0, than balance asks for; moves the
        intercept off zero

    Examples
    --------
    >>> rows, labels = neutral_rows([[-1.0], [1.0]], [0, 1], 4, Allowed(low=-1.0, high=1.0))
    >>> rows.ravel(), labels
    (array([-0.5, -0.5,  0.5,  0.5]), array([1, 1, 0, 0]))
    """
    X, y = checked_rows(X, y)
    count, (low, high) = checked_count("count", count), allowed.ranges(X.shape[1])
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError("allowed must have a finite range of every column")
    if not np.isin(y, (0, 1)).all():
        raise ValueError("y must hold labels 0 and 1: number the classes first")
    # as many rows of each label as balance the signs, moved from the middle to cancel Σ yᵢxᵢ
    signs = 2 * y.astype(int) - 1
    ones = int(np.clip(round((count - signs.sum()) / 2) + more, 0, count))
    labels = np.repeat([1, 0], [ones, count - ones])
    middle, half = (low + high) / 2, (high - low) / 2
    shift = (signs @ X + (2 * ones - count) * middle) / count
    rows = middle - (2 * labels - 1)[:, None] * np.clip(shift, -half, half)
    return rows, labels


def _start(
    X: Array, count: int, restart: int, gamma: Allowed, random: np.random.RandomState
) -> Array:
    """Rows to begin at: clean ones, then noise around their mean, of growing and shrinking size."""
    if restart == 0:
        return gamma.project(X[random.randint(len(X), size=count)])
    scale = (X.std(0) + 1e-3 * (1 + np.abs(X.mean(0)))) * 10.0 ** random.uniform(-1.5, 0.5)
    return gamma.project(X.mean(0) + scale * random.standard_normal((count, X.shape[1])))


def _cancel(
    objective: VictimObjective,
    w: Array,
    fixed: Array,
    start: Array,
    labels: np.ndarray,
    weights: Array,
    gamma: Allowed,
    iterations: int,
) -> tuple[Array, float]:
    """Move rows until the weighted gradients cancel ``fixed``; the rows, and the norm of what
    is left.
    """
    scale = float(np.linalg.norm(fixed)) or 1.0

    def value(flat: Array) -> tuple[float, Array]:
        rows = flat.reshape(start.shape)
        left = (fixed + objective.gradient(w, rows, labels, weights)) / scale
        return (
            0.5 * float(left @ left),
            (objective.pull(w, rows, labels, left) * weights[:, None]).ravel() / scale,
        )

    low, high = (np.tile(part, len(start)) for part in gamma.ranges(start.shape[1]))
    options = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 1e-30, "gtol": 1e-14}
    found = optimize.minimize(
        value,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=optimize.Bounds(low, high),
        options=options,
    )
    rows = gamma.project(found.x.reshape(start.shape))
    return rows, float(np.linalg.norm(fixed + objective.gradient(w, rows, labels, weights)))


def _refitted(
    objective: VictimObjective, w: Array, X: Array, y: np.ndarray, rows: Array, labels: np.ndarray
) -> tuple[float, float]:
    clean = objective.fit(X, y)
    after = objective.fit(np.vstack([X, rows]), np.concatenate([y, labels]), start=clean)
    return float(np.linalg.norm(after - w)), objective.risk(after, X, y) - objective.risk(
        clean, X, y
    )


def transition(
    objective: VictimObjective,
    target: npt.ArrayLike | None,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    threshold: float,
    multiples: Sequence[float] = (0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2.0),
    **options: Any,
) -> Transition:
    """Gradient cancelling with fractions of poison around a threshold of
    `surelearn.bounds.poisoning`.

    With Γ unbounded it fails below and succeeds above; fractions are rounded to whole rows, away
    from the threshold.

    Parameters
    ----------
    threshold : the least fraction that the theorem leaves, above 0 and finite
    multiples : of it, tried in turn
    **options : of `cancel_gradient`
    """
    X, y = checked_rows(X, y)
    if not (np.isfinite(threshold) and threshold > 0):
        raise ValueError(
            f"threshold must be a finite number above 0, not {threshold!r}: there is no transition"
            " without one"
        )
    wanted = [
        max(1, int((np.floor if m < 1 else np.ceil)(m * threshold * len(X)))) for m in multiples
    ]
    found = [cancel_gradient(objective, target, X, y, count=count, **options) for count in wanted]
    return Transition(
        threshold=float(threshold),
        fractions=np.array([one.fraction for one in found]),
        residuals=np.array([one.residual / one.clean if one.clean > 0 else 0.0 for one in found]),
        distances=np.array([np.nan if one.distance is None else one.distance for one in found]),
        reached=np.array([one.reached for one in found]),
    )
