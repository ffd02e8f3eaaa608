import json
import math
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surelearn import Certificate, Facts, certify
from surelearn.bounds import chernoff_kl, clopper_pearson, expected_gap, hoeffding, mcallester
from surelearn.certificate import VERSION
from surelearn.claim import Covers
from surelearn.lacking import Lacking
from surelearn.plain import content_hash
from surelearn.slicing import cut


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = y.map({0: "malignant", 1: "benign"})
    order = np.random.default_rng(0).permutation(len(y))
    fit, hold = order[:398], order[398:]
    return X.iloc[fit], y.iloc[fit], X.iloc[hold], y.iloc[hold]


@pytest.fixture(scope="module")
def model(rows):
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(rows[0], rows[1])


@pytest.fixture(scope="module")
def certificate(model, rows):
    return certify(
        model,
        rows[2],
        rows[3],
        positive="malignant",
        majority="benign",
        slices=cut(rows[0], "mean radius"),
    )


def learner_certificate(**changes):
    facts = Facts(
        subject="Ridge()",
        setting="fitted on 1,000 rows",
        values={"errors": 30, "n": 1000, "risk": 0.03},
    )
    counts = {"errors": "errors", "n": "n"}
    claims = (
        facts.claim(hoeffding, {"risk": "risk", "n": "n"}, delta=0.05),
        facts.claim(clopper_pearson, counts, delta=0.05),
        facts.claim(chernoff_kl, {"risk": "risk", "n": "n"}, delta=0.05),
        expected_gap.certify(0.001, quantity="risk"),
        mcallester.certify(0.0, 0.0, 10**6, 0.05, covers=Covers(predictor="gibbs")),
    )
    lacking = (Lacking(what="risk", theorem="campi_garatti", reason="not separable"),)
    return Certificate(**{"facts": facts, "claims": claims, "lacking": lacking, **changes})


def test_round_trip(certificate):
    text = certificate.to_json()
    again = Certificate.from_json(text)
    assert again == certificate
    assert again.to_json() == text
    assert again.verify()


def test_best_pays_for_every_theorem_considered_and_leaves_the_rest_out():
    best = learner_certificate().best("risk")
    # Hoeffding, Clopper-Pearson, Chernoff-kl, McAllester about another predictor, and one that did
    # not apply
    assert best.theorem == "clopper_pearson"
    assert best.value == pytest.approx(clopper_pearson(30, 1000, 0.05 / 5))
    assert best.confidence == pytest.approx(0.95)


def test_best_among_a_set_fixed_beforehand():
    best = learner_certificate().best("risk", among=["hoeffding", "chernoff_kl"])
    assert best.value == pytest.approx(chernoff_kl(0.03, 1000, 0.05 / 2))
    with pytest.raises(ValueError, match="no theorem is called"):
        learner_certificate().best("risk", among=["wishful"])
    with pytest.raises(ValueError, match="no claim about 'honesty'"):
        learner_certificate().best("honesty")
    with pytest.raises(ValueError, match="vc made"):
        learner_certificate().best("risk", among=["vc"])


def test_best_never_picks_the_luckiest_of_a_family(certificate):
    with pytest.raises(ValueError, match="several slices"):
        certificate.best("slice_risk")
    assert certificate.best("risk").value == certificate["risk"].value


def test_tiny_delta_survives_verification(model, rows):
    assert certify(model, rows[2], rows[3], delta=1e-9).verify()
    assert certify(model, rows[2], rows[3], delta=1e-17).verify()


def test_a_class_called_inf_survives_json(model, rows):
    names = {"malignant": "inf", "benign": "nan"}
    made = certify(
        lambda X: np.array([names[label] for label in model.predict(X)]), rows[2], rows[3].map(names), task="classification",
        classes=["inf", "nan"],
    )  # fmt: skip
    assert Certificate.from_json(made.to_json()) == made


def test_the_identity_of_a_plain_function_cannot_be_verified(model, rows):
    made = certify(
        model.predict, rows[2], rows[3], task="classification", classes=["benign", "malignant"]
    )
    assert "cannot be verified" in str(made.verify(model.predict))


def test_the_baseline_is_named_by_its_hash(model, rows):
    other = make_pipeline(StandardScaler(), LogisticRegression(C=0.01)).fit(rows[0], rows[1])
    made = certify(model, rows[2], rows[3], baseline=other)
    assert made.verify(model, rows[2], rows[3], baseline=other)
    assert "the baseline is not the one" in str(
        made.verify(model, rows[2], rows[3], baseline=model)
    )


def test_best_is_itself_verifiable():
    certificate = learner_certificate()
    assert replace(certificate, claims=(certificate.best("risk"),)).verify()


def test_the_text_of_a_certificate(certificate):
    lines = str(certificate).splitlines()
    assert (
        lines[0]
        == "Certificate of StandardScaler() → LogisticRegression(), checked on 171 rows it had not"
        " seen"
    )
    assert lines[1] == "  Guaranteed together, 95%"
    assert lines[3].split()[0] == "errors"
    assert "worst of 4" in str(certificate)
    assert "  Assumes" in lines
    assert repr(certificate) == str(certificate)


def test_claims_that_do_not_apply_stand_with_their_reason():
    certificate = learner_certificate()
    assert "risk: not separable" in str(certificate)
    with pytest.raises(KeyError, match="no claim about 'nothing'"):
        certificate["nothing"]
    only_absent = replace(certificate, claims=())
    with pytest.raises(KeyError, match="not separable"):
        only_absent["risk"]


def test_html_is_escaped(certificate):
    hostile = replace(
        certificate, facts=replace(certificate.facts, subject="<script>alert(1)</script>")
    )
    assert "<script>" not in hostile._repr_html_()
    assert "&lt;script&gt;" in hostile._repr_html_()


def test_verify_with_model_and_rows(certificate, model, rows):
    fit_X, fit_y, X, y = rows
    assert certificate.verify(model, X, y, slices=cut(fit_X, "mean radius"))
    refitted = make_pipeline(StandardScaler(), LogisticRegression(C=0.5)).fit(fit_X, fit_y)
    assert "not the one that was certified" in str(certificate.verify(refitted))
    assert "rows are not the ones" in str(certificate.verify(X=X.iloc[:-1], y=y.iloc[:-1]))
    assert "rows are not the ones" in str(certificate.verify(X=X, y=y[::-1]))


def walk(plain, path=()):
    """Every number in a certificate, with the path that leads to it."""
    if isinstance(plain, dict):
        for key, value in plain.items():
            yield from walk(value, (*path, key))
    elif isinstance(plain, list):
        for i, value in enumerate(plain):
            yield from walk(value, (*path, i))
    elif isinstance(plain, (int, float)) and not isinstance(plain, bool):
        yield path


def edited(plain, path, value):
    again = json.loads(json.dumps(plain))
    place = again
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return {**again, "hash": content_hash(again)}  # by someone who knows about the hash


def numbers_in(plain, path=()):
    """Paths to all numbers."""
    if isinstance(plain, dict):
        return [found for key, value in plain.items() for found in numbers_in(value, (*path, key))]
    if isinstance(plain, list):
        return [
            found for i, value in enumerate(plain[:9]) for found in numbers_in(value, (*path, i))
        ]
    return [path] if isinstance(plain, (int, float)) else []


def test_any_edited_number_is_found_by_the_hash(certificate):
    plain = certificate.to_dict()
    paths = [path for path in numbers_in(plain) if path != ("version",)]
    assert len(paths) > 50
    for path in paths:
        whole = isinstance(reduce(getitem, path, plain), int)  # 0.123 candidates would be refused
        tampered = {**edited(plain, path, 99 if whole else 0.123), "hash": plain["hash"]}
        assert not Certificate.from_dict(tampered).verify(), path
    assert "changed after it was written" in str(
        Certificate.from_dict({**plain, "more": 1}).verify()
    )


def test_the_hash_is_that_of_the_content(certificate):
    assert (
        certificate.to_dict()["hash"]
        == certificate.hash
        == Certificate.from_json(certificate.to_json()).hash
    )
    assert replace(certificate, delta=0.04).hash != certificate.hash


def test_an_earlier_version_still_loads():
    text = (Path(__file__).parent / "certificate-v1.json").read_text(encoding="utf-8")
    assert json.loads(text)["version"] == 1 < VERSION
    old = Certificate.from_json(text)
    assert old.verify()
    assert Certificate.from_json(old.to_json()) == old


def test_slices_are_in_the_certificate(certificate, model, rows):
    read = Certificate.from_json(certificate.to_json())
    assert read.verify(model, rows[2], rows[3])
    assert not read.verify(model, rows[2], rows[3], slices=cut(rows[0], "mean texture"))


def test_any_edited_number_of_a_claim_is_found(certificate):
    plain = certificate.to_dict()
    paths = [("claims", *path) for path in walk(plain["claims"])]
    assert len(paths) > 40
    for path in paths:
        value = plain
        for key in path:
            value = value[key]
        tampered = edited(plain, path, value + 1 if isinstance(value, int) else value * 0.9)
        assert not Certificate.from_dict(tampered).verify(), path


def test_edited_facts_are_found_from_facts_or_from_the_rows(certificate, model, rows):
    plain = certificate.to_dict()
    columns = {"slices": cut(rows[0], "mean radius")}
    for path in [
        ("facts", "values", key)
        for key in ("risk.count", "rows", "precision.n", "class[benign].count")
    ]:
        tampered = Certificate.from_dict(edited(plain, path, 99))
        assert not tampered.verify(model, rows[2], rows[3], **columns), path
    # an error hidden consistently, in the fact and in the claim, is still found by measuring again
    both = edited(
        edited(plain, ("facts", "values", "risk.count"), 0), ("claims", 0, "inputs", "errors"), 0
    )
    both = edited(both, ("claims", 0, "value"), clopper_pearson(0, 171, 0.025))
    assert Certificate.from_dict(both).verify()
    assert not Certificate.from_dict(both).verify(model, rows[2], rows[3], **columns)


def test_overspending_delta_is_found(certificate):
    assert "spend" in str(replace(certificate, delta=0.04).verify())


@pytest.mark.parametrize("delta", [[], {}, None, "0.05"], ids=repr)
def test_a_delta_of_the_options_that_is_no_number_is_found(delta, certificate):
    facts = replace(certificate.facts, options={**certificate.facts.options, "delta": delta})
    assert "the delta of its options is not a number" in str(
        replace(certificate, facts=facts).verify()
    )


def test_a_hidden_assumption_is_found(certificate):
    bare = replace(certificate.claims[0], assumptions=())
    assert "leaves out an assumption" in str(replace(certificate, claims=(bare,)).verify())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": VERSION + 1}, "upgrade surelearn"),
        ({"version": "new"}, "positive whole number"),
        ({"format": "something else"}, "not a certificate"),
        ({"claims": [{}]}, "incomplete or damaged"),
        ({"facts": None}, "incomplete or damaged"),
    ],
)
def test_what_cannot_be_read_is_refused(certificate, change, message):
    with pytest.raises(ValueError, match=message):
        Certificate.from_dict({**certificate.to_dict(), **change})


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "cos\nsystem\n(S'true'\ntR."])
def test_what_is_not_a_certificate_is_refused(text):
    with pytest.raises(ValueError, match="this is not"):
        Certificate.from_json(text)


def test_facts_are_frozen():
    facts = learner_certificate().facts
    with pytest.raises(TypeError, match="frozen"):
        facts.values["errors"] = 0  # pyright: ignore
    assert facts["errors"] == 30
    assert "errors" in facts


@settings(derandomize=True, deadline=None, max_examples=50)
@given(
    n=st.integers(1, 400),
    share=st.floats(0, 1),
    delta=st.floats(1e-6, 0.5),
    name=st.text(max_size=10),
    candidates=st.integers(1, 50),
)
def test_any_certificate_survives_json_and_verifies(n, share, delta, name, candidates):
    facts = Facts(subject=name, setting="s", values={"errors": math.floor(n * share), "n": n})
    read = {"errors": "errors", "n": "n"}
    claim = facts.claim(
        clopper_pearson, read, delta=delta, candidates=candidates, label=name, standing="together"
    )
    certificate = Certificate(facts=facts, claims=(claim,), delta=delta)
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    assert again.verify()


def test_the_documented_example_is_a_certificate_that_verifies():
    text = (Path(__file__).parent.parent / "docs" / "certificate-example.json").read_text(
        encoding="utf-8"
    )
    example = Certificate.from_json(text)
    assert example.verify()
    assert example.to_json() + "\n" == text


@pytest.mark.parametrize("words", ["uniform stability", "epsilon_rényi", "Risk"])
def test_a_certificate_holds_no_quantity_that_is_not_a_key(words):
    with pytest.raises(ValueError, match="identifier in lower case"):
        learner_certificate(
            lacking=(Lacking(what=words, reason="it has spaces, accents or capitals"),)
        )
    with pytest.raises(ValueError, match="identifier in lower case"):
        learner_certificate(claims=(replace(learner_certificate().claims[0], quantity=words),))


def test_what_is_lacking_is_written_with_its_label():
    lacking = Lacking("cost_over_optimum", "no bound applies", "kmeans_ratio", "cost / optimum")
    certificate = learner_certificate(lacking=(lacking, Lacking("mean_loss", "no range is stated")))
    again = Certificate.from_json(certificate.to_json())
    assert again.lacking == certificate.lacking
    assert "cost / optimum: no bound applies" in str(again)
    assert "mean loss: no range is stated" in str(again)


def test_marks_do_not_depend_on_labels():
    """They read what a claim is about: labels are words, and may be said in other ones."""
    y = np.array([0] * 28 + [1] * 12)
    X, groups = np.zeros((40, 1)), np.arange(40) // 2
    certificate = certify(DummyClassifier().fit(X, y), X, y, groups=groups)
    marks = [certificate.mark(claim) for claim in certificate.claims]
    assert "no better than always answering 0" in marks
    unnamed = replace(certificate, claims=tuple(replace(c, label="?") for c in certificate.claims))
    assert [unnamed.mark(claim) for claim in unnamed.claims] == marks
