"""The work behind the section on robustness, as independent tasks: attack, prove, substitute, move; plain results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from surelearn.adapters.forms import Array, KernelForm
from surelearn.adapters.modules import is_module
from surelearn.adapters.predicting import missing
from surelearn.attacks import Evasion, decision_attack, smallest_change
from surelearn.auditing.context import Unusable
from surelearn.auditing.robustness_view import (
    RETURNED_NAN,
    Moves,
    View,
    numbers_of,
    predicting,
    view_of,
    with_numbers,
)
from surelearn.robust import NotCertified, SmoothedClassifier, certified_radii
from surelearn.selection.cross_validation import take

LARGEST = 2.0  # standard deviations beyond which no change is looked for
SHOWN = 3  # rows whose change is written out
NOISE = 0.25  # of smoothing, in standard deviations
SMOOTHED = 0.001  # the failure probability of a smoothed row's radius
STEPS, ROUNDS = 20, 8
_STRETCH = 3.0  # how much larger a change may be if it needs fewer columns
_RADII, _DRAWS = (2.0, 1.0, 0.5, 0.25, 0.1), 16  # of random changes
_MOST_GRAM = 2e10  # multiplications for the norm of a kernel machine at effort 1


def joined(X: Any, more: Any) -> Any:
    """Rows of two tables or arrays, one after the other."""
    if not hasattr(X, "iloc"):
        return np.concatenate([np.asarray(X), np.asarray(more)])
    import pandas as pd

    return pd.concat([X, more], ignore_index=True)


def attack(model: Any, X: Any, y: Any, pool: Any, moves: Moves, labels: Any, budget: int, seed: int) -> dict[str, Any]:
    """The smallest change found for every row: by gradients, or else by predictions, moving towards rows of ``pool``."""
    said = checked(predicting(model, labels)(X), len(X))
    if missing(said).any():
        raise Unusable("the model predicts NaN")
    right = said == y
    distance, method, why_not, changes = np.where(right, np.inf, 0.0), "", "", []
    for present, rows in _patterns(numbers_of(X, moves.positions)):
        kept = moves.only(present)
        if not kept.names:
            continue
        rows = rows[right[rows]] if right[rows].any() else rows[:1]  # the others are wrong as they are
        useful = np.isfinite(numbers_of(pool, kept.positions)).all(axis=1)
        view = view_of(model, joined(take(X, rows), take(pool, np.flatnonzero(useful))), kept, labels)
        view, others = replace(view, rows=view.rows[: len(rows)]), view.rows[len(rows) :]
        found = _smallest(view, said[rows], others, budget, seed)
        turned = view.truth(found.rows) != said[rows]
        distance[rows] = np.where(right[rows], np.where(turned, found.distance, np.inf), 0.0)
        method, why_not = found.method, view.f.why_not
        turned = np.flatnonzero(np.isfinite(distance[rows]) & (distance[rows] > 0))
        nearest = turned[np.argsort(distance[rows][turned], kind="stable")[: 3 * SHOWN]]
        for i, change in zip(nearest, _few_columns(view, found, said[rows], nearest, kept, seed), strict=True):
            changes.append({"row": int(rows[i]), "distance": float(distance[rows[i]]), "before": said[rows[i]], **change})
    return {"kind": "attack", "distance": distance, "method": method, "why_not": why_not, "changes": changes, "said": said}


def checked(said: Any, n: int) -> np.ndarray:
    """One prediction a row, or a sentence."""
    said = np.asarray(said)
    if said.shape != (n,):
        raise Unusable(f"the model gave predictions of shape {said.shape} for {n} rows")
    return said


def _patterns(numbers: Array) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Which numbers are present, and the rows in which they are."""
    kinds, which = np.unique(np.isfinite(numbers), axis=0, return_inverse=True)
    for i, present in enumerate(kinds):
        yield present, np.flatnonzero(which.ravel() == i)


def _smallest(view: View, y: Any, others: Array, budget: int, seed: int, norm: Any = "linf") -> Evasion:
    if view.f.pullback is None:
        options = {"others": others, "budget": budget, "radius": LARGEST, "random_state": seed}
        found = decision_attack(view.f, view.rows, y, norm=norm, where=view.where, **options)
        return _at_random(view, y, found, seed)
    largest = LARGEST if norm == "linf" else LARGEST * float(np.sqrt((view.where.scale > 0).sum()))
    options = {"largest": largest, "steps": STEPS, "rounds": ROUNDS, "random_state": seed}
    return smallest_change(view.f, view.rows, y, norm=norm, where=view.where, **options)


def _at_random(view: View, y: Any, found: Evasion, seed: int) -> Evasion:
    """Rows not turned by moving towards others, which columns that stay may forbid: the nearest random change, shortened."""
    left = np.flatnonzero(~np.isfinite(found.distance))
    if not left.size:
        return found
    random, where, some = np.random.default_rng(seed), view.where, np.repeat(left, _DRAWS)
    X, best, near = view.rows, found.rows.copy(), found.distance.copy()
    for radius in _RADII:
        step = np.clip(random.uniform(-2.0, 2.0, (len(some), X.shape[1])), -1.0, 1.0)  # every second one as far as it may
        tried = np.clip(X[some] + step * radius * where.scale, where.low, where.high)
        turned = (view.f.predict(tried) != y[some]).reshape(-1, _DRAWS)
        reached = np.where(turned, where.distance(tried, X[some], found.norm).reshape(-1, _DRAWS), np.inf)
        nearest = tried.reshape(len(left), _DRAWS, -1)[np.arange(len(left)), reached.argmin(axis=1)]
        better = reached.min(axis=1) < near[left]
        best[left[better]], near[left[better]] = nearest[better], reached.min(axis=1)[better]
    left = left[np.isfinite(near[left])]
    best[left] = _shortened(view, y[left], X[left], best[left])
    near[left] = where.distance(best[left], X[left], found.norm)
    return replace(found, rows=best, distance=near, success=np.isfinite(near))


def _shortened(view: View, labels: Any, X: Array, Z: Array) -> Array:
    """Turned rows, moved back along the line to where they came from."""
    low, high = np.zeros(len(Z)), np.ones(len(Z))
    for _ in range(8 if len(Z) else 0):
        middle = (low + high) / 2
        turned = view.f.predict(X + middle[:, None] * (Z - X)) != labels
        low, high = np.where(turned, low, middle), np.where(turned, middle, high)
    return X + high[:, None] * (Z - X)


def _few_columns(view: View, found: Evasion, y: Any, which: np.ndarray, moves: Moves, seed: int) -> list[dict[str, Any]]:
    """Changes of rows that a person can read: few columns, no larger than needed, whole numbers where they are."""
    if not which.size:
        return []
    some, labels, count = replace(view, rows=view.rows[which]), y[which], len(moves.names)
    X, Z = some.rows, found.rows[which].copy()
    if view.f.pullback is not None:  # L2 moves the columns that matter, L∞ all of them
        short = _smallest(some, labels, X, 0, seed, "l2")
        Z = np.where(short.success[:, None], short.rows, Z)
        Z = _kept(some, labels, np.clip(X + _STRETCH * (Z - X), view.where.low, view.where.high), Z)
    order = np.argsort(np.abs(Z - X)[:, :count] / moves.scale, axis=1, kind="stable")
    for columns in order.T:
        tried = Z.copy()
        at = (np.arange(len(Z)), columns)
        tried[at] = X[at]
        if (tried != Z).any():
            Z = _kept(some, labels, tried, Z)
    Z = _kept(some, labels, _shortened(some, labels, X, Z), Z)
    outward = np.where(Z > X, np.ceil(Z), np.floor(Z))[:, :count]
    rounded = Z.copy()
    rounded[:, :count] = np.where(moves.whole & (Z != X)[:, :count], outward, Z[:, :count])
    Z = _kept(some, labels, np.clip(rounded, view.where.low, view.where.high), Z)
    after = some.truth(Z)
    return [{"after": after[i], "columns": _written(X[i], Z[i], moves)} for i in range(len(Z))]


def _kept(view: View, labels: Any, tried: Array, otherwise: Array) -> Array:
    """Rows as tried where they are still turned."""
    return np.where((view.f.predict(tried) != labels)[:, None], tried, otherwise)


def _written(x: Array, z: Array, moves: Moves) -> list[tuple[str, float, float]]:
    moved = [j for j in range(len(moves.names)) if x[j] != z[j]]
    moved.sort(key=lambda j: -abs(z[j] - x[j]) / moves.scale[j])
    return [(moves.names[j], float(x[j]), float(z[j])) for j in moved]


def prove(model: Any, X: Any, moves: Moves, labels: Any, effort: float, seed: int) -> dict[str, Any]:
    """Certified L∞ radii of the model and, for a torch module, L2 radii of the smoothed one; or why there are none."""
    view = view_of(model, X, moves, labels)
    f, result = replace(view.f, predict=view.truth), {"kind": "proved", "why_not": "", "radii": None, "smoothed": None}
    form = None if f.closed is None else f.closed.form
    if isinstance(form, KernelForm) and len(form.centers) ** 2 * form.centers.shape[1] > _MOST_GRAM * effort:
        result["why_not"] = f"the norm of a kernel machine with {len(form.centers):,} centers takes more work than allowed"
        return result
    try:
        radii = certified_radii(f, view.rows, norm="linf", where=view.where)
        result["radii"] = {**vars(radii), "inputs": dict(radii.inputs)}
    except NotCertified as reason:
        result["why_not"] = f.why_not or str(reason)
    if is_module(model):
        noisy = SmoothedClassifier(f, sigma=NOISE, scale=view.where.scale, alpha=SMOOTHED, select=50, random_state=seed)
        result["smoothed"] = asdict(noisy.certify(view.rows))
    return result


def substitute(model: Any, X: Any, y: Any, choices: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Rows turned by another category in one column, the others as they are."""
    import pandas as pd

    predict, n = predicting(model), len(X)
    right = checked(predict(X), n) == y
    turned = {}
    for name, values in choices.items():
        frame = X.iloc[np.tile(np.arange(n), len(values))].reset_index(drop=True)
        frame[name] = pd.Series(np.repeat(np.array(values, dtype=object), n)).astype(X[name].dtype)
        said = checked(predict(frame), len(frame)).reshape(len(values), n)
        if missing(said).any():
            raise Unusable(RETURNED_NAN)
        turned[name] = right & (said != y).any(axis=0)
    return {"kind": "substituted", "right": right, "turned": turned}


def move(model: Any, X: Any, moves: Moves, radii: Sequence[float], labels: Any = None) -> dict[str, Any]:
    """How far a regressor's predictions move at most, as found column by column, within every radius; (radii, n)."""
    predict, numbers = predicting(model, labels), numbers_of(X, moves.positions)
    before = checked(predict(X), len(X)).astype(float)
    if not np.isfinite(before).all():
        raise Unusable("the model predicts numbers that are not finite")
    largest = np.zeros((len(radii), len(X)))
    for i, radius in enumerate(radii):
        for sign in (1.0, -1.0) if radius else ():
            reached = _climb(predict, X, moves, numbers, radius, sign)
            largest[i] = np.maximum(largest[i], np.abs(reached - before))
    if not np.isfinite(largest).all():
        raise Unusable("the model's predictions for changed rows are not finite")
    return {"kind": "moved", "before": before, "largest": np.maximum.accumulate(largest, axis=0)}


def _climb(predict: Any, X: Any, moves: Moves, numbers: Array, radius: float, sign: float) -> Array:
    """The largest sign·prediction found: every column alone to both ends, then all that helped together; twice."""
    low = np.maximum(numbers - radius * moves.scale, moves.low)
    high = np.minimum(numbers + radius * moves.scale, moves.high)
    n, count = numbers.shape
    z, best = numbers, sign * predict(X)
    for _ in range(2):
        tried = np.repeat(z[None], 2 * count, axis=0)
        for j in range(count):
            tried[2 * j, :, j], tried[2 * j + 1, :, j] = low[:, j], high[:, j]
        values = sign * _asked(predict, X, moves, tried.reshape(-1, count)).reshape(2 * count, n)
        pairs = values.reshape(count, 2, n)
        ends = np.where(pairs[:, 1].T > pairs[:, 0].T, high, low)
        together = np.where(best[:, None] < pairs.max(axis=1).T, ends, z)
        alone = tried[values.argmax(axis=0), np.arange(n)]
        for option in (alone, together):
            value = sign * _asked(predict, X, moves, option)
            z = np.where((value > best)[:, None], option, z)
            best = np.maximum(value, best)
    return sign * best


def _asked(predict: Any, X: Any, moves: Moves, numbers: Array) -> Array:
    """Predictions with the numbers put in, the rows repeated as often as there are numbers for."""
    at = np.tile(np.arange(len(X)), len(numbers) // len(X))
    return np.asarray(predict(with_numbers(X, at, moves, numbers)), dtype=float)
