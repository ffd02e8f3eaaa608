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
