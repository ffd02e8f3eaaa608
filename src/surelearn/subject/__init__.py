"""A fitted model as the rest of the library sees it: its predictions always, and what its class
says about itself.

`subject_of` makes a `Subject`. scikit-learn's, the boosters' and torch's models are described in
one open registry (`describes`), our learners by their own method ``_describe``; whatever is not
known is `Lacking`, with its reason.
"""

from surelearn.lacking import Lacking
from surelearn.subject import (
    boosters,
    sklearn_around,
    sklearn_linear,
    sklearn_others,
    sklearn_svm,
    sklearn_trees,
    torch_modules,
)
from surelearn.subject.forms import Affine, Closed, kernel_form, linear_form
from surelearn.subject.objectives import Objective
from surelearn.subject.predicting import (
    Task,
    classes_of,
    describe,
    predict_with,
    scores_of,
    task_of,
)
from surelearn.subject.registry import Around, Parts, Preparation, describes
from surelearn.subject.scoring import ScoreFunction, score_function, trusted
from surelearn.subject.states import State, state_of
from surelearn.subject.subject import Subject, subject_of

__all__ = [
    "Affine",
    "Around",
    "Closed",
    "Lacking",
    "Objective",
    "Parts",
    "Preparation",
    "ScoreFunction",
    "State",
    "Subject",
    "Task",
    "classes_of",
    "describe",
    "describes",
    "kernel_form",
    "linear_form",
    "predict_with",
    "score_function",
    "scores_of",
    "state_of",
    "subject_of",
    "task_of",
    "trusted",
]
# they register themselves
ENTRIES = (
    boosters, sklearn_around, sklearn_linear, sklearn_others, sklearn_svm, sklearn_trees, torch_modules,
)  # fmt: skip
