"""The accountant: what the sampler really drew, two accountants, noise for a wanted ε, and
refusals.
"""

import numpy as np
import pytest
from scipy.stats import chisquare

from surelearn.bounds.privacy import dp_sgd_epsilon
from surelearn.optim import accountant
from surelearn.optim.accountant import (
    PoissonSampler,
    account,
    account_sampler,
    generator_from,
    noise_for,
)


@pytest.mark.parametrize("rate", [0.02, 0.4])
def test_each_row_is_drawn_independently_with_the_same_probability(rate):
    n, steps = 50, 4000
    sampler = PoissonSampler(n, rate, random_state=0)
    drawn = np.zeros((steps, n), dtype=bool)
    for number, rows in enumerate(sampler.batches(steps)):
        assert len(set(rows.tolist())) == len(rows)
        drawn[number, rows] = True
    assert chisquare(drawn.sum(axis=0)).pvalue > 1e-4
    sizes = drawn.sum(axis=1)
    assert abs(sizes.mean() - n * rate) < 4 * np.sqrt(n * rate * (1 - rate) / steps)
    # fixed sizes would have none
    assert sizes.var() == pytest.approx(n * rate * (1 - rate), rel=0.15)
    together = (drawn[:, 0] & drawn[:, 1]).mean()
    assert abs(together - rate**2) < 4 * np.sqrt(rate**2 / steps)
    assert sampler.drawn == steps


def test_the_same_seed_draws_the_same_rows():
    one, two = (list(PoissonSampler(100, 0.1, random_state=3).batches(5)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert len(PoissonSampler(7, 1.0).draw()) == 7


def test_what_was_drawn_is_accounted_not_what_was_planned():
    sampler = PoissonSampler(1000, 0.01, random_state=0)
    for _ in sampler.batches(120):
        pass
    spent = account_sampler(sampler, 1.0, 1e-5)
    assert (spent.steps, spent.sample_rate) == (120, 0.01)
    assert spent.epsilon == pytest.approx(dp_sgd_epsilon(1.0, 0.01, 120, 1e-5), rel=1e-2)
    sampler.draw()
    assert account_sampler(sampler, 1.0, 1e-5).steps == 121
    assert "add or remove one row" in str(spent)


def test_samplers_that_are_not_poisson_get_no_epsilon():
    class Shuffled:
        n, sample_rate, drawn = 1000, 0.01, 100

    with pytest.raises(TypeError, match="not drawn by PoissonSampler"):
        account_sampler(Shuffled(), 1.0, 1e-5)


def test_two_accountants_agree_and_the_larger_counts():
    pytest.importorskip("dp_accounting")
    spent = account(1.0, 0.02, 500, 1e-5)
    assert spent.accounted == pytest.approx(dp_sgd_epsilon(1.0, 0.02, 500, 1e-5), rel=1e-3)
    assert spent.epsilon == max(spent.accounted, dp_sgd_epsilon(1.0, 0.02, 500, 1e-5))
    assert spent.epsilon < spent.renyi_epsilon


def test_without_dp_accounting_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(accountant.importlib.util, "find_spec", lambda _: None)
    spent = account(1.0, 0.02, 500, 1e-5)
    assert spent.accounted == 0.0
    assert spent.epsilon == dp_sgd_epsilon(1.0, 0.02, 500, 1e-5)
    assert "pip install 'surelearn[privacy]'" in spent.by


@pytest.mark.parametrize(
    ("epsilon", "rate", "steps"), [(0.5, 0.01, 200), (3.0, 0.2, 50), (8.0, 1.0, 10), (30.0, 0.5, 3)]
)
def test_the_noise_for_an_epsilon_is_enough_and_hardly_more(epsilon, rate, steps):
    sigma = noise_for(epsilon, 1e-5, rate, steps)
    assert account(sigma, rate, steps, 1e-5).epsilon <= epsilon
    assert dp_sgd_epsilon(0.99 * sigma, rate, steps, 1e-5) > epsilon


def test_random_states():
    for given in (0, np.int64(0), np.random.RandomState(0), np.random.default_rng(0), None):
        assert isinstance(generator_from(given), np.random.Generator)
    same = [generator_from(np.random.RandomState(5)).random() for _ in range(2)]
    assert same[0] == same[1]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: PoissonSampler(0, 0.1), "n must"),
        (lambda: PoissonSampler(10, 0.0), "sample_rate"),
        (lambda: PoissonSampler(10, 1.5), "sample_rate"),
        (lambda: generator_from("seed"), "random_state"),
        (lambda: noise_for(0.0, 1e-5, 0.1, 10), "epsilon"),
        (lambda: noise_for(1e-7, 1e-12, 1.0, 10**6), "too small"),
        (lambda: account(1.0, 0.1, 10, 0.0), "dp_delta"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()
