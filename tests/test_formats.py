"""The same table in every format: read alike, whole and in pieces, and refused in one sentence
where it is damaged.
"""

import gzip
import io
import runpy
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from surelearn.data import DataError, read_table
from surelearn.data.delimited import sniff
from surelearn.data.formats import load
from surelearn.data.schema import Schema
from surelearn.data.stream import open_stream
from surelearn.prediction import Predictor

workbook = runpy.run_path(str(Path(__file__).parent / "workbooks.py"))["workbook"]


def table(n=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=n).round(3), "count": rng.integers(0, 9, n)})
    frame["kind"] = rng.choice(["red wine", "port"], n)
    frame["y"] = np.where(frame["x"] + 0.1 * rng.normal(size=n) > 0, "yes", "no")
    frame.loc[[3, 7], "x"] = np.nan
    return frame


def arff(frame, quote="'"):
    head = "% made here\n@RELATION wines\n@attribute x NUMERIC\n@ATTRIBUTE count integer\n"
    head += "@attribute kind {'red wine',port}\n@attribute 'y' {yes,no}\n\n@DATA\n"
    known = frame.astype(object).where(frame.notna(), "?")
    rows = [
        f"{x}, {count}, {quote}{kind}{quote},{y}"
        for x, count, kind, y in known.itertuples(index=False)
    ]
    return (head + "\n".join(["% first", *rows]) + "\n").encode()


def feather(frame, stream=False):
    sink, made = io.BytesIO(), pa.Table.from_pandas(frame)
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(sink, made.schema) as writer:
        writer.write_table(made, max_chunksize=25)
    return sink.getvalue()


def spaced(frame):
    rows = [
        f' {"NA" if x != x else x}  {c}\t"{k}"   {y} '
        for x, c, k, y in frame.itertuples(index=False)
    ]
    return "\n".join(["x   count kind  y", *rows]).encode()


def quoted(frame):
    rows = [
        f"{'?' if x != x else x},{c},'{k}','{y}'" for x, c, k, y in frame.itertuples(index=False)
    ]
    return "\n".join(["'x','count','kind','y'", *rows]).encode()


def cells(frame):
    return [list(frame.columns), *frame.astype(object).to_numpy().tolist()]


def excel(frame):
    pytest.importorskip("python_calamine")
    return workbook([], cells(frame))


FORMATS = {
    "t.jsonl": lambda frame: frame.to_json(orient="records", lines=True).encode(),
    "t.ndjson.gz": lambda frame: gzip.compress(
        frame.to_json(orient="records", lines=True).encode()
    ),
    "t.json": lambda frame: frame.to_json(orient="records", lines=True).encode(),
    "t.feather": feather,
    "t.arrow": lambda frame: feather(frame, stream=True),
    "t.feather.gz": lambda frame: gzip.compress(feather(frame)),
    "t.arff": arff,
    "t.txt": lambda frame: arff(frame, '"'),
    "t.data": spaced,
    "spaced.csv.gz": lambda frame: gzip.compress(spaced(frame)),
    "quoted.csv": quoted,
    "t.xlsx": excel,
    "called.csv": excel,
}


@pytest.fixture(params=FORMATS)
def file(request, tmp_path):
    (tmp_path / request.param).write_bytes(FORMATS[request.param](table()))
    return tmp_path / request.param


def test_every_format_is_the_same_table(file):
    made, plain = read_table(file, target="y"), read_table(table(), target="y")
    assert list(made.frame.columns) == ["x", "count", "kind", "y"]
    assert [column.kind for column in made.columns] == [column.kind for column in plain.columns]
    np.testing.assert_array_equal(made.row_hashes, plain.row_hashes)


class Nothing:
    """A model that says what it was given."""

    classes_ = np.array(["no", "yes"])

    def predict(self, X):
        return np.where(X["x"].fillna(1) > 0, "yes", "no")


def test_every_format_is_predicted(file):
    plain = read_table(table(), target="y")
    schema = Schema.of(plain, ["x", "count", "kind"], np.arange(60))
    saved = type("Saved", (), {"schema": schema, "model": Nothing(), "certificate": None})()
    predictor = Predictor(saved)
    made = pa.concat_tables(predictor.tables(file))
    assert made.num_rows == 60
    assert made["prediction"].to_pylist() == Nothing().predict(plain.X).tolist()
    assert predictor.notes.unseen == {}
    assert predictor.notes.unread == {}


def test_pieces_of_a_spaced_file_are_cut_between_lines(tmp_path, monkeypatch):
    monkeypatch.setattr("surelearn.data.opening.HEAD", 300)
    (tmp_path / "t.data").write_bytes(spaced(table()))
    with open_stream(tmp_path / "t.data") as stream:
        made = pa.concat_tables(stream.tables)
    assert made["kind"].to_pylist() == table()["kind"].tolist()


@pytest.mark.parametrize(
    ("text", "delimiter", "width"),
    [
        ("a b\n1 2\n3 4\n", " ", 2),
        ("New York\t5\nLos Angeles\t6\n", "\t", 2),  # single spaces are part of words
        ("a,b\nx y,1\nz w,2\n", ",", 2),
        ('18.0   8\t"a b"\n15.0   4\t"c d"\n', " ", 3),
        ("1.2\t\t3.4\t5\n1.1\t2.2\t7\n", " ", 3),  # tabs in runs, as some tables have them
        ("a sentence\nof several words\n", ",", 1),
        ("x,y\n'a, b',1\n'c, d, e',2\n", ",", 2),
    ],
)
def test_what_separates_values(text, delimiter, width):
    assert sniff(text.encode()) == (delimiter, width)


def test_quotes_are_taken_off_only_throughout_a_column(tmp_path):
    rows = [f"'v{i % 3}','{i}',{'tis' if i % 2 else 'it'}" for i in range(40)]
    rows[5] = "?,'5','x'"
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c", *rows]) + "\n")
    frame = load(tmp_path / "t.csv", header=None).frame
    assert frame["a"].tolist()[:6] == ["v0", "v1", "v2", "v0", "v1", None]
    assert frame["b"].tolist() == list(range(40))
    assert frame["c"].tolist()[4:6] == ["it", "'x'"]


def test_nominal_attributes_are_categories_even_as_numbers(tmp_path):
    text = (
        b"@relation r\n@attribute k {1,2,3}\n@attribute 'd \\'e' real\n@attribute y {a,b}\n@data\n"
    )
    text += b"".join(
        b"%d,%d.5,%s\n" % (1 + i % 3, i * 7 % 11, b"ab"[i % 2 : i % 2 + 1]) for i in range(40)
    )
    (tmp_path / "t.arff").write_bytes(text)
    made = read_table(tmp_path / "t.arff", target=-1)
    assert {column.name: column.kind for column in made.columns} == {
        "k": "category",
        "d 'e": "number",
        "y": "target",
    }


def test_sheets_that_were_not_read_are_named(tmp_path):
    pytest.importorskip("python_calamine")
    (tmp_path / "t.xlsx").write_bytes(workbook(cells(table()), [["other"], [1.0]]))
    (found,) = [
        finding
        for finding in read_table(tmp_path / "t.xlsx", target="y").findings
        if finding.code == "SL130"
    ]
    assert "'Sheet1' was read, not 'Sheet2'" in found.text


def test_a_sheet_without_names(tmp_path):
    pytest.importorskip("python_calamine")
    (tmp_path / "t.xlsx").write_bytes(workbook(cells(table())[1:]))
    with pytest.raises(DataError, match="first line looks like data"):
        read_table(tmp_path / "t.xlsx", target=-1)
    assert len(read_table(tmp_path / "t.xlsx", target=-1, header=False).frame) == 60


def test_without_its_library_a_workbook_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    (tmp_path / "t.xlsx").write_bytes(workbook(cells(table())))
    with pytest.raises(DataError, match=r"pip install 'surelearn\[excel\]'"):
        read_table(tmp_path / "t.xlsx", target="y")


ROW = '{"x": 1, "y": "a"}\n'
ARFF = "@relation r\n@attribute x numeric\n@attribute y {a,b}\n@data\n"
DAMAGED = {
    "a list in a row": ("t.jsonl", ROW + '{"x": [1], "y": "a"}\n', "line 2, 'x' holds a list"),
    "an object in a row": ("t.jsonl", ROW + '{"x": {}, "y": "a"}\n', "line 2, 'x' holds an object"),
    "a line of another kind": ("t.jsonl", ROW + "[1, 2]\n", "line 2 is not an object"),
    "no JSON": ("t.jsonl", ROW + "{x: 1}\n", "line 2 is not JSON"),
    "a name twice": ("t.jsonl", ROW + '{"x": 1, "x": 2}\n', "names 'x' twice"),
    "deep nesting": ("t.jsonl", ROW + '{"x":' * 90_000 + "\n", "nested more than"),
    "a long line": ("t.jsonl", ROW + '{"x": "' + "a" * (1 << 20) + '"}\n', "line 2 is longer than"),
    "a number too large": ("t.jsonl", ROW + '{"x": 1e999}\n', "too large"),
    "too many names": (
        "t.jsonl",
        "".join(f'{{"x{i}": 1}}\n' for i in range(5001)),
        "5,001 columns",
    ),
    "JSON in one piece": ("t.json", '[{"x": 1, "y": "a"}]', "save it as JSON lines"),
    "sparse ARFF": ("t.arff", ARFF + "{0 1, 1 a}\n", "sparse ARFF"),
    "ARFF without data": ("t.arff", ARFF.replace("@data", ""), "without a line @data"),
    "ARFF without rows": ("t.arff", ARFF, "no rows"),
    "a relational attribute": (
        "t.arff",
        ARFF.replace("numeric", "relational"),
        "'x' is of type 'relational'",
    ),
    "an attribute without a type": (
        "t.arff",
        ARFF.replace("x numeric", "x"),
        "line 2: '@attribute x' is no attribute",
    ),
    "a ragged ARFF row": (
        "t.arff",
        ARFF + "1,a\n2,b,c\n",
        "line 6 has 3 values where there are 2 attributes",
    ),
    "a field too long": ("t.arff", ARFF + "1,'" + "a" * 140_000 + "'\n", "cannot be cut"),
    "text called Feather": ("t.feather", "x,y\n1,2\n", "not a feather file"),
    "damaged Feather": ("t.feather", b"ARROW1\0\0" + b"\7" * 200, "damaged Feather"),
    "a damaged stream": ("t.arrow", b"\xff\xff\xff\xff" + b"\7" * 200, "damaged Feather"),
    "text called Excel": ("t.xlsx", "x,y\n1,2\n", "not a xlsx file"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_what_cannot_be_read_is_one_sentence(case, tmp_path):
    name, body, said = DAMAGED[case]
    (tmp_path / name).write_bytes(body.encode() if isinstance(body, str) else body)
    with pytest.raises(DataError) as refused:
        read_table(tmp_path / name, target="y")
    assert said in str(refused.value)
    assert len(str(refused.value)) < 300
    assert name in str(refused.value)


def test_a_workbook_that_unpacks_to_too_much_is_refused_before_it_is(tmp_path, monkeypatch):
    pytest.importorskip("python_calamine")
    content = workbook(cells(table()))
    for part in zipfile.ZipFile(io.BytesIO(content)).infolist():  # sizes that are not true
        content = content.replace(part.file_size.to_bytes(4, "little"), b"\1\0\0\0")
    (tmp_path / "t.xlsx").write_bytes(content)
    monkeypatch.setattr("surelearn.unpacking.SMALL", 1000)
    monkeypatch.setattr("surelearn.unpacking.RATIO", 1)
    with pytest.raises(DataError, match=r"t.xlsx unpacks to .* which is not read"):
        read_table(tmp_path / "t.xlsx", target="y")


def test_a_damaged_workbook_is_a_sentence(tmp_path):
    pytest.importorskip("python_calamine")
    content, broken = workbook(cells(table())), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as whole, zipfile.ZipFile(broken, "w") as archive:
        for name in whole.namelist():
            archive.writestr(name, b"<x" if "worksheets" in name else whole.read(name))
    for damaged in (content[:-30], broken.getvalue()):  # the archive, and a sheet inside it
        (tmp_path / "t.xlsx").write_bytes(damaged)
        with pytest.raises(DataError, match="damaged or protected Excel"):
            read_table(tmp_path / "t.xlsx", target="y")
