"""Which theorems apply to a fitted logistic regression, read from its facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surelearn import bounds
from surelearn.base import Writer
from surelearn.bounds.optimality import CONVEX, CONVEX_LIPSCHITZ
from surelearn.bounds.stability import LOSS_NONNEGATIVE, UNIFORM

LOGARITHMIC = "logarithmic loss"
STATE_X_BOUND = "state x_bound=, a bound on ‖x‖ that holds for every row"
X_BOUNDED = "‖x‖ ≤ x_bound for every row, as stated"
SINGLE_PASS = "a single pass: a fresh row each step"  # noqa: S105 - not a password
AVERAGED = "the averaged iterate"
CONVEX_LOSS = "convex loss, Lipschitz as stated"


def write_claims(writer: Writer, facts: Mapping[str, Any]) -> None:
    """Optimality, stability and the single-pass guarantee, or why not."""
    if reason := _no_optimality(facts):
        for quantity, key in (
            ("suboptimality", "strong_convexity_gap"),
            ("distance to the minimizer", "distance_to_minimizer"),
        ):
            writer.absent(quantity, reason, key)
    else:
        read = {"gradient_norm": "gradient_norm", "regularization": "regularization"}
        writer.claim(bounds.strong_convexity_gap, read, met=(CONVEX,), loss=LOGARITHMIC)
        writer.claim(bounds.distance_to_minimizer, read, met=(CONVEX,), loss=LOGARITHMIC)
    _stability(writer, facts)
    _single_pass(writer, facts)


def _no_optimality(facts: Mapping[str, Any]) -> str:
    if facts["regularization"] == 0:
        return "without regularization the objective is not strongly convex"
    if facts["l1_regularization"] > 0:
        return "with an L1 penalty the objective has no gradient where a weight is zero"
    if facts["intercept"] == "free":
        return "the intercept is free of regularization: the objective is not strongly convex in it"
    if facts["streamed"]:
        return "partial_fit and fit_file do not keep the rows: the gradient of the objective over all of them is not known"
    if "gradient_norm" not in facts:
        return "the gradient was not measured: fit with measure=True"
    return ""


def _no_stability(facts: Mapping[str, Any]) -> str:
    if reason := _no_optimality(facts):
        return reason
    if not facts["uniform"]:
        return "rows are weighted unequally"
    if "x_bound" not in facts:
        return STATE_X_BOUND
    return ""


def _stability(writer: Writer, facts: Mapping[str, Any]) -> None:
    if reason := _no_stability(facts):
        writer.absent("risk", reason, "stability_near_minimizer")
        writer.absent("uniform stability", reason, "beta_near_minimizer")
        return
    shared = {"lipschitz": "lipschitz", "regularization": "regularization", "n": "n", "distance": "distance"}
    writer.claim(
        bounds.stability_near_minimizer,
        {**shared, "risk": "log_loss", "loss_bound": "minimizer_loss_bound"},
        loss=LOGARITHMIC,
        label="logarithmic loss of new rows",
        met=(UNIFORM, LOSS_NONNEGATIVE, CONVEX_LIPSCHITZ),
        assumptions=(X_BOUNDED,),
    )
    writer.claim(
        bounds.beta_near_minimizer,
        shared,
        loss=LOGARITHMIC,
        met=(UNIFORM, CONVEX_LIPSCHITZ),
        assumptions=(X_BOUNDED,),
    )


def _no_single_pass(facts: Mapping[str, Any]) -> str:
    if not facts["average"]:
        return "the guarantee is for the averaged iterate: fit with average=True"
    if facts["finish"] != "none":
        return "the weights were changed by a finish: fit with finish=None"
    if facts["rounds"] > 1:
        return f"the rows were seen in {facts['rounds']} passes: the guarantee is for one, fit with passes=1"
    if facts["l1_regularization"] > 0:
        return "the theorem's steps are plain gradient steps, not steps with an L1 penalty"
    if facts["schedule"] != "constant":
        return 'the guarantee is for a constant step: fit with schedule="constant"'
    if facts["step_from_rows"]:
        return "the steps were chosen from the rows: state step= and intercept_step=1"
    if facts["intercept_step"] != 1:
        return "the intercept moved by smaller steps than the theorem's: fit with intercept_step=1"
    if not facts["uniform"]:
        return "rows are weighted unequally"
    if "x_bound" not in facts:
        return STATE_X_BOUND
    if "norm_bound" not in facts:
        return "state norm_bound=, the norm up to which other weights are compared"
    return ""


def _single_pass(writer: Writer, facts: Mapping[str, Any]) -> None:
    """E F(w̄) − F(u) ≤ B²/(2ηT) + ηρ²/2, for the loss plus λ‖w‖², whose gradients stay below ρ(1 + min(1, 2ληT)).

    A step is w ← (1 − 2ηλ)w − ηg with ‖g‖ ≤ ρ, so ‖w‖ ≤ min(ηρT, ρ/(2λ)) and the gradient's norm is at most ρ + 2λ‖w‖.
    """
    quantity = "excess risk" if facts["regularization"] == 0 else "excess regularized risk"
    if reason := _no_single_pass(facts):
        writer.absent(quantity, reason, "sgd_learnability")
        return
    met = (SINGLE_PASS, AVERAGED, CONVEX_LOSS) if facts["rounds"] == 1 else (AVERAGED, CONVEX_LOSS)
    writer.claim(
        bounds.sgd_learnability,
        {"norm_bound": "norm_bound", "lipschitz": "step_lipschitz", "iterations": "updates", "step": "step"},
        quantity=quantity,
        loss=LOGARITHMIC,
        met=met,
        assumptions=(X_BOUNDED, "norm_bound and step were fixed before seeing the rows"),
    )
