"""Every row has one named purpose: fit, select or certify.

The purpose follows from a hash of the row's content and its copy number, with a salt fixed in the
library. No seed takes part, so that trying twenty seeds does not give twenty tries at the same
certify rows.

Copies of a row are *not* kept together: the certify rows would then not be a uniform draw. And as
soon as any content repeats, the draw of every row depends on the whole table. With a fixed salt a
content that is frequent in the population would fall the same way in every table: its count among
the certify rows would no longer be binomial, and the stated confidence would hold on average over
salts, not for the population at hand. Groups are drawn by the table too, since a population may
have few of them (states, shops). Only a table without repeats keeps its rows' purposes when rows
are added.

Rules have numbers, recorded with every audit, so that `surelearn.auditing.verification` divides an
old table as it was then:

1. first copies and groups by their content alone, later copies by the table (until version 0.1);
2. as above, but groups by the names of all groups, which are the same in every table that has all states;
3. as above.

With a ``salt``, a secret of the user's, each row's purpose is its own coin instead: one row more or
less changes the fit rows by at most that row, as statements about differential privacy and
partitions need.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Indices = npt.NDArray[np.intp]
_SALT = np.uint64(0x5DE1EA25)
RULE = 3
COIN_CERTIFY = 0.25  # a fraction that follows the number of rows would let one row move others


@dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """Which rows do what. ``select`` is empty where candidates are compared by cross-validation on
    the fit rows.

    Attributes
    ----------
    fit, select, certify : positions of rows, ascending
    order : "hash", or "time" for certify rows that are the last ones
    keys : the hash of each row with its copy number, or of its group
    rule : the number of the rule; 0 where each row's purpose was its own coin
    """

    fit: Indices
    select: Indices
    certify: Indices
    order: Literal["hash", "time"]
    keys: Hashes
    rule: int = RULE


def certify_fraction(n: int) -> float:
    """The part of n rows to hold back: a third at 150, 30% at 1,000, a fifth from 50,000 on; linear
    in ln n between.

    Examples
    --------
    >>> [round(certify_fraction(n), 3) for n in (50, 150, 1000, 50_000, 10**7)]
    [0.333, 0.333, 0.3, 0.2, 0.2]
    """
    return float(np.interp(math.log(max(n, 1)), np.log([150, 1000, 50_000]), [1 / 3, 0.3, 0.2]))


def select_fraction(n: int) -> float:
    """The part of n rows on which candidates are compared: a tenth from 20,000 on, else none
    (cross-validation).
    """
    return 0.1 if n >= 20_000 else 0.0


def split_rows(
    row_hashes: npt.ArrayLike,
    *,
    groups: npt.ArrayLike | None = None,
    time: npt.ArrayLike | None = None,
    certify: float | None = None,
    select: float | None = None,
    rule: int = RULE,
    salt: bytes | None = None,
) -> Split:
    """Give every row its purpose.

    Parameters
    ----------
    row_hashes : a 64-bit hash of each row as read
    groups : one label per row; groups stay whole
    time : one value per row; the last rows certify, the ones before them select; with groups, the
        last groups to begin do, and rows of other groups that are as late as theirs have no purpose
    certify, select : fractions of rows (of groups); by default they follow n
    rule : the number of the rule by which rows are drawn, see above
    salt : a secret; each row (or group) is then drawn by its own coin, with fractions that do not
        follow n

    Examples
    --------
    >>> split = split_rows(np.arange(1000, dtype=np.uint64))
    >>> len(split.fit), len(split.select), len(split.certify)
    (700, 0, 300)
    """
    if rule not in range(1, RULE + 1):
        raise ValueError(f"rows are divided by rule 1 to {RULE}, not by rule {rule!r}")
    rows, copies = _keys_and_copies(row_hashes)
    n, keys = rows.size, rows
    if groups is not None:
        keys = group_keys(groups)
        units, unit_of_row = np.unique(keys, return_inverse=True)
    else:
        units, unit_of_row = keys, np.arange(n)
    if salt is not None:
        if time is not None:
            raise ValueError("rows in the order of time have no coins: leave out the salt")
        purpose = _coins(units, salt, COIN_CERTIFY if certify is None else certify, select or 0.0)[
            unit_of_row
        ]
        return _split(purpose, "hash", keys, rule=0)
    held = _count(certify, certify_fraction(n), units.size, "certify")
    compared = _count(select, select_fraction(n), units.size, "select")
    if held + compared >= units.size:
        raise ValueError(
            f"certify and select leave no {'group' if groups is not None else 'row'} of"
            f" {units.size} to fit on"
        )
    rank = np.empty(units.size, dtype=np.intp)
    if time is None:
        draws = _draws(units, rows, copies if groups is None else None, rule)
        rank[np.argsort(_mix(draws), kind="stable")] = np.arange(units.size)
    else:
        rank[np.argsort(first_times(time, unit_of_row), kind="stable")[::-1]] = np.arange(
            units.size
        )
    purpose = np.digitize(rank, [held, held + compared])[unit_of_row]
    if time is not None and groups is not None and held:
        purpose = _without_late_rows(purpose, np.asarray(time))
    return _split(purpose, "hash" if time is None else "time", keys, rule)


def _split(purpose: Indices, order: Literal["hash", "time"], keys: Hashes, rule: int) -> Split:
    certify, select, fit = (np.flatnonzero(purpose == number) for number in range(3))
    return Split(fit=fit, select=select, certify=certify, order=order, keys=keys, rule=rule)


def _draws(units: Hashes, rows: Hashes, copies: Hashes | None, rule: int) -> Hashes:
    """What each unit is drawn by: its content or, where contents repeat and for groups (no
    ``copies``), the table too.
    """
    table = units if rule < 3 else rows
    by_table = units ^ _mix(np.bitwise_xor.reduce(_mix(table), keepdims=True))
    if rule == 1:
        return units if copies is None else np.where(copies > 0, by_table, units)
    return by_table if copies is None or copies.any() else units


def _coins(units: Hashes, salt: bytes, certify: float, select: float) -> Indices:
    """0 (certify), 1 (select) or 2 (fit) for each unit, from a keyed hash of nothing but the
    unit.
    """
    for name, fraction in (("certify", certify), ("select", select)):
        _count(fraction, fraction, units.size, name)
    if certify + select >= 1:
        raise ValueError("certify and select leave no row to fit on")
    words = map(bytes, units.astype("<u8").reshape(-1, 1))
    digests = [hashlib.blake2b(word, digest_size=8, key=salt).digest() for word in words]
    uniform = np.frombuffer(b"".join(digests), dtype="<u8") / 2.0**64
    return np.digitize(uniform, [certify, certify + select])


def first_times(time: npt.ArrayLike, unit_of_row: Indices) -> npt.NDArray[Any]:
    """The time of each unit's first row; units are numbered from 0.

    Examples
    --------
    >>> first_times([5, 3, 4], np.array([0, 1, 0]))
    array([4, 3])
    """
    time = np.asarray(time)
    order = np.lexsort((time, unit_of_row))
    return time[order[np.unique(unit_of_row[order], return_index=True)[1]]]


def _without_late_rows(purpose: Indices, time: npt.NDArray[Any]) -> Indices:
    """Rows of earlier groups that are as late as the first certify row are not used: nobody had
    them when it came.
    """
    late = (purpose > 0) & (time >= time[purpose == 0].min())
    if not np.any((purpose == 2) & ~late):
        raise ValueError(
            "no row came before the first of the last groups, so none is left to fit on: use"
            " --group or --time alone"
        )
    return np.where(late, 3, purpose)


def row_keys(row_hashes: npt.ArrayLike) -> Hashes:
    """The hash of each row with its copy number: the first copy, the second copy, … of the same
    content differ.
    """
    return _keys_and_copies(row_hashes)[0]


def _keys_and_copies(row_hashes: npt.ArrayLike) -> tuple[Hashes, Hashes]:
    hashes = np.asarray(row_hashes, dtype=np.uint64)
    # the number of a copy is its place among equal hashes, in the order of the rows
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    copy = np.arange(hashes.size) - np.repeat(starts, np.diff(np.append(starts, hashes.size)))
    numbers = np.empty(hashes.size, dtype=np.uint64)
    numbers[order] = copy
    return _mix(hashes ^ _mix(numbers)), numbers


def group_keys(groups: npt.ArrayLike) -> Hashes:
    """A hash of each row's group label."""
    labels, index = np.unique(np.asarray(groups).astype(str), return_inverse=True)
    digests = [
        hashlib.blake2b(label.encode(), digest_size=8, salt=b"surelearn").digest()
        for label in labels.tolist()
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)[index]


def _mix(values: Hashes) -> Hashes:
    """A bijection of 64-bit words that scatters neighbors (the finalizer of SplitMix64)."""
    with np.errstate(over="ignore"):
        z = values + _SALT + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _count(stated: float | None, default: float, units: int, name: str) -> int:
    fraction = default if stated is None else stated
    if not 0 <= fraction < 1:
        raise ValueError(f"{name} must be a fraction of at least 0 and below 1, not {fraction!r}")
    return round(fraction * units)
