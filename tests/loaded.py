"""`surelearn` and `python` for shells: small programs that hand their arguments, folder, environment
and streams to a process which has loaded what commands load, and forks for each one. A shell's
commands are tested so without seconds of imports each; imports are tested elsewhere.
"""

import atexit
import gc
import json
import os
import runpy
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

PROGRAM = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect({address!r})
    request = [sys.argv, os.getcwd(), dict(os.environ)]
    socket.send_fds(asked, [b"?"], [0, 1, 2])
    asked.sendall(json.dumps(request).encode())
    asked.shutdown(socket.SHUT_WR)
    code = asked.recv(1)
sys.exit(code[0] if code else "the command was killed")
"""


@cache
def programs():
    """A folder for PATH in which ``surelearn`` and ``python`` are such programs, as long as this
    process lives.
    """
    folder = Path(tempfile.mkdtemp())  # a short name, as sockets need
    address = folder / "s"
    for name in RUN:
        path = folder / name
        path.write_text(PROGRAM.format(python=sys.executable, address=str(address)))
        path.chmod(0o755)
    served = subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", __file__, str(address)],
        stdin=subprocess.PIPE,  # it ends with this, and takes the folder away
        stdout=subprocess.DEVNULL,
    )
    atexit.register(served.communicate)
    limit = time.monotonic() + 120
    while not address.exists() and served.poll() is None and time.monotonic() < limit:
        time.sleep(0.02)
    assert address.exists()
    return folder


def serve(address):
    from sklearn.dummy import DummyClassifier

    import surelearn.auditing
    import surelearn.cli
    import surelearn.commands.audit  # noqa: F401
    from surelearn.persistence.archives import encode_archive

    encode_archive(DummyClassifier(), ())  # loads skops as saving a model does
    gc.collect()
    gc.freeze()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{address}.part")
    listening.listen()
    Path(f"{address}.part").rename(address)  # now it answers
    while True:
        heard, *_ = select.select([listening, sys.stdin], [], [])
        if sys.stdin in heard:
            shutil.rmtree(Path(address).parent)
            return
        asked, _ = listening.accept()
        _, streams, *_ = socket.recv_fds(asked, 1, 3)
        request = b"".join(iter(lambda: asked.recv(1 << 16), b""))  # noqa: B023 - at once
        child = os.fork()
        if child == 0:
            break
        for stream in streams:
            os.close(stream)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code >= 0:
            asked.sendall(bytes([code]))
        asked.close()
    listening.close()
    asked.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - to the end
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    (program, *arguments), folder, environment = json.loads(request)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os._exit(_ended(RUN[Path(program).name], arguments))


def _surelearn(arguments):
    from surelearn.cli import main

    sys.argv = ["surelearn", *arguments]
    main(arguments, "surelearn")


def _python(arguments):
    """A program in a file, or after ``-c``."""
    sys.path.insert(0, str(Path.cwd()))
    if arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        exec(arguments[1], {"__name__": "__main__"})  # noqa: S102 - it is the test's own
    else:
        sys.argv = list(arguments)
        runpy.run_path(arguments[0], run_name="__main__")


RUN = {"surelearn": _surelearn, "python": _python}


def _ended(run, arguments):
    """The exit code of a program, all of which was said; what it loaded need not be taken down."""
    code = 0
    try:
        run(arguments)
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)  # noqa: T201 - as Python does
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    serve(sys.argv[1])
