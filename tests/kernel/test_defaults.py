"""Kernel machines made without arguments, on tables as they come."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC
from tests.making import make

from surelearn.persistence import read_model, save
from surelearn.subject import subject_of

torch = pytest.importorskip("torch")

from surelearn.kernel import Compute, EigenProClassifier, EigenProRegressor  # noqa: E402
from surelearn.kernel.left_out import left_out  # noqa: E402

X, LABELS = load_wine(return_X_y=True)
ROWS, TARGET = X[:, 1:], X[:, 0]


def fitted(**more):
    return make(EigenProRegressor, device="cpu", random_state=0, **more).fit(ROWS, TARGET)


def test_units_of_columns_do_not_matter():
    units = 10.0 ** np.arange(-6.0, ROWS.shape[1] - 6.0)
    again = EigenProRegressor(compute=Compute(device="cpu"), random_state=0).fit(
        ROWS * units, TARGET
    )
    np.testing.assert_allclose(again.predict(ROWS * units), fitted().predict(ROWS), rtol=1e-4)


@pytest.mark.parametrize(
    "options",
    [{"bandwidth": 50.0}, {"regularization": 0.0}, {"regularization": "loo"}, {"x_bound": 2e3}],
)
def test_columns_are_taken_as_they_are_where_anything_is_stated(options):
    model = fitted(**options)
    assert model.spreads_ is None
    np.testing.assert_array_equal(model.centers_, ROWS)


def test_stated_lengths_interpolate_as_before():
    assert fitted(bandwidth=50.0).regularization_ == 0.0
    assert fitted().regularization_ == pytest.approx(0.1 / len(ROWS))


def test_accuracy_beside_svc():
    ours, other = [], []
    for seed in range(5):
        train, test, y_train, y_test = train_test_split(X, LABELS, random_state=seed)
        ours.append(
            EigenProClassifier(compute=Compute(device="cpu"), random_state=0)
            .fit(train, y_train)
            .score(test, y_test)
        )
        other.append(SVC().fit(train, y_train).score(test, y_test))
    assert np.mean(ours) > max(0.95, np.mean(other))


def test_the_certificate_verifies_with_the_rows_and_claims_the_distance():
    model = fitted()
    assert model.certificate_["distance_to_the_minimizer"].value < 1e-3
    verification = model.certificate_.verify(model, ROWS, TARGET)
    assert verification, verification.differences
    assert "risk" not in {claim.quantity for claim in model.certificate_.claims}


def test_tensors_rows_and_centers_are_divided_alike():
    model = fitted(dtype="float64")
    np.testing.assert_allclose(
        model.predict(torch.tensor(ROWS)).numpy(), model.predict(ROWS), rtol=1e-9
    )
    some = fitted(centers=ROWS[::3], dtype="float64", epochs=30)
    np.testing.assert_allclose(some.centers_, ROWS[::3] / some.spreads_)
    assert some.score(ROWS, TARGET) > 0.6


def test_the_subject_is_a_machine_of_divided_columns():
    model = fitted(dtype="float64")
    subject = subject_of(model)
    assert subject.learned_steps == ("spread",)
    np.testing.assert_allclose(
        subject.learner.predict(subject.prepared(ROWS)), model.predict(ROWS), rtol=1e-9
    )
    values, back = subject.scores.pullback(ROWS[:5])
    np.testing.assert_allclose(np.ravel(values), model.predict(ROWS[:5]), rtol=1e-6)
    step = 1e-3 * np.eye(ROWS.shape[1])[2]
    slope = (model.predict(ROWS[:5] + step) - model.predict(ROWS[:5] - step)) / 2e-3
    np.testing.assert_allclose(back(np.ones((5, 1)))[:, 2], slope, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(
        subject.machines.values(subject.prepared(ROWS))[:, 0], model.predict(ROWS), rtol=1e-9
    )


def test_every_row_left_out():
    """The fits without a row, its spreads kept, against a fit to the others in the same units."""
    model = fitted(dtype="float64")
    length = model.kernel_parameters_["bandwidth"]
    total = model.regularization_ * len(ROWS)
    divided = ROWS / model.spreads_
    without = EigenProRegressor(
        bandwidth=length,
        regularization=total / (len(ROWS) - 1),
        compute=Compute(dtype="float64", device="cpu"),
    )
    expected = without.fit(divided[1:], TARGET[1:]).predict(divided)
    np.testing.assert_allclose(next(left_out(model, ROWS).values())[:, 0], expected, rtol=1e-6)


def test_it_is_saved_with_its_spreads(tmp_path):
    model = fitted()
    save(model, tmp_path / "model")
    again = read_model(tmp_path / "model").model
    np.testing.assert_array_equal(again.predict(ROWS), model.predict(ROWS))


@pytest.mark.parametrize(
    "rows",
    [np.ones((40, 3)), np.zeros((40, 3)), np.random.default_rng(0).normal(size=(40, 3)) * 1e12],
)
def test_nothing_diverges_at_defaults(rows):
    y = np.random.default_rng(1).normal(size=40) * 1e6
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the kernel matrix")
        model = EigenProRegressor(compute=Compute(device="cpu"), random_state=0).fit(rows, y)
    assert model.facts_["training_risk"] <= 1.05 * np.mean(y**2)
