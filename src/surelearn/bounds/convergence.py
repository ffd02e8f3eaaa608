"""How far an algorithm can still be from its goal: mistakes, training error, gradient descent,
single-pass SGD.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surelearn.bounds import _checks as check
from surelearn.bounds import _measured as measured
from surelearn.bounds._checks import Value
from surelearn.bounds._sources import COURSE, REGULARIZATION, THESIS
from surelearn.bounds.holdout import IID
from surelearn.claim import ALWAYS, IN_EXPECTATION, Statement, at_most, theorem

SMOOTH = "the objective's gradient is Lipschitz with the stated smoothness"


def _always(quantity: str, trivial: float | None = None) -> Statement:
    return at_most(quantity, holds=ALWAYS, trivial=trivial, unit="number")


@theorem(
    "perceptron convergence",
    f"{COURSE}, Theorem 2.8",
    assumes=(
        "the perceptron starts at w = 0",
        "radius and margin belong to the padded vectors (x, 1)",
    ),
    claims=at_most(
        "mistakes", holds=ALWAYS, trivial=None, unit="number", measured=measured.mistakes
    ),
    example={"radius": 2.0, "margin": 0.1, "mistakes": 150},
)
def perceptron_mistakes(
    radius: npt.ArrayLike, margin: npt.ArrayLike, mistakes: npt.ArrayLike | None = None
) -> Value:
    """Mistakes the perceptron makes in all before it separates the rows: (C/γ)².

    Parameters
    ----------
    radius : C, the largest norm of a padded vector (x, 1)
    margin : γ > 0, min y⟨w*, (x, 1)⟩ of a unit vector w* that separates
    mistakes : how many it made, to stand beside the bound; they do not change it

    Examples
    --------
    >>> round(perceptron_mistakes(2.0, 0.1), 6)
    400.0
    """
    bound = (check.positive("radius", radius) / check.positive("margin", margin)) ** 2
    made = check.count("mistakes", 0 if mistakes is None else mistakes)
    return check.plain(np.broadcast_arrays(bound, made)[0])


@theorem(
    "AdaBoost training error",
    f"{THESIS}, Theorem 3.1 (3.2)",
    assumes=("two classes", "each weak learner's weight is ½·ln((1 − ε)/ε)"),
    claims=at_most("training_error", holds=ALWAYS),
    example={"edges": (0.2, 0.15, 0.1)},
)
def adaboost_training_error(edges: npt.ArrayLike) -> float:
    """Training error of AdaBoost from its edges γ_t = ½ − ε_t: ∏ √(1 − 4γ_t²).

    Examples
    --------
    >>> round(adaboost_training_error([0.2, 0.15, 0.1]), 4)
    0.8566
    """
    edges = check.sample("edges", edges, -0.5, 0.5)
    return float(np.prod(np.sqrt(1 - 4 * edges**2)))


@theorem(
    "gradient descent, convex",
    f"{COURSE}, Theorem 8.5",
    assumes=("the objective is convex", SMOOTH),
    claims=_always("suboptimality"),
    example={"distance": 10.0, "step": 0.1, "iterations": 1000, "smoothness": 10.0},
)
def gradient_descent_convex(
    distance: npt.ArrayLike,
    step: npt.ArrayLike,
    iterations: npt.ArrayLike,
    smoothness: npt.ArrayLike,
) -> Value:
    """f(x_k) − f* after k steps t ≤ 1/L from distance D of a minimizer: D²/(2tk).

    Examples
    --------
    >>> round(gradient_descent_convex(10.0, 0.1, 1000, smoothness=10.0), 6)
    0.5
    """
    distance, t = check.nonnegative("distance", distance), check.positive("step", step)
    check.require(
        t * check.positive("smoothness", smoothness) <= 1 + 1e-12,
        "step must be at most 1/smoothness",
    )
    return check.plain(distance**2 / (2 * t * check.count("iterations", iterations, 1)))


@theorem(
    "gradient descent, strongly convex",
    f"{COURSE}, Theorem 8.7, with γ = 1 − 2tmL/(m + L); Y. Nesterov (2004), Theorem 2.1.15",
    assumes=("the objective is strongly convex as stated", SMOOTH),
    claims=_always("suboptimality"),
    example={
        "distance": 10.0,
        "step": 0.1,
        "iterations": 100,
        "smoothness": 10.0,
        "strong_convexity": 1.0,
    },
)
def gradient_descent_strongly_convex(
    distance: npt.ArrayLike,
    step: npt.ArrayLike,
    iterations: npt.ArrayLike,
    smoothness: npt.ArrayLike,
    strong_convexity: npt.ArrayLike,
) -> Value:
    """f(x_k) − f* after k steps t ≤ 2/(m + L): γ^k·(L/2)·D², γ = 1 − 2tmL/(m + L).

    Examples
    --------
    >>> round(gradient_descent_strongly_convex(10.0, 0.1, 100, smoothness=10.0, strong_convexity=1.0), 8)
    9.6e-07
    """
    distance, t = check.nonnegative("distance", distance), check.positive("step", step)
    big, m = (
        check.positive("smoothness", smoothness),
        check.positive("strong_convexity", strong_convexity),
    )
    check.require(m <= big, "strong_convexity must not exceed smoothness")
    check.require(
        t * (m + big) <= 2 + 1e-12, "step must be at most 2/(strong_convexity + smoothness)"
    )
    gamma = np.maximum(0.0, 1 - 2 * t * m * big / (m + big))
    return check.plain(gamma ** check.count("iterations", iterations) * big / 2 * distance**2)


@theorem(
    "gradient descent, non-convex",
    f"{COURSE}, Theorem 8.8",
    assumes=(SMOOTH,),
    claims=_always("smallest_gradient_norm"),
    example={"gap": 10.0, "step": 0.1, "iterations": 1000, "smoothness": 10.0},
)
def gradient_descent_nonconvex(
    gap: npt.ArrayLike, step: npt.ArrayLike, iterations: npt.ArrayLike, smoothness: npt.ArrayLike
) -> Value:
    """Smallest gradient norm among x_0 … x_k with steps t ≤ 1/L: √(2(f(x_0) − f*) / (t(k + 1))).

    Parameters
    ----------
    gap : f(x_0) − f*, or an upper bound on it

    Examples
    --------
    >>> round(gradient_descent_nonconvex(10.0, 0.1, 1000, smoothness=10.0), 4)
    0.447
    """
    gap, t = check.nonnegative("gap", gap), check.positive("step", step)
    check.require(
        t * check.positive("smoothness", smoothness) <= 1 + 1e-12,
        "step must be at most 1/smoothness",
    )
    return check.plain(np.sqrt(2 * gap / (t * (check.count("iterations", iterations) + 1))))


@theorem(
    "SGD learnability",
    f"{REGULARIZATION}; S. Shalev-Shwartz and S. Ben-David (2014), Theorem 14.8 and Corollary"
    " 14.12",
    assumes=(
        IID,
        "a single pass: a fresh row each step",
        "the averaged iterate",
        "convex loss, Lipschitz as stated",
    ),
    claims=at_most("excess_risk", holds=IN_EXPECTATION, trivial=None, unit="number"),
    example={"norm_bound": 1.0, "lipschitz": 1.0, "iterations": 10000},
)
def sgd_learnability(
    norm_bound: npt.ArrayLike,
    lipschitz: npt.ArrayLike,
    iterations: npt.ArrayLike,
    step: npt.ArrayLike | None = None,
) -> Value:
    """Expected risk of averaged single-pass SGD above the best ‖w‖ ≤ B: B²/(2ηT) + ηρ²/2.

    With the best step η = B/(ρ√T), the default, it is Bρ/√T: T ≥ B²ρ²/ε² rows suffice for ε.

    Examples
    --------
    >>> round(sgd_learnability(1.0, 1.0, 10000), 6)
    0.01
    """
    b, rho = check.positive("norm_bound", norm_bound), check.positive("lipschitz", lipschitz)
    t = check.count("iterations", iterations, 1)
    eta = b / (rho * np.sqrt(t)) if step is None else check.positive("step", step)
    return check.plain(b**2 / (2 * eta * t) + eta * rho**2 / 2)
