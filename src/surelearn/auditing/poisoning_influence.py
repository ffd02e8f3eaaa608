"""Which fit rows have most influence: exactly where there is a closed form, to first order, or by refits of the hardest."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from surelearn.auditing.context import Unusable
from surelearn.auditing.one_row import kernel_machine
from surelearn.auditing.poisoning_margins import missed_most, same_kernel
from surelearn.auditing.poisoning_parts import MOST_COLUMNS, in_numbers, linear_objective, logistic_penalty, prepared
from surelearn.selection.cross_validation import columns_for, fit_quietly, is_pairwise, take, take_for

SHOWN = 5
_SEEDS = 3  # other seeds, to see what they alone change
_MACHINE_WORK = 2e7  # entries of kernel matrices for refits of a support vector machine, if more than others get
_MOST_WORK = 1e9  # multiplications for exact fits without one row; beyond, only the rows with most influence to first order


def influence(
    model: Any, X: Any, y: Any, new: Any, truth: Any, task: str, refits: int, sample: Any, hard: Any,
    seed: int,
) -> dict[str, Any]:  # fmt: skip
    """The change of the mean loss on new rows without a row, for the rows where it is largest.

    Parameters
    ----------
    refits : the most fits where there is no closed form
    sample : rows to fit to then
    hard : a loss of each row by a fit without it, NaN where there is none
    seed : the first of some other seeds, to see what they alone change

    Returns
    -------
    ``rows`` and ``changes`` (of the loss, as a share of it with all rows), ``method``, ``loss``, how many were ``tried`` and
    how ``chosen``, ``noise`` of other seeds, and ``spread``, the standard error of the first change over new rows
    """
    learner, Z, points = prepared(model, X, new)
    found = _kernel(learner, points, truth) or _linear(learner, Z, y, points, truth)
    if found is not None:
        return largest(*found)
    sample, learner = np.arange(len(y)) if is_pairwise(learner) else sample, same_kernel(learner)
    seeds = _SEEDS if _by_chance(learner) else 0
    count = max(refits - 1 - seeds, 1)
    rows, chosen = _support(learner, Z, points, truth, sample, count) or _hardest(
        learner, take(Z, sample), y[sample], task, hard[sample], count, seed
    )
    made = range(seed, seed + seeds)
    found = _by_refits(learner, take(Z, sample), y[sample], points, truth, task, rows, made)
    return {**largest(sample[rows], *found), "chosen": chosen}


def largest(
    rows: Any, risk: Any, base: float, method: str, tried: int, loss: str, noise: float = 0.0, spread: Any = None
) -> dict[str, Any]:  # fmt: skip
    """The rows with the largest change of the loss, of either sign, first; changes as shares of the loss.

    Parameters
    ----------
    spread : from a position among ``rows`` to the standard error of its change over the new rows, if that is known
    """
    if not (np.isfinite(risk).all() and np.isfinite(base)):
        raise Unusable("the loss on new rows is not a number, so that no row's influence can be told")
    top, scale = np.argsort(-np.abs(risk), kind="stable")[:SHOWN], base if base > 0 else 1.0
    error = 0.0 if spread is None else float(np.nan_to_num(spread(top[0])))
    said = {"method": method, "tried": tried, "loss": loss, "base": base, "noise": noise / scale, "spread": error / scale}
    return {"rows": np.asarray(rows)[top], "changes": risk[top] / scale, **said}


def _error(differences: Any) -> float:
    """Of the mean, over new rows."""
    return float(np.std(differences, ddof=1) / np.sqrt(len(differences))) if len(differences) > 1 else 0.0


def _kernel(learner: Any, points: Any, truth: Any) -> tuple[Any, ...] | None:
    """Every row of a kernel machine that was solved directly."""
    from surelearn.kernel.left_out import left_out

    if (found := kernel_machine(learner)) is None:
        return None
    scaling, machine = found
    if (fits := left_out(machine, points)) is None:
        return None
    if hasattr(machine, "classes_"):
        wanted = np.where(np.asarray(truth)[:, None] == machine.classes_, 1.0, -1.0)
        wanted = wanted[:, 1:] if fits.full.shape[1] == 1 else wanted
    else:
        wanted = np.asarray(truth, dtype=float).reshape(fits.full.shape)
        wanted = wanted if scaling is None else scaling.transform(wanted)
    own = ((fits.full - wanted) ** 2).mean(axis=1)
    base = float(own.mean())
    risk = np.array([((values - wanted) ** 2).mean() for values in fits.values()]) - base

    def spread(row: int) -> float:
        return _error(((fits.full - fits.reach[:, row, None] * fits.pull[row] - wanted) ** 2).mean(axis=1) - own)

    return np.arange(len(risk)), risk, base, "exact", len(risk), "squared loss", 0.0, spread


def _linear(learner: Any, Z: Any, y: Any, points: Any, truth: Any) -> tuple[Any, ...] | None:
    """Every row of a logistic or ridge regression: exactly where the learner can, and where not to first order."""
    from surelearn.attacks.influence import exact_influence, influence_function
    from surelearn.attacks.poison_objectives import LinearObjective
    from surelearn.linear import Ridge

    if Z.shape[1] > MOST_COLUMNS or not (type(learner) is Ridge or logistic_penalty(learner, len(y))):
        return None
    Z, points = in_numbers(Z, points)
    if type(learner) is Ridge:
        objective: Any = LinearObjective("squared", regularization=learner.regularization_)
        w, codes, labels = np.append(learner.coef_, learner.intercept_), np.asarray(y, dtype=float), np.asarray(truth, float)
        name, loss = "squared loss", lambda scores, t: (scores - t) ** 2
    elif (own := linear_objective(learner, Z)) is not None:
        objective, w = own
        codes, labels = (np.searchsorted(learner.classes_, part) for part in (y, truth))
        name, loss = "logarithmic loss", lambda scores, t: np.logaddexp(0.0, -(2.0 * t - 1) * scores)
    else:
        return None
    base = objective.risk(w, points, labels)
    rough = influence_function(objective, w, Z, codes, points, labels, scores=False)

    def spread(row: int) -> float:
        return first_order_error(objective, w, Z, codes, points, labels, row)

    budget = int(_MOST_WORK / max(Z.size, points.size))
    which = np.sort(rough.top(max(budget, SHOWN)))
    if hasattr(learner, "leave_one_out"):
        try:
            exact = exact_influence(learner.leave_one_out, Z, y, points, labels, loss=loss, rows=which)
        except ValueError:  # no closed form for this fit
            pass
        else:
            return exact.rows, exact.risk, base, "exact", len(which), name, 0.0, lambda at: spread(int(exact.rows[at]))
    return rough.rows, rough.risk, base, "influence function", len(Z), name, 0.0, spread


def first_order_error(objective: Any, w: Any, Z: Any, y: Any, points: Any, labels: Any, row: int) -> float:
    """The standard error over new rows of what leaving out the row does to their mean loss, to first order."""
    move = objective.solve(w, Z, y, objective.gradients(w, Z[row : row + 1], y[row : row + 1])[0]) / len(Z)
    return _error(objective.gradients(w, points, labels) @ move)


def _support(learner: Any, Z: Any, points: Any, truth: Any, sample: Any, count: int) -> tuple[Any, str] | None:
    """Positions in the sample of the support vectors to try, and what they are; None for other learners."""
    if hasattr(learner, "predict_proba") or (found := missed_most(learner, Z, points, truth)) is None:
        return None
    inside = np.isin(found[0], sample)
    rows, rise = (part[inside] for part in found)
    count = max(count, int(_MACHINE_WORK / len(sample) ** 2))
    every = len(sample) == Z.shape[0] and len(rows) <= count
    which = "are support vectors; the others change nothing" if every else "count most by one step of the dual problem"
    top = np.argsort(-np.abs(rise), kind="stable")[:count]
    return (np.searchsorted(sample, np.sort(rows[top])), f" that {which}") if top.size else None


def _hardest(learner: Any, Z: Any, y: Any, task: str, hard: Any, count: int, seed: int) -> tuple[Any, str]:
    """The rows that are hardest to predict, in words too; none that only fill up ties."""
    own, hard = _difficulty(learner, Z, y, task), np.nan_to_num(hard)
    harder = np.flatnonzero((hard > hard.min()) | (own > own.min()))
    if not harder.size:
        drawn = np.random.default_rng(seed).permutation(len(y))[:count]
        return np.sort(drawn), " drawn at random, as none was harder to predict"
    return np.sort(harder[np.lexsort((-own[harder], -hard[harder]))][:count]), " of those hardest to predict"


def _by_refits(
    learner: Any, Z: Any, y: Any, points: Any, truth: Any, task: str, rows: Any, seeds: Sequence[int]
) -> tuple[Any, ...]:  # fmt: skip
    """What leaving out each of the rows does, by refits; and what other seeds alone do."""
    from sklearn.base import clone

    unit = _unit(learner, Z, y, task)

    def losses(keep: Any) -> Any:
        known = columns_for(learner, points, np.flatnonzero(keep))
        return np.asarray(_losses(_fitted(learner, Z, y, keep), known, truth, task, unit), dtype=float)

    own = losses(np.ones(len(y)))
    base = float(own.mean())
    differences = np.array([losses(np.where(np.arange(len(y)) == row, 0.0, 1.0)) - own for row in rows])
    noise = 0.0
    if seeds:
        made = [clone(learner).set_params(random_state=seed) for seed in seeds]
        others = [float(np.mean(_losses(_fitted(one, Z, y, np.ones(len(y))), points, truth, task, unit))) for one in made]
        noise = float(np.abs(np.array(others) - base).max())
    name = _name(learner, points, task)
    return differences.mean(axis=1), base, "refits", len(rows), name, noise, lambda at: _error(differences[at])


def _by_chance(learner: Any) -> bool:
    """Whether a seed may change the fit; a machine that gives no probabilities uses none."""
    drawn = getattr(learner, "probability", True) not in (False, "deprecated")
    return drawn and "random_state" in learner.get_params(deep=False)


def _fitted(learner: Any, Z: Any, y: Any, keep: Any) -> Any:
    """A forest is given weights, so that it draws the same rows as before."""
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    if not (getattr(learner, "bootstrap", False) and has_fit_parameter(learner, "sample_weight")):
        return fit_quietly(learner, take_for(learner, Z, np.flatnonzero(keep)), y[keep > 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(learner).fit(Z, y, sample_weight=keep)


def _margins(learner: Any, Z: Any, y: Any) -> Any:
    """By how much the score of the truth is above all others; None where there are no scores of classes."""
    classes = np.asarray(getattr(learner, "classes_", ()))
    if not hasattr(learner, "decision_function") or getattr(learner, "decision_function_shape", "") == "ovo":
        return None
    scores, own = np.asarray(learner.decision_function(Z), dtype=float), np.asarray(y)[:, None] == classes
    if scores.ndim == 1 and len(classes) == 2:
        return np.where(own[:, 1], 1.0, -1.0) * scores
    if scores.shape != own.shape:
        return None
    truth = np.where(own.any(axis=1), np.where(own, scores, -np.inf).max(axis=1), scores.min(axis=1))
    return truth - np.where(own, -np.inf, scores).max(axis=1)


def _unit(learner: Any, Z: Any, y: Any, task: str) -> float:
    """The median size of margins, where there are no probabilities: some votes are of any size."""
    if task == "regression" or hasattr(learner, "predict_proba") or (margins := _margins(learner, Z, y)) is None:
        return 1.0
    return float(np.median(np.abs(margins))) or 1.0


def _difficulty(learner: Any, Z: Any, y: Any, task: str) -> Any:
    """Larger where a row is harder to predict; margins tell also among rows without a loss."""
    margins = None if task == "regression" or hasattr(learner, "predict_proba") else _margins(learner, Z, y)
    return _losses(learner, Z, y, task, 1.0) if margins is None else -margins


def _name(learner: Any, points: Any, task: str) -> str:
    if task == "regression":
        return "mean absolute error"
    if hasattr(learner, "predict_proba"):
        return "squared loss of probabilities"
    scored = _margins(learner, points, np.full(len(points), learner.classes_[0])) is not None
    return "hinge loss (margins in units of their median size)" if scored else "share of errors"


def _losses(learner: Any, Z: Any, y: Any, task: str, unit: float) -> Any:
    """Squared distance of probabilities from the truth; without any the hinge loss, or errors; of a number the distance."""
    if task == "regression":
        return np.abs(np.asarray(learner.predict(Z), dtype=float) - np.asarray(y, dtype=float))
    if not hasattr(learner, "predict_proba"):
        margins = _margins(learner, Z, y)
        return (learner.predict(Z) != y).astype(float) if margins is None else np.maximum(1 - margins / unit, 0.0)
    truth = np.asarray(y)[:, None] == np.asarray(learner.classes_)
    return ((np.asarray(learner.predict_proba(Z), dtype=float) - truth) ** 2).sum(axis=1)
