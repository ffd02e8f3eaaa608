"""Candidates, from simple to complex, and how a user names their own."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from surelearn.types import Model

AVERAGE, STACK = "ensemble", "stacked ensemble"  # what others are put together as


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A model that takes part in selection; candidates are listed from simple to complex.

    ``settings`` says in words which of several settings it is, ``calibrated`` whether its
    probabilities were, on rows that it was not fitted on.
    """

    name: str
    model: Model
    settings: str = ""
    calibrated: bool = False


# one model, or models as a list or by name; a `Candidate` may stand for a model
Candidates: TypeAlias = Mapping[str, Model] | Sequence[Model] | Model


@dataclass(frozen=True, eq=False)
class Searched:
    """One candidate whose settings are searched: the best of its members stands for it.

    Where there are many members, all of them meet one fold, and only the better half the others:
    successive halving, Jamieson and Talwalkar (2016).

    Parameters
    ----------
    name : of the candidate
    members : candidates or nested families, one for each setting
    """

    name: str
    members: Sequence[Any]

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError(f"there are no settings of {self.name!r} to search")

    @property
    def model(self) -> Model:
        """That of the first setting."""
        return self.members[0].model


def candidate_names(models: Candidates) -> list[str]:
    """The names, if candidates are given by name: ``"all"``, ``"perceptron"`` or a list of them."""
    names = [models] if isinstance(models, str) else models
    return (
        list(names)
        if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
        else []
    )


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
