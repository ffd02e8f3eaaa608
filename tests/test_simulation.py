"""Runs that end early pass and fail what full runs do, and are shorter."""

import numpy as np
import pytest
from tests.simulation import at_most, clear, enough, limit, mutant


def outcomes(rate, most, true, runs=4000):
    """The share of runs that pass, early or in full; the share that pass in full; the mean length
    of the former. A promise that may be broken at ``rate`` is broken at the rate ``true``.
    """
    bad = mutant(rate, most)
    counts = (np.random.default_rng(0).random((runs, most)) < true).cumsum(axis=1)
    # the largest count that ends a run after each number of trials, or −1
    largest = np.array(
        [
            max((k for k in range(n + 1) if clear(k, n, rate, bad)), default=-1)
            for n in range(1, most + 1)
        ]
    )
    ended = counts <= largest
    full = counts[:, -1] <= limit(rate, most)
    early = ended.any(axis=1)
    return (
        (early | full).mean(),
        full.mean(),
        np.where(early, ended.argmax(axis=1) + 1, most).mean(),
    )


@pytest.mark.parametrize(("rate", "most"), [(0.2, 160), (0.1, 200)])
def test_they_pass_what_full_runs_pass(rate, most):
    bad = mutant(rate, most)
    for true in (rate, (rate + bad) / 2, bad):
        passed, full, _ = outcomes(rate, most, true)
        assert full <= passed <= full + 0.003
    assert outcomes(rate, most, 0.7 * rate)[2] < 0.4 * most


def test_the_mutant_is_the_rate_that_a_full_run_passes_once_in_a_thousand():
    drawn = np.random.default_rng(0).binomial(400, mutant(0.2, 400), 200_000)
    assert np.mean(drawn <= limit(0.2, 400)) == pytest.approx(1e-3, rel=0.25)


def test_every_count_must_be_clear():
    assert enough([(5, 0.2)], 100, 400)
    assert not enough([(5, 0.2), (40, 0.2)], 100, 400)
    assert enough([(40, 0.2)], 400, 400)
    assert not at_most(40, 0.2, 100)
