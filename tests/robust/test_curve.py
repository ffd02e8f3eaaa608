"""Curves: the attack above the certificate, both falling; certificates from fresh rows that
hold as often as they say.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from surelearn.attacks import domain
from surelearn.certificate import Certificate
from surelearn.robust import SmoothedClassifier, certify_robustness, robustness_curve
from surelearn.robust.certified import UNITS

IRIS, SPECIES = load_iris(return_X_y=True)
RADII = (0.0, 0.1, 0.3, 0.6, 1.0)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("model", [LogisticRegression(max_iter=1000), SVC()])
def test_the_truth_lies_between_the_curves(model, norm):
    model.fit(IRIS[::2], SPECIES[::2])
    curve = robustness_curve(
        model, IRIS[1::2], SPECIES[1::2], RADII[::-1], norm=norm, restarts=3, random_state=0
    )
    assert curve.radii == RADII
    assert (
        curve.attacked[0]
        == curve.certified[0]
        == (model.predict(IRIS[1::2]) == SPECIES[1::2]).mean()
    )
    assert all(low <= high for low, high in zip(curve.certified, curve.attacked, strict=True))
    assert (np.diff(curve.attacked) <= 0).all()
    assert (np.diff(curve.certified) <= 0).all()
    if isinstance(model, LogisticRegression):
        np.testing.assert_allclose(curve.attacked, curve.certified, atol=0.021)
    assert curve.n == 75


def test_a_forest_has_an_attack_and_a_reason():
    model = RandomForestClassifier(10, random_state=0).fit(IRIS[::2], SPECIES[::2])
    X, y = IRIS[1::6], SPECIES[1::6]
    curve = robustness_curve(
        model,
        X,
        y,
        RADII,
        others=IRIS[::2],
        budget=60,
        random_state=0,
        where=domain(4, low=0, high=8),
    )
    assert "RandomForestClassifier has no gradient" in curve.certified.reason
    assert curve.attack.startswith("decision-based")
    assert curve.attacked[-1] < curve.attacked[0]
    with pytest.raises(ValueError, match="give others="):
        robustness_curve(model, X, y, RADII)


def test_the_certificate_says_it_or_why_not():
    model = LogisticRegression(max_iter=1000).fit(IRIS[::2], SPECIES[::2])
    certificate = certify_robustness(model, IRIS[1::2], SPECIES[1::2], radius=0.2, norm="linf")
    claim = certificate["robust_accuracy"]
    assert 0.3 < claim.value < claim.measured < 1
    assert claim.label == "robust accuracy within 0.2 (linf)"
    assert any("exact arithmetic" in line for line in claim.assumptions)
    assert certificate.verify()
    assert Certificate.from_json(certificate.to_json()) == certificate
    forest = RandomForestClassifier(5, random_state=0).fit(IRIS, SPECIES)
    absent = certify_robustness(forest, IRIS, SPECIES, radius=0.2).lacking
    assert absent[0].what == "robust_accuracy"
    assert "no gradient" in absent[0].reason


def test_certificates_hold_as_often_as_they_say():
    """Rows uniform on [−1, 1], f(x) = x, label its sign: the share farther than r from 0 is 1 −
    r.
    """
    random, radius, delta, n = np.random.default_rng(0), 0.3, 0.1, 50
    missed, model = 0, LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    model.coef_[:], model.intercept_[:] = 1.0, 0.0
    for _ in range(300):
        X = random.uniform(-1, 1, (n, 1))
        missed += (
            certify_robustness(model, X, model.predict(X), radius=radius, delta=delta)[
                "robust_accuracy"
            ].value
            > 1 - radius
        )
    assert 300 * delta * 0.3 <= missed <= 300 * delta + 3 * np.sqrt(300 * delta * (1 - delta))


@pytest.mark.parametrize("spread", [np.std, lambda X, axis: X.std(axis=axis, ddof=1), np.ptp])
def test_units_that_come_from_the_rows_certified_void_the_claim(spread):
    model = LogisticRegression(max_iter=1000).fit(IRIS[::2], SPECIES[::2])
    X, y = IRIS[1::2], SPECIES[1::2]
    own, other = (domain(4, scale=spread(rows, axis=0)) for rows in (X, IRIS[::2]))
    (absent,) = certify_robustness(model, X, y, radius=0.1, where=own).lacking
    assert absent.reason.endswith("of these rows: take it from other rows, or state it")
    claim = certify_robustness(model, X, y, radius=0.1, where=other)["robust_accuracy"]
    assert UNITS in claim.assumptions
    smoothed = SmoothedClassifier(model, sigma=0.2, scale=own.scale, samples=50, random_state=0)
    assert not certify_robustness(smoothed, X, y, radius=0.1).claims


def test_stated_units_are_not_taken_for_a_spread():
    model = LogisticRegression().fit([[0.0, 0.0], [1.0, 1.0]], [0, 1])
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]])  # of range 1
    for scale in (1.0, [1.0, 1.0], [1.0, 0.0], [0.3, 0.2]):
        assert certify_robustness(
            model, X, [0, 1, 1], radius=0.1, where=domain(2, scale=scale)
        ).claims


def test_units_chosen_by_the_rows_certified_break_the_claim():
    """Stated units keep the confidence; units picked where the rows happen to lie well lose it.
    Rows are ±uniform.
    """
    rng, n, delta, trials, wrong = np.random.default_rng(0), 12, 0.1, 60, {"picked": 0, "stated": 0}
    model = LogisticRegression(C=1e6).fit([[-1.0], [1.0]], [0, 1])
    for _ in range(trials):
        X = rng.uniform(-1, 1, (n, 1))
        y = (X[:, 0] > 0).astype(int)
        picked = 10 * np.sort(np.abs(X[:, 0])) * (1 - 1e-9)
        scale = {"stated": [5.0], "picked": picked.tolist()}
        for name, units in scale.items():
            made = [
                certify_robustness(model, X, y, radius=0.1, where=domain(1, scale=u), delta=delta)
                for u in units
            ]
            wrong[name] += any(
                one.claims[0].value > 1 - 0.1 * u for one, u in zip(made, units, strict=True)
            )
    assert wrong["stated"] <= trials * delta + 3 * np.sqrt(trials * delta)
    assert wrong["picked"] > 2 * trials * delta
