"""Robust accuracy against the radius: what attacks leave (from above) and what theorems prove (from below), on one plot."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from surelearn.adapters import describe, score_function
from surelearn.attacks.decision import decision_attack
from surelearn.attacks.domains import Domain, Norm
from surelearn.attacks.evasion import projected_gradient
from surelearn.bounds.robustness import PER_ROW, robust_accuracy
from surelearn.certificate import Absent, Certificate, Facts
from surelearn.claim import Covers
from surelearn.fingerprint import fingerprint_model, fingerprint_rows
from surelearn.robust.certified import ARITHMETIC, CHOICES, NotCertified, Radii, certified_radii
from surelearn.robust.smoothing import SmoothedClassifier, SmoothedRadii


@dataclass(frozen=True)
class RobustnessCurve:
    """Robust accuracy at radii.

    Attributes
    ----------
    norm, radii : of the changes, in units of the domain's scale
    attacked : the share of rows right and not turned by the attack: no more are robust (measured)
    certified : the share right and certified: no fewer are robust; None without certificates
    why_not : why there are none, or ""
    n : rows
    attack, theorem : by which attack and which theorem
    calls : rows the model was asked about
    """

    norm: str
    radii: tuple[float, ...]
    attacked: tuple[float, ...]
    certified: tuple[float, ...] | None
    why_not: str
    n: int
    attack: str
    theorem: str
    calls: int


def robustness_curve(
    model: Any,
    X: Any,
    y: Any,
    radii: Iterable[float],
    *,
    norm: Norm = "linf",
    where: Domain | None = None,
    others: Any = None,
    budget: int = 500,
    steps: int = 40,
    restarts: int = 1,
    random_state: Any = None,
) -> RobustnessCurve:
    """Attack and certificate at the same radii; a row turned within one radius is turned within every larger one.

    Parameters
    ----------
    radii : at which; they are sorted
    others, budget : for a model without a gradient: rows to begin from, and queries a row (`decision_attack`)
    steps, restarts : for one with a gradient (`projected_gradient`)
    model, X, y, norm, where, random_state : as for those

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    >>> curve = robustness_curve(LogisticRegression().fit(X, y), X, y, [0.0, 1.5, 3.0])
    >>> curve.attacked, curve.certified
    ((1.0, 0.5, 0.0), (1.0, 0.5, 0.0))
    """
    f = score_function(model)
    X, y = np.array(X, dtype=np.float64, ndmin=2), np.asarray(y)
    at = tuple(sorted(float(radius) for radius in radii))
    if f.pullback is None:
        if others is None:
            raise ValueError(f"{f.name} has no gradient ({f.why_not}): give others=, rows to begin from")
        found = decision_attack(f, X, y, others=others, budget=budget, norm=norm, where=where, random_state=random_state)
        attacked, calls, attack = [float((found.distance > r).mean()) for r in at], found.calls, found.method
    else:
        attacked, calls, attack = _attacked(f, X, y, at, norm, where, steps, restarts, random_state)
    try:
        proved, why_not = certified_radii(f, X, norm=norm, where=where), ""
    except NotCertified as reason:
        proved, why_not = None, str(reason)
    certified = None if proved is None else tuple(float(_stays(proved, y, r).mean()) for r in at)
    theorem = "" if proved is None else proved.theorem
    return RobustnessCurve(norm, at, tuple(attacked), certified, why_not, len(X), attack, theorem, calls)


def _attacked(
    f: Any, X: Any, y: Any, radii: Any, norm: Any, where: Any, steps: int, restarts: int, random_state: Any
) -> tuple[list[float], int, str]:
    standing, shares, calls, attack = np.arange(len(X)), [], 0, ""
    for radius in radii:
        if standing.size:
            options = {"steps": steps, "restarts": restarts, "random_state": random_state}
            found = projected_gradient(f, X[standing], y[standing], radius=radius, norm=norm, where=where, **options)
            standing, calls, attack = standing[~found.success], calls + found.calls, found.method
        shares.append(standing.size / len(X))
    return shares, calls, attack


def _stays(proved: Radii | SmoothedRadii, y: np.ndarray, radius: float) -> np.ndarray:
    """Rows that are right and certified at the radius; at a radius of 0, right (and not abstained from)."""
    said = proved.labels if isinstance(proved, SmoothedRadii) else proved.predicted
    held = proved.values >= radius if radius > 0 or isinstance(proved, Radii) else ~proved.abstained
    return (said == y) & held


def certify_robustness(
    model: Any,
    X: Any,
    y: Any,
    *,
    radius: float,
    norm: Any = "l2",
    where: Domain | None = None,
    delta: float = 0.05,
) -> Certificate:
    """A certificate from fresh rows: at least this share of new rows is classified right and stays so within the radius.

    ``model`` may be a `SmoothedClassifier`: then the claim is about it, in L2, and pays its α.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).standard_normal((300, 2))
    >>> model = LogisticRegression().fit(X[:100], X[:100, 0] > 0)
    >>> certificate = certify_robustness(model, X[100:], X[100:, 0] > 0, radius=0.1)
    >>> certificate["robust accuracy"].bound(), bool(certificate.verify())
    ('≥ 89.2%', True)
    """
    if not 0 <= radius < np.inf:
        raise ValueError(f"radius must be a finite number of at least 0, not {radius!r}")
    X, y = np.array(X, dtype=np.float64, ndmin=2), np.asarray(y)
    smoothed = isinstance(model, SmoothedClassifier)
    if smoothed and norm != "l2":
        raise ValueError(f"norm must be 'l2' for a smoothed classifier, not {norm!r}")
    proved, reason = None, ""
    try:
        proved = model.certify(X) if smoothed else certified_radii(model, X, norm=norm, where=where)
    except NotCertified as why:
        reason = str(why)
    inner = model.model if smoothed else model
    values: dict[str, Any] = {"n": len(X), "radius": float(radius), "norm": norm, "alpha": model.alpha if smoothed else 0.0}
    if proved is not None:
        values["certified"] = int(_stays(proved, y, radius).sum())
    facts = Facts(
        subject=f"{describe(inner)}, smoothed with σ = {model.sigma:g}" if smoothed else describe(inner),
        setting=f"checked on {len(X):,} rows it had not seen, changed by at most {radius:g} ({norm})",
        hashes={"model": fingerprint_model(inner), "rows": fingerprint_rows(X, y)},
        options={"delta": delta},
        values=values,
    )
    if proved is None:
        absent = Absent(quantity="robust accuracy", reason=reason, theorem=robust_accuracy.key)
        return Certificate(facts=facts, claims=(), absent=(absent,), delta=delta)
    claim = facts.claim(
        robust_accuracy,
        {"successes": "certified", "n": "n", "alpha": "alpha"},
        delta=delta,
        covers=Covers(predictor="smoothed" if smoothed else facts.hashes["model"], rows=facts.hashes["rows"]),
        label=f"robust accuracy within {radius:g} ({norm})",
        met=(PER_ROW,),
        assumptions=(CHOICES,) if smoothed else (ARITHMETIC, CHOICES),
    )
    return Certificate(facts=facts, claims=(claim,), delta=delta)


@dataclass(frozen=True)
class Tradeoff:
    """Accuracy against robustness: a model for every training radius, judged on the same rows at one radius.

    ``certified`` is None where no theorem applies.
    """

    norm: str
    radius: float
    training_radii: tuple[float, ...]
    accuracy: tuple[float, ...]
    attacked: tuple[float, ...]
    certified: tuple[float | None, ...]


def tradeoff(
    fit: Callable[[float], Any],
    training_radii: Iterable[float],
    X: Any,
    y: Any,
    *,
    radius: float,
    norm: Norm = "linf",
    **options: Any,
) -> Tradeoff:
    """What robustness costs: ``fit(r)`` trains against changes of radius r; ``options`` are those of `robustness_curve`."""
    radii = tuple(float(r) for r in training_radii)
    curves = [robustness_curve(fit(r), X, y, (0.0, radius), norm=norm, **options) for r in radii]
    return Tradeoff(
        norm,
        float(radius),
        radii,
        tuple(curve.attacked[0] for curve in curves),
        tuple(curve.attacked[-1] for curve in curves),
        tuple(None if curve.certified is None else curve.certified[-1] for curve in curves),
    )
