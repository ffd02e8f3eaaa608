"""The default candidates, from simple to complex, and how a user names their own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surelearn.adapters import Task
from surelearn.jobs import seed_for

DIRECT_KERNEL_ROWS = 5000  # up to here an exact kernel machine, whose cost grows with the square of n


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A model that takes part in selection; candidates are listed from simple to complex."""

    name: str
    model: Any


def default_candidates(
    task: Task, kinds: Mapping[Any, str], n: int, random_state: int = 0, classes: int = 2
) -> list[Candidate]:
    """A constant, a linear model, nearest neighbours, a kernel machine, boosted trees and a forest.

    Each is a pipeline that prepares the columns and then fits, so that nothing is learned outside the fit rows.

    Parameters
    ----------
    kinds : kind of each column: "number", "category", "text" or "date"
    n : rows to fit on; beyond 5,000 the kernel machine works on 300 random landmarks
    classes : labels to tell apart; boosting grows a tree for each in every round, so beyond five it has fewer rounds
    """
    from sklearn.pipeline import make_pipeline

    from surelearn.selection.preparation import preparation

    def seed(name: str) -> int:
        return seed_for(f"candidate/{name}", random_state)

    models = (
        _classifiers(n, seed, rounds=min(100, max(20, 500 // classes))) if task == "classification" else _regressors(n, seed)
    )
    return [Candidate(name=name, model=make_pipeline(preparation(kinds), *steps)) for name, steps in models.items()]


def _classifiers(n: int, seed: Callable[[str], int], rounds: int) -> dict[str, tuple[Any, ...]]:
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    kernel: dict[str, tuple[Any, ...]] = {"kernel SVM": (SVC(),)}
    if n > DIRECT_KERNEL_ROWS:
        landmarks = Nystroem(n_components=300, random_state=seed("landmarks"))
        kernel = {"kernel logistic regression": (landmarks, LogisticRegression(C=10.0, max_iter=1000))}
    return {
        "majority": (DummyClassifier(),),
        "logistic regression": (LogisticRegression(max_iter=1000),),
        "nearest neighbours": (KNeighborsClassifier(n_neighbors=min(15, max(1, n // 10))),),
        **kernel,
        "boosted trees": (
            HistGradientBoostingClassifier(max_iter=rounds, early_stopping=False, random_state=seed("boosted trees")),
        ),
        "random forest": (RandomForestClassifier(200, random_state=seed("random forest")),),
    }


def _regressors(n: int, seed: Callable[[str], int]) -> dict[str, tuple[Any, ...]]:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.dummy import DummyRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    kernel: dict[str, tuple[Any, ...]] = {"kernel SVM": (TransformedTargetRegressor(SVR(), transformer=StandardScaler()),)}
    if n > DIRECT_KERNEL_ROWS:
        kernel = {"kernel ridge": (Nystroem(n_components=300, random_state=seed("landmarks")), Ridge(alpha=0.1))}
    forest = RandomForestRegressor(100, min_samples_leaf=2, max_features=0.5, random_state=seed("random forest"))
    return {
        "median": (DummyRegressor(strategy="median"),),
        "linear regression": (Ridge(),),
        "nearest neighbours": (KNeighborsRegressor(n_neighbors=min(10, max(1, n // 10))),),
        **kernel,
        "boosted trees": (HistGradientBoostingRegressor(early_stopping=False, random_state=seed("boosted trees")),),
        "random forest": (forest,),
    }


def as_candidates(models: Any) -> list[Candidate]:
    """Candidates from what a user gives: candidates, a mapping of names to models, a list of models, or one model."""
    if isinstance(models, Mapping):
        return [Candidate(name=str(name), model=model) for name, model in models.items()]
    if not isinstance(models, Sequence):
        models = [models]
    named = [m if isinstance(m, Candidate) else Candidate(name=type(m).__name__, model=m) for m in models]
    names = [candidate.name for candidate in named]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two candidates are called {repeated[0]!r}: pass a mapping of names to models")
    if not named:
        raise ValueError("there are no candidates to select from")
    for candidate in named:
        if not (hasattr(candidate.model, "fit") and hasattr(candidate.model, "predict")):
            raise TypeError(
                f"candidate {candidate.name!r} must have fit and predict, {type(candidate.model).__name__} has not"
            )
    return named


def load_factory(text: str, option: str = "--model") -> list[Candidate]:
    """Candidates from ``package.module:factory``, a function that returns a model, a list or a mapping of them."""
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
