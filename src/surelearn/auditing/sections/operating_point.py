"""Section: the operating point that is required: the whole curve with its band, the threshold that was
chosen on it, and what other thresholds would cost.
"""

from __future__ import annotations

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.headline import quoted
from surelearn.auditing.operating import (
    as_a_constant,
    in_full,
    is_met,
    promise,
    required_claim,
    requirement_of,
    shortfall,
    threshold_of,
    trivially,
)
from surelearn.auditing.writing import Entry
from surelearn.bounds.thresholds import passes_lower, slack_everywhere, steps_passed, sure_rows
from surelearn.operating import Requirement
from surelearn.plain import percent_sure, show
from surelearn.report import Chart, PageTable, Section
from surelearn.report.rows import bound_words, sentence_case
from surelearn.types import Array

ROUND = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999)  # rates whose thresholds a table shows


def section(context: Context) -> Section | None:
    """What is promised, at which threshold, and the curve that it was chosen on."""
    certificate, requirement = context.certificate, requirement_of(context.certificate)
    if requirement is None or requirement.quantity == "mean_error":
        return None
    facts, sure = certificate.facts, percent_sure(certificate.delta)
    if not certificate.together:
        return ENTRY.says(notes=(f"Required: {requirement}. Nothing is guaranteed.",))
    kept = promise(certificate) if is_met(certificate) else shortfall(context)
    if as_a_constant(certificate) and is_met(certificate):
        kept = trivially(context)
    else:
        kept += f" ({sure} confidence)."
    kept = kept.replace("**", "")
    steps, passed = len(facts.options["thresholds"]), facts["walk.passed"]
    whose = "confidence of an answer" if requirement.quantity == "error" else "score"
    notes = [
        f"Required: {requirement}. {sentence_case(kept)}",
        f"Threshold on the {whose}: {threshold_of(certificate)}, the last before the first that fails"
        f" of {steps} that were fixed beforehand ({passed} passed).",
        *_dearer(context, requirement),
        *_fixed_on(context),
    ]
    rows = tuple(
        (
            sentence_case(label),
            "" if claim.measured is None else show(claim.measured, claim.unit),
            " ".join(bound_words(claim)),
        )
        for claim, label in certificate.rows()
        if claim.standing == "together"
        and ("walk.step" in claim.sources.values() or claim.quantity in _BESIDE)
    )
    table = PageTable(header=("metric", "measured", "guaranteed"), rows=rows)
    drawn = (
        _selective(context, requirement.level)
        if requirement.quantity == "error"
        else _curve(context, requirement)
    )
    return ENTRY.says(notes=notes, tables=(table, drawn[1]), charts=(drawn[0],))


_BESIDE = ("sensitivity", "specificity", "answered")


def _fixed_on(context: Context) -> list[str]:
    """Which rows chose the thresholds and their order."""
    if context.counted is not None:
        return [
            "The thresholds, and their order, were fixed before the file was read: no row was spent on"
            " them, and the rows chose only where to stop."
        ]
    rungs = context.rungs
    if rungs is None:
        return []
    which = (
        "out-of-fold scores of the rows fitted on"
        if context.selection is not None
        else f"{rungs.rows:,} other rows of the file, drawn by a hash of the columns that are neither"
        " scores nor labels (by coins where these do not tell all rows apart)"
    )
    return [f"The thresholds, and their order, come from {which}; the certified rows chose only where to stop."]  # fmt: skip


def _slacks(context: Context) -> tuple[float, float]:
    """By how much sensitivities and specificities may be below the measured curve, at every threshold
    at once; 1 where nothing is claimed of it.
    """
    found = []
    for name in ("sensitivity", "specificity"):
        claims = [
            c
            for c in context.certificate.together
            if c.theorem in ("dkw_distance", "dkw_lower")
            and c.quantity in (name, f"{name}_distance")
        ]
        found.append(
            float(slack_everywhere(claims[0].inputs["n"], claims[0].inputs["delta"]))
            if claims
            else 1.0
        )
    return found[0], found[1]


def _curve(context: Context, requirement: Requirement) -> tuple[Chart, PageTable]:
    """Sensitivity against false alarms, with the band that holds at every threshold."""
    facts, positive = context.certificate.facts, context.options.positive
    order = np.argsort(facts.options["thresholds"])[::-1]
    found, alarms = (
        np.asarray(facts[f"walk.{name}"], dtype=float)[order] / max(facts[f"walk.{of}"], 1)
        for name, of in (("found", "positives"), ("alarms", "negatives"))
    )
    up, right = _slacks(context)
    sure_found = np.maximum(found - up, 0.0)
    sure_alarms = np.minimum(alarms + right, 1.0)
    step = int(np.flatnonzero(order == facts["walk.step"])[0])
    data = {
        "x": np.round(alarms, 4).tolist(),
        "y": np.round(found, 4).tolist(),
        "low": (np.floor(sure_found * 1e4) / 1e4).tolist(),
        "legend": "lower right",
        "low_x": (np.ceil(sure_alarms * 1e4) / 1e4).tolist(),
        "high": np.round(found, 4).tolist(),
        "proved": True,
        "x_label": f"false alarms: others called {positive}",
        "x_unit": "rate",
        "unit": "rate",
        "point": [round(float(alarms[step]), 4), round(float(found[step]), 4)],
        "point_label": f"chosen: {threshold_of(context.certificate)}",
    }
    if requirement.quantity == "sensitivity":
        data |= {"level": requirement.level, "level_label": "required"}
    title = f"Sensitivity for {positive} against false alarms; below it what is guaranteed at every threshold"
    cuts = np.asarray(facts.options["thresholds"])[order]
    rows = tuple(
        (
            f"{in_full(cuts[i])}{' (chosen)' if i == step else ''}",
            f"{show(found[i], 'rate')}, at least {show(sure_found[i], 'rate', '>=')}",
            f"{show(alarms[i], 'rate')}, at most {show(sure_alarms[i], 'rate', '<=')}",
        )
        for i in _shown(found, step)
    )
    table = PageTable(
        header=("from a score of", f"{positive} found", f"others called {positive}"), rows=rows
    )
    return Chart(kind="curve", title=title, data=data), table


def _selective(context: Context, level: float) -> tuple[Chart, PageTable]:
    """Errors among the answered against how many rows are answered."""
    facts = context.certificate.facts
    order = np.argsort(facts.options["thresholds"])[::-1]
    answered, wrong = (np.asarray(facts[f"walk.{n}"], float)[order] for n in ("answered", "wrong"))
    share, error = answered / max(facts["walk.rows"], 1), wrong / np.maximum(answered, 1)
    step = int(np.flatnonzero(order == facts["walk.step"])[0])
    data = {
        "x": np.round(share, 4).tolist(),
        "y": np.round(error, 4).tolist(),
        "low": [None] * order.size,
        "high": [None] * order.size,
        "x_label": "rows that are answered",
        "x_unit": "rate",
        "unit": "rate",
        "legend": "upper left",
        "level": level,
        "level_label": "allowed",
        "point": [round(float(share[step]), 4), round(float(error[step]), 4)],
        "point_label": f"chosen: {threshold_of(context.certificate)}",
    }
    cuts = np.asarray(facts.options["thresholds"])[order]
    rows = tuple(
        (
            f"{in_full(cuts[i])}{' (chosen)' if i == step else ''}",
            show(share[i], "rate"),
            show(error[i], "rate"),
        )
        for i in _shown(share, step)
    )
    table = PageTable(
        header=("from a confidence of", "answered, measured", "errors among those, measured"),
        rows=rows,
    )
    return Chart(kind="curve", title="Errors among the answered, measured", data=data), table


def _shown(rates: Array, chosen: int) -> list[int]:
    """The chosen threshold and, for some round rates, the strictest one that reaches each."""
    reached = {int(np.argmax(rates >= goal)) for goal in ROUND if np.any(rates >= goal)}
    return sorted({*reached, chosen})


def _dearer(context: Context, requirement: Requirement) -> list[str]:
    """What a higher sensitivity would cost, as measured where the walk would end with that level."""
    claim, facts = required_claim(context.certificate), context.certificate.facts
    goals = [goal for goal in ROUND if goal > requirement.level]
    if requirement.quantity != "sensitivity" or claim is None or not goals:
        return []
    counts, sizes = claim.inputs["counts"], claim.inputs["sizes"]
    passed = steps_passed(passes_lower(counts, sizes, goals[0], claim.inputs["delta"]))
    positive, goal = quoted(context.options.positive), show(goals[0], "rate")
    if not passed:
        needed = sure_rows(goals[0], claim.inputs["delta"])
        what = f"{needed:,} {positive} rows or more, instead of {sizes[0]:,}"
        what = "other scores" if sizes[0] >= needed else what
        return [f"To guarantee that {goal} of {positive} are found takes {what}."]
    dear, now = (
        show(facts["walk.alarms"][i] / max(facts["walk.negatives"], 1), "rate")
        for i in (passed - 1, facts["walk.step"])
    )
    if not is_met(context.certificate) or dear == now:
        return []
    level = show(requirement.level, "rate")
    return [
        f"For {goal} instead of {level} of {positive} found: {dear} of the others called instead of {now},"
        " as measured."
    ]


ENTRY = Entry(key="operating", title="Operating point", write=section, place="costs")
