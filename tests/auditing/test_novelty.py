"""Copies of fit rows flatter a model: what the page says without them, and about contents
without a near copy.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline

import surelearn
from surelearn.auditing.verification import verify_folder
from surelearn.cli import main
from surelearn.data.novelty import Novelty

QUICK = {
    "ledger": False,
    "refits": 0,
    "curve_repeats": 0,
    "independent": True,  # copies void the verdict otherwise
    "skip": ["robustness", "poisoning", "membership", "attribution"],
}


def with_copies(rng, rows=450, copied=1 / 3):
    """A table like the public wine tables: rounded numbers, three noisy classes, a third of the
    rows a second time.
    """
    X = np.round(rng.normal(size=(rows, 4)), 1)
    y = np.where(rng.random(rows) < 0.4, X[:, 0] > 0, rng.integers(0, 3, rows)).astype(int)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    again = frame.iloc[rng.permutation(rows)[: int(copied * rows)]]
    return pd.concat([frame, again]).iloc[rng.permutation(rows + len(again))].reset_index(drop=True)


def rows_of(result):
    """The section's table: rows and measured error by name."""
    return {name: (int(rows), error) for name, rows, error, _ in result["novelty"].tables[0].rows}


def test_the_error_without_copies_stands_beside_the_headline(tmp_path):
    """A forest errs nowhere on copies of its fit rows; the headline alone hid that it errs on
    half of the others.
    """
    frame = with_copies(np.random.default_rng(0))
    forest = RandomForestClassifier(30, random_state=0)
    result = surelearn.audit(frame, target="y", models=forest, **QUICK)
    headline, novel = result.certificate["risk"], result.certificate["novel_risk"]
    rows = rows_of(result)
    assert rows["copies of a fit row"][1] == "0.0%"
    assert (
        rows["copies of a fit row"][0] + rows["without copies"][0] == rows["all held-back rows"][0]
    )
    assert float(rows["without copies"][1].rstrip("%")) > 100 * headline.value
    assert novel.measured > headline.value
    assert novel.standing == "together"
    assert "contents without a near copy among the fit rows" in novel.covers.population
    assert "not new patients" in novel.covers.population
    assert sum(claim.delta for claim in result.certificate.together) <= 0.05 * (1 + 1e-9)
    # the novelty claim is paid for by the others, not by the headline
    assert headline.delta == pytest.approx(0.025)
    assert f"{bounds_shown(novel)} errors on contents without one" in result.verdict.text
    assert result.certificate.verify()


def test_contents_that_stand_often_are_assumed_to_be_no_harder():
    """Hard contents stand eight times, easy ones once: hardly a hard one is held back whole,
    and half of new ones err.
    """
    rng = np.random.default_rng(0)
    hard = np.arange(300) % 2
    rows = rng.permutation(np.repeat(np.arange(300), np.where(hard, 8, 1)))
    frame = pd.DataFrame(rng.normal(size=(300, 3))[rows], columns=list("abc")).assign(y=hard[rows])
    result = surelearn.audit(
        frame, target="y", models=DummyClassifier(strategy="constant", constant=0), **QUICK
    )
    claim = result.certificate["novel_risk"]
    assert claim.value < 0.4  # so this must be assumed, and said
    assert any(
        "how often one stands in the table says nothing about its errors" in line
        for line in claim.assumptions
    )
    assert any("assumed to be no harder" in note for note in result["novelty"].notes)


def test_where_no_verdict_is_given_the_novel_are_measured_only():
    frame = with_copies(np.random.default_rng(0))
    result = surelearn.audit(
        frame.round(2), target="y", time="a", models=KNeighborsClassifier(1), **QUICK
    )
    assert result.claims == ()
    assert any("guarantees nothing here" in note for note in result["novelty"].notes)


def bounds_shown(claim):
    return claim.bound().removeprefix("≤ ")


def test_verify_counts_the_novel_contents_again(tmp_path):
    path = tmp_path / "wine.csv"
    with_copies(np.random.default_rng(1), 240).to_csv(path, index=False)
    skipped = ["--independent", *(f"--skip={name}" for name in QUICK["skip"])]
    arguments = [
        str(path),
        "--target=y",
        "--model=naive Bayes",
        f"--out={tmp_path / 'out'}",
        "--quiet",
        "--jobs=1",
    ]
    assert CliRunner().invoke(main, ["audit", *arguments, *skipped]).exit_code == 0
    found = verify_folder(tmp_path / "out", path)
    assert found, found.differences
    assert "novel_risk" in (tmp_path / "out" / "certificate.json").read_text()


def test_without_copies_nothing_is_spent():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 4))
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        y=(X[:, 0] + rng.normal(size=400) > 0).astype(int)
    )
    result = surelearn.audit(frame, target="y", models=KNeighborsClassifier(1), **QUICK)
    assert "novel_risk" not in {claim.quantity for claim in result.certificate.claims}
    frame["a"] = np.round(np.arange(400) + 0.5, 1)  # no row is near another
    result = surelearn.audit(frame, target="y", models=KNeighborsClassifier(1), **QUICK)
    assert "No held-back row has a near copy among the fit rows." in result["split"].notes
    assert "near copy" not in result.verdict.text


def test_where_nothing_is_novel_the_page_says_that_nothing_can_be_said():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.integers(0, 2, size=(300, 3)), columns=list("abc")).assign(
        y=rng.integers(0, 2, 300)
    )
    frame["a"] = frame["a"].map({0: "x", 1: "z"})
    result = surelearn.audit(frame, target="y", models=KNeighborsClassifier(1), **QUICK)
    assert "nothing can be said about contents without one" in result.verdict.text
    assert rows_of(result)[
        "contents without a near copy among the fit rows, each counted once"
    ] == (
        0,
        "nothing can be said",
    )


def test_regression_measures_the_novel_and_claims_with_a_stated_range():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 3))
    X = np.vstack([X, X[:200] + 1e-4 * rng.normal(size=(200, 3))])  # near copies, not exact ones
    y = np.concatenate([z := np.clip(X[:400, 0] + rng.normal(size=400), -3, 3), z[:200]])
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y).iloc[rng.permutation(600)]
    measured = surelearn.audit(frame, target="y", models=KNeighborsRegressor(1), **QUICK)
    assert "mean absolute loss on contents without one (measured)" in measured.verdict.text
    stated = surelearn.audit(
        frame, target="y", models=KNeighborsRegressor(1), loss_bound=6.0, **QUICK
    )
    claim = stated.certificate["novel_loss"]
    assert claim.measured > stated.certificate["mean_loss"].measured
    assert not stated.certificate["novel_loss"].vacuous


def test_a_fitted_model_is_judged_on_what_it_has_not_seen():
    rng = np.random.default_rng(6)
    contents, labels = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    X, y = np.vstack([contents, contents[:200] + 1e-4]), np.concatenate([labels, labels[:200]])
    order = rng.permutation(500)
    seen, new = order[:300], order[300:]
    model = KNeighborsClassifier(1).fit(X[seen], y[seen])
    result = surelearn.audit(model, X[new], y[new], seen=(X[seen], y[seen]), **QUICK)
    assert result.certificate["novel_risk"].measured > result.certificate["risk"].value
    assert result.certificate.verify(model, X[new], y[new])  # which rows are novel it is not told
    assert "novel_risk" not in str(
        surelearn.audit(model, X[new], y[new], **QUICK).certificate.to_json()
    )


# --------------------------------------------------------------------------------------------------


def rounded(rng, rows):
    return np.round(rng.normal(size=(rows, 4)), 1)


def heavy_tails(rng, rows):
    return rng.exponential(size=(rows, 4)) ** 2


def curve(rng, rows):
    t = rng.uniform(0, 1, rows)
    return np.column_stack([np.cos(6 * t), np.sin(6 * t), t, t**2])


@pytest.mark.parametrize("draw", [rounded, heavy_tails, curve, 1, 2, 5, 20])
def test_independent_rows_are_seldom_taken_for_near_copies(draw):
    rng, near = np.random.default_rng(7), []
    for _ in range(4):
        X = rng.normal(size=(600, draw)) if isinstance(draw, int) else draw(rng, 600)
        novelty = Novelty(X[:400], 200)
        assert not novelty.planned(200)
        near.append(novelty.compare(X[400:]).near.mean())
    assert np.mean(near) < 0.03


@pytest.mark.parametrize("columns", [3, 5, 20])
@pytest.mark.parametrize("copies", [2, 3, 6])
def test_near_copies_are_found_and_counted_once(columns, copies):
    rng = np.random.default_rng(8)
    content = rng.permutation(np.repeat(np.arange(600 // copies), copies))
    X = rng.normal(size=(600 // copies, columns))[content] + 1e-3 * rng.normal(size=(600, columns))
    compared = Novelty(X[:400], 200).compare(X[400:])
    copied = np.isin(content[400:], content[:400])
    assert np.mean(compared.near == copied) > 0.95
    assert compared.novel.sum() == pytest.approx(np.unique(content[400:][~copied]).size, abs=6)
    assert compared.frequent


def test_near_copies_agree_in_categories_and_in_what_is_missing():
    rng = np.random.default_rng(9)
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc")).assign(
        color=rng.choice(["red", "blue"], 400)
    )
    frame.loc[0, "a"] = np.nan
    other = frame.iloc[[0, 1, 2]].reset_index(drop=True)
    other.loc[0, "a"] = 0.0
    other.loc[1, "color"] = "green"
    other.loc[2, "b"] += 1e-5
    compared = Novelty(frame, 3).compare(other)
    assert compared.near.tolist() == [False, False, True]
    assert not compared.copies.any()


# --------------------------------------------------------------------------------------------------


def at_most(count, rate, trials):
    return count <= trials * rate + 4 * math.sqrt(trials * rate * (1 - rate))


def copied_contents(rng):
    """Labels are coins, one per content, and each content stands there five times, nearly:
    every model errs on 1/2.
    """
    X = np.repeat(rng.normal(size=(100, 3)), 5, axis=0) + 1e-3 * rng.normal(size=(500, 3))
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=np.repeat(rng.integers(0, 2, 100), 5))
    return frame, lambda fitted: (0.5, 0.5)  # noqa: ARG005


def frequent_contents(rng):
    """Independent rows of few contents, of which the frequent ones err: more rows do than contents,
    met once each.

    The truth is the mean error over the contents that as many new rows would meet, of those that
    were not fitted on; and the mean error over rows of such contents.
    """
    cells = rng.normal(size=(900, 3))
    weights = np.repeat([3.0, 0.5], [150, 750])
    drawn = rng.choice(900, size=500, p=weights / weights.sum())
    frame = pd.DataFrame(cells[drawn], columns=list("abc")).assign(y=(drawn < 150).astype(int))

    def truth(fitted):
        unmet = ~np.isin(cells[:, 0], fitted["a"])
        met = 1 - (1 - weights / weights.sum()) ** (500 - len(fitted))
        return tuple(
            float((unmet * each)[:150].sum() / (unmet * each).sum()) for each in (met, weights)
        )

    return frame, truth


def violations(population, trials=60, seed=5):
    """How often the claim about novel contents was untrue, how often if it were about rows, and
    its share of δ.
    """
    rng, broken, share = np.random.default_rng(seed), np.zeros(2), 0.0
    model = make_pipeline(Remembered(strategy="constant", constant=0))
    for _ in range(trials):
        frame, truths = population(rng)
        result = surelearn.audit(
            frame,
            target="y",
            models=model,
            delta=0.5,
            certify_fraction=0.7,
            select_fraction=0.02,
            **QUICK,
        )
        claim = result.certificate["novel_risk"]
        broken += claim.value < np.array(truths(Remembered.rows))
        share += claim.delta / trials
    return broken, share


class Remembered(DummyClassifier):
    """Always answers 0, and keeps the rows that it was fitted on last."""

    rows = None

    def fit(self, X, y, sample_weight=None):
        Remembered.rows = X
        return super().fit(X, y, sample_weight)


@pytest.mark.slow
def test_the_claim_counts_copied_contents_once_and_a_mutant_counts_every_copy(monkeypatch):
    broken, share = violations(copied_contents)
    assert at_most(broken[0], share, 60), (broken, share)
    monkeypatch.setattr(
        Novelty,
        "_one_per_content",
        lambda *given: np.isin(np.arange(len(given[1].content)), given[3]),
    )
    broken, share = violations(copied_contents)
    assert not at_most(broken[0], share, 60), (broken, share)


@pytest.mark.slow
def test_the_claim_is_about_contents_and_not_about_rows():
    broken, share = violations(frequent_contents)
    assert at_most(broken[0], share, 60), (broken, share)
    assert not at_most(broken[1], share, 60), (broken, share)
