"""Operating points of recorded scores: what a walk chose is what is certified, and no order of the file
decides which rows are.
"""

import numpy as np
import pandas as pd
import pytest

from surelearn.auditing.answers import Roles, audit_answers, read_units
from surelearn.auditing.answers.operating import divide_units, tells_apart
from surelearn.auditing.operating import threshold_of
from surelearn.auditing.options import Options
from surelearn.operating import Requirement


def scored(rng, n=3000):
    """Between 0.5 and 0.8 a score says nothing about the class."""
    s = rng.random(n)
    positive = np.where(s < 0.5, False, np.where(s < 0.8, rng.random(n) < 0.5, True))
    return pd.DataFrame(
        {"note": rng.integers(0, 2**60, n), "s": s, "y": np.where(positive, "p", "q")}
    )


def test_errors_among_the_answered_are_those_of_the_scores_own_answers():
    """At most 5% are promised; by half the answers between 0.5 and 0.8 they would be more."""
    rng, promise = np.random.default_rng(0), "error <= 0.05"
    asked = {"truth": "y", "score": "s", "positive": "p", "require": promise, "ledger": False}
    audit = audit_answers(scored(rng), **asked)
    new = scored(rng, 100_000)
    cut = audit.certificate.facts["walk.threshold"]
    said = np.where(new["s"] >= 0.5, "p", "q")
    answered = np.maximum(new["s"], 1 - new["s"]) >= cut
    assert np.mean(said[answered] != new["y"][answered]) <= 0.05
    assert audit.certificate["selective_error"].value <= 0.05


def test_the_place_in_a_file_does_not_decide_which_rows_are_certified():
    table = scored(np.random.default_rng(1))
    roles = Roles(truth="y", score="s")
    told = read_units(table, roles, "p", walked=True)
    silent = read_units(table.drop(columns="note").sort_values("s"), roles, "p", walked=True)
    assert tells_apart(told)
    assert not tells_apart(silent)
    requirement, options = Requirement.parse("sensitivity >= 0.8"), Options(positive="p")
    one = divide_units(silent, requirement, options)[0]
    assert len(one.y) == len(divide_units(silent, requirement, options)[0].y)  # the same coins
    gaps = np.diff(np.flatnonzero(np.isin(silent.X["s"], one.X["s"])))
    assert 0.6 < len(one.y) / len(silent.y) < 0.9
    assert gaps.max() < 30


def test_the_threshold_is_told_in_full():
    rng = np.random.default_rng(2)
    asked = {"truth": "y", "score": "s", "positive": "p", "ledger": False}
    audit = audit_answers(scored(rng), **asked, require="sensitivity >= 0.8")
    cut = audit.certificate.facts["walk.threshold"]
    assert float(threshold_of(audit.certificate)) == cut == float(np.float32(cut))
    assert threshold_of(audit.certificate) in audit.verdict.text


@pytest.mark.parametrize(("share", "more", "told"), [
    (0.05, {}, True), (0.05, {"threshold": 0.5}, False), (0.4, {}, False), (0.05, {"cost": 5.0}, False),
])  # fmt: skip
def test_no_fewer_errors_than_a_constant_answers_tell_little_of_a_rare_class(share, more, told):
    rng = np.random.default_rng(0)
    sick = rng.random(1_500) < share
    score = 1 / (1 + np.exp(1 - 2.0 * sick - rng.normal(size=1_500)))
    frame = pd.DataFrame({"label": np.where(sick, "sick", "well"), "score": score})
    asked = {"truth": "label", "score": "score", "positive": "sick", "ledger": False}
    verdict = audit_answers(frame, **asked, **more).verdict
    assert ("say how much of it must be found" in verdict.text) == told
    if told:
        assert verdict.kind == "do not ship"
        assert "`require='sensitivity >= 0.95'`" in verdict.text
