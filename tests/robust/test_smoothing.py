"""The smoothed classifier: right as often as it says, where the truth is known, and abstaining
where it should.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from surelearn.robust import SmoothedClassifier, certify_robustness


def halfspace(X):
    return (X[:, 0] > 0).astype(int)


def test_radii_exceed_the_truth_no_more_often_than_alpha():
    """The smoothed halfspace is the halfspace, whose radius at x is |x₁|."""
    X = np.column_stack([np.full(3000, 0.3), np.zeros(3000)])
    alpha = 0.1
    found = SmoothedClassifier(
        halfspace, sigma=0.5, alpha=alpha, samples=100, select=20, random_state=0
    ).certify(X)
    too_large = np.mean((found.values > 0.3) | ((found.labels == 0) & ~found.abstained))
    assert 0.3 * alpha <= too_large <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / 3000)
    naive = 0.5 * norm.ppf(np.clip(found.successes / found.n, 1e-9, 1 - 1e-9))
    assert np.mean(naive > 0.3) > 3 * alpha, "without Clopper–Pearson it would fail far more often"


def test_decisions_are_wrong_no_more_often_than_alpha_and_abstain_near_the_boundary():
    X = np.column_stack([np.full(2000, 0.02), np.zeros(2000)])
    alpha = 0.05
    found = SmoothedClassifier(
        halfspace, sigma=0.5, alpha=alpha, samples=100, random_state=0
    ).decide(X)
    assert found.abstained.mean() > 0.8
    assert np.mean((found.labels == 0) & ~found.abstained) <= alpha
    far = SmoothedClassifier(halfspace, sigma=0.5, random_state=0).decide(X + 1.0)
    assert not far.abstained.any()
    assert (far.labels == 1).all()


def test_scale_measures_columns_and_fixes_them():
    X = np.array([[10.0, 0.0]])
    options = {"sigma": 0.5, "random_state": 0}
    one = SmoothedClassifier(halfspace, **options).certify(X / 10)
    ten = SmoothedClassifier(halfspace, scale=[10.0, 1.0], **options).certify(X)
    assert one.values == pytest.approx(ten.values)
    assert (
        SmoothedClassifier(halfspace, scale=[0.0, 1.0], **options).certify(X / 1e6).successes[0]
        == 1000
    )


def test_claims_and_seeds():
    model = SmoothedClassifier(halfspace, sigma=0.5, random_state=3)
    X = np.array([[1.0, 0.0], [0.5, 0.0]])
    found, again = model.certify(X), model.certify(X)
    assert (found.values == again.values).all()
    claim = found.claim(1)
    assert claim.value == found.values[1] == claim.recompute()
    assert claim.delta == pytest.approx(0.001)
    assert claim.covers.predictor == "smoothed"
    other = SmoothedClassifier(halfspace, sigma=0.5, random_state=4).certify(X)
    assert (other.successes != found.successes).any()
    words = SmoothedClassifier(
        lambda X: np.where(X[:, 0] > 0, "yes", "no"), sigma=0.1, random_state=0
    )
    assert words.predict(X).tolist() == ["yes", "yes"]


def test_the_certificate_pays_alpha_and_holds_as_often_as_it_says():
    """Rows uniform on [−1, 1]: the share farther than r from 0 is 1 − r."""
    random, radius, delta, misses = np.random.default_rng(0), 0.3, 0.2, 0
    for trial in range(60):
        X = random.uniform(-1, 1, (60, 1))
        model = SmoothedClassifier(
            halfspace, sigma=0.3, alpha=0.01, samples=200, select=20, random_state=trial
        )
        certificate = certify_robustness(model, X, halfspace(X), radius=radius, delta=delta)
        misses += certificate["robust_accuracy"].value > 1 - radius
        assert certificate.verify()
    assert misses <= 60 * delta
    claim = certificate["robust_accuracy"]
    assert claim.covers.predictor == "smoothed"
    assert claim.inputs["alpha"] == 0.01


def test_bad_input_gets_a_sentence():
    for options, message in [
        ({"sigma": 0.0}, "sigma must be"),
        ({"sigma": 1.0, "alpha": 0.0}, "alpha must lie"),
        ({"sigma": 1.0, "samples": 0}, "samples must be"),
        ({"sigma": 1.0, "select": 1.5}, "select must be"),
        ({"sigma": 1.0, "scale": -1.0}, "scale must not"),
    ]:
        with pytest.raises(ValueError, match=message):
            SmoothedClassifier(halfspace, **options)
    model = SmoothedClassifier(halfspace, sigma=1.0)
    with pytest.raises(ValueError, match="X must be finite"):
        model.certify([[np.nan]])
    with pytest.raises(ValueError, match="norm must be 'l2'"):
        certify_robustness(model, [[1.0]], [1], radius=0.1, norm="linf")
    with pytest.raises(ValueError, match="radius must be"):
        certify_robustness(model, [[1.0]], [1], radius=-0.1)
