"""The share of poison below which a stated model cannot be reached: by a second route, and why
there is none.
"""

import re

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import HuberRegressor, LinearRegression
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.linear_model import Ridge as PeerRidge
from sklearn.metrics import f1_score, make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC

import surelearn
from surelearn.auditing.sections.poisoning import work as poisoning
from surelearn.auditing.sections.poisoning.work import aimed, answers, claims_of, proved
from surelearn.lacking import Lacking
from surelearn.linear import LeastSquares, LogisticRegression, Ridge, SupportVectorMachine
from surelearn.robust.poisoning.classification import inner
from surelearn.robust.poisoning.fit import fit_of
from surelearn.robust.poisoning.thresholds import chosen
from surelearn.subject import subject_of
from surelearn.subject.registry import DecisionThreshold

QUICK = {
    "ledger": False, "refits": 0, "curve_repeats": 0, "n_jobs": 1, "effort": 0.5,
    "skip": ("robustness", "membership", "attribution"),
}  # fmt: skip
LOGISTIC = LogisticRegression(regularization=0.01, epochs=0, finish="newton")


def audited(data="breast_cancer", model=LOGISTIC, **options):
    return surelearn.audit(data, models={"it": model}, **{**QUICK, **options})


def codes(section):
    return {finding.code: finding for finding in section.findings}


def stated_cut(threshold, positive):
    return None if threshold is None else DecisionThreshold(positive, threshold, "predict_proba")


def lacking(model, cancer, threshold=None, positive=None):
    X, y, new, truth = cancer
    found = proved(model.fit(X, y), X, y, new, truth, stated_cut(threshold, positive), 0)
    assert isinstance(found, Lacking)
    return found


def thresholds(model, cancer, threshold=None, positive=None):
    X, y, new, truth = cancer
    result = proved(model.fit(X, y), X, y, new, truth, stated_cut(threshold, positive), 0)
    return {target: (errors, claim) for target, errors, claim in claims_of(result)}, result["tried"]


# What is proved.


def test_the_threshold_of_a_support_vector_machine_counts_the_rows_it_must_move(cancer):
    X, y, *_ = cancer
    model = SVC(C=2.0, gamma=0.02)
    ((_, claim),) = thresholds(model, cancer)[0].values()
    t = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    norm = model.dual_coef_ @ rbf_kernel(model.support_vectors_, gamma=0.02) @ model.dual_coef_.T
    assert claim.value == pytest.approx(
        np.mean(np.where(t >= -1, t, 0.0)) + norm.item() / (2.0 * len(y)), rel=1e-6
    )
    ours = SupportVectorMachine(
        C=2.0, kernel="gaussian", bandwidth=5.0, regularize_intercept=False, tol=1e-6
    )
    ((_, same),) = thresholds(ours, cancer)[0].values()
    assert same.value == pytest.approx(claim.value, rel=0.02)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared hinge", "squared"])
def test_the_inner_product_is_the_slope_of_the_risk_along_the_weights(loss):
    rng = np.random.default_rng(1)
    scores, labels = rng.normal(size=50), rng.integers(2, size=50)
    sign = np.where(labels == 1, 1.0, -1.0)
    losses = {
        "logistic": lambda m: np.logaddexp(0, -m),
        "hinge": lambda m: np.maximum(1 - m, 0),
        "squared hinge": lambda m: np.maximum(1 - m, 0) ** 2,
        "squared": lambda m: (1 - m) ** 2,
    }
    ahead, behind = (losses[loss](sign * scores * (1 + h)).mean() for h in (1e-6, -1e-6))
    assert inner(loss, scores, labels) == pytest.approx((ahead - behind) / 2e-6, rel=1e-4)


def test_a_decision_threshold_moves_the_errors_not_the_threshold(cancer):
    plain, _ = thresholds(LOGISTIC, cancer)
    moved, _ = thresholds(LOGISTIC, cancer, 0.9, 1)
    (before, claim), *_ = plain.values()
    (after, same), *_ = moved.values()
    assert same.value == claim.value
    assert after != before


def cut_of(model):
    options = type("Options", (), {"positive": None})
    return poisoning._cut(
        type("Context", (), {"model": model, "threshold": None, "options": options})
    )  # pyright: ignore


@pytest.mark.parametrize("positive", [None, 0])
@pytest.mark.parametrize(
    ("learner", "threshold", "response", "expected"),
    [
        (LinearSVC(), 0.0, "auto", (0.0, "decision_function")),
        (LinearSVC(), -0.3, "decision_function", (-0.3, "decision_function")),
        (LinearSVC(), "auto", "auto", (0.0, "decision_function")),
        (PeerLogistic(), 0.7, "decision_function", (0.7, "decision_function")),
        (PeerLogistic(), 0.7, "auto", (0.7, "predict_proba")),
        (PeerLogistic(), 0.0, "auto", (0.0, "predict_proba")),
        (PeerLogistic(), "auto", "auto", (0.5, "predict_proba")),
    ],
)
def test_a_threshold_of_scores_is_no_probability(
    learner, threshold, response, expected, positive, cancer
):
    X, y, new, truth = cancer
    model = FixedThresholdClassifier(
        learner, threshold=threshold, response_method=response, pos_label=positive
    ).fit(X, y)
    cut = cut_of(model)
    assert cut == DecisionThreshold(1 if positive is None else positive, *expected)
    inside = model.estimator_
    assert (answers(inside, new, cut) == model.predict(new)).all()
    fit = fit_of(subject_of(inside), X, y)
    found = np.mean(
        inside.classes_[chosen(fit, fit.machines.values(new), inside.classes_, cut)] != truth
    )
    assert found == np.mean(model.predict(new) != truth)
    result = proved(inside, X, y, new, truth, cut, 0)
    assert all(np.isfinite(errors) for _, errors, _ in claims_of(result))
    risk = aimed(inside, X, y, new, truth, "classification", 1, 0, cut)["risk"]
    assert abs(risk - found) < 0.1


@pytest.mark.parametrize(
    ("scoring", "positive"), [("f1", 1), (make_scorer(f1_score, pos_label=0), 0)]
)
def test_a_tuned_threshold_is_that_of_its_class(scoring, positive, cancer):
    X, y, new, _ = cancer
    model = TunedThresholdClassifierCV(PeerLogistic(), scoring=scoring, cv=3, thresholds=20).fit(
        X, y
    )
    cut = cut_of(model)
    assert cut.positive == positive
    assert (answers(model.estimator_, new, cut) == model.predict(new)).all()


@pytest.mark.parametrize(
    "model",
    [
        PeerLogistic(class_weight="balanced"),
        LogisticRegression(finish=None, random_state=0),
        SVC(class_weight="balanced"),
        GaussianNB(),
    ],
)
def test_nothing_is_proved_of_fits_that_the_theorem_does_not_cover(model, cancer):
    assert re.match(
        r"^no threshold is proved for \w+: it needs the minimizer of a convex loss",
        lacking(model, cancer).reason,
    )


def slope(loss, w, step=1e-6):
    """d/dt loss((1 + t)·w) at 0, by differences."""
    return (loss((1 + step) * w) - loss((1 - step) * w)) / (2 * step)


@pytest.mark.parametrize(
    ("model", "penalty", "grows"),
    [
        (Ridge(regularization=0.1, regularize_intercept=False), 0.1, True),
        (LeastSquares(regularize_intercept=False), 0.0, True),
        (PeerRidge(alpha=30.0), 0.1, False),
        (LinearRegression(), 0.0, True),
    ],
)
def test_the_threshold_of_a_ridge_regression_is_that_of_its_risk_along_the_weights(
    model, penalty, grows, cancer
):
    X, _, new, _ = cancer
    y, truth = (
        5 + rows @ np.linspace(-1, 1, X.shape[1]) + np.sin(9 * rows[:, 0]) for rows in (X, new)
    )
    ((_, error, claim),) = claims_of(proved(model.fit(X, y), X, y, new, truth, None, 0))
    middle, bound = (y.max() + y.min()) / 2, (y.max() - y.min()) / 2
    design = np.column_stack([X, np.ones(len(X))])
    mirrored = -np.append(model.coef_, model.intercept_ - middle)
    fit = slope(lambda w: np.mean((design @ w - (y - middle)) ** 2), mirrored)
    decay = slope(lambda w: penalty * w[:-1] @ w[:-1], mirrored)
    expected = (fit + decay) / (bound**2 / 2 - (decay if grows else 0.0))
    assert claim.value == pytest.approx(expected, rel=1e-5)
    assert claim.recompute() == claim.value > 0
    assert error == pytest.approx(np.abs(2 * middle - model.predict(new) - truth).mean())
    assert any(line.startswith("poison has targets from") for line in claim.assumptions)


@pytest.fixture
def waves(cancer):
    X, _, new, _ = cancer
    return X, *(5 + np.sin(rows[:, 0]) + rows[:, 1] for rows in (X, new)), new


def scaled_threshold(inside, waves):
    """What is proved of a model of scaled targets, with those targets, its scores of them and
    the learner inside.
    """
    X, y, truth, new = waves
    model = TransformedTargetRegressor(inside, transformer=StandardScaler()).fit(X, y)
    ((_, _, claim),) = claims_of(proved(model, X, y, new, truth, None, 0))
    return (
        claim,
        (y - y.mean()) / y.std(),
        (model.predict(X) - y.mean()) / y.std(),
        model.regressor_,
    )


@pytest.mark.parametrize(
    "targets",
    [
        {"func": np.log, "inverse_func": np.exp},
        {"transformer": FunctionTransformer(np.sqrt, np.square)},
        {"transformer": MinMaxScaler(clip=True)},
        {"transformer": PowerTransformer()},
        {"transformer": make_pipeline(PowerTransformer(), StandardScaler())},
    ],
)
def test_predictions_are_not_said_to_be_mirrored_where_their_logarithms_are(targets, waves):
    X, y, truth, new = waves
    model = TransformedTargetRegressor(PeerRidge(), **targets).fit(X, y - y.min() + 1)
    assert re.match(
        r"^no threshold is proved for targets that \w+ prepares: predictions mirrored there",
        proved(model, X, y - y.min() + 1, new, truth, None, 0).reason,
    )


@pytest.mark.parametrize(
    "scaler", [None, FunctionTransformer(), MinMaxScaler(), RobustScaler(), MaxAbsScaler()]
)
def test_a_shift_and_a_factor_keep_mirrors(scaler, waves):
    X, y, truth, new = waves
    model = TransformedTargetRegressor(LinearRegression(), transformer=scaler).fit(X, y)
    ((_, error, claim),) = claims_of(proved(model, X, y, new, truth, None, 0))
    ((_, plain_error, plain),) = claims_of(
        proved(LinearRegression().fit(X, y), X, y, new, truth, None, 0)
    )
    assert (error, claim.value) == pytest.approx((plain_error, plain.value))


def test_the_threshold_of_a_kernel_ridge_regression_in_scaled_targets(waves):
    claim, z, scores, learner = scaled_threshold(
        KernelRidge(alpha=0.3, kernel="rbf", gamma=0.02), waves
    )
    decay = (
        2
        * 0.3
        * learner.dual_coef_
        @ rbf_kernel(waves[0], gamma=0.02)
        @ learner.dual_coef_
        / len(z)
    )
    fit = slope(lambda w: np.mean((w - z) ** 2), -scores)
    assert claim.value == pytest.approx((fit + decay) / (np.abs(z).max() ** 2 / 2), rel=1e-5)


def test_the_threshold_of_a_support_vector_regression_counts_from_the_middle_of_the_targets(waves):
    claim, z, scores, learner = scaled_threshold(SVR(gamma=0.02, C=2.0), waves)
    middle, gram = (z.max() + z.min()) / 2, rbf_kernel(learner.support_vectors_, gamma=0.02)
    z, scores = z - middle, scores - middle
    decay = (learner.dual_coef_ @ gram @ learner.dual_coef_.T).item() / (2.0 * len(z))
    far = slope(lambda w: np.mean(np.maximum(np.abs(w - z) - 0.1, 0)), -scores)
    assert claim.value == pytest.approx((far + decay) / (np.abs(z).max() - 0.1), rel=1e-4)


def test_the_threshold_of_several_machines_is_that_of_each():
    X, y = load_iris(return_X_y=True)
    new, truth = X[::2], y[::2]
    pairs = SVC(kernel="linear", C=0.5, tol=1e-6).fit(X, y)
    ((_, errors, claim),) = claims_of(proved(pairs, X, y, new, truth, None, 0))
    assert claim.theorem == "poisoning_threshold_machines"
    needed = []
    for k, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        own = (y == i) | (y == j)
        t = np.where(y[own] == i, 1.0, -1.0) * (X[own] @ pairs.coef_[k] + pairs.intercept_[k])
        needed.append(
            (np.where(t >= -1, t, 0.0).sum() + pairs.coef_[k] @ pairs.coef_[k] / 0.5) / len(y)
        )
    assert claim.value == pytest.approx(max(max(needed), sum(needed) / 2), rel=1e-4)
    assert claim.recompute() == claim.value
    assert errors > 0.5
    rest = LinearSVC(C=0.5).fit(X, y)
    ((_, _, claim),) = claims_of(proved(rest, X, y, new, truth, None, 0))
    signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    t = -signs * rest.decision_function(X)
    squares = (rest.coef_**2).sum(1) + rest.intercept_**2
    needed = (-2 * t * np.maximum(1 - t, 0)).mean(0) + squares / (0.5 * len(y))
    assert claim.value == pytest.approx(2 * needed.max(), rel=1e-9)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            SVC(class_weight="balanced"),
            "no threshold is proved for SVC with 3 classes: it needs the minimizer",
        ),
        (
            HuberRegressor(),
            "no threshold is proved for HuberRegressor: it needs the minimizer of a convex loss",
        ),
        (RandomForestRegressor(2), "no threshold is proved for RandomForestRegressor: it needs"),
    ],
)
def test_a_sentence_says_why_there_is_no_threshold(model, said):
    X, y = load_iris(return_X_y=True)
    assert re.match(f"^{said}", proved(model.fit(X, y), X, y, X, y, None, 0).reason)
