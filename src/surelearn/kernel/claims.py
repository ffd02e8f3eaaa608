"""What may be claimed about a fitted kernel machine, and why not where it may not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surelearn import bounds
from surelearn.base import Writer
from surelearn.bounds.capacity import BINARY
from surelearn.bounds.optimality import CONVEX
from surelearn.bounds.stability import LOSS_NONNEGATIVE, UNIFORM
from surelearn.kernel.functions import UNBOUNDED
from surelearn.kernel.precomputed import MOST_ROWS, POSITIVE

MARGIN = 0.5  # rows with y·f(x) ≤ ρ = ½ count as margin errors
_TUNED = (
    "the bandwidth or λ was chosen on the rows: give bandwidth= (or a kernel object) and regularization= fixed beforehand"
)
_WEIGHTED = "the rows were weighted: the theorem is about rows drawn alike, each counted once"
_CENTRES = "f is built on fewer centers than rows: the theorem is about the minimizer over all of the RKHS"
_STATE_X = "state x_bound=, a bound on ‖x‖ that holds for every row"
_RISKS = (bounds.uniform_stability_nonnegative, bounds.bousquet_elisseeff)


def claim_distance(writer: Writer, facts: dict[str, Any]) -> None:
    """‖f − f*‖ ≤ ‖∇F(f)‖/(2λ) in the RKHS, f* the ridge solution."""
    if "centres" in facts:
        writer.absent("distance to the minimizer", _CENTRES, bounds.distance_to_minimizer.key)
        return
    if facts["regularization"] == 0:
        reason = "without a penalty the residual bounds the distance only by the smallest eigenvalue: set regularization="
        writer.absent("distance to the minimizer", reason, bounds.distance_to_minimizer.key)
        return
    read = {"gradient_norm": "gradient_norm", "regularization": "regularization"}
    mean = "Σw‖f(x) − y‖²/Σw" if facts.get("weighted") else "(1/n)·Σ‖f(x) − y‖²"
    assumptions = [POSITIVE] if facts.get("matrix_rows", 0) > MOST_ROWS else []
    writer.claim(bounds.distance_to_minimizer, read, loss=f"{mean} + λ‖f‖²", met=(CONVEX,), assumptions=assumptions)


def claim_leave_one_out(writer: Writer, facts: dict[str, Any]) -> None:
    """Say why there is no exact leave-one-out error, where there is none."""
    if facts["leave_one_out_error"] is None:
        iterative = "it needs the inverse of the kernel matrix: solver='direct' gives it"
        writer.absent("leave-one-out error", iterative if facts["solver"] != "direct" else "the kernel matrix is singular")


def stability_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """What the stability claims read: ridge regression with φ(x) for x, ‖φ(x)‖ ≤ radius.

    No loss of the minimizer f* exceeds M = Y²(1 + r/(2√λ))²; f is within ε = ‖∇F‖/(2λ) of it, which changes a loss by at
    most t = (rε + v)(2√M + rε + v), v the rounding of a value: the bound for f* holds for f with 2t added. Removing a row
    moves f* half as far as replacing one.
    """
    if no_stability(facts):
        return {}
    lam, radius, y_bound = facts["regularization"], facts["radius"], facts["y_bound"]
    loss_bound = (y_bound * (1 + radius / (2 * math.sqrt(lam)))) ** 2
    off = radius * facts["gradient_norm"] / (2 * lam) + facts["value_error"]
    change = off * (2 * math.sqrt(loss_bound) + off)
    beta = float(bounds.beta_ridge(radius, y_bound, lam, facts["n"]))
    left = facts["leave_one_out_error"]
    return {
        "stability": beta,
        "remove_one_stability": beta / 2,
        "loss_bound": loss_bound,
        "risk": facts["training_risk"] + 2 * change,
        "leave_one_out_risk": None if left is None else left + 2 * change,
    }


def no_stability(facts: dict[str, Any]) -> str:
    """Why no stability is claimed, or ""."""
    if "centres" in facts:
        return _CENTRES
    if facts["regularization"] == 0:
        return "without a penalty interpolation is not uniformly stable: set regularization= beforehand"
    if facts["weighted"]:
        return _WEIGHTED
    if facts["tuned"]:
        return _TUNED
    if facts["radius"] is None:
        return _no_radius(facts)
    return "state y_bound=, a bound on |y| that holds for every row" if facts["y_bound"] is None else ""


def _no_radius(facts: dict[str, Any]) -> str:
    return UNBOUNDED if facts["kernel"] == "precomputed" else _STATE_X


def claim_stability(writer: Writer, facts: dict[str, Any]) -> None:
    """Uniform stability of kernel ridge regression, and the bounds on the risk that follow."""
    if reason := no_stability(facts):
        for quantity, theorem in (("uniform stability", bounds.beta_ridge), *(("risk", risk) for risk in _RISKS)):
            writer.absent(quantity, reason, theorem.key)
        return
    stated = "k(x, x) ≤ radius² and |y| ≤ y_bound for every row, as stated"
    common: dict[str, Any] = {"loss": "squared", "met": (UNIFORM, LOSS_NONNEGATIVE), "assumptions": [stated]}
    read = {"x_bound": "radius", "y_bound": "y_bound", "regularization": "regularization", "n": "n"}
    writer.claim(bounds.beta_ridge, read, loss="squared", met=(UNIFORM,))
    read = {"risk": "risk", "beta": "stability", "n": "n", "loss_bound": "loss_bound"}
    writer.claim(bounds.uniform_stability_nonnegative, read, **common)
    if facts["leave_one_out_error"] is None:
        writer.absent("risk", "the leave-one-out error is not known", bounds.bousquet_elisseeff.key)
    else:
        read |= {"risk": "leave_one_out_risk", "beta": "remove_one_stability"}
        writer.claim(bounds.bousquet_elisseeff, read, leave_one_out=True, **common)


def margin_facts(fitted: np.ndarray, Y: np.ndarray, error: float | None) -> dict[str, float]:
    """The share of rows with y·f(x) ≤ ρ, where f(x) is known up to an error."""
    return {"margin_at": MARGIN, "margin_error": float((Y[:, 0] * fitted[:, 0] <= MARGIN + (error or 0.0)).mean())}


def claim_margin(writer: Writer, facts: dict[str, Any]) -> None:
    """The Rademacher margin bound, uniform over norms: it holds for any f of a kernel fixed beforehand, however found."""
    theorem = bounds.rademacher_margin
    if facts["classes"] > 2:
        writer.absent("risk", f"the theorem is about two classes, here are {facts['classes']}", theorem.key)
    elif facts["weighted"]:
        writer.absent("risk", _WEIGHTED, theorem.key)
    elif facts["tuned"]:
        writer.absent("risk", _TUNED, theorem.key)
    elif facts["radius"] is None:
        writer.absent("risk", _no_radius(facts), theorem.key)
    else:
        read = {"margin_error": "margin_error", "n": "n", "norm": "norm", "radius": "radius", "margin": "margin_at"}
        met = tuple(line for line in theorem.assumes if line in ("no unregularized intercept", BINARY))
        writer.claim(theorem, read, met=met)
