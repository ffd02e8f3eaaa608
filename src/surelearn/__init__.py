"""Machine learning where every fit comes with a certificate.

What is *guaranteed* about a model, at which confidence, under which assumptions, by which theorem,
kept apart from what was only *measured*.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from surelearn.version import __version__

if TYPE_CHECKING:
    from surelearn import (
        attacks,
        attribution,
        auditing,
        boosting,
        bounds,
        certificate,
        certification,
        cluster,
        data,
        jobs,
        kernel,
        linear,
        measurement,
        monitoring,
        neural,
        operating,
        optim,
        papers,
        persistence,
        planning,
        report,
        robust,
        selection,
        subject,
    )
    from surelearn.auditing.flow import audit
    from surelearn.auditing.gate import gate
    from surelearn.certificate import Certificate, Facts
    from surelearn.certification import certify
    from surelearn.claim import Claim, Finding
    from surelearn.persistence import load, save
    from surelearn.report.audit import Audit
    from surelearn.selection.selector import select
    from surelearn.training import certificate_of


__all__ = [
    "Audit", "Certificate", "Claim", "Facts", "Finding", "__version__", "attacks", "attribution", "audit",
    "auditing", "boosting", "bounds", "certificate", "certificate_of", "certification", "certify", "cluster",
    "data", "gate", "jobs", "kernel", "linear", "load", "measurement", "monitoring", "neural", "operating",
    "optim", "papers", "persistence", "planning", "report", "robust", "save", "select", "selection", "subject",
]  # fmt: skip

_HOMES = {
    "Audit": "report.audit",
    "Certificate": "certificate",
    "Claim": "claim",
    "Facts": "certificate",
    "Finding": "claim",
    "audit": "auditing.flow",
    "gate": "auditing.gate",
    "certificate_of": "training",
    "certify": "certification",
    "load": "persistence",
    "save": "persistence",
    "select": "selection.selector",
}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use, so that ``import surelearn`` stays light."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"surelearn.{_HOMES[name]}"), name)
    if name in __all__:  # a room
        return importlib.import_module(f"surelearn.{name}")
    raise AttributeError(f"module 'surelearn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
