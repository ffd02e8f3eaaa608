"""Scores counted between fixed thresholds in one pass: the same counts as of every score, a walk that holds,
and what one pass cannot say refused.
"""

import numpy as np
import pandas as pd
import pytest

from surelearn.auditing.answers import Roles, audit_answers, read_counted
from surelearn.auditing.answers.scored_once import GRID, CountedScores, walk_over
from surelearn.auditing.options import OptionError
from surelearn.auditing.verification import verify_folder
from surelearn.bounds import clopper_pearson_lower
from surelearn.certification import certify_counted
from surelearn.certification.beforehand import MOST_THRESHOLDS
from surelearn.data import DataError
from surelearn.operating import Requirement

ASKED = {"truth": "label", "score": "p", "positive": "sick"}


def frame(n=2_500, seed=0):
    """Scores that also lie exactly on thresholds, and on 0 and 1; three labels, some missing."""
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < 0.2
    p = np.where(rng.random(n) < 0.3, rng.choice(GRID, n), rng.beta(1 + 3 * sick, 2, n))
    p[:4] = 0.0, 1.0, 0.5, GRID[-1]
    label = np.where(sick, "sick", rng.choice(["well", "odd"], n)).astype(object)
    label[10:15] = None
    note = rng.integers(0, 2**60, n)
    return pd.DataFrame({"note": note, "p": p, "site": rng.choice(["a", "b"], n), "label": label})


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder, table = tmp_path_factory.mktemp("scored"), frame()
    table.to_parquet(folder / "t.parquet", row_group_size=700)
    table.to_csv(folder / "t.csv", index=False)
    table.to_json(folder / "t.jsonl", orient="records", lines=True, double_precision=15)
    return folder


def test_the_grid_is_fixed():
    assert len(GRID) == 996 <= MOST_THRESHOLDS  # as docs/certify.rst says
    assert list(GRID) == sorted(set(GRID))
    assert GRID[0] == 0.0
    assert 0.5 in GRID
    assert max(GRID) < 1
    steps = np.diff([t for t in GRID if 1e-6 <= t <= 0.5]) / [t for t in GRID if 1e-6 < t <= 0.5]
    assert steps.max() < 0.51  # 0.002 to 0.004


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.jsonl"])
@pytest.mark.parametrize("require", ["sensitivity >= 0.8", "specificity >= 0.7"])
def test_the_walk_counts_every_score(place, name, require):
    made = audit_answers(place / name, **ASKED, require=require, one_pass=True, ledger=False)
    facts, table = made.certificate.facts, frame().dropna(subset="label")
    p, sick = table.p.to_numpy(), (table.label == "sick").to_numpy()
    cuts = np.asarray(facts.options["thresholds"])
    assert tuple(cuts) == walk_over(Requirement.parse(require))
    np.testing.assert_array_equal(facts["walk.found"], (p[sick] >= cuts[:, None]).sum(axis=1))
    np.testing.assert_array_equal(facts["walk.alarms"], (p[~sick] >= cuts[:, None]).sum(axis=1))
    assert facts["rows"] == len(table)  # none was spent on choosing
    level, kept = float(require[-3:]), [facts["walk.found"], sick.sum()]
    if require.startswith("specificity"):
        kept = [(~sick).sum() - np.asarray(facts["walk.alarms"]), (~sick).sum()]
    sure = np.asarray(clopper_pearson_lower(kept[0], kept[1], 0.025)) >= level
    assert facts["walk.threshold"] == cuts[np.argmin(sure) - 1]  # the last before the first failure
    assert not sure.all()
    assert made.certificate.verify()
    told = " ".join(" ".join(one.notes) for one in made.sections if one.key == "operating")
    assert "no row was spent" in told
    answered = next(one for one in made.sections if one.key == "performance").tables[1].rows
    called = (p >= facts["walk.threshold"]) & sick
    assert f"{called.sum():,}" in {cell for row in answered for cell in row}


@pytest.mark.parametrize("threshold", [None, 0.5, 0.123456])
def test_a_stated_threshold_answers_as_where_the_file_is_read_whole(place, threshold):
    given = {**ASKED, "threshold": threshold, "slices": "site", "ledger": False}
    once, whole = (
        audit_answers(place / "t.parquet", one_pass=how, **given).certificate
        for how in (True, False)
    )
    same = 0
    for key, value in once.facts.values.items():
        if key in whole.facts.values:
            same += 1
            assert value == whole.facts[key], key
    assert same > 20
    assert {"auc", "brier_score", "log_loss", "calibration"} <= {one.what for one in once.lacking}


def test_a_page_is_verified(place, tmp_path):
    asked = {**ASKED, "require": "sensitivity >= 0.8", "one_pass": True, "ledger": False}
    audit_answers(place / "t.parquet", **asked).write(tmp_path / "page")
    found = verify_folder(tmp_path / "page", place / "t.parquet")
    assert found, str(found)
    assert "facts from model and rows" in found.checked
    other = frame().assign(p=lambda t: t.p**2)
    other.to_parquet(tmp_path / "other.parquet")
    assert not verify_folder(tmp_path / "page", tmp_path / "other.parquet")


@pytest.mark.parametrize(
    ("change", "given", "why"),
    [
        ({"p": 2.0}, {}, "numbers outside 0 to 1"),
        ({"p": -0.1}, {}, "numbers outside 0 to 1"),
        ({"p": np.inf}, {}, "numbers outside 0 to 1"),
        ({"p": np.nan}, {}, "lacks 2,495 of 2,495 scores"),
        ({"p": "high"}, {}, "a score is a number"),
        ({}, {"positive": "Sick"}, "Did you mean 'sick'"),
        ({}, {"answer": "site"}, "scores beside answers"),
        ({}, {"group": "site"}, "groups"),
    ],
)
def test_what_one_pass_cannot_count_is_refused(tmp_path, change, given, why):
    frame().assign(**change).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=why):
        audit_answers(tmp_path / "t.parquet", one_pass=True, ledger=False, **{**ASKED, **given})


def test_thresholds_whose_order_rows_tell_are_refused(place):
    with pytest.raises(OptionError, match="a sensitivity or a specificity"):
        audit_answers(place / "t.parquet", **ASKED, require="precision >= 0.5", one_pass=True)


def test_what_is_promised_holds():
    """Of uniform scores, whose sensitivity at a threshold t is 1 − t; and a mutant that takes the highest
    threshold at which enough is found among these rows.
    """
    rng, level, delta, trials = np.random.default_rng(0), 0.8, 0.4, 150
    requirement, wrong, mutant = Requirement.parse(f"sensitivity >= {level}"), 0, 0
    thresholds, n = walk_over(requirement), 120
    for _ in range(trials):
        reached = np.searchsorted(GRID, rng.random(n), side="right")
        counts = {
            (True, int(r)): int(c)
            for r, c in zip(*np.unique(reached, return_counts=True), strict=True)
        }
        scores = CountedScores("p", "sick", "well", GRID, {**counts, (False, 1): 50})
        found = certify_counted(
            scores.model(("sick", "well"), "-", 0.5), lambda what, s=scores: {"rows": n + 50, **s.walked(what)},
            "sha256:-", classes=("sick", "well"), positive="sick", require=requirement,
            thresholds=thresholds, delta=delta,
        ).facts  # fmt: skip
        met = found["walk.passed"] > 0
        wrong += met and 1 - found["walk.threshold"] < level
        enough = np.asarray(found["walk.found"]) / n >= level
        mutant += 1 - thresholds[int(np.flatnonzero(enough)[-1])] < level
    own = delta / 2  # the walk's share
    assert own / 2 < wrong / trials <= own + 4 * np.sqrt(own * (1 - own) / trials)
    assert mutant / trials > 0.35


def test_a_long_file_of_scores_is_read_whole_by_itself(place, monkeypatch):
    from surelearn.data import counting

    monkeypatch.setattr(counting, "LARGE_ROWS", 10)
    assert "one_pass" not in audit_answers(place / "t.parquet", ledger=False, **ASKED).numbers


def test_a_score_is_counted_where_its_class_is_one_of_two(tmp_path):
    frame().query("label != 'odd'").to_parquet(tmp_path / "t.parquet")
    counted = read_counted(tmp_path / "t.parquet", Roles(truth="label", score="p"), "sick")
    assert counted.classes == ("sick", "well")
    assert counted.answering(0.5).cells == counted.cells
