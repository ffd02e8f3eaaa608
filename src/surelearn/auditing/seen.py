"""The rows that a model fitted elsewhere was fitted on, as its user gives them: checked, and kept apart from the others."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from surelearn.adapters import Task, classes_of
from surelearn.claim import Finding
from surelearn.data import hash_rows

LEAST_CHANCE = 0.05  # copies in both that an honest draw gives so seldom are rows used twice
_DRAWS = 199


@dataclass(frozen=True, eq=False)
class Seen:
    """Rows that were fitted on.

    Attributes
    ----------
    X, y : the rows
    unfitted : the model as it was before, to fit again; None where that is not known
    findings : copies among the certify rows, if there are as many as chance gives
    """

    X: Any
    y: Any
    unfitted: Any
    findings: tuple[Finding, ...]

    @property
    def majority(self) -> Any:
        """The most frequent label."""
        labels, counts = np.unique(self.y, return_counts=True)
        return labels[counts.argmax()].item()


def check_seen(seen: Any, model: Any, X: Any, y: Any, task: Task, classes: Any, seed: int) -> Seen:
    """The rows ``seen``, if they can be those that the model was fitted on, and X and y others."""
    if not isinstance(seen, tuple | list) or len(seen) != 2:
        raise ValueError("seen must be a pair (X_seen, y_seen): the rows that the model was fitted on")
    rows, targets = _same_columns(seen[0], X), np.asarray(seen[1])
    if targets.ndim != 1 or len(targets) != rows.shape[0]:
        raise ValueError(f"seen must have one target a row: it has {rows.shape[0]:,} rows and targets of {targets.shape}")
    if len(targets) < 2:
        raise ValueError(f"seen must hold all rows that the model was fitted on, not {len(targets)}")
    if pd.isna(targets).any():
        raise ValueError("seen must have a target in every row: leave out rows without one")
    if task == "classification":
        _same_classes(targets, model, classes)
    elif targets.dtype.kind not in "iufb" or not np.isfinite(targets).all():
        raise ValueError("seen must have finite numbers as targets, as the model predicts numbers")
    return Seen(rows, targets, unfitted_of(model, seed), _copies(rows, targets, X, y))


def unfitted_of(model: Any, seed: int) -> Any:
    """The model as it was before it was fitted, its open seeds set; None where nobody can tell: a function, a module."""
    from sklearn.base import clone
    from sklearn.frozen import FrozenEstimator

    if not (hasattr(model, "fit") and hasattr(model, "get_params")):
        return None
    try:
        frozen = [part for part in (model, *model.get_params().values()) if isinstance(part, FrozenEstimator)]
        return None if frozen else with_seeds(clone(model), seed)
    except Exception:  # an estimator that does not keep scikit-learn's contract
        return None


def with_seeds(model: Any, seed: int) -> Any:
    """The model, or a copy whose every ``random_state`` that was left open is the seed: refits come out the same again."""
    if not hasattr(model, "get_params"):
        return model
    unset = [name for name, value in model.get_params().items() if value is None]
    names = [name for name in unset if name.rpartition("__")[2] == "random_state"]
    return copy.deepcopy(model).set_params(**dict.fromkeys(names, seed % 2**32)) if names else model


def stack(first: Any, second: Any) -> Any:
    """Rows of one set and then those of another with the same columns."""
    if hasattr(first, "vstack"):  # polars
        return first.vstack(second)
    if hasattr(first, "iloc"):
        first, second = first.copy(deep=False), second.copy(deep=False)
        for name in first.columns:
            kinds = first[name].dtype, second[name].dtype
            if all(isinstance(kind, pd.CategoricalDtype) for kind in kinds) and kinds[0] != kinds[1]:
                union = pd.CategoricalDtype(kinds[0].categories.union(kinds[1].categories, sort=False))
                first[name], second[name] = first[name].astype(union), second[name].astype(union)
        return pd.concat([first, second], ignore_index=True)
    if hasattr(first, "tocsr"):
        from scipy.sparse import vstack

        return vstack([first, second]).tocsr()
    return np.concatenate([np.asarray(first), np.asarray(second)])


def hash_arrays(X: Any, y: Any) -> Any:
    """Row hashes of a fitted model's rows, whatever they came in."""
    if X.shape[0] != len(y):
        raise ValueError(f"X and y must have the same length: X has {X.shape[0]:,} rows, y has {len(y):,}")
    if hasattr(X, "columns"):
        frame = pd.DataFrame({str(name): np.asarray(X[name]) for name in X.columns})
    else:
        array = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        frame = pd.DataFrame(array.reshape(len(array), -1) if array.ndim > 2 else array).rename(columns=str)
    return hash_rows(frame.assign(**{"the target": y}))


def _same_columns(seen: Any, X: Any) -> Any:
    """The rows seen with the columns of X, in their order."""
    seen = seen if hasattr(seen, "shape") else np.asarray(seen)
    if (named := hasattr(X, "columns")) != hasattr(seen, "columns") or hasattr(X, "tocsr") != hasattr(seen, "tocsr"):
        raise ValueError(f"seen must come as X does: X is {type(X).__name__}, seen is {type(seen).__name__}")
    if named:
        ours, theirs = list(seen.columns), list(X.columns)
        for one, other, names, lacking in (("X", "seen", theirs, ours), ("seen", "X", ours, theirs)):
            if missing := [name for name in names if name not in lacking]:
                raise ValueError(f"seen must have the columns of X: {one} has {missing[0]!r}, {other} has not")
        return seen if ours == theirs else seen[theirs]
    if len(seen.shape) != len(X.shape) or tuple(seen.shape[1:]) != tuple(X.shape[1:]):
        raise ValueError(f"seen must have the columns of X: it has the shape {tuple(seen.shape)}, X {tuple(X.shape)}")
    return seen


def _same_classes(targets: Any, model: Any, classes: Any) -> None:
    known = classes_of(model, classes)
    if known is None:
        return
    found = pd.unique(targets).tolist()
    if unknown := [label for label in found if label not in known]:
        raise ValueError(f"seen has the label {unknown[0]!r}, which the model does not know: pass what it was fitted on")
    own = classes_of(model) or ()
    if missing := [label for label in own if label not in found]:
        raise ValueError(f"seen has no row of class {missing[0]!r}, which the model knows: pass all rows it was fitted on")


def _copies(seen: Any, targets: Any, X: Any, y: Any) -> tuple[Finding, ...]:
    """Certify rows that are equal to a row seen: a finding where rows repeat anyway, refused where rows were used twice.

    Where rows repeat, an honest draw puts copies on both sides, and certify rows without them would not be a uniform draw.
    So the count is compared with that of random draws from all rows together.
    """
    if not hasattr(X, "columns") and {np.asarray(part[:0]).dtype.name for part in (seen, X)} == {"float32", "float64"}:
        seen, X = (np.asarray(part).astype(np.float32) for part in (seen, X))
    first, second = hash_arrays(seen, targets), hash_arrays(X, y)
    both = int(np.isin(second, first).sum())
    if not both:
        return ()
    chance = _chance(np.concatenate([first, second]), len(second), both)
    if chance < LEAST_CHANCE:
        raise ValueError(
            f"{both:,} of the {len(second):,} rows of X and y are in seen as well, more than are equal by chance: rows that "
            "the model was fitted on certify nothing, so pass others"
        )
    text = (
        f"{both:,} of the {len(second):,} rows {'is' if both == 1 else 'are'} equal to a row that the model was fitted on, "
        "no more than a random draw from rows that repeat would give."
    )
    numbers = {"rows": both, "share": both / len(second), "chance": chance}
    return (Finding(code="SL104", text=text, severity="notice", numbers=numbers),)


def _chance(hashes: Any, certified: int, both: int) -> float:
    """How often a random draw of the certify rows shares at least as many with the others."""
    codes, sizes = np.unique(hashes, return_inverse=True, return_counts=True)[1:]
    repeated = codes[sizes[codes] > 1]
    generator = np.random.default_rng(0)
    held = generator.hypergeometric(certified, len(hashes) - certified, len(repeated), size=_DRAWS)
    as_many = 0
    for count in held:
        order = generator.permutation(repeated)
        as_many += int(np.isin(order[:count], order[count:]).sum() >= both)
    return (1 + as_many) / (1 + _DRAWS)
