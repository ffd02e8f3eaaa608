"""A save that is interrupted, killed or short of disk loses nothing."""

import errno
import io
import os
import re
import subprocess
import threading
import zipfile
from pathlib import Path

import pytest
from tests import loaded
from tests.persistence.saved import (
    X2,
    Learner,
    archive,
    constant,
    data_file,
    edit,
    manifest_of,
    names,
    node,
    plain,
    put,
    refusal,
    sequence,
)

import surelearn
from surelearn import files, load, save
from surelearn.persistence import MANIFEST


def answer(path):
    return float(load(path).predict([[0]])[0])


def check_the_next_save(folder):
    save(constant(9.0), folder)
    assert answer(folder) == 9.0
    assert [MANIFEST, data_file(folder).name] == names(folder)


def interrupt(monkeypatch, call, after, error):
    """Let a call of `files.write` fail, before or after it has written."""
    real, calls = files.write, []

    def write(path, content):
        calls.append(path)
        if after or len(calls) != call:
            real(path, content)
        if len(calls) == call:
            raise error

    monkeypatch.setattr(files, "write", write)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")], ids=repr
)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("call", [1, 2])
def test_a_save_that_is_interrupted(call, after, error, tmp_path, monkeypatch):
    folder, new = save(constant(1.0), tmp_path / "model"), tmp_path / "a" / "new"
    before = names(folder)
    written = (call, after) == (2, True)
    for path in (folder, new):
        interrupt(monkeypatch, call, after, error)
        with pytest.raises(type(error)):
            save(constant(2.0), path)
        monkeypatch.undo()
    assert answer(folder) == (2.0 if written else 1.0)
    assert (names(folder) == before) != written
    assert answer(new) == 2.0 if written else not new.parent.exists()
    check_the_next_save(folder)
    check_the_next_save(new)


def test_a_save_that_cannot_be_read_back(tmp_path, monkeypatch):
    folder = save(constant(1.0), tmp_path / "model")
    real = files.write
    monkeypatch.setattr(files, "write", lambda path, content: real(path, content[:-1]))
    with pytest.raises(ValueError, match="was changed after it was written"):
        save(constant(2.0), folder)
    monkeypatch.undo()
    assert answer(folder) == 1.0
    assert len(names(folder)) == 2


def test_saves_one_after_another(tmp_path):
    for value in (1.0, 2.0, 2.0, 1.0):
        folder = save(constant(value), tmp_path / "model")
        assert answer(folder) == value
        assert len(names(folder)) == 2


@pytest.mark.usefixtures("registered")
def test_a_model_of_the_other_kind_takes_its_place(tmp_path):
    folder = save(constant(1.0), tmp_path / "model")
    assert load(save(Learner(a=1), folder)).a == 1
    assert [Path(name).suffix for name in names(folder)] == [".json", ".safetensors"]


def test_two_saves_at_once(tmp_path, monkeypatch):
    """The second waits: otherwise it would remove the first one's data, which the first one's
    manifest then names.
    """
    folder = save(constant(1.0), tmp_path / "model")
    real, second = files.write, threading.Thread(target=lambda: save(constant(3.0), folder))

    def write(path, content):
        if path.name == MANIFEST and threading.current_thread() is not second:
            second.start()
            second.join(0.5)
        real(path, content)

    monkeypatch.setattr(files, "write", write)
    save(constant(2.0), folder)
    second.join()
    assert answer(folder) == 3.0
    assert len(names(folder)) == 2


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    web = {MANIFEST: '{"name": "a web page", "icons": []}', "index.html": "<p>"}
    for content in ({"notes.txt": "mine"}, web):
        folder = tmp_path / str(len(content))
        folder.mkdir()
        for name, text in content.items():
            (folder / name).write_text(text)
        with pytest.raises(ValueError, match="holds other files: name a folder of its own"):
            save(constant(1.0), folder)
        assert {path.name: path.read_text() for path in folder.iterdir()} == content


def test_what_a_user_put_beside_a_model_stays(tmp_path):
    folder = save(constant(1.0), tmp_path / "model")
    (folder / "notes.txt").write_text("mine")
    save(constant(2.0), folder)
    assert (folder / "notes.txt").read_text() == "mine"
    assert len(names(folder)) == 3


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "model").write_text("mine")
    with pytest.raises(ValueError, match="is a file: name a folder"):
        save(constant(1.0), tmp_path / "model")
    assert (tmp_path / "model").read_text() == "mine"


FAILING = """
import os, resource, signal, sys
from sklearn.dummy import DummyRegressor
from surelearn import save

def constant(value):
    return DummyRegressor(strategy="constant", constant=value).fit([[0]], [0])

def kill_at(name, call):
    real, calls = getattr(os, name), []
    def hooked(*arguments):
        calls.append(arguments)
        if name == "replace" or len(calls) != call:
            real(*arguments)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
    setattr(os, name, hooked)

def fill_the_disk(after):
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, after))

ways = {
    "killed while data are written": lambda: kill_at("fsync", 1),
    "killed between data and manifest": lambda: kill_at("replace", 1),
    "killed while the manifest is written": lambda: kill_at("fsync", 2),
    "killed when all is written": lambda: kill_at("replace", 2),
    "no room for data": lambda: fill_the_disk(1000),
    "no room for the manifest": lambda: fill_the_disk(20_000),
}
for how, break_it in ways.items():
    for first in (False, True):
        folder = f"{sys.argv[1]}/{how}/{'first' if first else 'again'}"
        if not first:
            save(constant(1.0), folder)
        if os.fork() == 0:
            break_it()
            try:
                save(constant(2.0), folder, reference={"long": list(range(10_000))})
            except OSError as error:
                os._exit(error.errno)
            os._exit(0)
        print(how, "first" if first else "again", os.waitstatus_to_exitcode(os.wait()[1]), sep=",")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes and limits files as Unix does")
def test_processes_that_are_killed_and_disks_that_are_full(tmp_path):
    command = [loaded.programs() / "python", "-c", FAILING, str(tmp_path)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()  # noqa: S603 - our own
    assert len(lines) == 12
    for how, which, status in (line.split(",") for line in lines):
        folder = tmp_path / how / which
        assert int(status) == (-9 if "killed" in how else errno.EFBIG)
        if how == "killed when all is written":
            assert answer(folder) == 2.0
        elif which == "again":
            assert answer(folder) == 1.0
        else:
            assert re.search("has no manifest|does not exist", refusal(folder))
        if "no room" in how:  # nothing was left to tidy up
            assert len(names(folder)) == 2 if which == "again" else not folder.exists()
        check_the_next_save(folder)


def test_parts_that_share_parts_do_not_multiply(folder):
    """Forty lists, each of the one before and the one before: 2^40 to whoever walks through
    them.
    """
    part = {**sequence(plain(0), kind="list"), "__id__": 1}
    for number in range(2, 40):
        again = node("CachedNode", "builtins.list", __id__=number - 1)
        part = {**sequence(part, again, kind="list"), "__id__": number}
    assert "share each other" in refusal(put(folder, archive(part)("")))


def test_an_archive_that_is_a_bomb(folder, monkeypatch):
    monkeypatch.setattr("surelearn.unpacking.SMALL", 2**20)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("schema.json", b" " * 2**24)
    assert "unpacks to" in refusal(put(folder, buffer.getvalue()))


def test_a_learner_that_is_a_bomb(tmp_path):
    folder = save(surelearn.linear.Ridge().fit(X2, X2[:, 0]), tmp_path / "model")
    parameters = manifest_of(folder)["parameters"]
    for value in (
        {"scalar": 10**8, "type": "|V8"},  # so many bytes
        {"words": ["a"], "shape": [1], "type": "<U1000000000"},
        {"words": ["a"] * 9, "shape": [10**12], "type": "<U1"},
    ):
        assert "is damaged" in refusal(
            edit(folder, parameters={**parameters, "regularization": value})
        )
    edit(folder, parameters=parameters)
    content = data_file(folder).read_bytes()
    assert "header is said to have" in refusal(
        put(folder, (2**40).to_bytes(8, "little") + content[8:], "safetensors")
    )
