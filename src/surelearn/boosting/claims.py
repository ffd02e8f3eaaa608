"""Which theorems apply to a fitted stump or vote of stumps, read from its facts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn import bounds
from surelearn.base import Writer
from surelearn.bounds.boosting import FIXED_ROUNDS, boosting_tail_inversion
from surelearn.bounds.capacity import BINARY
from surelearn.claim import Theorem

Array = npt.NDArray[Any]
Candidate = tuple[Theorem[..., Any], dict[str, str], dict[str, Any]]

GRID = "thresholds= was stated before seeing the rows"
NOT_GIVEN = "the thresholds were not fixed beforehand: state thresholds= for a finite class of stumps"
_FINITE = (bounds.finite_class, bounds.boosting_finite, bounds.boosting_margin_finite)


def write_claims(writer: Writer, facts: Mapping[str, Any]) -> None:
    """Training error and risk of a vote, or why not.

    The last of at most ``most_rounds`` prefixes is one that was chosen, where the rounds ended early by what the rows were:
    bounds that are about a fixed number of rounds pay for all of them (``candidates``). Bounds by margins hold for votes of
    any length at once and pay nothing.
    """
    _training_error(writer, facts)
    pays: dict[str, Any] = {"candidates": facts["most_rounds"], "met": (BINARY, FIXED_ROUNDS)}
    candidates: list[Candidate] = [
        (boosting_tail_inversion, {"errors": "training_errors", "n": "n", "rounds": "rounds", "d": "d"}, pays),
        (bounds.boosting_vc, {"risk": "training_error", "n": "n", "rounds": "rounds", "vc_dimension": "vc_dimension"}, pays),
        (
            bounds.boosting_margin_vc,
            {"margin_error": "margin_error", "n": "n", "margin": "margin", "vc_dimension": "vc_dimension"},
            {"met": (BINARY,)},
        ),
        (
            bounds.boosting_finite,
            {"risk": "training_error", "n": "n", "rounds": "rounds", "size": "class_size"},
            {**pays, "assumptions": (GRID,)},
        ),
        (
            bounds.boosting_margin_finite,
            {"margin_error": "finite_margin_error", "n": "n", "margin": "finite_margin", "size": "class_size"},
            {"met": (BINARY, "the class of weak learners is finite"), "assumptions": (GRID,)},
        ),
    ]
    _write(writer, facts, candidates)


def _write(writer: Writer, facts: Mapping[str, Any], candidates: Sequence[Candidate]) -> None:
    for theorem, read, options in candidates:
        if reason := _not_for(theorem, facts):
            writer.absent("risk", reason, theorem.key)
        else:
            writer.claim(theorem, read, **options)


def _training_error(writer: Writer, facts: Mapping[str, Any]) -> None:
    theorem = bounds.adaboost_training_error
    if facts["classes"] > 2:
        writer.absent("training error", f"Theorem 3.1 is about two classes, here are {facts['classes']}", theorem.key)
        return
    label = "training error" if facts["uniform"] else "weighted training error"
    writer.claim(theorem, {"edges": "edges"}, label=label, met=theorem.assumes)


def _not_binary(facts: Mapping[str, Any]) -> str:
    if facts["classes"] > 2:
        return f"the theorem is about two classes, here are {facts['classes']}"
    return "" if facts["uniform"] else "rows are weighted unequally"


def _not_for(theorem: Theorem[..., Any], facts: Mapping[str, Any]) -> str:
    if reason := _not_binary(facts):
        return reason
    if theorem in _FINITE and "class_size" not in facts:
        return NOT_GIVEN
    if theorem in (bounds.boosting_vc, bounds.boosting_finite) and facts["n"] < facts["rounds"]:
        return f"the theorem needs at least as many rows as rounds, here are {facts['n']} and {facts['rounds']}"
    if theorem in (bounds.boosting_vc, bounds.boosting_margin_vc, bounds.vc) and facts["n"] < facts["vc_dimension"]:
        return f"the theorem needs at least {facts['vc_dimension']} rows, the VC dimension of stumps"
    if theorem is bounds.boosting_margin_vc and "margin" not in facts:
        return "Theorem 3.5 speaks of margins above √(8V·ln(en/V)/n), which is more than 1 with so few rows"
    return ""


def thetas(count: int) -> Array:
    """The margins θ = 1/count, 2/count, …, 1."""
    return np.arange(1, count + 1) / count


def best_margins(facts: Mapping[str, Any], errors: Array, delta: float) -> dict[str, Any]:
    """The stumps' VC dimension, and the margin at which each theorem says most; both hold for all margins at once.

    ``errors`` are the fractions of rows with margin at most 1/k, 2/k, …, 1.
    """
    v = int(bounds.vc_dimension_of_stumps(facts["d"]))
    found: dict[str, Any] = {"vc_dimension": v}
    theta = thetas(errors.size)
    by_vc = _margin_vc(errors, facts["n"], delta, v)
    if not np.isnan(by_vc).all():
        k = int(np.nanargmin(by_vc))
        found |= {"margin": float(theta[k]), "margin_error": float(errors[k])}
    if "class_size" in facts:
        k = int(np.argmin(bounds.boosting_margin_finite(errors, facts["n"], delta, theta, facts["class_size"])))
        found |= {"finite_margin": float(theta[k]), "finite_margin_error": float(errors[k])}
    return found


def _margin_vc(errors: Array, n: int, delta: float, v: int) -> Array:
    """Theorem 3.5 at every margin, NaN where it is silent; ``errors`` (…, k)."""
    theta = thetas(errors.shape[-1])
    values = np.full(errors.shape, np.nan)
    if n >= v and (speaks := theta > bounds.smallest_margin(n, v) * (1 + 1e-6)).any():
        values[..., speaks] = bounds.boosting_margin_vc(errors[..., speaks], n, delta, theta[speaks], v)
    return values


def prefix_bounds(facts: Mapping[str, Any], margin_counts: Array, delta: float) -> dict[str, Array]:
    """Bounds on the risk after 1, 2, … rounds, one array a theorem, NaN where it is silent.

    Each array holds for all prefixes at once with probability 1 − δ, so that the number of rounds may be chosen by it.
    Bounds for a fixed number of rounds are taken at δ/``most_rounds``, a union over the prefixes that there could have been;
    bounds by margins hold for every vote and every margin at once, and the best margin is taken. Choosing by the smallest of
    several arrays is a further choice: divide δ by their number. ``training_error_bound`` (3.2) holds always.
    """
    if reason := _not_binary(facts):
        raise ValueError(f"there are no bounds on the risk: {reason}")
    n, d, v, t = facts["n"], facts["d"], facts["vc_dimension"], np.arange(1, facts["rounds"] + 1)
    wrong, share = np.asarray(facts["staged_errors"]), delta / facts["most_rounds"]
    edges = np.asarray(facts["edges"])
    found: dict[str, Array] = {
        "rounds": t,
        "training_error": wrong / n,
        "training_error_bound": np.cumprod(np.sqrt(1 - 4 * edges**2)),
        boosting_tail_inversion.key: np.asarray(boosting_tail_inversion(wrong, n, share, t, d)),
    }
    last = min(n, t.size) if n >= v else 0
    found["boosting_vc"] = _padded(bounds.boosting_vc(wrong[:last] / n, n, share, t[:last], v), t.size)
    found["boosting_margin_vc"] = _smallest(_margin_vc(margin_counts / n, n, delta, v))
    if "class_size" in facts:
        size, last = facts["class_size"], min(n, t.size)
        found["boosting_finite"] = _padded(bounds.boosting_finite(wrong[:last] / n, n, share, t[:last], size), t.size)
        theta = thetas(margin_counts.shape[1])
        slack = bounds.boosting_margin_finite(np.zeros(theta.size), n, delta, theta, size)
        found["boosting_margin_finite"] = (margin_counts / n + slack).min(axis=1)
    return found


def _padded(values: Array, size: int) -> Array:
    return np.concatenate([values, np.full(size - len(values), np.nan)])


def _smallest(values: Array) -> Array:
    """The smallest of every row, leaving NaN out; NaN where there is nothing else."""
    smallest = np.where(np.isnan(values), np.inf, values).min(axis=1)
    return np.where(np.isinf(smallest), np.nan, smallest)


def write_stump_claims(writer: Writer, facts: Mapping[str, Any]) -> None:
    """Risk of one stump by the VC dimension of all stumps, or by the number of those that were stated; or why not."""
    shared = {"n": "n", "vc_dimension": "vc_dimension"}
    candidates: list[Candidate] = [
        (bounds.hypergeometric_tail_inversion, {**shared, "errors": "training_errors"}, {"met": (BINARY,)}),
        (bounds.vc, {**shared, "risk": "training_error"}, {"met": (BINARY,)}),
        (
            bounds.finite_class,
            {"risk": "training_error", "n": "n", "size": "class_size"},
            {"met": ("the class is finite",), "assumptions": (GRID,)},
        ),
    ]
    _write(writer, facts, candidates)
