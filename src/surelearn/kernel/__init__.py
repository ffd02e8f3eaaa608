"""Kernels, one definition of each for the whole project, and learners that use them."""

from surelearn.kernel.eigenpro import EigenProClassifier, EigenProRegressor

__all__ = ["EigenProClassifier", "EigenProRegressor"]
