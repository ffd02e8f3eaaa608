"""JSON from others ends in one sentence or in an object whose every field can be used, whatever
stands in it.
"""

import json
import os
import threading
from functools import cache

import numpy as np
import pytest

from surelearn import Certificate, certify, documents
from surelearn.claim import Claim, Finding
from surelearn.data.schema import Feature, Schema
from surelearn.documents import parse_json, read_json, reading
from surelearn.monitoring import Watch
from surelearn.monitoring.reference import Reference
from surelearn.plain import content_hash
from surelearn.report import Audit
from surelearn.report.document import Chart, PageTable, Section, Verdict


def sentence(function, *arguments):
    """The one sentence of a refusal, or "" where there is none; any other exception is a
    failure.
    """
    try:
        function(*arguments)
    except ValueError as error:
        said = str(error)
        assert "\n" not in said
        assert 0 < len(said) < 300
        return said
    return ""


BEYOND = {
    "not JSON": ("{", "not JSON: Expecting"),
    "not UTF-8": (b'"\xff"', "not UTF-8 text"),
    "deep lists": ("[" * 200 + "]" * 200, "nested more than 100 deep"),
    "very deep lists": ("[" * 100_000 + "]" * 100_000, "nested more than 100 deep"),
    "deep objects": ('{"a":' * 200 + "1" + "}" * 200, "nested more than 100 deep"),
    "a number of 401 digits": (str(10**400), "more than 300 digits"),
    "a number of a million digits": ("1" * 10**6, "more than 300 digits"),
    "too large a number": ("[1e999]", "1e999, which is too large"),
    "NaN": ("[NaN]", "NaN, which JSON has not"),
    "infinity": ("[-Infinity]", "-Infinity, which JSON has not"),
    "many names, one twice": (
        json.dumps({str(i): 0 for i in range(10**5)})[:-1] + ', "7": 1}',
        "names '7' twice",
    ),
    "a name twice": ('{"delta": 1, "delta": 2}', "names 'delta' twice"),
    "many lists": ("[" + "[]," * documents.MOST_CONTAINERS + "[]]", "lists and objects"),
}


@pytest.mark.parametrize("case", BEYOND)
def test_json_beyond_the_limits_is_refused_in_one_sentence(case, tmp_path):
    text, words = BEYOND[case]
    assert words in sentence(parse_json, text)
    path = tmp_path / "a.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    said = sentence(read_json, path)
    assert words in said
    assert str(path) in said


def test_values_and_bytes_are_counted(monkeypatch, tmp_path):
    monkeypatch.setattr(documents, "MOST_VALUES", 10)
    assert "more than 10 values" in sentence(parse_json, json.dumps(list(range(12))))
    monkeypatch.setattr(documents, "MOST_BYTES", 2**10)
    (tmp_path / "a.json").write_text(" " * 2**11)
    assert "larger than" in sentence(read_json, tmp_path / "a.json")
    assert "larger than" in sentence(parse_json, " " * 2**11)


def test_what_json_can_hold_is_read():
    plain = {"a": [1, 2.5, None, True, "é\ud800"], "b": {"c": [[]] * 50}, "n": 10**299}
    assert parse_json(json.dumps(plain)) == plain


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    found = []
    reader = threading.Thread(
        target=lambda: found.append(sentence(read_json, tmp_path / "pipe")), daemon=True
    )
    reader.start()
    reader.join(5)
    assert "is a pipe: name a regular file" in found[0]
    assert "is a device" in sentence(read_json, "/dev/zero")


# --------------------------------------------------------------------------------------------------

STRANGE = (
    None,
    True,
    -1,
    10**300,
    0.5,
    "",
    "x" * 500,
    [],
    [[1]],
    {},
    {"a": {}},
    {"number": "nan"},
    {"number": "inf"},
    "\u202e",
)


@cache
def certificate():
    X = np.where(np.arange(200) % 25 == 0, -1.0, 1.0)[:, None]
    return certify(lambda X: np.where(X[:, 0] > 0, "healthy", "ill"), X, ["healthy"] * 200, task="classification",
                   classes=["healthy", "ill"])  # fmt: skip


def audit():
    section = Section(
        key="attack",
        title="Attack",
        notes=("a note",),
        claims=(certificate().claims[0],) if not certificate().claims[0].sources else (),
        findings=(Finding(code="SL101", text="Something.", numbers={"rate": 0.5, "names": ["a"]}),),
        charts=(
            Chart(
                kind="bars",
                title="t",
                data={"names": ["a"], "measured": [0.1], "bounds": [None], "unit": "rate"},
            ),
        ),
        tables=(PageTable(header=("a", "b"), rows=(("1", "2"),)),),
    )
    return Audit(
        title="t.csv",
        target="y",
        rows=200,
        columns=1,
        verdict=Verdict(kind="guaranteed", sentence="At most **7%** errors."),
        chips=("a chip",),
        certificate=certificate(),
        sections=(section,),
        numbers={"options": {"delta": 0.05}},
    )


def schema():
    features = (Feature("x", "number"), Feature("c", "category", "", ("a", "b")))
    return Schema(features, "y", "classification", "words", None, ("x", "c", "y"), header=True)


def reference():
    import pandas as pd

    frame = pd.DataFrame({"x": np.arange(40.0), "c": ["a", "b"] * 20})
    return Reference.from_rows(frame, frame, {"x": "number", "c": "category"})


def use_certificate(plain):
    made = Certificate.from_dict(plain)
    made.verify()
    repr(made)
    made.to_json()
    made._repr_html_()
    return made


def use_audit(plain):
    made = Audit.from_dict(plain)
    made.to_json()
    with reading("audit.json"):  # as `surelearn verify` does
        made.to_markdown()
        made.to_html()
    repr(made)


def use_watch(plain):
    made = Watch.from_dict(plain, certificate())
    str(made.update(["healthy"], ["healthy"]))


def use_schema(plain):
    made = Schema.from_dict(plain)
    made.check("t.csv", ("x", "c"))


READERS = {
    "certificate": (certificate, use_certificate),
    "audit": (audit, use_audit),
    "watch": (
        lambda: Watch(certificate()).update(["healthy", "ill"] * 9, ["healthy"] * 18),
        use_watch,
    ),
    "schema": (schema, use_schema),
    "reference": (reference, Reference.from_dict),
    "claim": (lambda: certificate().claims[0], Claim.from_dict),
}


def paths(plain, path=()):
    yield path
    items = (
        plain.items()
        if isinstance(plain, dict)
        else enumerate(plain[:2])
        if isinstance(plain, list)
        else ()
    )
    for key, item in items:
        # has its own case
        yield from paths(item, (*path, key)) if (*path, key) != ("certificate", "claims") else ()


def changed(plain, path, value):
    """A copy with another value there; without the entry, if the value is "gone"."""
    copy = json.loads(json.dumps(plain))
    if not path:
        return value
    part = copy
    for key in path[:-1]:
        part = part[key]
    if value == "gone":
        del part[path[-1]]
    else:
        part[path[-1]] = value
    if "hash" in copy and isinstance(copy.get("version"), int):
        copy["hash"] = content_hash(copy)  # the forger knows how it is made
    return copy


@pytest.mark.parametrize("kind", READERS)
def test_a_strange_value_in_any_field_ends_in_one_sentence_or_does_no_harm(kind):
    make, use = READERS[kind]
    plain = make().to_dict()
    plain = json.loads(json.dumps(plain))
    assert sentence(use, plain) == ""
    tried = refused = 0
    for i, path in enumerate(paths(plain)):
        # all of them take minutes
        for value in (STRANGE[i % len(STRANGE)], STRANGE[(i + 5) % len(STRANGE)], "gone"):
            try:
                refused += bool(sentence(use, changed(plain, path, value)))
            except Exception as error:
                raise AssertionError(
                    f"{path} = {value!r:.50}: {type(error).__name__}: {error}"
                ) from error
            tried += 1
    assert refused > tried / 4
