"""Reading tables: formats, kinds, findings, hashes."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelearn.data import BUILT_IN, DataError, hash_rows, read_table
from surelearn.data.columns import describe, in_words, infer_task, parse_dates, type_text
from surelearn.data.formats import load

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"


def shared(name):
    if not (SHARED / name).exists():
        pytest.skip(f"{name} is not in {SHARED}")
    return SHARED / name


def clean(n=400, seed=0):
    """A table about which there is nothing to find."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)).round(6)
    return pd.DataFrame(
        {
            "height": x[:, 0],
            "weight": x[:, 1],
            "visits": rng.integers(0, 15, n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "member": rng.random(n) < 0.5,
            "born": (pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), unit="D")).strftime("%Y-%m-%d"),
            "y": np.where(x[:, 0] + rng.normal(size=n) > 0, "yes", "no"),
        }
    )


def kinds(table):
    return {column.name: column.kind for column in table.columns}


def codes(table):
    return {finding.code for finding in table.findings}


def found(table, code):
    return next(finding for finding in table.findings if finding.code == code)


# -------------------------------------------------------------------------------------------------------------- formats

KINDS = {
    "height": "number",
    "weight": "number",
    "visits": "number",
    "colour": "category",
    "member": "category",
    "born": "date",
    "y": "target",
}

WRITTEN = {
    "comma": ("t.csv", lambda text: text.encode()),
    "semicolon": ("t.csv", lambda text: text.replace(",", ";").encode()),
    "decimal comma": ("t.csv", lambda text: text.replace(",", ";").replace(".", ",").encode()),
    "tab": ("t.tsv", lambda text: text.replace(",", "\t").encode()),
    "bar": ("t.txt", lambda text: text.replace(",", "|").encode()),
    "spaces": ("t.csv", lambda text: text.replace(",", " , ").encode()),
    "Windows line ends": ("t.csv", lambda text: text.replace("\n", "\r\n").encode()),
    "old Mac line ends": ("t.csv", lambda text: text.replace("\n", "\r").encode()),
    "quoted": ("t.csv", lambda text: "\n".join(",".join(f'"{v}"' for v in row.split(",")) for row in text.split()).encode()),
    "UTF-8 with mark": ("t.csv", lambda text: text.encode("utf-8-sig")),
    "UTF-16": ("t.csv", lambda text: text.encode("utf-16")),
    "gzip": ("t.csv.gz", lambda text: gzip.compress(text.encode())),
    "gzip by content": ("t.csv", lambda text: gzip.compress(text.encode())),
    "blank line at the end": ("t.csv", lambda text: (text + "\n   \n").encode()),
}


@pytest.mark.parametrize("form", WRITTEN)
def test_the_same_table_in_every_text_format(form, tmp_path):
    name, encode = WRITTEN[form]
    text = clean().to_csv(index=False)
    plain, other = tmp_path / "plain.csv", tmp_path / name
    plain.write_text(text)
    other.write_bytes(encode(text))
    expected, table = read_table(plain, target="y"), read_table(other, target="y")
    assert kinds(table) == KINDS
    assert table.name == name
    pd.testing.assert_frame_equal(table.frame, expected.frame)
    np.testing.assert_array_equal(table.row_hashes, expected.row_hashes)
    assert codes(table) == set()


@pytest.mark.parametrize("form", ["pandas", "polars", "parquet", "categorical"])
def test_the_same_table_from_typed_sources(form, tmp_path):
    frame, source = clean(), tmp_path / "t.parquet"
    (tmp_path / "t.csv").write_text(frame.to_csv(index=False))
    if form == "pandas":
        source = frame
    elif form == "polars":
        source = pytest.importorskip("polars").from_pandas(frame)
    elif form == "parquet":
        frame.to_parquet(source)
    else:
        source = frame.astype(
            {"colour": "category", "y": "category", "height": "Float64", "visits": "Int64", "member": "boolean"}
        )
    table, from_text = read_table(source, target="y"), read_table(tmp_path / "t.csv", target="y")
    assert kinds(table) == KINDS
    np.testing.assert_array_equal(table.y, from_text.y)
    np.testing.assert_array_equal(table.row_hashes, from_text.row_hashes)
    pd.testing.assert_frame_equal(table.X, from_text.X)


def test_latin_1_and_windows_text(tmp_path):
    text = clean().to_csv(index=False).replace("red", "rosé “x”")
    (tmp_path / "t.csv").write_bytes(text.encode("cp1252"))
    assert "rosé “x”" in set(read_table(tmp_path / "t.csv", target="y").X["colour"])


def test_values_may_hold_delimiters_quotes_and_line_breaks(tmp_path):
    frame = clean()
    frame["colour"] = frame["colour"].replace({"red": 'a "red",\nor so', "blue": "blue;\t|"})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert set(read_table(tmp_path / "t.csv", target="y").X["colour"]) == {'a "red",\nor so', "blue;\t|", "green"}


def test_a_lone_quote_in_tab_separated_text_is_a_character(tmp_path):
    for n in (39, 40):  # an even number of quotes pairs rows up: nothing is ragged, half of the rows are gone
        lines = [f'"{i} words and more\t{i % 2}' for i in range(n)]
        (tmp_path / "t.tsv").write_text("\n".join(["text\ty", *lines]) + "\n")
        frame = read_table(tmp_path / "t.tsv", target="y").frame
        assert len(frame) == n
        assert frame["text"][3] == '"3 words and more'


def test_quotes_around_tab_separated_values_are_quotes(tmp_path):
    lines = [f'"{i} words\tand more"\t"{i % 2}"' for i in range(40)]
    (tmp_path / "t.tsv").write_text("\n".join(['"text"\t"y"', *lines]) + "\n")
    assert read_table(tmp_path / "t.tsv", target="y").frame["text"][3] == "3 words\tand more"


def test_without_a_header_columns_have_positions(tmp_path):
    clean().to_csv(tmp_path / "t.csv", index=False, header=False)
    tables = [read_table(tmp_path / "t.csv", target=t, header=False) for t in (7, "7", -1, "-1", "column 7")]
    assert {table.target for table in tables} == {"column 7"}
    assert [column.name for column in tables[0].columns] == [f"column {i}" for i in range(1, 8)]
    assert len(tables[0].frame) == 400


def test_a_name_comes_before_a_position():
    frame = clean().rename(columns={"height": "7"})
    assert read_table(frame, target="7", drop="-1").target == "7"
    assert read_table(frame, target=7).target == "y"


def test_unnamed_columns_are_named_by_position(tmp_path):
    clean().to_csv(tmp_path / "t.csv")  # pandas writes its index without a name
    table = read_table(tmp_path / "t.csv", target="y")
    assert table.columns[0].name == "column 1"
    assert table.columns[0].kind == "identifier"


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_sets(name):
    table = read_table(name)
    assert table.path is None
    assert table.target == BUILT_IN[name]
    assert table.task == ("regression" if name == "diabetes" else "classification")
    assert len(table.X) == len(table.y) == len(table.row_hashes)


def test_no_source_means_breast_cancer():
    table = read_table()
    assert table.name == "breast_cancer"
    assert sorted(set(table.y)) == ["benign", "malignant"]
    assert table.X.shape == (569, 30)


def test_libsvm(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{2 * (i % 2) - 1} 1:{a:.3f} 4:{b:.3f} # row" for i, (a, b) in enumerate(rng.normal(size=(60, 2)))]
    for name in ("t.libsvm", "t.txt", "t"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        table = read_table(tmp_path / name)
        assert [c.name for c in table.columns] == ["label", *(f"feature {i}" for i in range(1, 5))]
        assert list(table.y[:3]) == [-1, 1, -1]
        assert table.y.dtype == np.int64
        assert kinds(table)["feature 2"] == "constant"


def test_libsvm_keeps_query_ids(tmp_path):
    lines = [f"{i % 3} qid:{i // 5} 1:{i * 7 % 11} 2:{i * 5 % 7}" for i in range(60)]
    (tmp_path / "t.libsvm").write_text("\n".join(lines) + "\n")
    assert read_table(tmp_path / "t.libsvm", group="qid").groups.tolist()[:6] == [0, 0, 0, 0, 0, 1]


def test_npz_images_are_flattened_and_other_arrays_named(tmp_path):
    rng = np.random.default_rng(0)
    images, digits = rng.integers(0, 255, (60, 4, 5), dtype=np.uint8), np.arange(60, dtype=np.uint8) % 3
    np.savez(tmp_path / "t.npz", x_train=images, y_train=digits, x_test=images, y_test=digits)
    table = read_table(tmp_path / "t.npz")
    np.testing.assert_array_equal(table.X.to_numpy(), images.reshape(60, 20))
    np.testing.assert_array_equal(table.y, digits)
    assert found(table, "SL115").numbers["arrays"] == ("x_test", "y_test")
    np.savez(tmp_path / "t.npz", X=images, y=digits)
    assert "SL115" not in codes(read_table(tmp_path / "t.npz"))


def test_reading_does_not_change_a_frame():
    frame = clean().astype({"colour": "category"})
    before = frame.copy(deep=True)
    table = read_table(frame, target="y", drop="height")
    X = table.X
    X["weight"] = 0.0
    pd.testing.assert_frame_equal(frame, before)
    assert (table.X["weight"] != 0.0).any()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.date_range("2020-01-01", periods=40, tz="Asia/Tokyo"), np.datetime64("2019-12-31T15:00")),
        (pd.to_timedelta([1, 2, 3, 5] * 10, unit="min"), 60.0),
        (np.array([1.5, 2.5] * 20, dtype=np.float16), 1.5),
        (pd.arrays.SparseArray([7.0, 1.0] * 20), 7.0),
        (pd.array([3, None] * 20, dtype="Int64"), 3.0),
        (pd.array([None, True] * 20, dtype="boolean"), None),
        (pd.Categorical([3, 4] * 20), "3"),
        (pd.Series(["\ud800", "b", "c"] * 13 + ["b"], dtype=object), r"\ud800"),
        ([1, "a", 2.5, None] * 10, "1"),
    ],
)
def test_unusual_types_of_a_frame(values, expected):
    X = read_table(clean(40).assign(z=values), target="y").X
    assert X["z"].to_numpy()[0] == expected


# ---------------------------------------------------------------------------------------------------- values and kinds


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
        (["a", "?", "N/A", "None", "null", "NaN", "NA", "", "none"], ["a", *[None] * 7, "none"], "O"),
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
    notes = {column.name: column.note for column in read_table(frame, target="y", drop=["weight"]).columns}
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


# ------------------------------------------------------------------------------------------------------------- findings


def odd_tables():
    """For each code, a change to the clean table that must raise it and nothing else beside the codes named after it."""
    n, rng = 400, np.random.default_rng(7)
    labels = rng.permutation(["a"] * 200 + ["b"] * 195 + ["c"] * 5)
    patient = np.repeat(rng.permutation(40), 10)
    sick = rng.random(40) < 0.5
    return {
        "SL101": (clean().assign(row=np.arange(n)), set()),
        "SL102": (clean().assign(country="DE"), set()),
        "SL103": (clean().assign(alive=clean()["y"].map({"yes": "alive", "no": "dead"})), set()),
        "SL104": (pd.concat([clean(), clean()[:30]]), set()),
        "SL105": (clean().assign(y=labels), set()),
        "SL106": (clean().assign(y=rng.integers(0, 5, n)), set()),
        "SL107": (clean().assign(text=[f"some words {i}" for i in range(n)]), set()),
        "SL108": (clean().assign(patient=patient, y=np.where(sick[patient], "yes", "no")), set()),
        "SL109": (clean().assign(height=clean()["height"] + np.linspace(0, 3, n)), set()),
        "SL110": (clean().assign(y=clean()["y"].where(np.arange(n) % 40 > 0)), set()),
        "SL111": (clean().assign(pounds=2.2046 * clean()["weight"] + 1), set()),
        "SL112": (clean().assign(weight=clean()["weight"].where(np.arange(n) % 5 == 0)), set()),
        "SL113": (clean().assign(weight=clean()["weight"].where(np.arange(n) % 50 > 0, np.inf)), set()),
    }


ODD = odd_tables()


@pytest.mark.parametrize("code", ODD)
def test_each_finding_is_made(code):
    frame, others = ODD[code]
    assert codes(read_table(frame, target="y")) == {code} | others


@pytest.mark.parametrize("seed", range(10))
def test_a_clean_table_has_no_findings(seed):
    assert read_table(clean(seed=seed), target="y").findings == ()
    amounts = clean(seed=seed).assign(y=lambda f: f["height"] + np.random.default_rng(seed).normal(size=400))
    assert read_table(amounts, target="y").findings == ()


def test_findings_hold_numbers():
    tables = {code: read_table(frame, target="y") for code, (frame, _) in ODD.items()}
    assert found(tables["SL103"], "SL103").numbers == {"column": "alive", "accuracy": 1.0}
    assert found(tables["SL103"], "SL103").severity == "serious"
    assert found(tables["SL104"], "SL104").numbers["rows"] == 30
    assert found(tables["SL105"], "SL105").numbers["classes"] == {"c": 5}
    assert found(tables["SL106"], "SL106").numbers == {"distinct": 5}
    assert found(tables["SL108"], "SL108").numbers["column"] == "patient"
    assert found(tables["SL109"], "SL109").numbers["columns"] == ("height",)
    assert found(tables["SL110"], "SL110").numbers == {"rows": 10}
    assert len(tables["SL110"].frame) == len(tables["SL110"].row_hashes) == 390
    assert found(tables["SL111"], "SL111").numbers["columns"] == (("weight", "pounds"),)
    assert found(tables["SL113"], "SL113").numbers["columns"] == {"weight": 8}
    assert tables["SL113"].X["weight"].isna().sum() == 8


@pytest.mark.parametrize(
    ("values", "gives_away"),
    [
        (lambda y, rng: np.where(y == "yes", 1.0, 0.0) + rng.uniform(0, 0.9, len(y)), True),  # a threshold
        (lambda y, rng: np.where(y == "yes", 1.0, 0.0) + rng.uniform(0, 1.2, len(y)), False),  # that overlaps
        (lambda y, rng: np.where(y == "yes", np.nan, rng.normal(size=len(y))), True),  # known for one class only
        (lambda y, _: [f"{word} {i // 100}" for i, word in enumerate(y)], True),  # words that hold the class
        (lambda y, _: [f"word {i}" for i in range(len(y))], False),  # unique words tell nothing of new rows
        (lambda y, rng: rng.permutation(len(y)) * 7, False),  # nor do unique numbers
    ],
)
def test_what_gives_a_class_away(values, gives_away):
    frame = clean()
    frame["z"] = values(frame["y"], np.random.default_rng(5))
    assert ("SL103" in codes(read_table(frame, target="y"))) == gives_away


def test_three_classes_in_intervals_are_given_away():
    frame = clean().assign(y=lambda f: np.digitize(f["weight"], [-0.5, 0.5]).astype(str))
    assert found(read_table(frame, target="y"), "SL103").numbers["column"] == "weight"


def test_a_giveaway_of_a_rare_class_is_seen():
    rare = np.arange(400) % 29 == 0
    frame = clean().assign(y=np.where(rare, "fraud", "fine"), flag=rare)
    assert found(read_table(frame, target="y"), "SL103").numbers["column"] == "flag"
    frame["flag"] = rare & (np.arange(400) % 58 == 0)  # half of the frauds only
    assert "SL103" not in codes(read_table(frame, target="y"))


@pytest.mark.parametrize(
    ("values", "gives_away"),
    [
        (lambda y: 3 * y + 1, True),
        (np.exp, True),
        (lambda y: -y.round(1), False),
        (lambda y: y + np.random.default_rng(0).normal(size=len(y)) / 10, False),
    ],
)
def test_what_gives_an_amount_away(values, gives_away):
    frame = clean().assign(y=np.random.default_rng(3).normal(size=400))
    frame["z"] = values(frame["y"])
    assert ("SL103" in codes(read_table(frame, target="y"))) == gives_away


def test_a_word_for_each_amount_gives_it_away():
    amount = np.random.default_rng(3).integers(0, 30, 4000)
    frame = clean(4000).assign(y=amount, z=[f"price {i}" for i in amount])
    assert found(read_table(frame, target="y"), "SL103").numbers["column"] == "z"


def test_a_column_is_either_a_group_or_a_giveaway():
    """Ten rows a value name patients; a hundred a value are codes that hold the class."""
    rng = np.random.default_rng(0)
    for rows_each, expected in ((10, "SL108"), (100, "SL103")):
        code = rng.permutation(np.repeat(np.arange(40), rows_each))
        frame = clean(len(code)).assign(code=[f"c{i}" for i in code], y=np.where(code % 3 == 0, "yes", "no"))
        assert codes(read_table(frame, target="y")) & {"SL103", "SL108"} == {expected}


def test_a_predictive_whole_number_is_not_a_group():
    """Neighbouring ages resemble each other; neighbouring patient numbers do not."""
    age = np.random.default_rng(3).integers(20, 80, 400)
    noise = np.random.default_rng(4).random(400) < 0.03
    frame = clean().assign(age=age, y=np.where((age > 50) ^ noise, "yes", "no"))
    assert "SL108" not in codes(read_table(frame, target="y"))


def test_a_stated_group_is_not_suggested_again():
    frame, _ = ODD["SL108"]
    assert "SL108" not in codes(read_table(frame, target="y", group="patient"))


def test_groups_of_amounts_are_seen():
    rng = np.random.default_rng(0)
    patient = rng.permutation(np.repeat(np.arange(40), 10))
    frame = clean().assign(
        patient=[f"P{i:03}" for i in patient], y=rng.normal(size=40)[patient] + 0.3 * rng.normal(size=400)
    )
    assert found(read_table(frame, target="y"), "SL108").numbers["column"] == "patient"


def test_amounts_with_few_values_are_mentioned():
    frame = clean().assign(y=np.random.default_rng(0).integers(0, 5, 400) / 2 + 0.25)
    assert "treated as amounts" in found(read_table(frame, target="y"), "SL106").text
    assert "SL106" not in codes(read_table(frame, target="y", task="classification"))


def test_a_first_line_that_looks_like_data_must_be_decided(tmp_path):
    clean().to_csv(tmp_path / "with.csv", index=False)
    clean().to_csv(tmp_path / "without.csv", index=False, header=False)
    with pytest.raises(DataError, match=r"first line looks like data.*--no-header.*--header"):
        read_table(tmp_path / "without.csv", target=7)
    assert read_table(tmp_path / "without.csv", target=7, header=False).reading["header"] is False
    assert len(read_table(tmp_path / "without.csv", target=7, header=True).frame) == 399
    assert read_table(tmp_path / "with.csv", target=7).reading["header"] is True
    said = found(read_table(tmp_path / "with.csv", target=7, header=False), "SL114")
    assert "do not pass --no-header" in said.text
    assert "height" not in said.text  # the first line may be a row, and rows are not printed
    for decided in ({}, {"header": True}):
        assert "SL114" not in codes(read_table(tmp_path / "with.csv", target=7, **decided))
    assert "SL114" not in codes(read_table(tmp_path / "without.csv", target=7, header=False))


@pytest.mark.parametrize(
    ("line", "row", "is_data"),
    [
        ("country,2001,2002,2003", "c{i},{i}.5,{i}.25,7.{i}", False),  # years
        ("country,2003,2002", "c{i},{i}.5,{i}.25", False),
        ("label,0,1,2,3", "{k},{k},0,1,{i}", False),  # pixels, whose values are such numbers too
        ("y,400.5,402.1,403.8,405.9,407.1,409.3", "{k},.{i},.1{i},.2{i},.3{i},.4{i},.5{i}", False),  # wave lengths
        ("name,sex,town", "n{i},m{k},t{k}", False),
        ("sex,n{k},x", "f,n{k},3.{i}", False),
        (",x,y", "{i},2.{i},{k}", False),  # an index without a name
        ("5.1,3.5,1.4,setosa", "{i}.1,3.{i},1.{i},s{k}", True),
        ("39,Private,77516,HS-grad,<=50K", "{i},Private,77{i},HS-grad,<=50K", True),
        ("nothing new here,0", "film number {i},{k}", True),
        ("p,x,s", "{p},x,s{k}", True),
        ("true,1.5,a", "false,{i}.5,b{k}", True),
        ("?,,NA", "{i},2.{i},{k}", True),
        ("1,0,3,male,22.0", "{i},{k},3,male,{i}.5", True),
    ],
)
def test_which_first_lines_look_like_data(line, row, is_data, tmp_path):
    rows = [row.format(i=i, k=i % 2, p="ep"[i % 2]) for i in range(10, 60)]
    (tmp_path / "t.csv").write_text("\n".join([line, *rows]) + "\n")
    refused = False
    try:
        load(tmp_path / "t.csv", header=None)
    except DataError as error:
        refused = "looks like data" in str(error)
    assert refused is is_data
    assert len(load(tmp_path / "t.csv", header=True).frame) == 50
    assert len(load(tmp_path / "t.csv", header=False).frame) == 51


def test_lines_of_names_within_a_file_are_no_evidence_of_data(tmp_path):
    rows = [f"n{i},t{i % 2}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["name,town", *rows, "name,town", *rows]) + "\n")
    assert list(load(tmp_path / "t.csv", header=None).frame.columns) == ["name", "town"]


@pytest.mark.parametrize("name", ["titanic.csv", "letter.csv", "california_housing.csv", "sick.csv", "ames.csv"])
def test_real_tables_with_names_and_without(name, tmp_path):
    text = shared(name).read_bytes()
    assert load(shared(name), header=None).frame.shape[0] > 800
    (tmp_path / "t.csv").write_bytes(text[text.index(b"\n") + 1 :])
    with pytest.raises(DataError, match="looks like data"):
        load(tmp_path / "t.csv", header=None)


@pytest.mark.parametrize("name", ["adult_train.csv", "adult_test.csv", "higgs500_test.tsv", "sst2/sst2_dev.tsv"])
def test_real_tables_that_have_no_names(name):
    with pytest.raises(DataError, match="looks like data"):
        load(shared(name), header=None)


def test_every_code_is_documented():
    documented = (Path(__file__).parent.parent / "docs" / "findings.rst").read_text(encoding="utf-8")
    source = Path(read_table.__code__.co_filename).parent
    text = "".join(
        (source / name).read_text(encoding="utf-8")
        for name in ("table.py", "formats.py", "delimited.py", "excel.py", "oddities.py")
    )
    made = {f"SL{number}" for number in range(101, 200) if f'"SL{number}"' in text}
    assert made == set(ODD) | {"SL114", "SL115", "SL130"}
    for code in made:
        assert f"\n{code} — " in documented, code


# --------------------------------------------------------------------------------------------------------------- hashes


@settings(max_examples=50, deadline=None)
@given(order=st.permutations(range(30)))
def test_hashes_do_not_depend_on_where_a_row_stands(order):
    frame = clean(30)
    np.testing.assert_array_equal(hash_rows(frame.iloc[order]), hash_rows(frame)[order])


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.floats(allow_nan=True), st.integers(-(2**63), 2**63 - 1), st.sampled_from(["a", "b", None])), min_size=2
    )
)
def test_rows_hash_alike_if_and_only_if_they_are_equal(rows):
    frame = pd.DataFrame(rows, columns=["f", "i", "s"]).astype({"s": object, "i": np.int64})
    hashes = hash_rows(frame)
    keys = [(repr(f + 0.0), i, s) for f, i, s in rows]
    assert len(set(hashes.tolist())) == len(set(keys))
    assert all((hashes[0] == hashes[k]) == (keys[0] == keys[k]) for k in range(len(rows)))


def one(**values):
    return int(
        hash_rows(
            pd.DataFrame({name: pd.Series([v], dtype=object if isinstance(v, str) else None) for name, v in values.items()})
        )[0]
    )


def test_what_a_hash_sees():
    assert one(a=1, b=2) == one(a=1.0, b=2.0) == one(c=1, d=2)
    assert one(a=0.0) == one(a=-0.0)
    assert one(a=1, b=2) != one(a=2, b=1)
    assert one(a=1) != one(a="1")
    assert one(a=1) != one(a=1, b=0)
    assert one(a=2**60) != one(a=2**60 + 1)
    assert one(a="x") != one(a="y")


def test_hashes_are_fixed_for_ever():
    """A ledger of certified rows lives on this: if it changes, every earlier audit is forgotten."""
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan], "c": pd.Series(["x", None], dtype=object), "d": [True, False]})
    assert hash_rows(frame).tolist() == [4572444966260232138, 5844536590877906730]


def test_hashes_are_the_same_in_another_process():
    code = "from surelearn.data import read_table; print(read_table('iris').row_hashes.sum())"
    printed = [
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed == [f"{read_table('iris').row_hashes.sum()}\n"] * 2


def test_dropping_a_column_does_not_change_the_hashes():
    frame = clean()
    np.testing.assert_array_equal(
        read_table(frame, target="y", drop="height").row_hashes, read_table(frame, target="y").row_hashes
    )


def test_findings_do_not_depend_on_the_process_or_the_run():
    frame, _ = ODD["SL108"]
    assert read_table(frame, target="y").findings == read_table(frame, target="y").findings


# ------------------------------------------------------------------------------------------------------------ real data


def test_titanic():
    table = read_table(shared("titanic.csv"), target="Survived")
    assert kinds(table) == {
        "PassengerId": "identifier",
        "Survived": "target",
        "Pclass": "number",
        "Name": "text",
        "Sex": "category",
        "Age": "number",
        "SibSp": "number",
        "Parch": "number",
        "Ticket": "text",
        "Fare": "number",
        "Cabin": "text",
        "Embarked": "category",
    }
    notes = {column.name: column.note for column in table.columns}
    assert notes["Age"] == "177 missing: filled with the median"
    assert np.bincount(table.y).tolist() == [549, 342]
    assert codes(table) == {"SL101", "SL107", "SL108", "SL112"}
    assert found(table, "SL108").numbers["column"] == "Ticket"


def test_titanic_with_alive():
    frame = pd.read_csv(shared("titanic.csv"))
    frame["alive"] = frame["Survived"].map({0: "no", 1: "yes"})
    assert found(read_table(frame, target="Survived"), "SL103").numbers["column"] == "alive"


def test_adult():
    table = read_table(shared("adult_train.csv"), target=-1, header=False)
    assert len(table.frame) == 32_561
    assert sorted(set(table.y)) == ["<=50K", ">50K"]
    assert table.columns[1].missing == 1836
    assert set(kinds(table).values()) == {"number", "category", "target"}
    assert found(table, "SL111").numbers["columns"] == (("column 4", "column 5"),)  # education, in words and as a number


def test_california_housing():
    table = read_table(shared("california_housing.csv"), target="median_house_value")
    assert table.task == "regression"
    assert kinds(table)["ocean_proximity"] == "category"
    assert codes(table) == {"SL109"}


def test_a9a():
    table = read_table(shared("a9a.gz"))
    assert table.X.shape == (32_561, 123)
    assert sorted(set(table.y)) == [-1, 1]


@pytest.mark.slow
def test_mnist():
    table = read_table(shared("mnist.npz"))
    assert table.frame.shape == (60_000, 785)
    assert table.task == "classification"
    assert found(table, "SL106").numbers == {"distinct": 10}
    assert "SL103" not in codes(table)


def test_higgs():
    table = read_table(shared("higgs7k_train.tsv"), target=1, header=False)
    assert table.X.shape == (7000, 28)
    assert np.bincount(table.y).sum() == 7000
    assert codes(table) == set()


def test_sentences():
    table = read_table(shared("sst2") / "sst2_train.tsv", target=2, header=False)
    assert kinds(table) == {"column 1": "text", "column 2": "target"}
    assert len(table.frame) == 6920
