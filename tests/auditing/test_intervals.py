"""Intervals with a width of each row's own, through audit, predict, watch, verify and certify."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.optimize import brentq
from scipy.stats import binom
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression

import surelearn
from surelearn.auditing.answers import audit_answers
from surelearn.auditing.sections import skippable
from surelearn.bounds import clopper_pearson
from surelearn.cli import main
from surelearn.monitoring import Watch
from surelearn.persistence import read_model
from surelearn.plain import show
from surelearn.prediction import intervals, predict
from surelearn.report.rows import claim_rows

QUICK = {"models": {"line": LinearRegression()}, "ledger": False, "refits": 0, "curve_repeats": 0}
SKIP = tuple(name for name in skippable() if name != "coverage")


def table(n=700, seed=0, even=False):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0, 1, (2, n))
    kind = np.where(rng.random(n) < 0.5, "left", "right")
    size = 1.0 if even else 0.2 + 2.0 * a
    return pd.DataFrame({"a": a, "b": b, "kind": kind, "y": b + size * rng.normal(size=n)})


def audited(frame, **options):
    return surelearn.audit(frame, target="y", skip=SKIP, **QUICK, **options)


@pytest.fixture(scope="module")
def page():
    return audited(table(), target_range=(-8, 9))


@pytest.fixture(scope="module")
def folder(page, tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit") / "audit"
    page.write(folder)
    return folder


def test_the_page_says_how_wide_and_how_often(page):
    assert page.certificate.together[0].quantity == "score_quantile"
    assert "At least 90% of new rows have the truth inside their own interval" in page.verdict.text
    assert "no bound on the error is stated" in page.verdict.text
    section = next(one for one in page.sections if one.key == "coverage")
    finding = section.findings[0]
    widths = finding.numbers["half_width"]
    assert len(widths) == len(finding.numbers["coverage"]) == 5
    assert min(finding.numbers["coverage"]) > 0.8
    notes = " ".join(section.notes)
    assert "clipped to the stated range, -8 to 9" in notes
    forms = section.tables[1].rows
    assert [row[0].removesuffix(", used") for row in forms] == [
        "constant",
        "normalized",
        "quantiles",
    ]
    assert sum(row[0].endswith(", used") for row in forms) == 1


def test_the_guaranteed_row_says_how_many_rows_are_inside(page, folder):
    """Not the score: the share p with P(Bin(n, p) ≥ k) = δ, for the rank k of the threshold."""
    claim, (row, *_) = page.certificate.together[0], claim_rows(page.certificate, "together")
    scores = np.asarray(claim.inputs["scores"])
    rank = int((np.sort(scores) < claim.value).sum()) + 1
    share = brentq(lambda p: binom.sf(rank - 1, scores.size, p) - claim.delta, 0.01, 0.999)
    assert 0.9 <= share < 0.92
    assert row.drawn.value == pytest.approx(share, abs=1e-9)
    assert row.drawn.measured == rank / scores.size
    shown = show(share, "rate", ">=")
    assert (row.word, row.bound) == ("at least", shown)
    assert row.label == "New rows inside their own interval"
    text = (folder / "report.html").read_text(encoding="utf-8")
    guaranteed = text[text.index('aria-label="Guaranteed"') :][:3_000]
    for said in ("New rows inside their own interval", shown, ">0%<", ">100%<"):
        assert said in guaranteed
    assert "New rows inside their own interval" in page.to_markdown()
    withheld = page.published().certificate  # without the rows' scores
    assert claim_rows(withheld, "together")[0].drawn.value == row.drawn.value


def test_the_form_is_fixed_without_the_certify_rows():
    """The rows to fit on alone give the same widths, made here again by hand."""
    frame = table()
    first = audited(frame)
    X, y = frame.drop(columns="y"), frame["y"].to_numpy().copy()
    certify = surelearn.audit(frame, target="y", dry_run=True).split.certify
    train = np.setdiff1d(np.arange(len(y)), certify)
    assert first.certificate.facts["rows"] == certify.size
    again = surelearn.selection.widths.around(
        first.model.regressor, first.model.regressor_, X.iloc[train], y[train],
        out_of_fold(first, X, y, train), kinds={"a": "number", "b": "number", "kind": "category"},
        alpha=0.1, random_state=first.model.random_state,
    )  # fmt: skip
    assert again.form_ == first.model.form_
    for mine, its in zip(again.predict_band(X), first.model.predict_band(X), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-9)


def out_of_fold(page, X, y, train):
    from surelearn.selection.cross_validation import average, default_resampling, resample

    pairs = resample(default_resampling(train.size), y[train], random_state=0)
    rows = X.iloc[train]
    said = [
        surelearn.subject.refitting.fit_quietly(page.model.regressor, rows.iloc[a], y[train][a])
        .predict(rows.iloc[b])
        for a, b in pairs
    ]  # fmt: skip
    return average(said, pairs, train.size)


def test_the_folder_predicts_watches_and_verifies(page, folder, tmp_path):
    new = table(400, seed=1)
    saved = read_model(folder / "model")
    made = predict(saved, new.drop(columns="y"))
    low, high = intervals(page.model, new.drop(columns="y"), page.certificate)
    np.testing.assert_allclose(made["low"], low)
    np.testing.assert_allclose(made["high"], high)
    assert made["low"].min() >= -8
    assert np.ptp(made["high"] - made["low"]) > 1
    watch = Watch(page.certificate)
    watch.update(new["y"], made["prediction"], intervals=(low, high))
    assert not watch.alarm
    assert watch.rows == 400
    assert watch.headline.errors == ((new["y"] < low) | (new["y"] > high)).sum()
    shifted = Watch(page.certificate).update(
        new["y"] + 5, made["prediction"], intervals=(low, high)
    )
    assert shifted.alarm
    nothing = Watch(page.certificate).update(new["y"] + 5, made["prediction"])
    assert nothing.rows == 0
    with pytest.raises(ValueError, match="intervals must be low ≤ high"):
        watch.update(new["y"], made["prediction"], intervals=(high + 1, low))

    file, state = tmp_path / "live.csv", tmp_path / "w.json"
    new.to_csv(file, index=False)
    run = CliRunner().invoke(main, ["watch", str(folder), str(file), "--state", str(state)])
    assert "of 400 rows outside, ≤ 10.0% certified" in run.output
    predicted = new.assign(prediction=made["prediction"], low=low, high=high, y=new["y"] + 5)
    predicted.drop(columns=["a", "b", "kind"]).to_csv(file, index=False)
    run = CliRunner().invoke(main, ["watch", str(folder), str(file), "--state", str(state)])
    assert "Alarm after" in run.output

    data = tmp_path / "table.csv"
    table().to_csv(data, index=False)
    run = CliRunner().invoke(main, ["verify", str(folder), "--data", str(data)])
    assert run.exit_code == 0, run.output
    assert "facts from model and rows" in run.output


def test_another_width_is_another_model(page):
    X, y = table().drop(columns="y"), table()["y"]
    certify = surelearn.audit(table(), target="y", dry_run=True).split.certify
    rows, truth = X.iloc[certify], y.to_numpy()[certify]
    assert page.certificate.verify(page.model, rows, truth)
    before = page.model.unit_
    try:
        page.model.unit_ = before * 2
        assert not page.certificate.verify(page.model, rows, truth)
    finally:
        page.model.unit_ = before


def test_even_noise_and_a_stated_width_stay_constant():
    even = audited(table(even=True))
    assert even.certificate.together[0].quantity == "error_quantile"
    assert "fall within" in even.verdict.text
    stated = audited(table(), width="constant", target_range=(-8, 9))
    claim = stated.certificate.together[0]
    assert claim.quantity == "error_quantile"
    X = table(50, seed=2).drop(columns="y")
    low, high = intervals(stated.model, X, stated.certificate)
    said = stated.model.predict(X)
    np.testing.assert_allclose(low, np.clip(said - claim.value, -8, 9))
    np.testing.assert_allclose(high, np.clip(said + claim.value, -8, 9))


@pytest.mark.parametrize("change", ["group", "time", "require"])
def test_with_other_options(change):
    frame = table(900)
    if change == "group":
        found = audited(frame.assign(g=np.arange(900) // 3), group="g")
        claim = found.certificate.together[0]
        assert claim.quantity == "score_quantile"
        assert len(claim.inputs["scores"]) == found.certificate.facts["groups"]
        assert "random rows of new" in found.verdict.text
    elif change == "time":
        found = audited(frame.assign(t=np.arange(900)), time="t")
        assert found.certificate.claims == ()
        assert not hasattr(found.model, "predict_band")
    else:
        found = audited(frame, require="mean_error <= 3", loss_bound=20.0)
        assert {c.quantity for c in found.certificate.together} >= {"score_quantile", "mean_loss"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_range": (0, 1)}, r"target_range 0 to 1 does not hold \d+ of \d+ rows to fit on"),
        ({"target_range": (1, 0)}, "target_range must be two finite numbers"),
        ({"width": "wide"}, "width must be constant, normalized, quantiles, not 'wide'"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        audited(table(300), **options)


def test_a_range_that_fit_rows_contradict_is_refused_before_anything_is_fitted(monkeypatch):
    monkeypatch.delenv("CI", raising=False)  # where a gate asks for --try first

    class Never(RegressorMixin, BaseEstimator):
        def fit(self, X, y):  # noqa: ARG002
            raise AssertionError("fitted")

        predict = fit

    for asked in (surelearn.audit, partial(surelearn.gate, max_risk=5.0)):
        with pytest.raises(ValueError, match="rows to fit on: state what 'y' can be"):
            asked(table(300), target="y", **{**QUICK, "models": Never()}, target_range=(0, 1))


@pytest.mark.parametrize(
    ("rows", "leak", "why"),
    [
        (120, False, "too few rows were predicted"),
        (700, True, "a column that may repeat the target"),
    ],
)
def test_a_form_that_is_not_used_although_asked_for_is_told(rows, leak, why):
    frame = table(rows)
    found = audited(frame.assign(leak=2 * frame["y"]) if leak else frame, width="quantiles")
    assert found.certificate["error_quantile"].value > 0
    page = found.to_html()
    assert "The form quantiles was asked for and is not used" in page
    assert why in page


def test_too_many_targets_outside_the_range_are_no_lack_of_rows():
    frame = table(400)
    X, y = frame[["a", "b"]].to_numpy(), frame["y"].to_numpy()
    model = LinearRegression().fit(X[:200], y[:200])
    rest = {"ledger": False, "skip": SKIP, "refits": 0, "curve_repeats": 0}
    found = surelearn.audit(model, X[200:], y[200:], target_range=(0, 9), **rest)
    lost = int((y[200:] < 0).sum())
    said = f"{lost} of 200 held-back rows lie outside the stated range, 0 to 9, and no interval holds them"
    assert said in found.verdict.text
    assert "label at least" not in found.verdict.text


def test_options_of_numbers_are_refused_for_classes():
    frame = table(200).assign(y=np.arange(200) % 2)
    with pytest.raises(ValueError, match="width is about numbers, and 'y' is read as classes"):
        surelearn.audit(frame, target="y", width="constant", ledger=False)
    with pytest.raises(ValueError, match="target_range is about numbers"):
        surelearn.certify(
            lambda X: X[:, 0], np.zeros((9, 1)), np.zeros(9), task="classification",
            classes=[0.0, 1.0], target_range=(0, 1),
        )  # fmt: skip


def test_a_gate_of_one_distance_keeps_one_width(tmp_path):
    frame = table()
    passed = surelearn.gate(
        frame,
        target="y",
        max_risk=50.0,
        models={"line": LinearRegression()},
        ledger=False,
        number=1,
    )
    assert passed.certificate is not None
    assert passed.certificate.together[0].quantity == "error_quantile"
    with pytest.raises(ValueError, match="max_risk of numbers is about one distance"):
        surelearn.gate(frame, target="y", max_risk=50.0, width="quantiles", ledger=False, number=1)


# ── somebody's own intervals ─────────────────────────────────────────────────────────────────────


def forecasts(n=400, shift=0.0):
    frame = table(n, seed=3)
    size = 1.2 * (0.2 + 2.0 * frame["a"])
    return pd.DataFrame(
        {
            "y": frame["y"] + shift,
            "yhat": frame["b"],
            "lo": frame["b"] - size,
            "hi": frame["b"] + size,
        }
    )


def test_the_gate_on_the_command_line_takes_what_is_said_about_intervals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(400).to_csv("t.csv", index=False)
    asked = ["gate", "t.csv", "--target", "y", "--model", "linear regression", "--ledger", "l.json"]

    def gate(*more):
        return CliRunner().invoke(main, [*asked, "--quiet", *more])

    refused = gate("--max-risk", "9", "--width", "quantiles")
    assert (refused.exit_code, "leave out --width" in refused.output) == (2, True)
    refused = gate("--max-risk", "9", "--target-range", "0", "0.1")
    assert (refused.exit_code, "--target-range 0 to 0.1 does not hold" in refused.output) == (
        2,
        True,
    )
    required = ("--require", "mean_error <= 5", "--loss-bound", "30", "--width", "normalized")
    assert gate(*required, "--target-range", "-20", "20").exit_code == 0
    kept = read_model(tmp_path / "surelearn-gate" / "model").certificate.facts.options
    assert kept["banded"]
    assert tuple(kept["target_range"]) == (-20, 20)


def test_recorded_intervals_are_certified_with_their_correction():
    frame = forecasts()
    found = audit_answers(
        frame, truth="y", answer="yhat", low="lo", high="hi", ledger=False, independent=True
    )
    correction, misses = found.certificate.together
    outside = (frame["y"] < frame["lo"]) | (frame["y"] > frame["hi"])
    assert misses.quantity == "interval_misses"
    assert misses.value == clopper_pearson(int(outside.sum()), 400, 0.025)
    scores = np.sort(np.maximum(frame["lo"] - frame["y"], frame["y"] - frame["hi"]))
    assert correction.value in scores
    assert (scores <= correction.value).mean() > 0.9
    assert "of truths lie outside" in found.verdict.text
    assert "outward" in found.verdict.text
    moved = show(float(correction.value), "number", "<=")
    assert f"each end moved {moved} outward" in claim_rows(found.certificate, "together")[0].label
    wide = frame.assign(lo=frame["lo"] - 9, hi=frame["hi"] + 9)
    narrower = audit_answers(
        wide, truth="y", answer="yhat", low="lo", high="hi", ledger=False, independent=True
    )
    assert narrower.certificate.together[0].value < 0
    assert "inward" in narrower.verdict.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"low": "lo"}, "low goes with high"),
        ({"low": "hi", "high": "lo"}, "'hi' is above column 'lo' in 400 of 400 rows"),
        ({"low": "lo", "high": "top"}, "no column 'top'"),
    ],
)
def test_wrong_columns_of_intervals_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        audit_answers(forecasts(), truth="y", answer="yhat", ledger=False, **options)
