"""Section: which rows did what. (How δ was divided, the page draws from the certificate itself.)"""

from __future__ import annotations

from surelearn.auditing.context import Context
from surelearn.report import Section, Table


def section(context: Context) -> Section | None:
    """Rows by purpose; nothing for a model that was fitted elsewhere."""
    split = context.split
    if split is None:
        return None
    counts = tuple((purpose, f"{getattr(split, purpose).size:,}") for purpose in ("fit", "select", "certify"))
    note = (
        "Rows were given their purpose by a hash of their content, not by a seed: trying again does not help."
        if split.order == "hash"
        else f"The last rows by {context.time_name} were measured on, the others fitted on."
    )
    table = Table(header=("purpose", "rows"), rows=counts)
    return Section(key="split", title="Which rows did what", place="details", notes=(note,), tables=(table,))
