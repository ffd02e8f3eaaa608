"""What is fixed before the certified rows are looked at: what is measured on them, checked, and
what cannot be claimed of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from surelearn import stated
from surelearn.bounds import (
    betting_interval,
)
from surelearn.lacking import Lacking
from surelearn.measurement import (
    LOSSES,
    METRICS,
    OF_PROBABILITIES,
    Happened,
    Measurement,
    check_range,
)
from surelearn.operating import Requirement
from surelearn.plain import printable
from surelearn.quantities import OF_SETS
from surelearn.subject import Task, classes_of, subject_of, task_of
from surelearn.subject.bands import range_of
from surelearn.types import Label, Model

LONGEST_NAME = 60
MOST_THRESHOLDS = 1000
_STRANGE = 1e-6
CHOSEN_HERE = "it depends on the threshold, which was chosen on these rows"


def of_model(
    model: Model,
    *,
    task: Task | None,
    classes: npt.ArrayLike | None,
    unseen: npt.ArrayLike | None,
    positive: Label,
    majority: Label,
    baseline: Model,
    cost: float | None,
    alpha: float,
    loss: str,
    loss_bound: float | None,
    largest_group: int | None,
    target_range: tuple[float, float] | None = None,
) -> Measurement:
    """Everything that is fixed before the rows are looked at, checked."""
    if task is None and classes is not None and isinstance(subject_of(model).task, Lacking):
        task = "classification"
    task = task_of(model, task)
    if task == "regression":
        stated.fraction("alpha", alpha)
        if loss not in LOSSES:
            raise ValueError(f"loss must be {' or '.join(map(repr, LOSSES))}, not {loss!r}")
        if loss_bound is not None:
            stated.positive("loss_bound", loss_bound)
        return Measurement(
            task=task,
            alpha=alpha,
            loss=loss,
            loss_bound=loss_bound,
            largest_group=largest_group,
            banded=not isinstance(subject_of(model).band, Lacking),
            target_range=range_of(model)
            if target_range is None
            else check_range(target_range, "target_range"),
        )
    if target_range is not None:
        raise ValueError("target_range is about numbers, and the model answers classes")
    known = classes_of(model, classes)
    if known is None:
        raise ValueError("the model does not say which labels it knows: pass classes=")
    others = () if unseen is None else tuple(np.asarray(unseen).tolist())
    others = tuple(label for label in others if label not in known)
    if len({str(label) for label in (*known, *others)}) < len(known) + len(others):
        raise ValueError(
            "two labels of the model read the same, such as 1 and '1': give them different names"
        )
    for name, label in (("positive", positive), ("majority", majority)):
        if label is not None and label not in known:
            raise ValueError(
                f"{name}={label!r} is not a label of the model: it knows"
                f" {', '.join(map(repr, known[:5]))}"
            )
    if cost is not None and (positive is None or not 0 < cost < float("inf")):
        raise ValueError(
            "cost must be a positive number and needs positive=, the class whose miss costs it:"
            f" {cost!r}"
        )
    constants = () if baseline is not None else (majority,) if majority is not None else known
    if cost is not None and len(constants) > 1:  # all answers but the positive one cost the same
        constants = (next(label for label in known if label != positive), positive)
    return Measurement(
        task=task,
        classes=known,
        positive=positive,
        constants=constants,
        cost=cost,
        by_cost=cost is not None,
        largest_group=largest_group,
        unseen=others,
    )


def of_losses(
    losses: npt.NDArray[Any],
    loss_range: tuple[float, float] | None,
    loss: object,
    largest_group: int | None,
    better: Literal["lower", "higher"],
) -> Measurement:
    """What is fixed beforehand of losses that the caller brings; whether they are 0 or 1 by
    their type, not their values.
    """
    called = "loss" if loss is None else loss
    if (
        not isinstance(called, str)
        or not 0 < len(called) <= LONGEST_NAME
        or printable(called) != called
    ):
        raise ValueError(
            f"loss must say what the loss is in 1 to {LONGEST_NAME} printable characters, not"
            f" {called!r:.80}"
        )
    low, high = check_range((0.0, 1.0) if loss_range is None else loss_range)
    if largest_group is not None and low != 0:
        raise ValueError(
            f"largest_group needs losses whose range starts at 0: subtract {low:g} from losses and"
            " loss_range"
        )
    if better not in ("lower", "higher"):
        raise ValueError(f"better must be 'lower' or 'higher', not {better!r:.60}")
    if largest_group is not None and better == "higher":
        raise ValueError(
            "largest_group goes with losses, not with grades: certify 1 − grade instead"
        )
    binary = losses.dtype.kind in "biu" and (low, high) == (0.0, 1.0)
    return Measurement(
        task="losses",
        loss=called,
        loss_range=(low, high),
        binary=binary,
        largest_group=largest_group,
        better=better,
    )


def with_further(what: Measurement, further: Sequence[Happened]) -> Measurement:
    """The measurement with more rates of the same units."""
    if not further:
        return what
    if what.task == "regression" and not what.banded:
        raise ValueError(
            "further rates go with classification, losses per unit, or intervals of each row's own"
        )
    if what.weight_bound is not None and any(one.what.kind == "interval" for one in further):
        raise ValueError("a rate from both sides does not go with weights")
    return replace(what, further=tuple(one.what for one in further))


def shifted(
    what: Measurement, weights: npt.ArrayLike | None, weight_bound: float | None, proportional: bool
) -> Measurement:
    """The measurement with its stated covariate shift, if there is one."""
    if weights is None and weight_bound is None and not proportional:
        return what
    if weights is None or weight_bound is None:
        raise ValueError(
            "a covariate shift takes both weights and weight_bound, which no weight exceeds, stated"
            " beforehand"
        )
    bound = stated.positive("weight_bound", weight_bound)
    if bound < 1 and not proportional:  # a density ratio of mean 1 exceeds 1 somewhere, or is 1
        raise ValueError(f"weight_bound must be finite and at least 1, not {bound:g}")
    if what.largest_group is not None:
        raise ValueError(
            "largest_group does not go with weights: there is no claim about the rows of shifted"
            " groups"
        )
    return replace(what, weight_bound=bound, proportional=bool(proportional))


def check_mean_weight(values: Mapping[str, Any], weight_bound: float) -> None:
    """Refuse weights that cannot be a density ratio, since their mean is not 1: surely, but for
    one time in a million.
    """
    weights = np.asarray(values.get("risk.weights", values.get("loss.weights", (1.0,))))
    low, high = betting_interval(weights, _STRANGE, loss_bound=weight_bound)
    if not low <= 1 <= high:
        raise ValueError(
            f"weights must be a density ratio, whose mean is 1: theirs is {weights.mean():.4g};"
            " weights that are known up to a factor go with proportional=True"
        )


def required(
    what: Measurement,
    requirement: Requirement,
    thresholds: Sequence[float] | None,
    groups: npt.ArrayLike | None,
    delta: float,
) -> Measurement:
    """The measurement with what its operating point must keep, checked."""
    kind, text = requirement.quantity, str(requirement)
    if groups is not None or what.weight_bound is not None:
        other = "groups" if groups is not None else "weights"
        raise ValueError(f"require counts independent rows one by one: it does not go with {other}")
    if kind == "mean_error":
        if what.task != "regression" or what.loss != "absolute" or what.loss_bound is None:
            raise ValueError(
                "require='mean_error <= …' is about the absolute error of numbers and needs"
                " loss_bound, which no error exceeds"
            )
        if thresholds is not None:
            raise ValueError("require='mean_error <= …' has no thresholds: leave them out")
        return replace(what, require=text)
    if what.task != "classification":
        raise ValueError(f"require={text!r} is about classes; of numbers say 'mean_error <= …'")
    if kind != "error" and what.positive is None:
        raise ValueError(f"require={text!r} needs positive, the class that matters")
    if (kind == "mean_cost") != (what.cost is not None):
        raise ValueError("cost and require='mean_cost <= …' go together, and with no other require")
    walked = _walked(thresholds)
    return replace(what, require=text, thresholds=walked, walk_delta=delta, constants=())


def _walked(thresholds: Sequence[float] | None) -> tuple[float, ...]:
    """Thresholds in the order of a walk."""
    if thresholds is None:
        raise ValueError(
            "require needs thresholds, in the order in which they are tried, fixed on other rows:"
            " surelearn.operating.ladder makes them"
        )
    try:
        given = np.asarray(thresholds, dtype=float)
    except (TypeError, ValueError):
        given = np.array([np.nan])
    if given.ndim != 1 or not given.size or not np.isfinite(given).all():
        raise ValueError(f"thresholds must be finite numbers, at least one, not {thresholds!r:.60}")
    if given.size > MOST_THRESHOLDS:
        raise ValueError(f"thresholds must be at most {MOST_THRESHOLDS:,}, not {given.size:,}")
    return tuple(given.tolist())


def not_at_a_chosen_threshold(
    asked: Mapping[str, object], further: Sequence[Happened]
) -> list[Lacking]:
    """What depends on the threshold, and is not claimed where these rows chose it."""
    names = ["risk", "class_error", *(name for name, given in asked.items() if given is not None)]
    names += [one.what.quantity for one in further]
    return [Lacking(name, CHOSEN_HERE) for name in dict.fromkeys(names)]


def with_sets(
    what: Measurement, sets: float, per_class: bool, score: str, left: float
) -> Measurement:
    """The measurement with prediction sets, whose thresholds have a part of what is ``left`` of δ."""
    if what.task != "classification":
        raise ValueError("sets are about labels; of numbers the prediction interval is claimed")
    if what.weight_bound is not None:
        raise ValueError("sets rank rows as they were drawn: they do not go with weights")
    shared = left * OF_SETS / (len(what.classes) if per_class else 1)
    return replace(what, sets=sets, per_class=per_class, set_score=score, sets_delta=shared)


def with_metrics(
    what: Measurement,
    model: Model,
    metrics: Sequence[str],
    bins: Sequence[float],
    *,
    grouped: bool,
    compared: bool,
) -> tuple[Measurement, list[Lacking]]:
    """The measurement with the metrics that can be claimed, and why others cannot; all of that is
    known before the rows are looked at.
    """
    asked = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    if unknown := [name for name in asked if name not in METRICS]:
        raise ValueError(f"metrics must be among {', '.join(METRICS)}, not {unknown[0]!r}")
    if asked and what.task != "classification":
        raise ValueError("metrics go with classification")
    edges = tuple(float(edge) for edge in bins)
    if any(not 0 < edge < 1 for edge in edges) or any(a >= b for a, b in pairwise(edges)):
        raise ValueError(f"bins must be numbers between 0 and 1, rising, not {bins!r:.80}")
    probable = not asked or subject_of(model).gives_probabilities
    possible: list[str] = []
    lacking: list[Lacking] = []
    for name in (name for name in METRICS if name in asked):
        if what.weight_bound is not None:
            reason = "it is claimed for rows as they were drawn, not for a shifted population"
        elif grouped and name in ("auc", "f1", "balanced_accuracy", "differences"):
            reason = "rows belong together in groups, and it is no mean over groups"
        elif name in OF_PROBABILITIES and not probable:
            reason = "the model gives no probabilities"
        elif name == "auc" and what.score_class is None:
            reason = "of several classes it is about one that matters: state it as positive"
        elif name == "f1" and what.positive is None:
            reason = "it is about a class that matters: state it as positive"
        elif name in ("balanced_accuracy", "f1", "differences") and what.thresholds:
            reason = CHOSEN_HERE
        elif name == "differences" and not compared:
            reason = "there is no column with several slices to compare"
        else:
            possible.append(name)
            continue
        keys = {"brier": "brier_score", "differences": "error_difference"}
        lacking.append(Lacking(what=keys.get(name, name), reason=reason))
    if not possible:
        return what, lacking
    kept = edges if "calibration" in possible else ()
    return replace(what, metrics=tuple(possible), bins=kept), lacking


def check_largest_group(
    largest_group: int | None, groups: npt.ArrayLike | None, name: str = "largest_group"
) -> None:
    """Refuse a largest group that cannot be one: without groups, no count, or smaller than some
    group.
    """
    if largest_group is None:
        return
    if groups is None:
        raise ValueError(f"{name} needs groups, rows that belong together")
    stated.whole(name, largest_group)
    if np.unique(np.asarray(groups).astype(str), return_counts=True)[1].max() > largest_group:
        raise ValueError(
            f"{name} {largest_group} is too small, some group has more rows: state how many a group"
            " can have"
        )


def not_claimed(what: Measurement, *, against: bool) -> list[Lacking]:
    """What a regression lacks without a stated range of its loss, or for a shifted population."""
    lacking: list[Lacking] = []
    if what.task != "regression":
        return lacking
    if what.weight_bound is not None:
        reason = (
            "the interval's rank is that of rows as they were drawn, not of a shifted population"
        )
        own = ("score_quantile", "conformal_score")
        name, theorem = own if what.banded else ("error_quantile", "conformal_radius")
        lacking.append(Lacking(what=name, theorem=theorem, reason=reason))
    if what.loss_bound is None:
        reason = f"the mean {what.loss} loss is measured only: state its range with loss_bound="
        lacking.append(Lacking(what="mean_loss", theorem="betting_upper", reason=reason))
    if what.loss_bound is None and against:
        reason = "a gain over the baseline needs a stated range: pass loss_bound="
        lacking.append(Lacking(what="gain", theorem="paired_difference", reason=reason))
    return lacking
