from dataclasses import replace

import numpy as np
import pytest

from surelearn.boosting import AdaBoostClassifier
from surelearn.bounds import boosting_vc
from surelearn.papers import find, reproduce
from surelearn.papers.thesis import boosting_vc_without_e
from surelearn.papers.thesis_boosting import BoostingSettings, difference, judge
from surelearn.papers.thesis_oracle import draw_oracle
from surelearn.papers.thesis_problem import choices, first_least, relative_error, sizes_for, solve

SMALL = {"problems": 3, "variant_problems": 2}


@pytest.fixture(scope="module")
def problem():
    return solve(5, "1", 0.8)


@pytest.fixture(scope="module")
def outcome():
    return reproduce("thesis-figure-5.1", **SMALL)


def test_sizes():
    assert sizes_for(13) == [3, 6, 9, 13, 16, 19, 22, 26]
    for rounds in range(10, 101):
        assert sizes_for(rounds)[3] == rounds
        assert (np.diff(sizes_for(rounds)) > 0).all()


@pytest.mark.parametrize(
    ("test", "chosen", "expected"),
    [
        ([0.5, 0.25, 0.375], 0, 100.0),
        ([0.5, 0.25, 0.375], 1, 0.0),
        ([0.5, 0.25, 0.375], 2, 50.0),
        ([0.1] * 8, 5, 0.0),
        ([0.0, 0.0], 1, 0.0),
    ],
)
def test_equation_5_5_is_0_where_all_sizes_are_equal(test, chosen, expected):
    assert relative_error(test, chosen) == expected


BY_HAND = {
    "test": [0.4, 0.3, 0.2, 0.2],
    "cv": [0.3, 0.1, 0.1, 0.2],
    "training": [0.3, 0.2, 0.1, 0.0],
    "penalties": {"with e, counted": [1.0, 1.2, 1.5, 3.0]},
    "margin": {"least": [5.0, 5.0, 6.0, 6.0], "best": [7.0, 6.0, 5.0, 4.0]},
}


@pytest.mark.parametrize(
    ("name", "smallest", "largest"),
    [("best", 2, 3), ("10-fold CV", 1, 2), ("adjusted SRM", 2, 2), ("SRM", 0, 0), ("margins", 0, 1),
     ("always the largest", 3, 3)],
)  # fmt: skip
def test_each_criterion_by_hand(name, smallest, largest):
    """Adjusted, C = 1/8: 0.425, 0.35, 0.2875, 0.375. SRM: 1.3, 1.4, 1.6, 3."""
    asked = {"penalty": "with e, counted", "constant": 0.125}
    assert choices(BY_HAND, **asked)[name] == smallest
    assert choices(BY_HAND, **asked, ties="largest")[name] == largest
    assert choices(BY_HAND, **asked, margin="best")["margins"] == 3
    assert choices(BY_HAND, **{**asked, "constant": 0.0})["adjusted SRM"] == 3


def test_first_least():
    assert first_least([2.0, 1.0, 1.0]) == 1
    assert first_least([2.0, 1.0, 1.0], "largest") == 2


def test_a_problem_is_what_its_parts_give(problem):
    """Errors and penalties by a second route: the learner itself, and the theorem at δ/8."""
    oracle = draw_oracle(5)
    X, y, sizes = oracle.X, oracle.y, problem["sizes"]
    assert sizes == sizes_for(oracle.rounds)
    for k in (0, 3, 7):
        model = AdaBoostClassifier(sizes[k]).fit(X[:600], y[:600])
        assert problem["test"][k] == np.mean(model.predict(X[600:]) != y[600:])
        assert problem["training"][k] == np.mean(model.predict(X[:600]) != y[:600])
        theorem = boosting_vc(0.0, 600, 0.05 / 8, sizes[k], 7)
        assert problem["penalties"]["with e, counted"][k] == pytest.approx(theorem)
        assert problem["penalties"]["without e, counted"][k] == pytest.approx(
            boosting_vc_without_e(600, 0.05 / 8, sizes[k], 7)
        )
        assert problem["penalties"]["with e, exact"][k] == pytest.approx(
            boosting_vc(0.0, 600, 0.05 / 8, sizes[k], 6)
        )
    assert 0.2 <= problem["positive"] <= 0.8


def test_cross_validation_looks_at_rows_not_fitted_on(problem):
    assert all(
        cv > training for cv, training in zip(problem["cv"], problem["training"], strict=True)
    )
    np.testing.assert_allclose(problem["cv"], problem["test"], atol=0.06)
    assert all(round(600 * cv) == pytest.approx(600 * cv) for cv in problem["cv"])


def test_a_problem_is_its_seed(problem):
    assert solve(5, "1", 0.8) == problem


def test_readings_differ_in_what_they_say(problem):
    other = solve(5, "data", 0.8)
    assert other["test"] != problem["test"]
    settings = BoostingSettings(constant=1.0)
    assert (
        judge([problem], settings)["chosen"]["adjusted SRM"]
        == judge([problem], settings)["chosen"]["SRM"]
    )
    assert judge([problem], replace(settings, constant=0.0))["chosen"]["adjusted SRM"] == [
        first_least(problem["training"])
    ]


def test_difference_by_hand():
    found = difference([1, 2, 6], [1, 1, 1])
    assert found["mean"] == 2
    assert found["high"] - found["mean"] == pytest.approx(2 * np.sqrt(7 / 3))


def test_what_a_figure_holds(outcome):
    (figure,) = outcome.figures
    assert list(figure.groups) == [
        "10-fold CV",
        "adjusted SRM",
        "SRM",
        "margins",
        "always the largest",
    ]
    assert all(
        len(values) == 3 and 0 <= min(values) <= max(values) <= 100
        for values in figure.groups.values()
    )
    readings = outcome.numbers["readings"]
    assert readings["as set"]["problems"] == 3
    assert readings["thresholds over the range of the data"]["problems"] == 2
    assert {
        "rejected above 95%",
        "equation 3.11 without e",
        "V = 6",
        "ties to the largest size",
    } < set(readings)
    assert list(outcome.numbers["constants"]) == ["1", *(f"2⁻{k}" for k in "¹²³⁴⁵⁶⁷⁸⁹"), "2⁻¹⁰"]
    assert outcome.numbers["constants"]["2⁻⁹"] == readings["as set"]["relative"]["adjusted SRM"]


def test_sizes_chosen_are_counted(outcome):
    sizes = reproduce("thesis-figure-5.3", **SMALL)
    assert sizes.numbers["problems"] == outcome.numbers["problems"]
    assert all(sum(counts) == 3 for counts in sizes.figures[0].groups.values())
    assert sizes.figures[0].labels[3] == "T*"


def test_more_problems_begin_with_the_same(outcome):
    fewer = reproduce("thesis-figure-5.1", problems=2, variant_problems=0)
    assert fewer.numbers["problems"] == outcome.numbers["problems"][:2]
    assert "thresholds on [−2, 2]" not in fewer.numbers["readings"]


def test_another_seed_gives_other_problems(outcome):
    other = reproduce("thesis-figure-5.1", seed=1, problems=2, variant_problems=0)
    assert other.numbers["problems"][0] != outcome.numbers["problems"][0]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"problems": "1"}, "problems must be at least 2, and variant_problems at least 0"),
        ({"problems": "many"}, "problems must be a whole number, not 'many'"),
        ({"problems": "2.5"}, "problems must be a whole number, not '2.5'"),
        ({"thresholds": "-1"}, "thresholds must be a positive number or data, not '-1'"),
        ({"thresholds": "wide"}, "thresholds must be a positive number or data, not 'wide'"),
        ({"reject_above": "1"}, "reject_above must lie between 0.6 and 0.97, not 1"),
        ({"constant": "nan"}, "constant must be a number, not 'nan'"),
        ({"constant": "-1"}, "constant must be a number of at least 0, not -1"),
        ({"ties": "first"}, "ties must be one of smallest, largest, not first"),
        ({"tie": "smallest"}, "there is no setting 'tie': what can be set is problems, "),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(given, sentence):
    with pytest.raises(ValueError, match=sentence.replace("[", r"\[")):
        find("thesis-figure-5.1").read(given)
