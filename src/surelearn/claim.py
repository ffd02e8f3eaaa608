"""Claims, findings and theorems: the words that everything else is written in.

A *theorem* is a pure function of numbers with its name, reference and assumptions attached. Applied
to facts it makes a *claim*: what is guaranteed, how surely, for which predictor, loss, population
and rows. A *finding* is a measurement; it guarantees nothing.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Generic, Literal, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt

from surelearn import stated
from surelearn.documents import checked, reading
from surelearn.earlier import Names, of_today, warn_of_earlier
from surelearn.lacking import in_words
from surelearn.plain import FrozenDict, freeze, from_plain, percent_sure, show, to_plain

__all__ = [
    "ALWAYS",
    "DETERMINISTIC",
    "IN_EXPECTATION",
    "Claim",
    "Covers",
    "Finding",
    "Statement",
    "Theorem",
    "at_least",
    "at_most",
    "between",
    "equal",
    "find_theorem",
    "registered_theorems",
    "theorem",
]

Relation = Literal["<=", ">=", "=", "in"]
Evidence = Literal["certified", "asymptotic"]
Unit = Literal["rate", "number"]
Severity = Literal["info", "notice", "warning", "serious"]

IN_EXPECTATION = "in expectation"
ALWAYS = "always"
# always, too, where "always" would be read as "against every attack"
DETERMINISTIC = "deterministic"
_WITH_PROBABILITY = "with probability 1 - delta"
_SYMBOLS = {"<=": "≤", ">=": "≥", "=": "=", "in": "in"}

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class Covers:
    """What a claim is about. Two claims are combined only where these agree.

    Attributes
    ----------
    predictor : which predictor: a hash, or a word such as "plain", "gibbs", "smoothed"
    loss : which loss the risk averages
    population : where new rows come from
    rows : which rows carry the evidence: a hash, or a word
    """

    predictor: str = "plain"
    loss: str = "zero_one"
    population: str = "rows like these"
    rows: str = "as given"


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What a theorem says about its value: ``quantity relation value``, and how surely.

    ``trivial`` is the value (or the name of the input that holds it) from which on the statement
    says nothing, and ``measured`` computes the observed counterpart of the quantity from the
    theorem's inputs. The ``quantity`` is a key for programs, an identifier in lower case; the
    ``label`` is for people, by default the key with spaces.
    """

    quantity: str
    relation: Relation
    holds: str = _WITH_PROBABILITY
    trivial: float | str | None = None
    unit: Unit = "rate"
    evidence: Evidence = "certified"
    measured: Callable[[Mapping[str, Any]], float | None] | None = None
    label: str = ""

    def __post_init__(self) -> None:
        check_key(self.quantity)
        object.__setattr__(self, "label", self.label or in_words(self.quantity))


def at_most(quantity: str, *, trivial: float | str | None = 1.0, **options: Any) -> Statement:
    """``quantity ≤ value``; by default a rate, about which 1 says nothing."""
    return Statement(quantity=quantity, relation="<=", trivial=trivial, **options)


def at_least(quantity: str, *, trivial: float | str | None = 0.0, **options: Any) -> Statement:
    """``quantity ≥ value``; by default a rate, about which 0 says nothing."""
    return Statement(quantity=quantity, relation=">=", trivial=trivial, **options)


def between(quantity: str, **options: Any) -> Statement:
    """``quantity ∈ [low, high]``; where ``trivial`` is given, [0, trivial] says nothing."""
    return Statement(quantity=quantity, relation="in", **options)


def equal(quantity: str, **options: Any) -> Statement:
    """``quantity = value``, always."""
    return Statement(quantity=quantity, relation="=", holds=ALWAYS, unit="number", **options)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One guarantee: a quantity, a relation, a value, how surely, by which theorem and under which
    assumptions.

    Attributes
    ----------
    quantity : what is bounded, a key for programs: "risk", "uniform_stability", …
    relation : "<=", ">=", "=" or "in"
    value : the bound; a pair for "in"
    confidence : a probability, "in expectation", "always" or "deterministic"
    theorem : the theorem's key in `surelearn.bounds.theorems()`
    inputs : the numbers the theorem was given; its ``delta`` is already divided by ``candidates``
    assumptions : what must be true of the data for the claim to hold, for the reader to believe or
        not
    met : assumptions of the theorem that hold by construction here
    covers : predictor, loss, population and rows
    evidence : "certified" (finite sample, distribution-free under the assumptions) or "asymptotic"
    label : the quantity in words for people
    candidates : among how many (models, theorems) the choice was made that this claim pays for
    sources : which input was read from which fact, so that `Certificate.verify` can follow it
    family : claims of one family are simultaneous and are shown as their worst: "slice", "class",
        "constant"
    standing : "together" with the certificate's other claims on one δ, or "alone"
    unit : "rate" is shown as a percentage, "number" as it is
    """

    quantity: str
    relation: Relation
    value: float | tuple[float, float]
    confidence: float | str
    theorem: str
    inputs: Mapping[str, Any] = field(default_factory=FrozenDict)
    assumptions: tuple[str, ...] = ()
    met: tuple[str, ...] = ()
    covers: Covers = field(default_factory=Covers)
    evidence: Evidence = "certified"
    label: str = ""
    candidates: int = 1
    sources: Mapping[str, str] = field(default_factory=FrozenDict)
    family: str = ""
    standing: Literal["together", "alone"] = "alone"
    unit: Unit = "rate"

    def __post_init__(self) -> None:
        for name in ("value", "inputs", "assumptions", "met", "sources"):
            object.__setattr__(self, name, freeze(getattr(self, name)))
        if not self.label:
            object.__setattr__(self, "label", in_words(self.quantity))

    def _check_confidence(self) -> None:
        """Refuse a confidence that no theorem gives."""
        if isinstance(self.confidence, str):
            sound = self.confidence in (ALWAYS, DETERMINISTIC, IN_EXPECTATION)
        else:
            delta = self.inputs["delta"]
            sound = (
                0 < self.confidence < 1
                and type(delta) in (int, float)
                and 0 < delta < 1
                and self.candidates >= 1
            )
        if not sound:
            raise ValueError(
                f"the confidence of the claim about {self.quantity!r:.60} cannot be right"
            )

    @property
    def delta(self) -> float:
        """The claim's failure probability; 0 for a claim that holds always or in expectation."""
        return 0.0 if isinstance(self.confidence, str) else self.candidates * self.inputs["delta"]

    @property
    def measured(self) -> float | None:
        """The observed counterpart of the quantity, where the theorem's inputs tell it."""
        measured = find_theorem(self.theorem).claims.measured
        try:
            return None if measured is None else measured(self.inputs)
        except (KeyError, TypeError, ValueError, ArithmeticError):  # inputs of a damaged file
            return None

    @property
    def vacuous(self) -> bool:
        """Whether the claim says nothing: a risk of at most 1, a rate of at least 0, or from 0 to 1."""
        trivial = find_theorem(self.theorem).claims.trivial
        if isinstance(trivial, str):
            trivial = self.inputs[trivial]
        if trivial is None:
            return not _finite(self.value)
        if isinstance(self.value, tuple):
            low, high = self.value
            return low <= 0 and high >= trivial
        return self.value >= trivial if self.relation == "<=" else self.value <= trivial

    @property
    def with_probability(self) -> bool:
        """Whether the claim holds with a stated probability; only such claims may stand beside
        a verdict.
        """
        return not isinstance(self.confidence, str)

    def about(self, part: str) -> str | None:
        """Which ``part`` of the facts it was read from, by name: a "class", "constant" or
        "slice"; None for other claims.
        """
        start = f"{part}["
        keys = [key for key in self.sources.values() if key.startswith(start) and "]" in key]
        return keys[0][len(start) : keys[0].rindex("]")] if keys else None

    def recompute(self) -> float | tuple[float, float]:
        """The value again, from the theorem and the stored inputs."""
        return freeze(find_theorem(self.theorem).of_stored(self.inputs))

    def at(self, delta: float, *, candidates: int) -> Claim:
        """The same claim with failure probability ``delta``, as one of ``candidates`` that share
        it.

        The choice the claim already paid for is paid for again: its own candidates multiply these.
        """
        total = candidates * self.candidates
        inputs = {**self.inputs, "delta": delta / total}
        value = freeze(find_theorem(self.theorem).of_stored(inputs))
        return replace(
            self, value=value, inputs=FrozenDict(inputs), confidence=1.0 - delta, candidates=total
        )

    def bound(self) -> str:
        """The value for people, rounded in the direction that keeps it true: ``≤ 6.7%``."""
        if isinstance(self.value, tuple):
            low, high = self.value
            return f"{show(low, self.unit, '>=')} to {show(high, self.unit, '<=')}"
        return f"{_SYMBOLS[self.relation]} {show(self.value, self.unit, self.relation)}"

    def surely(self) -> str:
        """The confidence for people: ``95%``, ``always``, ``in expectation``."""
        return self.confidence if isinstance(self.confidence, str) else percent_sure(self.delta)

    def __str__(self) -> str:
        note = ", vacuous" if self.vacuous else ""
        return (
            f"{self.label} {self.bound()}  ({self.surely()},"
            f" {find_theorem(self.theorem).name}{note})"
        )

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["covers"] = asdict(self.covers)
        return {**to_plain(plain), "vacuous": self.vacuous}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Claim:
        """Read what `to_dict` wrote; ``vacuous`` is recomputed, never read."""
        with reading("the claim"):
            values: dict[str, Any] = {
                key: from_plain(value) for key, value in plain.items() if key != "vacuous"
            }
            known = {f.name for f in fields(cls)}
            if unknown := set(values) - known:
                raise ValueError(f"a claim has no field {min(unknown)!r:.60}")
            values["covers"] = checked(Covers(**values["covers"]))
            made = checked(cls(**values))
            find_theorem(made.theorem)
            made._check_confidence()
            bool(made.vacuous)  # can be told from the inputs
        return made


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A measurement, never a guarantee: an attack's success, a leak, an unstable prediction.

    Attributes
    ----------
    code : a stable code such as "SL101"
    text : one sentence for people
    severity : "info", "notice", "warning" or "serious"
    numbers : what was measured
    """

    code: str
    text: str
    severity: Severity = "info"
    numbers: Mapping[str, Any] = field(default_factory=FrozenDict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", freeze(self.numbers))
        if self.severity not in ("info", "notice", "warning", "serious"):
            raise ValueError(
                f"severity must be info, notice, warning or serious, not {self.severity!r:.60}"
            )

    def __str__(self) -> str:
        return f"{self.text} ({self.code}, {self.severity})"

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        return to_plain({f.name: getattr(self, f.name) for f in fields(self)})

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Finding:
        """Read what `to_dict` wrote."""
        return checked(cls(**from_plain(dict(plain))))


class Theorem(Generic[P, R]):
    """A bound that knows its name, reference and assumptions.

    Calling it computes the number; `certify` makes the `Claim`.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str,
        reference: str,
        assumes: Iterable[str],
        claims: Statement,
        example: Mapping[str, Any],
        earlier: Names,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.key: str = function.__name__
        self.name = name
        self.reference = reference
        self.assumes = tuple(assumes)
        self.claims = claims
        self.example = FrozenDict(example)
        self.earlier = earlier
        self.signature = inspect.signature(function)

    def of_stored(self, inputs: Mapping[str, Any]) -> R:
        """The number for inputs that a claim keeps, also of a version that named some otherwise."""
        return self(**of_today(self.earlier, inputs))  # type: ignore[call-arg]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:  # noqa: D102 - the docstring is the theorem's
        if self.earlier and warn_of_earlier(self.key, self.earlier, kwargs):
            return self(*args, **of_today(self.earlier, kwargs))  # type: ignore[call-arg]
        try:
            # an overflow to ∞ is a limiting case; NaN is refused below
            with np.errstate(all="ignore"):
                value = self.function(*args, **kwargs)
        except (TypeError, OverflowError, ZeroDivisionError, MemoryError, IndexError) as error:
            self.signature.bind(*args, **kwargs)  # an argument too many or too few is a TypeError
            raise ValueError(
                f"{self.key} cannot be computed for these inputs: {str(error).splitlines()[0]:.150}"
            ) from None
        if _has_nan(value):
            raise ValueError(f"{self.key} gives no number for these inputs")
        return value

    def __repr__(self) -> str:
        return (
            f"<theorem {self.key}: {self.claims.quantity} {_SYMBOLS[self.claims.relation]} …,"
            f" {self.claims.holds}>"
        )

    def certify(
        self,
        *args: Any,
        covers: Covers | None = None,
        candidates: int = 1,
        quantity: str = "",
        label: str = "",
        assumptions: Iterable[str] = (),
        met: Iterable[str] = (),
        instead: Mapping[str, str] | None = None,
        sources: Mapping[str, str] | None = None,
        family: str = "",
        standing: Literal["together", "alone"] = "alone",
        unit: Unit | None = None,
        **kwargs: Any,
    ) -> Claim:
        """Make the claim that the theorem allows for these inputs.

        Parameters
        ----------
        *args, **kwargs : the theorem's own inputs
        candidates : the predictor was chosen among so many on the same rows; ``delta`` is divided
            by it
        quantity, label : names that are more specific than the theorem's
        assumptions : further assumptions, after the theorem's own
        met : those of the theorem's own assumptions that hold by construction here
        instead : assumptions that take the place of the theorem's, such as independent groups for
            independent rows
        covers, sources, family, standing, unit : see `Claim`
        """
        if candidates < 1:
            raise ValueError(f"candidates must be at least 1, not {candidates}")
        met = tuple(met)
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        inputs = dict(bound.arguments)
        confidence: float | str = self.claims.holds
        if confidence == _WITH_PROBABILITY:
            stated.fraction("delta", float(inputs["delta"]))  # before it is divided
            confidence = 1.0 - float(inputs["delta"])
            inputs["delta"] = inputs["delta"] / candidates
        return Claim(
            quantity=quantity or self.claims.quantity,
            relation=self.claims.relation,
            value=freeze(self(**inputs)),  # type: ignore[call-arg]
            confidence=confidence,
            theorem=self.key,
            inputs=inputs,
            assumptions=(
                *((instead or {}).get(line, line) for line in self.assumes if line not in met),
                *assumptions,
            ),
            met=tuple(line for line in self.assumes if line in met),
            covers=covers or Covers(),
            evidence=self.claims.evidence,
            label=label or (in_words(check_key(quantity)) if quantity else self.claims.label),
            candidates=candidates,
            sources=FrozenDict(sources or {}),
            family=family,
            standing=standing,
            unit=unit or self.claims.unit,
        )


_THEOREMS: dict[str, Theorem[..., Any]] = {}


def theorem(
    name: str,
    reference: str,
    *,
    assumes: Iterable[str] = (),
    claims: Statement,
    example: Mapping[str, Any],
    earlier: Names | None = None,
) -> Callable[[Callable[P, R]], Theorem[P, R]]:
    """Attach a name, a reference, assumptions and a statement to a bound, and register it.

    ``example`` holds inputs for a worked number, shown in the documentation and used by the tests.
    ``earlier`` holds names that inputs had: claims that were stored under them are still
    recomputed, and the theorem takes them with a warning (`surelearn.earlier`).
    """

    def attach(function: Callable[P, R]) -> Theorem[P, R]:
        made = Theorem(
            function,
            name=name,
            reference=reference,
            assumes=assumes,
            claims=claims,
            example=example,
            earlier=earlier or {},
        )
        _THEOREMS[made.key] = made
        return made

    return attach


def find_theorem(key: str) -> Theorem[..., Any]:
    """The theorem registered under ``key``; a `ValueError` names an unknown one."""
    if key not in _THEOREMS:  # nobody has imported them yet
        importlib.import_module("surelearn.bounds")
    try:
        return _THEOREMS[key]
    except KeyError:
        raise ValueError(
            f"no theorem is called {key!r:.60}: see surelearn.bounds.theorems()"
        ) from None


def registered_theorems() -> tuple[Theorem[..., Any], ...]:
    """Every registered theorem, in the order of definition."""
    return tuple(_THEOREMS.values())


def check_key(quantity: str) -> str:
    """A quantity's key, if it is one: an identifier in lower case, of ASCII letters.

    Examples
    --------
    >>> check_key("uniform stability")
    Traceback (most recent call last):
    ...
    ValueError: a quantity's key is an identifier in lower case, such as 'mean_loss', not 'uniform stability'
    """
    if not (quantity.isidentifier() and quantity.isascii() and quantity == quantity.lower()):
        raise ValueError(
            "a quantity's key is an identifier in lower case, such as 'mean_loss', not"
            f" {quantity!r:.60}"
        )
    return quantity


def _has_nan(value: object) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_nan, cast("tuple[object, ...]", value)))
    numeric = isinstance(value, float | np.ndarray | np.floating)
    return numeric and bool(np.isnan(cast("npt.ArrayLike", value)).any())


def _finite(value: float | tuple[float, float]) -> bool:
    return all(math.isfinite(v) for v in (value if isinstance(value, tuple) else (value,)))
