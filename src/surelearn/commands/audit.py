"""`surelearn audit`: read a table, audit it, write the folder."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelearn import files
from surelearn.commands.early import EarlyPage
from surelearn.commands.out import check_out, journal_beside
from surelearn.terminal import ctrl_c, no_exit, say, shorten
from surelearn.version import __version__

if TYPE_CHECKING:
    from surelearn.auditing.dividing import Divided
    from surelearn.claim import Claim
    from surelearn.data import Table
    from surelearn.report import Audit
    from surelearn.selection.candidates import Candidate
    from surelearn.types import AnyArray

EXAMPLES = """
\b
Examples:
  surelearn audit                                   breast cancer, which ships with scikit-learn
  surelearn audit titanic.csv --target Survived
  surelearn audit adult.csv --no-header --target -1 --positive ">50K"
  surelearn audit visits.csv --target sick --group patient
  surelearn audit sales.csv --target amount --time date
  surelearn audit data.csv --target sick --positive yes --require "sensitivity >= 0.95"
  surelearn audit letters.csv --target letter --sets 0.05 --per-class
  surelearn audit data.csv --target y --max-risk 0.05     exits 1 if more than 5% errors cannot be ruled out

\b
Exit codes:
  0  the page is written, whatever its verdict, and a check (--max-risk, --require) is met, if one is asked for
  1  the check is not met, also where there is no verdict
  2  bad input; nothing is written
"""


@click.command("audit", epilog=EXAMPLES)
@click.argument("source", required=False)
@click.option(
    "--target",
    help="Column to predict, by name or by position: 1 is the first column, -1 the last.",
)
@click.option("--header/--no-header", default=None, help="Whether the first line holds the names of the columns"
              " (default: yes, and a line that looks like data is refused).")  # fmt: skip
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
@click.option("--largest-group", type=int, metavar="ROWS",
              help="No group has more rows: adds the risk with every row counting the same.")  # fmt: skip
@click.option("--time", metavar="COLUMN", help="Rows are ordered in time: measure on the last ones, with --group on the last"
              " new groups; guarantee nothing.")  # fmt: skip
@click.option(
    "--independent",
    is_flag=True,
    help="Vouch that rows are independent draws where the table contradicts it.",
)
@click.option("--population", type=click.Choice(["labelled"]),
              help="Say that the page is about labeled rows, where those without a label differ.")  # fmt: skip
@click.option(
    "--task",
    type=click.Choice(["classification", "regression"]),
    help="If the target's kind is misread.",
)
@click.option("--positive", metavar="CLASS", help="The class that matters.")
@click.option("--cost", type=float, help="Cost of a missed --positive when a false alarm costs 1: the page is then about the"
              " mean cost, at the threshold that suits it.")  # fmt: skip
@click.option(
    "--threshold",
    type=float,
    help="Answer --positive from this probability t on; implies --cost (1 − t)/t.",
)
@click.option("--require", metavar="PROMISE",
              help="Choose the threshold that keeps it on new rows, and guarantee it: 'sensitivity >= 0.95' (specificity,"
              " precision; 'error <= 0.01' among the answered, 'mean_cost <= 0.2'; of numbers 'mean_error <= 3')."
              " Exit with 1 if it cannot be kept.")  # fmt: skip
@click.option("--sets", type=float, metavar="ALPHA",
              help="Prediction sets, guaranteed to miss the true class of at most this part of new rows.")  # fmt: skip
@click.option("--per-class", is_flag=True, help="--sets for each class by itself.")
@click.option(
    "--slice",
    "slices",
    multiple=True,
    metavar="COLUMN",
    help="Report subpopulations of a column (repeatable).",
)
@click.option("--skip", multiple=True, metavar="SECTION",
              help="Leave out a section: robustness, poisoning, membership, attribution, … (repeatable).")  # fmt: skip
@click.option(
    "--effort",
    type=float,
    default=1.0,
    show_default=True,
    help="Work for these four, times their usual budget.",
)
@click.option(
    "--show-rows",
    is_flag=True,
    help="Print values and labels of single rows on the page, not only row numbers.",
)
@click.option(
    "--alpha",
    type=float,
    default=0.1,
    show_default=True,
    help="Regression: share that an interval may miss.",
)
@click.option(
    "--loss-bound",
    type=float,
    help="Regression: the absolute error is never larger; its mean is then guaranteed.",
)
@click.option("--target-range", type=float, nargs=2, metavar="LEAST MOST",
              help="Regression: what the target can be, as stated: intervals are clipped to it.")  # fmt: skip
@click.option("--width", type=click.Choice(["constant", "normalized", "quantiles"]),
              help="Regression: the form of the intervals (default: the narrowest on the rows to fit on).")  # fmt: skip
@click.option("--model", "models", metavar="NAMES|MODULE:FACTORY",
              help="Candidates by name, with commas, or all; or your own; instead of the default ones.")  # fmt: skip
@click.option(
    "--against",
    metavar="NAME|MODULE:FACTORY",
    help="Another model to compare with on the same rows.",
)
@click.option("--prefer", type=click.Choice(["best", "simplest"]), default="best", show_default=True,
              help="The best candidate, or the simplest within one standard error of it.")  # fmt: skip
@click.option("--metric", metavar="NAME", help="What candidates are compared by: log-loss (default for classes), brier,"
              " accuracy, auc, average-precision, f1, …; absolute (default for numbers), squared, …")  # fmt: skip
@click.option("--minutes", type=float, help="Time to choose among more candidates and settings, on two cores, about;"
              " counted in work, so that a seed has one answer everywhere.")  # fmt: skip
@click.option("--criterion", metavar="NAME", help="What candidates are compared by: cross-validation (default), holdout"
              " (default with --select), leave-one-out, aic, bic, srm, adjusted-srm, margin, stability, …")  # fmt: skip
@click.option(
    "--certify",
    "certify_fraction",
    type=float,
    help="Fraction of rows held back (default follows their number).",
)
@click.option(
    "--select",
    "select_fraction",
    type=float,
    help="Fraction of rows that compare candidates (0: cross-validation).",
)
@click.option("--coins", is_flag=True, help="Each row's purpose is its own coin, with a secret salt: ε and counts of"
              " poisoned rows are then about the whole table.")  # fmt: skip
@click.option(
    "--delta",
    type=float,
    default=0.05,
    show_default=True,
    help="The page may be wrong with this probability.",
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
    "--ledger",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where uses of held-back rows are recorded.",
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("surelearn-audit"), show_default=True,
              help="Folder for the page, the numbers and the certificate.")  # fmt: skip
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(["html", "md"]),
    default=["html"],
    show_default=True,
)
@click.option("--max-risk", type=float,
              help="A check: exit with 1 if the guaranteed bound (on errors; with --cost on the mean cost) is above. It"
              " covers one model, fixed before any page about these rows was read; see surelearn gate.")  # fmt: skip
@click.option("--dry-run", is_flag=True,
              help="Show what was read, what is odd and how rows are divided; use no held-back row.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Print the verdict only.")
def command(source: str | None, **given: Any) -> None:
    """Audit a table: fit, select, certify, and write one page that a person can sign."""
    with no_exit("the model"):
        code = _audit(source, reproduce=command_line(click.get_current_context()), **given)
    sys.exit(code)


_NOT_ON_THE_PAGE = (
    "jobs", "quiet", "out", "ledger", "max_risk", "at_least", "formats", "dry_run",
)  # fmt: skip


def command_line(context: click.Context) -> str:
    """The command that gives this page again: what was asked, without where it goes and how it
    runs.
    """
    words = ["surelearn", str(context.command.name)]
    for parameter in context.command.params:
        value = context.params[parameter.name or ""]
        if (
            parameter.name in _NOT_ON_THE_PAGE
            or value is None
            or value == parameter.get_default(context)
        ):
            continue
        name = [] if isinstance(parameter, click.Argument) else [parameter.opts[0]]
        if isinstance(parameter.nargs, int) and parameter.nargs > 1:  # one option of several words
            words += [*name, *map(str, value)]
            continue
        for item in value if isinstance(value, tuple) else (value,):
            words += (
                parameter.secondary_opts[:1]
                if item is False
                else [*name, *([] if item is True else [str(item)])]
            )
    return shlex.join(words)


def _audit(
    source: str | None,
    *,
    reproduce: str,
    out: Path,
    formats: tuple[str, ...],
    max_risk: float | None,
    quiet: bool,
    jobs: int | None,
    dry_run: bool,
    **given: Any,
) -> int:
    from surelearn.auditing import audit
    from surelearn.auditing.gate import check_share
    from surelearn.auditing.looks import open_ledger
    from surelearn.auditing.walking import check_table
    from surelearn.auditing.widths import check_widths, with_one_distance
    from surelearn.data import read_table
    from surelearn.jobs import Runner, rich_progress

    reading = {
        name: given.pop(name) for name in ("target", "header", "drop", "group", "time", "task")
    }
    models, against, ledger = (given.pop(name) for name in ("models", "against", "ledger"))
    asked = {name: value for name, value in given.items() if name != "keep"}
    if source is None and reading["target"] is None and asked["positive"] is None:
        given["positive"] = asked["positive"] = "malignant"
    options = check_options(asked, jobs, max_risk)
    check_out(out)
    candidates, rival = load_models("--model", models), load_models("--against", against)
    table = read_table(source, **reading)
    if ledger is not None:
        files.check_regular(ledger, f"--ledger {ledger}")
    open_ledger(ledger, table.path)  # one that cannot be read is refused before anything is said
    with in_flags():
        check_table(table, options)
        check_widths(table, options)
        if max_risk is not None and table.task == "regression":
            given["width"] = with_one_distance(options).width
        elif max_risk is not None and options.miss is None:
            check_share(max_risk)
    if dry_run:
        return _dry_run(audit(table, dry_run=True, ledger=ledger, **given), reading["target"])
    tell = (lambda line: None) if quiet else say  # noqa: ARG005
    for line in _table_lines(table, reading["target"], table.y, show_rows=options.show_rows):
        tell(line)
    identities = (_identity(*one) for one in ((models, candidates), (against, rival)))
    page = EarlyPage(out, formats, partial(say_verdict, quiet=quiet), tell)
    with journal_beside(out, _run_key(table, options, given["keep"], *identities)) as journal:
        runner = Runner(
            n_jobs=jobs if jobs is not None else -1,
            journal=journal,
            progress=(lambda label: None) if quiet else rich_progress,  # noqa: ARG005
            heed=ctrl_c.again,
            say=tell,
            command=reproduce,
            early=page,  # while the long work goes on
        )
        try:
            with in_flags():
                result = audit(
                    table, models=candidates, against=rival, ledger=ledger, runner=runner, **given
                )
        except BaseException:
            if ctrl_c.pressed:
                page.keep()
            raise
        paths = page.finish(result)
        journal.delete()
    for line in () if quiet else result_lines(result, paths):
        say(line)
    if options.require is not None:
        return check_required(result, tell)
    return check_risk(result, max_risk, tell)


def say_verdict(result: Audit, *, quiet: bool) -> None:
    """Print the verdict, and beside it what is guaranteed."""
    for line in [result.verdict.text] if quiet else _verdict_lines(result):
        say(line)


def check_options(given: dict[str, Any], jobs: int | None, max_risk: float | None) -> Any:
    """The options of an audit or a gate; what cannot be is refused in the names of the command
    line.
    """
    from surelearn.auditing.options import Options

    with in_flags():
        options = Options(**given)
    if max_risk is not None and not max_risk >= 0:
        raise ValueError(f"--max-risk must be a number that is not negative, not {max_risk:g}")
    if max_risk is not None and options.require is not None:
        raise ValueError("--max-risk and --require are two checks: leave out one")
    if jobs == 0:
        raise ValueError(
            "--jobs must not be 0: say 1 for one task at a time, or nothing for all cores"
        )
    return options


@contextmanager
def in_flags() -> Generator[None]:
    """Refusals of options in the names of the command line."""
    from surelearn.auditing.options import OptionError

    flags = {
        str(parameter.name): parameter.opts[0]
        for parameter in click.get_current_context().command.params
    }
    try:
        yield
    except OptionError as error:
        raise ValueError(error.in_terms_of(flags)) from None


def load_models(option: str, text: str | None) -> Any:
    """Names of candidates, or those of ``module:factory``, also in the working folder; what
    goes wrong is the user's.
    """
    from surelearn.selection.candidates import load_factory

    if text is None:
        return None
    if ":" not in text:
        return [name.strip() for name in text.split(",")]
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)
    try:
        with no_exit(f"{option} {text}"):
            return load_factory(text, option)
    except Exception as error:
        if os.environ.get("SURELEARN_DEBUG"):
            raise
        said = (
            str(error)
            if isinstance(error, ValueError | TypeError)
            else f"{type(error).__name__}: {error}"
        )
        raise ValueError(said if said.startswith(option) else f"{option} {text}: {said}") from None


def _identity(text: str | None, candidates: Sequence[str | Candidate] | None) -> tuple[str, ...]:
    """What a journal must know of candidates: their parameters, and the code of the module that
    makes them.
    """
    import joblib

    if text is None:
        return ()
    try:
        parameters = str(joblib.hash(candidates))
    except Exception:  # joblib raises what the object's own state raises
        parameters = ""
    file = getattr(sys.modules.get(text.partition(":")[0]), "__file__", None)
    code = Path(file).read_bytes() if file and Path(file).is_file() else b""
    return text, parameters, hashlib.sha256(code).hexdigest()


def _dry_run(divided: Divided, asked: str | None) -> int:
    """What was read, and what is odd about the rows to fit on; of held-back rows nothing but
    their number.
    """
    import numpy as np

    table, split = divided.table, divided.split
    targets = table.y[np.union1d(split.fit, split.select)]
    for line in _table_lines(
        table, asked, targets, "rows to fit on: ", show_rows=divided.options.show_rows
    ):
        say(line)
    say(divided.line())
    for finding in divided.oddities():
        say(f"  {shorten(finding.text, 500)} ({finding.code}, {finding.severity})")
    say("dry run: no held-back row was used, and nothing was recorded")
    return 0


def _table_lines(
    table: Table, asked: str | None, y: AnyArray, whose: str = "", *, show_rows: bool
) -> Iterator[str]:
    """What was read; ``asked`` is the target as it was given, maybe its position; ``y`` are the
    targets to summarize.
    """
    import numpy as np

    columns = table.frame.shape[1] - 1
    target = f"target {shorten(table.target)}"
    if asked not in (None, table.target):
        target += (
            f", column {list(table.frame.columns).index(table.target) + 1:,} of {columns + 1:,}"
            f" (--target {asked})"
        )
    if table.task == "classification":
        labels, counts = np.unique(y, return_counts=True)
        shown = ", ".join(
            f"{shorten(label)}: {count:,}"
            for label, count in list(zip(labels, counts, strict=True))[:6]
        )
        target += f" ({whose}{shown}{', …' if labels.size > 6 else ''})"
    else:  # the extremes are values of single rows
        low, high = (y.min(), y.max()) if show_rows else np.quantile(y, [0.1, 0.9])
        range_ = (
            f"{low:,.6g} to {high:,.6g}"
            if show_rows
            else f"four in five from {low:,.4g} to {high:,.4g}"
        )
        target += f" ({whose}{range_})"
    if table.images is None:
        yield f"{table.name}  {len(table.y):,} rows, {columns:,} columns, {target}"
    else:
        from surelearn.data.pixels import in_words

        yield f"{table.name}  {len(table.y):,} images of {in_words(table.images)}, {target}"
    for column in table.studied:
        if column.note and column.kind != "target":
            yield f"  {column.kind:<10} {shorten(column.name)}  {column.note}"


def _verdict_lines(result: Audit) -> Iterator[str]:
    from surelearn.plain import percent_sure, show
    from surelearn.report.coverage import as_coverage

    yield ""
    yield result.verdict.text
    yield ""
    rows = [
        (drawn, shorten(label if drawn is claim else drawn.label))
        for claim, label in result.certificate.rows()
        if claim.standing == "together"
        for drawn in [as_coverage(claim, result.certificate)]
    ]
    if rows:
        width = max(len(label) for _, label in rows)
        yield (
            f"{f'Guaranteed together, {percent_sure(result.certificate.delta)}':<{width + 2}}  "
            " measured   bound"
        )
        for claim, label in rows:
            measured = "" if claim.measured is None else show(claim.measured, claim.unit)
            mark = result.certificate.mark(claim)
            yield f"  {label:<{width}}   {measured:>8}   {claim.bound()}" + (
                f"  ({shorten(mark)})" if mark else ""
            )


def result_lines(result: Audit, paths: dict[str, str]) -> Iterator[str]:
    """What a finished page says beside its verdict, and where it is."""
    proved = [
        [claim for claim in section.claims if not claim.vacuous] for section in result.sections
    ]
    if any(proved):
        yield "Proved, each alone at its own confidence"
        for first, *more in filter(None, proved):
            rest = f", and {len(more)} more on the page" if more else ""
            yield f"  {shorten(first.label, 120)}  {first.bound()} ({first.surely()}){rest}"
    findings = [
        finding
        for finding in result.findings
        if finding.severity != "info" or finding.code.startswith("SL4")
    ]
    if findings:
        yield "Measured"
        yield from (f"  {shorten(finding.text, 500)} ({finding.code})" for finding in findings)
    yield "   ".join(f"{what}  {path}" for what, path in paths.items())


def _risk(headline: Claim) -> float:
    """The risk that a headline bounds; of a rate of successes, that of failures."""
    from surelearn.auditing.headline import number

    return 1 - number(headline) if headline.relation == ">=" else number(headline)


def check_risk(
    result: Audit,
    max_risk: float | None,
    tell: Callable[[str], None],
    at_least: float | None = None,
) -> int:
    """Whether the page guarantees the risk, or the grade; of a model that was fixed before any page
    about these rows was read.
    """
    if max_risk is None and at_least is None:
        return 0
    goal = f"a risk of at most {max_risk:g}" if at_least is None else f"at least {at_least:g}"
    from surelearn.auditing.headline import headline_of

    headline = headline_of(result.certificate)
    if result.verdict.kind in ("do not ship", "no verdict"):
        failed = f"the verdict is {result.verdict.kind!r}"
    elif unlabeled := _unlabeled(result):
        failed = unlabeled
    elif headline is None:
        failed = f"nothing is guaranteed, so {goal} is not"
    elif at_least is not None and (grade := 1 - _risk(headline)) < at_least:
        failed = f"the guaranteed bound {grade:.4g} is below --at-least {at_least:g}"
    elif max_risk is not None and (risk := _risk(headline)) > max_risk:
        what = "mean cost" if headline.quantity == "mean_cost" else "bound"
        failed = f"the guaranteed {what} {risk:.4g} is above --max-risk {max_risk:g}"
    else:
        tell(
            f"check: {goal.removeprefix('a risk of ')}, for one model that was fixed before any page"
            " about these rows was read"
        )
        return 0
    click.echo(f"check: {failed}", err=True)
    return 1


def _unlabeled(result: Audit) -> str:
    """Why a check fails where rows without a label are, or may be, others; "" where it does not."""
    if result.numbers["options"]["population"] is not None:
        return ""
    found = next((one for one in result.findings if one.code == "SL119"), None)
    if found is None:
        return ""
    how = "differ" if found.numbers.get("columns") else "were not compared with the others"
    return f"rows without a label {how}; say --population labelled if only labeled ones matter"


def check_required(result: Audit, tell: Callable[[str], None]) -> int:
    """Whether the page guarantees what is required of its operating point."""
    from surelearn.auditing.operating import is_met, passes

    required = result.numbers["options"]["require"]
    failed = f"{required} is not guaranteed"
    if result.verdict.kind != "no verdict" and is_met(result.certificate):
        failed = _unlabeled(result)
    if failed:
        click.echo(f"check: {failed}", err=True)
        return 1
    if not passes(result.certificate):
        click.echo(f"check: {required} is kept only as a constant answer keeps it, too", err=True)
        return 1
    tell(
        f"check: {required}, for one model that was fixed before any page about these rows was read"
    )
    return 0


def _run_key(table: Table, *parts: Any) -> str:
    digest = hashlib.sha256(table.row_hashes.tobytes())
    digest.update(
        repr(
            (
                table.target,
                table.task,
                table.group,
                table.time,
                [c.name for c in table.columns if c.used],
            )
        ).encode()
    )
    digest.update(repr((*parts, __version__)).encode())
    return digest.hexdigest()
