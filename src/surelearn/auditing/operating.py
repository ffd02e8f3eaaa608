"""The operating point on a page: what it promises, and where it cannot be kept, by how much it fails
and how many rows would show it.
"""

from __future__ import annotations

import math
from dataclasses import replace

from surelearn.auditing.context import Context
from surelearn.auditing.headline import number, quoted
from surelearn.certificate import Certificate
from surelearn.claim import Claim
from surelearn.operating import Requirement
from surelearn.plain import percent_sure, show
from surelearn.planning import rows_holding, rows_needed, sensitivity_rows
from surelearn.report import Verdict

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


def promise(certificate: Certificate) -> str:
    """What is guaranteed at the chosen threshold, in words; ``**…**`` marks the numbers."""
    requirement, claim = requirement_of(certificate), required_claim(certificate)
    if requirement is None or claim is None:
        return "nothing"
    positive = quoted(certificate.facts.options.get("positive"))
    bounds = {c.quantity: number(c) for c in certificate.together if not c.vacuous}
    kept, said = number(claim), requirement.quantity
    if said == "error":
        answered = (
            f"at least **{show(bounds.get('answered', 0.0), 'rate', '>=')}** of rows answered"
        )
        if answers_every_row(certificate):
            return f"at most **{show(kept, 'rate', '<=')}** errors, with every row answered"
        return f"{answered}, at most **{show(kept, 'rate', '<=')}** errors among those"
    found, alarms = "", ""
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
    return "; ".join(filter(None, parts)) or "nothing"


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
        start, cut = "On new rows like these", threshold_of(certificate)
        if requirement.quantity == "error" and answers_every_row(certificate):
            pass
        elif requirement.quantity == "error":
            start = f"{start}, with answers from a confidence of {cut} on"
        else:
            start = f"{start}, called {quoted(context.options.positive)} from a score of {cut} on"
        return Verdict(
            kind="guaranteed", sentence=f"{start}: {promise(certificate)} ({sure} confidence)."
        )
    return Verdict(
        kind="do not ship",
        sentence=f"Do not ship: {shortfall(context)} ({sure} confidence). {rows_wanted(context)}",
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


def shortfall(context: Context) -> str:
    """By how much the requirement fails, at the threshold where it is surest."""
    requirement, claim = requirement_of(context.certificate), required_claim(context.certificate)
    if requirement is None or claim is None:
        return "nothing is guaranteed of what is required"
    unit = "number" if requirement.quantity == "mean_cost" else "rate"
    name = {"error": "an error among the answered", "mean_cost": "a mean cost"}.get(
        requirement.quantity, f"a {requirement.quantity}"
    )
    side = "at least" if requirement.relation == ">=" else "at most"
    level = show(requirement.level, unit, requirement.relation)
    bound = show(number(claim), unit, requirement.relation)
    measured = "" if claim.measured is None else f"{show(claim.measured, unit)} measured, "
    return (
        f"{name} of {side} {level} is not guaranteed at any threshold; where it is surest,"
        f" {measured}{side} **{bound}** guaranteed"
    )


def rows_wanted(context: Context) -> str:
    """How many rows would show what is required, if the rate is what was measured where it is
    surest.
    """
    requirement, claim = requirement_of(context.certificate), required_claim(context.certificate)
    if requirement is None or claim is None or requirement.quantity == "mean_cost":
        return "A better model, or more rows, are needed."
    rate, share = claim.measured, claim.delta / context.certificate.delta
    if context.rungs is not None and context.rungs.expected is not None:
        rate = context.rungs.expected
    counted = claim.inputs["sizes"][0]
    part = counted / context.certificate.facts["rows"] if counted else 0.0
    if rate is None or not part or rate == requirement.level or not requirement.met_by(rate):
        return "More rows alone would not show it: a better model is needed."
    delta = context.certificate.delta
    try:
        if requirement.relation == ">=":
            needed = sensitivity_rows(requirement.level, rate, delta=delta, share=share)
        else:
            needed = rows_needed(requirement.level, rate, delta=delta, share=share)
        total = needed if part == 1 else rows_holding(needed, part)
    except ValueError:
        return "More rows than can be labeled would be needed: a better model is."
    if total <= context.certificate.facts["rows"]:
        return "By chance these rows do not show it; others of the same number may."
    return (
        f"If the rate there is {show(rate, 'rate')}, about {math.ceil(total):,} rows like these would"
        f" show it, instead of {context.certificate.facts['rows']:,}."
    )
