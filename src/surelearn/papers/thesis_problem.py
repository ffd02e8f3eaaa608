"""One problem of the thesis' AdaBoost experiments: eight sizes, what every criterion says of
them, and the truth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from surelearn.bounds import smallest_margin, vc_dimension_of_stumps
from surelearn.jobs import seed_for
from surelearn.papers.thesis import counting_bound_on_stumps
from surelearn.papers.thesis_oracle import FEATURES, TRAINING, draw_oracle
from surelearn.types import AnyArray, Array

if TYPE_CHECKING:
    from surelearn.boosting import AdaBoostClassifier
    from surelearn.selection import NestedFamily, Selection
    from surelearn.selection.criteria.criterion import Criterion

DIMENSIONS = {
    "counted": counting_bound_on_stumps(FEATURES),
    "exact": int(vc_dimension_of_stumps(FEATURES)),
}
"""The VC dimension of stumps in R¹²: by the thesis' counting argument, and the exact one."""

SIZES = 8
DELTA = 0.05
Ties = Literal["smallest", "largest"]


def sizes_for(rounds: int) -> list[int]:
    """⌊k·T*/4⌋ for k = 1 … 8.

    Examples
    --------
    >>> sizes_for(10)
    [2, 5, 7, 10, 12, 15, 17, 20]
    """
    return [k * rounds // 4 for k in range(1, SIZES + 1)]


def solve(seed: int, thresholds: str, reject_above: float) -> dict[str, Any]:
    """One task: draw an oracle, fit AdaBoost on 600 points, and judge each size by every criterion.

    Returns T*, ``sizes``, ``test`` errors on the other 10,400 points, ``training`` errors, 10-fold
    ``cv`` errors, SRM's ``penalties`` by formula and dimension, the ``margin`` bounds by threshold,
    and what calibrated adjusted SRM chose.
    """
    from surelearn.boosting import AdaBoostClassifier
    from surelearn.selection import NestedFamily
    from surelearn.selection.criteria import AdjustedStructuralRisk, KFold, Margin, StructuralRisk

    oracle = draw_oracle(seed, thresholds=thresholds, reject_above=reject_above)
    X, y, sizes = oracle.X, oracle.y, sizes_for(oracle.rounds)
    family = NestedFamily(AdaBoostClassifier(sizes[-1]), sizes)
    compare = _CompareSizes(family, X[:TRAINING], y[:TRAINING], seed)
    srm = {
        f"{formula}, {name}": compare(StructuralRisk(capacity=_Capacity(formula, v)))
        for formula in ("with e", "without e")
        for name, v in DIMENSIONS.items()
    }
    calibrated = compare(
        AdjustedStructuralRisk(capacity=_Capacity("with e", DIMENSIONS["counted"]))
    )
    at_least = Margin(
        threshold=float(smallest_margin(TRAINING, DIMENSIONS["counted"])) * (1 + 1e-6)
    )
    return {
        "rounds": oracle.rounds,
        "sizes": sizes,
        "positive": float(np.mean(y == 1)),
        "rejected": oracle.rejected,
        "test": _staged_errors(
            AdaBoostClassifier(sizes[-1]).fit(X[:TRAINING], y[:TRAINING]),
            sizes,
            X[TRAINING:],
            y[TRAINING:],
        ),
        "training": list(srm["with e, counted"].details["training errors"]),
        "cv": list(compare(KFold(folds=10)).errors),
        "penalties": {name: list(found.details["penalties"]) for name, found in srm.items()},
        "margin": {"least": list(compare(at_least).errors), "best": list(compare(Margin()).errors)},
        "calibrated": {"constant": calibrated.details["constant"], "chosen": calibrated.chosen},
    }


class _CompareSizes:
    """`select` on the training points, by any criterion."""

    def __init__(self, family: NestedFamily, X: Array, y: AnyArray, seed: int) -> None:
        self.family, self.X, self.y, self.seed = family, X, y, seed

    def __call__(self, criterion: Criterion) -> Selection:
        from surelearn.selection import select

        return select(
            self.family, self.X, self.y, criterion=criterion, prefer="best", metric="accuracy", delta=DELTA, n_jobs=1,
            random_state=seed_for("folds", self.seed),
        )  # fmt: skip


class _Capacity:
    """The capacity of a vote, as `StructuralRisk` asks for it: by Theorem 3.3, or by its growth
    function without the e's.
    """

    def __init__(self, formula: str, dimension: int) -> None:
        self.formula, self.dimension = formula, dimension

    def __call__(
        self,
        model: AdaBoostClassifier,
        d: int,  # noqa: ARG002
        n: int,
    ) -> dict[str, float]:
        t, v = int(model.n_rounds), self.dimension
        if self.formula == "with e":
            return {"rounds": t, "vc_dimension": v}
        return {"log_growth": t * (math.log(n / t) + v * math.log(n / v))}


def _staged_errors(
    fitted: AdaBoostClassifier, sizes: list[int], X: Array, y: AnyArray
) -> list[float]:
    """Error rates after so many rounds; a fit that ended earlier stays as it was."""
    errors = [float(np.mean(predicted != y)) for predicted in fitted.staged_predict(X)]
    return [errors[min(size, len(errors)) - 1] for size in sizes]


# ---- what criteria choose


def first_least(values: npt.ArrayLike, ties: Ties = "smallest") -> int:
    """The position of the least value; of the first or the last among equals.

    Examples
    --------
    >>> first_least([3, 1, 1, 2]), first_least([3, 1, 1, 2], "largest")
    (1, 2)
    """
    values = np.asarray(values)
    return (
        int(np.argmin(values))
        if ties == "smallest"
        else int(values.size - 1 - np.argmin(values[::-1]))
    )


def relative_error(test: Sequence[float], chosen: int) -> float:
    """Equation 5.5: 100·(error of the chosen − least)/(largest − least), and 0 where all are equal.

    Examples
    --------
    >>> relative_error([0.5, 0.25, 0.375], 2), relative_error([0.5, 0.5], 0)
    (50.0, 0.0)
    """
    least, largest = min(test), max(test)
    return 0.0 if least == largest else 100 * (test[chosen] - least) / (largest - least)


def choices(
    problem: Mapping[str, Any],
    *,
    penalty: str,
    constant: float,
    margin: str = "least",
    ties: Ties = "smallest",
) -> dict[str, int]:
    """Which of the eight sizes each criterion chooses, and which is best."""
    training, penalties = np.asarray(problem["training"]), np.asarray(problem["penalties"][penalty])
    return {
        "best": first_least(problem["test"], ties),
        "10-fold CV": first_least(problem["cv"], ties),
        "adjusted SRM": first_least(training + constant * penalties, ties),
        "SRM": first_least(training + penalties, ties),
        "margins": first_least(problem["margin"][margin], ties),
        "always the largest": len(problem["test"]) - 1,
    }
