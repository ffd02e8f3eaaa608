"""Which loss of a live row speaks against which claim."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.certificate import Certificate
from surelearn.claim import Claim
from surelearn.measurement import LOSSES, Measurement
from surelearn.monitoring.betting import SMALLEST_BOUND
from surelearn.plain import show

RATES = ("sensitivity", "specificity", "precision")
WATCHABLE = ("risk", *RATES, "mean_cost", "error_quantile", "mean_loss")


@dataclass(frozen=True)
class Losses:
    """Losses of labelled rows in [0, 1]: NaN where the claim is not about the row.

    ``unknown`` marks labels the model never saw, ``beyond`` losses above the stated bound, which count as the bound.
    """

    values: npt.NDArray[np.float64]
    unknown: npt.NDArray[np.bool_]
    beyond: npt.NDArray[np.bool_]


def find_claim(certificate: Certificate, quantity: str | None) -> Claim:
    """The claim to watch: the headline, or the one about ``quantity``; a `ValueError` says why it cannot be watched."""
    together = certificate.together
    if not together:
        raise ValueError("nothing was guaranteed, so there is nothing to watch: the certificate makes no claims")
    if quantity is None:
        quantity = together[0].quantity
    possible = [name for name in WATCHABLE if any(claim.quantity == name for claim in together)]
    these = f"of this certificate's claims, {', '.join(possible) or 'none'} can be watched"
    if quantity not in {claim.quantity for claim in together}:
        reasons = [absent.reason for absent in certificate.absent if absent.quantity == quantity]
        raise ValueError(f"no claim about {quantity!r:.60}" + (f" ({reasons[0]})" if reasons else "") + f": {these}")
    if quantity not in WATCHABLE:
        why = "which live rows alone cannot contradict" if quantity == "gain" else "not one loss of the model on live rows"
        raise ValueError(f"{quantity!r} is not watched, {why}: {these}")
    claim = next(claim for claim in together if claim.quantity == quantity)
    if claim.vacuous or not 0 <= unit_bound(claim) < 1:
        raise ValueError(f"{claim.label} {claim.bound()} cannot be contradicted by any live row: there is nothing to watch")
    return claim


def unit_bound(claim: Claim) -> float:
    """B: what the mean of `unit_losses` was certified not to exceed; 0 is replaced by a larger, tiny bound."""
    value = math.nan if isinstance(claim.value, tuple) else float(claim.value)
    if claim.quantity == "error_quantile":
        value = float(claim.inputs["alpha"]) if math.isfinite(value) else math.inf
    elif claim.quantity in RATES:
        value = 1 - value
    return max(value / scale(claim), SMALLEST_BOUND)


def scale(claim: Claim) -> float:
    """What a loss of 1 stands for in the claim's own unit."""
    return float(claim.inputs["loss_bound"]) if claim.quantity in ("mean_loss", "mean_cost") else 1.0


def unit_losses(claim: Claim, what: Measurement, y_true: Any, y_pred: Any) -> Losses:
    """Losses in [0, 1] of rows that have a label and a prediction."""
    if what.task == "regression":
        return _amounts(claim, what, _numbers(y_true, "y_true"), _numbers(y_pred, "y_pred"))
    return _labels(claim, what, y_true, y_pred)


def _labels(claim: Claim, what: Measurement, y_true: Any, y_pred: Any) -> Losses:
    truth, answer = _codes(y_true, what.classes, "y_true"), _codes(y_pred, what.classes, "y_pred")
    if (answer < 0).any():
        strange = y_pred[int(np.argmax(answer < 0))]
        raise ValueError(f"y_pred holds {_plain(strange)!r}, which is no answer of this model: {_knows(what.classes)}")
    unknown = truth < 0
    if claim.quantity == "risk":
        return Losses((truth != answer).astype(float), unknown, np.zeros_like(unknown))
    positive = what.classes.index(what.positive)
    is_positive, called = truth == positive, answer == positive
    if claim.quantity == "mean_cost":
        cost = 1.0 if what.cost is None else what.cost
        lost = np.where(is_positive & ~called, cost, np.where(called & ~is_positive, 1.0, 0.0)) / scale(claim)
        return Losses(lost, unknown, np.zeros_like(unknown))
    lost, concerned = {
        "sensitivity": (~called, is_positive),
        "specificity": (called, ~is_positive),
        "precision": (~is_positive, called),
    }[claim.quantity]
    return Losses(np.where(concerned, lost, math.nan), unknown, np.zeros_like(unknown))


def _amounts(claim: Claim, what: Measurement, y_true: Any, y_pred: Any) -> Losses:
    if not np.isfinite(y_pred).all():
        raise ValueError("y_pred must be finite")
    known = np.zeros(y_true.shape, dtype=bool)
    if claim.quantity == "error_quantile":
        return Losses((np.abs(y_true - y_pred) > claim.value).astype(float), known, known)
    lost = LOSSES[what.loss](y_true - y_pred) / scale(claim)
    return Losses(np.minimum(lost, 1.0), known, lost > 1)


def _codes(labels: Any, classes: tuple[Any, ...], name: str) -> npt.NDArray[np.int64]:
    """Labels as positions among the model's; −1 for one that it does not know."""
    position = {label: i for i, label in enumerate(classes)}
    found = {label: position.get(label, -1) for label in dict.fromkeys(map(_plain, labels.tolist()))}
    spelled = {str(label): label for label in classes}
    for label, code in found.items():
        if code < 0 and str(label) in spelled:
            raise ValueError(
                f"{name} holds {label!r}, the model knows {spelled[str(label)]!r}: give labels of the model's own type"
            )
    return np.array([found[_plain(label)] for label in labels.tolist()], dtype=np.int64)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _knows(classes: tuple[Any, ...]) -> str:
    shown = ", ".join(map(repr, classes[:5]))
    return f"it knows {shown}" + (f" and {len(classes) - 5} more" if len(classes) > 5 else "")


def _numbers(values: Any, name: str) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers: the certificate is about a regression") from None


def live_value(claim: Claim, rate: float) -> str:
    """The mean loss in the claim's own words: ``5.7%``, for a rate of successes ``94.3%``."""
    if claim.quantity in RATES:
        return show(1 - rate, "rate")
    return show(rate, "rate" if claim.quantity == "error_quantile" else claim.unit)
