"""What is remarkable about a table, seen without fitting a model: findings SL101 to SL112 of
``docs/findings.rst``.

Everything is deterministic; what is expensive looks at no more than `MAX_STUDIED` rows, taken at a
fixed stride.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from surelearn.claim import Finding, Severity
from surelearn.data.columns import Column, Task, Values, is_whole, listed, shown, value_codes

MAX_STUDIED = 20_000
RARE_ROWS, RARE_SHARE = 10, 0.01  # of a class that has fewer
COPIES = 0.999  # a correlation beyond which two columns are copies
# a column gives classes away with so few errors, of all rows and of those of the majority; amounts
# with so large a correlation
TOLD, TOLD_OF_MAJORITY, TOLD_AMOUNTS = 0.005, 0.05, 0.9999
ALIKE, FEWEST_GROUPS = 0.35, 20  # agreement within values that name groups, and how many repeat
MOVED, MOVED_BY_CHANCE = 0.1, 1e-6  # a Kolmogorov–Smirnov distance and its p
Codes = npt.NDArray[np.intp]


def find_oddities(
    frame: pd.DataFrame,
    columns: Sequence[Column],
    y: Values,
    task: Task,
    row_hashes: Values,
    *,
    grouped: bool,
) -> list[Finding]:
    """Everything remarkable about a table that is seen without fitting a model, SL101 to SL112, by
    code.

    Parameters
    ----------
    frame : the table, one row per entry of ``y``
    columns : one description per column of ``frame``
    y : the target
    task : "classification" or "regression"
    row_hashes : one hash per row
    grouped : whether the user already said which rows belong together
    """
    every = np.arange(0, len(y), math.ceil(len(y) / MAX_STUDIED))
    used = [column for column in columns if column.used]
    studied = {column.name: frame[column.name].to_numpy()[every] for column in used}
    numbers = {column.name: studied[column.name] for column in used if column.kind == "number"}
    found = [
        *_column_findings(columns, len(y)),
        *_duplicates(row_hashes),
        *_repeats(studied, numbers),
    ]
    found += _giveaways(studied, numbers, y[every], task)
    found += _drift(numbers, y[every])
    if task == "classification":
        found += _rare_classes(y)
    if not grouped:
        found += _grouped(frame, used, y, task)
    return sorted(_one_reading(found), key=lambda finding: finding.code)


def giveaways(
    frame: pd.DataFrame, columns: Sequence[Column], y: Values, task: Task, *, grouped: bool
) -> list[str]:
    """The columns that give the target away (SL103), as `find_oddities` finds them: what must
    be known before a fit.
    """
    every = np.arange(0, len(y), math.ceil(len(y) / MAX_STUDIED))
    used = [column for column in columns if column.used]
    studied = {column.name: frame[column.name].to_numpy()[every] for column in used}
    numbers = {column.name: studied[column.name] for column in used if column.kind == "number"}
    found = list(_giveaways(studied, numbers, y[every], task))
    if found and not grouped:
        found += _grouped(frame, used, y, task)
    return [finding.numbers["column"] for finding in _one_reading(found) if finding.code == "SL103"]


def _one_reading(found: Sequence[Finding]) -> Iterable[Finding]:
    """A column whose values each have one target names groups where values are many, else it
    gives the target away.
    """
    rows = {f.numbers["column"]: f.numbers["rows_each"] for f in found if f.code == "SL108"}
    told = {f.numbers["column"] for f in found if f.code == "SL103"}
    for finding in found:
        name = finding.numbers.get("column")
        both = name in rows and name in told
        if not both or (finding.code == "SL108") == (rows[name] < 50):
            yield finding


def _column_findings(columns: Sequence[Column], n: int) -> Iterable[Finding]:
    def about(code: str, severity: Severity, text: str, those: list[Column]) -> Iterable[Finding]:
        if those:
            names = [column.name for column in those]
            plural = "Column" if len(names) == 1 else "Columns"
            yield Finding(
                code=code,
                text=f"{plural} {listed(names)}: {text}",
                severity=severity,
                numbers={"columns": names},
            )

    kinds = {
        kind: [c for c in columns if c.kind == kind] for kind in ("identifier", "constant", "text")
    }
    yield from about(
        "SL101", "info", "one value per row, an identifier; not used.", kinds["identifier"]
    )
    yield from about("SL102", "info", "a single value or none; not used.", kinds["constant"])
    yield from about(
        "SL107",
        "info",
        "text with many values; its words and runs of letters are used.",
        kinds["text"],
    )
    mostly = [
        column
        for column in columns
        if column.missing > n / 2 and (column.used or column.kind == "identifier")
    ]
    yield from about("SL112", "notice", "more than half of the values are missing.", mostly)


def _duplicates(row_hashes: Values) -> Iterable[Finding]:
    copies = len(row_hashes) - len(pd.unique(row_hashes))
    if copies:
        share = copies / len(row_hashes)
        text = f"{copies:,} of {len(row_hashes):,} rows repeat an earlier row exactly."
        severity = "notice" if share >= 0.01 else "info"
        yield Finding(
            code="SL104", text=text, severity=severity, numbers={"rows": copies, "share": share}
        )


def _rare_classes(y: Values) -> Iterable[Finding]:
    names, counts = np.unique(y, return_counts=True)
    rare = (counts < RARE_ROWS) | (counts < RARE_SHARE * len(y))
    if rare.any():
        few = dict(zip(names[rare].tolist(), counts[rare].tolist(), strict=True))
        said = ", ".join(f"{shown(name)} ({count})" for name, count in list(few.items())[:5])
        text = (
            f"{len(few)} of {len(names)} classes have fewer than {RARE_ROWS} rows or"
            f" {RARE_SHARE:.0%} of them:"
            f" {said}{', …' * (len(few) > 5)}."
        )
        yield Finding(code="SL105", text=text, severity="warning", numbers={"classes": few})


def few_values(target: str, y: Values, task: Task, *, chosen: bool) -> Iterable[Finding]:
    """SL106: a target of numbers with few values can be meant either way; two values are
    plainly classes.
    """
    if chosen or y.dtype.kind not in "iuf":
        return
    distinct = len(pd.unique(y))
    if task == "classification" and distinct > 2:
        said = (
            f"has {distinct} different whole numbers, treated as classes; --task regression treats"
            " them as amounts."
        )
    elif task == "regression" and distinct <= 20:
        said = (
            f"has only {distinct} different values, treated as amounts; --task classification"
            " treats them as classes."
        )
    else:
        return
    text = f"Target {shown(target)} {said}"
    yield Finding(code="SL106", text=text, severity="notice", numbers={"distinct": distinct})


def _repeats(studied: dict[str, Values], numbers: dict[str, Values]) -> Iterable[Finding]:
    """Columns that are copies: a renaming value by value, or |correlation| > 0.999."""
    pairs, seen = set(), {}
    for name, values in studied.items():
        codes = value_codes(values)
        # values that never repeat rename each other trivially
        if codes.max(initial=0) + 1 <= len(codes) / 2:
            first = seen.setdefault(codes.tobytes(), name)
            pairs |= {(first, name)} if first != name else set()
    pairs |= _correlated(numbers)
    if pairs:
        order = {name: i for i, name in enumerate(studied)}
        ordered = sorted(pairs, key=lambda pair: (order[pair[0]], order[pair[1]]))
        said = "; ".join(f"{shown(a)} and {shown(b)}" for a, b in ordered[:3])
        text = (
            f"{len(pairs):,} pair{'s' * (len(pairs) > 1)} of columns repeat each other:"
            f" {said}{'; …' * (len(pairs) > 3)}."
        )
        yield Finding(
            code="SL111",
            text=text,
            severity="info",
            numbers={"pairs": len(pairs), "columns": ordered[:20]},
        )


def _correlated(numbers: dict[str, Values]) -> set[tuple[str, str]]:
    names = list(numbers)
    if len(names) < 2:
        return set()
    # correlations of all pairs at once, on evenly spaced rows where there are many
    n = len(numbers[names[0]])
    rows = np.arange(0, n, max(1, math.ceil(n * len(names) ** 2 / 2e10)))
    values = np.column_stack([numbers[name][rows].astype(float) for name in names])
    means = np.nansum(values, axis=0) / np.maximum(np.sum(~np.isnan(values), axis=0), 1)
    values = np.nan_to_num(values - means)
    norms = np.linalg.norm(values, axis=0)
    varies = np.flatnonzero(norms > 0)
    values = values[:, varies] / norms[varies]
    left, right = np.nonzero(np.triu(np.abs(values.T @ values) > COPIES, k=1))
    return {(names[varies[i]], names[varies[j]]) for i, j in zip(left, right, strict=True)}


def _giveaways(
    studied: dict[str, Values], numbers: dict[str, Values], y: Values, task: Task
) -> Iterable[Finding]:
    """Columns that alone tell the target almost perfectly."""
    target = value_codes(y)
    for name, values in studied.items():
        if task == "regression":
            told = _tells_amounts(values, y.astype(float), is_number=name in numbers)
            measure, said = "r_squared", "tells the target almost exactly"
        else:
            told = _tells_classes(values, target, is_number=name in numbers)
            measure, said = "accuracy", "alone tells the class almost perfectly"
        if told is not None:
            text = (
                f"Column {shown(name)} {said}: if it is not known when predicting, pass --drop"
                f" {shown(name)}."
            )
            yield Finding(
                code="SL103", text=text, severity="serious", numbers={"column": name, measure: told}
            )


def _tells_classes(values: Values, y: Codes, *, is_number: bool) -> float | None:
    """The accuracy of the best rule from this column alone, if it is nearly perfect.

    At most 0.5% errors, or 5% of the errors of the majority where that is less.
    """
    n, classes = len(y), int(y.max()) + 1
    allowed = min(TOLD, TOLD_OF_MAJORITY * (1 - np.bincount(y).max() / n)) * n
    errors, fewest = _errors_by_value(value_codes(values), y)
    if fewest > allowed:
        return None
    if is_number and errors > allowed and classes <= 20:
        errors = _errors_by_interval(values.astype(float), y, classes, allowed)
    return 1 - errors / n if errors <= allowed else None


def _pairs(codes: Codes, y: Codes) -> tuple[Codes, Codes, Codes]:
    """Each row's pair of value and class, the value of each pair, and how many rows have it."""
    classes = int(y.max()) + 1
    at, pairs = pd.factorize(codes * classes + y)
    return at, np.asarray(pairs) // classes, np.bincount(at)


def _errors_by_value(codes: Codes, y: Codes) -> tuple[int, int]:
    """Errors of "the most frequent class among the other rows with this value", and "among all rows
    with this value".

    The first is fair, by leaving one out; no rule from this column alone makes fewer errors than
    the second.
    """
    _, value, counts = _pairs(codes, y)
    largest = np.zeros(codes.max() + 1, dtype=np.int64)
    np.maximum.at(largest, value, counts)
    first = counts == largest[value]
    second = np.zeros_like(largest)
    np.maximum.at(second, value, np.where(first, 0, counts))
    alone = np.bincount(value, weights=first) == 1
    right = first & alone[value] & (counts - 1 > second[value])
    return len(y) - int(counts[right].sum()), len(y) - int(largest.sum())


def _errors_by_interval(x: Values, y: Codes, classes: int, allowed: float) -> int:
    """Fewest errors of a rule that cuts the number line into at most K + 1 intervals, one class
    each; missing is its own.

    With E_c(i) the rows among the first i that are not of class c, the fewest errors with s
    intervals is f_s(i) = min_c [E_c(i) + min_{j ≤ i} (f_{s−1}(j) − E_c(j))], j a place between two
    different values.
    """
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    absent = np.isnan(x)
    missed = int(absent.sum() - np.bincount(y[absent], minlength=1).max())
    x, y = x[~absent], y[~absent]
    if len(y) < 2 or np.count_nonzero(y[1:] != y[:-1]) > 2 * (classes + allowed):
        return len(y)
    wrong = np.vstack([np.zeros(classes), np.cumsum(y[:, None] != np.arange(classes), axis=0)])
    cut = np.concatenate([[True], x[1:] != x[:-1], [True]])
    fewest = np.where(np.arange(len(cut)) == 0, 0.0, np.inf)
    for _ in range(classes + 1):
        start = np.where(cut[:, None], fewest[:, None] - wrong, np.inf)
        fewest = np.minimum(fewest, np.min(wrong + np.minimum.accumulate(start, axis=0), axis=1))
    return int(fewest[-1]) + missed


def _tells_amounts(values: Values, y: Values, *, is_number: bool) -> float | None:
    """The share of the target's variance told by this column alone, linearly, by rank or by
    value, if above 0.9998.
    """
    if is_number:
        x = values.astype(float)
        known = np.isfinite(x)
        if known.mean() < 0.5 or len(np.unique(x[known])) < 10:
            return None
        r = max(
            abs(_correlation(x[known], y[known])),
            abs(_correlation(_ranks(x[known]), _ranks(y[known]))),
        )
        return r * r if r > TOLD_AMOUNTS else None
    codes = value_codes(values)
    counts = np.bincount(codes)
    if (counts[codes] > 1).mean() < 0.5:
        return None
    means = np.bincount(codes, weights=y) / counts
    # the residual without the row itself
    others = (y - means[codes]) * counts[codes] / np.maximum(counts[codes] - 1, 1)
    explained = 1 - np.mean(others**2) / max(np.var(y), np.finfo(float).tiny)
    return float(explained) if explained > 0.9998 else None


def _ranks(x: Values) -> Values:
    return pd.Series(x).rank().to_numpy()


def _correlation(a: Values, b: Values) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / scale if scale > 0 else 0.0


def _grouped(
    frame: pd.DataFrame, used: Sequence[Column], y: Values, task: Task
) -> Iterable[Finding]:
    """Columns whose rows with the same value share the target far more than chance, as visits
    of one patient do.
    """
    target = y.astype(float) if task == "regression" else value_codes(y)
    for column in used:
        if column.kind == "date" or not FEWEST_GROUPS <= column.distinct <= len(y) / 1.2:
            continue
        values = frame[column.name].to_numpy()
        if column.kind == "number" and not is_whole(values[~pd.isna(values)]):
            continue
        codes, words = pd.factorize(values, sort=column.kind == "number")
        few = (codes >= 0) & (codes % math.ceil(len(y) / MAX_STUDIED) == 0)
        alike = _agreement(codes[few], target[few], task) if few.any() else 0.0
        if alike >= ALIKE and (
            column.kind != "number" or _smoothness(codes[few], target[few], task) < alike / 2
        ):
            groups = len(words)
            said = (
                f"Rows with the same {shown(column.name)} share the target far more often than"
                f" chance ({groups:,} values)"
            )
            text = f"{said}: if they belong together, pass --group {shown(column.name)}."
            numbers = {
                "column": column.name,
                "groups": groups,
                "rows_each": len(y) / groups,
                "agreement": alike,
            }
            yield Finding(code="SL108", text=text, severity="warning", numbers=numbers)


def _agreement(codes: Codes, y: Values, task: Task) -> float:
    """How alike the target is among rows with the same value; 0 is chance and 1 is equality.

    Classes: (A − C)/(1 − C) with A the share of equal pairs of rows and C that of pairs at random.
    Amounts: the correlation of a row with the mean of the other rows, as a share of the variance.
    """
    sizes = np.bincount(codes)
    shared = int(sizes[sizes > 1].sum())
    if np.sum(sizes > 1) < FEWEST_GROUPS or shared < 0.2 * len(y):
        return 0.0
    if task == "classification":
        _, value, counts = _pairs(codes, y)
        equal = float(np.sum(counts * (counts - 1) / np.maximum(sizes[value] - 1, 1))) / shared
        chance = float(np.sum((np.bincount(y) / len(y)) ** 2))
        return (equal - chance) / (1 - chance) if chance < 1 else 0.0
    z = y - y.mean()
    many = sizes[codes] > 1
    others = (np.bincount(codes, weights=z)[codes] - z)[many] / (sizes[codes][many] - 1)
    return float(np.mean(z[many] * others)) / max(float(np.var(y)), np.finfo(float).tiny)


def _smoothness(codes: Codes, y: Values, task: Task) -> float:
    """How alike the target is between neighboring values, likewise.

    A number that is a feature resembles its neighbors; one that only names a group does not.
    """
    z = np.eye(int(y.max()) + 1)[y] if task == "classification" else y[:, None]
    z = z - z.mean(axis=0)
    sizes = np.bincount(codes)
    means = (
        np.column_stack([np.bincount(codes, weights=part) for part in z.T])[sizes > 0]
        / sizes[sizes > 0, None]
    )
    return float(np.mean(np.sum(means[1:] * means[:-1], axis=1))) / float(
        np.mean(np.sum(z * z, axis=1))
    )


def _drift(numbers: dict[str, Values], y: Values) -> Iterable[Finding]:
    """Numbers, or the target, that differ between the first and the last quarter of the rows.

    Two-sample Kolmogorov–Smirnov with its limiting distribution, which is conservative with ties: a
    distance of at least 0.1 and p below 10⁻⁶ divided by the number of columns.
    """
    from scipy.special import kolmogorov

    quarter = len(y) // 4
    target = y if y.dtype.kind in "iuf" else np.unique(y, return_inverse=True)[1]
    moved = {}
    for name, values in [("the target", target), *numbers.items()]:
        first, last = (
            np.sort(part[~pd.isna(part)].astype(float))
            for part in (values[:quarter], values[-quarter:])
        )
        if min(len(first), len(last)) == 0:
            continue
        places = np.concatenate([first, last])
        shares = [np.searchsorted(part, places, side="right") / len(part) for part in (first, last)]
        distance = float(np.max(np.abs(shares[0] - shares[1])))
        size = len(first) * len(last) / (len(first) + len(last))
        by_chance = MOVED_BY_CHANCE / (len(numbers) + 1)
        if distance >= MOVED and kolmogorov(distance * math.sqrt(size)) < by_chance:
            moved[name] = distance
    if moved:
        worst = sorted(moved, key=lambda name: -moved[name])
        said = ", ".join(name if name == "the target" else shown(name) for name in worst[:3])
        more = f" and {len(worst) - 3:,} more" if len(worst) > 3 else ""
        text = (
            f"The first and the last quarter of the rows differ in {said}{more}: rows are sorted or"
            " change over time; if they have a time order, pass --time COLUMN."
        )
        numbers_found = {"columns": worst[:20], "distance": moved[worst[0]]}
        yield Finding(code="SL109", text=text, severity="notice", numbers=numbers_found)
