"""What the parts of the poisoning section share: prepared columns, answers at a threshold, and stand-in learners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from surelearn.auditing.context import Unusable
from surelearn.auditing.one_row import learner_of
from surelearn.claim import Covers
from surelearn.selection.cross_validation import losses_of

EXACTLY = "poisoned rows per clean row to exactly the weights −w (one target)"
SAME_COLUMNS = "columns and targets are prepared, and penalty and kernel are, as they are here, whatever is added"
TOTAL = "g(μ) includes the gradient of the penalty, whose total does not grow with the rows"
MOST_COLUMNS = 500  # prepared columns, beyond which gradients through a fit are too dear


@dataclass(frozen=True, eq=False)
class StandIn:
    """A learner that attacks can differentiate through, in place of the model's own.

    Attributes
    ----------
    objective : what is fitted
    rows : the prepared rows, in numbers
    targets : the labels as it takes them
    labels : from those back to the model's own
    words : what it is, for people; "" where it is the learner itself
    """

    objective: Any
    rows: Any
    targets: Any
    labels: Callable[[Any], Any]
    words: str


def covers(loss: str, population: str = "poison with features of any size") -> Covers:
    """What a claim about poison is about."""
    predictor, rows = "the fit to clean rows and poison", "the fit rows, as prepared"
    return Covers(predictor=predictor, loss=f"{loss} loss", population=population, rows=rows)


def prepared(model: Any, *parts: Any) -> tuple[Any, ...]:
    """The learner inside the model, and rows as it sees them."""
    steps, learner = learner_of(model)
    return learner, *(part if steps is None else steps.transform(part) for part in parts)


def in_numbers(*parts: Any) -> list[Any]:
    """Prepared rows as dense numbers; a sentence where they are not, or too many."""
    if (columns := parts[0].shape[1]) > MOST_COLUMNS:
        raise Unusable(f"the model has {columns:,} prepared columns, more than the {MOST_COLUMNS} that this is made for")
    try:
        return [np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=float) for part in parts]
    except ValueError:
        raise Unusable("the prepared columns are not all numbers") from None


def answers(learner: Any, points: Any, threshold: float | None, positive: Any, response: str = "predict_proba") -> Any:
    """What the learner answers, at a decision threshold if there is one."""
    if threshold is None:
        return np.asarray(learner.predict(points))
    classes = np.asarray(learner.classes_)
    column = classes.tolist().index(positive)
    found = np.asarray(getattr(learner, response)(points))
    scores = found[:, column] if found.ndim == 2 else found if column == 1 else -found
    return np.where(scores >= threshold, classes[column], classes[1 - column])


def risk_of(predictions: Any, truth: Any, task: str) -> float:
    """Errors, or the mean absolute error; a sentence where predictions are no numbers."""
    risk = float(np.mean(losses_of(predictions, truth, task)))
    if not np.isfinite(risk):
        raise Unusable("a refitted model predicts values that are not numbers")
    return risk


def logistic_penalty(learner: Any, n: int) -> tuple[float, bool] | None:
    """λ beside the mean loss of a logistic regression, and whether the intercept is in it; None for other learners.

    Only for a fit at the minimizer of the mean logistic loss with a squared penalty, rows of equal weight.
    """
    import sklearn.linear_model

    from surelearn.linear import LogisticRegression

    if type(learner) is LogisticRegression:
        facts = learner.facts_
        plain = facts["finish"] != "none" and facts["uniform"] and learner.l1_regularization == 0
        return (float(learner.regularization), learner.intercept == "regularized") if plain else None
    if type(learner) is sklearn.linear_model.LogisticRegression:
        squared = learner.penalty in ("l2", None, "deprecated") and not learner.l1_ratio
        if not squared or learner.solver == "liblinear" or learner.class_weight is not None or learner.dual:
            return None
        return (0.0 if learner.penalty is None else 1 / (2 * learner.C * n)), False
    return None


def linear_objective(learner: Any, Z: Any) -> tuple[Any, Any] | None:
    """A logistic regression as the attacks know it, with its parameters; None for other learners."""
    from surelearn.attacks.poison_objectives import LinearObjective

    found = logistic_penalty(learner, len(Z))
    if found is None:
        return None
    objective = LinearObjective(classes=len(learner.classes_), regularization=found[0])
    w = np.column_stack([learner.coef_, np.broadcast_to(learner.intercept_, len(learner.coef_))]).ravel().astype(float)
    return objective, w


def stand_in(learner: Any, Z: Any, y: Any, task: str) -> StandIn:
    """A logistic, linear or kernel regression like the learner, for prepared rows Z; `Unusable` without a gradient."""
    from surelearn.adapters.forms import KernelForm
    from surelearn.adapters.recognize import NoClosedForm, closed_form
    from surelearn.attacks.poison_kernel import KernelRidgeObjective
    from surelearn.attacks.poison_objectives import LinearObjective

    try:
        form = closed_form(getattr(learner, "regressor_", learner)).form
    except NoClosedForm:
        name = type(learner).__name__
        raise Unusable(f"{name} has no gradient to aim poison by, so labels were changed at random only") from None
    (Z,) = in_numbers(Z)
    kernel = isinstance(form, KernelForm)
    sigma = _width(form, Z) if kernel else 1.0
    if task == "regression":
        middle, scale = float(np.mean(y)), float(np.std(y)) or 1.0
        objective = KernelRidgeObjective(sigma, 1e-3) if kernel else LinearObjective("squared", regularization=1e-3)
        words = f"a {'kernel' if kernel else 'linear'} ridge regression"
        return StandIn(objective, Z, (np.asarray(y, dtype=float) - middle) / scale, lambda t: middle + scale * t, words)
    classes, codes = np.unique(y, return_inverse=True)
    if kernel and len(classes) == 2:
        objective = KernelRidgeObjective(sigma, 1e-3)
        return StandIn(objective, Z, 2.0 * codes - 1, lambda t: classes[(t > 0).astype(int)], "a kernel ridge regression")
    own = linear_objective(learner, Z)
    objective = LinearObjective(classes=len(classes), regularization=1e-3) if own is None else own[0]
    return StandIn(objective, Z, codes, lambda t: classes[t], "a logistic regression" if own is None else "")


def _width(form: Any, Z: Any) -> float:
    """σ of the learner's own Gaussian kernel, else the median squared distance of some rows."""
    if form.name == "gaussian":
        return float(form.parameters["sigma"])
    from scipy.spatial.distance import pdist

    return float(np.median(pdist(Z[:300], "sqeuclidean"))) or 1.0
