"""How much code one audit runs: the functions and modules of surelearn that ``surelearn audit`` of
the demo data passes, in one process.

Run it as ``python benchmarks/count_flow.py``; arguments go to ``surelearn audit``. Functions are
told apart by file and first line. Comprehensions, lambdas, templates and the bodies of modules and
classes are not counted; functions that run only while modules are imported, such as decorators,
are counted apart: no row passes them.
"""

from __future__ import annotations

import inspect
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
passed: set[CodeType] = set()
imported: set[CodeType] = set()


def keep(frame: FrameType, event: str, _: object) -> None:
    """Keep the code of every function of ours that is called."""
    code = frame.f_code
    if event == "call" and code not in passed and is_function(code):
        (imported if in_an_import(frame) else passed).add(code)


def is_function(code: CodeType) -> bool:
    """Whether it is a named function of ours; the bodies of classes are not optimized."""
    named = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
    return bool(named) and code.co_filename.startswith(ROOT) and code.co_filename.endswith(".py")


def in_an_import(frame: FrameType | None) -> bool:
    """Whether it was called while a module was imported."""
    while frame is not None and frame.f_code.co_name != "_call_with_frames_removed":
        frame = frame.f_back
    return frame is not None


with tempfile.TemporaryDirectory() as folder:
    folders = ["--out", f"{folder}/out", "--ledger", f"{folder}/ledger"]
    arguments = ["audit", *sys.argv[1:], *QUICK, *folders]
    threading.setprofile(keep)
    sys.setprofile(keep)
    try:
        main(arguments, standalone_mode=False)
    except SystemExit as ended:
        print(f"exit status {ended.code}")
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def places(codes: set[CodeType]) -> set[tuple[str, int]]:
    return {(code.co_filename.removeprefix(ROOT), code.co_firstlineno) for code in codes}


ours = places(passed)
files = Counter(file for file, _ in ours)
rooms = Counter(Path(file).parts[0].removesuffix(".py") for file in files.elements())
print(f"{len(ours):,} functions in {len(files):,} modules;", end=" ")
print(f"{len(places(imported) - ours):,} more while modules are imported")
print("  ".join(f"{room} {count}" for room, count in rooms.most_common()))
