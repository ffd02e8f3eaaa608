"""k-means with a number for how far from the best clustering it can be."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from surelearn import stated
from surelearn.base import Learner
from surelearn.cluster.record import KMeansRecord
from surelearn.record import Within
from surelearn.subject import Parts
from surelearn.types import RandomState, RowsLike

if TYPE_CHECKING:
    from surelearn.cluster.lloyd import Rows
    from surelearn.cluster.seeding import Seedings

Matrix = npt.NDArray[Any]

# how seedings are drawn: the most centers between two walks over the rows, by the record's rule
RULES = {1: 1, 2: 16}
PART = 4096  # rows that are worked on at a time, in the cache
INITS = ("k-means++", "greedy", "random")


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Learner):
    """Lloyd's k-means from k-means++ seeds, with a certified ratio to the optimal cost.

    The cost is Σ w‖x − c‖² over the rows, c a row's nearest center. The certificate bounds the
    optimal cost from below, by the spectrum of the rows (always, where it is computed) and by the
    costs of independent seedings (with probability 1 − δ), and so bounds ``inertia_`` over the
    optimum. Nothing is assumed of the rows: the claims are about these rows, not about new ones.

    Parameters
    ----------
    n_clusters : k
    init : "k-means++", plain D² seeding, the one that the theorem 8(ln k + 2) is about; "greedy",
        the best of a few candidates a step, without a claim; "random", different rows; or an array
        of centers, (k, d)
    seedings : independent plain seedings drawn for each start of "k-means++"; the cheapest is
        improved by swaps on a weighted sample of the rows before Lloyd starts from it, and all of
        them, as they were drawn, bound the optimum: with R in all, OPT ≥ δ^{1/R}·min(costs) / (8(ln
        k + 2))
    n_init : starts; the clustering of least cost is kept
    max_iter : the most iterations of a start over all rows
    tol : stop when the centers' squared moves add up to at most this part of the mean variance of a
        feature
    spectrum : whether to bound the optimum by the spectrum of the rows. It takes the eigenvalues of
        a matrix of min(n, d) rows: None computes them where that is quick or costs at most a
        quarter of the clustering (counted in operations, not timed), True always, False never; the
        certificate says where they are missing
    delta : failure probability of the claims from seedings
    random_state : for the seeds

    Attributes
    ----------
    cluster_centers_ : (k, d)
    labels_ : the nearest center of each row
    inertia_ : the cost
    n_iter_ : iterations over all rows of the start that was kept

    Notes
    -----
    Up to rounding the result does not depend on the order of the rows, and a row of weight 2 is a
    row given twice. A cluster that runs empty is given the row that costs most; with fewer
    different rows than clusters some stay empty, and ``facts_["used"]`` counts the others. The
    guarantee 8(ln k + 2) is for the cost of a plain seeding, before swaps and Lloyd, in expectation
    (stability notes, Section 8.3); ``inertia_`` is never above the cheapest seeding's cost. Sparse
    rows are never filled in; the centers, (k, d), are dense.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]])
    >>> model = KMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.inertia_
    1.0
    >>> print(model.certificate_.claims[-1])
    cost / optimum ≤ 1.001  (always, k-means ratio, from the spectrum)
    """

    Record = KMeansRecord
    takes_sparse = True
    saved_as = "kmeans/1"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | npt.ArrayLike = "k-means++",
        seedings: int = 8,
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        spectrum: bool | None = None,
        delta: float = 0.05,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.seedings = seedings
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.spectrum = spectrum
        self.delta = delta
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """With seedings that can be drawn again and not, without the spectrum, and without a
        bound on the optimum.
        """
        yield cls(3)
        yield cls(2, random_state=0, n_init=2)
        yield cls(4, random_state=0, spectrum=False)
        yield cls(3, init="greedy")

    def fit(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,  # noqa: ARG002 - scikit-learn's signature
        sample_weight: npt.ArrayLike | None = None,
    ) -> KMeans:
        """Cluster the rows."""
        from surelearn.cluster.lloyd import Lloyd
        from surelearn.cluster.spectrum import affordable

        X, weights, rows, weights_of_rows, mean = self._read(X, sample_weight)
        # the tolerance is relative to the mean variance of a column
        d = X.shape[1]
        origin = np.zeros(d) if sparse.issparse(X) else mean
        spread = float(weights_of_rows @ rows.norms) / weights.sum() - float(
            (mean - origin) @ (mean - origin)
        )
        tol = self.tol * max(spread, 0.0) / d
        random = check_random_state(self.random_state)
        drawn = self._seedings(rows, weights_of_rows, random)
        costs = costs_of(drawn)
        lloyd, self.inertia_ = Lloyd(rows, weights_of_rows), np.inf

        def run(start: Matrix) -> int:
            """Iterations from a start, whose clustering is kept where it is the cheapest so far."""
            result = lloyd.run(start, self.max_iter, tol)
            centers = result.centers + origin
            labels, squares = nearest_centers(X, centers)
            if (inertia := float(weights @ squares)) < self.inertia_:
                self.cluster_centers_, self.labels_, self.inertia_ = centers, labels, inertia
                self.n_iter_, self.stopped_ = result.iterations, result.reason
            return result.iterations

        walks = len(costs) + sum(
            run(start) for start in self._starts(rows, weights_of_rows, origin, drawn, tol, random)
        )
        # never worse than the seedings that the theorem is about
        if self.inertia_ > costs.min(initial=np.inf):
            walks += run(rows[min(drawn, key=lambda seedings: seedings.costs.min()).cheapest])
        wanted = (
            affordable(X, int(self.n_clusters), walks)
            if self.spectrum is None
            else bool(self.spectrum)
        )
        facts = self._facts(rows, weights_of_rows, self.labels_, self.inertia_, wanted)
        self.facts_ = facts | {"seeding_costs": costs, "rule": max(RULES)}
        return self

    def measure_again(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,  # noqa: ARG002 - scikit-learn's signature
        sample_weight: npt.ArrayLike | None = None,
    ) -> dict[str, Any]:
        """The record's fields that the fitted model and the rows it was fitted on tell,
        measured again.
        """
        from surelearn.cluster.spectrum import ROUNDINGS

        X, weights, rows, weights_of_rows, _ = self._read(X, sample_weight, reset=False)
        labels, squares = nearest_centers(X, self.cluster_centers_)
        wanted = (
            len(self.record_.singular_values) > 0 if self.spectrum is None else bool(self.spectrum)
        )
        facts = self._facts(rows, weights_of_rows, labels, float(weights @ squares), wanted)
        values = facts["singular_values"]
        off = ROUNDINGS * sum(X.shape) * np.finfo(float).eps * float(values @ values)
        facts["singular_values"] = tuple(
            Within(value, off / max(value, off**0.5)) for value in values.tolist() if off
        )
        rule = getattr(self, "facts_", {}).get("rule", 1)  # version 0.2 kept none
        facts["rule"] = rule if rule in RULES else max(RULES)
        if facts["init"] != "k-means++":
            facts["seeding_costs"] = ()
        # else only the fit knew how the seedings were drawn
        elif isinstance(self.random_state, Integral):
            random = check_random_state(self.random_state)
            facts["seeding_costs"] = costs_of(
                self._seedings(rows, weights_of_rows, random, facts["rule"])
            )
        return facts

    def _facts(
        self, rows: Rows, weights: Matrix, labels: Matrix, cost: float, wanted: bool
    ) -> dict[str, Any]:
        """What rows, labels and parameters tell of the record; the spectrum where it is
        ``wanted``.
        """
        from surelearn.cluster.spectrum import singular_values

        n, d = rows.shape
        return {
            "n": n,
            "d": d,
            "k": int(self.n_clusters),
            "init": self.init if isinstance(self.init, str) else "given",
            "spectrum": None if self.spectrum is None else bool(self.spectrum),
            "used": len(np.unique(labels)),
            "cost": cost,
            "singular_values": (
                singular_values(rows, weights, int(self.n_clusters)) if wanted else np.empty(0)
            ),
        }

    @property
    def record_(self) -> KMeansRecord:
        """What happened in the fit; models of version 0.2 did not record whether the spectrum
        was asked for.
        """
        check_is_fitted(self, "facts_")
        asked = None if self.spectrum is None else bool(self.spectrum)
        return KMeansRecord.read({"spectrum": asked, **self.facts_}, strict=False)

    def predict(self, X: RowsLike) -> npt.NDArray[np.int32]:
        """The nearest center of each row, the first of equals."""
        return nearest_centers(self._again(X), self.cluster_centers_)[0]

    def transform(self, X: RowsLike) -> Matrix:
        """Distances to the centers, (n, k)."""
        return distances(self._again(X), self.cluster_centers_)

    def score(
        self,
        X: RowsLike,
        y: npt.ArrayLike | None = None,  # noqa: ARG002 - scikit-learn's signature
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Minus the cost of these rows with the centers found."""
        X = self._again(X)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return -float(weights @ nearest_centers(X, self.cluster_centers_)[1])

    def _again(self, X: RowsLike) -> Matrix | sparse.csr_array:
        """Rows for a fitted model."""
        check_is_fitted(self)
        return self._validated(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _read(
        self, X: RowsLike, sample_weight: npt.ArrayLike | None, *, reset: bool = True
    ) -> tuple[Matrix | sparse.csr_array, Matrix, Rows, Matrix, Matrix]:
        """Rows and weights as given, rows about their mean and weights in an order of the rows'
        values, and the mean.
        """
        X = self._validated(X, reset=reset)
        self._check(X.shape[0])
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        shares = weights / weights.sum()
        if sparse.issparse(X) or X.dtype == np.float64:
            mean = np.asarray(X.T @ shares)
        else:  # 8-byte sums without an 8-byte copy
            parts = gen_batches(len(X), PART)
            mean = np.sum([shares[part] @ X[part].astype(np.float64) for part in parts], axis=0)
        return X, weights, *self._center(X, mean, weights), mean

    def _validated(self, X: RowsLike, *, reset: bool = False) -> Matrix | sparse.csr_array:
        """Dense rows in 4 or 8 bytes as they come, or sparse ones in 8."""
        rows: Any = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", reset=reset
        )
        if sparse.issparse(rows) and rows.dtype != np.float64:
            rows = rows.astype(np.float64)
        return rows

    def _check(self, n: int) -> None:
        for name in ("n_clusters", "seedings", "n_init", "max_iter"):
            value = getattr(self, name)
            stated.whole(name, value)
        if not isinstance(self.tol, Real) or not 0 <= self.tol < np.inf:
            raise ValueError(f"tol must be a number of at least 0, not {self.tol!r}")
        if self.spectrum is not None and not isinstance(self.spectrum, bool | np.bool_):
            raise ValueError(f"spectrum must be None, True or False, not {self.spectrum!r}")
        if self.n_clusters > n:
            raise ValueError(
                f"n_clusters={self.n_clusters} exceeds n_samples={n}: ask for at most as many"
                " clusters as rows"
            )
        if isinstance(self.init, str) and self.init not in INITS:
            raise ValueError(
                f"init must be one of {', '.join(INITS)} or an array of centers, not {self.init!r}"
            )

    def _center(
        self, X: Matrix | sparse.csr_array, mean: Matrix, weights: Matrix
    ) -> tuple[Rows, Matrix]:
        """Rows about their mean, sparse ones as they are, in an order of their values only:
        seeds are drawn along it.
        """
        from surelearn.cluster.dense import DenseRows
        from surelearn.cluster.sparse import CSRRows

        order = self._order(X, mean) if isinstance(self.init, str) else np.arange(X.shape[0])
        rows: Any = X[order]
        weights = weights[order]
        if not sparse.issparse(X):
            rows = rows.astype(np.float64, copy=False)
            rows -= mean
        entries = rows.data if sparse.issparse(X) else rows
        largest = max(entries.max(initial=0.0), -entries.min(initial=0.0))
        with np.errstate(over="ignore"):
            if not np.isfinite(weights.max() * np.square(largest) * X.shape[0] * X.shape[1]):
                raise ValueError(
                    "X has entries so large that squared distances overflow: rescale its columns"
                )
        return (CSRRows(rows) if sparse.issparse(X) else DenseRows(rows)), weights

    def _order(self, X: Matrix | sparse.csr_array, mean: Matrix) -> npt.NDArray[np.int64]:
        """An order of the rows that their values decide: along a fixed direction."""
        direction = np.random.RandomState(0).standard_normal(X.shape[1])
        if sparse.issparse(X):
            return np.argsort(X @ direction, kind="stable")
        along = [(X[part] - mean) @ direction for part in gen_batches(len(X), PART)]
        return np.argsort(np.concatenate(along), kind="stable")

    def _seedings(
        self, rows: Rows, weights: Matrix, random: np.random.RandomState, rule: int = max(RULES)
    ) -> list[Seedings]:
        """The plain seedings of every start, drawn before anything else; none for other starts."""
        from surelearn.cluster import seeding

        if not isinstance(self.init, str) or self.init != "k-means++":
            return []
        k, runs = int(self.n_clusters), int(self.seedings)
        return [
            seeding.plain(rows, weights, k, runs, random, most=RULES[rule])
            for _ in range(self.n_init)
        ]

    def _starts(
        self,
        rows: Rows,
        weights: Matrix,
        origin: Matrix,
        drawn: list[Seedings],
        tol: float,
        random: np.random.RandomState,
    ) -> Iterator[Matrix]:
        """Centers to start from, (k, d) each."""
        from surelearn.cluster import search, seeding

        k = int(self.n_clusters)
        if not isinstance(self.init, str):
            yield self._given_centers(rows.shape[1]) - origin
        elif self.init == "k-means++":
            yield from (
                search.better_start(rows, weights, seedings, tol, random) for seedings in drawn
            )
        else:
            draw = seeding.greedy if self.init == "greedy" else seeding.uniform
            yield from (rows[draw(rows, weights, k, random)] for _ in range(self.n_init))

    def _given_centers(self, d: int) -> Matrix:
        centers = np.asarray(self.init, dtype=np.float64)
        if centers.shape != (self.n_clusters, d):
            raise ValueError(
                f"init must hold {self.n_clusters} centers of {d} features, not an array of shape"
                f" {centers.shape}"
            )
        if not np.isfinite(centers).all():
            raise ValueError("init must hold finite numbers: it contains NaN or infinity")
        return centers

    def _describe(self) -> Parts:
        return Parts()


def costs_of(drawn: list[Seedings]) -> Matrix:
    """Costs of all seedings, those of the first start first."""
    return np.concatenate([seedings.costs for seedings in drawn]) if drawn else np.empty(0)


def nearest_centers(
    X: Matrix | sparse.csr_array, centers: Matrix
) -> tuple[npt.NDArray[np.int32], Matrix]:
    """Each row's nearest center, the first of equals, and the squared distance to it, for dense
    or sparse rows.
    """
    from surelearn.cluster import dense
    from surelearn.cluster import sparse as sparse_rows

    if sparse.issparse(X):
        return sparse_rows.nearest(sparse_rows.CSRRows(X), centers)
    return dense.nearest(X, centers)


def distances(X: Matrix | sparse.csr_array, centers: Matrix) -> Matrix:
    """‖x − c‖ for every row and center, (n, k); where the expanded square cancels, from the
    coordinates.
    """
    from surelearn.cluster.dense import DenseRows
    from surelearn.cluster.sparse import CSRRows

    if sparse.issparse(X):
        return np.sqrt(CSRRows(X).squared_distances(centers))
    origin = centers.mean(axis=0)
    return np.sqrt(DenseRows(X - origin).squared_distances(centers - origin))
