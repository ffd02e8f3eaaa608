"""Double descent: test error of minimum-norm least squares on random features, across the
interpolation threshold D = n.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from surelearn.jobs import Runner, Task, seed_for
from surelearn.kernel.random_features import RandomFeaturesRegressor
from surelearn.papers.reproduction import Figure, Outcome, Reproduction, TitledTable, setting
from surelearn.papers.thesis_boosting import difference
from surelearn.report.document import PageTable

RATIOS = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0, 10.0)
FAMILIES = {"gaussian": "Fourier features", "relu": "ReLU features"}
CLASSES = 10
MEASURED = ("test", "training", "squared", "norm", "rank")


@dataclass(frozen=True, kw_only=True)
class DoubleDescentSettings:
    """What can be set."""

    rows: int = setting(200, "n, rows to fit, 50 to 600; the others test")
    noise: float = setting(
        0.2, "share of fitted labels replaced by another class, beside the run without; 0 to 0.9"
    )
    repeats: int = setting(10, "draws of rows, noise and features, at least 2")
    bandwidth: float = setting(
        math.sqrt(5.0),
        "bandwidth h of the Gaussian kernel exp(−‖x − z‖²/(2h²)) of the Fourier features, pixels"
        " from 0 to 1",
    )

    def __post_init__(self) -> None:
        if not 50 <= self.rows <= 600:
            raise ValueError(f"rows must lie between 50 and 600, not {self.rows}")
        if not 0 < self.noise <= 0.9:
            raise ValueError(f"noise must be above 0 and at most 0.9, not {self.noise:g}")
        if self.repeats < 2:
            raise ValueError(f"repeats must be at least 2, not {self.repeats}")
        if not 0 < self.bandwidth < np.inf:
            raise ValueError(f"bandwidth must be a number above 0, not {self.bandwidth:g}")


def sizes(rows: int) -> list[int]:
    """The numbers of features D tried, one of them n."""
    return [max(2, round(ratio * rows)) for ratio in RATIOS]


def flipped(labels: np.ndarray, noise: float, random: np.random.RandomState) -> np.ndarray:
    """Labels of which each is replaced, with probability ``noise``, by one of the other classes."""
    hit = random.uniform(size=len(labels)) < noise
    return np.where(hit, (labels + random.randint(1, CLASSES, size=len(labels))) % CLASSES, labels)


def measure(
    seed: int, features: str, rows: int, noise: float, bandwidth: float
) -> dict[str, list[float]]:
    """Errors, squared loss, norm of the weights and rank for every D; one draw of rows, noise
    and features.
    """
    X, y = load_digits(return_X_y=True)
    X, random = X / 16.0, np.random.RandomState(seed)
    order = random.permutation(len(y))
    fit, test, drawn = order[:rows], order[rows:], random.randint(2**31 - 1)
    labels = flipped(y[fit], noise, random)
    found: dict[str, list[float]] = {key: [] for key in MEASURED}
    for D in sizes(rows):
        model = RandomFeaturesRegressor(
            features, bandwidth=bandwidth, n_components=D, fit_intercept=False, random_state=drawn
        )
        # errors and losses on new rows and on those fitted on, and the size of the weights
        model.fit(X[fit], np.eye(CLASSES)[labels])
        scores = model.predict(X[test])
        found["test"].append(float(np.mean(scores.argmax(1) != y[test])))
        found["training"].append(float(np.mean(model.predict(X[fit]).argmax(1) != labels)))
        found["squared"].append(float(np.mean(((scores - np.eye(CLASSES)[y[test]]) ** 2).sum(1))))
        found["norm"].append(model.facts_["weight_norm"])
        found["rank"].append(float(model.facts_["rank"]))
    return found


def run(settings: DoubleDescentSettings, seed: int, runner: Runner) -> Outcome:
    """The page."""
    asked = [(features, noise) for features in FAMILIES for noise in (0.0, settings.noise)]
    tasks = [
        Task(
            f"double descent/{features}/{noise:g}/{settings.rows}/{settings.bandwidth:g}/{i}",
            measure,
            {
                "seed": seed_for(f"double descent/{i}", seed), "features": features, "rows": settings.rows,
                "noise": noise, "bandwidth": settings.bandwidth,
            },
        )
        for features, noise in asked
        for i in range(settings.repeats)
    ]  # fmt: skip
    answers = runner.run(tasks, "fits")
    found = {
        _name(*which): {
            key: [
                answer[key] for answer in answers[j * settings.repeats : (j + 1) * settings.repeats]
            ]
            for key in MEASURED
        }
        for j, which in enumerate(asked)
    }
    return describe(settings, found)


def describe(settings: DoubleDescentSettings, found: Mapping[str, Mapping[str, Any]]) -> Outcome:
    """Sentences, figures and tables; ``found`` has a list over repeats of lists over D."""
    # ranks do not depend on labels
    families = {name.partition(",")[0]: of for name, of in found.items()}
    at_threshold = sum(_at_worst(of["test"]) == _threshold(settings, of) for of in found.values())
    return Outcome(
        source=(
            "EigenPro notes, task list: double descent of random features (after Belkin et al."
            " 2019)"
        ),
        headline=(
            f"In {at_threshold} of {len(found)} cases the test error is largest at the"
            f" interpolation threshold, and in {_recovered(found)} it is lower at D ="
            f" {RATIOS[-1]:g}n than at any D below n"
        ),
        findings=(
            *(_sentence(name, of) for name, of in found.items()),
            *(_threshold_sentence(settings, name, of) for name, of in families.items()),
            _norm_sentence(found),
        ),
        figures=tuple(_figure(settings, name, of) for name, of in found.items()),
        parts=tuple(_part(settings, name, of) for name, of in found.items()),
        notes=(
            (
                f"Handwritten digits of scikit-learn: {settings.rows} rows fit, the other"
                f" {1797 - settings.rows:,} test; ten one-hot targets, the largest prediction is"
                " the class; test labels are never changed."
            ),
            (
                "Least squares without intercept or penalty, of smallest norm where D > n. Repeat i"
                " has the same rows and the same seed of features in every case, so that"
                " differences are paired."
            ),
            (
                "The best D below n is the best on the test rows themselves, which favors it over"
                " what a user could choose."
            ),
        ),
        numbers={"sizes": sizes(settings.rows), "ratios": RATIOS, **found},
    )


def _name(features: str, noise: float) -> str:
    return (
        f"{FAMILIES[features]},"
        f" {f'{100 * noise:g}% of labels changed' if noise else 'labels as they are'}"
    )


def _mean(values: Sequence[Sequence[float]]) -> np.ndarray:
    return np.mean(np.asarray(values, float), axis=0)


def _at_worst(test: Sequence[Sequence[float]]) -> int:
    return int(np.argmax(_mean(test)))


def _threshold(settings: DoubleDescentSettings, of: Mapping[str, Any]) -> int | None:
    """The first D whose features have rank n, so that every label can be met, in the median
    repeat.
    """
    full = np.median(of["rank"], axis=0) >= settings.rows
    return int(np.argmax(full)) if full.any() else None


def _recovered(found: Mapping[str, Mapping[str, Any]]) -> int:
    means = [_mean(of["test"]) for of in found.values()]
    return sum(bool(mean[-1] < mean[: RATIOS.index(1.0)].min()) for mean in means)


def _threshold_sentence(settings: DoubleDescentSettings, name: str, of: Mapping[str, Any]) -> str:
    at, rank = _threshold(settings, of), np.median(of["rank"], axis=0)[RATIOS.index(1.0)]
    where = "at no D tried" if at is None else f"from D = {RATIOS[at]:g}n"
    why = (
        " (features that are 0 on all rows add none)"
        if rank < settings.rows and name.startswith("ReLU")
        else ""
    )
    return (
        f"{name} have the rank n {where}; at D = n the median rank is {rank:g} of"
        f" {settings.rows}{why}."
    )


def _sentence(name: str, of: Mapping[str, Any]) -> str:
    test, threshold = np.asarray(of["test"], float), RATIOS.index(1.0)
    mean = test.mean(0)
    below, worst = int(np.argmin(mean[:threshold])), _at_worst(of["test"])
    versus = difference((100 * test[:, -1]).tolist(), (100 * test[:, below]).tolist())
    kind = "better" if versus["high"] < 0 else "worse" if versus["low"] > 0 else "not settled"
    low, high, last = (f"{100 * mean[i]:.1f}% at D = {RATIOS[i]:g}n" for i in (below, worst, -1))
    return (
        f"{name}: test error {low}, the best below n, {high}, the worst, {last}; the last less the"
        f" first is {versus['mean']:+.1f} points (two standard errors: {versus['low']:+.1f} to"
        f" {versus['high']:+.1f}): {kind}."
    ).replace("-", "−")


def _norm_sentence(found: Mapping[str, Mapping[str, Any]]) -> str:
    same = sum(
        int(np.argmax(np.median(of["norm"], axis=0))) == RATIOS.index(1.0) for of in found.values()
    )
    return (
        f"The median norm of the weights is largest at D = n in {same} of {len(found)} cases: near"
        " the threshold there is hardly a choice among interpolants, and beyond it ever smaller"
        " ones to choose from."
    )


def _figure(settings: DoubleDescentSettings, name: str, of: Mapping[str, Any]) -> Figure:
    columns = 100 * np.asarray(of["test"], float).T
    return Figure(
        kind="boxes",
        title=f"{name}: test error by number of features, n = {settings.rows}",
        groups={
            f"D = {ratio:g}n": tuple(column.tolist())
            for ratio, column in zip(RATIOS, columns, strict=True)
        },
        axis=f"test error in percent, {settings.repeats} repeats",
        note=(
            "The model grows downwards. Boxes: quartiles and median; rings: beyond 1.5 box lengths;"
            " diamond: mean."
        ),
    )


def _part(settings: DoubleDescentSettings, name: str, of: Mapping[str, Any]) -> TitledTable:
    test, training = 100 * _mean(of["test"]), 100 * _mean(of["training"])
    squared, norm, rank = (np.median(of[key], axis=0) for key in ("squared", "norm", "rank"))
    rows = tuple(
        (
            f"{D:,}",
            f"{RATIOS[i]:g}",
            f"{rank[i]:g}",
            *(f"{value[i]:.1f}%" for value in (training, test)),
            *(f"{value[i]:.3g}" for value in (squared, norm)),
        )
        for i, D in enumerate(sizes(settings.rows))
    )
    header = (
        "D",
        "D/n",
        "rank",
        "training error",
        "test error",
        "squared loss",
        "norm of the weights",
    )
    return TitledTable(
        title=name,
        table=PageTable(header=header, rows=rows),
        note="Errors are means, the others medians of repeats.",
    )


DOUBLE_DESCENT = Reproduction(run=run, settings=DoubleDescentSettings)
