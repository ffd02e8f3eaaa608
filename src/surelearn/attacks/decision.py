"""Attacks that see only what a model predicts, within a budget of queries: for trees, and anything
else without a gradient.

A row is turned by moving it towards a row of another class; then, again and again: columns are put
back, the normal of the decision boundary is estimated from predictions around the row (J. Chen, M.
Jordan and M. Wainwright, HopSkipJump, IEEE S&P 2020), a step is made along it, and the row goes
back along the line to where it came from. Where the domain has choices, columns of them are
substituted too, if the whole change, their cost included, becomes smaller by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from surelearn.attacks.domains import Array, Domain, Norm
from surelearn.attacks.problem import EvasionProblem
from surelearn.attacks.result import Evasion
from surelearn.attacks.smallest import toward
from surelearn.types import Model, RandomState, RowsLike

_NEAREST = 5  # rows of another class from which to begin
_HALVINGS = 8
_STEPS = 4  # lengths tried of a step
_ALONE = 4  # the share of the budget, one part in so many, for substitutions alone
_SHORTER = 0.9  # the whole change with another substitution, as a share of the best


def decision_attack(
    model: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    others: RowsLike,
    budget: int = 500,
    radius: float = np.inf,
    norm: Norm = "l2",
    target: npt.ArrayLike | None = None,
    where: Domain | None = None,
    substitutions: int = 0,
    random_state: RandomState = None,
) -> Evasion:
    """Turn rows by their predictions alone, with changes as small as ``budget`` queries per row can
    find.

    Parameters
    ----------
    others : rows to begin from, (m, d), such as the training rows: those predicted otherwise are
        moved towards
    budget : the most queries about one row, the one before and the one after apart
    radius : a row counts as turned where the change found is at most this
    substitutions : most columns of choices that may be substituted in a row, each at the domain's
        cost; 0 keeps them all
    model, X, y, norm, target, where, random_state : as for `projected_gradient`; no gradient is
        needed

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 5.0]])
    >>> found = decision_attack(lambda X: (X[:, 0] > 0.4).astype(int), X, [0, 1], others=X, budget=200, random_state=0)
    >>> found.distance.round(1).tolist(), found.changes(0)[0][0]
    ([0.4, 0.6], 'x0')
    """
    if isinstance(budget, bool) or budget != int(budget) or budget < 1:
        raise ValueError(f"budget must be a whole number of at least 1, not {budget!r}")
    if not radius >= 0:
        raise ValueError(f"radius must not be negative, not {radius!r}")
    problem = EvasionProblem.of(model, X, y, target, where, by_scores=False)
    pool = np.array(others, dtype=np.float64, ndmin=2)
    if pool.shape[1] != problem.X.shape[1]:
        raise ValueError(f"others must have {problem.X.shape[1]} columns, not {pool.shape[1]}")
    problem.where.check(pool)
    random = (
        random_state
        if isinstance(random_state, np.random.RandomState)
        else np.random.RandomState(cast("int | None", random_state))
    )
    before = problem.f.predict(problem.X)
    most = problem.where.check_substitutions(substitutions, radius)
    chase = _Chase(problem, norm, int(budget), before, most, random)
    chase.begin(pool)
    while chase.open().size:
        chase.put_back()
        chase.exchange()
        chase.step()
    found = np.where((chase.distance <= radius)[:, None], chase.best, problem.X)
    return problem.result(
        f"decision-based, {budget} queries per row", norm, radius, found, before, chase.calls
    )


@dataclass(eq=False)
class _Chase:
    """All rows at once: the best change of each so far, and the queries left to it."""

    problem: EvasionProblem
    norm: Norm
    budget: int
    before: np.ndarray
    most: int
    random: np.random.RandomState

    def __post_init__(self) -> None:
        # nothing is found yet but rows that are answered so already; every row has its own budget
        X = self.problem.X
        self.done = self.problem.reached(self.before, slice(None))
        self.best = X.copy()
        self.distance = np.where(self.done, 0.0, np.inf)
        self.left = np.full(len(X), self.budget)
        self.calls = 0
        self.moves = np.flatnonzero(self.problem.where.scale > 0)
        self.choices = self.problem.where.choices if self.most else {}
        self.free = np.union1d(self.moves, np.array(list(self.choices), dtype=np.intp))
        self.length = np.ones(len(X))

    def open(self) -> np.ndarray:
        """Rows that were turned, are not at distance 0, and have queries left for a round."""
        least = _HALVINGS + _STEPS + 8
        return np.flatnonzero(
            np.isfinite(self.distance) & (self.distance > 0) & (self.left >= least)
        )

    def ask(self, Z: Array, rows: np.ndarray) -> np.ndarray:
        """Whether ``Z`` turns the ``rows``; queries are counted."""
        self.calls += len(Z)
        np.subtract.at(self.left, rows, 1)
        return self.problem.judged(Z, rows) if len(Z) else np.zeros(0, dtype=bool)

    def accept(self, Z: Array, rows: np.ndarray) -> None:
        """Keep rows that are turned and nearer than the best so far; a row may be there several
        times.
        """
        distance = self.problem.where.distance(Z, self.problem.X[rows], self.norm)
        nearer = np.flatnonzero(distance < self.distance[rows])
        nearer = nearer[np.argsort(-distance[nearer], kind="stable")]  # of several the last is kept
        self.best[rows[nearer]], self.distance[rows[nearer]] = Z[nearer], distance[nearer]

    def line(self, Z: Array, rows: np.ndarray) -> None:
        """Back along the line from turned rows ``Z``, and keep what is nearer."""
        for halvings in np.unique(np.minimum(self.left[rows], _HALVINGS)):
            some = np.minimum(self.left[rows], _HALVINGS) == halvings
            nearer, asked = toward(self.problem, rows[some], Z[some], self.norm, int(halvings))
            self.calls += asked
            self.left[rows[some]] -= int(halvings)
            self.accept(nearer, rows[some])

    def begin(self, pool: Array) -> None:
        """From the nearest rows of the pool that are turned themselves, as far as the columns
        may change.
        """
        problem, rows = self.problem, np.flatnonzero(~self.done)
        self.pool, self.said = pool, problem.f.predict(pool)
        self.calls += len(pool)
        self.substitute_alone(rows)
        unit = np.where(problem.where.scale > 0, problem.where.scale, np.inf)
        for i in rows:
            useful = pool[problem.reached(self.said, np.full(len(pool), i))]
            apart = (np.abs(useful - problem.X[i]) / unit).sum(axis=1)
            nearest = useful[np.argsort(apart, kind="stable")[:_NEAREST]]
            start = np.repeat(problem.X[i : i + 1], len(nearest), axis=0)
            start[:, self.moves] = nearest[:, self.moves]
            if self.choices:
                start = np.concatenate([start, self.substituted(i, useful, apart)])
            at = np.full(len(start), i)
            turned = self.ask(start[: self.left[i]], at[: self.left[i]])
            self.accept(start[: len(turned)][turned], at[: len(turned)][turned])
        found = rows[np.isfinite(self.distance[rows])]
        self.line(self.best[found], found)

    def substituted(self, i: int | np.intp, useful: Array, apart: Array) -> Array:
        """Row i as the nearest of the useful rows are, in all columns that move and as many
        choices as may be.
        """
        x, columns = self.problem.X[i], list(self.choices)
        other = useful[:, columns] != x[columns]
        known = np.array([np.isin(useful[:, j], self.choices[j]) for j in columns]).T.reshape(
            other.shape
        )
        apart = apart + other @ self.problem.where.cost[columns]
        # such a row is turned for certain
        whole = (other.sum(axis=1) <= self.most) & known.all(axis=1)
        nearest = np.lexsort((apart, ~whole))[:_NEAREST]
        start = np.repeat(x[None], len(nearest), axis=0)
        start[:, self.moves] = useful[nearest][:, self.moves]
        for made, row, differ in zip(start, useful[nearest], (other & known)[nearest], strict=True):
            taken = self.random.permutation(np.array(columns)[differ])[: self.most]
            made[taken] = row[taken]
        return start

    def substitute_alone(self, rows: np.ndarray) -> None:
        """One column of choices substituted, the others as they are; the cheapest first, others
        in a random order.
        """
        options = [(column, value) for column, values in self.choices.items() for value in values]
        cost, order = (
            self.problem.where.cost,
            self.random.permutation(len(options)) if options else (),
        )
        for number in sorted(order, key=lambda number: cost[options[number][0]])[
            : self.budget // _ALONE
        ]:
            column, value = options[number]
            nearer = cost[column] < self.distance[rows]
            some = rows[nearer & (self.problem.X[rows, column] != value)]
            tried = self.problem.X[some]
            tried[:, column] = value
            turned = self.ask(tried, some)
            self.accept(tried[turned], some[turned])

    def put_back(self) -> None:
        """Columns, alone and in groups, back to what they were, one try a round and row."""
        rows = self.open()
        tried = self.best[rows].copy()
        changed = (
            self.random.uniform(size=(len(rows), len(self.free)))
            < self.random.uniform(size=(len(rows), 1)) ** 2
        )
        block = tried[:, self.free]
        block[changed] = self.problem.X[rows][:, self.free][changed]
        tried[:, self.free] = block
        turned = self.ask(tried, rows)
        self.best[rows[turned]] = tried[turned]
        self.distance[rows[turned]] = self.problem.where.distance(
            tried[turned], self.problem.X[rows[turned]], self.norm
        )

    def exchange(self) -> None:
        """Another value in one column of choices, and the columns that move changed less, or
        towards another row.
        """
        rows = self.open() if self.choices else np.zeros(0, dtype=np.intp)
        where, X, tried = self.problem.where, self.problem.X[rows], self.best[rows].copy()
        for x, z, i in zip(X, tried, rows, strict=True):
            self.vary(x, z)
            useful = np.flatnonzero(self.problem.reached(self.said, np.full(len(self.pool), i)))
            if useful.size and self.random.randint(2):
                z[self.moves] = self.pool[useful[self.random.randint(len(useful))], self.moves]
        room = where.room(
            where.spent(tried, X, self.norm), _SHORTER * self.distance[rows], self.norm
        )
        fits = np.flatnonzero(room >= 0)
        tried = where.within(
            tried[fits], np.where(where.scale > 0, X, tried)[fits], room[fits], self.norm
        )
        turned = self.ask(tried, rows[fits])
        self.line(tried[turned], rows[fits][turned])

    def vary(self, x: Array, z: Array) -> None:
        """One column of choices in z substituted, or put back to x, in place; others go back
        where there are too many.
        """
        columns = np.array(list(self.choices))
        column = int(columns[self.random.randint(len(columns))])
        values = [value for value in self.choices[column] if value != z[column]]
        if z[column] != x[column] and self.random.randint(2):
            z[column] = x[column]
        elif values:
            z[column] = values[self.random.randint(len(values))]
        others = columns[(columns != column) & (z[columns] != x[columns])]
        surplus = max(0, len(others) + int(z[column] != x[column]) - self.most)
        dropped = self.random.permutation(others)[:surplus]
        z[dropped] = x[dropped]

    def step(self) -> None:
        """Along the estimated normal of the boundary, as far as the row stays turned, then back
        along the line.
        """
        where, rows = self.problem.where, self.open()
        width = where.moved(self.best[rows], self.problem.X[rows], self.norm)
        rows, width = rows[width > 0], width[width > 0]
        if not rows.size:
            return
        # the normal of the boundary, estimated from which of a few random steps around are answered so
        probes = int(np.clip(np.min(self.left[rows]) // 4, 4, 24))
        noise = self.random.standard_normal((len(rows), probes, len(self.moves)))
        noise /= np.linalg.norm(noise, axis=2, keepdims=True)
        around = np.repeat(self.best[rows][:, None], probes, axis=1)
        around[:, :, self.moves] += noise * (0.1 * width)[:, None, None] * where.scale[self.moves]
        around = np.clip(around, where.low, where.high)
        said = self.ask(around.reshape(-1, around.shape[2]), np.repeat(rows, probes)).reshape(
            len(rows), probes
        )
        signs = np.where(said, 1.0, -1.0)
        mixed = np.any(said != said[:, :1], axis=1, keepdims=True)
        signs -= np.where(mixed, signs.mean(axis=1, keepdims=True), 0.0)
        normal = np.einsum("ij,ijk->ik", signs, noise)
        normal = (
            np.sign(normal)
            if self.norm == "linf"
            else normal / np.linalg.norm(normal, axis=1, keepdims=True)
        )
        open_, length = np.arange(len(rows)), self.length[rows] * width
        for _ in range(_STEPS):
            tried = self.best[rows[open_]].copy()
            tried[:, self.moves] += normal[open_] * length[open_, None] * where.scale[self.moves]
            tried = np.clip(tried, where.low, where.high)
            turned = self.ask(tried, rows[open_])
            self.line(tried[turned], rows[open_][turned])
            open_ = open_[~turned]
            length[open_] /= 2
        self.length[rows] = np.clip(length / np.maximum(width, 1e-300), 0.01, 1.0)
