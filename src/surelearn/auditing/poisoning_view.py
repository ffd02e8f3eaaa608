"""How the page tells what poison would do: findings, one chart, the table of what is proved and that of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surelearn.adapters.columns import column_names
from surelearn.auditing.context import Context, Unusable
from surelearn.auditing.poisoning_range import FLIPPED, MOVED, REVERSED
from surelearn.auditing.poisoning_threshold import claims_of
from surelearn.auditing.poisoning_votes import vote_claims
from surelearn.auditing.single_rows import rows_note
from surelearn.claim import Claim, Finding, Severity
from surelearn.plain import show
from surelearn.report import Chart, Section, Table
from surelearn.selection.cross_validation import take

COLUMNS = 2  # of the table, shown to recognize a row by
_CLASSES, _NUMBERS = "errors", "the mean absolute error"
_PROVED = (
    "What is proved is about exactly this target: with fewer added rows the fit cannot end there. Others that do as much "
    "harm may need far less."
)
_INSIDE = (
    "What is proved is about poison within the columns' range, and only where a filter refuses all other rows before the "
    "fit: without one, nothing is claimed."
)
_BOTH = "Weights −t·w flip every answer too, so the larger bound holds for them."
_NOT_MOVED = (
    "Nothing is claimed of moved weights: that needs logistic loss with a penalty on every weight, the intercept's too."
)
_SEEN = "the rows given as seen are all that it was fitted to, each with the weight of one"
_NEVER = " ∞: however many are added."
_METHODS = {
    "exact": "exact",
    "influence function": "to first order",
    "refits": "by a refit each",
}
_CHOSEN = {"exact": " that count most to first order", "influence function": ""}
_ERRORS = 2.0  # standard errors over held-back rows: a smaller change may be theirs


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
            if "why" not in result:
                risks.setdefault(result["fraction"], []).append(result[name])
        return dict(sorted(risks.items()))

    def why(self, part: str) -> str:
        """Why the part has no result, or ""."""
        return next((result["why"] for result in self.parts.get(part, []) if "why" in result), "")

    def one(self, part: str) -> dict[str, Any] | None:
        """The first result that the part has."""
        return next((result for result in self.parts.get(part, []) if "why" not in result), None)


def of_table(context: Context, title: str, found: Found, used: int, seen: int) -> Section:
    """The section of a model that can be fitted again."""
    train = context.rows("train")
    risks = found.risks("flipped")
    which = "all" if used == len(train[1]) else f"{used:,} of the"
    notes = [
        f"Fitted again with poison to {which} fit rows, measured on {seen:,} held-back rows. A better attack may do more."
    ]
    findings = [_flipped(context, risks)]
    if risks_aimed := found.risks("aimed"):
        findings.append(_aimed(context, risks_aimed, risks[0.0][0], found.one("aimed")))
    tables, claims, (votes, why_no_votes) = [], [], vote_claims(context)
    if result := found.one("proved"):
        claims = [_as_given(context, claim) for _, _, claim in claims_of(result)]
        notes.append(_at_targets(context, result))
        findings += _tried(result)
    if result := found.one("influence"):
        split = context.split
        finding, table = _of_rows(context, result, *train, None if split is None else np.union1d(split.fit, split.select))
        findings.append(finding)
        tables.append(table)
        notes.append(rows_note(context))
    parts = ("aimed", "influence") if votes else ("aimed", "influence", "proved")
    notes += [_sentence(why) for why in (*map(found.why, parts), why_no_votes) if why]
    chart = _curve(context, risks, "Errors after labels were changed at random")
    return Section(
        key="poisoning",
        title=title,
        notes=tuple(notes),
        claims=(*claims, *votes),
        findings=tuple(findings),
        charts=(chart,),
        tables=tuple(tables),
    )


def of_module(context: Context, title: str, found: Found) -> Section:
    """The section of a torch module, which was trained further on the rows given."""
    if (first := found.one("trained")) is None:
        raise Unusable(found.why("trained"))
    placed = {0.0: [float(np.mean([x for v in found.risks("trained", "clean").values() for x in v]))]}
    placed |= found.risks("trained", "placed")
    flips = {0.0: placed[0.0]} | found.risks("trained", "flipped")
    why, whose, others = "The rows it was trained on are not known", "given rows", "others"
    if context.trained:
        why, whose, others = "How it was trained is not known", "fit rows", "held-back rows"
    notes = [
        f"{why}, so a copy was trained further on {first['rows']:,} of the {whose}, with poison among them, and measured on "
        f"{first['seen']:,} {others}.",
        "No threshold is proved for a network: its loss is not convex in the weights.",
    ]
    findings = [_flipped(context, flips), _aimed(context, {k: v for k, v in placed.items() if k}, placed[0.0][0], None)]
    tables = []
    if result := found.one("influence"):
        finding, table = _of_rows(context, result, *context.rows("train" if context.trained else "certify"), None)
        findings.append(finding)
        tables.append(table)
        notes.append(rows_note(context))
    elif why := found.why("influence"):
        notes.append(_sentence(why))
    chart = _curve(context, placed, "Errors after rows were added by gradient ascent", "% of rows added")
    return Section(
        key="poisoning", title=title, notes=tuple(notes), findings=tuple(findings), charts=(chart,), tables=tuple(tables)
    )


# ── Damage ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _unit(context: Context) -> str:
    return "rate" if context.task == "classification" else "number"


def _moved(context: Context, risks: list[float], clean: float) -> str:
    unit, word = _unit(context), _CLASSES if context.task == "classification" else _NUMBERS
    draws = f" ({show(min(risks), unit)} to {show(max(risks), unit)} in {len(risks)} draws)" if len(risks) > 1 else ""
    mean = float(np.mean(risks))
    if mean <= clean:
        return f"does not raise {word}: {show(mean, unit)}{draws}, {show(clean, unit)} without"
    return f"raises {word} from {show(clean, unit)} to {show(mean, unit)}{draws}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:g}%"


def _severity(context: Context, fraction: float, risks: list[float], clean: float) -> Severity:
    """A warning where poison costs more than its own share of the rows, of classes; half of the error again, of numbers."""
    rise = float(np.mean(risks)) - clean
    if context.task == "regression":
        rise = 0.2 * rise / clean if clean > 0 else 0.0
    return "warning" if rise > max(2 * fraction, 0.05) else "notice" if rise > max(fraction / 2, 0.02) else "info"


def _worst(context: Context, risks: dict[float, list[float]], clean: float, usual: float) -> tuple[float, Severity]:
    """The fraction to tell of, with its severity: the usual one, unless the least that is more severe."""
    levels: list[Severity] = ["info", "notice", "warning"]
    found = {fraction: levels.index(_severity(context, fraction, of, clean)) for fraction, of in risks.items() if fraction}
    most = max(found.values())
    return usual if found[usual] == most else min(k for k, level in found.items() if level == most), levels[most]


def _flipped(context: Context, risks: dict[float, list[float]]) -> Finding:
    clean = risks[0.0][0]
    fraction, severity = _worst(context, risks, clean, 0.1)
    what = "labels to another class" if context.task == "classification" else "targets to the far end of their range"
    text = f"Changing {_percent(fraction)} of the {what}, at random, {_moved(context, risks[fraction], clean)}."
    numbers = {"clean": clean, **{_percent(k): float(np.mean(v)) for k, v in risks.items() if k}}
    return Finding(code="SL621", text=text, severity=severity, numbers=numbers)


def _aimed(
    context: Context, risks: dict[float, list[float]], clean: float, how: dict[str, Any] | None
) -> Finding:  # fmt: skip
    fraction, severity = _worst(context, risks, clean, 0.03 if 0.03 in risks else min(risks))
    through = f" on {how['stand_in']} in its place" if how and how["stand_in"] else ""
    text = (
        f"Adding {_percent(fraction)} of rows, placed within the range seen by gradient ascent{through}, "
        f"{_moved(context, risks[fraction], clean)}."
    )
    numbers = {"clean": clean, **{_percent(k): float(np.mean(v)) for k, v in risks.items()}}
    return Finding(code="SL623", text=text, severity=severity, numbers=numbers)


def _curve(context: Context, risks: dict[float, list[float]], title: str, x_label: str = "% of labels changed") -> Chart:
    if context.task == "regression":
        title = title.replace("Errors", "Mean absolute error").replace("labels were", "targets were")
        x_label = x_label.replace("labels", "targets")
    data = {
        "x": [round(100 * fraction, 6) for fraction in risks],
        "y": [float(np.mean(of)) for of in risks.values()],
        "low": [min(of) for of in risks.values()],
        "high": [max(of) for of in risks.values()],
        "x_label": x_label,
        "unit": _unit(context),
    }
    return Chart(kind="curve", title=f"{title}; the band spans all draws", data=data)


# ── What is proved ────────────────────────────────────────────────────────────────────────────────────────────────────


def _as_given(context: Context, claim: Claim) -> Claim:
    return claim if context.seen is None else replace(claim, assumptions=(*claim.assumptions, _SEEN))


def _at_targets(context: Context, result: dict[str, Any]) -> str:
    """What the claims are about, and what the target would cost, which is measured."""
    word, found = _CLASSES if context.task == "classification" else _NUMBERS, claims_of(result)
    labels, errors = [label for label, _, _ in found], show(found[0][1], _unit(context))
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
    before = f"fails {'at' if len(failed) == 1 else 'up to'} {failed[-1]} {least}, " if failed else f"with {least} as 1 ×, "
    share = "every answer" if flipped == 1 else f"only {show(flipped, 'rate')} of the answers"
    text = (
        f"Gradient-cancelling attack on {tried['rows']:,} training rows, within the columns' range: "
        f"{before}flips {share} at {last} ({fraction})."
    )
    numbers = {"threshold": tried["threshold"], "factor": multiples[-1], "fraction": tried["fraction"], "flipped": flipped}
    return [Finding(code="SL624", text=text, numbers=numbers)]


# ── Rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _influence(result: dict[str, Any], number: int, rows: int) -> Finding:
    change, tried, noise = float(result["changes"][0]), result["tried"], result["noise"]
    chosen = result["chosen"] if result["method"] == "refits" else _CHOSEN[result["method"]]
    among = f"{tried:,} rows{chosen if tried < rows else ''}"
    moves = "falls" if change < 0 else "rises"
    text = (
        f"Row {number:,} counts most: without it the {result['loss']} on held-back rows {moves} "
        f"by {show(abs(change), 'rate')} of itself ({_METHODS[result['method']]}, among {among})."
    )
    spread = _ERRORS * result["spread"]
    if by_chance := abs(change) <= noise:
        text += f" That is no more than other seeds change it ({show(noise, 'rate')})."
    elif by_chance := abs(change) <= spread:
        text += f" A few held-back rows make that up (± {show(spread, 'rate')}): on others it may be nothing."
    elif change < -0.02:
        text += " Such a row does harm: look at its label first."
    size = 0.0 if by_chance else abs(change)
    severity = "warning" if size > 0.2 else "notice" if size > 0.05 else "info"
    numbers = {"row": number, "change": change, "rows": tried, "loss": result["base"], "error": result["spread"]}
    return Finding(code="SL622", text=text, severity=severity, numbers=numbers)


def _of_rows(
    context: Context, result: dict[str, Any], X: Any, y: Any, positions: Any
) -> tuple[Finding, Table]:  # fmt: skip
    """The row with most influence in words, and those after it with some of their values, by their number in the file."""
    rows = np.asarray(result["rows"])
    shown = take(X, rows)
    plain = [column.name for column in context.columns if column.kind in ("number", "category")]
    told = _telling(X, shown, plain) if context.options.show_rows else []
    places = (rows if positions is None else positions[rows]) + 1
    values = [[_text(value) for value in _column(shown, j)] for j in told]
    changes = [_signed(float(change)) for change in result["changes"]]
    values += [[_text(value) for value in y[rows]]] if context.options.show_rows else []
    lines = tuple(zip((f"{place:,}" for place in places), *values, changes, strict=True))
    removed = any(finding.code == "SL110" for finding in context.findings)
    titles = [column_names(X)[j] for j in told] + ([context.target or "label"] if context.options.show_rows else [])
    head = "row (of those with a target)" if removed else "row"
    table = Table(header=(head, *titles, "loss without"), rows=lines)
    return _influence(result, int(places[0]), len(y)), table


def _telling(X: Any, shown: Any, plain: list[str]) -> list[int]:
    """The columns in which the rows shown are most unusual, in the table's order."""
    names = column_names(X)
    among = [j for j, name in enumerate(names) if name in plain] or list(range(len(names)))
    unusual = [_unusual(_column(X, j), _column(shown, j)) for j in among]
    return [among[i] for i in np.sort(np.argsort(-np.array(unusual), kind="stable")[:COLUMNS])]


def _column(X: Any, j: int) -> Any:
    if hasattr(X, "toarray"):
        return X[:, [j]].toarray().ravel()
    return np.asarray(X.iloc[:, j] if hasattr(X, "iloc") else X[:, j])


def _unusual(column: Any, values: Any) -> float:
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
    return float(-np.log(share).mean()) if share.max() > 2 / len(column) else 0.0  # not text that no other row has


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
