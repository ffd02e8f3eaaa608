"""Which closed form a fitted model has, if any: its affine preparation, its machines, and how they become class scores."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from surelearn.adapters.forms import Affine, Array, Form, GaussianForm, KernelForm, LinearForm, NetworkForm
from surelearn.adapters.known import known_as, replaced, why_unknown
from surelearn.adapters.wrappers import unwrap

Head = Literal["each", "two", "pairs"]
_PRECOMPUTED = "a precomputed kernel has no rows to move"


class NoClosedForm(Exception):  # noqa: N818 - a reason, not an error
    """Why a model has no closed form, in a sentence."""


@dataclass(frozen=True)
class Closed:
    """A model in closed form: the machines ``form`` of the prepared row.

    Attributes
    ----------
    form : linear, kernel or network
    prepare : the affine steps before it, or None
    head : "each" (a machine an output), "two" (one machine, positive for the second class), or "pairs" (a machine for
        every pair of classes, positive for the second, and votes)
    """

    form: Form
    prepare: Affine | None
    head: Head


def closed_form(model: Any) -> Closed:
    """The closed form of a fitted model or pipeline of known classes; `NoClosedForm` says why there is none."""
    model = unwrap(model)
    if not isinstance(steps := getattr(model, "steps", None), list):
        form, head = _machines(model)
        return Closed(form, None, head)
    if not known_as(model, "sklearn.pipeline") or replaced(model):
        raise NoClosedForm(f"{type(model).__name__} may pass rows on otherwise than scikit-learn's Pipeline")
    inner = closed_form(steps[-1][1])
    prepare: Affine | None = None
    for made in (*(_affine(step) for _, step in steps[:-1]), inner.prepare):
        if made is not None:
            prepare = made if prepare is None else prepare.then(made)
    return Closed(inner.form, prepare, inner.head)


def _affine(step: Any) -> Affine | None:
    """A fitted preparation as an affine map; None for one that does nothing."""
    if step is None or isinstance(step, str):
        return None
    name = known_as(step, "sklearn.preprocessing", "sklearn.decomposition")
    if not name or replaced(step):
        raise NoClosedForm(f"the preparation {type(step).__name__} is not known to be affine")
    if name == "StandardScaler":
        width = step.n_features_in_
        scale = np.ones(width) if step.scale_ is None else np.asarray(step.scale_, dtype=float)
        return Affine(1.0 / scale, -(np.zeros(width) if step.mean_ is None else step.mean_) / scale)
    if name == "RobustScaler":
        width = step.n_features_in_
        scale = np.ones(width) if step.scale_ is None else np.asarray(step.scale_, dtype=float)
        return Affine(1.0 / scale, -(np.zeros(width) if step.center_ is None else step.center_) / scale)
    if name == "MaxAbsScaler" and not getattr(step, "clip", False):
        return Affine(1.0 / np.asarray(step.scale_, dtype=float), np.zeros(step.n_features_in_))
    if name == "MinMaxScaler" and not step.clip:
        return Affine(np.asarray(step.scale_, dtype=float), np.asarray(step.min_, dtype=float))
    if name == "PCA":
        scale = np.sqrt(step.explained_variance_) if step.whiten else np.ones(len(step.components_))
        matrix = step.components_ / scale[:, None]
        return Affine(matrix, -matrix @ step.mean_)
    raise NoClosedForm(f"the preparation {name} is not affine")


def _machines(model: Any) -> tuple[Form, Head]:
    if why := why_unknown(model):
        raise NoClosedForm(why)
    classes = getattr(model, "classes_", None)
    if isinstance(classes, list):
        raise NoClosedForm("the model has several targets")
    count = None if classes is None else len(classes)
    if hasattr(model, "coefs_") and hasattr(model, "intercepts_"):
        return _network(model), _head(len(model.intercepts_[-1]), count)
    if hasattr(model, "theta_") or hasattr(model, "tables_"):
        return _normals(model), "each"
    if getattr(model, "shortens_rows", False):
        raise NoClosedForm(f"{type(model).__name__} shortens rows first: its scores are not linear in them")
    if hasattr(model, "centers_") and hasattr(model, "kernel_name_"):
        if model.centers_ is None:
            raise NoClosedForm(_PRECOMPUTED)
        name = model.kernel_name_ if isinstance(model.kernel, str) else _name_of(model.kernel)
        return _kernel_sum(name, model.kernel_parameters_, model.centers_, model.coef_, None, count)
    if hasattr(model, "support_vectors_") and hasattr(model, "dual_coef_") and getattr(model, "coef_", None) is None:
        return _support_vectors(model, count)
    if hasattr(model, "coef_") and hasattr(model, "intercept_"):
        weights = np.atleast_2d(_dense(model.coef_)).astype(float)
        intercepts = np.broadcast_to(np.asarray(model.intercept_, dtype=float).ravel(), (len(weights),))
        head = _head(len(weights), count, _votes(model))
        sign = -1.0 if head == "pairs" and _is_libsvm(model) else 1.0
        return LinearForm(sign * weights, sign * intercepts), head
    raise NoClosedForm(f"{type(model).__name__} has no coefficients: it is not fitted")


def _head(machines: int, classes: int | None, votes: bool = False) -> Head:
    if classes == 2 and machines == 1:
        return "two"
    if votes and classes is not None and machines == classes * (classes - 1) // 2:
        return "pairs"
    if classes is None or machines == classes:
        return "each"
    raise NoClosedForm(f"{machines} machines for {classes} classes are combined in a way that is not known here")


def _votes(model: Any) -> bool:
    return hasattr(model, "support_") or getattr(model, "multiclass", "") == "one_vs_one"


def _is_libsvm(model: Any) -> bool:
    return type(model).__module__.startswith("sklearn.svm")


def _network(model: Any) -> NetworkForm:
    if model.out_activation_ not in ("identity", "logistic", "softmax"):
        raise NoClosedForm(f"{type(model).__name__} passes its last layer through {model.out_activation_}")
    layers = tuple(
        (np.asarray(W, dtype=float).T, np.asarray(b, dtype=float))
        for W, b in zip(model.coefs_, model.intercepts_, strict=True)
    )
    return NetworkForm(layers, model.activation)


def _normals(model: Any) -> GaussianForm:
    """Naive Bayes of numbers alone, scikit-learn's or ours."""
    if hasattr(model, "theta_"):
        means, variances, prior = model.theta_, model.var_, np.log(model.class_prior_)
    elif "categorical" in model.kinds_:
        raise NoClosedForm("its columns of categories have no gradient: no category lies between two others")
    else:
        means, variances = np.stack(model.tables_).transpose(1, 2, 0)  # (2, classes, d)
        prior = model.prior_
    return GaussianForm(means, variances, prior - 0.5 * np.log(2.0 * np.pi * variances).sum(axis=1))


def _support_vectors(model: Any, count: int | None) -> tuple[Form, Head]:
    """scikit-learn's machines, or ours with a name or an object for a kernel."""
    if model.support_vectors_ is None:
        raise NoClosedForm(_PRECOMPUTED)
    if not _is_libsvm(model):
        name, parameters = model.kernel, {"degree": getattr(model, "degree", None), "sigma": getattr(model, "sigma", None)}
        if hasattr(name, "parameters"):
            name, parameters = _name_of(name), name.parameters()
        return _kernel_sum(
            name, parameters, model.support_vectors_, model.dual_coef_.T, model.intercept_, count, votes=_votes(model)
        )
    if callable(model.kernel) or model.kernel not in ("rbf", "poly"):
        raise NoClosedForm(f"the kernel {model.kernel!r} has no gradient that is known here")
    kinds = {
        "rbf": ("gaussian", {"sigma": 1.0 / model._gamma}),
        "poly": ("polynomial", {"degree": model.degree, "gamma": model._gamma, "offset": model.coef0}),
    }
    coefficients, intercepts = _libsvm_machines(model, count)
    return _kernel_sum(
        *kinds[model.kernel], model.support_vectors_, coefficients, intercepts, count, votes=count is not None
    )


def _libsvm_machines(model: Any, count: int | None) -> tuple[Array, Array]:
    """LIBSVM's packed coefficients as one column a machine, positive for the second class of its pair."""
    packed, intercepts = _dense(model.dual_coef_), np.asarray(model.intercept_, dtype=float)
    if count is None or count == 2:
        return packed.T, intercepts
    ends = np.concatenate([[0], np.cumsum(model.n_support_)])
    columns = []
    for i, j in combinations(range(count), 2):
        column = np.zeros(packed.shape[1])
        column[ends[i] : ends[i + 1]] = packed[j - 1, ends[i] : ends[i + 1]]
        column[ends[j] : ends[j + 1]] = packed[i, ends[j] : ends[j + 1]]
        columns.append(-column)
    return np.transpose(columns), -intercepts


def _name_of(kernel: Any) -> str:
    if not known_as(kernel, "surelearn.kernel.functions", "surelearn.kernel.composites") or replaced(kernel):
        raise NoClosedForm(f"the kernel {type(kernel).__name__} has no gradient that is known here")
    return kernel.name


def _kernel_sum(
    name: Any,
    parameters: Any,
    centers: Any,
    coefficients: Any,
    intercepts: Any,
    count: int | None,
    votes: bool = False,
) -> tuple[Form, Head]:
    centers = _dense(centers).astype(float)
    coefficients = np.asarray(coefficients, dtype=float).reshape(len(centers), -1)
    machines = coefficients.shape[1]
    intercepts = np.zeros(machines) if intercepts is None else np.asarray(intercepts, dtype=float).reshape(machines)
    head = _head(machines, count, votes)
    if name == "linear":
        return LinearForm(coefficients.T @ centers, intercepts), head
    if name == "polynomial":
        kept = {"gamma": 1.0, "offset": 1.0, **{key: float(parameters[key]) for key in parameters if key != "sigma"}}
    elif name in ("gaussian", "laplace", "matern"):
        kept = {"nu": 1.5, **{key: float(parameters[key]) for key in parameters if key in ("sigma", "nu")}}
    else:
        raise NoClosedForm(f"the kernel {name!r} has no gradient that is known here")
    return KernelForm(name, kept, centers, coefficients, intercepts), head


def _dense(values: Any) -> np.ndarray:
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)
