"""Exact Shapley values of 12 columns, 100 explained rows against 100 background rows, beside the
model calls alone.

The limit is the model itself: 2¹² coalitions of 100 × 100 mixed rows, predicted in batches of the
same size. shap's exact explainer and shapiq stand beside it where they are installed, on two rows,
as multiples of the calls for these. With a number as argument, only so many explained rows; with
"trees", only the paths of the trees of each library.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from _timing import compare
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from surelearn.attribution import explain
from surelearn.attribution.games import BATCH

COLUMNS, BACKGROUND = 12, 100
ROWS = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1] != "trees" else 100
PEER_ROWS = 2


def model_calls(model: Any, X: Any, background: Any) -> Callable[[], None]:
    """Predict as many rows as there are mixed rows, already made, in batches of the size that
    ours takes.
    """
    count = len(X) * BACKGROUND
    each = (
        count * 2 ** max(0, (BATCH // count).bit_length() - 1)
        if count <= BATCH
        else BATCH // BACKGROUND * BACKGROUND
    )
    block = np.ascontiguousarray(np.tile(background, (each // BACKGROUND, 1)))
    calls = round(2**COLUMNS * count / each)

    def run() -> None:
        for _ in range(calls):
            model.predict_proba(block)

    return run


def shap_exact(model: Any, X: Any, background: Any) -> Any:
    import shap

    masker = shap.maskers.Independent(background, max_samples=len(background))
    return shap.explainers.ExactExplainer(lambda Z: model.predict_proba(Z)[:, 1], masker)(
        X[:PEER_ROWS]
    ).values


def shapiq_exact(model: Any, X: Any, background: Any) -> Any:
    import shapiq

    imputer = shapiq.MarginalImputer(
        lambda Z: model.predict_proba(Z)[:, 1],
        background,
        sample_size=len(background),
        joint_marginal_distribution=True,
    )
    found = []
    for x in X[:PEER_ROWS]:
        imputer.fit(x)
        computed = shapiq.ExactComputer(imputer, n_players=COLUMNS)("SV", 1)
        found.append([computed[(j,)] for j in range(COLUMNS)])
    return np.array(found)


def bench(name: str, model: Any, X: Any, y: Any, most: int) -> None:
    """One model, at most so many explained rows: the ratio hardly depends on them."""
    model.fit(X, y)
    rows, background = X[: min(ROWS, most)], X[-BACKGROUND:]
    ours = explain(model, rows, background, method="exact")
    compare(
        f"{name}: {COLUMNS} columns, {len(rows)} rows, {BACKGROUND} background rows,"
        f" {ours.model_rows:,} predictions",
        {
            "explain(method='exact')": lambda: explain(model, rows, background, method="exact"),
            "the model calls alone": model_calls(model, rows, background),
        },
        repeats=3,
    )
    alone = _seconds(model_calls(model, rows[:PEER_ROWS], background))
    for peer, package, run in (
        ("shap, exact explainer", "shap", shap_exact),
        ("shapiq, exact", "shapiq", shapiq_exact),
    ):
        if importlib.util.find_spec(package) is None:
            print(f"  {peer}: not installed")
            continue
        made: list[Any] = []
        run(model, rows[:1], background)  # lazy imports, compiling
        spent = _seconds(lambda run=run, made=made: made.append(run(model, rows, background)))
        apart = np.abs(made[0] - ours.values[:PEER_ROWS]).max()
        print(
            f"  {peer:<44} {spent / alone:9.2f} × its model calls ({PEER_ROWS} rows), differs by"
            f" {apart:.1e}"
        )


def _seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def main() -> None:
    X, y = make_classification(2000, COLUMNS, n_informative=8, random_state=0)
    for name, model, most in (
        ("logistic regression", LogisticRegression(), 100),
        ("network of 32 units", MLPClassifier((32,), max_iter=50, random_state=0), 100),
        ("boosting, 50 trees", HistGradientBoostingClassifier(max_iter=50, random_state=0), 4),
    ):
        bench(name, model, X, y, most)
    paths_of_trees()


def paths_of_trees() -> None:
    """50 rows against 100, and what each tree library needs for it by shap, explainer made each
    time as ours reads the trees each time.
    """
    X, y = make_classification(5000, 20, n_informative=8, random_state=0)
    rows, background = X[:50], X[-BACKGROUND:]
    options: dict[str, Any] = {"n_jobs": 1, "verbose": -1}
    models: dict[str, Any] = {
        "forest of 100 trees": RandomForestClassifier(100, random_state=0),
        "histogram boosting": HistGradientBoostingClassifier(random_state=0),
    }
    if importlib.util.find_spec("lightgbm") is not None:
        import lightgbm

        models["LightGBM"] = lightgbm.LGBMClassifier(**options)
    if importlib.util.find_spec("xgboost") is not None:
        import xgboost

        models["XGBoost"] = xgboost.XGBClassifier(n_jobs=1)
    if importlib.util.find_spec("catboost") is not None:
        import catboost

        models["CatBoost, 1,000 trees"] = catboost.CatBoostClassifier(
            thread_count=1, verbose=0, allow_writing_files=False
        )
    for name, model in models.items():
        output = "probability" if name.startswith("forest") else "score"
        model.fit(X, y)
        found = explain(model, rows, background, output=output)
        compare(
            f"{name}: {len(rows)} rows, {BACKGROUND} background rows, {found.method}",
            {
                "explain()": lambda model=model, output=output: explain(
                    model, rows, background, output=output
                ),
                **_tree_peer(model, rows, background),
            },
            repeats=3,
        )
    names = (
        pd.DataFrame(X)
        .rename(columns=str)
        .assign(kind=pd.Categorical(np.where(X[:, 0] > 0, "a", "b")))
    )
    native = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    native.fit(names, y)
    few, others = names[:10], names[-50:]
    compare(
        "native categories: 10 rows, 50 background rows",
        {
            "explain()": lambda: explain(native, few, others, output="score"),
            "explain(method='sampling'), 10,000 coalitions": lambda: explain(
                native, few, others, output="score", method="sampling"
            ),
        },
        repeats=1,
    )


def _tree_peer(model: Any, rows: Any, background: Any) -> dict[str, Callable[[], object]]:
    if importlib.util.find_spec("shap") is None:
        return {}
    import shap

    def run() -> object:
        explainer = shap.TreeExplainer(
            model, background, feature_perturbation="interventional", model_output="raw"
        )
        return explainer.shap_values(rows, check_additivity=False)

    return {"shap.TreeExplainer, interventional": run}


if __name__ == "__main__":
    if sys.argv[1:] == ["trees"]:
        paths_of_trees()
    else:
        main()
