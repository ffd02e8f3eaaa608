"""A logistic regression with very many columns, as text has them: its fits without a row are sums of
rows, and its page must not wait for a Hessian that nobody can factor.
"""

import numpy as np
from scipy import sparse

from surelearn.attacks import influence_known, leave_one_out
from surelearn.attacks.influence_known import WIDEST
from surelearn.lacking import Lacking
from surelearn.linear import LogisticRegression

X = sparse.random(40, WIDEST + 1, density=0.01, random_state=0, format="csr")
Y = np.where(np.arange(40) % 2 > 0, "yes", "no")


def model(rows):
    return LogisticRegression(regularization=0.01, epochs=0, finish="lbfgs").fit(X[rows], Y[rows])


def test_leave_one_out_fits_of_few_rows_with_very_many_columns_are_those_of_refits():
    every = np.arange(40)
    found = leave_one_out(model(every), X, Y, X, rows=[3, 17])
    assert found.full.shape == (40, 1)
    for i, values in zip([3, 17], found.each(), strict=True):
        kept = every[every != i]
        again = LogisticRegression(regularization=0.01 * 40 / 39, epochs=0, finish="lbfgs").fit(
            X[kept], Y[kept]
        )  # the total penalty stays
        assert np.allclose(values[:, 0], again.decision_function(X), atol=1e-5)
        assert not np.allclose(values, found.full, atol=1e-3)


def test_leave_one_out_fits_of_many_rows_and_columns_are_not_computed(monkeypatch):
    monkeypatch.setattr(influence_known, "WIDEST", 39)
    found = leave_one_out(model(np.arange(40)), X, Y, X)
    assert isinstance(found, Lacking)
    assert found.reason == "it has 2,001 prepared columns and 40 rows, more than 39 of both"
