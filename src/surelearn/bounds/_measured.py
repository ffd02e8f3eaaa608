"""What was observed of the quantity that a theorem bounds, from the theorem's own inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt


def risk(inputs: Mapping[str, Any]) -> float:
    """The empirical risk, given as such."""
    return inputs["risk"]


def margin_error(inputs: Mapping[str, Any]) -> float:
    """The fraction of rows below the margin, given as such."""
    return inputs["margin_error"]


def error_rate(inputs: Mapping[str, Any]) -> float | None:
    """Errors over rows; None without rows."""
    return inputs["errors"] / inputs["n"] if inputs["n"] else None


def success_rate(inputs: Mapping[str, Any]) -> float | None:
    """Successes over rows; None without rows."""
    return inputs["successes"] / inputs["n"] if inputs["n"] else None


def mistakes(inputs: Mapping[str, Any]) -> float | None:
    """The mistakes made; None where they were not counted."""
    return inputs["mistakes"]


def mean_loss(inputs: Mapping[str, Any]) -> float | None:
    """The mean of the losses; None without any."""
    return _mean(inputs["losses"]) if len(inputs["losses"]) else None


def mean_gain(inputs: Mapping[str, Any]) -> float | None:
    """How much smaller the mean of the losses is than the baseline's; None without any."""
    both = inputs["baseline_losses"], inputs["losses"]
    return _mean(both[0]) - _mean(both[1]) if all(map(len, both)) else None


def _mean(losses: Any) -> float:
    # asks losses that are kept apart for their mean
    return float(np.mean(cast("npt.NDArray[np.float64]", losses)))
