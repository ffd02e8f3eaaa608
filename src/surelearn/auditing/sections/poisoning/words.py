"""How the page tells what poison would do: findings, one chart, the table of what is proved and
that of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.own_threshold import notes as own_notes
from surelearn.auditing.sections.images import Album
from surelearn.auditing.sections.poisoning.votes import REFITS, is_vote, vote_claims
from surelearn.auditing.sections.poisoning.work import (
    MOST_POINTS,
    claims_of,
    cost_asked,
    most_rows,
    tasks,
)
from surelearn.auditing.single_rows import rows_note
from surelearn.auditing.writing import Entry
from surelearn.claim import Claim, Finding, Severity
from surelearn.lacking import Lacking
from surelearn.plain import show
from surelearn.report import Chart, PageTable, Section
from surelearn.robust.poisoning.within_range import FLIPPED, MOVED, REVERSED
from surelearn.subject.refitting import column_names, take
from surelearn.types import AnyArray, TableRows

COLUMNS = 2  # of the table, shown to recognize a row by
_CLASSES, _COSTS, _NUMBERS = "errors", "the mean cost", "the mean absolute error"
_PROVED = (
    "The proved threshold is about exactly this target: with fewer added rows the fit cannot end"
    " there. Other targets that do as much harm may need far fewer."
)
_INSIDE = (
    "The proved thresholds are about poison within the columns' range, and hold only where a filter"
    " refuses all other rows before the fit: without a filter, nothing is claimed."
)
_BOTH = "Weights −t·w flip every prediction too, so the larger threshold holds for them."
_NOT_MOVED = (
    "Nothing is claimed about moved weights: that needs log loss with a penalty on every weight,"
    " the intercept included."
)
_SEEN = "the rows given as seen are all training rows of the model, each with weight 1"
_NEVER = " ∞: no number of added rows is enough."
_METHODS = {
    "exact": "exact leave-one-out",
    "influence function": "influence function, first order",
    "refits": "leave-one-out refits",
}
_CHOSEN = {"exact": " with the largest first-order influence", "influence function": ""}
# how the errors rise, as a multiple of the share that was changed and at least, to be remarkable
NOTICE, WARNING = (0.5, 0.02), (2.0, 0.05)
TYPICAL = 0.1  # the share of changed labels that is told unless a smaller one is worse
INFLUENCE = (0.05, 0.2)  # of the loss: from here on a notice, a warning
_ERRORS = 2.0  # standard errors over held-back rows: a smaller change may be theirs


def section(context: Context, results: Sequence[Any]) -> Section | None:
    """Data poisoning: attacks measured by refits, thresholds proved, the most influential rows."""
    found = Found.of(results)
    if context.unfitted is None:
        return _of_vote(context) if is_vote(context) else _of_module(context, found)
    used = most_rows(context)
    seen = min(len(context.rows("certify")[1]), MOST_POINTS)
    return _of_table(context, found, used, seen)


@dataclass(frozen=True)
class Found:
    """Results by part: risks by fraction, the others as they came."""

    parts: dict[str, list[dict[str, Any]]]

    @classmethod
    def of(cls, results: Sequence[dict[str, Any]]) -> Found:
        """Sort results by the part that they belong to."""
        parts: dict[str, list[dict[str, Any]]] = {}
        for result in results:
            parts.setdefault(result["part"], []).append(result)
        return cls(parts)

    def risks(self, part: str, name: str = "risk") -> dict[float, list[float]]:
        """The risks of each fraction."""
        risks: dict[float, list[float]] = {}
        for result in self.parts.get(part, []):
            if "lacking" not in result:
                risks.setdefault(result["fraction"], []).append(result[name])
        return dict(sorted(risks.items()))

    def lacking(self, part: str) -> Lacking | None:
        """Why the part has no result; None where it has one, or was not tried."""
        return next(
            (result["lacking"] for result in self.parts.get(part, []) if "lacking" in result), None
        )

    def one(self, part: str) -> dict[str, Any] | None:
        """The first result that the part has."""
        return next(
            (result for result in self.parts.get(part, []) if "lacking" not in result), None
        )


def _of_table(context: Context, found: Found, used: int, seen: int) -> Section:
    """The section of a model that can be fitted again."""
    train = context.rows("train")
    risks = found.risks("flipped")
    which = "all" if used == len(train[1]) else f"{used:,} of the"
    notes = [
        f"The model was refitted with poison among {which} training rows and measured on {seen:,}"
        " held-back rows. A better attack may do more harm."
    ]
    notes += own_notes(context)
    findings = [_flipped(context, risks)]
    if risks_aimed := found.risks("aimed"):
        findings.append(_aimed(context, risks_aimed, risks[0.0][0], found.one("aimed")))
    tables, claims, (votes, no_votes) = [], [], vote_claims(context)
    pictures: list[Chart] = []
    if result := found.one("proved"):
        claims = [_as_given(context, claim) for _, _, claim in claims_of(result)]
        notes.append(_at_targets(context, result))
        findings += _tried(result)
    if result := found.one("influence"):
        split = context.split
        finding, table = _of_rows(
            context, result, *train, None if split is None else np.union1d(split.fit, split.select)
        )
        findings.append(finding)
        tables.append(table)
        notes.append(rows_note(context))
        pictures = _pictures(context, result, train[0], table)
    parts = ("aimed", "influence") if votes else ("aimed", "influence", "proved")
    notes += [
        _sentence(one.reason) for one in (*map(found.lacking, parts), no_votes) if one is not None
    ]
    chart = _curve(context, risks, "Errors against label noise in the training rows")
    return ENTRY.says(
        notes=tuple(notes),
        claims=(*claims, *votes),
        findings=tuple(findings),
        charts=(chart, *pictures),
        tables=tuple(tables),
    )


def _of_module(context: Context, found: Found) -> Section:
    """The section of a torch module, which was trained further on the rows given."""
    if (first := found.one("trained")) is None:
        why = found.lacking("trained")
        return ENTRY.says(notes=() if why is None else (f"Not measured: {why.reason}",))
    placed = {
        0.0: [float(np.mean([x for v in found.risks("trained", "clean").values() for x in v]))]
    }
    placed |= found.risks("trained", "placed")
    flips = {0.0: placed[0.0]} | found.risks("trained", "flipped")
    why, whose, others = "The training rows of the model are not known", "given rows", "others"
    if context.trained:
        why, whose, others = (
            "How the model was trained is not known",
            "training rows",
            "held-back rows",
        )
    notes = [
        (
            f"{why}, so a copy was fine-tuned on {first['rows']:,} of the {whose}, with poison"
            f" among them, and measured on {first['seen']:,} {others}."
        ),
        (
            "No poisoning threshold is proved for a neural network: its loss is not convex in the"
            " weights."
        ),
    ]
    findings = [
        _flipped(context, flips),
        _aimed(context, {k: v for k, v in placed.items() if k}, placed[0.0][0], None),
    ]
    tables = []
    if result := found.one("influence"):
        finding, table = _of_rows(
            context, result, *context.rows("train" if context.trained else "certify"), None
        )
        findings.append(finding)
        tables.append(table)
        notes.append(rows_note(context))
    elif (lacking := found.lacking("influence")) is not None:
        notes.append(_sentence(lacking.reason))
    chart = _curve(
        context, placed, "Errors against training rows added by gradient ascent", "% of rows added"
    )
    return ENTRY.says(notes=notes, findings=findings, charts=(chart,), tables=tables)


def _of_vote(context: Context) -> Section:
    """The section of a vote over partitions that was fitted elsewhere."""
    claims, lacking = vote_claims(context)
    return ENTRY.says(
        notes=(REFITS,) if lacking is None else (REFITS, lacking.reason), claims=claims
    )


# ── Damage
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _unit(context: Context) -> str:
    by_cost = cost_asked(context) is not None
    return "rate" if context.task == "classification" and not by_cost else "number"


def _word(context: Context) -> str:
    """What poison raises."""
    if context.task == "regression":
        return _NUMBERS
    return _CLASSES if cost_asked(context) is None else _COSTS


def _moved(context: Context, risks: list[float], clean: float) -> str:
    unit, word = _unit(context), _word(context)
    draws = (
        f" ({show(min(risks), unit)} to {show(max(risks), unit)} in {len(risks)} draws)"
        if len(risks) > 1
        else ""
    )
    mean = float(np.mean(risks))
    if mean <= clean:
        return (
            f"does not raise {word}: {show(mean, unit)}{draws} against {show(clean, unit)} without"
            " poison"
        )
    return f"raises {word} from {show(clean, unit)} to {show(mean, unit)}{draws}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:g}%"


def _severity(context: Context, fraction: float, risks: list[float], clean: float) -> Severity:
    """A warning where poison costs more than its own share of the rows, of classes (of a mean cost:
    of what always giving the cheaper answer costs); half of the error again, of numbers.
    """
    rise = float(np.mean(risks)) - clean
    if (cost := cost_asked(context)) is not None:
        matters = float(np.mean(context.rows("certify")[1] == cost[0]))
        constant = min(matters * cost[1], 1 - matters)
        rise = rise / constant if constant > 0 else rise
    if context.task == "regression":
        rise = 0.2 * rise / clean if clean > 0 else 0.0
    return (
        "warning"
        if rise > max(WARNING[0] * fraction, WARNING[1])
        else "notice"
        if rise > max(NOTICE[0] * fraction, NOTICE[1])
        else "info"
    )


def _worst(
    context: Context, risks: dict[float, list[float]], clean: float, usual: float
) -> tuple[float, Severity]:
    """The fraction to tell of, with its severity: the usual one, unless the least that is more
    severe.
    """
    levels: list[Severity] = ["info", "notice", "warning"]
    found = {
        fraction: levels.index(_severity(context, fraction, of, clean))
        for fraction, of in risks.items()
        if fraction
    }
    most = max(found.values())
    return (
        usual if found[usual] == most else min(k for k, level in found.items() if level == most)
    ), levels[most]


def _flipped(context: Context, risks: dict[float, list[float]]) -> Finding:
    clean = risks[0.0][0]
    fraction, severity = _worst(context, risks, clean, TYPICAL)
    share, moved = _percent(fraction), _moved(context, risks[fraction], clean)
    what = f"label noise, {share} of the training labels flipped to another class"
    if context.task == "regression":
        what = f"target noise, {share} of the training targets moved to the far end of their range"
    text = f"Random {what}, {moved}."
    numbers = {"clean": clean, **{_percent(k): float(np.mean(v)) for k, v in risks.items() if k}}
    return Finding(code="SL621", text=text, severity=severity, numbers=numbers)


def _aimed(
    context: Context, risks: dict[float, list[float]], clean: float, how: dict[str, Any] | None
) -> Finding:  # fmt: skip
    fraction, severity = _worst(context, risks, clean, 0.03 if 0.03 in risks else min(risks))
    through = f" on a surrogate, {how['stand_in']}" if how and how["stand_in"] else ""
    text = (
        f"Gradient-ascent poisoning{through}, {_percent(fraction)} of rows added within the"
        f" columns' range, {_moved(context, risks[fraction], clean)}."
    )
    numbers = {"clean": clean, **{_percent(k): float(np.mean(v)) for k, v in risks.items()}}
    return Finding(code="SL623", text=text, severity=severity, numbers=numbers)


def _curve(
    context: Context,
    risks: dict[float, list[float]],
    title: str,
    x_label: str = "% of labels changed",
) -> Chart:
    if context.task == "regression":
        title = title.replace("Errors", "Mean absolute error").replace(
            "label noise", "changed targets"
        )
        x_label = x_label.replace("labels", "targets")
    if cost_asked(context) is not None:
        title = title.replace("Errors", "Mean cost")
    data = {
        "x": [round(100 * fraction, 6) for fraction in risks],
        "y": [float(np.mean(of)) for of in risks.values()],
        "low": [min(of) for of in risks.values()],
        "high": [max(of) for of in risks.values()],
        "x_label": x_label,
        "unit": _unit(context),
    }
    return Chart(kind="curve", title=f"{title}; the band spans all draws", data=data)


# ── What is proved
# ────────────────────────────────────────────────────────────────────────────────────────────────────


def _as_given(context: Context, claim: Claim) -> Claim:
    return (
        claim if context.seen is None else replace(claim, assumptions=(*claim.assumptions, _SEEN))
    )


def _at_targets(context: Context, result: dict[str, Any]) -> str:
    """What the claims are about, and what the target would cost, which is measured."""
    word, found = _CLASSES if context.task == "classification" else _NUMBERS, claims_of(result)
    unit = "rate" if context.task == "classification" else "number"
    labels, errors = [label for label, _, _ in found], show(found[0][1], unit)
    if REVERSED not in labels:
        never = _NEVER if np.isinf(found[0][2].value) else ""
        return f"{_PROVED}{never} Measured there: {word} {errors}."
    parts = [_INSIDE, *[_BOTH] * (FLIPPED in labels), *[_NOT_MOVED] * (MOVED not in labels)]
    return f"{' '.join(parts)} Measured with weights −w: {word} {errors}."


def _tried(result: dict[str, Any]) -> list[Finding]:
    if not (tried := result["tried"]) or not tried["multiples"]:
        return []
    multiples, flipped = tried["multiples"], tried["flipped"][-1]
    *failed, last = (f"{multiple:g} ×" for multiple in multiples)
    least, fraction = (
        "the threshold certified for these rows",
        f"{show(tried['fraction'], 'number')} poisoned rows per clean row",
    )
    before = (
        f"fails {'at' if len(failed) == 1 else 'up to'} {failed[-1]} {least}, "
        if failed
        else f"with {least} as 1 ×, "
    )
    share = (
        "every prediction" if flipped == 1 else f"only {show(flipped, 'rate')} of the predictions"
    )
    text = (
        f"Gradient-cancelling attack on {tried['rows']:,} training rows, within the columns' range:"
        f" {before}flips {share} at {last} ({fraction})."
    )
    numbers = {
        "threshold": tried["threshold"],
        "factor": multiples[-1],
        "fraction": tried["fraction"],
        "flipped": flipped,
    }
    return [Finding(code="SL624", text=text, numbers=numbers)]


# ── Rows
# ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _influence(result: dict[str, Any], number: int, rows: int) -> Finding:
    change, tried, noise = float(result["changes"][0]), result["tried"], result["noise"]
    chosen = result["chosen"] if result["method"] == "refits" else _CHOSEN[result["method"]]
    among = f"{tried:,} rows{chosen if tried < rows else ''}"
    moves = "lowers" if change < 0 else "raises"
    text = (
        f"Most influential training row: {number:,}. Removing it {moves} held-out {result['loss']}"
        f" by {show(abs(change), 'rate')} ({_METHODS[result['method']]}, among {among})."
    )
    spread = _ERRORS * result["spread"]
    if by_chance := abs(change) <= noise:
        text += f" Other random seeds change the loss as much ({show(noise, 'rate')})."
    elif by_chance := abs(change) <= spread:
        text += (
            " The change is within two standard errors over the held-back rows (±"
            f" {show(spread, 'rate')})."
        )
    elif change < -0.02:
        text += " The row harms the model: check its label first."
    size = 0.0 if by_chance else abs(change)
    severity = "warning" if size > INFLUENCE[1] else "notice" if size > INFLUENCE[0] else "info"
    numbers = {
        "row": number,
        "change": change,
        "rows": tried,
        "loss": result["base"],
        "error": result["spread"],
    }
    return Finding(code="SL622", text=text, severity=severity, numbers=numbers)


def _of_rows(
    context: Context, result: dict[str, Any], X: TableRows, y: AnyArray, positions: AnyArray | None
) -> tuple[Finding, PageTable]:  # fmt: skip
    """The finding about the most influential row, and the table of those after it, by their
    number in the file.
    """
    rows = np.asarray(result["rows"])
    shown = take(X, rows)
    plain = [column.name for column in context.columns if column.kind in ("number", "category")]
    listed = context.options.show_rows and context.images is None
    told = _telling(X, shown, plain) if listed else []
    places = (rows if positions is None else positions[rows]) + 1
    values = [[_text(value) for value in _column(shown, j)] for j in told]
    changes = [_signed(float(change)) for change in result["changes"]]
    values += [[_text(value) for value in y[rows]]] if context.options.show_rows else []
    lines = tuple(zip((f"{place:,}" for place in places), *values, changes, strict=True))
    removed = any(finding.code == "SL110" for finding in context.findings)
    titles = [column_names(X)[j] for j in told] + (
        [context.target or "label"] if context.options.show_rows else []
    )
    head = "training row (of those with a target)" if removed else "training row"
    table = PageTable(header=(head, *titles, "loss if removed"), rows=lines)
    return _influence(result, int(places[0]), len(y)), table


def _pictures(
    context: Context, result: dict[str, Any], X: TableRows, table: PageTable
) -> list[Chart]:
    """The most influential training images, where rows may be shown."""
    if context.images is None or not context.options.show_rows:
        return []
    album, pixels = Album.of(context), np.asarray(take(X, np.asarray(result["rows"])), dtype=float)
    names = [f"row {line[0]}: {line[-2]}, {line[-1]}" for line in table.rows]
    data = {"names": names, "pictures": [album.picture(one) for one in pixels]}
    title = "The most influential training images, and the loss if each is removed"
    return [Chart(kind="pictures", title=title, data=data)]


def _telling(X: TableRows, shown: AnyArray, plain: list[str]) -> list[int]:
    """The columns in which the rows shown are most unusual, in the table's order."""
    names = column_names(X)
    among = [j for j, name in enumerate(names) if name in plain] or list(range(len(names)))
    unusual = [_unusual(_column(X, j), _column(shown, j)) for j in among]
    return [among[i] for i in np.sort(np.argsort(-np.array(unusual), kind="stable")[:COLUMNS])]


def _column(X: TableRows, j: int) -> Any:
    table: Any = X
    if hasattr(table, "toarray"):
        return table[:, [j]].toarray().ravel()
    return np.asarray(table.iloc[:, j] if hasattr(table, "iloc") else table[:, j])


def _unusual(column: AnyArray, values: AnyArray) -> float:
    """Mean distance from the middle in standard deviations; of words, mean −ln of their share."""
    if column.dtype.kind in "fiub":
        known = column[np.isfinite(column.astype(float))].astype(float)
        if known.size == 0 or not known.std() > 0:
            return 0.0
        far = np.abs(values.astype(float) - known.mean()) / known.std()
        return float(np.nan_to_num(np.minimum(far, 10.0)).mean())
    if column.dtype.kind == "M":
        return 0.0
    words, counts = np.unique(column.astype(str), return_counts=True)
    share = counts[np.searchsorted(words, values.astype(str))] / len(column)
    # not text that no other row has
    return float(-np.log(share).mean()) if share.max() > 2 / len(column) else 0.0


def _text(value: Any) -> str:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float | np.floating):
        return show(float(value), "number") if np.isfinite(value) else "missing"
    said = "missing" if value is None else str(value)
    return said if len(said) <= 24 else said[:23] + "…"


def _signed(change: float) -> str:
    return ("−" if change < 0 else "+") + show(abs(change), "rate")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


ENTRY = Entry(key="poisoning", title="Data poisoning", write=section, tasks=tasks)
