"""Norms of interpolants against direct solves, and the page that says what they do."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from surelearn.kernel.functions import Gaussian, Laplace
from surelearn.papers import reproduce
from surelearn.papers.kernel_double_descent import flipped
from surelearn.papers.kernel_rkhs_norm import (
    HALVINGS,
    KERNELS,
    NOISES,
    NormSettings,
    extrapolated,
    interpolate,
    measure,
    sizes,
)
from surelearn.papers.page import Made, to_html

SMALL = {"rows": 320, "repeats": 2}
MADE = Made(name="n", command="c", seed=0, settings={}, meanings={})


@pytest.fixture(scope="module")
def outcome():
    return reproduce("rkhs-norm", **SMALL)


@pytest.mark.parametrize("k", [Gaussian(bandwidth=1.0), Laplace(1.5)], ids=repr)
def test_every_prefix_is_the_direct_solution(k):
    random = np.random.default_rng(0)
    X, Z, Y = random.normal(size=(40, 4)), random.normal(size=(9, 4)), random.normal(size=(40, 3))
    squared, z, b = interpolate(k, X, Y, Z)
    for m in (1, 7, 40):
        alpha = np.linalg.solve(k(X[:m], X[:m]), Y[:m])
        assert squared[m - 1] == pytest.approx(np.sum(Y[:m] * alpha), rel=1e-9)
        np.testing.assert_allclose(b[:m].T @ z[:m], k(Z, X[:m]) @ alpha, rtol=1e-7, atol=1e-9)
    assert (np.diff(squared) >= 0).all()


def test_one_measurement_by_a_direct_solve():
    k, rows, seed = Laplace(3.0), 160, 4
    found = measure(seed, k, rows, 0.5)
    X, y = load_digits(return_X_y=True)
    random = np.random.RandomState(seed)
    order = random.permutation(len(y))
    labels = flipped(y[order[:rows]], 0.5, random)
    assert 0.3 < np.mean(labels != y[order[:rows]]) < 0.7
    for i, n in enumerate(sizes(rows)):
        A, Y = X[order[:n]] / 16, np.eye(10)[labels[:n]]
        alpha = np.linalg.solve(k(A, A), Y)
        assert found["norm"][i] == pytest.approx(np.sqrt(np.sum(Y * alpha)), rel=1e-8)
        scores = k(X[order[rows:]] / 16, A) @ alpha
        assert found["test"][i] == pytest.approx(
            np.mean(scores.argmax(1) != y[order[rows:]]), abs=1e-3
        )
    assert found["lower"][-1] == pytest.approx(found["norm"][-3], rel=1e-12)
    assert max(found["residual"]) < 1e-9


def test_a_power_law_is_extrapolated_exactly():
    assert extrapolated(3 * np.arange(1.0, 42.0) ** 1.4, 160) == pytest.approx(
        np.sqrt(3 * 160**1.4)
    )


def test_noise_makes_the_norm_grow_faster_and_a_subsample_bounds_it_from_below(outcome):
    for kernel in KERNELS:
        cases = [of for name, of in outcome.numbers.items() if name.startswith(kernel)]
        ends = [np.mean(of["norm"], axis=0)[-1] for of in cases]
        assert ends == sorted(ends)
        times = [np.mean(of["norm"], axis=0)[-1] / np.mean(of["norm"], axis=0)[0] for of in cases]
        assert times == sorted(times)
        for of in cases:
            assert (np.asarray(of["lower"]) <= np.asarray(of["norm"])).all()
            assert (np.diff(of["norm"], axis=1) > 0).all()
            np.testing.assert_allclose(
                np.array(of["estimate"])[:, -1], np.array(of["norm"])[:, -1], rtol=0.5
            )


def test_sentences_follow_from_the_numbers(outcome):
    name = f"Laplace, {100 * NOISES[-1]:g}% of labels changed"
    norm = np.mean(outcome.numbers[name]["norm"], axis=0)
    test = 100 * np.mean(outcome.numbers[name]["test"], axis=0)
    power = np.log(norm[-1] / norm[0]) / np.log(2**HALVINGS)
    assert (
        f"{name}: ‖f‖ grows from {norm[0]:.1f} to {norm[-1]:.1f}, as n^{power:.2f},"
        f" and the test error goes from {test[0]:.1f}% to {test[-1]:.1f}%." in outcome.findings
    )
    clean = np.mean(outcome.numbers["Laplace, labels as they are"]["norm"], axis=0)
    assert f"{norm[-1] / clean[-1]:.1f} times for the Laplace kernel" in outcome.headline


def test_the_page_is_drawn(outcome):
    assert to_html(outcome, MADE).count("<svg") == len(KERNELS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rows": 10}, "rows must lie between 160 and 1500, not 10"),
        ({"repeats": 1}, "repeats must be at least 2, not 1"),
        ({"gaussian": 0}, "gaussian must be above 0 and at most 3, where float64 suffices, not 0"),
        ({"laplace": 9}, "laplace must be above 0 and at most 3"),
    ],
)
def test_impossible_settings_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        reproduce("rkhs-norm", **given)


def test_sizes_halve():
    assert sizes(NormSettings().rows) == [75, 150, 300, 600, 1200]
