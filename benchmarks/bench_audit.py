"""The main job, end to end: wall-clock time, peak memory and page size of whole audits on real
tables.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
AUDITS = {
    "breast cancer (569 × 30)": [],
    "titanic (891 × 11)": [DATA / "titanic.csv", "--target", "Survived"],
    "california housing (20,640 × 9)": [
        DATA / "california_housing.csv",
        "--target",
        "median_house_value",
    ],
    "adult (32,561 × 14, no header)": [DATA / "adult_train.csv", "--no-header", "--target", "-1"],
}

print(f"{'audit':<34} {'seconds':>8} {'CPU s':>8} {'peak MB':>8} {'page kB':>8}   verdict")
for name, arguments in AUDITS.items():
    if arguments and not Path(arguments[0]).exists():
        print(f"{name:<34} skipped: {Path(arguments[0]).name} is not here")
        continue
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "surelearn.cli",
            "audit",
            *map(str, arguments),
            "--out",
            f"{folder}/out",
            "--quiet",
        ]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        # a ledger of its own, so that a benchmark never spends the data's certify rows
        output = subprocess.run(  # noqa: S603
            [*command, "--ledger", f"{folder}/ledger.json"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
        seconds = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        page = Path(folder, "out", "report.html").stat().st_size / 1000
        print(
            f"{name:<34} {seconds:8.1f} {cpu:8.1f} {after.ru_maxrss / 1000:8.0f} {page:8.0f}  "
            f" {output.stdout.strip()}"
        )
