"""A network as a candidate of the audit, by name."""

import numpy as np
import pandas as pd
import pytest

import surelearn
from surelearn.selection import catalogue as module
from surelearn.selection.catalogue import DEFAULT, named_candidates

KINDS = {"size": "number", "color": "category"}


def test_it_takes_part_by_name_only():
    pytest.importorskip("torch")
    for task in ("classification", "regression"):
        (candidate,) = named_candidates(["network"], task, KINDS, 400)
        assert candidate.name == "network"
        assert "network" not in DEFAULT[task]


def test_without_torch_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr(module, "_is_installed", lambda *_: False)
    with pytest.raises(ValueError, match="a network needs PyTorch: pip install"):
        named_candidates(["network"], "classification", KINDS, 400)


def test_an_audit_of_it_has_a_certificate_that_verifies(monkeypatch):
    pytest.importorskip("torch")
    from surelearn.neural import NetworkClassifier

    monkeypatch.setattr(NetworkClassifier, "_epochs", lambda *_: 15)
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"size": rng.normal(size=300), "color": rng.choice(["red", "blue"], 300)})
    rows["y"] = np.where((rows["size"] > 0) == (rows["color"] == "red"), "in", "out")
    options = {"ledger": False, "refits": 0, "curve_repeats": 0}
    skip = ("robustness", "poisoning", "membership", "attribution", "stability", "learning_curve")
    page = surelearn.audit(rows, target="y", models="network", skip=skip, **options)
    assert page.certificate["risk"].value < 0.4
    assert page.certificate.verify(page.model)
    assert isinstance(page.model[-1], NetworkClassifier)
