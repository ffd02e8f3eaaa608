"""An audit as data: verdict, certificate, sections of claims, findings, notes, tables and
charts. Rendering comes last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self

from surelearn.certificate import Certificate
from surelearn.claim import Claim, Finding
from surelearn.documents import check_format, checked, is_altered, parse_json, reading, sealed
from surelearn.plain import FrozenDict, freeze, from_plain, to_plain
from surelearn.renamed import Words
from surelearn.version import __version__

FORMAT = "surelearn-audit"
VERSION = 4  # up to 3 quantities and numbers were named in words: see `renamed`

ChartKind = Literal[
    "candidates", "curve", "reliability", "bars", "bounds", "columns", "pictures"
]  # fmt: skip
Place = Literal["costs", "next", "measured", "assumptions", "details"]
VerdictKind = Literal[
    "guaranteed", "warning", "do not ship", "nothing useful", "measured only", "no verdict"
]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """What a chart shows, not how.

    ``data`` by kind; rates are fractions, shown as percentages where ``data["unit"] == "rate"``:

    - "candidates": ``names``, ``values``, ``errors`` (one standard error), ``chosen`` (position)
    - "curve": ``x``, ``y``, ``low``, ``high``, ``x_label``, ``x_unit``; both axes logarithmic where ``log`` is true;
      a dashed line at ``level`` with its ``level_label``; ``low`` drawn as a guarantee
      where ``proved`` is true (a staircase over ``low_x``, where given); a larger dot at ``point`` (x, y) with its
      ``point_label``; both labels in a corner, where ``legend`` is "upper left" or "lower right"
    - "reliability": ``predicted``, ``observed``, ``low``, ``high``, ``counts``
    - "bars": ``names``, ``measured``, ``bounds`` (None where there is none)
    - "columns": of each column ``names``, ``kinds``, ``missing`` (share), ``distinct``, ``notes`` (what was done),
      ``association`` with the target (None: not measured), ``bars`` (shares of ranges of a number, or of frequent values)
      and what they are, ``said``; ``more``, how many columns were left out
    - "pictures": ``names``, and of each its ``pictures``, a PNG in base64; ``small`` for many of one kind, ``pairs`` where
      each two belong together
    - "bounds": ``names``, ``values``, ``kinds`` ("guaranteed", "measured" or "vacuous"), a logarithmic axis
    """

    kind: ChartKind
    title: str
    data: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", freeze(self.data))


@dataclass(frozen=True, kw_only=True)
class PageTable:
    """A small table of texts."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "header", freeze(self.header))
        object.__setattr__(self, "rows", freeze(self.rows))


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of the page: claims, findings, sentences, tables and charts, at one of its places.

    Its ``claims`` hold each alone, at their own confidence: they have no share of the certificate's
    δ. All that they follow from stands in their inputs.
    """

    key: str
    title: str
    place: Place = "measured"
    notes: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    findings: tuple[Finding, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[PageTable, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", freeze(self.notes))
        for name in ("claims", "findings", "charts", "tables"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for claim in self.claims:
            if claim.standing != "alone":
                raise ValueError(
                    f"the claim {claim.label!r} of a section must stand alone: it has no share of δ"
                )
            if claim.sources:
                raise ValueError(
                    f"the claim {claim.label!r} of a section must not read facts: only a"
                    " certificate has some"
                )


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The sentence the page opens with; ``**…**`` marks its guaranteed numbers."""

    kind: VerdictKind
    sentence: str

    @property
    def text(self) -> str:
        """The sentence without marks."""
        return self.sentence.replace("**", "")


@dataclass(frozen=True, kw_only=True)
class Document:
    """Claims and findings about one model, on one δ: what the page shows.

    Attributes
    ----------
    title : what was audited: "titanic.csv"
    target : the target column, or "" for a fitted model
    rows, columns : size of the data
    verdict : the opening sentence
    chips : a few words each: the chosen model, held-back rows, which audit of these rows
    certificate : the claims; its ``together`` claims are the page's guarantees
    sections : everything else, in order
    unfinished : keys of those among the sections that were not measured yet when this was made, and
        are empty; a finished audit has none. Verdict, certificate and model are final all the same
    reproduce : the command that gives this page again
    numbers : options, selection errors, and what else sections were drawn from
    version : of the surelearn that made it
    model, schema, reference : the fitted model itself, the columns it reads, and a summary of its
        certify rows (for `surelearn.save`); not part of the file
    altered : whether the file it was read from does not have the content that its hash was made of
    written_as, words : the version of its file's format, and that file's words for today's keys: it
        is written, and hashed, as it was read
    """

    title: str
    target: str
    rows: int
    columns: int
    verdict: Verdict
    chips: tuple[str, ...]
    certificate: Certificate
    sections: tuple[Section, ...]
    unfinished: tuple[str, ...] = ()
    reproduce: str = ""
    numbers: Mapping[str, Any] = field(default_factory=FrozenDict)
    version: str = __version__
    model: Any = field(default=None, compare=False, repr=False)
    schema: Any = field(default=None, compare=False, repr=False)
    reference: Any = field(default=None, compare=False, repr=False)
    altered: bool = field(default=False, compare=False, repr=False)
    written_as: int = field(default=VERSION, compare=False, repr=False)
    words: Words = field(default_factory=Words, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "chips", freeze(self.chips))
        object.__setattr__(self, "sections", tuple(self.sections))
        object.__setattr__(self, "unfinished", freeze(self.unfinished))
        object.__setattr__(self, "numbers", freeze(self.numbers))
        if unknown := [key for key in self.unfinished if key not in {s.key for s in self.sections}]:
            raise ValueError(f"the audit has no section {unknown[0]!r:.60} that is unfinished")

    @property
    def made_by(self) -> str:
        """The command whose page this is: "certify" for answers that somebody wrote down."""
        return "certify" if "answers" in self.numbers else "audit"

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The certificate's claims."""
        return self.certificate.claims

    @property
    def proved(self) -> tuple[Claim, ...]:
        """The claims of all sections, each of which holds alone."""
        return tuple(claim for section in self.sections for claim in section.claims)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all sections."""
        return tuple(finding for section in self.sections for finding in section.findings)

    def __getitem__(self, key: str) -> Section:
        for section in self.sections:
            if section.key == key:
                return section
        raise KeyError(
            f"the audit has no section {key!r}: it has {', '.join(s.key for s in self.sections)}"
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """The titles of the sections that were not measured yet."""
        return tuple(section.title for section in self.sections if section.key in self.unfinished)

    def published(self) -> Self:
        """The audit as it is written and drawn: without losses per row, see
        `Certificate.published`.
        """
        return replace(self, certificate=self.certificate.published())

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON: of what is `published`."""
        names = ("title", "target", "rows", "columns", "chips", "reproduce", "numbers")
        content = {name: getattr(self, name) for name in names}
        plain = {
            "format": FORMAT,
            "version": self.written_as,
            "surelearn": self.version,
            **to_plain(content),
            "verdict": {"kind": self.verdict.kind, "sentence": self.verdict.sentence},
            "sections": [_section_to_dict(section) for section in self.sections],
            **({"unfinished": list(self.unfinished)} if self.unfinished else {}),
            "certificate": self.certificate.published().to_dict(),
        }
        plain = plain if self.written_as > 3 else self.words.in_audit(plain)
        return sealed(plain)

    def to_json(self, indent: int | None = 1) -> str:
        """Strict JSON of every number on the page."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote; anything else is refused with a `ValueError` that says why."""
        version = check_format(plain, "an audit", FORMAT, VERSION)
        names = {f.name for f in fields(cls) if f.compare} - {
            "verdict",
            "sections",
            "unfinished",
            "certificate",
            "version",
        }
        with reading("the audit"):
            # version 1 had no hash
            altered = version > 1 and is_altered(plain)
            words = Words.of_audit(plain) if version <= 3 else Words()
            plain = words.reversed().in_audit(plain) if version <= 3 else plain
            made = cls(
                **{name: from_plain(plain[name]) for name in names},
                version=plain.get("surelearn", ""),
                verdict=checked(Verdict(**plain["verdict"])),
                sections=tuple(_section_from_dict(section) for section in plain["sections"]),
                unfinished=tuple(plain.get("unfinished", ())),
                certificate=Certificate.from_dict(plain["certificate"]),
                altered=altered,
                written_as=max(version, 3),  # earlier ones had no claims of sections
                words=words,
            )
            return checked(made)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read `to_json`'s text. Nothing in it is ever executed."""
        return cls.from_dict(parse_json(text))

    def __repr__(self) -> str:
        still = f" ({len(self.unfinished)} sections not measured yet)" if self.unfinished else ""
        return f"Audit of {self.title}: {self.verdict.text}{still}"


def _section_to_dict(section: Section) -> dict[str, Any]:
    return {
        "key": section.key,
        "title": section.title,
        "place": section.place,
        "notes": list(section.notes),
        "claims": [claim.to_dict() for claim in section.claims],
        "findings": [finding.to_dict() for finding in section.findings],
        "charts": [
            {"kind": c.kind, "title": c.title, "data": to_plain(c.data)} for c in section.charts
        ],
        "tables": [
            {"header": to_plain(t.header), "rows": to_plain(t.rows)} for t in section.tables
        ],
    }


def _section_from_dict(plain: Mapping[str, Any]) -> Section:
    made = Section(
        key=plain["key"],
        title=plain["title"],
        place=plain["place"],
        notes=tuple(plain["notes"]),
        # version 2 had none
        claims=tuple(Claim.from_dict(claim) for claim in plain.get("claims", ())),
        findings=tuple(Finding.from_dict(finding) for finding in plain["findings"]),
        charts=tuple(
            checked(Chart(kind=c["kind"], title=c["title"], data=from_plain(c["data"])))
            for c in plain["charts"]
        ),
        tables=tuple(
            checked(PageTable(header=tuple(t["header"]), rows=t["rows"])) for t in plain["tables"]
        ),
    )
    if any(len(row) != len(table.header) for table in made.tables for row in table.rows):
        raise ValueError(
            f"a row of a table of the section {made.key!r:.60} has another length than its header"
        )
    return checked(made)
