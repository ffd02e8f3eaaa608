"""Newton's method of logistic regression: its derivatives, and the minimizer that scikit-learn finds."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import LinAlgError
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression as Peer

from surelearn.linear import LogisticRegression
from surelearn.linear.logistic import newton, objective
from surelearn.linear.logistic.newton import Softmax, minimize

LAM = 0.003


def problem(classes, share=1.0, weighted=False, n=150, d=4):
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < share) * [1.0, 10.0, 0.1, 3.0]
    y = (X @ rng.normal(size=(d, max(2, classes))) + rng.normal(size=(n, max(2, classes)))).argmax(
        1
    )
    y[: max(2, classes)] = np.arange(max(2, classes))  # none is missing
    s = rng.random(n) + 0.5 if weighted else np.empty(0)
    s = s / s.mean() if weighted else s
    columns = 1 if classes == 2 else classes
    return Softmax.of(sparse.csr_matrix(X), y, s, columns, LAM), rng.normal(size=(d, columns))


def halved(H):
    return np.tril(H) + np.tril(H, -1).T


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.1])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_derivatives_are_those_of_the_objective(classes, share, weighted, monkeypatch):
    """By differences; rows are added up in pieces."""
    monkeypatch.setattr(newton, "_PIECE", 400)
    made, W = problem(classes, share, weighted)
    assert sparse.issparse(made.rows) == (share < 1)
    _, P = made.at(W)
    G, H = made.gradient(W, P), halved(made.matrix(P))
    rng = np.random.default_rng(0)
    for _ in range(5):
        V, h = rng.normal(size=W.shape), 1e-5
        (up, P_up), (down, P_down) = made.at(W + h * V), made.at(W - h * V)
        assert np.vdot(G, V) == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-8)
        bend = (made.gradient(W + h * V, P_up) - made.gradient(W - h * V, P_down)) / (2 * h)
        np.testing.assert_allclose(made.curved(P, V), bend, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose((H @ V.T.ravel()).reshape(V.T.shape).T, made.curved(P, V))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.1])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_the_minimizer_is_scikit_learns(classes, share, weighted):
    made, W = problem(classes, share, weighted)
    found = minimize(made, 5 * W)  # from far away
    assert np.linalg.norm(made.gradient(found, made.at(found)[1])) < 1e-11
    C = 1 / (2 * len(made.labels) * LAM)
    peer = Peer(C=C, fit_intercept=False, solver="newton-cg", tol=1e-12, max_iter=1000)
    peer.fit(made.rows, made.labels, sample_weight=made.weights if weighted else None)
    np.testing.assert_allclose(found, peer.coef_.T, atol=1e-7)


def test_a_factor_serves_several_steps(monkeypatch):
    """What makes it fast: a factor costs as much as many products."""
    made, counted = [], newton._inverse
    monkeypatch.setattr(newton, "_inverse", lambda *given: made.append(1) or counted(*given))
    steps, at = [], Softmax.at
    monkeypatch.setattr(Softmax, "at", lambda self, W: steps.append(1) or at(self, W))
    X, y = load_digits(return_X_y=True)
    model = LogisticRegression(random_state=0).fit(X[:500], y[:500])
    assert model.certificate_["suboptimality"].value < 1e-12
    assert 2 * len(made) < len(steps)


def test_where_rounding_spoils_it_scikit_learns_solver_goes_on(monkeypatch):
    def spoiled(*given):
        raise LinAlgError("not positive definite")

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] > rng.normal(size=200)
    options = {"regularization": 0.01, "random_state": 0}
    first = LogisticRegression(**options).fit(X, y)
    monkeypatch.setattr(objective, "minimize", spoiled)
    second = LogisticRegression(**options).fit(X, y)
    np.testing.assert_allclose(first.coef_, second.coef_, atol=1e-7)
    assert second.certificate_["suboptimality"].value < 1e-9


@pytest.mark.parametrize("scale", [1e-6, 1e3, 1e6])
def test_columns_of_very_different_sizes(scale, monkeypatch):
    """As tables come: what is proved is no worse than with scikit-learn's solver."""

    def spoiled(*given):
        raise LinAlgError("not positive definite")

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [1.0, scale, 1.0]
    y = rng.integers(3, size=300)
    ours = LogisticRegression(random_state=0).fit(X, y)
    monkeypatch.setattr(objective, "minimize", spoiled)
    theirs = LogisticRegression(random_state=0).fit(X, y)
    assert ours.facts_["gradient_norm"] <= 1.01 * theirs.facts_["gradient_norm"]
