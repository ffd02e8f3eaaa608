"""Section: errors on what the fit rows have nothing like, beside the error on all held-back
rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.headline import number
from surelearn.auditing.writing import Entry
from surelearn.claim import Claim
from surelearn.data import Table
from surelearn.data.novelty import Compared, Novelty
from surelearn.measurement import LOSSES, Mask
from surelearn.plain import show
from surelearn.quantities import NOVEL
from surelearn.report import PageTable, Section
from surelearn.selection.split import Split
from surelearn.subject import predict_with
from surelearn.subject.refitting import take
from surelearn.types import TableRows


def compare_table(table: Table, split: Split, columns: list[str]) -> Compared | None:
    """Which certify rows are like fit or select rows; None with groups, which are held back as
    a whole.
    """
    if table.groups is not None:
        return None
    X = table.X[columns]
    return compare_rows(take(X, np.union1d(split.fit, split.select)), take(X, split.certify))


def compare_rows(fitted: TableRows, X: TableRows) -> Compared | None:
    """Which rows are like those fitted on, by features; None for a sparse matrix."""
    return None if hasattr(X, "tocsr") else Novelty(fitted, len(X)).compare(X)


def section(context: Context) -> Section | None:
    """The error on copies, without copies, and on contents without a near copy."""
    compared = context.compared
    if compared is None or not compared.near.any():
        return None
    losses, novel = _losses(context), _claim(context)
    unit = "rate" if context.task == "classification" else "number"

    def line(name: str, rows: Mask, claim: Claim | None = None) -> tuple[str, ...]:
        measured = show(float(losses[rows].mean()), unit) if rows.any() else "nothing can be said"
        return name, f"{int(rows.sum()):,}", measured, "" if claim is None else claim.bound()

    rows = [line("all held-back rows", np.ones(losses.size, dtype=bool), _headline(context))]
    rows.append(line("copies of a fit row", compared.copies))
    rows.append(line("without copies", ~compared.copies))
    rows.append(line(f"{NOVEL}, each counted once", compared.novel, novel))
    error = "errors" if unit == "rate" else f"mean {context.options.loss} loss"
    table = PageTable(
        header=("held-back rows", "rows", f"{error}, measured", "guaranteed"), rows=tuple(rows)
    )
    return ENTRY.says(notes=_notes(compared, claimed=novel is not None), tables=(table,))


def nothing_near(context: Context) -> tuple[str, ...]:
    """The note that no held-back row is like a fit row, where that is so."""
    compared = context.compared
    if compared is None or compared.near.any():
        return ()
    return (
        (
            f"No held-back row has a {'near copy' if compared.looks_near else 'copy'} among the fit"
            " rows."
        ),
    )


def sentence(context: Context) -> str:
    """What the verdict adds where copies are frequent among the fit rows, with a space before
    it; else nothing.
    """
    compared = context.compared
    if compared is None or not compared.frequent:
        return ""
    what = "near copy" if compared.looks_near else "copy"
    said = (
        f" {show(float(compared.near.mean()), 'rate')} of the held-back rows have a {what} among"
        " the fit rows; "
    )
    if not compared.novel.any():
        return (
            f"{said}nothing can be said about contents without one, because no such row was held"
            " back."
        )
    claim = _claim(context)
    if claim is not None:
        what = "errors" if claim.quantity == "novel_risk" else f"mean {context.options.loss} loss"
        return (
            f"{said}at most **{show(number(claim), claim.unit, '<=')} {what} on contents without"
            " one**."
        )
    if not compared.planned:
        return f"{said}too few have none to guarantee anything about contents without one."
    measured = float(_losses(context)[compared.novel].mean())
    unit = "rate" if context.task == "classification" else "number"
    what = "errors" if unit == "rate" else f"mean {context.options.loss} loss"
    return f"{said}{show(measured, unit)} {what} on contents without one (measured)."


def _notes(compared: Compared, *, claimed: bool) -> list[str]:
    notes = [
        "A copy has the features of a fit row: a model that memorizes rows cannot err on it, if"
        " labels agree."
    ]
    if compared.looks_near:
        notes.append(
            "A near copy agrees in categories and lies closer to a fit row than one independent row"
            " in a hundred would, seen from the density of the fit rows."
        )
    else:
        notes.append(
            "Near copies were not looked for, because too few columns are continuous or there are"
            " too many rows to compare."
        )
    if claimed:
        notes.append(
            f"The guarantee in the last row is about {NOVEL}, each counted once, not about new"
            " patients."
        )
        notes.append(
            "Contents with many copies are rarely held back with all of them: they are assumed to"
            " be no harder."
        )
    elif compared.planned:
        notes.append(f"What was measured on {NOVEL} guarantees nothing here.")
    else:
        notes.append(
            "Too few fit rows have a near copy, or too few have none, to set a share of δ aside:"
            " the last row is only measured."
        )
    return notes


def _losses(context: Context) -> Any:
    X, y = context.rows("certify")
    predicted = np.asarray(predict_with(context.model, context.classes or None)(X))
    if context.task == "classification":
        return np.asarray(predicted != y, dtype=float)
    return LOSSES[context.options.loss](predicted.astype(float) - y)


def _claim(context: Context) -> Claim | None:
    return next(
        (c for c in context.certificate.together if c.quantity in ("novel_risk", "novel_loss")),
        None,
    )


def _headline(context: Context) -> Claim | None:
    return next(
        (c for c in context.certificate.together if c.quantity in ("risk", "mean_loss")), None
    )


ENTRY = Entry(key="novelty", title="Duplicates and near duplicates", write=section)
