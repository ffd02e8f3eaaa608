"""What a user may ask of an audit, checked once, for Python and for the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

from surelearn.measurement import check_range
from surelearn.operating import Requirement
from surelearn.selection.costs import cost_of_threshold
from surelearn.selection.width import FORMS, Form

LABELLED = "labelled"  # what ``population`` may be


def _refused(text: object, name: str) -> str:
    """Why a requirement cannot be read, with the name of its option."""
    try:
        return str(Requirement.parse(text, name))
    except ValueError as error:
        return str(error)


class OptionError(ValueError):
    """An option that no audit can have; ``say`` puts the names of the options into the sentence.

    Python's own names stand in its text. The command line asks for the sentence with the names that
    it gives them.
    """

    def __init__(self, say: Callable[..., str], *names: str) -> None:
        self.say, self.names = say, names
        super().__init__(say(*names))

    def in_terms_of(self, flags: Mapping[str, str]) -> str:
        """The sentence with other names for the options."""
        return self.say(*(flags.get(name, name) for name in self.names))


@dataclass(frozen=True, kw_only=True)
class Options:
    """Everything a user may ask of an audit; all of it is fixed before the certify rows are
    looked at.
    """

    delta: float = 0.05
    positive: Any = None
    cost: float | None = None
    threshold: float | None = None
    alpha: float = 0.1
    loss: str = "absolute"
    loss_bound: float | None = None
    largest_group: int | None = None
    slices: tuple[str, ...] = ()
    certify_fraction: float | None = None
    select_fraction: float | None = None
    prefer: str = "best"
    metric: str | None = None
    minutes: float | None = None
    criterion: str | None = None
    seed: int = 0
    refits: int = 10
    curve_repeats: int = 3
    skip: tuple[str, ...] = ()
    effort: float = 1.0
    show_rows: bool = False
    independent: bool = False
    population: str | None = None
    coins: bool = False
    require: str | None = None
    sets: float | None = None
    per_class: bool = False
    target_range: tuple[float, float] | None = None
    width: Form | None = None

    def __post_init__(self) -> None:
        for name in ("slices", "skip"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(value))
        for name in ("delta", "alpha", "threshold", "certify_fraction", "sets"):
            self._check(name, lambda x: 0 < x < 1, "lie strictly between 0 and 1")
        self._check("select_fraction", lambda x: 0 <= x < 1, "be at least 0 and below 1")
        for name in ("cost", "loss_bound", "minutes"):
            self._check(name, lambda x: 0 < x < float("inf"), "be a positive number")
        self._check("effort", lambda x: 0 < x < float("inf"), "be a finite number above 0")
        self._check(
            "largest_group", lambda x: x >= 1 and x == int(x), "be a whole number of at least 1"
        )
        if self.population not in (None, LABELLED):
            raise OptionError(
                lambda name: f"{name} must be {LABELLED!r} or nothing, not {self.population!r}",
                "population",
            )
        if (self.cost is not None or self.threshold is not None) and self.positive is None:
            raise OptionError(
                lambda *names: "{} and {} need {}, the class that matters".format(*names),
                "cost",
                "threshold",
                "positive",
            )
        self._check_requirement()
        if self.per_class and self.sets is None:
            raise OptionError(
                lambda p, s: f"{p} goes with {s}, the part of new rows whose sets may miss the truth",
                "per_class", "sets",
            )  # fmt: skip
        self._check_interval()
        if self.metric is not None and self.miss is not None:
            raise OptionError(
                lambda *names: (
                    "{} says that candidates are compared by the mean cost: leave out {}".format(
                        *names
                    )
                ),
                "cost" if self.cost is not None else "threshold",
                "metric",
            )
        self._check_names()

    def _check_requirement(self) -> None:
        """Refuse what cannot be required, or goes with other options."""
        if self.require is None:
            return
        text = self.require
        try:
            requirement = Requirement.parse(text)
        except ValueError:
            raise OptionError(lambda name: _refused(text, name), "require") from None
        object.__setattr__(self, "require", str(requirement))
        kind = requirement.quantity
        needs = {"mean_error": "loss_bound", "mean_cost": "cost"}.get(kind, "positive")
        if kind != "error" and getattr(self, needs) is None:
            why = {
                "loss_bound": "which no error exceeds",
                "cost": "what a missed positive costs when a false alarm costs 1",
                "positive": "the class that matters",
            }[needs]
            raise OptionError(
                lambda r, n: f"{r} '{requirement}' needs {n}, {why}", "require", needs
            )
        for other in ("threshold", *(() if kind == "mean_cost" else ("cost",))):
            if getattr(self, other) is not None:
                raise OptionError(
                    lambda r, o: f"{r} '{requirement}' chooses the threshold: leave out {o}",
                    "require",
                    other,
                )
        if self.largest_group is not None:
            raise OptionError(
                lambda r, o: f"{r} counts rows one by one: leave out {o}",
                "require",
                "largest_group",
            )

    def _check_interval(self) -> None:
        """Refuse a range of the target that is none, and a form of intervals that there is not."""
        if self.width is not None and self.width not in FORMS:
            raise OptionError(
                lambda name: f"{name} must be {', '.join(FORMS)}, not {self.width!r:.60}", "width"
            )
        if self.target_range is None:
            return
        try:
            object.__setattr__(self, "target_range", check_range(self.target_range))
        except ValueError:
            given = self.target_range
            raise OptionError(
                lambda name: (
                    f"{name} must be two finite numbers, the lower one first, not {given!r:.60}"
                ),
                "target_range",
            ) from None

    def _check(self, name: str, holds: Callable[[Any], bool], must: str) -> None:
        """Refuse a number that does not hold; None is for options that need not be given."""
        value = getattr(self, name)
        if value is None and self.__dataclass_fields__[name].default is None:
            return
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number or not holds(value):
            told = f"{value:g}" if number else repr(value)
            raise OptionError(lambda name: f"{name} must {must}, not {told}", name)

    def _check_names(self) -> None:
        """Refuse a criterion, a metric or a section that there is not."""
        from surelearn.auditing.sections import skippable

        if self.criterion is not None:
            from surelearn.selection.criteria import as_criterion

            as_criterion(self.criterion)
        if self.metric is not None:
            from surelearn.selection.metrics import METRICS

            if self.metric not in METRICS:
                raise OptionError(
                    lambda name: f"{name} must be one of {', '.join(METRICS)}, not {self.metric!r}",
                    "metric",
                )
        known = skippable()
        if unknown := sorted(set(self.skip) - set(known)):
            raise OptionError(
                lambda name: f"{name} knows the sections {', '.join(known)}, not {unknown[0]!r}",
                "skip",
            )

    @property
    def requirement(self) -> Requirement | None:
        """What the operating point must keep."""
        return None if self.require is None else Requirement.parse(self.require)

    def stated(self) -> dict[str, Any]:
        """All options by name, without those about prediction sets and intervals that are not asked
        for.
        """
        left_out = {
            name for name in ("sets", "target_range", "width") if getattr(self, name) is None
        }
        left_out |= {"per_class"} if self.sets is None else set()
        return {name: v for name, v in asdict(self).items() if name not in left_out}

    @property
    def of_sets(self) -> dict[str, Any]:
        """What `certify` is told of prediction sets."""
        return {} if self.sets is None else {"sets": self.sets, "per_class": self.per_class}

    @property
    def miss(self) -> float | None:
        """What a missed positive costs when a false alarm costs 1: as stated, or as a stated
        threshold implies.
        """
        return (
            self.cost
            if self.cost is not None or self.threshold is None
            else cost_of_threshold(self.threshold)
        )
