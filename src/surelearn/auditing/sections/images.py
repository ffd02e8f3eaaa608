"""Section: images, the surest wrong answers with what the model looked at, and what excites it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from surelearn.attribution import maximize_activation
from surelearn.auditing.context import Context
from surelearn.auditing.single_rows import FEWEST, rows_note
from surelearn.auditing.writing import Entry
from surelearn.lacking import Lacking
from surelearn.plain import show
from surelearn.report import Chart, Section
from surelearn.report.pictures import png, shades, signed
from surelearn.subject import ScoreFunction, subject_of
from surelearn.types import AnyArray, Array, ImageShape

WORST = 8  # wrong answers that are shown
CLASSES = 12  # that have a picture each
_STEPS = 60  # of gradient ascent


def section(context: Context) -> Section | None:
    """Nothing for a table of other rows."""
    if context.images is None or context.split is None or context.task != "classification":
        return None
    album = Album.of(context)
    worst = _worst(context)
    notes = [_about_errors(context, worst)]
    charts = [_means(context, album)]
    gradient = _differentiable(context)
    if context.options.show_rows and worst.size:
        charts.append(_errors(context, album, worst, gradient))
        notes.append(rows_note(context))
    if isinstance(gradient, Lacking):
        notes.append(f"No saliency is drawn: {gradient.reason}.")
    else:
        charts.append(_exciting(context, album, gradient))
        notes.append(
            "What excites the model is found by gradient ascent on a class's score less the mean of"
            " all, from the mean image and within the pixels' range (activation maximization). It"
            " shows what the model answers to, not what such images look like."
        )
        if context.options.show_rows and worst.size:
            notes.append(
                "Saliency is the gradient of the answer's score by each pixel: red where a brighter"
                " pixel speaks for the answer, blue where it speaks against it."
            )
    charts = [chart for chart in charts if chart.data["names"]]
    return ENTRY.says(notes=notes, charts=charts)


def _differentiable(context: Context) -> ScoreFunction | Lacking:
    """The model's scores, where they have a gradient by each pixel."""
    f = subject_of(context.model).scores
    if isinstance(f, Lacking):
        return f
    return f.pullback if isinstance(f.pullback, Lacking) else f


@dataclass(frozen=True)
class Album:
    """How pixels become pictures: their shape, and what is black and white."""

    shape: ImageShape
    low: float
    high: float

    @classmethod
    def of(cls, context: Context) -> Album:
        """By the pixels of the rows to fit on."""
        if context.images is None:
            raise ValueError("rows that are no images have no pictures")
        X = np.asarray(context.rows("train")[0])
        return cls(context.images, float(X.min()), float(X.max()))

    def picture(self, pixels: Any) -> str:
        """An image (pixels,) as a PNG; of two channels, or more than three, their mean."""
        made = np.asarray(pixels, dtype=float).reshape(self.shape)
        if self.shape[2] not in (1, 3):
            made = made.mean(axis=2, keepdims=True)
        return png(shades(made, self.low, self.high))

    def heat(self, values: Any, largest: float | None = None) -> str:
        """Numbers of each pixel (pixels,) as a PNG, summed over channels; red above 0, blue below."""
        summed = np.asarray(values, dtype=float).reshape(self.shape).sum(axis=2)
        return png(signed(summed, float(np.abs(summed).max()) if largest is None else largest))


def _worst(context: Context) -> AnyArray:
    """Positions of the certify rows that are answered wrong, the surest first."""
    X, y = context.rows("certify")
    said = np.asarray(context.model.predict(X))
    wrong = np.flatnonzero(said != y)
    subject = subject_of(context.model)
    if wrong.size and subject.gives_probabilities:
        sure = np.asarray(context.model.predict_proba(X.iloc[wrong])).max(axis=1)
        wrong = wrong[np.argsort(-sure, kind="stable")]
    return wrong[:WORST]


def _about_errors(context: Context, worst: AnyArray) -> str:
    if not worst.size:
        return "No held-back image is answered wrong."
    numbers = ", ".join(f"{number:,}" for number in context.numbers(worst).tolist())
    return f"The surest wrong answers are those to the images of rows {numbers}."


def _means(context: Context, album: Album) -> Chart:
    """The mean image of each class with rows enough to hide a single one."""
    X, y = context.rows("train")
    labels, counts = np.unique(y, return_counts=True)
    kept = [label for label, n in zip(labels, counts, strict=True) if n >= FEWEST][:CLASSES]
    pixels = np.asarray(X)
    return _chart(
        "Mean image of each class, rows to fit on",
        [str(label) for label in kept],
        [album.picture(pixels[y == label].mean(axis=0)) for label in kept],
        small=True,
    )


def _errors(
    context: Context, album: Album, worst: AnyArray, gradient: ScoreFunction | Lacking
) -> Chart:
    X, y = context.rows("certify")
    rows = np.asarray(X.iloc[worst], dtype=float)
    said = np.asarray(context.model.predict(X.iloc[worst]))
    sure = (
        np.asarray(context.model.predict_proba(X.iloc[worst])).max(axis=1)
        if subject_of(context.model).gives_probabilities
        else None
    )
    slopes = None if isinstance(gradient, Lacking) else saliency_of(gradient, rows)
    names, pictures = [], []
    for i, row in enumerate(worst):
        share = "" if sure is None else f" ({show(float(sure[i]), 'rate')})"
        number = int(context.numbers(np.array([row]))[0])
        names.append(f"row {number:,}: {y[row]}, answered {said[i]}{share}")
        pictures.append(album.picture(rows[i]))
        if slopes is not None:
            names.append("saliency")
            pictures.append(album.heat(slopes[i]))
    title = "The surest wrong answers" + ("" if slopes is None else ", each with its saliency")
    return _chart(title, names, pictures, **({} if slopes is None else {"pairs": True}))


def saliency_of(f: ScoreFunction, rows: Array) -> Array:
    """The gradient of the answer's score, less the mean of all, by each pixel (n, pixels)."""
    scores = f.scores(rows)
    if scores.shape[1] == 1:
        return f.gradient(rows, np.where(scores > 0, 1.0, -1.0))
    return f.gradient(rows, np.eye(scores.shape[1])[scores.argmax(axis=1)] - 1 / scores.shape[1])


def _exciting(context: Context, album: Album, f: ScoreFunction) -> Chart:
    """For each class an image that excites its score."""
    X = np.asarray(context.rows("train")[0], dtype=float)
    mean, classes = X.mean(axis=0), list(f.classes or context.classes)
    outputs = f.scores(mean[None]).shape[1]
    names, pictures = [], []
    for k, label in enumerate(classes[:CLASSES]):
        weights = np.full(1, 1.0 if k else -1.0)
        if outputs > 1:
            weights = np.eye(outputs)[k] - 1 / outputs
        made = maximize_activation(
            lambda Z, w=weights: f.scores(Z) @ w,
            mean,
            steps=_STEPS,
            rate=(album.high - album.low) * np.sqrt(mean.size) / 30,
            bounds=(album.low, album.high),
            gradient=lambda Z, w=weights: f.gradient(Z, w),
        )
        names.append(str(label))
        pictures.append(album.picture(made.input))
    return _chart("What excites each class's score most", names, pictures, small=True)


def _chart(title: str, names: list[str], pictures: list[str], **how: bool) -> Chart:
    return Chart(kind="pictures", title=title, data={"names": names, "pictures": pictures, **how})


ENTRY = Entry(key="images", title="Images", write=section)
