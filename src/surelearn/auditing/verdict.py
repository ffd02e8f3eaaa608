"""The sentence the page opens with. ``**…**`` marks numbers that are guaranteed."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from surelearn.auditing.claims import of_second_model
from surelearn.auditing.context import Context
from surelearn.auditing.headline import Headline, number, plural, quoted, worst
from surelearn.auditing.independence import about_labelled, no_verdict
from surelearn.auditing.operating import verdict_of_requirement, with_mean_error
from surelearn.auditing.rare import missed_class, next_step, require_instead
from surelearn.auditing.sections import coverage, novelty, over_time, performance, prediction_sets
from surelearn.bounds import betting_upper, clopper_pearson, moments_upper
from surelearn.claim import Claim
from surelearn.plain import percent_sure, show
from surelearn.report import Verdict
from surelearn.selection.ledger import ordinal
from surelearn.subject import subject_of

USELESS = 0.2  # a bound that even zero errors could not bring below this is of no use to anyone
GOAL = 0.05


def write_verdict(context: Context) -> Verdict:
    """The verdict of an audit, by the first rule that applies."""
    return about_labelled(context, first_that_applies(context))


def with_sets(context: Context, verdict: Verdict) -> Verdict:
    """The verdict and what is guaranteed of prediction sets."""
    if verdict.kind == "no verdict":
        return verdict
    return replace(verdict, sentence=verdict.sentence + prediction_sets.clause(context))


def first_that_applies(context: Context) -> Verdict:
    """The first rule that applies, whether or not rows without a label differ."""
    if context.time_name:
        return over_time.verdict(context)
    if (contradicted := no_verdict(context)) is not None:
        return contradicted
    if context.suspects:
        return _leak(context)
    if context.task == "regression":
        verdict = with_mean_error(context, _regression(context))
    elif (required := verdict_of_requirement(context)) is not None:
        verdict = required
    else:
        verdict = _nothing_useful(context) or _do_not_ship(context) or _guaranteed(context)
    verdict = with_sets(context, verdict)
    return replace(verdict, sentence=verdict.sentence + novelty.sentence(context) + later(context))


def later(context: Context) -> str:
    """What a later look at the same rows rests on: the model may have been changed because of
    an earlier one.
    """
    if context.turn == 1:
        return ""
    return (
        f" It is the {ordinal(context.turn)} look at these rows: this holds only if the model was"
        " not changed because of what an earlier page showed."
    )


def confidence(context: Context) -> str:
    """The page's confidence in words."""
    return percent_sure(context.certificate.delta)


def _claim(context: Context, quantity: str) -> Claim | None:
    return worst(claim for claim in context.certificate.together if claim.quantity == quantity)


def _guaranteed(context: Context) -> Verdict:
    headline = Headline.of(context.certificate)
    if headline is None:
        return Verdict(
            kind="nothing useful", sentence="Nothing can be guaranteed about this model."
        )
    rare = missed_class(context, headline)
    if rare is not None:
        return _rare(context, headline, *rare)
    said = headline.at_most
    gained = f", {headline.gained()}" if headline.improves else ""
    if context.groups is not None:
        said = f"{said} as a mean over {plural(context.group_name)}{_by_rows(context)}{gained}"
        sentence = (
            f"For a new {context.group_name}, {said} ({confidence(context)}; {_counted(context)})."
        )
        return Verdict(kind="guaranteed", sentence=sentence + _doubt(headline))
    sensitivity = _claim(context, "sensitivity")
    also = ""
    if sensitivity is not None and not sensitivity.vacuous:
        share = show(1 - number(sensitivity), "rate", "<=")
        positive = str(context.options.positive)
        name = positive if positive.replace(" ", "").isalpha() else quoted(positive)
        also = f"{',' if gained else ''} and at most **{share} of {name} cases missed**"
    several = (
        ("; both hold together", "; all three hold together")[bool(gained and also)]
        if gained or also
        else ""
    )
    sentence = (
        f"{context.where}, {said}{gained}{also}{several} with {confidence(context)} confidence."
    )
    return Verdict(kind="guaranteed", sentence=sentence + _doubt(headline))


def _rare(context: Context, headline: Headline, label: str, missed: str) -> Verdict:
    """Few errors of which a rare class has most: its first sentence says so."""
    said, sure = f"{headline.at_most}, but {missed}", f"guaranteed together, {confidence(context)}"
    if context.groups is not None:
        said = f"for a new {context.group_name}, {said}, as means over {plural(context.group_name)}"
        sure = f"{sure}; {_counted(context)}"
    sentence = f"{said[0].upper()}{said[1:]} ({sure}); {next_step(context, label)}."
    if headline.improves:
        sentence += f" Guaranteed too: {headline.gained(' errors')}."
    return Verdict(kind="warning", sentence=sentence + _doubt(headline))


def _doubt(headline: Headline) -> str:
    if headline.improves is not False:
        return ""
    return f" An improvement over {headline.rival} was measured, but is not guaranteed."


def _counted(context: Context) -> str:
    facts = context.certificate.facts
    return (
        f"{facts['groups']:,} {context.held_back}{plural(context.group_name)} count, not"
        f" {facts['rows']:,} rows"
    )


def _by_rows(context: Context) -> str:
    """What is guaranteed where every row counts the same, if the largest group was stated."""
    cost, errors = (_claim(context, f"row_weighted_{name}") for name in ("cost", "risk"))
    if cost is not None:
        return (
            f", and at most **{show(number(cost), 'number', '<=')}** where every row counts the"
            " same"
        )
    if errors is not None:
        return (
            f", and at most **{show(number(errors), 'rate', '<=')} errors** where every row counts"
            " the same"
        )
    return ""


def _nothing_useful(context: Context) -> Verdict | None:
    risk = _claim(context, "risk")
    if risk is None:
        return None
    if context.options.miss is not None:
        return _nothing_useful_of_cost(context)
    grouped = context.groups is not None
    n, units = (
        context.certificate.facts["groups" if grouped else "rows"],
        plural(context.group_name) if grouped else "rows",
    )

    def least(m: int) -> float:
        """What zero errors among m would prove."""
        delta = risk.inputs["delta"]
        return betting_upper(np.zeros(m), delta) if grouped else clopper_pearson(0, m, delta)

    if least(n) <= USELESS:
        return None
    needed = _least_that(lambda m: least(m) <= GOAL, n)
    sentence = (
        f"Nothing useful can be guaranteed: with {n} {context.held_back}{units} even zero errors proves only"
        f" {show(least(n), 'rate', '<=')}; label at least {needed} to reach {GOAL:.0%}."
    )
    return Verdict(kind="nothing useful", sentence=sentence)


def _least_that(enough: Callable[[int], bool], n: int) -> int:
    """The least number of units, from n on, that is enough; more than enough is enough, too."""
    most = max(2 * n, 2)
    while not enough(most):
        most *= 2
    return bisect_left(range(most), True, lo=n, key=enough)


def _nothing_useful_of_cost(context: Context) -> Verdict | None:
    """Where even answers that are all right could not be proved cheaper than a constant one is."""
    headline = Headline.of(context.certificate)
    if headline is None or headline.baseline is None or headline.miss is None:
        return None
    facts, grouped = context.certificate.facts, context.groups is not None
    n, units = (
        facts["groups" if grouped else "rows"],
        plural(context.group_name) if grouped else "rows",
    )
    # else the best constant costs less than miss/(1 + miss), whatever the rows
    constant = "baseline" not in facts.hashes
    goal = headline.baseline.measured or 0.0 if constant else headline.miss / (1 + headline.miss)
    if goal <= 0:
        sentence = (
            f"Nothing useful can be guaranteed: {headline.rival} costs nothing on the {n}"
            f" {context.held_back}{units}; label more."
        )
        return Verdict(kind="nothing useful", sentence=sentence)
    inputs = headline.claim.inputs
    delta, bound = inputs["delta"], inputs["high" if "high" in inputs else "loss_bound"]

    def least(m: int) -> float:
        """What m answers without a miss or a false alarm would prove."""
        if context.counted is not None:
            return moments_upper(0.0, 0.0, m, delta, high=bound)
        return betting_upper(np.zeros(m), delta, loss_bound=bound)

    if least(n) <= goal:
        return None
    needed = _least_that(lambda m: least(m) <= goal / 2, n)
    than = (
        f"{headline.rival} costs {show(goal, 'number')}"
        if constant
        else "some constant answer costs less"
    )
    sentence = (
        f"Nothing useful can be guaranteed: with {n} {context.held_back}{units} even answers without an"
        f" error prove only a mean cost of at most {show(least(n), 'number', '<=')}, and {than};"
        f" label at least {needed:,}."
    )
    return Verdict(kind="nothing useful", sentence=sentence)


def _do_not_ship(context: Context) -> Verdict | None:
    headline = Headline.of(context.certificate)
    if headline is None or headline.improves is not False or headline.seems_to_improve:
        return None
    rare = missed_class(context, headline)
    sentence = f"Do not ship: {headline.measured}; no improvement can be guaranteed"
    if rare is not None:
        label, missed = rare
        sentence += f", and {missed} ({confidence(context)}); {next_step(context, label)}"
    elif context.options.cost is None and (way := require_instead(context)):
        sentence += f". {way}"
    return Verdict(kind="do not ship", sentence=f"{sentence}.")


def _regression(context: Context) -> Verdict:
    own = _claim(context, "score_quantile")
    claim = own or _claim(context, "error_quantile")
    facts = context.certificate.facts
    if claim is None or math.isinf(number(claim)):
        delta = context.certificate.delta if claim is None else claim.inputs["delta"]
        n = len(facts["scores" if "scores" in facts else "residuals"])
        # the largest residual covers
        needed = math.ceil(math.log(delta) / math.log1p(-context.options.alpha))
        what = plural(context.group_name) if context.groups is not None else "rows"
        beyond = facts.values.get("outside.count", 0)
        if beyond and n >= needed:
            low, high = facts.options["target_range"]
            sentence = (
                f"Nothing useful can be guaranteed: {beyond:,} of {facts['rows']:,} {context.held_back}rows"
                f" lie outside the stated range, {low:,.10g} to {high:,.10g}, and no interval holds them."
            )
            return Verdict(kind="nothing useful", sentence=sentence)
        sentence = f"Nothing useful can be guaranteed with {n} {context.held_back}{what}; label at least {needed}."
        return Verdict(kind="nothing useful", sentence=sentence)
    share = f"{100 * (1 - context.options.alpha):g}%"
    grouped = context.groups is not None
    whose = (
        f"predictions for one random row of a new {context.group_name}"
        if grouped
        else "new predictions"
    )
    radius = show(number(claim), "number", "<=")
    sentence = (
        f"At least {share} of {whose} fall within **{radius} of the truth** ({confidence(context)}"
        f" confidence{_beside_the_median(context, share)}); "
    )
    if own is not None:
        rows = f"random rows of new {plural(context.group_name)}" if grouped else "new rows"
        sentence = (
            f"At least **{share} of {rows} have the truth inside their own interval**"
            f" ({confidence(context)} confidence){coverage.widths_in_words(context)}"
            f"{_beside_the_median(context, share)}; "
        )
    mean = _claim(context, "mean_loss")
    kind = "mean absolute error" if context.options.loss == "absolute" else "mean squared error"
    if mean is not None:
        sentence += f"the {kind} is at most **{show(number(mean), 'number', '<=')}**."
    else:
        measured = show(facts["mean_loss"], "number")
        why = "the target has no stated range"
        if context.options.target_range is not None:
            why = "no bound on the error is stated"
        sentence += f"the {kind}, {measured}, is only measured, because {why}."
    if (
        context.selection is not None
        and context.selection.chosen == 0
        and context.selection.name == "median"
    ):
        return Verdict(
            kind="do not ship",
            sentence="Do not ship: no candidate predicts better than always answering the median.",
        )
    return Verdict(kind="guaranteed", sentence=sentence)


def _beside_the_median(context: Context, share: str) -> str:
    """Within what a constant answer falls, and R², both measured."""
    X, y = context.rows("certify")
    fraction = performance.r_squared(subject_of(context.model).predict(X), y)
    said = [] if fraction is None else [f"R² {performance.r_squared_in_words(fraction, 2)}"]
    median = performance.baseline_of_numbers(context)
    if median is not None:
        within = np.quantile(
            np.abs(np.asarray(y, float) - median), 1 - context.options.alpha, method="inverted_cdf"
        )
        said.insert(
            0, f"always answering the median: {share} within {show(float(within), 'number')}"
        )
    both = "both measured" if len(said) == 2 else "measured"
    return f"; {'; '.join(said)}, {both}" if said else ""


def _leak(context: Context) -> Verdict:
    columns = " and ".join(f"`{column}`" for column in context.suspects)
    verb = "repeats" if len(context.suspects) == 1 else "repeat"
    drops = " ".join(f"--drop {column}" for column in context.suspects)
    pronoun = "it" if len(context.suspects) == 1 else "them"
    without = context.certificate.together[0]
    including = next(claim for claim in context.certificate.together if of_second_model(claim))
    headline = without.quantity
    what = {"risk": " errors", "mean_cost": " mean cost"}.get(
        headline, f" off for {100 * (1 - context.options.alpha):g}% of rows"
    )
    sentence = (
        f"No verdict: {columns} {verb} `{context.target}`; with {pronoun} at most"
        f" {show(number(including), including.unit, '<=')}{what}, without {pronoun} at most"
        f" {show(number(without), without.unit, '<=')}; confirm with `{drops}`, or"
        f" `{drops.replace('--drop', '--keep')}` if it is known when a prediction is made."
    )
    return Verdict(kind="no verdict", sentence=sentence)
