import json
import math

import numpy as np
import pytest

from surelearn.bounds import clopper_pearson
from surelearn.selection.ledger import Ledger, allowance, ledger_path, ordinal

ROWS = np.arange(100, dtype=np.uint64)


def test_later_audits_of_the_same_rows_pay_and_repeats_do_not(tmp_path):
    path = tmp_path / "ledger.json"
    assert Ledger(path).record("a", ROWS) == 1
    assert Ledger(path).record("b", ROWS[:10]) == 2
    assert Ledger(path).record("c", ROWS[50:]) == 2  # those rows were used once
    assert Ledger(path).record("d", ROWS) == 3
    assert Ledger(path).record("a", ROWS) == 1
    assert Ledger(path).record("e", ROWS + np.uint64(1000)) == 1
    assert len(json.loads(path.read_text())["audits"]) == 5
    assert not list(tmp_path.glob("*.part"))


def test_all_audits_together_fail_in_at_most_1_4_delta():
    assert math.fsum(allowance(0.05, turn) for turn in range(1, 100_000)) <= 1.4 * 0.05
    assert allowance(0.05, 2) == pytest.approx(0.05 * 6 / (math.pi**2 * 4))


def test_a_ledger_that_cannot_be_read_is_refused_not_ignored(tmp_path):
    path = tmp_path / "ledger.json"
    for text in ("", "{}", "[1]", '{"format": "other"}', '{"format": "surelearn-ledger", "version": 9, "audits": []}'):
        path.write_text(text)
        with pytest.raises(ValueError, match="not a ledger"):
            Ledger(path)


def test_where_it_lives(tmp_path, monkeypatch):
    data = tmp_path / "d.csv"
    assert ledger_path(data) == tmp_path / ".d.csv.surelearn-ledger.json"
    assert ledger_path(data, tmp_path / "x.json") == tmp_path / "x.json"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert ledger_path(None).is_relative_to(tmp_path / "state")
    assert Ledger(ledger_path(None)).record("a", ROWS) == 1
    assert Ledger(None).record("a", ROWS) == 1
    assert ordinal(2) == "second"


def test_twenty_tries_on_pure_noise_do_not_certify_better_than_a_coin(tmp_path):
    """The best of 20 models on the same 200 certify rows of pure noise; by the ledger all but the first pay."""
    rng = np.random.default_rng(0)
    fooled = naive = 0
    for _ in range(300):
        errors = rng.binomial(200, 0.5, 20)
        turns = Ledger(None)
        deltas = [allowance(0.05, turns.record(f"{i}", ROWS)) for i in range(20)]
        fooled += any(clopper_pearson(int(e), 200, d / 2) < 0.5 for e, d in zip(errors, deltas, strict=True))
        naive += any(clopper_pearson(int(e), 200, 0.025) < 0.5 for e in errors)
    assert fooled / 300 <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 300)
    assert naive / 300 > 0.25


def test_the_same_table_with_other_columns_is_charged(tmp_path):
    book = Ledger(tmp_path / "ledger.json")
    assert book.record("a", ROWS, "targets 1") == 1
    assert book.record("b", ROWS + np.uint64(10**6), "targets 1") == 2
    assert book.record("c", ROWS + np.uint64(10**7), "targets 2") == 1
    assert book.record("d", ROWS + np.uint64(10**8)) == 1


def test_two_open_ledgers_both_count(tmp_path):
    one, other = Ledger(tmp_path / "ledger.json"), Ledger(tmp_path / "ledger.json")
    assert one.record("a", ROWS) == 1
    assert other.record("b", ROWS) == 2
    assert len(Ledger(tmp_path / "ledger.json").entries) == 2
