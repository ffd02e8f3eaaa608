"""New rows are read as the audited table was: same values, whatever the pieces, and what is odd
is named.
"""

import gzip
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from surelearn.data import DataError, opening, read_table, schema, stream
from surelearn.data.schema import Notes, Schema, read_labels
from surelearn.data.stream import open_stream

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"


def nasty(n=400, seed=0):
    """A table with everything that reading has to get right."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "number": np.where(rng.random(n) < 0.1, "", rng.normal(size=n).round(3).astype(str)),
            "whole": rng.integers(-5, 400, n).astype(str),
            "thousands": [f"{value:,}" for value in rng.integers(0, 5_000_000, n)],
            "category": rng.choice(["a", " b ", "NA", "ç, d", 'say "e"'], n),
            "digits": np.where(rng.random(n) < 0.02, "x", rng.choice(["1.50", "2", "007"], n)),
            "truth": rng.choice(["TRUE", "false", ""], n, p=[0.5, 0.4, 0.1]),
            "text": [
                " ".join(rng.choice(["red", "green\nblue", "sea", "sky", "?"], 4)) + str(i % 90)
                for i in range(n)
            ],
            "date": [f"{1 + i % 12}/{1 + i % 28}/20{10 + i % 9}" for i in range(n)],
            "iso": [f"2021-03-{1 + i % 28:02d}T10:{i % 60:02d}" for i in range(n)],
            "y": rng.choice(["yes", "no"], n),
        }
    )


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(stream, "ROWS", 7)
    monkeypatch.setattr(opening, "BLOCK", 1 << 12)


def conformed(table_schema, source, **options):
    """All pieces of a file, read by a schema, and the notes."""
    notes = Notes()
    with open_stream(source, **options) as opened:
        table_schema.check(opened.name, opened.columns)
        pieces = [
            table_schema.conform(piece, opened.name, notes, decimal=opened.decimal)
            for piece in opened.tables
        ]
    assert len(pieces) > 1
    return pd.concat(pieces, ignore_index=True), notes


def drained(source, **options):
    with open_stream(source, **options) as opened:
        return opened.columns, list(opened.tables)


def schema_of(table):
    used = [column.name for column in table.columns if column.used]
    return Schema.of(table, used, np.arange(len(table.y)))


def same(read, table):
    for feature in schema_of(table).features:
        ours, theirs = read[feature.name], table.X[feature.name]
        if feature.kind == "number":
            np.testing.assert_array_equal(ours.to_numpy(), theirs.to_numpy())
        else:
            pd.testing.assert_series_equal(ours, theirs, check_dtype=False)
            assert [value is None for value in ours.astype(object)] == [
                value is None for value in theirs.astype(object)
            ]


WRITERS = {
    "comma": lambda frame, path: frame.to_csv(path, index=False),
    "semicolon": lambda frame, path: frame.drop(columns="thousands").to_csv(
        path, index=False, sep=";"
    ),
    "bar": lambda frame, path: frame.to_csv(path, index=False, sep="|"),
    "tab": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "quoted": lambda frame, path: frame.to_csv(path, index=False, quoting=1),
    "windows": lambda frame, path: frame.to_csv(
        path, index=False, lineterminator="\r\n", encoding="cp1252"
    ),
    "utf-16": lambda frame, path: frame.to_csv(path, index=False, encoding="utf-16"),
    "mark": lambda frame, path: frame.to_csv(path, index=False, encoding="utf-8-sig"),
    "gzip": lambda frame, path: path.write_bytes(gzip.compress(frame.to_csv(index=False).encode())),
    "parquet": lambda frame, path: frame.to_parquet(path),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_is_read_as_the_audit_read_it(writer, tmp_path, small_pieces):
    path = tmp_path / (
        "t.parquet" if writer == "parquet" else "t.csv.gz" if writer == "gzip" else "t.csv"
    )
    WRITERS[writer](nasty(), path)
    table = read_table(path, target="y")
    read, notes = conformed(schema_of(table), path)
    same(read, table)
    assert list(notes.lines()) == []
    assert notes.rows == 400


def test_decimal_commas(tmp_path, small_pieces):
    frame = pd.DataFrame(
        {"a": [f"{i},{i % 10}" for i in range(60)], "b": range(60), "y": ["p", "q"] * 30}
    )
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";")
    table = read_table(tmp_path / "t.csv", target="y")
    read, _ = conformed(schema_of(table), tmp_path / "t.csv")
    same(read, table)
    assert read["a"].iloc[13] == 13.3


def test_nothing_is_inferred_from_a_piece(tmp_path, small_pieces):
    """A column of categories whose first hundred rows are digits, numbers whose last rows are
    empty.
    """
    frame = pd.DataFrame(
        {"a": ["1"] * 100 + ["x"] * 100, "b": ["1.5"] * 190 + [""] * 10, "y": ["p", "q"] * 100}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", target="y")
    made = schema_of(table)
    (tmp_path / "new.csv").write_text("b,a\n" + "\n".join(f"{i},1" for i in range(20)) + "\n")
    read, notes = conformed(made, tmp_path / "new.csv")
    assert list(read.columns) == ["a", "b"]
    assert set(read["a"]) == {"1"}
    assert read["b"].dtype == float
    assert list(notes.lines()) == []


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("titanic.csv", {"target": "Survived"}),
        ("california_housing.csv", {"target": -1}),
        ("adult_train.csv", {"target": -1, "header": False}),
        ("higgs7k_train.tsv", {"target": 1, "header": False}),
    ],
)
def test_public_tables(name, options, monkeypatch):
    if not (SHARED / name).is_file():
        pytest.skip(f"{name} is not here")
    monkeypatch.setattr(stream, "ROWS", 97)
    table = read_table(SHARED / name, **options)
    made = schema_of(table)
    read, notes = conformed(made, SHARED / name, header=made.header, names_for=made.names_for)
    if len(read) != len(table.y):
        pytest.skip("rows without a target were removed by the audit")
    same(read, table)
    assert not notes.unseen
    assert not notes.unread


def test_a_schema_survives_json(tmp_path):
    import json

    nasty().to_csv(tmp_path / "t.csv", index=False)
    made = schema_of(read_table(tmp_path / "t.csv", target="y"))
    assert Schema.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    assert {feature.name: feature.form for feature in made.features}["truth"] == "truth"
    assert "%m/%d/%Y" in {feature.form for feature in made.features}
    with pytest.raises(ValueError, match="incomplete or damaged"):
        Schema.from_dict({"features": [{}]})


# --------------------------------------------------------------------------------------------------


@pytest.fixture
def made(tmp_path):
    nasty().to_csv(tmp_path / "t.csv", index=False)
    return schema_of(read_table(tmp_path / "t.csv", target="y"))


def one_piece(made, **changes):
    table = pa.Table.from_pandas(nasty(30, seed=1).assign(**changes), preserve_index=False)
    notes = Notes()
    return made.conform(table, "new.csv", notes), notes


def test_unseen_categories_are_named(made):
    _, notes = one_piece(made, category=["zebra"] * 3 + ["a"] * 27)
    assert list(notes.lines()) == [
        "'category' has values it had not when the model was fitted, in 3 rows: 'zebra'"
    ]


def test_many_unseen_categories_are_counted(made):
    _, notes = one_piece(made, category=[f"z{i}" for i in range(30)])
    assert "in 30 rows" in next(notes.lines())
    assert "'z0', 'z1', 'z2', 'z3', 'z4' and 25 more" in next(notes.lines())


def test_what_is_no_number_is_missing_and_named(made):
    rows, notes = one_piece(
        made, number=["ten", "1e3", "+2", "inf", "-Infinity", "nan", "0x10", "1_000", *["1"] * 22]
    )
    np.testing.assert_array_equal(rows["number"][:8], [np.nan, 1000.0, 2.0, *[np.nan] * 5])
    assert notes.unread["number"] == {"ten": 1, "0x10": 1, "1_000": 1}
    assert notes.infinite["number"] == 2
    assert any(
        "'number' cannot be read in 3 rows, taken as missing" in line for line in notes.lines()
    )
    assert "'number' is infinite in 2 rows, taken as missing" in list(notes.lines())


def test_what_is_no_date_is_missing_and_named(made):
    rows, notes = one_piece(made, date=["1/2/2020", "2020-01-02", "13/1/2020", *["3/4/2019"] * 27])
    assert rows["date"].iloc[0] == pd.Timestamp("2020-01-02")
    assert rows["date"].isna().tolist()[:4] == [False, True, True, False]
    assert notes.unread["date"] == {"2020-01-02": 1, "13/1/2020": 1}


def test_a_number_too_large_is_refused_with_its_column(made):
    with pytest.raises(DataError, match=r"new.csv, column 'number' holds 1e\+300, too large"):
        one_piece(made, number=["1e300"] + ["1"] * 29)


def test_dates_in_a_column_of_numbers_are_refused(made):
    with pytest.raises(DataError, match="column 'number' cannot be read as a number"):
        one_piece(made, number=pd.date_range("2020", periods=30))
    with pytest.raises(DataError, match="column 'date' cannot be read as a date"):
        one_piece(made, date=np.arange(30.0))


def test_typed_columns(made):
    """From a data frame or Parquet: numbers where the audited file had words, and the other way
    round.
    """
    changes = {
        "digits": np.array([2.0, np.nan] * 15),
        "truth": [True, False] * 15,
        "whole": [True] * 30,
    }
    rows, notes = one_piece(made, **changes, iso=pd.date_range("2020", periods=30, tz="UTC"))
    assert rows["digits"].tolist()[:2] == ["2", None]
    assert rows["truth"].tolist()[:2] == ["True", "False"]
    assert rows["whole"].tolist() == [1.0] * 30
    assert rows["iso"].iloc[1] == pd.Timestamp("2020-01-02")
    assert list(notes.lines()) == []


def test_missing_columns_are_named_with_the_nearest(made):
    with pytest.raises(
        DataError, match=r"no column 'whole', which the model reads. Did you mean 'Whole'"
    ):
        made.check("new.csv", ["number", "Whole", *(feature.name for feature in made.features[2:])])
    with pytest.raises(DataError, match=r"new.csv has no column 'number', 'whole', .* and \d more"):
        made.check("new.csv", [])


def test_a_file_without_header_may_leave_out_the_target(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"y": rng.choice(["p", "q"], 60), "a": rng.normal(size=60), "b": rng.normal(size=60)}
    )
    frame.to_csv(tmp_path / "t.csv", index=False, header=False)
    frame[["a", "b"]].to_csv(tmp_path / "new.csv", index=False, header=False)
    made = schema_of(read_table(tmp_path / "t.csv", target=1, header=False))
    columns, _ = drained(tmp_path / "new.csv", header=made.header, names_for=made.names_for)
    assert columns == ("column 2", "column 3")
    with pytest.raises(DataError, match="has 1 columns and no header, but the model's table had 3"):
        made.names_for(1, "new.csv")


@pytest.mark.parametrize(
    ("kind", "words", "values"),
    [
        ("whole", ["1", "1.0", " 2 ", "", "x", "1.5"], [1, 1, 2, None, "x", "1.5"]),
        ("decimal", ["0.50", "1", "x"], ["0.5", "1.0", "x"]),
        ("truth", ["TRUE", "false", "NA", "maybe"], [True, False, None, "maybe"]),
        ("words", [" a", "NA", "b"], ["a", None, "b"]),
    ],
)
def test_labels(kind, words, values):
    read = read_labels(pa.array(words), kind).tolist()
    assert read == values
    assert list(map(type, read)) == list(map(type, values))


def test_labels_of_typed_columns():
    assert read_labels(pa.array([1, 2, None]), "whole").tolist() == [1, 2, None]
    assert read_labels(pa.array([1.0, np.nan]), "whole").tolist() == [1, None]
    assert read_labels(pa.array([True, None]), "truth").tolist() == [True, None]
    np.testing.assert_array_equal(
        read_labels(pa.array(["1.5", "", "x"]), "number"), [1.5, np.nan, np.nan]
    )


# --------------------------------------------------------------------------------------------------


BAD = {
    "empty.csv": (b"  \n", "is empty"),
    "header.csv": (b"a,b\n", "has a header and no rows"),
    "ragged.csv": (b"a,b\n1,2\n\n3,4,5\n", "line 4 has 3 values where the first row has 2"),
    "late.csv": (
        b"a,b\n" + b"1,2\n" * 90_000 + b"1\n",
        "line 90002 has 1 value where the first row has 2",
    ),
    "twice.csv": (b"a,a\n1,2\n", "more than one column called 'a'"),
    "nul.csv": (b"a,b\n" + b"1,2\n" * 90_000 + b"1,\0\n", "has NUL bytes"),
    "zip.csv": (b"PK\x03\x04rest", "zip archive"),
    "pickle.csv": (b"\x80\x04\x95rest", "a pickle, which is never opened"),
    "page.csv": (b"<html><body>", "web page"),
    "torn.csv.gz": (gzip.compress(b"a,b\n" + bytes(range(48, 58)) * 99_999)[:-30], "damaged gzip"),
    "torn.parquet": (b"PAR1 and no more", "damaged Parquet"),
    "named.parquet": (b"a,b\n1,2\n", "not a parquet file"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name, tmp_path):
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        drained(tmp_path / name)
    assert name in str(caught.value)


def test_no_file(tmp_path):
    (tmp_path / "new.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"Did you mean 'new.csv'"):
        open_stream(tmp_path / "now.csv")
    with pytest.raises(DataError, match="is a folder without Parquet files"):
        open_stream(tmp_path)


def test_a_character_cut_by_a_block_and_one_that_is_no_utf_8(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "HEAD", 64)
    monkeypatch.setattr(opening, "BLOCK", 61)
    rows = "".join(f"{i},né{'é' * (i % 5)}\n" for i in range(200))
    for encoding in ("utf-8", "cp1252", "utf-16"):
        (tmp_path / "t.csv").write_bytes(f"a,b\n{rows}".encode(encoding))
        read = pa.concat_tables(drained(tmp_path / "t.csv")[1]).to_pandas()
        assert read["b"].tolist() == [f"né{'é' * (i % 5)}" for i in range(200)], encoding


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n3,4\n")))
    opened = open_stream("-")
    assert opened.name == "standard input"
    assert pa.concat_tables(opened.tables).to_pydict() == {"a": ["1", "3"], "b": ["2", "4"]}


def test_sources_that_are_held_in_memory(tmp_path):
    assert pa.concat_tables(open_stream("iris").tables).num_rows == 150
    assert open_stream(pd.DataFrame({"a": [1, 2]})).columns == ("a",)
    (tmp_path / "t.libsvm").write_text("1 1:0.5 3:2\n-1 2:1\n")
    opened = open_stream(tmp_path / "t.libsvm")
    assert opened.sparse
    assert opened.columns == ("label", "feature 1", "feature 2", "feature 3")
    np.savez(tmp_path / "t.npz", X=np.ones((3, 2)))
    assert open_stream(tmp_path / "t.npz").columns == ("feature 1", "feature 2")


def test_notes_keep_few_names():
    notes = Notes()
    for i in range(3):
        schema._count(notes.unseen, "c", [f"{i}-{j}" for j in range(80)])
    assert len(notes.unseen["c"]) <= schema.MOST_NAMED + 1
    assert sum(notes.unseen["c"].values()) == 240
