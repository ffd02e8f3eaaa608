"""Live rows of answers that somebody wrote down, as `surelearn watch` reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass
class LiveAnswers:
    """Live rows of answers that somebody wrote down, read as the certified ones were."""

    path: Path
    certificate: Any
    source: str
    target: str | None = None
    prediction: str | None = None
    group: str | None = None
    model: Path | None = None
    note: Any = ""
    rows: int = 0
    at_once = True
    labelled = True
    complete = True  # slices are columns of the file
    counter = None  # nothing else is known of the certified rows

    def __post_init__(self) -> None:
        from surelearn.auditing.answers import Roles, read_units

        if self.model is not None:
            raise ValueError("the certificate is about recorded answers: leave out --model")
        options = self.certificate.facts.options
        roles = Roles.from_dict(options["answers"])
        if roles.answered_by is not None and roles.answer:  # what it answers live is one column
            roles = replace(roles, score=None, probabilities=(), threshold=None)
        given = {"target": roles.role_of_truth, "prediction": roles.role_of_answer}
        renamed = {role: getattr(self, name) for name, role in given.items() if getattr(self, name)}
        if self.group is not None:
            renamed["group"] = self.group
        roles = replace(roles, against=None, weight=None, weight_bound=None, coin=False, **renamed)
        if "walk.threshold" in self.certificate.facts:
            roles = replace(roles, threshold=float(self.certificate.facts["walk.threshold"]))
        known = options.get("classes")
        self.units = read_units(self.source, roles, options.get("positive"), known, live=True)
        self.target = self.units.target

    def close(self) -> None:
        """Nothing is open."""

    def columns(self) -> tuple[Any, ...]:
        """Hashes, truths, answers, groups and the slices' columns of the file's rows, and what
        `Watch.update` is told of their sets or intervals.
        """
        import numpy as np
        import pandas as pd

        from surelearn.data import hash_rows
        from surelearn.lacking import Lacking
        from surelearn.prediction import intervals

        units = self.units
        self.rows = len(units.y)
        answers = units.y if units.task == "losses" else units.model.predict(units.X)
        judged = pd.DataFrame({"truth": units.y, "answer": answers}).astype(str)
        beside = units.beside.add_prefix("beside ").reset_index(drop=True)
        hashes = hash_rows(pd.concat([beside, judged], axis=1))
        told: dict[str, Any] = {}
        if units.task == "regression":
            ends = intervals(units.model, units.X, self.certificate, answers)
            told = {} if isinstance(ends, Lacking) else {"intervals": ends}
        elif (sets := self._sets()) is not None:
            told = {"sets": sets}
        return hashes, np.asarray(units.y), np.asarray(answers), units.groups, units.X, told

    @property
    def with_sets(self) -> bool:
        """Whether the file has the scores that prediction sets are made of."""
        from surelearn.subject import subject_of

        sets = self.certificate.sets
        return sets is not None and subject_of(self.units.model).gives_probabilities

    def _sets(self) -> Any:
        """(n, classes) the prediction sets; None where there are none."""
        if not self.with_sets:
            return None
        # as the certified scores were taken, whatever the range of these
        probable = self.certificate.facts.options.get("score_is_probability", True)
        model = self.units.model.taken_as(probable=probable)
        return self.certificate.sets.members(model, self.units.X)

    def one_by_one(self) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Never asked: standard input is read at once."""
        return iter(())
