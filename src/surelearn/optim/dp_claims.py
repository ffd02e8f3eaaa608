"""The record of a model trained by DP-SGD, which reveals nothing of the rows, and the (ε,
dp_delta) that it allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from surelearn.bounds.privacy import ADJACENT, CLIPPED, POISSON, dp_sgd_epsilon, dp_sgd_renyi
from surelearn.lacking import Lacking
from surelearn.optim.accountant import PrivacySpent
from surelearn.optim.dp_sgd import Recipe
from surelearn.record import Record, Writer, run

WEIGHTS = (
    "the weights alone: not measurements on the same rows, such as an audit, nor the choice of"
    " settings by trying"
)
NOT_TUNED = f"ε covers {WEIGHTS}"
SEED_UNKNOWN = "nobody knows the seed of the noise, which was given as random_state"
NO_NOISE = Lacking("epsilon", "no noise was added")
WEAK = "dp_delta is"
_STEPS = ("noise_multiplier", "sample_rate", "steps", "dp_delta")


@dataclass(frozen=True, kw_only=True)
class PrivacyRecord(Record):
    """Steps of DP-SGD; nothing measured on the rows, which ε would not cover.

    Attributes
    ----------
    clip : C, the norm to which each row's gradient was clipped
    noise_multiplier : σ, the noise in units of C
    no_epsilon : why no ε is known, or ""
    seeded : whether the seed of the noise was given
    sample_rate, steps, dp_delta : q of the Poisson samples, how many were drawn, and privacy's δ;
        None without an ε
    accounted, by : dp-accounting's ε, 0 where it was not asked, and which accountants looked
    adjacency : which data sets count as adjacent
    """

    key: ClassVar[str] = "dp-sgd/1"
    assumptions: ClassVar[tuple[str, ...]] = ()

    clip: float
    noise_multiplier: float
    no_epsilon: str
    seeded: bool = run(
        "the seed of the noise is secret: it is not saved, and a loaded model has forgotten it",
        default=False,
    )
    sample_rate: float | None = None
    steps: int | None = None
    dp_delta: float | None = None
    accounted: float | None = None
    adjacency: str | None = None
    by: str | None = run(
        "which accountants were installed then; ours alone proves ε, another can only raise it",
        default=None,
    )

    def write(self, writer: Writer) -> None:
        """Claim ε by both theorems, or say why there is none; nothing is known of the risk."""
        if self.no_epsilon or self.dp_delta is None:
            writer.lacks("epsilon", self.no_epsilon, dp_sgd_epsilon.key)
        else:
            read = {name: name for name in _STEPS}
            seed = [SEED_UNKNOWN] if self.seeded else []
            further = (NOT_TUNED, *self.assumptions, *seed, *_weak(self.dp_delta, self.n))
            said = {"met": (POISSON, CLIPPED), "assumptions": further, "loss": "any"}
            at = f"at dp_delta = {self.dp_delta:g}, {self.adjacency}"
            writer.claim(
                dp_sgd_epsilon, {**read, "accounted": "accounted"}, label=f"epsilon {at}", **said
            )
            writer.claim(
                dp_sgd_renyi,
                read,
                quantity="epsilon_renyi",
                label=f"epsilon by Rényi accounting {at}",
                **said,
            )
        writer.lacks(
            "risk",
            "noise and clipping leave no theorem on the rows fitted on: use certify() on fresh"
            " rows",
        )


def facts_of(
    n: int,
    d: int,
    recipe: Recipe,
    spent: PrivacySpent | Lacking,
    *,
    seeded: bool = False,
) -> dict[str, Any]:
    """What is recorded; nothing measured on the rows, which ε would not cover."""
    facts: dict[str, Any] = {
        "n": n,
        "d": d,
        "clip": float(recipe.clip),
        "noise_multiplier": float(recipe.noise_multiplier),
        "no_epsilon": spent.reason if isinstance(spent, Lacking) else "",
        "seeded": seeded,
    }
    if isinstance(spent, Lacking):
        return facts
    return facts | {
        name: getattr(spent, name)
        for name in ("sample_rate", "steps", "dp_delta", "accounted", "adjacency", "by")
    }


def told_again(facts: dict[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Of facts made again from parameters and rows, those that must be the recorded ones.

    Not the seed, not who looked, and not dp-accounting's ε where it was installed only then, or
    only now.
    """
    untold = {"seeded", "by"} | (set() if facts.get("by") == recorded.get("by") else {"accounted"})
    return {name: value for name, value in facts.items() if name not in untold}


def _weak(dp_delta: float, n: int) -> tuple[str, ...]:
    """What is said of a dp_delta that is not below 1/n, or nothing."""
    if dp_delta < 1 / n:
        return ()
    return (
        (
            f"{WEAK} {dp_delta:g}, not below 1/n: who publishes one of the {n:,} rows at random"
            " satisfies it"
        ),
    )


__all__ = [
    "ADJACENT",
    "NOT_TUNED",
    "NO_NOISE",
    "SEED_UNKNOWN",
    "WEAK",
    "PrivacyRecord",
    "facts_of",
    "told_again",
]
