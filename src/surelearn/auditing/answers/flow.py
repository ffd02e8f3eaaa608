"""`audit_answers`: from a file of answers to a certificate and a page about them."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from surelearn.auditing.answers.one_pass import audit_counted, counted_if
from surelearn.auditing.answers.operating import (
    answering,
    check_required,
    check_sets,
    divide_units,
    tells_apart,
)
from surelearn.auditing.answers.roles import Roles
from surelearn.auditing.answers.sections import ENTRIES
from surelearn.auditing.answers.units import NO_LABEL, Kind, Units, read_units
from surelearn.auditing.answers.verdict import write_verdict
from surelearn.auditing.claims import ALWAYS_CLAIMED, Withholding, of_page
from surelearn.auditing.context import Context
from surelearn.auditing.looks import describe_look, open_ledger
from surelearn.auditing.options import OptionError, Options
from surelearn.auditing.pages import document, looked
from surelearn.certificate import Certificate
from surelearn.certification import certify
from surelearn.data.frames import Source
from surelearn.data.independence import search_frame
from surelearn.fingerprint import fingerprint_rows, fixed_models
from surelearn.jobs import Runner
from surelearn.jobs.threads import limits
from surelearn.lacking import Lacking
from surelearn.operating import LADDER_RULE, Requirement, Rungs
from surelearn.report import Audit
from surelearn.selection.ledger import LedgerArgument, Look

# of `Options`, those that answers have
ASKED = (
    "delta", "positive", "cost", "alpha", "loss", "loss_bound", "largest_group", "skip",
    "show_rows", "independent", "population", "require", "sets", "per_class",
)  # fmt: skip
# of `Roles`, those that are filled in where a model answers
OF_MODELS = ("probabilities", "labels", "answered_by", "rival_by")
_DRAWN = "the rows of the file that these were drawn from, as the weights 1/(N·q) say"
_COINS = "rows like these, each labeled by its own coin"
OF_CLASSES = ("class_error", "sensitivity", "specificity")
# what a row without a majority does not count against, if it is called negative
OF_TIES = ("specificity", "specificity_distance", "f1", "auc", "selection_difference",
           "sensitivity_difference")  # fmt: skip
OF_RANKS = ("balanced_accuracy", "f1", "auc")  # metrics of scores that are no probabilities


def audit_answers(
    source: Source | None,
    *,
    ledger: LedgerArgument = None,
    runner: Runner | None = None,
    one_pass: bool | None = None,
    **given: Any,
) -> Audit:
    """Certify answers that somebody wrote down, beside what is right or how they were judged.

    Parameters
    ----------
    source : a file, or a data frame, with one row per unit
    ledger, runner : as in `surelearn.audit`
    one_pass : whether a file is read in one pass, in memory that does not grow with its rows; by
        default where it is long (`surelearn.data.counting.is_large`) and counts and sums are enough
    **given : which column is what (`surelearn.auditing.answers.Roles`), and ``delta``,
        ``positive``, ``cost``, ``require``, ``sets``, ``per_class``, ``alpha``, ``loss``, ``loss_bound``, ``largest_group``,
        ``independent``, ``population``, ``show_rows``, ``skip`` as in `surelearn.audit`

    Examples
    --------
    >>> import pandas as pd
    >>> judged = pd.DataFrame({"passed": [True] * 96 + [False] * 4})
    >>> audit_answers(judged, passed="passed", ledger=False).verdict.text
    'On new rows like these, the pass rate is at least 91.0% (95% confidence).'
    """
    roles, options = roles_and_options(given)
    runner = runner or Runner()
    counted = counted_if(source, roles, options, one_pass, runner)
    if counted is not None:
        return audit_counted(counted, roles, options, ledger, runner)
    units = read_units(source, roles, options.positive, walked=options.require is not None)
    return audit_units(units, roles, options, ledger, runner)


def roles_and_options(given: Mapping[str, Any], *, answered: bool = False) -> tuple[Roles, Options]:
    """What the columns are, and what is asked; an unknown name is refused with a near one.

    ``answered``: a model answers, so that no column of answers is named.
    """
    known = [field.name for field in fields(Roles) if field.name not in OF_MODELS]
    known += ["labels"] if answered else []
    if unknown := [name for name in given if name not in (*known, *ASKED)]:
        near = difflib.get_close_matches(unknown[0], [*known, *ASKED], n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else f"it is none of {', '.join(known)}"
        raise OptionError(lambda name: f"{name} is no option of answers: {hint}", unknown[0])
    columns = {name: given[name] for name in known if name in given}
    roles = Roles(**columns, answered_by="a model" if answered else None)
    asked = {name: given[name] for name in ASKED if name in given}
    if asked.get("positive") is not None:
        asked["positive"] = str(asked["positive"])
    options = Options(**asked)
    if roles.score is not None and options.positive is None:
        raise OptionError(
            lambda s, p: f"{s} needs {p}, the class whose score it is", "score", "positive"
        )
    if options.cost is not None and len(roles.truth) > 1:
        raise OptionError(
            lambda c, t: f"{c} does not go with several {t}: what a tie costs is not known",
            "cost",
            "truth",
        )
    check_required(roles, options)
    check_sets(roles, options)
    return roles, replace(options, slices=roles.slices)


@limits.one_thread()
def audit_units(
    units: Units, roles: Roles, options: Options, ledger: LedgerArgument, runner: Runner
) -> Audit:
    """Certify units that were read, and write the document about them."""
    book = open_ledger(ledger, units.path)
    search = search_frame(units.beside, units.groups)
    contradicted = () if options.independent else search.found
    rivals = [] if units.rival is None else [units.rival]
    requirement, rungs, read = options.requirement, None, len(units.y)
    if requirement is not None and requirement.quantity != "mean_error":
        drawn = "a hash of the columns that are neither scores nor labels"
        drawn = drawn if tells_apart(units) else "coins, since no column tells all rows apart"
        units, rungs = divide_units(units, requirement, options)
        runner.say(
            f"  thresholds fixed on {rungs.rows:,} of {read:,} rows, drawn by {drawn}; the other"
            f" {len(units.y):,} are certified"
        )
    with fixed_models(units.model, *rivals):
        look, alone = look_at(units, roles, options), ""
        if units.groups is not None:
            plain = look_at(
                replace(units, groups=None), roles, replace(options, largest_group=None)
            )
            alone = plain.models[0]
        make = partial(certify_units, units, roles, rungs=rungs)
        certificate, turn = looked(book, look, units.known, options, contradicted, make, alone)
        if rungs is not None and requirement is not None:
            units = answering(units, certificate.facts["walk.threshold"], requirement)
        context = Context(
            title=units.name,
            target=units.target,
            task=units.task,
            X=units.X,
            y=units.y,
            groups=units.groups,
            columns=(),
            findings=(*units.findings, *search.found),
            split=None,
            selection=None,
            model=units.model,
            certificate=certificate,
            options=options,
            runner=runner,
            turn=turn,
            group_name=roles.group or "group",
            looked_in=None if book is None else book.paths,
            search=search,
            answers=units,
            unlabelled_compared=units.unlabeled_compared,
            rungs=rungs,
        )
        return document(
            context,
            units.beside.shape[1],
            {"answers": roles.to_dict()},
            entries=ENTRIES,
            say=write_verdict,
            keep_model=False,
        )


def look_at(units: Units, roles: Roles, options: Options, **more: Any) -> Look:
    """The look that certifying these units is, as ledgers know it."""
    asked = (repr(sorted(roles.to_dict().items())), *more.pop("more", ()))
    columns = [units.weights, units.baseline_grades, *(one.values for one in units.further)]
    stated = [repr((roles.loss_range, roles.weight_bound, roles.coin))]
    stated += [fingerprint_rows((), np.asarray(one)) for one in columns if one is not None]
    look = describe_look(
        [(units.model, units.X)],
        units.rival,
        units.y,
        units.groups,
        options,
        name=units.name,
        target=units.target,
        more=asked,
        asked_of_rows=stated,
        **more,
    )
    if units.bounds is not None and units.task == "losses" and roles.grade is not None:
        look = replace(look, loss_bound=units.bounds[1] - units.bounds[0])
    return look


def certify_units(
    units: Units,
    roles: Roles,
    options: Options,
    withheld: Withholding,
    *,
    rungs: Rungs | None = None,
) -> Certificate:
    """The claims about answers, on one δ; with ``rungs``, at a threshold that is chosen here."""
    columns = units.columns
    if units.task == "regression" and options.loss_bound is None:
        columns = {**columns, "slices": None}  # nothing is averaged, in slices neither
    more: dict[str, Any] = {}
    if units.task == "classification":
        more = {"classes": list(units.classes), "unseen": list(units.unseen)}
        more |= {"metrics": _metrics(units, roles)}
    elif units.task == "losses":
        more = {"loss": units.called}
    asked = asked_of_answers(units.task, roles, options)
    units_at = None
    if rungs is not None:
        more["thresholds"] = rungs.thresholds
        # walked once to find the threshold, and once more with the model that answers from there on,
        # which is the one that is certified
        first = certify(units.model, units.X, units.truth, **columns, **asked, **more)
        required = Requirement.parse(asked["require"])
        units_at = first.facts["walk.threshold"]
        units = answering(units, units_at, required)
    made = certify(units.model, units.X, units.truth, **columns, **asked, **more)
    if rungs is not None and made.facts["walk.threshold"] != units_at:
        raise ValueError("the walk ended at another threshold with the model that answers there")
    if roles.weight is not None:
        population = _COINS if roles.coin else _DRAWN
        claims = [
            replace(claim, covers=replace(claim.covers, population=population))
            for claim in made.claims
        ]
        made = replace(made, claims=tuple(claims))
    if len(roles.truth) > 1:
        made = _less_of(made, OF_TIES, "raters may tie, and a tie is neither class")
    if units.weights is not None and units.groups is not None:
        why = "a group's labeled rows of a class are no sample of its rows of that class"
        made = _less_of(made, OF_CLASSES, why)
    if units.drawn and NO_LABEL in units.unseen:
        made = _less_of_unlabeled(made)
    names: dict[str, Any] = {"target": units.target, "prediction": _answered(roles)}
    names["answers"] = roles.stated()
    if rungs is not None:
        names["ladder"] = LADDER_RULE
    if options.sets is not None and not units.probable:
        names["score_is_probability"] = False
    names |= {n: v for n in ("against", "group") if (v := getattr(roles, n)) is not None}
    if withheld.raised is not None and units.task == "losses":
        absent = [Lacking(claim.quantity, withheld.raised.reason) for claim in made.claims]
        made = replace(made, claims=(), lacking=(*made.lacking, *absent))
    return of_page(made, None, withheld, names)


def _less_of(made: Certificate, without: Collection[str], why: str) -> Certificate:
    """The certificate without the claims about some quantities."""
    absent = [
        Lacking(claim.quantity, f"{claim.label}: {why}", claim.theorem)
        for claim in made.claims
        if claim.quantity in without
    ]
    kept = tuple(claim for claim in made.claims if claim.quantity not in without)
    return replace(made, claims=kept, lacking=(*made.lacking, *absent))


def _less_of_unlabeled(made: Certificate) -> Certificate:
    """Only the claims for which a drawn row without a label counts as the worst that it can be."""
    kept = ("risk", "slice_risk", "precision", "mean_grade", "slice_grade", "label_error")
    others = {claim.quantity for claim in made.claims} - {*kept}
    why = "some rows that were drawn have no label, and what they are is not known"
    return _less_of(made, others, why)


def asked_of_answers(task: Kind, roles: Roles, options: Options) -> dict[str, Any]:
    """What `certify` is given of the options, whatever the rows are."""
    asked: dict[str, Any] = {"delta": options.delta, "largest_group": options.largest_group}
    if roles.weight is not None:
        asked["weight_bound"] = roles.weight_bound
    if task == "classification":
        asked |= {"task": task, "positive": options.positive, "cost": options.cost}
        asked |= {} if options.require is None else {"require": options.require}
        return asked | options.of_sets
    if task == "losses":
        return {**asked, "loss_range": roles.loss_range or (0.0, 1.0), "better": "higher"}
    numbers = {name: getattr(options, name) for name in ("alpha", "loss", "loss_bound")}
    if options.require is not None and options.loss_bound is not None:
        numbers["require"] = options.require
    return {**asked, "task": task, **numbers}


def _metrics(units: Units, roles: Roles) -> tuple[str, ...]:
    """The metrics that are claimed of labels: of scores those that their kind allows."""
    sliced = ("differences",) if units.slices is not None else ()
    ranked = roles.score is not None and not units.probable
    return (*(OF_RANKS if ranked else ALWAYS_CLAIMED), *sliced)


def _answered(roles: Roles) -> str:
    """The column that answers stand in."""
    return next(
        name
        for name in (
            *roles.answer,
            roles.score,
            roles.probability,
            roles.passed,
            roles.grade,
            roles.winner,
        )
        if name
    )
