"""Tables 5.1 and 5.2 of the model-selection thesis: as printed, and beside them what the
theorems say.
"""

from __future__ import annotations

import math

from surelearn.bounds import boosting_vc, growth_function_bound

TABLE_5_1 = {
    (10, 600): 4.3671, (10, 6000): 1.6999, (10, 60000): 0.6223,
    (50, 600): 9.4859, (50, 6000): 3.7297, (50, 60000): 1.3720,
    (100, 600): 13.2664, (100, 6000): 5.2368, (100, 60000): 1.9300,
}  # fmt: skip
"""As printed: (rounds T, rows m) → bound at zero training error, stumps in R¹², δ = 0.05."""

TABLE_5_2 = {
    (80, 6000): 1.2723, (80, 12000): 0.7384, (80, 24000): 0.4204, (80, 48000): 0.2358,
    (100, 6000): 1.5199, (100, 12000): 0.8893, (100, 24000): 0.5093, (100, 48000): 0.2870,
    (120, 6000): 1.7533, (120, 12000): 1.0332, (120, 24000): 0.5949, (120, 48000): 0.3366,
}  # fmt: skip
"""As printed: (neurons, rows m) → bound at zero training error, 784 inputs, δ = 0.05."""


def counting_bound_on_stumps(d: int) -> int:
    """The thesis' bound on the VC dimension of stumps: the largest k with 2^k ≤ 2dk (eq. 3.4); 7 in
    R¹², 6 is exact.

    Examples
    --------
    >>> counting_bound_on_stumps(12)
    7
    """
    k = 1
    while 2 ** (k + 1) <= 2 * d * (k + 1):
        k += 1
    return k


def boosting_vc_without_e(n: int, delta: float, rounds: int, vc_dimension: int) -> float:
    """Equation 3.11 without its two e's, at zero training error: what Table 5.1 holds. Not a
    theorem.

    Examples
    --------
    >>> round(boosting_vc_without_e(600, 0.05, 10, 7), 4)
    4.3671
    """
    log_growth = rounds * (math.log(n / rounds) + vc_dimension * math.log(n / vc_dimension))
    return growth_function_bound(0.0, n, delta, log_growth)


def attenuated_vc_dimension(neurons: int) -> float:
    """W·log₂(60·W·128)/2¹² with W = 786·neurons: a conjecture that meets Table 5.2. Not a theorem.

    Theorem 4.2 would be 2·W·log₂(60·N·k) with N = 784 inputs a unit, about 2¹³ times larger.
    """
    w = 786 * neurons
    return w * math.log2(60 * w * 128) / 2**12


def table_5_1() -> dict[tuple[int, int], tuple[float, float, float]]:
    """For each cell: printed, the variant that reproduces it, and what Theorem 3.3 says.

    Examples
    --------
    >>> [round(value, 4) for value in table_5_1()[10, 600]]
    [4.3671, 4.3671, 4.831]
    """
    v = counting_bound_on_stumps(12)
    return {
        (t, m): (printed, boosting_vc_without_e(m, 0.05, t, v), boosting_vc(0.0, m, 0.05, t, v))
        for (t, m), printed in TABLE_5_1.items()
    }


def table_5_2() -> dict[tuple[int, int], tuple[float, float]]:
    """For each cell: printed, and Vapnik's bound with the conjectured dimension.

    Examples
    --------
    >>> [round(value, 4) for value in table_5_2()[80, 6000]]
    [1.2723, 1.2723]
    """
    return {
        (neurons, m): (printed, _vapnik_at_zero(m, 0.05, attenuated_vc_dimension(neurons)))
        for (neurons, m), printed in TABLE_5_2.items()
    }


def _vapnik_at_zero(n: int, delta: float, d: float) -> float:
    """`vapnik` at zero training error, for a dimension that is not a whole number."""
    return 4 * (d * (math.log(2 * n / d) + 1) + math.log(4 / delta)) / n
