"""The sentence the page opens with. ``**…**`` marks numbers that are guaranteed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surelearn.auditing.context import Context
from surelearn.bounds import betting_upper, clopper_pearson
from surelearn.certification import OVER_GROUPS
from surelearn.claim import Claim
from surelearn.plain import percent_sure, show
from surelearn.report import Verdict

USELESS = 0.2  # a bound that even zero errors could not bring below this is of no use to anyone
GOAL = 0.05


def write_verdict(context: Context) -> Verdict:
    """The verdict of an audit, by the first rule that applies."""
    if context.time_name:
        return _over_time(context)
    if context.suspects:
        return _leak(context)
    if context.task == "regression":
        return _regression(context)
    return _nothing_useful(context) or _do_not_ship(context) or _guaranteed(context)


def confidence(context: Context) -> str:
    """The page's confidence in words."""
    return percent_sure(context.certificate.delta)


def plural(group: str) -> str:
    """Several groups in words: "patients", or "values of g" where no plural is obvious.

    Examples
    --------
    >>> plural("patient"), plural("g")
    ('patients', 'values of g')
    """
    return f"{group}s" if group.isalpha() and len(group) > 2 and not group.endswith("s") else f"values of {group}"


def quoted(label: Any) -> str:
    """A label between quotation marks."""
    return f"‘{label}’"


def _claim(context: Context, quantity: str) -> Claim | None:
    claims = [claim for claim in context.certificate.together if claim.quantity == quantity]
    if not claims:
        return None
    return (max if claims[0].relation == "<=" else min)(claims, key=lambda claim: claim.value)  # the worst of a family


def _at_most(claim: Claim, what: str) -> str:
    return f"at most **{show(_number(claim), claim.unit, '<=')} {what}**"


def _number(claim: Claim) -> float:
    return claim.value[1] if isinstance(claim.value, tuple) else claim.value


def _guaranteed(context: Context) -> Verdict:
    risk = _claim(context, "risk")
    if risk is None:
        return Verdict(kind="nothing useful", sentence="Nothing can be guaranteed about this model.")
    gain, baseline = _claim(context, "gain"), _claim(context, "baseline_risk")
    doubt = ""
    if gain is not None and baseline is not None and not _improves(gain, risk, baseline):
        doubt = f" An improvement over {_rival(baseline)} was measured, but is not guaranteed."
    if context.groups is not None:
        facts, group = context.certificate.facts, context.group_name
        counted = f"{facts['groups']:,} held-back {plural(group)} count, not {facts['rows']:,} rows"
        rows = _claim(context, "row_weighted_risk")
        by_rows = "" if rows is None else f", and {_at_most(rows, 'errors')} where every row counts the same"
        sentence = (
            f"For a new {group}, {_at_most(risk, 'errors')} as a mean over {plural(group)}{by_rows} "
            f"({confidence(context)}; {counted})."
        )
        return Verdict(kind="guaranteed", sentence=sentence + doubt)
    parts = [_at_most(risk, "errors")]
    sensitivity = _claim(context, "sensitivity")
    if sensitivity is not None and not sensitivity.vacuous:
        missed = show(1 - _number(sensitivity), "rate", "<=")
        positive = str(context.options.positive)
        name = positive if positive.replace(" ", "").isalpha() else quoted(positive)
        parts.append(f"at most **{missed} of {name} cases missed**")
    sentence = f"On new rows like these, {' and '.join(parts)}"
    if baseline is not None:
        sentence += f", against at least {show(_number(baseline), 'rate', '>=')} errors for {_rival(baseline)}"
    count = len(parts) + (baseline is not None)
    together = {1: "with", 2: "; both hold together with"}.get(count, "; all three hold together with")
    sentence += f"{' ' * (count == 1)}{together} {confidence(context)} confidence."
    return Verdict(kind="guaranteed", sentence=sentence + doubt)


def _rival(baseline: Claim) -> str:
    prefix = "errors of always answering "
    return (
        f"always answering {quoted(baseline.label.removeprefix(prefix).removesuffix(OVER_GROUPS))}"
        if prefix in baseline.label
        else "the other model"
    )


def _nothing_useful(context: Context) -> Verdict | None:
    risk = _claim(context, "risk")
    if risk is None:
        return None
    grouped = context.groups is not None
    n, units = context.certificate.facts["groups" if grouped else "rows"], plural(context.group_name) if grouped else "rows"

    def least(m: int) -> float:
        """What zero errors among m would prove."""
        delta = risk.inputs["delta"]
        return betting_upper(np.zeros(m), delta) if grouped else clopper_pearson(0, m, delta)

    if least(n) <= USELESS:
        return None
    needed = n
    while least(needed) > GOAL:
        needed += 1
    sentence = (
        f"Nothing useful can be guaranteed: with {n} held-back {units} even zero errors proves only "
        f"{show(least(n), 'rate', '<=')}; label at least {needed} to reach {GOAL:.0%}."
    )
    return Verdict(kind="nothing useful", sentence=sentence)


def _do_not_ship(context: Context) -> Verdict | None:
    gain, risk, baseline = _claim(context, "gain"), _claim(context, "risk"), _claim(context, "baseline_risk")
    if gain is None or risk is None or baseline is None or _improves(gain, risk, baseline) or _seems_to_improve(gain):
        return None
    sentence = (
        f"Do not ship: {show(risk.measured or 0.0, 'rate')} errors measured, {show(baseline.measured or 0.0, 'rate')} for "
        f"{_rival(baseline)}; no improvement can be guaranteed."
    )
    return Verdict(kind="do not ship", sentence=sentence)


def _improves(gain: Claim, risk: Claim, baseline: Claim) -> bool:
    """Whether an improvement is guaranteed, by the paired claim or by the two bounds."""
    return _number(gain) > 0 or _number(risk) < _number(baseline)


def _seems_to_improve(gain: Claim) -> bool:
    """Whether an improvement was measured, by more than two standard errors, though too few rows guarantee it."""
    differences = np.subtract(gain.inputs["baseline_losses"], gain.inputs["losses"])
    return differences.size > 1 and differences.mean() > 2 * differences.std(ddof=1) / math.sqrt(differences.size)


def _regression(context: Context) -> Verdict:
    claim = _claim(context, "error_quantile")
    facts = context.certificate.facts
    if claim is None or math.isinf(_number(claim)):
        delta = context.certificate.delta if claim is None else claim.inputs["delta"]
        n = len(facts["residuals"])
        needed = math.ceil(math.log(delta) / math.log1p(-context.options.alpha))  # the largest residual covers
        what = plural(context.group_name) if context.groups is not None else "rows"
        sentence = f"Nothing useful can be guaranteed with {n} held-back {what}; label at least {needed}."
        return Verdict(kind="nothing useful", sentence=sentence)
    share = f"{100 * (1 - context.options.alpha):g}%"
    grouped = context.groups is not None
    whose = f"predictions for one random row of a new {context.group_name}" if grouped else "new predictions"
    radius = show(_number(claim), "number", "<=")
    sentence = f"At least {share} of {whose} fall within **{radius} of the truth** ({confidence(context)} confidence); "
    mean = _claim(context, "mean_loss")
    kind = "mean error" if context.options.loss == "absolute" else "mean squared error"
    if mean is not None:
        sentence += f"the {kind} is at most **{show(_number(mean), 'number', '<=')}**."
    else:
        measured = show(facts["mean loss"], "number")
        sentence += f"the {kind}, {measured}, is measured only, because the target has no stated range."
    if context.selection is not None and context.selection.chosen == 0 and context.selection.name == "median":
        return Verdict(
            kind="do not ship", sentence="Do not ship: no candidate predicts better than always answering the median."
        )
    return Verdict(kind="guaranteed", sentence=sentence)


def _over_time(context: Context) -> Verdict:
    facts = context.certificate.facts
    if context.task == "classification":
        measured = f"the model erred {show(facts['risk.count'] / facts['risk.n'], 'rate')} (measured)"
    else:
        measured = f"the model was off by {show(facts['mean loss'], 'number')} on average (measured)"
    sentence = (
        f"On the last {facts['rows']:,} rows by {context.time_name} {measured}; no guarantee for the rows to come, because "
        "the data change over time."
    )
    return Verdict(kind="measured only", sentence=sentence)


def _leak(context: Context) -> Verdict:
    columns = " and ".join(f"`{column}`" for column in context.suspects)
    verb = "repeats" if len(context.suspects) == 1 else "repeat"
    drops = " ".join(f"--drop {column}" for column in context.suspects)
    pronoun = "it" if len(context.suspects) == 1 else "them"
    headline = "risk" if context.task == "classification" else "error_quantile"
    claims = [claim for claim in context.certificate.together if claim.quantity == headline]
    without, including = claims[0], claims[-1]  # the page's own model, and the one that was given the suspects
    what = " errors" if headline == "risk" else f" off for {100 * (1 - context.options.alpha):g}% of rows"
    sentence = (
        f"No verdict: {columns} {verb} `{context.target}`; with {pronoun} at most "
        f"{show(_number(including), including.unit, '<=')}{what}, without {pronoun} at most "
        f"{show(_number(without), without.unit, '<=')}; confirm with `{drops}`, or `{drops.replace('--drop', '--keep')}` if "
        "it is known when a prediction is made."
    )
    return Verdict(kind="no verdict", sentence=sentence)
