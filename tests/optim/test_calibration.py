"""Calibration: Bartlett's criterion against the definition, and against ψ-transforms in closed
form.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from surelearn.optim.calibration import calibration, excess
from surelearn.optim.losses import LOSSES

MARGIN = [name for name, loss in LOSSES.items() if loss.of == "margin"]
NOT_CALIBRATED = {"perceptron"}


@pytest.mark.parametrize("name", MARGIN)
def test_named_losses(name):
    exact = calibration(name)
    assert exact.exact
    assert exact.convex
    assert exact.calibrated == (name not in NOT_CALIBRATED)
    measured = calibration(LOSSES[name].value)
    assert not measured.exact
    assert measured.convex
    assert measured.calibrated == exact.calibrated
    assert measured.slopes == pytest.approx(exact.slopes, abs=1e-6)


@pytest.mark.parametrize("name", MARGIN)
def test_the_criterion_agrees_with_the_definition(name):
    gaps = [excess(name, eta) for eta in (0.0, 0.1, 0.3, 0.45, 0.55, 0.9, 1.0)]
    assert (min(gaps) > 1e-6) == (name not in NOT_CALIBRATED)


def entropy(p):
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


@pytest.mark.parametrize("eta", [0.05, 0.3, 0.5, 0.6, 0.99])
@pytest.mark.parametrize(
    ("name", "psi"),
    [
        ("hinge", lambda eta: abs(2 * eta - 1)),
        ("exponential", lambda eta: 1 - math.sqrt(4 * eta * (1 - eta))),
        ("squared margin", lambda eta: (2 * eta - 1) ** 2),
        ("squared hinge", lambda eta: (2 * eta - 1) ** 2),
        ("logistic", lambda eta: math.log(2) - entropy(eta)),
        ("perceptron", lambda _: 0.0),
    ],
)
def test_excess_in_closed_form(name, psi, eta):
    assert excess(name, eta) == pytest.approx(psi(eta), abs=1e-7)


@pytest.mark.parametrize(
    ("loss", "calibrated", "convex", "words"),
    [
        (lambda t: np.maximum(0.5 - t, 0), True, True, "derivative at 0 is -1, negative"),
        (lambda t: np.maximum(-t, 0), False, True, "slopes are -1 and 0"),
        (lambda t: t**2, False, True, "derivative at 0 is 0, not negative"),
        (lambda t: np.maximum(1 + t, 0), False, True, "derivative at 0 is 1, not negative"),
        (lambda t: 1 / (1 + np.exp(t)), True, False, "not convex"),  # the sigmoid loss
        (lambda t: np.clip(1 - t, 0, 2), True, False, "not convex"),  # the ramp loss
        (np.sin, False, False, "not convex"),  # the wrong sign is as cheap, a period further
    ],
)
def test_callables(loss, calibrated, convex, words):
    verdict = calibration(loss)
    assert (verdict.calibrated, verdict.convex) == (calibrated, convex)
    assert words in verdict.reason


def test_impossible_requests_are_refused():
    with pytest.raises(ValueError, match="loss of residuals"):
        calibration("squared")
    with pytest.raises(ValueError, match="eta must lie"):
        excess("hinge", 1.5)
    with pytest.raises(ValueError, match="as many numbers"):
        calibration(lambda _: 1.0)
