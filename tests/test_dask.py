"""An experiment on a real Dask cluster of two processes, one of which is killed half-way: the
same numbers.
"""

import subprocess
import sys

import pytest

SCRIPT = """
import os, signal
import joblib
from dask.distributed import Client, LocalCluster
from surelearn.jobs import Runner
from surelearn.jobs import Progress
from surelearn.papers import reproduce

class Killer(Progress):
    def __init__(self, client):
        self.client, self.done, self.killed = client, 0, 0

    def advance(self, key):
        self.done += 1
        if self.done == 4:
            pids = self.client.run(os.getpid)
            assert os.getpid() not in pids.values() and len(set(pids.values())) == 2, pids
            self.killed = next(iter(pids.values()))
            os.kill(self.killed, signal.SIGKILL)

if __name__ == "__main__":
    settings = dict(problems=10, variant_problems=0)
    alone = reproduce("thesis-figure-5.1", runner=Runner(n_jobs=1), **settings)
    options = dict(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with LocalCluster(**options) as cluster, Client(cluster) as client, joblib.parallel_config("dask"):
        killer = Killer(client)
        together = reproduce("thesis-figure-5.1", runner=Runner(progress=lambda label: killer), **settings)
    assert killer.killed and killer.done >= 10, (killer.killed, killer.done)
    print("same" if together == alone else "different", len(together.numbers["problems"]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_an_experiment_moves_to_a_cluster_that_loses_a_worker(tmp_path):
    pytest.importorskip(
        "dask.distributed", reason="needs dask.distributed: pip install surelearn[scale]"
    )
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "script.py")]
    result = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert result.stdout == "same 10\n", result.stderr
