"""By what candidates are compared on rows they were not fitted on: log loss, Brier score, error
rate, AUC, …; absolute, squared and quantile error for numbers.

Every metric is something to have little of, so that the best candidate has the least.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from surelearn.selection.costs import least_threshold
from surelearn.subject import Task
from surelearn.types import AnyArray, Array, Ints, Label

CLIP = 1e-6  # a probability below it counts as this much, so that one row costs at most 13.8


@dataclass(frozen=True, eq=False)
class Answers:
    """What one candidate says of rows that it was not fitted on.

    Attributes
    ----------
    y : (n,), the truth
    predictions : (n,), its answers
    probabilities : (n, classes) in the order of ``classes``, where it has them
    classes : the labels, sorted
    positive : the class that matters, where it was stated
    """

    y: AnyArray
    predictions: AnyArray
    probabilities: Array | None
    classes: AnyArray
    positive: Label | None = None

    def of_truth(self) -> Array:
        """(n,), the probability of the right class."""
        return np.take_along_axis(self.sure, self.codes[:, None], axis=1)[:, 0]

    @property
    def codes(self) -> AnyArray:
        """(n,), the position of the right class."""
        return np.searchsorted(self.classes, self.y)

    @property
    def sure(self) -> Array:
        """The probabilities, which the metric needs."""
        if self.probabilities is None:
            raise ValueError("the metric needs probabilities, and the candidate gives none")
        return self.probabilities

    @property
    def matters(self) -> Label:
        """The class that matters; of two the second, unless stated."""
        return self.classes[-1] if self.positive is None else self.positive

    def score(self) -> tuple[Array, AnyArray]:
        """(n,), the probability of the class that matters, and whether it is that class."""
        positive = self.matters
        return self.sure[:, self.classes.tolist().index(positive)], self.y == positive


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric: a loss for each row, whose mean is compared, or one number for all rows.

    Attributes
    ----------
    name : how `select` and ``--metric`` know it
    label : what people call the compared number
    task : what it is for
    needs : "probabilities" or "answers"
    losses : a loss for each row; or None
    value : where there is none: one number for all rows
    two_classes : whether it is for two classes only
    unit : how the number is written
    threshold : for metrics of answers that a decision threshold decides, of two classes: from
        probabilities of the class that matters and whether it is that class to the best threshold
    """

    name: str
    label: str
    task: Task
    needs: Literal["answers", "probabilities"] = "answers"
    losses: Callable[[Answers], Array] | None = None
    value: Callable[[Answers], float] | None = None
    two_classes: bool = False
    unit: Literal["rate", "number"] = "number"
    threshold: Callable[[Array, AnyArray], float] | None = None


def log_loss(answers: Answers) -> Array:
    """−ln of the right class's probability, at least `CLIP`.

    Examples
    --------
    >>> two = np.array(["no", "yes"])
    >>> log_loss(Answers(two, two, np.array([[0.5, 0.5], [1.0, 0.0]]), two)).round(3).tolist()
    [0.693, 13.816]
    """
    return -np.log(np.clip(answers.of_truth(), CLIP, 1.0))


def brier(answers: Answers) -> Array:
    """Σ_k (p_k − [y = k])², between 0 and 2."""
    return np.square(answers.sure).sum(axis=1) - 2 * answers.of_truth() + 1


def is_wrong(answers: Answers) -> Array:
    """0 or 1."""
    return np.asarray(answers.predictions != answers.y, dtype=float)


def _size(answers: Answers) -> Array:
    return np.abs(np.asarray(answers.predictions, float) - np.asarray(answers.y, float))


def quantile(level: float) -> Callable[[Answers], Array]:
    """Koenker and Bassett's loss (1978): the mean is least at the quantile of this level."""

    def losses(answers: Answers) -> Array:
        over = np.asarray(answers.y, float) - np.asarray(answers.predictions, float)
        return np.maximum(level * over, (level - 1) * over)

    return losses


def _not_ranked(answers: Answers) -> float:
    """1 − AUC: how often a positive row is ranked below a negative one."""
    from sklearn.metrics import roc_auc_score

    score, is_positive = answers.score()
    return 1 - float(roc_auc_score(is_positive, score)) if np.unique(is_positive).size == 2 else 0.5


def _not_precise(answers: Answers) -> float:
    from sklearn.metrics import average_precision_score

    score, is_positive = answers.score()
    return 1 - float(average_precision_score(is_positive, score)) if is_positive.any() else 1.0


def _no_f1(answers: Answers) -> float:
    positive = answers.matters
    said, true = answers.predictions == positive, answers.y == positive
    both = 2 * int((said & true).sum())
    return 1 - both / max(1, int(said.sum()) + int(true.sum()))


def _unbalanced(answers: Answers) -> float:
    """The mean over classes of the share that is answered wrongly."""
    wrong = is_wrong(answers)
    return float(np.mean([wrong[answers.y == one].mean() for one in np.unique(answers.y)]))


def threshold_of_f1(p: Array, is_positive: AnyArray) -> float:
    """The threshold with the largest F1 = 2·TP/(2·TP + FP + FN).

    Examples
    --------
    >>> p, is_positive = np.array([0.1, 0.2, 0.3, 0.4]), np.array([False, True, False, True])
    >>> round(threshold_of_f1(p, is_positive), 3)
    0.15
    """
    count = int(is_positive.sum())

    def loss(missed: Ints, alarms: Ints) -> Array:
        found = 2.0 * (count - missed)
        return -found / np.maximum(found + alarms + missed, 1)

    return least_threshold(p, is_positive, loss)


def threshold_of_balance(p: Array, is_positive: AnyArray) -> float:
    """The threshold with the least mean of both classes' error rates.

    Examples
    --------
    >>> threshold_of_balance(np.array([0.1, 0.2, 0.3, 0.4]), np.array([False, False, False, True]))
    0.35
    """
    count = max(1, int(is_positive.sum()))
    others = max(1, is_positive.size - int(is_positive.sum()))
    return least_threshold(p, is_positive, lambda missed, alarms: missed / count + alarms / others)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="log-loss", label="log loss", task="classification", needs="probabilities", losses=log_loss),
        Metric(name="brier", label="Brier score", task="classification", needs="probabilities", losses=brier),
        Metric(name="accuracy", label="error rate", task="classification", losses=is_wrong, unit="rate"),
        Metric(
            name="balanced-accuracy", label="balanced error rate", task="classification", value=_unbalanced, unit="rate",
            threshold=threshold_of_balance,
        ),
        Metric(
            name="auc", label="1 − AUC", task="classification", needs="probabilities", value=_not_ranked, two_classes=True,
        ),
        Metric(
            name="average-precision", label="1 − average precision", task="classification", needs="probabilities",
            value=_not_precise, two_classes=True,
        ),
        Metric(
            name="f1", label="1 − F1", task="classification", value=_no_f1, two_classes=True, threshold=threshold_of_f1,
        ),
        Metric(name="absolute", label="mean absolute error", task="regression", losses=_size),
        Metric(
            name="squared", label="mean squared error", task="regression", losses=lambda answers: np.square(_size(answers)),
        ),
        Metric(name="quantile-0.1", label="quantile loss at 0.1", task="regression", losses=quantile(0.1)),
        Metric(name="quantile-0.9", label="quantile loss at 0.9", task="regression", losses=quantile(0.9)),
    )
}  # fmt: skip


def as_metric(name: str, task: Task, classes: int) -> Metric:
    """The metric of that name, for this task and so many classes.

    Examples
    --------
    >>> as_metric("auc", "classification", 2).label
    '1 − AUC'
    """
    for_task = [metric.name for metric in METRICS.values() if metric.task == task]
    if name not in for_task:
        raise ValueError(f"there is no metric {name!r} for {task}: there are {', '.join(for_task)}")
    if METRICS[name].two_classes and classes != 2:
        raise ValueError(f"metric {name!r} is for two classes, and there are {classes}")
    return METRICS[name]


def fold_value(metric: Metric, answers: Answers) -> float:
    """The metric's value on these rows."""
    if metric.losses is not None:
        return float(metric.losses(answers).mean())
    if metric.value is None:
        raise ValueError(f"metric {metric.name!r} has neither losses nor a value")
    return metric.value(answers)
