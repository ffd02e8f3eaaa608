"""Tables with words: there and back, and a pipeline with an encoder attacked through them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from surelearn.attacks import decision_attack, encode_table


def people(n=120):
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": random.integers(18, 80, n),
            "job": random.choice(["cook", "nurse", "none"], n),
            "size": random.normal(170, 10, n),
            "kind": pd.Categorical(random.choice(["a", "b"], n)),
            "note": np.where(random.uniform(size=n) < 0.2, None, "yes"),
            "known": random.uniform(size=n) < 0.5,
        }
    )


def test_there_and_back():
    table = people()
    made = encode_table(table, fixed=["size"])
    back = made.decode(made.rows)
    for name in table:
        assert back[name].isna().equals(table[name].isna())
        assert (back[name].dropna() == table[name].dropna()).all()
    assert back["kind"].dtype == table["kind"].dtype
    assert set(made.where.choices) == {1, 3}
    assert (made.where.scale > 0).tolist() == [True, False, False, False, False, False]


def test_a_pipeline_is_attacked_through_its_table():
    table = people()
    y = np.where(table["age"] + 10 * (table["job"] == "cook") > 50, "old", "young")
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["job", "kind"]), remainder="passthrough"
    )
    model = make_pipeline(encoder, RandomForestClassifier(20, random_state=0)).fit(
        table.drop(columns="note"), y
    )
    made = encode_table(table.drop(columns="note"))
    rows = made.rows[:15]
    found = decision_attack(
        made.predicting(model),
        rows,
        y[:15],
        others=made.rows,
        where=made.where,
        budget=80,
        random_state=0,
    )
    assert found.success.mean() > 0.8
    assert (model.predict(made.decode(found.rows)) != y[:15])[found.success].all()
    assert (found.rows[:, 1] == rows[:, 1]).all()
    assert found.changes(int(np.argmax(found.success)))[0][0] in ("age", "size")
