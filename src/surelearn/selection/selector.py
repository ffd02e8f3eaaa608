"""`select`: compare candidates on rows they were not fitted on, and prefer the simplest that is about as good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from surelearn import jobs
from surelearn.adapters import Task
from surelearn.selection.candidates import Candidate, as_candidates
from surelearn.selection.cross_validation import (
    Resampling,
    default_resampling,
    fit_and_predict,
    losses_of,
    mean_and_error,
    resample,
)

Prefer = Literal["simplest", "best"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Selection:
    """The outcome of a comparison.

    Attributes
    ----------
    names, errors, standard_errors : of each candidate, in their order; the mean loss on rows not fitted on
    fold_errors : each candidate's mean loss on each fold
    chosen : position of the chosen candidate
    how : by which rows candidates were compared
    prefer : "simplest" within one standard error of the best, or "best"
    model : the chosen candidate, unfitted
    losses : the chosen candidate's loss on each row compared on, averaged over repeats (NaN elsewhere)
    scores : likewise its probabilities, one column a class, or None
    """

    names: tuple[str, ...]
    errors: tuple[float, ...]
    standard_errors: tuple[float, ...]
    fold_errors: tuple[tuple[float, ...], ...]
    chosen: int
    how: Resampling
    prefer: Prefer
    task: Task
    model: Any
    losses: Any = None
    scores: Any = None

    @property
    def name(self) -> str:
        """The chosen candidate's name."""
        return self.names[self.chosen]

    def __repr__(self) -> str:
        unit = "%" if self.task == "classification" else ""
        scale = 100 if self.task == "classification" else 1
        lines = [f"{self.name} chosen among {len(self.names)} by {self.how}"]
        for i, (name, error, spread) in enumerate(zip(self.names, self.errors, self.standard_errors, strict=True)):
            mark = "→" if i == self.chosen else " "
            lines.append(f"  {mark} {name:<28} {scale * error:9.4g}{unit} ± {scale * spread:.2g}{unit}")
        return "\n".join(lines)


def select(
    candidates: Any,
    X: Any,
    y: Any,
    *,
    task: Task = "classification",
    criterion: Literal["cross-validation", "holdout", "leave-one-out"] | Resampling = "cross-validation",
    held_out: Any = None,
    groups: Any = None,
    prefer: Prefer = "simplest",
    random_state: int = 0,
    n_jobs: int | None = None,
    journal: jobs.Journal | None = None,
    progress: jobs.Progress | None = None,
    prefix: str = "",
) -> Selection:
    """Compare candidates, listed from simple to complex, by their mean loss on rows they were not fitted on.

    What this comparison guarantees: nothing. It chooses; rows that took part in it cannot certify the result.

    Parameters
    ----------
    candidates : a list or mapping of unfitted models, from simple to complex
    X, y : rows for fitting and comparing
    criterion : "cross-validation" (folds follow n), "leave-one-out", "holdout" (with ``held_out``), or a `Resampling`
    held_out : positions of the rows to compare on, for "holdout"
    groups : rows that belong together stay together
    prefer : "simplest" candidate within one standard error of the best, or the "best" itself
    random_state : seed of the folds
    n_jobs, journal, progress, prefix : how tasks run, see `surelearn.jobs`; never what they compute

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> select({"majority": DummyClassifier(), "linear": LogisticRegression(max_iter=500)}, X, y).name
    'linear'
    """
    contestants = as_candidates(candidates)
    if prefer not in ("simplest", "best"):
        raise ValueError(f"prefer must be 'simplest' or 'best', not {prefer!r}")
    y = np.asarray(y)
    how, pairs = _plan(criterion, y, held_out, groups, task, random_state)
    results = jobs.run(_tasks(contestants, X, y, pairs, task, prefix), n_jobs=n_jobs, journal=journal, progress=progress)
    by_candidate = [results[i * len(pairs) : (i + 1) * len(pairs)] for i in range(len(contestants))]
    errors, spreads, folds, row_losses = [], [], [], []
    for outcome in by_candidate:
        fold_losses = [losses_of(r["predictions"], y[test], task) for r, (_, test) in zip(outcome, pairs, strict=True)]
        row_losses.append(_average(fold_losses, pairs, y.size))
        mean, spread = mean_and_error(row_losses[-1], groups)
        errors.append(mean)
        spreads.append(spread)
        folds.append(tuple(float(fold.mean()) for fold in fold_losses))
    chosen = choose(errors, spreads, prefer)
    return Selection(
        names=tuple(candidate.name for candidate in contestants),
        errors=tuple(errors),
        standard_errors=tuple(spreads),
        fold_errors=tuple(folds),
        chosen=chosen,
        how=how,
        prefer=prefer,
        task=task,
        model=contestants[chosen].model,
        losses=row_losses[chosen],
        scores=_scores(by_candidate[chosen], pairs, y),
    )


def choose(errors: Sequence[float], standard_errors: Sequence[float], prefer: Prefer = "simplest") -> int:
    """Position of the first (simplest) candidate within one standard error of the best, or of the best.

    Examples
    --------
    >>> choose([0.4, 0.11, 0.10], [0.02, 0.02, 0.02]), choose([0.4, 0.11, 0.10], [0.02, 0.02, 0.02], "best")
    (1, 2)
    """
    best = int(np.argmin(errors))
    if prefer == "best":
        return best
    return next(i for i, error in enumerate(errors) if error <= errors[best] + standard_errors[best])


def _plan(
    criterion: Any, y: Any, held_out: Any, groups: Any, task: Task, random_state: int
) -> tuple[Resampling, list[tuple[Any, Any]]]:
    if criterion == "holdout":
        if held_out is None or len(held_out) == 0:
            raise ValueError("criterion='holdout' needs held_out=, the positions of the rows to compare on")
        test = np.asarray(held_out)
        return Resampling(kind="holdout", folds=1), [(np.setdiff1d(np.arange(y.size), test), test)]
    if criterion == "cross-validation":
        units = y.size if groups is None else np.unique(groups).size
        how = default_resampling(y.size)
        how = Resampling(folds=min(how.folds, units), repeats=how.repeats)
    elif criterion == "leave-one-out":
        how = Resampling(kind="leave-one-out", folds=y.size)
    elif isinstance(criterion, Resampling):
        how = criterion
    else:
        raise ValueError(
            f"criterion must be 'cross-validation', 'holdout', 'leave-one-out' or a Resampling, not {criterion!r}"
        )
    return how, resample(how, y, groups=groups, stratify=task == "classification", random_state=random_state)


def _tasks(candidates: list[Candidate], X: Any, y: Any, pairs: Any, task: Task, prefix: str) -> list[jobs.Task]:
    return [
        jobs.Task(
            key=f"{prefix}select/{candidate.name}/{i}",
            function=fit_and_predict,
            arguments={
                "model": candidate.model, "X": X, "y": y, "train": train, "test": test, "proba": task == "classification",
            },
        )
        for candidate in candidates
        for i, (train, test) in enumerate(pairs)
    ]  # fmt: skip


def _scores(outcome: list[dict[str, Any]], pairs: Any, y: Any) -> Any:
    """Out-of-fold probabilities, averaged over repeats; None where a fold lacks a class or the model has none."""
    classes = np.unique(y)
    if not all("scores" in result and np.array_equal(result["classes"], classes) for result in outcome):
        return None
    return _average([result["scores"] for result in outcome], pairs, y.size)


def _average(values: list[Any], pairs: Any, n: int) -> Any:
    """Mean over repeats of what each fold gave its test rows; NaN for rows that were never tested on."""
    total, count = np.zeros((n, *values[0].shape[1:])), np.zeros(n)
    for value, (_, test) in zip(values, pairs, strict=True):
        total[test] += value
        count[test] += 1
    with np.errstate(invalid="ignore"):
        return (total.T / count).T
