"""The page "from CSV to production" does what it shows: its files are written, its commands
run, their output compared.
"""

import importlib
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests import loaded
from tests.commands.audit.steps import without_progress

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {
    "production.rst": {"plan", "audit", "gate", "predict", "watch", "verify"},
    "certify.rst": {"certify", "gate", "watch", "verify"},
    "certify-models.rst": {"certify", "verify"},
    "prediction-sets.rst": {"certify", "verify", "watch"},
}
BLOCK = re.compile(
    r"^\.\. code-block:: (python|console)\n(?:   :caption: (\S+)\n)?\n((?:   .*\n|\n)+)",
    re.MULTILINE,
)


def blocks(page):
    for kind, caption, body in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
        yield kind, caption, textwrap.dedent(body).strip("\n")


def steps(body):
    """Commands of a console block, each with the output that the page shows."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown.rstrip("\n")


def matches(shown, printed):
    """Whether the output is the one shown, where … is anything."""
    pattern = ".*".join(map(re.escape, shown.split("…")))
    return re.fullmatch(pattern, printed.rstrip("\n"), flags=re.DOTALL) is not None


def run_the_page(page, folder, environment):
    """Write its files and run its commands, each in a shell; the first words of each."""
    status, ran = 0, []
    for kind, caption, body in blocks(page):
        if kind == "python":
            if caption:
                (folder / caption).write_text(body)
            continue
        for command, shown in steps(body):
            done = subprocess.run(  # noqa: S603
                ["bash", "-c", f"(exit {status}); {command}"],  # noqa: S607
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=300,
            )
            assert matches(shown, without_progress(done.stdout)), f"$ {command}\n{done.stdout}"
            status = done.returncode
            ran.append(command.split()[:2])
    return ran


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the page is for a POSIX shell")
@pytest.mark.parametrize("page", PAGES)
def test_the_page_does_what_it_shows(page, tmp_path):
    programs = [str(loaded.programs()), str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {
        **{name: value for name, value in os.environ.items() if name != "CI"},  # a person's shell
        "PATH": os.pathsep.join(programs),
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "200",
    }
    ran = run_the_page(page, tmp_path, environment)
    named = {command[1] for command in ran if command[0] == "surelearn"}
    assert named == PAGES[page]


def test_what_matches():
    assert matches("a …\nb", "a 1\n2\nb\n")
    assert not matches("a\nb", "a\nc")
    assert not matches("", "something")


@pytest.mark.parametrize("page", ["robustness", "poisoning", "privacy", "attribution"])
def test_all_code_of_the_pages_on_trust_is_a_doctest(page):
    """pytest runs what follows >>> on every page, and nothing else."""
    text = (DOCS / f"{page}.rst").read_text(encoding="utf-8")
    assert ">>> " in text
    assert set(re.findall(r"code-block:: (\w+)", text)) <= {"pycon"}
    assert not re.search(
        r"::\n\n +(?!>>>)\S",
        re.sub(r"\.\. (list-table|toctree|note|image)::.*\n(?: .*\n|\n)+", "", text),
    )


def test_the_way_of_a_row_names_modules_that_exist():
    text = (DOCS / "flow.rst").read_text(encoding="utf-8")
    named = set(re.findall(r"surelearn(?:\.[a-z_]+)+", text))
    assert {
        "surelearn.data",
        "surelearn.auditing.claims",
        "surelearn.report.audit",
        "surelearn.fingerprint",
    } <= named
    functions = {"surelearn.audit", "surelearn.gate"}
    for name in named - functions:
        importlib.import_module(name)
