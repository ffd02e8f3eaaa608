"""scikit-learn's naive Bayes of numbers, its networks, and its trees, which have no gradient."""

from __future__ import annotations

import numpy as np

from surelearn.lacking import Lacking
from surelearn.subject.forms import Closed, GaussianForm, NetworkForm, head_of
from surelearn.subject.registry import Parts, described, describes, made
from surelearn.subject.sklearn_linear import class_count
from surelearn.types import Array, Model

_TREES = "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor"
_FORESTS = (
    "ExtraTreesClassifier ExtraTreesRegressor GradientBoostingClassifier GradientBoostingRegressor"
    " HistGradientBoostingClassifier HistGradientBoostingRegressor RandomForestClassifier"
    " RandomForestRegressor"
)
_MEETINGS = "AdaBoostClassifier AdaBoostRegressor BaggingClassifier BaggingRegressor"


def of_trees(model: Model) -> Parts:
    """A model whose answers change in steps."""
    why = (
        f"{type(model).__name__} has no gradient: it is made of trees, whose answers change in"
        " steps"
    )
    return Parts(form=Lacking("closed form", why))


@describes("sklearn.naive_bayes:GaussianNB")
def _naive_bayes(model: Model) -> Parts:
    return Parts(form=lambda: normals(model.theta_, model.var_, np.log(model.class_prior_)))


def normals(means: Array, variances: Array, prior: Array) -> Closed:
    """Naive Bayes of numbers: classes with these means and variances (classes, d) of every
    column.
    """
    offsets = prior - 0.5 * np.log(2.0 * np.pi * variances).sum(axis=1)
    return Closed(GaussianForm(means, variances, offsets), None, "each")


@describes("sklearn.neural_network:MLPClassifier", "sklearn.neural_network:MLPRegressor")
def _network(model: Model) -> Parts:
    return Parts(form=lambda: _layers(model))


def _layers(model: Model) -> Closed | Lacking:
    name = type(model).__name__
    if not hasattr(model, "coefs_"):
        return Lacking("closed form", f"{name} has no coefficients: it is not fitted")
    if model.out_activation_ not in ("identity", "logistic", "softmax"):
        return Lacking(
            "closed form", f"{name} passes its last layer through {model.out_activation_}"
        )
    head = head_of(len(model.intercepts_[-1]), class_count(model))
    layers = tuple(
        (np.asarray(W, dtype=float).T, np.asarray(b, dtype=float))
        for W, b in zip(model.coefs_, model.intercepts_, strict=True)
    )
    return (
        head
        if isinstance(head, Lacking)
        else Closed(NetworkForm(layers, model.activation), None, head)
    )


@describes(
    *(f"sklearn.tree:{name}" for name in _TREES.split()),
    *(f"sklearn.ensemble:{name}" for name in _FORESTS.split()),
)
def _trees(model: Model) -> Parts:
    return of_trees(model)


@describes(*(f"sklearn.ensemble:{name}" for name in _MEETINGS.split()))
def _meeting(model: Model) -> Parts:
    """Members of any kind, which vote: made of trees where the first of them is."""
    first = next((described(member) for member in getattr(model, "estimators_", ())), None)
    form = made(first.form) if isinstance(first, Parts) else None
    return (
        of_trees(model) if isinstance(form, Lacking) and "made of trees" in form.reason else Parts()
    )
