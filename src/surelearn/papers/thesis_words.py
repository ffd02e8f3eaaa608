"""What the thesis' AdaBoost experiments gave, in sentences, tables and figures; every word
follows from the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surelearn.papers.reproduction import Figure, Outcome, TitledTable
from surelearn.papers.thesis_boosting import CRITERIA, BoostingSettings, difference
from surelearn.papers.thesis_problem import SIZES
from surelearn.report.document import PageTable

SIZE_NAMES = tuple(f"{name}T*" for name in ("¼", "½", "¾", "", "1¼", "1½", "1¾", "2"))
_POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_READ = (
    "Boxes: quartiles and median; whiskers: farthest within 1.5 box lengths; rings: beyond;"
    " diamond: mean."
)


def describe_errors(settings: BoostingSettings, found: Mapping[str, Any]) -> Outcome:
    """Figure 5.1: relative errors of the chosen sizes."""
    _, main = found["readings"]["as set"]
    relative = main["relative"]
    versus = difference(relative["adjusted SRM"], relative["10-fold CV"])
    means = sorted((float(np.mean(relative[name])), name) for name in CRITERIA)
    ranked = [f"{name} {mean:.1f}" for mean, name in means]
    return Outcome(
        source="Model-selection thesis, Figure 5.1",
        headline=f"Mean relative error (0 the best size, 100 the worst): {', '.join(ranked)}",
        findings=(
            f"At C = {_constant(settings.constant)} {_order(versus)}",
            _constants_sentence(found, relative),
            _largest_sentence(relative),
            (
                f"Margins choose ¼T* in {_share(main, 'margins', 0)} of problems, SRM without a"
                f" constant in {_share(main, 'SRM', 0)}."
            ),
            (
                f"The best size is 2T*, the largest tried, in {_share(main, 'best', SIZES - 1)} of"
                " problems."
            ),
            _moves_sentence(found["readings"]),
        ),
        figures=(
            Figure(
                kind="boxes",
                title=(
                    f"Error of the chosen size relative to the best, {settings.problems} problems"
                ),
                groups={name: tuple(relative[name]) for name in CRITERIA},
                axis="0: the best of eight sizes, 100: the worst (eq. 5.5)",
                note=_READ,
            ),
        ),
        parts=(
            _summary(found),
            _readings_part(found["readings"]),
            _constants_part(found, relative),
        ),
        notes=_notes(found["problems"]),
        numbers=_numbers(found),
    )


def describe_sizes(settings: BoostingSettings, found: Mapping[str, Any]) -> Outcome:
    """Figure 5.3: how often each size is chosen."""
    _, main = found["readings"]["as set"]
    names = ("best", *CRITERIA[:-1])
    counts = {
        name: tuple(np.bincount(main["chosen"][name], minlength=SIZES).tolist()) for name in names
    }
    larger = {name: float(np.mean(np.asarray(main["chosen"][name]) > 3)) for name in names}
    return Outcome(
        source="Model-selection thesis, Figure 5.3",
        headline=(
            f"The best of eight sizes is 2T*, the largest, in {_share(main, 'best', SIZES - 1)} of"
            " problems"
        ),
        findings=(
            (
                f"More stumps than the oracle has are best in {100 * larger['best']:.0f}% of"
                f" problems; 10-fold CV chooses more in {100 * larger['10-fold CV']:.0f}%, adjusted"
                f" SRM in {100 * larger['adjusted SRM']:.0f}%."
            ),
            (
                f"10-fold CV chooses 2T* in {_share(main, '10-fold CV', SIZES - 1)}, adjusted SRM"
                f" in {_share(main, 'adjusted SRM', SIZES - 1)} of problems, at C ="
                f" {_constant(settings.constant)}."
            ),
            (
                f"Margins choose ¼T* in {_share(main, 'margins', 0)} of problems, SRM without a"
                f" constant in {_share(main, 'SRM', 0)}."
            ),
            _sizes_move(found["readings"]),
        ),
        figures=(
            Figure(
                kind="bars",
                title=f"How often each size is chosen, {settings.problems} problems",
                groups={name: tuple(map(float, values)) for name, values in counts.items()},
                axis="problems",
                labels=SIZE_NAMES,
                mark=3,
                note="T* is the number of stumps in the oracle, marked.",
            ),
        ),
        parts=(
            TitledTable(
                title="Problems in which a size is chosen",
                table=PageTable(
                    header=("", *SIZE_NAMES),
                    rows=tuple((name, *map(str, values)) for name, values in counts.items()),
                ),
            ),
            _largest_part(found["readings"]),
        ),
        notes=_notes(found["problems"]),
        numbers=_numbers(found) | {"counts": counts},
    )


# ---- sentences


def _order(versus: Mapping[str, float]) -> str:
    gap = (
        f"{abs(versus['mean']):.1f} points (95%: {_signed(versus['low'])} to"
        f" {_signed(versus['high'])})"
    )
    if versus["high"] < 0:
        return f"adjusted SRM is better than 10-fold CV by {gap}, against the thesis' order."
    if versus["low"] > 0:
        return f"adjusted SRM is worse than 10-fold CV by {gap}, as in the thesis."
    return (
        f"adjusted SRM and 10-fold CV differ by {gap}, which is no difference at this number of"
        " problems."
    )


def _constant(constant: float) -> str:
    power = np.log2(constant) if constant > 0 else 0.5
    return (
        f"2{str(int(power)).translate(_POWERS)}"
        if power == int(power) and power
        else f"{constant:g}"
    )


def _constants_sentence(found: Mapping[str, Any], relative: Mapping[str, Any]) -> str:
    cv = relative["10-fold CV"]
    gaps = {c: difference(values, cv) for c, values in found["constants"].items()}
    better = [_constant(c) for c, gap in gaps.items() if gap["high"] < 0]
    worse = [_constant(c) for c, gap in gaps.items() if gap["low"] > 0]
    return (
        f"Of the constants tried adjusted SRM is better than 10-fold CV for C in {_listed(better)},"
        f" worse for {_listed(worse)}; calibrated on a quarter of the rows it has the mean"
        f" {np.mean(found['calibrated']):.1f}."
    )


def _listed(names: Sequence[str]) -> str:
    return "none tried" if not names else "{" + ", ".join(names) + "}"


def _largest_sentence(relative: Mapping[str, Any]) -> str:
    largest = float(np.mean(relative["always the largest"]))
    beaten = [
        name
        for name in CRITERIA[:-1]
        if difference(relative[name], relative["always the largest"])["low"] > 0
    ]
    return (
        f"Always taking the largest size has the mean {largest:.1f} without looking at the data;"
        f" worse than that: {', '.join(beaten) or 'no criterion'}."
    )


def _share(judged: Mapping[str, Any], name: str, position: int) -> str:
    return f"{100 * np.mean(np.asarray(judged['chosen'][name]) == position):.0f}%"


def _gap(judged: Mapping[str, Any]) -> dict[str, float]:
    return difference(judged["relative"]["adjusted SRM"], judged["relative"]["10-fold CV"])


def _sign(gap: Mapping[str, float]) -> str:
    return "better" if gap["high"] < 0 else "worse" if gap["low"] > 0 else "no different"


def _moves_sentence(readings: Mapping[str, Any]) -> str:
    signs = {name: _sign(_gap(judged)) for name, (_, judged) in readings.items()}
    moved = [
        f"{name} ({sign})"
        for name, sign in signs.items()
        if sign != signs["as set"] and not name.startswith("as set")
    ]
    if not moved:
        return (
            "Whether adjusted SRM is better or worse than 10-fold CV is the same in every reading"
            " tried."
        )
    return (
        f"Adjusted SRM against 10-fold CV is {signs['as set']} as set, but not with:"
        f" {'; '.join(moved)}."
    )


def _sizes_move(readings: Mapping[str, Any]) -> str:
    shares = {
        name: float(np.mean(np.asarray(judged["chosen"]["best"]) == SIZES - 1))
        for name, (_, judged) in readings.items()
    }
    low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    return (
        f"Over all readings tried 2T* is best in {100 * shares[low]:.0f}% ({low}) to"
        f" {100 * shares[high]:.0f}% ({high}) of problems."
    )


def _notes(problems: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    majority = [max(problem["positive"], 1 - problem["positive"]) for problem in problems]
    rejected = sum(problem["rejected"] for problem in problems)
    last = [problem["test"][-1] for problem in problems]
    return (
        (
            f"Oracles: {rejected} votes were rejected for {len(problems)} kept; the larger class"
            f" has {100 * np.mean(majority):.0f}% of points on average. The largest vote errs on"
            f" {100 * np.mean(last):.1f}% of new points, a number that the thesis left blank."
        ),
        (
            "By default thresholds are uniform on [−1, 1]: the thesis does not say, but saw both"
            " labels in roughly the same proportions without rejecting votes; how many each reading"
            " rejects stands in the table."
        ),
        (
            "SRM takes δ/8 for each of eight sizes, since choosing among them costs a union; the"
            " thesis took δ."
        ),
        (
            "These are measurements on drawn problems; intervals are approximate and not adjusted"
            " for how many there are."
        ),
    )


# ---- tables and numbers


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def _interval(gap: Mapping[str, float]) -> str:
    return f"{_signed(gap['mean'])} ({_signed(gap['low'])} to {_signed(gap['high'])})"


def _summary(found: Mapping[str, Any]) -> TitledTable:
    relative = found["readings"]["as set"][1]["relative"]
    rows = []
    for name in CRITERIA:
        values, gap = relative[name], difference(relative[name], relative["10-fold CV"])
        quartiles = np.percentile(values, [25, 50, 75])
        against = "" if name == "10-fold CV" else _interval(gap)
        rows.append((name, f"{np.mean(values):.1f}", *(f"{q:.1f}" for q in quartiles), against))
    header = ("criterion", "mean", "quartile", "median", "quartile", "less 10-fold CV (95%)")
    return TitledTable(
        title="Relative error of each criterion", table=PageTable(header=header, rows=tuple(rows))
    )


def _readings_part(readings: Mapping[str, Any]) -> TitledTable:
    rows = []
    for name, (count, judged) in readings.items():
        gap = _gap(judged)
        means = (f"{np.mean(judged['relative'][each]):.1f}" for each in CRITERIA)
        rows.append(
            (
                name,
                str(count),
                str(judged["rejected"]),
                *means,
                _interval(gap),
            )
        )
    return TitledTable(
        title="How the means move with what the thesis leaves open",
        note=(
            "One setting differs at a time; readings that need other oracles are tried on fewer"
            " problems."
        ),
        table=PageTable(
            header=(
                "reading",
                "problems",
                "votes rejected",
                *CRITERIA,
                "adjusted SRM less CV (95%)",
            ),
            rows=tuple(rows),
        ),
    )


def _constants_part(found: Mapping[str, Any], relative: Mapping[str, Any]) -> TitledTable:
    rows = []
    for name, values in [
        *((_constant(c), v) for c, v in found["constants"].items()),
        ("calibrated", found["calibrated"]),
    ]:
        gap = difference(values, relative["10-fold CV"])
        rows.append((name, f"{np.mean(values):.1f}", _interval(gap)))
    return TitledTable(
        title="Adjusted SRM at other constants",
        note=(
            "Calibrated: C chosen on a held-out quarter of each problem's 600 points; the thesis"
            " chose one C for all."
        ),
        table=PageTable(header=("C", "mean", "less 10-fold CV (95%)"), rows=tuple(rows)),
    )


def _largest_part(readings: Mapping[str, Any]) -> TitledTable:
    names = ("best", "10-fold CV", "adjusted SRM")
    rows = tuple(
        (
            reading,
            str(count),
            str(judged["rejected"]),
            *(_share(judged, name, SIZES - 1) for name in names),
            _share(judged, "margins", 0),
        )
        for reading, (count, judged) in readings.items()
    )
    return TitledTable(
        title="How this moves with what the thesis leaves open",
        note=(
            "One setting differs at a time; readings that need other oracles are tried on fewer"
            " problems."
        ),
        table=PageTable(
            header=(
                "reading",
                "problems",
                "votes rejected",
                *(f"{name}: 2T*" for name in names),
                "margins: ¼T*",
            ),
            rows=rows,
        ),
    )


def _numbers(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "problems": found["problems"],
        "readings": {
            name: {"problems": count, **judged}
            for name, (count, judged) in found["readings"].items()
        },
        "constants": {_constant(c): values for c, values in found["constants"].items()},
        "calibrated": found["calibrated"],
    }
