"""A network as a candidate of the audit, by name."""

import numpy as np
import pandas as pd
import pytest

import surelearn
from surelearn.selection import catalogue as module
from surelearn.selection.catalogue import (
    affordable,
    by_default,
    catalogue,
    named_candidates,
    not_installed,
    usual_budget,
)

KINDS = {"size": "number", "color": "category"}


def test_it_takes_part_where_rows_are_neither_few_nor_many_and_the_budget_pays():
    pytest.importorskip("torch")
    for task in ("classification", "regression"):
        (candidate,) = named_candidates(["network"], task, KINDS, 400)
        assert candidate.name == "network"
        for n, there in ((499, False), (500, True), (50_000, True), (50_001, False)):
            every = by_default(catalogue(task, KINDS, n), task, n)
            assert ("network" in every) == there
            taken, left_out = affordable(every, 6, usual_budget(n))
            assert "network" not in [one.name for one in taken]
            assert ("network" in left_out) == there  # which the page names
            taken, _ = affordable(every, 6, 10_000.0)
            assert ("network" in [one.name for one in taken]) == there


def test_without_torch_it_is_named_as_not_installed(monkeypatch):
    monkeypatch.setattr(module, "is_installed", lambda *_: False)
    assert not_installed("classification", 1000)["network"] == "surelearn[torch]"
    assert "network" not in not_installed("classification", 100)
    named = not_installed("classification", 1000, images=(8, 8, 1))
    assert set(named) == {"MLP", "CNN"}
    assert set(not_installed("regression", 1000, images=(8, 8, 1))) == set()


def test_without_torch_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr(module, "is_installed", lambda *_: False)
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
