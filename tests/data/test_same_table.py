"""The same table in every format."""

import gzip

import numpy as np
import pandas as pd
import pytest
from tests.data.reading import clean, codes, found, kinds

from surelearn.data import BUILT_IN, read_table

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
    "quoted": (
        "t.csv",
        lambda text: "\n".join(
            ",".join(f'"{v}"' for v in row.split(",")) for row in text.split()
        ).encode(),
    ),
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
            {
                "colour": "category",
                "y": "category",
                "height": "Float64",
                "visits": "Int64",
                "member": "boolean",
            }
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
    assert set(read_table(tmp_path / "t.csv", target="y").X["colour"]) == {
        'a "red",\nor so',
        "blue;\t|",
        "green",
    }


def test_a_lone_quote_in_tab_separated_text_is_a_character(tmp_path):
    # an even number of quotes pairs rows up: nothing is ragged, half of the rows are gone
    for n in (39, 40):
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
    tables = [
        read_table(tmp_path / "t.csv", target=t, header=False)
        for t in (7, "7", -1, "-1", "column 7")
    ]
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
    lines = [
        f"{2 * (i % 2) - 1} 1:{a:.3f} 4:{b:.3f} # row"
        for i, (a, b) in enumerate(rng.normal(size=(60, 2)))
    ]
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


def test_npz_parts_are_joined_and_images_keep_their_shape(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (60, 4, 5), dtype=np.uint8)
    digits, ward = np.arange(60, dtype=np.uint8) % 3, np.arange(60) % 12
    parts = {"x_train": images[:40], "y_train": digits[:40], "y_test": digits[40:]}
    np.savez(tmp_path / "t.npz", x_test=images[40:], **parts, ward=ward, other=np.ones(7))
    table = read_table(tmp_path / "t.npz", group="ward")
    assert table.images == (4, 5, 1)
    assert [table.X.columns[0], table.X.columns[-1]] == ["pixel 1,1", "pixel 4,5"]
    np.testing.assert_array_equal(table.X.to_numpy(), images.reshape(60, 20))
    np.testing.assert_array_equal(table.y, digits)
    np.testing.assert_array_equal(table.groups, ward)
    assert found(table, "SL115").numbers["arrays"] == ("other",)


def test_npz_was_read_otherwise_up_to_0_2(tmp_path):
    """`verify` reads the rows that an audit of then was about."""
    images = np.random.default_rng(0).integers(0, 9, (60, 4, 5))
    digits = np.arange(60) % 3
    np.savez(tmp_path / "t.npz", x_train=images, y_train=digits, x_test=images, y_test=digits)
    table = read_table(tmp_path / "t.npz", joined=False)
    assert table.images is None
    assert table.X.columns[0] == "feature 1"
    np.testing.assert_array_equal(table.X.to_numpy(), images.reshape(60, 20))
    assert found(table, "SL115").numbers["arrays"] == ("x_test", "y_test")
    assert len(read_table(tmp_path / "t.npz").y) == 120


def test_arrays_beside_rows_are_columns(tmp_path):
    rng = np.random.default_rng(0)
    X, y, age = rng.normal(size=(50, 3)), rng.integers(0, 2, (50, 1)), rng.normal(size=50)
    np.savez(tmp_path / "t.npz", data=X, label=y, age=age)
    table = read_table(tmp_path / "t.npz")
    assert table.target == "label"
    assert list(table.X.columns) == ["feature 1", "feature 2", "feature 3", "age"]


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
        (
            pd.date_range("2020-01-01", periods=40, tz="Asia/Tokyo"),
            np.datetime64("2019-12-31T15:00"),
        ),
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
