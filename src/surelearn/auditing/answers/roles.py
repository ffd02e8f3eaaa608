"""What the columns of a file of answers are, as its user says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from surelearn.auditing.options import OptionError
from surelearn.stated import is_number

Kind = Literal["answers", "scores", "passes", "grades", "duels"]
TIES = ("tie", "draw", "both", "equal")  # words that mean a tie unless others are stated


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Which column is what; everything here is fixed before the rows are looked at.

    Attributes
    ----------
    truth : the columns of labels, or of numbers: several where several raters labelled the rows
    answer : the column of the answers; several: the first guess, the second, …
    score : of the class that matters: a probability, or any number that ranks rows
    probability : the columns with a probability of each class, by a pattern whose star is the class,
        such as "p_*"; without ``answer`` the most probable class is the answer
    threshold : with ``score``: the class is answered from this score on; by default 0.5 of
        probabilities
    passed : whether a unit passed
    grade, loss_range : a number for each unit, higher is better, and its stated range
    winner, ours, ties : of duels: who won, which of them is ours, and the words for a tie
    against : the column of other answers (passes, grades) to the same rows
    separator : splits several labels in one cell
    group : units with the same value belong together
    slices : columns whose values are subpopulations to report; "age:30,60" cuts a number
    weight, weight_bound : w = 1/(N·q) of rows that were drawn with probabilities q from N, and what
        no weight exceeds, as stated
    coin : instead, all rows are given, and each was labeled with probability 1/w by its own coin
    drop : columns that come from the model, or say nothing: they do not tell which rows these are
    header : whether the first line of a text table holds the names
    task : "classification" or "regression", where the truth's kind is misread
    probabilities : of each class, in the order of ``labels``
    labels : those that the answers can be, in the model's order; by default those of the truth
    answered_by, rival_by : the files of the models that answered, "model.onnx, sha256:…"; the columns
        of answers, scores and probabilities are then what they said of the rows
    low, high : of numbers: the ends of somebody's own intervals
    """

    truth: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    score: str | None = None
    threshold: float | None = None
    passed: str | None = None
    grade: str | None = None
    loss_range: tuple[float, float] | None = None
    winner: str | None = None
    ours: str | None = None
    ties: tuple[str, ...] = TIES
    against: str | None = None
    separator: str | None = None
    group: str | None = None
    slices: tuple[str, ...] = ()
    weight: str | None = None
    weight_bound: float | None = None
    coin: bool = False
    drop: tuple[str, ...] = ()
    header: bool | None = None
    task: Literal["classification", "regression"] | None = None
    probabilities: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    answered_by: str | None = None
    rival_by: str | None = None
    probability: str | None = None
    low: str | None = None
    high: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, tuple):
                kept = (str(value),) if isinstance(value, str | int) else tuple(map(str, value))
                object.__setattr__(self, field.name, kept)
            elif field.name == "loss_range" and value is not None:
                object.__setattr__(self, field.name, tuple(value))
        if self.task not in (None, "classification", "regression"):
            raise OptionError(
                lambda n: f"{n} must be 'classification' or 'regression', not {self.task!r}", "task"
            )
        for name in (
            "truth",
            "answer",
            "separator",
            "score",
            "passed",
            "grade",
            "winner",
            "against",
        ):
            if "" in (getattr(self, name), *(getattr(self, name) or ())):
                raise OptionError(lambda n: f"{n} must not be empty", name)
        self._check_kind()
        self._check_together()

    @property
    def kind(self) -> Kind:
        """What the file holds."""
        if self.passed is not None:
            return "passes"
        if self.grade is not None:
            return "grades"
        if self.winner is not None:
            return "duels"
        return "answers" if self.answer or not self.score else "scores"

    @property
    def role_of_truth(self) -> str:
        """The role of the column that says what is right, or how a unit was judged."""
        named = {"passes": "passed", "grades": "grade", "duels": "winner"}
        return named.get(self.kind, "truth")

    @property
    def role_of_answer(self) -> str:
        """The role of the column that holds what is certified."""
        named = {"scores": "score", "answers": "answer"}
        return named.get(self.kind, self.role_of_truth)

    def _check_kind(self) -> None:
        """Refuse what says nothing, or too much."""
        main = {"passed": self.passed, "grade": self.grade, "winner": self.winner}
        given = [name for name, column in main.items() if column]
        by_score = bool(self.score or self.probability or self.answered_by)
        by_truth = bool(self.truth or self.answer or by_score)
        if len(given) + by_truth != 1:
            said = ("truth", "answer", "score", "passed", "grade", "winner")
            many = "only one of these can be what is certified" if given else "say what is what"
            raise OptionError(
                lambda t, a, s, p, g, w: (
                    f"{many}: {t} with {a} (or with {s}), {p}, {g}, or {w} with the name of ours"
                ),
                *said,
            )
        if by_truth and not self.truth:
            name = "answer" if self.answer else "score" if self.score else "probability"
            raise OptionError(
                lambda n, t: f"{n} needs {t}, the column of what is right", name, "truth"
            )
        if by_truth and not (self.answer or by_score):
            raise OptionError(
                lambda t, a, s: f"{t} needs {a}, the column of the answers, or {s}",
                "truth",
                "answer",
                "score",
            )

    def _check_together(self) -> None:
        """Refuse what does not go together."""
        self._check_probability()
        goes: tuple[tuple[str, bool, str], ...] = (
            ("ours", self.winner is not None, "winner"),
            ("loss_range", self.grade is not None, "grade"),
            ("threshold", bool(self.score or self.answered_by), "score"),
            ("weight_bound", self.weight is not None, "weight"),
            ("low", self.high is not None, "high"),
            ("high", self.low is not None, "low"),
            ("low", bool(self.answer), "answer"),
        )
        for name, there, other in goes:
            if getattr(self, name) is not None and not there:
                raise OptionError(lambda n, o: f"{n} goes with {o}", name, other)
        if self.loss_range is not None and len(self.loss_range) != 2:
            raise OptionError(
                lambda n: f"{n} must be two numbers, the lower one first", "loss_range"
            )
        if self.weight is not None and self.group is not None and not self.coin:
            raise OptionError(
                lambda w, g, c: (
                    f"{w} does not go with {g}: rows that are drawn one by one are no draws of groups"
                    f" (with {c} they are)"
                ),
                "weight", "group", "coin",
            )  # fmt: skip
        if self.coin and self.weight is None:
            raise OptionError(lambda c, w: f"{c} goes with {w}", "coin", "weight")
        needs = (("winner", "ours"), ("weight", "weight_bound"), ("grade", "loss_range"))
        why = {
            "ours": "whose wins are counted",
            "weight_bound": "which no weight exceeds, stated and not the largest one seen",
            "loss_range": "the least and the largest grade that there can be",
        }
        for name, other in needs:
            if getattr(self, name) is not None and getattr(self, other) is None:
                raise OptionError(lambda n, o, w=why[other]: f"{n} needs {o}, {w}", name, other)
        for name in ("threshold", "weight_bound"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and math.isfinite(value)):
                raise OptionError(lambda n, v=value: f"{n} must be a number, not {v!r:.60}", name)
        if self.weight_bound is not None and self.weight_bound < 1:
            raise OptionError(
                lambda n: f"{n} must be at least 1, as some weight is, not {self.weight_bound:g}",
                "weight_bound",
            )
        if self.winner is not None and self.against is not None:
            raise OptionError(
                lambda a, w: f"{a} does not go with {w}: a duel is against the other",
                "against",
                "winner",
            )
        if self.separator is not None and (self.score or len(self.truth) + len(self.answer) != 2):
            raise OptionError(
                lambda s, t, a: f"{s} goes with one {t} and one {a}", "separator", "truth", "answer"
            )
        if len(self.truth) > 1 and self.weight is not None:
            raise OptionError(
                lambda t, w: f"several {t} columns do not go with {w}", "truth", "weight"
            )

    def _check_probability(self) -> None:
        """Refuse a pattern that is none, or goes with other columns."""
        pattern = self.probability
        if pattern is None:
            return
        if pattern.count("*") != 1:
            raise OptionError(
                lambda p: (
                    f"{p} must have one star in the place of the class, such as 'p_*' for the columns"
                    f" p_cat and p_dog, not {pattern!r:.60}"
                ),
                "probability",
            )
        for name in ("score", "separator", "answered_by"):
            if getattr(self, name) is not None:
                other = "a model" if name == "answered_by" else None
                raise OptionError(
                    lambda p, o, other=other: f"{p} does not go with {other or o}: leave it out",
                    "probability", name,
                )  # fmt: skip
        if len(self.answer) > 1:
            raise OptionError(
                lambda p, a: f"{p} goes with one {a}, or none", "probability", "answer"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, from which `from_dict` makes the same roles; what came later only where it is
        given.
        """
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if name != "probability" or value is not None
        }

    def stated(self) -> dict[str, Any]:
        """As `to_dict`, without what is as it is by default."""
        usual = Roles(passed="any").to_dict() | {"passed": None}
        return {n: value for n, value in self.to_dict().items() if value != usual.get(n)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Roles:
        """Read what `to_dict` wrote."""
        known = {field.name for field in fields(cls)}
        kept: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list | tuple) else value
            for name, value in plain.items()
            if name in known
        }
        return cls(**kept)
