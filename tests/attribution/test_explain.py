"""Models as games: enumeration by the definition, closed forms equal to it, and sentences where
something is wrong.
"""

from __future__ import annotations

import itertools
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from surelearn.attribution import banzhaf, explain, explaining, shapley

SHARED = Path(__file__).parents[3] / "shared" / "data"
X, Y = make_classification(400, 5, n_informative=4, n_redundant=0, random_state=0)
ROWS, BACKGROUND = X[:4], X[100:115]
THREE = Y + (X[:, 0] > 1)


def by_hand(f, rows, background, players):
    """Shapley values by loops over rows, players and coalitions, each coalition mixed anew."""
    n = len(players)
    answer = np.zeros((len(rows), n))

    def u(x, S):
        mixed = background.copy()
        for i in S:
            mixed[:, players[i]] = x[players[i]]
        return f(mixed).mean()

    for r, x in enumerate(rows):
        for i in range(n):
            others = [j for j in range(n) if j != i]
            for size in range(n):
                for S in itertools.combinations(others, size):
                    answer[r, i] += (u(x, (*S, i)) - u(x, S)) / (n * comb(n - 1, size))
    return answer


@pytest.mark.parametrize("groups", [None, [[0, 3], [1]], {"pair": [1, 2]}])
def test_enumeration_is_the_definition(groups):
    model = GaussianNB().fit(X, Y)
    made = explain(model, ROWS, BACKGROUND, groups=groups)
    players = {None: [[j] for j in range(5)]}.get(groups if groups is None else 0)
    if isinstance(groups, list):
        players = [[0, 3], [1], [2], [4]]
        assert made.names == ("x0 + x3", "x1", "x2", "x4")
    elif groups:
        players = [[0], [1, 2], [3], [4]]
        assert made.names == ("x0", "pair", "x3", "x4")
    expected = by_hand(lambda Z: model.predict_proba(Z)[:, 1], ROWS, BACKGROUND, players)
    np.testing.assert_allclose(made.values, expected, atol=1e-12)
    np.testing.assert_allclose(made.gap, 0, atol=1e-12)
    np.testing.assert_allclose(made.parts.mean(axis=1), made.values, atol=1e-14)
    np.testing.assert_allclose(made.full, model.predict_proba(ROWS)[:, 1])
    np.testing.assert_allclose(made.empty, model.predict_proba(BACKGROUND)[:, 1].mean())
    assert made.calls == 2 ** len(players)
    assert made.model_rows == 2 ** len(players) * len(ROWS) * len(BACKGROUND)
    assert (
        made.game
        == "probability of class 1; interventional, other columns from a background of 15 rows"
    )


@pytest.mark.parametrize("batch", [1, 40, 1000, 100_000])
@pytest.mark.parametrize("kept", [0, 10**9])
def test_batches_do_not_matter(batch, kept, monkeypatch):
    model = GaussianNB().fit(X, THREE)
    whole = explain(model, ROWS, BACKGROUND, value="banzhaf")
    monkeypatch.setattr("surelearn.attribution.games.BATCH", batch)
    monkeypatch.setattr(explaining, "_KEPT", kept)
    pieces = explain(model, ROWS, BACKGROUND, value="banzhaf")
    np.testing.assert_allclose(pieces.values, whole.values, atol=1e-12)
    np.testing.assert_allclose(pieces.full, whole.full, atol=1e-12)
    np.testing.assert_allclose(pieces.empty, whole.empty, atol=1e-12)
    assert (pieces.parts is None) == (kept == 0)


def test_values_against_each_background_row():
    model = GaussianNB().fit(X, Y)
    made = explain(model, ROWS, BACKGROUND)
    alone = explain(model, ROWS, BACKGROUND[3:4])
    np.testing.assert_allclose(made.parts[:, 3], alone.values, atol=1e-12)
    low, high = made.over_background()
    assert (low < made.values).all()
    assert (made.values < high).all()


@pytest.mark.parametrize("method", ["sampling", "least squares"])
def test_sampled_rows_share_their_coalitions(method):
    model = GaussianNB().fit(X, Y)
    exact = explain(model, ROWS, BACKGROUND).values
    made = explain(
        model, ROWS, BACKGROUND, method=method, budget=3000, random_state=0, value_range=(0, 1)
    )
    np.testing.assert_allclose(made.values, exact, atol=0.02)
    assert (made.low <= exact).all()
    assert (exact <= made.high).all()
    assert made.calls == made.model_rows / (len(ROWS) * len(BACKGROUND))
    np.testing.assert_allclose(made.gap, 0, atol=1e-12)
    np.testing.assert_allclose(made.full, model.predict_proba(ROWS)[:, 1], atol=1e-12)
    one = explain(model, ROWS[:1], BACKGROUND, method=method, budget=3000, random_state=0)
    assert one.values.shape == one.low.shape == (1, 5)


@pytest.mark.parametrize("value", ["shapley", "banzhaf", ("beta", 3, 1), [1, 0, 0, 0, 0]])
@pytest.mark.parametrize(
    ("model", "labels", "output"),
    [
        (LogisticRegression(), Y, "score"),
        (LogisticRegression(), THREE, "score"),
        (SVC(kernel="linear"), Y, "score"),
        (Ridge(), X[:, 0] + X[:, 1] ** 2, "auto"),
    ],
)
def test_linear_outputs_in_closed_form(model, labels, output, value):
    model.fit(X, labels)
    options = {
        "output": output,
        "value": value,
        "groups": None if isinstance(value, list) else [[0, 1]],
    }
    quick = explain(model, ROWS, BACKGROUND, **options)
    slow = explain(model, ROWS, BACKGROUND, **options, method="exact")
    assert "linear" in quick.method
    np.testing.assert_allclose(quick.values, slow.values, atol=1e-10)
    np.testing.assert_allclose(quick.parts, slow.parts, atol=1e-10)
    np.testing.assert_allclose(quick.full, slow.full)
    np.testing.assert_allclose(quick.empty, slow.empty)


def test_what_only_looks_linear_is_enumerated():
    counts = PoissonRegressor().fit(X, Y)
    assert "every coalition" in explain(counts, ROWS, BACKGROUND).method  # predict is exp(w·x + c)
    model = LogisticRegression().fit(X, Y)
    # the probability is no linear output
    assert "every coalition" in explain(model, ROWS, BACKGROUND).method
    with pytest.raises(ValueError, match="no closed form is exact for the probability of class 1"):
        explain(model, ROWS, BACKGROUND, method="closed form")


def test_the_other_class():
    model = LogisticRegression().fit(X, np.where(Y == 1, "yes", "no"))
    for output in ("score", "probability"):
        yes, no = (
            explain(model, ROWS, BACKGROUND, output=output, target=label) for label in ("yes", "no")
        )
        np.testing.assert_allclose(no.values, -yes.values, atol=1e-12)
        assert no.game.startswith(f"{output} of class 'no'")
    with pytest.raises(
        ValueError, match="target must be one of the classes 'no', 'yes', not 'maybe'"
    ):
        explain(model, ROWS, BACKGROUND, target="maybe")


def test_each_row_its_own_class():
    model = GaussianNB().fit(X, THREE)
    rows = X[:12]
    made = explain(model, rows, BACKGROUND)
    said = model.predict(rows)
    assert len(set(said)) > 1
    for label in set(said):
        of_one = explain(model, rows, BACKGROUND, target=label)
        np.testing.assert_allclose(
            made.values[said == label], of_one.values[said == label], atol=1e-12
        )
        np.testing.assert_allclose(made.full[said == label], of_one.full[said == label], atol=1e-12)


def test_additive_outputs():
    def log_odds(Z):
        return np.diff(model.predict_joint_log_proba(Z), axis=1)[:, 0]

    model = GaussianNB().fit(X, Y)
    quick = explain(model, ROWS, BACKGROUND, output=log_odds, method="additive")
    slow = explain(model, ROWS, BACKGROUND, output=log_odds, method="exact")
    np.testing.assert_allclose(quick.values, slow.values, atol=1e-9)
    assert quick.calls < 2**5
    with pytest.raises(ValueError, match="the output is not additive"):
        explain(model, ROWS, BACKGROUND, method="additive")


def test_conditional_of_a_linear_output():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 3))
    many = rng.normal(size=(200, 3)) @ A
    w = np.array([1.0, -2.0, 0.5])
    model = Ridge(alpha=1e-8).fit(many, many @ w + 4)
    made = explain(model, many[:3], many[3:], game="conditional")
    mean, covariance = many[3:].mean(0), np.cov(many[3:], rowvar=False)

    def u(S, x):
        S, R = list(S), [j for j in range(3) if j not in S]
        z = x.copy()
        z[R] = mean[R]
        if S and R:
            z[R] += covariance[np.ix_(R, S)] @ np.linalg.solve(
                covariance[np.ix_(S, S)], x[S] - mean[S]
            )
        return float(z @ model.coef_ + model.intercept_)

    for row, values in zip(many[:3], made.values, strict=True):
        np.testing.assert_allclose(
            values, shapley(lambda S, row=row: u(S, row), 3).values, atol=1e-9
        )
    assert "conditional, columns Gaussian" in made.game
    apart = explain(model, many[:3], many[3:]).values - made.values
    assert np.abs(apart).max() > 0.1  # another game, other values
    copies = np.c_[many[:, 0], many[:, 0]]  # collinear: shared by symmetry
    twin = explain(Ridge().fit(copies, copies[:, 0]), copies[:2], copies, game="conditional")
    np.testing.assert_allclose(twin.values[:, 0], twin.values[:, 1], atol=1e-9)


def test_conditional_is_refused_where_it_is_not_known():
    with pytest.raises(
        ValueError, match=r"linear outputs of arrays only .* not for the probability of class 1"
    ):
        explain(GaussianNB().fit(X, Y), ROWS, BACKGROUND, game="conditional")
    with pytest.raises(ValueError, match="at least two rows"):
        explain(Ridge().fit(X, Y), ROWS, BACKGROUND[:1], game="conditional")


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=300),
            "colour": rng.choice(["red", "green", "blue"], 300),
            "kind": pd.Categorical(rng.choice(["a", "b"], 300)),
            "count": rng.integers(0, 5, 300),
        }
    )
    frame.loc[::7, "size"] = np.nan
    labels = (
        frame["size"].fillna(0) + (frame["colour"] == "red") * frame["count"] > 0.5
    ).to_numpy()
    return frame, labels


def pipeline(last, **options):
    words = OneHotEncoder(sparse_output=options.get("sparse", False), handle_unknown="ignore")
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return make_pipeline(
        make_column_transformer((numbers, ["count", "size"]), (words, ["colour", "kind"])), last
    )


@pytest.mark.parametrize("frames", [False, True])
@pytest.mark.parametrize(
    ("last", "output", "method"),
    [
        (LogisticRegression(), "score", "linear"),
        (RandomForestClassifier(10, random_state=0), "auto", "paths"),
        (GaussianNB(), "auto", "every coalition"),
    ],
)
def test_pipelines_are_prepared_once(last, output, method, frames, monkeypatch):
    frame, labels = table()
    model = pipeline(last)
    if frames:
        model.set_output(transform="pandas")
    model.fit(frame, labels)
    quick = explain(model, frame[:5], frame[100:120], output=output)
    assert method in quick.method
    monkeypatch.setattr(explaining, "prepared", lambda *_: None)
    slow = explain(model, frame[:5], frame[100:120], output=output, method="exact")
    assert quick.names == slow.names == ("size", "colour", "kind", "count")
    np.testing.assert_allclose(quick.values, slow.values, atol=1e-10)
    scores = getattr(model, "decision_function" if output == "score" else "predict_proba")(
        frame[:5]
    )
    np.testing.assert_allclose(slow.full, scores if output == "score" else scores[:, 1])


@pytest.mark.parametrize("batch", [1, 200, 100_000])
def test_batches_of_frames(batch, monkeypatch):
    frame, labels = table()
    model = pipeline(GaussianNB()).fit(frame, labels)
    quick = explain(model, frame[:5], frame[100:120])
    monkeypatch.setattr("surelearn.attribution.games.BATCH", batch)
    monkeypatch.setattr(explaining, "prepared", lambda *_: None)
    whole = explain(model, frame[:5], frame[100:120])
    np.testing.assert_allclose(whole.values, quick.values, atol=1e-10)
    assert whole.calls == 16


def test_a_pipeline_that_mixes_columns_is_asked_whole():
    model = make_pipeline(PCA(2), LogisticRegression()).fit(X, Y)
    made = explain(model, ROWS, BACKGROUND, output="score")
    assert "every coalition" in made.method
    np.testing.assert_allclose(
        made.values,
        by_hand(model.decision_function, ROWS, BACKGROUND, [[j] for j in range(5)]),
        atol=1e-10,
    )


def test_frames_of_numbers():
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = GaussianNB().fit(frame, Y)
    made = explain(model, frame[:4], frame[100:115], groups={"ab": ["a", "b"]})
    np.testing.assert_allclose(
        made.values,
        explain(GaussianNB().fit(X, Y), ROWS, BACKGROUND, groups=[[0, 1]]).values,
        atol=1e-12,
    )
    assert made.names == ("ab", "c", "d", "e")


def test_the_or_of_two_columns():
    def either(Z):
        return np.maximum(Z[:, 0], Z[:, 1])

    made = explain(either, np.array([[1, 1]]), np.array([[0, 0]]))
    assert made.values.tolist() == [[0.5, 0.5]]
    assert made.game.startswith("either; interventional")
    assert made.notes == (
        (
            "One background row: the values are against that row alone, and how far they depend on"
            " it cannot be seen."
        ),
    )
    assert not made.stable_top(1).stable
    assert "one background row" in made.stable_top(1).reason
    with pytest.raises(ValueError, match="at least two background rows"):
        made.over_background()


def test_stable_over_resampled_backgrounds():
    rng = np.random.default_rng(0)
    rows, background = rng.normal(size=(20, 5)), rng.normal(size=(60, 5))
    for some in (rows, background):
        some[:, 4] = rng.permutation(some[:, 3])  # the last two columns hold the same numbers
    model = Ridge(alpha=1e-9).fit(X, X @ np.array([5.0, 3.0, 0.0, 0.2, 0.2]))
    made = explain(model, rows, background)
    assert made.stable_top(2).stable
    assert made.stable_top(2).share == 1.0
    unsure = made.stable_top(3)
    assert not unsure.stable
    assert unsure.share is not None
    assert 0.05 < unsure.share < 0.95
    assert made.stable_top(3) == unsure


@pytest.mark.parametrize(
    "options",
    [{}, {"method": "sampling", "budget": 40, "random_state": 0}],
    ids=["exact", "sampled"],
)
def test_rounding_is_not_ranked(options):
    made = explain(lambda Z: np.full(len(Z), 0.1), ROWS, BACKGROUND, **options)
    assert np.abs(made.values).max() < 1e-15
    flat = made.stable_top(2)
    assert (flat.k, flat.names, flat.stable, flat.share) == (0, (), False, None)
    assert flat.reason.startswith("none of them counts")
    assert made.ranking == made.names
    assert "none of them counts" in str(made)
    assert "█" not in str(made)
    rows, few = np.full((6, 5), 7.0), BACKGROUND + 1e-9
    one = explain(lambda Z: 0.1 + Z[:, 3] / 3, rows, few, **options)
    top = one.stable_top(2)
    assert (top.k, top.names, top.stable) == (1, ("x3",), True)
    assert top.reason.endswith("; no other has a share")
    assert "none of them counts" not in str(one)
    tiny = explain(lambda Z: 1e-40 * Z[:, 3], ROWS, BACKGROUND, **options)
    assert tiny.stable_top(1).names == ("x3",)


def test_a_torch_module():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    ).double()
    made = explain(module, ROWS, BACKGROUND, target=1)

    def second(Z):
        with torch.no_grad():
            return module(torch.as_tensor(Z)).numpy()[:, 1]

    np.testing.assert_allclose(
        made.values, by_hand(second, ROWS, BACKGROUND, [[j] for j in range(5)]), atol=1e-12
    )
    assert "output of the module, column 1" in made.game


def boom(Z):
    raise RuntimeError("no such thing")


def changes(Z):
    Z *= 2
    return Z[:, 0]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (boom, "the model fails on rows that mix .*: no such thing"),
        (lambda Z: np.full(len(Z), np.nan), "the model gives NaN"),
        (lambda Z: np.where(Z[:, 0] == ROWS[0, 0], np.inf, 1.0), "NaN or infinite"),
        (lambda _: np.zeros(3), "one number, or one row of numbers, for each row"),
    ],
)
def test_models_that_fail(model, message):
    with pytest.raises(ValueError, match=message):
        explain(model, ROWS, BACKGROUND)


def test_a_model_that_changes_its_rows():
    with pytest.raises(ValueError, match="the model changes the rows"):
        explain(changes, rows := ROWS.copy(), BACKGROUND.copy())
    np.testing.assert_array_equal(rows, ROWS)


def test_nan_among_the_rows_is_the_models_business():
    rows = ROWS.copy()
    rows[0, 0] = np.nan
    model = HistGradientBoostingClassifier(max_iter=5).fit(X, Y)
    assert np.isfinite(explain(model, rows, BACKGROUND).values).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"output": "logit"}, "output must be"),
        ({"value": "owen"}, "value must be"),
        ({"game": "causal"}, "game must be"),
        ({"method": "magic"}, "method must be"),
        ({"background": BACKGROUND[:0]}, "background must be rows"),
        ({"background": BACKGROUND[:, :2]}, "same columns"),
        ({"X": ROWS[0]}, "X must be rows"),
        ({"groups": [[0, 1], [1, 2]]}, "must not share columns"),
        ({"groups": [[9]]}, "groups name column 9"),
        ({"groups": [["z"]]}, "groups name the column 'z'"),
        ({"groups": [[]]}, "holds none"),
        ({"names": ["a"]}, "names must be 5"),
    ],
)
def test_bad_arguments(arguments, message):
    given = {"X": ROWS, "background": BACKGROUND, **arguments}
    with pytest.raises(ValueError, match=message):
        explain(GaussianNB().fit(X, Y), given.pop("X"), given.pop("background"), **given)


def test_outputs_that_a_model_lacks():
    with pytest.raises(ValueError, match="needs a model with predict_proba"):
        explain(SVC().fit(X, Y), ROWS, BACKGROUND, output="probability")
    with pytest.raises(ValueError, match="the model has no classes"):
        explain(Ridge().fit(X, Y), ROWS, BACKGROUND, output="probability")
    with pytest.raises(TypeError, match="predict method or be a function"):
        explain(3, ROWS, BACKGROUND)
    with pytest.raises(TypeError, match="both be arrays or both be data frames"):
        explain(GaussianNB().fit(X, Y), pd.DataFrame(ROWS), BACKGROUND)


def test_titanic_decomposition():
    """Of the kind of Example 20.2 (whose figures cannot be had again): class, age and sex in
    the log odds of naive Bayes.
    """
    path = SHARED / "titanic.csv"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    from surelearn.linear import NaiveBayes

    frame = pd.read_csv(path)
    rows = pd.DataFrame(
        {
            "class": frame["Pclass"].map({1: "1st", 2: "2nd", 3: "3rd"}),
            "age": np.where(frame["Age"].fillna(30) < 16, "child", "adult"),
            "sex": frame["Sex"],
        }
    )
    model = NaiveBayes().fit(rows, frame["Survived"])
    woman = pd.DataFrame([["3rd", "adult", "female"]], columns=rows.columns)

    def log_odds(Z):
        p = model.predict_proba(Z)
        return np.log(p[:, 1] / p[:, 0])

    made = explain(model, woman, rows, output=log_odds, method="additive")
    mean = model.contributions(rows).mean(axis=0)
    np.testing.assert_allclose(made.values, model.contributions(woman) - mean, atol=1e-9)
    assert made.values[0, 0] < 0 < made.values[0, 2]
    assert abs(made.values[0, 1]) < abs(made.values[0, 0])
    assert made.ranking[0] == "sex"
    probability = explain(model, woman, rows)
    assert probability.full[0] == pytest.approx(model.predict_proba(woman)[0, 1])
    np.testing.assert_allclose(probability.gap, 0, atol=1e-12)


def test_banzhaf_of_a_model_is_banzhaf_of_its_game():
    model = GaussianNB().fit(X, Y)

    def u(S):
        mixed = BACKGROUND.copy()
        mixed[:, list(S)] = ROWS[0, list(S)]
        return float(model.predict_proba(mixed)[:, 1].mean())

    np.testing.assert_allclose(
        explain(model, ROWS[:1], BACKGROUND, value="banzhaf").values[0],
        banzhaf(u, 5).values,
        atol=1e-12,
    )
