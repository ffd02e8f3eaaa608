"""Fixtures of this folder."""

import shutil
import sys
from pathlib import Path

import pytest
from sklearn.linear_model import LogisticRegression
from tests.persistence.saved import INVENTED_OURS, X2, Y2

from surelearn import certify, save


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(sys.modules, INVENTED_OURS.__name__, INVENTED_OURS)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    model = LogisticRegression().fit(X2, Y2)
    return save(
        model,
        tmp_path_factory.mktemp("original") / "model",
        certificate=certify(model, X2, Y2),
        reference={"n": 60},
    )


@pytest.fixture
def folder(original, tmp_path):
    """A model that may be tampered with."""
    return Path(shutil.copytree(original, tmp_path / "model"))
