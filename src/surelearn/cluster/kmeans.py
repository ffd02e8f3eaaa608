"""k-means with a number for how far from the best clustering it can be."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from surelearn import bounds
from surelearn.base import Learner, Writer

Matrix = npt.NDArray[Any]

INITS = ("k-means++", "greedy", "random")


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Learner):
    """Lloyd's k-means from k-means++ seeds, with a certified ratio to the optimal cost.

    The cost is Σ w‖x − c‖² over the rows, c a row's nearest centre. The certificate bounds the optimal cost from below, by
    the spectrum of the rows (always, where it is computed) and by the costs of independent seedings (with probability
    1 − δ), and so bounds ``inertia_`` over the optimum. Nothing is assumed of the rows: the claims are about these rows, not
    about new ones.

    Parameters
    ----------
    n_clusters : k
    init : "k-means++", plain D² seeding, the one that the theorem 8(ln k + 2) is about; "greedy", the best of a few
        candidates a step, without a claim; "random", different rows; or an array of centres, (k, d)
    seedings : independent plain seedings drawn for each start of "k-means++"; Lloyd starts from the cheapest, and all of
        them bound the optimum: with R in all, OPT ≥ δ^{1/R}·min(costs) / (8(ln k + 2))
    n_init : starts; the clustering of least cost is kept
    max_iter : the most iterations of a start
    tol : stop when the centres' squared moves add up to at most this part of the mean variance of a feature
    spectrum : whether to bound the optimum by the spectrum of the rows. It takes the eigenvalues of a matrix of min(n, d)
        rows: None computes them where that is quick or costs at most a quarter of the clustering (counted in operations,
        not timed), True always, False never; the certificate says where they are missing
    delta : failure probability of the claims from seedings
    random_state : for the seeds

    Attributes
    ----------
    cluster_centers_ : (k, d)
    labels_ : the nearest centre of each row
    inertia_ : the cost
    n_iter_ : iterations of the start that was kept

    Notes
    -----
    Up to rounding the result does not depend on the order of the rows, and a row of weight 2 is a row given twice. A cluster
    that runs empty is given the row that costs most; with fewer different rows than clusters some stay empty, and
    ``facts_["used"]`` counts the others. The guarantee 8(ln k + 2) is for the seeding cost, before Lloyd, in expectation
    (stability notes, Section 8.3). Sparse rows are never filled in; the centres, (k, d), are dense.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]])
    >>> model = KMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.inertia_
    1.0
    >>> print(model.certificate_.claims[-1])
    cost / optimum ≤ 1.001  (always, k-means ratio, from the spectrum)
    """

    takes_sparse = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        seedings: int = 8,
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        spectrum: bool | None = None,
        delta: float = 0.05,
        random_state: Any = None,
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KMeans:  # noqa: ARG002 - scikit-learn's signature
        """Cluster the rows."""
        from surelearn.cluster.lloyd import Lloyd
        from surelearn.cluster.seeding import norms_of
        from surelearn.cluster.sparse import SparseLloyd, SparseRows
        from surelearn.cluster.spectrum import affordable, singular_values

        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C")
        n, d = X.shape
        self._check(n)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        mean = np.asarray(X.T @ (weights / weights.sum()))
        rows, weights_of_rows = self._centre(X, mean, weights)
        lloyd = SparseLloyd(rows, weights_of_rows) if isinstance(rows, SparseRows) else Lloyd(rows, weights_of_rows)
        origin = np.zeros(d) if isinstance(rows, SparseRows) else mean
        spread = float(weights_of_rows @ norms_of(rows)) / weights.sum() - float((mean - origin) @ (mean - origin))
        starts, costs = self._starts(rows, weights_of_rows, origin, check_random_state(self.random_state))
        self.inertia_, walks = np.inf, len(costs)
        for start in starts:
            result = lloyd.run(start, self.max_iter, self.tol * max(spread, 0.0) / d)
            walks += result.iterations
            centers = result.centers + origin
            labels, squares = nearest_centers(X, centers)
            if (inertia := float(weights @ squares)) < self.inertia_:
                self.cluster_centers_, self.labels_, self.inertia_ = centers, labels, inertia
                self.n_iter_, self.stopped_ = result.iterations, result.reason
        wanted = affordable(X, int(self.n_clusters), walks) if self.spectrum is None else bool(self.spectrum)
        self.facts_ = {
            "n": n,
            "d": d,
            "k": int(self.n_clusters),
            "init": self.init if isinstance(self.init, str) else "given",
            "used": len(np.unique(self.labels_)),
            "cost": self.inertia_,
            "iterations": self.n_iter_,
            "stopped": self.stopped_,
            "seeding_costs": costs,
            "singular_values": singular_values(rows, weights_of_rows, int(self.n_clusters)) if wanted else np.empty(0),
        }
        return self

    def predict(self, X: Any) -> npt.NDArray[np.int32]:
        """The nearest centre of each row, the first of equals."""
        return nearest_centers(self._again(X), self.cluster_centers_)[0]

    def transform(self, X: Any) -> Matrix:
        """Distances to the centres, (n, k)."""
        return distances(self._again(X), self.cluster_centers_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:  # noqa: ARG002 - scikit-learn's signature
        """Minus the cost of these rows with the centres found."""
        X = self._again(X)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return -float(weights @ nearest_centers(X, self.cluster_centers_)[1])

    def _again(self, X: Any) -> Any:
        """Rows for a fitted model."""
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _check(self, n: int) -> None:
        for name in ("n_clusters", "seedings", "n_init", "max_iter"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
        if not isinstance(self.tol, Real) or not 0 <= self.tol < np.inf:
            raise ValueError(f"tol must be a number of at least 0, not {self.tol!r}")
        if self.spectrum is not None and not isinstance(self.spectrum, bool | np.bool_):
            raise ValueError(f"spectrum must be None, True or False, not {self.spectrum!r}")
        if self.n_clusters > n:
            raise ValueError(f"n_clusters={self.n_clusters} exceeds n_samples={n}: ask for at most as many clusters as rows")
        if isinstance(self.init, str) and self.init not in INITS:
            raise ValueError(f"init must be one of {', '.join(INITS)} or an array of centres, not {self.init!r}")

    def _centre(self, X: Any, mean: Matrix, weights: Matrix) -> tuple[Any, Matrix]:
        """Rows about their mean, sparse ones as they are, in an order of their values only: seeds are drawn along it."""
        from surelearn.cluster.sparse import SparseRows

        rows = X if sparse.issparse(X) else X - mean
        with np.errstate(over="ignore"):
            largest = np.abs(rows.data if sparse.issparse(rows) else rows).max(initial=0.0)
            if not np.isfinite(weights.max() * np.square(largest) * X.shape[0] * X.shape[1]):
                raise ValueError("X has entries so large that squared distances overflow: rescale its columns")
        if isinstance(self.init, str):
            order = np.argsort(rows @ np.random.RandomState(0).standard_normal(X.shape[1]), kind="stable")
            rows, weights = rows[order], weights[order]
        return (SparseRows(rows) if sparse.issparse(rows) else rows), weights

    def _starts(self, rows: Any, weights: Matrix, origin: Matrix, random: Any) -> tuple[list[Matrix], Matrix]:
        """Centres to start from, and the costs of all plain seedings drawn for them."""
        from surelearn.cluster import seeding

        k = int(self.n_clusters)
        if not isinstance(self.init, str):
            return [self._given_centers(rows.shape[1]) - origin], np.empty(0)
        if self.init == "greedy":
            return [rows[seeding.greedy(rows, weights, k, random)] for _ in range(self.n_init)], np.empty(0)
        if self.init == "random":
            return [rows[seeding.uniform(rows, weights, k, random)] for _ in range(self.n_init)], np.empty(0)
        starts, costs = [], []
        for _ in range(self.n_init):
            seeds, cost = seeding.plain(rows, weights, k, int(self.seedings), random)
            starts.append(rows[seeds[np.argmin(cost)]])
            costs.append(cost)
        return starts, np.concatenate(costs)

    def _given_centers(self, d: int) -> Matrix:
        centers = np.asarray(self.init, dtype=np.float64)
        if centers.shape != (self.n_clusters, d):
            raise ValueError(
                f"init must hold {self.n_clusters} centres of {d} features, not an array of shape {centers.shape}"
            )
        if not np.isfinite(centers).all():
            raise ValueError("init must hold finite numbers: it contains NaN or infinity")
        return centers

    def _claim(self, writer: Writer) -> None:
        facts = self.facts_
        seeds, spectrum = facts["seeding_costs"], facts["singular_values"]
        seeds_read = {"costs": "seeding_costs", "k": "k"} if len(seeds) else {}
        spectrum_read = {"singular_values": "singular_values", "k": "k"} if len(spectrum) else {}
        if seeds_read:
            writer.claim(bounds.kmeans_plus_plus_ratio, {"k": "k"}, met=bounds.kmeans_plus_plus_ratio.assumes)
            met = bounds.kmeans_optimum_lower_bound.assumes
            writer.claim(bounds.kmeans_optimum_lower_bound, seeds_read, label="optimal cost, from seedings", met=met)
        else:
            reason = f"init is {facts['init']!r}: the theorem is about plain D² seeding, init='k-means++'"
            writer.absent("seeding cost / optimum", reason, "kmeans_plus_plus_ratio")
            writer.absent("optimal cost", reason, "kmeans_optimum_lower_bound")
        if spectrum_read:
            met = bounds.kmeans_spectral_lower_bound.assumes
            writer.claim(bounds.kmeans_spectral_lower_bound, spectrum_read, label="optimal cost, from the spectrum", met=met)
        else:
            writer.absent("optimal cost", self._why_no_spectrum(), "kmeans_spectral_lower_bound")
        self._claim_ratio(writer, seeds_read, spectrum_read)

    def _claim_ratio(self, writer: Writer, seeds: dict[str, str], spectrum: dict[str, str]) -> None:
        """Bound the cost over the optimum by the larger lower bound; that of the spectrum holds always."""
        k, facts = self.facts_["k"], self.facts_
        from_seeds = bounds.kmeans_optimum_lower_bound(facts["seeding_costs"], k, writer.delta) if seeds else 0.0
        from_spectrum = bounds.kmeans_spectral_lower_bound(facts["singular_values"], k) if spectrum else 0.0
        if spectrum and from_spectrum >= from_seeds:
            read = {"cost": "cost", **spectrum}
            writer.claim(bounds.kmeans_spectral_ratio, read, met=bounds.kmeans_spectral_ratio.assumes)
        elif seeds:
            writer.claim(bounds.kmeans_ratio, {"cost": "cost", **seeds, **spectrum}, met=bounds.kmeans_ratio.assumes)
        else:
            writer.absent("cost / optimum", "no lower bound on the optimum applies", "kmeans_ratio")

    def _why_no_spectrum(self) -> str:
        smaller = min(self.facts_["n"], self.facts_["d"])
        if self.facts_["k"] > smaller:
            return f"{self.facts_['k']} clusters use up all {smaller} dimensions: the PCA tail is 0"
        if self.spectrum is False:
            return "spectrum=False: the spectrum was not computed"
        return (
            f"the spectrum of {self.facts_['n']:,} rows with {self.facts_['d']:,} features is too dear: spectrum=True has it"
        )


def nearest_centers(X: Any, centers: Matrix) -> tuple[npt.NDArray[np.int32], Matrix]:
    """Each row's nearest centre, the first of equals, and the squared distance to it, for dense or sparse rows."""
    from surelearn.cluster import lloyd
    from surelearn.cluster import sparse as sparse_rows

    if sparse.issparse(X):
        return sparse_rows.nearest(sparse_rows.SparseRows(X), centers)
    return lloyd.nearest(X, centers)


def distances(X: Any, centers: Matrix) -> Matrix:
    """‖x − c‖ for every row and centre, (n, k); where the expanded square cancels, from the coordinates."""
    if sparse.issparse(X):
        from surelearn.cluster.sparse import SparseRows, squared_distances

        return np.sqrt(squared_distances(SparseRows(X), centers, slice(None)))
    origin = centers.mean(axis=0)
    X, centers = X - origin, centers - origin
    scale = np.einsum("ij,ij->i", X, X)[:, None] + np.einsum("ij,ij->i", centers, centers)
    squares = scale - 2 * X @ centers.T
    i, j = np.nonzero(squares < 1e-6 * scale)
    squares[i, j] = np.square(X[i] - centers[j]).sum(axis=1)
    return np.sqrt(squares)
