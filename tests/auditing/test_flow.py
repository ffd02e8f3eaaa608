import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import surelearn
from surelearn import Audit, certify
from surelearn.selection.costs import choose_threshold
from surelearn.slicing import choose_slices

ATTACKS = ("robustness", "poisoning", "membership", "attribution")
QUICK = {"ledger": False, "refits": 2, "curve_repeats": 1, "skip": ATTACKS}


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "x": x,
            "kind": rng.choice(["red", "blue"], n),
            "words": [f"w{i % 7} of {i % 11}" for i in range(n)],
        }
    )
    frame.loc[::17, "x"] = np.nan
    return frame.assign(y=np.where((x > 0) ^ (rng.random(n) < 0.15), 1, 0))


MODELS = {"majority": DummyClassifier(), "linear": LogisticRegression()}


@pytest.fixture(scope="module")
def result():
    return surelearn.audit(table(), target="y", models=MODELS, positive=1, **QUICK)


def test_sections_and_their_places(result):
    keys = [section.key for section in result.sections]
    measured = [
        "performance",
        "selection",
        "learning_curve",
        "costly",
        "next",
        "slices",
        "calibration",
        "stability",
        "words",
        "data",
    ]
    assert keys == [*measured, "assumptions", "bounds", "columns", "split"]
    assert result["stability"].findings[0].code == "SL401"
    assert result["columns"].tables[0].rows[0] == (
        "x",
        "number",
        "18",
        "282",
        "18 missing: filled with the median",
    )
    with pytest.raises(KeyError, match="no section 'poetry'"):
        result["poetry"]


def test_the_audit_survives_json(result):
    again = Audit.from_json(result.to_json())
    assert again == result.published()
    assert again.certificate.verify()
    assert again.to_html() == result.to_html()
    with pytest.raises(ValueError, match="not an audit"):
        Audit.from_dict({"format": "else"})
    with pytest.raises(ValueError, match="reads up to"):
        Audit.from_dict({**json.loads(result.to_json()), "version": 99})


def test_the_certificate_can_be_verified_from_model_and_rows(result):
    from surelearn.data import read_table
    from surelearn.selection import split_rows

    data = read_table(table(), target="y")
    held = split_rows(data.row_hashes).certify
    verification = result.certificate.verify(result.model)
    assert verification, str(verification)
    X, y = data.X[result.model.feature_names_in_].iloc[held], data.y[held]
    assert "rows" not in " ".join(result.certificate.verify(X=X, y=y).differences)


def test_one_delta_for_the_page_and_bounds_in_the_details_stand_alone(result):
    together = result.certificate.together
    assert sum(claim.delta for claim in together) == pytest.approx(0.05)
    assert together[0].delta == pytest.approx(0.025)
    alone = [claim for claim in result.claims if claim.standing == "alone"]
    assert {claim.theorem for claim in alone} == {
        "chernoff_kl",
        "hoeffding",
        "betting_upper",
        "empirical_bernstein",
    }
    assert {round(claim.delta, 12) for claim in alone} == {0.025}
    assert any(absent.theorem == "vc" for absent in result.certificate.lacking)


def test_sensitivity_threshold_follows_the_cost():
    cheap = surelearn.audit(table(), target="y", models=MODELS, positive=1, cost=1.0, **QUICK)
    dear = surelearn.audit(table(), target="y", models=MODELS, positive=1, cost=20.0, **QUICK)
    assert dear.numbers["threshold"] < cheap.numbers["threshold"]
    assert dear.certificate["sensitivity"].measured > cheap.certificate["sensitivity"].measured
    assert dear.certificate["mean_cost"].covers.loss == "cost"
    assert dear.certificate.verify(dear.model)
    stated = surelearn.audit(table(), target="y", models=MODELS, positive=1, threshold=0.9, **QUICK)
    assert stated.certificate["sensitivity"].measured < cheap.certificate["sensitivity"].measured


@pytest.mark.parametrize("seed", range(20))
def test_the_chosen_threshold_is_the_cheapest(seed):
    rng = np.random.default_rng(seed)
    scores, y, cost = rng.random(30).round(1), rng.integers(0, 2, 30), rng.choice([0.3, 1.0, 4.0])

    def total(threshold):
        return cost * np.sum((scores < threshold) & (y == 1)) + np.sum(
            (scores >= threshold) & (y == 0)
        )

    best = min(total(t) for t in np.linspace(0.001, 0.999, 999))
    assert total(choose_threshold(scores, y, 1, cost)) == pytest.approx(best)


def test_slices_are_chosen_where_out_of_fold_losses_differ():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"noise": rng.normal(size=400), "kind": rng.choice(["a", "b"], 400)})
    losses = np.where(X.kind == "a", 0.5, 0.0)
    slices = choose_slices(X, losses, {"noise": "number", "kind": "category"})
    assert set(slices(X)) == {"kind = a", "kind = b"}
    assert len(choose_slices(X, losses, {}, stated=["noise", "kind"])(X)) == 6
    assert choose_slices(X[["noise"]], np.zeros(400), {"noise": "number"}) is None


def test_a_fitted_model_is_certified_and_audited_without_fitting():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[order[:90]], y[order[:90]])
    result = surelearn.audit(model, X[order[90:]], y[order[90:]], ledger=False, skip=ATTACKS)
    assert (
        result.certificate["risk"].value
        == certify(model, X[order[90:]], y[order[90:]])["risk"].value
    )
    assert [section.key for section in result.sections] == [
        "performance",
        "next",
        "calibration",
        "assumptions",
        "bounds",
    ]
    assert "No ledger was kept" in " ".join(result["assumptions"].notes)
    assert result.to_html()
    with pytest.raises(ValueError, match="needs X and y"):
        surelearn.audit(model)
    with pytest.raises(ValueError, match="target goes with a table"):
        surelearn.audit(model, X, y, target="y")


def test_functions_are_never_taken_for_the_same_audit(tmp_path):
    X, y = load_iris(return_X_y=True)
    options = {
        "task": "classification",
        "classes": [0, 1, 2],
        "ledger": tmp_path / "book.json",
        "skip": ATTACKS,
    }
    turns = [
        surelearn.audit(lambda X, k=k: np.full(len(X), k), X, y, **options).numbers["turn"]
        for k in range(3)
    ]
    assert turns == [1, 2, 3]


def test_a_fitted_model_pays_for_later_looks(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=500).fit(X[::2], y[::2])
    other = LogisticRegression(max_iter=500, C=0.1).fit(X[::2], y[::2])
    book = tmp_path / "book.json"
    first, second = (
        surelearn.audit(m, X[1::2], y[1::2], ledger=book, skip=ATTACKS) for m in (model, other)
    )
    assert "no earlier audit known here" in first.chips
    assert "second audit of these rows" in second.chips
    assert second.certificate.delta == pytest.approx(0.05 * 6 / (np.pi**2 * 4))
    assert (
        surelearn.audit(model, X[1::2], y[1::2], ledger=book, skip=ATTACKS).certificate.delta
        == 0.05
    )


def test_polars_pandas_and_csv_give_the_same_audit(tmp_path, result):
    path = tmp_path / "t.csv"
    table().to_csv(path, index=False)
    from_csv = surelearn.audit(path, target="y", models=MODELS, positive=1, **QUICK)
    from_polars = surelearn.audit(
        pl.from_pandas(table()), target="y", models=MODELS, positive=1, **QUICK
    )
    assert from_csv.verdict == result.verdict == from_polars.verdict
    assert from_csv.certificate.claims[0].value == result.certificate.claims[0].value


def test_the_seed_changes_folds_not_certify_rows(result):
    other = surelearn.audit(table(), target="y", models=MODELS, positive=1, seed=7, **QUICK)
    assert other.certificate.facts.hashes["rows"] == result.certificate.facts.hashes["rows"]
    assert other.numbers["selection"]["fold_errors"] != result.numbers["selection"]["fold_errors"]


def test_rare_labels_that_only_the_certify_rows_have_count_as_errors():
    frame = table(n=200)
    frame["y"] = frame["y"].astype(str)
    from surelearn.data import hash_rows
    from surelearn.selection import split_rows

    for i in range(200):  # find a row whose label can be changed so that it stays a certify row
        changed = frame.copy()
        changed.loc[i, "y"] = "rare"
        if i in split_rows(hash_rows(changed)).certify:
            break
    result = surelearn.audit(changed, target="y", models=MODELS, **QUICK)
    assert result.certificate.facts["class[rare].count"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 1.5}, "delta must lie"),
        ({"positive": "maybe"}, "no class 'maybe'"),
        ({"keep": ["nothing"]}, "no column 'nothing' to keep"),
        ({"cost": 3.0}, "cost and threshold need positive"),
        ({"X": [1], "y": [2]}, "go with a fitted model"),
        ({"target": "why"}, "no column 'why'"),
        ({"slices": ("zzz",)}, "no usable column 'zzz' to slice by"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        surelearn.audit(table(), **{"target": "y", "models": MODELS, **QUICK, **options})


def test_default_candidates_take_every_kind_of_column():
    frame = table().assign(when=pd.date_range("2020-01-01", periods=300, freq="D").astype(str))
    result = surelearn.audit(frame, target="y", **{**QUICK, "refits": 0, "curve_repeats": 0})
    named = {"majority", "naive Bayes", "logistic regression", "boosted trees"}
    assert named <= set(result.numbers["selection"]["names"])
    assert {row[0]: row[1] for row in result["columns"].tables[0].rows}["when"] == "date"
