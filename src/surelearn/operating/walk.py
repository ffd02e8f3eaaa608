"""What certified rows say of each threshold of a walk, how far the walk goes, and what is counted at
its end.

Which rows may speak of the other rate at the chosen threshold? A walk on sensitivity counts positive
rows only. Given all labels, and the scores of the positive rows, its threshold T is a fixed number,
while the scores of the other rows are still independent draws of their class: their false alarms at T
are binomial, and Clopper and Pearson's bound holds as for a threshold that was fixed beforehand. A walk
on specificity leaves the positive rows untouched in the same way. Precision, errors among the answered
and mean costs look at both classes: there only a band that holds at every threshold at once
(Dvoretzky, Kiefer and Wolfowitz) speaks of another rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from surelearn.bounds.thresholds import (
    passes_lower,
    passes_upper,
    steps_passed,
    steps_passed_mean,
)
from surelearn.lacking import Lacking
from surelearn.operating.requirement import Requirement
from surelearn.subject import predict_with, subject_of
from surelearn.subject.recorded import RecordedScores
from surelearn.types import AnyArray, Array, Bools, Label, Model, RowsLike, TableRows

MOST_LOSSES = 20_000_000  # of all rows at all thresholds, kept for a walk that bets on them


@dataclass(frozen=True)
class Walk:
    """All that is fixed before the rows are looked at.

    Attributes
    ----------
    requirement : what must be kept
    thresholds : in the order of the walk
    delta : of every step, as its theorem is given it
    cost : of a missed positive where a false alarm costs 1, for a mean cost
    """

    requirement: Requirement
    thresholds: tuple[float, ...]
    delta: float
    cost: float | None = None

    @property
    def loss_bound(self) -> float:
        """The largest cost of a row."""
        return max(self.cost or 0.0, 1.0)

    def count(
        self, scores: Array, good: Bools, ordered: Callable[[Array], Array]
    ) -> dict[str, Any]:
        """The facts that a walk is recomputed from: at each threshold how many rows, of which kind,
        have a score of at least that.

        ``scores`` and ``good`` are as for `ladder`; ``ordered`` puts losses in an order that does
        not depend on them.
        """
        cuts = np.asarray(self.thresholds)
        positives, others = np.sort(scores[good]), np.sort(scores[~good])
        found = positives.size - np.searchsorted(positives, cuts, side="left")
        alarms = others.size - np.searchsorted(others, cuts, side="left")
        if self.requirement.quantity == "error":
            return {
                "walk.wrong": alarms.tolist(),
                "walk.answered": (found + alarms).tolist(),
                "walk.rows": int(scores.size),
            }
        facts: dict[str, Any] = {
            "walk.found": found.tolist(),
            "walk.alarms": alarms.tolist(),
            "walk.positives": int(positives.size),
            "walk.negatives": int(others.size),
        }
        if self.requirement.quantity == "mean_cost":
            if cuts.size * scores.size > MOST_LOSSES:
                raise ValueError(
                    f"thresholds: {cuts.size:,} of them for {scores.size:,} rows take too many losses"
                    " to keep; fix fewer beforehand, such as the cheapest one"
                )
            miss = self.cost or 1.0
            steps = [np.where(scores >= t, np.where(good, 0.0, 1.0), miss * good) for t in cuts]
            facts["walk.losses"] = np.concatenate([ordered(one) for one in steps]).tolist()
            facts["walk.n"] = int(scores.size)
        return facts

    def end(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """What follows from the facts: the steps that passed, the threshold that is used (the last
        one that passed; the first, if none did), and the counts at it.
        """
        made = self._tested(facts)
        passed = self._passed({**facts, **made})
        step = max(passed - 1, 0)
        made |= {"walk.passed": passed, "walk.step": step, "walk.threshold": self.thresholds[step]}
        if self.requirement.quantity == "error":
            kept = {
                "answered.count": facts["walk.answered"][step],
                "answered.n": facts["walk.rows"],
            }
            return {**made, **kept}
        negatives = facts["walk.negatives"]
        return {
            **made,
            "sensitivity.count": facts["walk.found"][step],
            "sensitivity.n": facts["walk.positives"],
            "specificity.count": negatives - facts["walk.alarms"][step],
            "specificity.n": negatives,
        }

    def _tested(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """The counts of each step, and of how many rows they are."""
        quantity = self.requirement.quantity
        if quantity == "mean_cost":
            return {}
        if quantity == "error":
            return {"walk.counts": facts["walk.wrong"], "walk.sizes": facts["walk.answered"]}
        found, alarms = (np.asarray(facts[f"walk.{name}"]) for name in ("found", "alarms"))
        whole = np.ones_like(found)
        counts, sizes = {
            "sensitivity": (found, whole * facts["walk.positives"]),
            "specificity": (facts["walk.negatives"] - alarms, whole * facts["walk.negatives"]),
            "precision": (found, found + alarms),
        }[quantity]
        return {"walk.counts": counts.tolist(), "walk.sizes": sizes.tolist()}

    def _passed(self, facts: Mapping[str, Any]) -> int:
        level = self.requirement.level
        if self.requirement.quantity == "mean_cost":
            losses = np.asarray(facts["walk.losses"], dtype=float).reshape(-1, facts["walk.n"])
            return steps_passed_mean(losses, level, self.delta, self.loss_bound)
        passes = passes_lower if self.requirement.relation == ">=" else passes_upper
        return steps_passed(passes(facts["walk.counts"], facts["walk.sizes"], level, self.delta))


def walk_facts(
    walk: Walk,
    model: Model,
    X: RowsLike,
    y: AnyArray,
    *,
    positive: Label,
    classes: tuple[Any, ...],
    ordered: Callable[[Array], Array],
) -> dict[str, Any]:
    """Score the rows once, and walk.

    Raises
    ------
    ValueError
        where the model gives no scores
    """
    if walk.requirement.quantity == "error":
        scores, predicted = confidences(model, X, classes)
        good = np.asarray(predicted == y, dtype=bool)
    else:
        scores, good = (
            scores_for(model, X, positive, classes),
            np.asarray(y == positive, dtype=bool),
        )
    facts = walk.count(scores, good, ordered)
    return {**facts, **walk.end(facts)}


def scores_for(model: Model, X: RowsLike, positive: Label, classes: tuple[Any, ...]) -> Array:
    """(n,) the score that a threshold is compared with: recorded scores as they are, else the
    model's own probability of the class, else its decision function.
    """
    if isinstance(model, RecordedScores):
        return _finite(model.scores(cast("TableRows", X)))
    own = list(np.asarray(getattr(model, "classes_", classes)).tolist())
    if positive not in own:
        raise ValueError(f"positive={positive!r} is not a label of the model")
    probabilities = subject_of(model).probabilities
    if not isinstance(probabilities, Lacking):
        return _finite(np.asarray(probabilities(X), dtype=float)[:, own.index(positive)])
    decide = getattr(model, "decision_function", None)
    if decide is None or len(own) != 2:
        raise ValueError(f"require needs a model that gives a score of {positive!r}: {probabilities.reason}")  # fmt: skip
    values = np.asarray(decide(X), dtype=float)
    return _finite(values if own[1] == positive else -values)


def confidences(model: Model, X: RowsLike, classes: tuple[Any, ...]) -> tuple[Array, AnyArray]:
    """(n,) the probability that the model gives its own answer, and (n,) these answers."""
    probabilities = subject_of(model).probabilities
    scored = isinstance(model, RecordedScores) and not model.probable
    if isinstance(probabilities, Lacking) or scored:
        reason = "scores that are no probabilities" if scored else str(probabilities)
        raise ValueError(f"require: errors among the answered need probabilities, not {reason}")
    given = np.asarray(probabilities(X), dtype=float)
    own = list(np.asarray(getattr(model, "classes_", classes)).tolist())
    predicted = np.asarray(predict_with(model, classes)(X))
    columns = [own.index(label) if label in own else -1 for label in predicted.tolist()]
    found = given[np.arange(len(columns)), columns]
    # an answer that is no class of the model has no probability
    return _finite(np.where(np.asarray(columns) < 0, 0.0, found)), predicted


def _finite(scores: Array) -> Array:
    if scores.ndim != 1 or not np.isfinite(scores).all():
        raise ValueError("require: the model's scores must be one finite number per row")
    return scores
