"""Every row has one named purpose: fit, select or certify.

The purpose follows from a hash of the row's content and its copy number, with a salt fixed in the library. No seed takes
part, so that trying twenty seeds does not give twenty tries at the same certify rows. Copies of a row are *not* kept
together: the certify rows would then not be a uniform draw. Nor may the second, third, … copy of a content fall the same
way in every table: with few distinct rows only their counts would then be random, and the stated confidence would hold on
average over salts but not for each population. So the draw of later copies depends on the whole table; that of first
copies, which are all rows where none repeats, depends on nothing but the row.
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """Which rows do what. ``select`` is empty where candidates are compared by cross-validation on the fit rows.

    Attributes
    ----------
    fit, select, certify : positions of rows, ascending
    order : "hash", or "time" for certify rows that are the last ones
    keys : the hash under which each row (or its group) is known to the ledger
    """

    fit: Indices
    select: Indices
    certify: Indices
    order: Literal["hash", "time"]
    keys: Hashes


def certify_fraction(n: int) -> float:
    """The part of n rows to hold back: a third at 150, 30% at 1,000, a fifth from 50,000 on; linear in ln n between.

    Examples
    --------
    >>> [round(certify_fraction(n), 3) for n in (50, 150, 1000, 50_000, 10**7)]
    [0.333, 0.333, 0.3, 0.2, 0.2]
    """
    return float(np.interp(math.log(max(n, 1)), np.log([150, 1000, 50_000]), [1 / 3, 0.3, 0.2]))


def select_fraction(n: int) -> float:
    """The part of n rows on which candidates are compared: a tenth from 20,000 on, else none (cross-validation)."""
    return 0.1 if n >= 20_000 else 0.0


def split_rows(
    row_hashes: npt.ArrayLike,
    *,
    groups: Any = None,
    time: Any = None,
    certify: float | None = None,
    select: float | None = None,
) -> Split:
    """Give every row its purpose.

    Parameters
    ----------
    row_hashes : a 64-bit hash of each row as read
    groups : one label a row; groups stay whole and are drawn by the hash of their label
    time : one value a row; the last rows certify, the ones before them select; with groups, the last groups to begin do,
        and rows of other groups that are as late as theirs have no purpose
    certify, select : fractions of rows (of groups); by default they follow n

    Examples
    --------
    >>> split = split_rows(np.arange(1000, dtype=np.uint64))
    >>> len(split.fit), len(split.select), len(split.certify)
    (700, 0, 300)
    """
    keys, copies = _keys_and_copies(row_hashes)
    n = keys.size
    if groups is not None:
        keys = group_keys(groups)
        units, unit_of_row = np.unique(keys, return_inverse=True)
        draws = units
    else:
        units, unit_of_row = keys, np.arange(n)
        draws = np.where(copies > 0, keys ^ _mix(np.bitwise_xor.reduce(_mix(keys), keepdims=True)), keys)
    held = _count(certify, certify_fraction(n), units.size, "certify")
    compared = _count(select, select_fraction(n), units.size, "select")
    if held + compared >= units.size:
        raise ValueError(f"certify and select leave no {'group' if groups is not None else 'row'} of {units.size} to fit on")
    rank = np.empty(units.size, dtype=np.intp)
    if time is None:
        rank[np.argsort(_mix(draws), kind="stable")] = np.arange(units.size)
    else:
        rank[np.argsort(first_times(time, unit_of_row), kind="stable")[::-1]] = np.arange(units.size)
    purpose = np.digitize(rank, [held, held + compared])[unit_of_row]
    if time is not None and groups is not None and held:
        purpose = _without_late_rows(purpose, np.asarray(time))
    return Split(
        certify=np.flatnonzero(purpose == 0),
        select=np.flatnonzero(purpose == 1),
        fit=np.flatnonzero(purpose == 2),
        order="hash" if time is None else "time",
        keys=keys,
    )


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
    """Rows of earlier groups that are as late as the first certify row are not used: nobody had them when it came."""
    late = (purpose > 0) & (time >= time[purpose == 0].min())
    if not np.any((purpose == 2) & ~late):
        raise ValueError(
            "no row came before the first of the last groups, so none is left to fit on: use --group or --time alone"
        )
    return np.where(late, 3, purpose)


def row_keys(row_hashes: npt.ArrayLike) -> Hashes:
    """The hash of each row with its copy number: the first copy, the second copy, … of the same content differ."""
    return _keys_and_copies(row_hashes)[0]


def _keys_and_copies(row_hashes: npt.ArrayLike) -> tuple[Hashes, Hashes]:
    hashes = np.asarray(row_hashes, dtype=np.uint64)
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    copy = np.arange(hashes.size) - np.repeat(starts, np.diff(np.append(starts, hashes.size)))
    numbers = np.empty(hashes.size, dtype=np.uint64)
    numbers[order] = copy
    return _mix(hashes ^ _mix(numbers)), numbers


def group_keys(groups: Any) -> Hashes:
    """A hash of each row's group label."""
    labels, index = np.unique(np.asarray(groups).astype(str), return_inverse=True)
    digests = [hashlib.blake2b(label.encode(), digest_size=8, salt=b"surelearn").digest() for label in labels.tolist()]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)[index]


def _mix(values: Hashes) -> Hashes:
    """A bijection of 64-bit words that scatters neighbours (the finalizer of SplitMix64)."""
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
