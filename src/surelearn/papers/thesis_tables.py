"""Pages of Tables 5.1 and 5.2 of the model-selection thesis."""

from __future__ import annotations

from typing import Any

from surelearn.bounds import boosting_vc, vc_dimension_of_stumps
from surelearn.jobs import Runner
from surelearn.papers import thesis
from surelearn.papers.reproduction import Nothing, Outcome, Reproduction, TitledTable
from surelearn.report.document import PageTable

HALF_A_DIGIT = 5.1e-5
"""Printed numbers have four digits; a half of the last, and a little."""


def _boosting(settings: Nothing, seed: int, runner: Runner) -> Outcome:  # noqa: ARG001
    v, exact = thesis.counting_bound_on_stumps(12), int(vc_dimension_of_stumps(12))
    cells = [
        {
            "rounds": t, "rows": m, "printed": printed, "without e": variant, "theorem": theorem,
            "theorem, exact dimension": boosting_vc(0.0, m, 0.05, t, exact),
        }
        for (t, m), (printed, variant, theorem) in thesis.table_5_1().items()
    ]  # fmt: skip
    met = _met(cells, "without e")
    return Outcome(
        source="Model-selection thesis, Table 5.1",
        headline=(
            f"{met} of {len(cells)} printed cells are met by equation 3.11 without its e's, none by"
            " the theorem"
        ),
        findings=(
            (
                f"The table holds √(32(T(ln(m/T) + V·ln(m/V)) + ln(8/δ))/m) with V = {v}; the"
                " theorem has em in both logs."
            ),
            (
                f"The theorem is {_excess(cells)} larger than what is printed; a bound without the"
                " e's is not proved."
            ),
            (
                f"V = {v} is the thesis' counting argument (eq. 3.4); stumps in R¹² have the VC"
                f" dimension {exact} (Gey 2018), which makes the bound smaller."
            ),
            (
                f"{sum(cell['theorem'] > 1 for cell in cells)} of the theorem's {len(cells)} cells"
                " are above 1 and say nothing."
            ),
        ),
        parts=(_part("Stumps in R¹², no training errors, δ = 0.05", ("T", "m"), cells),),
        numbers={"cells": cells, "vc_dimension": v, "exact_vc_dimension": exact},
    )


def _networks(settings: Nothing, seed: int, runner: Runner) -> Outcome:  # noqa: ARG001
    cells = [
        {"neurons": neurons, "rows": m, "printed": printed, "conjecture": variant}
        for (neurons, m), (printed, variant) in thesis.table_5_2().items()
    ]
    met = _met(cells, "conjecture")
    return Outcome(
        source="Model-selection thesis, Table 5.2",
        headline=(
            f"{met} of {len(cells)} printed cells are met by Vapnik's bound with a conjectured,"
            " attenuated dimension"
        ),
        findings=(
            (
                "The bound is Vapnik's 4(d(ln(2m/d) + 1) + ln(4/δ))/m with d = W·log₂(60·W·128)/2¹²"
                " and W = 786·neurons."
            ),
            (
                "The dimension is a conjecture that meets the printed numbers: the thesis only says"
                " “a modified estimate”."
            ),
            (
                "Theorem 4.2 gives a dimension about 2¹³ times larger, at which the bound says"
                " nothing for any of these sizes."
            ),
        ),
        parts=(_part("784 inputs, no training errors, δ = 0.05", ("neurons", "m"), cells),),
        numbers={
            "cells": cells,
            "dimensions": {str(k): thesis.attenuated_vc_dimension(k) for k in (80, 100, 120)},
        },
    )


def _met(cells: list[dict[str, Any]], variant: str) -> int:
    return sum(abs(cell[variant] - cell["printed"]) <= HALF_A_DIGIT for cell in cells)


def _excess(cells: list[dict[str, Any]]) -> str:
    shares = [cell["theorem"] / cell["printed"] - 1 for cell in cells]
    return f"{100 * min(shares):.0f} to {100 * max(shares):.0f}%"


def _part(title: str, keys: tuple[str, str], cells: list[dict[str, Any]]) -> TitledTable:
    values = list(cells[0])[2:]
    rows = tuple(
        (*(f"{n:,}" for n in list(cell.values())[:2]), *(f"{cell[value]:.4f}" for value in values))
        for cell in cells
    )
    return TitledTable(title=title, table=PageTable(header=(*keys, *values), rows=rows))


BOOSTING = Reproduction(run=_boosting)
NETWORKS = Reproduction(run=_networks)
