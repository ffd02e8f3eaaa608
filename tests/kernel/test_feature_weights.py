import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR
from tests.cases import scikit_learn_accepts

from surelearn.kernel import FeatureWeights
from surelearn.kernel.feature_weights import PENALTIES, _coefficients, _mean_squared_slopes
from surelearn.kernel.functions import Gaussian
from surelearn.persistence import load, save
from surelearn.subject import subject_of

CHECKED = [FeatureWeights(), FeatureWeights(labels=True, power=0.5)]


@pytest.mark.parametrize("step", CHECKED, ids=repr)
def test_scikit_learn_accepts_it(step):
    scikit_learn_accepts(step)


@pytest.fixture
def friedman():
    return make_friedman1(400, n_features=10, noise=0.5, random_state=0)


def test_slopes_are_those_of_kernel_ridge_regression(friedman):
    X, y = friedman
    Z, Y = X[:80], (y[:80] - y[:80].mean())[:, None]
    gram = Gaussian(bandwidth=1.0)(Z, Z)
    fits = [KernelRidge(alpha=c, kernel="rbf", gamma=0.5).fit(Z, Y) for c in PENALTIES]
    found = [
        np.allclose(_coefficients(gram, Y), one.dual_coef_, rtol=1e-6, atol=1e-8) for one in fits
    ]
    assert sum(found) == 1
    f, step = fits[found.index(True)].predict, 1e-5
    for j in range(10):
        move = step * np.eye(10)[j]
        slopes = (f(Z + move) - f(Z - move))[:, 0] / (2 * step)
        assert _mean_squared_slopes(Z, Y)[j] == pytest.approx((slopes**2).mean(), rel=1e-4)


def test_the_penalty_has_the_least_squared_error_of_rows_left_out(friedman):
    X, y = friedman
    Z, Y = X[:40], (y[:40] - y[:40].mean())[:, None]
    errors = []
    for c in PENALTIES:
        model = KernelRidge(alpha=c, kernel="rbf", gamma=0.5)
        left = [
            model.fit(np.delete(Z, i, 0), np.delete(Y, i, 0)).predict(Z[[i]])[0] - Y[i]
            for i in range(40)
        ]
        errors.append(np.mean(np.square(left)))
    best = KernelRidge(alpha=PENALTIES[int(np.argmin(errors))], kernel="rbf", gamma=0.5).fit(Z, Y)
    alpha = _coefficients(Gaussian(bandwidth=1.0)(Z, Z), Y)
    np.testing.assert_allclose(alpha, best.dual_coef_, rtol=1e-6, atol=1e-8)


def test_columns_that_say_nothing_count_less_and_variances_sum_to_one(friedman):
    X, y = friedman
    step = FeatureWeights().fit(X, y)
    assert step.transform(X).var(axis=0).sum() == pytest.approx(1.0)
    assert step.scale_[:5].min() > 3 * step.scale_[5:].max()
    even = FeatureWeights(power=0.5).fit(X, y)
    assert step.scale_[0] / step.scale_[4] > even.scale_[0] / even.scale_[4] > 1


def test_weighted_columns_make_better_machines(friedman):
    X, y = friedman
    new, truth = make_friedman1(400, n_features=10, noise=0.0, random_state=1)
    weighted = make_pipeline(FeatureWeights(), SVR(C=100.0, gamma=0.2)).fit(X, y)
    plain = SVR(C=100.0, gamma=0.2 / 10 / X.var()).fit(X, y)
    miss = [np.abs(model.predict(new) - truth).mean() for model in (weighted, plain)]
    assert miss[0] < 0.8 * miss[1]


@pytest.mark.parametrize("labels", [False, True])
def test_nothing_to_learn_leaves_even_weights(labels):
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[:, 2] = 7.0
    step = FeatureWeights(labels=labels).fit(X, np.ones(30))
    assert np.ptp(step.scale_) == 0
    assert FeatureWeights(labels=labels).fit(np.ones((30, 2)), np.arange(30) % 2).scale_.all()


def test_the_scale_of_the_target_and_the_names_of_labels_do_not_matter(friedman):
    X, y = friedman
    same = FeatureWeights().fit(X, 1e4 * y - 3).scale_
    np.testing.assert_allclose(FeatureWeights().fit(X, y).scale_, same, rtol=1e-6)
    words = np.where(y > np.median(y), "high", "low")
    numbers = FeatureWeights(labels=True).fit(X, (words == "low").astype(int)).scale_
    np.testing.assert_allclose(FeatureWeights(labels=True).fit(X, words).scale_, numbers)


def test_it_is_saved_and_is_an_affine_step_to_every_question(friedman, tmp_path):
    X, y = friedman
    words = np.where(y > np.median(y), "high", "low")
    model = make_pipeline(FeatureWeights(labels=True, max_rows=200), SVC(C=10.0, gamma=0.2))
    model.fit(X, words)
    again = load(save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    form = subject_of(model).form
    np.testing.assert_allclose(
        np.ravel(form.form.values(form.prepare(X[:20]))), model.decision_function(X[:20]), atol=1e-6
    )
