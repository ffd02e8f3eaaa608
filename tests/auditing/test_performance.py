"""The section of curves, the confusion matrix, and recall and precision of each class."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix,
    precision_recall_curve,
    r2_score,
    roc_curve,
)

import surelearn
from surelearn.auditing.claims import cut_bins
from surelearn.auditing.sections import skippable
from surelearn.auditing.sections.performance import average_precision, curve_points

LITTLE = {
    "ledger": False, "refits": 0, "curve_repeats": 0,
    "skip": [key for key in skippable() if key not in ("performance", "calibration")],
}  # fmt: skip


def made(n: int = 500) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    return X, (X.a + rng.normal(0, 0.7, n)).to_numpy()


def test_curves_are_scikit_learns():
    rng = np.random.default_rng(0)
    score, positive = rng.integers(0, 30, 200) / 30, rng.random(200) < 0.3
    false, true, precise = curve_points(score, positive)
    expected = roc_curve(positive, score, drop_intermediate=False)
    np.testing.assert_allclose(false, expected[0])
    np.testing.assert_allclose(true, expected[1])
    np.testing.assert_allclose(precise[:0:-1], precision_recall_curve(positive, score)[0][:-1])
    assert average_precision(score, positive) == pytest.approx(
        average_precision_score(positive, score)
    )


def test_a_fitted_classifier_has_curves_and_a_confusion_matrix():
    X, z = made()
    y = np.where(z > 0.3, "yes", "no")
    model = LogisticRegression().fit(X[:200], y[:200])
    result = surelearn.audit(model, X[200:], y[200:], **LITTLE)
    section = result["performance"]
    roc, recall = section.charts
    assert (roc.data["x"][0], roc.data["y"][-1]) == (0.0, 1.0)
    assert recall.data["x_label"] == "recall"
    counts = confusion_matrix(y[200:], model.predict(X[200:]), labels=["no", "yes"])
    assert [row[1:] for row in section.tables[1].rows] == [
        tuple(f"{n:,}" for n in row) for row in counts
    ]
    claim = result.certificate["auc"]
    assert f"(guaranteed {claim.bound()})" in section.notes[0]
    assert section.tables[0].rows[0][1] == f"{(y[200:] == 'no').sum():,}"
    # what the calibration section calls guaranteed is what the certificate has
    table = result["calibration"].tables[0]
    assert [row[2] for row in table.rows] == [
        c.bound() for c in result.certificate.together if c.quantity == "calibration"
    ]
    chart = result["calibration"].charts[0]
    values = [c.value for c in result.certificate.together if c.quantity == "calibration"]
    assert list(zip(chart.data["low"], chart.data["high"], strict=True)) == values


def test_a_regression_has_a_baseline_rmse_and_r_squared():
    X, z = made()
    result = surelearn.audit(
        X.assign(y=z), target="y", models={"linear": LinearRegression()}, **LITTLE
    )
    rows = {row[0]: row[1:] for row in result["performance"].tables[0].rows}
    assert set(rows) == {"mean absolute error", "RMSE", "90% are within", "R²"}
    assert 0.5 < float(rows["RMSE"][0]) < 0.9 < float(rows["RMSE"][1]) < 1.5
    assert 0.4 < float(rows["R²"][0]) < 0.9
    assert f"R² {float(rows['R²'][0]):.2f}, measured" in result.verdict.sentence
    assert "always answering the median: 90% within" in result.verdict.sentence
    assert r2_score([1.0, 2.0], [1.0, 2.0]) == 1


def test_bins_are_cut_where_the_probabilities_are():
    rng = np.random.default_rng(2)
    sure = np.concatenate([np.full(500, 0.001), np.full(500, 0.999), rng.random(20)])
    assert cut_bins(sure, 300) == (0.01,)
    assert cut_bins(rng.random(5000), 60) in ((0.5,), (0.6,))  # few rows: two bins
    assert all(0 < edge < 1 for edge in cut_bins(rng.random(5000), 10_000))
    assert cut_bins(np.array([]), 0) == (0.5,)
