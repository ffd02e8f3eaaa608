"""The one stopper: which reason it gives, and when."""

from __future__ import annotations

import pytest

from surelearn.optim.stopping import Stopper


def reasons(stopper, errors, **kind):
    name = next(iter(kind), "training")
    return [stopper.after(**{name: error}) for error in errors]


def test_passes():
    stopper = Stopper(passes=3)
    assert reasons(stopper, [0.3, 0.2, 0.1]) == ["", "", "passes"]
    assert (stopper.done, stopper.reason) == (3, "passes")


def test_convergence_comes_first():
    assert Stopper(passes=1, patience=1).after(training=1.0, converged=True) == "converged"


@pytest.mark.parametrize(
    ("patience", "tolerance", "errors", "stops_at"),
    [
        (1, 0.0, [0.5, 0.4, 0.4], 3),
        (2, 0.0, [0.5, 0.6, 0.4, 0.4, 0.4], 5),  # an improvement starts the count again
        (2, 0.1, [0.5, 0.45, 0.41], 3),  # smaller steps than the tolerance do not count
        (None, 0.0, [0.5] * 9, None),
    ],
)
def test_patience(patience, tolerance, errors, stops_at):
    found = reasons(Stopper(passes=100, patience=patience, tolerance=tolerance), errors)
    assert [i for i, reason in enumerate(found, start=1) if reason][:1] == (
        [stops_at] if stops_at else []
    )


def test_validation_decides_where_it_is_given():
    stopper = Stopper(passes=100, patience=2)
    for training, validation in [(0.5, 0.5), (0.4, 0.5), (0.3, 0.6)]:
        reason = stopper.after(training=training, validation=validation)
    assert reason == "validation error stalled"


def test_time():
    assert Stopper(passes=100, seconds=1e9).after() == ""
    assert Stopper(passes=100, seconds=0.0).after() == "time"
