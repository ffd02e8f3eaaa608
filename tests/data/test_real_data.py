"""Real tables."""

import numpy as np
import pandas as pd
import pytest
from tests.data.reading import codes, found, kinds, shared

from surelearn.data import read_table


def test_titanic():
    table = read_table(shared("titanic.csv"), target="Survived")
    assert kinds(table) == {
        "PassengerId": "identifier",
        "Survived": "target",
        "Pclass": "number",
        "Name": "text",
        "Sex": "category",
        "Age": "number",
        "SibSp": "number",
        "Parch": "number",
        "Ticket": "text",
        "Fare": "number",
        "Cabin": "text",
        "Embarked": "category",
    }
    notes = {column.name: column.note for column in table.columns}
    assert notes["Age"] == "177 missing: filled with the median"
    assert np.bincount(table.y).tolist() == [549, 342]
    assert codes(table) == {"SL101", "SL107", "SL108", "SL112"}
    assert found(table, "SL108").numbers["column"] == "Ticket"


def test_titanic_with_alive():
    frame = pd.read_csv(shared("titanic.csv"))
    frame["alive"] = frame["Survived"].map({0: "no", 1: "yes"})
    assert found(read_table(frame, target="Survived"), "SL103").numbers["column"] == "alive"


def test_adult():
    table = read_table(shared("adult_train.csv"), target=-1, header=False)
    assert len(table.frame) == 32_561
    assert sorted(set(table.y)) == ["<=50K", ">50K"]
    assert table.columns[1].missing == 1836
    assert set(kinds(table).values()) == {"number", "category", "target"}
    # education, in words and as a number
    assert found(table, "SL111").numbers["columns"] == (("column 4", "column 5"),)


def test_california_housing():
    table = read_table(shared("california_housing.csv"), target="median_house_value")
    assert table.task == "regression"
    assert kinds(table)["ocean_proximity"] == "category"
    assert codes(table) == {"SL109"}


def test_a9a():
    table = read_table(shared("a9a.gz"))
    assert table.X.shape == (32_561, 123)
    assert sorted(set(table.y)) == [-1, 1]


@pytest.mark.slow
def test_mnist():
    table = read_table(shared("mnist.npz"))
    assert table.frame.shape == (70_000, 785)
    assert table.images == (28, 28, 1)
    assert table.task == "classification"
    assert found(table, "SL106").numbers == {"distinct": 10}
    assert "SL103" not in codes(table)


def test_higgs():
    table = read_table(shared("higgs7k_train.tsv"), target=1, header=False)
    assert table.X.shape == (7000, 28)
    assert np.bincount(table.y).sum() == 7000
    assert codes(table) == set()


def test_sentences():
    table = read_table(shared("sst2") / "sst2_train.tsv", target=2, header=False)
    assert kinds(table) == {"column 1": "text", "column 2": "target"}
    assert len(table.frame) == 6920
