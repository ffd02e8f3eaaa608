"""`surelearn` and `python` as processes of their own without seconds of imports each: one process for
each test worker has loaded what commands load, and forks for each one. What is tested while modules
load is started as the program is.
"""

import atexit
import gc
import json
import os
import runpy
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

CLIENT = """
import json, os, socket, struct, sys

def ask(address, words, streams, before=""):
    asked = socket.socket(socket.AF_UNIX)
    asked.connect(address)
    request = json.dumps([words, os.getcwd(), dict(os.environ), before]).encode()
    socket.send_fds(asked, [struct.pack("!i", len(request))], streams)
    asked.sendall(request)
    return asked

def told(asked):
    said = asked.recv(4, socket.MSG_WAITALL)
    return struct.unpack("!i", said)[0] if len(said) == 4 else -9
"""
PROGRAM = """#!{python} -SE
{client}
asked = ask({address!r}, sys.argv, [0, 1, 2])
told(asked)
code = told(asked)
sys.exit(code if code >= 0 else "the command was killed")
"""
exec(CLIENT)  # noqa: S102 - ours


@cache
def programs():
    """A folder for PATH in which ``surelearn`` and ``python`` are small programs that hand their
    arguments, folder, environment and streams to the loaded process.
    """
    folder = Path(tempfile.mkdtemp())  # a short name, as sockets need
    address = folder / "s"
    for name in RUN:
        path = folder / name
        path.write_text(PROGRAM.format(python=sys.executable, client=CLIENT, address=str(address)))
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


class Forked:
    """A command under way in this folder and environment, with the part of `subprocess.Popen` that
    the tests use. It has a session of its own, and ends with this object.

    Parameters
    ----------
    words : the program, ``surelearn`` or ``python``, and its arguments
    before : code that its process runs first
    """

    def __init__(self, words, before=""):
        self._said = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]  # noqa: SIM115
        with open(os.devnull) as nothing:
            streams = [stream.fileno() for stream in (nothing, *self._said)]
            self._asked = ask(str(programs() / "s"), words, streams, before)  # noqa: F821
        self.pid = told(self._asked)  # noqa: F821
        self.returncode = None

    def poll(self, timeout=0):
        if self.returncode is None and select.select([self._asked], [], [], timeout)[0]:
            self.returncode = told(self._asked)  # noqa: F821
        return self.returncode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout):
        assert self.poll(timeout) is not None, "it does not end"
        self._asked.close()
        return tuple(map(_read, self._said))


def _read(file):
    with file:
        file.seek(0)
        return file.read().decode()


# ---- the loaded process


def serve(address):
    from sklearn.dummy import DummyClassifier

    import surelearn.auditing
    import surelearn.cli
    import surelearn.commands.audit  # noqa: F401
    from surelearn.persistence.archives import encode_archive

    encode_archive(DummyClassifier(), ())  # loads skops as saving a model does
    gc.collect()
    gc.freeze()  # at their end, too, processes do not search what was loaded here
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
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
        if os.fork() == 0:
            listening.close()
            break
        asked.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _answer(asked)


def _answer(asked):
    """Fork, tell the process's number, and when it has ended its exit code."""
    size, streams, *_ = socket.recv_fds(asked, 4, 3)
    request = json.loads(asked.recv(struct.unpack("!i", size)[0], socket.MSG_WAITALL))
    child = os.fork()
    if child == 0:
        asked.close()
        _run(streams, *request)
    for stream in streams:
        os.close(stream)
    asked.sendall(struct.pack("!i", child))
    ended = 0
    while not ended:
        ended, status = os.waitpid(child, os.WNOHANG)
        if not ended and select.select([asked], [], [], 0.01)[0]:  # whoever asked is gone
            os.kill(child, signal.SIGKILL)
    with asked:
        asked.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _run(streams, words, folder, environment, before):
    os.setsid()  # Ctrl-C reaches it alone
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - to the end
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    exec(before, {})  # noqa: S102 - the test's own
    RUN[Path(words[0]).name](words[1:])
    sys.exit()


def _surelearn(arguments):
    from surelearn.cli import main

    sys.argv = ["surelearn", *arguments]
    main(arguments, "surelearn")


def _python(arguments):
    """A program in a file, or after ``-c``."""
    sys.path.insert(0, str(Path.cwd()))
    if arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        exec(arguments[1], {"__name__": "__main__"})  # noqa: S102 - the test's own
    else:
        sys.argv = list(arguments)
        runpy.run_path(arguments[0], run_name="__main__")


RUN = {"surelearn": _surelearn, "python": _python}


if __name__ == "__main__":
    serve(sys.argv[1])
