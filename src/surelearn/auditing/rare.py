"""The rare class that few errors hide: which one it is, how much of it may be missed, and what
to ask next.
"""

from __future__ import annotations

import shlex

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.headline import Headline, number, quoted
from surelearn.plain import show
from surelearn.types import Label

RARE = 0.4  # of an equal share: a fifth of the rows where there are two classes
FAR = 2.0  # times the bound on all errors
EXAMPLE_COST = 10


def missed_class(context: Context, headline: Headline) -> tuple[str, str] | None:
    """The rare class of which most may be missed, and that in words; None where none is rare or it
    is missed no more.

    A class is rare if it has less than 0.4 of an equal share of the rows fitted on (of the certify
    rows, if those are not known). Only without ``--positive``, which names the class that matters,
    are there claims about every class, and only they are used: they hold together with the
    headline, whatever class is picked.
    """
    if context.options.positive is not None:
        return None
    seen, n = _seen(context)
    # a word that is answered and is no label has no rows that could be missed
    labels = context.labels if context.answers is None else context.classes
    most = RARE * n / max(len(labels), 1)
    bounds = {
        c.about("class"): c for c in context.certificate.together if c.quantity == "class_error"
    }
    found: list[tuple[float, str, str]] = []
    for label in labels:
        if seen.get(label, 0) >= most:
            continue
        claim = bounds.get(str(label))
        if claim is None or claim.vacuous:
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


def next_step(context: Context, label: str) -> str:
    """The command, or the arguments, that make the page about the class that is missed."""
    if context.trained and label not in map(str, context.classes):
        return "label more of them, the rows that it was fitted on had none"
    dear = len(context.labels) == 2 or context.split is None
    why = "say what a miss costs" if dear else "name the class that matters"
    if not context.runner.command:
        cost = f", cost={EXAMPLE_COST}" if dear else ""
        given = next((c for c in context.labels if str(c) == label), label)
        return f"{why}: `positive={given!r}{cost}`"
    cost = f" --cost {EXAMPLE_COST}" if dear else ""
    return f"{why}: `{context.runner.command} --positive {shlex.quote(label)}{cost}`"
