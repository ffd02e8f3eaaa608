"""For all tests, those of docstrings and docs too."""

import gc
import itertools

import pytest

_COUNT = itertools.count()
gc.disable()  # until all tests are collected: nothing that this makes is garbage


def pytest_collection_finish():
    """Thousands of tests and their modules live to the end: searching them again and again for
    garbage took a tenth of the time. Rubbish that tests make is searched for a tenth as often, what
    outlived two searches a hundredth.
    """
    gc.collect()
    gc.freeze()
    first, second, _ = gc.get_threshold()
    gc.set_threshold(10 * first, second, 100)
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _state_for_all(tmp_path_factory):
    """Looks of the tests never reach the ledger of whoever runs them."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def _state(_state_for_all, monkeypatch):
    """Nor do those of one test reach another; folders are counted, not searched for, and made
    where something is kept.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(_state_for_all / str(next(_COUNT))))
