"""The page's words of texts: planted words lead, rare ones are not told, and names are escaped."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import surelearn

OTHERS = (
    "robustness", "poisoning", "membership", "attribution", "stability", "learning_curve",
    "performance", "slices", "novelty", "calibration",
)  # fmt: skip
ONLY = {"ledger": False, "skip": OTHERS, "n_jobs": 1, "independent": True}
PLAIN = [f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]


def letters(n=400, classes=("ham", "spam"), seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(len(classes), size=n)
    texts = [" ".join([*rng.choice(PLAIN, 9), f"says{'xyz'[k % 3]}{k}"]) for k in y]
    frame = pd.DataFrame({"letter": texts, "age": rng.normal(size=n)})
    return frame.assign(kind=np.array(classes, dtype=object)[y])


def audit(frame, models="logistic regression", **options):
    return surelearn.audit(frame, target="kind", models=[models], **{**ONLY, **options})


def test_planted_words_lead_and_the_page_says_how():
    result = audit(letters())
    section = result["words"]
    assert section.title == "Feature attribution: words"
    (table,) = section.tables
    assert {row[:2] for row in table.rows[:2]} == {("saysx0", "ham"), ("saysy1", "spam")}
    values = [float(row[2]) for row in table.rows]
    assert values == sorted(values, reverse=True)
    assert "exactly" in section.notes[0]
    assert "by kind, words and pairs of words that may be told: 8" in section.notes[1]
    (finding,) = section.findings
    assert finding.code == "SL663"
    assert finding.severity == "info"
    assert not section.claims  # measured, never guaranteed
    assert audit(letters())["words"] == section


def test_a_word_of_fewer_than_five_fit_rows_is_nowhere(tmp_path):
    frame = letters()
    rng = np.random.default_rng(1)
    spam = np.flatnonzero(frame["kind"] == "spam")
    rare = [f"rare{letter}qq" for letter in "abcdefghijklmnopqrst"]
    for i, word in enumerate(rare):  # strong where they occur
        chosen = rng.choice(spam, 4 + i % 6, replace=False)
        frame.loc[chosen, "letter"] = f"{word} {word}-{word} " * 4 + frame.loc[chosen, "letter"]
    asked = {"target": "kind", "ledger": False, "independent": True}
    split = surelearn.audit(frame, dry_run=True, **asked).split
    train = frame["letter"].iloc[np.union1d(split.fit, split.select)]
    counts = {word: int(train.str.contains(word).sum()) for word in rare}
    assert {4, 5} <= set(counts.values())
    result = audit(frame)
    result.write(tmp_path)
    texts = [
        (tmp_path / name).read_text(encoding="utf-8") for name in ("report.html", "audit.json")
    ]
    assert "Only words that at least 5 training rows have" in result["words"].notes[-1]
    told = " ".join(row[0] for row in result["words"].tables[0].rows)
    assert any(word in told for word, count in counts.items() if count >= 5)
    for word, count in counts.items():
        assert count >= 5 or not any(word in text for text in texts), (word, count)
    assert "rarer words" in " ".join(result["words"].notes)
    shown = " ".join(audit(frame, show_rows=True)["words"].notes)
    assert "rarer words" not in shown
    assert "Only words" not in shown


def test_a_row_for_each_class_and_at_most_twelve():
    classes = [f"class {i:02}" for i in range(14)]
    frame = letters(1400, classes)
    section = audit(frame)["words"]
    (table,) = section.tables
    assert table.header == ("class", "words towards it", "words against it")
    assert len(table.rows) == 12
    for name, towards, _ in table.rows:
        k = int(name[-2:])
        assert towards.split(", ")[0] == f"says{'xyz'[k % 3]}{k}"
    several = [len([*filter(None, (a + ", " + b).split(", "))]) for _, a, b in table.rows]
    assert max(several) <= 8


def test_no_text_no_section_and_trees_by_leaving_words_out():
    frame = letters()
    plain = frame.drop(columns="letter").assign(other=np.arange(len(frame)) % 7 + 0.5)
    assert "words" not in [section.key for section in audit(plain).sections]
    section = audit(frame, models="random forest")["words"]
    assert "left out of texts" in section.notes[0]
    assert {row[:2] for row in section.tables[0].rows[:2]} <= {
        ("saysx0", "ham"),
        ("saysy1", "spam"),
    }


@pytest.mark.parametrize("given", [False, True])
def test_a_model_fitted_elsewhere(given):
    frame = letters()
    X, y = frame[["letter"]], frame["kind"].to_numpy()
    pick = FunctionTransformer(lambda rows: rows["letter"])
    model = make_pipeline(pick, CountVectorizer(), LogisticRegression()).fit(X[:200], y[:200])
    seen = {"seen": (X[:200], y[:200])} if given else {}
    asked = {**ONLY, "skip": OTHERS[:6]}
    section = surelearn.audit(model, X[200:], y[200:], **seen, **asked)["words"]
    assert section.tables[0].rows[0][0] in ("saysx0", "saysy1")
    assert ("training rows" if given else "audited rows") in section.notes[0]


def test_names_from_data_are_escaped(tmp_path):
    frame = letters(classes=("<b>ham", "<i>spam"))
    pick = FunctionTransformer(lambda rows: rows["let<u>ter"])
    X = frame[["letter"]].rename(columns={"letter": "let<u>ter"})
    X["let<u>ter"] = X["let<u>ter"].str.replace("saysx0", "<script>x0")
    y = frame["kind"].to_numpy()
    words = CountVectorizer(token_pattern=r"\S+")  # noqa: S106 - no password
    model = make_pipeline(pick, words, LogisticRegression()).fit(X[:200], y[:200])
    result = surelearn.audit(model, X[200:], y[200:], **{**ONLY, "skip": OTHERS[:6]})
    assert "<script>x0" in {row[0] for row in result["words"].tables[0].rows}
    result.write(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;x0" in page
    for raw in ("<script>x0", "<i>spam", "let<u>ter"):
        assert raw not in page
    json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
