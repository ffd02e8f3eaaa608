"""How many labelled rows a certificate needs, and how likely it then comes out as wished.

The rows are those held back to certify: the model has not seen them. Four questions: an error rate of at most so much, a
prediction interval, a sensitivity of at least so much, a gain over another model. Each is answered for the part of δ that
the claim has on an audit's page (`SHARES`) and for a certificate of that claim alone, which has all of δ.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import betaincc
from scipy.stats import binom, norm

from surelearn.bounds import clopper_pearson, clopper_pearson_interval, clopper_pearson_lower, conformal_rank_pac
from surelearn.bounds.holdout import predictable_bets
from surelearn.plain import percent_sure, show
from surelearn.selection.split import certify_fraction, select_fraction

__all__ = [
    "SHARES",
    "Allotment",
    "Curve",
    "Need",
    "Plan",
    "allotment",
    "gain_power",
    "gain_rows",
    "interval_rows",
    "plan",
    "power",
    "rows_holding",
    "rows_needed",
    "sensitivity_rows",
]

Array = npt.NDArray[np.float64]

#: A claim's part of δ on an audit's page (`surelearn.certification`). The headline, errors or interval, has half; the other
#: items divide the other half equally. With a positive class of two these are sensitivity, specificity, precision, gain,
#: the baseline's errors and the slices: a twelfth each. Without one they are the classes, gain, the baseline's errors and
#: the slices: an eighth. An interval without a stated loss bound is a page's only claim and has all of δ.
SHARES = {"risk": 1 / 2, "interval": 1 / 2, "sensitivity": 1 / 12, "gain": 1 / 8}

MOST_ROWS = 10**9
MOST_SIMULATED = 50_000
_REPEATS = 1000


@dataclass(frozen=True, kw_only=True)
class _Rate:
    """A binomial claim: failures of at most ``most`` at level δ, where in truth a part ``expected`` of rows fails.

    With ``least`` the claim is a success rate of at least that, and ``most`` is 1 − least.
    """

    most: float
    expected: float
    delta: float
    least: float | None = None

    def holds(self, failures: Array, n: Array) -> npt.NDArray[np.bool_]:
        """Whether the bound from so many failures among n rows is the wished one, as the theorem computes it."""
        valid = (failures >= 0) & (failures < n)
        k, n = np.where(valid, failures, 0.0), np.maximum(n, 1.0)
        if self.least is None:
            return valid & (np.asarray(clopper_pearson(k, n, self.delta)) <= self.most)
        return valid & (np.asarray(clopper_pearson_lower(n - k, n, self.delta)) >= self.least)

    def allowed(self, n: npt.ArrayLike) -> Array:
        """The most failures that n rows may contain; −1 where not even none is few enough."""
        n = np.asarray(n, dtype=float)
        guess = np.where(n > 0, binom.ppf(self.delta, np.maximum(n, 1.0), self.most), 0.0) - 1
        best = np.maximum(guess - 2, -1.0)
        for k in (guess - 1, guess, guess + 1):  # ties are decided by the theorem itself
            best = np.where(self.holds(k, n), k, best)
        return best

    def power(self, n: npt.ArrayLike) -> Array:
        """The probability that n rows certify the claim."""
        n = np.asarray(n, dtype=float)
        k = self.allowed(n)
        return np.where(k < 0, 0.0, binom.cdf(np.maximum(k, 0.0), np.maximum(n, 1.0), self.expected))

    def first_rows(self, k: Array) -> Array:
        """n_k, the fewest rows that may contain k failures."""
        near = np.ceil(self._turning(k))
        best = near + 1
        for n in (near, near - 1):
            best = np.where(self.holds(k, n), n, best)
        return best

    def rows(self, power: float) -> int:
        """The fewest rows from which on the power never falls below ``power``.

        From n_k to n_{k+1} − 1 rows, k failures are allowed and the power P(Bin(n, expected) ≤ k) falls with n. So the
        answer is n_{k+1} for the last k whose power at n_{k+1} − 1 is too small. That lowest power is at least
        P(Bin(ν, expected) ≤ k) at the real number ν ≥ n_{k+1} − 1 with P(Bin(ν, most) ≤ k + 1) = δ, which grows with k:
        the first k where this suffices is found by halving, and then the counts before it are looked at downwards.
        """
        end = self._first(lambda k: betaincc(k + 1, self._turning(k + 1) - k, self.expected) >= power)
        failing, size = -1, 16
        while end > 0 and failing < 0:
            counts = np.arange(max(end - size, 0), end, dtype=float)
            lowest = binom.cdf(counts, self.first_rows(counts + 1) - 1, self.expected)
            failing = int(counts[lowest < power][-1]) if (lowest < power).any() else -1
            end, size = int(counts[0]), 2 * size
        return self._checked(self.first_rows(np.array(failing + 1.0)))

    def next_rows(self, n: int, power: float) -> int:
        """The fewest rows, more than n, that reach ``power``, where n do not; with a few more it may be lost again.

        It is reached at some n_k, where the power is at most that at the real number ν_k ≤ n_k, which grows with k.
        """
        start = self._first(lambda k: betaincc(k + 1, np.maximum(self._turning(k) - 0.02 - k, 1e-9), self.expected) >= power)
        start, size = max(start, int(self.allowed(n)) + 1), 16
        while True:
            rows = self.first_rows(np.arange(start, start + size, dtype=float))
            reached = self.power(rows) >= power
            if reached.any():
                return self._checked(rows[reached][0])
            start, size = start + size, 2 * size

    def _first(self, true: Callable[[Array], Any]) -> int:
        """The first count for which a condition is true that stays true from there on, by doubling and halving."""
        low, high = -1, 0
        while not true(np.array(float(high))):
            self._checked(self._turning(np.array(float(high))))
            low, high = high, 2 * high + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if true(np.array(float(middle))) else (middle, high)
        return high

    def _checked(self, rows: Array) -> int:
        if rows <= MOST_ROWS:
            return int(rows)
        claim = f"max_risk {self.most:g} when expected_risk is {self.expected:g}"
        if self.least is not None:
            claim = f"min_sensitivity {self.least:g} when expected_sensitivity is {1 - self.expected:g}"
        raise ValueError(f"more than {MOST_ROWS:,} rows are needed to certify {claim}: state a wider gap")

    def _turning(self, k: Array) -> Array:
        """The real n with P(Bin(n, most) ≤ k) = δ, or up to 0.01 more; the bracket's end is a Chernoff bound."""
        log = math.log(1 / self.delta)
        low, high = k, (k + log + np.sqrt(log**2 + 2 * k * log)) / self.most + 1
        while np.any(high - low > 0.01):
            middle = (low + high) / 2
            above = betaincc(k + 1, middle - k, self.most) > self.delta
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return high


def rows_needed(
    max_risk: float = 0.05,
    expected_risk: float = 0.0,
    *,
    delta: float = 0.05,
    candidates: int = 1,
    share: float = 0.5,
    power: float = 0.8,
) -> int:
    """The fewest held-back rows from which on errors of at most ``max_risk`` are certified with probability ``power``.

    Exact: the power is a sawtooth in the number of rows, and with the answer or any larger number it is at least ``power``.

    Parameters
    ----------
    max_risk : the error rate to certify, by `surelearn.bounds.clopper_pearson`
    expected_risk : the error rate that the model in truth has
    delta : failure probability of the whole certificate
    candidates : models compared by their errors *on these rows*; an audit compares on other rows, so there it is 1
    share : the claim's part of δ: half for an audit's headline, 1 for a certificate's only claim

    Examples
    --------
    >>> rows_needed(0.05), rows_needed(0.05, share=1.0)  # no error: ln 0.025 / ln 0.95 = 71.9, ln 0.05 / ln 0.95 = 58.4
    (72, 59)
    >>> rows_needed(0.05, 0.02)
    338
    """
    return _risk(max_risk, expected_risk, _level(delta, candidates, share)).rows(_fraction("power", power))


def power(
    n: npt.ArrayLike,
    max_risk: float = 0.05,
    expected_risk: float = 0.0,
    *,
    delta: float = 0.05,
    candidates: int = 1,
    share: float = 0.5,
) -> Any:
    """The probability that n held-back rows certify errors of at most ``max_risk``; see `rows_needed`.

    Examples
    --------
    >>> power([71, 72])
    array([0., 1.])
    >>> round(power(338, 0.05, 0.02), 4)
    0.8561
    """
    chances = _risk(max_risk, expected_risk, _level(delta, candidates, share)).power(_counts(n))
    return chances.item() if chances.ndim == 0 else chances


def sensitivity_rows(
    min_sensitivity: float,
    expected_sensitivity: float = 1.0,
    *,
    delta: float = 0.05,
    candidates: int = 1,
    share: float = SHARES["sensitivity"],
    power: float = 0.8,
) -> int:
    """The fewest held-back *positive* rows from which on a sensitivity of ``min_sensitivity`` is certified.

    Any rate of successes, with `surelearn.bounds.clopper_pearson_lower`; otherwise as `rows_needed`.

    Examples
    --------
    >>> sensitivity_rows(0.9, share=1.0)  # ln 0.05 / ln 0.9 = 28.4
    29
    >>> sensitivity_rows(0.9, 0.95)
    381
    """
    test = _sensitivity(min_sensitivity, expected_sensitivity, _level(delta, candidates, share))
    return test.rows(_fraction("power", power))


def rows_holding(positives: int, prevalence: float, power: float = 0.8) -> int:
    """The fewest rows that hold so many positives with probability ``power``, where a part ``prevalence`` is positive.

    Examples
    --------
    >>> rows_holding(1, 0.1)  # 0.9¹⁵ = 0.206, 0.9¹⁶ = 0.185
    16
    """
    prevalence, power = _fraction("prevalence", prevalence), _fraction("power", power)
    low, high = positives - 1, max(positives, 1)
    while binom.sf(positives - 1, high, prevalence) < power:
        low, high = high, 2 * high
        if low > MOST_ROWS:
            raise ValueError(f"prevalence {prevalence:g} is so small that more than {MOST_ROWS:,} rows are needed")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if binom.sf(positives - 1, middle, prevalence) < power else (low, middle)
    return high


def interval_rows(alpha: float = 0.1, *, delta: float = 0.05, candidates: int = 1, share: float = 0.5) -> int:
    """The fewest held-back rows for a prediction interval that contains at least 1 − α of new targets.

    With n rows even the largest error seen covers too little with probability (1 − α)ⁿ, which must not exceed δ; with
    fewer rows `surelearn.bounds.conformal_rank_pac` is infinite.

    Examples
    --------
    >>> interval_rows(0.1), interval_rows(0.1, share=1.0)  # ln 0.025 / ln 0.9 = 35.01, ln 0.05 / ln 0.9 = 28.4
    (36, 29)
    """
    alpha, level = _fraction("interval", alpha), _level(delta, candidates, share)
    near = math.ceil(math.log(level) / math.log1p(-alpha))
    if near > MOST_ROWS:
        raise ValueError(f"interval {alpha:g} is so small that more than {MOST_ROWS:,} rows are needed: state a larger one")
    return next((n for n in (near - 1, near) if n > 0 and math.isfinite(conformal_rank_pac(n, alpha, level))), near + 1)


def gain_power(
    n: int,
    min_gain: float,
    expected_gain: float,
    disagreement: float,
    *,
    delta: float = 0.05,
    candidates: int = 1,
    share: float = SHARES["gain"],
    repeats: int = _REPEATS,
) -> float:
    """How often n held-back rows certify that a model errs on ``min_gain`` fewer rows than another: a simulation.

    The seed is fixed, and numbers of rows are compared on the same draws. The theorem is
    `surelearn.bounds.paired_difference`.

    Parameters
    ----------
    n : rows on which both models are compared
    min_gain : difference of error rates to certify; negative: the model is at most so much worse
    expected_gain : the difference in truth
    disagreement : the part of rows on which exactly one of the two errs; at least the gain

    Examples
    --------
    >>> gain_power(1000, 0.02, 0.05, 0.1, repeats=200)
    0.57
    """
    game = _game(min_gain, expected_gain, disagreement, _level(delta, candidates, share))
    return game.wins(int(_counts(n, 1)), repeats) / repeats


def gain_rows(
    min_gain: float,
    expected_gain: float,
    disagreement: float,
    *,
    delta: float = 0.05,
    candidates: int = 1,
    share: float = SHARES["gain"],
    power: float = 0.8,
) -> int:
    """About the fewest rows with which `gain_power` reaches ``power``, to 1% of the rows and the simulation's error.

    Examples
    --------
    >>> 1300 < gain_rows(0.02, 0.05, 0.1) < 1600
    True
    """
    return _game(min_gain, expected_gain, disagreement, _level(delta, candidates, share)).rows(_fraction("power", power))


@dataclass(frozen=True, kw_only=True)
class _Game:
    """The bets of `paired_difference` against a gain of ``least``, where in truth it is ``expected``."""

    least: float
    expected: float
    disagreement: float
    delta: float

    @lru_cache  # noqa: B019 - a game is a few numbers, and equal games share their answers
    def wins(self, n: int, repeats: int) -> int:
        """In how many of the simulated comparisons the bound is at least ``least``."""
        won, lost = (self.disagreement + self.expected) / 2, (self.disagreement - self.expected) / 2
        mean, goal = (1 + self.least) / 2, math.log(1 / self.delta)
        wins = 0
        for repeat in range(repeats):
            u = np.random.default_rng((20_240_229, repeat)).random(n)
            x = 0.5 + 0.5 * (u < won) - 0.5 * (u >= 1 - lost)
            if x.mean() < mean:  # the bound is never above what was measured
                continue
            bets = np.minimum(predictable_bets(x, self.delta, False), 0.75 / mean)
            wins += bool(np.cumsum(np.log1p(bets * (x - mean))).max() >= goal)
        return wins

    def repeats(self, n: int) -> int:
        """Fewer for many rows, so that an answer takes seconds."""
        return min(max(10_000_000 // n, _REPEATS // 4), _REPEATS)

    def power(self, n: int) -> float:
        """The part of simulated comparisons that certify the gain."""
        return self.wins(n, self.repeats(n)) / self.repeats(n)

    def error(self, n: int) -> float:
        """Half the width of the 95% interval around the simulated power."""
        repeats = self.repeats(n)
        low, high = clopper_pearson_interval(self.wins(n, repeats), repeats, 0.05)
        return (high - low) / 2

    def rows(self, power: float) -> int:
        """From a normal approximation in steps of a quarter to a bracket, then by halving the bracket."""
        spread = math.sqrt(max(self.disagreement - self.expected**2, 1e-3))
        effort = math.sqrt(2 * math.log(1 / self.delta)) + max(float(norm.ppf(power)), -1.0)
        low = high = max(1, round((effort * spread / (self.expected - self.least)) ** 2))
        if high <= MOST_SIMULATED and self.power(high) >= power:
            while low > 1 and self.power(low := max(1, low * 4 // 5)) >= power:
                high = low
        else:
            while high <= MOST_SIMULATED and self.power(high := max(high + 1, high * 5 // 4)) < power:
                low = high
        if high > MOST_SIMULATED:
            raise ValueError(
                f"min_gain and expected_gain are so close that more than {MOST_SIMULATED:,} rows would have to be "
                "simulated: state a wider gap"
            )
        while high - low > max(1, high // 100):
            middle = (low + high) // 2
            low, high = (low, middle) if self.power(middle) >= power else (middle, high)
        return high


@dataclass(frozen=True, kw_only=True)
class Allotment:
    """What an audit makes of so many rows, and whether the rows that it holds back are enough.

    Attributes
    ----------
    rows, fit, select, certify : numbers of rows
    says : what these certify rows can do
    enough : whether the wished power is reached
    fraction : the smallest ``--certify`` that holds back enough rows, None where that leaves none to fit on
    total : rows in all that are enough with the default split
    """

    rows: int
    fit: int
    select: int
    certify: int
    says: str
    enough: bool
    fraction: float | None = None
    total: int | None = None

    def __str__(self) -> str:
        compares = f", compares candidates on {self.select:,}" if self.select else ""
        text = (
            f"Of {self.rows:,} rows the audit fits on {self.fit:,}{compares} and holds back {self.certify:,}:\n  {self.says}"
        )
        if self.enough:
            return text
        more = f"{self.total:,} rows in all"
        return f"{text}\n  enough would be " + (more if self.fraction is None else f"--certify {self.fraction}, or {more}")


def allotment(rows: int) -> tuple[int, int, int]:
    """How many of so many rows an audit fits on, compares candidates on, and holds back.

    Examples
    --------
    >>> allotment(1000), allotment(20_000)
    ((700, 0, 300), (13532, 2000, 4468))
    """
    held, compared = round(certify_fraction(rows) * rows), round(select_fraction(rows) * rows)
    return rows - held - compared, compared, held


def _fraction_for(held: int, rows: int) -> float | None:
    """The smallest fraction, to the digits that tell rows apart, of which `split_rows` makes at least so many rows."""
    if held + allotment(rows)[1] >= rows:
        return None
    digits = max(2, math.ceil(math.log10(rows)))
    steps = math.floor((held - 1) / rows * 10**digits)
    return next(f for i in range(steps, 10**digits) if round((f := round(i / 10**digits, digits)) * rows) >= held)


def _total_for(held: int) -> int:
    """The smallest table of which the default split holds back so many rows; the held-back rows grow with the table."""
    low, high = 0, 6 * held + 10
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if allotment(middle)[2] >= held else (middle, high)
    return high


@dataclass(frozen=True, kw_only=True)
class Need:
    """One answer: as which claim, at which δ, how many held-back rows, and the power that they have."""

    label: str
    delta: float
    rows: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A value for each number of held-back rows."""

    label: str
    rows: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How many rows a question needs.

    Attributes
    ----------
    question : in words
    needs : the answers, that of an audit's page first
    header, table : rows, what they allow, and the value of the first curve there
    measure, goal : what the curves show, and the level that they should reach
    notes : what was computed, and under which assumption
    allotment : what an audit makes of a stated number of rows
    """

    question: str
    needs: tuple[Need, ...]
    header: tuple[str, ...]
    table: tuple[tuple[float, ...], ...]
    measure: str
    goal: float
    notes: tuple[str, ...]
    allotment: Allotment | None = None
    asked: _Question = field(repr=False)

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """One for each answer; computed when they are first looked at."""
        curves = []
        for need in self.needs:
            n = self.asked.points(need.rows, self.rows)
            values = self.asked.values(n, need.delta)
            curves.append(Curve(label=need.label, rows=tuple(map(int, n)), values=tuple(map(float, values))))
        return tuple(curves)

    @property
    def rows(self) -> int:
        """The first answer: held-back rows for an audit's page."""
        return self.needs[0].rows

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _lines(self) -> Iterator[str]:
        yield f"{self.question}, hold back"
        labels, counts = max(len(need.label) for need in self.needs), max(len(f"{need.rows:,}") for need in self.needs)
        for need in self.needs:
            yield f"  {need.label:<{labels}}   {need.rows:>{counts},} {need.text}"
        yield ""
        cells = [[f"{value:,.0f}" if value >= 0 else "–" for value in row[:-1]] for row in self.table]
        widths = [max(map(len, column)) for column in zip(self.header[:-1], *cells, strict=True)]
        heads = "   ".join(f"{name:>{width}}" for name, width in zip(self.header[:-1], widths, strict=True))
        yield f"  {heads}   {self.header[-1]}"
        for texts, row in zip(cells, self.table, strict=True):
            numbers = "   ".join(f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))
            yield f"  {numbers}   {_bar(row[-1])} {show(row[-1], 'rate', '>='):>6}"
        if self.allotment is not None:
            yield from ("", *str(self.allotment).split("\n"))
        yield from ("", *self.notes)


def _bar(value: float, cells: int = 20) -> str:
    """A bar of so many characters, to an eighth of one."""
    eighths = math.floor(value * cells * 8 + 1e-9)
    return ("█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8]).ljust(cells)[:cells]


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
        """The answer."""
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
        return f"labelled rows   (chance {self.chance(n, delta)})"

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
        says = f"{self.room(held, level)}chance {self.chance(held, level)}, {'enough' if enough else 'not enough'}"
        return says, held if enough else self.more(held, needs[0])

    def points(self, rows: int, most: int) -> Array:  # noqa: ARG002
        """Numbers of rows at which the curve of one answer is drawn; ``most`` is the largest answer."""
        return np.unique(np.linspace(1, 2 * most, 400).round())

    def table_rows(self, rows: int) -> Array:
        """A few numbers of rows around the answer, to two digits."""
        return np.unique([rows, *(max(1.0, float(f"{rows * factor:.1e}")) for factor in (0.25, 0.5, 0.75, 1.5, 2))]).round()


@dataclass(frozen=True)
class _Errors(_Question):
    limit: float
    expected: float
    goal: float

    share = SHARES["risk"]
    labels = ("as the audit's headline", "as the only claim")

    def words(self, sure: str) -> str:
        expecting = _percent(self.expected) if self.expected else "none"
        return f"at most {_percent(self.limit)} errors, {sure}, expecting {expecting}"

    def test(self, delta: float) -> _Rate:
        return _risk(self.limit, self.expected, delta)

    def rows(self, delta: float) -> int:
        return self.test(delta).rows(self.goal)

    def values(self, n: Array, delta: float) -> Array:
        return self.test(delta).power(n)

    def columns(self, n: Array, delta: float) -> dict[str, Array]:
        return {"rows": n, "may err": self.test(delta).allowed(n)}

    def notes(self) -> Iterator[str]:
        yield "The headline has half of delta; the page's other claims share the rest."
        if self.expected:
            goal = _percent(self.goal)
            yield f"Errors are whole numbers, so the chance goes up and down; with more rows it stays at {goal} or more."
        else:
            yield "No error is allowed among so few rows: expect a risk above 0 to leave room for some."

    def room(self, n: int, delta: float) -> str:
        count = int(self.test(delta).allowed(n))
        return "too few even without an error; " if count < 0 else f"up to {count:,} of them may be wrong; "

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
        expecting = _percent(self.expected) if self.expected < 1 else "all"
        return f"that at least {_percent(self.least)} of positives are recognized, {sure}, expecting {expecting}"

    def test(self, delta: float) -> _Rate:
        return _sensitivity(self.least, self.expected, delta)

    def rows(self, delta: float) -> int:
        positives = self.test(delta).rows(self.goal)
        return positives if self.prevalence is None else rows_holding(positives, self.prevalence, self.goal)

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
        yield "The headline has half of delta; sensitivity is one of six items that share the rest."
        if self.prevalence is not None:
            yield (
                f"If {_percent(self.prevalence)} of rows are positive, so many hold enough positive ones with probability "
                f"{_percent(self.goal)};\nthe chance counts both: how many are positive, and how many of those are missed."
            )

    def text(self, n: int, delta: float) -> str:
        if self.prevalence is None:
            return f"positive rows   (chance {self.chance(n, delta)})"
        return f"labelled rows for {self.test(delta).rows(self.goal):,} positive ones   (chance {self.chance(n, delta)})"

    def room(self, n: int, delta: float) -> str:  # noqa: ARG002
        return f"about {n * (self.prevalence or 0):,.0f} of them positive; "

    def points(self, rows: int, most: int) -> Array:
        return super().points(rows, most) if self.prevalence is None else np.unique(np.linspace(1, 2 * most, 60).round())


def _mixed_power(test: _Rate, n: float, prevalence: float) -> float:
    """The power with n rows of which Bin(n, prevalence) are positive."""
    if n < 1:
        return 0.0
    low, high = binom.ppf(1e-9, n, prevalence), binom.isf(1e-9, n, prevalence)
    positives = np.arange(low, high + 1, 1 + (high - low) // 4000)  # from thousands on, every second, third, … is enough
    weights = binom.pmf(positives, n, prevalence)
    return float(weights @ test.power(positives) / weights.sum())


@dataclass(frozen=True)
class _Interval(_Question):
    alpha: float
    goal: float

    share = SHARES["interval"]
    labels = ("as the audit's headline, with --loss-bound", "as the only claim, as in an audit without it")
    measure = "share of them that the interval must contain"

    def words(self, sure: str) -> str:
        return f"an interval that contains {_percent(self.goal)} of new targets, {sure}"

    def rows(self, delta: float) -> int:
        return interval_rows(self.alpha, delta=delta, share=1.0)

    def values(self, n: Array, delta: float) -> Array:
        return np.asarray(conformal_rank_pac(n, self.alpha, delta)) / n

    def columns(self, n: Array, delta: float) -> dict[str, Array]:
        return {"rows": n, "inside": np.asarray(conformal_rank_pac(n, self.alpha, delta))}

    def notes(self) -> Iterator[str]:
        yield f"With fewer rows no interval is certified; with more it narrows, as the share falls to {_percent(self.goal)}."

    def text(self, n: int, delta: float) -> str:  # noqa: ARG002
        return "labelled rows"

    def in_audit(self, held: int, needs: tuple[Need, ...]) -> tuple[str, int]:
        says = []
        for need, case in zip(needs, ("with --loss-bound", "without"), strict=True):
            rank = conformal_rank_pac(held, self.alpha, need.delta) if held >= need.rows else 0
            must = f"the interval must contain {rank:,.0f} of them ({show(rank / max(held, 1), 'rate')})"
            says.append(f"{case}, {must if rank else 'too few for an interval'}")
        return "\n  ".join(says), max(held, needs[0].rows)

    def points(self, rows: int, most: int) -> Array:
        return np.unique(np.linspace(rows, 50 * most, 400).round())

    def table_rows(self, rows: int) -> Array:
        return np.array([rows, *(float(f"{rows * factor:.0e}") for factor in (2, 5, 15, 50, 150))])


@dataclass(frozen=True)
class _Gain(_Question):
    least: float
    expected: float
    goal: float
    disagreement: float

    share = SHARES["gain"]

    def words(self, sure: str) -> str:
        least = f"at {'least' if self.least >= 0 else 'most'} {_fewer(self.least)}"
        expecting = _fewer(self.expected) if self.expected else "as many"
        return f"{least} errors per 100 rows than another model, {sure}, expecting {expecting}"

    def game(self, delta: float) -> _Game:
        return _game(self.least, self.expected, self.disagreement, delta)

    def rows(self, delta: float) -> int:
        return self.game(delta).rows(self.goal)

    def values(self, n: Array, delta: float) -> Array:
        game = self.game(delta)
        return np.array([game.power(int(each)) if each >= 1 else 0.0 for each in n])

    def notes(self) -> Iterator[str]:
        yield "The headline has half of delta; a gain is one of four items (six with a positive class) that share the rest."
        yield (
            f"Exactly one of the two models errs on {_percent(self.disagreement)} of rows. Chances are simulated, with a "
            "fixed seed; rows are found to 1%."
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
) -> Plan:
    """How many labelled rows to hold back; exactly one of ``max_risk``, ``interval``, ``min_sensitivity``, ``min_gain``.

    Parameters
    ----------
    max_risk, expected_risk : certify errors of at most the first, expecting the second (none); see `rows_needed`
    interval : certify a prediction interval that misses at most this part α of new targets; see `interval_rows`
    min_sensitivity, expected_sensitivity, prevalence : certify that so many positives are recognized, expecting the second
        (all); with the part of rows that are positive the answer is in rows; see `sensitivity_rows`, `rows_holding`
    min_gain, expected_gain, disagreement : certify so many fewer errors than another model's; see `gain_power`
    delta, candidates, power : see `rows_needed`
    rows : also say what an audit of a table of so many rows can do

    Examples
    --------
    >>> plan(0.05, 0.02).needs[0]
    Need(label="as the audit's headline", delta=0.025, rows=338, text='labelled rows   (chance 85.6%)')
    >>> print(plan(0.05, 0.02, rows=1000).allotment)
    Of 1,000 rows the audit fits on 700 and holds back 300:
      up to 7 of them may be wrong; chance 74.5%, not enough
      enough would be --certify 0.312, or 1,138 rows in all
    """
    _level(delta, candidates)
    asked = _question(
        {"max_risk": max_risk, "expected_risk": expected_risk},
        {"interval": interval},
        {"min_sensitivity": min_sensitivity, "expected_sensitivity": expected_sensitivity, "prevalence": prevalence},
        {"min_gain": min_gain, "expected_gain": expected_gain, "disagreement": disagreement},
        power=_fraction("power", power),
    )
    if rows is not None:
        _counts(rows, 1, "rows")
        if isinstance(asked, _Recognized) and asked.prevalence is None:
            raise ValueError("rows needs prevalence here: state the part of rows that are positive")
    answers = []
    for label, share in zip(asked.labels, (asked.share, 1.0), strict=True):
        level = _level(delta, candidates, share)
        n = asked.rows(level)
        said = label if candidates == 1 else label.replace("the audit's", "a certificate's")
        answers.append(Need(label=said, delta=level, rows=n, text=asked.text(n, level)))
    needs, notes = tuple(answers), list(asked.notes())
    if candidates > 1:
        notes.append(
            f"For the best of {candidates:,} models compared on these same rows delta is divided by {candidates:,}.\n"
            "An audit compares them on other rows: there it is 1."
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
    more = {} if enough == certify else {"fraction": _fraction_for(enough, rows), "total": _total_for(needs[0].rows)}
    return Allotment(rows=rows, fit=fit, select=select, certify=certify, says=says, enough=not more, **more)


def _question(*groups: dict[str, Any], power: float) -> _Question:
    """The one question that was asked; each group's first name asks it, the others only belong to it."""
    asked = [group for group in groups if next(iter(group.values())) is not None]
    names = [next(iter(group)) for group in asked]
    if len(asked) > 1:
        raise ValueError(f"one question at a time: state {' or '.join(names)}, not both")
    for group in groups:
        for name, value in group.items():
            if value is not None and group not in asked:
                raise ValueError(f"{name} belongs to {next(iter(group))}: state that, or leave {name} out")
    if not asked:
        raise ValueError("say what to certify: state max_risk, interval, min_sensitivity or min_gain")
    given = asked[0]
    if names == ["max_risk"]:
        test = _risk(given["max_risk"], 0.0 if given["expected_risk"] is None else given["expected_risk"], 0.5)
        return _Errors(test.most, test.expected, power)
    if names == ["interval"]:
        alpha = _fraction("interval", given["interval"])
        return _Interval(alpha, 1 - alpha)
    if names == ["min_sensitivity"]:
        least, expected, prevalence = given.values()
        expected = 1.0 if expected is None else expected
        _sensitivity(least, expected, 0.5)
        return _Recognized(least, expected, power, None if prevalence is None else _fraction("prevalence", prevalence))
    if missing := [name for name, value in given.items() if value is None]:
        raise ValueError(f"min_gain needs {' and '.join(missing)}: state what you expect of the two models")
    game = _game(given["min_gain"], given["expected_gain"], given["disagreement"], 0.5)
    return _Gain(game.least, game.expected, power, game.disagreement)


def _fraction(name: str, value: Any) -> float:
    if not isinstance(value, (int, float, np.number)) or not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, not {value!r}")
    return float(value)


def _rate(name: str, value: Any, low: float = 0.0) -> float:
    if not isinstance(value, (int, float, np.number)) or not low <= value <= 1:
        raise ValueError(f"{name} must lie between {low:g} and 1, not {value!r}")
    return float(value)


def _counts(value: Any, least: int = 0, name: str = "n") -> Array:
    array = np.asarray(value)
    whole = array.dtype.kind in "iuf" and (array >= least) & (array == np.floor(array)) & (array <= MOST_ROWS)
    if not np.all(whole):
        bad = value if whole is False else array[~np.asarray(whole)].tolist()[0]
        raise ValueError(f"{name} must be a whole number from {least} to {MOST_ROWS:,}, not {bad!r}")
    return array.astype(float)


def _level(delta: Any, candidates: Any = 1, share: Any = 1.0) -> float:
    """The δ of one claim."""
    _fraction("delta", delta)
    if not isinstance(candidates, (int, np.integer)) or candidates < 1:
        raise ValueError(f"candidates must be a whole number of at least 1, not {candidates!r}")
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, not {share!r}")
    return float(delta * share / candidates)


def _above(name: str, value: float, other: str, limit: float) -> str:
    side, sense = ("below", "less") if other == "max_risk" else ("above", "more")
    return f"{name} must be {side} {other} {limit:g}, not {value:g}: no number of rows certifies {sense} than the truth"


def _risk(max_risk: Any, expected_risk: Any, delta: float) -> _Rate:
    most, expected = _fraction("max_risk", max_risk), _rate("expected_risk", expected_risk)
    if expected >= most:
        raise ValueError(_above("expected_risk", expected, "max_risk", most))
    return _Rate(most=most, expected=expected, delta=delta)


def _sensitivity(min_sensitivity: Any, expected_sensitivity: Any, delta: float) -> _Rate:
    least = _fraction("min_sensitivity", min_sensitivity)
    expected = _rate("expected_sensitivity", expected_sensitivity)
    if expected <= least:
        raise ValueError(_above("expected_sensitivity", expected, "min_sensitivity", least))
    return _Rate(most=1 - least, expected=1 - expected, delta=delta, least=least)


def _game(min_gain: Any, expected_gain: Any, disagreement: Any, delta: float) -> _Game:
    least, expected = _rate("min_gain", min_gain, -1.0), _rate("expected_gain", expected_gain, -1.0)
    differ = _rate("disagreement", disagreement)
    if least == -1:
        raise ValueError("min_gain must be above -1: that much is always true")
    if expected <= least:
        raise ValueError(_above("expected_gain", expected, "min_gain", least))
    if differ == 0 or abs(expected) > differ:
        raise ValueError(
            f"disagreement must be above 0 and at least the expected gain {expected:g}, not {differ:g}: "
            "a gain comes from rows on which exactly one of the two models errs"
        )
    return _Game(least=least, expected=expected, disagreement=differ, delta=delta)


def _percent(part: float) -> str:
    return f"{100 * part:.6g}%"


def _fewer(gain: float) -> str:
    return f"{100 * gain:.6g} fewer" if gain >= 0 else f"{-100 * gain:.6g} more"
