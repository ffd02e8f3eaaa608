"""What it costs to be wrong: the threshold of the model under audit, and the section about the class that matters."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn.auditing.context import Context, Options
from surelearn.claim import Claim
from surelearn.plain import show
from surelearn.report import Section, Table
from surelearn.report.rows import bound_words, sentence_case
from surelearn.selection.costs import Costs, choose_threshold

SHOWN = ("mean_cost", "gain", "baseline_cost", "sensitivity", "specificity", "precision", "risk")


def costs_asked(options: Options, y: Any) -> Costs | None:
    """What wrong answers cost, as the options say it; None if they do not."""
    if options.cost is None and options.threshold is None:
        return None
    if options.threshold is not None and not 0 < options.threshold < 1:
        raise ValueError(f"--threshold must lie strictly between 0 and 1, not {options.threshold!r}")
    if options.cost is not None and not 0 < options.cost < float("inf"):
        raise ValueError(f"--cost must be a positive number, not {options.cost!r}")
    if np.unique(y).size != 2 or options.positive is None:
        raise ValueError("--cost and --threshold need two classes and --positive, the class that matters")
    return Costs(positive=options.positive, miss=float(options.miss or 0.0), threshold=options.threshold)


def apply_threshold(model: Any, costs: Costs | None, scores: Any, y: Any) -> tuple[Any, float | None]:
    """The model with its decision threshold, stated or the cheapest for ``scores``, probabilities of rows not fitted on."""
    if costs is None:
        return model, None
    threshold = costs.threshold
    if threshold is None:
        column = np.unique(y).tolist().index(costs.positive)
        threshold = choose_threshold(scores[:, column], y, costs.positive, costs.miss)
    from sklearn.model_selection import FixedThresholdClassifier

    made = FixedThresholdClassifier(model, threshold=threshold, pos_label=costs.positive, response_method="predict_proba")
    return made, threshold


def section(context: Context) -> Section | None:
    """The error that matters, at the chosen operating point: what is caught, what is not, and what that costs."""
    positive, miss = context.options.positive, context.options.miss
    if positive is None or context.task != "classification":
        return None
    notes = []
    if miss is not None:
        implied = "" if context.options.cost is not None else ", as the stated threshold implies"
        notes.append(f"A missed {positive} costs {show(miss, 'number')}, a false alarm 1{implied}.")
    if context.threshold is not None:
        how = "as stated" if context.options.threshold is not None else "the cheapest on rows that were not fitted on"
        notes.append(f"The model answers {positive} from a probability of {context.threshold:.3f} on ({how}).")
    rows = {claim.quantity: (claim, label) for claim, label in reversed(context.certificate.rows()) if _together(claim)}
    shown = [rows[name] for name in SHOWN if name in rows and (miss is not None or name not in ("gain", "risk"))]
    table = Table(header=("what", "measured", "guaranteed"), rows=tuple(_cells(*row) for row in shown))
    if not notes and not shown:
        return None
    return Section(
        key="costly",
        title="What it costs to be wrong",
        place="costs",
        notes=tuple(notes),
        tables=(table,) if shown else (),
    )


def _together(claim: Claim) -> bool:
    return claim.standing == "together"


def _cells(claim: Claim, label: str) -> tuple[str, ...]:
    measured = "" if claim.measured is None else show(claim.measured, claim.unit)
    return sentence_case(label), measured, " ".join(bound_words(claim))
