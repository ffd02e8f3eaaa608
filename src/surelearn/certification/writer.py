"""From facts to simultaneous claims: which theorem bounds which quantity, at which part of δ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from surelearn.bounds import (
    auc_lower,
    balanced_accuracy_lower,
    betting_interval,
    betting_lower,
    betting_upper,
    block_gain,
    block_mean_lower,
    block_mean_upper,
    clopper_pearson,
    clopper_pearson_interval,
    clopper_pearson_lower,
    conformal_coverage,
    conformal_radius,
    conformal_score,
    dkw_distance,
    dkw_lower,
    f1_lower,
    fixed_sequence_lower,
    fixed_sequence_mean,
    fixed_sequence_upper,
    moments_gain,
    moments_lower,
    moments_upper,
    paired_counts,
    paired_difference,
    range_gain,
    range_mean_lower,
    range_mean_upper,
    rate_difference,
    reweighted_gain,
    reweighted_mean,
    reweighted_mean_lower,
    row_weighted_betting,
    shifted_mean,
)
from surelearn.bounds.holdout import (
    BASELINE_UNSEEN,
    CONTENTS_IID,
    GROUPS_IID,
    IID,
    ORDER,
    STATED_RANGE,
)
from surelearn.bounds.thresholds import sure_rows
from surelearn.bounds.units import RANGE
from surelearn.certificate.facts import Facts
from surelearn.claim import Claim, Covers, Theorem
from surelearn.lacking import Lacking
from surelearn.measurement import (
    Measurement,
)
from surelearn.operating import Requirement
from surelearn.quantities import NOVEL, Quantity, Table, shares

OVER_GROUPS = ", mean over groups"
_PROBABLE = ("auc", "brier_score", "log_loss", "calibration")  # read from probabilities
# of a metric that is made of several counts: its theorem, and which facts its inputs are
_OF_COUNTS: dict[str, tuple[Theorem[..., Any], dict[str, str]]] = {
    "auc": (auc_lower, {"auc": "value", "positives": "positives", "negatives": "negatives"}),
    "f1": (f1_lower, {"successes": "count", "n": "n"}),
    "balanced": (balanced_accuracy_lower, {"counts": "counts", "sizes": "sizes"}),
    "difference": (rate_difference, {"counts": "counts", "sizes": "sizes"}),
}


class ClaimWriter:
    """Turns facts into simultaneous claims, dividing δ before looking at any number."""

    def __init__(
        self, facts: Facts, what: Measurement, delta: float, candidates: int, *, grouped: bool
    ) -> None:
        self.facts, self.what, self.delta, self.candidates, self.grouped = (
            facts,
            what,
            delta,
            candidates,
            grouped,
        )
        self.lacking: list[Lacking] = []
        like = "units like these" if what.task == "losses" else "rows like these"
        population = "the mean over a new group like these" if grouped else like
        self.covers = Covers(
            predictor=facts.hashes.get("model", ""),
            loss="zero_one" if what.task == "classification" else what.loss,
            population=(
                population
                if what.weight_bound is None
                else f"{population}, shifted as the weights say"
            ),
            rows=facts.hashes["rows"],
        )

    def write(self, table: Table, headline: float) -> tuple[Claim, ...]:
        """Give each line its part of δ; within a line, equal parts again."""
        claims: list[Claim | None] = []
        for members, share in zip(table, shares(table, headline), strict=True):
            part = self.delta * share / len(members)
            claims += [self.claim(quantity, part) for quantity in members]
        return tuple(claim for claim in claims if claim is not None)

    def claim(self, quantity: Quantity, delta: float) -> Claim | None:
        """The claim of one line of the table, or None where no unit is concerned; its part of δ is
        spent all the same.
        """
        if quantity.quantity in _PROBABLE and "probabilities" in self.facts:
            self.lacking.append(Lacking(quantity.quantity, self.facts["probabilities"]))
            return None
        if quantity.kind == "radius":
            return self._radius(quantity, delta)
        if quantity.kind == "row-weighted":
            return self._row_weighted(quantity, delta)
        if quantity.kind == "gain":
            return self._gain(quantity, delta)
        if quantity.kind == "interval":
            return self._interval(quantity, delta)
        if quantity.kind == "walk":
            return self._walk(quantity, delta)
        if quantity.kind == "set":
            return self._covered(quantity, delta)
        if quantity.kind in ("band", "distance"):
            return self._at_every_threshold(quantity, delta)
        if quantity.kind in _OF_COUNTS:
            theorem, read = _OF_COUNTS[quantity.kind]
            read = {name: f"{quantity.name}.{fact}" for name, fact in read.items()}
            return self.facts.claim(theorem, read, **self._options(quantity, delta))
        claim = self._mean(quantity, delta)
        if claim is None or quantity.name != "novel":
            return claim
        population = f"{NOVEL}, each counted once; not new patients"
        assumptions = tuple(CONTENTS_IID if line == IID else line for line in claim.assumptions)
        return replace(
            claim, covers=replace(claim.covers, population=population), assumptions=assumptions
        )

    def _mean(self, quantity: Quantity, delta: float) -> Claim | None:
        """A mean loss: binomial for rates of rows, betting on a stated range, on weighted
        losses where there is a shift.
        """
        name, lower, weighted = quantity.name, quantity.lower, self.what.weight_bound is not None
        if f"{name}.variance" in self.facts:
            return self._of_moments(quantity, delta)
        counted = quantity.bounds is None and not weighted
        sample = f"{name}.means" if counted else f"{name}.losses"
        if (
            self.facts[f"{name}.n"] == 0
            if counted and not self.grouped
            else self.facts[sample] == ()
        ):
            unit = "group has" if self.grouped and counted else "row is among"
            reason = f"{quantity.label}: no {unit} such rows"
            self.lacking.append(Lacking(what=quantity.quantity, reason=reason))
            return None
        options = self._options(quantity, delta)
        if counted and not self.grouped:
            if lower:
                read = {"successes": f"{name}.count", "n": f"{name}.n"}
                return self.facts.claim(clopper_pearson_lower, read, **options)
            return self.facts.claim(
                clopper_pearson, {"errors": f"{name}.count", "n": f"{name}.n"}, **options
            )
        read = {"losses": sample}
        if weighted:
            whole = not (quantity.within or lower or self.what.proportional)
            theorem = shifted_mean if whole else reweighted_mean_lower if lower else reweighted_mean
            return self.facts.claim(theorem, read | {"weights": f"{name}.weights"}, **options)
        if quantity.bounds is not None and quantity.bounds[0] != 0:
            return self.facts.claim(
                range_mean_lower if lower else range_mean_upper, read, **options
            )
        return self.facts.claim(betting_lower if lower else betting_upper, read, **options)

    def _of_moments(self, quantity: Quantity, delta: float) -> Claim | None:
        """A mean of which the number of rows, their mean and variance are known."""
        name = quantity.name
        if self.facts[f"{name}.n"] == 0:
            reason = f"{quantity.label}: no row is among such rows"
            self.lacking.append(Lacking(what=quantity.quantity, reason=reason))
            return None
        low, high = quantity.bounds or (0.0, 1.0)
        options = {**self._options(quantity, delta), "low": low, "high": high}
        options.pop("loss_bound", None)
        if f"{name}.block_sizes" in self.facts:
            theorem = block_mean_lower if quantity.lower else block_mean_upper
            return self.facts.claim(theorem, _of_blocks(name), **options)
        read = {one: f"{name}.{one}" for one in ("mean", "variance", "n")}
        return self.facts.claim(moments_lower if quantity.lower else moments_upper, read, **options)

    def _counted_gain(self, quantity: Quantity, options: dict[str, Any]) -> Claim:
        """How much better than another, from counts or sums of what one pass compared."""
        if f"{quantity.than}.better" in self.facts:
            read = {one: f"{quantity.than}.{one}" for one in ("better", "worse", "equal")}
            return self.facts.claim(paired_counts, read, **options)
        low, high = quantity.bounds or (0.0, 1.0)
        scale = {k: v for k, v in options.items() if k not in ("loss_bound", "low", "high")}
        if f"{quantity.than}.gain.block_sizes" in self.facts:
            read = _of_blocks(f"{quantity.than}.gain")
            return self.facts.claim(block_gain, read, span=high - low, **scale)
        read = {one: f"{quantity.than}.gain.{one}" for one in ("mean", "variance")}
        read["n"] = f"{quantity.name}.n"
        return self.facts.claim(moments_gain, read, span=high - low, **scale)

    def _interval(self, quantity: Quantity, delta: float) -> Claim | None:
        """A rate from both sides: binomial, or betting on the means of groups."""
        name = quantity.name
        if self.facts[f"{name}.means"] == () if self.grouped else self.facts[f"{name}.n"] == 0:
            reason = (
                f"{quantity.label}: no {'group has' if self.grouped else 'row is among'} such rows"
            )
            self.lacking.append(Lacking(what=quantity.quantity, reason=reason))
            return None
        options = self._options(quantity, delta)
        if self.grouped:
            return self.facts.claim(betting_interval, {"losses": f"{name}.means"}, **options)
        read = {"errors": f"{name}.count", "n": f"{name}.n"}
        return self.facts.claim(clopper_pearson_interval, read, **options)

    def _walk(self, quantity: Quantity, delta: float) -> Claim:
        """What is required, at the last threshold that a walk passed."""
        level = Requirement.parse(self.what.require).level
        options, step = self._options(quantity, delta), {"step": "walk.step"}
        if quantity.quantity == "mean_cost":
            read = {"losses": "walk.losses", "n": "walk.n", **step}
            return self.facts.claim(fixed_sequence_mean, read, level=level, **options)
        theorem = fixed_sequence_lower if quantity.lower else fixed_sequence_upper
        read = {"counts": "walk.counts", "sizes": "walk.sizes", **step}
        return self.facts.claim(theorem, read, level=level, **options)

    def _at_every_threshold(self, quantity: Quantity, delta: float) -> Claim | None:
        """A rate at the chosen threshold, or the distance of a curve from the truth, by a band."""
        name = quantity.name
        if self.facts[f"{name}.n"] == 0:
            reason = f"{quantity.label}: no row is among such rows"
            self.lacking.append(Lacking(what=quantity.quantity, reason=reason))
            return None
        options = self._options(quantity, delta)
        if quantity.kind == "distance":
            return self.facts.claim(dkw_distance, {"n": f"{name}.n"}, **options)
        read = {"successes": f"{name}.count", "n": f"{name}.n"}
        return self.facts.claim(dkw_lower, read, **options)

    def _covered(self, quantity: Quantity, delta: float) -> Claim | None:
        """How often prediction sets hold the true label, at the threshold of a rank."""
        name, n = quantity.name, self.facts[f"{quantity.name}.n"]
        if self.facts[f"{name}.threshold"] is None:
            fewest = sure_rows(1 - (self.what.sets or 0.0), self.what.sets_delta)
            which = f"rows where it is {name[4:-1]}" if self.what.per_class else "rows"
            why = f"{n:,} {which} are fewer than the {fewest:,} that are needed: it is in every set"
            if n >= fewest:
                why = "too many rows have a label that the model does not know"
            elif not self.what.per_class:
                why = f"{n:,} rows are fewer than the {fewest:,} that are needed"
            self.lacking.append(Lacking(what=quantity.quantity, reason=why))
            return None
        options = self._options(quantity, delta, over="")
        if self.grouped:
            like = "a random row of a new group like these"
            options["covers"] = replace(options["covers"], population=like)
        options["covers"] = replace(options["covers"], loss="miss of the prediction set")
        read = {"covered": f"{name}.covered", "n": f"{name}.n"}
        return self.facts.claim(conformal_coverage, read, alpha=self.what.sets, **options)

    def _gain(self, quantity: Quantity, delta: float) -> Claim:
        """How much smaller the mean loss is than another predictor's, on the same rows."""
        options = self._options(quantity, delta)
        if quantity.than.startswith("constant["):
            options["met"].append(BASELINE_UNSEEN)
        if {f"{quantity.than}.better", f"{quantity.than}.gain.mean"} & self.facts.values.keys():
            return self._counted_gain(quantity, options)
        less, more = f"{quantity.name}.losses", f"{quantity.than}.losses"
        if self.what.better == "higher":  # by how much the mean of the other is smaller
            less, more = more, less
        read = {"losses": less, "baseline_losses": more}
        if self.what.weight_bound is not None:
            return self.facts.claim(
                reweighted_gain, read | {"weights": f"{quantity.name}.weights"}, **options
            )
        ranged = quantity.bounds is not None and quantity.bounds[0] != 0
        return self.facts.claim(range_gain if ranged else paired_difference, read, **options)

    def _row_weighted(self, quantity: Quantity, delta: float) -> Claim:
        """The mean loss over the rows of new groups, large groups counting for more."""
        most, name = self.what.largest_group or 1, quantity.name
        options = self._options(quantity, delta, f", mean over rows (at most {most:,} a group)")
        options["covers"] = replace(
            options["covers"], population="the rows of new groups like these"
        )
        read = {"losses": f"{name}.group_losses", "sizes": f"{name}.group_sizes"}
        return self.facts.claim(row_weighted_betting, read, largest_group=most, **options)

    def _radius(self, quantity: Quantity, delta: float) -> Claim:
        """The distance within which most new targets fall."""
        new = "random rows of new groups" if self.grouped else "new rows"
        label = f"distance from the truth, {100 * (1 - self.what.alpha):g}% of {new}"
        if quantity.name == "scores":
            share = f"{100 * (1 - self.what.alpha):g}% of {new}"
            label = f"outward move of the interval's ends that holds {share}"
        options = self._options(replace(quantity, label=label), delta, over="")
        if quantity.name == "scores":
            return self.facts.claim(
                conformal_score, {"scores": "scores"}, alpha=self.what.alpha, **options
            )
        return self.facts.claim(
            conformal_radius, {"residuals": "residuals"}, alpha=self.what.alpha, **options
        )

    def _options(self, quantity: Quantity, delta: float, over: str = OVER_GROUPS) -> dict[str, Any]:
        met = [ORDER]
        # the range is known by the kind of loss
        if self.what.task == "classification" or quantity.bounds is None:
            met += [STATED_RANGE, RANGE]
        return {
            "delta": delta,
            "quantity": quantity.quantity,
            "label": f"{quantity.label}{over}" if self.grouped else quantity.label,
            "family": quantity.family,
            "covers": replace(self.covers, loss=quantity.loss) if quantity.loss else self.covers,
            "candidates": self.candidates,
            "standing": "together",
            "met": met,
            "instead": {IID: GROUPS_IID} if self.grouped else {},
            **self._scale(quantity),
        }

    def _scale(self, quantity: Quantity) -> dict[str, Any]:
        """What the theorem must know of the range of the loss and of the weights, and how the
        claim is shown.
        """
        if quantity.kind == "radius":
            return {}
        low, high = quantity.bounds or (0.0, 1.0)
        shown = {} if quantity.bounds is None else {"unit": "number"}
        if self.what.weight_bound is not None:
            return {**shown, "weight_bound": self.what.weight_bound, "low": low, "high": high}
        if quantity.bounds is None:
            return {}
        grade = self.what.better == "higher"
        if grade and quantity.bounds == (0.0, 1.0) and self.what.loss.endswith(" rate"):
            shown = {}
        return {**shown, "loss_bound": high} if low == 0 else {**shown, "low": low, "high": high}


def _of_blocks(name: str) -> dict[str, str]:
    """The facts that a bound from blocks of rows reads."""
    return {one: f"{name}.block_{one}" for one in ("sizes", "means", "variances")}
