"""One harness for every learner and every model that the registry describes, discovered: nobody
lists them here.

A learner's file says how it is made (`examples`), which ways its code can take (`checked`) and
which of scikit-learn's checks it cannot pass, with the reason (`expected_failures`). Whatever else
it lacks fails here, by its name. The numbers of its certificate are edited one by one in
test_verified_to_the_bottom.py.
"""

import functools
import importlib
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_clusterer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from tests.cases import scikit_learn_accepts

import surelearn
from surelearn.attacks import decision_attack, projected_gradient
from surelearn.attribution import explain
from surelearn.base import learners
from surelearn.certificate import Certificate
from surelearn.fingerprint import fingerprint_model
from surelearn.keys import key_of
from surelearn.lacking import Lacking
from surelearn.robust import SmoothedClassifier
from surelearn.subject import State, subject_of
from surelearn.subject.registry import registered

LEARNERS = learners()
OURS = {f"{cls.__name__}-{i}": one for cls in LEARNERS for i, one in enumerate(cls.examples())}
every_learner = pytest.mark.parametrize("name", OURS)
# sections of the page with tests of their own
ATTACKS = ("robustness", "poisoning", "membership", "attribution")


# --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("learner", [one for cls in LEARNERS for one in cls.checked()], ids=repr)
def test_scikit_learn_accepts_it(learner):
    scikit_learn_accepts(learner, learner.expected_failures())


@pytest.mark.parametrize("cls", LEARNERS, ids=lambda cls: cls.__name__)
def test_it_is_registered_made_and_checked(cls):
    assert key_of(cls) is not None
    assert list(cls.examples())
    assert list(cls.checked()) or "None: " in cls.checked.__doc__  # and why
    for one in cls.checked():
        assert all(reason.strip() for reason in one.expected_failures().values())


# --------------------------------------------------------------------------------------------------
def rows(model, n=160):
    """Rows of norm at most 1, and two classes, or targets within ±1, with some noise; two
    targets where one will not do.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X /= np.linalg.norm(X, axis=1).max()
    y = np.clip(X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=n), -1, 1)
    if is_classifier(model):
        # which takes classes 0, 1, … alone
        words = not type(model).__module__.startswith("xgboost")
        return X, np.where(y > 0, "yes", "no") if words else (y > 0).astype(int)
    return X, (
        y
        if get_tags(model).target_tags.single_output or is_ours(model)
        else np.column_stack([y, -y])
    )


def is_ours(model):
    return type(model).__module__.startswith("surelearn.")


def fitted(model):
    """A fit, whatever it warns of: rows are few, and some examples stop early on purpose."""
    X, y = rows(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(X[:80], None if is_clusterer(model) else y[:80])


@functools.cache
def registry():
    """The classes of predictors that the registry describes and that are installed."""
    found = {}
    for place in registered():
        module, name = place.split(":")
        try:
            cls = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError:
            continue
        if hasattr(cls, "predict"):
            found[name] = cls
    return found


# How their models are made where the class alone does not do it; and as few of everything as will
# do.
ARGUMENTS = {
    "Pipeline": lambda: ([("scale", StandardScaler()), ("learn", LogisticRegression())],),
    "GridSearchCV": lambda: (LogisticRegression(), {"C": [0.1, 1.0]}),
    "RandomizedSearchCV": lambda: (LogisticRegression(), {"C": [0.1, 1.0]}),
    "FixedThresholdClassifier": lambda: (LogisticRegression(),),
    "TunedThresholdClassifierCV": lambda: (LogisticRegression(),),
    "VotingClassifier": lambda: ([("linear", LogisticRegression()), ("guess", DummyClassifier())],),
    "VotingRegressor": lambda: ([("linear", LinearRegression()), ("guess", DummyRegressor())],),
}
FEW = {"n_estimators": 5, "cv": 2, "n_iter": 2, "random_state": 0}


def example(name):
    if name in OURS:
        return OURS[name]
    with warnings.catch_warnings():
        # a class that will be removed is described as long as it is there
        warnings.simplefilter("ignore")
        made = registry()[name](*ARGUMENTS.get(name, tuple)())
    return made.set_params(
        **{key: value for key, value in FEW.items() if key in made.get_params(deep=False)}
    )


@functools.cache
def model_of(name):
    return fitted(example(name))


every_model = pytest.mark.parametrize("name", [*OURS, *registry()])


def test_what_the_registry_describes_is_found():
    assert {
        "LogisticRegression",
        "SVC",
        "RandomForestClassifier",
        "Pipeline",
        "MLPRegressor",
    } <= set(registry())
    assert set(ARGUMENTS) <= set(registry())


def test_wrappers_and_networks_are_among_the_learners():
    pytest.importorskip("torch")
    assert {"AdversarialClassifier", "DPModule", "PartitionClassifier"} < {
        cls.__name__ for cls in LEARNERS
    }


@every_learner
def test_its_subject_hands_over_record_state_and_an_unfitted_copy(name):
    subject = subject_of(model_of(name))
    assert isinstance(subject.state, State)
    assert subject.record == subject.model.record_
    assert not isinstance(subject.refit, Lacking)


@every_learner
def test_before_fit_there_is_no_certificate(name):
    assert not hasattr(clone(OURS[name]), "certificate_")


@every_learner
def test_it_sets_a_certificate_that_verifies(name):
    model = model_of(name)
    certificate = model.certificate_
    assert certificate.facts.hashes["model"] == fingerprint_model(model)
    assert certificate.claims or certificate.lacking  # what is guaranteed, or why nothing is
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    X, y = rows(model)
    assert again.verify(model)
    assert again.verify(model, X[:80], None if is_clusterer(model) else y[:80])
    assert str(certificate).startswith("Certificate of")
    assert not isinstance(subject_of(model).refit, Lacking)


# What scikit-learn's models hold that no file can give back: refused when it is saved, in one
# sentence.
# the hash has a generator's seed sequence, which skops does not keep
GENERATOR = "the model is not the one that was saved"
SCORER = "_PassthroughScorer, which is not on the list of types that are loaded"
NOT_SAVED = {
    "GradientBoostingClassifier": GENERATOR,
    "GradientBoostingRegressor": GENERATOR,
    "GridSearchCV": SCORER,
    "MLPClassifier": "AdamOptimizer, which is not on the list of types that are loaded",
    "MLPRegressor": "AdamOptimizer, which is not on the list of types that are loaded",
    "RandomizedSearchCV": SCORER,
    "TunedThresholdClassifierCV": "the model holds a function or a part without readable state",
}


@every_model
@pytest.mark.filterwarnings("ignore:Class PassiveAggressive.* is deprecated:FutureWarning")
def test_it_is_saved_without_pickle(name, tmp_path):
    model = model_of(name)
    if name in NOT_SAVED:
        with pytest.raises(ValueError, match=re.escape(NOT_SAVED[name])):
            surelearn.save(model, tmp_path / "model")
        return
    again = surelearn.load(surelearn.save(model, tmp_path / "model"))
    X, _ = rows(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert fingerprint_model(again) == fingerprint_model(model)
    if name in OURS:
        assert {path.suffix for path in (tmp_path / "model").glob("model-*")} == {".safetensors"}
        assert again.certificate_ == model.certificate_
        assert model.certificate_.verify(again)


@every_learner
def test_it_is_saved_inside_a_pipeline(name, tmp_path):
    """Behind a step that leaves rows within the bounds that examples state."""
    learner = OURS[name]
    model = fitted(make_pipeline(StandardScaler(with_mean=False, with_std=False), clone(learner)))
    again = surelearn.load(surelearn.save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(rows(learner)[0]), model.predict(rows(learner)[0]))
    assert fingerprint_model(again) == fingerprint_model(model)


# What holds a generator or a function has no hash, and `verify` says so.
UNHASHED = dict.fromkeys(
    ("SmoothedClassifier", "TunedThresholdClassifierCV"),
    ("the model is a plain function: its identity cannot be verified",),
)


def answers(name):
    """Whether its answers can be compared with a target."""
    return not is_clusterer(example(name)) and np.ndim(rows(example(name))[1]) == 1


@pytest.mark.parametrize("name", [name for name in [*OURS, *registry()] if answers(name)])
def test_untouched_rows_certify_it(name):
    model = model_of(name)
    X, y = rows(model)
    certificate = surelearn.certify(
        model, X[80:], y[80:], **({} if is_classifier(model) else {"loss_bound": 16.0})
    )
    assert certificate.claims
    found = Certificate.from_json(certificate.to_json()).verify(model, X[80:], y[80:])
    assert found or (name in UNHASHED and found.differences == UNHASHED[name]), found.differences
    assert not certificate.verify(model, X[80:], y[80:][::-1])


@pytest.mark.parametrize(
    "name", [f"{cls.__name__}-0" for cls in LEARNERS if answers(f"{cls.__name__}-0")]
)
def test_it_is_a_candidate_of_the_audit(name):
    """The first example of each class: which parameters it has makes no difference to the page."""
    X, y = rows(OURS[name], n=400)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    page = surelearn.audit(
        table,
        target="y",
        models={"it": clone(OURS[name])},
        skip=ATTACKS,
        ledger=False,
        refits=0,
        curve_repeats=0,
    )
    assert page.certificate.claims
    assert page.certificate.verify(page.model)
    # better than a coin, at the least
    assert not is_classifier(OURS[name]) or page.certificate["risk"].value < 0.5


# --------------------------------------------------------------------------------------------------
# Whatever else has no gradient, and is not made of trees, fails below.
NOT_WRITTEN = "how its scores come from the numbers is not written down"
NO_GRADIENT = {
    "CalibratedClassifierCV": NOT_WRITTEN,
    "KMeans": NOT_WRITTEN,
    "RandomFeaturesRegressor": NOT_WRITTEN,
    "SupportVectorMachine": "the kernel 'sum' has no gradient",
    "TransformedTargetRegressor": "prepared targets come after the scores",
    "VotingClassifier": NOT_WRITTEN,
    "VotingRegressor": NOT_WRITTEN,
}


@every_model
def test_its_gradient_is_that_of_its_scores(name):
    """Or it says why it has none."""
    subject = subject_of(model_of(name))
    if isinstance(subject.scores, Lacking):
        assert NO_GRADIENT.get(name.split("-")[0], "it is made of trees") in subject.scores.reason
        return
    f, X, h = subject.scores, rows(subject.model)[0][:4], 1e-5
    said = np.asarray(subject.predict(X))
    if is_classifier(subject.model):  # they are the scores of this model
        assert f.apart is None or not f.apart(X)
        np.testing.assert_array_equal(
            np.asarray(f.classes)[f.scores(X).argmax(axis=1)] if f.exact else said, said
        )
    elif not is_clusterer(subject.model):
        np.testing.assert_allclose(f.scores(X), said.reshape(len(X), -1), rtol=1e-6, atol=1e-6)
    weights = np.array([0.3, -1.0])[: f.scores(X).shape[1]]
    near = [(f.scores(X + s) - f.scores(X - s)) @ weights / (2 * h) for s in h * np.eye(3)]
    precision = 1e-4 if f.dtype == np.float64 else 0.05
    np.testing.assert_allclose(
        f.gradient(X, weights), np.array(near).T, rtol=precision, atol=precision
    )


@pytest.mark.parametrize(
    "name", [name for name in [*OURS, *registry()] if is_classifier(example(name))]
)
def test_it_is_attacked(name):
    """By its gradient where it has one, else by its decisions: some rows are turned, and turned
    rows are.
    """
    model = model_of(name)
    X, _ = rows(model)
    said = model.predict(X[:20])
    if isinstance(subject_of(model).scores, Lacking):
        found = decision_attack(
            model, X[:20], said, others=X, budget=100, radius=2.0, random_state=0
        )
    else:
        found = projected_gradient(model, X[:20], said, radius=2.0, norm="l2", random_state=0)
    turned = model.predict(found.rows) != said
    np.testing.assert_array_equal(turned[found.success], True)
    assert (np.linalg.norm(found.rows - X[:20], axis=1) <= 2.0 + 1e-9).all()
    # rows within the radius of each other are answered both ways
    if len(set(model.predict(X))) > 1:
        assert found.success.any()


@every_model
def test_it_is_explained(name):
    """The values of the columns add up to what it says of a row, less what it says of the
    others.
    """
    model = model_of(name)
    X, _ = rows(model)
    made = explain(model, X[:2], X[80:90])
    assert made.values.shape == (2, 3)
    np.testing.assert_allclose(
        made.values.sum(axis=1), np.subtract(made.full, made.empty), atol=1e-6
    )


def test_a_smoothed_classifier_stands_around_any_model():
    """It is fitted by nobody; of the harness it has what asks answers only: rows certify,
    attack and explain it.
    """
    inside = model_of("LogisticRegression-0")
    X, y = rows(inside)
    model = SmoothedClassifier(inside, sigma=0.2, samples=200, random_state=0)
    certificate = surelearn.certify(
        model, X[80:], y[80:], task="classification", classes=inside.classes_
    )
    assert certificate["risk"].value < 0.5
    assert certificate.verify(model, X[80:], y[80:]).differences == UNHASHED["SmoothedClassifier"]
    said = model.predict(X[:5])
    assert decision_attack(
        model, X[:5], said, others=X, budget=20, radius=2.0, random_state=0
    ).success.any()
    share = explain(lambda rows: (model.predict(rows) == "yes").astype(float), X[:1], X[80:84])
    np.testing.assert_allclose(share.values.sum(), share.full - share.empty)
