"""Models survive saving exactly, no file makes loading run code, and no failure loses the model that was there."""

import errno
import hashlib
import importlib.util
import io
import json
import os
import pickle
import re
import runpy
import shutil
import subprocess
import sys
import threading
import types
import zipfile
from collections import namedtuple
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from threadpoolctl import threadpool_limits

import surelearn
from surelearn import Certificate, Facts, certify, files, load, persistence, save
from surelearn.bounds import hoeffding
from surelearn.data.schema import Feature, Schema
from surelearn.fingerprint import fingerprint_model
from surelearn.kernel.eigenpro import EigenProClassifier
from surelearn.kernel.functions import Gaussian, Laplace, Linear, Matern, Polynomial
from surelearn.persistence import MANIFEST, read_model
from surelearn.plain import content_hash
from surelearn.selection.candidates import DIRECT_KERNEL_ROWS, default_candidates
from surelearn.selection.cross_validation import fit_quietly
from surelearn.selection.preparation import DateParts, HashedWords

HOSTILE = runpy.run_path(str(Path(__file__).with_name("hostile.py")))
CASES, EVIL, evil_module, node, plain, sequence, archive, pickled = (
    HOSTILE[name] for name in ("CASES", "EVIL", "evil_module", "node", "plain", "sequence", "archive", "pickled")
)
X2 = np.random.default_rng(0).normal(size=(60, 2))
Y2 = (X2[:, 0] > 0).astype(int)


# ----------------------------------------------------------------------------------------------------------- round trips

KINDS = {"age": "number", "income": "number", "colour": "category", "note": "text", "seen": "date"}


def table(seed, n=120):
    rng = np.random.default_rng(seed)

    def gaps(values, missing):
        return np.where(rng.random(n) < 0.1, missing, values)

    return pd.DataFrame(
        {
            "age": gaps(rng.normal(40, 15, n), np.nan),
            "income": rng.lognormal(size=n),
            "colour": gaps(rng.choice(["red", "green", "blue"], n).astype(object), None),
            "note": gaps(rng.choice(["a good day", "bad luck", "so so"], n).astype(object), None),
            "seen": gaps(np.datetime64("2020-01-01", "us") + rng.integers(0, 10**15, n), np.datetime64("NaT")),
        }
    )


def target(X, classes):
    value = X["age"].fillna(40) + 20 * (X["colour"] == "red") - X["income"]
    return value if classes == 0 else np.array(["no", "yes", "maybe"])[pd.qcut(value, classes, labels=False)]


CANDIDATES = {
    f"{candidate.name}, {classes or 'no'} classes": (candidate.model, classes)
    for classes in (2, 3, 0)
    for n in (DIRECT_KERNEL_ROWS, DIRECT_KERNEL_ROWS + 1)
    for candidate in default_candidates("classification" if classes else "regression", KINDS, n, classes=classes)
}


@cache
def fitted(name, threshold=None):
    model, classes = CANDIDATES[name]
    if threshold is not None:
        model = clone(model)
        small = {"boosted trees": {"max_iter": 2}, "random forest": {"n_estimators": 2}}.get(name.split(",")[0], {})
        model[-1].set_params(**small)
        model = FixedThresholdClassifier(model, threshold=threshold, pos_label="yes", response_method="predict_proba")
    X = table(0)
    with threadpool_limits(1):
        return fit_quietly(model, X, target(X, classes))


def check_round_trip(model, path):
    X = table(1)
    X.loc[0, "colour"] = "never seen"
    again = load(save(model, path))
    with threadpool_limits(1):
        for method in ("predict", "predict_proba", "decision_function"):
            assert hasattr(again, method) == hasattr(model, method)
            if hasattr(model, method):
                np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    assert fingerprint_model(again) == fingerprint_model(model)
    assert type(again) is type(model)


def test_both_kernel_machines_are_among_the_candidates():
    names = {name.split(",")[0] for name in CANDIDATES}
    assert {"kernel SVM", "kernel logistic regression", "kernel ridge"} < names
    assert len(CANDIDATES) == 26 + 3 * (importlib.util.find_spec("torch") is not None)


@pytest.mark.parametrize("name", CANDIDATES)
def test_a_default_candidate(name, tmp_path):
    check_round_trip(fitted(name), tmp_path / "model")


SCORED = [name for name, (model, classes) in CANDIDATES.items() if classes == 2 and hasattr(model, "predict_proba")]


@pytest.mark.parametrize("name", SCORED)
def test_a_candidate_with_a_threshold(name, tmp_path):
    check_round_trip(fitted(name, threshold=0.3), tmp_path / "model")


KERNELS = (
    Laplace(0.5),
    Matern(2.0, nu=2.5),
    Polynomial(2),
    Gaussian(np.float64(2.0)) + 0.5 * Linear(),
    Gaussian() * Linear(),
)


@pytest.mark.parametrize("prepared", [False, True], ids=["alone", "in a pipeline"])
@pytest.mark.parametrize("kernel", ["gaussian", *KERNELS], ids=repr)
def test_a_kernel_machine(kernel, prepared, tmp_path):
    pytest.importorskip("torch")
    model = EigenProClassifier(kernel, regularization=0.01, device="cpu", random_state=0)
    model = (make_pipeline(StandardScaler(), model) if prepared else model).fit(X2, Y2)
    again = load(save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.decision_function(X2), model.decision_function(X2))
    machine = again[-1] if prepared else again
    assert machine.kernel == kernel
    assert type(machine.kernel) is type(kernel)
    assert fingerprint_model(again) == fingerprint_model(model)


def test_a_kernel_of_a_user_is_refused(tmp_path):
    pytest.importorskip("torch")

    class Wider(Gaussian):
        def __call__(self, X, Z):
            return super().__call__(X / 2, Z / 2)

    model = EigenProClassifier(bandwidth=1.0, device="cpu").fit(X2, Y2).set_params(kernel=Wider(2.0))
    with pytest.raises(ValueError, match="kernel is a Wider, which cannot be saved without pickle"):
        save(model, tmp_path / "model")


@pytest.mark.parametrize("algorithm", ["auto", "kd_tree", "ball_tree", "brute"])
@pytest.mark.parametrize("learner", [KNeighborsClassifier, KNeighborsRegressor])
def test_nearest_neighbours_in_few_dimensions(learner, algorithm, tmp_path):
    """They keep a tree, which remembers how often it was asked."""
    model = learner(algorithm=algorithm).fit(X2, Y2)
    model.predict(X2)
    again = load(save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.kneighbors(X2 + 0.1), model.kneighbors(X2 + 0.1))
    np.testing.assert_array_equal(again.predict(X2 + 0.1), model.predict(X2 + 0.1))
    assert fingerprint_model(again) == fingerprint_model(model)


def test_what_stands_beside_the_model(tmp_path):
    model = LogisticRegression().fit(X2, Y2)
    certificate = certify(model, X2, Y2)
    features = (Feature("a", "number"), Feature("b", "category", "truth", ("False", "True")))
    schema = Schema(features, "y", "classification", "whole", None, ("a", "b", "y"), True)
    reference = {"rows": 60, "a": [0.1, 0.2, None], "größe": {"x": True}}
    saved = read_model(save(model, tmp_path / "model", certificate=certificate, schema=schema, reference=reference))
    assert saved.certificate == certificate
    assert saved.certificate.verify(saved.model, X2, Y2)
    assert saved.schema == schema
    assert saved.reference == reference
    assert saved.versions["surelearn"] == surelearn.__version__
    assert set(saved.versions) == {"surelearn", "python", "numpy", "scikit-learn", "skops", "safetensors"}


def test_the_names_are_public():
    assert {"save", "load"} <= set(surelearn.__all__)
    assert (surelearn.save, surelearn.load) == (persistence.save, persistence.load)


# -------------------------------------------------------------------------------------------------------------- learners

INVENTED = types.ModuleType("invented_learners")


class Learner:
    def __init__(self, **state):
        vars(self).update(state)

    def predict(self, X):
        return X


class Own(ClassifierMixin, BaseEstimator):
    """A user's own class."""

    def fit(self, X, y):  # noqa: ARG002
        self.labels_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.labels_[:1], len(X))


for invented in (Learner, Own):
    invented.__module__ = INVENTED.__name__
    setattr(INVENTED, invented.__name__, invented)


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(sys.modules, INVENTED.__name__, INVENTED)
    persistence.LEARNERS.add(f"{INVENTED.__name__}.Learner")
    yield
    persistence.LEARNERS.remove(f"{INVENTED.__name__}.Learner")


def assert_identical(one, other):
    """Values and types, of all parts."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tolist() == other.tolist() if one.dtype.hasobject else one.tobytes() == other.tobytes()
    elif isinstance(one, dict):
        assert list(one) == list(other)
        one, other = list(one.values()), list(other.values())
    if isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_identical(*pair)
    elif not isinstance(one, np.ndarray):
        assert repr(one) == repr(other)  # NaN equals itself here


GRID = np.arange(24.0).reshape(2, 3, 4)
STATES = {
    "Fortran order": np.asfortranarray(GRID[0]),
    "every second": GRID[:, ::2, ::-1],
    "transposed": GRID.transpose(2, 0, 1),
    "broadcast": np.broadcast_to(np.arange(3.0), (4, 3)),
    "one column": GRID[0, :, 1],
    "float32": np.array([0.1, np.inf, -np.inf, np.nan, -0.0, 1e-45], dtype=np.float32),
    "float16": np.array([0.1, 6e4], dtype=np.float16),
    "integers": [np.arange(-3, 3, dtype=kind) for kind in ("i1", "i2", "i4", "i8")],
    "natural numbers": [np.arange(3, dtype=kind) for kind in ("u1", "u2", "u4", "u8")],
    "truth": np.array([[True], [False]])[::-1],
    "a number of no dimension": np.array(2.5),
    "empty": [np.empty((0, 3)), np.empty(0, dtype=np.int32), np.empty((2, 0), dtype=bool)],
    "words": np.array([["a", "größer"], ["", "z"]]),
    "words as objects": np.array(["a", "bc", "d"], dtype=object)[::2],
    "no words": np.array([], dtype="U3"),
    "none": None,
    "plain": [True, False, 0, -1, 10**30, 0.1, -0.0, "", "text", "\u2028"],
    "not finite": (float("inf"), float("-inf"), float("nan"), 5e-324),
    "scalars": [np.float64(0.1), np.float32(0.1), np.int8(-3), np.uint64(2**63), np.bool_(True), np.str_("a")],
    "scalars, not finite": [np.float64("nan"), np.float32("inf"), np.float16("-inf")],
    "nested": {"a": ([1, (2, {"b": (GRID[0].T, None)})], {}), "array": {"dict": []}, "number": "inf"},
    "same array twice": [GRID, GRID[1]],
}


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", STATES)
def test_the_state_of_a_learner(name, tmp_path):
    model = Learner(alpha=0.1, part_=STATES[name], last_=np.arange(2))
    again = load(save(model, tmp_path / "model"))
    assert type(again) is Learner
    assert_identical(vars(again), vars(model))
    assert [path.suffix for path in tmp_path.glob("model/model-*")] == [".safetensors"]


@pytest.mark.usefixtures("registered")
def test_the_arrays_of_a_learner_can_be_written_to(tmp_path):
    again = load(save(Learner(weights_=np.zeros(3)), tmp_path / "model"))
    again.weights_ += 1  # as partial_fit would


class Text(str):
    __slots__ = ()


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    "part",
    [
        np.ma.masked_array([1.0, 2.0], mask=[True, False]),
        np.asmatrix(np.eye(2)),
        np.array([1.0], dtype=np.longdouble),
        np.array([1.0], dtype=">f8"),
        np.array([{}], dtype=object),
        np.zeros(2, dtype=[("a", "f8")]),
        np.zeros(2, dtype=complex),
        np.longdouble(1),
        1j,
        b"bytes",
        {1: 2},
        {1, 2},
        namedtuple("Pair", "a b")(1, 2),
        Text("a"),
        np.random.default_rng(0),
        LogisticRegression(),
    ],
    ids=lambda part: type(part).__name__ + (f" of {part.dtype}" if isinstance(part, np.ndarray) else ""),
)
def test_a_state_that_would_not_come_back_as_it_was(part, tmp_path):
    with pytest.raises(ValueError, match=f"the model's part_ is a {type(part).__name__}, which cannot be saved"):
        save(Learner(part_=[part]), tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.usefixtures("registered")
def test_preparations_as_learners(tmp_path):
    X = table(1)
    for model, column in ((HashedWords(n_features=16), ["note"]), (DateParts(), ["seen"])):
        model.fit(X[column])
        again = load(save(model, tmp_path / "model"))
        assert_identical(vars(again), vars(model))
        np.testing.assert_array_equal(again.transform(X[column]), model.transform(X[column]))


def learner_certificate():
    facts = Facts(subject="Learner()", setting="fitted on 100 rows", values={"risk": 0.1, "n": 100, "none": float("inf")})
    claim = facts.claim(hoeffding, {"risk": "risk", "n": "n"}, delta=0.05)
    return Certificate(facts=facts, claims=(claim,))


@pytest.mark.usefixtures("registered")
def test_a_learner_keeps_its_certificate(tmp_path):
    model = Learner(certificate_=learner_certificate(), alpha=1)
    saved = read_model(save(model, tmp_path / "model"))
    assert saved.certificate == saved.model.certificate_ == learner_certificate()
    assert fingerprint_model(saved.model) == fingerprint_model(model)


@pytest.mark.usefixtures("registered")
def test_a_learner_with_a_certificate_from_elsewhere(tmp_path):
    model = Learner(alpha=1)
    saved = read_model(save(model, tmp_path / "model", certificate=learner_certificate()))
    assert saved.certificate == learner_certificate()
    assert_identical(vars(saved.model), vars(model))


# --------------------------------------------------------------------------------------------------------------- hostile


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    model = LogisticRegression().fit(X2, Y2)
    return save(
        model, tmp_path_factory.mktemp("original") / "model", certificate=certify(model, X2, Y2), reference={"n": 60}
    )


@pytest.fixture
def folder(original, tmp_path):
    """A model that may be tampered with."""
    return Path(shutil.copytree(original, tmp_path / "model"))


def manifest_of(folder):
    return json.loads((folder / MANIFEST).read_text())


def edit(folder, **changes):
    """Change the manifest as someone does who knows how it is hashed."""
    manifest = {**manifest_of(folder), **changes}
    (folder / MANIFEST).write_text(json.dumps({**manifest, "hash": content_hash(manifest)}))
    return folder


def data_file(folder):
    return next(folder.glob("model-*"))


def put(folder, content, kind="skops", **changes):
    """Another data file, with a manifest that fits."""
    data_file(folder).unlink()
    digest = hashlib.sha256(content).hexdigest()
    name = f"model-{digest[:16]}.{kind}"
    (folder / name).write_bytes(content)
    return edit(folder, files={name: {"sha256": digest, "bytes": len(content)}}, **changes)


def refusal(path, **options):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the sentence is matched by whoever asks
        load(path, **options)
    assert type(caught.value) is ValueError
    message = str(caught.value)
    assert message.isprintable()  # one line
    assert len(message) < 600
    return message


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
        put(folder, content, "safetensors") if case.place == "safetensors" else edit(folder, **content)
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
    outside = [("../../evil", b"x"), (f"{tmp_path}/evil", b"x"), ("data.pkl", pickled(4)(str(tmp_path / "evil")))]
    put(folder, with_entries(data_file(folder).read_bytes(), *outside))
    np.testing.assert_array_equal(load(folder).predict(X2), LogisticRegression().fit(X2, Y2).predict(X2))
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
    schema["content"]["content"] = {"leaf_size": short, **{key: content[key] for key in content if key != "leaf_size"}}


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


@pytest.mark.parametrize("name", persistence.TRUSTED)
def test_a_trusted_type_is_made_in_one_way_only(name, folder):
    made_by_call = archive(node("LossNode", name, __reduce__={"args": sequence()}, content=sequence(plain(3))))
    assert f"{name} in another way" in refusal(put(folder, made_by_call("")))
    as_a_type = archive(node("TypeNode", name))
    assert f"{name} in another way" in refusal(put(folder, as_a_type("")))


# -------------------------------------------------------------------------------------------------------------- refusals


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
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
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
    return not value if isinstance(value, bool) else value + 1 if isinstance(value, (int, float)) else f"{value}."


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


ODD = [None, True, -1, 10**30, 0.5, "", "x", "../x", [], {}, [[]], {"a": 1}, {"number": "inf"}, {"array": "x"}]


def test_odd_values_in_a_manifest_whose_hash_fits(folder):
    """Refused or of no consequence, never another exception."""
    manifest, pick = manifest_of(folder), np.random.default_rng(0)
    everywhere = leaves(manifest)
    shallow = [path[:depth] for path in everywhere for depth in (1, 2, 3) if len(path) > depth]
    predicted, refused = load(folder).predict(X2), 0
    for path in [*pick.permutation(np.array(everywhere, dtype=object))[:60], *dict.fromkeys(shallow)]:
        odd = ODD[pick.integers(len(ODD))]
        edit(folder, **with_leaf(manifest, path, lambda _, odd=odd: odd))
        try:
            np.testing.assert_array_equal(load(folder).predict(X2), predicted)
        except ValueError:
            refusal(folder)
            refused += 1
    assert refused > 10


@pytest.mark.parametrize(
    "key", ["class", "parameters", "fingerprint", "versions", "files", "columns", "reference", "certificate"]
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
        ({"version": 2}, "has version 2, this surelearn reads up to 1: upgrade surelearn"),
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
        ({"files": {"model-0123456789abcdef.skops/../../x": {}}}, "which is not a file of this folder"),
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
    "schema", ["[" * 100_000, "{}", "[]", "3", '{"protocol": 2}', '{"protocol": 99}', '{"protocol": true}']
)
def test_a_schema_that_is_none(folder, schema):
    assert "never opened as a model" in refusal(put(folder, HOSTILE["zipped"](("schema.json", schema))))


@pytest.mark.parametrize(
    ("name", "parts", "says"),
    [
        ("sklearn.pipeline.Pipeline", {"steps": sequence(kind="list")}, "holds no model"),
        ("sklearn.svm._classes.SVC", {"__getstate__": plain(1)}, "holds no model, or one with parts"),
        ("sklearn.svm._classes.SVC", {"get_tree_stats": plain(1)}, "holds no model, or one with parts"),
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
    with pytest.raises(ValueError, match="the certificate is about another model, or the model was changed since"):
        save(LogisticRegression().fit(X2, Y2), tmp_path / "new", certificate=certificate)
    assert not (tmp_path / "new").exists()
    assert "its certificate is about another model" in refusal(edit(folder, certificate=certificate.to_dict()))


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
        save(make_pipeline(FunctionTransformer(os.system), LogisticRegression()), tmp_path / "model")
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
    with pytest.raises(ValueError, match=f"the model holds {name}, which is not on the list.*pass trusted="):
        save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    save(model, tmp_path / "model", trusted=[name])
    assert f"holds {name}, which is not on the list" in refusal(tmp_path / "model")
    assert f"holds {name}, which is not on the list" in refusal(tmp_path / "model", trusted=[f"{name}s"])
    np.testing.assert_array_equal(load(tmp_path / "model", trusted=[name]).predict(X2), model.predict(X2))


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
        UserWarning, match=r"was saved with scikit-learn 0\.1 \(here .*may not be the model that was"
    ) as caught:
        model = load(folder)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(model.predict(X2), LogisticRegression().fit(X2, Y2).predict(X2))


def test_another_version_that_reads_the_same_is_silent(folder):
    load(edit(folder, versions={"scikit-learn": "0.1"}))


# ---------------------------------------------------------------------------------------------------------- nothing lost


def constant(value):
    return DummyRegressor(strategy="constant", constant=value).fit([[0]], [0])


def answer(path):
    return float(load(path).predict([[0]])[0])


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


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


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")], ids=repr)
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
    """The second waits: otherwise it would remove the first one's data, which the first one's manifest then names."""
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
    command = [sys.executable, "-c", FAILING, str(tmp_path)]
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
    """Forty lists, each of the one before and the one before: 2^40 to whoever walks through them."""
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
        {"scalar": 10**12, "type": "|V8"},
        {"words": ["a"], "shape": [1], "type": "<U1000000000"},
        {"words": ["a"] * 9, "shape": [10**12], "type": "<U1"},
    ):
        assert "is damaged" in refusal(edit(folder, parameters={**parameters, "regularization": value}))
    edit(folder, parameters=parameters)
    content = data_file(folder).read_bytes()
    assert "header is said to have" in refusal(put(folder, (2**40).to_bytes(8, "little") + content[8:], "safetensors"))
