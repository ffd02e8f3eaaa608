"""The page: its structure, its words, and that nothing from the data is ever markup."""

import json
import re
import runpy
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surelearn
from surelearn.bounds import (
    adaboost_training_error,
    clopper_pearson,
    conformal_radius,
    deterministic_linear_classifier,
    hoeffding,
    paired_difference,
    poisoning_threshold_machines,
)
from surelearn.certificate import Certificate, Facts
from surelearn.certification import certify
from surelearn.lacking import Lacking
from surelearn.plain import content_hash
from surelearn.report import Audit, PageTable, Section, Verdict
from surelearn.report.html import clip, lead, marked, percent_sure, prose, render, render_inline
from surelearn.report.rows import counts_of, share_of

SAMPLE = runpy.run_path(str(Path(__file__).with_name("sample.py")))
VOID = {"meta", "br", "col", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Elements, their attributes and texts; complains about tags that do not match."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, tag=None):
        return " ".join(
            " ".join(data for name, data in self.texts if tag is None or name == tag).split()
        )


@pytest.fixture(scope="module")
def audit():
    return SAMPLE["sample_audit"]()


@pytest.fixture(scope="module")
def page(audit):
    return Page(render(audit))


def bare(claims=(), lacking=(), kind="no verdict", **changes):
    certificate = Certificate(
        facts=Facts(subject="model", setting="checked"), claims=claims, lacking=lacking
    )
    verdict = Verdict(kind=kind, sentence="Nothing can be said.")
    empty = {"title": "t", "target": "", "rows": 0, "columns": 0, "chips": (), "sections": ()}
    return Audit(**{**empty, "verdict": verdict, "certificate": certificate, **changes})


def test_the_page_is_whole_and_asks_for_nothing(page):
    names = {name for name, _ in page.elements}
    assert not names & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "form",
        "base",
        "foreignobject",
        "animate",
    }
    assert page.all("html") == [{"lang": "en"}]
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv"))
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    attributes = {name for _, found in page.elements for name in found}
    assert not {name for name in attributes if name.startswith("on")} | attributes & {
        "src",
        "xlink:href",
        "style",
    }
    places = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    # within the page only, and to each of its places
    assert {link["href"] for link in page.all("a")} == {f"#{place}" for place in places}
    assert len(places) == sum("id" in attributes for _, attributes in page.elements)
    assert not re.search(r"url\(|@import|http", page.text("style"))


def test_landmarks_and_headings(page):
    for landmark in ("header", "main", "footer", "h1"):
        assert len(page.all(landmark)) == 1
    headings = [data for name, data in page.texts if name == "h2" and data.strip()]
    assert [heading.strip() for heading in headings] == [
        "Guaranteed",
        "Measured",
        "Assumptions",
        "Details",
    ]
    assert all("scope" in attributes for attributes in page.all("th"))


def test_the_verdict_opens_the_page(audit, page):
    assert audit.verdict.text.startswith(page.text("h1").split("  ")[0][:20])
    assert "4.2% errors" in page.text("b")
    assert "**" not in page.text()


def test_the_guarantees(audit, page):
    text = page.text()
    assert "95% together" in text
    assert "at most 4.2%" in text
    assert "Clopper–Pearson, half of δ 171 rows, 2 errors" in text
    assert "Clopper–Pearson, lower, δ/12 61 of 62 rows" in text
    assert "worst of 4" in text
    labels = [
        claim.label.capitalize() for claim in audit.certificate.claims if claim.family == "slice"
    ]
    assert all(label in text for label in labels)


def test_what_sections_prove_stands_in_both_places(audit, page):
    text = page.text()
    line = "Also proved, each alone at its own confidence, not part of the 95% together"
    assert (
        f"{line}: Adversarial robustness : robust accuracy on new rows within 0.1, at least 88.1%"
        in text
    )
    assert "(95%), and 1 more" in text
    assert text.index(line) < text.index("no guarantee, unless marked as proved")
    card = text[text.index("no guarantee, unless") :]
    assert (
        "proved Robust accuracy on new rows within 0.1: at least 88.1% 95%, 139 of 150 rows" in card
    )
    assert "proved Certified radius of row 7: at least 0.5 always" in card
    assert "vacuous Poison for a target that needs none: at least 0 is no information" in card
    assert "certified robust accuracy , C. J. Clopper" in card
    assert all(prose(line) in render(audit) for claim in audit.proved for line in claim.assumptions)
    (card,) = (one for one in page.all("div") if one.get("id") == "section-5")
    assert card["class"] == "card o5"
    assert [link["href"] for link in page.all("a")].count("#section-5") == 2  # contents, and there


def test_nothing_together_is_not_nothing_proved(audit):
    text = Page(render(bare(sections=[audit["robustness"]]))).text()
    assert "Nothing is guaranteed together on this page." in text
    assert "Everything below is only measured, except what is marked as proved." in text
    assert "each alone at its own confidence:" in text
    vacuous = replace(audit["robustness"], claims=audit["robustness"].claims[2:])
    text = Page(render(bare(sections=[vacuous]))).text()
    assert "Nothing is guaranteed on this page. Everything below is only measured." in text
    assert "Also proved" not in text


def test_claims_of_sections_are_kept_and_stand_alone(audit):
    again = Audit.from_json(audit.to_json())
    assert again.proved == audit.proved == audit["robustness"].claims
    assert [claim.recompute() for claim in again.proved] == [claim.value for claim in audit.proved]
    for claim in json.loads(audit.to_json())["sections"][4]["claims"]:
        assert claim["theorem"] in {"robust_accuracy", "linear_radius", "poisoning_threshold"}
        assert claim["inputs"]
        assert claim["assumptions"]
        assert set(claim["covers"]) == {"predictor", "loss", "population", "rows"}
    with pytest.raises(ValueError, match="of a section must stand alone"):
        Section(
            key="k", title="T", claims=(clopper_pearson.certify(1, 9, 0.1, standing="together"),)
        )
    with pytest.raises(ValueError, match="must not read facts"):
        Section(
            key="k",
            title="T",
            claims=(clopper_pearson.certify(1, 9, 0.1, sources={"errors": "risk.count"}),),
        )


def test_an_audit_of_version_2_has_no_claims_of_sections(audit):
    plain = json.loads(audit.to_json()) | {"version": 2}
    for section in plain["sections"]:
        del section["claims"]
    old = Audit.from_dict({**plain, "hash": content_hash(plain)})
    assert old.proved == ()
    assert not old.altered


def test_the_details_hold_everything_else(audit, page):
    text = page.text()
    for words in ("Bounds that hold alone", "vacuous", "not together with the others", "the regularization was chosen",
                  "Confidence budget", "δ/48 each", "Facts", audit.certificate.facts.hashes["model"], audit.reproduce,
                  "Biometrika 26 (1934)", "read before you sign"):  # fmt: skip
        assert words in text
    assert f"surelearn {surelearn.__version__} · statistical, not regulatory" in text


def test_every_picture_is_well_formed(audit):
    pictures = re.findall(r"<svg.*?</svg>", render(audit), flags=re.DOTALL)
    assert len(pictures) > 15
    for picture in pictures:
        root = ElementTree.fromstring(picture)  # noqa: S314 - our own
        assert root.attrib.get("aria-hidden") == "true" or (
            root.attrib["role"] == "img" and root[0].tag == "title"
        )


def test_the_same_audit_gives_the_same_bytes(audit):
    again = Audit.from_json(audit.to_json())
    assert render(audit) == render(again)
    assert render_inline(audit) == render_inline(again)
    assert not re.search(r"\b20[23]\d-\d\d|\d\d:\d\d\b", render(audit))


def test_the_page_is_small(audit):
    assert len(render(audit).encode()) < 100_000


def test_a_huge_audit_stays_under_a_megabyte(audit):
    claims = [
        clopper_pearson.certify(
            i % 7, 50, 1e-5, family="slice", standing="together", label=f"errors where column = {i}"
        )
        for i in range(3000)
    ]
    facts = Facts(
        subject="m", setting="s", values={f"fact {i}": list(range(100)) for i in range(3000)}
    )
    certificate = Certificate(facts=facts, claims=tuple(claims))
    text = render(replace(audit, certificate=certificate))
    assert len(text.encode()) < 1_000_000
    assert "2900 more are in the certificate" in text


def test_nothing_guaranteed_is_said_plainly():
    absent = Lacking(what="risk", reason="the rows were used for fitting")
    text = Page(render(bare(lacking=[absent], kind="measured only"))).text()
    assert "Nothing is guaranteed on this page." in text
    assert "No claim about risk: the rows were used for fitting" in text
    assert "measured only" in text
    assert "together" not in text


def test_vacuous_guarantees_stand_in_the_details():
    vacuous = clopper_pearson.certify(
        1, 1, 0.025, standing="together", label="errors on a single row"
    )
    text = Page(render(bare([vacuous]))).text()
    assert "Nothing is guaranteed on this page." in text
    assert "1 further claim is vacuous; see the details" in text
    assert text.index("Vacuous claims") > text.index("Details")
    useful = clopper_pearson.certify(1, 100, 0.025, standing="together", label="errors")
    text = Page(render(bare([useful, vacuous]))).text()
    assert "at most 5.5%" in text
    assert text.index("Errors on a single row") > text.index("Details")


@pytest.mark.parametrize(
    ("kind", "tone"),
    [
        ("guaranteed", "g"),
        ("warning", "m"),
        ("do not ship", "bad"),
        ("nothing useful", "m"),
        ("measured only", "m"),
        ("no verdict", "m"),
    ],
)
def test_the_verdict_has_the_colour_of_its_kind(kind, tone):
    page = Page(render(bare(kind=kind)))
    assert page.all("h1") == [{"class": tone}]
    assert (kind in page.text("span")) == (kind != "guaranteed")


def test_regression_and_groups():
    X = [[float(i)] for i in range(200)]
    y = [float(i % 17) for i in range(200)]
    regression = certify(lambda X: [8.0] * len(X), X, y, task="regression", loss_bound=20.0)
    page = Page(render(bare(regression.claims)))
    assert "at most 8" in page.text()
    labels = [int(value > 8) for value in y]
    grouped = certify(
        lambda X: [0] * len(X),
        X,
        labels,
        task="classification",
        classes=[0, 1],
        groups=[i // 4 for i in range(200)],
    )
    assert "50 groups" in Page(render(replace(bare(), certificate=grouped))).text()


def test_inline_is_one_div_with_its_own_styles(audit):
    text = render_inline(audit)
    page = Page(text)
    assert page.elements[0] == ("div", {"class": "sl inline"})
    assert not {name for name, _ in page.elements} & {
        "html",
        "body",
        "head",
        "main",
        "header",
        "footer",
        "meta",
    }
    assert not any("id" in attributes for _, attributes in page.elements)
    rules = re.sub(r"@media[^{]*\{", "", page.text("style"))
    selectors = [s for rule in re.findall(r"([^{}]+)\{", rules) for s in rule.split(",")]
    assert all(selector.strip().startswith(".sl") for selector in selectors)
    assert audit._repr_html_() == text


# ── Escaping
# ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def assert_inert(text):
    page = Page(text)
    names = {name for name, _ in page.elements}
    assert not names & {"script", "img", "iframe"}
    assert all(re.fullmatch(r"#section-(\d|[a-z]+)", link["href"]) for link in page.all("a"))
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    for picture in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        ElementTree.fromstring(picture)  # noqa: S314 - our own
    text.encode()
    return page


@pytest.mark.parametrize("renderer", [render, render_inline])
def test_hostile_names_are_only_text(renderer):
    page = assert_inert(renderer(SAMPLE["hostile_audit"]()))
    assert "<script>alert(1)</script>" in page.text()
    assert "{{ 7 * 7 }}" in page.text()
    assert len(renderer(SAMPLE["hostile_audit"]()).encode()) < 1_000_000


@given(
    st.lists(
        st.text(min_size=1, max_size=80) | st.sampled_from(SAMPLE["HOSTILE"]),
        min_size=2,
        max_size=4,
        unique=True,
    )
)
@settings(max_examples=12, deadline=None)
def test_any_name_is_only_text(names):
    plain = Page(render(SAMPLE["hostile_audit"](["name"] * len(names))))
    page = assert_inert(render(SAMPLE["hostile_audit"](names)))
    allowed = {name for name, _ in plain.elements} | {"code", "b", "g", "path"}
    assert {name for name, _ in page.elements} <= allowed


def test_marks_of_the_verdict():
    assert marked("at most **6.7% errors** on **3** rows") == [
        ("at most ", False), ("6.7% errors", True), (" on ", False), ("3", True), (" rows", False),
    ]  # fmt: skip
    assert marked("a**b at most **5%**") == [("a**b at most ", False), ("5%", True)]
    assert marked("the column **x**") == [("the column **x**", False)]


def test_words():
    assert str(prose("use `a<b` & c")) == "use <code>a&lt;b</code> &amp; c"
    assert str(lead("One. Two `x`.")) == "<b>One.</b> Two <code>x</code>."
    assert str(lead("Only one.")) == "Only one."
    assert str(prose("the column " + "x" * 5000)) == "the column " + "x" * 100 + "…"
    assert str(clip("<" * 200, 3)).startswith('<bdi title="&lt;')
    assert [percent_sure(delta) for delta in (0.05, 0.07, 0.01, 0.001)] == [
        "95%",
        "93%",
        "99%",
        "99.9%",
    ]


def test_shares_and_counts():
    certificate = Certificate(facts=Facts(subject="m", setting="s"), claims=())
    whole, half, part = (
        clopper_pearson.certify(1, 1000, delta) for delta in (0.05, 0.025, 0.05 / 12)
    )
    assert [share_of(claim, certificate) for claim in (whole, half, part)] == [
        "all of δ",
        "half of δ",
        "δ/12",
    ]
    assert counts_of(whole, certificate) == "1,000 rows, 1 error"
    assert counts_of(hoeffding.certify(0.1, 50, 0.05), certificate) == "50 rows"
    assert counts_of(paired_difference.certify([0.0] * 9, [1.0] * 9, 0.05), certificate) == "9 rows"
    assert counts_of(conformal_radius.certify([0.1] * 99, 0.1, 0.05), certificate) == "99 rows"
    assert (
        counts_of(deterministic_linear_classifier.certify([0.5] * 7, 0.05), certificate) == "7 rows"
    )
    machines = poisoning_threshold_machines.certify(inner=[0.1] * 3, share=[0.6] * 3, together=2)
    assert counts_of(machines, certificate) == ""
    assert counts_of(adaboost_training_error.certify([0.2, 0.1]), certificate) == ""


def test_columns_of_numbers_stand_to_the_right():
    table = PageTable(header=("name", "n", "word"), rows=(("a", "1,234", "x"), ("b", "5.6%", "7y")))
    section = Section(key="k", title="T", place="details", tables=(table,))
    cells = [
        attributes.get("class") for attributes in Page(render(bare(sections=(section,)))).all("td")
    ]
    assert cells[:4] == ["r", None, "r", None]


# ── Contrast
# ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def luminance(colour):
    colour = colour if len(colour) == 7 else "#" + "".join(2 * digit for digit in colour[1:])
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_texts_can_be_read_in_every_theme(page):
    themes = re.findall(r"--paper:.*?[;}]\s*(?:color-scheme|\})|--paper:[^}]*", page.text("style"))
    assert len(themes) == 3  # light, dark, print
    for theme in themes:
        colours = dict(re.findall(r"--(\w+):(#[0-9a-f]+)", theme))
        for ink in ("ink", "soft", "g", "m", "bad"):
            for ground in ("paper", "card"):
                assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground, theme)


def test_a_reason_that_repeats_is_said_once():
    note, own = "Values of single rows are not shown.", "A note of its own."
    chart = SAMPLE["_drawn"]("selection", "Model selection", "curve", "c", SAMPLE["_curve"](), note)
    same = replace(chart, key="stability", title="Stability", notes=(note, own))
    empty = Section(key="poisoning", title="Data poisoning", notes=(note,))
    text = Page(render(replace(SAMPLE["sample_audit"](), sections=(chart, same, empty)))).text()
    assert text.count(note) == 1
    assert own in text
    assert "The note on Model selection applies here too." in text
    lacking = [
        Lacking("risk", f"{name}: the rows were seen before")
        for name in ("VC bound", "margin bound")
    ]
    lacking += [
        Lacking("risk", "no loss bound was stated"),
        Lacking("cost", "no loss bound was stated"),
    ]
    text = Page(render(bare(lacking=lacking))).text()
    assert text.count("the rows were seen before") == text.count("no loss bound was stated")
    assert "risk (VC bound, margin bound): the rows were seen before" in text
    assert "risk, cost: no loss bound was stated" in text


def test_a_reason_is_given_once_across_sections_and_claims():
    why = "the fit rows were looked at before to prepare columns"
    details = Section(key="b", title="Bounds", place="details", notes=(f"No bounds: {why}.",))
    measured = Section(key="s", title="Stability", notes=(f"No constant β: {why}.",))
    useful = clopper_pearson.certify(1, 100, 0.025, standing="together", label="errors")
    lacking = [Lacking("privacy", why), Lacking("margins", "they are not known")]
    # details come first in the file, last on the page
    made = bare([useful], lacking, sections=(details, measured))
    text = Page(render(made)).text()
    assert text.count(why) == 1
    assert f"No constant β: {why}." in text
    assert "No bounds, for the reason given under Stability." in text
    assert "privacy : the reason is given under Stability" in text
    assert "margins : they are not known" in text
    nothing = Page(render(bare(lacking=lacking, sections=(details, measured)))).text()
    assert nothing.count(why) == nothing.count("they are not known") == 1
    assert "No constant β, for the reason given under Guaranteed." in nothing
    assert json.loads(made.to_json())["sections"][1]["notes"] == [f"No constant β: {why}."]


def test_no_backtick_is_left_of_code(audit):
    quoted = ("use `surelearn watch` here", "`--drop`")
    section = Section(
        key="k", title="T", notes=quoted, tables=(PageTable(header=quoted, rows=(quoted,)),)
    )
    page = Page(render(replace(audit, sections=(section,), chips=quoted)))
    assert "`" not in page.text()
    assert page.text("code").count("--drop") == 4
