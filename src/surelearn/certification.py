"""`certify`: what is guaranteed about any fixed predictor, from rows or other units that it has
not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from surelearn import stated
from surelearn.bounds import (
    auc_lower,
    balanced_accuracy_lower,
    betting_interval,
    betting_lower,
    betting_upper,
    block_gain,
    block_mean_lower,
    block_mean_upper,
    clopper_pearson,
    clopper_pearson_interval,
    clopper_pearson_lower,
    conformal_coverage,
    conformal_radius,
    conformal_score,
    dkw_distance,
    dkw_lower,
    f1_lower,
    fixed_sequence_lower,
    fixed_sequence_mean,
    fixed_sequence_upper,
    moments_gain,
    moments_lower,
    moments_upper,
    paired_counts,
    paired_difference,
    range_gain,
    range_mean_lower,
    range_mean_upper,
    rate_difference,
    reweighted_gain,
    reweighted_mean,
    reweighted_mean_lower,
    row_weighted_betting,
    shifted_mean,
)
from surelearn.bounds.holdout import (
    BASELINE_UNSEEN,
    CONTENTS_IID,
    GROUPS_IID,
    IID,
    ORDER,
    STATED_RANGE,
)
from surelearn.bounds.thresholds import sure_rows
from surelearn.bounds.units import RANGE
from surelearn.certificate import OVER_GROUPS, Certificate, Facts
from surelearn.claim import Claim, Covers, Theorem
from surelearn.fingerprint import UNHASHED, fingerprint_model, fingerprint_rows
from surelearn.lacking import Lacking
from surelearn.measurement import (
    LOSSES,
    METRICS,
    OF_PROBABILITIES,
    Happened,
    LossesPerUnit,
    Mask,
    Measurement,
    Slices,
    check_range,
    compared_parts,
    losses_of,
    measure,
)
from surelearn.operating import Requirement
from surelearn.operating.sets import check_asked
from surelearn.plain import printable
from surelearn.quantities import NOVEL, OF_SETS, Quantity, Table, quantities, shares
from surelearn.slicing import Cuts
from surelearn.subject import Task, classes_of, describe, subject_of, task_of
from surelearn.subject.bands import range_of
from surelearn.subject.recorded import RecordedScores, from_columns
from surelearn.types import AnyArray, Label, Model, RowsLike

LONGEST_NAME = 60
# parameters of `certify` that answers and their truth take the place of, or that follow from them
_OF_ANSWERS = {"model", "X", "y", "answers", "truth", "task", "classes", "unseen", "baseline"}
_LEAST_CHANGES = 16
_STRANGE = 1e-6
_MOST_REMEMBERED = 10_000
MOST_THRESHOLDS = 1000
_COUNTED = ContextVar("counted", default=True)
# hashes of the models that this process certified, by the targets
_CERTIFIED: dict[str, list[str]] = {}


def certify(
    model: Model = None,
    X: RowsLike | None = None,
    y: npt.ArrayLike | None = None,
    *,
    answers: npt.ArrayLike | None = None,
    truth: npt.ArrayLike | None = None,
    losses: LossesPerUnit | None = None,
    loss_range: tuple[float, float] | None = None,
    baseline_losses: LossesPerUnit | None = None,
    weights: npt.ArrayLike | None = None,
    weight_bound: float | None = None,
    proportional: bool = False,
    delta: float = 0.05,
    candidates: int = 1,
    task: Task | None = None,
    classes: npt.ArrayLike | None = None,
    unseen: npt.ArrayLike | None = None,
    positive: Label = None,
    majority: Label = None,
    baseline: Model = None,
    groups: npt.ArrayLike | None = None,
    largest_group: int | None = None,
    slices: Slices | None = None,
    novel: Mask | None = None,
    cost: float | None = None,
    alpha: float = 0.1,
    loss: str | None = None,
    loss_bound: float | None = None,
    headline: float = 0.5,
    metrics: Sequence[str] = (),
    bins: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9),
    better: Literal["lower", "higher"] = "lower",
    further: Sequence[Happened] = (),
    require: str | None = None,
    thresholds: Sequence[float] | None = None,
    sets: float | None = None,
    per_class: bool = False,
    set_score: str = "probability",
    target_range: tuple[float, float] | None = None,
) -> Certificate:
    """Certify a fitted model, or the losses of whatever answers, on units it has not seen; all
    claims hold together.

    Half of δ goes to the headline (classification: the error or, where ``cost`` says what errors
    cost, the mean cost; regression: the prediction interval; losses: their mean), the rest is
    divided equally among the other claims, before the rows are looked at. The probability that
    every claim is true is at least 1 − δ.

    Parameters
    ----------
    model : anything fitted with ``predict``, or a function of X (then state ``task`` and, to
        classify, ``classes``); with ``losses`` it is named by its hash only, and may be left out
    X, y : certify rows, drawn uniformly from the population of interest and used for nothing else
    answers, truth : instead of a model with X and y: what was answered and what is right, one of
        each per row, from arrays or columns of a data frame. Numbers with a fractional part are a
        regression; the labels are those of the truth unless ``classes`` says; ``baseline`` may be
        other answers. (A file, with its page: `surelearn.auditing.answers.audit_answers`)
    losses : instead of labels to compare with: one loss per independent unit (row, image,
        document), or a function of the units X that gives them; by default the model's own
        ``unit_losses`` where y is not given. Booleans and whole numbers in (0, 1) are counted
        (Clopper–Pearson), other losses bet on
    loss_range : the range of ``losses``, stated beforehand and never the smallest and largest seen;
        by default (0, 1)
    baseline_losses : losses of something else on the same units: the gain over it is claimed
    weights, weight_bound : a stated covariate shift: for each unit the density of the population
        that the claims are about relative to the one that the units were drawn from, its mean 1,
        and a bound on it, both fixed beforehand
    proportional : the weights are known up to a factor only; the claims then bet on weight · (r −
        loss) for a candidate r
    delta : failure probability of the whole certificate
    candidates : the model was chosen, *by its error on these same rows*, among so many that were
        fixed beforehand; every claim pays for the choice. Leave 1 if the choice was made on other
        rows
    task : "classification" or "regression", if the model does not say
    classes : the labels, if the model has no ``classes_``
    unseen : labels that ``y`` may hold beside those that the model knows; they count as errors, and
        nothing is claimed about them, so that rows with a label that nobody knew of do not change
        how δ is divided
    positive : the class that matters: adds sensitivity, specificity and precision
    majority : the most frequent label *of the fit rows* or, with ``cost``, the constant answer that
        costs least on them; unknown, the gain is claimed over every constant answer
    baseline : another fitted model; the gain is claimed over it instead
    groups : one label per row; rows of a group belong together (one patient's visits). Claims are
        then about a new group's mean, and groups count, not rows
    largest_group : with ``groups``: no group has more rows than this, stated beforehand and never
        the largest one seen; adds the risk with every *row* counting the same, which large groups
        may make another number than the mean over groups
    slices : subpopulations to report: masks by name, or a function of X, fixed without looking at
        these rows (`surelearn.slicing.cut`)
    novel : a mask of one row per content that has no near copy among the fit rows, made without
        looking at labels; their error is claimed too, about such contents, each counted once
        (`surelearn.auditing.sections.novelty`)
    cost : with ``positive``: what a missed positive costs when a false alarm costs 1; to take one
        of several other classes for another costs nothing. The headline is then the mean cost, and
        so are what constant answers (or the baseline) are compared by, and the gain
    alpha : regression: the prediction interval misses at most this fraction of new targets
    loss, loss_bound : regression: with a stated bound on the "absolute" or "squared" loss its mean
        is claimed too; losses: ``loss`` says what they are, such as "word error rate", in at most
        60 characters
    headline : the headline's part of δ, where there are other claims
    metrics : of a classifier, to be claimed, too: "auc" (of several classes with ``positive``),
        "brier", "log_loss" (clipped), "balanced_accuracy", "f1" (with ``positive``), which share
        one line of the rest
        of δ; "calibration" of its probabilities in ``bins``; "differences" of error rates (with
        ``positive`` also of selection rates and sensitivities) between the values of each column of
        ``slices``, which then come from `surelearn.slicing.cut`. Those that cannot be claimed here
        stand under ``lacking``
    bins : where probabilities are cut for "calibration", fixed without looking at these rows
    better : "higher" where ``losses`` are grades, such as 1 for a passed test: their mean is then
        bounded from below, and the gain is how far it is above that of ``baseline_losses``
    further : more rates of the same units, fixed beforehand, such as the errors against each of
        several raters: `surelearn.measurement.Happened`, one line of δ for each quantity
    require, thresholds : what an operating point must keep, such as "sensitivity >= 0.95"
        (`surelearn.operating.Requirement`), and the thresholds that may be chosen, fixed beforehand in
        the order in which they are tried, never read from these rows (`surelearn.operating.ladder`
        makes them from others). The last one before the first failure is used
        (``facts["walk.threshold"]``), the headline's part of δ is that of the walk, and of numbers
        that depend on the threshold only those are claimed that hold at a chosen one. Numbers take
        "mean_error <= 3", with ``loss_bound`` and no thresholds
    sets, per_class, set_score : of a classifier with probabilities or scores: prediction sets that at
        most this part of new rows' true labels is outside of, or with ``per_class`` at most this part
        of each label's, and what a label is scored by, fixed beforehand
        (`surelearn.operating.sets.nonconformity`). `Certificate.sets` makes them. They take half of
        what the headline leaves of δ; a label that the model does not know is in no set
    target_range : regression: what the target can be, stated beforehand and never the range seen:
        prediction intervals are clipped to it, and a new target outside counts as a miss; by default
        the model's own ``target_range``. A model with ``predict_band``
        (`surelearn.selection.widths.IntervalRegressor`) has intervals with a width of each row's own

    Returns
    -------
    Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import train_test_split
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X_fit, X_certify, y_fit, y_certify = train_test_split(X, y, test_size=171, random_state=0)
    >>> model = LogisticRegression(max_iter=10_000).fit(X_fit, y_fit)
    >>> certificate = certify(model, X_certify, y_certify, majority=1)
    >>> certificate["risk"].bound()
    '≤ 8.3%'
    >>> certify(answers=["cat"] * 96 + ["dog"] * 104, truth=["cat"] * 100 + ["dog"] * 100)["risk"].bound()
    '≤ 5.1%'
    >>> rates = np.random.default_rng(0).beta(1, 9, 500)  # of 500 recordings, made by anything
    >>> certify(losses=rates, loss="word error rate")["mean_loss"].bound()
    '≤ 0.1101'
    """
    asked = dict(locals())
    stated.fraction("delta", delta)
    stated.whole("candidates", candidates)
    stated.fraction("headline", headline)
    sets = check_asked(sets, per_class=per_class, score=set_score)
    requirement = None if require is None else Requirement.parse(require)
    if requirement is None and thresholds is not None:
        raise ValueError("thresholds go with require, what the chosen one must keep")
    by_losses = losses is not None or (y is None and hasattr(model, "unit_losses"))
    if answers is not None or truth is not None:
        if answers is None or truth is None or not (model is X is y is losses is None):
            raise ValueError(
                "answers go with truth, one of each per row, and with no model, X or y"
            )
        other = None if baseline is None or hasattr(baseline, "predict") else baseline
        rows, right, told = from_columns(answers, truth, other, task, classes)
        return certify(
            told["model"],
            rows,
            right,
            task=told["task"],
            classes=told.get("classes"),
            unseen=told.get("unseen") if unseen is None else unseen,
            baseline=told.get("baseline", baseline),
            **{name: value for name, value in asked.items() if name not in _OF_ANSWERS},
        )
    check_largest_group(largest_group, groups)
    taken: AnyArray | None = None
    if by_losses:
        others = {
            "task": task,
            "classes": classes,
            "unseen": unseen,
            "positive": positive,
            "majority": majority,
            "cost": cost,
        }
        others |= {"baseline": baseline, "loss_bound": loss_bound, "require": require}
        others |= {"sets": sets}
        others |= {"target_range": target_range}
        if given := [name for name, value in others.items() if value is not None]:
            raise ValueError(
                f"{given[0]} goes with a model that predicts y, not with losses per unit"
            )
        taken = losses_of(losses, model, X)
        what = _what_losses(taken, loss_range, loss, largest_group, better)
    else:
        if given := [
            n
            for n, v in (("loss_range", loss_range), ("baseline_losses", baseline_losses))
            if v is not None
        ]:
            raise ValueError(f"{given[0]} goes with losses per unit: pass losses=, too")
        if better != "lower":
            raise ValueError(f"better={better!r} goes with losses per unit: pass losses=, too")
        if model is None or X is None or y is None:
            raise ValueError("certify needs a model with X and y, or losses, one number per unit")
        what = _what(
            model,
            task=task,
            classes=classes,
            unseen=unseen,
            positive=positive,
            majority=majority,
            baseline=baseline,
            cost=cost,
            alpha=alpha,
            loss="absolute" if loss is None else loss,
            loss_bound=loss_bound,
            largest_group=largest_group,
            target_range=target_range,
        )
    what = _shifted(what, weights, weight_bound, proportional)
    if sets is not None:
        # whether recorded scores are probabilities, these rows say: each reading pays
        readings = 2 if isinstance(model, RecordedScores) else 1
        left = delta * (1 - headline) / (candidates * readings)
        what = _with_sets(what, sets, per_class, set_score, left)
    chosen_here: list[Lacking] = []
    if requirement is not None:
        what = _required(what, requirement, thresholds, groups, delta * headline / candidates)
    if what.thresholds:
        asked = {"slice_risk": slices, "gain": baseline, "novel_risk": novel}
        chosen_here = _not_at_a_chosen_threshold(asked, further)
        slices, baseline, novel, further = None, None, None, ()
    classified = what.task == "classification"  # `_with_metrics` refuses metrics of others
    compared = list(compared_parts(slices, X)) if classified and "differences" in metrics else []
    what, without = _with_metrics(
        what, model, metrics, bins, grouped=groups is not None, compared=bool(compared)
    )
    what = _with_further(what, further)
    if novel is not None and groups is not None:
        raise ValueError(
            "novel goes with independent contents, not with groups: a new group is novel by itself"
        )
    values = measure(
        model,
        X,
        y,
        what,
        groups=groups,
        slices=slices,
        baseline=baseline,
        novel=novel,
        losses=taken,
        baseline_losses=baseline_losses,
        weights=weights,
        further=further,
    )
    if what.weight_bound is not None and not what.proportional:
        _check_mean_weight(values, what.weight_bound)
    walk = f" {what.require} {what.thresholds}" if what.require else ""
    walk += f" {set_score}" if sets is not None and set_score != Measurement.set_score else ""
    hashes, looks = _identity(
        model, X, y, baseline, taken, (groups, baseline_losses, weights), walk
    )
    facts = Facts(
        subject=describe(model) if model is not None else f"{what.loss} per unit",
        setting=_setting(values, what, known=model is not None) + looks,
        hashes=hashes,
        options={
            **what.options(),
            "delta": delta,
            "candidates": int(candidates),
            **({"slices": slices.options()} if isinstance(slices, Cuts) else {}),
        },
        values=values,
    )
    writer = _Writer(facts, what, delta, int(candidates), grouped=groups is not None)
    against = baseline is not None or baseline_losses is not None
    writer.lacking += [*_not_claimed(what, against=against), *without, *chosen_here]
    table = quantities(
        what, _slice_names(values), against=against, novel=novel is not None, compared=compared
    )
    return Certificate(
        facts=facts,
        claims=writer.write(table, headline),
        lacking=tuple(writer.lacking),
        delta=delta,
    )


CHOSEN_HERE = "it depends on the threshold, which was chosen on these rows"


def _required(
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


def _with_sets(
    what: Measurement, sets: float, per_class: bool, score: str, left: float
) -> Measurement:
    """The measurement with prediction sets, whose thresholds have a part of what is ``left`` of δ."""
    if what.task != "classification":
        raise ValueError("sets are about labels; of numbers the prediction interval is claimed")
    if what.weight_bound is not None:
        raise ValueError("sets rank rows as they were drawn: they do not go with weights")
    shared = left * OF_SETS / (len(what.classes) if per_class else 1)
    return replace(what, sets=sets, per_class=per_class, set_score=score, sets_delta=shared)


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


def _not_at_a_chosen_threshold(
    asked: Mapping[str, object], further: Sequence[Happened]
) -> list[Lacking]:
    """What depends on the threshold, and is not claimed where these rows chose it."""
    names = ["risk", "class_error", *(name for name, given in asked.items() if given is not None)]
    names += [one.what.quantity for one in further]
    return [Lacking(name, CHOSEN_HERE) for name in dict.fromkeys(names)]


def certify_counted(
    model: Model,
    facts: Callable[[Measurement], Mapping[str, Any]],
    rows: str,
    *,
    loss: str | None = None,
    loss_range: tuple[float, float] = (0.0, 1.0),
    binary: bool = False,
    classes: Sequence[str] = (),
    unseen: Sequence[str] = (),
    positive: Label = None,
    cost: float | None = None,
    baseline: Model = None,
    against: bool = False,
    compared: Sequence[str] = (),
    metrics: Sequence[str] = (),
    require: Requirement | None = None,
    thresholds: Sequence[float] = (),
    delta: float = 0.05,
) -> Certificate:
    """Certify recorded answers, passes or grades of which only counts and sums are known, as one
    pass over a file of any length leaves them.

    The claims, and how δ is divided among them, are those of `certify`. Rates are binomial as there;
    gains rest on `paired_counts`, mean costs on `moments_upper`, which need neither the rows nor their
    order, and grades on `block_mean_lower`, which bets in the order of the file.

    Parameters
    ----------
    model : the recorded answers; their hash says which
    facts : from what is measured to the facts: rates as ``name.count`` of ``name.n`` rows, means as
        ``name.mean`` and ``name.variance``, and comparisons as ``name.better``, ``name.worse`` and
        ``name.equal``, or as ``name.gain.mean`` and ``name.gain.variance``; of blocks as
        ``name.block_sizes``, ``name.block_means`` and ``name.block_variances``; ``groups`` where
        each number is the mean over a group of rows
    rows : the hash of the rows
    loss, loss_range, binary : of passes and grades: what they are called, their stated range, and
        whether each is 0 or 1; None: the answers are labels
    classes, unseen, positive, cost, baseline, metrics, delta : as in `certify`
    against : whether other answers, passes or grades of the same rows were counted, too
    compared : columns with several slices, whose rates are compared
    require, thresholds : as in `certify`; ``facts`` then gives those of the walk
    """
    stated.fraction("delta", delta)
    if loss is None:
        what = _what(
            model,
            task="classification",
            classes=list(classes),
            unseen=list(unseen),
            positive=positive,
            majority=None,
            baseline=baseline,
            cost=cost,
            alpha=0.1,
            loss="absolute",
            loss_bound=None,
            largest_group=None,
        )
    else:
        kind = np.empty(0, dtype=bool if binary else float)
        what = _what_losses(kind, loss_range, loss, None, "higher")
    without: list[Lacking] = []
    if require is not None:
        what = _required(what, require, thresholds, None, delta * 0.5)
        without = _not_at_a_chosen_threshold({}, ())
    named = tuple(compared) if "differences" in metrics else ()
    what, more = _with_metrics(what, model, metrics, (), grouped=False, compared=bool(named))
    without += more
    values = facts(what)
    hashes = {"model": fingerprint_model(model), "rows": rows}
    hashes |= {} if baseline is None else {"baseline": fingerprint_model(baseline)}
    made = Facts(
        subject=describe(model),
        setting=f"{_setting(values, what, known=True)}, read in one pass",
        hashes=hashes,
        options={**what.options(), "delta": delta, "candidates": 1, "one_pass": True},
        values=values,
    )
    writer = _Writer(made, what, delta, 1, grouped="groups" in values)
    writer.lacking += without
    table = quantities(what, _slice_names(values), against=against, novel=False, compared=named)
    claims = writer.write(table, 0.5)
    return Certificate(facts=made, claims=claims, lacking=tuple(writer.lacking), delta=delta)


def _what_losses(
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


def _with_further(what: Measurement, further: Sequence[Happened]) -> Measurement:
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


def _shifted(
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


def _check_mean_weight(values: Mapping[str, Any], weight_bound: float) -> None:
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


def _identity(
    model: Model,
    X: RowsLike | None,
    y: npt.ArrayLike | None,
    baseline: Model,
    losses: AnyArray | None,
    columns: tuple[Any, ...],
    walk: str = "",
) -> tuple[dict[str, str], str]:
    """Hashes of what was certified, and which look at these rows it is.

    Units that are not given are known by what else is said of each of them (groups, a baseline's
    losses, weights), so that several losses of the same units are several looks; by the losses
    themselves where there is nothing else.
    """
    hashes = {} if model is None else {"model": fingerprint_model(model)}
    others = {} if baseline is None else {"baseline": fingerprint_model(baseline)}
    if losses is None:
        hashes |= {"rows": fingerprint_rows(X, y), **others}
        name = (
            hashes["model"] if walk == "" or hashes["model"] == UNHASHED else hashes["model"] + walk
        )
        return hashes, _looks_here(name, X, np.asarray(y))
    made, none = fingerprint_rows((), losses), np.zeros(len(losses))
    said = [
        np.asarray(column).astype(str)
        for column in columns
        if column is not None and not callable(column)
    ]
    units = X if X is not None else np.column_stack(said) if said else losses
    hashes |= {"rows": fingerprint_rows(units, y), "losses": made}
    return hashes, _looks_here(
        hashes.get("model", made), units, none if y is None else np.asarray(y)
    )


def _what(
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


def _with_metrics(
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


@contextmanager
def uncounted() -> Generator[None]:
    """For flows that keep a ledger: what `certify` is asked within is not counted as one more
    model on these rows.
    """
    token = _COUNTED.set(False)
    try:
        yield
    finally:
        _COUNTED.reset(token)


def _looks_here(name: str, X: RowsLike | None, y: npt.NDArray[Any]) -> str:
    """Which model this is that the process certifies on these targets, in words; "" for the first.

    Whoever certifies several models on the same rows and keeps the best one must say so with
    ``candidates``.
    """
    if not _COUNTED.get():
        return ""
    codes = np.unique(y.astype(str) if y.dtype.kind == "O" else y, return_inverse=True)[1]
    # else the targets alone say too little
    known = np.count_nonzero(np.diff(codes)) >= _LEAST_CHANGES
    rows = fingerprint_rows(codes[:0] if known else X, codes)
    models = _CERTIFIED.setdefault(rows, [])
    if len(_CERTIFIED) > _MOST_REMEMBERED:
        del _CERTIFIED[next(iter(_CERTIFIED))]
    if name == UNHASHED or name not in models:
        models.append(name)
    number = len(models) if name == UNHASHED else models.index(name) + 1
    if number == 1:
        return ""
    return (
        f"; model {number} that this process certified on these rows: to choose among them, state"
        f" candidates={number}"
    )


def _setting(values: Mapping[str, Any], what: Measurement, *, known: bool) -> str:
    groups = f" of {values['groups']:,} groups" if "groups" in values else ""
    units = "units" if what.task == "losses" else "rows"
    return f"checked on {values['rows']:,} {units}{groups}" + (" it had not seen" if known else "")


_PROBABLE = ("auc", "brier_score", "log_loss", "calibration")  # read from probabilities
# of a metric that is made of several counts: its theorem, and which facts its inputs are
_OF_COUNTS: dict[str, tuple[Theorem[..., Any], dict[str, str]]] = {
    "auc": (auc_lower, {"auc": "value", "positives": "positives", "negatives": "negatives"}),
    "f1": (f1_lower, {"successes": "count", "n": "n"}),
    "balanced": (balanced_accuracy_lower, {"counts": "counts", "sizes": "sizes"}),
    "difference": (rate_difference, {"counts": "counts", "sizes": "sizes"}),
}


class _Writer:
    """Turns facts into simultaneous claims, dividing δ before looking at any number."""

    def __init__(
        self, facts: Facts, what: Measurement, delta: float, candidates: int, *, grouped: bool
    ) -> None:
        self.facts, self.what, self.delta, self.candidates, self.grouped = (
            facts,
            what,
            delta,
            candidates,
            grouped,
        )
        self.lacking: list[Lacking] = []
        like = "units like these" if what.task == "losses" else "rows like these"
        population = "the mean over a new group like these" if grouped else like
        self.covers = Covers(
            predictor=facts.hashes.get("model", ""),
            loss="zero_one" if what.task == "classification" else what.loss,
            population=(
                population
                if what.weight_bound is None
                else f"{population}, shifted as the weights say"
            ),
            rows=facts.hashes["rows"],
        )

    def write(self, table: Table, headline: float) -> tuple[Claim, ...]:
        """Give each line its part of δ; within a line, equal parts again."""
        claims: list[Claim | None] = []
        for members, share in zip(table, shares(table, headline), strict=True):
            part = self.delta * share / len(members)
            claims += [self.claim(quantity, part) for quantity in members]
        return tuple(claim for claim in claims if claim is not None)

    def claim(self, quantity: Quantity, delta: float) -> Claim | None:
        """The claim of one line of the table, or None where no unit is concerned; its part of δ is
        spent all the same.
        """
        if quantity.quantity in _PROBABLE and "probabilities" in self.facts:
            self.lacking.append(Lacking(quantity.quantity, self.facts["probabilities"]))
            return None
        if quantity.kind == "radius":
            return self._radius(quantity, delta)
        if quantity.kind == "row-weighted":
            return self._row_weighted(quantity, delta)
        if quantity.kind == "gain":
            return self._gain(quantity, delta)
        if quantity.kind == "interval":
            return self._interval(quantity, delta)
        if quantity.kind == "walk":
            return self._walk(quantity, delta)
        if quantity.kind == "set":
            return self._covered(quantity, delta)
        if quantity.kind in ("band", "distance"):
            return self._at_every_threshold(quantity, delta)
        if quantity.kind in _OF_COUNTS:
            theorem, read = _OF_COUNTS[quantity.kind]
            read = {name: f"{quantity.name}.{fact}" for name, fact in read.items()}
            return self.facts.claim(theorem, read, **self._options(quantity, delta))
        claim = self._mean(quantity, delta)
        if claim is None or quantity.name != "novel":
            return claim
        population = f"{NOVEL}, each counted once; not new patients"
        assumptions = tuple(CONTENTS_IID if line == IID else line for line in claim.assumptions)
        return replace(
            claim, covers=replace(claim.covers, population=population), assumptions=assumptions
        )

    def _mean(self, quantity: Quantity, delta: float) -> Claim | None:
        """A mean loss: binomial for rates of rows, betting on a stated range, on weighted
        losses where there is a shift.
        """
        name, lower, weighted = quantity.name, quantity.lower, self.what.weight_bound is not None
        if f"{name}.variance" in self.facts:
            return self._of_moments(quantity, delta)
        counted = quantity.bounds is None and not weighted
        sample = f"{name}.means" if counted else f"{name}.losses"
        if (
            self.facts[f"{name}.n"] == 0
            if counted and not self.grouped
            else self.facts[sample] == ()
        ):
            unit = "group has" if self.grouped and counted else "row is among"
            reason = f"{quantity.label}: no {unit} such rows"
            self.lacking.append(Lacking(what=quantity.quantity, reason=reason))
            return None
        options = self._options(quantity, delta)
        if counted and not self.grouped:
            if lower:
                read = {"successes": f"{name}.count", "n": f"{name}.n"}
                return self.facts.claim(clopper_pearson_lower, read, **options)
            return self.facts.claim(
                clopper_pearson, {"errors": f"{name}.count", "n": f"{name}.n"}, **options
            )
        read = {"losses": sample}
        if weighted:
            whole = not (quantity.within or lower or self.what.proportional)
            theorem = shifted_mean if whole else reweighted_mean_lower if lower else reweighted_mean
            return self.facts.claim(theorem, read | {"weights": f"{name}.weights"}, **options)
        if quantity.bounds is not None and quantity.bounds[0] != 0:
            return self.facts.claim(
                range_mean_lower if lower else range_mean_upper, read, **options
            )
        return self.facts.claim(betting_lower if lower else betting_upper, read, **options)

    def _of_moments(self, quantity: Quantity, delta: float) -> Claim | None:
        """A mean of which the number of rows, their mean and variance are known."""
        name = quantity.name
        if self.facts[f"{name}.n"] == 0:
            reason = f"{quantity.label}: no row is among such rows"
            self.lacking.append(Lacking(what=quantity.quantity, reason=reason))
            return None
        low, high = quantity.bounds or (0.0, 1.0)
        options = {**self._options(quantity, delta), "low": low, "high": high}
        options.pop("loss_bound", None)
        if f"{name}.block_sizes" in self.facts:
            theorem = block_mean_lower if quantity.lower else block_mean_upper
            return self.facts.claim(theorem, _of_blocks(name), **options)
        read = {one: f"{name}.{one}" for one in ("mean", "variance", "n")}
        return self.facts.claim(moments_lower if quantity.lower else moments_upper, read, **options)

    def _counted_gain(self, quantity: Quantity, options: dict[str, Any]) -> Claim:
        """How much better than another, from counts or sums of what one pass compared."""
        if f"{quantity.than}.better" in self.facts:
            read = {one: f"{quantity.than}.{one}" for one in ("better", "worse", "equal")}
            return self.facts.claim(paired_counts, read, **options)
        low, high = quantity.bounds or (0.0, 1.0)
        scale = {k: v for k, v in options.items() if k not in ("loss_bound", "low", "high")}
        if f"{quantity.than}.gain.block_sizes" in self.facts:
            read = _of_blocks(f"{quantity.than}.gain")
            return self.facts.claim(block_gain, read, span=high - low, **scale)
        read = {one: f"{quantity.than}.gain.{one}" for one in ("mean", "variance")}
        read["n"] = f"{quantity.name}.n"
        return self.facts.claim(moments_gain, read, span=high - low, **scale)

    def _interval(self, quantity: Quantity, delta: float) -> Claim | None:
        """A rate from both sides: binomial, or betting on the means of groups."""
        name = quantity.name
        if self.facts[f"{name}.means"] == () if self.grouped else self.facts[f"{name}.n"] == 0:
            reason = (
                f"{quantity.label}: no {'group has' if self.grouped else 'row is among'} such rows"
            )
            self.lacking.append(Lacking(what=quantity.quantity, reason=reason))
            return None
        options = self._options(quantity, delta)
        if self.grouped:
            return self.facts.claim(betting_interval, {"losses": f"{name}.means"}, **options)
        read = {"errors": f"{name}.count", "n": f"{name}.n"}
        return self.facts.claim(clopper_pearson_interval, read, **options)

    def _walk(self, quantity: Quantity, delta: float) -> Claim:
        """What is required, at the last threshold that a walk passed."""
        level = Requirement.parse(self.what.require).level
        options, step = self._options(quantity, delta), {"step": "walk.step"}
        if quantity.quantity == "mean_cost":
            read = {"losses": "walk.losses", "n": "walk.n", **step}
            return self.facts.claim(fixed_sequence_mean, read, level=level, **options)
        theorem = fixed_sequence_lower if quantity.lower else fixed_sequence_upper
        read = {"counts": "walk.counts", "sizes": "walk.sizes", **step}
        return self.facts.claim(theorem, read, level=level, **options)

    def _at_every_threshold(self, quantity: Quantity, delta: float) -> Claim | None:
        """A rate at the chosen threshold, or the distance of a curve from the truth, by a band."""
        name = quantity.name
        if self.facts[f"{name}.n"] == 0:
            reason = f"{quantity.label}: no row is among such rows"
            self.lacking.append(Lacking(what=quantity.quantity, reason=reason))
            return None
        options = self._options(quantity, delta)
        if quantity.kind == "distance":
            return self.facts.claim(dkw_distance, {"n": f"{name}.n"}, **options)
        read = {"successes": f"{name}.count", "n": f"{name}.n"}
        return self.facts.claim(dkw_lower, read, **options)

    def _covered(self, quantity: Quantity, delta: float) -> Claim | None:
        """How often prediction sets hold the true label, at the threshold of a rank."""
        name, n = quantity.name, self.facts[f"{quantity.name}.n"]
        if self.facts[f"{name}.threshold"] is None:
            fewest = sure_rows(1 - (self.what.sets or 0.0), self.what.sets_delta)
            which = f"rows where it is {name[4:-1]}" if self.what.per_class else "rows"
            why = f"{n:,} {which} are fewer than the {fewest:,} that are needed: it is in every set"
            if n >= fewest:
                why = "too many rows have a label that the model does not know"
            elif not self.what.per_class:
                why = f"{n:,} rows are fewer than the {fewest:,} that are needed"
            self.lacking.append(Lacking(what=quantity.quantity, reason=why))
            return None
        options = self._options(quantity, delta, over="")
        if self.grouped:
            like = "a random row of a new group like these"
            options["covers"] = replace(options["covers"], population=like)
        options["covers"] = replace(options["covers"], loss="miss of the prediction set")
        read = {"covered": f"{name}.covered", "n": f"{name}.n"}
        return self.facts.claim(conformal_coverage, read, alpha=self.what.sets, **options)

    def _gain(self, quantity: Quantity, delta: float) -> Claim:
        """How much smaller the mean loss is than another predictor's, on the same rows."""
        options = self._options(quantity, delta)
        if quantity.than.startswith("constant["):
            options["met"].append(BASELINE_UNSEEN)
        if {f"{quantity.than}.better", f"{quantity.than}.gain.mean"} & self.facts.values.keys():
            return self._counted_gain(quantity, options)
        less, more = f"{quantity.name}.losses", f"{quantity.than}.losses"
        if self.what.better == "higher":  # by how much the mean of the other is smaller
            less, more = more, less
        read = {"losses": less, "baseline_losses": more}
        if self.what.weight_bound is not None:
            return self.facts.claim(
                reweighted_gain, read | {"weights": f"{quantity.name}.weights"}, **options
            )
        ranged = quantity.bounds is not None and quantity.bounds[0] != 0
        return self.facts.claim(range_gain if ranged else paired_difference, read, **options)

    def _row_weighted(self, quantity: Quantity, delta: float) -> Claim:
        """The mean loss over the rows of new groups, large groups counting for more."""
        most, name = self.what.largest_group or 1, quantity.name
        options = self._options(quantity, delta, f", mean over rows (at most {most:,} a group)")
        options["covers"] = replace(
            options["covers"], population="the rows of new groups like these"
        )
        read = {"losses": f"{name}.group_losses", "sizes": f"{name}.group_sizes"}
        return self.facts.claim(row_weighted_betting, read, largest_group=most, **options)

    def _radius(self, quantity: Quantity, delta: float) -> Claim:
        """The distance within which most new targets fall."""
        new = "random rows of new groups" if self.grouped else "new rows"
        label = f"distance from the truth, {100 * (1 - self.what.alpha):g}% of {new}"
        if quantity.name == "scores":
            share = f"{100 * (1 - self.what.alpha):g}% of {new}"
            label = f"outward move of the interval's ends that holds {share}"
        options = self._options(replace(quantity, label=label), delta, over="")
        if quantity.name == "scores":
            return self.facts.claim(
                conformal_score, {"scores": "scores"}, alpha=self.what.alpha, **options
            )
        return self.facts.claim(
            conformal_radius, {"residuals": "residuals"}, alpha=self.what.alpha, **options
        )

    def _options(self, quantity: Quantity, delta: float, over: str = OVER_GROUPS) -> dict[str, Any]:
        met = [ORDER]
        # the range is known by the kind of loss
        if self.what.task == "classification" or quantity.bounds is None:
            met += [STATED_RANGE, RANGE]
        return {
            "delta": delta,
            "quantity": quantity.quantity,
            "label": f"{quantity.label}{over}" if self.grouped else quantity.label,
            "family": quantity.family,
            "covers": replace(self.covers, loss=quantity.loss) if quantity.loss else self.covers,
            "candidates": self.candidates,
            "standing": "together",
            "met": met,
            "instead": {IID: GROUPS_IID} if self.grouped else {},
            **self._scale(quantity),
        }

    def _scale(self, quantity: Quantity) -> dict[str, Any]:
        """What the theorem must know of the range of the loss and of the weights, and how the
        claim is shown.
        """
        if quantity.kind == "radius":
            return {}
        low, high = quantity.bounds or (0.0, 1.0)
        shown = {} if quantity.bounds is None else {"unit": "number"}
        if self.what.weight_bound is not None:
            return {**shown, "weight_bound": self.what.weight_bound, "low": low, "high": high}
        if quantity.bounds is None:
            return {}
        grade = self.what.better == "higher"
        if grade and quantity.bounds == (0.0, 1.0) and self.what.loss.endswith(" rate"):
            shown = {}
        return {**shown, "loss_bound": high} if low == 0 else {**shown, "low": low, "high": high}


def _of_blocks(name: str) -> dict[str, str]:
    """The facts that a bound from blocks of rows reads."""
    return {one: f"{name}.block_{one}" for one in ("sizes", "means", "variances")}


def _slice_names(values: Mapping[str, Any]) -> list[str]:
    return list(
        dict.fromkeys(key[6 : key.rindex("]")] for key in values if key.startswith("slice["))
    )


def _not_claimed(what: Measurement, *, against: bool) -> list[Lacking]:
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
