"""Certificates: facts, what follows from them, and what does not.

A `Certificate` holds `Facts`, which theorems read, the claims that follow and the reasons for those that
do not. It is written to JSON and read back, shown in words, and checked again: `Verification`.
"""

from surelearn.certificate.certificate import (
    AT_LEAST_ERRORS,
    FIXED_BEFOREHAND,
    VERSION,
    Certificate,
    needs_fixed_parameters,
)
from surelearn.certificate.facts import Facts
from surelearn.certificate.verifying import OTHER_ROWS, SECOND_MODEL, Verification

__all__ = [
    "AT_LEAST_ERRORS",
    "FIXED_BEFOREHAND",
    "OTHER_ROWS",
    "SECOND_MODEL",
    "VERSION",
    "Certificate",
    "Facts",
    "Verification",
    "needs_fixed_parameters",
]
