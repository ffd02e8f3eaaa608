"""`surelearn predict`: new rows through a saved model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelearn.terminal import ctrl_c, say_aside

if TYPE_CHECKING:
    from surelearn.certificate import Certificate
    from surelearn.prediction import Predictor

EXAMPLES = """
\b
Examples:
  surelearn predict surelearn-audit/model new.csv                     to the terminal, as CSV
  surelearn predict surelearn-audit/model new.csv --out predicted.csv
  surelearn predict surelearn-audit/model big.parquet --out predicted.parquet
  zcat big.csv.gz | surelearn predict surelearn-audit/model - --out predicted.csv.gz
"""


@click.command("predict", epilog=EXAMPLES)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("source", metavar="FILE")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write (.csv, .tsv, .csv.gz, .parquet).",
)
@click.option(
    "--no-header",
    is_flag=True,
    default=None,
    help="FILE has no line of column names (default: as the audited one).",
)
@click.option(
    "--header", is_flag=True, default=None, help="FILE has one, though the audited one had none."
)
@click.option("--quiet", is_flag=True, help="Say nothing about the rows.")
def command(
    model: Path,
    source: str,
    out: Path | None,
    no_header: bool | None,
    header: bool | None,
    quiet: bool,
) -> None:
    """Predict the rows of FILE ("-": standard input) with a MODEL: the folder of an audit, or the
    model in it.

    Adds the prediction, its probability where the model gives one and that of the class that matters,
    the prediction set where sets were certified (labels joined by |, the most probable first), whether
    to abstain where errors among the answered were certified, and for regression the interval that was
    certified. Files larger than memory are read in pieces.
    """
    from surelearn.persistence import find_model, read_model
    from surelearn.prediction import Predictor, same_file

    if header and no_header:
        raise ValueError("--header and --no-header contradict each other")
    saved = read_model(find_model(model))
    predictor = Predictor(saved)
    if out is not None and same_file(out, source):
        raise ValueError(f"--out {out} is the file to predict: name another")
    tell = (lambda line: None) if quiet else say_aside  # noqa: ARG005
    started, progress = time.perf_counter(), _Progress(show=out is not None and not quiet)
    ctrl_c.under_way = True
    with progress:
        rows = predictor.write(
            source,
            out,
            header=header or (None if not no_header else False),
            advance=progress.advance,
        )
    seconds = time.perf_counter() - started
    for line in predictor.notes.lines():
        tell(line)
    tell(_what_was_added(predictor))
    tell(f"{rows:,} rows predicted in {seconds:.1f} s" + ("" if out is None else f"  {out}"))


def _what_was_added(predictor: Predictor) -> str:
    """One line about the added columns and what is guaranteed about them."""
    from surelearn.plain import percent_sure
    from surelearn.prediction import interval_claim

    saved = predictor.saved
    claims = () if saved.certificate is None else saved.certificate.together
    if predictor.schema.task == "regression":
        claim = interval_claim(saved.certificate)
        if claim is None:
            return "added: prediction; no interval, because none was certified"
        own = claim.quantity == "score_quantile"
        ends = (
            "low and high of each row's own width" if own else f"prediction ± {claim.bound()[2:]}"
        )
        return (
            f"added: prediction, {ends}, which hold" if own else f"added: {ends}, which holds"
        ) + (
            f" {100 * (1 - claim.inputs['alpha']):g}% of new rows like the certified ones"
            f" ({percent_sure(claim.delta)} sure)"
        )
    with_probability = hasattr(saved.model, "predict_proba")
    added = (
        "added: prediction and its probability"
        if with_probability
        else "added: prediction; the model gives no probability"
    )
    added += _set_promised(saved.certificate)
    if saved.certificate is not None and "walk.threshold" in saved.certificate.facts:
        return f"{added}{_promised(saved.certificate)}"
    risk = next((claim for claim in claims if claim.quantity == "risk"), None)
    if risk is None:
        return f"{added}; nothing is guaranteed about it"
    return (
        f"{added}; errors {risk.bound()} on new rows like the certified ones"
        f" ({percent_sure(risk.delta)} sure)"
    )


def _set_promised(certificate: Certificate | None) -> str:
    """What a prediction set promises; "" where there are none."""
    from surelearn.plain import all_but, percent_sure

    sets = None if certificate is None else certificate.sets
    if certificate is None or sets is None:
        return ""
    claim = next(
        c for c in certificate.together if c.quantity in ("set_coverage", "class_coverage")
    )
    whose = "of each class's new rows" if sets.per_class else "of new rows like the certified ones"
    sure = claim.delta * (sum(cut is not None for cut in sets.thresholds))
    return (
        f", a set that holds the truth of {all_but(sets.alpha)} {whose} ({percent_sure(sure)} sure)"
    )


def _promised(certificate: Certificate) -> str:
    """What an operating point adds, and what it promises."""
    from surelearn.auditing.operating import is_met, promise
    from surelearn.plain import percent_sure
    from surelearn.prediction import abstains_below

    abstains = ", abstain" if abstains_below(certificate) is not None else ""
    if not is_met(certificate):
        return f"{abstains}; {certificate.facts.options['require']} is not guaranteed"
    kept = promise(certificate).replace("**", "")
    return f"{abstains}; {kept} ({percent_sure(certificate.delta)} sure)"


class _Progress:
    """Rows done so far, on a terminal."""

    def __init__(self, *, show: bool) -> None:
        self.show, self.rows, self.bar = show, 0, None

    def __enter__(self) -> _Progress:
        if self.show:
            from rich.console import Console
            from rich.status import Status

            console = Console(stderr=True)
            if console.is_terminal:
                self.bar = Status("predicting", console=console)
                self.bar.start()
        return self

    def advance(self, rows: int) -> None:
        self.rows += rows
        if self.bar is not None:
            self.bar.update(f"{self.rows:,} rows predicted")

    def __exit__(self, *_: Any) -> None:
        if self.bar is not None:
            self.bar.stop()
