"""Models that are known exactly: by the class itself, not by its name, nor by attributes that another class may have."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_REGRESSORS = (
    "ARDRegression BayesianRidge ElasticNet ElasticNetCV HuberRegressor Lars LarsCV Lasso LassoCV LassoLars LassoLarsCV "
    "LassoLarsIC LinearRegression MultiTaskElasticNet MultiTaskElasticNetCV MultiTaskLasso MultiTaskLassoCV "
    "OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV PassiveAggressiveRegressor QuantileRegressor Ridge RidgeCV "
    "SGDRegressor TheilSenRegressor"
)
_CLASSIFIERS = (
    "LogisticRegression LogisticRegressionCV PassiveAggressiveClassifier Perceptron RidgeClassifier RidgeClassifierCV "
    "SGDClassifier"
)
_OURS = (
    "DPLogisticRegression HuberRegression LeastSquares LogisticRegression NaiveBayes Perceptron Ridge SquareRootLasso "
    "SupportVectorMachine VariationalRegression"
)
MODELS = {  # by the public module that has them
    "sklearn.discriminant_analysis": ("LinearDiscriminantAnalysis",),
    "sklearn.linear_model": tuple(f"{_REGRESSORS} {_CLASSIFIERS}".split()),
    "sklearn.naive_bayes": ("GaussianNB",),
    "sklearn.neural_network": ("MLPClassifier", "MLPRegressor"),
    "sklearn.svm": ("LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "SVC", "SVR"),
    "surelearn.kernel": ("EigenProClassifier", "EigenProRegressor", "LinearEigenProRegressor"),
    "surelearn.linear": tuple(_OURS.split()),
    "surelearn.robust": ("AdversarialLinearClassifier",),
}
_OF_TREES = ("tree_", "_predictors", "booster_", "get_booster")


def known_as(thing: Any, *places: str) -> str:
    """The name under which one of the modules ``places`` has the very class of ``thing``; "" where none has.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> class Mine(SVC): ...
    >>> known_as(SVC(), "sklearn.svm"), known_as(Mine(), "sklearn.svm")
    ('SVC', '')
    """
    return type(thing).__name__ if any(_has(place, type(thing)) for place in places) else ""


def _has(place: str, kind: type) -> bool:
    return getattr(sys.modules.get(place), kind.__name__, None) is kind


def replaced(thing: Any) -> str:
    """The first method that the object has of its own instead of its class's; "" where there is none."""
    kind = type(thing)
    return next((name for name in getattr(thing, "__dict__", ()) if callable(getattr(kind, name, None))), "")


def why_unknown(model: Any) -> str:
    """Why nothing is known of how the model computes its scores, in a sentence; "" for `MODELS`, as they come."""
    name = type(model).__name__
    if _listed(type(model)):
        method = replaced(model)
        return f"{name} has no gradient that is known: its method {method} was replaced" if method else ""
    if _of_trees(model):
        return f"{name} has no gradient: it is made of trees, whose answers change in steps"
    if parent := next((kind.__name__ for kind in type(model).__mro__[1:] if _listed(kind)), ""):
        return f"{name} has no gradient that is known: it may score otherwise than {parent}, from which it inherits"
    if not hasattr(model, "predict"):
        return f"{name} has no gradient that is known: a function gives answers, not how it comes to them"
    return f"{name} has no gradient that is known: how its scores come from the numbers is not written down here"


def _listed(kind: type) -> bool:
    return any(kind.__name__ in names and _has(place, kind) for place, names in MODELS.items())


def _of_trees(model: Any) -> bool:
    members = getattr(model, "estimators_", None)
    first = members
    while isinstance(first, (list, tuple, np.ndarray)) and np.ndim(first) and len(first):
        first = first[0]
    return any(hasattr(part, name) for part in (model, first) for name in _OF_TREES)
