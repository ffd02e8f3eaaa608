"""How soon an audit says its verdict: one audit up to there, in a process of its own.

    python benchmarks/_verdict.py NAME

prints the seconds that the imports took, those from then to the verdict, the candidate that was
chosen, and among how many.
"""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import suppress
from typing import Any

TABLES = ("569 × 30", "5,000 × 20", "50,000 × 20", "5,000 × 20, numbers")


class _Said(Exception):  # noqa: N818 the end of what is timed, not an error
    """The verdict is there."""


def made(name: str) -> tuple[Any, dict[str, Any]]:
    """The built-in table, or one of as many rows and columns, a quarter of them categories."""
    if name == TABLES[0]:
        return None, {}
    import numpy as np
    import pandas as pd
    from sklearn.datasets import make_classification, make_regression

    rows = int(name.split(" ")[0].replace(",", ""))
    numbers = name.endswith("numbers")
    if numbers:
        X, y = make_regression(rows, 20, n_informative=8, noise=20.0, random_state=0)
    else:
        X, y = make_classification(rows, 20, n_informative=8, flip_y=0.1, random_state=0)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(20)])
    for j in range(5):
        codes = np.digitize(X[:, j], np.quantile(X[:, j], [0.2, 0.4, 0.6, 0.8]))
        frame[f"x{j}"] = [f"kind {code}" for code in codes]
    return frame.assign(y=y), {"target": "y"}


def main() -> None:
    """Print one line of numbers."""
    name = sys.argv[1]
    start = time.perf_counter()
    import surelearn
    from surelearn.auditing import flow  # noqa: F401
    from surelearn.jobs import Runner

    imported = time.perf_counter()
    source, options = made(name)
    ready = time.perf_counter()
    found: list[Any] = []

    def early(known: Any) -> None:
        found.append(known)
        raise _Said

    runner = Runner(n_jobs=-1, early=early)
    with warnings.catch_warnings(), suppress(_Said):
        warnings.simplefilter("ignore")
        surelearn.audit(source, ledger=False, runner=runner, **options)
    print(f"{imported - start:.2f} {time.perf_counter() - ready:.2f} {found[0].chips[0]}")


if __name__ == "__main__":
    main()
