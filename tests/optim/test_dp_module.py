"""DP-SGD for torch modules: closed-form norms against autograd, layers that have none, noise,
refusals, the certificate.
"""

import copy

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from surelearn.bounds.privacy import dp_sgd_epsilon

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional

from surelearn.lacking import Lacking  # noqa: E402
from surelearn.optim.dp_claims import NO_NOISE  # noqa: E402
from surelearn.optim.dp_gradients import ClosedForm, Vectorized, choose  # noqa: E402
from surelearn.optim.dp_module import DPModule, fit_private  # noqa: E402


def cross_entropy(outputs, targets):
    return functional.cross_entropy(outputs, targets, reduction="none")


class Twice(nn.Module):
    """A layer that is used twice."""

    def __init__(self):
        super().__init__()
        self.inner, self.last = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.last(torch.tanh(self.inner(torch.tanh(self.inner(x)))))


class Tied(nn.Module):
    """A layer whose weights are used behind its back too."""

    def __init__(self):
        super().__init__()
        self.inner, self.last = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.last(functional.linear(torch.tanh(self.inner(x)), self.inner.weight))


class Sequence(nn.Module):
    """Linear layers on sequences (B, T, d), where ‖a‖‖b‖ is wrong."""

    def __init__(self, wide=4):
        super().__init__()
        self.inner, self.last = nn.Linear(6, wide), nn.Linear(wide, 3)

    def forward(self, x):
        return self.last(torch.relu(self.inner(x)).mean(dim=1))


class Mixing(nn.Module):
    """Subtracts the batch's mean."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(6, 3)

    def forward(self, x):
        return self.last(x - x.mean(0, keepdim=True))


def frozen():
    module = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    module[0].weight.requires_grad_(False)
    module[2].bias.requires_grad_(False)
    return module


def convolutions(side=6):
    first, second = (
        nn.Conv2d(2, 3, 3, stride=2, padding=1),
        nn.Conv2d(3, 4, (1, 2), dilation=1, bias=False),
    )
    out = (side + 1) // 2
    return nn.Sequential(first, nn.ReLU(), second, nn.Flatten(), nn.Linear(4 * out * (out - 1), 3))


CASES = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3, bias=False)),
        (6,),
        "closed form",
    ),
    "frozen": (frozen, (6,), "closed form"),
    "convolutions": (convolutions, (2, 6, 6), "closed form"),
    "large images": (lambda: convolutions(24), (2, 24, 24), "closed form"),
    "sequence": (Sequence, (7, 6), "closed form"),
    "wide sequence": (lambda: Sequence(64), (3, 6), "closed form"),
    "twice": (Twice, (6,), "several times"),
    "tied": (Tied, (6,), "outside of it too"),
    "layer norm": (
        lambda: nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Linear(5, 3)),
        (6,),
        "outside of linear",
    ),
    "grouped": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.Flatten(), nn.Linear(64, 3)),
        (2, 6, 6),
        "outside of",
    ),
}
every_case = pytest.mark.parametrize("case", CASES, ids=str)


def made(case, n=9):
    make, shape, engine = CASES[case]
    torch.manual_seed(0)
    return (
        make().double(),
        torch.randn(n, *shape, dtype=torch.float64),
        torch.randint(3, (n,)),
        engine,
    )


def gradients_one_by_one(module, X, y):
    parameters = [p for p in module.parameters() if p.requires_grad]
    each = [
        torch.autograd.grad(cross_entropy(module(x[None]), t[None]).sum(), parameters)
        for x, t in zip(X, y, strict=True)
    ]
    return parameters, each


@every_case
def test_norms_and_clipped_sums_against_a_loop_of_autograd(case):
    module, X, y, engine = made(case)
    how, said = choose(module, cross_entropy, X, y)
    assert engine in said
    parameters, each = gradients_one_by_one(module, X, y)
    norms = torch.stack([torch.cat([g.flatten() for g in grads]).norm() for grads in each])
    torch.testing.assert_close(how.norms(X, y).detach(), norms)
    clip = float(norms.median())
    factors = clip / norms.clamp(min=clip)
    sums = how.clipped_sum(X, y, clip)
    how.close()
    assert set(map(id, sums)) == set(map(id, parameters))
    for i, p in enumerate(parameters):
        torch.testing.assert_close(
            sums[p].detach(), sum(f * grads[i] for f, grads in zip(factors, each, strict=True))
        )


@pytest.mark.parametrize("case", ["mlp", "convolutions", "sequence", "wide sequence"])
def test_the_closed_form_is_what_torch_func_gives(case):
    module, X, y, _ = made(case)
    closed, mapped = ClosedForm(module, cross_entropy), Vectorized(module, cross_entropy)
    torch.testing.assert_close(closed.norms(X, y).detach(), mapped.norms(X, y))
    closed.close()


def test_norms_of_a_sequence_are_not_the_product_of_norms():
    """The shortcut that holds for (B, d) would be wrong here: had it been taken, clipping would
    fail.
    """
    module, X, y, _ = made("sequence")
    how = ClosedForm(module, cross_entropy)
    (_, a, b), _ = how.parts(X, y)
    shortcut = (a.square().sum((1, 2)) * b.square().sum((1, 2))).sqrt()
    each = Vectorized(module, cross_entropy).gradients(X, y)["inner.weight"].flatten(1).norm(dim=1)
    how.close()
    assert not torch.allclose(shortcut, each, rtol=0.05)


@every_case
def test_one_row_moves_a_step_by_at_most_the_clipping_norm(case):
    module, X, y, _ = made(case)
    X[0] *= 100
    how, _ = choose(module, cross_entropy, X, y)
    whole = how.clipped_sum(X, y, 0.5)
    without = how.clipped_sum(X[1:], y[1:], 0.5)
    how.close()
    assert torch.cat([(whole[p] - without[p]).flatten() for p in whole]).norm() <= 0.5 * (1 + 1e-6)


def test_torch_func_in_pieces(monkeypatch):
    module, X, y, _ = made("layer norm")
    how = Vectorized(module, cross_entropy)
    whole = how.clipped_sum(X, y, 0.5)
    monkeypatch.setattr("surelearn.optim.dp_gradients._NUMBERS", 2 * how.size)
    for p, total in how.clipped_sum(X, y, 0.5).items():
        torch.testing.assert_close(total, whole[p])


def test_hooks_are_gone_afterwards():
    module, X, y, _ = made("mlp")
    fit_private(module, X, y, noise_multiplier=1.0, batch_size=4, epochs=1, random_state=0)
    assert not any(child._forward_hooks for child in module.modules())


def test_a_step_is_the_noisy_clipped_sum_over_the_expected_batch_size():
    """With a loss that is always 0 a step is noise alone: its deviation is η·σ·C/(qN)."""
    module = nn.Linear(300, 100)
    before = copy.deepcopy(module)
    options = {
        "noise_multiplier": 3.0,
        "clip": 0.5,
        "batch_size": 20,
        "epochs": 0.1,
        "step": 2.0,
        "random_state": 0,
    }
    X, y = torch.randn(200, 300), torch.zeros(200)
    done = fit_private(module, X, y, loss=lambda outputs, _: 0 * outputs.sum(1), **options)
    assert done.recipe.steps == 1
    moved = (module.weight - before.weight).detach().numpy()
    scale = 2.0 * 3.0 * 0.5 / 20
    assert moved.std() == pytest.approx(scale, rel=4 / np.sqrt(2 * moved.size))


def test_the_seed_decides_everything_and_leaves_torch_s_own_alone():
    def weights(seed):
        module, X, y, _ = made("mlp", 50)
        module.insert(1, nn.Dropout(0.5))
        torch.manual_seed(99)
        fit_private(module, X, y, noise_multiplier=1.0, batch_size=10, epochs=2, random_state=seed)
        return torch.cat([p.detach().flatten() for p in module.parameters()]), torch.rand(1)

    (one, after), (two, _), (other, _) = weights(1), weights(1), weights(2)
    assert torch.equal(one, two)
    assert not torch.allclose(one, other)
    torch.manual_seed(99)
    assert torch.equal(after, torch.rand(1))


def test_radius_and_optimizers():
    module, X, y, _ = made("mlp", 50)
    options = {"noise_multiplier": 1.0, "batch_size": 10, "epochs": 2, "random_state": 0}
    fit_private(
        module, X, y, radius=0.2, optimizer=lambda p: torch.optim.Adam(p, lr=0.1), **options
    )
    assert torch.cat([p.detach().flatten() for p in module.parameters()]).norm() <= 0.2 * (1 + 1e-6)


def test_what_was_spent_is_what_ran():
    module, X, y, _ = made("mlp", 200)
    done = fit_private(module, X, y, noise_multiplier=1.5, batch_size=20, epochs=3, random_state=0)
    assert (done.spent.steps, done.spent.sample_rate) == (30, 0.1)
    assert done.spent.epsilon == pytest.approx(dp_sgd_epsilon(1.5, 0.1, 30, 1e-5), rel=1e-2)
    assert fit_private(module, X, y, epsilon=2.0, batch_size=20, epochs=3).spent.epsilon <= 2.0


def test_batches_that_are_not_poisson_get_no_epsilon():
    module, X, y, _ = made("mlp", 40)
    batches = [np.arange(0, 20), np.arange(20, 40), []]
    done = fit_private(module, X, y, noise_multiplier=1.0, batches=batches)
    assert isinstance(done.spent, Lacking)
    assert "not drawn by PoissonSampler" in done.spent.reason
    assert fit_private(module, X, y, noise_multiplier=0.0, epochs=1).spent == NO_NOISE


@pytest.mark.parametrize(
    ("module", "options", "message"),
    [
        (
            lambda: nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)),
            {},
            "BatchNorm1d, which mixes",
        ),
        (Mixing, {}, "mixes examples"),
        (lambda: nn.Linear(6, 3).requires_grad_(False), {}, "requires a gradient"),
        (lambda: nn.Linear(6, 3), {"loss": "hinge"}, "loss must be"),
        (
            lambda: nn.Linear(6, 3),
            {"loss": lambda o, t: functional.cross_entropy(o, t)},
            "one number for each of",
        ),
        (
            lambda: nn.Linear(6, 3),
            {"noise_multiplier": None},
            "either epsilon= or noise_multiplier=",
        ),
        (lambda: nn.Linear(6, 3), {"epsilon": 1.0}, "either epsilon= or noise_multiplier="),
        (lambda: nn.Linear(6, 3), {"clip": 0.0}, "clip"),
        (lambda: nn.Linear(6, 3), {"batch_size": 0}, "batch_size"),
        (lambda: nn.Linear(6, 3), {"epochs": -1}, "epochs"),
    ],
)
def test_bad_input_is_named(module, options, message):
    with pytest.raises(ValueError, match=message):
        fit_private(
            module(),
            torch.randn(30, 6),
            torch.randint(3, (30,)),
            **{"noise_multiplier": 1.0, **options},
        )


def test_modules_and_rows_are_checked():
    with pytest.raises(TypeError, match="must be a torch"):
        fit_private(lambda x: x, torch.zeros(3, 2), torch.zeros(3), noise_multiplier=1.0)
    with pytest.raises(ValueError, match="same number of rows"):
        fit_private(nn.Linear(2, 3), torch.zeros(3, 2), torch.zeros(4).long(), noise_multiplier=1.0)


def blobs(n=600):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 6)) + 3 * np.eye(3, 6)[y], np.array(["a", "b", "c"])[y]


def test_the_estimator_learns_and_its_certificate_verifies():
    X, y = blobs()
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    untouched = copy.deepcopy(module.state_dict())
    model = DPModule(module, epsilon=3.0, batch_size=60, epochs=10, random_state=0).fit(X, y)
    assert all(torch.equal(module.state_dict()[k], v) for k, v in untouched.items())
    assert (model.predict(X) == y).mean() > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.engine_ == "closed form"
    claim = model.certificate_["epsilon"]
    assert 2.9 < claim.value <= 3.0
    assert "dp_delta = 1e-05, add or remove one row" in claim.label
    assert model.certificate_.verify()
    assert clone(model).get_params()["epsilon"] == 3.0


def test_the_certificate_is_about_these_weights():
    X, y = blobs(100)
    model = DPModule(
        nn.Linear(6, 3), epsilon=None, noise_multiplier=1.0, epochs=1, random_state=0
    ).fit(X, y)
    certificate = model.certificate_
    assert certificate.verify(model)
    before = model.predict_proba(X)
    with torch.no_grad():
        model.module_.weight += 1  # a copy
    np.testing.assert_array_equal(model.predict_proba(X), before)
    model.weights_["weight"] += np.eye(3, 6)
    assert not np.allclose(model.predict_proba(X), before)
    assert not certificate.verify(model)


def test_the_estimator_regresses():
    X, _ = blobs(300)
    model = DPModule(
        nn.Linear(6, 1),
        noise_multiplier=1.0,
        loss="squared",
        clip=5.0,
        step=0.05,
        batch_size=60,
        random_state=0,
    )
    y = X[:, 0] - X[:, 1]
    assert np.corrcoef(model.fit(X, y).predict(X), y)[0, 1] > 0.9


class Cancelling(nn.Module):
    """A layer on two positions whose gradient nearly cancels where positions are alike."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        h = self.layer(x)
        return h[:, 0] - h[:, 1]


@pytest.mark.parametrize("size", [1.0, 1e4, 1e6])
def test_clipping_holds_where_terms_cancel(size):
    torch.manual_seed(0)
    X = torch.randn(100, 2, 4) * max(1.0, size / 2000) + size
    engine = ClosedForm(Cancelling(), cross_entropy)
    targets = torch.zeros(1, dtype=torch.long)
    for x in X:
        total = engine.clipped_sum(x[None], targets, 1.0)
        assert (
            float(sum(part.double().square().sum() for part in total.values()).sqrt()) <= 1.0 + 1e-5
        )


class Centered(nn.Module):
    """Mixes rows in training only."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x - x.mean(0) if self.training else x)


@pytest.mark.parametrize(
    ("module", "shape", "said"),
    [
        (Centered(), (3,), "mixes examples"),
        (
            nn.Sequential(
                nn.InstanceNorm2d(1, track_running_stats=True), nn.Flatten(), nn.Linear(16, 2)
            ),
            (1, 4, 4),
            "",
        ),
    ],
)
def test_what_mixes_or_keeps_statistics_in_training_is_refused(module, shape, said):
    X = torch.randn(40, *shape)
    with pytest.raises(ValueError, match=said or "keeps statistics|mixes examples"):
        fit_private(
            module,
            X,
            torch.zeros(40, dtype=torch.long),
            noise_multiplier=1.0,
            epochs=1.0,
            batch_size=10,
        )


@pytest.mark.parametrize("value", [float("nan"), 1e38])
def test_a_row_without_a_finite_gradient_counts_as_none(value):
    X, y = torch.randn(40, 3), torch.zeros(40, dtype=torch.long)
    X[7] = value
    fitted = fit_private(
        nn.Linear(3, 2), X, y, noise_multiplier=1.0, epochs=3.0, batch_size=20, random_state=0
    )
    assert all(parameter.isfinite().all() for parameter in fitted.module.parameters())


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda X, y: (np.where(X[0, 0] == X, np.nan, X), y), "X contains NaN or infinity"),
        (lambda X, y: (np.where(X[0, 0] == X, np.inf, X), y), "X contains NaN or infinity"),
        (
            lambda X, y: (torch.as_tensor(np.where(X[0, 0] == X, np.nan, X)), y),
            "X contains NaN or infinity",
        ),
        (
            lambda X, y: (X, np.where(np.arange(len(y)) == 0, np.nan, y)),
            "y contains NaN or infinity",
        ),
        (lambda X, y: (sparse.csr_array(X), y), "X is sparse"),
        (lambda X, _: (X, None), "requires y"),
    ],
)
def test_rows_that_nothing_could_be_learned_from_are_refused(spoil, says):
    X = np.random.default_rng(0).normal(size=(20, 3))
    learner = DPModule(nn.Linear(3, 1), noise_multiplier=1.0, loss="squared", epochs=1.0)
    with pytest.raises((ValueError, TypeError), match=says):
        learner.fit(*spoil(X, X[:, 0]))
    assert not hasattr(learner.fit(X, X[:, 0]), "predict_proba")
