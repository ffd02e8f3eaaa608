"""Earlier names of parameters: read with a warning for one release.

A class or a theorem states ``earlier``: for each earlier name that of today, or a function from the
value and all arguments to arguments of today, where the meaning changed (`TwoWay` where an object
should still show the earlier attribute). What a file of an earlier version holds is read without a
warning, and remembered under its earlier names, so that a model keeps the fingerprint that its
certificates name (`as_saved`).
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar, cast

Translation = Callable[[Any, Mapping[str, Any]], dict[str, Any]]
Names = Mapping[str, str | Translation]
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class TwoWay:
    """A translation with its inverse: an object shows the earlier parameter, too.

    Attributes
    ----------
    today : a function from the earlier value and all arguments to arguments of today; the warning
        quotes its docstring
    names : the parameters of today that hold it
    then : a function from an object's attributes to the earlier value
    """

    today: Translation
    names: tuple[str, ...]
    then: Callable[[Mapping[str, Any]], Any]

    def __call__(self, value: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of today."""
        return self.today(value, given)


REMEMBERED = "_saved_under"  # the attribute with what a file had under earlier names


def translated(earlier: Names, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given under earlier names, under those of today; nothing else.

    Examples
    --------
    >>> translated({"passes": "epochs"}, {"passes": 3, "tol": 0.1})
    {'epochs': 3}
    """
    found: dict[str, Any] = {}
    for name in earlier.keys() & given.keys():
        today, value = earlier[name], given[name]
        found |= {today: value} if isinstance(today, str) else today(value, given)
    return found


def of_today(earlier: Names, given: Mapping[str, Any]) -> dict[str, Any]:
    """All that was given, under names of today."""
    kept = {name: value for name, value in given.items() if name not in earlier}
    return kept | translated(earlier, given)


def warn_of_earlier(
    owner: str, earlier: Names, given: Mapping[str, Any], stacklevel: int = 3
) -> bool:
    """Whether some of the given names are earlier ones; then a warning says so."""
    old = sorted(earlier.keys() & given.keys())
    for name in old:
        today = earlier[name]
        instead = f" is {today!r} now" if isinstance(today, str) else f": {_first_sentence(today)}"
        message = f"{name!r} of {owner}{instead}; the earlier name goes with version 0.4"
        warnings.warn(message, FutureWarning, stacklevel=stacklevel)
    return bool(old)


def refuse_both(
    owner: str, earlier: Names, given: Mapping[str, Any], usual: Mapping[str, Any]
) -> None:
    """Refuse an earlier name beside one of today that says the same; ``usual`` has the values of
    arguments that were not given.
    """
    for name in sorted(earlier.keys() & given.keys()):
        meant = translated({name: earlier[name]}, {**usual, **given})
        if both := sorted(meant.keys() & given.keys()):
            raise TypeError(f"{owner} was given {name!r} and {both[0]!r}: give {both[0]!r}")


def _first_sentence(translation: Translation) -> str:
    words = translation.today if isinstance(translation, TwoWay) else translation
    said = (words.__doc__ or "it has another meaning now").strip().rstrip(".")
    return said[:1].lower() + said[1:]


def reading_earlier(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that takes earlier names of its parameters, too, with a warning."""
    parameters = list(inspect.signature(init).parameters.values())[1:]

    @functools.wraps(init)
    def reading(self: EarlierNames, *args: Any, **given: Any) -> None:
        init(self, *args, **_read(type(self).__name__, type(self).earlier, parameters, args, given))

    return reading


def renamed(earlier: Names) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Of a function some of whose parameters had other names: it takes those, too, with a warning.

    Examples
    --------
    >>> @renamed({"passes": "epochs"})
    ... def train(epochs: int = 10) -> int:
    ...     return epochs
    >>> train(epochs=3, passes=4)
    Traceback (most recent call last):
    TypeError: train was given 'passes' and 'epochs': give 'epochs'
    """

    def around(function: Callable[P, T]) -> Callable[P, T]:
        parameters = list(inspect.signature(function).parameters.values())

        @functools.wraps(function)
        def reading(*args: Any, **given: Any) -> T:
            return function(*args, **_read(function.__name__, earlier, parameters, args, given))

        return cast(Callable[P, T], reading)

    return around


def _read(
    owner: str,
    earlier: Names,
    parameters: Sequence[inspect.Parameter],
    args: Sequence[object],
    given: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Arguments by name under their names of today; a warning, or a refusal, where some are not."""
    if earlier.keys().isdisjoint(given):
        return given
    usual = {one.name: one.default for one in parameters if one.default is not one.empty}
    placed = {one.name: value for one, value in zip(parameters, args, strict=False)}
    refuse_both(owner, earlier, {**placed, **given}, usual)
    warn_of_earlier(owner, earlier, given, stacklevel=4)
    meant = translated(earlier, {**usual, **placed, **given})
    return {name: value for name, value in given.items() if name not in earlier} | meant


def reads_earlier_names(cls: type[T]) -> type[T]:
    """Of a dataclass, whose constructor is made after the class: it takes earlier names, too."""
    cls.__init__ = reading_earlier(cls.__init__)
    return cls


class EarlierNames:
    """An object whose parameters had other names in an earlier version."""

    # Earlier names of parameters and of fitted attributes, read with a warning for one release: the
    # name of today, or a function from the value and all arguments to arguments of today, where the
    # meaning changed.
    earlier: ClassVar[Names] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = reading_earlier(cls.__init__)

    @classmethod
    def of_today(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters under their names of today."""
        return of_today(cls.earlier, given)

    @classmethod
    def of_file(cls, state: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes of an object that an earlier version may have saved, under their names
        of today; what had earlier names is remembered.
        """
        old = {name: value for name, value in state.items() if name in cls.earlier}
        return of_today(cls.earlier, state) | ({REMEMBERED: old} if old else {})

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = self.of_file(state)
        above = getattr(super(), "__setstate__", None)
        if above is None:
            vars(self).update(state)
        else:
            above(state)

    if not TYPE_CHECKING:  # attributes are checked by name

        def __getattr__(self, name: str) -> Any:
            owner, today, held = type(self), type(self).earlier.get(name), vars(self)
            if isinstance(today, str) and hasattr(self, today):
                warn_of_earlier(owner.__name__, owner.earlier, {name: None})
                return getattr(self, today)
            if isinstance(today, TwoWay) and set(today.names) <= held.keys():
                warn_of_earlier(owner.__name__, owner.earlier, {name: None})
                return today.then(held)
            if hasattr(owner, name):  # a property that raised: its own sentence is the better one
                return object.__getattribute__(self, name)
            raise AttributeError(f"{owner.__name__!r} object has no attribute {name!r}")


def as_saved(value: object, state: Mapping[str, Any]) -> dict[str, Any]:
    """The state of an object as it was in the file of an earlier version, for its fingerprint: with
    the earlier names, as long as they still mean what the parameters are today.
    """
    rest = {name: part for name, part in state.items() if name != REMEMBERED}
    old = state.get(REMEMBERED)
    if not isinstance(old, Mapping) or not isinstance(value, EarlierNames):
        return rest
    meant = translated(value.earlier, {**rest, **old})
    if any(name not in rest or not _same(rest[name], part) for name, part in meant.items()):
        return rest
    return {name: part for name, part in rest.items() if name not in meant} | dict(old)


def _same(one: object, other: object) -> bool:
    return one is other or (type(one) is type(other) and bool(one == other))
