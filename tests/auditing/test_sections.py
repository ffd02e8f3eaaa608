"""How the sections of the page run: beside each other, each skipped by its name, and whatever
one of them raises.
"""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression

import surelearn
from surelearn import jobs
from surelearn.auditing import flow, sections
from surelearn.auditing.sections import ENTRIES, skippable
from surelearn.auditing.writing import Entry
from surelearn.cli import main
from surelearn.lacking import Lacking
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


def entry(key, tasks=None, write=None):
    """Three tasks, and a section that says what they return, unless told otherwise."""

    def three(context):
        keys = [f"{key}/{i}" for i in range(3)]
        return [
            jobs.Task(key, jobs.seed_for, {"key": key, "random_state": context.seed(key)})
            for key in keys
        ]

    def said(_, results):
        return Section(key=key, title=key, notes=tuple(map(str, results)))

    return Entry(key=key, title=key, write=write or said, tasks=tasks or three)


def always(result):
    return lambda *_: result


def fails(error):
    return lambda *_: raising(error)


def audit_with(monkeypatch, fitted, *entries, **options):
    monkeypatch.setattr(flow, "ENTRIES", entries)
    monkeypatch.setattr(sections, "ENTRIES", entries)
    result = surelearn.audit(*fitted, **{**QUICK, **options})
    return {section.key: section for section in result.sections}


@pytest.mark.parametrize("stage", ["plan", "task", "section"])
@pytest.mark.parametrize(
    ("error", "note"),
    [
        (ZeroDivisionError("by zero"), f"Not measured: it raised ZeroDivisionError {QUOTES}."),
        (KeyError(), "Not measured: it raised KeyError"),
    ],
)
def test_what_one_section_raises_leaves_the_others(stage, error, note, monkeypatch, fitted):
    broken = {
        "plan": entry("b", tasks=fails(error)),
        "task": entry("b", tasks=always([jobs.Task("it", raising, {"error": error})])),
        "section": entry("b", write=fails(error)),
    }[stage]
    found = audit_with(monkeypatch, fitted, entry("a"), broken, entry("c"))
    assert list(found) == ["a", "b", "c"]
    assert found["b"].notes == (note,)
    assert found["b"].title == "b"
    assert [len(found[key].notes) for key in "ac"] == [3, 3]


@pytest.mark.parametrize("stage", ["plan", "task", "section"])
def test_what_one_section_lacks_is_its_note(stage, monkeypatch, fitted):
    lacking = Lacking("gradient", "The model has no gradient.")
    broken = {
        "plan": entry("b", tasks=always(lacking)),
        "task": entry("b", tasks=always([jobs.Task("it", always(lacking), {})])),
        "section": entry("b", write=always(lacking)),
    }[stage]
    found = audit_with(monkeypatch, fitted, entry("a"), broken, entry("c"))
    assert list(found) == ["a", "b", "c"]
    assert found["b"].notes == ("Not measured: The model has no gradient.",)
    assert found["b"].title == "b"


def test_a_section_may_have_nothing_to_say_or_nothing_to_do(monkeypatch, fitted):
    idle = entry(
        "b", tasks=always([]), write=lambda _, results: Section(key="b", title=str(results))
    )
    found = audit_with(monkeypatch, fitted, entry("a", write=always(None)), idle)
    assert list(found) == ["b"]
    assert found["b"].title == "[]"


def test_results_reach_their_sections_whatever_the_jobs_and_the_other_sections(monkeypatch, fitted):
    both = entry("a"), entry("b")
    one, two = (audit_with(monkeypatch, fitted, *both, n_jobs=count) for count in (1, 2))
    assert one == two
    assert one["a"].notes != one["b"].notes
    alone = audit_with(monkeypatch, fitted, *both, skip=["a"])
    assert list(alone) == ["b"]
    assert alone["b"] == one["b"]
    assert audit_with(monkeypatch, fitted, *both, seed=1)["a"] != one["a"]


def test_what_only_has_words_is_not_guarded(monkeypatch, fitted):
    """Such a section asks the model nothing: an error in it is ours."""
    broken = Entry(key="a", title="a", write=fails(ZeroDivisionError("by zero")))
    with pytest.raises(ZeroDivisionError):
        audit_with(monkeypatch, fitted, broken)


def test_sections_that_are_skipped_do_no_work(monkeypatch, fitted):
    wrong = fails(AssertionError("this section was skipped"))
    entries = [one if one.required else replace(one, write=wrong, tasks=wrong) for one in ENTRIES]
    found = audit_with(monkeypatch, fitted, *entries, skip=skippable())
    # nothing is known of the rows of a model that was fitted elsewhere
    assert set(found) == {"assumptions"}


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_section_can_be_skipped_and_is_named_as_it_stands(task, tmp_path):
    """Keys are those of the page; what the claims rest on stays; the page is drawn without the
    others.
    """
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    signal = frame["a"] + 0.5 * rng.normal(size=200)
    frame["y"] = signal if task == "regression" else np.where(signal > 0, "yes", "no")
    options = {
        "target": "y",
        "models": "median" if task == "regression" else "naive Bayes",
        "ledger": False,
        "effort": 0.1,
    }
    options |= {"refits": 2, "curve_repeats": 1, "n_jobs": 1}
    everything = surelearn.audit(frame, **options)
    keys = [section.key for section in everything.sections]
    order = [entry.key for entry in ENTRIES]
    assert [key for key in order if key in keys] == keys
    assert {
        "robustness",
        "poisoning",
        "membership",
        "attribution",
        "stability",
        "learning_curve",
    } <= set(keys)
    bare = surelearn.audit(frame, **options, skip=skippable())
    assert [section.key for section in bare.sections] == ["data", "assumptions", "split"]
    assert bare.certificate == everything.certificate
    assert bare.verdict == everything.verdict
    page = bare.to_html()
    assert all(section.title in page for section in bare.sections)
    left_out = [section.title for section in everything.sections if section.key in skippable()]
    drawn, whole = (
        set(re.findall(r"<(?:h2|h3|summary)[^>]*>\s*([^<]*?)\s*<", one))
        for one in (page, everything.to_html())
    )
    assert {"Adversarial robustness", "Stability"} <= whole & set(left_out)
    assert not drawn & set(left_out)
    assert bare.verdict.text[:20] in bare.to_markdown()
    one = surelearn.audit(frame, **options, skip=[key for key in skippable() if key != "stability"])
    assert one["stability"] == everything["stability"]


@pytest.mark.parametrize("key", ["data", "assumptions", "split"])
def test_what_the_claims_rest_on_cannot_be_skipped(key, fitted):
    with pytest.raises(ValueError, match=f"^skip knows the sections .*, not '{key}'"):
        surelearn.audit(*fitted, skip=key, **QUICK)


def test_keys_are_identifiers_and_each_is_used_once():
    keys = [entry.key for entry in ENTRIES]
    assert len({*keys}) == len(keys)
    assert all(key.isidentifier() for key in keys)


def test_one_section_is_skipped_by_its_name_alone(monkeypatch, fitted):
    both = entry("one"), entry("other")
    assert set(audit_with(monkeypatch, fitted, *both, skip="one")) == {"other"}


@pytest.mark.parametrize("skip", [["nonsense"], ["attribution", "nonsense"], "nonsense"])
def test_unknown_sections_are_refused(skip, fitted):
    with pytest.raises(
        ValueError, match=r"^skip knows the sections over_time, .*columns, not 'nonsense'"
    ):
        surelearn.audit(*fitted, skip=skip, **QUICK)


@pytest.mark.parametrize("effort", [0, -1, float("inf"), float("nan"), "a", None])
def test_effort_is_a_finite_number_above_zero(effort, fitted):
    with pytest.raises(ValueError, match=r"^effort must be a finite number above 0, not "):
        surelearn.audit(*fitted, effort=effort, **QUICK)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--skip", "nonsense"],
            f"--skip knows the sections {', '.join(skippable())}, not 'nonsense'",
        ),
        (["--effort", "0"], "--effort must be a finite number above 0, not 0"),
        (["--effort", "nan"], "--effort must be a finite number above 0, not nan"),
    ],
)
def test_the_command_line_refuses_them_in_one_sentence(words, said, tmp_path):
    result = CliRunner().invoke(
        main,
        [
            "audit",
            "iris",
            "--model",
            "majority",
            "--jobs",
            "1",
            "--out",
            str(tmp_path / "out"),
            *words,
        ],
    )
    assert result.exit_code == 2
    assert result.output.strip() == said
    assert not (tmp_path / "out").exists()


def test_the_command_line_lists_what_is_proved(tmp_path):
    words = [
        "audit",
        "breast_cancer",
        "--model",
        "logistic regression",
        "--jobs",
        "1",
        "--out",
        str(tmp_path / "out"),
    ]
    words += [
        "--ledger",
        str(tmp_path / "ledger"),
        "--effort",
        "0.2",
        "--skip",
        "membership",
        "--skip",
        "attribution",
    ]
    lines = CliRunner().invoke(main, words).output.splitlines()
    at = lines.index("Proved, each alone at its own confidence")
    assert lines[at + 1].startswith(
        "  robust accuracy on new rows, every number changed by at most 0.1 standard deviations"
        " in L∞"
    )
    assert lines[at + 1].endswith("(95%), and 3 more on the page")
    assert (
        "poisoned rows per clean row, within the columns' range, to flip the answer on every"
        " fit row" in lines[at + 2]
    )
    assert "(deterministic), and 2 more on the page" in lines[at + 2]


def test_neither_skip_nor_effort_makes_it_another_use_of_the_rows(fitted, tmp_path):
    options = {"refits": 0, "curve_repeats": 0, "ledger": tmp_path / "ledger"}
    turns = [
        surelearn.audit(*fitted, skip=skippable(), effort=effort, **options).numbers["turn"]
        for effort in (1, 2)
    ]
    assert turns == [1, 1]
