"""Prediction sets and intervals beside MAPIE and crepes: same model, same calibration rows, same new rows.

    python benchmarks/bench_conformal.py [--peer PYTHON] [--seeds 5] [--part sets|intervals|all]

PYTHON is one in whose environment MAPIE and crepes are installed; without it only ours runs. Rows are
drawn by the seed: to fit one model on, to calibrate, to test. All tools are given the same
probabilities.

Neither peer has sets that hold with probability 1 − δ over the calibration rows (PAC). "marginal":
everybody's rank is that of split conformal, ⌈(n + 1)(1 − α)⌉. "PAC": ours is `conformal_rank_pac` at
δ = 0.05, and the peers are given the confidence k/(n + 1) that makes theirs the same.

What a label is scored by ours chooses on out-of-fold probabilities of the rows fitted on, as `audit`
does; its choosing is timed, the out-of-fold fits are not (an audit has them anyway). "ours, by p" has the
plain score and chooses nothing, as the peers. A set without a
label has a size of 0, which "one or more" counts as 1. "ours at its coverage" is the size of our sets
at the threshold that covers as many of the test rows as the peer's: below 1.00 ours are smaller. CPU
seconds are for calibrating and for the sets of all test rows, medians over the seeds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _timing  # noqa: F401 - one thread
import numpy as np
import pandas as pd
from bench_choice import SHARED, adult
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surelearn.bounds import conformal_rank, conformal_rank_pac
from surelearn.operating.sets import choose_score, nonconformity, within

DELTA = 0.05
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """A table, a model, α, and how many rows are fitted on and calibrate; the others test."""

    name: str
    rows: Callable[[], tuple[Any, Any]]
    model: Any
    alpha: float
    fit: int
    calibrate: int
    per_class: bool = False


def letter() -> tuple[Any, Any]:
    frame = pd.read_csv(SHARED / "letter.csv")
    y = np.unique(frame.pop("letter"), return_inverse=True)[1]
    return frame.to_numpy(dtype=float), y


def incomes() -> tuple[Any, Any]:
    frame = adult()
    y = np.unique(frame.pop("target"), return_inverse=True)[1]
    return np.column_stack([pd.factorize(frame[name])[0] for name in frame]).astype(float), y


def digits() -> tuple[Any, Any]:
    return load_digits(return_X_y=True)


_LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
CASES = (
    Case("letter, logistic, α = 0.1", letter, _LOGISTIC, 0.1, 2000, 1000),
    Case("letter, naive Bayes, α = 0.1", letter, GaussianNB(), 0.1, 2000, 1000),
    Case("letter, forest, α = 0.02", letter, RandomForestClassifier(60, random_state=0), 0.02, 2000, 1000),
    Case("digits, naive Bayes, α = 0.1", digits, GaussianNB(), 0.1, 500, 500),
    Case("adult, boosting, α = 0.05", incomes, HistGradientBoostingClassifier(max_iter=40, random_state=0),
         0.05, 2000, 1000),
    Case("letter, logistic, α = 0.1 per class", letter, _LOGISTIC, 0.1, 2000, 3000, per_class=True),
)  # fmt: skip
MOST_TESTED = 2500


@dataclass(frozen=True)
class Shares:
    """Probabilities: out-of-fold of the rows fitted on, of calibration rows, of test rows."""

    p_fit: Any
    y_fit: Any
    p_cal: Any
    y_cal: Any
    p_test: Any
    y_test: Any

    @classmethod
    def of(cls, case: Case, seed: int) -> Shares:
        """Rows drawn by the seed, and one model fitted on some of them."""
        X, y = case.rows()
        order = np.random.default_rng(seed).permutation(len(y))
        ends = (case.fit, case.fit + case.calibrate)
        fit, cal, test = order[: ends[0]], order[ends[0] : ends[1]], order[ends[1] :][:MOST_TESTED]
        folds = cross_val_predict(clone(case.model), X[fit], y[fit], cv=5, method="predict_proba")
        model = clone(case.model).fit(X[fit], y[fit])
        p_cal, p_test = (model.predict_proba(X[rows]) for rows in (cal, test))
        return cls(folds, y[fit], p_cal, y[cal], p_test, y[test])


def rank_of(form: str, n: int, alpha: float, delta: float) -> float:
    """Which smallest score is the threshold."""
    return conformal_rank_pac(n, alpha, delta) if form == "PAC" else conformal_rank(n, alpha)


def ours(
    case: Case, shares: Shares, form: str, score: str | None = None
) -> tuple[Any, dict[str, Any]]:
    """(m, K) scores of the test rows, and what our sets are; with the score that is chosen, or a plain
    one.
    """
    start, classes = time.process_time(), shares.p_cal.shape[1]
    delta = DELTA / classes if case.per_class else DELTA
    score = score or choose_score(
        shares.p_fit, shares.y_fit, case.alpha, case.calibrate, delta, per_class=case.per_class
    )
    scores = nonconformity(score, shares.p_cal)
    own = scores[np.arange(len(scores)), shares.y_cal]
    parts = [own[shares.y_cal == c] for c in range(classes)] if case.per_class else [own]
    cuts = []
    for part in parts:
        rank = rank_of(form, part.size, case.alpha, delta)
        cuts.append(float(np.sort(part)[int(rank) - 1]) if rank <= part.size else None)
    new = nonconformity(score, shares.p_test)
    inside = within(new, cuts)
    seconds = time.process_time() - start
    sizes = inside.sum(axis=1)
    return new, {
        "coverage": float(inside[np.arange(len(new)), shares.y_test].mean()),
        "size": float(sizes.mean()),
        "filled": float(np.maximum(sizes, 1).mean()),
        "empty": float((sizes == 0).mean()),
        "seconds": seconds,
        "score": score,
    }


def sizes_at(scores: Any, truth: Any, coverage: float) -> tuple[float, float]:
    """The mean size of our sets at the threshold that covers this part of the test rows: plain, and
    with one label or more.
    """
    own = np.sort(scores[np.arange(len(truth)), truth])
    cut = own[min(max(round(coverage * own.size), 1), own.size) - 1]
    sizes = within(scores, [float(cut)]).sum(axis=1)
    return float(sizes.mean()), float(np.maximum(sizes, 1).mean())


def peers(python: str, case: Case, shares: Shares, form: str) -> dict[str, Any]:
    """What MAPIE and crepes make of the same probabilities."""
    n, level = case.calibrate, 1 - case.alpha
    if form == "PAC":
        level = float(conformal_rank_pac(n, case.alpha, DELTA)) / (n + 1) - 1e-9
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "given.npz", Path(folder) / "made.json"
        names = ("p_cal", "y_cal", "p_test", "y_test")
        arrays = {name: getattr(shares, name) for name in names}
        np.savez(given, **arrays, level=level, per_class=case.per_class)
        command = [python, str(HERE / "_conformal_peers.py"), str(given), str(made)]
        subprocess.run(command, check=True)  # noqa: S603 - a Python that the user names
        return json.loads(made.read_text(encoding="utf-8"))


def compare(case: Case, python: str | None, seeds: int) -> None:
    """Print one table per form."""
    drawn = [Shares.of(case, seed) for seed in range(seeds)]
    for form in ("marginal",) if case.per_class else ("marginal", "PAC"):
        lines: dict[str, list[dict[str, Any]]] = defaultdict(list)
        refused: dict[str, str] = {}
        for shares in drawn:
            scores, mine = ours(case, shares, form)
            lines["ours"].append(mine)
            lines["ours, by p"].append(ours(case, shares, form, "probability")[1])
            told = {} if python is None else peers(python, case, shares, form)
            versions = told.pop("versions", {})
            for name, found in told.items():
                if "refused" in found:
                    refused[name] = found["refused"]
                    continue
                if not case.per_class:
                    plain, filled = sizes_at(scores, shares.y_test, found["coverage"])
                    found["equal"] = plain / max(found["size"], 1e-9)
                    found["equal_filled"] = filled / found["filled"]
                lines[name].append(found)
        chosen = ", ".join(sorted({one["score"] for one in lines["ours"]}))
        print(f"\n{case.name}, {form}: {case.calibrate:,} calibration rows, {len(drawn[0].y_test):,} test rows,"
              f" {seeds} seeds; ours scores by {chosen}")  # fmt: skip
        columns = (("", 15), ("coverage", 17), ("size", 15), ("one or more", 13), ("empty", 8),
                   ("ours at its coverage", 22), ("CPU s", 9), ("ours/this", 11))  # fmt: skip
        print("  " + "".join(f"{name:>{width}}" for name, width in columns))
        base = np.median([one["seconds"] for one in lines["ours"]])
        for name, rows in lines.items():
            v = {k: np.array([one[k] for one in rows]) for k in rows[0] if k != "score"}
            same = (
                f"{v['equal'].mean():.2f} ({v['equal_filled'].mean():.2f})" if "equal" in v else ""
            )
            print(f"  {name:<15}{v['coverage'].mean():>9.4f} ±{v['coverage'].std():.4f}"
                  f"{v['size'].mean():>8.3f} ±{v['size'].std():.3f}{v['filled'].mean():>13.3f}"
                  f"{v['empty'].mean():>8.1%}{same:>22}{np.median(v['seconds']):>9.4f}"
                  f"{base / max(np.median(v['seconds']), 1e-9):>11.2f}")  # fmt: skip
        for name, why in refused.items():
            print(f"  {name:<15} refuses: {why}")
    if python is not None:
        print(f"  (MAPIE {versions['mapie']}, crepes {versions['crepes']};"
              " in brackets with an empty set as one label)")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--peer", metavar="PYTHON", help="where MAPIE and crepes are installed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--part", choices=["sets", "intervals", "all"], default="all")
    given = parser.parse_args()
    if given.part != "intervals":
        for case in CASES:
            if case.rows is digits or SHARED.is_dir():
                compare(case, given.peer, given.seeds)
    if given.part != "sets":
        try:
            from _conformal_regression import compare as compare_intervals
        except ImportError:
            return
        compare_intervals(given.peer, given.seeds)


if __name__ == "__main__":
    main()
