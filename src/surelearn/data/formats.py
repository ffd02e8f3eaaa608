"""From a file, a built-in set or a data frame to typed columns: CSV, TSV, gzip, Parquet, LIBSVM, npz.

What a file holds is decided by its first bytes, then by its name. Nothing is written, nothing is unpickled, and whatever
is wrong becomes one `DataError` sentence.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from surelearn.claim import Finding
from surelearn.data.columns import DataError, Values, listed, shown, type_text

MAX_COLUMNS = 5_000
BUILT_IN = {  # name: the name of its target
    "breast_cancer": "diagnosis",
    "iris": "species",
    "wine": "cultivar",
    "digits": "digit",
    "diabetes": "progression",
}
_DELIMITERS = ",;\t|"
_NOT_TABLES = (  # first bytes of files that get renamed to .csv or .parquet
    (b"PK\x03\x04", "a zip archive or an Excel workbook: unpack it, or save the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook: save the sheet as CSV"),
    (b"%PDF", "a PDF document: export the table as CSV"),
    (b"SQLite format 3", "an SQLite database: export the table as CSV"),
    (b"\x93NUMPY", "a single NumPy array: save features and target as .npz with arrays X and y"),
    (b"\x89HDF", "an HDF5 file: export the table as CSV or Parquet"),
    (b"ARROW1", "an Arrow file: save the table as Parquet or CSV"),
    (b"\x89PNG", "an image: a table is needed"),
    (b"\xff\xd8\xff", "an image: a table is needed"),
    (b"BZh", "compressed with bzip2: decompress it, or use gzip"),
    (b"\xfd7zXZ", "compressed with xz: decompress it, or use gzip"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: decompress it, or use gzip"),
    (b"\x80\x04\x95", "a pickle, which is never opened: save the table as CSV or Parquet"),
)


@dataclass(frozen=True)
class Raw:
    """A table as read, before anything is decided about its columns.

    ``frame`` has one typed column per column of the source: numbers, truth values, dates, or text with None for missing.
    """

    name: str
    path: Path | None
    frame: pd.DataFrame
    target: str | None = None
    findings: tuple[Finding, ...] = ()


def load(source: Any, *, header: bool) -> Raw:
    """Read whatever ``source`` is: None, a built-in name, a path, or a data frame."""
    source = "breast_cancer" if source is None else source
    if isinstance(source, (str, Path)):
        path = Path(source)
        if str(source) in BUILT_IN and not path.is_file():
            return _built_in(str(source))
        return _file(path, _bytes(path), header)
    return Raw(name="the data frame", path=None, frame=_plain(_to_pandas(source), "the data frame"))


# ----------------------------------------------------------------------------------------------------------------- files


def _bytes(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(_not_found(path)) from None
    except IsADirectoryError:
        raise DataError(f"{path} is a directory: name the file inside it.") from None
    except PermissionError:
        raise DataError(f"{path} may not be read: no permission; change its permissions or copy it.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{shown(path)} cannot be read ({error}): check the path.") from None
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            raise DataError(f"{path.name} is a damaged gzip file: fetch or compress it again.") from None
    if not content.strip():
        raise DataError(f"{path.name} is empty: a table with a header and rows is needed.")
    return content


def _not_found(path: Path) -> str:
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return f"{path} does not exist, nor does its directory: check the path."
    near = difflib.get_close_matches(path.name, [*names, *BUILT_IN], n=2, cutoff=0.7)
    if near:
        return f"{path} does not exist. Did you mean {' or '.join(map(repr, near))}?"
    if path.suffix or len(path.parts) > 1:
        return f"{path} does not exist: check the path."
    return f"{path} is neither a file here nor a built-in set: the built-in sets are {', '.join(BUILT_IN)}."


def _file(path: Path, content: bytes, header: bool) -> Raw:
    name = path.name
    suffix = Path(name.lower().removesuffix(".gz")).suffix
    if content[:4] == b"PAR1":
        return Raw(name, path, _plain(_parquet(name, content), name))
    if suffix == ".npz" and content[:2] == b"PK":
        return _npz(path, content)
    for magic, what in _NOT_TABLES:
        if content.startswith(magic):
            raise DataError(f"{name} is {what}.")
    if suffix in (".parquet", ".npz"):
        raise DataError(f"{name} is not a {suffix[1:]} file, or is damaged: save it again, or name it .csv if it is text.")
    text = _utf8(name, content)
    if suffix in (".libsvm", ".svm", ".svmlight") or (suffix not in (".csv", ".tsv") and _looks_like_libsvm(text)):
        return _libsvm(path, text)
    return _delimited(path, text, header)


def _utf8(name: str, content: bytes) -> bytes:
    """The text of a file as UTF-8 bytes, from UTF-8, UTF-16 or UTF-32 with a mark, or the Latin-1 of Windows."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-32" if content.startswith(b"\xff\xfe\0\0") else "utf-16"
        content = _recode(name, content, encoding)
    content = content.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in content:
        raise DataError(f"{name} has NUL bytes: it is not a text table, or UTF-16 without its mark; save it as UTF-8.")
    sample = content[:65536]
    if sum(sample.count(bytes([code])) for code in range(32) if chr(code) not in "\t\n\r\f") > 0.005 * len(sample):
        raise DataError(f"{name} is binary, not a table: CSV, TSV, Parquet, LIBSVM and npz are read.")
    if not content.isascii():
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            content = _recode(name, content, "cp1252")
    start = content[:200].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise DataError(f"{name} is a web page or XML, not a table: download the data file itself.")
    if start.startswith((b"{", b"[{", b"[[", b"[\n")):
        raise DataError(f"{name} is JSON, not a table: save it as CSV or Parquet.")
    return content


def _recode(name: str, content: bytes, encoding: str) -> bytes:
    try:
        return content.decode(encoding).encode()
    except UnicodeError:
        raise DataError(f"{name} is in an encoding other than UTF-8, UTF-16 and Latin-1: save it as UTF-8.") from None


# ------------------------------------------------------------------------------------------------------- delimited text


def _delimited(path: Path, text: bytes, header: bool) -> Raw:
    name = path.name
    delimiter, width = _sniff(text)
    if width < 2:
        raise DataError(f"{name} has one column: values must be separated by a comma, semicolon, tab or bar.")
    _check_width(name, width)
    table = _parse(name, text, delimiter, width)
    names = [f"column {i}" for i in range(1, width + 1)]
    if header:
        firsts = [str(table.column(i)[0]).strip() for i in range(width)]
        names = [first or name for first, name in zip(firsts, names, strict=True)]
        table = table.slice(1)
    _check_names(name, names)
    if table.num_rows == 0:
        raise DataError(f"{name} has a header and no rows: add rows{'' if not header else ', or pass --no-header'}.")
    decimal = "," if delimiter == ";" else "."
    columns = [type_text(column, decimal=decimal) for column in table.columns]
    findings = tuple(_doubtful_header(names, columns, header))
    return Raw(name, path, _frame(names, columns), findings=findings)


def _sniff(text: bytes) -> tuple[str, int]:
    """The delimiter that cuts the first hundred rows most evenly, and into how many values."""
    sample = text[: 1 << 18]
    whole = sample if len(sample) == len(text) else sample[: sample.rfind(b"\n") + 1] or sample
    lines = whole.decode("utf-8", "replace")
    best, chosen = (0.0, 0), (",", 1)
    for delimiter in _DELIMITERS:
        widths = [len(row) for row in _rows(lines, delimiter, 100) if row]
        if not widths:
            continue
        common = max(set(widths), key=lambda width: (widths.count(width), width))
        score = (widths.count(common) / len(widths), common)
        if common > 1 and score > best:
            best, chosen = score, (delimiter, widths[0])
    return chosen


def _rows(lines: str, delimiter: str, most: int) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(lines, newline=""), delimiter=delimiter)
    try:
        for row, _ in zip(reader, range(most), strict=False):
            yield row
    except csv.Error:  # a value past csv's limit: what was read so far decides
        return


def _parse(name: str, text: bytes, delimiter: str, width: int) -> Any:
    """All values as text, the header being the first row.

    In tab-separated text a quote is often just a character: it is one where that makes more rows, all of them complete.
    """
    plain = _cut(text, delimiter, width, quoted=False) if delimiter == "\t" and b'"' in text else None
    if text.count(b'"') % 2 and plain is None and (line := _unclosed_quote(text, delimiter)):
        raise DataError(f"{name}, line {line}: a quote is opened and never closed; close it or double it.")
    table = _cut(text, delimiter, width, quoted=True)
    if plain is not None and (table is None or plain.num_rows > table.num_rows):
        return plain
    if table is None:
        raise DataError(_ragged(name, text, delimiter))
    return table


def _cut(text: bytes, delimiter: str, width: int, *, quoted: bool) -> Any:
    """Rows of values by pyarrow, in parallel; None if they are not all of one width."""
    from pyarrow import csv as arrow

    try:
        return arrow.read_csv(
            pa.BufferReader(text),
            read_options=arrow.ReadOptions(autogenerate_column_names=True, block_size=1 << 24),
            parse_options=arrow.ParseOptions(
                delimiter=delimiter,
                quote_char='"' if quoted else False,
                newlines_in_values=quoted,
                invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
            ),
            convert_options=arrow.ConvertOptions(column_types={f"f{i}": pa.large_string() for i in range(width)}),
        )
    except pa.ArrowInvalid:
        return None


def _unclosed_quote(text: bytes, delimiter: str) -> int:
    """The line where the value starts that swallows the rest of the file, or 0."""
    reader = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=delimiter, strict=True)
    start = 1
    try:
        for _ in reader:
            start = reader.line_num + 1
    except csv.Error as error:
        return start if "unexpected end" in str(error) else 0
    return 0


def _ragged(name: str, text: bytes, delimiter: str) -> str:
    """The sentence for the first row whose number of values differs from the first row's."""
    reader = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=delimiter)
    width, line = 0, 1
    try:
        for row in reader:
            width = width or len(row)
            if len(row) != width and "".join(row).strip():
                return (
                    f"{name}, line {line} has {len(row)} value{'s' * (len(row) != 1)} where the first row has {width}: "
                    "correct the line, or quote values that hold a delimiter or a line break."
                )
            line = reader.line_num + 1
    except csv.Error:
        pass
    return f"{name}, near line {line}, cannot be cut into columns: check its quotes and delimiters."


def _doubtful_header(names: list[str], columns: list[Values], header: bool) -> Iterator[Finding]:
    """SL114: the header looks like data, or the first row like a header."""
    if header:
        numbers = [float(name) for name in names if re.fullmatch(r"-?\d+(\.\d+)?", name)]
        if numbers and any(b <= a for a, b in pairwise(numbers)):
            text = f"The header has numbers for names ({listed(names[:3])}): if the first row is data, pass --no-header."
            yield Finding(code="SL114", text=text, severity="warning", numbers={"names": names[:20]})
    else:
        text_columns = [values for values in columns if values.dtype == object and len(values) > 1]
        firsts = [v[0] for v in text_columns if v[0] and type_text(pa.array(v[1:], pa.large_string())).dtype.kind in "iuf"]
        if firsts:
            text = f"The first row looks like a header ({listed(firsts[:3])}): if it is, do not pass --no-header."
            yield Finding(code="SL114", text=text, severity="warning", numbers={"names": firsts[:20]})


# --------------------------------------------------------------------------------------------------------- other formats


def _parquet(name: str, content: bytes) -> pd.DataFrame:
    from pyarrow import parquet

    try:
        table = parquet.read_table(pa.BufferReader(content))
        table.validate(full=True)
        _check_names(name, table.column_names)
        for field in table.schema:
            if pa.types.is_nested(field.type) or pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
                raise DataError(f"{name}, column {shown(field.name)} holds {field.type} values: save plain ones instead.")
            if pa.types.is_decimal(field.type):
                index = table.schema.get_field_index(field.name)
                table = table.set_column(index, field.name, table.column(index).cast(pa.float64()))
        return table.to_pandas(date_as_object=False, ignore_metadata=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name} is a damaged Parquet file: write it again.") from None


_LIBSVM_LINE = re.compile(rb"\s*[^\s:,]+(\s+qid:\d+)?(\s+\d+:[^\s:]+)+\s*(#.*)?")
_LIBSVM_TOKEN = re.compile(r"(qid|\d+):[^\s:]+")


def _looks_like_libsvm(text: bytes) -> bool:
    lines = [line for line in text[:65536].splitlines()[:5] if line.strip() and not line.startswith(b"#")]
    return bool(lines) and any(_LIBSVM_LINE.fullmatch(line) for line in lines[:3])


def _libsvm(path: Path, text: bytes) -> Raw:
    from sklearn.datasets import load_svmlight_file

    name, has_query = path.name, b" qid:" in text
    try:
        features, target, *query = load_svmlight_file(io.BytesIO(text), query_id=has_query)
    except (ValueError, OverflowError, IndexError):
        raise DataError(_bad_token(name, text)) from None
    _check_width(name, features.shape[1])
    frame = pd.DataFrame(features.toarray(), columns=[f"feature {i}" for i in range(1, features.shape[1] + 1)])
    for values in query:
        if len(values) != len(frame):
            raise DataError(f"{name} has qid: on some lines only: give every line one, or none.")
        frame.insert(0, "qid", values)
    frame.insert(0, "label", target)
    return Raw(name, path, frame, target="label")


def _bad_token(name: str, text: bytes) -> str:
    for number, line in enumerate(text.decode().splitlines(), start=1):
        label, *tokens = line.split("#")[0].split() or ["0"]
        for token in [label, *tokens]:
            try:
                float(token if token is label else token.split(":")[1])
                if token is not label and not _LIBSVM_TOKEN.fullmatch(token):
                    raise ValueError
            except (ValueError, IndexError):
                return f"{name}, line {number}: {shown(token)} is not LIBSVM; a line is a number, then index:value pairs."
    return f"{name} is not LIBSVM: a line is a number, then index:value pairs with rising whole indices."


def _npz(path: Path, content: bytes) -> Raw:
    name = path.name
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            found = list(arrays)
            pairs = [("X", "y"), ("x", "y"), ("x_train", "y_train"), ("X_train", "y_train")]
            pair = next((pair for pair in pairs if set(pair) <= set(found)), None)
            if pair is None:
                raise DataError(f"{name} has arrays {listed(found) or 'none'}: X and y, or x_train and y_train, are needed.")
            X, y = arrays[pair[0]], arrays[pair[1]]
    except (ValueError, OSError, EOFError, KeyError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, DataError):
            raise
        said = "holds Python objects, which are never opened" if "Object arrays" in str(error) else "is damaged"
        raise DataError(f"{name} {said}: save plain numeric arrays X and y with numpy.savez.") from None
    _check_arrays(name, X, y)
    X = X.reshape(len(X), -1)
    _check_width(name, X.shape[1])
    frame = pd.DataFrame(X, columns=[f"feature {i}" for i in range(1, X.shape[1] + 1)])
    frame["y"] = y.reshape(-1)
    unread = [other for other in found if other not in pair]
    findings = []
    if unread:
        text = f"Arrays {listed(unread)} were not read, only {listed(pair)}."
        findings.append(Finding(code="SL115", text=text, severity="info", numbers={"arrays": unread}))
    return Raw(name, path, _plain(frame, name), target="y", findings=tuple(findings))


def _check_arrays(name: str, X: Values, y: Values) -> None:
    for label, array in (("X", X), ("y", y)):
        if array.dtype.kind not in "biufU" or array.ndim == 0:
            raise DataError(f"{name}, array {label} is {array.dtype} of shape {array.shape}: numbers in rows are needed.")
    if y.size != len(y) or len(X) != len(y):
        raise DataError(f"{name} has X of shape {X.shape} and y of shape {y.shape}: one target per row is needed.")
    if X.size == 0:
        raise DataError(f"{name} is empty: its array X has shape {X.shape}; rows and columns are needed.")


def _built_in(name: str) -> Raw:
    from sklearn import datasets

    bunch: Any = getattr(datasets, f"load_{name}")(as_frame=True)
    target = bunch.target.to_numpy()
    if name in ("breast_cancer", "iris", "wine"):
        target = np.array([str(word) for word in bunch.target_names], dtype=object)[target]
    frame = bunch.data.copy()
    frame[BUILT_IN[name]] = pd.Series(target, index=frame.index, dtype=target.dtype)
    return Raw(name, None, frame, target=BUILT_IN[name])


# ----------------------------------------------------------------------------------------------------------- data frames


def _to_pandas(source: Any) -> pd.DataFrame:
    if isinstance(source, pd.DataFrame):
        return source
    if hasattr(source, "collect"):
        raise DataError("the data is a lazy frame: call collect() first.")
    try:
        import narwhals
    except ImportError:
        narwhals = None
    try:
        if narwhals is not None:
            return narwhals.from_native(source, eager_only=True).to_pandas()
        return source.to_pandas()
    except (TypeError, AttributeError):
        kind = type(source).__name__
        raise DataError(f"data of type {kind} cannot be read: pass a path, a built-in name or a data frame.") from None


def _plain(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The columns of a typed source as plain NumPy values, text read as it is in files; the index is not data."""
    names = [str(column) for column in frame.columns]
    _check_names(name, names)
    _check_width(name, len(names))
    if len(frame) == 0:
        raise DataError(f"{name} is empty: it has {len(names)} columns and no rows.")
    return _frame(names, [_plain_values(frame.iloc[:, i], label, name) for i, label in enumerate(names)])


def _plain_values(series: pd.Series, label: str, name: str) -> Values:
    if isinstance(series.dtype, pd.SparseDtype):
        series = series.sparse.to_dense()
    kind = getattr(series.dtype, "kind", "O")
    if isinstance(series.dtype, pd.CategoricalDtype):
        words = np.array([*(str(word) for word in series.cat.categories), None], dtype=object)
        return words[series.cat.codes.to_numpy()]
    if kind == "M":
        dates = series.dt.tz_convert("UTC").dt.tz_localize(None) if getattr(series.dt, "tz", None) else series
        return dates.to_numpy(dtype="datetime64[us]")
    if kind == "m":
        return series.dt.total_seconds().to_numpy()
    if kind in "iuf" and series.hasnans:
        return series.to_numpy(dtype=float, na_value=np.nan)
    if kind in "iuf" or (kind == "b" and not series.hasnans):
        plain: Any = getattr(series.dtype, "numpy_dtype", series.dtype)
        values = series.to_numpy(dtype=plain)
        return values.astype(float) if values.dtype in (np.float16, np.longdouble) else values
    if kind == "c":
        raise DataError(f"{name}, column {shown(label)} holds complex numbers: split it into two columns of numbers.")
    return _plain_objects(series, label, name)


def _plain_objects(series: pd.Series, label: str, name: str) -> Values:
    objects = series.astype(object).where(series.notna(), None)
    inferred = pd.api.types.infer_dtype(objects, skipna=True)
    if inferred == "boolean":
        return objects.to_numpy() if series.hasnans else objects.to_numpy(dtype=bool)
    if inferred in ("datetime", "datetime64", "date"):
        return pd.to_datetime(objects, utc=True, errors="coerce").dt.tz_localize(None).to_numpy(dtype="datetime64[us]")
    if inferred == "bytes" or any(isinstance(value, (list, dict, set, tuple, np.ndarray)) for value in objects[:1000]):
        raise DataError(f"{name}, column {shown(label)} holds lists, dictionaries or bytes: use numbers, text or dates.")
    words = [None if value is None else str(value).encode("utf-8", "backslashreplace").decode() for value in objects]
    return type_text(pa.array(words, pa.large_string()))


def _frame(names: list[str], columns: list[Values]) -> pd.DataFrame:
    made = {i: pd.Series(values, dtype=values.dtype) for i, values in enumerate(columns)}
    return pd.DataFrame(made).set_axis(names, axis=1)


def _check_names(name: str, names: list[str]) -> None:
    twice = [label for label, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"{name} has more than one column called {listed(twice)}: rename them, or pass --no-header.")


def _check_width(name: str, width: int) -> None:
    if width > MAX_COLUMNS:
        raise DataError(f"{name} has {width:,} columns, more than {MAX_COLUMNS:,}: select fewer features first.")
