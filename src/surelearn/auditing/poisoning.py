"""Section: what poisoned training rows would do: what is proved, the damage measured by refits, the rows that count most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.adapters.modules import is_module
from surelearn.auditing import poisoning_view as view
from surelearn.auditing.context import Context, Unusable
from surelearn.auditing.one_row import inside_threshold
from surelearn.auditing.poisoning_damage import aimed, flipped
from surelearn.auditing.poisoning_influence import influence
from surelearn.auditing.poisoning_module import module_influence, trained_further
from surelearn.auditing.poisoning_threshold import proved
from surelearn.auditing.poisoning_votes import is_vote, of_vote
from surelearn.auditing.seen import stack, with_seeds
from surelearn.auditing.single_rows import raised
from surelearn.report import Section
from surelearn.selection.cross_validation import take

TITLE = "What if training rows were poisoned?"
FRACTIONS = (0.01, 0.03, 0.1, 0.2)
AIMED = (0.03, 0.1)
_DRAWS, _AIMED_DRAWS, _REFITS = 3, 2, 12
_MOST_ROWS, _MOST_POINTS = 4000, 1000  # to fit to again and again; to measure on
_ELSEWHERE = (
    "{} audit the table itself (surelearn.audit(table, target=…, models={{'name': unfitted model}})) to see what poison "
    "among the rows would do."
)
_NEITHER = "the rows it was fitted on, and how, are not known here. Give them (seen=) with a model that can be cloned, or"
_NOT_HOW = "how it was fitted, so that it could be fitted again, is not known here. Give a model that can be cloned, or"


def tasks(context: Context) -> list[jobs.Task]:
    """Refits with poison, the threshold, and the influence of rows, each a task of its own."""
    if context.unfitted is None:
        return [] if is_vote(context) else _of_module(context)
    shared = _shared(context)
    X, y, n = shared["X"], shared["y"], len(shared["y"])
    sample = _draw(context, "rows", n, max(50, int(_MOST_ROWS * context.options.effort)))
    some = {**shared, "X": take(X, sample), "y": y[sample]}
    cut = _cut(context)
    model = with_seeds(inside_threshold(context.model), context.seed("poisoning/refits"))
    made = [_part(context, "flipped", flipped, {**some, "model": context.unfitted, "count": 0})]
    for kind, function, fractions, draws, more in (
        ("flipped", flipped, FRACTIONS, _draws(context, _DRAWS), {"model": context.unfitted}),
        ("aimed", aimed, AIMED, _draws(context, _AIMED_DRAWS), {"model": model, **cut}),
    ):
        for fraction in fractions:
            count = max(1, round(fraction * len(sample)))
            made += [_part(context, kind, function, {**some, **more, "count": count}, fraction, i) for i in range(draws)]
    selection = context.selection
    losses = np.full(n, np.nan) if selection is None or selection.losses is None else np.asarray(selection.losses, float)
    asked = {"refits": max(3, round(_REFITS * context.options.effort)), "sample": sample, "hard": losses}
    made.append(_part(context, "influence", influence, {**shared, "model": model, **asked}))
    plain = {name: value for name, value in shared.items() if name != "task"}
    made.append(_part(context, "proved", proved, {**plain, "model": model, **cut}))
    return made


def section(context: Context, results: Sequence[Any]) -> Section | None:
    """What was measured and what is proved, kept apart."""
    found = view.Found.of(results)
    if context.unfitted is None:
        return of_vote(context, TITLE) if is_vote(context) else view.of_module(context, TITLE, found)
    used = min(len(context.rows("train")[1]), max(50, int(_MOST_ROWS * context.options.effort)))
    seen = min(len(context.rows("certify")[1]), _MOST_POINTS)
    return view.of_table(context, TITLE, found, used, seen)


def run_part(part: str, fraction: float, function: Callable[..., dict[str, Any]], arguments: dict[str, Any]) -> Any:
    """One part's result, with its name; of all but the refits with changed labels, ``why`` there is none."""
    named: dict[str, Any] = {"part": part, "fraction": fraction}
    if part == "flipped":
        return {**named, **function(**arguments)}
    try:
        return {**named, **function(**arguments)}
    except Unusable as reason:
        return {**named, "why": str(reason)}
    except Exception as error:  # a model may raise anything, and the other parts stay
        return {**named, "why": raised(error)}


def _part(
    context: Context, part: str, function: Any, arguments: dict[str, Any], fraction: float = 0.0, draw: int = 0
) -> jobs.Task:
    key = f"poisoning/{part}/{fraction:g}/{draw}"
    arguments = {**arguments, "seed": context.seed(key)}
    inside = {"part": part, "fraction": fraction, "function": function, "arguments": arguments}
    return jobs.Task(key=key, function=run_part, arguments=inside)


def _shared(context: Context) -> dict[str, Any]:
    """Fit rows, and some certify rows to measure on."""
    X, y = context.rows("train")
    new, truth = context.rows("certify")
    points = _draw(context, "points", len(truth), _MOST_POINTS)
    return {"X": X, "y": y, "new": take(new, points), "truth": truth[points], "task": context.task}


def _cut(context: Context) -> dict[str, Any]:
    """From where on a class is answered, of which response: as the page chose it, or as a model fitted elsewhere has it."""
    model, threshold, positive = context.model, context.threshold, context.options.positive
    if threshold is not None or (inside := inside_threshold(model)) is model:
        return {"threshold": threshold, "positive": positive}
    response = model.response_method
    if response == "auto":
        response = "predict_proba" if hasattr(inside, "predict_proba") else "decision_function"
    threshold = getattr(model, "best_threshold_", getattr(model, "threshold", "auto"))
    if threshold == "auto":
        threshold = 0.5 if response == "predict_proba" else 0.0
    scorer = getattr(model, "_curve_scorer", None)  # of a threshold that was tuned
    positive = getattr(model, "pos_label", None) if scorer is None else scorer._get_pos_label()
    return {"threshold": threshold, "positive": model.classes_[1] if positive is None else positive, "response": response}


def _draw(context: Context, what: str, n: int, most: int) -> Any:
    return np.sort(np.random.default_rng(context.seed(f"poisoning/{what}")).permutation(n)[:most])


def _draws(context: Context, usual: int) -> int:
    return max(2, round(usual * context.options.effort))


def _of_module(context: Context) -> list[jobs.Task]:
    """A torch module can be trained further, on rows it was fitted on or on those given; other models cannot."""
    if not is_module(context.model):
        raise Unusable(_ELSEWHERE.format(_NOT_HOW if context.trained else _NEITHER))
    shared = {"module": context.model, "X": context.X, "y": context.y, "task": context.task, "classes": context.classes}
    if context.seen is not None:
        X, y = context.seen
        shared |= {"X": stack(X, context.X), "y": np.concatenate([y, context.y]), "held": len(context.y)}
    made = [
        _part(context, "trained", trained_further, {**shared, "share": share}, share, i)
        for share in FRACTIONS[1:]
        for i in range(_draws(context, _AIMED_DRAWS))
    ]
    return [*made, _part(context, "influence", module_influence, shared)]
