"""What every learner shares: a certificate, made of the record that ``fit`` kept.

``fit`` keeps plain numbers in ``facts_``; ``record_`` is the typed record of them, and
``certificate_`` turns it into claims when it is asked for, so that fitting pays nothing for a
certificate that nobody reads, and a saved learner brings its certificate along.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from surelearn.certificate import Certificate, Facts, fit_certificate
from surelearn.fingerprint import fingerprint_model
from surelearn.record import ROOMS, Record
from surelearn.subject import describe

# Checks that a row of weight 2 counts as two rows, and a row of weight 0 as none.
WEIGHTED_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)

Translation = Callable[[Any, Mapping[str, Any]], dict[str, Any]]


def _warn_of_earlier(cls: type[Learner], given: Mapping[str, Any]) -> bool:
    """Whether some of the given names are earlier ones; then a warning says so."""
    old = sorted(cls.earlier.keys() & given.keys())
    for name in old:
        today = cls.earlier[name]
        instead = f" is {today!r} now" if isinstance(today, str) else f": {today.__doc__}"
        message = f"{name!r} of {cls.__name__}{instead}; the earlier name goes with version 0.4"
        warnings.warn(message, FutureWarning, stacklevel=4)
    return bool(old)


def _reading_earlier(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that takes earlier names of its parameters, too, with a warning."""

    @functools.wraps(init)
    def reading(self: Learner, *args: Any, **given: Any) -> None:
        if _warn_of_earlier(type(self), given):
            given = self.of_today(given)
        init(self, *args, **given)

    return reading


class Learner(BaseEstimator):
    """A scikit-learn estimator with ``certificate_``.

    A subclass names its ``Record``, sets ``facts_`` in ``fit`` to a dict of the record's fields,
    and writes `measure_again`, which tells them from the fitted model and the rows. Where a claim
    about the rows it was fitted on does not apply, the certificate says why.
    """

    Record: ClassVar[type[Record]]
    takes_sparse: ClassVar[bool] = False
    # Earlier names of parameters, read with a warning for one release: the name of today, or a
    # function from the value and all arguments to arguments of today, where the meaning changed.
    earlier: ClassVar[Mapping[str, str | Translation]] = {}
    facts_: dict[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _reading_earlier(cls.__init__)

    @classmethod
    def of_today(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters under their names of today; those of a model that an earlier version saved."""
        found = {name: value for name, value in given.items() if name not in cls.earlier}
        for name in cls.earlier.keys() & given.keys():
            today, value = cls.earlier[name], given[name]
            found |= {today: value} if isinstance(today, str) else today(value, given)
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters, nested ones too, as scikit-learn does."""
        if _warn_of_earlier(type(self), params):
            params = self.of_today(self.get_params(deep=False) | params)
        return super().set_params(**params)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(self.of_today(state))

    if not TYPE_CHECKING:  # attributes are checked by name

        def __getattr__(self, name: str) -> Any:
            today = type(self).earlier.get(name)
            if not isinstance(today, str):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            _warn_of_earlier(type(self), {name: None})
            return getattr(self, today)

    def __sklearn_tags__(self) -> Any:
        """Whether sparse rows are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.takes_sparse
        return tags

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Learners of this class, made as people make them, for tests: with what each claim
        needs, and without.
        """
        yield cls()

    @classmethod
    def checked(cls) -> Iterator[Self]:
        """What scikit-learn's checks are run on: one learner for each way that the code can
        take; else the first example.
        """
        yield from itertools.islice(cls.examples(), 1)

    def expected_failures(self) -> dict[str, str]:
        """scikit-learn's checks that this learner cannot pass, each with its reason; a test
        holds it to both.
        """
        return {}

    @property
    def record_(self) -> Record:
        """What happened in the fit: typed, frozen and primitive."""
        check_is_fitted(self, "facts_")
        # models of version 0.2 kept derived numbers, too
        return self.Record.read(self.facts_, strict=False)

    @property
    def certificate_(self) -> Certificate:
        """What is guaranteed about this fit: facts, claims, and the claims that do not apply
        with their reasons.
        """
        delta = float(getattr(self, "delta", 0.05))
        record = self.record_
        facts = Facts(
            subject=describe(self),
            setting=record.setting,
            record=record.key,
            hashes={"model": fingerprint_model(self)},
            options={"delta": delta},
            values=record.values(),
        )
        return fit_certificate(record, facts)

    def measure_again(self, X: Any, y: Any = None, sample_weight: Any = None) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows it was fitted on tell,
        measured again.
        """
        raise NotImplementedError


def learners() -> list[type[Learner]]:
    """Every public learner, found where learners live: a new one is discovered without being
    listed.
    """
    rooms = [importlib.import_module(f"surelearn.{room}") for room in ROOMS]
    found = {
        made
        for room in rooms
        for made in vars(room).values()
        if inspect.isclass(made) and issubclass(made, Learner)
    }
    return sorted(found, key=lambda made: made.__name__)
