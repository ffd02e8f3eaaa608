"""Which rows these are is known although files of answers have columns of the system beside them; a gate
and a check speak about what they were asked, and nothing that is missing speaks for the answers.
"""

import json

import numpy as np
import pandas as pd
import pytest

from surelearn.auditing.answers import Roles, audit_answers, gate_answers, read_units
from surelearn.auditing.options import OptionError
from surelearn.auditing.verification import verify_folder
from surelearn.certificate import Certificate
from surelearn.data import DataError
from surelearn.plain import content_hash

RNG = np.random.default_rng(0)
N = 200
PROMPTS = [f"what is {a} times {b}, in words?" for a, b in RNG.integers(0, 10**6, (N, 2))]


def evals(rng, rate=0.85, **columns):
    """The same prompts, with new responses."""
    return pd.DataFrame(
        {
            "prompt": PROMPTS,
            "response": [f"I think it is {number}" for number in rng.integers(0, 10**9, N)],
            "passed": rng.random(N) < rate,
            **columns,
        }
    )


def test_new_responses_to_the_same_prompts_are_further_tries(tmp_path):
    rng, tries = np.random.default_rng(1), []
    for _ in range(3):
        table = evals(rng).sample(frac=1, random_state=int(rng.integers(99)))
        tries.append(
            gate_answers(table, passed="passed", at_least=0.99, ledger=tmp_path / "l").number
        )
    assert tries == [1, 2, 3]


def test_identifiers_tell_rows_and_enumerations_do_not():
    rng = np.random.default_rng(2)
    numbers = rng.integers(0, 10**9, N)

    def known(ids):
        table = pd.DataFrame({"id": ids, "passed": rng.random(N) < 0.9, "ms": rng.random(N)})
        return read_units(table, Roles(passed="passed")).known

    assert known(numbers).shares(known(numbers[::-1]))
    assert known([f"Scan {n}" for n in numbers]).shares(known([f"scan  {n} " for n in numbers]))
    assert not known(np.arange(N)).shares(known(np.arange(N)))
    assert not known([f"row {n}" for n in range(N)]).shares(known([f"row {n}" for n in range(N)]))


@pytest.mark.parametrize("changed", ["loss_range", "weight", "against"])
def test_what_decides_on_a_claim_is_another_look(changed, tmp_path):
    rng = np.random.default_rng(3)
    table = evals(
        rng, grade=rng.integers(2, 10, N), w=rng.uniform(0.9, 1.1, N), other=rng.random(N) < 0.5
    )
    given = {
        "loss_range": ({"grade": "grade", "loss_range": (0, 10)}, {"loss_range": (2, 10)}),
        "weight": ({"passed": "passed", "weight": "w", "weight_bound": 2.0}, {}),
        "against": ({"passed": "passed", "against": "other"}, {}),
    }[changed]
    first = audit_answers(table, **given[0], ledger=tmp_path / "l")
    table = table.assign(w=table["w"].to_numpy()[::-1], other=~table["other"])
    second = audit_answers(table, **{**given[0], **given[1]}, ledger=tmp_path / "l")
    assert [audit.numbers["turn"] for audit in (first, second)] == [1, 2]


def test_a_try_that_failed_is_not_computed_again(tmp_path, monkeypatch):
    table = evals(np.random.default_rng(4))
    asked = {"passed": "passed", "at_least": 0.99, "ledger": tmp_path / "l"}
    assert not gate_answers(table, **asked)
    asked_again = []
    monkeypatch.setattr(
        "surelearn.auditing.answers.gate.certify_units", lambda *_, **__: asked_again.append(1)
    )
    again = gate_answers(table, **asked)
    assert not asked_again
    assert (again.passed, again.repeated, again.number) == (False, True, 1)


def costly(lost):
    """Positives are nearly all missed; some draws have no label."""
    rng = np.random.default_rng(5)
    truth = np.where(rng.random(400) < 0.1, "pos", "neg").astype(object)
    truth[:lost] = None
    return pd.DataFrame({"y": truth, "s": "neg", "w": 1.0}).assign(
        s=lambda t: np.where(t.index < 3, "pos", "neg")
    )


@pytest.mark.parametrize("lost", [0, 1])
def test_a_goal_is_about_the_cost_also_where_that_is_not_claimed(lost):
    asked = {
        "truth": "y",
        "answer": "s",
        "positive": "pos",
        "cost": 40,
        "weight": "w",
        "weight_bound": 2.0,
    }
    answer = gate_answers(costly(lost), **asked, max_risk=0.5, ledger=False, number=1)
    assert not answer


def test_a_page_with_weights_and_a_class_that_matters():
    asked = {"truth": "y", "answer": "s", "positive": "pos", "weight": "w", "weight_bound": 2.0}
    for more in ({}, {"cost": 4}):
        assert audit_answers(costly(0), **asked, **more, ledger=False).verdict.text


def test_sets_of_labels_that_are_missing():
    """Without a truth left out, without an answer wrong; the other's missing answer is right."""
    table = pd.DataFrame(
        {
            "t": ["x;y"] * 50 + [None] * 30 + ["x"] * 20,
            "a": ["x;y"] * 50 + [None] * 30 + [None] * 20,
            "o": [None] * 60 + ["x"] * 40,
        }
    )
    audit = audit_answers(table, truth="t", answer="a", separator=";", against="o", ledger=False)
    claim = audit.certificate["mean_grade"]
    assert (claim.inputs["successes"], claim.inputs["n"]) == (50, 70)
    assert audit.certificate["gain"].measured == pytest.approx(50 / 70 - 1)


def test_the_others_missing_answers_are_right():
    said = np.where(np.arange(N) % 5 == 0, "b", "a")
    table = pd.DataFrame({"t": ["a"] * (N - 20) + ["b"] * 20, "s": said})
    table["o"] = table["s"].where(np.arange(N) % 3 > 0, None)
    gain = audit_answers(table, truth="t", answer="s", against="o", ledger=False).certificate[
        "gain"
    ]
    assert gain.measured <= 0


def test_ties_between_raters_do_not_speak_for_a_class():
    raters = {"r": ["pos", "pos", "neg"] * 80, "q": ["pos", "neg", "neg"] * 80}
    table = pd.DataFrame({**raters, "s": ["pos", "neg", "neg"] * 80})
    asked = {"truth": ("r", "q"), "answer": "s", "positive": "pos", "ledger": False}
    quantities = {claim.quantity for claim in audit_answers(table, **asked).certificate.together}
    assert "risk" in quantities
    assert not quantities & {"specificity", "f1", "mean_cost"}
    with pytest.raises(OptionError, match="what a tie costs is not known"):
        audit_answers(table, **asked, cost=4)


def test_rows_that_were_drawn_are_no_draws_of_groups():
    with pytest.raises(OptionError, match="no draws of groups"):
        Roles(truth="t", answer="a", weight="w", weight_bound=2, group="g")
    table = pd.DataFrame({"t": ["a", "b", "b"] * 60, "s": ["a", "b", "a"] * 60, "w": 2.0})
    table["g"] = np.repeat(np.arange(60), 3)
    asked = {
        "truth": "t",
        "answer": "s",
        "weight": "w",
        "weight_bound": 2,
        "coin": True,
        "group": "g",
    }
    table.loc[::2, "t"] = None
    quantities = {
        c.quantity for c in audit_answers(table, **asked, ledger=False).certificate.together
    }
    assert "risk" in quantities
    assert "class_error" not in quantities


def test_words_for_what_is_missing_are_no_answers():
    table = pd.DataFrame({"t": ["a", "b"] * 60, "s": ["a", "(no majority)"] * 60})
    with pytest.raises(DataError, match="here means what is missing"):
        audit_answers(table, truth="t", answer="s", ledger=False)


def test_samples_of_the_same_prompt_belong_together():
    prompts = np.repeat([f"what is the capital of country {i}?" for i in range(40)], 5)[:-7]
    table = pd.DataFrame({"prompt": prompts, "passed": np.arange(len(prompts)) % 7 > 0})
    table["response"] = [f"it is {i} {i * 7}" for i in range(len(table))]
    audit = audit_answers(table, passed="passed", ledger=False)
    assert audit.verdict.kind == "no verdict"
    assert "prompt" in audit.verdict.text
    assert audit_answers(table, passed="passed", group="prompt", ledger=False).certificate.together


def test_live_answers_may_all_be_lost():
    from surelearn.auditing.answers.units import read_units as read

    roles = Roles(winner="w", ours="new")
    lost = pd.DataFrame({"w": ["old"] * 50})
    assert read(lost, roles, live=True).y.sum() == 0
    with pytest.raises(DataError, match="never names 'new'"):
        read(lost, roles)


@pytest.mark.parametrize("forged", ["label", "population", "deleted"])
def test_a_claim_that_these_answers_do_not_make_is_found(forged, tmp_path):
    """Also where every hash was made anew."""
    table = pd.DataFrame({"t": ["a", "b"] * 100, "s": ["a", "b"] * 90 + ["b", "b"] * 10})
    audit = audit_answers(table, truth="t", answer="s", ledger=False)
    audit.write(tmp_path / "out")
    assert verify_folder(tmp_path / "out", table)
    path = tmp_path / "out" / "certificate.json"
    plain = json.loads(path.read_text())
    if forged == "label":
        plain["claims"][0]["label"] = "errors of all kinds, everywhere"
    elif forged == "population":
        plain["claims"][0]["covers"]["population"] = "all people on earth"
    else:
        del plain["claims"][1:4]
    plain.pop("hash")
    path.write_text(json.dumps({**plain, "hash": content_hash(plain)}))
    (tmp_path / "out" / "audit.json").unlink()
    (tmp_path / "out" / "report.html").unlink()
    assert not Certificate.from_json(path.read_text()).altered
    found = verify_folder(tmp_path / "out", table)
    assert not found
    assert any("claim" in line for line in found.differences)
