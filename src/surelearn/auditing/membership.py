"""Section: whether the model gives away which rows it was fitted on, and ε where the model carries one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surelearn import jobs
from surelearn.attacks.membership import Membership, likelihood_ratio, loss_threshold
from surelearn.auditing import membership_epsilon
from surelearn.auditing.context import Context
from surelearn.auditing.membership_refits import observe, observe_refit
from surelearn.auditing.seen import stack
from surelearn.claim import Finding, Severity
from surelearn.plain import show
from surelearn.report import Chart, Section, Table
from surelearn.selection.cross_validation import take

TITLE = "Does it give its rows away?"
ALPHA = 0.05  # of every interval here
FALSE_ALARMS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)  # drawn
TABLED = (0.01, 0.05)
DRAWN = "Drawn is the share of fit rows that is found, less the share of other rows that is taken for them (false alarms)."
UNKNOWN = (
    "Not measured: which rows it was fitted on is not known here. Give them, seen=(X_seen, y_seen), or audit the table with "
    "the unfitted model (models=)."
)
GIVEN = (
    "Which rows it was fitted on is taken as given. If the certify rows come from elsewhere, or from later, that looks like "
    "leakage here."
)
NO_RATIO = "No likelihood-ratio attack, which is stronger"
_MOST_TRIED = 2000  # rows of each kind that the attacks are tried on
_ROW_FITS = 150_000  # rows times refits of a likelihood ratio, at effort 1
_MOST_REFITS = 16
_FARTHEST = 7.0  # evidence is cut off here, a probability of a thousandth: farther out it is not Gaussian
_MANY_MODELS = 64  # with fewer refits all rows share a variance, as in the source of the attack


def tasks(context: Context) -> list[jobs.Task]:
    """The rows' losses in the model and in refits on halves of all rows; a private model's refits with and without a row."""
    if not context.trained:
        return []
    tried, pool, (X, y) = np.concatenate(_tried(context)), _pool(context), _rows(context)
    kind, new, truth = context.task, take(X, tried), y[tried]
    own = {"model": context.model, "classes": context.classes or None, "X": new, "y": truth, "task": kind}
    made = [jobs.Task("membership/model", observe, own)]
    if context.unfitted is None:
        return made
    shared = {"model": context.unfitted, "X": take(X, pool), "y": y[pool], "new": new, "truth": truth, "task": kind}
    for i, inside in enumerate(_halves(context)):
        made.append(jobs.Task(f"membership/refit {i}", observe_refit, {**shared, "rows": np.flatnonzero(inside)}))
    return made + membership_epsilon.tasks(context)


def section(context: Context, results: Sequence[Any]) -> Section:
    """What the attacks found, kept apart from what is proved."""
    proved = membership_epsilon.proved(context)
    claims, why = ((), (proved,)) if isinstance(proved, str) else ((proved,), (membership_epsilon.in_words(proved),))
    if not context.trained:
        found = tuple(membership_epsilon.findings(context, ()))
        return Section(key="membership", title=TITLE, notes=(UNKNOWN, *why), claims=claims, findings=found)
    members, others = _tried(context)
    halves = _halves(context)
    seen, refits, private = results[0], results[1 : 1 + len(halves)], results[1 + len(halves) :]
    inside = np.arange(members.size + others.size) < members.size
    by_loss = loss_threshold(seen["losses"][inside], seen["losses"][~inside], alpha=ALPHA, false_positive_rates=FALSE_ALARMS)
    told = {"by its loss": by_loss}
    start = f"Given a row it was fitted on and one it was not, an attacker who sees its {seen['seen']} picks the right one"
    findings = [_finding("SL641", by_loss, f"{start} by the loss in")]
    notes = [f"Tried on {members.size:,} rows it was fitted on and {others.size:,} certify rows, which it was not."]
    ratio = _by_ratio(context, seen, refits, halves, inside)
    if isinstance(ratio, str):
        notes.append(ratio)
    else:
        told[f"beside {len(refits)} refits"] = ratio
        start = f"One who also fits {len(refits)} such models, on halves of the rows, does by their likelihood ratio in"
        findings.append(_finding("SL642", ratio, start))
    charts = _chart(told)
    return Section(
        key="membership",
        title=TITLE,
        notes=(*(DRAWN for _ in charts), *notes, *_cautions(context), *membership_epsilon.remarks(context, private), *why),
        claims=claims,
        findings=(*findings, *membership_epsilon.findings(context, private)),
        charts=charts,
        tables=(_table(told),),
    )


def _tried(context: Context) -> tuple[Any, Any]:
    """Rows that were fitted on, and rows that were not, that the attacks are tried on."""
    train, certify = _sides(context)
    made = [np.random.default_rng(context.seed("membership/rows")).permutation(rows) for rows in (train, certify)]
    return np.sort(made[0][:_MOST_TRIED]), np.sort(made[1][:_MOST_TRIED])


def _sides(context: Context) -> tuple[Any, Any]:
    """Positions of both kinds among all rows."""
    if context.split is None:
        fitted = len(context.rows("train")[1])
        return np.arange(fitted), fitted + np.arange(len(context.y))
    return np.union1d(context.split.fit, context.split.select), context.split.certify


def _rows(context: Context) -> tuple[Any, Any]:
    """All rows: of the table, or those seen and then the others."""
    if context.seen is None:
        return context.X, context.y
    X, y = context.seen
    return stack(X, context.X), np.concatenate([y, context.y])


def _pool(context: Context) -> Any:
    return np.union1d(*_sides(context))


def _halves(context: Context) -> Any:
    """(refits, rows of the pool): which rows a refit has, in complementary pairs, so that each row is in half of them."""
    size, effort = _pool(context).size, context.options.effort
    most = min(1.6 * context.options.refits, 2 * _ROW_FITS / size, _MOST_REFITS)
    pairs = 0 if context.unfitted is None else int(most * effort // 2)
    generator = np.random.default_rng(context.seed("membership/halves"))
    masks = [generator.permutation(size) < size // 2 for _ in range(pairs)]
    return np.array([half for mask in masks for half in (mask, ~mask)], dtype=bool).reshape(2 * pairs, size)


def _by_ratio(context: Context, seen: Any, refits: Sequence[Any], halves: Any, inside: Any) -> Membership | str:
    """How well a likelihood ratio tells, or a sentence on why there is none."""
    if context.unfitted is None:
        return f"{NO_RATIO}: it needs refits on halves of the rows, and how this model was fitted is not known here."
    if not refits:
        return f"{NO_RATIO}: it needs refits on halves of the rows, more than refits and effort allow."
    if failed := [result["failed"] for result in refits if "failed" in result]:
        return f"{NO_RATIO}: a refit on half of the rows failed, {failed[0]}."
    position = np.searchsorted(_pool(context), np.concatenate(_tried(context)))
    unit = 1.0 if context.task == "classification" else float(np.std(seen["evidence"][~inside])) or 1.0
    own, shadows = (_as_losses(part / unit) for part in (seen["evidence"], np.stack([r["evidence"] for r in refits])))
    return likelihood_ratio(
        shadows, halves[:, position], own, inside, alpha=ALPHA, false_positive_rates=FALSE_ALARMS, few=_MANY_MODELS
    ).membership


def _as_losses(evidence: Any) -> Any:
    """Logarithmic losses whose ln(p/(1 − p)) is the evidence."""
    return np.logaddexp(0.0, -np.clip(evidence, -_FARTHEST, _FARTHEST))


def _severity(found: Membership) -> Severity:
    at_one = max((found.true_positives[rate].low for rate in _measurable(TABLED[:1], found)), default=0.0)
    if found.auc_low > 0.6 or at_one > 0.1:
        return "warning"
    return "notice" if found.auc_low > 0.5 else "info"


def _finding(code: str, found: Membership, start: str) -> Finding:
    text = f"{start} {show(found.auc, 'rate')} of cases ({_range(found.auc_low, found.auc_high)}; guessing: 50%)."
    text += "" if found.auc_low > 0.5 else " No leak was found, which proves nothing."
    numbers: dict[str, Any] = {"auc": found.auc, "low": found.auc_low, "high": found.auc_high, "members": found.members}
    numbers |= {"others": found.others, "advantage": found.advantage}
    numbers |= {f"found at {rate:.0%} false alarms": found.true_positives[rate].value for rate in _measurable(TABLED, found)}
    return Finding(code=code, text=text, severity=_severity(found), numbers=numbers)


def _cautions(context: Context) -> list[str]:
    said = [] if context.seen is None else [GIVEN]
    if context.time_name:
        said.append("The certify rows are later ones: what changed since then looks like leakage here.")
    if context.groups is not None:
        said.append(
            f"Rows of one {context.group_name} are alike: the intervals take rows for independent, and are too narrow."
        )
    return said


def _measurable(rates: Sequence[float], found: Membership) -> list[float]:
    """Rates of false alarms that so few rows can show."""
    return [rate for rate in rates if rate * found.others >= 1]


def _table(told: dict[str, Membership]) -> Table:
    rates = _measurable(TABLED, next(iter(told.values())))
    rows = []
    for name, found in told.items():
        among = [found.true_positives[rate] for rate in rates]
        shares = [f"{show(share.value, 'rate')} ({_range(share.low, share.high)})" for share in among]
        rows.append((name, f"{show(found.auc, 'rate')} ({_range(found.auc_low, found.auc_high)})", *shares))
    rows.append(("guessing", "50%", *(f"{rate:.0%}" for rate in rates)))
    header = ("attack", "right about two rows", *(f"fit rows found at {rate:.0%} false alarms" for rate in rates))
    return Table(header=header, rows=tuple(rows))


def _chart(told: dict[str, Membership]) -> tuple[Chart, ...]:
    """The better attack, if any was right more often than a coin."""
    name, found = max(told.items(), key=lambda item: item[1].auc_low)
    if found.auc_low <= 0.5:
        return ()
    shares = [found.true_positives[rate] for rate in _measurable(FALSE_ALARMS, found)]
    shares = list({share.false_positives: share for share in shares}.values())  # ties let fewer through than allowed
    rates = [share.false_positives for share in shares]
    data = {
        "x": [100 * rate for rate in rates],
        "y": [share.value - rate for share, rate in zip(shares, rates, strict=True)],
        "low": [share.low - rate for share, rate in zip(shares, rates, strict=True)],
        "high": [share.high - rate for share, rate in zip(shares, rates, strict=True)],
        "x_label": "false alarms, % of other rows",
        "unit": "rate",
        "level": 0.0,
        "level_label": "guessing",
    }
    return (Chart(kind="curve", title=f"Fit rows found ({name}), beyond the share of false alarms", data=data),)


def _range(low: float, high: float) -> str:
    return f"{show(low, 'rate')} to {show(high, 'rate')}"
