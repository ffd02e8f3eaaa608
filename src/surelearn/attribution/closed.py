"""Models whose values need no coalitions: linear and additive ones, where every gain of a
player is the same.
"""

from __future__ import annotations

import numpy as np

from surelearn.attribution.games import Interventional
from surelearn.attribution.outputs import Output
from surelearn.types import AnyArray, Array, TableRows

_CHECKED = 256  # mixed rows on which a form is compared with the model
_CLOSE = 1e-8


def linear_form(output: Output, X: TableRows, background: TableRows) -> tuple[Array, float] | None:
    """W (d,) or one for each explained row (rows, d), and c, with output = w·x + c; None if the
    model is not of this form.

    From ``coef_`` and ``intercept_``, and only if w·x + c is what the model says of the rows and of
    random mixtures of them.
    """
    model = output.model
    if (
        model is None
        or not hasattr(model, "coef_")
        or not hasattr(model, "intercept_")
        or hasattr(X, "columns")
    ):
        return None
    try:
        w, c = (
            np.atleast_2d(np.asarray(model.coef_, dtype=float)),
            np.atleast_1d(np.asarray(model.intercept_, dtype=float)),
        )
    except (TypeError, ValueError):  # sparse, or of a model with several layers
        return None
    if w.ndim != 2 or w.shape[1] != X.shape[1] or len(c) not in (1, len(w)):
        return None
    c = np.broadcast_to(c, len(w))
    rows = mixtures(np.asarray(X), np.asarray(background))
    said = output(rows)
    formed = output.sign * (rows @ w.T + c)
    if formed.shape[1] == 1:
        formed = formed[:, 0]
    if said.shape != formed.shape or not _agree(said, formed):
        return None
    if len(w) == 1:
        return output.sign * w[0], output.sign * c[0]
    column = 0 if output.column is None else output.column
    return output.sign * w[column], output.sign * c[column]


def linear_parts(w: Array, X: Array, background: Array, columns: list[list[int]]) -> Array:
    """w_j·(x_j − b_j) summed over each player's columns, (rows, background, players), for
    weights that sum to 1.
    """
    terms = np.broadcast_to(w, X.shape)[:, None, :] * (X[:, None, :] - background[None, :, :])
    return np.stack([terms[..., held].sum(axis=-1) for held in columns], axis=-1)


def linear_values(w: Array, X: Array, background: Array, columns: list[list[int]]) -> Array:
    """The mean of `linear_parts` over the background, without holding them."""
    terms = np.broadcast_to(w, X.shape) * (X - background.mean(axis=0))
    return np.stack([terms[:, held].sum(axis=1) for held in columns], axis=1)


def additive_values(game: Interventional) -> tuple[Array, Array, Array, float]:
    """Values of an additive output from n + 2 coalitions, u(∅), u(all), and how far random
    coalitions are from additive.

    If f(x) = Σ_i f_i(x_i) over players, every gain of i is u({i}) − u(∅), whatever the coalition.
    """
    n = game.mixer.players
    some = np.random.RandomState(0).random_sample((16, n)) < 0.5
    # nobody, all, each alone, and random coalitions
    masks = np.concatenate(
        [np.zeros((1, n), bool), np.ones((1, n), bool), np.eye(n, dtype=bool), some]
    )
    u = game(masks)  # (coalitions, rows)
    values = (u[2 : n + 2] - u[0]).T  # (rows, n)
    formed = u[0] + np.concatenate([masks[1:2], some]).astype(float) @ values.T
    apart = float(np.abs(np.concatenate([u[1:2], u[n + 2 :]]) - formed).max())
    return values, u[0], u[1], apart


def mixtures(X: AnyArray, background: AnyArray) -> Array:
    """Some of the rows, and random mixtures of them."""
    rng = np.random.RandomState(0)
    x, b = (
        X[rng.randint(len(X), size=_CHECKED)],
        background[rng.randint(len(background), size=_CHECKED)],
    )
    return np.concatenate([x, b, np.where(rng.random_sample(x.shape) < 0.5, x, b)])


def _agree(said: Array, formed: Array) -> bool:
    return bool(np.abs(said - formed).max() <= _CLOSE * max(1.0, np.abs(said).max()))
