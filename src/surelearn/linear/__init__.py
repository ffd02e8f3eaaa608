"""Linear learners, each with its certificate."""

from surelearn.linear.dp_logistic import DPLogisticRegression
from surelearn.linear.logistic.learner import LogisticRegression
from surelearn.linear.logistic.options import SGD
from surelearn.linear.naive_bayes import NaiveBayes
from surelearn.linear.perceptron.learner import Perceptron
from surelearn.linear.ridge.learner import LeastSquares, Ridge
from surelearn.linear.robust.lasso import SquareRootLasso
from surelearn.linear.robust.regression import HuberRegression, VariationalRegression
from surelearn.linear.svm.learner import SupportVectorMachine
from surelearn.linear.svm.liblinear import LiblinearMachines

__all__ = [
    "SGD",
    "DPLogisticRegression",
    "HuberRegression",
    "LeastSquares",
    "LiblinearMachines",
    "LogisticRegression",
    "NaiveBayes",
    "Perceptron",
    "Ridge",
    "SquareRootLasso",
    "SupportVectorMachine",
    "VariationalRegression",
]
