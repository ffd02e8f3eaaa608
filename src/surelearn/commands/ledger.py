"""`surelearn ledger`: which looks at held-back rows are recorded, where, for which file."""

from __future__ import annotations

from pathlib import Path

import click

from surelearn.terminal import say, shorten

EXAMPLES = """
\b
Examples:
  surelearn ledger                          every look that your own ledger has
  surelearn ledger titanic.csv              also those in the ledger beside the file
  surelearn ledger --ledger shared.json     those of a named ledger
"""


@click.command("ledger", epilog=EXAMPLES)
@click.argument("source", required=False, type=click.Path(path_type=Path))
@click.option(
    "--ledger",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A ledger that was named.",
)
def command(source: Path | None, ledger: Path | None) -> None:
    """List the recorded looks at held-back rows: each of them makes the next one at the same
    rows stricter.
    """
    from surelearn.selection.ledger import Ledger, ledger_paths

    for path in ledger_paths(source, ledger):
        looks = Ledger(path).looks
        counted = "1 look" if len(looks) == 1 else f"{len(looks):,} looks"
        say(f"{path}  {counted if path.exists() else 'no such file yet'}")
        for look in sorted(looks, key=lambda look: (look.when, look.turn)):
            what = f"{look.kind}{f', {look.answer}' if look.answer else ''}"
            target = f", target {shorten(look.target, 40)}" if look.target else ""
            when = look.when or "before dates were kept"
            name = shorten(look.name or "a fitted model", 60)
            say(f"  {when:<22} look {look.turn:<3} {what:<11} {look.rows:>9,} rows  {name}{target}")
