"""What every page is made of, whatever it is about: a recorded look at the rows, the certificate at
the confidence that this look has, sections, and the document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from surelearn.auditing.claims import Withholding
from surelearn.auditing.context import Context
from surelearn.auditing.looks import keep_losses, raised_bound
from surelearn.auditing.options import Options
from surelearn.auditing.verdict import write_verdict
from surelearn.auditing.writing import Entry, write_sections
from surelearn.certificate import Certificate
from surelearn.certification import uncounted
from surelearn.claim import Finding
from surelearn.data.pixels import in_words
from surelearn.data.schema import Schema
from surelearn.fingerprint import fingerprint_rows
from surelearn.measurement import LossBoundError
from surelearn.report import Audit, Section, Verdict
from surelearn.selection.ledger import Known, Ledger, Look, allowance, ordinal


def looked(
    book: Ledger | None,
    look: Look,
    table: Known,
    options: Options,
    contradicted: tuple[Finding, ...],
    make: Callable[[Options, Withholding], Certificate],
    instead_of: str = "",
) -> tuple[Certificate, int]:
    """The certificate at the confidence that this look at the rows has, and which look it is;
    on disk before it is made. ``instead_of``: the hash of the model without groups, whose page may
    have had no verdict for the lack of them.
    """
    if book is None:
        with uncounted():
            return make(options, Withholding(found=contradicted)), 1
    look = book.record(look, table, withheld=bool(contradicted), instead_of=instead_of)
    raised = raised_bound(look, book.at(table))
    paid = replace(options, delta=allowance(options.delta, look.turn))
    paid = paid if raised is None else replace(paid, loss_bound=None)
    try:
        with uncounted():
            certificate = make(paid, Withholding(found=contradicted, raised=raised))
    except LossBoundError:
        book.amend(look.audit, contradicted=True)
        raise
    keep_losses(certificate)
    return certificate, look.turn


def document(
    context: Context,
    columns: int,
    read: Mapping[str, Any],
    *,
    entries: Sequence[Entry],
    say: Callable[[Context], Verdict] = write_verdict,
    keep_model: bool = True,
    schema: Schema | None = None,
    reference: Mapping[str, Any] | None = None,
) -> Audit:
    """The audit as a document: its sections, its verdict, and the numbers that they were made
    of; ``keep_model``: whether the model can be written beside the page.
    """
    facts, selection = context.certificate.facts, context.selection
    chips = []
    if selection is not None:
        chips.append(f"{selection.name}, chosen among {len(selection.names)}")
    held = (
        "rows measured on"
        if context.time_name
        else "rows held back for this page"
        if selection
        else "rows with answers"
        if context.answers is not None
        else "rows it had not seen"
    )
    chips.append(f"{facts['rows']:,} {held}")
    later = (
        f"{ordinal(context.turn)} audit of these rows"
        if context.turn > 1
        else "no earlier audit known here"
    )
    chips.append("no ledger kept" if context.looked_in is None else later)
    if context.images is not None:
        chips.append(f"images of {in_words(context.images)}")
    chips += ["shows values of single rows"] if context.options.show_rows else []
    chips.append("statistical, not regulatory")
    numbers: dict[str, Any] = {
        "options": context.options.stated(),
        "turn": context.turn,
        "threshold": context.threshold,
    }
    if context.split is not None:
        numbers["split"] = {"rule": context.split.rule}
    if context.seen is not None:
        numbers["seen"] = {"rows": len(context.seen[1]), "hash": fingerprint_rows(*context.seen)}
    if selection is not None:
        numbers["selection"] = {
            "names": selection.names,
            "errors": selection.errors,
            "standard_errors": selection.standard_errors,
            "fold_errors": selection.fold_errors,
            "chosen": selection.chosen,
            "metric": None if selection.metric is None else selection.metric.name,
            "mean_losses": selection.mean_losses,
            "settings": selection.settings,
        }
    verdict = say(context)

    def made(sections: tuple[Section, ...], unfinished: tuple[str, ...] = ()) -> Audit:
        return Audit(
            title=context.title,
            target=context.target,
            rows=len(context.y),
            columns=columns,
            verdict=verdict,
            chips=tuple(chips),
            certificate=context.certificate,
            sections=sections,
            unfinished=unfinished,
            reproduce=context.runner.command,
            numbers={**numbers, **read},
            model=context.model if keep_model else None,
            schema=schema,
            reference=reference,
        )

    def early(sections: tuple[Section, ...], unfinished: tuple[str, ...]) -> None:
        context.runner.early(made(sections, unfinished))

    return made(write_sections(entries, context, early))
