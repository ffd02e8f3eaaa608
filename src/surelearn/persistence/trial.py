"""What compiled code reads is tried out in a process of its own first: what its own checks do not
find ends that process, not this one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

from surelearn.processes import safe_path

_SECONDS = 300
_PATH = "import json, sys\nsys.path[:] = json.loads(sys.argv[1])\n"


def tried(script: str, content: bytes, library: str) -> bytes:
    """What a script of ours writes, given the content on its standard input, in an empty folder.

    Parameters
    ----------
    script : Python code, a text of ours
    content : of the file, never part of the code
    library : which reads it, for the sentence

    Raises
    ------
    ValueError
        if the script fails, or its process is ended
    """
    with safe_path(), tempfile.TemporaryDirectory() as empty:
        try:
            done = subprocess.run(  # noqa: S603 - this Python, and a text of ours
                [sys.executable, "-c", _PATH + script, json.dumps(sys.path)],
                input=content,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                cwd=empty,
            )
        except subprocess.TimeoutExpired:
            raise ValueError(
                f"{library} does not read it: it took more than {_SECONDS} seconds"
            ) from None
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        last = (lines or ["it ended the process that tried it"])[-1]
        raise ValueError(f"{library} does not read it: {last}")
    return done.stdout
