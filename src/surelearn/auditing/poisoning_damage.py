"""What poison does to the model, measured by refits: labels changed at random, and rows placed by a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn.auditing.poisoning_parts import StandIn, answers, in_numbers, prepared, risk_of, stand_in
from surelearn.selection.cross_validation import fit_quietly

_INNER, _OUTER = 300, 200  # rows that the poison is aimed with, and those that it is aimed at
_STEPS, _STEP = 20, 5.0  # in standard deviations at first: the range seen is what holds rows back


def flipped(
    model: Any, X: Any, y: Any, new: Any, truth: Any, task: str, count: int, seed: int
) -> dict[str, Any]:  # fmt: skip
    """The risk on new rows of a copy fitted with ``count`` labels changed; 0: none."""
    labels = changed(y, count, seed, task) if count else y
    return {"risk": risk_of(fit_quietly(model, X, labels).predict(new), truth, task)}


def changed(y: Any, count: int, seed: int, task: str) -> Any:
    """``count`` random labels replaced by another class, or by the farther end of the targets' range."""
    from surelearn.attacks.poison_labels import flip_labels

    if task == "classification":
        return flip_labels(y, count, random_state=seed).y
    rows = np.random.default_rng(seed).permutation(len(y))[:count]
    moved, ends = np.array(y, dtype=float), np.array([np.min(y), np.max(y)])
    moved[rows] = ends[np.abs(ends - moved[rows, None]).argmax(axis=1)]
    return moved


def aimed(
    model: Any, X: Any, y: Any, new: Any, truth: Any, task: str, count: int, seed: int,
    threshold: float | None, positive: Any, response: str = "predict_proba",
) -> dict[str, Any]:  # fmt: skip
    """The risk on new rows of the learner fitted to the rows and ``count`` more, placed where a stand-in says they hurt."""
    learner, Z, points = prepared(model, X, new)
    stand = stand_in(learner, Z, y, task)
    found, (points,) = _placed(stand, count / len(y), seed), in_numbers(points)
    rows, labels = (np.resize(part, (count, *part.shape[1:])) for part in (found.X, stand.labels(found.y)))
    fitted = fit_quietly(learner, np.vstack([stand.rows, rows]), np.concatenate([y, labels]))
    risk = risk_of(answers(fitted, points, threshold, positive, response), truth, task)
    return {"risk": risk, "stand_in": stand.words, "used": min(len(y), _INNER + _OUTER)}


def _placed(stand: StandIn, fraction: float, seed: int) -> Any:
    """Poison for some of the rows that raises the stand-in's loss on some others."""
    order = np.random.default_rng(seed).permutation(len(stand.rows))[: _INNER + _OUTER]
    cut = min(_INNER, int(0.6 * len(order)))
    parts = order[:cut], order[cut:]
    count = max(1, round(fraction * len(parts[0])))
    return place(stand.objective, stand.rows, stand.targets, parts, count, seed, steps=_STEPS, step=_STEP)


def place(objective: Any, Z: Any, t: Any, parts: tuple[Any, Any], count: int, seed: int, *, steps: int, step: float) -> Any:
    """Poison among the first part of the rows that raises the loss on the second, within the range seen of each column."""
    from surelearn.attacks.poison_allowed import Allowed
    from surelearn.attacks.poison_bilevel import bilevel

    inner, outer = parts
    seen = Allowed(low=Z.min(axis=0), high=Z.max(axis=0))
    work = {"count": count, "allowed": seen, "steps": steps, "step": step, "random_state": seed}
    return bilevel(objective, Z[inner], t[inner], Z[outer], t[outer], **work)
