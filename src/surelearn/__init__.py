"""Machine learning where every fit comes with a certificate.

What is *guaranteed* about a model, at which confidence, under which assumptions, by which theorem, kept apart from what
was only *measured*.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surelearn import bounds
    from surelearn.certificate import Certificate, Facts
    from surelearn.certification import certify
    from surelearn.claim import Claim, Finding

__version__ = "0.1.0"
__all__ = ["Certificate", "Claim", "Facts", "Finding", "__version__", "bounds", "certify"]

_HOMES = {
    "Certificate": "certificate",
    "Claim": "claim",
    "Facts": "certificate",
    "Finding": "claim",
    "certify": "certification",
}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use, so that ``import surelearn`` stays light."""
    if name == "bounds":
        return importlib.import_module("surelearn.bounds")
    if name in _HOMES:
        return getattr(importlib.import_module(f"surelearn.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'surelearn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
