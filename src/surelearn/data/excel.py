"""Excel workbooks: the first sheet that has rows, cell by cell as text; needs python-calamine
(the extra ``excel``).
"""

from __future__ import annotations

import datetime
import io
import sys
import zipfile
import zlib
from typing import TypeAlias

import pyarrow as pa

from surelearn.claim import Finding
from surelearn.data.columns import DataError, listed
from surelearn.data.raw import check_width
from surelearn.unpacking import check_size

MOST_CELLS = 50_000_000
_PIECE = 2**20


def looks_like_excel(start: bytes) -> bool:
    """Whether a zip archive begins as a workbook does."""
    return start[:2] == b"PK" and any(
        part in start[:65536] for part in (b"xl/workbook", b"xl/_rels", b"xl/worksheets")
    )


def read_excel(name: str, content: bytes) -> tuple[pa.Table, tuple[Finding, ...]]:
    """The cells of the first sheet that has rows, as text, and a finding about sheets that were
    not read (SL130).
    """
    try:
        import python_calamine as calamine  # pyright: ignore[reportMissingImports] - an extra
    except ImportError:
        raise DataError(
            f"{name} is an Excel workbook: pip install 'surelearn[excel]' to read it, or save the"
            " sheet as CSV."
        ) from None
    _check_size(name, content)
    try:
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        sheets = [book.get_sheet_by_name(label) for label in book.sheet_names]
        filled = [sheet for sheet in sheets if sheet.height > 0]
        if not filled:
            raise DataError(f"{name} is empty: none of its sheets has rows.")
        sheet = filled[0]
        check_width(name, sheet.width)
        if sheet.height * sheet.width > MOST_CELLS:
            raise DataError(
                f"{name} has {sheet.height * sheet.width:,} cells, more than {MOST_CELLS:,}: save"
                " it as Parquet."
            )
        rows = sheet.to_python(skip_empty_area=True)
    except DataError:
        raise
    except Exception as error:  # a damaged workbook raises whatever its reader meets
        raise DataError(
            f"{name} is a damaged or protected Excel workbook ({type(error).__name__}): save it"
            " again."
        ) from None
    cells = [[_text(cell) for cell in row] for row in rows if any(cell != "" for cell in row)]
    if not cells or len(cells[0]) < 2:
        raise DataError(
            f"{name}, sheet {sheet.name!r:.60} has one column or none: a target and a feature are"
            " needed."
        )
    columns = [pa.array(column, pa.large_string()) for column in zip(*cells, strict=True)]
    table = pa.table(columns, names=[f"f{i}" for i in range(len(columns))])
    return table, tuple(_unread(sheet.name, [other.name for other in filled[1:]]))


def _check_size(name: str, content: bytes) -> None:
    """Refuse an archive that unpacks to too much, whatever sizes it states: the reader of
    workbooks goes on past them.
    """
    unpacked = 0
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist():
                member.file_size = sys.maxsize
                del member.CRC
                with archive.open(member) as file:
                    while piece := file.read(_PIECE):
                        unpacked += len(piece)
                        check_size(name, unpacked, len(content))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError):
        raise DataError(
            f"{name} is a damaged or protected Excel workbook: save it again."
        ) from None
    except ValueError as error:
        raise DataError(f"{error}.") from None


# what the reader of workbooks makes of a cell
Cell: TypeAlias = (
    bool | float | str | datetime.date | datetime.time | datetime.datetime | datetime.timedelta
)


def _text(cell: Cell) -> str:
    """A cell as a text table would hold it: 5 for 5.0, dates in ISO form."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return f"{cell:.0f}" if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(sep=" ")
    if isinstance(cell, datetime.timedelta):
        return repr(cell.total_seconds())
    return str(cell)


def _unread(read: str, others: list[str]) -> list[Finding]:
    if not others:
        return []
    text = (
        f"Of the workbook, sheet {listed([read])} was read, not {listed(others)}: save the sheet"
        " that is meant by itself."
    )
    return [Finding(code="SL130", text=text, severity="notice", numbers={"sheets": others[:20]})]
