"""Earlier names of parameters are read, with a warning, and files that hold them without one."""

# Type checkers know the names of today alone, as they should.
# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

import math
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from surelearn import Claim, bounds
from surelearn.attacks.poison_kernel import KernelRidgeObjective
from surelearn.earlier import REMEMBERED
from surelearn.fingerprint import fingerprint_model
from surelearn.kernel import EigenProRegressor
from surelearn.kernel.functions import Gaussian, Laplace, Linear, Matern, kernel, read_kernel
from surelearn.kernel.random_features import FourierFeatures, RandomFeaturesRegressor
from surelearn.kernel.record import KernelRegressionRecord
from surelearn.linear import Perceptron, SupportVectorMachine
from surelearn.persistence import load, save
from surelearn.subject.forms import kernel_form

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 2)), RNG.integers(0, 2, 30)


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
    model = EigenProRegressor(Gaussian(bandwidth=2.0), regularization=0.1, device="cpu").fit(X, Y)
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
