"""Section: whether the model gives away which rows it was fitted on, and ε where the model
carries one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surelearn.attacks.canary import CanaryScores
from surelearn.attacks.membership import Membership, loss_threshold
from surelearn.attacks.membership_evidence import MembershipEvidence, evidence_ratio
from surelearn.auditing.context import Context
from surelearn.auditing.refitting import too_costly
from surelearn.auditing.sections.membership import epsilon
from surelearn.auditing.sections.membership.work import (
    LEAST_PAIRS,
    halves_of,
    pool_of,
    tasks,
    tried_rows,
)
from surelearn.auditing.writing import Entry
from surelearn.claim import Finding, Severity
from surelearn.lacking import Lacking
from surelearn.plain import show
from surelearn.report import Chart, PageTable, Section
from surelearn.types import Bools

ALPHA = 0.05  # of every interval here
FALSE_ALARMS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)  # drawn
TABLED = (0.01, 0.05)
LEAKS = (0.6, 0.1)  # an AUC, and a true positive rate at the first of these, that are warnings
DRAWN = (
    "The chart is the ROC curve above the diagonal: the true positive rate less the false positive"
    " rate."
)
UNKNOWN = (
    "Membership inference was not measured, because the training rows of the model are not known"
    " here. Give them, seen=(X_seen, y_seen), or audit the table with the unfitted model (models=)."
)
GIVEN = (
    "The training rows are taken as given. If the certify rows come from another source or a later"
    " time, the attack sees that difference too, and overstates the leakage."
)
NO_RATIO = "The likelihood-ratio attack (LiRA), which is stronger, was not run"


def section(context: Context, results: Sequence[Any]) -> Section:
    """Membership inference: what the attacks measured, and the ε that is proved, if any."""
    proved = epsilon.proved(context)
    if isinstance(proved, Lacking):
        claims, why = (), (f"No differential privacy ε is proved: {proved.reason}.",)
    else:
        claims, why = (proved,), (epsilon.in_words(proved),)
    if not context.trained:
        found = tuple(epsilon.findings(context, ()))
        return ENTRY.says(notes=(UNKNOWN, *why), claims=claims, findings=found)
    members, others = tried_rows(context)
    halves = halves_of(context)
    own, refits = MembershipEvidence(**results[0]), results[1 : 1 + len(halves)]
    private = [CanaryScores(**result) for result in results[1 + len(halves) :]]
    inside = np.arange(members.size + others.size) < members.size
    by_loss = loss_threshold(
        own.losses[inside],
        own.losses[~inside],
        alpha=ALPHA,
        false_positive_rates=FALSE_ALARMS,
    )
    told = {"loss threshold": by_loss}
    findings = [_finding("SL641", by_loss, f"Loss-threshold attack on its {own.seen}")]
    notes = [
        f"The attacks were run on {members.size:,} training rows (members) and {others.size:,}"
        " certify rows (others). An attack that fails proves nothing."
    ]
    ratio = _by_ratio(context, own, refits, halves, inside)
    if isinstance(ratio, Lacking):
        notes.append(f"{NO_RATIO}: {ratio.reason}.")
    else:
        told[f"LiRA, {len(refits)} shadow models"] = ratio
        findings.append(_finding("SL642", ratio, f"LiRA with {len(refits)} shadow models"))
    charts = _chart(told)
    return ENTRY.says(
        notes=(
            *(DRAWN for _ in charts),
            *notes,
            *_cautions(context),
            *epsilon.remarks(context, private),
            *why,
        ),
        claims=claims,
        findings=(*findings, *epsilon.findings(context, private)),
        charts=charts,
        tables=(_table(told),),
    )


def _by_ratio(
    context: Context,
    own: MembershipEvidence,
    refits: Sequence[Mapping[str, Any]],
    halves: Bools,
    inside: Bools,
) -> Membership | Lacking:
    """The result of the likelihood-ratio attack (LiRA), or why it was not run."""
    if context.unfitted is None:
        return Lacking(
            "likelihood ratio",
            "it needs shadow models, and how this model was fitted is not known here",
        )
    if not refits:
        size = pool_of(context).size // 2
        few = "it needs more shadow models than refits and effort allow"
        costly = too_costly(context, size, 2 * LEAST_PAIRS)
        return Lacking("likelihood ratio", few) if costly is None else costly
    if failed := [result["lacking"] for result in refits if "lacking" in result]:
        why = f"a refit on half of the rows failed, {failed[0].reason}"
        return Lacking("likelihood ratio", why)
    position = np.searchsorted(pool_of(context), np.concatenate(tried_rows(context)))
    return evidence_ratio(
        own,
        [MembershipEvidence(**result) for result in refits],
        halves[:, position],
        inside,
        task=context.predicts,
        alpha=ALPHA,
        false_positive_rates=FALSE_ALARMS,
    )


def _severity(found: Membership) -> Severity:
    at_one = max(
        (found.true_positives[rate].low for rate in _measurable(TABLED[:1], found)), default=0.0
    )
    if found.auc_low > LEAKS[0] or at_one > LEAKS[1]:
        return "warning"
    return "notice" if found.auc_low > 0.5 else "info"


def _finding(code: str, found: Membership, attack: str) -> Finding:
    text = (
        f"{attack}: AUC"
        f" {_auc(found)}{'' if found.auc_low > 0.5 else ', not distinguishable from random guessing'}."
    )
    numbers: dict[str, Any] = {
        "auc": found.auc,
        "low": found.auc_low,
        "high": found.auc_high,
        "members": found.members,
    }
    numbers |= {"others": found.others, "advantage": found.advantage}
    numbers |= {
        f"found_at_{100 * rate:.0f}_percent_false_alarms": found.true_positives[rate].value
        for rate in _measurable(TABLED, found)
    }
    return Finding(code=code, text=text, severity=_severity(found), numbers=numbers)


def _cautions(context: Context) -> list[str]:
    said = [] if context.seen is None else [GIVEN]
    if context.time_name:
        said.append(
            "The certify rows are later than the training rows: the attack sees what changed over"
            " time, and overstates the leakage."
        )
    if context.groups is not None:
        said.append(
            f"Rows of one {context.group_name} are alike: the intervals assume independent rows,"
            " and are too narrow."
        )
    return said


def _measurable(rates: Sequence[float], found: Membership) -> list[float]:
    """False positive rates that are not below one row."""
    return [rate for rate in rates if rate * found.others >= 1]


def _table(told: dict[str, Membership]) -> PageTable:
    rates = _measurable(TABLED, next(iter(told.values())))
    rows = []
    for name, found in told.items():
        among = [found.true_positives[rate] for rate in rates]
        shares = [
            f"{show(share.value, 'rate')} ({show(share.low, 'rate')} to {show(share.high, 'rate')})"
            for share in among
        ]
        rows.append((name, _auc(found), *shares))
    rows.append(("random guessing", "0.50", *(f"{rate:.0%}" for rate in rates)))
    header = ("attack", "AUC", *(f"TPR at {rate:.0%} FPR" for rate in rates))
    return PageTable(header=header, rows=tuple(rows))


def _chart(told: dict[str, Membership]) -> tuple[Chart, ...]:
    """The ROC curve of the better attack, if any is better than guessing."""
    name, found = max(told.items(), key=lambda item: item[1].auc_low)
    if found.auc_low <= 0.5:
        return ()
    shares = [found.true_positives[rate] for rate in _measurable(FALSE_ALARMS, found)]
    # ties let fewer through than allowed
    shares = list({share.false_positives: share for share in shares}.values())
    rates = [share.false_positives for share in shares]
    data = {
        "x": [100 * rate for rate in rates],
        "y": [share.value - rate for share, rate in zip(shares, rates, strict=True)],
        "low": [share.low - rate for share, rate in zip(shares, rates, strict=True)],
        "high": [share.high - rate for share, rate in zip(shares, rates, strict=True)],
        "x_label": "false positive rate, %",
        "unit": "rate",
        "level": 0.0,
        "level_label": "random guessing",
    }
    return (Chart(kind="curve", title=f"Membership inference ({name}): TPR less FPR", data=data),)


def _auc(found: Membership) -> str:
    """The AUC with its interval: ``0.54 (0.49 to 0.59)``."""
    return f"{found.auc:.2f} ({found.auc_low:.2f} to {found.auc_high:.2f})"


ENTRY = Entry(key="membership", title="Membership inference", write=section, tasks=tasks)
