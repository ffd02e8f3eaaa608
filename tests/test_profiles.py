"""Each kernel has one definition: what learners, closed forms and attacks evaluate is the same
function.
"""

import ast
from pathlib import Path

import numpy as np
import pytest

import surelearn
from surelearn import profiles
from surelearn.attacks.poison_kernel import KernelRidgeObjective
from surelearn.kernel import Compute, EigenProRegressor
from surelearn.kernel.functions import Gaussian, Laplace, Matern, Polynomial, kernel
from surelearn.linear import Perceptron, SupportVectorMachine
from surelearn.subject.forms import KernelForm

SHAPES = [
    ("gaussian", {"bandwidth": 0.7}),
    ("laplace", {"bandwidth": 0.7}),
    ("matern", {"bandwidth": 0.7, "nu": 1.5}),
    ("matern", {"bandwidth": 0.7, "nu": 2.5}),
    ("polynomial", {"degree": 1.0, "gamma": 0.3, "offset": 2.0}),
    ("polynomial", {"degree": 5.0, "gamma": 0.3, "offset": 2.0}),
    ("polynomial", {"degree": 2.5, "gamma": 0.3, "offset": 2.0}),
]


@pytest.mark.parametrize(("name", "shape"), SHAPES)
def test_slopes_are_differences(name, shape):
    at, step = np.linspace(0.1, 4.0, 50), 1e-6
    value, slope = getattr(profiles, name), getattr(profiles, f"{name}_slope")
    found = slope(value(at, **shape), at, **shape)
    np.testing.assert_allclose(
        found, (value(at + step, **shape) - value(at - step, **shape)) / (2 * step), rtol=1e-6
    )
    assert np.isfinite(slope(value(np.zeros(1), **shape), np.zeros(1), **shape)).all()


def test_values_by_hand():
    at = np.array([0.0, 0.25, 9.0])
    np.testing.assert_allclose(
        profiles.gaussian(at, 1.0), [1.0, np.exp(-0.125), np.exp(-4.5)], rtol=1e-15
    )
    np.testing.assert_allclose(
        profiles.laplace(at, 2.0), [1.0, np.exp(-0.25), np.exp(-1.5)], rtol=1e-15
    )
    t = np.sqrt(3.0) * np.array([0.0, 0.5, 3.0]) / 2.0
    np.testing.assert_allclose(profiles.matern(at, 2.0, 1.5), (1 + t) * np.exp(-t), rtol=1e-14)
    t = np.sqrt(5.0) * np.array([0.0, 0.5, 3.0]) / 2.0
    np.testing.assert_allclose(
        profiles.matern(at, 2.0, 2.5), (1 + t + t**2 / 3) * np.exp(-t), rtol=1e-14
    )
    for degree in range(1, 12):
        np.testing.assert_allclose(
            profiles.polynomial(-2 * at, degree), (1 - 2 * at) ** degree, rtol=1e-13
        )


@pytest.mark.parametrize(
    "k", [Gaussian(bandwidth=0.6), Laplace(0.7), Matern(0.7, nu=2.5), Polynomial(4)], ids=repr
)
def test_closed_forms_and_attacks_have_the_same_kernels(k):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(9, 3)), rng.normal(size=(5, 3))
    shape = {
        "gamma": 1.0,
        "offset": 1.0,
        **{name: float(value) for name, value in k.parameters().items()},
    }
    form = KernelForm(k.name, shape, Z, np.eye(5), np.zeros(5))
    np.testing.assert_allclose(form.values(X), k(X, Z), rtol=1e-12)
    np.testing.assert_allclose(form.pull(X)[0], k(X, Z), rtol=1e-9)
    if isinstance(k, Gaussian):
        attacked = KernelRidgeObjective(bandwidth=0.6, regularization=0.1)
        np.testing.assert_allclose(
            attacked.decision((Z, np.ones(5)), X), k(X, Z).sum(axis=1), rtol=1e-12
        )


@pytest.mark.parametrize("name", ["gaussian", "laplace", "matern", "polynomial", "linear"])
def test_three_learners_one_kernel(name):
    """f(x) − b of each learner is Σ_j c_j·k(x, x_j) of the one kernel of that name."""
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(40, 3)), rng.normal(size=(7, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    k = kernel(name, bandwidth=1.5, degree=2)
    ridge = EigenProRegressor(
        k, regularization=0.1, compute=Compute(device="cpu", dtype="float64"), solver="direct"
    ).fit(X, y)
    np.testing.assert_allclose(ridge.predict(new), k(new, X) @ ridge.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose((k.gram(X) + 4.0 * np.eye(40)) @ ridge.coef_, y, atol=1e-7)
    for learner in (SupportVectorMachine(kernel=k), Perceptron(kernel=k, epochs=5)):
        model = learner.fit(X, y)
        rows = model.support_ if isinstance(learner, SupportVectorMachine) else model.mistake_rows_
        found = k(new, X[rows]) @ model.dual_coef_[0] + model.intercept_[0]
        np.testing.assert_allclose(model.decision_function(new), found, rtol=1e-9, atol=1e-12)


def test_nobody_else_writes_a_kernel_down():
    """No file of the package but `profiles` and the torch evaluators takes e to the power of a
    distance.
    """
    source = Path(surelearn.__file__).parent
    allowed = {"profiles.py", "kernel/torch_functions.py", "kernel/fused.py"}
    found = []
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "np.exp",
                "torch.exp",
                "numpy.exp",
            ):
                inside = ast.unparse(node)
                if "dist" in inside or "squared" in inside or "bandwidth" in inside:
                    found.append(str(path.relative_to(source)))
    assert set(found) - allowed - {"papers/kernel_circle.py"} == set()
