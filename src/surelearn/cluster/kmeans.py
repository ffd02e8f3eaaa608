"""k-means with a number for how far from the best clustering it can be."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from surelearn import bounds
from surelearn.base import Learner, Writer

Matrix = npt.NDArray[Any]

INITS = ("k-means++", "greedy", "random")
WIDEST, DEAREST = 2000, 2e11  # a spectrum takes about n·d² + d³ operations, d the smaller side; 2e11 are a few seconds


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Learner):
    """Lloyd's k-means from k-means++ seeds, with a certified ratio to the optimal cost.

    The cost is Σ w‖x − c‖² over the rows, c a row's nearest centre. The certificate bounds the optimal cost from below, by
    the spectrum of the rows (always) and by the costs of independent seedings (with probability 1 − δ), and so bounds
    ``inertia_`` over the optimum. Nothing is assumed of the rows: the claims are about these rows, not about new ones.

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
    (stability notes, Section 8.3). Sparse rows are refused: centring them would fill them.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]])
    >>> model = KMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.inertia_
    1.0
    >>> print(model.certificate_.claims[-1])
    cost / optimum ≤ 1.001  (always, k-means ratio, from the spectrum)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        seedings: int = 8,
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        delta: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.seedings = seedings
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.delta = delta
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KMeans:  # noqa: ARG002 - scikit-learn's signature
        """Cluster the rows."""
        from surelearn.cluster.lloyd import Lloyd, nearest

        X = validate_data(self, X, dtype=np.float64, order="C")
        self._check(len(X))
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        mean = np.average(X, axis=0, weights=weights)
        rows, weights_of_rows = self._centre(X, mean, weights)
        variance = float(weights_of_rows @ np.einsum("ij,ij->i", rows, rows)) / weights.sum() / X.shape[1]
        lloyd = Lloyd(rows, weights_of_rows)
        starts, costs = self._starts(rows, weights_of_rows, mean, check_random_state(self.random_state))
        self.inertia_ = np.inf
        for start in starts:
            result = lloyd.run(start, self.max_iter, self.tol * variance)
            centers = result.centers + mean
            labels, squares = nearest(X, centers)
            if (inertia := float(weights @ squares)) < self.inertia_:
                self.cluster_centers_, self.labels_, self.inertia_ = centers, labels, inertia
                self.n_iter_, self.stopped_ = result.iterations, result.reason
        self.facts_ = {
            "n": len(X),
            "d": X.shape[1],
            "k": int(self.n_clusters),
            "init": self.init if isinstance(self.init, str) else "given",
            "used": len(np.unique(self.labels_)),
            "cost": self.inertia_,
            "iterations": self.n_iter_,
            "stopped": self.stopped_,
            "seeding_costs": costs,
            "singular_values": singular_values(rows, weights_of_rows, int(self.n_clusters)),
        }
        return self

    def predict(self, X: Any) -> npt.NDArray[np.int32]:
        """The nearest centre of each row, the first of equals."""
        from surelearn.cluster.lloyd import nearest

        check_is_fitted(self)
        return nearest(validate_data(self, X, dtype=np.float64, order="C", reset=False), self.cluster_centers_)[0]

    def transform(self, X: Any) -> Matrix:
        """Distances to the centres, (n, k)."""
        check_is_fitted(self)
        return distances(validate_data(self, X, dtype=np.float64, reset=False), self.cluster_centers_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:  # noqa: ARG002 - scikit-learn's signature
        """Minus the cost of these rows with the centres found."""
        from surelearn.cluster.lloyd import nearest

        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return -float(weights @ nearest(X, self.cluster_centers_)[1])

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
        if self.n_clusters > n:
            raise ValueError(f"n_clusters={self.n_clusters} exceeds n_samples={n}: ask for at most as many clusters as rows")
        if isinstance(self.init, str) and self.init not in INITS:
            raise ValueError(f"init must be one of {', '.join(INITS)} or an array of centres, not {self.init!r}")

    def _centre(self, X: Matrix, mean: Matrix, weights: Matrix) -> tuple[Matrix, Matrix]:
        """Rows about their mean, in an order that depends on their values only: seeds are drawn along it."""
        rows = X - mean
        with np.errstate(over="ignore"):
            if not np.isfinite(weights.max() * np.square(np.abs(rows).max()) * rows.size):
                raise ValueError("X has entries so large that squared distances overflow: rescale its columns")
        if not isinstance(self.init, str):
            return rows, weights
        order = np.argsort(rows @ np.random.RandomState(0).standard_normal(X.shape[1]), kind="stable")
        return rows[order], weights[order]

    def _starts(self, rows: Matrix, weights: Matrix, mean: Matrix, random: Any) -> tuple[list[Matrix], Matrix]:
        """Centres to start from, and the costs of all plain seedings drawn for them."""
        from surelearn.cluster import seeding

        k = int(self.n_clusters)
        if not isinstance(self.init, str):
            return [self._given_centers(rows.shape[1]) - mean], np.empty(0)
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
        return f"the spectrum of {self.facts_['n']:,} rows with {self.facts_['d']:,} features is too dear"


def singular_values(rows: Matrix, weights: Matrix, k: int) -> Matrix:
    """Singular values of the centred rows scaled by √w, each lowered by its rounding; none where they would say nothing.

    Eigenvalues of a sum of n products are off by at most about (n + d)·ε·trace, which is taken off: the PCA tail stays a
    lower bound.
    """
    n, d = rows.shape
    if k > min(n, d) or too_dear(n, d):
        return np.empty(0)
    scaled = rows * np.sqrt(weights)[:, None]
    gram = scaled.T @ scaled if d <= n else scaled @ scaled.T
    squares = np.linalg.eigvalsh(gram)[::-1] - (n + d) * np.finfo(float).eps * np.trace(gram)
    return np.sqrt(np.maximum(squares, 0.0))


def too_dear(n: int, d: int) -> bool:
    """Whether a spectrum would take longer than clustering usually does."""
    return min(n, d) > WIDEST or float(n) * d * min(n, d) > DEAREST


def distances(X: Matrix, centers: Matrix) -> Matrix:
    """‖x − c‖ for every row and centre, (n, k); where the expanded square cancels, from the coordinates."""
    origin = centers.mean(axis=0)
    X, centers = X - origin, centers - origin
    scale = np.einsum("ij,ij->i", X, X)[:, None] + np.einsum("ij,ij->i", centers, centers)
    squares = scale - 2 * X @ centers.T
    i, j = np.nonzero(squares < 1e-6 * scale)
    squares[i, j] = np.square(X[i] - centers[j]).sum(axis=1)
    return np.sqrt(squares)
