"""Changing rows so that a model errs (course, Section 17): the fast gradient method and projected
gradient.

The projection of the course notes, corrected, is x₀ + clip(x − x₀, −r, r); that of L2, a rescaling,
is just as cheap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from surelearn.attacks.domains import Array, Domain, Norm
from surelearn.attacks.problem import EvasionProblem, substitute
from surelearn.attacks.result import Evasion
from surelearn.attacks.worst_linear import worst_of_linear
from surelearn.lacking import Lacking
from surelearn.types import AnyArray, Model, RandomState, RowsLike

Loss = Literal["cross_entropy", "margin"]
Schedule = Literal["cosine", "linear", "constant"]
_SCHEDULES: dict[str, Callable[[float], float]] = {
    "cosine": lambda t: 0.5 * (1.0 + math.cos(math.pi * t)),
    "linear": lambda t: 1.0 - t,
    "constant": lambda _: 1.0,
}


@dataclass(frozen=True)
class AscentPlan:
    """How projected gradient moves: see `projected_gradient`."""

    steps: int = 40
    step: float | None = None
    schedule: Schedule = "cosine"
    momentum: float = 0.0
    restarts: int = 1
    random_start: bool = False
    loss: Loss = "cross_entropy"
    stop: bool = True

    def __post_init__(self) -> None:
        for name in ("steps", "restarts"):
            value = getattr(self, name)
            if isinstance(value, bool) or value != int(value) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
        if self.schedule not in _SCHEDULES:
            raise ValueError(
                f"schedule must be one of {', '.join(_SCHEDULES)}, not {self.schedule!r}"
            )
        if self.loss not in ("cross_entropy", "margin"):
            raise ValueError(f"loss must be 'cross_entropy' or 'margin', not {self.loss!r}")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must lie in [0, 1), not {self.momentum!r}")
        if self.step is not None and not 0 < self.step < math.inf:
            raise ValueError(f"step must be positive and finite, or None, not {self.step!r}")

    def first_step(self) -> float:
        """The first step's length as a share of the radius; decaying ones are half as long on
        average.
        """
        usual = (2.5 if self.schedule == "constant" else 5.0) / self.steps
        return min(1.0, usual) if self.step is None else self.step


def fgsm(
    model: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    radius: float,
    norm: Norm = "linf",
    target: npt.ArrayLike | None = None,
    where: Domain | None = None,
) -> Evasion:
    """The fast gradient method: one step of length ``radius`` along the gradient of the loss, its
    sign for L∞.

    Parameters are those of `projected_gradient`.
    """
    problem = EvasionProblem.of(model, X, y, target, where)
    return _attack(
        problem, _radius(radius), norm, AscentPlan(steps=1, step=1.0), None, 0, "fast gradient"
    )


def projected_gradient(
    model: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    radius: npt.ArrayLike,
    norm: Norm = "linf",
    target: npt.ArrayLike | None = None,
    where: Domain | None = None,
    steps: int = 40,
    step: float | None = None,
    schedule: Schedule = "cosine",
    momentum: float = 0.0,
    restarts: int = 1,
    random_start: bool = False,
    loss: Loss = "cross_entropy",
    substitutions: int = 0,
    random_state: RandomState = None,
) -> Evasion:
    """Projected gradient ascent of the loss within a ball around every row; rows that are turned
    stop.

    Parameters
    ----------
    model : as `surelearn.subject.score_function` takes it; it must have a gradient
    X, y : rows (n, d) and their true labels; rows that are wrong unchanged count as turned, at
        distance 0
    radius : the largest change in units of the domain's scale, a number or one per row
    norm : "linf" or "l2"
    target : a label, or one per row, to be reached; None leaves the label y
    where : the `Domain` of changed rows; None allows all numbers
    steps, step : how many, and the first one's length as a share of the radius; None lets all
        together be 2.5 radii long
    schedule : of the lengths: "cosine" or "linear" decay, or "constant"
    momentum : share of the last direction that is kept
    restarts : runs; from the second on, on the rows not turned yet, they aim at the other classes
        in turn, the nearest by score first; when all had their turn (or the attack is targeted)
        they begin at a random place in the ball
    random_start : whether the first run does, too
    loss : "cross_entropy" (its direction, which does not vanish), or "margin": the best other score
        minus the label's
    substitutions : most columns of choices that may be substituted in a row, greedily, where moving
        is not enough; each spends the domain's cost of the radius
    random_state : for random starts

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    >>> found = projected_gradient(LogisticRegression().fit(X, y), X, y, radius=1.5)
    >>> found.success.tolist(), round(float(found.rows[1, 0]), 4)
    ([False, True, True, False], 2.1092)
    """
    plan = AscentPlan(steps, step, schedule, momentum, restarts, random_start, loss)
    problem = EvasionProblem.of(model, X, y, target, where)
    return _attack(
        problem,
        _radius(radius),
        norm,
        plan,
        random_state,
        substitutions,
        f"projected gradient, {steps} steps",
    )


def _attack(
    problem: EvasionProblem,
    radius: npt.ArrayLike,
    norm: Norm,
    plan: AscentPlan,
    random_state: RandomState,
    substitutions: int,
    method: str,
) -> Evasion:
    if norm not in ("linf", "l2"):
        raise ValueError(f"norm must be 'linf' or 'l2', not {norm!r}")
    if isinstance(problem.f.pullback, Lacking):
        raise ValueError(
            f"{problem.f.name} has no gradient ({problem.f.pullback.reason}): use decision_attack"
        )
    before = problem.f.predict(problem.X)
    base, done, calls = problem.X.copy(), problem.reached(before, slice(None)), 0
    Z, left = base.copy(), np.flatnonzero(~done)
    radii = np.broadcast_to(np.asarray(radius, dtype=float), len(base))
    # moving alone first
    for substituted in range(problem.where.check_substitutions(substitutions, radius) + 1):
        if substituted:
            left, base, asked = substitute(problem, left, base, radii, norm)
            calls += asked
        room = problem.where.room(problem.where.spent(base, problem.X, norm), radii, norm)
        Z[left], done[left], more = search(
            problem, left, base[left], room, norm, plan, random_state
        )
        calls, left = calls + more, left[~done[left]]
    return problem.result(method, norm, radius, Z, before, calls)


def worst_rows(
    model: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    radius: float,
    norm: Norm = "linf",
    where: Domain | None = None,
    steps: int = 7,
    random_state: RandomState = None,
) -> Array:
    """Rows changed so that their loss is large, whether turned or not: to train on.

    Where scores are linear, those with the least margin (`worst_of_linear`), else found by gradient
    from a random start.
    """
    problem, random = EvasionProblem.of(model, X, y, None, where), _random(random_state)
    if isinstance(problem.f.pullback, Lacking):
        raise ValueError(f"{problem.f.name} has no gradient ({problem.f.pullback.reason})")
    size = np.full(len(problem.X), _radius(radius))
    if (exact := worst_of_linear(problem, size, norm)) is not None:
        return exact
    start = _random_start(problem.where, problem.X, size, norm, random)
    plan = AscentPlan(steps=steps, stop=False)
    found, _ = _ascend(problem, np.arange(len(size)), problem.X, start, size, norm, plan)
    return problem.where.within(found, problem.X, size, norm)


def _random(state: RandomState) -> np.random.RandomState:
    if isinstance(state, np.random.RandomState):
        return state
    return np.random.RandomState(cast("int | None", state))  # NumPy refuses a Generator


def search(
    problem: EvasionProblem,
    rows: np.ndarray,
    base: Array,
    radius: npt.ArrayLike,
    norm: Norm,
    plan: AscentPlan,
    random_state: RandomState,
) -> tuple[Array, np.ndarray, int]:
    """Projected gradient with restarts for ``rows`` of the problem around ``base``: rows found,
    whether turned, calls.
    """
    random = _random(random_state)
    radius = np.broadcast_to(np.asarray(radius, dtype=float), len(problem.X))[rows]
    Z, done, calls = base.copy(), np.zeros(len(rows), dtype=bool), 0
    others: dict[str, Loss] = {"cross_entropy": "margin", "margin": "cross_entropy"}
    loss, rivals = plan.loss, None
    for run in range(plan.restarts):
        left = np.flatnonzero(~done)
        if not left.size:
            break
        start, around = base[left].copy(), run > 0
        if run and not problem.targeted:
            rivals, around = _ranked(problem, base[left], rows[left], run - 1)
            calls += len(left)
        if around or plan.random_start:
            start = _random_start(problem.where, start, radius[left], norm, random)
        current = replace(plan, loss=loss)
        found, asked = _ascend(
            problem, rows[left], base[left], start, radius[left], norm, current, rivals
        )
        found = problem.where.within(found, base[left], radius[left], norm)
        Z[left], done[left] = found, problem.judged(found, rows[left])
        calls, loss = calls + asked + len(left), others[loss]
    return Z, done, calls


def _ranked(
    problem: EvasionProblem, Z: Array, rows: np.ndarray, rank: int
) -> tuple[np.ndarray, bool]:
    """The other class with the rank-th largest score, counted around; and whether all had their
    turn.
    """
    scores = problem.f.scores(Z).astype(float)
    scores[np.arange(len(Z)), problem.aims[rows]] = -np.inf
    others = scores.shape[1] - 1
    return np.argsort(-scores, axis=1, kind="stable")[:, rank % others], rank >= others


def _ascend(
    problem: EvasionProblem,
    rows: np.ndarray,
    base: Array,
    start: Array,
    radius: Array,
    norm: Norm,
    plan: AscentPlan,
    rivals: np.ndarray | None = None,
) -> tuple[Array, int]:
    """One run from ``start``; a row stops where it is turned. Computed in the model's own
    precision.
    """
    pullback: Any = problem.f.pullback
    kind, where = problem.f.dtype, problem.where
    low, high = (part.astype(kind) for part in where.ball(base, radius))
    base, z, length = base.astype(kind), start.astype(kind), radius.astype(kind)[:, None]
    scale = None if (where.scale == 1).all() else where.scale.astype(kind)
    out, at, calls, velocity = start.copy(), np.arange(len(rows)), 0, None
    share = plan.first_step()
    for k in range(plan.steps + 1):
        scores, back = pullback(z)
        calls += len(z)
        aims = problem.aims[rows[at]]
        hit = (
            _hits(problem, scores, aims, z, rows[at]) if plan.stop else np.zeros(len(z), dtype=bool)
        )
        if k == plan.steps or hit.all():
            out[at] = z
            break
        if rivals is None:
            weights = _weights(scores, aims, plan.loss, problem.targeted, kind)
        else:
            weights = _against(scores, aims, rivals[at], kind)
        gradient = back(weights)
        if hit.any():
            out[at[hit]] = z[hit]
            keep = ~hit
            at, z, gradient = at[keep], z[keep], gradient[keep]
            low, high, base, length = low[keep], high[keep], base[keep], length[keep]
            velocity = None if velocity is None else velocity[keep]
        gradient = gradient if scale is None else gradient * scale
        if plan.momentum:
            size = np.abs(gradient).sum(axis=1, keepdims=True)
            velocity = plan.momentum * (
                0.0 if velocity is None else velocity
            ) + gradient / np.maximum(size, _TINY)
            gradient = velocity
        direction = _direction(gradient, norm)
        direction *= length * (share * _SCHEDULES[plan.schedule](k / plan.steps))
        z += direction if scale is None else direction * scale
        if norm == "l2":
            _rescale(z, base, length, scale)
        np.clip(z, low, high, out=z)
    return out, calls


_TINY = 1e-30


def _direction(gradient: AnyArray, norm: Norm) -> AnyArray:
    if norm == "linf":
        return np.sign(gradient)
    size = np.sqrt(np.einsum("ij,ij->i", gradient, gradient))[:, None]
    return gradient / np.maximum(size, _TINY)


def _rescale(z: AnyArray, base: AnyArray, length: AnyArray, scale: AnyArray | None) -> None:
    """Onto the L2 ball, in place."""
    step = z - base
    units = (
        step if scale is None else np.divide(step, scale, where=scale > 0, out=np.zeros_like(step))
    )
    size = np.sqrt(np.einsum("ij,ij->i", units, units))[:, None]
    np.add(base, step * np.minimum(1.0, length / np.maximum(size, _TINY)), out=z)


def _hits(
    problem: EvasionProblem, scores: Any, aims: np.ndarray, z: Any, rows: np.ndarray
) -> np.ndarray:
    if not problem.f.exact:
        return problem.judged(z.astype(np.float64), rows)
    return (scores.argmax(axis=1) == aims) == problem.targeted


def _weights(
    scores: AnyArray, aims: np.ndarray, loss: Loss, targeted: bool, kind: npt.DTypeLike
) -> AnyArray:
    """Weights of the scores' gradients: the other classes' (all by softmax, or the best) against
    that of the aim.

    The gradient of the cross-entropy is 1 − p_y times this, which would vanish where the model is
    sure.
    """
    at = np.arange(len(scores))
    others = scores.astype(kind, copy=True)
    others[at, aims] = -np.inf
    if loss == "margin":
        weights = np.zeros_like(others)
        weights[at, others.argmax(axis=1)] = 1.0
    else:
        others -= others.max(axis=1, keepdims=True)
        weights = np.exp(others, out=others)
        weights /= weights.sum(axis=1, keepdims=True)
    weights[at, aims] = -1.0
    return -weights if targeted else weights


def _against(
    scores: AnyArray, aims: np.ndarray, rivals: np.ndarray, kind: npt.DTypeLike
) -> AnyArray:
    """Weights of the scores' gradients: one other class against the aim."""
    weights, at = np.zeros(scores.shape, dtype=kind), np.arange(len(scores))
    weights[at, rivals] = 1.0
    weights[at, aims] = -1.0
    return weights


def _random_start(
    where: Domain, base: Array, radius: Array, norm: Norm, random: np.random.RandomState
) -> Array:
    """Uniform in the ball (L∞: a box), moved into the range."""
    if norm == "linf":
        step = random.uniform(-1.0, 1.0, base.shape)
    else:
        step = random.standard_normal(base.shape) * (where.scale > 0)
        step /= np.maximum(np.linalg.norm(step, axis=1, keepdims=True), _TINY)
        step *= random.uniform(size=(len(base), 1)) ** (1.0 / max(1, int((where.scale > 0).sum())))
    return where.within(base + step * radius[:, None] * where.scale, base, radius, norm)


def _radius(radius: npt.ArrayLike) -> Any:
    value = np.asarray(radius, dtype=float)
    if value.ndim > 1 or np.isnan(value).any() or (value < 0).any() or np.isinf(value).any():
        raise ValueError("radius must be a finite number of at least 0, or one per row")
    return float(value) if value.ndim == 0 else value
