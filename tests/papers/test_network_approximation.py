"""Universal approximation: what is built by hand, what theorems say of it, and the page."""

import math

import numpy as np
import pytest

from surelearn.papers import network_approximation as approximation
from surelearn.papers import reproduce
from surelearn.papers.network_approximation import LINE, RINGS, SUM
from surelearn.papers.page import Made, to_html

torch = pytest.importorskip("torch")
MADE = Made(name="n", command="c", seed=0, settings={}, meanings={})


@pytest.mark.parametrize("width", [4, 16, 64])
def test_the_constructed_network_meets_f_at_its_points_and_its_bound_between_them(width):
    W, b, U, c = approximation.interpolating(width)
    assert len(W) == len(b) == len(U) == width
    knots = np.linspace(-1, 1, width + 1)[:, None]
    answers = np.maximum(knots * W + b, 0) @ U + c
    np.testing.assert_allclose(answers, np.sin(3 * math.pi * knots[:, 0]), atol=1e-12)
    X = np.linspace(-1, 1, 5001)[:, None]
    error = np.abs(np.maximum(X * W + b, 0) @ U + c - np.sin(3 * math.pi * X[:, 0])).max()
    assert error <= approximation.interpolation_error(width)
    if width == 64:  # the bound is sharp where the intervals are short
        assert error > 0.97 * approximation.interpolation_error(width)


def test_barron_s_constant_is_the_mean_frequency_and_bounds_a_network_that_exists():
    C = 0.5 * math.hypot(4, 2) + 0.3 * math.hypot(3, 5) + 0.2 * 7
    assert approximation.barron_error(8) == pytest.approx(2 * C / 2)
    # a combination of n steps along each wave, as the proof draws them: 500 networks, their mean square
    rng, n, X = np.random.default_rng(0), 32, approximation.points(SUM)
    f = approximation.target(SUM, X)
    f0 = approximation.target(SUM, np.zeros((1, 2)))[0]
    lengths = np.linalg.norm(approximation.FREQUENCIES, axis=1)
    share = approximation.AMPLITUDES * lengths / C
    losses = []
    for _ in range(60):
        drawn = rng.choice(3, n, p=share)
        t = rng.uniform(-1, 1, n)  # where each step lies along its direction
        along = X @ (approximation.FREQUENCIES[drawn] / lengths[drawn, None]).T
        # d/dt cos(‖ω‖t + φ) = −‖ω‖·sin, and f − f(0) is its integral from 0 to ⟨ω, x⟩/‖ω‖
        sine = -np.sin(lengths[drawn] * t + approximation.PHASES[drawn])
        steps = np.where(t > 0, along > t, -(along < t).astype(float))
        losses.append(np.mean((f0 + 2 * C * (steps * sine).mean(axis=1) - f) ** 2))
    assert np.mean(losses) <= approximation.barron_error(2 * n) ** 2
    assert np.mean(losses) > 0.02 * approximation.barron_error(2 * n) ** 2


def test_numbers_are_counted_as_torch_counts_them():
    for d, width, depth in ((1, 4, 2), (2, 8, 3)):
        layers = [torch.nn.Linear(d, width)]
        layers += [torch.nn.Linear(width, width)] * (depth - 2) + [torch.nn.Linear(width, 1)]
        counted = sum(p.numel() for layer in layers for p in layer.parameters())
        assert approximation.parameters(d, width, depth) == counted
        begun = approximation._begun(d, width, depth, repeats=3)
        assert sum(p.numel() for p in begun.values()) == 3 * counted


def test_networks_side_by_side_answer_as_each_alone():
    weights = approximation._begun(2, 8, 3, repeats=2)
    X = torch.randn(5, 2)
    alone = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8),
                                torch.nn.ReLU(), torch.nn.Linear(8, 1))  # fmt: skip
    with torch.no_grad():
        for i, layer in enumerate(alone[::2]):
            layer.weight.copy_(weights[f"W{i}"][1].T)
            layer.bias.copy_(weights[f"b{i}"][1, 0])
    np.testing.assert_allclose(
        approximation._outputs(weights, X)[1].detach(), alone(X)[:, 0].detach(), rtol=1e-5
    )


def test_training_comes_nearer_with_width():
    few, many = (
        approximation.measure(0, SUM, width, 2, steps=150, repeats=3, rate=0.02)
        for width in (4, 64)
    )
    f = approximation.target(SUM, approximation.points(SUM))
    assert np.median(many["rms"]) < 0.5 * np.median(few["rms"]) < 0.5 * f.std()
    assert all(a >= b for a, b in zip(many["largest"], many["rms"], strict=True))


def test_the_page_says_what_the_numbers_say():
    tried = [4, 8]
    two = {
        "rms": [[0.4, 0.5, 0.9], [0.25, 0.2, 0.3]],
        "largest": [[1.0, 0.9, 2.0], [0.6, 0.7, 0.8]],
    }
    three = {"rms": [[0.1, 0.1, 0.2], [0.02, 0.05, 0.01]], "largest": [[0.5] * 3, [0.2, 0.1, 0.3]]}
    found = {name: {"2": two, "3": three} for name in (LINE, SUM, RINGS)}
    made = approximation.describe(approximation.ApproximationSettings(widest=8, repeats=3), found)
    assert "a line: 0.25 and 0.02; a sum of waves: 0.25 and 0.02" in made.headline
    assert "from 0.5 to 0.25 with two layers, and from 0.1 to 0.02 with three" in made.findings[0]
    # in the plane 33 + 4 numbers of three layers of width 4 are more than the 33 of two of width 8
    assert approximation.parameters(2, 4, 3) == 37 > approximation.parameters(2, 8, 2) == 33
    assert "three are nowhere better here" in made.findings[1]
    assert "width 4 have less error than two of width 8" not in made.findings[2]
    assert "like width^−1.0" in made.findings[4]
    assert made.numbers["widths"] == tried
    assert made.parts[0].table.rows[1][:4] == ("8", "25", "0.25 (0.2 to 0.3)", "0.6")
    assert to_html(made, MADE).count("<svg") == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"widest": 4}, "widest must lie between 8 and 256, not 4"),
        ({"steps": 5}, "steps must be at least 10, not 5"),
        ({"repeats": 1}, "repeats must be at least 2, not 1"),
        ({"rate": 0.0}, "rate must be above 0 and at most 1, not 0"),
    ],
)
def test_impossible_settings_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        reproduce("universal-approximation", **given)
