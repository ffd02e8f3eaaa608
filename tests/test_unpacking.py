"""Bombs, pipes and devices end in one sentence, at once and before memory goes."""

import gzip
import io
import os
import threading
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from surelearn import unpacking
from surelearn.cli import main
from surelearn.data import DataError, read_table
from surelearn.data.stream import open_stream
from surelearn.linear.logistic.learner import LogisticRegression


def gzip_bomb():
    return gzip.compress(b"0,1\n" * 2**22) * 64  # 1 GiB


def npz_bomb():
    buffer = io.BytesIO()
    np.savez_compressed(buffer, X=np.zeros((2**20, 10)), y=np.zeros(2**20))
    return buffer.getvalue()


def parquet_bomb():
    buffer = io.BytesIO()
    pd.DataFrame({"x": np.zeros(10**7), "y": np.ones(10**7, dtype=int)}).to_parquet(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "make"), [("t.csv.gz", gzip_bomb), ("t.npz", npz_bomb), ("t.parquet", parquet_bomb)]
)
def test_a_bomb_is_refused_before_memory_goes(name, make, tmp_path):
    path = tmp_path / name
    path.write_bytes(make())
    tracemalloc.start()
    try:
        with pytest.raises(
            DataError,
            match=f"^{name} unpacks to .* GiB or more .*which is not read: unpack it yourself",
        ):
            read_table(path, target="y")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * unpacking.SMALL


def test_a_bomb_is_not_unpacked_to_disk_either(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip_bomb())
    with pytest.raises(DataError, match=r"^t.csv.gz unpacks to .* which is not read"):
        LogisticRegression().fit_file(path, features=16, target="0")


def test_a_bomb_that_is_read_in_pieces_is_refused_too(tmp_path):
    """`predict` keeps no piece, but would write an answer for each of their rows."""
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip_bomb())
    with (
        pytest.raises(DataError, match=r"^t\.csv\.gz unpacks to .* GiB or more"),
        open_stream(path) as stream,
    ):
        for _ in stream.tables:
            pass


def test_pieces_may_be_larger_than_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "SMALL", 2**16)
    monkeypatch.setattr(unpacking, "memory", lambda: 2**17)
    numbers = np.random.default_rng(0).integers(0, 10**9, 50_000)
    pd.DataFrame({"x": numbers}).to_csv(tmp_path / "t.csv.gz", index=False)
    with pytest.raises(DataError, match="unpacks to"):
        read_table(tmp_path / "t.csv.gz", target="x")
    with open_stream(tmp_path / "t.csv.gz") as stream:
        assert sum(table.num_rows for table in stream.tables) == 50_000


def test_what_compresses_well_is_read(tmp_path):
    frame = pd.DataFrame({"x": np.tile([1, 2, 3, 4], 5000), "y": np.tile(["a", "b"], 10_000)})
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    assert len(read_table(tmp_path / "t.csv.gz", target="y").y) == 20_000


def test_an_archive_inside_an_archive_is_looked_into(monkeypatch):
    monkeypatch.setattr(unpacking, "SMALL", 2**20)
    inner, outer = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(2**22))
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("a.npz", inner.getvalue())
    with pytest.raises(ValueError, match="unpacks to"):
        unpacking.check_zip("it", outer.getvalue())


# -------------------------------------------------------------------------------------------------

COMMANDS = {
    "audit": "audit {} --target y",
    "audit with a ledger": "audit iris --ledger {}",
    "gate with a ledger": "gate iris --max-risk 0.1 --ledger {}",
    "ledger": "ledger --ledger {}",
    "predict": "predict folder t.csv",
    "verify": "verify folder",
    "watch": "watch {} t.csv",
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("what", "said"), [("pipe", "is a pipe"), ("/dev/zero", "is a device")])
def test_pipes_and_devices_are_refused_at_once(command, what, said, tmp_path, monkeypatch):
    """In the place of a table, a ledger or a certificate; in that of a folder's manifest or
    certificate, as links.
    """
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    os.mkdir("folder")
    for name in ("manifest.json", "certificate.json"):
        os.symlink(os.path.abspath(what), f"folder/{name}")
    results = []
    words = COMMANDS[command].format(what).split()
    thread = threading.Thread(
        target=lambda: results.append(CliRunner().invoke(main, words)), daemon=True
    )
    thread.start()
    thread.join(30)
    assert results, "it hangs"
    assert results[0].exit_code == 2, results[0].output
    assert len(results[0].stderr.splitlines()) == 1
    assert said in results[0].stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_rows_to_predict_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    said = []

    def read():
        with pytest.raises(DataError, match="pipe is a pipe: name a regular file"):
            open_stream(tmp_path / "pipe")
        said.append("refused")

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(30)
    assert said, "it hangs, or says something else"
