"""Malformed files, for the tests of reading and of the command line."""

import gzip
import io
import zipfile

import numpy as np
import pandas as pd

ROWS = [f"{i},{i * 7 % 13}.5,{'yes' if i * 5 % 3 else 'no'}" for i in range(40)]
GOOD = "\n".join(["id,x,y", *ROWS]) + "\n"


def with_row(number, row):
    """The good table with line ``number`` (1 is the header) replaced."""
    lines = GOOD.splitlines()
    lines[number - 1] = row
    return "\n".join(lines) + "\n"


def columns(**values):
    return pd.DataFrame({"x": [i * 7 % 13 for i in range(40)], "y": ["a", "b"] * 20, **values})


def zipped(name="inside.csv"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, GOOD)
    return buffer.getvalue()


def parquet(frame):
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


LIBSVM = "\n".join(f"{i % 2} 1:{i} 3:{i * i % 7}" for i in range(40)) + "\n"
JUNK = bytes(i * i * 7 % 256 for i in range(5000))
X40, Y40 = np.arange(80.0).reshape(40, 2), np.arange(40) % 2

# file name, content, options, words that the sentence must have
FILES = {
    "empty": ("t.csv", b"", {}, "t.csv is empty"),
    "blank lines only": ("t.csv", b"\n\n  \n", {}, "is empty"),
    "header only": ("t.csv", "id,x,y\n", {}, "no rows"),
    "one column": ("t.csv", "y\n" + "a\nb\n" * 20, {}, "one column"),
    "sentences": ("t.csv", "x y\n" + "1 a\n2 b c\n" * 20, {}, "one column"),
    "binary junk": ("t.csv", JUNK, {}, "NUL bytes"),
    "binary junk without NUL": ("t.csv", JUNK.replace(b"\0", b"\1"), {}, "binary"),
    "NUL byte in a value": ("t.csv", with_row(5, "4,\0,yes"), {}, "NUL bytes"),
    "UTF-16 without its mark": ("t.csv", GOOD.encode("utf-16-le"), {}, "UTF-16 without its mark"),
    "UTF-16 cut in half": ("t.csv", GOOD.encode("utf-16")[:-1], {}, "encoding"),
    "Shift-JIS": (
        "t.csv",
        GOOD.replace("no", "ありがとう、うわ。").encode("shift-jis"),
        {},
        "encoding",
    ),
    "no target": ("t.csv", GOOD, {"target": None}, "--target COLUMN"),
    "no target lists columns": ("t.csv", GOOD, {"target": None}, "'id', 'x' and 'y'"),
    "wrong target": (
        "titanic.csv",
        "Id,Survived\n1,2\n",
        {"target": "Survive"},
        "Did you mean 'Survived'?",
    ),
    "target in other case": ("t.csv", GOOD, {"target": "Y"}, "Did you mean 'y'?"),
    "target like nothing": ("t.csv", GOOD, {"target": "salary"}, "columns are 'id', 'x' and 'y'"),
    "position past the end": ("t.csv", GOOD, {"target": 4}, "columns 1 to 3"),
    "position zero": ("t.csv", GOOD, {"target": 0}, "--target 0"),
    "negative position past the end": ("t.csv", GOOD, {"target": "-4"}, "columns 1 to 3"),
    "one class": ("t.csv", GOOD.replace("no", "yes"), {}, "only one value, 'yes'"),
    "one amount": (
        "t.csv",
        GOOD.replace("no", "1.5").replace("yes", "1.5"),
        {"task": "regression"},
        "only one value",
    ),
    "target all missing": (
        "t.csv",
        GOOD.replace("no", "NA").replace("yes", "?"),
        {},
        "'y' has no values",
    ),
    "target all infinite": (
        "t.csv",
        GOOD.replace("no", "inf").replace("yes", "-inf"),
        {},
        "'y' has no values",
    ),
    "target is a date": (
        "t.parquet",
        parquet(columns(y=pd.date_range("2020-01-01", periods=40))),
        {},
        "holds dates",
    ),
    "a class for every row": (
        "t.csv",
        GOOD,
        {"target": "id", "task": "classification"},
        "40 classes in 40 rows",
    ),
    "words for regression": ("t.csv", GOOD, {"task": "regression"}, "regression needs numbers"),
    "unknown task": ("t.csv", GOOD, {"task": "cluster"}, "--task is 'cluster'"),
    "row too long": (
        "t.csv",
        with_row(7, "5,1.5,yes,extra"),
        {},
        "line 7 has 4 values where the first row has 3",
    ),
    "row too short": ("t.csv", with_row(9, "7,1.5"), {}, "line 9 has 2 values"),
    "row of one value": ("t.csv", with_row(11, "seven"), {}, "line 11 has 1 value where"),
    "last row cut": ("t.csv", GOOD + "40,1", {}, "line 42 has 2 values"),
    "unquoted line break": ("t.csv", with_row(6, "4,1\n.5,yes"), {}, "line 6 has 2 values"),
    "ragged after a quoted line break": (
        "t.csv",
        with_row(4, '2,"1\n.5",yes\n3,4'),
        {},
        "line 6 has 2 values",
    ),
    "unclosed quote": ("t.csv", with_row(8, '6,"1.5,yes'), {}, "line 8: a quote is opened"),
    "unclosed quote in the header": (
        "t.csv",
        with_row(1, 'id,"x,y'),
        {},
        "line 1: a quote is opened",
    ),
    "ragged TSV": ("t.tsv", with_row(7, "5,1.5").replace(",", "\t"), {}, "line 7 has 2 values"),
    "ragged gzip": (
        "t.csv.gz",
        gzip.compress(with_row(7, "5,1.5").encode()),
        {},
        "line 7 has 2 values",
    ),
    "duplicate names": ("t.csv", with_row(1, "x,x,y"), {}, "more than one column called 'x'"),
    "target twice": ("t.csv", with_row(1, "x,y,y"), {}, "more than one column called 'y'"),
    "duplicate after stripping": (
        "t.csv",
        with_row(1, "x, x ,y"),
        {},
        "more than one column called 'x'",
    ),
    "1e308 in a feature": ("t.csv", with_row(5, "3,1e308,yes"), {}, "'x' holds 1e+308"),
    "-1e308 in a feature": ("t.csv", with_row(5, "3,-1e308,yes"), {}, "'x' holds -1e+308"),
    "overflow in a feature": ("t.csv", with_row(5, "3,1e999,yes"), {}, "'x' holds 1.798e+308"),
    "1e308 in the target": (
        "t.csv",
        with_row(5, "3,1e308,yes"),
        {"target": "x"},
        "'x' holds 1e+308",
    ),
    "too few rows": ("t.csv", "\n".join(GOOD.splitlines()[:15]), {}, "14 usable rows: at least 20"),
    "too few rows with a target": (
        "t.csv",
        GOOD.replace("no", "").replace("yes", "", 10),
        {},
        "usable rows",
    ),
    "no usable features": ("t.csv", GOOD, {"drop": ["x"]}, "no usable feature columns"),
    "only feature is missing": (
        "t.csv",
        "x,y\n" + "NA,a\n?,b\n" * 20,
        {},
        "no usable feature columns",
    ),
    "only feature is constant": (
        "t.csv",
        "x,y\n" + "1,a\n1,b\n" * 20,
        {},
        "no usable feature columns",
    ),
    "drop an unknown column": (
        "t.csv",
        GOOD,
        {"drop": ["idd"]},
        "no column 'idd'. Did you mean 'id'",
    ),
    "drop the target": ("t.csv", GOOD, {"drop": ["y"]}, "'y' is named as target and as dropped"),
    "unknown group": ("t.csv", GOOD, {"group": "patient"}, "no column 'patient'"),
    "group is the target": ("t.csv", GOOD, {"group": "y"}, "'y' is named as target and as group"),
    "time is the target": ("t.csv", GOOD, {"time": "y"}, "'y' is named as target and as time"),
    "unknown time": ("t.csv", GOOD, {"time": "when"}, "no column 'when'"),
    "time is words": (
        "t.csv",
        "x,w,y\n" + "1,red,a\n2,blue,b\n3,red,a\n" * 20,
        {"time": "w"},
        "neither dates nor numbers",
    ),
    "time has gaps": ("t.csv", with_row(5, "3,,yes"), {"time": "x"}, "'x' has 1 missing values"),
    "group has gaps": (
        "t.csv",
        with_row(5, ",1.5,yes"),
        {"group": "id"},
        "'id' has 1 missing values",
    ),
    "one group": ("t.csv", "g,x,y\n" + "1,2,a\n1,3,b\n" * 20, {"group": "g"}, "'g' has one value"),
    "too many columns": (
        "t.csv",
        ",".join(f"c{i}" for i in range(5001)) + "\n",
        {"target": 1},
        "5,001 columns",
    ),
    "zip called CSV": ("t.csv", zipped(), {}, "a zip archive"),
    "zip called Parquet": ("t.parquet", zipped(), {}, "a zip archive"),
    "Excel called CSV": ("t.csv", zipped("xl/workbook.xml"), {}, "Excel"),
    "old Excel": ("t.csv", b"\xd0\xcf\x11\xe0" + JUNK, {}, "an old Excel workbook"),
    "PDF called CSV": ("t.csv", b"%PDF-1.7\n" + JUNK, {}, "a PDF"),
    "PDF called Parquet": ("t.parquet", b"%PDF-1.7\n" + JUNK, {}, "a PDF"),
    "pickle": ("t.csv", b"\x80\x04\x95" + JUNK, {}, "a pickle"),
    "image": ("t.csv", b"\x89PNG\r\n" + JUNK, {}, "an image"),
    "SQLite": ("t.csv", b"SQLite format 3\0" + JUNK, {}, "SQLite"),
    "bzip2": ("t.csv", b"BZh9" + JUNK, {}, "bzip2"),
    "web page": ("t.csv", "<!DOCTYPE html>\n<html>Not found</html>\n", {}, "a web page"),
    "JSON": ("t.csv", '[{"x": 1, "y": "a"}]\n', {}, "JSON"),
    "damaged gzip": ("t.csv.gz", gzip.compress(GOOD.encode())[:-20], {}, "damaged gzip"),
    "gzip with a wrong byte": (
        "t.csv.gz",
        gzip.compress(GOOD.encode())[:30] + b"\xff" * 60,
        {},
        "damaged gzip",
    ),
    "gzip of nothing": ("t.csv.gz", gzip.compress(b""), {}, "is empty"),
    "text called Parquet": ("t.parquet", GOOD, {}, "not a parquet file"),
    "damaged Parquet": ("t.parquet", parquet(columns())[:-30], {}, "damaged Parquet"),
    "Parquet magic only": ("t.parquet", b"PAR1", {}, "damaged Parquet"),
    "Parquet without rows": ("t.parquet", parquet(columns()[:0]), {}, "is empty"),
    "Parquet without columns": ("t.parquet", parquet(pd.DataFrame(index=range(5))), {}, "is empty"),
    "Parquet of one column": ("t.parquet", parquet(columns()[["y"]]), {}, "one column, 'y'"),
    "Parquet with broken text": (
        "t.parquet",
        parquet(columns()).replace(b"b", b"\xff"),
        {},
        "damaged Parquet",
    ),
    "Parquet with lists": (
        "t.parquet",
        parquet(columns(z=[[1, 2]] * 40)),
        {},
        "column 'z' holds list",
    ),
    "Parquet with bytes": (
        "t.parquet",
        parquet(columns(z=[b"\0"] * 40)),
        {},
        "column 'z' holds binary",
    ),
    "npz without arrays": ("t.npz", npz(a=X40, b=X40), {"target": None}, "'a' and 'b'"),
    "npz without a target": ("t.npz", npz(a=X40, b=Y40), {"target": None}, "pass --target"),
    "npz of parts that differ": (
        "t.npz",
        npz(x_train=X40, x_test=X40[:, :1], y_train=Y40, y_test=Y40),
        {"target": None},
        "the parts of 'x'",
    ),
    "npz of images with NaN": (
        "t.npz",
        npz(X=np.full((40, 3, 3), np.nan), y=Y40),
        {"target": None},
        "40 of 40 images hold NaN",
    ),
    "npz of large images": (
        "t.npz",
        npz(X=np.zeros((40, 99, 99), np.uint8), y=Y40),
        {"target": None},
        "make them smaller first, for example 64 × 64",
    ),
    "npz of images without pixels": (
        "t.npz",
        npz(X=np.zeros((40, 0, 9)), y=Y40),
        {"target": None},
        "is empty",
    ),
    "npz with objects": (
        "t.npz",
        npz(X=X40, y=np.array([{}] * 40)),
        {"target": None},
        "never opened",
    ),
    "npz of other lengths": (
        "t.npz",
        npz(X=X40, y=Y40[:30]),
        {"target": None},
        "one target per row",
    ),
    "npz with a square target": (
        "t.npz",
        npz(X=X40, y=X40),
        {"target": None},
        "one target per row",
    ),
    "npz of complex numbers": ("t.npz", npz(X=X40 * 1j, y=Y40), {"target": None}, "complex128"),
    "npz of a number": ("t.npz", npz(X=np.array(3.0), y=Y40), {"target": None}, "shape ()"),
    "npz without rows": ("t.npz", npz(X=X40[:0], y=Y40[:0]), {"target": None}, "is empty"),
    "damaged npz": ("t.npz", npz(X=X40, y=Y40)[:400], {"target": None}, "is damaged"),
    "text called npz": ("t.npz", GOOD, {"target": None}, "not a npz file"),
    "LIBSVM bad token": (
        "t.libsvm",
        LIBSVM.replace("1:3 ", "1:three ", 1),
        {"target": None},
        "line 4: '1:three'",
    ),
    "LIBSVM bad pair": (
        "t.svm",
        LIBSVM.replace("1:5 ", "15 ", 1),
        {"target": None},
        "line 6: '15'",
    ),
    "LIBSVM bad label": ("t.libsvm", "cat " + LIBSVM, {"target": None}, "line 1: 'cat'"),
    "LIBSVM bad token by content": (
        "t.txt",
        LIBSVM.replace("1:9 ", "x:9 ", 1),
        {"target": None},
        "line 10: 'x:9'",
    ),
    "LIBSVM with a lone qid": (
        "t.libsvm",
        LIBSVM.replace(" 1:7 ", " qid:3 1:7 ", 1),
        {"target": None},
        "qid: on some",
    ),
    "LIBSVM too wide": ("t.libsvm", LIBSVM + "1 70000:1\n", {"target": None}, "70,000 columns"),
}
