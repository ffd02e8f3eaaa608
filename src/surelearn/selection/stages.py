"""Answers after several numbers of rounds, read from one fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from surelearn.types import AnyArray


def at_sizes(stages: Iterable[Any], sizes: Sequence[int]) -> list[AnyArray]:
    """The stages that are asked for; a fit that ended before, because nothing was left to learn,
    stays as it was.

    Examples
    --------
    >>> [int(stage) for stage in at_sizes(iter("12345"), [2, 4, 9])]
    [2, 4, 5]
    """
    kept: list[AnyArray] = []
    last = None
    for t, last in enumerate(stages, 1):
        if t == sizes[len(kept)]:
            kept.append(np.array(last))
            if len(kept) == len(sizes):
                return kept
    if last is None:
        raise ValueError("a nested family's fit has no stages: there is nothing to choose from")
    return kept + [np.array(last)] * (len(sizes) - len(kept))
