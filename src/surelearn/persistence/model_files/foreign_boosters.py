"""LightGBM's, XGBoost's and CatBoost's own files, as their libraries write them.

Each is checked before its library reads it, as in `persistence.boosters`.
"""

from __future__ import annotations

import importlib
import io
import json
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from surelearn.documents import parse_json, reading
from surelearn.persistence.catboost_cbm import check_cbm
from surelearn.persistence.model_files.columns import by_names
from surelearn.persistence.model_files.model_file import Answered, ModelFile, usable
from surelearn.persistence.trial import tried
from surelearn.persistence.words import shown
from surelearn.subject.lightgbm_text import ModelText, read_text
from surelearn.subject.xgboost_json import read_json
from surelearn.types import Array

_ONE_OF_TWO = ("binary", "cross_entropy", "xentropy")
_NUMBERS = (
    "regression", "regression_l1", "regression_l2", "huber", "fair", "poisson", "quantile", "mape", "gamma", "tweedie",
)  # fmt: skip
_EXPONENTS = ("Poisson", "Tweedie")  # of which CatBoost answers with the exponent of its sum
_NO_NUMBERS = ("Rank", "Pair", "Query", "Cox", "Survival", "Stochastic")
_UBJ = """
import xgboost
booster = xgboost.Booster()
booster.load_model(bytearray(sys.stdin.buffer.read()))
sys.stdout.buffer.write(bytes(booster.save_raw("json")))
"""


def read_lightgbm(name: str, digest: str, content: bytes) -> ModelFile:
    """LightGBM's model text, as ``booster.save_model("model.txt")`` writes it."""
    lightgbm = _library("lightgbm", name)
    model = read_text(content)
    text = model.text
    lines = [line.partition("=") for line in text.partition("\nTree=")[0].splitlines()]
    head = {key: value for key, _, value in lines}
    _check_end(model)
    with redirect_stdout(io.StringIO()):  # what it finds wrong it also prints
        booster = lightgbm.Booster(model_str=_trees_of(text))

    def say(rows: pd.DataFrame) -> Array:
        return np.asarray(booster.predict(rows.to_numpy(dtype=float), num_threads=1))

    objective, _, more = head.get("objective", "").partition(" ")
    reads = by_names(head["feature_names"].split(" "), None, spaces=True)
    return _of_objective(
        name,
        digest,
        "a LightGBM model",
        objective,
        {
            **dict.fromkeys(_ONE_OF_TWO, 2),
            **dict.fromkeys(("multiclass", "multiclassova"), int(head["num_class"])),
            **dict.fromkeys(_NUMBERS, 0),
        },
        reads,
        say,
        normalized="multiclassova" if "multiclassova" in (objective, more) else "",
    )


def _trees_of(text: str) -> str:
    """The text up to its trees' end: answers need no more, and LightGBM believes the parameters
    behind it, some of which end the process.
    """
    trees, end, _ = text.partition("\nend of trees\n")
    return trees + end


def _check_end(model: ModelText) -> None:
    """Refuse a text that was cut off, and codes of pandas' categories: which value has which code is
    not said by column.
    """
    after = model.text.partition("\nend of trees\n")[2]
    if "\nparameters:" in after and "\nend of parameters" not in after:
        raise ValueError("it was cut off: its parameters do not end")
    last = next((line for line in reversed(after.splitlines()) if line), "")
    if not last.startswith("pandas_categorical:"):
        if any(tree.categorical.any() for tree in model.trees):
            raise ValueError(
                "it has categories, and its last line, pandas_categorical, is missing: save it again"
            )
        return
    if parse_json(last.partition(":")[2], "its pandas_categorical"):
        raise ValueError(
            "it was fitted on pandas categories, whose columns its text does not name: save the"
            " fitted LGBMClassifier or LGBMRegressor in its pipeline with surelearn.save"
        )


def read_xgboost(name: str, digest: str, content: bytes) -> ModelFile:
    """XGBoost's JSON, as ``save_model("model.json")`` writes it."""
    with reading("XGBoost's JSON"):
        read_json(content)
    return _xgboost(name, digest, content)


def read_xgboost_binary(name: str, digest: str, content: bytes) -> ModelFile:
    """XGBoost's binary JSON, as ``save_model("model.ubj")`` writes it: turned into text by another
    process, so that the text can be checked.
    """
    _library("xgboost", name)
    text = tried(_UBJ, content, "XGBoost")
    with reading("XGBoost's JSON"):
        read_json(text)
    return _xgboost(name, digest, text)


def _xgboost(name: str, digest: str, content: bytes) -> ModelFile:
    xgboost = _library("xgboost", name)
    learner = json.loads(content)["learner"]
    if "c" in (learner.get("feature_types") or []):
        raise ValueError(
            "it was fitted on categories, whose codes a table of words does not have: save the"
            " fitted XGBClassifier or XGBRegressor in its pipeline with surelearn.save"
        )
    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(bytearray(content))
    booster.set_param({"nthread": 1})
    objective = str(learner["objective"]["name"])
    # as XGBClassifier predicts, which stops at the best round
    best = booster.attr("best_iteration")
    rounds = (0, 0) if best is None else (0, int(best) + 1)
    margin = objective in ("multi:softmax", "binary:logitraw", "binary:hinge")

    def say(rows: pd.DataFrame) -> Array:
        table = xgboost.DMatrix(rows.to_numpy(dtype=np.float32), nthread=1)
        found = booster.predict(
            table, output_margin=margin, iteration_range=rounds, validate_features=False
        )
        return np.asarray(found)

    facts = learner["learner_model_param"]
    classes = int(facts.get("num_class", 0))
    known: dict[str, int] = {
        **dict.fromkeys(("binary:logistic", "binary:logitraw", "binary:hinge"), 2),
        **dict.fromkeys(("multi:softprob", "multi:softmax"), classes),
    }
    if objective.startswith(("reg:", "count:")) and int(facts.get("num_target", 1)) <= 1:
        known[objective] = 0
    reads = by_names(learner.get("feature_names") or None, int(facts["num_feature"]))
    return _of_objective(
        name,
        digest,
        "an XGBoost model",
        objective,
        known,
        reads,
        say,
        scores=margin,
    )


def read_catboost(name: str, digest: str, content: bytes) -> ModelFile:
    """CatBoost's binary form, as ``save_model("model.cbm")`` writes it."""
    catboost = _library("catboost", name)
    check_cbm(content)
    made = catboost.CatBoost()
    made.load_model(blob=content)
    classes = tuple(np.asarray(made.classes_).tolist())
    loss = _catboost_loss(made)
    if any(word in loss for word in _NO_NUMBERS):
        raise ValueError(f"its loss is {shown(loss)!r}: only classes and numbers are certified")
    numbers = "Exponent" if loss in _EXPONENTS else "RawFormulaVal"
    names = [str(one) for one in made.feature_names_]
    at = {*made.get_cat_feature_indices(), *made.get_text_feature_indices()}
    words = frozenset(names[i] for i in at)

    def ask(rows: pd.DataFrame) -> Answered:
        given = rows.astype({one: object for one in words if one in rows.columns})
        for one in words & {*given.columns}:
            given[one] = [_category(value) for value in rows[one].tolist()]
        if not classes:
            return Answered(np.asarray(made.predict(given, numbers, thread_count=1), dtype=float))
        found = np.asarray(made.predict(given, "Probability", thread_count=1), dtype=float)
        said = np.asarray(made.predict(given, "Class", thread_count=1))
        order = {str(label): i for i, label in enumerate(classes)}
        positions = np.array([order[str(label)] for label in said.reshape(-1).tolist()])
        return Answered(positions, usable(found, len(classes)))

    return ModelFile(
        name=name,
        digest=digest,
        kind="a CatBoost model",
        task="classification" if classes else "regression",
        classes=classes or None,
        outputs=len(classes) or None,
        reads=by_names(names, len(names), words=words),
        ask=ask,
    )


def _catboost_loss(model: Any) -> str:
    """The loss that it was fitted by, as the file says."""
    kept = dict(model.get_metadata()).get("params", "{}")
    loss: Any = parse_json(kept, "its params").get("loss_function", {})
    return str(loss.get("type", "")) if isinstance(loss, dict) else str(loss)


def _category(value: Any) -> Any:
    """As CatBoost wants a category: text, or a whole number."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value)
    return str(value)


def _library(name: str, file: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{file} needs {name}: pip install 'surelearn[boosters]'", name=name
        ) from None


def _of_objective(
    name: str,
    digest: str,
    kind: str,
    objective: str,
    known: dict[str, int],
    reads: Any,
    say: Callable[[pd.DataFrame], Array],
    *,
    scores: bool = False,
    normalized: str = "",
) -> ModelFile:
    """A booster by its objective: of how many classes it gives probabilities, 0 for numbers."""
    if objective not in known:
        raise ValueError(
            f"its objective is {shown(objective) or 'not said'!r}: only classes and numbers are"
            " certified, from an objective of the library's own"
        )
    classes = known[objective]

    def ask(rows: pd.DataFrame) -> Answered:
        found = np.asarray(say(rows))
        if not classes:
            return Answered(found.astype(float))
        if found.ndim == 1:
            if scores:
                return Answered((found > 0).astype(int))
            two = np.column_stack([1 - found, found])  # as single as the booster computes it
            return Answered((found > 0.5).astype(int), usable(two.astype(float), classes))
        best = found.argmax(axis=1)
        if scores:
            found = softmax(found, axis=1)
        return Answered(best, None if normalized else usable(found.astype(float), classes))

    return ModelFile(
        name=name,
        digest=digest,
        kind=kind,
        task="classification" if classes else "regression",
        outputs=classes or None,
        reads=reads,
        ask=ask,
    )
