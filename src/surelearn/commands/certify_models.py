"""`surelearn certify MODEL rows.csv --target y`: a model first, then rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surelearn.auditing.answers import Models

OF_MODELS = ("target", "labels", "weights")  # options that go with a model only


def model_and_rows(sources: Sequence[str], given: Mapping[str, Any]) -> tuple[str | None, str]:
    """The model, None where somebody wrote its answers down, and the rows."""
    from surelearn.persistence.model_files import is_model

    if len(sources) > 2:
        raise ValueError(
            f"name a model and one file of rows, or one file of answers, not {len(sources)} files"
        )
    if len(sources) == 2:
        first, second = sources
        if is_model(second) and not is_model(first):
            raise ValueError(
                f"the model comes first: surelearn certify {second} {first} --target COLUMN"
            )
        return first, second
    only = sources[0]
    asked = next((name for name in OF_MODELS if given.get(name)), None)
    if asked is not None and is_model(only):
        raise ValueError(
            f"name the rows after the model: surelearn certify {only} ROWS --target COLUMN"
        )
    if asked is not None:
        raise ValueError(
            f"--{asked} goes with a model: surelearn certify MODEL {only} --target COLUMN; of answers"
            " that are written down say --truth and --answer"
        )
    return None, only


def roles_given(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the columns of a model's rows are: the target is the truth."""
    from surelearn.auditing.answers import check_roles

    stated = {name: value for name, value in given.items() if value not in (None, ())}
    target, labels = stated.pop("target", None), stated.pop("labels", None)
    for name in ("weights", "against", "at_least"):
        stated.pop(name, None)
    ties = stated.pop("ties", None)
    check_roles({**stated, "winner": stated.get("winner") or ties})
    if target is not None and "truth" in stated:
        raise ValueError("--target and --truth are two names of one thing: leave out --truth")
    if target is None and "truth" not in stated:
        raise ValueError("a model needs --target COLUMN, the column of what is right")
    if target is not None:
        stated["truth"] = (target,)
    if labels is not None:
        stated["labels"] = tuple(word.strip() for word in labels.split(","))
    return stated


def models_given(model: str, against: str | None, weights: Sequence[str | Path]) -> Models:
    """The model, and the one that it is compared with."""
    from surelearn.auditing.answers import Models
    from surelearn.persistence.model_files import is_factory, read_model_file

    left = list(weights)
    files = [None if one is None else is_factory(one) for one in (model, against)]
    if len(left) > max(1, sum(map(bool, files))):
        raise ValueError("--weights is given once for each MODULE:FACTORY, in their order")
    read = [
        None
        if one is None
        else read_model_file(one, left.pop(0) if left and (made or not any(files)) else None)
        for one, made in zip((model, against), files, strict=True)
    ]
    assert read[0] is not None  # noqa: S101 - a model is given
    return Models(read[0], read[1])
