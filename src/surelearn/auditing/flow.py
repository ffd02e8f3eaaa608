"""`audit`: from a table, or a fitted model and rows, to a selected, certified, audited model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from surelearn import jobs
from surelearn.auditing.claims import Certified, certify_rows, certify_table
from surelearn.auditing.context import Context
from surelearn.auditing.dividing import DataSource, Divided, as_table, divide
from surelearn.auditing.fitting import Candidates, fit, fit_rival
from surelearn.auditing.independence import comparable, unlabelled_differ
from surelearn.auditing.looks import (
    describe_look,
    known_rows,
    known_table,
    open_ledger,
)
from surelearn.auditing.options import OptionError, Options
from surelearn.auditing.pages import document, looked
from surelearn.auditing.sections import ENTRIES
from surelearn.auditing.sections.novelty import compare_rows, compare_table
from surelearn.auditing.seen import SeenRows, check_seen, hash_arrays, in_rows
from surelearn.auditing.walking import at_threshold, check_table, rungs_of, set_score
from surelearn.auditing.widths import check_range, check_widths, with_widths
from surelearn.certificate import Certificate
from surelearn.data import Table
from surelearn.data.independence import Search, search_rows, search_table
from surelearn.data.schema import Schema
from surelearn.fingerprint import fixed_models
from surelearn.jobs import Runner
from surelearn.jobs.threads import limits
from surelearn.monitoring import Reference
from surelearn.report import Audit
from surelearn.selection.costs import best_constant
from surelearn.selection.ledger import Ledger, LedgerArgument
from surelearn.subject import Task, describe, scores_of, subject_of, task_of
from surelearn.subject.refitting import take
from surelearn.types import Labels, Model, RowsLike


@overload
def audit(
    source: Model | DataSource | None = None, *, dry_run: Literal[True], **options: Any
) -> Divided: ...


@overload
def audit(
    source: Model | DataSource | None = None,
    X: RowsLike | None = None,
    y: npt.ArrayLike | None = None,
    *,
    target: str | int | None = None,
    header: bool | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    group: str | None = None,
    time: str | None = None,
    task: Task | None = None,
    models: Candidates = None,
    against: Model | None = None,
    seen: SeenRows | None = None,
    groups: npt.ArrayLike | None = None,
    classes: Labels = None,
    ledger: LedgerArgument = None,
    n_jobs: int | None = None,
    journal: jobs.Journal | None = None,
    runner: Runner | None = None,
    dry_run: Literal[False] = False,
    **options: Any,
) -> Audit: ...


def audit(
    source: Model | DataSource | None = None,
    X: RowsLike | None = None,
    y: npt.ArrayLike | None = None,
    *,
    target: str | int | None = None,
    header: bool | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    group: str | None = None,
    time: str | None = None,
    task: Task | None = None,
    models: Candidates = None,
    against: Model | None = None,
    seen: SeenRows | None = None,
    groups: npt.ArrayLike | None = None,
    classes: Labels = None,
    ledger: LedgerArgument = None,
    n_jobs: int | None = None,
    journal: jobs.Journal | None = None,
    runner: Runner | None = None,
    dry_run: bool = False,
    **options: Any,
) -> Audit | Divided:
    """Audit a table (fit, select, certify, audit) or a fitted model on rows it has not seen
    (certify, audit).

    Parameters
    ----------
    source : a file, a built-in set's name, a DataFrame, a table that `surelearn.data.read_table`
        read, or a fitted model, then with ``X`` and ``y``; nothing: breast cancer
    target, header, drop, group, time, task : how to read the table, see `surelearn.data.read_table`
    keep : columns that look like the target but are known when a prediction is made
    models : candidates by name, such as ``["perceptron", "naive Bayes"]`` or ``"all"``; or your
        own, from simple to complex, unfitted: a model, list, or mapping of names
    against : another model whose risk is compared with on the same rows (unfitted for a table,
        fitted for a fitted model)
    seen : for a fitted model: ``(X_seen, y_seen)``, the rows that it was fitted on, with the
        columns of ``X``. With them the page attacks membership, poisons the fit (again, if the
        model can be cloned), and takes units, the majority and backgrounds from them; rows that are
        also in ``X`` and ``y`` are refused, but for copies where rows repeat anyway
    groups, classes : for a fitted model: one label per row; its labels, if it has no ``classes_``
    ledger : where uses of certify rows are recorded; by default beside the data, or in the user's
        state folder; False keeps none, and the page says so
    n_jobs : parallel tasks; results do not depend on it
    journal, runner : where finished tasks are kept, so that a killed audit goes on where it
        stopped; or all of how tasks run
    dry_run : of a table: only say which rows do what and what is odd about those to fit on; use no
        certify row
    **options : ``delta``, ``positive``, ``cost``, ``threshold``, ``slices``, ``alpha``,
        ``require``, ``sets``, ``per_class``, ``loss_bound``, ``target_range``, ``width``,
        ``largest_group``, ``seed``, … as in `surelearn.auditing.options.Options`;
        ``independent=True`` vouches for rows that look dependent, ``population="labelled"`` says
        that rows without a label do not matter; ``show_rows=True`` prints values of single rows;
        ``skip=("poisoning", …)`` leaves out sections, ``effort=0.1`` gives them a tenth of their
        work

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> little = {"refits": 2, "curve_repeats": 0, "effort": 0.1}
    >>> result = audit("iris", models={"linear": LogisticRegression(max_iter=500)}, ledger=False, **little)
    >>> print(result.verdict.kind)
    guaranteed
    """
    asked = Options(**options)
    runner = runner or Runner(n_jobs=n_jobs, journal=journal)
    if hasattr(source, "predict") or (callable(source) and not isinstance(source, type)):
        table_only = {
            "target": target,
            "drop": drop,
            "keep": keep,
            "group": group,
            "time": time,
            "models": models,
        }
        table_only |= {
            name: getattr(asked, name) for name in ("slices", "threshold", "require", "width")
        }
        table_only["dry_run"] = dry_run or None
        if given := [name for name, value in table_only.items() if value not in (None, (), [])]:
            raise ValueError(f"{given[0]} goes with a table, not with a fitted model")
        given = _Given(source, X, y, task, seen, groups, classes, against)
        return _audit_fitted(given, ledger, asked, runner)
    if X is not None or y is not None or seen is not None:
        raise ValueError(
            "X, y and seen go with a fitted model; for a table pass the file or DataFrame and"
            " target="
        )
    data: Any = (
        source  # neither a model nor a function; what else it may not be, the reader refuses
    )
    table = as_table(
        data, target=target, header=header, drop=drop, group=group, time=time, task=task
    )
    open_ledger(ledger, table.path)  # one that cannot be read is refused before the work, not after
    check_table(table, asked)
    check_widths(table, asked)
    if asked.require is not None and against is not None:
        raise OptionError(
            lambda r, a: f"{r} chooses the threshold on the certify rows: leave out {a}",
            "require", "against",
        )  # fmt: skip
    if dry_run:
        return divide(table, keep, asked)
    return _audit_table(table, keep, models, against, ledger, asked, runner)


# PyTorch's sums depend on its threads, and those on whether it was loaded here or in a task
@limits.one_thread()
def _audit_table(
    table: Table,
    keep: Sequence[str],
    models: Candidates,
    against: Model | None,
    ledger: LedgerArgument,
    options: Options,
    runner: Runner,
) -> Audit:
    """Split, select, fit, certify and audit; see `audit`."""
    divided = divide(table, keep, options)
    split, options = divided.split, divided.options
    check_range(table, split, options)
    runner.say(divided.line())
    fitted = fit(table, split, divided.columns, models, options, runner)
    runner.say(f"{fitted.selection.name} chosen among {len(fitted.selection.names)}")
    if not divided.suspects:
        fitted = with_widths(fitted, table, split, options)
    including = (
        fit(table, split, divided.used, models, options, runner, "with suspects/")
        if divided.suspects
        else None
    )
    rival = (
        None
        if against is None
        else fit_rival(table, split, fitted.columns, against, options, runner)
    )
    about = Certified(
        table, split, fitted, including, rival, compare_table(table, split, fitted.columns),
        None if including is not None else rungs_of(table, split, fitted, options),
        set_score(table, split, fitted, options),
    )  # fmt: skip
    models_here = [fitted.model] if including is None else [fitted.model, including.model]
    with fixed_models(
        *models_here, subject_of(fitted.model).last.model, *([] if rival is None else [rival])
    ):
        return _page_of_table(about, divided, ledger, runner)


def _page_of_table(
    about: Certified, divided: Divided, ledger: LedgerArgument, runner: Runner
) -> Audit:
    """Certify and audit models that stay as they are now."""
    table, split, fitted, options = about.table, about.split, about.fitted, divided.options
    _, y = about.rows_of(fitted)
    book, known, search = (
        open_ledger(ledger, table.path),
        known_table(table, split),
        search_table(table),
    )
    both = [
        (one.model, about.rows_of(one)[0]) for one in (fitted, about.including) if one is not None
    ]
    look = describe_look(
        both, about.rival, y, table.groups, options, name=table.name, target=table.target
    )
    contradicted = () if options.independent else search.found
    certificate, turn = looked(
        book, look, known, options, contradicted, partial(certify_table, about)
    )
    fitted = at_threshold(fitted, certificate, options)
    about = replace(about, fitted=fitted)
    with fixed_models(fitted.model):
        return _document_of_table(about, divided, certificate, turn, book, search, runner)


def _document_of_table(
    about: Certified,
    divided: Divided,
    certificate: Certificate,
    turn: int,
    book: Ledger | None,
    search: Search,
    runner: Runner,
) -> Audit:
    """The page about the model that its certificate is about."""
    table, split, fitted, options = about.table, about.split, about.fitted, divided.options
    X, _ = about.rows_of(fitted)
    train = np.union1d(split.fit, split.select)
    schema = Schema.of(table, fitted.columns, train)
    # dates move on
    read = {c.name: c.kind for c in table.studied if c.name in fitted.columns}
    kinds = {name: kind for name, kind in read.items() if kind != "date"}
    reference = Reference.from_rows(
        take(table.X[fitted.columns], train), X, kinds, scores_of(fitted.model, X)
    )
    differ = unlabelled_differ(table, schema, reference, fitted.model)
    context = Context(
        title=table.name,
        target=table.target,
        task=table.task,
        X=table.X[fitted.columns],
        y=table.y,
        groups=table.groups,
        columns=table.columns,
        findings=(*table.findings, *search.found, *differ),
        split=split,
        selection=fitted.selection,
        model=fitted.model,
        unfitted=fitted.unfitted,
        threshold=fitted.threshold,
        certificate=certificate,
        options=options,
        runner=runner,
        turn=turn,
        suspects=divided.suspects,
        group_name=table.group or "group",
        time_name=table.time or "",
        looked_in=None if book is None else book.paths,
        compared=about.compared,
        search=search,
        unlabelled_compared=comparable(table),
        left_out=fitted.left_out,
        rungs=about.rungs,
        not_installed=fitted.not_installed,
        widths=fitted.widths,
        images=table.images,
    )
    numbers = {"reading": table.reading, "columns": fitted.columns}
    return document(
        context,
        table.frame.shape[1] - 1,
        numbers,
        entries=ENTRIES,
        schema=schema,
        reference=reference.to_dict(),
    )


@dataclass(frozen=True, eq=False)
class _Given:
    """What `audit` was given with a fitted model."""

    model: Model
    X: RowsLike | None
    y: npt.ArrayLike | None
    task: Task | None
    seen: SeenRows | None
    groups: Any  # one label per row, as the user brings them, or None
    classes: Labels
    against: Model | None


@limits.one_thread()
def _audit_fitted(given: _Given, ledger: LedgerArgument, options: Options, runner: Runner) -> Audit:
    """Certify and audit a model that was fitted elsewhere; every row of X is a certify row."""
    if given.X is None or given.y is None:
        raise ValueError("a fitted model needs X and y, rows it has not seen")
    model, seen, groups, against = given.model, given.seen, given.groups, given.against
    task, classes = task_of(model, given.task), given.classes
    if options.sets is not None and task == "regression":
        raise ValueError("sets is about labels; numbers have an interval, see alpha")
    X = in_rows(given.X if hasattr(given.X, "shape") else np.asarray(given.X))
    y = np.asarray(given.y)
    fit_rows = (
        None
        if seen is None
        else check_seen(seen, model, X, y, task, classes, jobs.seed_for("seen", options.seed))
    )
    shared = {"groups": groups, "classes": classes, "baseline": against}
    if fit_rows is not None and task == "classification" and against is None:
        shared["majority"] = best_constant(fit_rows.y, options.positive, options.miss)
    compared = None if fit_rows is None or groups is not None else compare_rows(fit_rows.X, X)
    if compared is not None and compared.planned:
        shared["novel"] = compared.novel
    book, search = open_ledger(ledger, None), search_rows(X, groups)
    with fixed_models(model, *([] if against is None else [against])):
        look = describe_look(
            [(model, X)], against, y, groups, options, seen=fit_rows, name=describe(model)
        )
        known = known_rows(X, y, hash_arrays(X, y))
        contradicted = () if options.independent else search.found
        make = partial(certify_rows, model, X, y, task=task, **shared)
        certificate, turn = looked(book, look, known, options, contradicted, make)
        context = Context(
            title=describe(model),
            target="",
            task=task,
            X=X,
            y=y,
            groups=groups,
            columns=(),
            findings=(*(() if fit_rows is None else fit_rows.findings), *search.found),
            split=None,
            selection=None,
            model=model,
            certificate=certificate,
            options=options,
            runner=runner,
            turn=turn,
            unfitted=None if fit_rows is None else fit_rows.unfitted,
            seen=None if fit_rows is None else (fit_rows.X, fit_rows.y),
            looked_in=None if book is None else book.paths,
            compared=compared,
            search=search,
        )
        return document(context, int(np.prod(X.shape[1:])), {}, entries=ENTRIES)
