"""scikit-learn's support vector machines and kernel ridge regression: sums of kernels, and what
their fits minimized.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from itertools import combinations
from typing import cast

import numpy as np

from surelearn.lacking import Lacking
from surelearn.subject.forms import PRECOMPUTED, Closed, kernel_form, linear_form, no_kernel
from surelearn.subject.machines import (
    DualMachine,
    DualSolution,
    Machines,
    largest,
    votes_of_pairs,
)
from surelearn.subject.objectives import Objective
from surelearn.subject.registry import NO_DUAL, NO_OBJECTIVE, Parts, dense, describes
from surelearn.subject.sklearn_linear import class_count, coding_of, weights_of
from surelearn.types import AnyArray, Array, Model, RowsLike

_NAMES = {"rbf": "gaussian", "poly": "polynomial"}


@describes("sklearn.svm:LinearSVC", "sklearn.svm:LinearSVR")
def _linear(model: Model) -> Parts:
    return Parts(form=lambda: weights_of(model), objective=lambda: _linear_objective(model))


def _linear_objective(model: Model) -> Objective | Lacking:
    """½(‖w‖² + (b/scale)²) + C·Σ loss, as LIBLINEAR has it."""
    classifies = class_count(model) is not None
    if (
        classifies and (model.penalty != "l2" or model.multi_class != "ovr")
    ) or model.loss.startswith("squared_eps"):
        return NO_OBJECTIVE
    return Objective(
        model.loss,
        1 / (2 * model.C),
        beside="sum",
        intercept="regularized" if model.fit_intercept else "none",
        intercept_scale=float(model.intercept_scaling) if model.fit_intercept else 1.0,
        coding=coding_of(model, "one_vs_rest") if classifies else "numbers",
        parameters={} if classifies else {"tube": float(model.epsilon)},
        uniform=None if getattr(model, "class_weight", None) is None else False,
        tolerance=float(model.tol),
    )


@describes("sklearn.svm:SVC", "sklearn.svm:NuSVC", "sklearn.svm:SVR", "sklearn.svm:NuSVR")
def _machine(model: Model) -> Parts:
    plain = not type(model).__name__.startswith("Nu")
    objective = (lambda: _objective(model)) if plain else NO_OBJECTIVE
    dual = (lambda: _dual(model)) if plain and class_count(model) is not None else NO_DUAL
    width = isinstance(model.gamma, str) and not callable(model.kernel)
    return Parts(
        form=lambda: _sums(model),
        objective=objective,
        machines=lambda: _libsvm(model),
        dual=dual,
        fixed=(lambda: _with_width(model)) if width else None,
    )


def _with_width(model: Model) -> Model:
    """A copy with the kernel's width as it is, where a refit would take another from its rows."""
    return copy.copy(model).set_params(gamma=float(model._gamma) or "scale")


def _dual(model: Model) -> DualSolution | Lacking:
    """A machine for every pair of classes, as `_machines` unpacks them."""
    if model.kernel == "precomputed" or not isinstance(model.kernel, str):
        return NO_DUAL
    count = len(model.classes_)
    whose = np.repeat(np.arange(count), model.n_support_)
    most = model.C * model.class_weight_[whose]
    _, coefficients, intercepts = _machines(model, count)
    machines: list[DualMachine] = []
    for k, pair in enumerate(combinations(range(count), 2)):
        beta, bias = coefficients[:, k], float(intercepts[k])
        held = np.flatnonzero(beta)
        machines.append(DualMachine(pair, model.support_[held], beta[held], most[held], bias, True))
    return DualSolution(tuple(machines), lambda A, B: _kernel(model, A, B))


def _kernel(model: Model, A: AnyArray, B: AnyArray) -> Array:
    """κ(a_i, b_j) as scikit-learn has it for the machine."""
    from sklearn.metrics.pairwise import pairwise_kernels  # pyright: ignore - it has no types

    kernels = cast("Callable[..., Array]", pairwise_kernels)
    options = {"gamma": model._gamma, "degree": model.degree, "coef0": model.coef0}
    return kernels(A, B, metric=model.kernel, filter_params=True, **options)


def _libsvm(model: Model) -> Machines | Lacking:
    """Whatever the kernel: LIBSVM's own scores, and ‖w_m‖² = Σ_j c_jm·(f_m(z_j) − b_m)."""
    if model.kernel == "precomputed":
        return Lacking("machines", PRECOMPUTED.reason)
    count = class_count(model)
    _, coefficients, intercepts = _machines(model, count)
    asked, sign = model, 1.0
    if count is not None and count > 2:
        asked, sign = copy.copy(model), -1.0  # LIBSVM's favor the first class of a pair
        asked.decision_function_shape = "ovo"

    def values(Z: RowsLike) -> Array:
        found = asked.predict(Z) if count is None else sign * asked.decision_function(Z)
        return _columns(found, Z)

    squares = (coefficients * (values(model.support_vectors_) - intercepts)).sum(axis=0)
    return Machines(values, squares, intercepts, largest if count in (None, 2) else votes_of_pairs)


def _objective(model: Model) -> Objective:
    """½‖w‖² + C·Σ hinge, or with the ε-insensitive loss; b is free."""
    classifies = class_count(model) is not None
    return Objective(
        "hinge" if classifies else "epsilon_insensitive",
        1 / (2 * model.C),
        beside="sum",
        intercept="free",
        coding=coding_of(model, "one_vs_one") if classifies else "numbers",
        parameters={} if classifies else {"tube": float(model.epsilon)},
        uniform=None if getattr(model, "class_weight", None) is None else False,
        kernel=kernel_name(model.kernel),
        tolerance=float(model.tol),
    )


def kernel_name(kernel: str | Callable[..., float]) -> str:
    """As `surelearn.kernel.functions` calls it, where that has it."""
    return _NAMES.get(kernel, kernel) if isinstance(kernel, str) else "callable"


def _sums(model: Model) -> Closed | Lacking:
    count = class_count(model)
    if model.kernel == "linear":
        if count is None or count == 2:
            return weights_of(model)
        # LIBSVM's favor the first class
        return linear_form(-dense(model.coef_), -model.intercept_, count, votes=True)
    if not hasattr(model, "support_vectors_"):
        return Lacking(
            "closed form", f"{type(model).__name__} has no coefficients: it is not fitted"
        )
    if model.kernel == "precomputed":
        return PRECOMPUTED
    if not isinstance(model.kernel, str) or model.kernel not in ("rbf", "poly"):
        return no_kernel(model.kernel)
    parameters = {"degree": model.degree, "gamma": model._gamma, "offset": model.coef0}
    parameters = (
        {"bandwidth": math.sqrt(0.5 / model._gamma)} if model.kernel == "rbf" else parameters
    )
    return kernel_form(
        kernel_name(model.kernel),
        parameters,
        *_machines(model, count),
        count,
        votes=count is not None,
    )


def _machines(model: Model, count: int | None) -> tuple[Array, Array, Array]:
    """Centers, coefficients and intercepts: LIBSVM's packed ones as a column a machine,
    positive for the second class.
    """
    centers, packed = dense(model.support_vectors_), dense(model.dual_coef_)
    intercepts = np.asarray(model.intercept_, dtype=float)
    if count is None or count == 2:
        return centers, packed.T, intercepts
    ends = np.concatenate([[0], np.cumsum(model.n_support_)])
    columns: list[Array] = []
    for i, j in combinations(range(count), 2):
        column = np.zeros(packed.shape[1])
        column[ends[i] : ends[i + 1]] = packed[j - 1, ends[i] : ends[i + 1]]
        column[ends[j] : ends[j + 1]] = packed[i, ends[j] : ends[j + 1]]
        columns.append(-column)
    return centers, np.transpose(columns), -intercepts


def _columns(found: AnyArray, Z: RowsLike) -> Array:
    """Scores (n,) or (n, machines) of rows as (n, machines)."""
    return np.asarray(found, dtype=float).reshape(np.shape(cast("AnyArray", Z))[0], -1)


@describes("sklearn.kernel_ridge:KernelRidge")
def _ridge(model: Model) -> Parts:
    """Σ(f(x_i) − y_i)² + α‖f‖², without an intercept."""
    objective = Lacking("objective", "each target has a penalty of its own")
    if np.ndim(model.alpha) == 0:
        kernel = kernel_name(model.kernel)
        objective = Objective(
            "squared",
            float(model.alpha),
            beside="sum",
            intercept="none",
            uniform=None,
            kernel=kernel,
        )
    return Parts(
        form=lambda: _ridge_sums(model),
        objective=objective,
        machines=lambda: _ridge_machines(model),
    )


def _ridge_machines(model: Model) -> Machines | Lacking:
    if model.kernel == "precomputed":
        return Lacking("machines", PRECOMPUTED.reason)

    def values(Z: RowsLike) -> Array:
        return _columns(model.predict(Z), Z)

    duals = np.asarray(model.dual_coef_, dtype=float).reshape(len(model.dual_coef_), -1)
    return Machines(values, (duals * values(model.X_fit_)).sum(axis=0), np.zeros(duals.shape[1]))


def _ridge_sums(model: Model) -> Closed | Lacking:
    if not hasattr(model, "dual_coef_"):
        return Lacking(
            "closed form", f"{type(model).__name__} has no coefficients: it is not fitted"
        )
    if model.kernel == "precomputed":
        return PRECOMPUTED
    centers = dense(model.X_fit_)
    gamma = 1.0 / centers.shape[1] if model.gamma is None else model.gamma
    parameters = {
        "linear": {},
        "rbf": {"bandwidth": math.sqrt(0.5 / gamma)},
        "poly": {"degree": model.degree, "gamma": gamma, "offset": model.coef0},
    }
    if not isinstance(model.kernel, str) or model.kernel not in parameters:
        return no_kernel(model.kernel)
    return kernel_form(
        kernel_name(model.kernel), parameters[model.kernel], centers, model.dual_coef_
    )
