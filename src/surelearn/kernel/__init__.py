"""Kernels, one definition of each for the whole project, and learners that use them."""

from surelearn.kernel.choosing import choose_kernel
from surelearn.kernel.eigenpro import EigenProClassifier, EigenProRegressor
from surelearn.kernel.feature_weights import FeatureWeights
from surelearn.kernel.linear_form import LinearEigenProRegressor
from surelearn.kernel.options import Compute, Preconditioner, Stopping
from surelearn.kernel.positivity import check_positive
from surelearn.kernel.random_features import RandomFeaturesRegressor

__all__ = [
    "Compute",
    "EigenProClassifier",
    "EigenProRegressor",
    "FeatureWeights",
    "LinearEigenProRegressor",
    "Preconditioner",
    "RandomFeaturesRegressor",
    "Stopping",
    "check_positive",
    "choose_kernel",
]
