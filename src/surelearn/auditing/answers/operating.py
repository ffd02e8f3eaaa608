"""An operating point of recorded answers: a random part of the file fixes the thresholds, and their order,
and the walk uses the others.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surelearn.auditing.answers.roles import Roles
from surelearn.auditing.answers.units import Units
from surelearn.auditing.options import OptionError, Options
from surelearn.data import hash_contents
from surelearn.operating import Requirement, Rungs, ladder
from surelearn.operating.walk import confidences, scores_for
from surelearn.selection.ledger import secret_salt
from surelearn.selection.split import Hashes, split_rows
from surelearn.subject.recorded import RecordedScores
from surelearn.subject.refitting import take
from surelearn.types import Ints

PART = 0.25  # of the rows, which fix the thresholds


def check_required(roles: Roles, options: Options) -> None:
    """Refuse a requirement that these columns cannot keep."""
    requirement = options.requirement
    if requirement is None:
        return
    text = str(requirement)
    if requirement.quantity == "mean_error":
        if roles.kind != "answers" or roles.score is not None:
            raise OptionError(
                lambda r, t, a: f"{r} '{text}' is about forecasts: it needs {t} and {a} with numbers",
                "require", "truth", "answer",
            )  # fmt: skip
    elif roles.probability is not None and requirement.quantity == "error":
        pass  # the confidence is the answer's probability
    elif roles.score is None and roles.answered_by is None:  # a model's score comes later
        raise OptionError(
            lambda r, s: f"{r} '{text}' chooses a threshold of scores: it needs {s}, their column",
            "require", "score",
        )  # fmt: skip
    elif roles.answer and requirement.quantity != "error":
        raise OptionError(
            lambda r, a: f"{r} '{text}' lets the scores answer from a threshold on: leave out {a}",
            "require", "answer",
        )  # fmt: skip
    if requirement.quantity == "specificity" and len(roles.truth) > 1:
        raise OptionError(
            lambda r, t: (
                f"{r} '{text}' does not go with several {t}: raters may tie, and a tie is neither"
                " class"
            ),
            "require", "truth",
        )  # fmt: skip
    for name in ("group", "weight", "against", "separator", "threshold"):
        if getattr(roles, name) is not None:
            raise OptionError(
                lambda r, o: f"{r} '{text}' does not go with {o}: leave one of them out",
                "require", name,
            )  # fmt: skip


def check_sets(roles: Roles, options: Options) -> None:
    """Refuse prediction sets of answers that nothing ranks, or of rows that no rank is about."""
    if options.sets is None:
        return
    if roles.score is None and roles.probability is None and roles.answered_by is None:
        raise OptionError(
            lambda s, p, c: (
                f"{s} needs a number for each label: {p}, the columns with a probability of each"
                f" class, or {c} where there are two"
            ),
            "sets", "probability", "score",
        )  # fmt: skip
    for name in ("weight", "separator"):
        if getattr(roles, name) is not None:
            raise OptionError(
                lambda s, o: f"{s} does not go with {o}: leave one of them out", "sets", name
            )


def divide_units(units: Units, requirement: Requirement, options: Options) -> tuple[Units, Rungs]:
    """The units that the walk uses, and the thresholds that the others fix.

    Which row does what follows from a hash of the columns that are neither labels nor come from the
    model: not from its score, nor from its label. Where these do not tell all rows apart the place in
    the file would decide, and files are sorted by labels and scores: then each row has its own coin,
    with the user's secret salt.
    """
    salt = None if tells_apart(units) else secret_salt()
    split = split_rows(_contents(units), certify=1 - PART, select=0.0, salt=salt)
    X, y = take(units.X, split.fit), units.y[split.fit]
    try:
        if requirement.quantity == "error":
            scores, predicted = confidences(units.model, X, units.classes)
            good = np.asarray(predicted == y, dtype=bool)
        else:
            scores = scores_for(units.model, X, options.positive, units.classes)
            good = np.asarray(y == options.positive, dtype=bool)
    except ValueError as error:
        said = str(error)
        raise OptionError(lambda name: said.replace("require", name, 1), "require") from None
    # as the walk's share of the first look: order and values are fixed, whatever δ it then has
    rungs = ladder(requirement, scores, good, split.certify.size, options.delta / 2, options.cost)
    return _only(units, split.certify), rungs


def tells_apart(units: Units) -> bool:
    """Whether no two rows have the same columns beside scores and labels."""
    return np.unique(_contents(units)).size == len(units.y)


def _contents(units: Units) -> Hashes:
    columns = [units.beside[name].to_numpy() for name in units.beside.columns]
    return hash_contents(columns) if columns else np.zeros(len(units.y), dtype=np.uint64)


def _only(units: Units, rows: Ints) -> Units:
    """Some of the units; further rates are left out, which depend on the threshold."""
    return replace(
        units, X=take(units.X, rows), y=units.y[rows], beside=take(units.beside, rows), further=()
    )


def answering(units: Units, threshold: float, requirement: Requirement) -> Units:
    """The units with the model that answers from the threshold on; as they are where it abstains
    below it, since its answers then stay.
    """
    model = units.model
    if (
        requirement.quantity == "error"
        or not isinstance(model, RecordedScores)
        or model.answer is not None
    ):
        return units
    chosen = RecordedScores(
        model.column,
        tuple(model.classes_.tolist()),
        model.content,
        positive=model.positive,
        threshold=threshold,
        probable=model.probable,
    )
    return replace(units, model=chosen)
