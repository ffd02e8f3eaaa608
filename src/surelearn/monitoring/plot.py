"""The evidence over time, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surelearn import files

KINDS = ("png", "svg", "pdf")


def draw(path: Path, history: Sequence[tuple[int, float]], delta: float, *, title: str, counted: str) -> None:
    """A line of (count, ln evidence) on a logarithmic axis, and one at 1/δ."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise ValueError(f"a plot's file name must end in .png, .svg or .pdf: {path.name!r} does not")
    from matplotlib.figure import Figure

    counts, logs = np.array(history).T
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.semilogy(counts, np.exp(np.clip(logs, -700.0, 700.0)), color="#2b5c8a", linewidth=1.5)
    axes.axhline(1 / delta, color="#aa3333", linestyle="--", linewidth=1)
    axes.annotate(f"alarm at {1 / delta:.4g}", (0, 1 / delta), (4, 3), color="#aa3333", textcoords="offset points")
    axes.set(xlabel=counted, ylabel="evidence", title=title)
    axes.spines[["top", "right"]].set_visible(False)
    with files.writing(path) as beside:
        figure.savefig(beside, format=kind, dpi=150)
