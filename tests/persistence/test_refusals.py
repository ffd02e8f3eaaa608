"""Damaged, foreign and odd files are refused, each in one sentence."""

import json
import os
import re
import sys
import threading

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.persistence.saved import (
    HOSTILE,
    INVENTED,
    X2,
    Y2,
    Learner,
    Own,
    archive,
    constant,
    data_file,
    edit,
    manifest_of,
    plain,
    put,
    refusal,
    sequence,
    table,
)

from surelearn import certify, load, save
from surelearn.fingerprint import fingerprint_model
from surelearn.persistence import MANIFEST
from surelearn.plain import content_hash


def test_the_original_is_accepted(original):
    """Otherwise every refusal below could have another reason."""
    assert load(original).predict(X2).shape == (60,)


def test_a_changed_byte_of_the_data(folder):
    file = data_file(folder)
    content = file.read_bytes()
    for i in range(0, len(content), 101):
        file.write_bytes(content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :])
        assert "was changed after it was written: its hash is not the manifest's" in refusal(folder)
    file.write_bytes(content[:-1])
    assert "was changed after it was written" in refusal(folder)
    file.write_bytes(content)
    load(folder)


def leaves(value, path=()):
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    found = [leaf for key, part in parts for leaf in leaves(part, (*path, key))]
    return found or [path]


def with_leaf(manifest, path, change):
    manifest = json.loads(json.dumps(manifest))
    inside = manifest
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = change(inside[path[-1]])
    return manifest


def slightly(value):
    return (
        not value
        if isinstance(value, bool)
        else value + 1
        if isinstance(value, (int, float))
        else f"{value}."
    )


def test_a_change_anywhere_in_the_manifest(folder):
    manifest = manifest_of(folder)
    paths = leaves(manifest)
    assert len(paths) > 50
    for path in paths:
        (folder / MANIFEST).write_text(json.dumps(with_leaf(manifest, path, slightly)))
        says = {"format": "its format is not", "version": "upgrade surelearn"}.get(
            path[0], "was changed after it was written"
        )
        assert says in refusal(folder), path
    (folder / MANIFEST).write_text(json.dumps({**manifest, "more": 1}))
    assert "was changed after it was written" in refusal(folder)


ODD = [
    None,
    True,
    -1,
    10**30,
    0.5,
    "",
    "x",
    "../x",
    [],
    {},
    [[]],
    {"a": 1},
    {"number": "inf"},
    {"array": "x"},
]


def test_odd_values_in_a_manifest_whose_hash_fits(folder):
    """Refused or of no consequence, never another exception."""
    manifest, pick = manifest_of(folder), np.random.default_rng(0)
    everywhere = leaves(manifest)
    shallow = [path[:depth] for path in everywhere for depth in (1, 2, 3) if len(path) > depth]
    predicted, refused = load(folder).predict(X2), 0
    for path in [
        *pick.permutation(np.array(everywhere, dtype=object))[:60],
        *dict.fromkeys(shallow),
    ]:
        odd = ODD[pick.integers(len(ODD))]
        edit(folder, **with_leaf(manifest, path, lambda _, odd=odd: odd))
        try:
            np.testing.assert_array_equal(load(folder).predict(X2), predicted)
        except ValueError:
            refusal(folder)
            refused += 1
    assert refused > 10


@pytest.mark.parametrize(
    "key",
    [
        "class",
        "parameters",
        "fingerprint",
        "versions",
        "files",
        "columns",
        "reference",
        "certificate",
    ],
)
def test_a_manifest_without_a_key(folder, key):
    manifest = manifest_of(folder)
    del manifest[key]
    (folder / MANIFEST).write_text(json.dumps({**manifest, "hash": content_hash(manifest)}))
    assert f"is incomplete: it has no {key!r}" in refusal(folder)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": "surelearn-certificate"}, "its format is not 'surelearn-model'"),
        ({"format": None}, "its format is not 'surelearn-model'"),
        ({"version": 3}, "has version 3, this surelearn reads up to 2: upgrade surelearn"),
        ({"version": "1"}, "the version must be a positive whole number, not '1'"),
        ({"version": 1.0}, "the version must be a positive whole number, not 1.0"),
        ({"version": True}, "the version must be a positive whole number, not True"),
        ({"version": 0}, "the version must be a positive whole number, not 0"),
        ({"version": None}, "the version must be a positive whole number, not None"),
        ({"class": "sklearn.svm._classes.SVC"}, "its manifest says 'sklearn.svm._classes.SVC'"),
        ({"class": 3}, "class must be a name"),
        ({"versions": ["numpy"]}, "versions must be named"),
        ({"fingerprint": "unhashed"}, "the model is not the one that was saved"),
        ({"files": {}}, "must name one file"),
        ({"files": {"a": {}, "b": {}}}, "must name one file"),
        ({"files": ["model-0123456789abcdef.skops"]}, "must name one file"),
        ({"files": {"../x": {}}}, "names '../x', which is not a file of this folder"),
        ({"files": {"/etc/passwd": {}}}, "names '/etc/passwd', which is not a file of this folder"),
        ({"files": {"model-0123456789abcdef.pkl": {}}}, "which is not a file of this folder"),
        (
            {"files": {"model-0123456789abcdef.skops/../../x": {}}},
            "which is not a file of this folder",
        ),
        ({"files": {"model-0123456789abcdef.skops\n": {}}}, "which is not a file of this folder"),
        ({"files": {"model-0123456789abcdef.skops": {}}}, "is missing, or is not a plain file"),
        ({"columns": {"features": 3}}, "the list of the model's columns is incomplete or damaged"),
        ({"certificate": {"format": "other"}}, "model: "),
        ({"certificate": []}, "model: "),
    ],
)
def test_a_manifest_that_is_not_ours(folder, changes, says):
    assert says in refusal(edit(folder, **changes))


@pytest.mark.parametrize("text", ["", "[]", "3", '"manifest"', "{", "\ud83d", "[" * 100_000, "NaN"])
def test_a_manifest_that_is_no_manifest(folder, text):
    (folder / MANIFEST).write_text(text, errors="surrogatepass")
    assert re.search("not JSON|its format is not", refusal(folder))


def test_a_number_that_json_has_not(folder):
    text = json.dumps({**manifest_of(folder), "reference": float("nan")})
    (folder / MANIFEST).write_text(text)
    assert "NaN, which JSON has not" in refusal(folder)


def edit_deeply(folder, **changes):
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        edit(folder, **changes)
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.usefixtures("registered")
def test_values_nested_too_deeply(folder):
    """At some depth they can still be read, but not decoded."""
    save(Learner(a=1), folder)
    value = 2
    for depth in range(1000):
        value = {"scalar": value, "type": "O"}
        if depth > 850:
            edit_deeply(folder, parameters={"a": value})
            refusal(folder)


def test_a_manifest_that_can_be_read_but_is_nested_too_deeply_to_be_hashed(folder):
    save(constant(1.0), folder)
    said, value = set(), []
    for depth in range(1000):
        value = [value]
        if depth > 850:
            edit_deeply(folder, reference=value)
            try:
                load(folder)
            except ValueError as error:  # at a single depth, so that it counts how deep the call is
                said.add(str(error).split(f"{MANIFEST} ")[1].split()[0])
    assert said <= {"is", "was"}  # no JSON, not its hash


def test_a_file_outside_is_not_read(folder, tmp_path):
    outside = tmp_path / "outside"
    data_file(folder).rename(outside)
    (folder / next(iter(manifest_of(folder)["files"]))).symlink_to(outside)
    assert "is missing, or is not a plain file" in refusal(folder)


def test_a_missing_file(folder):
    data_file(folder).unlink()
    assert "is missing, or is not a plain file" in refusal(folder)


def test_a_folder_in_its_place(folder):
    file = data_file(folder)
    file.unlink()
    file.mkdir()
    assert "is missing, or is not a plain file" in refusal(folder)


def test_what_is_no_folder_of_ours(tmp_path):
    assert "does not exist" in refusal(tmp_path / "nowhere")
    assert "has no manifest.json that can be read" in refusal(tmp_path)
    (tmp_path / "model.txt").write_text("hello")
    assert "something else that is never opened" in refusal(tmp_path / "model.txt")
    (tmp_path / MANIFEST).mkdir()
    assert "manifest.json is a folder: name a regular file" in refusal(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / MANIFEST)
    said = []
    thread = threading.Thread(target=lambda: said.append(refusal(tmp_path)), daemon=True)
    thread.start()
    thread.join(10)
    assert "manifest.json is a pipe: name a regular file" in said[0]


def test_an_archive_that_ends_too_early(folder):
    """The error of zipfile says nothing at all."""
    content = bytearray(archive(plain(1.0))(""))
    sizes = content.index(b"PK\x01\x02") + 20
    content[sizes : sizes + 8] = (10**6).to_bytes(4, "little") * 2
    assert "EOFError" in refusal(put(folder, bytes(content)))


@pytest.mark.parametrize(
    "schema",
    ["[" * 100_000, "{}", "[]", "3", '{"protocol": 2}', '{"protocol": 99}', '{"protocol": true}'],
)
def test_a_schema_that_is_none(folder, schema):
    assert "never opened as a model" in refusal(
        put(folder, HOSTILE["zipped"](("schema.json", schema)))
    )


@pytest.mark.parametrize(
    ("name", "parts", "says"),
    [
        ("sklearn.pipeline.Pipeline", {"steps": sequence(kind="list")}, "holds no model"),
        (
            "sklearn.svm._classes.SVC",
            {"__getstate__": plain(1)},
            "holds no model, or one with parts",
        ),
        (
            "sklearn.svm._classes.SVC",
            {"get_tree_stats": plain(1)},
            "holds no model, or one with parts",
        ),
        ("sklearn.svm._classes.SVC", {"C": plain(1)}, "not the one that was saved"),
        ("sklearn.preprocessing._data.MinMaxScaler", {}, "not the one that was saved"),
    ],
)
def test_a_model_without_its_parts(folder, name, parts, says):
    content = HOSTILE["zipped"](("schema.json", HOSTILE["schema_of"](name, **parts)))
    assert says in refusal(put(folder, content, fingerprint="unhashed", **{"class": name}))


def test_a_certificate_about_another_model(folder, tmp_path):
    other = LogisticRegression(C=0.01).fit(X2, Y2)
    certificate = certify(other, X2, Y2)
    with pytest.raises(
        ValueError, match="the certificate is about another model, or the model was changed since"
    ):
        save(LogisticRegression().fit(X2, Y2), tmp_path / "new", certificate=certificate)
    assert not (tmp_path / "new").exists()
    assert "its certificate is about another model" in refusal(
        edit(folder, certificate=certificate.to_dict())
    )


@pytest.mark.parametrize("hashes", [[1, 2], 3, "model", {"model": {"a": 1}}, {"model": None}])
def test_a_certificate_with_odd_hashes(folder, hashes):
    certificate = manifest_of(folder)["certificate"]
    certificate["facts"]["hashes"] = hashes
    edit(folder, certificate=certificate)
    assert "model: " in refusal(folder)


def test_a_model_with_a_function(tmp_path):
    for function in (lambda X: X, table):
        model = make_pipeline(FunctionTransformer(function), LogisticRegression())
        with pytest.raises(ValueError, match="it cannot be saved without pickle"):
            save(model, tmp_path / "model")
    with pytest.raises(ValueError, match=r"the model holds \w+\.system, which is not on the list"):
        save(
            make_pipeline(FunctionTransformer(os.system), LogisticRegression()), tmp_path / "model"
        )
    assert not (tmp_path / "model").exists()


def test_a_model_that_cannot_be_read(tmp_path):
    class Secret(LogisticRegression):
        def __getstate__(self):
            raise NotImplementedError

    for model in (Secret(), {"a": 1}, table):
        with pytest.raises(ValueError, match="it cannot be saved without pickle"):
            save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_class_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, INVENTED.__name__, INVENTED)
    name = f"{INVENTED.__name__}.Own"
    model = make_pipeline(Own()).fit(X2, Y2)
    with pytest.raises(
        ValueError, match=f"the model holds {name}, which is not on the list.*pass trusted="
    ):
        save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    save(model, tmp_path / "model", trusted=[name])
    assert f"holds {name}, which is not on the list" in refusal(tmp_path / "model")
    assert f"holds {name}, which is not on the list" in refusal(
        tmp_path / "model", trusted=[f"{name}s"]
    )
    np.testing.assert_array_equal(
        load(tmp_path / "model", trusted=[name]).predict(X2), model.predict(X2)
    )


def test_a_class_of_ones_own_that_fails_without_a_word(tmp_path, monkeypatch):
    def fail(self, state):
        raise ValueError

    monkeypatch.setitem(sys.modules, INVENTED.__name__, INVENTED)
    trusted = [f"{INVENTED.__name__}.Own"]
    folder = save(Own().fit(X2, Y2), tmp_path / "model", trusted=trusted)
    monkeypatch.setattr(Own, "__setstate__", fail)
    assert "cannot be loaded" in refusal(folder, trusted=trusted)


def test_another_version_warns_where_the_same_refuses(folder):
    changed = LogisticRegression().fit(X2, Y2)
    changed.coef_ = changed.coef_ + 1e-12
    edit(folder, fingerprint=fingerprint_model(changed), certificate=None)
    assert "the model is not the one that was saved" in refusal(folder)
    edit(folder, versions={**manifest_of(folder)["versions"], "scikit-learn": "0.1"})
    with pytest.warns(
        UserWarning,
        match=r"was saved with scikit-learn 0\.1 \(here .*may not be the model that was",
    ) as caught:
        model = load(folder)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(model.predict(X2), LogisticRegression().fit(X2, Y2).predict(X2))


def test_another_version_that_reads_the_same_is_silent(folder):
    load(edit(folder, versions={"scikit-learn": "0.1"}))
