"""Records: what happened in a fit, as typed, frozen, primitive data, and the claims that follow
from it alone.

A record holds what was stated, counted or measured (n, λ, stated bounds, norms, residuals) and
nothing that follows from these: β, the range of a loss, a radius are theorems, computed from
primitives when claims are written. So a certificate is checked to the bottom by writing its claims
again from its record, and the record by measuring it again on model and rows.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from types import NoneType
from typing import Any, ClassVar, NamedTuple, Self, get_args, get_type_hints

from surelearn.claim import Claim, Covers, Theorem, check_key, find_theorem
from surelearn.lacking import Lacking
from surelearn.plain import freeze

ROOMS = (
    "linear",
    "kernel",
    "boosting",
    "cluster",
    "optim",
    "robust",
    "neural",
)  # where learners live


class Within(NamedTuple):
    """A number that was measured again, and how far rounding may have moved it."""

    value: float
    tolerance: float


def run(reason: str, **options: Any) -> Any:
    """A record's field that neither the model nor the rows tell: how the run went, and why
    nothing can find an edit.
    """
    return field(metadata={"untold": reason}, **options)


@functools.cache
def _kinds_of(cls: type) -> dict[str, Any]:
    """The types of a record's fields."""
    return get_type_hints(cls)


@dataclass(frozen=True, kw_only=True)
class Record:
    """What happened in a fit; a subclass has one typed field for each primitive, and writes the
    claims that they allow.

    A subclass states its ``key``, "ridge/1", whose number grows when the meaning of a field
    changes; the earlier class is kept then, so that certificates of it still verify. Fields are
    numbers, strings, booleans, None or tuples of numbers.

    Attributes
    ----------
    n : rows fitted on
    d : features; None where they are not counted
    """

    key: ClassVar[str] = ""

    n: int
    d: int | None = None

    def write(self, writer: Writer) -> None:
        """Make the claims that the record allows, and say why of those that it does not."""
        raise NotImplementedError

    @property
    def setting(self) -> str:
        """How the facts came about, in words."""
        wide = "" if self.d is None else f" with {self.d:,} features"
        return f"fitted on {self.n:,} rows{wide}"

    def values(self) -> dict[str, Any]:
        """The fields by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def read(cls, values: Mapping[str, Any], *, strict: bool = True) -> Self:
        """The record of these values; others than its fields are refused, or left out if not
        ``strict``.
        """
        known = {one.name for one in fields(cls)}
        if strict and (unknown := set(values) - known):
            raise ValueError(f"a record {cls.key!r} has no field {min(unknown)!r:.60}")
        kept = {name: freeze(value) for name, value in values.items() if name in known}
        try:
            made = cls(**kept)
        except TypeError:
            missing = known - set(kept)
            raise ValueError(f"a record {cls.key!r} needs {', '.join(sorted(missing))}") from None
        kinds = _kinds_of(cls)
        for name in known:
            if not _fits(getattr(made, name), kinds[name]):
                raise ValueError(
                    f"{name} of a record {cls.key!r} cannot be {getattr(made, name)!r:.60}"
                )
        return made

    @classmethod
    def untold(cls) -> dict[str, str]:
        """The fields that neither model nor rows need tell, and why; those that `measure_again`
        tells are checked.
        """
        return {one.name: one.metadata["untold"] for one in fields(cls) if "untold" in one.metadata}


class Writer:
    """Gathers the claims about one fit, each standing alone at its own confidence.

    Parameters
    ----------
    record : what happened
    delta : the failure probability of each claim
    predictor : the model's hash
    version : of the certificate, the newest by default; those of earlier ones had fewer claims
    """

    def __init__(
        self, record: Record, delta: float, predictor: str, version: float = math.inf
    ) -> None:
        self.values: Mapping[str, Any] = freeze(record.values())
        self.delta, self.version = delta, version
        self.covers = Covers(predictor=predictor, rows="the rows it was fitted on")
        self.claims: list[Claim] = []
        self.lacking: list[Lacking] = []

    def claim(
        self, theorem: Theorem[..., Any], read: Mapping[str, str], *, loss: str = "", **inputs: Any
    ) -> Claim:
        """Make a claim whose inputs ``read`` names as fields of the record; ``inputs`` are the
        others, and label, unit, ….

        What a theorem derives from the record is among the others. Theorems that hold with a
        probability get the learner's δ unless ``delta`` is given.
        """
        if (
            "delta" in theorem.signature.parameters
            and "delta" not in inputs
            and "delta" not in read
        ):
            inputs["delta"] = self.delta
        covers = replace(self.covers, loss=loss) if loss else self.covers
        given = {name: self.values[key] for name, key in read.items()}
        made = theorem.certify(**given, sources=read, covers=covers, **inputs)
        self.claims.append(made)
        return made

    def lacks(self, quantity: str, reason: str, theorem: str = "", label: str = "") -> None:
        """Say that a claim is not made, and why; ``label`` is that of the theorem by default."""
        if theorem and not label:
            claims = find_theorem(theorem).claims
            label = claims.label if claims.quantity == quantity else ""
        self.lacking.append(Lacking(check_key(quantity), reason, theorem, label))


def find_record(key: str) -> type[Record]:
    """The record's class by its key; a `ValueError` for an unknown one."""
    found = {kind.key: kind for kind in _all(Record)}
    if key not in found:
        for room in ROOMS:
            importlib.import_module(f"surelearn.{room}")
        found = {kind.key: kind for kind in _all(Record)}
    if not key or key not in found:
        raise ValueError(
            f"no record is called {key!r:.60}: it may be of a newer surelearn, or of a learner of"
            " your own"
        )
    return found[key]


def _all(kind: type[Record]) -> Iterator[type[Record]]:
    for below in kind.__subclasses__():
        yield below
        yield from _all(below)


def _fits(value: object, kind: object) -> bool:
    """Whether a frozen value is of a field's type; whole numbers are numbers, and NaN is none."""
    options = get_args(kind) if not isinstance(kind, type) and "|" in str(kind) else (kind,)
    for option in options:
        if option is NoneType and value is None:
            return True
        if option in (bool, str) and type(value) is option:
            return True
        if option is int and type(value) is int:
            return True
        if (
            option is float
            and isinstance(value, int | float)
            and type(value) is not bool
            and not math.isnan(value)
        ):
            return True
        if str(option).startswith("tuple") and isinstance(value, tuple):
            inner = get_args(option)[0]
            if all(_fits(item, inner) for item in value):
                return True
        if str(option).startswith(("collections.abc.Mapping", "dict")) and isinstance(
            value, Mapping
        ):
            return True
    return False
