"""A refit's own decision threshold, chosen as the model's was: the one with the least cost, or the
best by the metric, on predictions of rows that were not fitted on. At the model's threshold, label
noise or fewer rows would seem to do far more harm than they do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.fitting import with_threshold
from surelearn.lacking import Lacking
from surelearn.selection.costs import choose_threshold
from surelearn.selection.cross_validation import Resampling, resample
from surelearn.selection.metrics import METRICS
from surelearn.subject import subject_of
from surelearn.subject.refitting import columns_for, fit_quietly, take, take_for
from surelearn.types import AnyArray, Array, Label, Model, TableRows

FOLDS = 3  # they cost as much as `FOLDS` - 1 more fits on all rows
NOTE = (
    "Every refit has its own decision threshold, the best on out-of-fold predictions of its rows."
)


@dataclass(frozen=True, eq=False)
class OwnThreshold:
    """How a refit chooses its threshold.

    Attributes
    ----------
    uncut : the model without a threshold, unfitted
    positive, miss : what is answered from the threshold on, and what a missed one costs when a false
        alarm costs 1; None where ``metric`` is what counts
    metric : the name of a metric with a best threshold
    usual : the model's own threshold, where a refit's rows do not allow a choice
    scores : (n,) out-of-fold probabilities of the rows that the model was fitted on, for refits on
        nearly all of them; None: each refit makes its own
    seed : of the folds
    """

    uncut: Any
    positive: Label
    miss: float | None
    usual: float
    metric: str = ""
    scores: Array | None = None
    seed: int = 0

    def of(self, X: TableRows, y: AnyArray, rows: AnyArray | None = None) -> float:
        """The best threshold for a fit to the rows; ``rows`` are their positions among those
        with scores.
        """
        if np.unique(y).size < 2 or np.unique(y, return_counts=True)[1].min() < 2:
            return self.usual
        scores = self._out_of_fold(X, y) if self.scores is None else self.scores[rows]
        if isinstance(scores, Lacking) or np.isnan(scores).all():
            return self.usual
        if self.miss is not None:
            return choose_threshold(scores, y, self.positive, self.miss)
        best, tested = METRICS[self.metric].threshold, ~np.isnan(scores)
        return self.usual if best is None else best(scores[tested], (y == self.positive)[tested])

    def model(self, X: TableRows, y: AnyArray, rows: AnyArray | None = None) -> Any:
        """The model to fit to the rows, with their threshold."""
        return with_threshold(self.uncut, self.of(X, y, rows), self.positive)

    def with_model(self, uncut: Model) -> OwnThreshold:
        """The same for another model."""
        return replace(self, uncut=uncut)

    def _out_of_fold(self, X: TableRows, y: AnyArray) -> Array | Lacking:
        """(n,) probabilities of the positive class by fits to the other folds."""
        folds = min(FOLDS, int(np.unique(y, return_counts=True)[1].min()))
        scores, column = np.full(len(y), np.nan), np.unique(y).tolist().index(self.positive)
        for fit, held in resample(
            Resampling(folds=folds), y, stratify=True, random_state=self.seed
        ):
            fitted = fit_quietly(self.uncut, take_for(self.uncut, X, fit), y[fit])
            probabilities = subject_of(fitted).probabilities
            if isinstance(probabilities, Lacking):
                return probabilities
            scores[held] = np.asarray(probabilities(columns_for(self.uncut, take(X, held), fit)))[
                :, column
            ]
        return scores


def own_threshold(context: Context, *, nearly_all: bool = False) -> OwnThreshold | None:
    """How refits choose their threshold; None where the model has none, or a stated one.

    Parameters
    ----------
    nearly_all : refits are on nearly all rows, so that the model's own out-of-fold predictions serve
    """
    options, selection = context.options, context.selection
    stated = options.threshold is not None or options.require is not None
    if context.threshold is None or stated or selection is None:
        return None
    by_cost = options.miss is not None
    positive = options.positive if by_cost else selection.positive
    metric = selection.metric
    if selection.scores is None or not (by_cost or (metric is not None and metric.threshold)):
        return None
    _, y = context.rows("train")
    column = np.unique(y).tolist().index(positive)
    return OwnThreshold(
        uncut=selection.model,
        positive=positive,
        miss=float(options.miss) if options.miss is not None else None,
        usual=float(context.threshold),
        metric="" if by_cost or metric is None else metric.name,
        scores=np.asarray(selection.scores)[:, column] if nearly_all else None,
        seed=context.seed("own threshold"),
    )


def fits_each(context: Context) -> int:
    """How many fits on all its rows a refit takes that chooses its own threshold."""
    return 1 if own_threshold(context) is None else FOLDS


def notes(context: Context) -> tuple[str, ...]:
    """That refits have a threshold of their own, where they do."""
    return () if own_threshold(context) is None else (NOTE,)
