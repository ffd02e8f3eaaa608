"""k-means against scikit-learn: 200,000 rows, 64 features, 100 clusters, one BLAS thread.

    python benchmarks/bench_kmeans.py [--quick]

First both by their defaults on six kinds of rows, five seeds each, in turn: ratios of CPU times and
of inertias, median and range. On rows around 100 centers with unit spread, in 4 bytes and 20 iterations,
ours is to take at most half of scikit-learn's time at no higher inertia. A start costs eight
certified seedings, each 2·n·k·d operations in 4 bytes, and a search on a sample; the least that any
method spends is one assignment of all rows, whose price is printed.

Then equal starts (the same array of centers), equal ``tol`` and ``max_iter``: scikit-learn spends
one assignment every iteration. Ours spends one in 4 bytes on the rows whose bounds do not settle
them: clusters settle most rows; noise in 64 dimensions, where all centers are about equally far, is
the hard case. Compilation is stated apart.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import _timing  # first: it sets one BLAS thread
import numpy as np
import sklearn.cluster
from scipy import sparse
from sklearn.datasets import load_digits

from surelearn.cluster import KMeans


def data(n, d, k, kind, rng):
    if kind == "noise":
        return rng.normal(size=(n, d))
    spread = {"overlapping clusters": 1.0, "separate clusters": 5.0}[kind]
    return spread * rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))


def texts(n, d, words, rng):
    """Bags of words with Zipf's frequencies, half of a row's words moved to those of its topic;
    CSR.
    """
    moved = 37 * rng.integers(100, size=(n, 1)) * (rng.random((n, words)) < 0.5)
    word = np.minimum(rng.zipf(1.3, size=(n, words)) + moved, d) - 1
    X = sparse.csr_array(
        (np.ones(n * words), (np.repeat(np.arange(n), words), word.ravel())), shape=(n, d)
    )
    X.sum_duplicates()
    # all that scikit-learn takes
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    X.data = np.log1p(X.data)
    return X


def defaults(title, X, k, max_iter, seeds):
    """Both by their defaults, in turn: ratios of CPU times and inertias over the seeds."""
    times, costs = [], []
    for seed in range(seeds):
        seconds = []
        models = [
            cls(k, max_iter=max_iter, random_state=seed) for cls in (KMeans, sklearn.cluster.KMeans)
        ]
        for model in models:
            start = time.process_time()
            model.fit(X)
            seconds.append(time.process_time() - start)
        times.append(seconds)
        costs.append(models[0].inertia_ / models[1].inertia_)
    ours, theirs = np.median(times, axis=0)
    ratios = np.divide(*np.transpose(times))
    print(
        f"{title:<44} time ratio {np.median(ratios):.3f} [{min(ratios):.3f}, {max(ratios):.3f}] of"
        f" {theirs:.4f} s, inertia ratio {np.median(costs):.4f} [{min(costs):.4f}, {max(costs):.4f}]"
    )
    return ours


def by_defaults(n, d, k, seeds, rng):
    low = np.float32
    places = 10 * rng.random((k, 2))
    kinds = {
        "overlapping clusters": data(n, d, k, "overlapping clusters", rng).astype(low),
        "separate clusters": data(n, d, k, "separate clusters", rng).astype(low),
        "noise": data(n, d, k, "noise", rng).astype(low),
        "clusters in the plane": (
            (places[rng.integers(k, size=n)] + 0.2 * rng.normal(size=(n, 2))).astype(low)
        ),
    }
    print("each by its defaults, 20 iterations, 4-byte rows")
    for kind, X in kinds.items():
        ours = defaults(f"  {kind}", X, k, 20, seeds)
        if kind == "overlapping clusters":
            factors, start = np.ascontiguousarray(X[:k].T), time.process_time()
            for part in range(0, n, 512):
                np.dot(X[part : part + 512], factors)
            print(
                f"  one assignment's product is {(time.process_time() - start) / ours:.1%} of our"
                " time"
            )
    some = kinds["overlapping clusters"][: n // 10]
    defaults(f"  overlapping clusters, {n // 10:,} rows", some, k, 20, seeds)
    defaults("  digits, 300 iterations", load_digits().data, 10, 300, 5 * seeds)
    defaults(f"  {n // 10:,} sparse texts", texts(n // 10, 30_000, 60, rng), k, 20, seeds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    quick = parser.parse_args().quick
    n, d, k, repeats = (20_000, 64, 100, 1) if quick else (200_000, 64, 100, 3)
    seeds = 5
    rng = np.random.default_rng(0)
    start = time.process_time()
    KMeans(3).fit(rng.normal(size=(50, 3)))
    print(f"first fit, with compilation or its cache: {time.process_time() - start:.1f} s")
    KMeans(3).fit(rng.normal(size=(50, 3)).astype(np.float32))
    by_defaults(n, d, k, seeds, rng)
    for kind in ("noise", "overlapping clusters", "separate clusters"):
        X = data(n, d, k, kind, rng)
        init = X[rng.choice(n, k, replace=False)]
        ours, theirs = KMeans(k, init=init), sklearn.cluster.KMeans(k, init=init, n_init=1)
        contestants = {"surelearn": partial(ours.fit, X), "scikit-learn": partial(theirs.fit, X)}
        _timing.compare(
            f"{kind}, equal starts", contestants, repeats=repeats if kind != "noise" else 1
        )
        print(
            f"  iterations {ours.n_iter_} and {theirs.n_iter_}, inertia ratio"
            f" {ours.inertia_ / theirs.inertia_:.8f}"
        )
    X = texts(n // 10, 30_000, 60, rng)
    init = X[rng.choice(n // 10, k, replace=False)].toarray()
    ours, theirs = KMeans(k, init=init), sklearn.cluster.KMeans(k, init=init, n_init=1)
    contestants = {"surelearn": partial(ours.fit, X), "scikit-learn": partial(theirs.fit, X)}
    _timing.compare(f"{n // 10:,} texts, equal starts", contestants, repeats=repeats)
    print(
        f"  iterations {ours.n_iter_} and {theirs.n_iter_}, inertia ratio"
        f" {ours.inertia_ / theirs.inertia_:.8f}"
    )


if __name__ == "__main__":
    main()
