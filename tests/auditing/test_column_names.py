"""Columns without a name are called the same in every section that names them."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from surelearn.attacks import domain
from surelearn.attribution import explain
from surelearn.auditing.sections.attribution.work import see_through
from surelearn.auditing.sections.poisoning.words import _of_rows
from surelearn.robust.tables import moves_of
from surelearn.subject.refitting import column_names

X = np.random.default_rng(0).normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (X, ("x0", "x1", "x2")),
        (pd.DataFrame(X), ("0", "1", "2")),
        (pd.DataFrame(X, columns=["a", "b", "c"]), ("a", "b", "c")),
    ],
    ids=["array", "numbered", "named"],
)
def test_one_name_a_column(rows, names):
    model = LogisticRegression().fit(X, Y)
    assert column_names(rows) == names
    assert moves_of({}, rows, rows).names == names
    assert see_through(model, rows, rows).names == names
    context = SimpleNamespace(
        columns=(), findings=(), target="y", images=None, options=SimpleNamespace(show_rows=True)
    )
    said = {
        "rows": [3, 5],
        "changes": [0.1, 0.05],
        "method": "refits",
        "chosen": "",
        "tried": 2,
        "loss": "loss",
    }
    _, table = _of_rows(context, {**said, "base": 1.0, "noise": 0.0, "spread": 0.0}, rows, Y, None)
    _, *shown, _, _ = table.header
    assert len(shown) == 2
    assert set(shown) < set(names)
    told = {
        name: float(value.replace("−", "-"))
        for name, value in zip(shown, table.rows[0][1:3], strict=True)
    }
    assert told == {name: pytest.approx(X[3, names.index(name)], rel=1e-2) for name in shown}


def test_so_outside_of_the_page():
    assert (
        domain(3, low=0.0).names
        == explain(lambda Z: Z.sum(axis=1), X[:2], X[2:9]).names
        == ("x0", "x1", "x2")
    )
