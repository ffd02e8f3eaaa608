"""Thousands of cheap cases cost more as tests of their own than they take: here all cases of one
test run, and those that fail are named and shown together.
"""

from functools import partial
from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator


def run(cases):
    """Call each case of (name, function); what fails is raised together, with its name."""
    count, failed, names = 0, [], []
    for name, case in cases:
        count += 1
        try:
            case()
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"case: {name}")
            failed.append(error)
            names.append(name)
    assert count, "there are no cases"
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} of {count} cases fail: {', '.join(names)}", failed)


def each(cases):
    """The decorated function is one test of all ``cases``, (name, its arguments)."""

    def decorate(function):
        def test():
            run((name, partial(function, *arguments)) for name, arguments in cases)

        test.__name__, test.__doc__ = function.__name__, function.__doc__
        test.__module__, test.__qualname__ = function.__module__, function.__qualname__
        return test

    return decorate


# those that scikit-learn itself skips without the packages that they are about
MAY_SKIP = {"check_array_api_input"}


def scikit_learn_accepts(learner, expected=None):
    """All of scikit-learn's checks of one learner; those expected to fail must do so."""
    expected = expected or {}
    known = set()

    def named(check):
        known.add(check.func.__name__)
        settings = ", ".join(f"{key}={value}" for key, value in check.keywords.items())
        return f"{check.func.__name__}({settings})" if settings else check.func.__name__

    def held(estimator, check):
        name = check.func.__name__
        try:
            check(estimator)
        except SkipTest:
            if name not in MAY_SKIP:
                raise
        except Exception:
            if name not in expected:
                raise
        else:
            assert name not in expected, "it passes: take it off the list of expected failures"

    run(
        (named(check), partial(held, estimator, check))
        for estimator, check in estimator_checks_generator(learner)
    )
    assert set(expected) <= known, "there is no such check"
