"""Commands as processes of their own, which are killed and interrupted as a user does it.

They are forked from one process that has loaded what an audit loads: of the three seconds that a
command of these tests takes, most would be imports. What is tested while modules load, and
what starts workers, is started as the program is.
"""

import os
import signal
import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path

SERVER = get_context("forkserver")
SERVER.set_forkserver_preload(
    [
        "surelearn.cli",
        "surelearn.auditing",
        "surelearn.commands.audit",
        "surelearn.persistence.archives",
        __name__,
    ]
)


class Forked:
    """A command under way, with the part of `subprocess.Popen` that the tests use."""

    def __init__(self, arguments, fatal=None):
        said = tempfile.mkdtemp()
        self._said = [Path(said, name) for name in ("stdout", "stderr")]
        for path in self._said:
            path.touch()
        self._process = SERVER.Process(
            target=_command,
            args=(arguments, Path.cwd(), dict(os.environ), self._said, fatal),
            daemon=True,  # it starts no workers, and ends with the tests
        )
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self._process.exitcode

    def kill(self):
        self._process.kill()

    def communicate(self, timeout):
        self._process.join(timeout)
        assert self._process.exitcode is not None, "it does not end"
        return tuple(path.read_text(encoding="utf-8") for path in self._said)


def _command(arguments, folder, environment, said, fatal):
    os.setsid()  # Ctrl-C reaches it alone
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.dont_write_bytecode = True
    for stream, path in zip((sys.stdout, sys.stderr), said, strict=True):
        with path.open("wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    if fatal is not None:
        _dies_before(fatal)
    from surelearn.cli import main

    main(arguments, "surelearn")


def _dies_before(victim):
    """Killed at the moment at which a file of this name would be put in its place."""
    replace = os.replace

    def fatal(source, target):
        if str(target).endswith(victim):
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    os.replace = fatal
