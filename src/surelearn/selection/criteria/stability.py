"""Choosing by stability: training error plus how much a row's loss grows when the row is left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surelearn import jobs
from surelearn.jobs import seed_for
from surelearn.lacking import Lacking
from surelearn.selection.criteria.criterion import JUDGMENT, Comparison, Criterion, unclaimed
from surelearn.selection.criteria.problem import CandidateUnit, SelectionProblem, predictions_of
from surelearn.selection.cross_validation import Positions, losses_of
from surelearn.subject import Task
from surelearn.subject.refitting import fit_quietly, take_for
from surelearn.types import AnyArray, Array, Model, RowsLike


@dataclass(frozen=True, kw_only=True)
class Stability(Criterion):
    """Training error plus the mean change of the loss of rows that are left out of the fit, one at
    a time.

    In expectation the change of a row's loss when the row is replaced is the gap between risk and
    training error (S. Shalev-Shwartz and S. Ben-David, Understanding Machine Learning, 2014,
    Theorem 13.2), so an unstable candidate pays its own price; the least change alone would always
    choose a constant. Left-out rows are a random sample: on average over it the value is the
    leave-one-out error, and with all n rows it is exactly that.

    Parameters
    ----------
    refits : rows to leave out, at most n; with groups, groups
    """

    name: ClassVar[str] = "stability"
    chooses: ClassVar[str] = "training error plus the change of left-out rows' losses"
    cost: ClassVar[str] = "31 fits a candidate (1 + refits)"
    guarantee: ClassVar[str] = (
        "nothing: stability measured on these rows is no uniform stability; on average it is the"
        " leave-one-out error"
    )

    refits: int = 30

    def fits(self, candidates: int, n: int) -> int:
        """One on all rows, and the refits."""
        return candidates * (1 + min(self.refits, n))

    def refusal(self, problem: SelectionProblem) -> Lacking | None:  # noqa: ARG002
        """Without refits."""
        return (
            Lacking(JUDGMENT, f"refits must be at least 1, not {self.refits!r}")
            if self.refits < 1
            else None
        )

    def compare(self, problem: SelectionProblem) -> Comparison:
        """Training errors and mean changes."""
        labels = (
            np.arange(problem.y.size)
            if problem.groups is None
            else np.unique(problem.groups, return_inverse=True)[1]
        )
        rng = np.random.default_rng(seed_for("left out", problem.random_state))
        left_out = [
            np.flatnonzero(labels == label)
            for label in rng.permutation(labels.max() + 1)[: self.refits]
        ]
        results = problem.run(
            [task for unit in problem.units for task in _tasks(problem, unit, left_out)]
        )
        values, spreads, errors, changes = [], [], [], []
        per_unit = len(left_out) + 1
        for u, unit in enumerate(problem.units):
            full, *refits = results[u * per_unit : (u + 1) * per_unit]
            for i in range(len(unit.members)):
                change = np.array([
                    (refit[i] - full[i][rows]).mean() for refit, rows in zip(refits, left_out, strict=True)
                ])  # fmt: skip
                errors.append(float(full[i].mean()))
                changes.append(float(change.mean()))
                values.append(errors[-1] + changes[-1])
                sampled = change.var(ddof=1) / change.size if change.size > 1 else 0.0
                spreads.append(float(np.sqrt(full[i].var() / full[i].size + sampled)))
        return Comparison(
            values=values,
            standard_errors=spreads,
            fold_errors=[()] * len(values),
            how=self,
            details={"training errors": tuple(errors), "changes": tuple(changes)},
            claim=unclaimed(self.guarantee),
        )


def _tasks(
    problem: SelectionProblem, unit: CandidateUnit, left_out: list[Positions]
) -> list[jobs.Task]:
    common = {
        "model": unit.model,
        "sizes": unit.sizes,
        "X": problem.X,
        "y": problem.y,
        "task": problem.task,
    }
    everything = np.arange(problem.y.size)
    named = [("losses", everything, everything)]
    named += [(f"without {rows[0]}", np.delete(everything, rows), rows) for rows in left_out]
    return [
        jobs.Task(
            f"{problem.prefix}select/{unit.name}/{what}",
            fit_and_lose,
            {**common, "train": train, "test": test},
        )
        for what, train, test in named
    ]


def fit_and_lose(
    model: Model,
    sizes: Sequence[int] | None,
    X: RowsLike,
    y: AnyArray,
    task: Task,
    train: Positions,
    test: Positions,
) -> list[Array]:
    """One task: fit on some rows, and the losses of every member on others."""
    fitted, new = (
        fit_quietly(model, take_for(model, X, train), y[train]),
        take_for(model, X, test, train),
    )
    return [losses_of(predicted, y[test], task) for predicted in predictions_of(fitted, sizes, new)]
