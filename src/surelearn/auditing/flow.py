"""`audit`: from a table, or a fitted model and rows, to a selected, certified, audited model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.adapters import Task, describe, scores_of, task_of
from surelearn.auditing.bounds_compared import extend
from surelearn.auditing.context import Context, Options, Runner
from surelearn.auditing.dividing import divide
from surelearn.auditing.fitting import Fitted, fit, fit_rival
from surelearn.auditing.independence import LABELLED, comparable, unlabelled_differ, withhold
from surelearn.auditing.looks import (
    describe_look,
    keep_losses,
    known_rows,
    known_table,
    open_ledger,
    raised_bound,
    without_raised_bound,
)
from surelearn.auditing.novelty import compare_rows, compare_table
from surelearn.auditing.one_row import own_certificate
from surelearn.auditing.sections import write_sections
from surelearn.auditing.seen import check_seen, hash_arrays, in_rows
from surelearn.auditing.slices import choose_slices
from surelearn.auditing.trust import MODULES
from surelearn.auditing.verdict import write_verdict
from surelearn.certificate import Absent, Certificate
from surelearn.certification import certify, uncounted
from surelearn.data import Table, read_table
from surelearn.data.independence import search_rows, search_table
from surelearn.data.novelty import Compared
from surelearn.data.schema import Schema
from surelearn.fingerprint import fingerprint_rows
from surelearn.jobs.threads import limits
from surelearn.measurement import LossBoundError
from surelearn.monitoring import Reference
from surelearn.report import Audit
from surelearn.selection.costs import best_constant
from surelearn.selection.cross_validation import take
from surelearn.selection.ledger import Known, Ledger, LedgerArgument, Look, allowance, ordinal
from surelearn.selection.selector import Selection
from surelearn.selection.split import Split


def audit(
    source: Any = None,
    X: Any = None,
    y: Any = None,
    *,
    target: str | int | None = None,
    header: bool | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    group: str | None = None,
    time: str | None = None,
    task: Task | None = None,
    models: Any = None,
    against: Any = None,
    seen: Any = None,
    groups: Any = None,
    classes: Any = None,
    ledger: LedgerArgument = None,
    n_jobs: int | None = None,
    journal: jobs.Journal | None = None,
    runner: Runner | None = None,
    **options: Any,
) -> Audit:
    """Audit a table (fit, select, certify, audit) or a fitted model on rows it has not seen (certify, audit).

    Parameters
    ----------
    source : a file, a built-in set's name, a DataFrame, or a fitted model, then with ``X`` and ``y``; nothing: breast cancer
    target, header, drop, group, time, task : how to read the table, see `surelearn.data.read_table`
    keep : columns that look like the target but are known when a prediction is made
    models : candidates by name, such as ``["perceptron", "naive Bayes"]`` or ``"all"``; or your own, from simple to complex,
        unfitted: a model, list, or mapping of names
    against : another model whose risk is compared with on the same rows (unfitted for a table, fitted for a fitted model)
    seen : for a fitted model: ``(X_seen, y_seen)``, the rows that it was fitted on, with the columns of ``X``. With them the
        page attacks membership, poisons the fit (again, if the model can be cloned), and takes units, the majority and
        backgrounds from them; rows that are also in ``X`` and ``y`` are refused, but for copies where rows repeat anyway
    groups, classes : for a fitted model: one label a row; its labels, if it has no ``classes_``
    ledger : where uses of certify rows are recorded; by default beside the data, or in the user's state folder; False keeps
        none, and the page says so
    n_jobs : parallel tasks; results do not depend on it
    **options : ``delta``, ``positive``, ``cost``, ``threshold``, ``slices``, ``alpha``, ``loss_bound``, ``largest_group``,
        ``seed``, … as in `surelearn.auditing.context.Options`; ``independent=True`` vouches for rows that look dependent,
        ``population="labelled"`` says that rows without a label do not matter; ``show_rows=True`` prints values of
        single rows

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> result = audit("iris", models={"linear": LogisticRegression(max_iter=500)}, ledger=False, refits=2, curve_repeats=0)
    >>> print(result.verdict.kind)
    guaranteed
    """
    several = {name: options.get(name, ()) for name in ("slices", "skip")}
    asked = Options(**{**options, **{name: (v,) if isinstance(v, str) else tuple(v) for name, v in several.items()}})
    if not 0 < asked.delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, not {asked.delta!r}")
    if asked.population not in (None, LABELLED):
        raise ValueError(f"population must be {LABELLED!r} or nothing, not {asked.population!r}")
    if unknown := sorted(set(asked.skip) - set(MODULES)):
        raise ValueError(f"skip must name sections among {', '.join(MODULES)}, not {unknown[0]!r}")
    if not isinstance(asked.effort, int | float | np.number) or not 0 < asked.effort < float("inf"):
        raise ValueError(f"effort must be a finite number above 0, not {asked.effort!r}")
    runner = runner or Runner(n_jobs=n_jobs, journal=journal)
    if hasattr(source, "predict") or (callable(source) and not isinstance(source, type)):
        table_only = {"target": target, "drop": drop, "keep": keep, "group": group, "time": time, "models": models}
        table_only |= {name: getattr(asked, name) for name in ("slices", "threshold")}
        if given := [name for name, value in table_only.items() if value not in (None, (), [])]:
            raise ValueError(f"{given[0]} goes with a table, not with a fitted model")
        return _audit_fitted(source, X, y, task, seen, groups, classes, against, ledger, asked, runner)
    if X is not None or y is not None or seen is not None:
        raise ValueError("X, y and seen go with a fitted model; for a table pass the file or DataFrame and target=")
    table = read_table(source, target=target, header=header, drop=drop, group=group, time=time, task=task)
    return audit_table(table, keep=keep, models=models, against=against, ledger=ledger, options=asked, runner=runner)


@limits.one_thread()  # PyTorch's sums depend on its threads, and those on whether it was loaded here or in a task
def audit_table(
    table: Table, *, keep: Sequence[str], models: Any, against: Any, ledger: LedgerArgument, options: Options, runner: Runner
) -> Audit:
    """Split, select, fit, certify and audit; see `audit`."""
    divided = divide(table, keep, options)
    split, options = divided.split, divided.options
    runner.say(divided.line())
    fitted = fit(table, split, divided.columns, models, options, runner)
    runner.say(f"{fitted.selection.name} chosen among {len(fitted.selection.names)}")
    including = fit(table, split, divided.used, models, options, runner, "with suspects/") if divided.suspects else None
    rival = None if against is None else fit_rival(table, split, fitted.columns, against, options, runner)
    X, y = take(table.X[fitted.columns], split.certify), table.y[split.certify]
    book, known = open_ledger(ledger, table.path), known_table(table, split)
    both = [(fitted.model, X)]
    if including is not None:
        both.append((including.model, take(table.X[including.columns], split.certify)))
    look = describe_look(both, rival, y, table.groups, options, name=table.name, target=table.target)
    compared = compare_table(table, split, fitted.columns)
    certificate, turn = _looked(
        book, look, known, options, lambda paid: certify_table(table, split, fitted, including, rival, compared, paid)
    )
    search = search_table(table)
    certificate = withhold(certificate, () if options.independent else search.found)
    train = np.union1d(split.fit, split.select)
    schema = Schema.of(table, fitted.columns, train)
    kinds = {c.name: c.kind for c in table.columns if c.name in fitted.columns and c.kind != "date"}  # dates move on
    reference = Reference.from_rows(take(table.X[fitted.columns], train), X, kinds, scores_of(fitted.model, X))
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
        compared=compared,
        search=search,
        unlabelled_compared=comparable(table),
    )
    result = _document(context, table.frame.shape[1] - 1, fitted.selection)
    numbers = {**result.numbers, "reading": table.reading, "columns": fitted.columns}
    return replace(
        result,
        numbers=numbers,
        schema=schema,
        reference=reference.to_dict(),
    )


def _named(certificate: Certificate, table: Table) -> Certificate:
    """The certificate with the names of the columns that its rows came from, for those who watch it later."""
    names = {"target": table.target} | ({} if table.group is None else {"group": table.group})
    facts = certificate.facts
    return replace(certificate, facts=replace(facts, options={**facts.options, **names}))


@limits.one_thread()
def _audit_fitted(
    model: Any,
    X: Any,
    y: Any,
    task: Task | None,
    seen: Any,
    groups: Any,
    classes: Any,
    against: Any,
    ledger: LedgerArgument,
    options: Options,
    runner: Runner,
) -> Audit:
    """Certify and audit a model that was fitted elsewhere; every row of X is a certify row."""
    if X is None or y is None:
        raise ValueError("a fitted model needs X and y, rows it has not seen")
    task = task_of(model, task)
    X, y = in_rows(X if hasattr(X, "shape") else np.asarray(X)), np.asarray(y)
    fit_rows = None if seen is None else check_seen(seen, model, X, y, task, classes, jobs.seed_for("seen", options.seed))
    book = open_ledger(ledger, None)
    look = describe_look([(model, X)], against, y, groups, options, seen=fit_rows, name=describe(model))
    shared = {"task": task, "groups": groups, "classes": classes, "baseline": against}
    if fit_rows is not None and task == "classification" and against is None:
        shared["majority"] = best_constant(fit_rows.y, options.positive, options.miss)
    compared = None if fit_rows is None or groups is not None else compare_rows(fit_rows.X, X)
    if compared is not None and compared.planned:
        shared["novel"] = compared.novel

    def make(paid: Options) -> Certificate:
        certificate = certify(model, X, y, **shared, **_claim_options(paid, task))
        return extend(certificate, learner=own_certificate(model, None))

    certificate, turn = _looked(book, look, known_rows(X, y, hash_arrays(X, y)), options, make)
    search = search_rows(X, groups)
    certificate = withhold(certificate, () if options.independent else search.found)
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
    return _document(context, X.shape[1] if hasattr(X, "shape") and len(X.shape) > 1 else 1, None)


def _looked(
    book: Ledger | None, look: Look, table: Known, options: Options, make: Callable[[Options], Certificate]
) -> tuple[Certificate, int]:
    """The certificate at the confidence that this look at the rows has, and which look it is; on disk before it is made."""
    if book is None:
        with uncounted():
            return make(options), 1
    look = book.record(look, table)
    paid = replace(options, delta=allowance(options.delta, look.turn))
    raised = raised_bound(look, book.at(table))
    try:
        with uncounted():
            certificate = make(paid if raised is None else replace(paid, loss_bound=None))
    except LossBoundError:
        book.amend(look.audit, contradicted=True)
        raise
    if raised is not None:
        certificate = without_raised_bound(certificate, options.loss_bound, raised)
    keep_losses(certificate)
    return certificate, look.turn


def _claim_options(options: Options, task: Task) -> dict[str, Any]:
    names = ("delta", "alpha", "loss", "loss_bound") if task == "regression" else ("delta", "positive")
    asked = {name: getattr(options, name) for name in (*names, "largest_group")}
    return asked if task == "regression" else {**asked, "cost": options.miss}


def certify_table(
    table: Table,
    split: Split,
    fitted: Fitted,
    including: Fitted | None,
    rival: Any,
    compared: Compared | None,
    options: Options,
) -> Certificate:
    """The claims of the page, on one δ, with the names of the columns that its rows came from."""
    return _named(_certify(table, split, fitted, including, rival, compared, options), table)


def _certify(
    table: Table,
    split: Split,
    fitted: Fitted,
    including: Fitted | None,
    rival: Any,
    compared: Compared | None,
    options: Options,
) -> Certificate:
    train = np.union1d(split.fit, split.select)
    X, y = take(table.X[fitted.columns], split.certify), table.y[split.certify]
    shared: dict[str, Any] = {"groups": None if table.groups is None else table.groups[split.certify], "task": table.task}
    shared |= _claim_options(options, table.task)
    if table.task == "classification":
        constant = None if rival is not None else best_constant(table.y[train], options.positive, options.miss)
        shared |= {"classes": np.unique(table.y), "majority": constant}
    if table.time is not None:
        certificate = certify(fitted.model, X, y, **shared)
        why = f"rows are ordered by {table.time!r}: the last ones measure the past, they do not bound the future"
        absent = [
            Absent(quantity=claim.quantity, theorem=claim.theorem, reason=f"{claim.label}: {why}")
            for claim in certificate.claims
        ]
        return replace(certificate, claims=(), absent=tuple(absent))
    kinds = {column.name: column.kind for column in table.columns if column.name in fitted.columns}
    slices = choose_slices(take(table.X[fitted.columns], train), fitted.selection.losses, kinds, options.slices)
    if table.task == "regression" and options.loss_bound is None:
        slices = None
    novel = compared.novel if compared is not None and compared.planned else None
    if including is None:
        certificate = certify(fitted.model, X, y, slices=slices, baseline=rival, novel=novel, **shared)
        return extend(certificate, learner=own_certificate(fitted.model, fitted.selection))
    # Two models share the headline's half of δ: a quarter each, and the other half for the other claims of the first.
    delta = options.delta
    certificate = certify(
        fitted.model, X, y, slices=slices, baseline=rival, novel=novel, **{**shared, "delta": 0.75 * delta}, headline=1 / 3
    )
    other = certify(including.model, take(table.X[including.columns], split.certify), y, **{**shared, "delta": delta / 2})
    headline = other.claims[0]
    dropped = [name for name in including.columns if name not in fitted.columns]
    if len(other.claims) == 1:
        headline = headline.at(delta / 4, candidates=1)
    extra = replace(headline, label=f"{headline.label} with {', '.join(dropped)}", sources={})
    certificate = replace(certificate, claims=(*certificate.claims, extra), delta=delta)
    return extend(certificate, learner=own_certificate(fitted.model, fitted.selection, dropped))


def _document(context: Context, columns: int, selection: Selection | None) -> Audit:
    facts = context.certificate.facts
    chips = []
    if selection is not None:
        chips.append(f"{selection.name}, chosen among {len(selection.names)}")
    held = (
        "rows measured on" if context.time_name else "rows held back for this page" if selection else "rows it had not seen"
    )
    chips.append(f"{facts['rows']:,} {held}")
    later = f"{ordinal(context.turn)} audit of these rows" if context.turn > 1 else "no earlier audit known here"
    chips.append("no ledger kept" if context.looked_in is None else later)
    chips += ["shows values of single rows"] if context.options.show_rows else []
    chips.append("statistical, not regulatory")
    sections = write_sections(context)
    numbers: dict[str, Any] = {"options": asdict(context.options), "turn": context.turn, "threshold": context.threshold}
    if context.split is not None:
        numbers["split"] = {"rule": context.split.rule}
    if context.seen is not None:
        numbers["seen"] = {"rows": len(context.seen[1]), "hash": fingerprint_rows(*context.seen)}
    if selection is not None:
        numbers["selection"] = {
            "names": selection.names,
            "errors": selection.errors,
            "standard errors": selection.standard_errors,
            "fold errors": selection.fold_errors,
            "chosen": selection.chosen,
        }
    return Audit(
        title=context.title,
        target=context.target,
        rows=len(context.y),
        columns=columns,
        verdict=write_verdict(context),
        chips=tuple(chips),
        certificate=context.certificate,
        sections=sections,
        numbers=numbers,
        model=context.model,
    )
