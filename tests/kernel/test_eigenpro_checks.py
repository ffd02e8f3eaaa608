"""scikit-learn's own checks of the EigenPro learners."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from surelearn.kernel.eigenpro import EigenProClassifier, EigenProRegressor

pytest.importorskip("torch")


@parametrize_with_checks(
    [EigenProRegressor(random_state=0, device="cpu"), EigenProClassifier(random_state=0, device="cpu", regularization=1e-3)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
