"""Which new rows lie far outside the rows that a model was fitted on."""

import numpy as np
import pandas as pd
import pytest

from surelearn.data.reach import far_outside, reach


def test_no_number_of_a_single_row_is_kept():
    """The four smallest and the four largest may be anything."""
    rng = np.random.default_rng(0)
    ages = rng.normal(40, 12, 300)
    strange = ages.copy()
    order = np.argsort(ages)
    strange[order[:4]], strange[order[-4:]] = -1e9, 1e9
    assert reach(strange) == reach(ages)


def test_rows_like_the_fitted_ones_are_inside():
    """Also of a skewed column: among new rows of the same kind few are far outside."""
    rng = np.random.default_rng(1)
    for draw in (rng.normal, rng.lognormal, rng.standard_exponential, rng.uniform):
        low, high = reach(draw(size=2000))
        new = draw(size=10_000)
        assert ((new < low) | (new > high)).mean() < 0.005
        assert low < np.quantile(new, 0.01) < np.quantile(new, 0.99) < high


@pytest.mark.parametrize("values", [[], [np.nan] * 50, np.arange(9.0), [-1e308] * 5 + [1e308] * 5])
def test_too_few_or_too_far_apart_to_say(values):
    assert reach(values) is None


def test_a_constant_column_has_no_width():
    assert reach(np.full(20, 3.0)) == (3.0, 3.0)


def test_every_column_is_named():
    X = pd.DataFrame(
        {
            "a": [0.0, 9.0, np.nan],
            "b": [5.0, 5.0, -5.0],
            "c": ["x", "y", None],
            "text": ["", "", ""],
        }
    )
    names, counts = far_outside(X, {"a": (-1.0, 1.0), "b": (0.0, 6.0)}, {"c": frozenset("x")})
    assert names.tolist() == ["", "a; c", "b"]
    assert counts == {"a": 1, "b": 1}
