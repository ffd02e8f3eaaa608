import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from surelearn.fingerprint import UNHASHED, fingerprint_model, fingerprint_rows
from surelearn.selection.catalogue import default_candidates
from surelearn.subject.refitting import fit_quietly


def candidates():
    for task, load in (("classification", load_breast_cancer), ("regression", load_diabetes)):
        X, y = load(return_X_y=True)
        kinds = dict.fromkeys(range(X.shape[1]), "number")
        for n in (300, 10_000):
            yield from (
                (task, c.name, c.model, X[:300], y[:300])
                for c in default_candidates(task, kinds, n)
            )


@pytest.mark.parametrize(
    ("task", "name", "model", "X", "y"),
    list(candidates()),
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_a_model_keeps_its_hash_when_fitted_again_used_and_pickled(task, name, model, X, y):
    fitted = fit_quietly(model, X, y)
    found = fingerprint_model(fitted)
    assert found.startswith("sha256:")
    assert fingerprint_model(fit_quietly(model, X, y)) == found
    fitted.predict(X)
    assert fingerprint_model(fitted) == found
    assert fingerprint_model(pickle.loads(pickle.dumps(fitted))) == found  # noqa: S301 - our own bytes
    if name not in ("majority", "median"):
        assert fingerprint_model(fit_quietly(model, X[:250], y[:250])) != found


def test_parameters_and_learned_numbers_count():
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    found = fingerprint_model(model)
    other = clone(model).set_params(logisticregression__tol=1e-3).fit(X, y)
    assert fingerprint_model(other) != found
    model[-1].coef_[0, 3] = np.nextafter(model[-1].coef_[0, 3], 9)
    assert fingerprint_model(model) != found


def test_the_hash_is_the_same_in_another_process():
    code = (
        "from sklearn.tree import DecisionTreeClassifier as T; from sklearn.datasets import"
        " load_iris as d;from surelearn.fingerprint import fingerprint_model as f;"
        " print(f(T(random_state=0).fit(*d(return_X_y=True))))"
    )
    here = fingerprint_model(
        DecisionTreeClassifier(random_state=0).fit(*load_iris(return_X_y=True))
    )
    assert here.startswith("sha256:")
    salt = str(1 + (os.environ.get("PYTHONHASHSEED") == "1"))  # strings are hashed otherwise
    there = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": salt},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout == f"{here}\n"


def test_what_cannot_be_read_is_unhashed():
    assert fingerprint_model(lambda X: X) == UNHASHED
    X, y = load_breast_cancer(return_X_y=True)
    hidden = make_pipeline(FunctionTransformer(lambda X: X), LogisticRegression(max_iter=5000)).fit(
        X[:, :2], y
    )
    assert fingerprint_model(hidden) == UNHASHED
    model = LogisticRegression(max_iter=5000).fit(X[:, :2], y)
    model.lock_ = threading.Lock()
    assert fingerprint_model(model) == UNHASHED


def test_an_object_that_holds_itself():
    model = LogisticRegression()
    model.self_ = model
    assert fingerprint_model(model).startswith("sha256:")


def test_rows():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    found = fingerprint_rows(frame, [0, 1])
    assert fingerprint_rows(frame.copy(), np.array([0, 1])) == found
    assert fingerprint_rows(frame.rename(columns={"a": "c"}), [0, 1]) != found
    assert fingerprint_rows(frame.assign(a=[1.0, 2.5]), [0, 1]) != found
    assert fingerprint_rows(frame.iloc[::-1], [0, 1]) != found
    assert fingerprint_rows(frame, [1, 0]) != found
    dense = np.eye(3)
    assert fingerprint_rows(np.asfortranarray(dense), [0, 0, 0]) == fingerprint_rows(
        dense, [0, 0, 0]
    )
    assert fingerprint_rows(sparse.csr_matrix(dense), [0, 0, 0]) == fingerprint_rows(
        sparse.csc_matrix(dense), [0, 0, 0]
    )


def test_the_padding_between_fields_does_not_count():
    dtype = np.dtype([("a", "i1"), ("b", "f8")], align=True)
    one = np.frombuffer(bytes(16), dtype=dtype)
    other = np.frombuffer(bytes([0, *[7] * 7, *[0] * 8]), dtype=dtype)
    models = [LogisticRegression(), LogisticRegression()]
    models[0].nodes_, models[1].nodes_ = one, other
    assert fingerprint_model(models[0]) == fingerprint_model(models[1])


def test_a_learners_own_certificate_is_left_out():
    from sklearn.linear_model import Ridge

    model = Ridge().fit([[0.0], [1.0]], [0.0, 1.0])
    before = fingerprint_model(model)
    model.certificate_ = "about the model with this hash"
    assert fingerprint_model(model) == before
    model.other_ = 1
    assert fingerprint_model(model) != before


def test_the_weights_and_settings_of_a_torch_module_count():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.Dropout(0.1), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)
    )
    model = LogisticRegression()
    model.module_ = module
    hashes = [(fingerprint_model(model), fingerprint_model(module))]

    def both_change():
        hashes.append((fingerprint_model(model), fingerprint_model(module)))
        return (
            all(len(set(found)) == len(hashes) for found in zip(*hashes, strict=True))
            and "unhashed" not in hashes[-1]
        )

    with torch.no_grad():
        module[0].weight[2, 1] = torch.nextafter(module[0].weight[2, 1], torch.tensor(9.0))
    assert both_change()
    module[2].running_mean[0] += 1.0
    assert both_change()
    module[1].p = 0.2
    assert both_change()
    module.to(torch.bfloat16)
    assert both_change()
    with torch.no_grad():
        module[0].weight[2, 1] *= 1.01
    assert both_change()
    found = fingerprint_model(module)
    assert fingerprint_model(module.eval()) == found
    assert fingerprint_model(pickle.loads(pickle.dumps(module))) == found  # noqa: S301 - our own bytes
    module.register_forward_hook(lambda *_: None)
    assert fingerprint_model(module) == UNHASHED


def test_a_transformer_has_a_hash():
    from sklearn.preprocessing import StandardScaler

    assert fingerprint_model(StandardScaler().fit([[0.0], [1.0]])).startswith("sha256:")
