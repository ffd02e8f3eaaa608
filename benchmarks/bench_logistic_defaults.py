"""Logistic regression by its defaults beside scikit-learn's by its own, tables with many classes as
they come: one thread, CPU time, and the error on rows kept back.

    python benchmarks/bench_logistic_defaults.py [--repeats 5]

digits (1,797 rows, 64 columns, 10 classes) and, where ../shared/data has it, letter (20,000 rows,
16 columns, 26 classes). Ours goes on to the minimizer and proves how near it is; scikit-learn's
stops after 100 iterations of L-BFGS wherever it is. Its C = 1 is λ = 1/(2n), ours is 1e-4.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

from _timing import compare
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.model_selection import train_test_split

from surelearn.linear import LogisticRegression

LETTER = Path(__file__).resolve().parents[2] / "shared" / "data" / "letter.csv"


def tables() -> Iterator[tuple[str, object, object]]:
    """Name, rows and labels."""
    yield "digits", *load_digits(return_X_y=True)
    if LETTER.exists():
        import pandas as pd

        table = pd.read_csv(LETTER)
        yield "letter", table.drop(columns="letter").to_numpy(float), table["letter"].to_numpy()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # of scikit-learn's
    for name, X, y in tables():
        X, X_kept, y, y_kept = train_test_split(X, y, test_size=0.3, random_state=0)
        ours, peer = LogisticRegression(random_state=0), Peer()
        contestants = {
            "LogisticRegression": lambda X=X, y=y, ours=ours: ours.fit(X, y),
            "scikit-learn's": lambda X=X, y=y, peer=peer: peer.fit(X, y),
        }
        compare(f"{name}, {len(X):,} rows (target of the ratio: 3)", contestants, options.repeats)
        print(
            f"  accuracy on rows kept back {ours.score(X_kept, y_kept):.4f} against"
            f" {peer.score(X_kept, y_kept):.4f}; within"
            f" {ours.certificate_['suboptimality'].value:.1e} of the least objective"
        )


if __name__ == "__main__":
    main()
