"""The command line: what it writes, what it refuses, and what a kill, a second run or a hostile name leave behind."""

import json
import os
import random
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from surelearn import bounds
from surelearn.certificate import Certificate
from surelearn.cli import main
from surelearn.data import read_table
from surelearn.report import Audit

MALFORMED = runpy.run_path(str(Path(__file__).with_name("malformed.py")))
PROGRAM = Path(sys.executable).with_name("surelearn")
TITANIC = Path(__file__).resolve().parents[2] / "shared" / "data" / "titanic.csv"
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


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a table and a module of models, where everything is written."""
    yield from prepare(tmp_path, monkeypatch)


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


QUICK = "--model models_of_cli_tests:quick --jobs 1 --ledger ledger.json"
UNHURRIED = "--model models_of_cli_tests:unhurried --jobs 1 --ledger ledger.json" + "".join(
    f" --skip {section}" for section in ("robustness", "poisoning", "membership", "attribution")
)


def words(*parts):
    return [word for part in parts for word in (shlex.split(part) if isinstance(part, str) else part)]


def surelearn(*parts):
    """Run in this process; strings are split as a shell does."""
    result = CliRunner(catch_exceptions=False).invoke(main, words(*parts))
    assert "Traceback" not in result.output
    return result


def audit(*parts, table="t.csv"):
    return surelearn(["audit", table], "--target y", QUICK, *parts)


def program(*parts, **environment):
    return subprocess.run(  # noqa: S603
        [PROGRAM, *words(*parts)], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )


def refusal(result):
    """The one sentence of a refusal."""
    assert result.exit_code == 2, result.output
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, result.stderr
    assert "Guaranteed" not in result.stdout
    assert "report.html" not in result.stdout
    return lines[0]


def content(folder):
    return {name: (folder / name).read_bytes() for name in WRITTEN}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def leftovers(folder):
    return [
        str(path.relative_to(folder)) for path in folder.rglob("*") if re.search(r"\.part$|journal|sqlite|aside", path.name)
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


# ---------------------------------------------------------------------------------------------------------- what it writes


def test_an_audit_writes_its_three_files_and_says_the_verdict(place):
    result = audit()
    assert result.exit_code == 0
    assert result.stderr == ""
    out = place / "surelearn-audit"
    assert set(WRITTEN) <= set(names(out)) <= {*WRITTEN, "model"}
    assert leftovers(place) == []
    written = (out / "audit.json").read_text(encoding="utf-8")
    document = Audit.from_json(written)
    assert document.to_json() + "\n" == written
    assert document.verdict.text in result.stdout
    assert "errors" in document.verdict.text
    assert "nearest mean chosen among 2" in result.stdout
    certificate = Certificate.from_json((out / "certificate.json").read_text(encoding="utf-8"))
    assert certificate.verify()
    assert certificate.claims == document.claims
    page = (out / "report.html").read_text(encoding="utf-8")
    assert len(page.encode()) < 1_000_000
    assert document.verdict.text in Page(page).text
    assert all(str(path) in result.stdout for path in (Path("surelearn-audit") / name for name in WRITTEN))
    assert names(place) == ["ledger.json", "models_of_cli_tests.py", "state", "surelearn-audit", "t.csv"]


def test_the_verdict_keeps_to_the_numbers(place):
    audit()
    certificate = Certificate.from_json((place / "surelearn-audit" / "certificate.json").read_text(encoding="utf-8"))
    risk = certificate["risk"]
    assert risk.value == bounds.clopper_pearson(risk.inputs["errors"], risk.inputs["n"], certificate.delta / 2)
    assert risk.inputs["n"] == 66  # a third of 200


def test_markdown(place):
    audit("--format md")
    out = place / "surelearn-audit"
    assert set(names(out)) - {"model"} == {"audit.json", "certificate.json", "report.md"}
    assert "### surelearn audit: t.csv" in (out / "report.md").read_text(encoding="utf-8")
    audit("--format md --format html --out both")
    assert {*WRITTEN, "report.md"} <= set(names(place / "both"))


def test_quiet_prints_the_verdict_only(place):
    result = audit("--quiet")
    verdict = Audit.from_json((place / "surelearn-audit" / "audit.json").read_text(encoding="utf-8")).verdict
    assert result.stdout == verdict.text + "\n"
    assert result.stderr == ""


@pytest.mark.parametrize("out", [".", "deep/down/here", "with space é"])
def test_the_folder_may_be_anywhere(place, monkeypatch, out):
    (place / "here").mkdir()
    monkeypatch.chdir(place / "here")
    result = surelearn("audit ../t.csv --target y", QUICK.replace("ledger.json", "../ledger.json"), ["--out", out])
    assert result.exit_code == 0, result.output
    assert set(WRITTEN) <= set(names(place / "here" / out))
    assert leftovers(place) == []


def test_the_page_names_the_command_without_where_and_how_it_ran(place):
    audit("--slice c --seed 3 --out elsewhere --max-risk 0.9")
    document = Audit.from_json((place / "elsewhere" / "audit.json").read_text(encoding="utf-8"))
    assert document.reproduce == ("surelearn audit t.csv --target y --slice c --model models_of_cli_tests:quick --seed 3")


def test_models_of_the_working_folder_are_found(place):
    """The program's own path holds its folder, not the user's."""
    result = program("audit t.csv --target y", QUICK, PYTHONPATH="")
    assert result.returncode == 0, result.stderr


def test_a_terminal_that_knows_only_ascii(place):
    result = program("audit t.csv --target y", QUICK, PYTHONIOENCODING="ascii")
    assert result.returncode == 0, result.stderr
    assert "Guaranteed together, 95%" in result.stdout


def test_options_reach_the_audit(place):
    result = audit("--positive yes --cost 5 --slice c --delta 0.2 --prefer best --against models_of_cli_tests:nearest")
    assert result.exit_code == 0, result.output
    document = Audit.from_json((place / "surelearn-audit" / "audit.json").read_text(encoding="utf-8"))
    quantities = {claim.quantity for claim in document.claims}
    assert {"risk", "sensitivity", "precision", "mean_cost", "gain", "slice_risk"} <= quantities
    assert any("c = a" in claim.label for claim in document.claims)
    assert document.certificate.delta == 0.2
    assert document.numbers["options"]["prefer"] == "best"


def test_group_and_time(place):
    lines = (place / "t.csv").read_text().splitlines()
    grouped = [lines[0] + ",g,t", *(f"{line},p{i // 4},{i}" for i, line in enumerate(lines[1:]))]
    (place / "g.csv").write_text("\n".join(grouped) + "\n")
    result = audit("--group g --drop t --out by-group", table="g.csv")
    assert result.exit_code == 0, result.output
    document = Audit.from_json((place / "by-group" / "audit.json").read_text(encoding="utf-8"))
    assert document.certificate.facts["groups"] == 16  # of 50, not 64 of 200 rows
    assert "(16 gs)" in result.stdout
    result = audit("--time t --drop g --out by-time --max-risk 0.99", table="g.csv")
    assert "no guarantee for the rows to come" in result.stdout
    assert result.exit_code == 1  # nothing guaranteed cannot pass a gate
    assert "nothing is guaranteed" in result.stderr


def test_a_table_without_a_header(place):
    (place / "n.csv").write_text("".join((place / "t.csv").read_text().splitlines(keepends=True)[1:]))
    result = surelearn("audit n.csv --no-header --target -1", QUICK)
    assert result.exit_code == 0, result.output
    assert "target column 4, column 4 of 4 (--target -1)" in result.stdout
    page = (place / "surelearn-audit" / "report.html").read_text(encoding="utf-8")
    assert "surelearn audit n.csv --target -1 --no-header" in page


def test_a_first_line_that_looks_like_data_is_refused_before_any_work(place):
    (place / "n.csv").write_text("".join((place / "t.csv").read_text().splitlines(keepends=True)[1:]))
    before = names(place)
    result = surelearn("audit n.csv --target -1", QUICK)
    assert "n.csv: its first line looks like data" in refusal(result)
    assert "--no-header" in result.stderr
    assert result.stdout == ""
    assert names(place) == before
    result = surelearn("audit n.csv --header --target -1", QUICK)
    assert result.exit_code == 0, result.output


def test_positions_of_the_target_are_explained(place):
    assert "1 is the first column, -1 the last" in refusal(surelearn("audit t.csv --target 9", QUICK))
    assert "1 is the first column, -1 the last" in refusal(surelearn("audit t.csv", QUICK))
    assert "1 is the first column, -1 the last" in " ".join(surelearn("audit --help").stdout.split())
    result = surelearn("audit t.csv --target -1", QUICK)
    assert "target y, column 4 of 4 (--target -1)" in result.stdout


# ---------------------------------------------------------------------------------------------------------------- refusals

CLICKS = {"unknown task": "'cluster' is not one of 'classification', 'regression'"}  # refused before the table is read


def as_words(options):
    for name, value in {"target": "y", **options}.items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                yield from (f"--{name}", str(item))


@pytest.mark.parametrize("case", MALFORMED["FILES"])
def test_a_malformed_file(case, place):
    name, body, options, said = MALFORMED["FILES"][case]
    (place / name).write_bytes(body.encode() if isinstance(body, str) else body)
    before = names(place)
    result = surelearn(["audit", name], list(as_words(options)), "--jobs 1 --out out")
    assert CLICKS.get(case, said) in refusal(result)
    assert result.stdout == ""
    assert names(place) == before


def test_there_are_many():
    assert len(MALFORMED["FILES"]) >= 60


def test_the_sentence_of_the_program_itself(place):
    """Without click's test runner in between."""
    before = names(place)
    result = program("audit titanic.csv --target Survived")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("titanic.csv does not exist")
    assert names(place) == before


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("missing.csv", "missing.csv does not exist"),
        ("t.cvs", "Did you mean 't.csv'?"),
        ("folder", "is a directory"),
        ("irs", "Did you mean 'iris'?"),
        ("boston", "neither a file"),
        ("", ""),
    ],
)
def test_a_source_that_is_no_table(source, said, place):
    (place / "folder").mkdir()
    before = names(place)
    assert said in refusal(surelearn(["audit", source], "--target y --out out"))
    assert names(place) == before


BAD_OPTIONS = {
    "--delta 0": "--delta must lie strictly between 0 and 1, not 0",
    "--delta 2": "--delta must lie strictly between 0 and 1, not 2",
    "--delta nan": "--delta",
    "--delta small": "--delta",
    "--alpha 1": "--alpha must lie strictly between 0 and 1, not 1",
    "--cost 5": "need --positive",
    "--threshold 0.5": "need --positive",
    "--cost 0 --positive yes": "--cost must be a positive number",
    "--cost nan --positive yes": "--cost must be a positive number",
    "--threshold 2 --positive yes": "--threshold must lie strictly between 0 and 1, not 2",
    "--positive maybe": "no class 'maybe' in column 'y' of the rows to fit on: it has no, yes",
    "--positive yes --target x": "--positive names a class",
    "--slice colour": "t.csv has no usable column 'colour' to slice by: it has 'x'",
    "--slice X": "it has 'x'",
    "--slice y": "no usable column 'y'",
    "--slice x --drop x": "no usable column 'x'",
    "--group patient": "no column 'patient'",
    "--largest-group 3": "t.csv: --largest-group needs groups",
    "--largest-group 0": "--largest-group must be at least 1, not 0",
    "--time when": "no column 'when'",
    "--drop nothing": "no column 'nothing'",
    "--keep nothing": "no column 'nothing'",
    "--target 9": "columns 1 to 4",
    "--certify 1.5": "--certify must lie strictly between 0 and 1, not 1.5",
    "--certify 0": "--certify",
    "--certify 0.6 --select 0.6": "leave no row",
    "--select -1": "--select must be at least 0 and below 1, not -1",
    "--model nonsense": "there is no candidate 'nonsense' for classification: there are majority, naive Bayes, ",
    "--model no_such_module:factory": "--model no_such_module:factory: no_such_module cannot be imported",
    "--model models_of_cli_tests:missing": "models_of_cli_tests has no 'missing'",
    "--model models_of_cli_tests:raising": "--model models_of_cli_tests:raising: KeyError: 'parameters'",
    "--model models_of_cli_tests:broken": "LookupError: no such branch",
    "--model models_of_cli_tests:word": "must have fit and predict",
    "--model models_of_cli_tests:fitted": "--model models_of_cli_tests:fitted: candidate 'DecisionTreeClassifier' is already"
    " fitted, and would be fitted again: certify it as it is, on rows it has not seen, with surelearn.audit(model, X, y)",
    "--against models_of_cli_tests:fitted": "--against models_of_cli_tests:fitted: candidate 'DecisionTreeClassifier' is",
    "--against nonsense": "there is no candidate 'nonsense' for classification: there are majority, naive Bayes, ",
    "--against no_such_module:factory": "--against no_such_module:factory: no_such_module cannot be imported",
    "--against models_of_cli_tests:raising": "--against models_of_cli_tests:raising: KeyError: 'parameters'",
    "--out t.csv": "--out t.csv is a file: name a folder",
    "--out t.csv/deep/down": "t.csv is a file",
    "--out /": "--out /",
    "--out /proc/surelearn/out": "--out /proc/surelearn/out cannot be written",
    "--out fresh/folder --positive maybe": "no class 'maybe'",
    "--out fresh/folder --model models_of_cli_tests:broken": "LookupError",
    "--max-risk -1": "--max-risk",
    "--max-risk nan": "--max-risk",
    "--jobs 0": "--jobs must not be 0",
    "--jobs many": "--jobs",
    "--loss-bound -3 --target x": "--loss-bound must be a positive number",
    "--task clustering": "'clustering' is not one of 'classification', 'regression'",
    "--prefer fastest": "'fastest' is not one of 'simplest', 'best'",
    "--format pdf": "'pdf' is not one of 'html', 'md'",
    "--ledger .": "directory",
    "--ledger t.csv": "t.csv is not a ledger that can be read",
    "--slise x": "--slise",
    "another.csv": "another.csv",
}


@pytest.mark.parametrize("options", BAD_OPTIONS)
def test_a_bad_option(options, place):
    before = {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}
    assert BAD_OPTIONS[options] in refusal(audit(options))
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before  # so no folder either


def test_an_unwritable_folder(place):
    (place / "locked").mkdir()
    (place / "locked").chmod(0o500)
    if os.access(place / "locked", os.W_OK):
        pytest.skip("this user may write everywhere")
    assert "no permission" in refusal(audit("--out locked"))
    assert "no permission" in refusal(audit("--out locked/out"))


def test_an_unwritable_folder_whoever_runs_it(place, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "--out out cannot be written: no permission" in refusal(audit("--out out"))


def test_a_full_disk_keeps_what_was_computed(place, monkeypatch):
    write = Path.write_bytes

    def full(path, content):
        if path.parent.name.startswith(".out"):
            raise OSError(28, "No space left on device", str(path))
        return write(path, content)

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.write_bytes", full)
        assert refusal(audit("--out out")) == "--out out cannot be written: No space left on device"
    assert leftovers(place) == [".out.journal.sqlite"]
    assert not (place / "out").exists()
    assert audit("--out out").exit_code == 0
    assert leftovers(place) == []


def test_an_error_of_our_own_is_not_called_the_users(place, monkeypatch):
    def wrong(*_, **__):
        raise AssertionError("this is a bug")

    monkeypatch.setattr("surelearn.auditing.flow.audit_table", wrong)
    with pytest.raises(AssertionError, match="this is a bug"):
        audit()


def test_debugging_shows_the_traceback(place, monkeypatch):
    monkeypatch.setenv("SURELEARN_DEBUG", "1")
    with pytest.raises(ValueError, match="--delta"):
        audit("--delta 2")


# ------------------------------------------------------------------------------------------------------------------- gates


@pytest.mark.parametrize(("most", "code"), [("0.5", 0), ("1", 0), ("0.01", 1), ("0", 1)])
def test_a_gate(most, code, place):
    result = audit("--max-risk", most)
    assert result.exit_code == code
    assert set(WRITTEN) <= set(names(place / "surelearn-audit"))
    assert leftovers(place) == []
    value = Certificate.from_json((place / "surelearn-audit" / "certificate.json").read_text(encoding="utf-8"))["risk"].value
    assert (value > float(most)) == bool(code)
    assert (result.stderr == "") == (code == 0)
    if code:
        assert f"is above --max-risk {float(most):g}" in result.stderr


def test_a_gate_on_its_very_bound(place):
    audit("--out first")
    value = Certificate.from_json((place / "first" / "certificate.json").read_text(encoding="utf-8"))["risk"].value
    assert audit(f"--max-risk {value!r}").exit_code == 0
    assert audit(f"--max-risk {value * (1 - 1e-12)!r}").exit_code == 1


# ------------------------------------------------------------------------------------------------------------- determinism


@pytest.mark.slow
def test_the_same_bytes_whatever_the_jobs_and_the_process(place):
    base = "audit t.csv --target y --model models_of_cli_tests:quick --slice c --seed 5"
    runs = {"one": ("--jobs 1", "1"), "two": ("--jobs 2", "2"), "again": ("--jobs 1", "random")}
    for name, (jobs, salt) in runs.items():
        result = program(base, jobs, f"--out {name} --ledger {name}.json", PYTHONHASHSEED=salt)
        assert result.returncode == 0, result.stderr
    assert content(place / "one") == content(place / "two") == content(place / "again")


def test_another_seed_certifies_on_the_same_rows(place):
    found = {}
    for seed in (0, 1, 2):
        audit(f"--seed {seed} --out seed{seed} --ledger seed{seed}.json")
        found[seed] = json.loads((place / f"seed{seed}" / "certificate.json").read_text(encoding="utf-8"))["facts"]["hashes"]
    assert found[0]["rows"] == found[1]["rows"] == found[2]["rows"]
    audits = [Audit.from_json((place / f"seed{seed}" / "audit.json").read_text(encoding="utf-8")) for seed in (0, 1)]
    first, second = (document.numbers["selection"]["fold errors"] for document in audits)
    assert first != second  # the seed does reach the folds


def test_other_rows_have_another_hash(place):
    write_table(place / "u.csv", n=240)
    audit("--out t --ledger t.json")
    audit("--out u --ledger u.json", table="u.csv")
    hashes = [json.loads((place / name / "certificate.json").read_text())["facts"]["hashes"]["rows"] for name in "tu"]
    assert hashes[0] != hashes[1]


# ------------------------------------------------------------------------------------------------------------------ ledger


def page_text(folder):
    return Page((folder / "report.html").read_text(encoding="utf-8")).text


def delta_of(folder):
    return json.loads((folder / "certificate.json").read_text(encoding="utf-8"))["delta"]


def test_a_second_look_at_the_same_rows_pays(place):
    audit("--out first")
    ledger = (place / "ledger.json").read_bytes()
    audit("--out repeated")
    assert content(place / "repeated") == content(place / "first")
    assert (place / "ledger.json").read_bytes() == ledger
    audit("--positive yes --out second")
    audit("--slice c --out third")
    audit("--out repeated-late")
    assert content(place / "repeated-late") == content(place / "first")
    assert "no earlier audit known here" in page_text(place / "first")
    for name in ("second", "third"):
        assert f"{name} audit of these rows" in page_text(place / name)
    assert delta_of(place / "first") == 0.05
    assert delta_of(place / "first") > delta_of(place / "second") > delta_of(place / "third") > 0
    certificates = [Certificate.from_json((place / name / "certificate.json").read_text()) for name in ("first", "third")]
    assert certificates[0]["risk"].value < certificates[1]["risk"].value


def test_a_look_at_the_data_through_another_file_is_seen(place):
    """Rows are known by their content."""
    shutil.copy(place / "t.csv", place / "copy.csv")
    audit("--out first")
    audit("--positive yes --out second", table="copy.csv")
    assert "second audit of these rows" in page_text(place / "second")


def test_the_ledger_lies_beside_the_data(place):
    surelearn("audit t.csv --target y --model models_of_cli_tests:quick --jobs 1")
    assert (place / ".t.csv.surelearn-ledger.json").exists()
    assert (
        place / "state" / "surelearn" / "ledger.json"
    ).exists()  # and in the user's, which a copy of the file cannot lose


def test_the_ledger_of_a_built_in_set_lies_in_the_state_folder(place):
    result = surelearn("audit iris --model models_of_cli_tests:quick --jobs 1")
    assert result.exit_code == 0, result.output
    assert [path.name for path in (place / "state" / "surelearn").glob("*.json")] == ["ledger.json"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: "",
        lambda text: text.replace("surelearn-ledger", "another-ledger", 1),
        lambda text: text.replace('"version": 2', '"version": 99'),
        lambda text: re.sub(r'"hashes": "....', '"hashes": "!', text),
        lambda _: "[]",
    ],
)
def test_a_damaged_ledger_is_refused(damage, place):
    audit("--out first")
    ledger = place / "ledger.json"
    ledger.write_text(damage(ledger.read_text()))
    before = ledger.read_bytes()
    result = audit("--positive yes --out second")
    assert "ledger.json is not a ledger that can be read" in refusal(result)
    assert result.stdout == ""  # before the work, not after
    assert not (place / "second").exists()
    assert leftovers(place) == []
    assert ledger.read_bytes() == before


# ------------------------------------------------------------------------------------------------------- kill and interrupt


def start(*parts):
    """The program in a session of its own, where Ctrl-C is heard even if this process ignores it."""
    arguments = ["audit", "t.csv", "--target", "y", *words(*parts)]
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from surelearn.cli import main; main(sys.argv[1:], 'surelearn')"
    )
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def fits(place):
    path = place / "fits.txt"
    return len(path.read_text().split()) if path.exists() else 0


def wait_for_fits(place, process, count):
    limit = time.monotonic() + 60
    while fits(place) < count and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)


def quiet_end(process):
    process.stdout.close()
    process.stderr.close()
    process.wait(60)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The three files, and how many fits they took."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    with pytest.MonkeyPatch.context() as monkeypatch:
        for _ in prepare(folder, monkeypatch):
            result = surelearn("audit t.csv --target y", UNHURRIED)
            assert result.exit_code == 0, result.output
            total = fits(folder)
    assert total > 30
    return content(folder / "surelearn-audit"), total


@pytest.mark.slow
def test_killed_at_ten_moments_it_ends_the_same(place, uninterrupted):
    whole, total = uninterrupted
    draw = random.Random(1)  # noqa: S311
    moments = [None, None, *sorted(draw.randrange(1, total) for _ in range(8))]  # None: by the clock, while things load
    for moment in moments:
        process = start(UNHURRIED, "--out out")
        if moment is None:
            time.sleep(draw.uniform(0.05, 1.5))
        else:
            wait_for_fits(place, process, moment)
        assert process.poll() is None, "it ended before it was killed"
        os.killpg(process.pid, signal.SIGKILL)
        quiet_end(process)
        assert not any((place / "out" / name).exists() for name in WRITTEN)
    done = fits(place)
    result = surelearn("audit t.csv --target y", UNHURRIED, "--out out")
    assert result.exit_code == 0, result.output
    assert content(place / "out") == whole
    assert leftovers(place) == []
    assert fits(place) < total + 2 * len(moments)  # each kill costs the fit that it hit, not those before
    assert fits(place) > done
    assert "no earlier audit known here" in page_text(place / "out")


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["report.html", "audit.json"])
def test_killed_between_the_files_it_ends_the_same(victim, place, uninterrupted):
    """The narrowest moments, which no clock finds: while the files are put in their place, and inside the ledger."""
    whole, _ = uninterrupted
    code = f"""
        import os, signal
        from surelearn.cli import main
        replace = os.replace

        def fatal(source, target):
            if str(target).endswith({victim!r}):
                os.kill(os.getpid(), signal.SIGKILL)
            replace(source, target)

        os.replace = fatal
        main()
    """
    arguments = ["audit", "t.csv", "--target", "y", *words(UNHURRIED, "--out out")]
    process = subprocess.run([sys.executable, "-c", textwrap.dedent(code), *arguments], capture_output=True)  # noqa: S603
    assert process.returncode == -signal.SIGKILL
    assert leftovers(place) != []
    for path in (place / "out").iterdir():
        assert path.name == "model" or path.read_bytes() == whole[path.name]  # whole, or not there
    result = surelearn("audit t.csv --target y", UNHURRIED, "--out out")
    assert result.exit_code == 0, result.output
    assert content(place / "out") == whole
    assert leftovers(place) == []


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_leaves_no_half_file_and_the_journal(jobs, place, uninterrupted):
    whole, total = uninterrupted
    process = start(UNHURRIED, f"--jobs {jobs} --out out")
    wait_for_fits(place, process, total // 2)
    began = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - began < 10
    assert stderr == "interrupted; run the same command to go on from here\n"
    assert "Guaranteed" not in stdout
    assert not (place / "out").exists()
    assert leftovers(place) == [".out.journal.sqlite"]
    done = fits(place)
    result = program("audit t.csv --target y", UNHURRIED, f"--jobs {jobs} --out out")
    assert result.returncode == 0, result.stderr
    assert content(place / "out") == whole
    assert leftovers(place) == []
    assert fits(place) - done < total - total // 4  # the rest, from the journal on


@pytest.mark.slow
def test_ctrl_c_while_things_load(place):
    """Inside an import Python loses a KeyboardInterrupt or calls it an ImportError."""
    draw = random.Random(2)  # noqa: S311
    for delay in [draw.uniform(0.3, 1.2) for _ in range(6)]:
        process = start(UNHURRIED, "--out out")
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
        if stderr.startswith("Traceback"):
            assert "in <module>" in stderr  # before our first line ran
            continue
        assert process.returncode == 130
        assert stderr == "interrupted; run the same command to go on from here\n"
        assert not (place / "out").exists()


def test_the_journal_of_another_model_is_not_used(place):
    """Same command, same data, but the module was edited after the kill."""
    process = start(UNHURRIED, "--out out")
    wait_for_fits(place, process, 16)
    os.killpg(process.pid, signal.SIGKILL)
    quiet_end(process)
    assert leftovers(place) != []
    models = place / "models_of_cli_tests.py"
    models.write_text(models.read_text().replace("Unhurried(scale=10.5", "Unhurried(scale=20.0"))
    before = fits(place)
    assert surelearn("audit t.csv --target y", UNHURRIED, "--out out").exit_code == 0
    fresh = fits(place) - before
    assert surelearn("audit t.csv --target y", UNHURRIED, "--out whole --ledger apart.json").exit_code == 0
    assert fresh == fits(place) - before - fresh
    assert content(place / "out") == content(place / "whole")


def test_two_runs_for_one_folder(place):
    process = start(UNHURRIED, "--out out")
    wait_for_fits(place, process, 1)
    result = audit("--out out")
    process.kill()
    quiet_end(process)
    assert "--out out is being written by another run" in refusal(result)


def test_a_damaged_journal_is_set_aside_and_said(place):
    (place / ".out.journal.sqlite").write_text("this is no journal, but somebody's notes\n" * 100)
    result = audit("--out out")
    assert result.exit_code == 0
    assert "not a journal" in result.stderr
    assert set(WRITTEN) <= set(names(place / "out"))
    assert leftovers(place) == [".out.journal.sqlite.aside-1"]  # never deleted: it is not ours


def test_what_a_killed_run_left_beside_the_folder_is_taken_away(place):
    (place / ".out.part").mkdir()
    (place / ".out.part" / "report.html").write_text("half")
    assert audit("--out out").exit_code == 0
    assert leftovers(place) == []


# --------------------------------------------------------------------------------------------------------- theorems and help


def test_theorems_are_listed():
    result = surelearn("theorems")
    assert result.exit_code == 0
    listed = [line.split()[0] for line in result.stdout.splitlines()]
    assert listed == [theorem.key for theorem in bounds.theorems()]
    assert len(listed) > 40


def test_one_theorem_with_its_number():
    result = surelearn("theorems clopper_pearson")
    theorem = bounds.clopper_pearson
    assert theorem.reference in result.stdout
    assert theorem.assumes
    assert all(line in result.stdout for line in theorem.assumes)
    assert theorem.certify(**theorem.example).bound() in result.stdout
    assert "Examples" not in result.stdout


@pytest.mark.parametrize("theorem", bounds.theorems(), ids=lambda theorem: theorem.key)
def test_every_theorem_has_a_worked_number(theorem):
    result = surelearn(["theorems", theorem.key])
    assert result.exit_code == 0
    assert theorem.reference in result.stdout
    assert f"{theorem.key}(" in result.stdout.split("For example")[1]
    assert max(map(len, result.stdout.splitlines())) < 400


def test_an_unknown_theorem():
    assert "'lemma'" in refusal(surelearn("theorems lemma"))


def test_help_has_examples():
    for command in ("", "audit"):
        result = surelearn(command, "--help")
        assert result.exit_code == 0
        assert "surelearn audit titanic.csv --target Survived" in result.stdout
    for option in ("--target", "--group", "--max-risk", "--seed", "--ledger"):
        assert option in surelearn("audit -h").stdout


def test_every_example_names_real_options():
    text = surelearn("audit --help").stdout.partition("Examples:")[2]
    known = {option for p in main.commands["audit"].params for option in (*p.opts, *p.secondary_opts)}
    used = set(re.findall(r"--[a-z-]+", text))
    assert used
    assert used <= known


def test_no_arguments_show_the_usage():
    result = surelearn()
    assert "Usage: " in result.output
    assert "audit" in result.output
    assert result.exit_code in (0, 2)


def test_the_version():
    from surelearn.version import __version__

    assert surelearn("--version").stdout == f"surelearn, version {__version__}\n"


def test_an_unknown_command():
    assert "'audti'" in refusal(surelearn("audti t.csv"))


# ----------------------------------------------------------------------------------------------------------- hostile names

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "closing": "</title></style></svg><img src=x onerror=alert(1)>",
    "quotes": "\" onmouseover='alert(1)' x=\"",
    "line break": "first\nsecond\r\nthird",
    "long": "very long " * 500,
    "endless": "x" * 5000,
    "unicode": "größe 🦆 عمر \u202etfel",
    "stars": "**bold** 9**",
    "backticks": "`code` ``` {{7*7}} {% raw %} ${x}",
    "terminal": "\x1b[2J\x1b]0;owned\x07",
    "Markdown": "[click](javascript:alert(1)) @team # |",
}


def write_hostile(path, columns, label):
    """The good table with other names of columns and another name of the class "yes"."""
    quoted = '"{}"'.format(label.replace('"', '""'))
    text = write_table(path, columns).read_text(encoding="utf-8")
    path.write_text(re.sub(r"\byes$", lambda _: quoted, text, flags=re.M), encoding="utf-8", newline="")


def check_inert(place, tame, result):
    assert result.exit_code == 0, result.output
    out = place / "surelearn-audit"
    text, markdown = ((out / name).read_text(encoding="utf-8") for name in ("report.html", "report.md"))
    page = Page(text)
    assert page.tags <= tame.tags
    assert page.attributes <= tame.attributes
    assert len(text.encode()) < 1_000_000
    assert "\x1b" not in result.stdout + text + markdown
    outside = re.sub(r"^(`{3,}).*?^\1$", "", markdown, flags=re.M | re.S)
    assert "### surelearn audit" in outside
    assert "```" not in outside
    assert not re.search(r"<(?!/?sub>)", outside)
    assert "](" not in outside
    document = Audit.from_json((out / "audit.json").read_text(encoding="utf-8"))
    assert max(len(line) for line in result.stdout.splitlines() if "new rows like these" not in line) < 1000
    assert document.verdict.text.startswith("On new rows like these")
    assert document.certificate.verify()


@pytest.fixture(scope="module")
def tame(tmp_path_factory):
    """A page with every kind of element."""
    folder = tmp_path_factory.mktemp("tame")
    with pytest.MonkeyPatch.context() as monkeypatch:
        for _ in prepare(folder, monkeypatch):
            write_hostile(folder / "u.csv", ("`x` " + "long " * 100, "z", "c", "y"), "`yes` " + "long " * 100)
            result = audit("--slice c", ["--positive", ("`yes` " + "long " * 100).strip()], table="u.csv")
            assert result.exit_code == 0, result.output
    return Page((folder / "surelearn-audit" / "report.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_name_is_inert(case, place, tame):
    name = HOSTILE[case]
    write_hostile(place / "u.csv", (name, "z", "c", "y"), "yes" if case == "terminal" else name)
    table = read_table(place / "u.csv", target="y")  # which strips names
    column, label = table.columns[0].name, (set(table.y.tolist()) - {"no"}).pop()
    assert column[:3] == name.strip()[:3]
    result = audit("--format html --format md", ["--positive", label, "--slice", column], table="u.csv")
    check_inert(place, tame, result)


def test_all_hostile_names_at_once(place, tame):
    """With the preparation of columns that the default candidates have."""
    few = [HOSTILE[case] for case in ("script", "line break", "stars", "backticks")]
    write_hostile(place / "u.csv", few, HOSTILE["closing"])
    target = read_table(place / "u.csv", target=-1).target
    models = "--format html --format md --model models_of_cli_tests:prepared --jobs 1 --ledger ledger.json"
    check_inert(place, tame, surelearn(["audit", "u.csv", "--target", target], models))


@pytest.mark.parametrize("file", ["<i>&.csv", "a b'c\".csv", "größe.csv", os.fsdecode(b"not-utf8-\xff.csv")])
def test_a_hostile_file_name(file, place, tame):
    shutil.copy(place / "t.csv", place / file)
    result = surelearn(["audit", file], "--target y --format html --format md", QUICK)
    check_inert(place, tame, result)
    assert file[:9] in page_text(place / "surelearn-audit")


# --------------------------------------------------------------------------------------------------------------- real data


@pytest.mark.slow
def test_titanic(place):
    if not TITANIC.exists():
        pytest.skip(f"{TITANIC} is not there")
    shutil.copy(TITANIC, place / "titanic.csv")
    result = surelearn("audit titanic.csv --target Survived", QUICK.replace("quick", "prepared"))
    assert result.exit_code == 0, result.output
    assert re.search(r"identifier +PassengerId +dropped", result.stdout)
    document = Audit.from_json((place / "surelearn-audit" / "audit.json").read_text(encoding="utf-8"))
    assert "errors" in document.verdict.text
    identifier = [finding for finding in document.findings if finding.code == "SL101"]
    assert "PassengerId" in " ".join(finding.text for finding in identifier)


@pytest.mark.slow
def test_no_arguments_audit_breast_cancer(place):
    result = program("audit")
    assert result.returncode == 0, result.stderr
    assert "breast_cancer  569 rows, 30 columns" in result.stdout
    assert re.search(r"at most \d+\.\d% errors, .* and at most \d+\.\d% of malignant cases missed", result.stdout)
    certificate = Certificate.from_json((place / "surelearn-audit" / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["risk"].value < 0.12
    assert leftovers(place) == []
    assert (place / "state" / "surelearn").is_dir()
