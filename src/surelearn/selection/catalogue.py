"""The candidates that have a name: surelearn's learners, and others' where it has none; which of
them a comparison can afford.

Work is counted in seconds of one core of an ordinary machine, by formulas of the number of rows,
columns and classes, never timed: the same table has the same candidates everywhere.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from surelearn.jobs import seed_for
from surelearn.selection.candidates import Candidate, Searched
from surelearn.subject import Task
from surelearn.types import ImageShape, Model

if TYPE_CHECKING:
    from surelearn.selection.preparation import Reader

# up to here a support vector machine, whose cost grows with the square of n
DIRECT_KERNEL_ROWS = 5000
# below, a kernel machine costs less than anything else that is not linear
FEW = 1000
# beyond so many, so many centers
EIGENPRO_ROWS = {"classification": (5_000, 2_000), "regression": (15_000, 4_000)}
EIGENPRO = "kernel machine"
NETWORK = "network"
NETWORK_ROWS = 500, 50_000  # on fewer it learns less than others, on more it takes too long
WEIGHTED = "weighted kernel SVM"
BOOSTERS = {"LightGBM": "lightgbm", "XGBoost": "xgboost", "CatBoost": "catboost"}
# names of earlier versions, still understood
_EARLIER = {"nearest neighbours": "nearest neighbors"}
_SEEN = {"category": 5, "text": 64, "date": 3}  # columns that one becomes, about; others 1
_ALWAYS = 0  # the rank of what takes part whatever it costs

DEFAULT = {
    "classification": (
        "majority", "naive Bayes", "logistic regression", "nearest neighbors", "kernel SVM", WEIGHTED,
        "kernel logistic regression", EIGENPRO, "boosted trees", "extra trees", "random forest",
        "LightGBM", "XGBoost", "CatBoost", NETWORK,
    ),
    "regression": (
        "median", "linear regression", "Huber regression", "nearest neighbors", "kernel SVM", WEIGHTED,
        "kernel ridge", EIGENPRO, "boosted trees", "extra trees", "random forest", "LightGBM", "XGBoost", "CatBoost",
        NETWORK,
    ),
}  # fmt: skip
"""Candidates that take part unless told otherwise; the others of `catalogue` take part by name."""

Member: TypeAlias = Any  # a `Candidate` or a `NestedFamily`


@dataclass(frozen=True)
class Size:
    """What the cost of a fit depends on: rows, columns as the learner sees them, classes (1 for
    numbers), and letters of text in all rows.
    """

    rows: int
    columns: int
    classes: int = 2
    letters: int = 0

    @property
    def trees(self) -> int:
        """Trees that boosting grows in a round."""
        return self.classes if self.classes > 2 else 1

    @property
    def terms(self) -> float:
        """Terms of text in all rows that a linear model sees, about: `selection.text.TextTerms`
        counts runs of letters up to a million letters, and pairs of words up to 1,000 letters a row.
        """
        if self.letters <= 1e6:
            return 2.0 * self.letters
        return (0.2 if self.letters <= 1000 * self.rows else 0.09) * self.letters


@dataclass(frozen=True, eq=False)
class Setting:
    """One setting of a candidate: what a fit of it costs, and its rank in what is worth its cost
    (0: takes part in any case).
    """

    member: Member
    work: float
    rank: int


def catalogue(
    task: Task,
    kinds: Mapping[Any, str],
    n: int,
    random_state: int = 0,
    classes: int = 2,
    letters: int = 0,
    *,
    alone: bool = False,
    images: ImageShape | None = None,
) -> dict[str, list[Setting]]:
    """Every candidate with a name, from simple to complex, each with its settings.

    Each setting is a pipeline that prepares the columns and then fits, so that nothing is learned
    outside the fit rows.

    Parameters
    ----------
    kinds : kind of each column: "number", "category", "text" or "date"
    n : rows to fit on; beyond 5,000 the kernel SVM gives way to a linear model of 300 random
        landmarks, and the "kernel machine" (EigenPro; it needs PyTorch, and is not there without)
        is built on some of the rows
    classes : labels to tell apart; boosting grows a tree for each in every round, so beyond five it
        has fewer rounds
    letters : of text in all rows
    alone : whether a candidate is the only one: a learner without probabilities then answers as it
        is. Else its scores become probabilities, since one candidate that has none would
        have all of them compared by their errors
    images : the shape of images, whose pixels the columns are; their candidates are others
    """
    size = Size(n, max(1, _width(kinds)), classes if task == "classification" else 1, letters)
    makers = Makers(task, dict(kinds), size, random_state, alone)
    if images is not None:
        from surelearn.selection.image_candidates import ImageMakers

        makers = ImageMakers(task, dict(kinds), size, random_state, alone, images)
    made = dict(makers.classifiers() if task == "classification" else makers.regressors())
    return {name: settings for name, settings in made.items() if settings}


def affordable(
    every: Mapping[str, Sequence[Setting]], fits: int, budget: float
) -> tuple[list[Candidate | Searched], list[str]]:
    """The settings that a budget pays for, by their ranks, and the names of candidates that it does
    not.

    Parameters
    ----------
    fits : of each setting, the last one on all rows included
    budget : seconds of one core; what ranks 0 is taken whatever it costs
    """
    ranked = sorted(
        ((setting.rank, i, name, setting) for i, (name, settings) in enumerate(every.items()) for setting in settings),
        key=lambda one: one[:2],
    )  # fmt: skip
    taken: dict[str, list[Setting]] = {name: [] for name in every}
    left = budget
    for rank, _, name, setting in ranked:
        cost = setting.work * fits
        if rank == _ALWAYS or cost <= left:
            taken[name].append(setting)
            left -= cost
    found: list[Candidate | Searched] = []
    for name, settings in taken.items():
        if settings:
            found.append(_one(name, [setting.member for setting in settings]))
    return found, [name for name, settings in taken.items() if not settings]


def default_candidates(
    task: Task,
    kinds: Mapping[Any, str],
    n: int,
    random_state: int = 0,
    classes: int = 2,
    *,
    letters: int = 0,
    budget: float | None = None,
    fits: int = 6,
) -> list[Candidate | Searched]:
    """Those of `catalogue` that take part unless told otherwise, as far as the budget goes (None:
    the usual one).
    """
    every = catalogue(task, kinds, n, random_state, classes, letters)
    return affordable(
        by_default(every, task, n), fits, usual_budget(n, letters) if budget is None else budget
    )[0]


def _of_networks(images: ImageShape | None) -> tuple[str, ...]:
    if images is None:
        return (NETWORK,)
    from surelearn.selection.image_candidates import NEED_TORCH

    return NEED_TORCH


def not_installed(task: Task, n: int, images: ImageShape | None = None) -> dict[str, str]:
    """Candidates that would take part if their packages were installed, with what installs them.

    Examples
    --------
    >>> set(not_installed("classification", 1000).values()) <= {"surelearn[torch]", "surelearn[boosters]"}
    True
    """
    needed = {EIGENPRO: ("torch", "torch")} if images is None or n > DIRECT_KERNEL_ROWS else {}
    if images is None:
        needed |= {NETWORK: ("torch", "torch")} if takes_networks(n) else {}
        needed |= {name: (package, "boosters") for name, package in BOOSTERS.items()}
    elif task == "classification":
        needed |= dict.fromkeys(_of_networks(images), ("torch", "torch"))
    return {
        name: f"surelearn[{extra}]"
        for name, (package, extra) in needed.items()
        if not is_installed(package)
    }


def takes_networks(n: int) -> bool:
    """Whether a network for tables takes part on so many rows, unless told otherwise."""
    return NETWORK_ROWS[0] <= n <= NETWORK_ROWS[1]


def by_default(
    every: Mapping[str, Sequence[Setting]], task: Task, n: int, images: ImageShape | None = None
) -> dict[str, Sequence[Setting]]:
    """Those of `catalogue` that take part unless told otherwise."""
    if images is not None:
        return dict(every)
    names = [name for name in DEFAULT[task] if name != NETWORK or takes_networks(n)]
    return {name: settings for name, settings in every.items() if name in names}


def usual_budget(n: int, letters: int = 0) -> float:
    """Seconds of one core for choosing among candidates on n rows with so many letters of text,
    unless told.

    Examples
    --------
    >>> [round(usual_budget(n)) for n in (400, 4000, 40_000)]
    [5, 16, 95]
    """
    # also of few letters a second linear model is fitted: it does not take the trees' place
    text = min(20.0, 0.3 + 5e-6 * letters) if letters else 0.0
    return text + (4 + 2.9e-3 * n if n < 5000 else 14 + 2.03e-3 * n)


def named_candidates(
    names: Sequence[str],
    task: Task,
    kinds: Mapping[Any, str],
    n: int,
    random_state: int = 0,
    classes: int = 2,
    images: ImageShape | None = None,
) -> list[Candidate | Searched]:
    """Those of `catalogue` with the names, in its order, each with all its settings; "all" is every
    one.
    """
    names = [_EARLIER.get(name, name) for name in names]
    alone = len(names) == 1 and names[0] != "all"
    every = catalogue(task, kinds, n, random_state, classes, alone=alone, images=images)
    if EIGENPRO in names and EIGENPRO not in every:
        raise ValueError("EigenPro needs PyTorch: pip install 'surelearn[torch]'")
    torch_too = _of_networks(images)
    if asked := [name for name in names if name in torch_too and name not in every]:
        said = "a network" if asked[0] == NETWORK else f"{asked[0]}, a network,"
        raise ValueError(f"{said} needs PyTorch: pip install 'surelearn[torch]'")
    for name in names:
        if name in BOOSTERS and name not in every:
            raise ValueError(f"{name} is not installed: pip install {BOOSTERS[name]}")
    if unknown := [name for name in names if name != "all" and name not in every]:
        raise ValueError(
            f"there is no candidate {unknown[0]!r} for {task}: there are {', '.join(every)},"
            " and all"
        )
    return [
        _one(name, [setting.member for setting in settings])
        for name, settings in every.items()
        if name in names or "all" in names
    ]


def _one(name: str, members: list[Member]) -> Candidate | Searched:
    alone = len(members) == 1 and isinstance(members[0], Candidate) and members[0].name == name
    return members[0] if alone else Searched(name, members)


def _width(kinds: Mapping[Any, str]) -> int:
    """Columns as most learners see them, about."""
    return sum(_SEEN.get(kind, 1) for kind in kinds.values())


def is_installed(package: str) -> bool:
    """Whether a package is there to be imported."""
    return importlib.util.find_spec(package) is not None


@dataclass(frozen=True)
class Makers:
    """Makes the candidates of a table."""

    task: Task
    kinds: dict[Any, str]
    size: Size
    random_state: int
    alone: bool = False

    def seed(self, name: str) -> int:
        """A seed of its own for each candidate."""
        return seed_for(f"candidate/{name}", self.random_state)

    def pipeline(self, *steps: Model, reader: Reader = "few") -> Model:
        """The steps behind the preparation that suits them."""
        from sklearn.pipeline import make_pipeline

        from surelearn.selection.preparation import preparation

        return make_pipeline(preparation(self.kinds, reader), *steps)

    def one(self, name: str, *steps: Model, work: float, rank: int = _ALWAYS) -> list[Setting]:
        """A candidate with one setting."""
        return [Setting(Candidate(name=name, model=self.pipeline(*steps)), work, rank)]

    def classifiers(self) -> Iterator[tuple[str, list[Setting]]]:
        """By name, from simple to complex."""
        from sklearn.dummy import DummyClassifier
        from sklearn.kernel_approximation import Nystroem
        from sklearn.neighbors import KNeighborsClassifier
        from sklearn.svm import SVC

        from surelearn.boosting import AdaBoostClassifier
        from surelearn.linear import DPLogisticRegression, Perceptron, SupportVectorMachine

        n, d, classes = self.size.rows, self.size.columns, self.size.classes
        read = self._reading()
        yield "majority", self.one("majority", DummyClassifier(), work=0.01)
        yield "naive Bayes", _naive_bayes(self.kinds)
        yield (
            "perceptron",
            self.one(
                "perceptron",
                Perceptron(averaged=True, random_state=self.seed("perceptron")),
                work=0.1,
            ),
        )
        private = DPLogisticRegression(random_state=self.seed("private logistic regression"))
        yield (
            "private logistic regression",
            self.one("private logistic regression", private, work=0.1),
        )
        yield "logistic regression", self._logistic()
        machine = SupportVectorMachine(random_state=self.seed("support vector machine"))
        yield "support vector machine", self.one("support vector machine", machine, work=0.1)
        rounds = min(100, max(20, 500 // classes))
        yield (
            "boosted stumps",
            self.one("boosted stumps", AdaBoostClassifier(n_rounds=rounds), work=0.1),
        )
        neighbors = KNeighborsClassifier(n_neighbors=min(15, max(1, n // 10)))
        yield (
            "nearest neighbors",
            self.one("nearest neighbors", neighbors, work=read + 1e-8 * n * n, rank=3),
        )
        if n <= DIRECT_KERNEL_ROWS:

            def machines(C: float, bandwidth: float) -> Setting:
                inside = SVC(C=C, gamma=bandwidth / d if bandwidth else "scale")
                model = self.pipeline(with_probabilities(inside))
                words = f"C = {C:g}, γ = {f'{bandwidth:g}/d' if bandwidth else 'scale'}"
                work = read + 2.4e-8 * n * n * (1 + d / 40) * math.sqrt(max(1, classes - 1))
                rank = 2 if n < FEW or (C == 1 and not bandwidth) else 4
                return Setting(Candidate(name=f"kernel SVM, {words}", model=model), work, rank)

            grid = [(1.0, 0.0), (10.0, 0.0), (10.0, 0.2), (1.0, 0.2), (100.0, 0.2), (3.0, 3.0)]
            yield "kernel SVM", [machines(*one) for one in grid]
        else:
            landmarks = Nystroem(n_components=300, random_state=self.seed("landmarks"))
            yield (
                "kernel logistic regression",
                self.one(
                    "kernel logistic regression",
                    landmarks,
                    self._minimizer(1 / (20 * n)),
                    work=read + 3e-5 * n * max(1, classes - 1),
                    rank=3,
                ),
            )
        if n <= DIRECT_KERNEL_ROWS:
            yield WEIGHTED, list(self._weighted())
        yield EIGENPRO, self._eigenpro()
        yield NETWORK, self._network()
        yield "boosted trees", list(self._boosted())
        yield "extra trees", list(self._forests("extra trees"))
        yield "random forest", list(self._forests("random forest"))
        for name, package in BOOSTERS.items():
            if is_installed(package):
                yield name, self._booster(name)

    def regressors(self) -> Iterator[tuple[str, list[Setting]]]:
        """By name, from simple to complex."""
        from sklearn.dummy import DummyRegressor
        from sklearn.kernel_approximation import Nystroem
        from sklearn.neighbors import KNeighborsRegressor
        from sklearn.svm import SVR

        from surelearn.linear import (
            HuberRegression,
            LeastSquares,
            Ridge,
            SquareRootLasso,
            VariationalRegression,
        )

        n, d = self.size.rows, self.size.columns
        read = self._reading()

        def linear(
            name: str, model: Model, work: float = 0.05, rank: int = _ALWAYS
        ) -> list[Setting]:
            made = self.pipeline(model, reader="many")
            return [Setting(Candidate(name=name, model=made), read + work, rank)]

        yield "median", self.one("median", DummyRegressor(strategy="median"), work=0.01)
        yield "least squares", linear("least squares", LeastSquares())
        ridge = Ridge(regularization="loo", regularize_intercept=False)
        yield "linear regression", linear("linear regression", ridge)
        yield (
            "square-root lasso",
            self.one("square-root lasso", _scaled(SquareRootLasso()), work=0.1),
        )
        yield (
            "Huber regression",
            self.one(
                "Huber regression", _scaled(HuberRegression()), work=read + 4e-7 * n * d, rank=2
            ),
        )
        yield (
            "clipped regression",
            self.one("clipped regression", _scaled(VariationalRegression()), work=0.1),
        )
        neighbors = KNeighborsRegressor(n_neighbors=min(10, max(1, n // 10)))
        yield (
            "nearest neighbors",
            self.one("nearest neighbors", neighbors, work=read + 1e-8 * n * n, rank=3),
        )
        if n <= 2 * DIRECT_KERNEL_ROWS:

            def machines(C: float, bandwidth: float) -> Setting:
                inside = SVR(C=C, gamma=bandwidth / d if bandwidth else "scale")
                words = f"C = {C:g}, γ = {f'{bandwidth:g}/d' if bandwidth else 'scale'}"
                candidate = Candidate(
                    name=f"kernel SVM, {words}", model=self.pipeline(_scaled(inside))
                )
                work = read + (3e-8 + 1e-9 * C) * n * n * (1 + d / 40)
                rank = 2 if n < FEW or (C == 10 and not bandwidth) else 4
                return Setting(candidate, work, rank)

            grid = [(10.0, 0.0), (1.0, 0.0), (10.0, 0.2), (100.0, 0.2)]
            yield "kernel SVM", [machines(*one) for one in grid]
        else:
            landmarks = Nystroem(n_components=300, random_state=self.seed("landmarks"))
            yield (
                "kernel ridge",
                self.one("kernel ridge", landmarks, ridge, work=read + 3e-5 * n, rank=3),
            )
        if n <= DIRECT_KERNEL_ROWS:
            yield WEIGHTED, list(self._weighted())
        yield EIGENPRO, self._eigenpro()
        yield NETWORK, self._network()
        yield "boosted trees", list(self._boosted())
        yield "extra trees", list(self._forests("extra trees"))
        yield "random forest", list(self._forests("random forest"))
        for name, package in BOOSTERS.items():
            if is_installed(package):
                yield name, self._booster(name)

    def _reading(self, reader: str = "few") -> float:
        """Preparing the columns: reading letters, and counting terms."""
        text = 1e-7 * self.size.letters + 3e-7 * self.size.terms
        text = text if reader == "many" else 4e-7 * self.size.letters
        return 0.01 + 3e-8 * self.size.rows * self.size.columns + text

    def _minimizer(self, regularization: float) -> Model:
        """Logistic regression straight to its minimizer: rows fit in memory."""
        from surelearn.linear import LogisticRegression

        # the Hessian has (dK)² entries
        wide = self.size.classes > 2 or "text" in self.kinds.values()
        return LogisticRegression(
            regularization=regularization, epochs=0, finish="lbfgs" if wide else "newton"
        )

    def _logistic(self) -> list[Setting]:
        """λ = 1/(2nC) for several C; the first in any case."""
        n, d, classes = self.size.rows, self.size.columns, self.size.classes
        text = "text" in self.kinds.values()
        each = (2e-7 if classes == 2 else 4e-7 * classes) * n * min(d, 200)
        work = self._reading("many") + each + 9e-7 * self.size.terms * self.size.trees
        ranked = (
            {10.0: _ALWAYS, 100.0: 1, 1000.0: 3, 1.0: 3}
            if text
            else {1.0: _ALWAYS, 0.05: 1, 20.0: 2}
        )
        return [
            Setting(
                Candidate(
                    name=f"logistic regression, λ = {1 / (2 * n * C):.2g}",
                    model=self.pipeline(self._minimizer(1 / (2 * n * C)), reader="many"),
                ),
                work,
                rank,
            )
            for C, rank in ranked.items()
        ]

    def _weighted(self) -> Iterator[Setting]:
        """Kernel SVMs of columns weighted by what a recursive feature machine learned of them;
        ``power`` is of the weights, γ for columns whose variances sum to 1.
        """
        from sklearn.svm import SVC, SVR

        from surelearn.kernel import FeatureWeights

        n, d, classes = self.size.rows, self.size.columns, self.size.classes
        numbers = self.task == "regression"
        # for classes trees are often better; for numbers these machines are
        settings = [(0.5, 10.0, 1.0, 3), (0.5, 10.0, 0.2, 4), (1.0, 1.0, 1.0, 4)]
        if numbers:
            settings = [(1.0, 10.0, 0.2, 1), (0.5, 10.0, 1.0, 2), (0.5, 1.0, 1.0, 4)]
        drawn = min(n, 600)
        learned = 0.01 + 4e-10 * drawn**3 + 4e-10 * drawn**2 * d * classes
        for power, C, bandwidth, rank in settings:
            weights = FeatureWeights(
                labels=not numbers, power=power, random_state=self.seed(WEIGHTED)
            )
            machine = (
                _scaled(SVR(C=C, gamma=bandwidth))
                if numbers
                else with_probabilities(SVC(C=C, gamma=bandwidth))
            )
            words = f"power {power:g}, C = {C:g}, γ = {bandwidth:g}"
            model = self.pipeline(weights, machine)
            each = (3e-8 if C > 1 else 1.6e-8) * min(2.0, classes - 1.0)
            if numbers:
                each = 6e-8 if C * bandwidth > 2 else 3.2e-8
            work = self._reading() + learned + each * n * n * (1 + d / 80)
            rank = min(rank, 2) if n < FEW else rank
            yield Setting(Candidate(name=f"{WEIGHTED}, {words}", model=model), work, rank)

    def _eigenpro(self) -> list[Setting]:
        """Kernel ridge regression by EigenPro, on the CPU so that every machine gives the same page;
        none without PyTorch.

        The bandwidth follows the median distance. A Gaussian kernel and a penalty that grows with √n
        for classes, whose labels are noisy; a Laplace kernel and a small one for numbers. Many rows:
        built on some of them, fitted to all.
        """
        if not is_installed("torch"):
            return []
        from surelearn.kernel import Compute, EigenProClassifier, EigenProRegressor

        n = self.size.rows
        most, centers = EIGENPRO_ROWS[self.task]
        shared: dict[str, Any] = {
            "compute": Compute(device="cpu", memory_limit=2.0**32),
            "random_state": self.seed(EIGENPRO),
            "centers": None if n <= most else centers,
        }
        model: Model
        if self.task == "regression":
            model = _scaled(EigenProRegressor("laplace", regularization=0.1 / n, **shared))
        else:
            model = EigenProClassifier("gaussian", regularization=0.005 / math.sqrt(n), **shared)
            model = model if self.alone else with_probabilities(model)
        return self.one(EIGENPRO, model, work=1.5 + 2e-4 * n, rank=6)  # loading PyTorch included

    def _network(self) -> list[Setting]:
        """Members that share their matrices, on the CPU so that every machine gives the same page;
        none without PyTorch. Categories are columns of their own, so that it has a gradient.
        """
        if not is_installed("torch"):
            return []
        from surelearn.neural import NetworkClassifier, NetworkRegressor

        kind = NetworkRegressor if self.task == "regression" else NetworkClassifier
        model = kind(device="cpu", random_state=self.seed(NETWORK))
        # loading PyTorch, and about 1,800 steps; of many rows three times as many
        work = 12.0 + 1.5e-3 * min(self.size.rows, 30_000) * max(1.0, self.size.columns / 10) ** 0.5
        work *= 1 if self.size.rows < 5000 else 3
        return self.one(NETWORK, model, work=work, rank=6)

    def _boosted(self) -> Iterator[Setting]:
        """Boosted trees with missing values and categories as such; each setting is read after
        several numbers of rounds.
        """
        import sklearn.ensemble

        size, numbers = self.size, self.task == "regression"
        name = f"HistGradientBoosting{'Regressor' if numbers else 'Classifier'}"
        learner = getattr(sklearn.ensemble, name)
        shared: dict[str, Any] = {
            "early_stopping": False,
            "random_state": self.seed("boosted trees"),
        }
        # few rows need few rounds, and are fitted in no time
        small = 0.05 if size.rows > 1500 else 0.1
        rounds = 320 if size.rows > 1500 else 120
        wide: dict[str, Any] = {"max_leaf_nodes": 15, "learning_rate": small, "max_features": 0.5}
        settings: list[tuple[str, dict[str, Any], int, int]] = [
            ("15 leaves, small steps", wide, rounds, 1),
            ("31 leaves", {}, rounds // 2, 2),
            ("6 leaves", {"max_leaf_nodes": 6, "max_features": 0.5}, rounds, 2),
            ("63 leaves, small steps", wide | {"max_leaf_nodes": 63}, rounds, 3),
        ]
        if numbers:
            robust = {"loss": "absolute_error"}
            settings = [
                ("absolute error, small steps", robust | wide | {"max_leaf_nodes": 31}, rounds, 1),
                ("15 leaves, small steps", wide, rounds, 2),
                ("31 leaves", {}, rounds // 2, 3),
                ("absolute error, 63 leaves", robust | wide | {"max_leaf_nodes": 63}, rounds, 3),
            ]
        categories = sum(kind == "category" for kind in self.kinds.values())
        # one column each, where others see one for every category
        columns = size.columns - categories * (_SEEN["category"] - 1)
        for words, options, rounds, rank in settings:
            made = learner(max_iter=1, **shared, **options)
            leaves = options.get("max_leaf_nodes", 31)
            # of few rows a tree has few leaves, and is grown in no time
            few = min(1.0, size.rows / 400) ** 2
            grown = 4e-5 * min(leaves, max(2, size.rows // 20))
            tree = 1e-3 * few + grown + 1.3e-8 * size.rows * min(columns, 64)
            name = f"boosted trees, {words}"
            yield self._by_rounds(name, made, "max_iter", rounds, tree, rank, categories)

    def _by_rounds(
        self,
        name: str,
        learner: Model,
        parameter: str,
        rounds: int,
        tree: float,
        rank: int,
        categories: int = 0,
        wrapped: bool = False,
    ) -> Setting:
        """A setting that is fitted once and read after several numbers of rounds.

        Parameters
        ----------
        parameter : the learner's own number of rounds
        rounds : at most; fewer where every round grows many trees
        tree : what one costs
        categories : columns that the learner takes as categories
        wrapped : whether it needs `selection.boosters` to be read, whatever the columns
        """
        from surelearn.selection.boosters import BoosterClassifier, BoosterRegressor
        from surelearn.selection.criteria.problem import NestedFamily

        trees = self.size.trees
        most = rounds if trees <= 5 else max(40, rounds * 5 // trees)
        learner.set_params(**{parameter: most})
        path = f"{type(learner).__name__.lower()}__{parameter}"
        if categories or wrapped:
            around = BoosterRegressor if self.task == "regression" else BoosterClassifier
            learner = around(learner, categories)
            path = f"{around.__name__.lower()}__estimator__{parameter}"
        model = self.pipeline(learner, reader="native" if categories else "trees")
        sizes = [most // 8, most // 4, most // 2, 3 * most // 4, most]
        family = NestedFamily(model, sizes, path, name=name)
        return Setting(family, self._reading() + most * trees * tree, rank)

    def _forests(self, name: Literal["extra trees", "random forest"]) -> Iterator[Setting]:
        from sklearn import ensemble

        size, numbers = self.size, self.task == "regression"
        kind = {"extra trees": "ExtraTrees", "random forest": "RandomForest"}[name]
        learner = getattr(ensemble, f"{kind}{'Regressor' if numbers else 'Classifier'}")
        trees = 100
        deep = max(1, size.rows // 20_000)
        settings: list[tuple[str, dict[str, Any], int]] = [
            (f"leaves of {3 * deep}", {"min_samples_leaf": 3 * deep, "max_features": 0.5}, 1),
            (f"leaves of {deep}", {"min_samples_leaf": deep}, 3),
        ]
        if numbers:
            settings = [
                (f"leaves of {2 * deep}", {"min_samples_leaf": 2 * deep, "max_features": 0.5}, 1)
            ]
        for words, options, rank in settings:
            columns = options.get("max_features", 1 / math.sqrt(size.columns)) * size.columns
            each = 1.2e-3 + size.rows * math.log2(max(2, size.rows)) * columns * (
                1.2e-8 if name == "extra trees" else 5e-8
            )
            model = learner(trees, random_state=self.seed(name), **options)
            yield Setting(
                Candidate(name=f"{name}, {words}", model=self.pipeline(model)),
                self._reading() + trees * each,
                rank if name == "extra trees" else rank + 3,
            )

    def _booster(self, name: str) -> list[Setting]:
        """LightGBM, XGBoost or CatBoost, each with one thread; the first two read after several
        numbers of rounds, CatBoost with its own defaults.
        """
        seed, numbers, size = self.seed(name), self.task == "regression", self.size
        few = size.rows <= 1500
        rounds, small = (120, 0.1) if few else (320, 0.05)
        each = size.rows * min(size.columns, 64)
        if name == "LightGBM":
            import lightgbm

            made = lightgbm.LGBMRegressor if numbers else lightgbm.LGBMClassifier
            shared: dict[str, Any] = {"n_jobs": 1, "random_state": seed, "verbose": -1}
            slow = {"num_leaves": 15, "learning_rate": small, "colsample_bytree": 0.5}
            slow |= {"objective": "mae"} if numbers else {}
            tree = 4e-4 + 1e-8 * each
            settings = [
                ("15 leaves, small steps", made(**shared, **slow), rounds, 3),
                ("31 leaves", made(**shared), rounds // 2, 5),
            ]
        elif name == "XGBoost":
            import xgboost

            made = xgboost.XGBRegressor if numbers else xgboost.XGBClassifier
            shared = {"n_jobs": 1, "random_state": seed, "learning_rate": small}
            slow = {"max_depth": 4, "colsample_bynode": 0.5}
            slow |= {"objective": "reg:absoluteerror"} if numbers else {}
            tree = 6e-4 + 1.5e-8 * each
            settings = [
                ("depth 4", made(**shared, **slow), rounds, 5),
                ("depth 6", made(**shared, max_depth=6, colsample_bynode=0.5), rounds, 6),
            ]
        else:
            import catboost  # pyright: ignore[reportMissingImports]

            model = (catboost.CatBoostRegressor if numbers else catboost.CatBoostClassifier)(
                thread_count=1, random_seed=seed, verbose=0, allow_writing_files=False
            )
            work = 1000 * size.trees * (2e-3 + 1.0e-8 * size.rows * size.columns)
            return self.one(name, model, work=self._reading() + work, rank=4)
        return [
            self._by_rounds(
                f"{name}, {words}", model, "n_estimators", rounds, tree, rank, wrapped=True
            )
            for words, model, rounds, rank in settings
        ]


def _scaled(model: Model) -> Model:
    """With the target scaled."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler

    return TransformedTargetRegressor(model, transformer=StandardScaler())


def with_probabilities(model: Model) -> Model:
    """A classifier that gives scores only, with their softmax, which is calibrated later."""
    from surelearn.selection.combined import CombinedClassifier

    return CombinedClassifier([(type(model).__name__, model)], [1.0], pool="logarithmic")


def _naive_bayes(kinds: Mapping[Any, str]) -> list[Setting]:
    """It counts categories itself, and a missing value says nothing; text and dates are left
    out.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline

    from surelearn.linear import NaiveBayes

    plain = {name: kind for name, kind in kinds.items() if kind in ("number", "category")}
    if not plain:
        return []
    columns = ColumnTransformer(
        [("plain", "passthrough", list(plain))], verbose_feature_names_out=False
    )
    model = make_pipeline(
        columns,
        NaiveBayes(categorical=[i for i, kind in enumerate(plain.values()) if kind == "category"]),
    )
    return [Setting(Candidate(name="naive Bayes", model=model), 0.02, _ALWAYS)]
