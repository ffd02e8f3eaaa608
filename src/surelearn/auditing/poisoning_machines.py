"""What is proved against poison of several machines fitted apart: one against the rest, or one against one."""

from __future__ import annotations

import copy
from itertools import combinations
from typing import Any

import numpy as np

from surelearn.auditing.one_row import kernel_machine
from surelearn.auditing.poisoning_parts import EXACTLY, SAME_COLUMNS, TOTAL, covers, in_numbers
from surelearn.bounds.poisoning import poisoning_threshold_machines


def several_machines(learner: Any, Z: Any, codes: Any, points: Any, truth: Any) -> dict[str, Any] | None:
    """The threshold of −w in every machine as a claim, with the errors there on new rows; None for other learners."""
    import sklearn.svm

    from surelearn.linear import SupportVectorMachine
    from surelearn.linear.svm.votes import votes

    if getattr(learner, "class_weight", None) is not None:
        return None
    if type(learner) is sklearn.svm.LinearSVC and learner.penalty == "l2" and learner.multi_class == "ovr":
        loss, together = learner.loss.replace("_", " "), len(learner.classes_)
        parts = _against_the_rest(learner, Z, codes)
        chosen = (-np.asarray(learner.decision_function(points))).argmax(axis=1)
    elif type(learner) is sklearn.svm.SVC and learner.kernel != "precomputed" and not learner.break_ties:
        loss, together = "hinge", len(learner.classes_) - 1
        parts = _against_one(learner, Z, codes)
        chosen = _voted(-_pairwise(learner, points), len(learner.classes_))
    elif type(learner) is SupportVectorMachine and _plain(learner):
        loss, together = "hinge", len(learner.classes_) - 1
        parts = _own_pairs(learner, Z, codes)
        chosen = votes(-_own_scores(learner, points), len(learner.classes_)).argmax(axis=1)
    elif kernel_machine(learner) is not None and _solved(learner, len(codes)):
        loss, together = "squared", len(learner.classes_)
        parts = _outputs(learner, Z, codes)
        chosen = (-np.asarray(learner.decision_function(points))).argmax(axis=1)
    else:
        return None
    grows = loss == "squared"  # λ stays beside the mean loss as rows are added
    claim = poisoning_threshold_machines.certify(
        inner=[_pull(loss, -margins) + (0.0 if grows else decay) for margins, decay in parts],
        decay=[decay for _, decay in parts] if grows else 0.0,
        share=[len(margins) / len(codes) for margins, _ in parts],
        together=together,
        loss=loss,
        covers=covers(loss),
        label=EXACTLY,
        assumptions=(SAME_COLUMNS,) if grows else (SAME_COLUMNS, TOTAL),
    )
    errors = float(np.mean(learner.classes_[chosen] != truth))
    return {"target": EXACTLY, "errors": errors, "claim": claim.to_dict()}


def _pull(loss: str, margins: Any) -> float:
    """⟨w, g(μ)⟩ at weights with these margins y·⟨w, x⟩ of the clean rows; of several subgradients the least."""
    if loss == "hinge":
        return float(np.mean(margins * -1.0 * (margins <= 1)))
    return float(np.mean(-2 * margins * (1 - margins if loss == "squared" else np.maximum(1 - margins, 0.0))))


def _against_the_rest(learner: Any, Z: Any, codes: Any) -> list[tuple[Any, float]]:
    """Each machine's margins of its rows, and ⟨w, ∇R(w)⟩ of its penalty beside their mean loss."""
    scores, scale = np.asarray(learner.decision_function(Z)), learner.intercept_scaling
    padded = np.asarray(learner.intercept_) / scale if learner.fit_intercept else np.zeros(len(learner.coef_))
    squares = (learner.coef_**2).sum(axis=1) + padded**2
    signs = np.where(codes[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
    return [(m, float(s) / (learner.C * len(codes))) for m, s in zip((signs * scores).T, squares, strict=True)]


def _against_one(learner: Any, Z: Any, codes: Any) -> list[tuple[Any, float]]:
    """The same for each pair of classes; a machine's dual coefficients stand in LIBSVM's order."""
    scores, at = _pairwise(learner, Z), _pairwise(learner, learner.support_vectors_)
    whose = np.repeat(np.arange(len(learner.classes_)), learner.n_support_)
    parts = []
    for k, (i, j) in enumerate(combinations(range(len(learner.classes_)), 2)):
        duals = np.where(whose == i, learner.dual_coef_[j - 1], 0.0) + np.where(whose == j, learner.dual_coef_[i], 0.0)
        squares = float(duals @ (at[:, k] - learner.intercept_[k]))
        own = (codes == i) | (codes == j)
        margins = np.where(codes[own] == i, 1.0, -1.0) * scores[own, k]
        parts.append((margins, max(0.0, squares) / (learner.C * own.sum())))
    return parts


def _pairwise(learner: Any, Z: Any) -> Any:
    """One score a pair of classes, above 0 for the first of them."""
    machines = copy.copy(learner)
    machines.decision_function_shape = "ovo"
    return np.asarray(machines.decision_function(Z))


def _voted(scores: Any, classes: int) -> Any:
    votes = np.zeros((len(scores), classes))
    for k, (i, j) in enumerate(combinations(range(classes), 2)):
        votes[:, i] += scores[:, k] > 0
        votes[:, j] += scores[:, k] <= 0
    return votes.argmax(axis=1)


def _plain(learner: Any) -> bool:
    """Whether our support vector machines have soft margins, equal weights and rows of their own."""
    return learner.margin == "soft" and learner.facts_["uniform_weights"] and learner.facts_["kernel"] != "precomputed"


def _own_scores(learner: Any, Z: Any) -> Any:
    """One score a pair of classes of our machines, above 0 for the second of them."""
    from surelearn.kernel.functions import kernel

    if getattr(learner, "coef_", None) is not None:
        return np.asarray(Z @ learner.coef_.T) + learner.intercept_
    made = kernel(learner.kernel, degree=learner.degree, sigma=learner.sigma)
    return made.sums(in_numbers(Z)[0], learner.support_vectors_, learner.dual_coef_.T) + learner.intercept_


def _own_pairs(learner: Any, Z: Any, codes: Any) -> list[tuple[Any, float]]:
    """As `_against_one`, of our machines."""
    from surelearn.linear.svm.votes import class_pairs

    scores, biases = _own_scores(learner, Z), learner.intercept_
    if getattr(learner, "coef_", None) is not None:
        squares = (learner.coef_**2).sum(axis=1)
    else:
        squares = (learner.dual_coef_ * (_own_scores(learner, learner.support_vectors_) - biases).T).sum(axis=1)
    squares = squares + biases**2 if learner.intercept == "regularized" else squares
    parts = []
    for k, (i, j) in enumerate(class_pairs(len(learner.classes_))):
        own = (codes == i) | (codes == j)
        margins = np.where(codes[own] == j, 1.0, -1.0) * scores[own, k]
        parts.append((margins, max(0.0, float(squares[k])) / (learner.facts_["C"] * own.sum())))
    return parts


def _solved(learner: Any, n: int) -> bool:
    """Whether a kernel machine was solved exactly, for every row given, each counted once."""
    facts = learner.facts_
    return facts["solver"] == "direct" and facts["n"] == n and not facts["weighted"] and learner.centers_ is not None


def _outputs(learner: Any, Z: Any, codes: Any) -> list[tuple[Any, float]]:
    """Each output of a kernel machine, least squares on ±1: margins, and 2λ‖f_k‖²."""
    scores, at = (np.asarray(learner.decision_function(rows)) for rows in (Z, learner.centers_))
    squares = (learner.coef_ * at).sum(axis=0)
    signs = np.where(codes[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
    decay = 2 * learner.facts_["regularization"] * np.maximum(squares, 0.0)
    return [(m, float(r)) for m, r in zip((signs * scores).T, decay, strict=True)]
