"""What one row does: closed forms against refits, and when the learner's own claims stand on
the page.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

import surelearn
from surelearn.auditing.sections import one_row
from surelearn.lacking import Lacking
from surelearn.linear import LogisticRegression, Ridge

QUICK = {
    "ledger": False,
    "refits": 2,
    "curve_repeats": 0,
    "skip": ("robustness", "poisoning", "membership", "attribution"),
}
LOGISTIC = LogisticRegression(regularization=0.01, x_bound=1.0, random_state=0)
RIDGE = Ridge(regularization=0.1, x_bound=1.0, y_bound=400.0)


def findings(result):
    return {finding.code: finding for finding in result["stability"].findings}


def refits(model, X, y, new):
    """Every fit without one row, by hand; nothing before the learner depends on the rows."""
    predict = (
        (lambda m: m.predict_proba(new)[:, 1])
        if hasattr(model, "predict_proba")
        else (lambda m: m.predict(new))
    )
    before, largest, n = predict(clone(model).fit(X, y)), 0.0, len(y)
    for i in range(n):
        rows = np.delete(np.arange(n), i)
        shrunk = clone(model)
        # the total penalty nλ stays
        shrunk[-1].set_params(regularization=model[-1].regularization * n / (n - 1))
        largest = max(largest, float(np.abs(predict(shrunk.fit(X[rows], y[rows])) - before).max()))
    return largest


@pytest.mark.parametrize(("data", "learner"), [("breast_cancer", LOGISTIC), ("diabetes", RIDGE)])
def test_the_closed_form_is_that_of_n_refits(data, learner, monkeypatch):
    seen = {}
    measure = one_row.measure
    monkeypatch.setattr(
        one_row,
        "measure",
        lambda context, refits: seen.update(context=context) or measure(context, refits),
    )
    model = make_pipeline(Normalizer(), learner)
    result = surelearn.audit(data, models={"it": model}, **QUICK)
    context = seen["context"]
    new = np.asarray(context.rows("certify")[0], dtype=float)
    train, labels = (np.asarray(part) for part in context.rows("train"))
    expected = refits(model, train.astype(float), labels, new)
    found = findings(result)["SL402"]
    assert found.numbers["rows_left_out"] == len(labels)
    assert found.numbers["largest_change"] == pytest.approx(expected, rel=1e-3)
    assert "in closed form" in found.text


@pytest.mark.parametrize(
    ("data", "learner", "loss"),
    [("breast_cancer", LOGISTIC, "logarithmic"), ("diabetes", RIDGE, "squared")],
)
def test_the_certified_constant_stands_beside_what_was_measured(data, learner, loss):
    result = surelearn.audit(data, models={"it": make_pipeline(Normalizer(), learner)}, **QUICK)
    (table,) = result["stability"].tables
    certified, measured = (float(row[1]) for row in table.rows)
    assert loss in table.rows[0][0]
    assert 0 < measured < certified
    claim = result.certificate["uniform_stability_from_the_fit_rows"]
    assert claim.value == pytest.approx(certified, rel=1e-2)
    assert result.certificate.verify()
    assert not any(
        claim.standing == "together" and "fit_rows" in claim.quantity
        for claim in result.certificate.claims
    )


WIDE = LogisticRegression(regularization=0.01, x_bound=1e3, random_state=0)
LOOSE = make_pipeline(Normalizer(), LogisticRegression(regularization=0.01, random_state=0))


@pytest.mark.parametrize(
    ("models", "reason"),
    [
        ({"it": WIDE}, "'columntransformer' was fitted on the same rows"),
        (
            {"it": make_pipeline(StandardScaler(), WIDE)},
            "'standardscaler' was fitted on the same rows",
        ),
        ({"it": make_pipeline(Normalizer(), LOGISTIC), "other": LOOSE}, "choose among candidates"),
        ({"it": LOOSE}, "state x_bound="),
    ],
)
def test_no_constant_is_certified_where_rows_were_looked_at_before(models, reason):
    result = surelearn.audit("breast_cancer", models=models, **QUICK)
    assert not result["stability"].tables
    assert reason in result["stability"].notes[0]
    assert not any("uniform_stability" in claim.quantity for claim in result.certificate.claims)


def test_other_models_are_fitted_again_without_sampled_rows():
    result = surelearn.audit(
        "iris", models={"forest": RandomForestClassifier(10, random_state=0)}, **QUICK
    )
    found = findings(result)["SL402"]
    assert found.numbers["rows_left_out"] == 2
    assert "by 2 refits" in found.text
    assert "looked at before" in result["stability"].notes[0]


def test_a_decision_threshold_is_kept():
    options = {**QUICK, "positive": "malignant", "threshold": 0.3}
    result = surelearn.audit("breast_cancer", models={"it": WIDE}, **options)
    exact = findings(result)["SL402"].numbers["share"]
    assert 0 <= exact <= 0.1
    assert result["stability"].notes


def test_steps_that_learn_nothing_leave_the_claims_alone():
    model = make_pipeline("passthrough", FunctionTransformer(), Normalizer(), LOGISTIC)
    result = surelearn.audit("breast_cancer", models={"it": model}, **QUICK)
    assert result["stability"].tables


def test_refits_stand_without_leave_one_out(monkeypatch):
    wide = Lacking("leave-one-out", "it has 7,068 prepared columns, more than 2,000")
    monkeypatch.setattr(one_row, "leave_one_out", lambda *_, **__: wide)
    model = make_pipeline(Normalizer(), LOGISTIC)
    result = surelearn.audit("breast_cancer", models={"it": model}, **QUICK)
    assert set(findings(result)) == {"SL401"}
    assert result["stability"].notes[0] == f"Leave-one-out was not measured: {wide.reason}."
