"""Real tables."""

import re
import shutil
from pathlib import Path

import pytest
from tests.commands.audit.steps import QUICK, leftovers, program, surelearn
from tests.loaded import programs

from surelearn.certificate import Certificate
from surelearn.report import Audit

TITANIC = Path(__file__).resolve().parents[4] / "shared" / "data" / "titanic.csv"


@pytest.mark.slow
def test_titanic(place):
    if not TITANIC.exists():
        pytest.skip(f"{TITANIC} is not there")
    shutil.copy(TITANIC, place / "titanic.csv")
    result = surelearn("audit titanic.csv --target Survived", QUICK.replace("quick", "prepared"))
    assert result.exit_code == 0, result.output
    assert re.search(r"identifier +PassengerId +dropped", result.stdout)
    document = Audit.from_json(
        (place / "surelearn-audit" / "audit.json").read_text(encoding="utf-8")
    )
    assert "errors" in document.verdict.text
    identifier = [finding for finding in document.findings if finding.code == "SL101"]
    assert "PassengerId" in " ".join(finding.text for finding in identifier)


@pytest.mark.slow
def test_no_arguments_audit_breast_cancer(place):
    result = program("audit", at=programs() / "surelearn")
    assert result.returncode == 0, result.stderr
    assert "breast_cancer  569 rows, 30 columns" in result.stdout
    assert re.search(
        r"at most \d+\.\d% errors, .* and at most \d+\.\d% of malignant cases missed", result.stdout
    )
    certificate = Certificate.from_json(
        (place / "surelearn-audit" / "certificate.json").read_text(encoding="utf-8")
    )
    assert certificate["risk"].value < 0.12
    assert leftovers(place) == []
    assert (place / "state" / "surelearn").is_dir()
