"""Machine learning where every fit comes with a certificate.

What is *guaranteed* about a model, at which confidence, under which assumptions, by which theorem, kept apart from what
was only *measured*.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "certify": "surelearn.certification",
    "Certificate": "surelearn.certificate",
    "Facts": "surelearn.certificate",
    "Claim": "surelearn.claim",
    "Finding": "surelearn.claim",
    "bounds": "surelearn.bounds",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    """Load a public name at its first use, so that ``import surelearn`` stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'surelearn' has no attribute {name!r}")
    module = importlib.import_module(_HOMES[name])
    return module if _HOMES[name] == f"surelearn.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
