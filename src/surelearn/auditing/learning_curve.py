"""Section: would more data help?"""

from __future__ import annotations

import numpy as np

from surelearn import jobs
from surelearn.auditing.context import Context
from surelearn.auditing.refitting import refit
from surelearn.report import Chart, Section
from surelearn.selection.cross_validation import losses_of, take

SHARES = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
TEST_SHARE = 0.2


def section(context: Context) -> Section | None:
    """Error against rows used for fitting, on a fifth of the fit rows held out in turn; never on certify rows."""
    repeats = context.options.curve_repeats
    if context.selection is None or repeats == 0:
        return None
    X, y = context.rows("train")
    least = max(10, 3 * (np.unique(y).size if context.task == "classification" else 3))
    tasks, sizes, truths = [], [], []
    for repeat in range(repeats):
        order = np.random.default_rng(context.seed(f"curve/{repeat}")).permutation(len(y))
        test, rest = order[: int(TEST_SHARE * len(y))], order[int(TEST_SHARE * len(y)) :]
        for share in SHARES:
            size = max(least, round(share * rest.size))
            if size > rest.size or (context.task == "classification" and np.unique(y[rest[:size]]).size < 2):
                continue
            arguments = {"model": context.unfitted, "X": X, "y": y, "rows": rest[:size], "new": take(X, test)}
            tasks.append(jobs.Task(key=f"curve/{repeat}/{share}", function=refit, arguments=arguments))
            sizes.append(size)
            truths.append(y[test])
    results = context.runner.run(tasks, "learning curve")
    errors: dict[int, list[float]] = {}
    for size, truth, result in zip(sizes, truths, results, strict=True):
        errors.setdefault(size, []).append(float(losses_of(result["predictions"], truth, context.task).mean()))
    x = sorted(errors)
    if len(x) < 2:
        return None
    mean = [float(np.mean(errors[size])) for size in x]
    half = [float(np.std(errors[size])) for size in x]
    data = {
        "x": x,
        "y": mean,
        "low": [max(0.0, m - h) for m, h in zip(mean, half, strict=True)],
        "high": [m + h for m, h in zip(mean, half, strict=True)],
        "x_label": "rows",
        "unit": "rate" if context.task == "classification" else "number",
    }
    chart = Chart(kind="curve", title="Error on rows held out in turn, against rows used for fitting", data=data)
    return Section(key="learning curve", title="Would more data help?", notes=(_advice(x, mean, half),), charts=(chart,))


def _advice(x: list[int], mean: list[float], half: list[float]) -> str:
    """What the last doubling of rows brought, against the spread between repeats."""
    before = max((i for i in range(len(x)) if x[i] <= x[-1] / 2), default=0)
    drop = mean[before] - mean[-1]
    if drop > max(half[before], half[-1], 0.05 * mean[before]):
        return f"Still falling from {x[before]:,} to {x[-1]:,} rows: more rows of this kind would help the model."
    return f"Flat from {x[before]:,} rows on: more rows of this kind would tighten the guarantee more than the model."
