"""Poisoned training rows: how much poison a target needs at least, and how many rows cannot change a vote of partitions."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import lambertw

from surelearn.bounds import _checks as check
from surelearn.bounds._checks import Value
from surelearn.claim import ALWAYS, at_least, theorem

ONE_TARGET = (
    "inner is ⟨w, g(μ)⟩ at this one target w, g(μ) the mean gradient over the clean rows (the subgradient of least inner)"
)
STATIONARY = "the target is reached where the objective's gradient over clean and poisoned rows vanishes"
ADDED = "poison is added to the clean rows, each row with the weight of one; none is changed or removed"
LINEAR = "scores are linear in the weights w, an intercept being the weight of a column of ones"
REACH = "no allowed poison has scores at w that differ (regression: a score) by more than reach"
BOUNDED_TARGETS = "every allowed poison has |y| ≤ target_bound"
BY_CONTENT = "rows are assigned to partitions by a hash of their own content alone"
DETERMINISTIC = "each vote is a deterministic function of its partition's rows, whatever their order"
UNPREPARED = "nothing was learned from the rows before they were partitioned"
TIES = "rival is the most votes of another class, plus one where that class wins ties"
_STATEMENT = at_least("poison fraction", holds=ALWAYS, unit="number")


def classification_pull(
    loss: Literal["logistic", "hinge", "squared hinge", "exponential"] = "logistic",
    classes: npt.ArrayLike = 2,
    reach: npt.ArrayLike = np.inf,
) -> Value:
    """Largest −⟨w, g(z; w)⟩ that a poisoned row z can have, over all rows whose score differences are at most ``reach``.

    With t = y⟨w, x⟩ and a loss ℓ(t) it is −t·ℓ′(t): t/(1 + eᵗ) for logistic loss, largest at 1 + W(1/e) with value W(1/e);
    t up to 1 for hinge loss; 2t(1 − t) for its square; te^{−t} for exponential loss. For c classes with softmax p,
    −⟨w, g⟩ = s_y − Σ p_j·s_j = H(p) + ln p_y, for a given p_y largest where the others are equal: (c − 1)t/(eᵗ + c − 1)
    with t their distance, largest at 1 + W((c − 1)/e) with value W((c − 1)/e).

    Examples
    --------
    >>> round(classification_pull(), 4), round(classification_pull(classes=10), 4), classification_pull("hinge")
    (0.2785, 1.101, 1.0)
    """
    c, reach = check.count("classes", classes, 2), check.nonnegative("reach", reach)
    check.require((c == 2) | (loss == "logistic"), f"classes must be 2 for {loss} loss")
    if loss == "logistic":
        t = np.minimum(reach, 1.0 + lambertw((c - 1) / np.e).real)
        return check.plain((c - 1) * t / (np.exp(t) + c - 1))
    if loss == "hinge":
        return check.plain(np.minimum(reach, 1.0))
    if loss == "squared hinge":
        t = np.minimum(reach, 0.5)
        return check.plain(2 * t * (1 - t))
    check.require(loss == "exponential", f"loss must be logistic, hinge, squared hinge or exponential, not {loss!r}")
    t = np.minimum(reach, 1.0)
    return check.plain(t * np.exp(-t))


def regression_pull(
    target_bound: npt.ArrayLike, loss: Literal["squared", "absolute"] = "squared", reach: npt.ArrayLike = np.inf
) -> Value:
    """Largest −⟨w, g(z; w)⟩ of a poisoned row with ``|y|`` ≤ Y and ``|s|`` ≤ reach, s = ⟨w, x⟩.

    (s − y)²: 2s(y − s), largest at y = Y and s = Y/2 with value Y²/2. ``|s − y|``: s where 0 ≤ s ≤ y, largest Y.

    Examples
    --------
    >>> regression_pull(2.0), regression_pull(2.0, "absolute")
    (2.0, 2.0)
    """
    y, reach = check.nonnegative("target_bound", target_bound), check.nonnegative("reach", reach)
    if loss == "squared":
        s = np.minimum(reach, y / 2)
        with np.errstate(invalid="ignore"):
            return check.plain(np.where(s == 0, 0.0, np.where(np.isinf(y), np.inf, 2 * s * (y - s))))
    check.require(loss == "absolute", f"loss must be squared or absolute, not {loss!r}")
    return check.plain(np.minimum(reach, y))


@theorem(
    "poisoning threshold of a classifier",
    "course, Example 18.2; Y. Lu, G. Kamath and Y. Yu, ICML 2023 (limits of model-targeted poisoning)",
    assumes=(ONE_TARGET, STATIONARY, ADDED, LINEAR, REACH),
    claims=_STATEMENT,
    example={"inner": 0.1, "loss": "logistic", "reach": 30.0, "decay": 0.01},
)
def poisoning_threshold(
    inner: npt.ArrayLike,
    loss: Literal["logistic", "hinge", "squared hinge", "exponential"] = "logistic",
    classes: npt.ArrayLike = 2,
    reach: npt.ArrayLike = np.inf,
    decay: npt.ArrayLike = 0.0,
) -> Value:
    """Least ε_d = ``|ν|/|μ|``, poison over clean rows, with which w can be reached: max(⟨w, g(μ)⟩/W((c − 1)/e), 0).

    If g(μ) + ε_d·g(ν) = 0, then ⟨w, g(μ)⟩ = ε_d·(−⟨w, g(ν)⟩) ≤ ε_d·sup −⟨w, g(z; w)⟩, a mean being at most the largest:
    `classification_pull`, W(1/e) ≈ 0.2785 for two classes of logistic regression. A penalty R beside the mean loss adds
    (1 + ε_d)·∇R(w); with r = ⟨w, ∇R(w)⟩ the threshold is (⟨w, g(μ)⟩ + r)/(sup − r), ∞ where r ≥ sup.

    For two classes, w ≠ 0 and every x allowed it is exact: the row x = t·w/‖w‖² + v, v ⊥ w, has any gradient with
    −⟨w, g⟩ = t/(1 + eᵗ), so that one row, repeated, reaches w from there on. Where Γ is bounded, above it nothing is said.

    Parameters
    ----------
    inner : ⟨w, g(μ)⟩, of either sign
    classes : c, for logistic loss
    reach : the largest difference of two scores (two classes: ``|⟨w, x⟩|``) that allowed poison has at w
    decay : r = ⟨w, ∇R(w)⟩ ≥ 0, which is 2λ‖w‖² for λ‖w‖²

    Examples
    --------
    >>> round(poisoning_threshold(0.1), 4), poisoning_threshold(-0.1), round(poisoning_threshold(0.1, classes=10), 4)
    (0.3591, 0.0, 0.0908)
    """
    return _threshold(inner, classification_pull(loss, classes, reach), decay)


@theorem(
    "poisoning threshold of a regression",
    "course, Example 18.2, its argument for losses of regression with bounded targets",
    assumes=(ONE_TARGET, STATIONARY, ADDED, LINEAR, REACH, BOUNDED_TARGETS),
    claims=_STATEMENT,
    example={"inner": 0.1, "target_bound": 2.0, "loss": "squared", "reach": 30.0, "decay": 0.01},
)
def poisoning_threshold_regression(
    inner: npt.ArrayLike,
    target_bound: npt.ArrayLike,
    loss: Literal["squared", "absolute"] = "squared",
    reach: npt.ArrayLike = np.inf,
    decay: npt.ArrayLike = 0.0,
) -> Value:
    """Least ε_d with which w can be reached by poison with ``|y|`` ≤ Y: as for a classifier, with `regression_pull`.

    Y²/2 for (⟨w, x⟩ − y)², Y for ``|⟨w, x⟩ − y|``. With targets of any size there is none.

    Examples
    --------
    >>> poisoning_threshold_regression(0.1, target_bound=2.0), poisoning_threshold_regression(0.1, target_bound=np.inf)
    (0.05, 0.0)
    """
    return _threshold(inner, regression_pull(target_bound, loss, reach), decay)


def _threshold(inner: npt.ArrayLike, pull: Any, decay: npt.ArrayLike) -> Value:
    """The least ε ≥ 0 with inner + r ≤ ε·(pull − r), ∞ where there is none."""
    inner, r = check.number("inner", inner), check.nonnegative("decay", decay)
    check.require(np.isfinite(inner), "inner must be finite")
    check.require(np.isfinite(r), "decay must be finite")
    needed, left = np.broadcast_arrays(np.maximum(inner + r, 0.0), np.maximum(np.subtract(pull, r), 0.0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return check.plain(np.where(needed == 0, 0.0, needed / left))


@theorem(
    "partition aggregation",
    "A. Levine and S. Feizi, ICLR 2021, Theorem 1 (DPA)",
    assumes=(BY_CONTENT, DETERMINISTIC, UNPREPARED, TIES),
    claims=at_least("inserted plus deleted rows", holds=ALWAYS, unit="number"),
    example={"votes": 30, "rival": 11},
)
def partition_radius(votes: npt.ArrayLike, rival: npt.ArrayLike) -> Value:
    """Training rows that may be inserted or deleted, in all, without changing the vote: ⌊(n_a − n_b)/2⌋, b with its tie.

    One row lies in one partition and changes at most its vote, from a to b: the gap falls by at most 2. Another row in
    the place of one counts two (one inserted, one deleted). A class that no row has yet has no votes, but may win ties.

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
    check.require(lost <= won, "rival must not be above votes: the class with votes is the one that wins")
    return check.plain(np.floor((won - lost) / 2))
