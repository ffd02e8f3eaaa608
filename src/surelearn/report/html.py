"""An `Audit` as one self-contained page: no script, no request, nothing from the data that is
not escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup, escape

from surelearn.certificate import Certificate
from surelearn.claim import find_theorem
from surelearn.plain import Withheld, percent_sure, show
from surelearn.report.charts import caption, draw
from surelearn.report.document import Document, PageTable
from surelearn.report.drawing import clean, exact
from surelearn.report.packing import two_columns
from surelearn.report.rows import (
    MOST_MEMBERS,
    PagePart,
    claim_rows,
    lacking_after,
    lacking_once,
    parts_of,
    unfinished_words,
    with_bars,
)
from surelearn.version import __version__

LONGEST = 140  # characters of a name or a value
# what is guaranteed holds a digit; a name like a**b does not
_MARKED = re.compile(r"\*\*(?=\S)([^*]*\d[^*]*)(?<=\S)\*\*")
_ENDLESS = re.compile(r"(\S{100})\S{20,}")
_CODE = re.compile(r"`([^`\n]+)`")
_NUMERIC = re.compile(r"[\s\d.,%+±×≤≥=<>–−∞eE-]*\d[\s\d.,%+±×≤≥=<>–−∞eE-]*|[–—−-]?|∞")


def render(audit: Document) -> str:
    """The whole page."""
    return _template().render(_view(audit.published()), whole=True)


def render_inline(audit: Document) -> str:
    """The page as one ``<div>`` with its own styles, for notebooks."""
    return _template().render(_view(audit.published()), whole=False)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("surelearn.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: (
            clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
        ),
    )
    environment.filters |= {
        "draw": draw,
        "caption": caption,
        "prose": prose,
        "lead": lead,
        "clip": clip,
    }
    environment.globals["css"] = Markup(  # noqa: S704
        files("surelearn.report").joinpath("page.css").read_text(encoding="utf-8")
    )
    return environment.get_template("page.html.jinja")


# ── Words
# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def marked(sentence: str) -> list[tuple[str, bool]]:
    """A sentence in pieces, each with whether it was marked as guaranteed by ``**…**``.

    Examples
    --------
    >>> marked("at most **6.7% errors** where a**b")
    [('at most ', False), ('6.7% errors', True), (' where a**b', False)]
    """
    pieces = _MARKED.split(_ENDLESS.sub(r"\1…", clean(sentence)))
    return [(piece, i % 2 == 1) for i, piece in enumerate(pieces) if piece]


def prose(text: object) -> Markup:
    """An escaped text in which ```code``` is set as code; endless words are cut."""
    return _with_code(_ENDLESS.sub(r"\1…", clean(text)))


def _with_code(text: str) -> Markup:
    return Markup("").join(
        Markup("<code>{}</code>").format(p) if i % 2 else escape(p)
        for i, p in enumerate(_CODE.split(text))
    )


def lead(text: object) -> Markup:
    """`prose` whose first sentence stands out, if more follow."""
    first, stop, rest = clean(text).partition(". ")
    return (
        Markup("<b>{}.</b> {}").format(prose(first), prose(rest)) if stop and rest else prose(text)
    )


def clip(text: object, longest: int = LONGEST) -> Markup:
    """A name in isolation (right-to-left names stay in place); a very long one is cut, the
    whole in its tooltip.
    """
    text = clean(text)
    if len(text) <= longest:
        return Markup("<bdi>{}</bdi>").format(_with_code(text))
    return Markup('<bdi title="{}">{}…</bdi>').format(text[:4000], text[:longest].rstrip())


# ── The view: what the template shows
# ─────────────────────────────────────────────────────────────────────────────────


def _view(audit: Document) -> dict[str, Any]:
    certificate, parts = audit.certificate, parts_of(audit)
    together = claim_rows(certificate, "together")
    return {
        "audit": audit,
        "certificate": certificate,
        "tone": {"guaranteed": "g", "do not ship": "bad"}.get(audit.verdict.kind, "m"),
        "verdict": marked(audit.verdict.sentence),
        "unfinished": unfinished_words(audit),
        "sure": percent_sure(certificate.delta),
        "delta": exact(certificate.delta, "<="),
        "guaranteed": with_bars(row for row in together if not row.vacuous),
        "vacuous": [row for row in together if row.vacuous],
        "alone": claim_rows(certificate, "alone"),
        "also": [part for part in parts if part.proved],
        "costs": _at(parts, "costs"),
        "measured": _at(parts, "measured"),
        "next_steps": _at(parts, "next"),
        "contents": _contents(parts, bool(_assumptions(certificate))),
        "assumed": _at(parts, "assumptions"),
        "assumptions": _assumptions(certificate),
        "details": _at(parts, "details"),
        "budget": _budget(certificate),
        "facts": _facts(certificate),
        "theorems": _theorems(audit),
        "lacking": lacking_after(lacking_once(certificate.lacking), parts),
        "numeric": _numeric_columns,
        "columns_of": two_columns,
        "most": MOST_MEMBERS,
        "version": __version__,
    }


def _contents(parts: list[PagePart], assumes: bool) -> list[tuple[str, str, list[PagePart]]]:
    """The page's headings in order, each with the name of its place and the sections under it."""
    assumed = _at(parts, "assumptions")
    groups = {
        "Guaranteed": [],
        "Measured": _at(parts, "measured"),
        "Assumptions": assumed if len(assumed) > 1 else [],
        "Details": _at(parts, "details"),
    }
    there = {"Guaranteed", "Details", *(name for name, of in groups.items() if of)}
    there |= {"Assumptions"} if assumed or assumes else set()
    listed = [(name, f"section-{name.lower()}", of) for name, of in groups.items() if name in there]
    return [*_alone(parts, "costs"), *listed[:-1], *_alone(parts, "next"), listed[-1]]


def _alone(parts: list[PagePart], place: str) -> list[tuple[str, str, list[PagePart]]]:
    """The sections of a place as headings of their own."""
    return [(part.section.title, part.anchor, []) for part in _at(parts, place)]


def _at(parts: list[PagePart], place: str) -> list[PagePart]:
    return [part for part in parts if part.section.place == place]


def _assumptions(certificate: Certificate) -> list[str]:
    """What the guarantees assume; what any claim assumes, where nothing is guaranteed."""
    claims = certificate.together or certificate.claims
    return list(dict.fromkeys(line for claim in claims for line in claim.assumptions))


def _budget(certificate: Certificate) -> PageTable:
    """Who spends how much of δ."""
    rows = []
    for row in claim_rows(certificate, "together"):
        several = len(row.members) > 1
        spent = sum(member.claim.delta for member in row.members) if several else row.claim.delta
        label = (
            f"{row.label} and the other {len(row.members) - 1} of its family"
            if several
            else row.label
        )
        each = f"{row.share} each" if several else row.share
        rows.append((label, each, show(spent, "number")))
    return PageTable(header=("claim", "share", "δ spent"), rows=tuple(rows))


def _facts(certificate: Certificate) -> PageTable:
    """Hashes, options and measured numbers, of samples only their size."""
    facts = certificate.facts
    rows = [("subject", facts.subject), ("setting", facts.setting)]
    rows += [(f"hash of the {name}", value) for name, value in facts.hashes.items()]
    rows += [(name, _plain(value)) for name, value in facts.options.items() if value is not None]
    rows += [(name, _plain(value)) for name, value in facts.values.items()]
    if len(rows) > MOST_MEMBERS:
        rows = [
            *rows[:MOST_MEMBERS],
            ("…", f"{len(rows) - MOST_MEMBERS} more are in the certificate"),
        ]
    return PageTable(header=("fact", "value"), rows=tuple(rows))


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return (
            ", ".join(map(_plain, value))
            if len(value) <= 12
            else f"{len(value):,} values, in the certificate"
        )
    if isinstance(value, Withheld):
        return f"{value['n']:,} values, kept apart"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_plain(item)}" for key, item in value.items())
    return exact(value) if isinstance(value, float) else str(value)


def _theorems(audit: Document) -> list[Any]:
    certificate = audit.certificate
    keys = [claim.theorem for claim in certificate.claims] + [
        item.theorem for item in certificate.lacking if item.theorem
    ]
    return [
        find_theorem(key)
        for key in dict.fromkeys([*keys, *(claim.theorem for claim in audit.proved)])
    ]


def _numeric_columns(table: PageTable) -> list[bool]:
    """Which columns hold numbers only, and are set to the right."""
    columns = [
        [str(row[i]) for row in table.rows if i < len(row)] for i in range(len(table.header))
    ]
    return [any(column) and all(_NUMERIC.fullmatch(cell) for cell in column) for column in columns]
