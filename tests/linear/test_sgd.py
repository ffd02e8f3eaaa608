"""Both sparse engines against dense stochastic gradient descent written with NumPy, and the
order of the rows.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, softmax

from surelearn.linear.logistic import sgd
from surelearn.linear.logistic.rows import make_rows, step_sizes
from surelearn.linear.logistic.sgd import (
    FREE_BIAS,
    NO_BIAS,
    PENALIZED_BIAS,
    CompressedRows,
    StochasticDescent,
    block_order,
)

BIASES = (NO_BIAS, PENALIZED_BIAS, FREE_BIAS)


def problem(seed=0, n=90, d=40, classes=2, weighted=False):
    rng = np.random.default_rng(seed)
    X = sparse.random(
        n, d, density=0.12, format="csr", random_state=seed, data_rvs=rng.standard_normal
    )
    codes = rng.integers(classes, size=n)
    weights = rng.exponential(size=n) if weighted else np.empty(0)
    return X, codes, make_rows(X, codes, classes, weights, "float64")


def dense_sgd(X, codes, classes, order, steps, decay, shrinkage, bias, weights=(), kappa=1.0):
    """The update of the slides on every weight; returns the weights and the mean of those
    before each step.
    """
    padded = np.column_stack([X.toarray(), np.full(X.shape[0], float(bias != NO_BIAS))])
    W = np.zeros((padded.shape[1], 1 if classes == 2 else classes))
    total = np.zeros_like(W)
    for i, eta in zip(order, steps, strict=True):
        x = padded[i]
        total += W
        scores = x @ W
        target = np.array([codes[i]]) if classes == 2 else np.eye(classes)[codes[i]]
        g = (expit(scores) if classes == 2 else softmax(scores)) - target
        g = g * (weights[i] if len(weights) else 1.0)
        penalized = np.append(np.ones(len(W) - 1), float(bias == PENALIZED_BIAS))[:, None]
        step = np.append(np.full(len(W) - 1, eta), kappa * eta)[:, None]
        W = W - step * (np.outer(x, g) + 2 * decay * penalized * W)
        W = np.sign(W) * np.maximum(abs(W) - step * shrinkage * penalized, 0)
    return W, total / len(order)


def schedules(n):
    return {
        "constant": step_sizes("constant", 0.3, 0.0, 0, n, 0),
        "inverse": step_sizes("inverse", 0.9, 0.05, 0, n, 0),
        "sqrt": step_sizes("sqrt", 0.7, 0.1, 0, n, 0),
        "steps": np.concatenate([step_sizes("steps", 0.8, 0.3, 0, n // 3, k) for k in range(3)]),
    }


@pytest.mark.parametrize("schedule", ["constant", "inverse", "sqrt", "steps"])
@pytest.mark.parametrize(("engine", "shrinkage"), [("scaled", 0.0), ("lazy", 0.0), ("lazy", 0.02)])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(
    ("bias", "kappa"), [*((bias, 1.0) for bias in BIASES), (PENALIZED_BIAS, 0.1), (FREE_BIAS, 0.1)]
)
def test_both_engines_are_dense_sgd(schedule, engine, shrinkage, classes, bias, kappa):
    X, codes, rows = problem(classes=classes, weighted=True)
    n = 3 * len(rows)
    order = np.concatenate([block_order(len(rows), np.random.RandomState(k)) for k in range(3)])
    steps = schedules(n)[schedule]
    want, mean = dense_sgd(
        X, codes, classes, order, steps, 0.05, shrinkage, bias, rows.weights, kappa
    )
    options = {
        "decay": 0.05,
        "shrinkage": shrinkage,
        "bias": bias,
        "bias_step": kappa,
        "engine": engine,
    }
    descent = StochasticDescent(np.zeros_like(want), summed=np.zeros((1, 1)), **options)
    for part in np.split(np.arange(n), 3):  # pass by pass, as a learner does it
        descent.run(rows, order[part], steps[part])
    np.testing.assert_allclose(descent.weights(), want, rtol=0, atol=1e-10)
    np.testing.assert_allclose(descent.average(), mean, rtol=0, atol=1e-10)
    plain = StochasticDescent(np.zeros_like(want), **options)
    plain.run(rows, order, steps)
    np.testing.assert_allclose(plain.weights(), want, rtol=0, atol=1e-10)
    assert abs(want[:-1]).max() > 0.1
    if shrinkage:
        assert (want[:-1] == 0).any()


@pytest.mark.parametrize("engine", ["scaled", "lazy"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_decay_that_would_underflow(engine, classes):
    """The product of 3,000 factors 0.04 is 1e−4194: scales are renormalized, counters begin
    anew.
    """
    X, codes, rows = problem(classes=classes)
    order = np.tile(np.arange(len(rows)), 34)[:3000]
    steps = np.full(3000, 0.8)
    want, mean = dense_sgd(X, codes, classes, order, steps, 0.6, 0.0, PENALIZED_BIAS)
    descent = StochasticDescent(
        np.zeros_like(want), decay=0.6, engine=engine, summed=np.zeros((1, 1))
    )
    descent.run(rows, order, steps)
    np.testing.assert_allclose(descent.weights(), want, rtol=0, atol=1e-10)
    np.testing.assert_allclose(descent.average(), mean, rtol=0, atol=1e-10)
    assert np.isfinite(want).all()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("averaging", [False, True])
@pytest.mark.parametrize("length", [1, 7, 100])
def test_a_short_table_begins_anew(classes, averaging, length, monkeypatch):
    """Counters that go on over several passes, a table that is full in the middle of one,
    weights asked for in between.
    """
    monkeypatch.setattr(sgd, "_TABLE", length)
    X, codes, rows = problem(classes=classes)
    order, steps = np.tile(np.arange(90), 3), step_sizes("sqrt", 0.7, 0.1, 0, 270, 0)
    want, mean = dense_sgd(X, codes, classes, order, steps, 0.05, 0.02, PENALIZED_BIAS)
    summed = np.zeros((1, 1)) if averaging else None
    descent = StochasticDescent(
        np.zeros_like(want), decay=0.05, shrinkage=0.02, engine="lazy", summed=summed
    )
    for part in np.split(np.arange(270), [50, 180]):
        descent.run(rows, order[part], steps[part])
        descent.weights()
    np.testing.assert_allclose(descent.weights(), want, rtol=0, atol=1e-10)
    if averaging:
        np.testing.assert_allclose(descent.average(), mean, rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", range(30))
def test_lazy_and_scaled_agree_on_random_problems(seed):
    rng = np.random.default_rng(seed)
    classes, bias = int(rng.integers(2, 5)), int(rng.integers(3))
    _, _, rows = problem(seed, n=200, d=int(rng.integers(1, 300)), classes=classes)
    steps = step_sizes("sqrt", float(rng.uniform(0.1, 2)), 0.01, 0, 200, 0)
    found = []
    for engine in ("scaled", "lazy"):
        start = np.zeros((rows_width(rows), 1 if classes == 2 else classes))
        descent = StochasticDescent(
            start, decay=0.1, bias=bias, engine=engine, summed=np.zeros((1, 1))
        )
        descent.run(rows, block_order(200, np.random.RandomState(seed)), steps)
        found.append((descent.weights(), descent.average()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)


def rows_width(rows):
    return 302 if rows.indices.size == 0 else int(rows.indices.max()) + 2


def test_decaying_before_predicting_is_another_algorithm():
    """The slides' order as printed: the test above must be able to see the difference."""
    X, codes, _ = problem()
    order, steps = np.arange(90), np.full(90, 0.3)
    want, _ = dense_sgd(X, codes, 2, order, steps, 0.05, 0.0, NO_BIAS)
    W = np.zeros(41)
    for i in order:
        x = np.append(X[i].toarray().ravel(), 0.0)
        W *= 1 - 2 * 0.3 * 0.05
        W -= 0.3 * (1 / (1 + np.exp(-x @ W)) - codes[i]) * x
    assert abs(W - want[:, 0]).max() > 1e-3


@pytest.mark.parametrize("engine", ["scaled", "lazy"])
def test_four_byte_weights_come_close(engine):
    _, _, rows = problem()
    four = make_rows(*problem()[:2], 2, np.empty(0), "float32")
    found = []
    for kind, these in ((np.float64, rows), (np.float32, four)):
        descent = StochasticDescent(
            np.zeros((41, 1), kind), decay=0.01, engine=engine, summed=np.zeros((1, 1))
        )
        descent.run(these, np.arange(90), np.full(90, 0.3))
        assert descent.weights().dtype == kind
        found.append((descent.weights(), descent.average()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("engine", ["scaled", "lazy"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_loss_met_on_the_way(engine, classes):
    """With no step at all it is ln K."""
    _, _, rows = problem(classes=classes)
    descent = StochasticDescent(np.zeros((41, 1 if classes == 2 else classes)), engine=engine)
    loss = descent.run(rows, np.arange(90), np.zeros(90), want_loss=True)
    assert loss == pytest.approx(np.log(classes), rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 127, 128, 1000, 3199, 3200, 10_007])
def test_every_row_is_visited_once_a_pass(n):
    order = block_order(n, np.random.RandomState(0))
    assert np.array_equal(np.sort(order), np.arange(n))


def test_the_order_of_a_pass():
    order = block_order(40_000, np.random.RandomState(0))
    first = order[:400].reshape(10, 8, 5)  # ten turns of eight blocks, five rows of each
    blocks = first.transpose(1, 0, 2).reshape(8, 50)
    assert (np.diff(blocks, axis=1) == 1).all()
    assert (blocks[:, 0] % 50 == 0).all()
    assert not np.array_equal(order, block_order(40_000, np.random.RandomState(1)))
    assert np.array_equal(order, block_order(40_000, np.random.RandomState(0)))


def test_a_file_sorted_by_label_is_mixed():
    """Never many rows of one label in a row, though the file has 20,000: runs are as short as
    with coin tosses.
    """
    labels = np.arange(40_000) >= 20_000
    runs = [
        len(list(run))
        for _, run in itertools.groupby(labels[block_order(40_000, np.random.RandomState(3))])
    ]
    assert labels[block_order(40_000, np.random.RandomState(3))][:1000].mean() == pytest.approx(
        0.5, abs=0.25
    )
    assert max(runs) <= 150
    assert np.median(runs) <= 10


def test_refusals():
    _, _, rows = problem()
    with pytest.raises(ValueError, match="engine"):
        StochasticDescent(np.zeros((41, 1)), engine="dense")
    with pytest.raises(ValueError, match="bias_step"):
        StochasticDescent(np.zeros((41, 1)), bias_step=2.0)
    with pytest.raises(ValueError, match="L1"):
        StochasticDescent(np.zeros((41, 1)), shrinkage=0.1)
    with pytest.raises(ValueError, match="step must be below"):
        StochasticDescent(np.zeros((41, 1)), decay=1.0).run(rows, np.arange(90), np.full(90, 0.5))
    with pytest.raises(ValueError, match="summed"):
        StochasticDescent(np.zeros((41, 1))).average()


def test_sixty_four_bit_indices_and_duplicates():
    X, codes, rows = problem()
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    again = make_rows(wide, codes, 2, np.empty(0), "float64")
    assert again.indices.dtype == np.uint32
    assert np.array_equal(again.indices, rows.indices)
    twice = sparse.csr_matrix(
        (np.tile(X.data, 1).repeat(2) / 2, X.indices.repeat(2), X.indptr * 2), shape=X.shape
    )  # every entry in two halves
    before = twice.data.copy()
    merged = make_rows(twice, codes, 2, np.empty(0), "float64")
    np.testing.assert_allclose(merged.data, X.sorted_indices().data)
    assert np.array_equal(twice.data, before)
    assert isinstance(merged, CompressedRows)
