"""Differential privacy on the page: the ε that a model carries, why it may be void, and a lower
bound measured beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from surelearn.attacks.canary import CanaryScores
from surelearn.attacks.epsilon_audit import epsilon_from_retrainings
from surelearn.auditing.context import Context
from surelearn.auditing.sections.membership.work import LEAST, carried
from surelearn.auditing.sections.purposes import whose_rows
from surelearn.claim import Claim, Finding
from surelearn.lacking import Lacking
from surelearn.optim.dp_claims import SEED_UNKNOWN, WEAK
from surelearn.plain import show
from surelearn.subject import subject_of

ALPHA = 0.05
_LARGE = 10.0  # e^10 is over 20,000


def void(context: Context) -> Lacking | None:
    """Why an ε that the learner claims does not hold for the rows of the table; None where it does.

    A step that was fitted on the rows moves every prepared row with each of them; a choice among
    models, or of a threshold, tells about the rows as well.
    """
    subject = subject_of(context.model)
    if learned := subject.learned_steps:
        why = f"the step {learned[0]!r} was fitted on the same rows, without noise"
        return Lacking("epsilon", why)
    if context.selection is not None and context.selection.compared > 1:
        searched = len(context.selection.names) == 1
        what = "settings" if searched else "candidates"
        count = context.selection.compared if searched else len(context.selection.names)
        why = f"it was chosen among {count} {what} on the same rows, without noise"
        return Lacking("epsilon", why)
    if subject.cut is not None and context.options.threshold is None:
        why = "its decision threshold was chosen on the same rows, without noise"
        return Lacking("epsilon", why)
    return None


def proved(context: Context) -> Claim | Lacking:
    """The claim about ε, or why nothing is proved."""
    claim = carried(context.model)
    if isinstance(claim, Lacking):
        return claim
    if (lost := void(context)) is not None:
        return lost
    label = f"differential privacy ε of the weights, at dp_delta = {claim.inputs['dp_delta']:g}"
    assumptions = (*claim.assumptions, f"it is {whose_rows(context)}")
    return replace(claim, sources={}, label=label, standing="alone", assumptions=assumptions)


def in_words(claim: Claim) -> str:
    """What an ε means, as a sentence."""
    epsilon = float(claim.value)  # pyright: ignore[reportArgumentType]
    if epsilon > _LARGE:
        return "An ε this large guarantees next to nothing."
    times = show(float(np.exp(epsilon)), "number", "<=")
    said = (
        f"No event about the weights is more than {times} times as likely with a row as without it,"
        " up to dp_delta."
    )
    return " ".join(
        [said, *(f"{line}." for line in claim.assumptions if line.startswith(WEAK)), *_whose(claim)]
    )


def _whose(claim: Claim) -> list[str]:
    return [f"I{line[1:]}." for line in claim.assumptions if line.startswith("it is about")]


def remarks(context: Context, refits: Sequence[CanaryScores]) -> tuple[str, ...]:
    """Why no lower bound on ε was measured, where the model carries one."""
    if refits or isinstance(carried(context.model), Lacking):
        return ()
    why = "the attack is for classification only"
    if context.task == "classification":
        beyond = (
            "and how the model was fitted is not known"
            if context.unfitted is None
            else "more than refits and effort allow"
        )
        why = f"it needs {LEAST} refits with a row and {LEAST} without it, {beyond}"
    return (f"No empirical lower bound on ε was measured: {why}.",)


def findings(context: Context, refits: Sequence[CanaryScores]) -> list[Finding]:
    """The lower bound on ε that refits with and without one row give; and a seed that gives the
    noise away.
    """
    made = []
    if refits:
        made.append(_lower_bound(context, refits))
    claim = proved(context)
    if isinstance(claim, Claim) and SEED_UNKNOWN in claim.assumptions:
        text = (
            "The noise was drawn from a seed that was given (random_state): against those who know"
            " it, ε does not hold. The seed is not saved with the model; fit the model that you"
            " publish with random_state=None."
        )
        made.append(Finding(code="SL644", text=text, severity="warning"))
    return made


def _lower_bound(context: Context, refits: Sequence[CanaryScores]) -> Finding:
    inside = np.concatenate([part.inside for part in refits])
    outside = np.concatenate([part.outside for part in refits])
    claim, dp_delta = carried(context.model), refits[0].dp_delta
    certified = float(claim.value) if isinstance(claim, Claim) else refits[0].epsilon  # pyright: ignore[reportArgumentType]
    found = epsilon_from_retrainings(inside, outside, dp_delta=dp_delta, alpha=ALPHA)
    told = np.floor(100 * found.epsilon) / 100
    text = (
        f"Empirical privacy audit, {2 * len(inside):,} refits with and without a mislabeled canary"
        " row: "
    )
    text += (
        f"ε is at least {told:.2f} ({1 - ALPHA:.0%} confidence)"
        if told
        else "no lower bound on ε was found"
    )
    broken = found.epsilon > certified
    by = "claimed by the learner" if void(context) is not None else "proved"
    most = f"{show(certified, 'number', '<=')} is {by}"
    text += f"; only {most}: do not rely on it." if broken else f"; an ε of at most {most}."
    numbers = {
        "epsilon_at_least": found.epsilon,
        "claimed": certified,
        "dp_delta": dp_delta,
        "refits": 2 * len(inside),
    }
    return Finding(
        code="SL643", text=text, severity="serious" if broken else "info", numbers=numbers
    )
