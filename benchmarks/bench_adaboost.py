"""AdaBoost over stumps against scikit-learn's (trees of depth one) and LightGBM's (two leaves), one
thread.

    python benchmarks/bench_adaboost.py [--quick]

Time: CPU seconds of a fit, interleaved, compilation stated apart. LightGBM is another algorithm
(gradient boosting of the logistic loss, 255 bins), shown for scale where it is installed. Accuracy:
the same rounds on the same halves of real tables, those that scikit-learn ships and those in
../shared/data that are there; ours "auto" beside scikit-learn's, in points.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import time
import warnings
from functools import partial
from pathlib import Path

import _timing  # first: it sets one BLAS thread
import numpy as np
import pandas as pd
import sklearn.ensemble
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_svmlight_file,
    load_wine,
)
from sklearn.model_selection import ShuffleSplit
from sklearn.tree import DecisionTreeClassifier

from surelearn.boosting import AdaBoostClassifier

SHARED = Path(__file__).parents[2] / "shared" / "data"
# rows, features, rounds, repeats
SIZES = ((600, 12, 100, 5), (10_000, 50, 200, 3), (200_000, 50, 100, 1))


def scikit_learn(rounds):
    return sklearn.ensemble.AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=1), n_estimators=rounds, random_state=0
    )


def light_gbm(rounds):
    """A classifier of so many stumps, or None where LightGBM is not installed."""
    if importlib.util.find_spec("lightgbm") is None:
        return None
    import lightgbm

    return lightgbm.LGBMClassifier(n_estimators=rounds, num_leaves=2, n_jobs=1, verbose=-1)


def speed(quick):
    rng = np.random.default_rng(0)
    start = time.process_time()
    for method in ("exact", "binned"):
        AdaBoostClassifier(2, method=method).fit(rng.normal(size=(50, 3)), np.arange(50) % 2)
    print(f"first fits, with compilation or its cache: {time.process_time() - start:.1f} s")
    for n, d, rounds, repeats in SIZES:
        rows, shorter = (n // 10, rounds // 2) if quick and n > 10_000 else (n, rounds)
        X = rng.normal(size=(rows, d))
        y = (X[:, :5].sum(axis=1) + X[:, 5] * X[:, 6] + rng.normal(size=rows) > 0).astype(int)
        contestants = {
            "surelearn": AdaBoostClassifier(shorter),
            "scikit-learn": scikit_learn(shorter),
            "LightGBM, two leaves": light_gbm(shorter),
        }
        fits = {
            name: partial(model.fit, X, y)
            for name, model in contestants.items()
            if model is not None
        }
        _timing.compare(f"{rows:,} × {d}, {shorter} rounds", fits, repeats=1 if quick else repeats)


def tables(most):
    """Name, X, y of the real tables that are there, at most so many rows of each."""
    for load in (load_breast_cancer, load_wine, load_iris, load_digits):
        yield load.__name__.removeprefix("load_"), *load(return_X_y=True)
    for name, read in (("titanic", _titanic), ("adult", _adult), ("a9a", _a9a), ("higgs", _higgs)):
        if (read_ := _there(name, read)) is not None:
            yield name, *(part[:most] for part in read_)
    if (digits := _there("mnist", _mnist)) is not None:
        for one, other in ((3, 5), (4, 9), (1, 7)):
            pair = np.isin(digits[1], (one, other))
            yield f"mnist {one} or {other}", digits[0][pair][:most], digits[1][pair][:most]


def _there(name, read):
    try:
        return read()
    except FileNotFoundError:
        print(f"  {name}: not in {SHARED}, left out")
        return None


def _titanic():
    table = pd.read_csv(SHARED / "titanic.csv")
    X = pd.get_dummies(
        table[["Pclass", "Sex", "Age", "SibSp", "Parch", "Fare", "Embarked"]], dtype=float
    )
    return X.fillna(X.median()).to_numpy(), table["Survived"].to_numpy()


def _adult():
    table = pd.read_csv(SHARED / "adult_train.csv", header=None, skipinitialspace=True)
    return pd.get_dummies(table.iloc[:, :-1], dtype=float).to_numpy(), table.iloc[:, -1].to_numpy()


def _a9a():
    with gzip.open(SHARED / "a9a.gz") as file:
        X, y = load_svmlight_file(file, n_features=123)
    return X.toarray(), y


def _higgs():
    table = pd.read_csv(SHARED / "higgs7k_train.tsv", sep="\t", header=None).to_numpy()
    return table[:, 1:], table[:, 0]


def _mnist():
    with np.load(SHARED / "mnist.npz") as file:
        return file["x_train"].reshape(-1, 784).astype(float), file["y_train"]


def accuracy(quick):
    rounds, splits, most = (50, 2, 2000) if quick else (100, 4, 6000)
    print(
        f"accuracy on the other half, {rounds} rounds, mean of {splits} splits, at most {most:,}"
        " rows"
    )
    differences = []
    for name, X, y in tables(most):
        scores = []
        for fit, test in ShuffleSplit(splits, test_size=0.5, random_state=0).split(X):
            models = (AdaBoostClassifier(rounds), scikit_learn(rounds))
            scores.append(
                [100 * model.fit(X[fit], y[fit]).score(X[test], y[test]) for model in models]
            )
        ours, theirs = np.mean(scores, axis=0)
        differences.append(ours - theirs)
        print(
            f"  {name:<16} ours {ours:6.2f}   scikit-learn {theirs:6.2f}   difference"
            f" {ours - theirs:+6.2f}"
        )
    print(
        f"  {len(differences)} sets: mean difference {np.mean(differences):+.2f} points,", end=" "
    )
    print(f"median {np.median(differences):+.2f}, worst {min(differences):+.2f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="smaller and once")
    quick = parser.parse_args().quick
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    speed(quick)
    accuracy(quick)


if __name__ == "__main__":
    main()
