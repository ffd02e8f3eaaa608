"""Facts: what happened, as frozen data that theorems read; samples among them stay unpublished."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from surelearn.claim import Claim, Theorem
from surelearn.documents import checked
from surelearn.plain import (
    FrozenDict,
    Withheld,
    freeze,
    from_plain,
    to_plain,
)

KEPT_APART = "losses per row are kept apart from what is published, beside the ledger"
# Facts and inputs of theorems with one number per row or group.
_SAMPLES = ("losses", "group_losses", "means", "residuals", "scores", "weights")
TOLERANCE = 1e-9  # of floats that are compared again


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What happened, as frozen data: theorems read facts, and a better theorem can read them again
    later.

    Attributes
    ----------
    subject : the model in words, ``LogisticRegression(C=0.1)``
    setting : how the facts came about: "checked on 171 rows it had not seen"
    record : the key of the learner's record that ``values`` are the fields of, "ridge/1"; "" for a
        measurement
    hashes : ``sha256:…`` of the model and of the rows
    options : what was asked for and is needed to measure again
    values : named numbers and samples
    """

    subject: str
    setting: str
    record: str = ""
    hashes: Mapping[str, str] = field(default_factory=FrozenDict)
    options: Mapping[str, Any] = field(default_factory=FrozenDict)
    values: Mapping[str, Any] = field(default_factory=FrozenDict)

    def __post_init__(self) -> None:
        for name in ("hashes", "options", "values"):
            object.__setattr__(self, name, freeze(getattr(self, name)))

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def claim(self, theorem: Theorem[..., Any], read: Mapping[str, str], **inputs: Any) -> Claim:
        """Make a claim whose inputs ``read`` names as facts, so that the way back from claim to
        fact is kept.
        """
        return theorem.certify(
            **{name: self[key] for name, key in read.items()}, sources=read, **inputs
        )

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        plain = to_plain({name: getattr(self, name) for name in self.__dataclass_fields__})
        return (
            plain
            if self.record
            else {name: value for name, value in plain.items() if name != "record"}
        )

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Facts:
        """Read what `to_dict` wrote."""
        return checked(cls(**from_plain(dict(plain))))


def withheld(values: Mapping[str, Any]) -> bool:
    """Whether a sample among them stands by its hash only."""
    return any(isinstance(value, Withheld) for value in values.values())


def is_sample(name: str, value: object) -> bool:
    """Whether a fact, or an input of a theorem, has a number per row or group."""
    values = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (None,)
    numbers = all(isinstance(one, int | float) for one in values)
    return numbers and name.rpartition(".")[2].removeprefix("baseline_") in _SAMPLES


def without_samples(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with hashes and means in the place of samples."""
    return {
        name: Withheld.of(value) if is_sample(name, value) else value
        for name, value in values.items()
    }


def same_value(one: object, other: object) -> bool:
    """Equality, with a tolerance for the last digits of floats."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        these, those = cast("tuple[Any, ...]", one), cast("tuple[Any, ...]", other)
        return len(these) == len(those) and all(map(same_value, these, those))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        left, right = cast("Mapping[str, Any]", one), cast("Mapping[str, Any]", other)
        return left.keys() == right.keys() and all(
            same_value(value, right[name]) for name, value in left.items()
        )
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-12)
    return one == other
