"""Prediction sets of MAPIE and crepes, in an environment of their own: reads probabilities of
calibration and test rows, writes sizes and CPU seconds.

    PEER_PYTHON benchmarks/_conformal_peers.py probabilities.npz result.json

Called by bench_conformal.py. The model is one that returns the probabilities that it is given, so
that all tools conformalize the same ones.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
from crepes import WrapClassifier, extras
from mapie.classification import SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin

warnings.filterwarnings("ignore")


class Given(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose rows are its probabilities."""

    def fit(self, X: Any, y: Any) -> Given:  # noqa: ARG002 - scikit-learn's signature
        self.classes_, self.n_features_in_, self.fitted_ = np.arange(X.shape[1]), X.shape[1], True
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(X).argmax(axis=1)

    def predict_proba(self, X: Any) -> Any:
        return np.asarray(X)


def mapie(score: str) -> Callable[..., Any]:
    """MAPIE's split conformal sets; "aps" and "raps" without their random part."""

    def sets(model: Given, p: Any, y: Any, new: Any, level: float) -> Any:
        made = SplitConformalClassifier(
            model, confidence_level=level, conformity_score=score, prefit=True, random_state=0
        )
        made.conformalize(p, y)
        return made.predict_set(new)[1][:, :, 0]

    return sets


def crepes(kind: str, *, per_class: bool = False) -> Callable[..., Any]:
    """Sets of crepes by inverse probability or margin, without smoothing."""

    def sets(model: Given, p: Any, y: Any, new: Any, level: float) -> Any:
        wrapped = WrapClassifier(model)
        wrapped.calibrate(p, y, nc=getattr(extras, kind), class_cond=per_class)
        return wrapped.predict_set(new, labels=False, confidence=level, smoothing=False)

    return sets


CONTESTANTS = {
    "MAPIE lac": mapie("lac"),
    "MAPIE aps": mapie("aps"),
    "MAPIE raps": mapie("raps"),
    "crepes hinge": crepes("hinge"),
    "crepes margin": crepes("margin"),
}
PER_CLASS = {"crepes hinge": crepes("hinge", per_class=True)}


def main() -> None:
    given = np.load(sys.argv[1])
    p, y, new, truth = (given[name] for name in ("p_cal", "y_cal", "p_test", "y_test"))
    model = Given().fit(p, y)
    each = bool(given["per_class"])
    rows = np.arange(len(truth))
    found: dict[str, Any] = {"versions": {name: version(name) for name in ("mapie", "crepes")}}
    for name, sets in (PER_CLASS if each else CONTESTANTS).items():
        level = float(given["level"])
        try:
            sets(model, p[:300], y[:300], new[:20], 0.5)  # caches and lazy imports
            start = time.process_time()
            inside = np.asarray(sets(model, p, y, new, level), dtype=bool)
            seconds = time.process_time() - start
        except Exception as error:  # what a tool refuses is told
            found[name] = {"refused": f"{type(error).__name__}: {error}"[:200]}
            continue
        sizes = inside.sum(axis=1)
        found[name] = {
            "coverage": float(inside[rows, truth].mean()),
            "size": float(sizes.mean()),
            "filled": float(np.maximum(sizes, 1).mean()),
            "empty": float((sizes == 0).mean()),
            "seconds": seconds,
        }
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
