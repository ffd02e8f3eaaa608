"""What is proved about changed rows, kept apart from what attacks found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.robustness_work import NOISE
from surelearn.auditing.single_rows import row_name
from surelearn.bounds.robustness import PER_ROW, robust_accuracy
from surelearn.claim import Claim, Covers
from surelearn.robust import Radii, SmoothedRadii
from surelearn.robust.certified import ARITHMETIC, CHOICES, UNITS


def right_and_certified(radii: dict[str, Any], y: np.ndarray, radius: float) -> np.ndarray:
    """Rows that are right and proved to stay so within the radius."""
    return (radii["predicted"] == y) & (radii["values"] >= radius)


def proved_claims(
    context: Context,
    proofs: dict[str, Any],
    y: np.ndarray,
    shown: list[dict[str, Any]],
    numbers: np.ndarray,
    radius: float,
    stay: str = "",
) -> tuple[Claim, ...]:
    """Claims about new rows, where the units were fixed before these were seen, and about rows shown; each alone.

    ``stay`` names the columns that do not change.
    """
    claims: list[Claim] = []
    if proofs["radii"] is not None:
        radii = Radii(**proofs["radii"])
        if not _why_not_new_rows(context):
            claims.append(_new_rows(context, proofs["radii"], y, radius, stay))
        for change in shown:
            place = f"row {numbers[change['row']]}"
            named = row_name(context, int(numbers[change["row"]]), change["before"])
            label = f"change of every number that {named} withstands (standard deviations){stay}"
            claims.append(radii.claim(change["row"], label=label, covers=_row_alone(context, place)))
    if proofs["smoothed"] is not None:
        smoothed = SmoothedRadii(**proofs["smoothed"])
        row = len(y) // 2  # fixed before any noise was drawn
        if smoothed.labels[row] == y[row] and not smoothed.abstained[row]:
            place = f"row {numbers[row]}"
            named = row_name(context, int(numbers[row]), smoothed.labels[row])
            label = f"change that {named} withstands if smoothed (L2, standard deviations){stay}"
            covers = replace(_row_alone(context, place), predictor=f"smoothed with noise of {NOISE:g} standard deviations")
            claims.append(smoothed.claim(int(row), label=label, covers=covers))
    return tuple(claims)


def _row_alone(context: Context, place: str) -> Covers:
    hashes = context.certificate.facts.hashes
    return Covers(predictor=hashes.get("model", "plain"), population="this row, its numbers changed", rows=place)


def _new_rows(context: Context, radii: dict[str, Any], y: np.ndarray, radius: float, stay: str) -> Claim:
    facts = context.certificate.facts
    by = f"by at most {radius:g} standard deviations"
    rows = facts.hashes.get("rows", "the certify rows")
    claim = robust_accuracy.certify(
        int(right_and_certified(radii, y, radius).sum()),
        len(y),
        context.certificate.delta,
        covers=Covers(
            predictor=facts.hashes.get("model", "plain"),
            loss=f"zero_one, at the worst change of every number {by} of the fit rows{stay}",
            rows=rows if len(y) == facts["rows"] else f"{len(y)} drawn at random from {rows}",
        ),
        label=f"new rows that are right, and stay so when every number changes {by}{stay}",
        met=(PER_ROW,),
        assumptions=(ARITHMETIC, CHOICES),
    )
    return replace(claim, met=(*claim.met, UNITS))


def _why_not_new_rows(context: Context) -> str:
    if not context.trained:
        return "standard deviations are those of the rows themselves"
    return context.dependent


def proved_note(context: Context, proofs: dict[str, Any]) -> str:
    """What is not proved, and why; "" where nothing is missing."""
    said = []
    if proofs["radii"] is None:
        said.append(f"Nothing is proved about the model itself: {proofs['why_not']}.")
    elif why := _why_not_new_rows(context):
        said.append(f"No claim about new rows: {why}.")
    if proofs["smoothed"] is not None:
        share = 1 - float(np.mean(proofs["smoothed"]["abstained"]))
        said.append(f"Smoothed with noise of {NOISE:g} standard deviations, {share:.0%} of the rows get a certified answer.")
    elif proofs["radii"] is None:
        said.append("A classifier smoothed with noise has a certified radius: surelearn.robust.SmoothedClassifier.")
    return " ".join(said)
