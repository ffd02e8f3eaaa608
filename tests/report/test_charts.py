"""Every chart is well-formed, stays inside its picture, marks round numbers and survives
degenerate data.
"""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelearn.bounds import (
    betting_interval,
    clopper_pearson,
    clopper_pearson_lower,
    conformal_radius,
    gradient_descent_convex,
)
from surelearn.report import Chart
from surelearn.report.axes import Axis, axis_for, log_axis_for
from surelearn.report.charts import MOST_ROWS, bar_axis, draw, interval_bar
from surelearn.report.drawing import exact, fit, text_width

NAMED = {"candidates": ("values", "errors"), "bars": ("measured", "bounds"), "bounds": ("values",)}
PLANES = {
    "curve": ("x", "y", "low", "high"),
    "reliability": ("predicted", "observed", "low", "high", "counts"),
}
KINDS = [*NAMED, *PLANES]


def chart(kind, names, numbers, unit="rate"):
    """A chart of a kind in which every column holds the same numbers."""
    data = dict.fromkeys({**NAMED, **PLANES}[kind], numbers)
    if kind in NAMED:
        data |= {
            "names": names,
            "chosen": 0,
            "kinds": ["guaranteed", "measured", "vacuous"] * len(names),
        }
    return Chart(
        kind=kind, title="a <title> & more", data={**data, "unit": unit, "x_label": "rows"}
    )


def parsed(svg):
    return ElementTree.fromstring(str(svg))  # noqa: S314 - our own


def texts(svg):
    return [element.text or "" for element in parsed(svg).iter("text")]


def titles(svg):
    return [element.text or "" for element in parsed(svg).iter("title")]


def coordinates(svg):
    names = {"x", "x1", "x2", "y", "y1", "y2", "cx", "cy", "r", "width", "height"}
    return [
        float(v)
        for element in parsed(svg).iter()
        if element.tag != "svg"
        for k, v in element.attrib.items()
        if k in names
    ]


@pytest.mark.parametrize("unit", ["rate", "number"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "numbers",
    [
        [0.1, 0.2, 0.3],
        [0.5],
        [0.2, 0.2, 0.2],
        [0.0, 0.0],
        [None, 0.3, None],
        [None, None],
        [math.inf, 0.2, -math.inf, math.nan],
        [1e308, -1e308],
        [5e-324, 1e-300, 1e300],
        [-0.4, -0.2],
        [1e9, 1e9 + 1],
        [3, 1, 2],
    ],
    ids=str,
)
def test_every_kind_survives_every_data(kind, numbers, unit):
    svg = draw(chart(kind, [f"name {i}" for i in range(len(numbers))], numbers, unit))
    root = parsed(svg)
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == titles(svg)[0] == "a <title> & more"
    assert all(math.isfinite(value) for value in coordinates(svg))
    assert not re.search(r"nan|inf\b", str(svg))
    assert min(value for value in coordinates(svg) if value != -13) >= -11  # -13: a row's own frame
    assert max(coordinates(svg)) <= float(root.attrib["viewBox"].split()[2])


@pytest.mark.parametrize("kind", KINDS)
def test_no_data_is_a_sentence(kind):
    assert str(draw(Chart(kind=kind, title="T<", data={}))) == '<p class="note">T&lt;: no data.</p>'
    assert "no data" in draw(chart(kind, [], []))


@pytest.mark.parametrize("kind", NAMED)
def test_many_names_are_capped_with_a_note(kind):
    svg = draw(chart(kind, [f"name {i}" for i in range(50)], [i / 100 for i in range(50)]))
    assert len(parsed(svg).findall("g")) == MOST_ROWS
    assert f"{50 - MOST_ROWS} more not drawn" in texts(svg)


def test_the_cap_keeps_what_matters():
    names, values = [f"n{i}" for i in range(50)], [1 - i / 100 for i in range(50)]
    candidates = texts(
        draw(
            Chart(kind="candidates", title="", data={"names": names, "values": values, "chosen": 3})
        )
    )
    assert {"n3", "n49"} <= set(candidates)
    assert "n10" not in candidates
    bars = texts(draw(Chart(kind="bars", title="", data={"names": names, "measured": values})))
    assert "n0" in bars
    assert "n49" not in bars


@pytest.mark.parametrize("kind", NAMED)
def test_names_are_read_whole_or_from_both_ends(kind):
    short, long = "a name", "13.18 < mean of the worst radius ≤ 15.05"
    both = draw(chart(kind, [short, long], [0.2, 0.3]))
    assert {short, long} <= set(texts(both))
    assert [float(svg.get("y")) for svg in parsed(both).iter("text") if svg.text == short] == [-14]
    name = "a very long name of a candidate " * 5 + "two"
    svg = draw(chart(kind, [name], [0.2]))
    (cut,) = (text for text in texts(svg) if "…" in text)
    assert cut.startswith("a very long name")
    assert cut.endswith("candidate two")
    assert any(title.startswith(name) for title in titles(svg))


def test_an_axis_begins_where_the_quantity_can():
    assert axis_for([30_000, 40_000], 50, 380, "number").low == 0
    assert axis_for([0.8, 0.9], 50, 380, "rate").low == 0
    assert axis_for([-0.2, 0.9], 50, 380, "number").low < 0
    assert axis_for([1990, 2020], 50, 380, "number", from_zero=False).low > 1900
    data = {"x": [1990, 2020], "y": [31.0, 36.0], "low": [30.0] * 2, "high": [40.0] * 2}
    drawn = texts(draw(Chart(kind="curve", title="", data=data)))
    assert "0" in drawn  # the error's axis
    assert "2,000" in drawn  # and the years


def test_a_curve_of_many_points_is_a_line_with_tooltips():
    x = [i / 50 for i in range(51)]
    data = {"x": x, "y": x, "unit": "rate", "x_unit": "rate", "x_label": "false positive rate"}
    svg = draw(Chart(kind="curve", title="", data=data))
    assert {circle.get("class") for circle in parsed(svg).iter("circle")} == {"hit"}
    assert any("2.0% false positive rate: 2.0%" in title for title in titles(svg))
    assert "100%" in texts(svg)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_values_stand_in_titles(kind):
    marks = titles(draw(chart(kind, ["one"], [0.125])))[1:]
    assert any("12.5%" in title for title in marks)


def test_an_upper_bound_in_a_title_is_rounded_up():
    svg = draw(
        Chart(
            kind="bars",
            title="",
            data={"names": ["a"], "measured": [0.1], "bounds": [0.20001], "unit": "rate"},
        )
    )
    assert "a: measured 10.0%, at most 20.1%" in titles(svg)


def test_a_missing_value_is_told():
    svg = draw(
        Chart(kind="candidates", title="", data={"names": ["a", "b"], "values": [None, 0.1]})
    )
    assert "a: no value" in titles(svg)
    assert "no value" in texts(svg)


def test_values_beyond_the_axis_become_arrowheads():
    svg = draw(chart("bounds", ["a", "b", "c"], [0.1, 1e12, math.inf]))
    assert len(list(parsed(svg).iter("path"))) == 2
    assert "vacuous" in texts(svg)


def test_columns_of_different_lengths():
    data = {"names": ["a", "b", "c"], "values": [0.1], "errors": [0.1, 0.2, 0.3, 0.4], "chosen": 7}
    assert len(parsed(draw(Chart(kind="candidates", title="", data=data))).findall("g")) == 3


@given(
    st.lists(st.text(max_size=60), min_size=1, max_size=30),
    st.lists(st.none() | st.floats() | st.integers(-(10**400), 10**400), max_size=30),
)
@settings(max_examples=60, deadline=None)
def test_any_names_and_numbers_give_well_formed_svg(names, values):
    for kind in KINDS:
        svg = draw(chart(kind, names, values))
        assert "no data" in svg or all(map(math.isfinite, coordinates(svg)))
        str(svg).encode()


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12), st.sampled_from(["rate", "number"]))
@settings(deadline=None)
def test_ticks_are_round_inside_and_apart(one, other, unit):
    axis = axis_for([one, other], 50, 380, unit)
    slack = 1e-8 * max(abs(one), abs(other)) + 1e-100
    assert axis.low <= min(one, other) + slack
    assert axis.high >= max(one, other) - slack
    assert 1 <= len(axis.ticks) <= 8
    assert all(axis.start - 1e-6 <= axis.at(tick) <= axis.end + 1e-6 for tick in axis.ticks)
    assert_labels_do_not_touch(axis)


@given(st.floats(1e-12, 1e12), st.floats(1e-12, 1e12), st.sampled_from(["rate", "number"]))
@settings(deadline=None)
def test_log_ticks_are_round_inside_and_apart(one, other, unit):
    axis = log_axis_for([one, other], 50, 380, unit)
    assert all(f"{tick:e}"[0] in "1235" and float(f"{tick:.0e}") == tick for tick in axis.ticks)
    assert_labels_do_not_touch(axis)


def assert_labels_do_not_touch(axis):
    ticks = axis.ticks
    for a, b in pairwise(ticks):
        assert (
            axis.at(b) - axis.at(a) >= (text_width(axis.label(a)) + text_width(axis.label(b))) / 2
        )


def test_tick_labels_have_no_more_digits_than_needed():
    assert [Axis(0, 1, 0, 1, "rate").label(tick) for tick in (0, 0.05, 0.125, 1, -0.2)] == [
        "0%",
        "5%",
        "12.5%",
        "100%",
        "−20%",
    ]
    assert [Axis(0, 1, 0, 1).label(tick) for tick in (0.2, 1500, 3e9, 2e-7)] == [
        "0.2",
        "1,500",
        "3e9",
        "2e−7",
    ]


def test_fit():
    assert fit("short", 100) == "short"
    assert fit("two  words\n", 100) == "two words"
    assert text_width(fit("日本語" * 30, 100)) <= 100
    assert re.fullmatch("x+…x+", fit("x" * 100_000, 100))
    assert fit("worst radius of the left side", 100) == "worst ra…side"


@pytest.mark.parametrize(
    ("value", "relation", "text"),
    [
        (0.0669141, "<=", "0.0669141"),
        (0.06691412, "<=", "0.0669142"),
        (0.06691418, ">=", "0.0669141"),
        (1000.0, "=", "1000"),
        (0.0, "=", "0"),
        (math.inf, "<=", "∞"),
    ],
)
def test_exact_rounds_in_the_safe_direction(value, relation, text):
    assert exact(value, relation) == text


CLAIMS = {
    "upper": clopper_pearson.certify(5, 171, 0.025, unit="rate"),
    "lower": clopper_pearson_lower.certify(60, 63, 0.025),
    "vacuous": clopper_pearson.certify(1, 1, 0.025),
    "interval": betting_interval.certify([0.1, 0.2, 0.4] * 30, 0.05),
    "number": conformal_radius.certify([float(i) for i in range(100)], 0.1, 0.05),
    "infinite": conformal_radius.certify([1.0, 2.0], 0.1, 0.05),
    "always": gradient_descent_convex.certify(**gradient_descent_convex.example),
}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_the_bar_of_every_kind_of_claim(claim):
    svg = interval_bar(claim, bar_axis([claim]))
    assert "guaranteed" in titles(svg)[0]
    assert all(map(math.isfinite, coordinates(svg)))


def test_bars_start_at_zero():
    assert bar_axis([CLAIMS["number"]]).low == bar_axis([CLAIMS["upper"]]).low == 0
    assert bar_axis([CLAIMS["lower"]]).high == 1


def test_the_bar_ends_at_the_bound():
    claim = CLAIMS["upper"]
    axis = bar_axis([claim])
    svg = parsed(interval_bar(claim, axis))
    rect, cap = (
        next(svg.iter("rect")),
        next(e for e in svg.iter("line") if e.attrib["class"] == "cap"),
    )
    assert float(rect.attrib["x"]) + float(rect.attrib["width"]) == pytest.approx(
        float(cap.attrib["x1"]), abs=0.2
    )
    assert float(cap.attrib["x1"]) == pytest.approx(axis.at(claim.value), abs=0.1)
    assert float(next(svg.iter("circle")).attrib["cx"]) == pytest.approx(axis.at(5 / 171), abs=0.1)
    assert titles(interval_bar(claim, axis))[0].startswith(
        "measured 2.9% (0.0292398), guaranteed at most 6.7% (0.0669"
    )


def test_a_curve_with_logarithmic_axes():
    data = {
        "x": [1, 10, 100, 1000],
        "y": [1.0, 1e-2, 1e-4, 0.0],
        "log": True,
        "level": 1e-3,
        "level_label": "penalty",
    }
    svg = draw(Chart(kind="curve", title="", data=data))
    circles = [(float(e.attrib["cx"]), float(e.attrib["cy"])) for e in parsed(svg).iter("circle")]
    assert len(circles) == 3  # zero has no logarithm
    (x1, y1), (x2, y2), (x3, y3) = circles
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert y2 - y1 == pytest.approx(y3 - y2, abs=0.2)
    assert "penalty" in texts(svg)
    (line,) = [e for e in parsed(svg).iter("line") if e.attrib["class"] == "diagonal"]
    assert y2 < float(line.attrib["y1"]) < y3


@pytest.mark.parametrize("level", [0.0, -1.0, math.inf, math.nan, None])
def test_a_level_that_cannot_be_drawn_is_not(level):
    data = {"x": [1, 2], "y": [1.0, 0.5], "log": True, "level": level, "level_label": "penalty"}
    assert "penalty" not in texts(draw(Chart(kind="curve", title="", data=data)))


def test_what_is_proved_is_a_staircase_that_never_rises_before_its_step():
    data = {
        "x": [0.0, 0.2, 0.6], "y": [0.5, 0.9, 1.0], "high": [0.5, 0.9, 1.0], "proved": True,
        "low_x": [0.1, 0.3, 0.7], "low": [0.4, 0.8, 0.9], "point": [0.2, 0.9], "point_label": "chosen: 0.4",
        "level": 0.85, "level_label": "required", "unit": "rate", "legend": "lower right",
    }  # fmt: skip
    svg = draw(Chart(kind="curve", title="", data=data))
    (line,) = [e for e in parsed(svg).iter("polyline") if e.get("class") == "ln low"]
    corners = [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
    xs, ys = zip(*corners, strict=True)
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in pairwise(corners))  # no slope
    steps = [a[0] for a, b in pairwise(corners) if a[1] != b[1]]
    start, end = xs[0], xs[-1]
    assert [round((x - start) / (end - start) * 0.6, 2) for x in steps] == [
        0.1,
        0.3,
    ]  # 0.7 lies beyond
    assert list(ys) == sorted(ys, reverse=True)  # upwards
    assert {"dot: chosen: 0.4", "dashed: required"} <= set(texts(svg))
    places = [(float(e.get("x")), float(e.get("y"))) for e in parsed(svg).iter("text") if ":" in (e.text or "")]  # fmt: skip
    assert len(set(places)) == 2
    assert abs(places[0][1] - places[1][1]) >= 12  # one below the other
