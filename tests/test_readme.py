"""What the README and the examples show is what happens."""

import contextlib
import io
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_readme_says():
    code, printed = re.search(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL
    ).groups()  # pyright: ignore
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code, {})  # noqa: S102 - our own README
    assert output.getvalue() == printed


def test_the_index_names_things_that_exist():
    import surelearn.bounds

    index = README[README.index("## Where is") :]
    named = {
        name for name in re.findall(r"`(?:bounds\.)?(\w+)`", index) if not name.startswith("_")
    }
    known = {*surelearn.bounds.__all__, *surelearn.__all__}
    assert len(named & known) > 30
    assert not set(re.findall(r"`bounds\.(\w+)`", index)) - known


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name
)
def test_examples_run(path, capsys):
    if path.name == "kernel_machine.py":
        pytest.importorskip("torch")
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
