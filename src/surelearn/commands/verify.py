"""`surelearn verify`: is an audit's folder what its facts, model and data give?"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from surelearn.commands.certify_models import models_given
from surelearn.terminal import say

EXAMPLES = """
\b
Examples:
  surelearn verify surelearn-audit                            claims from facts, pages from numbers, hashes
  surelearn verify surelearn-audit --data titanic.csv         also the facts from model and data
  surelearn verify surelearn-certify --data rows.csv --model model.onnx    the model answers again
"""


@click.command("verify", epilog=EXAMPLES)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--data",
    metavar="FILE",
    help="The audited table (or built-in set): everything is measured again.",
)
@click.option("--model", metavar="MODEL",
              help="Of a certified MODEL file: the same file, which answers the rows again.")  # fmt: skip
@click.option("--against", metavar="MODEL", help="The other model's file, if there was one.")
@click.option("--weights", multiple=True, metavar="FILE",
              help="Of a model that is MODULE:FACTORY: its .safetensors file.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Print only what differs.")
def command(
    folder: Path,
    data: str | None,
    model: str | None,
    against: str | None,
    weights: tuple[str, ...],
    quiet: bool,
) -> None:
    """Verify the FOLDER of an audit: recompute its claims, compare hashes. Exits with 1 if
    anything differs.
    """
    from surelearn.auditing.verification import verify_folder

    models = None if model is None else models_given(model, against, weights)
    if model is None and (against is not None or weights):
        raise ValueError("--against and --weights go with --model")
    if model is not None and data is None:
        raise ValueError("--model goes with --data, the rows that it answers")
    found = verify_folder(folder, data, models)
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
