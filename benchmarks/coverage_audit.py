"""The whole promise with the full set of default candidates: how often is a verdict, or a claim of
a page, untrue?

The populations, the exact truths and the counting are those of ``tests/auditing/test_promise.py``;
there quick candidates take part, here the ones that `surelearn.audit` fits when it is given none.
Exits 1 if a promise is broken.

    python benchmarks/coverage_audit.py [--trials 2000] [--jobs 2]

Two other promises are those of ``tests/auditing/test_promise_in_use.py``, here with more audits:
samples of five columns of the Titanic's passengers, whose rows repeat (``--rule 1`` draws them as
version 0.1 did), and developers who try a gate again and again, on labels that are coins.

    python benchmarks/coverage_audit.py --titanic titanic.csv [--rule 1] [--trials 720] [--jobs 2]
    python benchmarks/coverage_audit.py --developers 200 [--tries 50] [--delta 0.3] [--jobs 2]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pandas as pd
from sklearn.naive_bayes import GaussianNB

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.auditing.test_promise import (  # noqa: E402
    BLURRED,
    DELTA,
    PATIENTS,
    SIGNAL,
    SPLIT,
    THREE,
    Population,
    Recorded,
    Scenario,
    Tally,
    recorded,
    with_replacement,
)
from tests.auditing.test_promise_in_use import passes_audits, passes_gate  # noqa: E402
from tests.simulation import at_most  # noqa: E402

from surelearn.auditing.sections import skippable  # noqa: E402
from surelearn.selection.catalogue import default_candidates  # noqa: E402
from surelearn.selection.split import split_rows  # noqa: E402

CHUNK = 5


def candidates(population: Population, rows: int) -> dict[str, Recorded]:
    """The default candidates, as pipelines that keep their fitted copies."""
    kinds = dict.fromkeys(population.cells.columns, "number")
    made = default_candidates("classification", kinds, rows)
    return {
        candidate.name: recorded(*(step for _, step in candidate.model.steps)) for candidate in made
    }


# name: population, rows (or groups), share of the trials, options. Cross-validation fits 91 models
# an audit, so it gets few.
SCENARIOS = {
    "a class that matters": (SIGNAL, 150, 0.3, {**SPLIT, "positive": 1, "slices": ["a"]}),
    "blurred, best preferred": (BLURRED, 120, 0.3, {**SPLIT, "prefer": "best"}),
    "three classes": (THREE, 150, 0.2, SPLIT),
    "groups": (PATIENTS, 60, 0.15, {**SPLIT, "group": "patient"}),
    "cross-validation": (SIGNAL, 120, 0.05, {}),
}


def run(name: str, trials: int, seed: int) -> Tally:
    population, rows, _, options = SCENARIOS[name]
    fit = round(0.6 * rows * population.size)
    return Scenario(population, candidates(population, fit), rows, options=options).run(
        trials, seed
    )


def merge(parts: list[Tally]) -> Tally:
    total = Tally()
    for part in parts:
        for field in ("trials", "verdict", "together", "headline"):
            setattr(total, field, getattr(total, field) + getattr(part, field))
        for field in ("kinds", "broken", "shares"):
            counter: Counter[str] = getattr(total, field)
            counter.update(getattr(part, field))
    return total


def run_passengers(path: str, rule: int, trials: int, seed: int) -> Tally:
    """Audits at δ = 5% of 300 passengers, drawn with replacement; the class is to be predicted
    from what repeats often.
    """
    table = pd.read_csv(path)[["Pclass", "Sex", "SibSp", "Parch", "Survived"]].rename(
        columns={"Pclass": "y"}
    )
    options = {"delta": 0.05, "skip": skippable(), "task": "classification"}
    scenario = Scenario(
        with_replacement(table), {"naive Bayes": GaussianNB()}, 300, options=options
    )
    with mock.patch("surelearn.auditing.dividing.split_rows", partial(split_rows, rule=rule)):
        return scenario.run(trials, seed)


def passengers(path: str, rule: int, trials: int, pool: ProcessPoolExecutor) -> int:
    chunks = round(trials / CHUNK)
    tally = merge(list(pool.map(partial(run_passengers, path, rule, CHUNK), range(chunks))))
    print(
        f"rule {rule}, {tally.trials} audits at δ = 5%: headline untrue in {tally.headline} (its"
        f" share: 2.5%), verdict in {tally.verdict}, any claim of the page in"
        f" {tally.together}\n{tally}"
    )
    kept = at_most(tally.headline, 0.025, tally.trials) and at_most(
        tally.together, 0.05, tally.trials
    )
    return 0 if kept and at_most(tally.verdict, 0.05, tally.trials) else 1


def run_developer(tries: int, delta: float, seed: int) -> tuple[bool, bool]:
    with TemporaryDirectory() as folder, mock.patch.dict(os.environ, XDG_STATE_HOME=folder):
        return passes_gate(seed, tries, delta, Path(folder)), passes_audits(seed, tries, delta)


def developers(count: int, tries: int, delta: float, pool: ProcessPoolExecutor) -> int:
    by_gate, by_audit = map(
        sum, zip(*pool.map(partial(run_developer, tries, delta), range(count)), strict=True)
    )
    print(
        f"{count} developers, {tries} tries, δ = {delta:g}: {by_gate} pass the gate falsely,"
        f" {by_audit} pass audits"
    )
    return 0 if at_most(by_gate, delta, count) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=2000, help="audits in all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument(
        "--titanic", help="the file of the Titanic's passengers: audit samples of it instead"
    )
    parser.add_argument("--rule", type=int, default=2, help="the rule by which these are divided")
    parser.add_argument("--developers", type=int, help="how many developers try a gate instead")
    parser.add_argument("--tries", type=int, default=50, help="how often each of them tries")
    parser.add_argument("--delta", type=float, default=0.3, help="the δ of their gate")
    asked = parser.parse_args()
    if asked.titanic or asked.developers:
        with ProcessPoolExecutor(asked.jobs) as pool:
            if asked.titanic:
                return passengers(asked.titanic, asked.rule, asked.trials, pool)
            return developers(asked.developers, asked.tries, asked.delta, pool)
    broken, start = [], time.perf_counter()
    print(
        f"δ = {DELTA}: a verdict, and all claims of a page together, may be untrue in 20% of"
        " audits, a headline in 10%"
    )
    print(
        f"{'':26}{'audits':>7}{'verdict':>9}{'page':>7}{'headline':>10}{'guaranteed':>12}{'seconds':>9}"
    )
    with ProcessPoolExecutor(asked.jobs) as pool:
        for name, (_, _, share, _) in SCENARIOS.items():
            chunks = max(1, round(share * asked.trials / CHUNK))
            tally = merge(list(pool.map(run, [name] * chunks, [CHUNK] * chunks, range(chunks))))
            n = tally.trials
            rates = f"{tally.verdict / n:9.1%}{tally.together / n:7.1%}{tally.headline / n:10.1%}"
            seconds = time.perf_counter() - start
            print(
                f"{name:26}{n:7,}{rates}{tally.kinds['guaranteed'] / n:12.0%}{seconds:9.0f}",
                flush=True,
            )
            kept = at_most(tally.verdict, DELTA, n) and at_most(tally.together, DELTA, n)
            if not (kept and at_most(tally.headline, DELTA / 2, n)):
                broken.append(f"{name}: {tally}")
    print("\n".join(broken) or "every promise is kept (at most 4 standard errors above its δ)")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
