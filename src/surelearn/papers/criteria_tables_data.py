"""The real tables on which criteria are compared: four shipped with scikit-learn, others from a
folder.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from surelearn.types import AnyArray, Array

if TYPE_CHECKING:
    import pandas as pd

SIZES = (100, 300, 1000, 3000, 10_000)
LEAST_TEST, MOST_TEST = 75, 4000
_RARE = 0.01  # a category in a smaller fraction of rows has no column of its own
_WORDS = 64

Rows = tuple[Array, AnyArray]


@dataclass(frozen=True)
class Source:
    """Where a table comes from: the file in the folder ("" ships with scikit-learn), and how it
    becomes numbers.
    """

    file: str
    read: Callable[[Path], Rows]
    target: str


def available(folder: str) -> list[str]:
    """The tables that can be read: the built-in ones, and those whose file is in the folder."""
    if folder and not Path(folder).is_dir():
        raise ValueError(
            f"data must be a folder with tables, and {folder!r} is none: leave it out for the"
            " built-in ones"
        )
    return [
        name
        for name, source in SOURCES.items()
        if not source.file or (folder and Path(folder, source.file).exists())
    ]


@lru_cache(maxsize=2)
def load(name: str, folder: str) -> Rows:
    """All rows of a table as standardized numbers, without constant columns, and labels 0 and 1."""
    X, y = SOURCES[name].read(Path(folder))
    spread = X.std(axis=0)
    X = X[:, spread > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), y.astype(np.int64)


def content_of(X: Array, y: AnyArray) -> str:
    """A short hash of a table, so that a resumed run never takes results of other rows."""
    digest = hashlib.sha256(np.ascontiguousarray(X).tobytes())
    digest.update(np.ascontiguousarray(y).tobytes())
    return digest.hexdigest()[:12]


def sizes_of(rows: int, most: int) -> list[int]:
    """Which n a table of so many rows allows: at least 75 rows and a quarter of n remain to test
    on.

    Examples
    --------
    >>> sizes_of(1797, 10_000), sizes_of(20_640, 3000)
    ([100, 300, 1000], [100, 300, 1000, 3000])
    """
    return [n for n in SIZES if n <= most and rows - n >= max(LEAST_TEST, math.ceil(n / 4))]


def draw(rows: int, n: int, seed: int) -> tuple[Any, Any]:
    """Positions of n rows to choose on, in random order, and of at most 4,000 others to test on."""
    order = np.random.default_rng(seed).permutation(rows)
    return order[:n], order[n : n + MOST_TEST]


# ---- readers


def _shipped(name: str, positive: Callable[[Any], Any]) -> Callable[[Path], Rows]:
    def read(folder: Path) -> Rows:  # noqa: ARG001
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return np.asarray(X, float), positive(y)

    return read


def _numbers(frame: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Numbers with gaps filled by the median, and a column for each category that is not rare."""
    import pandas as pd

    numeric = frame.select_dtypes("number")
    parts = [numeric.fillna(numeric.median())]
    if numeric.shape[1] < frame.shape[1]:
        dummies = pd.get_dummies(frame.drop(columns=numeric.columns), dtype=float)
        parts.append(dummies.loc[:, dummies.mean() >= _RARE])
    return pd.concat(parts, axis=1).to_numpy(float)


def _adult(folder: Path) -> Rows:
    import pandas as pd

    frame = pd.read_csv(folder / "adult_train.csv", header=None, skipinitialspace=True)
    return (
        _numbers(frame.iloc[:, :-1].rename(columns=str)),
        (frame.iloc[:, -1] == ">50K").to_numpy(),
    )


def _titanic(folder: Path) -> Rows:
    import pandas as pd

    frame = pd.read_csv(folder / "titanic.csv")
    return (
        _numbers(frame[["Pclass", "Sex", "Age", "SibSp", "Parch", "Fare", "Embarked"]]),
        frame["Survived"].to_numpy(),
    )


def _housing(folder: Path) -> Rows:
    import pandas as pd

    frame = pd.read_csv(folder / "california_housing.csv")
    value = frame.pop("median_house_value")
    return _numbers(frame), (value > value.median()).to_numpy()


def _higgs(folder: Path) -> Rows:
    rows = np.loadtxt(folder / "higgs7k_train.tsv", delimiter="\t")
    return rows[:, 1:], rows[:, 0]


def _mnist(folder: Path) -> Rows:
    """Brightness of 49 blocks of 4 × 4 pixels."""
    with np.load(folder / "mnist.npz") as file:
        images, digits = file["x_train"], file["y_train"]
    return images.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(-1, 49), digits % 2


def _sst2(folder: Path) -> Rows:
    from surelearn.selection.preparation import HashedWords

    texts = [
        (folder / "sst2" / f"sst2_{part}.tsv").read_text(encoding="utf-8")
        for part in ("train", "dev", "test")
    ]
    pairs = [line.rsplit("\t", 1) for line in "\n".join(texts).splitlines() if "\t" in line]
    words = np.array([[sentence] for sentence, _ in pairs], dtype=object)
    return HashedWords(_WORDS).fit(words).transform(words), np.array(
        [int(label) for _, label in pairs]
    )


SOURCES: Mapping[str, Source] = {
    "breast cancer": Source("", _shipped("breast_cancer", lambda y: y), "benign"),
    "diabetes": Source(
        "", _shipped("diabetes", lambda y: y > np.median(y)), "progression above the median"
    ),
    "digits": Source("", _shipped("digits", lambda y: y % 2), "odd"),
    "wine": Source("", _shipped("wine", lambda y: y == 1), "the second cultivar"),
    "adult": Source("adult_train.csv", _adult, "income above 50,000"),
    "California housing": Source("california_housing.csv", _housing, "value above the median"),
    "Higgs": Source("higgs7k_train.tsv", _higgs, "signal"),
    "MNIST": Source("mnist.npz", _mnist, "odd"),
    "SST-2": Source("sst2", _sst2, "positive"),
    "Titanic": Source("titanic.csv", _titanic, "survived"),
}
"""Independent of each other: no two share rows."""
