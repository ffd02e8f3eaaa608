"""Networks for tables, as scikit-learn estimators: numbers, categories, missing values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from surelearn import stated
from surelearn.base import WEIGHTED_CHECKS, Learner, ParameterGroup, group_of
from surelearn.earlier import Groups
from surelearn.lacking import Lacking
from surelearn.neural.checked import labels_of, numbers_of, weights_of
from surelearn.neural.columns import Encoding, as_table, quantile_bins, scaling
from surelearn.neural.devices import device_of, has_torch, need_torch
from surelearn.neural.record import NetworkRecord
from surelearn.neural.schedules import Cosine, WarmUp
from surelearn.neural.train import Shuffled, Trained, Training, train
from surelearn.subject import Closed, Parts
from surelearn.subject.forms import ModuleForm
from surelearn.types import AnyArray, Array, RandomState, RowsLike, TableRows

if TYPE_CHECKING:
    from torch import Tensor, nn

    from surelearn.neural.tables import TableNetwork

Loss = Callable[
    ["Tensor", "Tensor"], "Tensor"
]  # outputs (k, B, outputs), targets (B,): losses (B,)
FEWER = 5000  # rows, below which the descent is slower and drops more
FEW = 200  # fewer rows are all trained on: so few held out could not choose an epoch
_PIECE = 4096  # rows that are answered together, fewer where their bins are many
_BINNED = 2**23
_BUFFERS = ("clip.center", "clip.scale", "bins.low", "bins.inverse", "target")
_STEP, _PRODUCT = (
    2e-3,
    2e-10,
)  # seconds of one core: of a step, and of a row's pass through a weight
NO_WORDS = Lacking(
    "closed form", "its columns of words have no gradient: no word lies between two others"
)


class NetworkDetails(ParameterGroup):
    """What few people set of a network for tables.

    Parameters
    ----------
    dropout : the share of hidden units that are left out of a step; None: 0.1, and 0.3 below 5,000
        rows
    bins, embedded : into how many bins quantiles cut each number, and how many sums over them the
        network sees beside the number itself; None: 8, fewer where there are more than 32 columns of
        numbers
    weight_decay : of matrices
    batch_size : rows of a step; None: 256, fewer below 8,000 rows
    label_smoothing : the share of a row's label that is given to all classes alike; helps accuracy,
        and hurts probabilities

    Examples
    --------
    >>> NetworkClassifier(details=NetworkDetails(dropout=0.2)).details.dropout
    0.2
    """

    saved_as = "network-details/1"

    def __init__(
        self,
        *,
        dropout: float | None = None,
        bins: int = 48,
        embedded: int | None = None,
        weight_decay: float = 0.1,
        batch_size: int | None = None,
        label_smoothing: float = 0.0,
    ) -> None:
        self.dropout = dropout
        self.bins = bins
        self.embedded = embedded
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.label_smoothing = label_smoothing


class _TableLearner(Learner):
    """What both have in common: columns, descent, answers."""

    Record = NetworkRecord
    groups: ClassVar[Groups] = {"details": NetworkDetails}
    weights_: dict[str, AnyArray]
    sizes_: dict[str, Any]
    encoding_: dict[str, Any]

    def __init__(
        self,
        *,
        members: int = 8,
        width: int = 192,
        depth: int = 2,
        epochs: int | None = None,
        learning_rate: float | None = None,
        select: float = 0.15,
        patience: int | None = None,
        details: NetworkDetails | None = None,
        warm_start: bool = False,
        device: str = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.members = members
        self.width = width
        self.depth = depth
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.select = select
        self.patience = patience
        self.details = details
        self.warm_start = warm_start
        self.device = device
        self.random_state = random_state

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Small ones, with a row in five held out and with none; none without torch."""
        if has_torch():
            small: dict[str, Any] = {"members": 2, "width": 16, "depth": 1, "learning_rate": 0.03}
            yield cls(**small, epochs=8, device="cpu", random_state=0)
            few = NetworkDetails(embedded=0, batch_size=20)
            yield cls(**small, epochs=4, select=0.0, details=few, random_state=1)

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """One small network, trained long enough to pass; none without torch."""
        if has_torch():
            details = NetworkDetails(batch_size=16, bins=8, dropout=0.0)
            yield cls(members=2, width=16, depth=1, epochs=12, learning_rate=0.03, details=details)

    def expected_failures(self) -> dict[str, str]:
        """Weights are not repetitions."""
        return {WEIGHTED_CHECKS[0]: "rows are drawn into batches, whatever their weights"}

    def __sklearn_tags__(self) -> Any:
        """Missing values are welcome, and words."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.non_deterministic = False
        return tags

    # ---- fitting

    def _train(
        self, X: TableRows, y: AnyArray, weights: Array | None, outputs: int, target: Array | None
    ) -> None:
        """Descend on rows; ``target`` is the mean and the spread of a regression's targets."""
        import torch

        details = self._check()
        random = check_random_state(self.random_state)
        going_on = self.warm_start and hasattr(self, "weights_")
        encoding = Encoding.read(self.encoding_) if going_on else Encoding.of(X)
        numbers = encoding(X).copy()
        w = np.ones(len(y)) if weights is None else weights / weights.mean()
        held = self._held_out(len(y), random)
        fit = np.setdiff1d(np.arange(len(y)), held)
        d = len(encoding.numbers)
        marked = tuple(np.flatnonzero(np.isnan(numbers[fit, :d]).any(axis=0)).tolist())
        measured = self._measured(numbers[fit[w[fit] > 0], :d], details, going_on)
        center, scale = measured["clip.center"], measured["clip.scale"]
        if going_on:
            sizes, module = self.sizes_, self._module().float()
            target = None if target is None else self.weights_["target"]
        else:
            bins = measured["bins.low"].shape[1] if "bins.low" in measured else 0
            sizes = self._sizes(encoding, marked, bins, len(fit), outputs, details)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(int(random.randint(2**31)))
                module = self._made(sizes)
        if target is not None:
            y = (y - target[0]) / target[1]
        # numbers are scaled here in double precision: far from 0 single precision tells too little
        numbers[:, :d] = (numbers[:, :d] - center) * scale
        _set(module, {**measured, "clip.center": np.zeros(d), "clip.scale": np.ones(d)})
        data = _Data.of(numbers, y, w, target is None, device_of(self.device))
        done = self._descend(module, data, fit, held, details, int(random.randint(2**31)))
        module = module.double().cpu()
        _set(module, measured)
        if target is not None:
            _set(module, {"target": target})
        self.weights_ = _kept(module)
        self.sizes_, self.encoding_ = sizes, encoding.saved()
        self.facts_ = {
            **self._facts(numbers.shape, held.size, weights),
            "epochs": done.epochs,
            "best": done.best,
            "steps": done.steps,
        }

    def _descend(
        self,
        module: TableNetwork,
        data: _Data,
        fit: npt.NDArray[np.intp],
        held: npt.NDArray[np.intp],
        details: NetworkDetails,
        seed: int,
    ) -> Trained:
        """The loop, on rows ``fit``, with rows ``held`` to choose the epoch."""
        import torch

        module.to(data.X.device)
        batches = Shuffled(fit.size, self._batch_size(fit.size, details), seed)
        matrices = [
            name for name, _ in module.named_parameters() if name.endswith((".weight", "head"))
        ]
        plan = Training(
            epochs=self._epochs(fit.size, details),
            learning_rate=_among(self.learning_rate, fit.size, 0.004, 0.02),
            schedule=WarmUp(min(1.0, 50 / len(batches)), Cosine()),
            betas=(0.9, 0.95),
            weight_decay=details.weight_decay,
            decayed=tuple(matrices),
            patience=self.patience,
        )
        loss = self._loss(details)

        def step(rows: npt.NDArray[np.intp]) -> Tensor:
            at = torch.as_tensor(fit[rows], device=data.X.device)
            return (loss(module(data.X[at]), data.y[at]) * data.w[at]).mean()

        def selected() -> float:
            at = torch.as_tensor(held, device=data.X.device)
            with torch.no_grad():
                found = [self._chosen_by(module(data.X[p]), data.y[p]) for p in at.split(_PIECE)]
            return float((torch.cat(found) * data.w[at]).sum() / data.w[at].sum())

        choose = selected if held.size and float(data.w[held].sum()) > 0 else None
        return train(step, module, batches, plan, select=choose, seed=seed)

    def _loss(self, details: NetworkDetails) -> Loss:
        raise NotImplementedError

    def _chosen_by(self, said: Tensor, y: Tensor) -> Tensor:
        """The losses (B,) that choose the epoch, of what the network answers."""
        raise NotImplementedError

    def _held_out(self, n: int, random: np.random.RandomState) -> npt.NDArray[np.intp]:
        """The rows that choose the epoch."""
        count = self._selected(n)
        return np.sort(random.permutation(n)[:count]) if count else np.empty(0, dtype=np.intp)

    def _selected(self, n: int) -> int:
        return int(self.select * n) if n >= FEW else 0

    def _batch_size(self, n: int, details: NetworkDetails) -> int:
        if details.batch_size is not None:
            return stated.whole("batch_size", details.batch_size)
        return 2 ** min(8, max(4, round(math.log2(max(n, 2) / 32))))

    def _epochs(self, n: int, details: NetworkDetails) -> int:
        """As stated; else about 1,800 steps, 5,400 from `FEWER` rows on, in 20 to 150 passes."""
        if self.epochs is not None:
            return stated.whole("epochs", self.epochs)
        steps = 1800 if n < FEWER else 5400
        return min(150, max(20, math.ceil(steps * self._batch_size(n, details) / n)))

    def _measured(self, rows: Array, details: NetworkDetails, going_on: bool) -> dict[str, Array]:
        """How numbers are scaled and cut into bins, by the names of the network's buffers."""
        if going_on:
            return {k: v for k, v in self.weights_.items() if k in _BUFFERS and k != "target"}
        center, scale = scaling(rows)
        found = {"clip.center": center, "clip.scale": scale}
        if self._embedded(rows.shape[1], details):
            low, inverse = quantile_bins((rows - center) * scale, int(details.bins))
            if low.size:
                found |= {"bins.low": low, "bins.inverse": inverse}
        return found

    def _embedded(self, d: int, details: NetworkDetails) -> int:
        """How many numbers each of d columns of numbers is embedded in."""
        given = details.embedded
        return min(8, 256 // max(d, 1)) if given is None else int(given)

    def _sizes(
        self,
        encoding: Encoding,
        marked: tuple[int, ...],
        bins: int,
        n: int,
        outputs: int,
        details: NetworkDetails,
    ) -> dict[str, Any]:
        from surelearn.neural.tables import Sizes

        d = len(encoding.numbers)
        return asdict(
            Sizes(
                numbers=d,
                marked=marked,
                categories=encoding.sizes,
                outputs=outputs,
                members=int(self.members),
                width=int(self.width),
                depth=int(self.depth),
                dropout=float(_among(details.dropout, n, 0.3, 0.1)),
                bins=bins,
                embedded=self._embedded(d, details),
            )
        )

    def _check(self) -> NetworkDetails:
        details = group_of("details", self.details, NetworkDetails)
        for name in ("members", "width"):
            stated.whole(name, getattr(self, name))
        stated.whole("depth", self.depth, 0)
        stated.whole("bins", details.bins)
        if details.embedded is not None:
            stated.whole("embedded", details.embedded, 0)
        if self.learning_rate is not None:
            stated.positive("learning_rate", self.learning_rate)
        for name, value in (
            ("select", self.select),
            ("dropout", 0.0 if details.dropout is None else details.dropout),
            ("label_smoothing", details.label_smoothing),
        ):
            if not stated.is_number(value) or not 0 <= value < 1:
                raise ValueError(f"{name} must be at least 0 and below 1, not {value!r:.60}")
        return details

    def _facts(
        self, shape: tuple[int, ...], selected: int, weights: Array | None
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows tell."""
        details = group_of("details", self.details, NetworkDetails)
        learned = sum(v.size for name, v in self.weights_.items() if name not in _BUFFERS)
        return {
            "n": shape[0],
            "d": shape[1],
            "classes": None,
            "categories": len(self.encoding_["categories"]),
            "members": int(self.sizes_["members"]),
            "width": int(self.sizes_["width"]),
            "depth": int(self.sizes_["depth"]),
            "parameters": int(learned),
            "selected": selected,
            "weighted": weights is not None and bool((weights != weights[0]).any()),
            "planned": self._epochs(shape[0] - selected, details),
        }

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
        if y is None:
            raise ValueError("y is needed: the targets that the network was fitted on")
        check_consistent_length(rows, y)
        n, d = rows.shape
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, rows)
        return self._facts((n, d), self._selected(n), weights)

    def work_of_fit(self, rows: int) -> float:
        """About the seconds of one core that a fit on so many rows takes, by formula."""
        details = group_of("details", self.details, NetworkDetails)
        n = max(1, rows - self._selected(rows))
        batch = self._batch_size(n, details)
        steps = self._epochs(n, details) * math.ceil(n / batch)
        shared = sum(v.size for name, v in self.weights_.items() if name.endswith(".weight"))
        return steps * (_STEP + _PRODUCT * batch * self.sizes_["members"] * shared)

    # ---- rows

    def _rows(self, X: RowsLike, *, reset: bool) -> Any:
        """Rows of numbers as an array; a table with words as it is."""
        table = as_table(X)
        known = () if reset or not hasattr(self, "encoding_") else self.encoding_["categories"]
        if isinstance(table, pd.DataFrame):
            words = Encoding.of(table).categories if reset else known
            if words:
                validate_data(self, table, reset=reset, skip_check_array=True)
                found = Encoding(tuple(j for j in range(table.shape[1]) if j not in set(words)), (), ())(table)  # fmt: skip
                if np.isinf(found).any():
                    raise ValueError("X contains infinity: a network would learn it as a number")
                if len(table) < (2 if reset else 1):
                    raise ValueError(f"X has {len(table)} rows, n_samples={len(table)}: too few")
                return table
        elif known:
            raise ValueError(
                "X must be a DataFrame with the columns that the network was fitted on: it had words"
            )
        options: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
        return validate_data(
            self, table, reset=reset, ensure_min_samples=2 if reset else 1, **options
        )

    def _start(self, X: RowsLike, sample_weight: npt.ArrayLike | None) -> tuple[Any, Array | None]:
        """Rows and weights of a fit."""
        need_torch()
        again = self.warm_start and hasattr(self, "weights_")
        rows = self._rows(X, reset=not again)
        return rows, weights_of(sample_weight, rows)

    # ---- answers

    def _made(self, sizes: dict[str, Any]) -> TableNetwork:
        from surelearn.neural.tables import Sizes, TableNetwork

        return TableNetwork(Sizes(**sizes), classes=self._classifies)

    _classifies: ClassVar[bool]

    def _module(self) -> TableNetwork:
        """The network with the weights that were learned, in double precision."""
        import torch

        check_is_fitted(self, "weights_")
        with torch.device("meta"):
            module = self._made(self.sizes_)
        weights = {name: torch.tensor(value).double() for name, value in self.weights_.items()}
        module.load_state_dict(weights, assign=True)
        return module.eval()

    @property
    def module_(self) -> nn.Module:
        """The network as a torch module, of rows as `Encoding` makes them, in double precision."""
        return self._module()

    def _outputs(self, X: RowsLike) -> Array:
        """(n, outputs)."""
        import torch

        check_is_fitted(self, "weights_")
        rows = self._rows(X, reset=False)
        numbers = np.require(Encoding.read(self.encoding_)(rows), requirements=["C", "W"])
        device = device_of(self.device)
        module = self._module().to(device)
        with torch.no_grad():
            binned = self.weights_.get("bins.low", np.empty(0)).size
            parts = torch.as_tensor(numbers).split(min(_PIECE, 1 + _BINNED // (1 + binned)))
            return torch.cat([module(part.to(device)).cpu() for part in parts]).numpy()

    def _parts(self) -> Parts:
        check_is_fitted(self, "weights_")
        why = "its descent was ended by rows held out, near no minimizer that is known"
        if self.encoding_["categories"]:
            return Parts(NO_WORDS, Lacking("objective", why))
        head = "outputs" if self._classifies else "each"
        return Parts(
            lambda: Closed(ModuleForm(self._module()), None, head), Lacking("objective", why)
        )


class NetworkClassifier(ClassifierMixin, _TableLearner):
    """k networks that share their matrices (TabM), on embedded numbers (RealMLP), for tables.

    Numbers are scaled by their quartiles, clipped smoothly, and seen through learned functions that are
    linear between quantiles; words (columns of a DataFrame that are not numbers, or are categorical)
    are embedded; what is missing is marked. The mean log loss of the members is descended on by AdamW
    along a cosine, and the epoch is kept that rows held out like best. Probabilities are the mean of
    the members'.

    Parameters
    ----------
    members : k; one is a single network
    width, depth : of the hidden layers
    epochs : None makes about 1,800 steps, 5,400 from 5,000 rows on, in 20 to 150 passes
    learning_rate : the largest of the run; None: 0.02, and 0.004 below 5,000 rows
    select : the share of rows that choose the epoch, 0 for none; from 200 rows on
    patience : end after so many epochs that these rows do not like better; None makes all
    details : `NetworkDetails`; None for the defaults
    warm_start : whether a further `fit` goes on from the weights of the one before
    device : "auto" takes the GPU where there is one
    random_state : of the first weights, the rows held out, the batches, and dropout

    Attributes
    ----------
    classes_ : the labels
    weights_ : what was learned, arrays by name
    sizes_, encoding_ : of what the network is made; which columns are words, and their levels
    module_ : the network as a torch module

    Notes
    -----
    D. Holzmüller, L. Grinsztajn and I. Steinwart, Better by default (NeurIPS 2024); Y. Gorishniy, I.
    Rubachev and A. Babenko, On embeddings for numerical features in tabular deep learning (NeurIPS
    2022); Y. Gorishniy, A. Kotelnikov and A. Babenko, TabM (ICLR 2025).

    Examples
    --------
    >>> rows = pd.DataFrame({"size": [1.0, 2.0, 8.0, 9.0] * 8, "kind": ["a", "b", "b", None] * 8})
    >>> y = ["small", "small", "large", "large"] * 8
    >>> model = NetworkClassifier(members=2, width=8, epochs=10, random_state=0).fit(rows, y)
    >>> model.predict(rows[:4]).tolist()
    ['small', 'small', 'large', 'large']
    """

    saved_as = "network-classifier/1"
    classes_: npt.NDArray[Any]
    _classifies = True

    def fit(
        self, X: RowsLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Descend on rows X (n, d), with labels y (n,) of two classes or more."""
        rows, weights = self._start(X, sample_weight)
        classes, codes = labels_of(self, rows, y)
        if (
            self.warm_start
            and hasattr(self, "weights_")
            and not np.array_equal(classes, self.classes_)
        ):
            raise ValueError(
                "warm_start=True goes on with the classes of the fit before, not others"
            )
        self.classes_ = classes
        self._train(rows, codes, weights, classes.size, None)
        return self

    def _facts(
        self, shape: tuple[int, ...], selected: int, weights: Array | None
    ) -> dict[str, Any]:
        return super()._facts(shape, selected, weights) | {"classes": int(self.classes_.size)}

    def _loss(self, details: NetworkDetails) -> Loss:
        """The mean over members of `surelearn.losses.log_losses`."""
        from torch.nn.functional import cross_entropy

        smoothing = float(details.label_smoothing)

        def loss(said: Tensor, y: Tensor) -> Tensor:
            k, b, c = said.shape
            flat = cross_entropy(
                said.reshape(k * b, c), y.repeat(k), reduction="none", label_smoothing=smoothing
            )
            return flat.view(k, b).mean(dim=0)

        return loss

    def _chosen_by(self, said: Tensor, y: Tensor) -> Tensor:
        return -said.gather(1, y[:, None])[:, 0]

    def predict_proba(self, X: RowsLike) -> Array:
        """Probabilities (n, classes), in the order of ``classes_``."""
        logs = self._outputs(X)
        made = np.exp(logs)
        return made / made.sum(axis=1, keepdims=True)

    def predict(self, X: RowsLike) -> AnyArray:
        """The likeliest class of every row."""
        check_is_fitted(self, "weights_")
        return self.classes_[self._outputs(X).argmax(axis=1)]

    def _describe(self) -> Parts:
        return self._parts()


class NetworkRegressor(RegressorMixin, _TableLearner):
    """As `NetworkClassifier`, for numbers: squared error of standardized targets, and the mean of
    the members' answers.

    Parameters
    ----------
    members, width, depth, epochs, learning_rate, select, patience, details, warm_start, device,
        random_state : as of `NetworkClassifier`

    Examples
    --------
    >>> X = np.linspace(-2, 2, 64)[:, None]
    >>> model = NetworkRegressor(members=2, width=16, epochs=40, random_state=0).fit(X, X[:, 0] ** 2)
    >>> bool(model.score(X, X[:, 0] ** 2) > 0.9)
    True
    """

    saved_as = "network-regressor/1"
    _classifies = False

    def fit(
        self, X: RowsLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Descend on rows X (n, d), with targets y (n,)."""
        rows, weights = self._start(X, sample_weight)
        targets = numbers_of(self, rows, y)
        mean = np.average(targets, weights=weights)
        spread = math.sqrt(np.average((targets - mean) ** 2, weights=weights))
        self._train(rows, targets, weights, 1, np.array([mean, spread if spread > 0 else 1.0]))
        return self

    def _loss(self, details: NetworkDetails) -> Loss:  # noqa: ARG002
        return lambda said, y: (said[..., 0] - y).square().mean(dim=0)

    def _chosen_by(self, said: Tensor, y: Tensor) -> Tensor:
        return (said[:, 0] - y).square()

    def predict(self, X: RowsLike) -> Array:
        """The network's answers (n,)."""
        return self._outputs(X)[:, 0]

    def _describe(self) -> Parts:
        return self._parts()


class _Data:
    """Rows, targets and weights where the network is trained."""

    def __init__(self, X: Tensor, y: Tensor, w: Tensor) -> None:
        self.X, self.y, self.w = X, y, w

    @classmethod
    def of(cls, numbers: Array, y: AnyArray, w: Array, whole: bool, device: Any) -> _Data:
        import torch

        kind = torch.int64 if whole else torch.float32
        return cls(
            torch.as_tensor(numbers, dtype=torch.float32, device=device),
            torch.as_tensor(y, dtype=kind, device=device),
            torch.as_tensor(w, dtype=torch.float32, device=device),
        )


def _among(given: float | None, n: int, few: float, many: float) -> float:
    """What is stated, or the default for so many rows: the rate and the steps of many rows were chosen
    on rows of California housing, Adult and letter that `benchmarks/bench_networks.py` never scores,
    dropout on rows held out of the training parts of ames and California.
    """
    return given if given is not None else few if n < FEWER else many


def _set(module: nn.Module, values: dict[str, Array]) -> None:
    """Give buffers their values, in the module's precision."""
    import torch

    buffers = dict(module.named_buffers())
    with torch.no_grad():
        for name, value in values.items():
            buffers[name].copy_(torch.as_tensor(value))


def _kept(module: nn.Module) -> dict[str, AnyArray]:
    """Arrays by name: weights in single precision, what rows are scaled by in double."""
    learned = {name for name, _ in module.named_parameters()}
    return {
        name: np.ascontiguousarray(
            value.detach().numpy(), dtype=np.float32 if name in learned else np.float64
        )
        for name, value in module.state_dict().items()
    }
