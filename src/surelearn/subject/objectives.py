"""What a fit minimized: the loss, the penalty, the intercept, the weights of rows, and how
exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

LossName = Literal["logistic", "hinge", "squared_hinge", "squared", "huber", "epsilon_insensitive"]
Coding = Literal["numbers", "binary", "one_vs_rest", "one_vs_one", "softmax"]


@dataclass(frozen=True)
class Objective:
    """(1/n)·Σ ℓ(f(x_i), y_i) + λ‖w‖², f(x) = ⟨w, φ(x)⟩ + b, in the coordinates that the learner
    itself is given.

    Attributes
    ----------
    loss : ℓ by name; of margins y·f(x) with y = ±1 for classes, of residuals f(x) − y for numbers
    regularization : λ where it stands beside the mean loss; λ·n where it stands beside the sum
        (``beside``)
    beside : "mean" where λ stays as rows are added, "sum" where the total penalty stays, so that λ
        falls as 1/n
    intercept : b is "free", "regularized" like the weights, or "none"
    coding : one function of "numbers"; of classes: "binary" ±1, a machine each ("one_vs_rest") or
        for every pair ("one_vs_one"), or one loss of all scores together ("softmax")
    parameters : of the loss: "tube" (ε of the epsilon-insensitive loss), "knee" (from where Huber's
        loss is linear)
    intercept_scale : where b is regularized, the penalty counts (b/intercept_scale)²
    l1 : of an L1 penalty beside λ‖w‖²; 0 without
    uniform : whether every row weighs alike; None where the model does not tell
    kernel : whose feature map φ is; "linear" where it is the identity
    rows : n, where the model tells
    minimized : whether w is the minimizer up to ``tolerance``; False where it stopped early, or
        only came near
    tolerance : the gradient or gap at which the solver was told to stop, in its own measure; None
        where it does not tell
    gap : the proved duality gap of the fit; None where there is none

    Examples
    --------
    >>> svm = Objective("hinge", 0.5, beside="sum", intercept="free", coding="binary")
    >>> svm.strength(100)  # λ beside the mean of 100 losses
    0.005
    """

    loss: LossName
    regularization: float
    beside: Literal["mean", "sum"] = "mean"
    intercept: Literal["free", "regularized", "none"] = "free"
    coding: Coding = "numbers"
    parameters: Mapping[str, float] = field(default_factory=dict[str, float])
    intercept_scale: float = 1.0
    l1: float = 0.0
    uniform: bool | None = True
    kernel: str = "linear"
    rows: int | None = None
    minimized: bool = True
    tolerance: float | None = None
    gap: float | None = None

    def strength(self, n: int) -> float:
        """λ beside the mean loss of n rows."""
        return self.regularization if self.beside == "mean" else self.regularization / n

    def intercept_strength(self, n: int) -> float | None:
        """What multiplies b² beside the mean loss of n rows: 0 where b is free, None where
        there is none.
        """
        if self.intercept == "none":
            return None
        return (
            self.strength(n) / self.intercept_scale**2 if self.intercept == "regularized" else 0.0
        )
