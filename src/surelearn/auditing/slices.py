"""Section: subpopulations, with cut points fixed on fit rows, bounded simultaneously."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.single_rows import FEWEST
from surelearn.certificate import OVER_GROUPS
from surelearn.report import Chart, Section
from surelearn.slicing import Cuts, cut

MOST_VALUES = 6


def choose_slices(X: Any, losses: Any, kinds: dict[str, str], stated: Sequence[str] = ()) -> Cuts | None:
    """Slices of the stated columns, or of the one column along which out-of-fold losses differ most.

    Everything is decided on fit rows: which column, its cut points, and so how many slices share δ. Without losses, as a
    criterion that compares no rows leaves them, there are none but the stated ones.
    """
    if stated:
        return cut(X, *stated, fewest=FEWEST)
    if losses is None:
        return None
    best, most = None, 0.0
    compared = ~np.isnan(losses)
    for column, kind in kinds.items():
        values = np.asarray(X[column])
        if kind != "number" and not (kind == "category" and 2 <= len(set(values.tolist())) <= MOST_VALUES):
            continue
        slices = cut(X, column, fewest=FEWEST)
        spread = _spread(losses, [mask & compared for mask in slices(X).values()])
        if spread > most:
            best, most = slices, spread
    return best


def _spread(losses: Any, masks: list[Any]) -> float:
    """Between-slice sum of squares of the losses, over slices with at least ten rows."""
    parts = [losses[mask] for mask in masks if mask.sum() >= 10]
    if len(parts) < 2:
        return 0.0
    overall = np.concatenate(parts).mean()
    return float(sum(part.size * (part.mean() - overall) ** 2 for part in parts) / (len(parts) - 1))


def section(context: Context) -> Section | None:
    """Measured error and bound of every slice."""
    claims = [claim for claim in context.certificate.together if claim.family == "slice"]
    rare = tuple(filter(None, (_rare(context, column) for column in context.options.slices)))
    if not claims:
        return Section(key="slices", title="Where it errs", notes=rare) if rare else None
    unit = claims[0].unit
    chart = Chart(
        kind="bars",
        title="Errors by slice, measured and guaranteed",
        data={
            "names": [claim.label.removesuffix(OVER_GROUPS).split(" where ", 1)[-1] for claim in claims],
            "measured": [claim.measured for claim in claims],
            "bounds": [claim.value for claim in claims],
            "unit": unit,
        },
    )
    note = "Dots are measured, bars end at what is guaranteed, for all slices together. Cut points were fixed on fit rows."
    return Section(key="slices", title="Where it errs", notes=(note, *rare), charts=(chart,))


def _rare(context: Context, column: str) -> str:
    """Which values of a column that was asked for have no slice, as a count."""
    values = context.rows("train")[0][column]
    if values.dtype.kind in "biuf":
        return ""
    few = int((values.value_counts() < FEWEST).sum())
    which = f"{few:,} values of {column} stand" if few > 1 else f"One value of {column} stands"
    return f"{which} in fewer than {FEWEST} fit rows: no slice is named after {'them' if few > 1 else 'it'}." if few else ""
