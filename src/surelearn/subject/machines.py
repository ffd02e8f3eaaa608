"""The functions that a fit is made of, each with its norm or its dual solution: what theorems
about a minimizer read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.lacking import Lacking
from surelearn.subject.forms import Closed, KernelForm, LinearForm
from surelearn.types import AnyArray, Array, RowsLike


def largest(values: Array) -> npt.NDArray[np.intp]:
    """The machine with the largest value; of a single one, the second class where it is
    positive.
    """
    return (values[:, 0] > 0).astype(np.intp) if values.shape[1] == 1 else values.argmax(axis=1)


def votes_of_pairs(values: Array) -> npt.NDArray[np.intp]:
    """The class with most votes, the first of equal ones; a machine for every pair, positive
    for the second.
    """
    classes = round((1 + np.sqrt(1 + 8 * values.shape[1])) / 2)
    votes = np.zeros((len(values), classes))
    for k, (i, j) in enumerate(combinations(range(classes), 2)):
        votes[:, j] += values[:, k] > 0
        votes[:, i] += values[:, k] <= 0
    return votes.argmax(axis=1)


@dataclass(frozen=True, eq=False)
class Machines:
    """f_m(x) = ⟨w_m, φ(x)⟩ + b_m of a fitted learner.

    Attributes
    ----------
    values : prepared rows to f_m(x), (n, machines); of two classes or a pair, positive for the
        second
    squares : ‖w_m‖² in the space of the kernel, (machines,)
    intercepts : b_m, (machines,)
    choose : values to positions of classes; a regression has none
    """

    values: Callable[[RowsLike], Array]
    squares: Array
    intercepts: Array
    choose: Callable[[Array], npt.NDArray[np.intp]] = largest


@dataclass(frozen=True, eq=False)
class DualMachine:
    """f(z) = Σ β_i·κ(x_i, z) + b for one pair of classes.

    Attributes
    ----------
    pair : the two classes by their positions, f is above 0 for the second
    rows : its support vectors, among all rows it was fitted to
    beta, most : signed coefficients, and the largest size that each may have
    bias : b
    free : whether b is free, so that Σ β_i = 0
    """

    pair: tuple[int, int]
    rows: npt.NDArray[np.intp]
    beta: Array
    most: Array
    bias: float
    free: bool


@dataclass(frozen=True, eq=False)
class DualSolution:
    """The machines of all pairs of classes, and the kernel κ of two sets of prepared rows."""

    machines: tuple[DualMachine, ...]
    kernel: Callable[[AnyArray, AnyArray], Array]


@dataclass(frozen=True, eq=False)
class Expansion:
    """f = Σ α_j k(x_j, ·): the kernel of two sets of rows, the rows x_j, and what happened in
    the fit, by name.
    """

    kernel: Any  # of surelearn.kernel.functions
    centers: Array
    facts: Mapping[str, Any]


def machines_of(closed: Closed | Lacking) -> Machines | Lacking:
    """The machines of a closed form, of rows as it is given them."""
    if isinstance(closed, Lacking):
        return Lacking("machines", closed.reason)
    form, choose = closed.form, votes_of_pairs if closed.head == "pairs" else largest
    if closed.prepare is not None or not isinstance(form, LinearForm | KernelForm):
        return Lacking(
            "machines", "it is not linear in the space of a kernel, of the rows that it is given"
        )
    if isinstance(form, LinearForm):
        return Machines(
            lambda Z: form.values(_plain(Z)), (form.weights**2).sum(axis=1), form.intercepts, choose
        )
    at = form.values(form.centers) - form.intercepts
    return Machines(
        lambda Z: form.values(_plain(Z)),
        (form.coefficients * at).sum(axis=0),
        form.intercepts,
        choose,
    )


def _plain(Z: RowsLike) -> Any:
    """Rows of a table as an array; sparse ones stay as they are."""
    return Z if hasattr(Z, "tocsr") else np.asarray(Z, dtype=float)
