"""Drift without labels: whether new rows, or the scores they get, look like the certify rows. A
finding, not a guarantee.

Each column is cut into bins that were fixed before the certify rows were counted: ranges between
the deciles of the fit rows, or the categories they had, and two more for values that are neither
("other") and for missing ones. New rows are counted in the same bins, in as many batches as one
likes, and compared by a two-sample chi-square test a column, with Holm's correction: if no column
changed, any finding is made with probability about 1% (one look; for more see `Looks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from surelearn.claim import Finding
from surelearn.documents import check_format, checked, reading
from surelearn.monitoring.labels import word
from surelearn.types import AnyArray, Array, Ints, Plain

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "surelearn-reference"
VERSION = 1
FAMILYWISE = 0.01
FEWEST_ROWS = 30
FEWEST_EXPECTED = 5.0
MOST_CATEGORIES = 50
KINDS = ("number", "category", "text", "date")
Counts = Ints


@dataclass(frozen=True, kw_only=True)
class Bins:
    """How a column's values are counted: in ranges (e₁ and below, above e₁ to e₂, …) or categories,
    "other", "missing".

    Attributes
    ----------
    name : the column's, or the score's
    kind : "number", "category", "text" (the length counts) or "date" (days since 1970)
    role : "input" or "score"
    edges : e₁ < e₂ < …; empty for a category
    known : the categories; empty for the other kinds
    """

    name: str
    kind: Literal["number", "category", "text", "date"]
    role: Literal["input", "score"]
    edges: tuple[float, ...] = ()
    known: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many bins there are."""
        return (len(self.known) if self.kind == "category" else len(self.edges) + 1) + 2

    def count(self, values: AnyArray) -> Counts:
        """Counts of values, by bin."""
        if self.kind == "category":
            codes, words = _words(values)
            place = {word: i for i, word in enumerate(self.known)}
            index = np.array([*(place.get(word, len(place)) for word in words), len(place) + 1])
            return np.bincount(index[codes], minlength=self.size)
        numbers, absent = _numbers(values, self.kind)
        readable = numbers[~np.isnan(numbers)]
        counts = np.bincount(
            np.searchsorted(self.edges, readable, side="left"), minlength=len(self.edges) + 1
        )
        return np.append(counts, [len(numbers) - len(readable), absent])


@dataclass(frozen=True, eq=False)
class Reference:
    """The certify rows' inputs and scores as counts, to compare new rows with.

    Attributes
    ----------
    rows : how many certify rows were counted
    bins : the bins of each column and score
    counts : how many certify rows fell into each bin

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> fit, certify, live = (pd.DataFrame({"age": rng.normal(40, 12, n)}) for n in (1000, 500, 500))
    >>> reference = Reference.from_rows(fit, certify, {"age": "number"})
    >>> drift(reference, live)
    []
    >>> print(*drift(reference, live + 6))
    Column 'age': 49% of rows are above 45.42, 35% among the certify rows. (SL501, notice)
    """

    rows: int
    bins: tuple[Bins, ...]
    counts: tuple[tuple[int, ...], ...]

    @classmethod
    def from_rows(
        cls,
        X_edges: pd.DataFrame,
        X: pd.DataFrame,
        kinds: Mapping[str, str],
        scores: Mapping[str, Any] | None = None,
    ) -> Reference:
        """Fix the bins and count the certify rows.

        Parameters
        ----------
        X_edges : fit rows, a pandas data frame: they decide where the bins are
        X : certify rows, likewise: they are counted
        kinds : "number", "category", "text" or "date" for each column to compare
        scores : by name, one value a certify row: fractions such as the probability of the answer
            are cut at their own deciles, anything else (predicted labels) is a category
        """
        for name, kind in kinds.items():
            if kind not in KINDS:
                raise ValueError(
                    f"column {name!r} is of kind {kind!r}: only {', '.join(KINDS)} can be compared"
                )
        made = [_bins(name, kind, "input", _column(X_edges, name)) for name, kind in kinds.items()]
        for name, values in (scores or {}).items():
            column = np.asarray(values)
            made.append(
                _bins(name, "number" if column.dtype.kind == "f" else "category", "score", column)
            )
        empty = cls(0, tuple(made), tuple((0,) * bins.size for bins in made))
        counter = empty.counter().add(X, scores)
        return cls(
            counter.rows, empty.bins, tuple(tuple(counts.tolist()) for counts in counter.counts)
        )

    def counter(self) -> Counter:
        """An empty count of new rows."""
        return Counter(self)

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        columns = [
            {**asdict(bins), "counts": list(counts)}
            for bins, counts in zip(self.bins, self.counts, strict=True)
        ]
        columns = [
            {**column, "edges": list(column["edges"]), "known": list(column["known"])}
            for column in columns
        ]
        return {"format": FORMAT, "version": VERSION, "rows": self.rows, "columns": columns}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Reference:
        """Read what `to_dict` wrote; anything else is refused with a `ValueError` that says why."""
        check_format(plain, "a reference for drift", FORMAT, VERSION)
        with reading("the reference for drift"):
            bins = tuple(
                checked(Bins(**{f.name: _frozen(column[f.name]) for f in fields(Bins)}))
                for column in plain["columns"]
            )
            made = checked(
                cls(
                    plain["rows"],
                    bins,
                    tuple(tuple(column["counts"]) for column in plain["columns"]),
                )
            )
        for each, count in zip(bins, made.counts, strict=True):
            sound = (
                each.kind in KINDS
                and each.role in ("input", "score")
                and list(each.edges) == sorted(set(each.edges))
            )
            if not sound or len(count) != each.size or min(count) < 0 or sum(count) != made.rows:
                raise ValueError(
                    f"the reference for drift is damaged: column {each.name!r:.80} cannot be right"
                )
        return made


class Counter:
    """New rows counted in a reference's bins, batch by batch; ``rows`` says how many."""

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.rows = 0
        self.counts = [np.zeros(bins.size, dtype=np.int64) for bins in reference.bins]

    def add(self, X: pd.DataFrame, scores: Mapping[str, Any] | None = None) -> Counter:
        """Count some rows: a pandas data frame with the reference's columns, and the same
        scores.
        """
        found = []
        for bins in self.reference.bins:
            if bins.role == "input":
                found.append(bins.count(_column(X, bins.name)))
            elif scores is None or bins.name not in scores:
                raise ValueError(
                    f"score {bins.name!r} is missing: the reference has it, so new rows must have"
                    " it too"
                )
            else:
                found.append(bins.count(np.asarray(scores[bins.name])))
            if found[-1].sum() != len(X):
                raise ValueError(
                    f"score {bins.name!r} has {found[-1].sum()} values, X has {len(X)} rows"
                )
        self.counts = [total + new for total, new in zip(self.counts, found, strict=True)]
        self.rows += len(X)
        return self

    def findings(self, level: float = FAMILYWISE) -> list[Finding]:
        """SL501 for each column and SL502 for each score that changed, the most surprising first.

        If nothing changed there is any with probability about ``level``. That is for one look:
        whoever looks often, or at a file that grows, uses `Looks`, which divides it.
        """
        return _findings(self.reference, self.counts, self.rows, level)


def drift(
    reference: Reference, X: pd.DataFrame, scores: Mapping[str, Any] | None = None
) -> list[Finding]:
    """What differs between new rows and the certify rows; for rows in several pieces see
    `Reference.counter`.
    """
    return reference.counter().add(X, scores).findings()


def holm(p_values: npt.ArrayLike, level: float) -> npt.NDArray[np.bool_]:
    """Which hypotheses are rejected so that any true one is with probability at most ``level``.

    S. Holm, Scand. J. Statist. 6 (1979), 65–70: the k-th smallest p value of m is compared with
    level/(m − k + 1), until one is larger.

    Examples
    --------
    >>> holm([0.004, 0.6, 0.0001], 0.01).tolist()
    [True, False, True]
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    kept = np.logical_and.accumulate(p[order] <= level / np.arange(p.size, 0, -1))
    rejected = np.zeros(p.size, dtype=bool)
    rejected[order] = kept
    return rejected


def merge(reference: Counts, new: Counts, *, ordered: int) -> npt.NDArray[np.int64]:
    """Both rows of counts with bins merged until each expects at least five rows, however few
    samples there are.

    The first ``ordered`` bins are ranges: neighbors are merged. The others are merged with each
    other and, where that is not enough, with the smallest of the rest.
    """
    table = np.array([reference, new])
    rarer = table.sum(axis=1).min() / table.sum()
    cells: list[Any] = []
    for column in table.T[:ordered]:
        if cells and cells[-1].sum() * rarer < FEWEST_EXPECTED:
            cells[-1] = cells[-1] + column
        else:
            cells.append(column)
    if len(cells) > 1 and cells[-1].sum() * rarer < FEWEST_EXPECTED:
        cells[-2:] = [cells[-2] + cells[-1]]
    rest = list(table.T[ordered:])
    cells += [column for column in rest if column.sum() * rarer >= FEWEST_EXPECTED]
    few = sum(
        (column for column in rest if column.sum() * rarer < FEWEST_EXPECTED),
        np.zeros(2, dtype=table.dtype),
    )
    cells.sort(key=lambda column: column.sum())
    if few.sum() * rarer >= FEWEST_EXPECTED or not cells:
        cells.append(few)
    else:
        cells[0] = cells[0] + few
    return np.array([column for column in cells if column.sum() > 0]).T


def _findings(reference: Reference, counts: list[Counts], rows: int, level: float) -> list[Finding]:
    if min(rows, reference.rows) < FEWEST_ROWS:
        whose, n = (
            ("new rows", rows) if rows <= reference.rows else ("certify rows", reference.rows)
        )
        text = f"Only {n} {whose}: too few to look for drift, which takes {FEWEST_ROWS}."
        return [
            Finding(
                code="SL501", text=text, numbers={"rows": rows, "reference_rows": reference.rows}
            )
        ]
    from scipy.stats import chi2_contingency

    p_values = []
    for bins, old, new in zip(reference.bins, reference.counts, counts, strict=True):
        table = merge(
            np.array(old), new, ordered=len(bins.edges) + 1 if bins.kind != "category" else 0
        )
        p_values.append(float(chi2_contingency(table)[1]) if table.shape[1] > 1 else 1.0)
    changed = np.flatnonzero(holm(p_values, level))
    found = []
    for i in sorted(changed, key=lambda i: p_values[i]):
        bins, old, new = (
            reference.bins[i],
            np.array(reference.counts[i]) / reference.rows,
            counts[i] / rows,
        )
        distance = float(np.abs(old - new).sum() / 2)
        what, code = ("Column", "SL501") if bins.role == "input" else ("Score", "SL502")
        found.append(
            Finding(
                code=code,
                text=(
                    f"{what} {bins.name!r}: {_most_changed(bins, old, new)} among the certify rows."
                ),
                severity="warning" if distance >= 0.25 else "notice",
                numbers={
                    "column": bins.name,
                    "p": p_values[i],
                    "distance": distance,
                    "rows": rows,
                    "reference_rows": reference.rows,
                },
            )
        )
    return found


def _most_changed(bins: Bins, old: Array, new: Array) -> str:
    """What differs most between the shares of bins: "31% of rows are above 54, 10%"."""
    new_value = (
        "have a value not seen before"
        if len(bins.known) < MOST_CATEGORIES
        else "have a rare or new value"
    )
    strange = {"category": new_value, "date": "hold no date there"}.get(
        bins.kind, "hold no number there"
    )
    said = {f"of rows {strange}": (new[-2], old[-2]), "of rows have no value": (new[-1], old[-1])}
    if bins.kind == "category":
        said |= {f"of rows are {name!r}": (new[i], old[i]) for i, name in enumerate(bins.known)}
    more, less, unit = {
        "text": ("have more than", "have at most", " characters"),
        "date": ("are after", "are up to", ""),
    }.get(bins.kind, ("are above", "are at most", ""))
    whose = "of rows" if old[-2:].sum() + new[-2:].sum() == 0 else "of rows with a value"
    now, before = (part[:-2] / max(part[:-2].sum(), 1e-300) for part in (new, old))
    for i, edge in enumerate(bins.edges, start=1):
        shown = str(np.datetime64(int(edge), "D")) if bins.kind == "date" else f"{edge:.15g}"
        said[f"{whose} {more} {shown}{unit}"] = (now[i:].sum(), before[i:].sum())
        said[f"{whose} {less} {shown}{unit}"] = (now[:i].sum(), before[:i].sum())
    phrase, shares = max(
        said.items(),
        key=lambda item: (round(abs(item[1][0] - item[1][1]), 9), item[1][0] > item[1][1]),
    )
    return f"{_percent(shares[0])} {phrase}, {_percent(shares[1])}"


def _percent(share: float) -> str:
    digits = 0 if 0.02 <= share <= 0.98 or share in (0, 1) else 1 if 0.001 <= share <= 0.999 else 2
    return f"{100 * share:.{digits}f}%"


def _bins(name: str, kind: Any, role: Literal["input", "score"], values: AnyArray) -> Bins:
    """Where the bins of a column are, from the rows that decide it."""
    if kind == "category":
        codes, words = _words(values)
        often = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(words)), kind="stable")[
            :MOST_CATEGORIES
        ]
        return Bins(
            name=name, kind=kind, role=role, known=tuple(dict.fromkeys(words[i] for i in often))
        )
    numbers, _ = _numbers(values, kind)
    numbers = numbers[np.isfinite(numbers)]
    deciles = (
        np.quantile(numbers, np.arange(1, 10) / 10, method="inverted_cdf")
        if numbers.size
        else np.empty(0)
    )
    return Bins(
        name=name,
        kind=kind,
        role=role,
        edges=(
            tuple(np.unique(deciles).tolist()) if kind == "date" else _rounded(np.unique(deciles))
        ),
    )


def _rounded(edges: npt.NDArray[np.float64]) -> tuple[float, ...]:
    """Edges with as few digits as keep them apart, so that they are used as they are printed."""
    for digits in range(4, 17):
        rounded = [float(f"{edge:.{digits}g}") for edge in edges]
        if len(set(rounded)) == len(edges):
            return tuple(rounded)
    return tuple(edges.tolist())


def _column(X: pd.DataFrame, name: str) -> Any:
    if name not in X.columns:
        raise ValueError(f"the rows have no column {name!r}, which the certify rows had")
    return X[name].to_numpy()


def _words(values: AnyArray) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Values as positions in a list of text; −1 for missing."""
    import pandas as pd

    codes, distinct = pd.factorize(np.asarray(values))
    return codes, [word(value) for value in distinct.tolist()]


def _numbers(values: AnyArray, kind: str) -> tuple[npt.NDArray[np.float64], int]:
    """The values that are not missing as numbers, NaN where one cannot be read, and how many
    are missing.
    """
    if kind == "number" and values.dtype.kind in "biuf":
        numbers = values.astype(float)
        present = ~np.isnan(numbers)
        return numbers[present], int((~present).sum())
    import pandas as pd

    column = pd.Series(values)
    present = column[column.notna()]
    if kind == "text":
        numbers = np.array([len(word(value)) for value in present.tolist()], dtype=float)
    elif kind == "date":
        dates = (
            present
            if present.dtype.kind == "M"
            else pd.to_datetime(present, format="ISO8601", errors="coerce", utc=True)
        )
        numbers = np.floor(
            (dates.dt.tz_localize(None) - pd.Timestamp(0)) / pd.Timedelta(days=1)
        ).to_numpy(dtype=float)
    else:
        numbers = pd.to_numeric(present, errors="coerce").to_numpy(dtype=float)
    return numbers, len(column) - len(present)


def _frozen(value: Plain) -> Any:
    return tuple(value) if isinstance(value, list) else value
