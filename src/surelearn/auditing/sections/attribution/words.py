"""Section: feature attribution by Shapley values, and whether the ranking of the features is
stable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surelearn.attribution.result import rounding
from surelearn.attribution.spread import Spread, spread_of
from surelearn.auditing.context import Context
from surelearn.auditing.sections.attribution import work
from surelearn.auditing.sections.attribution.work import as_table
from surelearn.auditing.sections.images import Album
from surelearn.auditing.single_rows import rows_note
from surelearn.auditing.writing import Entry
from surelearn.claim import Finding
from surelearn.plain import show
from surelearn.report import Chart, PageTable, Section
from surelearn.subject.refitting import take
from surelearn.types import AnyArray, ImageShape, TableRows

_DRAWN = 12  # columns in the chart
_TOLD = 3  # columns of a row in the table
ALMOST_ALL, FEWEST_COLUMNS = 0.8, 3  # of the total, in one column of so many
_HOW = {
    "closed form": "exact, in closed form",
    "additive": "exact: the {words} is a sum over features, as random coalitions confirm",
    "exact": "exact, over all coalitions",
}


def section(context: Context, results: Sequence[Any]) -> Section | None:
    """Mean |Shapley value| per feature, the values of a few rows, and whether the ranking is
    stable.
    """
    facts, values = results[0]["facts"], np.stack([result["values"] for result in results])
    spread = spread_of(values[:, : facts["rows"]], context.seed("attribution/resamples"))
    if spread.importance.max() <= rounding(
        *(result[end] for result in results for end in ("empty", "full"))
    ):
        note = f"The {facts['words']} is the same for every row: every Shapley value is 0."
        return ENTRY.says(notes=(note,))
    findings = [ranking(facts, spread), *_almost_all(facts["names"], spread)]
    return ENTRY.says(
        notes=_notes(context, facts, spread),
        findings=tuple(finding for finding in findings if finding is not None),
        charts=(_chart(facts, spread), *_pictures(context, facts, spread, values)),
        tables=(_rows_table(context, facts, results, values),) if facts["picked"] else (),
    )


# ── What the page says
# ────────────────────────────────────────────────────────────────────────────────────────────────


def _notes(context: Context, facts: dict[str, Any], spread: Spread) -> tuple[str, ...]:
    words, rows = facts["words"], facts["rows"]
    where = "training rows" if context.trained else "other rows"
    notes = [
        (
            f"The chart has the mean absolute Shapley value of each feature for the {words}, over"
            f" {rows:,} held-back rows, ± two standard errors."
        ),
        (
            f"The Shapley values are interventional, with {facts['background']:,} {where} as the"
            f" background; they are {_how(facts)}. They describe the model, not causes in the"
            " world."
        ),
    ]
    if facts["grouped"]:
        notes.append(
            f"There are too many features to sample one by one: {len(facts['names'])}"
            f" {'blocks of neighboring features' if context.images is None else 'squares of pixels'}"
            " are players."
        )
    if facts["background"] == 1:
        notes.append(
            "There is one background row, so how far the values depend on it cannot be seen."
        )
    if facts["picked"]:
        notes.append(rows_note(context))
    if left := max(0, len(spread.importance) - _DRAWN):
        rest = show(
            float(np.sort(spread.importance)[:left].sum() / spread.importance.sum()), "rate"
        )
        those = (
            "The feature that is not drawn has"
            if left == 1
            else f"The {left:,} features that are not drawn have"
        )
        notes.append(f"{those} {rest} of the total attribution.")
    return tuple(notes)


def _how(facts: dict[str, Any]) -> str:
    if facts["method"] != "sampling":
        return _HOW[facts["method"]].format(words=facts["words"])
    why = (
        f"no closed form is known for this {facts['words'].partition(' ')[0]}, and"
        f" 2^{facts['columns']} coalitions are too many"
    )
    return (
        f"estimated from {facts['coalitions']:,} sampled coalitions for each of {work.REPEATS}"
        f" backgrounds: {why}"
    )


def _chart(facts: dict[str, Any], spread: Spread) -> Chart:
    order = spread.order[:_DRAWN]
    data = {
        "names": [facts["names"][i] for i in order],
        "values": spread.importance[order].tolist(),
        "errors": (2 * spread.error[order]).tolist(),
        "unit": "number",
    }
    return Chart(
        kind="candidates", title=f"Mean |Shapley value| for the {facts['words']}", data=data
    )


def _pictures(
    context: Context, facts: dict[str, Any], spread: Spread, values: AnyArray
) -> list[Chart]:
    """Where in an image the attribution lies; beside the picked images where rows may be shown."""
    if context.images is None:
        return []
    where = _players(context.images, facts)
    names, album = [f"mean over {facts['rows']:,} images"], Album.of(context)
    heat = _one_channel(context, spread.importance[where])
    pictures = [album.heat(heat, float(spread.importance.max()))]
    title = "Where the attribution lies, mean |Shapley value|"
    charts = [Chart(kind="pictures", title=title, data={"names": names, "pictures": pictures})]
    if context.options.show_rows and facts["picked"]:
        X = context.rows("certify")[0]
        rows = np.asarray(take(X, list(facts["picked"].values())), dtype=float)
        means = values[:, facts["rows"] :].mean(axis=0)
        numbers = context.numbers(np.array(list(facts["picked"].values()), dtype=int))
        names, pictures = [], []
        for i, kind in enumerate(facts["picked"]):
            names += [f"{kind}, row {numbers[i]:,}", "its Shapley values"]
            heat = _one_channel(context, means[i][where])
            pictures += [album.picture(rows[i]), album.heat(heat, float(np.abs(means[i]).max()))]
        title = "Single images and their Shapley values, red for the answer and blue against it"
        data = {"names": names, "pictures": pictures, "pairs": True}
        charts.append(Chart(kind="pictures", title=title, data=data))
    return charts


def _players(shape: ImageShape, facts: dict[str, Any]) -> AnyArray:
    """For each number of an image the player that it belongs to."""
    if len(facts["names"]) == int(np.prod(shape)):
        return np.arange(int(np.prod(shape)))
    where = np.zeros(shape, dtype=int)
    for k, (top, bottom, left, right) in enumerate(work.tiles_of(shape, facts["side"])):
        where[top:bottom, left:right] = k
    return where.ravel()


def _one_channel(context: Context, values: AnyArray) -> AnyArray:
    """Values of players that hold all channels, on one of them; else as they are."""
    made = np.array(values, dtype=float).reshape(context.images or values.shape)
    if made.ndim == 3 and (made == made[..., :1]).all():
        made[..., 1:] = 0.0
    return made.ravel()


def ranking(facts: dict[str, Any], spread: Spread) -> Finding | None:
    """Whether the most important features are the same on other rows and against other
    backgrounds.
    """
    lead, names = spread.lead(), facts["names"]
    if lead is None:
        return None
    first = [names[i] for i in spread.order[: lead.count]]
    numbers = {
        "leading": first,
        "same": lead.same,
        "same_first": lead.same_first,
        "resamples": spread.resamples,
        "contenders": [names[i] for i in lead.contenders],
    }
    those = _listed(first)
    if lead.stable:
        counted = (
            "Most important feature" if lead.count == 1 else f"{lead.count} most important features"
        )
        text = (
            f"{counted}: {those}. {show(lead.same, 'rate')} of bootstrap resamples of rows and"
            " backgrounds agree."
        )
        return Finding(code="SL661", text=text, severity="info", numbers=numbers)
    also = _listed([names[i] for i in lead.contenders[:3]])
    text = f"The feature ranking is not stable. {those} lead{'s' * (lead.count == 1)} here and in "
    text += f"{show(lead.same, 'rate')} of bootstrap resamples of rows and backgrounds"
    text += f"; {also} may lead as well." if also else "."
    text += " More samples (`--effort`) may settle it." if facts["method"] == "sampling" else ""
    return Finding(
        code="SL661",
        text=text,
        severity="warning" if lead.same < 0.5 else "notice",
        numbers=numbers,
    )


def _almost_all(names: tuple[str, ...], spread: Spread) -> list[Finding]:
    """A feature that carries nearly the whole prediction."""
    share = float(spread.importance.max() / spread.importance.sum())
    if share < ALMOST_ALL or len(names) < FEWEST_COLUMNS:
        return []
    first = names[spread.order[0]]
    text = (
        f"{first} alone has {show(share, 'rate')} of the total attribution. If it is known only"
        " after the outcome, drop it and audit again."
    )
    return [
        Finding(
            code="SL662", text=text, severity="notice", numbers={"column": first, "share": share}
        )
    ]


def _rows_table(
    context: Context, facts: dict[str, Any], results: Sequence[Any], values: AnyArray
) -> PageTable:
    """The features with the largest Shapley values of each picked row.

    Where rows may be shown: the Shapley and feature values, the output of the model, its average,
    and the truth.
    """
    from scipy.stats import t as student

    X, y = context.rows("certify")
    X, start, names = (
        as_table(take(X, list(facts["picked"].values()))),
        facts["rows"],
        facts["names"],
    )
    values = values[:, start:]
    full, empty = (
        np.mean([result[end][start:] for result in results], axis=0) for end in ("full", "empty")
    )
    digits = _digits(np.abs(values.mean(axis=0)).max())
    factor = student.isf(0.025, len(values) - 1) / np.sqrt(len(values))
    numbers, lines = context.numbers(np.array(list(facts["picked"].values()), dtype=int)), []
    for i, (kind, row) in enumerate(facts["picked"].items()):
        mean = values[:, i].mean(axis=0)
        order = np.argsort(-np.abs(mean), kind="stable")
        kind = f"{kind}, row {numbers[i]:,}"
        if not context.options.show_rows:
            lines.append((kind, ", ".join(names[j] for j in order[:_TOLD] if mean[j])))
            continue
        groups = [[j] for j in order[:_TOLD]] + (
            [list(order[_TOLD:])] if len(order) > _TOLD else []
        )
        about = [
            kind,
            f"output {full[i]:,.{digits}f}",
            f"average {empty[i]:,.{digits}f}",
            f"truth {_cell(y[row])}",
        ]
        for line, held in enumerate(groups):
            share = values[:, i, held].sum(axis=1)
            reach = factor * share.std(ddof=1)
            told = f"{share.mean():+,.{digits}f} ± {reach:,.{digits}f}".replace("-", "−")
            name = (
                names[held[0]]
                if line < _TOLD
                else f"{len(held)} other{'s' if len(held) > 1 else ''}"
            )
            cell = "" if line >= _TOLD or facts["grouped"] else _cell(_at(X, i, held[0]))
            lines.append(
                (about[line].replace("-", "−") if line in (1, 2) else about[line], name, cell, told)
            )
        if len(groups) < len(about):
            lines += [(text, "", "", "") for text in about[len(groups) :]]
    head = ("row", "feature", "its value", "Shapley value, 95% interval")
    head = (
        head if context.options.show_rows else ("row", "features with the largest Shapley values")
    )
    return PageTable(header=head, rows=tuple(lines))


def _at(X: TableRows, row: int, column: int) -> Any:
    table: Any = X
    return table.iloc[row, column] if hasattr(table, "iloc") else table[row, column]


def _cell(value: Any) -> str:
    if isinstance(value, bool | np.bool_ | str) or not isinstance(value, int | float | np.number):
        text = str(value)
        return text if len(text) <= 24 else text[:23] + "…"
    return "missing" if np.isnan(value) else show(float(value), "number")


def _digits(scale: float) -> int:
    """Decimals that show about three digits of the scale."""
    return 0 if scale <= 0 else int(max(0, 2 - np.floor(np.log10(scale))))


def _listed(names: list[str]) -> str:
    return (
        names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
    )


ENTRY = Entry(key="attribution", title="Feature attribution", write=section, tasks=work.tasks)
