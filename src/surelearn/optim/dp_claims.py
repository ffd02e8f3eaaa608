"""The certificate of a model trained by DP-SGD: facts that reveal nothing of the rows, and the (ε, dp_delta) they allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surelearn.base import Writer
from surelearn.bounds.privacy import ADJACENT, CLIPPED, POISSON, dp_sgd_epsilon, dp_sgd_renyi
from surelearn.optim.accountant import PrivacySpent
from surelearn.optim.dp_sgd import Recipe

WEIGHTS = "the weights alone: not measurements on the same rows, such as an audit, nor the choice of settings by trying"
NOT_TUNED = f"ε covers {WEIGHTS}"
SEED_UNKNOWN = "nobody knows the seed of the noise, which was given as random_state"
WEAK = "dp_delta is"
_STEPS = ("noise_multiplier", "sample_rate", "steps", "dp_delta")


def facts_of(
    n: int, d: int, recipe: Recipe, spent: PrivacySpent | None, reason: str = "", *, seeded: bool = False
) -> dict[str, Any]:
    """What is recorded; nothing measured on the rows, which ε would not cover."""
    facts: dict[str, Any] = {
        "n": n,
        "d": d,
        "clip": float(recipe.clip),
        "noise_multiplier": float(recipe.noise_multiplier),
        "no_epsilon": reason,
        "seeded": seeded,
    }
    if spent is None:
        return facts
    names = ("sample_rate", "steps", "dp_delta", "accounted", "epsilon", "renyi_epsilon", "adjacency", "by")
    return facts | {name: getattr(spent, name) for name in names}


def weak(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """What is said of a dp_delta that is not below 1/n, or nothing."""
    if facts["dp_delta"] < 1 / facts["n"]:
        return ()
    return (
        f"{WEAK} {facts['dp_delta']:g}, not below 1/n: who publishes one of the {facts['n']:,} rows at random satisfies it",
    )


def write_privacy(writer: Writer, facts: Mapping[str, Any], assumptions: tuple[str, ...] = ()) -> None:
    """Claim ε by both theorems, under ``assumptions`` too, or say why there is none; nothing is known of the risk."""
    if facts["no_epsilon"]:
        writer.absent("epsilon", facts["no_epsilon"], "dp_sgd_epsilon")
    else:
        read = {name: name for name in _STEPS}
        further = (NOT_TUNED, *assumptions, *([SEED_UNKNOWN] if facts.get("seeded") else []), *weak(facts))
        said = {"met": (POISSON, CLIPPED), "assumptions": further, "loss": "any"}
        at = f"at dp_delta = {facts['dp_delta']:g}, {facts['adjacency']}"
        writer.claim(dp_sgd_epsilon, {**read, "accounted": "accounted"}, label=f"epsilon {at}", **said)
        writer.claim(dp_sgd_renyi, read, quantity="epsilon (Rényi)", label=f"epsilon by Rényi accounting {at}", **said)
    writer.absent("risk", "noise and clipping leave no theorem on the rows fitted on: use certify() on fresh rows")


__all__ = ["ADJACENT", "NOT_TUNED", "SEED_UNKNOWN", "WEAK", "facts_of", "weak", "write_privacy"]
