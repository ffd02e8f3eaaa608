"""The section of curves, the confusion matrix, and recall and precision of each class."""

from __future__ import annotations

from dataclasses import replace

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
from surelearn.auditing.claims import Certified, Withholding, certify_table, cut_bins
from surelearn.auditing.dividing import divide
from surelearn.auditing.fitting import fit
from surelearn.auditing.options import Options
from surelearn.auditing.sections import skippable
from surelearn.auditing.sections.performance import average_precision, curve_points
from surelearn.data import read_table
from surelearn.jobs import Runner

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
    assert f"R² {float(rows['R²'][0]):.2f}, both measured" in result.verdict.sentence
    assert "always answering the median: 90% within" in result.verdict.sentence
    assert r2_score([1.0, 2.0], [1.0, 2.0]) == 1


@pytest.mark.parametrize("positive", [None, "yes"])
def test_held_back_rows_choose_nothing_that_is_claimed(positive):
    """The same fit and other held-back rows: bins, slices, classes and shares of δ are the same."""
    X, z = made()
    labels = np.select([z > 0.8, z > 0], ["yes", "perhaps"], "no")
    if positive is None:
        labels = np.where(z > 0, "yes", "no")
    table = read_table(X.assign(y=labels), target="y")
    divided = divide(table, (), Options(positive=positive, slices=("c",)))
    table, split, options = divided.table, divided.split, divided.options
    model = {"logistic": LogisticRegression()}
    fitted = fit(table, split, divided.columns, model, options, Runner())
    frame = table.frame.copy()
    held = frame.index[split.certify]
    frame.loc[held, ["a", "b", "c"]] *= -30.0  # sure of it, and other slices
    frame.loc[held, "y"] = "yes"
    certificates = [
        certify_table(Certified(one, split, fitted), options, Withholding())
        for one in (table, replace(table, frame=frame))
    ]
    usual, strange = [one.facts.options for one in certificates]
    assert len(usual["bins"]) > 1
    assert usual == strange
    shares = [{c.label: c.delta for c in one.together} for one in certificates]
    both = shares[0].keys() & shares[1].keys()
    assert {"errors", "balanced accuracy", "F1 for yes" if positive else "AUC for yes"} <= both
    assert any("slices of c" in label for label in both)
    assert all(shares[0][label] == shares[1][label] for label in both)


class Doubled(LogisticRegression):
    """Probabilities that are none."""

    def predict_proba(self, X):
        return 2 * super().predict_proba(X)


def test_what_are_no_probabilities_leaves_the_rest_of_the_page():
    X, z = made()
    y = np.where(z > 0, "yes", "no")
    result = surelearn.audit(Doubled().fit(X[:200], y[:200]), X[200:], y[200:], **LITTLE)
    assert result.verdict.kind == "guaranteed"
    assert "do not sum to 1" in result["performance"].notes[0]
    assert "do not sum to 1" in result["calibration"].notes[0]
    assert not result["calibration"].findings
    assert {"auc", "calibration"} <= {item.what for item in result.certificate.lacking}
    result.to_html()


def test_a_label_of_held_back_rows_only_changes_no_share():
    """It was not known before they were looked at; of two classes there stay two."""
    X, z = made()
    usual = np.where(z > 0, "yes", "no").astype(object)
    options = {**LITTLE, "target": "y", "models": {"logistic": LogisticRegression()}}
    before = surelearn.audit(X.assign(y=usual), **options).certificate
    for row in range(50):  # until it falls among the held-back rows
        y = usual.copy()
        y[row] = "perhaps"
        result = surelearn.audit(X.assign(y=y), **options)
        if result.certificate.facts.options.get("unseen"):
            break
    found = result.certificate
    assert found.facts.options["classes"] == ("no", "yes")
    assert found.facts.options["unseen"] == ("perhaps",)
    # the column of slices and the bins are those of other fit rows: not compared
    shares = [
        {c.quantity: round(c.delta, 12) for c in one.together if c.family not in ("slice", "bin")}
        for one in (found, before)
    ]
    assert shares[0] == shares[1]
    assert "nothing is guaranteed about ‘perhaps’ rows" in result.verdict.sentence
    assert "label more of them" in result.verdict.sentence
    assert [row[0] for row in result["performance"].tables[0].rows] == ["no", "yes", "perhaps"]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.full(300, 7.0), ""),
        (7 + 1e-15 * np.arange(300), ""),
        (1e200 * np.arange(300.0), "R² 1.00, measured"),
        (np.arange(300) / 1e6, "R² below -100, measured"),
    ],
)
def test_r_squared_of_strange_targets(y, words):
    """Constant, constant up to rounding, squares that overflow, a model of another scale."""
    X = np.arange(300.0)[:, None]
    model = LinearRegression().fit(X, X[:, 0])
    if y[-1] > 1:
        model.coef_, model.intercept_ = np.array([(y[-1] - y[0]) / 299]), y[0]
    result = surelearn.audit(model, X, y, independent=True, **LITTLE)
    assert f"(95% confidence{'; ' if words else ''}{words})" in result.verdict.sentence
    rows = {row[0]: row[1] for row in result["performance"].tables[0].rows}
    assert "nan" not in rows["RMSE"] + rows["R²"]
    assert "inf" not in rows["RMSE"] + rows["R²"]


def test_the_median_of_a_constant_target_is_marked_as_measured():
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = np.full(400, 7.0)
    model = LinearRegression().fit(X[:100], y[:100])
    result = surelearn.audit(model, X[100:], y[100:], seen=(X[:100], y[:100]), **LITTLE)
    assert "always answering the median: 90% within 0, measured)" in result.verdict.sentence


def test_bins_are_cut_where_the_probabilities_are():
    rng = np.random.default_rng(2)
    sure = np.concatenate([np.full(500, 0.001), np.full(500, 0.999), rng.random(20)])
    assert cut_bins(sure, 300) == (0.01,)
    assert cut_bins(rng.random(5000), 60) in ((0.5,), (0.6,))  # few rows: two bins
    assert all(0 < edge < 1 for edge in cut_bins(rng.random(5000), 10_000))
    assert cut_bins(np.array([]), 0) == (0.5,)
