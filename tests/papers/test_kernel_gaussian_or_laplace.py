"""Epochs and energies by another route, Laplace against Gaussian on random labels, and the page."""

import sys
from pathlib import Path

import numpy as np
import pytest

from surelearn.kernel.functions import Gaussian, Laplace
from surelearn.papers import reproduce
from surelearn.papers.kernel_acceleration import middle, signs
from surelearn.papers.kernel_batch_size import images
from surelearn.papers.kernel_gaussian_or_laplace import (
    LABELS,
    NOISES,
    SMALL,
    WAYS,
    WhichKernelSettings,
    describe,
    draw,
    energy_beyond,
    epochs_to_fit,
    measure,
    positions,
)
from surelearn.papers.page import Made, to_html

pytest.importorskip("torch")

FEW = {"rows": 300, "directions": 20, "batch": 50, "epochs": 60, "repeats": 2}
MADE = Made(name="n", command="c", seed=0, settings={}, meanings={})
SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def outcome():
    return reproduce("gaussian-or-laplace", **FEW)


def test_epochs_of_sgd_by_hand():
    k, m = Laplace(3.0), 40
    X, y = (part[:120] for part in images(""))
    found = epochs_to_fit(k, X, y, "SGD", 5, m, 200)
    K, R = k(X, X), -signs(y)
    step = 1 / max(np.linalg.eigvalsh(K[i : i + m, i : i + m])[-1] for i in range(0, 120, m))
    random, zero, small = np.random.RandomState(0), None, None
    for t in range(1, 201):
        for i in random.permutation(3):
            block = slice(m * i, m * i + m)
            R = R - step * K[:, block] @ R[block]
        zero = zero or (t if ((R + signs(y)).argmax(1) == y).all() else None)
        small = small or (t if np.mean(R**2) <= SMALL else None)
    assert zero is not None
    assert small is not None
    assert found == {"zero": zero, "small": pytest.approx(small, abs=1)}
    assert epochs_to_fit(k, X, y, "SGD", 5, m, 2)["small"] is None


def test_energy_is_what_projections_leave():
    random = np.random.RandomState(0)
    basis = np.linalg.qr(random.normal(size=(40, 40)))[0]
    labels = random.randint(10, size=40)
    Y = signs(labels) - signs(labels).mean(0)
    left = [
        np.sum((Y - basis[:, :i] @ (basis[:, :i].T @ Y)) ** 2) / np.sum(Y**2) for i in (1, 13, 40)
    ]
    np.testing.assert_allclose(energy_beyond(basis, labels, [1, 13, 40]), left, atol=1e-10)


def test_one_measurement_by_direct_solves():
    k, rows = Gaussian(bandwidth=1.5), 160
    found = measure(3, "", rows, k, [], 10, 40, 2)
    X, y, Z, z, _ = draw(3, "", rows)
    exact = k(Z, X) @ np.linalg.solve(k(X, X), signs(y))
    assert found["test"][0] == pytest.approx(np.mean(exact.argmax(1) != z), abs=2e-3)
    values = np.linalg.eigvalsh(k(X, X))[::-1]
    np.testing.assert_allclose(
        found["decay"], [values[i - 1] / values[0] for i in positions(rows)], rtol=1e-6
    )
    np.testing.assert_allclose(
        found["falls"], [values[0] / values[143], values[10] / values[143]], rtol=1e-6
    )


def test_laplace_fits_random_labels_sooner(outcome):
    numbers = outcome.numbers
    for way in WAYS:
        slow, quick = (
            middle([each["epochs"]["random"][way]["zero"] for each in numbers[name]])
            for name in ("gaussian", "laplace")
        )
        assert quick < slow
        assert f"{quick:g}" in next(
            each for each in outcome.findings if each.lower().startswith(way.lower())
        )
    assert (
        middle([each["epochs"]["random"]["EigenPro"]["zero"] for each in numbers["laplace"]]) <= 4
    )
    assert "not seen" not in outcome.headline


def test_the_tail_the_energy_and_the_noise_tell_why(outcome):
    gaussian, laplace = (outcome.numbers[name] for name in ("gaussian", "laplace"))
    assert np.mean([each["falls"][1] for each in gaussian]) > 2 * np.mean(
        [each["falls"][1] for each in laplace]
    )
    for of in (gaussian, laplace):
        for each in of:
            assert each["left"]["random"] > 0.85 > 0.5 > each["left"]["true"]
    test = {
        name: np.mean([each["test"] for each in outcome.numbers[name]], axis=0)
        for name in ("gaussian", "laplace")
    }
    for i, noise in enumerate(NOISES):
        if noise:
            assert test["gaussian"][i] > test["laplace"][i] + 0.05
    assert "worse at 2 of 2 levels" in outcome.findings[-1]


def test_an_effect_that_is_not_seen_is_not_claimed():
    same = {"zero": None, "small": None}
    at = len(positions(100))
    each = {
        "epochs": {kind: dict.fromkeys(WAYS, same) for kind in LABELS}, "others": [same, same], "decay": [0.1] * at,
        "energy": {kind: [0.5] * at for kind in LABELS}, "left": dict.fromkeys(LABELS, 0.5), "falls": [9.0, 3.0],
        "test": [0.1] * 3,
    }  # fmt: skip
    made = describe(
        WhichKernelSettings(rows=100, directions=5, epochs=8),
        {"gaussian": [each], "laplace": [each]},
    )
    assert made.headline.endswith("more than 8 with the Gaussian: the effect is not seen here")
    assert made.findings[0].endswith(
        "on random labels more than 8 and more than 8: Laplace needs no fewer."
    )
    assert made.findings[3].endswith("The decay does not tell why.")
    assert made.findings[-1].endswith("worse at 0 of 2 levels of noise.")


def test_the_page_is_drawn(outcome):
    assert to_html(outcome, MADE).count("<svg") == 3


@pytest.mark.skipif(not (SHARED / "mnist.npz").exists(), reason="no MNIST beside the repository")
def test_mnist():
    found = reproduce("gaussian-or-laplace", data=str(SHARED), **{**FEW, "epochs": 20})
    epochs = {
        name: middle(
            [each["epochs"]["random"]["EigenPro"]["small"] for each in found.numbers[name]]
        )
        for name in ("gaussian", "laplace")
    }
    assert epochs["laplace"] < epochs["gaussian"]


def test_without_torch_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'surelearn\[torch\]'"):
        reproduce("gaussian-or-laplace", **FEW)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rows": 5000}, "rows must lie between 100 and 1700 of digits, not 5000"),
        ({"data": "nowhere"}, "data must be a folder with mnist.npz, and 'nowhere' is none"),
        ({"gaussian": -1}, "gaussian must be a number above 0, or 0 for the usual one, not -1"),
        (
            {"laplace": float("inf")},
            "laplace must be a number above 0, or 0 for the usual one, not inf",
        ),
        ({"directions": 251}, "directions must lie between 1 and a quarter of rows, 250, not 251"),
        ({"batch": 1}, "batch must lie between 2 and rows, 1000, not 1"),
        ({"epochs": 1}, "epochs must be at least 2, not 1"),
        ({"repeats": 1}, "repeats must be at least 2, not 1"),
    ],
)
def test_impossible_settings_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        reproduce("gaussian-or-laplace", **given)
