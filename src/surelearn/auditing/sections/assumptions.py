"""Section: the assumptions of the guarantees, and which of them the data contradict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from surelearn.auditing.context import Context
from surelearn.auditing.independence import assumed_independent, assumed_population
from surelearn.auditing.writing import Entry
from surelearn.plain import percent_sure
from surelearn.report import Section
from surelearn.selection.ledger import allowance, ordinal, state_folder


def section(context: Context) -> Section:
    """Same source, independence, first use: what was seen for and against each."""
    codes = {finding.code: finding for finding in context.findings}
    notes = []
    if context.time_name:
        notes.append(
            "New rows come from the same source as these. This is not assumed, because rows are"
            f" ordered by {context.time_name}."
        )
    elif "SL109" in codes:
        notes.append(
            "New rows come from the same source as these. The order of the file contradicts it:"
            f" {codes['SL109'].text}"
        )
    else:
        said = "This cannot be checked from this file; `surelearn watch` checks live rows."
        notes.append(f"New rows come from the same source as these. {said}")
    if population := assumed_population(context):
        notes.append(population)
    notes.append(assumed_independent(context))
    if context.answers is not None:
        notes += _answered(context)
    used = "Held-back rows" if context.answers is None else "These rows"
    notes.append(f"{used} were not used before. {_use(context)}")
    return ENTRY.says(notes=notes)


def _answered(context: Context) -> list[str]:
    """What is assumed of answers that somebody else gave."""
    stated = context.certificate.facts.options.get("answers", {})
    models = [stated[name] for name in ("answered_by", "rival_by") if name in stated]
    notes = (
        [
            f"The model in the file {' and that in '.join(models)} was not fitted on these rows, nor chosen"
            " by them. This is assumed: a model's file does not say which rows it was fitted on."
        ]
        if models
        else [
            "Whoever answered had not seen these rows with their labels, nor chosen the answers by them."
            " This cannot be checked from this file: a model that was trained on public rows may have."
        ]
    )
    what = ["labels"] if context.task == "classification" else []
    what += ["values of slices"] if context.options.slices else []
    if what:
        told = " and the ".join(what)
        notes.append(
            f"The {told} that there are were known before anybody looked at these rows. They are"
            " those of the file."
        )
    if context.answers is not None and context.answers.drawn:
        notes.append(
            "Rows were drawn independently, with replacement, with the probabilities q that the"
            " weights 1/(N·q) say, fixed before any label was known. The claims are about the N rows"
            " that they were drawn from, not about new ones."
        )
    elif context.answers is not None and context.answers.weights is not None:
        notes.append(
            "Each row was labeled by its own coin, with the probability 1/weight that was fixed before"
            " its label was known; all rows are here, those without a label with weight 0."
        )
    return notes


def _use(context: Context) -> str:
    if context.looked_in is None:
        return "No ledger was kept: whoever made this page vouches for it."
    if context.turn == 1:
        return (
            f"No earlier audit is known here; the search covered {places(context.looked_in)}."
            " Audits made elsewhere are not known."
        )
    delta = allowance(context.options.delta, context.turn)
    return (
        f"This is the {ordinal(context.turn)} audit of these rows (`surelearn ledger` lists them),"
        f" so it is held to a stricter confidence, {percent_sure(delta)}: all audits of these rows"
        " together fail in at most 1.4 times δ, unless the model was changed because of what an"
        " earlier audit showed; `surelearn gate` is for those who do that."
    )


def places(ledgers: Sequence[Path]) -> str:
    """Where looks are recorded, without the names of the user's folders."""
    mine = state_folder() / "ledger.json"
    names = [
        (
            "the user's ledger"
            if path == mine
            else "the ledger beside the data"
            if path.name.startswith(".")
            else "the one named"
        )
        for path in ledgers
    ]
    return " and ".join(names) if names else "no place: none can be written"


ENTRY = Entry(
    key="assumptions", title="Assumptions", write=section, place="assumptions", required=True
)
