"""The course's Sections 9 and 10: what is printed there, autograd, and torch's own layers."""

import numpy as np
import pytest

from surelearn.neural import XOR, BatchNormalization, TwoLayer, activations, collapsed, dropout
from surelearn.neural.convolution import (
    convolution_matrix,
    convolve,
    global_pool,
    output_size,
    pool,
    same_padding,
)

rng = np.random.default_rng(0)


def tensor(values, **options):
    return pytest.importorskip("torch").tensor(np.asarray(values, dtype=float), **options)


# --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["relu", "elu", "sigmoid", "tanh"])
def test_activations_and_their_slopes_are_torchs(name):
    torch = pytest.importorskip("torch")
    t = np.concatenate([rng.normal(size=50) * 3, [0.0, 40.0, -40.0]])
    x = tensor(t, requires_grad=True)
    y = getattr(torch.nn.functional, name)(x) if name == "elu" else getattr(torch, name)(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    np.testing.assert_allclose(getattr(activations, name)(t), y.detach(), rtol=1e-13, atol=1e-15)
    found = getattr(activations, f"{name}_slope")(t)
    np.testing.assert_allclose(found, slope, rtol=1e-10, atol=1e-15)


def test_activations_do_not_overflow():
    with np.errstate(all="raise", under="ignore"):
        assert activations.elu([1e4, -1e4]).tolist() == [1e4, -1.0]
        assert activations.sigmoid([1e4, -1e4]).tolist() == [1.0, 0.0]


def test_the_seven_gradients_are_autograds():
    torch = pytest.importorskip("torch")
    parts = {"W": (5, 3), "b1": (5,), "U": (2, 5), "b2": (2,)}
    net = TwoLayer(**{name: rng.normal(size=shape) for name, shape in parts.items()})
    x, y = rng.normal(size=3), rng.normal(size=2)
    W, b1, U, b2 = (tensor(getattr(net, name), requires_grad=True) for name in parts)
    z = W @ tensor(x) + b1
    h = torch.relu(z)
    theta = U @ h + b2
    loss = 0.5 * ((theta - tensor(y)) ** 2).sum()
    by = {"theta": theta, "U": U, "b2": b2, "h": h, "z": z, "W": W, "b1": b1}
    assert net.loss(x, y) == pytest.approx(loss.item())
    found = net.gradients(x, y)
    for (name, _), gradient in zip(
        by.items(), torch.autograd.grad(loss, list(by.values())), strict=True
    ):
        np.testing.assert_allclose(getattr(found, name), gradient, rtol=1e-12, atol=1e-14)


def test_the_printed_weights_compute_xor():
    bits = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert np.sign(XOR(bits)[:, 0]).tolist() == [-1, 1, 1, -1]
    assert (
        sum(np.size(part) for part in vars(XOR).values()) == 9
    )  # parameters, as the course counts


def test_a_stack_of_linear_layers_is_one_layer():
    layers = [(rng.normal(size=(a, b)), rng.normal(size=a)) for a, b in ((5, 3), (4, 5), (2, 4))]
    A, c = collapsed(layers)
    x = rng.normal(size=3)
    y = x
    for matrix, shift in layers:
        y = matrix @ y + shift
    np.testing.assert_allclose(A @ x + c, y, rtol=1e-12)
    assert A.shape == (2, 3)


# --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("q", [0.3, 0.8, 1.0])
def test_dropout_leaves_the_mean_and_drops_a_share(q):
    h = np.full(100_000, 2.0)
    found = dropout(h, q, np.random.default_rng(1))
    assert set(np.unique(found)) <= {0.0, 2 / q}
    assert abs(found.mean() - 2) < 5 * 2 * np.sqrt((1 / q - 1) / h.size) + 1e-12
    with pytest.raises(ValueError, match="q must lie strictly between 0 and 1"):
        dropout(h, 0.0, rng)


def test_batch_normalization_is_torchs():
    torch = pytest.importorskip("torch")
    ours, theirs = BatchNormalization(3), torch.nn.BatchNorm1d(3, dtype=torch.float64)
    ours.gamma, ours.beta = rng.normal(size=3), rng.normal(size=3)
    with torch.no_grad():
        theirs.weight.copy_(tensor(ours.gamma))
        theirs.bias.copy_(tensor(ours.beta))
    for _ in range(4):
        X = rng.normal(size=(7, 3)) * 3 + 1
        np.testing.assert_allclose(ours.train(X), theirs(tensor(X)).detach(), rtol=1e-10)
    theirs.eval()
    np.testing.assert_allclose(ours(X), theirs(tensor(X)).detach(), rtol=1e-10)
    with pytest.raises(ValueError, match="at least two rows"):
        ours.train(X[:1])


# --------------------------------------------------------------------------------------------------
PRINTED = np.array(
    [[1, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0]]
)
CROSS = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]])


def test_example_10_1():
    assert convolve(PRINTED, CROSS).tolist() == [[4, 3, 4], [2, 4, 3], [2, 3, 4]]
    # a kernel that is no mirror image of itself is not flipped
    assert convolve([[1, 2, 3]], [[1, 10]]).tolist() == [[21, 32]]


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1), ((2, 3), (0, 2))])
def test_several_channels_and_outputs_are_torchs(stride, padding):
    torch = pytest.importorskip("torch")
    X, W, b = rng.normal(size=(3, 9, 8)), rng.normal(size=(5, 3, 4, 2)), rng.normal(size=5)
    found = convolve(X, W, b, stride=stride, padding=padding)
    theirs = torch.nn.functional.conv2d(
        tensor(X)[None], tensor(W), tensor(b), stride=stride, padding=padding
    )
    np.testing.assert_allclose(found, theirs[0], rtol=1e-12, atol=1e-12)
    one = convolve(X, W[1], b[1], stride=stride, padding=padding)
    np.testing.assert_allclose(one, found[1], rtol=1e-12)
    s, p = np.broadcast_to(stride, 2), np.broadcast_to(padding, 2)
    assert found.shape == (
        5,
        output_size(9, 4, int(s[0]), int(p[0])),
        output_size(8, 2, int(s[1]), int(p[1])),
    )


def test_output_sizes_by_counting_places():
    for m in range(1, 12):
        for a in range(1, 6):
            for s in range(1, 4):
                for p in range(3):
                    places = sum(1 for start in range(m + 2 * p) if start % s == 0 and start + a <= m + 2 * p)  # fmt: skip
                    if places:
                        assert output_size(m, a, s, p) == places
                    else:
                        with pytest.raises(ValueError, match="does not fit"):
                            output_size(m, a, s, p)


def test_same_padding_keeps_the_size():
    for m in range(1, 20):
        for a in range(1, 8):
            for s in range(1, 5):
                if m * (s - 1) + a - s < 0:  # a kernel shorter than its stride: no padding shrinks
                    continue
                size = output_size(m, a, s, same_padding(m, a, s))
                assert size == m + (s == 1 and a % 2 == 0)


def test_convolution_is_multiplication_by_a_sparse_matrix():
    for shape, kernel in (((3, 3), (2, 2)), ((6, 4), (3, 2)), ((4, 4), (4, 1))):
        X, W = rng.normal(size=shape), rng.normal(size=kernel)
        made = convolution_matrix(W, shape)
        np.testing.assert_allclose(made @ X.ravel(), convolve(X, W).ravel(), rtol=1e-12)
    printed = [
        [1, 2, 0, 3, 4, 0, 0, 0, 0],
        [0, 1, 2, 0, 3, 4, 0, 0, 0],
        [0, 0, 0, 1, 2, 0, 3, 4, 0],
        [0, 0, 0, 0, 1, 2, 0, 3, 4],
    ]
    assert convolution_matrix([[1, 2], [3, 4]], (3, 3)).tolist() == printed


@pytest.mark.parametrize("how", ["max", "average"])
def test_pooling_is_torchs(how):
    torch = pytest.importorskip("torch")
    X = rng.normal(size=(2, 7, 6))
    f = torch.nn.functional.max_pool2d if how == "max" else torch.nn.functional.avg_pool2d
    np.testing.assert_allclose(pool(X, 2, how=how), f(tensor(X), 2), rtol=1e-12)
    np.testing.assert_allclose(
        pool(X, (3, 2), how=how, stride=(2, 1)), f(tensor(X), (3, 2), (2, 1)), rtol=1e-12
    )
    reduce = np.max if how == "max" else np.mean
    np.testing.assert_allclose(global_pool(X, how=how), reduce(X, axis=(1, 2)), rtol=1e-12)
    with pytest.raises(ValueError, match="how must be"):
        pool(X, how="median")


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="the same channels"):
        convolve(np.ones((2, 4, 4)), np.ones((3, 2, 2)))
    with pytest.raises(ValueError, match="does not fit"):
        convolve(np.ones((2, 2)), np.ones((3, 3)))
    with pytest.raises(ValueError, match="stride must be a whole number"):
        convolve(np.ones((4, 4)), np.ones((2, 2)), stride=0)


# --------------------------------------------------------------------------------------------------
def count(module):
    return sum(p.numel() for p in module.parameters())


def test_lenet():
    torch = pytest.importorskip("torch")
    from surelearn.neural.architectures import lenet

    net = lenet()
    assert count(net) == 61_706
    shapes, x = [], torch.zeros(2, 1, 32, 32)
    for layer in net:
        x = layer(x)
        if isinstance(layer, torch.nn.Conv2d | torch.nn.AvgPool2d | torch.nn.Linear):
            shapes.append(tuple(x.shape[1:]))
    assert shapes == [(6, 28, 28), (6, 14, 14), (16, 10, 10), (16, 5, 5), (120,), (84,), (10,)]


def test_the_radial_output_answers_the_nearest_code():
    torch = pytest.importorskip("torch")
    from surelearn.neural.architectures import digit_codes, lenet, radial_loss

    codes = digit_codes()
    apart = (codes[:, None] != codes).sum(dim=2)
    assert apart.fill_diagonal_(99).min() >= 3
    assert codes.abs().unique().tolist() == [1.0]
    net = lenet(radial=True)
    assert count(net) == 61_706 - 850  # codes are not trained
    distances = net[-1](codes)
    assert distances.argmin(dim=1).tolist() == list(range(10))
    np.testing.assert_array_equal(distances, 4 * (codes[:, None] != codes).sum(dim=2))
    # Equation 9, written out
    d, t = torch.rand(4, 10) * 5, torch.tensor([0, 3, 3, 9])
    wanted = [
        float(d[i, t[i]]) + np.log(np.exp(-2.0) + np.exp(-d[i].numpy()).sum()) for i in range(4)
    ]
    assert float(radial_loss(d, t, j=2.0)) == pytest.approx(np.mean(wanted), rel=1e-6)


def test_alexnet():
    torch = pytest.importorskip("torch")
    from surelearn.neural.architectures import alexnet

    with torch.device("meta"):
        whole, halves = alexnet(), alexnet(groups=2)
        x = torch.empty(1, 3, 224, 224)
    assert (count(whole), count(halves)) == (62_378_344, 60_965_224)
    assert tuple(whole[0](x).shape[1:]) == (96, 55, 55)
    assert tuple(halves(x).shape) == (1, 1000)
