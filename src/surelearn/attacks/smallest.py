"""The smallest change that turns a row: halving over the radius of projected gradient, then
along the line to it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surelearn import stated
from surelearn.attacks.domains import Array, Domain, Norm
from surelearn.attacks.evasion import AscentPlan, search
from surelearn.attacks.problem import EvasionProblem, substitute
from surelearn.attacks.result import Evasion
from surelearn.lacking import Lacking
from surelearn.types import Model, RandomState, RowsLike

_HALVINGS = 12
_RIVALS = 10  # classes aimed at, at most


def smallest_change(
    model: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    largest: float,
    norm: Norm = "linf",
    target: npt.ArrayLike | None = None,
    where: Domain | None = None,
    steps: int = 20,
    rounds: int = 8,
    substitutions: int = 0,
    random_state: RandomState = None,
) -> Evasion:
    """For every row the smallest change found that turns it: an upper bound on its true distance to
    the decision boundary.

    Parameters
    ----------
    largest : the radius beyond which nothing is looked for; rows that are not turned within it have
        distance ∞
    steps, rounds : of projected gradient, and how often the radius is halved
    substitutions : most columns of choices that may be substituted in a row, greedily, where the
        whole change, the domain's cost included, becomes smaller
    model, X, y, norm, target, where, random_state : as for `projected_gradient`

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    >>> smallest_change(LogisticRegression().fit(X, y), X, y, largest=5.0).distance.round(2).tolist()
    [2.0, 1.0, 1.0, 2.0]
    """
    stated.positive("largest", largest)
    problem = EvasionProblem.of(model, X, y, target, where)
    if isinstance(problem.f.pullback, Lacking):
        raise ValueError(
            f"{problem.f.name} has no gradient ({problem.f.pullback.reason}): use decision_attack"
        )
    before = problem.f.predict(problem.X)
    done = problem.reached(before, slice(None))
    where, calls = problem.where, 0
    best, base, left = problem.X.copy(), problem.X, np.flatnonzero(~done)
    size = np.where(done, 0.0, np.inf)
    plan = AscentPlan(steps=steps, restarts=min(_RIVALS, problem.f.scores(problem.X[:1]).shape[1]))
    for substituted in range(where.check_substitutions(substitutions, largest) + 1):
        within = np.minimum(size, largest)
        if substituted:
            left, base, asked = substitute(problem, left, base, within, norm)
            calls += asked
        room = where.room(where.spent(base, problem.X, norm), within, norm)
        Z, turned, asked = _shrink(problem, left, base, room, norm, plan, rounds, random_state)
        found = np.where(turned, where.distance(Z, problem.X, norm), np.inf)
        best = np.where((found < size)[:, None], Z, best)
        size, calls = np.minimum(found, size), calls + asked
    return problem.result(
        "smallest change by projected gradient", norm, largest, best, before, calls
    )


def _shrink(
    problem: EvasionProblem,
    rows: np.ndarray,
    base: Array,
    largest: Array,
    norm: Norm,
    plan: AscentPlan,
    rounds: int,
    random_state: RandomState,
) -> tuple[Array, np.ndarray, int]:
    """The smallest moves of ``rows`` from ``base``, within ``largest``, that turn them; which
    were turned; calls.
    """
    best, calls, radius = base.copy(), len(rows), largest
    low, high = np.zeros(len(base)), np.full(len(base), -1.0)
    high[rows] = np.where(problem.judged(base[rows], rows), 0.0, np.inf) if len(rows) else 0.0
    for _ in range(rounds):
        left = np.flatnonzero(
            (high > 0) & ((high < np.inf) | (low == 0)) & (radius > low * (1 + 1e-6))
        )
        if not left.size:
            break
        Z, turned, asked = search(problem, left, base[left], radius, norm, plan, random_state)
        calls += asked
        good = left[turned]
        best[good], more = toward(problem, good, Z[turned], norm)
        calls += more
        high[good] = problem.where.moved(best[good], base[good], norm)
        low[left[~turned]] = radius[left[~turned]]
        radius = np.where(high < np.inf, (low + high) / 2, largest)
    return best, (high >= 0) & (high < np.inf), calls


def toward(
    problem: EvasionProblem, rows: np.ndarray, Z: Array, norm: Norm, halvings: int = _HALVINGS
) -> tuple[Array, int]:
    """Rows that are turned, moved back towards where they came from as far as they stay turned; and
    the calls made.

    Choices that were substituted stay; everything that moves goes along the straight line.
    """
    X, moves = problem.X[rows], problem.where.scale > 0
    near, far = np.zeros(len(rows)), np.ones(len(rows))
    best = Z.copy()
    for _ in range(halvings):
        # a halving of the segment from X to Z, row by row
        middle = (near + far) / 2
        tried = Z.copy()
        tried[:, moves] = X[:, moves] + middle[:, None] * (Z - X)[:, moves]
        tried = problem.where.within(
            tried, np.where(moves, X, Z), problem.where.moved(Z, X, norm), norm
        )
        turned = problem.judged(tried, rows) if len(rows) else np.zeros(0, dtype=bool)
        best[turned] = tried[turned]
        far, near = np.where(turned, middle, far), np.where(turned, near, middle)
    return best, halvings * len(rows)


def simplest_change(model: Model, found: Evasion) -> Evasion:
    """The same rows turned with fewer columns changed: each, the least changed first, is put back
    where that turns nothing.

    No change becomes larger. One query a row and column.
    """
    target = found.after if found.targeted else None
    problem = EvasionProblem.of(
        model, found.original, found.labels, target, found.domain, by_scores=False
    )
    unit = np.where(found.domain.scale > 0, found.domain.scale, 1e-300)
    order = np.argsort(np.abs(found.rows - found.original) / unit, axis=1, kind="stable")
    best, rows = found.rows.copy(), np.flatnonzero(found.success)
    for column in order[rows].T if rows.size else ():
        tried = best[rows]
        tried[np.arange(len(rows)), column] = found.original[rows, column]
        turned = problem.judged(tried, rows)
        best[rows[turned]] = tried[turned]
    calls = found.calls + best.shape[1] * len(rows)
    return problem.result(
        f"{found.method}, simplified", found.norm, found.radius, best, found.before, calls
    )
