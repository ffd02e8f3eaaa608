"""Batches of images that are moved a little, another way in each epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from surelearn import stated
from surelearn.base import ParameterGroup

if TYPE_CHECKING:
    import torch
    from torch import Tensor


_Drawn = tuple[npt.NDArray[np.intp], npt.NDArray[np.float32] | None]


class Augmentation(ParameterGroup):
    """How far images are moved at random while a network is trained, each in each epoch.

    Rotations, zooms and shears are drawn uniformly between ± the stated numbers, and so are
    shifts: whole pixels where nothing else moves. What comes in at the border is 0.

    Parameters
    ----------
    shift : pixels, at most an eighth of a side
    rotation : degrees
    zoom, shear : shares; 0.1 is up to a tenth larger or smaller

    Examples
    --------
    >>> maps = Augmentation(shift=1).moves(4, (8, 16), np.random.default_rng(0))
    >>> maps[:, :, 2].tolist()  # a pixel is 1/8 of half the width, 1/4 of half the height
    [[0.125, -0.25], [0.0, -0.25], [0.0, -0.25], [-0.125, -0.25]]
    """

    saved_as = "image-augmentation/1"

    def __init__(
        self, *, shift: int = 2, rotation: float = 0.0, zoom: float = 0.0, shear: float = 0.0
    ) -> None:
        self.shift = shift
        self.rotation = rotation
        self.zoom = zoom
        self.shear = shear

    def check(self) -> None:
        """Refuse what cannot be."""
        stated.whole("shift", self.shift, 0)
        for name, most in (("rotation", 180.0), ("zoom", 0.9), ("shear", 2.0)):
            value = getattr(self, name)
            if not stated.is_number(value) or not 0 <= value <= most:
                raise ValueError(f"{name} must be between 0 and {most:g}, not {value!r:.60}")

    def shifts(self, sides: tuple[int, int]) -> tuple[int, int]:
        """The most pixels that images of these sides are shifted down and to the right."""
        return min(int(self.shift), sides[0] // 8), min(int(self.shift), sides[1] // 8)

    @property
    def bends(self) -> bool:
        """Whether more than shifts happens."""
        return max(self.rotation, self.zoom, self.shear) > 0

    def moves_any(self, sides: tuple[int, int]) -> bool:
        """Whether images of these sides are moved at all."""
        return self.bends or max(self.shifts(sides)) > 0

    def moves(
        self, n: int, sides: tuple[int, int], generator: np.random.Generator
    ) -> npt.NDArray[np.float32]:
        """Affine maps (n, 2, 3) from places in the moved image to places in the given one, in
        coordinates between −1 and 1, x before y.
        """
        height, width = sides
        down, right = self.shifts(sides)
        made = np.zeros((n, 2, 3), dtype=np.float32)
        if not self.bends:
            made[:, 0, 0] = made[:, 1, 1] = 1
            made[:, 0, 2] = generator.integers(-right, right + 1, n) * (2 / width)
            made[:, 1, 2] = generator.integers(-down, down + 1, n) * (2 / height)
            return made
        angle = np.deg2rad(generator.uniform(-self.rotation, self.rotation, n))
        size = 1 + generator.uniform(-self.zoom, self.zoom, n)
        slant = generator.uniform(-self.shear, self.shear, n)
        made[:, 0, 0] = made[:, 1, 1] = np.cos(angle) * size
        made[:, 0, 1] = (slant - np.sin(angle) * size) * (height / width)
        made[:, 1, 0] = np.sin(angle) * size * (width / height)
        made[:, 0, 2] = generator.uniform(-right, right, n) * (2 / width)
        made[:, 1, 2] = generator.uniform(-down, down, n) * (2 / height)
        return made


class MovedRows:
    """Row numbers in random order as tensors on a device, in batches of one size, with ``maps``:
    how each row is moved in the epoch that was asked for last.

    Rows that do not fill a batch wait for another epoch. Order and moves are drawn by NumPy from
    the seed and the number of the epoch, the same on any device.
    """

    def __init__(
        self,
        n: int,
        batch_size: int,
        augmentation: Augmentation,
        sides: tuple[int, int],
        *,
        seed: int,
        device: torch.device,
    ) -> None:
        import torch

        self.n, self.seed, self.sides = n, seed, sides
        self.count = max(1, round(n / batch_size))
        self.size = n // self.count
        self.augmentation = augmentation
        self.moved = augmentation.moves_any(sides)
        self.device = device
        # recorded steps read it where it lies
        self.maps = torch.zeros(n if self.moved else 0, 2, 3, device=device)
        self._ahead: tuple[int, _Drawn] | None = None

    def __len__(self) -> int:
        return self.count

    def epoch(self, number: int) -> Iterator[Tensor]:
        """The batches of an epoch; the next epoch is drawn while a GPU is still busy with this
        one's.
        """
        import torch

        ahead, self._ahead = self._ahead, None
        order, maps = ahead[1] if ahead and ahead[0] == number else self._draw(number)
        if maps is not None:
            self.maps.copy_(torch.from_numpy(maps))
        rows = torch.from_numpy(order[: self.count * self.size]).to(self.device)
        yield from rows.split(self.size)
        self._ahead = number + 1, self._draw(number + 1)

    def _draw(self, number: int) -> _Drawn:
        """Order and moves of an epoch."""
        generator = np.random.default_rng([self.seed, number])
        order = generator.permutation(self.n)
        if not self.moved:
            return order, None
        return order, self.augmentation.moves(self.n, self.sides, generator)

    def images(self, given: Tensor, rows: Tensor) -> Tensor:
        """Images (B, channels, height, width) of these rows, moved."""
        from torch.nn.functional import affine_grid, grid_sample

        if not self.moved:
            return given
        grid = affine_grid(self.maps[rows], list(given.shape), align_corners=False)
        return grid_sample(given, grid, align_corners=False)
