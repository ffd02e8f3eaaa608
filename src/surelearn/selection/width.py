"""Forms of prediction intervals, and what was measured of each on the rows to fit on."""

from __future__ import annotations

from typing import Literal, NamedTuple

Form = Literal["constant", "normalized", "quantiles"]
FORMS: tuple[Form, ...] = ("constant", "normalized", "quantiles")  # from simple to complex


class Widths(NamedTuple):
    """Forms that were compared, simplest first, none where there was nothing to compare; and the one
    in use.
    """

    compared: tuple[Width, ...] = ()
    used: Form = "constant"


class Width(NamedTuple):
    """One form of intervals on rows that were not fitted on.

    Attributes
    ----------
    form : "constant", "normalized" or "quantiles"
    mean : mean width of intervals that cover 1 − α of these rows
    gain, error : how much narrower than constant ones that is, and its paired standard error
    """

    form: Form
    mean: float
    gain: float = 0.0
    error: float = 0.0


NOT_COMPARED = Widths()
