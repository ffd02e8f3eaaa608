"""A model fitted elsewhere, audited with the rows it was fitted on: every section is filled,
and no row does both.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import surelearn
from surelearn.auditing.sections.poisoning.work import _cut
from surelearn.auditing.seen import (
    LEAST_CHANCE,
    _chance,
    check_seen,
    stack,
    unfitted_of,
    with_seeds,
)
from surelearn.fingerprint import fingerprint_model
from surelearn.linear import DPLogisticRegression
from surelearn.selection.costs import best_constant
from surelearn.subject.registry import DecisionThreshold

ATTACKS = ("robustness", "poisoning", "membership", "attribution")
QUICK = {"ledger": False, "refits": 4, "effort": 0.4, "n_jobs": 1, "show_rows": True}
ONLY = {name: {**QUICK, "skip": [other for other in ATTACKS if other != name]} for name in ATTACKS}


def rows(n, seed, d=4):
    """Labels that follow three columns, and chance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0).astype(int)


@pytest.fixture(scope="module")
def seen():
    return rows(120, 0)


@pytest.fixture(scope="module")
def others():
    return rows(90, 1)


@pytest.fixture(scope="module")
def linear(seen):
    return LogisticRegression().fit(*seen)


def codes(result, key):
    return {finding.code for finding in result[key].findings}


def notes(result, key):
    return " ".join(result[key].notes)


# Every cell of the table.


@pytest.fixture(scope="module")
def module(seen):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    steps, X, y = (
        torch.optim.Adam(module.parameters(), lr=0.03),
        torch.tensor(seen[0]).float(),
        torch.tensor(seen[1]),
    )
    for _ in range(250):
        steps.zero_grad()
        torch.nn.functional.cross_entropy(module(X), y).backward()
        steps.step()
    return module


CLASSES = {"task": "classification", "classes": [0, 1]}


@pytest.mark.usefixtures("forked")
@pytest.mark.slow
def test_a_torch_module_whatever_the_jobs(module, seen, others):
    one, two = (
        surelearn.audit(module, *others, seen=seen, **{**CLASSES, **QUICK, "n_jobs": jobs})
        for jobs in (1, 2)
    )
    assert one.to_json() == two.to_json()


def test_all_four_sections_of_a_torch_module(module, seen, others):
    one = surelearn.audit(module, *others, seen=seen, **CLASSES, **QUICK)
    assert "SL601" in codes(one, "robustness")
    assert codes(one, "poisoning") == {"SL621", "SL622", "SL623"}
    assert codes(one, "membership") == {"SL641"}
    assert one["membership"].findings[0].numbers["low"] > 0.5
    assert "SL661" in codes(one, "attribution")
    assert "fine-tuned on 60 of the training rows" in notes(one, "poisoning")
    assert "measured on 90 held-back rows" in notes(one, "poisoning")
    assert "how this model was fitted is not known here" in notes(one, "membership")
    assert "training rows as the background" in notes(one, "attribution")
    assert "standard deviation in the fit rows" in notes(one, "robustness")
    assert not any("Not measured" in notes(one, key) for key in ATTACKS)
    influential = [int(row[0]) for row in one["poisoning"].tables[-1].rows]
    shown = [row[-2] for row in one["poisoning"].tables[-1].rows]
    # numbered among the rows seen
    assert shown == [str(seen[1][place - 1]) for place in influential]


def test_a_torch_module_names_its_outputs_in_their_order(module, seen, others):
    """Labels that sort the other way round change nothing that is measured."""
    names, asked = (
        np.array(["yes", "no"]),
        {**ONLY["membership"], "skip": ["robustness", "attribution"]},
    )
    plain = surelearn.audit(module, *others, seen=seen, **CLASSES, **asked)
    (X, y), (new, truth) = ((part, names[labels]) for part, labels in (seen, others))
    named = surelearn.audit(
        module, new, truth, seen=(X, y), task="classification", classes=["yes", "no"], **asked
    )
    for key, count in (("membership", 1), ("poisoning", 3)):
        found = [[finding.numbers for finding in result[key].findings] for result in (plain, named)]
        assert len(found[0]) == count
        assert found[0] == found[1]


@pytest.mark.usefixtures("forked")
def test_all_four_sections_of_a_forest_whose_seed_is_open(seen, others):
    forest = RandomForestClassifier(15).fit(*seen)
    before = fingerprint_model(forest)
    one, two = (
        surelearn.audit(forest, *others, seen=seen, **{**QUICK, "n_jobs": jobs}) for jobs in (1, 2)
    )
    assert one.to_json() == two.to_json()
    assert fingerprint_model(forest) == before
    assert "SL601" in codes(one, "robustness")
    assert codes(one, "poisoning") == {"SL621", "SL622"}
    assert codes(one, "membership") == {"SL641", "SL642"}
    assert one["membership"].findings[0].numbers["low"] > 0.6
    assert "SL661" in codes(one, "attribution")
    assert "The attacks were run on 120 training rows (members) and 90 certify rows" in notes(
        one, "membership"
    )
    assert one["split"].tables[0].rows == (("fit", "120"), ("certify", "90"))
    assert "vouches that" in notes(one, "split")
    assert one.numbers["seen"]["rows"] == 120
    assert one.rows == 90


def test_a_function_is_attacked_but_not_fitted_again(seen, others):
    forest = RandomForestClassifier(15, random_state=0).fit(*seen)
    result = surelearn.audit(lambda X: forest.predict(X), *others, seen=seen, **CLASSES, **QUICK)
    assert codes(result, "membership") == {"SL641"}
    assert result["membership"].findings[0].numbers["low"] > 0.5
    assert "how it was fitted, so that it could be fitted again, is not known here" in notes(
        result, "poisoning"
    )
    assert "SL601" in codes(result, "robustness")
    assert "SL661" in codes(result, "attribution")


def test_a_regression_and_a_private_learner(seen, others):
    (X, y), (new, truth) = seen, others
    forest = RandomForestRegressor(15, random_state=0).fit(X, y + X[:, 0])
    result = surelearn.audit(
        forest, new, truth + new[:, 0], seen=(X, y + X[:, 0]), **ONLY["membership"]
    )
    assert codes(result, "membership") == {"SL641", "SL642"}
    private = DPLogisticRegression(epsilon=1.0).fit(X, y)
    assert "SL643" in codes(
        surelearn.audit(private, new, truth, seen=seen, **ONLY["membership"]), "membership"
    )


def test_without_the_rows_the_page_asks_for_them(linear, others):
    result = surelearn.audit(linear, *others, **QUICK)
    assert "seen=(X_seen, y_seen)" in notes(result, "membership")
    assert "seen=" in notes(result, "poisoning")
    assert "split" not in [section.key for section in result.sections]


# What is taken from the rows seen.


def test_units_come_from_the_rows_seen(linear, seen, others):
    (X, y), asked = seen, ONLY["robustness"]
    one, wide = (
        surelearn.audit(linear, *others, seen=pair, **asked)["robustness"]
        for pair in (seen, (2 * X, y))
    )
    change = [section.findings[0].numbers["median_change"] for section in (one, wide)]
    assert change[1] == pytest.approx(change[0] / 2, rel=1e-3)
    alone = surelearn.audit(linear, *others, **asked)["robustness"]
    assert "No claim about new rows" in " ".join(alone.notes)
    assert "No claim about new rows" not in " ".join(one.notes)


def test_the_majority_is_that_of_the_rows_seen(linear, seen, others):
    skip = {**QUICK, "skip": list(ATTACKS)}
    known, unknown = (
        surelearn.audit(linear, *others, seen=pair, **skip).certificate for pair in (seen, None)
    )
    constants = [
        [c.label for c in each.claims if c.quantity == "baseline_risk"] for each in (known, unknown)
    ]
    assert constants[0] == [f"errors of always answering {int(seen[1].mean() > 0.5)}"]
    assert len(constants[1]) == 2


def test_a_moved_threshold_is_moved_in_the_refits_as_well(seen, others):
    model = FixedThresholdClassifier(
        LogisticRegression(), threshold=0.9, response_method="predict_proba"
    ).fit(*seen)
    result = surelearn.audit(model, *others, seen=seen, **ONLY["poisoning"])
    clean = {finding.code: finding.numbers for finding in result["poisoning"].findings}
    assert clean["SL621"]["clean"] == np.mean(model.predict(others[0]) != others[1])
    assert abs(clean["SL623"]["3%"] - clean["SL623"]["clean"]) < 0.1  # at 0.5 it would be far off
    context = type(
        "Context",
        (),
        {"model": model, "threshold": None, "options": type("Options", (), {"positive": None})},
    )
    assert _cut(context) == DecisionThreshold(1, 0.9, "predict_proba")  # pyright: ignore[reportArgumentType]


# Rows in both.


@pytest.mark.parametrize("again", [90, 20, 12])
def test_rows_that_were_fitted_on_do_not_certify(again, linear, seen, others, tmp_path):
    X, y = (
        np.concatenate([part[:again], new[again:]]) for part, new in zip(seen, others, strict=True)
    )
    ledger = tmp_path / "ledger.json"
    with pytest.raises(
        ValueError,
        match=rf"^{again} of the 90 rows of X and y are in seen as well, .* so pass others$",
    ):
        surelearn.audit(linear, X, y, seen=seen, **{**QUICK, "ledger": ledger})
    assert not ledger.exists()
    with pytest.raises(ValueError, match="are in seen as well"):
        surelearn.audit(linear, X, y, seen=(seen[0].astype(np.float32), seen[1]), **QUICK)


def test_copies_that_chance_gives_are_a_finding():
    """Iris has two equal flowers; a split that parts them is as good as any other."""
    X, y = load_iris(return_X_y=True)
    first, second = (np.flatnonzero((X[101] == X).all(axis=1))[i] for i in (0, 1))
    order = np.random.default_rng(0).permutation(np.setdiff1d(np.arange(150), [first, second]))
    train, certify = np.append(order[:99], first), np.append(order[99:], second)
    model = LogisticRegression(max_iter=500).fit(X[train], y[train])
    result = surelearn.audit(
        model, X[certify], y[certify], seen=(X[train], y[train]), **{**QUICK, "skip": list(ATTACKS)}
    )
    (finding,) = result["split"].findings
    assert finding.code == "SL104"
    assert finding.text.startswith(
        "1 of the 50 rows is equal to a row that the model was fitted on"
    )
    assert finding.text in " ".join(result["assumptions"].notes)


def test_honest_draws_from_few_distinct_rows_are_seldom_refused():
    refused = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        drawn = rng.geometric(0.02, size=150).astype(np.uint64)
        both = int(np.isin(drawn[:50], drawn[50:]).sum())
        assert both > 5
        refused += _chance(drawn, 50, both) < LEAST_CHANCE
    assert refused <= 2  # at 0.1%, more than 2 of 200 happens once in 800
    repeated = np.repeat(np.arange(40, dtype=np.uint64), 4)
    # each four times: which side they are on says nothing
    assert _chance(np.append(repeated, repeated[:40]), 40, 40) > 0.5


def test_copies_are_counted_in_any_number_of_rows():
    """Few rows used again are not refused, but warned of; of many, the normal distribution
    tells the same.
    """
    for n, again, low, high in (
        (210, 8, 0.001, 0.02),
        (210, 14, 0.0, 0.001),
        (9000, 2100, 0.0, 1e-9),
    ):
        hashes = np.arange(n, dtype=np.uint64)
        hashes[-again:] = hashes[:again]
        assert low <= _chance(hashes, 3 * n // 7, again) < high
    drawn = np.random.default_rng(0).integers(4000, size=6000).astype(np.uint64)
    both = int(np.isin(drawn[:2000], drawn[2000:]).sum())
    assert _chance(drawn, 2000, both) > 0.01
    assert _chance(drawn, 2000, both + 200) < LEAST_CHANCE


def test_few_rows_used_again_are_a_warning(linear, seen, others):
    X, y = (np.concatenate([part[:8], new[8:]]) for part, new in zip(seen, others, strict=True))
    (finding,) = check_seen(seen, linear, X, y, "classification", None, 0).findings
    assert finding.severity == "warning"
    assert finding.text.endswith("but seldom: see that none was used twice.")


AS_GIVEN = {
    "as it is": lambda part: part,
    "float32": lambda part: part.astype("float32"),
    "float16": lambda part: part.astype("float16"),
    "objects": lambda part: part.astype(object),
}


@pytest.mark.parametrize("frame", [True, False], ids=["frame", "array"])
@pytest.mark.parametrize("one", AS_GIVEN)
@pytest.mark.parametrize("other", AS_GIVEN)
def test_rows_in_another_type_are_the_same_rows(one, other, frame, seen):
    X, y = seen
    X = pd.DataFrame(X, columns=list("abcd")) if frame else X
    tree = DecisionTreeClassifier().fit(X, y)
    with pytest.raises(ValueError, match="120 of the 120 rows of X and y are in seen as well"):
        check_seen((AS_GIVEN[one](X), y), tree, AS_GIVEN[other](X), y, "classification", None, 0)


def test_columns_of_a_type_each_and_targets_in_another(seen):
    X, y = seen
    numbers = pd.DataFrame(
        {"a": X[:, 0], "b": (9 * X[:, 1]).round(), "c": np.where(X[:, 2] > 0, "x", "y")}
    )
    numbers.loc[3, "b"] = np.nan
    given = numbers.assign(
        a=numbers["a"].astype(str),
        b=numbers["b"].astype("Int64"),
        c=numbers["c"].astype("category"),
    )
    model = DecisionTreeClassifier().fit(X, y)
    for one, other in ((numbers, given), (given, numbers)):
        with pytest.raises(ValueError, match="120 of the 120 rows of X and y are in seen as well"):
            check_seen((one, y.astype(object)), model, other, y, "classification", None, 0)
    # words, of which none is read as a number
    text = numbers.assign(b="0" + numbers["b"].fillna(0).astype(str))
    assert (
        check_seen(
            (text, y), model, text.assign(b="0" + text["b"]), y, "classification", None, 0
        ).findings
        == ()
    )


@pytest.mark.parametrize(
    "kind", [np.asarray, lambda y: y.astype(object), pd.Categorical, pd.Series]
)
def test_the_majority_of_any_kind_of_label(kind, seen, others):
    words = np.array(["no", "yes"])
    model = LogisticRegression().fit(seen[0], words[seen[1]])
    found = check_seen(
        (seen[0], kind(words[seen[1]])),
        model,
        others[0],
        words[others[1]],
        "classification",
        None,
        0,
    )
    majority = best_constant(found.y)
    assert majority == words[int(seen[1].mean() > 0.5)]
    assert type(majority) is str


def test_sparse_rows_in_any_form(linear, seen, others):
    one, two = (
        surelearn.audit(
            linear, kind(others[0]), others[1], seen=(kind(seen[0]), seen[1]), **ONLY["poisoning"]
        )
        for kind in (csr_array, coo_array)
    )
    assert one.to_json() == two.to_json()
    assert codes(one, "poisoning") >= {"SL621", "SL622"}
    row = one["poisoning"].tables[-1].rows[0]
    dense = (
        surelearn.audit(linear, *others, seen=seen, **ONLY["poisoning"])["poisoning"]
        .tables[-1]
        .rows[0]
    )
    assert row == dense


def test_a_name_for_two_columns_is_refused(linear, seen, others):
    X, new = (pd.DataFrame(part[0], columns=["a", "b", "b", "c"]) for part in (seen, others))
    for pair, said in (((X, seen[1]), "seen"), (None, "X")):
        with pytest.raises(
            ValueError,
            match=f"^{said} has two columns named 'b': give every column a name of its own$",
        ):
            surelearn.audit(linear, new, others[1], seen=pair, **QUICK)


def test_another_set_of_rows_seen_is_another_look(linear, seen, others, tmp_path):
    asked = {**QUICK, "ledger": tmp_path / "ledger.json", "skip": list(ATTACKS)}
    pairs = (seen, seen, rows(120, 5), seen)
    assert [
        surelearn.audit(linear, *others, seen=pair, **asked).numbers["turn"] for pair in pairs
    ] == [1, 1, 2, 1]


# What cannot be.


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda X, _: X, r"^seen must be a pair \(X_seen, y_seen\)"),
        (lambda X, y: (X, y, y), "^seen must be a pair"),
        (
            lambda X, y: (X, y[:-1]),
            "^seen must have one target per row: it has 120 rows and targets of",
        ),
        (lambda X, y: (X, np.column_stack([y, y])), "^seen must have one target per row"),
        (
            lambda X, y: (X[:1], y[:1]),
            "^seen must hold all rows that the model was fitted on, not 1$",
        ),
        (
            lambda X, y: (X[:, :3], y),
            r"^seen must have the columns of X: it has the shape \(120, 3\), X \(90, 4\)$",
        ),
        (lambda X, y: (X[:, 0], y), "^seen must have the columns of X: it has the shape"),
        (
            lambda X, y: (pd.DataFrame(X), y),
            "^seen must come as X does: X is ndarray, seen is DataFrame$",
        ),
        (
            lambda X, y: (csr_array(X), y),
            "^seen must come as X does: X is ndarray, seen is csr_array$",
        ),
        (lambda X, y: (X, np.where(y, 1.0, np.nan)), "^seen must have a target in every row"),
        (lambda X, y: (X, [None, *y[1:]]), "^seen must have a target in every row"),
        (lambda X, y: (X, y + 1), "^seen has the label 2, which the model does not know"),
        (lambda X, y: (X, np.zeros_like(y)), "^seen has no row of class 1, which the model knows"),
    ],
)
def test_rows_that_it_cannot_have_been_fitted_on(given, said, linear, seen, others):
    with pytest.raises(ValueError, match=said):
        surelearn.audit(linear, *others, seen=given(*seen), **QUICK)


def test_targets_of_a_regression_are_finite_numbers(seen, others):
    model = RandomForestRegressor(3, random_state=0).fit(seen[0], seen[0][:, 0])
    for targets in (np.where(seen[1], np.inf, 1.0), seen[1].astype(str)):
        with pytest.raises(ValueError, match=r"^seen must have finite numbers as targets"):
            surelearn.audit(model, others[0], others[0][:, 0], seen=(seen[0], targets), **QUICK)


def test_rows_and_targets_are_as_many(linear, seen, others):
    with pytest.raises(
        ValueError, match=r"^X and y must have the same length: X has 90 rows, y has 89$"
    ):
        surelearn.audit(linear, others[0], others[1][:-1], seen=seen, **QUICK)


def test_lists_are_rows_as_well(linear, seen, others):
    lists = [[part.tolist() for part in pair] for pair in (seen, others)]
    one, two = (
        surelearn.audit(linear, *new, seen=old, **ONLY["membership"])
        for old, new in ((seen, others), lists)
    )
    assert one.to_json() == two.to_json()


def test_a_table_has_its_own_rows(seen):
    with pytest.raises(ValueError, match=r"^X, y and seen go with a fitted model"):
        surelearn.audit("iris", seen=seen, **QUICK)


# Tables, and what is fitted again.


def frame_of(X, y, words=("low", "high")):
    word = np.array(words)[(X[:, 3] > 0).astype(int)]
    return pd.DataFrame(
        {"a": X[:, 0], "b": X[:, 1], "c": pd.Categorical(word, categories=list(words))}
    ), np.where(y, "yes", "no")


def test_columns_by_name_and_categories_of_their_own(seen, others):
    (X, y), (new, truth) = frame_of(*seen), frame_of(*others)
    new["c"] = new["c"].cat.add_categories("never")
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    forest = make_pipeline(encoder, RandomForestClassifier(10, random_state=0)).fit(X, y)
    one, two = (
        surelearn.audit(forest, new, truth, seen=(part, y), **QUICK)
        for part in (X, X[["c", "a", "b"]])
    )
    assert one.to_json() == two.to_json()
    assert codes(one, "membership") == {"SL641", "SL642"}
    with pytest.raises(
        ValueError, match=r"^seen must have the columns of X: X has 'c', seen has not$"
    ):
        surelearn.audit(forest, new, truth, seen=(X.drop(columns="c"), y), **QUICK)
    with pytest.raises(
        ValueError, match=r"^seen must have the columns of X: seen has 'd', X has not$"
    ):
        surelearn.audit(forest, new, truth, seen=(X.assign(d=1), y), **QUICK)


def test_rows_are_stacked_whatever_they_came_in(seen, others):
    pl = pytest.importorskip("polars")
    X, new = seen[0], others[0]
    both = np.vstack([X, new])
    kinds = [pd.DataFrame, csr_array, np.asarray, lambda part: pl.DataFrame(part)]
    for kind in kinds:
        made = stack(kind(X), kind(new))
        assert type(made) is type(kind(X))
        assert np.array_equal(
            made.toarray() if hasattr(made, "toarray") else np.asarray(made), both
        )
    words = [pd.DataFrame({"c": pd.Categorical(part)}) for part in (["x", "y"], ["z"])]
    assert stack(*words)["c"].dtype.categories.tolist() == ["x", "y", "z"]


def test_what_can_be_fitted_again(seen):
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(3)).fit(*seen)
    again = unfitted_of(pipeline, 7)
    assert again[-1].random_state == 7
    assert pipeline[-1].random_state is None
    assert not hasattr(again[0], "mean_")
    assert unfitted_of(pipeline.predict, 7) is None
    assert unfitted_of(CalibratedClassifierCV(FrozenEstimator(pipeline)).fit(*seen), 7) is None
    stated = RandomForestClassifier(3, random_state=1)
    assert with_seeds(stated, 7) is stated
    found = check_seen(seen, pipeline, *rows(5, 3), "classification", None, 0)
    assert best_constant(found.y) == int(seen[1].mean() > 0.5)
