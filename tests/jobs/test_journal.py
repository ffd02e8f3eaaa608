"""The journal gives results back bit for bit, and survives damage."""

import json
import math
import os
import random
import sqlite3
import sys

import cloudpickle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.jobs.tasks import powers, same

from surelearn.jobs import Journal, Task, run
from surelearn.lacking import Lacking

# workers cannot import this file by its name
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def roundtrip(path, value):
    with Journal(path, run_key="k") as journal:
        journal.store("key", value)
    with Journal(path, run_key="k") as journal:
        return journal.load("key")


DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(),
    hnp.floating_dtypes(endianness="?"),
    hnp.complex_number_dtypes(),
    hnp.datetime64_dtypes(),
    hnp.timedelta64_dtypes(),
    hnp.unicode_string_dtypes(),
    hnp.byte_string_dtypes(),
)
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(codec=None))
)
RESULTS = st.recursive(
    st.one_of(PLAIN, ARRAYS, ARRAYS.filter(lambda a: a.ndim == 0).map(lambda a: a[()])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(
            st.one_of(st.text(), st.integers(), st.tuples(st.integers())), inner, max_size=4
        ),
    ),
    max_leaves=8,
)


@given(value=RESULTS)
@settings(max_examples=60, deadline=None)
def test_results_come_back_bit_for_bit(value, tmp_path_factory):
    path = tmp_path_factory.mktemp("journal") / "j"
    assert same(roundtrip(path, value), value)


@pytest.mark.parametrize(
    "value",
    [
        np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 5e-324]),
        np.array([0x7FC00001, 0xFFC12345], np.uint32).view(np.float32),  # payloads of NaN
        np.array([True, False]),
        np.array([-(2**63), 2**63 - 1]),
        np.array(["né", "", "a\0b"]),
        np.float32(0.1),
        np.str_("trailing\0"),
        np.bool_(True),
        {"tuple": (1, [2.5, (None,)]), 3: {"array": "not an array"}},
        -0.0,
        10**2000,
    ],
    ids=repr,
)
def test_chosen_values_come_back_bit_for_bit(value, tmp_path):
    back = roundtrip(tmp_path / "j", value)
    assert same(back, value)
    assert not isinstance(value, float) or math.copysign(1, back) == math.copysign(1, value)


def test_memory_order_comes_back_too(tmp_path):
    for order in "CF":
        back = roundtrip(tmp_path / "j", np.asarray(np.arange(12.0).reshape(3, 4), order=order))
        assert back.flags["F_CONTIGUOUS"] == (order == "F")
        assert back.flags.writeable
        assert (back == np.arange(12.0).reshape(3, 4)).all()


def holding(value, log):
    with open(log, "a") as file:
        file.write("x")
    return value


CIRCLE: list = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        b"bytes",
        os.getpid,
        np.array([{}], object),
        np.zeros(2, "f8,i4"),
        10**5000,
        CIRCLE,
        [1, 1j],
    ],
    ids=["set", "bytes", "function", "objects", "structured", "huge", "circle", "complex"],
)
def test_a_result_that_cannot_be_journaled_is_computed_again(value, tmp_path):
    tasks = [Task("odd", holding, {"value": value, "log": tmp_path / "odd"})]
    tasks += [Task("even", holding, {"value": 1.5, "log": tmp_path / "even"})]
    for _ in range(2):
        with Journal(tmp_path / "j", run_key="k") as journal:
            results = run(tasks, journal=journal)
            assert results[0] is value
            assert results[1] == 1.5
            assert journal.notice == ""
    assert (tmp_path / "odd").read_text() == "xx"
    assert (tmp_path / "even").read_text() == "x"


def nothing_here():
    return Lacking("risk", "there are no rows", "hoeffding")


def test_what_is_lacking_is_kept_too(tmp_path):
    task = Task("t", nothing_here, {})
    with Journal(tmp_path / "j", run_key="k") as journal:
        run([task], journal=journal)
        assert journal.load("t") == nothing_here()


def test_nothing_in_the_file_is_a_pickle(tmp_path):
    with Journal(tmp_path / "j", run_key="k") as journal:
        run([*powers(2), Task("array", np.arange, {"stop": 3})], journal=journal)
    with sqlite3.connect(tmp_path / "j") as connection:
        rows = dict(connection.execute("SELECT key, value FROM results"))
    connection.close()
    assert json.loads(rows["2^1"]) == 2
    assert json.loads(rows["array"])["array"][:2] == ["<i8", [3]]


HOSTILE = {
    "objects, whose bytes would be addresses": '{"array": ["|O", [1], "C", "AAAAAAAAAAA="]}',
    "one object": '{"scalar": ["|O", [], "C", "AAAAAAAAAAA="]}',
    "records": '{"array": ["V8", [1], "C", "AAAAAAAAAAA="]}',
    "deep": "[" * 100_000 + "]" * 100_000,
    "not JSON": "{",
    "larger than its bytes": '{"array": ["<f8", [1000000000000], "C", "AAAAAAAAAAA="]}',
    "no type": '{"array": ["object at", [1], "C", "AAAAAAAAAAA="]}',
    "of several kinds": '{"tuple": [1], "dict": []}',
    "unknown": '{"module": ["<f8", [1], "C", "AAAAAAAAAAA="]}',
    "a list as a name": '{"dict": [[[1], 2]]}',
}


@pytest.mark.parametrize("forged", HOSTILE.values(), ids=HOSTILE)
def test_a_forged_result_is_computed_again(forged, tmp_path):
    """A journal may lie beside somebody's data: whoever writes one can write digests that fit."""
    (task,) = powers(1)
    with Journal(tmp_path / "j", run_key="k") as journal:
        expected = run([task], journal=journal)
        digest = journal._digest(task.key, forged.encode())
    with sqlite3.connect(tmp_path / "j") as connection:
        connection.execute("UPDATE results SET value = ?, digest = ?", (forged.encode(), digest))
    connection.close()
    with Journal(tmp_path / "j", run_key="k") as journal:
        assert run([task], journal=journal) == expected


def test_another_run_key_starts_anew(tmp_path):
    log = tmp_path / "log"
    for run_key, runs in (("a", 1), ("a", 1), ("b", 2), ("a", 3)):
        with Journal(tmp_path / "j", run_key=run_key) as journal:
            run([Task("t", holding, {"value": 1, "log": log})], journal=journal)
            assert journal.notice == ""
        assert len(log.read_text()) == runs


def test_delete_leaves_nothing_and_a_closed_journal_says_so(tmp_path):
    with Journal(tmp_path / "deep" / "j", run_key="k") as journal:
        run(powers(3), journal=journal)
        journal.delete()
        with pytest.raises(ValueError, match="closed"):
            journal.store("a", 1)
    assert list((tmp_path / "deep").iterdir()) == []


def test_one_run_at_a_time(tmp_path):
    with (
        Journal(tmp_path / "j", run_key="k"),
        pytest.raises(RuntimeError, match="in use by another run"),
    ):
        Journal(tmp_path / "j", run_key="k")


def test_a_folder_is_not_a_journal(tmp_path):
    with pytest.raises(OSError, match="cannot be opened"):
        Journal(tmp_path, run_key="k")


def test_a_foreign_file_is_moved_aside_unharmed(tmp_path):
    path = tmp_path / "j"
    for number, content in enumerate(
        [b"age,survived\n22,0\n" * 100, b"SQLite format 3\0" + bytes(5000)], 1
    ):
        path.write_bytes(content)
        with Journal(path, run_key="k") as journal:
            assert run(powers(3), journal=journal) == [1, 2, 4]
            assert f"moved to j.aside-{number}" in journal.notice
        assert (tmp_path / f"j.aside-{number}").read_bytes() == content
        path.unlink()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE results (mine TEXT)")
    other.execute("INSERT INTO results VALUES ('precious')")
    other.commit()
    other.close()
    content = path.read_bytes()
    with Journal(path, run_key="k") as journal:
        assert run(powers(3), journal=journal) == [1, 2, 4]
        assert "another program's file" in journal.notice
    assert (tmp_path / "j.aside-3").read_bytes() == content


def test_damage_anywhere_is_survived(tmp_path):
    """Bytes overwritten, pages zeroed, the file cut: never an error, never a wrong number."""
    expected = [{"x": np.arange(i, i + 300.0)} for i in range(30)]
    tasks = [
        Task(f"t{i}", holding, {"value": value, "log": os.devnull})
        for i, value in enumerate(expected)
    ]
    with Journal(tmp_path / "good", run_key="k") as journal:
        run(tasks, journal=journal)
    good = (tmp_path / "good").read_bytes()
    rng = random.Random(0)  # noqa: S311
    aside = 0
    for trial in range(90):
        data, start = bytearray(good), rng.randrange(len(good) if trial % 2 else 4096)
        if trial % 3 == 0:
            data = data[:start]
        elif trial % 3 == 1:
            data[start] ^= 1 << rng.randrange(8)
        else:
            data[start : start + 700] = rng.randbytes(len(data[start : start + 700]))
        path = tmp_path / f"bad{trial}"
        path.write_bytes(data)
        with Journal(path, run_key="k") as journal:
            assert same(run(tasks, journal=journal), expected)
            aside += bool(journal.notice)
    assert 15 < aside < 90


def test_a_full_disk_stops_the_journal_not_the_run(tmp_path):
    with Journal(tmp_path / "j", run_key="k") as journal:
        journal._execute("PRAGMA max_page_count = 5")
        assert (
            len(run([Task(f"{i}", np.arange, {"stop": 2000}) for i in range(5)], journal=journal))
            == 5
        )
        assert "full" in journal.notice
