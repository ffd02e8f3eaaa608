"""What is proved against poison: how much of it a stated target needs at least, where every row may be added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax

from surelearn.auditing.context import Unusable
from surelearn.auditing.one_row import kernel_machine
from surelearn.auditing.poisoning_machines import several_machines
from surelearn.auditing.poisoning_parts import (
    SAME_COLUMNS,
    TOTAL,
    TURNED,
    covers,
    in_numbers,
    linear_objective,
    logistic_penalty,
    prepared,
)
from surelearn.auditing.poisoning_regression import proved_regression
from surelearn.bounds.poisoning import poisoning_threshold
from surelearn.claim import Claim
from surelearn.selection.cross_validation import is_pairwise

MOVED = "poison rows per clean row needed to move the weights by half their length, the worst way found"
_TRIED = 300  # clean rows beside which gradient cancelling is tried
_AROUND = (0.9, 1.1)


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
    """

    loss: str
    scores: Any
    codes: Any
    decay: float
    grows: bool


def proved(
    model: Any, X: Any, y: Any, new: Any, truth: Any, threshold: float | None, positive: Any, seed: int,
    response: str = "predict_proba",
) -> dict[str, Any]:  # fmt: skip
    """The threshold of each target as a claim, with the target's errors on new rows; and gradient cancelling around one."""
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
    targets = [{"target": TURNED, "errors": turned, "claim": _claim(machine, -1.0 * machine.scores, machine.decay, TURNED)}]
    tried = None
    if (own := linear_objective(learner, Z)) is not None:
        objective, w = own
        targets.append(_corrupted(learner, objective, w, machine, Z, points, truth, cut))
        tried = _cancelled(objective, w, Z, codes, seed)
    return {"targets": [{**t, "claim": t["claim"].to_dict()} for t in targets], "tried": tried}


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


def _claim(machine: Machine, scores: Any, decay: float, target: str) -> Claim:
    pull = inner(machine.loss, scores, machine.codes)
    return poisoning_threshold.certify(
        inner=pull if machine.grows else pull + decay,
        decay=decay if machine.grows else 0.0,
        loss=machine.loss,
        classes=scores.shape[1] if scores.ndim == 2 else 2,
        covers=covers(machine.loss),
        label=target,
        assumptions=(SAME_COLUMNS, *(() if machine.grows or decay == 0 else (TOTAL,))),
    )


def _machine(learner: Any, Z: Any, codes: Any) -> Machine:
    """The model as a machine that a threshold is proved for; `Unusable` says why there is none."""
    name, n = type(learner).__name__, len(codes)
    if (penalty := logistic_penalty(learner, n)) is not None:
        squares = float((learner.coef_.astype(float) ** 2).sum())
        squares += float((np.asarray(learner.intercept_, dtype=float) ** 2).sum()) if penalty[1] else 0.0
        grows = hasattr(learner, "facts_")
        return Machine("logistic", np.asarray(learner.decision_function(Z)), codes, 2 * penalty[0] * squares, grows)
    if len(learner.classes_) == 2 and (found := _support_vectors(learner)) is not None:
        loss, squares = found
        return Machine(loss, np.asarray(learner.decision_function(Z)), codes, squares / (learner.C * n), grows=False)
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


def _support_vectors(learner: Any) -> tuple[str, float] | None:
    """The loss and ‖w‖² of a support vector machine of two classes; None for other learners."""
    import sklearn.svm

    from surelearn.linear import SupportVectorMachine

    if getattr(learner, "class_weight", None) is not None:
        return None
    bias = float(np.ravel(learner.intercept_)[0]) if hasattr(learner, "intercept_") else 0.0
    if type(learner) is sklearn.svm.LinearSVC and learner.penalty == "l2":
        padded = bias / learner.intercept_scaling if learner.fit_intercept else 0.0
        return learner.loss.replace("_", " "), float((learner.coef_**2).sum()) + padded**2
    ours = type(learner) is SupportVectorMachine and learner.margin == "soft" and learner.facts_["uniform_weights"]
    if not (ours or type(learner) is sklearn.svm.SVC) or is_pairwise(learner):
        return None
    extra = bias**2 if ours and learner.intercept == "regularized" else 0.0
    if hasattr(learner, "support_vectors_") and getattr(learner, "coef_", None) is None:
        at = np.asarray(learner.decision_function(learner.support_vectors_)) - bias
        return "hinge", float(np.ravel(learner.dual_coef_) @ at) + extra
    return "hinge", float((np.asarray(learner.coef_) ** 2).sum()) + extra


def _cut(learner: Any, threshold: float | None, positive: Any, response: str) -> float:
    """The score above which the second of two classes is answered."""
    if threshold is None:
        return 0.0
    cut = float(threshold if response == "decision_function" else logit(np.clip(threshold, 0.0, 1.0)))
    return cut if positive == learner.classes_[1] else -cut


def _errors(learner: Any, scores: Any, truth: Any, cut: float) -> float:
    chosen = (scores > cut).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    return float(np.mean(learner.classes_[chosen] != truth))


def _corrupted(
    learner: Any, objective: Any, w: Any, machine: Machine, Z: Any, points: Any, truth: Any, cut: float
) -> dict[str, Any]:
    """Parameters found near the fitted ones with a large loss, and what is proved of reaching them."""
    from surelearn.attacks.poisoning import corrupt_parameters

    few, radius = slice(0, 2000), float(np.linalg.norm(w)) / 2
    target = corrupt_parameters(objective, w, Z[few], machine.codes[few], radius=radius, steps=50).target
    scores, at = (_plain(objective.decision(target, rows)) for rows in (Z, points))
    penalized = target.reshape(objective.scores, -1)
    penalized = penalized if getattr(learner, "intercept", "") == "regularized" else penalized[:, :-1]
    decay = 2 * objective.regularization * float((penalized**2).sum())
    return {"target": MOVED, "errors": _errors(learner, at, truth, cut), "claim": _claim(machine, scores, decay, MOVED)}


def _plain(scores: Any) -> Any:
    return scores[:, 0] if scores.shape[1] == 1 else scores


def _cancelled(objective: Any, w: Any, Z: Any, codes: Any, seed: int) -> dict[str, Any] | None:
    """Whether gradient cancelling reaches −w from a few clean rows, just below and above what these rows allow."""
    from surelearn.attacks.poisoning import transition

    rows = np.random.default_rng(seed).permutation(len(Z))[:_TRIED]
    rows = rows if np.unique(codes[rows]).size == objective.classes else np.arange(len(Z))[:_TRIED]
    if np.unique(codes[rows]).size < objective.classes:
        return None
    decay = 2 * objective.regularization * float(w @ w)
    pull = float(-w @ objective.gradient(-w, Z[rows], codes[rows]))
    threshold = poisoning_threshold(pull, classes=objective.classes, decay=decay)
    if not 0 < threshold < 200:
        return None
    found = transition(
        objective, -w, Z[rows], codes[rows], threshold=float(threshold), multiples=_AROUND,
        points=20, restarts=2, iterations=2000, tolerance=1e-3, refit=False, random_state=seed,
    )  # fmt: skip
    below, above = found.reached.tolist()
    return {"rows": len(rows), "below": below, "above": above, "left": found.residuals.tolist(), "multiples": list(_AROUND)}
