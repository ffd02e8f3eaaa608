"""What an audit writes and prints."""

from pathlib import Path

import pytest
from tests.commands.audit.steps import (
    QUICK,
    SKIP,
    WRITTEN,
    Page,
    audit,
    leftovers,
    names,
    program,
    refusal,
    surelearn,
)

from surelearn import bounds
from surelearn.certificate import Certificate
from surelearn.report import Audit


def test_an_audit_writes_its_three_files_and_says_the_verdict(place):
    # all that ships
    result = surelearn(["audit", "t.csv"], "--target y", QUICK.removesuffix(SKIP), "--effort 0.1")
    assert result.exit_code == 0
    assert result.stderr == ""
    out = place / "surelearn-audit"
    assert set(WRITTEN) <= set(names(out)) <= {*WRITTEN, "model"}
    assert leftovers(place) == []
    written = (out / "audit.json").read_text(encoding="utf-8")
    document = Audit.from_json(written)
    assert document.to_json() + "\n" == written
    assert {"robustness", "poisoning", "membership", "attribution"} <= {
        section.key for section in document.sections
    }
    assert document.verdict.text in result.stdout
    assert "errors" in document.verdict.text
    assert "nearest mean chosen among 2" in result.stdout
    certificate = Certificate.from_json((out / "certificate.json").read_text(encoding="utf-8"))
    assert certificate.verify()
    assert certificate.claims == document.claims
    page = (out / "report.html").read_text(encoding="utf-8")
    assert len(page.encode()) < 1_000_000
    assert document.verdict.text in Page(page).text
    assert all(
        str(path) in result.stdout for path in (Path("surelearn-audit") / name for name in WRITTEN)
    )
    assert names(place) == [
        "ledger.json",
        "models_of_cli_tests.py",
        "state",
        "surelearn-audit",
        "t.csv",
    ]


def test_the_verdict_keeps_to_the_numbers(place):
    audit()
    certificate = Certificate.from_json(
        (place / "surelearn-audit" / "certificate.json").read_text(encoding="utf-8")
    )
    risk = certificate["risk"]
    assert risk.value == bounds.clopper_pearson(
        risk.inputs["errors"], risk.inputs["n"], certificate.delta / 2
    )
    assert risk.inputs["n"] == 66  # a third of 200


def test_markdown(place):
    audit("--format md")
    out = place / "surelearn-audit"
    assert set(names(out)) - {"model"} == {"audit.json", "certificate.json", "report.md"}
    assert "### surelearn audit: t.csv" in (out / "report.md").read_text(encoding="utf-8")
    audit("--format md --format html --out both")
    assert {*WRITTEN, "report.md"} <= set(names(place / "both"))


def test_quiet_prints_the_verdict_only(place):
    result = audit("--quiet")
    verdict = Audit.from_json(
        (place / "surelearn-audit" / "audit.json").read_text(encoding="utf-8")
    ).verdict
    assert result.stdout == verdict.text + "\n"
    assert result.stderr == ""


@pytest.mark.parametrize("out", [".", "deep/down/here", "with space é"])
def test_the_folder_may_be_anywhere(place, monkeypatch, out):
    (place / "here").mkdir()
    monkeypatch.chdir(place / "here")
    result = surelearn(
        "audit ../t.csv --target y", QUICK.replace("ledger.json", "../ledger.json"), ["--out", out]
    )
    assert result.exit_code == 0, result.output
    assert set(WRITTEN) <= set(names(place / "here" / out))
    assert leftovers(place) == []


def test_the_page_names_the_command_without_where_and_how_it_ran(place):
    audit("--slice c --seed 3 --out elsewhere --max-risk 0.9")
    document = Audit.from_json((place / "elsewhere" / "audit.json").read_text(encoding="utf-8"))
    asked = (
        f"surelearn audit t.csv --target y --slice c {SKIP} --model models_of_cli_tests:quick"
        " --seed 3"
    )
    assert document.reproduce == asked


def test_models_of_the_working_folder_are_found_at_a_terminal_that_knows_only_ascii(place):
    """The program's own path holds its folder, not the user's, and its terminal knows only ASCII."""
    result = program("audit t.csv --target y", QUICK, PYTHONPATH="", PYTHONIOENCODING="ascii")
    assert result.returncode == 0, result.stderr
    assert "Guaranteed together, 95%" in result.stdout


def test_options_reach_the_audit(place):
    result = audit(
        "--positive yes --cost 5 --slice c --delta 0.2 --prefer best --against"
        " models_of_cli_tests:nearest"
    )
    assert result.exit_code == 0, result.output
    document = Audit.from_json(
        (place / "surelearn-audit" / "audit.json").read_text(encoding="utf-8")
    )
    quantities = {claim.quantity for claim in document.claims}
    assert {"risk", "sensitivity", "precision", "mean_cost", "gain", "slice_risk"} <= quantities
    assert any("c = a" in claim.label for claim in document.claims)
    assert document.certificate.delta == 0.2
    assert document.numbers["options"]["prefer"] == "best"


def test_group_and_time(place):
    lines = (place / "t.csv").read_text().splitlines()
    grouped = [lines[0] + ",g,t", *(f"{line},p{i // 4},{i}" for i, line in enumerate(lines[1:]))]
    (place / "g.csv").write_text("\n".join(grouped) + "\n")
    result = audit("--group g --drop t --out by-group", table="g.csv")
    assert result.exit_code == 0, result.output
    document = Audit.from_json((place / "by-group" / "audit.json").read_text(encoding="utf-8"))
    assert document.certificate.facts["groups"] == 16  # of 50, not 64 of 200 rows
    assert "(16 gs)" in result.stdout
    result = audit("--time t --drop g --out by-time --max-risk 0.99", table="g.csv")
    assert "nothing is guaranteed for the rows to come" in result.stdout
    assert result.exit_code == 1  # nothing guaranteed cannot pass a gate
    assert "nothing is guaranteed" in result.stderr


def test_a_table_without_a_header(place):
    (place / "n.csv").write_text(
        "".join((place / "t.csv").read_text().splitlines(keepends=True)[1:])
    )
    result = surelearn("audit n.csv --no-header --target -1", QUICK)
    assert result.exit_code == 0, result.output
    assert "target column 4, column 4 of 4 (--target -1)" in result.stdout
    page = (place / "surelearn-audit" / "report.html").read_text(encoding="utf-8")
    assert "surelearn audit n.csv --target -1 --no-header" in page


def test_a_first_line_that_looks_like_data_is_refused_before_any_work(place):
    (place / "n.csv").write_text(
        "".join((place / "t.csv").read_text().splitlines(keepends=True)[1:])
    )
    before = names(place)
    result = surelearn("audit n.csv --target -1", QUICK)
    assert "n.csv: its first line looks like data" in refusal(result)
    assert "--no-header" in result.stderr
    assert result.stdout == ""
    assert names(place) == before
    result = surelearn("audit n.csv --header --target -1", QUICK)
    assert result.exit_code == 0, result.output


def test_positions_of_the_target_are_explained(place):
    assert "1 is the first column, -1 the last" in refusal(
        surelearn("audit t.csv --target 9", QUICK)
    )
    assert "1 is the first column, -1 the last" in refusal(surelearn("audit t.csv", QUICK))
    assert "1 is the first column, -1 the last" in " ".join(
        surelearn("audit --help").stdout.split()
    )
    result = surelearn("audit t.csv --target -1", QUICK)
    assert "target y, column 4 of 4 (--target -1)" in result.stdout
