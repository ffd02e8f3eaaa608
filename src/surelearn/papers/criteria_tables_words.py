"""What the comparison on real tables says: sentences, tables and figures from its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from surelearn.papers.criteria_tables import (
    AUDIT,
    EVERY,
    LEAST_TABLES,
    Cell,
    CriteriaSettings,
    summarize,
    table_means,
)
from surelearn.papers.criteria_tables_data import SOURCES, load
from surelearn.papers.criteria_tables_families import FAMILIES
from surelearn.papers.criteria_tables_judging import CRITERIA, MOST_ROWS
from surelearn.papers.reproduction import Figure, Outcome, TitledTable
from surelearn.report.document import PageTable

SOURCE = "Beyond the thesis: its comparison of criteria, on real tables"
AUDIT_RULE = "simplest less best"
Summary = Mapping[str, Mapping[str, Mapping[str, Any]]]


def describe(settings: CriteriaSettings, cells: Sequence[Cell]) -> Outcome:
    """The page's content."""
    found = summarize(cells)
    return Outcome(
        source=SOURCE,
        headline=_headline(found),
        findings=(*_used(settings, cells), *_settled(found), *_audit(found), _unsettled(found)),
        figures=tuple(_figure(family, cells) for family in found),
        parts=(
            *(_differences(family, found[family]) for family in found),
            _audit_part(found),
            *(_costs(family, found[family]) for family in found),
            *(_by_table(family, found[family]) for family in found),
            _refused(cells),
        ),
        notes=NOTES,
        numbers={"summary": found, "tables": _rows(settings, cells)},
    )


NOTES = (
    (
        "A table's columns are prepared once, without labels: gaps filled, categories as columns of"
        " 0 and 1, all standardized; words are hashed to 64 columns, images averaged to 7 × 7."
        " Families are judged on the same rows."
    ),
    (
        "The score is the test error of the chosen member, fitted on all n rows, on up to 4,000"
        " other rows of the table; its excess is over the least test error in the family, which is"
        " itself chosen on these rows and so a little too low, for every criterion alike."
    ),
    (
        "Subsamples of a table share rows. So each table counts once, and the intervals over"
        " tables draw whole tables again (10,000 times) or take Student's quantile for the tables'"
        f" means; a difference is called settled (*) where both exclude 0. Below {LEAST_TABLES}"
        " tables none is given. A table's own interval is about other subsamples of that table"
        " only."
    ),
    "Intervals are 95% each: among a hundred of them some exclude 0 by chance.",
    "AIC and BIC choose among the members, from the smallest on, whose likelihood has a maximum.",
    (
        "CPU seconds are those of this run, without the refit that every criterion needs; all other"
        " numbers come back."
    ),
    "Left out for their cost: "
    + ", ".join(f"{name} beyond n = {most}" for name, most in MOST_ROWS.items())
    + ".",
)


# ---- sentences


def _headline(found: Summary) -> str:
    if not any(
        each["difference"]["student"] for by_n in found.values() for each in by_n[EVERY].values()
    ):
        return f"Nothing is settled by fewer than {LEAST_TABLES} tables: give a folder with more."
    better = [
        f"{name} by {-found[family][EVERY][name]['difference']['mean']:.2f} points ({family})"
        for family in found
        for name in _which(found[family][EVERY], family, -1)
    ]
    return (
        "Over all n, settled better than the best by cross-validation:"
        f" {', '.join(better) if better else 'nothing'}."
    )


def _which(at: Mapping[str, Any], family: str, sign: int) -> list[str]:
    """Criteria that are settled to differ from the reference in this direction."""
    return [
        name
        for name, each in at.items()
        if name != FAMILIES[family].reference
        and each["difference"]["settled"]
        and sign * each["difference"]["mean"] > 0
    ]


def _used(settings: CriteriaSettings, cells: Sequence[Cell]) -> tuple[str, ...]:
    tables = dict.fromkeys(cell["table"] for cell in cells)
    named = ", ".join(f"{table} ({SOURCES[table].target})" for table in tables)
    drawn = f"{settings.repeats} subsamples a table at n ≤ 300 and fewer beyond"
    return (f"{len(tables)} tables, {drawn}, {len(cells):,} comparisons in all: {named}.",)


def _settled(found: Summary) -> tuple[str, ...]:
    sentences = []
    for family, by_n in found.items():
        parts = []
        for word, sign in (("better", -1), ("worse", 1)):
            told = [f"{name} ({', '.join(_where(by_n, name, family, sign))})" for name in CRITERIA
                    if _where(by_n, name, family, sign)]  # fmt: skip
            parts.append(f"{word} {'; '.join(told) if told else 'none'}")
        sentences.append(
            f"Among {family}, settled against {FAMILIES[family].reference}: {' · '.join(parts)}."
        )
    return tuple(sentences)


def _where(by_n: Mapping[str, Any], name: str, family: str, sign: int) -> list[str]:
    return [
        at.removeprefix("n = ") for at, each in by_n.items() if name in _which(each, family, sign)
    ]


def _audit(found: Summary) -> tuple[str, ...]:
    """What the one-standard-error rule costs, in the audit's own folds."""
    told = [
        f"{family} {written(by_n[EVERY][AUDIT][AUDIT_RULE])}, a simpler choice in"
        f" {100 * by_n[EVERY][AUDIT]['simpler']:.0f}%"
        for family, by_n in found.items()
    ]
    return (
        (
            "The audit's default takes the simplest candidate within one standard error of the"
            " best. Against the best of the same folds that adds, in points of test error over all"
            f" n: {'; '.join(told)}."
        ),
    )


def _unsettled(found: Summary) -> str:
    few = [
        f"{family} at {at} ({max(each['difference']['tables'] for each in by.values())} tables)"
        for family, by_n in found.items()
        for at, by in by_n.items()
        if max(each["difference"]["tables"] for each in by.values()) < LEAST_TABLES
    ]
    return (
        f"Not settled for want of tables: {'; '.join(few)}."
        if few
        else f"Every n had {LEAST_TABLES} tables or more."
    )


# ---- tables


def written(difference: Mapping[str, Any]) -> str:
    """A mean difference with Student's interval over tables, a star where both intervals exclude 0.

    Examples
    --------
    >>> written({"mean": 0.5, "student": (0.2, 0.8), "settled": True, "tables": 9})
    '+0.50 [+0.20, +0.80] *'
    >>> written({"mean": -0.5, "student": None, "settled": False, "tables": 3})
    '−0.50 (3 tables)'
    """
    mean = signed(difference["mean"])
    if difference["student"] is None:
        return (
            f"{mean} ({difference['tables']} {'table' if difference['tables'] == 1 else 'tables'})"
        )
    return f"{mean} {_interval(difference['student'])}{' *' if difference['settled'] else ''}"


def signed(value: float) -> str:
    """Two decimals with a sign, none for zero."""
    text = f"{value:+.2f}".replace("-", "−")
    return "0.00" if text in ("+0.00", "−0.00") else text


def _interval(ends: Sequence[float]) -> str:
    return f"[{signed(ends[0])}, {signed(ends[1])}]"


def _grid(
    by_n: Mapping[str, Any],
    cell: Callable[[Mapping[str, Any]], str],
    names: Sequence[str] = CRITERIA,
) -> PageTable:
    """A row for each criterion, a column for each n."""
    rows = [
        (name, *(cell(by[name]) if name in by else "–" for by in by_n.values()))
        for name in names
        if any(name in by for by in by_n.values())
    ]
    return PageTable(header=("", *by_n), rows=tuple(rows))


def _differences(family: str, by_n: Mapping[str, Any]) -> TitledTable:
    reference = FAMILIES[family].reference
    others = [name for name in CRITERIA if name != reference]
    return TitledTable(
        title=f"{_titled(family)}: test error above that of {reference}, in points",
        table=_grid(by_n, lambda each: written(each["difference"]), others),
        note="Mean over tables [Student's 95% interval]; * drawing tables again excludes 0 too.",
    )


def _titled(family: str) -> str:
    return family[0].upper() + family[1:]


def _audit_part(found: Summary) -> TitledTable:
    sizes = [*dict.fromkeys(at for by_n in found.values() for at in by_n if at != EVERY), EVERY]
    rows = [
        (family, *(written(by_n[at][AUDIT][AUDIT_RULE]) if at in by_n else "–" for at in sizes))
        for family, by_n in found.items()
    ]
    return TitledTable(
        title=(
            "The audit's default: the simplest within one standard error, less the best of the same"
            " folds, in points"
        ),
        table=PageTable(header=("", *sizes), rows=tuple(rows)),
        note="Folds follow n: three times five below 300 rows, ten up to 5,000, five beyond.",
    )


def _costs(family: str, by_n: Mapping[str, Any]) -> TitledTable:
    at = {name: by for name, by in by_n.items() if name != EVERY}
    return TitledTable(
        title=f"{_titled(family)}: excess over the best member, and cost",
        table=_grid(
            at,
            lambda each: f"{each['excess']:.2f} · {each['fits']:g} · {each['cpu_seconds']:.2g} s",
        ),
        note=(
            "Mean excess in points of test error · fits · CPU seconds (medians); boosting is fitted"
            " once for all sizes."
        ),
    )


def _by_table(family: str, by_n: Mapping[str, Any]) -> TitledTable:
    every = by_n[EVERY]
    names = [name for name in every if name != FAMILIES[family].reference]
    tables = list(
        dict.fromkeys(table for name in names for table in every[name]["difference"]["by table"])
    )
    rows = [
        (table, *(_own(every[name]["difference"]["by table"].get(table)) for name in names))
        for table in tables
    ]
    return TitledTable(
        title=f"{_titled(family)}: every table by itself, over its n",
        table=PageTable(header=("", *names), rows=tuple(rows)),
        note="Mean difference in points [95% interval over subsamples of this table].",
    )


def _own(each: Mapping[str, Any] | None) -> str:
    if each is None:
        return "–"
    return signed(each["mean"]) + (f" {_interval(each['interval'])}" if each["interval"] else "")


def _refused(cells: Sequence[Cell]) -> TitledTable:
    """Why criteria did not answer: the first reason met, and how often."""
    rows = []
    for family in dict.fromkeys(cell["family"] for cell in cells):
        of = [cell["result"]["answers"] for cell in cells if cell["family"] == family]
        if FAMILIES[family].only_resampled:
            rows.append((family, "all but resampling", FAMILIES[family].only_resampled, "all"))
        for name in CRITERIA:
            asked = [answers[name] for answers in of if name in answers]
            reasons = [answer["refused"] for answer in asked if "refused" in answer]
            if reasons:
                rows.append((family, name, reasons[0], f"{len(reasons):,} of {len(asked):,}"))
    return TitledTable(
        title="Refused, and why",
        table=PageTable(header=("", "criterion", "reason", "subsamples"), rows=tuple(rows)),
    )


def _figure(family: str, cells: Sequence[Cell]) -> Figure:
    of = [cell for cell in cells if cell["family"] == family]
    reference = FAMILIES[family].reference
    groups: dict[str, tuple[float, ...]] = {}
    for name in CRITERIA:
        answered = [cell for cell in of if "chosen" in cell["result"]["answers"].get(name, {})]
        if answered and name != reference:
            at = [
                [cell for cell in answered if cell["n"] == n]
                for n in sorted({cell["n"] for cell in answered})
            ]
            groups[name] = tuple(
                mean for each in at for mean in table_means(each, name, reference).values()
            )
    return Figure(
        kind="boxes",
        title=f"{_titled(family)}: test error above that of {reference}",
        groups=groups,
        axis="points of test error, mean of one table at one n",
        note="Right of 0 is worse. Boxes hold half of the tables and n, the diamond is the mean.",
    )


def _rows(settings: CriteriaSettings, cells: Sequence[Cell]) -> dict[str, Any]:
    found = {}
    for table in dict.fromkeys(cell["table"] for cell in cells):
        X, y = load(table, settings.data)
        found[table] = {
            "rows": len(y),
            "columns": X.shape[1],
            "target": SOURCES[table].target,
            "positive": float(y.mean()),
        }
    return found
