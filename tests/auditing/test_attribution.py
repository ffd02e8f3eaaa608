"""The attribution section: shares against sums by hand, for every kind of model, and whether
their order is settled.
"""

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import surelearn
from surelearn import jobs
from surelearn.attribution.costs import cost_of, letters_of
from surelearn.attribution.spread import spread_of
from surelearn.auditing.sections import ENTRIES
from surelearn.auditing.sections.attribution import words as attribution
from surelearn.auditing.sections.attribution import work as attribution_work
from surelearn.lacking import Lacking
from surelearn.linear import LogisticRegression, NaiveBayes

ONLY = {
    "ledger": False,
    "refits": 0,
    "curve_repeats": 0,
    "n_jobs": 1,
    "skip": ["robustness", "poisoning", "membership"],
}
ONLY["show_rows"] = True


@pytest.fixture
def kept(monkeypatch):
    """What the section was made of."""
    seen = {}
    write = attribution.section

    def section(context, results):
        seen.update(context=context, results=results)
        return write(context, results)

    entries = [replace(one, write=section) if one is attribution.ENTRY else one for one in ENTRIES]
    monkeypatch.setattr("surelearn.auditing.flow.ENTRIES", entries)
    return seen


def mixed_table(rows=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(10, 3, rows), "weight": rng.normal(size=rows)})
    frame["colour"] = rng.choice(["red", "green", "blue"], rows)
    frame["note"] = [
        " ".join(rng.choice(["good", "bad", "fast", "slow", "old", "new"], 3)) + f" {i}"
        for i in range(rows)
    ]
    frame["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(
        rng.integers(0, 900, rows), unit="D"
    )
    score = (
        (frame["size"] - 10) / 3
        + 2 * (frame["colour"] == "red")
        + frame["note"].str.contains("good")
        - 1.3
    )
    frame["y"] = np.where(score + 0.3 * rng.normal(size=rows) > 0, "yes", "no")
    return frame


def by_hand(ask, x, background):
    """Shapley values over all orders; what is not known yet comes from the background."""
    n, total = len(x), np.zeros(len(x))
    for order in permutations(range(n)):
        rows = np.array(background, dtype=float)
        before = ask(rows).mean()
        for j in order:
            rows[:, j] = x[j]
            after = ask(rows).mean()
            total[j] += after - before
            before = after
    return total / math.factorial(n)


def adds_up(results):
    for result in results:
        np.testing.assert_allclose(
            result["values"].sum(axis=1), result["full"] - result["empty"], atol=1e-6
        )


def run(context):
    tasks = attribution_work.tasks(context)
    results = jobs.run(tasks)
    section = attribution.section(context, results)
    assert section is not None
    return results, section


def test_a_pipeline_of_all_kinds_of_columns_is_exact_in_the_users_columns(kept):
    result = surelearn.audit(mixed_table(), target="y", models="logistic regression", **ONLY)
    section, context = result["attribution"], kept["context"]
    facts, model = kept["results"][0]["facts"], context.model
    assert set(facts["names"]) == {"size", "weight", "colour", "note", "day"}
    assert facts["words"] == "score of yes"
    assert "they are exact" in section.notes[1]
    adds_up(kept["results"])
    rows, truth = context.rows("certify")
    right = {
        kind: model.predict(rows.iloc[[row]])[0] == truth[row]
        for kind, row in facts["picked"].items()
    }
    assert (right["typical"], right["wrong"]) == (True, False)
    margins = np.abs(model.decision_function(rows))
    assert facts["picked"]["least certain"] == margins.argmin()
    row = facts["picked"]["typical"]
    x = context.rows("certify")[0].iloc[[row]]
    pool = np.random.default_rng(context.seed("attribution/background")).permutation(
        len(context.rows("train")[1])
    )
    background = context.rows("train")[0].iloc[pool[:200]]
    colour = background.copy()
    colour["colour"] = x["colour"].iloc[0]
    # linear: any order
    expected = model.decision_function(colour).mean() - model.decision_function(background).mean()
    found = np.mean(
        [r["values"][facts["rows"], facts["names"].index("colour")] for r in kept["results"]]
    )
    assert found == pytest.approx(expected, abs=1e-9)
    assert expected != pytest.approx(0, abs=1e-3)
    (table,), (chart,) = section.tables, section.charts
    assert {row[0].partition(", row ")[0] for row in table.rows if row[0]} >= {
        "typical",
        "least certain",
        "wrong",
    }
    assert "colour" in chart.data["names"]
    assert [finding.code for finding in section.findings] == ["SL661"]


MODELS = {
    "forest": (RandomForestClassifier(10, random_state=0), "probability of b", "predict_proba"),
    "boosting": (
        GradientBoostingClassifier(n_estimators=10, random_state=0),
        "score of b",
        "decision_function",
    ),
    "svm": (SVC(), "score of b", "decision_function"),
    "linear": (Peer(), "score of b", "decision_function"),
    "ours": (
        LogisticRegression(regularization=0.01, random_state=0),
        "score of b",
        "decision_function",
    ),
    "mixing": (make_pipeline(PCA(2), Peer()), "score of b", "decision_function"),
}


@pytest.fixture(scope="module")
def plane():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(240, 3))
    return X, np.where(X[:, 0] * X[:, 1] + X[:, 2] > 0, "b", "a")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("positive", [None, "a"])
def test_fitted_models_are_explained_as_by_hand(name, positive, plane, kept):
    X, y = plane
    model, words, method = MODELS[name]
    model.fit(X[::2], y[::2])
    surelearn.audit(model, X[1::2], y[1::2], positive=positive, **ONLY)
    results, facts = kept["results"], kept["results"][0]["facts"]
    assert facts["words"] == (words if positive is None else words.replace("of b", "of a"))
    assert facts["method"] != "sampling"
    tasks = attribution_work.tasks(kept["context"])
    played = tasks[0].arguments["played"]

    def ask(rows):
        said = getattr(model, method)(rows)
        said = said[:, 1] if said.ndim == 2 else said
        return said if positive is None else (1 - said if method == "predict_proba" else -said)

    for row in (0, 3):
        expected = by_hand(ask, played.X[row], played.background)
        np.testing.assert_allclose(results[0]["values"][row], expected, atol=1e-8)


def test_a_function_with_many_columns_is_sampled_and_near_the_truth(kept):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 20))

    def product(rows):
        return rows[:, 0] * rows[:, 1] + 3 * rows[:, 2]

    result = surelearn.audit(product, X, product(X) + 0.1, task="regression", effort=0.3, **ONLY)
    facts, results = kept["results"][0]["facts"], kept["results"]
    assert facts["method"] == "sampling"
    assert (
        "no closed form is known for this prediction, and 2^20 coalitions are too many"
        in result["attribution"].notes[1]
    )
    adds_up(results)
    tasks = attribution_work.tasks(kept["context"])
    arguments = {
        key: value for key, value in tasks[0].arguments.items() if key not in ("facts", "seed")
    }
    drawn = [attribution_work.shares(**arguments, seed=seed)["values"] for seed in (1, 1, 2)]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    found = np.stack([r["values"] for r in results])
    background = np.concatenate([task.arguments["played"].background for task in tasks])
    expected = np.array(
        [by_hand(product, x[:3], background[:, :3]) for x in tasks[0].arguments["played"].X]
    )
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    apart = np.abs(found.mean(axis=0)[:, :3] - expected)
    assert (apart <= 6 * error[:, :3] + 1e-9).mean() > 0.98
    assert np.abs(found[:, :, 3:]).max() < 1e-9
    assert result["attribution"].findings[0].numbers["leading"][0] == "x2"


def test_labels_of_a_plain_function_are_shared_out(kept, plane):
    X, y = plane
    said = surelearn.audit(
        lambda rows: np.where(rows[:, 0] > 0, "b", "a"),
        X,
        y,
        task="classification",
        classes=["a", "b"],
        **ONLY,
    )
    facts = kept["results"][0]["facts"]
    assert facts["words"] == "answer b (1) or another (0)"
    assert "SL662" in [finding.code for finding in said["attribution"].findings]
    assert "least certain" not in facts["picked"]
    adds_up(kept["results"])


def test_regression_and_a_threshold(kept):
    result = surelearn.audit(
        "diabetes", models={"forest": RandomForestRegressor(5, random_state=0)}, **ONLY
    )
    assert "prediction of progression" in result["attribution"].notes[0]
    picked = [row[0] for row in result["attribution"].tables[0].rows][::4]
    assert [text.partition(", row ")[0] for text in picked] == [
        "typical",
        "largest",
        "farthest off",
    ]
    adds_up(kept["results"])
    surelearn.audit(
        "breast_cancer", models="logistic regression", positive="malignant", threshold=0.2, **ONLY
    )
    assert kept["results"][0]["facts"]["method"] == "closed form"
    assert kept["results"][0]["facts"]["words"] == "score of malignant"


def test_a_kernel_machine_and_torch_modules(kept, plane):
    torch = pytest.importorskip("torch")
    frame = pd.DataFrame(plane[0], columns=["p", "q", "r"]).assign(y=plane[1])
    surelearn.audit(frame, target="y", models="kernel machine", **ONLY)
    adds_up(kept["results"])
    fitted = surelearn.audit(Peer().fit(*plane), *plane, **ONLY)
    assert fitted["attribution"].charts
    context = kept["context"]
    torch.manual_seed(0)
    for outputs in (1, 2):
        module = torch.nn.Sequential(
            torch.nn.Linear(3, 8),
            torch.nn.Tanh(),
            torch.nn.Dropout(0.5),
            torch.nn.Linear(8, outputs),
        )
        results, section = run(replace(context, model=module))
        assert results[0]["facts"]["words"] == "score of b"
        assert "exact, over all coalitions" in section.notes[1]
        np.testing.assert_allclose(
            results[0]["values"].sum(axis=1), results[0]["full"] - results[0]["empty"], atol=1e-5
        )
        assert module.training


def test_many_columns_play_in_blocks_and_too_much_work_is_refused(kept, monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 100))

    def peak(rows):
        return np.maximum(rows[:, 0], rows[:, 50])

    result = surelearn.audit(peak, X, peak(X), task="regression", effort=0.1, **ONLY)
    names = kept["results"][0]["facts"]["names"]
    assert names[0] == "x0 to x3"
    assert len(names) == 30
    assert "30 blocks of neighboring features are players" in " ".join(result["attribution"].notes)
    refused = surelearn.audit(peak, X, peak(X), task="regression", effort=1e-3, **ONLY)
    (note,) = refused["attribution"].notes
    assert note.startswith(
        "Not measured: 30 columns need more predictions than the work allows: pass `--effort 0."
    )
    enough = float(note.rpartition(" ")[2].strip("`."))
    assert surelearn.audit(peak, X, peak(X), task="regression", effort=enough, **ONLY)[
        "attribution"
    ].charts


def test_where_nothing_can_be_shared_out(kept, plane):
    X, y = plane
    audited = surelearn.audit(
        lambda Z: np.full(len(Z), 0.1), X, X[:, 0], task="regression", **ONLY
    )["attribution"]
    rng = np.random.default_rng(0)
    # rounding
    noisy = [
        {**result, "values": rng.normal(0, 1e-17, result["values"].shape)}
        for result in kept["results"]
    ]
    for flat in (audited, attribution.section(kept["context"], noisy)):
        assert flat is not None
        assert flat.notes == (
            "The prediction is the same for every row: every Shapley value is 0.",
        )
        assert not flat.charts
        assert not flat.findings
    surelearn.audit(Peer().fit(X, y), X, y, **ONLY)
    one = replace(kept["context"], X=X[:1], y=y[:1])
    flat = replace(kept["context"], X=X.reshape(-1, 3, 1))
    for context, why in ((one, "one row only"), (flat, "for tables")):
        said = attribution_work.tasks(context)
        assert isinstance(said, Lacking)
        assert why in said.reason
    two = surelearn.audit(Peer().fit(X, y), X[:2], y[:2], **ONLY)["attribution"]
    assert "one background row" in " ".join(two.notes)


class Fickle(RegressorMixin, BaseEstimator):
    """Knows real rows, and fails on mixed ones."""

    def __init__(self, known, how):
        self.known, self.how = known, how

    def predict(self, rows):
        seen = {tuple(row) for row in self.known}
        if all(tuple(row) in seen for row in np.asarray(rows)):
            return np.zeros(len(rows))
        if self.how == "raises":
            raise RuntimeError("never seen such a row")
        return np.full(len(rows), np.nan)


@pytest.mark.parametrize(
    ("how", "words"), [("raises", "never seen such a row"), ("NaN", "NaN or infinite")]
)
def test_a_model_that_fails_on_mixed_rows_is_a_sentence(how, words, plane):
    X = plane[0]
    result = surelearn.audit(Fickle(X, how), X, X[:, 0], **ONLY)
    (note,) = result["attribution"].notes
    assert note.startswith("Not measured: ")
    assert words in note


def test_labels_that_are_nan_for_mixed_rows_are_a_sentence(plane):
    X, y = plane
    known = dict(zip(map(tuple, X), (y == "b").astype(float), strict=True))

    def at_home(rows):
        return np.array([known.get(tuple(row), np.nan) for row in np.asarray(rows)])

    result = surelearn.audit(
        at_home, X, (y == "b").astype(float), task="classification", classes=[0.0, 1.0], **ONLY
    )
    (note,) = result["attribution"].notes
    assert note.startswith("Not measured: ")
    assert "the model returned NaN for changed rows" in note


def test_a_sample_has_its_reason(kept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 30))
    model = SVC(kernel="sigmoid").fit(X, X[:, 0] > 0)
    result = surelearn.audit(model, X, X[:, 0] > 0, effort=0.3, **ONLY)
    assert kept["results"][0]["facts"]["method"] == "sampling"
    assert (
        "no closed form is known for this score, and 2^30 coalitions are too many"
        in result["attribution"].notes[1]
    )


@pytest.mark.usefixtures("forked")
def test_jobs_do_not_matter_and_it_can_be_switched_off(plane):
    X, y = np.tile(plane[0], 5), plane[1]
    model = SVC(kernel="sigmoid").fit(X[::2], y[::2])
    one, two = (
        surelearn.audit(model, X, y, effort=0.1, **{**ONLY, "n_jobs": jobs}) for jobs in (1, 2)
    )
    assert "sampled" in one["attribution"].notes[1]
    assert one.to_json() == two.to_json()
    other = surelearn.audit(model, X, y, effort=0.1, seed=1, **ONLY)
    assert other["attribution"].charts != one["attribution"].charts
    off = surelearn.audit(model, X, y, **{**ONLY, "skip": [*ONLY["skip"], "attribution"]})
    assert "attribution" not in [section.key for section in off.sections]


def ranked(values):
    names = tuple("abcde")[: values.shape[2]]
    return attribution.ranking({"names": names, "method": "sampling"}, spread_of(values, 0))


def test_an_order_that_is_not_settled_is_a_finding():
    rng = np.random.default_rng(4)
    rows, noise = rng.normal(size=(40, 5)) * [9, 5, 3, 3, 0.5], 0.01 * rng.normal(size=(8, 40, 5))
    rows[:, 3] = rng.permutation(rows[:, 2])
    finding = ranked(rows + noise)
    assert finding is not None
    assert finding.severity == "notice"
    assert finding.text.startswith("The feature ranking is not stable. a, b and ")
    assert set(finding.numbers["leading"][2:]) | set(finding.numbers["contenders"]) == {"c", "d"}
    assert finding.text.endswith("More samples (`--effort`) may settle it.")
    rows[:, 3] = rows[:, 4]
    settled = ranked(rows + noise)
    assert settled is not None
    assert (settled.severity, settled.numbers["leading"], settled.numbers["same"]) == (
        "info",
        ("a", "b", "c"),
        1.0,
    )
    doubtful = ranked(rows + 30 * rng.normal(size=(8, 1, 5)))  # the backgrounds do not agree
    assert doubtful is not None
    assert doubtful.numbers["same"] < 0.95
    assert ranked(rows[None, :, :1] + noise[:, :, :1]) is None


def test_standard_errors_are_those_of_means():
    rng = np.random.default_rng(5)
    rows = rng.exponential(size=(1, 50, 2)) + np.zeros((8, 1, 1))
    spread = spread_of(rows, 0, resamples=4000)
    np.testing.assert_allclose(spread.error, rows[0].std(axis=0) / np.sqrt(50), rtol=0.08)
    backgrounds = 10 + rng.normal(size=(8, 1, 2)) + np.zeros((1, 50, 1))
    spread = spread_of(backgrounds, 0, resamples=4000)
    np.testing.assert_allclose(spread.error, backgrounds[:, 0].std(axis=0) / np.sqrt(8), rtol=0.08)
    np.testing.assert_allclose(spread.importance, backgrounds.mean(axis=(0, 1)))
    opposite = np.array([1.0, -1.0] * 4)[:, None, None] + np.zeros((1, 50, 2))
    # the share against all of them together is 0
    assert not spread_of(opposite, 0).importance.any()


def test_work_is_counted_from_what_a_model_holds(plane):
    X, y = plane

    def cost(model):
        return cost_of(model.fit(X, y), 3, False)

    few, many = (RandomForestClassifier(trees, random_state=0) for trees in (100, 200))
    assert 1.8 * cost(few) < cost(many) < 2 * cost(few)
    assert cost(Peer()) < cost(SVC())
    assert cost(make_pipeline(PCA(2), SVC())) > cost(make_pipeline(PCA(2), Peer()))


def test_letters_of_text_are_work():
    """A prediction for a long text costs its letters; names and categories are no texts."""
    letters = 200 * "word "
    frame = pd.DataFrame({"text": [letters, None], "kind": ["red", "blue"], "size": [1.0, 2.0]})
    assert letters_of(frame) == len(letters) / 2
    assert letters_of(frame[["kind", "size"]]) == letters_of(np.zeros((2, 2))) == 0
    cheap, dear = (cost_of(Peer(), 3, True, count) for count in (0.0, letters_of(frame)))
    assert dear > 20 * cheap


def test_a_model_of_words_is_seen_through(kept):
    table = mixed_table()[["size", "colour", "y"]]
    table["make"] = [
        None if i % 17 == 0 else "ab"[size > 9] for i, size in enumerate(table["size"])
    ]
    words = make_column_transformer(("passthrough", ["colour", "make"]), ("passthrough", ["size"]))
    models = {"naive Bayes": make_pipeline(words, NaiveBayes(categorical=[0, 1]))}
    page = surelearn.audit(table, target="y", models=models, **ONLY)
    section = next(section for section in page.sections if section.key == "attribution")
    assert "exact: the score of yes is a sum over features" in " ".join(section.notes)
    model, X = kept["context"].model, kept["context"].rows("certify")[0]
    assert list(X.columns) == ["size", "colour", "make"]
    shares = model[-1].contributions(model[:-1].transform(X))[:, [2, 0, 1]]
    for part in kept["results"]:  # against the background's mean, which moves all rows alike
        for j in (1, 2):
            apart = np.subtract.outer(*[np.unique(shares[:, j])] * 2)
            found = np.subtract.outer(*[np.unique(part["values"][:, j].round(9))] * 2)
            np.testing.assert_allclose(found, apart, atol=1e-8)
