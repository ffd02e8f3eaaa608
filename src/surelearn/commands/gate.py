"""`surelearn gate`: pass or fail, for people who improve a model against the same held-back
rows.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelearn import files
from surelearn.commands.audit import check_options, in_flags, load_models
from surelearn.commands.columns import given_by_name, names_of_answers, of_answers
from surelearn.commands.out import check_out, named_out
from surelearn.terminal import no_exit, say, shorten

if TYPE_CHECKING:
    from surelearn.auditing.gate import Gate

_OF_TABLES = (
    "target", "keep", "models", "prefer", "metric", "minutes", "certify_fraction", "seed", "jobs",
    "target_range", "width",
)  # fmt: skip
EXAMPLES = """
\b
Examples:
  surelearn gate data.csv --target y --max-risk 0.05                      pass (exit 0) or fail (exit 1), and nothing else
  surelearn gate data.csv --target y --max-risk 0.05 --model mine:make    a better model: the next try
  surelearn gate data.csv --target sick --positive yes --require "sensitivity >= 0.95"
  surelearn gate data.csv --target y --max-risk 0.05 --try 7              where no ledger outlives a run, as in CI
  surelearn gate answers.csv --truth label --answer said --max-risk 0.05  answers of any system to the same rows
\b
Of k tries the k-th has the failure probability 6δ/(π²k²), together δ. That holds however the models were developed,
up to the first pass, if nobody trains on or looks at the held-back rows and no number about them was shown before.
Where that is not trusted, they must lie where developers cannot read them.
"""


@click.command("gate", epilog=EXAMPLES)
@click.argument("source", required=False)
@click.option(
    "--max-risk",
    type=float,
    help="Pass if this risk (with --cost: mean cost) is guaranteed.",
)
@click.option("--require", metavar="PROMISE",
              help="Instead of --max-risk: pass if an operating point that keeps it is guaranteed, such as"
              " 'sensitivity >= 0.95'.")  # fmt: skip
@click.option(
    "--at-least", type=float, help="Of --pass, --grade, --winner: pass if this is guaranteed."
)
@of_answers
@click.option(
    "--target",
    help="Column to predict, by name or by position: 1 is the first column, -1 the last.",
)
@click.option(
    "--header/--no-header",
    default=None,
    help="Whether the first line holds the names of the columns.",
)
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out (repeatable).")
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    help="Vouch for a column that looks like the target (repeatable).",
)
@click.option(
    "--group",
    metavar="COLUMN",
    help="Rows with the same value belong together, such as one patient's visits.",
)
@click.option(
    "--independent",
    is_flag=True,
    help="Vouch that rows are independent draws, whatever they look like.",
)
@click.option(
    "--population",
    type=click.Choice(["labelled"]),
    help="Only labeled rows matter, where others differ.",
)
@click.option(
    "--task",
    type=click.Choice(["classification", "regression"]),
    help="If the target's kind is misread.",
)
@click.option("--positive", metavar="CLASS", help="The class that matters.")
@click.option("--cost", type=float, help="Cost of a missed --positive when a false alarm costs 1.")
@click.option("--alpha", type=float, default=0.1, show_default=True,
              help="Regression: share that an interval may miss.")  # fmt: skip
@click.option("--loss-bound", type=float,
              help="Regression: the absolute error is never larger, for --require 'mean_error <= 3'.")  # fmt: skip
@click.option("--target-range", type=float, nargs=2, metavar="LEAST MOST",
              help="Regression: what the target can be, as stated: intervals are clipped to it.")  # fmt: skip
@click.option("--width", type=click.Choice(["constant", "normalized", "quantiles"]),
              help="Regression, with --require: the form of the intervals.")  # fmt: skip
@click.option(
    "--threshold",
    type=float,
    help="Answer --positive from this probability t on; implies --cost (1 − t)/t.",
)
@click.option(
    "--model",
    "models",
    metavar="NAMES|MODULE:FACTORY",
    help="Candidates by name, with commas; or your own.",
)
@click.option(
    "--prefer", type=click.Choice(["best", "simplest"]), default="best", show_default=True
)
@click.option("--metric", metavar="NAME", help="What candidates are compared by, as in an audit.")
@click.option("--minutes", type=float, help="Time to choose among more candidates, as in an audit.")
@click.option(
    "--certify",
    "certify_fraction",
    type=float,
    help="Fraction of rows held back (default follows their number).",
)
@click.option(
    "--delta",
    type=float,
    default=0.05,
    show_default=True,
    help="All tries together pass falsely with this.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="For folds and random models; never for the split.",
)
@click.option(
    "--jobs",
    type=int,
    default=None,
    help="Parallel tasks (default: all cores); results do not depend on it.",
)
@click.option(
    "--try",
    "number",
    type=click.IntRange(min=1),
    metavar="K",
    help="Which try on these rows this is.",
)
@click.option(
    "--ledger", type=click.Path(dir_okay=False, path_type=Path), help="Where tries are counted."
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("surelearn-gate"), show_default=True,
              help="Folder for the certificate and the model of a pass; a fail writes nothing.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Print the answer only.")
def command(source: str | None, **given: Any) -> None:
    """Let a model pass if a risk of at most --max-risk is guaranteed; of held-back rows nothing
    else is told.
    """
    context, columns = click.get_current_context(), names_of_answers()
    if given_by_name(context, columns):
        if source is None:
            raise ValueError("name the file of answers: there is no built-in one")
        sys.exit(_gate_answers(source, context, **given))
    for name in (*columns, "at_least"):
        if given_by_name(context, [name]):
            raise ValueError("--at-least goes with --pass, --grade or --winner, for answers")
        del given[name]
    with no_exit("the model"):
        code = _gate(source, **given)
    sys.exit(code)


def _gate_answers(
    source: str,
    context: click.Context,
    *,
    max_risk: float | None,
    at_least: float | None,
    ledger: Path | None,
    number: int | None,
    out: Path,
    quiet: bool,
    **given: Any,
) -> int:
    """Of answers that somebody wrote down."""
    from surelearn.auditing.answers import gate_answers
    from surelearn.auditing.options import OptionError

    if wrong := given_by_name(context, list(_OF_TABLES)):
        raise ValueError(f"{wrong[0]} goes with a table to fit on, not with recorded answers")
    flags = {str(p.name): p.opts[0] for p in context.command.params}
    stated = {
        name: value
        for name, value in given.items()
        if name not in _OF_TABLES and value not in (None, (), False)
    }
    check_out(out)
    if ledger is not None:
        files.check_regular(ledger, f"--ledger {ledger}")
    try:
        answer = gate_answers(
            source, max_risk=max_risk, at_least=at_least, ledger=ledger, number=number, **stated
        )
    except OptionError as error:
        raise ValueError(error.in_terms_of(flags)) from None
    tell = (lambda line: None) if quiet else say  # noqa: ARG005
    tell(f"{source}  {answer.rows:,} rows, {answer.chosen}")
    return _told(answer, out, tell, quiet=quiet)


def _gate(
    source: str | None,
    *,
    max_risk: float | None,
    models: str | None,
    ledger: Path | None,
    number: int | None,
    out: Path,
    jobs: int | None,
    quiet: bool,
    **given: Any,
) -> int:
    from surelearn.auditing.gate import check_counted, gate
    from surelearn.auditing.looks import open_ledger
    from surelearn.data import read_table
    from surelearn.jobs import Runner, rich_progress
    from surelearn.plain import show

    reading = {name: given.pop(name) for name in ("target", "header", "drop", "group", "task")}
    options = check_options(
        {name: value for name, value in given.items() if name != "keep"}, jobs, max_risk
    )
    if (max_risk is None) == (options.require is None):
        raise ValueError("say --max-risk, the risk to be guaranteed, or --require, and not both")
    check_counted(ledger, number)
    check_out(out)
    candidates = load_models("--model", models)
    table = read_table(source, **reading)
    open_ledger(ledger, table.path)  # one that cannot be read is refused before anything is said
    tell = (lambda line: None) if quiet else say  # noqa: ARG005
    tell(
        f"{table.name}  {len(table.y):,} rows, {table.frame.shape[1] - 1:,} columns, target"
        f" {shorten(table.target)}"
    )
    runner = Runner(
        n_jobs=jobs if jobs is not None else -1,
        progress=(lambda label: None) if quiet else rich_progress,  # noqa: ARG005
        say=tell,
    )
    with in_flags():
        answer = gate(
            table,
            max_risk=max_risk,
            models=candidates,
            ledger=ledger,
            number=number,
            runner=runner,
            **given,
        )
    what, unit = "errors", "rate"
    if options.miss is not None:
        what, unit = "mean cost", "number"
    elif table.task == "regression":
        what, unit = "mean absolute error", "number"
    measured = math.nan if answer.error is None else answer.error
    tell(
        f"{shorten(answer.chosen)} chosen; {what} {show(measured, unit)} on the rows to fit on, by"
        " which it was chosen"
    )
    return _told(answer, out, tell, quiet=quiet)


def _told(answer: Gate, out: Path, tell: Callable[[str], None], *, quiet: bool) -> int:
    """Say the answer, and write what a pass may show."""
    from surelearn.persistence.folder import write_folder
    from surelearn.plain import percent_sure

    again = ", answered before" if answer.repeated else ""
    tell(f"try {answer.number} on these rows{again}, at {percent_sure(answer.delta)} confidence")
    if answer.certificate is None:
        say("gate: fail")
        return 1
    say("gate: pass")
    texts = {"certificate.json": answer.certificate.published().to_json() + "\n"}
    kept = {
        "certificate": answer.certificate.published(),
        "schema": answer.schema,
        "reference": answer.reference,
    }
    with named_out():
        paths = write_folder(
            out, texts, answer.model, kept, {"certificate": "certificate.json", "model": "model"}
        )
    for line in "" if quiet else str(answer.certificate).splitlines():
        say(line)
    tell("The gate of these rows is closed now: hold back new ones for the next model.")
    tell("   ".join(f"{name}  {path}" for name, path in paths.items()))
    return 0
