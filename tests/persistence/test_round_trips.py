"""Models come back as they were."""

import importlib.util
import subprocess
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.fixes import parse_version
from tests.persistence.saved import X2, Y2, table
from threadpoolctl import threadpool_limits

import surelearn
from surelearn import certify, load, persistence, save
from surelearn.data.schema import Feature, Schema
from surelearn.fingerprint import fingerprint_model
from surelearn.kernel import Compute
from surelearn.kernel.eigenpro import EigenProClassifier
from surelearn.kernel.functions import Gaussian, Laplace, Linear, Matern, Polynomial
from surelearn.persistence import read_model
from surelearn.selection.catalogue import BOOSTERS, DIRECT_KERNEL_ROWS, default_candidates
from surelearn.subject.refitting import fit_quietly

KINDS = {"age": "number", "income": "number", "colour": "category", "note": "text", "seen": "date"}


def target(X, classes):
    value = X["age"].fillna(40) + 20 * (X["colour"] == "red") - X["income"]
    return (
        value
        if classes == 0
        else np.array(["no", "yes", "maybe"])[pd.qcut(value, classes, labels=False)]
    )


CANDIDATES = {
    f"{candidate.name}, {classes or 'no'} classes": (candidate.model, classes)
    for classes in (2, 3, 0)
    for n in (DIRECT_KERNEL_ROWS, 2 * DIRECT_KERNEL_ROWS + 1)
    for candidate in default_candidates(
        "classification" if classes else "regression", KINDS, n, classes=classes, budget=np.inf
    )
    if candidate.name not in BOOSTERS  # which tests/test_boosters.py saves
}


@cache
def fitted(name, threshold=None):
    model, classes = CANDIDATES[name]
    if threshold is not None:
        model = clone(model)
        small = {
            "boosted trees": {"estimator__max_iter": 2},
            "random forest": {"n_estimators": 2},
        }.get(name.split(",")[0], {})
        model[-1].set_params(**small)
        model = FixedThresholdClassifier(
            model, threshold=threshold, pos_label="yes", response_method="predict_proba"
        )
    X = table(0)
    with threadpool_limits(1):
        return fit_quietly(model, X, target(X, classes))


def check_round_trip(model, path):
    X = table(1)
    X.loc[0, "colour"] = "never seen"
    again = load(save(model, path))
    with threadpool_limits(1):
        for method in ("predict", "predict_proba", "decision_function"):
            assert hasattr(again, method) == hasattr(model, method)
            if hasattr(model, method):
                np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    assert fingerprint_model(again) == fingerprint_model(model)
    assert type(again) is type(model)


def test_both_kernel_machines_are_among_the_candidates():
    names = {name.split(",")[0] for name in CANDIDATES}
    machines = {"kernel SVM", "weighted kernel SVM", "kernel logistic regression", "kernel ridge"}
    assert machines < names
    assert len(CANDIDATES) == 30 + 6 * (importlib.util.find_spec("torch") is not None)


@pytest.mark.parametrize("name", CANDIDATES)
def test_a_default_candidate(name, tmp_path):
    check_round_trip(fitted(name), tmp_path / "model")


SCORED = [
    name
    for name, (model, classes) in CANDIDATES.items()
    if classes == 2 and hasattr(model, "predict_proba")
]


@pytest.mark.parametrize("name", SCORED)
def test_a_candidate_with_a_threshold(name, tmp_path):
    check_round_trip(fitted(name, threshold=0.3), tmp_path / "model")


KERNELS = (
    Laplace(0.5),
    Matern(2.0, nu=2.5),
    Polynomial(2),
    Gaussian(bandwidth=np.float64(2.0)) + 0.5 * Linear(),
    Gaussian() * Linear(),
)


@pytest.mark.parametrize("prepared", [False, True], ids=["alone", "in a pipeline"])
@pytest.mark.parametrize("kernel", ["gaussian", *KERNELS], ids=repr)
def test_a_kernel_machine(kernel, prepared, tmp_path):
    pytest.importorskip("torch")
    model = EigenProClassifier(
        kernel, regularization=0.01, compute=Compute(device="cpu"), random_state=0
    )
    model = (make_pipeline(StandardScaler(), model) if prepared else model).fit(X2, Y2)
    again = load(save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.decision_function(X2), model.decision_function(X2))
    machine = again[-1] if prepared else again
    assert machine.kernel == kernel
    assert type(machine.kernel) is type(kernel)
    assert fingerprint_model(again) == fingerprint_model(model)


def test_a_kernel_of_a_user_is_refused(tmp_path):
    pytest.importorskip("torch")

    class Wider(Gaussian):
        def __call__(self, X, Z):
            return super().__call__(X / 2, Z / 2)

    model = (
        EigenProClassifier(bandwidth=1.0, compute=Compute(device="cpu"))
        .fit(X2, Y2)
        .set_params(kernel=Wider(bandwidth=1.0))
    )
    with pytest.raises(ValueError, match="kernel is a Wider, which cannot be saved without pickle"):
        save(model, tmp_path / "model")


@pytest.mark.parametrize("algorithm", ["auto", "kd_tree", "ball_tree", "brute"])
@pytest.mark.parametrize("learner", [KNeighborsClassifier, KNeighborsRegressor])
def test_nearest_neighbours_in_few_dimensions(learner, algorithm, tmp_path):
    """They keep a tree, which remembers how often it was asked."""
    model = learner(algorithm=algorithm).fit(X2, Y2)
    model.predict(X2)
    again = load(save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.kneighbors(X2 + 0.1), model.kneighbors(X2 + 0.1))
    np.testing.assert_array_equal(again.predict(X2 + 0.1), model.predict(X2 + 0.1))
    assert fingerprint_model(again) == fingerprint_model(model)


AROUND = {
    **{
        f"calibrated by {method}": CalibratedClassifierCV(LinearSVC(), method=method, cv=2)
        for method in ("sigmoid", "isotonic", "temperature")
    },
    **{
        f"{kind} votes": VotingClassifier(
            [("line", LogisticRegression()), ("trees", RandomForestClassifier(3)), ("no", "drop")],
            voting=kind,
        )
        for kind in ("hard", "soft")
    },
}


@pytest.mark.parametrize("name", AROUND)
def test_calibrations_and_votes_around_other_models(name, tmp_path):
    if "temperature" in name and parse_version(sklearn.__version__) < parse_version("1.8"):
        pytest.skip("scikit-learn 1.8 brought it")
    model = clone(AROUND[name]).fit(X2, Y2)
    again = load(save(model, tmp_path / "model"))
    method = "predict" if name == "hard votes" else "predict_proba"
    np.testing.assert_array_equal(getattr(again, method)(X2), getattr(model, method)(X2))
    if "votes" in name:  # by name, too
        assert list(again.named_estimators_) == ["line", "trees", "no"]
        np.testing.assert_array_equal(
            again.named_estimators_.line.predict(X2), model.named_estimators_.line.predict(X2)
        )


def test_what_stands_beside_the_model(tmp_path):
    model = LogisticRegression().fit(X2, Y2)
    certificate = certify(model, X2, Y2)
    features = (Feature("a", "number"), Feature("b", "category", "truth", ("False", "True")))
    schema = Schema(features, "y", "classification", "whole", None, ("a", "b", "y"), True)
    reference = {"rows": 60, "a": [0.1, 0.2, None], "größe": {"x": True}}
    saved = read_model(
        save(model, tmp_path / "model", certificate=certificate, schema=schema, reference=reference)
    )
    assert saved.certificate == certificate
    assert saved.certificate.verify(saved.model, X2, Y2)
    assert saved.schema == schema
    assert saved.reference == reference
    assert saved.versions["surelearn"] == surelearn.__version__
    assert set(saved.versions) == {
        "surelearn",
        "python",
        "numpy",
        "scikit-learn",
        "skops",
        "safetensors",
    }


def test_the_names_are_public():
    assert {"save", "load"} <= set(surelearn.__all__)
    assert (surelearn.save, surelearn.load) == (persistence.save, persistence.load)


def test_a_scikit_learn_model_is_loaded_without_torch_and_dask(tmp_path):
    """skops imports every package below scikit-learn, adapters to them too; they stay usable."""
    pytest.importorskip("torch")
    path = save(make_pipeline(StandardScaler(), LogisticRegression()).fit(X2, Y2), tmp_path / "m")
    code = (
        "import sys, surelearn; surelearn.load(sys.argv[1]);"
        " print(sorted({'skops.io', 'torch', 'dask'} & set(sys.modules)));"
        " from importlib.util import find_spec;"
        " print(find_spec('sklearn.externals.array_api_compat.torch').name)"
    )
    command = [sys.executable, "-c", code, str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    assert said.splitlines() == ["['skops.io']", "sklearn.externals.array_api_compat.torch"]
