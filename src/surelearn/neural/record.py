"""What happened in the fit of a network for tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surelearn.record import Record, Writer, run

_RAN = "it tells how the descent went, and only a descent from the same seed would tell it again"


@dataclass(frozen=True, kw_only=True)
class NetworkRecord(Record):
    """A descent on the weights of k networks that share their matrices.

    Attributes
    ----------
    classes : different labels; None for a regression
    categories : columns of words
    members, width, depth : of the network
    parameters : numbers that were learned
    selected : rows held out of the descent, which chose the epoch
    weighted : whether rows had weights that differ
    planned : epochs that there could have been
    epochs, best, steps : made; the epoch that was kept, from 0; steps of the descent
    """

    key: ClassVar[str] = "network/1"

    classes: int | None
    categories: int
    members: int
    width: int
    depth: int
    parameters: int
    selected: int
    weighted: bool
    planned: int
    epochs: int = run(_RAN)
    best: int = run(_RAN)
    steps: int = run(_RAN)

    def write(self, writer: Writer) -> None:
        """Why nothing is claimed of the rows it was fitted on."""
        writer.lacks(
            "risk",
            f"the {self.parameters:,} weights were fitted to these rows by a descent that ends near no"
            " minimizer that is known, and bounds that count weights say nothing for so many:"
            " surelearn.certify claims its risk from rows that it has not seen",
        )
