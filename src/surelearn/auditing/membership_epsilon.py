"""Differential privacy on the page: the ε that a model carries, why it may be void, and a lower bound measured beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.attacks.epsilon_audit import epsilon_from_retrainings
from surelearn.auditing.context import Context
from surelearn.auditing.membership_refits import observe_canary
from surelearn.auditing.one_row import learner_of
from surelearn.auditing.purposes import whose_rows
from surelearn.certificate import Certificate
from surelearn.claim import Claim, Finding
from surelearn.optim.dp_claims import WEAK
from surelearn.plain import show

ALPHA = 0.05
NOT_PRIVATE = "it was not fitted with differential privacy"
_ROW_FITS = 600_000  # rows times refits with (and as many without) one row, at effort 1; each steps over few rows at a time
_LARGE = 10.0  # e^10 is over 20,000
_LEAST, _MOST, _TASKS = 16, 128, 8


def carried(model: Any) -> Claim | str:
    """The ε that the learner's certificate claims, or why it claims none."""
    certificate = getattr(learner_of(model)[1], "certificate_", None)
    if not isinstance(certificate, Certificate):
        return NOT_PRIVATE
    found = [claim for claim in certificate.claims if claim.quantity == "epsilon"]
    reasons = [absent.reason for absent in certificate.absent if absent.quantity == "epsilon"]
    return [*found, *reasons, NOT_PRIVATE][0]


def void(context: Context) -> str:
    """Why an ε that the learner claims does not hold for the rows of the table, or "".

    A step that was fitted on the rows moves every prepared row with each of them; a choice among models, or of a threshold,
    tells about the rows as well.
    """
    from sklearn.utils import get_tags

    steps, _ = learner_of(context.model)
    learned = [name for name, step in getattr(steps, "steps", []) if step != "passthrough" and get_tags(step).requires_fit]
    if learned:
        return f"the step {learned[0]!r} was fitted on the same rows, without noise"
    if context.selection is not None and len(context.selection.names) > 1:
        return f"it was chosen among {len(context.selection.names)} candidates on the same rows, without noise"
    if hasattr(context.model, "estimator_") and context.options.threshold is None:
        return "its decision threshold was chosen on the same rows, without noise"
    return ""


def proved(context: Context) -> Claim | str:
    """The claim about ε, or a sentence on why nothing is proved."""
    claim = carried(context.model)
    reason = claim if isinstance(claim, str) else void(context)
    if isinstance(claim, str) or reason:
        return f"No privacy is proved: {reason}."
    label = f"ε of its weights, at dp_delta = {claim.inputs['dp_delta']:g}"
    assumptions = (*claim.assumptions, f"it is {whose_rows(context)}")
    return replace(claim, sources={}, label=label, standing="alone", assumptions=assumptions)


def in_words(claim: Claim) -> str:
    """What an ε means."""
    epsilon = float(claim.value)  # pyright: ignore[reportArgumentType]
    if epsilon > _LARGE:
        return "So large an ε promises next to nothing."
    times = show(float(np.exp(epsilon)), "number", "<=")
    said = f"Nothing about its weights is over {times} times as likely with a row as without it, but for dp_delta."
    return " ".join([said, *(f"{line}." for line in claim.assumptions if line.startswith(WEAK)), *_whose(claim)])


def _whose(claim: Claim) -> list[str]:
    return [f"I{line[1:]}." for line in claim.assumptions if line.startswith("it is about")]


def tasks(context: Context) -> list[jobs.Task]:
    """Refits of a private classifier with and without one row, as many as the budget allows, in a few tasks."""
    if context.task != "classification" or isinstance(carried(context.model), str) or not context.options.refits:
        return []
    X, y = context.rows("train")
    refits = int(min(_MOST, context.options.effort * _ROW_FITS / len(y)))
    if refits < _LEAST:
        return []
    randomness = np.random.default_rng(context.seed("membership/canary"))
    shared = {"model": context.model, "unfitted": context.unfitted, "X": X, "y": y}
    shared["tried"] = np.sort(randomness.permutation(len(y))[:2000])
    seeds = randomness.integers(2**31, size=(refits, 2))
    return [
        jobs.Task(f"membership/canary {i}", observe_canary, {**shared, "seeds": part})
        for i, part in enumerate(np.array_split(seeds, _TASKS))
    ]


def remarks(context: Context, refits: Sequence[Any]) -> tuple[str, ...]:
    """Why no lower bound on ε was measured, where the model carries one."""
    if refits or isinstance(carried(context.model), str):
        return ()
    why = "the attack is for classes only"
    if context.task == "classification":
        beyond = "and how it was fitted is not known" if context.unfitted is None else "more than refits and effort allow"
        why = f"it needs {_LEAST} refits with a row and {_LEAST} without it, {beyond}"
    return (f"No lower bound on ε was measured beside it: {why}.",)


def findings(context: Context, refits: Sequence[Any]) -> list[Finding]:
    """The lower bound on ε that refits with and without one row give; and a seed that gives the noise away."""
    made = []
    if refits:
        made.append(_lower_bound(context, refits))
    learner = learner_of(context.model)[1]
    recorded = getattr(learner, "facts_", {}).get("seeded", False)  # a loaded model has forgotten the seed itself
    seeded = recorded or isinstance(getattr(learner, "random_state", None), int | np.integer)
    if isinstance(proved(context), Claim) and seeded:
        text = (
            "The noise was drawn from a seed that was given (random_state): against those who know it, ε does not hold. The "
            "seed is not saved with the model; fit the model that you publish with random_state=None."
        )
        made.append(Finding(code="SL644", text=text, severity="warning"))
    return made


def _lower_bound(context: Context, refits: Sequence[Any]) -> Finding:
    inside, outside = (np.concatenate([part[name] for part in refits]) for name in ("with", "without"))
    claim, dp_delta = carried(context.model), refits[0]["dp_delta"]
    certified = float(claim.value) if isinstance(claim, Claim) else refits[0]["epsilon"]  # pyright: ignore[reportArgumentType]
    found = epsilon_from_retrainings(inside, outside, dp_delta=dp_delta, alpha=ALPHA)
    told = np.floor(100 * found.epsilon) / 100
    text = f"{2 * len(inside):,} refits with and without one row that has a wrong label "
    text += f"show that ε is at least {told:.2f} ({1 - ALPHA:.0%} sure)" if told else "show no lower bound on ε"
    broken = found.epsilon > certified
    by = "claimed by the learner" if void(context) else "proved"
    most = f"{show(certified, 'number', '<=')} is {by}"
    text += f"; only {most}: do not rely on it." if broken else f"; at most {most}."
    numbers = {"epsilon at least": found.epsilon, "claimed": certified, "dp_delta": dp_delta, "refits": 2 * len(inside)}
    return Finding(code="SL643", text=text, severity="serious" if broken else "info", numbers=numbers)
