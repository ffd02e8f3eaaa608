"""The section on small changes: every kind of model, soundness of what is proved, and what
cannot be measured.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import surelearn
from surelearn.auditing.context import Context
from surelearn.auditing.options import Options
from surelearn.auditing.sections import skippable
from surelearn.auditing.sections.robustness import words as robustness
from surelearn.auditing.sections.robustness.words import SMALL, proved_claims, right_and_certified
from surelearn.auditing.sections.robustness.work import prove, tasks
from surelearn.auditing.writing import write_sections
from surelearn.certification import certify
from surelearn.jobs import Runner
from surelearn.lacking import Lacking
from surelearn.linear import LogisticRegression, Ridge
from surelearn.robust.tables import moves_of, view_of
from surelearn.selection.preparation import preparation
from surelearn.selection.split import Split

KINDS = {"a": "number", "b": "number", "job": "category", "flag": "number", "c": "number"}

FOREST = RandomForestClassifier(10, random_state=0)


def table(n=240, seed=0, missing=True):
    """Two numbers decide, a category shifts; one number has holes and another only two values."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n) * 10,
            "b": rng.integers(0, 20, n),
            "job": rng.choice(["cook", "nurse", "pilot"], n),
            "flag": rng.integers(0, 2, n),
            "c": rng.normal(size=n),
        }
    )
    score = (
        frame["a"] / 10
        + (frame["b"] - 10) / 6
        + 0.7 * (frame["job"] == "cook")
        + 0.3 * rng.normal(size=n)
    )
    if missing:
        frame.loc[::7, "c"] = np.nan
    return frame, np.where(score > 0, "yes", "no"), 100 * score.to_numpy()


class Column:
    used = True

    def __init__(self, name):
        self.name, self.kind = name, KINDS[name]


def context_of(model, X, y, task: Any = "classification", train: int | None = None):
    """An audit's context for a fitted model; with ``train``, how many of the first rows it was
    fitted on.
    """
    split, new = None, np.arange(len(y))
    if train is not None:
        new, none = np.arange(train, len(y)), np.arange(0)
        split = Split(
            fit=np.arange(train),
            select=none,
            certify=new,
            keys=np.arange(len(y), dtype=np.uint64),
            order="hash",
        )
    held = X.iloc[new] if hasattr(X, "iloc") else X[new]
    return Context(
        title="it", target="y", task=task, X=X, y=y, groups=None,
        columns=tuple(Column(name) for name in X.columns) if train is not None else (),
        findings=(), split=split, selection=None, model=model, options=Options(), runner=Runner(n_jobs=1),
        certificate=certify(model, held, y[new], task=task, classes=np.unique(y)),
    )  # fmt: skip


def fitted(learner, train=140, seed=0, regression=False):
    X, labels, amounts = table(seed=seed)
    y = amounts if regression else labels
    model = make_pipeline(preparation(KINDS), learner).fit(X[:train], y[:train])
    return context_of(model, X, y, "regression" if regression else "classification", train)


def section_of(context):
    (section,) = write_sections([robustness.ENTRY], context)
    return section


def check_shape(section):
    (chart,) = section.charts
    assert list(chart.data["x"]) == list(robustness.RADII)
    assert np.all(np.diff(chart.data["y"]) <= 0)
    (finding,) = [finding for finding in section.findings if finding.code == "SL601"]
    assert finding.numbers["attacked"] <= finding.numbers["accuracy"]
    assert chart.data["y"][2] == pytest.approx(finding.numbers["attacked"])
    return chart


@pytest.mark.parametrize("learner", [LogisticRegression(regularization=0.01), Peer(), SVC()])
def test_gradient_and_certificate_on_one_chart(learner):
    section = section_of(fitted(learner))
    chart = check_shape(section)
    assert np.all(np.array(chart.data["low"]) <= np.array(chart.data["y"]) + 1e-12)
    assert chart.data["low"][0] == chart.data["y"][0]
    if not isinstance(learner, SVC):  # exact, but for the range and missing numbers
        assert np.max(np.array(chart.data["y"]) - np.array(chart.data["low"])) < 0.1
        assert chart.data["low"][4] > 0.3
    (changes,) = section.tables
    new, *rows = section.claims
    assert (new.theorem, new.surely()) == ("robust_accuracy", "95%")
    assert new.covers.rows.startswith("sha256:")
    assert new.inputs["n"] == len(changes.rows) + 97  # every certify row
    assert {claim.surely() for claim in rows} == {"always"}
    assert {claim.theorem for claim in rows} <= {"linear_radius", "kernel_radius"}
    assert [claim.covers.rows for claim in rows] == [f"row {row[0][1:]}" for row in changes.rows]
    assert all(claim.recompute() == claim.value for claim in section.claims)
    assert "(PGD)" in section.notes[0]
    assert "The attack changes 3 of 5 columns (a, b, c)" in section.notes[1]
    assert len(changes.rows) == 3


@pytest.mark.parametrize("learner", [FOREST, HistGradientBoostingClassifier(max_iter=20)])
def test_trees_are_attacked_by_predictions(learner):
    section = section_of(fitted(learner))
    chart = check_shape(section)
    assert "low" not in chart.data
    assert chart.data["y"][-1] < chart.data["y"][0] - 0.1
    assert "has no gradient: it is made of trees, whose answers change in steps" in section.notes[0]
    assert section.notes[2].startswith("Nothing is proved about the model itself")
    (changes,) = section.tables
    assert changes.rows


def test_changes_turn_rows_stay_in_range_and_are_whole_where_numbers_are():
    for learner in (LogisticRegression(regularization=0.01), FOREST):
        context = fitted(learner)
        task = tasks(context)[0]
        result, X, moves = (
            task.function(**task.arguments),
            task.arguments["X"],
            task.arguments["moves"],
        )
        assert moves.names == ("a", "b", "c")
        assert result["changes"]
        for change in result["changes"]:
            row = X.iloc[[change["row"]]].astype({"b": float})
            assert (
                change["before"]
                == context.model.predict(row)[0]
                == task.arguments["y"][change["row"]]
            )
            for name, old, new in change["columns"]:
                assert row[name].iloc[0] == old
                j = moves.names.index(name)
                assert moves.low[j] <= new <= moves.high[j]
                assert name != "b" or abs(new - round(new)) < 1e-9 or change["distance"] > 0
                row[name] = new
            assert context.model.predict(row)[0] == change["after"] != change["before"]
        whole = [
            new for change in result["changes"] for name, _, new in change["columns"] if name == "b"
        ]
        assert sum(new == round(new) for new in whole) >= 0.7 * len(whole) > 0


def test_a_row_turned_lies_beyond_what_is_proved_of_it():
    for learner in (LogisticRegression(regularization=0.01), SVC()):
        context = fitted(learner)
        attack, proof = tasks(context)[:2]
        distance = attack.function(**attack.arguments)["distance"]
        radii = proof.function(**proof.arguments)["radii"]
        assert (distance[distance > 0] >= radii["values"][distance > 0]).all()
        assert np.median(radii["values"]) > 0.02


def test_a_proof_that_costs_too_much_is_left_out():
    context = fitted(SVC())
    X, y = context.rows("certify")
    result = prove(context.model, X, moves_of(KINDS, X, X), None, 1e-9, 0)
    assert "takes more work than allowed" in result["radii"].reason
    assert proved_claims(context, result, y, [], np.arange(len(y)), SMALL) == ()


def test_the_radius_of_a_linear_model_is_the_formula_in_the_users_units():
    context = fitted(Peer())
    proof = tasks(context)[1]
    X, radii = proof.arguments["X"], proof.function(**proof.arguments)["radii"]
    prepare, learner = context.model[0], context.model[-1]
    names, train = list(prepare.get_feature_names_out()), context.rows("train")[0]
    slopes = [learner.coef_[0][names.index(name)] / prepare.transformers_[0][1][-1].scale_[j] * train[name].std(ddof=0)
              for j, name in enumerate(["a", "b", "flag", "c"]) if name != "flag"]  # fmt: skip
    expected = np.abs(context.model.decision_function(X)) / np.abs(slopes).sum()
    assert radii["values"] == pytest.approx(expected, rel=1e-9)


def test_what_is_proved_about_new_rows_holds():
    X, y, _ = table(n=140, missing=False)
    model = make_pipeline(preparation(KINDS), LogisticRegression(regularization=0.01)).fit(X, y)
    many, labels, _ = table(n=20000, seed=5, missing=False)
    context = context_of(
        model,
        pd.concat([X, many[:80]], ignore_index=True),
        np.concatenate([y, labels[:80]]),
        train=140,
    )
    radii = prove(model, many, moves_of(KINDS, X, many), None, 1.0, 0)["radii"]
    rng, trials, wrong = np.random.default_rng(1), 400, 0
    for _ in range(trials):
        some = rng.permutation(len(many))[:80]
        drawn = {
            "radii": {**radii, **{name: radii[name][some] for name in ("values", "predicted")}},
            "smoothed": None,
        }
        (claim,) = proved_claims(context, drawn, labels[some], [], some, SMALL)
        wrong += claim.value > right_and_certified(radii, labels, SMALL).mean()
    assert 0 < wrong <= trials * 0.05 + 3 * np.sqrt(trials * 0.05 * 0.95)


def test_a_decision_threshold_is_the_models_own():
    from sklearn.model_selection import FixedThresholdClassifier

    for learner, gradient in ((Peer(), True), (FOREST, False)):
        for positive in ("yes", "no"):
            X, y, _ = table()
            pipeline = make_pipeline(preparation(KINDS), learner)
            model = FixedThresholdClassifier(
                pipeline, threshold=0.2, pos_label=positive, response_method="predict_proba"
            )
            context = context_of(model.fit(X[:140], y[:140]), X, y, train=140)
            moves = moves_of(KINDS, X, X)
            view = view_of(context.model, X, moves)
            assert isinstance(view.f.pullback, Lacking) != gradient
            assert (view.f.predict(view.rows) == context.model.predict(X)).all()
        check_shape(section_of(context))


def test_a_regressor_moves():
    linear = fitted(Ridge(regularization=0.01, regularize_intercept=False), regression=True)
    section = section_of(linear)
    (finding,) = section.findings
    assert finding.code == "SL603"
    scale = linear.model[0].transformers_[0][1][-1].scale_[[0, 1, 3]]
    spread = np.nanstd(linear.rows("train")[0][["a", "b", "c"]].to_numpy(dtype=float), axis=0)
    expected = 0.1 * np.abs(linear.model[-1].coef_[[0, 1, 3]] / scale * spread).sum()
    assert finding.numbers["largest_change"] == pytest.approx(expected, rel=1e-6)
    forest = section_of(fitted(RandomForestRegressor(20, random_state=0), regression=True))
    assert forest.findings[0].numbers["mean_change"] > 0
    assert np.all(np.diff(forest.charts[0].data["y"]) >= 0)
    assert "Nothing is proved" in forest.notes[2]


def test_eigenpro():
    pytest.importorskip("torch")
    from surelearn.kernel import Compute
    from surelearn.kernel.eigenpro import EigenProClassifier
    from surelearn.kernel.functions import Gaussian

    section = section_of(
        fitted(
            EigenProClassifier(
                Gaussian(bandwidth=1.0), regularization=0.01, compute=Compute(device="cpu")
            )
        )
    )
    chart = check_shape(section)
    assert 0 < chart.data["low"][1] <= chart.data["y"][1]
    assert "(PGD)" in section.notes[0]
    assert section.claims[0].theorem == "robust_accuracy"
    assert {claim.theorem for claim in section.claims[1:]} == {"kernel_radius"}


def test_a_torch_module_is_attacked_by_gradients_and_smoothed():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)) * [1.0, 5.0, 1.0, 1.0]
    y = (X[:, 0] + X[:, 1] / 5 > 0).astype(int)
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    with torch.no_grad():
        module[0].weight.zero_()
        module[0].weight[0] = torch.tensor([1.0, 0.2, 0.0, 0.0])
        module[0].bias.zero_()
        module[2].weight.zero_()
        module[2].weight[1, 0], module[2].weight[0, 0] = 1.0, -1.0
        module[2].bias.zero_()
    section = section_of(context_of(module, X, y))
    chart = check_shape(section)
    assert chart.data["y"][0] == 1.0
    # the boundary is a plane
    expected = np.abs(X[:, 0] + X[:, 1] / 5) / (X[:, 0].std() + X[:, 1].std() / 5)
    assert chart.data["y"][2] == pytest.approx((expected > 0.1).mean(), abs=0.03)
    assert 0.3 < chart.data["low"][2] <= chart.data["y"][2]
    assert any(
        "randomized smoothing" in claim.label and claim.surely() == "99.9%"
        for claim in section.claims
    )
    assert not any("new rows" in claim.label for claim in section.claims)
    assert "No claim about new rows" in section.notes[2]


def test_a_plain_function_and_an_array():
    X = np.random.default_rng(0).normal(size=(100, 3))
    section = section_of(
        context_of(lambda X: (X[:, 1] > 0.2).astype(int), X, (X[:, 1] > 0.2).astype(int))
    )
    chart = check_shape(section)
    assert chart.data["y"][-1] < 0.75
    near = np.abs(X[:, 1] - 0.2) / X[:, 1].std()
    assert chart.data["y"][4] == pytest.approx((near > 0.2).mean(), abs=0.1)
    model = make_pipeline(StandardScaler(), Peer()).fit(X, X[:, 1] > 0)
    assert (
        "under a white-box attack by projected gradient descent (PGD)"
        in (section_of(context_of(model, X, X[:, 1] > 0)).notes[0])
    )


def test_categories_alone():
    X, y, _ = table()
    model = make_pipeline(preparation({"job": "category"}), Peer()).fit(X[["job"]], y)
    section = section_of(context_of(model, X[["job"]], y, train=140))
    assert section.notes[0].startswith("Not measured: no column holds numbers")


def test_another_category_turns_rows():
    context = fitted(Peer())
    (finding,) = [finding for finding in section_of(context).findings if finding.code == "SL602"]
    task = tasks(context)[-1]
    X, y, turned = task.arguments["X"], task.arguments["y"], 0
    before = context.model.predict(X)
    for i in np.flatnonzero(before == y):
        rows = pd.concat([X.iloc[[i]].assign(job=job) for job in ("cook", "nurse", "pilot")])
        turned += (context.model.predict(rows) != y[i]).any()
    assert finding.numbers["share"] == pytest.approx(turned / (before == y).sum())


def not_at_home(X):
    raise RuntimeError("the model is not at home")


def test_models_that_cannot_be_measured_get_a_sentence():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    context = replace(
        context_of(lambda X: (X[:, 0] > 0).astype(int), X, y), options=Options(show_rows=True)
    )
    assert "the model is not at home" in section_of(replace(context, model=not_at_home)).notes[0]
    nan = replace(context, model=lambda X: np.full(len(X), np.nan))
    assert section_of(nan).notes[0] == "Not measured: the model predicts NaN"
    nan = replace(nan, task="regression", y=X[:, 0])
    assert (
        section_of(nan).notes[0] == "Not measured: the model predicts numbers that are not finite"
    )
    one = replace(context, model=RandomForestClassifier(2).fit(X, np.ones(len(X))))
    assert "one class only" in section_of(one).notes[0]
    flat = replace(context, model=lambda X: np.zeros((len(X), 2)))
    assert "predictions of shape (60, 2)" in section_of(flat).notes[0]
    sparse = replace(context, X=X[:, :0])
    assert "no column holds numbers" in section_of(sparse).notes[0]


@pytest.mark.usefixtures("forked")
def test_the_page_does_not_depend_on_jobs_and_can_be_without():
    frame, y, _ = table(200)
    others = [key for key in skippable() if key != "robustness"]
    options = {
        "target": "y",
        "models": {"it": clone(FOREST)},
        "ledger": False,
        "refits": 0,
        "curve_repeats": 0,
        "skip": others,
    }
    one, two = (surelearn.audit(frame.assign(y=y), n_jobs=jobs, **options) for jobs in (1, 2))
    assert one.to_json() == two.to_json()
    assert "standard deviations" in one["robustness"].findings[0].text
    assert one["robustness"].charts[0].title in one.to_html()
