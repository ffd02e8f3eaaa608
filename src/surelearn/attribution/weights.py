"""The weights p_s that make a probabilistic value (course, Definition 20.3): φ_i = Σ_{S∌i}
p_|S|·[u(S ∪ i) − u(S)].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.stats import betabinom, binom

from surelearn.types import AnyArray, Array, Bools

# "shapley", "banzhaf", "leave-one-out", ("beta", a, b), or the weights p_0 … p_{n−1}
Kind = str | tuple[str, float, float] | Sequence[float | Fraction]


@dataclass(frozen=True)
class Weights:
    """The weights for n players.

    Attributes
    ----------
    name : of the value
    sizes : (n,), C(n−1, s)·p_s: how probable a coalition of s others is
    exact : makes p_s in fractions; None where they are real numbers
    """

    name: str
    sizes: Array
    exact: Callable[[], list[Fraction]] | None = None

    @property
    def players(self) -> int:
        """The number of players N."""
        return len(self.sizes)

    @cached_property
    def p(self) -> Array:
        """p_0 … p_{n−1} as floating numbers."""
        n = self.players
        if self.exact is not None and n <= 64:
            return np.array([float(weight) for weight in self.exact()])
        return np.array([share / math.comb(n - 1, s) for s, share in enumerate(self.sizes)])

    @property
    def symmetric(self) -> bool:
        """Whether a coalition weighs what its complement among the others weighs."""
        return bool(np.allclose(self.sizes, self.sizes[::-1], rtol=1e-9, atol=1e-15))

    def around(self, size: AnyArray, inside: Bools) -> AnyArray:
        """What u(S) is multiplied by in φ_i: p_{s−1} where S holds i, −p_s where not."""
        joined, apart = self._ends
        return np.where(inside, joined[size], apart[size])

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        return np.concatenate([[0.0], self.p]), -np.concatenate([self.p, [0.0]])


def shapley_weights(n: int) -> Weights:
    """p_s = s!(n − s − 1)!/n!: every order of joining is as probable.

    Examples
    --------
    >>> shapley_weights(3).exact()
    [Fraction(1, 3), Fraction(1, 6), Fraction(1, 3)]
    """
    return Weights(
        "Shapley",
        np.full(n, 1 / n),
        lambda: [Fraction(1, n * math.comb(n - 1, s)) for s in range(n)],
    )


def banzhaf_weights(n: int) -> Weights:
    """p_s = 2^{−(n−1)}: every coalition of the others is as probable.

    Examples
    --------
    >>> banzhaf_weights(3).p.tolist()
    [0.25, 0.25, 0.25]
    """
    return Weights(
        "Banzhaf", binom.pmf(np.arange(n), n - 1, 0.5), lambda: [Fraction(1, 2 ** (n - 1))] * n
    )


def beta_shapley_weights(n: int, alpha: float, beta: float) -> Weights:
    """p_s = B(s + β, n − 1 − s + α)/B(α, β): Beta(1, 1) is Shapley's, a larger α favors small
    coalitions.

    Y. Kwon and J. Zou, AISTATS 2022, (5). Exact for whole α and β.

    Examples
    --------
    >>> beta_shapley_weights(3, 1, 1).exact() == shapley_weights(3).exact()
    True
    """
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not value > 0 or math.isinf(value):
            raise ValueError(f"{name} must be positive and finite, not {value!r}")
    whole = alpha == int(alpha) and beta == int(beta)

    def exact() -> list[Fraction]:
        a, b = int(alpha), int(beta)
        return [_beta(s + b, n - 1 - s + a) / _beta(a, b) for s in range(n)]

    sizes = betabinom.pmf(np.arange(n), n - 1, beta, alpha)
    return Weights(f"beta-Shapley ({alpha:g}, {beta:g})", sizes, exact if whole else None)


def leave_one_out_weights(n: int) -> Weights:
    """p_{n−1} = 1, all others 0: what is lost without the player."""
    return Weights(
        "leave-one-out",
        np.r_[np.zeros(n - 1), 1.0],
        lambda: [Fraction(0)] * (n - 1) + [Fraction(1)],
    )


def given_weights(p: Sequence[Any]) -> Weights:
    """Weights as given, p_0 … p_{n−1}, none negative."""
    n = len(p)
    if not n or any(not (w >= 0 and math.isfinite(w)) for w in p):
        raise ValueError(
            "weights must be numbers p_0 … p_{n−1} of at least 0, one for each number of other"
            " players"
        )
    sizes = np.array([float(w * math.comb(n - 1, s)) for s, w in enumerate(p)])
    whole = all(isinstance(w, int | Fraction) for w in p)
    return Weights("probabilistic", sizes, (lambda: [Fraction(w) for w in p]) if whole else None)


def weights_of(value: Kind, n: int) -> Weights:
    """The weights of a value named in words, or given."""
    known = {
        "shapley": shapley_weights,
        "banzhaf": banzhaf_weights,
        "leave-one-out": leave_one_out_weights,
    }
    if isinstance(value, str) and value in known:
        return known[value](n)
    if isinstance(value, tuple) and len(value) == 3 and value[0] == "beta":
        return beta_shapley_weights(n, *cast("tuple[float, float]", value[1:]))
    if isinstance(value, str):
        raise ValueError(
            f"value must be {', '.join(map(repr, known))}, ('beta', alpha, beta) or weights, not"
            f" {value!r}"
        )
    if len(value) != n:
        raise ValueError(
            f"weights must be {n}, one for each number of other players, not {len(value)}"
        )
    return given_weights(value)


def _beta(a: int, b: int) -> Fraction:
    return Fraction(math.factorial(a - 1) * math.factorial(b - 1), math.factorial(a + b - 1))
