"""The worst row within the radius in closed form, for models whose scores are linear in the row."""

from __future__ import annotations

import numpy as np

from surelearn.attacks.domains import Array, Domain, Norm
from surelearn.attacks.problem import EvasionProblem
from surelearn.lacking import Lacking
from surelearn.subject.forms import LinearForm

_TINY = 1e-30
_HALVINGS = 60


def worst_of_linear(problem: EvasionProblem, radius: Array, norm: Norm) -> Array | None:
    """For every row the one within its radius and range whose margin is least; None unless the
    scores are linear.

    The margin is the label's score less the best other. Where there are two classes, every loss
    that falls with the margin is largest there.
    """
    weights = _class_weights(problem)
    if weights is None:
        return None
    X, aims, scores = problem.X, problem.aims, problem.f.scores(problem.X)
    worst, most = X.copy(), np.full(len(X), -np.inf)
    for rival in range(len(weights)):
        rows = np.flatnonzero(aims != rival)
        slopes = weights[rival] - weights[aims[rows]]
        found = farthest(problem.where, X[rows], slopes, radius[rows], norm)
        lead = (
            scores[rows, rival]
            - scores[rows, aims[rows]]
            + np.einsum("ij,ij->i", slopes, found - X[rows])
        )
        better = lead > most[rows]
        worst[rows[better]], most[rows[better]] = found[better], lead[better]
    return worst


def farthest(where: Domain, X: Array, slopes: Array, radius: Array, norm: Norm) -> Array:
    """The rows within the ball and the range that lie farthest along ``slopes`` (n, d)."""
    if norm == "linf":
        low, high = where.ball(X, radius)
        return np.where(slopes > 0, high, np.where(slopes < 0, low, X))
    # a step of the ball's length along the slope; where the range cuts it off, others take its rest
    pull, moves = slopes * where.scale, where.scale > 0
    unit = np.where(moves, where.scale, 1.0)
    low, high = (
        np.where(moves, (where.low - X) / unit, 0.0),
        np.where(moves, (where.high - X) / unit, 0.0),
    )
    first = radius / np.maximum(np.linalg.norm(pull, axis=1), _TINY)
    step = pull * first[:, None]
    cut = ((step < low) | (step > high)).any(axis=1)
    step[cut] = _filled(pull[cut], low[cut], high[cut], radius[cut], first[cut])
    return where.within(X + step * where.scale, X, radius, norm)


def _filled(pull: Array, low: Array, high: Array, radius: Array, first: Array) -> Array:
    """The longest clip(t·pull, low, high) within the radius, t ≥ ``first``: columns at their
    end leave room to others.
    """
    less, more = np.zeros(len(pull)), np.full(len(pull), float(_HALVINGS))
    for _ in range(_HALVINGS):
        power = (less + more) / 2
        step = np.clip(pull * (first * 2.0**power)[:, None], low, high)
        fits = np.linalg.norm(step, axis=1) <= radius
        less, more = np.where(fits, power, less), np.where(fits, more, power)
    return np.clip(pull * (first * 2.0**less)[:, None], low, high)


def _class_weights(problem: EvasionProblem) -> Array | None:
    """One vector of weights a class, of the row as it is given; None unless the scores are
    linear.
    """
    closed = problem.f.closed
    if (
        isinstance(closed, Lacking)
        or not isinstance(closed.form, LinearForm)
        or closed.head == "pairs"
    ):
        return None
    weights = (
        closed.form.weights if closed.prepare is None else closed.prepare.back(closed.form.weights)
    )
    return np.vstack([np.zeros_like(weights), weights]) if closed.head == "two" else weights
