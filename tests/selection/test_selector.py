import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

from surelearn.selection import Resampling, select
from surelearn.selection.candidates import as_candidates, load_factory
from surelearn.selection.catalogue import default_candidates
from surelearn.selection.cross_validation import default_resampling, mean_and_error, resample
from surelearn.selection.selector import choose


@pytest.fixture(scope="module")
def data():
    return make_classification(200, 5, flip_y=0.1, random_state=0)


def test_folds_partition_the_rows_and_repeat(data):
    _, y = data
    pairs = resample(Resampling(folds=5, repeats=2), y, stratify=True)
    assert len(pairs) == 10
    for block in (pairs[:5], pairs[5:]):
        assert np.array_equal(np.sort(np.concatenate([test for _, test in block])), np.arange(200))
    assert not np.array_equal(pairs[0][1], pairs[5][1])
    assert all(abs(y[test].mean() - y.mean()) < 0.03 for _, test in pairs)
    again = resample(Resampling(folds=5, repeats=2), y, stratify=True)
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(pairs, again, strict=True))


def test_groups_stay_whole_in_folds():
    groups = np.arange(100) // 5
    for train, test in resample(Resampling(folds=4), np.zeros(100), groups=groups):
        assert not set(groups[train]) & set(groups[test])


def test_leave_one_out_agrees_with_scikit_learn(data):
    X, y = data
    near = {"near": KNeighborsClassifier(3)}
    selection = select(near, X[:60], y[:60], criterion="leave-one-out", metric="accuracy")
    expected = cross_val_predict(KNeighborsClassifier(3), X[:60], y[:60], cv=LeaveOneOut())
    assert selection.errors[0] == pytest.approx(np.mean(expected != y[:60]))
    assert len(selection.fold_errors[0]) == 60


def test_fold_errors_and_standard_errors_are_kept(data):
    X, y = data
    selection = select(
        [DummyClassifier(), LogisticRegression()],
        X,
        y,
        criterion=Resampling(folds=5),
        metric="accuracy",
    )
    assert selection.names == ("DummyClassifier", "LogisticRegression")
    assert np.mean(selection.fold_errors[1]) == pytest.approx(selection.errors[1])
    p = selection.errors[1]
    assert selection.standard_errors[1] == pytest.approx(np.sqrt(p * (1 - p) / 199))
    assert selection.name == "LogisticRegression"
    assert "→ LogisticRegression" in repr(selection)
    assert selection.scores.shape == (200, 2)
    assert not np.isnan(selection.losses).any()


def test_holdout_fits_on_the_other_rows(data):
    X, y = data
    held_out = np.arange(50)
    selection = select([LogisticRegression()], X, y, criterion="holdout", held_out=held_out)
    expected = LogisticRegression().fit(X[50:], y[50:]).predict(X[:50])
    assert selection.mean_losses[0] == pytest.approx(np.mean(expected != y[:50]))
    assert np.isnan(selection.losses[50:]).all()
    with pytest.raises(ValueError, match="needs held_out"):
        select([LogisticRegression()], X, y, criterion="holdout")


def test_the_best_or_the_simplest_within_one_standard_error():
    assert choose([0.5, 0.12, 0.1], [0.03, 0.03, 0.03], "simplest") == 1
    assert choose([0.5, 0.14, 0.1], [0.03, 0.03, 0.03], "simplest") == 2
    assert choose([0.5, 0.12, 0.1], [0.03, 0.03, 0.03]) == 2


def test_results_do_not_depend_on_n_jobs(data):
    X, y = data
    one, two = (
        select(
            default_candidates("classification", dict.fromkeys(range(5), "number"), 200),
            X,
            y,
            criterion=Resampling(folds=3),  # every candidate three times: as many ways as fifteen
            n_jobs=n,
        )
        for n in (1, 2)
    )
    assert one.errors == two.errors
    assert one.chosen == two.chosen


def test_regression_is_compared_by_absolute_error():
    X, y = load_diabetes(return_X_y=True)
    candidates = default_candidates("regression", dict.fromkeys(range(10), "number"), 442)
    selection = select(candidates[:3], X, y, task="regression")
    assert selection.names == ("median", "linear regression", "Huber regression")
    assert all(40 < error < 50 for error in selection.errors[1:])
    assert selection.errors == selection.mean_losses


def test_default_candidates_beat_the_majority_on_real_data():
    X, y = load_breast_cancer(return_X_y=True)
    selection = select(
        default_candidates("classification", dict.fromkeys(range(30), "number"), 569), X, y
    )
    assert selection.names[0] == "majority"
    assert all(error < 0.1 for error in selection.mean_losses[1:])
    assert {"logistic regression", "boosted trees", "extra trees"} <= set(selection.names)
    assert selection.metric.name == "log-loss"


def test_more_rows_need_another_kernel_machine():
    names = [c.name for c in default_candidates("classification", {0: "number"}, 10_000)]
    assert "kernel logistic regression" in names
    assert "kernel SVM" not in names
    assert "weighted kernel SVM" not in names


def test_what_a_user_may_name():
    assert [c.name for c in as_candidates({"a": Ridge()})] == ["a"]
    assert [c.name for c in as_candidates(Ridge())] == ["Ridge"]
    assert load_factory("sklearn.linear_model:Ridge")[0].name == "Ridge"
    with pytest.raises(ValueError, match="two candidates are called 'Ridge'"):
        as_candidates([Ridge(), Ridge()])
    with pytest.raises(TypeError, match="must have fit and predict"):
        as_candidates([3])
    with pytest.raises(ValueError, match="no candidates"):
        as_candidates([])
    for text, message in (
        ("nonsense", "package.module:factory"),
        ("no.such:thing", "cannot be imported"),
        ("math:nope", "has no 'nope'"),
    ):
        with pytest.raises(ValueError, match=message):
            load_factory(text)


def test_refusals(data):
    X, y = data
    with pytest.raises(ValueError, match="prefer must be"):
        select([Ridge()], X, y, prefer="prettiest")
    with pytest.raises(ValueError, match="criterion must be"):
        select([Ridge()], X, y, criterion="feeling")
    with pytest.raises(ValueError, match="folds must lie between 2 and 200"):
        select([Ridge()], X, y, criterion=Resampling(folds=500))


def test_resampling_says_what_it_is():
    assert str(default_resampling(600)) == "5-fold cross-validation"
    assert str(Resampling(kind="holdout")) == "held-out select rows"
    mean, error = mean_and_error(
        np.array([0.0, 1.0, 1.0, 0.0, np.nan]), groups=np.array([0, 0, 1, 1, 2])
    )
    assert (mean, error) == (0.5, 0.0)
