"""Numbers of a reproduction depend on its seed, and not on how many processes work on it."""

import pytest

from surelearn.jobs import Runner
from surelearn.papers import REPRODUCTIONS, reproduce
from surelearn.papers.page import Made, to_json

MADE = Made(name="n", command="c", seed=0, settings={}, meanings={})
SMALL = {"rows": 100, "repeats": 2}
FAST = {
    "thesis-figure-5.1": {"problems": 3, "variant_problems": 2},
    "thesis-figure-5.3": {"problems": 3, "variant_problems": 2},
    "double-descent": {"rows": 50, "repeats": 2},
    "rkhs-norm": {"rows": 160, "repeats": 2},
    "critical-batch-size": {**SMALL, "directions": 5, "target": 0.3},
    "gaussian-or-laplace": {**SMALL, "directions": 5, "batch": 25, "epochs": 2},
    "eigenpro-acceleration": {
        **SMALL,
        "subsample": 50,
        "directions": "3",
        "batch": 25,
        "target": 0.3,
        "epochs": 3,
    },
    "universal-approximation": {"widest": 8, "steps": 20, "repeats": 2},
}
OTHERWISE = {
    "thesis-table-5.1": "no tasks, and nothing is drawn",
    "thesis-table-5.2": "no tasks, and nothing is drawn",
    "shallows-heaviside": "no tasks, and nothing is drawn",
    "criteria-on-tables": "test_criteria_tables.py: its numbers hold seconds",
}


def test_every_reproduction_is_here_or_says_why_not():
    assert set(FAST) | set(OTHERWISE) == set(REPRODUCTIONS)


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("name", FAST)
def test_the_seed_and_n_jobs_do_what_they_should(name):
    one, again, other = (
        to_json(reproduce(name, seed=seed, runner=Runner(n_jobs=jobs), **FAST[name]), MADE)
        for seed, jobs in ((1, 1), (1, 2), (2, 1))
    )
    assert one == again
    assert one != other
