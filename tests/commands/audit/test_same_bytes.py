"""The same bytes whatever the jobs, the process and the seed."""

import json
import os

import pytest
from tests.commands.audit.steps import audit, content, program, surelearn, write_table

from surelearn.report import Audit


@pytest.mark.slow
def test_the_same_bytes_whatever_the_jobs_and_the_process(place):
    """One job in this process, two in another one whose strings are hashed otherwise."""
    base = (
        "audit t.csv --target y --model models_of_cli_tests:quick --slice c --seed 5 --effort 0.2"
    )
    one = surelearn(base, "--jobs 1 --out one --ledger one.json")
    assert one.exit_code == 0, one.output
    salt = str(1 + (os.environ.get("PYTHONHASHSEED") == "1"))
    two = program(base, "--jobs 2 --out two --ledger two.json", PYTHONHASHSEED=salt)
    assert two.returncode == 0, two.stderr
    assert content(place / "one") == content(place / "two")


def test_another_seed_certifies_on_the_same_rows(place):
    found = {}
    for seed in (0, 1, 2):
        audit(f"--seed {seed} --out seed{seed} --ledger seed{seed}.json")
        found[seed] = json.loads(
            (place / f"seed{seed}" / "certificate.json").read_text(encoding="utf-8")
        )["facts"]["hashes"]
    assert found[0]["rows"] == found[1]["rows"] == found[2]["rows"]
    audits = [
        Audit.from_json((place / f"seed{seed}" / "audit.json").read_text(encoding="utf-8"))
        for seed in (0, 1)
    ]
    first, second = (document.numbers["selection"]["fold_errors"] for document in audits)
    assert first != second  # the seed does reach the folds


def test_other_rows_have_another_hash(place):
    write_table(place / "u.csv", n=240)
    audit("--out t --ledger t.json")
    audit("--out u --ledger u.json", table="u.csv")
    hashes = [
        json.loads((place / name / "certificate.json").read_text())["facts"]["hashes"]["rows"]
        for name in "tu"
    ]
    assert hashes[0] != hashes[1]
