"""scikit-learn's models around others (pipelines, searches, thresholds, prepared targets), and
steps that prepare rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surelearn.lacking import Lacking
from surelearn.subject.forms import Affine
from surelearn.subject.predicting import describe
from surelearn.subject.registry import (
    NO_FORM,
    Around,
    DecisionThreshold,
    Parts,
    Preparation,
    describes,
)
from surelearn.subject.terms import Terms
from surelearn.types import Array, Model

_NOT_FITTED = Lacking("closed form", "it is not fitted")


@describes("sklearn.pipeline:Pipeline")
def _pipeline(model: Model) -> Around:
    return Around(model.steps[-1][1], steps=tuple(model.steps[:-1]))


@describes("sklearn.frozen:FrozenEstimator")
def _frozen(model: Model) -> Around:
    return Around(model.estimator)


@describes("sklearn.model_selection:GridSearchCV", "sklearn.model_selection:RandomizedSearchCV")
def _search(model: Model) -> Around | Parts:
    return (
        Around(model.best_estimator_)
        if hasattr(model, "best_estimator_")
        else Parts(form=_NOT_FITTED)
    )


@describes("sklearn.compose:TransformedTargetRegressor")
def _prepared_target(model: Model) -> Around | Parts:
    return (
        Around(model.regressor_, target=model.transformer_)
        if hasattr(model, "regressor_")
        else Parts(form=_NOT_FITTED)
    )


@describes(
    "sklearn.model_selection:FixedThresholdClassifier",
    "sklearn.model_selection:TunedThresholdClassifierCV",
)
def _threshold(model: Model) -> Around | Parts:
    if not hasattr(model, "estimator_"):
        return Parts(form=_NOT_FITTED)
    response = model.response_method
    if response == "auto":
        response = (
            "predict_proba" if hasattr(model.estimator_, "predict_proba") else "decision_function"
        )
    threshold = getattr(model, "best_threshold_", getattr(model, "threshold", "auto"))
    if threshold == "auto":
        threshold = 0.5 if response == "predict_proba" else 0.0
    scorer = getattr(model, "_curve_scorer", None)  # of a threshold that was tuned
    positive = getattr(model, "pos_label", None) if scorer is None else scorer._get_pos_label()
    return Around(
        model.estimator_,
        cut=DecisionThreshold(
            model.classes_[1] if positive is None else positive, float(threshold), response
        ),
    )


@describes("sklearn.preprocessing:StandardScaler")
def _standard(step: Model) -> Preparation:
    return Preparation(
        lambda: _scaled(step.scale_, step.mean_, step.n_features_in_), columnwise=True
    )


@describes("sklearn.preprocessing:RobustScaler")
def _robust(step: Model) -> Preparation:
    return Preparation(
        lambda: _scaled(step.scale_, step.center_, step.n_features_in_), columnwise=True
    )


def _scaled(scale: Array | None, center: Array | None, width: int) -> Affine:
    scale = np.ones(width) if scale is None else np.asarray(scale, dtype=float)
    shift = np.zeros(width) if center is None else np.asarray(center, dtype=float)
    return Affine(1.0 / scale, -shift / scale)


@describes("sklearn.preprocessing:MaxAbsScaler")
def _largest(step: Model) -> Preparation:
    if getattr(step, "clip", False):
        return _not_affine(step)

    def made() -> Affine:
        scale = np.asarray(step.scale_, dtype=float)
        return Affine(1.0 / scale, np.zeros(int(step.n_features_in_)))

    return Preparation(made, columnwise=True)


@describes("sklearn.preprocessing:MinMaxScaler")
def _range(step: Model) -> Preparation:
    if step.clip:
        return _not_affine(step)
    made = lambda: Affine(np.asarray(step.scale_, dtype=float), np.asarray(step.min_, dtype=float))  # noqa: E731
    return Preparation(made, columnwise=True)


@describes("sklearn.decomposition:PCA")
def _components(step: Model) -> Preparation:
    return Preparation(lambda: _projected(step))


def _projected(step: Model) -> Affine:
    scale = np.sqrt(step.explained_variance_) if step.whiten else np.ones(len(step.components_))
    matrix = step.components_ / scale[:, None]
    return Affine(matrix, -matrix @ step.mean_)


@describes("sklearn.impute:SimpleImputer")
def _imputed(step: Model) -> Preparation:
    """Numbers that are present stay as they are, where what is missing is NaN."""
    return Preparation(
        _not_affine(step).affine, columnwise=bool(step.missing_values != step.missing_values)
    )


@describes("sklearn.preprocessing:FunctionTransformer")
def _function(step: Model) -> Preparation:
    return Preparation(
        _not_affine(step).affine, columnwise=step.func is None and step.inverse_func is None
    )


@describes("sklearn.compose:ColumnTransformer")
def _columns(step: Model) -> Preparation:
    return replace(
        _not_affine(step),
        parts=tuple(getattr(step, "transformers_", ())),
        places=getattr(step, "output_indices_", None),
    )


@describes(
    "sklearn.feature_extraction.text:CountVectorizer",
    "sklearn.feature_extraction.text:TfidfVectorizer",
)
def _counted(step: Model) -> Preparation:
    def terms() -> Terms:
        names = np.array([str(name) for name in step.get_feature_names_out()], dtype=object)
        by_letters = step.analyzer in ("char", "char_wb")
        return Terms(names, np.full(names.size, by_letters), np.zeros(names.size, dtype=object))

    return replace(_not_affine(step), terms=terms)


@describes("sklearn.preprocessing:Normalizer", "sklearn.feature_extraction.text:TfidfTransformer")
def _scaled_row(step: Model) -> Preparation:
    return replace(_not_affine(step), keeps_columns=True)


def _not_affine(step: Model) -> Preparation:
    return Preparation(
        Lacking("affine map", f"the preparation {type(step).__name__} is not affine")
    )


@describes("sklearn.calibration:CalibratedClassifierCV")
def _calibrated(model: Model) -> Parts:
    inside = [one.estimator for one in getattr(model, "calibrated_classifiers_", ())]
    members = tuple((describe(one), 1 / len(inside), one) for one in inside)
    return Parts(form=NO_FORM if members else _NOT_FITTED, members=members)


@describes("sklearn.ensemble:VotingClassifier", "sklearn.ensemble:VotingRegressor")
def _voting(model: Model) -> Parts:
    inside: list[Model] = list(getattr(model, "estimators_", ()))
    if not inside:
        return Parts(form=_NOT_FITTED)
    names: list[str] = [name for name, one in model.estimators if not isinstance(one, str)]
    weights = np.ones(len(inside)) if model.weights is None else np.array(model._weights_not_none)
    members = zip(names, map(float, weights / weights.sum()), inside, strict=True)
    return Parts(form=NO_FORM, members=tuple(members))
