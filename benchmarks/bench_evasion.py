"""Projected gradient beside foolbox and ART on the same network: robust accuracy and CPU seconds.

    PYTHONPATH=/path/with/foolbox/and/art python benchmarks/bench_evasion.py     peers that are missing are left out

A network of two hidden layers on scikit-learn's digits in [0, 1]; 1,000 rows, 40 steps, no random
start. ``raw loop`` is the attack in a dozen lines of PyTorch. Lower robust accuracy is a stronger
attack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import _timing
import numpy as np
import torch
from sklearn.datasets import load_digits

from surelearn.attacks import domain, projected_gradient

ROWS, STEPS = 1000, 40
RADII: dict[Any, tuple[float, ...]] = {"linf": (0.05, 0.1, 0.15), "l2": (0.5, 1.0)}


def trained() -> tuple[Any, np.ndarray, np.ndarray]:
    """The network, and rows it was not fitted to."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    X, y = load_digits(return_X_y=True)
    X = (X / 16.0).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 128),
        torch.nn.ReLU(),
        torch.nn.Linear(128, 128),
        torch.nn.ReLU(),
        torch.nn.Linear(128, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(150):
        loss = torch.nn.functional.cross_entropy(
            model(torch.from_numpy(X[ROWS:])), torch.from_numpy(y[ROWS:])
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval(), X[:ROWS], y[:ROWS]


def raw_loop(model: Any, X: np.ndarray, y: np.ndarray, radius: float, norm: str) -> np.ndarray:
    """Projected gradient as one would write it by hand."""
    start, labels = torch.from_numpy(X), torch.from_numpy(y)
    z = start.clone()
    for _ in range(STEPS):
        z.requires_grad_(True)
        loss = torch.nn.functional.cross_entropy(model(z), labels, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, z)
        with torch.no_grad():
            if norm == "linf":
                z = start + (z + 2.5 / STEPS * radius * gradient.sign() - start).clamp(
                    -radius, radius
                )
            else:
                z = z + 2.5 / STEPS * radius * gradient / gradient.norm(
                    dim=1, keepdim=True
                ).clamp_min(1e-12)
                step = z - start
                z = start + step * (
                    radius / step.norm(dim=1, keepdim=True).clamp_min(1e-12)
                ).clamp_max(1.0)
            z = z.clamp(0.0, 1.0)
    return z.numpy()


def peers(
    model: Any, X: np.ndarray, y: np.ndarray, radius: float, norm: str
) -> dict[str, Callable[[], Any]]:
    """Foolbox and ART, as installed."""
    found: dict[str, Callable[[], Any]] = {"raw loop": lambda: raw_loop(model, X, y, radius, norm)}
    try:
        import foolbox  # type: ignore[import-not-found]

        wrapped = foolbox.PyTorchModel(model, bounds=(0, 1))
        kind = foolbox.attacks.LinfPGD if norm == "linf" else foolbox.attacks.L2PGD
        attack = kind(rel_stepsize=2.5 / STEPS, steps=STEPS, random_start=False)
        rows, labels = torch.from_numpy(X), torch.from_numpy(y)
        found["foolbox"] = lambda: (
            attack(wrapped, rows, labels, epsilons=radius)[1].detach().numpy()
        )
    except ImportError:
        print("foolbox is not installed")
    try:
        from art.attacks.evasion import ProjectedGradientDescent  # type: ignore[import-not-found]
        from art.estimators.classification import PyTorchClassifier  # type: ignore[import-not-found]

        estimator = PyTorchClassifier(
            model,
            loss=torch.nn.CrossEntropyLoss(),
            input_shape=(64,),
            nb_classes=10,
            clip_values=(0, 1),
        )
        order = np.inf if norm == "linf" else 2
        options = {
            "norm": order,
            "eps": radius,
            "eps_step": 2.5 / STEPS * radius,
            "max_iter": STEPS,
            "batch_size": ROWS,
        }
        method = ProjectedGradientDescent(estimator, verbose=False, **options)
        found["ART"] = lambda: method.generate(X, np.eye(10, dtype=np.float32)[y])
    except ImportError:
        print("ART is not installed")
    return found


def main() -> None:
    """Robust accuracy, then seconds, for every radius."""
    model, X, y = trained()
    where = domain(64, low=0.0, high=1.0)
    ours: dict[str, dict[str, Any]] = {
        "ours": {},
        "ours, constant steps": {"schedule": "constant"},
        "ours, margin loss": {"loss": "margin"},
        "ours, 5 restarts": {"restarts": 5, "random_state": 0},
    }

    def right(rows: np.ndarray) -> float:
        with torch.no_grad():
            return float(
                (
                    model(torch.from_numpy(np.asarray(rows, dtype=np.float32))).argmax(1).numpy()
                    == y
                ).mean()
            )

    print(f"accuracy {right(X):.3f}")
    for norm, radii in RADII.items():
        for radius in radii:
            runs: dict[str, Any] = {
                name: lambda radius=radius, norm=norm, options=options: (
                    projected_gradient(
                        model, X, y, radius=radius, norm=norm, where=where, **options
                    ).rows
                )
                for name, options in ours.items()
            }
            runs |= peers(model, X, y, radius, norm)
            left = ", ".join(f"{name} {right(run()):.3f}" for name, run in runs.items())
            _timing.compare(f"{norm}, radius {radius}: robust accuracy {left}", runs)


if __name__ == "__main__":
    main()
