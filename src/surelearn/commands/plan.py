"""`surelearn plan`: how many labeled rows to hold back."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from surelearn.planning import Plan

EXAMPLES = """
\b
Examples:
  surelearn plan --max-risk 0.05                         if no error is expected
  surelearn plan --max-risk 0.05 --expected-risk 0.02
  surelearn plan --max-risk 0.05 --expected-risk 0.02 --rows 1000 --plot power.svg
  surelearn plan --interval 0.1                          regression: an interval for 90% of new targets
  surelearn plan --sets 0.1                              prediction sets for 90% of new rows
  surelearn plan --min-sensitivity 0.9 --expected-sensitivity 0.95 --prevalence 0.1
  surelearn plan --min-gain 0.02 --expected-gain 0.05 --disagreement 0.1
"""


@click.command("plan", epilog=EXAMPLES)
@click.option("--max-risk", type=float, help="Certify at most this part of errors.")
@click.option("--at-least", type=float,
              help="Certify a pass rate or win rate of at least this: --max-risk of one less it.")  # fmt: skip
@click.option(
    "--expected-risk", type=float, help="The errors that you expect in truth (default: none)."
)
@click.option(
    "--interval",
    type=float,
    metavar="ALPHA",
    help="Certify an interval that misses at most this part of targets.",
)
@click.option(
    "--min-sensitivity",
    type=float,
    help="Certify that at least this part of positives is recognized.",
)
@click.option(
    "--expected-sensitivity", type=float, help="The part that you expect in truth (default: all)."
)
@click.option(
    "--prevalence",
    type=float,
    help="The part of rows that are positive; the answer is then in rows.",
)
@click.option(
    "--min-gain",
    type=float,
    help="Certify that so much smaller a part of rows is wrong than by another model.",
)
@click.option(
    "--sets",
    type=float,
    metavar="ALPHA",
    help="Certify prediction sets that miss the true label of at most this part of rows; beside another"
    " question: the page has such sets, too.",
)
@click.option("--expected-gain", type=float, help="The difference that you expect in truth.")
@click.option(
    "--disagreement",
    type=float,
    help="The part of rows on which exactly one of the two models errs.",
)
@click.option(
    "--delta",
    type=float,
    default=0.05,
    show_default=True,
    help="The certificate may be wrong with this probability.",
)
@click.option("--candidates", type=int, default=1, show_default=True,
              help="Models compared on these same rows; an audit compares them on others, so there it is 1.")  # fmt: skip
@click.option(
    "--power",
    type=float,
    default=0.8,
    show_default=True,
    help="Wished chance that it is certified.",
)
@click.option("--rows", type=int, help="Also say what an audit of a table of so many rows can do.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the chance for every number of rows (.png, .svg).",
)
def command(plot: Path | None, at_least: float | None, **given: Any) -> None:
    """How many labeled rows to hold back, so that a model's quality can be certified.

    Ask one of --max-risk (or --at-least), --interval, --min-sensitivity, --min-gain and --sets. The numbers are for single
    rows, not for --group.
    """
    from surelearn.planning import plan

    if plot is not None and plot.suffix.lower() not in (".png", ".svg"):
        raise ValueError(f"--plot {plot} must end in .png or .svg")
    if at_least is not None:
        if given["max_risk"] is not None:
            raise ValueError("--at-least and --max-risk are two goals: leave out one")
        if not 0 < at_least < 1:
            raise ValueError(f"--at-least must be a number between 0 and 1, not {at_least:g}")
        given["max_risk"] = round(1 - at_least, 12)
    try:
        answer = plan(**given)
    except ValueError as error:
        raise ValueError(_as_options(str(error), list(given))) from None
    if plot is not None:
        _draw(answer, plot)
    click.echo(str(answer))
    if plot is not None:
        click.echo(f"plot  {plot}")


def _as_options(sentence: str, names: list[str]) -> str:
    """Arguments of `plan` as the command line calls them; "rows" also is a word, but not at the
    beginning.
    """
    names = [name if name != "rows" else "^rows" for name in names]
    return re.sub(
        rf"\b(?:{'|'.join(names)})\b", lambda match: "--" + match[0].replace("_", "-"), sentence
    )


def _draw(answer: Plan, path: Path) -> None:
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from surelearn.files import writing

    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for curve, need, color in zip(answer.curves, answer.needs, ("#0f766e", "#59626c"), strict=True):
        axes.plot(
            curve.rows,
            curve.values,
            color=color,
            linewidth=1.5,
            label=f"{need.label}: {need.rows:,}",
        )
        axes.axvline(need.rows, color=color, linewidth=0.8, linestyle=":")
    axes.axhline(answer.goal, color="#444444", linewidth=0.8, linestyle="--")
    axes.set(xlabel=f"{answer.header[0]} held back", ylabel=answer.measure)
    axes.set_title(textwrap.fill(answer.question, 88), fontsize="medium")
    axes.margins(x=0.02)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    kind = path.suffix.lower().removeprefix(".")
    with mpl.rc_context({"svg.hashsalt": "surelearn"}), writing(path) as beside:
        figure.savefig(
            beside, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None
        )
