"""Theorems, help and the version."""

import re

import pytest
from tests.commands.audit.steps import refusal, surelearn

from surelearn import bounds
from surelearn.cli import main


def test_theorems_are_listed():
    result = surelearn("theorems")
    assert result.exit_code == 0
    listed = [line.split()[0] for line in result.stdout.splitlines()]
    assert listed == [theorem.key for theorem in bounds.theorems()]
    assert len(listed) > 40


def test_one_theorem_with_its_number():
    result = surelearn("theorems clopper_pearson")
    theorem = bounds.clopper_pearson
    assert theorem.reference in result.stdout
    assert theorem.assumes
    assert all(line in result.stdout for line in theorem.assumes)
    assert theorem.certify(**theorem.example).bound() in result.stdout
    assert "Examples" not in result.stdout


@pytest.mark.parametrize("theorem", bounds.theorems(), ids=lambda theorem: theorem.key)
def test_every_theorem_has_a_worked_number(theorem):
    result = surelearn(["theorems", theorem.key])
    assert result.exit_code == 0
    assert theorem.reference in result.stdout
    assert f"{theorem.key}(" in result.stdout.split("For example")[1]
    assert max(map(len, result.stdout.splitlines())) < 400


def test_an_unknown_theorem():
    assert "'lemma'" in refusal(surelearn("theorems lemma"))


def test_help_has_examples():
    for command in ("", "audit"):
        result = surelearn(command, "--help")
        assert result.exit_code == 0
        assert "surelearn audit titanic.csv --target Survived" in result.stdout
    for option in ("--target", "--group", "--max-risk", "--seed", "--ledger"):
        assert option in surelearn("audit -h").stdout


def test_every_example_names_real_options():
    text = surelearn("audit --help").stdout.partition("Examples:")[2]
    known = {
        option for p in main.commands["audit"].params for option in (*p.opts, *p.secondary_opts)
    }
    used = set(re.findall(r"--[a-z-]+", text))
    assert used
    assert used <= known


def test_no_arguments_show_the_usage():
    result = surelearn()
    assert "Usage: " in result.output
    assert "audit" in result.output
    assert result.exit_code in (0, 2)


def test_the_version():
    from surelearn.version import __version__

    assert surelearn("--version").stdout == f"surelearn, version {__version__}\n"


def test_an_unknown_command():
    assert "'audti'" in refusal(surelearn("audti t.csv"))
