"""How much code one audit runs: the functions and modules of surelearn that ``surelearn audit`` of
the demo data passes, in one process.

Run it as ``python benchmarks/count_flow.py``; arguments go to ``surelearn audit``. Functions are
told apart by file and first line; comprehensions, lambdas and modules' bodies are not counted.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

import surelearn
from surelearn.cli import main

ROOT = str(Path(surelearn.__file__).parent) + os.sep
QUICK = ["--jobs", "1", "--effort", "0.1", "--quiet"]
ran: set[CodeType] = set()


def keep(frame: FrameType, event: str, _: object) -> None:
    """Keep the code of every Python function that is called."""
    if event == "call":
        ran.add(frame.f_code)


with tempfile.TemporaryDirectory() as folder:
    places = ["--out", f"{folder}/out", "--ledger", f"{folder}/ledger"]
    arguments = ["audit", *sys.argv[1:], *QUICK, *places]
    threading.setprofile(keep)
    sys.setprofile(keep)
    try:
        main(arguments, standalone_mode=False)
    except SystemExit as ended:
        print(f"exit status {ended.code}")
    finally:
        sys.setprofile(None)
        threading.setprofile(None)

ours = {
    (code.co_filename, code.co_firstlineno)
    for code in ran
    if code.co_filename.startswith(ROOT) and not code.co_name.startswith("<")
}
files = Counter(file.removeprefix(ROOT) for file, _ in ours)
rooms = Counter(Path(file).parts[0].removesuffix(".py") for file in files.elements())
print(f"{len(ours):,} functions in {len(files):,} modules")
print("  ".join(f"{room} {count}" for room, count in rooms.most_common()))
