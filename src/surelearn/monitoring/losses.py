"""Which loss of a live row speaks against which claim."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.certificate import Certificate
from surelearn.claim import Claim
from surelearn.measurement import LOSSES, Mask, Measurement, costs_of
from surelearn.monitoring.betting import SMALLEST_BOUND
from surelearn.plain import show
from surelearn.subject.bands import outside
from surelearn.types import AnyArray, Array

RATES = ("sensitivity", "specificity", "precision")
GRADES = ("mean_grade", "slice_grade")  # higher is better: bounded from below
AMOUNTS = ("mean_cost", "mean_loss", "slice_loss", *GRADES)
SETS = ("set_coverage", "class_coverage")
SLICES = ("slice_risk", "slice_loss", "slice_grade")
# the others are about some rows only
INTERVALS = ("error_quantile", "score_quantile")
EVERY_ROW = ("risk", "mean_cost", *INTERVALS, "mean_loss", "mean_grade", "set_coverage")
WATCHABLE = ("risk", *RATES, "class_error", "slice_risk", *INTERVALS, *AMOUNTS, *SETS)
NOWHERE = -2  # an answer that is no class
HEADLINE = 0.5  # the first claim's part of delta, where several are watched


@dataclass(frozen=True)
class LiveRows:
    """Labeled rows, read once for all claims.

    Attributes
    ----------
    truth, answer : positions among the model's classes (a truth of −1 is a label it never saw), or
        a regression's numbers
    slices : which rows are in which slice; empty where the rows' columns were not given
    covered : whether the truth is in the prediction set; None where no sets were given
    intervals : (low, high), (n,) each, of intervals with a width of each row's own; None where they
        are not known
    """

    truth: npt.NDArray[Any]
    answer: npt.NDArray[Any]
    slices: Mapping[str, Mask] = field(default_factory=dict)
    covered: Mask | None = None
    intervals: tuple[Array, Array] | None = None


@dataclass(frozen=True)
class Losses:
    """Losses of labeled rows in [0, 1]: NaN where the claim is not about the row.

    ``unknown`` marks labels the model never saw, ``beyond`` losses above the stated bound, which
    count as the bound.
    """

    values: npt.NDArray[np.float64]
    unknown: npt.NDArray[np.bool_]
    beyond: npt.NDArray[np.bool_]


def find_claims(certificate: Certificate, quantity: str | None = None) -> tuple[Claim, ...]:
    """The claims that live rows can contradict, the headline first; a `ValueError` says why there
    are none.

    Parameters
    ----------
    certificate : its claims about the certified model that hold together are looked at. The
        headline is the one with the largest part of the certificate's δ
    quantity : only the claims about this
    """
    options = certificate.facts.options
    if options.get("task") == "losses" and options.get("better") != "higher":
        raise ValueError(
            "a certificate of losses per unit is not watched: certify the live units' losses"
            " instead"
        )
    if options.get("weight_bound") is not None:
        raise ValueError(
            "the certificate is about a shifted population, which live rows as they come say"
            " nothing about"
        )
    model = certificate.facts.hashes.get("model")
    made = [claim for claim in certificate.together if claim.covers.predictor == model]
    if not made:
        raise ValueError(
            "nothing was guaranteed, so there is nothing to watch: the certificate makes no claims"
        )
    headline = max(made, key=lambda claim: claim.delta)
    made.sort(key=lambda claim: claim is not headline)
    possible = [claim for claim in made if _is_watchable(claim, certificate)]
    if quantity is not None:
        _check_quantity(certificate, quantity, made, possible)
    asked = [claim for claim in possible if quantity in (None, claim.quantity)]
    found = tuple(claim for claim in asked if _says_something(claim))
    if not found:
        said = asked[0] if asked else headline
        raise ValueError(
            f"{said.label} {said.bound()} cannot be contradicted by any live row: there is nothing"
            " to watch"
        )
    return found


def _check_quantity(
    certificate: Certificate, quantity: str, made: Sequence[Claim], possible: Sequence[Claim]
) -> None:
    """Refuse a quantity that is not claimed, or that live rows do not speak about."""
    names = [name for name in WATCHABLE if any(claim.quantity == name for claim in possible)]
    these = f"of this certificate's claims, {', '.join(names) or 'none'} can be watched"
    if quantity not in {claim.quantity for claim in made}:
        reasons = [absent.reason for absent in certificate.lacking if absent.what == quantity]
        raise ValueError(
            f"no claim about {quantity!r:.60}"
            + (f" ({reasons[0]})" if reasons else "")
            + f": {these}"
        )
    if quantity not in names:
        why = (
            "which live rows alone cannot contradict"
            if quantity == "gain"
            else "not one loss of the model on live rows"
        )
        raise ValueError(f"{quantity!r} is not watched, {why}: {these}")


def _is_watchable(claim: Claim, certificate: Certificate) -> bool:
    if claim.quantity in SLICES:  # slices that are not data cannot be found among live rows
        cuts = certificate.facts.options.get("slices", ())
        return bool(cuts) and bool(part(claim))
    if claim.quantity in ("class_error", "class_coverage"):
        return bool(part(claim))
    return claim.quantity in WATCHABLE


def _says_something(claim: Claim) -> bool:
    return not claim.vacuous and 0 <= unit_bound(claim) < 1


def part(claim: Claim) -> str:
    """The class or slice that a claim is about, from the name of its fact:
    ``class[yes].count``; else nothing.
    """
    fact = next(iter(claim.sources.values()), "")
    return fact[fact.index("[") + 1 : fact.rindex("]")] if "[" in fact and "]" in fact else ""


def divide(claims: Sequence[Claim], delta: float) -> list[float]:
    """Each claim's part of δ: half for the first, the rest in equal parts for the other quantities.

    The claims about one quantity (several classes, several slices) share its part equally.

    Examples
    --------
    >>> from surelearn import certify
    >>> y = np.tile([0, 1], 50)
    >>> certificate = certify(lambda X: X[:, 0], y[:, None], y, task="classification", classes=[0, 1], positive=1)
    >>> claims = find_claims(certificate)
    >>> [claim.quantity for claim in claims], divide(claims, 0.06)
    (['risk', 'sensitivity', 'specificity', 'precision'], [0.03, 0.01, 0.01, 0.01])
    """
    quantities = [claim.quantity for claim in claims]
    others = len(set(quantities)) - 1
    if not others:
        return [delta / len(claims)] * len(claims)
    share = {
        **dict.fromkeys(quantities, delta * (1 - HEADLINE) / others),
        quantities[0]: delta * HEADLINE,
    }
    return [share[name] / quantities.count(name) for name in quantities]


def unit_bound(claim: Claim) -> float:
    """B: what the mean of `unit_losses` was certified not to exceed; 0 is replaced by a larger,
    tiny bound.
    """
    value = math.nan if isinstance(claim.value, tuple) else float(claim.value)
    if claim.quantity in INTERVALS:
        value = float(claim.inputs["alpha"]) if math.isfinite(value) else math.inf
    elif claim.quantity in SETS:
        value = float(claim.inputs["alpha"])
    elif claim.quantity in RATES:
        value = 1 - value
    elif claim.quantity in GRADES:
        value = best(claim) - value
    return max(value / scale(claim), SMALLEST_BOUND)


def scale(claim: Claim) -> float:
    """What a loss of 1 stands for in the claim's own unit."""
    if claim.quantity in GRADES:
        return best(claim) - float(claim.inputs.get("low", 0.0))
    return float(claim.inputs["loss_bound"]) if claim.quantity in AMOUNTS else 1.0


def best(claim: Claim) -> float:
    """The largest grade that there can be."""
    return float(claim.inputs.get("high", claim.inputs.get("loss_bound", 1.0)))


def read_rows(
    what: Measurement,
    y_true: AnyArray,
    y_pred: AnyArray,
    slices: Mapping[str, Mask],
    *,
    recorded: bool = False,
    sets: Mask | None = None,
    intervals: tuple[Array, Array] | None = None,
) -> LiveRows:
    """Truths and predictions of labeled rows as positions or numbers; a `ValueError` names one
    that is neither. ``recorded``: answers that somebody wrote down, which may be any words;
    ``sets``: (n, classes) which labels are in each prediction set.
    """
    if what.task == "regression":
        truth, answer = _numbers(y_true, "y_true"), _numbers(y_pred, "y_pred")
        if not np.isfinite(answer).all():
            raise ValueError("y_pred must be finite")
        return LiveRows(truth, answer, slices, intervals=intervals)
    if what.task == "losses":
        truth = _numbers(y_true, "y_true")
        low, high = what.loss_range or (0.0, 1.0)
        if not ((truth >= low) & (truth <= high)).all():
            raise ValueError(f"y_true must lie between {low:g} and {high:g}, as the grades do")
        return LiveRows(truth, truth, slices)
    truth, answer = _codes(y_true, what.classes, "y_true"), _codes(y_pred, what.classes, "y_pred")
    if recorded:  # a word that is no class is a wrong answer
        answer = np.where(answer < 0, NOWHERE, answer)
    elif (answer < 0).any():
        strange = y_pred[int(np.argmax(answer < 0))]
        raise ValueError(
            f"y_pred holds {_plain(strange)!r}, which is no answer of this model:"
            f" {_knows(what.classes)}"
        )
    covered = None
    if sets is not None:  # a label that the model does not know is in no set
        covered = sets[np.arange(len(truth)), np.maximum(truth, 0)] & (truth >= 0)
    return LiveRows(truth, answer, slices, covered=covered)


def unit_losses(claim: Claim, what: Measurement, rows: LiveRows) -> Losses:
    """Losses in [0, 1] of labeled rows, as this claim counts them."""
    unknown = (
        rows.truth < 0 if what.task == "classification" else np.zeros(rows.truth.shape, dtype=bool)
    )
    lost = _lost(claim, what, rows) / scale(claim)
    values = np.where(_concerned(claim, what, rows), np.minimum(lost, 1.0), math.nan)
    return Losses(values, unknown, lost > 1)


def _lost(claim: Claim, what: Measurement, rows: LiveRows) -> npt.NDArray[np.float64]:
    """Each row's loss in the claim's own unit; of a grade, what is missing to the best one."""
    if what.task == "losses":
        return best(claim) - rows.truth
    if what.task == "regression":
        error = rows.truth - rows.answer
        if claim.quantity not in INTERVALS:
            return LOSSES[what.loss](error)
        missed = outside(rows.truth, what.target_range)
        if claim.quantity == "error_quantile":
            return (missed | (np.abs(error) > claim.value)).astype(float)
        low, high = (rows.truth, rows.truth) if rows.intervals is None else rows.intervals
        return (missed | (rows.truth < low) | (rows.truth > high)).astype(float)
    if claim.quantity in SETS:
        uncovered = np.zeros(rows.truth.shape) if rows.covered is None else ~rows.covered
        return np.asarray(uncovered, dtype=float)
    if claim.quantity not in (*RATES, "mean_cost"):
        return (rows.truth != rows.answer).astype(float)
    is_positive, called = _is(what, rows.truth), _is(what, rows.answer)
    if claim.quantity in RATES:
        return (is_positive != called).astype(float)
    return costs_of(is_positive, called, 1.0 if what.cost is None else what.cost)


def _concerned(claim: Claim, what: Measurement, rows: LiveRows) -> Mask:
    """Which rows the claim is about."""
    if claim.quantity == "score_quantile" and rows.intervals is None:
        return np.zeros(rows.truth.shape, dtype=bool)
    if claim.quantity in SLICES:
        return rows.slices.get(part(claim), np.zeros(rows.truth.shape, dtype=bool))
    if claim.quantity in SETS and rows.covered is None:
        return np.zeros(rows.truth.shape, dtype=bool)
    if claim.quantity in ("class_error", "class_coverage"):
        return rows.truth == [str(label) for label in what.classes].index(part(claim))
    if claim.quantity == "precision":
        return _is(what, rows.answer)
    if claim.quantity in RATES:
        return _is(what, rows.truth) == (claim.quantity == "sensitivity")
    return np.ones(rows.truth.shape, dtype=bool)


def _is(what: Measurement, codes: npt.NDArray[Any]) -> Mask:
    """Which labels are the positive class."""
    return codes == what.classes.index(what.positive)


def _codes(labels: AnyArray, classes: tuple[Any, ...], name: str) -> npt.NDArray[np.int64]:
    """Labels as positions among the model's; −1 for one that it does not know."""
    position = {label: i for i, label in enumerate(classes)}
    found = {
        label: position.get(label, -1) for label in dict.fromkeys(map(_plain, labels.tolist()))
    }
    spelled = {str(label): label for label in classes}
    for label, code in found.items():
        if code < 0 and str(label) in spelled:
            raise ValueError(
                f"{name} holds {label!r}, the model knows {spelled[str(label)]!r}: give labels of"
                " the model's own type"
            )
    return np.array([found[_plain(label)] for label in labels.tolist()], dtype=np.int64)


def _plain(label: object) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _knows(classes: tuple[Any, ...]) -> str:
    shown = ", ".join(map(repr, classes[:5]))
    return f"it knows {shown}" + (f" and {len(classes) - 5} more" if len(classes) > 5 else "")


def _numbers(values: AnyArray, name: str) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers: the certificate is about a regression") from None


def live_value(claim: Claim, rate: float) -> str:
    """The mean loss in the claim's own words: ``5.7%``, for a rate of successes ``94.3%``."""
    if claim.quantity in (*RATES, *SETS):
        return show(1 - rate, "rate")
    if claim.quantity in GRADES:
        return show(best(claim) - rate, claim.unit)
    return show(rate, "rate" if claim.quantity in INTERVALS else claim.unit)
