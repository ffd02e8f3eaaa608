"""For all tests, those of docstrings and docs too."""

import sys

import pytest

ATTACKED = (
    "test_trust",
    "test_robustness",
    "test_robustness_refusals",
    "test_poisoning",
    "test_poisoning_range",
    "test_poisoning_thresholds",
    "test_membership",
    "test_attribution",
    "test_conditions",
    "test_seen",
    "test_single_rows",
)


@pytest.fixture(autouse=True, scope="module")
def _no_attacks(request):
    """Audits in tests of other things leave out the sections of `surelearn.auditing.trust`: they take the longest."""
    audits = "surelearn.auditing" in sys.modules or "audit" in request.path.read_text(encoding="utf-8")
    if request.path.stem in ATTACKED or not audits:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surelearn.auditing.trust.sections", lambda context: [])  # noqa: ARG005
        yield


@pytest.fixture(autouse=True, scope="session")
def _state_for_all(tmp_path_factory):
    """Looks of the tests never reach the ledger of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _state(tmp_path_factory, monkeypatch):
    """Nor do those of one test reach another."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
