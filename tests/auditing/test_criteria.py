"""The audit chooses by other criteria than cross-validation, and draws what belongs to them."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

import surelearn
from surelearn.linear import LeastSquares

QUICK = {
    "ledger": False,
    "refits": 0,
    "curve_repeats": 0,
    "skip": ("robustness", "poisoning", "membership", "attribution"),
}


@pytest.mark.parametrize("criterion", ["srm", "adjusted-srm", "margin"])
def test_the_number_of_rounds_is_chosen(criterion):
    result = surelearn.audit("breast_cancer", criterion=criterion, **QUICK)
    chosen = result.numbers["selection"]
    assert [name.split("=")[-1] for name in chosen["names"]] == [str(2**k) for k in range(9)]
    assert np.argmin(chosen["errors"]) == chosen["chosen"]
    (note,) = result["selection"].notes
    assert f"The criterion {criterion} chose" in note
    assert len(result["selection"].charts) == 1
    chart = result["margins"].charts[0].data
    assert chart["low"][-1] <= chart["y"][-1] <= chart["high"][-1] <= 1
    assert chart["x"][-1] <= 2 ** chosen["chosen"]
    assert result.certificate.verify()


def test_the_penalty_holds_large_votes_back():
    results = [
        surelearn.audit("breast_cancer", criterion=criterion, **QUICK)
        for criterion in ("srm", "adjusted-srm")
    ]
    small, large = (result.numbers["selection"]["chosen"] for result in results)
    assert small < large


@pytest.mark.parametrize(
    ("data", "criterion"), [("breast_cancer", "aic"), ("diabetes", "aicc"), ("diabetes", "bic")]
)
def test_the_number_of_components_is_chosen(data, criterion):
    result = surelearn.audit(data, criterion=criterion, **QUICK)
    names = result.numbers["selection"]["names"]
    assert names[:3] == ("constant", "linear, 1 component", "linear, 2 components")
    assert result.numbers["selection"]["chosen"] > 1
    assert f"The criterion {criterion} chose" in result["selection"].notes[0]


def test_resampling_of_ones_own_kind():
    models = {"linear": LeastSquares(), "other": LinearRegression()}
    result = surelearn.audit("diabetes", models=models, criterion="k-fold", **QUICK)
    assert "10-fold cross-validation on 303 rows" in result["selection"].notes[0].lower()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "fashion"}, "criterion must be one of cross-validation, holdout"),
        ({"criterion": "holdout"}, "--criterion holdout needs select rows"),
        (
            {"criterion": "aic", "models": {"naive Bayes": GaussianNB()}},
            "criterion 'aic' is refused for 'naive Bayes'",
        ),
        (
            {"criterion": "srm", "cost": 5.0, "positive": "malignant"},
            "--cost needs probabilities of rows not fitted on",
        ),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        surelearn.audit("breast_cancer", **QUICK, **options)


def test_a_criterion_for_two_classes():
    with pytest.raises(
        ValueError, match="criterion 'srm' is for two classes, and there are 3 classes"
    ):
        surelearn.audit("iris", criterion="srm", **QUICK)
