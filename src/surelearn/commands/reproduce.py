"""`surelearn reproduce`: published experiments, run again."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelearn.commands.out import check_out, journal_beside
from surelearn.terminal import ctrl_c, say
from surelearn.version import __version__

if TYPE_CHECKING:
    from surelearn.papers.reproduction import Reproduction

EXAMPLES = """
\b
Examples:
  surelearn reproduce                                     what there is
  surelearn reproduce thesis-table-5.1
  surelearn reproduce thesis-figure-5.1 --problems 20     a smaller one
  surelearn reproduce thesis-figure-5.1 --settings        what the thesis leaves open
  surelearn reproduce thesis-figure-5.1 --set thresholds=data --set ties=largest
"""


@click.command("reproduce", epilog=EXAMPLES)
@click.argument("name", required=False)
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything that is drawn.")
@click.option("--problems", type=int, help="How many problems are drawn, where there are problems.")
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="SETTING=VALUE",
    help="Another reading of the paper (repeatable).",
)
@click.option("--settings", "listed", is_flag=True, help="List what can be set, and run nothing.")
@click.option(
    "--jobs",
    type=int,
    default=None,
    help="Parallel tasks (default: all cores); results do not depend on it.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for the page and the numbers  [default: surelearn-NAME]",
)
@click.option("--quiet", is_flag=True, help="Print where the files are only.")
def command(
    name: str | None,
    seed: int,
    problems: int | None,
    given: tuple[str, ...],
    listed: bool,
    jobs: int | None,
    out: Path | None,
    quiet: bool,
) -> None:
    """Run a published experiment again and write its page; without a NAME list what there is."""
    from surelearn.papers import REPRODUCTIONS, find

    if name is None:
        width = max(map(len, REPRODUCTIONS))
        for key, (_, sentence) in REPRODUCTIONS.items():
            say(f"{key:<{width}}  {sentence}")
        return
    found = find(name)
    if listed:
        for key, (default, meaning) in found.meanings().items():
            say(f"{key}={default}  {meaning}")
        return
    settings = found.read(_given(name, problems, given, found))
    if jobs == 0:
        raise ValueError(
            "--jobs must not be 0: say 1 for one task at a time, or nothing for all cores"
        )
    _reproduce(
        name, found, settings, seed, jobs, Path(f"surelearn-{name}") if out is None else out, quiet
    )


def _given(
    name: str, problems: int | None, given: tuple[str, ...], found: Reproduction
) -> dict[str, str]:
    values = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set {text!r} must be SETTING=VALUE, such as ties=largest")
        values[key.strip()] = value.strip()
    if problems is not None:
        if "problems" not in found.meanings():
            raise ValueError(f"{name} draws no problems: leave --problems out")
        values["problems"] = str(problems)
    return values


def _reproduce(
    name: str,
    found: Reproduction,
    settings: Any,
    seed: int,
    jobs: int | None,
    out: Path,
    quiet: bool,
) -> None:
    from surelearn.jobs import Runner, rich_progress
    from surelearn.papers.page import Made, to_html, to_json

    check_out(out)
    values, meanings = asdict(settings), found.meanings()
    made = Made(
        name=name,
        command=_command(name, seed, values, meanings),
        seed=seed,
        settings=values,
        meanings=meanings,
    )
    # more problems go on from fewer
    run_key = hashlib.sha256(f"{name}/{seed}/{__version__}".encode()).hexdigest()
    with journal_beside(out, run_key) as journal:
        runner = Runner(
            n_jobs=jobs if jobs is not None else -1,
            journal=journal,
            progress=(lambda label: None) if quiet else rich_progress,  # noqa: ARG005
            heed=ctrl_c.again,
        )
        outcome = found.run(settings, seed, runner)
        _write(out, {"results.json": to_json(outcome, made), "report.html": to_html(outcome, made)})
        journal.delete()
    if not quiet:
        say(f"{outcome.source}: {outcome.headline}")
        for sentence in outcome.findings:
            say(f"  {sentence}")
    say(f"page  {out / 'report.html'}   numbers  {out / 'results.json'}")


def _command(
    name: str, seed: int, values: dict[str, Any], meanings: dict[str, tuple[Any, str]]
) -> str:
    """The command that gives this page again."""
    words = ["surelearn", "reproduce", name, *(["--seed", str(seed)] if seed else [])]
    for key, value in values.items():
        if value != meanings[key][0]:
            words += (
                ["--problems", str(value)] if key == "problems" else ["--set", f"{key}={value}"]
            )
    return shlex.join(words)


def _write(out: Path, texts: dict[str, str]) -> None:
    from surelearn.files import write

    try:
        for name, text in texts.items():
            write(out / name, text)
    except OSError as error:
        raise OSError(f"--out {out} cannot be written: {error.strerror or error}") from None
