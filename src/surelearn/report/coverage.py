"""An interval's guarantee as the share of new rows inside it, from the score that is certified."""

from __future__ import annotations

import math
from typing import Any

from surelearn.bounds import clopper_pearson_lower, conformal_rank_pac
from surelearn.certificate import Certificate
from surelearn.claim import Claim
from surelearn.plain import Withheld, show

OWN_INTERVALS = "interval_misses"  # claimed of intervals that somebody brought along


def as_coverage(claim: Claim, certificate: Certificate) -> Claim:
    """What a reader is shown of a claim: of the score of an interval, which says nothing by itself, how
    many new rows are inside; the claim itself elsewhere.

    The threshold is the k-th smallest score of n certified rows, where k depends on n, α and δ alone
    (`surelearn.bounds.conformal_score`). Of new scores it covers less than p with probability at most
    P(Bin(n, p) ≥ k), ties only help, and the p for which that is δ is `clopper_pearson_lower` (k, n, δ):
    1 − α or a little more, since k is a whole number.
    """
    if claim.theorem != "conformal_score" or not math.isfinite(float(_number(claim.value))):
        return claim
    scores, alpha, delta = claim.inputs["scores"], claim.inputs["alpha"], claim.inputs["delta"]
    n = scores["n"] if isinstance(scores, Withheld) else len(scores)
    rank = int(conformal_rank_pac(n, alpha, delta))
    return clopper_pearson_lower.certify(
        successes=rank,
        n=n,
        delta=delta * claim.candidates,  # which is divided again
        quantity="interval_coverage",
        label=_label(claim, certificate),
        covers=claim.covers,
        candidates=claim.candidates,
        standing=claim.standing,
    )


def _label(claim: Claim, certificate: Certificate) -> str:
    rows = "random rows of new groups" if "groups" in certificate.facts else "new rows"
    if not any(one.quantity == OWN_INTERVALS for one in certificate.together):
        return f"{rows} inside their own interval"
    size = float(_number(claim.value))
    how = "outward" if size > 0 else "inward"
    moved = show(abs(size), "number", "<=" if size > 0 else ">=")
    return f"{rows} inside their interval, each end moved {moved} {how}"


def _number(value: Any) -> float:
    return value[1] if isinstance(value, tuple) else value
