"""What is proved against poison of a regression: how much of it mirrored predictions need, targets in the range seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from surelearn.auditing.context import Unusable
from surelearn.auditing.one_row import kernel_machine
from surelearn.auditing.poisoning_parts import SAME_COLUMNS, TOTAL, covers, prepared
from surelearn.bounds.poisoning import poisoning_threshold_regression
from surelearn.claim import Claim
from surelearn.plain import show


@dataclass(frozen=True, eq=False)
class Machine:
    """A fitted machine of squared, absolute or Huber's loss, linear in prepared columns or in the space of its kernel.

    Attributes
    ----------
    decay : ⟨w, ∇R(w)⟩ of the penalty R beside the mean loss
    grows : whether R stays beside the *mean* loss as rows are added, so that its total grows
    free : whether the intercept is free, so that targets may be counted from any point
    loss, tube, knee : as `poisoning_threshold_regression` names them
    """

    decay: float
    grows: bool
    free: bool
    loss: str = "squared"
    tube: float = 0.0
    knee: float = 1.0


def proved_regression(model: Any, X: Any, y: Any, new: Any, truth: Any) -> dict[str, Any]:
    """The threshold of mirrored predictions as a claim, with their mean absolute error on new rows."""
    learner, Z, points = prepared(model, X, new)
    scaling = getattr(learner, "transformer_", None)
    learner = getattr(learner, "regressor_", learner)
    if not _keeps_mirrors(scaling):
        raise Unusable(
            f"no threshold is proved for targets that {type(scaling).__name__} prepares: predictions mirrored there are not "
            "mirrored in the units given, unless it only shifts and scales"
        )
    targets = _scaled(y, scaling)
    if np.ndim(y) != 1 or targets.ndim != 1:
        raise Unusable("no threshold is proved for a regression of several numbers at once")
    machine = _machine(learner, Z, len(y))
    scores, new_scores = (np.asarray(learner.predict(rows), dtype=float).ravel() for rows in (Z, points))
    middle = float(targets.max() + targets.min()) / 2 if machine.free else 0.0
    mirrored = _in_units(2 * middle - new_scores, scaling)
    claim = _claim(machine, scores - middle, targets - middle, middle, scaling)
    error = float(np.abs(mirrored - truth).mean())
    return {"targets": [{"target": claim.label, "errors": error, "claim": claim.to_dict()}], "tried": None}


def inner(machine: Machine, scores: Any, targets: Any) -> float:
    """⟨w, g(μ)⟩ at weights with these scores of the clean rows; of several subgradients the least."""
    rest = scores - targets
    if machine.loss == "squared":
        return float(np.mean(2 * scores * rest))
    if machine.loss == "huber":
        return float(np.mean(scores * np.clip(rest, -machine.knee, machine.knee)))
    outside, edge = np.abs(rest) > machine.tube, np.abs(rest) == machine.tube
    pull = scores * np.sign(rest)
    return float(np.mean(np.where(outside, pull, 0.0) + np.where(edge, np.minimum(pull, 0.0), 0.0)))


def _claim(machine: Machine, scores: Any, targets: Any, middle: float, scaling: Any) -> Claim:
    pull, bound = inner(machine, -scores, targets), float(np.abs(targets).max())
    low, centre, high = np.sort(_in_units(np.array([middle - bound, middle, middle + bound]), scaling)).tolist()
    counted = (
        f"poison has targets from {show(low, 'number', '<=')} to {show(high, 'number', '>=')}, no farther out than the fit "
        "rows; target_bound is half of that, in the units fitted"
    )
    return poisoning_threshold_regression.certify(
        inner=pull if machine.grows else pull + machine.decay,
        decay=machine.decay if machine.grows else 0.0,
        target_bound=bound,
        loss=machine.loss,
        tube=machine.tube,
        knee=machine.knee,
        label=f"poisoned rows per clean row to exactly the predictions mirrored at {show(centre, 'number')} (one target)",
        assumptions=(counted, SAME_COLUMNS, *(() if machine.grows or machine.decay == 0 else (TOTAL,))),
        covers=covers(machine.loss),
    )


def _machine(learner: Any, Z: Any, n: int) -> Machine:
    """The model as a machine that a threshold is proved for; `Unusable` says why there is none."""
    import sklearn.kernel_ridge
    import sklearn.linear_model
    import sklearn.svm

    from surelearn.linear import HuberRegression, LeastSquares, Ridge

    kind = type(learner)
    if kind in (Ridge, LeastSquares):
        squares = _squares(learner) + (float(learner.intercept_) ** 2 if learner.intercept == "regularized" else 0.0)
        penalty = float(learner.regularization_) if kind is Ridge else 0.0
        return Machine(2 * penalty * squares, grows=True, free=learner.intercept == "free")
    if kind is HuberRegression and not learner.facts_["weighted"]:
        decay, free = 2 * float(learner.regularization) * _squares(learner), bool(learner.fit_intercept)
        return Machine(decay, grows=True, free=free, loss="huber", knee=float(learner.threshold))
    if kind is sklearn.linear_model.LinearRegression and not learner.positive:
        return Machine(0.0, grows=True, free=learner.fit_intercept)
    if kind is sklearn.linear_model.Ridge and not learner.positive and np.ndim(learner.alpha) == 0:
        return Machine(2 * learner.alpha * _squares(learner) / n, grows=False, free=learner.fit_intercept)
    if kind is sklearn.kernel_ridge.KernelRidge and learner.kernel != "precomputed" and np.ndim(learner.alpha) == 0:
        squares = float(np.ravel(learner.dual_coef_) @ np.ravel(learner.predict(Z)))
        return Machine(2 * learner.alpha * squares / n, grows=False, free=False)
    if kind is sklearn.svm.SVR and learner.kernel != "precomputed":
        at = np.asarray(learner.predict(learner.support_vectors_)) - learner.intercept_
        decay = float(np.ravel(learner.dual_coef_) @ at) / (learner.C * n)
        return Machine(decay, grows=False, free=True, loss="absolute", tube=float(learner.epsilon))
    if kernel_machine(learner) is not None and _solved(learner.facts_, n):
        return Machine(2 * learner.facts_["regularization"] * learner.facts_["norm"] ** 2, grows=True, free=False)
    raise Unusable(
        f"no threshold is proved for {kind.__name__}: it needs the minimizer of a convex loss over equally weighted rows, "
        "of least squares, a ridge, Huber, kernel or support vector regression"
    )


def _solved(facts: Any, n: int) -> bool:
    """Whether a kernel machine was solved exactly, for every row given, each counted once."""
    return facts["solver"] == "direct" and facts["n"] == n and not facts["weighted"]


def _squares(learner: Any) -> float:
    return float((np.asarray(learner.coef_, dtype=float) ** 2).sum())


def _keeps_mirrors(scaling: Any) -> bool:
    """Whether targets are prepared by a shift and a factor alone, or not at all."""
    from sklearn import preprocessing

    if type(scaling) is preprocessing.FunctionTransformer:
        return scaling.func is None and scaling.inverse_func is None
    scalers = (
        preprocessing.StandardScaler,
        preprocessing.MinMaxScaler,
        preprocessing.RobustScaler,
        preprocessing.MaxAbsScaler,
    )
    return scaling is None or (type(scaling) in scalers and not getattr(scaling, "clip", False))


def _scaled(y: Any, scaling: Any) -> Any:
    y = np.asarray(y, dtype=float)
    return y if scaling is None else np.squeeze(scaling.transform(y.reshape(-1, 1)), axis=1)


def _in_units(values: Any, scaling: Any) -> Any:
    return values if scaling is None else np.asarray(scaling.inverse_transform(values.reshape(-1, 1))).ravel()
