"""Membership attacks against known answers; lower bounds on ε that hold as often as they say,
and find what is there.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from surelearn.attacks.epsilon_audit import (
    _p_value,
    epsilon_from_canaries,
    epsilon_from_retrainings,
)
from surelearn.attacks.membership import likelihood_ratio, loss_threshold, shadow_models, tell_apart
from surelearn.bounds.privacy import gaussian_mechanism, randomized_response

# Attacks.


def test_the_area_is_scikit_learn_s_with_ties():
    rng = np.random.default_rng(0)
    inside, outside = rng.integers(10, size=80) - 2, rng.integers(10, size=50)
    found = loss_threshold(inside, outside)
    truth = roc_auc_score(np.r_[np.ones(80), np.zeros(50)], -np.r_[inside, outside])
    assert found.auc == pytest.approx(truth)
    assert found.auc_low < truth < found.auc_high
    assert (found.members, found.others) == (80, 50)


def test_the_interval_of_the_area_covers():
    rng = np.random.default_rng(1)
    truth = norm.cdf(0.5 / math.sqrt(2))
    found = [loss_threshold(rng.normal(-0.5, 1, 100), rng.normal(0, 1, 100)) for _ in range(400)]
    covered = np.mean([f.auc_low <= truth <= f.auc_high for f in found])
    assert 0.91 < covered < 0.99


def test_true_positives_at_low_false_positive_rates():
    outside = np.arange(1000.0)
    inside = np.r_[np.full(30, -1.0), np.full(70, 5000.0)]
    rates = loss_threshold(inside, outside).true_positives
    assert rates[0.001].value == rates[0.01].value == 0.3
    assert rates[0.001].low < 0.3 < rates[0.001].high
    assert binom.sf(29, 100, rates[0.001].low) == pytest.approx(0.025, abs=1e-6)
    never_more = tell_apart(np.zeros(5), np.zeros(500), how="constant").true_positives
    assert all(rate.value == 0 for rate in never_more.values())


def test_advantage():
    assert loss_threshold([0.0, 0.1], [1.0, 2.0]).advantage == 1.0
    assert loss_threshold([1.0, 2.0], [1.0, 2.0]).advantage == 0.0


def overfitted(n=240, seed=0):
    """Half-noise labels, a tree that learns them by heart: fit(rows, seed) and losses(model) as
    callables.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = ((X[:, 0] > 0) ^ (rng.random(n) < 0.3)).astype(int)

    def fit(rows, seed):
        return DecisionTreeClassifier(min_samples_leaf=2, random_state=seed).fit(X[rows], y[rows])

    def losses(model):
        return -np.log(np.clip(model.predict_proba(X)[np.arange(n), y], 1e-3, 1 - 1e-3))

    return fit, losses, n


def test_the_likelihood_ratio_finds_members_of_an_overfitted_tree():
    fit, losses, n = overfitted()
    shadows, included = shadow_models(fit, losses, n, models=32, random_state=0)
    assert (included.sum(axis=0) == 16).all()
    members = np.random.default_rng(9).random(n) < 0.5
    found = likelihood_ratio(shadows, included, losses(fit(np.flatnonzero(members), 123)), members)
    assert found.membership.auc_low > 0.5
    assert found.ratios.shape == (n,)


def test_the_likelihood_ratio_reaches_the_best_area_where_rows_differ_in_difficulty():
    """Logits are N(difficulty + shift·member, 1): the best area is Φ(shift/√2), and a threshold
    on the loss falls short.
    """
    rng, n, shift = np.random.default_rng(0), 3000, 1.5
    hard = rng.normal(0, 3, n)

    def losses(inside):
        return np.logaddexp(0, -(hard + shift * inside + rng.normal(size=inside.shape)))

    included, members = rng.random((200, n)) < 0.5, rng.random(n) < 0.5
    attacked = losses(members)
    found = likelihood_ratio(losses(included), included, attacked, members).membership
    best = norm.cdf(shift / math.sqrt(2))
    assert found.auc_low - 0.005 < best < found.auc_high + 0.005
    plain = loss_threshold(attacked[members], attacked[~members])
    assert plain.auc_low < norm.cdf(shift / math.sqrt(2 * (1 + 9))) < plain.auc_high
    assert plain.auc_high < found.auc_low


def test_a_model_that_ignores_its_rows_leaks_nothing():
    rng = np.random.default_rng(0)
    losses = rng.exponential(1, size=400)
    shadows, included = shadow_models(
        lambda _, seed: seed, lambda _: losses, 400, models=8, random_state=0
    )
    members = rng.random(400) < 0.5
    found = likelihood_ratio(
        shadows + 1e-3 * rng.normal(size=shadows.shape), included, losses, members
    ).membership
    assert found.auc_low < 0.5 < found.auc_high


@pytest.mark.parametrize("side", [0, 1])
def test_offline_with_shadow_models_of_one_side_only(side):
    rng = np.random.default_rng(0)
    hard, members = rng.exponential(1, 500), rng.random(500) < 0.5
    shadows = hard * (1.0 - 0.5 * side) * rng.lognormal(0, 0.1, (20, 500))
    found = likelihood_ratio(
        shadows, np.full((20, 500), bool(side)), hard * (1 - 0.5 * members), members
    )
    assert found.membership.auc > 0.9


def test_shadow_models_are_the_same_for_the_same_seed():
    fit, losses, n = overfitted(60)
    one, two = (shadow_models(fit, losses, n, models=4, random_state=3) for _ in range(2))
    assert np.array_equal(one[0], two[0])
    assert np.array_equal(one[1], two[1])


# Lower bounds on ε.

TRIALS, ALPHA = 400, 0.1
ALLOWED = binom.ppf(0.999, TRIALS, ALPHA) / TRIALS


def found_in_trials(bound):
    return np.array([bound(np.random.default_rng(seed)).epsilon for seed in range(TRIALS)])


@pytest.mark.parametrize("threshold", [None, 0.5])
def test_retrainings_exceed_the_true_epsilon_at_most_alpha_of_the_time(threshold):
    """Randomized response, whose ε is exact, read from scores with its answers at 0 and 1."""
    keep, n = 0.8, 300

    def bound(rng):
        inside, outside = (rng.random(n) < keep).astype(float), (rng.random(n) > keep).astype(float)
        return epsilon_from_retrainings(inside, outside, alpha=ALPHA, threshold=threshold)

    epsilon, found = randomized_response(keep), found_in_trials(bound)
    assert (found > epsilon).mean() <= ALLOWED
    assert np.median(found) > 0.6 * epsilon  # it finds most of what is there


def test_retrainings_of_a_gaussian_mechanism():
    dp_delta, n = 0.01, 1000
    epsilon = gaussian_mechanism(1.0, 0.7, dp_delta)

    def bound(rng):
        return epsilon_from_retrainings(
            rng.normal(1, 0.7, n), rng.normal(0, 0.7, n), dp_delta=dp_delta, alpha=ALPHA
        )

    found = found_in_trials(bound)
    assert (found > epsilon).mean() <= ALLOWED
    assert np.median(found) > 0.4 * epsilon


def test_choosing_the_threshold_on_the_same_trainings_would_break_it():
    """The mutant: the best of all thresholds on the rows that are then counted, with nothing to
    be found.
    """

    def naive(rng):
        inside, outside = rng.normal(size=40), rng.normal(size=40)
        cuts = np.r_[inside, outside]
        return max(
            (epsilon_from_retrainings(inside, outside, alpha=0.5, threshold=c) for c in cuts),
            key=lambda b: b.epsilon,
        )

    def honest(rng):
        return epsilon_from_retrainings(rng.normal(size=40), rng.normal(size=40), alpha=0.5)

    assert np.mean([naive(np.random.default_rng(s)).epsilon > 0 for s in range(60)]) > 0.6
    assert np.mean([honest(np.random.default_rng(s)).epsilon > 0 for s in range(60)]) <= 0.6


@pytest.mark.parametrize("guesses", [100, (20, 100)])
def test_canaries_exceed_the_true_epsilon_at_most_alpha_of_the_time(guesses):
    """Each canary's inclusion is told by randomized response: the ε of the whole is exact, and
    the theorem tight.
    """
    keep, m = 0.75, 100

    def bound(rng):
        included = rng.random(m) < 0.5
        told = included ^ (rng.random(m) > keep)
        return epsilon_from_canaries(
            told + 0.01 * rng.random(m), included, guesses=guesses, alpha=ALPHA
        )

    epsilon, found = randomized_response(keep), found_in_trials(bound)
    assert (found > epsilon).mean() <= ALLOWED
    if guesses == 100:
        assert (found > epsilon).mean() > ALPHA / 4  # it is not vacuous: near its level
    assert np.median(found) > 0.5 * epsilon


def test_canaries_in_a_gaussian_sum():
    dp_delta, m = 1e-3, 500
    epsilon = gaussian_mechanism(1.0, 0.8, dp_delta)

    def bound(rng):
        included = rng.random(m) < 0.5
        return epsilon_from_canaries(
            included + rng.normal(0, 0.8, m), included, dp_delta=dp_delta, alpha=ALPHA
        )

    found = found_in_trials(bound)
    assert (found > epsilon).mean() <= ALLOWED
    assert np.median(found) > 0.2


def test_p_values_by_hand():
    assert _p_value(10, 10, 8, 0.0, 0.0) == pytest.approx(56 / 1024)
    by_hand = 56 / 1024 + 2 * 10 * 1e-3 * max(
        sum(math.comb(10, 8 - j) for j in range(1, i + 1)) / 1024 / i for i in range(1, 9)
    )
    assert _p_value(10, 10, 8, 0.0, 1e-3) == pytest.approx(by_hand)


def test_no_success_no_bound():
    assert epsilon_from_canaries(np.zeros(50), np.arange(50) % 2 == 0).epsilon == 0.0
    assert epsilon_from_retrainings(np.zeros(50), np.ones(50), threshold=0.5).epsilon == 0.0
    assert "ε ≥ 0" in str(epsilon_from_canaries(np.zeros(50), np.arange(50) % 2 == 0))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: loss_threshold([], [1.0]), "losses_in"),
        (lambda: loss_threshold([1.0], [math.nan]), "losses_out must not hold NaN"),
        (lambda: loss_threshold([1.0], [1.0], alpha=0.0), "alpha"),
        (lambda: loss_threshold([1.0], [1.0], false_positive_rates=(1.5,)), "false_positive_rates"),
        (lambda: likelihood_ratio([[1.0]], [[True, False]], [1.0], [True]), "shadow_losses"),
        (lambda: shadow_models(lambda *_: 0, lambda _: [0.0], 1), "models and rows"),
        (lambda: epsilon_from_retrainings([1.0], [0.0]), "at least 4"),
        (lambda: epsilon_from_retrainings([1.0] * 9, [0.0] * 9, dp_delta=1.0), "dp_delta"),
        (lambda: epsilon_from_canaries([1.0, 2.0], [True]), "included"),
        (lambda: epsilon_from_canaries([1.0, 2.0], [True, False], guesses=3), "guesses"),
        (lambda: epsilon_from_canaries([1.0, 2.0], [True, False], alpha=2), "alpha"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()
