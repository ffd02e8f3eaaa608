"""From a table to a chosen and fitted model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np

from surelearn.auditing.options import Options
from surelearn.bounds import vc_dimension_of_stumps
from surelearn.data import Table
from surelearn.jobs import Runner
from surelearn.selection.candidates import Candidate, Searched, as_candidates, candidate_names
from surelearn.selection.catalogue import (
    affordable,
    by_default,
    catalogue,
    named_candidates,
    not_installed,
    usual_budget,
)
from surelearn.selection.costs import Costs, choose_threshold
from surelearn.selection.criteria import NestedFamily, as_criterion
from surelearn.selection.cross_validation import default_resampling
from surelearn.selection.image_candidates import NEED_TORCH, image_budget
from surelearn.selection.selector import Selection, select
from surelearn.selection.split import Split
from surelearn.selection.width import NOT_COMPARED, Widths
from surelearn.subject import Task, subject_of
from surelearn.subject.refitting import fit_quietly, take
from surelearn.types import AnyArray, Array, ImageShape, Label, Model, TableRows

# criteria that need a capacity or margins, which few candidates have
OF_FAMILIES = ("srm", "adjusted-srm", "margin")
OF_LIKELIHOODS = ("aic", "aicc", "bic")
ROUNDS = tuple(2**k for k in range(9))
# seconds of one core: workers take longer to start than they would save on less
WORTH_WORKERS = 8.0
MOST_LABELS = 8  # of a column with more than the two that are needed, that a message counts

# candidates by name, or models of the user's own: one, several, or by names
Candidates: TypeAlias = str | Model | Sequence[str | Model] | Mapping[str, Model] | None


@dataclass(frozen=True, eq=False)
class FittedChoice:
    """A chosen and fitted model with what its choice left behind: candidates that the budget does
    not pay for, and those whose package is not installed, with what installs it; of numbers the
    forms of intervals that were compared.
    """

    selection: Selection
    unfitted: Any
    model: Any
    threshold: float | None
    columns: list[str]
    left_out: tuple[str, ...] = ()
    not_installed: tuple[tuple[str, str], ...] = ()
    widths: Widths = NOT_COMPARED


def fit(
    table: Table,
    split: Split,
    columns: list[str],
    models: Candidates,
    options: Options,
    runner: Runner,
    prefix: str = "",
) -> FittedChoice:
    """Select among candidates on fit and select rows, then fit the chosen one on all of them."""
    train = np.union1d(split.fit, split.select)
    X, y = take(table.X[columns], train), table.y[train]
    groups = None if table.groups is None else table.groups[train]
    if table.task == "classification" and np.unique(y).size < 2:
        raise ValueError(
            f"{table.name}: all rows to fit on have the same {table.target!r}; more rows of the"
            " others are needed"
        )
    costs = costs_asked(options, y)
    kinds = {column.name: column.kind for column in table.columns if column.name in columns}
    held_out = np.searchsorted(train, split.select) if split.select.size else None
    criterion = as_criterion(
        options.criterion or ("cross-validation" if held_out is None else "holdout")
    )
    if criterion.name == "holdout" and held_out is None:
        raise ValueError(
            "--criterion holdout needs select rows: pass --select, the fraction of rows to"
            " compare on"
        )
    candidates: list[Any]
    left_out: list[str] = []
    if criterion.name in OF_FAMILIES and (
        models is None or candidate_names(models) == ["boosted stumps"]
    ):
        candidates = [_boosted_stumps(kinds, X)]
    elif models is None and criterion.name in OF_LIKELIHOODS:
        candidates = _with_likelihood(table.task, kinds, X)
    else:
        how = default_resampling(train.size)
        fits = 1 + (how.folds * how.repeats if criterion.name == "cross-validation" else 1)
        candidates, left_out = _candidates(models, table, kinds, X, y, options, fits)
    # a network of images answers as it is: calibrated, or among others, it would have no gradient
    seen = models is None and any(one.name in NEED_TORCH for one in candidates)
    selection = select(
        candidates,
        X,
        y,
        task=table.task,
        criterion=criterion,
        held_out=held_out,
        groups=groups,
        time=None if table.time is None else table.frame[table.time].to_numpy()[train],
        costs=costs,
        metric="accuracy" if seen and options.metric is None and costs is None else options.metric,
        positive=options.positive,
        combine=models is None and not seen,
        prefer=options.prefer,  # type: ignore[arg-type]
        random_state=options.seed,
        n_jobs=runner.n_jobs
        if table.images is not None
        or _is_worth_workers(models, options, train.size, _letters(X, kinds))
        else 1,
        journal=runner.journal,
        progress=runner.progress(f"fits of {len(candidates)} candidates"),
        prefix=prefix,
    )
    without = selection.scores is None and (
        options.threshold is None or selection.costs is not None
    )
    if costs is not None and without:
        raise ValueError(
            "--cost needs probabilities of rows not fitted on, which the criterion"
            f" {criterion.name!r} does not give here"
        )
    unfitted, threshold = apply_threshold(selection.model, costs, selection.scores, y)
    if costs is None and selection.threshold is not None and options.require is None:
        threshold = selection.threshold
        unfitted = with_threshold(selection.model, threshold, selection.positive)
    fitted = fit_quietly(unfitted, X, y)
    needed = not_installed(table.task, train.size, table.images)
    missing = tuple(needed.items()) if models is None else ()
    return FittedChoice(selection, unfitted, fitted, threshold, columns, tuple(left_out), missing)


def _candidates(
    models: Candidates,
    table: Table,
    kinds: dict[str, str],
    X: TableRows,
    y: AnyArray,
    options: Options,
    fits: int,
) -> tuple[list[Candidate | Searched], list[str]]:
    """The default candidates, with the names of those that the budget does not pay for, or the
    user's; a model that is not a pipeline gets its columns prepared.
    """
    from sklearn.pipeline import Pipeline, make_pipeline

    n, classes, task, images = len(y), np.unique(y).size, table.task, table.images
    left_out: list[str] = []
    made: list[Any]
    if models is None:
        letters = _letters(X, kinds)
        every = catalogue(task, kinds, n, options.seed, classes, letters, images=images)
        usual = usual_budget(n, letters) if images is None else image_budget(n)
        budget = usual if options.minutes is None else 120 * options.minutes
        made, left_out = affordable(by_default(every, task, n, images), fits, budget)
    elif names := candidate_names(models):
        made = named_candidates(names, task, kinds, n, options.seed, classes, images)
    else:
        made = [
            (
                c
                if isinstance(c.model, Pipeline)
                else replace(c, model=make_pipeline(_prepared(kinds, images), c.model))
            )
            for c in as_candidates(models)
        ]
    walked = options.requirement is not None and task == "classification"
    if options.cost is not None or options.threshold is not None or walked:
        made = [candidate for candidate in made if subject_of(candidate.model).gives_probabilities]
        if not made:
            asked = "--require needs" if walked else "--cost and --threshold need"
            raise ValueError(f"{asked} a candidate that gives probabilities")
    return made, left_out


def _prepared(kinds: dict[str, str], images: ImageShape | None) -> Any:
    """What prepares rows for a user's own model."""
    from surelearn.selection.preparation import PixelScaler, preparation

    return preparation(kinds) if images is None else PixelScaler(images[2])


def _letters(X: TableRows, kinds: dict[str, str]) -> int:
    """Of text, in all rows."""
    return sum(int(X[name].astype(str).str.len().sum()) for name in kinds if kinds[name] == "text")


def _is_worth_workers(models: Candidates, options: Options, n: int, letters: int) -> bool:
    """Whether other processes would choose sooner; of a user's own models nobody knows."""
    small = usual_budget(n, letters) <= WORTH_WORKERS
    return not small or models is not None or options.minutes is not None


def _with_likelihood(task: Task, kinds: dict[str, str], X: TableRows) -> list[Candidate]:
    """A constant, and a linear model without a penalty on the first 1, 2, 4, … principal components
    of the columns.

    As many as leave twenty rows a component, and no more than there are.
    """
    from sklearn.decomposition import PCA
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.pipeline import make_pipeline

    from surelearn.linear import LeastSquares, LogisticRegression
    from surelearn.selection.preparation import preparation

    prepared = preparation(kinds).fit_transform(X)
    most = min(np.linalg.matrix_rank(prepared), len(prepared) // 20)
    constant: Any = DummyClassifier() if task == "classification" else DummyRegressor()
    linear: Any = LeastSquares()
    if task == "classification":
        linear = LogisticRegression(
            regularization=0.0, regularize_intercept=False, epochs=0, finish="newton"
        )
    found = [Candidate(name="constant", model=make_pipeline(preparation(kinds), constant))]
    for size in (2**k for k in range(12) if 2**k <= most):
        steps = (preparation(kinds), PCA(size, svd_solver="full"), linear)
        found.append(
            Candidate(
                name=f"linear, {size} component{'s' if size > 1 else ''}",
                model=make_pipeline(*steps),
            )
        )
    return found


def _boosted_stumps(kinds: dict[str, str], X: TableRows) -> NestedFamily:
    """Boosted stumps after 1, 2, 4, … rounds, with the capacity of their votes over the
    prepared columns.
    """
    from sklearn.pipeline import make_pipeline

    from surelearn.boosting import AdaBoostClassifier
    from surelearn.selection.preparation import preparation

    columns = preparation(kinds).fit(X).transform(take(X, np.arange(1))).shape[1]
    stumps = float(vc_dimension_of_stumps(columns))

    def capacity(model: Model, d: int, n: int) -> dict[str, float]:  # noqa: ARG001
        return {"rounds": float(model[-1].n_rounds), "vc_dimension": stumps}

    model = make_pipeline(preparation(kinds), AdaBoostClassifier())
    return NestedFamily(
        model, ROUNDS, "adaboostclassifier__n_rounds", name="boosted stumps", capacity=capacity
    )


def fit_rival(
    table: Table, split: Split, columns: list[str], against: Model, options: Options, runner: Runner
) -> Any:
    """The other model, fitted on the same rows."""
    first = (candidate_names(against) or as_candidates(against))[:1]
    return fit(table, split, columns, first, options, runner, "against/").model


def costs_asked(options: Options, y: AnyArray) -> Costs | None:
    """What wrong answers cost, as the options say it; None if they do not."""
    if options.cost is None and options.threshold is None:
        return None
    labels, counts = np.unique(y, return_counts=True)
    if labels.size != 2:
        option = "--cost" if options.cost is not None else "--threshold"
        raise ValueError(
            f"{option} needs two classes, the rows to fit on have"
            f" {_several(labels.tolist(), counts.tolist(), options.positive)}"
        )
    return Costs(
        positive=options.positive, miss=float(options.miss or 0.0), threshold=options.threshold
    )


def _several(labels: list[Any], counts: list[int], positive: Label) -> str:
    """More than two labels with their rows, the most frequent first, and what to do."""
    order = sorted(range(len(labels)), key=lambda k: -counts[k])
    told = [f"{labels[k]} ({counts[k]:,})" for k in order[:MOST_LABELS]]
    if more := len(labels) - len(told):
        told.append(f"{more:,} more")
    if len(labels) < 2:
        return ", ".join(told)
    text = f"{len(labels):,}: {', '.join(told)}."
    rarest = labels[order[-1]]
    near = get_close_matches(str(rarest), [str(labels[k]) for k in order[:-1]], n=1)
    if near and rarest != positive:
        return f"{text} If {rarest!r} is {near[0]!r} misspelled, correct it in the file"
    return (
        f"{text} Write one label for all but {positive!r} into the file, or compare by another"
        " measure: --metric instead of the cost"
    )


def apply_threshold(
    model: Model, costs: Costs | None, scores: Array | None, y: AnyArray
) -> tuple[Any, float | None]:
    """The model with its decision threshold, stated or the cheapest for ``scores``,
    probabilities of rows not fitted on.
    """
    if costs is None:
        return model, None
    threshold = costs.threshold
    if threshold is None and scores is not None:
        column = np.unique(y).tolist().index(costs.positive)
        threshold = choose_threshold(scores[:, column], y, costs.positive, costs.miss)
    return with_threshold(model, threshold, costs.positive), threshold


def with_threshold(model: Model, threshold: float | None, positive: Label | None) -> Any:
    """The model, unfitted, that answers ``positive`` from this probability on."""
    from sklearn.model_selection import FixedThresholdClassifier

    return FixedThresholdClassifier(
        model, threshold=threshold, pos_label=positive, response_method="predict_proba"
    )
