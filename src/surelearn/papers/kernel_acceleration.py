"""What flattening q eigendirections saves: epochs of EigenPro and SGD to the same loss, beside
the predicted λ₁/λ_{q+1}.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelearn.jobs import Runner, Task, seed_for
from surelearn.kernel.fitting import resolve_device
from surelearn.kernel.functions import Kernel
from surelearn.kernel.iteration import Iteration, largest_eigenvalue
from surelearn.kernel.torch_functions import Evaluator
from surelearn.papers.kernel_batch_size import FOLDER, check_rows, images, kernel_of, name_of
from surelearn.papers.reproduction import (
    Figure,
    Outcome,
    Reproduction,
    TitledTable,
    one_of,
    setting,
)
from surelearn.report.document import PageTable
from surelearn.types import Plain

USUAL = {"digits": {"gaussian": 2.5, "laplace": 5.0}, "MNIST": {"gaussian": 5.0, "laplace": 10.0}}
BUDGET = 2.0**31  # bytes: at most 4000 rows, whose kernel matrix is kept
HELD_OUT = 1000
NEAR = 1.1  # the loss to reach on validation rows, in units of the exact interpolant's
SGD, BLOCK, BLOCK_ALONE = "SGD", "block step", "block step, q = 0"


@dataclass(frozen=True, kw_only=True)
class AccelerationSettings:
    """What can be set."""

    data: str = setting("", FOLDER)
    rows: int = setting(1000, "n, training rows, 100 to 1700 (4000 of MNIST)")
    kernel: str = setting("gaussian", "gaussian, exp(−‖x − z‖²/2h²), or laplace, exp(−‖x − z‖/h)")
    bandwidth: float = setting(
        0.0, "h; 0 takes 2.5 for digits, 5 for MNIST, and twice that for laplace"
    )
    subsample: int = setting(500, "s, the rows that the preconditioner is made from")
    directions: str = setting(
        "10,40,160", "the q tried, one to three numbers below s, ascending, with commas between"
    )
    batch: int = setting(100, "m, the rows of a step")
    target: float = setting(
        0.01, "the training loss to reach, as a share of the loss of f = 0, 0.0001 to 0.5"
    )
    epochs: int = setting(2000, "where to stop at the latest, at least 2")
    repeats: int = setting(3, "draws of rows, at least 2")

    def __post_init__(self) -> None:
        check_rows(self.data, self.rows)
        one_of("kernel", self.kernel, ("gaussian", "laplace"))
        if not 0 <= self.bandwidth < np.inf:
            raise ValueError(
                "bandwidth must be a number above 0, or 0 for the usual one, not"
                f" {self.bandwidth:g}"
            )
        if not 2 <= self.batch <= self.rows // 2:
            raise ValueError(
                f"batch must lie between 2 and half of rows, {self.rows // 2}, not {self.batch}"
            )
        if not 20 <= self.subsample <= self.rows - self.batch:
            raise ValueError(
                f"subsample must lie between 20 and rows less batch, {self.rows - self.batch}, not"
                f" {self.subsample}"
            )
        if not 0.0001 <= self.target <= 0.5:
            raise ValueError(f"target must lie between 0.0001 and 0.5, not {self.target:g}")
        for name in ("epochs", "repeats"):
            if getattr(self, name) < 2:
                raise ValueError(f"{name} must be at least 2, not {getattr(self, name)}")
        self.tried()

    def tried(self) -> list[int]:
        """The q tried."""
        words = [word.strip() for word in self.directions.split(",")]
        q = [int(word) for word in words if word.isdigit()]
        if (
            len(q) < len(words)
            or len(q) > 3
            or q != sorted(set(q))
            or not 1 <= q[0] <= q[-1] < self.subsample
        ):
            raise ValueError(
                "directions must be one to three numbers, ascending, from 1 to below subsample,"
                f" {self.subsample}, such as 10,40, not {self.directions!r}"
            )
        return q

    def made(self) -> Kernel:
        """The kernel."""
        return kernel_of(
            self.kernel, self.bandwidth or USUAL[name_of(self.data)][self.kernel], self.data
        )


def prepared(
    k: Kernel, X: np.ndarray, Y: np.ndarray, *, q: int, m: int, s: int, classical: bool
) -> Iteration:
    """The iteration on rows in random order; ``classical``: with the largest constant step that is
    safe on every block.

    A step on a block may move away from a solution where (η/m)·λ₁(H_B) exceeds 2; it is 1 on the
    worst block here, whose λ₁ is found by power iteration.
    """
    import torch

    evaluator = Evaluator(k, X, "cpu", "float64")
    targets = torch.from_numpy(Y).to(evaluator.dtype)

    def iteration(step: float | None) -> Iteration:
        return Iteration(
            evaluator, targets, 0.0, size=s, directions=q, batch_size=m, step=step, budget=BUDGET
        )

    if not classical:
        return iteration(None)
    trial = iteration(1.0)
    return iteration(
        m / max(largest_eigenvalue(trial.preconditioned(rows)[1]) for rows in trial.blocks())
    )


def signs(labels: np.ndarray) -> np.ndarray:
    """Targets of ±1, one output for each of ten classes."""
    return np.where(labels[:, None] == np.arange(10), 1.0, -1.0)


def measure(
    seed: int,
    data: str,
    rows: int,
    k: Kernel,
    s: int,
    tried: list[int],
    m: int,
    target: float,
    epochs: int,
) -> Any:
    """Epochs to both targets, the loss after each epoch and what was predicted, for every way;
    one draw of rows.
    """
    X, y = images(data)
    order = np.random.RandomState(seed).permutation(len(y))
    fit, held = order[:rows], order[rows : rows + HELD_OUT]
    X, Y, V, Z = X[fit], signs(y[fit]), signs(y[held]), X[held]
    goal = NEAR * float(np.mean((k(Z, X) @ np.linalg.lstsq(k(X, X), Y, rcond=1e-12)[0] - V) ** 2))
    ways = {SGD: (0, True), **{f"EigenPro, q = {q}": (q, True) for q in tried}}
    ways |= {BLOCK: (s // 10, False), BLOCK_ALONE: (0, False)}
    found = {}
    for way, (q, classical) in ways.items():
        run = prepared(k, X, Y, q=q, m=m, s=s, classical=classical)
        found[way] = _rounded(
            _epochs(run, Z, V, target, goal, epochs, np.random.RandomState(seed))
            | _predictions(run)
        )
    return found


def _rounded(value: Plain) -> Any:
    """Six digits: the last ones of PyTorch's sums depend on how many threads it was loaded with."""
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _epochs(
    run: Iteration,
    Z: np.ndarray,
    V: np.ndarray,
    target: float,
    goal: float,
    most: int,
    random: np.random.RandomState,
) -> dict[str, Any]:
    cross, size = (
        run.evaluator.block(run.evaluator.rows(Z), run.evaluator.points),
        float(run.Y.square().sum(1).mean()),
    )
    found: dict[str, Any] = {"training": None, "validation": None, "history": []}
    for t in range(1, most + 1):
        run.epoch(random.permutation(len(run.blocks())))
        loss = run.residual() / size
        found["history"].append(loss)
        if found["training"] is None and loss <= target:
            found["training"] = t
        if found["validation"] is None and np.mean(((cross @ run.alpha).numpy() - V) ** 2) <= goal:
            found["validation"] = t
        if found["training"] and found["validation"]:
            break
    return found


def _predictions(run: Iteration) -> dict[str, Any]:
    """λ₁/λ_{q+1} of the subsample, the ratio of best steps for this batch, and λ₁'s fall on a
    block outside it.
    """
    facts, spectrum, m = run.facts(), run.spectrum, run.batch_size
    return {
        "directions": run.directions,
        "step": facts["step"],
        "predicted": facts["acceleration_predicted"],
        "predicted_batch": spectrum.step_size(m, run.directions) / spectrum.step_size(m, 0),
        "measured": facts["acceleration_measured"],
    }


def run(settings: AccelerationSettings, seed: int, runner: Runner) -> Outcome:
    """The page."""
    resolve_device("cpu")
    k, tried = settings.made(), settings.tried()
    asked = f"{name_of(settings.data)}/{k}/{settings.rows}/{settings.subsample}/{tried}/{settings.batch}"
    tasks = [
        Task(
            f"acceleration/{asked}/{settings.target:g}/{settings.epochs}/{i}",
            measure,
            {
                "seed": seed_for(f"acceleration/{i}", seed), "data": settings.data, "rows": settings.rows, "k": k,
                "s": settings.subsample, "tried": tried, "m": settings.batch, "target": settings.target,
                "epochs": settings.epochs,
            },
        )
        for i in range(settings.repeats)
    ]  # fmt: skip
    answers = runner.run(tasks, "draws of rows")
    found = {
        way: {key: [each[way][key] for each in answers] for key in answers[0][way]}
        for way in answers[0]
    }
    return describe(settings, found)


def middle(values: Sequence[float | None]) -> float:
    """The median, ∞ where that many epochs did not suffice.

    Examples
    --------
    >>> middle([3, None, 5])
    5.0
    """
    return float(np.median([math.inf if value is None else value for value in values]))


def count(value: float, most: int) -> str:
    """A number of epochs, or that it is larger than those run."""
    return f"more than {most:,}" if math.isinf(value) else f"{value:,g}"


def fewer(slow: float, quick: float, most: int) -> str:
    """How many times fewer epochs, as far as it is known."""
    if math.isinf(quick):
        return "not known how many times"
    return (
        f"more than {most / quick:.1f} times" if math.isinf(slow) else f"{slow / quick:.1f} times"
    )


def describe(settings: AccelerationSettings, found: Mapping[str, Mapping[str, Any]]) -> Outcome:
    """Sentences, figures and tables; ``found`` has lists over repeats for each way."""
    flat = {way: of for way, of in found.items() if way.startswith("EigenPro")}
    best = min(flat, key=lambda way: middle(flat[way]["training"]))
    slow, quick = middle(found[SGD]["training"]), middle(flat[best]["training"])
    effect = "fewer" if quick < slow else "fewer, which is no gain"
    return Outcome(
        source=(
            "Ma and Belkin 2017, Diving into the shallows: the acceleration of EigenPro over SGD"
        ),
        headline=(
            f"{best} needs {count(quick, settings.epochs)} epochs to a loss for which SGD needs"
            f" {count(slow, settings.epochs)}: {fewer(slow, quick, settings.epochs)} {effect};"
            f" λ₁/λ_(q+1) predicts {_mean(flat[best]['predicted']):.0f}"
        ),
        findings=(
            *(_sentence(settings, way, of, found[SGD]) for way, of in flat.items()),
            _overstated(settings, flat, found[SGD]),
            *_directions_sentence(settings, flat),
            _block_sentence(settings, found, flat[best]["training"]),
        ),
        figures=(_figure(settings, found), *_spread(settings, found)),
        parts=(_part(settings, found),),
        notes=(
            (
                f"{settings.rows:,} rows of {name_of(settings.data)}, ten targets of ±1,"
                f" {settings.made()}, the preconditioner from {settings.subsample} rows, steps on"
                f" {settings.batch} rows, in float64; {settings.repeats} draws of rows, the same"
                " for all ways."
            ),
            (
                f"Targets: a training loss of {settings.target:g} of that of f = 0, and a"
                f" validation loss of at most {NEAR:g} times the exact interpolant's, on up to"
                " 1,000 other rows. Medians of repeats."
            ),
            (
                "SGD and EigenPro take the same kind of step: constant, and safe on every block,"
                " η/m = 1/max λ₁(H_B)."
            ),
            (
                "The block step, the default of EigenProRegressor and EigenProClassifier, solves"
                " (H_B + εI)h = residual on each block instead; with its default q, a tenth of the"
                f" subsample ({settings.subsample // 10}), and with q = 0."
            ),
        ),
        numbers=found,
    )


def _mean(values: npt.ArrayLike) -> float:
    return float(np.mean(np.asarray(values, float)))


def _sentence(
    settings: AccelerationSettings, way: str, of: Mapping[str, Any], sgd: Mapping[str, Any]
) -> str:
    most, parts = settings.epochs, []
    for kind in ("training", "validation"):
        slow, quick = middle(sgd[kind]), middle(of[kind])
        times = f"{fewer(slow, quick, most)} fewer than SGD ({count(slow, most)})"
        parts.append(f"{count(quick, most)} epochs to the {kind} target, {times}")
    return (
        f"{way}: {parts[0]}, and {parts[1]}. λ₁/λ_(q+1) predicts {_mean(of['predicted']):.0f} for"
        f" steps on all rows, and {_mean(of['predicted_batch']):.0f} for batches of"
        f" {settings.batch}; on a block outside the subsample λ₁ falls {_mean(of['measured']):.0f}"
        " times."
    )


def _overstated(
    settings: AccelerationSettings, flat: Mapping[str, Mapping[str, Any]], sgd: Mapping[str, Any]
) -> str:
    slow = middle(sgd["training"])
    if any(math.isinf(middle(of["training"])) for of in (sgd, *flat.values())):
        return (
            f"Not every way reached the training target in {settings.epochs:,} epochs: predictions"
            " cannot be compared."
        )
    over = [_mean(of["predicted"]) / (slow / middle(of["training"])) for of in flat.values()]
    outside = [_mean(of["predicted"]) / _mean(of["measured"]) for of in flat.values()]
    limits = (
        f"batches of {settings.batch} cannot use all of it, and eigenvectors of"
        f" {settings.subsample} rows are not exact"
    )
    why = f": {limits}" if max(over) > 1.5 else ""
    return (
        f"The acceleration predicted from the subsample is {min(over):.1f} to {max(over):.1f} times"
        f" the one in epochs, and {min(outside):.1f} to {max(outside):.1f} times the fall of λ₁"
        f" outside the subsample{why}."
    )


def _directions_sentence(
    settings: AccelerationSettings, flat: Mapping[str, Mapping[str, Any]]
) -> tuple[str, ...]:
    epochs = [count(middle(of["training"]), settings.epochs) for of in flat.values()]
    if len(epochs) < 2:
        return ()
    return (
        (
            f"From q = {settings.tried()[0]} to {settings.tried()[-1]} the epochs go"
            f" {', '.join(epochs)}."
        ),
    )


def _block_sentence(
    settings: AccelerationSettings,
    found: Mapping[str, Mapping[str, Any]],
    best: Sequence[float | None],
) -> str:
    most, block, alone = (
        settings.epochs,
        middle(found[BLOCK]["training"]),
        middle(found[BLOCK_ALONE]["training"]),
    )
    than = (
        "fewer than"
        if block < middle(best)
        else "as many as"
        if block == middle(best)
        else "more than"
    )
    return (
        f"Our default, a damped solve on each block, needs {count(block, most)} epochs (validation:"
        f" {count(middle(found[BLOCK]['validation']), most)}), {than} the best constant step with"
        f" EigenPro; without any direction flattened {count(alone, most)}."
    )


def _figure(settings: AccelerationSettings, found: Mapping[str, Mapping[str, Any]]) -> Figure:
    flat = [way for way in found if way.startswith("EigenPro")][-2:]
    ways = [SGD, *flat, BLOCK]
    longest = max(len(history) for way in ways for history in found[way]["history"])
    at = sorted({round(2 ** (i / 2)) for i in range(math.ceil(2 * math.log2(max(longest, 2))) + 1)})
    return Figure(
        kind="lines",
        title="Training loss by epoch",
        groups={
            way: tuple(
                float(
                    np.mean(
                        [
                            math.log10(history[min(e, len(history)) - 1])
                            for history in found[way]["history"]
                        ]
                    )
                )
                for e in at
            )
            for way in ways
        },
        axis="log₁₀ of the loss, that of f = 0 being 0",
        at=tuple(math.log2(e) for e in at),
        across="log₂ of the epochs (5 is 32 epochs)",
        note=(
            f"Means of {settings.repeats} repeats. A line is flat where both targets are met: no"
            " more epochs were run."
        ),
    )


def _spread(
    settings: AccelerationSettings, found: Mapping[str, Mapping[str, Any]]
) -> tuple[Figure, ...]:
    if any(value is None for of in found.values() for value in of["training"]):
        return ()
    groups = {
        way: tuple(a / b for a, b in zip(found[SGD]["training"], of["training"], strict=True))
        for way, of in found.items()
        if way != SGD
    }
    return (
        Figure(
            kind="boxes",
            title="How many times fewer epochs than SGD to the training target",
            groups=groups,
            axis=f"times fewer, {settings.repeats} repeats",
            note=(
                "Boxes: quartiles and median; whiskers: farthest within 1.5 box lengths; rings:"
                " beyond; diamond: mean."
            ),
        ),
    )


def _part(settings: AccelerationSettings, found: Mapping[str, Mapping[str, Any]]) -> TitledTable:
    most = settings.epochs
    rows = tuple(
        (
            f"{way}, q = {of['directions'][0]}" if way in (SGD, BLOCK) else way,
            *(count(middle(of[kind]), most) for kind in ("training", "validation")),
            f"{_mean(of['predicted']):,.0f}", f"{_mean(of['predicted_batch']):,.1f}", f"{_mean(of['measured']):,.1f}",
            "solve" if of["step"][0] == "block" else f"{_mean(of['step']):.1f}",
        )
        for way, of in found.items()
    )  # fmt: skip
    header = (
        "",
        "epochs, training",
        "validation",
        "λ₁/λ_(q+1)",
        "for this batch",
        "outside the subsample",
        "step η",
    )
    return TitledTable(
        title="Epochs, and the acceleration predicted",
        table=PageTable(header=header, rows=rows),
        note=(
            "For this batch: η(m) with q directions over η(m) without, by the subsample's spectrum."
            " Outside: how many times λ₁ of the last block falls."
        ),
    )


ACCELERATION = Reproduction(run=run, settings=AccelerationSettings)
