"""The one way to say no: what is lacking, and why, as a value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Lacking:
    """Something that is not there, and the reason: a claim that is not made, a gradient or closed
    form that is not known.

    A function that may have no answer returns ``Answer | Lacking``; whoever asks tells them apart
    with ``isinstance``.

    Attributes
    ----------
    what : what is lacking: the key of a quantity, "uniform_stability", where it is a claim; else a
        few words, "closed form"
    reason : one sentence that says why, and what would help
    theorem : the key of the theorem that does not apply, where it is a claim that is lacking
    label : ``what`` for people, by default with spaces
    """

    what: str
    reason: str
    theorem: str = ""
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or in_words(self.what))

    def __str__(self) -> str:
        return f"no {self.label}: {self.reason}"


def said_once(lacking: Iterable[Lacking]) -> list[tuple[str, str]]:
    """What is lacking and why, with what lacks for the same reason in one line.

    Examples
    --------
    >>> twice = [Lacking("risk", "no bound was stated"), Lacking("gain", "no bound was stated")]
    >>> said_once([*twice, twice[0]])
    [('risk, gain', 'no bound was stated')]
    """
    alike: dict[str, list[str]] = {}
    for item in lacking:
        alike.setdefault(item.reason, []).append(item.label)
    return [(", ".join(dict.fromkeys(labels)), reason) for reason, labels in alike.items()]


def in_words(key: str) -> str:
    """A key for people, where nothing better is known."""
    return key.replace("_", " ")
