"""Cases that run together are all run, and named where they fail."""

import pytest
from tests.cases import each, scikit_learn_accepts

from surelearn.linear import LeastSquares


def test_every_case_runs_and_those_that_fail_are_named():
    ran = []

    @each([("one", (1,)), ("two", (2,)), ("three", (3,))])
    def odd(number):
        """Says what it is about."""
        ran.append(number)
        if number == 3:
            with pytest.raises(ValueError, match="never"):
                pass
        assert number % 2

    with pytest.raises(BaseExceptionGroup, match=r"2 of 3 cases fail: two, three") as failed:
        odd()
    assert ran == [1, 2, 3]
    assert failed.value.exceptions[0].__notes__ == ["case: two"]
    assert odd.__name__ == "odd"


def test_no_cases_are_no_success():
    with pytest.raises(AssertionError, match="there are no cases"):
        each([])(lambda: None)()


class ReturnsNothing(LeastSquares):
    def fit(self, X, y):
        super().fit(X, y)


def test_a_check_that_fails_is_named_and_one_that_was_to_fail_must():
    with pytest.raises(ExceptionGroup, match="check_estimators_fit_returns_self"):
        scikit_learn_accepts(ReturnsNothing())
    with pytest.raises(ExceptionGroup, match=r"1 of \d+ cases fail: check_fit1d"):
        scikit_learn_accepts(LeastSquares(), {"check_fit1d": "it does not"})
