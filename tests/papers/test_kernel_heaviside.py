"""The exact expansion on the circle against quadrature, against kernel matrices, and against
iterations that are run.
"""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from surelearn.papers import kernel_circle as circle
from surelearn.papers import reproduce
from surelearn.papers.kernel_heaviside import DOUBLE, FEW, MANY, HeavisideSettings, compute
from surelearn.papers.page import Made, to_html, to_json

BANDWIDTHS = (0.5, 1.0, 2.0)


@pytest.fixture(scope="module")
def outcome():
    return reproduce("shallows-heaviside")


def g(x):
    return np.where(x < math.pi, 1.0, -1.0)


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
@pytest.mark.parametrize("k", [0, 1, 3])
def test_eigenvalues_by_quadrature(bandwidth, k):
    x = 1.3
    around = np.array([x])

    def product(z):
        matrix = circle.periodic_matrix(bandwidth, np.concatenate([around, [z]]))
        return matrix[0, 1] * math.cos(k * z) / (2 * math.pi)

    found, _ = quad(product, 0, 2 * math.pi, limit=200)
    assert found == pytest.approx(
        float(circle.eigenvalues(bandwidth, k)) * math.cos(k * x), rel=1e-7
    )


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_eigenvalues_are_those_of_the_discretised_operator_each_twice(bandwidth):
    _, values, _ = circle.discretised(bandwidth, 300)
    exact = circle.eigenvalues(bandwidth, (np.arange(300) + 1) // 2)
    large = exact > 1e-9 * exact[0]
    assert large.sum() >= 5
    np.testing.assert_allclose(values[large], exact[large], rtol=1e-6)


@pytest.mark.parametrize(("directions", "t"), [(0, 1), (0, 100), (5, 1), (5, 40), (6, 40)])
@pytest.mark.parametrize("step", [1.0, 0.7])
def test_the_expansion_is_what_iterating_gives(directions, t, step):
    """f ← f + η·P·K(g − f), multiplication by multiplication, with P from the matrix' own
    eigenvectors.
    """
    bandwidth = 1.0
    x, values, vectors = circle.discretised(bandwidth, 300)
    K, top, E = (
        circle.periodic_matrix(bandwidth, x) / 300,
        values[:directions],
        vectors[:, :directions],
    )
    f = np.zeros(300)
    for _ in range(t):
        move = K @ (g(x) - f)
        move -= E @ ((1 - values[directions] / top) * (E.T @ move))
        f += step / values[directions] * move
    np.testing.assert_allclose(
        f, circle.approximation(x, bandwidth, math.log(t), step, directions), atol=5e-4
    )
    squared = np.mean((f - g(x)) ** 2)
    assert squared == pytest.approx(
        circle.squared_error(bandwidth, math.log(t), step, directions), abs=5e-4
    )


def test_the_error_is_parseval_s_sum():
    """Against the sum over many odd frequencies, term by term, without logarithms."""
    k = np.arange(1.0, 2_000_000.0, 2.0)
    left = (1 - np.exp(-(k**2) / 2)) ** 100
    tail = 4 / (math.pi**2 * 2_000_000)
    assert circle.squared_error(1.0, math.log(100)) == pytest.approx(
        np.sum(8 / (math.pi * k) ** 2 * left**2) + tail, rel=1e-9
    )


def test_directions_lower_all_larger_eigenvalues():
    """q = 13: the frequencies 0, 1, 1, …, 6, 6, then 7. One step learns all up to 7, and
    exp(−(9² − 7²)/2) of 9.
    """
    share = circle.learned(1.0, np.array([1.0, 3.0, 5.0, 7.0, 9.0]), 0.0, 1.0, 13)
    np.testing.assert_allclose(share, [1, 1, 1, 1, math.exp(-16)], rtol=1e-9)


@pytest.mark.parametrize("directions", [0, 9])
def test_iterations_to_an_error(directions):
    for error in (0.05, 0.03, 0.004):
        log_t = circle.log_iterations_to(error, 1.0, 0.9, directions)
        assert circle.squared_error(1.0, log_t, 0.9, directions) <= error
        assert circle.squared_error(1.0, log_t - 1e-6, 0.9, directions) > error
    assert circle.log_iterations_to(0.9, 1.0) == 0.0


def test_iterations_grow_as_the_leading_term():
    ratios = [
        circle.log_iterations_to(error, 1.0) / (2.0 * (2 / (math.pi**2 * error)) ** 2)
        for error in (0.01, 0.001, 0.0003)
    ]
    assert [abs(ratio - 1) for ratio in ratios] == sorted(
        (abs(ratio - 1) for ratio in ratios), reverse=True
    )
    assert ratios[-1] == pytest.approx(1, abs=0.01)


def test_the_page_says_what_the_numbers_say(outcome):
    few, many, eigenpro = outcome.numbers["ways"].values()
    assert (few["iterations"], many["iterations"], eigenpro["iterations"]) == (FEW, MANY, FEW)
    assert few["squared"] > many["squared"] > eigenpro["squared"] > 0
    for way in (few, many, eigenpro):
        assert f"{way['rms']:.3f}" in outcome.headline
        x = np.array(outcome.numbers["curve_at"])
        assert np.mean((np.array(way["curve"]) - g(x)) ** 2) == pytest.approx(
            way["squared"], abs=2e-3
        )
    assert "frequencies 1, 3 before, and 1, 3, 5 after" in outcome.findings[0]
    assert outcome.numbers["check"]["eigenvalues"] < 1e-6
    assert outcome.numbers["check"]["directions"] == 13
    assert max(outcome.numbers["check"][name] for name in ("few", "many")) < 1e-3
    assert outcome.numbers["check"]["eigenpro"] < 1e-2  # λ₁₄ is 2e-11 of λ₁: rounding shows
    resolved = [
        each["directions"]
        for each in outcome.numbers["by_directions"]
        if each["relative_eigenvalue"] > DOUBLE
    ]
    assert f"q = {resolved[-1]} float64" in outcome.findings[3]


def test_the_page_is_drawn_and_nothing_is_random(outcome):
    made = Made(name="n", command="c", seed=0, settings={}, meanings={})
    assert to_html(outcome, made).count("<svg") == 3
    assert to_json(outcome, made) == to_json(reproduce("shallows-heaviside", seed=5), made)


def test_iterations_are_written_as_numbers_or_powers(outcome):
    for row, each in zip(
        outcome.parts[1].table.rows[:2], outcome.numbers["iterations"], strict=False
    ):
        t = int(row[1])
        assert (
            circle.squared_error(1.0, math.log(t))
            <= each["squared"]
            < circle.squared_error(1.0, math.log(t - 1))
        )
    log_t = outcome.numbers["iterations"][2]["log_iterations"]
    assert outcome.parts[1].table.rows[2][1] == f"10^{math.log10(math.e) * log_t:.1f}"


def test_a_narrow_kernel_learns_more():
    narrow, wide = (
        compute(HeavisideSettings(bandwidth=0.5, points=100)),
        compute(HeavisideSettings(bandwidth=2.0, points=100)),
    )
    name = next(iter(wide["ways"]))
    assert narrow["ways"][name]["squared"] < wide["ways"][name]["squared"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bandwidth": 0.1}, "bandwidth must lie between 0.25 and 4, not 0.1"),
        ({"directions": 0}, "directions must lie between 1 and 60, not 0"),
        ({"step": 1.5}, "step must be above 0 and at most 1, not 1.5"),
        ({"points": 9}, "points must lie between 100 and 2000, not 9"),
    ],
)
def test_impossible_settings_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        reproduce("shallows-heaviside", **given)
