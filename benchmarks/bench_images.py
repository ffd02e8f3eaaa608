"""Networks for images on MNIST: error and seconds, means and spreads of several seeds, and the rate
against the device's peak, beside a plain PyTorch loop of the same network.

    python benchmarks/bench_images.py [mnist.npz] [--only choose,cnn,fast,mlp,plain,cpu]

Settings are chosen on 10,000 of the 60,000 training images ("choose"); the test images are looked
at with those alone. Seconds are those of a whole `fit` that follows one of an epoch, in which
kernels are compiled.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surelearn.neural import Augmentation, ImageClassifier, ImageDetails
from surelearn.neural.image_layers import Layout, operations, trunk, widths_of

MNIST = Path(__file__).parents[2] / "shared" / "data" / "mnist.npz"
PEAK = 790.0  # TFLOP/s of bfloat16 products, measured on an H200
MOVED = {"shift": 2, "rotation": 8.0, "zoom": 0.08, "shear": 0.08}
EPOCHS, FAST_EPOCHS, MLP_EPOCHS, CPU_EPOCHS = 18, 5, 60, 15
CHOICES = [(rate, averaged) for rate in (0.005, 0.007, 0.01) for averaged in (0.2, 0.4)]


def cnn(seed: int, epochs: int, rate: float = 0.01, averaged: float = 0.4) -> ImageClassifier:
    """The CNN that is measured."""
    details = ImageDetails(averaged=averaged, compiled=torch.cuda.is_available())
    return ImageClassifier(
        epochs=epochs,
        learning_rate=rate,
        augmentation=Augmentation(**MOVED),
        details=details,
        random_state=seed,
    )


def mlp(seed: int, epochs: int) -> ImageClassifier:
    """The MLP that is measured on a GPU."""
    details = ImageDetails(averaged=0.4, compiled=torch.cuda.is_available())
    return ImageClassifier("mlp", epochs=epochs, details=details, random_state=seed)


def cpu_mlp(seed: int, epochs: int) -> ImageClassifier:
    """The MLP that is measured on two cores."""
    return ImageClassifier(
        "mlp",
        widths=(512, 512),
        epochs=epochs,
        augmentation=Augmentation(shift=1),
        details=ImageDetails(batch_size=500),
        device="cpu",
        random_state=seed,
    )


def tera(model: ImageClassifier, images: int, epochs: int) -> float:
    """Operations of a fit, in 10¹²."""
    kind = "mlp" if model.network == "mlp" else "cnn"
    widths = widths_of(kind, model.widths)
    layout = Layout(kind=kind, shape=(28, 28, 1), widths=widths, depth=model.depth, outputs=10)
    return operations(layout) * images * epochs / 1e12


def fitted(model: ImageClassifier, X: Any, y: Any) -> tuple[ImageClassifier, float]:
    """The fit, and its seconds."""
    began = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - began


def error(model: ImageClassifier, X: Any, y: Any) -> float:
    """Errors in percent."""
    return 100.0 * float(np.mean(model.predict(X) != y))


def report(name: str, errors: list[float], seconds: list[float], work: float) -> None:
    """One line: mean and spread of errors, seconds, and the rate."""
    rate = work / float(np.mean(seconds))
    print(
        f"{name:22s} error {np.mean(errors):.3f}% ± {np.std(errors, ddof=1) if len(errors) > 1 else 0:.3f}"
        f" {[round(e, 2) for e in errors]}  {np.mean(seconds):.2f} s (at most {max(seconds):.2f})"
        f"  {rate:.0f} TFLOP/s, {100 * rate / PEAK:.0f}% of {PEAK:.0f}",
        flush=True,
    )


def measured(
    name: str, make: Callable[[int, int], ImageClassifier], epochs: int, data: Any, seeds: int
) -> None:
    """Fits of several seeds, after one in which kernels are compiled."""
    X, y, X_test, y_test = data
    _, warm = fitted(make(1000, 1), X, y)
    errors, seconds = [], []
    for seed in range(seeds):
        model, took = fitted(make(seed, epochs), X, y)
        errors.append(error(model, X_test, y_test))
        seconds.append(took)
    print(f"{name}: {epochs} epochs; the first fit, with its compilation, took {warm:.1f} s")
    report(name, errors, seconds, tera(model, len(X), epochs))


def choose(data: Any) -> tuple[float, float]:
    """The rate and the share averaged with the fewest errors on held-out training images."""
    X, y, _, _ = data
    order = np.random.default_rng(123).permutation(len(X))
    held, fit = order[:10_000], order[10_000:]
    fitted(cnn(1000, 1), X[fit], y[fit])
    found = {}
    for rate, averaged in CHOICES:
        errors = [
            error(fitted(cnn(seed, EPOCHS, rate, averaged), X[fit], y[fit])[0], X[held], y[held])
            for seed in range(100, 103)
        ]
        found[rate, averaged] = float(np.mean(errors))
        print(
            f"held out: rate {rate}, averaged {averaged}: {np.mean(errors):.3f}% {np.round(errors, 2)}",
            flush=True,
        )
    return min(found, key=lambda one: found[one])


def plain(data: Any, epochs: int, seed: int) -> tuple[float, float]:
    """The same network, moves and descent as they are usually written: no graph, no compilation."""
    from torch.nn.functional import affine_grid, cross_entropy, grid_sample

    X, y, X_test, y_test = data
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(seed)
    began = time.perf_counter()
    images = torch.from_numpy(X).to(device)[:, None]
    labels = torch.from_numpy(y.astype(np.int64)).to(device)
    layout = Layout(kind="cnn", shape=(28, 28, 1), widths=(32, 64, 128), depth=2, outputs=10)
    network = trunk(layout).to(device, memory_format=torch.channels_last)
    steps = epochs * -(-len(X) // 1000)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=0.05, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.01, total_steps=steps, pct_start=0.2, cycle_momentum=False
    )
    augmentation, random = Augmentation(**MOVED), np.random.default_rng(seed)
    for _ in range(epochs):
        maps = torch.from_numpy(augmentation.moves(len(X), (28, 28), random)).to(device)
        for rows in torch.randperm(len(X), device=device).split(1000):
            grid = affine_grid(maps[rows], [len(rows), 1, 28, 28], align_corners=False)
            given = grid_sample(images[rows].float(), grid, align_corners=False) / 255
            optimizer.zero_grad()
            with torch.autocast(device.type, torch.bfloat16):
                loss = cross_entropy(network(given), labels[rows], label_smoothing=0.1)
            loss.backward()
            optimizer.step()
            schedule.step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    took = time.perf_counter() - began
    network.eval()
    with torch.no_grad():
        said = network(torch.from_numpy(X_test).to(device)[:, None].float() / 255).argmax(1)
    return 100 * float(np.mean(said.cpu().numpy() != y_test)), took


def main() -> None:
    """What is asked for, in turn."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="?", default=MNIST)
    parser.add_argument("--only", help="what is measured; cpu alone without a GPU")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rate", type=float, default=0.01, help="chosen before")
    parser.add_argument("--averaged", type=float, default=0.4, help="chosen before")
    parser.add_argument("--seed", type=int, default=None, help="of cpu: this one alone")
    given = parser.parse_args()
    usual = "cnn,fast,mlp,plain" if torch.cuda.is_available() else "cpu"
    parts = (given.only or usual).split(",")
    with np.load(given.data) as held:
        data = (held["x_train"], held["y_train"], held["x_test"], held["y_test"])
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    print(f"torch {torch.__version__}, {name}, {torch.get_num_threads()} threads")
    if "cpu" in parts:
        torch.set_num_threads(2)
        for seed in range(given.seeds) if given.seed is None else [given.seed]:
            model, took = fitted(cpu_mlp(seed, CPU_EPOCHS), *data[:2])
            work = tera(model, len(data[0]), CPU_EPOCHS)
            report(f"MLP, two cores, seed {seed}", [error(model, *data[2:])], [took], work)
    rate, averaged = given.rate, given.averaged
    if "choose" in parts:
        rate, averaged = choose(data)
        print(f"chosen: rate {rate}, averaged {averaged}")
    if "cnn" in parts:
        measured(
            "CNN", lambda seed, epochs: cnn(seed, epochs, rate, averaged), EPOCHS, data, given.seeds
        )
    if "fast" in parts:
        measured(
            "CNN, few epochs",
            lambda seed, epochs: cnn(seed, epochs, rate, averaged),
            FAST_EPOCHS,
            data,
            given.seeds,
        )
    if "mlp" in parts:
        measured("MLP", mlp, MLP_EPOCHS, data, given.seeds)
    if "plain" in parts:
        plain(data, 1, 1000)
        found = [plain(data, EPOCHS, seed) for seed in range(2)]
        work = tera(cnn(0, 1), len(data[0]), EPOCHS)
        report("plain loop, CNN", [e for e, _ in found], [s for _, s in found], work)


if __name__ == "__main__":
    main()
