"""Intervals beside MAPIE's and crepes': same model, same out-of-fold residuals, same calibration rows.

Called by bench_conformal.py, with the Python of an environment in which MAPIE and crepes are
installed; by itself, with that Python, it makes the peers' intervals of arrays in a file:

    PEER_PYTHON benchmarks/_conformal_regression.py given.npz made.npz

All are given the predictions of one boosted model for calibration and test rows, and those of its
five-fold fits for the rows fitted on. Widths are fitted on the latter's residuals (crepes' nearest
neighbors and MAPIE's residual estimator, a random forest here, too), never on calibration rows;
MAPIE's conformalized quantiles are three boosted quantile models of their own on the same rows.
"marginal" is everybody's rank ⌈(n + 1)(1 − α)⌉. "PAC": ours is `conformal_rank_pac` at δ = 0.05,
and peers, which have none, get the level k/(n + 1) that makes their rank the same.

"ours/its at its coverage": mean width of our intervals at the score that covers as many test rows as
the peer's intervals do, over the mean width of these; below 1.00 ours are narrower. CPU seconds: of
widths, calibration and the test rows' intervals, medians over the seeds. Settings were chosen on other
splits of california, ames and diabetes (seeds from 100 on), whose rows overlap with these, and on two
made tables.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

ALPHA, DELTA, FIFTHS = 0.1, 0.05, 5
SIZES = {  # rows to fit on, calibration rows, and test rows at most
    "california": (4000, 2000, 4000),
    "ames": (1400, 700, 830),
    "diabetes": (220, 110, 112),
    "friedman": (1200, 600, 1200),
}


def table(name: str, seed: int) -> tuple[Any, Any] | None:
    """Numbers and codes of categories, and the target; None where the file is absent."""
    import pandas as pd
    from sklearn.datasets import load_diabetes, make_friedman1

    if name == "diabetes":
        return load_diabetes(return_X_y=True)
    if name == "friedman":
        return make_friedman1(3000, noise=1.0, random_state=seed)
    file, target = {
        "california": ("california_housing.csv", "median_house_value"),
        "ames": ("ames.csv", "SalePrice"),
    }[name]
    path = Path(__file__).resolve().parents[2] / "shared" / "data" / file
    if not path.is_file():
        return None
    frame = pd.read_csv(path).drop(columns=["Order", "PID", "Id"], errors="ignore")
    y = frame.pop(target).to_numpy(dtype=float)
    for column in frame:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = pd.factorize(frame[column])[0]
    return frame.fillna(frame.median()).to_numpy(dtype=float), y


def given_of(name: str, seed: int) -> dict[str, Any] | None:
    """What all contestants are given."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import KFold, cross_val_predict

    found = table(name, seed)
    if found is None:
        return None
    X, y = found
    fit, cal, most = SIZES[name]
    order = np.random.default_rng(seed).permutation(len(y))
    parts = {"fit": order[:fit], "cal": order[fit : fit + cal]}
    parts["test"] = order[fit + cal :][:most]
    rounds = 80 if fit < 1000 else 200
    model = HistGradientBoostingRegressor(
        max_iter=rounds, learning_rate=0.05, max_leaf_nodes=15, early_stopping=False, random_state=0
    )
    rows = parts["fit"]
    given = {f"X_{part}": X[index] for part, index in parts.items()}
    given |= {f"y_{part}": y[index] for part, index in parts.items()}
    folds = KFold(5, shuffle=True, random_state=seed)
    given["f_fit"] = cross_val_predict(model, X[rows], y[rows], cv=folds)
    model.fit(X[rows], y[rows])
    given |= {f"f_{part}": model.predict(X[parts[part]]) for part in ("cal", "test")}
    return given


class Given(RegressorMixin, BaseEstimator):
    """A fitted regressor whose predictions are the last column of its rows."""

    def fit(self, X: Any, y: Any) -> Given:  # noqa: ARG002
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(X)[:, -1]

    def __sklearn_is_fitted__(self) -> bool:
        return True


def beside(given: dict[str, Any], part: str) -> Any:
    """(n, d + 1): columns and prediction."""
    return np.column_stack([given[f"X_{part}"], given[f"f_{part}"]])


# ── ours ─────────────────────────────────────────────────────────────────────────────────────────


def ours(given: dict[str, Any], form: str) -> dict[str, Any]:
    """Our intervals as `audit` makes them: the form is chosen on the rows to fit on."""
    from surelearn.bounds import conformal_rank, conformal_rank_pac
    from surelearn.selection.widths import IntervalRegressor
    from surelearn.subject.bands import Band

    start, n = time.process_time(), len(given["y_cal"])
    model = IntervalRegressor(Given(), alpha=ALPHA)
    model.fit_around(Given(), beside(given, "fit"), given["y_fit"], given["f_fit"])
    bands = []
    for part in ("cal", "test"):
        rows = beside(given, part)
        if model.form_ == "constant":
            said = model.predict(rows)
            bands.append(Band(said, said, np.ones_like(said)))
        else:
            bands.append(Band(*model.predict_band(rows)))
    rank = conformal_rank_pac(n, ALPHA, DELTA) if form == "PAC" else conformal_rank(n, ALPHA)
    score = float(np.sort(bands[0].scores(given["y_cal"]))[int(rank) - 1])
    low, high = bands[1].interval(score)
    return {
        "low": low, "high": high, "seconds": time.process_time() - start,
        "form": model.form_, "band": bands[1],
    }  # fmt: skip


def width_at(band: Any, y: Any, coverage: float) -> float:
    """The mean width of our intervals at the score that covers this share of the test rows."""
    scores = np.sort(band.scores(y))
    score = scores[min(max(round(coverage * len(y)), 1), len(y)) - 1]
    low, high = band.interval(float(score))
    return float((high - low).mean())


# ── the peers, in their own environment ──────────────────────────────────────────────────────────


def mapie_absolute(given: dict[str, Any], level: float) -> tuple[Any, Any]:
    from mapie.regression import SplitConformalRegressor

    made = SplitConformalRegressor(Given(), confidence_level=level, prefit=True)
    made.conformalize(beside(given, "cal"), given["y_cal"])
    ends = made.predict_interval(beside(given, "test"))[1]
    return ends[:, 0, 0], ends[:, 1, 0]


def mapie_normalized(given: dict[str, Any], level: float) -> tuple[Any, Any]:
    """Its residual estimator is fitted to the logarithm of the residuals, as MAPIE does itself."""
    from mapie.conformity_scores import ResidualNormalisedScore
    from mapie.regression import SplitConformalRegressor
    from sklearn.ensemble import RandomForestRegressor

    sizes = np.abs(given["y_fit"] - given["f_fit"])
    forest = RandomForestRegressor(60, min_samples_leaf=15, max_features=0.5, random_state=0)

    widths = forest.fit(beside(given, "fit"), np.log(np.maximum(sizes, 1e-8)))
    score = ResidualNormalisedScore(residual_estimator=Exponential(widths), prefit=True)
    made = SplitConformalRegressor(
        Given(), confidence_level=level, conformity_score=score, prefit=True
    )
    made.conformalize(beside(given, "cal"), given["y_cal"])
    ends = made.predict_interval(beside(given, "test"))[1]
    return ends[:, 0, 0], ends[:, 1, 0]


class Exponential(Given):
    """The exponential of what a model predicts."""

    def __init__(self, model: Any = None) -> None:
        self.model = model

    def predict(self, X: Any) -> Any:
        return np.exp(self.model.predict(X))


def mapie_quantiles(given: dict[str, Any], level: float) -> tuple[Any, Any]:
    from mapie.regression import ConformalizedQuantileRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor

    rounds = 80 if len(given["y_fit"]) < 1000 else 200
    models = [
        HistGradientBoostingRegressor(
            loss="quantile", quantile=q, max_iter=rounds, learning_rate=0.05, max_leaf_nodes=15,
            early_stopping=False, random_state=0,
        ).fit(given["X_fit"], given["y_fit"])
        for q in ((1 - level) / 2, (1 + level) / 2, 0.5)
    ]  # fmt: skip
    made = ConformalizedQuantileRegressor(models, confidence_level=level, prefit=True)
    made.conformalize(given["X_cal"], given["y_cal"])
    ends = made.predict_interval(given["X_test"], symmetric_correction=True)[1]
    return ends[:, 0, 0], ends[:, 1, 0]


def crepes_of(kind: str) -> Callable[[dict[str, Any], float], tuple[Any, Any]]:
    """Intervals of crepes: standard, normalized by nearest neighbors, or in bins of the prediction."""

    def intervals(given: dict[str, Any], level: float) -> tuple[Any, Any]:
        from crepes import ConformalRegressor
        from crepes.extras import DifficultyEstimator, binning

        residuals = given["y_cal"] - given["f_cal"]
        if kind == "standard":
            made = ConformalRegressor().fit(residuals)
            ends = made.predict_int(given["f_test"], confidence=level)
        elif kind == "Mondrian":
            bins, edges = binning(given["f_cal"], bins=FIFTHS)
            made = ConformalRegressor().fit(residuals, bins=bins)
            new = binning(given["f_test"], bins=edges)
            ends = made.predict_int(given["f_test"], bins=new, confidence=level)
        else:
            sizes = given["y_fit"] - given["f_fit"]
            widths = DifficultyEstimator().fit(
                X=given["X_fit"], residuals=sizes, scaler=True, k=25, beta=0.01
            )
            made = ConformalRegressor().fit(residuals, sigmas=widths.apply(given["X_cal"]))
            ends = made.predict_int(
                given["f_test"], sigmas=widths.apply(given["X_test"]), confidence=level
            )
        return ends[:, 0], ends[:, 1]

    return intervals


PEERS = {
    "MAPIE absolute": mapie_absolute,
    "MAPIE normalized": mapie_normalized,
    "MAPIE CQR": mapie_quantiles,
    "crepes standard": crepes_of("standard"),
    "crepes kNN": crepes_of("kNN"),
    "crepes Mondrian": crepes_of("Mondrian"),
}


def main(source: str, into: str) -> None:
    """The peers' intervals of the arrays in a file."""
    import crepes  # noqa: F401 - not timed
    import mapie.regression  # noqa: F401

    warnings.filterwarnings("ignore")
    logging.disable()  # MAPIE says that the ends of its quantile models cross
    with np.load(source) as file:
        given = {name: file[name] for name in file.files}
    made: dict[str, Any] = {}
    few = {name: values[:100] if values.ndim else values for name, values in given.items()}
    for name, contestant in PEERS.items():
        contestant(few, float(given["level"]))  # once for what it loads
        start = time.process_time()
        low, high = contestant(given, float(given["level"]))
        made |= {
            f"{name}|low": low,
            f"{name}|high": high,
            f"{name}|seconds": time.process_time() - start,
        }
    np.savez(into, **made)


def peers(python: str, given: dict[str, Any], form: str) -> dict[str, dict[str, Any]]:
    """What the peers make of the same arrays."""
    from surelearn.bounds import conformal_rank_pac

    n, level = len(given["y_cal"]), 1 - ALPHA
    if form == "PAC":
        level = float(conformal_rank_pac(n, ALPHA, DELTA)) / (n + 1) - 1e-9
    with tempfile.TemporaryDirectory() as folder:
        source, into = (str(Path(folder) / name) for name in ("given.npz", "made.npz"))
        np.savez(source, **given, level=level)
        subprocess.run([python, __file__, source, into], check=True)  # noqa: S603
        with np.load(into) as file:
            found: dict[str, dict[str, Any]] = defaultdict(dict)
            for key in file.files:
                name, part = key.split("|")
                found[name][part] = file[key]
    return found


# ── the comparison ───────────────────────────────────────────────────────────────────────────────


def compare(python: str | None = None, seeds: int = 5) -> None:
    """Print one table per data set and form."""
    for name in SIZES:
        drawn = [given_of(name, seed) for seed in range(seeds)]
        if drawn[0] is None:
            continue
        for form in ("marginal", "PAC"):
            rows: dict[str, list[list[float]]] = defaultdict(list)
            forms = []
            for given in drawn:
                assert given is not None  # noqa: S101 - all are there or none
                mine = ours(given, form)
                forms.append(mine["form"])
                found = {"ours": mine} | ({} if python is None else peers(python, given, form))
                for contestant, made in found.items():
                    rows[contestant].append(_measured(given, made, mine))
            fit, cal, _ = SIZES[name]
            chosen = ", ".join(sorted(set(forms)))
            print(f"\n{name}, {form}: {fit:,} rows to fit on, {cal:,} to calibrate,"
                  f" {len(drawn[0]['y_test']):,} to test, {seeds} seeds; our form: {chosen}")  # fmt: skip
            print(f"  {'':<18}{'coverage':>16}{'worst fifth':>13}{'mean width':>22}"
                  f"{'ours/its at its coverage':>26}{'CPU s':>9}{'ours/its':>10}")  # fmt: skip
            base = float(np.median([row[3] for row in rows["ours"]]))
            for contestant, values in rows.items():
                v = np.array(values)
                mean, spread = v.mean(axis=0), v.std(axis=0, ddof=1) if seeds > 1 else 0 * v[0]
                cpu = float(np.median(v[:, 3]))
                print(f"  {contestant:<18}{mean[0]:>8.4f} ±{spread[0]:.4f}{mean[1]:>13.3f}"
                      f"{mean[2]:>13,.4g} ±{spread[2]:<7,.3g}{mean[4]:>17.3f} ±{spread[4]:.3f}"
                      f"{cpu:>12.3f}{base / max(cpu, 1e-9):>10.2f}")  # fmt: skip


def _measured(given: dict[str, Any], made: dict[str, Any], mine: dict[str, Any]) -> list[float]:
    """Coverage, that of the worst fifth of the predictions, mean width, seconds, and our width over
    this one's at its coverage.
    """
    y, said = given["y_test"], given["f_test"]
    inside = (y >= made["low"]) & (y <= made["high"])
    width = float((made["high"] - made["low"]).mean())
    fifth = np.searchsorted(np.quantile(said, np.arange(1, FIFTHS) / FIFTHS), said)
    worst = min(float(inside[fifth == k].mean()) for k in range(FIFTHS))
    equal = width_at(mine["band"], y, float(inside.mean())) / width
    return [float(inside.mean()), worst, width, float(made["seconds"]), equal]


if __name__ == "__main__":
    main(*sys.argv[1:])
