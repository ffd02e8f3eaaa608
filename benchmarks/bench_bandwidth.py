"""Which bandwidth: test errors of defaults, of the choice by leave-one-out, of hindsight, and of
tuned support vectors.

    python benchmarks/bench_bandwidth.py                  600 training rows, three splits (two CPU minutes): docs/kernels.rst
    python benchmarks/bench_bandwidth.py --rows 2000      takes half an hour
    python benchmarks/bench_bandwidth.py --splits 5 --only digits titanic

Errors are shares of wrong labels, or mean squared errors over the variance of the test targets. A
regret is the share of the way from the best in hindsight to the constant: 0 is the best of the
grid, 1 no better than a constant (and counted as 1). Medians and defaults interpolate (λ = 0);
hindsight is the least test error of all kernels, bandwidths and penalties.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

from surelearn.kernel.choosing import FACTORS, KernelCandidate, choose_kernel, median_distance
from surelearn.kernel.functions import kernel

SHARED = Path(__file__).parents[2] / "shared" / "data"
GRID = 2.0 ** np.arange(-4.0, 5.0)  # in median distances
PENALTIES = np.array([0.0, *10.0 ** np.arange(-6.0, 2.0)])
TEST = 2000
HEADS = ["hindsight", "LOO choice", "SVM tuned", "SVM", "Gaussian, median"]
HEADS += [*(f"{name}, default" for name in FACTORS), "LOO, CPU s", "SVM tuned, CPU s"]
MOVES = ("same h, same c", "same h, same λ", "h/2, same c", "2h, same c", "chosen on all rows")
Data = tuple[np.ndarray, np.ndarray, bool]  # rows, labels or numbers, whether labels
# training rows and targets, test rows and targets
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]


def tables() -> Iterator[tuple[str, Callable[[], Data]]]:
    """What there is: scikit-learn's own, and the shared ones where they are."""
    for name, labels in (
        ("iris", True),
        ("wine", True),
        ("breast_cancer", True),
        ("digits", True),
        ("diabetes", False),
    ):
        load = getattr(datasets, f"load_{name}")
        yield name, lambda load=load, labels=labels: (*load(return_X_y=True), labels)
    shared = {
        "mnist.npz": mnist,
        "adult_train.csv": lambda path: frame(path, 14, header=None, skipinitialspace=True),
        "california_housing.csv": lambda path: frame(path, "median_house_value", labels=False),
        "higgs7k_train.tsv": lambda path: frame(path, 0, sep="\t", header=None),
        "titanic.csv": lambda path: frame(
            path, "Survived", drop=["PassengerId", "Name", "Ticket", "Cabin"]
        ),
    }
    for file, load in shared.items():
        if (SHARED / file).exists():
            yield (
                file.split(".")[0].split("_")[0].removesuffix("7k"),
                lambda load=load, file=file: load(SHARED / file),
            )


def mnist(path: Path) -> Data:
    with np.load(path) as file:
        return file["x_train"][:20_000].reshape(20_000, -1) / 255.0, file["y_train"][:20_000], True


def frame(
    path: Path, target: str | int, *, labels: bool = True, drop: list[str] | None = None, **reading
) -> Data:
    import pandas as pd

    table = pd.read_csv(path, **reading).drop(columns=drop or [])
    y = table.pop(target).to_numpy()
    table = pd.get_dummies(table, dtype=float)
    return table.fillna(table.median()).to_numpy(float), y, labels


def split(name: str, data: Data, rows: int, seed: int) -> Split:
    """Training and test rows, columns scaled on the training rows (pixels as they are); targets
    as learners code them.
    """
    X, y, labels = data
    order = np.random.RandomState(seed).permutation(len(X))
    count = min(rows, int(0.7 * len(X)))
    train, test = order[:count], order[count : count + TEST]
    if name in ("mnist", "digits"):
        X = X / X.max()
    else:
        spread = X[train].std(axis=0)
        X = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    if not labels:
        y = (y - y[train].mean()) / y[train].std()
        return X[train], y[train][:, None], X[test], y[test][:, None], False
    codes = np.unique(y, return_inverse=True)[1]
    Y = np.where(codes[:, None] == np.arange(codes.max() + 1), 1.0, -1.0)
    Y = Y[:, 1:] if Y.shape[1] == 2 else Y
    return X[train], Y[train], X[test], Y[test], True


def error(scores: np.ndarray, Y: np.ndarray, labels: bool) -> float:
    if not labels:
        return float(((scores - Y) ** 2).sum() / ((Y - Y.mean(axis=0)) ** 2).sum())
    if Y.shape[1] == 1:
        return float((scores * Y <= 0).mean())
    return float((scores.argmax(1) != Y.argmax(1)).mean())


def grids(parts: Split, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Leave-one-out and test errors of all kernels, bandwidths and penalties on the first
    ``rows``; (kernels, h, c) each.
    """
    X, Y, T, S, labels = parts
    X, Y = X[:rows], Y[:rows]
    unit = median_distance(parts[0], np.random.RandomState(0))
    left, tested = (np.empty((len(FACTORS), len(GRID), len(PENALTIES))) for _ in range(2))
    for i, name in enumerate(FACTORS):
        for j, factor in enumerate(GRID):
            k = KernelCandidate(kernel(name), factor * unit, unit).kernel()
            gram, cross = k(X, X), k(T, X)
            values, vectors = np.linalg.eigh(gram)
            floor = 10 * len(gram) * np.finfo(float).eps * values[-1]
            for c, penalty in enumerate(PENALTIES):
                inverse = 1.0 / (np.maximum(values, 0.0) + max(penalty, floor))
                alpha = vectors @ (inverse[:, None] * (vectors.T @ Y))
                residuals = alpha / (vectors**2 @ inverse)[:, None]
                left[i, j, c] = error(Y - residuals, Y, labels) + 1e-9 * (residuals**2).mean()
                tested[i, j, c] = error(cross @ alpha, S, labels)
    return left, tested


def chosen(parts: Split, rows: int) -> tuple[float, float]:
    """Test error and CPU seconds of `choose_kernel`, refitted on all training rows."""
    X, Y, T, S, labels = parts
    y = (Y[:, 0] if Y.shape[1] == 1 else Y.argmax(1)) if labels else Y
    start = time.process_time()
    choice = choose_kernel(X, y, classify=labels, rows=rows, random_state=0)
    seconds = time.process_time() - start
    gram = choice.kernel(X, X)
    gram.flat[:: len(gram) + 1] += choice.regularization * len(X) + 1e-12 * len(X)
    return error(choice.kernel(T, X) @ np.linalg.solve(gram, Y), S, labels), seconds


def support_vectors(parts: Split, *, tune: bool) -> tuple[float, float]:
    """Test error and CPU seconds of scikit-learn's SVC or SVR, as it comes or tuned by five
    folds over 4 × 5 settings.
    """
    X, Y, T, S, labels = parts
    y, s = ((part[:, 0] if Y.shape[1] == 1 else part.argmax(1)) for part in (Y, S))
    model = SVC() if labels else SVR()
    start = time.process_time()
    if tune:
        scale = 1.0 / (X.shape[1] * X.var())
        model = GridSearchCV(
            model,
            {"C": [0.1, 1.0, 10.0, 100.0], "gamma": scale * 4.0 ** np.arange(-2.0, 3.0)},
            cv=5,
        )
    predicted = model.fit(X, y).predict(T)
    seconds = time.process_time() - start
    return (
        float(np.mean(predicted != s)) if labels else error(predicted[:, None], S, labels)
    ), seconds


def moves(parts: Split, regret: np.ndarray, left: np.ndarray) -> list[float]:
    """Regrets on all rows of what a ninth of them chooses, as it is and changed (`MOVES`), and
    of what all rows choose.
    """
    few = grids((*parts[:2], parts[2][:9], parts[3][:9], parts[4]), len(parts[0]) // 9)[0]
    best = np.unravel_index(left.argmin(), left.shape)
    k, h, c = (int(i) for i in np.unravel_index(few.argmin(), few.shape))
    same = min(c + 1, len(PENALTIES) - 1) if c else 0  # nine times c is about the next power of ten
    shorter, longer = max(h - 1, 0), min(h + 1, len(GRID) - 1)
    return [
        float(regret[at]) for at in ((k, h, c), (k, h, same), (k, shorter, c), (k, longer, c), best)
    ]


def measure(parts: Split, rows: int) -> tuple[list[float], list[np.ndarray]]:
    """A line of the table, and the regrets: by bandwidth without a penalty and with one, and of
    the moves.
    """
    left, tested = grids(parts, rows)
    constant = error(
        np.repeat(parts[1].mean(axis=0)[None], len(parts[3]), axis=0), parts[3], parts[4]
    )
    regret = np.minimum((tested - tested.min()) / max(constant - tested.min(), 1e-12), 1.0)
    ridged = np.take_along_axis(regret, left.argmin(axis=2)[:, :, None], axis=2)[:, :, 0]
    defaults = [
        tested[i, list(GRID).index(lengths[0]), 0] for i, lengths in enumerate(FACTORS.values())
    ]
    (ours, seconds), (tuned, longer) = chosen(parts, rows), support_vectors(parts, tune=True)
    line = [
        tested.min(),
        ours,
        tuned,
        support_vectors(parts, tune=False)[0],
        tested[0, list(GRID).index(1.0), 0],
        *defaults,
    ]
    return [*line, seconds, longer], [regret[:, :, 0], ridged, np.array(moves(parts, regret, left))]


def summarize(regrets: list[list[list[np.ndarray]]]) -> None:
    """Print the regrets of all tables and splits."""
    free, ridged = (
        np.array([split[part] for table in regrets for split in table]) for part in (0, 1)
    )
    for title, values in (("λ = 0", free), ("λ by leave-one-out", ridged)):
        print(
            f"\nRegret by bandwidth in median distances, {title}: mean (worst) over {len(values)}"
            " splits"
        )
        print(f"{'':<10}" + "".join(f"{factor:>14g}" for factor in GRID))
        for i, k in enumerate(FACTORS):
            cells = zip(values[:, i].mean(0), values[:, i].max(0), strict=True)
            print(f"{k:<10}" + "".join(f"{mean:>7.3f} ({worst:.2f})" for mean, worst in cells))
    moved = np.array([np.mean([split[2] for split in table], axis=0) for table in regrets])
    print(
        "\nChosen on a ninth of the rows, used on all: mean regret, and above the first (± standard"
        " error over tables)"
    )
    for label, values in zip(MOVES, moved.T, strict=True):
        above = values - moved[:, 0]
        print(
            f"  {label:<20} {values.mean():.3f}   {above.mean():+.3f} ±"
            f" {above.std(ddof=1) / np.sqrt(len(above)):.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    print(f"{'':<14}" + "".join(f"{head:>22}" for head in HEADS))
    regrets = []
    for name, load in tables():
        if options.only and name not in options.only:
            continue
        data = load()
        found = [
            measure(split(name, data, options.rows, seed), options.rows)
            for seed in range(options.splits)
        ]
        lines = np.array([line for line, _ in found])
        means, spreads = lines.mean(axis=0), lines.std(axis=0, ddof=min(1, len(lines) - 1))
        cells = [
            f"{mean:.4f} ± {spread:.4f}"
            for mean, spread in zip(means[:-2], spreads[:-2], strict=True)
        ]
        print(
            f"{name:<14}"
            + "".join(f"{cell:>22}" for cell in cells)
            + f"{means[-2]:>22.1f}{means[-1]:>22.1f}",
            flush=True,
        )
        regrets.append([regret for _, regret in found])
    summarize(regrets)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
