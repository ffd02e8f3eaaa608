"""Gradient attacks: exact for linear models, within their bounds to the last digit, and every
refusal.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from surelearn.attacks import (
    decision_attack,
    domain,
    fgsm,
    projected_gradient,
    simplest_change,
    smallest_change,
)

CANCER, SICK = load_breast_cancer(return_X_y=True)
Z = (CANCER - CANCER.mean(axis=0)) / CANCER.std(axis=0)
DIGITS, NUMBERS = load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def binary():
    return LogisticRegression(C=0.1).fit(Z[:300], SICK[:300])


@pytest.fixture(scope="module")
def digits():
    return MLPClassifier((32,), max_iter=40, random_state=0, tol=1.0).fit(
        DIGITS[:1000] / 16, NUMBERS[:1000]
    )


def exact_distance(model, X, norm):
    w = model.coef_[0]
    return np.abs(model.decision_function(X)) / (
        np.linalg.norm(w) if norm == "l2" else np.abs(w).sum()
    )


@pytest.mark.parametrize("attack", [fgsm, projected_gradient])
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_linear_model_is_turned_exactly_where_the_hyperplane_is_near(binary, attack, norm):
    X, y = Z[300:], SICK[300:]
    radius = 0.3 if norm == "linf" else 1.0
    found = attack(binary, X, y, radius=radius, norm=norm)
    wrong, apart = binary.predict(X) != y, exact_distance(binary, X, norm)
    near = apart < radius * (1 - 1e-9)
    assert 0.1 < near.mean() < 0.9
    assert (found.success == (wrong | near)).all()
    assert found.robust_accuracy == 1 - found.success.mean()
    assert found.accuracy == 1 - wrong.mean()
    assert (found.distance[wrong] == 0).all()
    assert (found.rows[~found.success] == X[~found.success]).all()
    assert np.isinf(found.distance[~found.success]).all()
    assert (binary.predict(found.rows) != y)[found.success].all()


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_smallest_change_of_a_linear_model_is_its_distance(binary, norm):
    X, y = Z[300:340], SICK[300:340]
    found = smallest_change(binary, X, y, largest=20.0, norm=norm)
    right = binary.predict(X) == y
    np.testing.assert_allclose(
        found.distance[right], exact_distance(binary, X, norm)[right], rtol=2e-2
    )
    assert (found.distance[right] >= exact_distance(binary, X, norm)[right] * (1 - 1e-9)).all()
    assert found.success.all()


def test_the_smallest_change_is_not_looked_for_beyond_the_largest(binary):
    found = smallest_change(binary, Z[300:340], SICK[300:340], largest=0.2)
    assert 0 < found.success.sum() < 40
    assert (found.distance[found.success] <= 0.2).all()


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(["l2", "linf"]), st.floats(1e-6, 10), st.booleans())
def test_bounds_hold_to_the_last_digit(seed, norm, radius, double):
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(seed)
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    model = model.double() if double else model
    X = random.standard_normal((12, 6)) * 10.0 ** random.integers(-3, 5, 6)
    y = random.integers(0, 3, 12)
    scale = random.uniform(0.1, 10, 6)
    low, high = X.min(axis=0) - random.uniform(0, 1, 6), X.max(axis=0) + random.uniform(0, 0.1, 6)
    where = domain(6, low=low, high=high, scale=scale, fixed=[2])
    found = projected_gradient(
        model,
        X,
        y,
        radius=radius,
        norm=norm,
        where=where,
        steps=5,
        restarts=2,
        random_start=True,
        random_state=seed,
    )
    step = np.delete((found.rows - X) / scale, 2, axis=1)
    length = np.abs(step).max(axis=1) if norm == "linf" else np.sqrt((step**2).sum(axis=1))
    assert (length <= radius * (1 + 1e-15)).all()
    assert (np.where(found.success, found.distance, 0) <= radius).all()
    assert (found.rows >= low).all()
    assert (found.rows <= high).all()
    assert (found.rows[:, 2] == X[:, 2]).all()


@pytest.mark.parametrize(
    "options",
    [{}, {"loss": "margin"}, {"momentum": 0.5}, {"schedule": "linear"}, {"schedule": "constant"}],
)
def test_projected_gradient_beats_one_step_and_noise(digits, options):
    X, y = DIGITS[1000:1300] / 16, NUMBERS[1000:1300]
    where = domain(64, low=0.0, high=1.0)
    one = fgsm(digits, X, y, radius=0.1, where=where)
    many = projected_gradient(digits, X, y, radius=0.1, where=where, **options)
    noise = np.clip(X + np.random.default_rng(0).choice([-0.1, 0.1], X.shape), 0, 1)
    assert many.robust_accuracy < one.robust_accuracy < many.accuracy
    assert (digits.predict(noise) == y).mean() > one.robust_accuracy


def test_restarts_only_help_and_seeds_repeat(digits):
    X, y = DIGITS[1000:1200] / 16, NUMBERS[1000:1200]
    options = {"radius": 0.08, "steps": 10}
    once = projected_gradient(digits, X, y, **options)
    more = projected_gradient(digits, X, y, **options, restarts=4, random_state=0)
    assert (more.success >= once.success).all()
    assert more.success.sum() > once.success.sum()
    again = projected_gradient(digits, X, y, **options, restarts=4, random_state=0)
    assert (more.rows == again.rows).all()
    one, two, same = (
        projected_gradient(digits, X, y, **options, random_start=True, random_state=s)
        for s in (0, 1, 0)
    )
    assert (one.rows == same.rows).all()
    assert (one.rows != two.rows).any()
    assert more.calls == again.calls > once.calls


def test_a_target_is_reached(digits):
    X, y = DIGITS[1000:1050] / 16, NUMBERS[1000:1050]
    found = projected_gradient(digits, X, y, radius=0.5, target=8)
    assert found.success.mean() > 0.8
    assert (digits.predict(found.rows[found.success]) == 8).all()
    assert (found.distance[digits.predict(X) == 8] == 0).all()
    with pytest.raises(ValueError, match=r"target must hold the model's classes, .* not 11"):
        projected_gradient(digits, X, y, radius=0.5, target=11)


def test_votes_and_preparations_are_attacked_through(digits):
    del digits
    model = make_pipeline(StandardScaler(), SVC(gamma=0.02)).fit(DIGITS[:1000], NUMBERS[:1000])
    found = projected_gradient(
        model, DIGITS[1000:1100], NUMBERS[1000:1100], radius=5.0, where=domain(64, low=0, high=16)
    )
    assert found.accuracy > 0.9
    assert found.robust_accuracy < 0.5
    assert (model.predict(found.rows) != NUMBERS[1000:1100])[found.success].all()


def test_a_radius_for_every_row(binary):
    X, y = Z[300:], SICK[300:]
    radius = np.where(np.arange(len(X)) % 2 == 0, 0.0, 5.0)
    found = projected_gradient(binary, X, y, radius=radius)
    wrong = binary.predict(X) != y
    assert (found.success[::2] == wrong[::2]).all()
    assert found.success[1::2].all()


def test_choices_are_substituted_where_moving_is_not_enough():
    random = np.random.default_rng(0)
    X = np.column_stack([random.standard_normal(200), random.integers(0, 3, 200)])
    y = (X[:, 0] + 4 * (X[:, 1] == 2) > 2).astype(int)
    where = domain(["size", "kind"], choices={"kind": (0, 1, 2)}, cost=0.0)
    f = LogisticRegression().fit(X, y)  # linear in the code of the kind
    plain = projected_gradient(f, X, y, radius=0.05, where=where)
    found = projected_gradient(f, X, y, radius=0.05, where=where, substitutions=1)
    assert found.success.sum() > plain.success.sum()
    assert set(np.unique(found.rows[:, 1])) <= {0.0, 1.0, 2.0}
    assert found.substituted.max() == 1
    assert (found.substituted[plain.success] == 0).all()
    row = int(np.flatnonzero(found.substituted)[0])
    assert found.changes(row)[0][0] == "kind"
    assert (plain.rows[:, 1] == X[:, 1]).all()


def test_simpler_changes_turn_the_same_rows(binary):
    X, y = Z[300:320], SICK[300:320]
    found = smallest_change(binary, X, y, largest=5.0)
    simple = simplest_change(binary, projected_gradient(binary, X, y, radius=2.0))
    assert (simple.success == found.success).all()
    assert (binary.predict(simple.rows) != y)[simple.success].all()
    assert (simple.distance[simple.success] <= 2.0).all()
    row = int(np.argmax(simple.success & (simple.distance > 0)))
    assert len(simple.changes(row)) < 30
    column, old, new = simple.changes(row)[0]
    assert (old, new) == (X[row, int(column[1:])], simple.rows[row, int(column[1:])])


def test_bad_input_gets_a_sentence(binary):
    X, y = Z[:20], SICK[:20]
    cases = [
        ({"radius": -1.0}, "radius must be"),
        ({"radius": np.nan}, "radius must be"),
        ({"radius": 1.0, "norm": "l3"}, "norm must be"),
        ({"radius": 1.0, "steps": 0}, "steps must be"),
        ({"radius": 1.0, "momentum": 1.0}, "momentum must"),
        ({"radius": 1.0, "schedule": "up"}, "schedule must be one of"),
        ({"radius": 1.0, "loss": "hinge"}, "loss must be"),
        ({"radius": 1.0, "step": 0.0}, "step must be"),
        ({"radius": 1.0, "where": domain(3)}, "the domain has 3 columns, X has 30"),
        (
            {"radius": 1.0, "where": domain(30, high=0.0)},
            r"row 0 has .* in x\d+, outside its range",
        ),
    ]
    for options, message in cases:
        with pytest.raises(ValueError, match=message):
            projected_gradient(binary, X, y, **options)
    with pytest.raises(ValueError, match="y must hold a label for each of 20 rows"):
        projected_gradient(binary, X, y[:3], radius=1.0)
    with pytest.raises(ValueError, match=r"has no gradient .*decision_attack"):
        projected_gradient(DecisionTreeClassifier().fit(X, y), X, y, radius=1.0)
    with pytest.raises(ValueError, match="has no gradient"):
        smallest_change(DecisionTreeClassifier().fit(X, y), X, y, largest=1.0)
    with pytest.raises(ValueError, match="largest must be"):
        smallest_change(binary, X, y, largest=0.0)
    with pytest.raises(ValueError, match="one class only"):
        projected_gradient(DecisionTreeClassifier().fit(X, np.zeros(20)), X, y, radius=1.0)
    for options, message in [
        ({"low": 1.0, "high": 0.0}, "low must not be above high"),
        ({"scale": -1.0}, "scale must not be negative"),
        ({"low": [0.0]}, "low must be a number, or one for each of 2"),
        ({"fixed": ["c"]}, "no column is called 'c'"),
    ]:
        with pytest.raises(ValueError, match=message):
            domain(["a", "b"], **options)


def test_labels_that_the_model_does_not_know_get_a_sentence(binary):
    with pytest.raises(ValueError, match=r"y must hold the model's classes, 0, 1, not 7"):
        projected_gradient(binary, Z[:3], np.array([0, 7, 7]), radius=0.0)
    with pytest.raises(ValueError, match=r"y must hold the model's classes, 0, 1, not 'no'"):
        decision_attack(binary, Z[:3], np.array(["no", "no", "yes"]), others=Z)
    with pytest.raises(ValueError, match=r"target must hold the model's classes, 0, 1, not 7"):
        projected_gradient(binary, Z[:3], SICK[:3], radius=1.0, target=7)
    torch = pytest.importorskip("torch")
    with pytest.raises(
        ValueError,
        match=r"y must hold the model's classes, 0, 1, … in the order of its scores, not 2",
    ):
        projected_gradient(torch.nn.Linear(30, 2), Z[:3], np.array([1, 2, 1]), radius=1.0)


def test_missing_numbers_get_a_sentence_of_their_own(binary):
    holes = np.where(np.arange(30) == 4, np.nan, Z[:5])
    with pytest.raises(
        ValueError, match="row 0 has nan in x4: fill in such values first, or leave the row out"
    ):
        projected_gradient(binary, holes, SICK[:5], radius=1.0)


def test_beside_foolbox():
    torch = pytest.importorskip("torch")
    foolbox = pytest.importorskip("foolbox")
    torch.manual_seed(0)
    X, y = (DIGITS[:500] / 16).astype(np.float32), NUMBERS[:500]
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(model(torch.from_numpy(X)), torch.from_numpy(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    attack = foolbox.attacks.LinfPGD(rel_stepsize=2.5 / 40, steps=40, random_start=False)
    wrapped = foolbox.PyTorchModel(model, bounds=(0, 1))
    _, _, turned = attack(wrapped, torch.from_numpy(X), torch.from_numpy(y), epsilons=0.05)
    ours = projected_gradient(
        model, X, y, radius=0.05, where=domain(64, low=0, high=1), restarts=2, random_state=0
    )
    assert ours.robust_accuracy <= 1 - float(turned.float().mean())
