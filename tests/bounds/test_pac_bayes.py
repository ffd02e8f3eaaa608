"""PAC-Bayes bounds against high-precision inversion, and the Gibbs classifier against weights
actually drawn.
"""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import optimize

from surelearn import bounds

CASES = [
    (0.05, 5.0, 1000, 0.05),
    (0.0, 0.0, 10, 0.3),
    (0.5, 40.0, 200, 1e-12),
    (0.9, 0.1, 50, 0.5),
    (0.2, 3.0, 1, 0.05),
]
CENTER = [0.5, 0.3, 0.4, -0.1, 0.6] * 200


def budget(kl, n, delta):
    """ln of 2√n·e^KL/δ, spread over n rows."""
    return mp.log(2 * mp.sqrt(n) * mp.exp(kl) / delta) / n


def largest(fits, low):
    """The largest p in [low, 1] that fits, to 30 digits."""
    low, high = mp.mpf(low), mp.mpf(1)
    for _ in range(110):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return float(low)


def bernoulli_kl(q, p):
    return mp.fsum(a * mp.log(a / b) for a, b in ((q, p), (1 - q, 1 - p)) if a > 0)


@pytest.mark.parametrize(("risk", "kl", "n", "delta"), CASES)
def test_pac_bayes_kl_spends_the_whole_budget(risk, kl, n, delta):
    with mp.workdps(40):
        root = largest(
            lambda p: bernoulli_kl(mp.mpf(risk), p) <= budget(kl, n, delta), max(risk, 1e-35)
        )
    assert bounds.pac_bayes_kl(risk, kl, n, delta) == pytest.approx(root, rel=1e-12)


@pytest.mark.parametrize(("risk", "kl", "n", "delta"), CASES)
def test_relaxations_of_pac_bayes_kl(risk, kl, n, delta):
    b = float(budget(kl, n, delta))
    # (q − p)²/(2q) = b and 2(q − p)² = b, solved for q.
    quadratic = optimize.brentq(
        lambda q: (q - risk) ** 2 - 2 * q * b, risk + 1e-12, 1e3, xtol=1e-14
    )
    pinsker = optimize.brentq(lambda q: 2 * (q - risk) ** 2 - b, risk, 1e3, xtol=1e-14)
    assert bounds.pac_bayes_quadratic(risk, kl, n, delta) == pytest.approx(quadratic, rel=1e-10)
    assert bounds.mcallester(risk, kl, n, delta) == pytest.approx(pinsker, rel=1e-10)
    assert bounds.pac_bayes_kl(risk, kl, n, delta) <= min(quadratic, pinsker)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 100, 1000])
def test_the_constant_two_root_n_covers_maurers_sum(n):
    # E e^{n·kl} of a binomial frequency is at most Σ C(n, k)(k/n)^k(1 − k/n)^{n−k}, to be paid by
    # 2√n, also for n < 8.
    with mp.workdps(30):
        moment = mp.fsum(
            mp.binomial(n, k) * (mp.mpf(k) / n) ** k * (1 - mp.mpf(k) / n) ** (n - k)
            for k in range(n + 1)
        )
        paid = n * bernoulli_kl(mp.mpf(0), mp.mpf(bounds.pac_bayes_kl(0.0, 0.0, n, 0.05))) + mp.log(
            "0.05"
        )
    assert mp.sqrt(n) <= moment <= mp.exp(paid) * (1 + mp.mpf(10) ** -12)


@pytest.mark.parametrize("c", [0.01, 0.5, 3.0])
@pytest.mark.parametrize(("risk", "kl", "n", "delta"), CASES)
def test_catoni_inverts_its_free_energy(risk, kl, n, delta, c):
    # −ln(1 − p(1 − e^{−c})) is what a Bernoulli(p) loss pays at inverse temperature c.
    value = bounds.catoni(risk, kl, n, delta, c)
    with mp.workdps(40):
        energy = -mp.log(1 - mp.mpf(value) * (1 - mp.exp(-mp.mpf(c))))
        assert float(n * (energy - c * mp.mpf(risk))) == pytest.approx(
            kl - math.log(delta), rel=1e-6
        )


def test_catoni_at_its_best_c_is_the_kl_bound_without_its_root_n():
    # kl(r ‖ p) = sup_c −cr − ln(1 − p(1 − e^{−c})): the best c gives kl's inverse at KL + ln(1/δ).
    risk, kl, n, delta = 0.05, 5.0, 1000, 0.05
    best = optimize.minimize_scalar(
        lambda c: bounds.catoni(risk, kl, n, delta, c), bounds=(0.01, 5), method="bounded"
    ).fun
    with mp.workdps(40):
        root = largest(lambda p: n * bernoulli_kl(mp.mpf(risk), p) <= kl - mp.log(delta), risk)
    assert best == pytest.approx(root, rel=1e-8)


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_gibbs_linear_classifier_against_drawn_weights(scale):
    rng = np.random.default_rng(0)
    margins = rng.uniform(-0.3, 1.0, size=20)
    # Rows of any length whose normalized margin to e₁ is as given; the label is +1.
    rows = np.column_stack([margins, np.sqrt(1 - margins**2)]) * rng.uniform(0.1, 5, size=(20, 1))
    weights = rng.normal((scale, 0.0), size=(200_000, 2))
    errors = np.mean(weights @ rows.T <= 0)
    divergence = float(
        mp.quad(lambda x: mp.npdf(x, scale, 1) * (x * scale - scale**2 / 2), [-15, 0, scale, 15])
    )
    assert bounds.gibbs_linear_classifier(margins, 0.05, scale) == pytest.approx(
        bounds.pac_bayes_kl(errors, divergence, 20, 0.05), abs=2e-3
    )


@pytest.mark.parametrize(
    "margins", [CENTER, [0.9, 0.8, 0.7, 0.9, 0.6] * 200, [0.01, -0.02] * 50, [1.0] * 10**4]
)
def test_gibbs_linear_classifier_finds_the_best_scale(margins):
    grid = np.geomspace(0.02, 0.9 * math.sqrt(2 * len(margins)), 2000)
    coarse = grid[
        np.argmin([bounds.gibbs_linear_classifier(margins, 0.05, mu) for mu in grid[::50]]) * 50
    ]
    best = optimize.minimize_scalar(
        lambda mu: bounds.gibbs_linear_classifier(margins, 0.05, mu),
        bounds=(coarse / 2, coarse * 2),
        method="bounded",
    ).fun
    chosen = bounds.gibbs_linear_classifier(margins, 0.05)
    assert best * (1 - 1e-6) <= chosen <= best * 1.002


def test_deterministic_linear_classifier_errs_where_half_the_posterior_does():
    # A row of margin g ≤ 0 costs the vote 1 and the Gibbs classifier Φ(−μg) ≥ ½; with g = 0 exactly
    # half.
    margins = [0.0] * 1000
    gibbs = bounds.gibbs_linear_classifier(margins, 0.05, 1.0)
    assert gibbs == pytest.approx(bounds.pac_bayes_kl(0.5, 0.5, 1000, 0.05), rel=1e-12)
    assert bounds.deterministic_linear_classifier(margins, 0.05, 1.0) == pytest.approx(
        2 * gibbs, rel=1e-15
    )
    assert bounds.deterministic_linear_classifier(margins, 0.05, 1.0) >= 1.0
    assert bounds.deterministic_linear_classifier(
        CENTER, 0.05
    ) == 2 * bounds.gibbs_linear_classifier(CENTER, 0.05)


@pytest.mark.parametrize(
    ("argument", "value"), [("margins", [1.05]), ("margins", [-1.05]), ("scale", 0.0)]
)
def test_gibbs_linear_classifier_refuses(argument, value):
    with pytest.raises(ValueError, match=argument):
        bounds.gibbs_linear_classifier(
            **{"margins": [0.5], "delta": 0.05, "scale": 1.0, argument: value}
        )
