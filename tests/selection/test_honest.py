"""Estimates after selection: nearly unbiased where the least cross-validation error is too low."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier

from surelearn.boosting import AdaBoostClassifier
from surelearn.selection import (
    NestedFamily,
    Resampling,
    bias_corrected_cross_validation,
    nested_cross_validation,
    select,
)
from surelearn.selection.honest import bootstrap_bias_corrected

STUBS = runpy.run_path(str(Path(__file__).with_name("stubs.py")))
Columns, coins = STUBS["Columns"], STUBS["coins"]
FOLDS = Resampling(folds=5)
OPTIONS = {"criterion": FOLDS, "prefer": "best", "n_jobs": 1}


def deviations(wrong, columns, trials, n=60):
    """Naive, nested and bootstrap estimates less the true risk of what was chosen, one row a
    trial.
    """
    family = NestedFamily(Columns(), range(1, columns + 1))
    risks = np.broadcast_to(wrong, columns)
    rows = []
    for trial in range(trials):
        X, y = coins(trial, n, columns, wrong)
        chosen = select(family, X, y, **OPTIONS)
        nested = nested_cross_validation(family, X, y, outer=FOLDS, **OPTIONS)
        corrected = bias_corrected_cross_validation(family, X, y, bootstraps=200, **OPTIONS)
        assert corrected.naive == pytest.approx(chosen.errors[chosen.chosen])
        rows.append(
            np.array([corrected.naive, nested.value, corrected.value]) - risks[chosen.chosen]
        )
    return np.array(rows)


def test_where_all_candidates_guess_only_the_naive_estimate_is_biased():
    found = deviations(0.5, 30, trials=60)
    naive, nested, corrected = found.mean(axis=0)
    errors = found.std(axis=0) / np.sqrt(60)
    assert naive < -0.1
    assert abs(nested) < 4 * errors[1]
    assert abs(corrected) < 4 * errors[2]


def test_where_candidates_differ_the_corrected_estimates_err_upwards_a_little():
    found = deviations(np.linspace(0.5, 0.3, 20), 20, trials=60)
    naive, nested, corrected = found.mean(axis=0)
    assert naive < -0.06
    assert -0.02 < nested < 0.04
    assert -0.02 < corrected < 0.04


def test_the_bootstrap_again_row_by_row():
    losses = np.random.default_rng(1).integers(2, size=(12, 3)).astype(float)
    estimate = bootstrap_bias_corrected(
        losses, bootstraps=7, prefer="best", random_state=5, names=["a", "b", "c"]
    )
    from surelearn.jobs import seed_for

    rng = np.random.default_rng(seed_for("bootstraps", 5))
    values = []
    for counts in rng.multinomial(12, np.full(12, 1 / 12), size=7):
        rows = np.repeat(np.arange(12), counts)
        best = losses[rows].mean(axis=0).argmin()
        values.append(losses[counts == 0, best].mean())
    assert estimate.value == pytest.approx(np.mean(values))
    assert estimate.interval == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])))
    assert sum(estimate.chosen.values()) == 7
    assert set(estimate.chosen) <= {"a", "b", "c"}


def test_bootstrapped_groups_are_drawn_whole():
    values = np.random.default_rng(0).random((40, 4))
    copies = np.repeat(values, 5, axis=0)
    alone = bootstrap_bias_corrected(values, bootstraps=50)
    grouped = bootstrap_bias_corrected(copies, bootstraps=50, groups=np.repeat(np.arange(40), 5))
    assert grouped.value == pytest.approx(alone.value)
    assert grouped.interval == pytest.approx(alone.interval)
    missing = bootstrap_bias_corrected(np.vstack([values, np.full((3, 4), np.nan)]), bootstraps=50)
    assert missing.value == alone.value


def test_intervals_hold_the_risk_about_as_often_as_they_say():
    family = NestedFamily(Columns(), range(1, 11))
    inside = []
    for trial in range(60):  # ten candidates alike, where choices of folds hang together most
        X, y = coins(trial, 80, 10, 0.3)
        for estimate in (
            nested_cross_validation(family, X, y, outer=FOLDS, **OPTIONS),
            bias_corrected_cross_validation(family, X, y, bootstraps=200, **OPTIONS),
        ):
            inside.append(estimate.interval[0] <= 0.3 <= estimate.interval[1])
    nested, corrected = np.reshape(inside, (-1, 2)).mean(axis=0)
    assert nested > 0.9  # 0.8 with the plain standard error
    assert corrected > 0.9


def test_neither_depends_on_n_jobs():
    X, y = make_classification(120, 5, flip_y=0.1, random_state=0)
    models = {"near": KNeighborsClassifier(3), "linear": LogisticRegression()}
    for estimate in (nested_cross_validation, bias_corrected_cross_validation):
        one, two = (
            estimate(models, X, y, criterion=FOLDS, n_jobs=n, random_state=7) for n in (1, 2)
        )
        assert one == two
        assert one != estimate(models, X, y, criterion=FOLDS, random_state=8)


def test_any_criterion_can_be_nested():
    X, y = load_breast_cancer(return_X_y=True)
    family = NestedFamily(AdaBoostClassifier(), [1, 5, 20])
    for criterion in ("adjusted-srm", "srm", "stability"):
        estimate = nested_cross_validation(
            family, X, y, criterion=criterion, outer=FOLDS, confidence=0.9
        )
        assert estimate.interval[0] < estimate.value < estimate.interval[1] < 0.2
        assert sum(estimate.chosen.values()) == 5
        assert "nested in 5-fold" in estimate.how
    X, y = load_diabetes(return_X_y=True)
    number = nested_cross_validation(
        [Ridge(), LinearRegression()], X, y, task="regression", groups=np.arange(442) // 2
    )
    assert 40 < number.value < 55


def test_refusals():
    X, y = coins(0, 30, 2)
    models = [Columns()]
    for options, why in (
        ({"criterion": "holdout"}, "nest a criterion that needs no held_out"),
        ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1"),
        ({"criterion": "feeling"}, "criterion must be one of"),
        ({"outer": Resampling(folds=31)}, "folds must lie between 2 and 30"),
    ):
        with pytest.raises(ValueError, match=why):
            nested_cross_validation(models, X, y, **options)
    for options, why in (
        (
            {"criterion": "srm"},
            "'srm' has no losses of rows not fitted on: use nested_cross_validation",
        ),
        ({"criterion": "holdout"}, "compares on few rows"),
        ({"bootstraps": 0}, "bootstraps must be at least 1"),
        ({"confidence": 0.0}, "confidence must lie strictly between 0 and 1"),
    ):
        with pytest.raises(ValueError, match=why):
            bias_corrected_cross_validation(models, X, y, **options)
    with pytest.raises(ValueError, match="a column for each candidate"):
        bootstrap_bias_corrected([0.0, 1.0])
    with pytest.raises(ValueError, match="at least two rows"):
        bootstrap_bias_corrected([[0.0], [np.nan]])
