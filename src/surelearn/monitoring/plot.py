"""The evidence over time, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from surelearn import files

KINDS = ("png", "svg", "pdf")
History = Sequence[tuple[int, float]]


def draw(
    path: Path, paths: Mapping[str, tuple[History, float]], *, title: str, counted: str
) -> None:
    """A line of (count, evidence·δ) for each claim on a logarithmic axis, and one at 1, where an
    alarm is raised.

    Parameters
    ----------
    path : where to write
    paths : by the claim's label, points (count, ln evidence) and the claim's δ
    title, counted : what stands above the drawing and below its axis
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise ValueError(
            f"a plot's file name must end in .png, .svg or .pdf: {path.name!r} does not"
        )
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for label, (history, delta) in paths.items():
        counts, logs = np.array(history).T
        axes.semilogy(
            counts, np.exp(np.clip(logs + np.log(delta), -700.0, 700.0)), linewidth=1.5, label=label
        )
    axes.axhline(1, color="#aa3333", linestyle="--", linewidth=1)
    axes.annotate("alarm", (0, 1), (4, 3), color="#aa3333", textcoords="offset points")
    axes.set(xlabel=counted, ylabel="evidence, as part of what raises the alarm", title=title)
    axes.legend(frameon=False, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    with files.writing(path) as beside:
        figure.savefig(beside, format=kind, dpi=150)
