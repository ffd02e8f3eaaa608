"""How many refits the sections plan: by counted work, never by time."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import surelearn
from surelearn.auditing.options import Options
from surelearn.auditing.refitting import SHARES, affordable_refits, refit_work, too_costly
from surelearn.selection.combined import CombinedClassifier
from surelearn.subject.fitting_work import fit_work

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 6))
Y = (X[:, 0] + RNG.normal(size=400) > 0).astype(int)


def around(model, n=400, **options):
    """What a plan reads of a context."""
    return SimpleNamespace(
        X=np.zeros((n, 6)), y=np.zeros(n), model=model, columns=(), options=Options(**options)
    )


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(20),
        ExtraTreesClassifier(20),
        HistGradientBoostingClassifier(max_iter=20),
        LogisticRegression(),
    ],
)
def test_more_rows_cost_more_and_a_pipeline_costs_what_is_inside(model):
    fitted = model.fit(X, Y)
    learned = [fit_work(fitted, n, 6) - fit_work(None, n, 6) for n in (4000, 40_000)]
    assert 0 < learned[0] < learned[1]
    inside = make_pipeline(StandardScaler(), model).fit(X, Y)
    assert fit_work(inside, 4000, 6) == pytest.approx(fit_work(fitted, 4000, 6))
    twice = CombinedClassifier([("a", model), ("b", model)], [0.5, 0.5]).fit(X, Y)
    reading = fit_work(None, 4000, 6)
    assert fit_work(twice, 4000, 6) - reading == pytest.approx(
        2 * (fit_work(fitted, 4000, 6) - reading)
    )


def test_more_trees_cost_more_and_letters_count():
    few, many = (RandomForestClassifier(k).fit(X, Y) for k in (5, 50))
    assert fit_work(many, 4000, 6) > 4 * fit_work(few, 4000, 6)
    assert fit_work(few, 100, 1, letters=1e6) > 0.5 + fit_work(few, 100, 1)


def test_the_parts_of_the_work_are_all_of_it():
    assert sum(SHARES.values()) == pytest.approx(1)


def test_a_slow_model_is_refitted_less_often_and_effort_buys_refits():
    slow, fast = RandomForestClassifier(400).fit(X, Y), LogisticRegression().fit(X, Y)
    assert affordable_refits(around(fast), "stability", 4000) > 20
    few = affordable_refits(around(slow), "stability", 4000)
    assert few < 8
    assert affordable_refits(around(slow, effort=3.0), "stability", 4000) == pytest.approx(3 * few)
    assert affordable_refits(around(slow, refits=30), "stability", 4000) == pytest.approx(3 * few)
    # all sections' refits together, at 5,000 and at 50,000 rows
    for n, seconds in ((5000, 40), (50_000, 112)):
        context = around(slow, n)
        spent = sum(affordable_refits(context, key, n) * refit_work(context, n) for key in SHARES)
        assert spent == pytest.approx(seconds)


def test_a_slow_audit_says_how_often_it_refitted():
    """With next to no work: three refits and three without a row; the page states these numbers."""
    model = make_pipeline(StandardScaler(), RandomForestClassifier(4, random_state=0))
    made = {}
    for effort in (1.0, 1e-4):
        skip = ("attribution", "robustness", "membership", "poisoning", "learning_curve")
        options = {"effort": effort, "skip": skip, "ledger": False, "n_jobs": 1}
        frame = pd.DataFrame(X).add_prefix("x").assign(y=Y)
        audit = surelearn.audit(frame, target="y", models={"forest": model}, **options)
        found = {f.code: f for section in audit.sections for f in section.findings}
        made[effort] = found
    assert made[1.0]["SL401"].numbers["refits"] == 10
    assert made[1e-4]["SL401"].numbers["refits"] == 3
    assert made[1e-4]["SL401"].text.startswith("3 refits")
    assert made[1e-4]["SL402"].numbers["rows_left_out"] == 3


class Slow(LogisticRegression):
    """As a network that takes minutes."""

    def work_of_fit(self, rows):
        return rows / 2


def test_a_model_that_takes_minutes_is_not_refitted_and_the_page_says_what_pays():
    slow = around(Slow().fit(X, Y))
    costly = too_costly(slow, 400, 6)
    assert "a refit takes about 3.3 minutes of one core, and 6 of them are needed" in costly.reason
    assert "`--effort 3` pays for them" in costly.reason
    assert too_costly(around(slow.model, effort=3.0), 400, 6) is None
    assert too_costly(around(LogisticRegression().fit(X, Y)), 400, 30) is None


def test_the_page_of_such_a_model_has_no_refits():
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=Y)
    counted = []

    class Counted(Slow):
        def fit(self, X, y):
            counted.append(len(y))
            return super().fit(X, y)

    page = surelearn.audit(
        frame,
        target="y",
        models=Counted(),
        ledger=False,
        n_jobs=1,
        skip=("attribution", "robustness"),
    )
    assert len(counted) < 30  # three times five folds, and all
    for key in ("stability", "poisoning", "learning_curve"):
        assert "pays for them" in page[key].notes[0]
    assert any("pays for them" in note for note in page["membership"].notes)
