"""What happened in a fit of a stump or of a vote of stumps, and which theorems apply to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from surelearn import bounds
from surelearn.bounds.boosting import FIXED_ROUNDS, boosting_tail_inversion
from surelearn.bounds.capacity import BINARY
from surelearn.claim import Theorem
from surelearn.lacking import Lacking
from surelearn.record import Record, Writer

Array = npt.NDArray[Any]

GRID = "thresholds= was stated before seeing the rows"
NOT_GIVEN = (
    "the thresholds were not fixed beforehand: state thresholds= for a finite class of stumps"
)
_FINITE = (bounds.finite_class, bounds.boosting_finite, bounds.boosting_margin_finite)


@dataclass(frozen=True, kw_only=True)
class StumpsRecord(Record):
    """What fits of one stump and of a vote of stumps share.

    Attributes
    ----------
    classes : different labels
    uniform : whether all rows weigh the same
    method : "exact" or "binned", as of `AdaBoostClassifier`
    thresholds : how many were stated beforehand for each feature; None where the cuts were found on
        the rows
    """

    classes: int
    uniform: bool
    method: str
    thresholds: int | None = None

    @property
    def vc_dimension(self) -> int:
        """Of all stumps on so many features."""
        return int(bounds.vc_dimension_of_stumps(self.d or 0))

    @property
    def class_size(self) -> int:
        """How many stumps there are at the thresholds that were stated."""
        return int(bounds.number_of_stumps(self.d or 0, self.thresholds or 0))

    def not_binary(self) -> Lacking | None:
        """Why no bound on the risk applies; None where some do."""
        if self.classes > 2:
            why = f"the theorem is about two classes, here are {self.classes}"
            return Lacking("risk", why)
        return None if self.uniform else Lacking("risk", "rows are weighted unequally")

    def lacks(self, theorem: Theorem[..., Any]) -> Lacking | None:
        """Why a theorem about the risk does not apply; None where it does."""
        if (lost := self.not_binary()) is not None:
            return lost
        if theorem in _FINITE and self.thresholds is None:
            return Lacking("risk", NOT_GIVEN)
        return None

    def few_rows(self) -> Lacking | None:
        """Why a theorem about the VC dimension of stumps does not apply; None where it does."""
        if self.n >= self.vc_dimension:
            return None
        why = f"the theorem needs at least {self.vc_dimension} rows, the VC dimension of stumps"
        return Lacking("risk", why)


@dataclass(frozen=True, kw_only=True)
class StumpRecord(StumpsRecord):
    """A fit of one decision stump.

    Attributes
    ----------
    training_errors : rows that it gets wrong
    """

    key: ClassVar[str] = "stump/1"

    training_errors: int

    def write(self, writer: Writer) -> None:
        """Risk by the VC dimension of all stumps, or by the number of those that were stated;
        or why not.
        """
        theorem = bounds.hypergeometric_tail_inversion
        if (lost := self.lacks(theorem)) is not None:
            writer.lacks("risk", lost.reason, theorem.key)
        else:
            read = {"n": "n", "errors": "training_errors"}
            writer.claim(theorem, read, vc_dimension=self.vc_dimension, met=(BINARY,))
        risk = self.training_errors / self.n
        if (lost := self.lacks(bounds.vc) or self.few_rows()) is not None:
            writer.lacks("risk", lost.reason, bounds.vc.key)
        else:
            writer.claim(
                bounds.vc, {"n": "n"}, risk=risk, vc_dimension=self.vc_dimension, met=(BINARY,)
            )
        if (lost := self.lacks(bounds.finite_class)) is not None:
            writer.lacks("risk", lost.reason, bounds.finite_class.key)
        else:
            options: dict[str, Any] = {"met": ("the class is finite",), "assumptions": (GRID,)}
            writer.claim(
                bounds.finite_class, {"n": "n"}, risk=risk, size=self.class_size, **options
            )


@dataclass(frozen=True, kw_only=True)
class AdaBoostRecord(StumpsRecord):
    """A run of AdaBoost over stumps.

    Attributes
    ----------
    most_rounds : the most rounds that there could have been
    staged_errors : rows that the vote gets wrong after 1, 2, … rounds
    edges : ½ − ε_t, ε_t the weighted error of each round's stump; None for more than two classes
    margin_counts : rows whose normalized margin after the last round is at most 1/k, 2/k, …, 1, k
        their number; None for more than two classes
    """

    key: ClassVar[str] = "adaboost/1"

    most_rounds: int
    staged_errors: tuple[int, ...]
    edges: tuple[float, ...] | None = None
    margin_counts: tuple[int, ...] | None = None

    @property
    def rounds(self) -> int:
        """Rounds made."""
        return len(self.staged_errors)

    @property
    def training_errors(self) -> int:
        """Rows that the whole vote gets wrong."""
        return self.staged_errors[-1]

    def write(self, writer: Writer) -> None:
        """Training error and risk of a vote, or why not.

        The last of at most ``most_rounds`` prefixes is one that was chosen, where the rounds ended
        early by what the rows were: bounds that are about a fixed number of rounds pay for all of
        them (``candidates``). Bounds by margins hold for votes of any length at once and pay
        nothing.
        """
        self._write_training_error(writer)
        v, rounds, errors = self.vc_dimension, self.rounds, self.training_errors
        pays: dict[str, Any] = {
            "candidates": self.most_rounds,
            "met": (BINARY, FIXED_ROUNDS),
            "rounds": rounds,
        }
        self._write_risk(
            writer, boosting_tail_inversion, {"n": "n", "d": "d"}, errors=errors, **pays
        )
        self._write_risk(
            writer, bounds.boosting_vc, {"n": "n"}, risk=errors / self.n, vc_dimension=v, **pays
        )
        best = self._best_margin(bounds.boosting_margin_vc, writer.delta)
        self._write_risk(
            writer, bounds.boosting_margin_vc, {"n": "n"}, vc_dimension=v, met=(BINARY,), **best
        )
        size: dict[str, Any] = {"size": self.class_size, "assumptions": (GRID,)}
        self._write_risk(
            writer, bounds.boosting_finite, {"n": "n"}, risk=errors / self.n, **pays, **size
        )
        met = (BINARY, "the class of weak learners is finite")
        best = self._best_margin(bounds.boosting_margin_finite, writer.delta)
        self._write_risk(writer, bounds.boosting_margin_finite, {"n": "n"}, met=met, **best, **size)

    def _write_risk(
        self, writer: Writer, theorem: Theorem[..., Any], read: Mapping[str, str], **inputs: Any
    ) -> None:
        if (lost := self.lacks(theorem)) is not None:
            writer.lacks("risk", lost.reason, theorem.key)
        else:
            writer.claim(theorem, read, **inputs)

    def _write_training_error(self, writer: Writer) -> None:
        theorem = bounds.adaboost_training_error
        if self.classes > 2:
            writer.lacks(
                "training_error",
                f"Theorem 3.1 is about two classes, here are {self.classes}",
                theorem.key,
            )
            return
        label = "training error" if self.uniform else "weighted training error"
        writer.claim(theorem, {"edges": "edges"}, label=label, met=theorem.assumes)

    def lacks(self, theorem: Theorem[..., Any]) -> Lacking | None:
        """Why a theorem about the risk does not apply; None where it does."""
        if (lost := super().lacks(theorem)) is not None:
            return lost
        if theorem in (bounds.boosting_vc, bounds.boosting_finite) and self.n < self.rounds:
            why = (
                f"the theorem needs at least as many rows as rounds, here are {self.n} and"
                f" {self.rounds}"
            )
            return Lacking("risk", why)
        of_stumps = theorem in (bounds.boosting_vc, bounds.boosting_margin_vc)
        if of_stumps and (lost := self.few_rows()) is not None:
            return lost
        if (
            theorem is bounds.boosting_margin_vc
            and not _speaks(len(self.margin_counts or ()), self.n, self.vc_dimension).any()
        ):
            why = (
                "Theorem 3.5 speaks of margins above √(8V·ln(en/V)/n), which is more than 1 with so"
                " few rows"
            )
            return Lacking("risk", why)
        return None

    def _best_margin(self, theorem: Theorem[..., Any], delta: float) -> dict[str, float]:
        """The margin at which a theorem says most, and how many rows have at most it; it holds
        for all margins at once.
        """
        if self.lacks(theorem) is not None:
            return {}
        errors = np.array(self.margin_counts) / self.n
        theta = thetas(errors.size)
        if theorem is bounds.boosting_margin_vc:
            k = int(np.nanargmin(_margin_vc(errors, self.n, delta, self.vc_dimension)))
        else:
            k = int(
                np.argmin(
                    bounds.boosting_margin_finite(errors, self.n, delta, theta, self.class_size)
                )
            )
        return {"margin": float(theta[k]), "margin_error": float(errors[k])}

    def prefix_bounds(self, margin_counts: Array, delta: float) -> dict[str, Array]:
        """Bounds on the risk after 1, 2, … rounds, one array a theorem, NaN where it is silent.

        Each array holds for all prefixes at once with probability 1 − δ, so that the number of
        rounds may be chosen by it. Bounds for a fixed number of rounds are taken at
        δ/``most_rounds``, a union over the prefixes that there could have been; bounds by margins
        hold for every vote and every margin at once, and the best margin is taken. Choosing by the
        smallest of several arrays is a further choice: divide δ by their number.
        ``training_error_bound`` (3.2) holds always.

        Parameters
        ----------
        margin_counts : (rounds, k), as the record's after each round
        """
        if (lost := self.not_binary()) is not None:
            raise ValueError(f"there are no bounds on the risk: {lost.reason}")
        # each bound after each round; those by tail inversion share δ over the rounds
        n, v, t = self.n, self.vc_dimension, np.arange(1, self.rounds + 1)
        wrong, share = np.asarray(self.staged_errors), delta / self.most_rounds
        found: dict[str, Array] = {
            "rounds": t,
            "training_error": wrong / n,
            "training_error_bound": np.cumprod(np.sqrt(1 - 4 * np.asarray(self.edges) ** 2)),
            boosting_tail_inversion.key: np.asarray(
                boosting_tail_inversion(wrong, n, share, t, self.d or 0)
            ),
        }
        last = min(n, t.size) if n >= v else 0
        found["boosting_vc"] = _padded(
            bounds.boosting_vc(wrong[:last] / n, n, share, t[:last], v), t.size
        )
        found["boosting_margin_vc"] = _smallest(_margin_vc(margin_counts / n, n, delta, v))
        if self.thresholds is not None:
            size, last = self.class_size, min(n, t.size)
            found["boosting_finite"] = _padded(
                bounds.boosting_finite(wrong[:last] / n, n, share, t[:last], size), t.size
            )
            theta = thetas(margin_counts.shape[1])
            slack = bounds.boosting_margin_finite(np.zeros(theta.size), n, delta, theta, size)
            found["boosting_margin_finite"] = (margin_counts / n + slack).min(axis=1)
        return found


def thetas(count: int) -> Array:
    """The margins θ = 1/count, 2/count, …, 1."""
    return np.arange(1, count + 1) / count


def _speaks(count: int, n: int, v: int) -> Array:
    """At which of the margins Theorem 3.5 says something."""
    return thetas(count) > (bounds.smallest_margin(n, v) * (1 + 1e-6) if n >= v else np.inf)


def _margin_vc(errors: Array, n: int, delta: float, v: int) -> Array:
    """Theorem 3.5 at every margin, NaN where it is silent; ``errors`` (…, k)."""
    theta, speaks = thetas(errors.shape[-1]), _speaks(errors.shape[-1], n, v)
    values = np.full(errors.shape, np.nan)
    if speaks.any():
        values[..., speaks] = bounds.boosting_margin_vc(
            errors[..., speaks], n, delta, theta[speaks], v
        )
    return values


def _padded(values: Array, size: int) -> Array:
    return np.concatenate([values, np.full(size - len(values), np.nan)])


def _smallest(values: Array) -> Array:
    """The smallest of every row, leaving NaN out; NaN where there is nothing else."""
    smallest = np.where(np.isnan(values), np.inf, values).min(axis=1)
    return np.where(np.isinf(smallest), np.nan, smallest)
