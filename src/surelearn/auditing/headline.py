"""What the verdict is about, errors or mean cost, beside the constant answer or the model that
it is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from surelearn.certificate import Certificate
from surelearn.claim import Claim
from surelearn.plain import show
from surelearn.types import Label


@dataclass(frozen=True)
class Headline:
    """The claims that a verdict speaks of.

    Attributes
    ----------
    claim : the bound on the error or, where a cost was stated, on the mean cost
    gain : how much smaller that is, at least, than another predictor's (of several constants: the
        least gain)
    baseline : how large the other's is, at least
    miss : what a missed positive costs, if the claim is about the mean cost
    against : the column of the other's answers, where they were recorded
    """

    claim: Claim
    gain: Claim | None
    baseline: Claim | None
    miss: float | None
    against: str | None = None

    @classmethod
    def of(cls, certificate: Certificate) -> Headline | None:
        """The headline of a classifier's certificate; None where nothing is guaranteed."""
        claim = next((c for c in certificate.together if c.quantity in ("mean_cost", "risk")), None)
        if claim is None:
            return None
        by_cost = claim.quantity == "mean_cost"
        gain, baseline = (
            worst(c for c in certificate.together if c.quantity == quantity)
            for quantity in ("gain", "baseline_cost" if by_cost else "baseline_risk")
        )
        options = certificate.facts.options
        miss = options["cost"] if by_cost else None
        return cls(claim, gain, baseline, miss, options.get("against"))

    @property
    def improvement(self) -> float | None:
        """How much better than the other at least: by the paired claim or, where that proves
        nothing, by the two bounds.
        """
        if self.gain is None or self.baseline is None:
            return None
        paired = number(self.gain)
        return paired if paired > 0 else max(paired, number(self.baseline) - number(self.claim))

    @property
    def improves(self) -> bool | None:
        """Whether an improvement is guaranteed; None where there is nothing to compare with."""
        return None if self.improvement is None else self.improvement > 0

    @property
    def seems_to_improve(self) -> bool:
        """Whether an improvement was measured, by more than two standard errors, though too few
        rows guarantee it.
        """
        if self.gain is None:
            return False
        inputs = self.gain.inputs
        if "variance" in inputs:
            return inputs["mean"] > 2 * math.sqrt(inputs["variance"] / inputs["n"])
        if "better" in inputs:  # the sign test's statistic
            better, worse = inputs["better"], inputs["worse"]
            return better - worse > 2 * math.sqrt(better + worse)
        differences = np.subtract(inputs["baseline_losses"], inputs["losses"])
        return differences.size > 1 and differences.mean() > 2 * differences.std(
            ddof=1
        ) / math.sqrt(differences.size)

    @property
    def rival(self) -> str:
        """What is compared with, in words."""
        answer = None if self.baseline is None else self.baseline.about("constant")
        if self.baseline is None or answer is None:
            return "the other model" if self.against is None else quoted(self.against)
        return (
            "any constant answer" if self.baseline.family else f"always answering {quoted(answer)}"
        )

    @property
    def at_most(self) -> str:
        """The bound in words."""
        bound = show(number(self.claim), self.claim.unit, "<=")
        if self.miss is None:
            return f"at most **{bound} errors**"
        return (
            f"a mean cost of at most **{bound}** per row (a miss counts"
            f" {show(self.miss, 'number')}, a false alarm 1)"
        )

    def gained(self, errors: str = "") -> str:
        """The guaranteed improvement in words, where ``errors`` names what there are fewer of,
        if nothing before did.
        """
        value = self.improvement or 0.0
        if self.miss is not None:
            return f"at least **{show(value, 'number', '>=')} less** than {self.rival}"
        points = show(value, "rate", ">=").removesuffix("%")
        if not float(points):  # fewer than a hundredth of a percentage point
            points = show(100 * value, "number", ">=")
        return f"at least **{points} percentage points fewer{errors}** than {self.rival}"

    @property
    def measured(self) -> str:
        """What was measured of both, in words."""
        own, other = (
            0.0 if c is None or c.measured is None else c.measured
            for c in (self.claim, self.baseline)
        )
        if self.miss is not None:
            counts = f"(a miss counts {show(self.miss, 'number')}, a false alarm 1)"
            return (
                f"a mean cost of {show(own, 'number')} {counts} measured, {show(other, 'number')}"
                f" for {self.rival}"
            )
        return f"{show(own, 'rate')} errors measured, {show(other, 'rate')} for {self.rival}"


def headline_of(certificate: Certificate) -> Claim | None:
    """The claim that a goal is about: the mean cost where one is stated, else errors; the interval of
    numbers; the mean of grades or losses. None where just that is not claimed, whatever else is.
    """
    options = certificate.facts.options
    task = options.get("task")
    interval = "score_quantile" if options.get("banded") else "error_quantile"
    quantity = {"regression": interval, "losses": "mean_loss"}.get(str(task), "risk")
    if task == "losses" and options.get("better") == "higher":
        quantity = "mean_grade"
    if quantity == "risk" and options.get("cost") is not None and options.get("by_cost", True):
        quantity = "mean_cost"
    return next((c for c in certificate.together if c.quantity == quantity), None)


def number(claim: Claim) -> float:
    """A claim's bound, the upper one of an interval."""
    return claim.value[1] if isinstance(claim.value, tuple) else claim.value


def worst(claims: Iterable[Claim]) -> Claim | None:
    """The weakest claim of a family, which holds for all its members; None without any."""
    listed = list(claims)
    if not listed:
        return None
    return (max if listed[0].relation == "<=" else min)(listed, key=lambda claim: number(claim))


def plural(group: str) -> str:
    """Several groups in words: "patients", or "values of g" where no plural is obvious.

    Examples
    --------
    >>> plural("patient"), plural("g")
    ('patients', 'values of g')
    """
    return (
        f"{group}s"
        if group.isalpha() and len(group) > 2 and not group.endswith("s")
        else f"values of {group}"
    )


def quoted(label: Label) -> str:
    """A label between quotation marks."""
    return f"‘{label}’"
