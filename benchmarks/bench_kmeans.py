"""k-means against scikit-learn: 200,000 rows, 64 features, 100 clusters, one BLAS thread.

    python benchmarks/bench_kmeans.py [--quick]

Equal starts (the same array of centres), equal ``tol`` and ``max_iter``. One full assignment is 2·n·k·d = 2.6·10⁹
operations, about 33 ms as a 4-byte matrix product on the machine of the last run, 76 ms in 8 bytes; scikit-learn spends one
in 8 bytes every iteration. Ours spends one in 4 bytes on the rows whose bounds do not settle them: clusters settle most
rows; noise in 64 dimensions, where all centres are about equally far, is the hard case. Compilation is stated apart.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import _timing  # first: it sets one BLAS thread
import numpy as np
import sklearn.cluster
from scipy import sparse

from surelearn.cluster import KMeans


def data(n, d, k, kind, rng):
    if kind == "noise":
        return rng.normal(size=(n, d))
    spread = {"overlapping clusters": 1.0, "separate clusters": 5.0}[kind]
    return spread * rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))


def texts(n, d, words, rng):
    """Bags of words with Zipf's frequencies, half of a row's words moved to those of its topic; CSR."""
    moved = 37 * rng.integers(100, size=(n, 1)) * (rng.random((n, words)) < 0.5)
    word = np.minimum(rng.zipf(1.3, size=(n, words)) + moved, d) - 1
    X = sparse.csr_array((np.ones(n * words), (np.repeat(np.arange(n), words), word.ravel())), shape=(n, d))
    X.sum_duplicates()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # all that scikit-learn takes
    X.data = np.log1p(X.data)
    return X


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, once")
    quick = parser.parse_args().quick
    n, d, k, repeats = (20_000, 64, 100, 1) if quick else (200_000, 64, 100, 3)
    rng = np.random.default_rng(0)
    start = time.process_time()
    KMeans(3).fit(rng.normal(size=(50, 3)))
    print(f"first fit, with compilation or its cache: {time.process_time() - start:.1f} s")
    for kind in ("noise", "overlapping clusters", "separate clusters"):
        X = data(n, d, k, kind, rng)
        init = X[rng.choice(n, k, replace=False)]
        ours, theirs = KMeans(k, init=init), sklearn.cluster.KMeans(k, init=init, n_init=1)
        contestants = {"surelearn": partial(ours.fit, X), "scikit-learn": partial(theirs.fit, X)}
        _timing.compare(f"{kind}, equal starts", contestants, repeats=repeats if kind != "noise" else 1)
        print(f"  iterations {ours.n_iter_} and {theirs.n_iter_}, inertia ratio {ours.inertia_ / theirs.inertia_:.8f}")
    X = data(n, d, k, "overlapping clusters", rng)
    ours, theirs = KMeans(k, random_state=0), sklearn.cluster.KMeans(k, random_state=0)
    _timing.compare(
        "overlapping clusters, each by its defaults",
        {
            "surelearn (8 plain seedings, certified)": partial(ours.fit, X),
            "scikit-learn (greedy seeding)": partial(theirs.fit, X),
        },
        repeats=repeats,
    )
    print(f"  iterations {ours.n_iter_} and {theirs.n_iter_}, inertia ratio {ours.inertia_ / theirs.inertia_:.5f}")
    print(f"  {ours.certificate_.claims[-1]}")
    X = texts(n // 10, 30_000, 60, rng)
    init = X[rng.choice(n // 10, k, replace=False)].toarray()
    ours, theirs = KMeans(k, init=init), sklearn.cluster.KMeans(k, init=init, n_init=1)
    contestants = {"surelearn": partial(ours.fit, X), "scikit-learn": partial(theirs.fit, X)}
    _timing.compare(f"{n // 10:,} texts, equal starts", contestants, repeats=repeats)
    print(f"  iterations {ours.n_iter_} and {theirs.n_iter_}, inertia ratio {ours.inertia_ / theirs.inertia_:.8f}")


if __name__ == "__main__":
    main()
