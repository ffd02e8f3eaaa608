"""What happened in the fit of a network for images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surelearn.record import Record, Writer, run

_RAN = "it tells how the descent went, and only a descent from the same seed would tell it again"


@dataclass(frozen=True, kw_only=True)
class ImageRecord(Record):
    """A descent on the weights of a network for images.

    Attributes
    ----------
    classes : different labels
    height, width, channels : of an image; d is their product
    network, widths, depth : "cnn" or "mlp", and what it is made of
    parameters : numbers that were learned
    weighted : whether rows had weights that differ
    augmented : whether images were moved at random
    shift_down, shift_right : the most pixels, either way
    rotation, zoom, shear : the largest, in degrees and shares
    epochs, batch_size : passes over the rows, and rows of a step
    steps : of the descent
    loss : the mean of the last epoch, on moved images
    precision : that products of the descent were computed in
    """

    key: ClassVar[str] = "image-classifier/1"

    classes: int
    height: int
    width: int
    channels: int
    network: str
    widths: tuple[int, ...]
    depth: int
    parameters: int
    weighted: bool
    augmented: bool
    shift_down: int
    shift_right: int
    rotation: float
    zoom: float
    shear: float
    epochs: int
    batch_size: int
    steps: int = run(_RAN)
    loss: float = run(_RAN)
    precision: str = run(_RAN)

    def write(self, writer: Writer) -> None:
        """Why nothing is claimed of the rows it was fitted on."""
        moved = ", moved at random in every epoch," if self.augmented else ""
        writer.lacks(
            "risk",
            f"the {self.parameters:,} weights were fitted to these images{moved} by a descent that"
            " ends near no minimizer that is known, and bounds that count weights say nothing for"
            " so many: surelearn.certify claims its risk from images that it has not seen",
        )
