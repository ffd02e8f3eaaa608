"""Names that would run, redirect or draw something are inert."""

import os
import re
import shutil

import pytest
from tests.commands.audit.steps import (
    QUICK,
    Page,
    audit,
    page_text,
    prepare,
    surelearn,
    write_table,
)

from surelearn.data import read_table
from surelearn.report import Audit

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "closing": "</title></style></svg><img src=x onerror=alert(1)>",
    "quotes": "\" onmouseover='alert(1)' x=\"",
    "line break": "first\nsecond\r\nthird",
    "long": "very long " * 500,
    "endless": "x" * 5000,
    "unicode": "größe 🦆 عمر \u202etfel",
    "stars": "**bold** 9**",
    "backticks": "`code` ``` {{7*7}} {% raw %} ${x}",
    "terminal": "\x1b[2J\x1b]0;owned\x07",
    "Markdown": "[click](javascript:alert(1)) @team # |",
}


def write_hostile(path, columns, label):
    """The good table with other names of columns and another name of the class "yes"."""
    quoted = '"{}"'.format(label.replace('"', '""'))
    text = write_table(path, columns).read_text(encoding="utf-8")
    path.write_text(
        re.sub(r"\byes$", lambda _: quoted, text, flags=re.M), encoding="utf-8", newline=""
    )


def check_inert(place, tame, result):
    assert result.exit_code == 0, result.output
    out = place / "surelearn-audit"
    text, markdown = (
        (out / name).read_text(encoding="utf-8") for name in ("report.html", "report.md")
    )
    page = Page(text)
    assert page.tags <= tame.tags
    assert page.attributes <= tame.attributes
    assert len(text.encode()) < 1_000_000
    assert "\x1b" not in result.stdout + text + markdown
    outside = re.sub(r"^(`{3,}).*?^\1$", "", markdown, flags=re.M | re.S)
    assert "### surelearn audit" in outside
    assert "```" not in outside
    assert not re.search(r"<(?!/?sub>)", outside)
    assert "](" not in outside
    document = Audit.from_json((out / "audit.json").read_text(encoding="utf-8"))
    assert (
        max(len(line) for line in result.stdout.splitlines() if "new rows like these" not in line)
        < 1000
    )
    assert document.verdict.text.startswith("On new rows like these")
    assert document.certificate.verify()


@pytest.fixture(scope="module")
def tame(tmp_path_factory):
    """A page with every kind of element."""
    folder = tmp_path_factory.mktemp("tame")
    with pytest.MonkeyPatch.context() as monkeypatch:
        for _ in prepare(folder, monkeypatch):
            write_hostile(
                folder / "u.csv", ("`x` " + "long " * 100, "z", "c", "y"), "`yes` " + "long " * 100
            )
            result = audit(
                "--slice c", ["--positive", ("`yes` " + "long " * 100).strip()], table="u.csv"
            )
            assert result.exit_code == 0, result.output
    return Page((folder / "surelearn-audit" / "report.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_name_is_inert(case, place, tame):
    name = HOSTILE[case]
    write_hostile(place / "u.csv", (name, "z", "c", "y"), "yes" if case == "terminal" else name)
    table = read_table(place / "u.csv", target="y")  # which strips names
    column, label = table.columns[0].name, (set(table.y.tolist()) - {"no"}).pop()
    assert column[:3] == name.strip()[:3]
    result = audit(
        "--format html --format md", ["--positive", label, "--slice", column], table="u.csv"
    )
    check_inert(place, tame, result)


def test_all_hostile_names_at_once(place, tame):
    """With the preparation of columns that the default candidates have."""
    few = [HOSTILE[case] for case in ("script", "line break", "stars", "backticks")]
    write_hostile(place / "u.csv", few, HOSTILE["closing"])
    target = read_table(place / "u.csv", target=-1).target
    models = (
        "--format html --format md --model models_of_cli_tests:prepared --jobs 1 --ledger"
        " ledger.json"
    )
    check_inert(place, tame, surelearn(["audit", "u.csv", "--target", target], models))


@pytest.mark.parametrize(
    "file", ["<i>&.csv", "a b'c\".csv", "größe.csv", os.fsdecode(b"not-utf8-\xff.csv")]
)
def test_a_hostile_file_name(file, place, tame):
    shutil.copy(place / "t.csv", place / file)
    result = surelearn(["audit", file], "--target y --format html --format md", QUICK)
    check_inert(place, tame, result)
    assert file[:9] in page_text(place / "surelearn-audit")
