"""Networks for tables: what their layers compute, words, missing values, weights, going on."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import surelearn
from surelearn.lacking import Lacking
from surelearn.neural import NetworkClassifier, NetworkDetails, NetworkRegressor
from surelearn.neural.columns import Encoding, quantile_bins, scaling
from surelearn.subject import subject_of
from surelearn.subject.fitting_work import fit_work

torch = pytest.importorskip("torch")

from surelearn.neural.tables import (  # noqa: E402
    PiecewiseEmbedding,
    SharedLinear,
    Sizes,
    SmoothClip,
    TableNetwork,
)

SMALL = {"members": 2, "width": 16, "depth": 1, "learning_rate": 0.03, "random_state": 0}
rng = np.random.default_rng(0)


def mixed(n=300, seed=0):
    """The label is told by a word, but where it is "x" by whether a number is missing."""
    rng = np.random.default_rng(seed)
    words = rng.choice(["a", "b", "x"], n)
    gone = rng.random(n) < 0.5
    y = np.where(words == "x", gone, words == "a")
    table = pd.DataFrame({"number": np.where(gone, np.nan, rng.normal(size=n)), "word": words})
    table["kind"] = pd.Categorical(rng.choice(["p", "q"], n))
    return table.assign(flag=rng.random(n) < 0.5), np.where(y, "yes", "no")


# --------------------------------------------------------------------------------------------------
def test_members_share_a_matrix_as_batchensemble_writes_it():
    layer = SharedLinear(3, 4, 5)
    for part in (layer.r, layer.s, layer.bias):
        torch.nn.init.normal_(part)
    h = torch.randn(3, 7, 4)
    found = layer(h).detach()
    for m in range(3):
        wanted = ((h[m] * layer.r[m]) @ layer.weight) * layer.s[m] + layer.bias[m]
        np.testing.assert_allclose(found[m], wanted.detach(), rtol=1e-4, atol=1e-6)


def test_numbers_are_clipped_smoothly():
    clip = SmoothClip(2)
    clip.center.copy_(torch.tensor([1.0, 0.0]))
    clip.scale.copy_(torch.tensor([0.5, 1.0]))
    x = torch.tensor([[3.0, float("nan")], [1e30, -1e30], [1.0, 4.0]])
    found = clip(x).numpy()
    assert found[0].tolist() == [pytest.approx(1 / math.sqrt(1 + 1 / 9)), 0.0]
    np.testing.assert_allclose(found[1], [3.0, -3.0], rtol=1e-6)
    assert found[2].tolist() == [0.0, pytest.approx(4 / math.sqrt(1 + 16 / 9))]


def test_a_number_s_embedding_is_linear_between_quantiles_and_constant_beyond_them():
    t = np.column_stack([np.arange(9.0), [0.0] * 8 + [1.0], np.full(9, 2.0)])
    t[0, 1] = np.nan
    low, inverse = quantile_bins(t, 4)
    assert low[0].tolist() == [0, 2, 4, 6]
    assert inverse.tolist() == [[0.5] * 4, [pytest.approx(1.0), 0, 0, 0], [0] * 4]
    bins = PiecewiseEmbedding(3, 4, 2)
    bins.low.copy_(torch.tensor(low))
    bins.inverse.copy_(torch.tensor(inverse))
    at = torch.tensor([[-9.0, 0.0, 7.0], [1.0, 0.5, 2.0], [5.0, 1.0, 2.0], [90.0, 2.0, 2.0]])
    found = bins(at).detach().numpy()
    V, c = bins.weight.detach().numpy(), bins.bias.detach().numpy()
    knots = np.concatenate([np.zeros((1, 2)), np.cumsum(V[0], axis=0)]) + c[0]
    for e in range(2):
        wanted = np.interp(at[:, 0], [0, 2, 4, 6, 8], knots[:, e])
        np.testing.assert_allclose(found[:, 0, e], wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1, 1], 0.5 * V[1, 0] + c[1], rtol=1e-4)
    np.testing.assert_allclose(found[:, 2], np.tile(c[2], (4, 1)))


@pytest.mark.parametrize("classes", [True, False])
def test_what_members_answer_together(classes):
    sizes = Sizes(
        numbers=2, marked=(1,), categories=(3,), outputs=2 if classes else 1, members=3, width=4,
        depth=2, dropout=0.5, bins=4, embedded=2,
    )  # fmt: skip
    net = TableNetwork(sizes, classes=classes).eval()
    X = torch.tensor([[0.3, float("nan"), 2.0], [1.0, -2.0, 0.0]])
    each = net.each(X)
    if classes:
        np.testing.assert_allclose(
            net(X).exp().detach(), each.softmax(dim=2).mean(dim=0).detach(), rtol=1e-5
        )
    else:
        net.target.copy_(torch.tensor([10.0, 2.0]))
        np.testing.assert_allclose(net(X).detach(), 10 + 2 * each.mean(dim=0).detach(), rtol=1e-5)
    assert net.train()(X).shape == each.shape
    assert net.eval().features(X)[:, 6].tolist() == [1.0, 0.0]  # the mark


def test_rows_in_use_are_scaled_and_cut_as_the_fit_rows_were():
    X = np.random.default_rng(1).normal(size=(90, 2)) * [1.0, 50.0] + 1e6
    model = NetworkRegressor(**SMALL, epochs=2, select=0.0).fit(X, X[:, 0])
    center, scale = scaling(X)
    low, inverse = quantile_bins((X - center) * scale, 48)
    for name, value in (("center", center), ("scale", scale)):
        np.testing.assert_array_equal(model.weights_[f"clip.{name}"], value)
    for name, value in (("low", low), ("inverse", inverse)):
        np.testing.assert_array_equal(model.weights_[f"bins.{name}"], value)
    moved = clone(model).fit(X * 8 - 3.0, X[:, 0])
    np.testing.assert_allclose(moved.predict(X * 8 - 3.0), model.predict(X), rtol=1e-6)


@pytest.mark.parametrize(("n", "steps"), [(400, 1800), (4999, 1800), (5000, 5400), (20_000, 5400)])
def test_so_many_steps_in_20_to_150_passes(n, steps):
    model, details = NetworkRegressor(), NetworkDetails()
    epochs = model._epochs(n, details)
    assert abs(epochs * n / model._batch_size(n, details) - steps) < n / 16
    assert NetworkRegressor(epochs=3)._epochs(n, details) == 3
    assert (model._epochs(200_000, details), model._epochs(60, details)) == (20, 150)


def test_scaling_by_quartiles():
    x = np.array([[0.0, 5.0, 7.0, np.nan], [1, 5, 7, np.nan], [2, 5, 7, np.nan], [3, 9, 7, np.nan]])
    center, scale = scaling(x)
    assert center.tolist() == [1.5, 5.0, 7.0, 0.0]
    assert scale.tolist() == [1 / 1.5, 1.0, 0.0, 0.0]  # no quartiles' distance: half the range


def test_words_are_codes_and_unseen_ones_are_none():
    table = pd.DataFrame(
        {"n": [1, 2], "w": ["b", "a"], "c": pd.Categorical([2, 1]), "t": [True, False]}
    )
    encoding = Encoding.of(table)
    assert encoding(table).tolist() == [[1, 1, 2, 2], [2, 0, 1, 1]]
    other = pd.DataFrame({"n": [None], "w": ["new"], "c": [1], "t": [False]})
    assert np.isnan(encoding(other)[0, 0])
    assert encoding(other)[0, 1:].tolist() == [0, 0, 1]
    again = Encoding.read(encoding.saved())
    assert again(table).tolist() == encoding(table).tolist()


# --------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def learned():
    X, y = mixed()
    return NetworkClassifier(**SMALL, epochs=15).fit(X, y)


def test_words_and_missing_values_are_learned(learned):
    X, y = mixed(500, seed=1)
    assert learned.score(X, y) > 0.97
    new = X.assign(word="never seen")
    assert np.isfinite(learned.predict_proba(new)).all()


def test_polars_rows_are_pandas_rows(learned):
    polars = pytest.importorskip("polars")
    X, _ = mixed(20, seed=2)
    plain = X.assign(kind=X["kind"].astype(str))
    given = polars.DataFrame({name: plain[name].tolist() for name in plain})
    found = learned.predict_proba(given.fill_nan(None))
    np.testing.assert_allclose(found, learned.predict_proba(X))


def test_a_network_with_words_is_saved_certified_and_says_why_it_has_no_gradient(learned, tmp_path):
    X, y = mixed(200, seed=3)
    again = surelearn.load(surelearn.save(learned, tmp_path / "model"))
    np.testing.assert_array_equal(again.predict_proba(X), learned.predict_proba(X))
    assert surelearn.certify(again, X, y)["risk"].value < 0.1
    scores = subject_of(learned).scores
    assert isinstance(scores, Lacking)
    assert "no word lies between two others" in scores.reason
    (lacking,) = learned.certificate_.lacking
    assert "ends near no minimizer that is known" in lacking.reason
    assert learned.certificate_.verify(learned, *mixed())


def test_rows_of_weight_zero_teach_nothing():
    X = rng.normal(size=(240, 2))
    y = (X[:, 0] > 0).astype(int)
    wrong = np.arange(240) % 2 == 0
    weights = np.where(wrong, 0.0, 3.0)
    model = NetworkClassifier(**SMALL, epochs=12)
    model.fit(X, np.where(wrong, 1 - y, y), sample_weight=weights)
    assert model.score(X, y) > 0.9
    # the weights' unit makes no difference
    again = clone(model).fit(X, np.where(wrong, 1 - y, y), sample_weight=7 * weights)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-5)


def test_a_warm_start_goes_on_and_a_cold_one_does_not():
    X = rng.normal(size=(120, 2))
    y = X[:, 0] * X[:, 1]
    short = NetworkRegressor(**SMALL, epochs=3).fit(X, y)
    warm = clone(short).set_params(warm_start=True).fit(X, y)
    first = warm.score(X, y)
    np.testing.assert_array_equal(warm.predict(X), short.predict(X))
    for _ in range(6):
        warm.fit(X, y)
    assert warm.score(X, y) > max(0.5, first + 0.2)
    np.testing.assert_array_equal(short.fit(X, y).predict(X), clone(short).fit(X, y).predict(X))
    labels = np.where(y > 0, "yes", "no")
    model = NetworkClassifier(**SMALL, epochs=1, warm_start=True).fit(X, labels)
    with pytest.raises(ValueError, match="classes of the fit before"):
        model.fit(X, np.where(y > 0, "yes", "never"))


def test_columns_far_from_zero_are_read_in_full_precision():
    X = rng.normal(size=(200, 2))
    y = np.sin(2 * X[:, 0])
    near = NetworkRegressor(**SMALL, epochs=5).fit(X, y)
    far = NetworkRegressor(**SMALL, epochs=5).fit(X + 1e9, y)
    np.testing.assert_allclose(far.predict(X + 1e9), near.predict(X), atol=1e-3)


def test_the_epoch_is_chosen_by_rows_held_out():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(250, 4))
    y = rng.integers(0, 2, 250)  # nothing to learn: every epoch makes it worse
    plain = {**SMALL, "learning_rate": 0.05, "details": NetworkDetails(dropout=0.0)}
    chosen = NetworkClassifier(**plain, epochs=25, patience=3).fit(X, y)
    assert chosen.record_.selected == 37
    assert chosen.record_.epochs == chosen.record_.best + 1 + 3 < 25
    whole = NetworkClassifier(**plain, epochs=25, select=0.0).fit(X, y)
    assert (whole.record_.selected, whole.record_.epochs) == (0, 25)
    sure = [np.abs(model.predict_proba(X)[:, 0] - 0.5).mean() for model in (chosen, whole)]
    assert sure[0] < sure[1]


def test_smoothed_labels_make_it_less_sure():
    X = rng.normal(size=(150, 2))
    y = (X[:, 0] > 0).astype(int)
    sure, unsure = (
        NetworkClassifier(**SMALL, epochs=12, details=NetworkDetails(label_smoothing=s)).fit(X, y)
        for s in (0.0, 0.3)
    )
    assert unsure.predict_proba(X).max(axis=1).mean() < sure.predict_proba(X).max(axis=1).mean()


def test_its_work_is_told_by_formula(learned):
    few, many = (fit_work(learned, n, 4) for n in (500, 5000))
    assert 0.01 < few < many
    assert fit_work(learned, 5000, 4) == pytest.approx(learned.work_of_fit(5000), rel=0.1)


# --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "how"),
    [
        ("members must be a whole number", {"members": 0}),
        ("depth must be a whole number of at least 0", {"depth": -1}),
        ("epochs must be a whole number", {"epochs": 0}),
        ("learning_rate must be positive", {"learning_rate": 0.0}),
        ("select must be at least 0 and below 1", {"select": 1.0}),
        ("dropout must be at least 0 and below 1", {"details": NetworkDetails(dropout=1.0)}),
        ("batch_size must be a whole number", {"details": NetworkDetails(batch_size=0)}),
        ("details must be NetworkDetails", {"details": 3}),
        ("device must be 'auto', 'cpu'", {"device": "tpu!"}),
    ],
)
def test_parameters_that_cannot_be_are_refused(words, how):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(ValueError, match=words):
        NetworkClassifier(**{**SMALL, "epochs": 1, **how}).fit(X, y)


def test_rows_that_cannot_be_are_refused(learned):
    X, y = mixed(20)
    with pytest.raises(ValueError, match="X must be a DataFrame with the columns"):
        learned.predict(np.zeros((2, 4)))
    with pytest.raises(
        ValueError, match="column 'number' held numbers when the network was fitted"
    ):
        learned.predict(X.assign(number="many"))
    with pytest.raises(ValueError, match="feature names should match"):
        learned.predict(X.rename(columns={"word": "other"}))
    with pytest.raises(ValueError, match="X contains infinity"):
        learned.predict(X.assign(number=np.inf))
    with pytest.raises(ValueError, match="one class only"):
        clone(learned).fit(X, ["no"] * 20)
    with pytest.raises(ValueError, match="at least one non-zero number"):
        clone(learned).fit(X, y, sample_weight=np.zeros(20))


def test_without_torch_one_sentence_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match="networks need PyTorch: pip install"):
        NetworkRegressor().fit(np.zeros((4, 1)), np.arange(4.0))
    assert list(NetworkRegressor.examples()) == []


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_comes_to_the_same_answers():
    X = rng.normal(size=(200, 3))
    y = X[:, 0] - X[:, 1]
    few = NetworkDetails(dropout=0.0)
    here, there = (
        NetworkRegressor(**SMALL, epochs=3, device=device, details=few).fit(X, y)
        for device in ("cpu", "cuda")
    )
    np.testing.assert_allclose(there.predict(X), here.predict(X), atol=1e-3)
    found = there.predict(X)
    np.testing.assert_allclose(there.set_params(device="cpu").predict(X), found, atol=1e-4)
