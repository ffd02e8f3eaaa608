"""What is claimed of a task's losses: a table, fixed before the rows are looked at, from which δ is
divided.

Classification and regression are two instances; a regression with a stated range is its prediction
interval and then the table of `of_losses`, which is all that there is for losses that the caller
brings.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from surelearn.measurement import CLIP, MOST_LOG_LOSS, Measurement, bin_names
from surelearn.operating import Requirement

Kind = Literal[
    "mean", "gain", "row-weighted", "radius", "interval", "auc", "f1", "balanced", "difference", "walk",
    "band", "distance", "set",
]  # fmt: skip
CHOSEN = ", at the chosen threshold"
NOVEL = "contents without a near copy among the fit rows"


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One line of the table.

    Attributes
    ----------
    name : of the facts that it is read from
    quantity, label, family : of its claim
    kind : "mean" of a loss; "gain", how much smaller it is than that of ``than``; "row-weighted",
        its mean over the rows of groups; "radius", the distance from the truth of most targets;
        "interval", a rate from both sides; "auc", "f1", "balanced", "difference" as they are called;
        "walk", what is required of the chosen threshold; "band", a rate there by a bound that holds
        at every threshold; "distance", how far a whole curve is from the truth; "set", how often
        prediction sets hold the truth, which has its own part of δ, see `shares`
    lower : whether it is bounded from below
    within : whether it is about a part of the units only
    bounds : the range of the loss; None for a rate, which is 0 or 1 by its kind
    than : the facts of the other predictor
    loss : which loss, where it is not the task's own
    """

    name: str
    quantity: str
    label: str
    family: str = ""
    kind: Kind = "mean"
    lower: bool = False
    within: bool = False
    bounds: tuple[float, float] | None = None
    than: str = ""
    loss: str = ""


Table = list[list[Quantity]]
OF_SETS = 0.5  # of what the headline leaves of δ, for prediction sets


def shares(table: Table, headline: float) -> list[float]:
    """Each line's part of δ, in the order of the table: the first has that of the headline, prediction
    sets half of what is left, since their thresholds are found at a δ that must be known before the
    rest is, and the others equal parts of the remainder.

    Examples
    --------
    >>> risk, sets = (Quantity(name=n, quantity=n, label=n, kind=k) for n, k in (("risk", "mean"), ("set", "set")))
    >>> shares([[risk]], 0.5), shares([[risk], [risk], [sets]], 0.5)
    ([1.0], [0.5, 0.25, 0.25])
    """
    if len(table) == 1:
        return [1.0]
    of_sets = [any(one.kind == "set" for one in line) for line in table]
    left = (1 - headline) * (1 - OF_SETS * any(of_sets))
    others = len(table) - 1 - sum(of_sets)
    made = [(1 - headline) * OF_SETS if sets else left / max(others, 1) for sets in of_sets]
    return [headline, *made[1:]]


def quantities(
    what: Measurement,
    slices: Iterable[str],
    *,
    against: bool,
    novel: bool,
    compared: Iterable[str] = (),
) -> Table:
    """The claims to make, the headline first; each inner list shares one part of δ.

    Parameters
    ----------
    what : the task and its options
    slices : names of the slices
    against : whether there is a baseline to compare with
    novel : whether contents without a near copy have a claim of their own
    compared : columns whose slices' rates are compared
    """
    if what.task == "classification" and what.thresholds:
        return [*_of_requirement(what), *_of_metrics(what, []), *_of_sets(what)]
    if what.task == "classification":
        table = _of_classes(what, list(slices), against=against, novel=novel)
        return [*table, *_of_metrics(what, list(compared)), *_of_further(what), *_of_sets(what)]
    if what.task == "losses":
        # a rate is called so by itself: "pass rate"
        rate = what.better == "higher" and (what.binary or what.loss.endswith(" rate"))
        called = what.loss if rate else f"mean {what.loss}"
        span = what.loss_range or (0.0, 1.0)
        table = of_losses(what, called, span, list(slices), against=against, novel=novel)
        return [*table, *_of_further(what)]
    own = ("scores", "score_quantile") if what.banded else ("residuals", "error_quantile")
    interval = [[Quantity(name=own[0], quantity=own[1], label="", kind="radius")]]
    # its rank is about rows as they were drawn
    interval = interval if what.weight_bound is None else []
    if what.loss_bound is None:
        return [*interval, *_of_further(what)]
    called = f"mean {what.loss} loss"
    return [
        *interval,
        *of_losses(
            what, called, (0.0, what.loss_bound), list(slices), against=against, novel=novel
        ),
        *_of_further(what),
    ]


def of_losses(
    what: Measurement,
    called: str,
    bounds: tuple[float, float],
    slices: list[str],
    *,
    against: bool,
    novel: bool,
) -> Table:
    """The mean of one loss in a stated range, or of a grade: everywhere, over rows of groups, beside
    a baseline's, in slices.
    """
    span, grade = None if what.binary else bounds, what.better == "higher"
    mean = Quantity(
        name="loss",
        quantity="mean_grade" if grade else "mean_loss",
        label=called,
        bounds=span,
        lower=grade,
    )
    table = [[mean]]
    if what.largest_group is not None:
        table.append(
            [
                Quantity(
                    name="loss",
                    quantity="row_weighted_loss",
                    label=called,
                    kind="row-weighted",
                    bounds=span,
                )
            ]
        )
    if against:
        label = f"{called} {'above' if grade else 'below'} the baseline's"
        table.append(
            [
                Quantity(
                    name="loss",
                    quantity="gain",
                    label=label,
                    kind="gain",
                    than="baseline",
                    bounds=span,
                )
            ]
        )
    if slices:
        shared: dict[str, Any] = {
            "quantity": "slice_grade" if grade else "slice_loss",
            "family": "slice",
        }
        shared |= {"bounds": span, "within": True, "lower": grade}
        table.append(
            [Quantity(name=f"slice[{s}]", label=f"{called} where {s}", **shared) for s in slices]
        )
    if novel:
        label = f"{called} on {NOVEL}"
        table.append(
            [Quantity(name="novel", quantity="novel_loss", label=label, bounds=span, within=True)]
        )
    return table


def _of_classes(what: Measurement, slices: list[str], *, against: bool, novel: bool) -> Table:
    """Errors and costs: everywhere, per class, of the class that matters, beside other
    answers', in slices.
    """
    table = [[Quantity(name="risk", quantity="risk", label="errors")]]
    cost, most = "mean cost, in false alarms", (0.0, max(what.cost or 0.0, 1.0))
    if what.cost is not None:
        table.insert(
            0, [Quantity(name="cost", quantity="mean_cost", label=cost, bounds=most, loss="cost")]
        )
    if what.largest_group is not None and what.cost is not None:
        kept = {"kind": "row-weighted", "bounds": most, "loss": "cost"}
        table.append([Quantity(name="cost", quantity="row_weighted_cost", label=cost, **kept)])
    elif what.largest_group is not None:
        table.append(
            [
                Quantity(
                    name="risk", quantity="row_weighted_risk", label="errors", kind="row-weighted"
                )
            ]
        )
    if what.positive is not None:
        words = {
            "sensitivity": f"sensitivity (recall) for {what.positive}",
            "specificity": f"specificity for {what.positive}",
            "precision": f"precision for {what.positive}",
        }
        table += [
            [Quantity(name=n, quantity=n, label=label, lower=True, within=True)]
            for n, label in words.items()
        ]
    if what.positive is None or len(what.classes) > 2:
        shared = {
            "quantity": "class_error",
            "family": "class" if len(what.classes) > 2 else "",
            "within": True,
        }
        table.append(
            [
                Quantity(name=f"class[{c}]", label=f"errors where the truth is {c}", **shared)
                for c in what.classes
            ]
        )
    table += _comparisons(what, most, against=against)
    if slices:
        shared = {"quantity": "slice_risk", "family": "slice", "within": True}
        table.append(
            [Quantity(name=f"slice[{s}]", label=f"errors where {s}", **shared) for s in slices]
        )
    if novel:
        table.append(
            [Quantity(name="novel", quantity="novel_risk", label=f"errors on {NOVEL}", within=True)]
        )
    return table


def _of_requirement(what: Measurement) -> Table:
    """What holds at a threshold that is chosen on the same rows: the number that the walk tests, and
    others that have a share of δ, and a bound, of their own.
    """
    kind = Requirement.parse(what.require).quantity
    names = {
        "sensitivity": f"sensitivity (recall) for {what.positive}{CHOSEN}",
        "specificity": f"specificity for {what.positive}{CHOSEN}",
        "precision": f"precision for {what.positive}{CHOSEN}",
        "error": f"errors among the answered{CHOSEN}",
        "mean_cost": f"mean cost, in false alarms{CHOSEN}",
    }
    walked = Quantity(
        name="walk",
        quantity="selective_error" if kind == "error" else kind,
        label=names[kind],
        kind="walk",
        lower=kind in ("sensitivity", "specificity", "precision"),
        within=True,
        bounds=(0.0, max(what.cost or 0.0, 1.0)) if kind == "mean_cost" else None,
        loss="cost" if kind == "mean_cost" else "",
    )
    if kind == "error":
        label = f"rows that are answered{CHOSEN}"
        return [
            [walked],
            [Quantity(name="answered", quantity="answered", label=label, kind="band")],
        ]
    both = ("sensitivity", "specificity")
    if kind not in both:  # the walk has looked at both classes
        others = [
            Quantity(name=n, quantity=n, label=names[n], kind="band", within=True) for n in both
        ]
        return [[walked], others]
    other = both[kind == "sensitivity"]
    untouched = Quantity(name=other, quantity=other, label=names[other], lower=True, within=True)
    curve = [
        Quantity(
            name=name,
            quantity=f"{name}_distance",
            label=f"{name} below the measured curve, at any threshold",
            kind="distance",
            within=True,
        )
        for name in both
    ]
    return [[walked], [untouched], curve]


def _of_metrics(what: Measurement, compared: list[str]) -> Table:
    """What people look for beside the error rate: three lines, of metrics, of calibration and of
    differences between slices, so that however many metrics there are they take one line's δ.
    """
    squares = 1.0 if len(what.classes) == 2 else 2.0
    whose = "" if what.score_class is None else f" for {what.score_class}"
    known = {
        "auc": Quantity(name="auc", quantity="auc", label=f"AUC{whose}", kind="auc", lower=True),
        "f1": Quantity(name="f1", quantity="f1", label=f"F1{whose}", kind="f1", lower=True),
        "balanced_accuracy": Quantity(
            name="classes",
            quantity="balanced_accuracy",
            label="balanced accuracy",
            kind="balanced",
            lower=True,
        ),
        "brier": Quantity(
            name="brier",
            quantity="brier_score",
            label=f"Brier score (0 to {squares:g})",
            bounds=(0.0, squares),
            loss="brier",
        ),
        "log_loss": Quantity(
            name="log_loss",
            quantity="log_loss",
            label=f"log loss, probabilities below {CLIP:g} counting as {CLIP:g}",
            bounds=(0.0, MOST_LOG_LOSS),
            loss="clipped log loss",
        ),
    }
    table = [[known[name] for name in what.metrics if name in known]]
    if "calibration" in what.metrics:
        if what.score_class is None:
            words = "right answers where it gives its answer a probability of"
        else:
            words = f"share of {what.score_class} where it says"
        shared = {"quantity": "calibration", "family": "bin", "kind": "interval", "within": True}
        table.append(
            [
                Quantity(name=f"bin[{one}]", label=f"{words} {one}", **shared)
                for one in bin_names(what.bins)
            ]
        )
    if "differences" in what.metrics:
        rates = {"error": "error rates"}
        if what.positive is not None:
            rates["selection"] = f"selection rates (answers {what.positive})"
            rates["sensitivity"] = f"sensitivities for {what.positive}"
        table.append(
            [
                Quantity(
                    name=f"between[{column}].{rate}",
                    quantity=f"{rate}_difference",
                    label=f"largest difference of {words} between slices of {column}",
                    kind="difference",
                )
                for column in compared
                for rate, words in rates.items()
            ]
        )
    return [line for line in table if line]


def _of_sets(what: Measurement) -> Table:
    """How often prediction sets hold the true label: of all rows, or of each label's."""
    if what.sets is None:
        return []
    held = "true label in the prediction set"
    if not what.per_class:
        return [[Quantity(name="set", quantity="set_coverage", label=held, kind="set", lower=True)]]
    shared = {"quantity": "class_coverage", "family": "class", "kind": "set", "within": True}
    return [
        [
            Quantity(name=f"set[{c}]", label=f"{held} where it is {c}", lower=True, **shared)
            for c in what.classes
        ]
    ]


def _of_further(what: Measurement) -> Table:
    """More rates of the same units, those of one quantity on one line."""
    lines: dict[str, list[Quantity]] = {}
    for i, one in enumerate(what.further):
        lines.setdefault(one.quantity, []).append(
            Quantity(
                name=f"further[{i}]",
                quantity=one.quantity,
                label=one.label,
                family=one.quantity,
                kind="interval" if one.kind == "interval" else "mean",
                within=True,
            )
        )
    return list(lines.values())


def _comparisons(what: Measurement, most: tuple[float, float], *, against: bool) -> Table:
    """The gain over each other predictor, and how well it does itself."""
    others = (
        {"baseline": "the baseline"}
        if against
        else {f"constant[{c}]": f"always answering {c}" for c in what.constants}
    )
    family = "constant" if len(others) > 1 else ""
    gains, theirs = [], []
    for name, other in others.items():
        if what.cost is None:
            label = f"fewer errors than {other}"
            gains.append(
                Quantity(
                    name="risk", quantity="gain", label=label, family=family, kind="gain", than=name
                )
            )
            label = f"errors of {other}"
            theirs.append(
                Quantity(
                    name=name, quantity="baseline_risk", label=label, family=family, lower=True
                )
            )
        else:
            than, shared = f"{name}.cost", {"family": family, "bounds": most, "loss": "cost"}
            label = f"mean cost below that of {other}"
            gains.append(
                Quantity(
                    name="cost", quantity="gain", label=label, kind="gain", than=than, **shared
                )
            )
            label = f"mean cost of {other}"
            theirs.append(
                Quantity(name=than, quantity="baseline_cost", label=label, lower=True, **shared)
            )
    return [gains, theirs]
