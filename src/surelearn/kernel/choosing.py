"""Which kernel, which bandwidth, how much regularization: leave-one-out in closed form on growing
subsamples.

One eigendecomposition K = U·diag(w)·Uᵀ of s rows gives the residual of every row when it is left
out, α_i/((K + cI)⁻¹)_ii, for every penalty c at once. All candidates meet on a few hundred rows;
the better ones go on to three times as many (successive halving), up to ``rows``. What was so
chosen has seen the rows: it voids claims about them.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist

from surelearn.kernel.functions import Gaussian, Kernel, Laplace, Matern, kernel
from surelearn.types import AnyArray, Array, RowsLike

Progress = Callable[[int, int], None]
# median distances for λ = 0, and λ > 0
FACTORS = {"gaussian": (0.25, 1.0), "laplace": (2.0, 4.0), "matern": (0.5, 2.0)}
_SPREAD = 2.0 ** np.arange(-3.0, 5.0)  # the bandwidths tried, in median distances
_PENALTIES = np.array([0.0, *10.0 ** np.arange(-6.0, 2.0)])  # c = nλ tried
_FEWEST = 150  # rows of a rung, unless there are fewer
_PAIRED = 500  # rows whose distances are looked at


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One kernel on one subsample, with the λ that was best there.

    Attributes
    ----------
    kernel : with its bandwidth
    bandwidth : its length; None where the kernel has none
    regularization : λ for all rows of the data, as the learners take it
    rows : of the subsample
    error, standard_error : leave-one-out, over these rows
    kept : whether it went on, or was chosen
    """

    kernel: Kernel
    bandwidth: float | None
    regularization: float
    rows: int
    error: float
    standard_error: float
    kept: bool

    def __str__(self) -> str:
        length = "" if self.bandwidth is None else f", bandwidth {self.bandwidth:.4g}"
        return f"{self.kernel.name}{length}, λ = {self.regularization:.3g}"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What was chosen, and all that was tried.

    Attributes
    ----------
    kernel : an object of `surelearn.kernel.functions`, with its bandwidth
    bandwidth : its length; None where the kernel has none
    regularization : λ, as `surelearn.kernel.EigenProRegressor` takes it for the rows given
    error, standard_error : leave-one-out on the last subsample; too good by the choosing
    rows : of the last subsample
    measure : "wrong labels" or "squared error"
    trials : every kernel on every subsample, the best first
    """

    kernel: Kernel
    bandwidth: float | None
    regularization: float
    error: float
    standard_error: float
    rows: int
    measure: str
    trials: tuple[Trial, ...]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _lines(self) -> Iterator[str]:
        best = next(trial for trial in self.trials if trial.rows == self.rows)
        yield (
            f"{best}: leave-one-out {self.measure} {self.error:.4g} ± {self.standard_error:.2g} on"
            f" {self.rows:,} rows"
        )
        for rows in sorted({trial.rows for trial in self.trials}):
            tried = [trial for trial in self.trials if trial.rows == rows]
            yield f"{rows:,} rows, {len(tried)} tried, {sum(trial.kept for trial in tried)} kept"
            width = max(len(str(trial)) for trial in tried[:5])
            for trial in tried[:5]:
                yield f"  {trial!s:<{width}}  {trial.error:.4g} ± {trial.standard_error:.2g}"


def choose_kernel(
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    kernels: Sequence[str | Kernel] = ("gaussian", "laplace", "matern"),
    bandwidths: Sequence[float] | None = None,
    regularizations: Sequence[float] | None = None,
    classify: bool | None = None,
    rows: int = 2000,
    random_state: int | np.random.RandomState | None = None,
    progress: Progress | None = None,
) -> Choice:
    """The kernel, bandwidth and λ with the least leave-one-out error on at most ``rows`` random
    rows.

    Parameters
    ----------
    X : rows (n, d); scale the columns first
    y : labels (n,), or targets (n,) or (n, t)
    kernels : names, or kernel objects: of those with a length it is replaced (``Matern(nu=2.5)``),
        others are tried as given
    bandwidths : lengths to try; None tries 1/8 to 16 median distances
    regularizations : λ to try, beside the *mean* squared loss of all n rows; None tries 0 and
        1e-6/n to 10/n. Subsamples have the penalty c = nλ of all rows, which is what carries over
        best
    classify : count wrong labels, rather than squares; None: unless y is of a floating type
    rows : of the last subsample; its cube is the cost
    random_state : draws the subsamples
    progress : called with (subsamples done, subsamples) after each

    Examples
    --------
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> choice = choose_kernel(X, np.sin(X[:, 0]), kernels=["gaussian", "linear"], random_state=0)
    >>> choice.kernel.name, choice.error < 1e-6
    ('gaussian', True)
    """
    from sklearn.utils import check_random_state

    X, Y, classes = _checked(X, y, classify)
    if rows != int(rows) or rows < 2:
        raise ValueError(f"rows must be a whole number of at least 2, not {rows!r}")
    rng = check_random_state(random_state)
    unit = median_distance(X, rng)
    order = rng.permutation(len(X))[: int(rows)]
    field = [
        KernelCandidate(made, h, unit)
        for made in map(kernel, kernels)
        for h in _lengths(made, bandwidths, unit)
    ]
    if not field:
        raise ValueError(
            "kernels must name at least one kernel, and bandwidths at least one length"
        )
    penalties = len(X) * _grid("regularizations", regularizations, _PENALTIES / len(X), least=0.0)
    sizes, trials = _sizes(len(order)) if len(field) > 1 else [len(order)], []
    for done, size in enumerate(sizes, 1):
        part = order[:size]
        results = _judge(field, X[part].astype(np.float64), Y[part], penalties, classes)
        kept = _kept(results, last=size == sizes[-1])
        trials += [result.trial(len(X), stays) for result, stays in zip(results, kept, strict=True)]
        field = [result.candidate for result, stays in zip(results, kept, strict=True) if stays]
        if progress is not None:
            progress(done, len(sizes))
    best = next(trial for trial in trials if trial.rows == sizes[-1])
    chosen = {
        name: getattr(best, name) for name in Choice.__dataclass_fields__ if hasattr(best, name)
    }
    return Choice(
        **chosen, measure="wrong labels" if classes else "squared error", trials=tuple(trials)
    )


def default_bandwidth(
    which: str | Kernel, X: AnyArray, rng: np.random.RandomState, *, interpolate: bool = True
) -> float | None:
    """A length for a kernel from the rows alone: so many median distances (`FACTORS`); None where
    it has no length.

    Examples
    --------
    >>> default_bandwidth("laplace", np.array([[0.0], [1.0]]), np.random.RandomState(0)) == FACTORS["laplace"][0]
    True
    """
    made = kernel(which)
    return (
        None
        if made.name not in FACTORS
        else FACTORS[made.name][0 if interpolate else 1] * median_distance(X, rng)
    )


def with_length(template: Kernel, length: float) -> Kernel:
    """A kernel of the same kind with that bandwidth.

    Examples
    --------
    >>> with_length(Gaussian(), 2.0)
    Gaussian(bandwidth=2.0)
    """
    return replace(template, bandwidth=length)  # pyright: ignore[reportCallIssue]


def median_distance(X: AnyArray, rng: np.random.RandomState) -> float:
    """The median distance of all pairs of at most 500 random rows, copies left out; 1 where all
    rows are the same.

    Examples
    --------
    >>> median_distance(np.array([[0.0], [0.0], [3.0]]), np.random.RandomState(0))
    3.0
    """
    some = X if len(X) <= _PAIRED else X[rng.permutation(len(X))[:_PAIRED]]
    some = np.unique(np.asarray(some, dtype=np.float64), axis=0)
    scale = float(np.abs(some).max()) or 1.0
    apart = pdist(some / scale)
    median = float(np.median(apart)) * scale if apart.size else 1.0
    return min(max(median, 1e-150), 1e150)


def left_out(gram: Array, Y: Array, penalties: npt.ArrayLike) -> Array:
    """Residuals y_i − f₋ᵢ(x_i) of (K + cI)α = y when row i is left out, c held fixed; shape
    (penalties, n, outputs).

    α_i/((K + cI)⁻¹)_ii from one eigendecomposition; c = 0 is the limit from above, as far as
    rounding lets it.

    Examples
    --------
    >>> left_out(np.eye(2), np.array([[1.0], [2.0]]), [0.0])[0].round(9)
    array([[1.],
           [2.]])
    """
    values, vectors = np.linalg.eigh(gram)
    floor = max(10 * len(gram) * np.finfo(float).eps * float(values[-1]), 1e-100)
    values = np.where(values > floor, values, 0.0)
    inverse = 1.0 / (values + np.maximum(np.asarray(penalties, dtype=float), floor)[:, None])
    diagonals = inverse @ (vectors**2).T  # (penalties, n)
    alphas = vectors @ (inverse[:, :, None] * (vectors.T @ Y))  # (penalties, n, outputs)
    return alphas / diagonals[:, :, None]


@dataclass(frozen=True)
class KernelCandidate:
    """A kernel, the length it is to have (None: it has none), and the unit of length in which
    rows are divided first.
    """

    template: Kernel
    length: float | None
    unit: float

    def kernel(self, unit: float = 1.0) -> Kernel:
        """The kernel for rows divided by ``unit``."""
        if self.length is None:
            return self.template
        length = self.length / unit
        return with_length(self.template, length)

    def gram(self, X: Array) -> Array:
        """k(X, X), without overflow where rows are far from 1 in size."""
        if self.length is None:
            return self.template(X, X)
        X = X / self.unit
        return self.kernel(self.unit)(X, X)


@dataclass(frozen=True, eq=False)
class _Result:
    """A candidate with its best penalty: the loss of every row, and what breaks ties."""

    candidate: KernelCandidate
    penalty: float
    losses: Array  # (n,)
    squares: float
    unit: float  # of the losses

    @property
    def rank(self) -> tuple[float, float]:
        return float(self.losses.mean()), self.squares

    def near(self, best: _Result) -> bool:
        """Whether it is within a standard error of the best: of the difference, row by row."""
        gap = self.losses - best.losses
        return float(gap.mean()) <= _deviation(gap)

    def trial(self, n: int, kept: bool) -> Trial:
        return Trial(
            kernel=self.candidate.kernel(),
            bandwidth=self.candidate.length,
            regularization=self.penalty / n,
            rows=len(self.losses),
            error=float(self.losses.mean()) * self.unit,
            standard_error=_deviation(self.losses) * self.unit,
            kept=kept,
        )


def _judge(
    field: list[KernelCandidate], X: Array, Y: Array, penalties: Array, classes: int
) -> list[_Result]:
    """Every candidate by leave-one-out on these rows, the best first."""
    scale = 1.0 if classes else float(np.abs(Y).max()) or 1.0
    results = []
    for candidate in field:
        gram = candidate.gram(X)
        if not np.isfinite(gram).all():
            raise ValueError("X has rows so large that the kernel overflows: scale the columns")
        residuals = left_out(gram, Y / scale, penalties)
        squares = (residuals**2).sum(2)  # (penalties, n)
        losses = _wrong(Y - residuals, Y) if classes else squares
        best = min(range(len(penalties)), key=lambda i: (losses[i].mean(), squares[i].mean()))
        results.append(
            _Result(
                candidate,
                float(penalties[best]),
                losses[best],
                float(squares[best].mean()),
                scale * scale,
            )
        )
    return sorted(results, key=lambda result: result.rank)


def _kept(results: list[_Result], *, last: bool) -> list[bool]:
    """Which go on: the first third, and of the second those within a standard error of the
    best; in the end the best.
    """
    places = 1 if last else math.ceil(len(results) / 3)
    return [
        i < places or (not last and i < 2 * places and result.near(results[0]))
        for i, result in enumerate(results)
    ]


def _wrong(scores: Array, Y: Array) -> Array:
    """1 where the label of the scores is not the row's; shape (penalties, n)."""
    if Y.shape[1] == 1:
        return (scores[:, :, 0] * Y[:, 0] <= 0).astype(float)
    return (scores.argmax(2) != Y.argmax(1)).astype(float)


def _deviation(losses: Array) -> float:
    return float(losses.std(ddof=1)) / math.sqrt(len(losses)) if len(losses) > 1 else 0.0


def _sizes(rows: int) -> list[int]:
    """Rows of each subsample: a ninth, a third and all, without those that are too few to tell
    anything.
    """
    return [size for size in (rows // 9, rows // 3) if size >= _FEWEST] + [rows]


def _lengths(
    made: Kernel, bandwidths: Sequence[float] | None, unit: float
) -> list[float] | list[None]:
    """The lengths that a kernel is tried with."""
    if not isinstance(made, (Gaussian, Laplace, Matern)):
        return [None]
    return _grid(
        "bandwidths",
        bandwidths,
        np.asarray(unit * _SPREAD, dtype=np.float64),
        least=np.finfo(float).tiny,
    ).tolist()


def _grid(name: str, given: Sequence[float] | None, otherwise: Array, least: float) -> Array:
    values = otherwise if given is None else np.asarray(given, dtype=float).ravel()
    if not (np.isfinite(values) & (values >= least)).all() or not values.size:
        raise ValueError(
            f"{name} must be finite numbers {'above' if least else 'of at least'} 0, at least one,"
            " or None"
        )
    return values


def _checked(X: RowsLike, y: npt.ArrayLike, classify: bool | None) -> tuple[np.ndarray, Array, int]:
    """Rows, targets (n, outputs) as the learners code them, and the number of classes: 0 for
    numbers.
    """
    from sklearn.utils import check_array, check_consistent_length

    rows, y = check_array(X, dtype=(np.float64, np.float32), ensure_min_samples=2), np.asarray(y)
    check_consistent_length(rows, y)
    if not (y.dtype.kind != "f" if classify is None else classify):
        return rows, check_array(y.reshape(len(y), -1), dtype=np.float64, input_name="y"), 0
    if y.ndim != 1:
        raise ValueError(f"y must be one label per row, not an array of shape {y.shape}")
    labels, codes = np.unique(y, return_inverse=True)
    Y = np.where(codes[:, None] == np.arange(len(labels)), 1.0, -1.0)
    return rows, Y[:, 1:] if len(labels) == 2 else Y, len(labels)
