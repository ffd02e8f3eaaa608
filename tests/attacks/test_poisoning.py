"""Poison aimed at parameters: derivatives, the transition at the threshold, soundness below it,
constraints, bad input.
"""

import numpy as np
import pytest

from surelearn.attacks.poison_allowed import Allowed
from surelearn.attacks.poison_objectives import LinearObjective
from surelearn.attacks.poisoning import (
    cancel_gradient,
    corrupt_parameters,
    neutral_rows,
    transition,
)
from surelearn.bounds.poisoning import (
    classification_pull,
    poisoning_threshold,
    poisoning_threshold_regression,
    regression_pull,
)

OBJECTIVES = {
    "logistic": LinearObjective(intercept=False),
    "padded": LinearObjective(regularization=0.01),
    "softmax": LinearObjective(classes=3, regularization=0.01),
    "squared hinge": LinearObjective("squared hinge", regularization=0.01),
    "exponential": LinearObjective("exponential", regularization=0.02),
    "squared": LinearObjective("squared", regularization=0.1),
    "huber": LinearObjective("huber", regularization=0.1, knee=0.4),
}
NUMBERS = ("squared", "huber")


def rows(objective, n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X @ np.arange(1.0, d + 1) / d + 0.5 * rng.logistic(size=n)
    if objective.loss in NUMBERS:
        return X, np.clip(score, -2, 2)
    return X, np.clip(np.floor(score + objective.classes / 2), 0, objective.classes - 1).astype(int)


def pull_and_threshold(objective, inner, decay=0.0):
    """What the theorems say: the largest pull of a row, with targets between −2 and 2, and the
    threshold.
    """
    if objective.loss in NUMBERS:
        given = {"target_bound": 2.0, "loss": objective.loss, "knee": 0.4}
        return regression_pull(**given), poisoning_threshold_regression(inner, decay=decay, **given)
    given = {"loss": objective.loss, "classes": objective.classes}
    return classification_pull(**given), poisoning_threshold(inner, decay=decay, **given)


def allowed_labels(loss):
    return Allowed(labels=(-2.0, 2.0) if loss in NUMBERS else None)


def inner_and_decay(objective, w, X, y):
    return float(w @ objective.gradient(w, X, y)), 2 * objective.regularization * float(w @ w)


def module():
    torch = pytest.importorskip("torch")
    from surelearn.attacks.poison_modules import ModuleObjective

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    return ModuleObjective(net, regularization=0.01)


def numeric(function, at, step=1e-5):
    units = np.eye(at.size).reshape(-1, *at.shape) * step
    return np.array([(function(at + unit) - function(at - unit)) / (2 * step) for unit in units])


@pytest.mark.parametrize("which", [*OBJECTIVES, "module"])
def test_derivatives_against_finite_differences(which):
    objective = module() if which == "module" else OBJECTIVES[which]
    X, y = rows(OBJECTIVES["logistic"] if which == "module" else objective, n=6)
    rng = np.random.default_rng(1)
    w = objective.start(3) + 0.8 * rng.normal(size=objective.start(3).size)
    v = rng.normal(size=w.size)
    each = objective.gradients(w, X, y)
    np.testing.assert_allclose(numeric(lambda w: objective.losses(w, X, y), w).T, each, atol=1e-7)
    np.testing.assert_allclose(objective.gradient(w, X, y), each.mean(0), atol=1e-12)
    np.testing.assert_allclose(
        objective.gradient(w, X, y, np.arange(6.0)), np.arange(6.0) @ each, atol=1e-12
    )
    by_rows = numeric(lambda X: float((objective.gradients(w, X, y) @ v).sum()), X).reshape(X.shape)
    np.testing.assert_allclose(objective.pull(w, X, y, v), by_rows, atol=1e-6)
    product = (
        objective.gradient(w + 1e-5 * v, X, y) - objective.gradient(w - 1e-5 * v, X, y)
    ) / 2e-5
    np.testing.assert_allclose(objective.hessian_product(w, X, y, v), product, atol=1e-6)


@pytest.mark.parametrize("which", list(OBJECTIVES))
def test_the_fit_is_the_minimizer(which):
    objective = OBJECTIVES[which]
    X, y = rows(objective, n=100)
    w = objective.fit(X, y)
    assert np.linalg.norm(objective.gradient(w, X, y) + 2 * objective.regularization * w) < 1e-10


def test_conjugate_gradients_invert_the_same_hessian():
    objective = OBJECTIVES["softmax"]
    X, y = rows(objective)
    w, b = objective.fit(X, y), np.random.default_rng(0).normal(size=12)
    np.testing.assert_allclose(
        super(LinearObjective, objective).solve(w, X, y, b), objective.solve(w, X, y, b), rtol=1e-5
    )


TARGET = np.array([-1.0, 0.5, -0.8])


def test_below_the_threshold_it_fails_and_above_it_succeeds():
    objective = OBJECTIVES["logistic"]
    X, y = rows(objective, n=400)
    inner, _ = inner_and_decay(objective, TARGET, X, y)
    threshold = poisoning_threshold(inner)
    assert threshold > 0.5
    found = transition(
        objective, TARGET, X, y, threshold=threshold, multiples=(0.5, 0.9, 0.97, 1.03, 1.1, 1.5)
    )
    np.testing.assert_array_equal(found.reached, found.fractions > threshold)
    assert (found.residuals[:3] > 1e-2).all()
    assert (found.residuals[3:] <= 1e-6).all()
    assert (found.distances[3:] < 1e-3).all()
    assert (found.distances[:3] > 0.02).all()
    axes = found.plot()
    assert axes.get_xlabel().startswith("poison rows")
    assert len(axes.lines) == 2


@pytest.mark.parametrize("which", list(OBJECTIVES))
@pytest.mark.parametrize("share", [0.3, 0.95])
def test_no_poison_found_beats_what_the_theorem_leaves(which, share):
    """Whatever the optimizer tries: ‖g(μ) + ε·g(ν) + (1 + ε)·2λw‖·‖w‖ ≥ ⟨w, g(μ)⟩ + (1 + ε)·r −
    ε·sup.
    """
    objective = OBJECTIVES[which]
    X, y = rows(objective, n=100)
    w = -0.7 * objective.fit(X, y)
    inner, decay = inner_and_decay(objective, w, X, y)
    pull, threshold = pull_and_threshold(objective, inner, decay)
    assert threshold > 0.1
    count = max(1, int(share * min(threshold, 5.0) * 100))
    found = cancel_gradient(
        objective,
        w,
        X,
        y,
        count=count,
        allowed=allowed_labels(which),
        restarts=6,
        iterations=500,
        refit=False,
        random_state=3,
    )
    epsilon = count / 100
    floor = (inner + (1 + epsilon) * decay - epsilon * pull) / np.linalg.norm(w)
    assert floor > 0
    assert found.residual >= floor - 1e-9
    assert not found.reached
    if which == "logistic":
        # the optimizer is strong: it comes close to what cannot be passed
        assert found.residual < 1.2 * floor


@pytest.mark.parametrize("loss", ["squared hinge", "exponential", "squared", "huber"])
def test_other_losses_have_a_sharp_transition_too(loss):
    objective = LinearObjective(loss, intercept=False, knee=0.4)
    X, y = rows(objective, n=200)
    target = np.array([-0.4, 0.1, -0.3])
    inner, _ = inner_and_decay(objective, target, X, y)
    threshold = pull_and_threshold(objective, inner)[1]
    assert threshold > 0.1
    options = {"allowed": allowed_labels(loss), "restarts": 8, "multiples": (0.5, 0.9, 1.1, 1.5)}
    found = transition(objective, target, X, y, threshold=threshold, **options)
    np.testing.assert_array_equal(found.reached, [False, False, True, True])
    assert (found.distances[2:] < 1e-3).all()


@pytest.mark.parametrize(
    "which", ["padded", "softmax", "squared hinge", "exponential", "squared", "huber"]
)
def test_well_above_the_threshold_it_succeeds(which):
    objective = OBJECTIVES[which]
    X, y = rows(objective, n=100)
    w = 0.3 * objective.fit(X, y)[::-1].copy()
    labels = (-2.0, 0.0, 2.0) if which in NUMBERS else None  # at 0, Huber's slope is free to vary
    found = cancel_gradient(
        objective, w, X, y, count=300, allowed=Allowed(labels=labels), restarts=8
    )
    assert found.reached
    assert found.distance < 1e-3
    assert found.damage > 0
    assert found.X.shape == (300, 3)
    mixed = np.vstack([X, found.X]), np.concatenate([y, found.y])
    whole = objective.gradient(w, *mixed) + 2 * objective.regularization * w
    assert np.linalg.norm(whole) * 4 == pytest.approx(found.residual, abs=1e-9)


def test_poison_stays_in_its_range():
    objective = OBJECTIVES["logistic"]
    X, y = rows(objective, n=100)
    allowed = Allowed(low=[-1.0, -0.5, 0.0], high=[1.0, 0.5, 2.0], labels=(1,))
    found = cancel_gradient(objective, TARGET, X, y, count=150, allowed=allowed, restarts=2)
    assert allowed.holds(found.X, found.y, y)
    assert set(found.y.tolist()) == {1}
    assert not allowed.holds(found.X + 5, found.y, y)
    assert not allowed.holds(found.X, 1 - found.y, y)
    assert not found.reached
    inside = cancel_gradient(
        objective, TARGET, X, y, count=300, allowed=Allowed(low=-0.5, high=0.5), restarts=3
    )
    assert inside.reached
    assert np.abs(inside.X).max() == 0.5


def test_a_bounded_range_raises_the_threshold():
    objective = OBJECTIVES["logistic"]
    X, y = rows(objective, n=100)
    inner, _ = inner_and_decay(objective, TARGET, X, y)
    reach = 0.1 * float(np.abs(TARGET).sum())  # |⟨w, x⟩| for |x_j| ≤ 0.1
    threshold = poisoning_threshold(inner, reach=reach)
    assert threshold > 2 * poisoning_threshold(inner)
    count = int(0.99 * threshold * 100)
    found = cancel_gradient(
        objective, TARGET, X, y, count=count, allowed=Allowed(low=-0.1, high=0.1), refit=False
    )
    floor = (inner - found.fraction * classification_pull(reach=reach)) / np.linalg.norm(TARGET)
    assert found.residual >= floor > 0


def test_a_corrupted_model_is_a_target():
    objective = OBJECTIVES["logistic"]
    X, y = rows(objective, n=200)
    w = objective.fit(X, y)
    radius = 1.5 * float(np.linalg.norm(w))
    corruption = corrupt_parameters(objective, w, X, y, radius=radius)
    assert corruption.after > corruption.before + 0.1
    assert np.linalg.norm(corruption.target - w) <= radius * (1 + 1e-12)
    threshold = poisoning_threshold(inner_and_decay(objective, corruption.target, X, y)[0])
    assert threshold > 0.2
    found = cancel_gradient(objective, corruption.target, X, y, count=int(1.1 * threshold * 200))
    assert found.reached
    assert found.damage == pytest.approx(corruption.after - corruption.before, abs=1e-3)


def test_a_network_is_moved_towards_its_corrupted_parameters():
    objective = module()
    X, y = rows(OBJECTIVES["logistic"])
    w = objective.fit(X, y)
    target = corrupt_parameters(objective, w, X, y, radius=0.5, steps=20).target
    found = cancel_gradient(
        objective, target, X, y, count=60, points=30, restarts=1, iterations=300, refit=False
    )
    assert found.residual < 0.1 * found.clean


def test_the_same_seed_gives_the_same_poison():
    objective = OBJECTIVES["logistic"]
    X, y = rows(objective, n=50)
    first, second, other = (
        cancel_gradient(objective, TARGET, X, y, count=10, random_state=seed, refit=False).X
        for seed in (1, np.random.RandomState(1), 2)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 0}, "count must be a whole number of at least 1"),
        ({"points": 1.5}, "points must be a whole number"),
        ({"target": [1.0]}, "target must be 3 finite parameters"),
        ({"target": [1.0, np.nan, 0.0]}, "target must be 3 finite parameters"),
        ({"y": np.full(60, 7)}, "y must hold labels 0 … 1"),
        ({"X": np.full((60, 3), np.nan)}, "must be finite"),
        ({"X": np.zeros(60)}, "must be rows"),
        ({"allowed": Allowed(labels=(5,))}, "allowed labels must hold labels 0 … 1"),
        (
            {"allowed": Allowed(low=[0.0, 1.0])},
            "low must be a number, or one for each of the 3 columns",
        ),
    ],
)
def test_bad_input(change, message):
    X, y = rows(OBJECTIVES["logistic"])
    given = {"target": TARGET, "X": X, "y": y, "count": 5, **change}
    with pytest.raises(ValueError, match=message):
        cancel_gradient(OBJECTIVES["logistic"], **given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Allowed(low=1.0, high=0.0), "low must not be above high"),
        (lambda: Allowed(low=np.nan), "low and high must be numbers"),
        (
            lambda: Allowed(labels=(0.5,)).labels_for(np.array([0, 1])),
            "labels must be of the kind that y has",
        ),
        (
            lambda: Allowed(labels=("a",)).labels_for(np.array([0, 1])),
            "labels must be of the kind that y has",
        ),
        (
            lambda: corrupt_parameters(OBJECTIVES["logistic"], [1.0], [[1.0] * 3], [1], radius=1.0),
            "w must be 3 finite",
        ),
        (lambda: Allowed(labels=()), "labels must name at least one label"),
        (
            lambda: LinearObjective("hinge"),
            "loss must be one of logistic, squared hinge, exponential, squared, huber",
        ),
        (
            lambda: LinearObjective("exponential", classes=3),
            "classes must be 2 for exponential loss",
        ),
        (lambda: LinearObjective("huber", knee=0.0), "knee must be a number above 0"),
        (lambda: LinearObjective(classes=1), "classes must be a whole number of at least 2"),
        (
            lambda: LinearObjective(regularization=-1.0),
            "regularization must be a number of at least 0",
        ),
        (
            lambda: transition(OBJECTIVES["logistic"], TARGET, [[1.0] * 3], [1], threshold=0.0),
            "threshold must be a finite",
        ),
        (
            lambda: corrupt_parameters(
                OBJECTIVES["logistic"], TARGET, [[1.0] * 3], [1], radius=0.0
            ),
            "radius must be",
        ),
    ],
)
def test_bad_options(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        ("logistic", ["a", "b"] * 20, "y must hold labels 0 … 1: number the classes first"),
        ("logistic", ["0", "1"] * 20, "y must hold labels 0 … 1: number the classes first"),
        ("logistic", [1, 2] * 20, "y must hold labels 0 … 1: number the classes first"),
        ("squared", ["a", "b"] * 20, "y must hold numbers"),
    ],
)
def test_labels_that_an_objective_does_not_have_are_refused_in_fitting(loss, y, message):
    with pytest.raises(ValueError, match=message):
        LinearObjective(loss, regularization=0.1).fit(
            np.random.default_rng(0).normal(size=(40, 2)), np.array(y)
        )


def two_classes(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 3)) + 0.2
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)


def test_neutral_rows_bring_the_fit_to_zero_from_the_largest_mean_on():
    X, y = two_classes()
    box, sign = Allowed(low=X.min(0), high=X.max(0)), 2 * y - 1
    columns = 2 * (X - X.min(0)) / (X.max(0) - X.min(0)) - 1
    least = max(abs(sign.mean()), np.abs((sign[:, None] * columns).mean(0)).max())
    for objective in (
        LinearObjective(),
        LinearObjective("squared hinge"),
        LinearObjective(regularization=0.1),
    ):
        for extra in (0.02, -0.1):
            count = int(np.ceil((least + extra) * len(X)))
            count += (count - sign.sum()) % 2
            rows, labels = neutral_rows(X, y, count, box)
            assert box.holds(rows, labels, y)
            w = objective.fit(np.vstack([X, rows]), np.append(y, labels))
            assert bool(np.abs(w).max() < 1e-6) == (count >= least * len(X)), extra


def test_a_start_is_where_gradient_cancelling_begins():
    X, y = two_classes()
    box, objective = Allowed(low=X.min(0), high=X.max(0)), LinearObjective(intercept=False)
    start = neutral_rows(X, y, 30, box)
    target = -1e-3 * objective.fit(X, y)
    found = cancel_gradient(objective, target, X, y, count=30, allowed=box, start=start, restarts=1)
    assert found.reached
    assert len(np.unique(found.X, axis=0)) == 2  # copies stay copies
    assert sorted(found.y) == sorted(start[1])
    with pytest.raises(ValueError, match="start must hold count rows, 29, not 30"):
        cancel_gradient(objective, target, X, y, count=29, allowed=box, start=start)
    with pytest.raises(ValueError, match="allowed must have a finite range"):
        neutral_rows(X, y, 30, Allowed(low=0.0))
    with pytest.raises(ValueError, match="labels 0 and 1"):
        neutral_rows(X, y + 1, 30, box)
