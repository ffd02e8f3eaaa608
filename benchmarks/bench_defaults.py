"""Every learner at its defaults beside its twin in scikit-learn at its defaults, on tables as they
come: unscaled.

    python benchmarks/bench_defaults.py [--rows 1500] [--seeds 5] [--only Ridge Perceptron ...]
    [--tables wine ...]

Tables are those that scikit-learn ships and those of ../shared/data that are there; the list was
fixed before any default was looked at. Text becomes 0/1 columns, a missing number the column's
median, the same for both learners; nothing is scaled. For each seed a table is cut to ``--rows``
rows and split into 70% to fit and 30% to score: accuracy, or R². An R² below −1 counts as −1 in
means, so that one table cannot decide. The difference is paired, ours minus theirs on the same
rows; "se" is its standard error over the seeds of a table, and over the tables in the last lines.
Time is the ratio of CPU seconds, one thread.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _timing  # noqa: F401 - first: it sets one BLAS thread
import numpy as np
import pandas as pd
import sklearn.ensemble as sk_ensemble
import sklearn.linear_model as sk_linear
from sklearn import datasets
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from surelearn import boosting, kernel, linear
from surelearn.kernel import Compute

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
CATEGORIES = 40  # a column of text with more is an identifier or free text, and is left out
LOWEST = -1.0  # of R² in means


@dataclass(frozen=True)
class Table:
    """Rows (n, d) of numbers, and labels or numbers (n,)."""

    name: str
    X: np.ndarray
    y: np.ndarray
    labels: bool


@dataclass(frozen=True)
class Pair:
    """A learner of ours and its twin, both as made without arguments; ``why`` says how near a
    twin it is.
    """

    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    name: str
    twin: str
    labels: bool
    why: str = ""


def pairs() -> Iterator[Pair]:
    """The learners and their twins; where scikit-learn has no exact one, the nearest in common
    use, or two.
    """
    L = linear
    random = {"random_state": 0}
    yield Pair(L.Ridge, sk_linear.Ridge, "Ridge", "Ridge", False)
    yield Pair(
        L.LeastSquares, sk_linear.LinearRegression, "LeastSquares", "LinearRegression", False
    )
    yield Pair(
        L.HuberRegression, sk_linear.HuberRegressor, "HuberRegression", "HuberRegressor", False
    )
    yield Pair(
        L.VariationalRegression,
        sk_linear.HuberRegressor,
        "VariationalRegression",
        "HuberRegressor",
        False,
    )
    yield Pair(L.SquareRootLasso, sk_linear.Lasso, "SquareRootLasso", "Lasso", False)
    yield Pair(
        L.SquareRootLasso,
        sk_linear.LassoCV,
        "SquareRootLasso",
        "LassoCV",
        False,
        "which tunes its penalty",
    )
    twin = lambda: kernel.LinearEigenProRegressor(**random)  # noqa: E731
    yield Pair(
        twin, sk_linear.LinearRegression, "LinearEigenProRegressor", "LinearRegression", False
    )
    eigenpro = lambda: kernel.EigenProRegressor(compute=Compute(device="cpu"), **random)  # noqa: E731
    yield Pair(eigenpro, KernelRidge, "EigenProRegressor", "KernelRidge", False)
    yield Pair(eigenpro, SVR, "EigenProRegressor", "SVR", False)
    features = lambda: kernel.RandomFeaturesRegressor(**random)  # noqa: E731
    sampled = lambda: make_pipeline(RBFSampler(**random), sk_linear.LinearRegression())  # noqa: E731
    yield Pair(features, sampled, "RandomFeaturesRegressor", "RBFSampler+LinearRegression", False)
    scaled = lambda: make_pipeline(RBFSampler(gamma="scale", **random), sk_linear.Ridge())  # noqa: E731
    yield Pair(
        features,
        scaled,
        "RandomFeaturesRegressor",
        "RBFSampler(scale)+Ridge",
        False,
        "the better way to use it",
    )
    logistic = lambda: L.LogisticRegression(**random)  # noqa: E731
    yield Pair(
        logistic, sk_linear.LogisticRegression, "LogisticRegression", "LogisticRegression", True
    )
    yield Pair(L.Perceptron, sk_linear.Perceptron, "Perceptron", "Perceptron", True)
    machine = lambda: L.SupportVectorMachine(**random)  # noqa: E731
    yield Pair(machine, lambda: LinearSVC(**random), "SupportVectorMachine", "LinearSVC", True)
    yield Pair(L.NaiveBayes, GaussianNB, "NaiveBayes", "GaussianNB", True)
    boosted = lambda: sk_ensemble.AdaBoostClassifier(**random)  # noqa: E731
    yield Pair(
        boosting.AdaBoostClassifier, boosted, "AdaBoostClassifier", "AdaBoostClassifier", True
    )
    stump = lambda: DecisionTreeClassifier(max_depth=1, **random)  # noqa: E731
    yield Pair(boosting.DecisionStump, stump, "DecisionStump", "DecisionTree(max_depth=1)", True)
    classifier = lambda: kernel.EigenProClassifier(compute=Compute(device="cpu"), **random)  # noqa: E731
    yield Pair(classifier, SVC, "EigenProClassifier", "SVC", True)
    private = lambda: L.DPLogisticRegression(**random)  # noqa: E731
    why = "not a twin: the price of privacy"
    yield Pair(
        private,
        sk_linear.LogisticRegression,
        "DPLogisticRegression",
        "LogisticRegression",
        True,
        why,
    )


def tables() -> Iterator[Table]:
    """Nine tables of labels and six of numbers."""
    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield Table(name, *getattr(datasets, f"load_{name}")(return_X_y=True), labels=True)
    yield Table("diabetes", *datasets.load_diabetes(return_X_y=True), labels=False)
    wine = datasets.load_wine().data
    yield Table("wine: alcohol", wine[:, 1:], wine[:, 0], labels=False)
    passenger = ["PassengerId", "Name", "Ticket", "Cabin"]
    yield from shared("titanic", "titanic.csv", "Survived", drop=passenger)
    yield from shared("titanic: fare", "titanic.csv", "Fare", labels=False, drop=passenger)
    yield from shared("sick", "sick.csv", "Class", na_values="?")
    yield from shared("letter", "letter.csv", "letter")
    names = [f"column {k}" for k in range(15)]
    adult = {"header": None, "names": names, "skipinitialspace": True}
    yield from shared("adult", "adult_train.csv", names[14], **adult)
    yield from shared("adult: hours", "adult_train.csv", names[12], labels=False, **adult)
    yield from shared("higgs", "higgs7k_train.tsv", 0, sep="\t", header=None)
    yield from shared("california", "california_housing.csv", "median_house_value", labels=False)
    yield from shared(
        "ames",
        "ames.csv",
        "SalePrice",
        labels=False,
        drop=["Order", "PID"],
        keep_default_na=False,
        na_values="",
    )


def shared(
    name: str, file: str, target: Any, *, labels: bool = True, drop: Any = (), **reading: Any
) -> Iterator[Table]:
    """A table of ../shared/data, if it is there."""
    if not (SHARED / file).exists():
        print(f"{name}: {file} is not in ../shared/data, left out")
        return
    table = pd.read_csv(SHARED / file, **reading).drop(columns=list(drop))
    table = table.dropna(subset=[target])
    y = table.pop(target).to_numpy()
    text = [column for column in table.columns if not pd.api.types.is_numeric_dtype(table[column])]
    table = table.drop(columns=[column for column in text if table[column].nunique() > CATEGORIES])
    table = pd.get_dummies(table, dtype=float).dropna(axis=1, how="all")
    yield Table(
        name, table.fillna(table.median()).to_numpy(float), y if labels else y.astype(float), labels
    )


def split(
    table: Table, rows: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows to fit and to score, and their targets."""
    chosen = np.random.default_rng(seed).permutation(len(table.y))[:rows]
    X, y = table.X[chosen], table.y[chosen]
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=seed)
    return train, test, y_train, y_test


def scored(made: Any, parts: tuple[np.ndarray, ...]) -> tuple[float, float]:
    """Score on the rows kept apart, and CPU seconds of the fit."""
    train, test, y_train, y_test = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        made.fit(train, y_train)
        seconds = time.process_time() - start
        return float(made.score(test, y_test)), seconds


def spread(values: list[float]) -> float:
    """The standard error of a mean."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def compare(pair: Pair, chosen: list[Table], rows: int, seeds: int) -> tuple[float, float, float]:
    """Print a line for each table; the mean of ours, the mean difference, and its standard
    error over tables.
    """
    print(f"\n{pair.name} beside scikit-learn's {pair.twin}{f' ({pair.why})' if pair.why else ''}")
    means, differences, ratios = [], [], []
    for table in chosen:
        both = []
        for seed in range(seeds):
            parts = split(table, rows, seed)
            both.append((scored(pair.ours(), parts), scored(pair.theirs(), parts)))
        ours, theirs = ([max(LOWEST, one[side][0]) for one in both] for side in (0, 1))
        paired = [a - b for a, b in zip(ours, theirs, strict=True)]
        ratio = sum(one[0][1] for one in both) / max(1e-9, sum(one[1][1] for one in both))
        means.append(statistics.mean(ours))
        differences.append(statistics.mean(paired))
        ratios.append(ratio)
        print(
            f"  {table.name:<16} {len(parts[0]):5} x {table.X.shape[1]:<4} ours {means[-1]:7.4f} "
            f" theirs {statistics.mean(theirs):7.4f}  difference {differences[-1]:+8.4f}  se"
            f" {spread(paired):.4f}  time {ratio:7.2f}"
        )
    return statistics.mean(means), statistics.mean(differences), spread(differences)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="learners")
    parser.add_argument("--tables", nargs="*", help="tables")
    given = parser.parse_args()
    there = [one for one in tables() if not given.tables or one.name in given.tables]
    summary = []
    for pair in pairs():
        if given.only and pair.name not in given.only:
            continue
        chosen = [one for one in there if one.labels == pair.labels]
        if chosen:
            summary.append((pair, *compare(pair, chosen, given.rows, given.seeds)))
    print("\nmean over tables")
    for pair, mean, difference, error in summary:
        sign = "not below" if difference >= -1e-6 else "below"
        print(
            f"  {pair.name:<24} {mean:7.4f}  {pair.twin:<28} {mean - difference:7.4f}  difference"
            f" {difference:+8.4f}  se {error:.4f}  {sign}"
        )


if __name__ == "__main__":
    main()
