"""What every learner shares: a certificate, made of the record that ``fit`` kept.

``fit`` keeps plain numbers in ``facts_``; ``record_`` is the typed record of them, and
``certificate_`` turns it into claims when it is asked for, so that fitting pays nothing for a
certificate that nobody reads, and a saved learner brings its certificate along.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from surelearn.certificate import Certificate, Facts
from surelearn.earlier import (
    REMEMBERED,
    EarlierNames,
    as_saved,
    refuse_both,
    split_name,
    warn_of_earlier,
)
from surelearn.fingerprint import fingerprint_model
from surelearn.record import ROOMS, Record
from surelearn.seeds import without_secrets
from surelearn.subject import describe
from surelearn.types import RowsLike

# Checks that a row of weight 2 counts as two rows, and a row of weight 0 as none.
WEIGHTED_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)


class Estimator(EarlierNames, BaseEstimator):
    """A scikit-learn estimator that takes earlier names of its parameters, too, and whose
    parameters may come in ``groups``.
    """

    def set_params(self, **params: Any) -> Self:
        """Set parameters, nested ones too, as scikit-learn does; a group that is None is made."""
        owner = type(self).__name__
        if not self.earlier.keys().isdisjoint(params):
            usual = self.get_params(deep=False)
            refuse_both(owner, self.earlier, params, usual)
            warn_of_earlier(owner, self.earlier, params, groups=self.groups)
            params = self.of_today(usual | params)
        for group, _ in filter(None, [split_name(self.groups, name) for name in params]):
            if params.get(group, getattr(self, group)) is None:
                params = params | {group: self.groups[group]()}
        return super().set_params(**params)

    if not TYPE_CHECKING:  # attributes are checked by name

        def __setattr__(self, name: str, value: Any) -> None:
            today = self.earlier.get(name)
            if not isinstance(today, str):
                super().__setattr__(name, value)
                return
            warn_of_earlier(type(self).__name__, self.earlier, {name: value}, groups=self.groups)
            if split_name(self.groups, today):
                self.set_params(**{today: value})
            else:
                setattr(self, today, value)


class ParameterGroup(Estimator):
    """Parameters of a learner that few people set, in one object; two are equal if all of them
    are.

    A learner names its groups, ``groups = {"sgd": SGD}``; the parameter ``sgd`` is such an object,
    or None for one with the defaults. Nested names work as everywhere in scikit-learn:
    ``set_params(sgd__step=0.1)``, also where it was None.
    """

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it can be changed

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, ParameterGroup):
            return False
        return self.get_params() == other.get_params()


G = TypeVar("G", bound=ParameterGroup)


def group_of(name: str, value: G | None, kind: type[G]) -> G:
    """A learner's group of parameters, given or with the defaults."""
    if value is not None and not isinstance(value, kind):
        raise ValueError(f"{name} must be {kind.__name__}(…) or None, not {value!r}")
    return kind() if value is None else value


class Learner(Estimator):
    """A scikit-learn estimator with ``certificate_``.

    A subclass names its ``Record``, sets ``facts_`` in ``fit`` to a dict of the record's fields,
    and writes `measure_again`, which tells them from the fitted model and the rows. Where a claim
    about the rows it was fitted on does not apply, the certificate says why.
    """

    Record: ClassVar[type[Record]]
    takes_sparse: ClassVar[bool] = False
    facts_: dict[str, Any]

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
        return Certificate.of_record(record, facts)

    def described_earlier(self) -> str:
        """As `describe` writes it with earlier names of parameters, and those of groups beside
        them: so it stands in certificates of the time when it was made.
        """
        safe, usual = without_secrets(self), _defaults(type(self))
        for group, made in self.groups.items():
            usual |= {f"{group}__{name}": value for name, value in _defaults(made).items()}
        for name, today in self.earlier.items():
            if isinstance(today, str) and today in usual:
                usual[name] = usual[today]
        remembered = {REMEMBERED: vars(self).get(REMEMBERED)}
        given = as_saved(safe, safe.get_params(deep=False) | remembered)
        return describe(_shown(type(self).__name__, given, usual))

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows it was fitted on tell,
        measured again.
        """
        raise NotImplementedError


def _defaults(cls: type) -> dict[str, Any]:
    parameters = inspect.signature(cls).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not one.empty}


def _shown(name: str, given: dict[str, Any], usual: dict[str, Any]) -> BaseEstimator:
    """An estimator of a class of that name with these parameters and defaults, for its repr."""

    def init(self: BaseEstimator) -> None:
        vars(self).update(given)

    by_name, none = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    parameters += [inspect.Parameter(p, by_name, default=usual.get(p, none)) for p in given]
    vars(init)["__signature__"] = inspect.Signature(parameters)
    return type(name, (BaseEstimator,), {"__init__": init})()


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
