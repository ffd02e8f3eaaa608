"""Cramér's V with Bergsma's correction: its limits, its invariances, and no association by chance."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats.contingency import association

from surelearn.data.association import MOST_LEVELS, as_numbers, cramers_v, levels

RNG = np.random.default_rng(0)


def test_its_limits_and_invariances():
    a = RNG.integers(0, 4, 500)
    assert cramers_v(a, a) == pytest.approx(1.0)
    assert cramers_v(a, 3 - a) == pytest.approx(1.0)
    assert cramers_v(a, np.zeros(500)) == 0.0
    b = np.where(RNG.random(500) < 0.5, a, RNG.integers(0, 4, 500))
    assert cramers_v(a, b) == pytest.approx(cramers_v(b, a))
    assert cramers_v(a[:1], b[:1]) == cramers_v([], []) == 0.0


def test_many_rows_need_no_correction():
    a = RNG.integers(0, 3, 200_000)
    b = np.where(RNG.random(a.size) < 0.3, a, RNG.integers(0, 3, a.size))
    plain = association(np.histogram2d(a, b, bins=3)[0].astype(int), method="cramer")
    assert cramers_v(a, b) == pytest.approx(plain, abs=1e-3)


def test_chance_is_taken_off():
    """Twenty values and no association: the plain V of 100 rows is about 0.4 all the same."""
    plain, corrected = [], []
    for _ in range(200):
        a, b = RNG.integers(0, 20, 100), RNG.integers(0, 2, 100)
        counts = np.histogram2d(a, b, bins=(20, 2))[0].astype(int)
        plain.append(association(counts[counts.sum(axis=1) > 0], method="cramer"))
        corrected.append(cramers_v(a, b))
    assert np.mean(plain) > 0.35
    assert np.mean(corrected) < 0.1


def test_levels_know_what_is_missing_and_what_is_rare():
    many = pd.Series([f"v{i}" for i in range(50)] * 2 + ["v0", None])
    codes = levels(many, cut=False)
    assert codes.max() == MOST_LEVELS
    assert codes[0] == 1  # the most frequent
    assert codes[-1] == 0  # missing
    dates = pd.Series(pd.to_datetime(["1970-01-02", None, "1971-01-01"]))
    assert as_numbers(dates)[[0, 2]].tolist() == [1.0, 365.0]
    assert levels(dates, 2, cut=True).tolist() == [1, 0, 2]
    assert levels(pd.Series([np.nan, np.inf]), cut=True).tolist() == [0, 0]
