"""A threshold that was chosen on the same rows: fixed-sequence testing walks along thresholds that were
fixed beforehand, and a band of Dvoretzky, Kiefer and Wolfowitz holds at every threshold at once.

Only the number that was tested is guaranteed at the threshold where a walk ends. Any other rate there
needs a band with a δ of its own, or rows that took no part in the walk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds import _measured as measured
from surelearn.bounds._checks import Value
from surelearn.bounds.holdout import (
    IID,
    ORDER,
    STATED_RANGE,
    UNSEEN,
    betting_upper,
    clopper_pearson,
    clopper_pearson_lower,
)
from surelearn.claim import at_least, at_most, theorem
from surelearn.types import Array, Bools

FIXED = "the thresholds, and their order, were fixed before these rows were looked at"
_WALK = (
    "W. Maurer, L. A. Hothorn and W. Lehmacher, Multiple comparisons in drug clinical trials and"
    " preclinical assays: a-priori ordered hypotheses (1995); A. N. Angelopoulos, S. Bates,"
    " E. J. Candès, M. I. Jordan and L. Lei, Learn then Test (2021), on fixed-sequence testing"
)
_DKW = (
    "P. Massart, The tight constant in the Dvoretzky–Kiefer–Wolfowitz inequality, Ann. Probab. 18"
    " (1990), 1269–1283, the one-sided inequality with constant 1, for e^(−2nε²) ≤ 1/2"
)


def steps_passed(passed: Bools) -> int:
    """How many steps a walk goes: those before the first that fails.

    Examples
    --------
    >>> steps_passed(np.array([True, True, False, True])), steps_passed(np.array([True]))
    (2, 1)
    """
    failed = np.flatnonzero(~np.asarray(passed, dtype=bool))
    return int(failed[0]) if failed.size else int(np.size(passed))


def passes_lower(counts: npt.ArrayLike, sizes: npt.ArrayLike, level: float, delta: float) -> Bools:
    """(J,) whether each step, by itself, shows a rate of at least ``level`` at δ; a step without rows
    does not.

    Examples
    --------
    >>> passes_lower([59, 58, 0], [59, 59, 0], 0.95, 0.05).tolist()
    [True, False, False]
    """
    sizes = np.asarray(sizes, dtype=float)
    return (np.asarray(clopper_pearson_lower(counts, sizes, delta)) >= level) & (sizes > 0)


def passes_upper(counts: npt.ArrayLike, sizes: npt.ArrayLike, level: float, delta: float) -> Bools:
    """(J,) whether each step, by itself, shows a rate of at most ``level`` at δ; a step without rows
    does not.

    Examples
    --------
    >>> passes_upper([0, 0, 0], [299, 298, 0], 0.01, 0.05).tolist()
    [True, False, False]
    """
    sizes = np.asarray(sizes, dtype=float)
    return (np.asarray(clopper_pearson(counts, sizes, delta)) <= level) & (sizes > 0)


def steps_passed_mean(losses: Array, level: float, delta: float, loss_bound: float) -> int:
    """How many steps a walk goes along (J, n) losses: those before the first that does not show a
    mean of at most ``level`` at δ.

    Examples
    --------
    >>> steps_passed_mean(np.repeat([[0.1], [0.9], [0.1]], 100, axis=1), 0.5, 0.05, 1.0)
    1
    """
    for step, row in enumerate(losses):
        if betting_upper(row, delta, loss_bound=loss_bound) > level:
            return step
    return len(losses)


def _steps(
    counts: npt.ArrayLike, sizes: npt.ArrayLike, level: float, step: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float, int]:
    counts, sizes = check.count("counts", counts), check.count("sizes", sizes)
    for name, array in (("counts", counts), ("sizes", sizes)):
        check.require(array.ndim == 1 and array.size > 0, f"{name} must be one number per step")
    check.require(counts.size == sizes.size, "counts and sizes must have the same length")
    check.require(counts <= sizes, "counts must not exceed sizes")
    return counts, sizes, float(check.rate("level", level)), _step(step, counts.size)


def _step(step: int, steps: int) -> int:
    index = int(check.count("step", step))
    check.require(index < steps, f"step must be below {steps}, the number of steps, not {index}")
    return index


def _rate_at_step(inputs: Mapping[str, Any]) -> float | None:
    """The measured rate at the step that the claim is about; None without rows there."""
    n = inputs["sizes"][inputs["step"]]
    return inputs["counts"][inputs["step"]] / n if n else None


@theorem(
    "fixed-sequence testing",
    _WALK,
    assumes=(IID, UNSEEN, FIXED),
    claims=at_least("rate", measured=_rate_at_step),
    example={
        "counts": (100, 99, 97, 92),
        "sizes": (100, 100, 100, 100),
        "level": 0.9,
        "step": 2,
        "delta": 0.05,
    },
)
def fixed_sequence_lower(
    counts: npt.ArrayLike, sizes: npt.ArrayLike, level: float, step: int, delta: float
) -> float:
    """Lower bound on the success probability p at the last step that a walk passed: ``level``.

    Step j passes if Clopper and Pearson's lower bound for counts[j] of sizes[j], at δ, is at least
    the level; the walk stops at the first step that does not. No δ is divided: let j be the first
    step, in the order that was fixed beforehand, with p_j < level. Some claim is untrue only if the
    walk passes step j, and that has probability at most δ, whatever the other steps are and however
    the rates depend on each other.

    If not even the first step passes, its own Clopper–Pearson bound L₀ < level is the value: where
    p₀ ≥ level it is true, and where p₀ < level it is untrue only if L₀ > p₀, an event that contains
    that of passing. A later step that the walk did not reach has no bound: 0.

    Parameters
    ----------
    counts, sizes : (J,), successes and rows at each step, in the order of the walk
    level : the rate that is required, stated beforehand
    step : which step the claim is about, counted from 0: the last one that passed
    delta : failure probability

    Examples
    --------
    >>> fixed_sequence_lower([100, 99, 97, 92], [100] * 4, 0.9, 2, 0.05)
    0.9
    >>> fixed_sequence_lower([100, 99, 97, 92], [100] * 4, 0.9, 3, 0.05)  # 92 of 100 did not pass
    0.0
    >>> round(fixed_sequence_lower([40], [40], 0.95, 0, 0.05), 4)  # too few rows
    0.9278
    """
    counts, sizes, level, step = _steps(counts, sizes, level, step)
    share = float(check.confidence(delta))
    if step < steps_passed(passes_lower(counts, sizes, level, share)):
        return level
    return float(clopper_pearson_lower(counts[0], sizes[0], share)) if step == 0 else 0.0


@theorem(
    "fixed-sequence testing, upper",
    _WALK,
    assumes=(IID, UNSEEN, FIXED),
    claims=at_most("risk", measured=_rate_at_step),
    example={
        "counts": (0, 1, 3, 12),
        "sizes": (80, 90, 120, 150),
        "level": 0.08,
        "step": 2,
        "delta": 0.05,
    },
)
def fixed_sequence_upper(
    counts: npt.ArrayLike, sizes: npt.ArrayLike, level: float, step: int, delta: float
) -> float:
    """Upper bound on the error probability at the last step that a walk passed: ``level``.

    As `fixed_sequence_lower`, with Clopper and Pearson's upper bound, which must be at most the
    level at every step. Rows may differ from step to step, as those that are answered do; given how
    many they are, their errors are binomial. If not even the first step passes, its own bound is the
    value; a later step that the walk did not reach has none: 1.

    Parameters
    ----------
    counts, sizes : (J,), errors and rows at each step, in the order of the walk
    level : the rate that is allowed, stated beforehand
    step : which step the claim is about, counted from 0: the last one that passed
    delta : failure probability

    Examples
    --------
    >>> fixed_sequence_upper([0, 1, 3, 12], [80, 90, 120, 150], 0.08, 2, 0.05)
    0.08
    >>> round(fixed_sequence_upper([0], [200], 0.01, 0, 0.05), 4)  # ln 0.05 / ln 0.99 = 298.1 are needed
    0.0149
    """
    counts, sizes, level, step = _steps(counts, sizes, level, step)
    share = float(check.confidence(delta))
    if step < steps_passed(passes_upper(counts, sizes, level, share)):
        return level
    return float(clopper_pearson(counts[0], sizes[0], share)) if step == 0 else 1.0


def _mean_at_step(inputs: Mapping[str, Any]) -> float | None:
    """The measured mean at the step that the claim is about; None where losses are kept apart."""
    losses, n, step = inputs["losses"], int(inputs["n"]), int(inputs["step"])
    if not isinstance(losses, tuple):
        return None
    values = np.asarray(losses, dtype=float)[n * step : n * (step + 1)]
    return float(values.mean()) if values.size else None


@theorem(
    "fixed-sequence betting",
    f"{_WALK}; each step by I. Waudby-Smith and A. Ramdas, J. R. Statist. Soc. B 86 (2024), Theorem 3",
    assumes=(IID, UNSEEN, FIXED, STATED_RANGE, ORDER),
    claims=at_most("mean_loss", trivial="loss_bound", measured=_mean_at_step, unit="number"),
    example={
        "losses": (0.0, 0.1, 0.2, 0.0, 0.1) * 80,
        "n": 200,
        "level": 0.15,
        "step": 1,
        "delta": 0.05,
    },
)
def fixed_sequence_mean(
    losses: npt.ArrayLike, n: int, level: float, step: int, delta: float, loss_bound: float = 1.0
) -> float:
    """Upper bound on the mean of losses in [0, loss_bound] at the last step that a walk passed:
    ``level``.

    As `fixed_sequence_lower`, where each step bets, at δ, on a mean of at most the level
    (`betting_upper`). If not even the first step passes, its own bound is the value; a later step
    that the walk did not reach has none: loss_bound.

    Parameters
    ----------
    losses : (J·n,), the losses of all n rows at the first step, then at the second, …; rows in an
        order that does not depend on them
    n : number of rows
    level : the mean that is allowed, stated beforehand
    step : which step the claim is about, counted from 0: the last one that passed
    delta : failure probability
    loss_bound : stated beforehand

    Examples
    --------
    >>> fixed_sequence_mean([0.0, 0.1, 0.2, 0.0, 0.1] * 80, 200, 0.15, 1, 0.05)
    0.15
    """
    bound = float(check.positive("loss_bound", loss_bound))
    sample, rows = check.sample("losses", losses, 0.0, bound), int(check.count("n", n, 1))
    check.require(sample.size % rows == 0, "losses must hold n numbers per step")
    steps = sample.reshape(-1, rows)  # (J, n)
    limit, share = float(check.nonnegative("level", level)), float(check.confidence(delta))
    index = _step(step, len(steps))
    if index < steps_passed_mean(steps[: index + 1], limit, share, bound):
        return limit
    return betting_upper(steps[0], share, loss_bound=bound) if index == 0 else bound


def slack_everywhere(n: npt.ArrayLike, delta: npt.ArrayLike) -> Value:
    """√(ln(1/δ) / (2n)), by which no rate of n rows differs from its probability to one side, at any
    threshold; for δ above 1/2, for which the constant 1 is not proved there, that of 1/2.

    Examples
    --------
    >>> round(slack_everywhere(200, 0.05), 4)
    0.0865
    """
    rows, share = check.count("n", n, 1), np.minimum(check.confidence(delta), 0.5)
    return check.plain(np.sqrt(np.log(1 / share) / (2 * rows)))


@theorem(
    "Dvoretzky–Kiefer–Wolfowitz distance",
    _DKW,
    assumes=(IID, UNSEEN),
    claims=at_most("rate_distance", trivial=1.0),
    example={"n": 200, "delta": 0.05},
)
def dkw_distance(n: npt.ArrayLike, delta: npt.ArrayLike) -> Value:
    """How far the true share of rows with a score of at least t lies below the measured one, at most,
    at every threshold t at once: ε = √(ln(1/δ) / (2n)), at most 1.

    With S the share of n rows whose score is at least t and P its probability, P(sup_t (S − P) > ε)
    ≤ e^(−2nε²) where that is at most 1/2. The scores with the other sign give the same for sup_t
    (P − S). It holds for any distribution of the scores, ties included, and, given the labels, for
    the rows of one class.

    Parameters
    ----------
    n : number of rows, such as those of one class
    delta : failure probability; above 1/2 it counts as 1/2

    Examples
    --------
    >>> round(dkw_distance(200, 0.05), 4)
    0.0865
    """
    return check.plain(np.minimum(slack_everywhere(n, delta), 1.0))


@theorem(
    "Dvoretzky–Kiefer–Wolfowitz, lower",
    _DKW,
    assumes=(IID, UNSEEN),
    claims=at_least("rate", measured=measured.success_rate),
    example={"successes": 180, "n": 200, "delta": 0.05},
)
def dkw_lower(successes: npt.ArrayLike, n: npt.ArrayLike, delta: npt.ArrayLike) -> Value:
    """Lower bound on the probability of a score beyond a threshold that may have been chosen on these
    rows: successes/n − √(ln(1/δ) / (2n)), see `dkw_distance`.

    Examples
    --------
    >>> round(dkw_lower(180, 200, 0.05), 4)
    0.8135
    """
    rows, counts = np.broadcast_arrays(check.count("n", n, 1), check.count("successes", successes))
    check.require(counts <= rows, "successes must not exceed n")
    return check.plain(np.maximum(0.0, counts / rows - np.asarray(slack_everywhere(rows, delta))))


def sure_rows(level: float, delta: float) -> int:
    """The fewest rows that, all without an error, show an error rate of at most 1 − ``level``:
    ⌈ln δ / ln level⌉.

    Examples
    --------
    >>> sure_rows(0.99, 0.05), sure_rows(0.95, 0.05)
    (299, 59)
    """
    return math.ceil(math.log(delta) / math.log(level))
