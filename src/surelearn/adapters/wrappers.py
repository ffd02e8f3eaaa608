"""Models that predict exactly as one inside them does."""

from __future__ import annotations

from typing import Any

from surelearn.adapters.known import known_as, replaced

_INSIDE = {
    "AdversarialClassifier": "estimator_",
    "FrozenEstimator": "estimator",
    "GridSearchCV": "best_estimator_",
    "RandomizedSearchCV": "best_estimator_",
}
_PLACES = ("sklearn.frozen", "sklearn.model_selection", "surelearn.robust")


def unwrap(model: Any) -> Any:
    """The model inside, where a wrapper predicts as it does; the model itself otherwise."""
    while (inside := _INSIDE.get(known_as(model, *_PLACES))) and not replaced(model) and hasattr(model, inside):
        model = getattr(model, inside)
    return model
