"""A model in a file, as the rest of the library sees it: what it reads, which classes it knows, and
what it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, softmax

from surelearn.fingerprint import fingerprint_model
from surelearn.persistence.model_files.columns import NumberColumns, Reads, by_names
from surelearn.persistence.words import first_line
from surelearn.subject import Task, classes_of, predict_with
from surelearn.subject.predicting import known_task
from surelearn.subject.torch_modules import is_module
from surelearn.types import AnyArray, Array, Model

_SUM = 1e-3  # by how much probabilities may miss 1


@dataclass(frozen=True, eq=False)
class Answered:
    """What a model says of rows.

    Attributes
    ----------
    values : (n,) of a classifier the positions of its answers in the order of its classes, or the
        labels themselves where it does not say which there are; else numbers
    probabilities : (n, k) in the order of its classes, or None
    positions : whether ``values`` are positions
    """

    values: AnyArray
    probabilities: Array | None = None
    positions: bool = True


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelFile:
    """A model that answers the rows of a table.

    Attributes
    ----------
    name : of its file, without folders
    digest : what identifies it: "sha256:…" of the file's content, of a folder that of its manifest,
        which names all else by hash
    kind : what it is, for people
    task : what it answers; None where it does not say
    classes : its labels in their order; None where it only knows positions
    outputs : how many classes there are; None of numbers, and where it does not say
    reads : the columns that it reads
    ask : what it says of its rows
    ask_number : the same as numbers, of a model that does not say which of the two it answers
    notes : what was odd about the rows, one line each, once they were answered
    """

    name: str
    digest: str
    kind: str
    task: Task | None
    reads: Reads
    ask: Callable[[pd.DataFrame], Answered]
    classes: tuple[Any, ...] | None = None
    outputs: int | None = None
    ask_number: Callable[[pd.DataFrame], Answered] | None = None
    notes: Callable[[], Iterable[str]] = tuple

    @property
    def stated(self) -> str:
        """The file and its hash, as a certificate names them."""
        return f"{self.name}, {self.digest}"

    def answer(
        self, frame: pd.DataFrame, table: str, task: Task = "classification"
    ) -> tuple[pd.DataFrame, Answered]:
        """The rows as the model read them, and what it says of them.

        Parameters
        ----------
        frame : the columns that it may read
        table : what their file is called
        task : what is asked of a model that does not say it

        Raises
        ------
        ValueError
            in one sentence, where it does not read them or says nothing that could be counted
        """
        rows = self.reads.rows(frame, table, self.name)
        try:
            numbers = self.ask_number is not None and task == "regression"
            said = self.ask_number(rows) if numbers else self.ask(rows)  # type: ignore[misc]
        except ValueError as error:
            raise ValueError(f"{self.name} does not answer {table}: {first_line(error)}") from None
        except Exception as error:  # whatever a library says of rows that do not suit it
            raise ValueError(f"{self.name} failed on {table}: {first_line(error)}") from None
        if said.values.shape != (len(frame),):
            raise ValueError(
                f"{self.name} gave answers of shape {said.values.shape} for the {len(frame):,} rows"
                f" of {table}: one per row is needed"
            )
        if said.values.dtype.kind == "f" and not np.isfinite(said.values).all():
            lost = int((~np.isfinite(said.values)).sum())
            raise ValueError(
                f"{self.name} gave NaN or infinity for {lost:,} of the {len(frame):,} rows of"
                f" {table}: it may not read missing values; fill them, or leave out the rows"
            )
        return rows, said


def as_model_file(model: Model, name: str = "the model") -> ModelFile:
    """A fitted model that is at hand: of scikit-learn, surelearn, or with their ways.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0]})
    >>> file = as_model_file(LogisticRegression().fit(rows, ["a", "a", "b", "b"]))
    >>> file.classes, file.answer(rows, "rows")[1].values.tolist()
    (('a', 'b'), [0, 0, 1, 1])
    """
    if is_module(model):
        from surelearn.persistence.model_files.torch_weights import of_module

        return of_module(model, name, fingerprint_model(model))
    return of_estimator(model, name, fingerprint_model(model))


def of_estimator(
    model: Any, name: str, digest: str, reads: Reads | None = None, kind: str = ""
) -> ModelFile:
    """A model with ``predict`` and, of a classifier, ``classes_``."""
    if not callable(getattr(model, "predict", None)):
        raise ValueError(f"{name} holds a {type(model).__name__}, which does not predict")
    task = known_task(model)
    classes = classes_of(model)
    if reads is None:
        names = getattr(model, "feature_names_in_", None)
        count = getattr(model, "n_features_in_", None)
        named = None if names is None else [str(one) for one in names]
        reads = by_names(named, None if count is None else int(count), words=None)
        if isinstance(reads, NumberColumns) and named is not None:
            reads = by_names(None, len(named))
    named_rows = hasattr(model, "feature_names_in_") or not isinstance(reads, NumberColumns)

    def ask(rows: pd.DataFrame) -> Answered:
        X: Any = rows if named_rows else rows.to_numpy(dtype=float)
        said = np.asarray(predict_with(model)(X))
        if classes is None:
            return Answered(said.astype(float) if said.ndim == 1 else said)
        give = getattr(model, "predict_proba", None)
        found = None if not callable(give) else np.asarray(give(X), dtype=float)
        order = {label: i for i, label in enumerate(classes)}
        labels = (
            said.reshape(-1).tolist() if said.ndim == 2 and said.shape[1] == 1 else said.tolist()
        )
        positions = np.array([order.get(label, -1) for label in labels])
        if (positions < 0).any():
            raise ValueError("it answers with a label that is none of its classes_")
        return Answered(positions, usable(found, len(classes)))

    return ModelFile(
        name=name,
        digest=digest,
        kind=kind or type(model).__name__,
        task=task if isinstance(task, str) else None,
        classes=classes if task != "regression" else None,
        outputs=None if classes is None else len(classes),
        reads=reads,
        ask=ask if task != "regression" else lambda rows: _numbers(model, rows, named_rows),
    )


def _numbers(model: Model, rows: pd.DataFrame, named: bool) -> Answered:
    X: Any = rows if named else rows.to_numpy(dtype=float)
    said = np.asarray(predict_with(model)(X), dtype=float)
    return Answered(said.reshape(-1) if said.ndim == 2 and said.shape[1] == 1 else said)


def usable(found: Array | None, classes: int) -> Array | None:
    """Probabilities that are some: one per row and class, none negative, with the sum 1."""
    if found is None or found.ndim != 2 or found.shape[1] != classes:
        return None
    if not np.isfinite(found).all() or found.min() < 0:
        return None
    return found if bool((np.abs(found.sum(axis=1) - 1) < _SUM).all()) else None


def of_outputs(found: Array, *, single: str = "logit") -> Answered:
    """Answers of a classifier by its outputs (n, k): the largest; with a single one the second of
    two classes from 0 on of a logit, from 1/2 on of a probability.

    Outputs that are not negative and have the sum 1 are probabilities, others logits.
    """
    if np.isnan(found).any():
        lost = int(np.isnan(found).any(axis=1).sum())
        raise ValueError(
            f"its outputs are NaN for {lost:,} of {len(found):,} rows: it may not read missing values"
        )
    found = found.astype(float)
    if found.shape[1] == 1:
        if single == "logit" and len(found) and found.min() >= 0 and found.max() <= 1:
            raise ValueError(
                "it has one output, between 0 and 1 in every row, and does not say whether that is a"
                " probability or a logit: let it give one output per class"
            )
        p = found[:, 0] if single == "probability" else expit(found[:, 0])
        above = found[:, 0] > (0.5 if single == "probability" else 0.0)
        return Answered(above.astype(int), usable(np.column_stack([1 - p, p]), 2))
    best = found.argmax(axis=1)
    given = usable(found, found.shape[1])
    return Answered(best, given if given is not None else softmax(found, axis=1))
