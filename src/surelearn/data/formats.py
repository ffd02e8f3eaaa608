"""From a file, a built-in set or a data frame to typed columns: delimited text, JSON lines, ARFF, Parquet, Feather, Excel,
LIBSVM, npz, gzipped or not.

What a file holds is decided by its first bytes, then by its name. Nothing is written, nothing is unpickled, and whatever
is wrong becomes one `DataError` sentence.
"""

from __future__ import annotations

import difflib
import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc

from surelearn import files
from surelearn.claim import Finding
from surelearn.data.arff import looks_like_arff, read_arff
from surelearn.data.columns import DataError, Values, listed, shown, type_text
from surelearn.data.delimited import as_utf8, from_text, read_delimited
from surelearn.data.excel import looks_like_excel, read_excel
from surelearn.data.json_lines import looks_like_json_lines, read_json_lines
from surelearn.data.raw import Raw, check_names, check_width, make_frame
from surelearn.unpacking import check_size, unzipped

BUILT_IN = {  # name: the name of its target
    "breast_cancer": "diagnosis",
    "iris": "species",
    "wine": "cultivar",
    "digits": "digit",
    "diabetes": "progression",
}
_NOT_TABLES = (  # first bytes of files that get renamed to .csv or .parquet
    (b"PK\x03\x04", "a zip archive: unpack it"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook, or a protected one: save it as .xlsx or CSV"),
    (b"%PDF", "a PDF document: export the table as CSV"),
    (b"SQLite format 3", "an SQLite database: export the table as CSV"),
    (b"\x93NUMPY", "a single NumPy array: save features and target as .npz with arrays X and y"),
    (b"\x89HDF", "an HDF5 file: export the table as CSV or Parquet"),
    (b"FEA1", "a Feather file of the first version: save the table as Feather, Parquet or CSV"),
    (b"\x89PNG", "an image: a table is needed"),
    (b"\xff\xd8\xff", "an image: a table is needed"),
    (b"BZh", "compressed with bzip2: decompress it, or use gzip"),
    (b"\xfd7zXZ", "compressed with xz: decompress it, or use gzip"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: decompress it, or use gzip"),
    (b"\x80\x04\x95", "a pickle, which is never opened: save the table as CSV or Parquet"),
)


def load(source: Any, *, header: bool | None, labelled: bool = True) -> Raw:
    """Read whatever ``source`` is: None, a built-in name, a path, or a data frame; an npz may lack y if not ``labelled``."""
    source = "breast_cancer" if source is None else source
    if isinstance(source, (str, Path)):
        path = Path(source)
        if str(source) in BUILT_IN and not path.is_file():
            return _built_in(str(source))
        return from_bytes(path, _bytes(path), header, labelled)
    return Raw(name="the data frame", path=None, frame=_plain(_to_pandas(source), "the data frame"))


# ----------------------------------------------------------------------------------------------------------------- files


def _bytes(path: Path) -> bytes:
    try:
        files.check_regular(path, path.name)
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(not_found(path)) from None
    except IsADirectoryError:
        raise DataError(f"{path} is a directory: name the file inside it.") from None
    except PermissionError:
        raise DataError(f"{path} may not be read: no permission; change its permissions or copy it.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{shown(path)} cannot be read ({error}): check the path.") from None
    if content[:2] == b"\x1f\x8b":
        try:
            content = b"".join(unzipped(path.name, io.BytesIO(content)))
        except ValueError as error:
            raise DataError(f"{error}.") from None
        except (OSError, EOFError, zlib.error):
            raise DataError(f"{path.name} is a damaged gzip file: fetch or compress it again.") from None
    if not content.strip():
        raise DataError(f"{path.name} is empty: a table with a header and rows is needed.")
    return content


def too_much(name: str, unpacked: int, packed: int) -> None:
    """Refuse what unpacks to too much, as `surelearn.unpacking.check_size` does."""
    try:
        check_size(name, unpacked, packed)
    except ValueError as error:
        raise DataError(f"{error}.") from None


def not_found(path: Path) -> str:
    """The sentence for a path where there is nothing, with near names."""
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


def kind_of(name: str, content: bytes) -> str:
    """What a file holds, from its first bytes, then its name.

    One of "parquet", "feather", "excel", "npz", "json lines", "arff", "libsvm" and "text".
    """
    suffix = Path(name.lower().removesuffix(".gz")).suffix
    if content[:4] == b"PAR1":
        return "parquet"
    if content[:6] == b"ARROW1" or content[:4] == b"\xff\xff\xff\xff":
        return "feather"
    if looks_like_excel(content):
        return "excel"
    if suffix == ".npz" and content[:2] == b"PK":
        return "npz"
    for magic, what in _NOT_TABLES:
        if content.startswith(magic):
            raise DataError(f"{name} is {what}.")
    if suffix in (".parquet", ".npz", ".feather", ".arrow", ".xlsx"):
        raise DataError(f"{name} is not a {suffix[1:]} file, or is damaged: save it again, or name it .csv if it is text.")
    start = content[:65536].removeprefix(b"\xef\xbb\xbf")
    if suffix in (".jsonl", ".ndjson") or looks_like_json_lines(start):
        return "json lines"
    if suffix == ".arff" or looks_like_arff(start):
        return "arff"
    libsvm = suffix in (".libsvm", ".svm", ".svmlight")
    return "libsvm" if libsvm or (suffix not in (".csv", ".tsv") and _looks_like_libsvm(as_utf8(name, content))) else "text"


def from_bytes(path: Path, content: bytes, header: bool | None, labelled: bool) -> Raw:
    """Read the content of a file, as `load` does."""
    name = path.name
    kind = kind_of(name, content)
    if kind == "parquet":
        return Raw(name, path, _plain(_parquet(name, content), name))
    if kind == "feather":
        return Raw(name, path, _plain(_feather(name, content), name))
    if kind == "excel":
        table, findings = read_excel(name, content)
        made = from_text(name, path, table, header)
        return replace(made, findings=(*made.findings, *findings))
    if kind == "npz":
        return _npz(path, content, labelled)
    text = as_utf8(name, content, lines=kind == "json lines")
    if kind == "json lines":
        return Raw(name, path, _plain(read_json_lines(name, text), name))
    if kind == "arff":
        return read_arff(path, text)
    return _libsvm(path, text) if kind == "libsvm" else read_delimited(path, text, header)


def check_columns(name: str, schema: pa.Schema) -> None:
    """Refuse columns that hold no plain values."""
    for column in schema:
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
            raise DataError(f"{name}, column {shown(column.name)} holds {column.type} values: save plain ones instead.")


def _parquet(name: str, content: bytes) -> pd.DataFrame:
    from pyarrow import parquet

    with arrow_file(name, "Parquet"):
        described = parquet.read_metadata(pa.BufferReader(content))
        stated = sum(described.row_group(i).total_byte_size for i in range(described.num_row_groups))
        too_much(name, max(stated, 8 * described.num_rows * described.num_columns), len(content))
        return _from_arrow(name, parquet.read_table(pa.BufferReader(content)))


def _feather(name: str, content: bytes) -> pd.DataFrame:
    with arrow_file(name, "Feather"):
        schema, batches = open_feather(pa.BufferReader(content), content[:6])
        kept, size = [], 0
        for batch in batches:
            size += batch.nbytes
            too_much(name, size, len(content))
            kept.append(batch)
        return _from_arrow(name, pa.Table.from_batches(kept, schema))


def open_feather(source: Any, start: bytes) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns and the batches of Feather: Arrow's format of files (which begin with ARROW1) or of streams."""
    if start != b"ARROW1":
        stream = pa.ipc.open_stream(source)
        return stream.schema, iter(stream)
    file = pa.ipc.open_file(source)
    return file.schema, (file.get_batch(i) for i in range(file.num_record_batches))


@contextmanager
def arrow_file(name: str, kind: str) -> Iterator[None]:
    """Whatever goes wrong while pyarrow reads a file is a `DataError`."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name} is a damaged {kind} file: write it again.") from None


def _from_arrow(name: str, table: pa.Table) -> pd.DataFrame:
    table.validate(full=True)
    check_names(name, table.column_names)
    check_columns(name, table.schema)
    for field in table.schema:
        if pa.types.is_decimal(field.type):
            index = table.schema.get_field_index(field.name)
            table = table.set_column(index, field.name, table.column(index).cast(pa.float64()))
    return table.to_pandas(date_as_object=False, ignore_metadata=True)


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
    check_width(name, features.shape[1])
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


def _npz(path: Path, content: bytes, labelled: bool) -> Raw:
    name = path.name
    try:
        too_much(name, sum(member.file_size for member in zipfile.ZipFile(io.BytesIO(content)).infolist()), len(content))
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            found = list(arrays)
            pairs = [("X", "y"), ("x", "y"), ("x_train", "y_train"), ("X_train", "y_train")]
            pair = next((pair for pair in pairs if set(pair) <= set(found)), None)
            if pair is None and not labelled and found[:1] in (["X"], ["x"]):
                pair = (found[0], None)
            if pair is None:
                raise DataError(f"{name} has arrays {listed(found) or 'none'}: X and y, or x_train and y_train, are needed.")
            X = arrays[pair[0]]
            y = np.zeros(len(X)) if pair[1] is None else arrays[pair[1]]
    except (ValueError, OSError, EOFError, KeyError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, DataError):
            raise
        said = "holds Python objects, which are never opened" if "Object arrays" in str(error) else "is damaged"
        raise DataError(f"{name} {said}: save plain numeric arrays X and y with numpy.savez.") from None
    _check_arrays(name, X, y)
    X = X.reshape(len(X), -1)
    check_width(name, X.shape[1])
    frame = pd.DataFrame(X, columns=[f"feature {i}" for i in range(1, X.shape[1] + 1)])
    if pair[1] is not None:
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
    check_names(name, names)
    check_width(name, len(names))
    if len(frame) == 0:
        raise DataError(f"{name} is empty: it has {len(names)} columns and no rows.")
    return make_frame(names, [_plain_values(frame.iloc[:, i], label, name) for i, label in enumerate(names)])


def _plain_values(series: pd.Series, label: str, name: str) -> Values:
    if isinstance(series.dtype, pd.SparseDtype):
        series = series.sparse.to_dense()
    if isinstance(series.dtype, np.dtype) and not series.dtype.isnative:  # pandas reads no other order of bytes
        series = pd.Series(series.to_numpy().astype(series.dtype.newbyteorder("=")), name=series.name)
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
