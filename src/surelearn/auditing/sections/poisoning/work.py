"""The work behind the section on poisoning, as independent tasks: refits with poison, proofs,
the rows that count most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.attacks.poison_aimed import aimed_rows
from surelearn.attacks.poison_further import trained_further
from surelearn.attacks.poison_labels import change_labels
from surelearn.auditing.context import Context
from surelearn.auditing.own_threshold import OwnThreshold, fits_each, own_threshold
from surelearn.auditing.refitting import affordable_refits, too_costly
from surelearn.auditing.sections.poisoning.influence import influence, of_module
from surelearn.auditing.sections.poisoning.votes import is_vote
from surelearn.auditing.seen import stack, with_seeds
from surelearn.auditing.writing import attempt
from surelearn.claim import Claim
from surelearn.lacking import Lacking
from surelearn.measurement import costs_of
from surelearn.robust.poisoning import CancelledAnswers, cancel_answers, poisoning_thresholds
from surelearn.robust.poisoning.fit import in_numbers as numbers_of
from surelearn.selection.cross_validation import losses_of
from surelearn.subject import subject_of
from surelearn.subject.refitting import fit_quietly, take
from surelearn.subject.registry import DecisionThreshold
from surelearn.subject.torch_modules import is_module
from surelearn.types import AnyArray, Label, Model, TableRows

FRACTIONS = (0.01, 0.03, 0.1, 0.2)
AIMED = (0.03, 0.1)
_DRAWS, _AIMED_DRAWS, _REFITS = 3, 2, 12
_FEW_REFITS = 6  # to find influence with, of a slow learner
# fits with two draws of everything, and few for influence
_FEWEST = 1 + 2 * (len(FRACTIONS) + len(AIMED)) + _FEW_REFITS
LEAST_ROWS = 1000  # to fit to, however slow the learner
MOST_ROWS, MOST_POINTS = 4000, 1000  # to fit to again and again; to measure on
_ELSEWHERE = (
    "{} audit the table itself (surelearn.audit(table, target=…, models={{'name': unfitted"
    " model}})) to see what poison among the rows would do."
)
_NEITHER = (
    "the rows it was fitted on, and how, are not known here. Give them (seen=) with a model that"
    " can be cloned, or"
)
_NOT_HOW = (
    "how it was fitted, so that it could be fitted again, is not known here. Give a model that can"
    " be cloned, or"
)
_NO_NUMBERS = Lacking("risk", "a refitted model predicts values that are not numbers")


def tasks(context: Context) -> list[jobs.Task] | Lacking:
    """Refits with poison, the threshold, and the influence of rows, each a task of its own."""
    if context.unfitted is None:
        return [] if is_vote(context) else _of_module(context)
    rows = most_rows(context)
    if (costly := too_costly(context, rows, _FEWEST * fits_each(context))) is not None:
        return costly
    shared = _shared(context)
    X, y, n = shared["X"], shared["y"], len(shared["y"])
    sample = _draw(context, "rows", n, rows)
    scarce = _scarce(context, len(sample))
    some = {**shared, "X": take(X, sample), "y": y[sample]}
    cut = {"cut": _cut(context)}
    model = with_seeds(subject_of(context.model).uncut, context.seed("poisoning/refits"))
    own = {"own": own_threshold(context), "cost": cost_asked(context)}
    clean = {**some, "model": context.unfitted, "count": 0, **own}
    made = [_part(context, "flipped", flipped, clean)]
    for kind, function, fractions, draws, more in (
        (
            "flipped",
            flipped,
            FRACTIONS,
            _draws(context, _DRAWS, scarce),
            {"model": context.unfitted, **own},
        ),
        (
            "aimed",
            aimed,
            AIMED,
            _draws(context, _AIMED_DRAWS, scarce),
            {"model": model, **cut, **own},
        ),
    ):
        for fraction in fractions:
            count = max(1, round(fraction * len(sample)))
            made += [
                _part(context, kind, function, {**some, **more, "count": count}, fraction, i)
                for i in range(draws)
            ]
    selection = context.selection
    losses = (
        np.full(n, np.nan)
        if selection is None or selection.losses is None
        else np.asarray(selection.losses, float)
    )
    asked = {
        "refits": max(3, round((_FEW_REFITS if scarce else _REFITS) * context.options.effort)),
        "sample": sample,
        "hard": losses,
    }
    made.append(_part(context, "influence", influence, {**shared, "model": model, **asked}))
    plain = {name: value for name, value in shared.items() if name != "task"}
    made.append(_part(context, "proved", proved, {**plain, "model": model, **cut}))
    return made


def run_part(
    part: str,
    fraction: float,
    function: Callable[..., dict[str, Any] | Lacking],
    arguments: dict[str, Any],
) -> dict[str, Any] | Lacking:
    """One part's result, with its name, or what is ``lacking`` in its place; without the refits
    with changed labels the whole section is lacking.
    """
    found = attempt(function, arguments)
    if isinstance(found, Lacking):
        found = found if part == "flipped" else {"lacking": found}
    return found if isinstance(found, Lacking) else {"part": part, "fraction": fraction, **found}


def _part(
    context: Context,
    part: str,
    function: Callable[..., dict[str, Any] | Lacking],
    arguments: dict[str, Any],
    fraction: float = 0.0,
    draw: int = 0,
) -> jobs.Task:
    key = f"poisoning/{part}/{fraction:g}/{draw}"
    arguments = {**arguments, "seed": context.seed(key)}
    inside = {"part": part, "fraction": fraction, "function": function, "arguments": arguments}
    return jobs.Task(key=key, function=run_part, arguments=inside)


def _shared(context: Context) -> dict[str, Any]:
    """Fit rows, and some certify rows to measure on."""
    X, y = context.rows("train")
    new, truth = context.rows("certify")
    points = _draw(context, "points", len(truth), MOST_POINTS)
    return {"X": X, "y": y, "new": take(new, points), "truth": truth[points], "task": context.task}


def _cut(context: Context) -> DecisionThreshold | None:
    """From where on a class is answered, of which response: as the page chose it, or as a model
    fitted elsewhere has it; None for the usual answers.
    """
    if context.threshold is None or context.options.positive is None:
        return subject_of(context.model).cut
    return DecisionThreshold(context.options.positive, float(context.threshold), "predict_proba")


def _draw(context: Context, what: str, n: int, most: int) -> Any:
    return np.sort(np.random.default_rng(context.seed(f"poisoning/{what}")).permutation(n)[:most])


def most_rows(context: Context) -> int:
    """Fit rows that are refitted to: fewer of a slow learner's, at least `LEAST_ROWS`."""
    n, most = len(context.rows("train")[1]), max(50, int(MOST_ROWS * context.options.effort))
    rows = min(n, most)
    fewest = _FEWEST * fits_each(context)
    while rows > LEAST_ROWS and affordable_refits(context, "poisoning", rows) < fewest:
        rows = max(LEAST_ROWS, rows * 3 // 4)
    return rows


def _scarce(context: Context, rows: int) -> bool:
    """Whether all refits on so many rows take more than the work allows."""
    fits = 1 + len(FRACTIONS) * _DRAWS + len(AIMED) * _AIMED_DRAWS + _REFITS
    fits *= fits_each(context)
    return affordable_refits(context, "poisoning", rows) < fits * min(1.0, context.options.effort)


def _draws(context: Context, usual: int, scarce: bool = False) -> int:
    return 2 if scarce else max(2, round(usual * context.options.effort))


def _of_module(context: Context) -> list[jobs.Task] | Lacking:
    """A torch module can be trained further, on rows it was fitted on or on those given; other
    models cannot.
    """
    if not is_module(context.model):
        return Lacking("refits", _ELSEWHERE.format(_NOT_HOW if context.trained else _NEITHER))
    shared = {
        "module": context.model,
        "X": context.X,
        "y": context.y,
        "task": context.task,
        "classes": context.classes,
    }
    if context.seen is not None:
        X, y = context.seen
        shared |= {
            "X": stack(X, context.X),
            "y": np.concatenate([y, context.y]),
            "held": len(context.y),
        }
    made = [
        _part(context, "trained", further, {**shared, "share": share}, share, i)
        for share in FRACTIONS[1:]
        for i in range(_draws(context, _AIMED_DRAWS))
    ]
    return [*made, _part(context, "influence", of_module, shared)]


def flipped(
    model: Model,
    X: TableRows,
    y: AnyArray,
    new: TableRows,
    truth: AnyArray,
    task: str,
    count: int,
    seed: int,
    own: OwnThreshold | None = None,
    cost: tuple[Label, float] | None = None,
) -> dict[str, Any] | Lacking:
    """The risk on new rows of a copy fitted with ``count`` labels changed; 0: none."""
    labels = change_labels(y, count, task, random_state=seed) if count else y
    model = model if own is None else own.model(X, labels)
    risk = risk_of(fit_quietly(model, X, labels).predict(new), truth, task, cost)
    return risk if isinstance(risk, Lacking) else {"risk": risk}


def aimed(
    model: Model,
    X: TableRows,
    y: AnyArray,
    new: TableRows,
    truth: AnyArray,
    task: str,
    count: int,
    seed: int,
    cut: DecisionThreshold | None,
    own: OwnThreshold | None = None,
    cost: tuple[Label, float] | None = None,
) -> dict[str, Any] | Lacking:
    """The risk on new rows of the learner fitted to the rows and ``count`` more, placed where a
    stand-in says they hurt.
    """
    learner, Z, points = prepared(model, X, new)
    found = aimed_rows(learner, Z, y, count, task=task, random_state=seed)
    if isinstance(found, Lacking):
        return found
    numbers = numbers_of(Z, points)
    if isinstance(numbers, Lacking):
        return numbers
    Z, points = numbers
    Z, y = np.vstack([Z, found.X]), np.concatenate([y, found.y])
    fitted = fit_quietly(learner, Z, y)
    if own is not None and cut is not None:
        cut = replace(cut, threshold=own.with_model(learner).of(Z, y))
    risk = risk_of(answers(fitted, points, cut), truth, task, cost)
    if isinstance(risk, Lacking):
        return risk
    return {"risk": risk, "stand_in": found.stand_in, "used": found.used}


def further(
    module: Model,
    X: TableRows,
    y: AnyArray,
    task: str,
    share: float,
    seed: int,
    held: int = 0,
    classes: Sequence[Any] = (),
) -> dict[str, Any] | Lacking:
    """The risk on other rows of a torch module that is trained further, with poison and without."""
    found = trained_further(
        module, X, y, task=task, share=share, classes=classes, held=held, random_state=seed
    )
    if isinstance(found, Lacking):
        return found
    if not np.isfinite([found.clean, found.flipped, found.placed]).all():
        return _NO_NUMBERS
    return vars(found).copy()


def prepared(model: Model, *parts: Any) -> tuple[Any, ...]:
    """The learner inside the model, and rows as it sees them."""
    subject = subject_of(model)
    return subject.last.model, *(subject.rows_for_last(part) for part in parts)


def answers(learner: Model, points: TableRows, cut: DecisionThreshold | None) -> AnyArray:
    """What the learner answers, at a decision threshold if there is one."""
    if cut is None:
        return np.asarray(learner.predict(points))
    classes = np.asarray(learner.classes_)
    column = classes.tolist().index(cut.positive)
    found = np.asarray(getattr(learner, cut.response)(points))
    scores = found[:, column] if found.ndim == 2 else found if column == 1 else -found
    return np.where(scores >= cut.threshold, classes[column], classes[1 - column])


def cost_asked(context: Context) -> tuple[Label, float] | None:
    """The class that matters and what a missed one costs, where refits are judged by that."""
    if context.task != "classification" or context.options.miss is None or context.unfitted is None:
        return None
    return context.options.positive, context.options.miss


def risk_of(
    predictions: AnyArray, truth: AnyArray, task: str, cost: tuple[Label, float] | None = None
) -> float | Lacking:
    """The error rate, the mean cost or the mean absolute error."""
    if cost is None:
        losses = losses_of(predictions, truth, task)
    else:
        positive, miss = cost
        losses = costs_of(np.asarray(truth) == positive, np.asarray(predictions) == positive, miss)
    risk = float(np.mean(losses))
    return risk if np.isfinite(risk) else _NO_NUMBERS


def proved(
    model: Model,
    X: TableRows,
    y: AnyArray,
    new: TableRows,
    truth: AnyArray,
    cut: DecisionThreshold | None,
    seed: int,
) -> dict[str, Any] | Lacking:
    """What is proved, each as a claim with the errors of −w on new rows; and gradient
    cancelling around the threshold.
    """
    found = poisoning_thresholds(model, X, y, cut=cut)
    if isinstance(found, Lacking):
        return found
    task = "regression" if subject_of(model).learner.classes is None else "classification"
    targets = []
    for one in found:
        errors = risk_of(one.predict(new), truth, task)
        if isinstance(errors, Lacking):
            return errors
        targets.append({"target": one.claim.label, "errors": errors, "claim": one.claim.to_dict()})
    attack = cancel_answers(model, X, y, random_state=seed)
    return {"targets": targets, "tried": None if isinstance(attack, Lacking) else _plain(attack)}


def _plain(attack: CancelledAnswers) -> dict[str, Any]:
    return {**vars(attack), "multiples": list(attack.multiples), "flipped": list(attack.flipped)}


def claims_of(result: dict[str, Any]) -> list[tuple[str, float, Claim]]:
    """Each target in words, its errors, and what is proved of it."""
    return [(t["target"], t["errors"], Claim.from_dict(t["claim"])) for t in result["targets"]]
