"""Double descent: what is measured, by hand, and the page that says it."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from surelearn.kernel.random_features import ReluFeatures
from surelearn.papers import reproduce
from surelearn.papers.kernel_double_descent import (
    RATIOS,
    DoubleDescentSettings,
    describe,
    flipped,
    measure,
    sizes,
)
from surelearn.papers.page import Made, to_html

SMALL = {"rows": 150, "repeats": 3}
MADE = Made(name="n", command="c", seed=0, settings={}, meanings={})


@pytest.fixture(scope="module")
def outcome():
    return reproduce("double-descent", **SMALL)


def test_labels_are_changed_to_another_class_at_the_stated_rate():
    labels = np.arange(20_000) % 10
    changed = flipped(labels, 0.2, np.random.RandomState(0))
    assert np.mean(changed != labels) == pytest.approx(0.2, abs=0.01)
    shifts = np.bincount((changed - labels) % 10, minlength=10)[1:]
    assert shifts.min() > 0.8 * shifts.max()
    np.testing.assert_array_equal(flipped(labels, 0.0, np.random.RandomState(0)), labels)


def test_one_measurement_by_the_pseudo_inverse():
    seed, rows = 3, 60
    found = measure(seed, "relu", rows, 0.0, 1.0)
    X, y = load_digits(return_X_y=True)
    random = np.random.RandomState(seed)
    order = random.permutation(len(y))
    fit, test, drawn = order[:rows], order[rows:], random.randint(2**31 - 1)
    for at in (2, -1):
        mapping = ReluFeatures(sizes(rows)[at], random_state=drawn).fit(X[fit] / 16)
        W = np.linalg.pinv(mapping.transform(X[fit] / 16)) @ np.eye(10)[y[fit]]
        scores = mapping.transform(X[test] / 16) @ W
        assert found["test"][at] == pytest.approx(np.mean(scores.argmax(1) != y[test]), abs=1e-3)
        assert found["norm"][at] == pytest.approx(np.linalg.norm(W), rel=1e-6)
        assert found["squared"][at] == pytest.approx(
            np.mean(((scores - np.eye(10)[y[test]]) ** 2).sum(1)), rel=1e-5
        )
    assert found["training"][-1] == 0.0
    assert found["rank"][-1] == rows


def test_the_error_falls_rises_to_the_threshold_and_falls_again(outcome):
    threshold = RATIOS.index(1.0)
    for name, of in outcome.numbers.items():
        if name in ("sizes", "ratios"):
            continue
        mean = np.mean(of["test"], axis=0)
        worst = int(np.argmax(mean))
        assert RATIOS[worst] in (1.0, 1.1, 1.25)
        assert mean[worst] > 1.5 * mean[:threshold].min()
        assert mean[worst] > 1.5 * mean[-1]
        assert np.mean(of["training"], axis=0)[-1] == 0
        assert f"{100 * mean[-1]:.1f}% at D = 10n" in next(
            each for each in outcome.findings if each.startswith(name)
        )
    norms = np.median(outcome.numbers["Fourier features, labels as they are"]["norm"], axis=0)
    assert int(np.argmax(norms)) == threshold


def test_sentences_by_hand():
    """Best below n 10%, worst 90% at n, 5% at the end, always; rank n from D = n on."""
    test = [[0.3, 0.2, 0.1, 0.2, 0.3, 0.9, 0.8, 0.7, 0.6, 0.3, 0.1, 0.05]] * 2
    ranks = [[min(D, 100.0) for D in sizes(100)]] * 2
    made = describe(
        DoubleDescentSettings(rows=100, repeats=2),
        {"It": {"test": test, "training": test, "squared": test, "norm": test, "rank": ranks}},
    )
    assert (
        "In 1 of 1 cases the test error is largest at the interpolation threshold, and in 1 it is"
        " lower" in made.headline
    )
    assert (
        made.findings[0]
        == "It: test error 10.0% at D = 0.5n, the best below n, 90.0% at D = 1n, the worst, 5.0% at"
        " D = 10n; the last less the first is −5.0 points (two standard errors: −5.0 to −5.0):"
        " better."
    )
    assert (
        made.findings[1]
        == "It have the rank n from D = 1n; at D = n the median rank is 100 of 100."
    )


def test_the_page_is_drawn(outcome):
    assert to_html(outcome, MADE).count("<svg") == 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rows": 10}, "rows must lie between 50 and 600, not 10"),
        ({"noise": 0}, "noise must be above 0 and at most 0.9, not 0"),
        ({"repeats": 1}, "repeats must be at least 2, not 1"),
        ({"bandwidth": -1}, "bandwidth must be a number above 0, not -1"),
    ],
)
def test_impossible_settings_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        reproduce("double-descent", **given)
