"""How to predict with, score by and differentiate a scikit-learn model, a pipeline, a torch module, or a plain function."""

from surelearn.adapters.predicting import Task, classes_of, describe, predict_with, scores_of, task_of
from surelearn.adapters.scoring import ScoreFunction, score_function, trusted

__all__ = [
    "ScoreFunction",
    "Task",
    "classes_of",
    "describe",
    "predict_with",
    "score_function",
    "scores_of",
    "task_of",
    "trusted",
]
