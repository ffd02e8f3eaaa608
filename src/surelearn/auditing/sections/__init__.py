"""The sections of the page. A new one is a file, or a package of work and words, with an
`Entry`, added to the list here.
"""

from __future__ import annotations

from surelearn.auditing.sections import (
    assumptions,
    bounds_compared,
    calibration,
    choice,
    columns,
    costly,
    coverage,
    images,
    kernel_machine,
    layers,
    learning_curve,
    margins,
    next_steps,
    novelty,
    operating_point,
    over_time,
    performance,
    prediction_sets,
    purposes,
    slices,
    stability,
    words_of_texts,
)
from surelearn.auditing.sections.attribution import words as attribution
from surelearn.auditing.sections.membership import words as membership
from surelearn.auditing.sections.poisoning import words as poisoning
from surelearn.auditing.sections.robustness import words as robustness
from surelearn.auditing.writing import Entry

ENTRIES: tuple[Entry, ...] = (
    over_time.ENTRY,
    performance.ENTRY,
    choice.ENTRY,
    images.ENTRY,
    learning_curve.ENTRY,
    margins.ENTRY,
    kernel_machine.ENTRY,
    operating_point.ENTRY,
    costly.ENTRY,
    prediction_sets.ENTRY,
    next_steps.ENTRY,
    slices.ENTRY,
    novelty.ENTRY,
    calibration.ENTRY,
    coverage.ENTRY,
    stability.ENTRY,
    layers.ENTRY,
    robustness.ENTRY,
    poisoning.ENTRY,
    membership.ENTRY,
    attribution.ENTRY,
    words_of_texts.ENTRY,
    columns.DATA,
    assumptions.ENTRY,
    bounds_compared.ENTRY,
    kernel_machine.NUMBERS,
    columns.ENTRY,
    purposes.ENTRY,
)


def skippable() -> tuple[str, ...]:
    """The keys of the sections that may be left out, in the order of the page."""
    return tuple(entry.key for entry in ENTRIES if not entry.required)
