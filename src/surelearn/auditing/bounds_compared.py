"""Section: every bound on the risk, in the details: which are useless here, which do not apply, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from surelearn.auditing.context import Context
from surelearn.auditing.one_row import own_certificate
from surelearn.bounds import betting_upper, chernoff_kl, empirical_bernstein, hoeffding
from surelearn.bounds.holdout import ORDER, STATED_RANGE, UNIT_RANGE
from surelearn.certificate import FIXED_BEFOREHAND, Absent, Certificate, Facts, needs_fixed_parameters
from surelearn.claim import Claim, find_theorem
from surelearn.report import Chart, Section

TRAINING_ROW_THEOREMS = (
    "uniform_stability_nonnegative",
    "rademacher_margin",
    "boosting_vc",
    "hypergeometric_tail_inversion",
    "vc",
    "campi_garatti",
    "gibbs_linear_classifier",
)


def extend(certificate: Certificate, *, learner: Certificate | str) -> Certificate:
    """Add other bounds on the error, each alone at the δ of the page's, and bounds from the fit rows, or why there are none.

    ``learner`` is what its learner guarantees from the rows it was fitted on, or why that is void.
    """
    risk = next((claim for claim in certificate.together if claim.quantity == "risk"), None)
    absent: list[Absent] = []
    claims = [] if risk is None else _others(certificate.facts, risk)
    if not isinstance(learner, str):
        absent = [replace(item, quantity=f"{item.quantity} from the fit rows") for item in learner.absent]
        claims += [_from_fit_rows(claim) for claim in learner.claims]
    elif risk is not None:
        absent = [
            Absent(quantity="risk from the fit rows", theorem=key, reason=f"{find_theorem(key).name}: {learner}")
            for key in TRAINING_ROW_THEOREMS
        ]
    return replace(certificate, claims=(*certificate.claims, *claims), absent=(*certificate.absent, *absent))


def _from_fit_rows(claim: Claim) -> Claim:
    quantity, label = (f"{text} from the fit rows" for text in (claim.quantity, claim.label))
    condition = FIXED_BEFOREHAND if needs_fixed_parameters(claim) else ""
    return replace(claim, sources={}, quantity=quantity, label=f"{label}{condition}")


def _others(facts: Facts, risk: Claim) -> list[Claim]:
    """Other bounds on the same risk."""
    if risk.theorem != "clopper_pearson":
        return []
    options: dict[str, Any] = {"delta": risk.delta, "candidates": risk.candidates, "covers": risk.covers}
    options |= {"quantity": "risk", "label": "errors", "met": (UNIT_RANGE, STATED_RANGE, ORDER)}
    rates = [facts.claim(theorem, {"risk": "risk.rate", "n": "risk.n"}, **options) for theorem in (chernoff_kl, hoeffding)]
    return rates + [
        facts.claim(theorem, {"losses": "risk.losses"}, **options) for theorem in (betting_upper, empirical_bernstein)
    ]


def section(context: Context) -> Section | None:
    """A chart of every bound on the risk that applies."""
    risks = [claim for claim in context.certificate.claims if claim.quantity == "risk" and claim.relation == "<="]
    claims = [claim for claim in risks if claim.covers == risks[0].covers]  # not the second model of a leak
    if len(claims) < 2:
        return None
    own = own_certificate(context.model, context.selection, context.suspects)
    measured = claims[0].measured
    names = [find_theorem(claim.theorem).name for claim in claims] + (["measured"] if measured is not None else [])
    values = [claim.value for claim in claims] + ([measured] if measured is not None else [])
    kinds = ["vacuous" if context.certificate.mark(claim) else "guaranteed" for claim in claims] + ["measured"]
    order = sorted(range(len(values)), key=lambda i: (i != 0, values[i]))
    data = {"names": [names[i] for i in order], "values": [values[i] for i in order], "kinds": [kinds[i] for i in order]}
    first = "the page's headline" if claims[0] == context.certificate.together[0] else "one of the page's guarantees"
    notes = (
        f"The first is {first}. The others stand each alone at its δ: none of them may be picked afterwards because it is "
        "smaller.",
        f"Bounds from the fit rows (stability, margins, VC dimension, compression, PAC-Bayes) are not claimed: {own}."
        if isinstance(own, str)
        else "What the learner guarantees from the rows it was fitted on stands in the certificate.",
    )
    title = "Every bound on the risk, and why the others are not used"
    chart = Chart(kind="bounds", title="Every bound on the risk that applies", data={**data, "unit": "rate"})
    return Section(key="bounds", title=title, place="details", notes=notes, charts=(chart,))
