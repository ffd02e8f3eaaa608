"""How the sections that attack a model run: beside each other, within their work, and whatever one of them raises."""

from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression

import surelearn
from surelearn import jobs
from surelearn.auditing import flow, trust
from surelearn.auditing.context import Unusable
from surelearn.cli import main
from surelearn.report import Section

QUOTES = "(its message may quote a row: `--show-rows` prints it)"
QUICK = {"ledger": False, "refits": 0, "curve_repeats": 0}


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=120) > 0).astype(int)
    return LogisticRegression().fit(X[:60], y[:60]), X[60:], y[60:]


def raising(error):
    raise error


def module(title="Title", tasks=None, section=None):
    """A module of three tasks whose section says what they return, unless told otherwise."""

    def three(context):
        keys = [f"{title}/{i}" for i in range(3)]
        return [jobs.Task(key, jobs.seed_for, {"key": key, "random_state": context.seed(key)}) for key in keys]

    def said(_, results):
        return Section(key=title, title=title, notes=tuple(map(str, results)))

    return SimpleNamespace(TITLE=title, tasks=tasks or three, section=section or said)


def always(result):
    return lambda *_: result


def fails(error):
    return lambda *_: raising(error)


def audit_with(monkeypatch, fitted, modules, **options):
    for place in (trust, flow):
        monkeypatch.setattr(place, "MODULES", modules)
    result = surelearn.audit(*fitted, **{**QUICK, **options})
    return {section.key: section for section in result.sections if section.key in modules}


@pytest.mark.parametrize("stage", ["plan", "task", "section"])
@pytest.mark.parametrize(
    ("error", "note"),
    [
        (Unusable("The model has\nno gradient."), "Not measured: The model has no gradient."),
        (ZeroDivisionError("by zero"), f"Not measured: it raised ZeroDivisionError {QUOTES}."),
        (KeyError(), "Not measured: it raised KeyError"),
    ],
)
def test_what_one_section_raises_leaves_the_others(stage, error, note, monkeypatch, fitted):
    broken = {
        "plan": module("b", tasks=fails(error)),
        "task": module("b", tasks=always([jobs.Task("it", raising, {"error": error})])),
        "section": module("b", section=fails(error)),
    }[stage]
    found = audit_with(monkeypatch, fitted, {"a": module("a"), "b": broken, "c": module("c")})
    assert list(found) == ["a", "b", "c"]
    assert found["b"].notes == (note,)
    assert found["b"].title == "b"
    assert [len(found[key].notes) for key in "ac"] == [3, 3]


def test_a_section_may_have_nothing_to_say_or_nothing_to_do(monkeypatch, fitted):
    modules = {
        "a": module("a", section=always(None)),
        "b": module("b", tasks=always([]), section=lambda _, results: Section(key="b", title=str(results))),
    }
    found = audit_with(monkeypatch, fitted, modules)
    assert list(found) == ["b"]
    assert found["b"].title == "[]"


def test_results_reach_their_sections_whatever_the_jobs_and_the_other_sections(monkeypatch, fitted):
    both = {"a": module("a"), "b": module("b")}
    one, two = (audit_with(monkeypatch, fitted, both, n_jobs=count) for count in (1, 2))
    assert one == two
    assert one["a"].notes != one["b"].notes
    alone = audit_with(monkeypatch, fitted, both, skip=["a"])
    assert list(alone) == ["b"]
    assert alone["b"] == one["b"]
    assert audit_with(monkeypatch, fitted, both, seed=1)["a"] != one["a"]


def test_sections_that_are_switched_off_do_no_work(monkeypatch, fitted):
    for one in trust.MODULES.values():
        monkeypatch.setattr(one, "tasks", fails(AssertionError("this section was switched off")))
    result = surelearn.audit(*fitted, skip=list(trust.MODULES), **QUICK)
    assert not set(trust.MODULES) & {section.key for section in result.sections}


def test_one_section_is_skipped_by_its_name_alone(monkeypatch, fitted):
    both = {"one": module("one"), "other": module("other")}
    assert set(audit_with(monkeypatch, fitted, both, skip="one")) == {"other"}


@pytest.mark.parametrize("skip", [["nonsense"], ["attribution", "nonsense"], "nonsense"])
def test_unknown_sections_are_refused(skip, fitted):
    with pytest.raises(ValueError, match=r"^skip must name sections among robustness, .*attribution, not 'nonsense'"):
        surelearn.audit(*fitted, skip=skip, **QUICK)


@pytest.mark.parametrize("effort", [0, -1, float("inf"), float("nan"), "a", None])
def test_effort_is_a_finite_number_above_zero(effort, fitted):
    with pytest.raises(ValueError, match=r"^effort must be a finite number above 0, not "):
        surelearn.audit(*fitted, effort=effort, **QUICK)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--skip", "nonsense"], f"--skip must name sections among {', '.join(trust.MODULES)}, not 'nonsense'"),
        (["--effort", "0"], "--effort must be a finite number above 0, not 0"),
        (["--effort", "nan"], "--effort must be a finite number above 0, not nan"),
    ],
)
def test_the_command_line_refuses_them_in_one_sentence(words, said, tmp_path):
    result = CliRunner().invoke(
        main, ["audit", "iris", "--model", "majority", "--jobs", "1", "--out", str(tmp_path / "out"), *words]
    )
    assert result.exit_code == 2
    assert result.output.strip() == said
    assert not (tmp_path / "out").exists()


def test_the_command_line_lists_what_is_proved(tmp_path):
    words = ["audit", "breast_cancer", "--model", "logistic regression", "--jobs", "1", "--out", str(tmp_path / "out")]
    words += ["--ledger", str(tmp_path / "ledger"), "--effort", "0.2", "--skip", "membership", "--skip", "attribution"]
    lines = CliRunner().invoke(main, words).output.splitlines()
    at = lines.index("Proved, each alone at its own confidence")
    assert lines[at + 1].startswith("  new rows that are right, and stay so when every number changes")
    assert lines[at + 1].endswith("(95%), and 3 more on the page")
    assert "poisoned rows per clean row, within the columns' range, to flip the answer on every fit row" in lines[at + 2]
    assert "(deterministic), and 2 more on the page" in lines[at + 2]


def test_neither_skip_nor_effort_makes_it_another_use_of_the_rows(fitted, tmp_path):
    options = {"refits": 0, "curve_repeats": 0, "ledger": tmp_path / "ledger"}
    turns = [
        surelearn.audit(*fitted, skip=list(trust.MODULES), effort=effort, **options).numbers["turn"] for effort in (1, 2)
    ]
    assert turns == [1, 1]
