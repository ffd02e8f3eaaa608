"""What is attacked: a model with rows, labels and their domain, and what counts as success."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelearn.attacks.domains import Array, Domain, Norm, domain
from surelearn.attacks.result import Evasion
from surelearn.subject import ScoreFunction, score_function
from surelearn.types import Model, RowsLike


@dataclass(frozen=True, eq=False)
class EvasionProblem:
    """A model with rows, labels and their domain, checked.

    Attributes
    ----------
    aims : the number of the label (or of the target) of every row; 0 where the attack does not need
        it
    goals : the same as labels
    """

    f: ScoreFunction
    X: Array
    labels: np.ndarray
    goals: np.ndarray
    aims: np.ndarray
    targeted: bool
    where: Domain

    @classmethod
    def of(
        cls,
        model: Model,
        X: RowsLike,
        y: npt.ArrayLike,
        target: npt.ArrayLike | None,
        where: Domain | None,
        *,
        by_scores: bool = True,
    ) -> EvasionProblem:
        """Check everything, in sentences; ``by_scores`` says whether the attack needs to know
        which score is whose.
        """
        f = score_function(model)
        X = np.array(X, dtype=np.float64, ndmin=2)
        labels = np.asarray(y)
        if labels.shape != (len(X),):
            raise ValueError(
                f"y must hold a label for each of {len(X)} rows, not have shape {labels.shape}"
            )
        where = domain(X.shape[1]) if where is None else where
        if len(where.scale) != X.shape[1]:
            raise ValueError(f"the domain has {len(where.scale)} columns, X has {X.shape[1]}")
        if not np.isfinite(X).all():
            i, j = np.argwhere(~np.isfinite(X))[0]
            raise ValueError(
                f"row {i} has {X[i, j]:g} in {where.names[j]}: fill in such values first, or leave"
                " the row out"
            )
        where.check(X)
        goals = labels if target is None else np.broadcast_to(np.asarray(target), labels.shape)
        aims = (
            _numbers(f, X, goals)
            if by_scores or f.classes is not None
            else np.zeros(len(goals), dtype=np.intp)
        )
        if (aims < 0).any():
            name, label = (
                "y" if target is None else "target",
                goals.tolist()[int((aims < 0).argmax())],
            )
            raise ValueError(f"{name} must hold the model's classes, {_listed(f)}, not {label!r}")
        return cls(f, X, labels, goals, aims, target is not None, where)

    def reached(self, said: np.ndarray, rows: npt.NDArray[np.intp] | slice) -> np.ndarray:
        """Whether the attack succeeded, from what is predicted for ``rows`` of the problem."""
        return (said == self.goals[rows]) == self.targeted

    def judged(self, Z: Array, rows: npt.NDArray[np.intp] | slice) -> np.ndarray:
        """Whether the attack succeeded with the rows ``Z``, as the model itself predicts."""
        return self.reached(self.f.predict(Z), rows)

    def result(
        self,
        method: str,
        norm: Norm,
        radius: npt.ArrayLike,
        Z: Array,
        before: np.ndarray,
        calls: int,
    ) -> Evasion:
        """The outcome, success as the model itself predicts; rows that failed are put back."""
        after = self.f.predict(Z)
        success = self.reached(after, slice(None))
        rows = np.where(success[:, None], Z, self.X)
        return Evasion(
            method=method,
            norm=norm,
            radius=radius,
            original=self.X,
            rows=rows,
            success=success,
            distance=np.where(success, self.where.distance(rows, self.X, norm), np.inf),
            substituted=self.where.substituted(rows, self.X),
            labels=self.labels,
            before=before,
            after=np.where(success, after, before),
            calls=calls + 2 * len(Z),
            targeted=self.targeted,
            domain=self.where,
        )


def substitute(
    problem: EvasionProblem, rows: np.ndarray, base: Array, radius: Array, norm: Norm
) -> tuple[np.ndarray, Array, int]:
    """One more column of choices of ``rows`` substituted, that which hurts most and is within the
    radius.

    ``base`` holds all rows of the problem as substituted so far. Returns the rows in which there
    was one, the new base, and the calls.
    """
    where, X, start = problem.where, problem.X[rows], base[rows]
    best, found, calls = _loss(problem, start, rows), start.copy(), len(rows)
    for column, values in where.choices.items():
        for value in values:
            tried = start.copy()
            tried[:, column] = value
            fits = np.flatnonzero(
                (start[:, column] == X[:, column]) & (where.spent(tried, X, norm) <= radius[rows])
            )
            if not fits.size:
                continue
            losses = _loss(problem, tried[fits], rows[fits])
            calls += len(fits)
            better = losses > best[fits]
            best[fits[better]], found[fits[better]] = losses[better], tried[fits[better]]
    changed, new = (found != start).any(axis=1), base.copy()
    new[rows] = found
    return rows[changed], new, calls


def _loss(problem: EvasionProblem, Z: Array, rows: np.ndarray) -> Array:
    """The best other score minus the aim's (the other way round for a target)."""
    scores, aims, at = problem.f.scores(Z).astype(float), problem.aims[rows], np.arange(len(Z))
    own = scores[at, aims]
    scores[at, aims] = -np.inf
    return (own - scores.max(axis=1)) * (1.0 if problem.targeted else -1.0)


def _numbers(f: ScoreFunction, X: Array, labels: np.ndarray) -> np.ndarray:
    """The number of each label among the model's classes; -1 for others."""
    if f.classes is None:
        if labels.dtype.kind not in "iub":
            raise ValueError(
                "the model does not know its classes: give y as whole numbers, or"
                " score_function(classes=)"
            )
        numbers, count = labels.astype(np.intp), f.scores(X[:1]).shape[1]
        return np.where((numbers >= 0) & (numbers < count), numbers, -1)
    known = {label: number for number, label in enumerate(f.classes)}
    return np.array([known.get(label, -1) for label in labels.tolist()], dtype=np.intp)


def _listed(f: ScoreFunction) -> str:
    if f.classes is None:
        return "0, 1, … in the order of its scores"
    return ", ".join(map(repr, f.classes[:5])) + (", …" if len(f.classes) > 5 else "")
