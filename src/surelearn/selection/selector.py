"""`select`: compare candidates by a criterion, choose the best, and say what a simpler one costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from surelearn import jobs, stated
from surelearn.claim import Claim
from surelearn.lacking import Lacking
from surelearn.selection.candidates import AVERAGE, STACK, Candidates
from surelearn.selection.costs import Costs
from surelearn.selection.criteria import (
    Comparison,
    Criterion,
    Resampled,
    SelectionProblem,
    as_criterion,
    units_of,
)
from surelearn.selection.cross_validation import Resampling, mean_and_error
from surelearn.selection.metrics import Metric, as_metric
from surelearn.subject import Task
from surelearn.types import AnyArray, Array, Ints, Label, Model, RowsLike

Prefer = Literal["simplest", "best"]
COMBINED = (AVERAGE, STACK)


@dataclass(frozen=True, kw_only=True)
class Price:
    """What the simplest candidate within one standard error of the best costs, beside the best.

    Attributes
    ----------
    simplest : its position
    mean, low, high : how much more of the metric it has on the same rows, with a 95% interval (mean
        ± 1.96 paired standard errors); measured, not guaranteed
    """

    simplest: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Selection:
    """The outcome of a comparison.

    Attributes
    ----------
    names, errors, standard_errors : of each candidate, in their order; the metric on rows not
        fitted on, or whatever else the criterion wants least of (its standard error is 0)
    fold_errors : each candidate's value on each fold
    settings : of each candidate, in words, where its settings were searched; else empty
    chosen : position of the chosen candidate
    how : by which rows, or by what, candidates were compared
    prefer : "best", or "simplest" within one standard error of it
    metric : what ``errors`` are, on rows not fitted on; None for costs and other criteria
    mean_losses : of each candidate: error rate, mean absolute error or mean cost on rows not fitted
        on
    price : what the simplest candidate that is about as good costs, where it is another one
    threshold : with a metric of answers at a threshold (F1, balanced accuracy of two classes), the best
        one on rows not fitted on, from which on a probability of ``positive`` is answered so
    positive : the class that it is about
    compared : how many settings were compared in all: more than there are names, where a candidate's
        settings were searched
    model : the chosen candidate, unfitted
    losses : the chosen candidate's loss on each row compared on, averaged over repeats (NaN
        elsewhere), or None
    scores : likewise its probabilities, one column a class, or None
    predictions : likewise its predictions of numbers, or None
    details : what the criterion's values are made of: training errors, penalties, parameters
    claim : what is certified of the chosen candidate, paid for by δ over all candidates, or why
        nothing is
    rate : whether ``errors`` are error rates
    costs : what wrong answers cost, if ``errors`` are mean costs
    """

    names: tuple[str, ...]
    errors: tuple[float, ...]
    standard_errors: tuple[float, ...]
    fold_errors: tuple[tuple[float, ...], ...]
    chosen: int
    how: Resampling | Criterion
    prefer: Prefer
    task: Task
    model: Model
    claim: Claim | Lacking
    losses: Array | None = None
    scores: Array | None = None
    predictions: Array | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    rate: bool = True
    costs: Costs | None = None
    metric: Metric | None = None
    mean_losses: tuple[float, ...] = ()
    settings: tuple[str, ...] = ()
    price: Price | None = None
    compared: int = 1
    threshold: float | None = None
    positive: Label | None = None

    @property
    def name(self) -> str:
        """The chosen candidate's name."""
        return self.names[self.chosen]

    def __repr__(self) -> str:
        unit, scale = ("%", 100) if self.rate and self.task == "classification" else ("", 1)
        what = "" if self.metric is None else f"{self.metric.label}, "
        lines = [f"{self.name} chosen among {len(self.names)} by {what}{self.how}"]
        for i, (name, error, spread) in enumerate(
            zip(self.names, self.errors, self.standard_errors, strict=True)
        ):
            mark = "→" if i == self.chosen else " "
            within = f" ± {scale * spread:.2g}{unit}" if any(self.standard_errors) else ""
            lines.append(f"  {mark} {name:<28} {scale * error:9.4g}{unit}{within}")
        return "\n".join(lines)


def select(
    candidates: Candidates,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    task: Task = "classification",
    criterion: str | Resampling | Criterion = "cross-validation",
    held_out: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    time: npt.ArrayLike | None = None,
    costs: Costs | None = None,
    metric: str | None = None,
    positive: Label | None = None,
    combine: bool = False,
    prefer: Prefer = "best",
    delta: float = 0.05,
    random_state: int = 0,
    n_jobs: int | None = None,
    journal: jobs.Journal | None = None,
    progress: jobs.Progress | None = None,
    prefix: str = "",
) -> Selection:
    """Compare candidates, listed from simple to complex, by a metric on rows they were not fitted
    on, or otherwise.

    What this comparison guarantees: by cross-validation nothing. It chooses; rows that took part in
    it cannot certify the result. What other criteria guarantee,
    `surelearn.selection.criteria.criteria` says; ``claim`` holds it.

    Parameters
    ----------
    candidates : a list or mapping of unfitted models and `NestedFamily`, from simple to complex
    X, y : rows for fitting and comparing
    criterion : "cross-validation" (folds follow n), "leave-one-out", "holdout" (with ``held_out``),
        "aic", "bic", "srm" or another of `surelearn.selection.criteria.criteria`; one with settings
        of its own; or a `Resampling`
    held_out : positions of the rows to compare on, for "holdout"; to calibrate on, for
        "adjusted-srm"
    groups : rows that belong together stay together
    time : one value per row: folds are then steps in time, fitted on what came before
        (`cross_validation.forward`)
    costs : what wrong answers cost: criteria that compare losses on rows not fitted on then compare
        mean costs, each candidate at its own threshold
    metric : for criteria that compare on rows not fitted on (F1 and balanced accuracy of two classes
        at the threshold that the other folds choose): "log-loss", "brier", "accuracy",
        "auc", "average-precision", "f1", "balanced-accuracy"; "absolute", "squared",
        "quantile-0.9"; by default log loss where all candidates give probabilities, else the error
        rate, and the absolute error for numbers
    positive : the class that AUC, average precision and F1 are about
    combine : whether to calibrate probabilities and try an ensemble of the candidates, by their
        answers for rows not fitted on; it is chosen only if it beats the best candidate by more
        than a paired standard error
    prefer : the "best" candidate, or the "simplest" within one standard error of it
    delta : the failure probability of a criterion's bounds, for all candidates together
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
    by = as_criterion(criterion)
    units = units_of(candidates)
    if prefer not in ("simplest", "best"):
        raise ValueError(f"prefer must be 'simplest' or 'best', not {prefer!r}")
    stated.fraction("delta", delta)
    y = np.asarray(y)
    problem = SelectionProblem(
        units=units, X=X, y=y, task=task, held_out=_positions(held_out, y.size), groups=groups, time=time, costs=costs,
        metric=None if metric is None else as_metric(metric, task, np.unique(y).size), positive=positive, combine=combine,
        delta=delta, random_state=random_state, n_jobs=n_jobs, journal=journal, progress=progress, prefix=prefix,
    )  # fmt: skip
    if refusal := by.refusal(problem):
        raise ValueError(refusal.reason)
    found = by.compare(problem)
    candidates = problem.candidates if found.candidates is None else found.candidates
    names = tuple(candidate.name for candidate in candidates)
    chosen = _earned(found, names, prefer, groups)
    by_cost = costs is not None and isinstance(by, Resampled)
    scores = found.scores(chosen)
    return Selection(
        names=names,
        errors=tuple(found.values),
        standard_errors=tuple(found.standard_errors),
        fold_errors=tuple(found.fold_errors),
        chosen=chosen,
        how=found.how,
        prefer=prefer,
        task=task,
        model=candidates[chosen].model,
        losses=None if found.losses is None else found.losses[:, chosen],
        scores=scores,
        predictions=found.predictions(chosen) if task == "regression" else None,
        details=found.details,
        claim=found.claim(chosen),
        rate=by.rate and not by_cost if found.metric is None else found.metric.unit == "rate",
        costs=costs if by_cost else None,
        metric=found.metric,
        mean_losses=tuple(found.mean_losses),
        settings=tuple(candidate.settings for candidate in candidates),
        price=_price(found, chosen, groups),
        compared=max(len(problem.candidates), len(names)),
        **_threshold(found.metric, scores, y, positive),
    )


def _threshold(
    metric: Metric | None, scores: Array | None, y: AnyArray, positive: Label | None
) -> dict[str, Any]:
    """The metric's best threshold on rows not fitted on, and of which class."""
    if metric is None or metric.threshold is None or scores is None:
        return {}
    classes: list[Any] = np.unique(y).tolist()
    if len(classes) != 2:
        return {}
    column = 1 if positive is None else classes.index(positive)
    p = scores[:, column]
    tested = ~np.isnan(p)
    cut = metric.threshold(p[tested], (y == classes[column])[tested])
    return {"threshold": cut, "positive": classes[column]}


def _earned(
    found: Comparison, names: Sequence[str], prefer: Prefer, groups: npt.ArrayLike | None
) -> int:
    """The position of the chosen candidate; an ensemble must beat what it is made of by more than a
    paired standard error.
    """
    alone = [i for i, name in enumerate(names) if name not in COMBINED or not found.rows]
    values, spreads = found.values, found.standard_errors
    chosen = alone[choose([values[i] for i in alone], [spreads[i] for i in alone], prefer)]
    if prefer == "simplest":
        return chosen
    for i in range(len(names)):
        if i not in alone:
            gain, spread = _paired(found, chosen, i, groups)
            chosen = i if gain > spread else chosen
    return chosen


def _paired(
    found: Comparison, one: int, other: int, groups: npt.ArrayLike | None
) -> tuple[float, float]:
    """By how much one candidate's value is above another's, and the standard error, over rows
    (with groups: over groups) or, for a metric without a loss for each row, over folds.
    """
    first, second = found.rows[one], found.rows[other]
    if first is None or second is None:
        first, second = np.asarray(found.fold_errors[one]), np.asarray(found.fold_errors[other])
        groups = None
    if np.isnan(first - second).all():
        return 0.0, 0.0
    return found.values[one] - found.values[other], mean_and_error(first - second, groups)[1]


def _price(found: Comparison, chosen: int, groups: npt.ArrayLike | None) -> Price | None:
    """Of the simplest candidate within one standard error of the best."""
    if not found.rows:
        return None
    simplest = choose(found.values, found.standard_errors, "simplest")
    best = choose(found.values, found.standard_errors, "best")
    other = chosen if simplest != chosen else best
    if simplest == other:
        return None
    mean, spread = _paired(found, simplest, other, groups)
    return Price(simplest=simplest, mean=mean, low=mean - 1.96 * spread, high=mean + 1.96 * spread)


def _positions(held_out: npt.ArrayLike | None, n: int) -> Ints | None:
    """Positions of held-out rows, from positions or a mask; a row that is fitted on as well
    would certify itself.
    """
    if held_out is None:
        return None
    rows = np.asarray(held_out)
    if rows.dtype == bool:
        if rows.shape != (n,):
            raise ValueError(f"held_out is a mask of {rows.size} rows, and there are {n}")
        rows = np.flatnonzero(rows)
    if rows.size and (
        rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n
    ):
        raise ValueError(
            f"held_out must be positions of rows, whole numbers from 0 to {n - 1}, or a mask"
        )
    rows = np.unique(rows).astype(np.int64)
    if rows.size == n:
        raise ValueError("held_out takes all rows: leave some to fit on")
    return rows


def choose(
    errors: Sequence[float], standard_errors: Sequence[float], prefer: Prefer = "best"
) -> int:
    """Position of the best candidate, or of the first (simplest) within one standard error of it.

    Examples
    --------
    >>> errors, spreads = [0.4, 0.11, 0.10], [0.02, 0.02, 0.02]
    >>> choose(errors, spreads), choose(errors, spreads, "simplest")
    (2, 1)
    """
    best = int(np.argmin(errors))
    if prefer == "best":
        return best
    return next(
        i for i, error in enumerate(errors) if error <= errors[best] + standard_errors[best]
    )
