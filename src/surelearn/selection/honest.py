"""What a chosen model's loss will be: the least of several cross-validation errors is too low,
these estimates are not.

They are estimates with approximate intervals, never certified: for that, rows must be held back.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn import jobs, stated
from surelearn.jobs import seed_for
from surelearn.selection.candidates import Candidates
from surelearn.selection.criteria import (
    Criterion,
    Resampled,
    SelectionProblem,
    as_criterion,
    units_of,
)
from surelearn.selection.cross_validation import (
    FoldOutcome,
    Positions,
    Resampling,
    average,
    fit_and_predict,
    losses_of,
    mean_and_error,
)
from surelearn.selection.selector import Prefer, choose, select
from surelearn.subject import Task
from surelearn.subject.refitting import is_pairwise, take_for
from surelearn.types import AnyArray, RowsLike

_BLOCK = 50  # bootstraps drawn at once


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """An estimate of the mean loss of what a whole selection chooses, on new rows.

    Attributes
    ----------
    value : the estimate
    interval : approximate, at ``confidence``
    naive : what the chosen candidate's own cross-validation error would have claimed, if it was
        computed
    chosen : how often each candidate was chosen, in the folds or bootstraps
    how : where the estimate comes from
    """

    value: float
    interval: tuple[float, float]
    confidence: float
    chosen: Mapping[str, int]
    how: str
    naive: float | None = None


class NestedOutcome(FoldOutcome):
    """What an outer fold chose, and what that predicts: plain, so that a journal keeps it."""

    name: str


def nested_cross_validation(
    candidates: Candidates,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    task: Task = "classification",
    criterion: str | Resampling | Criterion = "cross-validation",
    outer: Resampling | None = None,
    groups: npt.ArrayLike | None = None,
    prefer: Prefer = "best",
    confidence: float = 0.95,
    random_state: int = 0,
    n_jobs: int | None = None,
    journal: jobs.Journal | None = None,
    progress: jobs.Progress | None = None,
    prefix: str = "",
) -> Estimate:
    """Repeat the whole selection without each outer fold, and try what it chose on that fold (M.
    Stone, 1974).

    No row takes part in the choice that it judges, so the estimate is unbiased for the risk of
    selecting and fitting on the rows of all folds but one. Folds share rows, so their choices and
    errors hang together, the more so where several candidates are about as good; the interval is
    widened for it (C. Nadeau and Y. Bengio, Machine Learning 52, 2003) but has no proof.

    Parameters
    ----------
    outer : the outer folds, ten once unless told
    confidence : of the interval, value ± t·√(1 + K/(K − 1))·standard error, t with K − 1 degrees of
        freedom for K folds
    candidates, X, y, task, criterion, groups, prefer : see `select`; any criterion that needs no
        ``held_out``
    random_state, n_jobs, journal, progress, prefix : likewise; each outer fold is a task

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> models = {f"{k} neighbours": KNeighborsClassifier(k) for k in (20, 5)}
    >>> estimate = nested_cross_validation(models, X, y, criterion="k-fold")
    >>> 0.0 <= estimate.interval[0] <= estimate.value <= 0.1
    True
    """
    from scipy.stats import t

    _check_confidence(confidence)
    by = as_criterion(criterion)
    if by.name == "holdout":
        raise ValueError(
            "criterion 'holdout' has rows of its own: nest a criterion that needs no held_out"
        )
    y = np.asarray(y)
    units = units_of(candidates)
    if len({is_pairwise(unit.model) for unit in units}) > 1:
        raise ValueError(
            "candidates must all take rows, or all a kernel matrix (kernel='precomputed'): X is one"
            " of them"
        )
    how = outer or Resampling(folds=min(10, y.size if groups is None else np.unique(groups).size))
    plan = SelectionProblem(
        units=units,
        X=X,
        y=y,
        task=task,
        groups=groups,
        random_state=seed_for("outer", random_state),
    )
    pairs = as_criterion(how).plan(plan)[1]  # type: ignore[attr-defined]
    options = {"task": task, "criterion": by, "prefer": prefer, "random_state": random_state}
    tasks = [
        jobs.Task(
            key=f"{prefix}nested/{i}",
            function=select_and_predict,
            arguments={
                "candidates": candidates, "X": X, "y": y, "groups": groups, "train": train, "test": test, "options": options,
            },
        )
        for i, (train, test) in enumerate(pairs)
    ]  # fmt: skip
    results = jobs.run(tasks, n_jobs=n_jobs, journal=journal, progress=progress)
    losses = average(
        [losses_of(r["predictions"], y[t], task) for r, (_, t) in zip(results, pairs, strict=True)],
        pairs,
        y.size,
    )
    value, error = mean_and_error(losses, groups)
    k = len(pairs) // how.repeats
    reach = float(t.ppf((1 + confidence) / 2, k - 1)) * math.sqrt(1 + k / (k - 1)) * error
    return Estimate(
        value=value,
        interval=(
            max(0.0, value - reach),
            min(1.0, value + reach) if task == "classification" else value + reach,
        ),
        confidence=confidence,
        chosen=dict(Counter(result["name"] for result in results)),
        how=f"selection nested in {how}",
    )


def select_and_predict(
    candidates: Candidates,
    X: RowsLike,
    y: AnyArray,
    groups: npt.ArrayLike | None,
    train: Positions,
    test: Positions,
    options: Mapping[str, Any],
) -> NestedOutcome:
    """One task: select and fit on some rows, predict others."""
    inside = None if groups is None else np.asarray(groups)[train]
    rows = take_for(units_of(candidates)[0].model, X, train)
    selection = select(candidates, rows, y[train], groups=inside, n_jobs=1, **options)
    return {"name": selection.name, **fit_and_predict(selection.model, X, y, train, test)}


def bias_corrected_cross_validation(
    candidates: Candidates,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    task: Task = "classification",
    criterion: str | Resampling | Criterion = "cross-validation",
    groups: npt.ArrayLike | None = None,
    prefer: Prefer = "best",
    bootstraps: int = 1000,
    confidence: float = 0.95,
    random_state: int = 0,
    n_jobs: int | None = None,
    journal: jobs.Journal | None = None,
    progress: jobs.Progress | None = None,
    prefix: str = "",
) -> Estimate:
    """Cross-validate once, then repeat only the choice on bootstraps of the rows
    (`bootstrap_bias_corrected`).

    Costs no fit beyond the cross-validation: a tenth of nesting it in ten folds.

    Parameters
    ----------
    criterion : one that compares losses on rows not fitted on
    bootstraps : how many
    candidates, X, y, task, groups, prefer, random_state, n_jobs, journal, progress, prefix : see
        `select`
    """
    by = as_criterion(criterion)
    if not isinstance(by, Resampled):
        raise ValueError(
            f"criterion {by.name!r} has no losses of rows not fitted on: use"
            " nested_cross_validation"
        )
    if by.name == "holdout":
        raise ValueError("criterion 'holdout' compares on few rows: use cross-validation")
    problem = SelectionProblem(
        units=units_of(candidates), X=X, y=np.asarray(y), task=task, groups=groups, random_state=random_state,
        n_jobs=n_jobs, journal=journal, progress=progress, prefix=prefix,
    )  # fmt: skip
    if refusal := by.refusal(problem):
        raise ValueError(refusal.reason)
    if searched := next((unit.family for unit in problem.units if unit.family), ""):
        raise ValueError(
            f"the settings of {searched!r} would be chosen outside of the bootstraps: pass them as"
            " candidates, or use nested_cross_validation"
        )
    losses = by.compare(problem).losses
    if losses is None:
        raise ValueError(f"criterion {by.name!r} must give the loss of each row")
    return bootstrap_bias_corrected(
        losses,
        names=[candidate.name for candidate in problem.candidates],
        groups=groups,
        prefer=prefer,
        bootstraps=bootstraps,
        confidence=confidence,
        random_state=random_state,
    )


def bootstrap_bias_corrected(
    losses: npt.ArrayLike,
    *,
    names: list[str] | None = None,
    groups: npt.ArrayLike | None = None,
    prefer: Prefer = "best",
    bootstraps: int = 1000,
    confidence: float = 0.95,
    random_state: int = 0,
) -> Estimate:
    """BBC-CV: choose on a bootstrap of the rows, judge the choice on the rows that it left out,
    average.

    From I. Tsamardinos, E. Greasidou and G. Borboudakis, Machine Learning 107 (2018), Algorithm 5:
    the rows' out-of-fold losses are drawn, not the rows refitted. The interval holds the middle of
    the bootstraps' values. A bootstrap knows only 63% of the rows and chooses a little worse than
    all of them, so the estimate errs upwards.

    Parameters
    ----------
    losses : (n, candidates), of rows not fitted on; rows with NaN were not compared on
    groups : rows that are drawn together

    Examples
    --------
    >>> coin = np.random.default_rng(0).integers(2, size=(100, 50))  # fifty candidates that all guess
    >>> estimate = bootstrap_bias_corrected(coin, prefer="best")
    >>> estimate.naive, round(estimate.value, 2)
    (0.41, 0.53)
    """
    _check_confidence(confidence)
    if bootstraps < 1:
        raise ValueError(f"bootstraps must be at least 1, not {bootstraps!r}")
    losses = np.asarray(losses, dtype=float)
    if losses.ndim != 2:
        raise ValueError(
            "losses must have a row for each row of the data and a column for each candidate"
        )
    compared = ~np.isnan(losses).any(axis=1)
    losses = losses[compared]
    if groups is not None:
        labels = np.unique(np.asarray(groups)[compared], return_inverse=True)[1]
        sizes = np.bincount(labels)[:, None]
        losses = np.stack([np.bincount(labels, column) for column in losses.T], axis=1) / sizes
    n, m = losses.shape
    if n < 2:
        raise ValueError("losses must have at least two rows that were compared on")
    rng = np.random.default_rng(seed_for("bootstraps", random_state))
    values, picks = [], np.zeros(m, dtype=int)
    while len(values) < bootstraps:
        counts = rng.multinomial(n, np.full(n, 1 / n), size=min(_BLOCK, bootstraps - len(values)))
        means, squares = counts @ losses / n, counts @ losses**2 / n
        errors = np.sqrt(np.maximum(0.0, squares - means**2) / (n - 1))
        for left_out, mean, error in zip(counts == 0, means, errors, strict=True):
            if not left_out.any():
                continue
            pick = choose(mean.tolist(), error.tolist(), prefer)
            picks[pick] += 1
            values.append(float(losses[left_out, pick].mean()))
    means = losses.mean(axis=0)
    spreads = losses.std(axis=0, ddof=1) / np.sqrt(n)
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return Estimate(
        value=float(np.mean(values)),
        interval=(float(low), float(high)),
        confidence=confidence,
        chosen={
            name: int(count)
            for name, count in zip(names or map(str, range(m)), picks, strict=True)
            if count
        },
        how=f"{len(values)} bootstraps of out-of-fold losses",
        naive=float(means[choose(means.tolist(), spreads.tolist(), prefer)]),
    )


def _check_confidence(confidence: float) -> None:
    stated.fraction("confidence", confidence)
