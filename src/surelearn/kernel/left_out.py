"""Exact leave-one-out for kernel machines that were solved directly: every row left out, and what
that changes elsewhere.

With G = K + cI, c = nλ held fixed, α₋ᵢ = α − (G⁻¹)_{·i}·α_i/(G⁻¹)_ii: one inverse gives all n fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from surelearn.kernel.functions import Kernel, read_kernel
from surelearn.subject.leaving import Without
from surelearn.types import Array, RowsLike

if TYPE_CHECKING:
    from surelearn.kernel.machine import KernelMachine

MOST_ROWS = 5000  # the inverse has the square of these as entries


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The n fits without one row of a kernel machine with n rows and some outputs.

    Attributes
    ----------
    own : f₋ᵢ(x_i), what the fit without a row says there; (n, outputs)
    full : f(z) at the points asked for; (m, outputs)
    reach : (K_z·G⁻¹)_ji: how far row i reaches to point z_j; (m, n)
    pull : α_i/(G⁻¹)_ii, the residual that row i leaves behind; (n, outputs)
    """

    own: Array
    full: Array
    reach: Array
    pull: Array

    def at(self, rows: npt.NDArray[np.intp]) -> Without:
        """These fits as every learner hands them over."""
        each = lambda: (self.full - self.reach[:, i, None] * self.pull[i] for i in rows)  # noqa: E731
        return Without(rows, self.full, self.own[rows], (self.own + self.pull)[rows], each)

    def values(self) -> Iterator[Array]:
        """f₋ᵢ(z) at the points, (m, outputs), for each row i in turn."""
        for i in range(len(self.pull)):
            yield self.full - self.reach[:, i, None] * self.pull[i]


def left_out(learner: KernelMachine, points: RowsLike) -> LeftOut | None:
    """Every fit of a fitted EigenPro learner without one row, at ``points``; None where there is no
    closed form.

    It needs a direct solution, no singular kernel matrix, and at most 5,000 rows.

    Examples
    --------
    >>> from surelearn.kernel.eigenpro import EigenProRegressor
    >>> X, y = np.arange(4.0)[:, None], np.array([0.0, 1.0, 0.0, 1.0])
    >>> model = EigenProRegressor(bandwidth=1.0, regularization=0.1).fit(X, y)
    >>> without = EigenProRegressor(bandwidth=1.0, regularization=0.4 / 3).fit(X[1:], y[1:])
    >>> bool(np.allclose(next(left_out(model, X).values())[:, 0], without.predict(X)))
    True
    """
    if not has_closed_fits(learner):
        return None
    # (K + λnI)⁻¹ once: without row i the weights are α − αᵢ/Gᵢᵢ·Gᵢ
    facts, rows = learner.facts_, np.asarray(learner.centers_, dtype=float)
    n = len(rows)
    k, alpha = kernel_of(learner), np.asarray(learner.coef_, dtype=float).reshape(n, -1)
    gram, across = k(rows, rows), k(learner.in_spreads(np.asarray(points, dtype=float)), rows)
    full = across @ alpha
    gram[np.diag_indices(n)] += facts["regularization"] * n
    targets, inverse = gram @ alpha, np.linalg.inv(gram)
    pull = alpha / np.diagonal(inverse)[:, None]
    return LeftOut(own=targets - pull, full=full, reach=across @ inverse, pull=pull)


def has_closed_fits(learner: KernelMachine) -> bool:
    """Whether all fits without one row have a closed form that is not too large."""
    if learner.centers_ is None:
        return False
    facts, n = learner.facts_, len(learner.centers_)
    return (
        facts["solver"] == "direct"
        and facts["leave_one_out_error"] is not None
        and n == facts["n"]
        and n <= MOST_ROWS
    )


def kernel_of(learner: KernelMachine) -> Kernel:
    """The kernel that a learner was fitted with."""
    return read_kernel(learner.kernel_name_, learner.kernel_parameters_)
