"""One interface for every criterion: cost, names, nested families, closed forms, jobs, refusals."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, make_classification
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import AdaBoostClassifier as TheirAdaBoost
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import LeaveOneOut as TheirLeaveOneOut
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from surelearn.boosting import AdaBoostClassifier
from surelearn.claim import Claim
from surelearn.jobs import Journal
from surelearn.lacking import Lacking
from surelearn.linear import Ridge as OurRidge
from surelearn.selection import NestedFamily, Resampling, criteria, select
from surelearn.selection.criteria import Criterion, Stability, StructuralRisk, as_criterion
from surelearn.selection.criteria.closed_forms import has_closed_form, leave_one_out_predictions

STUBS = runpy.run_path(str(Path(__file__).with_name("stubs.py")))
Columns, coins = STUBS["Columns"], STUBS["coins"]
SCALED = make_pipeline(StandardScaler(), TheirAdaBoost(random_state=0))
NAMES = [criterion.name for criterion in criteria()]


@pytest.fixture(scope="module")
def data():
    return make_classification(200, 5, flip_y=0.1, random_state=0)


# ---- what criteria say of themselves


def test_every_criterion_is_described():
    assert len(set(NAMES)) == len(NAMES) == 12
    for criterion in criteria():
        assert isinstance(criterion, Criterion)
        for text in (
            criterion.chooses,
            criterion.cost,
            criterion.guarantee,
            criterion.needs,
            str(criterion),
        ):
            assert text
            assert not text.endswith(".")
        assert as_criterion(criterion.name) == criterion
    uncertified = {c.name for c in criteria() if c.guarantee.startswith("nothing")}
    assert uncertified == set(NAMES) - {"holdout", "srm", "margin"}


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("aic", "aicc", "bic", "margin")]
)
@pytest.mark.parametrize("members", [1, 4])
def test_the_cost_in_fits_is_what_is_said(name, members):
    X, y = coins(0, 40, 5)
    family = NestedFamily(Columns(), range(1, members + 1), capacity=1)
    candidates = {"family": family, "single": Columns(5)}
    criterion = StructuralRisk(capacity=1) if name == "srm" else as_criterion(name)
    if name == "adjusted-srm":
        criterion = type(criterion)(capacity=1)
    Columns.fits = 0
    selection = select(candidates, X, y, criterion=criterion, held_out=np.arange(10), n_jobs=1)
    assert Columns.fits == criterion.fits(candidates=2, n=40)
    assert len(selection.names) == members + 1
    assert isinstance(selection.claim, (Claim, Lacking))


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("aic", "aicc", "bic")])
def test_results_depend_neither_on_n_jobs_nor_on_a_journal(name, data, tmp_path):
    X, y = data[0][:60], data[1][:60]
    if name == "margin":
        X, y = data[0][:, :1], data[1]
    options = {"criterion": name, "held_out": np.arange(20), "random_state": 3}
    family = NestedFamily(TheirAdaBoost(random_state=0), [1, 3], "n_estimators")
    one, two = (select(family, X, y, n_jobs=jobs, **options) for jobs in (1, 2))
    found = [one, two]
    for _ in range(2):
        with Journal(tmp_path / "journal.sqlite", run_key=name) as journal:
            found.append(select(family, X, y, n_jobs=1, journal=journal, **options))
    for other in found[1:]:
        assert other.errors == one.errors
        assert other.standard_errors == one.standard_errors
        assert other.chosen == one.chosen
        assert other.claim == one.claim


def test_information_criteria_are_journaled_too(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    found = []
    for _ in range(2):
        with Journal(tmp_path / "journal.sqlite", run_key="aic") as journal:
            options = {"task": "regression", "criterion": "aic", "journal": journal}
            found.append(select([LinearRegression(), DummyRegressor()], X, y, **options))
    assert found[0].errors == found[1].errors


# ---- nested families


@pytest.mark.parametrize(
    ("family", "task"),
    [
        (NestedFamily(AdaBoostClassifier(), [1, 2, 7]), "classification"),
        (NestedFamily(TheirAdaBoost(random_state=0), [1, 2, 7], "n_estimators"), "classification"),
        (NestedFamily(GradientBoostingClassifier(subsample=0.5, random_state=0), [2, 5], "n_estimators"), "classification"),
        (NestedFamily(GradientBoostingRegressor(random_state=0), [2, 5], "n_estimators"), "regression"),
        (NestedFamily(SCALED, [2, 5], "adaboostclassifier__n_estimators"), "classification"),
    ],
    ids=["ours", "AdaBoost", "gradient boosting", "regression", "pipeline"],
)  # fmt: skip
def test_prefixes_equal_separate_fits(family, task, data):
    X, y = load_diabetes(return_X_y=True) if task == "regression" else data
    assert family.is_staged
    separate = {member.name: member.model for member in family.members()}
    for criterion in ("cross-validation", "stability"):
        together, apart = (
            select(candidates, X, y, task=task, criterion=criterion, prefer="best")
            for candidates in (family, separate)
        )
        assert together.names == apart.names
        assert together.errors == pytest.approx(apart.errors)
        assert np.array(together.fold_errors) == pytest.approx(np.array(apart.fold_errors))
        assert together.chosen == apart.chosen
        assert together.model.get_params()[family.parameter] == family.sizes[together.chosen]


def test_a_family_whose_fit_ends_early():
    X = np.arange(30.0)[:, None]
    y = (X[:, 0] > 12).astype(int)  # one stump is perfect
    for family in (
        NestedFamily(AdaBoostClassifier(), [1, 50]),
        NestedFamily(TheirAdaBoost(), [1, 50], "n_estimators"),
    ):
        selection = select(family, X, y, criterion="srm", held_out=np.arange(5))
        assert selection.details["training errors"] == (0.0, 0.0)


def test_a_family_without_prefixes_is_fitted_at_every_size(data):
    X, y = data
    family = NestedFamily(KNeighborsClassifier(), [1, 5], "n_neighbors", name="near")
    assert not family.is_staged
    selection = select(family, X, y)
    assert selection.names == ("near, n_neighbors=1", "near, n_neighbors=5")
    expected = select({"1": KNeighborsClassifier(1), "5": KNeighborsClassifier(5)}, X, y)
    assert selection.errors == expected.errors
    trees = NestedFamily(make_pipeline(StandardScaler(), TheirAdaBoost(DecisionTreeClassifier())), [1, 2],
                         "adaboostclassifier__estimator__max_depth")  # fmt: skip
    assert not trees.is_staged


def test_families_and_models_together(data):
    X, y = data
    mixed = [DummyClassifier(), NestedFamily(AdaBoostClassifier(), [1, 5])]
    selection = select(mixed, X, y, criterion="srm")
    assert selection.names == ("DummyClassifier", "n_rounds=1", "n_rounds=5")
    named = select(
        {
            "a": NestedFamily(AdaBoostClassifier(), [1]),
            "b": NestedFamily(AdaBoostClassifier(), [1]),
        },
        X,
        y,
    )
    assert named.names == ("a, n_rounds=1", "b, n_rounds=1")
    with pytest.raises(ValueError, match="two candidates are called 'n_rounds=1'"):
        select(
            [NestedFamily(AdaBoostClassifier(), [1]), NestedFamily(AdaBoostClassifier(), [1])], X, y
        )


@pytest.mark.parametrize("sizes", [[], [0, 1], [2, 1], [1.5], [[1]], ["a"]])
def test_sizes_that_are_none(sizes):
    with pytest.raises(ValueError, match="sizes must be a list of increasing whole numbers"):
        NestedFamily(AdaBoostClassifier(), sizes)
    with pytest.raises(ValueError, match="parameter 'rounds' is not one of AdaBoostClassifier's"):
        NestedFamily(AdaBoostClassifier(), [1], "rounds")


# ---- closed forms


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        LinearRegression(fit_intercept=False),
        Ridge(0.3),
        Ridge(0.3, fit_intercept=False),
        OurRidge(regularization=0.1),
        OurRidge(regularization=0.1, regularize_intercept=False),
        OurRidge(regularization="loo", grid=[0.01, 1.0]),
    ],
    ids=str,
)
def test_closed_forms_equal_n_fits(model):
    X, y = load_diabetes(return_X_y=True)
    X, y = 10 * X[:40, :5], y[:40]
    assert has_closed_form(model, X, "regression")
    expected = cross_val_predict(model, X, y, cv=TheirLeaveOneOut())
    assert leave_one_out_predictions(model, X, y) == pytest.approx(expected, rel=1e-8)
    selection = select([model], X, y, task="regression", criterion="leave-one-out")
    assert selection.losses == pytest.approx(np.abs(expected - y))
    assert len(selection.fold_errors[0]) == 40


def test_a_row_that_determines_its_own_prediction_is_refitted():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=20), np.eye(20)[0]])
    y = rng.normal(size=20)
    expected = cross_val_predict(LinearRegression(), X, y, cv=TheirLeaveOneOut())
    assert leave_one_out_predictions(LinearRegression(), X, y) == pytest.approx(expected)


def test_models_without_a_closed_form():
    X = np.ones((4, 2))
    for model in (
        Ridge(positive=True),
        Ridge([1.0, 2.0]),
        make_pipeline(StandardScaler(), Ridge()),
        KNeighborsRegressor(),
    ):
        assert not has_closed_form(model, X, "regression")
    assert not has_closed_form(LinearRegression(), X, "classification")


# ---- stability


def test_with_every_row_left_out_stability_is_the_leave_one_out_error(data):
    X, y = data[0][:50], data[1][:50]
    models = {"near": KNeighborsClassifier(1), "linear": LogisticRegression()}
    stable = select(models, X, y, criterion=Stability(refits=50))
    left_out = select(models, X, y, criterion="leave-one-out", metric="accuracy")
    assert stable.errors == pytest.approx(left_out.errors)
    assert stable.details["training errors"][0] == 0.0
    assert stable.details["changes"][0] == pytest.approx(left_out.errors[0])
    groups = np.arange(50) // 2
    assert select(models, X, y, criterion=Stability(refits=3), groups=groups).chosen in (0, 1)
    with pytest.raises(ValueError, match="refits must be at least 1"):
        select(models, X, y, criterion=Stability(refits=0))


def test_left_out_rows_are_an_unbiased_sample(data):
    X, y = data[0][:60], data[1][:60]
    values = [
        select(
            [KNeighborsClassifier(1)], X, y, criterion=Stability(refits=6), random_state=seed
        ).errors[0]
        for seed in range(60)
    ]
    exact = select(
        [KNeighborsClassifier(1)], X, y, criterion="leave-one-out", metric="accuracy"
    ).errors[0]
    assert abs(np.mean(values) - exact) < 4 * np.std(values) / np.sqrt(60)
    assert np.std(values) > 0


# ---- how criteria are named


def test_what_may_be_given_as_criterion(data):
    X, y = data
    assert (
        str(select([DummyClassifier()], X, y, criterion="k-fold").how) == "10-fold cross-validation"
    )
    plain, repeated = (
        select([DummyClassifier()], X, y, criterion=name) for name in ("k-fold", "repeated-k-fold")
    )
    assert str(plain.how) == "10-fold cross-validation"
    assert str(repeated.how) == "5 times repeated 10-fold cross-validation"
    assert (
        select([DummyClassifier()], X, y, criterion="k-fold", groups=np.arange(200) % 4).how.folds
        == 4
    )
    held = select(
        [DummyClassifier()], X, y, criterion=Resampling(kind="holdout"), held_out=[1, 2, 3]
    )
    assert str(held.how) == "held-out select rows"
    for wrong in ("feeling", 3, None):
        with pytest.raises(
            ValueError, match="criterion must be one of cross-validation, holdout, k-fold"
        ):
            select([DummyClassifier()], X, y, criterion=wrong)
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        select([DummyClassifier()], X, y, delta=1.0)


def test_a_holdout_of_numbers_of_groups_or_in_time_certifies_nothing(data):
    X, y = data
    grouped = select(
        [DummyClassifier()],
        X,
        y,
        criterion="holdout",
        held_out=np.arange(20),
        groups=np.arange(200) // 2,
    )
    assert grouped.claim.reason == "rows of a group are not independent"
    ordered = select(
        [DummyClassifier()],
        X,
        y,
        criterion="holdout",
        held_out=np.arange(150, 200),
        time=np.arange(200),
    )
    assert "ordered in time" in ordered.claim.reason
    X, y = load_diabetes(return_X_y=True)
    number = select(
        [DummyRegressor()], X, y, task="regression", criterion="holdout", held_out=np.arange(20)
    )
    assert number.claim.reason == "the absolute error has no stated bound"


def test_criteria_on_real_data_choose_more_than_a_stump():
    X, y = load_breast_cancer(return_X_y=True)
    family = NestedFamily(AdaBoostClassifier(), [1, 5, 25, 100])
    chosen = {
        name: select(family, X, y, criterion=name, prefer="best").chosen
        for name in ("k-fold", "adjusted-srm", "srm")
    }
    assert chosen["srm"] == 0  # the penalty outweighs everything (thesis, Section 5.2)
    assert chosen["k-fold"] > 0
    assert chosen["adjusted-srm"] > 0
