"""EigenPro on MNIST: the whole fit, preconditioner included, after one warm-up, and the test error.

    python benchmarks/bench_eigenpro.py                 10,000 rows on the CPU beside KernelRidge and SVC (about a minute)
    python benchmarks/bench_eigenpro.py --rows 2000     a quick look
    python benchmarks/bench_eigenpro.py --cuda          60,000 rows on a GPU, Gaussian (5) and Laplace (10)

Pixels are in 0..1. What a GPU must do at least: 2n²d/2 operations for the kernel matrix, each pair once, and n² numbers read
from memory an epoch; both limits are printed beside the time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np

from surelearn.kernel.eigenpro import EigenProClassifier

MNIST = Path(__file__).parents[2] / "shared" / "data" / "mnist.npz"
CASES = {"gaussian": (5.0, 1.25), "laplace": (10.0, 1.60)}  # bandwidth and the error to reach, in percent, at 60,000 rows
CHOSEN = ("subsample", "directions", "batch_size", "step", "step_predicted", "epochs", "cached")


def mnist(path: Path, rows: int) -> tuple[np.ndarray, ...]:
    """Training rows and labels, test rows and labels."""
    with np.load(path) as file:
        x, y, tx, ty = (file[name] for name in ("x_train", "y_train", "x_test", "y_test"))
    flat = [(part.reshape(len(part), -1) / 255.0).astype(np.float32) for part in (x[:rows], tx)]
    return flat[0], y[:rows], flat[1], ty


def clock(run) -> tuple[float, float]:
    """Wall and CPU seconds, the device waited for."""
    import torch

    wall, cpu = time.perf_counter(), time.process_time()
    run()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - wall, time.process_time() - cpu


def ours(kernel: str, data: tuple[np.ndarray, ...], options: argparse.Namespace, device: str) -> None:
    """Fit, time and describe; the first fit is the warm-up."""
    X, y, T, t = data
    bandwidth, target = CASES[kernel]
    given = {name: getattr(options, name) for name in ("subsample", "directions", "batch_size", "step", "epochs")}
    model = EigenProClassifier(kernel, bandwidth=bandwidth, solver="eigenpro", device=device, random_state=0, **given)
    model.fit(X, y)
    times = [clock(lambda: model.fit(X, y)) for _ in range(options.repeats)]
    wall, cpu = (statistics.median(part) for part in zip(*times, strict=True))
    predict = clock(lambda: model.predict(T))[0]
    error = 100 * np.mean(model.predict(T) != t)
    print(
        f"{kernel} ({bandwidth:g}), n = {len(X):,}, {device}: error {error:.2f}%, fit {wall:.3f} s (CPU {cpu:.2f} s),",
        end=" ",
    )
    print(f"predict {predict:.3f} s")
    print("  " + ", ".join(f"{name} {model.facts_[name]}" for name in CHOSEN))
    print(f"  acceleration predicted {model.facts_['acceleration_predicted']:.0f},", end=" ")
    print(f"measured on a block outside the subsample {model.facts_['acceleration_measured']:.1f}")
    if device == "cuda":
        print(f"  target: at most 0.3 s to {target}%; the kernel matrix alone at 51 TFLOP/s:", end=" ")
        print(f"{len(X) ** 2 * X.shape[1] / 51e12:.3f} s, an epoch at 4.8 TB/s: {4 * len(X) ** 2 / 4.8e12:.4f} s")


def peers(data: tuple[np.ndarray, ...]) -> None:
    """KernelRidge and SVC with the Gaussian kernel of bandwidth 5."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.svm import SVC

    X, y, T, t = data
    gamma = 1 / (2 * CASES["gaussian"][0] ** 2)
    signs = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    ridge, machine = KernelRidge(alpha=1e-3, kernel="rbf", gamma=gamma), SVC(C=10.0, gamma=gamma)
    for name, fit, predict in (
        ("KernelRidge", lambda: ridge.fit(X, signs), lambda: ridge.predict(T).argmax(axis=1)),
        ("SVC", lambda: machine.fit(X, y), lambda: machine.predict(T)),
    ):
        wall, cpu = clock(fit)
        start = time.perf_counter()
        error = 100 * np.mean(predict() != t)
        print(f"{name}: error {error:.2f}%, fit {wall:.2f} s (CPU {cpu:.2f} s), predict {time.perf_counter() - start:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--data", type=Path, default=MNIST)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--no-peers", action="store_true")
    for name in ("subsample", "directions", "batch-size"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--step", type=float)
    options = parser.parse_args()
    if not options.data.exists():
        print(f"{options.data} is not here: give --data, an npz with x_train, y_train, x_test and y_test")
        return
    if options.cuda:
        import torch

        if not torch.cuda.is_available():
            print("no CUDA device here: leave --cuda out")
            return
    data = mnist(options.data, options.rows or (60_000 if options.cuda else 10_000))
    for kernel in CASES:
        ours(kernel, data, options, "cuda" if options.cuda else "cpu")
    if not options.cuda and not options.no_peers:
        peers(data)


if __name__ == "__main__":
    main()
