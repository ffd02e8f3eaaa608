"""Independent units, rows or groups, and means of losses over them."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.measurement.what import Mask
from surelearn.subject.predicting import missing
from surelearn.types import Array


@dataclass(frozen=True, eq=False)
class Loss:
    """One number per row, to be averaged.

    Attributes
    ----------
    name : of its facts
    values : one number per row
    within : the rows that it is about; None, all
    counted : whether it is 0 or 1, and counted
    """

    name: str
    values: Array | Mask
    within: Mask | None = None
    counted: bool = False


class Sampler:
    """The independent units, rows or groups, in a pseudo-random order, and means over them, by
    weight if given.

    The order is drawn by ``drawn_by``, which no loss should be foreseen from: the hash of the rows. One
    order for all files is as good where rows come in the order of their draws, but among all numbers of
    rows there are some for which it is unlucky where a file is sorted by its losses. Of losses alone that
    take a few values, sorted, the hash says as little as their counts: there an order can still be
    unlucky for some of them.
    """

    def __init__(
        self,
        n: int,
        groups: npt.ArrayLike | None,
        weights: Array | None = None,
        drawn_by: str = "",
    ) -> None:
        self.grouped, self.weights = groups is not None, weights
        if groups is None:
            index = np.arange(n)
        else:
            labels = np.asarray(groups)
            if labels.shape != (n,):
                raise ValueError(
                    f"groups must name one group a row: it has shape {labels.shape}, y has {n} rows"
                )
            if missing(labels).any():
                raise ValueError(
                    "groups must not be missing: give rows of an unknown group one of their own"
                )
            index = np.unique(
                labels.astype(str) if labels.dtype == object else labels, return_inverse=True
            )[1]
        self.units = int(index.max()) + 1
        seed = int.from_bytes(hashlib.sha256(drawn_by.encode()).digest()[:16], "big")
        rng = np.random.default_rng(seed if drawn_by else 0)
        self.unit_of_row = rng.permutation(self.units)[index]
        self.row_order = rng.permutation(n)

    @property
    def sizes(self) -> npt.NDArray[np.intp]:
        """How many rows each unit has."""
        return np.bincount(self.unit_of_row, minlength=self.units)

    def sums(self, name: str, values: Array | Mask) -> dict[str, Any]:
        """The sum of ``values`` over each unit's rows, and their number."""
        totals = np.bincount(
            self.unit_of_row, np.asarray(values, dtype=float), minlength=self.units
        )
        return {f"{name}.group_losses": totals, f"{name}.group_sizes": self.sizes}

    def kept(self, loss: Loss, *, compared: bool = False) -> dict[str, Any]:
        """The facts of a loss: a count, or one mean a unit; ``compared``: the means in any case."""
        within = np.ones(len(loss.values), dtype=bool) if loss.within is None else loss.within
        facts: dict[str, Any] = {}
        if self.weights is not None:
            facts[f"{loss.name}.weights"] = self._average(
                self.weights, np.ones(len(within)), within
            )
        elif loss.counted:
            facts |= self._rate(loss.name, np.asarray(loss.values, dtype=bool), within)
        if compared or not loss.counted or self.weights is not None:
            facts[f"{loss.name}.losses"] = self._means(loss.values, within)
        return facts

    def ordered(self, values: Array) -> Array:
        """One number per unit, in the order that was drawn."""
        return self._means(values, np.ones(len(values), dtype=bool))

    def mean(self, values: Array | Mask) -> float:
        """The mean over all units."""
        means = self._means(values, np.ones(len(values), dtype=bool))
        if self.weights is None:
            return float(means.mean())
        weights = self._average(
            self.weights, np.ones(len(values)), np.ones(len(values), dtype=bool)
        )
        return float(np.sum(weights * means) / weights.sum()) if weights.any() else math.nan

    def _means(self, values: Array | Mask, within: Mask) -> Array:
        """Mean of ``values`` over the rows ``within`` each unit, for the units that have such
        rows.
        """
        plain = self._average(values, np.ones(len(values)), within)
        if self.weights is None:
            return plain
        weighted = self._average(values, self.weights, within)
        return np.where(np.isnan(weighted), plain, weighted)  # a unit that weighs nothing

    def _average(self, values: Array | Mask, weights: Array, within: Mask) -> Array:
        values, unit = np.asarray(values, dtype=float), self.unit_of_row[within]
        totals = np.bincount(unit, (weights * values)[within], minlength=self.units)
        sizes = np.bincount(unit, weights[within], minlength=self.units)
        there = np.bincount(unit, minlength=self.units) > 0
        with np.errstate(invalid="ignore"):
            return np.clip(totals[there] / sizes[there], np.min(values), np.max(values))

    def _rate(self, name: str, happened: Mask, within: Mask) -> dict[str, Any]:
        """How often something happened within some rows: a count, or one mean a group."""
        if self.grouped:
            return {f"{name}.means": self._means(happened, within)}
        return {f"{name}.count": int((happened & within).sum()), f"{name}.n": int(within.sum())}

    def one_row_a_unit(self) -> npt.NDArray[np.intp]:
        """One random row of every unit."""
        shuffled = self.unit_of_row[self.row_order]
        return self.row_order[np.unique(shuffled, return_index=True)[1]]
