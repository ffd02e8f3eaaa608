"""Rows in the order of time: forward chaining chooses, a constant answer stands beside, groups
may be new as well.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import surelearn

QUICK = {
    "ledger": False,
    "refits": 0,
    "curve_repeats": 0,
    "skip": ["robustness", "poisoning", "membership", "attribution"],
}


def drifting(rng, rows=400):
    """Labels keep for about fifteen days and then turn: neighbors in time tell them, unless the
    neighbors lie ahead.
    """
    day = np.arange(rows, dtype=float)
    y = (np.cumsum(rng.random(rows) < 1 / 15) % 2).astype(int)
    frame = pd.DataFrame(
        {
            "day": day,
            "clock": day + 0.1 * rng.random(rows),
            "x": 2 * y + rng.normal(size=rows),
            "y": y,
        }
    )
    return frame.iloc[rng.permutation(rows)].reset_index(drop=True)


MODELS = {
    "always the same": make_pipeline(DummyClassifier()),
    "x": make_pipeline(ColumnTransformer([("x", "passthrough", ["x"])]), LogisticRegression()),
    "neighbors": make_pipeline(
        ColumnTransformer([("clock", "passthrough", ["clock"])]), KNeighborsClassifier(1)
    ),
}


def test_candidates_are_compared_forward_in_time():
    """Shuffled folds choose the neighbors, who know tomorrow's labels and are lost on the last
    rows.
    """
    frame = drifting(np.random.default_rng(0))
    by_errors = {"target": "y", "models": MODELS, "metric": "accuracy", **QUICK}
    shuffled = surelearn.audit(frame.drop(columns="day"), **by_errors)
    assert (
        shuffled.numbers["selection"]["names"][shuffled.numbers["selection"]["chosen"]]
        == "neighbors"
    )
    ordered = surelearn.audit(frame, time="day", **by_errors)
    assert ordered.numbers["selection"]["names"][ordered.numbers["selection"]["chosen"]] == "x"
    assert "forward chaining in 5 steps" in ordered["selection"].notes[0].lower()


def test_a_constant_answer_stands_beside_what_was_measured():
    rng = np.random.default_rng(1)
    frame = drifting(rng)
    result = surelearn.audit(frame, target="y", time="day", models=MODELS["x"], **QUICK)
    last = frame.sort_values("day")["y"].to_numpy()[-result.certificate.facts["rows"] :]
    first = frame.sort_values("day")["y"].to_numpy()[: -last.size]
    error = f"{100 * np.mean(last != np.bincount(first).argmax()):.1f}%"
    assert (
        f", against {error} for always answering ‘{np.bincount(first).argmax()}’; nothing is"
        " guaranteed" in result.verdict.text
    )
    assert result["over_time"].tables[0].rows[1] == (
        "errors",
        f"always answering ‘{np.bincount(first).argmax()}’",
        error,
    )
    numbers = surelearn.audit(
        frame.assign(y=frame["x"] + frame["day"]),
        target="y",
        time="day",
        models=["median"],
        **QUICK,
    )
    assert " for always answering the median, " in numbers.verdict.text
    (_, _, model), (_, _, constant) = numbers["over_time"].tables[0].rows
    assert model == constant


def visits(rng, patients=60):
    begins = np.sort(rng.integers(0, 300, patients))
    frame = pd.concat(
        [
            pd.DataFrame(
                {"patient": f"p{i}", "month": begin + 4.0 * np.arange(8), "x": rng.normal(size=8)}
            )
            for i, begin in enumerate(begins)
        ]
    )
    return frame.assign(y=(frame["x"] + rng.normal(size=len(frame)) > 0).astype(int)).reset_index(
        drop=True
    )


def test_new_patients_in_later_months(tmp_path):
    frame = visits(np.random.default_rng(2))
    frame.to_csv(tmp_path / "visits.csv", index=False)
    result = surelearn.audit(
        tmp_path / "visits.csv",
        target="y",
        group="patient",
        time="month",
        models={"x": LogisticRegression()},
        **QUICK,
    )
    assert result.verdict.kind == "measured only"
    assert result.claims == ()
    assert "patients to begin by month" in result.verdict.text
    assert "always answering" in result.verdict.text
    rows = dict(result["split"].tables[0].rows)
    assert sum(map(int, rows.values())) == len(frame)
    assert int(rows["not used"]) > 0
    with pytest.raises(ValueError, match="use --group or --time alone"):
        surelearn.audit(
            frame.assign(month=frame.groupby("patient").cumcount()),
            target="y",
            group="patient",
            time="month",
        )
