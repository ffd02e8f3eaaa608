"""Kernels, one definition of each for the whole project, and learners that use them."""

from surelearn.kernel.choosing import choose_kernel
from surelearn.kernel.eigenpro import EigenProClassifier, EigenProRegressor
from surelearn.kernel.linear_form import LinearEigenProRegressor
from surelearn.kernel.positivity import check_positive

__all__ = ["EigenProClassifier", "EigenProRegressor", "LinearEigenProRegressor", "check_positive", "choose_kernel"]
