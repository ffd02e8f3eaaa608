"""Every column on the page: its values and its association with the target, of fit rows only."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

import surelearn
from surelearn.auditing.sections import columns
from surelearn.auditing.single_rows import FEWEST
from surelearn.report import Audit, Chart
from surelearn.report.charts import draw
from surelearn.report.columns import MOST

QUICK = {
    "ledger": False,
    "n_jobs": 1,
    "models": {"majority": DummyClassifier()},
    "refits": 0,
    "curve_repeats": 0,
    "skip": ("robustness", "poisoning", "membership", "attribution", "performance"),
}
RNG = np.random.default_rng(0)
N = 600


def frame():
    x = RNG.normal(size=N)
    made = pd.DataFrame(
        {
            "noise": RNG.normal(size=N),
            "<b>kind</b>": np.where(RNG.random(N) < 0.8, x > 0, x < 0).astype(str),
            "x": x,
            "city": ["rare place", *RNG.choice(["Bern", "Basel"], N - 1)],
            "when": pd.to_datetime("2020-03-01") + pd.to_timedelta(RNG.integers(0, 900, N), "D"),
            "y": np.where(x > 0, "up", "down"),
        }
    )
    made.loc[::3, "noise"] = np.nan
    made.loc[0, "x"] = 1e6
    return made


@pytest.fixture(scope="module")
def result():
    return surelearn.audit(frame(), target="y", independent=True, keep=["x"], **QUICK)


def told(result):
    data = result["columns"].charts[0].data
    fields = [name for name in data if name != "more"]
    rows = zip(*(data[name] for name in fields), strict=True)
    return {row[fields.index("names")]: dict(zip(fields, row, strict=True)) for row in rows}


def test_the_target_then_the_strongest(result):
    found = told(result)
    assert list(found)[:3] == ["y", "x", "<b>kind</b>"]
    assert found["x"]["association"] > 0.9
    assert 0.4 < found["<b>kind</b>"]["association"] < 0.8
    assert found["noise"]["association"] < 0.2
    assert found["noise"]["missing"] == pytest.approx(1 / 3)
    assert set(found) == {row[0] for row in result["columns"].tables[0].rows}
    assert "no held-back row takes part" in result["columns"].notes[0]


def test_no_single_row_is_told(result):
    found = told(result)
    assert "rare place" not in found["city"]["said"]
    assert "1,000,000" not in found["x"]["said"]
    assert "1e" not in found["x"]["said"]
    assert sum(found["x"]["bars"]) == pytest.approx(1, abs=0.01)
    assert found["when"]["said"].startswith("2020-0")
    few = pd.Series(["a"] * (FEWEST - 1) + ["b"] * FEWEST)
    assert columns._values(few, "category")["said"] == "b 55.6%, 1 other 44.4%"


def test_held_back_rows_take_no_part():
    x = np.arange(100.0)
    table = pd.DataFrame({"x": x})
    y = np.where(np.arange(100) < 50, RNG.integers(0, 2, 100), x > 75)  # only later rows follow x
    column = SimpleNamespace(name="x", kind="number", missing=0, distinct=100, note="")

    def drawn(first):
        of = {"train": first, "certify": slice(first.stop, None)}
        return columns._chart(
            SimpleNamespace(
                rows=lambda purpose: (table.iloc[of[purpose]], y[of[purpose]]),
                studied=(column,),
                y=y,
                task="classification",
            )
        ).data

    assert drawn(slice(50))["association"][0] < 0.3
    assert drawn(slice(100))["association"][0] > 0.3
    assert drawn(slice(50))["said"] == ("0 to 50",)
    assert drawn(slice(100))["said"] == ("0 to 100",)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (RNG.uniform(2010, 9990, 300), "2,000 to 10,000"),  # every value is one row's
        (np.repeat(np.arange(13, 87), 5), "13 to 85"),  # each is that of five rows
        (np.where(np.arange(300) % 2, 1e308, -1e308), None),
        (np.arange(300) * 5e-324, None),
        (np.repeat([7.0, 1.0], [295, 5]), "1 to 7"),
        (np.array([1.0, 2, 3, 4, 7, 7, 7, 8, 9, 10, 11]), None),
        (np.array([1.0, 2, 3, 7, 7, 7, 7, 7, 9, 10, 11]), "mostly 7"),
    ],
)
def test_ends_are_no_value_of_a_single_row(values, said):
    assert columns._values(pd.Series(values), "number").get("said") == said


def test_it_is_drawn_and_escaped(result):
    page = result.to_html()
    assert "<b>kind" not in page
    assert page.count('class="tiny"') == 6
    assert Audit.from_json(result.to_json()).to_html() == page


def test_many_columns_are_counted():
    names = [f"c{i}" for i in range(500)]
    data = {"names": names, "kinds": ["number"] * 500, "bars": [[0.5, 0.5]] * 500, "more": 7}
    drawn = str(draw(Chart(kind="columns", title="t", data=data)))
    assert drawn.count("<tr>") == MOST + 1
    assert f"{500 - MOST + 7} more columns are in audit.json" in drawn
    wide = pd.DataFrame(RNG.normal(size=(80, 130))).add_prefix("c")
    wide["y"] = np.where(wide.c7 > 0, 1, 0)
    found = surelearn.audit(wide, target="y", **{**QUICK, "keep": ["c7"]})["columns"]
    assert len(found.charts[0].data["names"]) == columns.MOST
    assert found.charts[0].data["more"] == 131 - columns.MOST
    assert len(found.tables[0].rows) == 131


@pytest.mark.parametrize(
    "data", [{"names": ["a"]}, {"names": ["a"], "bars": [["x"]], "missing": "?"}]
)
def test_what_is_missing_is_left_out(data):
    assert '<th scope="row"><bdi>a</bdi></th>' in str(
        draw(Chart(kind="columns", title="t", data=data))
    )
