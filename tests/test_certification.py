import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_regression
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import confusion_matrix
from tests.simulation import clear

from surelearn import certify
from surelearn.bounds import (
    betting_upper,
    clopper_pearson,
    clopper_pearson_lower,
    conformal_rank_pac,
)
from surelearn.slicing import cut


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)
    X, y = X[order, :5], y[order]
    return LogisticRegression(max_iter=10_000).fit(X[:398], y[:398]), X[398:], y[398:]


def claims_of(certificate, quantity):
    return [claim for claim in certificate.claims if claim.quantity == quantity]


def test_counts_and_shares_of_a_binary_classifier(cancer):
    model, X, y = cancer
    certificate = certify(model, X, y, positive=0, majority=1, delta=0.1)
    (hits, misses), (false_alarms, correct) = confusion_matrix(y, model.predict(X))
    assert certificate["risk"].value == clopper_pearson(misses + false_alarms, 171, 0.05)
    share = 0.05 / 5  # sensitivity, specificity, precision, gain, the constant's error
    assert certificate["sensitivity"].value == clopper_pearson_lower(hits, hits + misses, share)
    assert certificate["specificity"].value == clopper_pearson_lower(
        correct, correct + false_alarms, share
    )
    assert certificate["precision"].value == clopper_pearson_lower(hits, hits + false_alarms, share)
    assert certificate["baseline_risk"].value == clopper_pearson_lower(hits + misses, 171, share)
    assert certificate["gain"].measured == pytest.approx(
        (hits + misses - misses - false_alarms) / 171
    )
    assert sum(claim.delta for claim in certificate.claims) == pytest.approx(0.1)
    assert {claim.standing for claim in certificate.claims} == {"together"}
    assert certificate.verify(model, X, y)


def test_every_constant_is_compared_with_when_the_majority_is_unknown():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)
    X, y = X[order], y[order]
    model = LogisticRegression(max_iter=1000).fit(X[:90], y[:90])
    certificate = certify(model, X[90:], y[90:])
    assert len(claims_of(certificate, "gain")) == len(claims_of(certificate, "baseline_risk")) == 3
    assert len(claims_of(certificate, "class_error")) == 3
    assert sum(claim.delta for claim in certificate.claims) == pytest.approx(0.05)
    assert "worst of 3" in str(certificate)


def test_another_model_as_baseline(cancer):
    model, X, y = cancer
    certificate = certify(model, X, y, baseline=DummyClassifier().fit(X, y))
    assert certificate["gain"].value > 0.1
    assert "the baseline did not see these rows" in certificate["gain"].assumptions
    assert certificate.verify(model, X, y, baseline=DummyClassifier().fit(X, y))


def test_candidates_compared_on_these_rows_are_paid_for(cancer):
    model, X, y = cancer
    plain, chosen = certify(model, X, y), certify(model, X, y, candidates=12)
    assert chosen["risk"].value == clopper_pearson(plain.facts["risk.count"], 171, 0.025 / 12)
    assert chosen.verify(model, X, y)


def test_plain_functions_and_polars(cancer):
    model, X, y = cancer
    certificate = certify(lambda X: model.predict(X), X, y, task="classification", classes=[0, 1])
    assert certificate["risk"].value == certify(model, X, y)["risk"].value
    assert certificate.facts.hashes["model"] == "unhashed"
    table = pl.DataFrame(X, schema=[f"x{i}" for i in range(5)])
    slices = cut(table, "x0", bins=3)
    certificate = certify(
        lambda t: model.predict(t.to_numpy()),
        table,
        pl.Series(y),
        task="classification",
        classes=[0, 1],
        slices=slices,
    )
    assert len(claims_of(certificate, "slice_risk")) == 3


def test_groups_count_not_rows(cancer):
    model, X, y = cancer
    groups = np.arange(171) // 3
    certificate = certify(model, X, y, groups=groups)
    wrong = (model.predict(X) != y).reshape(57, 3).mean(axis=1)
    assert certificate["risk"].theorem == "betting_upper"
    assert sorted(certificate.facts["risk.means"]) == pytest.approx(sorted(wrong))
    assert certificate["risk"].value > certify(model, X, y)["risk"].value
    assert certificate["risk"].covers.population == "the mean over a new group like these"
    assert certificate.verify(model, X, y, groups=groups)
    benign = [rows for rows in np.split(y, 57) if (rows == 1).any()]
    assert len(certificate.facts["class[1].means"]) == len(benign)


def test_singleton_groups_agree_with_rows_up_to_the_theorem(cancer):
    model, X, y = cancer
    certificate = certify(model, X, y, groups=np.arange(171))
    assert certificate["risk"].measured == pytest.approx(certify(model, X, y)["risk"].measured)
    assert certificate["risk"].value == pytest.approx(
        betting_upper(certificate.facts["risk.means"], 0.025)
    )


def test_the_order_of_the_rows_matters_little_but_sorting_by_loss_is_undone(cancer):
    model, X, y = cancer
    by_loss = np.argsort(model.predict(X) != y, kind="stable")
    gain = certify(model, X, y, majority=1)["gain"].value
    assert certify(model, X[by_loss], y[by_loss], majority=1)["gain"].value == pytest.approx(
        gain, abs=0.05
    )


def test_regression_intervals_and_mean_loss():
    X, y = make_regression(400, 5, noise=20.0, random_state=0)
    model = Ridge().fit(X[:200], y[:200])
    X, y = X[200:], y[200:]
    residuals = np.sort(np.abs(model.predict(X) - y))
    certificate = certify(model, X, y)
    assert (
        certificate["error_quantile"].value
        == residuals[int(conformal_rank_pac(200, 0.1, 0.05)) - 1]
    )
    assert "state its range" in certificate.lacking[0].reason
    bounded = certify(
        model, X, y, loss_bound=400.0, baseline=Ridge(alpha=1e6).fit(X, y), slices=cut(X, 0, bins=2)
    )
    assert (
        bounded["error_quantile"].value == residuals[int(conformal_rank_pac(200, 0.1, 0.025)) - 1]
    )
    assert residuals.mean() < bounded["mean_loss"].value < 400
    assert bounded["gain"].value > 0
    assert len(claims_of(bounded, "slice_loss")) == 2
    assert bounded.verify()
    with pytest.raises(ValueError, match="loss_bound=1 is not a bound"):
        certify(model, X, y, loss_bound=1.0)
    squared = certify(model, X, y, loss="squared", loss_bound=40_000.0)
    assert squared["mean_loss"].measured == pytest.approx(np.mean((model.predict(X) - y) ** 2))


def test_grouped_regression_takes_one_row_a_group():
    X, y = make_regression(400, 5, noise=20.0, random_state=0)
    model = Ridge().fit(X[:200], y[:200])
    certificate = certify(model, X[200:], y[200:], groups=np.arange(200) // 2)
    assert len(certificate.facts["residuals"]) == 100
    assert "random rows of new groups" in certificate["error_quantile"].label


def test_a_class_without_rows_is_not_claimed(cancer):
    model, X, y = cancer
    only = y == 1
    certificate = certify(model, X[only], y[only])
    assert any("truth is 0" in absent.reason for absent in certificate.lacking)
    assert len(claims_of(certificate, "class_error")) == 1
    assert certificate.verify(model, X[only], y[only])


def refuse(**changes):
    return lambda model, X, y: certify(**{"model": model, "X": X, "y": y, **changes})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (refuse(delta=0.0), "delta must lie strictly between 0 and 1, not 0.0"),
        (refuse(delta="small"), "delta must lie strictly between 0 and 1"),
        (refuse(candidates=0), "candidates must be a whole number"),
        (refuse(candidates=1.5), "candidates must be a whole number"),
        (lambda m, X, y: certify(m, X[:0], y[:0]), "there are no rows"),
        (lambda m, X, y: certify(m, X[:5], y[:6]), "X has 5 rows and y has 6"),
        (lambda m, X, y: certify(m, X, y.reshape(-1, 1)), "y must be one-dimensional"),
        (lambda m, X, y: certify(m, X, np.where(y == 1, np.nan, 0.0)), "y must not be missing"),
        (
            lambda m, X, y: certify(m, X, y + 1),
            "y holds 2, a label the model never saw: it knows 0, 1",
        ),
        (refuse(positive="yes"), "positive='yes' is not a label"),
        (refuse(classes=[0, 1, "1"]), "read the same"),
        (refuse(majority=7), "majority=7 is not a label"),
        (refuse(groups=[1, 2, 3]), "groups must name one group a row"),
        (refuse(groups=np.full(171, np.nan)), "groups must not be missing"),
        (refuse(slices={"a": np.ones(3, dtype=bool)}), "slice 'a' must be a boolean mask"),
        (refuse(slices={"a": np.zeros(171)}), "slice 'a' must be a boolean mask"),
        (refuse(task="ranking"), "task must be"),
        (refuse(task="regression", alpha=0.0), "alpha must lie"),
        (refuse(task="regression", loss="cubic"), "loss must be"),
        (refuse(task="regression", loss_bound=-1), "loss_bound must be positive and finite"),
        (lambda m, X, y: certify(m.predict, X, y), "does not say whether it classifies"),
        (lambda m, X, y: certify(m.predict, X, y, task="classification"), "pass classes="),
        (
            refuse(model=lambda X: np.full(len(X), np.nan), task="classification", classes=[0, 1]),
            "the model predicts NaN for 171 of 171 rows",
        ),
        (
            lambda m, X, y: certify(m.predict_proba, X, y, task="classification", classes=[0, 1]),
            "one value per row",
        ),
        (
            lambda m, X, y: certify(m, X, np.where(y == 1, "a", "b"), task="regression"),
            "y must be numbers",
        ),
        (
            lambda m, X, y: certify(m, X, np.where(y == 1, np.inf, 0.0), task="regression"),
            "y must be finite",
        ),
    ],
)
def test_refusals_are_one_sentence(cancer, call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call(*cancer)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda X, y: certify(3, X, y, task="regression"),
        lambda X, y: certify(Ridge().fit(X, y), X, y, slices=[1]),
    ],
)
def test_wrong_kinds_of_arguments(cancer, call):
    with pytest.raises(TypeError, match="must"):
        call(*cancer[1:])


def test_cut_fixes_slices_on_the_fit_rows():
    fit = np.column_stack([np.arange(100.0), np.zeros(100)])
    new = np.array([[-5.0, 0.0], [24.0, 0.0], [60.0, 0.0], [1000.0, 0.0]])
    masks = cut(fit, 0, bins=4)(new)
    assert [mask.tolist().index(True) for name, mask in masks.items() if mask.any()] == [0, 2, 3]
    assert sum(mask.sum() for mask in masks.values()) == 4
    assert len(cut(fit, 1, bins=4)(new)) <= 2
    words = np.array([["a"], ["b"], ["a"]])
    assert {
        name: int(mask.sum()) for name, mask in cut(words, 0)(np.array([["b"], ["c"]])).items()
    } == {
        "0 = a": 0,
        "0 = b": 1,
    }


def test_unseen_random_labels_do_not_look_certified_once_groups_are_known():
    """100 patients × 10 visits with one random label each, remembered by patient: by rows
    certified, by groups not.
    """
    rng = np.random.default_rng(1)
    patient = np.repeat(np.arange(100), 10)
    y = rng.integers(0, 2, 100)[patient]
    certify_rows = rng.random(1000) < 0.3  # a split by rows: most patients are on both sides
    remembered = {
        p: y[(patient == p) & ~certify_rows][0]
        for p in range(100)
        if ((patient == p) & ~certify_rows).any()
    }

    def model(X):
        return np.array([remembered.get(p, 0) for p in X[:, 0]])

    X = patient.reshape(-1, 1)
    options = {"task": "classification", "classes": [0, 1]}
    # wrong: patients repeat
    assert certify(model, X[certify_rows], y[certify_rows], **options)["risk"].value < 0.1
    new = rng.integers(0, 2, 30)  # thirty patients the model never met
    X_new, y_new = np.repeat(np.arange(200, 230), 10).reshape(-1, 1), np.repeat(new, 10)
    honest = certify(model, X_new, y_new, groups=X_new[:, 0], **options)["risk"]
    assert honest.value > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("grouped", [False, True])
def test_all_claims_of_a_certificate_hold_together(grouped):
    """Known population, three classes, δ = 0.2: some claim is wrong in at most δ of the
    certificates.

    Of up to 1,000 certificates as many as it takes: where some claim is wrong in 24.2% of them,
    1,000 pass with probability 0.001; a run that ends earlier adds at most 0.0001 to it, and
    fails right certificates no more often (see `tests.simulation`).
    """
    rng = np.random.default_rng(7)
    share, confusion = (
        np.array([0.5, 0.3, 0.2]),
        np.array([[0.9, 0.05, 0.05], [0.2, 0.7, 0.1], [0.3, 0.1, 0.6]]),
    )
    joint = share[:, None] * confusion
    truth = {
        "errors": 1 - np.trace(joint),
        **{f"errors where the truth is {c}": 1 - confusion[c, c] for c in range(3)},
        "sensitivity (recall) for 2": confusion[2, 2],
        "specificity for 2": 1 - joint[:2, 2].sum() / share[:2].sum(),
        "precision for 2": joint[2, 2] / joint[:, 2].sum(),
        **{f"fewer errors than always answering {c}": np.trace(joint) - share[c] for c in range(3)},
        **{f"errors of always answering {c}": 1 - share[c] for c in range(3)},
    }
    # a group's rows share one label and one prediction
    trials, wrong, copies = 0, 0, 3 if grouped else 1
    while trials < 1000 and not clear(wrong, trials, 0.2, 0.242):
        trials += 1
        cell = np.repeat(rng.choice(9, 60, p=joint.ravel()), copies)
        y, predicted = cell // 3, cell % 3
        certificate = certify(
            lambda X: X[:, 0], predicted.reshape(-1, 1), y, task="classification", classes=[0, 1, 2], positive=2, delta=0.2,
            groups=np.arange(180) // 3 if grouped else None, largest_group=3 if grouped else None,
        )  # fmt: skip
        slack = {"<=": lambda c: c.value - truth[c.label.split(", mean over")[0]]}
        slack[">="] = lambda c: truth[c.label.split(", mean over")[0]] - c.value
        wrong += any(slack[claim.relation](claim) < 0 for claim in certificate.claims)
    assert wrong / trials <= 0.2
    assert wrong > 0  # the claims are not so loose that the test could not fail


def test_stated_classes_say_that_a_function_classifies(cancer):
    model, X, y = cancer
    stated = certify(model.predict, X, y, classes=[0, 1], task="classification")
    assert certify(model.predict, X, y, classes=[0, 1]).claims == stated.claims
