"""What the tests of this folder share."""

import os
import random
import re
import shlex
import subprocess
import sys
import textwrap
from html.parser import HTMLParser
from pathlib import Path

from click.testing import CliRunner

from surelearn.cli import main

PROGRAM = Path(sys.executable).with_name("surelearn")
WRITTEN = ("audit.json", "certificate.json", "report.html")
MODELS = """
    import os
    import time

    import numpy as np
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.dummy import DummyClassifier
    from sklearn.pipeline import Pipeline
    from sklearn.tree import DecisionTreeClassifier


    class NearestMean(ClassifierMixin, BaseEstimator):
        \"\"\"By the first column that holds numbers; fast, so that a test can afford many audits.\"\"\"

        def __init__(self, scale=10.0):
            self.scale = scale

        def fit(self, X, y):
            self.column_ = [dtype.kind for dtype in X.dtypes].index("f")
            self.classes_ = np.unique(y)
            self.means_ = np.array([self.values(X)[y == label].mean() for label in self.classes_])
            return self

        def values(self, X):
            return X.iloc[:, self.column_].to_numpy()

        def predict_proba(self, X):
            weights = np.exp(-self.scale * np.abs(self.values(X)[:, None] - self.means_))
            return weights / weights.sum(axis=1, keepdims=True)

        def predict(self, X):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]


    def nearest():
        return Pipeline([("nearest", NearestMean())])  # a pipeline prepares its own columns


    def quick():
        return {"majority": Pipeline([("majority", DummyClassifier())]), "nearest mean": nearest()}


    def prepared():
        return {"majority": DummyClassifier(), "stump": DecisionTreeClassifier(max_depth=1, random_state=0)}


    class Unhurried(NearestMean):
        def fit(self, X, y):
            with open(os.environ["FITS"], "a") as file:
                file.write("fit\\n")
            time.sleep(0.02)
            return super().fit(X, y)


    def unhurried():
        return {"unhurried": Pipeline([("unhurried", Unhurried(scale=10.5))])}


    class Broken(NearestMean):
        def fit(self, X, y):
            raise LookupError("no such\\nbranch")


    def broken():
        return {"nearest mean": nearest(), "broken": Pipeline([("broken", Broken())])}


    def raising():
        raise KeyError("parameters")


    def word():
        return 3


    def fitted():
        return DecisionTreeClassifier(max_depth=1, random_state=0).fit([[0.0], [1.0]], ["no", "yes"])
"""


def rows(n=200, seed=0):
    """Two classes that a stump tells apart, but for a few rows."""
    draw = random.Random(seed)  # noqa: S311
    for _ in range(n):
        x, z, c = draw.random(), draw.random(), draw.choice("abc")
        yield x, z, c, "yes" if x + 0.2 * draw.random() > 0.6 else "no"


def write_table(path, names=("x", "z", "c", "y"), n=200):
    def quoted(value):
        return '"{}"'.format(str(value).replace('"', '""'))

    lines = [",".join(map(quoted, names)), *(f"{x:.4f},{z:.4f},{c},{y}" for x, z, c, y in rows(n))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def prepare(tmp_path, monkeypatch):
    (tmp_path / "models_of_cli_tests.py").write_text(textwrap.dedent(MODELS))
    write_table(tmp_path / "t.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FITS", str(tmp_path / "fits.txt"))
    monkeypatch.delitem(sys.modules, "models_of_cli_tests", raising=False)
    yield tmp_path
    sys.modules.pop("models_of_cli_tests", None)


SKIP = "--skip robustness --skip poisoning --skip membership --skip attribution"
QUICK = f"--model models_of_cli_tests:quick --jobs 1 --ledger ledger.json {SKIP}"


def words(*parts):
    return [
        word for part in parts for word in (shlex.split(part) if isinstance(part, str) else part)
    ]


def surelearn(*parts):
    """Run in this process; strings are split as a shell does."""
    result = CliRunner(catch_exceptions=False).invoke(main, words(*parts))
    assert "Traceback" not in result.output
    return result


def audit(*parts, table="t.csv"):
    return surelearn(["audit", table], "--target y", QUICK, *parts)


def program(*parts, at=PROGRAM, **environment):
    return subprocess.run(  # noqa: S603
        [at, *words(*parts)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
    )


def refusal(result, after_the_verdict=False):
    """The one sentence of a refusal; nothing was claimed, unless it came after the verdict."""
    assert result.exit_code == 2, result.output
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, result.stderr
    assert ("Guaranteed" in result.stdout) == after_the_verdict
    assert "report.html" not in result.stdout
    return lines[0]


def without_progress(text):
    """What a command said, but for the lines that tell on a slow machine how far it is."""
    return re.sub(r"^  \d+ of \d+ (?:fits|measurements)\b.*\n", "", text, flags=re.MULTILINE)


def content(folder):
    return {name: (folder / name).read_bytes() for name in WRITTEN}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def leftovers(folder):
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if re.search(r"\.part$|journal|sqlite|aside", path.name)
    ]


class Page(HTMLParser):
    """Tags, attribute names and visible text of a page."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.texts, self._unseen = set(), set(), [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self._unseen += tag == "style"

    def handle_endtag(self, tag):
        self._unseen -= tag == "style"

    def handle_data(self, data):
        if not self._unseen:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join("".join(self.texts).split())


def page_text(folder):
    return Page((folder / "report.html").read_text(encoding="utf-8")).text
