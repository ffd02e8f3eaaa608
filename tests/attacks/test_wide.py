"""A logistic regression with very many columns, as text has them: its page must not wait for a
Hessian that nobody can factor.
"""

import numpy as np
from scipy import sparse

from surelearn.attacks import leave_one_out
from surelearn.attacks.influence_known import WIDEST
from surelearn.lacking import Lacking
from surelearn.linear import LogisticRegression


def test_leave_one_out_fits_of_very_many_columns_are_not_computed():
    X = sparse.random(40, WIDEST + 1, density=0.01, random_state=0, format="csr")
    y = np.arange(40) % 2
    model = LogisticRegression(regularization=0.01, epochs=0, finish="lbfgs").fit(X, y)
    found = leave_one_out(model, X, y, X)
    assert isinstance(found, Lacking)
    assert found.reason == "it has 2,001 prepared columns, more than 2,000"
