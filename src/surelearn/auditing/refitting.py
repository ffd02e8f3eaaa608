"""The same model, fitted again on other rows; and how many such refits a section can afford.

All sections together may refit for about 40 seconds of one core at 5,000 rows and 110 at 50,000,
at ``effort=1``. What a refit costs is counted by `surelearn.subject.fitting_work`, never timed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.own_threshold import OwnThreshold
from surelearn.lacking import Lacking
from surelearn.subject import subject_of
from surelearn.subject.fitting_work import fit_work
from surelearn.subject.refitting import columns_for, fit_quietly, take, take_for
from surelearn.types import AnyArray, Model, TableRows

# of all refits of the page: a part of the work for each section that refits
SHARES = {"stability": 0.3, "poisoning": 0.3, "membership": 0.2, "learning_curve": 0.2}
# seconds of one core: so much the fewest refits of a section may take, however slow the model
MOST_ANYWAY = 540.0
_USUAL = 10  # refits of `Options` unless told; who asks for more is given the work for them
_LOOKED_AT = 200  # rows whose text is counted


def affordable_refits(context: Context, section: str, rows: int) -> float:
    """So many refits on ``rows`` rows fit a section's part of the work."""
    n = len(context.y)
    allowed = 40.0 + 1.6e-3 * max(0, n - 5000)
    allowed *= context.options.effort * max(1.0, context.options.refits / _USUAL)
    return SHARES[section] * allowed / refit_work(context, rows)


def too_costly(context: Context, rows: int, fits: int) -> Lacking | None:
    """Why a section refits nothing: the fewest ``fits`` of its work, on so many rows, take longer
    than a section may take in any case; and what pays for them.
    """
    seconds = refit_work(context, rows)
    paid = MOST_ANYWAY * max(1.0, context.options.effort)
    if seconds * fits <= paid:
        return None
    effort = math.ceil(seconds * fits / MOST_ANYWAY)
    each = f"{seconds / 60:,.1f} minutes" if seconds > 90 else f"{seconds:,.0f} seconds"
    why = (
        f"a refit takes about {each} of one core, and {fits} of them are needed:"
        f" `--effort {effort}` pays for them"
    )
    return Lacking("refits", why)


def refit_work(context: Context, rows: int) -> float:
    """About the seconds that a refit on so many rows takes, counted."""
    shape = np.shape(context.X)
    columns = int(np.prod(shape[1:])) if len(shape) > 1 else 1
    return fit_work(context.model, rows, columns, rows * _letters(context))


def _letters(context: Context) -> float:
    """Letters of text per row, as the first rows have them."""
    names = [column.name for column in context.columns if column.kind == "text"]
    names = [name for name in names if name in getattr(context.X, "columns", ())]
    some = take(context.X, slice(_LOOKED_AT))
    counts = [sum(len(str(value)) for value in some[name]) for name in names]
    return sum(counts) / max(1, min(_LOOKED_AT, len(context.y)))


def refit(
    model: Model,
    X: TableRows,
    y: AnyArray,
    rows: AnyArray,
    new: TableRows,
    own: OwnThreshold | None = None,
) -> dict[str, Any]:
    """Fit a copy on some rows, at their own threshold if there is one, and predict the new ones:
    one task.
    """
    part = take_for(model, X, rows)
    if own is not None:
        model = own.model(part, y[rows], rows)
    fitted, new = fit_quietly(model, part, y[rows]), columns_for(model, new, rows)
    result = {"predictions": np.asarray(fitted.predict(new))}
    probabilities = subject_of(fitted).probabilities
    if not isinstance(probabilities, Lacking):
        result["scores"] = np.asarray(probabilities(new))
    return result
