"""Which criterion to choose by, on real tables: repeated subsamples, paired differences,
intervals over tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from surelearn.jobs import Runner, Task, seed_for
from surelearn.papers.criteria_tables_data import SIZES, available, content_of, load, sizes_of
from surelearn.papers.criteria_tables_families import FAMILIES
from surelearn.papers.criteria_tables_judging import CRITERIA, excess, judge
from surelearn.papers.reproduction import Outcome, Reproduction, one_of, setting

LEAST_TABLES = 5
AUDITED_ROWS = 1000
EVERY = "all n"
AUDIT, AUDIT_BEST = "audit's default", "audit's folds, best"
_DRAWS = 10_000


@dataclass(frozen=True, kw_only=True)
class CriteriaSettings:
    """What is compared, and how often."""

    data: str = setting(
        "", "a folder with more tables (adult_train.csv, mnist.npz, …); empty: the built-in ones"
    )
    repeats: int = setting(
        20, "subsamples of a table at n ≤ 300; half as many at 1,000, a quarter beyond"
    )
    audit_repeats: int = setting(
        2, "subsamples for the audit's own candidates, at n ≤ 1,000; 0: none"
    )
    most_rows: int = setting(10_000, "the largest n: 100, 300, 1000, 3000 or 10000")

    def __post_init__(self) -> None:
        if self.repeats < 2 or self.audit_repeats < 0:
            raise ValueError("repeats must be at least 2, and audit_repeats at least 0")
        one_of("most_rows", self.most_rows, SIZES)


def repeats_at(settings: CriteriaSettings, family: str, n: int) -> int:
    """How many subsamples of n rows a table gives.

    Examples
    --------
    >>> [repeats_at(CriteriaSettings(), "rounds of AdaBoost", n) for n in SIZES]
    [20, 20, 10, 5, 5]
    """
    if FAMILIES[family].only_resampled:
        return settings.audit_repeats if n <= AUDITED_ROWS else 0
    return max(2, settings.repeats // (1 if n <= 300 else 2 if n <= 1000 else 4))


Cell = dict[str, Any]  # "table", "family", "n", "repeat" and "result"


def compute(settings: CriteriaSettings, seed: int, runner: Runner) -> list[Cell]:
    """Every subsample, judged; families are judged on the same rows."""
    cells: list[Cell] = [
        {"table": table, "family": family, "n": n, "repeat": repeat}
        for table in available(settings.data)
        for family in FAMILIES
        for n in sizes_of(len(load(table, settings.data)[1]), settings.most_rows)
        for repeat in range(repeats_at(settings, family, n))
    ]
    contents = {
        table: content_of(*load(table, settings.data))
        for table in {cell["table"] for cell in cells}
    }
    tasks = [
        Task(
            f"criteria/{cell['table']}/{contents[cell['table']]}/{cell['family']}/{cell['n']}/{cell['repeat']}",
            judge,
            {
                "table": cell["table"], "folder": settings.data, "family": cell["family"], "n": cell["n"],
                "seed": seed_for(f"criteria/{cell['table']}/{cell['n']}/{cell['repeat']}", seed),
            },
        )
        for cell in cells
    ]  # fmt: skip
    results = runner.run(tasks, "subsamples")
    return [cell | {"result": result} for cell, result in zip(cells, results, strict=True)]


# ---- what they say


def summarize(cells: Sequence[Cell]) -> dict[str, dict[str, dict[str, Any]]]:
    """For each family, each n (and all together) and each criterion: its excess, its cost, and
    how it differs.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for family in dict.fromkeys(cell["family"] for cell in cells):
        of = [cell for cell in cells if cell["family"] == family]
        sizes = sorted({cell["n"] for cell in of})
        found[family] = {
            f"n = {n:,}": _at([cell for cell in of if cell["n"] == n], family) for n in sizes
        }
        found[family][EVERY] = _at(of, family)
    return found


def _at(cells: Sequence[Cell], family: str) -> dict[str, Any]:
    """Each criterion's excess over the oracle and its difference to the reference, both in
    points of test error.
    """
    reference = FAMILIES[family].reference
    found: dict[str, Any] = {}
    for name in CRITERIA:
        answered = [cell for cell in cells if excess(cell["result"], name) is not None]
        if not answered:
            continue
        answers = [cell["result"]["answers"][name] for cell in answered]
        found[name] = {
            "excess": _mean(table_means(answered, name).values()),
            "asked": sum(name in cell["result"]["answers"] for cell in cells),
            "answered": len(answered),
            "fits": float(np.median([answer["fits"] for answer in answers])),
            "cpu_seconds": float(np.median([answer["seconds"] for answer in answers])),
            "difference": paired(answered, name, reference),
        }
        if name == AUDIT:
            found[name]["simplest less best"] = paired(answered, name, AUDIT_BEST)
            found[name]["simpler"] = _mean(_simpler(cell["result"]["answers"]) for cell in answered)
    return found


def _simpler(answers: Mapping[str, Any]) -> bool:
    return answers[AUDIT]["chosen"] < answers[AUDIT_BEST]["chosen"]


def paired(cells: Sequence[Cell], name: str, reference: str) -> dict[str, Any]:
    """The mean difference of two criteria over tables, each table counting once, with intervals
    over tables and in each.
    """
    means = table_means(cells, name, reference)
    found: dict[str, Any] = {"tables": len(means), **over_tables(list(means.values()))}
    found["better on"] = sum(mean < 0 for mean in means.values())
    found["worse on"] = sum(mean > 0 for mean in means.values())
    found["by table"] = {
        table: {"mean": mean, "interval": student(_by_n(cells, table, name, reference))}
        for table, mean in means.items()
    }
    return found


def table_means(cells: Sequence[Cell], name: str, reference: str | None = None) -> dict[str, float]:
    """For each table the mean excess of a criterion, or its mean difference to a reference;
    every n counts the same.
    """
    tables = dict.fromkeys(cell["table"] for cell in cells)
    by_n = {table: _by_n(cells, table, name, reference) for table in tables}
    return {table: _mean([_mean(values) for values in at.values()]) for table, at in by_n.items()}


def _by_n(
    cells: Sequence[Cell], table: str, name: str, reference: str | None = None
) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for cell in cells:
        if cell["table"] == table:
            value, base = (
                excess(cell["result"], each) if each else 0.0 for each in (name, reference)
            )
            if value is not None and base is not None:
                found.setdefault(cell["n"], []).append(value - base)
    return found


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def student(by_n: Mapping[int, Sequence[float]]) -> tuple[float, float] | None:
    """Student's 95% interval of the mean over subsamples of one table; None for a single subsample
    at some n.

    It is about other subsamples of this table, not about another table like it: repeats share rows.
    """
    if min(map(len, by_n.values())) < 2:
        return None
    mean = _mean([_mean(values) for values in by_n.values()])
    variance = (
        sum(float(np.var(values, ddof=1)) / len(values) for values in by_n.values())
        / len(by_n) ** 2
    )
    freedom = min(map(len, by_n.values())) - 1
    reach = float(stats.t.ppf(0.975, freedom)) * variance**0.5
    return mean - reach, mean + reach


def over_tables(means: Sequence[float]) -> dict[str, Any]:
    """The mean over tables with two 95% intervals, by drawing whole tables again and by Student;
    none below five tables.

    A table's subsamples share rows, so that tables are what is drawn again, never subsamples.

    Examples
    --------
    >>> found = over_tables([1.0, 2.0, 3.0, 2.0, 2.0])
    >>> found["mean"], [round(end, 2) for end in found["student"]]
    (2.0, [1.12, 2.88])
    """
    values = np.asarray(means, float)
    found: dict[str, Any] = {
        "mean": float(values.mean()),
        "bootstrap": None,
        "student": None,
        "settled": False,
    }
    if values.size < LEAST_TABLES:
        return found
    drawn = np.random.default_rng(0).choice(values, (_DRAWS, values.size)).mean(axis=1)
    reach = float(stats.t.ppf(0.975, values.size - 1) * values.std(ddof=1) / values.size**0.5)
    found["bootstrap"] = tuple(float(end) for end in np.percentile(drawn, [2.5, 97.5]))
    found["student"] = (found["mean"] - reach, found["mean"] + reach)
    found["settled"] = all(
        low > 0 or high < 0 for low, high in (found["bootstrap"], found["student"])
    )
    return found


def run(settings: CriteriaSettings, seed: int, runner: Runner) -> Outcome:
    """The whole comparison."""
    from surelearn.papers.criteria_tables_words import describe

    return describe(settings, compute(settings, seed, runner))


TABLES = Reproduction(run=run, settings=CriteriaSettings)
