"""Exact values of machines with a Gaussian kernel, against every coalition."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from surelearn.attribution import explain
from surelearn.attribution.product_kernels import nodes_of
from surelearn.attribution.weights import weights_of
from surelearn.linear import SupportVectorMachine

PRODUCTS = "products over the columns of a Gaussian kernel, exact for this game"
rng = np.random.default_rng(0)
X = rng.normal(size=(120, 6))
two, three = (
    (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int),
    np.digitize(X[:, 0] * X[:, 1], [-0.5, 0.5]),
)
GROUPS = {"first": [0, 1], "second": [2], "rest": [3, 4, 5]}


def machine(name):
    if name == "several outputs":
        pytest.importorskip("torch")
        from surelearn.kernel import Compute, EigenProClassifier

        return EigenProClassifier("gaussian", bandwidth=2.0, compute=Compute(device="cpu")).fit(
            X, three
        ), "score"
    return {
        "svc": lambda: (SVC().fit(X, two), "score"),
        "scaled": lambda: (
            make_pipeline(StandardScaler(), SVC(C=10.0)).fit(3 * X + 1, two),
            "score",
        ),
        "svr": lambda: (SVR().fit(X, X[:, 0]), "value"),
        "ours": lambda: (SupportVectorMachine(kernel="gaussian").fit(X, two), "score"),
    }[name]()


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["columns", "groups"])
@pytest.mark.parametrize("value", ["shapley", "banzhaf"])
@pytest.mark.parametrize("name", ["svc", "scaled", "svr", "ours", "several outputs"])
def test_they_are_those_of_all_coalitions(name, value, groups):
    model, output = machine(name)
    asked = {"output": output, "value": value, "groups": groups}
    closed, every = (
        explain(model, X[:5], X[50:63], method=m, **asked) for m in ("closed form", "exact")
    )
    assert closed.method == PRODUCTS
    assert closed.calls == 0
    np.testing.assert_allclose(closed.values, every.values, atol=1e-11)
    np.testing.assert_allclose(closed.parts, every.parts, atol=1e-11)


def test_the_first_of_two_classes_has_the_opposite_values():
    model, _ = machine("svc")
    first, second = (
        explain(model, X[:3], X[50:60], output="score", target=t, method="closed form")
        for t in (0, 1)
    )
    np.testing.assert_allclose(first.values, -second.values, atol=1e-12)


def test_forty_columns_and_factors_that_vanish():
    """More columns than can be enumerated, one of which is so far away that its factors are 0."""
    wide = rng.normal(size=(80, 40))
    wide[:, 7] *= 1e3
    model = SVC(gamma=0.05).fit(wide, wide[:, 0] > 0)
    made = explain(model, wide[:6], wide[20:40], output="score")
    assert made.method == PRODUCTS
    assert np.isfinite(made.values).all()
    np.testing.assert_allclose(made.values.sum(axis=1), made.full - made.empty, atol=1e-10)


@pytest.mark.parametrize(
    "model",
    [
        SVC(kernel="poly").fit(X, two),
        SVC().fit(X, three),
        SVC().fit(X, np.digitize(X[:, 0], [-0.8, 0.0, 0.8])),
        SVC(kernel=lambda A, B: np.exp(-((A @ B.T) ** 2))).fit(X, two),
    ],
    ids=["another kernel", "three votes", "six votes", "a function"],
)
def test_others_are_not_taken_for_it(model):
    made = explain(model, X[:2], X[50:55], output="score", target=1)
    assert made.method != PRODUCTS


def test_a_model_that_says_something_else_is_not_taken_for_it():
    class Shifted(SVC):
        def decision_function(self, X):
            return super().decision_function(X + 0.1)

    assert explain(Shifted().fit(X, two), X[:2], X[50:55], output="score").method != PRODUCTS


@pytest.mark.parametrize("n", [1, 2, 3, 8, 31])
def test_nodes_give_the_weights(n):
    for value in ("shapley", "banzhaf"):
        assert nodes_of(weights_of(value, n)) is not None
    if n > 2:
        assert nodes_of(weights_of("leave-one-out", n)) is None
