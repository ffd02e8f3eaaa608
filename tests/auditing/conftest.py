"""Rows that several files about the audit share."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler


@pytest.fixture(scope="session")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    X = StandardScaler().fit(X[:300]).transform(X)
    return X[:300], y[:300], X[300:], y[300:]
