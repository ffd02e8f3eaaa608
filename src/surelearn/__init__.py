"""Machine learning where every fit comes with a certificate.

What is *guaranteed* about a model, at which confidence, under which assumptions, by which theorem, kept apart from what
was only *measured*.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from surelearn.version import __version__

if TYPE_CHECKING:
    from surelearn import bounds, monitoring, planning
    from surelearn.auditing.flow import audit
    from surelearn.auditing.gate import gate
    from surelearn.certificate import Certificate, Facts
    from surelearn.certification import certify
    from surelearn.claim import Claim, Finding
    from surelearn.persistence import load, save
    from surelearn.report.document import Audit
    from surelearn.selection.selector import select


__all__ = [
    "Audit", "Certificate", "Claim", "Facts", "Finding", "__version__", "audit", "bounds", "certify", "gate", "load",
    "monitoring", "planning", "save", "select",
]  # fmt: skip

_HOMES = {
    "Audit": "report.document",
    "Certificate": "certificate",
    "Claim": "claim",
    "Facts": "certificate",
    "Finding": "claim",
    "audit": "auditing.flow",
    "gate": "auditing.gate",
    "certify": "certification",
    "load": "persistence",
    "save": "persistence",
    "select": "selection.selector",
}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use, so that ``import surelearn`` stays light."""
    if name in ("bounds", "monitoring", "planning"):
        return importlib.import_module(f"surelearn.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"surelearn.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'surelearn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
