"""Akaike's and the Bayesian information criterion, where there is a maximized likelihood
(thesis, Section 2.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surelearn.lacking import Lacking
from surelearn.selection.criteria.criterion import JUDGMENT, Comparison, Criterion, unclaimed
from surelearn.selection.criteria.problem import SelectionProblem, last_step
from surelearn.selection.cross_validation import column_count, row_count
from surelearn.subject import Task
from surelearn.types import AnyArray, Array, Bools, Model, RowsLike

SLACK = 0.01  # a fit this close to the maximal log-likelihood has maximized it
# a mean log-likelihood above −this means that the classes are (nearly) separable, and has no
# maximum
SEPARATED = 1e-3

_MAXIMUM = "maximized likelihood"
# "log" and "parameters" of a maximized likelihood: plain, so that a journal keeps it
Likelihood = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class InformationCriterion(Criterion):
    """−2·ln L plus a price for each of k parameters, one of them the variance where there is one.

    The likelihood is that of y given X: Gaussian for least squares, with the maximum-likelihood
    variance RSS/n; of classes for logistic regression. That a fit has maximized it is checked on
    the fit itself; a penalized one has not.
    """

    needs: ClassVar[str] = (
        "least squares, logistic regression without a penalty, or a constant (their likelihood is"
        " maximized), on more rows than parameters"
    )
    rate: ClassVar[bool] = False
    cost: ClassVar[str] = "1 fit a candidate"

    def value(self, log_likelihood: float, k: int, n: int) -> float:
        """The criterion of a fit."""
        raise NotImplementedError

    def refusal(self, problem: SelectionProblem) -> Lacking | None:
        """Rows that are not independent."""
        if problem.groups is not None:
            return Lacking(
                JUDGMENT,
                f"criterion {self.name!r} is for independent rows: with groups, choose by"
                " cross-validation",
            )
        return None

    def compare(self, problem: SelectionProblem) -> Comparison:
        """The criterion of each candidate's fit."""
        found = problem.measure("likelihood", measure_likelihood, task=problem.task)
        n = problem.y.size
        for candidate, likelihood in zip(problem.candidates, found, strict=True):
            lacking = (
                likelihood
                if isinstance(likelihood, Lacking)
                else self._too_few(likelihood["parameters"], n)
            )
            if lacking is not None:
                refused = (
                    f"criterion {self.name!r} is refused for {candidate.name!r}: {lacking.reason}"
                )
                raise ValueError(f"{refused}; leave it out or use cross-validation")
        values = [
            self.value(likelihood["log"], likelihood["parameters"], n) for likelihood in found
        ]
        return Comparison(
            values=values,
            standard_errors=[0.0] * len(values),
            fold_errors=[()] * len(values),
            how=self,
            details={
                "log-likelihoods": tuple(likelihood["log"] for likelihood in found),
                "parameters": tuple(likelihood["parameters"] for likelihood in found),
            },
            claim=unclaimed(self.guarantee),
        )

    def _too_few(self, k: int, n: int) -> Lacking | None:
        return Lacking(_MAXIMUM, f"{k} parameters need more than {k} rows") if n <= k else None


@dataclass(frozen=True, kw_only=True)
class AIC(InformationCriterion):
    """−2·ln L + 2k (thesis, eq. 2.30)."""

    name: ClassVar[str] = "aic"
    chooses: ClassVar[str] = "Akaike's information criterion"
    guarantee: ClassVar[str] = (
        "nothing for finite n: it estimates the expected log-loss of new rows, for large n"
    )

    def value(self, log_likelihood: float, k: int, n: int) -> float:  # noqa: ARG002
        """−2·ln L + 2k."""
        return -2 * log_likelihood + 2 * k


@dataclass(frozen=True, kw_only=True)
class AICc(InformationCriterion):
    """AIC + 2k(k + 1)/(n − k − 1): exact in the mean for Gaussian least squares (Hurvich and
    Tsai 1989), customary else.
    """

    name: ClassVar[str] = "aicc"
    chooses: ClassVar[str] = "Akaike's information criterion, corrected for few rows"
    guarantee: ClassVar[str] = (
        "nothing with a probability; for a Gaussian linear model that contains the truth it is"
        " unbiased for its log-loss"
    )

    def value(self, log_likelihood: float, k: int, n: int) -> float:
        """−2·ln L + 2k·n/(n − k − 1)."""
        return -2 * log_likelihood + 2 * k * n / (n - k - 1)

    def _too_few(self, k: int, n: int) -> Lacking | None:
        more = f"its correction for {k} parameters needs more than {k + 1} rows"
        return Lacking(_MAXIMUM, more) if n <= k + 1 else None


@dataclass(frozen=True, kw_only=True)
class BIC(InformationCriterion):
    """−2·ln L + k·ln n (thesis, eq. 2.31)."""

    name: ClassVar[str] = "bic"
    chooses: ClassVar[str] = "Bayesian information criterion"
    guarantee: ClassVar[str] = (
        "nothing for finite n; for large n it finds the smallest true model, if one is listed"
    )

    def value(self, log_likelihood: float, k: int, n: int) -> float:
        """−2·ln L + k·ln n."""
        return -2 * log_likelihood + k * math.log(n)


def measure_likelihood(
    fitted: Model, sizes: Sequence[int] | None, X: RowsLike, y: AnyArray, task: Task
) -> list[Likelihood | Lacking]:
    """The maximized likelihood of each member, or why there is none: what a task returns."""
    if sizes is not None:
        return [
            Lacking(_MAXIMUM, "prefixes of boosting have no likelihood that they maximize")
        ] * len(sizes)
    model, rows = last_step(fitted, X)
    design = _design(model, rows)
    if design is None:
        return [Lacking(_MAXIMUM, "it has no likelihood that it maximizes")]
    if model is not fitted and not _prepared_without(fitted, X, rows):
        return [
            Lacking(_MAXIMUM, "its preparation learns from the targets, which no parameter counts")
        ]
    return [
        (
            _gaussian(model, rows, y, design)
            if task == "regression"
            else _categorical(model, rows, y, design)
        )
    ]


def _prepared_without(pipeline: Model, X: RowsLike, rows: RowsLike) -> bool:
    """Whether the steps before the last give the same rows when they do not see the targets."""
    from sklearn.base import clone

    try:
        again = clone(pipeline[:-1]).fit(X).transform(X) if len(pipeline.steps) > 1 else X
    except (TypeError, ValueError):
        return False
    first, second = _dense(rows), _dense(again)
    return first.shape == second.shape and np.allclose(first, second, equal_nan=True)


def _dense(X: RowsLike) -> Array:
    from scipy.sparse import issparse

    rows: Any = X  # SciPy has no types
    return rows.toarray() if issparse(rows) else np.asarray(rows, dtype=float)


def _design(model: Model, X: RowsLike) -> Array | None:
    """The columns a linear model weighs, with the ones of its intercept; None for a model that
    is not linear.
    """
    from sklearn.dummy import DummyClassifier, DummyRegressor

    n = row_count(X)
    if isinstance(model, (DummyClassifier, DummyRegressor)):
        return np.ones((n, 1))
    coef = getattr(model, "coef_", None)
    if coef is None or np.shape(coef)[-1] != column_count(X):
        return None
    columns = _dense(X)
    return np.column_stack([columns, np.ones(n)]) if _has_intercept(model) else columns


def _has_intercept(model: Model) -> bool:
    if hasattr(model, "fit_intercept"):
        return bool(model.fit_intercept)
    return bool(np.any(getattr(model, "intercept_", 0.0) != 0))


def _gaussian(model: Model, X: RowsLike, y: AnyArray, design: Array) -> Likelihood | Lacking:
    y = np.asarray(y, dtype=float)
    best, _, rank, _ = np.linalg.lstsq(design, y)
    total, least = (
        float(np.square(y - predicted).sum()) for predicted in (model.predict(X), design @ best)
    )
    n = y.size
    if least <= 1e-20 * float(np.square(y).sum()):
        return Lacking(_MAXIMUM, "it fits every row exactly, so its likelihood has no bound")
    if n / 2 * math.log(total / least) > SLACK:
        return Lacking(_MAXIMUM, "it is not the least-squares fit (a penalty, or another loss)")
    return {"log": -n / 2 * (math.log(2 * math.pi * total / n) + 1), "parameters": int(rank) + 1}


def _categorical(model: Model, X: RowsLike, y: AnyArray, design: Array) -> Likelihood | Lacking:
    if not hasattr(model, "predict_proba"):
        return Lacking(_MAXIMUM, "it gives no probabilities")
    classes = np.asarray(model.classes_)
    probabilities = np.asarray(model.predict_proba(X), dtype=float)
    hits = np.asarray(y)[:, None] == classes
    if (probabilities[hits] <= 0).any() or not _is_logistic(model, design, probabilities):
        return Lacking(_MAXIMUM, "its probabilities are not those of a logistic regression")
    log = float(np.log(probabilities[hits]).sum())
    if log > -SEPARATED * len(design):
        return Lacking(_MAXIMUM, "it separates the classes, so its likelihood has no maximum")
    if _missing(design, hits, probabilities) > SLACK:
        return Lacking(
            _MAXIMUM, "it does not maximize the likelihood (a penalty, or too few iterations)"
        )
    return {"log": log, "parameters": int(np.linalg.matrix_rank(design)) * (classes.size - 1)}


def _missing(design: Array, hits: Bools, probabilities: Array) -> float:
    """What Newton's step would add to the log-likelihood: ½·gᵀH⁻¹g, the first class as
    reference.
    """
    p, r = probabilities[:, 1:], hits[:, 1:] - probabilities[:, 1:]
    k, d = p.shape[1], design.shape[1]
    slope = (design.T @ r).T.ravel()
    curvature = np.empty((k, d, k, d))
    for a in range(k):
        for b in range(a + 1):
            weights = p[:, a] * ((a == b) - p[:, b])
            curvature[a, :, b] = curvature[b, :, a] = design.T @ (weights[:, None] * design)
    step = np.linalg.lstsq(curvature.reshape(k * d, k * d), slope)[0]
    return float(slope @ step) / 2


def _is_logistic(model: Model, design: Array, probabilities: Array) -> bool:
    """Whether the log-odds are linear in the columns; a constant's are."""
    if not hasattr(model, "coef_"):
        return bool(np.allclose(probabilities, probabilities[0]))
    with np.errstate(divide="ignore"):
        odds = np.log(probabilities[:, 1:]) - np.log(probabilities[:, :1])
    if not np.isfinite(odds).all():
        return False
    coef = np.atleast_2d(model.coef_)
    weights = coef if len(coef) == 1 else coef[1:] - coef[:1]
    intercept = np.atleast_1d(model.intercept_) if _has_intercept(model) else np.zeros(len(coef))
    shift = intercept if len(coef) == 1 else intercept[1:] - intercept[:1]
    return bool(
        np.allclose(odds, design[:, : weights.shape[1]] @ weights.T + shift, rtol=1e-4, atol=1e-4)
    )
