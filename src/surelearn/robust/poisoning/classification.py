"""What is proved against poison of a classifier: for the one target −w, and within the columns'
range of linear ones.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from surelearn.bounds.poisoning import ClassLoss, poisoning_threshold, poisoning_threshold_machines
from surelearn.claim import Claim
from surelearn.lacking import Lacking
from surelearn.losses import find_loss, log_loss_slopes
from surelearn.robust.poisoning.fit import (
    EXACTLY,
    SAME_COLUMNS,
    Array,
    Fit,
    covers,
    in_numbers,
    not_proved,
)
from surelearn.robust.poisoning.within_range import LinearFit, within_range
from surelearn.subject.forms import Closed, LinearForm

Codes = npt.NDArray[np.intp]
_LOSSES: dict[str, ClassLoss] = {
    "logistic": "logistic",
    "hinge": "hinge",
    "squared_hinge": "squared hinge",
    "squared": "squared",
}


def classification_claims(fit: Fit, codes: Codes) -> list[Claim] | Lacking:
    """All that is proved, of rows with classes ``codes``, 0 … c − 1."""
    objective = fit.objective
    if objective.loss not in _LOSSES:
        return not_proved(fit.subject)
    if objective.coding in ("one_vs_rest", "one_vs_one"):
        return not_proved(fit.subject) if objective.loss == "logistic" else [_several(fit, codes)]
    if (linear := linear_of(fit)) is None:
        return [_one(fit, codes)]
    numbers = in_numbers(fit.rows)
    if isinstance(numbers, Lacking):
        return numbers
    return within_range(
        linear, numbers[0], codes, list(fit.subject.prepared_names(fit.rows.shape[1]))
    )


def linear_of(fit: Fit) -> LinearFit | None:
    """The weights in prepared columns; None of a machine with a kernel, and of squared loss."""
    closed, objective = fit.subject.learner.form, fit.objective
    if (
        not isinstance(closed, Closed)
        or not isinstance(closed.form, LinearForm)
        or objective.loss == "squared"
    ):
        return None
    strength, bias = objective.strength(fit.count), objective.intercept_strength(fit.count)
    return LinearFit(
        _LOSSES[objective.loss], closed.form.weights, closed.form.intercepts, strength, bias
    )


def inner(loss: str, scores: Array, codes: Codes) -> float:
    """⟨w, g(μ)⟩ at weights with these scores of the clean rows; of several subgradients the
    least.
    """
    if scores.ndim == 2:
        return float(np.mean((log_loss_slopes(scores, codes) * scores).sum(1)))
    return _pull(loss, np.where(codes == 1, 1.0, -1.0) * scores)


def _pull(loss: str, margins: Array) -> float:
    """⟨w, g(μ)⟩ at weights with these margins y·⟨w, x⟩ of the clean rows; of several
    subgradients the least.
    """
    slopes = find_loss("squared margin" if loss == "squared" else loss).derivative(margins)
    if loss == "hinge":
        slopes = np.where(margins == 1, -1.0, slopes)  # of the subgradients −1 … 0, the least
    return float(np.mean(margins * slopes))


def _one(fit: Fit, codes: Codes) -> Claim:
    """The threshold of −w, of one machine or of a softmax."""
    loss, values = _LOSSES[fit.objective.loss], -1.0 * fit.machines.values(fit.rows)
    scores, decay = values[:, 0] if values.shape[1] == 1 else values, float(fit.decay().sum())
    pull = inner(loss, scores, codes)
    return poisoning_threshold.certify(
        inner=pull if fit.grows else pull + decay,
        decay=decay if fit.grows else 0.0,
        loss=loss,
        classes=scores.shape[1] if scores.ndim == 2 else 2,
        covers=covers(loss),
        label=EXACTLY,
        assumptions=(SAME_COLUMNS, *fit.total(decay)),
    )


def _several(fit: Fit, codes: Codes) -> Claim:
    """The threshold of −w in every one of several machines that were fitted apart."""
    loss, values = _LOSSES[fit.objective.loss], fit.machines.values(fit.rows)
    classes = (
        int(codes.max()) + 1
        if fit.subject.learner.classes is None
        else len(fit.subject.learner.classes)
    )
    if fit.objective.coding == "one_vs_rest":
        together = classes
        signs = np.where(codes[:, None] == np.arange(classes), 1.0, -1.0)
        parts = list(zip((signs * values).T, fit.decay(), strict=True))
    else:
        together, parts = classes - 1, []
        for k, (i, j) in enumerate(combinations(range(classes), 2)):
            own = (codes == i) | (codes == j)
            margins = np.where(codes[own] == j, 1.0, -1.0) * values[own, k]
            parts.append((margins, fit.decay(int(own.sum()))[k]))
    grows = fit.grows
    return poisoning_threshold_machines.certify(
        inner=[
            _pull(loss, -margins) + (0.0 if grows else float(decay)) for margins, decay in parts
        ],
        decay=[float(decay) for _, decay in parts] if grows else 0.0,
        share=[len(margins) / len(codes) for margins, _ in parts],
        together=together,
        loss=loss,
        covers=covers(loss),
        label=EXACTLY,
        assumptions=(SAME_COLUMNS, *fit.total(float(sum(decay for _, decay in parts)))),
    )
