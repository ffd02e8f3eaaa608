"""Thresholds of our own machines in the audit, against slopes of their objectives along the
weights.
"""

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris

from surelearn.auditing.sections.poisoning.work import claims_of, proved
from surelearn.kernel import EigenProClassifier
from surelearn.lacking import Lacking
from surelearn.linear import HuberRegression, SupportVectorMachine
from surelearn.linear.intercept import arguments_of

PAIRS = [(0, 1), (0, 2), (1, 2)]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:120]
    return (X[rows] - X.mean(0)) / X.std(0), y[rows]


def slope(loss, step=1e-6):
    """d/dα of a loss of α·w at α = 1."""
    return (loss(1 + step) - loss(1 - step)) / (2 * step)


@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_pairs_of_support_vector_machines(iris, intercept):
    X, y = iris
    model = SupportVectorMachine(C=0.5, **arguments_of(intercept)).fit(X, y)
    ((_, errors, claim),) = claims_of(proved(model, X, y, X, y, None, 0))
    needed = []
    for w, b, (i, j) in zip(model.coef_, model.intercept_, PAIRS, strict=True):
        own = (y == i) | (y == j)
        t = np.where(y[own] == j, -1.0, 1.0) * (X[own] @ w + b)  # margins at −w
        norm = w @ w + (b * b if intercept == "regularized" else 0.0)
        total = slope(
            lambda a, t=t, norm=norm: np.maximum(0, 1 - a * t).sum() + a * a * norm / (2 * 0.5)
        )
        needed.append(total / len(y))
    assert claim.value == pytest.approx(max(max(needed), sum(needed) / 2), rel=1e-3)
    assert claim.recompute() == claim.value
    assert errors > 0.5


def test_pairs_with_a_kernel_are_those_of_its_features(iris):
    X, y = iris
    plain = SupportVectorMachine(C=0.5, tol=1e-8).fit(X, y)
    # ⟨x, z⟩ + 1
    same = SupportVectorMachine(
        C=0.5, kernel="polynomial", degree=1, fit_intercept=False, tol=1e-8
    ).fit(X, y)
    values = [claims_of(proved(model, X, y, X, y, None, 0))[0][2].value for model in (plain, same)]
    assert values[0] == pytest.approx(values[1], rel=1e-3)


def test_every_output_of_a_kernel_machine(iris):
    X, y = iris
    model = EigenProClassifier(kernel="gaussian", bandwidth=2.0, regularization=1e-3).fit(X, y)
    assert model.facts_["solver"] == "direct"
    ((_, errors, claim),) = claims_of(proved(model, X, y, X, y, None, 0))
    scores, signs = model.decision_function(X), np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    K = np.exp(-((X[:, None] - X) ** 2).sum(2) / (2 * 2.0**2))
    needed = []
    for f, sign in zip(-scores.T, signs.T, strict=True):
        # λ‖f‖², f = Kα
        decay = slope(lambda a, f=f: 1e-3 * a * a * f @ np.linalg.lstsq(K, f, rcond=1e-13)[0])
        needed.append(
            (slope(lambda a, f=f, sign=sign: np.mean((a * f - sign) ** 2)) + decay) / (0.5 - decay)
        )
    assert claim.value == pytest.approx(max(needed), rel=1e-3)
    assert errors > 0.5


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_huber_regression(iris, fit_intercept):
    X, y = iris[0][:, :3], iris[0][:, 3] + 1.0
    model = HuberRegression(threshold=0.2, regularization=0.01, fit_intercept=fit_intercept).fit(
        X, y
    )
    ((_, _, claim),) = claims_of(proved(model, X, y, X, y, None, 0))
    middle = (y.max() + y.min()) / 2 if fit_intercept else 0.0
    s, z = middle - model.predict(X), y - middle
    huber = lambda r: np.where(np.abs(r) <= 0.2, r * r / 2, 0.2 * np.abs(r) - 0.02)  # noqa: E731
    decay = 2 * 0.01 * model.coef_ @ model.coef_
    expected = (slope(lambda a: np.mean(huber(a * s - z))) + decay) / (
        0.2 * (np.abs(z).max() - 0.2) - decay
    )
    assert claim.value == pytest.approx(expected, rel=1e-5)
    assert claim.value > 0.1


def test_weighted_rows_of_two_classes_are_not_covered(iris):
    X, y = iris[0], (iris[1] == 1).astype(int)
    weights = np.where(y == 1, 3.0, 1.0)
    claims_of(proved(SupportVectorMachine(C=0.5).fit(X, y), X, y, X, y, None, 0))
    found = proved(
        SupportVectorMachine(C=0.5).fit(X, y, sample_weight=weights), X, y, X, y, None, 0
    )
    assert isinstance(found, Lacking)
    assert re.match(
        r"no threshold is proved for SupportVectorMachine: it needs .* equally weighted",
        found.reason,
    )
