"""How far the worst-case objective of a linear classifier can be above its minimum: weak duality,
rounding included.

P(w, b) = (1/n)·Σ ℓ(y_i(⟨w, x_i⟩ + b) − r·‖s∘w‖_*) + λ‖w‖². For a_i ≥ 0, ℓ(m) ≥ −a_i·m − ℓ*(−a_i);
for z in the unit ball of the changes, ‖s∘w‖_* ≥ ⟨s∘w, z⟩. With Σ a_i y_i = 0, so that b drops out,
and the least value over w,

    P ≥ D(a, z) = −(1/n)·Σ ℓ*(−a_i) − ‖v − A·r·s∘z‖²/(4λ),   v = (1/n)·Σ a_i y_i x_i,   A = (1/n)·Σ a_i.

a_i = −ℓ′ of the margins found, the class with the larger sum scaled down; z is the best one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import entr

from surelearn.attacks.domains import Array
from surelearn.losses import find_loss

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class RobustMachine:
    """A linear classifier f(x) = ⟨w, x⟩ + b with the changes that it is trained against."""

    w: Array
    b: float
    radius: float
    norm: str
    scale: Array
    loss: str
    regularization: float

    def dual_norm(self) -> float:
        """‖s∘w‖₁ for "linf", ‖s∘w‖₂ for "l2"."""
        return float(np.linalg.norm(self.scale * self.w, 1 if self.norm == "linf" else 2))


@dataclass(frozen=True)
class Gap:
    """P(w, b), D(a, z), and how far their computed difference can be off."""

    primal: float
    dual: float
    rounding: float

    @property
    def value(self) -> float:
        """At least P(w, b) − min P."""
        return self.primal - self.dual + self.rounding


def losses_and_slopes(margins: Array, loss: str) -> tuple[Array, Array]:
    """ℓ and ℓ′ at the margins."""
    known = find_loss(loss)
    return known.value(margins), known.derivative(margins)


def gap(machine: RobustMachine, X: Array, signs: Array) -> Gap:
    """The duality gap of the worst-case objective at w, b; λ must be above 0."""
    n, d = X.shape
    lam, reach = machine.regularization, machine.radius * machine.scale
    margins = signs * (X @ machine.w + machine.b) - machine.radius * machine.dual_norm()
    losses, slopes = losses_and_slopes(margins, machine.loss)
    primal = float(losses.mean() + lam * machine.w @ machine.w)
    a = _balanced(-slopes, signs)
    v, mean = (a * signs) @ X / n, float(a.mean())
    z = _best_change(machine.norm, v, mean * reach)
    left = v - mean * reach * z
    value = _conjugate(a, machine.loss)
    dual = float(value.mean() - left @ left / (4 * lam))
    blur = (
        2
        * (d + 8)
        * _EPS
        * (np.abs(X) @ np.abs(machine.w) + abs(machine.b) + machine.radius * machine.dual_norm())
    )
    moved = 2 * (n + d + 8) * _EPS
    off = moved * float(np.linalg.norm(a @ np.abs(X) / n + mean * reach))
    rounding = (
        float((_steepest(blur, slopes, machine.loss) * blur).mean())
        + moved * (primal + float(np.abs(value).mean()))
        + _conjugate_blur(moved, a, machine.loss)
        + off * (2 * float(np.linalg.norm(left)) + off) / (4 * lam)
    )
    return Gap(primal, dual, rounding + moved * abs(dual))


def _balanced(a: Array, signs: Array) -> Array:
    """A with the class of the larger sum scaled down, so that Σ a_i y_i = 0 up to rounding."""
    up, down = float(a[signs > 0].sum()), float(a[signs < 0].sum())
    least = min(up, down)
    return a * np.where(signs > 0, least / up if up > 0 else 0.0, least / down if down > 0 else 0.0)


def _best_change(norm: str, v: Array, reach: Array) -> Array:
    """The z in the unit ball with the shortest v − reach∘z; for L2, z = reach∘v/(reach² + μ)
    with the μ ≥ 0 that fits.
    """
    squares = reach**2
    moves = squares > 0
    wanted = np.divide(reach * v, squares, where=moves, out=np.zeros_like(v))
    if norm == "linf":
        return np.clip(wanted, -1.0, 1.0)
    if np.linalg.norm(wanted) > 1 + 1e-9:
        pull, squares = (reach * v)[moves], squares[moves]
        most = 2 * float(np.linalg.norm(pull))
        mu = brentq(
            lambda m: float(np.linalg.norm(pull / (squares + m))) - 1.0, 0.0, most, xtol=1e-300
        )
        wanted[moves] = pull / (squares + mu)
    return wanted / max(1.0, float(np.linalg.norm(wanted))) * (1.0 - 8 * (len(v) + 4) * _EPS)


def _conjugate(a: Array, loss: str) -> Array:
    """−ℓ*(−a): the entropy of a for the logarithmic loss, a − a²/4 for the squared hinge."""
    return entr(a) + entr(1.0 - a) if loss == "logistic" else a - a**2 / 4


def _conjugate_blur(moved: float, a: Array, loss: str) -> float:
    """How far the mean of −ℓ*(−a) moves when every a moves by the share ``moved``; |H(p) −
    H(q)| ≤ H(|p − q|).
    """
    if loss == "logistic":
        return float(entr(moved) + entr(1.0 - moved))
    return moved * float((a + a**2).mean())


def _steepest(blur: Array, slopes: Array, loss: str) -> Array:
    """The largest slope of the loss within ``blur`` of the margins."""
    return np.ones_like(slopes) if loss == "logistic" else -slopes + 2.0 * blur
