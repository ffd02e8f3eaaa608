"""Scores and gradients: against the models' own scores, finite differences, and every refusal."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC

from surelearn import linear
from surelearn.kernel import Compute, EigenProClassifier
from surelearn.kernel.functions import Gaussian, Laplace, Matern, Polynomial
from surelearn.lacking import Lacking
from surelearn.subject import predict_with, score_function
from surelearn.subject.forms import GaussianForm

IRIS, SPECIES = load_iris(return_X_y=True)
TWO = SPECIES < 2
NAMES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]


def eigenpro(kernel):
    return EigenProClassifier(kernel, regularization=1e-3, compute=Compute(dtype="float64"))


def network(activation):
    return MLPClassifier((7, 5), activation=activation, max_iter=30, random_state=0)


EACH = {  # the class with the largest score is the prediction
    "logistic": LogisticRegression(max_iter=2000),
    "ridge": RidgeClassifier(),
    "linear svc": LinearSVC(),
    "discriminant": LinearDiscriminantAnalysis(),
    "our logistic": linear.LogisticRegression(regularization=1e-2, random_state=0),
    "our perceptron": linear.Perceptron(random_state=0),
    "our kernel perceptron": linear.Perceptron(kernel=Gaussian(bandwidth=1.0), random_state=0),
    "gaussian": eigenpro(Gaussian(bandwidth=1.0)),
    "laplace": eigenpro(Laplace(2.0)),
    "matern": eigenpro(Matern(2.0)),
    "matern 5/2": eigenpro(Matern(2.0, nu=2.5)),
    "polynomial": eigenpro(Polynomial(2)),
    "network": network("relu"),
    "tanh network": network("tanh"),
    "logistic network": network("logistic"),
    "normal": GaussianNB(),
    "our naive bayes": linear.NaiveBayes(),
    "scaled naive bayes": make_pipeline(StandardScaler(), linear.NaiveBayes()),
    "scaled": make_pipeline(StandardScaler(), LogisticRegression()),
    "twice scaled": make_pipeline(
        RobustScaler(), MinMaxScaler(), PCA(3, whiten=True), MaxAbsScaler(), LogisticRegression()
    ),
    "scaled before and after": make_pipeline(
        PCA(3), StandardScaler(), PCA(2), LogisticRegression()
    ),
}
PAIRS = {  # votes of machines for pairs
    "svc": SVC(),
    "svc, polynomial": SVC(kernel="poly", coef0=0.5, degree=2),
    "svc, linear": SVC(kernel="linear"),
    "our svm": linear.SupportVectorMachine(random_state=0),
    "our kernel svm": linear.SupportVectorMachine(kernel="laplace", bandwidth=2.0, random_state=0),
    "perceptron, one-vs-one": linear.Perceptron(multiclass="one_vs_one", random_state=0),
    "scaled svc": make_pipeline(StandardScaler(), SVC()),
}


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def finite_differences(f, X, weights, h=1e-5):
    out = np.empty_like(X)
    for j in range(X.shape[1]):
        step = np.zeros(X.shape[1])
        step[j] = h
        out[:, j] = ((f.scores(X + step) - f.scores(X - step)) * weights).sum(axis=1) / (2 * h)
    return out


def rows(random):
    return IRIS[random.permutation(len(IRIS))[:20]] + 0.05 * random.standard_normal((20, 4))


@pytest.mark.parametrize("two", [True, False], ids=["two", "three"])
@pytest.mark.parametrize("model", [*EACH.values(), *PAIRS.values()], ids=[*EACH, *PAIRS])
def test_gradients_are_those_of_finite_differences(model, two):
    random = np.random.default_rng(0)
    f = score_function(fitted(model, IRIS[TWO] if two else IRIS, NAMES[TWO] if two else NAMES))
    X = rows(random)
    weights = random.standard_normal((20, 2 if two else 3))
    np.testing.assert_allclose(
        f.gradient(X, weights), finite_differences(f, X, weights), rtol=2e-4, atol=2e-5
    )


@pytest.mark.parametrize("two", [True, False], ids=["two", "three"])
@pytest.mark.parametrize("model", EACH.values(), ids=EACH)
def test_the_largest_score_is_the_prediction(model, two):
    model = fitted(model, IRIS[TWO] if two else IRIS, NAMES[TWO] if two else NAMES)
    f = score_function(model)
    X = rows(np.random.default_rng(1))
    assert f.exact
    assert (np.array(f.classes)[f.scores(X).argmax(axis=1)] == model.predict(X)).all()
    assert (f.predict(X) == model.predict(X)).all()


@pytest.mark.parametrize("model", [m for m in EACH.values() if hasattr(m, "decision_function")])
def test_closed_forms_are_the_models_own_scores(model):
    model = fitted(model, IRIS, NAMES)
    f, said = score_function(model), model.decision_function(IRIS)
    formed = f.scores(IRIS)
    # log odds against the first class, and log shares
    if isinstance(getattr(f.closed, "form", None), GaussianForm):
        formed = formed - formed[:, :1]
    np.testing.assert_allclose(formed, said, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("model", PAIRS.values(), ids=PAIRS)
def test_a_class_that_wins_all_its_pairs_is_the_prediction(model):
    model = fitted(model, IRIS, NAMES)
    f = score_function(model)
    scores = f.scores(IRIS)
    assert not f.exact
    won = scores.max(axis=1) > 0
    assert won.mean() > 0.9
    assert (np.array(f.classes)[scores.argmax(axis=1)] == model.predict(IRIS))[won].all()


def test_two_classes_of_a_vote_have_one_score():
    model = SVC().fit(IRIS[TWO], NAMES[TWO])
    np.testing.assert_allclose(
        score_function(model).scores(IRIS)[:, 1], model.decision_function(IRIS), rtol=1e-8
    )


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (
            RandomForestClassifier(5, random_state=0),
            "RandomForestClassifier has no gradient: it is made of trees",
        ),
        (
            GradientBoostingClassifier(n_estimators=2),
            "GradientBoostingClassifier has no gradient: it is made of trees",
        ),
        (
            KNeighborsClassifier(),
            "KNeighborsClassifier has no gradient that is known: how its scores come",
        ),
        (linear.NaiveBayes(categorical=[3]), "columns of categories have no gradient"),
        (make_pipeline(Normalizer(), LogisticRegression()), "Normalizer is not affine"),
        (
            make_pipeline(MinMaxScaler(clip=True), LogisticRegression()),
            "MinMaxScaler is not affine",
        ),
        (SVC(kernel="sigmoid"), "kernel 'sigmoid'"),
        (eigenpro(Gaussian(bandwidth=0.7071) + Laplace(1.0)), "kernel 'sum'"),
    ],
)
def test_without_a_gradient_there_is_a_reason(model, why):
    f = score_function(fitted(model, IRIS, NAMES))
    assert isinstance(f.pullback, Lacking)
    assert why in f.pullback.reason
    assert f.scores(IRIS).shape == (150, 3)
    with pytest.raises(ValueError, match=f"has no gradient: .*{why}"):
        f.gradient(IRIS, [1.0, 0.0, 0.0])


def test_functions_give_scores_or_labels():
    gives_scores = score_function(
        lambda X: np.stack([X[:, 0], X[:, 1]], axis=1), classes=["a", "b"]
    )
    assert gives_scores.predict(np.array([[1.0, 2.0], [2.0, 1.0]])).tolist() == ["b", "a"]
    gives_labels = score_function(lambda X: np.where(X[:, 0] > 0, "b", "a"), classes=["a", "b"])
    assert gives_labels.scores(np.array([[1.0], [-1.0]])).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    with pytest.raises(ValueError, match="pass classes="):
        score_function(lambda X: np.where(X[:, 0] > 0, "b", "a")).scores(np.ones((2, 1)))


def test_a_regressor_has_outputs_and_a_gradient():
    model = LinearRegression().fit(IRIS[:, :3], IRIS[:, 3])
    assert np.allclose(score_function(model).gradient(IRIS[:2, :3], [1.0]), model.coef_)


def test_bad_models_get_a_sentence():
    def raises(X):
        raise RuntimeError("out of order")

    with pytest.raises(ValueError, match=r"failed on rows of shape .*RuntimeError: out of order"):
        score_function(raises, classes=[0, 1]).scores(IRIS)
    with pytest.raises(ValueError, match="scores are NaN, first in row 0"):
        score_function(lambda X: np.full((len(X), 2), np.nan)).scores(IRIS)
    with pytest.raises(ValueError, match="scores of shape"):
        score_function(lambda _: np.zeros((3, 2))).scores(IRIS)
    with pytest.raises(ValueError, match="returned NaN for 150 of 150 rows"):
        score_function(lambda X: np.full(len(X), np.nan), classes=[0, 1]).predict(IRIS)
    with pytest.raises(ValueError, match="predictions of shape"):
        score_function(lambda _: np.zeros(3, dtype=int), classes=[0, 1]).predict(IRIS)
    with pytest.raises(ValueError, match="one class only"):
        score_function(lambda X: np.zeros(len(X)), classes=[0])
    with pytest.raises(TypeError, match="predict method"):
        score_function(3)


torch = pytest.importorskip("torch")


def module(outputs, double=True):
    torch.manual_seed(0)
    made = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(8, outputs)
    )
    return made.double() if double else made


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_module_is_differentiated_by_autograd(outputs):
    random, made = np.random.default_rng(0), module(outputs)
    f = score_function(made)
    X = rows(random)
    weights = random.standard_normal(f.scores(X).shape)
    np.testing.assert_allclose(
        f.gradient(X, weights), finite_differences(f, X, weights), rtol=1e-5, atol=1e-8
    )
    assert made.training, "its mode was not put back"
    assert all(p.grad is None for p in made.parameters())
    assert (f.predict(X) == f.scores(X).argmax(axis=1)).all()


def test_outputs_of_a_module_are_its_classes():
    X = np.array([[1.0, 0.0], [-1.0, 0.0]])
    one, two = torch.nn.Linear(2, 1), torch.nn.Linear(2, 2)
    with torch.no_grad():
        one.weight.copy_(torch.tensor([[1.0, 0.0]]))
        two.weight.copy_(torch.tensor([[0.0, 0.0], [1.0, 0.0]]))
        one.bias.zero_()
        two.bias.zero_()
    for made in (one, two):
        assert predict_with(made, ["n", "y"])(X).tolist() == ["y", "n"]
        assert score_function(made, classes=[1, 2]).predict(X).tolist() == [2, 1]
        for predict in (
            predict_with(made, "abc"),
            score_function(made, classes=list("abc")).predict,
        ):
            with pytest.raises(
                ValueError, match=r"the module gives [12] outputs? for 3 classes: pass classes="
            ):
                predict(X)
    assert predict_with(one)(X).tolist() == [1.0, -1.0], "a number without classes"
    with torch.no_grad():
        two.bias.fill_(torch.nan)
    with pytest.raises(ValueError, match="outputs are NaN for 2 of 2 rows"):
        predict_with(two, ["n", "y"])(X)


def test_a_part_in_training_mode_does_not_stay_so():
    made = module(2).eval()
    made[2].train()
    f = score_function(made)
    assert np.array_equal(f.scores(IRIS), f.scores(IRIS)), "a dropout drew"
    assert made[2].training
    assert not made.training


def test_a_module_may_want_its_rows_in_a_shape():
    made = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 2), torch.nn.Flatten(), torch.nn.Linear(2, 3))
    f = score_function(made, classes=["a", "b", "c"], shape=(1, 2, 2))
    assert f.gradient(IRIS[:5], [1.0, 0.0, 0.0]).shape == (5, 4)
    assert set(f.predict(IRIS)) <= {"a", "b", "c"}
    assert f.dtype is np.float32


def test_a_model_that_shortens_rows_has_no_linear_form():
    from surelearn.linear import DPLogisticRegression
    from surelearn.subject import score_function

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] > 0).astype(int)
    plain, short = (
        DPLogisticRegression(epsilon=5.0, x_bound=bound, random_state=0).fit(X, y)
        for bound in (None, 0.5)
    )
    assert not isinstance(score_function(plain).pullback, Lacking)
    assert "shortens rows" in score_function(short).pullback.reason
