import json
import xml.etree.ElementTree as ET

import pytest

from surelearn.papers import REPRODUCTIONS, find, reproduce
from surelearn.papers.figures import draw, summary
from surelearn.papers.page import Made, to_html, to_json, versions
from surelearn.papers.reproduction import Figure, Outcome, TitledTable
from surelearn.papers.thesis import TABLE_5_1, TABLE_5_2
from surelearn.report.document import PageTable

HOSTILE = "<script>alert('x')</script>&\"\x00"


def made(**changes):
    return Made(
        **{
            "name": "n",
            "command": "surelearn reproduce n",
            "seed": 7,
            "settings": {},
            "meanings": {},
        }
        | changes
    )


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_every_name_has_a_sentence_and_a_reproduction(name):
    assert REPRODUCTIONS[name][1].endswith(".")
    assert callable(find(name).run)
    assert all(meaning for _, meaning in find(name).meanings().values())


@pytest.mark.parametrize(
    ("name", "printed"), [("thesis-table-5.1", TABLE_5_1), ("thesis-table-5.2", TABLE_5_2)]
)
def test_tables_show_the_published_numbers(name, printed):
    outcome = reproduce(name)
    assert outcome.headline.startswith(f"{len(printed)} of {len(printed)} printed cells are met")
    rows = outcome.parts[0].table.rows
    assert len(rows) == len(printed)
    for row, ((first, m), value) in zip(rows, printed.items(), strict=True):
        assert row[:4] == (f"{first:,}", f"{m:,}", f"{value:.4f}", f"{value:.4f}")
    page = to_html(outcome, made())
    assert all(f"{value:.4f}" in page for value in printed.values())


def test_nothing_can_be_set_about_a_table():
    with pytest.raises(ValueError, match="there is no setting 'ties': nothing can be set here"):
        reproduce("thesis-table-5.1", ties="largest")


def test_hostile_texts_are_only_text():
    outcome = Outcome(
        source=HOSTILE,
        headline=HOSTILE,
        findings=(HOSTILE,),
        figures=(
            Figure(kind="boxes", title=HOSTILE, groups={HOSTILE: (1.0, 2.0)}, axis=HOSTILE),
            Figure(
                kind="bars",
                title=HOSTILE,
                groups={HOSTILE: (1.0,)},
                axis=HOSTILE,
                labels=(HOSTILE,),
            ),
        ),
        parts=(
            TitledTable(
                title=HOSTILE, table=PageTable(header=(HOSTILE,), rows=((HOSTILE,),)), note=HOSTILE
            ),
        ),
        notes=(HOSTILE,),
    )
    page = to_html(
        outcome,
        made(name=HOSTILE, command=HOSTILE, settings={"a": HOSTILE}, meanings={"a": (1, HOSTILE)}),
    )
    assert "<script" not in page
    assert "\x00" not in page
    assert json.loads(to_json(outcome, made()))["headline"] == HOSTILE


def test_the_page_is_whole_and_says_how_it_was_made():
    page = to_html(
        reproduce("thesis-table-5.1"), made(settings={"a": 2}, meanings={"a": (1, "what a is")})
    )
    assert page.startswith("<!doctype html>")
    assert "surelearn reproduce n" in page
    assert "Seed 7" in page
    assert "by default 1" in page
    assert all(f"{name} {number}" in page for name, number in versions().items())
    assert not any(
        word in page for word in ("http://", "https://", "<script", "<link", "<img", "@import")
    )


def test_boxes_by_hand():
    values = [0, 1, 2, 3, 4, 5, 6, 7, 50]
    assert summary(values) == {
        "low": 0,
        "lower": 2,
        "median": 4,
        "upper": 6,
        "high": 7,
        "mean": pytest.approx(78 / 9),
    }
    assert summary([3.0, 3.0]) == dict.fromkeys(
        ("low", "lower", "median", "upper", "high", "mean"), 3.0
    )


@pytest.mark.parametrize(
    "values", [(0.0,), (0.0, 0.0), (100.0, 100.0), (0, 1, 2, 3, 4, 5, 6, 7, 50)]
)
def test_pictures_are_well_formed(values):
    boxes = Figure(kind="boxes", title="t", groups={"a": values, "b": (1.0, 2.0)}, axis="x")
    bars = Figure(
        kind="bars",
        title="t",
        groups={"a": values},
        axis="x",
        labels=tuple(map(str, values)),
        mark=0,
    )
    for figure in (boxes, bars):
        root = ET.fromstring(draw(figure))  # noqa: S314 - our own
        assert root.get("aria-label") == "t"
        assert "nan" not in draw(figure).lower()


def test_values_beyond_the_whiskers_are_rings():
    picture = draw(
        Figure(kind="boxes", title="t", groups={"a": (0, 1, 2, 3, 4, 5, 6, 7, 50)}, axis="x")
    )
    assert picture.count('class="ring"') == 1


def test_unknown_names_are_refused_with_a_hint():
    with pytest.raises(
        ValueError, match=r"no reproduction 'thesis-tabel-5.1'. Did you mean 'thesis-table-5.1'\?"
    ):
        reproduce("thesis-tabel-5.1")
