"""What is explained for the attribution section: which rows, which number of the model, by
which method; and its tasks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.attribution import explain
from surelearn.attribution.costs import cost_of, cost_of_pair, letters_of
from surelearn.attribution.pipelines import prepared
from surelearn.auditing.context import Context
from surelearn.lacking import Lacking
from surelearn.subject import Task, classes_of, predict_with, subject_of
from surelearn.subject.predicting import missing
from surelearn.subject.refitting import column_names, take
from surelearn.subject.torch_modules import is_module, module_functions
from surelearn.types import AnyArray, Array, ImageShape, Label, Model, TableRows

REPEATS = 8  # independent backgrounds
WORK = 4_500_000  # microseconds of one core at effort 1, counted, not timed
# rows, background rows
SIZES = ((100, 25), (100, 10), (50, 10), (50, 5), (25, 5), (25, 2), (12, 2), (12, 1), (6, 1))
TILES = 49  # of an image that play, about
_MOST_PLAYERS = 60  # columns that are sampled one by one; more play in blocks of neighbors
_DRAWS = 8  # pairs of orders that a background should have
_FEWEST_DRAWS = 2
_PROBED = (12, 4)
_METHODS = {"probability": "predict_proba", "score": "decision_function"}
_LOOKED = 1000  # certify rows among which a few are picked for the table


def tasks(context: Context) -> list[jobs.Task] | Lacking:
    """One task for each background."""
    chosen = choose_rows(context)
    if isinstance(chosen, Lacking):
        return chosen
    rows, picked, background = chosen
    X = context.rows("certify")[0]
    both = as_table(take(X, np.concatenate([rows, list(picked.values())]).astype(int)))
    played = see_through(
        bare(context.model), both, as_table(background), believed=context.images is not None
    )
    labels = list(context.classes)
    question = question_of(
        played, context.predicts, labels, context.options.positive, context.target
    )
    planned = plan_of(
        played, question, len(picked), len(context.y), context.options.effort, context.images
    )
    if isinstance(planned, Lacking):
        return planned
    played, question, plan = planned
    shown = np.concatenate([np.arange(plan.rows), len(rows) + np.arange(len(picked))]).astype(int)
    facts = {
        "names": played.names,
        "words": question.words,
        "method": question.method,
        "rows": plan.rows,
        "picked": {kind: int(row) for kind, row in picked.items()},
        "coalitions": plan.coalitions,
        "background": min(REPEATS * plan.background, len(played.background)),
        "grouped": len(played.names) < both.shape[1],
        "columns": both.shape[1],
        **({} if context.images is None else {"side": side_of(context.images)}),
    }
    made = []
    for i in range(REPEATS):
        key = f"attribution/{i}"
        other = (i * plan.background + np.arange(plan.background)) % len(played.background)
        arguments = {
            "played": part(played, shown, other),
            "question": question,
            "coalitions": plan.coalitions,
        }
        arguments |= {"seed": context.seed(key), "facts": facts}
        made.append(jobs.Task(key=key, function=share_out, arguments=arguments))
    return made


def share_out(facts: dict[str, Any], **arguments: Any) -> dict[str, Any] | Lacking:
    """The shares against one background, with what they are shares of."""
    found = shares(**arguments)
    return found if isinstance(found, Lacking) else {**found, "facts": facts}


@dataclass(frozen=True, eq=False)
class Played:
    """A model with the rows as it sees them, and for each column of the user's table its
    columns there (none: unused).
    """

    model: Any
    X: Any
    background: Any
    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Question:
    """Which number of the model is shared out, in words too, and the ``method`` of `explain`
    that does it.
    """

    output: Any
    target: Any
    words: str
    method: str = "sampling"


class Votes:
    """1 where a model that gives labels only gives this one, else 0; a column for each label.

    ``lacking`` says so, once an answer was NaN: `explain` asks in its own loop.
    """

    def __init__(self, model: Model, labels: Sequence[Any]) -> None:
        self.model, self.labels = model, tuple(labels)
        self.lacking: Lacking | None = None

    def __call__(self, X: TableRows) -> Any:
        """One column for each label."""
        said = np.asarray(predict_with(self.model)(X))
        if missing(said).any():
            self.lacking = Lacking("answers", "the model returned NaN for changed rows")
        return np.stack([said == label for label in self.labels], axis=1).astype(float)


class Outputs:
    """What a torch module gives for rows, in its evaluation mode."""

    def __init__(self, module: Model) -> None:
        self.module = module

    def __call__(self, X: TableRows) -> Any:
        """Raw outputs (rows, outputs)."""
        return module_functions(self.module, None)[0](np.asarray(X))


class Says:
    """A method of a whole pipeline that mixes columns; ``sign`` −1 gives the score of the other
    of two classes.
    """

    def __init__(self, model: Model, method: str, sign: float = 1.0) -> None:
        self.model, self.method, self.sign = model, method, sign

    def __call__(self, X: TableRows) -> Any:
        """Numbers."""
        return self.sign * np.asarray(getattr(self.model, self.method)(X), dtype=float)


def bare(model: Model) -> Any:
    """The model inside a decision threshold or a search: it says the same of a row, less the
    decision.
    """
    return subject_of(model).bare


def see_through(
    model: Model, X: TableRows, background: TableRows, *, believed: bool = False
) -> Played:
    """The model behind a preparation that goes column by column, where there is one, else the
    model itself.
    """
    d, names = X.shape[1], column_names(X)
    alone = [[j] for j in range(d)]
    model, X, background, columns = prepared(model, X, background, alone, believed=believed) or (
        model,
        X,
        background,
        alone,
    )
    return Played(model, X, background, names, tuple(map(tuple, columns)))


def question_of(
    played: Played, task: Task, labels: Sequence[Any], positive: Label, target: str
) -> Question:
    """The first output whose shares are exact in closed form, or as a sum over columns; else
    one to enumerate or sample.
    """
    asked = _questions(played, task, labels, positive, target)
    rows, background = _PROBED
    few = replace(
        played,
        X=take(played.X, slice(rows)),
        background=take(played.background, slice(background)),
    )
    for method in ("closed form", "additive"):
        for question in asked:
            if isinstance(question.output, Votes) or (
                method == "closed form" and callable(question.output)
            ):
                continue
            try:
                shares(few, replace(question, method=method), 2, 0)
            # not of this form; what else is wrong is said when the shares are asked for
            except ValueError:
                continue
            return replace(question, method=method)
    return asked[0]


def _questions(
    played: Played, task: Task, labels: Sequence[Any], positive: Label, target: str
) -> list[Question]:
    model = played.model
    if is_module(model):
        return [_of_module(played, task, labels, positive, target)]
    if task == "regression":
        output = Says(model, "predict") if _is_pipeline(model) else "value"
        return [Question(output, None, f"prediction of {target}" if target else "prediction")]
    classes = classes_of(model)
    known = list(labels if classes is None else classes)
    chosen = _chosen(known, positive)
    of = "the class that is predicted" if chosen is None else str(known[chosen])
    kinds = [kind for kind in _METHODS if classes is not None and _gives(model, kind)]
    if kinds:
        return [Question(*_output(model, kind, known, chosen), f"{kind} of {of}") for kind in kinds]
    words = "answer that is given" if chosen is None else f"answer {of}"
    return [Question(Votes(model, known), chosen, f"{words} (1) or another (0)")]


def _gives(model: Model, kind: str) -> bool:
    """Whether a classifier gives probabilities, or raw scores by whatever method."""
    declared = kind == "score" and not isinstance(subject_of(model).decisions, Lacking)
    return declared or hasattr(model, _METHODS[kind])


def _output(model: Model, kind: str, classes: list[Any], chosen: int | None) -> tuple[Any, Any]:
    """Output and target of `explain`; a pipeline that was not seen through is asked as a whole."""
    if not _is_pipeline(model):
        return kind, None if chosen is None else classes[chosen]
    flipped = kind == "score" and len(classes) == 2
    return Says(
        model, _METHODS[kind], -1.0 if flipped and chosen == 0 else 1.0
    ), None if flipped else chosen


def _is_pipeline(model: Model) -> bool:
    around = subject_of(model).around
    return around is not None and bool(around.steps)


def _of_module(
    played: Played, task: Task, labels: Sequence[Any], positive: Label, target: str
) -> Question:
    output = Outputs(played.model)
    if task == "regression":
        return Question(output, None, f"prediction of {target}" if target else "prediction")
    given, chosen = output(take(played.X, slice(1))).shape[1], _chosen(list(labels), positive)
    if given == 1 and len(labels) == 2:
        return Question(output, None, f"score of {labels[1]}")
    if given == len(labels) and chosen is not None:
        return Question(output, chosen, f"score of {labels[chosen]}")
    return Question(output, None, "score of the class that is predicted")


def _chosen(labels: list[Any], positive: Label) -> int | None:
    """The class that matters, else the second of two, else none: that which is predicted."""
    return labels.index(positive) if positive in labels else (1 if len(labels) == 2 else None)


@dataclass(frozen=True)
class ShapleyPlan:
    """Rows to explain, background rows for each repeat, and coalitions for each where they are
    sampled.
    """

    rows: int
    background: int
    coalitions: int
    exact: bool


def plan_of(
    played: Played,
    question: Question,
    extra: int,
    size: int,
    effort: float,
    images: ImageShape | None = None,
) -> tuple[Played, Question, ShapleyPlan] | Lacking:
    """The largest sample within the work; what cannot be had exactly is enumerated if that fits,
    else sampled.

    Tables of more than 2,000 rows (``size``), whose audit takes longer anyway, are given up to four
    times the work.
    """
    usual = WORK * min(4.0, max(1.0, size / 2000)) / REPEATS
    allowed, most = (
        usual * effort,
        (len(played.X) - extra, max(1, len(played.background) // REPEATS)),
    )
    sizes = list(
        dict.fromkeys((min(rows, most[0]), min(background, most[1])) for rows, background in SIZES)
    )
    cost, n = (
        cost_of(
            played.model, played.X.shape[1], hasattr(played.X, "columns"), letters_of(played.X)
        ),
        len(played.names),
    )

    def fitting(coalitions: float, each: float) -> tuple[int, int] | None:
        return next(
            ((r, b) for r, b in sizes if (r + extra) * b * coalitions * each <= allowed), None
        )

    if question.method == "closed form":
        rows, background = (
            fitting(1, cost_of_pair(played.model, played.X.shape[1], len(played.names)))
            or sizes[-1]
        )
        return played, question, ShapleyPlan(rows, background, 0, True)
    if question.method == "additive":
        rows, background = fitting(n + 18, cost) or sizes[-1]
        return played, question, ShapleyPlan(rows, background, 0, True)
    if (found := fitting(2.0**n, cost)) and (found[0] >= 25 or found == sizes[0]):
        return played, replace(question, method="exact"), ShapleyPlan(*found, 2**n, True)
    played = in_blocks(played) if images is None else in_tiles(played, images)
    draw = 2 * (len(played.names) - 1)
    found = fitting(_DRAWS * draw, cost) or fitting(_FEWEST_DRAWS * draw, cost)
    if found is None:
        rows, background = sizes[-1]
        needed = (rows + extra) * background * _FEWEST_DRAWS * draw * cost / usual
        told = f"{len(played.names)} columns need more predictions than the work allows"
        return Lacking("Shapley values", f"{told}: pass `--effort {_rounded_up(needed):g}`.")
    coalitions = int(allowed / ((found[0] + extra) * found[1] * cost))
    return played, question, ShapleyPlan(*found, coalitions, False)


def _rounded_up(effort: float) -> float:
    return float(np.ceil(effort * 10) / 10) if effort < 10 else float(np.ceil(effort))


def in_blocks(played: Played) -> Played:
    """Many features are grouped in blocks of neighbors, each a player."""
    n = len(played.names)
    if n <= _MOST_PLAYERS:
        return played
    blocks = np.array_split(np.arange(n), _MOST_PLAYERS // 2)
    names = tuple(
        played.names[b[0]] if len(b) == 1 else f"{played.names[b[0]]} to {played.names[b[-1]]}"
        for b in blocks
    )
    columns = tuple(tuple(sorted(j for i in block for j in played.columns[i])) for block in blocks)
    return replace(played, names=names, columns=columns)


def in_tiles(played: Played, shape: ImageShape) -> Played:
    """Neighboring pixels play together, with all their channels: rectangles of about equal size."""
    height, width, channels = shape
    tiles = tiles_of(shape, side_of(shape))
    names, columns = [], []
    at = np.arange(height * width * channels).reshape(shape)
    for top, bottom, left, right in tiles:
        lines = f"{top + 1} to {bottom}" if bottom - top > 1 else f"{bottom}"
        across = f"{left + 1} to {right}" if right - left > 1 else f"{right}"
        names.append(f"pixels {lines}, {across}")
        held = at[top:bottom, left:right].ravel().tolist()
        columns.append(tuple(sorted(j for i in held for j in played.columns[i])))
    return replace(played, names=tuple(names), columns=tuple(columns))


def side_of(shape: ImageShape) -> int:
    """Of the squares that an image is cut into."""
    height, width, _ = shape
    return max(1, math.ceil(math.sqrt(height * width / TILES)))


def tiles_of(shape: ImageShape, side: int) -> list[tuple[int, int, int, int]]:
    """Top, bottom, left and right of the squares that an image is cut into.

    Examples
    --------
    >>> tiles_of((2, 3, 1), 2)
    [(0, 2, 0, 2), (0, 2, 2, 3)]
    """
    height, width, _ = shape
    return [
        (top, min(top + side, height), left, min(left + side, width))
        for top in range(0, height, side)
        for left in range(0, width, side)
    ]


def shares(
    played: Played, question: Question, coalitions: int, seed: int
) -> dict[str, Any] | Lacking:
    """The shares of the columns in what the model says of rows, against one background: one
    task.
    """
    held = {str(i): list(columns) for i, columns in enumerate(played.columns) if columns} or {
        "0": []
    }
    # prepared columns that never change
    never = set(range(played.X.shape[1])).difference(*held.values())
    next(iter(held.values())).extend(sorted(never))
    output = question.output
    if isinstance(output, Votes):  # its own, which keeps what is lacking in these answers alone
        output = Votes(output.model, output.labels)
    options: dict[str, Any] = {"output": output, "target": question.target, "groups": held}
    if question.method == "sampling":
        options |= {"budget": coalitions, "random_state": seed}
    made = explain(played.model, played.X, played.background, method=question.method, **options)
    if isinstance(output, Votes) and output.lacking is not None:
        return output.lacking
    values = np.zeros((len(played.X), len(played.names)))
    values[:, [int(name) for name in made.names]] = np.reshape(made.values, (len(played.X), -1))
    empty, full = (
        np.broadcast_to(end, len(played.X)).astype(float) for end in (made.empty, made.full)
    )
    return {"values": values, "empty": empty, "full": full, "predictions": made.model_rows}


def part(played: Played, rows: AnyArray, background: AnyArray) -> Played:
    """Some of the rows and of the background."""
    return replace(played, X=take(played.X, rows), background=take(played.background, background))


def choose_rows(context: Context) -> tuple[Any, dict[str, int], Any] | Lacking:
    """Certify rows to explain, those to show one by one, and background rows: train rows, or
    certify rows beside them.
    """
    X, y = context.rows("certify")
    if len(getattr(X, "shape", ())) != 2:
        why = "Shapley values are for tables: rows with one number, word or date per column."
        return Lacking("Shapley values", why)
    train = context.rows("train")[0]
    order = np.random.default_rng(context.seed("attribution/rows")).permutation(len(y))
    most, wanted = SIZES[0][0], REPEATS * SIZES[0][1]
    if train.shape[0]:
        others = np.random.default_rng(context.seed("attribution/background")).permutation(
            train.shape[0]
        )
        background, rows = take(train, others[:wanted]), order[:most]
    elif len(y) < 2:
        why = "there is one row only, and no background to compare it with."
        return Lacking("Shapley values", why)
    else:
        half = min(wanted, len(y) - len(y) // 2)
        background, rows, order = take(X, order[:half]), order[half:][:most], order[half:]
    return rows, _picked(context, order[:_LOOKED]), background


def _picked(context: Context, rows: AnyArray) -> dict[str, int]:
    """Rows to show: a typical one, the least certain, the surest of the wrong ones; of amounts
    the largest and the worst.
    """
    X, y = context.rows("certify")
    X, y = take(X, rows), np.asarray(y)[rows]
    if context.task == "regression":
        said = np.asarray(_said(context, X), dtype=float).reshape(len(rows))
        off = np.abs(said - y.astype(float))
        found = {
            "typical": _nearest_median(said),
            "largest": int(said.argmax()),
            "farthest off": int(off.argmax()),
        }
    else:
        right = np.asarray(_said(context, X) == y)
        sure = _certainty(context, X)
        sure, known = (np.zeros(len(rows)), False) if sure is None else (sure, True)
        found = {}
        if right.any():
            found["typical"] = int(np.flatnonzero(right)[_nearest_median(sure[right])])
        if known:
            found["least certain"] = int(sure.argmin())
        if not right.all():
            found["wrong"] = int(np.flatnonzero(~right)[sure[~right].argmax()])
    return {kind: int(rows[place]) for kind, place in found.items()}


def _nearest_median(numbers: Array) -> int:
    return int(np.abs(numbers - np.median(numbers)).argmin())


def _said(context: Context, X: TableRows) -> Any:
    """Predictions, a module's as labels."""
    return np.asarray(predict_with(context.model, context.classes or None)(X))


def _certainty(context: Context, X: TableRows) -> Any:
    """How far the first class is ahead of the next; None for a model that gives labels only."""
    model = context.model
    if is_module(model):
        scores = Outputs(model)(X)
    else:
        subject = subject_of(model)
        asked = subject.probabilities if subject.gives_probabilities else subject.decisions
        if subject.classes is None or isinstance(asked, Lacking):
            return None
        scores = np.asarray(asked(X))
    scores = scores.reshape(len(scores), -1).astype(float)
    if scores.shape[1] == 1:
        return np.abs(scores[:, 0])
    best = np.sort(scores, axis=1)
    return best[:, -1] - best[:, -2]


def as_table(X: TableRows) -> Any:
    """Dense rows: a data frame or an array."""
    table: Any = X
    if hasattr(table, "to_pandas"):
        return table.to_pandas()
    return table.toarray() if hasattr(table, "toarray") else table
