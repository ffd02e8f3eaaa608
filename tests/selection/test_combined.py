"""Ensembles and calibration from out-of-fold answers: weights, estimates, saving, and when they
are chosen.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from tests.cases import scikit_learn_accepts

import surelearn
from surelearn.bounds import clopper_pearson
from surelearn.jobs.progress import Progress
from surelearn.selection import bias_corrected_cross_validation, select
from surelearn.selection.candidates import Candidate, Searched
from surelearn.selection.combined import (
    CombinedClassifier,
    CombinedRegressor,
    greedy_weights,
    of_scores,
    pooled,
    stacked_weights,
)
from surelearn.selection.criteria import CrossValidation, SelectionProblem, units_of
from surelearn.selection.selector import _paired
from surelearn.subject import subject_of

TWO = [("linear", LogisticRegression()), ("Bayes", GaussianNB())]


@pytest.mark.parametrize(
    "model",
    [
        CombinedClassifier(TWO, [0.6, 0.4]),
        CombinedClassifier(TWO, [0.6, 0.4], pool="logarithmic"),
        CombinedRegressor([("ridge", Ridge()), ("near", KNeighborsRegressor(2))], [0.5, 0.5]),
    ],
    ids=["linear", "logarithmic", "regression"],
)
def test_scikit_learn_s_checks(model):
    scikit_learn_accepts(model)


def test_greedy_weights_lower_the_loss_of_the_best_and_keep_few():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=400)
    answers = [truth + rng.normal(size=400) * s for s in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)]
    weights = greedy_weights(answers, lambda mean: (mean - truth) ** 2, most=3)
    assert weights.sum() == pytest.approx(1)
    assert 2 <= np.count_nonzero(weights) <= 3
    mean = sum(w * one for w, one in zip(weights, answers, strict=True))
    assert np.mean((mean - truth) ** 2) < 0.8 * np.mean((answers[0] - truth) ** 2)


def test_stacked_weights_are_the_least_of_the_penalized_log_loss():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, 200)
    logs = [np.log(rng.dirichlet(np.ones(3) + 2 * np.eye(3)[codes][i])) for i in range(200)]
    stack = [np.array(logs), np.log(rng.dirichlet(np.ones(3), 200))]
    weights, offsets = stacked_weights(stack, codes)

    def value(theta):
        p = pooled(stack, theta[:2], theta[2:])
        away = theta - np.array([0.5, 0.5, 0, 0, 0])
        return -np.log(p[np.arange(200), codes]).mean() + (away @ away) / 200

    found = minimize(value, [0.5, 0.5, 0, 0, 0], bounds=[(0, None)] * 2 + [(None, None)] * 3)
    assert np.allclose(np.concatenate([weights, offsets]), found.x, atol=2e-3)


def overconfident(n=600):
    """Columns in copies: naive Bayes counts each of them, and is far too sure."""
    X, y = make_classification(n, 6, n_informative=4, flip_y=0.2, random_state=3)
    return np.hstack([X] * 6), y


def test_probabilities_are_calibrated_where_that_helps_and_the_model_keeps_it():
    X, y = overconfident()
    plain = select({"Bayes": GaussianNB()}, X[:400], y[:400])
    better = select({"Bayes": GaussianNB()}, X[:400], y[:400], combine=True)
    assert better.errors[0] < 0.8 * plain.errors[0]
    model = better.model.fit(X[:400], y[:400])
    raw = GaussianNB().fit(X[:400], y[:400])
    assert isinstance(model, CombinedClassifier)
    new = log_loss(y[400:], model.predict_proba(X[400:]))
    assert new < 0.8 * log_loss(y[400:], raw.predict_proba(X[400:]))


def test_what_is_calibrated_already_stays_as_it_is():
    X, y = make_classification(400, 5, flip_y=0.1, random_state=0)
    found = select({"linear": LogisticRegression()}, X, y, combine=True)
    assert isinstance(found.model, LogisticRegression)


def test_an_ensemble_is_chosen_where_it_beats_its_members_and_its_estimate_is_honest():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 8))
    y = (rng.random(3000) < 1 / (1 + np.exp(-X.sum(axis=1)))).astype(int)
    halves = {
        name: ColumnTransformer([("some", "passthrough", columns)])
        for name, columns in (("left", [0, 1, 2, 3]), ("right", [4, 5, 6, 7]))
    }
    models = {"majority": DummyClassifier()} | {
        name: make_pipeline(half, LogisticRegression()) for name, half in halves.items()
    }
    found = select(models, X[:1500], y[:1500], combine=True)
    assert found.name in ("ensemble", "stacked ensemble")
    assert "left + " in found.settings[found.chosen] or "right + " in found.settings[found.chosen]
    assert found.errors[found.chosen] < min(found.errors[:3])
    model = found.model.fit(X[:1500], y[:1500])
    new = log_loss(y[1500:], model.predict_proba(X[1500:]))
    assert new == pytest.approx(
        found.errors[found.chosen], abs=4 * found.standard_errors[found.chosen]
    )
    alone = models["left"].fit(X[:1500], y[:1500]).predict_proba(X[1500:])
    assert new < 0.9 * log_loss(y[1500:], alone)


def test_an_ensemble_that_earns_nothing_is_not_chosen():
    X, y = make_classification(300, 5, flip_y=0.1, random_state=0)
    models = {"linear": LogisticRegression(), "the same": LogisticRegression(C=1.01)}
    assert select(models, X, y, combine=True).name in models


def test_numbers_are_averaged():
    X, y = load_diabetes(return_X_y=True)
    models = {"near": KNeighborsRegressor(15), "ridge": Ridge(0.1)}
    found = select(models, X, y, task="regression", combine=True)
    assert found.names[-1] == "ensemble"
    assert found.errors[-1] < found.errors[0]


def test_an_svm_gets_probabilities_and_answers_as_its_scores_say():
    X, y = make_classification(400, 5, flip_y=0.2, random_state=1)
    made = CombinedClassifier([("SVC", SVC())], [1.0], pool="logarithmic")
    found = select({"majority": DummyClassifier(), "SVM": made}, X, y, combine=True)
    assert found.metric.name == "log-loss"
    model = CombinedClassifier([("SVC", SVC())], [0.7], [0.2, -0.2], "logarithmic").fit(X, y)
    subject = subject_of(model)
    assert subject.learner.kind == "SVC"
    scores = model.estimators_[0].decision_function(X)
    assert np.array_equal(model.predict(X), (scores >= subject.cut.threshold).astype(int))
    p = model.predict_proba(X)[:, 1]
    assert np.allclose(np.log(p / (1 - p)), 0.7 * scores - 0.4, atol=1e-4)


def test_scores_become_log_probabilities():
    assert np.allclose(np.exp(of_scores([[1.0, 2.0, 3.0]])).sum(), 1)


def test_they_are_saved_without_pickle(tmp_path):
    X, y = make_classification(120, 5, random_state=0)
    model = CombinedClassifier(TWO, [0.6, 0.4]).fit(X, y)
    loaded = surelearn.load(surelearn.save(model, tmp_path / "model"))
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    numbers = CombinedRegressor([("ridge", Ridge())], [1.0]).fit(X, y.astype(float))
    again = surelearn.load(surelearn.save(numbers, tmp_path / "numbers"))
    assert np.array_equal(again.predict(X), numbers.predict(X))


class Fits(Progress):
    """Keeps the keys of the tasks."""

    def __init__(self):
        self.keys = []

    def advance(self, key):
        self.keys.append(key)


def test_settings_are_searched_and_the_worse_half_meets_one_fold_only():
    X, y = make_classification(400, 20, n_informative=3, flip_y=0.1, random_state=0)
    grid = [
        Candidate(name=f"linear, C = {C:g}", model=LogisticRegression(C=C))
        for C in (1e-5, 1e-4, 0.1, 1.0)
    ]
    fits = Fits()
    found = select([Searched("linear", grid)], X, y, progress=fits)
    assert fits.keys.count("select/linear, C = 1e-05/4") == 1
    assert not any(key.startswith("select/linear, C = 1e-05/0") for key in fits.keys)
    assert len(fits.keys) == 4 + 2 * 4
    assert found.names == ("linear",)
    assert found.settings[0] in ("C = 0.1", "C = 1")
    assert found.model.C in (0.1, 1.0)
    all_five = select(grid, X, y)
    assert found.errors[0] == min(all_five.errors)


def test_the_price_of_simplicity_is_paired():
    X, y = make_classification(500, 10, n_informative=5, flip_y=0.1, random_state=2)
    models = {"few": LogisticRegression(C=0.05), "more": LogisticRegression()}
    found = select(models, X, y)
    price = found.price
    assert price is not None
    assert price.mean == pytest.approx(found.errors[price.simplest] - min(found.errors))
    assert price.low < price.mean < price.high
    assert price.high - price.low < 4 * found.standard_errors[0]  # rows are the same


def test_bad_weights_offsets_and_pools_are_refused():
    X, y = make_classification(60, 5, random_state=0)
    for model, match in (
        (CombinedClassifier(TWO, [1.0]), "weights must be 2 numbers"),
        (CombinedClassifier(TWO, [1.0, 1.0], [0.0]), "offsets must be 2 numbers"),
        (CombinedClassifier(TWO, [1.0, 1.0], pool="mixed"), "pool must be"),
    ):
        with pytest.raises(ValueError, match=match):
            model.fit(X, y)


@pytest.mark.parametrize("grouped", [False, True])
def test_select_rows_are_divided_so_that_weights_are_judged_on_others(grouped):
    """Models that answer at random: weights chosen on the rows that judge them would seem to help."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 40)), rng.integers(0, 2, 300)
    models = {
        f"column {i}": make_pipeline(
            ColumnTransformer([("one", "passthrough", [i])]), LogisticRegression()
        )
        for i in range(40)
    }
    groups = np.repeat(np.arange(100), 3) if grouped else None
    held_out = np.arange(240, 300)
    found = select(
        models, X, y, criterion="holdout", held_out=held_out, groups=groups, combine=True
    )
    assert found.errors[-1] > min(found.errors[:-1])


def searched():
    grid = [
        Candidate(name=f"linear, C = {C:g}", model=LogisticRegression(C=C)) for C in (0.01, 0.1, 1)
    ]
    return [Searched("linear", grid)]


def test_a_holdout_s_claim_pays_for_every_setting_that_was_compared():
    X, y = make_classification(300, 5, flip_y=0.1, random_state=0)
    held = {"criterion": "holdout", "held_out": np.arange(200, 300), "delta": 0.05}
    found = select(searched(), X, y, **held)
    assert found.names == ("linear",)
    assert found.compared == 3
    errors = round(found.mean_losses[0] * 100)
    assert found.claim.value == clopper_pearson(errors, 100, 0.05 / 3)
    combined = select(searched(), X, y, combine=True, **held)
    assert "weighted on the held-out rows" in combined.claim.reason


def test_a_bootstrap_of_the_choice_refuses_settings_that_were_chosen_outside_of_it():
    X, y = make_classification(200, 5, flip_y=0.1, random_state=0)
    with pytest.raises(ValueError, match="settings of 'linear' would be chosen outside"):
        bias_corrected_cross_validation(searched(), X, y)


def test_rows_of_a_group_count_as_one_in_the_paired_standard_error():
    """Each row twenty times: the standard error must not shrink for it."""
    X, y = make_classification(100, 6, n_informative=4, flip_y=0.2, random_state=4)
    again = np.repeat(np.arange(100), 20)
    folds = CrossValidation()
    problem = SelectionProblem(
        units=units_of({"few": LogisticRegression(C=0.05), "more": LogisticRegression()}),
        X=X[again],
        y=y[again],
        task="classification",
        groups=again,
    )
    found = folds.compare(problem)
    (_, wide), (_, narrow) = (_paired(found, 0, 1, groups) for groups in (again, None))
    assert wide == pytest.approx(np.sqrt(20) * narrow, rel=0.05)
