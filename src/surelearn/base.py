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
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from surelearn.certificate import Certificate, Facts, fit_certificate
from surelearn.earlier import EarlierNames, refuse_both, warn_of_earlier
from surelearn.fingerprint import fingerprint_model
from surelearn.record import ROOMS, Record
from surelearn.subject import describe

# Checks that a row of weight 2 counts as two rows, and a row of weight 0 as none.
WEIGHTED_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)


class Estimator(EarlierNames, BaseEstimator):
    """A scikit-learn estimator that takes earlier names of its parameters, too."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters, nested ones too, as scikit-learn does."""
        owner = type(self).__name__
        if not self.earlier.keys().isdisjoint(params):
            usual = self.get_params(deep=False)
            refuse_both(owner, self.earlier, params, usual)
            warn_of_earlier(owner, self.earlier, params)
            params = self.of_today(usual | params)
        return super().set_params(**params)


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
