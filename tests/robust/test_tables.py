"""Certified radii of pipelines that prepare the columns of a table apart, as a user calls them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

from surelearn.lacking import Lacking
from surelearn.robust import certified_radii, table_radii

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(40, 12, 120).round(1),
        "town": RNG.choice(["a", "b", "c"], 120),
        "pay": RNG.normal(3000, 800, 120),
    }
)
Y = (FRAME["age"] / 12 + FRAME["pay"] / 900 + (FRAME["town"] == "b") > 7).to_numpy().astype(int)
NUMBERS = ["age", "pay"]


def model_of(scaler, learner):
    columns = make_column_transformer((scaler, NUMBERS), (OneHotEncoder(), ["town"]))
    return make_pipeline(columns, learner).fit(FRAME, Y)


def test_the_radius_of_a_linear_model_is_its_score_over_its_slopes():
    model = model_of(StandardScaler(), LogisticRegression())
    found = table_radii(model, FRAME)
    # standard deviations of these rows are the units, all numbers at once
    slopes = np.abs(model[-1].coef_[0][:2]).sum()
    np.testing.assert_allclose(
        found.values, np.abs(model.decision_function(FRAME)) / slopes, rtol=1e-6
    )
    assert found.exact
    moved = FRAME.copy()
    step = -np.sign(model.decision_function(FRAME))[:, None] * np.sign(model[-1].coef_[0][:2])
    moved[NUMBERS] += step * 1.001 * found.values[:, None] * FRAME[NUMBERS].std(ddof=0).to_numpy()
    assert (model.predict(moved) != model.predict(FRAME)).all(), (
        "a radius a thousandth larger is false"
    )


def test_a_decision_threshold_moves_the_boundary():
    inside = model_of(StandardScaler(), LogisticRegression())
    model = FixedThresholdClassifier(
        inside, threshold=0.8, pos_label=1, response_method="predict_proba"
    ).fit(FRAME, Y)
    inside = model.estimator_
    slopes = np.abs(inside[-1].coef_[0][:2]).sum()
    distance = np.abs(inside.decision_function(FRAME) - np.log(0.8 / 0.2))
    np.testing.assert_allclose(table_radii(model, FRAME).values, distance / slopes, rtol=1e-6)


@pytest.mark.parametrize("response", ["predict_proba", "decision_function"])
def test_a_threshold_around_a_plain_model_has_radii_too(response):
    X = FRAME[NUMBERS].to_numpy() / [12.0, 900.0]
    level = 0.8 if response == "predict_proba" else 1.1
    model = FixedThresholdClassifier(
        LogisticRegression(), threshold=level, pos_label=0, response_method=response
    ).fit(X, Y)
    inside = model.estimator_
    at = -np.log(0.8 / 0.2) if response == "predict_proba" else -1.1
    distance = np.abs(inside.decision_function(X) - at) / np.linalg.norm(inside.coef_)
    np.testing.assert_allclose(certified_radii(model, X).values, distance, rtol=1e-6)


def test_why_there_is_none():
    binned = model_of(
        KBinsDiscretizer(quantile_method="averaged_inverted_cdf"), LogisticRegression()
    )
    assert "how the step" in table_radii(binned, FRAME).reason
    assert (
        "made of trees"
        in table_radii(model_of(StandardScaler(), RandomForestClassifier(3)), FRAME).reason
    )
    model = model_of(StandardScaler(), LogisticRegression())
    assert isinstance(table_radii(model, FRAME, kinds=dict.fromkeys(FRAME, "category")), Lacking)
