"""A small summary of a table by which it is known again after columns were added, scaled, reordered
or retyped.

A sketch keeps the smallest hashes of three sets, so that the size of what two tables share can be
estimated (bottom-k sketches: Cohen and Kaplan 2007, "Summarizing data using bottom-k sketches"):

- **contents**: the features of each row, whatever the order of columns and rows;
- **windows**: 16 neighboring runs of equal targets, extended to 32 and 64. A class is coded by how far back it appeared
  last, so that renamed labels give the same windows. Numbers are coded by their order within 16, 32
  and 64 rows, so that a monotone change of units does too;
- **values** of a numeric target whose values are nearly all different, and few of those that it could have: ranks and
  serial numbers are the same in tables that have nothing else in common.

Two tables are taken for the same data where they share more than chance explains. How often chance
makes two rows or two windows equal is estimated from each table's own repeats: few rows of few
categories, targets that are sorted or alternate, and class counts alone therefore never tell that
two tables are related.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Hashes = npt.NDArray[np.uint64]
Indices = npt.NDArray[np.intp]
KEPT = 512  # hashes of contents and of values
KEPT_WINDOWS = 256
THINNED = 20_000  # windows of a long sequence that are hashed to the end
LENGTHS = (16, 32, 64)
# a coincidence of windows that two unrelated tables of these sizes would show so seldom
UNLIKELY = 1e-5
_EMPTY = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Smallest:
    """The smallest hashes of a set: all of it where it has at most `KEPT`.

    Attributes
    ----------
    hashes : ascending
    rows : how many rows the set came from
    collisions : the chance that two rows have the same content, from the pairs of rows that do
    whole : whether every member of the set is kept
    total : a hash of all members and how often each occurs
    """

    hashes: Hashes = field(default_factory=lambda: _EMPTY)
    rows: int = 0
    collisions: float = 1.0
    whole: bool = True
    total: int = 0

    @classmethod
    def of(cls, hashes: Hashes) -> Smallest:
        """The sketch of rows with these hashes."""
        distinct, counts = np.unique(mix(hashes), return_counts=True)
        with np.errstate(over="ignore"):
            total = int(np.sum(mix(distinct ^ mix(counts.astype(np.uint64))), dtype=np.uint64))
        return cls(
            distinct[:KEPT],
            hashes.size,
            chance_equal(counts, hashes.size),
            distinct.size <= KEPT,
            total,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        plain = {
            "rows": self.rows,
            "collisions": self.collisions,
            "whole": self.whole,
            "total": f"{self.total:016x}",
        }
        return {**plain, "hashes": _pack(self.hashes)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Smallest:
        """Read what `to_dict` wrote."""
        numbers = (
            int(plain["rows"]),
            float(plain["collisions"]),
            bool(plain["whole"]),
            int(plain["total"], 16),
        )
        return cls(_unpack(plain["hashes"]), *numbers)

    def shares(self, other: Smallest) -> bool:
        """Whether two sets have more in common than the repeats within them let expect, and at
        least a twentieth.
        """
        if not self.rows or not other.rows:
            return False
        if (self.total, self.rows) == (other.total, other.rows) and self.hashes.size >= 16:
            return True  # the same contents, equally often; of fewer contents that may be chance
        last = min(
            (int(one.hashes[-1]) for one in (self, other) if not one.whole), default=2**64 - 1
        )
        ours, theirs = (one.hashes[one.hashes <= np.uint64(last)] for one in (self, other))
        common = np.intersect1d(ours, theirs, assume_unique=True).size
        estimate = common / ((last + 1) / 2**64)
        pairs = [one.rows * (one.rows - 1) / 2 for one in (self, other)]
        equal = (pairs[0] * self.collisions + pairs[1] * other.collisions) / max(sum(pairs), 1.0)
        expected = self.rows * other.rows * equal
        return common >= 3 and estimate >= max(0.05 * min(self.rows, other.rows), 10 * expected)


@dataclass(frozen=True, eq=False)
class Windows:
    """The smallest hashes of windows of a sequence, each with its longer continuations (0 where the
    sequence ends).

    Attributes
    ----------
    hashes : one row per window, one column per length of `LENGTHS`
    count : how many windows the sequence has
    rate : the chance that one more step of two unrelated windows agrees
    steps, total : the length of the whole sequence, and its hash
    """

    hashes: npt.NDArray[np.uint64] = field(
        default_factory=lambda: np.empty((0, len(LENGTHS)), dtype=np.uint64)
    )
    count: int = 0
    rate: float = 1.0
    steps: int = 0
    total: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        plain = {
            "count": self.count,
            "rate": self.rate,
            "steps": self.steps,
            "total": f"{self.total:016x}",
        }
        return {**plain, "hashes": _pack(self.hashes)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Windows:
        """Read what `to_dict` wrote."""
        numbers = (
            int(plain["count"]),
            float(plain["rate"]),
            int(plain["steps"]),
            int(plain["total"], 16),
        )
        return cls(_unpack(plain["hashes"]).reshape(-1, len(LENGTHS)), *numbers)

    def shares(self, other: Windows) -> bool:
        """Whether the sequences are equal, or two windows at least are in both, so long that
        chance does not explain it.
        """
        rate = max(self.rate, other.rate)
        if (self.steps, self.total) == (other.steps, other.total) and rate**self.steps <= UNLIKELY:
            return True
        for column, length in enumerate(LENGTHS):
            if self.count * other.count * rate**length > UNLIKELY:
                continue
            ours, theirs = (
                one.hashes[:, column][one.hashes[:, column] > 0] for one in (self, other)
            )
            if np.intersect1d(ours, theirs).size >= 2:
                return True
        return False


@dataclass(frozen=True, eq=False)
class Sketch:
    """What is kept of a table; see above."""

    contents: Smallest = field(default_factory=Smallest)
    values: Smallest = field(default_factory=Smallest)
    runs: Windows = field(default_factory=Windows)
    order: Windows = field(default_factory=Windows)

    def shares(self, other: Sketch, *, contents: bool = True) -> bool:
        """Whether two tables are, as far as sketches tell, partly the same data; by their
        targets alone if asked.
        """
        parts = ("contents", "values", "runs", "order") if contents else ("values", "runs", "order")
        return any(getattr(self, part).shares(getattr(other, part)) for part in parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            name: getattr(self, name).to_dict() for name in ("contents", "values", "runs", "order")
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Sketch:
        """Read what `to_dict` wrote."""
        return cls(
            contents=Smallest.from_dict(plain["contents"]),
            values=Smallest.from_dict(plain["values"]),
            runs=Windows.from_dict(plain["runs"]),
            order=Windows.from_dict(plain["order"]),
        )


def sketch(contents: Hashes, y: npt.ArrayLike) -> Sketch:
    """Sketch a table from one hash of features per row (see `surelearn.data.hash_contents`) and its
    targets.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.integers(0, 2**62, 500).astype(np.uint64), rng.integers(0, 2, 500)
    >>> renamed = np.where(y == 1, "yes", "no")
    >>> sketch(X, y).shares(sketch(X[::-1], y[::-1])), sketch(X, y).shares(sketch(X + np.uint64(1), renamed))
    (True, True)
    >>> sketch(X, y).shares(sketch(X + np.uint64(1), y[::-1]))
    False
    """
    targets = np.asarray(y)
    codes = pd.factorize(targets, use_na_sentinel=False)[0]
    numbers = targets.astype(float) if targets.dtype.kind in "iuf" else None
    many = numbers is not None and codes.max(initial=-1) + 1 >= 0.9 * len(codes) >= 18
    values = Smallest()
    if many and numbers is not None and (steps := _steps(numbers)) >= 10 * numbers.size:
        values = Smallest.of(_of_numbers(numbers))
        values = replace(values, collisions=max(values.collisions, 1 / steps))
    starts = (
        np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
        if codes.size
        else np.empty(0, dtype=np.intp)
    )
    lengths = np.diff(np.append(starts, codes.size))
    runs = _run_windows(_back(codes[starts]), lengths)
    order = Windows() if numbers is None or codes.max(initial=0) < 10 else _order_windows(numbers)
    return Sketch(Smallest.of(contents), values, runs, order)


def mix(values: Hashes) -> Hashes:
    """A bijection of 64-bit words that scatters neighbors (the finalizer of MurmurHash3)."""
    with np.errstate(over="ignore"):
        z = np.asarray(values, dtype=np.uint64)
        z = (z ^ (z >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        z = (z ^ (z >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
        return z ^ (z >> np.uint64(33))


def chance_equal(counts: npt.NDArray[Any], n: int) -> float:
    """The chance that two members are equal: the share of pairs that are, with one pair more
    than was seen.
    """
    equal = float(np.sum(counts.astype(float) * (counts - 1)) / 2)
    return (equal + 1) / (n * (n - 1) / 2 + 1)


def _steps(values: npt.NDArray[np.float64]) -> float:
    """How many values the range has room for at the smallest distance between two."""
    distinct = np.unique(values[np.isfinite(values)])
    return (
        float((distinct[-1] - distinct[0]) / np.diff(distinct).min()) if distinct.size > 1 else 1.0
    )


def _of_numbers(values: npt.NDArray[np.float64]) -> Hashes:
    """Hashes of numbers, the same in single and in double precision."""
    with np.errstate(over="ignore"):
        return mix((values.astype(np.float32) + np.float32(0)).view(np.uint32).astype(np.uint64))


def _back(codes: Indices) -> Indices:
    """How many steps ago each value of a sequence appeared last; 0 for the first time."""
    order = np.argsort(codes, kind="stable")
    same = np.concatenate(([False], codes[order][1:] == codes[order][:-1]))
    back = np.zeros(codes.size, dtype=np.intp)
    back[order[1:]] = np.where(same[1:], np.diff(order), 0)
    return back


def _run_windows(back: Indices, lengths: Indices) -> Windows:
    """Windows of runs: how far back each run's class was met, within the window, and how long
    the run is.
    """

    def code(at: Indices, offset: int) -> Hashes:
        seen = np.where(back[at + offset] <= offset, back[at + offset], 0)
        return (seen * 0x1000003 + lengths[at + offset]).astype(np.uint64)

    return _collect(back.size, code)


def _order_windows(values: npt.NDArray[np.float64]) -> Windows:
    """Windows of numbers: how many of the window's earlier numbers each one is above, and how
    many it equals.
    """

    def code(at: Indices, offset: int) -> Hashes:
        now = values[at + offset]
        above, equal = np.zeros(at.size, dtype=np.intp), np.zeros(at.size, dtype=np.intp)
        for earlier in range(offset):
            above += now > values[at + earlier]
            equal += now == values[at + earlier]
        return (above * 128 + equal).astype(np.uint64)

    return _collect(values.size, code)


def _collect(size: int, code: Callable[[Indices, int], Hashes]) -> Windows:
    """Hash all windows of the first length; of those that occur once keep the smallest, and
    continue them.
    """
    shortest = min(LENGTHS[0], size)
    if size < 4:
        return Windows()
    count = size - shortest + 1
    at, hashes = np.arange(count), np.full(count, 0x5EED, dtype=np.uint64)
    rates = []
    for offset in range(shortest):
        hashes = mix(hashes ^ mix(code(at, offset)))
        if offset + 1 in (4, 8, LENGTHS[0]):
            seen = np.unique(hashes, return_counts=True)[1]
            rates.append(chance_equal(seen, at.size) ** (1 / (offset + 1)))
        # of a long sequence only windows that begin with a small hash
        if offset + 1 == 8 and count > 2 * THINNED:
            keep = hashes <= np.uint64(2**64 * (THINNED / count))
            at, hashes = at[keep], hashes[keep]
    whole = int(
        mix(np.bitwise_xor.reduce(mix(hashes ^ mix(at.astype(np.uint64))), keepdims=True))[0]
    )
    known = {"rate": float(min(rates)), "steps": size, "total": whole}
    _, place, seen = np.unique(hashes, return_index=True, return_counts=True)
    once = place[seen == 1]
    if size < LENGTHS[0] or 2 * once.size < at.size:  # too short, or a sequence that repeats itself
        return Windows(**known)
    place = once[:KEPT_WINDOWS]
    kept = np.zeros((place.size, len(LENGTHS)), dtype=np.uint64)
    going, start = hashes[place], at[place]
    kept[:, 0] = going
    for column, length in enumerate(LENGTHS[1:], start=1):
        long = start + length <= size
        for offset in range(LENGTHS[column - 1], length):
            going[long] = mix(going[long] ^ mix(code(start[long], offset)))
        kept[long, column] = going[long]
    return Windows(kept, count, **known)


def _pack(hashes: Hashes) -> str:
    return base64.b64encode(np.ascontiguousarray(hashes).astype("<u8").tobytes()).decode()


def _unpack(text: str) -> Hashes:
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), dtype="<u8").astype(np.uint64)
    except (binascii.Error, TypeError) as error:
        raise ValueError(f"hashes that cannot be read: {error}") from None
