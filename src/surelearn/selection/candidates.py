"""The default candidates, from simple to complex, and how a user names their own."""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from surelearn.jobs import seed_for
from surelearn.subject import Task
from surelearn.types import Model

# up to here a support vector machine, whose cost grows with the square of n
DIRECT_KERNEL_ROWS = 5000
# beyond so many, so many centers
EIGENPRO_ROWS = {"classification": (5_000, 2_000), "regression": (15_000, 4_000)}
EIGENPRO = "kernel machine"


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A model that takes part in selection; candidates are listed from simple to complex."""

    name: str
    model: Model


# one model, or models as a list or by name; a `Candidate` may stand for a model
Candidates: TypeAlias = Mapping[str, Model] | Sequence[Model] | Model


DEFAULT = {
    "classification": (
        "majority", "naive Bayes", "logistic regression", "boosted stumps", "nearest neighbors", "kernel SVM",
        "kernel logistic regression", EIGENPRO, "boosted trees", "random forest",
    ),
    "regression": (
        "median", "linear regression", "Huber regression", "nearest neighbors", "kernel SVM", "kernel ridge",
        EIGENPRO, "boosted trees", "random forest",
    ),
}  # fmt: skip
"""Candidates that take part unless told otherwise; the others of `catalogue` take part by name."""
# names of earlier versions, still understood
_EARLIER = {"nearest neighbours": "nearest neighbors"}


def catalogue(
    task: Task, kinds: Mapping[Any, str], n: int, random_state: int = 0, classes: int = 2
) -> dict[str, Candidate]:
    """Every candidate with a name, from simple to complex: surelearn's learners, and scikit-learn's
    where it has none.

    Each is a pipeline that prepares the columns and then fits, so that nothing is learned outside
    the fit rows.

    Parameters
    ----------
    kinds : kind of each column: "number", "category", "text" or "date"
    n : rows to fit on; beyond 5,000 the kernel SVM gives way to a linear model of 300 random
        landmarks, and the "kernel machine" (EigenPro; it needs PyTorch, and is not there without)
        is built on some of the rows
    classes : labels to tell apart; boosting grows a tree for each in every round, so beyond five it
        has fewer rounds
    """
    from sklearn.pipeline import make_pipeline

    from surelearn.selection.preparation import preparation

    def seed(name: str) -> int:
        return seed_for(f"candidate/{name}", random_state)

    models = _classifiers(n, seed, classes) if task == "classification" else _regressors(n, seed)
    made = {name: make_pipeline(preparation(kinds), *steps) for name, steps in models.items()}
    if task == "classification":
        made["naive Bayes"] = _naive_bayes(kinds)
    return {
        name: Candidate(name=name, model=model) for name, model in made.items() if model is not None
    }


def default_candidates(
    task: Task, kinds: Mapping[Any, str], n: int, random_state: int = 0, classes: int = 2
) -> list[Candidate]:
    """Those of `catalogue` that take part unless told otherwise."""
    return [
        c
        for c in catalogue(task, kinds, n, random_state, classes).values()
        if c.name in DEFAULT[task]
    ]


def candidate_names(models: Candidates) -> list[str]:
    """The names, if candidates are given by name: ``"all"``, ``"perceptron"`` or a list of them."""
    names = [models] if isinstance(models, str) else models
    return (
        list(names)
        if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
        else []
    )


def named_candidates(
    names: Sequence[str],
    task: Task,
    kinds: Mapping[Any, str],
    n: int,
    random_state: int = 0,
    classes: int = 2,
) -> list[Candidate]:
    """Those of `catalogue` with the names, in its order; "all" is every one."""
    every = catalogue(task, kinds, n, random_state, classes)
    names = [_EARLIER.get(name, name) for name in names]
    if EIGENPRO in names and EIGENPRO not in every:
        raise ValueError("EigenPro needs PyTorch: pip install 'surelearn[torch]'")
    if unknown := [name for name in names if name != "all" and name not in every]:
        raise ValueError(
            f"there is no candidate {unknown[0]!r} for {task}: there are {', '.join(every)},"
            " and all"
        )
    return [candidate for name, candidate in every.items() if name in names or "all" in names]


def _naive_bayes(kinds: Mapping[Any, str]) -> Model | None:
    """It counts categories itself, and a missing value says nothing; text and dates are left
    out.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline

    from surelearn.linear import NaiveBayes

    plain = {name: kind for name, kind in kinds.items() if kind in ("number", "category")}
    if not plain:
        return None
    columns = ColumnTransformer(
        [("plain", "passthrough", list(plain))], verbose_feature_names_out=False
    )
    return make_pipeline(
        columns,
        NaiveBayes(categorical=[i for i, kind in enumerate(plain.values()) if kind == "category"]),
    )


def _has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def _eigenpro(task: Task, n: int, seed: Callable[[str], int]) -> Model | None:
    """Kernel ridge regression by EigenPro, on the CPU so that every machine gives the same page;
    None without PyTorch.

    The bandwidth follows the median distance. A Gaussian kernel and a penalty that grows with √n
    for classes, whose labels are noisy; a Laplace kernel and a small one for numbers. Many rows:
    built on some of them, fitted to all.
    """
    if not _has_torch():
        return None
    from surelearn.kernel import Compute, EigenProClassifier, EigenProRegressor

    most, centers = EIGENPRO_ROWS[task]
    shared: dict[str, Any] = {
        "compute": Compute(device="cpu", memory_limit=2.0**32),
        "random_state": seed(EIGENPRO),
    }
    shared["centers"] = None if n <= most else centers
    if task == "classification":
        return EigenProClassifier("gaussian", regularization=0.005 / math.sqrt(n), **shared)
    return EigenProRegressor("laplace", regularization=0.1 / n, **shared)


def _classifiers(n: int, seed: Callable[[str], int], classes: int) -> dict[str, tuple[Model, ...]]:
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.kernel_approximation import Nystroem
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    from surelearn.boosting import AdaBoostClassifier
    from surelearn.linear import (
        DPLogisticRegression,
        LogisticRegression,
        Perceptron,
        SupportVectorMachine,
    )

    rounds = min(100, max(20, 500 // classes))
    finish = "newton" if classes == 2 else "lbfgs"  # the Hessian has (dK)² entries

    def logistic(regularization: float) -> Model:  # rows fit in memory: straight to the minimizer
        return LogisticRegression(regularization=regularization, epochs=0, finish=finish)

    kernel: dict[str, tuple[Model, ...]] = {"kernel SVM": (SVC(),)}
    if n > DIRECT_KERNEL_ROWS:
        landmarks = Nystroem(n_components=300, random_state=seed("landmarks"))
        kernel = {"kernel logistic regression": (landmarks, logistic(1 / (20 * n)))}
    eigenpro = _eigenpro("classification", n, seed)
    return {
        "majority": (DummyClassifier(),),
        "naive Bayes": (),  # in its place by complexity
        "perceptron": (Perceptron(averaged=True, random_state=seed("perceptron")),),
        "private logistic regression": (
            DPLogisticRegression(random_state=seed("private logistic regression")),
        ),
        "logistic regression": (logistic(1 / (2 * n)),),
        "support vector machine": (
            SupportVectorMachine(random_state=seed("support vector machine")),
        ),
        "boosted stumps": (AdaBoostClassifier(n_rounds=rounds),),
        "nearest neighbors": (KNeighborsClassifier(n_neighbors=min(15, max(1, n // 10))),),
        **kernel,
        **({} if eigenpro is None else {EIGENPRO: (eigenpro,)}),
        "boosted trees": (
            HistGradientBoostingClassifier(
                max_iter=rounds, early_stopping=False, random_state=seed("boosted trees")
            ),
        ),
        "random forest": (RandomForestClassifier(200, random_state=seed("random forest")),),
    }


def _regressors(n: int, seed: Callable[[str], int]) -> dict[str, tuple[Model, ...]]:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.dummy import DummyRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.kernel_approximation import Nystroem
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    from surelearn.linear import (
        HuberRegression,
        LeastSquares,
        Ridge,
        SquareRootLasso,
        VariationalRegression,
    )

    def scaled(model: Model) -> tuple[Model]:
        return (TransformedTargetRegressor(model, transformer=StandardScaler()),)

    kernel: dict[str, tuple[Model, ...]] = {"kernel SVM": scaled(SVR())}
    if n > DIRECT_KERNEL_ROWS:
        landmarks = Nystroem(n_components=300, random_state=seed("landmarks"))
        kernel = {
            "kernel ridge": (landmarks, Ridge(regularization="loo", regularize_intercept=False))
        }
    forest = RandomForestRegressor(
        100, min_samples_leaf=2, max_features=0.5, random_state=seed("random forest")
    )
    eigenpro = _eigenpro("regression", n, seed)
    return {
        "median": (DummyRegressor(strategy="median"),),
        "least squares": (LeastSquares(),),
        "linear regression": (Ridge(regularization="loo", regularize_intercept=False),),
        "square-root lasso": scaled(SquareRootLasso()),
        "Huber regression": scaled(HuberRegression()),
        "clipped regression": scaled(VariationalRegression()),
        "nearest neighbors": (KNeighborsRegressor(n_neighbors=min(10, max(1, n // 10))),),
        **kernel,
        **({} if eigenpro is None else {EIGENPRO: scaled(eigenpro)}),
        "boosted trees": (
            HistGradientBoostingRegressor(early_stopping=False, random_state=seed("boosted trees")),
        ),
        "random forest": (forest,),
    }


def as_candidates(models: Candidates) -> list[Candidate]:
    """Candidates from what a user gives: candidates, a mapping of names to models, a list of
    models, or one model.
    """
    if isinstance(models, Mapping):
        return [Candidate(name=str(name), model=model) for name, model in models.items()]
    if not isinstance(models, Sequence):
        models = [models]
    named = [
        m if isinstance(m, Candidate) else Candidate(name=type(m).__name__, model=m) for m in models
    ]
    names = [candidate.name for candidate in named]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(
            f"two candidates are called {repeated[0]!r}: pass a mapping of names to models"
        )
    if not named:
        raise ValueError("there are no candidates to select from")
    for candidate in named:
        if not (hasattr(candidate.model, "fit") and hasattr(candidate.model, "predict")):
            raise TypeError(
                f"candidate {candidate.name!r} must have fit and predict,"
                f" {type(candidate.model).__name__} has not"
            )
        _check_unfitted(candidate)
    return named


def _check_unfitted(candidate: Candidate) -> None:
    """Refuse a candidate that was fitted before: it would be fitted again, and another model
    than its owner's judged.
    """
    part = fitted_part(candidate.model)
    if part is None:
        return
    what = (
        "is already fitted" if part is candidate.model else f"holds a fitted {type(part).__name__}"
    )
    raise ValueError(
        f"candidate {candidate.name!r} {what}, and would be fitted again: certify it as it is, on"
        " rows it has not seen, with surelearn.audit(model, X, y) or surelearn.certify(model, X,"
        " y), or pass it unfitted"
    )


def fitted_part(model: Model) -> Model | None:
    """The model itself if it is fitted, else a fitted predictor among its parameters, else None.

    "Fitted" is what `sklearn.utils.validation.check_is_fitted` means by it (a pipeline: its last
    step). A frozen or prefit predictor inside an unfitted model counts, since which rows it has
    seen is not known; a transformer does not.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> fitted_part(Ridge()), fitted_part(Ridge().fit([[0], [1]], [0, 1]))
    (None, Ridge())
    """
    from sklearn.base import is_classifier, is_regressor

    if _is_fitted(model):
        return model
    nested = model.get_params(deep=True).values() if hasattr(model, "get_params") else ()
    parts = [
        part
        for part in nested
        if hasattr(part, "predict") and hasattr(part, "fit") and not isinstance(part, type)
    ]
    return next(
        (
            part
            for part in parts
            if (is_classifier(part) or is_regressor(part)) and _is_fitted(part)
        ),
        None,
    )


def _is_fitted(model: Model) -> bool:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import get_tags
    from sklearn.utils.validation import check_is_fitted

    try:
        if not get_tags(model).requires_fit:
            return False
    except AttributeError:  # a class of the user's own, without scikit-learn's tags
        return any(
            name.endswith("_") and not name.startswith("__")
            for name in getattr(model, "__dict__", {})
        )
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def load_factory(text: str, option: str = "--model") -> list[Candidate]:
    """Candidates from ``package.module:factory``, a function that returns a model, a list or a
    mapping of them.
    """
    module_name, _, attribute = text.partition(":")
    if not module_name or not attribute:
        raise ValueError(f"{option} must be package.module:factory, not {text!r}")
    try:
        factory = getattr(importlib.import_module(module_name), attribute)
    except ImportError as error:
        raise ValueError(f"{option} {text}: {module_name} cannot be imported ({error})") from None
    except AttributeError:
        raise ValueError(f"{option} {text}: {module_name} has no {attribute!r}") from None
    return as_candidates(factory() if callable(factory) else factory)
