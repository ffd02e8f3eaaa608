"""Section: prediction sets: how large they are, and how often they hold the truth, for each class."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.writing import Entry
from surelearn.bounds import clopper_pearson
from surelearn.certificate import Certificate
from surelearn.claim import Claim, Finding
from surelearn.operating import PredictionSets
from surelearn.plain import all_but, percent_sure, show
from surelearn.report import Chart, PageTable, Section
from surelearn.types import AnyArray, Bools

MOST = 12  # classes of the table
MOST_SIZES = 8  # bars of the chart
CHANCE = 0.01  # that a class is called far below although none is
SCORED = {
    "probability": "probability",
    "ratio": "probability, as a part of that of the most probable class,",
    "cumulative": "sum of all larger probabilities",
    "regularized": "sum of all larger probabilities and 0.1 for each of them",
}


@dataclass(frozen=True)
class SetSizes:
    """How large the sets of certified rows are.

    Attributes
    ----------
    mean : labels in a set
    single, empty : the part of sets with one label, with none
    """

    mean: float
    single: float
    empty: float

    @classmethod
    def of(cls, certificate: Certificate) -> SetSizes:
        """From the counts of sizes."""
        counts = np.asarray(certificate.facts["set.sizes"], dtype=float)
        shares = counts / max(counts.sum(), 1)
        single = float(shares[1]) if shares.size > 1 else 0.0
        return cls(float(shares @ np.arange(shares.size)), single, float(shares[0]))


def coverage_claims(certificate: Certificate) -> tuple[Claim, ...]:
    """What is guaranteed of prediction sets: one claim, or one for each class."""
    names = ("set_coverage", "class_coverage")
    return tuple(claim for claim in certificate.together if claim.quantity in names)


def clause(context: Context) -> str:
    """What the verdict says of prediction sets, where they are guaranteed."""
    claims = coverage_claims(context.certificate)
    sets = context.certificate.sets if claims else None
    if sets is None or all(claim.vacuous for claim in claims):
        return ""
    rows = (
        "new rows" if context.groups is None else f"random rows of new {context.group_name} values"
    )
    # a label that the model does not know is in no set
    odd = " that can be in one" if context.certificate.facts.options.get("unseen") else ""
    each = f" of each class{odd}" if sets.per_class else ""
    whose = f"{all_but(sets.alpha)} of {rows}{each}"
    size = SetSizes.of(context.certificate).mean
    return (
        f" Prediction sets hold the true label of at least **{whose}**, and {size:.2f} labels on average"
        " (measured)."
    )


def section(context: Context) -> Section | None:
    """The guarantee, sizes, and coverage per class; nothing where no sets were asked for."""
    if context.options.sets is None or context.task != "classification":
        return None
    certificate, promised = context.certificate, all_but(context.options.sets)
    sets = certificate.sets
    if sets is None:
        asked = f"Prediction sets that hold {promised} of true labels are not guaranteed"
        return ENTRY.says(notes=(f"{asked}: {_why(certificate)}.",))
    found = SetSizes.of(certificate)
    X, y = context.rows("certify")
    inside = sets.members(context.model, X)
    codes = _codes(sets, y)
    covered = inside[np.arange(len(codes)), np.maximum(codes, 0)] & (codes >= 0)
    notes = [_promise(certificate, sets), _scored(context, sets)]
    if unknown := int(certificate.facts["set.unknown"]):
        counts = "each counts as missed" if not sets.per_class else "nothing is guaranteed of them"
        notes.append(
            f"{unknown:,} {context.held_back}rows have a label that the model does not know and that no"
            f" set holds: {counts}."
        )
    findings = (_sizes(found, _few(sets)), *_far_below(sets, codes, covered, promised))
    return ENTRY.says(
        notes=notes,
        findings=findings,
        tables=(_table(context, sets, codes, covered, inside),),
        charts=(_chart(certificate),),
    )


def _why(certificate: Certificate) -> str:
    reasons = [one.reason for one in certificate.lacking if one.what == "set_coverage"]
    return reasons[0] if reasons else "see what is not claimed"


def _promise(certificate: Certificate, sets: PredictionSets) -> str:
    """What is guaranteed, in words."""
    promised = all_but(sets.alpha)
    sure = f"({percent_sure(certificate.delta)} confidence, with the page's other guarantees)."
    if not sets.per_class:
        return f"At least {promised} of new rows have their true label in their set {sure}"
    return f"Of each class, at least {promised} of new rows have it in their set {sure}"


def _few(sets: PredictionSets) -> str:
    """Which classes are in every set, in words; "" where none is."""
    if not sets.per_class:
        return ""
    kept = [label for label, cut in zip(sets.classes, sets.thresholds, strict=True) if cut is None]
    if not kept:
        return ""
    named = ", ".join(map(str, kept[:5])) + (", …" if len(kept) > 5 else "")
    return f" Too few rows have {named}: every set holds {'it' if len(kept) == 1 else 'them'}."


def _scored(context: Context, sets: PredictionSets) -> str:
    """What a label is scored by, and who chose that."""
    chosen = (
        "chosen by the size of the sets on out-of-fold rows"
        if context.selection is not None and context.selection.scores is not None
        else "fixed beforehand"
    )
    falls = sets.score in ("probability", "ratio")  # the score is minus its logarithm
    cut = sets.thresholds[0] or 0.0
    at = f"{math.exp(-cut) if falls else cut:.4g}"
    side, at = "least" if falls else "most", "the threshold of its class" if sets.per_class else at
    return (
        f"A set holds each class whose {SCORED[sets.score]} is at {side} {at}. What is compared with the"
        f" threshold was {chosen}; the threshold is that of a certified row, the rank of which followed"
        " from the number of these rows alone."
    )


def _sizes(found: SetSizes, few: str) -> Finding:
    return Finding(
        code="SL303",
        text=(
            f"Prediction sets hold {found.mean:.2f} labels on average; {show(found.single, 'rate')} of"
            f" them hold one label, {show(found.empty, 'rate')} none.{few}"
        ),
        severity="notice",
        numbers={"mean": found.mean, "single": found.single, "empty": found.empty},
    )


def _far_below(
    sets: PredictionSets, codes: AnyArray, covered: Bools, promised: str
) -> tuple[Finding, ...]:
    """Classes whose rows are covered less often than is promised on average, beyond chance."""
    if sets.per_class:
        return ()
    low = []
    for i, label in enumerate(sets.classes):
        hits = covered[codes == i]
        each = CHANCE / len(sets.classes)
        most = clopper_pearson(int(hits.sum()), hits.size, each) if hits.size else 1.0
        if most < 1 - sets.alpha:
            low.append((float(hits.mean()), str(label)))
    if not low:
        return ()
    rate, worst = min(low)
    others = f" and {len(low) - 1} more" if len(low) > 1 else ""
    text = (
        f"Coverage of {promised} holds on average over all rows, not for class {worst}{others}: of its"
        f" rows {show(rate, 'rate')} have it in their set. Coverage of each class (--per-class) is a"
        " guarantee of its own."
    )
    numbers = {"coverage": rate, "classes": [label for _, label in low]}
    return (Finding(code="SL304", text=text, severity="warning", numbers=numbers),)


def _table(
    context: Context, sets: PredictionSets, codes: AnyArray, covered: Bools, inside: Bools
) -> PageTable:
    """Coverage and size, for all rows and per class, the worst covered first."""
    sizes = inside.sum(axis=1)
    level = f"at least {all_but(sets.alpha)}"

    def line(name: str, rows: Bools, guaranteed: str) -> tuple[str, ...]:
        n = int(rows.sum())
        if not n:
            return (name, "0", "no such row", guaranteed, "")
        return (name, f"{n:,}", show(float(covered[rows].mean()), "rate"), guaranteed,
                f"{float(sizes[rows].mean()):.2f}")  # fmt: skip

    cuts = sets.thresholds if sets.per_class else (sets.thresholds[0],) * len(sets.classes)
    made = []
    for i, (label, cut) in enumerate(zip(sets.classes, cuts, strict=True)):
        rows = np.asarray(codes == i)
        said = "in every set" if cut is None else level if sets.per_class else ""
        hit = float(covered[rows].mean()) if rows.any() else 1.0
        made.append((hit, line(str(label), rows, said)))
    made.sort(key=lambda pair: pair[0])
    every = line("all rows", np.ones(len(codes), dtype=bool), "" if sets.per_class else level)
    more = [("…", f"{len(made) - MOST:,} more classes", "", "", "")] if len(made) > MOST else []
    return PageTable(
        header=(
            "true class",
            f"{context.held_back}rows",
            "in its set, measured",
            "guaranteed",
            "mean size",
        ),
        rows=(every, *(row for _, row in made[:MOST]), *more),
    )


def _chart(certificate: Certificate) -> Chart:
    """How many sets have which size."""
    counts = np.asarray(certificate.facts["set.sizes"], dtype=float)
    shares = counts / max(counts.sum(), 1)
    names = ["no label", "1 label", *(f"{k} labels" for k in range(2, shares.size))][: shares.size]
    if shares.size > MOST_SIZES:
        last = MOST_SIZES - 1
        shares = np.append(shares[:last], shares[last:].sum())
        names = [*names[:last], f"{last} or more"]
    values = np.round(shares, 4).tolist()
    data = {"names": names, "measured": values, "bounds": [None] * len(names), "unit": "rate"}
    return Chart(kind="bars", title="Labels in the prediction set, measured", data=data)


def _codes(sets: PredictionSets, y: AnyArray) -> AnyArray:
    place = {label: i for i, label in enumerate(sets.classes)}
    return np.array([place.get(label, -1) for label in np.asarray(y).tolist()], dtype=int)


ENTRY = Entry(key="sets", title="Prediction sets", write=section, place="costs")
