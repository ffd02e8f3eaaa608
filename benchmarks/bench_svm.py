"""The price of a certificate: our support vector machine and perceptron beside scikit-learn's fit
alone, one BLAS thread.

    python benchmarks/bench_svm.py [--quick]

Ours are timed with their certificates, scikit-learn's have none. The machines minimize the same
objective where the form is the same (LinearSVC and ours with a regularized intercept, SVC and ours
with a free one); the relative gap that ours proves is printed beside the objective's ratio,
scikit-learn's over ours. Compilation is stated apart.
"""

from __future__ import annotations

import argparse
import time
import warnings

import _timing  # first: it sets one BLAS thread
import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron as TheirPerceptron
from sklearn.svm import SVC, LinearSVC

from surelearn.linear import Perceptron, SupportVectorMachine
from surelearn.linear.intercept import arguments_of

C, BANDWIDTH = 1.0, 10.0**0.5


def rows(n, d, rng, noise=1.0):
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, :3].sum(axis=1) + noise * rng.normal(size=n) > 0, 1, -1)


def texts(n, d, words, rng):
    """Bags of words with Zipf's frequencies, of unit length; some rare words tell the class."""
    y = rng.choice([-1, 1], n)
    word = np.minimum(rng.zipf(1.4, size=(n, words)), d // 2) - 1
    telling = rng.random((n, words)) < 0.05
    word = np.where(
        telling, d // 2 + (y[:, None] > 0) * (d // 4) + rng.integers(d // 4, size=(n, words)), word
    )
    X = sparse.csr_array(
        (np.ones(n * words), (np.repeat(np.arange(n), words), word.ravel())), shape=(n, d)
    )
    X.sum_duplicates()
    X = sparse.csr_array(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))[:, None]))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def certified(model, X, y):
    """Fit, and make the certificate."""
    model.fit(X, y).certificate_.to_dict()


def objective(model, X, y, norm):
    return norm / 2 + C * np.maximum(0, 1 - y * model.decision_function(X)).sum()


def machines(title, X, y, ours, theirs, repeats):
    names = {
        "surelearn, certified": lambda: certified(ours, X, y),
        "surelearn, fit alone": lambda: ours.fit(X, y),
    }
    _timing.compare(
        title, {**names, type(theirs).__name__: lambda: theirs.fit(X, y)}, repeats=repeats
    )
    if isinstance(theirs, LinearSVC):
        norm = float(np.sum(theirs.coef_**2) + np.sum(theirs.intercept_**2))
    else:
        kernel = ours._kernel()
        vectors, c = X[theirs.support_], theirs.dual_coef_[0]
        norm = float(c @ kernel.sums(vectors, vectors, c))
    ratio = objective(theirs, X, y, norm) / ours.facts_["primal"]
    proved = ours.certificate_["suboptimality"].value / ours.facts_["primal"]
    print(
        f"  ours is proved to be within {proved:.1e} of the optimum; scikit-learn's objective is"
        f" {ratio:.9f} of ours"
    )


def perceptrons(title, X, y, repeats):
    """Equal passes over the rows in their order, without the search for the largest margin and
    with it.
    """
    plain = Perceptron(epochs=5, patience=None, separation=False)
    theirs = TheirPerceptron(max_iter=5, tol=None, shuffle=False)
    _timing.compare(
        title,
        {
            "surelearn, certified": lambda: certified(plain, X, y),
            "surelearn, fit alone": lambda: plain.fit(X, y),
            "Perceptron": lambda: theirs.fit(X, y),
        },
        repeats=repeats,
    )
    print(f"  accuracy {plain.score(X, y):.4f} and {theirs.score(X, y):.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, once")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", ConvergenceWarning)
    share, repeats = (0.1, 1) if quick else (1.0, 3)
    rng = np.random.default_rng(0)
    start = time.process_time()
    for model in (SupportVectorMachine(), SupportVectorMachine(kernel="gaussian"), Perceptron()):
        model.fit(*rows(50, 3, rng))
    print(f"first fits, with compilation or its cache: {time.process_time() - start:.1f} s")

    n = int(20_000 * share)
    X, y = rows(n, 50, rng)
    hinge = {"loss": "hinge", "C": C, "dual": True, "max_iter": 10_000, "random_state": 0}
    for tol, name in ((1e-4, "its default tolerance"), (1e-8, "tolerance 1e-8")):
        title = f"linear, {n:,} dense rows, 50 features, {name}"
        machines(
            title,
            X,
            y,
            SupportVectorMachine(C=C, tol=tol, random_state=0),
            LinearSVC(**hinge, tol=tol),
            repeats,
        )
    n = int(50_000 * share)
    X, y = texts(n, 20_000, 60, rng)
    machines(
        f"linear, {n:,} texts",
        X,
        y,
        SupportVectorMachine(C=C, tol=1e-4, random_state=0),
        LinearSVC(**hinge),
        repeats,
    )
    n = int(4000 * share)
    X, y = rows(n, 10, rng)
    for intercept in ("free", "regularized"):
        ours = SupportVectorMachine(
            C=C,
            kernel="gaussian",
            bandwidth=BANDWIDTH,
            **arguments_of(intercept),
            tol=1e-6,
            random_state=0,
        )
        machines(
            f"Gaussian, {n:,} rows, {intercept} intercept",
            X,
            y,
            ours,
            SVC(C=C, gamma=0.5 / BANDWIDTH**2),
            repeats,
        )

    n = int(200_000 * share)
    perceptrons(f"perceptron, {n:,} dense rows, 50 features, 5 passes", *rows(n, 50, rng), repeats)
    perceptrons(f"perceptron, {n:,} texts, 5 passes", *texts(n, 20_000, 60, rng), repeats)


if __name__ == "__main__":
    main()
