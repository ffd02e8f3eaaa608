"""`certify`: what is guaranteed about any fixed predictor, from rows it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.adapters import Task, classes_of, describe, task_of
from surelearn.bounds import (
    betting_lower,
    betting_upper,
    clopper_pearson,
    clopper_pearson_lower,
    conformal_radius,
    paired_difference,
    row_weighted_betting,
)
from surelearn.bounds.holdout import BASELINE_UNSEEN, CONTENTS_IID, GROUPS_IID, IID, ORDER, STATED_RANGE
from surelearn.certificate import OVER_GROUPS, Absent, Certificate, Facts
from surelearn.claim import Claim, Covers
from surelearn.fingerprint import UNHASHED, fingerprint_model, fingerprint_rows
from surelearn.measurement import LOSSES, Mask, Measurement, Slices, measure
from surelearn.slicing import Cuts

NOVEL = "contents without a near copy among the fit rows"
_LEAST_CHANGES = 16
_MOST_REMEMBERED = 10_000
_COUNTED = ContextVar("counted", default=True)
_CERTIFIED: dict[str, list[str]] = {}  # hashes of the models that this process certified, by the targets


def certify(
    model: Any,
    X: Any,
    y: Any,
    *,
    delta: float = 0.05,
    candidates: int = 1,
    task: Task | None = None,
    classes: Any = None,
    positive: Any = None,
    majority: Any = None,
    baseline: Any = None,
    groups: Any = None,
    largest_group: int | None = None,
    slices: Slices | None = None,
    novel: Mask | None = None,
    cost: float | None = None,
    alpha: float = 0.1,
    loss: str = "absolute",
    loss_bound: float | None = None,
    headline: float = 0.5,
) -> Certificate:
    """Certify a fitted model on rows it has not seen; all claims hold together with probability 1 − δ.

    Half of δ goes to the headline (classification: the error or, where ``cost`` says what errors cost, the mean cost;
    regression: the prediction interval), the rest is divided equally among the other claims, before the rows are looked at.

    Parameters
    ----------
    model : anything fitted with ``predict``, or a function of X (then state ``task`` and, to classify, ``classes``)
    X, y : certify rows, drawn uniformly from the population of interest and used for nothing else
    delta : failure probability of the whole certificate
    candidates : the model was chosen, *by its error on these same rows*, among so many that were fixed beforehand; every
        claim pays for the choice. Leave 1 if the choice was made on other rows
    task : "classification" or "regression", if the model does not say
    classes : the labels, if the model has no ``classes_``
    positive : the class that matters: adds sensitivity, specificity and precision
    majority : the most frequent label *of the fit rows* or, with ``cost``, the constant answer that costs least on them;
        unknown, the gain is claimed over every constant answer
    baseline : another fitted model; the gain is claimed over it instead
    groups : one label a row; rows of a group belong together (one patient's visits). Claims are then about a new group's
        mean, and groups count, not rows
    largest_group : with ``groups``: no group has more rows than this, stated beforehand and never the largest one seen; adds
        the risk with every *row* counting the same, which large groups may make another number than the mean over groups
    slices : subpopulations to report: masks by name, or a function of X, fixed without looking at these rows
        (`surelearn.slicing.cut`)
    novel : a mask of one row per content that has no near copy among the fit rows, made without looking at labels; their
        error is claimed too, about such contents, each counted once (`surelearn.auditing.novelty`)
    cost : with ``positive``: what a missed positive costs when a false alarm costs 1; to take one of several other classes
        for another costs nothing. The headline is then the mean cost, and so are what constant answers (or the baseline) are
        compared by, and the gain
    alpha : regression: the prediction interval misses at most this fraction of new targets
    loss, loss_bound : regression: with a stated bound on the "absolute" or "squared" loss its mean is claimed too
    headline : the headline's part of δ, where there are other claims

    Returns
    -------
    Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import train_test_split
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X_fit, X_certify, y_fit, y_certify = train_test_split(X, y, test_size=171, random_state=0)
    >>> model = LogisticRegression(max_iter=10_000).fit(X_fit, y_fit)
    >>> certificate = certify(model, X_certify, y_certify, majority=1)
    >>> certificate["risk"].bound()
    '≤ 8.3%'
    """
    if not isinstance(delta, (int, float)) or not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, not {delta!r}")
    if not isinstance(candidates, (int, np.integer)) or candidates < 1:
        raise ValueError(f"candidates must be a whole number of at least 1, not {candidates!r}")
    if not 0 < headline < 1:
        raise ValueError(f"headline must lie strictly between 0 and 1, not {headline!r}")
    what = _what(
        model,
        task=task,
        classes=classes,
        positive=positive,
        majority=majority,
        baseline=baseline,
        cost=cost,
        alpha=alpha,
        loss=loss,
        loss_bound=loss_bound,
        largest_group=largest_group,
    )
    check_largest_group(largest_group, groups)
    if novel is not None and groups is not None:
        raise ValueError("novel goes with independent contents, not with groups: a new group is novel by itself")
    values = measure(model, X, y, what, groups=groups, slices=slices, baseline=baseline, novel=novel)
    name = fingerprint_model(model)
    facts = Facts(
        subject=describe(model),
        setting=_setting(values) + _looks_here(name, X, np.asarray(y)),
        hashes={
            "model": name,
            "rows": fingerprint_rows(X, y),
            **({} if baseline is None else {"baseline": fingerprint_model(baseline)}),
        },
        options={
            **what.options(),
            "delta": delta,
            "candidates": int(candidates),
            **({"slices": slices.options()} if isinstance(slices, Cuts) else {}),
        },
        values=values,
    )
    writer = _Writer(facts, what, delta, int(candidates), grouped=groups is not None)
    items = _items(writer, what, [key for key in values if key.startswith("slice[")], baseline is not None)
    if novel is not None and (what.task == "classification" or what.loss_bound is not None):
        items.append([writer.novel(what)])
    claims = writer.write(items, headline)
    return Certificate(facts=facts, claims=claims, absent=tuple(writer.absent), delta=delta)


def _what(
    model: Any,
    *,
    task: Task | None,
    classes: Any,
    positive: Any,
    majority: Any,
    baseline: Any,
    cost: float | None,
    alpha: float,
    loss: str,
    loss_bound: float | None,
    largest_group: int | None,
) -> Measurement:
    """Everything that is fixed before the rows are looked at, checked."""
    task = task_of(model, task)
    if task == "regression":
        if not 0 < alpha < 1:
            raise ValueError(f"alpha must lie strictly between 0 and 1, not {alpha!r}")
        if loss not in LOSSES:
            raise ValueError(f"loss must be {' or '.join(map(repr, LOSSES))}, not {loss!r}")
        if loss_bound is not None and not 0 < loss_bound < float("inf"):
            raise ValueError(f"loss_bound must be a positive number, not {loss_bound!r}")
        return Measurement(task=task, alpha=alpha, loss=loss, loss_bound=loss_bound, largest_group=largest_group)
    known = classes_of(model, classes)
    if known is None:
        raise ValueError("the model does not say which labels it knows: pass classes=")
    if len({str(label) for label in known}) < len(known):
        raise ValueError("two labels of the model read the same, such as 1 and '1': give them different names")
    for name, label in (("positive", positive), ("majority", majority)):
        if label is not None and label not in known:
            raise ValueError(f"{name}={label!r} is not a label of the model: it knows {', '.join(map(repr, known[:5]))}")
    if cost is not None and (positive is None or not 0 < cost < float("inf")):
        raise ValueError(f"cost must be a positive number and needs positive=, the class whose miss costs it: {cost!r}")
    constants = () if baseline is not None else (majority,) if majority is not None else known
    if cost is not None and len(constants) > 1:  # all answers but the positive one cost the same
        constants = (next(label for label in known if label != positive), positive)
    return Measurement(
        task=task,
        classes=known,
        positive=positive,
        constants=constants,
        cost=cost,
        by_cost=cost is not None,
        largest_group=largest_group,
    )


def check_largest_group(largest_group: Any, groups: Any, name: str = "largest_group") -> None:
    """Refuse a largest group that cannot be one: without groups, no count, or smaller than some group."""
    if largest_group is None:
        return
    if groups is None:
        raise ValueError(f"{name} needs groups, rows that belong together")
    if isinstance(largest_group, bool) or not isinstance(largest_group, int | np.integer) or largest_group < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, not {largest_group!r}")
    if np.unique(np.asarray(groups).astype(str), return_counts=True)[1].max() > largest_group:
        raise ValueError(f"{name} {largest_group} is too small, some group has more rows: state how many a group can have")


@contextmanager
def uncounted() -> Iterator[None]:
    """For flows that keep a ledger: what `certify` is asked within is not counted as one more model on these rows."""
    token = _COUNTED.set(False)
    try:
        yield
    finally:
        _COUNTED.reset(token)


def _looks_here(name: str, X: Any, y: npt.NDArray[Any]) -> str:
    """Which model this is that the process certifies on these targets, in words; "" for the first.

    Whoever certifies several models on the same rows and keeps the best one must say so with ``candidates``.
    """
    if not _COUNTED.get():
        return ""
    codes = np.unique(y.astype(str) if y.dtype.kind == "O" else y, return_inverse=True)[1]
    known = np.count_nonzero(np.diff(codes)) >= _LEAST_CHANGES  # else the targets alone say too little
    rows = fingerprint_rows(codes[:0] if known else X, codes)
    models = _CERTIFIED.setdefault(rows, [])
    if len(_CERTIFIED) > _MOST_REMEMBERED:
        del _CERTIFIED[next(iter(_CERTIFIED))]
    if name == UNHASHED or name not in models:
        models.append(name)
    number = len(models) if name == UNHASHED else models.index(name) + 1
    if number == 1:
        return ""
    return f"; model {number} that this process certified on these rows: to choose among them, state candidates={number}"


def _setting(values: Mapping[str, Any]) -> str:
    groups = f" of {values['groups']:,} groups" if "groups" in values else ""
    return f"checked on {values['rows']:,} rows{groups} it had not seen"


COSTS = "cost.losses"  # the fact that holds what each row's answer cost


class _Writer:
    """Turns facts into simultaneous claims, dividing δ before looking at any number."""

    def __init__(self, facts: Facts, what: Measurement, delta: float, candidates: int, *, grouped: bool) -> None:
        self.facts, self.delta, self.candidates, self.grouped = facts, delta, candidates, grouped
        self.absent: list[Absent] = []
        self.covers = Covers(
            predictor=facts.hashes["model"],
            loss="zero_one" if what.task == "classification" else what.loss,
            population="the mean over a new group like these" if grouped else "rows like these",
            rows=facts.hashes["rows"],
        )

    def write(self, items: list[list[Callable[[float], Claim | None]]], headline: float) -> tuple[Claim, ...]:
        """Give the first item its part of δ and the others equal parts of the rest; within an item, equal parts again."""
        rest = len(items) - 1
        claims = []
        for i, members in enumerate(items):
            share = self.delta if not rest else self.delta * (headline if i == 0 else (1 - headline) / rest)
            claims += [make(share / len(members)) for make in members]
        return tuple(claim for claim in claims if claim is not None)

    def _options(
        self, quantity: str, label: str, family: str, delta: float, over: str = OVER_GROUPS, loss: str = ""
    ) -> dict[str, Any]:
        met = [ORDER] + [STATED_RANGE] * (self.covers.loss == "zero_one")  # a cost's range is known, too
        return {
            "delta": delta,
            "quantity": quantity,
            "label": f"{label}{over}" if self.grouped else label,
            "family": family,
            "covers": replace(self.covers, loss=loss) if loss else self.covers,
            "candidates": self.candidates,
            "standing": "together",
            "met": met,
            "instead": {IID: GROUPS_IID} if self.grouped else {},
        }

    def rate(
        self, key: str, quantity: str, label: str, *, lower: bool = False, family: str = ""
    ) -> Callable[[float], Claim | None]:
        """A claim about a rate: binomial for rows, betting for groups."""

        def make(delta: float) -> Claim | None:
            options = self._options(quantity, label, family, delta)
            if (self.facts[f"{key}.means"] == ()) if self.grouped else (self.facts[f"{key}.n"] == 0):
                unit = "group has" if self.grouped else "row is among"
                self.absent.append(Absent(quantity=quantity, reason=f"{label}: no {unit} such rows"))
                return None
            if self.grouped:
                return self.facts.claim(betting_lower if lower else betting_upper, {"losses": f"{key}.means"}, **options)
            if lower:
                read = {"successes": f"{key}.count", "n": f"{key}.n"}
                return self.facts.claim(clopper_pearson_lower, read, **options)
            return self.facts.claim(clopper_pearson, {"errors": f"{key}.count", "n": f"{key}.n"}, **options)

        return make

    def gain(
        self, losses: str, key: str, label: str, *, family: str = "", bound: float | None = None
    ) -> Callable[[float], Claim]:
        """A claim about how much smaller the risk or mean cost is than another predictor's, on the same rows."""
        by_cost = losses == COSTS

        def make(delta: float) -> Claim:
            options = self._options("gain", label, family, delta, loss="cost" if by_cost else "")
            if bound is not None:
                options |= {"loss_bound": bound, "unit": "number"}
            if key != "baseline":  # a constant answer
                options["met"].append(BASELINE_UNSEEN)
            read = {"losses": losses, "baseline_losses": f"{key}.{COSTS}" if by_cost else f"{key}.losses"}
            return self.facts.claim(paired_difference, read, **options)

        return make

    def mean_loss(
        self, key: str, quantity: str, label: str, bound: float, family: str = "", *, lower: bool = False
    ) -> Callable[[float], Claim | None]:
        """A claim about a mean loss of stated range."""

        def make(delta: float) -> Claim | None:
            if self.facts[key] == ():
                self.absent.append(Absent(quantity=quantity, reason=f"{label}: no row is among such rows"))
                return None
            options = self._options(quantity, label, family, delta, loss="cost" if key.endswith(COSTS) else "")
            theorem = betting_lower if lower else betting_upper
            return self.facts.claim(theorem, {"losses": key}, loss_bound=bound, unit="number", **options)

        return make

    def row_weighted(
        self, key: str, quantity: str, label: str, largest_group: int, bound: float | None = None
    ) -> Callable[[float], Claim]:
        """A claim about the mean loss over the rows of new groups, large groups counting for more."""

        def make(delta: float) -> Claim:
            over = f", mean over rows (at most {largest_group:,} a group)"
            options = self._options(quantity, label, "", delta, over, "cost" if key == "cost" else "")
            options["covers"] = replace(options["covers"], population="the rows of new groups like these")
            if bound is not None:
                options |= {"loss_bound": bound, "unit": "number"}
            read = {"losses": f"{key}.group_losses", "sizes": f"{key}.group_sizes"}
            return self.facts.claim(row_weighted_betting, read, largest_group=largest_group, **options)

        return make

    def novel(self, what: Measurement) -> Callable[[float], Claim | None]:
        """A claim about contents that the fit rows have nothing like, each counted once."""
        if what.task == "classification":
            made = self.rate("novel", "novel_risk", f"errors on {NOVEL}")
        else:
            label = f"mean {what.loss} loss on {NOVEL}"
            made = self.mean_loss("novel.losses", "novel_loss", label, what.loss_bound or 1.0)

        def make(delta: float) -> Claim | None:
            claim = made(delta)
            if claim is None:
                return None
            population = f"{NOVEL}, each counted once; not new patients"
            assumptions = tuple(CONTENTS_IID if line == IID else line for line in claim.assumptions)
            return replace(claim, covers=replace(claim.covers, population=population), assumptions=assumptions)

        return make

    def radius(self, alpha: float) -> Callable[[float], Claim]:
        """A claim about the distance within which most new targets fall."""
        new = "random rows of new groups" if self.grouped else "new rows"
        label = f"distance from the truth, {100 * (1 - alpha):g}% of {new}"

        def make(delta: float) -> Claim:
            options = self._options("error_quantile", label, "", delta, over="")
            return self.facts.claim(conformal_radius, {"residuals": "residuals"}, alpha=alpha, **options)

        return make


def _items(
    writer: _Writer, what: Measurement, slice_keys: list[str], against: bool
) -> list[list[Callable[[float], Claim | None]]]:
    """The claims to make, the headline first; each inner list shares one part of δ."""
    slices = list(dict.fromkeys(key[: key.rindex("]") + 1] for key in slice_keys))
    if what.task == "regression":
        return _regression_items(writer, what, slices, against)
    items: list[list[Callable[[float], Claim | None]]] = [[writer.rate("risk", "risk", "errors")]]
    cost = "mean cost, in false alarms"
    if what.cost is not None:
        items.insert(0, [writer.mean_loss(COSTS, "mean_cost", cost, _most(what))])
    if what.largest_group is not None and what.cost is not None:
        items.append([writer.row_weighted("cost", "row_weighted_cost", cost, what.largest_group, _most(what))])
    elif what.largest_group is not None:
        items.append([writer.row_weighted("risk", "row_weighted_risk", "errors", what.largest_group)])
    if what.positive is not None:
        items.append([writer.rate("sensitivity", "sensitivity", f"sensitivity: {what.positive} recognized", lower=True)])
        items.append(
            [writer.rate("specificity", "specificity", f"specificity: not {what.positive}, recognized", lower=True)]
        )
        items.append([writer.rate("precision", "precision", f"precision: called {what.positive}, rightly", lower=True)])
    if what.positive is None or len(what.classes) > 2:
        family = "class" if len(what.classes) > 2 else ""
        items.append(
            [
                writer.rate(f"class[{c}]", "class_error", f"errors where the truth is {c}", family=family)
                for c in what.classes
            ]
        )
    others = {"baseline": "the baseline"} if against else {f"constant[{c}]": f"always answering {c}" for c in what.constants}
    items += _comparisons(writer, what, others)
    if slices:
        items.append([writer.rate(key, "slice_risk", f"errors where {key[6:-1]}", family="slice") for key in slices])
    return items


def _comparisons(
    writer: _Writer, what: Measurement, others: Mapping[str, str]
) -> list[list[Callable[[float], Claim | None]]]:
    """The gain over each other predictor, by its facts' key, and how well it does itself."""
    family = "constant" if len(others) > 1 else ""
    gains: list[Callable[[float], Claim | None]] = []
    theirs: list[Callable[[float], Claim | None]] = []
    for key, name in others.items():
        if what.cost is None:
            gains.append(writer.gain("risk.losses", key, f"fewer errors than {name}", family=family))
            theirs.append(writer.rate(key, "baseline_risk", f"errors of {name}", lower=True, family=family))
        else:
            label, most = f"mean cost of {name}", _most(what)
            gains.append(writer.gain(COSTS, key, f"mean cost below that of {name}", family=family, bound=most))
            theirs.append(writer.mean_loss(f"{key}.{COSTS}", "baseline_cost", label, most, family, lower=True))
    return [gains, theirs]


def _most(what: Measurement) -> float:
    """The largest cost of an answer."""
    return max(what.cost or 0.0, 1.0)


def _regression_items(
    writer: _Writer, what: Measurement, slices: list[str], against: bool
) -> list[list[Callable[[float], Claim | None]]]:
    items: list[list[Callable[[float], Claim | None]]] = [[writer.radius(what.alpha)]]
    bound = what.loss_bound
    if bound is None:
        reason = f"the mean {what.loss} loss is measured only: state its range with loss_bound="
        writer.absent.append(Absent(quantity="mean_loss", theorem="betting_upper", reason=reason))
        if against:
            reason = "a gain over the baseline needs a stated range: pass loss_bound="
            writer.absent.append(Absent(quantity="gain", theorem="paired_difference", reason=reason))
        return items
    items.append([writer.mean_loss("loss.losses", "mean_loss", f"mean {what.loss} loss", bound)])
    if what.largest_group is not None:
        label = f"mean {what.loss} loss"
        items.append([writer.row_weighted("loss", "row_weighted_loss", label, what.largest_group, bound)])
    if against:
        items.append([writer.gain("loss.losses", "baseline", f"mean {what.loss} loss below the baseline's", bound=bound)])
    if slices:
        label = f"mean {what.loss} loss where"
        items.append(
            [writer.mean_loss(f"{key}.losses", "slice_loss", f"{label} {key[6:-1]}", bound, "slice") for key in slices]
        )
    return items
