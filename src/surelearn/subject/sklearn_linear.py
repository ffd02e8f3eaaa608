"""scikit-learn's linear models: weights, intercepts, and what their fits minimized."""

from __future__ import annotations

import numpy as np

from surelearn.lacking import Lacking
from surelearn.subject.forms import Closed, linear_form
from surelearn.subject.objectives import Coding, Objective
from surelearn.subject.registry import NO_OBJECTIVE, Parts, dense, describes
from surelearn.types import Model

_REGRESSORS = (
    "ARDRegression BayesianRidge ElasticNet ElasticNetCV HuberRegressor Lars LarsCV Lasso LassoCV"
    " LassoLars LassoLarsCV LassoLarsIC MultiTaskElasticNet MultiTaskElasticNetCV MultiTaskLasso"
    " MultiTaskLassoCV OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV"
    " PassiveAggressiveRegressor QuantileRegressor RidgeCV SGDRegressor TheilSenRegressor"
)
_CLASSIFIERS = (
    "LogisticRegressionCV PassiveAggressiveClassifier Perceptron RidgeClassifier RidgeClassifierCV"
    " SGDClassifier"
)
_NEGATIVE = Lacking(
    "objective", "its weights were kept from being negative, which is no plain penalty"
)
_EACH_TARGET = Lacking("objective", "each target has a penalty of its own")


def class_count(model: Model) -> int | None:
    """How many classes a fitted model knows; None for a regression."""
    classes = getattr(model, "classes_", None)
    return None if classes is None else len(classes)


def weights_of(model: Model, *, votes: bool = False) -> Closed | Lacking:
    """⟨w, x⟩ + b from ``coef_`` and ``intercept_``."""
    if not hasattr(model, "coef_") or not hasattr(model, "intercept_"):
        return Lacking(
            "closed form", f"{type(model).__name__} has no coefficients: it is not fitted"
        )
    return linear_form(dense(model.coef_), model.intercept_, class_count(model), votes=votes)


def coding_of(model: Model, several: Coding) -> Coding:
    """Binary ±1 for two classes, else as told."""
    return "binary" if class_count(model) == 2 else several


@describes(
    *(f"sklearn.linear_model:{name}" for name in f"{_REGRESSORS} {_CLASSIFIERS}".split()),
    "sklearn.discriminant_analysis:LinearDiscriminantAnalysis",
)
def _linear(model: Model) -> Parts:
    return Parts(form=lambda: weights_of(model))


@describes("sklearn.linear_model:LogisticRegression")
def _logistic(model: Model) -> Parts:
    return Parts(form=lambda: weights_of(model), objective=lambda: _logistic_objective(model))


def _logistic_objective(model: Model) -> Objective | Lacking:
    if model.penalty not in ("l2", None, "deprecated") or model.l1_ratio:
        return NO_OBJECTIVE
    liblinear = model.solver == "liblinear"
    apart = liblinear or getattr(model, "multi_class", "auto") == "ovr"
    intercept = "none" if not model.fit_intercept else "regularized" if liblinear else "free"
    return Objective(
        "logistic",
        0.0 if model.penalty is None else 1 / (2 * model.C),
        beside="sum",
        intercept=intercept,
        intercept_scale=float(model.intercept_scaling) if liblinear else 1.0,
        coding=coding_of(model, "one_vs_rest" if apart else "softmax"),
        uniform=None if model.class_weight is None else False,
        tolerance=float(model.tol),
    )


@describes("sklearn.linear_model:LinearRegression")
def _least_squares(model: Model) -> Parts:
    intercept = "free" if model.fit_intercept else "none"
    objective = (
        _NEGATIVE
        if model.positive
        else Objective("squared", 0.0, intercept=intercept, uniform=None)
    )
    return Parts(form=lambda: weights_of(model), objective=objective)


@describes("sklearn.linear_model:Ridge")
def _ridge(model: Model) -> Parts:
    objective = _NEGATIVE if model.positive else _EACH_TARGET
    if not model.positive and np.ndim(model.alpha) == 0:
        intercept = "free" if model.fit_intercept else "none"
        objective = Objective(
            "squared", float(model.alpha), beside="sum", intercept=intercept, uniform=None
        )
    return Parts(form=lambda: weights_of(model), objective=objective)
