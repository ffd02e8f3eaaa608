"""What the columns of a table are: text becomes numbers, truth values and dates where all of it
reads so.

Every column gets a kind and a note that says what is done to it; nothing is dropped silently.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute

from surelearn.plain import one_sentence
from surelearn.subject import Task

Kind = Literal[
    "number",
    "category",
    "text",
    "date",
    "identifier",
    "constant",
    "target",
    "group",
    "time",
    "dropped",
]
Values = npt.NDArray[Any]

pc: Any = pyarrow.compute  # its functions are made at import time; type checkers do not see them

MISSING = (
    "",
    "?",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "<NA>",
    "NaN",
    "nan",
    "NAN",
    "NaT",
    "null",
    "NULL",
    "Null",
    "None",
)
NAMES_ROWS = 0.98  # of the rows have a value of their own in a column that names them
MOST_CLASSES, FEW_CLASSES, CLASSES_SHARE = 20, 10, 0.1  # whole numbers that are classes
LARGEST = 1e37  # scikit-learn's trees compute in 32 bits, and squares must not overflow


class DataError(ValueError):
    """Bad input: one line that names the file, column or argument and says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(one_sentence(message))


class NotCountableError(DataError):
    """What a file is asked cannot be answered in one pass; reading it whole may."""


@dataclass(frozen=True)
class Column:
    """One column of a table: what it is and what is done to it.

    Attributes
    ----------
    name : its name
    kind : "number", "category", "text" and "date" are features; the others are not
    note : what is done to it, for people; empty if nothing
    missing : how many rows have no value
    distinct : how many different values there are, not counting missing
    form : of a date read from text: the format it was read by
    """

    name: str
    kind: Kind
    note: str
    missing: int
    distinct: int
    form: str = ""

    @property
    def used(self) -> bool:
        """Whether the column is a feature."""
        return self.kind in ("number", "category", "text", "date")


def shown(name: object) -> str:
    """A name as it may stand in a message: quoted, on one line, not too long."""
    text = repr(str(name))
    return text if len(text) <= 60 else f"{text[:56]}…{text[-1]}"


def listed(names: Sequence[object], most: int = 5) -> str:
    """Several names: ``'a', 'b' and 3 more``."""
    names = list(names)
    head = [shown(name) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(head)} and {len(names) - most:,} more"
    return " and ".join([", ".join(head[:-1]), head[-1]] if len(head) > 1 else head)


def type_text(
    text: pa.Array | pa.ChunkedArray, *, decimal: str = ".", words: bool = False
) -> Values:
    """Values of a column of text: truth values, whole numbers, numbers, or text with None for
    missing.

    A column is read as numbers only if all its values are: one word makes it text. Codes with
    leading zeros ("00501") and digits beyond 64 bits stay text, because a number would lose them.
    ``words``: text whatever it reads as.
    """
    text = pc.utf8_trim_whitespace(pc.cast(text, pa.large_string()))
    text = pc.if_else(pc.is_in(text, value_set=pa.array(MISSING, pa.large_string())), None, text)
    if isinstance(text, pa.ChunkedArray):
        text = text.combine_chunks()
    if text.null_count == len(text):
        return np.full(len(text), np.nan)
    if words:
        return _objects(text)
    values = _truth_values(text)
    if values is None:
        values = _numbers(text, decimal)
    return _objects(text) if values is None else values


def in_single_quotes(text: pa.Array | pa.ChunkedArray) -> bool:
    """Whether every value of a column of text stands in single quotes, as ARFF writes words;
    missing ones need not.
    """
    for part in (text.slice(0, 100), text):  # most columns end with the first hundred
        part = pc.utf8_trim_whitespace(pc.cast(part, pa.large_string()))
        missing = pc.is_in(part, value_set=pa.array(MISSING, pa.large_string()))
        if not pc.all(pc.or_(_wrapped(part), missing)).as_py():
            return False
    return len(text) > 0 and not pc.all(missing).as_py()


def without_single_quotes(text: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Values that stand in single quotes, without them."""
    text = pc.utf8_trim_whitespace(pc.cast(text, pa.large_string()))
    inside = pc.replace_substring(pc.utf8_slice_codeunits(text, 1, -1), "\\'", "'")
    return pc.if_else(_wrapped(text), inside, text)


def _wrapped(text: pa.Array) -> pa.Array:
    return pc.and_(
        pc.match_substring_regex(text, r"(?s)^'.*'$"), pc.greater(pc.binary_length(text), 1)
    )


def _objects(text: pa.Array) -> Values:
    """Text as Python strings, each distinct one made once."""
    encoded = text.dictionary_encode()
    words = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
    return words[encoded.indices.fill_null(len(words) - 1).to_numpy()]


def _truth_values(text: pa.Array) -> Values | None:
    words = pa.array(["true", "false"], pa.large_string())
    first = text[pc.index(text.is_valid(), True).as_py()]
    if str(first).lower() not in ("true", "false"):
        return None
    lower = pc.utf8_lower(text)
    if not pc.all(pc.is_in(lower.drop_null(), value_set=words)).as_py():
        return None
    return pc.equal(lower, "true").to_numpy(zero_copy_only=False)


def _numbers(text: pa.Array, decimal: str) -> Values | None:
    numbers = _cast(text, pa.float64())
    if numbers is None and decimal == ",":
        numbers = _cast(pc.replace_substring(text, ",", "."), pa.float64())
    elif numbers is None and all(
        _all_match(part, r"^[+-]?\d{1,3}(,\d{3})*(\.\d+)?$") for part in (text.slice(0, 100), text)
    ):
        numbers = _cast(pc.replace_substring(text, ",", ""), pa.float64())
    if numbers is None:
        return None
    with np.errstate(invalid="ignore"):
        fractions = numbers - np.round(numbers)
    if not np.any(np.abs(fractions) > 0) and _written_whole(text):
        return _whole_numbers(text, numbers)
    infinite = np.flatnonzero(np.isinf(numbers))
    words = text.take(pa.array(infinite)).to_pylist()
    overflowed = [i for i, word in zip(infinite, words, strict=True) if "inf" not in word.lower()]
    # to be refused, not called missing
    numbers[overflowed] = np.copysign(np.finfo(float).max, numbers[overflowed])
    return numbers


def _written_whole(text: pa.Array) -> bool:
    return all(_all_match(part, r"^[+-]?\d+$") for part in (text.slice(0, 100), text))


def _whole_numbers(text: pa.Array, numbers: Values) -> Values | None:
    """Whole numbers as int64, or as floats beside missing values; None where the text would
    lose digits.
    """
    if pc.any(pc.and_(pc.starts_with(text, "0"), pc.greater(pc.binary_length(text), 1))).as_py():
        return None
    if text.null_count == 0:
        return _cast(pc.ascii_ltrim(text, characters="+"), pa.int64())
    return None if np.any(np.abs(numbers) >= 2**53) else numbers


def _cast(text: pa.Array, kind: pa.DataType) -> Values | None:
    """Text as numbers, or None; the first hundred values are tried first, because a cast that
    fails late is slow.
    """
    try:
        pc.cast(text.slice(0, 100), kind)
        return np.array(pc.cast(text, kind).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        return None


def _all_match(text: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(text, pattern)).as_py())


_DATE_LIKE = re.compile(
    r"\d{1,4}[-/. ](\d{1,2}|[A-Za-z]{3,9})[-/. ]\d{2,4}|[A-Za-z]{3,9} \d{1,2},? \d{4}"
)
_DAYS = [
    f"{a}{s}{b}{s}%Y"
    for s, a, b in (("/", "%m", "%d"), ("/", "%d", "%m"), (".", "%d", "%m"), ("-", "%d", "%m"))
]
_DAYS += [
    "%m-%d-%Y",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d %b %Y",
    "%d %B %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%b %d, %Y",
    "%B %d, %Y",
]
_DAYS += ["%m/%d/%y", "%d/%m/%y", "%d.%m.%y"]
_FORMATS = ["ISO8601", *(day + clock for day in _DAYS for clock in ("", " %H:%M", " %H:%M:%S"))]
_IN_WORDS = {"%Y": "year", "%y": "year", "%m": "month", "%b": "month", "%B": "month", "%d": "day"}


def parse_dates(values: Values) -> tuple[Values, str] | None:
    """Dates of a column of text and the format they were read by, or None unless one format reads
    95% of the values.

    Where month/day and day/month read equally many, month/day/year is taken for slashes and day
    first otherwise.
    """
    codes, words = pd.factorize(values)
    counts = np.bincount(codes[codes >= 0])
    present = codes[codes >= 0]
    sample = words[present[:: max(1, len(present) // 100)]]
    if np.mean([bool(_DATE_LIKE.match(str(word))) for word in sample]) < 0.9:
        return None
    best, chosen, dates = 0, "", None
    for form in _FORMATS:
        if (
            pd.to_datetime(pd.Series(sample, dtype=object), format=form, errors="coerce", utc=True)
            .notna()
            .mean()
            < 0.5
        ):
            continue
        parsed = pd.to_datetime(
            pd.Series(words, dtype=object), format=form, errors="coerce", utc=True
        )
        if (read := int(counts[parsed.notna().to_numpy()].sum())) > best:
            best, chosen, dates = read, form, parsed
    if dates is None or best < 0.95 * counts.sum():
        return None
    known = np.append(
        dates.dt.tz_localize(None).to_numpy(dtype="datetime64[us]"), np.datetime64("NaT")
    )
    return known[codes], chosen


def in_words(form: str) -> str:
    """A date format for people: "month/day/year", or "ISO"."""
    return "/".join(_IN_WORDS[part] for part in re.findall("%[YymbBd]", form)) or "ISO"


def describe(name: str, values: Values) -> tuple[Column, Values]:
    """The kind of a column, from its name and values, and the values again (dates parsed).

    ======================================================================  ==========
    one value, or none at all                                               constant
    truth values; text with few values: at most 20, or 100 in 2,000 rows    category
    text of which at least 95% reads as dates                               date
    text without spaces, different in 98% of the rows                       identifier
    other text                                                              text
    whole numbers, different in 98% of the rows, in rising or falling       identifier
    order, or without a gap, or called an id
    other numbers, whole ones too                                           number
    ======================================================================  ==========
    """
    missing, distinct = count_values(values)
    if distinct == 0 or (distinct == 1 and missing == 0):
        said = "no values" if distinct == 0 else "one value"
        return Column(name, "constant", f"not used: {said} (SL102)", missing, distinct), values
    if values.dtype.kind == "M":
        return Column(name, "date", _filled(missing), missing, distinct), values
    if values.dtype.kind in "iuf":
        if _numbers_identify(name, values, distinct):
            return Column(
                name, "identifier", "dropped: one value per row (SL101)", missing, distinct
            ), values
        return Column(name, "number", _filled(missing), missing, distinct), values
    return _describe_text(name, values, missing, distinct)


def _describe_text(name: str, values: Values, missing: int, distinct: int) -> tuple[Column, Values]:
    present = len(values) - missing
    few = (
        distinct <= 2
        or (distinct <= 20 and 2 * distinct <= present)
        or (distinct <= 100 and 20 * distinct <= present)
    )
    if values.dtype.kind != "b" and (read := parse_dates(values)) is not None:
        dates, form = read
        unread, (missing, distinct) = missing, count_values(dates)
        notes = [f"dates read as {in_words(form)}"] * (form != "ISO8601")
        notes += [f"{missing - unread:,} not dates: treated as missing"] * (missing > unread)
        notes += [_filled(missing)] * (missing > 0)
        return Column(name, "date", "; ".join(notes), missing, distinct, form), dates
    if few:
        note = f"{missing:,} missing: a category of their own" if missing else ""
        return Column(name, "category", note, missing, distinct), values
    if _text_identifies(values, present, distinct):
        return Column(
            name, "identifier", "dropped: one value per row (SL101)", missing, distinct
        ), values
    note = "many values: words and letters (SL107)" + (
        f"; {missing:,} missing: no words" if missing else ""
    )
    return Column(name, "text", note, missing, distinct), values


def value_codes(values: Values) -> npt.NDArray[np.intp]:
    """Values numbered by first appearance, missing as one more value: equal for two columns
    that rename each other.
    """
    return pd.factorize(values, use_na_sentinel=False)[0]


def count_values(values: Values) -> tuple[int, int]:
    """How many values are missing, and how many different ones there are."""
    missing = int(pd.isna(values).sum())
    return missing, len(pd.unique(values)) - (missing > 0)


def _filled(missing: int) -> str:
    return f"{missing:,} missing: filled with the median" if missing else ""


def _numbers_identify(name: str, values: Values, distinct: int) -> bool:
    """Whether whole numbers only number the rows, as PassengerId does."""
    n = len(values)
    if n < 10 or distinct < NAMES_ROWS * n or not is_whole(values):
        return False
    steps = np.sign(values[1:].astype(float) - values[:-1].astype(float))
    ordered = bool(np.all(steps >= 0) or np.all(steps <= 0))
    without_gap = float(values.max()) - float(values.min()) == distinct - 1
    called_so = re.search(r"(^|[^A-Za-z])(id|ID|Id|uuid|key|index)$|[a-z]I[dD]$", name) is not None
    return ordered or without_gap or called_so


def _text_identifies(values: Values, present: int, distinct: int) -> bool:
    if present < 0.9 * len(values) or distinct < NAMES_ROWS * present:
        return False
    words = [value for value in values if value is not None]
    return sum(len(word.split()) > 1 for word in words) <= 0.01 * present


def is_whole(values: Values) -> bool:
    """Whether all values are whole numbers, whatever their type; none is missing."""
    return values.dtype.kind in "iu" or (
        values.dtype.kind == "f" and bool(np.all(values == np.round(values)))
    )


def infer_task(values: Values) -> Task:
    """Classification for words, truth values and whole numbers with few values; regression for
    other numbers.

    Few: at most 20 different values, and at most 10 or at most a tenth of the rows.
    """
    if values.dtype.kind not in "iuf":
        return "classification"
    distinct = len(pd.unique(values))
    few = distinct <= MOST_CLASSES and (
        distinct <= FEW_CLASSES or distinct <= CLASSES_SHARE * len(values)
    )
    return "classification" if few and is_whole(values) else "regression"


def labels(values: Values) -> Values:
    """Class labels as the file says them: whole numbers, truth values or words; 0.0 is 0, and
    0.5 is the word "0.5".
    """
    if values.dtype.kind in "iuf":
        return (
            values.astype(np.int64)
            if is_whole(values) and np.all(np.abs(values) < 2**53)
            else values.astype(str)
        )
    if values.dtype.kind == "O":
        return values.astype(bool) if isinstance(values[0], bool) else values.astype(str)
    return values
