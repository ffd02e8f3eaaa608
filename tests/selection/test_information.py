"""AIC, AICc and BIC against statsmodels, and where they are refused."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import HuberRegressor, LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surelearn.lacking import Lacking
from surelearn.linear import LeastSquares
from surelearn.linear import LogisticRegression as OurLogisticRegression
from surelearn.linear import Ridge as OurRidge
from surelearn.selection import NestedFamily, select

sm = pytest.importorskip("statsmodels.api")
measures = pytest.importorskip("statsmodels.tools.eval_measures")


def values(model, X, y, task, **options):
    found = [
        select([model], X, y, task=task, criterion=name, **options)
        for name in ("aic", "aicc", "bic")
    ]
    return [selection.errors[0] for selection in found], found[0].details["parameters"][0]


def expected(log_likelihood, n, k):
    return [
        measure(log_likelihood, n, k) for measure in (measures.aic, measures.aicc, measures.bic)
    ]


@pytest.fixture(scope="module")
def numbers():
    X, y = load_diabetes(return_X_y=True)
    return X[:60, :6], y[:60]


@pytest.mark.parametrize(
    "model",
    [LinearRegression(), LeastSquares(), make_pipeline(StandardScaler(), LinearRegression())],
)
def test_least_squares(model, numbers):
    X, y = numbers
    theirs = sm.OLS(y, sm.add_constant(X)).fit()
    ours, k = values(model, X, y, "regression")
    assert k == 8  # six slopes, the intercept and the variance
    assert ours == pytest.approx(expected(theirs.llf, 60, k), rel=1e-10)
    assert ours[0] == pytest.approx(theirs.aic + 2)  # statsmodels leaves out the variance
    assert ours[2] == pytest.approx(theirs.bic + np.log(60))


@pytest.mark.parametrize(
    "model", [LinearRegression(fit_intercept=False), LeastSquares(fit_intercept=False)]
)
def test_without_intercept_and_with_dependent_columns(model, numbers):
    X, y = numbers
    theirs = sm.OLS(y, X).fit()
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    ours, k = values(model, X, y, "regression")
    assert k == 7
    assert ours == pytest.approx(expected(theirs.llf, 60, k), rel=1e-10)


def test_the_mean(numbers):
    X, y = numbers
    ours, k = values(DummyRegressor(), X, y, "regression")
    assert k == 2
    assert ours == pytest.approx(expected(sm.OLS(y, np.ones(60)).fit().llf, 60, 2))


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(C=np.inf, tol=1e-8),
        OurLogisticRegression(regularization=0.0, regularize_intercept=False, finish="newton"),
    ],
)
def test_logistic_regression(model):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :3]
    theirs = sm.Logit(y, sm.add_constant(X)).fit(disp=0, tol=1e-12)
    ours, k = values(model, X, y, "classification")
    assert k == 4
    assert ours == pytest.approx(expected(theirs.llf, len(y), 4), rel=1e-6)
    assert ours[0] == pytest.approx(theirs.aic, rel=1e-6)
    assert ours[2] == pytest.approx(theirs.bic, rel=1e-6)


def test_several_classes():
    X, y = load_iris(return_X_y=True)
    X = X[:, :2] + np.random.default_rng(0).normal(size=(150, 2))
    theirs = sm.MNLogit(y, sm.add_constant(X)).fit(disp=0, tol=1e-12)
    ours, k = values(LogisticRegression(C=np.inf, tol=1e-8), X, y, "classification")
    assert k == 6
    assert ours[0] == pytest.approx(theirs.aic, rel=1e-6)
    constant, k = values(DummyClassifier(), X, y, "classification")
    assert k == 2
    assert constant[0] == pytest.approx(theirs.llnull * -2 + 4)


def test_the_true_model_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = X[:, :2] @ [1.0, -1.0] + rng.normal(size=400)
    columns = {
        f"{k} columns": make_pipeline(SelectFirst(k), LinearRegression()) for k in range(1, 7)
    }
    found = select(columns, X, y, task="regression", criterion="bic")
    assert found.name == "2 columns"
    assert isinstance(found.claim, Lacking)
    assert "nothing" in found.claim.reason
    assert "Bayesian information criterion" in repr(found)
    assert "%" not in repr(found)


class SelectFirst(StandardScaler):
    """The first k columns, scaled."""

    def __init__(self, k=1):
        super().__init__()
        self.k = k

    def transform(self, X):
        return super().transform(X)[:, : self.k]


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (Ridge(), "not the least-squares fit"),
        (OurRidge(regularization=0.1), "not the least-squares fit"),
        (HuberRegressor(), "not the least-squares fit"),
        (DummyRegressor(strategy="median"), "not the least-squares fit"),
        (RandomForestRegressor(5), "no likelihood"),
        (
            make_pipeline(SelectKBest(f_regression, k=2), LinearRegression()),
            "preparation learns from the targets",
        ),
        (
            NestedFamily(GradientBoostingRegressor(), [2, 3], "n_estimators"),
            "prefixes of boosting have no likelihood",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_refused_for_numbers(model, why, numbers):
    X, y = numbers
    with pytest.raises(ValueError, match=why) as refusal:
        select([model], X, y, task="regression", criterion="aic")
    assert "leave it out or use cross-validation" in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (LogisticRegression(C=0.1), "does not maximize the likelihood"),
        (LogisticRegression(C=np.inf, max_iter=2), "does not maximize the likelihood"),
        (GaussianNB(), "no likelihood"),
        (DummyClassifier(strategy="most_frequent"), "not those of a logistic regression"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_refused_for_classes(model, why):
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.raises(ValueError, match=why):
        select([model], StandardScaler().fit_transform(X)[:, :3], y, criterion="bic")


def test_refused_where_the_likelihood_has_no_maximum(numbers):
    X, y = numbers
    with pytest.raises(ValueError, match="separates the classes"):
        select(
            [LogisticRegression(C=np.inf, max_iter=10_000)],
            np.arange(4.0)[:, None],
            [0, 0, 1, 1],
            criterion="aic",
        )
    with pytest.raises(ValueError, match="fits every row exactly"):
        select([LinearRegression()], X, X @ np.arange(6.0), task="regression", criterion="aic")
    with pytest.raises(ValueError, match="8 parameters needs more than 9 rows"):
        select([LinearRegression()], X[:9], y[:9], task="regression", criterion="aicc")
    with pytest.raises(ValueError, match="8 parameters need more than 8 rows"):
        select([LinearRegression()], X[:8], y[:8], task="regression", criterion="aic")
    with pytest.raises(ValueError, match="with groups, choose by cross-validation"):
        select(
            [LinearRegression()],
            X,
            y,
            task="regression",
            criterion="aic",
            groups=np.arange(60) // 2,
        )
