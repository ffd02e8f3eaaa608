"""How a command talks and ends: errors in one sentence, exit codes, Ctrl-C."""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import click

from surelearn.plain import one_sentence, printable
from surelearn.processes import safe_path


class Commands(click.Group):
    """Commands whose errors, click's own too, are one sentence."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:  # noqa: D102 - click's
        with _one_sentence():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: D102 - click's
        with _one_sentence():
            return super().invoke(ctx)


class CtrlC:
    """Ctrl-C, and a request to end (SIGTERM), end at once while nothing is under way, then raise a
    KeyboardInterrupt and are remembered.

    Inside an import Python may lose a KeyboardInterrupt, or pass it on as an ImportError; other
    people's code may catch it. `again` raises what came and got lost.

    Attributes
    ----------
    under_way : whether there is something to keep
    pressed : whether it came
    left : what is there, and what is missing from it, in words for the last sentence
    code : the exit code, 128 and the signal's number
    """

    under_way = False
    pressed = False
    left = ""
    code = 130

    def __call__(self, number: int = signal.SIGINT, *_: Any) -> None:  # noqa: D102 - a handler
        self.pressed, self.code = True, 128 + number
        if not self.under_way:
            click.echo(self.sentence, err=True)
            _exit(self.code)
        raise KeyboardInterrupt

    def again(self) -> None:
        """Raise an interrupt that came and got lost."""
        if self.pressed:
            raise KeyboardInterrupt

    @property
    def sentence(self) -> str:
        """What is said at the end."""
        left = f"{self.left}; " if self.left else ""
        return f"interrupted; {left}run the same command to go on from here"

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Where Python's own handler would hear it; SIGTERM where it would just end the process."""
        self.under_way = self.pressed = False
        self.left, self.code = "", 130
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        own = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        mine = {number: how for number, how in own.items() if signal.getsignal(number) is how}
        for number in mine:
            signal.signal(number, self)
        try:
            yield
        finally:
            for number, how in mine.items():
                signal.signal(number, how)


_exit = os._exit
ctrl_c = CtrlC()


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Bad input ends in one sentence and exit code 2; an interrupt in 130, with nothing half
    written.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ≤ shows ?
    try:
        with ctrl_c.heard(), safe_path():
            yield
    except KeyboardInterrupt:
        _end(ctrl_c.sentence, ctrl_c.code)
    except click.UsageError as error:
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            raise
        _end(error.format_message(), 2)
    except Exception as error:
        if ctrl_c.pressed:
            _end(ctrl_c.sentence, ctrl_c.code)
        if isinstance(error, MemoryError):
            _end(
                "there is not enough memory for this: give fewer rows or columns, or fewer --jobs",
                2,
            )
        if isinstance(error, BrokenExecutor):
            _end(
                "the worker processes ended again and again: out of memory, or the model ends them;"
                " try --jobs 1",
                2,
            )
        from surelearn.jobs import TaskError

        known = isinstance(error, ValueError | TypeError | OSError | TaskError) and not isinstance(
            error, BrokenPipeError
        )
        if not known or os.environ.get("SURELEARN_DEBUG"):
            raise
        if isinstance(error, OSError) and error.strerror and error.filename:
            _end(f"{error.filename} cannot be used: {error.strerror}", 2)
        _end(str(error), 2)


@contextmanager
def no_exit(what: str) -> Iterator[None]:
    """Code of others that ends the program, by `sys.exit` or `os._exit`, is refused: it must
    not pass for success.
    """
    process, before = os.getpid(), os._exit

    def refuse(code: int) -> NoReturn:
        if os.getpid() == process:  # else a forked child, which ends like this
            click.echo(
                f"{what} ended the program (exit code {code}): it must return or raise instead",
                err=True,
            )
            code = 2
        _exit(code)

    os._exit = refuse  # type: ignore[assignment]
    try:
        yield
    except SystemExit as error:
        raise ValueError(
            f"{what} ended the program (SystemExit: {error.code!r:.80}): it must return or raise"
        ) from None
    finally:
        os._exit = before


def _end(sentence: str, code: int) -> NoReturn:
    click.echo(one_sentence(sentence), err=True)
    sys.exit(code)


def run(main: Callable[[], object]) -> None:
    """A command as a process of its own: one that was refused ends as soon as all is said.

    Libraries leave threads that read ahead, and when C++ takes its objects down at exit one of them
    may end the process with "terminate called without an active exception" and exit code 134, after
    the sentence. So what Python registered for the end is run here (worker processes are told, files
    flushed), and the rest of the interpreter is not taken down.
    """
    try:
        main()
    except SystemExit as end:
        if end.code != 2:
            raise
        atexit._run_exitfuncs()  # pyright: ignore[reportAttributeAccessIssue]
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # closed, or nobody reads it
                stream.flush()
        _exit(2)


def say(line: str) -> None:
    """One line, whatever the names in it: nothing from the data reaches the terminal as a
    command.
    """
    click.echo(printable(line))


def say_aside(line: str) -> None:
    """One line beside the output proper."""
    click.echo(printable(line), err=True)


def shorten(name: object, longest: int = 80) -> str:
    """A name from the data, not too long for a line."""
    name = str(name)
    return name if len(name) <= longest else f"{name[: longest - 1]}…"
