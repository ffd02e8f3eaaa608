"""Exact interventional values of trees, without coalitions.

For an explained row x and a background row b, a leaf is reached by the coalition S iff S holds all
players U whose x leads there and none of the players V whose b does. Its share in the value of i is
leaf·Σ_k C(n − u − v, k)·p_{u−1+k} for i ∈ U and −leaf·Σ_k C(n − u − v, k)·p_{u+k} for i ∈ V, with u
= |U| and v = |V|; for Shapley's weights (u−1)!v!/(u+v)! and u!(v−1)!/(u+v)!. One walk over the
leaves that x and b can reach together gives all of it (S. M. Lundberg et al., Nature Machine
Intelligence 2 (2020), Algorithm 3, for Shapley's weights).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from surelearn.attribution.trees import TreeSum
from surelearn.attribution.weights import Weights
from surelearn.types import Array, Bools, Ints


def tree_parts(found: TreeSum, weights: Weights, keep: bool) -> Array:
    """Values (rows, background, players) against each background row; (rows, 1, players), their
    mean, unless ``keep``.
    """
    trees, rows, background = found.trees, len(found.X), len(found.background)
    parts = np.zeros((rows, background if keep else 1, weights.players))
    gains, losses = _leaf_weights(weights)
    depth = trees.depth
    for roots, nodes in trees.blocks(rows + background):
        x_left = trees.decisions.goes_left(found.X, nodes)  # (rows, nodes of the block)
        b_left = trees.decisions.goes_left(found.background, nodes)  # (background, nodes)
        _walker()(
            roots, trees.left, trees.right, found.player, trees.value, found.column, x_left, b_left,
            nodes.start, gains, losses, depth, parts,
        )  # fmt: skip
    return parts if keep else parts / background


def _leaf_weights(weights: Weights) -> tuple[Array, Array]:
    """What a leaf counts for a player of U and of V, by (u, v)."""
    n, p = weights.players, weights.p
    gains, losses = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1))
    for u in range(n + 1):
        for v in range(n + 1 - u):
            rest = n - u - v
            if u:
                gains[u, v] = sum(math.comb(rest, k) * p[u - 1 + k] for k in range(rest + 1))
            if v:
                losses[u, v] = sum(math.comb(rest, k) * p[u + k] for k in range(rest + 1))
    return gains, losses


def _walk(
    roots: Ints,
    left: Ints,
    right: Ints,
    player: Ints,
    value: Array,
    chosen: Ints,
    x_left: Bools,
    b_left: Bools,
    start: int,
    gains: Array,
    losses: Array,
    depth: int,
    parts: Array,
) -> None:
    """Add what the leaves of a block of trees count to ``parts`` (rows, background or 1, players).

    For each pair of rows and each tree, all leaves that the two reach together; ``x_left`` and
    ``b_left`` have a column for each node from ``start`` on.
    """
    n = parts.shape[2]
    # where the walk stands: sides of players, those with a side in their order, and nodes that wait,
    # each with how many players had a side there, and whose next one is
    side = np.zeros(n, np.int8)  # 1: in U, −1: in V
    path = np.zeros(n, np.int64)
    nodes = np.zeros(depth + 2, np.int64)
    lengths, players, sides = (
        np.zeros(depth + 2, np.int64),
        np.zeros(depth + 2, np.int64),
        np.zeros(depth + 2, np.int8),
    )
    for r in range(x_left.shape[0]):
        for b in range(b_left.shape[0]):
            out = parts[r, b if parts.shape[1] > 1 else 0]
            for root in roots:
                waiting, length, inside = 1, 0, 0
                nodes[0], lengths[0], players[0] = root, 0, -1
                while waiting > 0:
                    waiting -= 1
                    at = nodes[waiting]
                    # back to the players of that node, and on with the other side of its own
                    while length > lengths[waiting]:
                        length -= 1
                        inside -= side[path[length]] == 1
                        side[path[length]] = 0
                    if players[waiting] >= 0:
                        side[players[waiting]] = sides[waiting]
                        path[length] = players[waiting]
                        length += 1
                        inside += sides[waiting] == 1
                    # down to a leaf; where the two rows part, the background's way waits
                    while left[at] >= 0:
                        i = player[at]
                        ours, theirs = x_left[r, at - start], b_left[b, at - start]
                        if ours != theirs and side[i] == 0:
                            nodes[waiting], lengths[waiting] = (
                                left[at] if theirs else right[at],
                                length,
                            )
                            players[waiting], sides[waiting] = i, -1
                            waiting += 1
                            side[i] = 1
                            path[length] = i
                            length += 1
                            inside += 1
                        goes_left = theirs if side[i] == -1 else ours
                        at = left[at] if goes_left else right[at]
                    leaf = value[at, chosen[r]]
                    for k in range(length):
                        i = path[k]
                        if side[i] == 1:
                            out[i] += leaf * gains[inside, length - inside]
                        else:
                            out[i] -= leaf * losses[inside, length - inside]
                while length > 0:
                    length -= 1
                    side[path[length]] = 0


@functools.cache
def _walker() -> Callable[..., None]:
    import numba

    return numba.njit(cache=True, nogil=True)(_walk)
