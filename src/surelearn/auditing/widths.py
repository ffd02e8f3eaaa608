"""The width of a regression's intervals: learned and chosen on the rows to fit on, before any certify
row is looked at, and certified with the model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surelearn.auditing.fitting import FittedChoice
from surelearn.auditing.options import OptionError, Options
from surelearn.data import Table
from surelearn.jobs import seed_for
from surelearn.selection.split import Split
from surelearn.selection.width import Widths
from surelearn.subject.bands import outside
from surelearn.subject.refitting import take


def check_widths(table: Table, options: Options) -> None:
    """Refuse options of intervals for a target that is no number."""
    for name in ("target_range", "width"):
        if getattr(options, name) is not None and table.task != "regression":
            raise OptionError(
                lambda n: f"{n} is about numbers, and {table.target!r} is read as classes", name
            )


def check_range(table: Table, split: Split, options: Options) -> None:
    """Refuse, before anything is fitted, a stated range of the target that rows to fit on lie outside
    of.
    """
    if options.target_range is None:
        return
    y = np.asarray(table.y[np.union1d(split.fit, split.select)], dtype=float)
    low, high = options.target_range
    if lost := int(outside(y, options.target_range).sum()):
        raise OptionError(
            lambda name: (
                f"{name} {low:.10g} to {high:.10g} does not hold {lost:,} of {y.size:,} rows to fit on:"
                f" state what {table.target!r} can be"
            ),
            "target_range",
        )


def with_one_distance(options: Options) -> Options:
    """The options of a check of one distance from the truth, which intervals of constant width have."""
    if options.width not in (None, "constant"):
        raise OptionError(
            lambda m, w: f"{m} of numbers is about one distance from the truth: leave out {w}",
            "max_risk", "width",
        )  # fmt: skip
    return replace(options, width="constant")


def with_widths(fitted: FittedChoice, table: Table, split: Split, options: Options) -> FittedChoice:
    """The chosen model with a width of each row's own, where that makes intervals narrower on the rows
    to fit on; as it is where widths are constant and nothing is stated about the target's range.

    Refits, for whichever section, are of the model without its widths, which do not change what it
    predicts.
    """
    if table.task != "regression":
        return fitted
    train = np.union1d(split.fit, split.select)
    y = np.asarray(table.y[train], dtype=float)
    said = fitted.selection.predictions
    learned = table.time is None and said is not None and options.width != "constant"
    if not learned and options.target_range is None:
        return fitted
    from surelearn.selection.widths import around

    kinds = {c.name: c.kind for c in table.columns if c.name in fitted.columns and c.kind != "text"}
    model = around(
        fitted.unfitted,
        fitted.model,
        take(table.X[fitted.columns], train),
        y,
        said if learned else None,
        kinds=kinds,
        form=options.width if learned else "constant",
        alpha=options.alpha,
        target_range=options.target_range,
        random_state=seed_for("widths", options.seed),
    )
    widths = Widths(tuple(model.widths_), model.form_)
    if model.form_ == "constant" and options.target_range is None:
        return replace(fitted, widths=widths)
    return replace(fitted, model=model, widths=widths)
