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
    what : what is lacking, in a few words: "risk", "gradient", "leave-one-out"
    reason : one sentence that says why, and what would help
    theorem : the key of the theorem that does not apply, where it is a claim that is lacking
    """

    what: str
    reason: str
    theorem: str = ""

    def __str__(self) -> str:
        return f"no {self.what}: {self.reason}"
