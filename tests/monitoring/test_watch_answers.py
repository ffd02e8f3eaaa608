"""Live answers against claims about recorded ones."""

import numpy as np
import pandas as pd
import pytest

from surelearn.auditing.answers import audit_answers
from surelearn.monitoring import Watch

RECORDED = pd.DataFrame({"t": ["a", "b"] * 100, "said": ["a", "b"] * 95 + ["b", "b"] * 5})


def test_a_word_that_is_no_label_is_an_error_also_of_a_label_that_is_none():
    certificate = audit_answers(RECORDED, truth="t", answer="said", ledger=False).certificate
    watch = Watch(certificate, "risk").update(["a", "c", "c"], ["a", "c", "no idea"])
    assert (watch.headline.rows, watch.headline.errors) == (3, 2)


def test_other_models_still_answer_with_their_classes_only():
    from surelearn import certify

    y = np.tile(["a", "b"], 100)
    made = certify(lambda X: X[:, 0], y[:, None], y, task="classification", classes=["a", "b"])
    with pytest.raises(ValueError, match="no answer of this model"):
        Watch(made, "risk").update(["a"], ["no idea"])


@pytest.mark.parametrize("low", [0.0, -5.0])
def test_a_grade_counts_by_what_it_lacks_of_the_best(low):
    table = pd.DataFrame({"g": np.linspace(7, 10, 300)})
    audit = audit_answers(table, grade="g", loss_range=(low, 10.0), ledger=False)
    watch = Watch(audit.certificate).update([10.0, 4.0, low], [0, 0, 0])
    assert watch.headline.errors == pytest.approx(0 + 6 + (10 - low))
    assert "mean g" in str(watch)
    with pytest.raises(ValueError, match="must lie between"):
        watch.update([11.0], [0])
    watch.update([low] * 60, [0] * 60)
    assert watch.alarm
