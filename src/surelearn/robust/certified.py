"""Certified radii of a model at rows: linear models, kernel machines, and networks with known
Lipschitz constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from surelearn.attacks.domains import Domain
from surelearn.bounds.robustness import (
    kernel_radius,
    linear_radius,
    lipschitz_radius,
    polynomial_radius,
)
from surelearn.claim import Claim, Covers, Theorem, find_theorem
from surelearn.lacking import Lacking
from surelearn.robust.lipschitz import Slopes, matrix_norm, slopes
from surelearn.subject import ScoreFunction, score_function, trusted
from surelearn.subject.agreement import mixtures
from surelearn.subject.forms import (
    Affine,
    Array,
    Closed,
    GaussianForm,
    KernelForm,
    LinearForm,
    ModuleForm,
    NetworkForm,
    VoteForm,
)
from surelearn.types import Model, RowsLike

RadiusNorm = Literal["l2", "linf", "l1"]
ARITHMETIC = (
    "the model's scores are those of exact arithmetic: rounding in its own precision is not covered"
)
CHOICES = "columns of choices, and columns without a scale, keep their values"
UNITS = (
    "the radius, and the scale of each column that it is measured in, were fixed without a look at"
    " these rows"
)
_EPSILON = float(np.finfo(np.float64).eps)
_RADIAL = {"gaussian": "gaussian", "laplace": "laplace", 1.5: "matern 3/2", 2.5: "matern 5/2"}


_NO_THEOREM = {
    GaussianForm: "scores that are quadratic in a row",
    VoteForm: "a vote of models, each with its own radius",
}


@dataclass(frozen=True, eq=False)
class Radii:
    """For every row a radius within which the prediction provably stays.

    Attributes
    ----------
    norm : "l2", "linf" or "l1", in units of the domain's scale
    values : (n,); 0 where nothing is certified
    predicted : the label that stays
    theorem : the key of the theorem
    inputs : its inputs for every row, of the class that comes nearest
    exact : whether no larger radius would be true, where the whole ball is allowed
    """

    norm: RadiusNorm
    values: Array
    predicted: np.ndarray
    theorem: str
    inputs: Mapping[str, Any]
    exact: bool

    def claim(self, row: int, **options: Any) -> Claim:
        """The claim about one row, through the theorem."""
        theorem: Theorem[..., Any] = find_theorem(self.theorem)
        given = {
            name: value if isinstance(value, str) else float(value[row])
            for name, value in self.inputs.items()
        }
        given = {name: int(value) if name == "degree" else value for name, value in given.items()}
        options = {
            "covers": Covers(rows=f"row {row}"),
            "label": f"{self.norm} radius of row {row}",
            **options,
        }
        return theorem.certify(**given, **{"assumptions": (ARITHMETIC, CHOICES), **options})


def certified_radii(
    model: Model, X: RowsLike, *, norm: RadiusNorm = "l2", where: Domain | None = None
) -> Radii:
    """How far each row may move, in units of the domain's scale, without the prediction changing.

    Linear models exactly; machines with Gaussian, Laplace, Matérn or polynomial kernels by their
    RKHS norm; networks by the product of their layers' norms. One machine for every pair of classes
    (votes): where a class wins all its pairs, as long as it does. Columns with scale 0 do not move.
    A `ValueError` says why there is no radius; `radii_of` returns the reason as a value.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    >>> certified_radii(LogisticRegression().fit(X, y), X).values.round(4).tolist()
    [2.0, 1.0, 1.0, 2.0]
    """
    found = radii_of(model, X, norm=norm, where=where)
    if isinstance(found, Lacking):
        raise ValueError(found.reason)
    return found


def radii_of(
    model: Model, X: RowsLike, *, norm: RadiusNorm = "l2", where: Domain | None = None
) -> Radii | Lacking:
    """As `certified_radii`, with a value that says why there is no radius.

    Examples
    --------
    >>> print(radii_of(lambda X: X[:, 0] > 0, [[1.0]]).reason[:41])
    no radius is certified for <lambda>: func
    """
    if norm not in ("l2", "linf", "l1"):
        raise ValueError(f"norm must be 'l2', 'linf' or 'l1', not {norm!r}")
    f = score_function(model)
    X = np.array(X, dtype=np.float64, ndmin=2)
    if not len(X):
        raise ValueError("X must hold at least one row")
    if not np.isfinite(X).all():
        raise ValueError(
            f"X must hold finite numbers: row {int((~np.isfinite(X)).any(axis=1).argmax())} has"
            " another"
        )
    if isinstance(f.closed, Closed) and f.classes is None and f.module is None:
        return _no_radius(f, "it predicts numbers, and radii are about classes")
    f = trusted(f, X)
    scale = np.ones(X.shape[1]) if where is None else where.scale
    made = _certify(f, X, norm, scale)
    if isinstance(made, Lacking):
        return made
    # no radius where the scores' winner is not what the model answers
    said = f.predict(X)
    labels = np.asarray(f.classes if f.classes is not None else range(made.best.max() + 1))
    agreed = (labels[made.best] == said) & made.won
    values = np.where(agreed, made.theorem(**made.inputs), 0.0)
    inputs = {**made.inputs, "score_gap": np.where(agreed, made.inputs["score_gap"], 0.0)}
    full = {
        name: v if isinstance(v, str) else np.broadcast_to(v, len(X)) for name, v in inputs.items()
    }
    exact = made.theorem is linear_radius and made.head != "pairs"
    return Radii(norm, values, said, made.theorem.key, full, exact)


def _no_radius(f: ScoreFunction, why: str) -> Lacking:
    return Lacking("radius", f"no radius is certified for {f.name}: {why}")


def own_units(X: Array, scale: npt.ArrayLike | None) -> Lacking | None:
    """Why units that are a spread of the rows X themselves void a claim from X about new rows; None
    where they are not.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [2.5, 4.0]])
    >>> own_units(X, X.std(axis=0)).reason
    'the scale is the standard deviation of these rows: take it from other rows, or state it'
    >>> own_units(X, [1.0, 1.0])
    """
    if scale is None or len(X) < 2:
        return None
    scale = np.broadcast_to(np.asarray(scale, dtype=float), X.shape[1])
    moves = scale > 0
    several, first = moves.sum() > 1, scale[moves][:1]
    # one number, as people state it
    if (scale[moves] == first).all() and (several or (first == np.round(first)).all()):
        return None
    low, high = np.quantile(X, [0.25, 0.75], axis=0)
    spreads = {
        "standard deviation": (X.std(axis=0), X.std(axis=0, ddof=1)),
        "range": (np.ptp(X, axis=0),),
        "interquartile range": (high - low,),
        "largest size": (np.abs(X).max(axis=0),),
    }
    for name, kinds in spreads.items():
        if any(_proportional(kind[moves], scale[moves]) for kind in kinds):
            why = f"the scale is the {name} of these rows: take it from other rows, or state it"
            return Lacking("robust accuracy", why)
    return None


def _proportional(spread: Array, scale: Array) -> bool:
    """Whether one is the other, or of several columns a multiple of it."""
    if len(scale) == 1 or not spread.min() > 0:
        return bool(np.allclose(spread, scale, rtol=1e-9, atol=0.0))
    return bool(np.ptp(scale / spread) <= 1e-9 * (scale / spread).max())


@dataclass(frozen=True, eq=False)
class _Made:
    """A theorem with its inputs for every row, the class predicted, and whether it won all its
    pairs.
    """

    theorem: Theorem[..., Any]
    inputs: dict[str, Any]
    best: np.ndarray
    won: np.ndarray
    head: str


def _certify(f: ScoreFunction, X: Array, norm: RadiusNorm, scale: Array) -> _Made | Lacking:
    closed = f.closed
    if isinstance(closed, Lacking):
        why = f.pullback.reason if isinstance(f.pullback, Lacking) else closed.reason
        return _no_radius(f, why)
    form = closed.form
    if isinstance(form, NetworkForm | ModuleForm):
        return _network(f, X, norm, scale)
    prepare = closed.prepare or Affine(np.ones(X.shape[1]), np.zeros(X.shape[1]))
    inner = prepare(X)
    if isinstance(form, LinearForm):
        weights = prepare.back(form.weights) * scale
        size = Affine(np.abs(prepare.matrix), np.abs(prepare.shift))(np.abs(X))
        error = (
            8
            * (X.shape[1] + inner.shape[1] + 4)
            * _EPSILON
            * (size @ np.abs(form.weights).T + np.abs(form.intercepts))
        )
        duels = _duels(form.values(inner), error, closed.head)
        return duels.least(
            linear_radius, {"dual_norm": duels.of_pairs(lambda a, b: _dual(weights, a, b, norm))}
        )
    if not isinstance(form, KernelForm):
        return _no_radius(
            f, f"no theorem here is about {_NO_THEOREM.get(type(form), 'such scores')}"
        )
    return _kernel(form, inner, closed.head, _operator(prepare.dense() * scale, norm))


def _kernel(form: KernelForm, inner: Array, head: str, stretch: float) -> _Made | Lacking:
    count = len(form.centers)
    duels = _duels(
        form.values(inner), 8 * (count + inner.shape[1] + 4) * _EPSILON * _sizes(form, inner), head
    )
    gram = form.coefficients.T @ (form.values(form.centers) - form.intercepts)
    slack = 8 * (count + 4) * _EPSILON * np.abs(form.coefficients).T @ _sizes(form, form.centers)

    def rkhs(a: int, b: int | None) -> float:
        if b is None:
            return float(np.sqrt(max(0.0, gram[a, a] + slack[a, a])))
        squared = gram[a, a] + gram[b, b] - gram[a, b] - gram[b, a]
        return float(
            np.sqrt(max(0.0, squared + slack[a, a] + slack[b, b] + slack[a, b] + slack[b, a]))
        )

    norms = duels.of_pairs(rkhs)
    if form.name == "polynomial":
        p, gamma, offset = (form.parameters[name] for name in ("degree", "gamma", "offset"))
        x_norm = np.linalg.norm(inner, axis=1) / max(stretch, 1e-300) * (1 + 1e-12)
        rest = {
            "x_norm": x_norm[:, None],
            "degree": int(p),
            "gamma": max(gamma * stretch**2, 1e-300),
            "offset": offset,
        }
        if gamma <= 0 or offset < 0:
            why = "no radius is certified for a polynomial kernel with γ ≤ 0 or a negative offset"
            return Lacking("radius", why)
        return duels.least(polynomial_radius, {"rkhs_norm": norms, **rest})
    kind = _RADIAL[form.parameters["nu"] if form.name == "matern" else form.name]
    bandwidth = form.parameters["bandwidth"] / max(stretch, 1e-150)
    return duels.least(kernel_radius, {"rkhs_norm": norms, "bandwidth": bandwidth, "kernel": kind})


def _sizes(form: KernelForm, X: Array) -> Array:
    """Σ_j |c_jm|·|k(x, z_j)| + |b_m|, or more: what rounding errors are shares of."""
    signed = form.name == "polynomial"
    centers = np.abs(form.centers) if signed else form.centers
    form = KernelForm(
        form.name, form.parameters, centers, np.abs(form.coefficients), np.abs(form.intercepts)
    )
    return form.values(np.abs(X) if signed else X)


def _network(f: ScoreFunction, X: Array, norm: RadiusNorm, scale: Array) -> _Made | Lacking:
    """L2 and L1 by L2 norms of layers; L∞ by those or by L∞ norms, whichever gives more in all."""
    prepare = f.closed.prepare if isinstance(f.closed, Closed) else None
    matrix = np.diag(scale) if prepare is None else prepare.dense() * scale
    made = []
    for layers in ("l2", "linf") if norm == "linf" else ("l2",):
        found = slopes(f, layers)
        if isinstance(found, Lacking):
            return _no_radius(f, found.reason)
        stretch = (
            _operator(matrix, norm) if layers == "l2" else float(np.abs(matrix).sum(axis=1).max())
        )
        scores = f.scores(X).astype(np.float64)
        if len(found.weights) not in (1, scores.shape[1]):
            return _no_radius(f, "its last layer does not give a score a class")
        if _faster(f, X, scale, norm, _outermost(found, layers) * stretch):
            return _no_radius(f, "its scores change faster than its layers can")
        machines, head = (scores[:, 1:], "two") if len(found.weights) == 1 else (scores, "each")
        error = 64 * float(np.finfo(f.dtype).eps) * (1.0 + np.abs(machines))
        duels = _duels(machines, error, head)
        dual = duels.of_pairs(lambda a, b, W=found.weights, kind=layers: _dual(W, a, b, kind))
        made.append(
            duels.least(lipschitz_radius, {"dual_norm": dual, "slope": found.before * stretch})
        )
    return max(made, key=lambda one: float(np.sum(one.theorem(**one.inputs))))


def _outermost(found: Slopes, layers: Any) -> float:
    """At least the Lipschitz constant of every difference of two scores, also after a softmax."""
    return (
        (2.0 if layers == "linf" else np.sqrt(2.0))
        * matrix_norm(found.weights, layers)
        * found.before
    )


def _faster(f: ScoreFunction, X: Array, scale: Array, norm: RadiusNorm, constant: float) -> bool:
    """Whether differences of scores change by more than the constant allows, from rows to
    mixtures of them.
    """
    start, mixed, near = np.split(mixtures(X), 3)
    order = {"l2": 2, "linf": np.inf, "l1": 1}[norm]
    for end in (mixed, near):
        end = np.where(scale > 0, end, start)
        before, after = (f.scores(rows).astype(np.float64) for rows in (start, end))
        step = np.abs((after - after[:, :1]) - (before - before[:, :1])).max(axis=1)
        distance = np.linalg.norm((end - start) / np.where(scale > 0, scale, 1.0), order, axis=1)
        if (
            step > constant * distance + 1e-4 * (1.0 + np.abs(before).max() + np.abs(after).max())
        ).any():
            return True
    return False


@dataclass(frozen=True, eq=False)
class _Duels:
    """The predicted class against every other: gaps (n, others), pairs of machines (n, others,
    2), -1 for none.
    """

    gaps: Array
    pairs: np.ndarray
    best: np.ndarray
    won: np.ndarray
    head: str

    def of_pairs(self, number: Callable[[int, int | None], float]) -> Array:
        """A number for every duel, from its machine or two."""
        kinds, which = np.unique(self.pairs.reshape(-1, 2), axis=0, return_inverse=True)
        numbers = np.array(
            [number(int(a), None if b < 0 else int(b)) for a, b in kinds], dtype=float
        )
        return numbers[which.ravel()].reshape(self.gaps.shape)

    def least(self, theorem: Theorem[..., Any], inputs: dict[str, Any]) -> _Made:
        """The duel with the least radius of every row."""
        radius = np.reshape(theorem(score_gap=self.gaps, **inputs), self.gaps.shape)
        at = radius.argmin(axis=1)[:, None]
        taken = {
            name: (
                v
                if isinstance(v, str)
                else np.take_along_axis(np.broadcast_to(v, self.gaps.shape), at, axis=1)[:, 0]
            )
            for name, v in {"score_gap": self.gaps, **inputs}.items()
        }
        return _Made(theorem, taken, self.best, self.won, self.head)


def _duels(machines: Array, error: Array, head: str) -> _Duels:
    """Gaps with what rounding could change subtracted, never below 0."""
    n, count = machines.shape
    if head == "two":
        gaps = np.maximum(0.0, np.abs(machines) - 2 * error)
        pairs = np.broadcast_to(np.array([0, -1]), (n, 1, 2))
        return _Duels(gaps, pairs, (machines[:, 0] > 0).astype(int), np.ones(n, dtype=bool), head)
    if head == "each":
        # the winner's score against that of each other class, both made worse by their error
        best = machines.argmax(axis=1)
        others = np.array([[b for b in range(count) if b != a] for a in range(count)])[best]
        own = np.take_along_axis(machines, best[:, None], axis=1) - 2 * np.take_along_axis(
            error, best[:, None], axis=1
        )
        gaps = np.maximum(0.0, own - np.take_along_axis(machines + 2 * error, others, axis=1))
        pairs = np.stack([np.broadcast_to(best[:, None], others.shape), others], axis=2)
        return _Duels(gaps, pairs, best, np.ones(n, dtype=bool), head)
    meets = list(combinations(range(round((1 + np.sqrt(1 + 8 * count)) / 2)), 2))
    classes = meets[-1][1] + 1
    wins = np.zeros((n, classes), dtype=int)
    for column, (low, high) in enumerate(meets):
        wins[:, high] += machines[:, column] > 0
        wins[:, low] += machines[:, column] <= 0
    best = wins.argmax(axis=1)
    mine = np.array(
        [[column for column, pair in enumerate(meets) if label in pair] for label in range(classes)]
    )[best]
    gaps = np.maximum(
        0.0,
        np.abs(np.take_along_axis(machines, mine, axis=1))
        - 2 * np.take_along_axis(error, mine, axis=1),
    )
    pairs = np.stack([mine, np.full_like(mine, -1)], axis=2)
    return _Duels(gaps, pairs, best, wins.max(axis=1) == classes - 1, head)


def _dual(weights: Array, a: int, b: int | None, norm: str) -> float:
    """‖w_a − w_b‖ in the dual norm, rounded up."""
    w = weights[a] if b is None else weights[a] - weights[b]
    rounding = 1.0 + 4 * (len(w) + 4) * _EPSILON
    slack = (
        0.0
        if b is None
        else 2 * _EPSILON * float(np.abs(weights[a]).sum() + np.abs(weights[b]).sum())
    )
    order = {"l2": 2, "linf": 1, "l1": np.inf}[norm]
    return float(np.linalg.norm(w, order)) * rounding + slack


def _operator(A: Array, norm: RadiusNorm) -> float:
    """At least the largest ‖Ax‖₂ over ‖x‖ ≤ 1 in the norm, rounded up; exact for diagonal
    matrices.
    """
    if norm == "l2":
        value = np.linalg.norm(A, 2)
    elif norm == "l1":
        value = np.linalg.norm(A, axis=0).max()
    else:
        value = np.sqrt((np.abs(A).sum(axis=1) ** 2).sum())
    return float(value) * (1.0 + 1e-9)
