"""CSV text from disk: read as Python's csv module reads it, hashed as a few lines of Python
hash it, and fitted.
"""

from __future__ import annotations

import csv
import gzip
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from surelearn.data import pieces
from surelearn.linear.logistic.learner import LogisticRegression
from surelearn.linear.logistic.stream import read_rows

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
TABLE = 1 << 12
TEXT = """age,city,"full, name",income,note
31,Bern,"Ann ""A"" Lee",high,
-4.5e1, Basel ,Bo,low,x y
0,,,high,"7"
1e-3,Zürich,'q',low,3x
"""


def place(token, table=TABLE):
    """FNV-1a of 64 bits, then the high bits of its product with 2⁶⁴/φ."""
    state = 0xCBF29CE484222325
    for byte in token.encode():
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return (state * 0x9E3779B97F4A7C15 % 2**64) >> (64 - table.bit_length() + 1)


def hashed(text, target, categorical=(), separator=","):
    """Rows and labels, cell by cell."""
    lines = list(csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True))
    names, lines = [name.strip() for name in lines[0]], [line for line in lines[1:] if line]
    X = np.zeros((len(lines), TABLE))
    for row, line in enumerate(lines):
        for name, cell in zip(names, map(str.strip, line), strict=True):
            if name == target or not cell:
                continue
            try:
                number = None if name in categorical else float(cell)
            except ValueError:
                number = None
            X[row, place(f"{name}={cell}" if number is None else name)] += (
                1 if number is None else number
            )
    return X, [line[names.index(target)].strip() for line in lines]


def gathered(path, target, **options):
    parts = list(read_rows(path, features=TABLE, target=target, **options))
    return np.vstack([X.toarray() for X, _ in parts]), np.concatenate(
        [labels for _, labels in parts]
    ).tolist()


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n).round(4),
            "colour": rng.choice(["red", "green", "blue, dark"], size=n),
        }
    )
    frame["code"] = rng.integers(3, size=n)
    score = frame.x + 2 * (frame.colour == "red") - 2 * (frame.code == 1)
    frame["y"] = np.where(score + 0.3 * rng.normal(size=n) > 0, "yes", "no")
    return frame


@pytest.mark.parametrize("piece", [1, 10, 33, 1 << 18])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("target", "categorical"), [("income", ()), ("income", ("age", "note")), ("city", ("age",))]
)
def test_cells_are_hashed(tmp_path, piece, ends, target, categorical, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", piece)
    text = TEXT.replace("0,,,", "0,Bern,,") if target == "city" else TEXT
    (tmp_path / "a.csv").write_bytes(("\ufeff" + text + "\n").replace("\n", ends).encode())
    X, labels = gathered(tmp_path / "a.csv", target, categorical=categorical)
    want, names = hashed(text, target, categorical)
    np.testing.assert_allclose(X, want, rtol=1e-15)
    assert labels == names
    assert np.count_nonzero(want) >= 10


def test_tabs_and_labels_that_are_numbers(tmp_path):
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"y\tword\n1\tso, so\n1.0\t\n-2\ta b\n"))
    X, labels = gathered(tmp_path / "a.tsv.gz", "y")
    np.testing.assert_array_equal(
        X, hashed("y\tword\n1\tso, so\n1.0\t\n-2\ta b\n", "y", separator="\t")[0]
    )
    assert labels == [1, 1, -2]
    model = LogisticRegression().fit_file(tmp_path / "a.tsv.gz", features=TABLE, target="y")
    assert model.classes_.tolist() == [-2, 1]


@pytest.mark.parametrize("classes", [None, ["no", "yes"]])
def test_a_file_is_fitted_as_its_rows_in_memory(tmp_path, classes):
    frame = table()
    frame.to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    options = {"features": TABLE, "target": "y", "categorical": ["code"]}
    X, labels = hashed((tmp_path / "a.csv").read_text(), "y", ["code"])
    memory = LogisticRegression(regularization=1e-3, epochs=5, finish=None, random_state=0).fit(
        X, labels
    )
    for name in ("a.csv", "a.csv.gz"):
        model = LogisticRegression(regularization=1e-3, epochs=5, random_state=0)
        model.fit_file(tmp_path / name, classes=classes, **options)
        np.testing.assert_allclose(model.coef_, memory.coef_, atol=1e-10)
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.score(X, labels) > 0.9
        assert model.certificate_.verify()
    ignored = LogisticRegression(regularization=1e-3, epochs=5, random_state=0)
    ignored.fit_file(tmp_path / "a.csv", features=TABLE, target="y")  # a code is no quantity
    assert ignored.score(*gathered(tmp_path / "a.csv", "y")) < model.score(X, labels) - 0.05


@pytest.mark.parametrize("column", ["y", "x"])
def test_a_sorted_file_does_no_harm(tmp_path, column, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 1000)
    frame = table(8000)
    frame.sort_values(column).to_csv(tmp_path / "a.csv", index=False)
    model = LogisticRegression(regularization=1e-3, epochs=3, random_state=0)
    model.fit_file(tmp_path / "a.csv", features=TABLE, target="y", categorical=["code"])
    X, labels = gathered(tmp_path / "a.csv", "y", categorical=["code"])
    memory = LogisticRegression(regularization=1e-3, epochs=3, finish=None, random_state=0).fit(
        X, labels
    )

    def loss(model):
        return -np.mean(
            model.predict_log_proba(X)[np.arange(8000), np.searchsorted(["no", "yes"], labels)]
        )

    assert loss(model) < loss(memory) * 1.03


def test_the_hash_is_the_same_in_every_process(tmp_path):
    table(50).to_csv(tmp_path / "a.csv", index=False)
    code = (
        "from surelearn.linear.logistic.stream import read_rows\n"
        f"X, _ = next(read_rows({str(tmp_path / 'a.csv')!r}, features={TABLE}, target='y'))\n"
        "print(X.indices.tolist())"
    )
    here = next(read_rows(tmp_path / "a.csv", features=TABLE, target="y"))[0].indices.tolist()
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(here)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a,y\n1,0\n1\n", "line 3 has 1 value where the first row has 2"),
        ("a,y\n1,0\n1,0,2\n", "line 3 has 3 values where the first row has 2"),
        ('a,y\n1,0\n"1,0\n', "line 3: a quote is opened and never closed"),
        ("a,y\n1,0\n1e999,1\n", "line 3, column 'a' holds 1e999, too large"),
        ("a,y\n1,0\n1,\n", "line 3 has no label"),
        ("a,b\n1,0\n", "no column 'y'"),
        ("a,a,y\n1,0,0\n", "more than one column called 'a'"),
        ("a,y\n1,0\n2,0.5\n", "continuous"),
        ("a,y\n1,0\n2,0\n", "classes="),
        ("a,y\n", "no rows"),
        ("", "is empty"),
    ],
)
@pytest.mark.parametrize("piece", [3, 1 << 18])
def test_refused_files(tmp_path, text, word, piece, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", piece)
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=word):
        LogisticRegression().fit_file(tmp_path / "a.csv", features=16, target="y")


def test_refused_arguments(tmp_path):
    table(50).to_csv(tmp_path / "a.csv", index=False)
    fit = LogisticRegression().fit_file
    with pytest.raises(ValueError, match="power of two"):
        fit(tmp_path / "a.csv", features=100, target="y")
    with pytest.raises(ValueError, match="no column 'z'"):
        fit(tmp_path / "a.csv", features=16, target="y", categorical=["z"])
    with pytest.raises(ValueError, match="target="):
        fit(tmp_path / "a.csv", features=16, categorical=["code"])
    with pytest.raises(ValueError, match="holds the label 'no'"):
        fit(tmp_path / "a.csv", features=16, target="y", classes=["yes", "maybe"])
    (tmp_path / "n.csv").write_text("a,y\n1,0\n2,1\n3,maybe\n")
    with pytest.raises(ValueError, match="holds the label 'maybe'"):
        fit(tmp_path / "n.csv", features=16, target="y", classes=[0, 1])


@pytest.mark.skipif(not (DATA / "titanic.csv").exists(), reason="the Titanic data are not here")
def test_titanic():
    """Names, tickets, missing values and quotes as they are: the same as cells hashed in Python."""
    options = {"categorical": ["Pclass"]}
    X, labels = gathered(DATA / "titanic.csv", "Survived", **options)
    want, names = hashed((DATA / "titanic.csv").read_text(), "Survived", ["Pclass"])
    np.testing.assert_allclose(X, want, rtol=1e-12)
    assert labels == [float(name) for name in names]


def test_missing_and_infinite_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,a,b\n1,2.5,x\n0,NA,?\n1,nan,N/A\n0,,None\n")
    (rows, _), *_ = read_rows(path, features=16, target="y")
    assert rows.getnnz(axis=1).tolist() == [2, 0, 0, 0]
    path.write_text("y,a\n1,2.5\n0,-Inf\n")
    with pytest.raises(
        ValueError, match=r"^t\.csv, line 3, column 'a' holds an infinite number: correct it"
    ):
        list(read_rows(path, features=16, target="y"))
    (rows, _), *_ = read_rows(path, features=16, target="y", categorical="a")
    assert rows.getnnz(axis=1).tolist() == [1, 1]


def test_files_that_are_not_what_they_seem(tmp_path):
    old, packed = tmp_path / "old.csv", tmp_path / "t.csv.gz"
    old.write_bytes(b"y,a\r1,2\r")
    packed.write_bytes(b"y,a\n1,2\n")
    # line ends of long ago, and text that only a name calls gzip: read, as by the audit
    for path in (old, packed):
        ((rows, labels),) = read_rows(path, features=16, target="y")
        assert (rows.data.tolist(), labels.tolist()) == ([2.0], [1.0])
    packed.write_bytes(gzip.compress(b"y,a\n1,2\n")[:-9])
    with pytest.raises(ValueError, match=r"^t\.csv\.gz is a damaged gzip file"):
        list(read_rows(packed, features=16, target="y"))
    with pytest.raises(ValueError, match="features must be a whole number"):
        list(read_rows(old, features=5.5))
