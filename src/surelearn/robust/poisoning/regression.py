"""What is proved against poison of a regression: how much of it mirrored predictions need,
targets in the range seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from surelearn.bounds.poisoning import RegressionLoss, poisoning_threshold_regression
from surelearn.claim import Claim
from surelearn.lacking import Lacking
from surelearn.losses import SQUARED, huber
from surelearn.plain import show
from surelearn.robust.poisoning.fit import SAME_COLUMNS, Array, Fit, covers, not_proved
from surelearn.subject import Objective, Preparation
from surelearn.subject.registry import described
from surelearn.types import AnyArray, Model, TableRows

_LOSSES: dict[str, RegressionLoss] = {
    "squared": "squared",
    "huber": "huber",
    "epsilon_insensitive": "absolute",
}


def mirrored(fit: Fit, y: AnyArray) -> tuple[Claim, Callable[[Any], Array]] | Lacking:
    """The threshold of mirrored predictions, and those predictions; `Lacking` where no theorem
    applies.
    """
    scaling = fit.subject.target
    if scaling is not None and not _keeps_mirrors(scaling):
        why = (
            f"no threshold is proved for targets that {type(scaling).__name__} prepares:"
            " predictions mirrored there are not mirrored in the units given, unless it only"
            " shifts and scales"
        )
        return Lacking("poisoning threshold", why)
    targets = _scaled(y, scaling)
    if np.ndim(y) != 1 or targets.ndim != 1:
        return Lacking(
            "poisoning threshold",
            "no threshold is proved for a regression of several numbers at once",
        )
    if fit.objective.loss not in _LOSSES or fit.objective.intercept_scale != 1:
        return not_proved(fit.subject)
    free = fit.objective.intercept == "free"
    middle = float(targets.max() + targets.min()) / 2 if free else 0.0
    scores = fit.machines.values(fit.rows)[:, 0]

    def predict(new: TableRows) -> Array:
        return _in_units(2 * middle - fit.machines.values(fit.subject.prepared(new))[:, 0], scaling)

    return _claim(fit, scores - middle, targets - middle, middle, scaling), predict


def inner(objective: Objective, scores: Array, targets: Array) -> float:
    """⟨w, g(μ)⟩ at weights with these scores of the clean rows; of several subgradients the
    least.
    """
    rest = scores - targets
    if objective.loss in ("squared", "huber"):
        known = SQUARED if objective.loss == "squared" else huber(objective.parameters["knee"])
        return float(np.mean(scores * known.derivative(rest)))
    tube = objective.parameters["tube"]
    outside, edge = np.abs(rest) > tube, np.abs(rest) == tube
    pull = scores * np.sign(rest)
    return float(np.mean(np.where(outside, pull, 0.0) + np.where(edge, np.minimum(pull, 0.0), 0.0)))


def _claim(fit: Fit, scores: Array, targets: Array, middle: float, scaling: Model) -> Claim:
    objective, loss, decay = fit.objective, _LOSSES[fit.objective.loss], float(fit.decay().sum())
    pull, bound = inner(objective, -scores, targets), float(np.abs(targets).max())
    low, center, high = np.sort(
        _in_units(np.array([middle - bound, middle, middle + bound]), scaling)
    ).tolist()
    counted = (
        f"poison has targets from {show(low, 'number', '<=')} to {show(high, 'number', '>=')}, no"
        " farther out than the fit rows; target_bound is half of that, in the units fitted"
    )
    return poisoning_threshold_regression.certify(
        inner=pull if fit.grows else pull + decay,
        decay=decay if fit.grows else 0.0,
        target_bound=bound,
        loss=loss,
        tube=objective.parameters.get("tube", 0.0),
        knee=objective.parameters.get("knee", 1.0),
        label=(
            "poisoned rows per clean row to exactly the predictions mirrored at"
            f" {show(center, 'number')} (one target)"
        ),
        assumptions=(counted, SAME_COLUMNS, *fit.total(decay)),
        covers=covers(loss),
    )


def _keeps_mirrors(scaling: Model) -> bool:
    """Whether targets are prepared by a shift and a factor alone."""
    found = described(scaling)
    return isinstance(found, Preparation) and found.columnwise


def _scaled(y: AnyArray, scaling: Model) -> Array:
    y = np.asarray(y, dtype=float)
    return y if scaling is None else np.squeeze(scaling.transform(y.reshape(-1, 1)), axis=1)


def _in_units(values: Array, scaling: Model) -> Array:
    return (
        values
        if scaling is None
        else np.asarray(scaling.inverse_transform(values.reshape(-1, 1))).ravel()
    )
