"""LightGBM, XGBoost and CatBoost, where they are installed: trees, named without importing any
of them.
"""

from __future__ import annotations

from dataclasses import replace

from surelearn.lacking import Lacking
from surelearn.subject.registry import Parts, describes
from surelearn.subject.sklearn_others import of_trees
from surelearn.types import Model

_LINES = "its leaves are linear functions, with jumps between them"


@describes(
    "lightgbm:LGBMClassifier",
    "lightgbm:LGBMRegressor",
)
def _lightgbm(model: Model) -> Parts:
    if not model.get_params().get("linear_tree"):
        return of_trees(model)
    return Parts(
        form=Lacking(
            "closed form", f"{type(model).__name__} has no gradient that is known: {_LINES}"
        )
    )


@describes(
    "xgboost:XGBClassifier",
    "xgboost:XGBRegressor",
    "xgboost:XGBRFClassifier",
    "xgboost:XGBRFRegressor",
)
def _xgboost(model: Model) -> Parts:
    return Parts() if model.booster == "gblinear" else of_trees(model)


@describes("catboost:CatBoostClassifier", "catboost:CatBoostRegressor")
def _catboost(model: Model) -> Parts:
    """Columns of an array are called by their numbers."""
    names = tuple(model.feature_names_ or ()) if model.is_fitted() else ()
    named = names and names != tuple(map(str, range(len(names))))
    return replace(of_trees(model), columns=names if named else None)
