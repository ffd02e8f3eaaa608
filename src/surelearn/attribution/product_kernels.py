"""Machines with a Gaussian kernel, whose values need no coalitions: k(x, z) is a product over
columns.

Against one background row b, a center z contributes u(S) = Π_{i∈S} a_i·Π_{i∉S} b_i, a_i and b_i the
factors of player i's columns. If p_s = ∫ t^s(1 − t)^{n−1−s} dμ(t), then φ_i = (a_i − b_i)·∫ Π_{l≠i}
(b_l + t(a_l − b_l)) dμ(t): for Shapley values dμ = dt, and ⌈n/2⌉ nodes of Gauss and Legendre
integrate the polynomial exactly; for Banzhaf values t = ½ alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from surelearn import profiles
from surelearn.attribution.closed import mixtures
from surelearn.attribution.outputs import Output
from surelearn.attribution.weights import Weights
from surelearn.lacking import Lacking
from surelearn.subject.closing import closed_form
from surelearn.subject.forms import KernelForm
from surelearn.types import Array, TableRows

_CLOSE = 1e-5  # some machines answer in single precision
_PIECE = 2**18  # factors at a time


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Σ_j c_j·exp(−‖x − z_j‖²/(2h²)) for prepared rows; ``coefficients`` (centers, explained rows
    or 1).
    """

    centers: Array
    coefficients: Array
    bandwidth: float
    X: Array
    background: Array


def gaussians_of(output: Output, X: TableRows, background: TableRows) -> Gaussians | None:
    """The machine behind an output, if it is a sum of Gaussians and says what the model says;
    else None.
    """
    if output.model is None or hasattr(X, "columns"):
        return None
    closed = closed_form(output.model)
    if isinstance(closed, Lacking):
        return None
    form, prepare = closed.form, closed.prepare
    if not isinstance(form, KernelForm) or form.name != "gaussian":
        return None
    if prepare is not None and prepare.matrix.ndim == 2:
        return None
    X, background = np.asarray(X, dtype=float), np.asarray(background, dtype=float)
    rows = mixtures(X, background)
    said, formed = (
        output(rows),
        output.sign * form.values(rows if prepare is None else prepare(rows)),
    )
    formed = formed[:, 0] if formed.shape[1] == 1 else formed
    if said.shape != formed.shape or np.abs(said - formed).max() > _CLOSE * max(
        1.0, np.abs(said).max()
    ):
        return None  # machines of pairs of classes, for example, whose votes are no sum
    column = 0 if output.column is None or form.coefficients.shape[1] == 1 else output.column
    chosen = form.coefficients[:, np.atleast_1d(column)]
    moved = (X, background) if prepare is None else (prepare(X), prepare(background))
    return Gaussians(
        form.centers, output.sign * chosen, float(form.parameters["bandwidth"]), *moved
    )


def nodes_of(weights: Weights) -> tuple[Array, Array] | None:
    """t_k and μ_k with C(n − 1, s)·p_s = Σ μ_k·P(Binomial(n − 1, t_k) = s); None for weights that
    are not so made.

    Examples
    --------
    >>> from surelearn.attribution.weights import weights_of
    >>> nodes_of(weights_of("banzhaf", 7))
    (array([0.5]), array([1.]))
    """
    n = weights.players
    t, mass = np.polynomial.legendre.leggauss((n + 1) // 2)
    for nodes in (((t + 1) / 2, mass / 2), (np.array([0.5]), np.array([1.0]))):
        made = nodes[1] @ binom.pmf(np.arange(n), n - 1, nodes[0][:, None])
        if np.allclose(made, weights.sizes, rtol=1e-9, atol=1e-12):
            return nodes
    return None


def product_parts(
    machine: Gaussians, columns: list[list[int]], nodes: tuple[Array, Array], keep: bool
) -> Array:
    """The values against each background row, (rows, background, players), or their mean over
    it, (rows, 1, players).
    """
    rows, background, n = len(machine.X), len(machine.background), len(columns)
    out = np.zeros((rows, background if keep else 1, n))
    step = max(1, _PIECE // (background * n))
    for start in range(0, len(machine.centers), step):
        own = slice(start, start + step)
        centers, coefficients = machine.centers[own], machine.coefficients[own]
        before = _factors(machine.background, centers, columns, machine.bandwidth)
        for row in range(rows):
            gained = (
                _factors(machine.X[row : row + 1], centers, columns, machine.bandwidth) - before
            )
            found = gained * _others(before, gained, *nodes)
            shares = (found @ coefficients[:, row % coefficients.shape[1]]).T
            out[row] += shares if keep else shares.mean(axis=0)
    return out


def _factors(X: Array, centers: Array, columns: list[list[int]], bandwidth: float) -> Array:
    """Each player's factor of exp(−‖x − z‖²/(2h²)), (players, rows, centers)."""
    squares = [((X[:, None, held] - centers[None, :, held]) ** 2).sum(axis=2) for held in columns]
    return profiles.gaussian(np.stack(squares), bandwidth)


def _others(before: Array, gained: Array, t: Array, mass: Array) -> Array:
    """∫ Π_{l≠i} (b_l + t(a_l − b_l)) dμ(t) for every player i; a factor that is 0 all along
    gains nothing anyway.
    """
    total = np.zeros_like(before)
    for at, weight in zip(t, mass, strict=True):
        factors = before + at * gained
        whole = weight * factors.prod(axis=0)
        total += np.divide(whole, factors, out=np.zeros_like(factors), where=factors > 0)
    return total
