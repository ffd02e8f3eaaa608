import json
import math
from pathlib import Path

import numpy as np
import pytest

from surelearn.bounds import clopper_pearson
from surelearn.selection.ledger import (
    Known,
    Ledger,
    Look,
    allowance,
    ledger_paths,
    ordinal,
    secret_salt,
)
from surelearn.selection.sketch import sketch

FIXTURES = Path(__file__).parents[1] / "fixtures" / "version-0.1"
RNG = np.random.default_rng(0)
CONTENTS, TARGETS = RNG.integers(0, 2**62, 300).astype(np.uint64), RNG.integers(0, 2, 300)
TABLE = Known(sketch(CONTENTS, TARGETS))
OTHER = Known(sketch(CONTENTS + np.uint64(1), TARGETS[::-1]))


def look(audit, **more):
    return Look(audit=audit, turn=1, table="", **more)


def test_later_audits_of_the_same_rows_pay_and_repeats_do_not(tmp_path):
    path = tmp_path / "ledger.json"
    part = Known(sketch(CONTENTS[:100], TARGETS[:100]))
    assert Ledger(path).record(look("a"), TABLE).turn == 1
    assert Ledger(path).record(look("b"), part).turn == 2
    # two looks, whichever rows each of them used
    assert Ledger(path).record(look("c"), TABLE).turn == 3
    assert Ledger(path).record(look("a"), TABLE).turn == 1
    assert Ledger(path).record(look("d"), OTHER).turn == 1
    assert len(json.loads(path.read_text())["looks"]) == 4
    assert not list(tmp_path.glob("*.part"))


def test_a_model_that_shared_the_page_is_paid_for(tmp_path):
    """Of a suspected leak the page has two claims; following its advice is an audit of one of
    both.
    """
    book = Ledger(tmp_path / "ledger.json")
    assert book.record(look("both", models=("with", "without")), TABLE).turn == 1
    assert book.record(look("dropped", models=("without",)), TABLE).turn == 1
    assert book.record(look("another", models=("new",)), TABLE).turn == 3
    # one of both was never seen
    assert book.record(look("new and old", models=("newer", "without")), TABLE).turn == 4


def test_all_audits_together_fail_in_at_most_1_4_delta():
    assert math.fsum(allowance(0.05, turn) for turn in range(1, 100_000)) <= 1.4 * 0.05
    assert allowance(0.05, 2) == pytest.approx(0.05 * 6 / (math.pi**2 * 4))


DAMAGED = [
    "", "{}", "[1]", '{"format": "other"}', "null",
    '{"format": "surelearn-ledger", "version": 9, "audits": []}',
    '{"format": "surelearn-ledger", "version": 2, "looks": [{}], "tables": {}}',
    '{"format": "surelearn-ledger", "version": 2, "looks": [{"audit": "a", "turn": 1, "table": "t", "models": []}],'
    ' "tables": {}}',
    '{"format": "surelearn-ledger", "version": 2, "looks": [],'
    ' "tables": {"t": {"target": "", "columns": [], "sketch": {}}}}',
    '{"format": "surelearn-ledger", "version": "2", "looks": [], "tables": {}}',
    "[" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("text", DAMAGED)
def test_a_ledger_that_cannot_be_read_is_refused_not_ignored(tmp_path, text):
    path = tmp_path / "ledger.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="not a ledger"):
        Ledger(path)


def test_where_it_lives(tmp_path, monkeypatch):
    data = tmp_path / "d.csv"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert ledger_paths(data) == (
        tmp_path / "state" / "surelearn" / "ledger.json",
        tmp_path / ".d.csv.surelearn-ledger.json",
    )
    assert ledger_paths(data, tmp_path / "x.json") == (tmp_path / "x.json",)
    assert ledger_paths(None) == (tmp_path / "state" / "surelearn" / "ledger.json",)
    assert ledger_paths(data, False) == ()
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", _homeless)
    with pytest.raises(ValueError, match="no home folder: set XDG_STATE_HOME"):
        ledger_paths(data)
    assert Ledger().record(look("a"), TABLE).turn == 1
    assert ordinal(2) == "second"


def _homeless():
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 10**6])
def test_a_salt_that_is_no_secret_is_refused(tmp_path, monkeypatch, content):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    made = secret_salt()
    assert secret_salt() == made
    (tmp_path / "surelearn" / "salt").write_bytes(content)
    with pytest.raises(ValueError, match="no salt that surelearn made"):
        secret_salt()


def test_a_look_in_two_ledgers_counts_once_and_each_file_keeps_to_its_own(tmp_path):
    mine, beside = tmp_path / "state" / "ledger.json", tmp_path / "data.json"
    Ledger(mine).record(look("elsewhere"), OTHER)
    assert Ledger(mine, beside).record(look("a"), TABLE).turn == 1
    assert Ledger(mine, beside).record(look("b"), TABLE).turn == 2
    assert [entry["audit"] for entry in json.loads(beside.read_text())["looks"]] == ["a", "b"]
    assert len(json.loads(mine.read_text())["looks"]) == 3
    assert Ledger(beside).record(look("c"), TABLE).turn == 3  # the user's own ledger lost
    assert Ledger(mine).record(look("d"), TABLE).turn == 3  # the one beside the data lost


def test_what_became_of_a_look_is_kept(tmp_path):
    book = Ledger(tmp_path / "ledger.json")
    book.record(look("g", kind="gate"), TABLE)
    book.amend("g", answer="fail")
    assert Ledger(tmp_path / "ledger.json").at(TABLE)[0].answer == "fail"


def test_twenty_tries_on_pure_noise_do_not_certify_better_than_a_coin():
    """The best of 20 models on the same 200 certify rows of pure noise; by the ledger all but
    the first pay.
    """
    rng = np.random.default_rng(0)
    turns = Ledger()
    deltas = [allowance(0.05, turns.record(look(f"{i}"), TABLE).turn) for i in range(20)]
    errors = rng.binomial(200, 0.5, (300, 20))

    def better_than_a_coin(deltas):
        tries = (zip(row.tolist(), deltas, strict=True) for row in errors)
        return np.mean([any(clopper_pearson(e, 200, d / 2) < 0.5 for e, d in row) for row in tries])

    fooled, naive = better_than_a_coin(deltas), better_than_a_coin([0.05] * 20)
    assert fooled <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 300)
    assert naive > 0.25


def test_two_open_ledgers_both_count(tmp_path):
    one, other = Ledger(tmp_path / "ledger.json"), Ledger(tmp_path / "ledger.json")
    assert one.record(look("a"), TABLE).turn == 1
    assert other.record(look("b"), TABLE).turn == 2
    assert len(Ledger(tmp_path / "ledger.json").looks) == 2


@pytest.mark.parametrize("name", ["iris", "diabetes"])
def test_a_ledger_of_the_first_version_counts(tmp_path, name):
    """`surelearn audit NAME` of version 0.1 wrote it: the same table is known by its rows, and
    by its targets.
    """
    from surelearn.auditing.looks import known_table
    from surelearn.data import read_table
    from surelearn.selection.split import split_rows

    path = tmp_path / "ledger.json"
    path.write_bytes((FIXTURES / f"{name}-ledger.json").read_bytes())
    table = read_table(name)
    known = known_table(table, split_rows(table.row_hashes))
    assert Ledger(path).record(look("new"), known).turn == 2
    assert Ledger(path).record(look("newer"), known).turn == 3  # written again, in this version
    assert Ledger(path).record(look("elsewhere"), TABLE).turn == 1
