"""`surelearn verify`: is an audit's folder what its facts, model and data give?"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from surelearn.terminal import say

EXAMPLES = """
\b
Examples:
  surelearn verify surelearn-audit                            claims from facts, pages from numbers, hashes
  surelearn verify surelearn-audit --data titanic.csv         also the facts from model and data
"""


@click.command("verify", epilog=EXAMPLES)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--data",
    metavar="FILE",
    help="The audited table (or built-in set): everything is measured again.",
)
@click.option("--quiet", is_flag=True, help="Print only what differs.")
def command(folder: Path, data: str | None, quiet: bool) -> None:
    """Verify the FOLDER of an audit: recompute its claims, compare hashes. Exits with 1 if
    anything differs.
    """
    from surelearn.auditing.verification import verify_folder

    found = verify_folder(folder, data)
    if not quiet:
        for line in found.checked:
            say(f"  checked      {line}")
        for line in found.unchecked:
            say(f"  not checked  {line}")
    for line in found.differences:
        say(f"  differs      {line}")
    if not found:
        say(
            f"{folder}: not verified, {len(found.differences)}"
            f" difference{'s' * (len(found.differences) > 1)}"
        )
        sys.exit(1)
    if not quiet:
        say(f"{folder}: verified{'' if data else '; pass --data to measure everything again'}")
