"""How well networks of two and three layers approximate: error against width, beside what theorems
say of networks that exist.

Layers are counted as the course counts them: two have one hidden layer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from surelearn.jobs import Runner, Task, seed_for
from surelearn.neural import Shuffled, Training, train
from surelearn.neural.devices import need_torch
from surelearn.neural.schedules import Cosine
from surelearn.papers.reproduction import Figure, Outcome, Reproduction, TitledTable, setting
from surelearn.report.document import PageTable
from surelearn.types import Array

if TYPE_CHECKING:
    from torch import Tensor

SMALLEST = 4
DEPTHS = (2, 3)
LINE, SUM, RINGS = "a line", "a sum of waves", "rings"
FREQUENCY = 3 * math.pi  # of sin(ωx) on the line
# f(x) = Σ a·cos(⟨ω, x⟩ + phase) on the unit disk
AMPLITUDES = np.array([0.5, 0.3, 0.2])
FREQUENCIES = np.array([[4.0, 2.0], [-3.0, 5.0], [7.0, 0.0]])
PHASES = np.array([0.0, 1.0, 2.0])
TARGETS = {
    LINE: "f(x) = sin 3πx on [−1, 1]",
    SUM: "f(x) = Σ a·cos(⟨ω, x⟩ + φ), three waves, on the unit disk of the plane",
    RINGS: "f(x) = cos 4π‖x‖² on the unit disk of the plane",
}
GRID = {LINE: 2001, SUM: 97, RINGS: 97}  # points of a side


@dataclass(frozen=True, kw_only=True)
class ApproximationSettings:
    """What can be set."""

    widest: int = setting(64, "the largest width tried, from 4 on doubling: 8 to 256")
    steps: int = setting(
        1500, "minibatches of 256 points that a network is trained on, at least 10"
    )
    repeats: int = setting(5, "networks of every width, at least 2")
    rate: float = setting(0.02, "the largest learning rate of AdamW, above 0 and at most 1")

    def __post_init__(self) -> None:
        if not 8 <= self.widest <= 256:
            raise ValueError(f"widest must lie between 8 and 256, not {self.widest}")
        if self.steps < 10:
            raise ValueError(f"steps must be at least 10, not {self.steps}")
        if self.repeats < 2:
            raise ValueError(f"repeats must be at least 2, not {self.repeats}")
        if not 0 < self.rate <= 1:
            raise ValueError(f"rate must be above 0 and at most 1, not {self.rate:g}")


def widths(widest: int) -> list[int]:
    """4, 8, …, up to the widest."""
    return [SMALLEST * 2**i for i in range(int(math.log2(widest / SMALLEST)) + 1)]


def target(name: str, X: Array) -> Array:
    """The function at points X (n, d)."""
    if name == LINE:
        return np.sin(FREQUENCY * X[:, 0])
    if name == SUM:
        return np.cos(X @ FREQUENCIES.T + PHASES) @ AMPLITUDES
    return np.cos(4 * math.pi * (X**2).sum(axis=1))


def points(name: str) -> Array:
    """The points where errors are measured, (n, d): a grid, in the plane that of the unit disk."""
    side = np.linspace(-1.0, 1.0, GRID[name])
    if name == LINE:
        return side[:, None]
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    return grid[(grid**2).sum(axis=1) <= 1]


def parameters(d: int, width: int, depth: int) -> int:
    """How many numbers a network has: matrices and biases.

    Examples
    --------
    >>> parameters(1, 4, 2), parameters(1, 4, 3)
    (13, 33)
    """
    return (d + 1) * width + (depth - 2) * (width + 1) * width + width + 1


def interpolating(width: int) -> tuple[Array, Array, Array, float]:
    """W, b, U (width,) and c of the two-layer ReLU network U·relu(W·x + b) + c that meets sin(ωx)
    at width + 1 equispaced points of [−1, 1]: each unit changes the slope at one of them.
    """
    knots = np.linspace(-1.0, 1.0, width + 1)
    values = target(LINE, knots[:, None])
    slopes = np.diff(values) / np.diff(knots)
    return np.ones(width), -knots[:-1], np.diff(slopes, prepend=0.0), float(values[0])


def interpolation_error(width: int) -> float:
    """ω²·h²/8 with h = 2/width: sup|f″|·h²/8 bounds the error of linear interpolation (C. de Boor, A
    Practical Guide to Splines, 1978, Chapter III).
    """
    return FREQUENCY**2 * (2 / width) ** 2 / 8


def barron_error(width: int) -> float:
    """2·C_f/√⌊width/2⌋ with C_f = Σ|a|·‖ω‖: for a probability measure on the unit ball some
    combination of n sigmoidal functions and a constant has a mean squared error of at most (2·C_f)²/n
    (A. R. Barron 1993, Theorem 1); relu(z) − relu(z − 1) is sigmoidal, at two units each.
    """
    C = float((np.abs(AMPLITUDES) * np.linalg.norm(FREQUENCIES, axis=1)).sum())
    return 2 * C / math.sqrt(width // 2)


def measure(
    seed: int, name: str, width: int, depth: int, steps: int, repeats: int, rate: float
) -> dict[str, list[float]]:
    """Root mean squared and largest error on the points, of every repeat; all of them are trained
    side by side on the same minibatches.
    """
    import torch

    X, forked = points(name), torch.random.fork_rng(devices=[])
    with forked:
        torch.manual_seed(seed)
        weights = _begun(X.shape[1], width, depth, repeats)
    rows = torch.as_tensor(X, dtype=torch.float32)
    truth = torch.as_tensor(target(name, X), dtype=torch.float32)
    batch = 256
    epochs = math.ceil(steps / math.ceil(len(X) / batch))
    plan = Training(epochs=epochs, learning_rate=rate, schedule=Cosine())

    def step(at: Any) -> Tensor:
        # the sum over repeats: each has the gradient that it would have alone
        wrong = _outputs(weights, rows[at]) - truth[at]  # (repeats, B)
        return wrong.square().mean(dim=1).sum()

    train(step, weights, Shuffled(len(X), batch, seed), plan)
    with torch.no_grad():
        wrong = (_outputs(weights, rows) - truth).abs().double().numpy()
    return {
        "rms": np.sqrt((wrong**2).mean(axis=1)).tolist(),
        "largest": wrong.max(axis=1).tolist(),
    }


def _begun(d: int, width: int, depth: int, repeats: int) -> dict[str, Tensor]:
    """Matrices (repeats, in, out) of variance 2/in, and biases: those of the first layer put its kinks
    all over the domain.
    """
    import torch

    sides = [d, *[width] * (depth - 1), 1]
    made: dict[str, Tensor] = {}
    for i, (m, k) in enumerate(pairwise(sides)):
        matrix = torch.randn(repeats, m, k) * math.sqrt(2 / m)
        bias = torch.zeros(repeats, 1, k)
        if i == 0:
            bias = (2 * torch.rand(repeats, 1, k) - 1) * matrix.norm(dim=1, keepdim=True)
        made |= {f"W{i}": matrix.requires_grad_(), f"b{i}": bias.requires_grad_()}
    return made


def _outputs(weights: Mapping[str, Tensor], X: Tensor) -> Tensor:
    """(n, d) to (repeats, n)."""
    import torch

    layers = len(weights) // 2
    h = X.expand(len(weights["W0"]), -1, -1)
    for i in range(layers):
        h = torch.baddbmm(weights[f"b{i}"], h, weights[f"W{i}"])
        h = torch.relu(h) if i + 1 < layers else h
    return h[..., 0]


def run(settings: ApproximationSettings, seed: int, runner: Runner) -> Outcome:
    """The page."""
    need_torch()
    tried = widths(settings.widest)
    asked = [(name, depth, width) for name in TARGETS for depth in DEPTHS for width in tried]
    how = {"steps": settings.steps, "repeats": settings.repeats, "rate": settings.rate}
    tasks = [
        Task(
            f"universal approximation/{name}/{depth}/{width}/{sorted(how.items())}",
            measure,
            {
                "seed": seed_for(f"universal approximation/{name}/{depth}/{width}", seed),
                "name": name, "width": width, "depth": depth, **how,
            },
        )
        for name, depth, width in asked
    ]  # fmt: skip
    answers = dict(zip(asked, runner.run(tasks, "networks"), strict=True))
    found = {
        name: {
            str(depth): {
                key: [answers[name, depth, width][key] for width in tried]
                for key in ("rms", "largest")
            }
            for depth in DEPTHS
        }
        for name in TARGETS
    }
    return describe(settings, found)


def describe(settings: ApproximationSettings, found: Mapping[str, Mapping[str, Any]]) -> Outcome:
    """Sentences, figures and tables; ``found`` has a list over widths of lists over repeats for
    each target, depth and kind of error.
    """
    tried = widths(settings.widest)
    built = [_constructed(width) for width in tried]
    bounds = {
        LINE: [interpolation_error(width) for width in tried],
        SUM: [barron_error(width) for width in tried],
    }
    wide = "; ".join(
        f"{name}: {_middle(of['2']['rms'][-1]):.2g} and {_middle(of['3']['rms'][-1]):.2g}"
        for name, of in found.items()
    )
    return Outcome(
        source="Machine learning course notes, Theorem 9.4 (after Cybenko 1989 and Hornik 1991)",
        headline=(
            f"Root mean squared error of networks of width {tried[-1]} with two and three layers,"
            f" medians of {settings.repeats}: {wide}"
        ),
        findings=(
            *(_sentence(name, tried, found[name]) for name in TARGETS),
            _line_sentence(tried, built, found[LINE]["2"]),
            _barron_sentence(tried, found[SUM]["2"]),
        ),
        figures=tuple(_figure(settings, name, found[name]) for name in TARGETS),
        parts=tuple(
            _part(name, tried, found[name], built if name == LINE else None, bounds.get(name))
            for name in TARGETS
        ),
        notes=_notes(settings),
        numbers={"widths": tried, "constructed": built, "bounds": bounds, "trained": dict(found)},
    )


def _constructed(width: int) -> float:
    """The largest error, on the points, of the network that interpolates."""
    W, b, U, c = interpolating(width)
    X = points(LINE)
    answers = np.maximum(X * W + b, 0.0) @ U + c
    return float(np.abs(answers - target(LINE, X)).max())


def _middle(values: Sequence[float]) -> float:
    return float(np.median(values))


def _sentence(name: str, tried: Sequence[int], of: Mapping[str, Any]) -> str:
    two, three = (np.median(of[str(depth)]["rms"], axis=1) for depth in DEPTHS)
    d = points(name).shape[1]
    fewer = [
        (width, other)
        for j, width in enumerate(tried)
        for i, other in enumerate(tried)
        if parameters(d, width, 3) <= parameters(d, other, 2) and three[j] < two[i]
    ]
    instead = (
        f"three layers of width {fewer[-1][0]} have less error than two of width {fewer[-1][1]}, with"
        f" {parameters(d, fewer[-1][0], 3):,} numbers instead of"
        f" {parameters(d, fewer[-1][1], 2):,}"
        if fewer
        else "with no more numbers than two layers have, three are nowhere better here"
    )
    return (
        f"{name.capitalize()}: from width {tried[0]} to {tried[-1]} the median root mean squared"
        f" error falls from {two[0]:.2g} to {two[-1]:.2g} with two layers, and from"
        f" {three[0]:.2g} to {three[-1]:.2g} with three; {instead}."
    )


def _line_sentence(tried: Sequence[int], built: Sequence[float], two: Mapping[str, Any]) -> str:
    best = [min(values) for values in two["largest"]]
    below = [width for width, a, b in zip(tried, best, built, strict=True) if a < b]
    trained = (
        f"the best trained one is nearer at {', '.join(map(str, below))}"
        if below
        else "no trained one comes as near"
    )
    return (
        f"A two-layer network of width {tried[-1]} that is constructed, not trained, is nowhere"
        f" farther than {built[-1]:.2g} from the line's f, within the bound of"
        f" {interpolation_error(tried[-1]):.2g}; of the same widths {trained}."
    )


def _barron_sentence(tried: Sequence[int], two: Mapping[str, Any]) -> str:
    """The rate is compared, since the constant is far from what these widths need."""
    f = target(SUM, points(SUM))
    alone = float(np.sqrt(np.mean((f - f.mean()) ** 2)))
    first = 2 * math.ceil((barron_error(2) / alone) ** 2)  # 2·C_f is the bound of width 2
    slope = np.polyfit(np.log(tried), np.log(np.median(two["rms"], axis=1)), 1)[0]
    return (
        f"Barron's theorem promises a root mean squared error of {barron_error(tried[-1]):.2g} at width"
        f" {tried[-1]}, falling like width^−0.5; a constant alone has {alone:.2g}, so that its promise"
        f" begins to say something at width {first:,}. That of the trained two-layer networks falls like"
        f" width^{slope:.1f} over the widths tried."
    ).replace("^-", "^−")


def _figure(settings: ApproximationSettings, name: str, of: Mapping[str, Any]) -> Figure:
    tried = widths(settings.widest)
    logs = {
        depth: np.log10(np.maximum(of[str(depth)]["rms"], 1e-12)) for depth in DEPTHS
    }  # (widths, repeats)
    return Figure(
        kind="lines",
        title=f"{name.capitalize()}: error by width",
        groups={
            **{f"{d} layers, median": tuple(np.median(logs[d], axis=1).tolist()) for d in DEPTHS},
            **{f"{d} layers, worst": tuple(logs[d].max(axis=1).tolist()) for d in DEPTHS},
        },
        axis="log₁₀ of the root mean squared error",
        at=tuple(math.log2(width) for width in tried),
        across="log₂ of the width (5 is 32 units a layer)",
        note=f"{TARGETS[name]}; {settings.repeats} networks of every width.",
    )


def _part(
    name: str,
    tried: Sequence[int],
    of: Mapping[str, Any],
    built: Sequence[float] | None,
    bounds: Sequence[float] | None,
) -> TitledTable:
    d = points(name).shape[1]
    header = [
        "width",
        *(f"{depth} layers: {what}" for depth in DEPTHS
          for what in ("numbers", "RMS, median (least to most)", "largest error, least")),
    ]  # fmt: skip
    if built is not None:
        header.append("constructed, 2 layers: largest error")
    if bounds is not None:
        header.append("at most, of some network with 2 layers")
    rows = []
    for i, width in enumerate(tried):
        row = [str(width)]
        for depth in DEPTHS:
            rms = of[str(depth)]["rms"][i]
            row += [
                f"{parameters(d, width, depth):,}",
                f"{_middle(rms):.2g} ({min(rms):.2g} to {max(rms):.2g})",
                f"{min(of[str(depth)]['largest'][i]):.2g}",
            ]
        row += [f"{column[i]:.2g}" for column in (built, bounds) if column is not None]
        rows.append(tuple(row))
    said = {
        LINE: "The bound is sup|f″|·h²/8 of linear interpolation at points that are h apart.",
        SUM: "The bound is Barron's, of the root mean squared error: 2·C_f/√⌊width/2⌋.",
        RINGS: "None of the theorems below gives a number for it.",
    }
    return TitledTable(
        title=f"{name.capitalize()}: {TARGETS[name]}",
        table=PageTable(header=tuple(header), rows=tuple(rows)),
        note=said[name],
    )


def _notes(settings: ApproximationSettings) -> tuple[str, ...]:
    return (
        (
            "The theorem: a continuous f on a compact set is approximated as closely as one likes by"
            " some network with one hidden layer, if it is wide enough. G. Cybenko, Approximation by"
            " superpositions of a sigmoidal function (1989), Theorem 2, has it for continuous sigmoidal"
            " activations; K. Hornik, Approximation capabilities of multilayer feedforward networks"
            " (1991), Theorem 2, for bounded ones that are not constant; M. Leshno, V. Lin, A. Pinkus"
            " and S. Schocken, Multilayer feedforward networks with a nonpolynomial activation function"
            " can approximate any function (1993), Theorem 1, for those that are no polynomial, ReLU"
            " among them."
        ),
        (
            "The notes take the supremum over all of ℝᵈ, which cannot hold: far out a ReLU network is"
            " linear along every ray, and sin is not. They also leave biases of the output out; ours"
            " have one."
        ),
        (
            "The theorem says that such weights exist, neither how wide nor that training finds them: the"
            " trained networks here are measured, not guaranteed."
        ),
        (
            "Of three layers the notes say that they may need poly(1/ε) units where two need exp(1/ε),"
            " without a source. What is proved is a gap in the dimension: R. Eldan and O. Shamir, The"
            " power of depth for feedforward neural networks (2016), Theorem 1. In the plane, as here,"
            " nothing of the kind is implied."
        ),
        (
            "Barron's C_f is an integral over frequencies, here Σ|a|·‖ω‖ = "
            f"{barron_error(2) / 2:.3g}. A. R. Barron, Universal approximation bounds for superpositions"
            " of a sigmoidal function (1993), Theorem 1."
        ),
        (
            f"Training: AdamW, learning rates along a cosine from {settings.rate:g} to 0, about"
            f" {settings.steps:,} minibatches of 256 points of the grid on which errors are measured:"
            " approximation, not generalization."
        ),
    )


UNIVERSAL_APPROXIMATION = Reproduction(run=run, settings=ApproximationSettings)
