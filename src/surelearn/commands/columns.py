"""The options that say what the columns of a file of answers are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--truth", multiple=True, metavar="COLUMN",
                 help="What is right; several columns: of several raters, whose majority counts."),
    click.option("--answer", multiple=True, metavar="COLUMN",
                 help="The answers; several columns: the first guess, the second, …"),
    click.option("--score", metavar="COLUMN", help="Probability, or any score, of --positive."),
    click.option("--probability", metavar="'p_*'",
                 help="The columns with a probability of each class: * stands for the class. Without"
                 " --answer the most probable class is the answer."),
    click.option("--pass", "passed", metavar="COLUMN", help="Whether each row passed."),
    click.option("--grade", metavar="COLUMN", help="A number for each row; higher is better."),
    click.option("--loss-range", type=float, nargs=2, metavar="LEAST MOST",
                 help="The least and the largest --grade that there can be."),
    click.option("--winner", metavar="COLUMN", help="Who won each duel."),
    click.option("--ours", metavar="NAME", help="Which --winner is ours."),
    click.option("--tie", "ties", multiple=True, metavar="WORD",
                 help="Words for a tie, which counts half (default: tie, draw, both, equal)."),
    click.option("--against", metavar="COLUMN",
                 help="Other answers to the same rows (certify MODEL: another model): is ours better?"),
    click.option("--low", metavar="COLUMN",
                 help="Numbers: the lower ends of intervals of your own; with --high."),
    click.option("--high", metavar="COLUMN", help="Numbers: the upper ends."),
    click.option("--separator", metavar="TEXT",
                 help="Splits several labels in one cell, such as ';'."),
    click.option("--weight", metavar="COLUMN",
                 help="w = 1/(N·q) of rows drawn with probabilities q, with replacement, from a file"
                 " of N rows: the claim is then about that file."),
    click.option("--weight-bound", type=float, metavar="W",
                 help="No --weight is larger, as stated."),
    click.option("--coin", is_flag=True,
                 help="All rows are given, each labeled with probability 1/--weight by its own coin:"
                 " the claim is about new rows."),
)  # fmt: skip


def of_answers(command: Command) -> Command:
    """The command with these options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def names_of_answers() -> list[str]:
    """The names of these options."""

    @of_answers
    def nothing() -> None:
        """Have the options."""

    return [parameter.name or "" for parameter in nothing.__click_params__]  # type: ignore[attr-defined]


def given_by_name(context: click.Context, names: list[str]) -> list[str]:
    """Which of the parameters with these names were said on the command line, as they are said."""
    return [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in names
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
