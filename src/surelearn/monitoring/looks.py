"""Looks at drift: every comparison with the certify rows is another chance of a false alarm, so
that they are counted.

The k-th look has 6α/(π²k²) of the false-alarm rate α; since Σ 1/k² = π²/6 (L. Euler, 1734), all
looks together have at most α by the union bound, however many there are and however they depend on
each other.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

from surelearn import files
from surelearn.certificate import Certificate
from surelearn.claim import Finding
from surelearn.documents import check_format, read_json
from surelearn.monitoring.evidence import check_certificate, check_entries, name_of, require
from surelearn.monitoring.reference import FAMILYWISE, FEWEST_ROWS, Counter

FORMAT = "surelearn-looks"
VERSION = 1


def level(look: int, total: float = FAMILYWISE) -> float:
    """The false-alarm rate of the k-th look: 6α/(π²k²).

    Examples
    --------
    >>> round(level(1), 5), round(level(10), 7)
    (0.00608, 6.08e-05)
    >>> sum(level(k) for k in range(1, 10_000)) < 0.01
    True
    """
    return 6 * total / (math.pi * look) ** 2


class Looks:
    """The looks at drift under one certificate, in their order; the same counts again are the same
    look.

    Attributes
    ----------
    seen : a hash of the counts that were compared, for each look
    """

    def __init__(self) -> None:
        self.seen: list[str] = []

    def look(self, counter: Counter) -> list[Finding]:
        """Compare with the certify rows, at this look's level; too few rows are told and are no
        look.
        """
        if min(counter.rows, counter.reference.rows) < FEWEST_ROWS:
            return counter.findings()
        digest = hashlib.sha256(
            b"".join(counts.astype("<i8").tobytes() for counts in counter.counts)
        ).hexdigest()[:32]
        if digest not in self.seen:
            self.seen.append(digest)
        return counter.findings(level(self.seen.index(digest) + 1))

    def __str__(self) -> str:
        made = len(self.seen)
        return (
            f"{made:,} look{'s' * (made != 1)} at drift so far, the last at"
            f" {100 * level(max(made, 1)):.2g}%: if nothing changed, any of them finds something"
            f" with probability about {100 * FAMILYWISE:g}%, however many follow."
        )

    def save(self, path: Path, certificate: Certificate) -> None:
        """Write the looks as JSON; the file is replaced as a whole or not at all."""
        plain = {
            "format": FORMAT,
            "version": VERSION,
            "certificate": name_of(certificate),
            "seen": self.seen,
        }
        files.write(path, json.dumps(plain, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path, certificate: Certificate) -> Looks:
        """Read what `save` wrote for this certificate; none were made if there is no such file."""
        made = cls()
        if not path.exists():
            return made
        try:
            plain = read_json(path, "it")
            check_format(plain, "a list of looks at drift", FORMAT, VERSION)
        except ValueError as error:
            raise ValueError(f"{path} does not hold looks at drift: {error}") from None
        try:
            check_entries(
                plain, {"format": FORMAT, "version": VERSION, "certificate": "", "seen": []}
            )
            check_certificate(plain["certificate"], certificate)
            seen = plain["seen"]
            require(
                "seen", isinstance(seen, list) and all(isinstance(digest, str) for digest in seen)
            )
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        made.seen = list(seen)
        return made
