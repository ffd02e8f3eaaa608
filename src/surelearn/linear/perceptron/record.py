"""What happened in a run of the perceptron, and which theorems apply to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surelearn.bounds import campi_garatti, floyd_warmuth, perceptron_mistakes
from surelearn.kernel.precomputed import FIXED, MOST_ROWS, POSITIVE
from surelearn.linear.svm.record import CLASSES_KNOWN
from surelearn.linear.svm.separation import in_words
from surelearn.record import Record, Writer


@dataclass(frozen=True, kw_only=True)
class PerceptronRecord(Record):
    """A run of Algorithm 1 on padded vectors (x, 1).

    Attributes
    ----------
    classes : how many
    averaged, precomputed : whether w was averaged, and whether rows are those of a kernel matrix
    stopped : "converged", or why it ended without having settled
    passes, most_passes : passes made, and the most that were allowed
    trained_rows : rows that were not held out
    mistakes, mistake_rows : updates of all machines, and the distinct rows that they were made on
    training_errors, other_errors : errors of the result on the rows trained on, and on those
        without a mistake
    radius : the largest norm of a padded vector among the rows trained on
    separable : "yes", "no" or "unknown", of two classes
    margin, margin_by : the margin of a unit vector that separates the padded vectors, and whether
        the "svm" or the "perceptron" found it; where the "svm" looked and there is none, it has no
        margin
    witness_rows, witness_weights, witness_norm : a convex combination of y·(x, 1) that is 0, and
        the norm that rounding left of it
    """

    key: ClassVar[str] = "perceptron/1"

    classes: int
    averaged: bool
    precomputed: bool
    stopped: str
    passes: int
    most_passes: int
    trained_rows: int
    mistakes: int
    mistake_rows: int
    training_errors: int
    other_errors: int
    radius: float
    separable: str | None = None
    margin: float | None = None
    margin_by: str | None = None
    witness_rows: tuple[int, ...] | None = None
    witness_weights: tuple[float, ...] | None = None
    witness_norm: float | None = None

    @property
    def converged(self) -> bool:
        """Whether a whole pass had no mistake."""
        return self.stopped == "converged"

    def write(self, writer: Writer) -> None:
        """The bound on mistakes, and compression by the mistake rows, or why not."""
        self._write_mistakes(writer)
        known = (CLASSES_KNOWN, FIXED) if self.precomputed else (CLASSES_KNOWN,)
        if self.averaged:
            reason = (
                "the average counts the steps between mistakes, which the mistake rows do not tell"
            )
            for theorem in (campi_garatti, floyd_warmuth):
                writer.lacks("risk", reason, theorem.key)
        elif self.converged:
            # Rows without a mistake never change w, and a row on which the result errs would have
            # been a mistake: the
            # mistake rows of all machines together are a preferent compression, whatever the number
            # of classes.
            read = {"size": "mistake_rows", "n": "trained_rows"}
            writer.claim(campi_garatti, read, assumptions=known, met=campi_garatti.assumes[2:])
        else:
            writer.lacks("risk", f"it did not settle ({self.stopped})", campi_garatti.key)
            read = {
                "size": "mistake_rows",
                "n": "n",
                "errors": "other_errors",
                "messages": "most_passes",
            }
            writer.claim(floyd_warmuth, read, assumptions=known, met=floyd_warmuth.assumes[2:])

    def _write_mistakes(self, writer: Writer) -> None:
        if self.margin is None:
            writer.lacks("mistakes", self._why_no_margin(), perceptron_mistakes.key)
            return
        read = {"radius": "radius", "margin": "margin", "mistakes": "mistakes"}
        label = "mistakes until it settled" if self.converged else "mistakes, however long it runs"
        unseen = [POSITIVE] if self.precomputed and (self.d or 0) > MOST_ROWS else []
        writer.claim(
            perceptron_mistakes,
            read,
            label=label,
            met=perceptron_mistakes.assumes,
            assumptions=unseen,
        )

    def _why_no_margin(self) -> str:
        if self.classes > 2:
            return f"Theorem 2.8 is about two classes, here are {self.classes}"
        if self.margin_by == "svm":
            return in_words(self.separable, len(self.witness_rows or ()), self.witness_norm or 0.0)
        return "whether the rows can be separated was not computed: separation=True does"
