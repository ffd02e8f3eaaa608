"""Soundness: attacks inside a certified radius never succeed; for linear models just outside
they always do.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

from surelearn import linear
from surelearn.attacks import domain, projected_gradient, smallest_change
from surelearn.kernel import Compute, EigenProClassifier
from surelearn.kernel.functions import Gaussian, Laplace, Matern, Polynomial
from surelearn.robust import certified_radii
from surelearn.robust.certified import own_units
from surelearn.robust.lipschitz import matrix_norm, slopes
from surelearn.subject import ScoreFunction, score_function
from surelearn.subject.forms import Closed, LinearForm

IRIS, SPECIES = load_iris(return_X_y=True)


def eigenpro(kernel):
    return EigenProClassifier(kernel, regularization=1e-2, compute=Compute(dtype="float64"))


MODELS = {
    "logistic": LogisticRegression(max_iter=2000),
    "our logistic": linear.LogisticRegression(regularization=1e-2, random_state=0),
    "our svm": linear.SupportVectorMachine(random_state=0),
    "svc linear": SVC(kernel="linear"),
    "svc": SVC(),
    "svc polynomial": SVC(kernel="poly", degree=2, coef0=1.0),
    "gaussian": eigenpro(Gaussian(bandwidth=1.414)),
    "laplace": eigenpro(Laplace(4.0)),
    "matern": eigenpro(Matern(4.0)),
    "matern 5/2": eigenpro(Matern(4.0, nu=2.5)),
    "polynomial": eigenpro(Polynomial(2)),
    "network": MLPClassifier((8, 8), max_iter=60, random_state=0),
    "scaled": make_pipeline(StandardScaler(), LogisticRegression()),
    "scaled svc": make_pipeline(StandardScaler(), SVC()),
    "scaled network": make_pipeline(
        StandardScaler(), MLPClassifier((8,), activation="tanh", max_iter=60, random_state=0)
    ),
}


def fitted(model, two):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(
            IRIS[SPECIES < 2] if two else IRIS, SPECIES[SPECIES < 2] if two else SPECIES
        )


def worst_l1(model, X, radius, random):
    """All of the L1 ball in one column, and random points of its surface."""
    for i, (x, r) in enumerate(zip(X, radius, strict=True)):
        corners = np.vstack(
            [
                np.eye(4),
                -np.eye(4),
                random.dirichlet(np.ones(4), 100) * random.choice([-1, 1], (100, 4)),
            ]
        )
        yield i, x + r * corners


@pytest.mark.parametrize("two", [True, False], ids=["two", "three"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_no_attack_succeeds_within_the_radius(model, two):
    model = fitted(model, two)
    random = np.random.default_rng(0)
    X = IRIS[::5] if not two else IRIS[:100:4]
    where = domain(4, scale=[1.0, 0.5, 2.0, 1.0])
    said = model.predict(X)
    for norm in ("l2", "linf"):
        proved = certified_radii(model, X, norm=norm, where=where)
        assert (proved.predicted == said).all()
        assert np.median(proved.values) > 0
        radius = np.minimum(proved.values * (1 - 1e-6), 1e3)
        attack = projected_gradient(
            model,
            X,
            said,
            radius=radius,
            norm=norm,
            where=where,
            steps=15,
            restarts=3,
            random_state=0,
        )
        assert not attack.success.any()
        claim = proved.claim(3)
        assert claim.value == pytest.approx(proved.values[3], rel=1e-12)
        assert claim.recompute() == claim.value
        assert claim.confidence == "always"
    proved = certified_radii(model, X, norm="l1")
    for i, rows in worst_l1(model, X, np.minimum(proved.values * (1 - 1e-6), 1e3), random):
        assert (model.predict(rows) == said[i]).all()


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("name", ["logistic", "our logistic", "scaled"])
def test_the_radius_of_a_linear_model_is_exact(name, norm):
    model = fitted(MODELS[name], two=False)
    proved = certified_radii(model, IRIS[::5], norm=norm)
    found = smallest_change(
        model, IRIS[::5], model.predict(IRIS[::5]), largest=10.0, norm=norm, steps=60, rounds=12
    )
    assert proved.exact
    np.testing.assert_allclose(found.distance, proved.values, rtol=0.02)
    assert (found.distance >= proved.values * (1 - 1e-9)).all()
    beyond = {"radius": proved.values * 1.01, "norm": norm, "restarts": 3, "random_state": 0}
    attack = projected_gradient(model, IRIS[::5], model.predict(IRIS[::5]), **beyond)
    assert attack.success.all(), "a radius a hundredth larger is false"


def votes(weights):
    """Machines 0-1, 0-2 and 1-2, positive for the second; the model always says 0."""
    form = LinearForm(np.array(weights)[:, None], np.zeros(3))
    return ScoreFunction(
        "votes",
        form.values,
        lambda X: np.zeros(len(X), dtype=int),
        (0, 1, 2),
        closed=Closed(form, None, "pairs"),
    )


def test_a_class_that_lost_a_pair_is_not_certified():
    X = np.array([[2.0], [-2.0]])
    proved = certified_radii(votes([1.0, 1.0, -1.0]), X)
    assert proved.values[0] == 0.0, "class 1 wins, and the model says 0"
    assert proved.values[1] == pytest.approx(2.0), "class 0 wins both its pairs"
    assert (certified_radii(votes([-1.0, 1.0, -1.0]), X).values == 0).all(), (
        "each class wins one pair"
    )


def test_columns_that_do_not_move_are_not_counted():
    model = LogisticRegression().fit(IRIS[:100], SPECIES[:100])
    free = certified_radii(model, IRIS[:5], norm="linf").values
    fixed = certified_radii(model, IRIS[:5], norm="linf", where=domain(4, fixed=[0, 1])).values
    w = model.coef_[0]
    np.testing.assert_allclose(fixed / free, np.abs(w).sum() / np.abs(w[2:]).sum(), rtol=1e-9)
    assert np.isinf(certified_radii(model, IRIS[:5], where=domain(4, fixed=range(4))).values).all()


def test_without_a_theorem_there_is_a_reason():
    tree = DecisionTreeClassifier().fit(IRIS, SPECIES)
    with pytest.raises(
        ValueError, match=r"no radius is certified for DecisionTreeClassifier.*no gradient"
    ):
        certified_radii(tree, IRIS)
    with pytest.raises(ValueError, match="sigmoid"):
        certified_radii(SVC(kernel="sigmoid").fit(IRIS, SPECIES), IRIS)
    with pytest.raises(ValueError, match="negative offset"):
        certified_radii(SVC(kernel="poly", coef0=-1.0, degree=2).fit(IRIS, SPECIES), IRIS)
    with pytest.raises(ValueError, match="norm must be"):
        certified_radii(tree, IRIS, norm="l0")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"GaussianNB.*quadratic"):
        certified_radii(GaussianNB().fit(IRIS, SPECIES), IRIS)
    for regressor in (
        LinearRegression(),
        MLPRegressor(hidden_layer_sizes=(2,), solver="lbfgs", max_iter=1000),
        SVR(),
    ):
        with pytest.raises(ValueError, match="predicts numbers, and radii are about classes"):
            certified_radii(regressor.fit(IRIS, SPECIES), IRIS)
    holes = np.where(np.arange(150)[:, None] == 2, np.nan, IRIS)
    with pytest.raises(ValueError, match="X must hold finite numbers: row 2 has another"):
        certified_radii(LogisticRegression(max_iter=1000).fit(IRIS, SPECIES), holes)


torch = pytest.importorskip("torch")


def trained(module, X, y, epochs=40):
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)
    for _ in range(epochs):
        module.train()
        loss = torch.nn.functional.cross_entropy(module(torch.from_numpy(X)), torch.from_numpy(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return module.eval()


def convolution():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 8, 8)),
        torch.nn.Conv2d(1, 4, 3, padding=1, stride=2),
        torch.nn.BatchNorm2d(4),
        torch.nn.LeakyReLU(0.1),
        torch.nn.Conv2d(4, 4, 2, groups=2),
        torch.nn.Sequential(
            torch.nn.GELU(), torch.nn.AvgPool2d(2, stride=1), torch.nn.Dropout(0.3)
        ),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 10),
        torch.nn.LogSoftmax(dim=1),
    )


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_convolutional_network_holds_within_its_radius(norm):
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    made = trained(convolution(), X[:600], y[:600])
    inner = torch.nn.Sequential(*list(made)[1:])
    f = score_function(inner, shape=(1, 8, 8))
    proved = certified_radii(f, X[600:700], norm=norm)
    assert proved.values.max() > 0.001
    attack = projected_gradient(
        f, X[600:700], f.predict(X[600:700]), radius=proved.values * 0.999, norm=norm
    )
    assert not attack.success.any()
    with pytest.raises(ValueError, match="Unflatten is not known"):
        certified_radii(made, X[600:700])


@pytest.mark.parametrize(
    "layer",
    [
        lambda nn: nn.Conv2d(2, 3, 3, padding=1),
        lambda nn: nn.Conv2d(2, 3, 3, stride=2),
        lambda nn: nn.Conv2d(2, 4, 3, groups=2, padding=2),
        lambda nn: nn.Conv2d(2, 3, 2, dilation=2, stride=2),
        lambda nn: nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"),
        lambda nn: nn.AvgPool2d(3, stride=1),
        lambda nn: nn.AvgPool2d(2),
        lambda nn: nn.MaxPool2d(3, stride=2),
        lambda nn: nn.MaxPool2d(2, stride=1),
        lambda nn: nn.BatchNorm2d(2),
    ],
)
def test_layers_are_bounded_by_what_is_claimed(layer):
    torch.manual_seed(1)
    made = torch.nn.Sequential(layer(torch.nn), torch.nn.Flatten()).double().eval()
    width = made(torch.zeros(1, 2, 6, 6, dtype=torch.float64)).shape[1]
    whole = torch.nn.Sequential(*made, torch.nn.Linear(width, 2)).double()
    x = torch.randn(2, 6, 6, dtype=torch.float64)
    jacobian = (
        torch.autograd.functional.jacobian(lambda z: made(z[None])[0], x).reshape(width, -1).numpy()
    )
    for norm in ("l2", "linf"):
        bound = slopes(score_function(whole, shape=(2, 6, 6)), norm).before
        assert matrix_norm(jacobian, norm) <= bound * (1 + 1e-8)
        assert bound <= 4 * matrix_norm(jacobian, norm)


def test_a_mean_over_part_of_a_window_is_refused():
    for odd in (
        torch.nn.AvgPool2d(2, padding=1, count_include_pad=False),
        torch.nn.AvgPool2d(2, divisor_override=1),
    ):
        whole = torch.nn.Sequential(odd, torch.nn.Flatten(), torch.nn.Linear(16, 2))
        with pytest.raises(ValueError, match="other than its whole window"):
            certified_radii(score_function(whole, shape=(1, 6, 6)), np.zeros((1, 36)))


def test_circular_padding_wider_than_the_kernel_has_no_known_slope():
    """Wrapped copies of an input are counted once by the bound: weight 1, true norm above 2,
    bound 1.
    """
    from surelearn.robust.lipschitz import _convolution

    wide = torch.nn.Conv2d(1, 1, 1, padding=3, padding_mode="circular")
    assert "circular padding" in _convolution(wide, "l2").reason
    same = torch.nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular", bias=False).double()
    basis = torch.eye(25, dtype=torch.float64).reshape(25, 1, 5, 5)
    matrix = same(basis).detach().reshape(25, -1).numpy()
    assert np.linalg.norm(matrix, 2) <= _convolution(same, "l2")


class Sequential(torch.nn.Sequential):
    """Called as torch's, and ten times as steep."""

    def forward(self, x):
        return super().forward(10 * x)


class Linear(torch.nn.Linear):
    def forward(self, x):
        return super().forward(10 * x)


def hooked(net):
    net[0].register_forward_pre_hook(lambda _, inputs: (10 * inputs[0],))
    return net


def hooked_after(net):
    net.register_forward_hook(lambda _, __, outputs: outputs.flip(1))
    return net


def with_a_forward_of_its_own(net):
    net[0].forward = lambda x: torch.nn.functional.linear(10 * x, net[0].weight, net[0].bias)
    return net


def compiled_otherwise(net):
    net[0]._compiled_call_impl = lambda x: torch.nn.functional.linear(
        10 * x, net[0].weight, net[0].bias
    )
    return net


def parametrized(net):
    class Tenfold(torch.nn.Module):
        def forward(self, W):
            return 10 * W

    torch.nn.utils.parametrize.register_parametrization(net[0], "weight", Tenfold())
    return net


def another_layer(net):
    layer = Linear(4, 8).double()
    layer.load_state_dict(net[0].state_dict())
    return torch.nn.Sequential(layer, *list(net)[1:])


MUTANTS = {
    "a hook before": (hooked, "a hook on its layer Linear"),
    "a hook after": (hooked_after, "a hook on its layer Sequential"),
    "a forward of its own": (with_a_forward_of_its_own, "forward of its layer Linear was replaced"),
    "compiled otherwise": (compiled_otherwise, "a hook on its layer Linear"),
    "a parametrization": (parametrized, "ParametrizedLinear is not known"),
    "another layer": (another_layer, "the layer Linear is not known"),
    "another Sequential": (lambda net: Sequential(*net), "the layer Sequential is not known"),
    "nested": (
        lambda net: torch.nn.Sequential(Sequential(*list(net)[:2]), net[2]),
        "the layer Sequential is not known",
    ),
    "a softmax over rows": (
        lambda net: torch.nn.Sequential(*net, torch.nn.Softmax(dim=0)),
        "its last layer is not linear",
    ),
}


def small_net(outputs=3):
    torch.manual_seed(0)
    return (
        torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, outputs))
        .double()
        .eval()
    )


@pytest.mark.parametrize("name", MUTANTS)
def test_a_network_that_is_more_than_its_layers_is_not_certified(name):
    make, why = MUTANTS[name]
    assert (certified_radii(small_net(), IRIS).values > 0).all()
    with pytest.raises(ValueError, match=why):
        certified_radii(make(small_net()), IRIS)


def test_a_hook_on_all_modules_is_a_hook():
    hook = torch.nn.modules.module.register_module_forward_pre_hook(
        lambda _, inputs: (10 * inputs[0],)
    )
    try:
        with pytest.raises(ValueError, match="a hook on its layer"):
            certified_radii(small_net(), IRIS)
    finally:
        hook.remove()


def test_a_network_faster_than_its_layers_is_not_certified(monkeypatch):
    net = small_net()
    for softmax in (torch.nn.Softmax(1), torch.nn.LogSoftmax(-1)):
        for norm in ("l2", "linf", "l1"):
            assert (
                certified_radii(torch.nn.Sequential(*net, softmax), IRIS, norm=norm).values > 0
            ).all()
    own = torch.nn.Linear.forward
    # the class itself is another one now
    monkeypatch.setattr(torch.nn.Linear, "forward", lambda self, x: own(self, 10 * x))
    for norm in ("l2", "linf", "l1"):
        with pytest.raises(ValueError, match="change faster than its layers can"):
            certified_radii(net, IRIS, norm=norm)


def test_a_last_layer_that_is_not_one_score_a_class_is_refused():
    net = torch.nn.Sequential(
        torch.nn.Unflatten(1, (2, 2)), torch.nn.Linear(2, 3), torch.nn.Flatten()
    ).double()
    with pytest.raises(ValueError, match="Unflatten"):
        certified_radii(net, IRIS)
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Flatten()).double()
    f = score_function(net, shape=(2, 2))
    with pytest.raises(ValueError, match="does not give a score a class"):
        certified_radii(f, IRIS)


def test_units_that_were_measured_on_the_rows():
    X = np.random.default_rng(0).normal(size=(40, 3)) * [1.0, 2.0, 3.0]
    for scale in (X.std(axis=0), 0.1 * X.std(axis=0), np.abs(X).max(axis=0), 2 * np.ptp(X, axis=0)):
        assert "of these rows" in own_units(X, scale).reason
    for scale in (0.5, [1.0, 2.0, 3.0], [0.5, 0.5, 0.5]):
        assert own_units(np.clip(X, 0.0, 0.5), scale) is None
    with pytest.raises(ValueError, match="at least one row"):
        certified_radii(LogisticRegression().fit(X, X[:, 0] > 0), X[:0])
