"""Section: how far rows must change before the model errs: attacks from above, theorems from below, on one chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.adapters.modules import is_module
from surelearn.auditing import robustness_work as work
from surelearn.auditing.context import Context, Unusable
from surelearn.auditing.one_row import learner_of
from surelearn.auditing.robustness_proved import proved_claims, proved_note, right_and_certified
from surelearn.auditing.robustness_view import Moves, moves_of, staying
from surelearn.auditing.single_rows import rows_note
from surelearn.claim import Finding
from surelearn.plain import show
from surelearn.report import Chart, Section, Table
from surelearn.selection.cross_validation import take

TITLE = "What small changes do"
SMALL, TINY = 0.1, 0.01  # standard deviations
RADII = tuple(round(0.05 * i, 2) for i in range(11))
_MOVES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)  # radii at which a regressor is looked at
_ROWS, _POOL, _CHUNK, _QUERIES = 150, 300, 150, 200  # a call of a forest costs as much as many rows: large pieces
_MOST_WORK = 2e10  # multiplications in a kernel machine at effort 1
_MOST_CALLS = 60_000  # predictions of a regressor at effort 1
_MOST_VALUES = 10  # categories tried in a column
_NAMED = 20  # columns that stay, by name
_AXIS = "largest change of any number, in standard deviations"


def tasks(context: Context) -> list[jobs.Task]:
    """Attacks on pieces of a sample of certify rows, proofs for all of it, and substituted categories."""
    X, y = context.rows("certify")
    kinds = {column.name: column.kind for column in context.columns}
    seen = context.rows("train")[0] if context.trained else X
    moves = moves_of(kinds, seen, X)
    rows = _sample(context, len(y), len(moves.names))
    X, y = take(X, rows), np.asarray(y)[rows]
    shared = {"model": context.model, "moves": moves}
    if context.task == "regression":
        return [jobs.Task("robustness/moved", work.move, {**shared, "X": X, "radii": _MOVES})]
    shared["labels"] = context.classes if is_module(context.model) else None
    pool = np.random.default_rng(context.seed("robustness/pool")).permutation(len(seen))[:_POOL]
    made = []
    for start in range(0, len(y), _CHUNK):
        some, key = np.arange(start, min(start + _CHUNK, len(y))), f"robustness/attack/{start}"
        attack = {"X": take(X, some), "y": y[some], "pool": take(seen, np.sort(pool)), "seed": context.seed(key) % 2**32}
        budget = max(30, round(_QUERIES * context.options.effort))
        made.append(jobs.Task(key, work.attack, {**shared, **attack, "budget": budget}))
    key = "robustness/proved"
    proofs = {"X": X, "effort": context.options.effort, "seed": context.seed(key) % 2**32}
    made.append(jobs.Task(key, work.prove, {**shared, **proofs}))
    if choices := _choices(kinds, seen):
        arguments = {"model": context.model, "X": X, "y": y, "choices": choices}
        made.append(jobs.Task("robustness/substituted", work.substitute, arguments))
    return made


def section(context: Context, results: Sequence[Any]) -> Section | None:
    """Accuracy against the size of changes, the smallest ones found, and what is proved."""
    X, y = context.rows("certify")
    seen = context.rows("train")[0] if context.trained else X
    moves = moves_of({column.name: column.kind for column in context.columns}, seen, X)
    rows = _sample(context, len(y), len(moves.names))
    allowed, stay = _allowed(context, moves, X), f" ({kept} unchanged)" if (kept := staying(X, moves)) else ""
    if context.task == "regression":
        return _regression(results[0], np.asarray(y)[rows], allowed, stay)
    attacks = [result for result in results if result["kind"] == "attack"]
    proofs = next(result for result in results if result["kind"] == "proved")
    distance = np.concatenate([part["distance"] for part in attacks])
    truth = np.asarray(y)[rows]
    certified = None if proofs["radii"] is None else [right_and_certified(proofs["radii"], truth, r).mean() for r in RADII]
    shown = _nearest(attacks)
    numbers = context.numbers(rows)
    changes = _changes(context, shown, numbers)
    said = "" if changes is None else rows_note(context)
    findings = [_small_changes(distance, attacks[0], len(y), stay)]
    findings += [_substitution(result) for result in results if result["kind"] == "substituted"]
    return Section(
        key="robustness",
        title=TITLE,
        notes=tuple(filter(None, (_method(attacks[0], certified is not None), allowed, proved_note(context, proofs), said))),
        claims=proved_claims(context, proofs, truth, shown, numbers, SMALL, stay),
        findings=tuple(findings),
        charts=(_chart(distance, certified),),
        tables=() if changes is None else (changes,),
    )


def _sample(context: Context, n: int, moving: int) -> np.ndarray:
    """Certify rows that are looked at, fewer where a prediction costs more."""
    effort, learner = context.options.effort, learner_of(context.model)[1]
    learner = getattr(learner, "regressor_", learner)
    centers = getattr(learner, "centers_", None)
    centers = getattr(learner, "support_vectors_", None) if centers is None else centers
    most = _ROWS * effort
    queries = 2 * work.STEPS * work.ROUNDS
    if context.task == "regression":
        queries = 4 * (len(_MOVES) - 1) * (2 * moving + 2)
        most = min(most, _MOST_CALLS * effort / queries)
    if centers is not None and np.ndim(centers) == 2:
        most = min(most, _MOST_WORK * effort / (queries * np.shape(centers)[0] * np.shape(centers)[1]))
    return np.sort(np.random.default_rng(context.seed("robustness/rows")).permutation(n)[: max(20, round(most))])


def _choices(kinds: dict[str, str], seen: Any) -> dict[str, list[Any]]:
    """The most frequent categories of every column that has some."""
    names = [name for name in getattr(seen, "columns", ()) if kinds.get(name) == "category"]
    counts = {name: seen[name].value_counts().index[:_MOST_VALUES].tolist() for name in names}
    return {name: values for name, values in counts.items() if len(values) > 1}


def _allowed(context: Context, moves: Moves, X: Any) -> str:
    columns = X.shape[1]
    rows = "the fit rows" if context.trained else "the rows given"
    few = ", ".join(moves.names[:3]) + (", …" if len(moves.names) > 3 else "")
    text = (
        f"Changed: {len(moves.names)} of {columns} columns ({few}), in standard deviations of {rows}, within the range seen."
    )
    if columns > len(moves.names):
        text += f" Categories, text, dates and columns with two values stay as they are: {staying(X, moves, _NAMED)}."
    return text + (" Whole numbers may become fractions." if moves.whole.any() else "")


def _method(attack: dict[str, Any], certified: bool) -> str:
    how = f"by predictions alone ({attack['method']}): {attack['why_not']}" if attack["why_not"] else "by gradients"
    text = f"The line is what an attack leaves, {how}. An attack that fails proves nothing: "
    return text + ("the truth lies between the line and the lower edge of the band, which is proved." if certified else
                   "the truth may lie lower.")  # fmt: skip


def _small_changes(distance: np.ndarray, attack: dict[str, Any], of: int, stay: str) -> Finding:
    right, small, tiny = (float((distance > r).mean()) for r in (0.0, SMALL, TINY))
    which = f"{len(distance):,} of {of:,} held-back rows" if len(distance) < of else f"{of:,} rows"
    by = f"by at most {SMALL:g} standard deviations{stay}"
    text = f"Changing every number {by} lowers accuracy from {show(right, 'rate')} to {show(small, 'rate')} ({which})"
    if right == small:
        text = f"No change of numbers {by} was found that turns a right answer ({which})"
    severity = "info" if right - small <= 0.05 else "notice" if right - small <= 0.15 else "warning"
    if right - tiny > 0.1:
        severity, text = "serious", f"{text}, by at most {TINY:g} already to {show(tiny, 'rate')}"
    numbers = {"accuracy": right, "attacked": small, "radius": SMALL, "rows": len(distance), "attack": attack["method"]}
    if right and np.isfinite(median := np.median(distance[distance > 0])):
        numbers["median change"] = float(median)
    return Finding(code="SL601", text=f"{text}.", severity=severity, numbers=numbers)


def _substitution(result: dict[str, Any]) -> Finding:
    right, turned = result["right"], result["turned"]
    share = float(np.any(list(turned.values()), axis=0).sum() / max(1, right.sum()))
    worst = max(turned, key=lambda name: turned[name].sum())
    text = f"Another category in one column, the rest kept, turns {show(share, 'rate')} of the right answers"
    if share:
        text += f", most often in {worst} ({show(float(turned[worst].sum() / right.sum()), 'rate')})"
    numbers = {"share": share, "column": worst, "rows": int(right.sum())}
    return Finding(code="SL602", text=f"{text}.", severity="notice" if share > 0.5 else "info", numbers=numbers)


def _chart(distance: np.ndarray, certified: list[Any] | None) -> Chart:
    attacked = [float((distance > r).mean()) for r in RADII]
    data = {"x": list(RADII), "y": attacked, "x_label": _AXIS, "unit": "rate"}
    title = "Accuracy when every number may change"
    if certified is not None:
        data |= {"low": [float(share) for share in certified], "high": attacked, "proved": True}
        title += ": attacked (line), proved (lower edge)"
    return Chart(kind="curve", title=title, data=data)


def _nearest(attacks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows turned by the smallest changes, by their position in the sample; those with other columns first."""
    found, start = [], 0
    for part in attacks:
        found += [{**change, "row": change["row"] + start} for change in part["changes"]]
        start += len(part["distance"])
    found.sort(key=lambda change: (change["distance"], change["row"]))
    kinds = [tuple(name for name, _, _ in change["columns"]) for change in found]
    again = [kind in kinds[:i] for i, kind in enumerate(kinds)]
    kept = sorted(np.argsort(again, kind="stable")[: work.SHOWN])
    return [found[i] for i in kept]


def _changes(context: Context, shown: list[dict[str, Any]], numbers: np.ndarray) -> Table | None:
    """Rows that a small change turns: which columns, by how much at most, and the values where rows may be shown."""
    if not context.options.show_rows:
        lines = [(f"#{numbers[change['row']]}", *_size(change)) for change in shown]
        head = ("row", "turned by a change of", "each at most (standard deviations)")
        return Table(header=head, rows=tuple(lines)) if lines else None
    rows = []
    for change in shown:
        columns = [f"{name} {' → '.join(_apart(old, new))}" for name, old, new in change["columns"]]
        text = "; ".join(columns[:3]) + (f"; {len(columns) - 3} more" if len(columns) > 3 else "")
        rows.append((f"#{numbers[change['row']]}", text, f"{change['before']} → {change['after']}"))
    return Table(header=("row", "a small change that turns it", "answer"), rows=tuple(rows)) if rows else None


def _size(change: dict[str, Any]) -> tuple[str, str]:
    names = [name for name, _, _ in change["columns"]]
    more = f"; {len(names) - 3} more" if len(names) > 3 else ""
    return "; ".join(names[:3]) + more, show(change["distance"], "number")


def _apart(old: float, new: float) -> tuple[str, str]:
    """Two numbers, with as many digits as tell them apart."""
    if show(old, "number") != show(new, "number"):
        return show(old, "number"), show(new, "number")
    digits = next((d for d in range(5, 17) if f"{old:.{d}g}" != f"{new:.{d}g}"), 17)
    return f"{old:.{digits}g}", f"{new:.{digits}g}"


def _regression(result: dict[str, Any], y: np.ndarray, allowed: str, stay: str) -> Section:
    """How far predictions move."""
    largest, before = result["largest"], result["before"]
    if y.shape != before.shape:
        raise Unusable("the model predicts several numbers a row")
    error, at = float(np.abs(before - y).mean()), _MOVES.index(SMALL)
    moved = float(largest[at].mean())
    text = (
        f"Changing every number by at most {SMALL:g} standard deviations{stay} moves a prediction by "
        f"{show(moved, 'number')} on average, by {show(float(largest[at].max()), 'number')} at most that was found "
        f"({len(before):,} rows); the mean error is {show(error, 'number')}."
    )
    severity = "info" if moved <= 0.5 * error else "notice" if moved <= error else "warning"
    numbers = {"mean change": moved, "largest change": float(largest[at].max()), "mean error": error, "radius": SMALL}
    data = {
        "x": list(_MOVES),
        "y": [float(row.mean()) for row in largest],
        "low": [float(np.quantile(row, 0.1)) for row in largest],
        "high": [float(np.quantile(row, 0.9)) for row in largest],
        "x_label": _AXIS,
        "unit": "number",
    }
    notes = (
        "Found column by column, each to both ends of what is allowed, then together; the band holds eight rows in ten.",
        allowed,
        "Nothing is proved: the theorems about changed rows that are here are about classes.",
    )
    return Section(
        key="robustness",
        title=TITLE,
        notes=notes,
        findings=(Finding(code="SL603", text=text, severity=severity, numbers=numbers),),
        charts=(Chart(kind="curve", title="How far a prediction moves when every number may change", data=data),),
    )
