"""Poisoned training rows: how much poison a target needs at least, and how many rows cannot
change a vote of partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds._checks import Value
from surelearn.bounds._sources import COURSE
from surelearn.bounds._special import lambertw
from surelearn.claim import ALWAYS, at_least, theorem

ONE_TARGET = (
    "inner is ⟨w, g(μ)⟩ at this one target w, g(μ) the mean gradient over the clean rows (the"
    " subgradient of least inner)"
)
STATIONARY = (
    "the target is reached where the objective's gradient over clean and poisoned rows vanishes"
)
ADDED = (
    "poison is added to the clean rows, each row with the weight of one; none is changed or removed"
)
LINEAR = "scores are linear in the weights w, an intercept being the weight of a column of ones"
REACH = "no allowed poison has scores at w that differ (regression: a score) by more than reach"
BOUNDED_TARGETS = "every allowed poison has |y| ≤ target_bound"
BY_CONTENT = "rows are assigned to partitions by a hash of their own content alone"
DETERMINISTIC = (
    "each vote is a deterministic function of its partition's rows, whatever their order"
)
UNPREPARED = "nothing was learned from the rows before they were partitioned"
TIES = "rival is the most votes of another class, plus one where that class wins ties"
EVERY_MACHINE = (
    "the target is reached only where each machine's own weights are, each fitted apart to its own"
    " rows"
)
_STATEMENT = at_least("poison_fraction", holds=ALWAYS, unit="number")

ClassLoss = Literal["logistic", "hinge", "squared hinge", "squared", "exponential"]
RegressionLoss = Literal["squared", "absolute", "huber"]
Each = float | Sequence[float] | npt.NDArray[np.float64]  # one number, or one for each machine


def classification_pull(
    loss: ClassLoss = "logistic", classes: npt.ArrayLike = 2, reach: npt.ArrayLike = np.inf
) -> Value:
    """Largest −⟨w, g(z; w)⟩ that a poisoned row z can have, over all rows whose score differences
    are at most ``reach``.

    With t = y⟨w, x⟩ and a loss ℓ(t) it is −t·ℓ′(t): t/(1 + eᵗ) for logistic loss, largest at 1 +
    W(1/e) with value W(1/e); t up to 1 for hinge loss; 2t(1 − t) for its square and for (1 − t)²;
    te^{−t} for exponential loss. For c classes:

    - softmax p, logistic: −⟨w, g⟩ = s_y − Σ p_j·s_j = H(p) + ln p_y, for a given p_y largest where the others are equal:
      (c − 1)t/(eᵗ + c − 1) with t their distance, largest at 1 + W((c − 1)/e) with value W((c −
      1)/e);
    - hinge of Crammer and Singer, max(0, 1 + max_{j≠y} s_j − s_y): s_y − s_j of the class j that attains it, up to 1.

    Examples
    --------
    >>> round(classification_pull(), 4), round(classification_pull(classes=10), 4), classification_pull("hinge", classes=10)
    (0.2785, 1.101, 1.0)
    """
    c, reach = check.count("classes", classes, 2), check.nonnegative("reach", reach)
    check.require(
        loss in get_args(ClassLoss),
        f"loss must be one of {', '.join(get_args(ClassLoss))}, not {loss!r:.60}",
    )
    check.require(
        (c == 2) | (loss in ("logistic", "hinge")),
        f"classes must be 2 for {loss} loss: each machine has a threshold",
    )
    if loss == "logistic":
        t = np.minimum(reach, 1.0 + lambertw((c - 1) / np.e))
        return check.plain((c - 1) * t / (np.exp(t) + c - 1))
    if loss == "hinge":
        return check.plain(np.minimum(reach, 1.0) + 0.0 * c)
    if loss == "exponential":
        t = np.minimum(reach, 1.0)
        return check.plain(t * np.exp(-t))
    t = np.minimum(reach, 0.5)
    return check.plain(2 * t * (1 - t))


def regression_pull(
    target_bound: npt.ArrayLike,
    loss: RegressionLoss = "squared",
    reach: npt.ArrayLike = np.inf,
    tube: npt.ArrayLike = 0.0,
    knee: npt.ArrayLike = 1.0,
) -> Value:
    """Largest −⟨w, g(z; w)⟩ of a poisoned row with ``|y|`` ≤ Y and ``|s|`` ≤ reach, s = ⟨w, x⟩: at
    y = Y and 0 ≤ s ≤ Y.

    - (s − y)²: 2s(Y − s), largest at Y/2 with value Y²/2; ``|s − y|``: s, largest Y. With a tube around the target,
      max(``|s − y|`` − τ, 0) or its square, Y − τ takes the place of Y.
    - Huber's loss, (s − y)²/2 up to ``|s − y|`` = η and straight beyond: s·min(Y − s, η), largest at max(Y/2, Y − η) with
      value Y²/4 for η ≥ Y/2, else η(Y − η).

    Half of (s − y)² has half the pull, and half of every ⟨w, g⟩: the thresholds are the same.

    Parameters
    ----------
    tube : τ, for squared and absolute loss
    knee : η, for Huber's loss

    Examples
    --------
    >>> regression_pull(2.0), regression_pull(2.0, "absolute", tube=0.5), regression_pull(2.0, "huber", knee=0.5)
    (2.0, 1.5, 0.75)
    """
    y, reach = check.nonnegative("target_bound", target_bound), check.nonnegative("reach", reach)
    tube, knee = check.nonnegative("tube", tube), check.positive("knee", knee)
    check.require(np.isfinite(tube), "tube must be finite")
    check.require(
        loss in get_args(RegressionLoss),
        f"loss must be squared, absolute or huber, not {loss!r:.60}",
    )
    y = np.maximum(y - tube, 0.0) if loss != "huber" else y
    best = {"squared": y / 2, "absolute": y, "huber": np.maximum(y / 2, y - knee)}[loss]
    s = np.minimum(reach, best)
    with np.errstate(invalid="ignore"):
        rest = np.where(np.isinf(y), np.inf, y - s)
        slope = {
            "squared": 2 * rest,
            "absolute": np.ones_like(rest),
            "huber": np.minimum(rest, knee),
        }[loss]
        return check.plain(np.where(s == 0, 0.0, s * slope))


@theorem(
    "poisoning threshold of a classifier",
    f"{COURSE}, Example 18.2; Y. Lu, G. Kamath and Y. Yu, ICML 2023 (limits of model-targeted"
    " poisoning)",
    assumes=(ONE_TARGET, STATIONARY, ADDED, LINEAR, REACH),
    claims=_STATEMENT,
    example={"inner": 0.1, "loss": "logistic", "reach": 30.0, "decay": 0.01},
)
def poisoning_threshold(
    inner: npt.ArrayLike,
    loss: ClassLoss = "logistic",
    classes: npt.ArrayLike = 2,
    reach: npt.ArrayLike = np.inf,
    decay: npt.ArrayLike = 0.0,
) -> Value:
    """Least ε_d = ``|ν|/|μ|``, poison over clean rows, with which w can be reached: max(⟨w,
    g(μ)⟩/W((c − 1)/e), 0).

    If g(μ) + ε_d·g(ν) = 0, then ⟨w, g(μ)⟩ = ε_d·(−⟨w, g(ν)⟩) ≤ ε_d·sup −⟨w, g(z; w)⟩, a mean being
    at most the largest: `classification_pull`, W(1/e) ≈ 0.2785 for two classes of logistic
    regression. A penalty R beside the mean loss adds (1 + ε_d)·∇R(w); with r = ⟨w, ∇R(w)⟩ the
    threshold is (⟨w, g(μ)⟩ + r)/(sup − r), ∞ where r ≥ sup.

    For two classes, no intercept, w ≠ 0 and every x allowed it is exact: the row x = t·w/‖w‖² + v,
    v ⊥ w, has any gradient with −⟨w, g⟩ = t/(1 + eᵗ), so that one row, repeated, reaches w from
    there on. Where Γ is bounded, or the intercept's gradient must vanish too, above it nothing is
    said.

    Parameters
    ----------
    inner : ⟨w, g(μ)⟩, of either sign
    classes : c, for logistic loss and the hinge of Crammer and Singer
    reach : the largest difference of two scores (two classes: ``|⟨w, x⟩|``) that allowed poison has
        at w
    decay : r = ⟨w, ∇R(w)⟩ ≥ 0, which is 2λ‖w‖² for λ‖w‖²

    Examples
    --------
    >>> round(poisoning_threshold(0.1), 4), poisoning_threshold(-0.1), round(poisoning_threshold(0.1, classes=10), 4)
    (0.3591, 0.0, 0.0908)
    """
    return _threshold(inner, classification_pull(loss, classes, reach), decay)


@theorem(
    "poisoning threshold of a regression",
    f"{COURSE}, Example 18.2, its argument for losses of regression with bounded targets",
    assumes=(ONE_TARGET, STATIONARY, ADDED, LINEAR, REACH, BOUNDED_TARGETS),
    claims=_STATEMENT,
    example={"inner": 0.1, "target_bound": 2.0, "loss": "squared", "reach": 30.0, "decay": 0.01},
)
def poisoning_threshold_regression(
    inner: npt.ArrayLike,
    target_bound: npt.ArrayLike,
    loss: RegressionLoss = "squared",
    reach: npt.ArrayLike = np.inf,
    decay: npt.ArrayLike = 0.0,
    tube: npt.ArrayLike = 0.0,
    knee: npt.ArrayLike = 1.0,
) -> Value:
    """Least ε_d with which w can be reached by poison with ``|y|`` ≤ Y: as for a classifier, with
    `regression_pull`.

    Y²/2 for (⟨w, x⟩ − y)², Y for ``|⟨w, x⟩ − y|``, η(Y − η) for Huber's loss with η < Y/2. With
    targets of any size there is none. With a free intercept targets may be counted from any point:
    from the middle of their range Y is least.

    Parameters
    ----------
    inner : ⟨w, g(μ)⟩, of either sign
    target_bound : Y
    reach : the largest ``|⟨w, x⟩|`` that allowed poison has at w
    decay : r = ⟨w, ∇R(w)⟩ ≥ 0 of the penalty R beside the mean loss
    tube : τ, within which squared and absolute loss are 0 (support vector regression)
    knee : η of Huber's loss

    Examples
    --------
    >>> poisoning_threshold_regression(0.1, target_bound=2.0), poisoning_threshold_regression(0.1, target_bound=np.inf)
    (0.05, 0.0)
    """
    return _threshold(inner, regression_pull(target_bound, loss, reach, tube, knee), decay)


@theorem(
    "poisoning threshold of several machines",
    f"{COURSE}, Example 18.2, its argument for each machine; a row counts in at most so many of"
    " them",
    assumes=(EVERY_MACHINE, ONE_TARGET, STATIONARY, ADDED, LINEAR, REACH),
    claims=_STATEMENT,
    example={
        "inner": (0.1, 0.3, 0.2),
        "share": 0.7,
        "together": 2,
        "loss": "hinge",
        "reach": 30.0,
        "decay": 0.01,
    },
)
def poisoning_threshold_machines(
    inner: npt.ArrayLike,
    share: Each = 1.0,
    together: int | None = None,
    loss: ClassLoss = "hinge",
    reach: Each = np.inf,
    decay: Each = 0.0,
) -> float:
    """Least ε_d for machines fitted apart, one against the rest or one against one: max(max_k
    q_k·ε_k, Σ_k q_k·ε_k/m).

    Machine k, fitted to a share q_k of the clean rows, needs the share q_k·ε_k of poison, ε_k by
    `poisoning_threshold`. All poison is at least what one machine needs; and as no row counts in
    more than m machines, at least Σ_k q_k·ε_k/m.

    Parameters
    ----------
    inner : ⟨w_k, g_k(μ_k)⟩ of every machine, a mean over its own clean rows
    share : q_k, its clean rows over all; 1 for one against the rest
    together : m, the most machines that one row counts in: c − 1 for one against one of c classes;
        all unless told
    reach : the largest ``|⟨w_k, x⟩|``
    decay : r_k = ⟨w_k, ∇R(w_k)⟩ ≥ 0 of the penalty beside machine k's mean loss

    Examples
    --------
    >>> poisoning_threshold_machines((0.1, 0.3, 0.2)), round(poisoning_threshold_machines((0.3, 0.3, 0.3), together=2), 4)
    (0.3, 0.45)
    """
    each, q = check.number("inner", inner), check.rate("share", share)
    check.require(each.ndim == 1 and each.size > 0, "inner must hold one number for each machine")
    check.require(np.isfinite(each), "inner must be finite")
    for name, part in (("share", share), ("reach", reach), ("decay", decay)):
        check.require(
            np.shape(part) in ((), each.shape),
            f"{name} must be one number, or one for each machine",
        )
    m = each.size if together is None else float(check.count("together", together, 1))
    check.require(m <= each.size, "together must not be more than the machines there are")
    needed = poisoning_threshold(each, loss, reach=reach, decay=decay)
    with np.errstate(invalid="ignore"):
        needed = np.where((q == 0) | (needed == 0), 0.0, q * needed)
    return float(max(needed.max(), needed.sum() / m))


def _threshold(inner: npt.ArrayLike, pull: Any, decay: npt.ArrayLike) -> Value:
    """The least ε ≥ 0 with inner + r ≤ ε·(pull − r), ∞ where there is none."""
    inner, r = check.number("inner", inner), check.nonnegative("decay", decay)
    check.require(np.isfinite(inner), "inner must be finite")
    check.require(np.isfinite(r), "decay must be finite")
    needed, left = np.broadcast_arrays(
        np.maximum(inner + r, 0.0), np.maximum(np.subtract(pull, r), 0.0)
    )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return check.plain(np.where(needed == 0, 0.0, needed / left))


@theorem(
    "partition aggregation",
    "A. Levine and S. Feizi, ICLR 2021, Theorem 1 (DPA)",
    assumes=(BY_CONTENT, DETERMINISTIC, UNPREPARED, TIES),
    claims=at_least("inserted_plus_deleted_rows", holds=ALWAYS, unit="number"),
    example={"votes": 30, "rival": 11},
)
def partition_radius(votes: npt.ArrayLike, rival: npt.ArrayLike) -> Value:
    """Training rows that may be inserted or deleted, in all, without changing the vote: ⌊(n_a −
    n_b)/2⌋, b with its tie.

    One row lies in one partition and changes at most its vote, from a to b: the gap falls by at
    most 2. Another row in the place of one counts two (one inserted, one deleted). A class that no
    row has yet has no votes, but may win ties.

    Parameters
    ----------
    votes : n_a of the class that wins
    rival : the largest n_b + 1[b wins against a in ties] over the other classes

    Examples
    --------
    >>> partition_radius(30, 11), partition_radius(6, 6)
    (9.0, 0.0)
    """
    won, lost = check.count("votes", votes, 0), check.count("rival", rival, 0)
    check.require(
        lost <= won, "rival must not be above votes: the class with votes is the one that wins"
    )
    return check.plain(np.floor((won - lost) / 2))
