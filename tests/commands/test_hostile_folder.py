"""Commands in a folder that others wrote into: its Python files are not run, its models cannot
end the program unheard.
"""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.loaded import Forked

SKIP = [
    word
    for name in ("robustness", "poisoning", "membership", "attribution")
    for word in ("--skip", name)
]
NAMES = (
    "random",
    "queue",
    "numpy",
    "argparse",
    "pickle",
    "struct",
    "joblib",
    "sitecustomize",
    "collections",
)
MODELS = """
import os, sys, time
from pathlib import Path
from sklearn.linear_model import LogisticRegression

class Sleepy(LogisticRegression):
    def fit(self, X, y):
        Path(f"worker-{os.getpid()}").touch()
        time.sleep(600)

class Leaving(LogisticRegression):
    def fit(self, X, y):
        sys.exit(0)

class LeavingLater(LogisticRegression):
    def predict(self, X):
        sys.exit(0)

class LeavingAtOnce(LogisticRegression):
    def fit(self, X, y):
        os._exit(0)

def good():
    return {"one": LogisticRegression(), "two": LogisticRegression(C=0.1)}

def leaves():
    sys.exit(0)

def leaves_at_once():
    os._exit(0)

def leaving(): return Leaving()
def leaving_later(): return LeavingLater()
def leaving_at_once(): return LeavingAtOnce()
def sleepy(): return {"one": Sleepy(), "two": Sleepy(C=0.1)}
"""


@pytest.fixture
def folder(shell, tmp_path):
    shell.frame(200).drop(columns=["amount", "who"]).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "models_here.py").write_text(MODELS)
    return tmp_path


@pytest.fixture
def start(folder, monkeypatch):
    """Begin an audit in the folder, as a process of its own."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.setenv("HOME", str(folder / "home"))
    return lambda *options: Forked(
        ["surelearn", "audit", "t.csv", "--target", "y", *SKIP, *options]
    )


def test_python_files_beside_the_data_are_not_run_by_workers(folder, start):
    for name in NAMES:
        (folder / f"{name}.py").write_text(
            f"open('marker of {name}', 'w').close()\nraise SystemExit\n"
        )
    process = start("--jobs", "2", "--model", "models_here:good")
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 0, said
    assert not list(folder.glob("marker*"))
    assert (folder / "surelearn-audit" / "report.html").is_file()


@pytest.mark.parametrize("factory", ["leaves", "leaving", "leaving_later"])
def test_a_model_that_exits_is_refused(folder, factory, shell, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    said = shell.refusal(f"audit t.csv --target y --jobs 1 --quiet --model models_here:{factory}")
    assert "SystemExit" in said
    del sys.modules["models_here"]


@pytest.mark.parametrize(("factory", "jobs"), [("leaving", 2), ("leaving_at_once", 1)])
def test_a_model_that_exits_is_no_success(folder, start, factory, jobs):
    process = start("--jobs", str(jobs), "--model", f"models_here:{factory}", "--quiet")
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 2, said
    assert len(said.splitlines()) == 1, said
    assert "SystemExit" in said or "exit code 0" in said
    assert not (folder / "surelearn-audit").exists()
    if "at_once" not in factory:
        assert not list(folder.glob(".*journal*"))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_command(folder, start, how):
    process = start("--jobs", "2", "--model", "models_here:sleepy", "--quiet")
    workers = []
    for _ in range(600):
        workers = [int(path.name.partition("-")[2]) for path in folder.glob("worker-*")]
        if len(workers) >= 2 or process.poll() is not None:
            break
        time.sleep(0.2)
    assert len(workers) >= 2, process.communicate()[1]
    process.send_signal(how)
    process.communicate(timeout=20)
    for _ in range(50):
        if not any(map(alive, workers)):
            break
        time.sleep(0.2)
    left = [worker for worker in workers if alive(worker)]
    for worker in left:
        os.kill(worker, signal.SIGKILL)
    assert not left


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False
