"""Decimal numbers in text are the nearest doubles, as Python's ``float`` has them."""

import random
import struct

import numpy as np
import pytest

from surelearn.data.decimals import number

HARD = [
    "0",
    "-0",
    "+2.5",
    ".5",
    "5.",
    "1e3",
    "-2.5e+10",
    "1e-320",
    "4.9e-324",
    "2.4703282292062327e-324",
    "2.4703282292062328e-324",
    "1.7976931348623157e308",
    "1.7976931348623159e308",
    "1e309",
    "7e22",
    "8.5e22",
    "1e23",
    "9007199254740993",
    "9007199254740992.5",
    "9007199254740993e1",
    "0e999",
    "0.000e-999",
    "2.2250738585072011e-308",
    "2.2250738585072014e-308",
    "1e999999999999",
]


def bits(word):
    value, end = number(np.frombuffer(f"{word}\n".encode(), dtype=np.uint8), 0)
    assert end == len(word)
    return struct.pack("d", value)


@pytest.mark.parametrize("word", HARD)
def test_numbers_that_are_hard_to_round(word):
    assert bits(word) == struct.pack("d", float(word))


def words(draw):
    """Doubles as they are written, short decimals, whole numbers with an exponent; up to 19
    digits.
    """
    for _ in range(20_000):
        double = struct.unpack("d", struct.pack("Q", draw.getrandbits(64)))[0]
        yield repr(double) if np.isfinite(double) else "1"
        yield f"{draw.gauss(0, 1):.{draw.randrange(1, 18)}f}"
        yield f"{draw.gauss(0, 10):.17g}"
        yield f"{draw.randrange(10 ** draw.randrange(1, 20))}e{draw.randrange(-345, 310)}"


def test_random_numbers():
    wrong = [
        word
        for word in words(random.Random(0))  # noqa: S311
        if bits(word) != struct.pack("d", float(word))
    ]
    assert wrong == []


@pytest.mark.parametrize("word", ["", "-", ".", "e5", "x", "1e", "1e+"])
def test_what_is_no_number(word):
    assert number(np.frombuffer(f"{word}\n".encode(), dtype=np.uint8), 0) == (0.0, 0)
