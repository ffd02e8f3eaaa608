"""An `Audit` as a short Markdown text for a pull request."""

from __future__ import annotations

import re
from collections.abc import Callable

from surelearn.plain import percent_sure
from surelearn.report.document import Document
from surelearn.report.drawing import clean
from surelearn.report.html import marked
from surelearn.report.rows import (
    MOST_MEMBERS,
    Row,
    claim_rows,
    lacking_once,
    parts_of,
    sentence_case,
    unfinished_words,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$])")
_LINK = re.compile(r"(?i)(?<=[a-z]):(?=//)|(?<=www)\.")
_CODE = re.compile(r"`([^`\n]+)`")
_INERT = re.compile(r"[\w .,:;=+/'\"()…×–-]*")  # code that nothing could take for more
_LONGEST = 200


def render(audit: Document) -> str:
    """Verdict, guarantees, what else is proved, findings that matter, assumptions, what to do next and
    how to reproduce.
    """
    audit = audit.published()
    blocks = [
        _verdict(audit),
        _unfinished(audit),
        _guaranteed(audit),
        _proved(audit),
        _findings(audit),
        _assumptions(audit),
        _next_steps(audit),
        _reproduce(audit),
    ]
    return (
        "\n\n".join(
            block
            for block in [*blocks, "<sub>surelearn: statistical, not regulatory</sub>"]
            if block
        )
        + "\n"
    )


def plain(text: object, longest: int = _LONGEST) -> str:
    r"""A text in which Markdown, HTML, links and mentions are inert.

    Examples
    --------
    >>> plain("a|b <img> @team")
    'a\\|b &lt;img&gt; @\u200bteam'
    """
    text = " ".join(clean(text).split())
    text = text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
    text = (
        _SPECIAL.sub(r"\\\1", text.replace("&", "&amp;")).replace("<", "&lt;").replace(">", "&gt;")
    )
    return _LINK.sub(lambda match: f"&#{ord(match[0])};", text).replace("@", "@\u200b")


def prose(text: object, longest: int = _LONGEST) -> str:
    r"""`plain`, in which ```code``` stays code.

    Examples
    --------
    >>> prose("use `--group` | or not")
    'use `--group` \\| or not'
    """
    text = " ".join(clean(text).split())
    text = text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
    pieces = _CODE.split(text)
    if any("`" in piece for piece in pieces[::2]) or not all(map(_INERT.fullmatch, pieces[1::2])):
        return plain(text, longest)
    return "".join(f"`{piece}`" if i % 2 else _spaced(piece) for i, piece in enumerate(pieces))


def _verdict(audit: Document) -> str:
    pieces = [
        f"**{plain(piece, 2000)}**" if strong else _spaced(piece, prose)
        for piece, strong in marked(audit.verdict.sentence)
    ]
    kind = "" if audit.verdict.kind == "guaranteed" else f" ({audit.verdict.kind})"
    target = f", target {plain(audit.target)}" if audit.target else ""
    return f"### surelearn {audit.made_by}: {plain(audit.title)}{target}{kind}\n\n{''.join(pieces)}"


def _unfinished(audit: Document) -> str:
    said = unfinished_words(audit)
    return f"**Not finished.** {prose(said, 2000)}" if said else ""


def _spaced(piece: str, inert: Callable[[object, int], str] = plain) -> str:
    """`plain` that keeps the spaces at a piece's ends."""
    start, end = " " * piece[:1].isspace(), " " * (piece.strip() != "" and piece[-1:].isspace())
    return start + inert(piece, 2000) + end


def _guaranteed(audit: Document) -> str:
    rows = [row for row in claim_rows(audit.certificate, "together") if not row.vacuous]
    if not rows:
        reasons = [
            f"- no claim about {plain(item.label)}: {prose(item.reason)}"
            for item in lacking_once(audit.certificate.lacking)
        ]
        measured = (
            "Everything else is only measured."
            if _proved(audit)
            else "Everything is only measured."
        )
        together = " together" if _proved(audit) else ""
        return "\n".join(
            [
                f"**Nothing is guaranteed{together}.** {measured}",
                *([""] if reasons else []),
                *reasons,
            ]
        )
    head = [
        (
            f"| Guaranteed, {percent_sure(audit.certificate.delta)} together | measured | bound |"
            " why |"
        ),
        "|---|--:|--:|---|",
    ]
    return "\n".join(head + [_line(row) for row in rows])


def _line(row: Row) -> str:
    worst = f" (worst of {len(row.members)})" if row.members else ""
    bound = f"{row.word} **{row.bound}**".strip() + (f" ({row.mark})" if row.mark else "")
    why = ", ".join(plain(part) for part in (row.theorem, row.share, row.counts) if part)
    return f"| {plain(row.label)}{worst} | {row.measured} | {bound} | {why} |"


def _proved(audit: Document) -> str:
    """The claims of the sections, as far as they say something."""
    rows = [row for part in parts_of(audit) for row in part.proved]
    lines = [
        f"- {plain(row.label)}: {row.word} **{row.bound}** ({row.claim.surely()},"
        f" {plain(row.theorem)})"
        for row in rows
    ]
    more = (
        [f"- {len(lines) - MOST_MEMBERS} more are in audit.json"]
        if len(lines) > MOST_MEMBERS
        else []
    )
    head = ["**Also proved**, each alone at its own confidence", ""]
    return "\n".join([*head, *lines[:MOST_MEMBERS], *more]) if lines else ""


def _findings(audit: Document) -> str:
    grave = sorted(
        (finding for finding in audit.findings if finding.severity in ("warning", "serious")),
        key=lambda finding: finding.severity != "serious",
    )
    lines = [
        f"- **{finding.severity}** {prose(finding.text, 600)} ({plain(finding.code)})"
        for finding in grave
    ]
    return "\n".join(["**Findings**, measured, no guarantee", "", *lines]) if lines else ""


def _next_steps(audit: Document) -> str:
    rows = [
        row
        for section in audit.sections
        if section.place == "next"
        for table in section.tables
        for row in table.rows
    ]
    lines = [
        f"{i}. **{plain(row[0])}.** {' '.join(prose(cell, 600) for cell in row[1:])}"
        for i, row in enumerate(rows, 1)
    ]
    return "\n".join(["**What to do next**, no guarantee", "", *lines]) if lines else ""


def _assumptions(audit: Document) -> str:
    notes = [
        note
        for section in audit.sections
        if section.place == "assumptions"
        for note in section.notes
    ]
    claims = audit.certificate.together or audit.certificate.claims
    assumed = [sentence_case(line) for claim in claims for line in claim.assumptions]
    lines = [f"- {prose(line, 600)}" for line in dict.fromkeys([*notes, *assumed])]
    return "\n".join(["**Assumes**", "", *lines]) if lines else ""


def _reproduce(audit: Document) -> str:
    if not audit.reproduce:
        return ""
    command = clean(audit.reproduce)
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", command)), 3)
    return f"**Reproduce**\n\n{fence}\n{command}\n{fence}"
