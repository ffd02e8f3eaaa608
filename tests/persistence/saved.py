"""What the tests of this folder share."""

import hashlib
import json
import runpy
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyRegressor

from surelearn import load
from surelearn.persistence import MANIFEST
from surelearn.plain import content_hash

HOSTILE = runpy.run_path(str(Path(__file__).parents[1] / "hostile.py"))
CASES, EVIL, evil_module, node, plain, sequence, archive, pickled = (
    HOSTILE[name]
    for name in ("CASES", "EVIL", "evil_module", "node", "plain", "sequence", "archive", "pickled")
)
X2 = np.random.default_rng(0).normal(size=(60, 2))
Y2 = (X2[:, 0] > 0).astype(int)


def table(seed, n=120):
    rng = np.random.default_rng(seed)

    def gaps(values, missing):
        return np.where(rng.random(n) < 0.1, missing, values)

    return pd.DataFrame(
        {
            "age": gaps(rng.normal(40, 15, n), np.nan),
            "income": rng.lognormal(size=n),
            "colour": gaps(rng.choice(["red", "green", "blue"], n).astype(object), None),
            "note": gaps(rng.choice(["a good day", "bad luck", "so so"], n).astype(object), None),
            "seen": gaps(
                np.datetime64("2020-01-01", "us") + rng.integers(0, 10**15, n), np.datetime64("NaT")
            ),
        }
    )


INVENTED = types.ModuleType("invented_learners")
INVENTED_OURS = types.ModuleType("surelearn.invented_learners")


class Learner:
    saved_as = "invented/1"

    def __init__(self, **state):
        vars(self).update(state)

    def predict(self, X):
        return X


class Own(ClassifierMixin, BaseEstimator):
    """A user's own class."""

    def fit(self, X, y):  # noqa: ARG002
        self.labels_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.labels_[:1], len(X))


for invented, module in ((Learner, INVENTED_OURS), (Own, INVENTED)):
    invented.__module__ = module.__name__
    setattr(module, invented.__name__, invented)


def manifest_of(folder):
    return json.loads((folder / MANIFEST).read_text())


def edit(folder, **changes):
    """Change the manifest as someone does who knows how it is hashed."""
    manifest = {**manifest_of(folder), **changes}
    (folder / MANIFEST).write_text(json.dumps({**manifest, "hash": content_hash(manifest)}))
    return folder


def data_file(folder):
    return next(folder.glob("model-*"))


def put(folder, content, kind="skops", **changes):
    """Another data file, with a manifest that fits."""
    data_file(folder).unlink()
    digest = hashlib.sha256(content).hexdigest()
    name = f"model-{digest[:16]}.{kind}"
    (folder / name).write_bytes(content)
    return edit(folder, files={name: {"sha256": digest, "bytes": len(content)}}, **changes)


def refusal(path, **options):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the sentence is matched by whoever asks
        load(path, **options)
    assert type(caught.value) is ValueError
    message = str(caught.value)
    assert message.isprintable()  # one line
    assert len(message) < 600
    return message


def constant(value):
    return DummyRegressor(strategy="constant", constant=value).fit([[0]], [0])


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())
