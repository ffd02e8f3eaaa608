"""Rows per second of `surelearn predict`, file to file, beside the plain pipeline: in memory, and
with pandas around it.

The limit is the pipeline itself; everything above its time is reading by the schema, naming what is
odd, and writing.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _timing import compare
from sklearn.linear_model import LogisticRegression, Ridge

import surelearn
from surelearn.persistence import read_model
from surelearn.prediction import Predictor

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
ROWS = 100_000
TABLES = {
    "adult, logistic regression": (
        DATA / "adult_train.csv",
        {"target": -1, "header": False},
        LogisticRegression(max_iter=1000),
    ),
    "california housing, ridge": (
        DATA / "california_housing.csv",
        {"target": "median_house_value"},
        Ridge(),
    ),
}


def plain_pipeline(model: object, frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """What one would write by hand."""
    X = frame[columns]
    added = {"prediction": model.predict(X)}  # type: ignore[attr-defined]
    if hasattr(model, "predict_proba"):
        added["probability"] = model.predict_proba(X).max(axis=1)  # type: ignore[attr-defined]
    return frame.assign(**added)


def bench(name: str, path: Path, reading: dict[str, Any], model: Any) -> None:
    """One table and model."""
    if not path.exists():
        print(f"{name}: skipped, {path.name} is not here")
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        result = surelearn.audit(
            path, **reading, models={"model": model}, ledger=False, refits=2, curve_repeats=0
        )
        surelearn.save(
            result.model, folder / "model", certificate=result.certificate, schema=result.schema
        )
        saved = read_model(folder / "model")
        header = 0 if reading.get("header", True) else None
        table = pd.read_csv(path, header=header, skipinitialspace=True, na_values="?")
        if header is None:
            table.columns = [f"column {i}" for i in range(1, table.shape[1] + 1)]
        big = pd.concat([table] * (ROWS // len(table) + 1))[:ROWS]
        big.to_csv(folder / "big.csv", index=False)
        features = Predictor(saved)
        columns = [feature.name for feature in features.schema.features]
        with features.open(folder / "big.csv", header=True) as stream:
            X = pd.concat([features.rows(stream, piece) for piece in stream.tables])

        def ours() -> None:
            Predictor(saved).write(folder / "big.csv", folder / "ours.csv", header=True)

        def by_hand() -> None:
            frame = pd.read_csv(folder / "big.csv", keep_default_na=False, na_values=["", "?"])
            words = frame.select_dtypes(exclude="number").columns
            frame[words] = frame[words].astype(object).where(frame[words].notna(), None)
            plain_pipeline(saved.model, frame, columns).to_csv(folder / "hand.csv", index=False)

        start = time.perf_counter()
        ours()
        print(f"{name}: {ROWS / (time.perf_counter() - start):,.0f} rows a second, file to file")
        compare(
            f"predict {ROWS:,} rows, file to file",
            {
                "surelearn predict": ours,
                "pandas, plain pipeline, pandas": by_hand,
                "plain pipeline's predict, in memory": lambda: saved.model.predict(X),
                "its predict and predict_proba, in memory": lambda: plain_pipeline(
                    saved.model, X, columns
                ),
            },
            repeats=5,
        )
        one, two = (pd.read_csv(folder / file)["prediction"] for file in ("ours.csv", "hand.csv"))
        same = np.isclose(one, two, rtol=1e-12) if one.dtype.kind == "f" else one == two
        print(f"  same predictions (up to the last digits) in {100 * same.mean():g}% of rows")


for title, table in TABLES.items():
    bench(title, *table)
