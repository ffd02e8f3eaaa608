"""A sum of kernels of this library as a closed form, with its gradients."""

from __future__ import annotations

import numpy.typing as npt

from surelearn.kernel.composites import Product, Sum
from surelearn.kernel.functions import KERNELS, Kernel
from surelearn.lacking import Lacking
from surelearn.subject.forms import PRECOMPUTED, Closed, kernel_form, no_kernel
from surelearn.subject.registry import replaced

_OURS = {*KERNELS.values(), Sum, Product}


def sum_form(
    made: Kernel,
    centers: npt.ArrayLike | None,
    coefficients: npt.ArrayLike,
    intercepts: npt.ArrayLike | None = None,
    classes: int | None = None,
    *,
    votes: bool = False,
) -> Closed | Lacking:
    """Σ_j c_jm·k(x, z_j) + b_m; a kernel of a class of the user's own may compute otherwise than
    the one it inherits from.

    Examples
    --------
    >>> from surelearn.kernel.functions import Gaussian
    >>> sum_form(Gaussian(bandwidth=1.0), [[0.0], [1.0]], [[1.0], [-1.0]]).form.values([[0.0]]).round(4)
    array([[0.3935]])
    """
    if centers is None:
        return PRECOMPUTED
    if type(made) not in _OURS or replaced(made):
        return no_kernel(made)
    return kernel_form(
        made.name, made.parameters(), centers, coefficients, intercepts, classes, votes=votes
    )
