"""An `Audit` as one self-contained page: no script, no request, nothing from the data that is not escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup, escape

from surelearn.certificate import Certificate
from surelearn.claim import Claim, find_theorem
from surelearn.plain import percent_sure, show
from surelearn.report.charts import bar_axis, draw, interval_bar
from surelearn.report.document import Audit, Section, Table
from surelearn.report.drawing import clean, exact
from surelearn.version import __version__

MOST_MEMBERS = 100  # of a family, and of the facts, that are listed
LONGEST = 140  # characters of a name or a value
_WORDS = {"<=": "at most", ">=": "at least", "=": "exactly", "in": ""}
_MARKED = re.compile(r"\*\*(?=\S)([^*]*\d[^*]*)(?<=\S)\*\*")  # what is guaranteed holds a digit; a name like a**b does not
_ENDLESS = re.compile(r"(\S{100})\S{20,}")
_CODE = re.compile(r"`([^`\n]+)`")
_NUMERIC = re.compile(r"[\s\d.,%+±×≤≥=<>–−∞eE-]*\d[\s\d.,%+±×≤≥=<>–−∞eE-]*|[–—−-]?|∞")


def render(audit: Audit) -> str:
    """The whole page."""
    return _template().render(_view(audit), whole=True)


def render_inline(audit: Audit) -> str:
    """The same as one ``<div>`` with its own styles, for notebooks."""
    return _template().render(_view(audit), whole=False)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("surelearn.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
    )
    environment.filters |= {"draw": draw, "prose": prose, "lead": lead, "clip": clip}
    environment.globals["css"] = Markup(files("surelearn.report").joinpath("page.css").read_text(encoding="utf-8"))  # noqa: S704
    return environment.get_template("page.html.jinja")


# ── Words ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def marked(sentence: str) -> list[tuple[str, bool]]:
    """A sentence in pieces, each with whether it was marked as guaranteed by ``**…**``.

    Examples
    --------
    >>> marked("at most **6.7% errors** where a**b")
    [('at most ', False), ('6.7% errors', True), (' where a**b', False)]
    """
    pieces = _MARKED.split(_ENDLESS.sub(r"\1…", clean(sentence)))
    return [(piece, i % 2 == 1) for i, piece in enumerate(pieces) if piece]


def prose(text: Any) -> Markup:
    """An escaped text in which ```code``` is set as code; endless words are cut."""
    pieces = _CODE.split(_ENDLESS.sub(r"\1…", clean(text)))
    return Markup("").join(Markup("<code>{}</code>").format(p) if i % 2 else escape(p) for i, p in enumerate(pieces))


def lead(text: Any) -> Markup:
    """`prose` whose first sentence stands out, if more follow."""
    first, stop, rest = clean(text).partition(". ")
    return Markup("<b>{}.</b> {}").format(prose(first), prose(rest)) if stop and rest else prose(text)


def clip(text: Any, longest: int = LONGEST) -> Markup:
    """A name in isolation (right-to-left names stay in place); a very long one is cut, the whole in its tooltip."""
    text = clean(text)
    if len(text) <= longest:
        return Markup("<bdi>{}</bdi>").format(text)
    return Markup('<bdi title="{}">{}…</bdi>').format(text[:4000], text[:longest].rstrip())


def sentence_case(text: str) -> str:
    """The text with a capital first letter, where that is a plain one."""
    return text[0].upper() + text[1:] if text and "a" <= text[0] <= "z" else text


def bound_words(claim: Claim) -> tuple[str, str]:
    """A claim's bound as a word and a number, rounded in the direction that keeps it true: ``("at most", "6.7%")``."""
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
            return f"{inputs['successes']:,} of {_counted(n, unit)}"
        errors = inputs.get("errors")
        return _counted(n, unit) + (f", {_counted(errors, 'error')}" if isinstance(errors, int) else "")
    samples = [value for value in inputs.values() if isinstance(value, tuple)]
    return _counted(len(samples[0]), unit) if samples else ""


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


# ── Rows of claims ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a table of claims; a family is its worst member, with all members behind it."""

    claim: Claim
    label: str
    word: str
    bound: str
    measured: str
    theorem: str
    share: str
    counts: str
    members: tuple[Row, ...] = ()
    bar: str = ""

    @property
    def vacuous(self) -> bool:
        """Whether the row, and everything behind it, says nothing."""
        return self.claim.vacuous and all(member.claim.vacuous for member in self.members)


def claim_rows(certificate: Certificate, standing: str) -> list[Row]:
    """The certificate's claims of one standing, each family as one row."""
    rows = []
    for worst, _ in certificate.rows():
        if worst.standing == standing:
            family = [c for c in certificate.claims if worst.family and _family(c) == _family(worst)]
            members = sorted(family, key=_badness, reverse=True) if len(family) > 1 else []
            rows.append(_row(worst, certificate, tuple(_row(member, certificate) for member in members)))
    return rows


def _family(claim: Claim) -> tuple[str, str, str]:
    return claim.family, claim.quantity, claim.standing


def _badness(claim: Claim) -> float:
    value = claim.value[1] - claim.value[0] if isinstance(claim.value, tuple) else claim.value
    return -value if claim.relation == ">=" else value


def _row(claim: Claim, certificate: Certificate, members: tuple[Row, ...] = ()) -> Row:
    word, bound = bound_words(claim)
    approximate = " (asymptotic)" if claim.evidence == "asymptotic" else ""
    return Row(
        claim=claim,
        label=sentence_case(claim.label),
        word=word,
        bound=bound,
        measured="" if claim.measured is None else show(claim.measured, claim.unit),
        theorem=find_theorem(claim.theorem).name + approximate,
        share=share_of(claim, certificate),
        counts=counts_of(claim, certificate),
        members=members,
    )


def _with_bars(rows: Iterable[Row]) -> list[Row]:
    """Rows with their bars: rates bounded from one side share an axis, other numbers have one a family."""
    rows = list(rows)
    everything = [row.claim for top in rows for row in (top, *top.members)]
    rates = {relation: [c for c in everything if (c.unit, c.relation) == ("rate", relation)] for relation in _WORDS}
    shared = {relation: bar_axis(claims) for relation, claims in rates.items() if claims}
    drawn = []
    for row in rows:
        own = bar_axis([row.claim, *(member.claim for member in row.members)])
        axis = shared[row.claim.relation] if row.claim.unit == "rate" else own
        members = tuple(replace(member, bar=interval_bar(member.claim, axis)) for member in row.members[:MOST_MEMBERS])
        drawn.append(replace(row, members=members + row.members[MOST_MEMBERS:], bar=interval_bar(row.claim, axis)))
    return drawn


# ── The view: what the template shows ─────────────────────────────────────────────────────────────────────────────────


def _view(audit: Audit) -> dict[str, Any]:
    certificate = audit.certificate
    together = claim_rows(certificate, "together")
    return {
        "audit": audit,
        "certificate": certificate,
        "tone": {"guaranteed": "g", "do not ship": "bad"}.get(audit.verdict.kind, "m"),
        "verdict": marked(audit.verdict.sentence),
        "sure": percent_sure(certificate.delta),
        "delta": exact(certificate.delta, "<="),
        "guaranteed": _with_bars(row for row in together if not row.vacuous),
        "vacuous": [row for row in together if row.vacuous],
        "alone": claim_rows(certificate, "alone"),
        "measured": sorted(_at(audit, "measured"), key=lambda section: not section.charts),
        "assumed": _at(audit, "assumptions"),
        "assumptions": _assumptions(certificate),
        "details": _at(audit, "details"),
        "budget": _budget(certificate),
        "facts": _facts(certificate),
        "theorems": _theorems(certificate),
        "numeric": _numeric_columns,
        "most": MOST_MEMBERS,
        "version": __version__,
    }


def _at(audit: Audit, place: str) -> list[Section]:
    return [section for section in audit.sections if section.place == place]


def _assumptions(certificate: Certificate) -> list[str]:
    """What the guarantees assume; what any claim assumes, where nothing is guaranteed."""
    claims = certificate.together or certificate.claims
    return list(dict.fromkeys(line for claim in claims for line in claim.assumptions))


def _budget(certificate: Certificate) -> Table:
    """Who spends how much of δ."""
    rows = []
    for row in claim_rows(certificate, "together"):
        several = len(row.members) > 1
        spent = sum(member.claim.delta for member in row.members) if several else row.claim.delta
        label = f"{row.label} and the other {len(row.members) - 1} of its family" if several else row.label
        each = f"{row.share} each" if several else row.share
        rows.append((label, each, show(spent, "number")))
    return Table(header=("claim", "share", "spends"), rows=tuple(rows))


def _facts(certificate: Certificate) -> Table:
    """Hashes, options and measured numbers, of samples only their size."""
    facts = certificate.facts
    rows = [("subject", facts.subject), ("setting", facts.setting)]
    rows += [(f"hash of the {name}", value) for name, value in facts.hashes.items()]
    rows += [(name, _plain(value)) for name, value in facts.options.items() if value is not None]
    rows += [(name, _plain(value)) for name, value in facts.values.items()]
    if len(rows) > MOST_MEMBERS:
        rows = [*rows[:MOST_MEMBERS], ("…", f"{len(rows) - MOST_MEMBERS} more stand in the certificate")]
    return Table(header=("fact", "value"), rows=tuple(rows))


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_plain, value)) if len(value) <= 12 else f"{len(value):,} values, in the certificate"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_plain(item)}" for key, item in value.items())
    return exact(value) if isinstance(value, float) else str(value)


def _theorems(certificate: Certificate) -> list[Any]:
    keys = [claim.theorem for claim in certificate.claims] + [item.theorem for item in certificate.absent if item.theorem]
    return [find_theorem(key) for key in dict.fromkeys(keys)]


def _numeric_columns(table: Table) -> list[bool]:
    """Which columns hold numbers only, and are set to the right."""
    columns = [[str(row[i]) for row in table.rows if i < len(row)] for i in range(len(table.header))]
    return [any(column) and all(_NUMERIC.fullmatch(cell) for cell in column) for column in columns]
