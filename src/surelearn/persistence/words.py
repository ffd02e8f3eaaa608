"""How a file that is not as it should be is named in one line."""

from __future__ import annotations

from pathlib import Path

_NEVER_OPENED = (
    (b"\x80", "a pickle"),
    (b"\x1f\x8b", "compressed, perhaps by joblib"),
    (b"x\x9c", "compressed, perhaps by joblib"),
    (b"x\x5e", "compressed, perhaps by joblib"),
    (b"x\xda", "compressed, perhaps by joblib"),
    (b"BZh", "compressed, perhaps by joblib"),
    (b"\xfd7zXZ", "compressed, perhaps by joblib"),
    (b"PK", "a zip archive, perhaps from torch.save"),
)


def first_line(error: Exception) -> str:
    """What went wrong, in one line."""
    return shown(str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}")


def shown(text: str) -> str:
    """One line of what a file says, without what would move a terminal's cursor."""
    line = (text.splitlines() or ["?"])[0]
    return "".join(letter if letter.isprintable() else "?" for letter in line[:200])


def what_file(path: Path) -> str:
    """As `what`, for the first bytes of a file."""
    with path.open("rb") as file:
        return what(file.read(16))


def what(content: bytes) -> str:
    """What a file seems to be that is not ours."""
    for magic, what in _NEVER_OPENED:
        if content.startswith(magic):
            return f"{what}, which could run code and is never opened"
    if content.lstrip()[:1] in (b"{", b"["):
        return "JSON text"
    return "damaged, or something else that is never opened"
