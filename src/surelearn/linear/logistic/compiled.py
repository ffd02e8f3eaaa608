"""The logistic losses of `surelearn.losses` for compiled loops: `LOGISTIC` of one margin, and the log
loss of one row's scores. tests/test_losses.py holds them to it.
"""

from __future__ import annotations

import math

import numba

# sums in any order; NaN and infinity stay what they are
FAST = {"reassoc", "contract", "arcp", "nsz"}
_ANY_ORDER = {"reassoc", "contract"}  # which bounds on rounding allow


@numba.njit(cache=True, fastmath=_ANY_ORDER)
def logistic_loss(margin):
    """ln(1 + e^{−m}), without overflow."""
    return math.log1p(math.exp(-abs(margin))) + max(-margin, 0.0)


@numba.njit(cache=True, fastmath=_ANY_ORDER)
def logistic_slope(margin):
    """Its derivative, −1/(1 + e^m), from the same exponential."""
    e = math.exp(-abs(margin))
    return -(e if margin > 0 else 1.0) / (1.0 + e)


@numba.njit(cache=True, fastmath=FAST)
def gaps(z, target):
    """Scores become probabilities minus the target's indicator; returns the logarithmic loss."""
    top = z[0]
    for k in range(1, z.size):
        top = max(top, z[k])
    total = 0.0
    mine = z[target] - top
    for k in range(z.size):
        z[k] = math.exp(z[k] - top)
        total += z[k]
    for k in range(z.size):
        z[k] /= total
    z[target] -= 1.0
    return math.log(total) - mine
