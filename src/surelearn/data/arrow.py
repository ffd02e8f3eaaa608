"""What Parquet and Feather share: Arrow's tables, columns that are refused, and a damaged file's
sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd
import pyarrow as pa

from surelearn.data.columns import DataError, shown
from surelearn.data.raw import check_names


@contextmanager
def arrow_file(name: str, kind: str) -> Iterator[None]:
    """Whatever goes wrong while a file is decoded is a `DataError`."""
    try:
        yield
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        IndexError,
        OverflowError,
        MemoryError,
    ) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name} is a damaged {kind} file: write it again.") from None


def check_columns(name: str, schema: pa.Schema) -> None:
    """Refuse columns that hold no plain values."""
    for column in schema:
        if (
            pa.types.is_nested(column.type)
            or pa.types.is_binary(column.type)
            or pa.types.is_large_binary(column.type)
        ):
            raise DataError(
                f"{name}, column {shown(column.name)} holds {column.type} values: save plain ones"
                " instead."
            )


def plain_frame(name: str, table: pa.Table) -> pd.DataFrame:
    """A table of plain values as a data frame; decimals as floats."""
    table.validate(full=True)
    check_names(name, table.column_names)
    check_columns(name, table.schema)
    for field in table.schema:
        if pa.types.is_decimal(field.type):
            index = table.schema.get_field_index(field.name)
            table = table.set_column(index, field.name, table.column(index).cast(pa.float64()))
    return table.unify_dictionaries().to_pandas(date_as_object=False, ignore_metadata=True)
