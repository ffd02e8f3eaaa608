"""DP-SGD for torch modules: `fit_private` trains one in place, `DPModule` is a scikit-learn
estimator around one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted

from surelearn.base import Learner
from surelearn.earlier import Names, renamed
from surelearn.lacking import Lacking
from surelearn.neural.train import DrawnBatches, Training, train
from surelearn.optim.accountant import (
    NOT_POISSON,
    PoissonSampler,
    PrivacySpent,
    account,
    account_sampler,
    generator_from,
    noise_for,
)
from surelearn.optim.dp_claims import NO_NOISE, PrivacyRecord, facts_of, told_again
from surelearn.optim.dp_mixing import SEPARATE, refuse_mixing
from surelearn.optim.dp_sgd import Recipe
from surelearn.subject import Closed, Parts
from surelearn.subject.forms import ModuleForm
from surelearn.types import AnyArray, RandomState, RowsLike

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn
    from torch.optim import Optimizer

    from surelearn.optim.dp_gradients import PerExample

MakesOptimizer = Callable[["list[nn.Parameter]"], "Optimizer"]
_TRIED = 8  # rows on which the closed form is checked against autograd


@dataclass(frozen=True, kw_only=True)
class PrivateFit:
    """What `fit_private` did.

    Attributes
    ----------
    module : the module, trained in place
    spent : what it cost; lacking where the batches were not Poisson samples or no noise was added
    engine : "closed form", or "torch.func.vmap: …" with why there is none
    recipe : how it stepped
    assumptions : what ε takes for granted beyond Poisson samples, clipping and noise
    """

    module: nn.Module
    spent: PrivacySpent | Lacking
    engine: str
    recipe: Recipe
    assumptions: tuple[str, ...] = (SEPARATE,)


@renamed({"passes": "epochs"})
def fit_private(
    module: nn.Module,
    X: RowsLike,
    y: npt.ArrayLike | Tensor,
    *,
    epsilon: float | None = None,
    noise_multiplier: float | None = None,
    dp_delta: float = 1e-5,
    clip: float = 1.0,
    batch_size: float = 256,
    epochs: float = 10.0,
    step: float = 0.5,
    radius: float | None = None,
    loss: str | PerExample = "cross_entropy",
    optimizer: MakesOptimizer | None = None,
    batches: Iterable[npt.ArrayLike] | None = None,
    random_state: RandomState = None,
) -> PrivateFit:
    """Train a torch module on rows X and targets y by DP-SGD, in place.

    Gradients of linear layers and 2-D convolutions are clipped in closed form, at about the cost of
    plain SGD; of any other module by ``torch.func``. ε holds if module and loss treat each row by
    itself; where one is seen to mix rows, as batch normalization does, it is refused.

    Parameters
    ----------
    module : its parameters must not come from these rows (a network trained on public rows is fine)
    X, y : tensors or arrays, one row an example
    epsilon : find the noise that spends this much; or give ``noise_multiplier``, σ in units of
        ``clip``
    dp_delta : privacy's δ, well below 1/n
    clip : C, the norm to which each example's gradient is clipped
    batch_size : the expected size qN; batches are Poisson samples, their sizes differ
    epochs : expected passes over the rows; there are ⌈epochs/q⌉ steps
    step : η of plain SGD
    radius : project all parameters together onto a ball
    loss : "cross_entropy", "squared", or a function of outputs and targets that gives one loss an
        example
    optimizer : makes a torch optimizer of the parameters, in place of plain SGD; costs no privacy
    batches : batches of row numbers of your own, in place of Poisson samples: then no ε is known,
        and none is given
    random_state : a seed that others know voids the guarantee; None takes one from the operating
        system
    """
    import torch

    X, y = _tensors(module, X, y, loss)
    rate, recipe = _plan(
        len(X), epsilon, noise_multiplier, dp_delta=dp_delta, clip=clip, batch_size=batch_size, epochs=epochs, step=step,
        radius=radius,
    )  # fmt: skip
    refuse_mixing(module, _loss(loss), X, y, rate * len(X))
    randomness = generator_from(random_state)
    sampler = PoissonSampler(len(X), rate, randomness)
    noise = torch.Generator(X.device).manual_seed(int(randomness.integers(2**63)))
    seed = int(randomness.integers(2**63))  # of dropout
    drawn = (
        DrawnBatches(recipe.steps, sampler.batches(recipe.steps))
        if batches is None
        else DrawnBatches(len(given := list(batches)), given)
    )
    engine = _descend(
        module, X, y, _loss(loss), recipe, drawn, rate * len(X), noise, optimizer, seed
    )
    if batches is not None:
        spent = Lacking("epsilon", NOT_POISSON)
    elif recipe.noise_multiplier == 0:
        spent = NO_NOISE
    else:
        spent = account_sampler(sampler, recipe.noise_multiplier, dp_delta)
    return PrivateFit(module=module, spent=spent, engine=engine, recipe=recipe)


def _plan(
    n: int,
    epsilon: float | None,
    noise_multiplier: float | None,
    *,
    dp_delta: float,
    clip: float,
    batch_size: float,
    epochs: float,
    step: float,
    radius: float | None,
) -> tuple[float, Recipe]:
    """The sample rate for n rows, and how to step."""
    if not batch_size > 0:
        raise ValueError(f"batch_size must be positive, not {batch_size}")
    if not epochs > 0:
        raise ValueError(f"epochs must be positive, not {epochs}")
    rate = min(1.0, batch_size / n)
    steps = int(np.ceil(epochs / rate))
    noise = _noise(epsilon, noise_multiplier, dp_delta, rate, steps)
    return rate, Recipe(
        steps=steps, step=step, clip=clip, radius=radius, average=False, noise_multiplier=noise
    )


def _descend(
    module: nn.Module,
    X: Tensor,
    y: Tensor,
    loss: PerExample,
    recipe: Recipe,
    batches: DrawnBatches,
    expected: float,
    noise: Generator,
    optimizer: MakesOptimizer | None,
    seed: int,
) -> str:
    """Along clipped and noisy gradients, on the one loop; returns which engine formed them."""
    import torch

    from surelearn.optim.dp_gradients import choose

    engine, how = choose(module, loss, X[:_TRIED], y[:_TRIED])
    parameters = list(engine.parameters.values())
    scale = recipe.noise_multiplier * recipe.clip
    # plain SGD divides its rate by the expected size, others are given the mean
    size = 1.0 if optimizer is None else expected

    def step(rows: npt.ArrayLike) -> None:
        index = torch.as_tensor(rows, dtype=torch.long, device=X.device)
        sums = engine.clipped_sum(X[index], y[index], recipe.clip) if len(index) else {}
        with torch.no_grad():
            for p in parameters:
                total = torch.randn(p.shape, generator=noise, dtype=p.dtype, device=p.device)
                total.mul_(scale)
                if p in sums:
                    total += sums[p]
                p.grad = total if size == 1.0 else total / size

    def project() -> None:
        if recipe.radius is not None:
            _project(parameters, recipe.radius)

    rate = recipe.step / expected
    plan = Training(
        epochs=1, learning_rate=rate, optimizer="sgd" if optimizer is None else optimizer
    )
    try:
        if len(batches):
            train(step, dict(engine.parameters), batches, plan, after=project, seed=seed)
    finally:
        engine.close()
    return how


def _project(parameters: list[nn.Parameter], radius: float) -> None:
    norm = sum(float(p.square().sum()) for p in parameters) ** 0.5
    if norm > radius:
        for p in parameters:
            p.mul_(radius / norm)


def _noise(
    epsilon: float | None, noise_multiplier: float | None, dp_delta: float, rate: float, steps: int
) -> float:
    if (epsilon is None) == (noise_multiplier is None):
        raise ValueError("give either epsilon= or noise_multiplier=")
    if noise_multiplier is not None:
        return float(noise_multiplier)
    return noise_for(float(epsilon), float(dp_delta), rate, steps)  # pyright: ignore[reportArgumentType]


def _tensors(
    module: nn.Module, X: RowsLike, y: npt.ArrayLike | Tensor, loss: str | PerExample | None
) -> tuple[Tensor, Tensor]:
    """Rows and targets where the module is, floats in its precision."""
    import torch
    from torch import nn

    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, not {type(module).__name__}")
    like = next(module.parameters(), torch.zeros(1))
    X, y = (
        torch.as_tensor(v if isinstance(v, torch.Tensor) else np.asarray(v)).to(like.device)
        for v in (X, y)
    )
    if len(X) != len(y) or not len(X):
        raise ValueError(
            f"X and y must have the same number of rows, at least 1, not {len(X)} and {len(y)}"
        )
    X = X.to(like.dtype) if X.is_floating_point() else X
    return X, y.to(like.dtype) if loss == "squared" or y.is_floating_point() else y


def _loss(loss: str | PerExample) -> PerExample:
    """By name `surelearn.losses.log_losses` or `SQUARED`, for torch to differentiate."""
    from torch.nn import functional

    if callable(loss):
        return loss
    if loss == "cross_entropy":
        return lambda outputs, targets: functional.cross_entropy(outputs, targets, reduction="none")
    if loss == "squared":
        return lambda outputs, targets: (
            (outputs.flatten(1) - targets.view(len(targets), -1)).square().sum(1)
        )
    raise ValueError(f'loss must be "cross_entropy", "squared" or a function, not {loss!r}')


def _refuse_odd_numbers(module: nn.Module) -> None:
    """Refuse weights that NumPy has no type for, before privacy is spent on them."""
    for name, value in getattr(module, "state_dict", dict)().items():
        try:
            value.flatten()[:0].cpu().detach().numpy()
        except TypeError:
            raise ValueError(
                f"module must have weights that arrays can keep: {name} is of {value.dtype},"
                " convert it with .float()"
            ) from None


class ModuleRecord(PrivacyRecord):
    """Steps of DP-SGD of a module that treats each row by itself."""

    key = "dp-module/1"
    assumptions = (SEPARATE,)


def _refuse_odd_rows(X: RowsLike, y: npt.ArrayLike | Tensor) -> None:
    """Refuse what would be trained on without a word: numbers that are not finite, sparse rows,
    no targets.
    """
    import torch

    if y is None:
        raise ValueError("DPModule requires y to be passed, but the target y is None")
    for name, values in (("X", X), ("y", y)):
        if sparse.issparse(values):
            raise TypeError(
                f"{name} is sparse, and a module takes dense rows: use {name}.toarray()"
            )
        array = np.asarray(values.detach().cpu() if isinstance(values, torch.Tensor) else values)
        if array.dtype.kind in "fc" and not np.isfinite(array).all():
            raise ValueError(
                f"{name} contains NaN or infinity: a module would learn from it without a word"
            )


def _classifies(learner: DPModule) -> bool:
    return learner.loss == "cross_entropy"


class DPModule(Learner):
    """A torch module trained by DP-SGD, as a scikit-learn estimator whose certificate states (ε,
    dp_delta).

    Parameters
    ----------
    module : a torch.nn.Module; `fit` trains a copy
    epsilon, noise_multiplier, dp_delta, clip, batch_size, epochs, step, radius, loss, optimizer,
        random_state : see `fit_private`; with "cross_entropy" it classifies, otherwise it predicts
        the module's outputs
    delta : failure probability of claims (those made here hold always)

    Attributes
    ----------
    weights_ : what was learned, arrays by name (the state of the module), of which predictions and
        the model's hash are made
    classes_ : the labels, where it classifies
    engine_ : how gradients were clipped
    """

    Record = ModuleRecord
    earlier: ClassVar[Names] = {"passes": "epochs"}
    secret_parameters: ClassVar[tuple[str, ...]] = ("random_state",)
    saved_as = "dp-module/1"

    def __init__(
        self,
        module: nn.Module,
        *,
        epsilon: float | None = 1.0,
        noise_multiplier: float | None = None,
        dp_delta: float = 1e-5,
        clip: float = 1.0,
        batch_size: float = 256,
        epochs: float = 10.0,
        step: float = 0.5,
        radius: float | None = None,
        loss: str | PerExample = "cross_entropy",
        optimizer: MakesOptimizer | None = None,
        delta: float = 0.05,
        random_state: RandomState = None,
    ) -> None:
        self.module = module
        self.epsilon = epsilon
        self.noise_multiplier = noise_multiplier
        self.dp_delta = dp_delta
        self.clip = clip
        self.batch_size = batch_size
        self.epochs = epochs
        self.step = step
        self.radius = radius
        self.loss = loss
        self.optimizer = optimizer
        self.delta = delta
        self.random_state = random_state

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Around a linear layer of three features, with an ε to spend, and without noise; none
        without torch.
        """
        try:
            import torch
        except ImportError:
            return
        with torch.random.fork_rng():
            torch.manual_seed(0)
            classifier, regressor = torch.nn.Linear(3, 2), torch.nn.Linear(3, 1)
        yield cls(classifier, epsilon=3.0, batch_size=20, epochs=1.0, random_state=0)
        yield cls(regressor, noise_multiplier=0.0, epochs=1.0, loss="squared")

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """None: scikit-learn's checks make tables of 1 to 10 features and 2 or 3 classes, and a
        module fixes both.
        """
        yield from ()

    def __sklearn_tags__(self) -> Any:
        """Whether it classifies."""
        tags = super().__sklearn_tags__()
        if self.loss == "cross_entropy":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        tags.target_tags.required = True
        return tags

    def fit(self, X: RowsLike, y: npt.ArrayLike | Tensor) -> DPModule:
        """Train a copy of the module."""
        _refuse_odd_numbers(self.module)
        _refuse_odd_rows(X, y)
        targets = y
        if self.loss == "cross_entropy":
            check_classification_targets(y)
            self.classes_, targets = np.unique(np.asarray(y), return_inverse=True)
        names = (
            "dp_delta",
            "clip",
            "batch_size",
            "epochs",
            "step",
            "radius",
            "loss",
            "optimizer",
            "random_state",
        )
        options = {name: getattr(self, name) for name in names}
        module = copy.deepcopy(self.module)
        done = fit_private(module, X, targets, **self._noise(), **options)
        self.weights_ = {
            name: value.cpu().numpy().copy() for name, value in module.state_dict().items()
        }
        self.engine_ = done.engine
        width, seeded = int(np.prod(np.shape(X)[1:])), self.random_state is not None
        self.facts_ = facts_of(_num_samples(X), width, done.recipe, done.spent, seeded=seeded)
        return self

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that parameters and rows tell; that so much noise was added,
        nobody can see in the weights.
        """
        if sample_weight is not None:
            raise ValueError("DPModule has no weights of rows: leave sample_weight out")
        if self.loss == "cross_entropy" and not np.array_equal(
            np.unique(np.asarray(y)), self.classes_
        ):
            raise ValueError("y does not hold the classes that the model was fitted on")
        options = {
            name: getattr(self, name)
            for name in ("dp_delta", "clip", "batch_size", "epochs", "step", "radius")
        }
        rate, recipe = _plan(_num_samples(X), **self._noise(), **options)
        noise, width = recipe.noise_multiplier, int(np.prod(np.shape(X)[1:]))
        spent = account(noise, rate, recipe.steps, self.dp_delta) if noise > 0 else NO_NOISE
        return told_again(facts_of(_num_samples(X), width, recipe, spent), self.facts_)

    def _noise(self) -> dict[str, float | None]:
        """The ε to spend, or the noise where it is stated."""
        stated = self.noise_multiplier
        return {"epsilon": self.epsilon if stated is None else None, "noise_multiplier": stated}

    @property
    def module_(self) -> nn.Module:
        """A copy of the module with the weights that were learned, ready to predict."""
        import torch

        check_is_fitted(self, "facts_")
        module = copy.deepcopy(self.module)
        module.load_state_dict(
            {name: torch.as_tensor(value) for name, value in self.weights_.items()}
        )
        return module.eval()

    def _outputs(self, X: RowsLike) -> AnyArray:
        import torch

        module = self.module_
        with torch.no_grad():
            return module(_tensors(module, X, np.zeros(_num_samples(X)), None)[0]).cpu().numpy()

    @available_if(_classifies)
    def decision_function(self, X: RowsLike) -> AnyArray:
        """The module's outputs, where it classifies."""
        return self._outputs(X)

    @available_if(_classifies)
    def predict_proba(self, X: RowsLike) -> AnyArray:
        """Probabilities by softmax, where it classifies."""
        from scipy.special import softmax

        return softmax(self._outputs(X).astype(np.float64), axis=1)

    def predict(self, X: RowsLike) -> AnyArray:
        """The likeliest class, or the outputs."""
        outputs = self._outputs(X)
        if self.loss == "cross_entropy":
            return self.classes_[outputs.argmax(axis=1)]
        return outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 else outputs

    def _describe(self) -> Parts:
        check_is_fitted(self, "facts_")
        head = "outputs" if self.loss == "cross_entropy" else "each"
        why = "noise was added to every step: the weights are near no minimizer that is known"
        return Parts(
            lambda: Closed(ModuleForm(self.module_), None, head), Lacking("objective", why)
        )
