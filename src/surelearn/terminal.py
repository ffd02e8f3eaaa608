"""How a command talks and ends: errors in one sentence, exit codes, Ctrl-C."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
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
    """Ctrl-C ends at once while nothing is under way, then raises a KeyboardInterrupt and remembers
    it.

    Inside an import Python may lose a KeyboardInterrupt, or pass it on as an ImportError.
    """

    under_way = False
    pressed = False

    def __call__(self, *_: Any) -> None:  # noqa: D102 - a signal handler
        self.pressed = True
        if not self.under_way:
            click.echo(_INTERRUPTED, err=True)
            _exit(130)
        raise KeyboardInterrupt

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Where Python's own handler would hear it."""
        self.under_way = self.pressed = False
        if threading.current_thread() is not threading.main_thread() or (
            signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        ):
            yield
            return
        signal.signal(signal.SIGINT, self)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)


_INTERRUPTED = "interrupted; run the same command to go on from here"
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
        _end(_INTERRUPTED, 130)
    except click.UsageError as error:
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            raise
        _end(error.format_message(), 2)
    except Exception as error:
        if ctrl_c.pressed:
            _end(_INTERRUPTED, 130)
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
