"""The Markdown for a pull request: short, complete, and inert."""

import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from surelearn.certificate import Certificate, Facts
from surelearn.lacking import Lacking
from surelearn.report import Audit, Verdict
from surelearn.report.markdown import plain, prose, render

SAMPLE = runpy.run_path(str(Path(__file__).with_name("sample.py")))


def test_code_stays_code():
    assert prose("use `surelearn watch` | *now*") == "use `surelearn watch` \\| \\*now\\*"
    assert html(prose("`--drop a_b`")) == "<p><code>--drop a_b</code></p>\n"
    assert prose("`--positive '<b>'`") == plain("`--positive '<b>'`")
    assert prose("one ` only") == plain("one ` only")  # a name's own backtick is inert
    assert "<code>" not in html(prose("``a` b"))


def html(text):
    return MarkdownIt("gfm-like", {"linkify": False}).render(text)


@pytest.fixture(scope="module")
def audit():
    return SAMPLE["sample_audit"]()


def test_what_it_says(audit):
    text = render(audit)
    assert text.startswith(
        "### surelearn audit: breast\\_cancer, target diagnosis\n\nOn new rows like these, at most"
        " **4.2% errors**"
    )
    assert "| Guaranteed, 95% together | measured | bound | why |" in text
    assert (
        "| Errors | 1.2% | at most **4.2%** | Clopper–Pearson, half of δ, 171 rows, 2 errors |"
        in text
    )
    assert "(worst of 4)" in text
    assert "**Also proved**, each alone at its own confidence" in text
    assert (
        "- Certified radius of row 7: at least **0.5** (always, distance to a hyperplane)" in text
    )
    assert "needs none" not in text  # it says nothing
    assert "**warning** Three pairs of columns" in text
    assert "SL301" not in text  # a notice
    assert "Held-back rows were not used before." in text
    assert f"```\n{audit.reproduce}\n```" in text
    assert "statistical, not regulatory" in text
    assert len(text) < 3000


def test_the_table_is_a_table(audit):
    page = html(render(audit))
    assert page.count("<table>") == 1
    assert page.count("<tr>") == 1 + 7
    assert all(row.count("</td>") == 4 for row in page.split("<tr>")[2:])


def test_nothing_guaranteed():
    certificate = Certificate(
        facts=Facts(subject="m", setting="s"),
        claims=(),
        lacking=(Lacking(what="risk", reason="no rows"),),
    )
    audit = Audit(title="t", target="", rows=1, columns=1, verdict=Verdict(kind="no verdict", sentence="None."), chips=(),
                  certificate=certificate, sections=())  # fmt: skip
    text = render(audit)
    assert "**Nothing is guaranteed.**" in text
    assert "- no claim about risk: no rows" in text
    assert "(no verdict)" in text
    assert "Reproduce" not in text


def test_serious_findings_come_first(audit):
    hostile = SAMPLE["hostile_audit"](["name"])
    text = render(replace(hostile, sections=(*audit.sections, *hostile.sections)))
    assert text.index("**serious**") < text.index("**warning**")


def test_hostile_names_are_only_text():
    text = render(SAMPLE["hostile_audit"]())
    page = html(text)
    for tag in ("<script", "<img", "<a ", "<svg", "<style"):
        assert tag not in page
    assert "@team" not in text.split("**Reproduce**")[0]
    text.encode()


@given(st.text(max_size=100))
@settings(deadline=None)
def test_any_text_stays_itself(text):
    page = html(f"x {plain(text)} x")
    assert page.count("<") == 2  # the paragraph
    assert "\n" not in plain(text)


def test_a_command_with_backticks_stays_inside_its_fence(audit):
    command = "run\n```\n<script>"
    page = html(render(replace(audit, reproduce=command)))
    assert "<code>run\n```\n&lt;script&gt;\n</code>" in page
