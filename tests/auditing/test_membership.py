"""What a model gives away about its rows is found, what it does not is not, and ε stands where
it is proved.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import surelearn
from surelearn.attacks.canary import CanaryScores, canary_scores, seeded
from surelearn.auditing.context import Context
from surelearn.auditing.options import Options
from surelearn.auditing.sections.membership import epsilon as membership_epsilon
from surelearn.auditing.sections.membership import words as membership
from surelearn.auditing.sections.membership.work import tasks
from surelearn.auditing.writing import write_sections
from surelearn.certificate import Certificate, Facts
from surelearn.claim import Claim
from surelearn.fingerprint import fingerprint_model
from surelearn.jobs import Runner
from surelearn.linear import DPLogisticRegression, LogisticRegression, Ridge
from surelearn.plain import show
from surelearn.report import Section
from surelearn.selection.split import Split
from surelearn.subject import Task
from surelearn.subject.refitting import fit_quietly

FACTS = Facts(subject="it", setting="", hashes={}, options={}, values={})
OTHERS = ("robustness", "poisoning", "attribution")


def noise(n=300, d=8, seed=0, task: Task = "classification"):
    """Labels that follow the first column a little: what a model knows beyond that, it
    memorized.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    strength = X[:, 0] + rng.normal(size=n)
    return X, (strength > 0).astype(int) if task == "classification" else strength


def context_of(
    model, *, task: Task = "classification", data=None, n_train=200, refit=True, **options
):
    """A fitted model with the rows it was fitted on."""
    X, y = noise(task=task) if data is None else data
    rows = np.random.default_rng(1).permutation(len(y))
    train, certify = np.sort(rows[:n_train]), np.sort(rows[n_train:])
    fitted = fit_quietly(model, X[train], y[train]) if refit else model
    return Context(
        title="it",
        target="y",
        task=task,
        X=X,
        y=y,
        groups=None,
        columns=(),
        findings=(),
        split=Split(
            fit=train,
            select=train[:0],
            certify=certify,
            keys=np.arange(len(y), dtype=np.uint64),
            order="hash",
        ),
        selection=None,
        model=fitted,
        unfitted=model if refit else None,
        certificate=Certificate(facts=FACTS, claims=(), delta=0.05),
        options=Options(**options),
        runner=Runner(n_jobs=1),
    )


def written(context) -> Section:
    """As `write_sections` makes it, but that errors are raised."""
    results = context.runner.run(tasks(context), "membership")
    return membership.section(context, results)


def by_code(section):
    return {finding.code: finding for finding in section.findings}


# What is measured.


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(50, random_state=0),
        HistGradientBoostingClassifier(max_iter=60, early_stopping=False, random_state=0),
        make_pipeline(StandardScaler(), SVC(C=10.0, gamma=0.5)),
        KNeighborsClassifier(1),
    ],
    ids=["random forest", "boosted trees", "SVC", "one neighbour"],
)
def test_a_model_that_memorizes_is_found_out(model):
    section = written(context_of(model))
    found = by_code(section)
    assert found["SL641"].numbers["low"] > 0.52
    assert found["SL642"].severity == "warning"
    assert found.keys() == {"SL641", "SL642"}
    assert found["SL642"].numbers["auc"] > found["SL641"].numbers["auc"] - 0.05
    assert "Loss-threshold attack on its " in found["SL641"].text
    assert len(section.charts) == 1
    assert section.notes[0] == membership.DRAWN
    assert [row[0] for row in section.tables[0].rows] == [
        "loss threshold",
        "LiRA, 16 shadow models",
        "random guessing",
    ]
    assert "not fitted with differential privacy" in section.notes[-1]


@pytest.mark.parametrize(
    "model", [LogisticRegression(regularization=1.0), DPLogisticRegression(epsilon=0.5)], ids=str
)
def test_a_model_that_memorizes_nothing_is_not(model):
    found = by_code(written(context_of(model, refits=5)))
    assert abs(found["SL641"].numbers["auc"] - 0.5) < 0.1
    assert found["SL641"].numbers["low"] < 0.55


def test_no_leak_is_seldom_found_where_there_is_none():
    """The model was fitted on other rows altogether: the interval excludes 50% in about one of
    twenty trials.
    """
    wrong = 0
    for seed in range(60):
        X, y = noise(seed=seed)
        stranger = PlainLogisticRegression().fit(*noise(seed=1000 + seed))
        context = context_of(stranger, data=(X, y), refit=False)
        finding = by_code(written(context))["SL641"]
        wrong += not finding.numbers["low"] <= 0.5 <= finding.numbers["high"]
    assert wrong <= 8  # at 5%, more than 8 of 60 happens once in 500


@pytest.mark.parametrize(
    ("model", "leaks"),
    [(RandomForestRegressor(30, random_state=0), True), (Ridge(), False)],
    ids=str,
)
def test_numbers_are_attacked_by_their_errors(model, leaks):
    found = by_code(written(context_of(model, task="regression")))
    assert (found["SL641"].numbers["low"] > 0.6) == leaks
    assert (found["SL642"].numbers["low"] > 0.8) == leaks
    assert "attack on its predictions" in found["SL641"].text


def test_members_and_others_are_not_mixed_up():
    """A model that errs on the rows it was fitted on, and only there, is told the other way
    round.
    """

    class Contrary(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_, self.seen_ = (
                np.unique(y),
                {row.tobytes(): label for row, label in zip(X, y, strict=True)},
            )
            return self

        def predict_proba(self, X):
            right = np.array([self.seen_.get(row.tobytes(), 0.5) for row in X])
            return np.column_stack([right, 1 - right])

        def predict(self, X):
            return self.predict_proba(X).argmax(axis=1)

    found = by_code(written(context_of(Contrary())))
    assert found["SL641"].numbers["auc"] == 0.0
    # refits show that losing on a row is what fitting on it does
    assert found["SL642"].numbers["auc"] > 0.95


def test_eigenpro_and_three_classes():
    pytest.importorskip("torch")
    from surelearn.kernel import EigenProClassifier

    X, _ = noise()
    y = np.array(["a", "b", "c"])[
        np.digitize(X[:, 0] + np.random.default_rng(2).normal(size=300), [-0.5, 0.5])
    ]
    found = by_code(
        written(
            context_of(EigenProClassifier(bandwidth=1.0, random_state=0), data=(X, y), refits=4)
        )
    )
    assert found["SL641"].numbers["low"] > 0.6
    assert found["SL642"].numbers["low"] > 0.6


def test_a_torch_module_whose_rows_are_known():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    X, y = noise()
    context = context_of(
        torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2)),
        refit=False,
    )
    module, rows = context.model, context.split.fit  # pyright: ignore[reportOptionalMemberAccess]
    steps = torch.optim.Adam(module.parameters(), 0.02)
    for _ in range(300):
        steps.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            module(torch.tensor(X[rows]).float()), torch.tensor(y[rows])
        )
        loss.backward()
        steps.step()
    section = written(context)
    assert by_code(section)["SL641"].numbers["low"] > 0.6
    assert "SL642" not in by_code(section)
    assert any("how this model was fitted is not known here" in note for note in section.notes)


# What is proved.


def private(**options):
    return Pipeline([("as they are", "passthrough"), ("private", DPLogisticRegression(**options))])


def test_epsilon_is_shown_with_what_it_assumes_and_attacked():
    section = written(context_of(private(epsilon=2.0), refits=2, effort=0.2))
    (proved,) = section.claims
    assert proved.theorem == "dp_sgd_epsilon"
    assert proved.recompute() == proved.value <= 2.0
    assert proved.label == "differential privacy ε of the weights, at dp_delta = 1e-05"
    assert any("the weights alone" in line for line in proved.assumptions)
    assert "times as likely with a row as without it" in section.notes[-1]
    finding = by_code(section)["SL643"]
    assert finding.severity == "info"
    assert finding.numbers["refits"] == 256
    assert 0 <= finding.numbers["epsilon_at_least"] <= finding.numbers["claimed"] <= 2.0
    assert finding.numbers["claimed"] == proved.value  # not that of a refit, which has another row
    assert "SL644" not in by_code(section)


def test_epsilon_is_void_after_a_step_that_was_fitted_and_after_a_choice():
    context = context_of(make_pipeline(StandardScaler(), DPLogisticRegression()), refits=0)
    section = written(context)
    assert len(section.tables) == 1
    assert "No empirical lower bound on ε was measured" in section.notes[-2]
    assert (
        "No differential privacy ε is proved: the step 'standardscaler' was fitted on the same rows"
        in section.notes[-1]
    )
    for names, told in ((("one", "two"), "2 candidates"), (("one",), "2 settings")):
        choice = SimpleNamespace(names=names, compared=2)
        one_of_two = replace(context_of(private(), refits=0), selection=choice)
        assert f"chosen among {told}" in written(one_of_two).notes[-1]


def test_a_seed_in_the_model_is_a_warning():
    section = written(context_of(private(random_state=5), refits=0))
    assert by_code(section)["SL644"].severity == "warning"
    assert "drawn from a seed that was given" in by_code(section)["SL644"].text
    assert not by_code(section)["SL644"].numbers  # the page is passed on


def test_a_seed_is_a_warning_where_the_fit_rows_are_not_known_too():
    X, y = noise()
    model = DPLogisticRegression(random_state=3).fit(X, y)
    section = surelearn.audit(model, X, y, skip=OTHERS, refits=0, curve_repeats=0, ledger=False)[
        "membership"
    ]
    assert section.claims
    assert "drawn from a seed that was given" in by_code(section)["SL644"].text


def test_no_noise_is_no_privacy():
    table = membership_epsilon.proved(context_of(private(noise_multiplier=0.0), refits=0))
    assert table.reason == "no noise was added"


def test_a_bound_above_the_claim_is_serious():
    context = context_of(private(epsilon=1.0), refits=0)
    inside, outside = np.linspace(5, 6, 64), np.linspace(0, 1, 64)
    refits = [CanaryScores(inside=inside, outside=outside, epsilon=1.0, dp_delta=1e-5)]
    finding = membership_epsilon.findings(context, refits)[0]
    assert finding.severity == "serious"
    assert finding.numbers["epsilon_at_least"] > 2
    own = membership_epsilon.proved(context)
    assert isinstance(own, Claim)
    assert own.value < 1.0  # what a refit spends does not count
    assert finding.text.endswith(
        f"; only {show(own.value, 'number', '<=')} is proved: do not rely on it."
    )


def test_a_learner_that_is_not_private_is_seen_through_by_a_canary():
    """A refit that keeps no secret is told at once; one that keeps it is not."""
    X, y = noise(100)
    seeds = np.arange(64).reshape(32, 2)
    bounds = []
    for sigma in (0.02, 50.0):
        model = DPLogisticRegression(noise_multiplier=sigma, epochs=5.0, x_bound=1.0)
        fitted = fit_quietly(seeded(model, 0), X, y)
        found = canary_scores(fitted, model, X, y, tried=np.arange(100), seeds=seeds)
        assert isinstance(found, CanaryScores)
        assert sigma > 1 or max(found.outside) < 0  # its label is wrong
        bounds.append(
            membership_epsilon.findings(context_of(model, refits=0), [found])[0].numbers[
                "epsilon_at_least"
            ]
        )
    assert bounds[0] > 1 > 0.3 > bounds[1]


# What cannot be measured.


def test_a_model_fitted_elsewhere_says_that_its_rows_are_unknown():
    X, y = noise()
    for model in (PlainLogisticRegression().fit(X, y), lambda rows: (rows[:, 0] > 0).astype(int)):
        result = surelearn.audit(
            model, X, y, task="classification", classes=[0, 1], ledger=False, skip=OTHERS
        )
        section = result["membership"]
        assert "the training rows of the model are not known" in section.notes[0]
        assert not section.findings
    carrying = surelearn.audit(
        DPLogisticRegression(random_state=0).fit(X, y), X, y, ledger=False, skip=OTHERS
    )
    assert [claim.quantity for claim in carrying["membership"].claims] == ["epsilon"]


class Odd(ClassifierMixin, BaseEstimator):
    """A classifier that goes wrong in a way of its own once it has been certified."""

    def __init__(self, way="raises"):
        self.way = way

    def fit(self, X, y):  # noqa: ARG002
        self.classes_ = np.unique(y)
        if self.way == "few" and len(y) < 200:
            raise ValueError("200 rows at least")
        return self

    def predict(self, X):
        return self.classes_[(np.asarray(X)[:, 0] > 0).astype(int)]

    def predict_proba(self, X):
        if self.way == "raises":
            raise RuntimeError("out of order")
        half = np.full((len(X), 2), np.nan if self.way == "NaN" else 0.5)
        return half[:, :1] if self.way == "one class" else half


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("raises", "RuntimeError: out of order"),
        ("NaN", "predictions are NaN"),
        ("one class", "(300, 1) numbers"),
    ],
)
def test_bad_models_get_a_sentence(way, said):
    (section,) = write_sections([membership.ENTRY], context_of(Odd(way), show_rows=True))
    assert section.notes[0].startswith("Not measured: ")
    assert said in section.notes[0]


def test_a_refit_that_fails_leaves_the_other_attack():
    section = written(context_of(Odd("few")))
    assert list(by_code(section)) == ["SL641"]
    assert any(
        "a refit on half of the rows failed, it raised ValueError: 200 rows at least" in note
        for note in section.notes
    )


def test_what_looks_like_leakage_is_said():
    context = replace(
        context_of(KNeighborsClassifier(1), refits=0),
        time_name="day",
        groups=np.arange(300),
        group_name="house",
    )
    assert any(
        "The certify rows are later than the training rows" in note
        for note in written(context).notes
    )
    assert any("Rows of one house are alike" in note for note in written(context).notes)


def test_budget_and_switch():
    context = context_of(KNeighborsClassifier(1), refits=5, effort=0.5)
    assert sum(task.key.startswith("membership/refit") for task in tasks(context)) == 4
    assert len(tasks(context_of(KNeighborsClassifier(1), refits=0))) == 1
    result = surelearn.audit(
        "iris", models="logistic regression", ledger=False, refits=0, skip=(*OTHERS, "membership")
    )
    assert "membership" not in [section.key for section in result.sections]


@pytest.mark.usefixtures("forked")
def test_results_do_not_depend_on_the_number_of_jobs():
    context = context_of(RandomForestClassifier(5, random_state=0), refits=3)
    assert written(context) == written(replace(context, runner=Runner(n_jobs=2)))


def test_the_rows_of_the_certificate_are_not_touched():
    context = context_of(KNeighborsClassifier(1), refits=2)
    before = fingerprint_model(context.model), context.X.copy(), context.y.copy()
    written(context)
    assert fingerprint_model(context.model) == before[0]
    np.testing.assert_array_equal(context.X, before[1])
    np.testing.assert_array_equal(context.y, before[2])
