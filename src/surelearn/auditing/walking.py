"""The operating point of a model that an audit fits: thresholds from out-of-fold scores, and the model that
answers from the chosen one on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surelearn.auditing.fitting import FittedChoice, with_threshold
from surelearn.auditing.options import OptionError, Options
from surelearn.certificate import Certificate
from surelearn.data import Table
from surelearn.operating import Rungs, ladder
from surelearn.operating.sets import SCORES, choose_score
from surelearn.selection.split import Split


def check_table(table: Table, options: Options) -> None:
    """Refuse a requirement, or prediction sets, that this table's rows cannot show, before any work."""
    if options.sets is not None and table.task == "regression":
        raise OptionError(
            lambda s: f"{s} is about labels; numbers have an interval, see --alpha", "sets"
        )
    if options.sets is not None and table.time is not None:
        raise OptionError(
            lambda s, t: f"{s} is guaranteed for rows that are drawn independently: leave out {t}",
            "sets", "time",
        )  # fmt: skip
    requirement = options.requirement
    if requirement is None:
        return
    text = str(requirement)
    numbers = requirement.quantity == "mean_error"
    if numbers != (table.task == "regression"):
        what = "numbers" if numbers else "classes, and of numbers say 'mean_error <= …'"
        raise OptionError(lambda r: f"{r} '{text}' is about {what}", "require")
    for name in ("group", "time"):
        if getattr(table, name) is not None:
            raise OptionError(
                lambda r, o: f"{r} '{text}' counts independent rows one by one: leave out {o}",
                "require",
                name,
            )
    classes = np.unique(table.y).size
    if not numbers and requirement.quantity != "error" and classes != 2:
        raise OptionError(
            lambda r: f"{r} '{text}' needs two classes, and the target has {classes:,}", "require"
        )


def rungs_of(table: Table, split: Split, fitted: FittedChoice, options: Options) -> Rungs | None:
    """The thresholds that may be chosen on the certify rows, and their order, from scores of the
    others by fits without them; None where nothing is required of classes.
    """
    requirement = options.requirement
    if requirement is None or requirement.quantity == "mean_error":
        return None
    train = np.union1d(split.fit, split.select)
    if requirement.quantity == "mean_cost" and fitted.threshold is not None:
        return Rungs((float(fitted.threshold),), None, 1.0, train.size)
    scores = fitted.selection.scores
    if scores is None:
        raise OptionError(
            lambda r: (
                f"{r} needs probabilities of rows not fitted on, which this way of comparing candidates"
                " does not give"
            ),
            "require",
        )
    told = ~np.isnan(scores).any(axis=1)
    y, p = table.y[train][told], np.asarray(scores)[told]
    classes = np.unique(table.y[train])
    if requirement.quantity == "error":
        score, good = p.max(axis=1), np.asarray(classes[p.argmax(axis=1)] == y, dtype=bool)
    else:
        column = classes.tolist().index(options.positive)
        score, good = p[:, column], np.asarray(y == options.positive, dtype=bool)
    return ladder(requirement, score, good, split.certify.size, options.delta / 2, options.cost)


def set_score(table: Table, split: Split, fitted: FittedChoice, options: Options) -> str:
    """What prediction sets score labels by: what makes the smallest ones of out-of-fold probabilities of
    the rows fitted on; the plain one where there are none.
    """
    scores = fitted.selection.scores
    if options.sets is None or scores is None:
        return SCORES[0]
    train = np.union1d(split.fit, split.select)
    told = ~np.isnan(scores).any(axis=1)
    codes = np.unique(table.y[train], return_inverse=True)[1][told]
    classes = scores.shape[1]
    share = options.delta / 4 / (classes if options.per_class else 1)  # as of a first look
    return choose_score(
        np.asarray(scores)[told], codes, options.sets, split.certify.size, share,
        per_class=options.per_class,
    )  # fmt: skip


def at_threshold(fitted: FittedChoice, certificate: Certificate, options: Options) -> FittedChoice:
    """The chosen model, answering from the threshold on that the certificate is about; as it is
    where it abstains below it, or has the cheapest one already.
    """
    if "walk.threshold" not in certificate.facts or options.requirement is None:
        return fitted
    if options.requirement.quantity in ("error", "mean_cost"):
        return fitted
    threshold = float(certificate.facts["walk.threshold"])
    unfitted = with_threshold(fitted.unfitted, threshold, options.positive)
    model = with_threshold(fitted.unfitted, threshold, options.positive)
    model.estimator_ = fitted.model
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(fitted.model, name):
            setattr(model, name, getattr(fitted.model, name))
    return replace(fitted, model=model, unfitted=unfitted, threshold=threshold)
