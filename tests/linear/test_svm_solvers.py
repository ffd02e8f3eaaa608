"""How the machines are solved: in few passes, as near the optimum as was asked, and what
rounding leaves in doubt.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from surelearn.kernel.functions import Gaussian, Linear
from surelearn.linear.intercept import arguments_of
from surelearn.linear.svm import dual as module
from surelearn.linear.svm.dual import GramDual, RowsDual, gap, solve
from surelearn.linear.svm.learner import SupportVectorMachine
from surelearn.linear.svm.machine import MarginProblem, train


def texts(seed, n=800, d=3000, words=30):
    """Rows of unit length with a few words each; some words tell the class."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], n)
    word = np.where(
        rng.random((n, words)) < 0.05, d - 1 - (y[:, None] > 0), rng.integers(d, size=(n, words))
    )
    X = sparse.csr_array(
        (np.ones(n * words), (np.repeat(np.arange(n), words), word.ravel())), shape=(n, d)
    )
    X.sum_duplicates()
    X = sparse.csr_array(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))[:, None]))
    # all that scikit-learn takes
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


@pytest.mark.parametrize("form", [sparse.csr_array, lambda X: X.toarray()], ids=["sparse", "dense"])
@pytest.mark.parametrize(("C", "most"), [(0.1, 20), (10.0, 40)])
def test_wide_rows_take_few_passes_to_what_liblinear_finds(form, C, most):
    X, y = texts(0)
    X = form(X)
    ours = SupportVectorMachine(C=C, random_state=0).fit(X, y)
    theirs = LinearSVC(loss="hinge", C=C, tol=1e-9, max_iter=10**5, random_state=0).fit(X, y)
    w = np.append(theirs.coef_, theirs.intercept_)
    objective = w @ w / 2 + C * np.maximum(0, 1 - y * theirs.decision_function(X)).sum()
    assert ours.facts_["primal"] == pytest.approx(objective, rel=1e-6)
    assert ours.certificate_["suboptimality"].value <= 1e-7 * objective
    # shrinking: LIBLINEAR makes hundreds of rounds, over fewer and fewer rows
    assert ours.n_iter_ <= most


@pytest.mark.parametrize("seed", range(5))
def test_newton_steps_stay_in_the_box_and_only_gain(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    Z, upper = rng.normal(size=(40, 6)), rng.uniform(0.5, 2, size=40)
    for dual in (RowsDual(Z, upper), GramDual(Z @ Z.T, upper)):
        monkeypatch.setattr(module, "_NEWTON_STEPS", 1)
        dual.alpha = rng.uniform(0.01, 0.99, size=40) * upper
        dual.alpha[:5], dual.alpha[5:10] = 0.0, upper[5:10]
        values = []
        for _ in range(6):
            values.append(dual.alpha.sum() - dual.alpha @ dual.margins() / 2)
            module._newton(dual, dual.margins(), 40)
            assert ((dual.alpha >= 0) & (dual.alpha <= upper)).all()
            assert (dual.alpha[:5] == 0).all()
            assert (dual.alpha[5:10] == upper[5:10]).all()
        assert (np.diff(values) >= -1e-12 * abs(values[-1])).all()
        assert values[-1] > values[0]


def test_rows_that_come_back_after_shrinking():
    """What was left out early is looked at again before the end: the gradients of all rows
    agree, not of some.
    """
    rng = np.random.default_rng(0)
    Z, upper = rng.normal(size=(300, 10)) + 0.3, np.full(300, 0.1)
    for rows in (Z, sparse.csr_array(Z)):
        dual = RowsDual(rows, upper)
        passes = dual.ascend(10_000, 1e-6, 1)
        assert gap(dual.alpha, upper, dual.margins()) <= 1e-6 * upper.sum()
        assert passes < 10_000
    assert solve(RowsDual(Z, upper), tol=1e-15, passes=3, random=np.random.RandomState(0)) <= 3


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(bandwidth=1.414)], ids=repr)
def test_a_free_intercept_reaches_the_tolerance(kernel, tol):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 4))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, 1.0, -1.0)
    machine = train(
        MarginProblem(X, y, np.ones(300), kernel, "free"), tol=tol, passes=10, random=None
    )
    assert machine.gap <= tol * 300


def test_a_kernel_matrix_in_pieces_is_the_kernel_matrix():
    X, signs = np.random.default_rng(0).normal(size=(900, 3)), np.tile([1.0, -1.0], 450)
    for intercept, padding in (("regularized", 1.0), ("none", 0.0)):
        Q = MarginProblem(X, signs, None, Gaussian(bandwidth=1.0), intercept).gram()
        np.testing.assert_allclose(
            Q, (Gaussian(bandwidth=1.0)(X, X) + padding) * np.outer(signs, signs), atol=1e-14
        )


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_the_compression_claim_knows_the_rounding_of_the_gap(kernel, intercept):
    """‖w − w*‖ ≤ √(2(P − D + rounding)): one allowance for all claims, not the smaller one of
    the solver.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2)) + 1000.0
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=80) > 1000.0, 1, -1)
    model = SupportVectorMachine(kernel=kernel, **arguments_of(intercept), C=0.1, tol=1e-5).fit(
        X, y
    )
    facts = model.facts_
    proved = facts["primal"] - facts["dual"] + facts["gap_rounding"]
    assert model.record_.gap == proved
    assert model.record_.weight_error == math.sqrt(2 * proved)
    assert proved > facts["gap_rounding"] > 0
    assert (facts["bias_error"] > 0) == (intercept == "free")
