"""The verdict is about the error that costs: mean cost where a cost is stated, and the rare
class where none is.
"""

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge

import surelearn
from surelearn import Audit, Certificate, certify
from surelearn.cli import main
from surelearn.lacking import Lacking
from surelearn.selection import Costs, select
from surelearn.selection.costs import best_constant, choose_threshold

SHARED = Path(__file__).parents[3] / "shared" / "data"
TRUST = ("robustness", "poisoning", "membership", "attribution")
QUICK = {"ledger": False, "refits": 0, "curve_repeats": 0, "skip": TRUST}
MODELS = {"constant": DummyClassifier(), "linear": LogisticRegression()}


def rare(n=3000, seed=0, share=0.024):
    """A disease of ``share`` of the rows, whose marks are weak enough that few answers are
    wrong without looking.
    """
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < share
    x = rng.normal(size=(n, 4)) + np.outer(sick, [1.6, 1.2, 0.8, 0.0])
    return pd.DataFrame(x, columns=list("abcd")).assign(state=np.where(sick, "cancer", "healthy"))


def audit(frame, **options):
    return surelearn.audit(frame, **{"target": "state", "models": MODELS, **QUICK, **options})


@pytest.fixture(scope="module")
def dear():
    return audit(rare(), positive="cancer", cost=40.0)


# --------------------------------------------------------------------------------------------------


def test_with_a_cost_everything_is_about_the_mean_cost(dear):
    """By errors the model is worse than a constant; by cost, which was stated, it is far better."""
    certificate = dear.certificate
    first, *others = certificate.together
    assert (first.quantity, first.delta) == ("mean_cost", pytest.approx(0.025))
    assert sum(claim.delta for claim in certificate.together) == pytest.approx(0.05)
    assert {"risk", "sensitivity", "specificity", "precision", "gain", "baseline_cost"} <= {
        c.quantity for c in others
    }
    assert certificate["risk"].measured > 0.024 + 0.01  # more errors than always answering healthy
    assert dear.verdict.kind == "guaranteed"
    assert re.fullmatch(
        r"On new rows like these, a mean cost of at most 0\.\d+ per row \(a miss counts 40, a false"
        r" alarm 1\), at least "
        r"0\.\d+ less than always answering ‘\w+’, and at most \d+\.\d% of cancer cases missed; all"
        r" three hold together "
        r"with 95% confidence\.",
        dear.verdict.text,
    )
    gain, baseline = certificate["gain"], certificate["baseline_cost"]
    assert gain.covers.loss == baseline.covers.loss == first.covers.loss == "cost"
    assert (
        gain.inputs["loss_bound"]
        == baseline.inputs["loss_bound"]
        == first.inputs["loss_bound"]
        == 40.0
    )
    assert gain.measured == pytest.approx(baseline.measured - first.measured)
    assert gain.value > 0
    assert certificate.verify(dear.model)


def test_the_page_and_the_table_say_what_it_costs_to_be_wrong(dear):
    page = dear.to_html()
    assert page.index("Operating point: what it costs to be wrong") < page.index(">Guaranteed ")
    section = dear["costly"]
    assert section.tables[0].rows[0][0] == "Mean cost, in false alarms"
    assert section.notes[0] == "A missed cancer costs 40, a false alarm 1."
    assert dear["selection"].charts[0].title.startswith("Mean cost in false alarms of 2")
    assert Audit.from_json(dear.to_json()).to_html() == page


def test_candidates_are_compared_by_cost_at_their_own_threshold():
    """Fewer errors at ½ are worth less than a threshold that suits the cost."""
    rng = np.random.default_rng(0)
    x, sick = rng.normal(size=600), np.zeros(600, dtype=bool)
    sick[:60] = True
    x[sick] += 1.0
    y = np.where(sick, 1, 0)
    models = {"constant": DummyClassifier(), "linear": LogisticRegression()}
    errors = select(models, x[:, None], y, metric="accuracy", prefer="simplest")
    costs = select(models, x[:, None], y, costs=Costs(positive=1, miss=9.0))
    assert errors.name == "constant"  # within one standard error, and simpler
    assert costs.name == "linear"
    assert costs.errors[0] == pytest.approx(0.9, abs=0.02)  # always, or never: the cheaper constant
    assert not costs.rate
    stated = select(models, x[:, None], y, costs=Costs(positive=1, miss=9.0, threshold=0.999))
    assert stated.errors[1] == pytest.approx(0.9)  # nothing is answered positive
    held = select(
        models,
        x[:, None],
        y,
        criterion="holdout",
        held_out=np.arange(0, 600, 3),
        costs=Costs(positive=1, miss=9.0),
    )
    assert isinstance(held.claim, Lacking)
    assert "compared by their costs" in held.claim.reason


def test_a_row_is_judged_at_a_threshold_that_other_rows_chose():
    """Scores that say nothing seem cheaper than the cheaper constant at the best of all
    thresholds, and are not.
    """
    rng, miss, seen, honest = np.random.default_rng(0), 9.0, [], []
    for _ in range(60):
        scores, y = rng.random(150), (rng.random(150) < 0.1).astype(int)
        called = scores >= choose_threshold(scores, y, 1, miss)
        seen.append(np.mean(np.where(y == 1, miss, 1.0) * (called != (y == 1))))
        honest.append(np.mean(Costs(positive=1, miss=miss).of_rows(scores, y)))
    assert np.mean(seen) < 0.85 < 0.9 <= np.mean(honest)  # 0.9: the mean cost of either constant
    apart = Costs(positive=1, miss=miss).of_rows(
        np.r_[scores, np.nan], np.r_[y, 1], groups=np.zeros(151)
    )
    assert np.isnan(apart[-1])
    assert np.isfinite(apart[:-1]).all()  # one group: its own rows choose, for want of others


def test_a_stated_threshold_implies_its_cost():
    """Answering positive is right where p·K ≥ 1 − p, that is from t = 1/(1 + K) on."""
    frame = rare()
    stated = audit(frame, positive="cancer", threshold=1 / 41)
    assert stated.certificate.facts.options["cost"] == pytest.approx(40.0)
    assert stated.certificate.together[0].quantity == "mean_cost"
    assert "(a miss counts 40, a false alarm 1)" in stated.verdict.text
    assert "as the stated threshold implies" in stated["costly"].notes[0]
    half = audit(frame, positive="cancer", threshold=0.5).certificate
    # a miss costs a false alarm: cost and errors are one
    assert half["mean_cost"].measured == half["risk"].measured
    both = audit(frame, positive="cancer", threshold=0.1, cost=3.0).certificate
    assert both.facts.options["cost"] == 3.0
    for wrong in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match="threshold must lie strictly between 0 and 1"):
            audit(frame, positive="cancer", threshold=wrong)
    with pytest.raises(ValueError, match="cost must be a positive number"):
        audit(frame, positive="cancer", cost=-1.0)


def test_nothing_improves():
    rng = np.random.default_rng(5)
    frame = rare(1500).assign(**{name: rng.normal(size=1500) for name in "abcd"})
    result = audit(frame, positive="cancer", cost=5.0)
    assert result.verdict.kind == "do not ship"
    assert re.fullmatch(
        r"Do not ship: a mean cost of 0\.\d+ \(a miss counts 5, a false alarm 1\) measured, 0\.\d+"
        r" for always answering "
        r"‘healthy’; no improvement can be guaranteed\.",
        result.verdict.text,
    )


def test_nothing_useful_where_no_row_could_prove_it_cheaper():
    result = audit(rare(120, share=0.1), positive="cancer", cost=40.0)
    assert result.verdict.kind == "nothing useful"
    assert re.search(
        r"even answers without an error prove only a mean cost of at most \d+\.\d+, and",
        result.verdict.text,
    )


def test_the_constant_is_the_cheapest_on_the_fit_rows():
    y = ["a"] * 50 + ["b"] * 30 + ["c"] * 20
    assert best_constant(y) == "a"
    assert best_constant(y, "c", 2.0) == "a"
    assert best_constant(y, "c", 5.0) == "c"
    # of the answers that are not positive, the most frequent
    assert best_constant(y, "a", 0.5) == "b"
    labels = {
        K: audit(rare(), positive="cancer", cost=K).certificate["gain"].label for K in (20.0, 80.0)
    }
    assert labels == {
        20.0: "mean cost below that of always answering healthy",
        80.0: "mean cost below that of always answering cancer",
    }


def test_several_classes_groups_and_another_model():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 2))
    y = np.digitize(x[:, 0] + 0.5 * rng.normal(size=900), [0.0, 1.2])
    model = LogisticRegression().fit(x[:300], y[:300])
    new = (x[300:], y[300:])
    certificate = certify(model, *new, positive=2, cost=6.0, groups=np.arange(600) // 4)
    predicted = model.predict(x[300:])
    costs = np.where(
        (y[300:] == 2) & (predicted != 2),
        6.0,
        np.where((y[300:] != 2) & (predicted == 2), 1.0, 0.0),
    )
    assert certificate.together[0].quantity == "mean_cost"
    assert certificate["mean_cost"].measured == pytest.approx(costs.mean())
    # 0 and 1 cost the same
    gains = [claim.label for claim in certificate.together if claim.quantity == "gain"]
    assert gains == [
        f"mean cost below that of always answering {c}, mean over groups" for c in (0, 2)
    ]
    assert certificate.verify(model, *new, groups=np.arange(600) // 4)
    sizes = np.repeat(np.arange(240), np.r_[np.full(120, 1), np.full(120, 4)])
    weighted = certify(model, *new, positive=2, cost=6.0, groups=sizes, largest_group=4)
    by_rows, public = weighted["row_weighted_cost"], weighted.published().facts.values
    assert not [
        key for key, value in public.items() if "losses" in key and isinstance(value, tuple)
    ]
    assert by_rows.measured == pytest.approx(costs.mean())
    assert by_rows.covers.loss == "cost"
    result = surelearn.audit(model, *new, positive=2, cost=6.0, **QUICK)
    assert "than any constant answer" in result.verdict.text
    other = certify(
        model, *new, positive=2, cost=6.0, baseline=DummyClassifier().fit(x[:300], y[:300])
    )
    assert other["gain"].label == "mean cost below that of the baseline"
    assert other["baseline_cost"].covers.loss == "cost"
    assert Certificate.from_json(other.to_json()) == other


def test_groups_and_time_speak_of_the_mean_cost_too():
    frame = rare(1500, share=0.2).assign(patient=np.arange(1500) // 6)
    result = audit(frame, positive="cancer", cost=4.0, group="patient")
    assert re.match(
        r"For a new patient, a mean cost of at most 0\.\d+ per row \(.*\) as a mean over patients,"
        r" at least 0\.\d+ less",
        result.verdict.text,
    )
    late = audit(
        frame.assign(day=np.arange(1500)), positive="cancer", cost=4.0, time="day", drop=["patient"]
    )
    assert re.search(r"the mean cost was 0\.\d+ \(measured\)", late.verdict.text)
    leak = frame.assign(told=np.where(frame.state == "cancer", "yes", "no")).drop(columns="patient")
    assert re.search(
        r"with it at most [\d.]+ mean cost, without it at most",
        audit(leak, positive="cancer", cost=4.0).verdict.text,
    )


def test_a_certificate_with_a_cost_whose_headline_was_the_error_still_verifies():
    """As `certify` made it before the mean cost was the headline: it compares the errors of
    constants, not their costs.
    """
    old = Certificate.from_json(
        (Path(__file__).parents[1] / "certificate-cost.json").read_text(encoding="utf-8")
    )
    assert old.together[0].quantity == "risk"
    assert old["mean_cost"].quantity == "mean_cost"
    assert old.verify(), str(old.verify())
    X, y = np.arange(24.0)[:, None], np.arange(24) % 3 // 2
    model = DummyClassifier(strategy="constant", constant=1).fit(X, y)
    assert not [line for line in old.verify(model, X, y).differences if line.startswith("fact ")]
    assert (
        certify(model, X, y, positive=1, cost=3.0, majority=0).together[0].quantity == "mean_cost"
    )


# --------------------------------------------------------------------------------------------------


def test_a_rare_class_that_is_missed_stands_in_the_first_sentence():
    """Few errors, because nearly all rows are healthy, and a gain over always saying so; but
    most cancers may be missed.
    """
    frame = rare(4000, seed=1, share=0.04)
    frame["a"] += 1.4 * (frame.state == "cancer")
    result = audit(frame)
    assert result.verdict.kind == "warning"
    claims = {claim.label: claim for claim in result.certificate.together}
    up = 100 * math.ceil(1000 * claims["errors where the truth is cancer"].value) / 1000
    first, second = result.verdict.sentence.split(". ", 1)
    assert re.fullmatch(
        r"At most \*\*\d\.\d% errors\*\*, but up to \*\*\d+\.\d%\*\* of ‘cancer’ rows may be"
        r" missed .*",
        first,
    )
    assert f"up to **{up:.1f}%** of ‘cancer’ rows may be missed (guaranteed together, 95%)" in first
    assert "say what a miss costs: `positive='cancer', cost=10`" in first
    assert re.fullmatch(
        r"Guaranteed too: at least \*\*\d\.\d+ percentage points fewer errors\*\* than always"
        r" answering ‘healthy’\.",
        second,
    )
    assert '<h1 class="m">' in result.to_html()  # the color of warnings
    assert "<code>positive=" in result.to_html()
    assert result.certificate.together[0].quantity == "risk"
    assert [claim.delta for claim in result.certificate.together[:3]] == [
        pytest.approx(d) for d in (0.025, 0.025 / 12, 0.025 / 12)
    ]


def test_a_constant_that_errs_as_rarely_is_not_shipped_and_says_what_is_missed():
    result = audit(rare())
    assert result.verdict.kind == "do not ship"
    assert re.search(
        r"no improvement can be guaranteed, and up to \*\*\d+\.\d%\*\* of ‘cancer’ rows may be"
        r" missed \(95%\); say what",
        result.verdict.sentence,
    )


def test_balanced_classes_and_found_ones_raise_no_warning():
    even = audit(rare(600, share=0.5))
    assert even.verdict.kind == "guaranteed"
    frame = rare(1500, share=0.15)
    frame["a"] += 9 * (frame.state == "cancer")
    assert audit(frame).verdict.kind in ("guaranteed", "no verdict")


def test_of_several_classes_the_rare_one_is_named():
    rng = np.random.default_rng(0)
    label = rng.choice(["a", "b", "rare"], p=[0.5, 0.47, 0.03], size=2000)
    x = rng.normal(size=(2000, 2)) + 4 * np.column_stack([label == "a", label == "b"])
    result = audit(pd.DataFrame(x, columns=["u", "v"]).assign(state=label))
    assert result.verdict.kind == "warning"
    assert "of ‘rare’ rows may be missed" in result.verdict.text
    assert "name the class that matters: `positive='rare'`" in result.verdict.text


def test_regression_is_as_it_was():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(y=3 * x[:, 0] + rng.normal(size=300))
    result = surelearn.audit(frame, target="y", models={"linear": Ridge()}, **QUICK)
    assert result.certificate.together[0].quantity == "error_quantile"
    with pytest.raises(ValueError, match="--positive names a class"):
        surelearn.audit(
            frame, target="y", models={"linear": Ridge()}, positive="1", cost=2.0, **QUICK
        )


# --------------------------------------------------------------------------------------------------


MODULE = """
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression


def quick():
    return {"constant": DummyClassifier(), "linear": LogisticRegression()}
"""


@pytest.fixture
def command(tmp_path, monkeypatch):
    (tmp_path / "models_of_cost_tests.py").write_text(MODULE)
    rare(2000, seed=1).to_csv(tmp_path / "d.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    skipped = [word for name in TRUST for word in ("--skip", name)]
    fixed = ["--model", "models_of_cost_tests:quick", "--jobs", "1", "--target", "state", *skipped]

    def run(*words):
        return CliRunner(catch_exceptions=False).invoke(main, ["audit", "d.csv", *fixed, *words])

    return run


def test_the_check_is_about_the_mean_cost(command):
    asked = ("--positive", "cancer", "--cost", "40")
    failed = command(*asked, "--max-risk", "0.05")
    assert failed.exit_code == 1
    assert re.search(r"the guaranteed mean cost 0\.\d+ is above --max-risk 0\.05", failed.stderr)
    assert "mean cost, in false alarms" in failed.stdout


def test_a_gate_is_about_the_mean_cost(tmp_path):
    """The bound on errors is below both thresholds; only the mean cost decides."""
    asked = {
        "target": "state",
        "positive": "cancer",
        "models": MODELS,
        "refits": 0,
        "ledger": tmp_path / "book.json",
    }
    assert not surelearn.gate(rare(), max_risk=0.2, cost=40.0, **asked)
    passed = surelearn.gate(rare(), max_risk=2.0, cost=40.0, **asked)
    assert passed
    assert passed.certificate.together[0].quantity == "mean_cost"
    assert passed.certificate["risk"].value < 0.2 < passed.certificate["mean_cost"].value <= 2


def test_the_command_names_the_next_one_to_try(command):
    result = command("--quiet")
    assert result.exit_code == 0
    assert re.search(
        r"say what a miss costs: `surelearn audit d.csv .*--target state.* --positive cancer"
        r" --cost 10`",
        result.stdout,
    )


@pytest.mark.skipif(not (SHARED / "sick.csv").is_file(), reason="shared/data/sick.csv is not here")
def test_thyroid_disease():
    options = {"target": "Class", "models": ["logistic regression"], **QUICK}
    plain = surelearn.audit(SHARED / "sick.csv", **options)
    assert plain.verdict.kind == "warning"
    assert "of ‘sick’ rows may be missed" in plain.verdict.text
    dear = surelearn.audit(SHARED / "sick.csv", positive="sick", cost=20.0, **options)
    assert dear.verdict.kind == "guaranteed"
    assert dear.certificate.together[0].quantity == "mean_cost"


# --------------------------------------------------------------------------------------------------


def test_the_mean_cost_holds_and_not_for_a_model_chosen_by_its_cost_on_the_same_rows():
    """Answers by a coin, so that the true mean cost is known: (miss·p + 1 − p)/2. The audit's
    own: `test_promise.py`.
    """
    rng, trials, delta, miss, p = np.random.default_rng(7), 400, 0.2, 2.0, 0.5
    truth, seen = (miss * p + 1 - p) / 2, Counter()
    options = {
        "delta": delta,
        "task": "classification",
        "classes": (0, 1),
        "positive": 1,
        "cost": miss,
        "majority": 1,
    }
    for _ in range(trials):
        y = (rng.random(60) < p).astype(int)
        answers = rng.integers(2, size=(100, 60))
        costs = np.where(y == 1, miss, 1.0) * (answers != y)
        for name, chosen, candidates in (
            ("fixed", 0, 1),
            ("chosen", int(costs.mean(axis=1).argmin()), 1),
        ):
            certificate = certify(
                lambda X: X[:, 0], answers[chosen][:, None], y, **options, candidates=candidates
            )
            seen[name] += truth > certificate.together[0].value
            seen[f"{name}, gain"] += (1 - p) - truth < certificate["gain"].value
    slack = 4 * math.sqrt(trials * delta / 2)
    # it can fail, and does so rarely enough
    assert trials * delta / 16 < seen["fixed"] <= trials * delta / 2 + slack, seen
    assert seen["fixed, gain"] <= trials * delta / 2 + slack, seen
    assert seen["chosen"] > trials * delta / 2 + slack, seen
    assert seen["chosen, gain"] > trials * delta / 2 + slack, seen


def test_the_gates_command_names_the_number_of_the_rows_to_fit_on(tmp_path):
    rare().to_csv(tmp_path / "rare.csv", index=False)
    asked = ["gate", str(tmp_path / "rare.csv"), "--target", "state", "--max-risk", "0.2"]
    asked += ["--model", "logistic regression", "--try", "1", "--ledger", str(tmp_path / "ledger")]
    cost = ["--positive", "cancer", "--cost", "40", "--out", str(tmp_path / "out")]
    said = CliRunner().invoke(main, asked + cost)
    assert "logistic regression chosen; mean cost 0." in said.output, said.output


def test_a_cost_of_more_than_two_classes_says_which_there_are_and_what_to_do():
    frame = rare(600, share=0.2)
    frame.loc[:30, "state"] = "helthy"
    with pytest.raises(ValueError, match="--cost needs two classes") as refused:
        audit(frame, positive="cancer", cost=5.0)
    text = str(refused.value)
    assert re.search(r"have 3: healthy \(3\d\d\), \w+ \(\d+\), \w+ \(\d+\)\. ", text)
    assert text.endswith("If 'helthy' is 'healthy' misspelled, correct it in the file")
    frame["state"] = np.arange(600) % 12
    with pytest.raises(ValueError, match="--threshold needs two classes") as refused:
        audit(frame, positive=3, threshold=0.2)
    assert "4 more. Write one label for all but 3 into the file" in str(refused.value)
