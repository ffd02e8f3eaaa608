"""Which certify rows were used, for what, how often: so that a second look at the same rows pays.

The first audit of a row has δ; the k-th has δ·6/(π²k²), k = 1 + the largest count among its rows. Together they fail in at
most 1.4δ, however many there are, as long as no later model was built from what an earlier audit showed: twenty audits that
each learn from the last one's numbers can fool this price (`tests/bounds/test_coverage.py` shows it). Repeating a recorded
audit unchanged tells nothing new and is not charged. A table with the same targets as a recorded one is taken for the same
table, also where a new column has changed every row's hash.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import os
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surelearn import files
from surelearn.selection.split import Hashes

FORMAT = "surelearn-ledger"
VERSION = 1
_ORDINALS = {1: "first", 2: "second", 3: "third"}


@dataclass(frozen=True)
class Entry:
    """One recorded audit: what it was (a hash of model, rows and options), its turn, the rows it used, of which table."""

    audit: str
    turn: int
    rows: Hashes
    table: str = ""


def allowance(delta: float, turn: int) -> float:
    """The failure probability of the turn-th audit of the same rows: δ at first, then δ·6/(π²·turn²).

    Examples
    --------
    >>> [round(allowance(0.05, turn), 4) for turn in (1, 2, 3)]
    [0.05, 0.0076, 0.0034]
    """
    return delta if turn == 1 else delta * 6 / (math.pi * turn) ** 2


def ordinal(turn: int) -> str:
    """The turn in words: "first", "second", "third", "4th".

    Examples
    --------
    >>> ordinal(3), ordinal(11), ordinal(22)
    ('third', '11th', '22nd')
    """
    if turn in _ORDINALS:
        return _ORDINALS[turn]
    ending = "th" if 10 <= turn % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(turn % 10, "th")
    return f"{turn}{ending}"


class Ledger:
    """The record of audits of one data set, in a small JSON file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.entries = [] if path is None else _read(path)

    def turn(self, audit: str, rows: Hashes, table: str = "") -> int:
        """Which audit of these rows this is: 1 + the largest number of recorded audits of any of them."""
        for entry in self.entries:
            if entry.audit == audit:
                return entry.turn
        counts = np.zeros(rows.size, dtype=int)
        for entry in self.entries:
            counts += np.isin(rows, entry.rows) | bool(table and table == entry.table)
        return 1 + int(counts.max(initial=0))

    def record(self, audit: str, rows: Hashes, table: str = "") -> int:
        """Record an audit, on disk before anything is shown; returns its turn. A recorded one is left as it is."""
        with nullcontext() if self.path is None else files.locked(self.path):
            if self.path is not None:
                self.entries = _read(self.path)  # another process may have written since
            turn = self.turn(audit, rows, table)
            if all(entry.audit != audit for entry in self.entries):
                self.entries.append(Entry(audit, turn, rows, table))
                if self.path is not None:
                    _write(self.path, self.entries)
        return turn


def ledger_path(data: Path | None, stated: Path | None = None) -> Path:
    """Where the ledger lives: as stated, beside the data, or in the user's state folder for data without a file."""
    if stated is not None:
        return stated
    if data is not None and os.access(data.parent, os.W_OK):
        return data.with_name(f".{data.name}.surelearn-ledger.json")
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    name = "built-in" if data is None else str(data.resolve()).replace(os.sep, "_").lstrip("_")
    return home / "surelearn" / f"{name}.surelearn-ledger.json"


def _read(path: Path) -> list[Entry]:
    if not path.exists():
        return []
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        if plain["format"] != FORMAT:
            raise ValueError(f"its format is not {FORMAT!r}")
        if plain["version"] > VERSION:
            raise ValueError(f"it has version {plain['version']}, this surelearn reads up to {VERSION}")
        return [Entry(e["audit"], int(e["turn"]), _unpack(e["rows"]), e.get("table", "")) for e in plain["audits"]]
    except (ValueError, KeyError, TypeError, OSError, binascii.Error) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"{path} is not a ledger that can be read ({reason}): it records which rows were certified, so put it back "
            "or, if no audit of these data was ever shown to anyone, delete it"
        ) from None


def _write(path: Path, entries: list[Entry]) -> None:
    plain: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "note": "rows that certified a model; deleting this file makes later certificates of the same rows untrue",
        "audits": [{"audit": e.audit, "turn": e.turn, "table": e.table, "rows": _pack(e.rows)} for e in entries],
    }
    files.write(path, json.dumps(plain, indent=1) + "\n")


def _pack(rows: Hashes) -> str:
    return base64.b64encode(np.sort(rows).astype("<u8").tobytes()).decode()


def _unpack(text: str) -> Hashes:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<u8").astype(np.uint64)
