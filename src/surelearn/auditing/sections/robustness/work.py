"""The work behind the section on robustness, as independent tasks: which rows are attacked, and
what is proved of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.attribution.costs import cost_of
from surelearn.auditing.context import Context
from surelearn.lacking import Lacking
from surelearn.robust import SmoothedClassifier, radii_of
from surelearn.robust.changes import (
    ROUNDS,
    STEPS,
    attack_table,
    move_predictions,
    substitute_categories,
)
from surelearn.robust.tables import Moves, moves_of, view_of
from surelearn.subject import subject_of
from surelearn.subject.forms import KernelForm
from surelearn.subject.refitting import take
from surelearn.subject.torch_modules import is_module
from surelearn.types import AnyArray, Labels, Model, TableRows

NOISE = 0.25  # of smoothing, in standard deviations
SMOOTHED = 0.001  # the failure probability of a smoothed row's radius
_MOST_GRAM = 2e10  # multiplications for the norm of a kernel machine at effort 1
MOVES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)  # radii at which a regressor is looked at
# a call of a forest costs as much as many rows: large pieces
_ROWS, _POOL, _CHUNK, _QUERIES = 150, 300, 150, 200
_MOST_WORK = 2e10  # multiplications in a kernel machine at effort 1
_MOST_SECONDS = 25  # of one core, of attacks on images at effort 1
_MOST_CALLS = 60_000  # predictions of a regressor at effort 1
_MOST_VALUES = 10  # categories tried in a column


def tasks(context: Context) -> list[jobs.Task] | Lacking:
    """Attacks on pieces of a sample of certify rows, proofs for all of it, and substituted
    categories.
    """
    X, y = context.rows("certify")
    kinds = {column.name: column.kind for column in context.columns}
    found = moving(context, X)
    if isinstance(found, Lacking):
        return found
    seen, moves = found
    rows = sampled(context, len(y), len(moves.names))
    X, y = take(X, rows), np.asarray(y)[rows]
    shared = {"model": context.model, "moves": moves}
    if context.task == "regression":
        return [jobs.Task("robustness/moved", move, {**shared, "X": X, "radii": MOVES})]
    shared["labels"] = context.classes if is_module(context.model) else None
    pool = np.random.default_rng(context.seed("robustness/pool")).permutation(len(seen))[:_POOL]
    made = []
    for start in range(0, len(y), _CHUNK):
        some, key = np.arange(start, min(start + _CHUNK, len(y))), f"robustness/attack/{start}"
        asked = {
            "X": take(X, some),
            "y": y[some],
            "pool": take(seen, np.sort(pool)),
            "seed": context.seed(key) % 2**32,
        }
        budget = max(30, round(_QUERIES * context.options.effort))
        made.append(jobs.Task(key, attack, {**shared, **asked, "budget": budget}))
    key = "robustness/proved"
    proofs = {"X": X, "effort": context.options.effort, "seed": context.seed(key) % 2**32}
    made.append(jobs.Task(key, prove, {**shared, **proofs}))
    if choices := _choices(kinds, seen):
        arguments = {"model": context.model, "X": X, "y": y, "choices": choices}
        made.append(jobs.Task("robustness/substituted", substitute, arguments))
    return made


def moving(context: Context, X: TableRows) -> tuple[Any, Moves] | Lacking:
    """The rows that units are taken from, and the columns that move."""
    if subject_of(context.model).inputs.kind == "tokens":
        return Lacking("small changes", "its rows are tokens, and no token lies between two others")
    seen = context.rows("train")[0] if context.trained else X
    moves = moves_of({column.name: column.kind for column in context.columns}, seen, X)
    if context.images is not None and not isinstance(moves, Lacking):
        # one unit for all pixels, as they are scaled
        spread = float(np.std(np.asarray(seen, dtype=float)))
        moves = replace(moves, scale=np.full_like(moves.scale, spread))
    return moves if isinstance(moves, Lacking) else (seen, moves)


def sampled(context: Context, n: int, columns: int) -> np.ndarray:
    """Certify rows that are looked at, fewer where a prediction costs more."""
    effort, size = context.options.effort, subject_of(context.model).learner.size
    most = _ROWS * effort
    queries = 2 * STEPS * ROUNDS
    if context.task == "regression":
        queries = 4 * (len(MOVES) - 1) * (2 * columns + 2)
        most = min(most, _MOST_CALLS * effort / queries)
    if context.images is not None:
        each = cost_of(context.model, columns, frame=False)
        most = min(most, _MOST_SECONDS * 1e6 * effort / (queries * each))
    if size is not None:
        most = min(most, _MOST_WORK * effort / (queries * size))
    return np.sort(
        np.random.default_rng(context.seed("robustness/rows")).permutation(n)[
            : max(20, round(most))
        ]
    )


def _choices(kinds: dict[str, str], seen: TableRows) -> dict[str, list[Any]]:
    """The most frequent categories of every column that has some."""
    names = [name for name in getattr(seen, "columns", ()) if kinds.get(name) == "category"]
    counts = {name: seen[name].value_counts().index[:_MOST_VALUES].tolist() for name in names}
    return {name: values for name, values in counts.items() if len(values) > 1}


def attack(
    model: Model,
    X: TableRows,
    y: AnyArray,
    pool: TableRows,
    moves: Moves,
    labels: Labels,
    budget: int,
    seed: int,
) -> dict[str, Any] | Lacking:
    """`attack_table` as a task: plain results, which a journal keeps."""
    found = attack_table(
        model, X, y, moves, pool=pool, classes=labels, budget=budget, random_state=seed
    )
    if isinstance(found, Lacking):
        return found
    return {
        "kind": "attack",
        **vars(found),
        "changes": [vars(change).copy() for change in found.changes],
    }


def substitute(
    model: Model, X: TableRows, y: AnyArray, choices: Mapping[str, Sequence[Any]]
) -> dict[str, Any] | Lacking:
    """`substitute_categories` as a task."""
    found = substitute_categories(model, X, y, choices)
    if isinstance(found, Lacking):
        return found
    return {"kind": "substituted", **vars(found)}


def move(
    model: Model, X: TableRows, moves: Moves, radii: Sequence[float]
) -> dict[str, Any] | Lacking:
    """`move_predictions` as a task."""
    found = move_predictions(model, X, moves, radii)
    if isinstance(found, Lacking):
        return found
    return {"kind": "moved", **vars(found)}


def prove(
    model: Model, X: TableRows, moves: Moves, labels: Labels, effort: float, seed: int
) -> dict[str, Any] | Lacking:
    """Certified L∞ radii of the model and, for a torch module, L2 radii of the smoothed one; or
    why there are none.
    """
    view = view_of(model, X, moves, labels)
    f, result = (
        replace(view.f, predict=view.truth),
        {"kind": "proved", "radii": None, "smoothed": None},
    )
    form = None if isinstance(f.closed, Lacking) else f.closed.form
    if (
        isinstance(form, KernelForm)
        and len(form.centers) ** 2 * form.centers.shape[1] > _MOST_GRAM * effort
    ):
        centers = f"a kernel machine with {len(form.centers):,} centers"
        return {
            **result,
            "radii": Lacking("radii", f"the norm of {centers} takes more work than allowed"),
        }
    radii = radii_of(f, view.rows, norm="linf", where=view.where)
    if view.truth.lacking is not None:
        return Lacking("proofs", view.truth.lacking.reason)
    if not isinstance(radii, Lacking):
        result["radii"] = {**vars(radii), "inputs": dict(radii.inputs)}
    else:
        result["radii"] = f.pullback if isinstance(f.pullback, Lacking) else radii
    if is_module(model):
        noisy = SmoothedClassifier(
            f, sigma=NOISE, scale=view.where.scale, alpha=SMOOTHED, select=50, random_state=seed
        )
        result["smoothed"] = asdict(noisy.certify(view.rows))
    if view.truth.lacking is not None:
        return Lacking("proofs", view.truth.lacking.reason)
    return result
