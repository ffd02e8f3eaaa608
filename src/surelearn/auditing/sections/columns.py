"""Sections: what was read and what looks odd; every column with its values, its missing share and
how it goes with the target.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd

from surelearn.auditing.context import Context
from surelearn.auditing.single_rows import FEWEST
from surelearn.auditing.writing import Entry
from surelearn.data.association import as_numbers, cramers_v, levels
from surelearn.data.pixels import in_words
from surelearn.plain import show
from surelearn.report import Chart, PageTable, Section
from surelearn.types import Array

MOST = 100  # columns that are drawn
BINS = 12
VALUES = 6  # of a category, the most frequent
TARGET_PARTS = 5  # of a number to predict
_MEASURED = (
    "Values and associations are those of the rows to fit on; no held-back row takes part. The"
    " association is Cramér's V with Bergsma's correction for chance, from 0 to 1: numbers are cut at"
    " their deciles{target}, and what is missing is a value of its own. It looks at one column at a"
    " time and is no statement about causes."
)


def data(context: Context) -> Section | None:
    """The findings about the data; the table with one row per column stands in the details
    (`section`).
    """
    read = bool(context.columns) or context.answers is not None
    seen = context.findings if read else context.search.found
    findings = [finding for finding in seen if finding.severity != "info"]
    if not context.columns and not findings:
        return None
    notes = () if findings else ("The checks of the columns found nothing odd.",)
    return DATA.says(notes=notes, findings=findings)


def section(context: Context) -> Section | None:
    """Every column with what was done to it, and the most telling ones with their values."""
    if not context.columns:
        return None
    rows = [
        (c.name, c.kind, f"{c.missing:,}", f"{c.distinct:,}", c.note or "as it is")
        for c in context.studied
    ]
    if context.images is not None:
        count = len(context.columns) - len(context.studied)
        said = f"images of {in_words(context.images)}; one mean and one spread scale them all"
        rows.insert(0, (f"{count:,} numbers of pixels", "number", "0", "", said))
    table = PageTable(
        header=("column", "kind", "missing", "distinct", "what was done"), rows=tuple(rows)
    )
    minor = tuple(finding for finding in context.findings if finding.severity == "info")
    target = ", those of the target at its fifths" if context.task == "regression" else ""
    return ENTRY.says(
        notes=(_MEASURED.format(target=target),),
        charts=(_chart(context),),
        tables=(table,),
        findings=minor,
    )


def _chart(context: Context) -> Chart:
    """The target first, then the columns by the strength of their association, then others."""
    X, y = context.rows("train")
    truth = levels(pd.Series(y), TARGET_PARTS, cut=context.task == "regression")
    drawn: list[tuple[float, dict[str, Any]]] = []
    for column in context.studied:
        one: dict[str, Any] = {
            "names": column.name,
            "kinds": column.kind,
            "missing": column.missing / max(1, len(context.y)),
            "distinct": column.distinct,
            "notes": column.note,
            "association": None,
            "bars": (),
            "said": "",
        }
        first = -2.0 if column.kind == "target" else 1.0
        if column.kind == "target":
            one |= _values(pd.Series(y), "number" if context.task == "regression" else "category")
        elif column.name in X.columns and column.kind in ("number", "date", "category"):
            values = X[column.name]
            strength = cramers_v(levels(values, cut=column.kind != "category"), truth)
            one |= {"association": round(strength, 3), **_values(values, column.kind)}
            first = -strength
        drawn.append((first, one))
    drawn.sort(key=lambda item: item[0])
    kept = [one for _, one in drawn[:MOST]]
    columns = {name: [one[name] for one in kept] for name in kept[0]}
    title = "Columns, those that go with the target most first"
    return Chart(kind="columns", title=title, data={**columns, "more": len(drawn) - len(kept)})


def _values(values: pd.Series, kind: str) -> Mapping[str, Any]:
    """The shares that are drawn, and what is said of them; rows that are alone are not told."""
    known = values.dropna()
    if kind == "category":
        counts = known.astype(str).value_counts()
        # equally frequent values in the order of their names
        counts = counts.iloc[np.lexsort((counts.index.to_numpy(str), -counts.to_numpy()))]
        often = counts[counts >= FEWEST][:VALUES]
        shares = [float(count) / max(1, len(known)) for count in often]
        said = [
            f"{name} {show(share, 'rate')}" for name, share in zip(often.index, shares, strict=True)
        ]
        rest = len(counts) - len(often)
        if rest:
            left = 1 - sum(shares)
            shares.append(left)
            said.append(f"{rest:,} {'other' if said else 'values'} {show(left, 'rate')}")
        return {"bars": [round(share, 4) for share in shares], "said": ", ".join(said)}
    x = as_numbers(known)
    x = x[np.isfinite(x)]
    beyond = max(0.01, FEWEST / max(1, x.size))
    if beyond >= 0.5:
        return {}
    low, high = (float(q) for q in np.quantile(x, [beyond, 1 - beyond], method="inverted_cdf"))
    if low == high:
        alone = np.count_nonzero(x == low) < FEWEST
        return {} if alone else {"bars": [1.0], "said": f"mostly {_told(low, kind)}"}
    if not 1e-300 < high - low < 1e300:
        return {}
    low, high = _rounded(x, low, high)
    counts = np.histogram(np.clip(x, low, high), bins=BINS, range=(low, high))[0]
    said = f"{_told(low, kind)} to {_told(high, kind)}"
    return {"bars": (counts / x.size).round(4).tolist(), "said": said}


def _rounded(x: Array, low: float, high: float) -> tuple[float, float]:
    """Both ends, each as it is where `FEWEST` rows have that value, else rounded outwards to one
    digit of their distance: it would be the value of a single row.
    """
    unit = 10.0 ** np.floor(np.log10(high - low))
    if np.count_nonzero(x == low) < FEWEST:
        low = float(np.floor(low / unit) * unit)
    if np.count_nonzero(x == high) < FEWEST:
        high = float(np.ceil(high / unit) * unit)
    return low, high


def _told(value: float, kind: str) -> str:
    if kind == "date":
        return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
    return show(value, "number")


DATA = Entry(key="data", title="Data checks", write=data, required=True)
ENTRY = Entry(key="columns", title="Columns", write=section, place="details")
