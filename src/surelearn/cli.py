"""The command line: `surelearn COMMAND`."""

from __future__ import annotations

import click

from surelearn import terminal
from surelearn.commands import (
    audit,
    certify,
    gate,
    ledger,
    plan,
    predict,
    reproduce,
    theorems,
    verify,
    watch,
)
from surelearn.terminal import Commands
from surelearn.version import __version__


@click.group(
    cls=Commands, epilog=audit.EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="surelearn")
def main() -> None:
    """Machine learning where every fit comes with a certificate."""


for module in (audit, certify, gate, predict, watch, verify, ledger, plan, theorems, reproduce):
    main.add_command(module.command)


def run() -> None:
    """The command as a process of its own."""
    terminal.run(main)


if __name__ == "__main__":
    run()
