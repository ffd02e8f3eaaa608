"""Pipelines that prepare columns one by one: rows are prepared once, and the game is played on
prepared columns.

A one-hot column changes only with the column it came from. Where every prepared column belongs to
one column in this way, mixing prepared rows is the same as preparing mixed rows, and all prepared
columns of a column play as one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelearn.attribution.mixing import interleaved
from surelearn.subject.registry import Preparation, described
from surelearn.types import AnyArray, Bools, Ints, Model, RowsLike, TableRows

_CHECKED = 256  # mixed rows that are prepared, to compare
_CELLS = 50_000_000


def prepared(
    model: Model,
    X: TableRows,
    background: TableRows,
    columns: list[list[int]],
    *,
    believed: bool = False,
) -> tuple[Model, TableRows, TableRows, list[list[int]]] | None:
    """The pipeline's last step, both tables as it sees them, and the players' columns there;
    None if columns are mixed.

    ``believed``: steps that say that they take each number alone, as scaling does, are believed, where
    trying it column by column would take long.
    """
    if not isinstance(getattr(model, "steps", None), list) or len(model.steps) < 2:
        return None
    before = model[:-1]
    try:
        made, made_background = before.transform(X), before.transform(background)
        if made.shape[1] * (len(X) + len(background) + 3 * _CHECKED) > _CELLS:
            return None
        alone = believed and all(_takes_alone(step) for _, step in before.steps)
        owner = np.arange(X.shape[1]) if alone else _owners(before, X, background)
    except Exception:  # the model itself will be asked, and say what is wrong
        return None
    if owner is None:
        return None
    new = [np.flatnonzero(np.isin(owner, held)).tolist() for held in columns]
    return model[-1], _dense(made), _dense(made_background), new


def _takes_alone(step: Model) -> bool:
    found = described(step)
    return isinstance(found, Preparation) and found.columnwise


def _owners(before: Model, X: TableRows, background: TableRows) -> Ints | None:
    """For each prepared column the column it comes from, −1 where it never changes; None if one
    comes from two.
    """
    rng: np.random.RandomState = np.random.RandomState(0)
    rows = max(len(X), len(background), _CHECKED)
    x, b = np.arange(rows) % len(X), rng.permutation(np.arange(rows) % len(background))
    # whole rows of either table, prepared; then each column alone from the background
    none = np.zeros((rows, X.shape[1]), dtype=bool)
    ours, theirs = (_values(before, X, background, x, b, where) for where in (~none, none))
    owner = np.full(ours.shape[1], -1)  # (prepared columns,)
    for j in range(X.shape[1]):
        where = ~none
        where[:, j] = False
        changed = ~_equal(_values(before, X, background, x, b, where), ours).all(axis=0)
        if (owner[changed] >= 0).any():
            return None
        owner[changed] = j
    # random mixtures must be prepared as the prepared rows mix
    some = rng.random_sample(none.shape) < 0.5
    formed = np.where(some[:, np.maximum(owner, 0)], ours, theirs)  # (rows, prepared columns)
    both = np.concatenate([ours, theirs])
    constant = np.asarray(_equal(both, both[:1]).all(axis=0))  # (prepared columns,)
    if (
        not constant[owner < 0].all()
        or not _equal(_values(before, X, background, x, b, some), formed).all()
    ):
        return None
    return owner


def _values(
    before: Model, X: TableRows, background: TableRows, x: Ints, b: Ints, where: Bools
) -> AnyArray:
    """Prepared rows with the columns ``where`` from X, the others from the background."""
    return _numbers(before.transform(interleaved(X, background, x, b, where)))


def _numbers(made: RowsLike) -> AnyArray:
    """Prepared rows as numbers; as objects where a column of words was passed on."""
    made = np.asarray(_dense(made))
    return made.astype(object) if made.dtype.kind in "OUSTMm" else made.astype(float)


def _equal(one: AnyArray, two: AnyArray) -> Bools:
    if one.dtype != object:
        return np.isclose(one, two, rtol=1e-9, atol=1e-12, equal_nan=True)
    return np.stack([_equal_column(a, b) for a, b in zip(one.T, two.T, strict=True)], axis=1)


def _equal_column(one: AnyArray, two: AnyArray) -> Bools:
    """Words by themselves, numbers as numbers; what is missing equals what is missing."""
    try:
        return _equal(one.astype(float), two.astype(float))
    except (TypeError, ValueError):
        import pandas as pd

        return np.where(
            pd.isna(one) | pd.isna(two), pd.isna(one) & pd.isna(two), one == two
        ).astype(bool)


def _dense(made: RowsLike) -> TableRows:
    table: Any = made
    return table.toarray() if hasattr(table, "toarray") else table
