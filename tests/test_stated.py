import numpy as np
import pytest

from surelearn import stated


@pytest.mark.parametrize("value", [0, 1, -0.1, float("nan"), float("inf"), True, "0.5", None, 1.0])
def test_a_fraction_lies_strictly_between_0_and_1(value):
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1, not"):
        stated.fraction("delta", value)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "1", None])
def test_a_positive_number_is_finite(value):
    with pytest.raises(ValueError, match="cost must be positive and finite, not"):
        stated.positive("cost", value)


@pytest.mark.parametrize("value", [1, 2.0, True, "3", None, np.float64(3)])
def test_a_whole_number_is_no_float(value):
    with pytest.raises(ValueError, match="rows must be a whole number of at least 2, not"):
        stated.whole("rows", value, least=2)


def test_numbers_of_numpy_are_numbers():
    assert stated.fraction("delta", np.float32(0.5)) == 0.5
    assert stated.positive("cost", np.int64(3)) == 3.0
    assert stated.whole("rows", np.int32(3)) == 3
