"""An attack that comes near what is proved: gradient cancelling, with more and more poison
inside the columns' range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelearn.attacks.poison_allowed import Allowed
from surelearn.attacks.poison_objectives import LinearObjective, known_objective
from surelearn.attacks.poisoning import cancel_gradient, neutral_rows
from surelearn.lacking import Lacking
from surelearn.robust.poisoning.fit import Array, in_numbers
from surelearn.robust.poisoning.within_range import Box, LinearFit, flipped_claim
from surelearn.subject import subject_of
from surelearn.types import AnyArray, Model, TableRows

# of the threshold, tried in turn until an attack flips every answer
MULTIPLES = (0.9, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
# clean rows beside which gradient cancelling is tried, and its steps
_TRIED, _ITERATIONS = 300, 200


@dataclass(frozen=True, eq=False)
class CancelledAnswers:
    """An attack beside a few clean rows, with more and more poison.

    Attributes
    ----------
    rows : how many clean rows
    threshold : what is proved for these
    multiples : of the threshold, tried in turn
    flipped : the share of answers flipped with each
    fraction : the poison per clean row with the last
    """

    rows: int
    threshold: float
    multiples: tuple[float, ...]
    flipped: tuple[float, ...]
    fraction: float


def cancel_answers(
    model: Model, X: TableRows, y: AnyArray, *, random_state: int = 0
) -> CancelledAnswers | Lacking:
    """With how much poison inside the columns' range gradient cancelling flips every answer beside
    a few clean rows.

    It aims at −t·w for a small t and starts from the rows that bring the fit to zero; then the
    objective is fitted to clean rows and poison, and the signs of its scores are counted. To stand
    beside `poisoning_thresholds`.

    Parameters
    ----------
    model : a fitted logistic regression of two classes, also at the end of a pipeline
    X, y : the rows that it was fitted to, as the model takes them

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = X[:, 0] > 0
    >>> attack = cancel_answers(LogisticRegression().fit(X, y), X, y)
    >>> attack.multiples[0], attack.flipped[0] < 1.0, attack.flipped[-1]
    (0.9, True, 1.0)
    """
    subject = subject_of(model)
    classes = subject.learner.classes
    if classes is None or len(classes) != 2:
        return Lacking("attack", "gradient cancelling is tried on the answers of two classes only")
    known, numbers = known_objective(subject, len(y)), in_numbers(subject.prepared(X))
    if isinstance(known, Lacking):
        return known
    if isinstance(numbers, Lacking):
        return numbers
    if known[0].loss != "logistic":
        return Lacking("attack", "gradient cancelling is tried on logistic regression only")
    return _tried(*known, numbers[0], np.searchsorted(np.asarray(classes), y), random_state)


def _tried(
    objective: LinearObjective, w: Array, Z: Array, codes: npt.NDArray[np.intp], seed: int
) -> CancelledAnswers | Lacking:
    rows = np.sort(np.random.default_rng(seed).permutation(len(Z))[:_TRIED])
    X, y, box = Z[rows], codes[rows], Box.of(Z)
    machine = LinearFit(
        "logistic", w[None, :-1], w[-1:], objective.regularization, objective.regularization
    )
    claim = flipped_claim(machine, box, X, y, [""] * X.shape[1])
    if claim is None or not (threshold := float(np.max(claim.value))) > 0:
        return Lacking(
            "attack", "nothing is proved for these rows that an attack could be held against"
        )
    allowed, clean = Allowed(low=box.low, high=box.high), objective.decision(w, X)[:, 0]
    reach, odd = (
        float(np.max(np.abs(box.ends(machine.weights, machine.intercepts)))),
        int(np.sum(y)) * 2 - len(y),
    )
    multiples: list[float] = []
    flipped: list[float] = []
    fraction = 0.0
    for multiple in MULTIPLES:
        count = int((np.floor if multiple < 1 else np.ceil)(multiple * threshold * len(X)))
        # so that the classes can be balanced
        count += (1 if multiple > 1 else -1) * ((count - odd) % 2)
        if count < 1:
            continue
        share, fraction = 0.0, count / len(X)
        for start, target in _aims(
            objective, w, X, y, count, allowed, 0.5 * max(multiple - 1, 0.05) / reach
        ):
            poison = cancel_gradient(
                objective, target, X, y, count=count, allowed=allowed, start=start, restarts=1, iterations=_ITERATIONS,
                refit=False, random_state=seed,
            )  # fmt: skip
            fitted = objective.fit(np.vstack([X, poison.X]), np.concatenate([y, poison.y]))
            share = max(share, float(np.mean(objective.decision(fitted, X)[:, 0] * clean < 0)))
            if share == 1.0:
                break
        multiples.append(multiple)
        flipped.append(share)
        if share == 1.0:
            break
    return CancelledAnswers(len(rows), threshold, tuple(multiples), tuple(flipped), fraction)


def _aims(
    objective: LinearObjective,
    w: Array,
    X: Array,
    y: npt.NDArray[np.intp],
    count: int,
    allowed: Allowed,
    scale: float,
) -> Iterator[tuple[tuple[Array, npt.NDArray[np.intp]], Array]]:
    """Starts with a target −t·w each, t about ``scale``: balanced classes, then one or two rows
    more of one class.

    To first order the intercept's gradient vanishes at −t·w where t times the sum of all scores is
    −4 times the rows that one class has more than balance asks for; only whole rows can be added,
    so they fix t.
    """
    start = neutral_rows(X, y, count, allowed)
    yield start, -scale * w
    total = float(objective.decision(w, X).sum() + objective.decision(w, start[0]).sum())
    for more in (1, 2):
        t = 4 * more / max(abs(total), 1e-12)
        if t < 40 * scale:
            yield neutral_rows(X, y, count, allowed, more=-more if total > 0 else more), -t * w
