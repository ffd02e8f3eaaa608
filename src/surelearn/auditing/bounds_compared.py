"""Section: every bound on the risk, in the details: which are useless here, which do not apply, and why."""

from __future__ import annotations

from dataclasses import replace

from surelearn.auditing.context import Context
from surelearn.bounds import betting_upper, chernoff_kl, empirical_bernstein, hoeffding
from surelearn.bounds.holdout import ORDER, STATED_RANGE, UNIT_RANGE
from surelearn.certificate import Absent, Certificate
from surelearn.claim import Claim, find_theorem
from surelearn.report import Chart, Section

_PREPARED = "the fit rows were looked at before: to prepare columns, and to choose among candidates"
TRAINING_ROW_THEOREMS = (
    "uniform_stability_nonnegative",
    "rademacher_margin",
    "boosting_vc",
    "hypergeometric_tail_inversion",
    "vc",
    "campi_garatti",
    "gibbs_linear_classifier",
)


def extend(certificate: Certificate, *, fitted_here: bool) -> Certificate:
    """Add the other bounds on the error, each alone at the headline's δ, and why bounds from the fit rows are absent."""
    risk = next((claim for claim in certificate.together if claim.quantity == "risk"), None)
    if risk is None:
        return certificate
    facts, options = certificate.facts, {"delta": risk.delta, "candidates": risk.candidates, "covers": risk.covers}
    options |= {"quantity": "risk", "label": "errors", "met": (UNIT_RANGE, STATED_RANGE, ORDER)}
    alone: list[Claim] = []
    if risk.theorem == "clopper_pearson":
        for theorem in (chernoff_kl, hoeffding):
            alone.append(facts.claim(theorem, {"risk": "risk.rate", "n": "risk.n"}, **options))
        for theorem in (betting_upper, empirical_bernstein):
            alone.append(facts.claim(theorem, {"losses": "risk.losses"}, **options))
    why = _PREPARED if fitted_here else "how the model was fitted is not known here"
    absent = [
        Absent(quantity="risk from the fit rows", theorem=key, reason=f"{find_theorem(key).name}: {why}")
        for key in TRAINING_ROW_THEOREMS
    ]
    return replace(certificate, claims=(*certificate.claims, *alone), absent=(*certificate.absent, *absent))


def section(context: Context) -> Section | None:
    """A chart of every bound on the risk that applies."""
    risks = [claim for claim in context.certificate.claims if claim.quantity == "risk" and claim.relation == "<="]
    claims = [claim for claim in risks if claim.covers == risks[0].covers]  # not the second model of a leak
    if len(claims) < 2:
        return None
    measured = claims[0].measured
    names = [find_theorem(claim.theorem).name for claim in claims] + (["measured"] if measured is not None else [])
    values = [claim.value for claim in claims] + ([measured] if measured is not None else [])
    kinds = ["vacuous" if claim.vacuous else "guaranteed" for claim in claims] + ["measured"]
    order = sorted(range(len(values)), key=lambda i: (i != 0, values[i]))
    data = {"names": [names[i] for i in order], "values": [values[i] for i in order], "kinds": [kinds[i] for i in order]}
    notes = (
        "The first is the page's headline. The others stand each alone at the headline's δ: none of them may be picked "
        "afterwards because it is smaller.",
        "Bounds computed from the fit rows (stability, margins, VC dimension, compression, PAC-Bayes) are not claimed: "
        + (_PREPARED if context.selection is not None else "how the model was fitted is not known here")
        + ".",
    )
    title = "Every bound on the risk, and why the others are not used"
    chart = Chart(kind="bounds", title="Every bound on the risk that applies", data={**data, "unit": "rate"})
    return Section(key="bounds", title=title, place="details", notes=notes, charts=(chart,))
