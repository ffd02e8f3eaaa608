"""Answers that somebody wrote down, from arrays: `certify(answers=, truth=)` is `certify` of a model that
answers so.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from surelearn import certify
from surelearn.subject.recorded import RecordedScores, content_of, from_columns

TRUTH = np.array(["a", "b", "b", "a", "b"] * 40)
SAID = np.where(np.arange(200) % 11 == 0, "c", TRUTH)


def test_it_is_the_certificate_of_a_model_that_answers_so():
    made = certify(answers=SAID, truth=TRUTH)
    model = certify(
        lambda X: X[:, 0],
        SAID[:, None],
        TRUTH,
        task="classification",
        classes=["a", "b"],
        unseen=["c"],
    )
    assert made.facts.values == model.facts.values
    assert [claim.value for claim in made.claims] == [claim.value for claim in model.claims]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_columns_of_frames(kind):
    frame = kind({"said": SAID, "truth": TRUTH})
    made = certify(answers=frame["said"], truth=frame["truth"])
    assert made["risk"].value == certify(answers=SAID, truth=TRUTH)["risk"].value


def test_other_answers_are_compared_with_and_verified():
    other = np.where(np.arange(200) % 3 == 0, "a", TRUTH)
    made = certify(answers=SAID, truth=TRUTH, baseline=other)
    assert made["gain"].measured == pytest.approx(np.mean(other != TRUTH) - np.mean(SAID != TRUTH))
    assert made.verify(answers=SAID, truth=TRUTH, baseline=other)
    changed = np.where(np.arange(200) == 7, "c", SAID)
    assert not made.verify(answers=changed, truth=TRUTH, baseline=other)
    assert not made.verify(answers=SAID, truth=np.roll(TRUTH, 1), baseline=other)


def test_numbers_with_a_fraction_are_a_regression():
    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    made = certify(answers=y + 0.1, truth=y, loss_bound=10.0)
    assert made["mean_loss"].measured == pytest.approx(0.1)
    assert from_columns([1.0, 2.0], [1.0, 1.0])[2]["task"] == "classification"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"answers": [1, 2], "truth": [1]}, "answers has 2 rows and truth has 1"),
        ({"answers": ["a", None], "truth": ["a", "b"]}, "answers must not be missing: 1 of 2"),
        ({"answers": ["a"]}, "answers go with truth"),
        ({"truth": ["a"]}, "answers go with truth"),
        ({"answers": [[1]], "truth": [1]}, "one value per row"),
        ({"answers": [1, 1], "truth": [1, 0], "y": [1, 0]}, "and with no model, X or y"),
    ],
)
def test_refused(given, said):
    with pytest.raises(ValueError, match=said):
        certify(**given)


def test_scores_that_are_no_probabilities_keep_their_order():
    rows = pd.DataFrame({"s": [-1e300, -3.0, 0.0, 2.0, 1e300]})
    model = RecordedScores(
        "s", ("no", "yes"), content_of(rows["s"]), positive="yes", threshold=0.0, probable=False
    )
    found = model.predict_proba(rows)
    assert np.all(np.diff(found[:, 1]) > 0)
    assert (found >= 0).all()
    assert found[2, 1] == 0.5
    assert model.predict(rows).tolist() == ["no", "no", "yes", "yes", "yes"]
    assert np.allclose(found.sum(axis=1), 1)
