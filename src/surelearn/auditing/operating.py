"""The operating point on a page: what it promises, and where it cannot be kept, by how much it fails
and how many rows would show it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.headline import number, quoted
from surelearn.bounds import clopper_pearson_lower
from surelearn.bounds.thresholds import sure_rows
from surelearn.certificate import Certificate
from surelearn.claim import Claim
from surelearn.operating import Requirement
from surelearn.plain import percent_sure, show
from surelearn.planning import rows_holding, rows_needed, sensitivity_rows
from surelearn.report import Verdict
from surelearn.report.rows import sentence_case

_WORTH_MORE_ROWS = 0.1  # found less falsely called, as measured, above a coin's 0
NAMES = {
    "sensitivity": "a sensitivity",
    "specificity": "a specificity",
    "precision": "a precision",
    "error": "an error among the answered",
    "mean_cost": "a mean cost",
}
QUANTITIES = {"error": "selective_error", "mean_error": "mean_loss"}  # of claims, where others


def requirement_of(certificate: Certificate) -> Requirement | None:
    """What is required of the operating point; None where nothing is."""
    text = certificate.facts.options.get("require")
    return None if text is None else Requirement.parse(text)


def required_claim(certificate: Certificate) -> Claim | None:
    """The claim about the number that is required."""
    requirement = requirement_of(certificate)
    if requirement is None:
        return None
    name = QUANTITIES.get(requirement.quantity, requirement.quantity)
    return next((claim for claim in certificate.together if claim.quantity == name), None)


def is_met(certificate: Certificate) -> bool:
    """Whether what is required is guaranteed."""
    requirement, claim = requirement_of(certificate), required_claim(certificate)
    return requirement is not None and claim is not None and requirement.met_by(number(claim))


def passes(certificate: Certificate) -> bool:
    """Whether a check, or a gate, lets it pass: what is required is guaranteed, and not only because a
    constant answer keeps it, too.
    """
    return is_met(certificate) and not as_a_constant(certificate)


def as_a_constant(certificate: Certificate) -> bool:
    """Whether a constant answer keeps what is required as well, and what is guaranteed at the chosen
    threshold does not rule out that rows are called without regard to their class.

    Who calls rows by a coin that shows heads with probability q has the sensitivity q and the
    specificity 1 − q; calling all rows, or none, are q = 1 and q = 0. So answers that are guaranteed to
    be better have a sensitivity and a specificity whose sum is guaranteed to be above 1. Where calling
    all rows (for a precision: as often right as rows are positive) breaks the requirement as measured,
    nothing more is asked; nor of errors among the answered, which are judged as all errors are. A rate
    that is not claimed counts as measured.
    """
    requirement, facts = requirement_of(certificate), certificate.facts
    if requirement is None or requirement.quantity in ("error", "mean_error"):
        return False
    positives, others = facts["walk.positives"], facts["walk.negatives"]
    constant = {
        "sensitivity": 1.0,
        "specificity": 1.0,
        "precision": positives / max(positives + others, 1),
        "mean_cost": min(positives * (facts.options.get("cost") or 1.0), others)
        / max(positives + others, 1),
    }[requirement.quantity]
    if not requirement.met_by(constant):
        return False
    return sum(_rates(certificate).values()) <= 1


def _rates(certificate: Certificate) -> dict[str, float]:
    """What is guaranteed of either class at the chosen threshold; what was measured, where nothing
    is claimed.
    """
    facts, rates = certificate.facts, {}
    for name in ("sensitivity", "specificity"):
        rates[name] = facts[f"{name}.count"] / max(facts[f"{name}.n"], 1)
    for claim in certificate.together:
        if claim.quantity in rates:
            rates[claim.quantity] = number(claim)
    return rates


def calls_all(certificate: Certificate) -> str:
    """Which rows the chosen threshold calls: "every row", "no row", or "" where it is some of them."""
    facts = certificate.facts
    called = facts["sensitivity.count"] + facts["specificity.n"] - facts["specificity.count"]
    if called == 0:
        return "no row"
    return "every row" if called == facts["sensitivity.n"] + facts["specificity.n"] else ""


def promise(certificate: Certificate) -> str:
    """What is guaranteed at the chosen threshold, in words, of both classes also where it is nothing;
    ``**…**`` marks the numbers.
    """
    requirement, claim = requirement_of(certificate), required_claim(certificate)
    if requirement is None or claim is None:
        return "nothing"
    positive = quoted(certificate.facts.options.get("positive"))
    bounds = {c.quantity: number(c) for c in certificate.together}
    kept, said = number(claim), requirement.quantity
    if said == "error":
        answered = (
            f"at least **{show(bounds.get('answered', 0.0), 'rate', '>=')}** of rows answered"
        )
        if answers_every_row(certificate):
            return f"at most **{show(kept, 'rate', '<=')}** errors, with every row answered"
        return f"{answered}, at most **{show(kept, 'rate', '<=')}** errors among those"
    found, alarms = (
        f"how many {of} is not claimed: {_why_not(certificate, name)}"
        for name, of in (
            ("sensitivity", f"{positive} rows are found"),
            ("specificity", f"of the others are called {positive}"),
        )
    )
    if "sensitivity" in bounds:
        found = f"at least **{show(bounds['sensitivity'], 'rate', '>=')}** of {positive} rows found"
    if "specificity" in bounds:
        share = show(round(1 - bounds["specificity"], 12), "rate", "<=")  # 1 − 0.7 is not a float
        alarms = f"at most **{share}** of the others called {positive}"
    parts = [found, alarms]
    if said == "specificity":
        parts = [alarms, found]
    elif said == "precision":
        share = show(kept, "rate", ">=")
        parts.insert(0, f"at least **{share}** of the rows called {positive} are {positive}")
    elif said == "mean_cost":
        parts.insert(0, f"a mean cost of at most **{show(kept, 'number', '<=')}** per row")
    return "; ".join(parts)


def _why_not(certificate: Certificate, name: str) -> str:
    """Why a rate is not claimed."""
    found = [item.reason for item in certificate.lacking if item.what == name]
    return found[0].rpartition(": ")[2] if found else "no rows of that class were certified"


def answers_every_row(certificate: Certificate) -> bool:
    """Whether no confidence is below the chosen threshold, since none is below 0."""
    return float(certificate.facts["walk.threshold"]) <= 0


def threshold_of(certificate: Certificate) -> str:
    """The chosen threshold, for people, with all of its digits: fewer would be another one."""
    return in_full(certificate.facts["walk.threshold"])


def in_full(threshold: float) -> str:
    """A threshold with the digits that tell it from every other number."""
    return repr(float(threshold)).removesuffix(".0")


def verdict_of_requirement(context: Context) -> Verdict | None:
    """The verdict of a page with an operating point; None where none is required of classes."""
    certificate, requirement = context.certificate, requirement_of(context.certificate)
    if requirement is None or requirement.quantity == "mean_error":
        return None
    sure = percent_sure(certificate.delta)
    if is_met(certificate):
        cut = threshold_of(certificate)
        where = f"called {quoted(context.options.positive)} from a score of {cut} on"
        if requirement.quantity == "error":
            where = f"with answers from a confidence of {cut} on"
            where = "" if answers_every_row(certificate) else where
        said = (
            f"{', '.join(filter(None, ('On new rows like these', where)))}: {promise(certificate)}"
        )
        said += f" ({sure} confidence)."
        if as_a_constant(certificate):
            said = f"Do not ship: {trivially(context)}"
            return Verdict(kind="do not ship", sentence=said)
        if constant := _constant_answer(context, requirement):
            return Verdict(kind="warning", sentence=f"{said} {constant}")
        return Verdict(kind="guaranteed", sentence=said)
    return Verdict(
        kind="do not ship",
        sentence=f"Do not ship: {shortfall(context)} ({sure} confidence). {rows_wanted(context)}",
    )


def _constant_answer(context: Context, requirement: Requirement) -> str:
    """Where as few errors as are allowed are made by always giving the most frequent answer."""
    if requirement.quantity != "error":
        return ""
    labels, counts = np.unique(np.asarray(context.rows("certify")[1]), return_counts=True)
    most = int(np.argmax(counts))
    errors = 1 - float(counts[most]) / int(counts.sum())
    if not requirement.met_by(errors):
        return ""
    constant = quoted(labels[most])
    return f"Always answering {constant} keeps it, too: {show(errors, 'rate')} errors, measured."


def trivially(context: Context) -> str:
    """How a constant answer keeps what is required, too, and whether the rows show more at another
    threshold.
    """
    certificate, requirement = context.certificate, requirement_of(context.certificate)
    if requirement is None:
        return ""
    sure, positive = percent_sure(certificate.delta), quoted(context.options.positive)
    kept = f"{NAMES[requirement.quantity]} of {_level(requirement)} is kept only"
    if all_or_none := calls_all(certificate):
        how = f"by calling {all_or_none} {positive}, as a constant answer does"
    else:
        how = (
            f"as a coin keeps it, from a score of {threshold_of(certificate)} on: that rows called"
            f" {positive} are {positive} more often than others is not guaranteed"
        )
    further = _further(context, requirement)
    return f"{kept} {how}. {sentence_case(promise(certificate))} ({sure} confidence). {further}".strip()


def _further(context: Context, requirement: Requirement) -> str:
    """Whether a threshold further on keeps the level as measured, and is better than a coin there."""
    facts = context.certificate.facts
    found, alarms = (
        np.asarray(facts[f"walk.{name}"], dtype=float) / max(facts[f"walk.{of}"], 1)
        for name, of in (("found", "positives"), ("alarms", "negatives"))
    )
    kept = {"sensitivity": found, "specificity": 1 - alarms}.get(requirement.quantity)
    if kept is None:
        return ""
    better = np.where(kept >= requirement.level, found - alarms, -1.0)
    best, rows = int(np.argmax(better)), facts["walk.positives"] + facts["walk.negatives"]
    if better[best] < _WORTH_MORE_ROWS:
        return "No other threshold does much better, as measured: a better model is needed."
    cut = in_full(facts.options["thresholds"][best])
    return (
        f"From a score of {cut} on, {show(found[best], 'rate')} are found and {show(alarms[best], 'rate')}"
        f" of the others called, as measured: more than {rows:,} rows may show it."
    )


def with_mean_error(context: Context, verdict: Verdict) -> Verdict:
    """The verdict of a regression, with whether the mean error that is required is guaranteed."""
    requirement, claim = requirement_of(context.certificate), required_claim(context.certificate)
    if requirement is None:
        return verdict
    level = show(requirement.level, "number", "<=")
    if is_met(context.certificate):
        return replace(verdict, sentence=f"{verdict.sentence} The required {level} is kept.")
    bound = "nothing" if claim is None else f"at most {show(number(claim), 'number', '<=')}"
    said = f"Do not ship: a mean error of at most {level} is required, and {bound} is guaranteed."
    return replace(verdict, kind="do not ship", sentence=f"{said} {verdict.sentence}")


def _level(requirement: Requirement) -> str:
    """The level that is required, in words."""
    unit = "number" if requirement.quantity == "mean_cost" else "rate"
    side = "at least" if requirement.relation == ">=" else "at most"
    return f"{side} {show(requirement.level, unit, requirement.relation)}"


def shortfall(context: Context) -> str:
    """By how much the requirement fails, at the first threshold that was tried."""
    requirement, claim = requirement_of(context.certificate), required_claim(context.certificate)
    if requirement is None or claim is None:
        return "nothing is guaranteed of what is required"
    unit = "number" if requirement.quantity == "mean_cost" else "rate"
    side = "at least" if requirement.relation == ">=" else "at most"
    bound = show(number(claim), unit, requirement.relation)
    measured = "" if claim.measured is None else f"{show(claim.measured, unit)} measured, "
    whose = "confidence" if requirement.quantity == "error" else "score"
    return (
        f"{NAMES[requirement.quantity]} of {_level(requirement)} is not guaranteed at any threshold; from"
        f" a {whose} of {threshold_of(context.certificate)} on, the first that was tried,"
        f" {measured}{side} **{bound}** guaranteed"
    )


def rows_wanted(context: Context) -> str:
    """How many rows would show what is required, if the rate is what was measured at the first
    threshold; how many are needed in any case, where there are fewer.
    """
    requirement, claim = requirement_of(context.certificate), required_claim(context.certificate)
    if requirement is None or claim is None or requirement.quantity == "mean_cost":
        return "A better model, or more rows, are needed."
    delta, rows = context.certificate.delta, context.certificate.facts["rows"]
    share, counted, rate = claim.delta / delta, claim.inputs["sizes"][0], claim.measured
    least = requirement.level if requirement.relation == ">=" else 1 - requirement.level
    fewest = sure_rows(least, claim.delta)
    few, what = counted < fewest, _COUNTED[requirement.quantity]
    what = what.format(quoted(context.options.positive))
    said = (
        f"Even without an exception at least {fewest:,} {what} are needed, and these are {counted:,}."
        if few
        else ""
    )
    if rate is None or not counted:
        return said or "A better model, or more rows, are needed."
    if rate == requirement.level or not requirement.met_by(rate):
        failures = claim.inputs["counts"][0]
        failures = counted - failures if requirement.relation == ">=" else failures
        more = "More rows would show it only if the rate there is better than measured."
        if clopper_pearson_lower(failures, counted, claim.delta) > 1 - least:
            more = "As measured there, more rows alone would not show it: a better model is needed."
        return f"{said} {more}".strip()
    try:
        if requirement.relation == ">=":
            needed = sensitivity_rows(requirement.level, rate, delta=delta, share=share)
        else:
            needed = rows_needed(requirement.level, rate, delta=delta, share=share)
        total = needed if counted == rows else rows_holding(needed, counted / rows)
    except ValueError:
        return said or "More rows than can be labeled would be needed: a better model is."
    if total <= rows:
        return said or "By chance these rows do not show it; others of the same number may."
    return (
        f"{said} If the rate is {show(rate, 'rate')} there, as measured, about {math.ceil(total):,} rows"
        f" like these would show it, instead of {rows:,}."
    ).strip()


_COUNTED = {
    "sensitivity": "{} rows",
    "specificity": "rows of the others",
    "precision": "rows called {}",
    "error": "answered rows",
}
