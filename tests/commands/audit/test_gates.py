"""The threshold of --max-risk."""

import pytest
from tests.commands.audit.steps import WRITTEN, audit, leftovers, names

from surelearn.certificate import Certificate


@pytest.mark.parametrize(("most", "code"), [("0.5", 0), ("1", 0), ("0.01", 1), ("0", 1)])
def test_a_gate(most, code, place):
    result = audit("--max-risk", most)
    assert result.exit_code == code
    assert set(WRITTEN) <= set(names(place / "surelearn-audit"))
    assert leftovers(place) == []
    value = Certificate.from_json(
        (place / "surelearn-audit" / "certificate.json").read_text(encoding="utf-8")
    )["risk"].value
    assert (value > float(most)) == bool(code)
    assert (result.stderr == "") == (code == 0)
    if code:
        assert f"is above --max-risk {float(most):g}" in result.stderr


def test_a_gate_on_its_very_bound(place):
    audit("--out first")
    value = Certificate.from_json(
        (place / "first" / "certificate.json").read_text(encoding="utf-8")
    )["risk"].value
    assert audit(f"--max-risk {value!r}").exit_code == 0
    assert audit(f"--max-risk {value * (1 - 1e-12)!r}").exit_code == 1
