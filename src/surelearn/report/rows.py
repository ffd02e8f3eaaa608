"""Claims as rows for people: a bound in words, its share of δ or its own confidence, and what
it was computed from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from surelearn.certificate import Certificate
from surelearn.claim import Claim, Theorem, find_theorem
from surelearn.lacking import Lacking
from surelearn.plain import Withheld, show
from surelearn.report.charts import bar_axis, interval_bar
from surelearn.report.coverage import as_coverage
from surelearn.report.document import Document, Section

REASON = 30  # letters from which on a reason is said once
_PLACES = ("costs", "measured", "assumptions", "next", "details")  # in the page's order
MOST_MEMBERS = 100  # of a family, of a section's claims, and of the facts, that are listed
_SAMPLES = (
    "losses",
    "residuals",
    "scores",
    "margins",
)  # inputs of theorems that hold one number per row
_WORDS = {"<=": "at most", ">=": "at least", "=": "exactly", "in": ""}
_QUESTIONS = {  # what a section answers, in small print beside its title
    "performance": "how good is it, in the usual numbers?",
    "images": "what do its errors look like, and what does it look at?",
    "learning_curve": "would more data help?",
    "slices": "where does it err most?",
    "novelty": "is it better on copies of training rows?",
    "calibration": "can the probabilities be trusted?",
    "stability": "would a refit predict the same?",
    "layers": "does training reach every layer?",
    "robustness": "what can small changes of the inputs do?",
    "poisoning": "what can bad training rows do?",
    "membership": "does the model reveal its training rows?",
    "attribution": "which features drive the predictions?",
    "words": "which words push towards which answer?",
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a table of claims; a family is its worst member, with all members behind it.

    ``drawn`` is what is shown of the claim, mostly the claim itself.
    """

    claim: Claim
    drawn: Claim
    label: str
    word: str
    bound: str
    measured: str
    theorem: str
    share: str
    counts: str
    members: tuple[Row, ...] = ()
    bar: str = ""
    mark: str = ""

    @property
    def vacuous(self) -> bool:
        """Whether the row, and everything behind it, says nothing."""
        return self.claim.vacuous and all(member.claim.vacuous for member in self.members)


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Claims of a section with one theorem and the same assumptions, and what they cover."""

    theorem: Theorem
    labels: tuple[str, ...]
    assumptions: tuple[str, ...]
    met: tuple[str, ...]
    covers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class PagePart:
    """A section with its claims as rows, the proofs behind them, the name of its place on the
    page, its question, and whether it was not measured yet.
    """

    section: Section
    unfinished: bool
    anchor: str
    question: str
    proved: tuple[Row, ...]
    vacuous: tuple[Row, ...]
    proofs: tuple[Proof, ...]


# ── Words
# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def sentence_case(text: str) -> str:
    """The text with a capital first letter, where that is a plain one."""
    return text[0].upper() + text[1:] if text and "a" <= text[0] <= "z" else text


def bound_words(claim: Claim) -> tuple[str, str]:
    """A claim's bound as a word and a number, rounded in the direction that keeps it true:
    ``("at most", "6.7%")``.
    """
    if isinstance(claim.value, tuple):
        return "", claim.bound()
    return _WORDS[claim.relation], show(claim.value, claim.unit, claim.relation)


def share_of(claim: Claim, certificate: Certificate) -> str:
    """A claim's share of the certificate's δ in words: ``half of δ``, ``δ/12``."""
    if not claim.with_probability:
        return claim.surely()
    parts = float(f"{certificate.delta / claim.delta:.4g}") if claim.delta else 0.0
    return {0.0: "none of δ", 1.0: "all of δ", 2.0: "half of δ"}.get(parts, f"δ/{parts:,g}")


def counts_of(claim: Claim, certificate: Certificate) -> str:
    """What the claim was computed from: ``171 rows, 5 errors``."""
    inputs = claim.inputs
    unit = "group" if "groups" in certificate.facts else "row"
    n = inputs.get("n", inputs.get("m"))
    if isinstance(n, int):
        if isinstance(inputs.get("successes"), int):
            return (
                f"{inputs['successes']:,} of {_counted(n, 'noise' if 'noise' in inputs else unit)}"
            )
        errors = inputs.get("errors")
        return _counted(n, unit) + (
            f", {_counted(errors, 'error')}" if isinstance(errors, int) else ""
        )
    samples = [inputs[name] for name in _SAMPLES if isinstance(inputs.get(name), tuple | Withheld)]
    sizes = [sample["n"] if isinstance(sample, Withheld) else len(sample) for sample in samples]
    return _counted(sizes[0], unit) if sizes else ""


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


# ── The certificate's claims
# ──────────────────────────────────────────────────────────────────────────────────────────


def claim_rows(certificate: Certificate, standing: str) -> list[Row]:
    """The certificate's claims of one standing, each family as one row."""
    rows = []
    for worst, _ in certificate.rows():
        if worst.standing == standing:
            family = [
                c for c in certificate.claims if worst.family and _family(c) == _family(worst)
            ]
            members = sorted(family, key=_badness, reverse=True) if len(family) > 1 else []
            rows.append(
                _row(worst, certificate, tuple(_row(member, certificate) for member in members))
            )
    return rows


def _family(claim: Claim) -> tuple[str, str, str]:
    return claim.family, claim.quantity, claim.standing


def _badness(claim: Claim) -> float:
    value = claim.value[1] - claim.value[0] if isinstance(claim.value, tuple) else claim.value
    return -value if claim.relation == ">=" else value


def _row(claim: Claim, certificate: Certificate, members: tuple[Row, ...] = ()) -> Row:
    drawn = as_coverage(claim, certificate)
    word, bound = bound_words(drawn)
    approximate = " (asymptotic)" if claim.evidence == "asymptotic" else ""
    return Row(
        claim=claim,
        drawn=drawn,
        label=sentence_case(drawn.label),
        word=word,
        bound=bound,
        measured="" if drawn.measured is None else show(drawn.measured, drawn.unit),
        theorem=find_theorem(claim.theorem).name + approximate,
        share=share_of(claim, certificate),
        counts=counts_of(claim, certificate),
        members=members,
        mark=certificate.mark(claim),
    )


def with_bars(rows: Iterable[Row]) -> list[Row]:
    """Rows with their bars: rates bounded from one side share an axis, other numbers have one
    per family.
    """
    rows = list(rows)
    everything = [row.drawn for top in rows for row in (top, *top.members)]
    rates = {
        relation: [c for c in everything if (c.unit, c.relation) == ("rate", relation)]
        for relation in _WORDS
    }
    shared = {relation: bar_axis(claims) for relation, claims in rates.items() if claims}
    drawn = []
    for row in rows:
        own = bar_axis([row.drawn, *(member.drawn for member in row.members)])
        axis = shared[row.drawn.relation] if row.drawn.unit == "rate" else own
        members = tuple(
            replace(member, bar=interval_bar(member.drawn, axis))
            for member in row.members[:MOST_MEMBERS]
        )
        drawn.append(
            replace(
                row, members=members + row.members[MOST_MEMBERS:], bar=interval_bar(row.drawn, axis)
            )
        )
    return drawn


# ── The sections' claims
# ──────────────────────────────────────────────────────────────────────────────────────────────


def parts_of(audit: Document) -> list[PagePart]:
    """The audit's sections, each with its claims; those that say nothing apart, and a note or a
    reason that repeats said once.
    """
    certificate = audit.certificate
    reasons = {} if guarantees(certificate) else _reasons_on_top(certificate)
    return [
        _part(section, f"section-{i}", certificate, section.key in audit.unfinished)
        for i, section in enumerate(_said_once(audit.sections, reasons), 1)
    ]


def guarantees(certificate: Certificate) -> bool:
    """Whether the certificate guarantees something that is not vacuous."""
    return any(not row.vacuous for row in claim_rows(certificate, "together"))


def _reasons_on_top(certificate: Certificate) -> dict[str, str]:
    """Why nothing is guaranteed, which the page says under that heading."""
    lacking = lacking_once(certificate.lacking)
    return {item.reason.rstrip("."): "Guaranteed" for item in lacking if len(item.reason) >= REASON}


def _said_once(sections: Iterable[Section], reasons: dict[str, str]) -> list[Section]:
    """The sections, in the order in which the page says them, without the notes of an earlier one;
    where nothing else is left, that one is named instead. So is the place of a reason (what follows
    a colon) that was given earlier.
    """
    sections = list(sections)
    said: dict[str, str] = {}
    made: dict[int, Section] = {}
    for i in sorted(range(len(sections)), key=lambda i: _PLACES.index(sections[i].place)):
        section = sections[i]
        kept = tuple(
            _without_reason(note, section.title, reasons)
            for note in section.notes
            if note not in said
        )
        if (
            section.notes
            and not kept
            and not (section.claims or section.findings or section.charts or section.tables)
        ):
            kept = (f"The note on {said[section.notes[0]]} applies here too.",)
        said |= {note: section.title for note in section.notes if note not in said}
        made[i] = replace(section, notes=kept)
    return [made[i] for i in range(len(sections))]


def _without_reason(note: str, title: str, reasons: dict[str, str]) -> str:
    """The note with the place of its reason, if that was given before; else the reason is noted
    down.
    """
    head, _, reason = note.partition(": ")
    key = reason.rstrip(".")
    if len(key) < REASON or ". " in head:
        return note
    if key not in reasons:
        reasons[key] = title
        return note
    return f"{head}, for the reason given under {reasons[key]}."


def lacking_after(lacking: Iterable[Lacking], parts: Iterable[PagePart]) -> list[Lacking]:
    """What is not claimed, with the place of each reason that a section has given."""
    given = {
        note.partition(": ")[2].rstrip("."): part.section.title
        for part in parts
        for note in part.section.notes
    }
    return [
        (
            Lacking(item.label, f"the reason is given under {given[item.reason.rstrip('.')]}")
            if len(item.reason) >= REASON and item.reason.rstrip(".") in given
            else item
        )
        for item in lacking
    ]


def unfinished_words(audit: Document) -> str:
    """That some sections are missing, and what to do, for an audit that is not finished; else
    nothing. It is true while they are being measured and after an interruption alike.
    """
    if not audit.unfinished:
        return ""
    several = len(audit.unfinished) > 1
    return (
        f"This page is not finished: {', '.join(audit.missing)} {'were' if several else 'was'} still"
        " to be measured when it was written. The verdict, what is guaranteed and the model are"
        " final. If the audit was interrupted, run the same command again: it goes on from here."
    )


def lacking_once(lacking: Iterable[Lacking]) -> list[Lacking]:
    """What is not claimed, with claims that lack for the same reason in one item.

    Examples
    --------
    >>> twice = [Lacking("risk", "VC bound: seen before"), Lacking("risk", "margin bound: seen before")]
    >>> [str(item) for item in lacking_once(twice)]
    ['no risk (VC bound, margin bound): seen before']
    """
    alike: dict[str, list[Lacking]] = {}
    for item in lacking:
        alike.setdefault(item.reason.partition(": ")[2] or item.reason, []).append(item)
    return [
        items[0] if len(items) == 1 else _joined(items, reason) for reason, items in alike.items()
    ]


def _joined(items: Iterable[Lacking], reason: str) -> Lacking:
    items = list(items)
    what, heads = (
        _said(item.label for item in items),
        _said(item.reason.removesuffix(reason)[:-2] for item in items),
    )
    return Lacking(f"{what} ({heads})" if heads else what, reason)


def _part(section: Section, anchor: str, certificate: Certificate, unfinished: bool) -> PagePart:
    rows = [_row(claim, certificate) for claim in section.claims]
    useful = tuple(row for row in rows if not row.vacuous)
    nothing = tuple(row for row in rows if row.vacuous)
    asked = _QUESTIONS.get(section.key, "")
    return PagePart(
        section=section,
        unfinished=unfinished,
        anchor=anchor,
        question=asked,
        proved=useful,
        vacuous=nothing,
        proofs=_proofs(section.claims),
    )


def _proofs(claims: Iterable[Claim]) -> tuple[Proof, ...]:
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[Claim]] = {}
    for claim in claims:
        alike.setdefault((claim.theorem, claim.assumptions, claim.met), []).append(claim)
    return tuple(
        Proof(
            theorem=find_theorem(key),
            labels=tuple(sentence_case(claim.label) for claim in some),
            assumptions=assumptions,
            met=met,
            covers=tuple(
                (name, _said(getattr(claim.covers, name) for claim in some))
                for name in vars(some[0].covers)
            ),
        )
        for (key, assumptions, met), some in alike.items()
    )


def _said(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(values))
