"""What a reproduction is asked and what it answers: plain data, drawn by
`surelearn.papers.page`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from surelearn.jobs import Runner
from surelearn.report.document import PageTable


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure as data.

    Attributes
    ----------
    kind : "boxes" (``groups``: name → values), "bars" (``groups``: name → counts, one for each of
        ``labels``) or "lines" (``groups``: name → heights, one for each of ``at``; at most four)
    labels : of the bars, from left to right
    mark : which of the bars is marked, by its position
    axis : what is measured
    at, across : where the heights of lines lie, and what that is
    note : how to read it
    """

    kind: Literal["boxes", "bars", "lines"]
    title: str
    groups: Mapping[str, tuple[float, ...]]
    axis: str
    labels: tuple[str, ...] = ()
    mark: int | None = None
    at: tuple[float, ...] = ()
    across: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class TitledTable:
    """A titled table with a note."""

    title: str
    table: PageTable
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came out: the source, sentences, figures, tables, and every number for
    ``results.json``.
    """

    source: str
    headline: str
    findings: tuple[str, ...]
    figures: tuple[Figure, ...] = ()
    parts: tuple[TitledTable, ...] = ()
    notes: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Nothing:
    """No settings."""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A computation and what can be set about it.

    Parameters
    ----------
    run : ``run(settings, seed, runner)``, an `Outcome`; tasks go through the runner, seeds come
        from `jobs.seed_for`
    settings : a frozen dataclass whose fields hold their meaning, made by `setting`; its
        constructor refuses bad values
    """

    run: Callable[[Any, int, Runner], Outcome]
    settings: type[Any] = Nothing

    def meanings(self) -> dict[str, tuple[Any, str]]:
        """Each setting's default and meaning."""
        return {
            each.name: (each.default, each.metadata["meaning"]) for each in fields(self.settings)
        }

    def read(self, given: Mapping[str, Any]) -> Any:
        """The settings, from values or from texts as a command line has them."""
        known = self.meanings()
        for name in given:
            if name not in known:
                can = (
                    f"what can be set is {', '.join(known)}" if known else "nothing can be set here"
                )
                raise ValueError(f"there is no setting {name!r}: {can}")
        return self.settings(
            **{name: _as_kind(name, value, type(known[name][0])) for name, value in given.items()}
        )


def setting(default: float | str, meaning: str) -> Any:
    """A field of a settings dataclass; texts are read as the default's type."""
    return field(default=default, metadata={"meaning": meaning})


def one_of(name: str, value: float | str, choices: tuple[float | str, ...]) -> None:
    """Refuse what is not among the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(str, choices))}, not {value}")


def _as_kind(name: str, value: float | str, kind: type) -> Any:
    if kind is str:
        return str(value)
    try:
        read = kind(value)
    except (TypeError, ValueError):
        read = None
    if read is None or (kind is int and str(read) != str(value)) or read != read:
        raise ValueError(
            f"{name} must be a {'whole number' if kind is int else 'number'}, not {value!r}"
        )
    return read
