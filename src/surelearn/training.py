"""Certificates from training rows for models that others fitted: scikit-learn's Ridge,
LogisticRegression, KMeans, ….

Of a fitted model whose objective is known a *twin* is made: a learner of ours with the same
objective and the same weights. What the twin measures on the rows is the model's record, and the
claims follow from that alone, as for our own learners and under the same conditions. Whichever way
the weights were found, the record holds how far they are from the minimizer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from surelearn.base import Learner
from surelearn.certificate import Certificate, Facts
from surelearn.fingerprint import UNHASHED, fingerprint_model
from surelearn.lacking import Lacking
from surelearn.record import Record, Within
from surelearn.subject import Objective, Subject, describe, subject_of
from surelearn.subject.registry import dense

WHAT = "claims_from_the_training_rows"
_PREPARED = Lacking(
    WHAT,
    "its columns were prepared by steps that were fitted on these rows, which no theorem here"
    " covers",
)


_WEIGHTED = Lacking(
    WHAT, "its rows were weighted by class_weight, and the theorems weigh them equally"
)


class Measuring(Protocol):
    """What has a record and tells it from the rows: our learners, and what stands for a model
    that none of ours is like.
    """

    Record: ClassVar[type[Record]]

    def measure_again(self, X: Any, y: Any = None, sample_weight: Any = None) -> dict[str, Any]:
        """The record's fields, with how far rounding may have moved them."""
        ...


@dataclass(frozen=True)
class Twin:
    """A learner of ours with another model's weights, and what of its record only the other's fit
    tells.

    Attributes
    ----------
    learner : ours, as if fitted, or what measures the same record
    told : fields of the record that are the other fit's
    single : whether the other compares numbers in single precision
    """

    learner: Measuring
    told: Mapping[str, Any]
    single: bool = False

    def record(self, X: Any, y: Any, sample_weight: Any = None) -> Record:
        """What model and rows tell, measured."""
        measured = self.measure(X, y, sample_weight)
        return self.learner.Record.read({name: _plain(value) for name, value in measured.items()})

    def measure(self, X: Any, y: Any, sample_weight: Any = None) -> dict[str, Any]:
        """The record's fields, with how far rounding may have moved them."""
        X = np.asarray(X, dtype=np.float32).astype(np.float64) if self.single else X
        return {**self.learner.measure_again(X, y, sample_weight=sample_weight), **self.told}


Stated = Mapping[str, float | None]
Make = Callable[[Subject, Any, Stated], Twin | Lacking]
_BY_LOSS: dict[str, Make] = {}
_BY_CLASS: dict[str, Make] = {}


def certificate_of(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    x_bound: float | None = None,
    y_bound: float | None = None,
    loss_bound: float | None = None,
    delta: float = 0.05,
) -> Certificate:
    """What is guaranteed about a fitted model from the rows that it was fitted on.

    Parameters
    ----------
    model : a fitted Ridge, LinearRegression, LogisticRegression, SVC, LinearSVC, KMeans or
        AdaBoostClassifier of scikit-learn, or a learner of ours, which has its certificate already
    X, y : the rows that it was fitted on, all of them
    sample_weight : as it was given to ``fit``
    x_bound, y_bound, loss_bound : bounds on ‖x‖, ``|y|`` and the loss that hold for *every* row,
        for claims about the risk
    delta : failure probability of each claim

    Returns
    -------
    certificate : its claims stand each alone; where none can be made, ``lacking`` says why. Its
        ``verify(model, X, y)`` measures again

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> X, y = np.array([[0.1], [0.4], [0.8], [1.0]]), np.array([0.0, 0.5, 0.7, 1.0])
    >>> model = Ridge(alpha=4.0, fit_intercept=False).fit(X, y)
    >>> print(certificate_of(model, X, y, x_bound=1.0, y_bound=1.0)["uniform_stability"].bound())
    ≤ 2.25
    >>> print(certificate_of(Ridge().fit(X, y), X, y, x_bound=1.0).lacking[0].reason)
    the intercept is free: set regularize_intercept=True or fit_intercept=False, whose stability is known
    """
    if isinstance(model, Learner):
        return model.certificate_
    stated = {"x_bound": x_bound, "y_bound": y_bound, "loss_bound": loss_bound}
    twin = twin_of(model, X, stated)
    facts = {
        "subject": describe(model),
        "hashes": {"model": fingerprint_model(model)},
        "options": {"delta": float(delta)},
    }
    if isinstance(twin, Lacking):
        setting = f"fitted on {np.shape(X)[0]:,} rows"
        return Certificate(
            facts=Facts(setting=setting, **facts), claims=(), lacking=(twin,), delta=delta
        )
    record = twin.record(X, y, sample_weight)
    return Certificate.of_record(
        record, Facts(setting=record.setting, record=record.key, values=record.values(), **facts)
    )


def measure_again(
    model: Any, stated: Mapping[str, Any], X: Any, y: Any, sample_weight: Any = None
) -> dict[str, Any]:
    """The fields of another model's record, measured again; ``stated`` are those of the record
    to be compared.
    """
    bounds = {name: stated.get(name) for name in ("x_bound", "y_bound")}
    twin = twin_of(model, X, {**bounds, "loss_bound": stated.get("stated_loss_bound")})
    if isinstance(twin, Lacking):
        raise ValueError(twin.reason)
    return twin.measure(X, y, sample_weight)


def twin_of(model: Any, X: Any, stated: Stated) -> Twin | Lacking:
    """A learner of ours with the same objective and weights; `Lacking` says why there is none."""
    if fingerprint_model(model) == UNHASHED:
        return Lacking(WHAT, "a plain function has no training rows that anything is known of")
    subject = subject_of(model)
    if subject.around is not None:
        return _PREPARED
    kind = type(model)
    make = _BY_CLASS.get(f"{kind.__module__.split('.')[0]}:{kind.__name__}")
    if make is None:
        objective = subject.objective
        if isinstance(objective, Lacking):
            return Lacking(WHAT, objective.reason)
        make = _BY_LOSS.get(objective.loss)
        if make is None or objective.kernel != "linear":
            return Lacking(
                WHAT, f"no learner of ours minimizes the {objective.loss} loss with this kernel"
            )
    return make(subject, X, stated)


def _squared(subject: Subject, X: Any, stated: Stated) -> Twin | Lacking:
    from surelearn.linear import LeastSquares, Ridge
    from surelearn.linear.intercept import arguments_of

    objective, weights = _linear(subject)
    if isinstance(objective, Lacking):
        return objective
    if (strength := objective.strength(np.shape(X)[0])) > 0:
        given: dict[str, Any] = {**stated}
        ours: Any = Ridge(regularization=strength, **arguments_of(objective.intercept), **given)
    else:
        ours = LeastSquares(**arguments_of(objective.intercept), tol=0.0)
    W, b = weights
    ours.coef_, ours.intercept_ = (W[0], float(b[0])) if len(W) == 1 else (W, b)
    ours.regularization_, ours.n_features_in_ = strength, W.shape[1]
    return Twin(ours, {})


def _logistic(subject: Subject, X: Any, stated: Stated) -> Twin | Lacking:
    from surelearn.linear import LogisticRegression
    from surelearn.linear.intercept import arguments_of

    objective, weights = _linear(subject)
    if isinstance(objective, Lacking):
        return objective
    if objective.coding == "one_vs_rest":
        return Lacking(
            WHAT,
            "it fits one machine for every class, and the theorems here are about one loss of all"
            " scores",
        )
    model = subject.model
    ours: Any = LogisticRegression(
        regularization=objective.strength(np.shape(X)[0]),
        **arguments_of(objective.intercept),
        x_bound=stated["x_bound"],
    )
    ours.coef_, ours.intercept_ = weights
    ours.classes_, ours.n_features_in_, ours.epochs_ = (
        np.asarray(model.classes_),
        weights[0].shape[1],
        0,
    )
    ours.facts_ = {"streamed": False}
    run = {
        "average": False,
        "step": 0.0,
        "intercept_step": 0.0,
        "step_from_rows": False,
        "updates": 0,
        "rounds": 0,
    }
    return Twin(ours, {**run, "finish": str(model.solver)})


def _means(subject: Subject, X: Any, stated: Stated) -> Twin | Lacking:  # noqa: ARG001
    from surelearn.cluster import KMeans

    model = subject.model
    # it tries several seeds
    init = "greedy" if isinstance(model.init, str) and model.init == "k-means++" else model.init
    if callable(init):
        return Lacking(WHAT, "its seeds came from a function")
    affordable = np.prod(np.shape(X)) * min(np.shape(X)) <= 1e10
    ours: Any = KMeans(n_clusters=model.n_clusters, init=init, spectrum=bool(affordable))
    ours.cluster_centers_ = np.asarray(model.cluster_centers_, dtype=float)
    ours.n_features_in_ = ours.cluster_centers_.shape[1]
    return Twin(ours, {"seeding_costs": ()})


def _votes(subject: Subject, X: Any, stated: Stated) -> Twin | Lacking:  # noqa: ARG001
    from surelearn.boosting import AdaBoostClassifier

    model = subject.model
    trees: list[Any] = [getattr(one, "tree_", None) for one in model.estimators_]
    if any(tree is None or tree.node_count > 3 for tree in trees):
        return Lacking(WHAT, "the theorems here are about votes of stumps: trees of depth 1")
    if model.learning_rate != 1:
        return Lacking(WHAT, "the theorems here are about AdaBoost's own weights: learning_rate=1")
    ours: Any = AdaBoostClassifier(n_rounds=model.n_estimators)
    # scikit-learn's stumps as ours; one that never splits answers the same everywhere
    cut = [tree.node_count == 3 for tree in trees]
    ours.features_ = np.array(
        [tree.feature[0] if c else 0 for tree, c in zip(trees, cut, strict=True)]
    )
    ours.thresholds_ = np.array(
        [tree.threshold[0] if c else np.inf for tree, c in zip(trees, cut, strict=True)]
    )
    ours.below_ = np.array(
        [int(tree.value[1 if c else 0].argmax()) for tree, c in zip(trees, cut, strict=True)]
    )
    ours.above_ = np.array(
        [int(tree.value[2 if c else 0].argmax()) for tree, c in zip(trees, cut, strict=True)]
    )
    weights, two = (
        np.asarray(model.estimator_weights_[: len(trees)], dtype=float),
        len(model.classes_) == 2,
    )
    perfect = len(trees) == 1 and model.estimator_errors_[0] <= 0
    ours.estimator_weights_ = weights / 2 if two and not perfect else weights
    ours.estimator_errors_ = np.asarray(model.estimator_errors_[: len(trees)], dtype=float)
    ours.classes_, ours.n_features_in_, ours.n_rounds_ = (
        np.asarray(model.classes_),
        int(model.n_features_in_),
        len(trees),
    )
    return Twin(ours, {}, single=True)


def _machines(subject: Subject, X: Any, stated: Stated) -> Twin | Lacking:
    from surelearn.linear import SupportVectorMachine

    model, dual = subject.model, subject.dual
    if isinstance(dual, Lacking):
        return Lacking(
            WHAT, "without its dual solution, which it does not keep, no duality gap can be proved"
        )
    if model.class_weight is not None:
        return _WEIGHTED
    if model.kernel not in ("linear", "rbf"):
        return Lacking(WHAT, f"no kernel of ours is written down as the same as {model.kernel!r}")
    if model.kernel == "rbf" and model.gamma == "scale":
        return Lacking(
            WHAT, "gamma='scale' took the kernel's width from the rows: fix gamma beforehand"
        )
    kernel: dict[str, Any] = (
        {"kernel": "linear"}
        if model.kernel == "linear"
        else {"kernel": "gaussian", "bandwidth": math.sqrt(0.5 / float(model._gamma))}
    )
    ours: Any = SupportVectorMachine(
        C=model.C, regularize_intercept=False, x_bound=stated["x_bound"], tol=model.tol, **kernel
    )
    coefficients = np.zeros((len(dual.machines), np.shape(X)[0]))
    for number, machine in enumerate(dual.machines):
        coefficients[number, machine.rows] = machine.beta
    ours.support_ = np.flatnonzero(coefficients.any(axis=0))
    ours.dual_coef_ = coefficients[:, ours.support_]
    ours.intercept_ = np.array([machine.bias for machine in dual.machines])
    held = (
        X.tocsr()[ours.support_]
        if hasattr(X, "tocsr")
        else np.asarray(X, dtype=float)[ours.support_]
    )
    if model.kernel == "linear":
        ours.coef_ = np.asarray(ours.dual_coef_ @ held)
    else:
        ours.support_vectors_ = held
    ours.classes_, ours.n_features_in_ = np.asarray(model.classes_), int(model.n_features_in_)
    return Twin(ours, {})


def _liblinear(subject: Subject, X: Any, stated: Stated) -> Twin | Lacking:  # noqa: ARG001
    from surelearn.linear import LiblinearMachines

    model, objective, form = subject.model, subject.objective, subject.form
    if isinstance(objective, Lacking):
        return Lacking(WHAT, objective.reason)
    if isinstance(form, Lacking):
        return Lacking(WHAT, form.reason)
    if objective.uniform is False:
        return _WEIGHTED
    weights = np.atleast_2d(dense(model.coef_)).astype(float)
    return Twin(
        LiblinearMachines(
            weights=weights,
            intercepts=np.broadcast_to(np.asarray(model.intercept_, dtype=float), len(weights)),
            classes=np.asarray(model.classes_),
            C=float(model.C),
            squared=objective.loss == "squared_hinge",
            intercept_scale=None if objective.intercept == "none" else objective.intercept_scale,
            x_bound=stated["x_bound"],
        ),
        {},
    )


_BY_LOSS |= {"squared": _squared, "logistic": _logistic}
_BY_CLASS |= {
    "sklearn:KMeans": _means,
    "sklearn:AdaBoostClassifier": _votes,
    "sklearn:SVC": _machines,
}
_BY_CLASS |= {"sklearn:LinearSVC": _liblinear}


def _linear(subject: Subject) -> tuple[Objective | Lacking, Any]:
    """The objective and its weights (machines, d) and intercepts (machines,), or why they are
    of no use here.
    """
    objective, form = subject.objective, subject.form
    if isinstance(objective, Lacking):
        return Lacking(WHAT, objective.reason), None
    if isinstance(form, Lacking):
        return Lacking(WHAT, form.reason), None
    if objective.intercept == "regularized" and objective.intercept_scale != 1:
        return (
            Lacking(
                WHAT,
                "its penalty counts the intercept otherwise than a weight: set intercept_scaling=1",
            ),
            None,
        )
    if objective.uniform is False:
        return _WEIGHTED, None
    if objective.l1:
        return (
            Lacking(
                WHAT, "with an L1 penalty the objective has no gradient where a weight is zero"
            ),
            None,
        )
    found: Any = form.form
    return objective, (
        np.asarray(found.weights, dtype=float),
        np.asarray(found.intercepts, dtype=float),
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Within):
        return value.value
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value
