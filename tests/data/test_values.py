"""Values, kinds, targets and tasks."""

import numpy as np
import pytest
from tests.data.reading import clean, kinds

from surelearn.data import DataError, read_table
from surelearn.data.columns import describe, in_words, infer_task, parse_dates, type_text


def typed(*words, **options):
    import pyarrow as pa

    return type_text(pa.array(words), **options)


@pytest.mark.parametrize(
    ("words", "expected", "kind"),
    [
        (["1", " 2", "+3"], [1, 2, 3], "i"),
        (["1", "", "3"], [1.0, np.nan, 3.0], "f"),
        (["1.5", "NA", "-2e3", ".5"], [1.5, np.nan, -2000.0, 0.5], "f"),
        (["1,234", "5", "-1,000,000.5"], [1234.0, 5.0, -1000000.5], "f"),
        (["inf", "-Infinity", "1"], [np.inf, -np.inf, 1.0], "f"),
        (["true", "FALSE", "True"], [True, False, True], "b"),
        (["true", "?", "False"], [True, None, False], "O"),
        (["true", "maybe"], ["true", "maybe"], "O"),
        (["00501", "10001"], ["00501", "10001"], "O"),
        (["0", "0.5"], [0.0, 0.5], "f"),
        (["0x1F", "12"], ["0x1F", "12"], "O"),
        (["123456789012345678901", "2"], ["123456789012345678901", "2"], "O"),
        (["9007199254740993", "1"], [9007199254740993, 1], "i"),
        (["9007199254740993", ""], ["9007199254740993", None], "O"),
        (["1", "two"], ["1", "two"], "O"),
        (
            ["a", "?", "N/A", "None", "null", "NaN", "NA", "", "none"],
            ["a", *[None] * 7, "none"],
            "O",
        ),
        (["?", ""], [np.nan, np.nan], "f"),
    ],
)
def test_text_becomes_values(words, expected, kind):
    values = typed(*words)
    assert values.dtype.kind == kind
    np.testing.assert_array_equal(values, np.array(expected, dtype=values.dtype))


def test_a_decimal_comma_is_read_only_where_it_can_be_one():
    assert typed("1,5", "2,25", decimal=",").tolist() == [1.5, 2.25]
    assert typed("1,5", "2,25").tolist() == ["1,5", "2,25"]


@pytest.mark.parametrize(
    ("text", "expected", "order"),
    [
        ("2021-03-04", "2021-03-04", "ISO"),
        ("2021-03-04T05:06:07Z", "2021-03-04T05:06:07", "ISO"),
        ("3/14/2021", "2021-03-14", "month/day/year"),
        ("14/3/2021", "2021-03-14", "day/month/year"),
        ("14.03.2021 15:09", "2021-03-14T15:09", "day/month/year"),
        ("14 Mar 2021", "2021-03-14", "day/month/year"),
        ("March 14, 2021", "2021-03-14", "month/day/year"),
    ],
)
def test_dates_in_common_formats(text, expected, order):
    dates, read_as = parse_dates(np.array([text] * 20 + [None], dtype=object))
    assert dates[0] == np.datetime64(expected)
    assert np.isnat(dates[20])
    assert in_words(read_as) == order


def test_dates_need_ninety_five_percent():
    words = ["2021-03-04"] * 96 + ["unknown"] * 4
    assert parse_dates(np.array(words, dtype=object)) is not None
    assert parse_dates(np.array(words[2:] + ["unknown"] * 3, dtype=object)) is None
    assert parse_dates(np.array(["123-45-6789"] * 20, dtype=object)) is None


N = 200
RNG = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("a", np.arange(N), "identifier"),
        ("a", RNG.permutation(N) + 1000, "identifier"),
        ("a", np.arange(N)[::-1] * 3, "identifier"),
        ("a", RNG.permutation(N) * 3, "number"),
        ("user_id", RNG.permutation(N) * 3, "identifier"),
        ("UserId", RNG.permutation(N) * 3, "identifier"),
        ("covid", RNG.permutation(N) * 3, "number"),
        ("a", np.sort(RNG.normal(size=N)), "number"),
        ("a", np.arange(N) % 2, "number"),
        ("a", np.array([f"u{i}" for i in range(N)], dtype=object), "identifier"),
        ("a", np.array([f"user number {i}" for i in range(N)], dtype=object), "text"),
        ("a", np.array([f"u{i // 2}" for i in range(N)], dtype=object), "text"),
        ("a", np.array([f"u{i % 20}" for i in range(N)], dtype=object), "category"),
        ("a", np.array([f"u{i % 21}" for i in range(N)], dtype=object), "text"),
        ("a", np.array([f"u{i % 100}" for i in range(2000)], dtype=object), "category"),
        ("a", np.arange(N) % 2 == 0, "category"),
        ("a", np.array([True, False, None, True] * 50, dtype=object), "category"),
        ("a", np.full(N, 3.0), "constant"),
        ("a", np.full(N, np.nan), "constant"),
        ("a", np.array(["x", None] * 100, dtype=object), "category"),
        ("a", np.arange(N).astype("datetime64[D]"), "date"),
    ],
)
def test_kinds(name, values, kind):
    column, _ = describe(name, values)
    assert column.kind == kind
    assert column.used == (kind in ("number", "category", "text", "date"))


def test_notes_say_what_is_done():
    frame = clean()
    frame["height"] = frame["height"].where(frame.index % 4 > 0)
    frame["colour"] = frame["colour"].where(frame.index % 8 > 0)
    frame["born"] = frame["born"].where(frame.index % 100 > 0, "someday")
    notes = {
        column.name: column.note
        for column in read_table(frame, target="y", drop=["weight"]).columns
    }
    assert notes["height"] == "100 missing: filled with the median"
    assert notes["colour"] == "50 missing: a category of their own"
    assert notes["born"] == "4 not dates: treated as missing; 4 missing: filled with the median"
    assert notes["weight"] == "dropped: --drop"
    assert notes["visits"] == ""


def test_features_have_plain_types():
    frame = clean()
    frame["colour"] = frame["colour"].where(frame.index % 8 > 0)
    X = read_table(frame, target="y").X
    assert list(X.columns) == ["height", "weight", "visits", "colour", "member", "born"]
    assert [str(X[name].dtype) for name in ("height", "visits", "colour", "member")] == [
        "float64",
        "float64",
        "object",
        "object",
    ]
    assert X["born"].dtype.kind == "M"
    assert set(X["member"]) == {"True", "False"}
    assert X["colour"][0] is None


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (np.array(["a", "b"] * 50, dtype=object), "classification"),
        (np.arange(100) % 2 == 0, "classification"),
        (np.arange(100) % 10, "classification"),
        (np.arange(100) % 2 * 1.0, "classification"),
        (np.arange(100) % 11, "regression"),
        (np.arange(200) % 20, "classification"),
        (np.arange(2000) % 21, "regression"),
        (np.arange(100) % 2 * 0.5, "regression"),
    ],
)
def test_the_target_decides_the_task(values, task):
    assert infer_task(values) == task


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("0 1", [0, 1]),
        ("0.0 1.0", [0, 1]),
        ("true false", [True, False]),
        ("0.5 1", ["0.5", "1.0"]),
        ("no yes", ["no", "yes"]),
    ],
)
def test_labels_are_what_the_file_says(words, expected, tmp_path):
    frame = clean(40).drop(columns="y").assign(y=words.split() * 20)
    frame.loc[39, "y"] = ""  # a missing label must not turn 0 into 0.0
    frame.to_csv(tmp_path / "t.csv", index=False)
    y = read_table(tmp_path / "t.csv", target="y", task="classification").y
    assert y[:2].tolist() == expected
    assert y.dtype.kind == np.array(expected).dtype.kind


def test_the_task_can_be_chosen():
    frame = clean().assign(y=np.arange(400) % 5)
    assert read_table(frame, target="y").y.dtype == np.int64
    assert read_table(frame, target="y", task="regression").y.dtype == float


def test_group_and_time_are_not_features():
    frame = clean().assign(patient=np.arange(400) // 10)
    grouped = read_table(frame, target="y", group="patient")
    assert kinds(grouped)["patient"] == "group"
    assert "patient" not in grouped.X
    np.testing.assert_array_equal(grouped.groups, frame["patient"])
    timed = read_table(frame, target="y", time="born")
    assert kinds(timed)["born"] == "time"
    assert timed.frame["born"].dtype.kind == "M"
    assert timed.groups is None
    with pytest.raises(DataError, match="neither dates nor numbers"):
        read_table(frame, target="y", time="colour")
