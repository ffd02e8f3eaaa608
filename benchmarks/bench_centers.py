"""Kernel machine on few centers, streamed from Parquet, in a process of its own: time a pass,
error, peak memory.

    python benchmarks/bench_centers.py                            100,000 × 100, 5,000 centers (a few minutes on 2 cores)
    python benchmarks/bench_centers.py --rows 1000000 --centers 20000 [--cuda]
    python benchmarks/bench_centers.py --mnist                    MNIST's first 20,000 rows: 2,000 and 5,000 centers

Synthetic rows lie near a subspace of ten dimensions; their targets have noise of variance ¼. Errors
are those of 5,000 new rows against the targets without noise, as shares of their variance. Beside
it stands the full model of the first ``--full`` rows, since that of all rows does not fit. The file
is Parquet where pyarrow is installed, else a pair of mapped arrays. Peak memory is that of the
fitting process: PyTorch, the reader and the model together.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

CHUNK, NOISE, MEMORY_GB = 20_000, 0.5, 4.0
DATA = Path(__file__).parent / "../../shared/data/mnist.npz"


def draw(rng: np.random.Generator, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows near a subspace of ten dimensions, and their targets without noise."""
    fixed = np.random.default_rng(1)
    Z = rng.standard_normal((rows, 10), dtype=np.float32)
    X = Z @ fixed.standard_normal((10, columns), dtype=np.float32) / np.float32(10**0.5)
    X += 0.1 * rng.standard_normal((rows, columns), dtype=np.float32)
    return X, np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] + np.cos(3 * Z[:, 3]) + np.abs(Z[:, 4])


def pieces(rows: int, columns: int) -> Any:
    """Rows and noisy targets, a chunk at a time."""
    rng = np.random.default_rng(0)
    for start in range(0, rows, CHUNK):
        X, y = draw(rng, min(CHUNK, rows - start), columns)
        yield X, y + NOISE * rng.standard_normal(len(y))


def write(folder: Path, rows: int, columns: int) -> None:
    """The rows as rows.parquet, or as X.npy and y.npy without pyarrow."""
    if importlib.util.find_spec("pyarrow") is None:
        X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (rows, columns))
        y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.float64, (rows,))
        for i, (some, targets) in enumerate(pieces(rows, columns)):
            X[i * CHUNK : i * CHUNK + len(some)], y[i * CHUNK : i * CHUNK + len(some)] = (
                some,
                targets,
            )
        return
    import pyarrow as pa
    from pyarrow import parquet

    names = [f"x{j}" for j in range(columns)] + ["y"]
    writer = None
    for X, y in pieces(rows, columns):
        table = pa.table([*(pa.array(column) for column in X.T), pa.array(y)], names=names)
        writer = writer or parquet.ParquetWriter(folder / "rows.parquet", table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def fit(folder: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """What the process of its own does."""
    import torch

    from surelearn.kernel.centers import CenterOptions, fit_centers
    from surelearn.kernel.functions import Gaussian
    from surelearn.kernel.streams import ArrayRows, ParquetRows
    from surelearn.kernel.torch_functions import Evaluator

    file = folder / "rows.parquet"
    maps = (
        []
        if file.exists()
        else [np.load(folder / name, mmap_mode="r") for name in ("X.npy", "y.npy")]
    )
    stream = ParquetRows(file, "y") if file.exists() else ArrayRows(*maps)
    kernel = Gaussian(bandwidth=asked.bandwidth * stream.d**0.5)
    device = "cuda" if asked.cuda else "cpu"
    options = CenterOptions(
        asked.centers,
        passes=asked.passes,
        device=device,
        memory_limit=asked.memory * 1e9,
        sample=asked.sample,
    )
    times: list[float] = []
    start = time.perf_counter()

    def progress(done: int, total: int) -> None:
        if done % (total // asked.passes) == 0:
            times.append(time.perf_counter() - start)

    fitted = fit_centers(kernel, stream, options, np.random.RandomState(0), progress=progress)
    if asked.cuda:
        torch.cuda.synchronize()
    seconds, peak = (
        time.perf_counter() - start,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    )
    X, f = draw(np.random.default_rng(2), 5000, stream.d)
    evaluator = Evaluator(kernel, fitted.centers, device, "float32")
    alpha = torch.from_numpy(fitted.alpha).to(evaluator.device, evaluator.dtype)
    values = (
        evaluator.times(evaluator.rows(X), evaluator.points, alpha, 2.0**26)[:, 0].cpu().numpy()
    )
    full = (
        full_error(kernel, stream.take(np.arange(min(asked.full, stream.n))), X, f, device)
        if asked.full
        else None
    )
    gpu = torch.cuda.max_memory_allocated() / 1e9 if asked.cuda else None
    return {
        "seconds": seconds,
        "times": times,
        "cpu": time.process_time(),
        "error": float(((values - f) ** 2).mean() / f.var()),
        "full": full,
        "peak_gb": peak,
        "gpu_gb": gpu,
        "facts": fitted.facts,
    }


def full_error(kernel: Any, rows: Any, X: np.ndarray, f: np.ndarray, device: str) -> float:
    """The error of the model with every one of these rows as a center."""
    from surelearn import kernel as room

    model = room.EigenProRegressor(
        kernel,
        compute=room.Compute(device=device),
        epochs=20,
        stopping=room.Stopping(validation_fraction=0.05),
        random_state=0,
    )
    values = model.fit(rows[0], rows[1][:, 0]).predict(X)
    return float(((values - f) ** 2).mean() / f.var())


def mnist(cuda: bool) -> None:
    """Wrong labels of 10,000 test rows, after a fit to 20,000."""
    from surelearn.kernel import Compute, EigenProClassifier
    from surelearn.kernel.centers import CenterOptions, fit_centers
    from surelearn.kernel.functions import Gaussian
    from surelearn.kernel.streams import ArrayRows

    data = np.load(DATA)
    X, y = data["x_train"][:20_000].reshape(20_000, -1) / np.float32(255), data["y_train"][:20_000]
    new, labels = data["x_test"].reshape(10_000, -1) / np.float32(255), data["y_test"]
    kernel, device = Gaussian(bandwidth=5.0), "cuda" if cuda else "cpu"
    start = time.process_time(), time.perf_counter()
    model = EigenProClassifier(kernel, compute=Compute(device=device), random_state=0).fit(X, y)
    report_mnist("all 20,000 rows", float((model.predict(new) != labels).mean()), start)
    for p in (2000, 5000):
        start = time.process_time(), time.perf_counter()
        options = CenterOptions(p, device=device, classify=True)
        fitted = fit_centers(
            kernel, ArrayRows(X, y, classes=range(10)), options, np.random.RandomState(0)
        )
        parts = (kernel(part, fitted.centers) @ fitted.alpha for part in np.array_split(new, 10))
        guesses = np.concatenate([part.argmax(1) for part in parts])
        report_mnist(
            f"{p:,} centers, {fitted.facts['passes']} passes",
            float((guesses != labels).mean()),
            start,
        )


def report_mnist(name: str, error: float, start: tuple[float, float]) -> None:
    """One line."""
    cpu, wall = time.process_time() - start[0], time.perf_counter() - start[1]
    print(f"  {name:<28} {error:7.2%} wrong   {cpu:7.1f} s CPU  {wall:7.1f} s")


def main() -> None:
    """Parse the options and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--centers", type=int, default=5000)
    parser.add_argument("--passes", type=int, default=6)
    parser.add_argument("--sample", type=int)
    parser.add_argument(
        "--bandwidth", type=float, default=1.5, help="in units of the square root of the columns"
    )
    parser.add_argument("--memory", type=float, default=2.8, help="memory_limit in GB")
    parser.add_argument(
        "--full", type=int, default=10_000, help="rows of the full model beside it; 0: none"
    )
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--mnist", action="store_true")
    parser.add_argument(
        "--data", type=Path, help="a folder for the rows, kept; else a temporary one"
    )
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(fit(asked.data, asked)))
    elif asked.mnist:
        mnist(asked.cuda)
    else:
        with tempfile.TemporaryDirectory() as folder:
            report(asked, asked.data or Path(folder))


def report(asked: argparse.Namespace, folder: Path) -> None:
    """Write the rows unless they are there, fit in a process of its own, print."""
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        write(folder, asked.rows, asked.columns)
    command = [sys.executable, __file__, *sys.argv[1:], "--child", "--data", str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    found = json.loads(done.stdout.splitlines()[-1])
    facts, times = found["facts"], found["times"]
    each = ", ".join(f"{b - a:.1f}" for a, b in itertools.pairwise(times))
    print(
        f"{facts['n']:,} × {asked.columns}, {facts['centres']:,} centers, sample"
        f" {facts['sample']:,}, {facts['device']}"
    )
    print(
        f"  {found['seconds']:.1f} s in all, {facts['passes']} passes ({facts['stopped']}); until"
        " the first pass is done"
    )
    print(f"  {times[0]:.1f} s, then a pass each: {each or 'none'} s; CPU {found['cpu']:.0f} s")
    beside = (
        ""
        if found["full"] is None
        else f"; full model of {min(asked.full, facts['n']):,} rows {found['full']:.4f}"
    )
    print(
        f"  error {found['error']:.4f}{beside}; training risk {facts['training_risk']:.4f} (noise"
        f" {NOISE**2:g})"
    )
    gpu = "" if found["gpu_gb"] is None else f", {found['gpu_gb']:.2f} GB on the device"
    print(
        f"  peak memory {found['peak_gb']:.2f} GB (at most {MEMORY_GB:g}){gpu}, preconditioner"
        f" {facts['preconditioner']}"
    )


if __name__ == "__main__":
    main()
