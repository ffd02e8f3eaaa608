"""Which fit rows have most influence: exactly where there is a closed form, to first order, or
by refits of the hardest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surelearn.attacks.influence_known import error_of_mean, model_influence
from surelearn.attacks.influence_margins import dual_influence
from surelearn.attacks.poison_further import module_influence
from surelearn.lacking import Lacking
from surelearn.losses import HINGE
from surelearn.subject import subject_of
from surelearn.subject.refitting import columns_for, fit_quietly, is_pairwise, take, take_for
from surelearn.types import AnyArray, Array, Model, TableRows

SHOWN = 5
_SEEDS = 3  # other seeds, to see what they alone change
# entries of kernel matrices for refits of a support vector machine, if more than others get
_MACHINE_WORK = 2e7


def influence(
    model: Model,
    X: TableRows,
    y: AnyArray,
    new: TableRows,
    truth: AnyArray,
    task: str,
    refits: int,
    sample: AnyArray,
    hard: Array,
    seed: int,
) -> dict[str, Any] | Lacking:
    """The change of the mean loss on new rows without a row, for the rows where it is largest.

    Parameters
    ----------
    refits : the most fits where there is no closed form
    sample : rows to fit to then
    hard : a loss of each row by a fit without it, NaN where there is none
    seed : the first of some other seeds, to see what they alone change

    Returns
    -------
    ``rows`` and ``changes`` (of the loss, as a share of it with all rows), ``method``, ``loss``,
    how many were ``tried`` and how ``chosen``, ``noise`` of other seeds, and ``spread``, the
    standard error of the first change over new rows
    """
    subject = subject_of(model)
    learner, Z, points = subject.last.model, subject.rows_for_last(X), subject.rows_for_last(new)
    told = model_influence(learner, Z, y, points, truth)
    if not isinstance(told, Lacking):
        found = told.found
        return largest(
            found.rows,
            found.risk,
            told.base,
            found.method,
            len(found.rows),
            told.loss,
            spread=told.error,
        )
    sample, learner = (
        np.arange(len(y)) if is_pairwise(learner) else sample,
        subject_of(learner).fixed,
    )
    seeds = _SEEDS if _by_chance(learner) else 0
    count = max(refits - 1 - seeds, 1)
    rows, chosen = _support(learner, Z, points, truth, sample, count) or _hardest(
        learner, take(Z, sample), y[sample], task, hard[sample], count, seed
    )
    made = range(seed, seed + seeds)
    found = _by_refits(learner, take(Z, sample), y[sample], points, truth, task, rows, made)
    told = largest(sample[rows], *found)
    return told if isinstance(told, Lacking) else {**told, "chosen": chosen}


def of_module(
    module: Model,
    X: TableRows,
    y: AnyArray,
    task: str,
    seed: int,
    held: int = 0,
    classes: Sequence[Any] = (),
) -> dict[str, Any] | Lacking:
    """Influence functions of a torch module, to first order, on the rows that it is fine-tuned
    on.
    """
    told = module_influence(module, X, y, task=task, classes=classes, held=held, random_state=seed)
    if isinstance(told, Lacking):
        return told
    found = told.found
    return largest(
        found.rows,
        found.risk,
        told.base,
        found.method,
        len(found.rows),
        told.loss,
        spread=told.error,
    )


def largest(
    rows: AnyArray,
    risk: Array,
    base: float,
    method: str,
    tried: int,
    loss: str,
    noise: float = 0.0,
    spread: Callable[[int], float] | None = None,
) -> dict[str, Any] | Lacking:
    """The rows with the largest change of the loss, of either sign, first; changes as shares of the
    loss.

    Parameters
    ----------
    spread : from a position among ``rows`` to the standard error of its change over the new rows,
        if that is known
    """
    if not (np.isfinite(risk).all() and np.isfinite(base)):
        why = "the loss on new rows is not a number, so that no row's influence can be told"
        return Lacking("influence", why)
    top, scale = np.argsort(-np.abs(risk), kind="stable")[:SHOWN], base if base > 0 else 1.0
    error = 0.0 if spread is None else float(np.nan_to_num(spread(top[0])))
    said = {
        "method": method,
        "tried": tried,
        "loss": loss,
        "base": base,
        "noise": noise / scale,
        "spread": error / scale,
    }
    return {"rows": np.asarray(rows)[top], "changes": risk[top] / scale, **said}


def _support(
    learner: Model, Z: TableRows, points: TableRows, truth: AnyArray, sample: AnyArray, count: int
) -> tuple[Any, str] | None:
    """Positions in the sample of the support vectors to try, and what they are; None for other
    learners.
    """
    if subject_of(learner).gives_probabilities or isinstance(
        found := dual_influence(learner, Z, points, truth), Lacking
    ):
        return None
    inside = np.isin(found.rows, sample)
    rows, rise = found.rows[inside], found.risk[inside]
    count = max(count, int(_MACHINE_WORK / len(sample) ** 2))
    every = len(sample) == Z.shape[0] and len(rows) <= count
    which = (
        "are support vectors; the others have no influence"
        if every
        else "have most influence by one step of the dual problem"
    )
    top = np.argsort(-np.abs(rise), kind="stable")[:count]
    return (np.searchsorted(sample, np.sort(rows[top])), f" that {which}") if top.size else None


def _hardest(
    learner: Model, Z: TableRows, y: AnyArray, task: str, hard: Array, count: int, seed: int
) -> tuple[Any, str]:
    """The rows that are hardest to predict, and a phrase that says so; none that only fill up
    ties.
    """
    own, hard = _difficulty(learner, Z, y, task), np.nan_to_num(hard)
    harder = np.flatnonzero((hard > hard.min()) | (own > own.min()))
    if not harder.size:
        drawn = np.random.default_rng(seed).permutation(len(y))[:count]
        return np.sort(drawn), " drawn at random, because none was harder to predict"
    return (
        np.sort(harder[np.lexsort((-own[harder], -hard[harder]))][:count]),
        " that are hardest to predict",
    )


def _by_refits(
    learner: Model,
    Z: TableRows,
    y: AnyArray,
    points: TableRows,
    truth: AnyArray,
    task: str,
    rows: AnyArray,
    seeds: Sequence[int],
) -> tuple[Any, ...]:
    """What leaving out each of the rows does, by refits; and what other seeds alone do."""
    from sklearn.base import clone

    unit = _unit(learner, Z, y, task)

    def losses(keep: Array) -> Any:
        known = columns_for(learner, points, np.flatnonzero(keep))
        return np.asarray(
            _losses(_fitted(learner, Z, y, keep), known, truth, task, unit), dtype=float
        )

    own = losses(np.ones(len(y)))
    base = float(own.mean())
    differences = np.array(
        [losses(np.where(np.arange(len(y)) == row, 0.0, 1.0)) - own for row in rows]
    )
    noise = 0.0
    if seeds:
        made = [clone(learner).set_params(random_state=seed) for seed in seeds]
        others = [
            float(np.mean(_losses(_fitted(one, Z, y, np.ones(len(y))), points, truth, task, unit)))
            for one in made
        ]
        noise = float(np.abs(np.array(others) - base).max())
    name = _name(learner, points, task)
    return (
        differences.mean(axis=1),
        base,
        "refits",
        len(rows),
        name,
        noise,
        lambda at: error_of_mean(differences[at]),
    )


def _by_chance(learner: Model) -> bool:
    """Whether a seed may change the fit; a machine that gives no probabilities uses none."""
    drawn = getattr(learner, "probability", True) not in (False, "deprecated")
    return drawn and "random_state" in learner.get_params(deep=False)


def _fitted(learner: Model, Z: TableRows, y: AnyArray, keep: Array) -> Any:
    """A forest is given weights, so that it draws the same rows as before."""
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    if not (getattr(learner, "bootstrap", False) and has_fit_parameter(learner, "sample_weight")):
        return fit_quietly(learner, take_for(learner, Z, np.flatnonzero(keep)), y[keep > 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(learner).fit(Z, y, sample_weight=keep)


def _margins(learner: Model, Z: TableRows, y: AnyArray) -> Any:
    """By how much the score of the truth is above all others; None where there are no scores of
    classes.
    """
    subject = subject_of(learner)
    if isinstance(decisions := subject.decisions, Lacking):
        return None
    classes = np.asarray(subject.classes or ())
    scores, own = np.asarray(decisions(Z), dtype=float), np.asarray(y)[:, None] == classes
    if scores.ndim == 1 and len(classes) == 2:
        return np.where(own[:, 1], 1.0, -1.0) * scores
    if scores.shape != own.shape:
        return None
    truth = np.where(
        own.any(axis=1), np.where(own, scores, -np.inf).max(axis=1), scores.min(axis=1)
    )
    return truth - np.where(own, -np.inf, scores).max(axis=1)


def _unit(learner: Model, Z: TableRows, y: AnyArray, task: str) -> float:
    """The median size of margins, where there are no probabilities: some votes are of any size."""
    if (
        task == "regression"
        or subject_of(learner).gives_probabilities
        or (margins := _margins(learner, Z, y)) is None
    ):
        return 1.0
    return float(np.median(np.abs(margins))) or 1.0


def _difficulty(learner: Model, Z: TableRows, y: AnyArray, task: str) -> Any:
    """Larger where a row is harder to predict; margins tell also among rows without a loss."""
    margins = (
        None
        if task == "regression" or subject_of(learner).gives_probabilities
        else _margins(learner, Z, y)
    )
    return _losses(learner, Z, y, task, 1.0) if margins is None else -margins


def _name(learner: Model, points: TableRows, task: str) -> str:
    if task == "regression":
        return "mean absolute error"
    if subject_of(learner).gives_probabilities:
        return "Brier score"
    scored = _margins(learner, points, np.full(len(points), learner.classes_[0])) is not None
    return "hinge loss (margins in units of their median size)" if scored else "error rate"


def _losses(learner: Model, Z: TableRows, y: AnyArray, task: str, unit: float) -> Any:
    """Squared distance of probabilities from the truth; without any the hinge loss, or errors;
    of a number the distance.
    """
    if task == "regression":
        return np.abs(np.asarray(learner.predict(Z), dtype=float) - np.asarray(y, dtype=float))
    if not subject_of(learner).gives_probabilities:
        margins = _margins(learner, Z, y)
        return (
            (learner.predict(Z) != y).astype(float)
            if margins is None
            else HINGE.value(margins / unit)
        )
    truth = np.asarray(y)[:, None] == np.asarray(learner.classes_)
    return ((np.asarray(learner.predict_proba(Z), dtype=float) - truth) ** 2).sum(axis=1)
