"""Decimal numbers in text, compiled: the nearest double, as Python's ``float`` and pyarrow have it.

Up to 2⁵³ with a power of ten up to 10²² one exact division or product rounds once (W. D. Clinger,
"How to read floating point numbers accurately", 1990). Others are multiplied by 128 bits of their
power of five (D. Lemire, "Number parsing at a gigabyte per second", 2021, Section 5; that no other
step is needed: N. Mushtak and D. Lemire, "Fast number parsing without fallback", 2023). Of more
than 19 digits the first 19 count, so that the last bit may differ there.
"""

from __future__ import annotations

import math

import numba
import numpy as np

_POWERS = 10.0 ** np.arange(23)  # exact in 8 bytes
_EXACT = 1 << 53
_LEAST, _MOST = -342, 308  # powers of ten beyond which every number of 19 digits is 0 or infinite


def _powers_of_five() -> np.ndarray:
    """The 128 first bits of 5^q, q from `_LEAST` to `_MOST`, as two words: cut off, and of
    reciprocals rounded up.
    """
    table = np.empty((_MOST - _LEAST + 1, 2), dtype=np.uint64)
    for q in range(_LEAST, _MOST + 1):
        power = 5 ** abs(q)
        if q >= 0:
            bits = power << 128 >> power.bit_length()
        else:
            above = (power - 1).bit_length()
            bits = (1 << (2 * above + 128 if q < -27 else above + 127)) // power + 1
            bits >>= max(0, bits.bit_length() - 128)
        table[q - _LEAST] = bits >> 64, bits & (2**64 - 1)
    return table


_FIVES = _powers_of_five()
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@numba.njit(cache=True)
def _product(a, b):
    """The high and the low word of a product of two words."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOW, b >> _HALF, b & _LOW
    low = a_low * b_low
    first = a_high * b_low + (low >> _HALF)
    second = a_low * b_high + (first & _LOW)
    return a_high * b_high + (first >> _HALF) + (second >> _HALF), (second << _HALF) | (low & _LOW)


@numba.njit(cache=True)
def nearest(whole, power):
    """The double nearest to whole·10^power, for a whole number of at most 19 digits."""
    if whole == 0 or power < _LEAST:
        return 0.0
    if power > _MOST:
        return math.inf
    word, shift, step = np.uint64(whole), 0, 32
    while step:  # its first bit to the front
        if not word >> np.uint64(64 - step):
            word <<= np.uint64(step)
            shift += step
        step >>= 1
    high, low = _product(word, _FIVES[power - _LEAST, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        more, _ = _product(word, _FIVES[power - _LEAST, 1])
        low += more
        if low < more:
            high += np.uint64(1)
    upper = np.int64(high >> np.uint64(63))
    mantissa = high >> np.uint64(upper + 9)
    exponent = (((152170 + 65536) * power) >> 16) + 63 + upper - shift + 1023
    if exponent <= 0:  # a number with fewer bits
        if -exponent + 1 >= 64:
            return 0.0
        mantissa >>= np.uint64(-exponent + 1)
        mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
        return math.ldexp(float(mantissa), -1074)
    halfway = low <= np.uint64(1) and -4 <= power <= 23 and mantissa << np.uint64(upper + 9) == high
    if halfway and mantissa & np.uint64(3) == np.uint64(1):  # to the even one
        mantissa &= ~np.uint64(1)
    mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
    if exponent + (mantissa >> np.uint64(53)) >= 2047:
        return math.inf
    return math.ldexp(float(mantissa), exponent - 1075)


@numba.njit(cache=True)
def _long_number(text, p):
    """As `number`, with an exponent or more digits than 8 bytes hold."""
    begin, negative = p, text[p] == 45
    if text[p] == 45 or text[p] == 43:
        p += 1
    # digits are counted from the first that is not zero
    whole, digits, power, found = np.uint64(0), 0, 0, False
    while 48 <= text[p] <= 57:
        if digits < 19:
            whole = whole * np.uint64(10) + np.uint64(text[p] - 48)
        else:
            power += 1
        digits += digits > 0 or text[p] > 48
        found = True
        p += 1
    if text[p] == 46:
        p += 1
        while 48 <= text[p] <= 57:
            if digits < 19:
                whole = whole * np.uint64(10) + np.uint64(text[p] - 48)
                power -= 1
            digits += digits > 0 or text[p] > 48
            found = True
            p += 1
    if not found:
        return 0.0, begin
    if text[p] == 101 or text[p] == 69:
        q, sign, exponent = p + 1, 1, 0
        if text[q] == 45 or text[q] == 43:
            sign = -1 if text[q] == 45 else 1
            q += 1
        if not 48 <= text[q] <= 57:
            return 0.0, begin
        while 48 <= text[q] <= 57:
            exponent = min(exponent * 10 + (text[q] - 48), 99999)
            q += 1
        p, power = q, power + sign * exponent
    value = nearest(whole, power)
    return -value if negative else value, p


@numba.njit(cache=True)
def count_of(text, byte):
    """How often a byte stands in text."""
    count = 0
    for p in range(text.size):
        count += text[p] == byte
    return count


@numba.njit(cache=True)
def number(text, p):
    """The decimal number that begins at p, and where it ends; at p where there is none. The
    text ends in a line break.
    """
    begin, negative = p, text[p] == 45
    if text[p] == 45 or text[p] == 43:
        p += 1
    whole, first = 0, p
    c = int(text[p]) - 48
    while 0 <= c <= 9:
        whole = whole * 10 + c
        p += 1
        c = int(text[p]) - 48
    digits, power = p - first, 0
    if c == -2:  # a point
        p += 1
        first = p
        c = int(text[p]) - 48
        while 0 <= c <= 9:
            whole = whole * 10 + c
            p += 1
            c = int(text[p]) - 48
        power = p - first
        digits += power
    if digits == 0:
        return 0.0, begin
    many = digits > 15 and (digits > 18 or (whole > _EXACT and power > 0))
    if many or c == 53 or c == 21:  # e or E
        return _long_number(text, begin)
    value = float(whole)
    if power:
        value /= _POWERS[power]
    return -value if negative else value, p
