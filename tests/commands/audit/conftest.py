"""Fixtures of this folder."""

import pytest
from tests.commands.audit.steps import prepare


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a table and a module of models, where everything is written."""
    yield from prepare(tmp_path, monkeypatch)
