"""Models in files, asked once: what they say of the rows stands in columns beside them, and is
certified as recorded answers are.

The certificate names each model's file by its hash, so that `verify` can ask the same model again.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from surelearn.auditing.answers.flow import audit_units, roles_and_options
from surelearn.auditing.answers.roles import Roles
from surelearn.auditing.answers.units import Units, labels_in, spelled, units_of
from surelearn.auditing.options import OptionError
from surelearn.claim import Finding
from surelearn.data import DataError
from surelearn.data.columns import infer_task, listed, shown
from surelearn.data.formats import Raw, load
from surelearn.data.frames import Source
from surelearn.data.table import find_column
from surelearn.jobs import Runner
from surelearn.persistence.model_files import Answered, ModelFile, as_model_file, read_model_file
from surelearn.report import Audit
from surelearn.selection.ledger import LedgerArgument
from surelearn.subject import Task
from surelearn.types import AnyArray, Array, Model

# roles that a model fills, or that are about answers without one
FILLED = (
    "answer",
    "score",
    "passed",
    "grade",
    "loss_range",
    "winner",
    "ours",
    "separator",
    "probabilities",
    "probability",
)


@dataclass(frozen=True)
class Models:
    """Who answers: a model, and perhaps another that it is compared with."""

    model: ModelFile
    rival: ModelFile | None = None


def audit_model(
    model: Model | str | Path,
    rows: Source,
    *,
    target: str,
    against: Model | str | Path | None = None,
    weights: str | Path | None = None,
    rival_weights: str | Path | None = None,
    ledger: LedgerArgument = None,
    runner: Runner | None = None,
    **given: Any,
) -> Audit:
    """Certify a model that was fitted elsewhere, on rows that it was not fitted on.

    Parameters
    ----------
    model : a file or folder (of surelearn, skops, ONNX, LightGBM, XGBoost, CatBoost),
        "package.module:function" that makes a torch module, or a fitted model. Nothing that a file
        holds is run
    rows : a file, or a data frame, with the model's columns and the target
    target : the column of what is right
    against : another model; is ours better on the same rows?
    weights, rival_weights : of torch modules, safetensors files
    ledger, runner : as in `surelearn.audit`
    **given : ``labels``, those of the model in its order where it does not know them; ``positive``,
        ``threshold``, ``cost``, ``group``, ``slices``, ``weight``, ``drop``, ``delta``, ``alpha``,
        ``loss_bound``, … as in `audit_answers`

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> x = np.linspace(0, 1, 200)
    >>> rows = pd.DataFrame({"x": x, "y": np.where(x > 0.5, "yes", "no")})
    >>> model = LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"])
    >>> audit_model(model, rows, target="y", ledger=False, independent=True).verdict.kind
    'guaranteed'
    """
    roles, options = roles_and_options({**given, "truth": target}, answered=True)
    rival = None if against is None else _as_file(against, rival_weights, "the other model")
    models = Models(_as_file(model, weights, "the model"), rival)
    units, roles = ask_models(
        rows, roles, options.positive, models, walked=options.require is not None
    )
    return audit_units(units, roles, options, ledger, runner or Runner())


def _as_file(model: Any, weights: str | Path | None, name: str) -> ModelFile:
    if isinstance(model, str | Path):
        return read_model_file(model, weights)
    return as_model_file(model, name)


def check_roles(given: Mapping[str, Any]) -> None:
    """Refuse roles of columns that a model fills."""
    if filled := [name for name in FILLED if given.get(name) not in (None, ())]:
        raise OptionError(
            lambda name: (
                f"{name} is for answers that are written down: leave it out, the model answers"
            ),
            filled[0],
        )


def ask_models(
    source: Source, roles: Roles, positive: str | None, models: Models, *, walked: bool = False
) -> tuple[Units, Roles]:
    """Read the rows, let the models answer them, and make units of both.

    Parameters
    ----------
    source : the rows
    roles : what their columns are; what models filled in before is filled in again
    positive : the class that matters
    models : which answer
    walked : whether a threshold is chosen, which then answers in the model's place

    Returns
    -------
    the units, and the roles with the columns that the models filled in
    """
    raw = load(source, header=roles.header)
    asked = _Asking(
        raw, _unfilled(roles), None if positive is None else str(positive), walked=walked
    )
    raw, roles = asked.asked(models)
    units = units_of(raw, roles, positive, walked=walked)
    return replace(units, findings=(*units.findings, *asked.findings)), roles


def _unfilled(roles: Roles) -> Roles:
    """The roles as they were before a model answered."""
    nothing: dict[str, Any] = {"answer": (), "score": None, "probabilities": (), "against": None}
    return replace(roles, **nothing, answered_by=roles.answered_by or "a model", rival_by=None)


class _Asking:
    """One table, and what is asked of models about it."""

    def __init__(
        self, raw: Raw, roles: Roles, positive: str | None, *, walked: bool = False
    ) -> None:
        self.raw, self.positive, self.walked = raw, positive, walked
        self.findings: list[Finding] = []
        names = list(raw.frame.columns)
        self.truth: tuple[str, ...] = tuple(
            find_column(raw.name, names, name, option="--target") for name in roles.truth
        )
        if not self.truth:
            raise DataError("a model's answers are compared with a target: name its column.")
        self.target: str = self.truth[0]
        self.roles = replace(roles, truth=self.truth)
        gone = [find_column(raw.name, names, name, option="--drop") for name in roles.drop]
        self.left = raw.frame.drop(columns=[*self.truth, *gone])
        beside = [
            find_column(raw.name, names, name, option=f"--{option}")
            for option, name in (("group", roles.group), ("weight", roles.weight))
            if name is not None
        ]
        # of columns without names none is a group's or a weight
        self.unnamed = self.left.drop(columns=[name for name in beside if name in self.left])

    def asked(self, models: Models) -> tuple[Raw, Roles]:
        """The table with the models' answers, and which columns they are."""
        empty = next((n for n in self.truth if not self.raw.frame[n].notna().any()), None)
        if empty is not None:
            raise DataError(
                f"{self.raw.name}, column {shown(empty)} has no values: name another with --target."
            )
        task = self._task(models.model)
        rival = models.rival
        if rival is not None and self.walked:
            raise ValueError("--require does not go with --against: leave one of them out")
        if rival is not None and rival.task not in (None, task):
            raise ValueError(
                f"{models.model.name} answers a {task}, {rival.name} a {rival.task}: two of one kind"
                " are compared"
            )
        roles = replace(
            self.roles,
            task=task,
            answered_by=models.model.stated,
            rival_by=None if rival is None else rival.stated,
        )
        name = self._free(models.model.name)
        answered = self._answers(models.model, task)
        if task == "regression":
            self._put(name, answered.values)
            roles = replace(roles, answer=(name,), labels=())
        else:
            labels = self._labels(models.model, answered)
            words = _as_words(models.model.name, answered, labels)
            roles = self._put_labels(name, replace(roles, labels=tuple(labels)), words, answered)
        if rival is not None:
            other = self._free(rival.name)
            said = self._answers(rival, task)
            if task == "regression":
                self._put(other, said.values)
            else:
                order = self._labels(rival, said)
                self._put(other, _as_words(rival.name, said, order))
            roles = replace(roles, against=other)
        return self.raw, roles

    def _task(self, model: ModelFile) -> Task:
        known = self.raw.frame[self.target].dropna().to_numpy()
        classes = self.positive is not None or len(self.truth) > 1 or bool(self.roles.labels)
        stated = self.roles.task or ("classification" if classes else None)
        task = stated or model.task or infer_task(known)
        if model.task is not None and task != model.task:
            answers = {"classification": "labels", "regression": "numbers"}
            raise ValueError(
                f"{model.name} ({model.kind}) answers with {answers[model.task]}, and"
                f" {answers[task]} were asked for: leave out --task, --positive and --labels, or name"
                " another model"
            )
        if task == "regression" and known.dtype.kind not in "iufb":
            raise DataError(
                f"{self.raw.name}, column {shown(self.target)} holds words, and {model.name}"
                f" ({model.kind}) answers with numbers: name the column of numbers with --target."
            )
        return task

    def _answers(self, model: ModelFile, task: Task) -> Answered:
        """What the model says of all rows."""
        frame = self.left if model.reads.named else self.unnamed
        read, answered = model.answer(frame, self.raw.name, task)
        names = [str(name) for name in read.columns]
        columns = f"{len(names):,} column{'s' * (len(names) > 1)}"
        self._notice(
            "SL123",
            f"{model.name} ({model.kind}, {model.digest}) answered, reading {columns}:"
            f" {listed(names, 8)}.",
            columns=len(names),
        )
        for line in model.notes():
            self._notice("SL126", f"{model.name}: {line}.")
        return answered

    def _notice(self, code: str, text: str, **numbers: Any) -> None:
        self.findings.append(Finding(code=code, text=text, severity="notice", numbers=numbers))

    def _free(self, name: str) -> str:
        """A name that no column has."""
        made, count = name, 2
        while made in self.raw.frame.columns:
            made, count = f"{name} ({count})", count + 1
        return made

    def _put(self, name: str, values: AnyArray) -> None:
        self.raw = replace(self.raw, frame=self.raw.frame.assign(**{name: values}))

    # ── labels ───────────────────────────────────────────────────────────────────────────────────

    def _labels(self, model: ModelFile, answered: Answered) -> list[str]:
        """The model's labels in its order, as the file spells them."""
        table, target = self.raw.name, self.target
        there = labels_in(self.raw, self.truth)
        own = None if model.classes is None else spelled(table, target, model.classes)
        count = model.outputs
        if count is None and answered.probabilities is not None:
            count = answered.probabilities.shape[1]
        if not answered.positions:  # it answers with labels, and does not say which there are
            own = sorted({*there, *spelled(table, target, answered.values)})
        numbered = own is None or own == [str(i) for i in range(len(own))]
        stated = list(self.roles.labels)
        if stated:
            labels = self._stated(model, stated, own, count, numbered)
        elif own is not None and ({*own} & {*there} or not numbered):
            labels = own
        else:
            labels = self._by_order(model, there, answered, count if own is None else len(own))
        if not {*labels} & {*there}:
            raise DataError(
                f"{table}, column {shown(target)} has no label that {model.name} answers with: it"
                f" answers {listed(labels, 4)}, labels are {listed(there, 4)}. Name another --target,"
                " or write both alike."
            )
        if len(labels) < 2:
            raise ValueError(f"{model.name} knows one class only: there is nothing to get wrong")
        self._check_positive(model, labels)
        self._note_unknown(model, labels, there)
        return labels

    def _stated(
        self,
        model: ModelFile,
        stated: list[str],
        own: list[str] | None,
        count: int | None,
        numbered: bool,
    ) -> list[str]:
        """--labels, where the model only knows positions."""
        if own is not None and stated == own:
            return stated
        if not numbered:
            raise ValueError(
                f"--labels is for models that only know positions: {model.name} answers with"
                f" {listed(own or [], 4)}; leave it out"
            )
        if len({*stated}) != len(stated):
            raise ValueError("--labels names a label twice")
        wanted = len(own) if own is not None else count
        if wanted is not None and len(stated) != wanted:
            raise ValueError(
                f"--labels names {len(stated)} labels, {model.name} has {wanted} classes: name one"
                " label per class, in the model's order"
            )
        self._say_order(model, stated, "as --labels says")
        return stated

    def _by_order(
        self, model: ModelFile, there: list[str], answered: Answered, count: int | None
    ) -> list[str]:
        """The sorted labels of the target, or the positions themselves where it has them."""
        table, target = self.raw.name, shown(self.target)
        most = int(answered.values.max()) + 1 if count is None else count
        if {*there} <= {str(i) for i in range(most)}:
            return [str(i) for i in range(most)]
        if (count is not None and len(there) != count) or len(there) < most:
            raise DataError(
                f"{model.name} has {most} classes without names, and {table}, column {target} has"
                f" {len(there)} labels, {listed(there, 4)}: say which label is which class with"
                " --labels, in the model's order."
            )
        self._say_order(model, there, f"the sorted labels of column {target}")
        return there

    def _say_order(self, model: ModelFile, labels: list[str], why: str) -> None:
        told = ", ".join(f"{i} is {shown(label)}" for i, label in enumerate(labels[:8]))
        more = ", …" if len(labels) > 8 else ""
        other = "" if "--labels" in why else "; where it was fitted in another order, say --labels"
        self._notice(
            "SL124",
            f"{model.name} knows classes by their positions only: {told}{more}, {why}{other}.",
            labels=list(labels),
        )

    def _check_positive(self, model: ModelFile, labels: list[str]) -> None:
        if self.positive is None or self.positive in labels:
            return
        near = difflib.get_close_matches(self.positive, labels, n=1, cutoff=0.6)
        hint = f"Did you mean {shown(near[0])}?" if near else f"It answers {listed(labels, 8)}."
        raise ValueError(f"{model.name} has no class {shown(self.positive)} (--positive). {hint}")

    def _note_unknown(self, model: ModelFile, labels: list[str], there: list[str]) -> None:
        if unknown := [label for label in there if label not in labels]:
            self._notice(
                "SL125",
                f"Column {shown(self.target)} has labels that {model.name} never answers,"
                f" {listed(unknown, 4)}: rows with them count as wrong.",
            )

    def _put_labels(self, name: str, roles: Roles, words: AnyArray, answered: Answered) -> Roles:
        """The columns of answers, and of a score or of probabilities."""
        labels, given = list(roles.labels), answered.probabilities
        two = len(labels) == 2 and self.positive is not None
        if self.walked and (given is None or not two):
            raise ValueError(
                "--require chooses a threshold of a score: it needs a model of two classes that gives"
                " probabilities, and --positive"
            )
        if given is None or given.shape[1] != len(labels):
            if roles.threshold is not None:
                raise ValueError(
                    "--threshold needs probabilities, and the model gives none: leave it out"
                )
            self._put(name, words)
            return replace(roles, answer=(name,))
        if two:
            score = self._free(f"{name}: {self.positive}")
            self._put(score, given[:, labels.index(str(self.positive))])
            if self.walked or roles.threshold is not None:  # then nobody asks for its answers
                return replace(roles, score=score)
            self._put(name, words)
            return replace(roles, answer=(name,), score=score)
        if roles.threshold is not None:
            raise ValueError(
                "--threshold goes with two classes and --positive, the one that is answered from it on"
            )
        self._put(name, words)
        shares = [self._free(f"{name}: {label}") for label in labels]
        for share, column in zip(shares, given.T, strict=True):
            self._put(share, column)
        return replace(roles, answer=(name,), probabilities=tuple(shares))


def _as_words(model: str, answered: Answered, labels: list[str]) -> AnyArray:
    """(n,) answers as labels."""
    values: Array = answered.values
    made = np.empty(len(values), dtype=object)
    if not answered.positions:
        made[:] = spelled(model, "its answers", values)
        return made
    if len(values) and (values.min() < 0 or values.max() >= len(labels)):
        raise ValueError(
            f"{model} answers with position {int(values.max())}, and there are {len(labels)} labels:"
            " name them all with --labels"
        )
    made[:] = [labels[int(i)] for i in values]
    return made
