"""Rows per second and core of `surelearn certify` in one pass over Parquet, and its peak memory.

    python benchmarks/bench_certify.py              20 and 100 million rows (about two minutes)
    python benchmarks/bench_certify.py --small      2 and 10 million rows
    python benchmarks/bench_certify.py --rows 1000000000

Each case is certified in a process of its own with one thread, at two lengths: labels and answers of
ten classes as dictionaries, the same by a third column (`--slice`), passes as booleans, grades as
doubles, and the same in sorted groups of five (`--group`). CPU seconds are those of the whole
certificate of the longer file: hashing, the search of its first rows and the page included, imports
and compiled code not (the shorter file is certified before). Memory is the peak of the process,
whichever of both files it certifies after that: it must not grow. The limit is what decoding alone
takes (pyarrow's batches of the same columns, thrown away) and what SHA-256 takes. The files, some
3 bytes per row, lie in the temporary folder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

GOAL, GROUP = 20e6, 1_000_000
CASES: dict[str, dict[str, Any]] = {
    "counts": {"truth": "label", "answer": "predicted"},
    "counts, sliced": {"truth": "label", "answer": "predicted", "slices": "topic"},
    "passes": {"passed": "passed"},
    "grades": {"grade": "grade", "loss_range": (0.0, 1.0)},
    "grades, in groups": {"grade": "grade", "loss_range": (0.0, 1.0), "group": "talk"},
}


def write(path: Path, rows: int) -> None:
    """A file whose row groups differ, a group at a time."""
    names = pa.array([f"class {i}" for i in range(10)])
    topics = pa.array(["news", "law", "code", "poetry"])
    writer = None
    for start in range(0, rows, GROUP):
        rng, n = np.random.default_rng(start), min(GROUP, rows - start)
        truth = rng.integers(0, 10, n, dtype=np.int32)
        said = np.where(rng.random(n) < 0.1, rng.integers(0, 10, n, dtype=np.int32), truth)
        topic = rng.integers(0, 4, n, dtype=np.int32)
        table = pa.table(
            {
                "label": pa.DictionaryArray.from_arrays(truth, names),
                "predicted": pa.DictionaryArray.from_arrays(said.astype(np.int32), names),
                "topic": pa.DictionaryArray.from_arrays(topic, topics),
                "passed": rng.random(n) < 0.9,
                "grade": rng.integers(0, 101, n) / 100,
                "talk": (start + np.arange(n)) // 5,
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def certified(short: str, path: str, case: str) -> dict[str, float]:
    """CPU seconds and peak memory of one certificate, in this process."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    from surelearn.auditing.answers import audit_answers

    audit_answers(short, one_pass=True, ledger=False, **CASES[case])
    start = time.process_time()
    made = audit_answers(path, one_pass=True, ledger=False, **CASES[case])
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "peak": peak, "rows": made.rows}


def limits(path: str, columns: list[str]) -> tuple[float, float]:
    """CPU seconds to decode columns, and to hash the file."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    texts = [name for name in columns if name in ("label", "predicted", "topic")]
    start = time.process_time()
    file = pq.ParquetFile(path, read_dictionary=texts, buffer_size=2**20)
    for _ in file.iter_batches(1 << 20, columns=columns, use_threads=False):
        pass
    middle = time.process_time()
    with open(path, "rb") as stream:
        hashlib.file_digest(stream, "sha256")
    return middle - start, time.process_time() - middle


def in_a_process(short: Path, path: Path, case: str) -> dict[str, float]:
    """As `certified`, without what this process holds."""
    command = [sys.executable, __file__, "--one", str(short), str(path), "--case", case]
    done = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603
    return json.loads(done.stdout)


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--one", nargs=2)
    parser.add_argument("--case", default="counts")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(certified(*given.one, given.case)))
        return
    rows = 10_000_000 if given.small else given.rows
    with tempfile.TemporaryDirectory() as folder:
        short, long = Path(folder) / "short.parquet", Path(folder) / "long.parquet"
        write(short, rows // 5)
        write(long, rows)
        size = long.stat().st_size / rows
        print(f"{rows // 5:,} and {rows:,} rows of 6 columns, {size:.2f} bytes per row, one thread")
        for case, asked in CASES.items():
            few, many = in_a_process(short, short, case), in_a_process(short, long, case)
            rate = many["rows"] / many["seconds"]
            columns = [one for one in asked.values() if isinstance(one, str)]
            decoding, hashing = limits(str(long), columns)
            print(
                f"  {case:<18} {rate / 1e6:7.1f} million rows/s and core"
                f"   {many['seconds']:6.2f} s (shorter {few['seconds']:.2f} s)"
                f"   decoding {decoding / rows * 1e9:5.2f} + hashing {hashing / rows * 1e9:5.2f}"
                f" of {1e9 / rate:5.2f} ns/row   peak {few['peak']:.0f} and {many['peak']:.0f} MB"
                f"{'' if rate >= GOAL or 'counts' not in case else '   BELOW 20 MILLION'}"
            )


if __name__ == "__main__":
    main()
