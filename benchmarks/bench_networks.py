"""Networks for tables beside boosted trees and scikit-learn's networks, all at their defaults.

    python benchmarks/bench_networks.py [--tables california adult …] [--seeds 5] [--rows 50000] [--threads 2]
    [--out FILE]

Adult is split as its two files are, all else 80/20 by the seed, which is also every learner's own. Our defaults
(bins instead of waves, the largest rate, the number of steps) were chosen on rows that are in no test part of seeds 1 to
5, Adult's training file among them, and on further draws of the tables that are drawn; dropout, members and widths on
rows held out of training parts. Trials of an earlier version, with waves, had seen scores of Adult's test file and of
split 0 of California and ames, so that seeds begin at 1 here.
Columns of words are categories to all that take them; MLPClassifier and MLPRegressor get
medians, standard scores and a column for each word. Columns of words with more than 200 different ones are left out
for all: they are names or texts. So are columns without any value, which HistGradientBoosting refuses.

With --out every fit is written down as it ends, and a run that was stopped goes on.

Printed per table: errors and log loss (probabilities clipped to 1e-6), or root mean squared error, means of
the seeds with their standard deviation; seconds, and ours over theirs. Then each learner's mean rank over the tables,
by errors or RMSE, and by log loss or RMSE.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bench_choice import SHARED, TABLES, Source, built_in, shared
from scipy.stats import rankdata
from sklearn import datasets
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from surelearn.neural import NetworkClassifier, NetworkRegressor

MOST_WORDS = 200
CLIP = 1e-6
TEXTS = ("bbc news", "sst2")
CALIFORNIA = Source(
    "california", shared("california_housing.csv"), "median_house_value", "regression"
)
FURTHER = (
    Source("wine", built_in(datasets.load_wine), "target", "classification"),
    Source("iris", built_in(datasets.load_iris), "target", "classification"),
)


def tables() -> list[Source]:
    """Those of bench_choice.py without texts, and a few more."""
    known = {one.name: one for one in (*TABLES, CALIFORNIA, *FURTHER) if one.name not in TEXTS}
    return list(known.values())


def read(source: Source, most: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows, words as categories, and targets."""
    frame = source.read()
    if len(frame) > most:
        frame = frame.sample(most, random_state=0).reset_index(drop=True)
    y = frame.pop(source.target).to_numpy()
    if source.name == "california":
        y = y / 100_000
    for name in list(frame):
        if frame[name].isna().all():
            frame = frame.drop(columns=name)
        elif not pd.api.types.is_numeric_dtype(frame[name]):
            if frame[name].nunique() > MOST_WORDS:
                frame = frame.drop(columns=name)
            else:
                frame[name] = pd.Categorical(frame[name])
    return frame, y


def split(source: Source, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers to fit on and to score."""
    if source.name == "adult" and n == 48_842:
        return np.arange(32_561), np.arange(32_561, n)
    order = np.random.default_rng(seed).permutation(n)
    return order[: int(0.8 * n)], order[int(0.8 * n) :]


def contestants(task: str, seed: int, frame: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """What is fitted, ours first."""
    from lightgbm import LGBMClassifier, LGBMRegressor
    from sklearn import ensemble, neural_network

    words = [name for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype)]
    numbers = [name for name in frame if name not in words]
    prepared = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), words),
    )
    kind = "Classifier" if task == "classification" else "Regressor"
    ours = NetworkClassifier if kind == "Classifier" else NetworkRegressor
    lightgbm = LGBMClassifier if kind == "Classifier" else LGBMRegressor
    histogram = getattr(ensemble, f"HistGradientBoosting{kind}")
    perceptron = getattr(neural_network, f"MLP{kind}")
    return {
        "network": lambda: ours(random_state=seed),
        "LightGBM": lambda: lightgbm(random_state=seed, verbose=-1),
        "HistGradientBoosting": lambda: histogram(
            random_state=seed, categorical_features="from_dtype"
        ),
        f"MLP{kind}": lambda: make_pipeline(prepared, perceptron(random_state=seed)),
    }


def scored(model: Any, X: pd.DataFrame, y: np.ndarray, task: str) -> tuple[float, float]:
    """Errors and log loss; or RMSE, twice."""
    if task != "classification":
        error = float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
        return error, error
    found = model.predict_proba(X)
    place = {label: i for i, label in enumerate(model.classes_.tolist())}
    at = np.array([place.get(label, -1) for label in y.tolist()])
    right = np.where(at >= 0, found[np.arange(len(y)), at], 0.0)
    return float(np.mean(model.predict(X) != y)), float(-np.log(right.clip(CLIP)).mean())


def kept(path: Path | None) -> dict[tuple[str, int, str], tuple[float, float, float]]:
    """What an earlier run wrote down: by table, seed and learner."""
    if path is None or not path.exists():
        return {}
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return {(table, seed, name): tuple(numbers) for table, seed, name, *numbers in found}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    ranks: dict[str, list[tuple[float, float]]] = defaultdict(list)
    known = kept(options.out)
    for source in tables():
        if options.tables and source.name not in options.tables:
            continue
        try:
            frame, y = read(source, options.rows)
        except FileNotFoundError:
            print(f"{source.name}: not in {SHARED}, left out")
            continue
        results: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
        for seed in range(1, options.seeds + 1):
            fit, new = split(source, len(y), seed)
            for name, make in contestants(source.task, seed, frame).items():
                key = "MLP" if name.startswith("MLP") else name
                at = (source.name, seed, key)
                if at not in known:
                    start = time.perf_counter()
                    model = make().fit(frame.iloc[fit], y[fit])
                    seconds = time.perf_counter() - start
                    known[at] = (*scored(model, frame.iloc[new], y[new], source.task), seconds)
                    if options.out:
                        with options.out.open("a") as file:
                            file.write(json.dumps([*at, *known[at]]) + "\n")
                results[key].append(known[at])
        report(source, frame.shape, results)
        means = {name: np.mean(found, axis=0) for name, found in results.items()}
        for name, by_error, by_loss in zip(
            means,
            rankdata([mean[0] for mean in means.values()]),
            rankdata([mean[1] for mean in means.values()]),
            strict=True,
        ):
            ranks[name].append((by_error, by_loss))
    print(f"mean rank over {len(next(iter(ranks.values()), []))} tables")
    for name, found in ranks.items():
        by_error, by_loss = np.mean(found, axis=0)
        print(f"  {name:<24} by errors or RMSE {by_error:.2f}   by log loss or RMSE {by_loss:.2f}")


def report(
    source: Source, shape: tuple[int, int], results: dict[str, list[tuple[float, float, float]]]
) -> None:
    """One table's lines."""
    whole = source.task == "classification"
    print(f"{source.name}  {shape[0]:,} rows, {shape[1]} columns, {len(results['network'])} seeds")
    ours = np.mean(results["network"], axis=0)[2]
    for name, found in results.items():
        error, loss, seconds = np.mean(found, axis=0)
        spread = np.std(found, axis=0)
        first = (
            f"errors {error:8.4%} ±{spread[0]:.4%}"
            if whole
            else f"RMSE {error:10.4f} ±{spread[0]:.4f}"
        )
        second = f"  log loss {loss:.4f} ±{spread[1]:.4f}" if whole else ""
        print(f"  {name:<24} {first}{second}  {seconds:7.1f} s  ours/this {ours / seconds:6.1f}")


if __name__ == "__main__":
    main()
