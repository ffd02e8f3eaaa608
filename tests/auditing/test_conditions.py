"""Conditions travel with claims: what a claim was bought with stands beside it, or the claim is not made."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import surelearn

QUICK = {"ledger": False, "refits": 2, "curve_repeats": 0, "skip": ("robustness", "poisoning", "membership", "attribution")}


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    y = np.where((x[:, 0] > 0.5) ^ (rng.random(n) < 0.1), "sick", "well")
    return pd.DataFrame(x, columns=["a", "b", "c"]).assign(state=y)


def fitted():
    frame = rows()
    return LogisticRegression().fit(frame[["a", "b", "c"]].to_numpy(), frame["state"])


FITTED = {
    "a model": fitted,
    "a pipeline's last step": lambda: make_pipeline(StandardScaler(), fitted()),
    "frozen": lambda: FrozenEstimator(fitted()),
    "frozen inside a calibration": lambda: CalibratedClassifierCV(FrozenEstimator(fitted())),
    "inside a search": lambda: GridSearchCV(fitted(), {"C": [1.0]}),
}


@pytest.mark.parametrize("argument", ["models", "against"])
@pytest.mark.parametrize("which", FITTED)
def test_a_fitted_candidate_is_refused_and_not_fitted_again(which, argument):
    candidates = {"models": {"mine": LogisticRegression()}, argument: {"mine": FITTED[which]()}}
    with pytest.raises(ValueError, match=r"candidate 'mine' .* would be fitted again: .*surelearn.audit\(model, X, y\)"):
        surelearn.audit(rows(), target="state", **candidates, **QUICK)


def test_fitted_steps_that_prepare_and_steps_without_a_state_are_welcome():
    frame = rows()
    scaled = FrozenEstimator(StandardScaler().fit(frame[["a", "b", "c"]]))
    model = make_pipeline(scaled, FunctionTransformer(), LogisticRegression())
    assert surelearn.audit(frame, target="state", models={"mine": model}, **QUICK).verdict.kind == "guaranteed"


# -------------------------------------------------------------------------------------------------------------- groups


class ByFirst:
    """Answers "sick" above 0; groups of ten rows are then wrong, single rows right."""

    classes_ = np.array(["sick", "well"])

    def predict(self, X):
        return np.where(np.asarray(X)[:, 0] > 0, "sick", "well")


def visits(patients, seed, hard=0.06, large=10):
    """Most patients come once and are easy; the few that come ten times are always misjudged."""
    rng = np.random.default_rng(seed)
    sizes = np.where(rng.random(patients) < hard, large, 1)
    patient = np.repeat(np.arange(patients), sizes)
    x = rng.normal(size=(patient.size, 3))
    right = np.where(x[:, 0] > 0, "sick", "well")
    y = np.where(sizes[patient] > 1, np.where(right == "sick", "well", "sick"), right)
    return pd.DataFrame(x, columns=["a", "b", "c"]).assign(patient=patient, state=y)


def test_a_group_claim_says_so_and_one_by_rows_stands_beside_it():
    """Mean over groups: 6% errors. By rows: 39%, which the page said nothing about."""
    frame = visits(400, 1)
    X, y, groups = frame[["a", "b", "c"]], frame["state"].to_numpy(), frame["patient"].to_numpy()
    plain = surelearn.certify(ByFirst(), X, y, groups=groups, task="classification", majority="sick")
    assert all(claim.label.endswith(", mean over groups") for claim in plain.claims)
    both = surelearn.certify(ByFirst(), X, y, groups=groups, task="classification", majority="sick", largest_group=10)
    assert both["risk"].value == plain["risk"].value  # the headline keeps its half of δ
    assert both["risk"].value < 0.15
    by_rows = both["row_weighted_risk"]
    assert by_rows.label == "errors, mean over rows (at most 10 a group)"
    assert 0.6 / 1.54 < by_rows.value < 0.6
    assert by_rows.measured == pytest.approx((ByFirst().predict(X) != y).mean())
    assert by_rows.covers.population == "the rows of new groups like these"
    assert both.verify(ByFirst(), X, y, groups=groups)
    assert surelearn.Certificate.from_json(both.to_json()).verify()


def test_a_mean_loss_over_rows():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(80), rng.integers(1, 6, 80))
    y = rng.random(groups.size)
    shared = {"groups": groups, "task": "regression", "loss_bound": 1.0}
    claims = surelearn.certify(lambda X: np.full(len(X), 0.5), y[:, None], y, largest_group=5, **shared)
    assert claims["row_weighted_loss"].measured == pytest.approx(np.abs(y - 0.5).mean())
    assert claims["row_weighted_loss"].measured < claims["row_weighted_loss"].value < 0.5


def test_the_page_of_groups_counts_rows_too():
    frame = visits(400, 2)
    asked = {"target": "state", "group": "patient", "models": {"linear": LogisticRegression()}, **QUICK}
    result = surelearn.audit(frame, largest_group=10, **asked)
    sentence = result.verdict.text
    assert "errors as a mean over patients, and at most" in sentence or result.verdict.kind == "do not ship"
    assert "mean over rows (at most 10 a group)" in result.to_html()
    assert "errors, mean over groups" in result.to_html().lower()
    with pytest.raises(ValueError, match=r"--largest-group 9 is too small, some group has more rows: state how many"):
        surelearn.audit(frame, largest_group=9, **asked)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"largest_group": 5}, "largest_group needs groups"),
        ({"largest_group": 0, "groups": [1, 1, 2]}, "whole number of at least 1"),
        ({"largest_group": 1, "groups": [1, 1, 2]}, "largest_group 1 is too small, some group has more rows"),
    ],
)
def test_a_largest_group_that_is_none(given, message):
    with pytest.raises(ValueError, match=message):
        surelearn.certify(ByFirst(), np.zeros((3, 1)), np.array(["well"] * 3), task="classification", **given)
