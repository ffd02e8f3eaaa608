"""The sentence that a page about answers opens with. ``**…**`` marks numbers that are guaranteed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from surelearn.auditing import verdict as of_models
from surelearn.auditing.answers.units import Units
from surelearn.auditing.context import Context
from surelearn.auditing.headline import Headline, number, plural, quoted, worst
from surelearn.auditing.independence import about_labelled
from surelearn.auditing.verdict import USELESS, confidence, later
from surelearn.bounds import betting_upper, clopper_pearson
from surelearn.claim import Claim, Finding
from surelearn.plain import show
from surelearn.report import Verdict


def write_verdict(context: Context) -> Verdict:
    """The verdict of a page about answers; where rows without a label differ it says first that it is
    about labeled ones.
    """
    return about_labelled(context, _first_that_applies(context))


def _first_that_applies(context: Context) -> Verdict:
    if context.contradicted:
        return _contradicted(context)
    if context.task == "losses":
        claim = _claim(context, "mean_grade")
        if claim is None or context.answers is None:
            nothing = "Nothing can be guaranteed about these grades."
            return Verdict(kind="nothing useful", sentence=nothing)
        verdict = _nothing_useful(context, claim, context.answers) or _judged(
            context, claim, context.answers
        )
        return replace(verdict, sentence=verdict.sentence + later(context))
    if context.task == "classification" and "against" in context.certificate.facts.options:
        verdict = _compared(context)
        if verdict is not None:
            verdict = of_models.with_sets(context, verdict)
            return replace(verdict, sentence=verdict.sentence + later(context))
    misses = _claim(context, "interval_misses")
    verdict = (
        of_models.first_that_applies(context) if misses is None else _of_intervals(context, misses)
    )
    if context.task == "regression" and "against" in context.certificate.facts.options:
        return _closer(context, verdict)
    return verdict


def _closer(context: Context, verdict: Verdict) -> Verdict:
    """How much closer to the truth the new forecasts are on average, before what else is said."""
    gain, bound = _claim(context, "gain"), context.options.loss_bound
    if verdict.kind in ("no verdict", "nothing useful") and gain is None:
        return verdict
    options = context.certificate.facts.options
    ours, other = (quoted(str(options[name])) for name in ("prediction", "against"))
    where = context.where
    if context.groups is not None:
        where = f"For a new {context.group_name}, as a mean over {plural(context.group_name)}"
    squared = context.options.loss != "absolute"
    if gain is not None and number(gain) > 0:
        least = f"at least **{show(number(gain), 'number', '>=')}"
        how = f"has a mean squared error {least} below** that of {other}"
        if not squared:
            how = f"is {least} closer** on average than {other}"
        sentence = f"{where}, {ours} {how} (all together, {confidence(context)} confidence)."
        return replace(verdict, sentence=f"{sentence} {verdict.sentence}")
    told = _measured_errors(context)
    if gain is None:
        how = (
            f"say {asks(context, 'loss_bound', 'B')}, which no error exceeds"
            if bound is None
            else ""
        )
        sentence = f"That {ours} is closer than {other} is not guaranteed{': ' + how if how else ''}; {told}."
        return replace(verdict, sentence=f"{sentence} {verdict.sentence}")
    sentence = f"That {ours} is closer than {other} is not guaranteed: {told}."
    seems = Headline(gain, gain, None, None).seems_to_improve
    kind = "warning" if seems else "do not ship"
    return Verdict(kind=kind, sentence=f"{sentence} {verdict.sentence}")


def _measured_errors(context: Context) -> str:
    """The mean errors of both, measured."""
    answers = context.answers
    if answers is None or answers.rival is None:
        return "nothing was measured"
    squared = context.options.loss != "absolute"
    weights, means = 1.0 if answers.weights is None else answers.weights, []
    for model in (answers.model, answers.rival):
        off = np.abs(np.asarray(model.predict(answers.X), float) - np.asarray(answers.y, float))
        means.append(show(float(np.mean(weights * (off**2 if squared else off))), "number"))
    kind = "squared" if squared else "absolute"
    other = quoted(str(context.certificate.facts.options["against"]))
    return f"a mean {kind} error of {means[0]} was measured, {means[1]} for {other}"


def _of_intervals(context: Context, misses: Claim) -> Verdict:
    """How often somebody's own intervals miss, and the correction that makes them hold."""
    correction, share = _claim(context, "score_quantile"), f"{100 * (1 - context.options.alpha):g}%"
    bound = show(number(misses), "rate", "<=")
    sentence = f"{context.where}, at most **{bound} of truths lie outside** their intervals"
    enough = number(misses) <= context.options.alpha
    if correction is not None and np.isfinite(number(correction)):
        size = number(correction)
        moved = show(abs(size), "number", "<=" if size > 0 else ">=")
        how = "outward" if size > 0 else "inward"
        sentence += (
            f"; at least {share} lie inside once each end is moved **{moved} {how}** (both together,"
            f" {confidence(context)} confidence)."
        )
    else:
        sentence += f" ({confidence(context)} confidence); too few rows for a correction."
    kind = "guaranteed" if enough else "warning"
    return Verdict(kind=kind, sentence=sentence + later(context))


def _contradicted(context: Context) -> Verdict:
    """No verdict, and what to say about rows that are not independent draws."""
    found = context.contradicted
    text = found[0].text
    say = remedy(found, partial(asks, context))
    return Verdict(
        kind="no verdict", sentence=f"No verdict: {text[0].lower()}{text[1:]} Say {say}."
    )


def remedy(found: Sequence[Finding], ask: Callable[[str, object], str]) -> str:
    """What to say where columns beside the answers contradict that rows are independent draws."""
    named = next((one for one in found if "column" in one.numbers), None)
    vouch = ask("independent", True)
    if named is None:  # rows that repeat: a model's scores tie, and are no feature of the rows
        return (
            f"{ask('drop', 'COLUMN')} for each column that comes from the model, {ask('group', 'COLUMN')}"
            f" if rows belong together, or {vouch} to vouch that they are independent draws"
        )
    column = str(named.numbers["column"])
    if named.numbers["option"] != "--group":
        return f"{vouch} to vouch that rows do not depend on when they came"
    return f"{ask('group', column)}, or {vouch} to vouch that rows are independent draws"


def asks(context: Context, name: str, value: object) -> str:
    """An option, as code: of the command, or of the call in Python."""
    if context.runner.command:
        flag = f"--{name.replace('_', '-')}"
        return f"`{flag}`" if value is True else f"`{flag} {value}`"
    return f"`{name}={value!r}`"


def _claim(context: Context, quantity: str) -> Claim | None:
    return worst(claim for claim in context.certificate.together if claim.quantity == quantity)


def _compared(context: Context) -> Verdict | None:
    """Whether the new answers are better than the old ones, by how much at least."""
    headline = Headline.of(context.certificate)
    if headline is None or headline.improvement is None:
        return None
    ours = quoted(str(context.certificate.facts.options["prediction"]))
    said = headline.at_most
    where = context.where
    if context.groups is not None:
        where = f"For a new {context.group_name}, as means over {plural(context.group_name)}"
    if headline.improves:
        verb = "costs" if headline.miss is not None else "makes"
        sentence = (
            f"{where}, {ours} {verb} {headline.gained(' errors' if headline.miss is None else '')},"
            f" and has {said} (both together, {confidence(context)} confidence)."
        )
        return Verdict(kind="guaranteed", sentence=sentence)
    sentence = (
        f"That {ours} is better than {headline.rival} is not guaranteed: {headline.measured}."
        f" {where}, it has {said} ({confidence(context)} confidence)."
    )
    return Verdict(
        kind="warning" if headline.seems_to_improve else "do not ship", sentence=sentence
    )


def _nothing_useful(context: Context, claim: Claim, answers: Units) -> Verdict | None:
    """Too few units: even without a failure little would be proved."""
    facts, grouped = context.certificate.facts, context.groups is not None
    n = facts["groups" if grouped else "rows"]
    if n > 10_000 or answers.weights is not None:
        return None
    delta = claim.inputs["delta"]
    binary = bool(facts.options.get("binary")) and not grouped
    least = clopper_pearson(0, n, delta) if binary else betting_upper(np.zeros(n), delta)
    if least <= USELESS:
        return None
    units = plural(context.group_name) if grouped else "rows"
    sentence = (
        f"Nothing useful can be guaranteed: with {n} {units} even without a single failure only a"
        f" {answers.called} of {show(1 - least, 'rate', '>=')} of its range would be proved;"
        " judge more."
    )
    return Verdict(kind="nothing useful", sentence=sentence)


def _judged(context: Context, claim: Claim, answers: Units) -> Verdict:
    """At least so many pass, at least such a grade, at least so many wins."""
    gain, called = _claim(context, "gain"), answers.called
    rate = called.endswith(" rate")
    where, sure = _where(context)
    bound = show(number(claim), "rate" if rate else "number", ">=")
    what = f"the {called}" if rate else f"the mean of {quoted(called)}"
    scale = (
        ""
        if rate or answers.bounds is None
        else f" on a scale from {answers.bounds[0]:g} to {answers.bounds[1]:g}"
    )
    said = f"{what} is at least **{bound}**{scale}"
    if called == "win rate":
        return _duels(claim, f"{where}, {said}", sure)
    if gain is None:
        return Verdict(kind="guaranteed", sentence=f"{where}, {said} ({sure}).")
    other = quoted(str(context.certificate.facts.options["against"]))
    least = number(gain)
    if least > 0:
        more = (
            show(least, "rate", ">=").removesuffix("%") + " percentage points"
            if rate
            else show(least, "number", ">=")
        )
        sentence = (
            f"{where}, {said}, at least **{more} above** that of {other} (both together, {sure})."
        )
        return Verdict(kind="guaranteed", sentence=sentence)
    means = [float(np.mean(one)) for one in (answers.grades, answers.baseline_grades)]
    told = [show(value, "rate" if rate else "number") for value in means]
    sentence = (
        f"That it is better than {other} is not guaranteed: {told[0]} measured, {told[1]} for {other}."
        f" {where}, {said} ({sure})."
    )
    return Verdict(kind="warning" if means[0] > means[1] else "do not ship", sentence=sentence)


def _duels(claim: Claim, said: str, sure: str) -> Verdict:
    """Whether ours wins more than half, ties counting half."""
    ties = " (ties count half)"
    if number(claim) > 0.5:
        return Verdict(kind="guaranteed", sentence=f"{said}{ties}, so more than half; {sure}.")
    measured = "" if claim.measured is None else f", {show(claim.measured, 'rate')} was measured"
    doubt = f"That more than half are won is not guaranteed{measured}"
    kind = "warning" if (claim.measured or 0.0) > 0.5 else "do not ship"
    return Verdict(kind=kind, sentence=f"{doubt}. {said}{ties}; {sure}.")


def _where(context: Context) -> tuple[str, str]:
    """What new units are, and how sure it is of how many of them."""
    sure = f"{confidence(context)} confidence"
    if context.groups is None:
        return context.where, sure
    n = context.certificate.facts["groups"]
    groups = plural(context.group_name)
    return (
        f"For a new {context.group_name}, as a mean over {groups}",
        f"{sure}; {n:,} {groups} count, not {context.certificate.facts['rows']:,} rows",
    )
