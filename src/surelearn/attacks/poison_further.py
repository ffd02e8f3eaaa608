"""Poison for a torch module that was trained elsewhere: what further training on rows with
poison among them does to it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from surelearn.attacks.influence import Influence, influence_function
from surelearn.attacks.influence_known import MOST_COLUMNS, ModelInfluence, first_order_error
from surelearn.attacks.poison_aimed import place
from surelearn.attacks.poison_labels import change_labels
from surelearn.attacks.poison_modules import ModuleObjective
from surelearn.lacking import Lacking
from surelearn.types import Array, RowsLike

if TYPE_CHECKING:
    from torch import Tensor, nn

MOST_PARAMETERS = 3000  # every step of the attack trains the module again
LEAST_ROWS = 30
_PART = 200  # rows to train on, as many to aim at, and as many to measure on
_LOOKED = 1000  # rows it was fitted on whose influence is told
# a step in standard deviations at first; iterations of one training
_STEPS, _STEP, _ITERATIONS = 4, 3.0, 40


@dataclass(frozen=True)
class Further:
    """Errors, or the mean absolute error, after further training.

    Attributes
    ----------
    clean, flipped, placed : with the rows as they are, with labels changed, with poison placed
        among them
    rows, seen : how many rows it was trained on, and measured on
    """

    clean: float
    flipped: float
    placed: float
    rows: int
    seen: int


def trained_further(
    module: nn.Module,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    task: str,
    share: float,
    classes: Sequence[Any] = (),
    held: int = 0,
    random_state: int = 0,
) -> Further | Lacking:
    """What poison does to a torch module that is trained further on some rows, measured on others.

    Parameters
    ----------
    module : a small torch module, which stays as it is
    X, y : rows of numbers (n, d) and their labels; the last ``held`` of them are for measuring
        only. With none, some of the others are kept for it
    task : "classification" or "regression"
    share : poisoned rows per row that it is trained on
    classes : the labels in the order of the outputs; those seen unless told

    Examples
    --------
    >>> import torch
    >>> X = np.random.default_rng(0).normal(size=(90, 2))
    >>> module = torch.nn.Linear(2, 2)
    >>> found = trained_further(module, X, (X[:, 0] > 0).astype(int), task="classification", share=0.2)
    >>> found.rows, found.seen, found.clean < 0.3
    (30, 30, True)
    """
    made = _objective(module, X, y, task, held, classes)
    if isinstance(made, Lacking):
        return made
    Z, objective, t = made
    inner, outer, test = _parts(len(Z) - held, held, 3, random_state)
    clean, count = objective.fit(Z[inner], t[inner]), max(1, round(share * len(inner)))
    found = place(objective, Z, t, (inner, outer), count, random_state, steps=_STEPS, step=_STEP)
    placed = objective.fit(
        np.vstack([Z[inner], found.X]), np.concatenate([t[inner], found.y]), start=clean
    )
    labels = change_labels(t[inner], count, task, random_state=random_state)
    flipped = objective.fit(Z[inner], labels, start=clean)
    risks = [_risk(objective, w, Z[test], t[test], task) for w in (clean, flipped, placed)]
    return Further(*risks, rows=len(inner), seen=len(test))


def module_influence(
    module: nn.Module,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    task: str,
    classes: Sequence[Any] = (),
    held: int = 0,
    random_state: int = 0,
) -> ModelInfluence | Lacking:
    """To first order, which rows a torch module is trained further on change the loss on others
    most.

    Parameters as for `trained_further`.
    """
    made = _objective(module, X, y, task, held, classes)
    if isinstance(made, Lacking):
        return made
    Z, objective, t = made
    inner, outer = _parts(len(Z) - held, held, 2, random_state, _LOOKED if held else _PART)
    w = objective.fit(Z[inner], t[inner])
    found = influence_function(objective, w, Z[inner], t[inner], Z[outer], t[outer])

    def error(at: int) -> float:
        return first_order_error(objective, w, Z[inner], t[inner], Z[outer], t[outer], at)

    told = Influence(inner, found.risk, found.largest, found.method)
    return ModelInfluence(
        told, objective.risk(w, Z[outer], t[outer]), "loss that it is trained by", error
    )


def _parts(n: int, held: int, count: int, seed: int, most: int = _PART) -> list[Any]:
    """Rows to train on, perhaps rows to aim at, and at last rows to measure on, those held back
    if there are any.
    """
    generator, own = np.random.default_rng(seed), count - (held > 0)
    order = generator.permutation(n)[: own * most]
    measured = [n + np.sort(generator.permutation(held)[:_PART])] if held else []
    return [np.sort(part) for part in np.array_split(order, own)] + measured


def _objective(
    module: nn.Module, X: RowsLike, y: npt.ArrayLike, task: str, held: int, classes: Sequence[Any]
) -> tuple[Any, Any, Any] | Lacking:
    """Rows in numbers, the module as something to train further, and labels as it takes them."""
    if not hasattr(X, "columns") and (np.asarray(X).dtype.kind in "iu" or np.asarray(X).ndim != 2):
        return Lacking(
            "further training",
            "a module is trained further on rows of numbers, not on tokens (whole numbers) or"
            " tensors",
        )
    Z = np.asarray(X, dtype=float)
    size = sum(part.numel() for part in module.parameters() if part.requires_grad)
    if not 0 < size <= MOST_PARAMETERS:
        return Lacking(
            "further training",
            f"only modules of 1 to {MOST_PARAMETERS:,} parameters are trained further, this one has"
            f" {size:,}",
        )
    if Z.ndim != 2 or Z.shape[1] > MOST_COLUMNS or len(Z) - held < LEAST_ROWS:
        return Lacking(
            "further training",
            f"a module is trained further on at least {LEAST_ROWS} rows of at most {MOST_COLUMNS}"
            " columns",
        )
    if task == "regression":
        return (
            Z,
            ModuleObjective(module, "squared", regularization=1e-4, iterations=_ITERATIONS),
            np.asarray(y, dtype=float),
        )
    found = np.unique(y)
    labels = np.asarray(classes) if len(classes) else found
    codes = (np.asarray(y)[:, None] == labels).argmax(axis=1)
    outputs = _outputs(module, Z[:2])
    if len(found) < 2 or outputs not in (1, len(labels)) or (outputs == 1 and len(labels) > 2):
        return Lacking(
            "further training", f"the module has {outputs} outputs for rows of {len(found)} classes"
        )
    loss: str | Callable[[Any, Any], Any] = "logistic" if outputs > 1 else _two_classes
    return Z, ModuleObjective(module, loss, regularization=1e-4, iterations=_ITERATIONS), codes


def _outputs(module: nn.Module, rows: Array) -> int:
    import torch

    with torch.no_grad():
        found = copy.deepcopy(module).double().cpu().eval()(torch.from_numpy(rows))
    return found.shape[1] if found.ndim == 2 else 1


def _two_classes(outputs: Tensor, labels: Tensor) -> Tensor:
    """`surelearn.losses.LOGISTIC`, for torch to differentiate."""
    import torch

    return torch.nn.functional.softplus(-(2 * labels - 1) * outputs.reshape(labels.shape))


def _risk(objective: Any, w: Any, Z: Any, t: Any, task: str) -> float:
    outputs = np.asarray(objective.decision(w, Z))
    if task == "regression":
        return float(np.mean(np.abs(outputs.reshape(len(t)) - t)))
    wide = outputs.ndim == 2 and outputs.shape[1] > 1
    return float(
        np.mean(
            (outputs.argmax(axis=1) if wide else (outputs.reshape(len(t)) > 0).astype(int)) != t
        )
    )
