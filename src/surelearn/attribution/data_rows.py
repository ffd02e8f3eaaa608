"""What each training row is worth: data Shapley and data Banzhaf, exact for nearest neighbors.

The players are rows of the training set, u(S) is how well a model fitted on the rows S does on the
test rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack, cast

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from surelearn.attribution.result import Attribution
from surelearn.attribution.sampling import SamplingOptions
from surelearn.attribution.values import banzhaf, shapley
from surelearn.earlier import renamed
from surelearn.subject import describe
from surelearn.subject.refitting import take
from surelearn.types import AnyArray, Array, Model, RowsLike

Metric = Callable[[AnyArray, AnyArray], float]  # of the truth and predictions
_PAIRS = 4_000_000  # distances held at once


def data_shapley(
    model: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    X_test: RowsLike,
    y_test: npt.ArrayLike,
    metric: Metric | None = None,
    **options: Unpack[SamplingOptions],
) -> Attribution:
    """The Shapley value of each training row, each coalition a fit (A. Ghorbani and J. Zou, ICML
    2019).

    Parameters
    ----------
    model : a scikit-learn learner, cloned for every fit
    X, y : training rows, the players
    X_test, y_test : rows to do well on
    metric : of (y_test, predictions), larger is better; None: accuracy for a classifier (intervals
        are then guaranteed), minus the mean squared error for a regressor
    options : as for `surelearn.attribution.shapley`; ``budget`` counts fits

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> made = data_shapley(LogisticRegression(), X, y, X, y)
    >>> made.values.sum().round(6), made.names[0]
    (np.float64(0.5), 'row 0')
    """
    return _valued(shapley, model, X, y, X_test, y_test, metric, options)


def data_banzhaf(
    model: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    X_test: RowsLike,
    y_test: npt.ArrayLike,
    metric: Metric | None = None,
    **options: Unpack[SamplingOptions],
) -> Attribution:
    """The Banzhaf value of each training row (J. T. Wang and R. Jia, AISTATS 2023): every two fits
    serve all rows.

    Parameters are those of `data_shapley`.
    """
    return _valued(banzhaf, model, X, y, X_test, y_test, metric, options)


def _valued(
    value: Callable[..., Attribution],
    model: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    X_test: RowsLike,
    y_test: npt.ArrayLike,
    metric: Metric | None,
    options: SamplingOptions,
) -> Attribution:
    game = Fits(model, X, y, X_test, y_test, metric)
    if game.accuracy:
        options.setdefault("value_range", (0.0, 1.0))
    options.setdefault("names", [f"row {i}" for i in range(len(game.y))])
    return value(game, len(game.y), **options)


class Fits:
    """u(S) = metric of the model fitted on the rows S, for test rows.

    Rows of one class are not given to the model: it then says that class. Without rows it says the
    first class, or 0.
    """

    def __init__(
        self,
        model: Model,
        X: RowsLike,
        y: npt.ArrayLike,
        X_test: RowsLike,
        y_test: npt.ArrayLike,
        metric: Metric | None = None,
    ) -> None:
        from sklearn.base import is_classifier

        self.model, self.X, self.y = model, X, np.asarray(y)
        self.X_test, self.y_test = X_test, np.asarray(y_test)
        if (
            len(self.y) != _rows(X)
            or len(self.y_test) != _rows(X_test)
            or not len(self.y_test)
            or not len(self.y)
        ):
            raise ValueError(
                "X and y, X_test and y_test must have the same number of rows each, at least one"
            )
        self.classify = is_classifier(model)
        self.accuracy = self.classify and metric is None
        self.metric = metric or (_accuracy if self.classify else _minus_squares)
        said = (
            "accuracy"
            if self.accuracy
            else getattr(self.metric, "__name__", "metric").strip("_").replace("_", " ")
        )
        self.name = (
            f"{said} on {len(self.y_test):,} test rows of {describe(model)}, fitted on the rows of"
            " the coalition"
        )
        self._nothing = np.unique(self.y)[0] if self.classify else 0.0

    def __call__(self, rows: tuple[int, ...]) -> float:
        """The score on the test rows of the model fitted on these rows."""
        from sklearn.base import clone

        held = list(rows)
        y = self.y[held]
        if not held or (self.classify and len(np.unique(y)) == 1):
            said = np.full(len(self.y_test), y[0] if held else self._nothing)
            return float(self.metric(self.y_test, said))
        X = take(self.X if hasattr(self.X, "iloc") else np.asarray(self.X), held)
        try:
            said = clone(self.model).fit(X, y).predict(self.X_test)
        except Exception as error:
            raise ValueError(
                f"the model fails when it is fitted on {len(held)} of the rows: {error}"
            ) from error
        return float(self.metric(self.y_test, said))


@renamed({"neighbours": "neighbors"})
def nearest_neighbors(
    X: RowsLike,
    y: npt.ArrayLike,
    X_test: RowsLike,
    y_test: npt.ArrayLike,
    neighbors: int = 5,
    value: str = "shapley",
) -> Attribution:
    """Exact values of training rows for k-nearest-neighbor classification, by sorting.

    u(S) is the mean over test rows of (1/k)·#(of the k nearest rows of S, those with the test row's
    label), Euclidean distance, ties to the earlier row. Rows sorted from near to far, with a_i = 1
    for the right label: φ_N = a_N·P(fewer than k others are there)/k and φ_i − φ_{i+1} = (a_i −
    a_{i+1})/k·P(fewer than k of the i − 1 nearer ones are there). For Shapley's weights the
    probabilities are min(k, N)/N and min(k, i)/i (R. Jia et al., VLDB 2019, Theorem 1), for
    Banzhaf's binomial.

    Parameters
    ----------
    X, y : training rows, the players
    X_test, y_test : rows to classify
    neighbors : k
    value : "shapley" or "banzhaf"

    Examples
    --------
    >>> nearest_neighbors([[0.0], [1.0], [3.0]], [0, 1, 1], [[0.2]], [0], neighbors=1).values.round(4).tolist()
    [1.0, 0.0, 0.0]
    """
    X, X_test = (np.asarray(rows, dtype=float) for rows in (X, X_test))
    y, y_test = np.asarray(y), np.asarray(y_test)
    if value not in ("shapley", "banzhaf"):
        raise ValueError(f"value must be 'shapley' or 'banzhaf', not {value!r}")
    if neighbors != int(neighbors) or neighbors < 1:
        raise ValueError(f"neighbors must be a whole number of at least 1, not {neighbors!r}")
    if len(X) != len(y) or len(X_test) != len(y_test) or not len(X) or not len(X_test):
        raise ValueError(
            "X and y, X_test and y_test must have the same number of rows each, at least one"
        )
    if not (np.isfinite(X).all() and np.isfinite(X_test).all()):
        raise ValueError("X and X_test must be finite: a distance to NaN is none")
    k, n = int(neighbors), len(X)
    steps = _chances(n, k, value) / k
    total, full, at_once = np.zeros(n), 0.0, max(1, _PAIRS // n)
    # some test rows at a time: sort the training rows, and sum what each step away from a row loses
    for start in range(0, len(X_test), at_once):
        order = np.argsort(
            _distances(X_test[start : start + at_once], X), axis=1, kind="stable"
        )  # (tests, n)
        right = (y[order] == y_test[start : start + at_once, None]).astype(float)  # (tests, n)
        full += right[:, :k].sum() / k
        falls = np.c_[(right[:, :-1] - right[:, 1:]) * steps[:-1], right[:, -1] * steps[-1]]
        np.add.at(total, order, falls[:, ::-1].cumsum(axis=1)[:, ::-1])
    return Attribution(
        values=total / len(X_test),
        names=tuple(f"row {i}" for i in range(n)),
        value=value.capitalize(),
        game=(
            f"share of right labels among the {k} nearest rows of the coalition, mean over"
            f" {len(X_test):,} test rows"
        ),
        method="sorted neighbors, exact for this game",
        full=full / len(X_test),
    )


def _chances(n: int, k: int, value: str) -> Array:
    """P(fewer than k of the i − 1 nearer rows are there) for i = 1 … n − 1, and for the last
    row of its n − 1 others.
    """
    i = np.arange(1, n + 1)
    if value == "shapley":
        return (np.minimum(k, i) / i).astype(np.float64)
    return np.asarray(binom.cdf(k - 1, i - 1, 0.5), dtype=np.float64)


def _distances(A: Array, B: Array) -> Array:
    """Squared, summed column by column: equal rows have equal distances, which a matrix product
    would not keep.
    """
    from scipy.spatial.distance import cdist

    found: Array = np.asarray(cdist(A, B, "sqeuclidean"), dtype=np.float64)
    return found


def _accuracy(y: AnyArray, said: AnyArray) -> float:
    return float(np.mean(y == said))


def _minus_squares(y: AnyArray, said: AnyArray) -> float:
    return -float(np.mean((y - said) ** 2))


def _rows(X: RowsLike) -> int:
    return int(np.shape(cast("npt.ArrayLike", X))[0])
