"""Files that earlier versions wrote are read, verify, and say what they said: see the fixtures'
README.txt.
"""

import importlib.metadata
import json
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_regressor
from sklearn.datasets import load_iris

from surelearn import Certificate
from surelearn.auditing.verification import verify_folder
from surelearn.fingerprint import fingerprint_model, is_fingerprint_of
from surelearn.linear import Ridge
from surelearn.monitoring.looks import Looks
from surelearn.monitoring.watch import Watch
from surelearn.persistence import read_model
from surelearn.report import Audit
from surelearn.selection.ledger import Ledger

FIXTURES = Path(__file__).parent / "fixtures"
ROWS = load_iris().data[50::3].astype(float)
X, AMOUNTS = ROWS[:, :3], ROWS[:, 3]
LABELS = np.array(["versicolor", "virginica"])[load_iris().target[50::3] - 1]
MIXED = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=np.where(X[:, 0] > 6, "long", "short"))
OTHER_ROWS = {
    "words": np.array([["a good day"], ["bad luck"], [None], ["so so"]], dtype=object),
    "dates": np.array(
        [["2020-01-01"], ["2021-06-30"], ["NaT"], ["1969-12-31"]], dtype="datetime64[D]"
    ),
}


def names(version, beginning):
    with zipfile.ZipFile(FIXTURES / version / "files.zip") as archive:
        inside = [
            Path(name).parts for name in archive.namelist() if name.startswith(f"{beginning}/")
        ]
    return sorted({(version, parts[1]) for parts in inside})


MODELS = names("before-0.1", "models") + names("version-0.2", "models")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("earlier")
    for archive in FIXTURES.glob("*/files.zip"):
        zipfile.ZipFile(archive).extractall(folder / archive.parent.name)
    return folder


@pytest.fixture
def state(unpacked, monkeypatch):
    """Of the user who made the audits of 0.2: the losses per row."""
    monkeypatch.setenv("XDG_STATE_HOME", str(unpacked / "version-0.2" / "state"))


# --------------------------------------------------------------------------------------------------


def rows_of(name, model):
    """Features and targets a model was fitted and certified on."""
    rows = MIXED if name.startswith("candidate-") else OTHER_ROWS.get(name, X)
    return rows, AMOUNTS if is_regressor(model) else LABELS


@pytest.mark.parametrize(("version", "name"), MODELS)
def test_a_model_answers_as_it_did(version, name, unpacked):
    """Bit for bit the model that was certified, where the libraries are those it was saved with."""
    folder = unpacked / version / "models" / name
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    needed = {
        key: value
        for key, value in manifest["versions"].items()
        if key not in ("surelearn", "python")
    }
    if "torch" in needed or "eigenpro" in name or "kernel-machine" in name:
        pytest.importorskip("torch")
    same = all(importlib.metadata.version(key) == value for key, value in needed.items())
    with warnings.catch_warnings():
        warnings.simplefilter("error" if same else "ignore")
        saved = read_model(folder)
    if same:
        assert is_fingerprint_of(saved.model, manifest["fingerprint"])
        if version != "before-0.1":  # since then classes with keys have kept their name in it
            assert fingerprint_model(saved.model) == manifest["fingerprint"]
    rows, y = rows_of(name, saved.model)
    said = json.loads((unpacked / version / "answers.json").read_text(encoding="utf-8"))[name]
    assert said
    for method, answers in said.items():
        found = np.asarray(getattr(saved.model, method)(rows))
        if np.issubdtype(found.dtype, np.number):
            np.testing.assert_allclose(found, np.array(answers, dtype=float), rtol=1e-6, atol=1e-6)
        else:
            assert found.tolist() == answers
    if saved.certificate is not None and same:
        assert saved.certificate.facts.hashes["model"] == manifest["fingerprint"]
        found = saved.certificate.verify(saved.model)
        assert found, str(found)
        if name.startswith(("pipeline-", "candidate-")) and version != "before-0.1":
            found = saved.certificate.verify(saved.model, rows, y)
            assert found, str(found)


def made_then(certificate):
    """The claims of a learner's certificate without those that version 5 added."""
    return tuple(c for c in certificate.claims if c.quantity != "leave_one_out_error")


@pytest.mark.parametrize("name", [name for version, name in MODELS if version == "version-0.2"])
def test_a_learner_makes_the_same_claims_from_its_record_and_its_rows_confirm_it(name, unpacked):
    """It kept derived numbers, too, and left some primitive ones to its parameters."""
    if "eigenpro" in name or "kernel-machine" in name or "module" in name:
        pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        saved = read_model(unpacked / "version-0.2" / "models" / name)
    if not hasattr(type(saved.model), "Record"):
        pytest.skip("not a learner of ours with a record")
    own = saved.model.certificate_
    if saved.certificate is not None:
        then, now = (
            [(c.theorem, c.label, c.assumptions) for c in claims]
            for claims in (saved.certificate.claims, made_then(own))
        )
        assert now == then
        then, now = (
            [c.value for c in claims] for claims in (saved.certificate.claims, made_then(own))
        )
        assert now == pytest.approx(then, rel=1e-9)
    found = own.verify(saved.model, *rows_of(name, saved.model))
    assert found, str(found)


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for _, name in names("version-0.2", "certificates")])
def test_a_certificate_verifies(name, unpacked):
    text = (unpacked / "version-0.2" / "certificates" / name).read_text(encoding="utf-8")
    assert json.loads(text)["version"] == 3
    old = Certificate.from_json(text)
    assert old.claims
    assert old.verify(), str(old.verify())
    again = Certificate.from_json(old.to_json())
    assert again == old
    assert again.verify(), str(again.verify())


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["iris", "diabetes"])
def test_folders_of_the_first_version_verify_from_their_data(name):
    """Their rows were divided by the first rule, and their losses are published; pages are
    drawn otherwise now.
    """
    found = verify_folder(FIXTURES / "version-0.1" / name, name)
    assert {"hash of the rows", "facts from model and rows"} <= {*found.checked}
    assert [line for line in found.differences if not line.startswith("report.md")] == []


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("name", ["iris", "diabetes"])
def test_folders_of_the_second_version_verify_from_their_data(name, unpacked):
    found = verify_folder(unpacked / "version-0.2" / name, name)
    assert {"audit.json", "hash of the model", "hash of the rows", "facts from model and rows"} <= {
        *found.checked
    }
    assert [line for line in found.differences if not line.startswith("report.md")] == []


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("name", ["iris", "diabetes"])
def test_losses_per_row_of_the_second_version_are_found(name, unpacked):
    found = verify_folder(unpacked / "version-0.2" / name)
    assert [line for line in found.unchecked if "losses per row" in line] == []


def test_audits_from_before_the_first_version_verify(unpacked):
    """The first ones did not say how their data were read, and had no hash."""
    for version in (1, 2):
        folder = unpacked / "before-0.1" / f"audit-{version}" / "iris"
        assert json.loads((folder / "audit.json").read_text(encoding="utf-8"))["version"] == version
        found = verify_folder(folder, *(["iris"] if version > 1 else []))
        assert "audit.json" in found.checked
        assert found, str(found)


@pytest.mark.usefixtures("state")
def test_the_certificate_of_a_gate_verifies(unpacked):
    found = verify_folder(unpacked / "version-0.2" / "gate")
    assert found, str(found)


LEDGERS = [
    ("version-0.2", "iris", 2), ("version-0.2", "diabetes", 2), ("version-0.2", "gate", 2),
    ("before-0.1", "audit-1/iris", 1), ("before-0.1", "audit-2/iris", 1),
]  # fmt: skip


@pytest.mark.parametrize(("version", "name", "wrote"), LEDGERS)
def test_a_ledger_is_read(version, name, wrote, unpacked):
    path = unpacked / version / f"{name}-ledger.json"
    plain = json.loads(path.read_text(encoding="utf-8"))
    assert plain["version"] == wrote
    looks = Ledger(path).looks
    assert len(looks) == len(plain["looks" if wrote > 1 else "audits"]) == 1


def test_a_watch_goes_on(unpacked):
    folder = unpacked / "version-0.2" / "iris"
    certificate = Certificate.from_json((folder / "certificate.json").read_text(encoding="utf-8"))
    plain = json.loads((folder / "certificate.watch.json").read_text(encoding="utf-8"))
    assert plain["version"] == 2
    watch = Watch.load(folder / "certificate.watch.json", certificate)
    assert watch.to_dict() == plain
    looks = json.loads((folder / "certificate.drift.json").read_text(encoding="utf-8"))
    assert Looks.load(folder / "certificate.drift.json", certificate).seen == looks["seen"] != []


# --------------------------------------------------------------------------------------------------
# Before keys became identifiers.

OLD = "certificate-4"


def old_certificate(unpacked, name):
    text = (unpacked / OLD / "certificates" / name).read_text(encoding="utf-8")
    return Certificate.from_json(text), json.loads(text)


def is_key(quantity):
    return quantity.isidentifier() and quantity.isascii() and quantity == quantity.lower()


@pytest.mark.parametrize("name", [name for _, name in names(OLD, "certificates")])
def test_a_certificate_that_names_quantities_in_words_verifies_and_keeps_its_hash(name, unpacked):
    old, plain = old_certificate(unpacked, name)
    assert plain["version"] == old.version == 4
    assert old.verify(), str(old.verify())
    assert old.hash == plain["hash"]
    assert old.to_dict() == plain
    assert all(map(is_key, (*(c.quantity for c in old.claims), *(i.what for i in old.lacking))))
    assert [claim.label for claim in old.claims] == [claim["label"] for claim in plain["claims"]]
    assert [i.label for i in old.lacking] == [
        item["what"].replace("_", " ") for item in plain["lacking"]
    ]


def test_old_names_of_quantities_are_found_with_a_warning(unpacked):
    old, _ = old_certificate(unpacked, "of-ridge.json")
    for made in (
        old,
        Ridge(regularization=0.1, x_bound=12.0, y_bound=3.0).fit(X, AMOUNTS).certificate_,
    ):
        with pytest.warns(FutureWarning, match="'uniform stability' is 'uniform_stability' now"):
            assert made["uniform stability"] == made["uniform_stability"]
    unbounded, _ = old_certificate(unpacked, "of-ridge-unbounded.json")
    with (
        pytest.warns(FutureWarning, match="uniform_stability"),
        pytest.raises(KeyError, match="intercept is free"),
    ):
        unbounded["uniform stability"]


def lacked_then(item):
    """The reason as it was given before the parameters of SGD stood in a group."""
    return item.reason.replace("sgd=SGD(average=True)", "average=True")


@pytest.mark.parametrize("name", [name for _, name in names(OLD, "models")])
def test_a_model_of_that_time_claims_what_its_certificate_says(name, unpacked):
    if name == "eigenpro":
        pytest.importorskip("torch")
    model = read_model(unpacked / OLD / "models" / name).model
    old, _ = old_certificate(unpacked, f"of-{name}.json")
    assert model.certificate_.version > old.version
    assert made_then(model.certificate_) == old.claims
    assert [(i.what, i.theorem, lacked_then(i)) for i in model.certificate_.lacking] == [
        (i.what, i.theorem, i.reason) for i in old.lacking
    ]
    rows, y = rows_of(name, model)
    found = old.verify(model, rows, y)
    assert found, str(found)


@pytest.fixture
def state_of_words(unpacked, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(unpacked / OLD / "state"))


@pytest.mark.usefixtures("state_of_words")
@pytest.mark.parametrize("name", ["iris", "diabetes"])
def test_folders_that_name_quantities_in_words_verify_and_keep_their_hashes(name, unpacked):
    folder = unpacked / OLD / name
    found = verify_folder(folder)
    assert [line for line in found.unchecked if "losses per row" in line] == []
    found = verify_folder(folder, name)
    assert {"audit.json", "facts from model and rows"} <= {*found.checked}
    assert [line for line in found.differences if not line.startswith("report.md")] == []
    plain = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    audit = Audit.from_dict(plain)
    assert plain["version"] == 3
    assert audit.proved
    assert audit.to_dict() == plain
    assert all(is_key(claim.quantity) for claim in (*audit.claims, *audit.proved))
    numbers = [name for finding in audit.findings for name in finding.numbers]
    assert numbers
    assert [name for name in numbers if " " in name] == []
    assert "fold_errors" in audit.numbers["selection"]


def test_a_watch_of_that_time_goes_on(unpacked):
    folder = unpacked / OLD / "iris"
    certificate = Certificate.from_json((folder / "certificate.json").read_text(encoding="utf-8"))
    plain = json.loads((folder / "certificate.watch.json").read_text(encoding="utf-8"))
    assert Watch.load(folder / "certificate.watch.json", certificate).to_dict() == plain
