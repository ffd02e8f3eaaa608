"""Which tables were looked at, when and for what: so that a second look at the same rows pays.

The first audit of a table has δ; the k-th has δ·6/(π²k²), k = 1 + the number of recorded looks at a
table that shares rows or targets with this one (`surelearn.selection.sketch`). Together they fail
in at most 1.4δ, however many there are, as long as no later model was built from what an earlier
page showed: twenty audits that each learn from the last one's numbers can fool this price
(`tests/bounds/test_coverage.py` shows it), and `surelearn gate` is for them. Repeating a recorded
audit unchanged tells nothing new and is not charged.

Looks are recorded in the user's own ledger, in the state folder, and beside the data; a ledger that
is named takes the place of both. Every one is read, and a look that stands in several counts once.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from surelearn import files
from surelearn.documents import check_format, checked, read_json, reading
from surelearn.selection.sketch import Sketch, Smallest
from surelearn.selection.split import Hashes

FORMAT = "surelearn-ledger"
VERSION = 2
_SALT_BYTES = 32
LedgerArgument = Path | str | Literal[False] | None
_ORDINALS = {1: "first", 2: "second", 3: "third"}


@dataclass(frozen=True, kw_only=True)
class Look:
    """One recorded use of certify rows.

    Attributes
    ----------
    audit : a hash of model, rows and options: the same again is the same look
    turn : which look at this table it was
    table : the key of the table's sketch in the ledger
    kind : "audit" for a page of numbers; "gate" for one that answered pass or fail alone
    models : hashes of the models that shared the page's δ; a later audit of one of them is not
        charged; where the page had no verdict also `unclaimed` ones
    when, name, target, rows : for people
    loss_bound : the stated largest loss, where the certify rows ``contradicted`` it
    answer : of a gate: "" until it was answered
    """

    audit: str
    turn: int
    table: str
    kind: Literal["audit", "gate"] = "audit"
    models: tuple[str, ...] = ()
    when: str = ""
    name: str = ""
    target: str = ""
    rows: int = 0
    loss_bound: float | None = None
    contradicted: bool = False
    answer: Literal["", "pass", "fail"] = ""


@dataclass(frozen=True, eq=False)
class Known:
    """A table as a ledger knows it: by its sketch or, in ledgers of version 1, by certify rows and
    sorted targets.

    ``target`` and ``columns`` are hashes of names: a table that was read with another of its
    columns as the target asks another question, although its rows are the same. ``counts`` is a
    hash of how often each label occurs, of a table that is too long to be sketched to its end; "" of
    others, and where all labels are equally frequent.
    """

    sketch: Sketch | None = None
    rows: Hashes = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    targets: str = ""
    target: str = ""
    columns: tuple[str, ...] = ()
    counts: str = ""
    parts: tuple[Smallest, ...] = ()

    def shares(self, other: Known) -> bool:
        """Whether two tables are partly the same data, with the same target."""
        if self.counts and self.counts == other.counts:
            return True
        if any(one.shares(part) for one in self.parts for part in other.parts):
            return True
        if self.sketch is not None and other.sketch is not None:
            swapped = (
                self.target != other.target
                and self.target in other.columns
                and other.target in self.columns
            )
            return self.sketch.shares(other.sketch, contents=not swapped)
        return bool(self.targets and self.targets == other.targets) or bool(
            np.isin(self.rows, other.rows).any()
        )


def allowance(delta: float, turn: int) -> float:
    """The failure probability of the turn-th audit of the same rows: δ at first, then
    δ·6/(π²·turn²).

    Examples
    --------
    >>> [round(allowance(0.05, turn), 4) for turn in (1, 2, 3)]
    [0.05, 0.0076, 0.0034]
    """
    return delta if turn == 1 else delta * 6 / (math.pi * turn) ** 2


def unclaimed(model: str) -> str:
    """What stands among the ``models`` of a page without a verdict until one has its turn."""
    return f"unclaimed {model}"


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


@dataclass(eq=False)
class _Book:
    """What one file holds."""

    looks: list[Look] = field(default_factory=list)
    tables: dict[str, Known] = field(default_factory=dict)

    def add(self, look: Look, table: Known) -> None:
        key = next((key for key, known in self.tables.items() if _identical(known, table)), "")
        if not key:
            key = f"table {len(self.tables) + 1}"
            self.tables[key] = table
        self.looks.append(replace(look, table=key))


class Ledger:
    """The record of looks, in one or several small JSON files; without a file, for this object's
    life only.

    Parameters
    ----------
    *paths : the files; each is read, and written to by `record`
    """

    def __init__(self, *paths: Path) -> None:
        self.paths = tuple(dict.fromkeys(Path(os.path.abspath(path)) for path in paths))
        self._books = [_Book()] if not paths else [_read(path) for path in self.paths]

    @property
    def looks(self) -> list[Look]:
        """Every recorded look once, by turn and time."""
        return self._once(look for book in self._books for look in book.looks)

    def at(self, table: Known) -> list[Look]:
        """Recorded looks at tables that share rows or targets with this one."""
        rest = [(i, key) for i, book in enumerate(self._books) for key in book.tables]
        known, near = set(), [table]
        while near:  # also tables that share with one that shares
            one = near.pop()
            same = [place for place in rest if self._books[place[0]].tables[place[1]].shares(one)]
            near += [self._books[i].tables[key] for i, key in same]
            known |= {*same}
            rest = [place for place in rest if place not in known]
        return self._once(
            look
            for i, book in enumerate(self._books)
            for look in book.looks
            if (i, look.table) in known
        )

    def turn(self, look: Look, table: Known) -> int:
        """Which look at this table it is; of a recorded one, and of a model that shared the δ
        of one, that one's turn.
        """
        related = self.at(table)
        for known in related:
            paid = (
                known.kind == look.kind == "audit"
                and look.models
                and set(look.models) <= set(known.models)
            )
            if known.audit == look.audit or paid:
                return known.turn
        return 1 + len(related)

    def record(
        self, look: Look, table: Known, *, withheld: bool = False, instead_of: str = ""
    ) -> Look:
        """Record a look, on disk, before anything is shown; returns it with its turn. A
        recorded one is left as it is.

        A page that is ``withheld`` guarantees nothing until somebody says which rows belong together,
        or vouches for them: the first page that does has its turn, once. With groups that is another
        model's, so to say: ``instead_of`` is the hash of the model as it was without.
        """
        with self._held():
            paid = {unclaimed(model) for model in (*look.models, instead_of) if model}
            waiting = [] if withheld else [known for known in self.looks if paid & {*known.models}]
            recorded = next((known for known in self.looks if known.audit == look.audit), None)
            if recorded is not None and not waiting:
                return recorded
            for known in waiting:
                left = tuple(model for model in known.models if model not in paid)
                self._change(known.audit, models=left)
            if recorded is None:
                models = (*look.models, *map(unclaimed, look.models)) if withheld else look.models
                taken = bool(instead_of and waiting)
                turn = waiting[0].turn if taken else self.turn(look, table)
                turn, when = max(look.turn, turn), look.when or _now()
                recorded = replace(look, models=models, turn=turn, when=when)
                for book in self._books:
                    book.add(recorded, table)
                if taken:  # to vouch for the rows after all is a later look
                    self._change(waiting[0].audit, turn=len(self.at(table)))
            self._write()
        return recorded

    def amend(self, audit: str, **changes: Any) -> None:
        """Add to a recorded look what became of it: the answer of a gate, a contradicted bound."""
        with self._held():
            self._change(audit, **changes)
            self._write()

    def _change(self, audit: str, **changes: Any) -> None:
        for book in self._books:
            book.looks = [
                replace(look, **changes) if look.audit == audit else look for look in book.looks
            ]

    @staticmethod
    def _once(looks: Iterable[Look]) -> list[Look]:
        known: dict[str, Look] = {}
        for look in looks:
            if look.audit not in known or look.answer:
                known[look.audit] = look
        return sorted(known.values(), key=lambda look: (look.turn, look.when))

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Nobody else writes meanwhile, and what others wrote before is known."""
        with ExitStack() as stack:
            for folder in sorted({path.parent for path in self.paths}):
                stack.enter_context(files.locked(folder / "ledger"))
            if self.paths:
                self._books = [_read(path) for path in self.paths]
            yield

    def _write(self) -> None:
        for path, book in zip(self.paths, self._books, strict=False):
            _write(path, book)


def ledger_paths(data: Path | None, stated: LedgerArgument = None) -> tuple[Path, ...]:
    """Where looks are recorded: as stated, else in the user's state folder and beside the data;
    none for False.
    """
    if stated is False:
        return ()
    if stated is not None:
        return (Path(stated),)
    places = [state_folder() / "ledger.json"]
    if data is not None:
        places.append(data.with_name(f".{data.name}.surelearn-ledger.json"))
    return tuple(place for place in places if place.exists() or _writable(place.parent))


def state_folder() -> Path:
    """The user's folder for what programs remember: ``$XDG_STATE_HOME/surelearn``, by default
    in ``~/.local/state``.
    """
    try:
        return (
            Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "surelearn"
        )
    except RuntimeError:
        raise ValueError(
            "this user has no home folder: set XDG_STATE_HOME to the folder where looks are"
            " recorded"
        ) from None


def secret_salt(*, make: bool = True) -> bytes | None:
    """The user's salt for coins, made at its first use and never published; None where there is
    none to be had.
    """
    path = state_folder() / "salt"
    if not path.exists():
        if not make:
            return None
        with files.locked(path):
            if not path.exists():
                files.write(path, os.urandom(_SALT_BYTES))
                path.chmod(0o600)
    salt = files.read(path, most=2**20)
    if len(salt) != _SALT_BYTES:
        raise ValueError(
            f"{path} is no salt that surelearn made ({len(salt):,} bytes instead of {_SALT_BYTES}):"
            " coins drawn with it would not be secret, so put it back or delete it; a new salt is"
            " a new look"
        )
    return salt


def _writable(folder: Path) -> bool:
    there = next(place for place in (folder, *folder.parents) if place.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


def _identical(one: Known, other: Known) -> bool:
    if one.sketch is None or other.sketch is None:
        return one is other
    said = [
        (known.target, known.columns, known.counts, [part.to_dict() for part in known.parts])
        for known in (one, other)
    ]
    return said[0] == said[1] and one.sketch.to_dict() == other.sketch.to_dict()


def _read(path: Path) -> _Book:
    if not path.exists():
        return _Book()
    try:
        plain = read_json(path, "it")
        version = check_format(plain, "a ledger", FORMAT, VERSION)
        with reading("the ledger"):
            return _read_first_version(plain["audits"]) if version == 1 else _read_looks(plain)
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{path} is not a ledger that can be read ({str(error)[:80]}): it records which rows"
            " were certified, so put it back or, if no audit of these data was ever shown to"
            " anyone, delete it"
        ) from None


def _read_looks(plain: dict[str, Any]) -> _Book:
    tables = {str(key): _read_known(known) for key, known in plain["tables"].items()}
    looks = [checked(Look(**{**look, "models": tuple(look["models"])})) for look in plain["looks"]]
    for look in looks:
        if look.table not in tables or look.turn < 1:
            raise ValueError(f"the look {look.audit[:20]!r} is damaged")
    return _Book(looks, tables)


def _read_known(plain: dict[str, Any]) -> Known:
    if "sketch" in plain:
        names = {"target": str(plain["target"]), "columns": tuple(map(str, plain["columns"]))}
        names["counts"] = str(plain.get("counts", ""))
        parts = tuple(Smallest.from_dict(part) for part in plain.get("parts", ()))
        return Known(Sketch.from_dict(plain["sketch"]), parts=parts, **names)
    return Known(rows=_unpack(plain["rows"]), targets=str(plain["targets"]))


def _read_first_version(audits: Sequence[dict[str, Any]]) -> _Book:
    """Version 1 kept the certify rows of each audit, and a hash of the table's sorted targets."""
    looks, tables = [], {}
    for entry in audits:
        key = f"first-version-{entry['audit']}"
        tables[key] = Known(rows=_unpack(entry["rows"]), targets=str(entry.get("table", "")))
        looks.append(checked(Look(audit=entry["audit"], turn=entry["turn"], table=key)))
    return _Book(looks, tables)


def _write(path: Path, book: _Book) -> None:
    plain: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "note": (
            "tables whose rows certified a model; deleting this file makes later certificates of"
            " the same rows untrue"
        ),
        "looks": [asdict(look) for look in book.looks],
        "tables": {key: _write_known(known) for key, known in book.tables.items()},
    }
    files.write(path, json.dumps(plain, indent=1) + "\n")


def _write_known(known: Known) -> dict[str, Any]:
    if known.sketch is not None:
        return {
            "target": known.target,
            "columns": list(known.columns),
            "sketch": known.sketch.to_dict(),
            **({"parts": [part.to_dict() for part in known.parts]} if known.parts else {}),
            **({"counts": known.counts} if known.counts else {}),
        }
    return {
        "rows": base64.b64encode(np.sort(known.rows).astype("<u8").tobytes()).decode(),
        "targets": known.targets,
    }


def _unpack(text: str) -> Hashes:
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), dtype="<u8").astype(np.uint64)
    except binascii.Error as error:
        raise ValueError(f"hashes that cannot be read: {error}") from None
