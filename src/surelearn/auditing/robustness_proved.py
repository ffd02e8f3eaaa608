"""What is proved about changed rows, kept apart from what attacks found."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.robustness_work import NOISE
from surelearn.bounds.robustness import PER_ROW, robust_accuracy
from surelearn.claim import Claim, Covers, find_theorem
from surelearn.report import Table
from surelearn.robust import Radii, SmoothedRadii
from surelearn.robust.certified import ARITHMETIC, CHOICES


def right_and_certified(radii: dict[str, Any], y: np.ndarray, radius: float) -> np.ndarray:
    """Rows that are right and proved to stay so within the radius."""
    return (radii["predicted"] == y) & (radii["values"] >= radius)


def proved_table(
    context: Context, proofs: dict[str, Any], y: np.ndarray, shown: list[dict[str, Any]], numbers: np.ndarray, radius: float
) -> Table | None:
    """Claims through theorems: about new rows, where the units were fixed before these were seen, and about rows shown."""
    claims: list[Claim] = []
    if proofs["radii"] is not None:
        radii = Radii(**proofs["radii"])
        if not _why_not_new_rows(context):
            claims.append(_new_rows(context, proofs["radii"], y, radius))
        for change in shown:
            label = f"row {numbers[change['row']]}, still {change['before']} within (standard deviations)"
            claims.append(radii.claim(change["row"], label=label))
    if proofs["smoothed"] is not None:
        smoothed = SmoothedRadii(**proofs["smoothed"])
        row = len(y) // 2  # fixed before any noise was drawn
        if smoothed.labels[row] == y[row] and not smoothed.abstained[row]:
            label = f"row {numbers[row]}, smoothed, still {smoothed.labels[row]} within (L2, standard deviations)"
            claims.append(smoothed.claim(int(row), label=label))
    rows = tuple((claim.label, claim.bound(), claim.surely()) for claim in claims)
    return Table(header=("what is proved", "bound", "surely"), rows=rows) if rows else None


def _new_rows(context: Context, radii: dict[str, Any], y: np.ndarray, radius: float) -> Claim:
    hashes = context.certificate.facts.hashes
    return robust_accuracy.certify(
        int(right_and_certified(radii, y, radius).sum()),
        len(y),
        context.certificate.delta,
        covers=Covers(predictor=hashes.get("model", "plain"), rows=f"{len(y)} of the certify rows"),
        label=f"new rows that are right, and stay so within {radius:g} standard deviations",
        met=(PER_ROW,),
        assumptions=(ARITHMETIC, CHOICES),
    )


def _why_not_new_rows(context: Context) -> str:
    if context.split is None:
        return "standard deviations are those of the rows themselves"
    if context.time_name:
        return "rows are ordered by time"
    return "rows belong together in groups" if context.groups is not None else ""


def proved_note(context: Context, proofs: dict[str, Any]) -> str:
    """By which theorem and under which assumptions, or why nothing is."""
    if proofs["radii"] is None:
        text = f"Nothing is proved about the model itself: {proofs['why_not']}."
    else:
        by = find_theorem(proofs["radii"]["theorem"]).name
        text = f"Proved by “{by}”, each claim alone, for scores in exact arithmetic and columns that keep their values."
        if why := _why_not_new_rows(context):
            text += f" No claim about new rows: {why}."
    if proofs["smoothed"] is not None:
        share = 1 - float(np.mean(proofs["smoothed"]["abstained"]))
        return (
            f"{text} Smoothed with noise of {NOISE:g} standard deviations, {share:.0%} of the rows get a certified answer."
        )
    if proofs["radii"] is None:
        text += " A classifier smoothed with noise has a certified radius: surelearn.robust.SmoothedClassifier."
    return text
