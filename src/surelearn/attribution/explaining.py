"""explain(): the values of columns, or groups of columns, in what a model says of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack, cast

import numpy as np

from surelearn.attribution.closed import additive_values, linear_form, linear_parts, linear_values
from surelearn.attribution.coalitions import MOST
from surelearn.attribution.games import Interventional, LinearGaussian
from surelearn.attribution.mixing import Groups, Mixer, players_of
from surelearn.attribution.outputs import Output, OutputKind, output_of
from surelearn.attribution.pipelines import prepared
from surelearn.attribution.product_kernels import gaussians_of, nodes_of, product_parts
from surelearn.attribution.result import Attribution
from surelearn.attribution.sampling import SamplingOptions, SamplingPlan
from surelearn.attribution.sums import members_of, summed
from surelearn.attribution.tree_paths import tree_parts
from surelearn.attribution.trees import trees_of
from surelearn.attribution.values import value_of
from surelearn.attribution.weights import Kind, Weights, weights_of
from surelearn.subject import Subject
from surelearn.types import Array, Label, Model, RowsLike, TableRows

METHODS = ("auto", "closed form", "additive", "exact", "sampling", "least squares")
AFFORDABLE = 50_000_000  # predictions that "auto" enumerates
_KEPT = 5_000_000  # numbers kept in parts


def explain(
    model: Model,
    X: RowsLike,
    background: RowsLike,
    *,
    output: OutputKind = "auto",
    target: Label = None,
    value: Kind = "shapley",
    game: str = "interventional",
    groups: Groups = None,
    **options: Unpack[SamplingOptions],
) -> Attribution:
    """Values of the columns in the model's output for each row of X, for a stated game.

    Parameters
    ----------
    model : with predict, a torch module, a function of rows, or a `Subject`
    X : rows to explain, an array or a data frame (rows, columns)
    background : rows that stand for "not known", like X
    output : "probability", "score" (raw), "value", a function of rows, or "auto", the first that
        the model has
    target : a class's label; None: the second of two classes, else the class predicted for each row
    value : "shapley", "banzhaf", ("beta", alpha, beta), or weights p_0 … p_{n−1}
    game : "interventional" or, for linear outputs, "conditional" (Gaussian columns)
    groups : {name: columns} that play as one, such as the columns of one category
    options : of `SamplingOptions`; ``names`` are the columns'. Methods: "closed form" (linear outputs, sums
        of trees or of Gaussian kernels), "additive" (said so by you, and checked), "exact" (every
        coalition once), "sampling", "least squares", and "auto": the first of closed form, exact
        (up to 50 million predictions) and sampling that can be had

    Examples
    --------
    >>> X = np.array([[1.0, 1.0]])
    >>> made = explain(lambda X: np.maximum(X[:, 0], X[:, 1]), X, [[0.0, 0.0]])
    >>> made.values.tolist()
    [[0.5, 0.5]]
    """
    method = options.pop("method", "auto")
    if method not in METHODS:
        raise ValueError(f"method must be {', '.join(map(repr, METHODS))}, not {method!r}")
    if game not in ("interventional", "conditional"):
        raise ValueError(f"game must be 'interventional' or 'conditional', not {game!r}")
    model = model.model if isinstance(model, Subject) else model
    whole = _whole(X, background)
    X, background = _checked(X, background)
    columns, names = players_of(X, groups, options.pop("names", None))
    weights = weights_of(value, len(columns))
    if not callable(output) and (through := prepared(model, X, background, columns)):
        model, X, background, columns = through
        whole = None
    made = output_of(model, X if whole is None else np.asarray(X).astype(whole), output, target)
    if whole is not None:
        made = replace(made, given=lambda rows: np.asarray(rows).astype(whole))
    if (
        game == "interventional"
        and method in ("auto", "closed form")
        and made.kind == "value"
        and (members := members_of(made.model))
    ):
        held = {str(i): own for i, own in enumerate(columns)}
        again: Any = {"value": value, "groups": held, "method": "closed form"}
        found = summed(members, lambda one: explain(one, X, background, **again), made(X))
        if found is not None:
            return replace(found, names=names)
    made, X, background = _as_arrays(made, X, background)
    plan = SamplingPlan(**{key: options[key] for key in options if key != "masks"})
    if game == "conditional":
        return _conditional(made, X, background, columns, names, weights, method, plan)
    if method in ("auto", "closed form") and (
        found := _closed(made, X, background, columns, names, weights)
    ):
        return found
    if method == "closed form":
        raise ValueError(
            f"no closed form is exact for the {made.name}: use method='exact' or 'sampling'"
        )
    played = Interventional(made, Mixer(X, background, columns))
    if method == "additive":
        return _additive(played, names, weights)
    rows = 2.0 ** len(columns) * len(X) * len(background)
    if method == "exact" or (method == "auto" and rows <= AFFORDABLE):
        return _enumerated(played, names, weights)
    return _drawn(
        played,
        played.name,
        len(X),
        weights,
        "sampling" if method == "auto" else method,
        plan,
        names,
    )


def _closed(
    output: Output,
    X: TableRows,
    background: TableRows,
    columns: list[list[int]],
    names: tuple[str, ...],
    weights: Weights,
) -> Attribution | None:
    keep = len(X) * len(background) * len(columns) <= _KEPT
    game = Interventional(output, Mixer(X, background, columns))
    if abs(weights.sizes.sum() - 1) < 1e-9 and (form := linear_form(output, X, background)):
        rows, others = np.asarray(X), np.asarray(background)
        parts = linear_parts(form[0], rows, others, columns) if keep else None
        values = (
            parts.mean(axis=1)
            if parts is not None
            else linear_values(form[0], rows, others, columns)
        )
        method = "closed form of a linear output, exact for this game"
    elif trees := trees_of(output, X, background, columns):
        found = output.sign * tree_parts(trees, weights, keep)
        values, parts = found.mean(axis=1), found if keep else None
        method = "paths of the trees, exact for this game"
    elif (machine := gaussians_of(output, X, background)) and (nodes := nodes_of(weights)):
        found = product_parts(machine, columns, nodes, keep)
        values, parts = found.mean(axis=1), found if keep else None
        method = "products over the columns of a Gaussian kernel, exact for this game"
    else:
        return None
    return _attribution(game, names, weights, values, parts, *game.ends(), method, calls=0)


def _enumerated(game: Interventional, names: tuple[str, ...], weights: Weights) -> Attribution:
    n = len(names)
    if n > MOST:
        raise ValueError(
            f"{n} players have 2^{n} coalitions: use method='sampling' or 'least squares', or group"
            " columns"
        )
    keep = game.mixer.rows * game.mixer.background * n <= _KEPT
    values, parts, empty, full = game.enumerate(weights, keep)
    return _attribution(
        game, names, weights, values, parts, empty, full, "exact, every coalition once", calls=2**n
    )


def _additive(game: Interventional, names: tuple[str, ...], weights: Weights) -> Attribution:
    values, empty, full, apart = additive_values(game)
    if apart > 1e-6 * max(1.0, float(np.abs(values).max())):
        raise ValueError(
            f"the output is not additive: random coalitions are off by up to {apart:.3g}; use"
            " method='exact'"
        )
    values = values * weights.sizes.sum()
    method = f"additive, as stated; random coalitions agree to {apart:.1e}"
    return _attribution(
        game, names, weights, values, None, empty, full, method, calls=len(names) + 18
    )


def _drawn(
    game: Interventional | LinearGaussian,
    name: str,
    rows: int,
    weights: Weights,
    method: str,
    plan: SamplingPlan,
    names: tuple[str, ...],
) -> Attribution:
    found = value_of(game, weights, method=method, names=names, masks=True, **vars(plan))
    shaped = {
        key: np.reshape(getattr(found, key), (rows, len(names)))
        for key in ("values", "low", "high")
        if _has(found, key)
    }
    ends = {"empty": np.reshape(found.empty, rows), "full": np.reshape(found.full, rows)}
    kept = {key: getattr(found, key) for key in ("value", "method", "interval", "delta", "calls")}
    return Attribution(
        names=names, game=name, model_rows=getattr(game, "model_rows", 0), **shaped, **ends, **kept
    )


def _conditional(
    output: Output,
    X: TableRows,
    background: TableRows,
    columns: list[list[int]],
    names: tuple[str, ...],
    weights: Weights,
    method: str,
    plan: SamplingPlan,
) -> Attribution:
    form = linear_form(output, X, background)
    if form is None:
        raise ValueError(
            "game='conditional' needs E[f(X) | X_S], which is known here for linear outputs of"
            f" arrays only (Gaussian columns), not for the {output.name}: use game='interventional'"
        )
    if len(background) < 2:
        raise ValueError(
            "game='conditional' needs a background of at least two rows: one has no covariance"
        )
    rows, others = np.asarray(X), np.asarray(background)
    game = LinearGaussian(form[0], form[1], rows, others, columns, output.name)
    asked = method if method in ("exact", "sampling", "least squares") else "auto"
    return _drawn(game, game.name, len(X), weights, asked, plan, names)


def _attribution(
    game: Interventional,
    names: tuple[str, ...],
    weights: Weights,
    values: Array,
    parts: Array | None,
    empty: Array,
    full: Array,
    method: str,
    calls: int,
) -> Attribution:
    one = game.mixer.background == 1
    note = (
        "One background row: the values are against that row alone, and how far they depend on it"
        " cannot be seen."
    )
    return Attribution(
        values=values,
        names=names,
        value=weights.name,
        game=game.name,
        method=method,
        empty=empty,
        full=full,
        calls=calls,
        model_rows=game.model_rows,
        notes=(note,) if one else (),
        parts=parts,
    )


def _as_arrays(
    output: Output, X: TableRows, background: TableRows
) -> tuple[Output, TableRows, TableRows]:
    """Data frames of numbers as arrays, named again when the model is asked."""
    if not hasattr(X, "columns") or any(
        kind.kind not in "fiu" for kind in map(np.dtype, _kinds(X, background))
    ):
        return output, X, background
    import pandas as pd

    frame, others = cast("Any", X), cast("Any", background)
    names = frame.columns
    named = replace(output, given=lambda rows: pd.DataFrame(rows, columns=names, copy=False))
    return named, frame.to_numpy(dtype=float), others.to_numpy(dtype=float)


def _kinds(*frames: TableRows) -> list[np.dtype[Any]]:
    """NumPy's types of all columns; "object" for those that pandas alone knows."""
    return [
        kind if isinstance(kind, np.dtype) else np.dtype(object)
        for frame in cast("tuple[Any, ...]", frames)
        for kind in frame.dtypes
    ]


def _whole(X: RowsLike, background: RowsLike) -> np.dtype[Any] | None:
    """The type in which a model is asked whose rows are arrays of whole numbers, such as
    tokens: their own, not floats.
    """
    if hasattr(X, "columns") or hasattr(background, "columns"):
        return None
    kinds = np.asarray(X).dtype, np.asarray(background).dtype
    return (
        np.result_type(*kinds)
        if all(kind.kind in "iu" for kind in kinds) and kinds[0].kind == kinds[1].kind
        else None
    )


def _checked(given: RowsLike, others: RowsLike) -> tuple[TableRows, TableRows]:
    X, background = cast("Any", given), cast("Any", others)
    if hasattr(X, "columns") != hasattr(background, "columns"):
        raise TypeError("X and background must both be arrays or both be data frames")
    if not hasattr(X, "columns"):
        X, background = np.asarray(X), np.asarray(background)
        if X.dtype.kind in "iub" and background.dtype.kind in "fiub":
            X = X.astype(float)
        if background.dtype.kind in "iub":
            background = background.astype(float)
    elif list(X.columns) != list(background.columns):
        raise ValueError("X and background must have the same columns in the same order")
    for name, rows in (("X", X), ("background", background)):
        if rows.ndim != 2 or len(rows) == 0:
            raise ValueError(
                f"{name} must be rows and columns, at least one row, not shape {rows.shape}"
            )
    if X.shape[1] != background.shape[1]:
        raise ValueError(
            f"X and background must have the same columns, not {X.shape[1]} and"
            f" {background.shape[1]}"
        )
    return X, background


def _has(found: Attribution, key: str) -> bool:
    return getattr(found, key) is not None
