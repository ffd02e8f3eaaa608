"""The rows that a model fitted elsewhere was fitted on, as its user gives them: checked, and
kept apart from the others.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtr

from surelearn.claim import Finding
from surelearn.data import hash_rows
from surelearn.lacking import Lacking
from surelearn.subject import Task, classes_of, subject_of
from surelearn.types import AnyArray, Labels, Model, RowsLike, TableRows

LEAST_CHANCE = 0.001  # copies in both that an honest draw gives so seldom are rows used twice
_SELDOM = 0.05  # copies that an honest draw gives so seldom are a warning
_DRAWS = (49, 150, 1800)  # more of them where no draw so far has as many copies
# standard deviations, and sets of equal rows, from which few draws say enough
_FAR, _MANY = 10.0, 1000
_AT_ONCE = 2_000_000  # counts drawn at once

SeenRows: TypeAlias = tuple[RowsLike, npt.ArrayLike]  # rows that a model was fitted on


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


def check_seen(
    seen: SeenRows, model: Model, X: TableRows, y: AnyArray, task: Task, classes: Labels, seed: int
) -> Seen:
    """The rows ``seen``, if they can be those that the model was fitted on, and X and y others."""
    if not isinstance(seen, tuple | list) or len(seen) != 2:
        raise ValueError(
            "seen must be a pair (X_seen, y_seen): the rows that the model was fitted on"
        )
    X = in_rows(X)
    rows, targets = _same_columns(in_rows(seen[0]), X), np.asarray(seen[1])
    if targets.ndim != 1 or len(targets) != rows.shape[0]:
        raise ValueError(
            f"seen must have one target per row: it has {rows.shape[0]:,} rows and targets of"
            f" {targets.shape}"
        )
    if len(targets) < 2:
        raise ValueError(
            f"seen must hold all rows that the model was fitted on, not {len(targets)}"
        )
    if pd.isna(targets).any():
        raise ValueError("seen must have a target in every row: leave out rows without one")
    if task == "classification":
        _same_classes(targets, model, classes)
    elif targets.dtype.kind not in "iufb" or not np.isfinite(targets).all():
        raise ValueError("seen must have finite numbers as targets, as the model predicts numbers")
    return Seen(rows, targets, unfitted_of(model, seed), _copies(rows, targets, X, y))


def unfitted_of(model: Model, seed: int) -> Any:
    """The model as it was before it was fitted, its open seeds set; None where nobody can tell:
    a function, a module.
    """
    unfitted = subject_of(model).refit
    return None if isinstance(unfitted, Lacking) else with_seeds(unfitted, seed)


def with_seeds(model: Model, seed: int) -> Any:
    """The model, or a copy whose every ``random_state`` that was left open is the seed: refits
    come out the same again.
    """
    if not hasattr(model, "get_params"):
        return model
    unset = [name for name, value in model.get_params().items() if value is None]
    names = [name for name in unset if name.rpartition("__")[2] == "random_state"]
    return copy.deepcopy(model).set_params(**dict.fromkeys(names, seed % 2**32)) if names else model


def stack(first: TableRows, second: TableRows) -> Any:
    """Rows of one set and then those of another with the same columns."""
    one: Any = first
    other: Any = second
    if hasattr(one, "vstack"):  # polars
        return one.vstack(other)
    if hasattr(one, "iloc"):
        one, other = one.copy(deep=False), other.copy(deep=False)
        for name in one.columns:
            kinds = one[name].dtype, other[name].dtype
            if (
                all(isinstance(kind, pd.CategoricalDtype) for kind in kinds)
                and kinds[0] != kinds[1]
            ):
                union = pd.CategoricalDtype(
                    kinds[0].categories.union(kinds[1].categories, sort=False)
                )
                one[name], other[name] = one[name].astype(union), other[name].astype(union)
        return pd.concat([one, other], ignore_index=True)
    if hasattr(one, "tocsr"):
        from scipy.sparse import vstack

        return vstack([one, other]).tocsr()
    return np.concatenate([np.asarray(first), np.asarray(second)])


def in_rows(X: RowsLike) -> Any:
    """The rows; of a sparse matrix in a form that rows can be taken from."""
    table: Any = X
    return table.tocsr() if hasattr(table, "tocsr") else table


def hash_arrays(X: TableRows, y: AnyArray) -> Any:
    """Row hashes of a fitted model's rows, whatever they came in."""
    return _hashed(columns_of(X, y, "X"))


def columns_of(X: TableRows, y: AnyArray, which: str) -> list[Any]:
    """Each column as an array, the target last."""
    if X.shape[0] != len(y):
        raise ValueError(
            f"X and y must have the same length: X has {X.shape[0]:,} rows, y has {len(y):,}"
        )
    table: Any = X
    if hasattr(table, "columns"):
        _refuse_twins(table, which)
        return [*(np.asarray(table[name]) for name in table.columns), np.asarray(y)]
    array = np.asarray(table.toarray() if hasattr(table, "toarray") else table)
    return [*array.reshape(len(array), -1).T, np.asarray(y)]


def _refuse_twins(X: pd.DataFrame, which: str) -> None:
    names = pd.Index(list(X.columns))
    if names.has_duplicates:
        twin = names[names.duplicated()][0]
        raise ValueError(
            f"{which} has two columns named {twin!r}: give every column a name of its own"
        )


def _hashed(columns: list[Any]) -> Any:
    return hash_rows(pd.DataFrame(dict(enumerate(columns))))


def _alike(one: AnyArray, other: AnyArray) -> tuple[Any, Any]:
    """Two columns in one type of number, the coarser of both, where both hold numbers; others
    as they are.
    """
    if "O" in (one.dtype.kind, other.dtype.kind):
        if all(pd.api.types.infer_dtype(part, skipna=True) == "string" for part in (one, other)):
            return one, other
        numbers = _in_numbers(one), _in_numbers(other)
        if numbers[0] is None or numbers[1] is None:
            return one, other
        one, other = numbers
    kinds = one.dtype, other.dtype
    floats = [kind for kind in kinds if kind.kind == "f"]
    if not floats or not all(kind.kind in "fiub" for kind in kinds):
        return one, other
    coarser = min(floats, key=lambda kind: kind.itemsize)
    with np.errstate(over="ignore"):
        return one.astype(coarser), other.astype(coarser)


def _in_numbers(values: AnyArray) -> Any:
    """The values as numbers, missing ones as NaN; None where one is something else."""
    if values.dtype.kind != "O":
        return values if values.dtype.kind in "fiub" else None
    missing = pd.isna(values)
    numbers = np.full(len(values), np.nan)
    try:
        numbers[~missing] = np.asarray(pd.to_numeric(values[~missing]), dtype=float)
    except (ValueError, TypeError):
        return None
    return numbers


def _same_columns(seen: RowsLike, like: TableRows) -> Any:
    """The rows seen with the columns of X, in their order."""
    given: Any = seen if hasattr(seen, "shape") else np.asarray(seen)
    X: Any = like
    if (named := hasattr(X, "columns")) != hasattr(given, "columns") or hasattr(
        X, "tocsr"
    ) != hasattr(given, "tocsr"):
        raise ValueError(
            f"seen must come as X does: X is {type(X).__name__}, seen is {type(given).__name__}"
        )
    if named:
        for table, which in ((given, "seen"), (X, "X")):
            _refuse_twins(table, which)
        ours, theirs = list(given.columns), list(X.columns)
        for one, other, names, lacking in (
            ("X", "seen", theirs, ours),
            ("seen", "X", ours, theirs),
        ):
            if missing := [name for name in names if name not in lacking]:
                raise ValueError(
                    f"seen must have the columns of X: {one} has {missing[0]!r}, {other} has not"
                )
        return given if ours == theirs else given[theirs]
    if len(given.shape) != len(X.shape) or tuple(given.shape[1:]) != tuple(X.shape[1:]):
        raise ValueError(
            f"seen must have the columns of X: it has the shape {tuple(given.shape)}, X"
            f" {tuple(X.shape)}"
        )
    return given


def _same_classes(targets: AnyArray, model: Model, classes: Labels) -> None:
    known = classes_of(model, classes)
    if known is None:
        return
    found = pd.unique(targets).tolist()
    if unknown := [label for label in found if label not in known]:
        raise ValueError(
            f"seen has the label {unknown[0]!r}, which the model does not know: pass what it was"
            " fitted on"
        )
    own = classes_of(model) or ()
    if missing := [label for label in own if label not in found]:
        raise ValueError(
            f"seen has no row of class {missing[0]!r}, which the model knows: pass all rows it was"
            " fitted on"
        )


def _copies(seen: TableRows, targets: AnyArray, X: TableRows, y: AnyArray) -> tuple[Finding, ...]:
    """Certify rows that are equal to a row seen: a finding where rows repeat anyway, refused where
    rows were used twice.

    Where rows repeat, an honest draw puts copies on both sides, and certify rows without them would
    not be a uniform draw. So the count is compared with that of random draws from all rows
    together.
    """
    pairs = zip(columns_of(seen, targets, "seen"), columns_of(X, y, "X"), strict=True)
    first, second = (
        _hashed(list(columns)) for columns in zip(*(_alike(*pair) for pair in pairs), strict=True)
    )
    both = int(np.isin(second, first).sum())
    if not both:
        return ()
    chance = _chance(np.concatenate([first, second]), len(second), both)
    if chance < LEAST_CHANCE:
        raise ValueError(
            f"{both:,} of the {len(second):,} rows of X and y are in seen as well, more than are"
            " equal by chance: rows that the model was fitted on certify nothing, so pass others"
        )
    often = "no more than a random draw from rows that repeat would give."
    if seldom := chance < _SELDOM:
        often = (
            "more than a random draw from rows that repeat gives but seldom: see that none was used"
            " twice."
        )
    equal = f"{'is' if both == 1 else 'are'} equal to a row that the model was fitted on"
    return (
        Finding(
            code="SL104",
            text=f"{both:,} of the {len(second):,} rows {equal}, {often}",
            severity="warning" if seldom else "notice",
            numbers={"rows": both, "share": both / len(second), "chance": chance},
        ),
    )


def _chance(hashes: AnyArray, certified: int, both: int) -> float:
    """How often a random draw of the certify rows shares at least as many with the others."""
    sizes = np.unique(hashes, return_counts=True)[1]
    repeated, alone = sizes[sizes > 1], int((sizes == 1).sum())
    generator = np.random.default_rng(0)
    counts = np.empty(0, dtype=int)
    step = max(1, _AT_ONCE // (len(repeated) + 1))
    for more in _DRAWS:
        drawn = [min(step, more - done) for done in range(0, more, step)]
        counts = np.concatenate(
            [counts, *(_shared(generator, repeated, alone, certified, size) for size in drawn)]
        )
        if len(counts) > _DRAWS[0] and counts.max() >= both:
            break
        far = (both - counts.mean()) / max(float(counts.std()), 0.5)
        # a sum of so many is near a normal one
        if far > _FAR or (len(counts) > _DRAWS[0] and len(repeated) >= _MANY):
            return float(ndtr(-far))
    return (1 + int((counts >= both).sum())) / (1 + len(counts))


def _shared(
    generator: np.random.Generator, repeated: AnyArray, alone: int, certified: int, size: int
) -> Any:
    """How many rows of each draw are equal to a row that was not drawn."""
    held = generator.multivariate_hypergeometric(
        [*repeated, alone], certified, size=size, method="marginals"
    )[:, :-1]
    return (held * (held < repeated)).sum(axis=1)
