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
from surelearn.linear.logistic.pieces import unpacked


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


@pytest.mark.parametrize(("name", "make"), [("t.csv.gz", gzip_bomb), ("t.npz", npz_bomb), ("t.parquet", parquet_bomb)])
def test_a_bomb_is_refused_before_memory_goes(name, make, tmp_path):
    path = tmp_path / name
    path.write_bytes(make())
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=f"^{name} unpacks to .* GiB or more .*which is not read: unpack it yourself"):
            read_table(path, target="y")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * unpacking.SMALL


def test_a_bomb_is_not_unpacked_to_disk_either(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip_bomb())
    with pytest.raises(ValueError, match="unpacks to"), unpacked(path):
        pass


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


# ------------------------------------------------------------------------------------------------- pipes and devices

COMMANDS = {
    "audit": "audit {} --target y",
    "audit with a ledger": "audit iris --ledger {}",
    "predict": "predict {}",
    "verify": "verify {}",
    "watch": "watch {} t.csv",
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("what", ["pipe", "/dev/zero"])
def test_pipes_and_devices_are_refused_at_once(command, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    results = []
    words = COMMANDS[command].format(what).split()
    thread = threading.Thread(target=lambda: results.append(CliRunner().invoke(main, words)), daemon=True)
    thread.start()
    thread.join(30)
    assert results, "it hangs"
    assert results[0].exit_code == 2, results[0].output
    assert len(results[0].stderr.splitlines()) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_rows_to_predict_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe is a pipe: name a regular file"):
        open_stream(tmp_path / "pipe")
