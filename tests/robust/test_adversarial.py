"""Adversarial training: the closed form against brute force, and robustness that is bought with
accuracy.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression

from surelearn.attacks import domain, projected_gradient
from surelearn.robust import (
    AdversarialLinearClassifier,
    certified_radii,
    tradeoff,
    train_adversarially,
)
from surelearn.robust.adversarial_gap import RobustMachine, gap

CANCER, SICK = load_breast_cancer(return_X_y=True)
Z = (CANCER - CANCER.mean(axis=0)) / CANCER.std(axis=0)


def loss(model, X, signs, radius, norm):
    """The objective at the model's weights, by its definition: every row changed by the worst
    change.
    """
    w, b = model.coef_[0], model.intercept_[0]
    step = np.sign(w) if norm == "linf" else w / np.linalg.norm(w)
    margins = signs * ((X - radius * signs[:, None] * step) @ w + b)
    losses = (
        np.logaddexp(0, -margins) if model.loss == "logistic" else np.maximum(0, 1 - margins) ** 2
    )
    return losses.mean() + model.regularization * w @ w


@pytest.mark.parametrize("kind", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_the_objective_is_the_worst_case_and_least(norm, kind):
    X, signs = Z[:200, :5], 2.0 * SICK[:200] - 1
    model = AdversarialLinearClassifier(radius=0.3, norm=norm, loss=kind, regularization=1e-3).fit(
        X, SICK[:200]
    )
    assert model.objective_[0] == pytest.approx(loss(model, X, signs, 0.3, norm), rel=1e-9)

    def objective(v):
        model.coef_, model.intercept_ = v[None, :5], v[5:]
        return loss(model, X, signs, 0.3, norm)

    best, start = model.objective_[0], np.append(model.coef_[0], model.intercept_)
    found = minimize(
        objective,
        start + 1e-3,
        method="Nelder-Mead",
        options={"maxfev": 4000, "fatol": 1e-12, "xatol": 1e-9},
    )
    assert best <= found.fun + 1e-6 * abs(found.fun)


@pytest.mark.parametrize("kind", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_the_objective_is_above_its_minimum_by_no_more_than_claimed(norm, kind):
    """Stopped after a few steps on random rows, two and three classes: the claim holds always,
    and is small at the end.
    """
    random = np.random.default_rng(0)
    for trial in range(20):
        X, y = random.normal(size=(40, 4)), random.integers(0, 2 + trial % 2, 40)
        scale = random.uniform(0, 1, 4) * (random.uniform(size=4) > 0.2)
        options = {
            "norm": norm,
            "loss": kind,
            "radius": 0.2,
            "regularization": 10.0 ** random.uniform(-3, 0),
            "scale": scale,
        }
        best = AdversarialLinearClassifier(**options, tol=1e-12, max_iter=10_000).fit(X, y)
        short = AdversarialLinearClassifier(**options, max_iter=1 + trial % 6).fit(X, y)
        assert (
            short.certificate_["suboptimality"].value
            >= (at_weights(short, X, y) - at_weights(best, X, y)).max()
        )
        assert 0 < best.certificate_["suboptimality"].value < 1e-7
        for model in (short, best):
            found = model.certificate_.verify(model, X, y)
            assert found, found
        assert not best.certificate_.verify(best, X, y.max() - y)


def at_weights(model, X, y):
    """The objective of every machine at its weights, by the definition."""
    found = []
    for label, w, b in zip(
        model.classes_[-len(model.coef_) :], model.coef_, model.intercept_, strict=True
    ):
        signs = np.where(y == label, 1.0, -1.0)
        margins = signs * (X @ w + b) - model.radius * np.linalg.norm(
            model.scale * w, 1 if model.norm == "linf" else 2
        )
        losses = (
            np.logaddexp(0, -margins)
            if model.loss == "logistic"
            else np.maximum(0, 1 - margins) ** 2
        )
        found.append(losses.mean() + model.regularization * w @ w)
    return np.array(found)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_the_gap_of_two_rows_is_the_one_worked_out_by_hand(norm):
    """x = ±1, y = ±1, w = 0.7, b = 0: margins 0.7·(1 − r); a = 1/(1 + e^m); v = A = a; D = H(a)
    − a²(1 − r)²/(4λ).
    """
    r, lam = 0.25, 0.1
    machine = RobustMachine(np.array([0.7]), 0.0, r, norm, np.ones(1), "logistic", lam)
    found = gap(machine, np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]))
    m = 0.7 * (1 - r)
    a = 1 / (1 + np.exp(m))
    assert found.primal == pytest.approx(np.log1p(np.exp(-m)) + lam * 0.49, rel=1e-14)
    dual = -a * np.log(a) - (1 - a) * np.log(1 - a) - (a * (1 - r)) ** 2 / (4 * lam)
    assert found.dual == pytest.approx(dual, rel=1e-12)
    assert found.rounding < 1e-11


def test_radius_zero_is_logistic_regression():
    model = AdversarialLinearClassifier(radius=0.0, regularization=1e-3).fit(Z, SICK)
    peer = LogisticRegression(C=1 / (2 * 1e-3 * len(Z)), tol=1e-10, max_iter=10_000).fit(Z, SICK)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=2e-3)


def test_it_buys_robustness():
    def fit(radius):
        return AdversarialLinearClassifier(radius=radius).fit(Z[:300], SICK[:300])

    found = tradeoff(fit, [0.0, 0.2, 0.4, 1.0], Z[300:], SICK[300:], radius=0.3)
    assert found.attacked[0] < 0.6
    assert found.attacked[1] > found.attacked[0] + 0.2
    assert found.accuracy[3] < max(found.accuracy) - 0.01
    for proved, left in zip(found.certified, found.attacked, strict=True):
        assert proved == pytest.approx(left, abs=0.005), "for a linear model both are exact"


def test_several_classes_and_columns_that_do_not_change():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    model = AdversarialLinearClassifier(radius=0.1, max_iter=100).fit(X[:500], y[:500])
    plain = AdversarialLinearClassifier(radius=0.0, max_iter=100).fit(X[:500], y[:500])
    assert model.coef_.shape == (10, 64)
    attack = {"radius": 0.1, "where": domain(64, low=0, high=1)}
    left = [
        projected_gradient(m, X[500:700], y[500:700], **attack).robust_accuracy
        for m in (model, plain)
    ]
    assert left[0] > left[1] + 0.1
    fixed = AdversarialLinearClassifier(
        radius=1.0, scale=np.where(np.arange(30) < 15, 0.0, 1.0)
    ).fit(Z, SICK)
    assert np.abs(fixed.coef_[0, 15:]).sum() < 0.1 * np.abs(fixed.coef_[0, :15]).sum()


def test_a_module_trained_on_attacks_withstands_them():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    X = X / 16
    where = domain(64, low=0.0, high=1.0)
    made = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    before = [p.clone() for p in made.parameters()]
    options = {"where": where, "epochs": 15, "learning_rate": 1e-2, "random_state": 0}
    plain = train_adversarially(made, X[:800], y[:800], radius=0.0, **options)
    hard = train_adversarially(made, X[:800], y[:800], radius=0.1, **options)
    again = train_adversarially(made, X[:800], y[:800], radius=0.1, **options)
    assert all(torch.equal(a, b) for a, b in zip(before, made.parameters(), strict=True)), (
        "a copy is trained"
    )
    assert all(
        torch.equal(a, b) for a, b in zip(hard.parameters(), again.parameters(), strict=True)
    )
    left = [
        projected_gradient(m, X[800:1000], y[800:1000], radius=0.1, where=where).robust_accuracy
        for m in (plain, hard)
    ]
    assert left[1] > left[0] + 0.2
    assert certified_radii(hard, X[:5], norm="linf").values.shape == (5,)


def test_bad_input_gets_a_sentence():
    for options, message in [
        ({"radius": -1.0}, "radius must be"),
        ({"norm": "l1"}, "norm must be"),
        ({"loss": "hinge"}, "loss must be"),
        ({"regularization": np.inf}, "regularization must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            AdversarialLinearClassifier(**options).fit(Z, SICK)
    free = AdversarialLinearClassifier(regularization=0.0).fit(Z, SICK).certificate_
    assert free.claims == ()
    assert "without regularization" in free.lacking[0].reason
    with pytest.raises(ValueError, match="one class"):
        AdversarialLinearClassifier().fit(Z, np.zeros(len(Z)))
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="y must hold a whole number"):
        train_adversarially(torch.nn.Linear(30, 2), Z, SICK.astype(str), radius=0.1)
    with pytest.raises(ValueError, match="radius must be"):
        train_adversarially(torch.nn.Linear(30, 2), Z, SICK, radius=-0.1)
