"""`surelearn certify`: each kind of answers from a file to a page that verifies, checks, refusals, and
`gate` and `watch` on the same answers.
"""

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from surelearn.certificate import Certificate
from surelearn.plain import show

N = 300


def made(seed=0):
    """Rows of a vendor's answers, of another's, of scores, grades, duels and forecasts."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(["cancer", "healthy"], N, p=[0.3, 0.7])
    other = np.where(truth == "cancer", "healthy", "cancer")
    score = np.clip(np.where(truth == "cancer", 0.8, 0.2) + 0.15 * rng.normal(size=N), 0, 1)
    amount = rng.normal(50, 10, N).round(3)
    return pd.DataFrame(
        {
            "note": [f"case {seed} {i}" for i in rng.permutation(N)],
            "site": rng.choice(["A", "B"], N),
            "label": truth,
            "said": np.where(rng.random(N) < 0.05, other, truth),
            "old": np.where(rng.random(N) < 0.25, other, truth),
            "p": score.round(4),
            "passed": rng.random(N) < 0.9,
            "grade": rng.beta(8, 2, N).round(3),
            "winner": rng.choice(["new", "old", "tie"], N, p=[0.6, 0.2, 0.2]),
            "amount": amount,
            "forecast": (amount + rng.normal(0, 2, N)).round(3),
            "who": np.repeat(np.arange(N // 3), 3),
        }
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)  # tries are counted in the test's own ledger
    made().drop(columns="who").to_csv("t.csv", index=False)
    return tmp_path


KINDS = {
    "answers": ("--truth label --answer said", "t most 10.9% errors"),
    "slices": ("--truth label --answer said --slice site", "errors where site = "),
    "a class that matters": (
        "--truth label --answer said --positive cancer",
        "cancer cases missed",
    ),
    "scores": ("--truth label --score p --positive cancer", "AUC for cancer"),
    "a cost": ("--truth label --score p --positive cancer --cost 5", "mean cost"),
    "against": ("--truth label --answer said --against old", "fewer errors than ‘old’"),
    "passes": ("--pass passed", "the pass rate is at least 8"),
    "grades": ("--grade grade --loss-range 0 1", "the mean of ‘grade’ is at least 0.7"),
    "duels": ("--winner winner --ours new", "so more than half"),
    "forecasts": ("--truth amount --answer forecast --loss-bound 60", "the mean absolute error is"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_answers(kind, here, shell):
    """Said, written, verified, measured again from the file; with one answer changed it differs."""
    options, said = KINDS[kind]
    result = shell.run(f"certify t.csv {options}")
    assert result.exit_code == 0, result.output
    assert said in result.stdout
    folder = here / "surelearn-certify"
    assert {path.name for path in folder.iterdir()} == {
        "report.html",
        "audit.json",
        "certificate.json",
    }
    page = (folder / "report.html").read_text()
    assert "surelearn certify" in page
    assert "held-back" not in page
    again = shell.run("verify surelearn-certify --data t.csv")
    assert (again.exit_code, "facts from model and rows" in again.stdout) == (0, True), again.output
    table = pd.read_csv("t.csv")
    for name in ("said", "passed", "grade", "winner", "forecast", "p"):
        table.loc[0, name] = table[name].drop_duplicates().iloc[-1]
    table.to_csv("changed.csv", index=False)
    assert shell.run("verify surelearn-certify --data changed.csv").exit_code == 1


def written(name):
    """The same rows in a file of another format."""
    table = made().drop(columns="who")
    if name.endswith(".tsv"):
        table.to_csv(name, sep="\t", index=False)
    elif name.endswith(".gz"):
        with gzip.open(name, "wt") as file:
            table.to_csv(file, index=False)
    elif name.endswith(".jsonl"):
        table.to_json(name, orient="records", lines=True)
    elif name.endswith(".arrow"):
        pyarrow.feather.write_feather(pa.Table.from_pandas(table), name)
    elif name.endswith(".parquet"):
        table.to_parquet(name)
    else:
        half = len(table) // 2
        pa.fs.LocalFileSystem().create_dir(name)
        table[:half].to_parquet(f"{name}/0.parquet")
        table[half:].to_parquet(f"{name}/1.parquet")


@pytest.mark.parametrize("name", ["t.tsv", "t.csv.gz", "t.jsonl", "t.arrow", "t.parquet", "parts"])
def test_every_format_gives_the_same_claims(name, here, shell):
    written(name)
    options = "--truth label --answer said --slice site --quiet"
    shell.run(f"certify t.csv {options} --out one --ledger one.ledger")
    result = shell.run(f"certify {name} {options} --out two --ledger two.ledger")
    assert result.exit_code == 0, result.output
    one, two = (
        Certificate.from_json((here / folder / "certificate.json").read_text()).facts.values
        for folder in ("one", "two")
    )
    assert one == two


def test_standard_input(here, shell):
    text = (here / "t.csv").read_text()
    result = shell.run("certify - --pass passed --out piped", input=text)
    assert result.exit_code == 0, result.output
    assert shell.run("verify piped --data t.csv").exit_code == 0


def test_parts_with_other_columns_are_refused(here, shell):
    written("parts")
    made().drop(columns=["who", "site"]).to_parquet("parts/2.parquet")
    refusal = shell.refusal("certify parts --pass passed")
    assert "2.parquet has other columns than 0.parquet" in refusal


REFUSED = {
    "no file": ("nowhere.csv --pass passed", "nowhere.csv"),
    "no column": ("t.csv --truth labl --answer said", "no column 'labl'. Did you mean 'label'?"),
    "no role": ("t.csv", "say what is what: --truth with --answer"),
    "two roles": ("t.csv --pass passed --grade grade", "only one of these"),
    "no truth": ("t.csv --answer said", "--answer needs --truth"),
    "no range": ("t.csv --grade grade", "--grade needs --loss-range"),
    "no ours": ("t.csv --winner winner", "--winner needs --ours"),
    "two checks": ("t.csv --pass passed --max-risk 0.1 --at-least 0.9", "one of them"),
    "a grade of errors": (
        "t.csv --truth label --answer said --at-least 0.9",
        "of errors say --max-risk",
    ),
    "a risk of grades": ("t.csv --grade grade --loss-range 0 1 --max-risk 0.1", "say --at-least"),
    "numbers for words": ("t.csv --truth label --answer amount", "no answer in column 'amount'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_calls_are_refused_in_one_sentence(name, here, shell):
    command, said = REFUSED[name]
    assert said in shell.refusal(f"certify {command}")


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("--grade grade --loss-range 0 0.5", "--grade grade --loss-range 0 1"),
        (
            "--truth amount --answer forecast --loss-bound 1",
            "--truth amount --answer forecast --loss-bound 60",
        ),
    ],
)
def test_a_range_that_rows_contradicted_is_not_stated_again(narrow, wide, here, shell):
    """It would be chosen by them: nothing that rests on it is claimed from these rows."""
    result = shell.run(f"certify t.csv {narrow}")
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert "--loss-" in result.stderr
    assert "=" not in result.stderr
    assert not (here / "surelearn-certify").exists()
    shell.run(f"certify t.csv {wide}")
    certificate = Certificate.from_json((here / "surelearn-certify/certificate.json").read_text())
    claimed = {claim.quantity for claim in certificate.together}
    assert not claimed & {"mean_grade", "mean_loss"}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("--truth label --answer said --max-risk 0.2", 0),
        ("--truth label --answer said --max-risk 0.02", 1),
        ("--pass passed --at-least 0.5", 0),
        ("--pass passed --at-least 0.95", 1),
        ("--pass passed --max-risk 0.5", 0),
        ("--winner winner --ours new --max-risk 0.01", 1),
    ],
)
def test_checks_end_with_a_code(options, code, here, shell):
    result = shell.run(f"certify t.csv {options}")
    assert result.exit_code == code
    assert ("check: " in result.stderr) == bool(code)


@pytest.mark.parametrize("options", ["--max-risk 0.9", '--require "sensitivity >= 0.3"'])
def test_checks_fail_where_rows_without_a_label_differ(options, here, shell):
    table = pd.read_csv("t.csv")
    table["label"] = table["label"].where(table["amount"] < 52, None)
    table.to_csv("t.csv", index=False)
    asked = f"certify t.csv --truth label --score p --positive cancer --quiet {options}"
    result = shell.run(asked)
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("Labeled rows only: ")
    assert "rows without a label differ; say --population labelled" in result.stderr
    assert shell.run(f"{asked} --population labelled").exit_code == 0


def test_a_second_look_pays_whichever_answers_it_is_about(here, shell):
    """The rows are known by what does not come from the model, also under another name."""
    shell.run("certify t.csv --truth label --answer said --drop old --drop p")
    table = pd.read_csv("t.csv").rename(columns={"old": "other"})
    table.sample(frac=1, random_state=1).to_csv("renamed.csv", index=False)
    result = shell.run("certify renamed.csv --truth label --answer other --drop said --drop p")
    assert "99.2%" in result.stdout
    assert "second look" in result.stdout
    new = made(seed=5).drop(columns="who")
    new.to_csv("new.csv", index=False)
    assert "second look" not in shell.run("certify new.csv --truth label --answer said").stdout


def test_groups_count_once_and_are_asked_for(here, shell):
    made().to_csv("grouped.csv", index=False)
    result = shell.run("certify grouped.csv --pass passed")
    assert "No verdict" in result.stdout
    assert "`--group who`" in result.stdout
    result = shell.run("certify grouped.csv --pass passed --group who --out grouped")
    assert "100 groups" in result.stdout
    assert "100 whos count, not 300 rows" in result.stdout


CLOSER = {  # of the options beside --loss-bound, what the first sentence says
    ("forecast", "far", "--loss-bound 60"): "On new rows like these, ‘forecast’ is at least ",
    ("forecast", "far", "--loss-bound 25 --group who"): "For a new who, as a mean over whos, ‘forecast’ is",
    ("far", "forecast", "--loss-bound 60"): "That ‘far’ is closer than ‘forecast’ is not guaranteed: a mean",
    ("forecast", "far", ""): "That ‘forecast’ is closer than ‘far’ is not guaranteed: say `--loss-bound B`,",
    ("forecast", "far", "--low low --high high"): "That ‘forecast’ is closer than ‘far’ is not guaranteed: say",
}  # fmt: skip


@pytest.mark.parametrize("case", CLOSER)
def test_forecasts_against_others_are_compared_in_the_first_sentence(case, here, shell):
    rng = np.random.default_rng(0)
    table = made()[["note", "who", "amount", "forecast"]]
    table["far"] = (table["amount"] + rng.normal(0, 6, N)).round(3)
    table = table.assign(low=table["forecast"] - 9, high=table["forecast"] + 9)
    table.to_csv("f.csv", index=False)
    ours, other, more = case
    more += "" if "--group" in more else " --independent"
    asked = f"certify f.csv --truth amount --answer {ours} --against {other} {more}"
    result = shell.run(f"{asked} --drop low --drop high --quiet" if "low" not in more else asked)
    assert result.exit_code == 0, result.output
    assert CLOSER[case] in result.stdout
    certificate = Certificate.from_json(
        (here / "surelearn-certify" / "certificate.json").read_text()
    )
    gains = [claim for claim in certificate.claims if claim.quantity == "gain"]
    assert len(gains) == ("--loss-bound" in more)
    if ours == "forecast" and gains:
        assert f"at least {show(gains[0].value, 'number', '>=')} closer on average" in result.stdout
        assert gains[0].value > 0.5
    assert "confidence" in result.stdout.rpartition("‘far’")[2]  # what else is guaranteed


SAID = {  # of a table, the words that refuse it
    "--truth label --answer said --weight w --weight-bound 0.4": "--weight-bound must be at least 1",
    "--truth label --answer said --weight w --weight-bound 2": "is N in w = 1/(N·q) the number of rows",
    "--grade grade --loss-range 0.9 1": "--loss-range 0.9 1 is not the range of losses",
    "--grade grade --loss-range 0.9 1 --one-pass": "--loss-range 0.9 1 is not the range of losses",
    "--truth label --answer said --max-risk 2": "--max-risk is a share of rows, at most 1, not 2",
    "--pass passed --at-least 90": "--at-least must be a number from 0 to 1, as what is certified",
    "--truth label --score endless --positive cancer": "column 'endless' is infinite in 1 of 300 scores",
}  # fmt: skip


@pytest.mark.parametrize("options", SAID)
def test_refusals_are_in_the_words_of_the_command(options, here, shell):
    table = pd.read_csv("t.csv").assign(w=0.5)
    table["endless"] = table["p"].where(table.index > 0, np.inf)
    table.to_csv("t.csv", index=False)
    result = shell.run(f"certify t.csv {options} --ledger l.json")
    assert (result.exit_code, SAID[options] in result.stderr) == (2, True), result.output
    assert not any(word in result.stderr for word in ("weight_bound", "loss_range", "True"))


def test_a_gate_and_an_audit_refuse_a_share_above_one(here, shell):
    for asked in ("gate t.csv --truth label --answer said", "audit t.csv --target label"):
        assert "--max-risk is a share of rows" in shell.refusal(f"{asked} --max-risk 2")
    assert "at least 1" not in shell.run("plan --at-least 0.9 --expected-risk 0.05").stdout
    plans = [shell.run(f"plan {asked}").stdout for asked in ("--at-least 0.9", "--max-risk 0.1")]
    assert plans[0] == plans[1]
    assert "two goals" in shell.refusal("plan --at-least 0.9 --max-risk 0.1")


@pytest.mark.parametrize("way", ["", "--one-pass"])
@pytest.mark.parametrize("other", ["b.csv", "c.jsonl.gz"])
def test_a_folder_of_mixed_tables_is_refused(here, shell, way, other):
    """The rows of the others would be left out silently; files that are no tables do not matter."""
    folder = here / "mixed"
    folder.mkdir()
    pd.DataFrame({"passed": [True, False] * 50}).to_parquet(folder / "a.parquet")
    for beside in ("_SUCCESS", ".hidden.csv", "README.md"):
        (folder / beside).write_text("x")
    assert shell.run(f"certify mixed --pass passed {way}").exit_code == 0
    (folder / other).write_text("x")
    said = shell.refusal(f"certify mixed --pass passed {way}")
    assert said.startswith(
        f"mixed holds Parquet files and '{other}': only files *.parquet are read"
    )


def test_a_page_without_a_verdict_is_an_answer_and_fails_a_check(here, shell):
    frame = pd.DataFrame({"user": [f"u{i // 4}" for i in range(400)], "ok": [True] * 400})
    frame.to_csv("users.csv", index=False)
    for check, code in (("", 0), ("--max-risk 0.5", 1), ("--at-least 0.1", 1)):
        result = shell.run(f"certify users.csv --pass ok --out users {check}")
        assert "No verdict" in result.output
        assert result.exit_code == code
    assert (here / "users" / "report.html").exists()


def test_a_folder_without_parquet_files_says_what_is_read(here, shell):
    (here / "nothing").mkdir()
    (here / "texts").mkdir()
    pd.read_csv("t.csv").to_csv("texts/t.csv", index=False)
    for folder, inside in (
        ("nothing", "it is empty"),
        ("texts", "it holds 1 files, such as 't.csv'"),
    ):
        for way in ("", "--one-pass"):
            said = shell.refusal(f"certify {folder} --pass passed {way}")
            assert f"{folder} is a folder without Parquet files ({inside})" in said


@pytest.mark.parametrize("way", ["", "--one-pass"])
def test_a_winner_that_is_ours_but_for_its_spelling_is_told(way, here, shell):
    table = pd.read_csv("t.csv")
    table.loc[:9, "winner"] = "New"
    table.to_csv("t.csv", index=False)
    result = shell.run(f"certify t.csv --winner winner --ours new {way}")
    assert "'New' won 10 duels of column 'winner', and ours is 'new'" in result.stdout
    assert "(SL121)" in result.stdout


def test_where_it_errs_is_not_told_by_other_answers(here, shell):
    """`old` repeats the truth but for some rows; `site` tells where answers are worse."""
    table = pd.read_csv("t.csv")
    bad = (table["site"] == "A") & (table.index % 2 == 0)
    bad |= (table["label"] == "cancer") & (table.index % 3 > 0)
    flipped = np.where(table["label"] == "cancer", "healthy", "cancer")
    table["said"] = np.where(bad, flipped, table["label"])
    table["rare"] = np.where(bad & (table["label"] == "healthy"), "cancer", "healthy")
    table.drop(columns=["p", "passed", "winner", "amount", "forecast", "grade"]).to_csv(
        "t.csv", index=False
    )
    shell.run("certify t.csv --truth label --answer said")
    page = json.loads((here / "surelearn-certify" / "audit.json").read_text())
    told = next(one for one in page["sections"] if one["key"] == "where_wrong")
    where = [row[0] for table in told["tables"] for row in table["rows"]]
    assert "site = A" in where
    assert "rare = cancer" in where  # words of the truth that do not agree with it
    assert not any(text.startswith("old = ") for text in where)


def test_no_verdict_ends_with_the_command_that_has_one(here, shell):
    made().to_csv("grouped.csv", index=False)
    asked = "surelearn certify grouped.csv --grade grade --loss-range 0.0 1.0"
    said = shell.run(asked.removeprefix("surelearn ")).stdout.splitlines()[-1]
    assert said == f"for a verdict: {asked} --group who"
    assert shell.run(said.partition("surelearn ")[2]).stdout.count("No verdict") == 0


def test_numbers_of_coverage_are_those_of_the_bound(here, shell):
    """The upper fifth of the forecasts is worse."""
    table = pd.read_csv("t.csv")[["note"]]
    table["forecast"] = 48_000 + 999.6333 * np.arange(N)
    table["amount"] = table["forecast"] + np.where(table.index >= 240, 40_000.5, 9) * np.cos(
        table.index
    )
    table.to_csv("f.csv", index=False)
    said = shell.run("certify f.csv --truth amount --answer forecast --independent").stdout
    bound = next(line for line in said.splitlines() if "distance from" in line).split("≤ ")[1]
    assert f"Coverage of ±{bound.strip()} by fifths" in said
    assert "not for predictions above 287,100" in said


GROUPED = "certify grouped.csv --pass passed --quiet"


@pytest.mark.parametrize(
    ("ways", "looks"),
    [
        (["--group who", "--independent", "--group who"], [1, 2, 1]),
        (["--independent", "--group who", "--independent"], [1, 2, 1]),
        (["--drop who", "--group who"], [1, 2]),
        (["--drop who", "--independent"], [1, 1]),
        (["--group who", "--group site"], [1, 3]),  # the page without a verdict counts as one then
    ],
)
def test_what_a_page_without_a_verdict_advises_has_its_turn_once(ways, looks, here, shell):
    made().to_csv("grouped.csv", index=False)
    assert "No verdict" in shell.run(GROUPED).stdout
    told = [shell.run(f"{GROUPED} {way}").stdout for way in ways]
    assert ["95%" in text and "look" not in text for text in told] == [n == 1 for n in looks]
    named = {2: "second", 3: "third"}
    for text, look in zip(told, looks, strict=True):
        assert look == 1 or f"{named[look]} look" in text


def test_a_page_without_a_verdict_is_not_free_for_other_answers(here, shell):
    made().assign(other=made(seed=0)["passed"].to_numpy()[::-1]).to_csv("grouped.csv", index=False)
    shell.run(GROUPED)
    other = shell.run("certify grouped.csv --pass other --group who --drop passed --quiet").stdout
    assert "second look" in other


@pytest.mark.parametrize("way", ["", "--one-pass"])
def test_scores_that_tie_are_no_rows_that_repeat(way, here, shell):
    """Of a tree's score and its log odds there are few values: the page says what to do, for free."""
    table = pd.read_csv("t.csv")[["label", "said", "p"]]
    table["p"] = table["p"].round(2)
    table["odds"] = np.log(table["p"] + 1e-3) - np.log(1 - table["p"] + 1e-3)
    table.to_csv("scores.csv", index=False)
    asked = f"certify scores.csv --truth label --answer said --quiet {way}"
    refused = shell.run(asked)
    assert "`--drop COLUMN` for each column that comes from the model" in refused.stdout
    page = (here / "surelearn-certify" / "report.html").read_text()
    assert "groups=" not in page
    assert "--drop COLUMN" in page
    after = shell.run(f"{asked} --drop p --drop odds")
    assert "95%" in after.stdout
    assert "look" not in after.stdout


# ── gate and watch ───────────────────────────────────────────────────────────────────────────────


def test_a_gate_counts_tries_and_tells_only_pass_or_fail(here, shell):
    gate = "gate t.csv --truth label"
    first = shell.run(f"{gate} --answer old --max-risk 0.1")
    assert (first.exit_code, first.stdout.splitlines()[-1]) == (1, "gate: fail")
    assert not any(word in first.stdout for word in ("%,", "errors", "measured"))
    assert not (here / "surelearn-gate").exists()
    second = shell.run(f"{gate} --answer said --max-risk 0.2")
    assert (second.exit_code, "gate: pass" in second.stdout) == (0, True)
    assert "try 2 on these rows" in second.stdout
    certificate = Certificate.from_json((here / "surelearn-gate" / "certificate.json").read_text())
    assert certificate.delta == pytest.approx(6 * 0.05 / (np.pi * 2) ** 2)
    assert certificate["risk"].value <= 0.2
    assert shell.run("verify surelearn-gate --data t.csv").exit_code == 0
    assert "the gate is closed" in shell.refusal(f"{gate} --answer old --max-risk 0.9")


def test_a_gate_after_a_page_guarantees_nothing(here, shell):
    shell.run("certify t.csv --pass passed")
    assert "showed numbers about these rows" in shell.refusal(
        "gate t.csv --pass passed --at-least 0.5"
    )


def tries(here):
    return (
        len(json.loads((here / "l.json").read_text())["looks"]) if (here / "l.json").exists() else 0
    )


def test_a_gate_refuses_rows_that_no_try_could_pass_with_and_counts_none(here, shell):
    made().to_csv("grouped.csv", index=False)
    gate = "gate grouped.csv --pass passed --at-least 0.7 --ledger l.json"
    refusal = shell.refusal(gate)
    assert "it seems to name groups of rows: say --group who, or --independent" in refusal
    assert tries(here) == 0
    assert "try 1 on these rows" in shell.run(f"{gate} --group who --at-least 0.999").stdout
    vouched = shell.run(f"{gate} --independent")
    assert (vouched.exit_code, "try 2 on these rows" in vouched.stdout) == (0, True)


@pytest.mark.parametrize("told", ["beside", "by the answers alone"])
def test_a_gate_of_labeled_rows_asks_whether_they_are_meant(told, here, shell):
    table = pd.read_csv("t.csv")
    lost = table["amount"] > 52 if told == "beside" else table["said"] == "cancer"
    lost &= np.arange(N) % 5 > 0
    table["label"] = table["label"].where(~lost, None)
    table.to_csv("t.csv", index=False)
    gate = (
        "gate t.csv --truth label --answer said --drop old --drop p --max-risk 0.9 --ledger l.json"
    )
    if told == "beside":
        assert "in column 'amount': say --population labelled" in shell.refusal(gate)
    else:  # which is about the answers, so that it is a try
        assert shell.run(gate).exit_code == 1
    result = shell.run(f"{gate} --population labelled")
    assert (result.exit_code, tries(here)) == (0, 1 + (told != "beside")), result.output


def test_a_gate_of_grades_and_what_does_not_go_with_answers(here, shell):
    assert shell.run("gate t.csv --grade grade --loss-range 0 1 --at-least 0.7").exit_code == 0
    refusal = shell.refusal("gate t.csv --pass passed --at-least 0.5 --model ridge")
    assert "--model goes with a table to fit on" in refusal
    assert "pass --max-risk" in shell.refusal("gate t.csv --pass passed")
    assert "say --max-risk" in shell.refusal("gate t.csv --target label")
    assert "--at-least goes with" in shell.refusal("gate t.csv --target label --at-least 0.5")


def worse(kind):
    """Live rows of the same columns, in which much has become worse."""
    table, rng = made(seed=9), np.random.default_rng(9)
    bad = rng.random(N) < 0.5
    table.loc[bad, "said"] = "no idea"
    table.loc[bad, "passed"] = False
    table.loc[bad, "grade"] = 0.1
    table.loc[bad, "winner"] = "old"
    table.loc[bad, "p"] = 1 - table.loc[bad, "p"]
    table.loc[bad, "forecast"] += 40.0
    return table.drop(columns="who") if kind == "worse" else made(seed=9).drop(columns="who")


@pytest.mark.parametrize("kind", [name for name in KINDS if name != "against"])
def test_live_answers_are_watched(kind, here, shell):
    """As they were certified, no alarm; much worse, an alarm about the headline."""
    options, _ = KINDS[kind]
    shell.run(f"certify t.csv {options} --quiet")
    for what, code in (("as before", 0), ("worse", 3)):
        worse(what).to_csv("live.csv", index=False)
        result = shell.run(f"watch surelearn-certify live.csv --state '{what}.json'")
        assert result.exit_code == code, result.output
    state = json.loads((here / "worse.json").read_text())
    assert state["format"] == "surelearn-watch"
    assert (
        "300 rows were fed before"
        in shell.run("watch surelearn-certify live.csv --state worse.json").stdout
    )


def test_live_answers_under_another_name(here, shell):
    shell.run("certify t.csv --truth label --answer said --quiet")
    worse("worse").rename(columns={"said": "new", "label": "right"}).to_csv("live.csv", index=False)
    assert "no column 'label'" in shell.refusal("watch surelearn-certify live.csv")
    result = shell.run("watch surelearn-certify live.csv --target right --prediction new")
    assert result.exit_code == 3
