"""Poison within the columns' range on the page: claims by a second route, and an attack that is
held against them.
"""

import itertools

import numpy as np
import pytest
from scipy.special import expit, lambertw
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.svm import SVC, LinearSVC

import surelearn
from surelearn.attacks import Allowed, LinearObjective, cancel_gradient, neutral_rows
from surelearn.auditing.sections.poisoning.work import claims_of, proved
from surelearn.bounds.poisoning import (
    poisoning_threshold,
    poisoning_threshold_machines,
    poisoning_threshold_regression,
)
from surelearn.claim import Claim
from surelearn.linear import LogisticRegression, SupportVectorMachine
from surelearn.robust.poisoning.within_range import (
    FLIPPED,
    MOVED,
    REVERSED,
    Box,
    LinearFit,
    flipped_claim,
)

PULL = float(lambertw(1 / np.e).real)
OURS = LogisticRegression(regularization=0.01, epochs=0, finish="newton")


KNOWN = {}  # what was proved of a model already: the attack takes a second


def proofs(model, rows):
    """What is proved of a model fitted to rows X, y, by label, and the attack that was tried."""
    X, y, new, truth = rows
    if (key := (repr(model), X.shape)) not in KNOWN:
        result = proved(model.fit(X, y), X, y, new, truth, None, 0)
        KNOWN[key] = {label: claim for label, _, claim in claims_of(result)}, result["tried"]
    return KNOWN[key]


def scaled(X):
    middle, half = (X.max(0) + X.min(0)) / 2, (X.max(0) - X.min(0)) / 2
    return (X - middle) / half, middle, half


def test_no_claim_on_the_page_is_above_what_an_attack_needs():
    options = {"ledger": False, "refits": 0, "curve_repeats": 0, "n_jobs": 1, "effort": 0.2}
    skip = ("robustness", "membership", "attribution")
    section = surelearn.audit("breast_cancer", models={"it": PeerLogistic()}, skip=skip, **options)[
        "poisoning"
    ]
    claims = {claim.label: claim for claim in section.claims}
    attack = next(finding for finding in section.findings if finding.code == "SL624")
    assert set(claims) == {FLIPPED, REVERSED}
    assert claims[REVERSED].value == pytest.approx(0.092, abs=0.005)
    # which turned every answer; −w alone "needed" 29.83
    assert 0.35 < claims[FLIPPED].value < 0.433
    assert (
        attack.numbers["threshold"]
        < attack.numbers["fraction"]
        <= 1.15 * attack.numbers["threshold"]
    )
    assert attack.numbers["flipped"] == 1
    assert (
        "fails at 0.9 × the threshold certified for these rows, flips every prediction at 1.1 ×"
        in attack.text
    )
    assert all(claim.confidence == "deterministic" for claim in claims.values())
    assert all(
        any("a filter refuses" in line for line in claim.assumptions) for claim in claims.values()
    )
    assert any("without a filter, nothing is claimed" in note for note in section.notes)


def test_with_so_much_poison_every_answer_of_a_scikit_learn_fit_is_turned(cancer):
    """0.433 poisoned rows per clean row, inside the range."""
    X, y, new, truth = cancer
    model = PeerLogistic().fit(X, y)
    objective = LinearObjective(regularization=1 / (2 * len(y)))
    box, w = Allowed(low=X.min(0), high=X.max(0)), np.append(model.coef_, model.intercept_)
    target = -5e-4 * w
    start = neutral_rows(X, y, 130, box)
    poison = cancel_gradient(
        objective, target, X, y, count=130, allowed=box, start=start, restarts=1, refit=False
    )
    assert box.holds(poison.X, poison.y, y)
    again = PeerLogistic(tol=1e-10, max_iter=10000).fit(
        np.vstack([X, poison.X]), np.append(y, poison.y)
    )
    assert (again.predict(X) != model.predict(X)).all()
    assert np.mean(again.predict(new) != truth) > 0.9 > 0.1 > np.mean(model.predict(new) != truth)
    claims, _ = proofs(PeerLogistic(), cancer)
    assert claims[REVERSED].value < claims[FLIPPED].value <= poison.fraction
    gradient = objective.gradient(-w, X, y)
    mutant = poisoning_threshold(
        float(-w @ gradient), reach=float(np.abs(X @ w[:-1] + w[-1]).max())
    )
    assert mutant > 10 * poison.fraction  # the claim for −w alone, read as one for every answer


def test_below_the_threshold_gradient_cancelling_fails_and_just_above_it_arrives(cancer):
    for model in (OURS, LogisticRegression(regularization=1e-3, epochs=0, finish="newton")):
        claims, tried = proofs(model, cancer)
        assert tried["multiples"] == [0.9, 1.1]
        assert tried["flipped"][0] < 0.9
        assert tried["flipped"][1] == 1
        assert tried["threshold"] == pytest.approx(claims[FLIPPED].value)  # 300 rows are all


def test_the_attack_comes_near_where_a_class_is_rare():
    X, y = make_classification(
        300, 5, n_informative=3, n_redundant=0, flip_y=0.02, weights=[0.93], random_state=0
    )
    claims, tried = proofs(clone(OURS), (X, y, X, y))
    assert claims[FLIPPED].value > 0.6
    assert tried["multiples"][-1] <= 1.25
    assert tried["flipped"][-1] == 1
    assert tried["flipped"][0] < 0.9


def test_claims_of_earlier_audits_are_still_read_and_recomputed():
    label = "poison rows per clean row needed to turn all scores round (−w)"
    for claim in (
        poisoning_threshold.certify(8.3, decay=0.1, label=label),
        poisoning_threshold_machines.certify(
            inner=[0.1] * 3, share=[0.6] * 3, together=2, label=label
        ),
        poisoning_threshold_regression.certify(
            0.1, 2.0, label="poison rows per clean row needed to mirror all predictions"
        ),
    ):
        again = Claim.from_dict(claim.to_dict())
        assert again == claim
        assert (again.recompute(), again.confidence) == (claim.value, "always")


@pytest.mark.parametrize(
    ("model", "kappa", "factor", "penalty", "intercept"),
    [
        (OURS, PULL, 1.0, 0.01, 1.0),
        (PeerLogistic(C=0.5), PULL, 1.0, 1 / 300, 0.0),
        (LinearSVC(C=0.5), 0.25, 1 / 8, 1 / 300, 1.0),
        (LinearSVC(C=0.5, intercept_scaling=2.0), 0.25, 1 / 8, 1 / 300, 0.25),
    ],
)
def test_the_threshold_of_flipped_answers_is_that_of_the_best_column(
    model, kappa, factor, penalty, intercept, cancer
):
    X, y, *_ = cancer
    claim = proofs(model, cancer)[0][FLIPPED]
    sign = np.where(y == 1, 1.0, -1.0)
    right = sign * model.decision_function(X) > 0
    columns, middle, half = scaled(X)
    values = []
    for j, s in itertools.product(range(X.shape[1]), (1, -1)):
        along = s * sign * columns[:, j]
        gain = np.where(right, along, np.minimum(along, 0)).mean()
        q = factor * 2 * penalty * (1 + intercept * middle[j] ** 2) / half[j] ** 2
        values.append((gain - kappa * np.mean(~right) - q) / (1 + q))
    assert claim.value == pytest.approx(max(values), rel=1e-9)
    assert claim.recompute() == claim.value
    assert claim.covers.population == "poison within the columns' range"
    assert any("v is that of the column" in line for line in claim.assumptions)


def test_the_reach_of_the_weights_is_that_of_the_range_and_not_of_the_fit_rows():
    """Rows at the ends of two axes, judged by x₁ + x₂: no fit row scores above 1, a corner of
    the range scores 2.
    """
    Z = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    machine = LinearFit("logistic", np.ones((1, 2)), np.zeros(1), 0.0, None)
    claim = flipped_claim(machine, Box.of(Z), Z, np.array([1, 1, 0, 0]), ["a", "b"])
    assert claim.value == pytest.approx(0.5)  # 1 if poison could not lie where no fit row does


def test_hinge_loss_and_no_intercept(cancer):
    X = cancer[0]
    for model in (SVC(kernel="linear"), SupportVectorMachine(C=1.0)):
        claims, tried = proofs(model, cancer)
        assert tried is None
        assert claims[FLIPPED].inputs["loss"] == "hinge"
        assert 0.3 < claims[FLIPPED].value < 0.45
        assert MOVED not in claims
    without = LogisticRegression(
        regularization=0.01, epochs=0, finish="newton", fit_intercept=False
    )
    claim = proofs(without, cancer)[0][FLIPPED]
    reaches = {float(v) for v in np.abs(X).max(0)} | {
        float(np.maximum(w * X.min(0), w * X.max(0)).sum()) for w in without.coef_
    }
    # a column cannot be shifted
    assert any(claim.inputs["reach"] == pytest.approx(r) for r in reaches)


def test_the_threshold_of_reversed_weights(cancer):
    X, y, *_ = cancer
    claim = proofs(OURS, cancer)[0][REVERSED]
    w, b = OURS.coef_.ravel(), float(OURS.intercept_[0])
    ends = [b + sum(np.where(pick * w > 0, X.max(0), X.min(0)) * w) for pick in (1, -1)]
    margins = np.where(y == 1, 1.0, -1.0) * (X @ w + b)
    assert claim.value == pytest.approx(margins.mean() / max(map(abs, ends)))


def test_several_classes_have_reversed_and_moved_weights_only():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(regularization=0.01, epochs=0, finish="lbfgs")
    claims, tried = proofs(model, (X, y, X, y))
    assert tried is None
    assert set(claims) == {REVERSED, MOVED}
    corners = (
        np.array(list(itertools.product(*zip(X.min(0), X.max(0), strict=True)))) @ model.coef_.T
        + model.intercept_
    )
    scores = X @ model.coef_.T + model.intercept_
    gain = np.mean(scores[np.arange(len(y)), y] - scores.mean(1))
    assert claims[REVERSED].value == pytest.approx(
        gain / (corners.mean(1, keepdims=True) - corners).max()
    )
    longest = np.sqrt((np.abs(X).max(0) ** 2).sum() + 1)
    norm = np.sqrt((model.coef_**2).sum() + (model.intercept_**2).sum())
    expected = 0.02 * norm / 2 / (np.sqrt(2) * longest + 0.02 * 1.5 * norm)
    assert claims[MOVED].value == pytest.approx(expected, rel=1e-3)
    assert claims[MOVED].value <= expected


def test_moved_weights_need_a_penalty_on_every_weight(cancer):
    X, y, *_ = cancer
    assert MOVED not in proofs(PeerLogistic(), cancer)[0]  # its intercept is free
    claim = proofs(OURS, cancer)[0][MOVED]
    w = np.append(OURS.coef_, OURS.intercept_)
    longest = np.sqrt((np.abs(X).max(0) ** 2).sum() + 1)
    norm = np.linalg.norm(w)
    assert claim.value == pytest.approx(0.02 * norm / 2 / (longest + 0.02 * 1.5 * norm), rel=1e-6)
    design, sign = np.column_stack([X, np.ones(len(X))]), np.where(y == 1, 1.0, -1.0)
    gradient = -(sign * expit(-sign * (design @ w))) @ design / len(y) + 0.02 * w
    assert claim.inputs["residual"] == pytest.approx(np.linalg.norm(gradient), abs=1e-12)
