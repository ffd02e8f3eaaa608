"""The main job, end to end: wall-clock time, peak memory and page size of whole audits on real
tables; with ``--sections``, each section's CPU seconds (one process, one thread) and what it bought;
with ``--verdict``, how soon the verdict is there.

    python benchmarks/bench_audit.py
    python benchmarks/bench_audit.py --verdict 5
    python benchmarks/bench_audit.py --sections sick letter --model "boosted trees"
"""

from __future__ import annotations

import argparse
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
SECTIONS_OF = ("sick", "letter", "california", "adult")


def whole_audits() -> None:
    """Print time, memory and size of whole audits by the command."""
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


def sections(names: list[str], model: str | None) -> None:
    """Print what each section of audits costs and what it bought, for some tables or those of 5,000
    rows; with one family of models, or that which is chosen.
    """
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    from _sections import print_sections, tables

    known = tables(DATA)
    for name in names or [name for name in known if name in SECTIONS_OF]:
        if not DATA.exists():
            print(f"{name}: skipped: the shared data are not here")
            continue
        source, options = known[name]()
        chosen = {} if model is None else {"models": [model]}
        print_sections(
            f"{name} ({len(source):,} × {source.shape[1] - 1})", source, **options, **chosen
        )


def verdicts(runs: int) -> None:
    """Print the seconds to the verdict of tables of several sizes, the imports apart."""
    from _verdict import TABLES

    print(f"{'table':<20} {'imports':>8} {'verdict after':>14}  (median, range)")
    for name in TABLES:
        times = []
        for _ in range(runs):
            worker = Path(__file__).with_name("_verdict.py")
            command = [sys.executable, str(worker), name]
            ended = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
            imported, seconds, chosen = ended.stdout.strip().split(" ", 2)
            times.append((float(imported), float(seconds)))
        first, then = (sorted(column) for column in zip(*times, strict=True))
        print(
            f"{name:<20} {first[runs // 2]:8.2f} {then[runs // 2]:14.2f} "
            f" ({then[0]:.2f} to {then[-1]:.2f}): {chosen}",
            flush=True,
        )


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--sections", nargs="*", metavar="TABLE", help="CPU seconds by section")
    asked.add_argument("--model", help="a candidate's name; by default the best is chosen")
    asked.add_argument("--verdict", type=int, metavar="RUNS", help="seconds to the verdict")
    given = asked.parse_args()
    if given.verdict is not None:
        verdicts(given.verdict)
    elif given.sections is None:
        whole_audits()
    else:
        sections(given.sections, given.model)
