"""Whoever reads a file reads the same: the audit, `predict`, `fit_file` and EigenPro's streams.

Every file below is read through each entrance that its format has, in small pieces; the values are
the same to the last bit, or the file is refused with the same sentence.
"""

from __future__ import annotations

import gc
import gzip
import io
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from surelearn.data import DataError, hash_rows, opening, pieces, read_table, stream
from surelearn.data.columns import MISSING, type_text
from surelearn.data.formats import load
from surelearn.data.raw import make_frame
from surelearn.data.schema import Feature, Notes, Schema
from surelearn.data.stream import open_stream
from surelearn.kernel.streams import ParquetRows, label_values
from surelearn.linear.logistic.stream import read_rows
from surelearn.prediction import Predictor

TABLE = 1 << 16
# bytes of a piece and of a block, rows of a piece
SIZES = {"small": (40, 64, 3), "large": (1 << 18, 1 << 22, 20_000)}


@pytest.fixture(params=SIZES)
def sizes(request, monkeypatch):
    piece, block, rows = SIZES[request.param]
    monkeypatch.setattr(pieces, "PIECE", piece)
    # a row may not be longer than a block
    monkeypatch.setattr(opening, "BLOCK", max(block, 1 << 10))
    monkeypatch.setattr(stream, "ROWS", rows)


# --------------------------------------------------------------------------------------------------

PLAIN = """age,city,note,y
31,Bern,first,yes
-4.5e1, Basel ,x y,no
0,,last,yes
1e-3,Zürich,3x,no
.5,NA,5.,yes
"""
BREAKS = (
    'age,note,y\r\n1,"two\r\nlines, and ""quotes""",yes\r\n2,"a\nb",no\r\n\r\n3," padded ",yes\r\n'
)
NUMBERS = [
    "123456789.123456789",
    "0.1",
    "1e22",
    "1e23",
    "7450580596923828125e-27",
    "9007199254740993.5",
    "+2.5",
    "1e-320",
]
SPACED = ' x   count "full name"  y\n1.5  2\t"a b"   yes\n NA 3 c  no \n-7 4 "d" yes\n'

DELIMITED = {
    "plain": ("t.csv", PLAIN.encode()),
    "carriage returns and line feeds": ("t.csv", PLAIN.replace("\n", "\r\n").encode()),
    "carriage returns alone": ("t.csv", PLAIN.replace("\n", "\r").encode()),
    "no last line break": ("t.csv", PLAIN.encode().rstrip()),
    "with a mark": ("t.csv", b"\xef\xbb\xbf" + PLAIN.encode()),
    "UTF-16": ("t.csv", PLAIN.encode("utf-16")),
    "UTF-32": ("t.csv", PLAIN.encode("utf-32")),
    "Latin-1": ("t.csv", PLAIN.encode("cp1252")),
    "UTF-8, then Latin-1": (
        "t.csv",
        PLAIN.encode() + "8,Genève,z,no\n".encode("cp1252") + "9,Zürich,z,yes\n".encode(),
    ),
    "gzip": ("t.csv.gz", gzip.compress(PLAIN.encode())),
    "gzip without its ending": ("t.csv", gzip.compress(PLAIN.encode())),
    "an ending without gzip": ("t.csv.gz", PLAIN.encode()),
    "no ending": ("t", PLAIN.encode()),
    "tabs": ("t.tsv", PLAIN.replace(",", "\t").encode()),
    "tabs, called CSV": ("t.csv", PLAIN.replace(",", "\t").encode()),
    "bars": ("t.csv", PLAIN.replace(",", "|").encode()),
    "semicolons, decimal commas": ("t.csv", PLAIN.replace(",", ";").replace(".", ",").encode()),
    "runs of spaces": ("t.data", SPACED.encode()),
    "line breaks in quotes": ("t.csv", BREAKS.encode()),
    "line breaks in quotes, gzip": ("t.csv.gz", gzip.compress(BREAKS.encode())),
    "line breaks in quotes, UTF-16": ("t.csv", BREAKS.encode("utf-16")),
    "text after a quote": ("t.csv", b'a,b,y\n"1"2,"x"y,yes\n3,x"z"",no\n'),
    "quotes after a space": ("t.csv", b'a,b,y\n1, "x",yes\n3, z,no\n'),
    "quotes as characters": ("t.tsv", b'a\tb\ty\n1\t5" pipe\tyes\n2\t"so\tno\n3\tz\tyes\n'),
    "single quotes around words": (
        "t.csv",
        b"'a','b','y'\n1,'it\\'s','yes'\n2,'c d','no'\n?,?,'yes'\n",
    ),
    "single quotes around commas": (
        "t.csv",
        b"'a','b','y'\n1,'it','yes'\n2,'c, d','no'\n?,?,'yes'\n",
    ),
    "single quotes now and then": ("t.csv", b"a,b,y\n1,'it',yes\n2,is,no\n"),
    "blank lines": ("t.csv", b"\n\na,b,y\n\n1,x,yes\n   \n\t\n2,z,no\n\n"),
    "blank cells between tabs": ("t.tsv", b"a\tb\ty\n\t\tyes\n\t \n2\tz\tno\n"),
    "what is missing": (
        "t.csv",
        "\n".join(["a,b,y", *(f"{word},{word},yes" for word in MISSING), "1,none,no"]).encode(),
    ),
    "not a number": ("t.csv", b"a,b,y\nNAN,x,yes\nNaN,z,no\n-nan,x,yes\n2,x,no\n"),
    "numbers": ("t.csv", "\n".join(["a,b,y", *(f"{number},x,yes" for number in NUMBERS)]).encode()),
    "thousands": (
        "t.csv",
        b'a,b,y\n"1,234",x,yes\n"-12,345,678.5",z,no\n"12,34",x,no\n"1,234,56",x,no\n12,x,yes\n',
    ),
    "blanks that are not spaces": (
        "t.csv",
        "a,b,y\n\u00a01,\u00a0x\u00a0,yes\n2,z\t,no\n".encode(),
    ),
    "names in quotes, one empty": ("t.csv", b'"a, b",,"say ""x""",y\n1,2,3,yes\n4,5,6,no\n'),
    "a name over two lines": ("t.csv", b'"a\nb",c,y\n1,2,yes\n4,5,no\n'),
}


def text_of(path):
    """The cells of a file as text, and its decimal point, as `predict` reads them."""
    with open_stream(path) as opened:
        return pa.concat_tables(opened.tables), opened.decimal


def place(token):
    """FNV-1a of 64 bits, then the high bits of its product with 2⁶⁴/φ."""
    state = 0xCBF29CE484222325
    for byte in token.encode():
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return (state * 0x9E3779B97F4A7C15 % 2**64) >> (64 - TABLE.bit_length() + 1)


def hashed(table, decimal, target):
    """Rows as `predict` would read each cell: a number if its schema says so of the column,
    else a word.
    """
    X = np.zeros((table.num_rows, TABLE))
    for name in table.column_names:
        if name == target:
            continue
        for row, cell in enumerate(table[name].to_pylist()):
            schema = Schema(
                (Feature(name, "number"),),
                "y",
                "classification",
                "words",
                None,
                (name,),
                header=True,
            )
            notes = Notes()
            one = pa.table({name: pa.array([cell], pa.large_string())})
            value = float(schema.conform(one, "t", notes, decimal=decimal)[name].iloc[0])
            if notes.unread:
                X[row, place(f"{name}={cell.strip()}")] += 1
            elif not np.isnan(value):
                X[row, place(name)] += value
    return X


def sparse(path, **options):
    parts = list(read_rows(path, features=TABLE, **options))
    return np.vstack([X.toarray() for X, _ in parts]), np.concatenate(
        [labels for _, labels in parts]
    )


@pytest.mark.parametrize("case", DELIMITED)
def test_delimited_text_is_read_alike(case, tmp_path, sizes):
    name, content = DELIMITED[case]
    (tmp_path / name).write_bytes(content)
    whole = load(tmp_path / name, header=True).frame
    text, decimal = text_of(tmp_path / name)
    assert len(whole) >= 2
    assert whole.columns.tolist() == text.column_names
    typed = make_frame(
        text.column_names, [type_text(column, decimal=decimal) for column in text.columns]
    )
    np.testing.assert_array_equal(hash_rows(typed), hash_rows(whole))
    X, labels = sparse(tmp_path / name, target="y")
    np.testing.assert_array_equal(X, hashed(text, decimal, "y"))
    assert labels.tolist() == whole["y"].tolist()


def test_the_cases_hold_what_they_say(tmp_path):
    """Otherwise all entrances could agree on nothing."""
    for case, column, values in (
        ("plain", "age", [31.0, -45.0, 0.0, 1e-3, 0.5]),
        (
            "UTF-8, then Latin-1",
            "city",
            ["Bern", "Basel", None, "Zürich", None, "Genève", "Zürich"],
        ),
        ("line breaks in quotes", "note", ['two\r\nlines, and "quotes"', "a\nb", "padded"]),
        ("single quotes around words", "b", ["it's", "c d", None]),
        ("single quotes around commas", "b", ["it", "c, d", None]),
        ("quotes as characters", "b", ['5" pipe', '"so', "z"]),
        ("text after a quote", "a", [12, 3]),
        ("numbers", "a", [float(number) for number in NUMBERS]),
    ):
        name, content = DELIMITED[case]
        (tmp_path / name).write_bytes(content)
        assert load(tmp_path / name, header=True).frame[column].tolist() == values, case


def test_first_lines_decide_for_all(tmp_path, monkeypatch):
    """A column that is in single quotes in the first 256 kB is so throughout, whole and in
    pieces.
    """
    monkeypatch.setattr(opening, "HEAD", 100)
    rows = [f"{i},'v{i % 3}',{'yes' if i % 2 else 'no'}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *rows, "60,bare,no", "61,'v',yes"]))
    whole = load(tmp_path / "t.csv", header=True).frame
    text, decimal = text_of(tmp_path / "t.csv")
    assert (
        whole["b"].tolist()
        == text["b"].to_pylist()
        == [*(f"v{i % 3}" for i in range(60)), "bare", "v"]
    )
    np.testing.assert_array_equal(
        sparse(tmp_path / "t.csv", target="y")[0], hashed(text, decimal, "y")
    )


GOOD = "a,b,y\n" + "1,x,yes\n2,z,no\n" * 30
REFUSED = {
    "nothing": ("t.csv", b""),
    "blank lines": ("t.csv", b"\n \n\n"),
    "gzip of nothing": ("t.csv.gz", gzip.compress(b"")),
    "names only": ("t.csv", b"a,b,y\n"),
    "a short row": ("t.csv", GOOD.encode() + b"1,x\n" + GOOD.encode()[6:]),
    "a long row": ("t.csv", GOOD.encode() + b"1,x,yes,4\n"),
    "a short row after a quoted line break": ("t.csv", GOOD.encode() + b'1,"x\ny",yes\n1\n'),
    "a long row, gzip": ("t.csv.gz", gzip.compress(GOOD.encode() + b"1,x,yes,4\n")),
    "a short row, UTF-16": ("t.csv", (GOOD + "1,x\n").encode("utf-16")),
    "a short row of spaces": ("t.data", b"a b y\n" + b"1 x yes\n2 z no\n" * 60 + b"3\n"),
    "an open quote": ("t.csv", GOOD.encode() + b'1,"x,yes\n2,z,no\n'),
    "an open quote at the end": ("t.csv", GOOD.encode() + b'1,x,"yes\n'),
    "a name twice": ("t.csv", b"a,a,y\n1,2,3\n4,5,6\n"),
    "NUL": ("t.csv", GOOD.encode() + b"1,\0,yes\n"),
    "binary": ("t.csv", b"\1\2\3,\4\n\5,\6\n" * 99),
    "UTF-16 without its mark": ("t.csv", GOOD.encode("utf-16-le")),
    "UTF-16 cut in half": ("t.csv", GOOD.encode("utf-16")[:-1]),
    "Shift-JIS": ("t.csv", GOOD.replace("x", "ありがとう、うわ。").encode("shift-jis")),
    "a web page": ("t.csv", b"<!DOCTYPE html>\n<html>none</html>"),
    "JSON": ("t.csv", b'[{"a": 1, "y": 2}]\n'),
    "a zip archive": ("t.csv", b"PK\x03\x04 and more"),
    "a pickle": ("t.csv", b"\x80\x04\x95 and more"),
    "half of a gzip file": ("t.csv.gz", gzip.compress(GOOD.encode())[:-12]),
    "text called Parquet": ("t.parquet", GOOD.encode()),
    "too many columns": ("t.csv", ",".join(f"c{i}" for i in range(5001)).encode() + b"\n"),
}


def refusal(call):
    with pytest.raises(DataError) as refused:
        call()
    said = str(refused.value)
    assert "\n" not in said
    assert said[-1] in ".?"
    assert len(said) < 300
    return said


def drained(path):
    with open_stream(path) as opened:
        return list(opened.tables)


@pytest.mark.parametrize("case", REFUSED)
def test_bad_delimited_text_is_refused_alike(case, tmp_path, sizes):
    name, content = REFUSED[case]
    path = tmp_path / name
    path.write_bytes(content)
    said = refusal(lambda: load(path, header=True))
    assert name in said
    assert refusal(lambda: drained(path)) == said
    assert refusal(lambda: sparse(path, target="y")) == said


def test_paths_are_refused_alike(tmp_path):
    (tmp_path / "titanic.csv").write_text(GOOD)
    for path in (tmp_path, tmp_path / "titanik.csv", tmp_path / "none" / "t.csv"):
        said = refusal(lambda path=path: load(path, header=True))
        assert refusal(lambda path=path: drained(path)) == said
        assert refusal(lambda path=path: sparse(path, target="y")) == said
        assert refusal(lambda path=path: ParquetRows(path, "y")) == said


def test_a_bomb_is_refused_by_everyone(tmp_path, monkeypatch):
    monkeypatch.setattr("surelearn.unpacking.SMALL", 2**21)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(GOOD.encode() + GOOD.encode()[6:] * 20_000))
    for call in (
        lambda: load(path, header=True),
        lambda: drained(path),
        lambda: sparse(path, target="y"),
    ):
        assert re.match(
            r"t\.csv\.gz unpacks to .* GiB or more from 1 MiB, which is not read", refusal(call)
        )


def test_what_is_larger_than_memory_is_refused_whole_and_read_in_pieces(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    rows = "".join(f"{x},{'yes' if x > 0 else 'no'}\n" for x in rng.normal(size=30_000))
    (tmp_path / "t.csv").write_text("a,y\n" + rows)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(("a,y\n" + rows).encode(), compresslevel=1))
    for module in ("surelearn.unpacking", "surelearn.data.opening"):
        monkeypatch.setattr(f"{module}.memory", lambda: 2**18)
    monkeypatch.setattr("surelearn.unpacking.SMALL", 2**18)
    for name in ("t.csv", "t.csv.gz"):
        assert refusal(lambda name=name: load(tmp_path / name, header=True)).startswith(name)
        assert sum(table.num_rows for table in drained(tmp_path / name)) == 30_000
        assert (
            sum(len(labels) for _, labels in read_rows(tmp_path / name, features=16, target="y"))
            == 30_000
        )


def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch):
    for module in (opening, pieces):
        monkeypatch.setattr(module, "LONGEST_LINE", 1 << 12)
    monkeypatch.setattr(opening, "BLOCK", 1 << 12)
    monkeypatch.setattr(opening, "HEAD", 1 << 10)
    monkeypatch.setattr(pieces, "PIECE", 1 << 10)
    (tmp_path / "t.csv").write_bytes(GOOD.encode() * 3 + b"1," + b"x" * (1 << 16))
    assert "has a line of more than" in refusal(lambda: drained(tmp_path / "t.csv"))
    assert "has a line of more than" in refusal(lambda: sparse(tmp_path / "t.csv", target="y"))


# --------------------------------------------------------------------------------------------------

LIBSVM = {
    "plain": b"1 1:0.1 3:-2e3\n-1 2:1\n\n# a comment\n+1 3:4 # another\n",
    "carriage returns": b"1 1:0.1 3:2\r\n-1 2:1\r\n",
    "with a mark": b"\xef\xbb\xbf1 1:0.1 3:2\n-1 2:1\n",
    "UTF-16": "1 1:0.1 3:2\n-1 2:1\n".encode("utf-16"),
    "gzip": gzip.compress(b"1 1:0.1 3:2\n-1 2:1\n"),
    "many digits": b"1.5 1:0.1234567890123456789 2:9007199254740993.5\n-1 2:1e-320\n",
    "any order, and twice": b"1 3:1 1:2 3:0.5\n-1 2:1\n",
    "queries": b"1 qid:3 1:0.1 3:2\n-1 qid:4 2:1\n",
    "a label alone": b"1 1:1\n2\n3 2:1",
}


@pytest.mark.parametrize("case", LIBSVM)
def test_libsvm_is_read_alike(case, tmp_path, sizes):
    (tmp_path / "t.libsvm").write_bytes(LIBSVM[case])
    whole = load(tmp_path / "t.libsvm", header=None).frame
    with open_stream(tmp_path / "t.libsvm") as opened:
        assert opened.sparse
        pd.testing.assert_frame_equal(pa.concat_tables(opened.tables).to_pandas(), whole)
    parts = list(read_rows(tmp_path / "t.libsvm", features=3))
    X = np.vstack([rows.toarray() for rows, _ in parts])
    features = whole.drop(columns=["label", *({"qid"} & set(whole.columns))]).to_numpy()
    np.testing.assert_array_equal(X[:, : features.shape[1]], features)
    assert not X[:, features.shape[1] :].any()
    assert np.concatenate([labels for _, labels in parts]).tolist() == whole["label"].tolist()


def test_indices_of_libsvm_are_never_shifted(tmp_path):
    """A file that counts from 0 has a column for it; one without that index in its few rows is
    not read otherwise.
    """
    (tmp_path / "fit.svm").write_text("1 0:5 2:6\n-1 1:7\n")
    (tmp_path / "new.svm").write_text("1 1:7\n-1 2:6\n")
    frame = load(tmp_path / "fit.svm", header=None).frame
    assert frame.columns.tolist() == ["label", "feature 0", "feature 1", "feature 2"]
    assert load(tmp_path / "new.svm", header=None).frame["feature 1"].tolist() == [7, 0]


BAD_LIBSVM = {
    "a word": b"1 1:2\n1 1:three\n",
    "no pair": b"1 1:2\n1 15\n",
    "a label that is a word": b"1 1:2\ncat 1:1\n",
    "not a number": b"1 1:2\n1 1:nan\n",
    "infinite": b"1 1:2\n1 1:inf\n",
    "too large": b"1 1:2\n1 1:1e300\n",
    "a label that is too large": b"1 1:2\n1e300 1:1\n",
    "NUL": b"1 1:2\n1 1:1\0\n",
    "a query after a feature": b"1 1:2\n1 1:1 qid:3\n",
    "nothing": b"\n",
    "comments only": b"# 1\n# 2\n",
}


@pytest.mark.parametrize("case", BAD_LIBSVM)
def test_bad_libsvm_is_refused_alike(case, tmp_path, sizes):
    path = tmp_path / "t.libsvm"
    path.write_bytes(BAD_LIBSVM[case])
    said = refusal(lambda: load(path, header=None))
    assert refusal(lambda: drained(path)) == said
    assert refusal(lambda: list(read_rows(path, features=3))) == said


# --------------------------------------------------------------------------------------------------


def numbers(n=90):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.integers(-9, 9, n),
            "c": rng.normal(size=n).astype("float32"),
        }
    )
    return frame.assign(d=rng.random(n) < 0.5, y=rng.normal(size=n))


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_parquet_is_read_alike(compression, version, tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "ROWS", 7)
    path = tmp_path / "t.parquet"
    frame = numbers()
    frame.to_parquet(
        path,
        row_group_size=40,
        compression=compression,
        data_page_version=version,
        data_page_size=100,
    )
    whole = load(path, header=None).frame
    pd.testing.assert_frame_equal(whole, frame)
    pd.testing.assert_frame_equal(pa.concat_tables(drained(path)).to_pandas(), frame)
    X, Y = ParquetRows(path, "y").take(np.arange(90))
    np.testing.assert_array_equal(X, frame.drop(columns="y").to_numpy(dtype=float))
    np.testing.assert_array_equal(Y[:, 0], frame["y"])
    (tmp_path / "t.parquet.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert sum(table.num_rows for table in drained(tmp_path / "t.parquet.gz")) == 90
    assert ParquetRows(tmp_path / "t.parquet.gz", "y").n == 90


def parquet(frame, **options):
    buffer = io.BytesIO()
    frame.to_parquet(buffer, **options)
    return buffer.getvalue()


def pages_swapped():
    content = bytearray(parquet(numbers(), compression="none"))
    content[4] = 0xFF  # the first header of a page
    return bytes(content)


@pytest.mark.parametrize(
    "content",
    [
        b"PAR1",
        b"PAR1 and no more PAR1",
        parquet(numbers())[:-30],
        parquet(numbers()).replace(b"PAR1", b"PAR1", 1)[:200] + b"PAR1",
        pages_swapped(),
        parquet(
            pd.concat([numbers(), numbers()], axis=1).set_axis(list("abcdefghiy"), axis=1)
        ).replace(b"\x01b", b"\x01a"),
    ],
    ids=["magic", "no footer", "cut", "cut and closed", "a page without sizes", "a name twice"],
)
def test_bad_parquet_is_refused_alike(content, tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    said = refusal(lambda: load(path, header=None))
    assert said.startswith("t.parquet ")
    assert refusal(lambda: drained(path)) == said
    assert refusal(lambda: ParquetRows(path, "y").take(np.arange(3))) == said


def varint(value, length=0):
    """A Thrift number, of a length that may be longer than it needs."""
    value, made = 2 * value, bytearray()
    while value > 127 or len(made) + 1 < length:
        made.append(128 | (value & 127))
        value >>= 7
    return bytes([*made, value])


def lying(frame, **options):
    """A Parquet file whose footer says that it unpacks to almost nothing."""
    content = parquet(frame, compression="zstd", **options)
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:]
    about = pa.parquet.read_metadata(io.BytesIO(content))
    sizes = {
        about.row_group(0).total_byte_size,
        *(about.row_group(0).column(i).total_uncompressed_size for i in range(2)),
    }
    for size in sizes:
        assert varint(size) in footer
        footer = footer.replace(varint(size), varint(9, len(varint(size))))
    return content[:start] + footer


@pytest.mark.parametrize("honest", [True, False])
def test_a_footer_that_lies_about_sizes_is_found_out(honest, tmp_path, monkeypatch):
    """100 MB of text from 10 kB, in 100 rows: pages tell, before one of them is unpacked."""
    frame = pd.DataFrame({"x": ["a" * 2**20 + str(i) for i in range(100)], "y": np.arange(100.0)})
    options = {"use_dictionary": False}
    content = parquet(frame, compression="zstd", **options) if honest else lying(frame, **options)
    about = pa.parquet.read_metadata(io.BytesIO(content))
    assert (about.row_group(0).total_byte_size > 2**26) == honest
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    monkeypatch.setattr("pyarrow.parquet.ParquetFile.iter_batches", None)  # no page is unpacked
    for call in (
        lambda: load(path, header=None),
        lambda: drained(path),
        lambda: label_values(path, "x"),
    ):
        assert re.match(
            r"t\.parquet unpacks to .* GiB or more from 1 MiB, which is not read", refusal(call)
        )


def test_a_footer_that_states_fewer_rows_than_its_pages_is_found_out(tmp_path):
    content = parquet(numbers(5000), compression="none")
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    assert varint(5000) in content[start:]
    path = tmp_path / "t.parquet"
    path.write_bytes(
        content[:start] + content[start:].replace(varint(5000), varint(9, len(varint(5000))))
    )
    assert pa.parquet.read_metadata(path).num_rows == 9
    for call in (
        lambda: load(path, header=None),
        lambda: drained(path),
        lambda: ParquetRows(path, "y").take(np.arange(3)),
    ):
        assert refusal(call) == "t.parquet is a damaged Parquet file: write it again."


@pytest.mark.parametrize("encoding", ["a dictionary", "common beginnings"])
def test_text_that_is_repeated_for_nothing_is_decoded_in_few_rows(encoding, tmp_path, monkeypatch):
    """Hundreds of rows that hold 1 MB each, from 10 kB: as many are decoded at a time as fit, and
    soon no more.
    """
    monkeypatch.setattr("surelearn.data.parquet.AT_ONCE", 2**23)
    frame = pd.DataFrame({"x": ["a" * 2**20] * 400, "y": np.arange(400.0)})
    how = (
        {"use_dictionary": ["x"]}
        if encoding == "a dictionary"
        else {"use_dictionary": False, "column_encoding": {"x": "DELTA_BYTE_ARRAY"}}
    )
    path = tmp_path / "t.parquet"
    frame.to_parquet(path, compression="zstd", **how)
    assert path.stat().st_size < 2**18
    before = pa.total_allocated_bytes()
    seen = []
    monkeypatch.setattr("surelearn.data.parquet.too_much", watched(seen, before))
    for call in (lambda: load(path, header=None), lambda: drained(path)):
        assert "unpacks to" in refusal(call)
    assert max(seen) < 2**28


@pytest.mark.parametrize("stored", [True, False], ids=["stays a dictionary", "is read as text"])
def test_a_dictionary_that_repeats_a_long_text_is_refused_before_memory_goes(
    stored, tmp_path, monkeypatch
):
    """500 MB from 20 kB: the audit, `predict` and streams end in one sentence, whichever type
    the file asks for.
    """
    repeated = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(500, dtype=np.int32)), pa.array(["a" * 2**20])
    )
    table = pa.table({"x": repeated, "b": np.arange(500.0), "y": np.arange(500) % 2})
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(
        table, path, use_dictionary=["x"], compression="zstd", store_schema=stored
    )
    assert path.stat().st_size < 2**16
    assert pa.types.is_dictionary(pa.parquet.read_schema(path).field("x").type) == stored
    schema = Schema(
        (Feature("x", "category", known=("a",)),),
        "y",
        "classification",
        "whole",
        None,
        ("x", "b", "y"),
        True,
    )
    saved = type(
        "Saved", (), {"schema": schema, "model": lambda X: np.zeros(len(X)), "certificate": None}
    )()
    seen = []
    for call in (
        lambda: read_table(path, target="y"),
        lambda: list(Predictor(saved).tables(path)),
        lambda: drained(path),
        lambda: label_values(path, "x"),
    ):
        gc.collect()  # what the last refusal still holds
        monkeypatch.setattr(
            "surelearn.data.parquet.too_much", watched(seen, pa.total_allocated_bytes())
        )
        assert re.match(
            r"t\.parquet unpacks to .* GiB or more from 1 MiB, which is not read", refusal(call)
        )
    assert max(seen) < 2**28


def test_a_dictionary_of_many_words_counts_as_what_is_written_out(tmp_path, monkeypatch):
    """20,000 words of 100 letters, each once: a dictionary of 2 MB is not counted for every
    batch.
    """
    words = [f"{i:0100}" for i in np.random.default_rng(0).permutation(20_000)]
    frame = pd.DataFrame({"x": pd.Categorical(words), "y": np.arange(20_000.0)})
    path = tmp_path / "t.parquet"
    frame.to_parquet(path, compression="zstd")
    assert path.stat().st_size < 2**18
    assert load(path, header=None).frame["x"].tolist() == words
    monkeypatch.setattr("surelearn.data.parquet.AT_ONCE", 2**18)
    monkeypatch.setattr("surelearn.data.parquet.PIECE", 2**18)
    pieces = drained(path)
    # what a piece becomes once it is written out
    assert max(piece.num_rows for piece in pieces) <= 2 * 2**18 / 100
    assert [word for piece in pieces for word in piece["x"].to_pylist()] == words


def watched(seen, before):
    from surelearn.data.opening import too_much

    def check(*arguments, **options):
        seen.append(pa.total_allocated_bytes() - before)
        too_much(*arguments, **options)

    return check


def test_numbers_too_large_are_refused_by_everyone(tmp_path):
    """By column, and of text in pieces by line too; the advice of the audit is longer."""
    frame = numbers().assign(a=[1.0] * 89 + [-1e300])
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    said = "column 'a' holds -1e+300, too large to compute with: correct it"
    schema = Schema(
        (Feature("a", "number"),), "y", "regression", "number", None, tuple("abcdy"), header=True
    )
    for name in ("t.parquet", "t.csv"):
        assert f"{name}, {said}" in refusal(
            lambda name=name: read_table(tmp_path / name, target="y")
        )
        table = pa.concat_tables(drained(tmp_path / name))
        assert f"{name}, {said}" in refusal(
            lambda name=name, table=table: schema.conform(table, name, Notes())
        )
    assert (
        refusal(lambda: ParquetRows(tmp_path / "t.parquet", "y").take(np.arange(90)))
        == f"t.parquet, {said}."
    )
    assert refusal(lambda: sparse(tmp_path / "t.csv", target="d")) == f"t.csv, line 91, {said}."


@pytest.mark.parametrize("kind", ["t.csv", "t.libsvm", "t.jsonl", "t.npz"])
def test_another_format_than_the_needed_one_is_named(kind, tmp_path):
    content = {
        "t.csv": GOOD.encode(),
        "t.libsvm": b"1 1:2\n",
        "t.jsonl": b'{"a": 1}\n',
        "t.npz": b"PK\3\4",
    }[kind]
    (tmp_path / kind).write_bytes(content)
    assert re.match(
        rf"{kind} is .*: Parquet is needed here", refusal(lambda: ParquetRows(tmp_path / kind, "y"))
    )
    if kind != "t.csv":
        said = refusal(lambda: sparse(tmp_path / kind, target="y"))
        assert re.match(rf"{kind} is .*: delimited text is needed here", said)
