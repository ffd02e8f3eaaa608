"""Privacy: mechanisms against enumeration and integration, accounting against mpmath, peers and
sampling.
"""

from __future__ import annotations

import json
import math

import mpmath
import numpy as np
import pytest
from scipy import integrate
from scipy.stats import binom, norm

from surelearn.bounds import privacy
from surelearn.bounds.privacy import (
    advanced_composition,
    dp_sgd_epsilon,
    dp_sgd_renyi,
    gaussian_delta,
    gaussian_mechanism,
    gaussian_mechanism_classical,
    gaussian_noise,
    group_privacy,
    laplace_mechanism,
    parallel_composition,
    post_processing,
    randomized_response,
    sequential_composition,
)
from surelearn.bounds.privacy_loss import LossDistribution, subsampled_gaussian_losses
from surelearn.bounds.renyi import (
    ORDERS,
    epsilon_from_renyi,
    gaussian_renyi,
    laplace_renyi,
    randomized_response_renyi,
    subsampled_gaussian_renyi,
)
from surelearn.claim import Claim

SETTINGS = [
    (1.0, 0.01, 1000),
    (0.6, 0.001, 5000),
    (2.0, 0.05, 500),
    (5.0, 1.0, 100),
    (0.7, 0.3, 5),
    (20.0, 0.2, 3000),
]

# Mechanisms.


@pytest.mark.parametrize(
    ("keep", "categories"), [(0.75, 2), (0.5, 2), (0.2, 2), (0.6, 5), (0.1, 20)]
)
def test_randomized_response_is_the_largest_ratio_of_all_answers(keep, categories):
    table = np.full((categories, categories), (1 - keep) / (categories - 1))
    np.fill_diagonal(table, keep)
    largest = max(
        np.log(table[i] / table[j]).max() for i in range(categories) for j in range(categories)
    )
    assert randomized_response(keep, categories) == pytest.approx(largest, abs=1e-12)


def test_randomized_response_at_its_ends():
    assert randomized_response(1.0) == randomized_response(0.0) == math.inf
    assert randomized_response(1.0, 1) == 0.0


def test_laplace_is_the_largest_ratio_of_densities():
    x = np.linspace(-20, 20, 4001)
    ratio = (np.abs(x - 1.5) - np.abs(x)) / 0.8
    assert laplace_mechanism(1.5, 0.8) == pytest.approx(ratio.max())


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("noise", [0.5, 1.0, 4.0])
def test_gaussian_delta_against_integration(epsilon, noise):
    def excess(x):
        return max(0.0, norm.pdf(x, 1, noise) - math.exp(epsilon) * norm.pdf(x, 0, noise))

    start = noise**2 * epsilon + 0.5  # where the densities' ratio passes e^ε
    found, _ = integrate.quad(excess, start, start + 20 * noise + 5, epsabs=1e-13, limit=200)
    assert gaussian_delta(epsilon, 1.0, noise) == pytest.approx(found, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("dp_delta", [1e-12, 1e-5, 0.1])
def test_the_analytic_gaussian_is_exact_and_below_the_classical_and_the_renyi_bound(dp_delta):
    for noise in (0.3, 1.0, 10.0, 40.0):
        epsilon = gaussian_mechanism(1.0, noise, dp_delta)
        assert epsilon <= gaussian_mechanism_classical(1.0, noise, dp_delta)
        assert (
            epsilon
            <= epsilon_from_renyi(ORDERS, gaussian_renyi(ORDERS, 1.0, noise), dp_delta) + 1e-12
        )
        if epsilon > 0:
            assert gaussian_delta(epsilon, 1.0, noise) == pytest.approx(dp_delta, rel=1e-6)
            assert gaussian_noise(2.0, epsilon, dp_delta) == pytest.approx(2 * noise, rel=1e-9)


def test_much_noise_spends_nothing():
    assert gaussian_mechanism(1.0, 1000.0, 0.01) == 0.0


# Rényi.


def renyi_by_integration(p, q, alpha, points):
    total = sum(
        integrate.quad(lambda x: p(x) ** alpha * q(x) ** (1 - alpha), a, b)[0] for a, b in points
    )
    return math.log(total) / (alpha - 1)


@pytest.mark.parametrize("alpha", [1.5, 3.0])
def test_curves_against_integration(alpha):
    pieces = [(-30, 0), (0, 1), (1, 30)]
    laplace = renyi_by_integration(
        lambda x: math.exp(-abs(x - 1) / 1.3) / 2.6,
        lambda x: math.exp(-abs(x) / 1.3) / 2.6,
        alpha,
        pieces,
    )
    assert laplace_renyi(alpha, 1.0, 1.3) == pytest.approx(laplace, rel=1e-6)
    gauss = renyi_by_integration(
        lambda x: norm.pdf(x, 1, 2), lambda x: norm.pdf(x, 0, 2), alpha, pieces
    )
    assert gaussian_renyi(alpha, 1.0, 2.0) == pytest.approx(gauss, rel=1e-6)
    p = np.array([0.7, 0.3])
    assert randomized_response_renyi(alpha, 0.7) == pytest.approx(
        np.log((p**alpha * p[::-1] ** (1 - alpha)).sum()) / (alpha - 1)
    )


@pytest.mark.parametrize(("sigma", "q"), [(1.0, 0.01), (3.0, 0.3), (0.5, 0.9)])
@pytest.mark.parametrize("alpha", [1.1, 2.5, 7.3, 12.0])
def test_the_subsampled_gaussian_against_mpmath(alpha, sigma, q):
    with mpmath.workdps(25):
        s = mpmath.mpf(sigma)
        inside = lambda x: (  # noqa: E731
            mpmath.npdf(x, 0, s)
            * (1 - q + q * mpmath.exp((2 * x - 1) / (2 * s**2))) ** mpmath.mpf(alpha)
        )
        pieces = list(mpmath.linspace(-12 * s, alpha + 12 * s, 30))
        true = float(mpmath.log(mpmath.quad(inside, pieces)) / (mpmath.mpf(alpha) - 1))
    found = subsampled_gaussian_renyi(alpha, sigma, q)
    assert true * (1 - 1e-12) <= found <= true * (1 + 1e-6)


def test_sampling_all_or_nothing():
    np.testing.assert_allclose(
        subsampled_gaussian_renyi(ORDERS, 2.0, 1.0), gaussian_renyi(ORDERS, 1.0, 2.0)
    )
    assert (subsampled_gaussian_renyi(ORDERS, 2.0, 0.0) == 0).all()
    assert np.isinf(subsampled_gaussian_renyi(1.5, 0.05, 0.5))


@pytest.mark.parametrize(("sigma", "q"), [(1.0, 0.01), (0.7, 0.3), (5.0, 0.05)])
def test_renyi_against_dp_accounting(sigma, q):
    rdp = pytest.importorskip("dp_accounting.rdp")
    dp = pytest.importorskip("dp_accounting")
    whole = np.arange(2, 65)
    theirs = rdp.RdpAccountant(whole.tolist())
    theirs.compose(dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma)), 300)
    ours = epsilon_from_renyi(whole, 300 * subsampled_gaussian_renyi(whole, sigma, q), 1e-6)
    assert ours == pytest.approx(theirs.get_epsilon(1e-6), rel=1e-9)


def test_the_tighter_conversion_is_tighter_and_still_sound():
    for noise in (1.0, 3.0, 10.0):
        curve = gaussian_renyi(ORDERS, 1.0, noise)
        exact = gaussian_mechanism(1.0, noise, 1e-6)
        tight, mironov = (epsilon_from_renyi(ORDERS, curve, 1e-6, tight=t) for t in (True, False))
        assert exact < tight < mironov


def test_conversions_hold_for_composed_randomized_response():
    curve = 30 * randomized_response_renyi(ORDERS, 0.6)
    for dp_delta in (1e-3, 1e-6):
        assert (
            homogeneous_delta(math.log(1.5), 30, epsilon_from_renyi(ORDERS, curve, dp_delta))
            <= dp_delta
        )


# Composition.


def homogeneous_delta(epsilon, k, at):
    """The exact dp_delta at ε = ``at`` of k randomized responses, each ε-private: by
    enumerating the count of truths.
    """
    count = np.arange(k + 1)
    keep = 1 / (1 + math.exp(-epsilon))
    p, q = binom.pmf(count, k, keep), binom.pmf(count, k, 1 - keep)
    return np.maximum(p - math.exp(at) * q, 0).sum()


@pytest.mark.parametrize(("epsilon", "k"), [(0.1, 100), (0.5, 40), (2.0, 5)])
def test_advanced_composition_holds_and_gains(epsilon, k):
    total, dp_delta = advanced_composition(epsilon, 0.0, k, slack=1e-4)
    assert dp_delta == pytest.approx(1e-4)
    assert total <= k * epsilon
    assert homogeneous_delta(epsilon, k, total) <= 1e-4
    assert homogeneous_delta(epsilon, k, total / 2) > 1e-4


def test_advanced_composition_adds_deltas():
    assert advanced_composition(0.1, 1e-3, 10, slack=1e-2)[1] == pytest.approx(
        1 - (1 - 1e-3) ** 10 * (1 - 1e-2)
    )


def test_groups_are_covered():
    """A group of k doubles the answer's sensitivity k times: exact for the Gaussian mechanism."""
    for k in (2, 5):
        epsilon, dp_delta = 1.0, gaussian_delta(1.0, 1.0, 2.0)
        group_epsilon, group_delta = group_privacy(epsilon, dp_delta, k)
        assert group_epsilon == k
        assert gaussian_delta(group_epsilon, k, 2.0) <= group_delta
        assert group_delta == pytest.approx(min(1.0, k * math.exp(k - 1) * dp_delta))


def test_the_calculus():
    assert sequential_composition([0.1] * 10, 1e-6) == (pytest.approx(1.0), pytest.approx(1e-5))
    assert parallel_composition([0.1, 0.7], [1e-5, 1e-6]) == (0.7, 1e-5)
    assert post_processing(0.3, 0.0) == (0.3, 0.0)


# DP-SGD.


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_loss_distributions_against_dp_accounting(setting):
    dp, pld = pytest.importorskip("dp_accounting"), pytest.importorskip("dp_accounting.pld")
    sigma, q, steps = setting
    event = dp.GaussianDpEvent(sigma)
    accountant = pld.PLDAccountant()
    accountant.compose(dp.PoissonSampledDpEvent(q, event) if q < 1 else event, steps)
    assert dp_sgd_epsilon(sigma, q, steps, 1e-5) == pytest.approx(
        accountant.get_epsilon(1e-5), rel=1e-3
    )


def test_loss_distributions_against_opacus():
    prv = pytest.importorskip("opacus.accountants")
    accountant = prv.PRVAccountant()
    accountant.history = [(1.0, 0.01, 1000)]
    assert dp_sgd_epsilon(1.0, 0.01, 1000, 1e-5) == pytest.approx(
        accountant.get_epsilon(1e-5), rel=0.02
    )


def exact_delta(sigma, q, epsilon):
    """dp_delta of one step, a row removed and a row added, by integration."""

    def mixed(x):
        return (1 - q) * norm.pdf(x, 0, sigma) + q * norm.pdf(x, 1, sigma)

    def plain(x):
        return norm.pdf(x, 0, sigma)

    points = np.linspace(-12 * sigma, 1 + 12 * sigma, 200_001)
    removed = np.trapezoid(np.maximum(mixed(points) - math.exp(epsilon) * plain(points), 0), points)
    added = np.trapezoid(np.maximum(plain(points) - math.exp(epsilon) * mixed(points), 0), points)
    return max(removed, added)


@pytest.mark.parametrize(("sigma", "q"), [(1.0, 0.1), (0.5, 0.5), (2.0, 0.9)])
@pytest.mark.parametrize("dp_delta", [1e-3, 0.03])
def test_one_step_is_exact_from_above(sigma, q, dp_delta):
    epsilon = dp_sgd_epsilon(sigma, q, 1, dp_delta)
    assert exact_delta(sigma, q, epsilon) <= dp_delta
    if epsilon > 0.05:
        assert exact_delta(sigma, q, 0.98 * epsilon) > dp_delta


def test_many_steps_against_sampled_losses():
    sigma, q, steps, dp_delta, runs = 1.0, 0.1, 50, 0.02, 40_000
    rng = np.random.default_rng(0)
    x = rng.normal(0, sigma, (runs, steps)) + (rng.random((runs, steps)) < q)
    losses = np.log1p(q * np.expm1((2 * x - 1) / (2 * sigma**2))).sum(axis=1)
    epsilon = dp_sgd_epsilon(sigma, q, steps, dp_delta)
    gains = np.maximum(-np.expm1(epsilon - losses), 0)
    assert abs(gains.mean() - dp_delta) < 4 * gains.std() / math.sqrt(runs)


@pytest.mark.parametrize("steps", [1, 7, 400])
def test_without_sampling_it_is_the_analytic_gaussian(steps):
    pair = subsampled_gaussian_losses(5.0, 1.0, steps)
    exact = gaussian_mechanism(math.sqrt(steps), 5.0, 1e-6)
    for losses in pair:
        assert exact <= losses.compose(steps, 1e-10).epsilon(1e-6) <= exact * 1.002 + 1e-4
    assert dp_sgd_epsilon(5.0, 1.0, steps, 1e-6) == exact


def test_a_distribution_is_inverted_exactly():
    losses = LossDistribution(-1, 1.0, np.array([0.2, 0.3, 0.4]), 0.1)
    for dp_delta in (0.15, 0.3, 0.34):
        assert losses.delta(losses.epsilon(dp_delta))[0] == pytest.approx(dp_delta)
    assert losses.epsilon(0.05) == math.inf
    assert losses.epsilon(0.9) == 0.0


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_renyi_is_looser_and_both_are_monotone(setting):
    sigma, q, steps = setting
    epsilon = dp_sgd_epsilon(sigma, q, steps, 1e-5)
    assert 0 < epsilon <= dp_sgd_renyi(sigma, q, steps, 1e-5)
    assert dp_sgd_epsilon(1.2 * sigma, q, steps, 1e-5) < epsilon
    assert dp_sgd_epsilon(sigma, q, 2 * steps, 1e-5) > epsilon
    assert dp_sgd_epsilon(sigma, q, steps, 1e-7) > epsilon
    assert dp_sgd_epsilon(sigma, q / 2, steps, 1e-5) < epsilon


def test_a_dp_delta_below_rounding_falls_back_on_renyi():
    assert dp_sgd_epsilon(1.0, 0.01, 1000, 1e-14) == dp_sgd_renyi(1.0, 0.01, 1000, 1e-14)


@pytest.mark.parametrize(
    "setting", [(0.05, 0.5, 10), (1e-5, 0.5, 3), (0.02, 0.001, 10**5), (2.0, 0.5, 10**7)], ids=str
)
def test_an_absurd_epsilon_is_still_a_number(setting):
    assert 100 < dp_sgd_epsilon(*setting, 1e-5) == dp_sgd_renyi(*setting, 1e-5) < math.inf


@pytest.mark.parametrize(
    "setting",
    [(1000.0, 0.5, 10**6), (1.0, 1e-9, 10**6), (1e6, 0.1, 1), (5.0, 0.999999, 1000)],
    ids=str,
)
def test_extreme_settings_give_a_number_below_renyi(setting):
    assert 0 <= dp_sgd_epsilon(*setting, 1e-6) <= dp_sgd_renyi(*setting, 1e-6)


def test_nothing_was_done():
    assert (
        dp_sgd_epsilon(1.0, 0.0, 100, 1e-5)
        == dp_sgd_epsilon(1.0, 0.5, 0, 1e-5)
        == dp_sgd_renyi(1.0, 0.5, 0, 1e-5)
        == 0.0
    )


def test_the_larger_accountant_counts():
    assert dp_sgd_epsilon(1.0, 0.01, 1000, 1e-5, accounted=3.0) == 3.0


# Claims and refusals.


def test_the_claim_survives_json_and_states_its_adjacency():
    claim = dp_sgd_epsilon.certify(1.0, 0.01, 1000, 1e-5)
    assert Claim.from_dict(json.loads(json.dumps(claim.to_dict()))) == claim
    assert claim.confidence == "always"
    assert privacy.ADJACENT in claim.assumptions
    assert privacy.POISSON in claim.assumptions


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: randomized_response(1.2), "keep"),
        (lambda: laplace_mechanism(0.0, 1.0), "sensitivity"),
        (lambda: gaussian_mechanism(1.0, -1.0, 1e-5), "noise"),
        (lambda: gaussian_mechanism(1.0, 1.0, 0.0), "dp_delta"),
        (lambda: gaussian_noise(1.0, 0.0, 1e-5), "epsilon"),
        (lambda: dp_sgd_epsilon(0.0, 0.1, 10, 1e-5), "noise_multiplier"),
        (lambda: dp_sgd_epsilon(1.0, 1.1, 10, 1e-5), "sample_rate"),
        (lambda: dp_sgd_renyi(1.0, 0.1, 2.5, 1e-5), "steps"),
        (lambda: dp_sgd_renyi(1.0, 0.1, 10, 1.0), "dp_delta"),
        (lambda: gaussian_renyi(1.0, 1.0, 1.0), "orders"),
        (lambda: randomized_response_renyi(2.0, 1.0), "keep"),
        (lambda: group_privacy(1.0, 0.0, 0), "k"),
        (lambda: advanced_composition(0.1, 0.0, 10, slack=0.0), "slack"),
        (lambda: sequential_composition([]), "epsilon"),
        (lambda: sequential_composition([-1.0]), "epsilon"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        call()
