"""scikit-learn's naive Bayes of numbers, and its networks."""

from __future__ import annotations

import numpy as np

from surelearn.lacking import Lacking
from surelearn.subject.forms import Closed, GaussianForm, NetworkForm, head_of
from surelearn.subject.registry import Parts, describes
from surelearn.subject.sklearn_linear import class_count
from surelearn.types import Array, Model


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
