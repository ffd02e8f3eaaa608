from dataclasses import asdict
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from surelearn.boosting import AdaBoostClassifier
from surelearn.bounds import vc
from surelearn.jobs import Runner, seed_for
from surelearn.papers import find, reproduce
from surelearn.papers.criteria_tables import (
    CriteriaSettings,
    compute,
    over_tables,
    paired,
    repeats_at,
    student,
    summarize,
)
from surelearn.papers.criteria_tables_data import SIZES, SOURCES, available, draw, load, sizes_of
from surelearn.papers.criteria_tables_families import FAMILIES, MaximumLikelihood, components
from surelearn.papers.criteria_tables_figure import figure, main
from surelearn.papers.criteria_tables_judging import CRITERIA, excess, judge
from surelearn.papers.criteria_tables_words import describe
from surelearn.papers.page import Made, to_html, to_json
from surelearn.selection import select
from surelearn.selection.criteria import KFold

ROUNDS, COMPONENTS, AUDIT = FAMILIES
TABLES = ("a", "b", "c", "d", "e", "f")


def cell(table="a", n=100, repeat=0, family=ROUNDS, errors=(0.3, 0.2, 0.1), **chosen):
    picked = {
        name.replace("_", " "): {"chosen": i, "fits": 1, "seconds": 0.5}
        for name, i in chosen.items()
    }
    both = {
        "10-fold CV": {"chosen": 2, "fits": 10, "seconds": 1.0},
        "audit's default": {"chosen": 1, "fits": 10, "seconds": 1.0},
    }
    both["audit's folds, best"] = both["10-fold CV"]
    answers = both | picked
    result = {"errors": list(errors), "tested": 500, "answers": answers}
    return {"table": table, "family": family, "n": n, "repeat": repeat, "result": result}


@pytest.fixture(scope="module")
def small():
    return judge("breast cancer", "", ROUNDS, 100, 3)


@pytest.fixture(scope="module")
def linear():
    return judge("breast cancer", "", COMPONENTS, 100, 3)


# ---- tables


def test_built_in_tables_need_no_folder():
    assert available("") == ["breast cancer", "diabetes", "digits", "wine"]
    for name in available(""):
        X, y = load(name, "")
        assert np.isfinite(X).all()
        assert set(np.unique(y)) == {0, 1}
        np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-9)
        np.testing.assert_allclose(X.std(axis=0), 1)


def test_a_folder_adds_the_tables_whose_files_it_holds(tmp_path):
    text = "PassengerId,Survived,Pclass,Name,Sex,Age,SibSp,Parch,Ticket,Fare,Cabin,Embarked\n"
    text += "1,0,3,A,male,22,1,0,x,7.25,,S\n2,1,1,B,female,,1,0,y,71.3,C85,C\n3,1,3,C,female,26,0,0,z,7.9,,\n"
    (tmp_path / "titanic.csv").write_text(text)
    assert available(str(tmp_path)) == [*available(""), "Titanic"]
    X, y = load("Titanic", str(tmp_path))
    assert y.tolist() == [0, 1, 1]
    # without the constant Parch; sex and port of embarkation two columns each
    assert X.shape == (3, 8)
    assert np.isfinite(X).all()


def test_a_folder_that_is_none_is_refused():
    with pytest.raises(
        ValueError, match="data must be a folder with tables, and '/nowhere' is none"
    ):
        available("/nowhere")


def test_no_two_tables_share_a_file():
    files = [source.file for source in SOURCES.values() if source.file]
    assert len(set(files)) == len(files)


@pytest.mark.parametrize(
    ("rows", "allowed"),
    [(174, []), (175, [100]), (374, [100]), (375, [100, 300]), (10**6, list(SIZES))],
)
def test_enough_rows_remain_to_test_on(rows, allowed):
    assert sizes_of(rows, 10_000) == allowed


def test_rows_chosen_on_are_not_tested_on():
    train, test = draw(569, 300, 1)
    assert len(train) == 300
    assert sorted([*train, *test]) == list(range(569))
    assert len(draw(20_000, 100, 1)[1]) == 4000


# ---- families


def test_maximum_likelihood_is_logistic_regression_without_a_penalty():
    X, y = load("diabetes", "")
    ours = MaximumLikelihood().fit(X, y)
    peer = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-4)
    assert (ours.predict(X) == peer.predict(X)).mean() > 0.99


def test_separable_classes_end_the_fit():
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    fitted = MaximumLikelihood().fit(X, np.array([0, 0, 1, 1]))
    assert fitted.predict(X).tolist() == [0, 0, 1, 1]
    assert np.isfinite(fitted.coef_).all()


def test_components_are_uncorrelated_and_ordered():
    X = load("breast cancer", "")[0]
    found = components(X)
    np.testing.assert_allclose(found.T @ found / len(X), np.eye(found.shape[1]), atol=1e-6)
    spreads = np.linalg.norm(X.T @ found, axis=0)
    assert (np.diff(spreads) <= 1e-9).all()


# ---- one subsample


def test_choices_are_those_of_select(small):
    X, y = load("breast cancer", "")
    train, test = draw(len(y), 100, 3)
    family = FAMILIES[ROUNDS].candidates(X.shape[1], 100)
    chosen = select(
        family,
        X[train],
        y[train],
        criterion=KFold(),
        prefer="best",
        random_state=seed_for("folds", 3),
    ).chosen
    assert small["answers"]["10-fold CV"]["chosen"] == chosen
    fitted = AdaBoostClassifier(256).fit(X[train], y[train])
    assert small["errors"][-1] == np.mean(fitted.predict(X[test]) != y[test])
    assert small["tested"] == 469


def test_the_audits_default_was_the_simplest_in_folds_that_select_still_takes(small):
    X, y = load("breast cancer", "")
    train, _ = draw(len(y), 100, 3)
    family = FAMILIES[ROUNDS].candidates(X.shape[1], 100)
    default = select(
        family, X[train], y[train], prefer="simplest", random_state=seed_for("folds", 3)
    )
    assert small["answers"]["audit's default"]["chosen"] == default.chosen
    assert small["answers"]["audit's default"]["fits"] == 15


def test_fits_are_counted(small, linear):
    assert {name: answer["fits"] for name, answer in small["answers"].items() if "fits" in answer} == {
        "holdout": 1, "10-fold CV": 10, "10-fold CV, 1 SE": 10, "5-fold CV": 5, "5 × 10-fold CV": 50, "audit's default": 15,
        "audit's folds, best": 15, "SRM": 1, "adjusted SRM": 2, "stability": 31, "always the largest": 0,
    }  # fmt: skip
    assert linear["answers"]["10-fold CV"]["fits"] == 10 * len(linear["errors"])


def test_structural_risk_knows_the_halfspaces_of_the_leading_components():
    X, y = load("breast cancer", "")
    family = FAMILIES[COMPONENTS].candidates(30, 100)
    found = select(family, components(X)[:100], y[:100], criterion="srm", prefer="best")
    risks = found.details["training errors"]
    expected = [
        vc(risk, 100, 0.05 / len(risks), k + 1) for risk, k in zip(risks, family.sizes, strict=True)
    ]
    np.testing.assert_allclose(found.errors, expected)


def test_criteria_that_do_not_apply_say_why(small, linear):
    assert "no likelihood" in small["answers"]["AIC"]["refused"]
    assert "needs more rows" in small["answers"]["margin"]["refused"]
    assert "votes of decision stumps" in linear["answers"]["margin"]["refused"]
    assert [name for name, answer in linear["answers"].items() if "refused" in answer] == ["margin"]
    assert linear["answers"]["AIC"]["chosen"] >= linear["answers"]["BIC"]["chosen"]


def test_one_standard_error_never_chooses_a_larger_one(small, linear):
    for result in (small, linear):
        assert (
            result["answers"]["10-fold CV, 1 SE"]["chosen"]
            <= result["answers"]["10-fold CV"]["chosen"]
        )
        assert (
            result["answers"]["audit's default"]["chosen"]
            <= result["answers"]["audit's folds, best"]["chosen"]
        )
        assert set(result["answers"]) <= set(CRITERIA)


def test_costly_criteria_stay_out_of_many_rows():
    answers = judge("digits", "", COMPONENTS, 1000, 0)["answers"]
    assert "5 × 10-fold CV" not in answers
    assert "stability" not in answers


# ---- over tables


def test_excess_is_over_the_best_member():
    found = cell(errors=(0.3, 0.1, 0.2), holdout=0)["result"]
    assert excess(found, "holdout") == pytest.approx(20)
    assert excess(found, "10-fold CV") == pytest.approx(10)
    assert excess(found, "stability") is None


def test_each_table_counts_once_however_many_subsamples():
    cells = [cell("a", repeat=i, holdout=0) for i in range(9)] + [cell("b", holdout=2)]
    found = paired(cells, "holdout", "10-fold CV")
    assert found["mean"] == pytest.approx((20 + 0) / 2)
    assert found["tables"] == 2
    assert (found["better on"], found["worse on"]) == (0, 1)
    assert found["student"] is found["bootstrap"] is None


def test_each_n_of_a_table_counts_once():
    cells = [cell("a", 100, i, holdout=0) for i in range(9)] + [cell("a", 300, holdout=2)]
    assert paired(cells, "holdout", "10-fold CV")["mean"] == pytest.approx(10)


def test_intervals_come_from_tables_not_from_subsamples():
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 8.0]
    found = over_tables(values)
    np.testing.assert_allclose(
        found["student"], stats.t.interval(0.95, 5, np.mean(values), stats.sem(values))
    )
    spread = np.std(values) / np.sqrt(6)
    assert found["bootstrap"][0] == pytest.approx(3 - 1.96 * spread, abs=0.4)
    once = [cell(table, holdout=i % 3) for i, table in enumerate(TABLES)]
    often = [
        cell(table, repeat=r, holdout=i % 3) for i, table in enumerate(TABLES) for r in range(20)
    ]
    assert (
        paired(once, "holdout", "10-fold CV")["student"]
        == paired(often, "holdout", "10-fold CV")["student"]
    )


def test_settled_needs_both_intervals():
    assert over_tables([1.0, 1.1, 0.9, 1.0, 1.2])["settled"]
    assert not over_tables([1.0, -1.1, 0.9, -1.0, 0.2])["settled"]
    assert not over_tables([1.0, 1.0, 1.0, 1.0])["settled"]
    only_bootstrap = over_tables([0.1, 0.1, 0.1, 0.1, 5.0])
    assert only_bootstrap["bootstrap"][0] > 0 > only_bootstrap["student"][0]
    assert not only_bootstrap["settled"]


def test_intervals_over_tables_hold_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    hits = sum(
        low <= 0 <= high
        for low, high in (over_tables(rng.normal(size=9))["student"] for _ in range(400))
    )
    assert stats.binomtest(hits, 400, 0.95).pvalue > 1e-3


def test_a_tables_own_interval():
    values = [1.0, 2.0, 4.0]
    np.testing.assert_allclose(
        student({100: values}), stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    )
    assert student({100: values, 300: [1.0]}) is None


# ---- the page


def test_settings():
    assert repeats_at(CriteriaSettings(), AUDIT, 3000) == 0
    for wrong in ({"repeats": 1}, {"audit_repeats": -1}, {"most_rows": 200}):
        with pytest.raises(ValueError, match="must be"):
            CriteriaSettings(**wrong)


def made(settings):
    return Made(
        name="n",
        command="c",
        seed=0,
        settings=asdict(settings),
        meanings=find("criteria-on-tables").meanings(),
    )


def test_words_say_what_is_settled_and_what_is_not():
    tables = list(SOURCES)[:4]
    outcome = describe(
        CriteriaSettings(), [cell(table, repeat=i, holdout=0) for table in tables for i in range(3)]
    )
    assert outcome.headline == "Nothing is settled by fewer than 5 tables: give a folder with more."
    assert (
        "Not settled for want of tables: rounds of AdaBoost at n = 100 (4 tables)"
        in outcome.findings[-1]
    )
    found = summarize([cell(table, holdout=0) for table in TABLES])[ROUNDS]["n = 100"]
    assert found["holdout"]["difference"]["settled"]
    assert found["holdout"]["difference"]["mean"] == pytest.approx(20)
    assert found["audit's default"]["simplest less best"]["mean"] == pytest.approx(10)
    assert found["audit's default"]["simpler"] == 1.0
    assert not found["10-fold CV"]["difference"]["settled"]


def without_seconds(value):
    if isinstance(value, dict):
        return {
            key: without_seconds(each)
            for key, each in value.items()
            if key not in ("seconds", "cpu_seconds")
        }
    return [without_seconds(each) for each in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.usefixtures("forked")
@pytest.mark.slow
def test_it_runs_on_built_in_tables_alone_and_does_not_depend_on_jobs(tmp_path):
    settings = CriteriaSettings(repeats=2, audit_repeats=0, most_rows=100)
    cells = compute(settings, 0, Runner(n_jobs=2))
    assert len(cells) == 4 * (2 + 2)
    seed = seed_for("criteria/breast cancer/100/1", 0)
    assert without_seconds(judge("breast cancer", "", ROUNDS, 100, seed)) == without_seconds(
        cells[1]["result"]
    )
    outcome = describe(settings, cells)
    assert "Refused, and why" in to_html(outcome, made(settings))
    (tmp_path / "results.json").write_text(to_json(outcome, made(settings)), encoding="utf-8")
    main(str(tmp_path / "results.json"), str(tmp_path / "figure.svg"))
    drawn = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    assert "always the largest" in drawn


@pytest.mark.slow
def test_the_audits_own_candidates_are_only_resampled():
    found = judge("wine", "", AUDIT, 100, 0)
    assert list(found["answers"]) == [
        "holdout",
        "audit's folds, best",
        "audit's default",
        "always the largest",
    ]
    assert (
        len(found["errors"])
        == found["answers"]["always the largest"]["chosen"] + 1
        == 8 + bool(find_spec("torch"))
    )
    outcome = describe(
        CriteriaSettings(),
        [{"table": "wine", "family": AUDIT, "n": 100, "repeat": 0, "result": found}],
    )
    assert (
        AUDIT,
        "all but resampling",
        "their capacity and likelihood are not known",
        "all",
    ) in outcome.parts[-1].table.rows


def test_the_figure_leaves_out_the_reference_and_writes_what_lies_beyond():
    drawn = figure(summarize([cell(table, holdout=0) for table in TABLES]))
    assert "+20.00 * ›" in drawn
    assert ">10-fold CV<" not in drawn
    assert ">audit&#39;s default<" in drawn


def test_it_is_registered():
    assert find("criteria-on-tables").settings is CriteriaSettings
    with pytest.raises(ValueError, match="repeats must be a whole number"):
        reproduce("criteria-on-tables", repeats="many")
