"""What is proved against poison of a vote over partitions: rows inserted or deleted that cannot
change its answers.
"""

from __future__ import annotations

from dataclasses import replace

from surelearn.auditing.claims import own_certificate
from surelearn.auditing.context import Context
from surelearn.auditing.sections.purposes import whose_rows
from surelearn.auditing.single_rows import row_name
from surelearn.bounds.poisoning import BY_CONTENT, TIES, partition_radius
from surelearn.claim import Claim, Covers
from surelearn.lacking import Lacking
from surelearn.robust.partition import ANY_ROWS, PartitionClassifier
from surelearn.subject import subject_of
from surelearn.subject.refitting import take

PART = 10  # of the partitions, so many rows are inserted or deleted, one at least
REFITS = "No poisoning attack was run: the training rows of the model are not known here."

_CLAIM = "claim about a vote under poison"


def is_vote(context: Context) -> bool:
    """Whether the model is a vote of learners on partitions."""
    return isinstance(subject_of(context.model).last.model, PartitionClassifier)


def vote_claims(context: Context) -> tuple[tuple[Claim, ...], Lacking | None]:
    """Claims about new rows and about one, fixed beforehand; and why there are none, or only
    the second.
    """
    if not is_vote(context):
        return (), None
    if (void := _void(context)) is not None:
        return (), Lacking(
            _CLAIM, f"Nothing is proved about its vote over partitions: {void.reason}."
        )
    X, y = context.rows("certify")
    row = len(y) // 2
    subject = subject_of(context.model)
    learner, Z, one = (
        subject.last.model,
        subject.rows_for_last(X),
        subject.rows_for_last(take(X, [row])),
    )
    number = int(context.numbers(row))
    place = f"row {number}"
    named = row_name(context, number, learner.predict(one)[0])
    facts = context.certificate.facts
    alone = partition_radius.certify(
        **learner.claims(one)[0].inputs,
        label=f"training rows, inserted plus deleted, that cannot change the prediction of {named}",
        met=(BY_CONTENT, TIES),
        assumptions=(ANY_ROWS, f"it is {whose_rows(context)}"),
        covers=Covers(
            predictor=facts.hashes.get("model", "plain"), population="this row", rows=place
        ),
    )
    if (lost := context.dependent) is not None:
        return (alone,), Lacking(_CLAIM, f"No claim about new rows under poison: {lost.reason}.")
    count = max(1, learner.partitions // PART)
    right = learner.poisoned_accuracy(Z, y, count, delta=context.certificate.delta)
    covers = replace(right.covers, rows=facts.hashes.get("rows", "the certify rows"))
    training = "training row is" if count == 1 else f"{count:,} training rows are"
    label = f"accuracy on new rows whichever {training} inserted or deleted"
    assumptions = (*right.assumptions, f"it is {whose_rows(context)}")
    return (replace(right, covers=covers, label=label, assumptions=assumptions), alone), None


def _void(context: Context) -> Lacking | None:
    """Why the partitions may not be all that a row can reach."""
    if context.selection is None:
        alone = subject_of(context.model).last.model is context.model
        return (
            None
            if alone
            else Lacking(_CLAIM, "steps before it may have learned from the same rows")
        )
    own = own_certificate(context.model, context.selection, context.suspects)
    return own if isinstance(own, Lacking) else None
