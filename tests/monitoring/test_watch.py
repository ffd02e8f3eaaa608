"""`Watch`: what of live rows counts, what is refused, what is kept, and how often it is wrong."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from surelearn import certify
from surelearn.certificate import Certificate
from surelearn.monitoring import Fed, Watch
from surelearn.monitoring.label_shift import LabelShift
from surelearn.slicing import cut

RNG = np.random.default_rng(0)


def first_column(X):
    return X[:, 0]


def certified(y_true, y_pred, **options):
    """A certificate of a model whose predictions these are."""
    options = {"task": "classification", "classes": sorted({*y_true}), **options}
    return certify(first_column, np.asarray(y_pred)[:, None], np.asarray(y_true), **options)


@pytest.fixture(scope="module")
def binary() -> Certificate:
    y = np.tile([0, 1], 100)
    return certified(y, np.where(np.arange(200) % 20 == 0, 1 - y, y), positive=1, majority=1)


@pytest.fixture(scope="module")
def costly() -> Certificate:
    y = np.tile([0, 1], 100)
    return certified(
        y, np.where(np.arange(200) % 20 == 0, 1 - y, y), positive=1, majority=1, cost=4.0
    )


@pytest.fixture(scope="module")
def amounts() -> Certificate:
    y = RNG.normal(size=300)
    return certified(y, y + RNG.normal(size=300), task="regression", classes=None, loss_bound=10.0)


@pytest.fixture(scope="module")
def grouped() -> Certificate:
    y = np.tile([0, 1], 200)
    return certified(
        y, np.where(np.arange(400) % 20 == 0, 1 - y, y), positive=1, groups=np.arange(400) // 4
    )


# --------------------------------------------------------------------------------------------------


def test_the_headline_is_watched_and_errors_are_counted(binary):
    watch = Watch(binary)
    assert watch.headline.claim is binary["risk"]
    assert watch.headline.bound == binary["risk"].value
    assert (watch.rows, watch.headline.evidence, watch.headline.highest, watch.alarm) == (
        0,
        1.0,
        1.0,
        False,
    )
    assert math.isnan(watch.headline.rate)
    assert watch.update([0, 1, 1, 0, 1], [0, 1, 0, 1, 1]) is watch
    assert (watch.rows, watch.headline.units, watch.headline.errors, watch.headline.rate) == (
        5,
        5,
        2,
        0.4,
    )
    assert watch.headline.highest >= watch.headline.evidence > 1


def test_the_alarm_is_raised_when_the_evidence_reaches_one_over_delta_and_stays(binary):
    watch = Watch(binary, delta=0.01)
    while not watch.alarm:
        assert watch.headline.highest < 100
        watch.update([1], [0])
    assert watch.headline.highest == watch.headline.evidence >= 100
    watch.update(np.ones(2000, int), np.ones(2000, int))
    assert watch.headline.evidence < 1
    assert watch.alarm
    assert "Alarm after" in str(watch)


@pytest.mark.parametrize(
    ("quantity", "rows", "errors"),
    [
        ("risk", 8, 4),
        ("sensitivity", 4, 1),
        ("specificity", 4, 3),
        ("precision", 6, 3),
        ("mean_cost", 8, 4 + 3),
    ],
)
def test_losses_of_each_claim(costly, quantity, rows, errors):
    truth, answer = [1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 1, 1, 1, 0]
    watch = Watch(costly, quantity).update(truth, answer)
    assert (watch.rows, watch.headline.errors) == (rows, pytest.approx(errors))
    value = costly[quantity].value
    assert watch.headline.bound == pytest.approx(
        1 - value if costly[quantity].relation == ">=" else value
    )


def test_prediction_intervals_are_watched_by_how_many_targets_they_miss(amounts):
    radius = amounts["error_quantile"].value
    watch = Watch(amounts).update([0.0, 0.0, radius, 0.0], [0.0, 1.001 * radius, 0.0, -2 * radius])
    assert (watch.rows, watch.headline.errors, watch.headline.bound) == (4, 2, 0.1)
    assert "50.0% of 4 rows further away, ≤ 10.0% certified" in str(watch)


def test_mean_losses_above_the_stated_bound_count_as_the_bound(amounts):
    watch = Watch(amounts, "mean_loss").update([0.0, 1.0, 100.0, math.inf], [2.0, 1.0, 0.0, 0.0])
    assert (watch.headline.errors, watch.headline.beyond) == (pytest.approx(2 + 0 + 10 + 10), 2)
    assert watch.headline.bound == pytest.approx(amounts["mean_loss"].value)
    assert "2 rows with a loss above the stated bound, counted as the bound" in str(watch)


@pytest.mark.parametrize(
    "labels",
    [
        [1, None, 0],
        [1, math.nan, 0],
        np.array([1.0, np.nan, 0.0]),
        pd.Series([1, pd.NA, 0], dtype="Int64"),
    ],
    ids=["None", "NaN", "float", "pandas"],
)
def test_rows_without_a_label_are_left_out_and_counted(binary, labels):
    watch = Watch(binary).update(labels, [0, 1, 0])
    assert (watch.rows, watch.headline.errors, watch.unlabelled) == (2, 1, 1)
    assert "1 row without a label left out" in str(watch)


def test_words_beside_a_missing_one_stay_words():
    watch = Watch(certified(["a", "b"] * 50, ["a", "b"] * 50)).update(
        ["a", math.nan, "b"], ["a", "a", "a"]
    )
    assert (watch.rows, watch.headline.errors, watch.unlabelled, watch.headline.unknown) == (
        2,
        1,
        1,
        0,
    )


def test_a_label_the_model_never_saw_is_an_error_and_noted(binary):
    watch = Watch(binary).update([0, 2, 2], [0, 1, 0])
    assert (watch.headline.errors, watch.headline.unknown) == (2, 2)
    assert "2 rows with a label the model never saw" in str(watch)


def test_labels_of_another_type_are_refused_rather_than_counted_as_errors(binary):
    watch = Watch(binary)
    for truth, answer in ((["1"], [1]), ([1], ["1"])):
        with pytest.raises(ValueError, match="holds '1', the model knows 1"):
            watch.update(truth, answer)
    with pytest.raises(
        ValueError, match="y_pred holds 7, which is no answer of this model: it knows 0, 1"
    ):
        watch.update([0], [7])
    assert watch.update(np.array([True, False]), np.array([1.0, 0.0])).headline.errors == 0
    assert watch.rows == 2


def test_columns_that_do_not_fit_are_refused_and_change_nothing(binary, amounts):
    watch = Watch(binary).update([0], [1])
    before = watch.to_dict()
    for truth, answer, groups, message in (
        ([0, 1], [0], None, "they must describe the same rows"),
        ([[0]], [[0]], None, "one-dimensional"),
        ([0], [None], None, "y_pred must not be missing"),
        ([0], [0], ["a"], "without groups"),
    ):
        with pytest.raises(ValueError, match=message):
            watch.update(truth, answer, groups)
    assert watch.to_dict() == before
    with pytest.raises(ValueError, match="y_true must be numbers"):
        Watch(amounts).update(["a"], [1.0])
    with pytest.raises(ValueError, match="y_pred must be finite"):
        Watch(amounts).update([1.0], [math.inf])


def test_no_rows_are_no_evidence(binary):
    watch = Watch(binary).update([], [])
    assert (watch.rows, watch.headline.evidence) == (0, 1.0)
    assert "no labeled rows yet" in str(watch)


# --------------------------------------------------------------------------------------------------


def test_a_model_that_misses_nearly_every_cancer_is_found_although_it_makes_few_errors():
    """It finds 2 of 65 cancers in 3,000 rows: 2.1% errors, where 4.4% were certified; plain
    errors raise no alarm.
    """
    y = np.repeat([0, 1], [970, 30])
    # 25 false alarms, 4 of 30 missed
    answer = np.concatenate([np.arange(970) < 25, np.arange(30) >= 4]).astype(int)
    certificate = certified(y, answer, positive=1, majority=0)
    truth, live = np.repeat([1, 0], [65, 2935]), np.zeros(3000, int)
    live[:2] = 1
    order = np.random.default_rng(0).permutation(3000)
    watch = Watch(certificate).update(truth[order], live[order])
    assert [each.claim.quantity for each in watch.contradicted] == ["sensitivity"]
    assert "the live rows contradict sensitivity (recall) for 1 ≥" in str(watch)
    assert not Watch(certificate, "risk").update(truth[order], live[order]).alarm


def test_every_certified_claim_is_watched_and_delta_is_divided(costly, amounts, grouped):
    watch = Watch(costly, delta=0.08)
    shares = {each.claim.quantity: each.delta for each in watch.watched}
    assert set(shares) == {"risk", "sensitivity", "specificity", "precision", "mean_cost"}
    assert watch.headline.claim is costly["mean_cost"]
    assert watch.headline.delta == pytest.approx(0.04)
    assert sorted(shares.values())[:4] == pytest.approx([0.01] * 4)
    assert {each.claim.quantity for each in Watch(amounts).watched} == {
        "error_quantile",
        "mean_loss",
    }
    assert {each.claim.quantity for each in Watch(grouped).watched} == {
        "risk",
        "sensitivity",
        "specificity",
        "precision",
    }
    three = Watch(certified([0, 1, 2] * 50, [0, 1, 2] * 50), delta=0.06)
    assert [each.claim.quantity for each in three.watched] == [
        "risk",
        "class_error",
        "class_error",
        "class_error",
    ]
    assert [each.delta for each in three.watched] == pytest.approx([0.03, 0.01, 0.01, 0.01])
    assert [each.delta for each in Watch(costly, "precision", delta=0.08).watched] == [0.08]


def test_claims_about_another_model_are_not_watched(binary):
    """An audit with a suspected leak has two headlines, about two models."""
    covers = replace(binary["risk"].covers, predictor="sha256:another")
    other = replace(
        binary["risk"], value=0.001, label="errors with leak", covers=covers, sources={}
    )
    watch = Watch(replace(binary, claims=(other, *binary.claims)))
    assert "errors with leak" not in {each.claim.label for each in watch.watched}


def test_class_errors_count_the_rows_of_their_class():
    watch = Watch(certified([0, 1, 2] * 50, [0, 1, 2] * 50), "class_error").update(
        [0, 0, 1, 2, 2, 2], [0, 1, 1, 0, 2, 1]
    )
    assert [(each.rows, each.errors) for each in watch.watched] == [(2, 1), (1, 0), (3, 2)]


def test_slices_are_watched_where_the_rows_are_given():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.tile([0.0, 1.0], 200), rng.normal(size=400)])
    cuts = cut(X, 1, bins=2)
    certificate = certify(
        first_column, X, X[:, 0], task="classification", classes=[0.0, 1.0], slices=cuts
    )
    live = np.column_stack([np.tile([0.0, 1.0], 200), rng.normal(size=400)])
    bad = np.where((live[:, 1] > 0) & (np.arange(400) % 8 == 0), 1 - live[:, 0], live[:, 0])
    watch = Watch(certificate).update(live[:, 0], bad, X=live)
    found = {
        each.claim.label: each for each in watch.watched if each.claim.quantity == "slice_risk"
    }
    masks = cuts(live)
    assert len(found) == 2
    for name, mask in masks.items():
        each = found[f"errors where {name}"]
        assert (each.rows, each.errors) == (mask.sum(), (bad != live[:, 0])[mask].sum())
    assert any(each.claim.quantity == "slice_risk" for each in watch.contradicted)
    without = Watch(certificate).update(live[:, 0], bad)
    assert {each.rows for each in without.watched if each.claim.quantity == "slice_risk"} == {0}
    for wrong in (live[:, :1], live[:5]):
        with pytest.raises(
            ValueError, match=r"X must have (the columns that slices are made of|one row for each)"
        ):
            Watch(certificate).update(live[:, 0], bad, X=wrong)


def test_slices_that_are_not_data_cannot_be_watched():
    y = np.tile([0, 1], 50)
    certificate = certified(y, y, slices={"first": np.arange(100) < 50})
    assert "slice_risk" not in {each.claim.quantity for each in Watch(certificate).watched}
    with pytest.raises(ValueError, match="'slice_risk' is not watched"):
        Watch(certificate, "slice_risk")


@pytest.mark.parametrize("name", ["rows", "groups"])
def test_states_of_version_1_go_on_with_their_claim_and_their_delta(name):
    """The files were written, and the evidence after 40 more rows computed, by the release that
    watched one claim.
    """
    folder = Path(__file__).parent / "fixtures"
    certificate = Certificate.from_json((folder / f"certificate-of-{name}.json").read_text())
    watch = Watch.load(folder / f"watch-1-of-{name}.json", certificate)
    assert (len(watch.watched), watch.delta, watch.headline.delta) == (1, 0.02, 0.02)
    truth = np.tile([0, 1], 40)
    answer = np.where(np.arange(80) % 5 == 0, 1 - truth, truth)
    groups = [f"g{i // 4}" for i in range(80)] if name == "groups" else None
    assert watch.feed(hashes(80), truth, answer, groups).new == 40
    expected = {"rows": ("risk", 1.0823924116115262), "groups": ("sensitivity", 0.611157192040358)}[
        name
    ]
    assert (watch.headline.claim.quantity, watch.headline.evidence) == (
        expected[0],
        pytest.approx(expected[1], rel=1e-12),
    )
    assert Watch.from_dict(watch.to_dict(), certificate).to_dict() == watch.to_dict()


# -------------------------------------------------------------------------------------------------


def test_a_certificate_without_claims_has_nothing_to_watch(binary):
    with pytest.raises(ValueError, match="nothing was guaranteed, so there is nothing to watch"):
        Watch(replace(binary, claims=()))


@pytest.mark.parametrize("quantity", ["gain", "baseline_risk"])
def test_claims_that_are_not_one_loss_on_live_rows_are_refused_with_those_that_are(
    binary, quantity
):
    with pytest.raises(
        ValueError,
        match=rf"'{quantity}' is not watched, .*: of this certificate's claims, risk.* can be",
    ):
        Watch(binary, quantity)


def test_a_claim_that_was_not_made_is_refused_with_its_reason(amounts):
    with pytest.raises(
        ValueError,
        match="no claim about 'risk': of this certificate's claims, error_quantile, mean_loss",
    ):
        Watch(amounts, "risk")
    plain = certified([0.5, 1.5] * 50, [0.5, 1.5] * 50, task="regression", classes=None)
    with pytest.raises(ValueError, match="state its range with loss_bound="):
        Watch(plain, "mean_loss")


def test_vacuous_claims_are_refused(binary, amounts):
    few = certified([0.5, 1.5] * 5, [0.5, 1.5] * 5, task="regression", classes=None)
    for certificate, quantity in (
        (few, "error_quantile"),
        (replace(binary, claims=[replace(binary["risk"], value=1.0)]), "risk"),
        (replace(binary, claims=[replace(binary["sensitivity"], value=0.0)]), "sensitivity"),
        (replace(amounts, claims=[replace(amounts["mean_loss"], value=10.0)]), "mean_loss"),
    ):
        with pytest.raises(ValueError, match="there is nothing to watch"):
            Watch(certificate, quantity)


def test_a_bound_of_zero_is_contradicted_by_one_error(binary):
    watch = Watch(replace(binary, claims=[replace(binary["risk"], value=0.0)]))
    assert not watch.update(np.ones(1000, int), np.ones(1000, int)).alarm
    assert watch.update([1], [0]).headline.alarm_at == 1001


@pytest.mark.parametrize("delta", [0, 1, -0.1, math.nan, "0.05"])
def test_delta_must_be_a_probability(binary, delta):
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        Watch(binary, delta=delta)


# --------------------------------------------------------------------------------------------------


def test_rows_of_a_group_count_once_as_their_mean(grouped):
    watch = Watch(grouped)
    watch.update([0, 0, 1, 1, 1], [0, 1, 1, 1, 0], groups=["a", "b", "a", "b", "b"])
    assert (watch.rows, watch.headline.units) == (5, 2)
    assert watch.headline.errors == pytest.approx(0 + 2 / 3)
    watch.update([1, 1, 0], [0, 0, 0], groups=["b", "c", "c"])
    assert (watch.rows, watch.headline.units, watch.headline.repeated) == (7, 3, 1)
    assert watch.headline.errors == pytest.approx(2 / 3 + 1 / 2)
    assert "7 labeled rows of 3 groups" in str(watch)
    assert "1 group seen before left out" in str(watch)


def test_only_groups_with_such_rows_count_and_only_those_are_seen(grouped):
    watch = Watch(grouped, "sensitivity").update([0, 1, 1], [0, 1, 0], groups=[1, 2, 2])
    assert (watch.headline.units, watch.headline.errors) == (1, 0.5)
    # 1.0 is group 1, which had no positive row before
    watch.update([1, 1], [1, 1], groups=np.array([1.0, 2.0]))
    assert (watch.headline.units, watch.headline.errors, watch.headline.repeated) == (2, 0.5, 1)


def test_groups_are_required_by_a_certificate_about_groups(grouped):
    for groups, message in (
        (None, "about the mean of a new group: pass groups="),
        ([1], "one group a row"),
        ([1, None], "must not be missing"),
    ):
        with pytest.raises(ValueError, match=message):
            Watch(grouped).update([0, 1], [0, 1], groups)


# --------------------------------------------------------------------------------------------------


def hashes(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


def test_a_file_that_grew_is_fed_from_where_it_was(binary):
    watch, rows, y = Watch(binary), hashes(100), np.tile([0, 1], 50)
    wrong = np.where(np.arange(100) % 10 == 0, 1 - y, y)
    assert watch.feed(rows[:40], y[:40], wrong[:40], name="june.csv") == Fed(new=40)
    assert watch.feed(rows[:40], y[:40], wrong[:40], name="again.csv") == Fed(
        new=0, before=40, name="june.csv"
    )
    assert watch.feed(rows[:70], y[:70], wrong[:70], name="july.csv") == Fed(
        new=30, before=40, name="june.csv"
    )
    fed = watch.feed(rows, y, wrong, name="august.csv")
    assert fed == Fed(new=30, before=70, name="july.csv")
    assert str(fed) == "30 new rows; the first 70 rows were fed before as july.csv"
    assert (watch.rows, watch.headline.errors) == (100, 10)
    assert watch.feed(rows[:40], y[:40], wrong[:40]).new == 0
    assert watch.headline.evidence == pytest.approx(
        Watch(binary).update(y, wrong).headline.evidence, rel=1e-12
    )


def test_a_file_that_begins_differently_is_new(binary):
    watch, y = Watch(binary), np.zeros(10, int)
    watch.feed(hashes(10), y, y)
    assert watch.feed(hashes(10, seed=1), y, y) == Fed(new=10)
    assert watch.feed(hashes(10)[::-1], y, y).new == 10
    # shorter than what was fed: it cannot be recognized
    assert watch.feed(hashes(10)[:9], y[:9], y[:9]).new == 9
    assert watch.rows == 39


def test_a_refused_file_is_not_recorded(binary):
    watch, y = Watch(binary), np.zeros(10, int)
    with pytest.raises(ValueError, match="no answer of this model"):
        watch.feed(hashes(10), y, y + 7)
    assert watch.feed(hashes(10), y, y).new == 10
    for wrong in (hashes(9), hashes(10).astype(float)):
        with pytest.raises(ValueError, match="one unsigned 64-bit number for each row"):
            watch.feed(wrong, y, y)


# --------------------------------------------------------------------------------------------------


def test_a_saved_watch_goes_on_as_if_nothing_had_happened(grouped, tmp_path):
    truth, answer = RNG.integers(0, 2, 400), RNG.integers(0, 2, 400)
    groups = [f"g{i // 2}" for i in range(400)]
    whole = Watch(grouped, "sensitivity", delta=0.2).update(truth, answer, groups)
    halves = Watch(grouped, "sensitivity", delta=0.2)
    halves.feed(hashes(200), truth[:200], answer[:200], groups[:200], name="first.csv")
    halves.save(tmp_path / "state.json")
    halves = Watch.load(tmp_path / "state.json", Certificate.from_json(grouped.to_json()))
    halves.update(truth[200:], answer[200:], groups[200:])
    assert halves.feed(hashes(200), truth[:200], answer[:200], groups[:200]).name == "first.csv"
    assert halves.headline.evidence == pytest.approx(whole.headline.evidence, rel=1e-12)
    assert (halves.rows, halves.headline.units, halves.headline.alarm_at) == (
        whole.rows,
        whole.headline.units,
        whole.headline.alarm_at,
    )
    again = Watch.from_dict(json.loads(json.dumps(halves.to_dict())), grouped)
    assert again.to_dict() == halves.to_dict()
    assert str(again) == str(halves)


def test_a_state_goes_on_with_the_certificate_as_published(costly):
    """Losses per row are left out of what is published; the certificate is the same."""
    published = Certificate.from_json(costly.published().to_json())
    watch = Watch(costly).update([0, 1, 1], [0, 1, 0])
    again = Watch.from_dict(watch.to_dict(), published).update([0], [1])
    assert Watch.from_dict(again.to_dict(), costly).rows == 4
    assert [each.evidence for each in Watch(published).update([1], [0]).watched] == [
        each.evidence for each in Watch(costly).update([1], [0]).watched
    ]


def damages(plain):
    """States that no watch has, each with one thing changed."""
    for name in plain:
        yield {key: value for key, value in plain.items() if key != name}
        yield {**plain, name: {"a": [None]}}
    for value in (-1, 1.5):
        yield {**plain, "unlabelled": value}
    yield {**plain, "surprise": 1}
    yield {**plain, "delta": 2}
    yield {**plain, "watched": []}
    yield {**plain, "watched": [*plain["watched"], plain["watched"][0]]}
    yield {**plain, "files": [{"name": "a", "rows": 0, "sha256": ""}]}
    labels = plain["labels"]
    yield {**plain, "labels": {**labels, "counts": labels["counts"][1:]}}
    yield {**plain, "labels": {**labels, "counts": [0 for _ in labels["counts"]]}}
    yield {**plain, "labels": {**labels, "evidence": labels["evidence"][1:]}}
    first, inner = plain["watched"][0], plain["watched"][0]["evidence"]
    for name, value in (
        ("claim", "another"),
        ("delta", 0.0),
        ("delta", first["delta"] * 3),  # more than the watch's own
        ("rows", -1),
        ("rows", 1.5),
        ("groups", "not base64"),
        ("groups", "AAAAAAAAAAA="),  # one group, in a watch of rows
    ):
        yield {**plain, "watched": [{**first, name: value}, *plain["watched"][1:]]}
    for name, value in (
        ("units", inner["units"] + 1),
        ("lost", inner["units"] + 1.0),
        ("highest", math.inf),
        ("highest", -1.0),
        ("highest_at", inner["units"] + 1),
        ("alarm_at", None),
        ("alarm_at", inner["units"] + 1),
        ("capitals", inner["capitals"][1:]),
        ("capitals", [math.nan] * len(inner["capitals"])),
        ("capitals", [value + 50 for value in inner["capitals"]]),
        ("history", [[2, 0.0], [1, 0.0]]),
        ("history", [[1]]),
    ):
        yield {
            **plain,
            "watched": [{**first, "evidence": {**inner, name: value}}, *plain["watched"][1:]],
        }


def test_damaged_states_are_refused_in_one_sentence(binary):
    plain = Watch(binary).update(np.zeros(50, int), np.ones(50, int)).to_dict()
    assert Watch.from_dict(plain, binary).alarm
    tried = list(damages(plain))
    assert len(tried) > 40
    for damaged in tried:
        with pytest.raises(ValueError, match=r"^[^\n]+$"):
            Watch.from_dict(damaged, binary)


def test_other_certificates_newer_versions_and_other_files_are_refused(binary, amounts, tmp_path):
    path = tmp_path / "state.json"
    Watch(binary).save(path)
    with pytest.raises(ValueError, match=r"state\.json: this is the watch of another certificate"):
        Watch.load(path, amounts)
    path.write_text(path.read_text().replace('"version": 2', '"version": 3'))
    with pytest.raises(
        ValueError, match=r"has version 3, this surelearn reads up to 2: upgrade surelearn"
    ):
        Watch.load(path, binary)
    for content in (
        b"",
        b"\xff\xfe",
        b"[1, 2]",
        b"{",
        b"[" * 100_000,
        b'{"format": "surelearn-certificate"}',
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not the state of a watch"):
            Watch.load(path, binary)
    with pytest.raises(FileNotFoundError):
        Watch.load(tmp_path / "none.json", binary)


def test_a_plot_is_written_in_the_format_of_its_name(binary, tmp_path, monkeypatch):
    # what another test loaded says nothing about this one
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    watch = Watch(binary).update(np.zeros(300, int), np.arange(300) % 3 == 0)
    for name, start in (("a.png", b"\x89PNG"), ("a.SVG", b"<?xml"), ("sub/a.pdf", b"%PDF")):
        watch.plot(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    Watch(binary).plot(tmp_path / "empty.png")
    assert "matplotlib.pyplot" not in sys.modules
    for name in ("a.gif", "a"):
        with pytest.raises(ValueError, match=r"must end in \.png, \.svg or \.pdf"):
            watch.plot(tmp_path / name)
        assert not (tmp_path / name).exists()


def test_evidence_too_large_for_a_float_is_still_told(binary):
    watch = Watch(binary).update(np.zeros(1000, int), np.ones(1000, int))
    assert watch.headline.evidence == math.inf
    assert "10^" in str(watch)
    assert Watch.from_dict(watch.to_dict(), binary).to_dict() == watch.to_dict()


# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_whole_chain_from_certify_rows_to_live_rows_keeps_its_promise():
    """Certify 100 rows at δ = 0.1, half of it for the headline, then watch 2000 at δ = 0.05:
    alarms in at most 0.15.
    """
    rng, trials, risk = np.random.default_rng(0), 300, 0.1
    alarms, mutant = 0, 0
    for _ in range(trials):
        y = np.zeros(100, int)
        certificate = certified(
            y, (rng.random(100) < risk).astype(int), classes=[0, 1], majority=0, delta=0.1
        )
        truth, live = np.zeros(2000, int), (rng.random(2000) < risk).astype(int)
        alarms += Watch(certificate).update(truth, live).alarm
        # mutant: to watch what was measured, not what was certified
        measured = max(certificate["risk"].measured, 0.01)
        naive = replace(certificate, claims=[replace(certificate["risk"], value=measured)])
        mutant += Watch(naive).update(truth, live).alarm
    # the certificate's share that matters is the headline's; measured: 0.01
    assert 0 < alarms / trials <= 0.05 + 0.05
    assert mutant / trials > 0.15 + 3 * math.sqrt(0.15 * 0.85 / trials)  # measured: 0.32


def at_their_bounds(classes, errors):
    """A certificate whose claims are all exactly true of `live_rows`, and not more."""
    y = np.tile(np.arange(classes), 40)
    certificate = certified(y, y, positive=0, majority=0)
    true = {"risk": errors, "sensitivity": 1 - errors, "specificity": 1 - errors / (classes - 1)}
    true |= {"precision": 1 - errors, "class_error": errors}
    claims = [
        replace(claim, value=true[claim.quantity])
        for claim in certificate.together
        if claim.quantity in true
    ]
    return replace(certificate, claims=claims)


def live_rows(rng, n, classes, errors):
    """Equally frequent classes; a wrong answer is any of the others."""
    truth, wrong = rng.integers(classes, size=n), rng.random(n) < errors
    return truth, np.where(wrong, (truth + rng.integers(1, classes, size=n)) % classes, truth)


@pytest.mark.slow
def test_false_alarms_of_all_claims_together_are_at_most_delta():
    """Twelve claims, each exactly at its bound, δ = 0.2: measured 0.12 alarms in 300 streams of
    2,000 rows.
    """
    rng, trials, delta = np.random.default_rng(0), 120, 0.2
    certificate = at_their_bounds(8, 0.2)
    alarms = mutant = shifts = 0
    for _ in range(trials):
        watch = Watch(certificate, delta=delta)
        for _ in range(2):
            watch.update(*live_rows(rng, 500, 8, 0.2))
        assert len(watch.watched) == 12
        alarms += watch.alarm
        # mutant: each claim has all of delta
        mutant += any(each.highest >= 1 / delta for each in watch.watched)
        shifts += watch.label_shift is not None
    assert 0 < alarms / trials <= delta
    assert mutant / trials > delta + 3 * math.sqrt(delta * (1 - delta) / trials)  # measured: 0.67
    assert shifts / trials <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / trials)


# --------------------------------------------------------------------------------------------------


def test_label_shift_is_found_while_error_rates_per_class_hold():
    """Prevalence 5% becomes 20%; sensitivity and specificity are as they were, so that no claim
    about them falls.
    """
    rng = np.random.default_rng(0)

    def rows(n, prevalence):
        truth = (rng.random(n) < prevalence).astype(int)
        return truth, np.where(rng.random(n) < np.where(truth == 1, 0.1, 0.01), 1 - truth, truth)

    certificate = certified(*rows(1000, 0.05), positive=1, majority=0)
    same, shifted = (
        Watch(certificate).update(*rows(1000, 0.05)),
        Watch(certificate).update(*rows(1000, 0.2)),
    )
    assert same.label_shift is None
    finding = shifted.label_shift
    assert (finding.code, finding.numbers["class"], finding.numbers["false_alarms"]) == (
        "SL503",
        "1",
        0.01,
    )
    assert "Error rates per class may still hold" in finding.text
    assert len(finding.text) < 300
    assert not {each.claim.quantity for each in shifted.contradicted} & {
        "sensitivity",
        "specificity",
    }
    again = Watch.from_dict(shifted.to_dict(), certificate).update(*rows(3000, 0.05))
    assert again.label_shift is not None  # once found it stays


def test_label_shift_of_each_class_both_ways():
    rng = np.random.default_rng(0)
    y = rng.choice(3, 600, p=[0.5, 0.3, 0.2])
    certificate = certified(y, y)
    for shares, named in (([0.5, 0.1, 0.4], {"1", "2"}), ([0.9, 0.05, 0.05], {"0"})):
        live = rng.choice(3, 600, p=shares)
        assert Watch(certificate).update(live, live).label_shift.numbers["class"] in named


def test_labels_are_not_compared_where_rows_are_not_independent_or_have_no_classes(
    amounts, grouped
):
    for certificate in (amounts, grouped):
        assert Watch(certificate).labels is None
        assert Watch(certificate).label_shift is None


@pytest.mark.slow
def test_label_shift_has_one_percent_false_alarms_however_often_one_looks():
    """Certify and live rows with the same frequency, 300 streams; a test against what was
    measured alarms more often.
    """
    rng, trials, alarms, mutant = np.random.default_rng(0), 300, 0, 0
    for _ in range(trials):
        count = int(rng.binomial(200, 0.3))
        shift = LabelShift(["a", "b"], [200 - count, count], [0, 0])
        # mutant: what was measured is true
        naive = LabelShift(["a", "b"], [10**4 * (200 - count), 10**4 * count], [0, 0])
        live = (rng.random(2000) < 0.3).astype(int)
        shift.take(live)
        naive.take(live)
        alarms += shift.finding() is not None
        mutant += naive.finding() is not None
    assert alarms / trials <= 0.01
    assert mutant / trials > 0.1
