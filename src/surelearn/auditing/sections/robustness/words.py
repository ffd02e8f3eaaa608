"""Section: how far rows must change before the model errs: attacks from above, theorems from
below, on one chart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.sections.images import Album
from surelearn.auditing.sections.robustness import work
from surelearn.auditing.sections.robustness.work import NOISE
from surelearn.auditing.single_rows import row_name, rows_note
from surelearn.auditing.writing import Entry
from surelearn.bounds.robustness import PER_ROW, robust_accuracy
from surelearn.claim import Claim, Covers, Finding
from surelearn.lacking import Lacking
from surelearn.plain import show
from surelearn.report import Chart, PageTable, Section
from surelearn.robust import Radii, SmoothedRadii
from surelearn.robust.certified import ARITHMETIC, CHOICES, UNITS
from surelearn.robust.changes import SHOWN
from surelearn.robust.tables import Moves, names_of, staying
from surelearn.subject.refitting import take
from surelearn.types import TableRows

SMALL, TINY = 0.1, 0.01  # standard deviations
NOTICE, WARNING, SERIOUS = 0.05, 0.15, 0.1  # accuracy lost to them, the last to tiny ones
TURNED = 0.5  # of correct predictions, by one category
MOVED = 0.5  # of the mean absolute error, by a small change of a row
RADII = tuple(round(0.05 * i, 2) for i in range(11))
_NAMED = 20  # columns that stay, by name
_AXIS = "L∞ radius of the change, in standard deviations"


def section(context: Context, results: Sequence[Any]) -> Section | None:
    """Accuracy against the radius of the attack, the smallest changes found, and what is proved."""
    X, y = context.rows("certify")
    found = work.moving(context, X)
    if isinstance(found, Lacking):  # then there were no tasks
        return None
    _, moves = found
    rows = work.sampled(context, len(y), len(moves.names))
    allowed, stay = _allowed(context, moves, X), _stay(context, moves, X)
    if context.task == "regression":
        return _regression(results[0], np.asarray(y)[rows], allowed, stay)
    attacks = [result for result in results if result["kind"] == "attack"]
    proofs = next(result for result in results if result["kind"] == "proved")
    distance = np.concatenate([part["distance"] for part in attacks])
    truth = np.asarray(y)[rows]
    radii = proofs["radii"]
    certified = (
        None
        if isinstance(radii, Lacking)
        else [right_and_certified(radii, truth, r).mean() for r in RADII]
    )
    shown = _nearest(attacks)
    numbers = context.numbers(rows)
    changes = _changes(context, shown, numbers)
    said = "" if changes is None else rows_note(context)
    charts = [_chart(distance, certified)]
    if context.images is not None and context.options.show_rows:
        charts.append(_pictures(context, shown, numbers, take(X, rows)))
    findings = [_small_changes(distance, attacks[0], len(y), stay)]
    findings += [_substitution(result) for result in results if result["kind"] == "substituted"]
    return ENTRY.says(
        notes=tuple(
            filter(
                None,
                (
                    _method(attacks[0], certified is not None),
                    allowed,
                    proved_note(context, proofs, attacks[0]["gradients"]),
                    said,
                ),
            )
        ),
        claims=proved_claims(context, proofs, truth, shown, numbers, SMALL, stay),
        findings=tuple(findings),
        charts=charts,
        tables=() if changes is None else (changes,),
    )


def _stay(context: Context, moves: Moves, X: TableRows) -> str:
    """Which columns do not move, behind what is said of a change; of images how many numbers, and
    that all pixels have one unit.
    """
    if context.images is None:
        return f" ({kept} unchanged)" if (kept := staying(X, moves)) else ""
    left = X.shape[1] - len(moves.names)
    return f" (of all pixels{f'; {left:,} numbers unchanged' if left else ''})"


def _allowed(context: Context, moves: Moves, X: TableRows) -> str:
    columns = X.shape[1]
    if context.images is not None:
        rest = columns - len(moves.names)
        but = f" but {rest:,} numbers that have fewer than three values" if rest else ""
        return (
            f"The attack changes all pixels{but}, in units of the standard deviation of all of them,"
            f" {show(float(moves.scale[0]), 'number')}, each within the range that it was seen in."
        )
    rows = "the fit rows" if context.trained else "the rows given"
    few = ", ".join(moves.names[:3]) + (", …" if len(moves.names) > 3 else "")
    text = (
        f"The attack changes {len(moves.names)} of {columns} columns ({few}), in units of their"
        f" standard deviation in {rows} and within the range seen there."
    )
    if columns > len(moves.names):
        text += (
            " Categories, text, dates and columns with two values are not changed:"
            f" {staying(X, moves, _NAMED)}."
        )
    return text + (" Whole numbers may become fractions." if moves.whole.any() else "")


def _method(attack: dict[str, Any], certified: bool) -> str:
    how = "a white-box attack by projected gradient descent (PGD)"
    if attack["gradients"] is not None:
        how = f"a black-box attack ({attack['method']}): {attack['gradients'].reason}"
    text = f"The line is the accuracy under {how}. An attack that fails proves nothing: "
    return text + ("the true robust accuracy lies between the line and the lower edge of the band, which is proved."
                   if certified else "the true robust accuracy may be lower.")  # fmt: skip


def _small_changes(distance: np.ndarray, attack: dict[str, Any], of: int, stay: str) -> Finding:
    right, small, tiny = (float((distance > r).mean()) for r in (0.0, SMALL, TINY))
    which = f"{len(distance):,} of {of:,} held-back rows" if len(distance) < of else f"{of:,} rows"
    by = (
        f"{'PGD' if attack['gradients'] is None else 'a black-box attack'} within {SMALL:g}"
        f" standard deviations in L∞{stay}"
    )
    text = (
        f"Under {by}, accuracy falls from {show(right, 'rate')} to {show(small, 'rate')} ({which})"
    )
    if right == small:
        text = f"No correct prediction changes under {by} ({which})"
    lost = right - small
    severity = "info" if lost <= NOTICE else "notice" if lost <= WARNING else "warning"
    if right - tiny > SERIOUS:
        severity, text = "serious", f"{text}, and within {TINY:g} already to {show(tiny, 'rate')}"
    numbers = {
        "accuracy": right,
        "attacked": small,
        "radius": SMALL,
        "rows": len(distance),
        "attack": attack["method"],
    }
    if right and np.isfinite(median := np.median(distance[distance > 0])):
        numbers["median_change"] = float(median)
    return Finding(code="SL601", text=f"{text}.", severity=severity, numbers=numbers)


def _substitution(result: dict[str, Any]) -> Finding:
    right, turned = result["right"], result["turned"]
    share = float(np.any(list(turned.values()), axis=0).sum() / max(1, right.sum()))
    worst = max(turned, key=lambda name: turned[name].sum())
    text = (
        f"Substituting one category in one column changes {show(share, 'rate')} of the correct"
        " predictions"
    )
    if share:
        text += (
            f", most often in {worst} ({show(float(turned[worst].sum() / right.sum()), 'rate')})"
        )
    numbers = {"share": share, "column": worst, "rows": int(right.sum())}
    return Finding(
        code="SL602",
        text=f"{text}.",
        severity="notice" if share > TURNED else "info",
        numbers=numbers,
    )


def _chart(distance: np.ndarray, certified: list[Any] | None) -> Chart:
    attacked = [float((distance > r).mean()) for r in RADII]
    data = {"x": list(RADII), "y": attacked, "x_label": _AXIS, "unit": "rate"}
    title = "Accuracy under attack"
    if certified is not None:
        data |= {"low": [float(share) for share in certified], "high": attacked, "proved": True}
        title += " (line) and certified robust accuracy (lower edge)"
    return Chart(kind="curve", title=title, data=data)


def _nearest(attacks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows turned by the smallest changes, by their position in the sample; those with
    other columns first.
    """
    found, start = [], 0
    for part in attacks:
        found += [{**change, "row": change["row"] + start} for change in part["changes"]]
        start += len(part["distance"])
    found.sort(key=lambda change: (change["distance"], change["row"]))
    kinds = [tuple(name for name, _, _ in change["columns"]) for change in found]
    again = [kind in kinds[:i] for i, kind in enumerate(kinds)]
    kept = sorted(np.argsort(again, kind="stable")[:SHOWN])
    return [found[i] for i in kept]


def _pictures(
    context: Context, shown: list[dict[str, Any]], numbers: np.ndarray, X: TableRows
) -> Chart:
    """Images before and after the smallest change that turns their answer."""
    album, names, pictures = Album.of(context), [], []
    places = {name: j for j, name in enumerate(names_of(X))}
    rows = np.asarray(X, dtype=float)
    for change in shown:
        before = rows[change["row"]]
        after = before.copy()
        for name, _, new in change["columns"]:
            after[places[name]] = new
        names += [
            f"row {numbers[change['row']]:,}: {change['before']}",
            f"changed: {change['after']}",
        ]
        pictures += [album.picture(before), album.picture(after)]
    title = "The smallest changes that turn an answer"
    return Chart(
        kind="pictures", title=title, data={"names": names, "pictures": pictures, "pairs": True}
    )


def _changes(
    context: Context, shown: list[dict[str, Any]], numbers: np.ndarray
) -> PageTable | None:
    """Rows that a small change turns: which columns, by how much at most, and the values where
    rows may be shown.
    """
    if context.images is not None:
        few = [
            (
                f"#{numbers[change['row']]}",
                f"{len(change['columns']):,}",
                show(change["distance"], "number"),
            )
            for change in shown
        ]
        head = ("row", "numbers changed", "L∞ distance (standard deviations)")
        return PageTable(header=head, rows=tuple(few)) if few else None
    if not context.options.show_rows:
        lines = [(f"#{numbers[change['row']]}", *_size(change)) for change in shown]
        head = ("row", "columns changed", "L∞ distance (standard deviations)")
        return PageTable(header=head, rows=tuple(lines)) if lines else None
    rows = []
    for change in shown:
        columns = [f"{name} {' → '.join(_apart(old, new))}" for name, old, new in change["columns"]]
        text = "; ".join(columns[:3]) + (f"; {len(columns) - 3} more" if len(columns) > 3 else "")
        rows.append((f"#{numbers[change['row']]}", text, f"{change['before']} → {change['after']}"))
    return (
        PageTable(header=("row", "adversarial change", "prediction"), rows=tuple(rows))
        if rows
        else None
    )


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
    """How far an attack moves the predictions of a regression model."""
    largest, before = result["largest"], result["before"]
    if y.shape != before.shape:
        return ENTRY.says(notes=("Not measured: the model predicts several numbers per row",))
    error, at = float(np.abs(before - y).mean()), work.MOVES.index(SMALL)
    moved = float(largest[at].mean())
    text = (
        f"An attack within {SMALL:g} standard deviations in L∞{stay} moves a prediction by"
        f" {show(moved, 'number')} on average and by {show(float(largest[at].max()), 'number')} at"
        f" most ({len(before):,} rows); the mean absolute error is {show(error, 'number')}."
    )
    severity = "info" if moved <= MOVED * error else "notice" if moved <= error else "warning"
    numbers = {
        "mean_change": moved,
        "largest_change": float(largest[at].max()),
        "mean_error": error,
        "radius": SMALL,
    }
    data = {
        "x": list(work.MOVES),
        "y": [float(row.mean()) for row in largest],
        "low": [float(np.quantile(row, 0.1)) for row in largest],
        "high": [float(np.quantile(row, 0.9)) for row in largest],
        "x_label": _AXIS,
        "unit": "number",
    }
    notes = (
        (
            "The attack is a coordinate search: it moves each column to both ends of its range,"
            " then all columns that helped together. The band holds eight rows in ten."
        ),
        allowed,
        "Nothing is proved: the robustness theorems used here are about classification.",
    )
    return ENTRY.says(
        notes=notes,
        findings=(Finding(code="SL603", text=text, severity=severity, numbers=numbers),),
        charts=(
            Chart(
                kind="curve",
                title="Change of a prediction under attack, mean and 10% to 90%",
                data=data,
            ),
        ),
    )


def right_and_certified(radii: dict[str, Any], y: np.ndarray, radius: float) -> np.ndarray:
    """Rows that are right and proved to stay so within the radius."""
    return (radii["predicted"] == y) & (radii["values"] >= radius)


def proved_claims(
    context: Context,
    proofs: dict[str, Any],
    y: np.ndarray,
    shown: list[dict[str, Any]],
    numbers: np.ndarray,
    radius: float,
    stay: str = "",
) -> tuple[Claim, ...]:
    """Claims about new rows, where the units were fixed before these were seen, and about rows
    shown; each alone.

    ``stay`` names the columns that do not change.
    """
    claims: list[Claim] = []
    if not isinstance(proofs["radii"], Lacking):
        radii = Radii(**proofs["radii"])
        if _new_rows_lacking(context) is None:
            claims.append(_new_rows(context, proofs["radii"], y, radius, stay))
        for change in shown:
            place = f"row {numbers[change['row']]}"
            named = row_name(context, int(numbers[change["row"]]), change["before"])
            label = f"certified L∞ radius of {named} (standard deviations){stay}"
            claims.append(
                radii.claim(change["row"], label=label, covers=_row_alone(context, place))
            )
    if proofs["smoothed"] is not None:
        smoothed = SmoothedRadii(**proofs["smoothed"])
        row = len(y) // 2  # fixed before any noise was drawn
        if smoothed.labels[row] == y[row] and not smoothed.abstained[row]:
            place = f"row {numbers[row]}"
            named = row_name(context, int(numbers[row]), smoothed.labels[row])
            label = (
                f"certified L2 radius of {named} under randomized smoothing (standard"
                f" deviations){stay}"
            )
            covers = replace(
                _row_alone(context, place),
                predictor=f"smoothed with noise of {NOISE:g} standard deviations",
            )
            claims.append(smoothed.claim(int(row), label=label, covers=covers))
    return tuple(claims)


def _row_alone(context: Context, place: str) -> Covers:
    hashes = context.certificate.facts.hashes
    return Covers(
        predictor=hashes.get("model", "plain"),
        population="this row, its numbers changed",
        rows=place,
    )


def _new_rows(
    context: Context, radii: dict[str, Any], y: np.ndarray, radius: float, stay: str
) -> Claim:
    facts = context.certificate.facts
    by = f"by at most {radius:g} standard deviations"
    rows = facts.hashes.get("rows", "the certify rows")
    claim = robust_accuracy.certify(
        int(right_and_certified(radii, y, radius).sum()),
        len(y),
        context.certificate.delta,
        covers=Covers(
            predictor=facts.hashes.get("model", "plain"),
            loss=f"zero_one, at the worst change of every number {by} of the fit rows{stay}",
            rows=rows if len(y) == facts["rows"] else f"{len(y)} drawn at random from {rows}",
        ),
        label=f"robust accuracy on new rows, every number changed {by} in L∞{stay}",
        met=(PER_ROW,),
        assumptions=(ARITHMETIC, CHOICES),
    )
    return replace(claim, met=(*claim.met, UNITS))


def _new_rows_lacking(context: Context) -> Lacking | None:
    if not context.trained:
        return Lacking(
            "claim about new rows", "standard deviations are those of the rows themselves"
        )
    return context.dependent


def proved_note(context: Context, proofs: dict[str, Any], known: Lacking | None = None) -> str:
    """What is not proved, and why; "" where nothing is missing. A reason that is ``known``
    already is not repeated.
    """
    said, radii = [], proofs["radii"]
    if isinstance(radii, Lacking):
        same = known is not None and radii.reason == known.reason
        why = ", for the same reason" if same else f": {radii.reason}"
        said.append(f"Nothing is proved about the model itself{why}.")
    elif (new := _new_rows_lacking(context)) is not None:
        said.append(f"No claim about new rows: {new.reason}.")
    if proofs["smoothed"] is not None:
        share = 1 - float(np.mean(proofs["smoothed"]["abstained"]))
        said.append(
            f"Under randomized smoothing with Gaussian noise of {NOISE:g} standard deviations,"
            f" {share:.0%} of the rows get a certified prediction."
        )
    elif isinstance(radii, Lacking):
        said.append(
            "Randomized smoothing gives any classifier a certified radius:"
            " surelearn.robust.SmoothedClassifier."
        )
    return " ".join(said)


ENTRY = Entry(key="robustness", title="Adversarial robustness", write=section, tasks=work.tasks)
