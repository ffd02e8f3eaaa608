"""SRM, adjusted SRM and margins: numbers derived again, coverage near the worst case, and
mutants.
"""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import AdaBoostClassifier as TheirAdaBoost
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from surelearn.boosting import AdaBoostClassifier
from surelearn.bounds import (
    clopper_pearson,
    finite_class,
    hypergeometric_tail_inversion,
    structural_risk,
    vapnik,
    vc,
)
from surelearn.lacking import Lacking
from surelearn.selection import NestedFamily, select
from surelearn.selection.criteria import AdjustedStructuralRisk, Margin, StructuralRisk
from surelearn.selection.criteria.margins import staged_margins

STUBS = runpy.run_path(str(Path(__file__).with_name("stubs.py")))
Columns, coins = STUBS["Columns"], STUBS["coins"]
SIZES = (5, 10, 20)


@pytest.fixture(scope="module")
def data():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def boosting_bound(risk, n, delta, rounds, v):
    return risk + math.sqrt(32 * (rounds * math.log(math.e * n / rounds) + rounds * v * math.log(math.e * n / v)
                                  + math.log(8 / delta)) / n)  # fmt: skip


@pytest.mark.parametrize(
    "family",
    [
        NestedFamily(AdaBoostClassifier(), SIZES),
        NestedFamily(TheirAdaBoost(random_state=0), SIZES, "n_estimators"),
    ],
    ids=["ours", "theirs"],
)
def test_boosted_stumps(family, data):
    X, y = data
    selection = select(family, X, y, criterion="srm", delta=0.1)
    for size, member, value in zip(SIZES, family.members(), selection.errors, strict=True):
        risk = np.mean(member.model.fit(X, y).predict(X) != y)
        # C(7, 3) = 35 ≤ 60 < C(8, 4)
        assert value == pytest.approx(boosting_bound(risk, 569, 0.1 / 3, size, 7))
    assert selection.chosen == 0
    assert selection.claim.value == selection.errors[0]
    assert selection.claim.confidence == 0.9
    assert selection.claim.candidates == 3
    assert "the list of numbers of rounds was fixed beforehand" in selection.claim.assumptions
    assert "the number of rounds was fixed beforehand" not in selection.claim.assumptions


def test_capacities_that_are_known(data):
    X, y = data[0][:, :5], data[1]
    models = {
        "constant": DummyClassifier(),
        "stump": DecisionTreeClassifier(max_depth=1),
        "halfspace": LogisticRegression(max_iter=5000),
        "linear": SVC(kernel="linear"),
    }
    selection = select(models, X, y, criterion="srm")
    risks = [np.mean(model.fit(X, y).predict(X) != y) for model in models.values()]
    share, n = 0.05 / 4, 569
    assert selection.errors[0] == pytest.approx(
        risks[0] + math.sqrt((math.log(2) + math.log(1 / share)) / (2 * n))
    )
    # C(5, 2) = 10 ≤ 10 < C(6, 3); and five columns with an intercept
    for i, d in ((1, 5), (2, 6), (3, 6)):
        term = 32 * (math.log(8 / share) + d * math.log(math.e * n / d)) / n
        assert selection.errors[i] == pytest.approx(risks[i] + math.sqrt(term))


def test_any_capacity_bound_is_a_penalty(data):
    X, y = data
    models = {"constant": DummyClassifier(), "halfspace": LogisticRegression(max_iter=5000)}
    errors = [int(np.sum(clone(model).fit(X, y).predict(X) != y)) for model in models.values()]
    for bound in (vapnik, hypergeometric_tail_inversion, vc):
        selection = select(models, X, y, criterion=StructuralRisk(bound=bound))
        seen = errors if bound is hypergeometric_tail_inversion else np.array(errors) / 569
        assert selection.errors == pytest.approx(
            [bound(s, 569, 0.025, d) for s, d in zip(seen, (1, 31), strict=True)]
        )
    selection = select(models, X, y, criterion=StructuralRisk(bound=structural_risk))
    assert selection.errors == pytest.approx(
        structural_risk(np.array(errors) / 569, 569, 0.05, [1, 31], [1, 2])
    )
    assert selection.claim.delta == 0.05
    assert selection.claim.inputs["index"] == selection.chosen + 1


def halfspaces(model, d, n):
    return d + 1


def in_a_mapping(model, d, n):
    return {"vc_dimension": 31}


def as_many_as_rounds(model, d, n):
    return {"size": model.n_rounds}


def test_capacity_as_a_user_states_it(data):
    X, y = data
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    for capacity in (
        31,
        {"vc_dimension": 31},
        {"scaled": 31},
        halfspaces,
        in_a_mapping,
    ):
        selection = select({"scaled": scaled}, X, y, criterion=StructuralRisk(capacity=capacity))
        assert selection.errors[0] == pytest.approx(
            vc(selection.details["training errors"][0], 569, 0.05, 31)
        )
    family = NestedFamily(Columns(), [1, 2], capacity=as_many_as_rounds)
    X, y = coins(0, 50, 2)
    found = select(family, X, y, criterion="srm")
    assert found.errors == pytest.approx(
        finite_class(found.details["training errors"], 50, 0.025, [1, 2])
    )


def test_a_class_as_rich_as_the_rows_has_no_bound(data):
    X, y = data
    models = {"poor": DummyClassifier(), "rich": LogisticRegression(max_iter=5000)}
    selection = select(models, X[:20], y[:20], criterion="srm")
    assert selection.errors[1] == math.inf
    assert selection.name == "poor"
    alone = select({"rich": models["rich"]}, X[:20], y[:20], criterion="srm")
    assert isinstance(alone.claim, Lacking)
    assert "too rich" in alone.claim.reason


# ---- coverage: columns that guess, so that every risk is exactly one half

TRIALS, N, COLUMNS, DELTA = 200, 100, 100, 0.1


def guesses(criterion, **options):
    family = NestedFamily(Columns(), range(1, COLUMNS + 1), capacity={"size": 1})
    for trial in range(TRIALS):
        X, y = coins(trial, N, COLUMNS)
        yield select(
            family, X, y, criterion=criterion, prefer="best", delta=DELTA, n_jobs=1, **options
        )


def violated_at_most(rate, delta):
    return rate * TRIALS <= binom.ppf(0.999, TRIALS, delta)


@pytest.fixture(scope="module")
def chosen_by_srm():
    return list(guesses("srm"))


def test_srm_covers_the_chosen_one_of_many(chosen_by_srm):
    assert violated_at_most(
        np.mean([selection.claim.value < 0.5 for selection in chosen_by_srm]), DELTA
    )
    simultaneous = np.mean([min(selection.errors) < 0.5 for selection in chosen_by_srm])
    assert violated_at_most(simultaneous, DELTA)


def test_mutant_delta_that_is_not_spread(chosen_by_srm):
    risks = [selection.details["training errors"][selection.chosen] for selection in chosen_by_srm]
    assert not violated_at_most(np.mean(finite_class(risks, N, DELTA, 1) < 0.5), DELTA)


def test_mutant_a_constant_below_one(chosen_by_srm):
    adjusted = list(guesses(AdjustedStructuralRisk(constant=0.5)))
    assert not violated_at_most(
        np.mean([selection.errors[selection.chosen] < 0.5 for selection in adjusted]), DELTA
    )
    assert {selection.claim.reason for selection in adjusted} == {"the constant voids the theorem"}


def test_holdout_covers_the_chosen_one_of_many_and_the_naive_claim_does_not():
    selections = list(guesses("holdout", held_out=np.arange(N)[20:]))
    assert violated_at_most(
        np.mean([selection.claim.value < 0.5 for selection in selections]), DELTA
    )
    unpaid = [clopper_pearson(s.claim.inputs["errors"], 80, DELTA) for s in selections]
    assert not violated_at_most(np.mean(np.array(unpaid) < 0.5), DELTA)


# ---- adjusted


def test_calibration_again_by_hand(data):
    X, y = data
    held_out = np.arange(0, 569, 4)
    rest = np.setdiff1d(np.arange(569), held_out)
    sizes = (1, 2, 5, 20, 80)
    selection = select(
        NestedFamily(AdaBoostClassifier(), sizes), X, y, criterion="adjusted-srm", held_out=held_out
    )
    fits = [AdaBoostClassifier(T).fit(X[rest], y[rest]) for T in sizes]
    risks = np.array([np.mean(f.predict(X[rest]) != y[rest]) for f in fits])
    others = np.array([np.mean(f.predict(X[held_out]) != y[held_out]) for f in fits])
    penalty = np.array([boosting_bound(0.0, rest.size, 0.05 / 5, T, 7) for T in sizes])
    tried = []
    for k in range(11):
        values = risks + 2.0**-k * penalty
        best = int(values.argmin())
        tried.append((others[best], abs(values[best] - others[best]), 2.0**-k))
    assert selection.details["constant"] == min(tried)[2] < 1
    assert selection.details["calibration errors"] == pytest.approx([t[0] for t in tried])
    full = [boosting_bound(0.0, 569, 0.05 / 5, T, 7) for T in sizes]
    expected = np.array(selection.details["training errors"]) + min(tried)[2] * np.array(full)
    assert selection.errors == pytest.approx(expected)


def test_a_known_constant_is_not_calibrated(data):
    X, y = data
    one = select(
        NestedFamily(AdaBoostClassifier(), SIZES),
        X,
        y,
        criterion=AdjustedStructuralRisk(constant=1.0),
    )
    plain = select(NestedFamily(AdaBoostClassifier(), SIZES), X, y, criterion="srm")
    assert one.errors == pytest.approx(plain.errors)
    assert isinstance(one.claim, Lacking)
    groups = np.arange(569) // 3
    assert (
        select(
            NestedFamily(AdaBoostClassifier(), SIZES), X, y, criterion="adjusted-srm", groups=groups
        ).chosen
        >= 0
    )


# ---- margins


def test_margins_of_a_vote_again_by_hand(data):
    X, y = data
    ours, theirs = (
        AdaBoostClassifier(4).fit(X, y),
        TheirAdaBoost(n_estimators=4, random_state=0).fit(X, y),
    )
    for vote in (ours, theirs):
        *_, margins = staged_margins(vote, X, y)
        scores = vote.decision_function(X)
        normalized = scores / np.abs(scores).max() * np.abs(margins).max()
        assert margins == pytest.approx(np.where(y == 1, normalized, -normalized))
        assert np.abs(margins).max() <= 1 + 1e-12
        if vote is ours:
            assert margins == pytest.approx((2 * y - 1) * scores / vote.estimator_weights_.sum())


def test_margin_criterion_again_by_hand(data):
    X, y = data[0][:, :4], data[1]
    n, v = 569, 4  # C(4, 2) = 6 ≤ 8 < C(5, 2)
    selection = select(
        NestedFamily(AdaBoostClassifier(), SIZES), X, y, criterion=Margin(threshold=0.9)
    )
    for size, value in zip(SIZES, selection.errors, strict=True):
        *_, margins = AdaBoostClassifier(size).fit(X, y).staged_margins(X, y)
        growth = v * math.log(math.e * n / v)
        k = math.ceil(4 / 0.81 * math.log(n * 0.81 / (8 * growth)))
        deviation = math.sqrt(
            32 * (math.log(k * (k + 1) ** 2) + k * growth + math.log(8 / 0.05)) / n
        )
        assert value == pytest.approx(
            np.mean(margins <= 0.9) + 4 * math.exp(-k * 0.81 / 8) + deviation
        )
    best = select(NestedFamily(AdaBoostClassifier(), SIZES), X, y, criterion="margin")
    assert all(a <= b for a, b in zip(best.errors, selection.errors, strict=True))
    assert best.claim.value == best.errors[best.chosen]
    # the theorem holds for every vote and every threshold at once
    assert best.claim.candidates == 1
    assert best.claim.inputs["margin"] == best.details["thresholds"][best.chosen]


# ---- refusals


@pytest.mark.parametrize(
    ("criterion", "model", "why"),
    [
        ("srm", RandomForestClassifier(5), "'srm' knows no capacity of 'RandomForestClassifier'"),
        (
            "srm",
            make_pipeline(StandardScaler(), LogisticRegression()),
            "knows no capacity of 'Pipeline'",
        ),
        (
            "srm",
            TheirAdaBoost(DecisionTreeClassifier(max_depth=2), n_estimators=2),
            "knows no capacity",
        ),
        (
            StructuralRisk(bound=vapnik),
            AdaBoostClassifier(3),
            "vapnik needs vc_dimension, but .* rounds and vc_dimension",
        ),
        (
            StructuralRisk(capacity={"rounds": 3}),
            DummyClassifier(),
            "must name inputs of a capacity bound, not rounds",
        ),
        ("margin", LogisticRegression(), "'margin' is for votes of decision stumps"),
        (Margin(threshold=0.1), AdaBoostClassifier(3), "threshold must lie above 0"),
        (
            AdjustedStructuralRisk(constant=-1.0),
            AdaBoostClassifier(3),
            "constant must be a number of at least 0",
        ),
        (
            AdjustedStructuralRisk(held_out=1.0),
            AdaBoostClassifier(3),
            "held_out must be a fraction",
        ),
    ],
)
def test_refusals(criterion, model, why, data):
    X, y = data
    with pytest.raises(ValueError, match=why) as refusal:
        select([model], X[:, :5], y, criterion=criterion)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("criterion", ["srm", "adjusted-srm", "margin"])
def test_bounds_for_two_classes_are_refused_elsewhere(criterion):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="is for two classes, and there are 3 classes"):
        select([AdaBoostClassifier(2)], X, y, criterion=criterion)
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match="is for two classes, and the target is a number"):
        select([AdaBoostClassifier(2)], X, y, task="regression", criterion=criterion)


def test_margins_need_rows(data):
    X, y = data
    with pytest.raises(ValueError, match="needs more rows: with 30 in 30 columns"):
        select([AdaBoostClassifier(2)], X[:30], y[:30], criterion="margin")


def test_groups_take_the_claim_away(data):
    X, y = data
    for criterion in ("srm", "margin"):
        found = select(
            [AdaBoostClassifier(2)], X[:, :5], y, criterion=criterion, groups=np.arange(569) // 2
        )
        assert isinstance(found.claim, Lacking)
        assert "not independent" in found.claim.reason
