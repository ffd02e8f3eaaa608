"""Sections of the page about answers that were counted in one pass: what counts and sums tell."""

from __future__ import annotations

from collections import Counter

from surelearn.auditing.context import Context
from surelearn.auditing.sections.performance import MOST_CLASSES
from surelearn.auditing.single_rows import FEWEST
from surelearn.auditing.writing import Entry
from surelearn.data.counting import HEAD_ROWS
from surelearn.plain import show
from surelearn.report import PageTable, Section

MOST = 8  # lines of a table of what is confused most


def performance(context: Context) -> Section | None:
    """Recall and precision of each class, and the confusion matrix."""
    counted = context.counted
    if counted is None or context.task != "classification":
        return None
    pairs: Counter[tuple[str, str]] = Counter()
    for row, n in counted.cells.items():
        pairs[row.truth, row.answer] += n
    is_, said = Counter[str](), Counter[str]()
    for (truth, answer), n in pairs.items():
        is_[truth] += n
        said[answer] += n

    def share(label: str, n: int) -> str:
        return show(pairs[label, label] / n, "rate") if n else "no such row"

    labels = [str(label) for label in context.labels]
    rates = [
        (label, f"{is_[label]:,}", share(label, is_[label]), share(label, said[label]))
        for label in labels
    ]
    header = ("class", "rows", "recall, measured", "precision, measured")
    tables = [PageTable(header=header, rows=tuple(rates))]
    if len(labels) <= MOST_CLASSES:
        header = ("confusion matrix", *(f"answered {label}" for label in labels))
        rows = [(f"is {t}", *(f"{pairs[t, a]:,}" for a in labels)) for t in labels]
        tables.append(PageTable(header=header, rows=tuple(rows)))
    return PERFORMANCE.says(tables=tables)


def graded(context: Context) -> Section | None:
    """How often each grade was given; of a range of numbers, their mean and spread."""
    counted = context.counted
    if counted is None or context.task != "losses":
        return None
    if counted.sums is not None:
        facts = context.certificate.facts
        spread = facts["loss.variance"] ** 0.5
        units = "rows" if counted.groups is None else "groups"
        row = (f"{facts['loss.n']:,}", show(facts["loss.mean"], "number"), show(spread, "number"))
        header = (units, "mean, measured", "standard deviation, measured")
        return GRADES.says(tables=(PageTable(header=header, rows=(row,)),))
    counts: Counter[float] = Counter()
    for row, n in counted.cells.items():
        counts[row.truth] += n
    rows = tuple(
        (f"{grade:g}", f"{n:,}", show(n / counted.rows, "rate"))
        for grade, n in sorted(counts.items())
    )
    return GRADES.says(tables=(PageTable(header=("grade", "rows", "share, measured"), rows=rows),))


def where_wrong(context: Context) -> Section | None:
    """Which words are taken for which."""
    counted = context.counted
    if counted is None or context.task != "classification" or len(context.labels) <= 2:
        return None
    pairs: Counter[tuple[str, str]] = Counter()
    for row, n in counted.cells.items():
        if row.truth != row.answer:
            pairs[row.truth, row.answer] += n
    most = [(t, a, f"{n:,}") for (t, a), n in pairs.most_common(MOST) if n >= FEWEST]
    if not most:
        return None
    note = (
        "Measured only, and picked because it is bad: what is guaranteed of a part of the rows needs"
        " the part to be named beforehand, as a slice."
    )
    table = PageTable(header=("is", "answered", "rows"), rows=tuple(most))
    return WRONG.says(notes=(note,), tables=(table,))


def one_pass(context: Context) -> Section | None:
    """How the file was read, and what is therefore known of it, and what is not."""
    counted = context.counted
    if counted is None:
        return None
    notes = [
        "The file was read in one pass: counts and sums were kept, no rows. Rates are bounded by"
        " Clopper and Pearson as where rows are kept; gains in rates and mean costs from counts and"
        " sums; mean grades by bets that are fixed for a block of rows by those before it. Such bounds"
        " are somewhat wider than those that bet on each row.",
        f"The file is known by the hash of its bytes ({counted.hash[:19]}…). An earlier look at its"
        f" rows is found by its first {HEAD_ROWS:,} rows and by how often each label occurs, not by"
        " later rows; copies and groups were looked for in the first rows only.",
    ]
    if counted.sums is not None:
        notes.append(
            "Grades were rounded down to a 2²⁴th of their range, those compared with up, and then"
            " added up exactly, in blocks that are drawn by the position of a row and the hash of the file:"
            " how the file is sorted says nothing about its blocks."
        )
    return ONE_PASS.says(notes=notes)


PERFORMANCE = Entry(key="performance", title="Performance", write=performance)
GRADES = Entry(key="grades", title="Grades", write=graded)
WRONG = Entry(key="where_wrong", title="Where it errs", write=where_wrong)
ONE_PASS = Entry(key="one_pass", title="Read in one pass", write=one_pass, place="assumptions")
