"""Earlier names of parameters are read, with a warning, and files that hold them without one."""

# Type checkers know the names of today alone, as they should.
# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

import math
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surelearn import Claim, bounds
from surelearn.attacks.poison_kernel import KernelRidgeObjective
from surelearn.base import learners
from surelearn.earlier import REMEMBERED, as_saved, of_today
from surelearn.fingerprint import fingerprint_model
from surelearn.kernel import (
    Compute,
    EigenProClassifier,
    EigenProRegressor,
    Preconditioner,
    Stopping,
)
from surelearn.kernel.functions import Gaussian, Laplace, Linear, Matern, kernel, read_kernel
from surelearn.kernel.random_features import FourierFeatures, RandomFeaturesRegressor
from surelearn.kernel.record import KernelRegressionRecord
from surelearn.linear import (
    SGD,
    DPLogisticRegression,
    HuberRegression,
    LeastSquares,
    LogisticRegression,
    Perceptron,
    Ridge,
    SquareRootLasso,
    SupportVectorMachine,
    VariationalRegression,
)
from surelearn.persistence import load, save
from surelearn.subject.forms import kernel_form

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 2)), RNG.integers(0, 2, 30)
ROWS = RNG.normal(size=(60, 3))
TARGETS, LABELS = ROWS @ [1.0, 2.0, 0.0] + 0.1 * RNG.normal(size=60), ROWS[:, 0] > 0


@pytest.mark.parametrize(
    ("make", "bandwidth"),
    [
        (lambda: Gaussian(sigma=8.0), 2.0),
        (lambda: Gaussian(8.0), 2.0),
        (lambda: Gaussian.of_bandwidth(3.0), 3.0),
        (lambda: Laplace(sigma=8.0), 8.0),
        (lambda: Matern(sigma=8.0, nu=2.5), 8.0),
        (lambda: kernel("gaussian", sigma=8.0, degree=2), 2.0),
        (lambda: kernel("laplace", sigma=8.0), 8.0),
        (lambda: SupportVectorMachine(kernel="gaussian", sigma=8.0), 2.0),
        (lambda: SupportVectorMachine(kernel="laplace", sigma=8.0), 8.0),
        (lambda: Perceptron(kernel="gaussian", sigma=8.0), 2.0),
        (lambda: Perceptron(kernel="matern").set_params(sigma=8.0), 8.0),
        (lambda: Perceptron().set_params(kernel="gaussian", sigma=8.0), 2.0),
        (lambda: FourierFeatures(sigma=8.0), 2.0),
        (lambda: FourierFeatures("laplace", sigma=8.0), 8.0),
        (lambda: FourierFeatures("laplace").set_params(sigma=8.0), 8.0),
        (lambda: RandomFeaturesRegressor("laplace", sigma=8.0), 8.0),
        (lambda: RandomFeaturesRegressor(sigma=8.0), 2.0),
        (lambda: KernelRidgeObjective(sigma=8.0, regularization=1.0), 2.0),
    ],
)
def test_a_kernels_sigma_is_read_as_its_bandwidth(make, bandwidth):
    with pytest.warns(FutureWarning, match=r"bandwidth.*version 0\.4"):
        made = make()
    assert made.bandwidth == bandwidth
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not hasattr(made, "get_params") or clone(made).bandwidth == bandwidth


def test_an_attribute_is_read_under_its_earlier_name():
    with pytest.warns(FutureWarning, match="'sigma' of Gaussian"):
        assert Gaussian(bandwidth=2.0).sigma == 8.0
    with pytest.warns(FutureWarning, match="'sigma' of Laplace is 'bandwidth' now"):
        assert Laplace(2.0).sigma == 2.0


def test_a_name_that_never_was_is_refused():
    with pytest.raises(TypeError, match="width"):
        Gaussian(width=1.0)
    with pytest.raises(TypeError, match="positional"):
        bounds.kernel_radius(1.0, 2.0, 1.0)


def test_a_closed_form_is_made_of_either():
    new = kernel_form("gaussian", {"bandwidth": 2.0}, X, np.ones(30))
    with pytest.warns(FutureWarning, match="'sigma' of kernel_form"):
        old = kernel_form("gaussian", {"sigma": 8.0}, X, np.ones(30))
    np.testing.assert_array_equal(old.form.values(X), new.form.values(X))


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gaussian", "laplace", "matern 5/2"])
def test_a_claim_that_was_stored_with_sigma_verifies_as_it_is(name):
    sigma = 8.0 if name == "gaussian" else 2.0
    made = bounds.kernel_radius.certify(1.0, 2.0, bandwidth=2.0, kernel=name)
    plain = made.to_dict()
    stored = {key: value for key, value in plain["inputs"].items() if key != "bandwidth"}
    old = Claim.from_dict({**plain, "inputs": {**stored, "sigma": sigma}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert old.recompute() == pytest.approx(made.value, rel=1e-12)
    assert old.to_dict()["inputs"]["sigma"] == sigma
    with pytest.warns(FutureWarning, match="'sigma' of kernel_radius"):
        assert bounds.kernel_radius(1.0, 2.0, sigma=sigma, kernel=name) == pytest.approx(made.value)


def test_a_record_of_a_kernels_sigma_is_the_record_of_its_bandwidth():
    model = EigenProRegressor(
        Gaussian(bandwidth=2.0), regularization=0.1, compute=Compute(device="cpu")
    ).fit(X, Y)
    certificate = model.certificate_
    old = {**certificate.facts.values, "kernel_parameters": {"sigma": 8.0}}
    assert KernelRegressionRecord.read(old) == model.record_
    facts = type(certificate.facts)(**{**vars(certificate.facts), "values": old})
    changed = type(certificate)(**{**vars(certificate), "facts": facts})
    assert changed.verify(model, X, Y), str(changed.verify(model, X, Y))
    facts = type(facts)(**{**vars(facts), "values": {**old, "kernel_parameters": {"sigma": 9.0}}})
    changed = type(certificate)(**{**vars(certificate), "facts": facts})
    assert not changed.verify(model, X, Y)


# --------------------------------------------------------------------------------------------------


def saved_earlier(cls, **state):
    """As a file of an earlier version gives it."""
    made = object.__new__(cls)
    vars(made).update(cls.of_file(state))
    return made


def test_a_model_of_an_earlier_file_keeps_its_fingerprint_when_saved_again(tmp_path):
    """0.3 is not 2·(√0.15)² in floating point: what the file had is remembered."""
    assert 2.0 * math.sqrt(0.15) ** 2 != 0.3
    parameters = SupportVectorMachine(kernel="gaussian").fit(X, Y)
    state = {name: value for name, value in vars(parameters).items() if name != "bandwidth"}
    model = saved_earlier(SupportVectorMachine, **state, sigma=0.3)
    assert model.bandwidth == math.sqrt(0.15)
    name = fingerprint_model(model)
    save(model, tmp_path / "again")
    again = load(tmp_path / "again")
    assert fingerprint_model(again) == name
    assert again.bandwidth == model.bandwidth
    fresh = SupportVectorMachine(kernel="gaussian")
    vars(fresh).update(state, bandwidth=math.sqrt(0.15))
    assert fingerprint_model(fresh) != name  # the names in it are others
    again.set_params(bandwidth=0.5)
    assert fingerprint_model(again) != name
    again.set_params(bandwidth=math.sqrt(0.15))
    assert fingerprint_model(again) == name


@pytest.mark.parametrize("parts", [False, True])
def test_a_kernel_of_an_earlier_file_is_remembered(parts, tmp_path):
    old = read_kernel("gaussian", {"sigma": 0.3})
    assert old == Gaussian(bandwidth=math.sqrt(0.15))
    assert vars(old)[REMEMBERED] == {"sigma": 0.3}
    made = old + 0.5 * Linear() if parts else old
    model = Perceptron(kernel=made).fit(X, Y)
    save(model, tmp_path / "model")
    assert fingerprint_model(load(tmp_path / "model")) == fingerprint_model(model)
    fresh = Gaussian(bandwidth=math.sqrt(0.15))
    vars(model)["kernel"] = fresh + 0.5 * Linear() if parts else fresh
    assert fingerprint_model(load(tmp_path / "model")) != fingerprint_model(model)


# --------------------------------------------------------------------------------------------------

FREE, PENALIZED = ({"fit_intercept": True, "regularize_intercept": flag} for flag in (False, True))
CASES = [
    (LogisticRegression, {"passes": 3}, {"epochs": 3}),
    (LogisticRegression, {"tolerance": 0.1}, {"sgd": SGD(tol=0.1)}),
    (LogisticRegression, {"intercept": "free"}, FREE),
    (LogisticRegression, {"intercept": "regularized"}, PENALIZED),
    (LogisticRegression, {"intercept": "none"}, PENALIZED | {"fit_intercept": False}),
    (DPLogisticRegression, {"passes": 3.0}, {"epochs": 3.0}),
    (Perceptron, {"passes": 3, "tolerance": 0.1}, {"epochs": 3, "tol": 0.1}),
    (SupportVectorMachine, {"passes": 30, "intercept": "free"}, {"max_iter": 30, **FREE}),
    (Ridge, {"intercept": None}, FREE | {"regularize_intercept": None}),
    (Ridge, {"intercept": "free"}, FREE),
    (Ridge, {"intercept": "regularized"}, PENALIZED),
    (Ridge, {"intercept": "none"}, {"fit_intercept": False, "regularize_intercept": None}),
    (LeastSquares, {"intercept": "regularized"}, PENALIZED),
    (LeastSquares, {"intercept": "none"}, FREE | {"fit_intercept": False}),
    (HuberRegression, {"tolerance": 0.1}, {"tol": 0.1}),
    (VariationalRegression, {"tolerance": 0.1}, {"tol": 0.1}),
    (SquareRootLasso, {"tolerance": 0.1}, {"tol": 0.1}),
    (RandomFeaturesRegressor, {"intercept": "none"}, {"fit_intercept": False}),
    (RandomFeaturesRegressor, {"intercept": "free"}, {"fit_intercept": True}),
]


@pytest.mark.parametrize(("cls", "earlier", "today"), CASES)
def test_a_constructor_and_set_params_read_them(cls, earlier, today):
    with pytest.warns(FutureWarning, match="goes with version 0.4") as caught:
        made = cls(**earlier)
    assert {warning.filename for warning in caught} == {__file__}
    assert len(caught) == len(earlier)
    assert made.get_params() == cls(**today).get_params()
    with pytest.warns(FutureWarning) as caught:
        assert cls().set_params(**earlier).get_params() == made.get_params()
    assert {warning.filename for warning in caught} == {__file__}
    for name, value in earlier.items():
        with pytest.warns(FutureWarning, match=f"'{name}' of {cls.__name__}"):
            assert getattr(made, name) == value
    again = clone(made)  # warns of nothing
    assert again.get_params() == made.get_params()
    assert fingerprint_model(again) == fingerprint_model(made)


@pytest.mark.parametrize(("cls", "earlier", "today"), CASES)
def test_a_state_of_an_earlier_version_is_the_same_model(cls, earlier, today):
    """As pickle and `load` bring it; its hash is that of the names that the file had."""
    model = cls(**today)
    gone = {name.rpartition("__")[2] for name in of_today(cls.earlier, earlier)}
    beside = as_saved(model, vars(model))
    then = {name: value for name, value in beside.items() if name not in gone} | earlier
    as_it_was = cls.__new__(cls)
    vars(as_it_was).update(then)
    read = cls.__new__(cls)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read.__setstate__(dict(then))
        again = pickle.loads(pickle.dumps(read))  # noqa: S301 - made here
        for one in (read, again):
            assert vars(one) == vars(model) | {REMEMBERED: earlier}
            assert fingerprint_model(one) == fingerprint_model(as_it_was)


def test_a_fitted_attribute_is_read_by_its_earlier_name():
    model = LogisticRegression(epochs=2, finish=None).fit(ROWS, LABELS)
    with pytest.warns(FutureWarning, match="'passes_' of LogisticRegression is 'epochs_' now"):
        assert model.passes_ == 2
    with pytest.raises(AttributeError, match="no attribute 'passes_'"):
        _ = LogisticRegression().passes_  # not fitted


def test_a_grid_of_earlier_names_is_searched():
    """By itself, and in a pipeline."""
    grid = {"ridge__intercept": ["none", "free"]}
    search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), grid, cv=2)
    with pytest.warns(FutureWarning, match="'intercept' of Ridge"):
        search.fit(ROWS, TARGETS + 100)
    assert search.best_estimator_[-1].get_params()["fit_intercept"]
    search = GridSearchCV(LogisticRegression(), {"tolerance": [0.1], "passes": [2]}, cv=2)
    with pytest.warns(FutureWarning, match="of LogisticRegression is"):
        search.fit(ROWS, LABELS)
    assert (search.best_estimator_.sgd, search.best_estimator_.epochs) == (SGD(tol=0.1), 2)


# --------------------------------------------------------------------------------------------------
# Parameters that stand in a group today.

GROUPED = [
    (LogisticRegression, {"step": 0.2, "average": True}, {"sgd": SGD(step=0.2, average=True)}),
    (EigenProRegressor, {"step": 0.2}, {"preconditioner": Preconditioner(step=0.2)}),
    (
        EigenProClassifier,
        {"tol": 0.1, "device": "cpu", "dtype": "float64"},
        {"stopping": Stopping(tol=0.1), "compute": Compute(device="cpu", dtype="float64")},
    ),
]


@pytest.mark.parametrize(("cls", "earlier", "today"), GROUPED)
def test_parameters_of_a_group_are_read_beside_it(cls, earlier, today):
    with pytest.warns(
        FutureWarning, match=r"=…\); the earlier name goes with version 0.4"
    ) as caught:
        made = cls(**earlier)
    assert {warning.filename for warning in caught} == {__file__}
    assert len(caught) == len(earlier)
    want = cls(**today)
    assert made.get_params() == want.get_params()
    with pytest.warns(FutureWarning):
        assert cls().set_params(**earlier).get_params() == want.get_params()
    other = cls()
    for name, value in earlier.items():
        with pytest.warns(FutureWarning, match=f"'{name}' of {cls.__name__}"):
            assert getattr(made, name) == value
        with pytest.warns(FutureWarning, match=f"'{name}' of {cls.__name__}"):
            setattr(other, name, value)
    assert other.get_params() == want.get_params()
    again = clone(made)  # warns of nothing
    assert again.get_params() == made.get_params()
    assert fingerprint_model(again) == fingerprint_model(made) == fingerprint_model(want)


@pytest.mark.parametrize(("cls", "earlier", "today"), GROUPED)
def test_a_state_with_the_parameters_beside_each_other_is_the_same_model(cls, earlier, today):
    """Of an earlier version: hashed as the same parameters are today, so nothing is remembered."""
    model = cls(**today)
    then = as_saved(model, vars(model))
    assert not then.keys() & cls.groups.keys()
    assert earlier.items() <= then.items()
    as_it_was, read = cls.__new__(cls), cls.__new__(cls)
    vars(as_it_was).update(then)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read.__setstate__(dict(then))
        again = pickle.loads(pickle.dumps(read))  # noqa: S301 - made here
        for one in (read, again):
            assert vars(one) == vars(model)
            assert fingerprint_model(one) == fingerprint_model(as_it_was)
    pairs = ", ".join(f"{name}={value!r}" for name, value in sorted(earlier.items()))
    assert model.described_earlier() == f"{cls.__name__}({pairs})"


@pytest.mark.parametrize("cls", [LogisticRegression, EigenProRegressor])
def test_a_group_left_out_is_one_with_the_defaults(cls, tmp_path):
    given = {name: made() for name, made in cls.groups.items()}
    assert fingerprint_model(cls(**given)) == fingerprint_model(cls())
    assert repr(cls()) == f"{cls.__name__}()"
    name, made = next(iter(cls.groups.items()))
    changed = cls().set_params(**{f"{name}__step": 0.3})
    assert getattr(changed, name) == made(step=0.3) != made()
    assert getattr(cls(), name) is None  # no two learners share one
    assert fingerprint_model(changed) != fingerprint_model(cls())
    assert clone(changed).get_params() == changed.get_params()
    assert getattr(clone(changed), name) is not getattr(changed, name)
    save(changed, tmp_path / "model")
    assert load(tmp_path / "model").get_params() == changed.get_params()
    for wrong in ("adam", {"step": 0.3}):
        with pytest.raises(ValueError, match=rf"{name} must be {made.__name__}\(…\) or None"):
            cls(**{name: wrong}).fit(ROWS, LABELS)


def test_a_grid_of_nested_names_is_searched():
    grid = {"sgd__step": [1e-6, 0.5], "finish": [None]}
    search = GridSearchCV(LogisticRegression(), grid, cv=2, scoring="neg_log_loss")
    search.fit(ROWS, LABELS)
    assert search.best_params_["sgd__step"] == 0.5
    assert search.best_estimator_.sgd == SGD(step=0.5)
    with pytest.raises(ValueError, match="Invalid parameter 'steps'"):
        LogisticRegression().set_params(sgd__steps=0.5)


def test_a_certificate_that_names_the_parameters_beside_each_other_verifies():
    model = LogisticRegression(sgd=SGD(average=True), random_state=0).fit(ROWS, LABELS)
    made = model.certificate_
    assert made.facts.subject == "LogisticRegression(random_state=0, sgd=SGD(average=True))"
    told = {
        "LogisticRegression(average=True, random_state=0)": True,
        "LogisticRegression(average=False, random_state=0)": False,
    }
    for subject, verifies in told.items():
        old = replace(made, facts=replace(made.facts, subject=subject))
        assert bool(old.verify(model)) is verifies


def test_both_names_are_refused():
    with pytest.raises(TypeError, match="'tolerance' and 'tol'"):
        HuberRegression(tolerance=0.1, tol=0.1)
    with pytest.raises(TypeError, match="and 'fit_intercept'"):
        Ridge().set_params(intercept="free", fit_intercept=False)
    with pytest.raises(ValueError, match="must be one of"):
        Ridge(intercept="both")
    with pytest.raises(TypeError, match="'step' and 'sgd': give"):
        LogisticRegression(step=0.1, sgd=SGD())
    with pytest.raises(TypeError, match="'step' and 'sgd__step'"):
        LogisticRegression().set_params(step=0.1, sgd__step=0.1)
    with pytest.raises(TypeError, match="'tol' and 'tolerance'"):
        LogisticRegression(tol=0.1, tolerance=0.1)


def test_other_names_are_refused_as_ever():
    with pytest.raises(TypeError, match="unexpected keyword"):
        Ridge(passes=3)
    with pytest.raises(ValueError, match="Invalid parameter 'passes'"):
        Ridge().set_params(passes=3)
    assert not hasattr(Ridge(), "passes")


def test_private_training_reads_them():
    torch = pytest.importorskip("torch")
    from surelearn.optim.dp_module import DPModule, fit_private

    options = {"noise_multiplier": 1.0, "batch_size": 20, "random_state": 0}
    with pytest.warns(FutureWarning, match="'passes' of DPModule is 'epochs' now"):
        assert DPModule(torch.nn.Linear(3, 2), passes=2.0, **options).epochs == 2.0
    with pytest.warns(FutureWarning, match="'passes' of fit_private is 'epochs' now"):
        found = fit_private(torch.nn.Linear(3, 2), ROWS, LABELS.astype(int), passes=2.0, **options)
    assert found.recipe.steps == 6
    with pytest.raises(
        TypeError, match="fit_private was given 'passes' and 'epochs': give 'epochs'"
    ):
        fit_private(
            torch.nn.Linear(3, 2), ROWS, LABELS.astype(int), passes=2.0, epochs=3.0, **options
        )


def test_neighbors_of_training_rows_in_their_earlier_spelling():
    from surelearn import attribution

    rows = (ROWS[:40], LABELS[:40], ROWS[40:], LABELS[40:])
    of_three = attribution.nearest_neighbors(*rows, neighbors=3)
    with pytest.warns(FutureWarning, match=r"nearest_neighbors now.*version 0\.4"):
        earlier = attribution.nearest_neighbours
    with pytest.warns(
        FutureWarning, match=r"'neighbours' .* is 'neighbors' now.*version 0\.4"
    ) as seen:
        assert (earlier(*rows, neighbours=3).values == of_three.values).all()
    assert [one.filename for one in seen] == [__file__]  # it points to the caller
    with pytest.raises(TypeError, match="give 'neighbors'"):
        earlier(*rows, 3, neighbours=3)


def test_none_of_ours_uses_them(tmp_path):
    """Made, described, saved and loaded, a learner warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        for cls in learners():
            for model in cls.examples():
                assert not cls.earlier.keys() & model.get_params().keys()
        model = LogisticRegression().fit(ROWS, LABELS)
        save(model, tmp_path / "model")
        again = load(tmp_path / "model")
        assert fingerprint_model(again) == fingerprint_model(model)
