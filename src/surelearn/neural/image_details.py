"""What few people set of a network for images."""

from __future__ import annotations

from surelearn import stated
from surelearn.base import ParameterGroup


class ImageDetails(ParameterGroup):
    """What few people set of a network for images.

    Parameters
    ----------
    batch_size : images of a step; None: a sixtieth of them, from 32 to 1,000
    optimizer : "adamw", or "muon" for the matrices between the first and the last
    weight_decay : λ of AdamW
    label_smoothing : the share of an image's label that is given to all classes alike; fewer
        errors, and probabilities that are too even
    averaged : the share of the epochs, at the end, over which weights are averaged; 0 for none
    precision : None is "bfloat16" on a GPU and "float32" on a CPU
    compiled : whether ``torch.compile`` makes kernels for the network: from some 10 seconds of
        training on a GPU it saves more than it takes

    Examples
    --------
    >>> from surelearn.neural import ImageClassifier
    >>> ImageClassifier(details=ImageDetails(batch_size=100)).details.batch_size
    100
    """

    saved_as = "image-details/1"

    def __init__(
        self,
        *,
        batch_size: int | None = None,
        optimizer: str = "adamw",
        weight_decay: float = 0.05,
        label_smoothing: float = 0.1,
        averaged: float = 0.4,
        precision: str | None = None,
        compiled: bool = False,
    ) -> None:
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.weight_decay = weight_decay
        self.label_smoothing = label_smoothing
        self.averaged = averaged
        self.precision = precision
        self.compiled = compiled

    def check(self) -> None:
        """Refuse what cannot be."""
        if self.batch_size is not None:
            stated.whole("batch_size", self.batch_size)
        if self.optimizer not in ("adamw", "muon"):
            raise ValueError(f"optimizer must be 'adamw' or 'muon', not {self.optimizer!r:.60}")
        if self.precision not in (None, "float32", "bfloat16"):
            raise ValueError(
                f"precision must be None, 'float32' or 'bfloat16', not {self.precision!r:.60}"
            )
        for name in ("weight_decay", "label_smoothing", "averaged"):
            value = getattr(self, name)
            if not stated.is_number(value) or not 0 <= value < 1:
                raise ValueError(f"{name} must be at least 0 and below 1, not {value!r:.60}")
