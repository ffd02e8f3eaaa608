"""AUC, F1, Brier score, log loss, calibration and differences between slices, through `certify`."""

from __future__ import annotations

import copy
import functools
import itertools
import math
import operator

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, f1_score, roc_auc_score
from sklearn.svm import LinearSVC

import surelearn
from surelearn import bounds
from surelearn.documents import sealed
from surelearn.measurement import METRICS
from surelearn.slicing import Cut, Cuts, cut


@pytest.fixture(scope="module")
def rows():
    """Fit and certify rows of a noisy problem, with a column of groups' names."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(700, 3)), columns=["a", "b", "c"])
    X["sex"] = rng.integers(0, 2, 700).astype(float)
    y = np.where(X.a + 0.5 * X.b + rng.normal(0, 1, 700) > 0.3, "yes", "no")
    return X[:300], y[:300], X[300:], y[300:]


@pytest.fixture(scope="module")
def model(rows):
    return LogisticRegression().fit(rows[0], rows[1])


@pytest.fixture(scope="module")
def certificate(model, rows):
    X_fit, _, X, y = rows
    return surelearn.certify(
        model, X, y, positive="yes", metrics=METRICS, slices=cut(X_fit, "sex", bins=2)
    )


def test_what_is_measured_is_what_scikit_learn_measures(certificate, model, rows):
    _, _, X, y = rows
    probability, answers = model.predict_proba(X)[:, 1], model.predict(X)
    is_positive = y == "yes"
    expected = {
        "auc": roc_auc_score(is_positive, probability),
        "f1": f1_score(y, answers, pos_label="yes"),
        "balanced_accuracy": balanced_accuracy_score(y, answers),
        "brier_score": brier_score_loss(is_positive, probability),
    }
    for quantity, value in expected.items():
        assert certificate[quantity].measured == pytest.approx(value, abs=1e-12), quantity
    of_truth = np.where(is_positive, probability, 1 - probability)
    clipped = -np.log(np.maximum(of_truth, 1e-3)).mean()
    assert certificate["log_loss"].measured == pytest.approx(clipped, abs=1e-12)
    inside = (probability > 0.3) & (probability <= 0.5)
    bin_claim = next(c for c in certificate.claims if c.about("bin") == "30% to 50%")
    assert bin_claim.measured == pytest.approx(is_positive[inside].mean(), abs=1e-12)
    wrong = answers != y
    apart = np.ptp([wrong[X.sex == one].mean() for one in (0, 1)])
    assert certificate["error_difference"].measured == pytest.approx(apart, abs=1e-12)
    called = [np.mean((answers == "yes")[(X.sex == one) & is_positive]) for one in (0, 1)]
    assert certificate["sensitivity_difference"].measured == pytest.approx(np.ptp(called))


def test_shares_are_fixed_and_sum_to_delta(certificate):
    shares = {}
    for claim in certificate.together:
        shares[claim.quantity] = shares.get(claim.quantity, 0.0) + claim.delta
    assert sum(shares.values()) == pytest.approx(0.05)
    assert shares["risk"] == pytest.approx(0.025)
    line = shares["sensitivity"]
    metrics = ("auc", "f1", "balanced_accuracy", "brier_score", "log_loss")
    assert sum(shares[name] for name in metrics) == pytest.approx(line)
    assert shares["calibration"] == pytest.approx(line)
    differences = ("error_difference", "selection_difference", "sensitivity_difference")
    assert sum(shares[name] for name in differences) == pytest.approx(line)


def test_the_certificate_verifies_and_a_changed_fact_is_found(certificate, model, rows):
    _, _, X, y = rows
    assert certificate.verify(model, X, y)
    again = surelearn.Certificate.from_json(certificate.to_json())
    assert again == certificate
    published = surelearn.Certificate.from_json(certificate.published().to_json())
    assert published.verify()
    assert published.verify(model, X, y)
    plain = certificate.to_dict()
    plain["facts"]["values"]["auc.value"] = 0.999
    assert not surelearn.Certificate.from_dict(plain).verify()


def numbers(plain, path=()):
    """The paths of numbers in plain data, two of each list."""
    inside = (
        plain.items() if isinstance(plain, dict)
        else enumerate(plain[:2]) if isinstance(plain, list) else ()
    )  # fmt: skip
    for key, value in inside:
        yield from numbers(value, (*path, key))
    if isinstance(plain, int | float) and not isinstance(plain, bool):
        yield path


def test_any_edited_number_is_found_by_those_who_have_model_and_rows(certificate, model, rows):
    """By someone who computes the hash again. Which δ was asked for beside its shares, and what
    other tasks are asked, is not told by rows.
    """
    plain, found = certificate.to_dict(), 0
    untold = [("version",), ("delta",)]
    untold += [("facts", "options", name) for name in ("alpha", "delta", "candidates")]
    for path in numbers({key: value for key, value in plain.items() if key != "hash"}):
        if path in untold:
            continue
        tampered = copy.deepcopy(plain)
        inner = functools.reduce(operator.getitem, path[:-1], tampered)
        value = inner[path[-1]]
        inner[path[-1]] = value + 1 if isinstance(value, int) else -value - 1
        del tampered["hash"]
        try:
            read = surelearn.Certificate.from_dict(sealed(tampered))
        except ValueError:
            continue
        assert not read.altered
        assert not read.verify(model, *rows[2:]), path
        found += 1
    assert found > 60


def test_what_cannot_be_claimed_says_why(rows):
    X_fit, y_fit, X, y = rows
    silent = LinearSVC().fit(X_fit, y_fit)
    made = surelearn.certify(silent, X, y, metrics=METRICS)
    reasons = {item.what: item.reason for item in made.lacking}
    assert reasons["auc"] == reasons["calibration"] == "the model gives no probabilities"
    assert "positive" in reasons["f1"]
    assert "slices" in reasons["error_difference"]
    assert made["balanced_accuracy"].value > 0.5
    groups = np.arange(len(y)) // 4
    made = surelearn.certify(
        LogisticRegression().fit(X_fit, y_fit), X, y, groups=groups, metrics=METRICS
    )
    assert {"auc", "balanced_accuracy"} <= {item.what for item in made.lacking}
    assert made["brier_score"].theorem == "betting_upper"
    assert made["calibration"].theorem == "betting_interval"
    weights = np.ones(len(y))
    made = surelearn.certify(
        LogisticRegression().fit(X_fit, y_fit), X, y, weights=weights, weight_bound=2.0,
        metrics=("brier", "auc"),
    )  # fmt: skip
    assert {item.what for item in made.lacking} == {"brier_score", "auc"}


class Softmax:
    """Of as many columns as there are classes."""

    def __init__(self, classes: int):
        self.classes_ = np.arange(classes)

    def predict_proba(self, X):
        raised = np.exp(np.asarray(X)[:, : self.classes_.size])
        return raised / raised.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def combinations():
    """Options of a certificate that change which claims there are."""
    for classes, positive, cost, grouped, sliced, rival in itertools.product(
        (2, 3, 30), (None, 1), (None, 5.0), (False, True), (False, True), (False, True)
    ):
        if cost is None or positive is not None:
            yield classes, positive, cost, grouped, sliced, rival


@pytest.mark.parametrize("headline", [0.5, 1 / 3])
def test_shares_sum_to_delta_and_are_the_same_whatever_the_rows_are(headline):
    """Also of rows of one class, of one slice, with one probability, with a label nobody knew."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 31))
    X[:, 30] = rng.integers(0, 3, 60)
    groups = np.arange(60) // 2
    for classes, positive, cost, grouped, sliced, rival in combinations():
        options = {
            "metrics": METRICS, "positive": positive, "cost": cost, "headline": headline,
            "groups": groups if grouped else None, "largest_group": 2 if grouped else None,
            "slices": cut(X, 30, 0, bins=2) if sliced else None, "unseen": [classes],
            "baseline": Softmax(classes) if rival else None, "novel": None if grouped else X[:, 1] > 0,
            "majority": None if rival else 0,
        }  # fmt: skip
        model, y = Softmax(classes), np.append(rng.integers(0, classes, 59), classes)
        usual = surelearn.certify(model, X, y, **options)
        strange = surelearn.certify(
            model, np.repeat(X[:1], 60, axis=0), np.zeros(60, dtype=int), **options
        )
        spent = [math.fsum(claim.delta for claim in one.together) for one in (usual, strange)]
        lacking = {item.what for item in usual.lacking} & {
            "calibration",
            "class_error",
            "precision",
        }
        assert spent[1] <= spent[0] <= 0.05 * (1 + 1e-12)
        assert lacking or spent[0] == pytest.approx(0.05), (classes, positive, grouped, sliced)
        shares = {claim.label: claim.delta for claim in usual.together}
        for claim in strange.together:
            assert shares.get(claim.label, claim.delta) == pytest.approx(claim.delta, rel=1e-12)
        assert {claim.quantity for claim in strange.together} <= {
            claim.quantity for claim in usual.together
        }


def test_of_several_classes_auc_is_that_of_the_class_that_matters_against_all_others():
    """One label that was misspelled must not take it from the page."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(300, 3))
    model, y = Softmax(3), np.where(rng.random(300) < 0.5, X.argmax(axis=1), 0)
    made = surelearn.certify(model, X, y, metrics=("auc",), positive=2)
    assert made["auc"].label == "AUC for 2"
    expected = roc_auc_score(y == 2, model.predict_proba(X)[:, 2])
    assert made["auc"].measured == pytest.approx(expected, abs=1e-12)
    assert made.verify(model, X, y)
    without = surelearn.certify(model, X, y, metrics=("auc",))
    assert [item.reason for item in without.lacking if item.what == "auc"] == [
        "of several classes it is about one that matters: state it as positive"
    ]


def test_metrics_of_losses_are_refused_in_one_sentence():
    losses, slices = np.zeros(20), Cuts((Cut(0, {"0.5": 0.5}, ("0 ≤ 0.5", "0 > 0.5")),))
    with pytest.raises(ValueError, match="metrics go with classification"):
        surelearn.certify(losses=losses, slices=slices, metrics=("differences",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ("roc",)}, "metrics must be among"),
        ({"metrics": ("calibration",), "bins": (0.5, 0.2)}, "bins must be numbers between"),
        ({"metrics": ("calibration",), "bins": (0.0, 0.2)}, "bins must be numbers between"),
    ],
)
def test_wrong_metrics_are_refused(model, rows, options, message):
    with pytest.raises(ValueError, match=message):
        surelearn.certify(model, rows[2], rows[3], **options)


def test_a_class_that_the_model_never_saw_has_probability_zero(rows):
    X_fit, y_fit, X, y = rows
    y = y.astype(object)
    y[:5] = "perhaps"
    made = surelearn.certify(
        LogisticRegression().fit(X_fit, y_fit), X, y, classes=["no", "perhaps", "yes"],
        metrics=("brier", "log_loss"),
    )  # fmt: skip
    assert max(made.facts["log_loss.losses"]) == pytest.approx(-np.log(1e-3))
    assert made["brier_score"].inputs["loss_bound"] == 2


def test_without_metrics_nothing_changes(model, rows):
    made = surelearn.certify(model, rows[2], rows[3])
    assert "metrics" not in made.facts.options
    assert made["risk"].value == bounds.clopper_pearson(
        made.facts["risk.count"], made.facts["risk.n"], 0.025
    )


def answers(shares, labels=("no", "yes")):
    """A model whose probabilities are those of the row's number; it answers odd ones with "yes"."""

    class Table(ClassifierMixin, BaseEstimator):
        classes_ = np.asarray(labels)

        def predict_proba(self, X):
            return np.asarray(shares, dtype=float)[np.asarray(X)[:, 0].astype(int)]

        def predict(self, X):
            return self.classes_[np.asarray(X)[:, 0].astype(int) % 2]

    return Table()


HALVES = np.tile([[0.0], [1.0]], (30, 1))


@pytest.mark.parametrize(
    ("shares", "reason"),
    [
        ([[0.8, 0.2], [math.nan, 0.5]], "NaN or infinite"),
        ([[0.8, 0.2], [math.inf, 0.5]], "NaN or infinite"),
        ([[1.6, 0.4], [0.2, 0.8]], "do not sum to 1"),
        ([[1.2, -0.2], [0.2, 0.8]], "are negative or"),
        ([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1]], "one number per row and class"),
    ],
)
def test_what_are_no_probabilities_claims_nothing_and_changes_no_share(shares, reason):
    y = np.tile(["no", "yes"], 30)
    model = answers(shares)
    made = surelearn.certify(model, HALVES, y, metrics=METRICS, positive="yes")
    lacking = {item.what: item.reason for item in made.lacking}
    for what in ("auc", "brier_score", "log_loss", "calibration"):
        assert reason in lacking[what], what
        assert what not in {claim.quantity for claim in made.claims}
    usual = surelearn.certify(
        answers([[0.8, 0.2], [0.2, 0.8]]), HALVES, y, metrics=METRICS, positive="yes"
    )
    shares_of = [{c.label: c.delta for c in one.together} for one in (made, usual)]
    assert shares_of[0].items() <= shares_of[1].items()
    assert made.verify(model, HALVES, y)
    assert surelearn.Certificate.from_json(made.to_json()) == made


def test_rows_with_a_label_that_nobody_knew_of_do_not_change_how_delta_is_divided():
    """Two classes stay two: what is claimed, and at which share, is known before such a row is
    met. It counts as an error, with probability 0.
    """
    model = answers([[0.8, 0.2], [0.2, 0.8]])
    y = np.tile(np.array(["no", "yes"], dtype=object), 30)
    options = {"metrics": METRICS, "positive": "yes", "bins": (0.5,), "unseen": ["perhaps", "no"]}
    usual = surelearn.certify(model, HALVES, y, **options)
    y[0] = "perhaps"
    made = surelearn.certify(model, HALVES, y, **options)
    assert [(c.label, c.delta) for c in made.claims] == [(c.label, c.delta) for c in usual.claims]
    assert made["risk"].inputs["errors"] == 1
    assert (made["auc"].inputs["positives"], made["auc"].inputs["negatives"]) == (30, 30)
    assert max(made.facts["brier.losses"]) == 1
    assert max(made.facts["log_loss.losses"]) == pytest.approx(-math.log(1e-3))
    assert made.facts["class[perhaps].n"] == 1
    assert made.facts.options["unseen"] == ("perhaps",)
    assert made.verify(model, HALVES, y)
    again = surelearn.Certificate.from_json(made.to_json())
    assert again == made
    assert again.verify(model, HALVES, y)
    with pytest.raises(ValueError, match="a label the model never saw"):
        surelearn.certify(model, HALVES, y, metrics=METRICS)
    assert (
        "unseen" not in surelearn.certify(model, HALVES, np.tile(["no", "yes"], 30)).facts.options
    )


def test_what_was_not_measured_is_not_shown_as_measured():
    y = np.tile(["no", "yes"], 30)
    made = surelearn.certify(
        answers([[0.8, 0.2], [0.2, 0.8]]), HALVES, np.full(60, "no"), metrics=METRICS,
        positive="yes", slices=Cuts((Cut(0, {"0.5": 0.5}, ("0 ≤ 0.5", "0 > 0.5")),)),
    )  # fmt: skip
    for quantity in ("auc", "balanced_accuracy", "sensitivity_difference"):
        assert made[quantity].measured is None, quantity
    assert made["error_difference"].measured == 1
    assert made["sensitivity_difference"].value == (0, 1)
    assert made["sensitivity_difference"].vacuous
    assert not made["error_difference"].vacuous
    assert surelearn.certify(
        answers([[0.8, 0.2]]), HALVES[:1], y[:1], metrics=("calibration",)
    )["calibration"].value[1] < 1  # fmt: skip


def test_bins_are_named_by_all_the_digits_of_their_edges():
    said = [0.1, 0.5000005, 0.5000015, 0.9]
    X = np.repeat(np.arange(4.0), [10, 20, 30, 40])[:, None]
    model = answers([[1 - p, p] for p in said])
    bins = (0.5, 0.500001, 0.500002)
    made = surelearn.certify(model, X, model.predict(X), metrics=("calibration",), bins=bins)
    sizes = {c.about("bin"): c.inputs["n"] for c in made.claims if c.quantity == "calibration"}
    assert sizes == {
        "0% to 50%": 10,
        "50% to 50.0001%": 20,
        "50.0001% to 50.0002%": 30,
        "50.0002% to 100%": 40,
    }


def test_slices_of_a_column_that_is_not_there_are_refused_in_one_sentence(rows):
    X_fit, X = rows[0], rows[2][["a", "b", "c"]]
    for slices, held in (
        (cut(X_fit, "sex"), X),
        (cut(X_fit.to_numpy(), 3), X.to_numpy()),
    ):
        with pytest.raises(ValueError, match=r"X has no column .* to cut slices of"):
            slices(held)
