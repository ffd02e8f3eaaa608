"""The section on small changes where a model is not what it seems: names of classes, NaN, forms
that are another's.
"""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.auditing.test_robustness import KINDS, check_shape, context_of, fitted, section_of, table

from surelearn.auditing.sections.robustness.work import attack, prove, substitute
from surelearn.certification import certify
from surelearn.lacking import Lacking
from surelearn.robust.tables import moves_of


@pytest.mark.parametrize("labels", [(0, 1), (1, 2), ("n", "y"), ("y", "n")], ids=str)
@pytest.mark.parametrize("outputs", [1, 2])
def test_outputs_of_a_module_are_called_as_its_classes_are(labels, outputs):
    torch = pytest.importorskip("torch")
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = np.array(labels)[(X[:, 0] > 0).astype(int)]
    module = torch.nn.Linear(3, outputs)
    with torch.no_grad():
        module.weight.zero_()
        module.weight[-1, 0] = 1.0
        module.bias.zero_()
    certificate = certify(module, X, y, task="classification", classes=labels)
    assert certificate.facts["risk.rate"] == 0.0
    section = section_of(
        replace(context_of(lambda X: y[: len(X)], X, y), model=module, certificate=certificate)
    )
    chart = check_shape(section)
    expected = np.abs(X[:, 0]) / X[:, 0].std()
    assert chart.data["y"][0] == 1.0
    assert chart.data["y"][4] == pytest.approx((expected > 0.2).mean(), abs=0.02)
    assert chart.data["low"][4] == pytest.approx((expected > 0.2).mean(), abs=0.02)


def test_classes_that_do_not_fit_get_a_sentence():
    torch = pytest.importorskip("torch")
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    with pytest.raises(ValueError, match="the module gives 3 outputs for 2 classes"):
        certify(torch.nn.Linear(3, 3), X, y, task="classification", classes=[0, 1])
    with pytest.raises(ValueError, match="the module gives 1 output for 3 classes"):
        certify(torch.nn.Linear(3, 1), X, y, task="classification", classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"y holds [01], a label the model never saw"):
        certify(torch.nn.Linear(3, 2), X, y, task="classification", classes=["n", "y"])
    with pytest.raises(
        ValueError, match=r"the model predicts 0\.25, which is no class: it knows 0, 1"
    ):
        certify(lambda X: np.full(len(X), 0.25), X, y, task="classification", classes=[0, 1])
    with pytest.raises(ValueError, match="the baseline predicts 7, which is no class"):
        certify(
            lambda _: y,
            X,
            y,
            task="classification",
            classes=[0, 1],
            baseline=lambda X: np.full(len(X), 7),
        )


def only_at_home(table, answers):
    """Rows that it knows, and NaN for any other."""
    known = dict(zip(map(tuple, table), answers, strict=True))
    return lambda X: np.array([known.get(tuple(row), np.nan) for row in np.asarray(X)])


def test_nan_for_changed_rows_is_a_sentence_and_no_success():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(float)
    context = replace(
        context_of(lambda X: (X[:, 0] > 0).astype(float), X, y), model=only_at_home(X, y)
    )
    # with the model's message
    section = section_of(replace(context, options=replace(context.options, show_rows=True)))
    assert not section.findings
    assert section.notes[0].startswith("Not measured: ")
    assert "the model returned NaN for" in section.notes[0]
    frame, truth, _ = table()
    frame, numbers = frame[["a", "job"]], (truth == "yes").astype(float)

    def off_the_data(rows):  # NaN where the number was changed
        return np.where(rows["a"].isin(frame["a"]), np.resize(numbers, len(rows)), np.nan)

    def new_category(rows):
        return np.where(rows["job"] == "pilot", np.nan, 1.0)

    moves = moves_of(KINDS, frame, frame)
    attacked = attack(off_the_data, frame, numbers, frame, moves, None, budget=30, seed=0)
    assert attacked == Lacking("attack", "the model returned NaN for changed rows")
    cooks = frame[frame["job"] == "cook"]
    substituted = substitute(new_category, cooks, np.ones(len(cooks)), {"job": ["cook", "pilot"]})
    assert isinstance(substituted, Lacking)
    assert substituted.reason == "the model returned NaN for changed rows"


def test_labels_the_model_does_not_know_are_wrong_and_the_others_are_attacked():
    X = np.random.default_rng(0).normal(size=(100, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = make_pipeline(StandardScaler(), Peer()).fit(X, y)
    y[:10] = "perhaps"
    moves = moves_of({}, X, X)
    found = attack(model, X, y, X, moves, None, budget=30, seed=0)
    wrong = model.predict(X) != y
    assert wrong[:10].all()
    assert (found["distance"][wrong] == 0).all()
    assert (found["distance"][~wrong] > 0).all()
    assert np.isfinite(found["distance"][~wrong]).mean() > 0.8
    assert (attack(model, X[:10], y[:10], X, moves, None, budget=30, seed=0)["distance"] == 0).all()


class Bent(Peer):
    """Not linear, though it has coefficients."""

    def decision_function(self, X):
        return super().decision_function(np.sign(X) * np.abs(X) ** 0.2)


def test_a_model_that_is_not_what_it_looks_like_is_not_proved():
    section = section_of(fitted(Bent()))
    assert "a black-box attack" in section.notes[0]
    assert "it may score otherwise than LogisticRegression" in section.notes[0]
    assert not section.claims
    assert section.notes[2].startswith(
        "Nothing is proved about the model itself, for the same reason."
    )


class Clipped(StandardScaler):
    def transform(self, X):
        return np.clip(super().transform(X), -1, 1)


def test_a_preparation_that_is_not_what_it_looks_like_is_not_known():
    X, y, _ = table(missing=False)
    steps = ColumnTransformer([("numbers", Clipped(), ["a", "b"]), ("c", StandardScaler(), ["c"])])
    section = section_of(context_of(make_pipeline(steps, Peer()).fit(X, y), X, y, train=140))
    assert (
        "how the step 'numbers' of its preparation moves with a number is not known"
        in section.notes[0]
    )
    assert not section.claims


def test_a_threshold_on_a_score_is_not_one_on_a_probability():
    X = np.random.default_rng(0).normal(size=(100, 2))
    y = (X[:, 0] > 0).astype(int)
    options = {"threshold": 0.5, "pos_label": 1}
    by_score, by_chance = (
        FixedThresholdClassifier(Peer(C=0.1), response_method=method, **options).fit(X, y)
        for method in ("decision_function", "predict_proba")
    )
    moves = moves_of({}, X, X)
    for model, level in ((by_score, 0.5), (by_chance, 0.0)):  # a probability of 0.5 is a score of 0
        inside = model.estimator_
        expected = np.abs(inside.decision_function(X) - level) / (
            np.abs(inside.coef_[0]) @ X.std(axis=0)
        )
        np.testing.assert_allclose(
            prove(model, X, moves, None, 1.0, 0)["radii"]["values"], expected, rtol=1e-6
        )
