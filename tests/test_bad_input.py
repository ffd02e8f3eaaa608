"""Every malformed input gives one sentence that says what is wrong and what to do, and leaves
no file behind.
"""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from surelearn.cli import main
from surelearn.data import DataError, read_table
from surelearn.fingerprint import fingerprint_rows
from surelearn.report.drawing import clean

MALFORMED = runpy.run_path(str(Path(__file__).with_name("malformed.py")))
FILES, GOOD, LIBSVM, columns = (MALFORMED[name] for name in ("FILES", "GOOD", "LIBSVM", "columns"))


# refused before the table is read
CLICKS = {"unknown task": "'cluster' is not one of 'classification', 'regression'"}


@pytest.mark.parametrize("case", FILES)
def test_a_malformed_file_gives_one_sentence(case, tmp_path, monkeypatch):
    """In Python, and from the command, which prints nothing else."""
    name, content, options, words = FILES[case]
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    monkeypatch.chdir(tmp_path)
    assert words in refusal(tmp_path / name, **{"target": "y", **options})
    asked = ["audit", name, *as_words(options), "--jobs", "1", "--out", "out"]
    result = CliRunner(catch_exceptions=False).invoke(main, asked)
    assert (result.exit_code, result.stdout) == (2, "")
    (sentence,) = (line for line in result.stderr.splitlines() if line.strip())
    assert CLICKS.get(case, words) in sentence
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def as_words(options):
    for name, value in {"target": "y", **options}.items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                yield from (f"--{name}", str(item))


def refusal(source, **options):
    with pytest.raises(DataError) as caught:  # a warning would be another exception
        read_table(source, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message[-1] in ".?"
    assert len(message) < 300
    assert message.isprintable()
    assert "Traceback" not in message
    assert "pyarrow" not in message
    return message


def test_there_are_many():
    assert len(FILES) >= 60


def test_the_good_table_is_accepted(tmp_path):
    """Otherwise every case above could fail for another reason."""
    path = tmp_path / "t.csv"
    path.write_text(GOOD)
    assert len(read_table(path, target="y").X) == 40
    path = tmp_path / "t.libsvm"
    path.write_text(LIBSVM)
    assert read_table(path).frame.shape == (40, 4)


def test_a_missing_file_offers_its_neighbours(tmp_path):
    (tmp_path / "titanic.csv").write_text(GOOD)
    assert "Did you mean 'titanic.csv'?" in refusal(tmp_path / "titanik.csv", target="y")
    assert "does not exist: check" in refusal(tmp_path / "other.parquet", target="y")
    assert "nor does its directory" in refusal(tmp_path / "nowhere" / "t.csv", target="y")


def test_a_word_that_is_neither_file_nor_built_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = refusal("boston")
    assert "neither a file" in message
    assert "breast_cancer, iris, wine" in message
    assert "Did you mean 'iris'?" in refusal("irs")


def test_a_directory(tmp_path):
    assert "is a folder without Parquet files (it is empty)" in refusal(tmp_path, target="y")


def test_a_name_with_a_nul_byte():
    assert "cannot be read" in refusal("t\0.csv", target="y")


def test_no_permission(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(GOOD)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read every file")
    assert "no permission" in refusal(path, target="y")


def test_no_permission_whoever_runs_it(tmp_path, monkeypatch):
    def refuse(_):
        raise PermissionError

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    assert "no permission" in refusal(tmp_path / "t.csv", target="y")


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (columns()[:0], "is empty"),
        (columns(z=[1j] * 40), "'z' holds complex numbers"),
        (columns(z=[[1]] * 40), "'z' holds lists"),
        (columns(z=[1e300] * 40), "'z' holds 1e+300"),
        (pd.concat([columns(), columns()], axis=1), "more than one column called 'x' and 'y'"),
        (columns().rename(columns={"y": "Y"}), "Did you mean 'Y'?"),
        (np.zeros((40, 2)), "type ndarray cannot be read"),
        ([1, 2, 3], "type list cannot be read"),
        (columns()["x"], "type Series cannot be read"),
    ],
)
def test_a_malformed_frame_gives_one_sentence(frame, words):
    assert words in refusal(frame, target="y")


def test_a_lazy_frame_is_not_collected():
    polars = pytest.importorskip("polars")
    assert "collect()" in refusal(polars.from_pandas(columns()).lazy(), target="y")


def test_a_hostile_name_stays_on_one_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(GOOD.replace("x", '"a\nb<script>' + "x" * 500 + '"', 1))
    message = refusal(path, target="zzz")
    assert r"a\nb<script>" in message


def test_a_huge_value_in_a_dropped_column_does_no_harm(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        GOOD.replace("id,x,y", "id,x,y,z").replace("yes", "yes,1e308").replace("no", "no,2e308")
    )
    assert "'z' holds" in refusal(path, target="y")
    assert read_table(path, target="y", drop="z").columns[-1].kind == "dropped"


def test_names_cannot_turn_or_stretch_a_sentence(tmp_path, monkeypatch):
    """The name of a file or column, however long, whatever controls of direction stand in it;
    on the page too.
    """
    monkeypatch.chdir(tmp_path)
    name = "\u202e\u2066\u200b" + "é" * 60 + "\x1b[2J.csv"
    Path(name).write_text("x,y\n")
    for said in (refusal(name, target="y"), refusal("\u202e" + "n" * 2000 + ".csv", target="y")):
        assert "\\u202e" in said
    result = CliRunner().invoke(
        main, ["audit", "iris", "--ledger", "/" + "\u202e" * 100 + "x" * 5000]
    )
    assert result.exit_code == 2
    assert len(result.stderr.strip()) < 300
    assert result.stderr.strip().isprintable()
    assert clean("a\u202eb\u2066c\u200bd") == "a\ufffdb\ufffdc\ufffdd"


def test_big_endian_numbers_are_read(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    np.savez(tmp_path / "native.npz", X=X, y=y)
    np.savez(tmp_path / "other.npz", X=X.astype(">f8"), y=y.astype(">i8"))
    native, other = (read_table(tmp_path / name) for name in ("native.npz", "other.npz"))
    assert (native.row_hashes == other.row_hashes).all()
    assert native.X.equals(other.X)
    frame = pd.DataFrame({"x": X[:, 0].astype(">f4"), "n": y.astype(">u2"), "y": y.astype(">i4")})
    assert read_table(frame, target="y").X["x"].to_numpy().dtype.isnative
    assert fingerprint_rows(X, y) == fingerprint_rows(X.astype(">f8"), y.astype(">i8"))


ABORTS_AT_EXIT = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.__cxa_atexit(ctypes.cast(libc.abort, ctypes.c_void_p), None, None)  # as C++ does with threads
from surelearn import cli
sys.argv = ["surelearn", "certify", "t.csv", "--truth", "nothing", "--answer", "b"]
cli.run()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it asks the C library of Linux")
def test_a_refused_command_does_not_end_with_its_libraries(tmp_path):
    """Exit code 2 and one sentence, also where a library would abort the process at its end."""
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", ABORTS_AT_EXIT], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("t.csv has no column 'nothing'")
    assert len(done.stderr.splitlines()) == 1
