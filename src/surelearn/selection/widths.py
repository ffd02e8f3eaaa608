"""Intervals whose width follows the row: a regressor with a width for each row, learned from
out-of-fold residuals, and the form of the intervals chosen by their mean width on the fit rows.

Nothing here is a guarantee: `surelearn.certify` takes the rank of the scores of rows that were not
fitted on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from surelearn import stated
from surelearn.measurement import check_range
from surelearn.selection.cross_validation import Resampling, average, resample
from surelearn.selection.width import FORMS, Form, Width
from surelearn.subject.bands import Band, Range, clipped, within_distance
from surelearn.subject.predicting import describe
from surelearn.subject.refitting import fit_quietly, take
from surelearn.subject.registry import Around, Parts, describes
from surelearn.types import Array, Model, RowsLike

FEWEST = 100  # rows from which on a width is learned
TREES, LEAF, MOST_DRAWN = 60, 15, 10_000
SMOOTHING = 0.2  # of the mean residual, added to every width
PARTS = 20  # of the rows, for standard errors


def _is_adaptive(model: Any) -> bool:
    return getattr(model, "form_", "constant") != "constant"


class IntervalRegressor(RegressorMixin, BaseEstimator):
    """A regressor whose intervals have a width of each row's own.

    Out-of-fold residuals r of the rows that are fitted on are looked at in three ways: "constant"
    has the score |y − f(x)|; "normalized" |y − f(x)|/s(x), where s is a forest's mean of |r| given
    the columns and the prediction, plus a fifth of the overall mean (Papadopoulos, Gammerman and
    Vovk, Normalized nonconformity measures for regression conformal prediction, 2008; Lei, G'Sell,
    Rinaldo, Tibshirani and Wasserman, Distribution-free predictive inference for regression, JASA
    113, 2018, section 5.2); "quantiles" max(f(x) + a·s(x) − y, y − f(x) − b·s(x))/s(x), where [a, b]
    is the shortest interval that holds 1 − α of r/s: it need not be symmetric (Romano, Patterson and
    Candès, Conformalized quantile regression, 2019). The form with the least mean width of intervals
    that hold 1 − α of these rows is chosen, a simpler one if it is within one paired standard error.

    Parameters
    ----------
    regressor : unfitted
    form : "constant", "normalized" or "quantiles"; None: the best of them
    alpha : the share of new targets that intervals may miss
    target_range : what the target can be, stated and never seen: intervals are clipped to it
    preparation : an unfitted transformer of the columns that widths may depend on; None: they are
        numbers as they are
    random_state : seed of the folds and of the forest

    Attributes
    ----------
    regressor_ : the fitted regressor
    form_ : the form that is used
    compared_ : the forms that were compared, `widths_` as plain tuples
    unit_ : s(x) is this multiple of the forest's, so that a score near 1 ("quantiles": 0) is what
        the rows that were fitted on suggest
    low_, high_ : the ends of "quantiles", in units of s(x); 0 otherwise

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from surelearn import certify
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 4, (900, 1))
    >>> y = X[:, 0] + rng.normal(size=900) * X[:, 0]  # the noise grows
    >>> model = IntervalRegressor(LinearRegression()).fit(X[:500], y[:500])
    >>> model.form_
    'normalized'
    >>> claim = certify(model, X[500:], y[500:])["score_quantile"]
    >>> low, high = model.predict_interval([[0.5], [3.5]], claim.value)
    >>> (high - low).round().tolist()
    [4.0, 11.0]
    """

    saved_as = "interval-regressor/1"

    def __init__(
        self,
        regressor: Model,
        *,
        form: Form | None = None,
        alpha: float = 0.1,
        target_range: Range | None = None,
        preparation: Model | None = None,
        random_state: int = 0,
    ) -> None:
        self.regressor = regressor
        self.form: Form | None = form
        self.alpha = alpha
        self.target_range = target_range
        self.preparation = preparation
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.regressor, "__sklearn_tags__"):  # a user's own may have none
            inside = get_tags(self.regressor).input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = inside.sparse, inside.allow_nan
        return tags

    def fit(self, X: RowsLike, y: npt.ArrayLike) -> IntervalRegressor:
        """Fit the regressor, five more times without a fifth of the rows, and the widths."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        target = column_or_1d(y, warn=True)
        if np.iscomplexobj(target):
            raise ValueError("Complex data not supported")
        assert_all_finite(target, input_name="y")
        validate_data(self, X, skip_check_array=True)
        target, rows = target.astype(float), _rows(X)
        fitted = fit_quietly(self.regressor, rows, target)
        how = Resampling(folds=min(5, target.size)) if target.size >= FEWEST else None
        if how is None or self.form == "constant":
            return self.fit_around(fitted, rows, target, None)
        pairs = resample(how, target, random_state=self.random_state)
        said = [
            np.asarray(fit_quietly(self.regressor, take(rows, a), target[a]).predict(take(rows, b)))
            for a, b in pairs
        ]
        return self.fit_around(fitted, rows, target, average(said, pairs, target.size))

    def fit_around(
        self, fitted: Model, X: RowsLike, y: npt.ArrayLike, predictions: Array | None
    ) -> IntervalRegressor:
        """Take a regressor that is fitted already, and learn widths from predictions (n,) of the
        rows by fits without them (NaN: not predicted; None: widths are constant).
        """
        self._check()
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))
        self.regressor_ = fitted
        self.form_: Form = "constant"
        self.compared_: list[tuple[Form, float, float, float]] = []
        self.forest_: Any = None
        self.preparation_: Any = None
        self.unit_, self.added_, self.low_, self.high_ = 1.0, 0.0, 0.0, 0.0
        if predictions is None or self.form == "constant":
            return self
        known = np.flatnonzero(~np.isnan(predictions))
        target, said = np.asarray(y, dtype=float)[known], predictions[known]
        residuals = target - said
        if known.size < FEWEST or not np.abs(residuals).any():
            return self
        scale = self._fit_forest(take(X, known), said, np.abs(residuals))
        forms = FORMS if self.form is None else ("constant", self.form)
        found, chosen = compare_widths(
            said, residuals, scale, self.alpha, self.target_range, forms, self.random_state
        )
        self.compared_ = [(one.form, one.mean, one.gain, one.error) for one in found]
        self.form_ = chosen if self.form is None else forms[-1]
        self._set_units(residuals / scale)
        return self

    def _check(self) -> None:
        stated.fraction("alpha", self.alpha)
        if self.form is not None and self.form not in FORMS:
            raise ValueError(f"form must be {', '.join(FORMS)} or None, not {self.form!r:.60}")
        if self.target_range is not None:
            check_range(self.target_range, "target_range")

    def _fit_forest(self, X: RowsLike, said: Array, sizes: Array) -> Array:
        """The forest of |r|; (n,) widths of these rows by trees that had not drawn them."""
        if self.preparation is not None:
            self.preparation_ = clone(self.preparation).fit(X)
        rows = self._columns(X, said)
        made = ExtraTreesRegressor(
            TREES,
            min_samples_leaf=min(LEAF, max(5, len(rows) // 40)),
            max_features=0.5,
            bootstrap=True,
            oob_score=True,
            max_samples=min(len(rows), MOST_DRAWN),
            random_state=self.random_state,
        )
        self.forest_ = fit_quietly(made, rows, sizes)
        self.added_ = SMOOTHING * float(sizes.mean())
        scale = np.asarray(self.forest_.oob_prediction_) + self.added_
        del self.forest_.oob_prediction_  # of the rows that it was fitted on
        return scale

    def _columns(self, X: RowsLike, said: Array) -> Array:
        """(n, d + 1): what widths may depend on; the prediction last."""
        if self.preparation is not None:
            rows = self.preparation_.transform(_rows(X))
        elif hasattr(X, "tocsr"):  # sparse rows: by the prediction alone
            rows = np.zeros((len(said), 0))
        else:
            rows = np.asarray(X, dtype=float)
        rows = np.column_stack([np.asarray(rows, dtype=float), said])
        return np.nan_to_num(rows, nan=-1e30, posinf=1e30, neginf=-1e30)

    def _set_units(self, standardized: Array) -> None:
        if self.form_ == "normalized":
            self.unit_ = float(np.quantile(np.abs(standardized), 1 - self.alpha))
        elif self.form_ == "quantiles":
            low, high = shortest(standardized, 1 - self.alpha)
            self.unit_ = (high - low) / 2
            self.low_, self.high_ = low / self.unit_, high / self.unit_

    @property
    def widths_(self) -> list[Width]:
        """A `Width` for each form that was compared, simplest first."""
        check_is_fitted(self, "compared_")
        return [Width(*one) for one in self.compared_]

    def predict(self, X: RowsLike) -> Array:
        """(n,): what the regressor predicts."""
        check_is_fitted(self)
        rows = _rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return np.asarray(self.regressor_.predict(rows))

    @available_if(_is_adaptive)
    def predict_band(self, X: RowsLike) -> tuple[Array, Array, Array]:
        """(n,) each: low, high and scale, of which the score is max(low − y, y − high)/scale; not
        there where the form is "constant".
        """
        said = np.asarray(self.predict(X), dtype=float)
        scale = self.unit_ * (self.forest_.predict(self._columns(X, said)) + self.added_)
        return said + self.low_ * scale, said + self.high_ * scale, scale

    def predict_interval(self, X: RowsLike, score: float) -> tuple[Array, Array]:
        """(n,), (n,): the ends of the intervals of all y whose score is at most ``score``, such as
        the one that `surelearn.certify` guarantees; within ``target_range``.
        """
        if _is_adaptive(self):
            return Band(*self.predict_band(X), target_range=self.target_range).interval(score)
        said = np.asarray(self.predict(X), dtype=float)
        return within_distance(said, score, self.target_range)


def around(
    unfitted: Model,
    fitted: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    predictions: Array | None,
    *,
    kinds: Mapping[str, str],
    **options: Any,
) -> IntervalRegressor:
    """A regressor that was fitted to a table's rows, with a width for each row, learned from
    predictions of these rows by fits without them; ``kinds`` are those of the columns that widths may
    depend on.
    """
    from surelearn.selection.preparation import preparation

    made = IntervalRegressor(unfitted, preparation=preparation(kinds, "native"), **options)
    return made.fit_around(fitted, X, y, predictions)


def _rows(X: RowsLike) -> Any:
    """Rows that can be taken by position: of pandas, sparse, or an array."""
    if hasattr(X, "iloc") or hasattr(X, "tocsr"):
        return X
    rows = np.asarray(X)
    if rows.ndim == 1:
        raise ValueError(
            "X must have two dimensions. Reshape your data: X.reshape(1, -1) is one row"
        )
    return rows


def compare_widths(
    said: Array,
    residuals: Array,
    scale: Array,
    alpha: float,
    target_range: Range | None = None,
    forms: tuple[Form, ...] = FORMS,
    random_state: int = 0,
) -> tuple[list[Width], Form]:
    """Mean widths of intervals of each form that hold 1 − α of the rows, with paired standard errors
    by a jackknife over twenty parts of the rows, each left out in turn; and the form to use: each
    takes the place of a simpler one if it is narrower by more than a paired standard error.

    Parameters
    ----------
    said, residuals, scale : (n,): predictions, y minus them, and widths, all by fits without the row
    """
    n = said.size
    part = np.random.default_rng(random_state).permutation(n) % PARTS
    found = {form: _scored(form, residuals, scale, alpha, part) for form in forms}

    def mean(form: Form, rows: npt.NDArray[np.bool_]) -> float:
        scores, low, high, unit = found[form]
        q = float(np.quantile(scores[rows], 1 - alpha, method="inverted_cdf"))
        ends = clipped(said + low - q * unit, said + high + q * unit, target_range)
        return float(np.maximum(ends[1] - ends[0], 0.0)[rows].mean())

    every = np.ones(n, dtype=bool)
    whole = [mean(form, every) for form in forms]
    without = np.array([[mean(form, part != k) for form in forms] for k in range(PARTS)])

    def narrower(i: int, j: int) -> tuple[float, float]:
        """By how much form j is narrower than form i, and the standard error."""
        spread = np.sqrt((PARTS - 1) * (without[:, i] - without[:, j]).var())
        return whole[i] - whole[j], float(spread)

    chosen = 0
    for j in range(1, len(forms)):
        gain, error = narrower(chosen, j)
        chosen = j if gain > error else chosen
    widths = [Width(form, whole[j], *narrower(0, j)) for j, form in enumerate(forms)]
    return widths, forms[chosen]


def _scored(
    form: Form, residuals: Array, scale: Array, alpha: float, part: npt.NDArray[np.intp]
) -> tuple[Array, Array, Array, Array]:
    """(n,) each: scores, the band's ends around the prediction, and the unit; the ends of quantiles
    from the other parts of the rows.
    """
    nothing = np.zeros_like(residuals)
    if form == "constant":
        return np.abs(residuals), nothing, nothing, np.ones_like(residuals)
    if form == "normalized":
        return np.abs(residuals) / scale, nothing, nothing, scale
    standardized = residuals / scale
    ends = np.array([shortest(standardized[part != k], 1 - alpha) for k in range(PARTS)])[part]
    low, high = ends.T
    return np.maximum(low - standardized, standardized - high), low * scale, high * scale, scale


def shortest(values: Array, share: float) -> tuple[float, float]:
    """The shortest interval around 0 that holds this share of the values.

    Examples
    --------
    >>> shortest(np.array([-1.0, 0.0, 0.5, 1.0, 9.0]), 0.8)
    (-1.0, 1.0)
    """
    ordered = np.sort(values)
    count = min(max(int(np.ceil(share * ordered.size - 1e-9)), 1), ordered.size)
    first = int(np.argmin(ordered[count - 1 :] - ordered[: ordered.size - count + 1]))
    return min(0.0, float(ordered[first])), max(0.0, float(ordered[first + count - 1]))


@describes(IntervalRegressor)
def _described(model: IntervalRegressor) -> Around | Parts:
    """It predicts as the regressor inside does."""
    from surelearn.lacking import Lacking

    if hasattr(model, "regressor_"):
        return Around(model.regressor_, adds=True)
    return Parts(form=Lacking("closed form", f"{describe(model)} is not fitted"))
