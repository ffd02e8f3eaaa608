"""Widths of intervals: learned without the row's own residual, chosen on the rows to fit on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import binom, norm
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from tests.cases import scikit_learn_accepts
from tests.simulation import at_most, enough, limit

import surelearn
from surelearn import certify
from surelearn.auditing.sections import skippable
from surelearn.bounds import conformal_rank_pac
from surelearn.certification import uncounted
from surelearn.fingerprint import fixed_models
from surelearn.persistence import load, save
from surelearn.prediction import intervals
from surelearn.selection.widths import IntervalRegressor, compare_widths, shortest
from surelearn.subject import subject_of
from surelearn.subject.bands import Band

DELTA, ALPHA = 0.2, 0.1


def rows(rng, n):
    """Noise whose spread is 0.2 to 2.2, a line in x."""
    X = rng.uniform(0, 1, (n, 2))
    return X, X[:, 1] + spread(X) * rng.normal(size=n)


class Line(RegressorMixin, BaseEstimator):
    """The second column."""

    def fit(self, X, y):  # noqa: ARG002
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return X[:, 1]


def spread(X):
    return 0.2 + 2.0 * X[:, 0]


def model_of(rng, n=300, **options):
    X, y = rows(rng, n)
    return IntervalRegressor(LinearRegression(), **{"alpha": ALPHA, **options}).fit(X, y)


def coverage(ends, X):
    """The exact share of new targets inside, given the rows' columns."""
    chances = [norm.cdf((end - X[:, 1]) / spread(X)) for end in ends]
    return float(np.mean(chances[1] - chances[0]))


@pytest.mark.parametrize("form", [None, "normalized"])
def test_scikit_learn_s_checks(form):
    scikit_learn_accepts(IntervalRegressor(LinearRegression(), form=form))


def test_the_narrowest_form_is_chosen_and_a_simpler_one_where_it_is_as_good():
    rng = np.random.default_rng(0)
    X, y = rows(rng, 800)
    grows = IntervalRegressor(LinearRegression()).fit(X, y)
    assert grows.form_ == "normalized"
    constant, normalized, _ = grows.widths_
    assert normalized.gain == pytest.approx(constant.mean - normalized.mean)
    assert normalized.gain > 3 * normalized.error > 0
    above = X[:, 1] + spread(X) * rng.exponential(size=800)
    assert IntervalRegressor(Line()).fit(X, above).form_ == "quantiles"
    even = [
        IntervalRegressor(LinearRegression()).fit(X, X[:, 1] + rng.normal(size=800)).form_
        for _ in range(6)
    ]
    assert even.count("constant") >= 5


@pytest.mark.parametrize("form", ["constant", "normalized", "quantiles"])
def test_few_rows_and_perfect_answers_have_constant_widths(form):
    rng = np.random.default_rng(0)
    X, y = rows(rng, 60)
    few = IntervalRegressor(LinearRegression(), form=form).fit(X, y)
    perfect = IntervalRegressor(LinearRegression(), form=form).fit(X, X[:, 1])
    for model in (few, perfect):
        assert model.form_ == "constant"
        assert not hasattr(model, "predict_band")
        assert certify(model, X, y)["error_quantile"].theorem == "conformal_radius"


def test_compared_widths_are_those_of_intervals_that_hold_the_level():
    """Without a range the widths are twice the quantiles, computed here again."""
    rng = np.random.default_rng(1)
    scale, said = rng.uniform(0.2, 2.0, 400), rng.normal(size=400)
    residuals = scale * rng.normal(size=400)
    found, chosen = compare_widths(said, residuals, scale, 0.1)

    def quantile(values):
        return np.sort(values)[int(np.ceil(0.9 * 400)) - 1]

    assert found[0].mean == pytest.approx(2 * quantile(np.abs(residuals)))
    expected = 2 * quantile(np.abs(residuals) / scale) * scale.mean()
    assert found[1].mean == pytest.approx(expected)
    assert chosen != "constant"
    within = compare_widths(said, residuals, scale, 0.1, target_range=(-1.0, 1.0))[0]
    assert all(short.mean < wide.mean for short, wide in zip(within, found, strict=True))
    assert within[0].mean <= 2.0


def test_the_shortest_interval_is_the_shortest_of_all_that_hold_the_share():
    values = np.random.default_rng(0).exponential(size=101) - 0.5
    ordered, count = np.sort(values), int(np.ceil(0.8 * 101))
    ends = [(ordered[i], ordered[i + count - 1]) for i in range(101 - count + 1)]
    low, high = min(ends, key=lambda pair: pair[1] - pair[0])
    assert shortest(values, 0.8) == (min(low, 0.0), max(high, 0.0))


@pytest.mark.parametrize("form", ["normalized", "quantiles"])
def test_intervals_are_what_the_score_says_and_within_the_stated_range(form):
    rng = np.random.default_rng(2)
    model = model_of(rng, form=form, target_range=(-2.0, 3.0))
    X, y = rows(rng, 400)
    certificate = certify(model, X, y, delta=DELTA)
    claim = certificate["score_quantile"]
    low, high = model.predict_interval(X, claim.value)
    inside = (y >= -2) & (y <= 3)
    assert certificate.facts["outside.count"] == int((~inside).sum()) > 0
    assert low.min() >= -2
    assert high.max() <= 3
    band_low, band_high, scale = model.predict_band(X)
    scores = np.where(inside, np.maximum(band_low - y, y - band_high) / scale, np.inf)
    rank = int(conformal_rank_pac(400, ALPHA, DELTA))
    assert claim.value == np.sort(scores)[rank - 1]
    # what the score holds the interval holds, also at its very end
    assert ((y >= low) & (y <= high))[scores <= claim.value].all()
    assert not ((y >= low) & (y <= high))[scores > claim.value * (1 + 1e-9) + 1e-9].any()
    assert certificate.verify(model, X, y)
    again = type(certificate).from_json(certificate.to_json())
    assert again.verify(model, X, y)


def test_a_saved_model_has_the_same_widths_and_the_same_hash(tmp_path):
    rng = np.random.default_rng(3)
    model, (X, y) = model_of(rng), rows(rng, 200)
    certificate = certify(model, X, y)
    again = load(save(model, tmp_path / "model", certificate=certificate))
    for old, new in zip(model.predict_band(X), again.predict_band(X), strict=True):
        np.testing.assert_array_equal(old, new)
    assert certificate.verify(again, X, y)
    assert again.widths_ == model.widths_
    other = model_of(np.random.default_rng(3), random_state=1)
    assert not certificate.verify(other, X, y)


def test_it_predicts_and_explains_as_the_regressor_inside():
    rng = np.random.default_rng(4)
    model, (X, _) = model_of(rng), rows(rng, 50)
    np.testing.assert_array_equal(model.predict(X), model.regressor_.predict(X))
    assert subject_of(model).form.form.weights == pytest.approx(model.regressor_.coef_[None])
    frame = pd.DataFrame(X, columns=["a", "b"])
    named = IntervalRegressor(LinearRegression()).fit(frame, X[:, 1] + X[:, 0])
    assert named.feature_names_in_.tolist() == ["a", "b"]
    sparse = IntervalRegressor(LinearRegression()).fit(
        csr_matrix(rows(rng, 200)[0]), rng.random(200)
    )
    assert sparse.predict(csr_matrix(X)).shape == (50,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "wide"}, "form must be constant, normalized, quantiles or None, not 'wide'"),
        ({"alpha": 1.0}, "alpha must lie strictly between 0 and 1"),
        ({"target_range": (1.0, 0.0)}, "target_range must be two finite numbers"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        model_of(np.random.default_rng(0), **options)


class Strange:
    """Gives a band that is none."""

    def __init__(self, low, high, scale):
        self.band = low, high, scale

    def predict(self, X):
        return np.zeros(len(X))

    def predict_band(self, X):
        return tuple(np.full(len(X), end) for end in self.band)


@pytest.mark.parametrize(
    ("band", "message"),
    [((0, 1, 0), "a scale above 0"), ((1, 0, 1), "low ≤ high"), ((0, np.inf, 1), "not finite")],
)
def test_a_band_that_is_none_is_refused(band, message):
    with pytest.raises(ValueError, match=message):
        certify(Strange(*band), np.zeros((9, 1)), np.arange(9.0), task="regression")


# ── coverage ─────────────────────────────────────────────────────────────────────────────────────


def missed(model, rng, n, fresh, trials, *, change=None):
    """In how many of so many certificates less than 1 − α is covered."""
    count, band = 0, None if change else Band(*model.predict_band(fresh))
    for _ in range(trials):
        X, y = rows(rng, n)
        used = model if change is None else change(X, y)
        with fixed_models(model), uncounted():
            claim = certify(used, X, y, delta=DELTA, alpha=ALPHA)["score_quantile"]
        found = band or Band(*used.predict_band(fresh))
        count += coverage(found.interval(claim.value), fresh) < 1 - ALPHA
    return count


class Known(IntervalRegressor):
    """A width that is nearly right, and costs nothing; ends of its own, where they are given."""

    ends = (0.0, 0.0)

    def predict_band(self, X):
        said, scale = np.asarray(X)[:, 1], 0.5 + np.asarray(X)[:, 0]
        return said + self.ends[0] * scale, said + self.ends[1] * scale, scale


@pytest.mark.parametrize("ends", [(0.0, 0.0), (-1.0, 3.0)])
def test_certified_scores_cover_as_often_as_stated_and_no_more_often(ends):
    """For continuous scores the rank is exact: P(Bin(n, 1 − α) ≥ rank), between δ/2 and δ."""
    rng = np.random.default_rng(5)
    model, fresh, n, trials = Known(LinearRegression()), rows(rng, 4000)[0], 60, 400
    model.fit(*rows(rng, 50)).ends = ends
    exact = float(binom.sf(conformal_rank_pac(n, ALPHA, DELTA) - 1, n, 1 - ALPHA))
    assert DELTA / 2 < exact <= DELTA
    found = missed(model, rng, n, fresh, trials)
    assert at_most(found, exact, trials)
    assert found >= 2 * trials * exact - limit(exact, trials)


def test_widths_that_were_fitted_to_the_certify_rows_break_their_promise():
    rng = np.random.default_rng(6)
    model, fresh = model_of(rng), rows(rng, 1000)[0]

    def mutant(X, y):
        return Nearest(LinearRegression()).fit_around(model.regressor_, X, y, None)

    assert not at_most(missed(model, rng, 120, fresh, 60, change=mutant), DELTA, 60)


class Nearest(IntervalRegressor):
    """A width that is the residual of the nearest row that it was fitted to."""

    def fit_around(self, fitted, X, y, predictions):
        super().fit_around(fitted, X, y, predictions)
        self.rows_, self.sizes_ = X, np.abs(y - self.predict(X))
        return self

    def predict_band(self, X):
        away = np.square(X[:, None, :] - self.rows_[None]).sum(axis=2)
        said = self.predict(X)
        return said, said, self.sizes_[away.argmin(axis=1)] + 0.2


class Guessed(IntervalRegressor):
    """A width that is a guess: another one for each seed."""

    def predict_band(self, X):
        said, rng = self.predict(X), np.random.default_rng(self.random_state)
        waves = np.sin(np.asarray(X) @ rng.normal(0, 40, (2, 6))).sum(axis=1)
        return said, said, np.exp(0.4 * waves)


def test_a_form_that_the_certify_rows_choose_breaks_the_promise_and_is_told():
    rng = np.random.default_rng(7)
    model, fresh = model_of(rng), rows(rng, 1000)[0]
    forms = []
    for seed in range(12):
        one = Guessed(LinearRegression(), random_state=seed)
        one.regressor_, one.form_ = model.regressor_, "normalized"
        one.n_features_in_ = 2
        forms.append(one)

    def mutant(X, y):
        rank = int(conformal_rank_pac(len(y), ALPHA, DELTA)) - 1

        def width(one):
            low, high, scale = one.predict_band(X)
            q = np.sort(np.maximum(low - y, y - high) / scale)[rank]
            return np.mean(q * scale)

        return min(forms, key=width)

    assert not at_most(missed(model, rng, 40, fresh, 80, change=mutant), DELTA, 80)
    X, y = rows(rng, 40)
    settings = [certify(one, X, y).facts.setting for one in forms[:2]]
    assert "to choose among them, state candidates=2" in settings[1]


@pytest.mark.slow
def test_an_audit_keeps_the_promise_of_its_intervals():
    """Through the whole of `surelearn.audit`, the form chosen or stated."""
    rng, counts, trials = np.random.default_rng(8), [0, 0], 40
    fresh = rows(rng, 1000)[0]
    options = {"delta": DELTA, "skip": skippable()}
    options |= {"refits": 0, "curve_repeats": 0, "ledger": False, "task": "regression"}
    for trial in range(trials):
        X, y = rows(rng, 260)
        table = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
        width = (None, "quantiles")[trial % 2]
        page = surelearn.audit(
            table, target="y", models={"linear": LinearRegression()}, width=width, **options
        )
        claim = page.certificate.together[0]
        frame = pd.DataFrame(fresh, columns=["a", "b"])
        ends = surelearn.prediction.intervals(page.model, frame, page.certificate)
        counts[0] += coverage(ends, fresh) < 1 - ALPHA
        counts[1] += claim.quantity == "score_quantile"
        if trial % 10 == 9 and enough([(counts[0], DELTA)], trial + 1, trials):
            trials = trial + 1
            break
    assert at_most(counts[0], DELTA, trials)
    assert counts[0] >= 1
    assert counts[1] > trials / 2


def test_a_width_is_compared_without_the_row_s_own_residual():
    """Of even noise no width is learned: by trees that had drawn the row it would seem narrower."""
    rng, gains = np.random.default_rng(9), []
    for _ in range(8):
        X, _ = rows(rng, 200)
        model = IntervalRegressor(LinearRegression()).fit(X, X[:, 1] + rng.normal(size=200))
        constant, normalized, _ = model.widths_
        gains.append(normalized.gain / constant.mean)
    assert np.mean(gains) < 0.005


def test_an_interval_holds_the_truth_at_its_very_end():
    rng = np.random.default_rng(10)
    for _ in range(300):
        low, width, scale, y = rng.normal(size=4) * 10.0 ** rng.integers(-3, 6, 4)
        band = Band(np.array([low]), np.array([low + abs(width)]), np.array([abs(scale)]))
        score = float(band.scores(np.array([y]))[0])
        ends = band.interval(score)
        assert ends[0][0] <= y <= ends[1][0]


def test_an_interval_of_one_distance_holds_the_truth_at_its_very_end():
    """Prices around one prediction: the distance of a fifth of them is the certified one."""
    rng, held = np.random.default_rng(11), []
    for _ in range(60):
        said = float(np.round(rng.uniform(1, 2000), 1))
        y = rng.choice(np.round(rng.uniform(0, 1.2 * said, 5), 2), 200)
        model = IntervalRegressor(DummyRegressor(strategy="constant", constant=said))
        X = np.zeros((200, 1))
        model.fit(X[:9], np.full(9, said))
        certificate = certify(model, X, y)
        distance = certificate["error_quantile"].value
        for low, high in (
            intervals(model, X, certificate), model.predict_interval(X, distance)
        ):  # fmt: skip
            held.append(((low <= y) & (y <= high))[np.abs(y - said) <= distance].all())
    assert all(held)
