"""The sections of a page about answers: those of models that answers allow, and three of their own."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd

from surelearn.auditing.context import Context
from surelearn.auditing.sections import (
    assumptions,
    bounds_compared,
    calibration,
    columns,
    costly,
    coverage,
    next_steps,
    operating_point,
    performance,
    prediction_sets,
    slices,
)
from surelearn.auditing.single_rows import FEWEST
from surelearn.auditing.writing import Entry
from surelearn.plain import show
from surelearn.report import PageTable, Section

MOST = 8  # lines of a table of what goes wrong most
MOST_VALUES = 30  # of a column that errors are counted by
AGREES = 0.25  # Cohen's κ from which a column of labels is taken for other answers


def graded(context: Context) -> Section | None:
    """How often each grade was given."""
    answers = context.answers
    if answers is None or context.task != "losses":
        return None
    grades = np.asarray(answers.grades, dtype=float)
    values, counts = np.unique(grades, return_counts=True)
    if values.size > 12:
        low, high = answers.bounds or (0.0, 1.0)
        counts, edges = np.histogram(grades, bins=10, range=(low, high))
        names = [f"{a:g} to {b:g}" for a, b in pairwise(edges.tolist())]
    else:
        names = [f"{value:g}" for value in values]
    rows = tuple(
        (name, f"{count:,}", show(count / grades.size, "rate"))
        for name, count in zip(names, counts.tolist(), strict=True)
    )
    return GRADES.says(tables=(PageTable(header=("grade", "rows", "share, measured"), rows=rows),))


def raters(context: Context) -> Section | None:
    """Errors against each rater, and how often they agree: measured, and guaranteed."""
    rows = [
        (label, claim)
        for claim, label in context.certificate.rows()
        if claim.quantity in ("rater_error", "rater_agreement", "top_k_error", "label_error")
    ]
    if not rows:
        return None
    cells = tuple(
        (label, "" if claim.measured is None else show(claim.measured, claim.unit), claim.bound())
        for label, claim in rows
    )
    return RATERS.says(tables=(PageTable(header=("rate", "measured", "guaranteed"), rows=cells),))


def where_wrong(context: Context) -> Section | None:
    """Which words are taken for which, and by which values of other columns most goes wrong."""
    answers = context.answers
    if answers is None or context.task == "regression":
        return None
    tables: list[PageTable] = []
    if context.task == "classification":
        said = np.asarray(context.model.predict(context.X))
        bad = np.asarray(said != context.y, dtype=float)
        if len(context.labels) > 2:
            pairs = Counter(
                (str(t), str(a)) for t, a, wrong in zip(context.y, said, bad, strict=True) if wrong
            )
            rows = tuple(
                (true, answer, f"{count:,}")
                for (true, answer), count in pairs.most_common(MOST)
                if count >= FEWEST
            )
            if rows:
                tables.append(PageTable(header=("is", "answered", "rows"), rows=rows))
    else:
        low, high = answers.bounds or (0.0, 1.0)
        bad = 1 - (np.asarray(answers.grades, dtype=float) - low) / (high - low)
    rows = _by_values(answers.beside, bad, context)
    if rows:
        what = "errors" if context.task == "classification" else answers.called
        tables.append(PageTable(header=("where", "rows", f"{what}, measured"), rows=rows))
    if not tables or not bad.any():
        return None
    note = (
        "Measured only, and picked because it is bad: what is guaranteed of a part of the rows needs"
        " the part to be named beforehand, as a slice."
    )
    return WRONG.says(notes=(note,), tables=tuple(tables))


def _by_values(
    beside: pd.DataFrame, bad: np.ndarray, context: Context
) -> tuple[tuple[str, ...], ...]:
    """The values of columns whose rows are worst, beyond what chance gives: three standard errors."""
    overall, spread = float(bad.mean()), float(bad.std())
    found: list[tuple[float, str, int, float]] = []
    for name in beside.columns:
        values = beside[name]
        if values.nunique() > MOST_VALUES or _answers(values, context):
            continue
        for value, rows in pd.Series(bad).groupby(values.to_numpy(), dropna=True):
            excess = (float(rows.mean()) - overall) * np.sqrt(len(rows)) / max(spread, 1e-12)
            if len(rows) >= 2 * FEWEST and excess > 3:
                found.append((excess, f"{name} = {value}", len(rows), float(rows.mean())))
    answers = context.answers
    rate = context.task == "classification"

    def told(mean: float) -> str:
        if rate or answers is None or answers.bounds is None:
            return show(mean, "rate")
        low, high = answers.bounds
        grade = low + (1 - mean) * (high - low)
        return show(grade, "rate" if answers.called.endswith(" rate") else "number")

    worst = sorted(found, reverse=True)[:MOST]
    return tuple((where, f"{count:,}", told(mean)) for _, where, count, mean in worst)


def _answers(values: pd.Series, context: Context) -> bool:
    """Whether a column holds other answers to the same question: words of the truth alone that agree
    with it beyond chance (Cohen's κ), which a feature that says yes or no, or 0 or 1, seldom does.
    """
    said, truth = values.astype(str), pd.Series(np.asarray(context.y, dtype=str))
    words = {*said[values.notna()]}
    if context.task != "classification" or not words <= {*map(str, context.labels)}:
        return False
    if all(map(_is_number, words)):
        return False
    agree = float(np.mean(said.to_numpy() == truth.to_numpy()))
    shares = [column.value_counts(normalize=True) for column in (said, truth)]
    chance = float(shares[0].mul(shares[1], fill_value=0).sum())
    return agree - chance >= AGREES * (1 - chance)


def _is_number(word: str) -> bool:
    """Whether a word is a number, or a truth value."""
    try:
        float(word)
    except ValueError:
        return word.casefold() in ("true", "false")
    return True


GRADES = Entry(key="grades", title="Grades", write=graded)
RATERS = Entry(key="raters", title="Further rates", write=raters)
WRONG = Entry(key="where_wrong", title="Where it errs", write=where_wrong)

ENTRIES: tuple[Entry, ...] = (
    performance.ENTRY,
    GRADES,
    RATERS,
    operating_point.ENTRY,
    costly.ENTRY,
    prediction_sets.ENTRY,
    next_steps.ENTRY,
    slices.ENTRY,
    WRONG,
    calibration.ENTRY,
    coverage.ENTRY,
    columns.DATA,
    assumptions.ENTRY,
    bounds_compared.ENTRY,
)
