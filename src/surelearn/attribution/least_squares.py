"""Values as least squares: min_φ Σ_S q_s·[u(S) − u(∅) − φ(S)]² subject to Σφ_i = u(all) − u(∅).

With q_s = p_s + p_{s−1} the solution is the probabilistic value of the weights p, moved by the same
amount for every player so that it is efficient: φ_i^p + (u(all) − u(∅) − Σφ_j^p)/n. For Shapley's
weights q_s ∝ 1/C(n − 2, s − 1) and nothing is moved (course §20; L. M. Ruiz, F. Valenciano and J.
M. Zarzuelo, Games Econ. Behav. 24 (1998)). Sampled: S. M. Lundberg and S.-I. Lee, NeurIPS 2017
(KernelSHAP), coalitions drawn in proportion to q.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from surelearn.attribution.coalitions import CooperativeGame
from surelearn.attribution.intervals import MEASURED
from surelearn.attribution.sampling import DrawnCoalitions, SamplingPlan
from surelearn.attribution.weights import Weights
from surelearn.types import Array

_AT_ONCE = 4096


def size_shares(weights: Weights) -> Array:
    """How often coalitions of 1 … n − 1 players are drawn: ∝ C(n, s)·(p_s + p_{s−1})."""
    n = weights.players
    s = np.arange(1, n)
    # C(n, s) = C(n−1, s)·n/(n−s) = C(n−1, s−1)·n/s
    share = weights.sizes[1:] * n / (n - s) + weights.sizes[:-1] * n / s
    return share / share.sum()


def fitted(game: CooperativeGame, weights: Weights, plan: SamplingPlan) -> DrawnCoalitions:
    """Sampled least squares: draw, solve, look; intervals by the sandwich formula, pairs as one
    draw.
    """
    from sklearn.utils import check_random_state

    n, rng = game.n, check_random_state(plan.random_state)
    ends = game(np.array([np.zeros(n, bool), np.ones(n, bool)]))
    if n == 1:
        gain = (ends[1] - ends[0])[:, None]
        return DrawnCoalitions(
            gain, np.zeros_like(gain), ends[0], ends[1], "least squares, one player", MEASURED
        )
    shares = size_shares(weights)
    paired = plan.paired and np.allclose(shares, shares[::-1], rtol=1e-9)
    most, step = plan.budget // (1 + paired), max(8 * n, 32)
    if most < 2 * n:
        raise ValueError(
            f"budget must allow {2 * n * (1 + paired)} coalitions for {n} players, not"
            f" {plan.budget}"
        )
    looks = 1 if plan.tolerance is None else 1 + max(0, math.ceil(math.log2(most / step)))
    z = norm.isf(plan.delta / (2 * looks * n * ends.shape[1]))
    # draw as many coalitions again, ask for them, solve with all of them, and look
    masks, u, target = (
        np.zeros((0, n), bool),
        np.zeros((0, ends.shape[1])),
        most if plan.tolerance is None else min(step, most),
    )
    while True:
        fresh = _draw(shares, target - len(masks) // (1 + paired), paired, n, rng)
        masks, u = np.concatenate([masks, fresh]), np.concatenate([u, game(fresh)])
        values, error = _solve(masks, u - ends[0], ends[1] - ends[0], 1 + paired)
        enough = plan.tolerance is not None and (z * error).max() <= plan.tolerance
        if enough or target == most:
            break
        target = min(2 * target, most)
    drawn = f"{target:,} {'pairs of ' if paired else ''}coalitions"
    method = (
        f"least squares with the efficiency constraint, {drawn}, stopped by the"
        f" {'tolerance' if enough else 'budget'}"
    )
    return DrawnCoalitions(values, z * error, ends[0], ends[1], method, MEASURED)


def _draw(
    shares: Array, m: int, paired: bool, n: int, rng: np.random.RandomState
) -> npt.NDArray[np.bool_]:
    """Random proper coalitions; each is followed by its complement if paired."""
    size = 1 + rng.choice(n - 1, size=m, p=shares)
    masks = np.argsort(np.argsort(rng.random_sample((m, n)), axis=1), axis=1) < size[:, None]
    return np.stack([masks, ~masks], axis=1).reshape(-1, n) if paired else masks


def _solve(
    masks: npt.NDArray[np.bool_], u: Array, gain: Array, together: int
) -> tuple[Array, Array]:
    """Values and standard errors, (outputs, n): the last player's value is what the others
    leave of the gain.
    """
    # the last player's value is eliminated by the constraint, (draws, n − 1) and (draws, outputs)
    Z = masks[:, :-1].astype(float) - masks[:, -1:]
    target = u - masks[:, -1:] * gain
    gram = Z.T @ Z
    try:
        inverse = np.linalg.inv(gram)
    except np.linalg.LinAlgError:
        raise ValueError(
            "budget must allow more coalitions: those drawn do not tell the players apart"
        ) from None
    # residuals, weighed by what each draw adds to each player's value: the sandwich formula
    beta = inverse @ (Z.T @ target)  # (n − 1, outputs)
    left = target - Z @ beta
    pull = inverse @ Z.T  # (n − 1, draws)
    pull = np.vstack([pull, -pull.sum(axis=0)])
    error = np.empty((len(pull), u.shape[1]))
    for i, row in enumerate(pull):
        scores = (row[:, None] * left).reshape(-1, together, u.shape[1]).sum(axis=1)
        error[i] = np.sqrt((scores**2).sum(axis=0) * len(scores) / max(len(scores) - len(pull), 1))
    return np.vstack([beta, gain - beta.sum(axis=0)]).T, error.T
