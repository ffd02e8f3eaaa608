"""Section: the class that matters: thresholds, costs, and what they bring."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn.auditing.context import Context, Options
from surelearn.plain import show
from surelearn.report import Section


def choose_threshold(scores: Any, y: Any, positive: Any, cost: float) -> float:
    """The threshold on the positive class's probability with the smallest cost on rows not fitted on.

    ``scores`` are out-of-fold probabilities (or those of select rows), NaN where there are none. A missed positive costs
    ``cost``, a false alarm 1.

    Examples
    --------
    >>> choose_threshold(np.array([0.1, 0.2, 0.35, 0.8]), np.array([0, 0, 1, 1]), 1, 5.0)
    0.275
    """
    compared = ~np.isnan(scores)
    p, is_positive = scores[compared], np.asarray(y[compared] == positive)
    order = np.argsort(p, kind="stable")
    p, is_positive = p[order], is_positive[order]
    missed = np.concatenate(([0], np.cumsum(is_positive)))  # called negative: the i smallest
    alarms = (~is_positive).sum() - np.concatenate(([0], np.cumsum(~is_positive)))
    total = cost * missed + alarms
    cuts = np.concatenate(([p[0] / 2], (p[1:] + p[:-1]) / 2, [(1 + p[-1]) / 2]))
    allowed = np.concatenate(([p[0] > 0], p[1:] > p[:-1], [p[-1] < 1]))  # a threshold lies strictly between 0 and 1
    if not allowed.any():
        return 0.5
    return float(cuts[np.argmin(np.where(allowed, total, np.inf))])


def apply_threshold(model: Any, options: Options, scores: Any, y: Any) -> tuple[Any, float | None]:
    """The model with its decision threshold, stated or chosen for the cost; unchanged if neither was asked for."""
    if options.cost is None and options.threshold is None:
        return model, None
    classes = np.unique(y)
    if classes.size != 2 or options.positive is None:
        raise ValueError("--cost and --threshold need two classes and --positive, the class that matters")
    threshold = options.threshold
    if threshold is None:
        if scores is None:
            raise ValueError("--cost needs a model that gives probabilities")
        column = classes.tolist().index(options.positive)
        threshold = choose_threshold(scores[:, column], y, options.positive, float(options.cost or 1.0))
    if not 0 < threshold < 1:
        raise ValueError(f"--threshold must lie strictly between 0 and 1, not {threshold!r}")
    from sklearn.model_selection import FixedThresholdClassifier

    made = FixedThresholdClassifier(model, threshold=threshold, pos_label=options.positive, response_method="predict_proba")
    return made, threshold


def section(context: Context) -> Section | None:
    """In words: what is caught, what is not, at which threshold."""
    positive = context.options.positive
    if positive is None or context.task != "classification":
        return None
    notes = []
    threshold = context.threshold
    if threshold is not None:
        how = "as stated" if context.options.threshold is not None else "chosen on rows that were not fitted on"
        notes.append(f"Answers {positive} from a probability of {threshold:.3f} on ({how}).")
    quantities = {claim.quantity: claim for claim in context.certificate.together}
    if claim := quantities.get("sensitivity"):
        notes.append(f"Of the rows that are {positive}, {_share(claim)} are recognized.")
    if claim := quantities.get("precision"):
        notes.append(f"Of the rows called {positive}, {_share(claim)} are.")
    if claim := quantities.get("mean_cost"):
        measured = show(claim.measured or 0.0, "number")
        notes.append(f"Mean cost a row, in false alarms: {measured} measured, {claim.bound()} guaranteed.")
    return Section(key="costly", title=f"The class that matters: {positive}", notes=tuple(notes)) if notes else None


def _share(claim: Any) -> str:
    measured = "" if claim.measured is None else f"{show(claim.measured, 'rate')} (measured), "
    return f"{measured}at least {show(claim.value, 'rate', '>=')} (guaranteed)"
