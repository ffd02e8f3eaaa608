"""The rare class that few errors hide: which one it is, how much of it may be missed, and what
to ask next.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.headline import Headline, number, quoted
from surelearn.lacking import Lacking
from surelearn.plain import show
from surelearn.subject import subject_of
from surelearn.types import Label

RARE = 0.4  # of an equal share: a fifth of the rows where there are two classes
NAMED = 2 / 3  # of an equal share, for one whose name says that it matters: a third of the rows
FAR = 2.0  # times the bound on all errors
EXAMPLE_COST = 10
EXAMPLE_REQUIREMENT = "sensitivity >= 0.95"
# names that people give the class of two that matters
NAMES = {
    "1", "1.0", "abnormal", "anomaly", "attack", "bad", "cancer", "case", "churn", "churned", "dead",
    "death", "default", "defect", "defective", "died", "disease", "diseased", "event", "fail", "failed",
    "failure", "faulty", "fraud", "fraudulent", "ill", "intrusion", "malignant", "outage", "pos", "positive",
    "sick", "spam", "t", "toxic", "true", "y", "yes",
}  # fmt: skip


def missed_class(context: Context, headline: Headline) -> tuple[str, str] | None:
    """The rare class of which most may be missed, and that in words; None where none is rare or it
    is missed no more.

    A class is rare if it has less than 0.4 of an equal share of the rows fitted on (of the certify
    rows, if those are not known); one of two classes whose name says that it is the one that matters, if
    it has less than two thirds. Only without ``--positive``, which names the class that matters,
    are there claims about every class, and only they are used: they hold together with the
    headline, whatever class is picked.
    """
    if context.options.positive is not None:
        return None
    seen, n = _seen(context)
    # a word that is answered and is no label has no rows that could be missed
    labels = context.labels if context.answers is None else context.classes
    equal, named = n / max(len(labels), 1), by_name(labels)
    bounds = {
        c.about("class"): c for c in context.certificate.together if c.quantity == "class_error"
    }
    found: list[tuple[float, str, str]] = []
    for label in labels:
        if seen.get(label, 0) >= (NAMED if label == named else RARE) * equal:
            continue
        claim = bounds.get(str(label))
        if claim is None or claim.vacuous:
            if seen.get(label, 0) >= RARE * equal:
                continue  # nothing tells that so many rows are missed
            found.append((1.0, str(label), f"nothing is guaranteed about {quoted(label)} rows"))
        elif number(claim) > FAR * number(headline.claim):
            share = show(number(claim), "rate", "<=")
            found.append(
                (
                    number(claim),
                    str(label),
                    f"up to **{share}** of {quoted(label)} rows may be missed",
                )
            )
    return max(found, key=lambda item: item[0])[1:] if found else None


def _seen(context: Context) -> tuple[dict[Label, int], int]:
    """How often each label occurs in the rows fitted on, or in the certify rows."""
    if context.counted is not None:
        facts = context.certificate.facts
        return {label: facts[f"class[{label}].n"] for label in context.labels}, facts["rows"]
    _, y = context.rows("train" if context.trained else "certify")
    labels, counts = np.unique(y, return_counts=True)
    return dict(zip(labels.tolist(), counts.tolist(), strict=True)), len(y)


def by_name(labels: Sequence[Label]) -> Label | None:
    """The one of two classes whose name says that it matters; None where neither does, or both do.

    Examples
    --------
    >>> by_name(["healthy", "Cancer"]), by_name([0, 1]), by_name(["cat", "dog"])
    ('Cancer', 1, None)
    """
    told = [label for label in labels if str(label).strip().casefold() in NAMES]
    return told[0] if len(labels) == 2 and len(told) == 1 else None


def can_require(context: Context) -> bool:
    """Whether an operating point may be required of the same rows: of two classes, by scores, of rows
    that count one by one.
    """
    if len(context.labels) != 2 or context.counted is not None or context.dependent is not None:
        return False
    if context.split is None and context.answers is None:
        return False  # of a model in Python: its user fixes the thresholds
    if (context.certificate.facts.options.get("answers") or {}).get("answer"):
        return False  # recorded answers stand beside the scores
    return not isinstance(subject_of(context.model).probabilities, Lacking)


def next_step(context: Context, label: str) -> str:
    """The command, or the arguments, that make the page about the class that is missed."""
    if context.trained and label not in map(str, context.classes):
        return "label more of them, the rows that it was fitted on had none"
    dear = len(context.labels) == 2 or context.split is None
    why = "say what a miss costs" if dear else "name the class that matters"
    if not context.runner.command:
        cost = f", cost={EXAMPLE_COST}" if dear else ""
        given = next((c for c in context.labels if str(c) == label), label)
        return f"{why}: `positive={given!r}{cost}`{_or_require(context, f'positive={given!r}, ')}"
    cost = f" --cost {EXAMPLE_COST}" if dear else ""
    asked = f"{context.runner.command} --positive {shlex.quote(label)}"
    return f"{why}: `{asked}{cost}`{_or_require(context, asked)}"


def require_instead(context: Context) -> str:
    """What to say where no fewer errors than a constant answer's tell little of a rare class that was
    named; "" where it is not rare, or nothing can be required.
    """
    positive, options = context.options.positive, context.options
    seen, n = _seen(context)
    stated = (context.certificate.facts.options.get("answers") or {}).get("threshold")
    if positive is None or options.require is not None or not can_require(context):
        return ""
    if stated is not None or options.threshold is not None:
        return ""  # which chooses the threshold
    told = {str(label): count for label, count in seen.items()}
    if told.get(str(positive), 0) >= RARE * n / 2:
        return ""
    option = f'{context.runner.command} --require "{EXAMPLE_REQUIREMENT}"'
    option = option if context.runner.command else f"require={EXAMPLE_REQUIREMENT!r}"
    return (
        f"Errors count a missed {quoted(positive)} and a false alarm alike: say how much of it must be"
        f" found, `{option}`, or what a miss costs"
    )


def _or_require(context: Context, asked: str) -> str:
    """The other way: to say how much of the class must be found."""
    if not can_require(context):
        return ""
    option = f' --require "{EXAMPLE_REQUIREMENT}"'
    option = option if context.runner.command else f"require={EXAMPLE_REQUIREMENT!r}"
    return f", or how much of it must be found: `{asked}{option}`"
