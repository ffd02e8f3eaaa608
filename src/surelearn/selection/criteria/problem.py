"""What a criterion is asked: which candidates, which rows; nested families are fitted once and
read at every prefix.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from secrets import token_hex
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surelearn import jobs
from surelearn.selection.candidates import Candidate, Candidates, Searched, as_candidates
from surelearn.selection.costs import Costs
from surelearn.selection.cross_validation import FoldOutcome, Pairs, Positions, fit_and_predict
from surelearn.selection.metrics import Metric
from surelearn.selection.prepared import Alike, forget, groups_of, prepared
from surelearn.selection.stages import at_sizes
from surelearn.subject import Task
from surelearn.subject.refitting import fit_quietly, take_for
from surelearn.types import AnyArray, Ints, Label, Model, RowsLike

# parameters for which a smaller value is a prefix of the larger fit
_ROUNDS = ("n_rounds", "n_estimators", "max_iter")
MOST_SETTINGS = 2  # that meet all folds without having been better on one
Value: TypeAlias = Callable[
    [FoldOutcome, Positions], float
]  # of a fold's answers; the least is best
Capacity: TypeAlias = Mapping[str, float]  # inputs of a capacity theorem
# a VC dimension, inputs of a theorem, either by candidate, or a function of (model, d, n)
StatedCapacity: TypeAlias = (
    float | Mapping[str, Any] | Callable[[Model, int, int], "float | Mapping[str, Any] | None"]
)


@dataclass(frozen=True, eq=False)
class NestedFamily:
    """One learner at several sizes, from small to large: boosting with 10, 20, … rounds.

    A learner with ``staged_predict`` or ``predict_at`` is fitted once, at the largest size, and read at every size;
    another one is fitted at each.

    Parameters
    ----------
    model : unfitted, or a pipeline that ends with it
    sizes : increasing whole numbers
    parameter : the learner's parameter that they are values of
    name : put before each member's size; the family counts as one candidate when fits are counted
    capacity : as in `StructuralRisk`, for these members

    Examples
    --------
    >>> from sklearn.ensemble import AdaBoostClassifier
    >>> [member.name for member in NestedFamily(AdaBoostClassifier(), [5, 10], "n_estimators").members()]
    ['n_estimators=5', 'n_estimators=10']
    """

    model: Model
    sizes: Sequence[int]
    parameter: str = "n_rounds"
    name: str = ""
    capacity: StatedCapacity | None = None

    def __post_init__(self) -> None:
        sizes = np.asarray(self.sizes)
        if (
            sizes.ndim != 1
            or not sizes.size
            or sizes.dtype.kind not in "iu"
            or sizes[0] < 1
            or (np.diff(sizes) <= 0).any()
        ):
            raise ValueError("sizes must be a list of increasing whole numbers of at least 1")
        if not hasattr(self.model, "get_params") or self.parameter not in self.model.get_params():
            raise ValueError(
                f"parameter {self.parameter!r} is not one of {type(self.model).__name__}'s"
            )

    @property
    def is_staged(self) -> bool:
        """Whether members are prefixes of one fit."""
        *steps, parameter = self.parameter.split("__")
        path = [self.model.steps[-1][0]] if _is_pipeline(self.model) else []
        last = last_of(self.model)
        if hasattr(last, "predict_at"):  # around a learner that is read so
            return parameter in _ROUNDS and steps == [*path, "estimator"]
        return hasattr(last, "staged_predict") and parameter in _ROUNDS and steps == path

    def members(self) -> list[Candidate]:
        """A candidate for each size."""
        from sklearn.base import clone

        before, parameter = f"{self.name}, " if self.name else "", self.parameter.split("__")[-1]
        models = [
            clone(self.model).set_params(**{self.parameter: int(size)}) for size in self.sizes
        ]
        return [
            Candidate(name=f"{before}{parameter}={size}", model=model)
            for size, model in zip(self.sizes, models, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class CandidateUnit:
    """What is fitted at once: a candidate, or the largest member of a nested family with all
    sizes to read it at; ``family`` is the candidate that it is a setting of.
    """

    name: str
    model: Model
    members: tuple[Candidate, ...]
    sizes: tuple[int, ...] | None = None
    capacity: StatedCapacity | None = None
    family: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class SelectionProblem:
    """Candidates and rows, and how tasks run: see `surelearn.selection.select` for the fields."""

    units: tuple[CandidateUnit, ...]
    X: RowsLike
    y: AnyArray
    task: Task
    held_out: Ints | None = None
    groups: npt.ArrayLike | None = None
    time: npt.ArrayLike | None = None
    costs: Costs | None = None
    metric: Metric | None = None
    positive: Label | None = None
    combine: bool = False
    delta: float = 0.05
    random_state: int = 0
    known: Mapping[str, Any] = field(default_factory=dict)
    comparison: str = field(
        default_factory=token_hex
    )  # names these rows to processes that keep some
    n_jobs: int | None = None
    journal: jobs.Journal | None = None
    progress: jobs.Progress | None = None
    prefix: str = ""

    @property
    def candidates(self) -> list[Candidate]:
        """Every candidate, members of families one by one."""
        return [member for unit in self.units for member in unit.members]

    @property
    def unit_of(self) -> list[CandidateUnit]:
        """The unit of each candidate."""
        return [unit for unit in self.units for _ in unit.members]

    @cached_property
    def preparations(self) -> dict[str, str]:
        """Which preparation of the columns a unit shares with others, by its name."""
        return groups_of({unit.name: unit.model for unit in self.units})

    def run(self, tasks: list[jobs.Task]) -> list[Any]:
        """Results of tasks, in their order; those that are known are not computed again."""
        new = [task for task in tasks if task.key not in self.known]
        found = jobs.run(new, n_jobs=self.n_jobs, journal=self.journal, progress=self.progress)
        done = dict(zip((task.key for task in new), found, strict=True))
        return [done[t.key] if t.key in done else self.known[t.key] for t in tasks]

    def measure(
        self,
        what: str,
        function: Callable[..., list[Any]],
        train: Positions | None = None,
        **arguments: Any,
    ) -> list[Any]:
        """Fit every unit on ``train`` (all rows unless told) and gather what ``function`` reads
        off each candidate.
        """
        tasks = [
            jobs.Task(
                key=f"{self.prefix}select/{unit.name}/{what}",
                function=fit_and_measure,
                arguments={
                    "model": unit.model, "sizes": unit.sizes, "X": self.X, "y": self.y, "train": train,
                    "function": function, "arguments": arguments,
                },
            )
            for unit in self.units
        ]  # fmt: skip
        return [reading for readings in self.run(tasks) for reading in readings]


def fit_and_measure(
    model: Model,
    sizes: Sequence[int] | None,
    X: RowsLike,
    y: AnyArray,
    train: Positions | None,
    function: Callable[..., list[Any]],
    arguments: Mapping[str, Any],
) -> list[Any]:
    """One task: fit on some rows, and call ``function(fitted, sizes, X, y, …)`` with those rows."""
    rows = np.arange(y.size) if train is None else train
    X, y = take_for(model, X, rows), y[rows]
    return function(fit_quietly(model, X, y), sizes, X, y, **arguments)


def fit_and_predict_prefixes(
    model: Model,
    sizes: Sequence[int] | None,
    X: RowsLike,
    y: AnyArray,
    train: Positions,
    test: Positions,
    proba: bool = False,
    alike: Alike | None = None,
) -> list[FoldOutcome]:
    """One task: fit on some rows, predict others with every member of a nested family."""
    model, seen, new = prepared(model, X, train, test, alike)
    fitted = fit_quietly(model, seen, y[train])
    last, rows = last_step(fitted, new)
    if not proba or sizes is None:
        return [{"predictions": predicted} for predicted in predictions_of(fitted, sizes, new)]
    if hasattr(last, "predict_proba_at"):
        classes = np.asarray(last.classes_)
        return [
            {"predictions": classes[p.argmax(axis=1)], "scores": p, "classes": classes}
            for p in last.predict_proba_at(rows, sizes)
        ]
    found: list[FoldOutcome] = [
        {"predictions": predicted} for predicted in predictions_of(fitted, sizes, new)
    ]
    if hasattr(last, "staged_predict_proba"):
        for one, scores in zip(
            found, at_sizes(last.staged_predict_proba(rows), sizes), strict=True
        ):
            one["scores"], one["classes"] = scores, np.asarray(last.classes_)
    return found


def narrowed(problem: SelectionProblem, pairs: Pairs, value: Value) -> SelectionProblem:
    """The problem without the worse half of the settings of each `Searched` candidate that has
    more than two, by their values on the last pair.
    """
    families = Counter(unit.family for unit in problem.units if unit.family)
    searched = [unit for unit in problem.units if families[unit.family] > MOST_SETTINGS]
    if not searched or len(pairs) < 2:
        return problem
    last = len(pairs) - 1
    tasks = [_fold_task(problem, unit, pairs, last) for unit in searched]
    results = problem.run(tasks)
    values: dict[str, float] = {}
    for unit, found in zip(searched, results, strict=True):
        outcomes = [found] if unit.sizes is None else found
        values[unit.name] = min(value(outcome, pairs[last][1]) for outcome in outcomes)
    kept = list(problem.units)
    for family, count in families.items():
        of_family = sorted(
            (unit.name for unit in searched if unit.family == family), key=values.__getitem__
        )
        dropped = set(of_family[max(MOST_SETTINGS, (count + 1) // 2) :])
        kept = [unit for unit in kept if unit.name not in dropped]
    known = dict(zip((task.key for task in tasks), results, strict=True))
    return replace(problem, units=tuple(kept), known={**problem.known, **known})


def predict_folds(problem: SelectionProblem, pairs: Pairs) -> list[list[FoldOutcome]]:
    """For each candidate, and each pair of fitting and testing rows, its predictions of the
    testing rows.
    """
    from surelearn.selection.criteria.closed_forms import has_closed_form, leave_one_out_predictions

    alone = len(pairs) == problem.y.size > 1 and all(len(test) == 1 for _, test in pairs)
    tasks: list[jobs.Task] = []
    spans: list[tuple[CandidateUnit, int, int]] = []
    common = {"X": problem.X, "y": problem.y}
    for unit in problem.units:
        start = len(tasks)
        if alone and unit.sizes is None and has_closed_form(unit.model, problem.X, problem.task):
            arguments = {"model": unit.model, **common}
            tasks.append(
                jobs.Task(
                    f"{problem.prefix}select/{unit.name}/closed form",
                    leave_one_out_predictions,
                    arguments,
                )
            )
        else:
            tasks += _fold_tasks(problem, unit, pairs)
        spans.append((unit, start, len(tasks)))
    # fold by fold: what candidates share of a fold is kept no longer than that
    order = sorted(
        range(len(tasks)), key=lambda k: getattr(tasks[k].arguments.get("alike"), "fold", -1)
    )
    found_in_order = dict(zip(order, problem.run([tasks[k] for k in order]), strict=True))
    results = [found_in_order[k] for k in range(len(tasks))]
    forget()
    outcomes: list[list[FoldOutcome]] = []
    for unit, start, end in spans:
        found = results[start:end]
        if unit.sizes is not None:
            outcomes += [[fold[i] for fold in found] for i in range(len(unit.members))]
        elif alone and len(found) == 1:
            outcomes.append([{"predictions": found[0][test]} for _, test in pairs])
        else:
            outcomes.append(found)
    return outcomes


def _fold_tasks(problem: SelectionProblem, unit: CandidateUnit, pairs: Pairs) -> list[jobs.Task]:
    return [_fold_task(problem, unit, pairs, i) for i in range(len(pairs))]


def _fold_task(problem: SelectionProblem, unit: CandidateUnit, pairs: Pairs, i: int) -> jobs.Task:
    arguments = {"model": unit.model, "X": problem.X, "y": problem.y}
    arguments["proba"] = problem.task == "classification"
    arguments["train"], arguments["test"] = pairs[i]
    if unit.name in problem.preparations:
        arguments["alike"] = Alike(problem.comparison, i, problem.preparations[unit.name])
    key = f"{problem.prefix}select/{unit.name}/{i}"
    if unit.sizes is None:
        return jobs.Task(key, fit_and_predict, arguments)
    return jobs.Task(key, fit_and_predict_prefixes, {**arguments, "sizes": unit.sizes})


def units_of(candidates: Candidates) -> tuple[CandidateUnit, ...]:
    """What is to be fitted, from what a user gives: models, candidates and nested families,
    alone, listed or named.
    """
    if isinstance(candidates, Mapping):
        items: list[Any] = [_named(str(name), item) for name, item in candidates.items()]
    else:
        items = list(candidates) if isinstance(candidates, Sequence) else [candidates]
    units = tuple(unit for item in items for unit in _units(item))
    as_candidates([member for unit in units for member in unit.members])
    return units


def _named(name: str, item: Model) -> NestedFamily | Searched | Candidate:
    return (
        replace(item, name=name)
        if isinstance(item, NestedFamily | Searched)
        else Candidate(name=name, model=item)
    )


def _units(item: Model) -> list[CandidateUnit]:
    if isinstance(item, Searched):
        inside = [unit for member in item.members for unit in _units(member)]
        return [replace(unit, family=item.name) for unit in inside]
    if not isinstance(item, NestedFamily):
        (candidate,) = as_candidates([item])
        return [
            CandidateUnit(
                candidate.name,
                candidate.model,
                (candidate,),
                capacity=getattr(candidate, "capacity", None),
            )
        ]
    members = item.members()
    if not item.is_staged:
        return [
            CandidateUnit(member.name, member.model, (member,), capacity=item.capacity)
            for member in members
        ]
    sizes = tuple(int(size) for size in item.sizes)
    return [
        CandidateUnit(
            f"{item.name or item.parameter}≤{sizes[-1]}",
            members[-1].model,
            tuple(members),
            sizes,
            item.capacity,
        )
    ]


def predictions_of(fitted: Model, sizes: Sequence[int] | None, X: RowsLike) -> list[AnyArray]:
    """What each member predicts: one for a candidate by itself, one a size for a nested family."""
    if sizes is None:
        return [np.asarray(fitted.predict(X))]
    last, rows = last_step(fitted, X)
    if hasattr(last, "predict_at"):
        return last.predict_at(rows, sizes)
    return at_sizes(last.staged_predict(rows), sizes)


def last_step(fitted: Model, X: RowsLike) -> tuple[Model, RowsLike]:
    """The learner at the end of a pipeline and the rows as they reach it; any other model and
    its rows as they are.
    """
    if _is_pipeline(fitted):
        return fitted[-1], fitted[:-1].transform(X) if len(fitted.steps) > 1 else X
    return fitted, X


def _is_pipeline(model: Model) -> bool:
    return isinstance(getattr(model, "steps", None), list)


def last_of(model: Model) -> Model:
    """The learner at the end of an unfitted pipeline; any other model as it is."""
    return model.steps[-1][1] if _is_pipeline(model) else model
