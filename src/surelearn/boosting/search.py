"""AdaBoost's rounds, compiled: imported when a learner is fitted, never before.

After a round the weights of the rows that its stump gets wrong grow by (1 − ε)/ε (times K − 1 for K
classes) and the others stay: only those rows are touched, and the sum W of all weights grows.
*Binned*: the sums of weights in every bin are kept from round to round and only changed by the rows
touched, a byte a row and column. *Sorted*: rows stand presorted by every column, and each round
sums along all of them.

For two classes, weights are signed by the label: a cut with the signed sum s below it errs on (W −
|2s − S|)/2, S being the signed sum of all. For more, sums are kept class by class, and a cut errs
on all but the heaviest class of either side. Errors that differ by less than 1e-10·W are ties; the
first column's lowest cut wins them, and predicting one class everywhere wins only where every cut
is worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from surelearn.boosting.columns import Columns

Array = npt.NDArray[Any]

TIE = 1e-10
LEAST_ERROR = 1e-14  # the smallest weighted error that such sums can tell from none
LARGEST_WEIGHT = 1e100  # weights grow up to 1e14-fold a round; past this sum they are divided by it
MARGINS = 50  # margins θ = 1/50, 2/50, …, 1 at which rows are counted
ROUNDS, PERFECT, NO_EDGE = 0, 1, 2


@dataclass(frozen=True)
class Rounds:
    """What the rounds gave, one entry a round.

    Attributes
    ----------
    features, cuts : which column, and which cut of it; −1 for no cut
    below, above : the class of rows at or below the cut, and above it
    errors, alphas : weighted error ε and weight α of the stump
    wrong : rows that the vote so far gets wrong
    margins : (rounds, 50), two classes: rows whose normalized margin is at most θ
    stopped : ROUNDS, PERFECT or NO_EDGE
    """

    features: Array
    cuts: Array
    below: Array
    above: Array
    errors: Array
    alphas: Array
    wrong: Array
    margins: Array
    stopped: int


def run(columns: Columns, labels: Array, classes: int, weights: Array, rounds: int) -> Rounds:
    """At most ``rounds`` rounds on rows of positive weight, ``labels`` being 0 … classes − 1."""
    numbers = columns.numbers
    last = numbers.max(axis=1).astype(np.int64)
    first = numbers.min(axis=1).astype(np.int64)
    if columns.binned:
        rows, bins = np.ascontiguousarray(numbers.T), int(last.max()) + 1
        order, ends = np.empty((1, 1), dtype=np.int32), np.empty((1, 1), dtype=np.bool_)
    else:
        rows, bins = np.empty((0, 1), dtype=np.uint8), 1
        order = np.argsort(numbers, axis=1, kind="stable").astype(np.int32)
        ends = np.diff(np.take_along_axis(numbers, order, axis=1), axis=1, append=-1) != 0
    labels = labels.astype(np.int64)
    weights = weights / weights.sum()
    signed = np.where(labels == 1, weights, -weights) if classes == 2 else weights
    return Rounds(
        *_boost(numbers, rows, order, ends, first, last, bins, labels, classes, signed, rounds)
    )


def replay(
    X: Array,
    labels: Array,
    classes: int,
    weights: Array,
    features: Array,
    thresholds: Array,
    below: Array,
    above: Array,
    alphas: Array,
) -> tuple[Array, Array, Array]:
    """The ``errors``, ``wrong`` and ``margins`` of `Rounds`, told by the stumps and rows X (n,
    d) of positive weight.
    """
    stumps = (features, thresholds, below, above, alphas)
    return _replay(
        np.asfortranarray(X), labels.astype(np.int64), classes, weights / weights.sum(), *stumps
    )


@numba.njit(cache=True)
def _replay(X, labels, classes, weights, features, thresholds, below, above, alphas):
    n, rounds = labels.shape[0], features.shape[0]
    scores, touched = np.zeros((1 if classes == 2 else classes, n)), np.arange(n)
    wrong, margins = np.zeros(rounds, dtype=np.int64), np.zeros((rounds, MARGINS), dtype=np.int64)
    errors, votes = np.empty(rounds), 0.0
    for t in range(rounds):
        votes += alphas[t]
        stump = (X[:, features[t]], thresholds[t], below[t], above[t])
        if classes == 2:
            wrong[t], count = _vote_of_two(
                scores[0], stump, alphas[t], labels, touched, MARGINS / votes, margins[t]
            )
        else:
            wrong[t], count = _vote(scores, stump, alphas[t], labels, touched)
        errors[t] = weights[touched[:count]].sum()
        weights[touched[:count]] *= np.exp(2.0 * alphas[t] if classes == 2 else alphas[t])
        weights /= weights.sum()
    return errors, wrong, margins


@numba.njit(cache=True)
def find_bins(X, edges):
    """(n, d) uint8: how many of a column's edges (d, 255), padded by infinity, lie below each
    value.
    """
    bins = np.empty(X.shape, dtype=np.uint8)
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            low, step = 0, 128
            while step > 0:
                low += step if edges[j, low + step - 1] < X[i, j] else 0
                step >>= 1
            bins[i, j] = low
    return bins


@numba.njit(cache=True)
def _boost(numbers, rows, order, ends, first, last, bins, labels, classes, signed, rounds):
    # weights of the rows start equal; one stump a round goes into the five arrays of a vote
    n, binned = labels.shape[0], rows.shape[0] > 0
    kinds = 1 if classes == 2 else classes
    kind = labels if classes > 2 else np.zeros_like(labels)
    sums, totals, left = np.zeros((kinds, numbers.shape[0], bins)), np.zeros(kinds), np.empty(kinds)
    scores, touched, changes = np.zeros((kinds, n)), np.arange(n), signed.copy()
    features, cuts, below, above, wrong = np.zeros((5, rounds), dtype=np.int64)
    errors, alphas = np.empty((2, rounds))
    margins = np.zeros((rounds, MARGINS), dtype=np.int64)
    weight, votes, count, stopped, made = 0.0, 0.0, n, ROUNDS, 0
    for t in range(rounds):
        weight += _add(sums, totals, rows, touched[:count], changes, kind)
        if weight > LARGEST_WEIGHT:
            signed /= weight
            sums[:], totals[:] = 0.0, 0.0
            weight = _add(sums, totals, rows, np.arange(n), signed, kind)
        if binned:
            error, j, c = _best_bin(sums, first, last, totals, left, weight)
        elif classes == 2:
            error, j, c = _best_sorted_of_two(order, ends, signed, totals, left, weight)
        else:
            error, j, c = _best_sorted(order, ends, signed, kind, totals, left, weight)
        constant = _error(totals, totals, weight)
        if constant < error - TIE * weight:
            error, j, c, left[:] = constant, 0, -1, totals
        epsilon = max(error / weight, LEAST_ERROR)
        has_edge = epsilon < 1.0 - 1.0 / classes - TIE
        if t > 0 and not has_edge:
            stopped = NO_EDGE
            break
        factor = (classes - 1) * (1.0 - epsilon) / epsilon
        alpha = 0.5 * np.log(factor) if classes == 2 else np.log(factor)
        below[t], above[t] = _sides(left, totals, c)
        if below[t] == above[t]:
            j, c = 0, -1
        if t == 0 and not has_edge:
            alpha, stopped = 1.0, NO_EDGE
        stump = (numbers[j], c if c >= 0 else last[j], below[t], above[t])
        # not so if rows weigh next to nothing
        if t == 0 and epsilon <= LEAST_ERROR and _errors(stump, labels) == 0:
            alpha, stopped = 1.0, PERFECT
        features[t], cuts[t], errors[t], alphas[t] = (
            j,
            c,
            epsilon if stopped != PERFECT else 0.0,
            alpha,
        )
        made, votes = t + 1, votes + alpha
        if classes == 2:
            wrong[t], count = _vote_of_two(
                scores[0], stump, alpha, labels, touched, MARGINS / votes, margins[t]
            )
        else:
            wrong[t], count = _vote(scores, stump, alpha, labels, touched)
        if stopped != ROUNDS:
            break
        for k in range(count):
            changes[k] = (factor - 1.0) * signed[touched[k]]
            signed[touched[k]] += changes[k]
    return (
        features[:made], cuts[:made], below[:made], above[:made], errors[:made], alphas[:made], wrong[:made],
        margins[:made], stopped,
    )  # fmt: skip


@numba.njit(cache=True)
def _errors(stump, labels):
    """How many rows the stump is wrong about."""
    column, level, below, above = stump
    count = 0
    for i in range(labels.shape[0]):
        count += (below if column[i] <= level else above) != labels[i]
    return count


@numba.njit(cache=True)
def _add(sums, totals, rows, touched, changes, kind):
    """Add the changes of the rows touched to the totals and to the bins they are in; the sum of
    the weights' changes.
    """
    grown = 0.0
    for k in range(touched.shape[0]):
        totals[kind[touched[k]]] += changes[k]
        grown += abs(changes[k])
    if rows.shape[0] > 0:
        for k in range(touched.shape[0]):
            i, change = touched[k], changes[k]
            for j in range(rows.shape[1]):
                sums[kind[i], j, rows[i, j]] += change
    return grown


@numba.njit(cache=True)
def _error(left, totals, weight):
    """Weight on which the best two classes of a cut's sides err."""
    if totals.shape[0] == 1:
        return 0.5 * (weight - abs(2.0 * left[0] - totals[0]))
    most_below, most_above = left[0], totals[0] - left[0]
    for k in range(1, totals.shape[0]):
        most_below = max(most_below, left[k])
        most_above = max(most_above, totals[k] - left[k])
    return weight - most_below - most_above


@numba.njit(cache=True)
def _best_bin(sums, first, last, totals, best_left, weight):
    """Error, column and cut of the best stump, from the sums of bins; leaves the sums below it
    in ``best_left``.
    """
    best, feature, cut, left = np.inf, 0, -1, np.empty_like(totals)
    for j in range(sums.shape[1]):
        left[:] = 0.0
        for c in range(first[j], last[j]):
            for k in range(sums.shape[0]):
                left[k] += sums[k, j, c]
            error = _error(left, totals, weight)
            if error < best - TIE * weight:
                best, feature, cut, best_left[:] = error, j, c, left
    return best, feature, cut


@numba.njit(cache=True)
def _best_sorted(order, ends, signed, kind, totals, best_left, weight):
    """Error, column and cut of the best stump, along the presorted rows."""
    best, feature, cut, left = np.inf, 0, -1, np.empty_like(totals)
    for j in range(order.shape[0]):
        left[:] = 0.0
        c = 0
        for place in range(order.shape[1] - 1):
            i = order[j, place]
            left[kind[i]] += signed[i]
            if ends[j, place]:
                error = _error(left, totals, weight)
                if error < best - TIE * weight:
                    best, feature, cut, best_left[:] = error, j, c, left
                c += 1
    return best, feature, cut


@numba.njit(cache=True)
def _best_sorted_of_two(order, ends, signed, totals, best_left, weight):
    """The best stump for two classes, along the presorted rows: the largest |2s − S|, without
    arrays.
    """
    best, feature, cut, total = -np.inf, 0, -1, totals[0]
    for j in range(order.shape[0]):
        s, c = 0.0, 0
        for place in range(order.shape[1] - 1):
            s += signed[order[j, place]]
            if ends[j, place]:
                if abs(2.0 * s - total) > best + 2 * TIE * weight:
                    best, feature, cut, best_left[0] = abs(2.0 * s - total), j, c, s
                c += 1
    return 0.5 * (weight - best), feature, cut


@numba.njit(cache=True)
def _sides(left, totals, cut):
    """The classes of the two sides of the cut."""
    if totals.shape[0] == 1:
        below = int(2.0 * left[0] - totals[0] > 0.0)
        return below, 1 - below if cut >= 0 else below
    return _heaviest(left), _heaviest(totals - left) if cut >= 0 else _heaviest(left)


@numba.njit(cache=True)
def _heaviest(sums):
    """The first of the classes that weigh most, up to ties."""
    heaviest = 0
    for k in range(1, sums.shape[0]):
        if sums[k] > sums[heaviest] + TIE * sums.sum():
            heaviest = k
    return heaviest


@numba.njit(cache=True)
def _vote_of_two(scores, stump, alpha, labels, touched, scale, counts):
    """Add a stump's vote to the scores; count the rows that the vote now gets wrong, and list those
    that the stump does.

    ``counts`` gets the rows whose margin is at most θ, for every θ; a margin within 1e-9 of θ
    counts as at most θ.
    """
    column, level, below, above = stump
    wrong, count = 0, 0
    says_below, says_above = (alpha if below == 1 else -alpha), (alpha if above == 1 else -alpha)
    for i in range(labels.shape[0]):
        says = says_below if column[i] <= level else says_above
        scores[i] += says
        wrong += (scores[i] > 0.0) != (labels[i] == 1)
        touched[count] = i
        count += (says > 0.0) != (labels[i] == 1)
        margin = scale * (scores[i] if labels[i] == 1 else -scores[i])
        counts[max(MARGINS - 1 - int(MARGINS - margin + 5e-8), 0)] += 1
    for k in range(1, MARGINS):
        counts[k] += counts[k - 1]
    return wrong, count


@numba.njit(cache=True)
def _vote(scores, stump, alpha, labels, touched):
    """Add a stump's votes to the scores (K, n) of more than two classes, and count errors,
    without margins.
    """
    column, level, below, above = stump
    wrong, count = 0, 0
    for i in range(labels.shape[0]):
        says = below if column[i] <= level else above
        scores[says, i] += alpha
        wrong += np.argmax(scores[:, i]) != labels[i]
        touched[count] = i
        count += says != labels[i]
    return wrong, count
