"""Modules and losses that mix rows are refused, whatever hides it; others pass; the claim says
what it assumes.
"""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional

from surelearn.optim.dp_mixing import SEPARATE, refuse_mixing  # noqa: E402
from surelearn.optim.dp_module import DPModule, fit_private  # noqa: E402


def each(outputs, targets):
    return functional.cross_entropy(outputs, targets, reduction="none")


def by_the_mean_label(outputs, targets):
    return each(outputs, targets) * targets.double().mean()


def same_values_other_gradients(outputs, targets):
    mean = outputs.mean()
    return each(outputs, targets) + mean - mean.detach()


def in_single_precision(outputs, targets):
    weights = torch.ones(2, dtype=torch.float32)
    return (
        functional.cross_entropy(outputs, targets, weight=weights, reduction="none")
        * targets.float().mean()
    )


class AboveEight(nn.Module):
    """Mixes rows in larger batches only."""

    def __init__(self, least=9):
        super().__init__()
        self.layer, self.least = nn.Linear(3, 2), least

    def forward(self, x):
        return self.layer(x - x.mean(0) if len(x) >= self.least else x)


class Turned(nn.Module):
    """Outputs are those of the row, their gradients also those of others."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        out = self.layer(x)
        return out + out.roll(1, 0) - out.roll(1, 0).detach()


def rows(n=200):
    torch.manual_seed(0)
    y = (torch.arange(n) >= n // 2).long()  # sorted, as files often are
    return torch.randn(n, 3), y


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (by_the_mean_label, "loss gives other values"),
        (same_values_other_gradients, "other gradients"),
        (in_single_precision, "loss gives other values"),
        (lambda o, t: each(o, t).flip(0), "loss gives other values"),
    ],
)
def test_a_loss_that_mixes_rows_is_refused(loss, said):
    X, y = rows()
    with pytest.raises(ValueError, match=said):
        fit_private(nn.Linear(3, 2), X, y, epsilon=1.0, loss=loss, batch_size=20, epochs=1)
    with pytest.raises(ValueError, match="mixes examples"):
        DPModule(nn.Linear(3, 2), loss=loss, batch_size=20, epochs=1).fit(X, y)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (AboveEight(), "other outputs"),
        (AboveEight(25), "other outputs"),
        (Turned(), "other gradients"),
    ],
)
def test_a_module_that_mixes_rows_of_real_batches_is_refused(module, said):
    X, y = rows()
    with pytest.raises(ValueError, match=said):
        fit_private(module, X, y, noise_multiplier=1.0, batch_size=20, epochs=1)


def test_batches_may_be_larger_than_expected():
    X, y = rows()
    with pytest.raises(ValueError, match="mixes examples"):
        refuse_mixing(AboveEight(30), each, X, y, 20.0)
    # no batch is so large: the assumption of the claim covers it
    refuse_mixing(AboveEight(40), each, X, y, 20.0)


class Noisy(nn.Module):
    """Draws random numbers that no layer is known for."""

    def __init__(self, how):
        super().__init__()
        self.layer, self.how = nn.Linear(3, 2), how

    def forward(self, x):
        return self.layer(self.how(x))


@pytest.mark.parametrize(
    "how", [functional.dropout, lambda x: x + torch.randn_like(x)], ids=["dropout", "noise"]
)
def test_random_numbers_of_a_module_are_named(how):
    X, y = rows()
    with pytest.raises(
        ValueError,
        match=r"^module or loss draws random numbers of its own, .* use layers nn.Dropout",
    ):
        fit_private(Noisy(how), X, y, noise_multiplier=1.0, batch_size=20, epochs=1)


@pytest.mark.parametrize("n", [1, 3, 40])
@pytest.mark.parametrize(
    ("module", "loss"),
    [
        (nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 2)), each),
        (nn.Sequential(nn.Linear(3, 8), nn.LayerNorm(8), nn.Linear(8, 2)), in_single_precision),
        (nn.Linear(3, 2).to(torch.bfloat16), each),
    ],
    ids=["dropout", "single precision", "sixteen bits"],
)
def test_rows_that_stay_apart_pass(module, loss, n):
    X, y = rows(n)
    y = y if loss is each else torch.ones_like(y)  # of one class the mean label is each label
    before = torch.get_rng_state()
    refuse_mixing(module, loss, X.to(next(module.parameters()).dtype), y, 16.0)
    assert torch.equal(before, torch.get_rng_state())
    assert all(p.grad is None for p in module.parameters())


def test_the_claim_says_what_it_assumes():
    X, y = rows()
    options: dict[str, Any] = {"batch_size": 20, "epochs": 1, "random_state": 0}
    model = DPModule(nn.Linear(3, 2), epsilon=3.0, **options).fit(X.numpy(), np.asarray(y))
    assert all(SEPARATE in claim.assumptions for claim in model.certificate_.claims)
    assert model.certificate_.verify()
    assert fit_private(nn.Linear(3, 2), X, y, epsilon=3.0, **options).assumptions == (SEPARATE,)
