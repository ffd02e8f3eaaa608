"""Hashes of rows."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.reading import ODD, clean

from surelearn.data import hash_rows, read_table


@settings(max_examples=50, deadline=None)
@given(order=st.permutations(range(30)))
def test_hashes_do_not_depend_on_where_a_row_stands(order):
    frame = clean(30)
    np.testing.assert_array_equal(hash_rows(frame.iloc[order]), hash_rows(frame)[order])


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.floats(allow_nan=True),
            st.integers(-(2**63), 2**63 - 1),
            st.sampled_from(["a", "b", None]),
        ),
        min_size=2,
    )
)
def test_rows_hash_alike_if_and_only_if_they_are_equal(rows):
    frame = pd.DataFrame(rows, columns=["f", "i", "s"]).astype({"s": object, "i": np.int64})
    hashes = hash_rows(frame)
    keys = [(repr(f + 0.0), i, s) for f, i, s in rows]
    assert len(set(hashes.tolist())) == len(set(keys))
    assert all((hashes[0] == hashes[k]) == (keys[0] == keys[k]) for k in range(len(rows)))


def one(**values):
    return int(
        hash_rows(
            pd.DataFrame(
                {
                    name: pd.Series([v], dtype=object if isinstance(v, str) else None)
                    for name, v in values.items()
                }
            )
        )[0]
    )


def test_what_a_hash_sees():
    assert one(a=1, b=2) == one(a=1.0, b=2.0) == one(c=1, d=2)
    assert one(a=0.0) == one(a=-0.0)
    assert one(a=1, b=2) != one(a=2, b=1)
    assert one(a=1) != one(a="1")
    assert one(a=1) != one(a=1, b=0)
    assert one(a=2**60) != one(a=2**60 + 1)
    assert one(a="x") != one(a="y")


def test_hashes_are_fixed_for_ever():
    """A ledger of certified rows lives on this: if it changes, every earlier audit is forgotten."""
    frame = pd.DataFrame(
        {
            "a": [1, 2],
            "b": [0.5, np.nan],
            "c": pd.Series(["x", None], dtype=object),
            "d": [True, False],
        }
    )
    assert hash_rows(frame).tolist() == [4572444966260232138, 5844536590877906730]


def test_hashes_are_the_same_in_another_process():
    code = "from surelearn.data import read_table; print(read_table('iris').row_hashes.sum())"
    salt = str(1 + (os.environ.get("PYTHONHASHSEED") == "1"))  # strings are hashed otherwise
    printed = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": salt},
    ).stdout
    assert printed == f"{read_table('iris').row_hashes.sum()}\n"


def test_dropping_a_column_does_not_change_the_hashes():
    frame = clean()
    np.testing.assert_array_equal(
        read_table(frame, target="y", drop="height").row_hashes,
        read_table(frame, target="y").row_hashes,
    )


def test_findings_do_not_depend_on_the_process_or_the_run():
    frame, _ = ODD["SL108"]
    assert read_table(frame, target="y").findings == read_table(frame, target="y").findings
