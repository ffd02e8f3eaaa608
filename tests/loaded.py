"""`surelearn` for shells: a small program that hands its arguments, folder, environment and
streams to a process which has loaded what commands load, and forks for each one. A shell's
commands are tested so without seconds of imports each; imports are tested elsewhere.
"""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

PROGRAM = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect({address!r})
    request = [sys.argv[1:], os.getcwd(), dict(os.environ)]
    socket.send_fds(asked, [b"?"], [0, 1, 2])
    asked.sendall(json.dumps(request).encode())
    asked.shutdown(socket.SHUT_WR)
    code = asked.recv(1)
sys.exit(code[0] if code else "the command was killed")
"""


@contextmanager
def program(folder, environment):
    """A folder for PATH in which ``surelearn`` is such a program, while the body runs."""
    address = folder / "s"
    served = subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", __file__, str(address)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    path = folder / "surelearn"
    path.write_text(PROGRAM.format(python=sys.executable, address=str(address)))
    path.chmod(0o755)
    try:
        limit = time.monotonic() + 120
        while not address.exists() and served.poll() is None and time.monotonic() < limit:
            time.sleep(0.02)
        assert address.exists()
        yield folder
    finally:
        served.kill()
        served.wait()


def serve(address):
    import skops.io  # noqa: F401

    import surelearn.auditing
    import surelearn.commands.audit  # noqa: F401
    from surelearn.cli import main

    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{address}.part")
    listening.listen()
    Path(f"{address}.part").rename(address)  # now it answers
    while True:
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
    arguments, folder, environment = json.loads(request)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["surelearn", *arguments]
    main(arguments, "surelearn")


if __name__ == "__main__":
    serve(sys.argv[1])
