"""Stable keys of classes whose objects are saved: a file says "ridge/1", wherever the class lives
today.

A class that is saved states its key, ``saved_as = "ridge/1"``, for itself and not for what is
derived from it; the number grows when what its objects hold changes its meaning. A key is looked
for among classes of surelearn that are loaded, and then in the installed packages where learners
live: no file of a model names a module that is imported.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
import sys

from surelearn.record import ROOMS

# packages and modules where classes with a key live
HOMES = (
    *ROOMS,
    "selection.preparation",
    "selection.text",
    "selection.combined",
    "selection.boosters",
    "selection.widths",
    "attacks.domains",
    "subject.recorded",
)
_KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*/[1-9][0-9]{0,3}")
# Where a class lived while files named its module, in the order of time. Closed: since then files
# have keys. Fingerprints of
# these classes hold the last path for good, so that moving a class makes no other model of it.
_PATHS = {
    "adaboost-classifier/1": ("boosting.adaboost.AdaBoostClassifier",),
    "adversarial-classifier/1": ("robust.adversarial_classifier.AdversarialClassifier",),
    "adversarial-linear-classifier/1": ("robust.adversarial.AdversarialLinearClassifier",),
    "date-parts/1": ("selection.preparation.DateParts",),
    "decision-stump/1": ("boosting.stump.DecisionStump",),
    "domain/1": ("attacks.domains.Domain",),
    "dp-logistic-regression/1": ("linear.dp_logistic.DPLogisticRegression",),
    "dp-module/1": ("optim.dp_module.DPModule",),
    "eigenpro-classifier/1": ("kernel.eigenpro.EigenProClassifier",),
    "eigenpro-regressor/1": ("kernel.eigenpro.EigenProRegressor",),
    "fourier-features/1": ("kernel.random_features.FourierFeatures",),
    "gaussian-kernel/1": ("kernel.functions.Gaussian",),
    "hashed-words/1": ("selection.preparation.HashedWords",),
    "huber-regression/1": (
        "linear.robust.HuberRegression",
        "linear.robust.regression.HuberRegression",
    ),
    "kmeans/1": ("cluster.kmeans.KMeans",),
    "laplace-kernel/1": ("kernel.functions.Laplace",),
    "least-squares/1": ("linear.ridge.LeastSquares", "linear.ridge.learner.LeastSquares"),
    "linear-eigenpro-regressor/1": ("kernel.linear_form.LinearEigenProRegressor",),
    "linear-kernel/1": ("kernel.functions.Linear",),
    "logistic-regression/1": (
        "linear.logistic.LogisticRegression",
        "linear.logistic.learner.LogisticRegression",
    ),
    "matern-kernel/1": ("kernel.functions.Matern",),
    "naive-bayes/1": ("linear.naive_bayes.NaiveBayes",),
    "partition-classifier/1": ("robust.partition.PartitionClassifier",),
    "perceptron/1": ("linear.perceptron.Perceptron", "linear.perceptron.learner.Perceptron"),
    "polynomial-kernel/1": ("kernel.functions.Polynomial",),
    "precomputed-kernel/1": ("kernel.functions.Precomputed",),
    "product-kernel/1": ("kernel.composites.Product",),
    "random-features-regressor/1": ("kernel.random_features.RandomFeaturesRegressor",),
    "relu-features/1": ("kernel.random_features.ReluFeatures",),
    "ridge/1": ("linear.ridge.Ridge", "linear.ridge.learner.Ridge"),
    "square-root-lasso/1": (
        "linear.robust_lasso.SquareRootLasso",
        "linear.robust.lasso.SquareRootLasso",
    ),
    "sum-kernel/1": ("kernel.composites.Sum",),
    "support-vector-machine/1": (
        "linear.svm.SupportVectorMachine",
        "linear.svm.learner.SupportVectorMachine",
    ),
    "variational-regression/1": (
        "linear.robust.VariationalRegression",
        "linear.robust.regression.VariationalRegression",
    ),
}
EARLIER = {f"surelearn.{path}": key for key, paths in _PATHS.items() for path in paths}
"""Paths that files named, with the keys of their classes."""


def path_of(cls: type) -> str:
    """Module and name of a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def key_of(cls: type) -> str | None:
    """The key that a class of surelearn states for itself; None for others, and for classes
    derived from it.
    """
    key = vars(cls).get("saved_as")
    return key if isinstance(key, str) and cls.__module__.partition(".")[0] == "surelearn" else None


def find_class(key: str) -> type | None:
    """The class with a key, wherever it lives; None where there is none. Nothing is imported that
    the key names.

    Examples
    --------
    >>> find_class("ridge/1")
    <class 'surelearn.linear.ridge.learner.Ridge'>
    >>> find_class("surelearn.linear.ridge.learner.Ridge")  # an old path is translated first: EARLIER
    """
    if not _KEY.fullmatch(key):
        return None
    found = _FOUND.get(key)
    if found is None or not _is_loaded(found):
        found = known_classes().get(key)
    for load in (importlib.import_module, _import_all):
        for home in HOMES:
            before = len(sys.modules)
            if found is None:
                load(f"surelearn.{home}")
            if len(sys.modules) > before:
                found = known_classes().get(key)
    if found is not None:
        _FOUND[key] = found
    return found


_FOUND: dict[str, type] = {}  # what was found, so that not all modules are searched again


def _is_loaded(cls: type) -> bool:
    """Whether its module is the one that is loaded now."""
    return vars(sys.modules.get(cls.__module__, sys)).get(cls.__qualname__) is cls


@functools.cache
def _import_all(home: str) -> None:
    """Import a module or, of a package, every module that is installed in it."""
    package = importlib.import_module(home)
    for module in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{home}."):
        importlib.import_module(module.name)


def hashed_name(cls: type, *, first: bool = False) -> str:
    """How a class is named in the fingerprint of an object: ``first`` as it was before it had moved
    for the first time.

    Examples
    --------
    >>> from surelearn.linear import Ridge
    >>> hashed_name(Ridge), hashed_name(Ridge, first=True)
    ('surelearn.linear.ridge.learner.Ridge', 'surelearn.linear.ridge.Ridge')
    """
    key = key_of(cls)
    if key is None:
        return path_of(cls)
    paths = _PATHS.get(key)
    return key if paths is None else f"surelearn.{paths[0 if first else -1]}"


def known_classes() -> dict[str, type]:
    """Classes by their keys, of modules that are loaded."""
    found: dict[str, type] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "surelearn":
            classes = [
                made
                for made in list(vars(module).values())
                if isinstance(made, type) and made.__module__ == name
            ]
            found |= {key: made for made in classes if (key := key_of(made)) is not None}
    return found
