"""Thresholds of poison as a user calls them: for scikit-learn's models and ours, in pipelines,
or why there are none.
"""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from surelearn import linear
from surelearn.lacking import Lacking
from surelearn.robust import cancel_answers, poisoning_thresholds

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3)) * [1.0, 5.0, 0.2]
Y = (X @ [1.0, -0.4, 2.0] + 0.3 * RNG.normal(size=90) > 0).astype(int)
T = X @ [1.0, -0.4, 2.0] + 3.0


def test_a_pipeline_has_the_threshold_of_its_learner_in_prepared_columns():
    Z = StandardScaler().fit_transform(X)
    whole = poisoning_thresholds(
        make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y), X, Y
    )
    alone = poisoning_thresholds(LogisticRegression().fit(Z, Y), Z, Y)
    assert [one.claim.value for one in whole] == pytest.approx([one.claim.value for one in alone])
    assert all(one.claim.recompute() == one.claim.value for one in whole)
    assert (whole[0].predict(X) != Y).mean() > 0.9
    assert any("the column x" in line for line in whole[0].claim.assumptions)


def test_liblinear_penalizes_its_intercept():
    """½(‖w‖² + (b/s)²) + C·Σ loss: the slope of the total penalty along the weights comes in."""
    model = LogisticRegression(solver="liblinear", C=0.5, intercept_scaling=2.0, tol=1e-10).fit(
        X, Y
    )
    found = {one.claim.label: one.claim for one in poisoning_thresholds(model, X, Y)}
    claim = next(claim for label, claim in found.items() if "flip" in label)
    penalty = 1 / (2 * 0.5 * len(Y))
    middle, half = (X.max(0) + X.min(0)) / 2, (X.max(0) - X.min(0)) / 2
    sign = np.where(Y == 1, 1.0, -1.0)
    right = sign * model.decision_function(X) > 0
    values = []
    for j in range(3):
        for s in (1, -1):
            along = s * sign * (X[:, j] - middle[j]) / half[j]
            gain = np.where(right, along, np.minimum(along, 0)).mean()
            q = 2 * penalty * (1 + 0.25 * middle[j] ** 2) / half[j] ** 2
            values.append((gain - 0.27846454276107374 * np.mean(~right) - q) / (1 + q))
    assert claim.value >= max(values) - 1e-12
    assert claim.value == pytest.approx(max(values), rel=1e-9)


def test_a_regression_of_scaled_targets_is_mirrored_in_the_units_given():
    model = TransformedTargetRegressor(Ridge(), transformer=StandardScaler()).fit(X, T)
    (found,) = poisoning_thresholds(model, X, T)
    middle = (T.max() + T.min()) / 2
    np.testing.assert_allclose(found.predict(X), 2 * middle - model.predict(X))
    assert found.claim.value > 0


def test_the_rows_must_be_those_of_the_fit():
    model = linear.Ridge(regularization=0.1).fit(X, T)
    assert not isinstance(poisoning_thresholds(model, X, T), Lacking)
    assert isinstance(poisoning_thresholds(model, X[:50], T[:50]), Lacking)


def test_without_a_known_minimizer_there_is_a_reason():
    for model, y in (
        (GaussianNB(), Y),
        (SVC(class_weight="balanced"), Y),
        (linear.LogisticRegression(finish=None), Y),
    ):
        found = poisoning_thresholds(model.fit(X, y), X, y)
        assert isinstance(found, Lacking)
        assert "it needs the minimizer of a convex loss" in found.reason
    weighted = linear.Ridge(regularization=0.1).fit(X, T, sample_weight=np.arange(1.0, 91.0))
    assert isinstance(poisoning_thresholds(weighted, X, T), Lacking)


def test_an_attack_is_held_against_the_threshold():
    model = linear.LogisticRegression(regularization=0.01, epochs=0, finish="newton").fit(X, Y)
    attack = cancel_answers(model, X, Y)
    assert attack.flipped[0] < 1.0 == attack.flipped[-1]
    assert attack.fraction > attack.threshold
    assert "two classes" in cancel_answers(Ridge().fit(X, T), X, T).reason
