"""Robust accuracy against the radius: what attacks leave (from above) and what theorems prove
(from below), on one plot.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from surelearn.attacks.decision import decision_attack
from surelearn.attacks.domains import Domain, Norm
from surelearn.attacks.evasion import projected_gradient
from surelearn.bounds.robustness import PER_ROW, robust_accuracy
from surelearn.certificate import Certificate, Facts
from surelearn.claim import Covers
from surelearn.fingerprint import fingerprint_model, fingerprint_rows
from surelearn.lacking import Lacking
from surelearn.robust.certified import (
    ARITHMETIC,
    CHOICES,
    UNITS,
    Radii,
    RadiusNorm,
    own_units,
    radii_of,
)
from surelearn.robust.smoothing import SmoothedClassifier, SmoothedRadii
from surelearn.subject import ScoreFunction, describe, score_function
from surelearn.types import AnyArray, Array, Model, RandomState, RowsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class RobustnessCurve:
    """Robust accuracy at radii.

    Attributes
    ----------
    norm, radii : of the changes, in units of the domain's scale
    attacked : the share of rows right and not turned by the attack: no more are robust (measured)
    certified : the share right and certified: no fewer are robust; or why nothing is certified
    n : rows
    attack, theorem : by which attack and which theorem
    calls : rows the model was asked about
    """

    norm: str
    radii: tuple[float, ...]
    attacked: tuple[float, ...]
    certified: tuple[float, ...] | Lacking
    n: int
    attack: str
    theorem: str
    calls: int

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw robust accuracy against the radius: what the attack leaves, and what is
        certified.
        """
        axes = _axes(ax)
        axes.plot(self.radii, self.attacked, marker="o", label=f"after the attack ({self.attack})")
        if not isinstance(self.certified, Lacking):
            axes.plot(
                self.radii,
                self.certified,
                marker="s",
                linestyle="--",
                label=f"certified ({self.theorem})",
            )
        axes.set(xlabel=f"radius ({self.norm})", ylabel="robust accuracy", ylim=(-0.02, 1.02))
        axes.legend()
        return axes

    def __str__(self) -> str:
        certified = (
            (None,) * len(self.radii) if isinstance(self.certified, Lacking) else self.certified
        )
        head = f"robust accuracy of {self.n:,} rows ({self.norm}); {self.attack}"
        return _table(
            head,
            ("radius", "after the attack", "certified"),
            zip(self.radii, self.attacked, certified, strict=True),
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def robustness_curve(
    model: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    radii: Iterable[float],
    *,
    norm: Norm = "linf",
    where: Domain | None = None,
    others: RowsLike | None = None,
    budget: int = 500,
    steps: int = 40,
    restarts: int = 1,
    random_state: RandomState = None,
) -> RobustnessCurve:
    """Attack and certificate at the same radii; a row turned within one radius is turned within
    every larger one.

    Parameters
    ----------
    radii : at which; they are sorted
    others, budget : for a model without a gradient: rows to begin from, and queries per row
        (`decision_attack`)
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
    if isinstance(f.pullback, Lacking):
        if others is None:
            raise ValueError(
                f"{f.name} has no gradient ({f.pullback.reason}): give others=, rows to begin from"
            )
        found = decision_attack(
            f, X, y, others=others, budget=budget, norm=norm, where=where, random_state=random_state
        )
        attacked, calls, attack = (
            [float((found.distance > r).mean()) for r in at],
            found.calls,
            found.method,
        )
    else:
        attacked, calls, attack = _attacked(f, X, y, at, norm, where, steps, restarts, random_state)
    proved = radii_of(f, X, norm=norm, where=where)
    if isinstance(proved, Lacking):
        return RobustnessCurve(norm, at, tuple(attacked), proved, len(X), attack, "", calls)
    certified = tuple(float(_stays(proved, y, r).mean()) for r in at)
    return RobustnessCurve(
        norm, at, tuple(attacked), certified, len(X), attack, proved.theorem, calls
    )


def _attacked(
    f: ScoreFunction,
    X: Array,
    y: AnyArray,
    radii: Sequence[float],
    norm: Norm,
    where: Domain | None,
    steps: int,
    restarts: int,
    random_state: RandomState,
) -> tuple[list[float], int, str]:
    standing, shares, calls, attack = np.arange(len(X)), [], 0, ""
    for radius in radii:
        if standing.size:
            options = {"steps": steps, "restarts": restarts, "random_state": random_state}
            found = projected_gradient(
                f, X[standing], y[standing], radius=radius, norm=norm, where=where, **options
            )
            standing, calls, attack = standing[~found.success], calls + found.calls, found.method
        shares.append(standing.size / len(X))
    return shares, calls, attack


def _stays(proved: Radii | SmoothedRadii, y: np.ndarray, radius: float) -> np.ndarray:
    """Rows that are right and certified at the radius; at a radius of 0, right (and not
    abstained from).
    """
    said = proved.labels if isinstance(proved, SmoothedRadii) else proved.predicted
    held = proved.values >= radius if radius > 0 or isinstance(proved, Radii) else ~proved.abstained
    return (said == y) & held


def certify_robustness(
    model: Model,
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    radius: float,
    norm: RadiusNorm = "l2",
    where: Domain | None = None,
    delta: float = 0.05,
) -> Certificate:
    """A certificate from fresh rows: at least this share of new rows is classified right and stays
    so within the radius.

    ``model`` may be a `SmoothedClassifier`: then the claim is about it, in L2, and pays its α.

    Parameters
    ----------
    X, y : rows that the model has not seen
    radius, norm, where : fixed without a look at X. Units in ``where.scale`` that come from these
        rows, such as their own standard deviations, void the claim: take them from the rows the
        model was fitted on, or state them. Where they are the spread of X itself, the certificate
        claims nothing and says so
    delta : the failure probability

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).standard_normal((300, 2))
    >>> model = LogisticRegression().fit(X[:100], X[:100, 0] > 0)
    >>> certificate = certify_robustness(model, X[100:], X[100:, 0] > 0, radius=0.1)
    >>> certificate["robust_accuracy"].bound(), bool(certificate.verify())
    ('≥ 89.2%', True)
    """
    if not 0 <= radius < np.inf:
        raise ValueError(f"radius must be a finite number of at least 0, not {radius!r}")
    X, y = np.array(X, dtype=np.float64, ndmin=2), np.asarray(y)
    smoothed = isinstance(model, SmoothedClassifier)
    if smoothed and norm != "l2":
        raise ValueError(f"norm must be 'l2' for a smoothed classifier, not {norm!r}")
    proved: Radii | SmoothedRadii | Lacking | None
    proved = own_units(X, model.scale if smoothed else None if where is None else where.scale)
    if proved is None:
        proved = model.certify(X) if smoothed else radii_of(model, X, norm=norm, where=where)
    inner = model.model if smoothed else model
    values: dict[str, Any] = {
        "n": len(X),
        "radius": float(radius),
        "norm": norm,
        "alpha": model.alpha if smoothed else 0.0,
    }
    if not isinstance(proved, Lacking):
        values["certified"] = int(_stays(proved, y, radius).sum())
    facts = Facts(
        subject=(
            f"{describe(inner)}, smoothed with σ = {model.sigma:g}" if smoothed else describe(inner)
        ),
        setting=(
            f"checked on {len(X):,} rows it had not seen, changed by at most {radius:g} ({norm})"
        ),
        hashes={"model": fingerprint_model(inner), "rows": fingerprint_rows(X, y)},
        options={"delta": delta},
        values=values,
    )
    if isinstance(proved, Lacking):
        absent = Lacking(what="robust_accuracy", reason=proved.reason, theorem=robust_accuracy.key)
        return Certificate(facts=facts, claims=(), lacking=(absent,), delta=delta)
    claim = facts.claim(
        robust_accuracy,
        {"successes": "certified", "n": "n", "alpha": "alpha"},
        delta=delta,
        covers=Covers(
            predictor="smoothed" if smoothed else facts.hashes["model"], rows=facts.hashes["rows"]
        ),
        label=f"robust accuracy within {radius:g} ({norm})",
        met=(PER_ROW,),
        assumptions=(CHOICES, UNITS) if smoothed else (ARITHMETIC, CHOICES, UNITS),
    )
    return Certificate(facts=facts, claims=(claim,), delta=delta)


@dataclass(frozen=True)
class Tradeoff:
    """Accuracy against robustness: a model for every training radius, judged on the same rows at
    one radius.

    ``certified`` is None where no theorem applies.
    """

    norm: str
    radius: float
    training_radii: tuple[float, ...]
    accuracy: tuple[float, ...]
    attacked: tuple[float, ...]
    certified: tuple[float | None, ...]

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw robust accuracy against accuracy, a point for every training radius."""
        axes = _axes(ax)
        axes.plot(self.accuracy, self.attacked, marker="o", label="after the attack")
        if all(share is not None for share in self.certified):
            axes.plot(self.accuracy, self.certified, marker="s", linestyle="--", label="certified")
        for trained, x, y in zip(self.training_radii, self.accuracy, self.attacked, strict=True):
            axes.annotate(f"{trained:g}", (x, y), textcoords="offset points", xytext=(6, 6))
        axes.set(
            xlabel="accuracy", ylabel=f"robust accuracy at radius {self.radius:g} ({self.norm})"
        )
        axes.legend(title="labels: training radius")
        return axes

    def __str__(self) -> str:
        columns = ("training radius", "accuracy", "after the attack", "certified")
        rows = zip(self.training_radii, self.accuracy, self.attacked, self.certified, strict=True)
        return _table(
            f"accuracy, and robust accuracy at radius {self.radius:g} ({self.norm})", columns, rows
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def tradeoff(
    fit: Callable[[float], Model],
    training_radii: Iterable[float],
    X: RowsLike,
    y: npt.ArrayLike,
    *,
    radius: float,
    norm: Norm = "linf",
    train: tuple[Any, Any] | None = None,
    **options: Any,
) -> Tradeoff:
    """What robustness costs: a model trained against changes of every radius, judged on rows X, y
    at one.

    Parameters
    ----------
    fit : a function from a training radius to a fitted model; or a learner with a parameter
        ``radius``, as `AdversarialClassifier`, which is then fitted to ``train``
    training_radii : at which
    X, y, radius, norm : rows to judge on, best not those trained on, and the changes to judge by
    train : (X, y) for a learner
    options : those of `robustness_curve`
    """
    if callable(fit) and train is not None:
        raise ValueError("train goes with a learner: a function fits by itself")
    made = fit if callable(fit) else _trained(fit, train)
    radii = tuple(float(r) for r in training_radii)
    curves = [robustness_curve(made(r), X, y, (0.0, radius), norm=norm, **options) for r in radii]
    return Tradeoff(
        norm,
        float(radius),
        radii,
        tuple(curve.attacked[0] for curve in curves),
        tuple(curve.attacked[-1] for curve in curves),
        tuple(
            None if isinstance(curve.certified, Lacking) else curve.certified[-1]
            for curve in curves
        ),
    )


def _trained(learner: Model, train: tuple[Any, Any] | None) -> Callable[[float], Any]:
    if not hasattr(learner, "get_params") or "radius" not in learner.get_params(deep=False):
        raise ValueError(
            "fit must be a function of the radius or a learner with radius=, not"
            f" {type(learner).__name__}"
        )
    if train is None:
        raise ValueError("give train=(X, y), the rows that the learner is fitted to")
    return lambda radius: clone(learner).set_params(radius=radius).fit(*train)


def _axes(ax: Axes | None) -> Any:
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(6, 4), layout="constrained").subplots()
    return ax


def _table(head: str, columns: tuple[str, ...], rows: Iterable[Iterable[float | None]]) -> str:
    """A heading and lines of numbers under the names of their columns; – for what there is not."""
    words = [
        list(columns),
        *(["–" if value is None else f"{value:.4g}" for value in row] for row in rows),
    ]
    lines = (
        "  ".join(f"{word:>{len(name)}}" for word, name in zip(line, columns, strict=True))
        for line in words
    )
    return "\n".join([head, *lines])
