"""Files name classes of surelearn by stable keys: moving a class breaks no model, and no file
says what is imported.
"""

import json
import re
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surelearn import load, save
from surelearn.base import Learner, learners
from surelearn.fingerprint import fingerprint_model
from surelearn.kernel.functions import Gaussian
from surelearn.keys import EARLIER, HOMES, find_class, key_of, known_classes, path_of
from surelearn.linear import Perceptron, Ridge
from surelearn.persistence import MANIFEST, read_model

FIXTURES = Path(__file__).parent / "fixtures"
X = np.random.default_rng(0).normal(size=(40, 3))
Y = X @ [1.0, -1.0, 0.5]


def leaves(kind):
    below = [made for made in kind.__subclasses__() if made.__module__.startswith("surelearn.")]
    return [leaf for made in below for leaf in leaves(made)] or [kind]


def test_every_learner_has_a_key_of_its_own():
    assert find_class("nobody/1") is None  # it has looked everywhere now
    found = {made for made in (*learners(), *leaves(Learner)) if not made.__name__.startswith("_")}
    assert len(found) >= 21
    assert sorted(path_of(made) for made in found if key_of(made) is None) == []


def test_every_key_is_of_one_class():
    assert find_class("nobody/1") is None  # it has looked everywhere now
    homes = tuple(f"surelearn.{home}" for home in HOMES)
    modules = [module for name, module in sys.modules.items() if name.startswith(homes)]
    made = {
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and key_of(kind)
    }
    assert len({key_of(kind) for kind in made}) == len(made) == len(known_classes())
    assert all(re.fullmatch(r"[a-z0-9-]+/[1-9]", key) for key in known_classes())


@pytest.mark.parametrize("path", EARLIER)
def test_every_path_that_files_named_has_a_class(path):
    assert find_class(EARLIER[path]).__name__ == path.rpartition(".")[2]


def test_a_key_is_found_where_nothing_is_loaded():
    code = (
        "import surelearn.keys as k; print(k.find_class('relu-features/1'), k.find_class('os/1'),"
        " k.find_class('os.path'))"
    )
    told = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert told.split(maxsplit=2)[1].startswith("'surelearn.kernel")
    assert told.endswith("None None\n")


def text_of(folder):
    """Everything that a model's folder says in words."""
    words = (folder / MANIFEST).read_text(encoding="utf-8")
    for archive in folder.glob("*.skops"):
        words += zipfile.ZipFile(archive).read("schema.json").decode()
    return words


def models():
    labels = (Y > 0).astype(int)
    return {
        "alone": Ridge().fit(X, Y),
        "in a pipeline": make_pipeline(StandardScaler(), Ridge()).fit(X, Y),
        "kernel": Perceptron(kernel=Gaussian(bandwidth=1.0), random_state=0).fit(X, labels),
        "kernel in a pipeline": (
            make_pipeline(
                StandardScaler(), Perceptron(kernel=Gaussian(bandwidth=1.0), random_state=0)
            ).fit(X, labels)
        ),
    }


def move(monkeypatch, *classes):
    """As if the classes had been written in another file."""
    elsewhere = types.ModuleType("surelearn.elsewhere")
    monkeypatch.setitem(sys.modules, elsewhere.__name__, elsewhere)
    for moved in classes:
        monkeypatch.delattr(path_of(moved))
        monkeypatch.setattr(elsewhere, moved.__name__, moved, raising=False)
        monkeypatch.setattr(moved, "__module__", elsewhere.__name__)


def test_no_file_names_a_module_of_surelearn(tmp_path):
    for name, model in models().items():
        found = set(
            re.findall(r"surelearn\.[a-z_]+\.[\w.]+", text_of(save(model, tmp_path / name)))
        )
        assert found == set(), name


def test_models_load_when_their_classes_have_moved(tmp_path, monkeypatch):
    before = models()
    for name, model in before.items():
        save(model, tmp_path / name)
    hashes = {name: fingerprint_model(model) for name, model in before.items()}
    move(monkeypatch, Ridge, Perceptron, Gaussian)
    for name, model in before.items():
        saved = read_model(tmp_path / name)
        assert fingerprint_model(saved.model) == hashes[name]
        np.testing.assert_array_equal(saved.model.predict(X), model.predict(X))
        if saved.certificate is not None:
            assert saved.certificate.verify(saved.model)
        again = load(save(saved.model, tmp_path / f"{name}, again"))
        assert fingerprint_model(again) == hashes[name]


@pytest.mark.parametrize("version", ["before-0.1", "version-0.2"])
def test_models_of_earlier_versions_load_when_their_classes_have_moved(
    version, tmp_path, monkeypatch
):
    with zipfile.ZipFile(FIXTURES / version / "files.zip") as archive:
        kept = [
            name
            for name in archive.namelist()
            if name.split("/")[1:2] in (["ridge"], ["pipeline-ridge"])
        ]
        archive.extractall(tmp_path, kept)
    move(monkeypatch, Ridge)
    for name in ("ridge", "pipeline-ridge"):
        saved = read_model(tmp_path / "models" / name)
        assert json.loads((tmp_path / "models" / name / MANIFEST).read_text())["version"] == 1
        assert saved.certificate is None or saved.certificate.verify(saved.model)


class Steeper(Ridge):
    """A user's class, derived from one with a key."""

    def predict(self, X):
        return 2 * super().predict(X)


class Impostor(Ridge):
    saved_as = "ridge/1"


@pytest.mark.parametrize("kind", [Steeper, Impostor])
@pytest.mark.parametrize("prepared", [False, True])
def test_a_class_of_a_user_is_not_taken_for_the_one_it_is_derived_from(kind, prepared, tmp_path):
    assert key_of(kind) is None
    model = make_pipeline(StandardScaler(), kind()) if prepared else kind()
    with pytest.raises(ValueError, match="not on the list of types"):
        save(model.fit(X, Y), tmp_path / "model")
    assert fingerprint_model(kind().fit(X, Y)) != fingerprint_model(Ridge().fit(X, Y))
    assert find_class("ridge/1") is Ridge
