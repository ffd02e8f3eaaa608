"""`surelearn certify`: guarantees for answers that somebody wrote down."""

from __future__ import annotations

import re
import shlex
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelearn import files
from surelearn.commands.audit import (
    check_required,
    check_risk,
    command_line,
    in_flags,
    result_lines,
    say_verdict,
)
from surelearn.commands.certify_models import model_and_rows, models_given, roles_given
from surelearn.commands.columns import of_answers
from surelearn.commands.early import EarlyPage
from surelearn.commands.out import check_out
from surelearn.terminal import ctrl_c, say, shorten

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from surelearn.auditing.answers import CountedAnswers, Units
    from surelearn.report import Audit

EXAMPLES = """
\b
Examples:
  surelearn certify answers.csv --truth label --answer predicted
  surelearn certify scored.csv --truth label --score p_cancer --positive cancer
  surelearn certify scored.csv --truth label --score p_cancer --positive cancer --require "sensitivity >= 0.95"
  surelearn certify scored.csv --truth label --probability "p_*" --sets 0.1
  surelearn certify evals.jsonl --pass passed --group conversation --slice topic
  surelearn certify evals.jsonl --grade score --loss-range 0 1
  surelearn certify ab.csv --truth label --answer new --against old
  surelearn certify duels.csv --winner winner --ours new
  surelearn certify forecasts.csv --truth y --answer yhat --loss-bound 50
  surelearn certify forecasts.csv --truth y --answer yhat --low lower --high upper
  surelearn certify rated.csv --truth anna --truth ben --truth eva --answer predicted
  surelearn certify drawn.csv --truth label --answer predicted --weight w --weight-bound 10
  surelearn certify big.parquet --truth label --answer predicted --slice topic --one-pass
  surelearn certify model.onnx rows.csv --target y --positive cancer
  surelearn certify new.txt rows.csv --target y --against old.txt

\b
Exit codes:
  0  the page is written, whatever its verdict, and a check (--max-risk, --at-least, --require) is met, if one is
     asked for
  1  the check is not met, also where there is no verdict
  2  bad input; nothing is written
"""


@click.command("certify", epilog=EXAMPLES)
@click.argument("sources", nargs=-1, required=True, metavar="[MODEL] ROWS")
@click.option("--target", metavar="COLUMN", help="With a MODEL: what is right.")
@click.option("--labels", metavar="A,B,…",
              help="With a MODEL that knows classes by position only: their labels in its order.")  # fmt: skip
@click.option("--weights", multiple=True, metavar="FILE",
              help="With a MODEL that is MODULE:FACTORY: its .safetensors file.")  # fmt: skip
@of_answers
@click.option("--positive", metavar="CLASS", help="The class that matters.")
@click.option(
    "--threshold", type=float, help="Answer --positive from this --score on (default 0.5)."
)
@click.option("--group", metavar="COLUMN",
              help="Rows with the same value belong together, such as one conversation.")  # fmt: skip
@click.option("--largest-group", type=int, metavar="ROWS",
              help="No group has more rows: adds the risk with every row counting the same.")  # fmt: skip
@click.option("--slice", "slices", multiple=True, metavar="COLUMN",
              help="Report the values of a column, or of a number the ranges in age:30,60.")  # fmt: skip
@click.option("--drop", multiple=True, metavar="COLUMN",
              help="A column that comes from the model, or says nothing (repeatable).")  # fmt: skip
@click.option("--header/--no-header", default=None, help="Whether the first line holds names.")
@click.option("--task", type=click.Choice(["classification", "regression"]),
              help="If the truth's kind is misread.")  # fmt: skip
@click.option("--cost", type=float, help="Cost of a missed --positive when a false alarm costs 1.")
@click.option("--alpha", type=float, default=0.1, show_default=True,
              help="Numbers: share that an interval may miss.")  # fmt: skip
@click.option("--loss-bound", type=float,
              help="Numbers: the absolute error is never larger; its mean is then guaranteed.")  # fmt: skip
@click.option("--require", metavar="PROMISE",
              help="Choose a threshold of --score that keeps it on new rows, and guarantee it: 'sensitivity >= 0.95'"
              " (specificity, precision, 'error <= 0.01' among the answered, 'mean_cost <= 0.2');"
              " of numbers 'mean_error <= 3'. Exit with 1 if it cannot be kept.")  # fmt: skip
@click.option("--sets", type=float, metavar="ALPHA",
              help="Prediction sets, guaranteed to miss the true class of at most this part of new rows.")  # fmt: skip
@click.option("--per-class", is_flag=True, help="--sets for each class by itself.")
@click.option("--one-pass", is_flag=True, default=None,
              help="Read the file once, in memory that does not grow with its rows"
              " (a long file is read so by itself).")  # fmt: skip
@click.option("--independent", is_flag=True,
              help="Vouch that rows are independent draws where the file contradicts it.")  # fmt: skip
@click.option("--population", type=click.Choice(["labelled"]),
              help="Only labeled rows matter, where others differ.")  # fmt: skip
@click.option("--show-rows", is_flag=True, help="Print values of single rows on the page.")
@click.option("--delta", type=float, default=0.05, show_default=True,
              help="The page may be wrong with this probability.")  # fmt: skip
@click.option("--ledger", type=click.Path(dir_okay=False, path_type=Path),
              help="Where uses of these rows are recorded.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), default=Path("surelearn-certify"), show_default=True,
              help="Folder for the page, the numbers and the certificate.")  # fmt: skip
@click.option("--format", "formats", multiple=True, type=click.Choice(["html", "md"]), default=["html"],
              show_default=True)  # fmt: skip
@click.option("--max-risk", type=float, help="A check: exit with 1 unless at most this share of errors (failures, lost"
              " duels), or with --cost this mean cost, is guaranteed.")  # fmt: skip
@click.option("--at-least", type=float, help="A check: exit with 1 unless a pass rate, mean grade or win rate of this is"
              " guaranteed.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Print the verdict only.")
def command(sources: tuple[str, ...], **given: Any) -> None:
    """Certify answers: of a vendor, a language model, another team. No model is needed; where there
    is one, in a file of surelearn, skops, ONNX, LightGBM, XGBoost, CatBoost or torch, name it first.
    """
    model, source = model_and_rows(sources, given)
    sys.exit(_certify(source, command_line(click.get_current_context()), model=model, **given))


def _certify(
    source: str,
    reproduce: str,
    *,
    ledger: Path | None,
    out: Path,
    formats: tuple[str, ...],
    max_risk: float | None,
    at_least: float | None,
    quiet: bool,
    one_pass: bool | None,
    model: str | None = None,
    **given: Any,
) -> int:
    from surelearn.auditing.answers import (
        Units,
        ask_models,
        audit_counted,
        audit_units,
        check_goal,
        check_goals,
        read_units,
        roles_and_options,
    )
    from surelearn.auditing.answers.one_pass import counted_if
    from surelearn.auditing.looks import open_ledger
    from surelearn.auditing.options import OptionError
    from surelearn.jobs import Runner, rich_progress

    flags = {str(p.name): p.opts[0] for p in click.get_current_context().command.params}
    try:
        stated = (
            {name: value for name, value in given.items() if value not in (None, ())}
            if model is None
            else roles_given(given)
        )
        roles, options = roles_and_options(stated, answered=model is not None)
        if max_risk is not None or at_least is not None:
            check_goals(max_risk, at_least, roles)
    except OptionError as error:
        raise ValueError(error.in_terms_of(flags)) from None
    if options.require is not None and (max_risk is not None or at_least is not None):
        other = "--max-risk" if at_least is None else "--at-least"
        raise ValueError(f"{other} and --require are two checks: leave out one")
    check_out(out)
    if ledger is not None:
        files.check_regular(ledger, f"--ledger {ledger}")
    tell = (lambda line: None) if quiet else say  # noqa: ARG005
    page = EarlyPage(out, formats, partial(say_verdict, quiet=quiet), tell)
    runner = Runner(
        n_jobs=1,
        progress=(lambda label: None) if quiet else rich_progress,  # noqa: ARG005
        heed=ctrl_c.again,
        say=tell,
        command=reproduce,
        early=page,
    )
    walked = options.require is not None
    if model is None:
        with in_flags():
            counted = counted_if(source, roles, options, one_pass, runner)
        units = counted or read_units(source, roles, options.positive, walked=walked)
    else:
        models = models_given(model, given["against"], given["weights"])
        units, roles = ask_models(source, roles, options.positive, models, walked=walked)
    with in_flags():
        check_goal(units, options, max_risk, at_least)
    open_ledger(ledger, units.path)  # one that cannot be read is refused before anything is said
    for line in _units_lines(units):
        tell(line)
    ctrl_c.under_way = True
    with in_flags(), _said_in_flags(flags):
        if isinstance(units, Units):
            result = audit_units(units, roles, options, ledger, runner)
        else:
            result = audit_counted(units, roles, options, ledger, runner)
    paths = page.finish(result)
    for line in () if quiet else result_lines(result, paths):
        say(line)
    if result.verdict.kind == "no verdict":
        tell(_again(result, reproduce))
    if options.require is not None:
        return check_required(result, tell)
    return check_risk(result, max_risk, tell, at_least)


def _again(result: Audit, reproduce: str) -> str:
    """The command that has a verdict, as far as it is known."""
    named = next((f.numbers for f in result.findings if "option" in f.numbers), None)
    if named is None:
        what = "--drop COLUMN"
    elif named["option"] == "--group":
        what = f"--group {shlex.quote(str(named['column']))}"
    else:
        what = "--independent"
    return f"for a verdict: {reproduce} {what}"


@contextmanager
def _said_in_flags(flags: Mapping[str, str]) -> Generator[None]:
    """Refusals that name arguments of `surelearn.certify` name options instead."""
    from surelearn.auditing.options import OptionError

    try:
        yield
    except OptionError:
        raise
    except ValueError as error:
        names = "|".join(name for name in flags if "_" in name)
        said = re.sub(
            rf"(?<!['\w])({names})\b(?:=\(([^()]*)\)|=([^\s,;]+))?",
            lambda found: " ".join(
                [flags[found[1]], *(found[2] or found[3] or "").replace(",", "").split()]
            ),
            str(error),
        ).replace(
            "weights that are known up to a factor go with proportional=True",
            "is N in w = 1/(N·q) the number of rows of the whole file?",
        )
        if said == str(error):
            raise
        raise ValueError(said) from None


def _units_lines(units: Units | CountedAnswers) -> Iterator[str]:
    """What was read."""
    import numpy as np

    from surelearn.auditing.answers import CountedAnswers

    one_pass = isinstance(units, CountedAnswers)
    rows = f"{units.rows if one_pass else len(units.y):,} rows"
    if one_pass:
        of_groups = "" if units.groups is None else f" of {units.groups:,} groups"
        rows += f"{of_groups} in one pass"
    elif units.groups is not None:
        rows += f" of {len(set(units.groups.tolist())):,} groups"
    if units.task == "classification":
        if one_pass:
            counts = units.labels
        else:
            labels, numbers = np.unique(np.asarray(units.y, dtype=str), return_counts=True)
            counts = dict(zip(labels.tolist(), numbers.tolist(), strict=True))
        order = sorted(counts, key=lambda label: -counts[label])[:6]
        told = ", ".join(f"{shorten(label)}: {counts[label]:,}" for label in order)
        more = ", …" if len(counts) > 6 else ""
        yield f"{units.name}  {rows}, truth {shorten(units.target)} ({told}{more})"
    else:
        yield f"{units.name}  {rows}, {shorten(units.target)}"
    for finding in units.findings:
        yield f"  {shorten(finding.text, 300)} ({finding.code})"
