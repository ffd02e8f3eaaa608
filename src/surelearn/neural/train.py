"""The one training loop: whatever has a loss per batch is trained here.

A family of models hands over ``step(batch)``, which returns the loss to go back through (or sets
the gradients itself and returns None, as private training does), its parameters, and its batches.
Schedules, clipping, mixed precision, averages of weights, early stopping, several processes,
checkpoints and progress are the loop's, the same for all.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from surelearn import stated
from surelearn.jobs import Progress, silent
from surelearn.neural.averages import Average, Averaged, copied, swapped
from surelearn.neural.schedules import Constant, Schedule

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

B = TypeVar("B")
Batch_co = TypeVar("Batch_co", covariant=True)
Step = Callable[[B], "Tensor | None"]
MakesOptimizer = Callable[["list[nn.Parameter]"], "Optimizer"]


class Batches(Protocol[Batch_co]):
    """The batches of an epoch, the same ones whenever they are asked for, so that a run can go on
    in its middle.
    """

    def __len__(self) -> int:
        """How many batches an epoch has."""
        ...

    def epoch(self, number: int) -> Iterable[Batch_co]:
        """The batches of epoch 0, 1, …."""
        ...


@dataclass(frozen=True)
class Shuffled:
    """Row numbers in random order, ``batch_size`` at a time: an order per epoch, told by the seed.

    Examples
    --------
    >>> rows = Shuffled(5, 2, seed=0)
    >>> len(rows), [batch.tolist() for batch in rows.epoch(0)]
    (3, [[2, 4], [3, 0], [1]])
    """

    n: int
    batch_size: int
    seed: int = 0

    def __len__(self) -> int:
        return math.ceil(self.n / self.batch_size)

    def epoch(self, number: int) -> Iterator[npt.NDArray[np.intp]]:
        """Every row once."""
        order = np.random.default_rng([self.seed, number]).permutation(self.n)
        for start in range(0, self.n, self.batch_size):
            yield order[start : start + self.batch_size]


@dataclass(frozen=True)
class DrawnBatches:
    """Batches from a generator that has a course of its own (private samples, changed rows): one
    epoch, which cannot go on in its middle.
    """

    count: int
    batches: Iterable[Any]

    def __len__(self) -> int:
        return self.count

    def epoch(self, number: int) -> Iterable[Any]:  # noqa: ARG002
        """The batches, once."""
        return self.batches


@dataclass(frozen=True, kw_only=True)
class Training:
    """How to train; none of it depends on the rows.

    Attributes
    ----------
    epochs : passes over the batches
    optimizer : "sgd", "adamw", "muon" (the matrices named in ``hidden``; AdamW for the rest), or a
        function from parameters to a torch optimizer, whose settings then stand
    learning_rate, schedule : η₀, and its factor over time (`surelearn.neural.schedules`)
    momentum, nesterov : of SGD; Muon has Nesterov's always, 0.95
    betas : of AdamW
    weight_decay, decayed : λ, for the parameters named; None: all with two dimensions or more
    rates : factors of η for parameters by name
    hidden : names of Muon's matrices
    clip : the norm to which the gradient of all parameters together is cut
    average : of the weights over the steps (`surelearn.neural.averages`); it is what is selected
        and returned
    patience : epochs without an improvement on select rows before training ends; None: all epochs.
        The best epoch's weights are returned wherever select rows are given
    precision : "bfloat16" computes products so, with weights kept in their own precision
    compiled : ``torch.compile`` the step: a minute at the start, worth it for long runs on a GPU
    graphed : record a step as a CUDA graph and replay it (`surelearn.neural.graphs`): worth it
        where kernels are short. Parameters and batches (tensors of one shape) lie on one GPU
    """

    epochs: int = 10
    optimizer: Literal["sgd", "adamw", "muon"] | MakesOptimizer = "adamw"
    learning_rate: float = 1e-3
    schedule: Schedule = field(default_factory=Constant)
    momentum: float = 0.0
    nesterov: bool = False
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    decayed: tuple[str, ...] | None = None
    rates: Mapping[str, float] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    clip: float | None = None
    average: Average | None = None
    patience: int | None = None
    precision: Literal["float32", "bfloat16"] = "float32"
    compiled: bool = False
    graphed: bool = False

    def __post_init__(self) -> None:
        stated.whole("epochs", self.epochs)
        stated.positive("learning_rate", self.learning_rate)
        if self.clip is not None:
            stated.positive("clip", self.clip)
        if self.patience is not None:
            stated.whole("patience", self.patience)
        if not callable(self.optimizer) and self.optimizer not in ("sgd", "adamw", "muon"):
            raise ValueError(
                f"optimizer must be 'sgd', 'adamw', 'muon' or a function, not {self.optimizer!r}"
            )
        if self.precision not in ("float32", "bfloat16"):
            raise ValueError(
                f"precision must be 'float32' or 'bfloat16', not {self.precision!r:.60}"
            )
        if self.optimizer == "muon" and not self.hidden:
            raise ValueError("optimizer='muon' needs hidden=, the names of the hidden matrices")


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a run did.

    Attributes
    ----------
    steps, epochs : made
    losses : mean loss of each epoch's batches, as they were met; empty where the step gives none
    selected : the loss on select rows after each epoch
    best : the epoch whose weights were kept, from 0; the last without select rows
    stopped : "epochs", or "patience"
    resumed : the steps that an earlier run had made
    seconds : since this run began
    """

    steps: int
    epochs: int
    losses: tuple[float, ...]
    selected: tuple[float, ...]
    best: int
    stopped: Literal["epochs", "patience"]
    resumed: int
    seconds: float


def train(
    step: Step[B],
    parameters: nn.Module | Mapping[str, Tensor],
    batches: Batches[B],
    plan: Training | None = None,
    *,
    select: Callable[[], float] | None = None,
    after: Callable[[], None] | None = None,
    seed: int | None = None,
    checkpoint: str | Path | None = None,
    every: int | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train parameters in place: per batch, ``step(batch)`` gives the mean loss of its rows.

    Killed at any step, the same call goes on from its checkpoint to the same weights (on a CPU with
    one thread: the same bytes). Started by ``torchrun``, each process takes its share of every
    batch, gradients are summed, and the weights are those of one process up to rounding, if step
    draws nothing at random and treats rows by themselves.

    Parameters
    ----------
    step : from a batch to a scalar to go back through; or None where it set every ``grad`` itself
    parameters : a module, which is put into training mode, or tensors by name; those that need a
        gradient are trained, the others (running means) are kept in checkpoints
    batches : `Shuffled`, or anything with ``len`` and ``epoch(number)``; for several processes, of
        arrays that are sliced
    plan : how; None is ten epochs of AdamW
    select : the loss on rows that choose the epoch, asked after each with the averaged weights
    after : called after each step, to project weights
    seed : of what step draws with torch (dropout); torch's own generator is put back. None leaves
        that generator alone
    checkpoint : a file (safetensors), written whole or not at all
    every : steps between checkpoints; None: at the end of each epoch
    progress : told of each epoch

    Examples
    --------
    >>> import torch
    >>> w = torch.nn.Parameter(torch.zeros(2))
    >>> X, y = torch.eye(2).repeat(8, 1), torch.tensor([1.0, -1.0]).repeat(8)
    >>> plan = Training(epochs=40, optimizer="sgd", learning_rate=0.5)
    >>> done = train(lambda rows: ((X[rows] @ w - y[rows]) ** 2).mean(), {"w": w}, Shuffled(16, 4), plan)
    >>> done.steps, [round(v, 3) for v in w.tolist()]
    (160, [1.0, -1.0])
    """
    import torch

    run = _Run(step, parameters, batches, plan or Training(), select, after, checkpoint, every)
    devices = sorted({t.device.index for t in run.tensors.values() if t.is_cuda})
    forked = torch.random.fork_rng(devices=devices) if seed is not None else nullcontext()
    with forked:
        if seed is not None:
            torch.manual_seed(seed)
        return run.go(silent if progress is None else progress)


class _Run:
    """One run: its optimizers, its average, and how far it has come."""

    def __init__(
        self,
        step: Step[Any],
        parameters: nn.Module | Mapping[str, Tensor],
        batches: Batches[Any],
        plan: Training,
        select: Callable[[], float] | None,
        after: Callable[[], None] | None,
        checkpoint: str | Path | None,
        every: int | None,
    ) -> None:
        import torch

        module = parameters if isinstance(parameters, torch.nn.Module) else None
        self.module, self.batches, self.plan = module, batches, plan
        self.tensors: dict[str, Tensor] = dict(
            parameters if module is None else module.state_dict(keep_vars=True)  # type: ignore[arg-type]
        )
        # a tensor with two names is trained under the first
        names = {id(t): name for name, t in reversed(self.tensors.items()) if t.requires_grad}
        self.trained = {name: t for name, t in self.tensors.items() if names.get(id(t)) == name}
        if not self.trained:
            raise ValueError("parameters must hold at least one tensor that needs a gradient")
        self.step = torch.compile(step) if plan.compiled else step
        self.select, self.after = select, after
        self.optimizers = _optimizers(self.trained, plan)
        self.rates = [[g["lr"] for g in one.param_groups] for one in self.optimizers]
        self.descend: Callable[[Any, float], Tensor | None] = self._descend
        self.averaged = (
            None if plan.average is None else Averaged(plan.average, copied(self.tensors))
        )
        self.path, self.every = (None if checkpoint is None else Path(checkpoint)), every
        self.rank, self.world = _processes()
        if plan.graphed:
            self._record()
        self.steps, self.sum, self.weight = 0, 0.0, 0.0
        self.losses: list[float] = []
        self.selected: list[float] = []
        self.best: dict[str, Tensor] | None = None
        self.best_epoch = 0

    def go(self, progress: Progress) -> Trained:
        """All epochs, from the checkpoint on if there is one."""
        began, size = time.monotonic(), len(self.batches)
        if not size:
            raise ValueError("there are no batches to train on")
        self._share_beginning()
        resumed = self._resume()
        progress.start(self.plan.epochs, "epochs")
        try:
            for epoch in range(self.steps // size):
                progress.advance(f"epoch {epoch}")
            while self.steps < self.plan.epochs * size and not self._settled():
                before = self.steps
                self._epoch(self.steps // size, self.steps % size)
                if self.steps == before:
                    raise ValueError(f"the batches ended after {before} steps, before their number")
                progress.advance(f"epoch {self.steps // size}")
        finally:
            progress.finish()
        if self.best is not None:
            self._take(self.best)
        elif self.averaged is not None:
            self._take(self.averaged.kept)
        if self.module is not None:
            self.module.eval()
        return Trained(
            steps=self.steps,
            epochs=len(self.losses),
            losses=tuple(loss for loss in self.losses if not math.isnan(loss)),
            selected=tuple(self.selected),
            best=self.best_epoch if self.select is not None else len(self.losses) - 1,
            stopped="patience" if self._settled() else "epochs",
            resumed=resumed,
            seconds=time.monotonic() - began,
        )

    def _epoch(self, epoch: int, done: int) -> None:
        """The batches of an epoch after the first ``done``; then the select rows."""
        if self.module is not None:
            self.module.train()
        for number, batch in enumerate(self.batches.epoch(epoch)):
            if number < done:
                continue
            self._set_rate()
            self._one(batch)
            self.steps += 1
            if self.averaged is not None:
                self.averaged.update(self.tensors, self.steps / len(self.batches))
            if self.every and self.steps % self.every == 0 and number + 1 < len(self.batches):
                self._save()
        self._end_of_epoch(epoch)
        if self.path is not None and (not self.every or self.steps % self.every == 0):
            self._save()

    def _one(self, batch: Any) -> None:
        """The gradient of a batch, of all processes together, and the step along it."""
        share, weight = self._share(batch)
        loss = self.descend(share, weight)
        if loss is not None:
            self.sum, self.weight = self.sum + weight * loss, self.weight + weight

    def _descend(self, share: Any, weight: float) -> Tensor | None:
        """A step along the gradient of this process's share of a batch; its loss."""
        import torch

        for one in self.optimizers:
            one.zero_grad(set_to_none=True)
        with self._precision():
            loss = self.step(share) if weight else None
        if loss is not None:
            (loss if weight == 1 else loss * weight).backward()
        if self.world > 1:
            _sum_gradients(self.trained)
        if self.plan.clip is not None:
            torch.nn.utils.clip_grad_norm_(list(self.trained.values()), self.plan.clip)
        for one in self.optimizers:
            one.step()
        if self.after is not None:
            with torch.no_grad():
                self.after()
        return None if loss is None else loss.detach()

    def _record(self) -> None:
        """Let steps be recorded as a CUDA graph, with rates that are tensors."""
        import torch

        from surelearn.neural.graphs import Graphed

        devices = {t.device for t in self.tensors.values()}
        device = next(iter(devices))
        if len(devices) > 1 or device.type != "cuda":
            raise ValueError("graphed=True needs all parameters on one GPU")
        if self.world > 1:
            raise ValueError("graphed=True is for one process: sums over several are not recorded")
        for group in (group for one in self.optimizers for group in one.param_groups):
            group["lr"] = torch.tensor(group["lr"], device=device)
        graphed = Graphed(lambda share: self._descend(share, 1.0))

        def replayed(share: Any, weight: float) -> Tensor | None:  # noqa: ARG001
            return graphed(share)

        self.descend = replayed

    def _share(self, batch: Any) -> tuple[Any, float]:
        """The part of a batch that is this process's, and which share of it that is."""
        if self.world == 1:
            return batch, 1.0
        mine = batch[self.rank :: self.world]
        return mine, len(mine) / len(batch)

    def _precision(self) -> AbstractContextManager[Any]:
        import torch

        if self.plan.precision == "float32":
            return nullcontext()
        return torch.autocast(next(iter(self.trained.values())).device.type, torch.bfloat16)

    def _set_rate(self) -> None:
        factor = self.plan.schedule(self.steps / len(self.batches), self.plan.epochs)
        for one, rates in zip(self.optimizers, self.rates, strict=True):
            for group, rate in zip(one.param_groups, rates, strict=True):
                if self.plan.graphed:
                    group["lr"].fill_(rate * factor)
                else:
                    group["lr"] = rate * factor

    def _end_of_epoch(self, epoch: int) -> None:
        """The mean loss, and whether the select rows like this epoch best."""
        mean = float(self.sum) / self.weight if self.weight else math.nan
        if self.weight and not math.isfinite(mean):
            raise ValueError(
                f"the loss is {mean} in epoch {epoch + 1}: lower learning_rate, or set clip"
            )
        self.losses.append(mean)
        self.sum, self.weight = 0.0, 0.0
        if self.select is None:
            return
        if self.module is not None:
            self.module.eval()
        with self._averages():
            found = float(self.select())
            if not self.selected or found < min(self.selected):
                self.best_epoch = epoch
                self.best = copied(self.tensors)
            self.selected.append(found)

    def _settled(self) -> bool:
        """Whether the select rows have seen no better epoch for ``patience`` epochs."""
        wait = self.plan.patience
        return bool(wait and self.selected and len(self.selected) - 1 - self.best_epoch >= wait)

    def _averages(self) -> AbstractContextManager[None]:
        return nullcontext() if self.averaged is None else swapped(self.tensors, self.averaged)

    def _take(self, values: Mapping[str, Tensor]) -> None:
        import torch

        with torch.no_grad():
            for name, value in values.items():
                self.tensors[name].copy_(value)

    def _share_beginning(self) -> None:
        """All processes begin with the first one's weights."""
        if self.world > 1:
            from torch import distributed

            for tensor in self.tensors.values():
                distributed.broadcast(tensor.detach(), src=0)

    # ---- checkpoints

    def _numbers(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "sum": float(self.sum),
            "weight": self.weight,
            "losses": self.losses,
            "selected": self.selected,
            "best_epoch": self.best_epoch,
            "averages": 0 if self.averaged is None else self.averaged.count,
            "plan": repr(self.plan),
            "batches": len(self.batches),
        }

    def _save(self) -> None:
        if self.path is None or self.rank:
            return
        from surelearn.neural import checkpoints

        parts: dict[str, Mapping[str, Tensor]] = {"weights": self.tensors}
        if self.best is not None:
            parts["best"] = self.best
        if self.averaged is not None:
            parts["average"] = self.averaged.kept
        for i, one in enumerate(self.optimizers):
            parts[f"optimizer{i}"] = _moments(one, self.trained)
        checkpoints.write(self.path, parts, self._numbers())

    def _resume(self) -> int:
        """Go on where the checkpoint was written; how many steps that is."""
        if self.path is None or not self.path.exists():
            return 0
        from surelearn.neural import checkpoints

        parts, numbers = checkpoints.read(self.path, set_random=True)
        for name in ("plan", "batches"):
            if numbers.get(name) != self._numbers()[name]:
                raise ValueError(
                    f"{self.path} is a checkpoint of another run, with another {name}: remove it,"
                    " or name another file"
                )
        checkpoints.check_shapes(self.path, parts["weights"], self.tensors)
        self._take(parts["weights"])
        self.best = parts.get("best")
        if self.averaged is not None:
            self.averaged.kept, self.averaged.count = parts["average"], numbers["averages"]
        for i, one in enumerate(self.optimizers):
            _set_moments(one, self.trained, parts.get(f"optimizer{i}", {}))
        self.steps, self.sum, self.weight = numbers["steps"], numbers["sum"], numbers["weight"]
        self.losses, self.selected = list(numbers["losses"]), list(numbers["selected"])
        self.best_epoch = numbers["best_epoch"]
        return self.steps


def _optimizers(trained: Mapping[str, Tensor], plan: Training) -> list[Optimizer]:
    """The optimizers of a plan, each with groups of parameters that step alike."""
    import torch

    known = set(trained)
    named = {*plan.rates, *plan.hidden, *(plan.decayed or ())}
    if unknown := sorted(named - known):
        raise ValueError(
            f"the plan names parameters that there are not: {', '.join(unknown)[:120]}"
        )
    if callable(plan.optimizer):
        return [plan.optimizer(list(trained.values()))]  # type: ignore[arg-type]
    hidden = {name: trained[name] for name in plan.hidden if plan.optimizer == "muon"}
    rest = {name: t for name, t in trained.items() if name not in hidden}
    found: list[Optimizer] = []
    if rest:
        groups = _groups(rest, plan)
        if plan.optimizer == "sgd":
            options: dict[str, Any] = {"fused": True} if plan.graphed else {}
            found.append(
                torch.optim.SGD(groups, momentum=plan.momentum, nesterov=plan.nesterov, **options)
            )
        else:
            options = {"fused": True, "capturable": plan.graphed}
            found.append(torch.optim.AdamW(groups, betas=plan.betas, **options))
    if hidden:
        from surelearn.neural.muon import Muon

        found.append(Muon(_groups(hidden, plan), lr=plan.learning_rate))
    return found


def _groups(tensors: Mapping[str, Tensor], plan: Training) -> list[dict[str, Any]]:
    """Parameters by their learning rate and weight decay."""
    groups: dict[tuple[float, float], list[Tensor]] = {}
    for name, tensor in tensors.items():
        decays = tensor.ndim >= 2 if plan.decayed is None else name in plan.decayed
        rate = plan.learning_rate * plan.rates.get(name, 1.0)
        groups.setdefault((rate, plan.weight_decay if decays else 0.0), []).append(tensor)
    return [
        {"params": group, "lr": rate, "weight_decay": decay}
        for (rate, decay), group in groups.items()
    ]


def _moments(optimizer: Optimizer, trained: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What an optimizer remembers, by "key/parameter"."""
    return {
        f"{key}/{name}": value
        for name, tensor in trained.items()
        for key, value in optimizer.state.get(tensor, {}).items()
        if hasattr(value, "detach")
    }


def _set_moments(
    optimizer: Optimizer, trained: Mapping[str, Tensor], moments: Mapping[str, Tensor]
) -> None:
    for place, value in moments.items():
        key, _, name = place.partition("/")
        tensor = trained[name]
        optimizer.state[tensor][key] = value.to(tensor.device).clone()


def _processes() -> tuple[int, int]:
    """Which of how many processes this is, where torch.distributed was started."""
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def _sum_gradients(trained: Mapping[str, Tensor]) -> None:
    """Add up every process's gradients, in one message."""
    import torch
    from torch import distributed

    tensors: Sequence[Any] = list(trained.values())
    flat = torch.cat(
        [(torch.zeros_like(t) if t.grad is None else t.grad).flatten() for t in tensors]
    )
    distributed.all_reduce(flat)
    for tensor, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
        tensor.grad = part.view_as(tensor)
