"""AUC, F1, balanced accuracy, Brier score, log loss, calibration and differences between slices,
through `certify`, near their bounds' worst cases: no more often untrue than their share of δ, with
half the slack more often; and what may not be chosen on the certified rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from tests.simulation import at_most, enough, more_than

import surelearn
from surelearn.certification import uncounted
from surelearn.claim import Claim
from surelearn.selection import select
from surelearn.selection.candidates import Candidate, Searched
from surelearn.slicing import Cut, Cuts

TINY = 1e-9


@dataclass(frozen=True)
class World:
    """A population of a few kinds of rows, and a model of it: how many rows are of each kind, how
    many of these are positive, the probability that the model says, and its answer.
    """

    mass: Sequence[float]
    positive: Sequence[float]
    said: Sequence[float]
    called: Sequence[int]
    classes_ = np.array([0, 1])

    def predict(self, X):
        return np.asarray(self.called)[X[:, 0].astype(int)]

    def predict_proba(self, X):
        said = np.asarray(self.said, dtype=float)[X[:, 0].astype(int)]
        return np.column_stack([1 - said, said])

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
        kind = rng.choice(len(self.mass), size=n, p=self.mass)
        y = (rng.random(n) < np.asarray(self.positive)[kind]).astype(int)
        return kind[:, None].astype(float), y

    @property
    def joint(self) -> Any:
        """(kinds, 2): the probability of each kind and label."""
        mass, positive = np.asarray(self.mass), np.asarray(self.positive)
        return np.column_stack([mass * (1 - positive), mass * positive])

    def truth(self, quantity: str) -> float:
        joint, said, called = self.joint, np.asarray(self.said), np.asarray(self.called)
        if quantity == "auc":
            above = (np.sign(said[:, None] - said[None, :]) + 1) / 2
            of_class = joint / joint.sum(axis=0)
            return float(of_class[:, 1] @ above @ of_class[:, 0])
        if quantity == "f1":
            hits = joint[called == 1, 1].sum()
            return 2 * hits / (hits + joint[called == 1].sum() + joint[called == 0, 1].sum())
        if quantity == "balanced_accuracy":
            right = [joint[called == k, k].sum() / joint[:, k].sum() for k in (0, 1)]
            return float(np.mean(right))
        of_truth = np.column_stack([1 - said, said])
        if quantity == "brier_score":
            return float((joint * np.square(1 - of_truth)).sum())
        if quantity == "log_loss":
            return float((joint * -np.log(np.maximum(of_truth, 1e-3))).sum())
        if quantity == "calibration":  # of a world with all kinds in one bin
            return float(joint[:, 1].sum())
        assert quantity == "error_difference"  # between kind 0 and all others
        wrong = np.where(called == 1, joint[:, 0], joint[:, 1])
        apart = wrong[0] / self.mass[0] - wrong[1:].sum() / sum(self.mass[1:])
        return abs(float(apart))


def breaks(claim: Claim, truth: float, slack: float = 1.0) -> bool:
    """Whether a claim with so much of its slack is untrue."""
    measured = claim.measured
    assert measured is not None

    def end(value: float) -> float:
        return measured + slack * (value - measured)

    if isinstance(claim.value, tuple):
        low, high = map(end, claim.value)
        return not low - TINY <= truth <= high + TINY
    if claim.relation == "<=":
        return end(claim.value) < truth - TINY
    return end(claim.value) > truth + TINY


@dataclass
class Tally:
    """How often a claim was untrue, and how often with half its slack, at its share of δ."""

    broken: int = 0
    halved: int = 0
    trials: int = 0
    share: float = math.nan

    @property
    def holds(self) -> bool:
        return at_most(self.broken, self.share, self.trials)

    @property
    def fails_halved(self) -> bool:
        return more_than(self.halved, self.share, self.trials)


def certificates(
    world: World, n: int, most: int, seed: int, **options: Any
) -> Iterator[tuple[surelearn.Certificate, Any, Any]]:
    rng = np.random.default_rng(seed)
    for _ in range(most):
        X, y = world.draw(rng, n)
        with uncounted():
            yield surelearn.certify(world, X, y, majority=0, headline=0.1, **options), X, y


def tally_of(
    world: World, quantity: str, n: int, *, most: int, fewest: int, seed: int, **options: Any
) -> Tally:
    """Of as many samples of n rows as it takes, at least ``fewest``."""
    truth, tally = world.truth(quantity), Tally()
    for certificate, _, _ in certificates(world, n, most, seed, **options):
        # the other bin has no rows, and no claim
        (claim,) = [c for c in certificate.together if c.quantity == quantity]
        tally.share, tally.trials = claim.delta, tally.trials + 1
        tally.broken += breaks(claim, truth)
        tally.halved += breaks(claim, truth, 0.5)
        if tally.trials >= fewest and enough([(tally.broken, tally.share)], tally.trials, most):
            break
    return tally


# A rare class, whose rows are above all others or below, so that every pair of one row tells the
# same; near 1, and with ties; scores where most pairs are ties.
SEPARATE = World((0.9, 0.06, 0.04), (0, 1, 1), (0.5, 0.9, 0.1), (0, 1, 0))
SEPARATE_NEAR_ONE = World((0.8, 0.19, 0.01), (0, 1, 1), (0.5, 0.9, 0.1), (0, 1, 0))
NEAR_ONE = World((0.85, 0.13, 0.02), (0, 1, 1), (0.2, 0.9, 0.2), (0, 1, 0))
TIED = World((0.5, 0.3, 0.2), (0.5, 0.5, 0.5), (0.5, 0.5, 0.6), (0, 1, 1))
RARE = World((0.93, 0.02, 0.03, 0.02), (0, 0, 1, 1), (0.1, 0.9, 0.9, 0.1), (0, 1, 1, 0))
ONE_SIDED = World((0.9, 0.03, 0.07), (0, 1, 1), (0.1, 0.1, 0.9), (0, 0, 1))
SURE = World((1.0,), (0.9,), (1.0,), (1,))  # always sure, and wrong every tenth time
CLIPPED = World((1.0,), (0.95,), (0.9999,), (1,))  # e^-9, where e^-6.9 is the least
ONE_BIN = World((0.5, 0.5), (0.3, 0.3), (0.2, 0.4), (0, 0))
APART = World((0.9, 0.1), (1, 0.7), (0.9, 0.9), (1, 1))  # errors in a few rows only
SLICES = Cuts((Cut(0, {"0.5": 0.5}, ("0 ≤ 0.5", "0 > 0.5")),))


@pytest.mark.parametrize(
    ("name", "world", "n", "options"),
    [
        ("auc", SEPARATE, 200, {"metrics": ("auc",), "delta": 0.2}),
        ("auc", SEPARATE_NEAR_ONE, 200, {"metrics": ("auc",), "delta": 0.2}),
        ("f1", RARE, 300, {"metrics": ("f1",), "positive": 1, "delta": 0.5}),
        ("balanced_accuracy", ONE_SIDED, 300, {"metrics": ("balanced_accuracy",), "delta": 0.15}),
        ("brier_score", SURE, 200, {"metrics": ("brier",), "delta": 0.2}),
        ("log_loss", CLIPPED, 200, {"metrics": ("log_loss",), "delta": 0.2}),
        (
            "calibration",
            ONE_BIN,
            200,
            {"metrics": ("calibration",), "bins": (0.5,), "delta": 0.5},
        ),
        (
            "error_difference",
            APART,
            400,
            {"metrics": ("differences",), "slices": SLICES, "delta": 0.5},
        ),
    ],
)
def test_it_holds_and_with_half_its_slack_it_does_not(name, world, n, options):
    tally = tally_of(world, name, n, most=500, fewest=300, seed=7, **options)
    assert tally.holds, tally
    assert tally.fails_halved, tally


def test_auc_holds_where_most_scores_are_tied():
    assert TIED.truth("auc") == pytest.approx(0.5)
    for world in (TIED, NEAR_ONE):
        tally = tally_of(world, "auc", 100, metrics=("auc",), delta=0.9, most=400, fewest=1, seed=8)
        assert tally.holds, tally


def test_of_equal_slices_no_difference_is_claimed_and_the_measured_one_is_never_zero():
    world = World((0.5, 0.5), (0.3, 0.3), (0.2, 0.4), (0, 0))
    assert world.truth("error_difference") == 0
    options = {"metrics": ("differences",), "slices": SLICES, "delta": 0.9}
    tally = tally_of(world, "error_difference", 60, most=400, fewest=100, seed=9, **options)
    assert tally.holds, tally
    assert tally.fails_halved, tally


def test_a_mutant_that_cuts_bins_on_the_certified_rows_breaks_its_promise():
    """The same probabilities of rows that do not count, as an audit has them, may cut."""
    kinds = 40
    said = np.linspace(0.02, 0.98, kinds)
    world = World(np.full(kinds, 1 / kinds), np.full(kinds, 0.5), said, np.ones(kinds, int))
    rng, n, trials, share = np.random.default_rng(10), 200, 100, math.nan
    broken = {"beforehand": 0, "by these rows": 0}

    def farthest(X: Any, y: Any) -> float:
        """The edge above which the share of positive rows is least like the model's error."""
        said_here = world.predict_proba(X)[:, 1]
        edges = (said[:-1] + said[1:]) / 2
        inside = [y[said_here <= edge] for edge in edges]
        strange = [abs(part.mean() - 0.5) * math.sqrt(part.size) for part in inside if part.size]
        return float(edges[int(np.argmax(strange))])

    for _ in range(trials):
        other, (X, y) = world.draw(rng, n), world.draw(rng, n)
        for name, edge in (("beforehand", farthest(*other)), ("by these rows", farthest(X, y))):
            with uncounted():
                made = surelearn.certify(
                    world, X, y, majority=0, headline=0.1, delta=0.8, metrics=("calibration",),
                    bins=(edge,),
                )  # fmt: skip
            claims = [c for c in made.together if c.quantity == "calibration"]
            share = sum(c.delta for c in claims)
            broken[name] += any(breaks(claim, 0.5) for claim in claims)
    assert at_most(broken["beforehand"], share, trials), broken
    assert more_than(broken["by these rows"], share, trials), broken


class Guesses(ClassifierMixin, BaseEstimator):
    """Answers as a table of random numbers says, whatever it is fitted on."""

    def __init__(self, seed: int = 0):
        self.seed = seed

    def fit(self, X, y):  # noqa: ARG002
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        table = np.random.default_rng(self.seed).integers(0, self.classes_.size, 2000)
        return self.classes_[table[np.asarray(X)[:, 0].astype(int)]]


def test_a_mutant_that_takes_the_best_of_several_positives_breaks_its_promise():
    """F1 is the same for every class; the one with the largest measured value is not certified,
    unless it is one of as many candidates.
    """
    classes, right, n, delta, trials = 8, 0.5, 240, 0.5, 80
    rng, share = np.random.default_rng(11), math.nan
    broken = {"stated": 0, "best": 0, "best, paid for": 0}

    class Answers:
        """The answers are the rows."""

        classes_ = np.arange(classes)

        def predict(self, X):
            return X[:, 0].astype(int)

    for _ in range(trials):
        y = rng.integers(0, classes, n)
        other = rng.integers(0, classes, n)
        X = np.where(rng.random(n) < right, y, other)[:, None].astype(float)
        rate = right + (1 - right) / classes  # precision and recall, so F1, too

        def f1(positive: int, X: Any = X, y: Any = y, **options: Any) -> Claim:
            with uncounted():
                made = surelearn.certify(
                    Answers(), X, y, positive=positive, majority=0, headline=0.1, delta=delta,
                    metrics=("f1",), **options,
                )  # fmt: skip
            return made["f1"]

        called = X[:, 0].astype(int)
        hits, either = (np.bincount(v, minlength=classes) for v in (y[called == y], [*y, *called]))
        best = int(np.argmax(hits / either))
        for name, claim in (
            ("stated", f1(0)), ("best", f1(best)), ("best, paid for", f1(best, candidates=classes)),
        ):  # fmt: skip
            share = claim.delta
            broken[name] += breaks(claim, rate)
    assert at_most(broken["stated"], share, trials), broken
    assert at_most(broken["best, paid for"], share, trials), broken
    assert more_than(broken["best"], share, trials), broken


def test_the_holdout_claim_pays_for_searched_settings():
    """Every setting guesses. The best of 12 on the held-out rows is not better; with all of δ for
    the one that is shown, as if it had been the only one, the claim is untrue too often.
    """
    n, held, delta, trials = 90, 60, 0.2, 100
    rng, broken, naive = np.random.default_rng(12), 0, 0
    for trial in range(trials):
        X, y = np.arange(n, dtype=float)[:, None], rng.integers(0, 2, n)
        y[:2] = 0, 1  # fitted on, so that both classes are known
        settings = [
            Candidate(name=f"guess, {k}", model=Guesses(1000 * trial + k)) for k in range(12)
        ]
        found = select(
            [Searched("guess", settings[:10]), *settings[10:]], X, y, criterion="holdout",
            held_out=np.arange(n - held, n), metric="accuracy", delta=delta,
        )  # fmt: skip
        claim = found.claim
        assert isinstance(claim, Claim)
        assert (len(found.names), claim.candidates, claim.delta) == (3, 12, delta)
        broken += claim.value < 0.5
        naive += surelearn.bounds.clopper_pearson(claim.inputs["errors"], held, delta) < 0.5
    assert at_most(broken, delta, trials), broken
    assert more_than(naive, delta, trials), naive
