"""Does the page keep its promise? Small audits from known distributions through the whole of
`surelearn.audit`.

A population has finitely many cells, so the true value of every claim about the chosen, fitted
model is a finite sum. It also has a nuisance column of continuous values, dropped before fitting
but hashed with the row, so that no row repeats; what holds where rows repeat is simulated in
``test_promise_in_use.py``. Verdicts are read as a person reads them, from the sentence.

`benchmarks/coverage_audit.py` runs the same simulation with the default candidates.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from tests.simulation import at_most, enough, more_than, mutant

import surelearn
from surelearn import bounds
from surelearn.auditing.sections import skippable
from surelearn.data import read_table
from surelearn.fingerprint import fingerprint_model
from surelearn.selection.split import split_rows
from surelearn.slicing import Cuts

DELTA = 0.2
# Where a page has a dozen claims, each with a small share of δ: the larger δ, the fewer audits show
# that a share is exceeded by a factor.
WIDE = 0.5
QUICK = {"delta": DELTA, "refits": 0, "curve_repeats": 0, "skip": skippable()}
TINY = 1e-9  # rounding of the exact sums
EVERY = 10  # trials between two looks at whether a run has seen enough


class Recorded(Pipeline):
    """A pipeline whose fitted copies are kept: an `Audit` carries the chosen model alone."""

    fitted: list[Recorded] = []  # noqa: RUF012 - shared on purpose

    def fit(self, X, y=None, **params):
        super().fit(X, y, **params)
        Recorded.fitted.append(self)
        return self


def recorded(*steps: Any) -> Recorded:
    return Recorded([(str(i), step) for i, step in enumerate(steps)])


def keys_of(X: pd.DataFrame | np.recarray, names: Sequence[str]) -> Any:
    """One number below 2048 for the values of some columns: of one below 256 and one below 8,
    or of three below 8.
    """
    keys = np.zeros(len(X), dtype=int)
    for name in names:
        keys = 8 * keys + np.asarray(X[name]).astype(int)
    return keys


class Lookup(ClassifierMixin, BaseEstimator):
    """The most frequent label of the fit rows that agree in some columns (None: all); ties go to
    the majority.

    With ``random_state``, of a bootstrap sample of the fit rows.
    """

    def __init__(self, columns=(), random_state=None):
        self.columns = columns
        self.random_state = random_state

    def fit(self, X, y):
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.names_ = list(X.columns if self.columns is None else self.columns)
        keys = keys_of(X, self.names_)
        if self.random_state is not None:
            rows = np.random.default_rng(self.random_state).integers(codes.size, size=codes.size)
            keys, codes = keys[rows], codes[rows]
        counts = np.zeros((2048, self.classes_.size))
        np.add.at(counts, (keys, codes), 1.0)
        # decides for cells without rows
        everywhere = np.bincount(codes, minlength=self.classes_.size) / (2 * codes.size)
        self.answers_ = np.argmax(counts + everywhere, axis=1)
        return self

    def predict(self, X):
        return self.classes_[self.answers_[keys_of(X, self.names_)]]


class Frequencies(Lookup):
    """As `Lookup`, with the frequencies of the labels as probabilities, one row of each added."""

    def fit(self, X, y):
        super().fit(X, y)
        counts = np.ones((2048, self.classes_.size))
        np.add.at(counts, (keys_of(X, self.names_), np.searchsorted(self.classes_, y)), 1.0)
        self.shares_ = counts / counts.sum(axis=1, keepdims=True)
        self.answers_ = self.shares_.argmax(axis=1)
        return self

    def predict_proba(self, X):
        return self.shares_[keys_of(X, self.names_)]


class LookupMean(RegressorMixin, BaseEstimator):
    """The mean target of the fit rows that agree in some columns, each below 8."""

    def __init__(self, columns=()):
        self.columns = columns

    def fit(self, X, y):
        keys = keys_of(X, self.columns)
        counts = np.bincount(keys, minlength=512)
        self.answers_ = np.where(
            counts > 0, np.bincount(keys, y, minlength=512) / np.maximum(counts, 1), y.mean()
        )
        return self

    def predict(self, X):
        return self.answers_[keys_of(X, self.columns)]


# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Population:
    """Finitely many cells with the joint probability ``p[cell, label]``; rows come one by one, or
    ``size`` a group.

    With groups, ``kind`` says to which kind of group a cell belongs; kinds are equally likely,
    within one p sums to 1. Without the ``nuisance`` column rows repeat; ``columns`` are then in
    this order.
    """

    cells: pd.DataFrame
    p: Any
    kind: Any
    size: int = 1
    nuisance: bool = True
    columns: tuple[str, ...] = ()

    @property
    def labels(self) -> Any:
        return np.arange(self.p.shape[1])

    @property
    def dropped(self) -> list[str]:
        """Columns that no model may see."""
        return ["u"] if self.nuisance else []

    def draw(self, rng: np.random.Generator, n: int) -> pd.DataFrame:
        """``n`` rows (``n`` groups) as a person would have them in a file; the nuisance column
        is ``u``.
        """
        if self.size == 1:
            flat = rng.choice(self.p.size, size=n, p=self.p.ravel())
        else:
            order = np.argsort(np.repeat(self.kind, self.labels.size), kind="stable")
            steps = np.cumsum(self.p.ravel()[order])
            where = rng.integers(self.kind.max() + 1, size=n)[:, None] + rng.random((n, self.size))
            flat = order[
                np.minimum(np.searchsorted(steps, where.ravel(), side="right"), order.size - 1)
            ]
        frame = self.cells.iloc[flat // self.labels.size].reset_index(drop=True)
        if self.size > 1:
            frame["patient"] = np.repeat(rng.choice(10**6, size=n, replace=False), self.size)
        if self.nuisance:
            frame["u"] = rng.random(flat.size)
        frame["y"] = self.labels[flat % self.labels.size]
        return frame[list(self.columns or frame)]

    def mean(self, values: Any, within: Any = True) -> float:
        """The mean of ``values[cell, label]`` over the rows ``within``; with groups: over
        groups that have such rows.
        """
        within = self.p * np.broadcast_to(within, self.p.shape)
        mass = np.bincount(self.kind, within.sum(axis=1))
        total = np.bincount(self.kind, (within * values).sum(axis=1))
        reach = 1 - (1 - np.minimum(mass, 1)) ** self.size
        return float(np.sum(reach * total / np.where(mass > 0, mass, 1)) / reach.sum())


def independent(sizes: dict[str, int], weights: Any) -> Population:
    """A population of independent rows; ``weights(cells)`` is proportional to the probability
    of each cell and label.
    """
    cells = pd.DataFrame(list(itertools.product(*map(range, sizes.values()))), columns=list(sizes))
    p = np.asarray(weights(cells), dtype=float)
    return Population(cells, p / p.sum(), np.zeros(len(cells), dtype=int))


def with_replacement(table: pd.DataFrame) -> Population:
    """Rows drawn with replacement from a table whose rows repeat; its target is ``y``, a whole
    number.
    """
    y, features = table["y"].to_numpy(), table.drop(columns="y")
    cells = features.drop_duplicates(ignore_index=True)
    # in the order of their first rows
    codes = features.groupby(list(features), sort=False).ngroup().to_numpy()
    p = np.zeros((len(cells), y.max() + 1))
    np.add.at(p, (codes, y), 1 / len(y))
    return Population(
        cells, p, np.zeros(len(cells), dtype=int), nuisance=False, columns=tuple(table)
    )


def two_classes(one: Any) -> Any:
    return np.column_stack([1 - one, one])


def _patients(signatures: int = 200, visits: int = 8) -> Population:
    """Patients with a signature of their own; a measurement ``z`` tells the label, the other
    way round for one in eight.
    """
    sizes = {"inverted": 8, "s": signatures, "z": 2}
    cells = pd.DataFrame(list(itertools.product(*map(range, sizes.values()))), columns=list(sizes))
    p = two_classes(np.where((cells.z == 1) != (cells.inverted == 0), 0.95, 0.05)) / 2
    return Population(cells[["s", "z"]], p, cells.index.to_numpy() // 2, visits)


ABC = {"a": 3, "b": 3, "c": 8}
SIGNAL = independent(ABC, lambda x: two_classes(np.where(x.a + x.b >= 2, 0.92, 0.08)))
BLURRED = independent(ABC, lambda x: two_classes(expit(1.6 * (x.a + x.b - 2))))
NOISE = independent(ABC, lambda x: two_classes(np.full(len(x), 0.5)))
THREE = independent(ABC, lambda x: 0.08 + 0.6 * np.eye(3)[x.a] + 0.2 * np.eye(3)[x.b])
LEAK = independent(  # `told` repeats the label, but for one row in 200
    {"a": 3, "b": 3, "told": 2},
    lambda x: (
        two_classes(expit(1.6 * (x.a + x.b - 2)))
        * np.where(np.arange(2) == x.told.to_numpy()[:, None], 0.995, 0.005)
    ),
)
# labels can be learned by heart only: on contents without a copy half of the answers are wrong
CONTENTS = independent(
    {"a": 8, "b": 8, "c": 8},
    lambda x: two_classes(np.where(np.random.default_rng(0).random(len(x)) < 0.5, 0.97, 0.03)),
)
PATIENTS = _patients()


@dataclass
class Truth:
    """The true value of every claim about one fitted model."""

    population: Population
    model: Any
    rival: Any = None
    positive: Any = None
    cost: float = 1.0
    frame: pd.DataFrame | None = None  # the audited rows
    slices: Any = ()  # as the certificate has them

    @cached_property
    def predicted(self) -> Any:
        return np.asarray(self.model.predict(self.population.cells))[:, None]

    def of(self, quantity: str, label: str = "") -> float:
        people, labels = self.population, self.population.labels
        wrong, called = self.predicted != labels, self.predicted == self.positive
        if quantity == "risk":
            return people.mean(wrong)
        if quantity == "class_error":
            return people.mean(
                wrong, labels == int(label.removeprefix("errors where the truth is "))
            )
        if quantity == "slice_risk":
            return people.mean(wrong, self._slice(label.removeprefix("errors where "))[:, None])
        if quantity == "sensitivity":
            return people.mean(called, labels == self.positive)
        if quantity == "specificity":
            return people.mean(~called, labels != self.positive)
        if quantity == "precision":
            return people.mean(labels == self.positive, called)
        if quantity == "mean_cost":
            return self._cost(self.predicted)
        if quantity == "baseline_risk":
            return people.mean(self._baseline(label) != labels)
        if quantity == "baseline_cost":
            return self._cost(self._baseline(label))
        if quantity == "gain" and "mean cost" in label:
            return self._cost(self._baseline(label)) - self._cost(self.predicted)
        if quantity == "gain":
            return people.mean(self._baseline(label) != labels) - people.mean(wrong)
        if quantity == "novel_risk":
            return self._novel(wrong)
        if quantity == "balanced_accuracy":
            return 1 - float(np.mean([people.mean(wrong, labels == one) for one in labels]))
        if quantity == "f1":
            hits = 2 * float(people.p[called & (labels == self.positive)].sum())
            return hits / (hits + float(people.p[called != (labels == self.positive)].sum()))
        if quantity in ("auc", "brier_score", "log_loss", "calibration"):
            return self._probable(quantity, label)
        if quantity.endswith("_difference"):
            return self._difference(quantity, label.rpartition(" between slices of ")[2])
        raise AssertionError(f"no truth for {quantity}")

    def _probable(self, quantity: str, label: str) -> float:
        """Of the probabilities, exactly: sums over cells and labels."""
        people, labels = self.population, self.population.labels
        said = np.asarray(self.model.predict_proba(people.cells))
        if quantity == "brier_score":
            score = np.square(said).sum(axis=1)[:, None] - 2 * said + 1
            return people.mean(score / 2 if labels.size == 2 else score)
        if quantity == "log_loss":
            return people.mean(-np.log(np.maximum(said, 1e-3)))
        of_two = self.positive is not None or labels.size == 2
        positive = 1 if self.positive is None else self.positive
        if quantity == "auc":
            score, mass = said[:, positive], people.p / people.p.sum(axis=0)
            above = np.sign(score[:, None] - score[None, :]) / 2 + 0.5
            return float(mass[:, positive] @ above @ mass[:, 1 - positive])
        low, high = (float(x) / 100 for x in re.search(r"([\d.]+)% to ([\d.]+)%", label).groups())
        value = said[:, positive] if of_two else said.max(axis=1)
        inside = (value <= high) & ((value > low) | (low == 0))
        came = labels == positive if of_two else labels == self.predicted
        return people.mean(came, inside[:, None])

    def _difference(self, quantity: str, column: str) -> float:
        people, labels = self.population, self.population.labels
        called = self.predicted == self.positive
        happened, within = {
            "error_difference": (self.predicted != labels, True),
            "selection_difference": (called, True),
            "sensitivity_difference": (called, labels == self.positive),
        }[quantity]
        parts = Cuts.from_options(self.slices).parts(people.cells)[column].values()
        return float(np.ptp([people.mean(happened, part[:, None] & within) for part in parts]))

    def _novel(self, wrong: Any) -> float:
        """The mean error over the contents without a copy among the fit rows that as many new
        rows would meet, each once.
        """
        certify = split_rows(
            read_table(self.frame, target="y", drop=self.population.dropped).row_hashes
        ).certify
        fitted = self.frame.drop(index=certify)
        names = list(self.population.cells)
        unmet = ~self.population.cells.apply(tuple, axis=1).isin(
            set(fitted[names].itertuples(index=False, name=None))
        )
        mass = self.population.p.sum(axis=1)
        met = unmet.to_numpy() * (1 - (1 - mass) ** certify.size)
        errors = (self.population.p * wrong).sum(axis=1) / mass
        return float(met @ errors / met.sum())

    def _cost(self, answers: Any) -> float:
        is_positive, called = self.population.labels == self.positive, answers == self.positive
        return self.population.mean(np.where(is_positive, self.cost, 1.0) * (called != is_positive))

    def _baseline(self, label: str) -> Any:
        if "the baseline" in label:
            return np.asarray(self.rival.predict(self.population.cells))[:, None]
        return int(re.search(r"always answering (\d+)", label)[1])

    def _slice(self, text: str) -> Any:
        return inside(self.population.cells, text)

    def breaks(self, claim: Any) -> bool:
        """Whether the claim is untrue."""
        true = self.of(claim.quantity, claim.label.removesuffix(", mean over groups"))
        if claim.relation == "in":
            return not claim.value[0] - TINY <= true <= claim.value[1] + TINY
        return true > claim.value + TINY if claim.relation == "<=" else true < claim.value - TINY

    def breaks_sentence(self, sentence: str, baseline: str = "") -> bool:
        """Whether a number that the verdict promises is untrue, as a person reads it."""
        said = {
            "risk": re.findall(r"at most \*\*([\d.]+)% errors\*\*", sentence),
            "missed": re.findall(r"at most \*\*([\d.]+)% of 1 cases missed\*\*", sentence),
            "gain": re.findall(r"at least \*\*([\d.]+) percentage points fewer\*\*", sentence),
            "cost": re.findall(r"a mean cost of at most \*\*([\d.]+)\*\* per row", sentence),
            "saved": re.findall(r"at least \*\*([\d.]+) less\*\*", sentence),
        }
        if sentence.startswith(("Do not ship", "Nothing useful")):
            assert not any(said.values())
            return False
        assert said["risk"] or said["cost"], sentence
        wrong = [100 * self.of("risk") > float(x) + TINY for x in said["risk"]]
        wrong += [100 * (1 - self.of("sensitivity")) > float(x) + TINY for x in said["missed"]]
        wrong += [100 * self.of("gain", baseline) < float(x) - TINY for x in said["gain"]]
        wrong += [self.of("mean_cost") > float(x) + TINY for x in said["cost"]]
        wrong += [self.of("gain", baseline) < float(x) - TINY for x in said["saved"]]
        return any(wrong)


def inside(cells: pd.DataFrame, text: str) -> Any:
    """The cells of a slice, from its name: ``a ≤ 1``, ``1 < a ≤ 2``, ``a > 2``, ``a = word``,
    or ``a`` for all.
    """
    if " = " in text:
        name, word = text.split(" = ")
        return (cells[name] == word).to_numpy()
    low, name, relation, high = re.fullmatch(r"(?:(\S+) < )?(\w+)(?: (≤|>) (\S+))?", text).groups()
    values = cells[name].to_numpy()
    if relation == ">":
        return values > float(high)
    return (values > float(low or -math.inf)) & (values <= float(high or math.inf))


# --------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """Counts over trials: of verdicts and claims that were untrue, and of what was said."""

    delta: float = DELTA
    trials: int = 0
    verdict: int = 0
    together: int = 0
    headline: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    # trials in which a quantity's claim was untrue
    broken: Counter[str] = field(default_factory=Counter)
    # trials in which the quantity was claimed
    claimed: Counter[str] = field(default_factory=Counter)
    # the δ that the quantity's claims were given, summed over trials
    shares: Counter[str] = field(default_factory=Counter)

    def add(self, result: Any, truth: Truth) -> None:
        claims = result.certificate.together
        # exactly: no simulation shows shares that sum to a little more than δ
        assert sum(claim.delta for claim in claims) <= self.delta + TINY
        broken = {claim.quantity for claim in claims if truth.breaks(claim)}
        baseline = next((claim.label for claim in claims if claim.quantity == "gain"), "")
        self.trials += 1
        self.verdict += truth.breaks_sentence(result.verdict.sentence, baseline)
        self.together += bool(broken)
        self.headline += truth.breaks(claims[0])
        self.kinds[result.verdict.kind] += 1
        self.broken.update(broken)
        self.claimed.update({claim.quantity for claim in claims})
        for claim in claims:
            self.shares[claim.quantity] += claim.delta

    def enough(self, most: int) -> bool:
        """Whether the verdict, the page, the headline and each kind of claim need no more trials:
        one in `EVERY` is asked, of ``most``. A kind that is claimed so seldom that all trials would
        pass it even if it were never true is not waited for.
        """
        if self.trials % EVERY and self.trials < most:
            return False
        counts = [
            (self.verdict, self.delta),
            (self.together, self.delta),
            (self.headline, self.delta / 2),
        ]
        shares = {name: share / self.trials for name, share in self.shares.items()}
        counts += [
            (self.broken[name], share)
            for name, share in shares.items()
            if self.claimed[name] / self.trials >= mutant(share, most)
        ]
        return enough(counts, self.trials, most)

    def __str__(self) -> str:
        rates = (
            f"verdict {self.verdict / self.trials:.3f}, together {self.together / self.trials:.3f}"
        )
        each = {
            name: f"{count / self.trials:.3f} of {self.shares[name] / self.trials:.3f}"
            for name, count in self.broken.items()
        }
        return (
            f"{self.trials} audits: {rates}, headline {self.headline / self.trials:.3f}; {each};"
            f" {dict(self.kinds)}"
        )


@dataclass(frozen=True)
class Scenario:
    """One way of using `surelearn.audit`, with candidates that are quick to fit."""

    population: Population
    models: dict[str, Any]
    rows: int = 120
    trials: int = 400
    options: dict[str, Any] = field(default_factory=dict)
    rival: Any = None
    delta: float = DELTA

    def run(self, trials: int, seed: int) -> Tally:
        rng, tally = np.random.default_rng(seed), Tally(self.delta)
        for _ in range(trials):
            tally.add(*self.once(rng))
        return tally

    def run_until_clear(self, seed: int) -> Tally:
        """As `run`, until the trials so far say as much as all would: see `tests.simulation`."""
        rng, tally = np.random.default_rng(seed), Tally(self.delta)
        while tally.trials == 0 or not tally.enough(self.trials):
            tally.add(*self.once(rng))
        return tally

    def once(self, rng: np.random.Generator) -> tuple[Any, Truth]:
        Recorded.fitted.clear()
        frame = self.population.draw(rng, self.rows)
        options = {**QUICK, "delta": self.delta, **self.options}
        result = surelearn.audit(
            frame,
            target="y",
            drop=self.population.dropped,
            models=self.models,
            against=self.rival,
            ledger=False,
            **options,
        )
        truth = Truth(
            self.population,
            result.model,
            positive=options.get("positive"),
            cost=options.get("cost", 1.0),
        )
        truth.frame = frame
        truth.slices = result.certificate.facts.options.get("slices", ())
        truth.rival = None if self.rival is None else Recorded.fitted[-1]
        return result, truth


LOOKUPS = {
    "majority": recorded(Lookup()),
    "by a": recorded(Lookup(("a",))),
    "by a and b": recorded(Lookup(("a", "b"))),
    "by a, b and c": recorded(Lookup(("a", "b", "c"))),
}
PROBABLE = {
    "frequencies": recorded(Frequencies()),
    "frequencies by a": recorded(Frequencies(("a",))),
    "frequencies by a and b": recorded(Frequencies(("a", "b"))),
}
SPLIT = {"select_fraction": 0.2}
SCENARIOS = {
    "signal": Scenario(SIGNAL, LOOKUPS, 150, 240, {**SPLIT, "positive": 1, "slices": ["a"]}),
    "cross-validation": Scenario(SIGNAL, LOOKUPS, 150, 120),
    "three classes": Scenario(THREE, LOOKUPS, 120, 180, {**SPLIT, "positive": 1, "prefer": "best"}),
    "cost": Scenario(
        BLURRED, {"bayes": recorded(GaussianNB())}, 200, 120, {**SPLIT, "positive": 1, "cost": 3.0}
    ),
    "against": Scenario(SIGNAL, LOOKUPS, 120, 160, SPLIT, recorded(Lookup(("b",)))),
    "novel contents": Scenario(CONTENTS, LOOKUPS, 500, 120, SPLIT),
    "probabilities": Scenario(
        BLURRED, PROBABLE, 150, 120, {**SPLIT, "positive": 1, "slices": ["a"]}
    ),
    "probabilities of three classes": Scenario(THREE, PROBABLE, 150, 120, SPLIT),
}
SCENARIOS = {name: replace(scenario, delta=WIDE) for name, scenario in SCENARIOS.items()}
METRICS = {
    "probabilities": {"auc", "f1", "error_difference", "sensitivity_difference"},
    "probabilities of three classes": {"balanced_accuracy"},
}
OF_PROBABILITIES = {"brier_score", "log_loss", "calibration"}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_verdict_and_the_page_hold(name):
    """Of up to 240 audits as many as it takes: a page that breaks its promise so often that all
    audits would pass it with probability 0.001 is passed with at most 0.0011, and a right one is
    failed no more often than by all (see `tests.simulation`).

    δ is 50%, so that 240 audits show what 600 would at 20%: both times a headline whose true δ is
    twice its share, a share of δ/80 exceeded sevenfold, is passed with probability 0.001.
    """
    scenario = SCENARIOS[name]
    tally = scenario.run_until_clear(seed=1)
    assert at_most(tally.verdict, scenario.delta, tally.trials), tally
    assert at_most(tally.together, scenario.delta, tally.trials), tally
    assert at_most(tally.headline, scenario.delta / 2, tally.trials), tally
    for quantity, broken in tally.broken.items():  # each kind of claim within its own share of δ
        assert at_most(broken, tally.shares[quantity] / tally.trials, tally.trials), (
            quantity,
            tally,
        )
    # not so loose that the simulation could not fail
    assert tally.headline > tally.trials * scenario.delta / 8, tally
    assert tally.kinds["guaranteed"] > 0.3 * tally.trials, tally
    if name in METRICS:
        assert METRICS[name] | OF_PROBABILITIES <= set(tally.claimed), tally
    # elsewhere it is rarely planned
    assert name != "novel contents" or tally.shares["novel_risk"] > 0, tally
    # the truths are about the certified model
    result, truth = scenario.once(np.random.default_rng(0))
    assert fingerprint_model(truth.model) == result.certificate.facts.hashes["model"]


def test_mutants_of_the_metrics_break_their_promise():
    """What was measured, taken for a bound, is untrue about every other time: the truths that the
    simulation compares with can be missed.
    """
    scenario, rng, broken, trials = (
        SCENARIOS["probabilities"],
        np.random.default_rng(3),
        Counter(),
        40,
    )
    for _ in range(trials):
        result, truth = scenario.once(rng)
        for claim in result.certificate.together:
            if (
                claim.relation == "<=" and claim.quantity in OF_PROBABILITIES
            ) or claim.quantity in ("auc", "f1", "balanced_accuracy"):
                sharper = replace(claim, value=claim.measured)
            elif claim.relation == "in":
                sharper = replace(claim, value=(claim.measured - 1e-3, claim.measured + 1e-3))
            else:
                continue
            broken[claim.quantity] += truth.breaks(sharper)
    wanted = {"auc", "f1", "balanced_accuracy", *OF_PROBABILITIES, "error_difference"}
    assert all(broken[name] > trials / 5 for name in wanted), broken


@pytest.mark.slow
def test_two_models_share_the_headline_where_a_column_gives_the_target_away():
    """Of up to 160 audits as many as it takes (see `tests.simulation`), 40 at least."""
    models = {"majority": recorded(Lookup()), "by all": recorded(Lookup(None))}
    scenario = Scenario(LEAK, models, 100, options=SPLIT, delta=WIDE)
    rng, trials, broken, no_verdict, verdicts = np.random.default_rng(2), 0, 0, 0, 0
    while trials < 40 or not enough([(broken, WIDE), (verdicts, WIDE / 2)], trials, 160):
        trials += 1
        result, truth = scenario.once(rng)
        fitted = {fingerprint_model(model): Truth(LEAK, model) for model in Recorded.fitted}
        broken += any(
            fitted[claim.covers.predictor].breaks(claim) for claim in result.certificate.together
        )
        said = re.search(
            r"with it at most ([\d.]+)% errors, without it at most ([\d.]+)%;",
            result.verdict.sentence,
        )
        if said is None:
            baseline = next(
                claim.label for claim in result.certificate.together if claim.quantity == "gain"
            )
            verdicts += truth.breaks_sentence(result.verdict.sentence, baseline)
            continue
        no_verdict += 1
        both = [truth, fitted[result.certificate.together[-1].covers.predictor]]
        verdicts += any(
            100 * one.of("risk") > float(x)
            for one, x in zip(both, reversed(said.groups()), strict=True)
        )
    assert 0.2 * trials < no_verdict < 0.9 * trials
    assert at_most(broken, WIDE, trials), broken
    assert at_most(verdicts, WIDE / 2, trials), verdicts


# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_mutants_certify_rows_that_chose_and_rows_that_were_fitted():
    """The same rows, models and theorems; only which rows certify differs. Paying for the
    choice repairs the first.

    Of up to 400 tables as many as it takes for the two that keep their promise (see
    `tests.simulation`), and 200 at least: of fewer no count is 4 standard errors above 90%.
    """
    options = {"delta": DELTA, "majority": 0, "classes": NOISE.labels}
    kept = ("fixed beforehand", "chosen, and paid for")
    rng, trials, seen = np.random.default_rng(3), 0, Counter()
    while trials < 200 or not enough([(seen[name], DELTA) for name in kept], trials, 400):
        trials += 1
        table = read_table(NOISE.draw(rng, 120), target="y", drop=["u"])
        split = split_rows(table.row_hashes)
        fit, fresh = ((table.X.iloc[rows], table.y[rows]) for rows in (split.fit, split.certify))
        models = [Lookup(("c",), random_state=i).fit(*fit) for i in range(12)]
        errors = [int((model.predict(fresh[0]) != fresh[1]).sum()) for model in models]
        best, memory = models[int(np.argmin(errors))], Lookup(("a", "b", "c")).fit(*fit)
        certificates = {
            "fixed beforehand": (models[0], surelearn.certify(models[0], *fresh, **options)),
            "chosen on certify rows": (best, surelearn.certify(best, *fresh, **options)),
            "chosen, and paid for": (
                best,
                surelearn.certify(best, *fresh, **options, candidates=12),
            ),
            "certified on fit rows": (memory, surelearn.certify(memory, *fit, **options)),
        }
        for name, (model, certificate) in certificates.items():
            truth = Truth(NOISE, model)
            said = (
                claim
                for claim in certificate.together
                if claim.quantity in ("risk", "baseline_risk")
            )
            seen[name] += any(truth.breaks(claim) for claim in said)
    assert at_most(seen["fixed beforehand"], DELTA, trials), seen
    assert at_most(seen["chosen, and paid for"], DELTA, trials), seen
    assert more_than(seen["chosen on certify rows"], DELTA, trials), seen
    assert more_than(seen["certified on fit rows"], 0.9, trials), seen


@pytest.mark.slow
def test_twenty_seeds_on_pure_noise_do_not_beat_a_coin(tmp_path, monkeypatch):
    """In at most δ of the data sets; each seed gives the user another model, and none gives them
    other rows.

    A ledger that did not charge fools at least 74% of 160 data sets (asserted below, from their
    counts of errors alone; those of audited ones are the audits' own), and would pass 100 audited
    with probability 9e-4 at most. Data sets are audited until they say as much (see
    `tests.simulation`): then it passes with probability 1e-3 at most, and a right one is failed
    with 5e-5 at most. With δ = 40% half as many audits show it as with 20%.
    """
    # hundreds of ledgers need not outlive a power cut: files are tested elsewhere
    monkeypatch.setattr("os.fsync", lambda _: None)
    rng, delta, data_sets, most, seeds = np.random.default_rng([4, 0]), 0.4, 160, 100, 20
    audited, fooled, uncharged, naive = 0, 0, 0, 0
    for number in range(data_sets):
        frame = NOISE.draw(rng, 96)
        rows = frame.to_records(index=False)  # quicker than a table
        split = split_rows(read_table(frame, target="y", drop=["u"]).row_hashes)
        errors = _errors_by_seed(rows[split.fit], rows[split.certify], range(seeds))
        uncharged += bounds.clopper_pearson(min(errors), split.certify.size, delta / 2) < 0.5 - TINY
        naive += any(_lucky_split(rows, rng, seed, delta) for seed in range(seeds))
        if audited < number or enough([(fooled, delta)], audited, most):
            continue
        lucky, hashes = False, set()
        for seed in range(seeds):
            models = {"by b and c": recorded(Lookup(("b", "c"), random_state=seed))}
            options = {**QUICK, **SPLIT, "delta": delta, "seed": seed}
            options["ledger"] = tmp_path / f"{number}.json"
            certificate = surelearn.audit(
                frame, target="y", drop=["u"], models=models, **options
            ).certificate
            claims = {claim.quantity: claim for claim in certificate.together}
            lucky |= claims["risk"].value < 0.5 - TINY or claims["gain"].value > TINY
            assert claims["risk"].inputs["errors"] == errors[seed]
            hashes.add(certificate.facts.hashes["rows"])
            if lucky:  # fooled is fooled
                break
        assert len(hashes) == 1
        audited, fooled = audited + 1, fooled + lucky
    assert at_most(fooled, delta, audited), (fooled, audited, uncharged, naive)
    # what the ledger is for
    assert uncharged > 0.74 * data_sets, (fooled, audited, uncharged, naive)
    # and the hash
    assert naive > 0.85 * data_sets, (fooled, audited, uncharged, naive)


def _errors_by_seed(fit: np.recarray, fresh: np.recarray, seeds: Sequence[int]) -> list[int]:
    """How often the model of each seed errs on the rows that the audit holds back."""
    models = (Lookup(("b", "c"), random_state=seed).fit(fit, fit["y"]) for seed in seeds)
    return [int((model.predict(fresh) != fresh["y"]).sum()) for model in models]


def _lucky_split(rows: np.recarray, rng: np.random.Generator, seed: int, delta: float) -> bool:
    """The mutant: another third of the rows certifies for every seed, each at δ."""
    order, held = rng.permutation(len(rows)), len(rows) // 3
    (errors,) = _errors_by_seed(rows[order[held:]], rows[order[:held]], [seed])
    return bounds.clopper_pearson(errors, held, delta / 2) < 0.5


# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_groups_hold_where_rows_do_not():
    """Of up to 350 audits as many as it takes (see `tests.simulation`), 100 at least; the mutants
    break their promise so often that these show it.
    """
    models = {
        "majority": recorded(Lookup()),
        "by z": recorded(Lookup(("z",))),
        "by s and z": recorded(Lookup(("s", "z"))),
    }
    grouped = Scenario(PATIENTS, models, 90, options={**SPLIT, "group": "patient"})
    rng, most, tally, counted, by_rows = np.random.default_rng(5), 350, Tally(), 0, 0
    while tally.trials < 100 or not tally.enough(most):
        result, truth = grouped.once(rng)
        assert (
            result.verdict.kind == "do not ship" or "For a new patient" in result.verdict.sentence
        )
        tally.add(result, truth)
        # Mutants: the same certify rows counted as if independent; and, on some data, an audit that
        # is told of no groups.
        facts = result.certificate.facts
        errors = round(np.mean(facts["risk.means"]) * facts["rows"])  # groups have equal sizes
        counted += (
            truth.of("risk") > bounds.clopper_pearson(errors, facts["rows"], DELTA / 2) + TINY
        )
        if tally.trials <= 100:
            result, truth = Scenario(
                PATIENTS, models, 90, options={**SPLIT, "independent": True}
            ).once(rng)
            by_rows += truth.breaks(result.certificate.together[0])
    assert at_most(tally.verdict, DELTA, tally.trials), tally
    assert at_most(tally.together, DELTA, tally.trials), tally
    assert at_most(tally.headline, DELTA / 2, tally.trials), tally
    assert more_than(counted, DELTA / 2, tally.trials), (counted, tally)
    assert more_than(by_rows, DELTA, 100), by_rows


# --------------------------------------------------------------------------------------------------

NOISE_WIDTH = 1.0  # the target is 2a + b plus a uniform number of at most this size


@dataclass
class Offsets:
    """How far a fitted model is from the noise-free target, in every cell; the noise is uniform
    on ±`NOISE_WIDTH`.
    """

    cells: pd.DataFrame
    model: Any

    @cached_property
    def offsets(self) -> Any:
        return np.abs(2 * self.cells.a + self.cells.b - self.model.predict(self.cells)).to_numpy()

    def covered(self, radius: float) -> float:
        """The probability that a new target lies within the radius of its prediction."""
        low, high = (
            np.maximum(self.offsets - radius, -NOISE_WIDTH),
            np.minimum(self.offsets + radius, NOISE_WIDTH),
        )
        return float(np.mean(np.maximum(high - low, 0)) / (2 * NOISE_WIDTH))

    def mean_error(self, within: Any = slice(None)) -> float:
        d = self.offsets[within]
        return float(
            np.mean(np.where(d <= NOISE_WIDTH, (NOISE_WIDTH**2 + d**2) / (2 * NOISE_WIDTH), d))
        )

    def breaks(self, claim: Any, alpha: float) -> bool:
        if claim.quantity == "error_quantile":
            return self.covered(claim.value) < 1 - alpha - TINY
        if claim.quantity == "mean_loss":
            return self.mean_error() > claim.value + TINY
        assert claim.quantity == "slice_loss"
        return (
            self.mean_error(
                inside(self.cells, claim.label.removeprefix("mean absolute loss where "))
            )
            > claim.value + TINY
        )


@pytest.mark.slow
@pytest.mark.parametrize("loss_bound", [None, 9.0])
def test_prediction_intervals_and_mean_errors_hold(loss_bound):
    """Of up to 160 audits as many as it takes (see `tests.simulation`), 40 at least."""
    models = {
        "median": recorded(LookupMean()),
        "by a": recorded(LookupMean(("a",))),
        "by a and b": recorded(LookupMean(("a", "b"))),
        "by a, b and c": recorded(LookupMean(("a", "b", "c"))),
    }
    rng, alpha, share = np.random.default_rng(6), 0.15, WIDE if loss_bound is None else WIDE / 2
    trials, said, headline, together = 0, 0, 0, 0
    while trials < 40 or not enough(
        [(said, share), (headline, share), (together, WIDE)], trials, 160
    ):
        trials += 1
        a, b, c = rng.integers(3, size=120), rng.integers(3, size=120), rng.integers(8, size=120)
        y = 2 * a + b + rng.uniform(-NOISE_WIDTH, NOISE_WIDTH, size=120)
        options = {**QUICK, **SPLIT, "delta": WIDE, "alpha": alpha, "loss_bound": loss_bound}
        frame = pd.DataFrame({"a": a, "b": b, "c": c, "y": y})
        result = surelearn.audit(frame, target="y", models=models, ledger=False, **options)
        truth, claims = Offsets(NOISE.cells, result.model), result.certificate.together
        radius = float(
            re.search(r"fall within \*\*([\d.,]+) of the truth\*\*", result.verdict.sentence)[
                1
            ].replace(",", "")
        )
        said += truth.covered(radius) < 1 - alpha
        headline += truth.breaks(claims[0], alpha)
        together += any(truth.breaks(claim, alpha) for claim in claims)
    assert at_most(said, share, trials), said
    assert at_most(headline, share, trials), headline
    assert at_most(together, WIDE, trials), together
    assert headline > trials * share / 4, headline
