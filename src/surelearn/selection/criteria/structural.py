"""Structural risk minimization (thesis, Section 2.2.2): training error plus what a class can
hide; and adjusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surelearn.claim import Claim, Covers, Theorem
from surelearn.jobs import seed_for
from surelearn.lacking import Lacking
from surelearn.selection.criteria.capacity import (
    Capacity,
    StatedCapacity,
    bound_for,
    measure_risks,
    measure_risks_beside,
    stated_capacity,
)
from surelearn.selection.criteria.criterion import (
    DEPENDENT,
    GUARANTEE,
    JUDGMENT,
    Comparison,
    Criterion,
    two_classes,
    unclaimed,
)
from surelearn.selection.criteria.problem import SelectionProblem
from surelearn.selection.cross_validation import Positions, column_count
from surelearn.subject.refitting import take
from surelearn.types import Array

CONSTANTS = tuple(2.0**-k for k in range(11))
_ROUNDS_FIXED = "the number of rounds was fixed beforehand"
_LIST_FIXED = "the list of candidates was fixed before seeing the rows"


@dataclass(frozen=True, eq=False)
class _Risk:
    """One candidate's training errors and what bounds its risk."""

    errors: int
    n: int
    theorem: Theorem[..., Any]
    capacity: Capacity
    index: int
    candidates: int

    @property
    def risk(self) -> float:
        return self.errors / self.n

    def inputs(self, delta: float) -> dict[str, Any]:
        asked = self.theorem.signature.parameters
        observed = {"errors": self.errors} if "errors" in asked else {"risk": self.risk}
        return (
            observed
            | {"n": self.n, "delta": delta, **self.capacity}
            | ({"index": self.index} if "index" in asked else {})
        )

    @property
    def shares(self) -> int:
        """Into how many parts δ is divided; a theorem that knows the index does it itself."""
        return 1 if "index" in self.theorem.signature.parameters else self.candidates

    def bound(self, delta: float) -> float:
        """The bound at this candidate's share of δ; infinite for a class that shatters all rows."""
        if max(self.capacity.get("vc_dimension", 1), self.capacity.get("rounds", 1)) > self.n:
            return float("inf")
        return float(self.theorem(**self.inputs(delta / self.shares)))

    def claim(self, delta: float) -> Claim | Lacking:
        if not np.isfinite(self.bound(delta)):
            return Lacking(GUARANTEE, "the class is too rich for these rows")
        return self.theorem.certify(
            **self.inputs(delta),
            candidates=self.shares,
            instead={_ROUNDS_FIXED: "the list of numbers of rounds was fixed beforehand"},
            assumptions=(_LIST_FIXED,),
            covers=Covers(
                predictor="the chosen candidate, fitted on all rows given", rows="all rows given"
            ),
        )


@dataclass(frozen=True, kw_only=True)
class StructuralRisk(Criterion):
    """Training error plus penalty: the bound on the risk that holds for all candidates at once.

    Each of M candidates has δ/M, or for a theorem that takes an ``index`` (`structural_risk`)
    6δ/(π²j²) by its position.

    Parameters
    ----------
    bound : a theorem of `surelearn.bounds` that takes ``risk`` or ``errors``, ``n``, ``delta`` and
        a capacity, such as `vapnik` or `hypergeometric_tail_inversion`; by default the thesis'
        (`vc`, for votes of T rounds `boosting_vc`)
    capacity : for candidates whose capacity is not known: a VC dimension, a mapping of the bound's
        inputs such as ``{"rounds": 10, "vc_dimension": 6}``, a dictionary of candidates' names to
        these, or ``capacity(model, d, n)``
    """

    name: ClassVar[str] = "srm"
    chooses: ClassVar[str] = "structural risk, a bound from training error and capacity"
    cost: ClassVar[str] = "1 fit a candidate"
    guarantee: ClassVar[str] = (
        "with probability 1 − δ the bound holds for every candidate at once, so for the chosen one"
        " as fitted on these rows; often above 100%, which says nothing"
    )
    needs: ClassVar[str] = (
        "two classes, and candidates of known capacity (boosted stumps, halfspaces) or capacity="
    )

    bound: Theorem[..., Any] | None = None
    capacity: StatedCapacity | None = None

    def refusal(self, problem: SelectionProblem) -> Lacking | None:
        """Anything but two classes."""
        return two_classes(self, problem)

    def compare(self, problem: SelectionProblem) -> Comparison:
        """Each candidate's bound at its share of δ."""
        risks = self._risks(problem, problem.measure("all rows", measure_risks), problem.y.size)
        bounds = [risk.bound(problem.delta) for risk in risks]
        errors = [risk.risk for risk in risks]
        return Comparison(
            values=bounds,
            standard_errors=[0.0] * len(bounds),
            fold_errors=[()] * len(bounds),
            how=self,
            details={
                "training errors": tuple(errors),
                "penalties": _penalties(risks, problem.delta),
            },
            claim=(
                unclaimed(DEPENDENT)
                if problem.groups is not None
                else lambda chosen: risks[chosen].claim(problem.delta)
            ),
        )

    def _risks(
        self, problem: SelectionProblem, readings: Sequence[Mapping[str, Any]], n: int
    ) -> list[_Risk]:
        candidates = problem.candidates
        risks = []
        for i, (candidate, unit, reading) in enumerate(
            zip(candidates, problem.unit_of, readings, strict=True)
        ):
            d = column_count(problem.X)
            stated = (
                stated_capacity(given, candidate.name, candidate.model, d, n)
                for given in (self.capacity, unit.capacity)
            )
            capacity = next((given for given in stated if given is not None), reading["known"])
            if capacity is None:
                raise ValueError(
                    f"criterion {self.name!r} knows no capacity of {candidate.name!r}: state"
                    " capacity= or leave it out"
                )
            theorem, capacity = bound_for(capacity, self.bound, candidate.name)
            risks.append(_Risk(reading["errors"], n, theorem, capacity, i + 1, len(candidates)))
        return risks


@dataclass(frozen=True, kw_only=True)
class AdjustedStructuralRisk(StructuralRisk):
    """Training error plus C times the penalty of `StructuralRisk` (thesis, eq. 5.3); C below 1
    voids the theorem.

    C is calibrated on a holdout, as the thesis does: for each C of 1, ½, …, 2⁻¹⁰ the candidate that
    it chooses among those fitted without the held-out rows is tried on these, and the C of the
    least error is taken; among equals the one whose adjusted bound lies closest to that error. Then
    candidates fitted on all rows are compared with this C.

    Parameters
    ----------
    constant : C, if it is known already, from other data; then nothing is held out
    held_out : the fraction of rows to calibrate on, unless `select` is given ``held_out``
    """

    name: ClassVar[str] = "adjusted-srm"
    chooses: ClassVar[str] = "training error plus a constant times SRM's penalty"
    cost: ClassVar[str] = "2 fits a candidate (1 with a constant known already)"
    guarantee: ClassVar[str] = "nothing: the constant voids the theorem"

    constant: float | None = None
    held_out: float = 0.25

    def fits(self, candidates: int, n: int) -> int:  # noqa: ARG002
        """Once to calibrate, once to compare."""
        return candidates * (2 if self.constant is None else 1)

    def refusal(self, problem: SelectionProblem) -> Lacking | None:
        """Anything but two classes; constants that are none."""
        if self.constant is not None and not 0 <= self.constant < np.inf:
            return Lacking(
                JUDGMENT, f"constant must be a number of at least 0, not {self.constant!r}"
            )
        if not 0 < self.held_out < 1:
            return Lacking(
                JUDGMENT, f"held_out must be a fraction between 0 and 1, not {self.held_out!r}"
            )
        return two_classes(self, problem)

    def compare(self, problem: SelectionProblem) -> Comparison:
        """Adjusted risks; measured, not certified."""
        constant, calibration = self.constant, {}
        if constant is None:
            constant, calibration = self._calibrate(problem)
        risks = self._risks(problem, problem.measure("all rows", measure_risks), problem.y.size)
        errors, penalties = [risk.risk for risk in risks], _penalties(risks, problem.delta)
        values = adjusted(errors, penalties, constant).tolist()
        return Comparison(
            values=values,
            standard_errors=[0.0] * len(values),
            fold_errors=[()] * len(values),
            how=self,
            details={
                "training errors": tuple(errors),
                "penalties": penalties,
                "constant": constant,
                **calibration,
            },
            claim=unclaimed("the constant voids the theorem"),
        )

    def _calibrate(self, problem: SelectionProblem) -> tuple[float, dict[str, Any]]:
        train, test = self._rows(problem)
        readings = problem.measure(
            "calibration",
            measure_risks_beside,
            train,
            test_X=take(problem.X, test),
            test_y=problem.y[test],
        )
        risks = self._risks(problem, readings, train.size)
        errors, penalties = [risk.risk for risk in risks], _penalties(risks, problem.delta)
        # (constants, candidates)
        values = np.array([adjusted(errors, penalties, constant) for constant in CONSTANTS])
        chosen = values.argmin(axis=1)
        others = np.array([reading["others"] for reading in readings])[chosen] / test.size
        distance = np.abs(values.min(axis=1) - others)
        best = int(np.lexsort((distance, others))[0])
        return CONSTANTS[best], {
            "calibration errors": tuple(others.tolist()),
            "calibration chose": tuple(chosen.tolist()),
        }

    def _rows(self, problem: SelectionProblem) -> tuple[Positions, Positions]:
        n = problem.y.size
        if problem.held_out is not None and len(problem.held_out):
            test = np.unique(np.asarray(problem.held_out))
        else:
            rng = np.random.default_rng(seed_for("calibration", problem.random_state))
            if problem.groups is not None:
                labels = np.unique(np.asarray(problem.groups))
                held = rng.permutation(labels)[: max(1, round(self.held_out * labels.size))]
                test = np.flatnonzero(np.isin(np.asarray(problem.groups), held))
            else:
                test = np.sort(rng.permutation(n)[: max(1, round(self.held_out * n))])
        return np.setdiff1d(np.arange(n), test), test


def adjusted(errors: Sequence[float], penalties: Sequence[float], constant: float) -> Array:
    """Training errors plus C times the penalties; an infinite penalty stays infinite unless C is 0.

    Examples
    --------
    >>> adjusted([0.2, 0.1], [0.5, 1.0], 0.125).tolist()
    [0.2625, 0.225]
    """
    return np.asarray(errors) + (constant * np.asarray(penalties) if constant else 0.0)


def _penalties(risks: Sequence[_Risk], delta: float) -> tuple[float, ...]:
    return tuple(risk.bound(delta) - risk.risk for risk in risks)
