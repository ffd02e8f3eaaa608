"""People on the page: values and labels of single rows are printed only where that was asked
for.
"""

import re
import shlex

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import surelearn
from surelearn.auditing.single_rows import HIDDEN, SHOWN
from surelearn.cli import main
from surelearn.report import Audit

FILES = ("report.html", "report.md", "audit.json", "certificate.json")


def people(n=240):
    """A table in which every value of every row is a secret: numbers of four digits, no years,
    words of a row's own.
    """
    rng = np.random.default_rng(0)
    x, z = (rng.permutation(7900)[:n] + 2100.0 for _ in range(2))
    signal = (x - 6050) / 2300 + 0.4 * rng.normal(size=n)
    words = [f"Zq{i:04}x {'good' if s > 0 else 'bad'} Wk{i:04}y" for i, s in enumerate(signal)]
    town = rng.choice(["Aville", "Btown"], n).astype(object)
    town[:3] = ["Rare1ville", "Rare2ville", "Rare3ville"]
    return pd.DataFrame(
        {
            "salary": x,
            "age": z,
            "letter": words,
            "town": town,
            "sick": np.where(signal > 0, "yes", "no"),
        }
    )


def secrets(frame):
    numbers = {f"{value:.0f}" for name in ("salary", "age") for value in frame[name]}
    numbers |= {f"{value:,.0f}" for name in ("salary", "age") for value in frame[name]}
    words = {
        part for text in frame["letter"] for part in text.split() if part not in ("good", "bad")
    }
    return numbers, words | {text[:23] for text in frame["letter"]} | {
        f"Rare{i}ville" for i in (1, 2, 3)
    }


MODELS = """
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

def prepared(learner):
    steps = make_column_transformer(
        (StandardScaler(), ["salary", "age"]), (HashingVectorizer(n_features=8), "letter"),
        (OneHotEncoder(handle_unknown="ignore"), ["town"]), sparse_threshold=0,
    )
    return make_pipeline(steps, learner)

def linear():
    return {"logistic regression": prepared(LogisticRegression())}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("people")
    (place / "models_of_people.py").write_text(MODELS)
    people().to_csv(place / "t.csv", index=False)
    return place


def run(place, monkeypatch, options=""):
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    command = (
        "audit t.csv --target sick --model models_of_people:linear --slice town --effort 0.3"
        f" --jobs 1 {options}"
    )
    words = [
        *shlex.split(command),
        "--skip",
        "membership",
        "--ledger",
        "ledger",
        "--out",
        "out",
        "--format",
        "html",
        "--format",
        "md",
    ]
    result = CliRunner(catch_exceptions=False).invoke(main, words)
    assert result.exit_code == 0, result.output
    texts = {name: (place / "out" / name).read_text(encoding="utf-8") for name in FILES}
    return {**texts, "the terminal": result.output}


def occurring(texts, words):
    """Where a secret stands as a word of its own."""
    drawn = re.compile(r'\b(?:d|points)="[^"]*"')  # coordinates of charts
    apart = {name: set(re.findall(r"[\w,]+", drawn.sub("", text))) for name, text in texts.items()}
    return {
        (name, word)
        for word in words
        for name in texts
        if word in apart[name] or (" " in word and word in texts[name])
    }


def sections(texts):
    return Audit.from_json(texts["audit.json"]).sections


def test_no_value_of_a_single_row_is_on_the_page(folder, monkeypatch):
    texts = run(folder, monkeypatch)
    numbers, words = secrets(people())
    assert occurring(texts, numbers | words) == set()
    # it has categories and deciles
    manifest = (folder / "out" / "model" / "manifest.json").read_text(encoding="utf-8")
    assert (
        occurring({"manifest": manifest}, {word for word in words if word[:2] in ("Zq", "Wk")})
        == set()
    )
    by_key = {section.key: section for section in sections(texts)}
    for key in ("robustness", "poisoning", "attribution"):
        assert HIDDEN in by_key[key].notes, key
        assert by_key[key].tables, key
        for row in by_key[key].tables[0].rows:
            assert not {"yes", "no", "is yes", "is no"} & set(row)
    assert all(
        ", yes" not in claim.label and ", no" not in claim.label
        for claim in by_key["robustness"].claims
    )
    assert "in fewer than 5 fit rows: no slice is named after" in " ".join(by_key["slices"].notes)
    assert "Values of single rows are not shown" in texts["report.html"]


def test_with_show_rows_they_are(folder, monkeypatch):
    texts = run(folder, monkeypatch, "--show-rows")
    numbers, _ = secrets(people())
    by_key = {section.key: section for section in sections(texts)}
    for key in ("robustness", "poisoning", "attribution"):
        assert SHOWN in by_key[key].notes, key
        cells = {key: " ".join(cell for row in by_key[key].tables[0].rows for cell in row)}
        assert occurring(cells, numbers), key
    assert "shows values of single rows" in Audit.from_json(texts["audit.json"]).chips
    assert "--show-rows" in Audit.from_json(texts["audit.json"]).reproduce
    # the same look again, not a second one
    assert Audit.from_json(texts["audit.json"]).numbers["turn"] == 1


class Talkative(LogisticRegression):
    """Raises what it was given, as many libraries do, where it is fitted to fewer rows than the
    first time.
    """

    def fit(self, X, y, sample_weight=None):
        if len(y) < 120:
            raise ValueError(f"never seen such a row: {np.asarray(X)[0].tolist()}")
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("show_rows", [False, True])
def test_what_a_model_raises_may_quote_a_row(show_rows):
    frame = people()
    X, y = frame[["salary", "age"]].to_numpy(), (frame["sick"] == "yes").to_numpy().astype(int)
    model, asked = Talkative().fit(X[:120] / 1e4, y[:120]), {"show_rows": True} if show_rows else {}
    result = surelearn.audit(
        model,
        X[120:] / 1e4,
        y[120:],
        seen=(X[:120] / 1e4, y[:120]),
        ledger=False,
        refits=4,
        effort=0.2,
        **asked,
    )
    said = [
        note
        for section in result.sections
        for note in section.notes
        if "t raised ValueError" in note
    ]
    assert said
    assert all(("never seen such a row" in note) is show_rows for note in said)
    assert ("never seen" in result.to_html() + result.to_json() + result.to_markdown()) is show_rows


@pytest.mark.parametrize("asked", [{}, {"show_rows": True}], ids=["by default", "asked for"])
def test_a_claim_about_one_row_names_its_number_and_not_its_answer(asked):
    options = {"ledger": False, "refits": 0, "curve_repeats": 0, "effort": 0.2, **asked}
    skip = ("poisoning", "membership", "attribution")
    models = {"linear": make_pipeline(StandardScaler(), LogisticRegression())}
    frame = people()[["salary", "age", "sick"]]
    claims = surelearn.audit(frame, target="sick", models=models, skip=skip, **options)[
        "robustness"
    ].claims
    labels = [claim.label for claim in claims if " radius of row " in claim.label]
    assert labels
    assert all(
        bool(re.search(r" of row \d+, (yes|no)\b", label)) is bool(asked) for label in labels
    )


def test_the_extremes_of_a_target_are_not_on_the_terminal(folder, monkeypatch):
    monkeypatch.chdir(folder)
    frame = people()[["salary", "age"]]
    frame.to_csv("amounts.csv", index=False)
    largest = f"{frame['salary'].max():,.0f}"
    for option, shown in (("", False), (" --show-rows", True)):
        skip = " ".join(
            f"--skip {name}" for name in ("robustness", "poisoning", "membership", "attribution")
        )
        command = (
            "audit amounts.csv --target salary --model 'linear regression' --jobs 1 --out amounts"
            f" {skip}{option}"
        )
        result = CliRunner(catch_exceptions=False).invoke(
            main, [*shlex.split(command), "--ledger", "of amounts"]
        )
        assert result.exit_code == 0, result.output
        assert (largest in result.output) is shown
