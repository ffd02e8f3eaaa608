"""Reproductions of published numbers, with the misprints and conjectures that are needed to meet
them.

A reproduction is one file with a `Reproduction` in it and one line below; nothing is imported
before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surelearn.jobs import Runner
    from surelearn.papers.reproduction import Outcome, Reproduction

REPRODUCTIONS = {
    "thesis-table-5.1": (
        "thesis_tables:BOOSTING",
        "The bound on boosted stumps: as printed, as theorem, and the misprint.",
    ),
    "thesis-table-5.2": (
        "thesis_tables:NETWORKS",
        "The bound on neural networks: as printed, and a conjecture that meets it.",
    ),
    "thesis-figure-5.1": (
        "thesis_boosting:ERRORS",
        "Which criterion chooses AdaBoost's number of rounds best: 100 oracles.",
    ),
    "thesis-figure-5.3": (
        "thesis_boosting:SIZES_CHOSEN",
        "How many rounds each criterion chooses, beside the oracle's own number.",
    ),
    "criteria-on-tables": (
        "criteria_tables:TABLES",
        "Which criterion to choose by, at which n: real tables, paired.",
    ),
    "shallows-heaviside": (
        "kernel_heaviside:HEAVISIDE",
        "A step function, a smooth kernel, 100 and 1,000,000 iterations.",
    ),
    "double-descent": (
        "kernel_double_descent:DOUBLE_DESCENT",
        "Random features across the interpolation threshold.",
    ),
    "rkhs-norm": (
        "kernel_rkhs_norm:RKHS_NORM",
        "The norm of kernel interpolants as rows and label noise grow.",
    ),
    "critical-batch-size": (
        "kernel_batch_size:BATCH_SIZE",
        "How far larger batches save iterations, and EigenPro's part.",
    ),
    "gaussian-or-laplace": (
        "kernel_gaussian_or_laplace:WHICH_KERNEL",
        "Which kernel fits random labels quickly, and why.",
    ),
    "eigenpro-acceleration": (
        "kernel_acceleration:ACCELERATION",
        "Epochs of EigenPro against SGD, beside what is predicted.",
    ),
    "universal-approximation": (
        "network_approximation:UNIVERSAL_APPROXIMATION",
        "Error against width, of networks with two and three layers, beside theorems.",
    ),
}
"""Name → where its `Reproduction` stands, and one sentence."""


def find(name: str) -> Reproduction:
    """The reproduction of a name."""
    if name not in REPRODUCTIONS:
        from difflib import get_close_matches

        near = get_close_matches(name, REPRODUCTIONS, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(REPRODUCTIONS)}."
        raise ValueError(f"there is no reproduction {name!r}. {hint}")
    module, _, attribute = REPRODUCTIONS[name][0].partition(":")
    return getattr(import_module(f"surelearn.papers.{module}"), attribute)


def reproduce(
    name: str, *, seed: int = 0, runner: Runner | None = None, **settings: Any
) -> Outcome:
    """Run a reproduction.

    Parameters
    ----------
    name : one of `REPRODUCTIONS`
    seed : of everything random
    runner : a `surelearn.jobs.Runner`, with n_jobs, journal and progress; by default one task at a
        time, or what ``joblib.parallel_config`` says
    settings : what the paper leaves open, see the reproduction's ``settings``

    Examples
    --------
    >>> outcome = reproduce("thesis-table-5.1")
    >>> round(outcome.numbers["cells"][0]["theorem"], 4)
    4.831
    """
    from surelearn.jobs import Runner

    found = find(name)
    return found.run(found.read(settings), seed, Runner() if runner is None else runner)
