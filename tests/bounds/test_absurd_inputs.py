"""Every theorem with absurd numbers: a number that means something (±∞ too), or one sentence;
never anything else.
"""

import math
import warnings

import numpy as np
import pytest

from surelearn.bounds import theorems

ABSURD = (
    math.inf, -math.inf, math.nan, -1, 0, 0.5, 10**400, -(10**400), 1e300, 1e308, 5e-324, 1e-300, 2**63, 10**9, 10**15,
    True, None, "3", "x", [], [[1.0]], {}, 1j, (math.nan,), (1e308, 1e308), object,
)  # fmt: skip


@pytest.mark.parametrize("theorem", theorems(), ids=lambda theorem: theorem.key)
def test_absurd_inputs_give_a_number_or_one_sentence(theorem):
    for name in theorem.signature.parameters:
        for value in ABSURD:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    result, said = theorem(**{**theorem.example, name: value}), "a number"
                except ValueError as error:
                    result, said = 0.0, str(error)
            assert "\n" not in said, (name, value)
            assert 0 < len(said) < 300, (name, value)
            assert not np.isnan(np.asarray(result, dtype=float)).any(), (name, value)


def test_an_argument_too_many_is_still_a_type_error():
    theorem = theorems()[0]
    with pytest.raises(TypeError):
        theorem(**theorem.example, nonsense=1)  # pyright: ignore[reportCallIssue]
