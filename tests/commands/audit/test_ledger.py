"""Second looks pay, wherever they are recorded."""

import json
import re
import shutil

import pytest
from tests.commands.audit.steps import (
    SKIP,
    audit,
    content,
    leftovers,
    page_text,
    refusal,
    surelearn,
)

from surelearn.certificate import Certificate


def delta_of(folder):
    return json.loads((folder / "certificate.json").read_text(encoding="utf-8"))["delta"]


def test_a_second_look_at_the_same_rows_pays(place):
    audit("--out first")
    ledger = (place / "ledger.json").read_bytes()
    audit("--out repeated")
    assert content(place / "repeated") == content(place / "first")
    assert (place / "ledger.json").read_bytes() == ledger
    audit("--positive yes --out second")
    audit("--slice c --out third")
    audit("--out repeated-late")
    assert content(place / "repeated-late") == content(place / "first")
    assert "no earlier audit known here" in page_text(place / "first")
    for name in ("second", "third"):
        assert f"{name} audit of these rows" in page_text(place / name)
    assert delta_of(place / "first") == 0.05
    assert delta_of(place / "first") > delta_of(place / "second") > delta_of(place / "third") > 0
    certificates = [
        Certificate.from_json((place / name / "certificate.json").read_text())
        for name in ("first", "third")
    ]
    assert certificates[0]["risk"].value < certificates[1]["risk"].value


def test_a_look_at_the_data_through_another_file_is_seen(place):
    """Rows are known by their content."""
    shutil.copy(place / "t.csv", place / "copy.csv")
    audit("--out first")
    audit("--positive yes --out second", table="copy.csv")
    assert "second audit of these rows" in page_text(place / "second")


def test_the_ledger_lies_beside_the_data(place):
    surelearn("audit t.csv --target y --model models_of_cli_tests:quick --jobs 1", SKIP)
    assert (place / ".t.csv.surelearn-ledger.json").exists()
    assert (
        place / "state" / "surelearn" / "ledger.json"
    ).exists()  # and in the user's, which a copy of the file cannot lose


def test_the_ledger_of_a_built_in_set_lies_in_the_state_folder(place):
    result = surelearn("audit iris --model models_of_cli_tests:quick --jobs 1", SKIP)
    assert result.exit_code == 0, result.output
    assert [path.name for path in (place / "state" / "surelearn").glob("*.json")] == ["ledger.json"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: "",
        lambda text: text.replace("surelearn-ledger", "another-ledger", 1),
        lambda text: text.replace('"version": 2', '"version": 99'),
        lambda text: re.sub(r'"hashes": "....', '"hashes": "!', text),
        lambda _: "[]",
    ],
)
def test_a_damaged_ledger_is_refused(damage, place):
    audit("--out first")
    ledger = place / "ledger.json"
    ledger.write_text(damage(ledger.read_text()))
    before = ledger.read_bytes()
    result = audit("--positive yes --out second")
    assert "ledger.json is not a ledger that can be read" in refusal(result)
    assert result.stdout == ""  # before the work, not after
    assert not (place / "second").exists()
    assert leftovers(place) == []
    assert ledger.read_bytes() == before
