import json
import pickle
import subprocess
import sys

import pytest

from surelearn.bounds import (
    clopper_pearson,
    expected_gap,
    hoeffding,
    hypergeometric_tail_inversion,
    theorems,
    vc,
)
from surelearn.claim import Claim, Finding, at_most, find_theorem
from surelearn.plain import freeze, show


def test_a_theorem_is_a_number_and_its_certify_a_claim():
    claim = hoeffding.certify(0.03, 1000, 0.05)
    assert claim.value == hoeffding(0.03, 1000, 0.05)
    assert (claim.quantity, claim.relation, claim.confidence, claim.evidence) == (
        "risk",
        "<=",
        0.95,
        "certified",
    )
    assert claim.inputs == {"risk": 0.03, "n": 1000, "delta": 0.05}
    assert claim.measured == 0.03
    assert "independent" in claim.assumptions[0]
    assert str(claim) == "risk ≤ 6.9%  (95%, Hoeffding)"


def test_claims_are_frozen_hashable_and_picklable():
    claim = clopper_pearson.certify(5, 171, 0.025)
    with pytest.raises(AttributeError):
        claim.value = 0.0  # pyright: ignore
    with pytest.raises(TypeError, match="frozen"):
        claim.inputs["errors"] = 0  # pyright: ignore
    assert pickle.loads(pickle.dumps(claim)) == claim  # noqa: S301 - our own bytes
    assert len({claim, clopper_pearson.certify(5, 171, 0.025)}) == 1


def test_the_documented_json_of_a_claim():
    plain = clopper_pearson.certify(errors=5, n=171, delta=0.025).to_dict()
    assert plain["value"] == pytest.approx(0.066914, abs=5e-7)
    assert plain["inputs"] == {"errors": 5, "n": 171, "delta": 0.025}
    assert (plain["confidence"], plain["vacuous"]) == (0.975, False)
    assert Claim.from_dict(json.loads(json.dumps(plain))) == clopper_pearson.certify(
        errors=5, n=171, delta=0.025
    )


def test_candidates_are_paid_for():
    chosen = clopper_pearson.certify(30, 1000, 0.05, candidates=12)
    assert chosen.value == clopper_pearson(30, 1000, 0.05 / 12)
    assert chosen.confidence == 0.95
    again = chosen.at(0.05, candidates=2)
    assert again.candidates == 24
    assert again.value == clopper_pearson(30, 1000, 0.05 / 24)
    with pytest.raises(ValueError, match="candidates"):
        clopper_pearson.certify(30, 1000, 0.05, candidates=0)


def test_vacuous_claims_say_so():
    assert vc.certify(0.05, 600, 0.05, vc_dimension=7).vacuous
    assert not hypergeometric_tail_inversion.certify(30, 600, 0.05, vc_dimension=7).vacuous
    assert "vacuous" in str(vc.certify(0.05, 600, 0.05, vc_dimension=7))
    assert find_theorem("clopper_pearson_lower").certify(0, 10, 0.05).vacuous
    assert find_theorem("uniform_stability").certify(0.5, 1.0, 10, 0.05, loss_bound=2.0).vacuous


def test_in_expectation_is_not_a_probability():
    claim = expected_gap.certify(0.01)
    assert claim.confidence == "in expectation"
    assert not claim.with_probability
    assert claim.delta == 0.0


def test_assumptions_that_are_met_are_kept_apart():
    claim = hoeffding.certify(0.03, 1000, 0.05, met=["the loss lies in [0, 1]"])
    assert "the loss lies in [0, 1]" in claim.met
    assert "the loss lies in [0, 1]" not in claim.assumptions


def test_unknown_theorems_and_fields_are_refused():
    plain = hoeffding.certify(0.03, 1000, 0.05).to_dict()
    with pytest.raises(ValueError, match="no theorem is called 'magic'"):
        Claim.from_dict({**plain, "theorem": "magic"})
    with pytest.raises(ValueError, match="no field 'surprise'"):
        Claim.from_dict({**plain, "surprise": 1})


def test_every_theorem_documents_itself():
    keys = [theorem.key for theorem in theorems()]
    assert len(keys) == len(set(keys)) >= 57
    for theorem in theorems():
        assert theorem.name
        assert theorem.reference
        assert theorem.__doc__
        assert ">>>" in theorem.__doc__
        assert theorem.key in repr(theorem)


@pytest.mark.parametrize(
    ("value", "unit", "relation", "text"),
    [
        (0.06691, "rate", "<=", "6.7%"),
        (0.06701, "rate", "<=", "6.8%"),
        (0.8401, "rate", ">=", "84.0%"),
        (0.83999, "rate", ">=", "83.9%"),
        (0.00011, "rate", "<=", "0.02%"),
        (0.0, "rate", "<=", "0.0%"),
        (28756.4, "number", "<=", "28,760"),
        (28756.4, "number", ">=", "28,750"),
        (-0.19331, "number", ">=", "-0.1934"),
        (9.638e-7, "number", "<=", "9.638e-7"),
        (float("inf"), "number", "<=", "∞"),
    ],
)
def test_numbers_are_rounded_so_that_they_stay_true(value, unit, relation, text):
    assert show(value, unit, relation) == text


def test_findings():
    finding = Finding(
        code="SL101",
        text="one value per row",
        severity="notice",
        numbers={"column": "id", "share": 1.0},
    )
    assert Finding.from_dict(json.loads(json.dumps(finding.to_dict()))) == finding
    assert str(finding) == "one value per row (SL101, notice)"
    with pytest.raises(ValueError, match="severity"):
        Finding(code="SL101", text="x", severity="dreadful")  # pyright: ignore
    with pytest.raises(TypeError, match="numbers, strings"):
        freeze(object())


@pytest.mark.parametrize("delta", [0.0, 1.0, 2.0, -0.1])
def test_delta_is_checked_before_it_is_divided(delta):
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        clopper_pearson.certify(0, 100, delta, candidates=5)


def test_a_claim_is_read_where_nobody_has_imported_the_theorems():
    text = json.dumps(clopper_pearson.certify(3, 100, 0.05).to_dict())
    code = (
        "import json, sys; from surelearn import Claim;"
        " print(Claim.from_dict(json.load(sys.stdin)).recompute())"
    )
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == clopper_pearson(3, 100, 0.05)


def is_key(quantity):
    return quantity.isidentifier() and quantity.isascii() and quantity == quantity.lower()


def test_quantities_of_theorems_are_keys_for_programs_with_labels_for_people():
    assert [t.key for t in theorems() if not is_key(t.claims.quantity)] == []
    ratio = find_theorem("kmeans_spectral_ratio")
    assert (ratio.claims.quantity, ratio.claims.label) == ("cost_over_optimum", "cost / optimum")
    assert ratio.certify(**ratio.example).label == "cost / optimum"
    stable = find_theorem("beta_ridge")
    assert stable.certify(**stable.example).label == "uniform stability"
    named = hoeffding.certify(0.03, 1000, 0.05, quantity="mean_loss")
    assert (named.quantity, named.label) == ("mean_loss", "mean loss")


@pytest.mark.parametrize("words", ["mean loss", "cost/optimum", "Risk", "epsilon_rényi", "", "1st"])
def test_words_are_no_key(words):
    with pytest.raises(ValueError, match="identifier in lower case"):
        at_most(words, label="the words for people")
    if words:
        with pytest.raises(ValueError, match="identifier in lower case"):
            hoeffding.certify(0.03, 1000, 0.05, quantity=words)
