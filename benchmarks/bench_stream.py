"""Rows of text from disk beside Vowpal Wabbit: one pass, CPU time and peak memory, each in a
process of its own.

    python benchmarks/bench_stream.py             1,000,000 rows (about a minute, 700 MB in the temporary folder)
    python benchmarks/bench_stream.py --small     100,000 rows

Rows have 30 entries whose features follow Zipf's law, four decimals each, and labels of a linear
rule; the last tenth is held out. Both hash to 2²⁰ weights of 4 bytes, in one pass without a cache.
Vowpal Wabbit's format differs by a bar after the label: its file is written beside ours, which is
not counted. It runs with ``--sgd`` (plain steps, its fastest) and with its defaults (adaptive,
normalized steps). Imports and loading compiled code are stated apart. Vowpal Wabbit may be
installed anywhere on PYTHONPATH (``pip install vowpalwabbit``); without it ours is measured alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ENTRIES, FEATURES, BITS, CHUNK = 30, 10**6, 20, 10_000
MEMORY_MB, RATIO = 500, 1.0


def write_files(folder: Path, n: int) -> None:
    """The same rows for both, rows to fit and a tenth as many held out."""
    rng = np.random.default_rng(0)
    rule = rng.normal(size=FEATURES + 1)
    for part, count in (("fit", n), ("new", max(CHUNK, n // 10))):
        with (
            (folder / f"{part}.svm").open("w") as ours,
            (folder / f"{part}.vw").open("w") as theirs,
        ):
            for _ in range(count // CHUNK):
                indices = np.minimum(
                    float(FEATURES) ** rng.random((CHUNK, ENTRIES)), FEATURES
                ).astype(int)
                values = rng.random((CHUNK, ENTRIES)).round(4)
                labels = np.where(
                    (values * rule[indices]).sum(axis=1) + rng.normal(size=CHUNK) > 0, 1, -1
                )
                for label, js, vs in zip(
                    labels.tolist(), indices.tolist(), values.tolist(), strict=True
                ):
                    entries = " ".join(f"{j}:{v}" for j, v in zip(js, vs, strict=True))
                    ours.write(f"{label} {entries}\n")
                    theirs.write(f"{label} | {entries}\n")


def fit_ours(folder: Path) -> dict[str, Any]:
    """One pass of ours after compiled code was loaded by a file of two rows."""
    from surelearn.linear import SGD
    from surelearn.linear.logistic.learner import LogisticRegression
    from surelearn.linear.logistic.stream import read_rows

    start = time.process_time()
    (folder / "two.svm").write_text("1 1:1\n-1 2:1\n")
    model = LogisticRegression(
        epochs=1, regularization=1e-7, sgd=SGD(dtype="float32"), random_state=0
    )
    model.fit_file(folder / "two.svm", features=2**BITS, hashed=True)
    loading, start = time.process_time() - start, time.process_time()
    model.fit_file(folder / "fit.svm", features=2**BITS, hashed=True)
    seconds, peak = time.process_time() - start, peak_mb()
    rows = read_rows(folder / "new.svm", features=2**BITS, hashed=True)
    right, count = np.sum([(np.sum(model.predict(X) == y), y.size) for X, y in rows], axis=0)
    return {"seconds": seconds, "peak": peak, "loading": loading, "error": 1 - right / count}


def fit_theirs(folder: Path, *flags: str) -> dict[str, Any]:
    """One pass of Vowpal Wabbit's own driver, through its Python package."""
    from vowpalwabbit import Workspace  # type: ignore[import-not-found]

    start = time.process_time()
    fit = (
        f"-d {folder / 'fit.vw'} --loss_function logistic -b {BITS} --quiet --no_stdin"
        f" {' '.join(flags)}"
    )
    Workspace(fit).finish()
    seconds, peak = time.process_time() - start, peak_mb()
    # once more for the error, lest storing the model be counted
    Workspace(f"{fit} -f {folder / 'model'}").finish()
    test = (
        f"-t -i {folder / 'model'} -d {folder / 'new.vw'} -p {folder / 'scores'} --binary --quiet"
        " --no_stdin"
    )
    Workspace(test).finish()
    labels = [line.split(" ", 1)[0] for line in (folder / "new.vw").open()]
    error = np.mean(np.loadtxt(folder / "scores") != np.array(labels, dtype=float))
    return {"seconds": seconds, "peak": peak, "error": float(error)}


def peak_mb() -> float:
    """The most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


CONTESTANTS = {
    "LogisticRegression.fit_file": fit_ours,
    "Vowpal Wabbit, --sgd": lambda folder: fit_theirs(folder, "--sgd"),
    "Vowpal Wabbit, defaults": fit_theirs,
}


def in_a_child(name: str, folder: Path) -> dict[str, Any]:
    """Run one contestant in a fresh process, for its peak memory."""
    command = [sys.executable, __file__, "--child", name, "--folder", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - this file
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true", help="100,000 rows instead of 1,000,000")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(CONTESTANTS[options.child](Path(options.folder))))
        return
    n = 100_000 if options.small else 1_000_000
    there = importlib.util.find_spec("vowpalwabbit") is not None
    names = list(CONTESTANTS) if there else list(CONTESTANTS)[:1]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_files(folder, n)
        size = (folder / "fit.svm").stat().st_size / 1e6
        runs = {name: [] for name in names}
        for _ in range(options.repeats):
            for name in names:
                runs[name].append(in_a_child(name, folder))
    print(f"{n:,} rows, {size:.0f} MB of text, one pass")
    report(runs, size)
    if not there:
        print("  Vowpal Wabbit is not installed: not compared (pip install vowpalwabbit)")


def report(runs: dict[str, list[dict[str, Any]]], size: float) -> None:
    """Medians of each, and ratios of interleaved runs to the first, ours."""
    ours = next(iter(runs.values()))
    for name, found in runs.items():
        seconds = statistics.median(run["seconds"] for run in found)
        peak, error = max(run["peak"] for run in found), found[0]["error"]
        ratio = statistics.median(
            one["seconds"] / other["seconds"] for one, other in zip(ours, found, strict=True)
        )
        target = f" (target at most {RATIO:g})" if found is not ours else ""
        print(
            f"  {name:<30} {seconds:7.2f} s  {size / seconds:5.0f} MB/s  peak {peak:4.0f} MB  error"
            f" {error:.4f}",
            end="",
        )
        print(f"  ours/this {ratio:.3f}{target}")
    loading = statistics.median(run["loading"] for run in ours)
    print(
        f"  ours: loading compiled code {loading:.2f} s apart; peak memory target at most"
        f" {MEMORY_MB} MB"
    )


if __name__ == "__main__":
    main()
