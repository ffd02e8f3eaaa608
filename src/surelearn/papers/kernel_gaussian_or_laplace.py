"""Why does the Gaussian kernel do worse? Epochs to fit true and random labels, the spectra, and
test errors under noise.

Gradient steps fit the part of the labels in direction i at the rate λ_i/λ₁. True labels lie mostly
in the first directions, random ones evenly in all n; and the eigenvalues of a smooth kernel fall
faster than any power of i, those of the Laplace kernel slowly. So both kernels learn true labels,
and only the Laplace kernel meets random ones soon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from surelearn.jobs import Runner, Task, seed_for
from surelearn.kernel import Compute
from surelearn.kernel.eigenpro import EigenProRegressor
from surelearn.kernel.fitting import resolve_device
from surelearn.kernel.functions import Kernel
from surelearn.papers.kernel_acceleration import count, fewer, middle, prepared, signs
from surelearn.papers.kernel_batch_size import (
    BANDWIDTHS,
    FOLDER,
    check_rows,
    images,
    kernel_of,
    name_of,
)
from surelearn.papers.kernel_double_descent import CLASSES, flipped
from surelearn.papers.reproduction import Figure, Outcome, Reproduction, TitledTable, setting
from surelearn.report.document import PageTable

KERNELS = ("gaussian", "laplace")
LABELS = ("true", "random")
WAYS = ("SGD", "EigenPro", "block step")
NOISES = (0.0, 0.2, 0.5)
SCALES = (0.5, 2.0)
TESTED = 1000
SMALL = 0.01  # the squared loss to reach, as a share of that of f = 0


@dataclass(frozen=True, kw_only=True)
class WhichKernelSettings:
    """What can be set."""

    data: str = setting("", FOLDER)
    rows: int = setting(1000, "n, training rows, 100 to 1700 (4000 of MNIST)")
    gaussian: float = setting(
        0.0, "h of the Gaussian kernel exp(−‖x − z‖²/2h²); 0 takes 1.5 for digits, 5 for MNIST"
    )
    laplace: float = setting(
        0.0, "bandwidth h of the Laplace kernel exp(−‖x − z‖/h); 0 takes 3 for digits, 10 for MNIST"
    )
    directions: int = setting(
        50, "q, the eigendirections that EigenPro lowers, found on half of the rows"
    )
    batch: int = setting(100, "m, the rows of a step")
    epochs: int = setting(250, "where to stop at the latest, at least 2")
    repeats: int = setting(3, "draws of rows and labels, at least 2")

    def __post_init__(self) -> None:
        check_rows(self.data, self.rows)
        for name in KERNELS:
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(
                    f"{name} must be a number above 0, or 0 for the usual one, not"
                    f" {getattr(self, name):g}"
                )
        if not 1 <= self.directions <= self.rows // 4:
            raise ValueError(
                f"directions must lie between 1 and a quarter of rows, {self.rows // 4}, not"
                f" {self.directions}"
            )
        if not 2 <= self.batch <= self.rows:
            raise ValueError(f"batch must lie between 2 and rows, {self.rows}, not {self.batch}")
        for name in ("epochs", "repeats"):
            if getattr(self, name) < 2:
                raise ValueError(f"{name} must be at least 2, not {getattr(self, name)}")

    def made(self, name: str, scale: float = 1.0) -> Kernel:
        """The kernel of a name, its bandwidth scaled."""
        return kernel_of(
            name, scale * (getattr(self, name) or BANDWIDTHS[name_of(self.data)][name]), self.data
        )


def draw(
    seed: int, data: str, rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.random.RandomState]:
    """Training rows and labels, test rows and labels, and what draws labels next."""
    X, y = images(data)
    random = np.random.RandomState(seed)
    order = random.permutation(len(y))
    fit, test = order[:rows], order[rows : rows + TESTED]
    return X[fit], y[fit], X[test], y[test], random


def epochs_to_fit(
    k: Kernel, X: np.ndarray, labels: np.ndarray, way: str, q: int, m: int, most: int
) -> dict[str, Any]:
    """Epochs until no training label is wrong, and until the squared loss is small; None where
    ``most`` do not suffice.
    """
    q, s = (0, 1) if way == "SGD" else (q, len(X) // 2)
    run = prepared(k, X, signs(labels), q=q, m=m, s=s, classical=way != "block step")
    found: dict[str, Any] = {"zero": None, "small": None}
    random, size = np.random.RandomState(0), float(run.Y.square().sum(1).mean())
    for t in range(1, most + 1):
        run.epoch(random.permutation(len(run.blocks())))
        values = run.apply(slice(0, len(X)))
        if found["zero"] is None and (values.argmax(1).numpy() == labels).all():
            found["zero"] = t
        if (
            found["small"] is None
            and float((values - run.Y).square().sum(1).mean()) <= SMALL * size
        ):
            found["small"] = t
        if found["zero"] and found["small"]:
            break
    return found


def energy_beyond(vectors: np.ndarray, labels: np.ndarray, at: list[int]) -> list[float]:
    """The share of the centered targets' squared size outside the first i eigenvectors
    (columns), for every i of ``at``.
    """
    Y = signs(labels)
    Y -= Y.mean(0)
    inside = np.cumsum(((vectors.T @ Y) ** 2).sum(1)) / float((Y**2).sum())
    return [float(max(0.0, 1.0 - inside[i - 1])) for i in at]


def positions(rows: int) -> list[int]:
    """Which directions are drawn: 1, 2, 3, 4, 6, 8, 11, … up to n, and every twentieth part of
    n.
    """
    powers = {min(rows, round(2 ** (i / 2))) for i in range(2 * rows.bit_length())}
    return sorted(powers | {rows * i // 20 for i in range(1, 21)})


def _late(rows: int) -> int:
    """Nine tenths of all directions."""
    return 9 * rows // 10


def measure(
    seed: int, data: str, rows: int, k: Kernel, others: list[Kernel], q: int, m: int, epochs: int
) -> dict[str, Any]:
    """Epochs for both kinds of labels in all ways, spectrum, energy and test errors; one draw
    of rows and labels.
    """
    X, y, Z, z, random = draw(seed, data, rows)
    labels = {"true": y, "random": random.randint(CLASSES, size=rows)}
    values, vectors = np.linalg.eigh(k(X, X))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    test = []
    for noise in NOISES:
        model = EigenProRegressor(k, solver="direct", compute=Compute(device="cpu")).fit(
            X, signs(flipped(y, noise, random))
        )
        test.append(float(np.mean(model.predict(Z).argmax(1) != z)))
    return {
        "epochs": {
            kind: {way: epochs_to_fit(k, X, of, way, q, m, epochs) for way in WAYS}
            for kind, of in labels.items()
        },
        "others": [
            epochs_to_fit(other, X, labels["random"], "EigenPro", q, m, epochs) for other in others
        ],
        "falls": [
            float(values[i] / max(values[_late(rows) - 1], np.finfo(float).tiny)) for i in (0, q)
        ],
        "decay": [float(values[i - 1] / values[0]) for i in positions(rows)],
        "left": {kind: energy_beyond(vectors, of, [q])[0] for kind, of in labels.items()},
        "energy": {
            kind: energy_beyond(vectors, of, positions(rows)) for kind, of in labels.items()
        },
        "test": test,
    }


def run(settings: WhichKernelSettings, seed: int, runner: Runner) -> Outcome:
    """The page."""
    resolve_device("cpu")
    given = {
        "data": settings.data,
        "rows": settings.rows,
        "q": settings.directions,
        "m": settings.batch,
    }
    given |= {"epochs": settings.epochs}
    asked = f"{name_of(settings.data)}/{settings.rows}/{settings.directions}/{settings.batch}/{settings.epochs}"
    tasks = [
        Task(
            f"gaussian or laplace/{asked}/{settings.made(name)}/{i}",
            measure,
            {
                "seed": seed_for(f"gaussian or laplace/{i}", seed), "k": settings.made(name),
                "others": [settings.made(name, scale) for scale in SCALES], **given,
            },
        )
        for name in KERNELS
        for i in range(settings.repeats)
    ]  # fmt: skip
    answers = runner.run(tasks, "draws of rows")
    return describe(
        settings,
        {
            name: answers[j * settings.repeats :][: settings.repeats]
            for j, name in enumerate(KERNELS)
        },
    )


def describe(settings: WhichKernelSettings, found: Mapping[str, list[dict[str, Any]]]) -> Outcome:
    """Sentences, figures and tables; ``found`` has a list over repeats for each kernel."""
    most, slow, quick = (
        settings.epochs,
        *(_epochs(found[name], "random", "EigenPro", "zero") for name in KERNELS),
    )
    found_it = "" if quick < slow else ": the effect is not seen here"
    return Outcome(
        source=(
            "Belkin, Ma and Mandal 2018, To understand deep learning we need to understand kernel"
            " learning"
        ),
        headline=(
            f"Random labels are met after {count(quick, most)} epochs of EigenPro with the Laplace"
            f" kernel and {count(slow, most)} with the Gaussian{found_it}"
        ),
        findings=(
            *(_fit_sentence(settings, way, found) for way in WAYS),
            _decay_sentence(settings, found),
            _energy_sentence(settings, found),
            _bandwidth_sentence(settings, found),
            _noise_sentence(found),
        ),
        figures=(
            _decay_figure(settings, found),
            _energy_figure(settings, found),
            _noise_figure(settings, found),
        ),
        parts=(_epochs_part(settings, found), _bandwidth_part(settings, found)),
        notes=(
            (
                f"{settings.rows:,} rows of {name_of(settings.data)}, ten targets of ±1;"
                f" {settings.made('gaussian')} and {settings.made('laplace')}; up to {TESTED:,}"
                " other rows test. Random labels are drawn uniformly from the ten classes. Medians"
                f" of {settings.repeats} repeats, the same rows and labels for both kernels."
            ),
            (
                "SGD and EigenPro take a constant step, as large as is safe on every block; the"
                " block step is the default of our learners, a damped solve on each block, in the"
                " same preconditioned space."
            ),
            (
                "Test errors under noise are those of the exact interpolants, whatever the number"
                " of epochs to reach them."
            ),
            (
                "The paper's abstract says that fitting noisy data takes many more epochs with"
                " smooth Gaussian kernels; its own epochs, on other data, were not compared."
            ),
        ),
        numbers={"positions": positions(settings.rows), **found},
    )


def _epochs(of: list[dict[str, Any]], kind: str, way: str, goal: str) -> float:
    return middle([each["epochs"][kind][way][goal] for each in of])


def _fit_sentence(
    settings: WhichKernelSettings, way: str, found: Mapping[str, list[dict[str, Any]]]
) -> str:
    most, q = settings.epochs, "" if way == "SGD" else f", q = {settings.directions}"
    parts = {kind: [_epochs(found[name], kind, way, "zero") for name in KERNELS] for kind in LABELS}
    slow, quick = parts["random"]
    words = [
        f"on {kind} labels {count(a, most)} and {count(b, most)}" for kind, (a, b) in parts.items()
    ]
    says = (
        f"Laplace needs {fewer(slow, quick, most)} fewer"
        if quick < slow
        else "Laplace needs no fewer"
    )
    return (
        f"{way[0].upper()}{way[1:]}{q}: epochs to no training error, Gaussian and Laplace,"
        f" {', '.join(words)}: {says}."
    )


def _decay_sentence(
    settings: WhichKernelSettings, found: Mapping[str, list[dict[str, Any]]]
) -> str:
    falls = {name: np.mean([each["falls"] for each in found[name]], axis=0) for name in KERNELS}
    (g, g_left), (other, other_left) = falls["gaussian"], falls["laplace"]
    flatter = f"The Laplace kernel's tail is {g_left / other_left:.1f} times flatter"
    says = flatter if other_left < g_left else "The decay does not tell why"
    return (
        "Random labels need nearly all directions, and one of eigenvalue λ_i takes epochs like"
        f" 1/λ_i. From the first to the {_late(settings.rows)}th eigenvalue they fall {g:,.0f}"
        f" times (Gaussian) and {other:,.0f} times (Laplace); of that after the first"
        f" {settings.directions}, which EigenPro lowers, {g_left:,.1f} and {other_left:,.1f} times."
        f" {says}."
    )


def _energy_sentence(
    settings: WhichKernelSettings, found: Mapping[str, list[dict[str, Any]]]
) -> str:
    parts = [
        f"{100 * np.mean([each['left'][kind] for each in found[name]]):.0f}% of {kind} labels"
        f" ({name.capitalize()})"
        for kind in LABELS
        for name in KERNELS
    ]
    return (
        f"Beyond the first {settings.directions} directions lie, of the labels' squared size,"
        f" {', '.join(parts)}."
    )


def _bandwidth_sentence(
    settings: WhichKernelSettings, found: Mapping[str, list[dict[str, Any]]]
) -> str:
    parts = []
    for j, scale in enumerate(SCALES):
        g, l = (middle([each["others"][j]["zero"] for each in found[name]]) for name in KERNELS)  # noqa: E741
        parts.append(
            f"with {scale:g} times the bandwidths {count(g, settings.epochs)} and"
            f" {count(l, settings.epochs)}"
        )
    return (
        f"Epochs of EigenPro to meet the random labels, Gaussian and Laplace: {'; '.join(parts)}."
    )


def _noise_sentence(found: Mapping[str, list[dict[str, Any]]]) -> str:
    mean = {name: 100 * np.mean([each["test"] for each in found[name]], axis=0) for name in KERNELS}
    parts = [
        f"{mean['gaussian'][i]:.1f}% and {mean['laplace'][i]:.1f}% with {100 * noise:g}% of labels"
        " changed"
        for i, noise in enumerate(NOISES)
    ]
    worse = sum(mean["gaussian"][i] > mean["laplace"][i] for i, noise in enumerate(NOISES) if noise)
    return (
        f"Test errors of the exact interpolants, Gaussian and Laplace: {'; '.join(parts)}. The"
        f" Gaussian kernel does worse at {worse} of {len(NOISES) - 1} levels of noise."
    )


def _decay_figure(
    settings: WhichKernelSettings, found: Mapping[str, list[dict[str, Any]]]
) -> Figure:
    floor = float(np.finfo(float).eps)
    return Figure(
        kind="lines",
        title="The decay of the eigenvalues",
        groups={
            f"{settings.made(name)}": tuple(
                float(np.mean([math.log10(max(each["decay"][i], floor)) for each in found[name]]))
                for i in range(len(positions(settings.rows)))
            )
            for name in KERNELS
        },
        axis="log₁₀ of λ_i/λ₁",
        at=tuple(map(float, positions(settings.rows))),
        across="i, from the largest eigenvalue to the smallest",
        note=(
            "A direction with λ_i/λ₁ = 10⁻³ takes about a thousand gradient steps. Means of"
            " repeats."
        ),
    )


def _energy_figure(
    settings: WhichKernelSettings, found: Mapping[str, list[dict[str, Any]]]
) -> Figure:
    return Figure(
        kind="lines",
        title="Where the labels lie: their share outside the first i eigendirections",
        groups={
            f"{name.capitalize()}, {kind} labels": tuple(
                100 * np.mean([each["energy"][kind] for each in found[name]], axis=0)
            )
            for name in KERNELS
            for kind in LABELS
        },
        axis="percent of the squared size",
        at=tuple(math.log2(i) for i in positions(settings.rows)),
        across="log₂ of i",
        note="Targets are centered. Random labels have the share 1 − i/n whatever the kernel is.",
    )


def _noise_figure(
    settings: WhichKernelSettings, found: Mapping[str, list[dict[str, Any]]]
) -> Figure:
    return Figure(
        kind="boxes",
        title="Test error of the interpolants under label noise",
        groups={
            f"{name.capitalize()}, {100 * noise:g}% changed": tuple(
                100 * each["test"][i] for each in found[name]
            )
            for i, noise in enumerate(NOISES)
            for name in KERNELS
        },
        axis=f"test error in percent, {settings.repeats} repeats",
        note=(
            "Boxes: quartiles and median; whiskers: farthest within 1.5 box lengths; rings: beyond;"
            " diamond: mean."
        ),
    )


def _epochs_part(
    settings: WhichKernelSettings, found: Mapping[str, list[dict[str, Any]]]
) -> TitledTable:
    rows = tuple(
        (
            f"{way}, {kind} labels",
            *(
                count(_epochs(found[name], kind, way, goal), settings.epochs)
                for goal in ("zero", "small")
                for name in KERNELS
            ),
        )
        for way in WAYS
        for kind in LABELS
    )
    small = f"loss below {100 * SMALL:g}%"
    header = ("epochs to", "no error: Gaussian", "Laplace", f"{small}: Gaussian", "Laplace")
    return TitledTable(
        title="Epochs to fit the training labels", table=PageTable(header=header, rows=rows)
    )


def _bandwidth_part(
    settings: WhichKernelSettings, found: Mapping[str, list[dict[str, Any]]]
) -> TitledTable:
    rows = []
    for scale in sorted((1.0, *SCALES)):
        row = [f"{scale:g} times"]
        for goal in ("zero", "small"):
            for name in KERNELS:
                if scale == 1.0:
                    row.append(
                        count(_epochs(found[name], "random", "EigenPro", goal), settings.epochs)
                    )
                else:
                    each = [each["others"][SCALES.index(scale)][goal] for each in found[name]]
                    row.append(count(middle(each), settings.epochs))
        rows.append(tuple(row))
    header = ("bandwidths", "no error: Gaussian", "Laplace", "small loss: Gaussian", "Laplace")
    return TitledTable(
        title="Random labels, EigenPro, other bandwidths: epochs",
        table=PageTable(header=header, rows=tuple(rows)),
        note="A narrow kernel of any kind is nearly the identity and meets any label at once.",
    )


WHICH_KERNEL = Reproduction(run=run, settings=WhichKernelSettings)
