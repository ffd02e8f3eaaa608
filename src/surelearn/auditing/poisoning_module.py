"""Poison for a torch module that was trained elsewhere: what further training on rows with poison among them does to it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from surelearn.auditing.context import Unusable
from surelearn.auditing.poisoning_damage import changed, place
from surelearn.auditing.poisoning_influence import first_order_error, largest
from surelearn.auditing.poisoning_parts import MOST_COLUMNS, risk_of

MOST_PARAMETERS = 3000  # every step of the attack trains the module again
LEAST_ROWS = 30
_PART = 200  # rows to train on, as many to aim at, and as many to measure on
_LOOKED = 1000  # rows it was fitted on whose influence is told
_STEPS, _STEP, _ITERATIONS = 4, 3.0, 40  # a step in standard deviations at first; iterations of one training


def trained_further(
    module: Any, X: Any, y: Any, task: str, share: float, seed: int, held: int = 0, classes: Any = ()
) -> dict[str, Any]:  # fmt: skip
    """The risk on other rows after training further on some: as they are, with labels changed, with poison placed.

    The last ``held`` rows are for measuring only; with none, some of the others are kept for it.
    """
    Z, objective, t = _objective(module, X, y, task, held, classes)
    inner, outer, test = _parts(len(Z) - held, held, 3, seed)
    clean, count = objective.fit(Z[inner], t[inner]), max(1, round(share * len(inner)))
    found = place(objective, Z, t, (inner, outer), count, seed, steps=_STEPS, step=_STEP)
    placed = objective.fit(np.vstack([Z[inner], found.X]), np.concatenate([t[inner], found.y]), start=clean)
    flipped = objective.fit(Z[inner], changed(t[inner], count, seed, task), start=clean)
    risks = [_risk(objective, w, Z[test], t[test], task) for w in (clean, flipped, placed)]
    return dict(zip(("clean", "flipped", "placed"), risks, strict=True), rows=len(inner), seen=len(test))


def module_influence(
    module: Any, X: Any, y: Any, task: str, seed: int, held: int = 0, classes: Any = ()
) -> dict[str, Any]:  # fmt: skip
    """To first order, which rows it is trained further on change the loss on others most."""
    from surelearn.attacks.influence import influence_function

    Z, objective, t = _objective(module, X, y, task, held, classes)
    inner, outer = _parts(len(Z) - held, held, 2, seed, _LOOKED if held else _PART)
    w = objective.fit(Z[inner], t[inner])
    found = influence_function(objective, w, Z[inner], t[inner], Z[outer], t[outer])
    base = objective.risk(w, Z[outer], t[outer])

    def spread(row: int) -> float:
        return first_order_error(objective, w, Z[inner], t[inner], Z[outer], t[outer], row)

    name = "loss that it is trained by"
    return largest(inner, found.risk, base, "influence function", len(inner), name, spread=spread)


def _parts(n: int, held: int, count: int, seed: int, most: int = _PART) -> list[Any]:
    """Rows to train on, perhaps rows to aim at, and at last rows to measure on, those held back if there are any."""
    generator, own = np.random.default_rng(seed), count - (held > 0)
    order = generator.permutation(n)[: own * most]
    measured = [n + np.sort(generator.permutation(held)[:_PART])] if held else []
    return [np.sort(part) for part in np.array_split(order, own)] + measured


def _objective(module: Any, X: Any, y: Any, task: str, held: int, classes: Any) -> tuple[Any, Any, Any]:
    """Rows in numbers, the module as something to train further, and labels as it takes them."""
    from surelearn.attacks.poison_modules import ModuleObjective

    Z = np.asarray(X, dtype=float)
    size = sum(part.numel() for part in module.parameters() if part.requires_grad)
    if not 0 < size <= MOST_PARAMETERS:
        raise Unusable(f"only modules of 1 to {MOST_PARAMETERS:,} parameters are trained further, this one has {size:,}")
    if Z.ndim != 2 or Z.shape[1] > MOST_COLUMNS or len(Z) - held < LEAST_ROWS:
        raise Unusable(f"a module is trained further on at least {LEAST_ROWS} rows of at most {MOST_COLUMNS} columns")
    if task == "regression":
        return Z, ModuleObjective(module, "squared", regularization=1e-4, iterations=_ITERATIONS), np.asarray(y, dtype=float)
    found = np.unique(y)
    classes = np.asarray(classes) if len(classes) else found
    codes = (np.asarray(y)[:, None] == classes).argmax(axis=1)
    outputs = _outputs(module, Z[:2])
    if len(found) < 2 or outputs not in (1, len(classes)) or (outputs == 1 and len(classes) > 2):
        raise Unusable(f"the module has {outputs} outputs for rows of {len(found)} classes")
    loss: str | Callable[[Any, Any], Any] = "logistic" if outputs > 1 else _two_classes
    return Z, ModuleObjective(module, loss, regularization=1e-4, iterations=_ITERATIONS), codes


def _outputs(module: Any, rows: Any) -> int:
    import torch

    with torch.no_grad():
        found = copy.deepcopy(module).double().cpu().eval()(torch.from_numpy(rows))
    return found.shape[1] if found.ndim == 2 else 1


def _two_classes(outputs: Any, labels: Any) -> Any:
    import torch

    return torch.nn.functional.softplus(-(2 * labels - 1) * outputs.reshape(labels.shape))


def _risk(objective: Any, w: Any, Z: Any, t: Any, task: str) -> float:
    outputs = np.asarray(objective.decision(w, Z))
    if task == "regression":
        return risk_of(outputs.reshape(len(t)), t, task)
    wide = outputs.ndim == 2 and outputs.shape[1] > 1
    return risk_of(outputs.argmax(axis=1) if wide else (outputs.reshape(len(t)) > 0).astype(int), t, task)
