"""Learners whose true risk is known, for tests of criteria."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Columns(ClassifierMixin, BaseEstimator):
    """Predicts with one of the columns, whatever it is fitted on; as a nested family with every
    column in turn.
    """

    fits = 0

    def __init__(self, n_rounds=1):
        self.n_rounds = n_rounds

    def fit(self, X, y):  # noqa: ARG002
        type(self).fits += 1
        self.classes_ = np.unique(y)
        return self

    def staged_predict(self, X):
        return (X[:, t] for t in range(self.n_rounds))

    def predict(self, X):
        return X[:, self.n_rounds - 1]


class Slow(Columns):
    """The same, without stages."""

    staged_predict = property()


def coins(trial, n, columns, wrong=0.5):
    """Labels of a fair coin, and columns that are each wrong about a row with a probability,
    one or one a column.
    """
    rng = np.random.default_rng([trial, n, columns])
    y = rng.integers(2, size=n)
    return np.where(rng.random((n, columns)) < wrong, 1 - y[:, None], y[:, None]), y
