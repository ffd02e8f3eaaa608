"""What an operating point must keep: "sensitivity >= 0.95", "error <= 0.01"."""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from typing import Literal, cast

Quantity = Literal["sensitivity", "specificity", "precision", "error", "mean_cost", "mean_error"]
Relation = Literal[">=", "<="]

RELATIONS: dict[Quantity, Relation] = {
    "sensitivity": ">=",
    "specificity": ">=",
    "precision": ">=",
    "error": "<=",
    "mean_cost": "<=",
    "mean_error": "<=",
}
_OTHER_NAMES: dict[str, Quantity] = {
    "recall": "sensitivity",
    "true positive rate": "sensitivity",
    "tpr": "sensitivity",
    "true negative rate": "specificity",
    "tnr": "specificity",
    "positive predictive value": "precision",
    "ppv": "precision",
    "error rate": "error",
    "errors": "error",
    "mean absolute error": "mean_error",
    "mae": "mean_error",
}
_SIGNS = {">=": ">=", "≥": ">=", "=>": ">=", "<=": "<=", "≤": "<=", "=<": "<="}
_PARTS = re.compile(r"\s*([A-Za-z_\- ]+?)\s*(>=|=>|≥|<=|=<|≤|==|=|>|<)\s*(\S+?)\s*(%?)\s*")
RATES = ("sensitivity", "specificity", "precision", "error")


@dataclass(frozen=True)
class Requirement:
    """One number that new rows must keep, and its level, both fixed before any row is looked at.

    Attributes
    ----------
    quantity : "sensitivity", "specificity" or "precision" of the class that matters; "error", of the
        answers that are given, where the model abstains below a confidence; "mean_cost"; "mean_error"
        of numbers
    level : the least, or the largest, that is allowed

    Examples
    --------
    >>> Requirement.parse("recall ≥ 95%")
    Requirement(quantity='sensitivity', level=0.95)
    >>> print(Requirement.parse("error<=0.01"))
    error <= 0.01
    >>> Requirement.parse("sensitvity >= 0.95")
    Traceback (most recent call last):
    ...
    ValueError: require: 'sensitvity' is not a quantity that can be required; did you mean sensitivity?
    """

    quantity: Quantity
    level: float

    @classmethod
    def parse(cls, text: object, name: str = "require") -> Requirement:
        """Read a requirement; one clear sentence refuses anything else, where ``name`` is what the
        user calls the option.
        """
        found = _PARTS.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise ValueError(
                f"{name} must be a quantity, >= or <=, and a number, as in 'sensitivity >= 0.95',"
                f" not {text!r:.60}"
            )
        word, sign, number, percent = found.groups()
        quantity = _quantity(word, name)
        relation = RELATIONS[quantity]
        if _SIGNS.get(sign) != relation:
            raise ValueError(
                f"{name}: {quantity} is bounded from {'below' if relation == '>=' else 'above'},"
                f" so write '{quantity} {relation} {number}{percent}'"
            )
        return cls(quantity, _level(number, percent, quantity, name))

    @property
    def relation(self) -> Relation:
        """Whether it is bounded from below or from above."""
        return RELATIONS[self.quantity]

    @property
    def walks_down(self) -> bool:
        """Whether the first threshold is the strictest one."""
        return self.quantity in ("specificity", "precision", "error")

    def met_by(self, value: float) -> bool:
        """Whether a guaranteed number is enough."""
        return value >= self.level if self.relation == ">=" else value <= self.level

    def __str__(self) -> str:
        return f"{self.quantity} {self.relation} {self.level:.12g}"


def _quantity(word: str, name: str) -> Quantity:
    plain = " ".join(word.lower().replace("_", " ").replace("-", " ").split())
    key = plain.replace(" ", "_")
    if key in RELATIONS:
        return key
    if plain in _OTHER_NAMES:
        return _OTHER_NAMES[plain]
    near = difflib.get_close_matches(key, [*RELATIONS, *_OTHER_NAMES], n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}?" if near else f"say one of {', '.join(RELATIONS)}"
    raise ValueError(f"{name}: {word.strip()!r:.40} is not a quantity that can be required; {hint}")


def _level(number: str, percent: str, quantity: Quantity, name: str) -> float:
    try:
        level = float(number) / (100 if percent else 1)
    except ValueError:
        raise ValueError(f"{name}: {number!r:.40} is not a number") from None
    if quantity in RATES and not 0 < level < 1:
        hint = f", or {number}%" if not percent and 1 <= level < 100 else ""
        raise ValueError(
            f"{name}: the level of {cast('str', quantity)} must lie strictly between 0 and 1{hint},"
            f" not {number}{percent}"
        )
    if quantity not in RATES and not 0 < level < math.inf:
        raise ValueError(
            f"{name}: the level of {cast('str', quantity)} must be positive and finite, not {number}"
        )
    return level
