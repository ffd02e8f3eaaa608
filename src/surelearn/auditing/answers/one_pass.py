"""`audit_counted`: the certificate and the page of answers that were counted in one pass."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import partial
from typing import Any

from surelearn.auditing.answers import counts_told
from surelearn.auditing.answers.counted import CountedAnswers
from surelearn.auditing.answers.read_once import cannot, read_counted
from surelearn.auditing.answers.roles import Roles
from surelearn.auditing.answers.scored_once import WALKED, walk_over
from surelearn.auditing.answers.verdict import write_verdict
from surelearn.auditing.claims import ALWAYS_CLAIMED, Withholding, of_page
from surelearn.auditing.context import Context
from surelearn.auditing.looks import counted as counted_options
from surelearn.auditing.looks import open_ledger
from surelearn.auditing.options import OptionError, Options
from surelearn.auditing.pages import document, looked
from surelearn.auditing.sections import (
    assumptions,
    bounds_compared,
    columns,
    costly,
    operating_point,
    slices,
)
from surelearn.auditing.writing import Entry
from surelearn.certificate import Certificate, Verification
from surelearn.certification import certify_counted
from surelearn.data.columns import NotCountableError
from surelearn.data.counting import is_large
from surelearn.data.frames import Source
from surelearn.data.independence import search_frame
from surelearn.data.table import find_column
from surelearn.fingerprint import fingerprint_model
from surelearn.jobs import Progress, Runner, silent
from surelearn.jobs.threads import limits
from surelearn.lacking import Lacking
from surelearn.report import Audit
from surelearn.selection.ledger import LedgerArgument, Look

OF_ANSWERS = ("balanced_accuracy", "f1")  # metrics of answers, whatever their scores
MILLION = 10**6  # rows of one step of the progress
ENTRIES: tuple[Entry, ...] = (
    counts_told.PERFORMANCE,
    counts_told.GRADES,
    operating_point.ENTRY,
    costly.ENTRY,
    slices.ENTRY,
    counts_told.WRONG,
    columns.DATA,
    assumptions.ENTRY,
    counts_told.ONE_PASS,
    bounds_compared.ENTRY,
)


@limits.one_thread()
def audit_counted(
    counted: CountedAnswers, roles: Roles, options: Options, ledger: LedgerArgument, runner: Runner
) -> Audit:
    """Certify answers that were counted, and write the document about them.

    Parameters
    ----------
    counted : as `read_counted` returns them
    roles, options, ledger, runner : as `surelearn.auditing.answers.audit_units` takes them
    """
    book = open_ledger(ledger, counted.path)
    groups = None
    if roles.group is not None:
        groups = counted.beside[
            find_column(counted.name, list(counted.beside.columns), roles.group, option="--group")
        ].to_numpy()
    search = search_frame(counted.beside, groups)
    if counted.rows > len(counted.beside):
        further = f"copies and groups beyond the first {len(counted.beside):,} rows"
        search = replace(search, not_looked_for=(*search.not_looked_for, further))
    contradicted = () if options.independent else search.found
    look = _look(counted, roles, options)
    make = partial(certify_counts, counted, roles)
    alone = "" if groups is None else _look(counted, replace(roles, group=None), options).models[0]
    certificate, turn = looked(book, look, counted.known, options, contradicted, make, alone)
    if "walk.threshold" in certificate.facts:
        counted = counted.answering(float(certificate.facts["walk.threshold"]))
    units = counted.as_units()
    context = Context(
        title=counted.name,
        target=counted.target,
        task=counted.task,
        X=units.X,
        y=units.y,
        groups=units.groups,
        columns=(),
        findings=(*counted.findings, *search.found),
        split=None,
        selection=None,
        model=counted.model,
        certificate=certificate,
        options=options,
        runner=runner,
        turn=turn,
        group_name=roles.group or "group",
        looked_in=None if book is None else book.paths,
        search=search,
        answers=units,
        counted=counted,
        unlabelled_compared=counted.unlabeled_compared,
    )
    return document(
        context,
        counted.beside.shape[1],
        {"answers": roles.to_dict(), "one_pass": True},
        entries=ENTRIES,
        say=write_verdict,
        keep_model=False,
    )


def counted_if(
    source: Source | None, roles: Roles, options: Options, one_pass: bool | None, runner: Runner
) -> CountedAnswers | None:
    """The answers counted in one pass, where that is asked for, or the file is long and counts are
    enough; None where it is to be read whole.
    """
    requirement = options.requirement
    if requirement is not None and one_pass and requirement.quantity not in WALKED:
        raise OptionError(
            lambda o, r: (
                f"{o} does not go with {r} '{requirement}', whose thresholds need an order that rows"
                " tell: require a sensitivity or a specificity, or leave out one"
            ),
            "one_pass", "require",
        )  # fmt: skip
    if options.sets is not None and one_pass:
        raise OptionError(
            lambda o, s: f"{o} does not go with {s}, which rank every row's score: leave out one",
            "one_pass", "sets",
        )  # fmt: skip
    if options.largest_group is not None and one_pass:
        raise OptionError(
            lambda o, g: f"{o} does not go with {g}, which needs every group's size: leave out one",
            "one_pass",
            "largest_group",
        )
    whole = any(one is not None for one in (options.require, options.sets, options.largest_group))
    whole = whole or roles.score is not None  # of scores one pass claims less
    large = not whole and is_large(source) and not cannot(roles)
    if one_pass is False or not (one_pass or large):
        return None
    steps = _Steps(runner.progress("million rows") or silent)
    try:
        return read_counted(source, roles, options.positive, steps)
    except NotCountableError:
        if one_pass:
            raise
        return None
    finally:
        steps.finish()


class _Steps:
    """Progress by millions of rows."""

    def __init__(self, bar: Progress) -> None:
        self._bar, self._total, self._done = bar, 0, 0

    def __call__(self, rows: int, total: int | None) -> None:
        if total is None:
            return
        if not self._total:
            self._total = max(1, total // MILLION)
            self._bar.start(self._total, "million rows")
        while self._done < min(rows // MILLION, self._total):
            self._done += 1
            self._bar.advance("")

    def finish(self) -> None:
        if self._total:
            self._bar.finish()


def certify_counts(
    counted: CountedAnswers, roles: Roles, options: Options, withheld: Withholding
) -> Certificate:
    """The claims about answers that were counted, on one δ."""
    given: dict[str, Any] = {"delta": options.delta, "against": counted.against}
    requirement, scores = options.requirement, counted.scores
    if counted.task == "classification":
        given |= {"classes": counted.classes, "unseen": counted.unseen, "baseline": counted.rival}
        given |= {"positive": options.positive, "cost": options.cost}
        sliced = ("differences",) if counted.slices else ()
        metrics = ALWAYS_CLAIMED if scores is None else OF_ANSWERS
        given |= {"metrics": (*metrics, *sliced), "compared": counted.compared}
    else:
        given |= {"loss": counted.called, "loss_range": counted.bounds, "binary": counted.binary}
    if requirement is not None and scores is not None:
        given |= {"require": requirement, "thresholds": walk_over(requirement), "metrics": ()}
        # once to find the threshold, and once more with the model that answers from there on
        first = certify_counted(counted.model, counted.facts, counted.hash, **given)
        counted = counted.answering(first.facts["walk.threshold"])
    made = certify_counted(counted.model, counted.facts, counted.hash, **given)
    if scores is not None:
        made = replace(made, lacking=(*made.lacking, *_without_scores()))
    answered = next(
        n for n in (*roles.answer, roles.score, roles.passed, roles.grade, roles.winner) if n
    )
    names = {"target": counted.target, "prediction": answered, "answers": roles.stated()}
    if roles.group is not None:
        names["group"] = roles.group
    if roles.against is not None:
        names["against"] = roles.against
    if withheld.raised is not None and counted.task == "losses":
        absent = [Lacking(claim.quantity, withheld.raised.reason) for claim in made.claims]
        made = replace(made, claims=(), lacking=(*made.lacking, *absent))
    return of_page(made, None, withheld, names)


def _without_scores() -> list[Lacking]:
    """What is not claimed of scores that were counted."""
    why = "it needs every row's score, and one pass counts them between fixed thresholds"
    return [Lacking(name, why) for name in ("auc", "brier_score", "log_loss", "calibration")]


def verify_counted(certificate: Certificate, counted: CountedAnswers) -> Verification:
    """The certificate beside what another pass over the file found."""
    if "walk.threshold" in certificate.facts:
        counted = counted.answering(float(certificate.facts["walk.threshold"]))
    columns = {"counted": counted, "baseline": counted.rival}
    if counted.task == "losses" and counted.against:
        columns["baseline_losses"] = counted.against
    return certificate.verify(counted.model, **columns)


def _look(counted: CountedAnswers, roles: Roles, options: Options) -> Look:
    """How the ledger knows a page: the same answers, file and options are the same look."""
    asked = {**counted_options(options), "require": options.require}
    parts = [fingerprint_model(counted.model), counted.hash, str(counted.rows)]
    parts += [json.dumps(asked, sort_keys=True, default=str)]

    def hashed(stated: Roles) -> str:
        text = "|".join(["one pass", *parts, repr(sorted(stated.to_dict().items()))])
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    bound = None if roles.grade is None else counted.bounds[1] - counted.bounds[0]
    return Look(
        audit=hashed(roles),
        turn=1,
        table="",
        models=(hashed(replace(roles, drop=())),),  # what is dropped changes nothing claimed
        name=counted.name,
        target=counted.target,
        rows=counted.rows,
        loss_bound=bound,
    )
