"""Section: what the model's answers are made of, column by column, and whether the order of the columns is settled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.attribution.result import rounding
from surelearn.auditing import attribution_work as work
from surelearn.auditing.attribution_numbers import Spread, spread_of
from surelearn.auditing.attribution_rows import as_table, choose_rows
from surelearn.auditing.context import Context
from surelearn.auditing.single_rows import rows_note
from surelearn.claim import Finding
from surelearn.plain import show
from surelearn.report import Chart, Section, Table
from surelearn.selection.cross_validation import take

TITLE = "What its answers are made of"
_DRAWN = 12  # columns in the chart
_TOLD = 3  # columns of a row in the table
_ALMOST_ALL = 0.8
_HOW = {
    "closed form": "exact for this game",
    "additive": "exact for this game: the {words} is a sum over columns, as random coalitions confirm",
    "exact": "exact for this game, every coalition asked",
}


def tasks(context: Context) -> list[jobs.Task]:
    """One task for each background."""
    rows, picked, background = choose_rows(context)
    X = context.rows("certify")[0]
    both = as_table(take(X, np.concatenate([rows, list(picked.values())]).astype(int)))
    played = work.see_through(work.bare(context.model), both, as_table(background))
    labels = list(context.classes)
    question = work.question_of(played, context.task, labels, context.options.positive, context.target)
    played, question, plan = work.plan_of(played, question, len(picked), len(context.y), context.options.effort)
    shown = np.concatenate([np.arange(plan.rows), len(rows) + np.arange(len(picked))]).astype(int)
    facts = {
        "names": played.names,
        "words": question.words,
        "method": question.method,
        "rows": plan.rows,
        "picked": {kind: int(row) for kind, row in picked.items()},
        "coalitions": plan.coalitions,
        "background": min(work.REPEATS * plan.background, len(played.background)),
        "grouped": len(played.names) < both.shape[1],
        "columns": both.shape[1],
    }
    made = []
    for i in range(work.REPEATS):
        key = f"attribution/{i}"
        other = (i * plan.background + np.arange(plan.background)) % len(played.background)
        arguments = {"played": work.part(played, shown, other), "question": question, "coalitions": plan.coalitions}
        arguments |= {"seed": context.seed(key), "facts": facts}
        made.append(jobs.Task(key=key, function=share_out, arguments=arguments))
    return made


def share_out(facts: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    """The shares against one background, with what they are shares of."""
    return {**work.shares(**arguments), "facts": facts}


def section(context: Context, results: Sequence[Any]) -> Section | None:
    """The columns' mean shares, those of a few rows, and whether the order would be another."""
    facts, values = results[0]["facts"], np.stack([result["values"] for result in results])
    spread = spread_of(values[:, : facts["rows"]], context.seed("attribution/resamples"))
    if spread.importance.max() <= rounding(*(result[end] for result in results for end in ("empty", "full"))):
        note = f"The {facts['words']} is the same for every row: no column has a share in it."
        return Section(key="attribution", title=TITLE, notes=(note,))
    findings = [ranking(facts, spread), *_almost_all(facts["names"], spread)]
    return Section(
        key="attribution",
        title=TITLE,
        notes=_notes(context, facts, spread),
        findings=tuple(finding for finding in findings if finding is not None),
        charts=(_chart(facts, spread),),
        tables=(_rows_table(context, facts, results, values),) if facts["picked"] else (),
    )


# ── What the page says ────────────────────────────────────────────────────────────────────────────────────────────────


def _notes(context: Context, facts: dict[str, Any], spread: Spread) -> tuple[str, ...]:
    words, rows = facts["words"], facts["rows"]
    where = "train rows" if context.trained else "rows beside them"
    notes = [
        f"What sets the {words} apart from its average is shared out among the columns, for each of {rows:,} held-back rows "
        "(Shapley values). The chart has the mean size of each column’s share, ± two standard errors.",
        f"Game: interventional, columns that are not known yet come from {facts['background']:,} {where}; {_how(facts)}. "
        "Shares describe the model, not the world.",
    ]
    if facts["grouped"]:
        notes.append(f"The columns are too many to sample one by one: {len(facts['names'])} blocks of neighbours play.")
    if facts["background"] == 1:
        notes.append("One background row: how far the shares depend on it cannot be seen.")
    if facts["picked"]:
        notes.append(rows_note(context))
    if left := max(0, len(spread.importance) - _DRAWN):
        rest = show(float(np.sort(spread.importance)[:left].sum() / spread.importance.sum()), "rate")
        those = "The column that is not drawn holds" if left == 1 else f"The {left:,} columns that are not drawn hold"
        notes.append(f"{those} {rest} of all shares.")
    return tuple(notes)


def _how(facts: dict[str, Any]) -> str:
    if facts["method"] != "sampling":
        return _HOW[facts["method"]].format(words=facts["words"])
    why = f"no closed form is known for this {facts['words'].partition(' ')[0]}, and all 2^{facts['columns']} are too many"
    return f"sampled, {facts['coalitions']:,} coalitions for each of {work.REPEATS} backgrounds: {why}"


def _chart(facts: dict[str, Any], spread: Spread) -> Chart:
    order = spread.order[:_DRAWN]
    data = {
        "names": [facts["names"][i] for i in order],
        "values": spread.importance[order].tolist(),
        "errors": (2 * spread.error[order]).tolist(),
        "unit": "number",
    }
    return Chart(kind="candidates", title=f"Mean size of the columns’ shares in the {facts['words']}", data=data)


def ranking(facts: dict[str, Any], spread: Spread) -> Finding | None:
    """Whether the first columns would be others, on other rows or against other backgrounds."""
    lead, names = spread.lead(), facts["names"]
    if lead is None:
        return None
    first = [names[i] for i in spread.order[: lead.count]]
    numbers = {
        "leading": first,
        "same": lead.same,
        "same first": lead.same_first,
        "resamples": spread.resamples,
        "contenders": [names[i] for i in lead.contenders],
    }
    those = _listed(first)
    if lead.stable:
        counted = "column that counts" if lead.count == 1 else f"{lead.count} columns that count"
        verb = "is" if lead.count == 1 else "are"
        text = f"The {counted} most {verb} {those}. {show(lead.same, 'rate')} of resamples of rows and backgrounds agree."
        return Finding(code="SL661", text=text, severity="info", numbers=numbers)
    also = _listed([names[i] for i in lead.contenders[:3]])
    text = f"Which columns count most is not settled. {those} lead{'s' * (lead.count == 1)} here, and in "
    text += f"{show(lead.same, 'rate')} of resamples of rows and backgrounds"
    text += f"; {also} may stand there as well." if also else "."
    text += " More work (`--effort`) may settle it." if facts["method"] == "sampling" else ""
    return Finding(code="SL661", text=text, severity="warning" if lead.same < 0.5 else "notice", numbers=numbers)


def _almost_all(names: tuple[str, ...], spread: Spread) -> list[Finding]:
    """A column that carries nearly the whole answer."""
    share = float(spread.importance.max() / spread.importance.sum())
    if share < _ALMOST_ALL or len(names) < 3:
        return []
    first = names[spread.order[0]]
    text = (
        f"{first} alone holds {show(share, 'rate')} of all shares. If it is known only afterwards, drop it and audit again."
    )
    return [Finding(code="SL662", text=text, severity="notice", numbers={"column": first, "share": share})]


def _rows_table(context: Context, facts: dict[str, Any], results: Sequence[Any], values: Any) -> Table:
    """The columns with the largest shares of each picked row.

    Where rows may be shown: the shares, values, and what the model says, on average, and what is true.
    """
    from scipy.stats import t as student

    X, y = context.rows("certify")
    X, start, names = as_table(take(X, list(facts["picked"].values()))), facts["rows"], facts["names"]
    values = values[:, start:]
    full, empty = (np.mean([result[end][start:] for result in results], axis=0) for end in ("full", "empty"))
    digits = _digits(np.abs(values.mean(axis=0)).max())
    factor = student.isf(0.025, len(values) - 1) / np.sqrt(len(values))
    numbers, lines = context.numbers(list(facts["picked"].values())), []
    for i, (kind, row) in enumerate(facts["picked"].items()):
        mean = values[:, i].mean(axis=0)
        order = np.argsort(-np.abs(mean), kind="stable")
        kind = f"{kind}, row {numbers[i]:,}"
        if not context.options.show_rows:
            lines.append((kind, ", ".join(names[j] for j in order[:_TOLD] if mean[j])))
            continue
        groups = [[j] for j in order[:_TOLD]] + ([list(order[_TOLD:])] if len(order) > _TOLD else [])
        about = [kind, f"says {full[i]:,.{digits}f}", f"average {empty[i]:,.{digits}f}", f"is {_cell(y[row])}"]
        for line, held in enumerate(groups):
            share = values[:, i, held].sum(axis=1)
            reach = factor * share.std(ddof=1)
            told = f"{share.mean():+,.{digits}f} ± {reach:,.{digits}f}".replace("-", "−")
            name = names[held[0]] if line < _TOLD else f"{len(held)} other{'s' if len(held) > 1 else ''}"
            cell = "" if line >= _TOLD or facts["grouped"] else _cell(_at(X, i, held[0]))
            lines.append((about[line].replace("-", "−") if line in (1, 2) else about[line], name, cell, told))
        if len(groups) < len(about):
            lines += [(text, "", "", "") for text in about[len(groups) :]]
    head = ("row", "column", "its value", "share, 95% interval") if context.options.show_rows else ("row", "largest shares")
    return Table(header=head, rows=tuple(lines))


def _at(X: Any, row: int, column: int) -> Any:
    return X.iloc[row, column] if hasattr(X, "iloc") else X[row, column]


def _cell(value: Any) -> str:
    if isinstance(value, bool | np.bool_ | str) or not isinstance(value, int | float | np.number):
        text = str(value)
        return text if len(text) <= 24 else text[:23] + "…"
    return "missing" if np.isnan(value) else show(float(value), "number")


def _digits(scale: float) -> int:
    """Decimals that show about three digits of the scale."""
    return 0 if scale <= 0 else int(max(0, 2 - np.floor(np.log10(scale))))


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
