"""Leave-one-out against refits and the learner itself; choices that are known, repeatable, and
survive odd rows.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from surelearn.kernel.choosing import (
    FACTORS,
    choose_kernel,
    default_bandwidth,
    left_out,
    median_distance,
)
from surelearn.kernel.functions import Gaussian, Laplace, Linear, Matern


def rows(n=80, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("c", [1e-6, 0.1, 5.0])
@pytest.mark.parametrize("outputs", [1, 3])
def test_left_out_is_every_refit_without_a_row(c, outputs):
    X, Y = rows(25), rows(25, outputs, seed=1)
    K = Laplace(2.0)(X, X)
    refits = np.empty_like(Y)
    for i in range(25):
        others = np.arange(25) != i
        alpha = np.linalg.solve(K[np.ix_(others, others)] + c * np.eye(24), Y[others])
        refits[i] = Y[i] - K[i, others] @ alpha
    np.testing.assert_allclose(left_out(K, Y, [3.0, c])[1], refits, rtol=1e-8)


def test_without_a_penalty_a_copy_predicts_its_twin():
    X, y = np.vstack([rows(6), rows(6)]), rows(12, 1, seed=1)
    residuals = left_out(Laplace(1.0)(X, X), y, [0.0])[0]
    np.testing.assert_allclose(residuals, y - np.roll(y, 6, axis=0), rtol=1e-6, atol=1e-8)


def test_a_kernel_matrix_of_zeros_predicts_zero():
    y = rows(4, 1)
    np.testing.assert_allclose(left_out(np.zeros((4, 4)), y, [0.0, 1.0]), np.stack([y, y]))


@pytest.mark.parametrize("regularization", [0.0, 1e-3])
def test_the_error_is_the_learners_own(regularization):
    pytest.importorskip("torch")
    from surelearn.kernel import Compute, EigenProRegressor

    X = rows()
    y = np.sin(X).sum(1)
    choice = choose_kernel(
        X, y, kernels=["laplace"], bandwidths=[2.0], regularizations=[regularization]
    )
    model = EigenProRegressor(
        choice.kernel,
        regularization=choice.regularization,
        solver="direct",
        compute=Compute(device="cpu"),
    ).fit(X, y)
    assert choice.error == pytest.approx(model.facts_["leave_one_out_error"], rel=1e-8)


def test_what_is_known_is_chosen():
    X, rng = rows(200, 2), np.random.default_rng(1)
    line = X @ [1.0, -2.0]
    smooth = choose_kernel(X, line, kernels=["laplace", "linear"], random_state=0)
    assert smooth.kernel == Linear()
    assert smooth.bandwidth is None
    clean = choose_kernel(X, np.cos(X[:, 0]), kernels=["gaussian"], random_state=0)
    noisy = choose_kernel(
        X, np.cos(X[:, 0]) + rng.normal(size=200), kernels=["gaussian"], random_state=0
    )
    assert clean.regularization * 200 <= 1e-4 < 0.01 <= noisy.regularization * 200
    assert clean.error < 1e-3 < noisy.error


def test_labels_that_need_a_short_length_get_one():
    x = np.random.default_rng(0).uniform(0, 8, size=(300, 1))
    board = (np.floor(x[:, 0]) % 2).astype(int)
    choice = choose_kernel(x, board, kernels=["gaussian"], random_state=0)
    assert choice.measure == "wrong labels"
    assert choice.bandwidth is not None
    assert choice.bandwidth < median_distance(x, np.random.RandomState(0))
    assert choice.error < 0.1


def test_it_is_as_good_as_the_best_of_its_candidates_on_other_rows():
    X, y = load_digits(return_X_y=True)
    X, test = X[:500] / 16, X[500:1200] / 16
    targets = np.where(y[:500, None] == np.arange(10), 1.0, -1.0)

    def error(k, c):
        alpha = np.linalg.solve(k(X, X) + (c + 1e-10) * np.eye(500), targets)
        return np.mean((k(test, X) @ alpha).argmax(1) != y[500:1200])

    choice = choose_kernel(X, y[:500], random_state=0)
    first = {
        (trial.kernel, trial.regularization) for trial in choice.trials if trial.rows == choice.rows
    }
    errors = [error(k, 500 * lam) for k, lam in first]
    assert error(choice.kernel, 500 * choice.regularization) <= min(errors) + 0.01


def test_the_same_seed_gives_the_same_choice():
    X, y = rows(700), np.arange(700) % 3
    first, second = (choose_kernel(X, y, rows=500, random_state=3) for _ in range(2))
    assert first == second
    assert first.trials != choose_kernel(X, y, rows=500, random_state=4).trials


def test_subsamples_grow_and_the_better_third_goes_on():
    X = rows(2000)
    told = []
    choice = choose_kernel(
        X, X[:, 0] > 0, rows=1500, progress=lambda *done: told.append(done), random_state=0
    )
    assert told == [(1, 3), (2, 3), (3, 3)]
    tried = {
        size: [trial for trial in choice.trials if trial.rows == size] for size in (166, 500, 1500)
    }
    assert len(tried[166]) == 24
    for before, after in ((166, 500), (500, 1500)):
        kept = [trial.kernel for trial in tried[before] if trial.kept]
        assert {trial.kernel for trial in tried[after]} == set(kept)
        assert np.ceil(len(tried[before]) / 3) <= len(kept) <= 2 * np.ceil(len(tried[before]) / 3)
        assert [trial.error for trial in tried[before]] == sorted(
            trial.error for trial in tried[before]
        )
    assert [trial.kept for trial in tried[1500]] == [True] + [False] * (len(tried[1500]) - 1)
    assert choice.kernel == tried[1500][0].kernel


def test_candidates_far_behind_are_dropped_and_equal_ones_are_not():
    X = rows(900)
    same = [Matern(nu=1.5)] * 6  # equal to the last row: all within a standard error
    equal = choose_kernel(X, X[:, 0], kernels=same, bandwidths=[2.0], random_state=0)
    assert sum(trial.rows == 300 for trial in equal.trials) == 6
    assert sum(trial.kept for trial in equal.trials if trial.rows == 300) == 4
    lengths = [1e-3, 2e-3, 3.0, 3e-3, 4e-3, 3.1]
    spread = choose_kernel(X, X[:, 0], kernels=["gaussian"], bandwidths=lengths, random_state=0)
    assert {trial.bandwidth for trial in spread.trials if trial.rows == 300 and trial.kept} == {
        3.0,
        3.1,
    }


@pytest.mark.parametrize("classes", [2, 3])
def test_wrong_labels_are_counted(classes):
    X, y = rows(60), np.random.default_rng(1).integers(classes, size=60)
    choice = choose_kernel(X, y, kernels=["laplace"], bandwidths=[2.0], regularizations=[1e-3])
    targets = np.where(y[:, None] == np.arange(classes), 1.0, -1.0)
    scores = targets - left_out(Laplace(2.0)(X, X), targets, [0.06])[0]
    assert choice.error == pytest.approx(np.mean(scores.argmax(1) != y))
    assert 0.2 < choice.error < 1
    assert choice.standard_error == pytest.approx(np.sqrt(choice.error * (1 - choice.error) / 59))


def test_given_values_are_kept():
    X = rows(500)
    choice = choose_kernel(
        X, X[:, 0], kernels=[Matern(nu=2.5)], bandwidths=[1.7], regularizations=[0.02]
    )
    assert choice.kernel == Matern(bandwidth=1.7, nu=2.5)
    assert (choice.bandwidth, choice.regularization) == (1.7, pytest.approx(0.02))
    assert len(choice.trials) == 1


def test_the_penalty_of_all_rows_is_that_of_a_subsample():
    X = rows(400)
    few = choose_kernel(
        X,
        X[:, 0],
        kernels=["laplace"],
        bandwidths=[2.0],
        regularizations=[1e-3],
        rows=100,
        random_state=0,
    )
    rng = np.random.RandomState(0)
    median_distance(X, rng)
    part = rng.permutation(400)[:100]
    expected = left_out(Laplace(2.0)(X[part], X[part]), X[part, :1], [0.4])[0]
    assert few.error == pytest.approx(np.mean(expected**2))
    assert few.regularization == pytest.approx(1e-3)


@pytest.mark.parametrize("scale", [1e-170, 1e-3, 1e3, 1e170])
def test_units_of_length_do_not_matter(scale):
    X, y = rows(60), np.arange(60) % 2
    kernels = (
        ["laplace", "matern"] if abs(np.log10(scale)) > 100 else ["gaussian", "laplace", "matern"]
    )
    first, second = (
        choose_kernel(part, y, kernels=kernels, random_state=0) for part in (X, X * scale)
    )
    if abs(np.log10(scale)) < 100:
        assert second.bandwidth == pytest.approx(first.bandwidth * scale)
        assert second.error == first.error
    assert np.isfinite(second.error)


def odd_rows():
    X = rows(12)
    yield "copies", np.repeat(rows(3), 8, axis=0), np.arange(24) % 2
    yield "constant column", np.hstack([X, np.full((12, 1), 7.0)]), X[:, 0]
    yield "all the same", np.ones((9, 2)), np.arange(9) % 3
    yield "one class", X, np.zeros(12, dtype=int)
    yield "a rare class", rows(900), (np.arange(900) == 5).astype(int)
    yield "targets of zero", X, np.zeros(12)
    yield "huge targets", X, 1e200 * X[:, 0]
    yield "single precision", X.astype(np.float32), X[:, 0]
    yield "words", X, np.array(["a", "b"] * 6)
    for n in range(2, 11):
        yield f"{n} rows", rows(n), np.arange(n) % 2


@pytest.mark.parametrize(("X", "y"), [pytest.param(X, y, id=name) for name, X, y in odd_rows()])
def test_odd_rows_are_survived(X, y):
    choice = choose_kernel(X, y, random_state=0)
    assert choice.bandwidth is not None
    assert choice.bandwidth > 0
    assert choice.regularization >= 0
    assert choice.error >= 0
    assert str(choice)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rows": 1}, "rows must be"),
        ({"bandwidths": [0.0]}, "bandwidths must be finite numbers above 0"),
        ({"bandwidths": []}, "bandwidths must be"),
        ({"regularizations": [-1.0]}, "regularizations must be finite numbers of at least 0"),
        ({"kernels": []}, "kernels must name"),
        ({"kernels": ["cosine"]}, "kernel must be one of"),
    ],
)
def test_bad_parameters_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        choose_kernel(rows(10), np.arange(10) % 2, **given)


def test_bad_rows_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        choose_kernel([[0.0], [np.nan]], [0, 1])
    with pytest.raises(ValueError, match="one label per row"):
        choose_kernel(rows(4), np.ones((4, 2), dtype=int))
    with pytest.raises(ValueError, match="scale the columns"), np.errstate(all="ignore"):
        choose_kernel(1e200 * rows(4), np.arange(4.0), kernels=["linear"])
    with pytest.raises(ValueError, match="minimum of 2"):
        choose_kernel([[1.0]], [0])


def test_numbers_are_no_labels():
    X = rows(30)
    assert choose_kernel(X, np.arange(30.0) % 2).measure == "squared error"
    assert choose_kernel(X, np.arange(30) % 2).measure == "wrong labels"
    assert choose_kernel(X, np.arange(30) % 2, classify=False).measure == "squared error"
    assert choose_kernel(X, rows(30, 2, seed=1)).measure == "squared error"


def test_the_choice_reads_well():
    choice = choose_kernel(rows(30), np.arange(30) % 2, kernels=["gaussian"], random_state=0)
    first = str(choice).splitlines()[0]
    assert first.startswith(f"gaussian, bandwidth {choice.bandwidth:.4g}, λ = ")
    assert first.endswith("on 30 rows")
    assert choice._repr_html_().startswith("<pre>gaussian")


def test_median_distance():
    rng = np.random.RandomState(0)
    assert median_distance(np.ones((5, 2)), rng) == 1.0
    assert median_distance(np.array([[0.0], [0.0], [0.0], [2.0]]), rng) == 2.0
    assert median_distance(np.array([[1e-300], [3e-300]]), rng) == 1e-150
    X = rows(3000, 5)
    pairs = np.linalg.norm(X[:1500] - X[1500:], axis=1)
    assert median_distance(X, rng) == pytest.approx(np.median(pairs), rel=0.06)
    assert median_distance(1e200 * X[:, :1], rng) == 1e150


def test_default_bandwidths():
    X = np.array([[0.0], [3.0]])
    for name, (interpolating, ridge) in FACTORS.items():
        assert default_bandwidth(name, X, np.random.RandomState(0)) == 3.0 * interpolating
        assert (
            default_bandwidth(name, X, np.random.RandomState(0), interpolate=False) == 3.0 * ridge
        )
    assert (
        default_bandwidth(Gaussian(bandwidth=1.581), X, np.random.RandomState(0))
        == 3.0 * FACTORS["gaussian"][0]
    )
    assert default_bandwidth("linear", X, np.random.RandomState(0)) is None


def test_no_torch_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert choose_kernel(rows(20), np.arange(20) % 2).rows == 20
