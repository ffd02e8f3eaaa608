"""What is proved against poison: within the columns' range of linear machines, else for the one target −w."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax

from surelearn.auditing.context import Unusable
from surelearn.auditing.one_row import kernel_machine, learner_of
from surelearn.auditing.poisoning_machines import several_machines
from surelearn.auditing.poisoning_parts import (
    EXACTLY,
    SAME_COLUMNS,
    TOTAL,
    covers,
    in_numbers,
    linear_objective,
    logistic_penalty,
    prepared,
)
from surelearn.auditing.poisoning_range import Linear, tried, within_range
from surelearn.auditing.poisoning_regression import proved_regression
from surelearn.bounds.poisoning import ClassLoss, poisoning_threshold
from surelearn.claim import Claim
from surelearn.selection.cross_validation import is_pairwise


@dataclass(frozen=True, eq=False)
class Machine:
    """A fitted linear machine, in prepared columns or in the space of its kernel.

    Attributes
    ----------
    loss : as `poisoning_threshold` names it
    scores : of the fit rows, (n,) or (n, c)
    codes : the fit rows' classes, 0 … c − 1
    decay : ⟨w, ∇R(w)⟩ of the penalty R beside the mean loss
    grows : whether R stays beside the *mean* loss as rows are added, so that its total grows
    linear : its weights in prepared columns; None where it is linear in the space of a kernel only
    """

    loss: str
    scores: Any
    codes: Any
    decay: float
    grows: bool
    linear: Linear | None = None


def proved(
    model: Any, X: Any, y: Any, new: Any, truth: Any, threshold: float | None, positive: Any, seed: int,
    response: str = "predict_proba",
) -> dict[str, Any]:  # fmt: skip
    """What is proved, each as a claim with the errors of −w on new rows; and gradient cancelling around the threshold."""
    learner, Z, points = prepared(model, X, new)
    if not hasattr(learner, "classes_"):
        return proved_regression(model, X, y, new, truth)
    codes = np.searchsorted(np.asarray(learner.classes_), y)
    if len(learner.classes_) > 2 and (found := several_machines(learner, Z, codes, points, truth)) is not None:
        return {"targets": [found], "tried": None}
    machine = _machine(learner, Z, codes)
    Z, points = in_numbers(Z, points)
    cut = _cut(learner, threshold, positive, response)
    turned = _errors(learner, -1.0 * np.asarray(learner.decision_function(points)), truth, cut)
    if machine.linear is None:
        claims = [_claim(machine, -1.0 * machine.scores, machine.decay)]
    else:
        claims = within_range(machine.linear, Z, codes, _names(model, Z.shape[1]))
    own = linear_objective(learner, Z) if len(learner.classes_) == 2 else None
    attack = None if own is None else tried(*own, Z, codes, seed)
    targets = [{"target": claim.label, "errors": turned, "claim": claim.to_dict()} for claim in claims]
    return {"targets": targets, "tried": attack}


def _names(model: Any, columns: int) -> list[str]:
    """The prepared columns' names, or their numbers."""
    try:
        names = [str(name) for name in learner_of(model)[0].get_feature_names_out()]
    except Exception:  # steps of any kind may have none, or fail
        names = []
    return names if len(names) == columns else [str(j + 1) for j in range(columns)]


def claims_of(result: dict[str, Any]) -> list[tuple[str, float, Claim]]:
    """Each target in words, its errors, and what is proved of it."""
    return [(t["target"], t["errors"], Claim.from_dict(t["claim"])) for t in result["targets"]]


def inner(loss: str, scores: Any, codes: Any) -> float:
    """⟨w, g(μ)⟩ at weights with these scores of the clean rows; of several subgradients the least."""
    if scores.ndim == 2:
        shares = softmax(scores, axis=1)
        return float(np.mean((shares * scores).sum(1) - scores[np.arange(len(scores)), codes]))
    m = np.where(codes == 1, 1.0, -1.0) * scores
    slopes = {
        "logistic": lambda: -expit(-m),
        "hinge": lambda: -1.0 * (m <= 1),
        "squared hinge": lambda: -2 * np.maximum(1 - m, 0.0),
        "squared": lambda: 2 * (m - 1),
    }
    return float(np.mean(m * slopes[loss]()))


def _claim(machine: Machine, scores: Any, decay: float) -> Claim:
    pull = inner(machine.loss, scores, machine.codes)
    return poisoning_threshold.certify(
        inner=pull if machine.grows else pull + decay,
        decay=decay if machine.grows else 0.0,
        loss=machine.loss,
        classes=scores.shape[1] if scores.ndim == 2 else 2,
        covers=covers(machine.loss),
        label=EXACTLY,
        assumptions=(SAME_COLUMNS, *(() if machine.grows or decay == 0 else (TOTAL,))),
    )


def _machine(learner: Any, Z: Any, codes: Any) -> Machine:
    """The model as a machine that a threshold is proved for; `Unusable` says why there is none."""
    name, n = type(learner).__name__, len(codes)
    if (penalty := logistic_penalty(learner, n)) is not None:
        squares = float((learner.coef_.astype(float) ** 2).sum())
        squares += float((np.asarray(learner.intercept_, dtype=float) ** 2).sum()) if penalty[1] else 0.0
        scores, grows = np.asarray(learner.decision_function(Z)), hasattr(learner, "facts_")
        linear = _linear(learner, "logistic", penalty[0], penalty[0] if penalty[1] else 0.0)
        return Machine("logistic", scores, codes, 2 * penalty[0] * squares, grows, linear)
    if len(learner.classes_) == 2 and (found := _support_vectors(learner)) is not None:
        loss, squares, scale = found
        penalty = 1 / (2 * learner.C * n)
        linear = _linear(learner, loss, penalty, penalty * scale)
        return Machine(loss, np.asarray(learner.decision_function(Z)), codes, 2 * penalty * squares, False, linear)
    if len(learner.classes_) == 2 and kernel_machine(learner) is not None and _all_rows(learner, n):
        decay = 2 * learner.facts_["regularization"] * learner.facts_["norm"] ** 2
        return Machine("squared", np.asarray(learner.decision_function(Z)), codes, decay, grows=True)
    several = f" with {len(learner.classes_)} classes" if len(learner.classes_) > 2 else ""
    raise Unusable(
        f"no threshold is proved for {name}{several}: it needs the minimizer of a convex loss over equally weighted rows, "
        "of logistic regression, of support vector machines or of a kernel machine that was solved directly"
    )


def _all_rows(learner: Any, n: int) -> bool:
    """Whether a kernel machine was solved exactly, for every row given, each counted once."""
    return learner.facts_["solver"] == "direct" and learner.facts_["n"] == n and not learner.facts_["weighted"]


def _linear(learner: Any, loss: ClassLoss, penalty: float, intercept_penalty: float) -> Linear | None:
    """The weights in prepared columns; None of a machine with a kernel."""
    if (weights := getattr(learner, "coef_", None)) is None:  # or an AttributeError of a kernel that is not linear
        return None
    weights = np.atleast_2d(np.asarray(weights.toarray() if hasattr(weights, "toarray") else weights, dtype=float))
    bias = np.broadcast_to(np.ravel(np.asarray(learner.intercept_, dtype=float)), len(weights))
    without = getattr(learner, "intercept", "") == "none" or getattr(learner, "fit_intercept", True) is False
    return Linear(loss, weights, bias, penalty, None if without else intercept_penalty)


def _support_vectors(learner: Any) -> tuple[ClassLoss, float, float] | None:
    """The loss, ‖w‖² and how much of the penalty the intercept has, of two classes' machine; None for other learners."""
    import sklearn.svm

    from surelearn.linear import SupportVectorMachine

    if getattr(learner, "class_weight", None) is not None:
        return None
    bias = float(np.ravel(learner.intercept_)[0]) if hasattr(learner, "intercept_") else 0.0
    if type(learner) is sklearn.svm.LinearSVC and learner.penalty == "l2":
        padded = bias / learner.intercept_scaling if learner.fit_intercept else 0.0
        share = learner.intercept_scaling**-2.0 if learner.fit_intercept else 0.0
        return learner.loss.replace("_", " "), float((learner.coef_**2).sum()) + padded**2, share
    ours = type(learner) is SupportVectorMachine and learner.margin == "soft" and learner.facts_["uniform_weights"]
    if not (ours or type(learner) is sklearn.svm.SVC) or is_pairwise(learner):
        return None
    share = float(ours and learner.intercept == "regularized")
    extra = share * bias**2
    if hasattr(learner, "support_vectors_") and getattr(learner, "coef_", None) is None:
        at = np.asarray(learner.decision_function(learner.support_vectors_)) - bias
        return "hinge", float(np.ravel(learner.dual_coef_) @ at) + extra, share
    return "hinge", float((np.asarray(learner.coef_) ** 2).sum()) + extra, share


def _cut(learner: Any, threshold: float | None, positive: Any, response: str) -> float:
    """The score above which the second of two classes is answered."""
    if threshold is None:
        return 0.0
    cut = float(threshold if response == "decision_function" else logit(np.clip(threshold, 0.0, 1.0)))
    return cut if positive == learner.classes_[1] else -cut


def _errors(learner: Any, scores: Any, truth: Any, cut: float) -> float:
    chosen = (scores > cut).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    return float(np.mean(learner.classes_[chosen] != truth))
