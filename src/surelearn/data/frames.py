"""Data frames, and other typed sources, as plain NumPy columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from surelearn.data.columns import DataError, Values, shown, type_text
from surelearn.data.raw import check_names, check_width, make_frame
from surelearn.types import HasShape

Frame: TypeAlias = pd.DataFrame | HasShape  # of pandas, polars or another library
Source: TypeAlias = str | Path | Frame  # a built-in name, a path, or a data frame


def to_pandas(source: Frame) -> pd.DataFrame:
    """A pandas, polars or other data frame as a pandas one."""
    if isinstance(source, pd.DataFrame):
        return source
    frame: Any = source
    if hasattr(source, "collect"):
        raise DataError("the data is a lazy frame: call collect() first.")
    try:
        import narwhals
    except ImportError:
        narwhals = None
    try:
        if narwhals is not None:
            return narwhals.from_native(frame, eager_only=True).to_pandas()
        return frame.to_pandas()
    except (TypeError, AttributeError):
        kind = type(source).__name__
        raise DataError(
            f"data of type {kind} cannot be read: pass a path, a built-in name or a data frame."
        ) from None


def plain(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The columns of a typed source as plain NumPy values, text read as it is in files; the
    index is not data.
    """
    names = [str(column) for column in frame.columns]
    check_names(name, names)
    check_width(name, len(names))
    if len(frame) == 0:
        raise DataError(f"{name} is empty: it has {len(names)} columns and no rows.")
    return make_frame(
        names, [_plain_values(frame.iloc[:, i], label, name) for i, label in enumerate(names)]
    )


def _plain_values(series: pd.Series, label: str, name: str) -> Values:
    if isinstance(series.dtype, pd.SparseDtype):
        series = series.sparse.to_dense()
    # pandas reads no other order of bytes
    if isinstance(series.dtype, np.dtype) and not series.dtype.isnative:
        series = pd.Series(
            series.to_numpy().astype(series.dtype.newbyteorder("=")), name=series.name
        )
    kind = getattr(series.dtype, "kind", "O")
    if isinstance(series.dtype, pd.CategoricalDtype):
        words = np.array([*(str(word) for word in series.cat.categories), None], dtype=object)
        return words[series.cat.codes.to_numpy()]
    if kind == "M":
        dates = (
            series.dt.tz_convert("UTC").dt.tz_localize(None)
            if getattr(series.dt, "tz", None)
            else series
        )
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
        raise DataError(
            f"{name}, column {shown(label)} holds complex numbers: split it into two columns of"
            " numbers."
        )
    return _plain_objects(series, label, name)


def _plain_objects(series: pd.Series, label: str, name: str) -> Values:
    objects = series.astype(object).where(series.notna(), None)
    inferred = pd.api.types.infer_dtype(objects, skipna=True)
    if inferred == "boolean":
        return objects.to_numpy() if series.hasnans else objects.to_numpy(dtype=bool)
    if inferred in ("datetime", "datetime64", "date"):
        return (
            pd.to_datetime(objects, utc=True, errors="coerce")
            .dt.tz_localize(None)
            .to_numpy(dtype="datetime64[us]")
        )
    if inferred == "bytes" or any(
        isinstance(value, (list, dict, set, tuple, np.ndarray)) for value in objects[:1000]
    ):
        raise DataError(
            f"{name}, column {shown(label)} holds lists, dictionaries or bytes: use numbers, text"
            " or dates."
        )
    words = [
        None if value is None else str(value).encode("utf-8", "backslashreplace").decode()
        for value in objects
    ]
    return type_text(pa.array(words, pa.large_string()))
