"""EigenPro on MNIST: the whole fit, preconditioner included, after one warm-up, and the test error.

    python benchmarks/bench_eigenpro.py                     10,000 rows on the CPU beside KernelRidge and SVC (two minutes)
    python benchmarks/bench_eigenpro.py --rows 20000 60000  more rows (SVC takes minutes; KernelRidge up to 15,000)
    python benchmarks/bench_eigenpro.py --cuda              60,000 rows on a GPU, Gaussian (5) and Laplace (10)
    python benchmarks/bench_eigenpro.py --cuda --million    1,000,000 × 100 of noise, one output: seconds an epoch, memory
    python benchmarks/bench_eigenpro.py --cuda --precision  kernel values and products against float64

Pixels are in 0..1. What must be done at least: n²d operations for the kernel matrix, each pair
once, and n² numbers read from memory an epoch; both limits are printed beside the time. The
authors' own EigenPro is on no package index, and was not timed here.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np

from surelearn.kernel import Compute, Preconditioner, Stopping
from surelearn.kernel.eigenpro import EigenProClassifier, EigenProRegressor
from surelearn.kernel.functions import Gaussian, Laplace

MNIST = Path(__file__).parents[2] / "shared" / "data" / "mnist.npz"
# bandwidth and the error to reach, in percent, at 60,000 rows
CASES = {"gaussian": (5.0, 1.25), "laplace": (10.0, 1.60)}
CHOSEN = ("subsample", "directions", "batch_size", "step", "step_predicted", "epochs", "cached")
RIDGE_ROWS = 15_000  # NumPy's Cholesky crashes not far above on these machines


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


def ours(
    kernel: str, data: tuple[np.ndarray, ...], options: argparse.Namespace, device: str
) -> tuple[float, float]:
    """Fit, time and describe; the first fit is the warm-up. Seconds of the fit and of the
    prediction.
    """
    X, y, T, t = data
    bandwidth, target = CASES[kernel]
    steps = {
        name: getattr(options, name) for name in ("subsample", "directions", "batch_size", "step")
    }
    model = EigenProClassifier(
        kernel,
        bandwidth=bandwidth,
        solver="eigenpro",
        epochs=options.epochs,
        preconditioner=Preconditioner(**steps),
        compute=Compute(device=device, memory_limit=options.memory_limit),
        random_state=0,
    )
    model.fit(X, y).predict(T)
    times = [clock(lambda: model.fit(X, y)) for _ in range(options.repeats)]
    wall, cpu = (statistics.median(part) for part in zip(*times, strict=True))
    predict = clock(lambda: model.predict(T))[0]
    error, spread = (
        100 * np.mean(model.predict(T) != t),
        f"{min(times)[0]:.3f} to {max(times)[0]:.3f}",
    )
    print(f"{kernel} ({bandwidth:g}), n = {len(X):,}, {device}: error {error:.2f}%,", end=" ")
    print(f"fit {wall:.3f} s ({spread}; CPU {cpu:.2f} s), predict {predict:.3f} s")
    print("  " + ", ".join(f"{name} {model.facts_[name]}" for name in CHOSEN))
    print(f"  acceleration predicted {model.facts_['acceleration_predicted']:.0f},", end=" ")
    print(f"measured on a block outside the subsample {model.facts_['acceleration_measured']:.1f}")
    if device == "cuda":
        operations, epoch = len(X) ** 2 * X.shape[1], 4 * len(X) ** 2 / 4.8e12
        least = 3 * operations / 404e12 + model.epochs_ * epoch
        print(
            f"  target: at most 0.3 s to {target}%; the kernel matrix at 51 TFLOP/s (float32):"
            f" {operations / 51e12:.3f} s,",
            end=" ",
        )
        print(
            f"at 404/3 (three tf32 products): {3 * operations / 404e12:.3f} s; an epoch at 4.8"
            f" TB/s: {epoch:.4f} s;",
            end=" ",
        )
        print(f"the fit takes {wall / least:.1f} times the last two")
    else:
        operations, read = len(X) ** 2 * X.shape[1], 4 * len(X) ** 2 * model.epochs_
        flops, bandwidth = cpu_speed()
        print(
            f"  the kernel matrix at {flops / 1e9:.0f} GFLOP/s, measured: {operations / flops:.2f}"
            f" s; {model.epochs_}",
            end=" ",
        )
        print(f"epochs at {bandwidth / 1e9:.1f} GB/s, measured: {read / bandwidth:.2f} s;", end=" ")
        print(f"the fit takes {wall / (operations / flops + read / bandwidth):.1f} times both")
    return wall, predict


def cpu_speed() -> tuple[float, float]:
    """Operations a second of a float32 product of 3,000 × 3,000 matrices, and bytes a second of
    a sum over 400 MB.
    """
    import torch

    square, long = torch.ones(3000, 3000), torch.ones(10**8)
    products = min(clock(lambda: square @ square)[0] for _ in range(3))
    return 2 * 3000**3 / products, 4e8 / min(clock(long.sum)[0] for _ in range(3))


def peers(data: tuple[np.ndarray, ...], fit_seconds: float, predict_seconds: float) -> None:
    """KernelRidge and SVC with the Gaussian kernel of bandwidth 5, and our time as a share of
    theirs.
    """
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.svm import SVC

    X, y, T, t = data
    gamma = 1 / (2 * CASES["gaussian"][0] ** 2)
    signs = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    ridge, machine = (
        KernelRidge(alpha=1e-3, kernel="rbf", gamma=gamma),
        SVC(C=10.0, gamma=gamma, cache_size=2000),
    )
    for name, fit, predict in (
        ("KernelRidge", lambda: ridge.fit(X, signs), lambda: ridge.predict(T).argmax(axis=1)),
        ("SVC", lambda: machine.fit(X, y), lambda: machine.predict(T)),
    ):
        if name == "KernelRidge" and len(X) > RIDGE_ROWS:
            continue
        wall, cpu = clock(fit)
        start = time.perf_counter()
        error = 100 * np.mean(predict() != t)
        taken = time.perf_counter() - start
        print(
            f"{name}: error {error:.2f}%, fit {wall:.2f} s (CPU {cpu:.2f} s), predict"
            f" {taken:.2f} s;",
            end=" ",
        )
        print(
            f"ours takes {fit_seconds / wall:.2f} of it to fit, {predict_seconds / taken:.3f} to"
            " predict"
        )


def million(rows: int, columns: int = 100) -> None:
    """Seconds an epoch, from fits of one and of three epochs, and the memory they take."""
    import torch

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=rows)
    settings = {
        "bandwidth": 10.0,
        "solver": "eigenpro",
        "stopping": Stopping(tol=0.0),
        "random_state": 0,
        "compute": Compute(device="cuda"),
    }
    EigenProRegressor(epochs=1, **settings).fit(X[:100_000], y[:100_000])
    seconds = {}
    for epochs in (1, 3):
        torch.cuda.reset_peak_memory_stats()
        model = EigenProRegressor(epochs=epochs, **settings)
        seconds[epochs] = clock(lambda model=model: model.fit(X, y))[0]
        print(
            f"{rows:,} × {columns}, {epochs} epoch(s): fit {seconds[epochs]:.2f} s, mean squared"
            " error on the rows",
            end=" ",
        )
        print(
            f"{model.facts_['training_risk']:.3f}, {torch.cuda.max_memory_allocated() / 1e9:.1f} GB"
            " on the device"
        )
    epoch, operations = (seconds[3] - seconds[1]) / 2, 2 * rows**2 * columns
    print(
        f"an epoch: {epoch:.2f} s (target 6), {operations / epoch / 1e12:.0f} TFLOP/s of float32"
        " accuracy;",
        end=" ",
    )
    print(f"the device has 51 in float32, {790 / 3:.0f} as three float16 products")


def precision(data: tuple[np.ndarray, ...]) -> None:
    """The largest error of kernel values and of Kα against float64: fused, and by PyTorch's own
    float32.
    """
    import torch

    from surelearn.kernel.torch_functions import Evaluator

    X = data[0]
    for kernel in (Gaussian(bandwidth=5.0), Laplace(10.0)):
        plain, exact = (
            Evaluator(kernel, X, "cuda", "float32"),
            Evaluator(kernel, X, "cuda", "float64"),
        )
        some, alpha = plain.points[:3000], torch.randn(3000, 10, device="cuda")
        truth = exact.block(exact.points[:3000], exact.points[:3000])
        plain.points = some
        block = plain.block(some, some)
        for name, values, products in (
            ("fused", plain.gram(2.0**28), plain.times(some, some, alpha, 2.0**28)),
            ("float32", block, block @ alpha),
        ):
            off, far = (values - truth).abs(), (products - truth @ alpha.double()).abs().max()
            print(
                f"{kernel} {name}: values off by at most {off.max():.1e}, {off.mean():.1e} on"
                f" average; products {far:.1e}"
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--precision", action="store_true")
    parser.add_argument("--rows", type=int, nargs="+")
    parser.add_argument("--data", type=Path, default=MNIST)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epochs", type=int, help="5 on a GPU, 10 on the CPU")
    parser.add_argument("--no-peers", action="store_true")
    for name in ("subsample", "directions", "batch-size"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--step", type=float)
    parser.add_argument(
        "--memory-limit", type=float, help="bytes for kernel blocks; 60,000 rows are kept in 19.2e9"
    )
    parser.add_argument("--kernels", nargs="+", default=list(CASES), choices=list(CASES))
    options = parser.parse_args()
    options.epochs = options.epochs or (5 if options.cuda else 10)
    if options.cuda:
        import torch

        if not torch.cuda.is_available():
            print("no CUDA device here: leave --cuda out")
            return
    if options.million:
        million((options.rows or [1_000_000])[0])
        return
    if not options.data.exists():
        print(
            f"{options.data} is not here: give --data, an npz with x_train, y_train, x_test and"
            " y_test"
        )
        return
    if options.precision:
        precision(mnist(options.data, 60_000))
        return
    for rows in options.rows or [60_000 if options.cuda else 10_000]:
        data = mnist(options.data, rows)
        times = {
            kernel: ours(kernel, data, options, "cuda" if options.cuda else "cpu")
            for kernel in options.kernels
        }
        if not options.cuda and not options.no_peers:
            peers(data, *times.get("gaussian", next(iter(times.values()))))


if __name__ == "__main__":
    main()
