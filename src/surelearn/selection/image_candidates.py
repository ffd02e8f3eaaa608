"""The candidates for images: linear, kernel machines, and networks that see which pixels are neighbors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from surelearn.selection.candidates import Candidate
from surelearn.selection.catalogue import (
    DIRECT_KERNEL_ROWS,
    EIGENPRO,
    Makers,
    Setting,
    is_installed,
)
from surelearn.types import ImageShape, Model

CNN, MLP = "CNN", "MLP"
NEED_TORCH = (CNN, MLP)
SHOWN = 300_000  # images that a network sees in training, about, where there are many
_LINEAR = ("median", "linear regression", "kernel SVM", "kernel ridge", EIGENPRO)


def image_budget(n: int) -> float:
    """Seconds of one core for choosing among candidates on n images, unless told.

    Examples
    --------
    >>> [round(image_budget(n)) for n in (1000, 60_000)]
    [84, 290]
    """
    return 80 + 3.5e-3 * n


@dataclass(frozen=True)
class ImageMakers(Makers):
    """Makes the candidates of a table of images; ``shape`` is theirs."""

    shape: ImageShape = (1, 1, 1)

    def pipeline(self, *steps: Model, reader: Any = "few") -> Model:  # noqa: ARG002 - all read pixels
        """Pixels scaled alike, whoever reads them."""
        from sklearn.pipeline import make_pipeline

        from surelearn.selection.preparation import PixelScaler

        return make_pipeline(PixelScaler(self.shape[2]), *steps)

    def regressors(self) -> Iterator[tuple[str, list[Setting]]]:
        """Those for tables that read pixels well; no network."""
        yield from ((name, made) for name, made in super().regressors() if name in _LINEAR)

    def classifiers(self) -> Iterator[tuple[str, list[Setting]]]:
        """From simple to complex."""
        from sklearn.dummy import DummyClassifier

        yield "majority", self.one("majority", DummyClassifier(), work=0.01)
        yield "logistic regression", self._logistic()[:2]
        if self.size.rows <= DIRECT_KERNEL_ROWS:
            yield "kernel SVM", list(self._machines())
        else:
            yield EIGENPRO, self._eigenpro()
        yield MLP, list(self._networks("mlp", [(256, 256), (1024, 1024)]))
        small = min(self.shape[:2]) <= 12
        widths = [(16, 32), (32, 64)] if small else [(8, 16, 32), (32, 64, 128)]
        yield CNN, list(self._networks("cnn", widths))

    def _machines(self) -> Iterator[Setting]:
        from sklearn.svm import SVC

        from surelearn.selection.catalogue import with_probabilities

        n, d = self.size.rows, self.size.columns
        for C, bandwidth, rank in ((10.0, 0.0, 1), (10.0, 0.3, 2), (10.0, 3.0, 4)):
            inside = SVC(C=C, gamma=bandwidth / d if bandwidth else "scale")
            words = f"C = {C:g}, γ = {f'{bandwidth:g}/d' if bandwidth else 'scale'}"
            made = Candidate(
                name=f"kernel SVM, {words}", model=self.pipeline(with_probabilities(inside))
            )
            yield Setting(made, self._reading() + 4e-10 * n * n * (20 + d), rank)

    def _networks(self, kind: str, widths: list[tuple[int, ...]]) -> Iterator[Setting]:
        """Networks on the CPU, so that every machine gives the same page; none without PyTorch."""
        if not is_installed("torch"):
            return
        from surelearn.neural import ImageClassifier, ImageDetails

        name, n = {"cnn": CNN, "mlp": MLP}[kind], self.size.rows
        epochs = max(5, SHOWN // n) if n > SHOWN // 20 else None
        for i, sizes in enumerate(widths):
            model = ImageClassifier(
                kind, widths=sizes, shape=self.shape, epochs=epochs, device="cpu", random_state=self.seed(name),
                details=ImageDetails(label_smoothing=0.0),  # probabilities are certified, too
            )  # fmt: skip
            units = "channels" if kind == "cnn" else "units"
            words = f"{'–'.join(map(str, sizes))} {units}"
            work = self._reading() + model.work_for(n, self.shape, self.size.classes)
            # the small ones before a second kernel machine, the large ones last
            rank = (2 if kind == "mlp" else 1) if not i else 5
            yield Setting(
                Candidate(name=f"{name}, {words}", model=self.pipeline(model)), work, rank
            )
