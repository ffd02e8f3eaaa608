"""Section: every bound on the risk, in the details: which are useless here, which do not apply,
and why.
"""

from __future__ import annotations

from surelearn.auditing.claims import own_certificate
from surelearn.auditing.context import Context
from surelearn.auditing.writing import Entry
from surelearn.claim import find_theorem
from surelearn.lacking import Lacking
from surelearn.report import Chart, Section


def section(context: Context) -> Section | None:
    """A chart of every bound on the risk that applies; nothing where there is only one."""
    risks = [
        claim
        for claim in context.certificate.claims
        if claim.quantity == "risk" and claim.relation == "<="
    ]
    # not the second model of a leak
    claims = [claim for claim in risks if claim.covers == risks[0].covers]
    if len(claims) < 2:
        return None
    own = own_certificate(context.model, context.selection, context.suspects)
    measured = claims[0].measured
    names = [find_theorem(claim.theorem).name for claim in claims] + (
        ["measured"] if measured is not None else []
    )
    values = [claim.value for claim in claims] + ([measured] if measured is not None else [])
    kinds = ["vacuous" if context.certificate.mark(claim) else "guaranteed" for claim in claims] + [
        "measured"
    ]
    order = sorted(range(len(values)), key=lambda i: (i != 0, values[i]))
    data = {
        "names": [names[i] for i in order],
        "values": [values[i] for i in order],
        "kinds": [kinds[i] for i in order],
    }
    first = (
        "the page's headline"
        if claims[0] == context.certificate.together[0]
        else "one of the page's guarantees"
    )
    notes = (
        (
            f"The first bound is {first}. Each of the others holds alone at its own δ: none may be"
            " picked afterwards because it is smaller."
        ),
        (
            "Generalization bounds from the fit rows (stability, margins, VC dimension,"
            f" compression, PAC-Bayes) are not claimed: {own.reason}."
            if isinstance(own, Lacking)
            else "The guarantees of the learner from its training rows are in the certificate."
        ),
    )
    chart = Chart(kind="bounds", title="Upper bounds on the risk", data={**data, "unit": "rate"})
    return ENTRY.says(notes=notes, charts=(chart,))


ENTRY = Entry(key="bounds", title="Generalization bounds compared", write=section, place="details")
