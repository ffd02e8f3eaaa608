"""A classifier of images, as a scikit-learn estimator."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from surelearn import stated
from surelearn.base import WEIGHTED_CHECKS, Learner, group_of
from surelearn.earlier import Groups
from surelearn.lacking import Lacking
from surelearn.neural.augmentation import Augmentation, MovedRows
from surelearn.neural.averages import Swa
from surelearn.neural.checked import labels_of, weights_of
from surelearn.neural.devices import device_of, has_torch, need_torch
from surelearn.neural.image_details import ImageDetails
from surelearn.neural.image_record import ImageRecord
from surelearn.neural.schedules import OneCycle
from surelearn.neural.train import Trained, Training, train
from surelearn.subject import Closed, Parts
from surelearn.subject.forms import ModuleForm
from surelearn.types import AnyArray, Array, ImageShape, RandomState, RowsLike

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from surelearn.neural.image_layers import Layout

_PIECE = 512  # images that are answered together
_RATE, _STEP = 3.5e10, 1.5e-3  # operations of one core in a second; seconds of a step
_RATE_IN_DOUBLE, _ANSWER = 6e9, 5e-5


class ImageClassifier(ClassifierMixin, Learner):
    """A convolutional network, or one of dense layers, on images.

    Images are standardized by the mean and spread of their pixels, moved a little at random in
    every epoch, and the log loss is descended on by AdamW along one cycle of the learning rate,
    in bfloat16 on a GPU, where all images lie and a step is one recorded graph. The answer is
    given by the mean of the weights over the last epochs, with batch normalization folded in.

    Parameters
    ----------
    network : "cnn", or "mlp" for dense layers alone
    widths : channels of each stage of the CNN (32, 64, 128 unless told), each of half the sides
        of the one before; units of each dense layer (1,024, 1,024)
    depth : convolutions of each stage but the first, which has one
    shape : (height, width) or (height, width, channels) of an image where rows are flat, its
        channels side by side; flat rows without it are lines of pixels
    epochs : passes over the images; None: 20, and up to 100 where these make fewer than 1,000 steps
    learning_rate : the largest of the run; None: 0.01·(batch/1000)^¼
    augmentation : `Augmentation`; None shifts up to 2 pixels either way
    details : `ImageDetails`; None for the defaults
    device : "auto" takes the GPU where there is one
    delta : failure probability of claims (none is made of the fit)
    random_state : of the first weights, the batches and the moves

    Attributes
    ----------
    classes_ : the labels
    shape_ : height, width, channels
    weights_ : what was learned, arrays by name, which with the parameters and ``shape_`` make
        ``module_``
    module_ : the network as a torch module of plain layers, of flat rows of pixels as given, in
        single precision (answers are computed in double)

    Notes
    -----
    K. Jordan, 94% on CIFAR-10 in 3.29 seconds on a single GPU, 2024, for how such networks are
    trained soon.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> digits = load_digits()
    >>> model = ImageClassifier(widths=(8, 16), epochs=4, learning_rate=0.02, random_state=0)
    >>> model.fit(digits.images[:600], digits.target[:600]).shape_
    (8, 8, 1)
    >>> bool(model.score(digits.images[600:900], digits.target[600:900]) > 0.7)
    True
    """

    Record = ImageRecord
    groups: ClassVar[Groups] = {"augmentation": Augmentation, "details": ImageDetails}
    saved_as = "image-classifier/1"
    classes_: npt.NDArray[Any]
    shape_: tuple[int, int, int]
    weights_: dict[str, AnyArray]

    def __init__(
        self,
        network: str = "cnn",
        *,
        widths: tuple[int, ...] | None = None,
        depth: int = 2,
        shape: tuple[int, ...] | None = None,
        epochs: int | None = None,
        learning_rate: float | None = None,
        augmentation: Augmentation | None = None,
        details: ImageDetails | None = None,
        device: str = "auto",
        delta: float = 0.05,
        random_state: RandomState = None,
    ) -> None:
        self.network = network
        self.widths = widths
        self.depth = depth
        self.shape = shape
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.augmentation = augmentation
        self.details = details
        self.device = device
        self.delta = delta
        self.random_state = random_state

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """A small CNN and a small MLP; none without torch."""
        if has_torch():
            details = ImageDetails(batch_size=20)
            small: dict[str, Any] = {"epochs": 8, "details": details, "random_state": 0}
            yield cls(widths=(8,), device="cpu", **small)
            yield cls("mlp", widths=(16,), device="cpu", **small)

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """A small one of each kind, on lines of pixels, trained long enough to pass; none without
        torch.
        """
        if has_torch():
            details = ImageDetails(batch_size=16)
            yield cls(widths=(16,), epochs=8, learning_rate=0.03, details=details, device="cpu")
            yield cls(
                "mlp", widths=(16,), epochs=8, learning_rate=0.03, details=details, device="cpu"
            )

    def expected_failures(self) -> dict[str, str]:
        """Weights are not repetitions."""
        return {WEIGHTED_CHECKS[0]: "rows are drawn into batches, whatever their weights"}

    # ---- fitting

    def fit(
        self, X: RowsLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Descend on images X (n, height, width[, channels]), or flat rows (n, pixels), with
        labels y (n,) of two classes or more.
        """
        need_torch()
        details, augmentation = self._check()
        rows = self._rows(X, reset=True)
        self.classes_, codes = labels_of(self, rows, y)
        weights = weights_of(sample_weight, rows)
        if weights is not None and not weights.sum() > 0:
            raise ValueError("sample_weight must hold a weight above 0")
        seed = int(check_random_state(self.random_state).randint(2**31))
        device = device_of(self.device)
        done = self._descend(rows, codes, weights, details, augmentation, seed, device)
        self.facts_ = {
            **self._facts(len(rows), weights),
            "steps": done.steps,
            "loss": done.losses[-1],
            "precision": self._precision(details, device),
        }
        return self

    def _descend(
        self,
        rows: AnyArray,
        codes: npt.NDArray[np.intp],
        weights: Array | None,
        details: ImageDetails,
        augmentation: Augmentation,
        seed: int,
        device: torch.device,
    ) -> Trained:
        """The loop, and the weights that it leaves."""
        import torch
        from torch.nn.functional import cross_entropy

        from surelearn.neural.image_layers import (
            folded,
            hidden,
            images_of,
            of_rows,
            standardize,
            standards_of,
            trunk,
        )

        layout = self._layout()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            body = trunk(layout)
        body = body.to(device).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue, reportUnknownVariableType] - torch's overloads leave it out
        X = images_of(rows, layout.shape, device)
        y = torch.from_numpy(codes.astype(np.int64)).to(device)
        w = (
            None
            if weights is None
            else torch.from_numpy(weights / weights.mean()).float().to(device)
        )
        mean, scale = standards_of(X)
        batches = MovedRows(
            len(rows), self._batch_size(len(rows)), augmentation, layout.shape[:2], seed=seed, device=device,
        )  # fmt: skip
        center, spread = mean[:, None, None], scale[:, None, None]

        def step(chosen: Tensor) -> Tensor:
            given = batches.images(X[chosen].float(), chosen)
            said = body((given - center) / spread)
            if w is None:
                return cross_entropy(said, y[chosen], label_smoothing=smoothing)
            losses = cross_entropy(said, y[chosen], label_smoothing=smoothing, reduction="none")
            return (losses * w[chosen]).mean()

        smoothing, epochs = float(details.label_smoothing), self._epochs(len(rows))
        plan = Training(
            epochs=epochs,
            optimizer="muon" if details.optimizer == "muon" and hidden(body) else "adamw",
            learning_rate=self._rate(batches.size),
            schedule=OneCycle(rise=0.2, end=0.0),
            weight_decay=details.weight_decay,
            hidden=hidden(body) if details.optimizer == "muon" else (),
            average=Swa((1 - details.averaged) * epochs) if details.averaged else None,
            precision=self._precision(details, device),  # type: ignore[arg-type]
            compiled=details.compiled,
            graphed=device.type == "cuda",
        )
        done = train(step, body, batches, plan, seed=seed)
        body = folded(body.cpu().to(memory_format=torch.contiguous_format))
        made = of_rows(layout, body)
        standardize(made, mean.cpu(), scale.cpu())
        self.weights_ = {
            name: np.ascontiguousarray(value.detach().numpy())
            for name, value in made.state_dict().items()
        }
        return done

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows it was fitted on tell,
        measured again.
        """
        rows = self._rows(X, reset=False)
        if y is None or not np.array_equal(np.unique(np.asarray(y)), self.classes_):
            raise ValueError("y does not hold the classes that were fitted")
        return self._facts(
            len(rows), None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        )

    def _facts(self, n: int, weights: Array | None) -> dict[str, Any]:
        augmentation = group_of("augmentation", self.augmentation, Augmentation)
        layout = self._layout()
        height, width, channels = layout.shape
        down, right = augmentation.shifts((height, width))
        learned = [value for name, value in self.weights_.items() if not name.startswith("1.")]
        return {
            "n": n,
            "d": height * width * channels,
            "classes": layout.outputs,
            "height": height,
            "width": width,
            "channels": channels,
            "network": layout.kind,
            "widths": layout.widths,
            "depth": layout.depth,
            "parameters": int(sum(value.size for value in learned)),
            "weighted": weights is not None and bool(np.ptp(weights) > 0),
            "augmented": augmentation.moves_any((height, width)),
            "shift_down": down,
            "shift_right": right,
            "rotation": float(augmentation.rotation),
            "zoom": float(augmentation.zoom),
            "shear": float(augmentation.shear),
            "epochs": self._epochs(n),
            "batch_size": self._batch_size(n),
        }

    def _check(self) -> tuple[ImageDetails, Augmentation]:
        details = group_of("details", self.details, ImageDetails)
        augmentation = group_of("augmentation", self.augmentation, Augmentation)
        details.check()
        augmentation.check()
        if self.network not in ("cnn", "mlp"):
            raise ValueError(f"network must be 'cnn' or 'mlp', not {self.network!r:.60}")
        for width in self.widths or ():
            stated.whole("each of widths", width)
        if self.widths is not None and not self.widths:
            raise ValueError("widths must hold at least one number")
        stated.whole("depth", self.depth)
        if self.epochs is not None:
            stated.whole("epochs", self.epochs)
        if self.learning_rate is not None:
            stated.positive("learning_rate", self.learning_rate)
        return details, augmentation

    def _layout(self, shape: ImageShape | None = None, classes: int | None = None) -> Layout:
        from surelearn.neural.image_layers import Layout, widths_of

        kind = "mlp" if self.network == "mlp" else "cnn"
        return Layout(
            kind=kind,
            shape=self.shape_ if shape is None else shape,
            widths=widths_of(kind, self.widths),
            depth=int(self.depth),
            outputs=int(self.classes_.size) if classes is None else classes,
        )

    def work_of_fit(self, rows: int) -> float:
        """The seconds of one core that a further fit to so many rows takes, by formula."""
        return self.work_for(rows, self.shape_, int(self.classes_.size))

    def work_for(self, rows: int, shape: ImageShape, classes: int) -> float:
        """The seconds of one core that a fit to so many images of a shape takes, by formula."""
        from surelearn.neural.image_layers import operations

        epochs, batch = self._epochs(rows), self._batch_size(rows)
        each = operations(self._layout(shape, classes))
        return epochs * (rows * each / _RATE + _STEP * max(1, round(rows / batch)))

    def work_of_answer(self) -> float:
        """The seconds of one core that the answer to an image takes, in double precision."""
        from surelearn.neural.image_layers import operations

        return _ANSWER + operations(self._layout()) / (3 * _RATE_IN_DOUBLE)

    def _batch_size(self, n: int) -> int:
        details = group_of("details", self.details, ImageDetails)
        size = min(1000, max(32, n // 60)) if details.batch_size is None else details.batch_size
        return min(n, int(size))

    def _epochs(self, n: int) -> int:
        if self.epochs is not None:
            return int(self.epochs)
        return min(100, max(20, math.ceil(1000 * self._batch_size(n) / n)))

    def _rate(self, batch: int) -> float:
        if self.learning_rate is not None:
            return float(self.learning_rate)
        return 0.01 * (batch / 1000) ** 0.25

    def _precision(self, details: ImageDetails, device: torch.device) -> str:
        return details.precision or ("bfloat16" if device.type == "cuda" else "float32")

    # ---- images

    def _rows(self, X: RowsLike, *, reset: bool) -> AnyArray:
        """Flat rows (n, height·width·channels), their numbers as they are; ``reset`` takes the
        shape from them.
        """
        dimensions = getattr(X, "ndim", None)
        if (np.asarray(X).ndim if dimensions is None else dimensions) in (3, 4):
            array = check_array(X, allow_nd=True, dtype="numeric", input_name="X")
            height, width, channels = (*array.shape[1:], 1)[:3]
            shape = (int(height), int(width), int(channels))
            if min(shape) < 1:
                raise ValueError(f"images of {shape[0]} by {shape[1]} pixels hold none")
            if reset:
                self.shape_, self.n_features_in_ = shape, math.prod(shape)
            elif shape != self.shape_:
                raise ValueError(
                    f"X has images of shape {shape}, but {type(self).__name__} was fitted on"
                    f" {self.shape_} (height, width, channels)"
                )
            return array.reshape(len(array), -1)
        array = validate_data(self, X, dtype="numeric", reset=reset)
        if reset:
            self.shape_ = self._told(array.shape[1])
        return array

    def _told(self, pixels: int) -> tuple[int, int, int]:
        """The shape of images that come as flat rows."""
        if self.shape is None:
            return 1, pixels, 1
        told = tuple(stated.whole("each of shape", side) for side in self.shape)
        if len(told) not in (2, 3) or math.prod(told) != pixels:
            raise ValueError(
                f"shape={self.shape!r:.60} does not tell how {pixels} numbers of a row are height,"
                " width and channels"
            )
        height, width, channels = (*told, 1)[:3]
        return height, width, channels

    # ---- answers

    @property
    def module_(self) -> nn.Module:
        """The network as a torch module of plain layers, of flat rows of pixels as given."""
        import torch

        from surelearn.neural.image_layers import without_weights

        check_is_fitted(self, "facts_")
        module = without_weights(self._layout())
        weights = {name: torch.tensor(value) for name, value in self.weights_.items()}
        module.load_state_dict(weights, assign=True)
        return module.eval()

    def _outputs(self, X: RowsLike) -> Array:
        """(n, classes), in double precision: an image is answered alike whatever stands beside it,
        where single precision would keep seven digits of that.
        """
        import torch

        check_is_fitted(self, "facts_")
        rows = self._rows(X, reset=False)
        device = device_of(self.device)
        module = self.module_.double().to(device)
        found = []
        with torch.no_grad():
            for start in range(0, len(rows), _PIECE):
                piece = np.require(rows[start : start + _PIECE], np.float64, ["C", "W"])
                found.append(module(torch.from_numpy(piece).to(device)).cpu())
        return torch.cat(found).numpy()

    def predict_proba(self, X: RowsLike) -> Array:
        """Probabilities (n, classes) by softmax, in the order of ``classes_``."""
        from scipy.special import softmax

        return softmax(self._outputs(X), axis=1)

    def predict(self, X: RowsLike) -> AnyArray:
        """The likeliest class of every image."""
        check_is_fitted(self, "facts_")
        return self.classes_[self._outputs(X).argmax(axis=1)]

    def _describe(self) -> Parts:
        check_is_fitted(self, "facts_")
        why = "its descent ended with its epochs, near no minimizer that is known"
        return Parts(
            lambda: Closed(ModuleForm(self.module_), None, "outputs"), Lacking("objective", why)
        )
