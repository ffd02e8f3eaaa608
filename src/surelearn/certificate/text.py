"""Certificates in words: for a terminal, and for a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING

from surelearn.claim import Claim, find_theorem
from surelearn.lacking import said_once
from surelearn.plain import (
    percent_sure,
    show,
)

if TYPE_CHECKING:
    from surelearn.certificate.certificate import Certificate


def as_text(certificate: Certificate) -> str:
    """What a certificate says, in lines for a terminal."""
    lines = [f"Certificate of {certificate.facts.subject}, {certificate.facts.setting}"]
    for title, rows in _blocks(certificate):
        lines.append(f"  {title}")
        lines += _aligned(rows)
    if certificate.lacking:
        lines.append("  Not claimed")
        lines += [f"    {what}: {reason}" for what, reason in said_once(certificate.lacking)]
    if assumptions := _assumptions(certificate):
        lines.append("  Assumes")
        lines += [f"    {line}" for line in assumptions]
    return "\n".join(lines)


def _blocks(certificate: Certificate) -> list[tuple[str, list[tuple[str, ...]]]]:
    blocks: list[tuple[str, list[tuple[str, ...]]]] = []
    sure = percent_sure(certificate.delta)
    for standing, title in (
        ("together", f"Guaranteed together, {sure}"),
        ("alone", "Each on its own"),
    ):
        rows = [
            _cells(certificate, claim, label)
            for claim, label in certificate.rows()
            if claim.standing == standing
        ]
        if rows:
            measured = "measured" if any(row[1] for row in rows) else ""
            head = (
                "",
                measured,
                "bound",
                "share" if standing == "together" else "surely",
                "by",
            )
            blocks.append((title, [head, *rows]))
    return blocks


def _cells(certificate: Certificate, claim: Claim, label: str) -> tuple[str, ...]:
    measured = claim.measured
    mark = certificate.mark(claim)
    by = find_theorem(claim.theorem).name + (f" ({mark})" if mark else "")
    surely = (
        _share(claim.delta / certificate.delta) if claim.standing == "together" else claim.surely()
    )
    return (
        label,
        "" if measured is None else show(measured, claim.unit),
        claim.bound(),
        surely,
        by,
    )


def _assumptions(certificate: Certificate) -> list[str]:
    return list(dict.fromkeys(line for claim in certificate.claims for line in claim.assumptions))


def as_html(certificate: Certificate) -> str:
    """What a certificate says, as a notebook shows it."""

    def row(cells: Iterable[str], tag: str) -> str:
        return (
            "<tr>"
            + "".join(
                f"<{tag} style='text-align:left'>{html.escape(cell)}</{tag}>" for cell in cells
            )
            + "</tr>"
        )

    parts = [
        f"<p><b>Certificate of {html.escape(certificate.facts.subject)}</b>,"
        f" {html.escape(certificate.facts.setting)}</p>"
    ]
    for title, (head, *rows) in _blocks(certificate):
        body = "".join(row(cells, "td") for cells in rows)
        parts.append(
            f"<table><caption>{html.escape(title)}</caption>{row(head, 'th')}{body}</table>"
        )
    notes = [f"Not claimed: {what}: {reason}" for what, reason in said_once(certificate.lacking)]
    notes += [f"Assumes: {line}" for line in _assumptions(certificate)]
    parts.append("<ul>" + "".join(f"<li>{html.escape(note)}</li>" for note in notes) + "</ul>")
    return "<div class='surelearn-certificate'>" + "".join(parts) + "</div>"


def _share(part: float) -> str:
    """A claim's part of the certificate's δ for people: ``δ``, ``δ/12``."""
    return "0" if part == 0 else "δ" if round(1 / part) == 1 else f"δ/{1 / part:.4g}"


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Columns padded to their widest cell: labels and theorems to the left, numbers to the
    right.
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    pad = (str.ljust, str.rjust, str.rjust, str.rjust, str.ljust)
    return [
        "    " + "  ".join(pad[i](cell, widths[i]) for i, cell in enumerate(row)).rstrip()
        for row in rows
    ]
