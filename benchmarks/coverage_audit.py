"""The whole promise with the full set of default candidates: how often is a verdict, or a claim of a page, untrue?

The populations, the exact truths and the counting are those of ``tests/auditing/test_promise.py``; there quick candidates
take part, here the ones that `surelearn.audit` fits when it is given none. Exits 1 if a promise is broken.

    python benchmarks/coverage_audit.py [--trials 2000] [--jobs 2]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "auditing"))

from test_promise import (  # noqa: E402
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
    at_most,
    recorded,
)

from surelearn.selection.candidates import default_candidates  # noqa: E402

CHUNK = 5


def candidates(population: Population, rows: int) -> dict[str, Recorded]:
    """The default candidates, as pipelines that keep their fitted copies."""
    kinds = dict.fromkeys(population.cells.columns, "number")
    made = default_candidates("classification", kinds, rows)
    return {candidate.name: recorded(*(step for _, step in candidate.model.steps)) for candidate in made}


# name: population, rows (or groups), share of the trials, options. Cross-validation fits 91 models an audit, so it gets few.
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
    return Scenario(population, candidates(population, fit), rows, options=options).run(trials, seed)


def merge(parts: list[Tally]) -> Tally:
    total = Tally()
    for part in parts:
        for field in ("trials", "verdict", "together", "headline"):
            setattr(total, field, getattr(total, field) + getattr(part, field))
        for field in ("kinds", "broken", "shares"):
            counter: Counter[str] = getattr(total, field)
            counter.update(getattr(part, field))
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=2000, help="audits in all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    asked = parser.parse_args()
    broken, start = [], time.perf_counter()
    print(f"δ = {DELTA}: a verdict, and all claims of a page together, may be untrue in 20% of audits, a headline in 10%")
    print(f"{'':26}{'audits':>7}{'verdict':>9}{'page':>7}{'headline':>10}{'guaranteed':>12}{'seconds':>9}")
    with ProcessPoolExecutor(asked.jobs) as pool:
        for name, (_, _, share, _) in SCENARIOS.items():
            chunks = max(1, round(share * asked.trials / CHUNK))
            tally = merge(list(pool.map(run, [name] * chunks, [CHUNK] * chunks, range(chunks))))
            n = tally.trials
            rates = f"{tally.verdict / n:9.1%}{tally.together / n:7.1%}{tally.headline / n:10.1%}"
            seconds = time.perf_counter() - start
            print(f"{name:26}{n:7,}{rates}{tally.kinds['guaranteed'] / n:12.0%}{seconds:9.0f}", flush=True)
            kept = at_most(tally.verdict, DELTA, n) and at_most(tally.together, DELTA, n)
            if not (kept and at_most(tally.headline, DELTA / 2, n)):
                broken.append(f"{name}: {tally}")
    print("\n".join(broken) or "every promise is kept (at most 4 standard errors above its δ)")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
