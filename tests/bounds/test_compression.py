"""Compression bounds against high-precision roots with exact binomials, and against learners
whose law is known.
"""

from __future__ import annotations

import math

import mpmath as mp
import pytest

from surelearn import bounds


def halve(below, low, high):
    """The point of [low, high] up to which ``below`` is true."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return float(low)


@pytest.mark.parametrize(
    ("k", "n", "delta"),
    [(38, 398, 0.05), (0, 1, 0.5), (0, 50, 0.05), (3, 40, 1e-9), (30, 40, 0.5), (5, 200, 1e-300)],
)
def test_campi_garatti_is_the_root_of_its_equation(k, n, delta):
    def left_side(e):
        terms = (
            mp.mpf(math.comb(m, k)) / math.comb(n, k) / (1 - e) ** (n - m) for m in range(k, n)
        )
        return delta * mp.fsum(terms) / n

    with mp.workdps(40):
        root = halve(lambda e: left_side(e) < 1, mp.mpf(0), mp.mpf(1))
    assert bounds.campi_garatti(k, n, delta) == pytest.approx(root, rel=1e-12)


@pytest.mark.parametrize(("n", "delta"), [(1, 0.05), (2, 0.5), (10, 0.05), (300, 1e-6)])
def test_campi_garatti_closed_forms(n, delta):
    # One term is left at k = n − 1: δ/n²/(1 − ε) = 1. Nothing at k = n.
    assert bounds.campi_garatti(n - 1, n, delta) == pytest.approx(1 - delta / n**2, rel=1e-14)
    assert bounds.campi_garatti(n, n, delta) == 1.0


@pytest.mark.parametrize("n", [5, 40, 300])
def test_campi_garatti_holds_for_the_smallest_interval(n):
    # The largest of n uniform points compresses to one, the smallest interval to two; their risks
    # are Beta distributed.
    for size, tail in (
        (1, lambda e: (1 - e) ** n),
        (2, lambda e: n * (1 - e) ** (n - 1) - (n - 1) * (1 - e) ** n),
    ):
        failure = tail(bounds.campi_garatti(size, n, 0.05))
        assert 0 < failure <= 0.05


@pytest.mark.parametrize(
    ("k", "n", "delta", "messages"), [(38, 398, 0.05, 1), (0, 20, 0.5, 1), (19, 20, 0.05, 7)]
)
def test_floyd_warmuth_without_errors(k, n, delta, messages):
    with mp.workdps(40):
        share = mp.mpf(delta) / ((n + 1) * math.comb(n, k) * messages)
        expected = 1 - mp.root(share, n - k)
    assert bounds.floyd_warmuth(k, n, delta, messages=messages) == pytest.approx(
        float(expected), rel=1e-12
    )


@pytest.mark.parametrize(
    ("k", "n", "errors", "messages"),
    [
        *((38, 398, 5, 1), (2, 30, 27, 1), (10, 100, 1, 1000)),
        # δ/C(n, k) below the smallest float
        *((500, 2000, 40, 1), (1000, 2000, 3, 10**6), (300, 700, 399, 1)),
        # SciPy's inverse is unsound, or NaN
        *((173, 2038, 36, 1), (1236, 1341, 101, 1), (593, 805, 209, 1)),
    ],
)
def test_floyd_warmuth_with_errors(k, n, errors, messages):
    value = bounds.floyd_warmuth(k, n, 0.05, errors=errors, messages=messages)
    with mp.workdps(40):
        share = mp.mpf("0.05") / ((n + 1) * mp.mpf(math.comb(n, k)) * messages)
        rest, ways = n - k, [math.comb(n - k, i) for i in range(errors + 1)]
        root = halve(
            lambda p: (
                mp.fsum(c * p**i * (1 - p) ** (rest - i) for i, c in enumerate(ways)) >= share
            ),
            mp.mpf(errors) / rest,
            mp.mpf(1),
        )
    assert value == pytest.approx(root, rel=1e-11)


@pytest.mark.parametrize(("k", "n", "errors"), [(10, 10, 0), (4, 10, 6), (0, 1, 1)])
def test_floyd_warmuth_says_nothing_when_no_row_is_right(k, n, errors):
    assert bounds.floyd_warmuth(k, n, 0.05, errors=errors) == 1.0


def test_floyd_warmuth_is_clopper_pearson_on_the_rest():
    assert bounds.floyd_warmuth(0, 100, 0.05, errors=7) == pytest.approx(
        bounds.clopper_pearson(7, 100, 0.05 / 101), rel=1e-12
    )


@pytest.mark.parametrize(
    ("bound", "inputs"),
    [
        (bounds.campi_garatti, {"size": 11, "n": 10}),
        (bounds.floyd_warmuth, {"size": 11, "n": 10}),
        (bounds.floyd_warmuth, {"size": 5, "n": 10, "errors": 6}),
    ],
)
def test_more_rows_than_there_are_is_refused(bound, inputs):
    with pytest.raises(ValueError, match="size"):
        bound(**inputs, delta=0.05)
