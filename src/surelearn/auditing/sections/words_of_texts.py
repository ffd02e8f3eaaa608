"""Section: which words of texts push the model's answers towards which class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.attribution import WordAttribution, words
from surelearn.attribution.occlusion import MOST_TEXTS, Texts
from surelearn.auditing.context import Context
from surelearn.auditing.single_rows import FEWEST
from surelearn.auditing.writing import Entry
from surelearn.claim import Finding
from surelearn.lacking import Lacking
from surelearn.plain import show
from surelearn.report import PageTable, Section
from surelearn.subject.refitting import take
from surelearn.types import Ints, TableRows

LETTERS = 4_000_000  # of text that is counted at effort 1
MOST_ROWS = {"train": 5_000, "certify": 1_000}
MOST_CLASSES = 12
MOST_WORDS = 8  # of each class
_LOOKED = 100  # rows whose letters are counted, and in which columns of texts are looked for
_KINDS = (
    ("words", "words and pairs of words that may be told"),
    ("rare", "rarer words"),
    ("letters", "runs of letters that are not known to lie in words"),
    ("others", "other columns"),
)


def tasks(context: Context) -> list[jobs.Task]:
    """One task, where there are columns of texts."""
    X, _ = context.rows("certify")
    if len(getattr(X, "shape", ())) != 2 or not X.shape[0]:
        return []
    names = _columns(context, X)
    if not names:
        return []
    rows, background = _rows(context, names)
    arguments = {
        "model": context.model,
        "X": take(X, rows),
        "background": background[0],
        "groups": background[1],
        "columns": names,
        "min_rows": 1 if context.options.show_rows else FEWEST,
        "random_state": context.seed("words"),
    }
    return [jobs.Task(key="words", function=words, arguments=arguments)]


def _columns(context: Context, X: TableRows) -> tuple[str, ...]:
    """The columns of texts, as the table was read or as its first rows look."""
    if context.columns:
        kinds = {column.name: column.kind for column in context.columns}
        return tuple(str(name) for name in X.columns if kinds.get(name) == "text")  # type: ignore[attr-defined]
    return Texts.of(take(X, slice(_LOOKED))).wordy()


def _rows(context: Context, names: Sequence[str]) -> tuple[Ints, tuple[Any, Any]]:
    """Positions of certify rows to explain, and background rows with their groups: train rows or,
    where none are known, certify rows.
    """
    X, y = context.rows("certify")
    order = np.random.default_rng(context.seed("words/rows")).permutation(len(y))
    known = context.rows("train")[0]
    beside = "train" if known.shape[0] else "certify"
    known = known if known.shape[0] else X
    budget = LETTERS * context.options.effort
    most = _affordable(known, names, budget, MOST_ROWS["train"])
    others = np.random.default_rng(context.seed("words/background")).permutation(known.shape[0])
    others = np.sort(others[:most])
    chosen = np.sort(order[: _affordable(X, names, budget / 4, MOST_ROWS["certify"])])
    groups = _groups(context, beside)
    return chosen, (take(known, others), None if groups is None else groups[others])


def _affordable(X: TableRows, names: Sequence[str], letters: float, most: int) -> int:
    """Rows of the usual length that have so many letters, at most ``most``; at least 1."""
    each = max(1.0, float(Texts.of(take(X, slice(_LOOKED))).letters(names).mean()))
    return int(np.clip(letters / each, 1, most))


def _groups(context: Context, purpose: str) -> Any:
    if context.groups is None:
        return None
    if context.split is None:
        return None if purpose == "train" else np.asarray(context.groups)
    index = np.union1d(context.split.fit, context.split.select)
    return np.asarray(context.groups)[index if purpose == "train" else context.split.certify]


def section(context: Context, results: Sequence[Any]) -> Section | Lacking | None:
    """For each class, the words with the largest mean |contribution| and which way they push."""
    if not results:
        return None
    found: WordAttribution = results[0]
    lines = _table(context, found)
    if not lines.rows:
        return Lacking("words", f"no word of the model's stands in {found.min_rows} rows or more.")
    return ENTRY.says(
        notes=tuple(_notes(context, found)), findings=(_finding(found),), tables=(lines,)
    )


def _notes(context: Context, found: WordAttribution) -> Iterator[str]:
    where = "training" if context.trained else "audited"
    told = f"{found.rows:,} held-back rows"
    if found.method == "exact":
        yield (
            f"A word's contribution is what its terms (coefficient × TF-IDF) add to the {found.score}"
            f" of a row, less the mean over {found.background_rows:,} {where} rows; runs of letters"
            f" count to the words that they lie in. With other columns these sum to the {found.score}"
            f" less its mean, exactly. Means of |contribution| are over {told}."
        )
    else:
        yield (
            f"The model does not add up words: {found.why}. So they were left out of texts, one"
            f" at a time: the change of the {found.score} on up to {MOST_TEXTS} texts with the word,"
            f" times the share of rows with it, among {told}. Looked at were the words that the"
            " model's answers go with most; what several words say together is not seen."
        )
    if found.member is not None:
        name, weight = found.member
        yield (
            f"These are the words of {name}, one of {found.members} models whose answers are"
            f" combined ({show(weight, 'rate')} of the weight)."
        )
    elif found.calibrated:
        yield "The score is that before probabilities are calibrated."
    if found.shares is not None:
        parts = [
            f"{words_}: {show(share, 'rate')}"
            for kind, words_ in _KINDS
            if (share := getattr(found.shares, kind)) >= 0.0005
        ]
        yield f"Of all mean |contributions|, by kind, {'; '.join(parts)}."
    if not context.options.show_rows:
        counted = "groups of rows" if context.groups is not None else "rows"
        yield (
            f"Only words that at least {FEWEST} {where} {counted} have are told. They describe the"
            " model, not causes in the world."
        )


def _table(context: Context, found: WordAttribution) -> PageTable:
    if len(found.outputs) == 1:
        rows = [
            (_name(found, at), _towards(found, 0, at), f"{found.importance[0, at]:.3g}")
            for at in found.leading(0, 2 * MOST_WORDS).tolist()
        ]
        return PageTable(header=("word", "pushes towards", "mean |contribution|"), rows=tuple(rows))
    lines: list[tuple[str, ...]] = []
    for k in _frequent(context, found):
        leading = found.leading(k, MOST_WORDS).tolist()
        if leading:
            towards, away = (
                ", ".join(_name(found, at) for at in leading if (found.direction[k, at] > 0) == up)
                for up in (True, False)
            )
            lines.append((str(found.outputs[k]), towards, away))
    return PageTable(header=("class", "words towards it", "words against it"), rows=tuple(lines))


def _frequent(context: Context, found: WordAttribution) -> list[int]:
    """Positions of the classes that the rows have most often, in the order of the classes."""
    _, y = context.rows("train" if context.trained else "certify")
    said = np.asarray(y).astype(str)
    counts = np.array([np.count_nonzero(said == str(output)) for output in found.outputs])
    return sorted(np.argsort(-counts, kind="stable")[:MOST_CLASSES].tolist())


def _name(found: WordAttribution, at: int) -> str:
    several = len(set(found.columns)) > 1
    return f"{found.columns[at]}: {found.words[at]}" if several else found.words[at]


def _towards(found: WordAttribution, k: int, at: int) -> str:
    up = bool(found.direction[k, at] > 0)
    if found.other is None and found.outputs[k] == "prediction":
        return "larger values" if up else "smaller values"
    return str(found.outputs[k] if up else found.other)


def _finding(found: WordAttribution) -> Finding:
    """The words that lead, of each class one."""
    if len(found.outputs) == 1:
        leading = found.leading(0, 3).tolist()
        told = [f"{_name(found, at)} (towards {_towards(found, 0, at)})" for at in leading]
    else:
        best = [(k, found.leading(k, 1).tolist()) for k in range(len(found.outputs))]
        strongest = sorted(
            ((k, at[0]) for k, at in best if at), key=lambda one: -found.importance[one]
        )[:3]
        told = [
            f"{_name(found, at)} ({'towards' if found.direction[k, at] > 0 else 'against'}"
            f" {found.outputs[k]})"
            for k, at in strongest
        ]
    numbers = {"leading": told, "method": found.method, "rows": found.rows}
    text = f"Words with the largest mean |contribution|: {', '.join(told)}."
    return Finding(code="SL663", text=text, severity="info", numbers=numbers)


ENTRY = Entry(key="words", title="Feature attribution: words", write=section, tasks=tasks)
