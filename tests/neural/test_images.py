"""The classifier of images: shapes, moves, what is saved, and that a fit is told by its seed."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn.datasets import load_digits  # noqa: E402

import surelearn  # noqa: E402
from surelearn.neural import Augmentation, ImageClassifier, ImageDetails, Training, train  # noqa: E402
from surelearn.neural.augmentation import MovedRows  # noqa: E402
from surelearn.neural.image_layers import Layout, folded, of_rows, standardize, trunk  # noqa: E402
from surelearn.subject import subject_of  # noqa: E402

DIGITS = load_digits()
X, y = DIGITS.images, DIGITS.target
CPU = torch.device("cpu")


def small(**given):
    settings = {"widths": (6, 8), "epochs": 2, "learning_rate": 0.02}
    return ImageClassifier(**{**settings, "random_state": 0, "device": "cpu", **given})


@pytest.fixture(scope="module")
def model():
    return small(epochs=4).fit(X[:500], y[:500])


def test_it_learns_digits(model):
    assert model.score(X[500:], y[500:]) > 0.7


def test_images_and_their_flat_rows_are_the_same(model):
    flat = small(epochs=4, shape=(8, 8)).fit(DIGITS.data[:500], y[:500])
    np.testing.assert_array_equal(
        flat.predict_proba(DIGITS.data[500:600]), model.predict_proba(X[500:600])
    )
    np.testing.assert_array_equal(model.predict(DIGITS.data[500:600]), model.predict(X[500:600]))


def test_bytes_are_what_they_are_as_numbers():
    few = np.round(X[:120] * 15).astype(np.uint8)
    ours = small().fit(few, y[:120])
    as_floats = small().fit(few.astype(np.float64), y[:120])
    np.testing.assert_allclose(ours.predict_proba(few), as_floats.predict_proba(few), atol=1e-6)


def test_a_fit_is_told_by_its_seed():
    again = [
        small(random_state=seed).fit(X[:120], y[:120]).predict_proba(X[:20]) for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(again[0], again[1])
    assert np.abs(again[0] - again[2]).max() > 1e-3


def test_channels_of_a_pixel_lie_side_by_side():
    """The network of flat rows takes them apart as the trunk wants them."""
    layout = Layout(kind="cnn", shape=(4, 6, 3), widths=(5,), depth=1, outputs=2)
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(7, 4, 6, 3, generator=generator)
    body = trunk(layout).eval()
    network = of_rows(layout, body)
    mean, scale = torch.tensor([0.1, -0.2, 0.3]), torch.tensor([1.0, 2.0, 0.5])
    standardize(network, mean, scale)
    expected = body(((images - mean) / scale).permute(0, 3, 1, 2))
    torch.testing.assert_close(network(images.flatten(1)), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["cnn", "mlp"])
def test_batch_normalization_folds_into_the_weights(kind):
    layout = Layout(kind=kind, shape=(8, 8, 1), widths=(4, 6), depth=2, outputs=3)
    network, images = trunk(layout), torch.randn(32, 1, 8, 8)
    for _ in range(3):
        network(images)  # running means move
    expected = network.eval()(images)
    plain = folded(network)
    assert not any("BatchNorm" in type(part).__name__ for part in plain)
    torch.testing.assert_close(plain(images), expected, atol=1e-5, rtol=1e-5)


def test_shifts_move_whole_pixels():
    batches = MovedRows(9, 9, Augmentation(shift=1), (8, 8), seed=0, device=CPU)
    (rows,) = list(batches.epoch(0))
    image = torch.arange(64.0).view(1, 1, 8, 8)
    moved = batches.images(image.expand(9, 1, 8, 8), rows)
    padded = np.pad(image[0, 0].numpy(), 1)
    possible = [padded[a : a + 8, b : b + 8] for a in range(3) for b in range(3)]
    found = [
        [k for k, one in enumerate(possible) if np.allclose(made, one, atol=1e-4)]
        for made in moved[:, 0].numpy()
    ]
    assert all(len(where) == 1 for where in found)
    assert len({where[0] for where in found}) > 2


def test_a_rotation_turns_pixels_on_a_circle():
    """Sides differ, so that a map in relative coordinates would stretch if it forgot them."""
    generator = np.random.default_rng(0)
    turn = Augmentation(shift=0, rotation=90.0).moves(50, (16, 32), generator).astype(float)
    pixels = np.diag([16.0, 8.0])  # from relative coordinates (x, y) to pixels
    for made in turn[:, :, :2]:
        Q = pixels @ made @ np.linalg.inv(pixels)
        np.testing.assert_allclose(Q @ Q.T, np.eye(2), atol=1e-5)


def test_rows_of_an_epoch_come_once_in_batches_of_one_size():
    batches = MovedRows(103, 20, Augmentation(shift=1), (8, 8), seed=3, device=CPU)
    first, maps = torch.cat(list(batches.epoch(0))), batches.maps.clone()
    second = torch.cat(list(batches.epoch(1)))
    assert len(batches) == 5
    assert batches.size == 20
    assert len(set(first.tolist())) == 100
    assert first.tolist() != second.tolist()
    np.testing.assert_array_equal(torch.cat(list(batches.epoch(0))), first)
    np.testing.assert_array_equal(batches.maps, maps)


def test_the_record_names_how_images_were_moved(model):
    record = model.record_
    assert (record.shift_down, record.shift_right, record.augmented) == (1, 1, True)
    still = small(augmentation=Augmentation(shift=0)).fit(X[:60], y[:60]).record_
    assert not still.augmented
    turned = Augmentation(rotation=10.0, zoom=0.1)
    assert small(augmentation=turned).fit(X[:60], y[:60]).record_.rotation == 10.0


def test_its_gradient_is_that_of_its_scores_in_pixels(model):
    f = subject_of(model).scores
    rows, h = DIGITS.data[:3], 1e-2
    weights = np.arange(10.0)
    found = f.gradient(rows, weights)
    assert found.shape == (3, 64)
    step = np.zeros(64)
    step[27] = h
    near = (f.scores(rows + step) - f.scores(rows - step)) @ weights / (2 * h)
    np.testing.assert_allclose(found[:, 27], near, rtol=0.02, atol=0.01)


def test_images_of_channels_are_saved_and_certified(tmp_path):
    colored = np.stack([X[:200], X[:200] * 0.5, X[:200] * 0], axis=3)
    model = small(network="mlp", widths=(12,)).fit(colored[:120], y[:120])
    again = surelearn.load(surelearn.save(model, tmp_path / "model"))
    assert again.shape_ == (8, 8, 3)
    np.testing.assert_array_equal(again.predict(colored), model.predict(colored))
    certificate = surelearn.certify(model, colored[120:], y[120:200])
    assert certificate["risk"].value > 0
    assert certificate.verify(again, colored[120:], y[120:200])


def test_weights_count():
    """All weight on one class leaves that class."""
    weights = np.where(y[:200] == 3, 1.0, 1e-9)
    model = small(epochs=6).fit(X[:200], y[:200], sample_weight=weights)
    assert (model.predict(X[200:260]) == 3).all()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"network": "rnn"}, "network must be 'cnn' or 'mlp'"),
        ({"widths": (0,)}, "each of widths must be a whole number"),
        ({"shape": (7, 8)}, "does not tell how 64 numbers of a row are height"),
        ({"augmentation": Augmentation(shift=-1)}, "shift must be a whole number of at least 0"),
        ({"details": ImageDetails(optimizer="sgd")}, "optimizer must be 'adamw' or 'muon'"),
        ({"device": "nowhere"}, "device must be 'auto'"),
    ],
)
def test_what_cannot_be_is_refused(change, says):
    with pytest.raises(ValueError, match=says):
        small(**change).fit(DIGITS.data[:50], y[:50])


def test_images_of_another_shape_are_refused(model):
    with pytest.raises(ValueError, match="was fitted on"):
        model.predict(X[:3, :7])
    with pytest.raises(ValueError, match="NaN"):
        small().fit(np.where(X[:50] > 15, np.nan, X[:50]), y[:50])


def test_a_graph_needs_a_gpu():
    w = torch.nn.Parameter(torch.zeros(1))
    batches = MovedRows(4, 2, Augmentation(shift=0), (1, 1), seed=0, device=CPU)
    with pytest.raises(ValueError, match="needs all parameters on one GPU"):
        train(lambda rows: w.sum() + 0 * rows.sum(), {"w": w}, batches, Training(graphed=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_recorded_step_has_a_twin_on_the_cpu():
    details = {"batch_size": 50, "precision": "float32"}
    on = {
        d: small(device=d, details=ImageDetails(**details)).fit(X[:200], y[:200])
        for d in ("cpu", "cuda")
    }
    np.testing.assert_allclose(
        on["cuda"].predict_proba(X[200:260]), on["cpu"].predict_proba(X[200:260]), atol=1e-2
    )
    moved = on["cuda"].set_params(device="cpu").predict_proba(X[200:260])
    np.testing.assert_allclose(
        on["cuda"].set_params(device="cuda").predict_proba(X[200:260]), moved, atol=1e-4
    )


def test_an_image_is_answered_alike_whatever_stands_beside_it(model):
    """`verify` compares probabilities to nine digits, and `predict` reads other pieces."""
    together = model.predict_proba(X[500:560])
    alone = np.concatenate([model.predict_proba(X[i : i + 1]) for i in range(500, 560)])
    np.testing.assert_allclose(alone, together, rtol=1e-12, atol=1e-14)
