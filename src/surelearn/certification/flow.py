"""`certify`: what is guaranteed about any fixed predictor, from rows or other units that it has
not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from surelearn import stated
from surelearn.certificate import Certificate
from surelearn.certificate.facts import Facts
from surelearn.certification.beforehand import (
    check_largest_group,
    check_mean_weight,
    not_at_a_chosen_threshold,
    not_claimed,
    of_losses,
    of_model,
    required,
    shifted,
    with_further,
    with_metrics,
    with_sets,
)
from surelearn.certification.writer import ClaimWriter
from surelearn.fingerprint import UNHASHED, fingerprint_model, fingerprint_rows
from surelearn.lacking import Lacking
from surelearn.measurement import (
    Happened,
    LossesPerUnit,
    Mask,
    Measurement,
    Slices,
    compared_parts,
    losses_of,
    measure,
)
from surelearn.operating import Requirement
from surelearn.operating.sets import check_asked
from surelearn.quantities import quantities
from surelearn.slicing import Cuts
from surelearn.subject import Task, describe
from surelearn.subject.recorded import RecordedScores, from_columns
from surelearn.types import AnyArray, Label, Model, RowsLike

# parameters of `certify` that answers and their truth take the place of, or that follow from them
_OF_ANSWERS = {"model", "X", "y", "answers", "truth", "task", "classes", "unseen", "baseline"}
_LEAST_CHANGES = 16
_MOST_REMEMBERED = 10_000
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
    '≤ 0.1105'
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
        what = of_losses(taken, loss_range, loss, largest_group, better)
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
        what = of_model(
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
    what = shifted(what, weights, weight_bound, proportional)
    if sets is not None:
        # whether recorded scores are probabilities, these rows say: each reading pays
        readings = 2 if isinstance(model, RecordedScores) else 1
        left = delta * (1 - headline) / (candidates * readings)
        what = with_sets(what, sets, per_class, set_score, left)
    chosen_here: list[Lacking] = []
    if requirement is not None:
        what = required(what, requirement, thresholds, groups, delta * headline / candidates)
    if what.thresholds:
        asked = {"slice_risk": slices, "gain": baseline, "novel_risk": novel}
        chosen_here = not_at_a_chosen_threshold(asked, further)
        slices, baseline, novel, further = None, None, None, ()
    classified = what.task == "classification"  # `with_metrics` refuses metrics of others
    compared = list(compared_parts(slices, X)) if classified and "differences" in metrics else []
    what, without = with_metrics(
        what, model, metrics, bins, grouped=groups is not None, compared=bool(compared)
    )
    what = with_further(what, further)
    if novel is not None and groups is not None:
        raise ValueError(
            "novel goes with independent contents, not with groups: a new group is novel by itself"
        )
    what, units = replace(what, order="rows"), _units(X, taken, (groups, baseline_losses, weights))
    rows_hash = cache(lambda: fingerprint_rows(units, y))
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
        rows_hash=rows_hash,
    )
    if what.weight_bound is not None and not what.proportional:
        check_mean_weight(values, what.weight_bound)
    walk = f" {what.require} {what.thresholds}" if what.require else ""
    walk += f" {set_score}" if sets is not None and set_score != Measurement.set_score else ""
    hashes, looks = _identity(model, units, y, baseline, taken, rows_hash(), walk)
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
    writer = ClaimWriter(facts, what, delta, int(candidates), grouped=groups is not None)
    against = baseline is not None or baseline_losses is not None
    writer.lacking += [*not_claimed(what, against=against), *without, *chosen_here]
    table = quantities(
        what, _slice_names(values), against=against, novel=novel is not None, compared=compared
    )
    return Certificate(
        facts=facts,
        claims=writer.write(table, headline),
        lacking=tuple(writer.lacking),
        delta=delta,
    )


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
    order, and grades on `block_mean_lower`, which bets on blocks of rows that are drawn by their positions in the file.

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
        what = of_model(
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
        what = of_losses(kind, loss_range, loss, None, "higher")
    without: list[Lacking] = []
    if require is not None:
        what = required(what, require, thresholds, None, delta * 0.5)
        without = not_at_a_chosen_threshold({}, ())
    named = tuple(compared) if "differences" in metrics else ()
    what, more = with_metrics(what, model, metrics, (), grouped=False, compared=bool(named))
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
    writer = ClaimWriter(made, what, delta, 1, grouped="groups" in values)
    writer.lacking += without
    table = quantities(what, _slice_names(values), against=against, novel=False, compared=named)
    claims = writer.write(table, 0.5)
    return Certificate(facts=made, claims=claims, lacking=tuple(writer.lacking), delta=delta)


def _units(X: RowsLike | None, losses: AnyArray | None, columns: tuple[Any, ...]) -> Any:
    """What rows are known by.

    Units that are not given are known by what else is said of each of them (groups, a baseline's
    losses, weights), so that several losses of the same units are several looks; by the losses
    themselves where there is nothing else.
    """
    if losses is None or X is not None:
        return X
    said = [
        np.asarray(column).astype(str)
        for column in columns
        if column is not None and not callable(column)
    ]
    return np.column_stack(said) if said else losses


def _identity(
    model: Model,
    units: Any,
    y: npt.ArrayLike | None,
    baseline: Model,
    losses: AnyArray | None,
    rows: str,
    walk: str = "",
) -> tuple[dict[str, str], str]:
    """Hashes of what was certified, and which look at these rows it is."""
    hashes = {} if model is None else {"model": fingerprint_model(model)}
    others = {} if baseline is None else {"baseline": fingerprint_model(baseline)}
    if losses is None:
        hashes |= {"rows": rows, **others}
        name = (
            hashes["model"] if walk == "" or hashes["model"] == UNHASHED else hashes["model"] + walk
        )
        return hashes, _looks_here(name, units, np.asarray(y))
    made, none = fingerprint_rows((), losses), np.zeros(len(losses))
    hashes |= {"rows": rows, "losses": made}
    return hashes, _looks_here(
        hashes.get("model", made), units, none if y is None else np.asarray(y)
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


def _slice_names(values: Mapping[str, Any]) -> list[str]:
    return list(
        dict.fromkeys(key[6 : key.rindex("]")] for key in values if key.startswith("slice["))
    )
