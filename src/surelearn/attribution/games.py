"""The game a model plays on one row: what it says when only the columns of a coalition are known.

*Interventional*: the columns outside S are taken from background rows, u(S) = mean_b f(x_S,
b_rest). *Conditional*: they are averaged as they go with x_S, u(S) = E[f(X) | X_S = x_S], which
needs a model of the columns: here Gaussian, and linear f.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surelearn.attribution.coalitions import masks_of
from surelearn.attribution.mixing import Mixer
from surelearn.attribution.outputs import Output
from surelearn.attribution.weights import Weights
from surelearn.types import Array, TableRows

BATCH = 16_384  # model rows in one call
_PILE = 32  # coalitions that are weighed together


class Interventional:
    """u(S) = mean over background rows b of f(x_S, b_rest), for every explained row x at once.

    Takes batches of masks; `enumerate` walks all coalitions so that two neighbors differ in one
    player only, and fills just the columns of that player.
    """

    takes_masks = True

    def __init__(self, output: Output, mixer: Mixer) -> None:
        self.output, self.mixer, self.model_rows, self._trusted = output, mixer, 0, False
        several = "one row" if mixer.background == 1 else f"{mixer.background:,} rows"
        self.name = f"{output.name}; interventional, other columns from a background of {several}"

    def __call__(self, masks: npt.NDArray[np.bool_]) -> Array:
        """Mean over the background, (coalitions, explained rows)."""
        u = np.empty((len(masks), self.mixer.rows))
        for rows in self._chunks():
            at_once = max(1, BATCH // (self.mixer.background * (rows.stop - rows.start)))
            for start in range(0, len(masks), at_once):
                piece = masks[start : start + at_once]
                u[start : start + at_once, rows] = self._ask(
                    self.mixer.mixed(piece, rows), len(piece), rows
                ).mean(axis=2)
        return u

    def ends(self) -> tuple[Array, Array]:
        """u(∅) and u(all) for each row, from each row once."""
        empty, full = (self.output(self.mixer.copy(rows)) for rows in (self.mixer.b, self.mixer.X))
        self.model_rows += self.mixer.background + self.mixer.rows
        if full.ndim == 1:
            return np.full(self.mixer.rows, empty.mean()), full
        column = np.broadcast_to(
            0 if self.output.column is None else self.output.column, self.mixer.rows
        )
        return empty.mean(axis=0)[column], full[np.arange(self.mixer.rows), column]

    def enumerate(self, weights: Weights, keep: bool) -> tuple[Array, Array | None, Array, Array]:
        """Values (rows, n), their parts (rows, background, n) if ``keep``, u(∅) and u(all) for
        each row.
        """
        n, R, B = self.mixer.players, self.mixer.rows, self.mixer.background
        parts = np.empty((R, B if keep else 1, n))
        ends = np.empty((2, R))
        for rows in self._chunks():
            found, ends[:, rows] = self._walk(rows, weights, keep)
            parts[rows] = np.moveaxis(found.reshape(n, rows.stop - rows.start, -1), 0, -1)
        return parts.mean(axis=1), parts if keep else None, ends[0], ends[1]

    def _walk(self, rows: slice, weights: Weights, keep: bool) -> tuple[Array, Array]:
        """Values (n, rows × background or rows) and u(∅), u(all), (2, rows): blocks of coalitions
        of the first players, the others switched in Gray code's order.
        """
        n, count = self.mixer.players, (rows.stop - rows.start) * self.mixer.background
        # players whose coalitions all stand in one block
        low = min(n, max(0, (BATCH // count).bit_length() - 1))
        codes, steps = np.arange(2**low), 2 ** (n - low)
        block = self.mixer.mixed(masks_of(codes, n), rows)
        width = count if keep else rows.stop - rows.start
        values, ends = np.zeros((n, width)), np.empty((2, rows.stop - rows.start))
        pile, piled = np.empty((max(1, _PILE // len(codes)), len(codes), width)), []
        for step in range(steps):
            gray = step ^ (step >> 1)
            if step:
                bit = (step & -step).bit_length() - 1
                self.mixer.switch(block, low + bit, bool(gray >> bit & 1), rows)
            u = self._ask(block, len(codes), rows)  # (coalitions, rows, background)
            if gray == 0:
                ends[0] = u[0].mean(axis=1)
            if gray == steps - 1:
                ends[1] = u[-1].mean(axis=1)
            pile[len(piled)].reshape(u.shape if keep else u.shape[:2])[...] = (
                u if keep else u.mean(axis=2)
            )
            piled.append(codes + (gray << low))
            if len(piled) == len(pile) or step == steps - 1:
                inside = masks_of(np.concatenate(piled), n)
                # what waits is weighed together: one product for many coalitions
                around = weights.around(inside.sum(axis=1)[:, None], inside)
                values += around.T @ pile[: len(piled)].reshape(len(inside), -1)
                piled = []
        return values, ends

    def _ask(self, block: TableRows, coalitions: int, rows: slice) -> Array:
        before = None if self._trusted else self.mixer.copy(block)
        X = self.mixer.as_rows(block)
        answers = self.output(X)
        if before is not None and not self.mixer.same(before, block):
            raise ValueError(
                "the model changes the rows it is given: let it work on a copy of them"
            )
        self._trusted = True
        self.model_rows += len(X)
        return self.output.chosen(
            answers, (coalitions, rows.stop - rows.start, self.mixer.background), rows
        )

    def _chunks(self) -> list[slice]:
        at_once = max(1, BATCH // self.mixer.background)
        return [
            slice(start, min(start + at_once, self.mixer.rows))
            for start in range(0, self.mixer.rows, at_once)
        ]


class LinearGaussian:
    """u(S) = E[w·X + c | X_S = x_S] for columns X ~ N(μ, Σ) with the background's mean and
    covariance.

    E[X_R | X_S = x_S] = μ_R + Σ_RS Σ_SS⁻¹ (x_S − μ_S); where columns are collinear, with the
    pseudo-inverse.
    """

    takes_masks = True

    def __init__(
        self,
        coefficients: Array,
        intercept: float,
        X: Array,
        background: Array,
        players: list[list[int]],
        name: str,
    ):
        self.w, self.c, self.players = np.broadcast_to(coefficients, X.shape), intercept, players
        self.mean, self.covariance = (
            background.mean(axis=0),
            np.atleast_2d(np.cov(background, rowvar=False)),
        )
        self.away = X - self.mean
        self.name = (
            f"{name}; conditional, columns Gaussian with mean and covariance of {len(background):,}"
            " background rows"
        )

    def __call__(self, masks: npt.NDArray[np.bool_]) -> Array:
        """(coalitions, explained rows)."""
        return np.array([self._one(mask) for mask in masks])

    def _one(self, mask: npt.NDArray[np.bool_]) -> Array:
        known = sorted(column for player in np.flatnonzero(mask) for column in self.players[player])
        away = np.zeros_like(self.away)
        if known:
            inverse = np.linalg.pinv(self.covariance[np.ix_(known, known)], hermitian=True)
            away = self.away[:, known] @ inverse @ self.covariance[known]
            away[:, known] = self.away[:, known]
        return ((self.mean + away) * self.w).sum(axis=1) + self.c
