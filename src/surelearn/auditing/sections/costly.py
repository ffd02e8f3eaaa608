"""Section: what it costs to be wrong, about the class that matters."""

from __future__ import annotations

from surelearn.auditing.context import Context
from surelearn.auditing.writing import Entry
from surelearn.claim import Claim
from surelearn.plain import show
from surelearn.report import PageTable, Section
from surelearn.report.rows import bound_words, sentence_case

SHOWN = ("mean_cost", "gain", "baseline_cost", "sensitivity", "specificity", "precision", "risk")


def section(context: Context) -> Section | None:
    """The error that matters, at the chosen operating point: what is caught, what is not, and
    what that costs.
    """
    positive, miss = context.options.positive, context.options.miss
    if positive is None or context.task != "classification" or context.options.require is not None:
        return None
    notes = []
    if miss is not None:
        implied = "" if context.options.cost is not None else ", as the stated threshold implies"
        notes.append(f"A missed {positive} costs {show(miss, 'number')}, a false alarm 1{implied}.")
    if context.threshold is not None:
        how = (
            "as stated"
            if context.options.threshold is not None
            else f"the {'best' if miss is None else 'cheapest'} by out-of-fold predictions"
        )
        notes.append(
            f"Decision threshold: {positive} from a probability of {context.threshold:.3f} on"
            f" ({how})."
        )
    rows = {
        claim.quantity: (claim, label)
        for claim, label in reversed(context.certificate.rows())
        if claim.standing == "together"
    }
    shown = [
        rows[name]
        for name in SHOWN
        if name in rows and (miss is not None or name not in ("gain", "risk"))
    ]
    table = PageTable(
        header=("metric", "measured", "guaranteed"), rows=tuple(_cells(*row) for row in shown)
    )
    if not notes and not shown:
        return None
    return ENTRY.says(notes=notes, tables=(table,) if shown else ())


def _cells(claim: Claim, label: str) -> tuple[str, ...]:
    measured = "" if claim.measured is None else show(claim.measured, claim.unit)
    return sentence_case(label), measured, " ".join(bound_words(claim))


ENTRY = Entry(
    key="costly", title="Operating point: what it costs to be wrong", write=section, place="costs"
)
