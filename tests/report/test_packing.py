"""Cards in two columns: none is lost, each column keeps the page's order, and their heights are
nearly the same.
"""

import pytest

from surelearn.claim import Finding
from surelearn.report import Chart, PageTable, Section
from surelearn.report.packing import height_of, two_columns
from surelearn.report.rows import PagePart


def part(i, **holds):
    return PagePart(
        section=Section(key=f"s{i}", title=f"S{i}", **holds),
        anchor=f"s{i}",
        question="",
        proved=(),
        vacuous=(),
        proofs=(),
        unfinished=False,
    )


@pytest.mark.parametrize(
    "lengths", [[], [9], [5, 5], [40, 3, 3, 3], [2, 9, 4, 4, 30, 7, 1, 12], list(range(15))]
)
def test_no_half_is_empty(lengths):
    parts = [part(i, notes=("word " * 12,) * length) for i, length in enumerate(lengths)]
    left, right = two_columns(parts)
    assert sorted([*left, *right], key=parts.index) == parts
    assert all(column == sorted(column, key=parts.index) for column in (left, right))
    assert not parts or left[0] is parts[0]
    heights = [sum(height_of(one.section) for one in column) for column in (left, right)]
    tallest = max((height_of(one.section) for one in parts), default=0.0)
    assert abs(heights[0] - heights[1]) <= tallest
    if len(lengths) > 6:
        assert min(heights) >= 0.9 * max(heights)


def test_what_a_card_holds_makes_it_taller():
    bare = height_of(Section(key="a", title="A"))
    chart = Chart(
        kind="candidates",
        title="c",
        data={"names": ["a"] * 9, "values": [1.0] * 9, "errors": [0.0] * 9},
    )
    table = PageTable(header=("row", "words"), rows=(("1", "word " * 30),) * 3)
    held = [
        {"charts": (chart,)},
        {"tables": (table,)},
        {"notes": ("word",)},
        {"findings": (Finding(code="SL1", text="word"),)},
    ]
    assert all(height_of(Section(key="a", title="A", **holds)) > bare for holds in held)
    assert height_of(Section(key="a", title="A", tables=(table,))) > height_of(
        Section(
            key="a",
            title="A",
            tables=(PageTable(header=("row", "words"), rows=(("1", "word"),) * 3),),
        )
    )
