"""What poison would do: influence against refits, every kind of model, and reasons."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import lambertw
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC

import surelearn
from surelearn.attacks.poison_labels import change_labels
from surelearn.auditing.sections.poisoning import work as poisoning
from surelearn.auditing.sections.poisoning.influence import influence
from surelearn.auditing.sections.poisoning.words import _tried
from surelearn.auditing.sections.poisoning.work import aimed, flipped, further
from surelearn.lacking import Lacking
from surelearn.linear import LogisticRegression, Ridge
from surelearn.robust import PartitionClassifier

QUICK = {
    "ledger": False, "refits": 0, "curve_repeats": 0, "n_jobs": 1, "effort": 0.5,
    "skip": ("robustness", "membership", "attribution"), "show_rows": True,
}  # fmt: skip
LOGISTIC = LogisticRegression(regularization=0.01, epochs=0, finish="newton")
PULL = float(lambertw(1 / np.e).real)


def audited(data="breast_cancer", model=LOGISTIC, **options):
    return surelearn.audit(data, models={"it": clone(model)}, **{**QUICK, **options})


def codes(section):
    return {finding.code: finding for finding in section.findings}


# Which rows count most.


def test_the_influence_of_a_row_is_that_of_a_refit(cancer):
    X, y, new, truth = cancer
    n = len(y)
    found = influence(
        clone(LOGISTIC).fit(X, y),
        X,
        y,
        new,
        truth,
        "classification",
        5,
        np.arange(n),
        np.full(n, np.nan),
        0,
    )
    assert found["method"] == "exact"

    def loss(rows):
        model = (
            clone(LOGISTIC).set_params(regularization=0.01 * n / len(rows)).fit(X[rows], y[rows])
        )
        return -np.log(model.predict_proba(new)[np.arange(len(truth)), truth]).mean()

    full = loss(np.arange(n))
    refits = [loss(np.delete(np.arange(n), row)) / full - 1 for row in found["rows"]]
    np.testing.assert_allclose(found["changes"], refits, atol=1e-4)
    every = np.abs([loss(np.delete(np.arange(n), row)) / full - 1 for row in range(0, n, 7)]).max()
    assert np.abs(found["changes"][0]) >= every - 1e-4


def test_to_first_order_it_is_near_and_by_refits_it_is_exact(cancer):
    X, y, new, truth = cancer
    n, hard = len(y), np.full(len(y), np.nan)
    rough = influence(
        PeerLogistic().fit(X, y), X, y, new, truth, "classification", 5, np.arange(n), hard, 0
    )
    assert rough["method"] == "influence function"
    row = rough["rows"][0]
    losses = []
    for rows in (np.arange(n), np.delete(np.arange(n), row)):
        model = PeerLogistic(tol=1e-8, max_iter=1000).fit(X[rows], y[rows])
        losses.append(-np.log(model.predict_proba(new)[np.arange(len(truth)), truth]).mean())
    assert rough["changes"][0] == pytest.approx(losses[1] / losses[0] - 1, rel=0.6)
    hard[[3, 5]] = 9.0
    refits = influence(
        LinearSVC().fit(X, y), X, y, new, truth, "classification", 6, np.arange(n), hard, 0
    )
    assert refits["method"] == "refits"
    # the rest of the budget goes to the fit with all rows, and to other seeds
    assert refits["tried"] == 2
    assert set(refits["rows"]) == {3, 5}


def test_the_row_with_a_wrong_label_is_found_by_its_number_in_the_table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    frame = pd.DataFrame(
        {
            "x": x,
            "z": rng.normal(size=400),
            "y": np.where(x + 0.3 * rng.normal(size=400) > 0, "b", "a"),
        }
    )
    fitted = surelearn.audit(frame, target="y", models={"it": LOGISTIC}, **QUICK)["poisoning"]
    row = next(int(line[0]) - 1 for line in fitted.tables[-1].rows)
    frame.loc[row, ["x", "y"]] = [6.0, "a"]
    section = surelearn.audit(frame, target="y", models={"it": LOGISTIC}, **QUICK)["poisoning"]
    lines = {line[0]: line for line in section.tables[-1].rows}
    if str(row + 1) in lines:  # unless its new hash made it a certify row
        assert lines[str(row + 1)][1] == "6"
    assert section.tables[-1].header == ("training row", "x", "z", "y", "loss if removed")
    for line in section.tables[-1].rows:
        assert line[3] == frame["y"][int(line[0]) - 1]
        assert float(line[1]) == pytest.approx(frame["x"][int(line[0]) - 1], rel=1e-3)


# The damage.


def test_labels_change_as_many_as_asked_for():
    y = np.array(["a", "b", "c"] * 20)
    assert (change_labels(y, 9, "classification") != y).sum() == 9
    numbers = np.linspace(0.0, 10.0, 21)
    moved = change_labels(numbers, 5, "regression")
    assert (moved != numbers).sum() in (4, 5)  # the middle may stay
    assert set(moved[(moved != numbers) & (numbers < 5)]) <= {10.0}
    assert set(moved[(moved != numbers) & (numbers > 5)]) <= {0.0}


def test_aimed_poison_does_more_than_copies_with_other_labels(cancer):
    X, y, new, truth = cancer
    model = make_pipeline(StandardScaler(), LOGISTIC).fit(X, y)
    shared = {"X": X, "y": y, "new": new, "truth": truth, "task": "classification", "count": 30}
    placed = [aimed(model, **shared, seed=seed, cut=None)["risk"] for seed in range(3)]
    rng = np.random.default_rng(0)
    copies = []
    for _ in range(3):
        rows = rng.permutation(len(y))[:30]
        copied = clone(model).fit(np.vstack([X, X[rows]]), np.append(y, 1 - y[rows]))
        copies.append(np.mean(copied.predict(new) != truth))
    clean = flipped(model, **{**shared, "count": 0}, seed=0)["risk"]
    assert clean == np.mean(model.predict(new) != truth)
    assert np.mean(placed) > 2 * max(np.mean(copies), clean)


@pytest.mark.parametrize(
    ("model", "aimed_by"),
    [
        (SVC(), "on a surrogate, a kernel ridge regression"),
        (PeerLogistic(), ""),
        (RandomForestClassifier(10, random_state=0), None),
        (HistGradientBoostingClassifier(max_iter=10, early_stopping=False), None),
        (GaussianNB(), "on a surrogate, a logistic regression"),
    ],
)
def test_every_model_has_its_damage_and_its_rows(model, aimed_by):
    section = audited(model=model)["poisoning"]
    found, (chart,) = codes(section), section.charts
    assert {"SL621", "SL622"} <= set(found)
    assert chart.data["x"] == (0, 1, 3, 10, 20)
    assert all(
        low <= mean <= high
        for low, mean, high in zip(*(chart.data[k] for k in ("low", "y", "high")), strict=True)
    )
    assert chart.data["y"][-1] > chart.data["y"][0]
    assert ("SL623" in found) == (aimed_by is not None)
    if aimed_by is None:
        assert any("has no gradient to aim poison by" in note for note in section.notes)
        assert "hardest to predict" in found["SL622"].text
    else:
        assert aimed_by in found["SL623"].text
    if aimed_by is None or isinstance(model, GaussianNB):
        assert any("threshold is proved for" in note for note in section.notes)
        assert not section.claims
    else:
        if isinstance(model, SVC):
            theorems, label = (
                ["poisoning_threshold"],
                "poisoned rows per clean row to exactly the weights −w (one target)",
            )
        else:
            theorems = ["poisoning_threshold_flipped", "poisoning_threshold_reversed"]
            label = (
                "poisoned rows per clean row, within the columns' range, to flip the answer on"
                " every fit row"
            )
        assert [claim.theorem for claim in section.claims] == theorems
        assert section.claims[0].label == label
        assert any("Measured" in note for note in section.notes)


def test_several_classes_and_numbers():
    section = audited("iris", LogisticRegression(regularization=0.01, epochs=0, finish="lbfgs"))[
        "poisoning"
    ]
    assert [claim.theorem for claim in section.claims] == [
        "poisoning_threshold_reversed",
        "poisoning_threshold_moved",
    ]
    assert "first order" in codes(section)["SL622"].text
    section = audited("diabetes", Ridge(regularization=0.1, regularize_intercept=False))[
        "poisoning"
    ]
    assert (
        "of the training targets moved to the far end of their range"
        in codes(section)["SL621"].text
    )
    assert "mean absolute error" in section.charts[0].title.lower()
    (claim,) = section.claims
    assert claim.theorem == "poisoning_threshold_regression"
    assert claim.recompute() == claim.value > 0
    assert "the mean absolute error" in section.notes[1]
    assert "exact" in codes(section)["SL622"].text


def test_a_kernel_machine_is_left_out_exactly():
    pytest.importorskip("torch")
    section = surelearn.audit("breast_cancer", models="kernel machine", **QUICK)["poisoning"]
    assert "exact" in codes(section)["SL622"].text
    assert section.claims[0].value > 0
    section = surelearn.audit("diabetes", models="kernel machine", **QUICK)["poisoning"]
    assert "exact" in codes(section)["SL622"].text
    assert section.claims[0].theorem == "poisoning_threshold_regression"


def test_a_vote_over_partitions_says_what_cannot_change_it(cancer):
    X, y, new, truth = cancer
    options = {name: QUICK[name] for name in ("ledger", "skip", "n_jobs")}
    model = PartitionClassifier(partitions=20).fit(X, y)
    section = surelearn.audit(model, new, truth, **options)["poisoning"]
    accuracy, alone = section.claims
    withstood = (model.predict(new) == truth) & (model.unchanged_rows(new) >= 2)
    assert (accuracy.theorem, accuracy.quantity) == (
        "clopper_pearson_lower",
        "accuracy_under_poison",
    )
    assert accuracy.inputs["successes"] == withstood.sum()
    assert alone.theorem == "partition_radius"
    assert alone.value == model.unchanged_rows(new)[len(new) // 2]
    assert alone.covers.rows == f"row {1 + len(new) // 2}"
    assert all(claim.recompute() == claim.value for claim in section.claims)
    assert (
        accuracy.label == "accuracy on new rows whichever 2 training rows are inserted or deleted"
    )
    few = surelearn.audit(PartitionClassifier(partitions=5).fit(X, y), new, truth, **options)[
        "poisoning"
    ].claims[0]
    assert few.label == "accuracy on new rows whichever training row is inserted or deleted"
    grouped = surelearn.audit(model, new, truth, groups=np.arange(len(truth)) // 2, **options)[
        "poisoning"
    ]
    assert [claim.theorem for claim in grouped.claims] == ["partition_radius"]
    assert "No claim about new rows under poison: rows belong together in groups." in grouped.notes
    copied = surelearn.audit(model, np.repeat(new, 3, axis=0), np.repeat(truth, 3), **options)
    assert copied.verdict.kind == "no verdict"
    assert [claim.theorem for claim in copied["poisoning"].claims] == ["partition_radius"]
    assert (
        "No claim about new rows under poison: rows are not independent draws."
        in copied["poisoning"].notes
    )
    scaled = make_pipeline(StandardScaler(), PartitionClassifier()).fit(X, y)
    section = surelearn.audit(scaled, new, truth, **options)["poisoning"]
    assert not section.claims
    assert section.notes[-1].startswith(
        "Nothing is proved about its vote over partitions: steps before it may have learned"
    )
    section = audited(model=PartitionClassifier(), effort=0.1)["poisoning"]
    assert not section.claims
    assert "the step 'columntransformer' was fitted on the same rows" in section.notes[-1]


def test_a_constant_is_not_moved_by_few_labels():
    section = audited(model=DummyClassifier())["poisoning"]
    assert "does not raise errors" in codes(section)["SL621"].text
    assert codes(section)["SL621"].severity == "info"


def test_a_decision_threshold_is_kept():
    section = audited(positive="malignant", threshold=0.3)["poisoning"]
    assert {"SL621", "SL622", "SL623"} <= set(codes(section))


def test_the_same_page_whatever_the_number_of_jobs():
    one, two = (audited(n_jobs=n, effort=0.2)["poisoning"] for n in (1, 2))
    assert one == two


# Models fitted elsewhere, switched off, and what goes wrong.


def test_a_model_fitted_elsewhere_cannot_be_poisoned(cancer):
    X, y, *_ = cancer
    options = {name: QUICK[name] for name in ("ledger", "skip", "n_jobs")}
    section = surelearn.audit(
        lambda rows: (rows[:, 0] < 0).astype(int), X, y, task="classification", classes=[0, 1], **options
    )["poisoning"]  # fmt: skip
    assert section.notes[0].startswith("Not measured: the rows it was fitted on")
    assert not section.findings


def test_switched_off():
    result = audited(skip=(*QUICK["skip"], "poisoning"))
    assert "poisoning" not in [section.key for section in result.sections]


def boom(**arguments):
    raise RuntimeError("it broke")


def test_what_raises_is_a_sentence_and_the_rest_stays(monkeypatch):
    monkeypatch.setattr(poisoning, "influence", boom)
    section = audited(model=GaussianNB())["poisoning"]
    assert "SL621" in codes(section)
    assert "It raised RuntimeError: it broke." in section.notes
    monkeypatch.setattr(poisoning, "flipped", boom)
    result = audited(model=GaussianNB())
    assert result["poisoning"].notes == ("Not measured: it raised RuntimeError: it broke",)
    assert len(result.sections) > 1


class NotANumber(GaussianNB):
    def predict(self, X):
        return np.full(len(X), np.nan)


def test_predictions_that_are_no_numbers_are_a_sentence(cancer):
    X, y, new, truth = cancer
    said = flipped(NotANumber(), X, y.astype(float), new, truth.astype(float), "regression", 0, 0)
    assert isinstance(said, Lacking)
    assert "not numbers" in said.reason


class TestModules:
    @pytest.fixture
    def net(self):
        torch = pytest.importorskip("torch")

        class Net(torch.nn.Module):
            classes_ = np.array([0, 1])

            def __init__(self, outputs=2, width=4):
                super().__init__()
                self.inside, self.out = torch.nn.Linear(3, width), torch.nn.Linear(width, outputs)

            def forward(self, rows):
                return self.out(torch.relu(self.inside(rows)))

            def predict(self, X):
                with torch.no_grad():
                    scores = self(torch.tensor(np.asarray(X), dtype=torch.float32))
                return (
                    (scores.argmax(1) if scores.shape[1] > 1 else scores[:, 0] > 0)
                    .numpy()
                    .astype(int)
                )

        torch.manual_seed(0)
        return Net

    @pytest.fixture
    def rows(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 3))
        return X, (X[:, 0] + 0.3 * rng.normal(size=200) > 0).astype(int)

    def audit(self, module, X, y):
        options = {name: QUICK[name] for name in ("ledger", "skip", "n_jobs", "effort")}
        return surelearn.audit(module, X, y, classes=[0, 1], **options)["poisoning"]

    def test_one_is_trained_further(self, net, rows):
        section = self.audit(net(), *rows)
        assert "fine-tuned on 67 of the given rows" in section.notes[0]
        assert {"SL621", "SL622", "SL623"} <= set(codes(section))
        assert "first order" in codes(section)["SL622"].text
        assert section.charts[0].data["y"][-1] > section.charts[0].data["y"][0]

    def test_one_output_is_the_score_of_the_second_class(self, net, rows):
        found = further(net(1), *rows, "classification", 0.2, 0)
        assert found["clean"] < 0.25
        assert found["placed"] > found["clean"]

    def test_a_large_one_and_one_class_say_why_not(self, net, rows):
        X, y = rows
        assert "1 to 3,000 parameters" in self.audit(net(2, 2000), X, y).notes[0]
        assert "2 outputs for rows of 1 classes" in self.audit(net(), X, np.zeros_like(y)).notes[0]


@pytest.mark.parametrize(
    ("multiples", "flipped", "said"),
    [
        (
            [0.9, 1.1],
            [0.4, 1.0],
            (
                "fails at 0.9 × the threshold certified for these rows, flips every prediction at"
                " 1.1 × (0.5 "
            ),
        ),
        (
            [0.9, 1.1, 3.0],
            [0.4, 0.5, 0.7],
            "fails up to 1.1 × the threshold certified for these rows, flips only 70.0% of",
        ),
    ],
)
def test_the_trial_says_what_happened(multiples, flipped, said):
    tried = {
        "multiples": multiples,
        "flipped": flipped,
        "threshold": 0.45,
        "fraction": 0.5,
        "rows": 50,
    }
    (finding,) = _tried({"tried": tried})
    assert said in finding.text
    assert finding.numbers["factor"] == multiples[-1]
    assert _tried({"tried": None}) == []
