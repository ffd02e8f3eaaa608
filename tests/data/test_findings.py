"""What the reader finds odd."""

from pathlib import Path

import numpy as np
import pytest
from tests.data.reading import ODD, clean, codes, found, shared

from surelearn.data import DataError, read_table
from surelearn.data.formats import load


@pytest.mark.parametrize("code", ODD)
def test_each_finding_is_made(code):
    frame, others = ODD[code]
    assert codes(read_table(frame, target="y")) == {code} | others


@pytest.mark.parametrize("seed", range(10))
def test_a_clean_table_has_no_findings(seed):
    assert read_table(clean(seed=seed), target="y").findings == ()
    amounts = clean(seed=seed).assign(
        y=lambda f: f["height"] + np.random.default_rng(seed).normal(size=400)
    )
    assert read_table(amounts, target="y").findings == ()


def test_findings_hold_numbers():
    tables = {code: read_table(frame, target="y") for code, (frame, _) in ODD.items()}
    assert found(tables["SL103"], "SL103").numbers == {"column": "alive", "accuracy": 1.0}
    assert found(tables["SL103"], "SL103").severity == "serious"
    assert found(tables["SL104"], "SL104").numbers["rows"] == 30
    assert found(tables["SL105"], "SL105").numbers["classes"] == {"c": 5}
    assert found(tables["SL106"], "SL106").numbers == {"distinct": 5}
    assert found(tables["SL108"], "SL108").numbers["column"] == "patient"
    assert found(tables["SL109"], "SL109").numbers["columns"] == ("height",)
    assert found(tables["SL110"], "SL110").numbers == {"rows": 10}
    assert len(tables["SL110"].frame) == len(tables["SL110"].row_hashes) == 390
    assert found(tables["SL111"], "SL111").numbers["columns"] == (("weight", "pounds"),)
    assert found(tables["SL113"], "SL113").numbers["columns"] == {"weight": 8}
    assert tables["SL113"].X["weight"].isna().sum() == 8


@pytest.mark.parametrize(
    ("values", "gives_away"),
    [
        # a threshold
        (lambda y, rng: np.where(y == "yes", 1.0, 0.0) + rng.uniform(0, 0.9, len(y)), True),
        # that overlaps
        (lambda y, rng: np.where(y == "yes", 1.0, 0.0) + rng.uniform(0, 1.2, len(y)), False),
        # known for one class only
        (lambda y, rng: np.where(y == "yes", np.nan, rng.normal(size=len(y))), True),
        # words that hold the class
        (lambda y, _: [f"{word} {i // 100}" for i, word in enumerate(y)], True),
        # unique words tell nothing of new rows
        (lambda y, _: [f"word {i}" for i in range(len(y))], False),
        (lambda y, rng: rng.permutation(len(y)) * 7, False),  # nor do unique numbers
    ],
)
def test_what_gives_a_class_away(values, gives_away):
    frame = clean()
    frame["z"] = values(frame["y"], np.random.default_rng(5))
    assert ("SL103" in codes(read_table(frame, target="y"))) == gives_away


def test_three_classes_in_intervals_are_given_away():
    frame = clean().assign(y=lambda f: np.digitize(f["weight"], [-0.5, 0.5]).astype(str))
    assert found(read_table(frame, target="y"), "SL103").numbers["column"] == "weight"


def test_a_giveaway_of_a_rare_class_is_seen():
    rare = np.arange(400) % 29 == 0
    frame = clean().assign(y=np.where(rare, "fraud", "fine"), flag=rare)
    assert found(read_table(frame, target="y"), "SL103").numbers["column"] == "flag"
    frame["flag"] = rare & (np.arange(400) % 58 == 0)  # half of the frauds only
    assert "SL103" not in codes(read_table(frame, target="y"))


@pytest.mark.parametrize(
    ("values", "gives_away"),
    [
        (lambda y: 3 * y + 1, True),
        (np.exp, True),
        (lambda y: -y.round(1), False),
        (lambda y: y + np.random.default_rng(0).normal(size=len(y)) / 10, False),
    ],
)
def test_what_gives_an_amount_away(values, gives_away):
    frame = clean().assign(y=np.random.default_rng(3).normal(size=400))
    frame["z"] = values(frame["y"])
    assert ("SL103" in codes(read_table(frame, target="y"))) == gives_away


def test_a_word_for_each_amount_gives_it_away():
    amount = np.random.default_rng(3).integers(0, 30, 4000)
    frame = clean(4000).assign(y=amount, z=[f"price {i}" for i in amount])
    assert found(read_table(frame, target="y"), "SL103").numbers["column"] == "z"


def test_a_column_is_either_a_group_or_a_giveaway():
    """Ten rows a value name patients; a hundred a value are codes that hold the class."""
    rng = np.random.default_rng(0)
    for rows_each, expected in ((10, "SL108"), (100, "SL103")):
        code = rng.permutation(np.repeat(np.arange(40), rows_each))
        frame = clean(len(code)).assign(
            code=[f"c{i}" for i in code], y=np.where(code % 3 == 0, "yes", "no")
        )
        assert codes(read_table(frame, target="y")) & {"SL103", "SL108"} == {expected}


def test_a_predictive_whole_number_is_not_a_group():
    """Neighbouring ages resemble each other; neighbouring patient numbers do not."""
    age = np.random.default_rng(3).integers(20, 80, 400)
    noise = np.random.default_rng(4).random(400) < 0.03
    frame = clean().assign(age=age, y=np.where((age > 50) ^ noise, "yes", "no"))
    assert "SL108" not in codes(read_table(frame, target="y"))


def test_a_stated_group_is_not_suggested_again():
    frame, _ = ODD["SL108"]
    assert "SL108" not in codes(read_table(frame, target="y", group="patient"))


def test_groups_of_amounts_are_seen():
    rng = np.random.default_rng(0)
    patient = rng.permutation(np.repeat(np.arange(40), 10))
    frame = clean().assign(
        patient=[f"P{i:03}" for i in patient],
        y=rng.normal(size=40)[patient] + 0.3 * rng.normal(size=400),
    )
    assert found(read_table(frame, target="y"), "SL108").numbers["column"] == "patient"


def test_amounts_with_few_values_are_mentioned():
    frame = clean().assign(y=np.random.default_rng(0).integers(0, 5, 400) / 2 + 0.25)
    assert "treated as amounts" in found(read_table(frame, target="y"), "SL106").text
    assert "SL106" not in codes(read_table(frame, target="y", task="classification"))


def test_a_first_line_that_looks_like_data_must_be_decided(tmp_path):
    clean().to_csv(tmp_path / "with.csv", index=False)
    clean().to_csv(tmp_path / "without.csv", index=False, header=False)
    with pytest.raises(DataError, match=r"first line looks like data.*--no-header.*--header"):
        read_table(tmp_path / "without.csv", target=7)
    assert read_table(tmp_path / "without.csv", target=7, header=False).reading["header"] is False
    assert len(read_table(tmp_path / "without.csv", target=7, header=True).frame) == 399
    assert read_table(tmp_path / "with.csv", target=7).reading["header"] is True
    said = found(read_table(tmp_path / "with.csv", target=7, header=False), "SL114")
    assert "do not pass --no-header" in said.text
    assert "height" not in said.text  # the first line may be a row, and rows are not printed
    for decided in ({}, {"header": True}):
        assert "SL114" not in codes(read_table(tmp_path / "with.csv", target=7, **decided))
    assert "SL114" not in codes(read_table(tmp_path / "without.csv", target=7, header=False))


@pytest.mark.parametrize(
    ("line", "row", "is_data"),
    [
        ("country,2001,2002,2003", "c{i},{i}.5,{i}.25,7.{i}", False),  # years
        ("country,2003,2002", "c{i},{i}.5,{i}.25", False),
        ("label,0,1,2,3", "{k},{k},0,1,{i}", False),  # pixels, whose values are such numbers too
        # wave lengths
        ("y,400.5,402.1,403.8,405.9,407.1,409.3", "{k},.{i},.1{i},.2{i},.3{i},.4{i},.5{i}", False),
        ("name,sex,town", "n{i},m{k},t{k}", False),
        ("sex,n{k},x", "f,n{k},3.{i}", False),
        (",x,y", "{i},2.{i},{k}", False),  # an index without a name
        ("5.1,3.5,1.4,setosa", "{i}.1,3.{i},1.{i},s{k}", True),
        ("39,Private,77516,HS-grad,<=50K", "{i},Private,77{i},HS-grad,<=50K", True),
        ("nothing new here,0", "film number {i},{k}", True),
        ("p,x,s", "{p},x,s{k}", True),
        ("true,1.5,a", "false,{i}.5,b{k}", True),
        ("?,,NA", "{i},2.{i},{k}", True),
        ("1,0,3,male,22.0", "{i},{k},3,male,{i}.5", True),
    ],
)
def test_which_first_lines_look_like_data(line, row, is_data, tmp_path):
    rows = [row.format(i=i, k=i % 2, p="ep"[i % 2]) for i in range(10, 60)]
    (tmp_path / "t.csv").write_text("\n".join([line, *rows]) + "\n")
    refused = False
    try:
        load(tmp_path / "t.csv", header=None)
    except DataError as error:
        refused = "looks like data" in str(error)
    assert refused is is_data
    assert len(load(tmp_path / "t.csv", header=True).frame) == 50
    assert len(load(tmp_path / "t.csv", header=False).frame) == 51


def test_lines_of_names_within_a_file_are_no_evidence_of_data(tmp_path):
    rows = [f"n{i},t{i % 2}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["name,town", *rows, "name,town", *rows]) + "\n")
    assert list(load(tmp_path / "t.csv", header=None).frame.columns) == ["name", "town"]


@pytest.mark.parametrize(
    "name", ["titanic.csv", "letter.csv", "california_housing.csv", "sick.csv", "ames.csv"]
)
def test_real_tables_with_names_and_without(name, tmp_path):
    text = shared(name).read_bytes()
    assert load(shared(name), header=None).frame.shape[0] > 800
    (tmp_path / "t.csv").write_bytes(text[text.index(b"\n") + 1 :])
    with pytest.raises(DataError, match="looks like data"):
        load(tmp_path / "t.csv", header=None)


@pytest.mark.parametrize(
    "name", ["adult_train.csv", "adult_test.csv", "higgs500_test.tsv", "sst2/sst2_dev.tsv"]
)
def test_real_tables_that_have_no_names(name):
    with pytest.raises(DataError, match="looks like data"):
        load(shared(name), header=None)


def test_every_code_is_documented():
    documented = (Path(__file__).parents[2] / "docs" / "findings.rst").read_text(encoding="utf-8")
    source = Path(read_table.__code__.co_filename).parent
    text = "".join(
        (source / name).read_text(encoding="utf-8")
        for name in ("table.py", "formats.py", "delimited.py", "excel.py", "npz.py", "oddities.py")
    )
    made = {f"SL{number}" for number in range(101, 200) if f'"SL{number}"' in text}
    assert made == set(ODD) | {"SL114", "SL115", "SL130"}
    for code in made:
        assert f"\n{code} — " in documented, code
