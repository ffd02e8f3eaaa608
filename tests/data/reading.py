"""What the tests of this folder share."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SHARED = Path(__file__).parents[3] / "shared" / "data"


def shared(name):
    if not (SHARED / name).exists():
        pytest.skip(f"{name} is not in {SHARED}")
    return SHARED / name


def clean(n=400, seed=0):
    """A table about which there is nothing to find."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)).round(6)
    return pd.DataFrame(
        {
            "height": x[:, 0],
            "weight": x[:, 1],
            "visits": rng.integers(0, 15, n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "member": rng.random(n) < 0.5,
            "born": (
                pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), unit="D")
            ).strftime("%Y-%m-%d"),
            "y": np.where(x[:, 0] + rng.normal(size=n) > 0, "yes", "no"),
        }
    )


def kinds(table):
    return {column.name: column.kind for column in table.columns}


def codes(table):
    return {finding.code for finding in table.findings}


def found(table, code):
    return next(finding for finding in table.findings if finding.code == code)


def odd_tables():
    """For each code, a change to the clean table that must raise it and nothing else beside the
    codes named after it.
    """
    n, rng = 400, np.random.default_rng(7)
    labels = rng.permutation(["a"] * 200 + ["b"] * 195 + ["c"] * 5)
    patient = np.repeat(rng.permutation(40), 10)
    sick = rng.random(40) < 0.5
    return {
        "SL101": (clean().assign(row=np.arange(n)), set()),
        "SL102": (clean().assign(country="DE"), set()),
        "SL103": (clean().assign(alive=clean()["y"].map({"yes": "alive", "no": "dead"})), set()),
        "SL104": (pd.concat([clean(), clean()[:30]]), set()),
        "SL105": (clean().assign(y=labels), set()),
        "SL106": (clean().assign(y=rng.integers(0, 5, n)), set()),
        "SL107": (clean().assign(text=[f"some words {i}" for i in range(n)]), set()),
        "SL108": (clean().assign(patient=patient, y=np.where(sick[patient], "yes", "no")), set()),
        "SL109": (clean().assign(height=clean()["height"] + np.linspace(0, 3, n)), set()),
        "SL110": (clean().assign(y=clean()["y"].where(np.arange(n) % 40 > 0)), set()),
        "SL111": (clean().assign(pounds=2.2046 * clean()["weight"] + 1), set()),
        "SL112": (clean().assign(weight=clean()["weight"].where(np.arange(n) % 5 == 0)), set()),
        "SL113": (
            clean().assign(weight=clean()["weight"].where(np.arange(n) % 50 > 0, np.inf)),
            set(),
        ),
    }


ODD = odd_tables()
