"""Linear learners, each with its certificate."""

from surelearn.linear.logistic import LogisticRegression
from surelearn.linear.naive_bayes import NaiveBayes
from surelearn.linear.perceptron import Perceptron
from surelearn.linear.ridge import LeastSquares, Ridge
from surelearn.linear.robust import HuberRegression, VariationalRegression
from surelearn.linear.robust_lasso import SquareRootLasso
from surelearn.linear.svm import SupportVectorMachine

__all__ = [
    "HuberRegression",
    "LeastSquares",
    "LogisticRegression",
    "NaiveBayes",
    "Perceptron",
    "Ridge",
    "SquareRootLasso",
    "SupportVectorMachine",
    "VariationalRegression",
]
