"""The one way to say no: what is lacking, and why, as a value."""

from __future__ import annotations

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


def in_words(key: str) -> str:
    """A key for people, where nothing better is known."""
    return key.replace("_", " ")
