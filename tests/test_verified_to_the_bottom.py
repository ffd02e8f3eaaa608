"""Every number of every learner's certificate, edited with its hash made right: who finds it, or
why nobody can.

Claims are written again from the record, so that an edited claim is found by the file alone. A
record's field is found by the model, which keeps its own; and where somebody edited the model's, by
measuring it again on the rows.
"""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_clusterer

from surelearn import Certificate
from surelearn.base import learners
from surelearn.plain import content_hash, freeze, to_plain

EXAMPLES = {
    f"{cls.__name__}-{i}": one for cls in learners() for i, one in enumerate(cls.examples())
}
every_example = pytest.mark.parametrize("learner", EXAMPLES.values(), ids=EXAMPLES)


def rows(learner, n=80):
    """Rows of norm at most 1, and two classes or targets within ±1, with some noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X /= np.linalg.norm(X, axis=1).max()
    y = np.clip(X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=n), -1, 1)
    if is_clusterer(learner):
        return X, None
    return X, (np.where(y > 0, "yes", "no") if is_classifier(learner) else y)


def numbers(plain, path=()):
    """The paths of all numbers in plain data."""
    if isinstance(plain, dict):
        for key, value in plain.items():
            yield from numbers(value, (*path, key))
    elif isinstance(plain, list):
        for i, value in enumerate(plain):
            yield from numbers(value, (*path, i))
    elif isinstance(plain, int | float) and not isinstance(plain, bool):
        yield path


def edited(value):
    """Another number; one that rounding left is replaced by one that rounding could not leave."""
    return value + 1 if isinstance(value, int) else 0.5 * value if abs(value) > 1e-9 else 0.25


def edit(plain, path):
    plain = copy.deepcopy(plain)
    inner = plain
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = edited(inner[path[-1]])
    return {**plain, "hash": content_hash(plain)}


def read(plain):
    """The certificate of a file, or None where the file is refused."""
    try:
        return Certificate.from_json(json.dumps(plain))
    except ValueError:
        return None


@every_example
def test_an_edited_claim_is_found_by_the_record_and_an_edited_record_by_the_model(learner):
    X, y = rows(learner)
    model = clone(learner).fit(X, y)
    plain = json.loads(model.certificate_.to_json())
    assert read(plain).verify(model, X, y), read(plain).verify(model, X, y)
    for path in numbers(plain):
        if path[0] == "version":
            continue
        certificate = read(edit(plain, path))
        if certificate is None:
            continue
        assert not certificate.altered
        found = (
            "record"
            if not certificate.verify()
            else "model"
            if not certificate.verify(model)
            else ""
        )
        assert found == "record" or (found and path[0] == "facts"), path


@every_example
def test_an_edited_record_of_the_model_is_found_by_the_rows_but_for_what_nothing_tells(learner):
    X, y = rows(learner)
    model = clone(learner).fit(X, y)
    reasons = model.Record.untold()
    found = model.certificate_.verify(model, X, y)
    assert found, found.differences
    untold = {line.split(":")[0] for line in found.unchecked}
    assert untold <= set(reasons)
    assert all(reason.strip() for reason in reasons.values())
    values = to_plain(freeze(model.record_.values()))
    changes = [(name, edit(values, (name, *path))[name]) for name, *path in numbers(values)]
    changes += [(name, [0.25]) for name, value in values.items() if value == []]
    changes += [(name, not value) for name, value in values.items() if isinstance(value, bool)]
    changes += [(name, f"{value}?") for name, value in values.items() if isinstance(value, str)]
    for name, value in changes:
        other = copy.deepcopy(model)
        other.facts_[name] = value
        try:
            certificate = other.certificate_
        except ValueError:
            continue  # no such record is possible
        assert bool(certificate.verify(other, X, y)) == (name in untold), name
