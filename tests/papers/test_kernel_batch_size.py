"""The step and the critical batch size against enumeration, one measurement by another route,
and the page.
"""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from surelearn.kernel.functions import Gaussian, Laplace
from surelearn.kernel.spectrum import KernelSpectrum
from surelearn.papers import reproduce
from surelearn.papers.kernel_batch_size import (
    WAYS,
    BatchSizeSettings,
    batch_sizes,
    describe,
    flattened,
    iterations_to,
    knee,
    measure,
)
from surelearn.papers.page import Made, to_html

SMALL = {"rows": 300, "repeats": 3, "directions": 15, "target": 0.02}
MADE = Made(name="n", command="c", seed=0, settings={}, meanings={})
SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def outcome():
    return reproduce("critical-batch-size", **SMALL)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_no_step_is_better_in_the_worst_direction_than_the_bound_says(m):
    """E(I − (η/m)·Σφφᵀ)² ≤ I − η(m)·H over all batches of m of four rows; and η(m) is what
    minimizes the bound.
    """
    random = np.random.RandomState(m)
    features = random.normal(size=(4, 3))
    H, beta = features.T @ features / 4, float((features**2).sum(1).max())
    spectrum = KernelSpectrum(np.asarray(np.linalg.eigvalsh(H)[::-1], dtype=np.float64), beta)

    def mean_square(step):
        total = np.zeros((3, 3))
        for batch in product(range(4), repeat=m):
            rows = features[list(batch)]
            move = np.eye(3) - step / m * rows.T @ rows
            total += move @ move / 4**m
        return total

    step = spectrum.step_size(m)
    assert np.linalg.eigvalsh(np.eye(3) - step * H - mean_square(step)).min() >= -1e-12
    factor = (beta + (m - 1) * spectrum.eigenvalues[0]) / m
    assert step == pytest.approx(
        min(np.linspace(0.01, 2, 20_000) / factor, key=lambda s: factor * s**2 - 2 * s), rel=1e-3
    )


def test_flattened_lowers_the_largest_eigenvalues_to_the_next():
    random = np.random.RandomState(0)
    K = Gaussian(bandwidth=1.414)(X := random.normal(size=(30, 5)), X)
    values = np.linalg.eigvalsh(K)[::-1]
    np.testing.assert_allclose(
        np.linalg.eigvalsh(flattened(K, 6))[::-1], np.minimum(values, values[6]), atol=1e-10
    )


def test_iterations_by_coefficients():
    """α_B ← α_B − (η/m)·(Kα − y)_B, from the same batches."""
    random = np.random.RandomState(0)
    K = Laplace(2.0)(X := random.normal(size=(25, 4)), X)
    Y = random.normal(size=(25, 2))
    for m in (1, 5):
        draws, alpha, step = np.random.RandomState(7), np.zeros((25, 2)), m / (1 + (m - 1) * 0.5)
        found = iterations_to(K, Y, m, step, 0.1, np.random.RandomState(7))
        assert 5 < found < 200
        for t in range(1, found + 1):
            batch = draws.randint(25, size=m)
            np.subtract.at(alpha, batch, step / m * (K[batch] @ alpha - Y[batch]))
            below = np.mean((K @ alpha - Y) ** 2) <= 0.1 * np.mean(Y**2)
            assert below == (t == found)
    with pytest.raises(
        ValueError,
        match=r"target=0 is not reached in 400,000 iterations with a batch of 1: take a larger",
    ):
        iterations_to(np.zeros((1, 1)), np.ones((1, 1)), 1, 1.0, 0.0, None)


def test_critical_sizes_of_one_measurement():
    found = measure(5, "", 120, Gaussian(bandwidth=1.5), 10, 0.1)
    X, y = load_digits(return_X_y=True)
    rows = np.random.RandomState(5).permutation(len(y))[:120]
    K = Gaussian(bandwidth=1.5)(X[rows] / 16, X[rows] / 16)
    values = np.linalg.eigvalsh(K / 120)[::-1]
    assert found["SGD"]["critical"] == pytest.approx(1 / values[0], rel=1e-6)
    assert found["EigenPro"]["critical_by_spectrum"] == pytest.approx(1 / values[10], rel=1e-6)
    own = flattened(K, 10).diagonal().max()
    assert found["EigenPro"]["critical"] == pytest.approx(own / values[10], rel=1e-6)


def test_scaling_below_the_critical_size_and_saturation_above(outcome):
    sizes = np.array(outcome.numbers["batch_sizes"])
    assert list(sizes) == batch_sizes(300)
    for way in WAYS:
        of = outcome.numbers[way]
        T, star, descent = (
            np.mean(of["iterations"], axis=0),
            np.mean(of["critical"]),
            np.mean(of["descent"]),
        )
        linear = sizes <= star / 2
        assert linear.sum() >= 2
        np.testing.assert_allclose((sizes * T / T[0])[linear], 1, atol=0.3)
        assert T[-1] <= (1.3 if sizes[-1] > 20 * star else 2) * descent
        assert 0.7 < np.mean(knee(of)) / star < 2.8
        assert (np.diff(sizes * T) > -0.1 * T[0]).all()
    assert np.mean(knee(outcome.numbers["EigenPro"])) > 5 * np.mean(knee(outcome.numbers["SGD"]))


def test_the_page_says_what_the_numbers_say(outcome):
    for way, sentence in zip(WAYS, outcome.findings, strict=False):
        of = outcome.numbers[way]
        assert f"{np.mean([T[0] for T in of['iterations']]):.0f} at m = 1" in sentence
        assert f"m* = {np.mean(of['critical']):.1f}" in sentence
        assert (
            f"The knee measured is {np.mean(knee(of)) / np.mean(of['critical']):.2f} times m*"
            in sentence
        )
    assert "saturation" in outcome.findings[0]
    assert "no saturation" not in outcome.findings[0]


def test_an_effect_that_is_not_seen_is_not_claimed():
    """Iterations that never fall with m."""
    never = {
        "iterations": [[64] * 8] * 2,
        "descent": [16, 16],
        "critical": [4.0, 4.0],
        "critical_by_spectrum": [4.0, 4.0],
    }
    made = describe(
        BatchSizeSettings(rows=100, repeats=2, directions=2),
        Gaussian(),
        {way: {**never, "beta": [1.0, 1.0], "top": [0.25, 0.25]} for way in WAYS},
    )
    assert (
        made.findings[0]
        == "SGD: at m = 4, the largest tried up to m* = 4.0, 64 iterations instead of 64 at m = 1,"
        " 4.00 times the rows (no linear scaling). The knee measured is 1.00 times m* (near it)."
        " At m = 32 there are 64 and at m = 100 64, gradient descent needs 16: no saturation"
        " yet."
    )


def test_the_page_is_drawn(outcome):
    assert to_html(outcome, MADE).count("<svg") == 3


@pytest.mark.skipif(not (SHARED / "mnist.npz").exists(), reason="no MNIST beside the repository")
def test_mnist():
    found = reproduce(
        "critical-batch-size", data=str(SHARED), rows=200, repeats=2, directions=10, target=0.1
    )
    assert np.mean(knee(found.numbers["EigenPro"])) > 2 * np.mean(knee(found.numbers["SGD"]))
    assert "200 rows of MNIST" in found.notes[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rows": 10}, "rows must lie between 100 and 1700 of digits, not 10"),
        ({"data": "nowhere"}, "data must be a folder with mnist.npz, and 'nowhere' is none"),
        ({"kernel": "cubic"}, "kernel must be one of gaussian, laplace, not cubic"),
        ({"bandwidth": -1}, "bandwidth must be a number above 0, or 0 for the usual one, not -1"),
        ({"directions": 501}, "directions must lie between 1 and half of rows, 500, not 501"),
        ({"target": 0.9}, "target must lie between 0.001 and 0.5, not 0.9"),
        ({"repeats": 1}, "repeats must be at least 2, not 1"),
    ],
)
def test_impossible_settings_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        reproduce("critical-batch-size", **given)
