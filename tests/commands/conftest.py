"""Audited folders for the commands that live on them: made once, copied for each test."""

import os
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from surelearn.cli import main

MODELS = """
from sklearn.linear_model import LogisticRegression, Ridge

def classifier():
    return {"logistic regression": LogisticRegression()}

def regressor():
    return {"ridge": Ridge()}
"""


def frame(n=600, seed=0):
    """Numbers with gaps, a category, and a target that they nearly tell."""
    rng = np.random.default_rng(seed)
    x, c = rng.normal(size=n), rng.choice(["a", "b"], n)
    signal = x + (c == "a") + 0.5 * rng.normal(size=n)
    table = pd.DataFrame({"x": x.round(4), "z": rng.normal(size=n).round(4), "c": c})
    table.loc[rng.random(n) < 0.05, "z"] = np.nan
    return table.assign(
        y=np.where(signal > 0.5, "yes", "no"),
        amount=signal.round(4),
        who=[f"p{i // 3}" for i in range(n)],
    )


AUDITS = {
    "classes": ("classifier", "--target y --drop amount --drop who --independent --positive yes"),
    "amounts": ("regressor", "--target amount --drop y --drop who --independent"),
    "groups": ("classifier", "--target y --drop amount --group who"),
}


EFFORT = "--effort 0.1"  # every section that ships, with little work


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    """A folder with the table and an audit of each kind."""
    folder = tmp_path_factory.mktemp("workshop")
    (folder / "models_of_workshop.py").write_text(MODELS)
    frame().to_csv(folder / "t.csv", index=False)
    here, path = os.getcwd(), list(sys.path)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        for name, (factory, options) in AUDITS.items():
            command = (
                f"audit t.csv {options} --model models_of_workshop:{factory} --jobs 1 --quiet"
                f" --effort 0.1 --out {name}"
            )
            result = CliRunner(catch_exceptions=False).invoke(
                main, [*shlex.split(command), "--ledger", f"{name}.ledger"]
            )
            assert result.exit_code == 0, result.output
            assert (folder / name / "model" / "manifest.json").is_file(), result.output
    finally:
        os.chdir(here)
        sys.path[:] = path
        sys.modules.pop("models_of_workshop", None)
    return folder


@pytest.fixture
def place(workshop, tmp_path, monkeypatch):
    """The test's own copy of the workshop, as the working folder."""
    shutil.copytree(workshop, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Place:
    """What tests of commands say."""

    frame = staticmethod(frame)

    @staticmethod
    def run(command, **options):
        result = CliRunner(catch_exceptions=False).invoke(main, shlex.split(command), **options)
        assert "Traceback" not in result.output
        return result

    @classmethod
    def refusal(cls, command, **options):
        before = contents()
        result = cls.run(command, **options)
        assert result.exit_code == 2, result.output
        lines = result.stderr.splitlines()
        assert len(lines) == 1, result.stderr
        assert contents() == before
        return lines[0]


def contents():
    """The files below this folder, but for what Python keeps of modules that it imported."""
    found = [path for path in Path().rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in found if path.suffix != ".pyc"}


@pytest.fixture
def shell():
    """Run commands in this process, or be refused with one sentence and nothing changed."""
    return Place
