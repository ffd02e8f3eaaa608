"""For all tests, those of docstrings and docs too."""

import gc
import itertools
import os
import warnings

import joblib
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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One more worker than there are cores: some tests wait, for a browser, a clock or a process."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture
def forked():
    """Jobs work in copies of this process, which load nothing again: for tests of what they compute
    and not of how they are started (tests/jobs).
    """
    with warnings.catch_warnings(), joblib.parallel_config("multiprocessing"):
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        if joblib.effective_n_jobs(2) != 2:
            pytest.fail("jobs would work in this process")
        yield


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
