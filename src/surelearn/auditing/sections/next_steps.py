"""What to do next: a few steps, each with one command or action, drawn from the claims and findings
of an audit. Nothing among them is a guarantee.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.headline import Headline, number, quoted, worst
from surelearn.auditing.independence import UNLABELLED
from surelearn.auditing.rare import (
    EXAMPLE_COST,
    EXAMPLE_REQUIREMENT,
    by_name,
    can_require,
    missed_class,
)
from surelearn.auditing.sections.learning_curve import last_doubling, loss_name
from surelearn.auditing.writing import Entry
from surelearn.claim import Finding
from surelearn.operating import Requirement
from surelearn.plain import show
from surelearn.planning import plan
from surelearn.planning.tables import total_for
from surelearn.report import PageTable, Section

MOST = 6
MINUTES = 5  # for candidates that the usual budget left out
LOOSE = 1.25  # a bound that is larger than so many times what was measured is worth more rows,
POINTS = 0.005  # if it is larger by half a percentage point, too
HARMFUL = -0.02  # of the loss: what a row does that may have a wrong label
_NOTE = (
    "Drawn from what was found; nothing here is guaranteed. Options are those of the audit. Auditing"
    " the same rows again is another look at them, which is held to a stricter confidence."
)


@dataclass(frozen=True)
class NextStep:
    """One thing to do: what, why, and how (a command, an option or an action)."""

    what: str
    why: str
    how: str


def section(context: Context, sections: Sequence[Section]) -> Section | None:
    """The first few steps that apply to the audit and to what its other sections say."""
    page = _Page(context, sections)
    found = [step for rule in _RULES for step in rule(page)]
    last = list(_watch(page))
    steps = [*found[: MOST - len(last)], *last]
    if not steps:
        return None
    rows = tuple((step.what, step.why, step.how) for step in steps)
    return ENTRY.says(notes=(_NOTE,), tables=(PageTable(header=("what", "why", "how"), rows=rows),))


class _Page:
    """What the rules look at: the audit, its sections by key, and its findings by code."""

    def __init__(self, context: Context, sections: Sequence[Section]) -> None:
        self.context = context
        self.certificate = context.certificate
        self.headline = (
            Headline.of(context.certificate) if context.task == "classification" else None
        )
        self.sections = {section.key: section for section in sections}
        found = [*context.findings, *(f for section in sections for f in section.findings)]
        self._findings = {finding.code: finding for finding in reversed(found)}

    def finding(self, code: str, *severities: str) -> Finding | None:
        """The first finding with the code, if it has one of the severities (none named: any)."""
        found = self._findings.get(code)
        return found if found and (not severities or found.severity in severities) else None

    def asks(self, **options: Any) -> str:
        """Options to add, as code: of the command, or of the call in Python."""
        if self.context.runner.command:
            said = " ".join(
                f"--{name.replace('_', '-')}" + ("" if value is True else f" {_word(value)}")
                for name, value in options.items()
            )
            return f"`{said}`"
        return f"`{', '.join(f'{name}={value!r}' for name, value in options.items())}`"

    @property
    def counts_rows(self) -> bool:
        """Whether the certify rows count one by one, as `surelearn.planning` counts them."""
        return self.context.dependent is None


def _word(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else shlex.quote(str(value))


# ── What stands against the verdict
# ──────────────────────────────────────────────────────────────────────────────────


def _leak(page: _Page) -> Iterator[NextStep]:
    """A column that gives the target away."""
    for column in page.context.suspects[:1]:
        why = f"{quoted(column)} nearly repeats the target. Is it known when a prediction is made?"
        how = f"{page.asks(drop=column)} if not, {page.asks(keep=column)} if it is"
        yield NextStep("Decide about a column", why, how)


def _independence(page: _Page) -> Iterator[NextStep]:
    """Copies, near copies, or a column that names groups."""
    context = page.context
    if context.groups is not None or context.time_name:
        return
    told = next((f for f in context.contradicted if "column" in f.numbers), None)
    found = told or next(iter(context.contradicted), None) or page.finding("SL108")
    if found is None:
        return
    vouch = f"{page.asks(independent=True)} if you know that rows were drawn one by one"
    if context.split is None and context.answers is None:
        how = f"`groups=` with one label per row, or {vouch}"
    elif "column" in found.numbers:
        option = str(found.numbers.get("option", "--group")).lstrip("-")
        how = page.asks(**{option: str(found.numbers["column"])})
        how += f", or {vouch}" if context.contradicted else ", if they do"
    else:
        how = f"{page.asks(group='COLUMN')} with the column that names them, or {vouch}"
        if context.answers is not None:
            how = f"{page.asks(drop='COLUMN')} for what comes from the model, {how}"
    yield NextStep("Say which rows belong together", _first_sentence(found.text), how)


def _labels_missing(page: _Page) -> Iterator[NextStep]:
    """Rows without a label are others."""
    found = page.finding(UNLABELLED)
    if found and page.context.options.population is None:
        differ = "differ from" if found.numbers.get("columns") else "were not compared with"
        why = f"Rows without a label {differ} the labeled ones that the page is about."
        how = f"{page.asks(population='labelled')} if only rows that get a label matter"
        yield NextStep("Ask why labels are missing", why, how)


def _class_that_matters(page: _Page) -> Iterator[NextStep]:
    """A rare class that is missed, or two classes of which nobody said which one matters."""
    context, headline = page.context, page.headline
    if headline is None or context.options.positive is not None:
        return
    rare = missed_class(context, headline)
    two = len(context.labels) == 2
    if rare is not None:
        label, missed = rare
        if context.trained and label not in map(str, context.classes):
            yield NextStep(
                "Label more of the rare class", _sentence(missed), "more labeled rows of it"
            )
            return
        cost = {"cost": EXAMPLE_COST} if two else {}
        given = next((c for c in context.labels if str(c) == label), label)
        what = "Name the class that matters" + (", and what a miss costs" if two else "")
        how = page.asks(positive=given, **cost)
        if can_require(context):
            how += f", or {page.asks(positive=given, require=EXAMPLE_REQUIREMENT)}"
        yield NextStep(what, _sentence(missed), how)
    elif two:
        _, y = context.rows("train" if context.trained else "certify")
        counts = [
            (int(np.sum(np.asarray(y) == label)), i) for i, label in enumerate(context.labels)
        ]
        label = by_name(context.labels)
        label = context.labels[min(counts)[1]] if label is None else label
        why = "The page then guarantees how much of it is caught, and how often an alarm is right"
        why += "; with a cost it chooses the threshold." if context.answers is None else "."
        how = page.asks(positive=label)
        if can_require(context):
            why = f"{why.removesuffix('.')}; a requirement chooses it, too, and is guaranteed."
            how += f", or {page.asks(positive=label, require=EXAMPLE_REQUIREMENT)}"
        yield NextStep("Name the class that matters", why, how)


def _requirement(page: _Page) -> Iterator[NextStep]:
    """A class that matters, of which the threshold in use finds fewer than may be required."""
    context, options = page.context, page.context.options
    caught = worst(c for c in page.certificate.together if c.quantity == "sensitivity")
    if caught is None or caught.measured is None or not can_require(context):
        return
    chosen = options.require is not None or options.miss is not None
    if chosen or caught.measured >= Requirement.parse(EXAMPLE_REQUIREMENT).level:
        return
    why = (
        f"At the threshold in use {show(caught.measured, 'rate')} of {quoted(options.positive)} are"
        " found, as measured; a requirement chooses the threshold that finds more, and guarantees it."
    )
    yield NextStep("Say how much must be found", why, page.asks(require=EXAMPLE_REQUIREMENT))


# ── More rows
# ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _more_rows(page: _Page) -> Iterator[NextStep]:
    """As many rows as halve the distance between what is guaranteed and what was measured, and
    whether they would improve the model.
    """
    curve = page.sections.get("learning_curve")
    falls = None if curve is None or not curve.charts else last_doubling(curve.charts[0])
    also = (
        ""
        if falls is None
        else f" The {loss_name(page.context)} still falls from {falls[0]:,} to {falls[1]:,} training rows."
    )
    planned = _planned(page)
    if planned is not None:
        why, how = planned
        yield NextStep("Label more rows", why + also, how)
    elif falls is not None:
        yield NextStep(
            "Label more rows", f"{also.strip()} More would improve the model.", "more labeled rows"
        )


def _planned(page: _Page) -> tuple[str, str] | None:
    """The rows that `surelearn.planning` gives for a better bound on sensitivity, else on errors."""
    required = page.context.options.require is not None  # its verdict says how many rows
    if not page.counts_rows or page.context.task != "classification" or required:
        return None
    claims = page.certificate.together
    caught = worst(claim for claim in claims if claim.quantity == "sensitivity")
    errors = next((claim for claim in claims if claim.quantity == "risk"), None)
    if caught is not None and caught.measured is not None and not caught.vacuous:
        return _plan_of(page, "sensitivity", 1 - caught.measured, 1 - number(caught), caught.inputs)
    if errors is not None and errors.measured is not None and not page.context.options.miss:
        return _plan_of(page, "risk", errors.measured, number(errors), errors.inputs)
    return None


def _plan_of(
    page: _Page, quantity: str, measured: float, bound: float, inputs: Any
) -> tuple[str, str] | None:
    """Why more rows, and the command, for a rate of failures that was measured and bounded."""
    expected = math.ceil(1000 * measured) / 1000  # as the command states it
    goal = math.ceil(1000 * (expected + bound) / 2) / 1000
    if bound < LOOSE * measured or bound - measured < POINTS or not expected < goal < bound:
        return None
    if "n" not in inputs and "m" not in inputs:  # it was not counted, but bet on weighted rows
        return None
    held = page.certificate.facts["rows"]
    told = float(f"{page.certificate.delta:.4g}")
    delta = {} if told == 0.05 else {"delta": told}
    asked: dict[str, Any]
    if quantity == "risk":
        asked = {"max_risk": goal, "expected_risk": expected, **delta}
        what = f"at most {show(goal, 'rate')} errors instead of {show(bound, 'rate', '<=')}"
    else:
        n, positives = held, inputs.get("n", inputs.get("m"))
        asked = {
            "min_sensitivity": round(1 - goal, 3),
            "expected_sensitivity": round(1 - expected, 3),
            "prevalence": float(f"{positives / n:.2g}"),
            **delta,
        }
        name = page.context.options.positive
        what = (
            f"{show(1 - goal, 'rate')} of {quoted(name)} recognized instead of"
            f" {show(1 - bound, 'rate', '>=')}"
        )
    rows = plan(**asked).rows
    if rows <= held:
        return None
    why = (
        f"To guarantee {what}, if the rate stays as measured,"
        f" {'label' if page.context.answers else 'hold back'} {rows:,} rows instead of {held:,}"
    )
    why += f": about {total_for(rows):,} in all." if page.context.split is not None else "."
    stated = " ".join(f"--{key.replace('_', '-')} {value:g}" for key, value in asked.items())
    return why, f"`surelearn plan {stated}`"


# ── A better model
# ────────────────────────────────────────────────────────────────────────────────────────────────────


def _calibration(page: _Page) -> Iterator[NextStep]:
    """Probabilities that are off beyond chance; intervals that cover some predictions too seldom."""
    if found := page.finding("SL301", "notice", "warning"):
        how = "`sklearn.calibration.CalibratedClassifierCV` around the model, fitted on fit rows"
        if page.context.answers is not None:
            how = "`sklearn.isotonic.IsotonicRegression` of the labels on the scores, on other rows"
        yield NextStep("Recalibrate the probabilities", _first_sentence(found.text), how)
    if found := page.finding("SL302", "warning"):
        why = "The interval covers the truth too seldom for some sizes of the prediction."
        how = "`sklearn.compose.TransformedTargetRegressor` with the logarithm, if the target is positive"
        yield NextStep("Predict on another scale", why, how)


def _budget(page: _Page) -> Iterator[NextStep]:
    """Candidates that the budget left out."""
    if names := page.context.left_out:
        why = f"Not tried, for the time it takes: {', '.join(names)}."
        yield NextStep("Try more candidates", why, page.asks(minutes=MINUTES))


def _stated_range(page: _Page) -> Iterator[NextStep]:
    """The mean error of a regression is guaranteed only with a stated bound."""
    context = page.context
    if (
        context.task == "regression"
        and context.options.loss_bound is None
        and not context.time_name
    ):
        why = "The mean error is only measured: it needs a bound on the error of any new row."
        how = f"{page.asks(loss_bound='NUMBER')}, stated from what the target can be, not from these rows"
        yield NextStep("State the largest possible error", why, how)


def _attribution(page: _Page) -> Iterator[NextStep]:
    """A column that carries the prediction, or a ranking that is not stable."""
    if found := page.finding("SL662"):
        column = str(found.numbers["column"])
        how = f"{page.asks(drop=column)} if it is known only after the outcome"
        yield NextStep("Check a column", _first_sentence(found.text), how)
    elif found := page.finding("SL661", "warning"):
        why = (
            "The feature ranking differs between resamples: name no feature as the most important."
        )
        how = page.asks(effort=float(f"{4 * page.context.options.effort:.3g}"))
        yield NextStep("Settle the ranking of features", why, how)


def _labels(page: _Page) -> Iterator[NextStep]:
    """A training row that harms the model."""
    found = page.finding("SL622", "notice", "warning")
    if found and found.numbers["change"] < HARMFUL:
        row = found.numbers["row"]
        why = f"The model is better without training row {row:,}: removing it lowers the held-out loss by"
        why += f" {show(-found.numbers['change'], 'rate')}."
        yield NextStep(
            "Check a label", why, f"correct row {row:,} of the file if its label is wrong"
        )


def _stability(page: _Page) -> Iterator[NextStep]:
    """Refits that answer differently."""
    context = page.context
    found = page.finding("SL401", "warning")
    if found and context.selection is not None and context.options.prefer == "best":
        yield NextStep(
            "Prefer a simpler model", _first_sentence(found.text), page.asks(prefer="simplest")
        )


def _order(page: _Page) -> Iterator[NextStep]:
    """A file whose first and last rows differ."""
    context = page.context
    if page.finding("SL109") and not context.time_name and context.split is not None:
        why = "The first and the last rows of the file differ: new rows may be like the last ones."
        how = f"{page.asks(time='COLUMN')} with the column of the time, if there is one"
        yield NextStep("Say whether rows came in an order of time", why, how)


def _watch(page: _Page) -> Iterator[NextStep]:
    """Live data, where the model may go into production."""
    if page.certificate.together and not page.context.contradicted and not page.context.suspects:
        if page.headline is not None and page.headline.improves is False:
            return
        why = "That new rows come from the same source cannot be checked here."
        yield NextStep(
            "In production, watch the claims",
            why,
            "`surelearn watch FOLDER/certificate.json live.csv`",
        )


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].partition(": if ")[0].rstrip(".") + "."


def _sentence(text: str) -> str:
    plain = text.replace("**", "")
    return f"{plain[0].upper()}{plain[1:]}."


_RULES: tuple[Callable[[_Page], Iterator[NextStep]], ...] = (
    _leak,
    _independence,
    _labels_missing,
    _class_that_matters,
    _requirement,
    _more_rows,
    _calibration,
    _attribution,
    _labels,
    _stability,
    _budget,
    _stated_range,
    _order,
)

ENTRY = Entry(key="next", title="What to do next", write=section, place="next", of_all=True)
