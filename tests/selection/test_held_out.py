"""Rows that are held out are never fitted on, however they are named; capacities are those of
the class that was fitted.
"""

import numpy as np
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

from surelearn import bounds
from surelearn.boosting import AdaBoostClassifier as OurAdaBoost
from surelearn.lacking import Lacking
from surelearn.selection import select
from surelearn.selection.criteria import StructuralRisk
from surelearn.selection.criteria.capacity import is_boosted_stumps, measure_risks
from surelearn.selection.honest import bias_corrected_cross_validation

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(400, 5)), RNG.integers(0, 2, 400)


@pytest.mark.parametrize(
    "held_out",
    [
        np.arange(300, 400),
        np.arange(400) >= 300,
        list(range(399, 299, -1)),
        [*range(300, 400), 350],
    ],
)
def test_noise_is_certified_as_noise(held_out):
    selection = select(
        {"tree": DecisionTreeClassifier(random_state=0)},
        X,
        Y,
        criterion="holdout",
        held_out=held_out,
    )
    assert np.flatnonzero(~np.isnan(selection.losses)).tolist() == list(range(300, 400))
    assert selection.errors[0] > 0.35
    assert selection.claim.value > 0.5


@pytest.mark.parametrize("metric", ["f1", "balanced-accuracy"])
def test_nothing_is_certified_at_a_threshold_that_the_held_out_rows_chose(metric):
    """Noise would seem better than it is."""
    options = {"criterion": "holdout", "held_out": np.arange(300, 400), "positive": 1}
    noise = {"forest": RandomForestClassifier(20, random_state=0)}
    selection = select(noise, X, Y, metric=metric, **options)
    assert selection.threshold is not None
    assert isinstance(selection.claim, Lacking)
    assert "a threshold that the held-out rows chose" in selection.claim.reason
    three = np.arange(400) % 3
    of_three = select(noise, X, three, metric="balanced-accuracy", **options)
    assert (of_three.threshold, of_three.claim.inputs["n"]) == (None, 100)


@pytest.mark.parametrize(
    ("held_out", "message"),
    [
        (np.arange(-100, 0), "whole numbers from 0 to 399"),
        ([400], "whole numbers from 0 to 399"),
        ([0.5], "whole numbers"),
        (np.ones(399, dtype=bool), "a mask of 399 rows, and there are 400"),
        (np.arange(400), "held_out takes all rows"),
    ],
)
def test_what_names_no_rows_is_refused(held_out, message):
    with pytest.raises(ValueError, match=message):
        select({"tree": DecisionTreeClassifier()}, X, Y, criterion="holdout", held_out=held_out)


def test_only_votes_of_stumps_are_votes_of_stumps():
    assert is_boosted_stumps(OurAdaBoost())
    assert is_boosted_stumps(AdaBoostClassifier())
    assert is_boosted_stumps(AdaBoostClassifier(DecisionTreeClassifier(max_depth=1)))
    for weak in (
        HistGradientBoostingClassifier(max_depth=1),
        RandomForestClassifier(max_depth=1),
        DecisionTreeClassifier(),
    ):
        assert not is_boosted_stumps(AdaBoostClassifier(weak))


def test_missing_numbers_widen_the_class():
    holes = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    fitted = DecisionTreeClassifier(max_depth=1).fit(holes, Y)
    assert measure_risks(fitted, None, X, Y)[0]["known"] is not None
    assert measure_risks(fitted, None, holes, Y)[0]["known"] is None


def test_the_tail_inversion_of_votes_as_a_penalty():
    selection = select(
        {"vote": OurAdaBoost(3)},
        X,
        Y,
        criterion=StructuralRisk(bound=bounds.boosting_tail_inversion),
    )
    errors = int(np.sum(OurAdaBoost(3).fit(X, Y).predict(X) != Y))
    assert selection.errors[0] == bounds.boosting_tail_inversion(errors, 400, 0.05, 3, 5)
    stated = StructuralRisk(capacity={"rounds": 3, "d": 5})
    assert select({"vote": OurAdaBoost(3)}, X, Y, criterion=stated).errors == selection.errors
    with pytest.raises(ValueError, match="vc needs vc_dimension"):  # the rounds would go unnoticed
        select({"vote": OurAdaBoost(3)}, X, Y, criterion=StructuralRisk(bound=bounds.vc))


def test_a_holdout_has_too_few_rows_to_draw_again():
    with pytest.raises(ValueError, match="'holdout' compares on few rows"):
        bias_corrected_cross_validation(
            {"tree": DecisionTreeClassifier()}, X, Y, criterion="holdout"
        )
