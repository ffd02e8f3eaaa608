"""What is proved against poison of a vote over partitions: rows inserted or deleted that cannot change its answers."""

from __future__ import annotations

from dataclasses import replace

from surelearn.auditing.context import Context
from surelearn.auditing.one_row import learner_of, own_certificate
from surelearn.auditing.poisoning_parts import prepared
from surelearn.auditing.purposes import whose_rows
from surelearn.auditing.single_rows import row_name
from surelearn.bounds.poisoning import BY_CONTENT, TIES, partition_radius
from surelearn.claim import Claim, Covers
from surelearn.report import Section
from surelearn.robust.partition import ANY_ROWS, PartitionClassifier
from surelearn.selection.cross_validation import take

PART = 10  # of the partitions, so many rows are inserted or deleted, one at least
REFITS = "What poison would do to its errors was not measured: the rows it was fitted on are not known here."


def is_vote(context: Context) -> bool:
    """Whether the model is a vote of learners on partitions."""
    return isinstance(learner_of(context.model)[1], PartitionClassifier)


def vote_claims(context: Context) -> tuple[tuple[Claim, ...], str]:
    """Claims about new rows and about one, fixed beforehand; and why there are none, or only the second, or ""."""
    if not is_vote(context):
        return (), ""
    if why := _void(context):
        return (), f"Nothing is proved of its vote over partitions: {why}."
    X, y = context.rows("certify")
    row = len(y) // 2
    learner, Z, one = prepared(context.model, X, take(X, [row]))
    number = int(context.numbers(row))
    place = f"row {number}"
    named = row_name(context, number, learner.predict(one)[0])
    facts = context.certificate.facts
    alone = partition_radius.certify(
        **learner.claims(one)[0].inputs,
        label=f"rows, inserted plus deleted, that cannot change what it says of {named}",
        met=(BY_CONTENT, TIES),
        assumptions=(ANY_ROWS, f"it is {whose_rows(context)}"),
        covers=Covers(predictor=facts.hashes.get("model", "plain"), population="this row", rows=place),
    )
    if why := context.dependent:
        return (alone,), f"No claim about new rows under poison: {why}."
    count = max(1, learner.partitions // PART)
    right = learner.poisoned_accuracy(Z, y, count, delta=context.certificate.delta)
    covers = replace(right.covers, rows=facts.hashes.get("rows", "the certify rows"))
    training = "training row is" if count == 1 else f"{count:,} training rows are"
    label = f"new rows that are right whichever {training} inserted or deleted"
    assumptions = (*right.assumptions, f"it is {whose_rows(context)}")
    return (replace(right, covers=covers, label=label, assumptions=assumptions), alone), ""


def of_vote(context: Context, title: str) -> Section:
    """The section of a vote that was fitted elsewhere."""
    claims, why = vote_claims(context)
    return Section(key="poisoning", title=title, notes=tuple(filter(None, (REFITS, why))), claims=claims)


def _void(context: Context) -> str:
    """Why the partitions may not be all that a row can reach, or ""."""
    if context.selection is None:
        return "" if learner_of(context.model)[0] is None else "steps before it may have learned from the same rows"
    own = own_certificate(context.model, context.selection, context.suspects)
    return own if isinstance(own, str) else ""
