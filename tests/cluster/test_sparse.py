"""Sparse rows in k-means: what dense rows give, to rounding, at the price of the entries."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import sklearn.cluster
from scipy import sparse

from surelearn.certificate import Certificate
from surelearn.cluster import KMeans
from surelearn.cluster.kmeans import distances, nearest_centers
from surelearn.cluster.sparse import CSRRows
from surelearn.cluster.spectrum import singular_values


def documents(seed, n=400, d=300, topics=5, words=12, unit=True):
    """Rows with a few words each, most from their topic; some are empty, some are copies. Of
    unit length, many tie.
    """
    rng = np.random.default_rng(seed)
    topic, size = rng.integers(topics, size=(n, 1)), d // topics
    word = rng.integers(d, size=(n, words))
    word = np.where(rng.random((n, words)) < 0.8, topic * size + word % size, word)
    X = np.zeros((n, d))
    np.add.at(
        X, (np.repeat(np.arange(n), words), word.ravel()), rng.uniform(0.5, 2, size=n * words)
    )
    if unit:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[:7] = 0.0
    X[7:11] = X[11]
    return X


@pytest.mark.parametrize("init", ["k-means++", "greedy", "random", "given"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_sparse_rows_give_what_dense_rows_give(seed, weighted, init):
    X = documents(seed)
    w = (
        np.random.default_rng(seed).uniform(0, 2, len(X)) * (np.arange(len(X)) % 9 > 0)
        if weighted
        else None
    )
    options = {
        "n_init": 2,
        "random_state": seed,
        "init": X[[20, 30, 40, 50, 60, 70]] if init == "given" else init,
    }
    dense = KMeans(6, **options).fit(X, sample_weight=w)
    thin = KMeans(6, **options).fit(sparse.csr_array(X), sample_weight=w)
    assert thin.inertia_ == pytest.approx(dense.inertia_, rel=1e-10)
    assert (thin.n_iter_, thin.stopped_) == (dense.n_iter_, dense.stopped_)
    np.testing.assert_array_equal(thin.labels_, dense.labels_)
    np.testing.assert_allclose(thin.cluster_centers_, dense.cluster_centers_, atol=1e-12)
    np.testing.assert_allclose(
        thin.facts_["seeding_costs"], dense.facts_["seeding_costs"], rtol=1e-10
    )
    ours, theirs = (
        np.sum(np.square(model.facts_["singular_values"])[5:]) for model in (thin, dense)
    )
    assert theirs * (1 - 1e-9) <= ours <= theirs * (1 + 1e-12)
    for one, other in zip(thin.certificate_.claims, dense.certificate_.claims, strict=True):
        assert (one.theorem, one.value) == (other.theorem, pytest.approx(other.value, rel=1e-8))
    np.testing.assert_array_equal(thin.predict(sparse.csr_array(X)), dense.predict(X))
    np.testing.assert_allclose(thin.transform(sparse.csr_array(X)), dense.transform(X), atol=1e-12)
    assert thin.score(sparse.csr_array(X)) == pytest.approx(dense.score(X), rel=1e-10)
    assert Certificate.from_json(thin.certificate_.to_json()).verify(thin)


def test_scikit_learn_ends_at_the_same_place():
    X = sparse.csr_array(documents(0, n=2000, unit=False))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    start = X[20:40].toarray()
    ours = KMeans(20, init=start).fit(X)
    theirs = sklearn.cluster.KMeans(20, init=start, n_init=1).fit(X)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)


def test_centers_wider_than_all_rows_together():
    """Distances between centers are then not worth computing; nothing changes but the time."""
    X = sparse.csr_array(documents(0, n=300, d=800))
    start = X[30:50].toarray()
    assert X.nnz < start.size
    ours, dense = KMeans(20, init=start).fit(X), KMeans(20, init=start).fit(X.toarray())
    assert ours.n_iter_ == dense.n_iter_ > 2
    np.testing.assert_array_equal(ours.labels_, dense.labels_)


def test_rows_are_never_filled_in():
    """5,000 texts with 40,000 words would be 1.6 GB; the eight seedings and the dense centers
    are what is held.
    """
    rng = np.random.default_rng(0)
    X = sparse.random(5000, 40_000, density=5e-4, format="csr", random_state=rng)
    KMeans(2, max_iter=2, random_state=0).fit(X[:50])  # compiled before
    tracemalloc.start()
    model = KMeans(4, max_iter=5, random_state=0).fit(X)
    model.predict(X), model.transform(X), model.score(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6
    assert any("too dear" in absent.reason for absent in model.certificate_.lacking)
    assert {claim.theorem for claim in model.certificate_.claims} >= {
        "kmeans_ratio",
        "kmeans_optimum_lower_bound",
    }


def test_wide_indices_in_any_order_twice_or_empty():
    X = documents(1)
    plain = KMeans(5, random_state=0).fit(sparse.csr_array(X))
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    rows, columns = np.nonzero(X)
    backwards = np.lexsort((-columns, rows))
    halves = np.repeat(X[rows, columns][backwards] / 2, 2)
    ends = 2 * np.cumsum([0, *np.bincount(rows, minlength=len(X))])
    mixed = sparse.csr_array((halves, np.repeat(columns[backwards], 2), ends), shape=X.shape)
    before = mixed.data.copy()
    for other in (wide, mixed, sparse.csc_array(X), sparse.csr_matrix(X)):
        model = KMeans(5, random_state=0).fit(other)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-12)
    np.testing.assert_array_equal(mixed.data, before)
    assert KMeans(2, random_state=0).fit(sparse.csr_array((5, 3))).inertia_ == 0.0


def test_rows_far_from_the_origin_do_not_cancel():
    rng = np.random.default_rng(0)
    X = (
        np.array([1e4, 0.0, 0.0])
        + 1e-3 * rng.normal(size=(200, 3))
        + np.repeat([[0.0, 1e-2, 0], [0, 0, 1e-2]], 100, axis=0)
    )
    thin = sparse.csr_array(X)
    model, dense = KMeans(2, random_state=0).fit(thin), KMeans(2, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, dense.labels_)
    assert model.inertia_ == pytest.approx(dense.inertia_, rel=1e-5)
    far = distances(sparse.csr_array([[1e8, 1e-7]]), np.array([[1e8, 0.0], [1e8 + 1, 0.0]]))
    assert far[0] == pytest.approx([1e-7, 1.0], rel=1e-9)
    # what rounding hides is not claimed
    spectrum = singular_values(CSRRows(thin), np.ones(200), 2)
    assert np.sum(spectrum[1:] ** 2) <= np.sum(
        np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[1:] ** 2
    )


def test_the_first_of_equal_centers_wins():
    centers = np.random.default_rng(0).normal(size=(6, 9))
    doubled = np.vstack([centers, centers])
    assert nearest_centers(sparse.csr_array(centers), doubled)[0].tolist() == [0, 1, 2, 3, 4, 5]
    # equally far from all the others, but for rounding
    axes = sparse.csr_array(np.eye(9)[[5, 6, 7]])
    for shift in (0.0, 0.1):
        labels = nearest_centers(axes, np.eye(9)[:4] + shift)[0]
        assert (
            labels.tolist()
            == nearest_centers(axes.toarray(), np.eye(9)[:4] + shift)[0].tolist()
            == [0, 0, 0]
        )


@pytest.mark.parametrize(
    ("entry", "k", "match"),
    [
        (np.nan, 2, "NaN"),
        (np.inf, 2, "infinity"),
        (1e200, 2, "rescale"),
        (1.0, 9, "n_clusters=9 exceeds n_samples=3"),
    ],
)
def test_impossible_rows_are_refused(entry, k, match):
    with pytest.raises(ValueError, match=match):
        KMeans(k).fit(sparse.csr_array(np.array([[entry, 0.0], [0.0, 1.0], [0.0, 0.0]])))
