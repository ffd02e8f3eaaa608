"""The spectrum against what is known exactly: the circle, the linear kernel, made-up
eigenvalues; and the two solvers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from surelearn.kernel.functions import Gaussian, Kernel, Laplace, Linear, Matern, squared_norms
from surelearn.kernel.spectrum import Decay, KernelSpectrum, kernel_spectrum, leading_eigensystem
from surelearn.papers.kernel_circle import eigenvalues, periodic_matrix

BANDWIDTH = 0.5
both = pytest.mark.parametrize("method", ["dense", "randomized"])


@dataclass(frozen=True)
class Circle(Kernel):
    """The periodic Gaussian kernel, whose eigenfunctions are 1, √2·cos kx and √2·sin kx."""

    def __call__(self, X, Z):
        images = np.arange(-3, 4) * 2 * math.pi
        return np.sum([Gaussian(bandwidth=BANDWIDTH)(X, Z + image) for image in images], axis=0)

    def diagonal(self, X):
        return np.full(len(X), self(np.zeros((1, 1)), np.zeros((1, 1)))[0, 0])


def exact(count: int) -> np.ndarray:
    """Eigenvalues of the circle, in order: those of the frequencies 0, 1, 1, 2, 2, …"""
    return eigenvalues(BANDWIDTH, (np.arange(count) + 1) // 2)


def points(n: int) -> np.ndarray:
    return 2 * math.pi * np.arange(n)[:, None] / n


def rows(n, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@both
def test_the_circle_has_the_eigenvalues_of_its_formula(method):
    values, _ = leading_eigensystem(
        periodic_matrix(BANDWIDTH, points(300)[:, 0]) / 300, 11, method=method
    )
    np.testing.assert_allclose(values, exact(11), rtol=1e-9)


def test_random_points_on_the_circle_estimate_them():
    X = np.random.default_rng(0).uniform(0, 2 * math.pi, size=(4000, 1))
    found = kernel_spectrum(Circle(), X, size=1500, random_state=0, top=5)
    np.testing.assert_allclose(found.eigenvalues, exact(5), rtol=0.12)
    assert found.beta == pytest.approx(Circle().diagonal(X)[0])


def test_eigenfunctions_of_the_circle_at_new_points():
    found = kernel_spectrum(Circle(), points(200), top=7)
    x = np.random.default_rng(1).uniform(0, 2 * math.pi, size=(40, 1))
    at = found.eigenfunctions(x)
    np.testing.assert_allclose(at[:, 0] ** 2, 1.0, rtol=1e-9)
    for k in (1, 2, 3):  # any rotation of √2·cos kx, √2·sin kx
        np.testing.assert_allclose(at[:, 2 * k - 1] ** 2 + at[:, 2 * k] ** 2, 2.0, rtol=1e-7)
        waves = math.sqrt(2) * np.hstack([np.cos(k * x), np.sin(k * x)])
        np.testing.assert_allclose(
            waves @ np.linalg.lstsq(waves, at[:, 2 * k - 1], rcond=None)[0],
            at[:, 2 * k - 1],
            atol=1e-7,
        )


def test_eigenfunctions_are_orthonormal_on_their_own_rows():
    X = rows(120)
    at = kernel_spectrum(Laplace(2.0), X, top=20).eigenfunctions(X)
    np.testing.assert_allclose(at.T @ at / 120, np.eye(20), atol=1e-9)


def test_the_linear_kernel_has_the_covariance_of_the_rows():
    X = rows(200, 4) * [3.0, 2.0, 1.0, 0.5]
    values, axes = np.linalg.eigh(X.T @ X / 200)
    found = kernel_spectrum(Linear(), X, top=6)
    np.testing.assert_allclose(found.eigenvalues, [*values[::-1], 0.0, 0.0], atol=1e-12)
    assert found.beta == pytest.approx(squared_norms(X).max())
    new = rows(9, 4, seed=1)
    expected = new @ axes[:, ::-1] / np.sqrt(values[::-1])
    np.testing.assert_allclose(np.abs(found.eigenfunctions(new)), np.abs(expected), rtol=1e-8)


@pytest.mark.parametrize("kernel", [Gaussian(bandwidth=2.0), Laplace(2.0), Matern(2.0)], ids=repr)
@pytest.mark.parametrize("top", [1, 12, 40])
def test_randomized_is_dense(kernel, top):
    X = rows(400, 5)
    K = kernel(X, X)
    values, vectors = leading_eigensystem(K, top, method="randomized")
    reference = np.linalg.eigvalsh(K)[::-1]
    np.testing.assert_allclose(values, reference[:top], atol=1e-8 * reference[0])
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(top), atol=1e-10)
    assert np.linalg.norm(K @ vectors - vectors * values, axis=0).max() <= 1.1e-8 * reference[0]


def test_the_solver_is_chosen_by_size():
    X = rows(1000, 2)
    large, small = Laplace(1.0)(X, X), Laplace(1.0)(X[:300], X[:300])
    for matrix, top, method in (
        (large, 20, "randomized"),
        (large, 100, "dense"),
        (small, 5, "dense"),
    ):
        auto, named = (
            leading_eigensystem(matrix, top),
            leading_eigensystem(matrix, top, method=method),
        )
        np.testing.assert_array_equal(auto[1], named[1])


def test_where_randomized_is_not_near_enough_dense_answers():
    X = rows(200)
    K = Laplace(1.0)(X, X)
    found, dense = (
        leading_eigensystem(K, 10, method=m, tolerance=0.0) for m in ("randomized", "dense")
    )
    np.testing.assert_array_equal(found[0], dense[0])


def test_directions_that_are_rounding_do_not_make_randomized_give_way():
    X = rows(300)
    K = Linear()(X, X)  # of rank 3
    first, second = (
        leading_eigensystem(K, 12, method="randomized", random_state=seed) for seed in (0, 1)
    )
    np.testing.assert_allclose(first[0], second[0], rtol=1e-12)
    assert not np.array_equal(first[1], second[1])  # a dense answer would not depend on the seed


@both
@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (np.zeros((30, 30)), [0.0, 0.0, 0.0]),
        (np.eye(30), [1.0, 1.0, 1.0]),
        (np.ones((30, 30)), [30.0, 0.0, 0.0]),
        (np.diag([2.0] * 20 + [1.0] * 10), [2.0, 2.0, 2.0]),
        (np.diag([5.0, 4.0, 3.0, *[1e-14] * 40]), [5.0, 4.0, 3.0]),
        (1e200 * np.eye(5), [1e200] * 3),
        (np.eye(3), [1.0, 1.0, 1.0]),
    ],
    ids=["zero", "identity", "rank one", "repeated", "rank three", "huge", "as many as rows"],
)
def test_degenerate_matrices(matrix, expected, method):
    values, vectors = leading_eigensystem(matrix, 3, method=method)
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-9)


def test_one_row():
    assert leading_eigensystem([[2.0]], 1)[0] == [2.0]
    found = kernel_spectrum(Gaussian(bandwidth=0.7071), [[0.0, 1.0]], top=1)
    assert found.eigenvalues == [1.0]
    assert found.decay().kind == "none"
    assert "too few" in str(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"matrix": np.eye(3), "top": 4}, "top must be between 1 and the 3 rows"),
        ({"matrix": np.eye(3), "top": 0}, "top must be"),
        ({"matrix": np.ones((2, 3)), "top": 1}, "square and finite"),
        ({"matrix": np.full((2, 2), np.nan), "top": 1}, "square and finite"),
        ({"matrix": np.eye(3), "top": 1, "method": "lobpcg"}, "method must be one of"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        leading_eigensystem(**arguments)


def test_eigenfunctions_need_vectors():
    with pytest.raises(ValueError, match="top="):
        kernel_spectrum(Linear(), np.eye(2)).eigenfunctions(np.eye(2))


def test_decay_names_the_law():
    i = np.arange(1.0, 61.0)
    power, exponential = (
        KernelSpectrum(3.0 * i**-1.5, 1.0).decay(),
        KernelSpectrum(0.2 * np.exp(-0.3 * i), 1.0).decay(),
    )
    assert (power.kind, exponential.kind) == ("power", "exponential")
    assert power.exponent == pytest.approx(1.5)
    assert exponential.rate == pytest.approx(0.3)
    assert max(power.power_error, exponential.exponential_error) < 1e-12
    mixed = KernelSpectrum(np.append(i**-2.0, [1e-30, 0.0]), 1.0).decay(first=5)
    assert (mixed.first, mixed.last) == (5, 60)  # what is rounding is left out
    assert mixed.exponent == pytest.approx(2.0)


def test_smooth_kernels_decay_faster_than_any_power():
    """On an interval, Laplace's eigenvalues fall like i^−2 and those of Matérn, ν = 3/2, like
    i^−4: i^−(2ν + 1).
    """
    x = (np.arange(800)[:, None] + 0.5) / 800
    laplace, matern = (
        kernel_spectrum(k, x).decay(first=30, last=150) for k in (Laplace(0.5), Matern(0.5))
    )
    gaussian = kernel_spectrum(Gaussian(bandwidth=0.2236), x).decay()
    assert (laplace.kind, matern.kind, gaussian.kind) == ("power", "power", "exponential")
    assert laplace.exponent == pytest.approx(2.0, abs=0.05)
    assert matern.exponent == pytest.approx(4.0, abs=0.15)


def test_the_effective_dimension_falls_from_the_rank_to_nothing():
    found = kernel_spectrum(Laplace(1.0), rows(100))
    dimensions = [found.effective_dimension(lam) for lam in (1e-12, 1e-6, 1e-3, 0.1, 10.0)]
    assert dimensions == sorted(dimensions, reverse=True)
    assert dimensions[0] == pytest.approx(100, rel=1e-6)
    assert dimensions[-1] == pytest.approx(found.eigenvalues.sum() / 10, rel=0.1)
    K = Laplace(1.0)(rows(100), rows(100))
    assert dimensions[2] == pytest.approx(np.trace(K @ np.linalg.inv(K + 100 * 1e-3 * np.eye(100))))
    assert (
        kernel_spectrum(Laplace(1.0), rows(100), top=30).effective_dimension(1e-3) < dimensions[2]
    )


def test_a_million_steps_on_the_circle_reach_little_further_than_a_hundred():
    found = kernel_spectrum(Circle(), points(400), top=60)
    reached = {
        steps: found.computational_reach(steps, 0.01) for steps in (0, 1, 100, 10_000, 1_000_000)
    }
    for steps, count in reached.items():
        ratios = np.exp(-(BANDWIDTH**2) * ((np.arange(60) + 1) // 2) ** 2 / 2)
        assert count == sum((1 - ratios) ** steps <= 0.01)
    assert reached[0] == 0
    assert list(reached.values()) == sorted(reached.values())
    assert reached[1_000_000] < 3 * reached[100]


def test_at_the_critical_batch_size_an_iteration_does_half_of_its_rows_worth():
    found = kernel_spectrum(Laplace(2.0), rows(150))
    critical = found.critical_batch_size()
    gain = lambda m: found.step_size(m) / found.step_size(1)  # noqa: E731
    assert gain(critical + 1) == pytest.approx((critical + 1) / 2)
    assert 0.5 * critical < gain(10**6) < critical
    assert all(gain(m) == pytest.approx(m / (1 + (m - 1) / critical)) for m in (2, 7, 1000))


def test_the_plot_shows_eigenvalues_and_decay():
    ax = kernel_spectrum(Laplace(1.0), rows(50)).plot()
    eigen, fitted = ax.get_lines()
    assert len(eigen.get_xdata()) == 50
    assert fitted.get_label().startswith("λ_i ~ ")
    assert ax.get_xscale() == ax.get_yscale() == "log"
    np.testing.assert_allclose(np.log(fitted.get_ydata()).mean(), np.log(eigen.get_ydata()).mean())
    assert len(KernelSpectrum(np.array([1.0, 0.0]), 1.0).plot(ax).get_lines()) == 3


def test_it_reads_well():
    text = str(kernel_spectrum(Linear(), np.eye(2)))
    assert text.startswith(
        "2 eigenvalues, 2 above rounding: λ₁ = 0.5, β = 1, critical batch size 2"
    )
    assert kernel_spectrum(Linear(), np.eye(2))._repr_html_().startswith("<pre>2 eigenvalues")
    assert str(Decay("power", 1.5, 0.1, 0.0, 1.0, 1, 9)) == "λ_i ~ i^−1.50"
