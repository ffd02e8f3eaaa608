"""`gate`: may this model pass? For people who improve a model against the same held-back rows until
it does.

Until the first pass the only answers are "fail", so the k-th model is a function of the rows to fit
on and of k alone: it was as good as fixed before the held-back rows were looked at, however it was
developed. The k-th try has δ_k = 6δ/(π²k²), and since Σ δ_k = δ, a model whose risk is above the
limit passes in any of the tries with probability at most δ. Nothing else that depends on the
held-back rows is told: no bound, no finding, and what goes wrong on them is a fail. This holds if
no number about these rows was shown before, and if nobody trains on or looks at them.
"""

from __future__ import annotations

import io
import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from surelearn import stated
from surelearn.auditing.claims import Certified, Withholding, certify_table
from surelearn.auditing.dividing import DataSource, Divided, as_table, divide
from surelearn.auditing.fitting import Candidates, FittedChoice, fit
from surelearn.auditing.headline import headline_of
from surelearn.auditing.independence import unlabelled_differ
from surelearn.auditing.looks import (
    describe_look,
    keep_losses,
    known_table,
    open_ledger,
    raised_bound,
)
from surelearn.auditing.operating import passes
from surelearn.auditing.options import OptionError, Options
from surelearn.auditing.sections.novelty import compare_table
from surelearn.auditing.walking import at_threshold, check_table, rungs_of
from surelearn.auditing.widths import (
    check_range,
    check_widths,
    with_one_distance,
    with_widths,
)
from surelearn.certificate import Certificate
from surelearn.certification import uncounted
from surelearn.data import Table
from surelearn.data.independence import contradictions
from surelearn.data.schema import Schema
from surelearn.jobs import Runner
from surelearn.jobs.threads import limits
from surelearn.monitoring import Reference
from surelearn.selection.ledger import Known, Ledger, LedgerArgument, Look
from surelearn.selection.selector import Selection
from surelearn.subject import Task, scores_of
from surelearn.subject.refitting import take

UNSEEN = "nobody trained on, or looked at, the held-back rows of this gate"


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The answer of a gate: true if the model passed.

    Attributes
    ----------
    passed : whether a risk of at most ``max_risk``, or what is required, is guaranteed
    number, delta : which try on these rows it was, and the failure probability it had
    repeated : whether the same model had been answered before
    max_risk, at_least : what had to be guaranteed: one of them
    error, chosen : the chosen candidate, and its error on the rows to fit on, by cross-validation (or
        on the select rows); of recorded answers which they are, and None
    rows : how many rows were held back
    certificate, model, schema, reference : of a pass only
    """

    passed: bool
    number: int
    delta: float
    rows: int
    chosen: str
    max_risk: float | None = None
    at_least: float | None = None
    require: str | None = None
    error: float | None = None
    repeated: bool = False
    certificate: Certificate | None = None
    model: Any = field(default=None, repr=False)
    schema: Schema | None = field(default=None, repr=False)
    reference: dict[str, Any] | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return self.passed


def gate(
    source: DataSource | None = None,
    *,
    max_risk: float | None = None,
    target: str | int | None = None,
    header: bool | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    group: str | None = None,
    task: Task | None = None,
    models: Candidates = None,
    ledger: LedgerArgument = None,
    number: int | None = None,
    n_jobs: int | None = None,
    runner: Runner | None = None,
    **options: Any,
) -> Gate:
    """Pass or fail, and nothing else about the held-back rows; see above.

    Parameters
    ----------
    source, target, header, drop, keep, group, task, models : the table and the candidates, as in
        `surelearn.audit`
    max_risk : the largest risk to be guaranteed (with ``cost``: mean cost; of numbers: the distance
        of the interval); in its place ``require``, what the operating point must keep
    ledger : where tries are counted: by default in the user's state folder and beside the data
    number : which try this is, where no ledger outlives a run; with a ledger that knows more tries,
        theirs counts
    **options : as in `surelearn.audit`; ``delta`` is that of all tries together

    Raises
    ------
    ValueError
        where numbers about these rows were shown before, where a model passed already, under ``CI``
        without ``ledger`` or ``number``, and without ``number`` where no ledger is kept

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> bool(gate("breast_cancer", max_risk=0.15, models=LogisticRegression(max_iter=5000), ledger=False, number=1))
    True
    """
    asked = Options(**options)
    if asked.sets is not None:
        raise OptionError(lambda s: f"a gate only says pass or fail: leave out {s}", "sets")
    if (max_risk is None) == (asked.require is None):
        raise OptionError(
            lambda m, r: f"a gate needs {m}, the risk to be guaranteed, or {r}, not both",
            "max_risk", "require",
        )  # fmt: skip
    if max_risk is not None:
        check_risk(max_risk)
    check_counted(ledger, number)
    table = as_table(source, target=target, header=header, drop=drop, group=group, task=task)
    open_ledger(ledger, table.path)  # one that cannot be read is refused before the work, not after
    check_table(table, asked)
    check_widths(table, asked)
    if max_risk is not None and table.task == "regression":
        asked = with_one_distance(asked)
    elif max_risk is not None and asked.miss is None:
        check_share(max_risk)
    return _try_table(
        table, max_risk, keep=keep, models=models, ledger=ledger, number=number, options=asked,
        runner=runner or Runner(n_jobs=n_jobs),
    )  # fmt: skip


def check_risk(max_risk: object) -> None:
    """Refuse a largest risk that is none."""
    if (
        isinstance(max_risk, bool)
        or not isinstance(max_risk, int | float)
        or not 0 <= max_risk < math.inf
    ):
        raise ValueError(f"max_risk must be a number that is not negative, not {max_risk!r}")


def check_share(max_risk: float) -> None:
    """Refuse a share of rows that is none."""
    if max_risk > 1:
        raise OptionError(
            lambda m: f"{m} is a share of rows, at most 1, not {max_risk:g}", "max_risk"
        )


def check_counted(ledger: LedgerArgument, number: int | None) -> None:
    """A pipeline begins with no ledger of its own, so that every try would be the first one."""
    if number is not None:
        stated.whole("number", number)
    if os.environ.get("CI") and ledger in (None, False) and number is None:
        raise ValueError(
            "CI is set, and a ledger in a fresh checkout counts no earlier try: pass --try K, which"
            " try on these rows this is, or --ledger FILE, one that outlives the run"
        )


@limits.one_thread()
def _try_table(
    table: Table,
    max_risk: float | None,
    *,
    keep: Sequence[str],
    models: Candidates,
    ledger: LedgerArgument,
    number: int | None,
    options: Options,
    runner: Runner,
) -> Gate:
    """Fit on the rows that are for it, count the try, and answer it; see `gate`."""
    if table.time is not None:
        raise ValueError(
            "a gate needs rows in no order of time: the last ones do not bound the future"
        )
    divided = divide(table, keep, options)
    check_range(table, divided.split, options)
    if divided.suspects:
        name = divided.suspects[0]
        raise ValueError(
            f"{table.name}: column {name!r} repeats the target on the rows to fit on: pass --drop"
            f" or --keep {name}"
        )
    train = np.union1d(divided.split.fit, divided.split.select)
    if not options.independent and (found := contradictions(table, train)):
        raise ValueError(
            f"{table.name}: {found[0].text[:160].rstrip('.')}: say --group COLUMN, or --independent"
            " to vouch for the rows"
        )
    known = known_table(table, divided.split)
    book = opened(ledger, table.path, known, number, table.name)
    runner.say(divided.line())
    fitted = fit(table, divided.split, divided.columns, models, divided.options, runner)
    fitted = with_widths(fitted, table, divided.split, divided.options)
    split = divided.split
    X, y = take(table.X[fitted.columns], split.certify), table.y[split.certify]
    with silence():
        look = describe_look(
            [(fitted.model, X)], None, y, table.groups, divided.options,
            name=table.name, target=table.target, kind="gate",
            more=(*(() if max_risk is None else (repr(float(max_risk)),)), *vouched(options)),
        )  # fmt: skip

    def make(asked: Options, withheld: Withholding) -> Certificate | None:
        return _certificate(divided, fitted, asked, withheld)

    recorded, delta, certificate = tried(
        book, known, look, number, divided.options, table.name, make, at_most(max_risk)
    )
    answer = Gate(
        passed=certificate is not None,
        number=recorded.turn,
        delta=delta,
        max_risk=max_risk,
        require=options.require,
        rows=len(y),
        error=_measured(fitted.selection),
        chosen=fitted.selection.name,
        repeated=bool(recorded.answer),
    )
    if certificate is None:
        return answer
    certificate = with_try(certificate, answer)
    fitted = at_threshold(fitted, certificate, options)
    schema, reference = _summaries(divided, fitted)
    kept = {"schema": schema, "reference": reference.to_dict(), "model": fitted.model}
    return replace(answer, certificate=certificate, **kept)


def opened(
    ledger: LedgerArgument, path: Path | None, known: Known, number: int | None, name: str
) -> Ledger:
    """The ledger that counts the tries; refused where none can, or where numbers were shown."""
    book = open_ledger(ledger, path)
    if book is None:
        if number is None:
            raise ValueError(
                "no ledger is kept here, so every try would be the first: pass --try K, which try"
                " on these rows this is, or --ledger FILE, one that can be written"
            )
        book = Ledger()
    usual = open_ledger(None, path)  # numbers were shown, whichever ledger knows it
    _refuse_shown([*book.at(known), *(() if usual is None else usual.at(known))], name)
    return book


def tried(
    book: Ledger,
    known: Known,
    look: Look,
    number: int | None,
    options: Options,
    name: str,
    make: Callable[[Options, Withholding], Certificate | None],
    enough: Callable[[Certificate], bool],
) -> tuple[Look, float, Certificate | None]:
    """Count the try, and answer it: the try, its δ, and the certificate of a pass.

    ``enough`` says whether the certificate, made at this try's δ, guarantees what it had to;
    whatever goes wrong with the rows is a fail, and says nothing else.
    """
    _refuse_closed(book.at(known), look, name)
    recorded = book.record(replace(look, turn=number or 1), known)
    delta = 6 * options.delta / (math.pi * recorded.turn) ** 2
    raised = raised_bound(recorded, book.at(known))
    asked = replace(options, delta=delta, loss_bound=options.loss_bound if raised is None else None)
    if recorded.answer == "fail":  # and is not computed again
        return recorded, delta, None
    try:
        with silence(), uncounted():
            certificate = make(asked, Withholding(raised=raised))
            passed = certificate is not None and enough(certificate)
    except (Exception, SystemExit):
        certificate, passed = None, False
    book.amend(recorded.audit, answer="pass" if passed else "fail")
    return recorded, delta, certificate if passed else None


def vouched(options: Options) -> tuple[str, ...]:
    """What the user vouches for, and a try that failed for the lack of it did not have: with it, it is
    another try.
    """
    return tuple(name for name in ("independent", "population") if getattr(options, name))


def at_most(max_risk: float | None) -> Callable[[Certificate], bool]:
    """Whether a certificate's headline bounds the risk by this; None: whether it guarantees what it
    requires, and not as a constant answer does.
    """
    if max_risk is None:
        return passes

    def enough(certificate: Certificate) -> bool:
        claim = headline_of(certificate)
        return claim is not None and isinstance(claim.value, float) and claim.value <= max_risk

    return enough


def _measured(selection: Selection) -> float:
    """The chosen candidate's error on rows that it was not fitted on."""
    return float((selection.mean_losses or selection.errors)[selection.chosen])


def _refuse_shown(earlier: Sequence[Look], name: str) -> None:
    shown = [look for look in earlier if look.kind == "audit"]
    if shown:
        look = shown[0]
        what = f"an audit of {look.name} on {look.when[:10]}" if look.name else "an audit"
        raise ValueError(
            f"{name}: {what} showed numbers about these rows, so a gate on them guarantees"
            " nothing: hold back rows that nobody has seen numbers of (`surelearn ledger` lists"
            " the looks)"
        )


def _refuse_closed(earlier: Sequence[Look], look: Look, name: str) -> None:
    passed = [one for one in earlier if one.answer == "pass" and one.audit != look.audit]
    if passed:
        raise ValueError(
            f"{name}: a model passed on these rows on {passed[0].when[:10]}, and its"
            " certificate was shown: the gate is closed, so hold back new rows for the next model"
        )


def _certificate(
    divided: Divided, fitted: FittedChoice, options: Options, withheld: Withholding
) -> Certificate | None:
    """The certificate at this try's δ; None where the table contradicts what it rests on."""
    if not options.independent and contradictions(divided.table):
        return None
    if options.population is None and _unlabelled_differ(divided, fitted):
        return None
    compared = compare_table(divided.table, divided.split, fitted.columns)
    rungs = rungs_of(divided.table, divided.split, fitted, divided.options)
    about = Certified(divided.table, divided.split, fitted, compared=compared, rungs=rungs)
    return certify_table(about, options, withheld)


@contextmanager
def silence() -> Iterator[None]:
    """Neither warnings nor what a model prints are shown."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def _unlabelled_differ(divided: Divided, fitted: FittedChoice) -> bool:
    """Whether rows without a label are others than those to fit on, or than held-back ones."""
    schema, reference = _summaries(divided, fitted)
    return bool(unlabelled_differ(divided.table, schema, reference, fitted.model))


def _summaries(divided: Divided, fitted: FittedChoice) -> tuple[Schema, Reference]:
    """The columns that the model reads, and a summary of the held-back rows for those who watch
    it later.
    """
    table, split = divided.table, divided.split
    train = np.union1d(split.fit, split.select)
    kinds = {c.name: c.kind for c in table.columns if c.name in fitted.columns and c.kind != "date"}
    X = take(table.X[fitted.columns], split.certify)
    reference = Reference.from_rows(
        take(table.X[fitted.columns], train), X, kinds, scores_of(fitted.model, X)
    )
    return Schema.of(table, fitted.columns, train), reference


def with_try(certificate: Certificate, answer: Gate) -> Certificate:
    """The certificate of a pass, with what may now be shown."""
    goal = answer.require or f"{answer.max_risk if answer.at_least is None else answer.at_least:g}"
    setting = f"{certificate.facts.setting}, by try {answer.number} of a gate at {goal}"
    claims = [
        replace(claim, assumptions=(*claim.assumptions, UNSEEN)) for claim in certificate.claims
    ]
    certificate = replace(
        certificate, facts=replace(certificate.facts, setting=setting), claims=tuple(claims)
    )
    keep_losses(certificate)
    return certificate
