"""LightGBM, XGBoost and CatBoost, where they are installed: trees, named without importing any
of them.
"""

from __future__ import annotations

from dataclasses import replace

from surelearn.lacking import Lacking
from surelearn.subject.catboost_trees import catboost_trees
from surelearn.subject.lightgbm_trees import lightgbm_trees
from surelearn.subject.registry import Parts, describes
from surelearn.subject.sklearn_trees import of_trees
from surelearn.subject.xgboost_trees import xgboost_trees
from surelearn.types import AnyArray, Model, RowsLike

_LINES = "its leaves are linear functions, with jumps between them"


@describes("lightgbm:LGBMClassifier", "lightgbm:LGBMRegressor")
def _lightgbm(model: Model) -> Parts:
    if model.get_params().get("linear_tree"):
        why = f"{type(model).__name__} has no gradient that is known: {_LINES}"
        return Parts(form=Lacking("closed form", why))

    def scores(X: RowsLike) -> AnyArray:
        return model.predict(X, raw_score=True)

    found = of_trees(model, lambda: lightgbm_trees(model, _output(model)))
    return replace(found, decisions=scores if _is_classifier(model) else None)


@describes(
    "xgboost:XGBClassifier",
    "xgboost:XGBRegressor",
    "xgboost:XGBRFClassifier",
    "xgboost:XGBRFRegressor",
)
def _xgboost(model: Model) -> Parts:
    if model.booster == "gblinear":
        return Parts()

    def scores(X: RowsLike) -> AnyArray:
        return model.predict(X, output_margin=True)

    found = of_trees(model, lambda: xgboost_trees(model, _output(model)))
    return replace(found, decisions=scores if _is_classifier(model) else None)


@describes("catboost:CatBoostClassifier", "catboost:CatBoostRegressor")
def _catboost(model: Model) -> Parts:
    """Columns of an array are called by their numbers."""

    def scores(X: RowsLike) -> AnyArray:
        return model.predict(X, prediction_type="RawFormulaVal")

    names = tuple(model.feature_names_ or ()) if model.is_fitted() else ()
    named = names and names != tuple(map(str, range(len(names))))
    return replace(
        of_trees(model, lambda: catboost_trees(model, _output(model))),
        columns=names if named else None,
        decisions=scores if _is_classifier(model) else None,
    )


def _output(model: Model) -> str:
    """What its trees add up to."""
    return "score" if _is_classifier(model) else "value"


def _is_classifier(model: Model) -> bool:
    """By the name of its class, which is exactly one of those above."""
    return type(model).__name__.endswith("Classifier")
