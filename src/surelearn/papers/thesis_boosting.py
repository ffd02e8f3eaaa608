"""Figures 5.1 and 5.3 of the thesis: criteria that choose AdaBoost's number of rounds, on
problems with a known answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surelearn.jobs import Runner, Task, seed_for
from surelearn.papers.reproduction import Outcome, Reproduction, one_of, setting
from surelearn.papers.thesis_problem import DIMENSIONS, Ties, choices, relative_error, solve

CONSTANTS = tuple(2.0**-k for k in range(11))
CRITERIA = ("10-fold CV", "adjusted SRM", "SRM", "margins", "always the largest")
LEAST_MAJORITY, MOST_MAJORITY = 0.6, 0.97


@dataclass(frozen=True, kw_only=True)
class BoostingSettings:
    """What the thesis leaves open, each with our reading."""

    problems: int = setting(100, "oracles drawn")
    variant_problems: int = setting(
        50, "oracles drawn for each reading that needs other oracles; 0: none"
    )
    thresholds: str = setting(
        "1",
        "the oracle's thresholds are uniform on [−r, r] for a number r, or over the range of the"
        " data",
    )
    reject_above: float = setting(
        0.8, "an oracle with a larger fraction of points in one class is drawn again, 0.6 to 0.97"
    )
    ties: str = setting(
        "smallest", "among sizes that are equally good, the smallest or the largest is taken"
    )
    formula: str = setting(
        "with e",
        "equation 3.11 as the theorem has it (with e), or as Table 5.1 was computed (without e)",
    )
    dimension: str = setting(
        "counted", "VC dimension of stumps: 7 as the thesis counted, or 6, exact"
    )
    margin: str = setting(
        "least",
        "margin threshold: the least that Theorem 3.5 allows for V = 7, or the best of a hundred",
    )
    constant: float = setting(2.0**-9, "C of adjusted SRM; the thesis found 2⁻⁹ on a holdout")

    def __post_init__(self) -> None:
        if self.problems < 2 or self.variant_problems < 0:
            raise ValueError("problems must be at least 2, and variant_problems at least 0")
        if self.thresholds != "data":
            try:
                known = 0 < float(self.thresholds) < np.inf
            except ValueError:
                known = False
            if not known:
                raise ValueError(
                    f"thresholds must be a positive number or data, not {self.thresholds!r}"
                )
        if not LEAST_MAJORITY <= self.reject_above <= MOST_MAJORITY:
            raise ValueError(
                f"reject_above must lie between {LEAST_MAJORITY} and {MOST_MAJORITY}, not"
                f" {self.reject_above:g}"
            )
        if not 0 <= self.constant < np.inf:
            raise ValueError(f"constant must be a number of at least 0, not {self.constant:g}")
        one_of("ties", self.ties, ("smallest", "largest"))
        one_of("formula", self.formula, ("with e", "without e"))
        one_of("dimension", self.dimension, tuple(DIMENSIONS))
        one_of("margin", self.margin, ("least", "best"))


Problems = Sequence[Mapping[str, Any]]


def _tasks(settings: BoostingSettings, seed: int, count: int) -> list[Task]:
    """Problem i has the same seed in every reading, so that readings are compared on the same
    points where they can be.
    """
    asked = {"thresholds": settings.thresholds, "reject_above": settings.reject_above}
    return [
        Task(
            f"thesis/boosting/{settings.thresholds}/{settings.reject_above:g}/problem {i}",
            solve,
            {"seed": seed_for(f"thesis/boosting/problem {i}", seed), **asked},
        )
        for i in range(count)
    ]


def _oracle_variants(settings: BoostingSettings) -> dict[str, BoostingSettings]:
    """Readings that need other oracles."""
    ranges = [r for r in ("0.5", "1", "2", "data") if r != settings.thresholds]
    shown = {r: "over the range of the data" if r == "data" else f"on [−{r}, {r}]" for r in ranges}
    found = {f"thresholds {shown[r]}": replace(settings, thresholds=r) for r in ranges}
    if settings.reject_above != 0.95:
        found["rejected above 95%"] = replace(settings, reject_above=0.95)
    return found


def _judging_variants(settings: BoostingSettings) -> dict[str, BoostingSettings]:
    """Readings of the same problems."""
    other = {
        "with e": "without e",
        "without e": "with e",
        "counted": "exact",
        "exact": "counted",
        "least": "best",
    }
    other |= {"best": "least", "smallest": "largest", "largest": "smallest"}
    dimension = other[settings.dimension]
    return {
        f"equation 3.11 {other[settings.formula]}": replace(
            settings, formula=other[settings.formula]
        ),
        f"V = {DIMENSIONS[dimension]}": replace(settings, dimension=dimension),
        f"the {other[settings.margin]} margin threshold": replace(
            settings, margin=other[settings.margin]
        ),
        f"ties to the {other[settings.ties]} size": replace(settings, ties=other[settings.ties]),
    }


def judge(problems: Problems, settings: BoostingSettings) -> dict[str, Any]:
    """Chosen sizes and relative errors (eq. 5.5) of every criterion on every problem."""
    ties: Ties = "largest" if settings.ties == "largest" else "smallest"
    penalty = f"{settings.formula}, {settings.dimension}"
    asked = {"penalty": penalty, "constant": settings.constant, "margin": settings.margin}
    chosen = [choices(problem, **asked, ties=ties) for problem in problems]
    return {
        "chosen": {name: [each[name] for each in chosen] for name in chosen[0]},
        "relative": {
            name: [
                relative_error(problem["test"], each[name])
                for problem, each in zip(problems, chosen, strict=True)
            ]
            for name in CRITERIA
        },
        "rejected": sum(problem["rejected"] for problem in problems),
    }


def difference(a: Sequence[float], b: Sequence[float]) -> dict[str, float]:
    """The mean of a − b over problems, with an approximate 95% interval: two standard errors either
    side.

    Examples
    --------
    >>> difference([3, 5, 7], [2, 4, 6])
    {'mean': 1.0, 'low': 1.0, 'high': 1.0}
    """
    paired = np.asarray(a, float) - np.asarray(b, float)
    mean, spread = float(paired.mean()), float(paired.std(ddof=1) / np.sqrt(paired.size))
    return {"mean": mean, "low": mean - 2 * spread, "high": mean + 2 * spread}


def compute(settings: BoostingSettings, seed: int, runner: Runner) -> dict[str, Any]:
    """All problems, of all readings, in one run; and what the settings' own and every other
    reading make of them.
    """
    others = _oracle_variants(settings) if settings.variant_problems >= 2 else {}
    count = min(settings.variant_problems, settings.problems)
    tasks = [task for each in others.values() for task in _tasks(each, seed, count)]
    found = runner.run([*_tasks(settings, seed, settings.problems), *tasks], "problems")
    problems = found[: settings.problems]
    readings = {"as set": (settings.problems, judge(problems, settings))}
    if others:
        readings[f"as set, the first {count}"] = (count, judge(problems[:count], settings))
    for i, (name, each) in enumerate(others.items()):
        start = settings.problems + i * count
        readings[name] = (count, judge(found[start : start + count], each))
    readings |= {
        name: (len(problems), judge(problems, each))
        for name, each in _judging_variants(settings).items()
    }
    constants = {
        c: judge(problems, replace(settings, constant=c))["relative"]["adjusted SRM"]
        for c in CONSTANTS
    }
    calibrated = [
        relative_error(problem["test"], problem["calibrated"]["chosen"]) for problem in problems
    ]
    return {
        "problems": problems,
        "readings": readings,
        "constants": constants,
        "calibrated": calibrated,
    }


def errors(settings: BoostingSettings, seed: int, runner: Runner) -> Outcome:
    """Figure 5.1."""
    from surelearn.papers.thesis_words import describe_errors

    return describe_errors(settings, compute(settings, seed, runner))


def sizes(settings: BoostingSettings, seed: int, runner: Runner) -> Outcome:
    """Figure 5.3."""
    from surelearn.papers.thesis_words import describe_sizes

    return describe_sizes(settings, compute(settings, seed, runner))


ERRORS = Reproduction(run=errors, settings=BoostingSettings)
SIZES_CHOSEN = Reproduction(run=sizes, settings=BoostingSettings)
