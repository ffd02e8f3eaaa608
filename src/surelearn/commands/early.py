"""The page while its sections are still being measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from surelearn.commands.out import named_out
from surelearn.files import absolute
from surelearn.terminal import ctrl_c, shorten

if TYPE_CHECKING:
    from surelearn.report import Audit

SHARE = 0.1  # of the time, at most, goes into pages that are not finished


class EarlyPage:
    """The folder from the verdict on: written as soon as the model is certified, and again when
    sections are finished, as often as a tenth of the time allows; at an interrupt `keep` adds the
    last ones.

    Nothing finished gives way to something unfinished: where ``out`` holds a finished audit, or files
    of these names that are no audit, the unfinished one stands in a folder beside it, whose name ends
    with ``-unfinished``, until it is finished and takes the place.

    Parameters
    ----------
    out : where the finished audit will be
    formats : of the page
    say_verdict : is given the first one
    tell : one line for people
    """

    def __init__(
        self,
        out: Path,
        formats: Sequence[str],
        say_verdict: Callable[[Audit], None],
        tell: Callable[[str], None],
    ) -> None:
        self._out, self._formats = out, formats
        self._say_verdict, self._tell = say_verdict, tell
        self._beside = beside(out)
        self._folder: Path | None = None
        self._paths: dict[str, str] = {}
        self._said = False
        self._latest: Audit | None = None  # known, but not written yet
        self._next = 0.0  # the earliest time to write again

    def __call__(self, known: Audit) -> None:
        """Write what is known; at first also say it."""
        if not self._said:
            self._said = True
            self._say_verdict(known)
            self._folder = self._place()
            if self._folder is None:
                return
            self._write(known, self._folder, model=True)
            count = len(known.unfinished)
            self._tell(
                f"page  {self._page()}, so far without {count} section{'s' * (count > 1)} that"
                f" {'are' if count > 1 else 'is'} being measured"
            )
        elif self._folder is not None:
            self._latest = known
            if time.monotonic() >= self._next:
                self._write(known, self._folder)

    def keep(self) -> None:
        """Write what is known and not written yet."""
        if self._latest is not None and self._folder is not None:
            self._write(self._latest, self._folder)

    def _write(self, known: Audit, folder: Path, *, model: bool = False) -> None:
        began = time.monotonic()
        with named_out():
            self._paths |= known.write(folder, self._formats, model=model)
        now = time.monotonic()
        self._latest, self._next = None, now + (now - began) / SHARE
        missing = shorten(", ".join(known.missing), 150)
        ctrl_c.left = f"{shorten(self._page())} is there, without {missing}"

    def finish(self, result: Audit) -> dict[str, str]:
        """Write the finished audit, and take away the unfinished one beside it."""
        from surelearn.persistence.folder import remove_folder
        from surelearn.report.audit import FILES

        if not self._said:
            self._say_verdict(result)  # nothing took long
        with named_out():
            written = self._folder == self._out
            paths = result.write(self._out, self._formats, model=not written)
        ctrl_c.left = ""
        if is_unfinished(self._beside):
            remove_folder(self._beside, FILES.values())
        return self._paths | paths if written else paths

    def _place(self) -> Path | None:
        """The folder, the one beside it, or none that is free."""
        from surelearn.persistence.folder import settle

        with named_out():
            settle(self._out)
        return next((one for one in (self._out, self._beside) if _is_free(one)), None)

    def _page(self) -> str:
        return self._paths.get("page", self._paths.get("text", str(self._folder)))


def beside(out: Path) -> Path:
    """Where an unfinished audit stands while ``out`` holds a finished one."""
    if out.name not in ("", "..", "."):
        return out.with_name(f"{out.name}-unfinished")
    place = absolute(out)
    return place.with_name(f"{place.name}-unfinished")


def is_unfinished(folder: Path) -> bool:
    """Whether the folder holds an audit that was interrupted, or is still being made."""
    from surelearn.documents import read_json
    from surelearn.report.document import FORMAT

    try:
        plain = read_json(folder / "audit.json")
    except (OSError, ValueError):
        return False
    known = isinstance(plain, dict) and plain.get("format") == FORMAT
    return known and bool(plain.get("unfinished"))


def _is_free(folder: Path) -> bool:
    """Whether an unfinished audit may be written there: nothing would be lost."""
    from surelearn.report.audit import FILES

    return is_unfinished(folder) or not any((folder / name).exists() for name in FILES.values())
