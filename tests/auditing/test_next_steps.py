"""What to do next: each step stands where its finding or claim asks for it, with a command that
says the same.
"""

import re
import shlex
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression, Ridge

import surelearn
from surelearn.auditing.sections import next_steps
from surelearn.claim import Finding
from surelearn.cli import main
from surelearn.jobs import Runner
from surelearn.report import Audit, Section

QUICK = {
    "ledger": False,
    "refits": 0,
    "curve_repeats": 0,
    "skip": ("robustness", "poisoning", "membership", "attribution"),
}


def steps(result):
    """What, why and how, by what."""
    tables = [
        table for section in result.sections if section.key == "next" for table in section.tables
    ]
    return {row[0]: row for table in tables for row in table.rows}


def rare(n=1200, seed=0):
    """One in twenty-five is ill, and the columns hardly tell which."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    ill = rng.random(n) < 0.04
    return frame.assign(a=frame.a + 1.5 * ill, state=np.where(ill, "ill", "well"))


def audited(frame, target="state", models=None, command="surelearn audit t.csv", **options):
    models = models or {"it": LogisticRegression()}
    runner = Runner(n_jobs=1, command=command)
    return surelearn.audit(
        frame, target=target, models=models, runner=runner, **{**QUICK, **options}
    )


def test_a_missed_rare_class_is_named_with_a_cost():
    what, why, how = steps(audited(rare()))["Name the class that matters, and what a miss costs"]
    assert "‘ill’" in why
    assert how == "`--positive ill --cost 10`, or `--positive ill --require 'sensitivity >= 0.95'`"
    asked = audited(rare(), positive="ill", cost=10)
    assert what not in steps(asked)
    in_python = steps(audited(rare(), command=""))[what]
    assert (
        in_python[2]
        == "`positive='ill', cost=10`, or `positive='ill', require='sensitivity >= 0.95'`"
    )


def test_a_requirement_is_only_advised_where_it_can_be_kept():
    frame = rare().assign(who=np.arange(1200) // 2)
    step = steps(audited(frame, group="who"))["Name the class that matters, and what a miss costs"]
    assert step[2] == "`--positive ill --cost 10`"


def test_the_class_that_matters_is_found_by_its_name():
    """One row in four is a fraud: no rare class, but of those most are missed; under names that say
    nothing they are not looked for.
    """
    rng = np.random.default_rng(5)
    x, bad = rng.normal(size=(1500, 3)), rng.random(1500) < 0.25
    frame = pd.DataFrame(x + 1.6 * np.outer(bad, [1, 0, 0]), columns=list("abc"))
    named = audited(frame.assign(state=np.where(bad, "Fraud", "fine")))
    assert named.verdict.kind == "warning", named.verdict.text
    assert "% of ‘Fraud’ rows may be missed" in named.verdict.text
    advised = '`surelearn audit t.csv --positive Fraud --require "sensitivity >= 0.95"`'
    assert f"or how much of it must be found: {advised}" in named.verdict.text
    silent = audited(frame.assign(state=np.where(bad, "left", "right")))
    assert "may be missed" not in silent.verdict.text
    _, _, how = steps(silent)["Name the class that matters"]
    assert how == "`--positive left`, or `--positive left --require 'sensitivity >= 0.95'`"


def test_the_rows_to_label_are_those_of_the_command():
    result = audited("breast_cancer", target=None, positive="malignant")
    _, why, how = steps(result)["Label more rows"]
    command = shlex.split(how.strip("`"))
    assert command[:2] == ["surelearn", "plan"]
    said = CliRunner().invoke(main, command[1:]).output
    (rows,) = re.findall(r"hold back ([\d,]+) rows instead of 176", why)
    assert re.search(rf"on the audit's page +{rows} labeled rows", said), said
    caught = result.certificate["sensitivity"]
    goal = float(command[command.index("--min-sensitivity") + 1])
    assert caught.value < goal < caught.measured


def test_a_tight_bound_asks_for_no_rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=20_000)})
    frame["y"] = np.where((frame.x > 0) ^ (rng.random(20_000) < 0.3), 1, 0)
    result = audited(frame, "y", command="", select_fraction=0.0)
    claim = result.certificate["risk"]
    assert claim.value < next_steps.LOOSE * claim.measured
    assert "Label more rows" not in steps(result)


def test_groups_and_leaks_come_first():
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(80), 5)
    frame = pd.DataFrame(
        {"patient": patient, "x": rng.normal(size=400), "y": (patient % 2).astype(int)}
    )
    result = audited(frame, "y")
    assert result.verdict.kind == "no verdict"
    first = result["next"].tables[0].rows[0]
    assert first[0] == "Say which rows belong together"
    assert first[2].startswith("`--group patient`")
    assert "In production, watch the claims" not in steps(result)
    assert first[0] not in steps(audited(frame, "y", group="patient"))
    x = rng.normal(size=300)
    leak = pd.DataFrame(
        {"x": x, "after all": np.where(x > 0, "yes", "no"), "y": (x > 0).astype(int)}
    )
    leak.loc[:2, "y"] = 1 - leak.loc[:2, "y"]
    leak["after all"] = np.where(leak.y == 1, "yes", "no")
    leak["x"] = rng.normal(size=300)
    how = audited(leak, "y")["next"].tables[0].rows[0][2]
    assert how.startswith("`--drop 'after all'` if not, `--keep 'after all'`")


def test_a_regression_is_asked_for_its_range():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300)})
    frame["y"] = frame.x + rng.normal(size=300)
    result = audited(frame, "y", models={"ridge": Ridge()})
    assert "State the largest possible error" in steps(result)
    stated = audited(frame, "y", models={"ridge": Ridge()}, loss_bound=20.0)
    assert "State the largest possible error" not in steps(stated)


FOUND = {
    "Recalibrate the probabilities": Finding(
        code="SL301", text="It is off. More.", severity="warning"
    ),
    "Predict on another scale": Finding(code="SL302", text="80% covered.", severity="warning"),
    "Check a column": Finding(
        code="SL662", text="`a` alone has 97%. If it is known", numbers={"column": "a b"}
    ),
    "Check a label": Finding(
        code="SL622", text="Row.", severity="warning", numbers={"row": 1214, "change": -0.3}
    ),
    "Prefer a simpler model": Finding(code="SL401", text="Refits differ.", severity="warning"),
    "Say whether rows came in an order of time": Finding(
        code="SL109", text="Sorted.", severity="notice"
    ),
}


@pytest.fixture(scope="module")
def context():
    """What the sections of an audit were written from."""
    kept = {}
    write = next_steps.section
    with pytest.MonkeyPatch.context() as patch:
        entry = replace(
            next_steps.ENTRY,
            write=lambda context, sections: kept.update(of=context) or write(context, sections),
        )
        from surelearn.auditing import flow

        entries = [entry if one.key == "next" else one for one in flow.ENTRIES]
        patch.setattr(flow, "ENTRIES", tuple(entries))
        audited("breast_cancer", target=None, positive="malignant")
    return kept["of"]


@pytest.mark.parametrize("what", FOUND)
def test_a_finding_asks_for_its_step(context, what):
    section = Section(key="s", title="S", findings=(FOUND[what],))
    made = next_steps.section(context, [section])
    asked = {row[0]: row for row in made.tables[0].rows}
    assert what in asked
    assert what not in {row[0] for row in next_steps.section(context, []).tables[0].rows}
    if what == "Check a column":
        assert asked[what][2] == "`--drop 'a b'` if it is known only after the outcome"
    harmless = replace(FOUND[what], severity="info", numbers={**FOUND[what].numbers, "change": 0.3})
    if what not in ("Check a column", "Say whether rows came in an order of time"):
        silent = next_steps.section(context, [replace(section, findings=(harmless,))])
        assert what not in {row[0] for row in silent.tables[0].rows}


def test_there_are_few_and_production_is_the_last(context):
    left_out = replace(context, left_out=("forest", "machine"))
    section = Section(key="s", title="S", findings=tuple(FOUND.values()))
    made = next_steps.section(left_out, [section]).tables[0].rows
    assert len(made) == next_steps.MOST
    assert made[-1][0] == "In production, watch the claims"
    few = next_steps.section(left_out, []).tables[0].rows
    assert ("Try more candidates", "`--minutes 5`") in {(row[0], row[2]) for row in few}


def test_it_is_data_and_on_the_page(context):
    result = audited("breast_cancer", target=None, positive="malignant")
    page, text = result.to_html(), result.to_markdown()
    titles = ("Guaranteed", "Measured", "Assumptions", "What to do next", "Details")
    places = [page.index(f'aria-label="{title}"') for title in titles]
    assert places == sorted(places)
    listed = page[page.index('class="toc"') :]
    places = [listed.index(f">{title}</bdi></a>") for title in titles]
    assert places == sorted(places)
    assert text.index("**Assumes**") < text.index("**What to do next**")
    assert page.count('<ol class="steps">') == 1
    assert "**What to do next**, no guarantee" in text
    assert Audit.from_json(result.to_json()).to_html() == page
