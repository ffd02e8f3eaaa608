"""The certificate of a page, written once: claims on one δ, bounds beside them, and what may
not be claimed, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.auditing.fitting import FittedChoice
from surelearn.auditing.options import Options
from surelearn.auditing.single_rows import FEWEST
from surelearn.auditing.walking import at_threshold
from surelearn.bounds import betting_upper, chernoff_kl, empirical_bernstein, hoeffding
from surelearn.bounds.holdout import ORDER, STATED_RANGE, UNIT_RANGE
from surelearn.certificate import (
    FIXED_BEFOREHAND,
    SECOND_MODEL,
    Certificate,
    Facts,
    needs_fixed_parameters,
)
from surelearn.certification import certify
from surelearn.claim import Claim, Finding, find_theorem
from surelearn.data import Table
from surelearn.data.novelty import Compared
from surelearn.lacking import Lacking
from surelearn.operating import Rungs
from surelearn.renamed import from_fit_rows
from surelearn.selection.costs import best_constant
from surelearn.selection.selector import Selection
from surelearn.selection.split import Split
from surelearn.slicing import choose_slices
from surelearn.subject import Task, subject_of
from surelearn.subject.refitting import take
from surelearn.types import Array, Model, RowsLike

PREPARED = "the fit rows were looked at before: to prepare columns, and to choose among candidates"
TRAINING_ROW_THEOREMS = (
    "uniform_stability_nonnegative",
    "rademacher_margin",
    "boosting_vc",
    "hypergeometric_tail_inversion",
    "vc",
    "campi_garatti",
    "gibbs_linear_classifier",
)


@dataclass(frozen=True, kw_only=True)
class Withholding:
    """What these rows may not be used to claim.

    Attributes
    ----------
    found : what contradicts that rows are independent draws, unless the user vouches for them; then
        nothing is claimed
    raised : why the mean loss is not claimed, where its bound was chosen by these rows
    """

    found: tuple[Finding, ...] = ()
    raised: Lacking | None = None


ALWAYS_CLAIMED = ("balanced_accuracy", "f1", "auc", "brier", "log_loss", "calibration")
ROWS_PER_BIN, SMALLEST_BIN = 30, 1 / 7
EDGES = (0.01, 0.02, 0.05, *(round(0.1 * k, 1) for k in range(1, 10)), 0.95, 0.98, 0.99)


@dataclass(frozen=True, eq=False)
class Certified:
    """What a table's certificate is about: the model on the page and, beside a suspected leak, the
    one with the suspects.

    Attributes
    ----------
    including : the model that was given the columns that repeat the target; None where there are
        none
    rival : the model that is compared with; None: the best constant answer of the fit rows
    rungs : the thresholds that an operating point may be chosen among
    set_score : what prediction sets score labels by, `surelearn.operating.sets.SCORES`
    """

    table: Table
    split: Split
    fitted: FittedChoice
    including: FittedChoice | None = None
    rival: Any = None
    compared: Compared | None = None
    rungs: Rungs | None = None
    set_score: str = "probability"

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns that only the second model has."""
        columns = () if self.including is None else self.including.columns
        return tuple(name for name in columns if name not in self.fitted.columns)

    def rows_of(self, fitted: FittedChoice) -> tuple[Any, Any]:
        """The certify rows: features as a model reads them, and targets."""
        return (
            take(self.table.X[fitted.columns], self.split.certify),
            self.table.y[self.split.certify],
        )


def certify_table(about: Certified, options: Options, withheld: Withholding) -> Certificate:
    """The claims of a table's page, on one δ, with the names of the columns that its rows came
    from.
    """
    table, fitted, shared = about.table, about.fitted, _shared(about, options)
    X, y = about.rows_of(fitted)
    names = {"target": table.target} | ({} if table.group is None else {"group": table.group})
    if table.time is not None:
        made = certify(fitted.model, X, y, **shared)
        why = (
            f"rows are ordered by {table.time!r}: the last ones measure the past, they do not bound"
            " the future"
        )
        absent = _absent(made.claims, why)
        return replace(
            made,
            facts=_with(made.facts, names),
            claims=(),
            lacking=_without_raised(absent, withheld.raised),
        )
    if about.rungs is not None and about.including is None:
        return _at_a_chosen_threshold(about, options, withheld, names, about.rungs)
    more: dict[str, Any] = {"slices": _slices(about, options), "baseline": about.rival}
    more["novel"] = (
        about.compared.novel if about.compared is not None and about.compared.planned else None
    )
    more |= _metrics(about, options) | _sets(about, options)
    learner = own_certificate(fitted.model, fitted.selection, about.dropped)
    if about.including is None:
        made = certify(fitted.model, X, y, **more, **shared)
        return of_page(made, learner, withheld, names)
    # Two models share the headline's half of δ: a quarter each, and the other half for the other
    # claims of the first.
    delta = options.delta
    made = certify(fitted.model, X, y, **more, **{**shared, "delta": 0.75 * delta}, headline=1 / 3)
    other = certify(
        about.including.model, *about.rows_of(about.including), **{**shared, "delta": delta / 2}
    )
    second = _second(other, delta / 4, about.dropped)
    return of_page(replace(made, delta=delta), learner, withheld, names, (second, other.facts))


def _at_a_chosen_threshold(
    about: Certified,
    options: Options,
    withheld: Withholding,
    names: Mapping[str, str],
    rungs: Rungs,
) -> Certificate:
    """The claims about a threshold that the certify rows choose: walked once to find it, and once
    more with the model that answers from there on, which is the one that is certified.
    """
    more = {"require": options.require, "thresholds": rungs.thresholds}
    more |= _metrics(about, options) | _sets(about, options)
    if options.slices:
        more["slices"] = _slices(about, options)

    def made(fitted: FittedChoice) -> Certificate:
        X, y = about.rows_of(fitted)
        return certify(fitted.model, X, y, **more, **_shared(about, options))

    fitted = at_threshold(about.fitted, made(about.fitted), options)
    learner = own_certificate(fitted.model, fitted.selection)
    return of_page(made(fitted), learner, withheld, names)


def certify_rows(
    model: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    options: Options,
    withheld: Withholding,
    *,
    task: Task,
    **more: Any,
) -> Certificate:
    """The claims about a model that was fitted elsewhere."""
    if task == "classification":
        more = {**more, "metrics": ALWAYS_CLAIMED, **options.of_sets}
    made = certify(model, X, y, task=task, **more, **asked_of(options, task))
    return of_page(made, own_certificate(model, None), withheld, {})


def own_certificate(
    model: Model, selection: Selection | None, dropped: Sequence[str] = ()
) -> Certificate | Lacking:
    """What the learner guarantees from the rows it was fitted on, or why that is void here.

    It is not void if this was the only candidate, no step before the learner learned anything from
    the rows, and no column was ``dropped`` because of what it says about the labels.
    """
    void = "claims from the fit rows"
    if selection is None:
        return Lacking(void, "how the model was fitted is not known here")
    if dropped:
        names = ", ".join(map(repr, dropped))
        why = (
            f"{names} left out because of the fit rows' labels: which columns there are was not"
            " fixed beforehand"
        )
        return Lacking(void, why)
    subject = subject_of(model)
    certificate, learned = subject.certificate, subject.learned_steps
    if selection.compared > 1 or not isinstance(certificate, Certificate):
        return Lacking(void, PREPARED)
    if subject.cut is not None:
        return Lacking(void, "the decision threshold may have been chosen on them")
    return (
        Lacking(void, f"the step {learned[0]!r} was fitted on the same rows")
        if learned
        else certificate
    )


def asked_of(options: Options, task: Task) -> dict[str, Any]:
    """The options of an audit that `certify` is given."""
    names = (
        ("delta", "alpha", "loss", "loss_bound") if task == "regression" else ("delta", "positive")
    )
    asked = {name: getattr(options, name) for name in (*names, "largest_group")}
    if options.target_range is not None:
        asked["target_range"] = options.target_range
    return asked if task == "regression" else {**asked, "cost": options.miss}


def _shared(about: Certified, options: Options) -> dict[str, Any]:
    """What is the same for both models of a table."""
    table, split = about.table, about.split
    shared: dict[str, Any] = {
        "groups": None if table.groups is None else table.groups[split.certify],
        "task": table.task,
    }
    shared |= asked_of(options, table.task)
    if table.task == "regression" and options.loss_bound is not None:
        shared["require"] = options.require
    if table.task == "classification":
        train = np.union1d(split.fit, split.select)
        constant = (
            None
            if about.rival is not None
            else best_constant(table.y[train], options.positive, options.miss)
        )
        # a label that only certify rows have must not change how δ is divided
        known = np.unique(table.y[train])
        shared |= {"classes": known, "unseen": np.setdiff1d(table.y, known), "majority": constant}
    return shared


def _metrics(about: Certified, options: Options) -> dict[str, Any]:
    """The metrics of a classifier that are claimed; differences between slices where columns were
    asked for.

    Bins of probabilities are cut by the chosen candidate's probabilities of rows that it was not
    fitted on, never by the certify rows.
    """
    if about.table.task != "classification":
        return {}
    metrics = (*ALWAYS_CLAIMED, *(("differences",) if options.slices else ()))
    scores = about.fitted.selection.scores
    if scores is None:
        return {"metrics": metrics}
    classes = np.unique(about.table.y[np.union1d(about.split.fit, about.split.select)]).tolist()
    if options.positive is not None or len(classes) == 2:
        positive = classes[-1] if options.positive is None else options.positive
        said = scores[:, classes.index(positive)]
    else:
        said = scores.max(axis=1)
    return {"metrics": metrics, "bins": cut_bins(said[~np.isnan(said)], about.split.certify.size)}


def _sets(about: Certified, options: Options) -> dict[str, Any]:
    """Prediction sets, where they are asked for."""
    asked = options.of_sets
    return asked and {**asked, "set_score": about.set_score}


def cut_bins(said: Array, n: int) -> tuple[float, ...]:
    """Round edges of bins that each have a seventh of the probabilities, and enough for about 30 of
    n rows.

    Examples
    --------
    >>> cut_bins(np.linspace(0, 1, 101), 1000)
    (0.2, 0.4, 0.6, 0.8)
    """
    least = max(ROWS_PER_BIN / max(n, 1), SMALLEST_BIN) * max(said.size, 1)
    kept: list[float] = []
    for edge in EDGES:
        inside = np.sum((said > (kept[-1] if kept else -1.0)) & (said <= edge))
        if inside >= least and np.sum(said > edge) >= least:
            kept.append(edge)
    return tuple(kept) or (0.5,)


def _slices(about: Certified, options: Options) -> Any:
    """Subpopulations, chosen and cut on fit rows; none for a regression without a stated range
    of its loss.
    """
    table, fitted = about.table, about.fitted
    if table.task == "regression" and options.loss_bound is None:
        return None
    kinds = {column.name: column.kind for column in table.studied if column.name in fitted.columns}
    train = np.union1d(about.split.fit, about.split.select)
    X = take(table.X[fitted.columns], train)
    return choose_slices(X, fitted.selection.losses, kinds, options.slices, fewest=FEWEST)


def of_page(
    made: Certificate,
    learner: Certificate | Lacking | None,
    withheld: Withholding,
    names: Mapping[str, Any],
    second: tuple[Claim, Facts] | None = None,
) -> Certificate:
    """The page's certificate from the claims of `certify`: with what stands beside them, less
    what may not be claimed.

    ``learner`` is what its learner guarantees from the rows it was fitted on, or why that is void;
    None where no learner is known.
    """
    claims, facts = list(made.claims), _with(made.facts, names)
    if second is not None:
        claims.append(second[0])
        facts = _with_second(facts, *second)
    beside, absent = _beside(made, learner)
    claims += beside
    lacking = _without_raised([*made.lacking, *absent], withheld.raised)
    if withheld.found:
        codes = ", ".join(sorted({finding.code for finding in withheld.found}))
        lacking += _absent(claims, f"rows are not independent draws ({codes})")
        claims = []
    return Certificate(facts=facts, claims=tuple(claims), lacking=tuple(lacking), delta=made.delta)


def _with(facts: Facts, names: Mapping[str, Any]) -> Facts:
    """The facts with the names of the columns that their rows came from, for those who watch
    the model later.
    """
    return replace(facts, options={**facts.options, **names}) if names else facts


def _second(other: Certificate, delta: float, dropped: Sequence[str]) -> Claim:
    """The headline of the model that was given the suspects, at its quarter of δ, read from
    facts of its own.
    """
    headline = other.claims[0]
    if len(other.claims) == 1:
        headline = headline.at(delta, candidates=1)
    sources = {name: f"{SECOND_MODEL}.{key}" for name, key in headline.sources.items()}
    return replace(headline, label=f"{headline.label} with {', '.join(dropped)}", sources=sources)


def _with_second(facts: Facts, claim: Claim, other: Facts) -> Facts:
    """The facts with those that the second model's headline is read from, and with its hash."""
    read = {key: other[key.removeprefix(f"{SECOND_MODEL}.")] for key in claim.sources.values()}
    return replace(
        facts,
        values={**facts.values, **read},
        hashes={**facts.hashes, SECOND_MODEL: other.hashes["model"]},
    )


def of_second_model(claim: Claim) -> bool:
    """Whether a claim is about the model that was given the suspects."""
    return any(key.startswith(f"{SECOND_MODEL}.") for key in claim.sources.values())


def _absent(claims: Iterable[Claim], why: str) -> list[Lacking]:
    return [
        Lacking(what=claim.quantity, theorem=claim.theorem, reason=f"{claim.label}: {why}")
        for claim in claims
    ]


def _without_raised(lacking: Iterable[Lacking], raised: Lacking | None) -> list[Lacking]:
    """What is lacking, with the reason of a bound that was chosen by these rows in the place of
    the usual one.
    """
    return (
        list(lacking)
        if raised is None
        else [*(item for item in lacking if item.what != raised.what), raised]
    )


def _beside(
    made: Certificate, learner: Certificate | Lacking | None
) -> tuple[list[Claim], list[Lacking]]:
    """Other bounds on the error, each alone at the δ of the page's, and bounds from the fit rows,
    or why there are none.
    """
    risk = next((claim for claim in made.together if claim.quantity == "risk"), None)
    claims = [] if risk is None else _others(made.facts, risk)
    if learner is None:
        return claims, []
    if not isinstance(learner, Lacking):
        absent = [
            replace(item, what=from_fit_rows(item.what), label=f"{item.label} from the fit rows")
            for item in learner.lacking
        ]
        return [*claims, *map(_from_fit_rows, learner.claims)], absent
    if risk is None:
        return claims, []
    return claims, [
        Lacking(
            what=from_fit_rows("risk"),
            theorem=key,
            reason=f"{find_theorem(key).name}: {learner.reason}",
        )
        for key in TRAINING_ROW_THEOREMS
    ]


def _from_fit_rows(claim: Claim) -> Claim:
    """A claim of the learner's own certificate; the record that it is read from stays there,
    with the model.
    """
    quantity, label = from_fit_rows(claim.quantity), f"{claim.label} from the fit rows"
    condition = FIXED_BEFOREHAND if needs_fixed_parameters(claim) else ""
    return replace(claim, sources={}, quantity=quantity, label=f"{label}{condition}")


def _others(facts: Facts, risk: Claim) -> list[Claim]:
    """Other bounds on the same risk."""
    if risk.theorem != "clopper_pearson":
        return []
    options: dict[str, Any] = {
        "delta": risk.delta,
        "candidates": risk.candidates,
        "covers": risk.covers,
    }
    options |= {"quantity": "risk", "label": "errors", "met": (UNIT_RANGE, STATED_RANGE, ORDER)}
    rates = [
        facts.claim(theorem, {"risk": "risk.rate", "n": "risk.n"}, **options)
        for theorem in (chernoff_kl, hoeffding)
    ]
    if "risk.losses" not in facts:  # of which only counts are known
        return rates
    return rates + [
        facts.claim(theorem, {"losses": "risk.losses"}, **options)
        for theorem in (betting_upper, empirical_bernstein)
    ]
