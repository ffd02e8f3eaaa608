"""Hostile files run nothing."""

import io
import json
import os
import pickle
import re
import sys
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from tests.persistence.saved import (
    CASES,
    EVIL,
    HOSTILE,
    X2,
    Y2,
    archive,
    data_file,
    edit,
    evil_module,
    node,
    pickled,
    plain,
    put,
    refusal,
    sequence,
    table,
)

from surelearn import load, persistence, save
from surelearn.keys import EARLIER, find_class, path_of
from surelearn.persistence import MANIFEST
from surelearn.selection.preparation import HashedWords


def place(case, content, folder):
    """Put a hostile content where it belongs, with hashes that fit; the path to load."""
    if case.place == "path":
        path = folder.parent / case.name
        path.write_bytes(content)
        return path
    if case.place == "manifest":
        (folder / MANIFEST).write_bytes(content)
    elif case.place == "skops":
        put(folder, content)
    else:
        save(HashedWords().fit(table(1)[["note"]]), folder)
        put(folder, content, "safetensors") if case.place == "safetensors" else edit(
            folder, **content
        )
    return folder


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", CASES)
def test_a_hostile_file_runs_nothing(name, folder, tmp_path, monkeypatch):
    case, marker = CASES[name], tmp_path / "marker"
    (tmp_path / f"{EVIL}.py").write_text(evil_module(str(marker)))
    monkeypatch.syspath_prepend(tmp_path)
    content = case.make(str(marker))
    assert not os.path.lexists(marker)
    if case.fall_for is not None:
        with suppress(Exception):
            case.fall_for(content)
        assert os.path.lexists(marker), "the payload is not real"
        marker.rmdir() if marker.is_dir() and not marker.is_symlink() else marker.unlink()
        sys.modules.pop(EVIL, None)
    # loads the packages where learners live, which no file can name or add to
    find_class("nobody/1")
    path, imported = place(case, content, folder), set(sys.modules)
    assert re.search(case.says, refusal(path))
    assert not os.path.lexists(marker)
    assert [name for name in set(sys.modules) - imported if not name.startswith("encodings.")] == []


def test_there_are_many():
    assert len(CASES) >= 100
    assert sum(case.fall_for is not None for case in CASES.values()) >= 80


def with_entries(content, *entries):
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as into:
        for name, added in entries:
            into.writestr(name, added)
    return buffer.getvalue()


def test_what_else_an_archive_holds_is_never_unpacked(folder, tmp_path):
    outside = [
        ("../../evil", b"x"),
        (f"{tmp_path}/evil", b"x"),
        ("data.pkl", pickled(4)(str(tmp_path / "evil"))),
    ]
    put(folder, with_entries(data_file(folder).read_bytes(), *outside))
    np.testing.assert_array_equal(
        load(folder).predict(X2), LogisticRegression().fit(X2, Y2).predict(X2)
    )
    assert not list(tmp_path.rglob("evil"))


def test_a_file_that_is_a_pickle_and_an_archive_is_read_as_an_archive(folder, tmp_path):
    both = pickled(4)(str(tmp_path / "marker")) + data_file(folder).read_bytes()
    pickle.loads(both)  # noqa: S301 - shows that it is a pickle
    (tmp_path / "marker").unlink()
    load(put(folder, both))
    assert not (tmp_path / "marker").exists()


def tree_of(schema):
    """The k-d tree's node in the schema of nearest neighbours."""
    return schema["content"]["content"]["_tree"]


def shorten(schema):
    tree_of(schema)["content"]["content"].pop()


def shorten_by_number(schema):
    short = sequence(plain(0))
    tree_of(schema)["content"]["__id__"] = short["__id__"] = 7
    content = schema["content"]["content"]
    schema["content"]["content"] = {
        "leaf_size": short,
        **{key: content[key] for key in content if key != "leaf_size"},
    }


def shorten_the_metric(schema):
    tree_of(schema)["content"]["content"][11]["content"]["content"].pop()


@pytest.mark.parametrize("change", [shorten, shorten_by_number, shorten_the_metric])
def test_compiled_code_is_given_the_whole_state(change, folder):
    """It would read past the end of a shorter one, and crash."""
    model = KNeighborsClassifier(algorithm="kd_tree").fit(X2, Y2)
    save(model, folder)
    with zipfile.ZipFile(data_file(folder)) as source:
        entries = {name: source.read(name) for name in source.namelist()}
    schema = json.loads(entries["schema.json"])
    change(schema)
    made = HOSTILE["zipped"](*{**entries, "schema.json": json.dumps(schema)}.items())
    assert "in another way than it was written" in refusal(put(folder, made))


@pytest.mark.parametrize(
    "name",
    [*persistence.TRUSTED, *EARLIER, *(f"surelearn.{key}" for key in sorted({*EARLIER.values()}))],
)
def test_a_trusted_type_is_made_in_one_way_only(name, folder):
    key = EARLIER.get(name, name.removeprefix("surelearn."))
    read = name if name in persistence.TRUSTED else path_of(find_class(key))
    made_by_call = archive(
        node("LossNode", name, __reduce__={"args": sequence()}, content=sequence(plain(3)))
    )
    assert f"{read} in another way" in refusal(put(folder, made_by_call("")))
    as_a_type = archive(node("TypeNode", name))
    assert f"{read} in another way" in refusal(put(folder, as_a_type("")))
