"""One subsample of one table: what every criterion chooses from a family, and what each choice
is worth.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from surelearn.jobs import seed_for
from surelearn.papers.criteria_tables_data import draw, load
from surelearn.papers.criteria_tables_families import FAMILIES, Family
from surelearn.selection import NestedFamily, Resampling, select
from surelearn.selection.candidates import Candidate
from surelearn.selection.criteria import (
    AIC,
    BIC,
    AdjustedStructuralRisk,
    Holdout,
    Margin,
    Stability,
    StructuralRisk,
    units_of,
)
from surelearn.selection.criteria.criterion import Criterion
from surelearn.selection.criteria.problem import predictions_of
from surelearn.selection.criteria.resampled import Stated
from surelearn.selection.selector import choose
from surelearn.subject.refitting import fit_quietly, take
from surelearn.types import AnyArray, TableRows

MOST_ROWS = {"5 × 10-fold CV": 300, "stability": 100}
"""Up to how many rows the criteria of many fits take part."""

CRITERIA = (
    "holdout", "5-fold CV", "10-fold CV", "5 × 10-fold CV", "10-fold CV, 1 SE", "audit's default", "audit's folds, best",
    "AIC", "BIC", "SRM", "adjusted SRM", "margin", "stability", "always the largest",
)  # fmt: skip
BOTH = {"10-fold CV": "10-fold CV, 1 SE", "audit's folds, best": "audit's default"}
"""Comparisons from which two rules choose: the best, and the simplest within one standard error of it."""

Compared = NestedFamily | Sequence[Candidate]
Answer = dict[str, Any]  # "chosen", "fits" and "seconds"; or "refused", with the reason


def judge(table: str, folder: str, family: str, n: int, seed: int) -> dict[str, Any]:
    """One task: choose on n rows by every criterion, fit every member on them, and test on other
    rows.

    Returns ``errors``, of each member on the test rows, their number ``tested`` and, for each
    criterion, its answer.
    """
    made = FAMILIES[family]
    X, y = _prepared(table, folder, family)
    train, test = draw(len(y), n, seed)
    candidates = made.candidates(X.shape[1], n)
    compare = _Compare(candidates, take(X, train), y[train], seed)
    answers = _resampled(compare, n, made)
    if not made.only_resampled:
        answers |= _others(compare, n)
    errors = _test_errors(candidates, compare.X, compare.y, take(X, test), y[test])
    answers["always the largest"] = {"chosen": len(errors) - 1, "fits": 0, "seconds": 0.0}
    return {"errors": errors, "tested": len(test), "answers": answers}


@lru_cache(maxsize=6)
def _prepared(table: str, folder: str, family: str) -> tuple[Any, Any]:
    X, y = load(table, folder)
    return FAMILIES[family].prepare(X), y


class _Compare:
    """`select` among candidates on the rows drawn, and what it took."""

    def __init__(self, candidates: Compared, X: TableRows, y: AnyArray, seed: int) -> None:
        self.candidates, self.X, self.y, self.seed = candidates, X, y, seed

    def __call__(self, criterion: Criterion, first: int | None = None) -> Any:
        """The comparison by a criterion; of the first candidates only, where so many are stated."""
        candidates = self.candidates
        if first is not None and isinstance(candidates, NestedFamily):
            candidates = candidates.members()[:first]
        n = len(self.y)
        started = time.process_time()
        found = select(
            candidates, self.X, self.y, criterion=criterion, prefer="best", metric="accuracy",
            held_out=np.arange(n - n // 4, n), n_jobs=1, random_state=seed_for("folds", self.seed),
        )  # fmt: skip
        seconds = time.process_time() - started
        return found, {"fits": criterion.fits(len(units_of(candidates)), n), "seconds": seconds}


def _folds_of_the_audit(n: int) -> Resampling:
    """Those of version 0.2, which the tables are about."""
    return Resampling(folds=5, repeats=3) if n < 300 else Resampling(folds=10 if n <= 5000 else 5)


def _resampled(compare: _Compare, n: int, family: Family) -> dict[str, Answer]:
    """Holdout and folds; each comparison is made once, whatever chooses from it."""
    hows = {"10-fold CV": Resampling(), "5-fold CV": Resampling(folds=5)}
    if n <= MOST_ROWS["5 × 10-fold CV"]:
        hows["5 × 10-fold CV"] = Resampling(repeats=5)
    if family.only_resampled:
        hows = {}
    hows["audit's folds, best"] = _folds_of_the_audit(n)
    made = {how: compare(Stated(how=how)) for how in dict.fromkeys(hows.values())}
    found, cost = compare(Holdout())
    answers = {"holdout": {"chosen": found.chosen, **cost}}
    for name, how in hows.items():
        found, cost = made[how]
        answers[name] = {"chosen": found.chosen, **cost}
        if name in BOTH:
            answers[BOTH[name]] = {
                "chosen": choose(found.errors, found.standard_errors, "simplest"),
                **cost,
            }
    return answers


def _others(compare: _Compare, n: int) -> dict[str, Answer]:
    asked: dict[str, Criterion] = {
        "SRM": StructuralRisk(),
        "adjusted SRM": AdjustedStructuralRisk(),
        "margin": Margin(),
    }
    if n <= MOST_ROWS["stability"]:
        asked["stability"] = Stability()
    answers = {name: _asked(compare, criterion) for name, criterion in asked.items()}
    return answers | {
        name: _by_likelihood(compare, criterion)
        for name, criterion in {"AIC": AIC(), "BIC": BIC()}.items()
    }


def _asked(compare: _Compare, criterion: Criterion, first: int | None = None) -> Answer:
    try:
        found, cost = compare(criterion, first)
    except ValueError as error:
        return {"refused": str(error)}
    return {"chosen": found.chosen, **cost}


def _by_likelihood(compare: _Compare, criterion: Criterion) -> Answer:
    """The choice among the members, from the smallest on, whose likelihood has a maximum."""
    family = compare.candidates
    assert isinstance(family, NestedFamily)  # noqa: S101 - a list is only resampled
    members = len(family.members())
    answer = _asked(compare, criterion)
    if family.is_staged:
        return answer
    while "refused" in answer and members > 1:
        members -= 1
        answer = _asked(compare, criterion, members)
    return answer


def _test_errors(
    candidates: Compared, X: TableRows, y: AnyArray, test_X: TableRows, test_y: AnyArray
) -> list[float]:
    """Of each member, fitted on all rows drawn."""
    return [
        float(np.mean(predicted != test_y))
        for unit in units_of(candidates)
        for predicted in predictions_of(fit_quietly(unit.model, X, y), unit.sizes, test_X)
    ]


def excess(result: Mapping[str, Any], criterion: str) -> float | None:
    """Test error of what a criterion chose less the least of the family, in points; None where it
    was refused or not asked.

    Examples
    --------
    >>> excess({"errors": [0.5, 0.25], "answers": {"holdout": {"chosen": 0}}}, "holdout")
    25.0
    """
    answer = result["answers"].get(criterion, {})
    if "chosen" not in answer:
        return None
    errors: Sequence[float] = result["errors"]
    return 100 * (errors[answer["chosen"]] - min(errors))
