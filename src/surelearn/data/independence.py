"""What contradicts that rows are independent draws: copies, near copies and clumps, columns that
name groups, dates.

Everything looks at features alone, never at the target. `search_table` searches a `Table`,
`search_rows` the rows of a model that was fitted elsewhere. Both say what was looked for and what
was not: groups that nothing names or shows cannot be found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pandas.util

from surelearn.claim import Finding
from surelearn.data.columns import (
    Values,
    describe,
    is_whole,
    parse_dates,
    shown,
    value_codes,
)
from surelearn.data.table import Table

Numbers = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
hash_array: Any = pandas.util.hash_array  # loaded on demand; type checkers do not see it

LEAST_COPIES = 0.01  # of the rows; fewer are a notice, SL104
# columns depend on each other: so much more often may they agree than independent ones would
DEPENDENCE = 10.0
FEW_VALUES = 20
EQUAL_BY_CHANCE = 1e-6  # of values that appear equally often
LONG_TEXT = 10  # words; independent rows have no such text in common

NEIGHBORS = (5, 10, 20, 50)  # k
RATIOS = (0.03, 0.1, 0.2, 0.3)  # c
LEAST_EXCESS, LEAST_ERRORS = 0.05, 5.0
# where independence predicts more, the local dimension is too uncertain to be held against the rows
MOST_EXPECTED = 0.5
# of texts that repeat: words in each, how many there are, rows per text, the share that may repeat
FEWEST_WORDS, FEWEST_TEXTS, MOST_PER_TEXT, MOST_REPEATED = 3, 20, 20, 0.05
FEWEST_NUMBERS, FEWEST_ROWS = 3, 100
MOST_STUDIED, MOST_COMPARED = 2_000, 20_000


@dataclass(frozen=True)
class Search:
    """What was looked for, and what was found.

    Attributes
    ----------
    found : findings SL116 (copies), SL117 (near copies and clumps), SL118 (a column names groups,
        or holds dates)
    looked_for : what was searched, in words
    not_looked_for : what was not, each with its reason
    """

    found: tuple[Finding, ...] = ()
    looked_for: tuple[str, ...] = ()
    not_looked_for: tuple[str, ...] = ()


def contradictions(table: Table, rows: Rows | None = None) -> tuple[Finding, ...]:
    """What contradicts that the rows of a table, or some of them, are independent draws; see
    `search_table`.

    Examples
    --------
    >>> import pandas as pd
    >>> from surelearn.data import read_table
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> frame = pd.DataFrame(np.repeat(X, 3, axis=0), columns=["a", "b", "c"]).assign(y=[0, 0, 0, 1, 1, 1] * 100)
    >>> [finding.code for finding in contradictions(read_table(frame, target="y"))]
    ['SL116']
    >>> contradictions(read_table(frame, target="y"), np.arange(0, 600, 3))
    ()
    """
    return search_table(table, rows).found


def search_table(table: Table, rows: Rows | None = None) -> Search:
    """Search a table, or some of its rows, for what contradicts independence.

    With ``--group`` only copies between groups count, and near copies are looked for among the
    first rows of the groups; columns are believed to be what the user said. With ``--time`` nothing
    is looked for: nothing is guaranteed then.

    Parameters
    ----------
    table : the table
    rows : positions of the rows to look at; all of them by default
    """
    if table.time is not None:
        return Search(
            not_looked_for=(
                "copies and groups (rows are ordered by time, and nothing is guaranteed)",
            )
        )
    frame = table.frame if rows is None else table.frame.iloc[rows]
    features = table.X if rows is None else table.X.iloc[rows]
    numeric = [column.name for column in table.columns if column.kind == "number"]
    groups = None if table.group is None else frame[table.group].to_numpy()
    texts = [column.name for column in table.columns if column.kind == "text"]
    search = _search_features(features, numeric, texts, groups)
    if table.group is not None:
        return search
    if any(finding.code == "SL116" for finding in search.found):  # copies alone make counts equal
        frame = frame.loc[~features.duplicated().to_numpy()]
    named = [
        finding
        for column in table.studied
        for finding in _about_column(column.name, column.kind, frame)
    ]
    said = "columns that name groups by their name or by equal counts", "dates"
    return Search((*search.found, *named), (*search.looked_for, *said), search.not_looked_for)


def search_frame(frame: pd.DataFrame, groups: Values | None = None) -> Search:
    """Search columns that nobody described, such as those beside the answers in a file.

    Their kinds are read off; with groups, columns are believed to be what the user said.
    """
    if not frame.shape[1]:
        return Search(not_looked_for=("copies and groups (there is no column beside the answers)",))
    typed = {str(name): describe(str(name), frame[name].to_numpy()) for name in frame.columns}
    kinds = {name: column.kind for name, (column, _) in typed.items()}
    features = pd.DataFrame({n: v for n, (c, v) in typed.items() if c.used}, index=frame.index)
    if features.shape[1]:
        numeric = [name for name in features.columns if kinds[name] == "number"]
        texts = [name for name in features.columns if kinds[name] == "text"]
        search = _search_features(features, numeric, texts, groups)
    else:
        search = Search(not_looked_for=("copies (no column beside the answers has contents)",))
    if groups is not None:
        return search
    read = pd.DataFrame({name: values for name, (_, values) in typed.items()}, index=frame.index)
    named = [f for name, kind in kinds.items() for f in _about_column(name, kind, read)]
    named += [f for name in frame.columns for f in _about_texts(str(name), frame[name].to_numpy())]
    said = "columns that name groups by their name or by equal counts", "repeated texts", "dates"
    return Search((*search.found, *named), (*search.looked_for, *said), search.not_looked_for)


def _about_texts(name: str, values: Values) -> list[Finding]:
    """A column of texts, such as prompts, that several rows have: their answers belong together."""
    words = [str(v) for v in values.tolist() if v is not None] if values.dtype.kind == "O" else []
    distinct = len(set(words))
    repeated = len(words) - distinct
    if distinct < FEWEST_TEXTS or not MOST_REPEATED * len(words) < repeated:
        return []
    if len(words) > MOST_PER_TEXT * distinct:
        return []
    if sum(len(word.split()) for word in words) < FEWEST_WORDS * len(words):
        return []
    text = (
        f"Column {shown(name)} holds {distinct:,} texts in {len(words):,} rows: rows with the same"
        " text seem to belong together."
    )
    numbers = {"column": name, "option": "--group", "values": distinct}
    return [Finding(code="SL118", text=text, severity="serious", numbers=numbers)]


def search_rows(X: Any, groups: Values | None = None) -> Search:
    """Search the rows of a model that was fitted elsewhere: an array of numbers, or a data
    frame's numbers and words.
    """
    if hasattr(X, "to_pandas"):  # polars
        X = X.to_pandas()
    if not isinstance(X, pd.DataFrame):
        array = None if hasattr(X, "tocsr") else np.asarray(X)
        if array is None or array.ndim != 2 or array.dtype.kind not in "fiub":
            return Search(
                not_looked_for=("copies and groups (the rows are not a table of numbers)",)
            )
        X = pd.DataFrame(array)
    X = X.set_axis([str(name) for name in X.columns], axis=1)
    if X.columns.has_duplicates:
        X = X.set_axis([str(i) for i in range(X.shape[1])], axis=1)
    numeric = [str(name) for name in X.columns if X[name].dtype.kind in "fiu"]
    texts = [str(name) for name in X.columns if X[name].dtype.kind == "O"]
    return _search_features(X, numeric, texts, None if groups is None else np.asarray(groups))


def _search_features(
    features: pd.DataFrame, numeric: Sequence[str], texts: Sequence[str], groups: Values | None
) -> Search:
    codes = {name: value_codes(features[name].to_numpy()) for name in features.columns}
    contents = _sum_of_hashes(codes, len(features))
    found, looked_for, not_looked_for = [], [], []
    varied = [name for name in numeric if codes[name].max(initial=0) >= FEW_VALUES]
    long = _long(features[list(texts)])
    if len(varied) >= 2:
        found += copies(codes, contents, groups)
    if not found:
        found += copies_of_texts(contents, long, groups)
    if len(varied) >= 2 or long.all():
        looked_for.append("copies of rows")
    else:
        looked_for += [f"copies of rows with texts of {LONG_TEXT} words and more"] * bool(
            long.any()
        )
        not_looked_for.append(
            f"copies{' of other rows' * bool(long.any())} (fewer than two numeric columns have over"
            f" {FEW_VALUES} values: rows repeat by chance)"
        )
    first = ~pd.Series(contents).duplicated().to_numpy()
    if groups is not None:
        first = first & ~pd.Series(groups).duplicated().to_numpy()
    numbers = _continuous(features.loc[first, varied].to_numpy(dtype=float))
    if len(numbers) >= FEWEST_ROWS and numbers.shape[1] >= FEWEST_NUMBERS:
        among = "" if groups is None else " among the first rows of the groups"
        looked_for.append(
            f"near copies and clumps of up to {largest_clump(len(numbers))} rows{among}"
        )
        found += near_copies(numbers)
    else:
        lacking = (
            f"{FEWEST_NUMBERS} numeric columns with mostly distinct values and {FEWEST_ROWS} rows"
        )
        not_looked_for.append(f"near copies and clumps (they need {lacking})")
    return Search(tuple(found), tuple(looked_for), tuple(not_looked_for))


# --------------------------------------------------------------------------------------------------


def _hashes(position: int, codes: Rows) -> npt.NDArray[np.uint64]:
    return hash_array(codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(position))


def _sum_of_hashes(codes: dict[str, Rows], n: int) -> npt.NDArray[np.uint64]:
    """One hash per row, from which a column can be taken away again."""
    total = np.zeros(n, dtype=np.uint64)
    for i, values in enumerate(codes.values()):
        total += _hashes(i, values)
    return total


def _pairs(values: Values) -> float:
    """How many pairs of rows are equal."""
    sizes = np.unique(values, return_counts=True)[1].astype(float)
    return float(np.sum(sizes * (sizes - 1)) / 2)


def copies(
    codes: dict[str, Rows], contents: Values, groups: Values | None = None
) -> Iterable[Finding]:
    """SL116: rows that repeat another in every feature, more than rows that agree by chance do.

    Rows of few values repeat by chance, and then many more pairs of rows agree in all columns but
    one. With B_j the pairs that agree in all columns but the j-th, and q_j the share of pairs that
    agree in the j-th, chance gives about B_j·q_j/(1 − q_j) equal pairs; ten times the largest of
    these is allowed for, because columns depend on each other.

    Parameters
    ----------
    codes : each column's values as numbers
    contents : the sum of the columns' hashes, one per row
    groups : what rows belong together; copies within a group are not counted
    """
    n = len(contents)
    count = int(_repeats(contents, groups).sum())
    if count < max(LEAST_COPIES * n, 2):
        return
    pairs, everything, chance = _pairs(contents), n * (n - 1) / 2, 0.0
    for i, values in enumerate(codes.values()):
        all_but_one = _pairs(contents - _hashes(i, values)) - pairs
        if all_but_one > 0:
            agreeing = _pairs(values) / everything
            chance = max(chance, all_but_one * agreeing / max(1 - agreeing, 1e-12))
    if pairs <= DEPENDENCE * chance:
        return
    yield _copied(count, n, groups, {"pairs": pairs, "pairs_by_chance": chance})


def copies_of_texts(
    contents: Values, long: npt.NDArray[np.bool_], groups: Values | None = None
) -> Iterable[Finding]:
    """SL116: rows with texts of ten words and more that repeat another in every feature; chance
    gives none.
    """
    count = int((_repeats(contents, groups) & long).sum())
    if count >= max(LEAST_COPIES * len(contents), 2):
        yield _copied(count, len(contents), groups, {})


def _long(texts: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Which rows have texts of so many words, all columns together, that they do not repeat by
    chance.
    """
    words = np.zeros(len(texts), dtype=int)
    for name in texts.columns:
        words += [
            len(text.split(None, LONG_TEXT)) if isinstance(text, str) else 0 for text in texts[name]
        ]
    return words >= LONG_TEXT


def _repeats(contents: Values, groups: Values | None) -> npt.NDArray[np.bool_]:
    """Which rows repeat an earlier one, not counting those of the same group."""
    repeats = pd.Series(contents).duplicated().to_numpy()
    if groups is None:
        return repeats
    return repeats & ~pd.DataFrame({"content": contents, "group": groups}).duplicated().to_numpy()


def _copied(count: int, n: int, groups: Values | None, more: dict[str, float]) -> Finding:
    between = "" if groups is None else " of another group"
    text = (
        f"{count:,} of {n:,} rows repeat an earlier row{between} in every feature, far more than"
        " chance gives."
    )
    return Finding(
        code="SL116",
        text=text,
        severity="serious",
        numbers={"rows": count, "share": count / n, **more},
    )


# --------------------------------------------------------------------------------------------------


def _continuous(numbers: Numbers) -> Numbers:
    """The columns with mostly distinct values and no frequent one, of the rows that have them
    all, each content once.
    """
    kept = []
    for values in np.where(np.isfinite(numbers), numbers, np.nan).T:  # infinite ones are nowhere
        known = values[~np.isnan(values)]
        sizes = np.unique(known, return_counts=True)[1]
        mostly = len(sizes) > len(known) / 2 and sizes.max(initial=0) <= max(0.1 * len(known), 1)
        if mostly and len(known) >= 0.9 * len(values):
            kept.append(values)
    if not kept:
        return np.empty((0, 0))
    table = pd.DataFrame(dict(enumerate(kept))).dropna()
    return table[~table.duplicated()].to_numpy()[:: -(-len(table) // MOST_COMPARED) or 1]


def near_copies(numbers: Numbers) -> Iterable[Finding]:
    """SL117: rows whose nearest neighbor is far nearer than their others, more often than
    independent rows have it.

    Given the distance d_k to a row's k-th neighbor, the k − 1 nearer ones of independent rows lie
    as if drawn from the ball that reaches there, so P(d₁/d_k < c) = 1 − (1 − c^d)^(k−1) where the
    density is even and d is the local dimension. Given d_4k, the d·log(d_4k/d_j) are ordered
    exponential variables; those from j = k on give d by their likelihood, censored beyond d_k, and
    do not depend on d₁/d_k. (E. Levina and P. J. Bickel, Maximum likelihood estimation of intrinsic
    dimension, NIPS 2004, has this estimator without censoring.) Found where the share of rows
    exceeds its prediction by over 5% and over 5 standard errors, for one k and c.

    Parameters
    ----------
    numbers : array of shape (n, p), distinct rows of continuous columns
    """
    largest = largest_clump(len(numbers))
    distances = _distances(_scaled(numbers), 4 * largest)
    strongest: dict[str, Any] | None = None
    for k in (k for k in NEIGHBORS if k <= largest):
        logs = np.log(distances[:, [4 * k - 1]] / distances[:, k - 1 : 4 * k - 1])  # (rows, 3k)
        total = logs.sum(axis=1) + (k - 1) * logs[:, 0]
        dimension = (3 * k - 1) / np.maximum(total, 1e-9)
        ratio = distances[:, 0] / distances[:, k - 1]
        for c in RATIOS:
            expected = float(np.mean(1 - (1 - c**dimension) ** (k - 1)))
            share = float(np.mean(ratio < c))
            error = np.sqrt(expected * (1 - expected) / len(distances))
            found = (
                share - expected > max(LEAST_EXCESS, LEAST_ERRORS * error)
                and expected <= MOST_EXPECTED
            )
            if found and (
                strongest is None or share - expected > strongest["share"] - strongest["expected"]
            ):
                strongest = {
                    "share": share,
                    "expected": expected,
                    "k": k,
                    "c": c,
                    "dimension": float(np.median(dimension)),
                }
    if strongest is None:
        return
    k, c = strongest["k"], strongest["c"]
    text = (
        f"{strongest['share']:.0%} of rows have a near copy, {1 / c:.0f} times nearer than their"
        f" {k}th nearest row; {strongest['expected']:.0%} would if rows were independent."
    )
    yield Finding(
        code="SL117", text=text, severity="serious", numbers={**strongest, "rows": len(distances)}
    )


def largest_clump(n: int) -> int:
    """The largest k for which 4k of n rows are still near."""
    return max(k for k in NEIGHBORS if 20 * k <= max(n, FEWEST_ROWS))


def _scaled(numbers: Numbers) -> Numbers:
    """Columns in units of their spread (interquartile range), heavy tails drawn in: arsinh((x −
    median)/spread).
    """
    low, middle, high = np.quantile(numbers, [0.25, 0.5, 0.75], axis=0)
    spread = (high - low) / 1.349
    return np.arcsinh(
        (numbers - middle) / np.where(spread > 0, spread, np.maximum(numbers.std(axis=0), 1e-300))
    )


def _distances(z: Numbers, most: int) -> Numbers:
    """Distances of rows to their ``most`` nearest others, nearest first; of long tables some
    rows, taken at a stride.
    """
    n = len(z)
    studied = np.arange(0, n, -(-n // MOST_STUDIED))
    squares = np.einsum("ij,ij->i", z, z)
    step = max(1, 10_000_000 // n)
    found = []
    for start in range(0, len(studied), step):
        rows = studied[start : start + step]
        apart = squares[rows, None] + squares[None, :] - 2 * z[rows] @ z.T  # (step, n)
        apart[np.arange(len(rows)), rows] = np.inf
        found.append(np.sort(np.partition(apart, most - 1, axis=1)[:, :most], axis=1))
    return np.sqrt(np.maximum(np.concatenate(found), 1e-14))


# --------------------------------------------------------------------------------------------------

_UNITS = {
    "patient", "subject", "customer", "client", "user", "person", "participant", "individual", "respondent", "member",
    "player", "student", "pupil", "household", "visitor", "donor", "animal", "driver", "employee", "worker", "mother",
    "account", "device", "machine", "sensor", "session", "encounter",
}  # fmt: skip
_NUMBERED = {
    "id",
    "uid",
    "uuid",
    "guid",
    "no",
    "nr",
    "num",
    "number",
    "code",
    "key",
    "hash",
    "name",
    "idx",
    "index",
    "ref",
}
_SHORT = {
    "pid",
    "ptid",
    "patid",
    "subjid",
    "sid",
    "uid",
    "cid",
    "custid",
    "mrn",
    "ssn",
    "imei",
    "vin",
}


def _words(name: str) -> list[str]:
    """A column's name in words: "PatientID" is patient, id."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return [word.lower() for word in re.findall(r"[A-Za-z]+", spaced)]


def _called(name: str) -> str:
    """What a name says: "unit" for a patient, customer, …; "id" for another identifier; "" for
    anything else.

    Examples
    --------
    >>> [_called(name) for name in ("patient", "CustomerID", "userid", "shop_id", "patient_age", "customers", "age")]
    ['unit', 'unit', 'unit', 'id', '', '', '']
    """
    words = _words(name)
    if not words:
        return ""
    joined = any(words[-1] == unit + end for unit in _UNITS for end in ("id", "no", "nr", "key"))
    numbered = bool(_UNITS & set(words)) and (words[-1] in _NUMBERED or words[0] == "id")
    if joined or numbered or (len(words) == 1 and words[0] in _UNITS | _SHORT):
        return "unit"
    return "id" if words[-1] == "id" or words[0] == "id" else ""


def names_groups(name: str, values: Values) -> str:
    """How a column shows that its values name groups of rows: in words, or "" where it does not.

    By its name: it is called after a person or thing (patient, customer, device, …) or an id, and
    most rows share their value. By its counts: values of independent rows appear with multinomial
    counts N, whose spread Σ(N − m)²/m around their mean m is least for equally likely values, then
    about chi-square with a degree of freedom less than values; a spread so small that this has
    probability below 10⁻⁶ comes from a plan, such as five visits of each patient.
    """
    codes = pd.factorize(values)[0]
    counts = np.bincount(codes[codes >= 0]).astype(float)
    n, distinct = counts.sum(), len(counts)
    if (
        distinct < 10
        or n < 0.5 * len(values)
        or counts[counts > 1].sum() < n / 2
        or values.dtype.kind == "b"
    ):
        return ""
    each = n / distinct
    known = values[codes >= 0]
    whole = known.dtype.kind not in "f" or is_whole(known)
    called = _called(name) if whole else ""
    if called == "unit" or (called == "id" and distinct >= FEW_VALUES and each <= 50):
        return f"has {distinct:,} values in {n:,.0f} rows, {each:.1f} rows each"
    phrases = (
        known.dtype.kind == "O" and np.mean([" " in str(value) for value in known[:1000]]) > 0.5
    )
    if distinct >= FEW_VALUES and each >= 2 and not phrases:
        from scipy.special import gammainc

        spread = float(np.sum((counts - each) ** 2) / each)
        if (
            spread < 0.3 * (distinct - 1)
            and gammainc((distinct - 1) / 2, spread / 2) < EQUAL_BY_CHANCE
        ):
            return f"has {distinct:,} values of nearly equally many rows, {each:.1f} each"
    return ""


def _about_column(name: str, kind: str, frame: pd.DataFrame) -> Iterable[Finding]:
    """SL118: a column that names groups, or holds dates; dropped ones too."""
    if kind in ("target", "constant", "identifier", "group", "time"):
        return
    values = frame[name].to_numpy()
    if kind == "dropped" and values.dtype.kind == "O" and (read := parse_dates(values)) is not None:
        values = read[0]
    if values.dtype.kind == "M":
        if not {"birth", "born", "birthday", "birthdate", "dob"} & set(_words(name)):
            text = f"Column {shown(name)} holds dates: rows may depend on when they came."
            yield Finding(
                code="SL118",
                text=text,
                severity="serious",
                numbers={"column": name, "option": "--time"},
            )
        return
    if how := names_groups(name, values):
        text = f"Column {shown(name)} {how}: it seems to name groups of rows."
        yield Finding(
            code="SL118",
            text=text,
            severity="serious",
            numbers={"column": name, "option": "--group"},
        )
