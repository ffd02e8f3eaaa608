"""Columns with a probability of each class, named by a pattern: "p_*" for p_cat, p_dog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surelearn.auditing.answers.roles import Roles
from surelearn.data import DataError
from surelearn.data.columns import listed, shown
from surelearn.data.formats import Raw
from surelearn.types import Array

_SUM = 0.05  # by which rounded probabilities of a row may miss 1
_ROUNDED = 1e-3  # by which they may miss it and stay as they are


def with_shares(
    raw: Raw,
    roles: Roles,
    positive: object = None,
    labels: Sequence[str] | None = None,
    *,
    live: bool = False,
) -> tuple[Raw, Roles, list[str]]:
    """The table with the most probable class as the answer where none is given, the roles with the
    columns of probabilities, and the classes, which are those that have a column.

    Parameters
    ----------
    labels : the classes, in their order, where they are known
    """
    before, _, after = str(roles.probability).partition("*")
    names = [str(name) for name in raw.frame.columns]
    least = len(before) + len(after)
    found = [n[len(before) : len(n) - len(after)] for n in names
             if n.startswith(before) and n.endswith(after) and len(n) > least
             and n not in (*roles.truth, *roles.answer, roles.group)]  # fmt: skip
    said = f"{raw.name}: --probability {shown(str(roles.probability))}"
    known = sorted(found) if labels is None else list(labels)
    if missing := [label for label in known if label not in found]:
        raise DataError(f"{said} names no column for the class {shown(missing[0])}.")
    if len(known) < 2:
        told = f"only {shown(found[0])}" if found else "none"
        raise DataError(
            f"{said} names the columns of at least two classes, and {told} is there; its columns are"
            f" {listed(names, 6)}."
        )
    if positive is not None and str(positive) not in known:
        raise DataError(
            f"{said} names no column for --positive {shown(str(positive))}; it has"
            f" {listed(known, 8)}."
        )
    columns = tuple(f"{before}{label}{after}" for label in known)
    p = _probabilities(raw, columns, said)
    sums = p.sum(axis=1, keepdims=True)
    if np.abs(sums - 1).max() > _ROUNDED:
        raw = replace(raw, frame=raw.frame.assign(**dict(zip(columns, (p / sums).T, strict=True))))
    if not live:
        _check_labels(raw, roles, known, said)
    if not roles.answer:
        answer = "most probable"
        while answer in names:
            answer += "_"
        best = np.array(known, dtype=object)[p.argmax(axis=1)]
        raw = replace(raw, frame=raw.frame.assign(**{answer: best}))
        roles = replace(roles, answer=(answer,))
    made: dict[str, Any] = {"probability": None, "probabilities": columns, "task": "classification"}
    return raw, replace(roles, **made), known


def _probabilities(raw: Raw, columns: Sequence[str], said: str) -> Array:
    """(n, K), each row of sum 1."""
    for name in columns:
        values = raw.frame[name].to_numpy()
        if values.dtype.kind not in "iuf":
            raise DataError(f"{said}: column {shown(name)} holds words, and a probability is a number.")  # fmt: skip
        if bad := int((~np.isfinite(values.astype(float))).sum()):
            raise DataError(
                f"{said}: column {shown(name)} lacks {bad:,} of {len(values):,} numbers; give one in"
                " every row."
            )
    p = raw.frame[list(columns)].to_numpy(dtype=float)
    off = (p < 0).any(axis=1) | (np.abs(p.sum(axis=1) - 1) > _SUM)
    if off.any():
        row = int(off.argmax())
        raise DataError(
            f"{said}: the probabilities of row {row + 1:,} have the sum {p[row].sum():.4g}; those of"
            f" all classes have the sum 1, and none is below 0 ({int(off.sum()):,} of {len(p):,} rows"
            " are otherwise)."
        )
    return p


def _check_labels(raw: Raw, roles: Roles, known: list[str], said: str) -> None:
    """Refuse classes that no row's truth has."""
    if not roles.truth or roles.truth[0] not in raw.frame.columns:
        return  # what is missing is said where columns are looked for
    there = {str(value) for value in raw.frame[roles.truth[0]].dropna().unique().tolist()}
    if not there & {*known}:
        raise DataError(
            f"{said}: it has columns for {listed(known, 4)}, and column {shown(roles.truth[0])} has"
            f" {listed(sorted(there), 4)}. Write both alike."
        )
