"""A refit chooses its own decision threshold, as the model did: label noise and fewer rows are not
measured at a threshold that was made for other probabilities.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import surelearn
from surelearn.auditing import own_threshold as own
from surelearn.auditing.own_threshold import FOLDS, NOTE, OwnThreshold
from surelearn.auditing.sections import learning_curve, one_row, stability
from surelearn.auditing.sections.poisoning import work
from surelearn.measurement import costs_of
from surelearn.selection.costs import choose_threshold
from surelearn.selection.cross_validation import Resampling, resample
from surelearn.selection.metrics import threshold_of_f1

RNG = np.random.default_rng(0)
N = 900
ILL = RNG.random(N) < 0.07
FRAME = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["a", "b", "c"])
FRAME = FRAME.assign(a=FRAME.a + 2 * ILL, state=np.where(ILL, "ill", "well"))
QUICK = {
    "target": "state",
    "models": {"it": LogisticRegression()},
    "positive": "ill",
    "ledger": False,
    "n_jobs": 1,
    "refits": 2,
    "curve_repeats": 2,
    "effort": 0.3,
    "skip": ("robustness", "membership", "attribution"),
}


def by_hand(X, y, seed=0):
    """The threshold of a fit to the rows, from predictions by fits to the other folds."""
    scores = np.empty(len(y))
    for fit, held in resample(Resampling(folds=FOLDS), y, stratify=True, random_state=seed):
        model = LogisticRegression().fit(X[fit], y[fit])
        scores[held] = model.predict_proba(X[held])[:, 0]
    return choose_threshold(scores, y, "ill", 20.0)


def choice(**changes):
    given = {"uncut": LogisticRegression(), "positive": "ill", "miss": 20.0, "usual": 0.123}
    return OwnThreshold(**{**given, **changes})


def test_it_is_the_cheapest_on_out_of_fold_predictions():
    X, y = FRAME[["a", "b", "c"]].to_numpy(), FRAME.state.to_numpy()
    assert choice().of(X, y) == by_hand(X, y)
    noisy = np.where(RNG.random(N) < 0.1, "ill", y)
    at = choice().of(X, noisy)
    assert at == by_hand(X, noisy)
    model = choice().model(X, noisy)
    assert (model.threshold, model.pos_label) == (at, "ill")
    known = choice(scores=np.linspace(0, 1, N))
    rows = np.arange(0, N, 2)
    expected = choose_threshold(np.linspace(0, 1, N)[rows], y[rows], "ill", 20.0)
    assert known.of(X[rows], y[rows], rows) == expected


def test_where_nothing_can_be_chosen_the_usual_one_stays():
    X = FRAME[["a"]].to_numpy()
    assert choice().of(X, np.full(N, "well")) == 0.123
    assert choice().of(X[:3], np.array(["ill", "well", "well"])) == 0.123


@pytest.fixture(scope="module")
def both():
    """The audit as it is, and with the model's threshold in every refit."""
    measured = surelearn.audit(FRAME, cost=20.0, **QUICK)
    with pytest.MonkeyPatch.context() as patch:
        for module in (stability, one_row, learning_curve, work):
            patch.setattr(module, "own_threshold", lambda *_, **__: None)
        fixed = surelearn.audit(FRAME, cost=20.0, **QUICK)
    return measured, fixed


def numbers(result, code):
    return next(f.numbers for f in result.findings if f.code == code)


def test_poison_is_measured_by_the_cost_at_the_refits_own_threshold(both):
    own_one, fixed = (numbers(result, "SL621") for result in both)
    for code in ("SL621", "SL623"):
        assert numbers(both[0], code) != numbers(both[1], code)
    # always answering ‘ill’ costs less than 0.95 a row: no refit is worse than that by much
    assert max(own_one.values()) < 1.1
    assert own_one["clean"] <= fixed["clean"] + 0.1
    chart = both[0]["poisoning"].charts[0]
    assert chart.title.startswith("Mean cost against label noise")
    assert (chart.data["unit"], chart.data["y"][0]) == ("number", own_one["clean"])
    text = next(f.text for f in both[0].findings if f.code == "SL621")
    assert "the mean cost" in text
    assert "%" not in text.partition("the mean cost")[2]


def test_the_learning_curve_is_about_the_cost(both):
    chart, fixed = (result["learning_curve"].charts[0] for result in both)
    assert chart.title == "Held-out mean cost against training rows"
    assert chart.data["unit"] == "number"
    # beyond the first steps, a threshold of the refit's own costs less, or as much
    assert np.mean(chart.data["y"]) < np.mean(fixed.data["y"]) + 0.05
    assert chart.data["y"] != fixed.data["y"]
    assert "mean cost" in both[0]["learning_curve"].notes[0]


def test_it_is_said_once(both):
    measured, fixed = both
    sections = [
        key for key in ("learning_curve", "stability", "poisoning") if NOTE in measured[key].notes
    ]
    assert sections == ["learning_curve", "stability", "poisoning"]
    assert measured.to_html().count(NOTE) == 1
    assert fixed["poisoning"].notes  # and its own notes stay


def test_a_stated_threshold_is_the_same_in_every_refit():
    result = surelearn.audit(FRAME, threshold=0.05, **QUICK)
    assert NOTE not in result.to_html()
    assert result["learning_curve"].charts[0].title.startswith("Held-out mean cost")


def test_with_a_metric_it_is_the_best_by_the_metric():
    X, y = FRAME[["a", "b", "c"]].to_numpy(), FRAME.state.to_numpy()
    known = choice(miss=None, metric="f1", scores=np.linspace(0, 1, N))
    assert known.of(X, y, np.arange(N)) == threshold_of_f1(np.linspace(0, 1, N), y == "ill")
    result = surelearn.audit(FRAME, metric="f1", **{**QUICK, "skip": (*QUICK["skip"], "poisoning")})
    assert result["stability"].notes[0] == result["learning_curve"].notes[-1] == NOTE
    assert result["learning_curve"].charts[0].title.startswith("Held-out error")


def test_rows_left_out_move_the_threshold_too(monkeypatch):
    """The closed form, against fits without each row at their own threshold."""
    kept = {}
    measure = one_row.measure
    monkeypatch.setattr(
        stability.one_row,
        "measure",
        lambda context, refits: kept.update(of=context) or measure(context, refits),
    )
    from surelearn.linear import LogisticRegression as Ours

    frame = FRAME.iloc[:240]
    options = {
        **QUICK,
        "models": {"it": Ours(regularization=0.05)},
        "skip": (*QUICK["skip"], "poisoning"),
    }
    result = surelearn.audit(
        frame,
        cost=20.0,
        curve_repeats=0,
        **{k: v for k, v in options.items() if k != "curve_repeats"},
    )
    context = kept["of"]
    X, y = context.rows("train")
    new = context.rows("certify")[0]
    at = own.own_threshold(context, nearly_all=True)
    before, changed = np.asarray(context.model.predict(new)), 0.0
    scores = context.selection.scores[:, 0]
    for row in range(len(y)):
        rows = np.delete(np.arange(len(y)), row)
        t = choose_threshold(scores[rows], y[rows], "ill", 20.0)
        assert t == at.of(X, y[rows], rows)
        changed = max(
            changed,
            float(np.mean((context.model.predict_proba(new)[:, 0] >= t) != (before == "ill"))),
        )
    told = numbers(result, "SL402")
    assert told["rows_left_out"] == len(y)
    assert told["share"] == pytest.approx(changed, abs=0.06)  # the weights move as well, by little


def test_costs_are_what_the_curve_averages():
    assert costs_of(np.array([True, False]), np.array([False, True]), 20.0).tolist() == [20.0, 1.0]
