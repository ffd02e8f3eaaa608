"""One number for each group of rows, where the rows of a group stand together in a file that is read
in pieces.

That a group does not come back later is known without keeping the groups: their values must rise, or
fall, all along the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from surelearn.data.block_sums import Steps
from surelearn.data.columns import DataError, NotCountableError, shown

pc: Any = pyarrow.compute
Indices = npt.NDArray[np.intp]


class SortedGroups:
    """The means of the groups met so far; of the last one, which may go on, the sums."""

    def __init__(self, table: str, column: str) -> None:
        self.table, self.column = table, column
        self.groups, self._rows = 0, 0
        self._last: pa.Array | None = None  # the value of the group that may go on
        self._sums, self._size = [0, 0], 0
        self._orders = {"rising", "falling"}  # that the values may still have

    def means(self, values: pa.Array, ours: Steps, other: Steps) -> tuple[Steps, Steps]:
        """The means of the groups that end in these rows: ours rounded down, the other's up.

        Parameters
        ----------
        values : (n,) the group of each row
        ours, other : (n,) numbers; the other's may be empty

        Raises
        ------
        NotCountableError
            where values neither rise nor fall all along the file
        """
        if values.null_count or (
            pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py()
        ):
            raise DataError(
                f"{self.table}, --group column {shown(self.column)} has missing values: fill them or"
                " remove the rows."
            )
        if not len(values):
            return self._none(), self._none()
        if self._last is not None:
            values = pa.concat_arrays(self._alike(self._last, values))
        new = pc.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
        starts = np.flatnonzero(new) + 1  # where another group begins, by position in values
        self._check_order(values, starts)
        carried = 0 if self._last is None else 1
        self._rows += len(values) - carried
        self._last = values[-1:]
        starts = starts - carried
        both = [self._of(i, starts, one) for i, one in enumerate((ours, other))]
        sizes = np.diff(starts, prepend=-self._size, append=len(ours))
        self._size = int(sizes[-1])
        self.groups += len(starts)
        ends = sizes[:-1]
        down, up = both[0] // np.maximum(ends, 1), -(-both[1] // np.maximum(ends, 1))
        return down.astype(np.int32), (up if other.size else up[:0]).astype(np.int32)

    def rest(self, paired: bool) -> tuple[Steps, Steps]:
        """The mean of the last group."""
        if not self._size:
            return self._none(), self._none()
        self.groups += 1
        down, up = self._sums[0] // self._size, -(-self._sums[1] // self._size)
        return np.array([down], np.int32), np.array([up][: int(paired)], np.int32)

    def _alike(self, last: pa.Array, values: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Both of one type: whole numbers in one piece of a text are fractions in another."""
        if last.type == values.type:
            return last, values
        try:
            return last.cast(pa.float64()), values.cast(pa.float64())
        except pa.ArrowException:  # numbers beyond 2⁵³ would become one
            raise NotCountableError(
                f"{self.table}, --group column {shown(self.column)} holds whole numbers beyond 2⁵³ and"
                " fractions: leave out --one-pass."
            ) from None

    def _of(self, i: int, starts: Indices, numbers: Steps) -> npt.NDArray[np.int64]:
        """The sums of the groups that end here; that of the last one is kept."""
        if not numbers.size:
            return np.zeros(len(starts), dtype=np.int64)
        before = np.concatenate(([0], np.cumsum(numbers, dtype=np.int64)))
        ends = np.concatenate((starts, [len(numbers)]))
        sums = np.diff(before[ends], prepend=-self._sums[i])
        self._sums[i] = int(sums[-1])
        return sums[:-1]

    def _check_order(self, values: pa.Array, starts: Indices) -> None:
        """Refuse values that come back, or might."""
        after, before = values.take(pa.array(starts)), values.take(pa.array(starts - 1))
        odd = 0
        for order, is_so in (("rising", pc.greater), ("falling", pc.less)):
            so = is_so(after, before).to_numpy(zero_copy_only=False)
            if order in self._orders and not so.all():
                self._orders.discard(order)
                odd = max(odd, int(starts[np.flatnonzero(~so)[0]]))
        if not self._orders:
            row = self._rows + odd + (self._last is None)
            raise NotCountableError(
                f"{self.table} is not sorted by --group column {shown(self.column)}"
                f" ({shown(str(values[odd].as_py()))} in row {row:,} is out of order): sort the rows by"
                " it, or leave out --one-pass."
            )

    @staticmethod
    def _none() -> Steps:
        return np.empty(0, dtype=np.int32)
