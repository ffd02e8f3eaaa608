"""Earlier names of parameters: read with a warning for one release.

A class or a theorem states ``earlier``: for each earlier name that of today, or a function from the
value and all arguments to arguments of today, where the meaning changed (`TwoWay` where an object
should still show the earlier attribute). A name of today may be that of a parameter in a group,
"sgd__step", as scikit-learn writes nested ones: a class with ``groups`` makes the group of what was
given. What a file of an earlier version holds is read without a warning, and remembered under its
earlier names, so that a model keeps the fingerprint that its certificates name (`as_saved`).
Parameters of a group are hashed as if they stood beside it, as they once did: None, the defaults
and the parameters of an earlier file are the same model.
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
Groups = Mapping[str, type[Any]]
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


def moved(group: str, *names: str) -> dict[str, str]:
    """Parameters that stand in a group today, under the same names.

    Examples
    --------
    >>> moved("sgd", "step", "average")
    {'step': 'sgd__step', 'average': 'sgd__average'}
    """
    return {name: f"{group}__{name}" for name in names}


def split_name(groups: Groups, name: str) -> tuple[str, str] | None:
    """The group and the name in it of a nested parameter's name; None for other names."""
    group, _, inside = name.partition("__")
    return (group, inside) if inside and group in groups else None


def gathered(groups: Groups, given: Mapping[str, Any]) -> dict[str, Any]:
    """Nested parameters as objects of their groups, and the others as they are."""
    found: dict[str, Any] = {}
    inside: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        if nested := split_name(groups, name):
            inside.setdefault(nested[0], {})[nested[1]] = value
        else:
            found[name] = value
    return found | {group: groups[group](**values) for group, values in inside.items()}


def spread_out(groups: Groups, state: Mapping[str, Any]) -> dict[str, Any]:
    """The opposite of `gathered`, None being the defaults; objects that are not exactly of the
    group's class are left as they are.
    """
    found = dict(state)
    for group, made in groups.items():
        value = made() if (held := found.get(group)) is None else held
        if group in found and type(value) is made:
            del found[group]
            found |= {f"{group}__{name}": part for name, part in value.get_params().items()}
    return found


def warn_of_earlier(
    owner: str,
    earlier: Names,
    given: Mapping[str, Any],
    stacklevel: int = 3,
    groups: Groups | None = None,
) -> bool:
    """Whether some of the given names are earlier ones; then a warning says so."""
    old = sorted(earlier.keys() & given.keys())
    for name in old:
        today = earlier[name]
        instead = f" is {today!r} now" if isinstance(today, str) else f": {_first_sentence(today)}"
        if groups and isinstance(today, str) and (nested := split_name(groups, today)):
            instead += f", {nested[0]}={groups[nested[0]].__name__}({nested[1]}=…)"
        message = f"{name!r} of {owner}{instead}; the earlier name goes with version 0.4"
        warnings.warn(message, FutureWarning, stacklevel=stacklevel)
    return bool(old)


def refuse_both(
    owner: str, earlier: Names, given: Mapping[str, Any], usual: Mapping[str, Any]
) -> None:
    """Refuse an earlier name beside one of today that says the same, or beside the group that holds
    it; ``usual`` has the values of arguments that were not given.
    """
    said: dict[str, str] = {}
    for name in sorted(earlier.keys() & given.keys()):
        meant = translated({name: earlier[name]}, {**usual, **given})
        for today in sorted(meant):
            if both := [one for one in (today, today.partition("__")[0]) if one in given]:
                raise TypeError(f"{owner} was given {name!r} and {both[0]!r}: give {both[0]!r}")
            if today in said:
                raise TypeError(f"{owner} was given {said[today]!r} and {name!r}: give {today!r}")
            said[today] = name


def _first_sentence(translation: Translation) -> str:
    words = translation.today if isinstance(translation, TwoWay) else translation
    said = (words.__doc__ or "it has another meaning now").strip().rstrip(".")
    return said[:1].lower() + said[1:]


def reading_earlier(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that takes earlier names of its parameters, too, with a warning."""
    parameters = list(inspect.signature(init).parameters.values())[1:]

    @functools.wraps(init)
    def reading(self: EarlierNames, *args: Any, **given: Any) -> None:
        cls = type(self)
        read = _read(cls.__name__, cls.earlier, parameters, args, given, cls.groups)
        init(self, *args, **read)

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
    groups: Groups | None = None,
) -> Mapping[str, Any]:
    """Arguments by name under their names of today; a warning, or a refusal, where some are not."""
    if earlier.keys().isdisjoint(given):
        return given
    usual = {one.name: one.default for one in parameters if one.default is not one.empty}
    placed = {one.name: value for one, value in zip(parameters, args, strict=False)}
    refuse_both(owner, earlier, {**placed, **given}, usual)
    warn_of_earlier(owner, earlier, given, stacklevel=4, groups=groups)
    meant = gathered(groups or {}, translated(earlier, {**usual, **placed, **given}))
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
    # Parameters that hold an object with parameters of its own, or None for its defaults: the class
    # of each.
    groups: ClassVar[Groups] = {}

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
        of today; what had earlier names is remembered, unless it only moved into a group.
        """
        was_beside = _beside(cls).values()
        old = {name: value for name, value in state.items() if name in cls.earlier}
        other = {name: value for name, value in old.items() if name not in was_beside}
        today = gathered(cls.groups, of_today(cls.earlier, state))
        for group, made in cls.groups.items():
            if group not in state and group in today and today[group] == made():
                today[group] = None
        return today | ({REMEMBERED: other} if other else {})

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
            nested = split_name(owner.groups, today) if isinstance(today, str) else None
            if nested and nested[0] in held:
                warn_of_earlier(owner.__name__, owner.earlier, {name: None}, groups=owner.groups)
                group = held[nested[0]]
                return getattr(owner.groups[nested[0]]() if group is None else group, nested[1])
            if isinstance(today, str) and hasattr(self, today):
                warn_of_earlier(owner.__name__, owner.earlier, {name: None})
                return getattr(self, today)
            if isinstance(today, TwoWay) and set(today.names) <= held.keys():
                warn_of_earlier(owner.__name__, owner.earlier, {name: None})
                return today.then(held)
            if hasattr(owner, name):  # a property that raised: its own sentence is the better one
                return object.__getattribute__(self, name)
            raise AttributeError(f"{owner.__name__!r} object has no attribute {name!r}")


def _beside(cls: type[EarlierNames]) -> dict[str, str]:
    """For each parameter of a group that stood beside it under the same name: that name."""
    return {
        today: name
        for name, today in cls.earlier.items()
        if isinstance(today, str)
        and (nested := split_name(cls.groups, today))
        and nested[1] == name
    }


def as_saved(value: object, state: Mapping[str, Any]) -> dict[str, Any]:
    """The state of an object for its fingerprint: parameters of groups as they stood beside them,
    and what the file of an earlier version had under earlier names under these, as long as they
    still mean what the parameters are today.
    """
    rest = {name: part for name, part in state.items() if name != REMEMBERED}
    if not isinstance(value, EarlierNames):
        return rest
    rest = spread_out(value.groups, rest)
    if isinstance(old := state.get(REMEMBERED), Mapping):
        meant = translated(value.earlier, {**rest, **old})
        if all(name in rest and _same(rest[name], part) for name, part in meant.items()):
            rest = {name: part for name, part in rest.items() if name not in meant} | dict(old)
    beside = _beside(type(value))
    return {beside.get(name, name): part for name, part in rest.items()}


def _same(one: object, other: object) -> bool:
    return one is other or (type(one) is type(other) and bool(one == other))
