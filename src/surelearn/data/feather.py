"""Feather: Arrow's format of files, which begin with ARROW1, or of streams; whole and batch by
batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.ipc

from surelearn.data.arrow import arrow_file, check_columns, plain_frame
from surelearn.data.opening import too_much
from surelearn.data.raw import check_names, check_width


class FeatherSource:
    """The batches of a Feather file.

    Parameters
    ----------
    name : how sentences name it
    source : the file, which is mapped, or its content
    held : whether all rows will be in memory at once
    """

    def __init__(self, name: str, source: Path | bytes, *, held: bool = False) -> None:
        self.name, self._held = name, held
        with arrow_file(name, "Feather"):
            self._source: Any = (
                pa.BufferReader(source) if isinstance(source, bytes) else pa.memory_map(str(source))
            )
            self._size = self._source.size()
            is_file = self._source.read(6) == b"ARROW1"
            self._source.seek(0)
            self._reader: Any = (
                pa.ipc.open_file(self._source) if is_file else pa.ipc.open_stream(self._source)
            )
            self._is_file = is_file
            self.schema: pa.Schema = self._reader.schema
        check_names(name, self.schema.names)
        check_width(name, len(self.schema.names))
        check_columns(name, self.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows; what a batch unpacks to is known only after it was."""
        unpacked = 0
        with arrow_file(self.name, "Feather"):
            count = self._reader.num_record_batches if self._is_file else 0
            for batch in (
                (self._reader.get_batch(i) for i in range(count)) if self._is_file else self._reader
            ):
                unpacked += batch.nbytes
                too_much(self.name, unpacked, self._size, held=self._held)
                yield batch

    def close(self) -> None:
        """Let go of the file."""
        self._source.close()


def read_feather(name: str, content: bytes) -> pd.DataFrame:
    """All rows of a Feather file, by its content."""
    source = FeatherSource(name, content, held=True)
    kept = list(source.batches())
    with arrow_file(name, "Feather"):
        return plain_frame(name, pa.Table.from_batches(kept, source.schema))
