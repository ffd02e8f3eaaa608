import numpy as np
import pytest

from surelearn.papers.thesis_oracle import draw_oracle


def seeds():
    return range(6)


@pytest.mark.parametrize("seed", seeds())
def test_four_clouds_of_equal_size_around_different_corners(seed):
    oracle = draw_oracle(seed)
    assert oracle.X.shape == (11_000, 12)
    assert np.bincount(oracle.clouds).tolist() == [2750] * 4
    assert set(np.abs(oracle.centers).ravel()) == {0.5}
    assert len({tuple(center) for center in oracle.centers}) == 4
    for cloud in range(4):
        points = oracle.X[oracle.clouds == cloud]
        np.testing.assert_allclose(points.mean(axis=0), oracle.centers[cloud], atol=0.1)
        np.testing.assert_allclose(points.std(axis=0), 1, atol=0.07)
    assert len(set(oracle.clouds[:600])) == 4, "points stand in random order"


@pytest.mark.parametrize("seed", seeds())
def test_the_stumps_give_the_labels(seed):
    """Each label from the definition 3.2, one point at a time."""
    oracle = draw_oracle(seed)
    assert 10 <= oracle.rounds <= 100
    assert (oracle.weights > 0).all()
    assert oracle.weights.sum() == pytest.approx(1)
    for x, y in zip(oracle.X[:50], oracle.y[:50], strict=True):
        votes = [
            alpha * (1 if a * x[i] <= a * b else -1)
            for i, b, a, alpha in zip(
                oracle.features, oracle.thresholds, oracle.directions, oracle.weights, strict=True
            )
        ]
        assert y == (1 if sum(votes) > 0 else -1)


def test_labels_are_rejected_above_the_fraction():
    strict = [draw_oracle(seed, reject_above=0.62) for seed in range(8)]
    assert sum(oracle.rejected for oracle in strict) > 0
    for oracle in strict:
        assert 0.38 <= np.mean(oracle.y == 1) <= 0.62


def test_what_cannot_be_met_is_refused(monkeypatch):
    monkeypatch.setattr("surelearn.papers.thesis_oracle.MOST_DRAWS", 3)
    with pytest.raises(
        ValueError,
        match=r"none of 3 votes has at most 0\.1 of the points in a class: raise reject_above",
    ):
        draw_oracle(0, reject_above=0.1)


def test_thresholds_lie_where_they_were_asked():
    assert np.abs(draw_oracle(1, thresholds="0.5").thresholds).max() <= 0.5
    wide = draw_oracle(1, thresholds="data")
    assert np.abs(wide.thresholds).max() > 2
    low, high = wide.X.min(axis=0)[wide.features], wide.X.max(axis=0)[wide.features]
    assert ((low <= wide.thresholds) & (wide.thresholds <= high)).all()


def test_an_oracle_is_its_seed():
    first, again, other = draw_oracle(3), draw_oracle(3), draw_oracle(4)
    assert (first.X == again.X).all()
    assert (first.y == again.y).all()
    assert first.X[0, 0] != other.X[0, 0]


def test_the_number_of_stumps_is_spread_over_its_range():
    rounds = [draw_oracle(seed, reject_above=1.0).rounds for seed in range(40)]
    assert min(rounds) < 25
    assert max(rounds) > 85
