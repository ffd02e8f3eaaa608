"""What happened in fits against changed rows, and what is and is not claimed of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surelearn.bounds.optimality import duality_gap
from surelearn.bounds.poisoning import partition_radius
from surelearn.bounds.robustness import robust_accuracy
from surelearn.record import Record, Writer, run

FRESH = "certify_robustness(model, X, y, radius=…) claims it from rows that the model has not seen"
_NO_RISK = "the intercept is not regularized, and stability is not proved for the worst-case loss"
_CHANGED = "the rows it was fitted to were changed to hurt it: they are no sample of new rows"
_OTHER = (
    "the estimator's own claim is about its last fit, to rows changed round after round, not about"
    " the rows given"
)
_PER_PREDICTION = (
    "the claim is one for each prediction: claims(X) makes them, unchanged_rows(X) gives their"
    " numbers"
)
_GONE = (
    "a round's model is gone but for the one kept, and where the attacks started was drawn at"
    " random"
)


@dataclass(frozen=True, kw_only=True)
class AdversarialLinearRecord(Record):
    """A fit of (1/n)·Σ ℓ(y_i f(x_i) − r·‖w‖_*) + λ‖w‖².

    Attributes
    ----------
    machines : one for two classes, else one for each
    radius, norm : r and the norm of the changes
    loss : "logistic" or "squared_hinge"
    regularization : λ
    primal, dual, gap_rounding : the objective, a lower bound on its minimum and the rounding of
        their difference, of the machine with the largest difference; None where duality bounds
        nothing
    """

    key: ClassVar[str] = "adversarial-linear/1"

    machines: int
    radius: float
    norm: str
    loss: str
    regularization: float
    primal: float | None = None
    dual: float | None = None
    gap_rounding: float | None = None

    def write(self, writer: Writer) -> None:
        """How far the worst-case objective can be above its minimum, or why not; nothing is
        known of the risk.
        """
        if self.dual is not None:
            several = f", each of {self.machines} machines" if self.machines > 1 else ""
            label = f"worst-case objective above its minimum{several}"
            read = {"primal": "primal", "dual": "dual", "rounding": "gap_rounding"}
            loss = f"worst {self.loss.replace('_', ' ')} loss + λ‖w‖²"
            writer.claim(duality_gap, read, loss=loss, label=label, met=duality_gap.assumes)
        else:
            writer.lacks(
                "suboptimality",
                "without regularization, or with next to none, duality bounds nothing",
                duality_gap.key,
            )
        writer.lacks("risk", _NO_RISK)
        writer.lacks(
            "robust_accuracy",
            f"no theorem is about the rows it was fitted to; {FRESH}",
            robust_accuracy.key,
        )


@dataclass(frozen=True, kw_only=True)
class AdversarialRecord(Record):
    """A game of a classifier against changes of its rows.

    Nothing is claimed of the rows: the record holds what was measured, and names the claims that
    the classifier's own certificate makes of its last fit, so that each is said not to hold here.

    Attributes
    ----------
    classes : different labels
    radius, norm : of the changes
    held_out : rows that chose the round
    accuracy, robust_accuracy : of every round, on the rows that choose
    estimator_claims : quantity and theorem of each claim in the certificate of the classifier that
        was kept
    """

    key: ClassVar[str] = "adversarial/1"

    classes: int
    radius: float
    norm: str
    held_out: int
    accuracy: tuple[float, ...] = run(_GONE)
    robust_accuracy: tuple[float, ...] = run(_GONE)
    estimator_claims: tuple[tuple[str, str], ...] = ()

    def write(self, writer: Writer) -> None:
        """Why nothing is claimed."""
        writer.lacks("risk", _CHANGED)
        writer.lacks("robust_accuracy", f"{_CHANGED}; {FRESH}", robust_accuracy.key)
        for quantity, theorem in self.estimator_claims:
            if quantity != "risk":
                writer.lacks(quantity, _OTHER, theorem)


@dataclass(frozen=True, kw_only=True)
class PartitionRecord(Record):
    """Learners of disjoint partitions, whose claims are made for each prediction.

    Attributes
    ----------
    partitions, classes : how many
    empty, smallest : partitions without a row, and rows of the smallest partition
    """

    key: ClassVar[str] = "partition/1"

    partitions: int
    classes: int
    empty: int
    smallest: int

    def write(self, writer: Writer) -> None:
        """Where the claims are."""
        writer.lacks("inserted_plus_deleted_rows", _PER_PREDICTION, partition_radius.key)
