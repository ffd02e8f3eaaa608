"""Which fit rows have most influence: exactly where there is a closed form, to first order, or by refits of the hardest."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from surelearn.auditing.context import Unusable
from surelearn.auditing.one_row import kernel_machine
from surelearn.auditing.poisoning_parts import MOST_COLUMNS, in_numbers, linear_objective, logistic_penalty, prepared
from surelearn.selection.cross_validation import fit_quietly, take

SHOWN = 5
_SEEDS = 3  # other seeds, to see what they alone change
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
    hard : a loss of each row by a fit without it, NaN where there is none; rows where it is large are left out
    seed : the first of some other seeds, to see what they alone change

    Returns
    -------
    ``rows`` and ``changes`` (of the loss, as a share of it with all rows), ``method``, ``tried`` rows, ``loss``, ``noise``
    """
    learner, Z, points = prepared(model, X, new)
    found = _kernel(learner, points, truth) or _linear(learner, Z, y, points, truth)
    if found is None:
        rows, *rest = _by_refits(learner, take(Z, sample), y[sample], points, truth, task, refits, hard[sample], seed)
        found = sample[rows], *rest
    return largest(*found)


def largest(
    rows: Any, risk: Any, base: float, method: str, tried: int, loss: str, noise: float = 0.0
) -> dict[str, Any]:  # fmt: skip
    """The rows with the largest change of the loss, of either sign, first; changes as shares of the loss."""
    if not (np.isfinite(risk).all() and np.isfinite(base)):
        raise Unusable("the loss on new rows is not a number, so that no row's influence can be told")
    top, scale = np.argsort(-np.abs(risk), kind="stable")[:SHOWN], base if base > 0 else 1.0
    said = {"method": method, "tried": tried, "loss": loss, "base": base, "noise": noise / scale}
    return {"rows": np.asarray(rows)[top], "changes": risk[top] / scale, **said}


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
    base = float(((fits.full - wanted) ** 2).mean())
    risk = np.array([((values - wanted) ** 2).mean() for values in fits.values()]) - base
    return np.arange(len(risk)), risk, base, "exact", len(risk), "squared loss"


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
    budget = int(_MOST_WORK / max(Z.size, points.size))
    which = np.sort(rough.top(max(budget, SHOWN)))
    if hasattr(learner, "leave_one_out"):
        try:
            exact = exact_influence(learner.leave_one_out, Z, y, points, labels, loss=loss, rows=which)
        except ValueError:  # no closed form for this fit
            pass
        else:
            return exact.rows, exact.risk, base, "exact", len(exact.rows), name
    return rough.rows, rough.risk, base, "influence function", len(Z), name


def _by_refits(
    learner: Any, Z: Any, y: Any, points: Any, truth: Any, task: str, refits: int, hard: Any, seed: int
) -> tuple[Any, ...]:  # fmt: skip
    """The rows that the model finds hardest, each left out of a refit."""
    from sklearn.base import clone

    seeds = _SEEDS if "random_state" in learner.get_params(deep=False) else 0
    unit = _unit(learner, Z, task)
    own = _losses(learner, Z, y, task, unit)
    rows = np.sort(np.lexsort((-own, -np.nan_to_num(hard)))[: max(refits - 1 - seeds, 1)])

    def risk(keep: Any) -> float:
        return float(np.mean(_losses(_fitted(learner, Z, y, keep), points, truth, task, unit)))

    base = risk(np.ones(len(y)))
    changes = np.array([risk(np.where(np.arange(len(y)) == row, 0.0, 1.0)) for row in rows]) - base
    noise = 0.0
    if seeds:
        made = [clone(learner).set_params(random_state=seed + i) for i in range(seeds)]
        others = [float(np.mean(_losses(_fitted(one, Z, y, np.ones(len(y))), points, truth, task, unit))) for one in made]
        noise = float(np.abs(np.array(others) - base).max())
    name = "squared loss of probabilities" if hasattr(learner, "predict_proba") else "hinge loss"
    return rows, changes, base, "refits", len(rows), "mean absolute error" if task == "regression" else name, noise


def _fitted(learner: Any, Z: Any, y: Any, keep: Any) -> Any:
    """A forest is given weights, so that it draws the same rows as before."""
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    if not (getattr(learner, "bootstrap", False) and has_fit_parameter(learner, "sample_weight")):
        return fit_quietly(learner, take(Z, np.flatnonzero(keep)), y[keep > 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(learner).fit(Z, y, sample_weight=keep)


def _unit(learner: Any, Z: Any, task: str) -> float:
    """The median size of scores, where there are no probabilities: some votes are of any size."""
    if task == "regression" or hasattr(learner, "predict_proba") or not hasattr(learner, "decision_function"):
        return 1.0
    return float(np.median(np.abs(learner.decision_function(Z)))) or 1.0


def _losses(learner: Any, Z: Any, y: Any, task: str, unit: float) -> Any:
    """Squared distance of probabilities from the truth; the hinge loss without any; the absolute error of a number."""
    if task == "regression":
        return np.abs(np.asarray(learner.predict(Z), dtype=float) - np.asarray(y, dtype=float))
    if not hasattr(learner, "predict_proba"):
        if hasattr(learner, "decision_function") and len(learner.classes_) == 2:
            return np.maximum(1 - np.where(y == learner.classes_[1], 1.0, -1.0) * learner.decision_function(Z) / unit, 0.0)
        return 2.0 * (learner.predict(Z) != y)  # of a margin of 1 on either side
    truth = np.asarray(y)[:, None] == np.asarray(learner.classes_)
    return ((np.asarray(learner.predict_proba(Z), dtype=float) - truth) ** 2).sum(axis=1)
