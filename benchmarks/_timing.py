"""Interleaved timing of several functions in one run: CPU seconds, medians, and ratios to the
first.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

from threadpoolctl import threadpool_limits

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
threadpool_limits(1)  # also where NumPy was loaded before


def compare(
    title: str, contestants: dict[str, Callable[[], object]], repeats: int = 5, note: str = ""
) -> None:
    """Run every contestant in turn, ``repeats`` times; print median, range and the ratio to the
    first, ours.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for run in contestants.values():
        run()  # caches and lazy imports
    for _ in range(repeats):
        for name, run in contestants.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    ours = statistics.median(next(iter(times.values())))
    print(f"{title}{f'  ({note})' if note else ''}")
    for name, seconds in times.items():
        median = statistics.median(seconds)
        spread = f"{min(seconds):.4f}–{max(seconds):.4f}"
        print(
            f"  {name:<44} {median:9.4f} s  [{spread}]  ours/this {ours / max(median, 1e-9):8.3f}"
        )
