"""Every kind of verdict, in the words a person reads."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

import surelearn
from surelearn.bounds import clopper_pearson

QUICK = {
    "ledger": False,
    "refits": 2,
    "curve_repeats": 0,
    "skip": ("robustness", "poisoning", "membership", "attribution"),
}
MODELS = {"majority": DummyClassifier(), "linear": LogisticRegression()}


def table(n=400, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    y = np.where((x[:, 0] > 0.5) ^ (rng.random(n) < noise), "sick", "well")
    return pd.DataFrame(x, columns=["a", "b", "c"]).assign(state=y)


def audit(frame, **options):
    return surelearn.audit(frame, **{"target": "state", "models": MODELS, **QUICK, **options})


def test_guaranteed():
    result = audit(table(600), positive="sick")
    assert result.verdict.kind == "guaranteed"
    assert re.fullmatch(
        r"On new rows like these, at most \d+\.\d% errors, at least \d+\.\d percentage points fewer"
        r" than always answering "
        r"‘well’, and at most \d+\.\d% of sick cases missed; all three hold together with 95%"
        r" confidence\.",
        result.verdict.text,
    )
    risk = result.certificate["risk"]
    assert (
        f"at most **{100 * np.ceil(risk.value * 1000) / 1000:.1f}% errors**"
        in result.verdict.sentence
    )
    gain = result.certificate["gain"].value  # the paired claim, not two bounds side by side
    assert (
        f"at least **{100 * np.floor(gain * 1000) / 1000:.1f} percentage points fewer**"
        in result.verdict.sentence
    )


def test_without_a_class_that_matters_two_numbers_hold_together():
    frame = table().replace({"sick": "red", "well": "blue"})  # names that say nothing
    assert "; both hold together with 95% confidence." in audit(frame).verdict.text


def test_do_not_ship():
    noise = table(noise=0.5, seed=1)
    result = audit(noise)
    assert result.verdict.kind == "do not ship"
    assert re.fullmatch(
        r"Do not ship: \d+\.\d% errors measured, \d+\.\d% for always answering ‘\w+’; no"
        r" improvement can be guaranteed\.",
        result.verdict.text,
    )


def test_nothing_useful():
    result = audit(table(n=36))
    assert result.certificate.facts["rows"] == 12
    assert (
        result.verdict.text
        == "Nothing useful can be guaranteed: with 12 held-back rows even zero errors proves only"
        " 26.5%; label at least 72 to reach 5%."
    )
    assert clopper_pearson(0, 72, 0.025) <= 0.05 < clopper_pearson(0, 71, 0.025)


def test_nothing_useful_about_groups():
    frame = pd.concat([table(n=10, seed=s).assign(patient=f"p{s}") for s in range(24)])
    result = audit(frame, group="patient")
    assert re.match(
        r"Nothing useful can be guaranteed: with 8 held-back patients even zero errors proves only",
        result.verdict.text,
    )
    with pytest.raises(ValueError, match="at least 10 are needed"):
        audit(frame[frame.patient.isin(["p1", "p2"])], group="patient")


def test_only_a_leak_is_left():
    frame = table(n=600)[["state"]]
    frame["alive"] = np.where(frame.state == "sick", "no", "yes")
    with pytest.raises(ValueError, match="every usable column repeats 'state'"):
        audit(frame)


def test_regression_without_and_with_a_stated_range():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(y=3 * x[:, 0] + rng.normal(size=300))
    options = {"target": "y", "models": {"linear": Ridge()}, **QUICK}
    plain = surelearn.audit(frame, **options).verdict.text
    assert re.fullmatch(
        r"At least 90% of new predictions fall within [\d.]+ of the truth \(95% confidence;"
        r" always answering the median: 90% within [\d.]+; R² 0\.\d\d, both measured\); the"
        r" mean absolute error, "
        r"[\d.]+, is only measured, because the target has no stated range\.",
        plain,
    )
    assert re.search(
        r"; the mean absolute error is at most [\d.]+\.$",
        surelearn.audit(frame, loss_bound=20.0, **options).verdict.text,
    )


def test_regression_that_is_no_better_than_the_median():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"]).assign(
        y=rng.normal(size=300)
    )
    result = surelearn.audit(frame, target="y", **{**QUICK, "refits": 0})
    assert result.verdict.text.startswith("Do not ship: no candidate predicts better")


def test_over_time_nothing_is_guaranteed():
    frame = table().assign(day=np.arange(400))
    result = audit(frame, time="day")
    assert result.verdict.kind == "measured only"
    said = (
        r"On the last \d+ rows by day, the error rate was \d+\.\d% \(measured\), against \d+\.\d%"
        r" for always answering "
    )
    assert re.match(said + r"‘\w+’; nothing is guaranteed", result.verdict.text)
    assert result.claims == ()
    assert all("ordered by 'day'" in absent.reason for absent in result.certificate.lacking)


def test_groups_count_and_not_rows():
    rng = np.random.default_rng(0)
    frame = pd.concat([table(n=10, seed=s).assign(patient=f"p{s}") for s in rng.permutation(90)])
    result = audit(frame, group="patient")
    assert re.fullmatch(
        r"For a new patient, at most \d+\.\d% errors as a mean over patients(, at least \d+\.\d+"
        r" percentage points fewer "
        r"than always answering ‘well’)? \(95%; 27 held-back patients count, not 270 rows\)\."
        r"( An improvement over always answering ‘well’ was measured, but is not guaranteed\.)?",
        result.verdict.text,
    )


def test_a_column_that_gives_the_target_away():
    frame = table(n=600)
    frame["alive"] = np.where(frame.state == "sick", "no", "yes")
    frame["state"] = frame["state"].replace({"sick": "blue", "well": "red"})
    models = {
        "majority": DummyClassifier(),
        "tree": DecisionTreeClassifier(max_depth=2, random_state=0),
    }
    result = audit(frame, models=models)
    assert result.verdict.kind == "no verdict"
    assert re.match(
        r"No verdict: `alive` repeats `state`; with it at most \d\.\d% errors, without it at most"
        r" \d+\.\d%; confirm with "
        r"`--drop alive`",
        result.verdict.text,
    )
    first, *_, last = [claim for claim in result.certificate.together if claim.quantity == "risk"]
    assert last.label == "errors with alive"
    # they share the headline's half
    assert (first.delta, last.delta) == (pytest.approx(0.0125), pytest.approx(0.0125))
    assert sum(claim.delta for claim in result.certificate.together) == pytest.approx(0.05)
    assert result.certificate.verify()
    assert audit(frame, models=models, drop=["alive"]).verdict.kind == "guaranteed"
    kept = audit(frame, models=models, keep=["alive"])
    assert kept.certificate["risk"].value < 0.05


def test_another_model_to_compare_with():
    result = audit(table(), against={"tree": DecisionTreeClassifier(max_depth=1, random_state=0)})
    assert "the other model" in result.verdict.text
    assert result.certificate["gain"].label == "fewer errors than the baseline"
