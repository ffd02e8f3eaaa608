"""Plain values: frozen, ready for JSON, and as text for people."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any


class FrozenDict(dict):
    """A dict that cannot be changed, so that facts stay what they were (and can still be
    pickled and printed).
    """

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("facts and claims are frozen: make a new one instead of changing this one")

    __setitem__ = __delitem__ = __ior__ = _refuse
    update = pop = popitem = clear = setdefault = _refuse  # pyright: ignore[reportAssignmentType]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return FrozenDict, (dict(self),)


class Withheld(FrozenDict):
    """In the place of a sample that is kept apart: its hash, how many values it has, and their
    mean.
    """

    KEYS = frozenset(("withheld", "n", "mean"))

    @classmethod
    def of(cls, sample: tuple[float, ...]) -> Withheld:
        """What stands for a sample, which is found again by the hash of its values."""
        values = [float(value) for value in sample]
        mean = math.fsum(values) / len(values) if values else None
        return cls(withheld=sample_hash(values), n=len(values), mean=mean)

    def mean(self, **_: Any) -> Any:
        """The sample's mean: NumPy's ``mean`` asks for it."""
        return self["mean"]

    def __reduce__(self) -> Any:
        return Withheld, (dict(self),)


def sample_hash(values: Sequence[float]) -> str:
    """``sha256:…`` of a sample's values in their order."""
    return f"sha256:{hashlib.sha256(json.dumps([float(value) for value in values]).encode()).hexdigest()}"


def freeze(value: Any) -> Any:
    """Turn numbers, sequences and mappings, NumPy's included, into immutable plain Python
    values.
    """
    if hasattr(value, "tolist"):  # NumPy scalars and arrays, pandas and polars series
        value = value.tolist()
    if isinstance(value, Mapping):
        kind = Withheld if value.keys() == Withheld.KEYS else FrozenDict
        return kind({str(key): freeze(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(
        "a fact must be made of numbers, strings, sequences and mappings, not"
        f" {type(value).__name__}"
    )


def to_plain(value: object) -> Any:
    """Turn a frozen value into what strict JSON can hold; an infinity becomes ``{"number":
    "inf"}``.
    """
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    return value


def from_plain(value: object) -> Any:
    """Invert `to_plain`."""
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if isinstance(value, dict):
        if set(value) == {"number"} and value["number"] in ("inf", "-inf", "nan"):
            return float(value["number"])
        return {key: from_plain(item) for key, item in value.items()}
    return value


def show(value: float, unit: str, relation: str = "=") -> str:
    """A number for people: upper bounds rounded up, lower bounds down, so that the text is as
    true as the number.
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "unknown"
    rounding = {"<=": ROUND_CEILING, ">=": ROUND_FLOOR}.get(relation, ROUND_HALF_EVEN)
    exact = Decimal(repr(float(value)))
    if unit == "rate" and abs(value) <= 10:
        percent = exact * 100
        digits = Decimal("0.1") if abs(percent) >= 1 or percent == 0 else Decimal("0.01")
        return f"{percent.quantize(digits, rounding)}%"
    if exact == 0:
        return "0"
    step = Decimal(1).scaleb(exact.adjusted() - 3)  # four significant digits
    rounded = (
        exact.quantize(step, rounding)
        if step < 1
        else (exact / step).quantize(Decimal(1), rounding) * step
    )
    if abs(rounded) < Decimal("1e-4") or abs(rounded) >= Decimal("1e9"):
        return f"{rounded:.3e}"
    text = f"{rounded:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def all_but(alpha: float) -> str:
    """The part 1 − α as a percentage for people, never rounded up.

    Examples
    --------
    >>> all_but(0.3), all_but(0.0005)
    ('70.0%', '99.9%')
    """
    return show(round(1 - alpha, 12), "rate", ">=")  # 1 − 0.3 is not 0.7 in floats


def percent_sure(delta: float) -> str:
    """The confidence 1 − δ for people, never rounded up.

    Examples
    --------
    >>> percent_sure(0.05), percent_sure(0.07), percent_sure(0.025), percent_sure(0.0076)
    ('95%', '93%', '97.5%', '99.2%')
    """
    sure = (1 - Decimal(f"{delta:.12g}")) * 100  # 0.05 was perhaps computed as 12 · (0.05/12)
    text = f"{sure.quantize(Decimal('0.1') if sure < Decimal('99.9') else Decimal('0.0001'), ROUND_FLOOR)}"
    return f"{text.rstrip('0').rstrip('.')}%"


def printable(text: str) -> str:
    r"""One line of text in which nothing commands a terminal: controls, also those of direction and
    width, are escaped.

    Examples
    --------
    >>> printable("a\u202eb")
    'a\\u202eb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_sentence(text: str, longest: int = 299) -> str:
    """An error for people: one printable line; a longer one loses its middle, since the advice
    stands at its end.
    """
    line = printable(" ".join(text.split()))
    return line if len(line) <= longest else f"{line[: longest - 123]} … {line[-120:]}"


def content_hash(plain: Mapping[str, Any]) -> str:
    """``sha256:…`` of plain data as JSON, whatever the order of its keys and however it is
    indented; "hash" is left out.
    """
    body = {key: value for key, value in plain.items() if key != "hash"}
    text = json.dumps(
        body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return f"sha256:{hashlib.sha256(text.encode(errors='backslashreplace')).hexdigest()}"
