"""The safe step and the preconditioned blocks by another route, EigenPro against SGD, and the
page.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from surelearn.kernel.functions import Gaussian, Laplace
from surelearn.papers import reproduce
from surelearn.papers.kernel_acceleration import (
    AccelerationSettings,
    count,
    describe,
    fewer,
    measure,
    middle,
    prepared,
    signs,
)
from surelearn.papers.kernel_batch_size import flattened, images
from surelearn.papers.page import Made, to_html

pytest.importorskip("torch")

SMALL = {
    "rows": 300,
    "subsample": 150,
    "directions": "5,30",
    "batch": 50,
    "target": 0.03,
    "epochs": 800,
    "repeats": 2,
}
MADE = Made(name="n", command="c", seed=0, settings={}, meanings={})
SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def outcome():
    return reproduce("eigenpro-acceleration", **SMALL)


@pytest.mark.parametrize("q", [0, 7])
def test_the_step_is_the_largest_that_is_safe_on_every_block(q):
    """With all rows as subsample the preconditioned kernel matrix is K with its q largest
    eigenvalues lowered.
    """
    X, k, m = images("")[0][:90], Laplace(3.0), 30
    run = prepared(k, X, np.ones((90, 1)), q=q, m=m, s=90, classical=True)
    K = flattened(k(X, X), q)
    blocks = [K[i : i + m, i : i + m] for i in range(0, 90, m)]
    for rows, block in zip(run.blocks(), blocks, strict=True):
        np.testing.assert_allclose(run.preconditioned(rows)[1].numpy(), block, atol=1e-8)
    assert run.step == pytest.approx(
        m / max(np.linalg.eigvalsh(block)[-1] for block in blocks), rel=0.05
    )
    assert prepared(k, X, np.ones((90, 1)), q=q, m=m, s=90, classical=False).step is None


def test_sgd_by_hand():
    """Residuals alone: r ← r − (η/m)·K[:, B]·r_B over blocks in the same order."""
    k, rows, m, seed = Gaussian(bandwidth=2.0), 120, 40, 3
    found = measure(seed, "", rows, k, 60, [5], m, 0.1, 40)
    X, y = images("")
    order = np.random.RandomState(seed).permutation(len(y))[:rows]
    K, R = k(X[order], X[order]), -signs(y[order])
    shuffles, step = np.random.RandomState(seed), found["SGD"]["step"]
    for loss in found["SGD"]["history"]:
        for i in shuffles.permutation(3):
            block = slice(m * i, m * i + m)
            R = R - step / m * K[:, block] @ R[block]
        assert np.mean(R**2) == pytest.approx(loss, rel=1e-5)
    history = found["SGD"]["history"]
    assert found["SGD"]["training"] == 1 + next(i for i, loss in enumerate(history) if loss <= 0.1)


def test_eigenpro_needs_fewer_epochs_than_sgd(outcome):
    numbers = outcome.numbers
    for kind in ("training", "validation"):
        slow, few, many = (
            middle(numbers[way][kind]) for way in ("SGD", "EigenPro, q = 5", "EigenPro, q = 30")
        )
        assert slow > 5 * few > 0
        assert slow > 15 * many
        assert middle(numbers["block step"][kind]) <= many
    assert f"{middle(numbers['SGD']['training']):,g}" in outcome.headline
    assert "no gain" not in outcome.headline
    assert all(history[-1] <= 0.03 for each in numbers.values() for history in each["history"])


def test_what_is_predicted_overstates_and_the_page_says_by_how_much(outcome):
    of, sgd = outcome.numbers["EigenPro, q = 30"], outcome.numbers["SGD"]
    predicted, ratio = np.mean(of["predicted"]), middle(sgd["training"]) / middle(of["training"])
    assert predicted > ratio
    assert f"to {predicted / ratio:.1f} times the one in epochs" in outcome.findings[2]
    assert sgd["predicted"] == sgd["predicted_batch"] == [1.0, 1.0]
    assert np.mean(of["measured"]) < predicted


def test_an_effect_that_is_not_seen_is_not_claimed():
    same = {
        "training": [7, 7],
        "validation": [None, 9],
        "history": [[0.1] * 7] * 2,
        "step": [1.0, 1.0],
    }
    same |= {
        "directions": [5, 5],
        "predicted": [4.0, 4.0],
        "predicted_batch": [3.0, 3.0],
        "measured": [2.0, 2.0],
    }
    ways = ("SGD", "EigenPro, q = 5", "block step", "block step, q = 0")
    made = describe(
        AccelerationSettings(directions="5", epochs=9, repeats=2), dict.fromkeys(ways, same)
    )
    assert "1.0 times fewer, which is no gain" in made.headline
    assert "as many as the best constant step" in made.findings[-1]
    assert (
        "more than 9 epochs to the validation target, not known how many times fewer"
        in made.findings[0]
    )


def test_words_for_epochs():
    assert middle([1, 2, None]) == 2
    assert count(middle([None, None]), 9) == "more than 9"
    assert fewer(float("inf"), 3, 9) == "more than 3.0 times"
    assert fewer(12, 3, 9) == "4.0 times"


def test_the_page_is_drawn(outcome):
    assert to_html(outcome, MADE).count("<svg") == 2


@pytest.mark.skipif(not (SHARED / "mnist.npz").exists(), reason="no MNIST beside the repository")
def test_mnist():
    found = reproduce(
        "eigenpro-acceleration", data=str(SHARED), **{**SMALL, "epochs": 60, "target": 0.1}
    )
    assert middle(found.numbers["EigenPro, q = 30"]["training"]) < middle(
        found.numbers["SGD"]["training"]
    )


def test_without_torch_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'surelearn\[torch\]'"):
        reproduce("eigenpro-acceleration", **SMALL)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rows": 99}, "rows must lie between 100 and 1700 of digits, not 99"),
        ({"kernel": "cubic"}, "kernel must be one of gaussian, laplace, not cubic"),
        ({"bandwidth": -1}, "bandwidth must be a number above 0, or 0 for the usual one, not -1"),
        ({"batch": 501}, "batch must lie between 2 and half of rows, 500, not 501"),
        ({"subsample": 950}, "subsample must lie between 20 and rows less batch, 900, not 950"),
        (
            {"directions": "40,10"},
            "directions must be one to three numbers, ascending, from 1 to below subsample, 500",
        ),
        ({"directions": "10,x"}, "such as 10,40, not '10,x'"),
        ({"directions": "500"}, "from 1 to below subsample, 500"),
        ({"target": 0.9}, "target must lie between 0.0001 and 0.5, not 0.9"),
        ({"epochs": 1}, "epochs must be at least 2, not 1"),
        ({"repeats": 1}, "repeats must be at least 2, not 1"),
    ],
)
def test_impossible_settings_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        reproduce("eigenpro-acceleration", **given)
