"""Sparse logistic regression beside scikit-learn's SGDClassifier: equal epochs, one thread, CPU
time.

    python benchmarks/bench_logistic.py            n = 200,000 (about three minutes)
    python benchmarks/bench_logistic.py --small    n = 20,000 (under a minute)

Rows have 75 entries whose features follow Zipf's law (entries of one feature are summed) and norm
1. Ours stores weights in 4 bytes, with 4-byte unsigned indices; what limits it is one random access
to a weight, 64 bytes from cache or memory, a non-zero, beside 8 bytes of index and value that are
read in order (a floor of 0.4 ns). SGDClassifier's penalty is α/2·‖w‖², so α = 2λ; its intercept is
outside of the penalty, ours is inside, and ours must have the smaller objective all the same.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from _timing import compare
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier

from surelearn.linear import SGD
from surelearn.linear.logistic.learner import LogisticRegression

EPOCHS, ENTRIES, REGULARIZATION, L1 = 5, 75, 5e-6, 5e-6
TARGETS = {10**5: 0.5, 10**6: 0.5, 10**7: 0.7}


def zipf_rows(n: int, d: int, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Rows with `ENTRIES` entries, feature of rank r with probability about 1/(r ln d), and
    labels of a linear rule.
    """
    rng = np.random.default_rng(seed)
    ranks = np.minimum(float(d) ** rng.random((n, ENTRIES)), d).astype(np.int64) - 1
    indices = rng.permutation(d)[ranks].astype(np.int32)
    values = (rng.random((n, ENTRIES)) + 0.5).astype(np.float32)
    X = sparse.csr_matrix(
        (values.ravel(), indices.ravel(), np.arange(0, n * ENTRIES + 1, ENTRIES)), shape=(n, d)
    )
    X.sum_duplicates()
    norms = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
    X.data /= np.repeat(norms, np.diff(X.indptr))
    scores = X @ rng.normal(size=d) * 3 + rng.normal(size=n) * 0.5
    return X, (scores > np.median(scores)).astype(int)


def objective(model, X, y) -> float:
    """(1/n)·Σ ln(1 + e^{−y⟨w, x⟩}) + λ‖w‖², the intercept in the penalty for both."""
    margins = np.where(y == 1, 1, -1) * model.decision_function(X)
    norm = (
        np.square(model.coef_, dtype=np.float64).sum()
        + np.square(model.intercept_, dtype=np.float64).sum()
    )
    return float(np.logaddexp(0, -margins).mean() + REGULARIZATION * norm)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true", help="20,000 rows instead of 200,000")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    n = 20_000 if options.small else 200_000
    if options.small:
        print(
            "the targets below are for n = 200,000: at n = 20,000 fixed costs weigh more and five"
            " epochs are few"
        )
    ours = LogisticRegression(
        regularization=REGULARIZATION,
        epochs=EPOCHS,
        finish=None,
        measure=False,
        sgd=SGD(dtype="float32"),
        random_state=0,
    )
    measured = clone(ours).set_params(measure=True)
    eight = clone(ours).set_params(sgd__dtype="float64")
    lazy = clone(ours).set_params(sgd__engine="lazy")
    l1 = clone(ours).set_params(l1_regularization=L1)
    peer = SGDClassifier(
        loss="log_loss", alpha=2 * REGULARIZATION, max_iter=EPOCHS, tol=None, random_state=0
    )
    elastic = SGDClassifier(**{**peer.get_params(), "penalty": "elasticnet", "l1_ratio": 0.5})
    start = time.perf_counter()
    for model in (ours, measured, eight, lazy, l1):
        model.fit(*zipf_rows(100, 50))
    print(
        f"compilation, or loading it from numba's cache, once: {time.perf_counter() - start:.1f} s"
    )
    seconds = {}
    for d, target in TARGETS.items():
        X, y = zipf_rows(n, d)
        contestants = {
            "LogisticRegression (scaled, 4 bytes)": lambda X=X, y=y: ours.fit(X, y),
            "SGDClassifier": lambda X=X, y=y: peer.fit(X, y),
            "ours, with the gradient for a certificate": lambda X=X, y=y: measured.fit(X, y),
            "ours, 8 bytes": lambda X=X, y=y: eight.fit(X, y),
            "ours, lazy": lambda X=X, y=y: lazy.fit(X, y),
            "ours, lazy, with an L1 penalty": lambda X=X, y=y: l1.fit(X, y),
            "SGDClassifier, with an L1 penalty": lambda X=X, y=y: elastic.fit(X, y),
        }
        compare(
            f"d = {d:,}, {X.nnz / n:.0f} non-zeros a row, {EPOCHS} epochs",
            contestants,
            options.repeats,
        )
        seconds[d] = ratio_line(contestants, X.nnz, options.repeats, target)
        one, other = objective(ours, X, y), objective(peer, X, y)
        print(
            f"  objective {one:.5f} against {other:.5f}: {100 * (one / other - 1):+.2f}% (target at"
            " most +0.5%)"
        )
    print(f"t(10⁷)/t(10⁵) = {seconds[10**7] / seconds[10**5]:.2f} (target at most 4)")


def ratio_line(contestants, nonzeros: int, repeats: int, target: float) -> float:
    """Nanoseconds a non-zero and the ratio of interleaved pairs; the median of ours is returned."""
    pairs = []
    for _ in range(repeats):
        pair = []
        for run in list(contestants.values())[:2]:
            start = time.process_time()
            run()
            pair.append(time.process_time() - start)
        pairs.append(pair)
    ours, peer = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    each = nonzeros * EPOCHS / 1e9
    print(
        f"  {ours / each:.1f} against {peer / each:.1f} ns a non-zero; ratio {ratio:.3f} (target at"
        f" most {target})"
    )
    return ours


if __name__ == "__main__":
    main()
