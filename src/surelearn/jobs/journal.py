"""The journal: results of finished tasks in SQLite, as JSON, never pickled."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np

from surelearn.lacking import Lacking

MISSING: Any = object()
_PLAIN = "biufcmMSU"  # kinds of NumPy's types whose bytes are the values


class Journal:
    """Results of one run in a SQLite file, committed one by one; nothing is ever unpickled.

    Numbers, strings, lists, tuples, dicts and NumPy arrays come back with type, order and bits; a
    result that holds anything else is not kept and its task runs again at a resume. A file that is
    damaged or not a journal is moved aside, and ``notice`` says so; the results of another
    ``run_key`` are dropped.

    Parameters
    ----------
    path : of the file, made with its folder where missing; one run at a time can hold it
    run_key : hash of everything the results depend on: data, options, version of the code
    """

    APPLICATION = 0x5375_724A  # "SurJ", in the file's header
    FORMAT = 1

    def __init__(self, path: str | Path, *, run_key: str) -> None:
        self.path = Path(path)
        self.notice = ""
        self._run_key = f"{self.FORMAT}/{run_key}"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._connection: sqlite3.Connection | None = self._open()
        except sqlite3.DatabaseError as error:
            # the primary code
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise RuntimeError(f"the journal {self.path} is in use by another run") from None
            if code in (
                sqlite3.SQLITE_CANTOPEN,
                sqlite3.SQLITE_READONLY,
                sqlite3.SQLITE_IOERR,
                sqlite3.SQLITE_FULL,
            ):
                raise OSError(f"the journal {self.path} cannot be opened: {error}") from None
            aside = self._move_aside()
            self.notice = (
                f"{self.path} is damaged or not a journal ({error}): moved to {aside.name}, started"
                " anew"
            )
            self._connection = self._open()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=1, isolation_level=None, check_same_thread=False
        )

        def one(statement: str, *values: Any) -> Any:
            return connection.execute(statement, values).fetchone()[0]

        try:
            known = one("PRAGMA application_id") == self.APPLICATION
            if not known and (
                one("PRAGMA application_id") or one("SELECT count(*) FROM sqlite_master")
            ):
                raise sqlite3.DatabaseError("another program's file")
            if (verdict := one("PRAGMA quick_check(1)")) != "ok":
                raise sqlite3.DatabaseError(verdict)
            # also: no shared memory, so network disks will do
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            if not known or not one("SELECT count(*) FROM run WHERE key = ?", self._run_key):
                # all or nothing: a kill in between leaves an empty or the old file
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("DROP TABLE IF EXISTS run")
                connection.execute("DROP TABLE IF EXISTS results")
                connection.execute("CREATE TABLE run (key TEXT)")
                connection.execute(
                    "CREATE TABLE results (key TEXT PRIMARY KEY, value BLOB, digest BLOB)"
                )
                connection.execute("INSERT INTO run VALUES (?)", (self._run_key,))
                connection.execute(f"PRAGMA application_id = {self.APPLICATION}")
                connection.execute("COMMIT")
            # the columns are there
            one("SELECT count(*) FROM results WHERE key = value OR digest IS NULL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _files(self) -> list[Path]:
        return [
            self.path.with_name(self.path.name + suffix)
            for suffix in ("", "-wal", "-shm", "-journal")
        ]

    def _move_aside(self) -> Path:
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.aside-{number}")).exists():
            number += 1
        for file in self._files():  # a stray -wal or -journal would be replayed into the new file
            if file.exists():
                file.replace(aside.with_name(aside.name + file.name.removeprefix(self.path.name)))
        return aside

    def _digest(self, key: str, value: bytes) -> bytes:
        return hashlib.sha256(f"{self._run_key}\0{key}\0".encode() + value).digest()

    def _execute(self, statement: str, *values: Any) -> list[Any]:
        if self._connection is None:
            raise ValueError(f"the journal {self.path} is closed")
        return self._connection.execute(statement, values).fetchall()

    def load(self, key: str) -> Any:
        """Result of a task, or ``MISSING``, also where its bytes do not match their digest or
        `store` did not write them.
        """
        try:
            rows = self._execute("SELECT value, digest FROM results WHERE key = ?", key)
        except sqlite3.Error:
            return MISSING
        for value, digest in rows:
            if isinstance(value, bytes) and digest == self._digest(key, value):
                try:
                    return _decode(json.loads(value))
                # another program's, with a digest of its own
                except (ValueError, TypeError, RecursionError, MemoryError):
                    return MISSING
        return MISSING

    def store(self, key: str, result: object) -> None:
        """Keep a result, if it can be written; a full disk stops the journal, not the run."""
        try:
            value = json.dumps(_encode(result)).encode()
            self._execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?)",
                key,
                value,
                self._digest(key, value),
            )
        except (TypeError, RecursionError):
            return
        except sqlite3.Error as error:
            self.notice = f"results could not be written to {self.path}: {error}"

    def close(self) -> None:
        """Close the file; a later journal of the same ``run_key`` resumes from it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def delete(self) -> None:
        """Close and remove the file: the run is complete."""
        self.close()
        for file in self._files():
            file.unlink(missing_ok=True)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _encode(value: Any) -> Any:
    """JSON for a result; every JSON object has one name, its type, so that nothing has to be
    escaped.
    """
    kind = type(value)
    if kind in (bool, float, str, type(None)) or (kind is int and value.bit_length() < 10_000):
        return value
    if kind is list:
        return [_encode(item) for item in value]
    if kind is tuple:
        return {"tuple": [_encode(item) for item in value]}
    if kind is dict:
        return {"dict": [[_encode(name), _encode(item)] for name, item in value.items()]}
    if kind is Lacking:
        return {"lacking": [value.what, value.reason, value.theorem, value.label]}
    if kind is np.str_:  # an array, and str(), would lose trailing NULs
        return {"text": "".join(value)}
    if (kind is np.ndarray or isinstance(value, np.generic)) and value.dtype.kind in _PLAIN:
        order = "F" if value.flags.fnc else "C"
        body = base64.b64encode(value.tobytes(order)).decode()
        return {
            "array" if kind is np.ndarray else "scalar": [
                value.dtype.str,
                list(value.shape),
                order,
                body,
            ]
        }
    raise TypeError(f"{kind.__name__} cannot be journaled")


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, body),) = value.items()
    if kind == "tuple":
        return tuple(_decode(item) for item in body)
    if kind == "dict":
        return {_decode(name): _decode(item) for name, item in body}
    if kind == "text":
        return np.str_(body)
    if kind == "lacking":
        return Lacking(*map(str, body))
    text_of_dtype, shape, order, text = body
    dtype = np.dtype(text_of_dtype)
    # bytes as objects would be taken for addresses
    if kind not in ("array", "scalar") or dtype.kind not in _PLAIN:
        raise ValueError(f"{kind} of {dtype} is not journaled")
    array = np.ndarray(shape, dtype, buffer=base64.b64decode(text), order=order).copy(order="K")
    return array if kind == "array" else array[()]


# ---- progress
