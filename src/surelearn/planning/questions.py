"""The five questions, and `plan`, which answers one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.stats import binom

from surelearn import stated
from surelearn.bounds import conformal_rank_pac
from surelearn.plain import percent_sure, show
from surelearn.planning.answers import Need, Plan
from surelearn.planning.checks import (
    check_counts,
    check_level,
    in_errors,
    in_percent,
)
from surelearn.planning.gains import GainGame, gain_game
from surelearn.planning.rates import (
    OF_SETS,
    SHARES,
    RateTest,
    interval_rows,
    risk_test,
    rows_holding,
    sensitivity_test,
)
from surelearn.planning.tables import Allotment, allotment, fraction_for, total_for
from surelearn.types import Array


class _Question:
    """What a plan asks of each kind of claim; δ is always the claim's own."""

    share: ClassVar[float]
    labels: ClassVar[tuple[str, str]] = ("on the audit's page", "as the only claim")
    measure: ClassVar[str] = "chance that it is certified"
    goal: float

    def words(self, sure: str) -> str:
        """The question, after "To certify"."""
        raise NotImplementedError

    def rows(self, delta: float) -> int:
        """The number of rows from which the claim is certified with the wanted power."""
        raise NotImplementedError

    def values(self, n: Array, delta: float) -> Array:
        """What the curves show, at numbers of rows."""
        raise NotImplementedError

    def columns(self, n: Array, delta: float) -> dict[str, Array]:  # noqa: ARG002
        """The columns of the table, but for the last."""
        return {"rows": n}

    def notes(self) -> Iterator[str]:
        """What the reader should know."""
        raise NotImplementedError

    def chance(self, n: int, delta: float) -> str:
        """The value at one number of rows."""
        return show(float(self.values(np.array([float(n)]), delta)[0]), "rate", ">=")

    def text(self, n: int, delta: float) -> str:
        """What follows the number of rows."""
        return f"labeled rows   (chance {self.chance(n, delta)})"

    def room(self, n: int, delta: float) -> str:  # noqa: ARG002
        """What n rows allow."""
        return ""

    def more(self, held: int, need: Need) -> int:  # noqa: ARG002
        """How many held-back rows would be enough, where ``held`` are not."""
        return need.rows

    def in_audit(self, held: int, needs: tuple[Need, ...]) -> tuple[str, int]:
        """What so many held-back rows can do, and how many would be enough."""
        level = needs[0].delta
        enough = self.values(np.array([float(held)]), level)[0] >= self.goal
        says = (
            f"{self.room(held, level)}chance {self.chance(held, level)},"
            f" {'enough' if enough else 'not enough'}"
        )
        return says, held if enough else self.more(held, needs[0])

    def points(self, rows: int, most: int) -> Array:  # noqa: ARG002
        """Numbers of rows at which the curve of one answer is drawn; ``most`` is the largest
        answer.
        """
        return np.unique(np.linspace(1, 2 * most, 400).round())

    def table_rows(self, rows: int) -> Array:
        """A few numbers of rows around the answer, to two digits."""
        return np.unique(
            [
                rows,
                *(max(1.0, float(f"{rows * factor:.1e}")) for factor in (0.25, 0.5, 0.75, 1.5, 2)),
            ]
        ).round()


@dataclass(frozen=True)
class _Errors(_Question):
    limit: float
    expected: float
    goal: float

    share = SHARES["risk"]
    labels = ("as the audit's headline", "as the only claim")

    def words(self, sure: str) -> str:
        expecting = in_percent(self.expected) if self.expected else "none"
        return f"at most {in_percent(self.limit)} errors, {sure}, expecting {expecting}"

    def test(self, delta: float) -> RateTest:
        return risk_test(self.limit, self.expected, delta)

    def rows(self, delta: float) -> int:
        return self.test(delta).rows(self.goal)

    def values(self, n: Array, delta: float) -> Array:
        return self.test(delta).power(n)

    def columns(self, n: Array, delta: float) -> dict[str, Array]:
        return {"rows": n, "may err": self.test(delta).allowed(n)}

    def notes(self) -> Iterator[str]:
        yield "The headline has half of delta; the page's other claims share the rest."
        if self.expected:
            goal = in_percent(self.goal)
            yield (
                "Errors are whole numbers, so the chance goes up and down; with more rows it stays"
                f" at {goal} or more."
            )
        else:
            yield (
                "No error is allowed among so few rows: expect a risk above 0 to leave room for"
                " some."
            )

    def room(self, n: int, delta: float) -> str:
        count = int(self.test(delta).allowed(n))
        return (
            "too few even without an error; "
            if count < 0
            else f"up to {count:,} of them may be wrong; "
        )

    def more(self, held: int, need: Need) -> int:
        return self.test(need.delta).next_rows(held, self.goal)


@dataclass(frozen=True)
class _Recognized(_Question):
    least: float
    expected: float
    goal: float
    prevalence: float | None

    share = SHARES["sensitivity"]

    def words(self, sure: str) -> str:
        expecting = in_percent(self.expected) if self.expected < 1 else "all"
        return (
            f"that at least {in_percent(self.least)} of positives are recognized, {sure}, expecting"
            f" {expecting}"
        )

    def test(self, delta: float) -> RateTest:
        return sensitivity_test(self.least, self.expected, delta)

    def rows(self, delta: float) -> int:
        positives = self.test(delta).rows(self.goal)
        return (
            positives
            if self.prevalence is None
            else rows_holding(positives, self.prevalence, self.goal)
        )

    def values(self, n: Array, delta: float) -> Array:
        test = self.test(delta)
        if self.prevalence is None:
            return test.power(n)
        return np.array([_mixed_power(test, each, self.prevalence) for each in n])

    def columns(self, n: Array, delta: float) -> dict[str, Array]:
        if self.prevalence is None:
            return {"positive rows": n, "may be missed": self.test(delta).allowed(n)}
        return {"rows": n, "positive, about": np.round(n * self.prevalence)}

    def notes(self) -> Iterator[str]:
        yield (
            "The headline has half of delta; sensitivity is one of eight items (nine with --slice)"
            " that share the rest."
        )
        if self.prevalence is not None:
            yield (
                f"If {in_percent(self.prevalence)} of rows are positive, so many hold enough"
                f" positive ones with probability {in_percent(self.goal)};\nthe chance counts both:"
                " how many are positive, and how many of those are missed."
            )

    def text(self, n: int, delta: float) -> str:
        if self.prevalence is None:
            return f"positive rows   (chance {self.chance(n, delta)})"
        return (
            f"labeled rows for {self.test(delta).rows(self.goal):,} positive ones   (chance"
            f" {self.chance(n, delta)})"
        )

    def room(self, n: int, delta: float) -> str:  # noqa: ARG002
        return f"about {n * (self.prevalence or 0):,.0f} of them positive; "

    def points(self, rows: int, most: int) -> Array:
        return (
            super().points(rows, most)
            if self.prevalence is None
            else np.unique(np.linspace(1, 2 * most, 60).round())
        )


def _mixed_power(test: RateTest, n: float, prevalence: float) -> float:
    """The power with n rows of which Bin(n, prevalence) are positive."""
    if n < 1:
        return 0.0
    low, high = binom.ppf(1e-9, n, prevalence), binom.isf(1e-9, n, prevalence)
    # from thousands on, every second, third, … is enough
    positives = np.arange(low, high + 1, 1 + (high - low) // 4000)
    weights = binom.pmf(positives, n, prevalence)
    return float(weights @ test.power(positives) / weights.sum())


@dataclass(frozen=True)
class _Interval(_Question):
    alpha: float
    goal: float

    share = SHARES["interval"]
    labels = (
        "as the audit's headline, with --loss-bound",
        "as the only claim, as in an audit without it",
    )
    measure = "share of them that the interval must contain"

    def words(self, sure: str) -> str:
        return f"an interval that contains {in_percent(self.goal)} of new targets, {sure}"

    def rows(self, delta: float) -> int:
        return interval_rows(self.alpha, delta=delta, share=1.0)

    def values(self, n: Array, delta: float) -> Array:
        return np.asarray(conformal_rank_pac(n, self.alpha, delta)) / n

    def columns(self, n: Array, delta: float) -> dict[str, Array]:
        return {"rows": n, "inside": np.asarray(conformal_rank_pac(n, self.alpha, delta))}

    def notes(self) -> Iterator[str]:
        falls = f"as the share falls to {in_percent(self.goal)}"
        yield f"With fewer rows no interval is certified; with more it narrows, {falls}."

    def text(self, n: int, delta: float) -> str:  # noqa: ARG002
        return "labeled rows"

    def in_audit(self, held: int, needs: tuple[Need, ...]) -> tuple[str, int]:
        says = []
        for need, case in zip(needs, ("with --loss-bound", "without"), strict=True):
            rank = conformal_rank_pac(held, self.alpha, need.delta) if held >= need.rows else 0
            must = (
                f"the interval must contain {rank:,.0f} of them"
                f" ({show(rank / max(held, 1), 'rate')})"
            )
            says.append(f"{case}, {must if rank else 'too few for an interval'}")
        return "\n  ".join(says), max(held, needs[0].rows)

    def points(self, rows: int, most: int) -> Array:
        return np.unique(np.linspace(rows, 50 * most, 400).round())

    def table_rows(self, rows: int) -> Array:
        return np.array([rows, *(float(f"{rows * factor:.0e}") for factor in (2, 5, 15, 50, 150))])


@dataclass(frozen=True)
class _Sets(_Interval):
    share = SHARES["sets"]
    labels = _Question.labels
    measure = "share of them whose set must hold the truth"

    def words(self, sure: str) -> str:
        return f"prediction sets that hold the true label of {in_percent(self.goal)} of new rows, {sure}"

    def columns(self, n: Array, delta: float) -> dict[str, Array]:
        return {"rows": n, "covered": np.asarray(conformal_rank_pac(n, self.alpha, delta))}

    def notes(self) -> Iterator[str]:
        yield "The headline has half of delta; prediction sets have half of the rest."
        falls = f"as the share falls to {in_percent(self.goal)}"
        yield f"With fewer rows no set is certified; with more they hold fewer labels, {falls}."

    def in_audit(self, held: int, needs: tuple[Need, ...]) -> tuple[str, int]:
        need = needs[0]
        if held < need.rows:
            return "too few for prediction sets", need.rows
        rank = conformal_rank_pac(held, self.alpha, need.delta)
        return (
            f"the sets of {rank:,.0f} of them ({show(rank / held, 'rate')}) must hold the truth",
            held,
        )


@dataclass(frozen=True)
class _Gain(_Question):
    least: float
    expected: float
    goal: float
    disagreement: float

    share = SHARES["gain"]

    def words(self, sure: str) -> str:
        least = f"at {'least' if self.least >= 0 else 'most'} {in_errors(self.least)}"
        expecting = in_errors(self.expected) if self.expected else "as many"
        return f"{least} errors per 100 rows than another model, {sure}, expecting {expecting}"

    def game(self, delta: float) -> GainGame:
        return gain_game(self.least, self.expected, self.disagreement, delta)

    def rows(self, delta: float) -> int:
        return self.game(delta).rows(self.goal)

    def values(self, n: Array, delta: float) -> Array:
        game = self.game(delta)
        return np.array([game.power(int(each)) if each >= 1 else 0.0 for each in n])

    def notes(self) -> Iterator[str]:
        yield (
            "The headline has half of delta; a gain is one of six items (eight with a positive"
            " class; one more with\n--slice) that share the rest."
        )
        yield (
            f"Exactly one of the two models errs on {in_percent(self.disagreement)} of rows."
            " Chances are simulated, with a fixed seed; rows are found to 1%."
        )

    def chance(self, n: int, delta: float) -> str:
        if n < 1:
            return "0%"
        return f"{super().chance(n, delta)} ± {show(self.game(delta).error(n), 'rate', '<=')}"

    def points(self, rows: int, most: int) -> Array:
        return np.unique(np.linspace(max(1, rows / 4), 2 * most, 8).round())

    def table_rows(self, rows: int) -> Array:
        return super().table_rows(rows)[:-1]


def plan(
    max_risk: float | None = None,
    expected_risk: float | None = None,
    *,
    interval: float | None = None,
    min_sensitivity: float | None = None,
    expected_sensitivity: float | None = None,
    prevalence: float | None = None,
    min_gain: float | None = None,
    expected_gain: float | None = None,
    disagreement: float | None = None,
    delta: float = 0.05,
    candidates: int = 1,
    power: float = 0.8,
    rows: int | None = None,
    sets: float | None = None,
) -> Plan:
    """How many labeled rows to hold back; exactly one of ``max_risk``, ``interval``,
    ``min_sensitivity``, ``min_gain``, or ``sets`` alone.

    Parameters
    ----------
    max_risk, expected_risk : certify errors of at most the first, expecting the second (none); see
        `rows_needed`
    interval : certify a prediction interval that misses at most this part α of new targets; see
        `interval_rows`
    min_sensitivity, expected_sensitivity, prevalence : certify that so many positives are
        recognized, expecting the second (all); with the part of rows that are positive the answer
        is in rows; see `sensitivity_rows`, `rows_holding`
    min_gain, expected_gain, disagreement : certify so many fewer errors than another model's; see
        `gain_power`
    delta, candidates, power : see `rows_needed`
    rows : also say what an audit of a table of so many rows can do
    sets : certify prediction sets that miss the true label of at most this part of new rows; beside
        another question: the page has such sets, too, which have half of what its headline leaves
        of δ

    Examples
    --------
    >>> plan(0.05, 0.02).needs[0]
    Need(label="as the audit's headline", delta=0.025, rows=338, text='labeled rows   (chance 85.6%)')
    >>> print(plan(0.05, 0.02, rows=1000).allotment)
    Of 1,000 rows the audit fits on 700 and holds back 300:
      up to 7 of them may be wrong; chance 74.5%, not enough
      enough would be --certify 0.312, or 1,138 rows in all
    """
    check_level(delta, candidates)
    alpha = None if sets is None else stated.fraction("sets", sets)
    asked = _question(
        {"max_risk": max_risk, "expected_risk": expected_risk},
        {"interval": interval},
        {
            "min_sensitivity": min_sensitivity,
            "expected_sensitivity": expected_sensitivity,
            "prevalence": prevalence,
        },
        {"min_gain": min_gain, "expected_gain": expected_gain, "disagreement": disagreement},
        power=stated.fraction("power", power),
        alone=None if alpha is None else _Sets(alpha, 1 - alpha),
    )
    if alpha is not None and isinstance(asked, _Interval) and not isinstance(asked, _Sets):
        raise ValueError("sets are of labels, and interval is about numbers: leave out one")
    beside = alpha is not None and asked.share < SHARES["risk"] and not isinstance(asked, _Sets)
    if rows is not None:
        check_counts(rows, 1, "rows")
        if isinstance(asked, _Recognized) and asked.prevalence is None:
            raise ValueError("rows needs prevalence here: state the part of rows that are positive")
    answers = []
    own = asked.share * (1 - OF_SETS) if beside else asked.share
    for label, share in zip(asked.labels, (own, 1.0), strict=True):
        level = check_level(delta, candidates, share)
        n = asked.rows(level)
        said = label if candidates == 1 else label.replace("the audit's", "a certificate's")
        answers.append(Need(label=said, delta=level, rows=n, text=asked.text(n, level)))
    needs, notes = tuple(answers), list(asked.notes())
    if beside:
        notes.append("Prediction sets have half of what the headline leaves of delta.")
    if candidates > 1:
        notes.append(
            f"For the best of {candidates:,} models compared on these same rows delta is divided by"
            f" {candidates:,}.\nAn audit compares them on other rows: there it is 1."
        )
    n, level = asked.table_rows(needs[0].rows), needs[0].delta
    columns = {**asked.columns(n, level), asked.measure: asked.values(n, level)}
    return Plan(
        question=f"To certify {asked.words(f'{percent_sure(delta)} sure')}",
        needs=needs,
        header=tuple(columns),
        table=tuple(zip(*(column.tolist() for column in columns.values()), strict=True)),
        measure=asked.measure,
        goal=asked.goal,
        notes=tuple(notes),
        allotment=None if rows is None else _allot(asked, int(rows), needs),
        asked=asked,
    )


def _allot(asked: _Question, rows: int, needs: tuple[Need, ...]) -> Allotment:
    fit, select, certify = allotment(rows)
    says, enough = asked.in_audit(certify, needs)
    more = (
        {}
        if enough == certify
        else {"fraction": fraction_for(enough, rows), "total": total_for(needs[0].rows)}
    )
    return Allotment(
        rows=rows, fit=fit, select=select, certify=certify, says=says, enough=not more, **more
    )


def _question(*groups: dict[str, Any], power: float, alone: _Question | None = None) -> _Question:
    """The one question that was asked; each group's first name asks it, the others only belong
    to it. ``alone``: the question where no other is asked.
    """
    asked = [group for group in groups if next(iter(group.values())) is not None]
    names = [next(iter(group)) for group in asked]
    if len(asked) > 1:
        raise ValueError(f"one question at a time: state {' or '.join(names)}, not both")
    for group in groups:
        for name, value in group.items():
            if value is not None and group not in asked:
                raise ValueError(
                    f"{name} belongs to {next(iter(group))}: state that, or leave {name} out"
                )
    if not asked and alone is not None:
        return alone
    if not asked:
        raise ValueError(
            "say what to certify: state max_risk, interval, min_sensitivity, min_gain or sets"
        )
    given = asked[0]
    if names == ["max_risk"]:
        test = risk_test(
            given["max_risk"],
            0.0 if given["expected_risk"] is None else given["expected_risk"],
            0.5,
        )
        return _Errors(test.most, test.expected, power)
    if names == ["interval"]:
        alpha = stated.fraction("interval", given["interval"])
        return _Interval(alpha, 1 - alpha)
    if names == ["min_sensitivity"]:
        least, expected, prevalence = given.values()
        expected = 1.0 if expected is None else expected
        sensitivity_test(least, expected, 0.5)
        return _Recognized(
            least,
            expected,
            power,
            None if prevalence is None else stated.fraction("prevalence", prevalence),
        )
    if missing := [name for name, value in given.items() if value is None]:
        raise ValueError(
            f"min_gain needs {' and '.join(missing)}: state what you expect of the two models"
        )
    game = gain_game(given["min_gain"], given["expected_gain"], given["disagreement"], 0.5)
    return _Gain(game.least, game.expected, power, game.disagreement)
