"""One fit of one peer, in whatever environment has it: called by bench_choice.py, never by hand.

    python benchmarks/_choice_peers.py FOLDER PEER SECONDS

SECONDS are of CPU: a peer that has a time limit finds a clock that counts them, and works in one
thread, since two that wait for each other would spend them. FOLDER holds fit.parquet, new.parquet (no
target) and spec.json; answers.npz is written there, with `answer` and, for classes, `probability`
(rows, classes in the order of the spec), and `seconds` of CPU. Peers get columns as their manuals ask
for them: categories as such, text as TF-IDF of words where the peer has no text of its own.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

WORDS = 128  # singular values of TF-IDF that a text becomes for trees


def cpu() -> float:
    """Seconds of CPU of this process and its children."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    found = [resource.getrusage(one) for one in whose]
    return sum(one.ru_utime + one.ru_stime for one in found)


def clock_of_cpu() -> None:
    """`time.time` counts CPU seconds from now on: called before a peer is imported."""
    begun, used = time.time(), cpu()
    time.time = time.perf_counter = lambda: begun + cpu() - used


def in_numbers(fit: pd.DataFrame, new: pd.DataFrame, spec: dict[str, Any]) -> tuple[Any, Any]:
    """Categories as pandas' categories of the fit rows, text as singular vectors of TF-IDF."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    fit, new = fit.copy(), new.copy()
    for name, kind in spec["kinds"].items():
        if kind == "category":
            words = {
                frame is new: [None if pd.isna(v) else str(v) for v in frame[name]]
                for frame in (fit, new)
            }
            known = sorted({word for word in words[False] if word is not None})
            for frame in (fit, new):
                frame[name] = pd.Categorical(words[frame is new], categories=known)
        elif kind == "text":
            words = TfidfVectorizer(min_df=2, sublinear_tf=True)
            before = words.fit_transform(fit[name].fillna("").astype(str))
            fewer = TruncatedSVD(min(WORDS, min(before.shape) - 1), random_state=0)
            parts = {"fit": fewer.fit_transform(before)}
            parts["new"] = fewer.transform(words.transform(new[name].fillna("").astype(str)))
            columns = [f"{name}_{i}" for i in range(parts["fit"].shape[1])]
            fit = fit.drop(columns=name).join(pd.DataFrame(parts["fit"], fit.index, columns))
            new = new.drop(columns=name).join(pd.DataFrame(parts["new"], new.index, columns))
    return fit, new


def made(peer: str, spec: dict[str, Any]) -> Any:
    """The peer at its defaults."""
    classes = spec["task"] == "classification"
    if peer == "HistGradientBoosting":
        import sklearn.ensemble as ensemble

        kind = "Classifier" if classes else "Regressor"
        cls = getattr(ensemble, f"HistGradientBoosting{kind}")
        return cls(categorical_features="from_dtype", random_state=spec["seed"])
    if peer == "LightGBM":
        import lightgbm

        cls = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
        return cls(random_state=spec["seed"], n_jobs=2, verbose=-1)
    if peer == "CatBoost":
        import catboost

        cls = catboost.CatBoostClassifier if classes else catboost.CatBoostRegressor
        named = [name for name, kind in spec["kinds"].items() if kind == "category"]
        settings = {"thread_count": 2, "verbose": 0, "allow_writing_files": False}
        return cls(random_seed=spec["seed"], cat_features=named, **settings)
    raise SystemExit(f"there is no peer {peer!r}")


def answers(
    peer: str,
    fit: pd.DataFrame,
    y: pd.Series,
    new: pd.DataFrame,
    spec: dict[str, Any],
    limit: float,
) -> tuple[Any, Any]:
    """Answers and probabilities (None for numbers) of one peer."""
    classes = spec["task"] == "classification"
    if peer == "AutoGluon":
        from autogluon.tabular import TabularPredictor

        with tempfile.TemporaryDirectory() as place:
            kept = TabularPredictor("target", path=place, verbosity=0)
            kept.fit(fit.assign(target=y.to_numpy()), time_limit=limit, num_cpus=1)
            said = kept.predict(new).to_numpy()
            said = said.astype(str) if classes else said.astype(float)  # no objects: no pickle
            sure = kept.predict_proba(new)[spec["classes"]].to_numpy() if classes else None
        return said, sure
    fit, new = in_numbers(fit, new, spec)
    if peer == "CatBoost":
        for frame in (fit, new):
            for name, kind in spec["kinds"].items():
                if kind == "category":
                    frame[name] = [v if v == v else "missing" for v in frame[name].astype(object)]
    codes = y.map({one: i for i, one in enumerate(spec["classes"])}) if classes else y
    if peer == "FLAML":
        from flaml import AutoML

        model = AutoML()
        task = spec["task"]
        options = {"time_budget": limit, "n_jobs": 1, "seed": spec["seed"], "verbose": 0}
        model.fit(fit, codes, task=task, **options)
    else:
        model = made(peer, spec).fit(fit, codes)
    if not classes:
        return model.predict(new), None
    sure = np.zeros((len(new), len(spec["classes"])))
    sure[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(new)
    return np.asarray(spec["classes"], dtype=object)[sure.argmax(1)].astype(str), sure


def main() -> None:
    folder, peer, limit = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    spec = json.loads((folder / "spec.json").read_text())
    fit, new = pd.read_parquet(folder / "fit.parquet"), pd.read_parquet(folder / "new.parquet")
    y = fit.pop("target")
    clock_of_cpu()
    before = cpu()
    said, sure = answers(peer, fit, y, new, spec, limit)
    kept = {"answer": np.asarray(said), "seconds": np.array(cpu() - before)}
    if sure is not None:
        kept["probability"] = np.asarray(sure, dtype=float)
    np.savez(folder / "answers.npz", **kept)


if __name__ == "__main__":
    main()
