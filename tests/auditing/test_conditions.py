"""Conditions travel with claims: what a claim was bought with stands beside it, or the claim is
not made.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

import surelearn
from surelearn import linear
from surelearn.boosting import AdaBoostClassifier
from surelearn.cluster import KMeans

QUICK = {
    "ledger": False,
    "refits": 2,
    "curve_repeats": 0,
    "skip": ("robustness", "poisoning", "membership", "attribution"),
}


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    y = np.where((x[:, 0] > 0.5) ^ (rng.random(n) < 0.1), "sick", "well")
    return pd.DataFrame(x, columns=["a", "b", "c"]).assign(state=y)


def fitted():
    frame = rows()
    return LogisticRegression().fit(frame[["a", "b", "c"]].to_numpy(), frame["state"])


FITTED = {
    "a model": fitted,
    "a pipeline's last step": lambda: make_pipeline(StandardScaler(), fitted()),
    "frozen": lambda: FrozenEstimator(fitted()),
    "frozen inside a calibration": lambda: CalibratedClassifierCV(FrozenEstimator(fitted())),
    "inside a search": lambda: GridSearchCV(fitted(), {"C": [1.0]}),
}


@pytest.mark.parametrize("argument", ["models", "against"])
@pytest.mark.parametrize("which", FITTED)
def test_a_fitted_candidate_is_refused_and_not_fitted_again(which, argument):
    candidates = {"models": {"mine": LogisticRegression()}, argument: {"mine": FITTED[which]()}}
    with pytest.raises(
        ValueError,
        match=r"candidate 'mine' .* would be fitted again: .*surelearn.audit\(model, X, y\)",
    ):
        surelearn.audit(rows(), target="state", **candidates, **QUICK)


def test_fitted_steps_that_prepare_and_steps_without_a_state_are_welcome():
    frame = rows()
    scaled = FrozenEstimator(StandardScaler().fit(frame[["a", "b", "c"]]))
    model = make_pipeline(scaled, FunctionTransformer(), LogisticRegression())
    assert (
        surelearn.audit(frame, target="state", models={"mine": model}, **QUICK).verdict.kind
        in ("guaranteed", "warning")  # of a class that is named so, more are missed
    )


# --------------------------------------------------------------------------------------------------


class ByFirst:
    """Answers "sick" above 0; groups of ten rows are then wrong, single rows right."""

    classes_ = np.array(["sick", "well"])

    def predict(self, X):
        return np.where(np.asarray(X)[:, 0] > 0, "sick", "well")


def visits(patients, seed, hard=0.06, large=10):
    """Most patients come once and are easy; the few that come ten times are always misjudged."""
    rng = np.random.default_rng(seed)
    sizes = np.where(rng.random(patients) < hard, large, 1)
    patient = np.repeat(np.arange(patients), sizes)
    x = rng.normal(size=(patient.size, 3))
    right = np.where(x[:, 0] > 0, "sick", "well")
    y = np.where(sizes[patient] > 1, np.where(right == "sick", "well", "sick"), right)
    return pd.DataFrame(x, columns=["a", "b", "c"]).assign(patient=patient, state=y)


def test_a_group_claim_says_so_and_one_by_rows_stands_beside_it():
    """Mean over groups: 6% errors. By rows: 39%, which the page said nothing about."""
    frame = visits(400, 1)
    X, y, groups = frame[["a", "b", "c"]], frame["state"].to_numpy(), frame["patient"].to_numpy()
    plain = surelearn.certify(
        ByFirst(), X, y, groups=groups, task="classification", majority="sick"
    )
    assert all(claim.label.endswith(", mean over groups") for claim in plain.claims)
    both = surelearn.certify(
        ByFirst(), X, y, groups=groups, task="classification", majority="sick", largest_group=10
    )
    assert both["risk"].value == plain["risk"].value  # the headline keeps its half of δ
    assert both["risk"].value < 0.15
    by_rows = both["row_weighted_risk"]
    assert by_rows.label == "errors, mean over rows (at most 10 a group)"
    assert 0.6 / 1.54 < by_rows.value < 0.6
    assert by_rows.measured == pytest.approx((ByFirst().predict(X) != y).mean())
    assert by_rows.covers.population == "the rows of new groups like these"
    assert both.verify(ByFirst(), X, y, groups=groups)
    assert surelearn.Certificate.from_json(both.to_json()).verify()


def test_a_mean_loss_over_rows():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(80), rng.integers(1, 6, 80))
    y = rng.random(groups.size)
    shared = {"groups": groups, "task": "regression", "loss_bound": 1.0}
    claims = surelearn.certify(
        lambda X: np.full(len(X), 0.5), y[:, None], y, largest_group=5, **shared
    )
    assert claims["row_weighted_loss"].measured == pytest.approx(np.abs(y - 0.5).mean())
    assert claims["row_weighted_loss"].measured < claims["row_weighted_loss"].value < 0.5


def test_the_page_of_groups_counts_rows_too():
    frame = visits(400, 2)
    asked = {
        "target": "state",
        "group": "patient",
        "models": {"linear": LogisticRegression()},
        **QUICK,
    }
    result = surelearn.audit(frame, largest_group=10, **asked)
    assert "errors as a mean over patients, and at most" in result.verdict.text
    assert "mean over rows (at most 10 a group)" in result.to_html()
    assert "errors, mean over groups" in result.to_html().lower()
    with pytest.raises(
        ValueError,
        match=r"--largest-group 9 is too small, some group has more rows: state how many",
    ):
        surelearn.audit(frame, largest_group=9, **asked)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"largest_group": 5}, "largest_group needs groups"),
        ({"largest_group": 0, "groups": [1, 1, 2]}, "whole number of at least 1"),
        (
            {"largest_group": 1, "groups": [1, 1, 2]},
            "largest_group 1 is too small, some group has more rows",
        ),
    ],
)
def test_a_largest_group_that_is_none(given, message):
    with pytest.raises(ValueError, match=message):
        surelearn.certify(
            ByFirst(), np.zeros((3, 1)), np.array(["well"] * 3), task="classification", **given
        )


# ---------------------------------------------------------------------------------------- claims fr

BOUNDED = linear.LogisticRegression(regularization=0.5, x_bound=1.0, random_state=0)


def test_training_row_claims_are_void_where_a_column_was_dropped_by_its_labels():
    frame = rows(600)
    alone = surelearn.audit(
        frame, target="state", models={"mine": make_pipeline(Normalizer(), BOUNDED)}, **QUICK
    )
    stable = alone.certificate["uniform_stability_from_the_fit_rows"]
    assert stable.label.endswith("from the fit rows, if its parameters were fixed beforehand")
    frame["leak"] = np.where(frame["state"] == "sick", 1.0, 0.0)
    frame.loc[:2, "leak"] = 0.5
    result = surelearn.audit(
        frame, target="state", models={"mine": make_pipeline(Normalizer(), BOUNDED)}, **QUICK
    )
    assert "`leak` repeats `state`" in result.verdict.sentence
    assert not any("fit_rows" in claim.quantity for claim in result.claims)
    reasons = {
        absent.reason
        for absent in result.certificate.lacking
        if absent.what == "risk_from_the_fit_rows"
    }
    assert any("'leak' left out because of the fit rows' labels" in reason for reason in reasons)
    page = result.to_html()
    assert "left out because of the fit rows" in page


@pytest.mark.parametrize(
    ("learner", "conditional"),
    [
        (linear.Ridge(regularization=0.1, x_bound=9.0, y_bound=1.0), True),
        (linear.LogisticRegression(regularization=0.1, x_bound=9.0, random_state=0), True),
        (linear.SupportVectorMachine(x_bound=9.0), True),
        (
            linear.HuberRegression(
                threshold=1.0, regularization=0.1, fit_intercept=False, x_bound=9.0, y_bound=1.0
            ),
            True,
        ),
        (AdaBoostClassifier(n_rounds=3), True),
        (linear.NaiveBayes(), False),
        (KMeans(2, random_state=0), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_first_line_says_that_parameters_were_fixed(learner, conditional):
    frame = rows(80)
    certificate = learner.fit(
        frame[["a", "b", "c"]].to_numpy(), (frame["state"] == "sick").to_numpy().astype(int)
    ).certificate_
    first = str(certificate).splitlines()[0]
    assert first.endswith(
        ", fitted on 80 rows with 3 features"
        + ", if its parameters were fixed beforehand" * conditional
    )


def test_the_risk_of_a_stopped_support_vector_machine_lists_what_it_was_bought_with():
    frame = rows(80)
    machine = linear.SupportVectorMachine(C=0.01, x_bound=9.0)
    risk = next(
        claim
        for claim in machine.fit(
            frame[["a", "b", "c"]].to_numpy(), frame["state"]
        ).certificate_.claims
        if claim.label == "risk, clipped hinge loss"
    )
    assert "‖x‖ ≤ x_bound for every row, as stated" in risk.assumptions
    assert any("of the minimizer's; the risk includes it" in line for line in risk.assumptions)
    assert risk.inputs["distance"] > 0


# ------------------------------------------------------------------------------------- bounds above


def test_a_bound_above_the_error_of_a_constant_is_called_so_wherever_it_stands():
    """Noise with 20% "sick": "at most 3x% errors" is more than the 20% of always answering
    "well".
    """
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    frame["state"] = np.where(rng.random(300) < 0.2, "sick", "well")
    result = surelearn.audit(
        frame, target="state", models={"mine": make_pipeline(Normalizer(), BOUNDED)}, **QUICK
    )
    certificate = result.certificate
    useless = "no better than always answering well"
    assert certificate.mark(certificate["risk"]) == useless
    assert {
        certificate.mark(claim) for claim in certificate.claims if claim.quantity == "risk"
    } == {useless}
    marks = {
        certificate.mark(claim) for claim in certificate.claims if claim.quantity == "class_error"
    }
    assert marks == {"", "vacuous"}  # a constant is wrong there never, or always
    for text in (str(certificate), result.to_html(), result.to_markdown()):
        assert useless in text


def test_a_bound_above_the_error_of_a_constant_is_called_so_beside_another_model_too():
    """A coin looks good beside a model that errs always; it is no better than a constant."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], [130, 70]))
    X = np.column_stack([rng.integers(0, 2, 200), 1 - y])
    shared = {"task": "classification", "classes": [0, 1], "baseline": lambda X: X[:, 1]}
    coin = surelearn.certify(lambda X: X[:, 0], X, y, **shared)
    assert coin["gain"].value > 0
    assert coin.mark(coin["risk"]) == "no better than always answering 0"
    dear = surelearn.certify(lambda X: X[:, 0], X, y, positive=1, cost=5.0, **shared)
    assert dear.mark(dear["mean_cost"]) == "no better than always answering 1"
    right = surelearn.certify(lambda X: 1 - X[:, 1], X, y, **shared)
    assert right.mark(right["risk"]) == ""


def test_a_headline_with_a_guaranteed_gain_is_not_called_useless():
    """25 of 200 errors, 10 fewer than always answering 0: the bound is above 35 of 200, and a
    gain is guaranteed.
    """
    y, X = np.zeros(200, dtype=int), np.zeros((200, 1))
    y[:35], X[25:35] = 1, 1
    certificate = surelearn.certify(
        lambda X: X[:, 0].astype(int), X, y, task="classification", classes=[0, 1], majority=0
    )
    assert certificate["risk"].value > 35 / 200
    assert certificate["gain"].value > 0
    assert certificate.mark(certificate["risk"]) == ""


def test_a_bound_below_the_error_of_every_constant_is_not():
    frame = rows(600)
    assert 0.15 < (frame["state"] == "sick").mean() < 0.5
    certificate = surelearn.audit(
        frame, target="state", models={"mine": LogisticRegression()}, **QUICK
    ).certificate
    # those that stand alone claim no gain
    risks = [claim for claim in certificate.claims if claim.quantity == "risk"]
    assert {claim.standing for claim in risks} == {"together", "alone"}
    assert {certificate.mark(claim) for claim in risks} == {""}


# --------------------------------------------------------------------------------------------------

SEED = 987_654_321


def private_rows(n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("alone", [True, False])
def test_a_saved_private_model_does_not_carry_its_seed(tmp_path, alone):
    X, y = private_rows()
    model = linear.DPLogisticRegression(random_state=SEED)
    model = (model if alone else make_pipeline(Normalizer(), model)).fit(X, y)
    folder = surelearn.save(model, tmp_path / "model")
    kept = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert str(SEED).encode() not in kept
    assert SEED.to_bytes(8, "little") not in kept
    again = surelearn.load(folder)
    learner = again[-1] if hasattr(again, "steps") else again
    assert learner.random_state is None
    assert (again.predict(X) == model.predict(X)).all()
    # the one in memory is as it was
    assert (model[-1] if hasattr(model, "steps") else model).random_state == SEED
    assert "nobody knows the seed of the noise" in str(learner.certificate_)
    assert str(SEED) not in str(learner.certificate_)
    options = {
        "skip": ("robustness", "poisoning", "attribution"),
        "refits": 0,
        "curve_repeats": 0,
        "ledger": False,
    }
    found = [
        finding.code
        for finding in surelearn.audit(again, *private_rows(200), **options)["membership"].findings
    ]
    assert "SL644" in found  # who gave the seed still knows it


def test_a_privacy_delta_of_one_row_in_n_warns_and_is_said():
    X, y = private_rows()
    with pytest.warns(UserWarning, match=r"dp_delta=0.01 is not below 1/n with n = 300"):
        model = linear.DPLogisticRegression(dp_delta=0.01).fit(X, y)
    assert "dp_delta is 0.01, not below 1/n" in str(model.certificate_)
    with pytest.warns(UserWarning, match="is not below 1/n"):  # one row in n is already too many
        linear.DPLogisticRegression(dp_delta=1 / 300).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small = linear.DPLogisticRegression(dp_delta=1e-3).fit(X, y)
    assert "not below 1/n" not in str(small.certificate_)
    options = {
        "skip": ("robustness", "poisoning", "attribution"),
        "refits": 0,
        "curve_repeats": 0,
        "ledger": False,
    }
    section = surelearn.audit(model, *private_rows(200), **options)["membership"]
    assert any("dp_delta is 0.01, not below 1/n" in note for note in section.notes)


@pytest.mark.parametrize(
    ("coins", "about"),
    [(False, "about the rows it was fitted on"), (True, "about all rows of the table")],
)
def test_an_epsilon_is_about_the_rows_fitted_on_unless_each_row_has_its_own_coin(coins, about):
    private = make_pipeline(Normalizer(), linear.DPLogisticRegression())
    options = {**QUICK, "refits": 0, "skip": ("robustness", "poisoning", "attribution")}
    section = surelearn.audit(
        rows(), target="state", models={"private": private}, coins=coins, **options
    )["membership"]
    (claim,) = section.claims
    assert any(line.startswith(f"it is {about}") for line in claim.assumptions)
    assert any(f"It is {about}" in note for note in section.notes)


# ------------------------------------------------------------------------------------ an interval,


def prices(n, spread, seed=0):
    """A price of 100 to 2,000 that one column tells, but for noise that grows with it or does
    not.
    """
    rng = np.random.default_rng(seed)
    size = rng.uniform(1, 20, n)
    price = 100 * size + 40 * spread(size) * rng.normal(size=n)
    return pd.DataFrame({"size": size, "other": rng.normal(size=n), "price": price})


def coverage_of(frame, **options):
    quick = {
        "target": "price",
        "models": {"linear": linear.Ridge(regularization=1e-6, regularize_intercept=False)},
        **QUICK,
    }
    return surelearn.audit(frame, **{**quick, **options})["coverage"]


def test_an_interval_is_shown_by_fifths_of_the_prediction():
    """90% on average was nearly 100% of small predictions and 65% of large ones, and nothing
    said so.
    """
    frame = prices(1500, lambda size: size**1.5 / 20)
    section = coverage_of(frame, width="constant")
    (finding,) = section.findings
    assert (finding.code, finding.severity) == ("SL302", "warning")
    shares = finding.numbers["coverage"]
    assert len(shares) == 5
    assert min(shares[:2]) > 0.97
    assert shares[-1] < 0.8
    assert f"{100 * shares[-1]:.1f}% are covered" in finding.text
    assert (
        "90% holds on average over all rows (marginal coverage), not for predictions above"
        in finding.text
    )
    (table,) = section.tables
    assert [float(row[2].rstrip("%")) for row in table.rows] == pytest.approx(
        [100 * share for share in shares], abs=0.06
    )
    assert float(table.rows[-1][3].replace(",", "")) > 3 * float(table.rows[0][3].replace(",", ""))
    even = coverage_of(frame).findings[0]  # with widths of each row's own
    assert even.severity == "info"
    assert min(even.numbers["coverage"]) > shares[-1]
    assert even.numbers["half_width"][-1] > 2 * even.numbers["half_width"][0]


def test_noise_of_one_size_raises_no_alarm_about_fifths():
    found = [coverage_of(prices(600, np.ones_like, seed)).findings[0].severity for seed in range(3)]
    assert found == ["info"] * 3


def test_fifths_of_a_fitted_model_are_those_of_the_rows_given():
    frame = prices(1600, lambda size: size**1.5 / 20)
    X, y = frame[["size", "other"]].to_numpy(), frame["price"].to_numpy()
    model = linear.Ridge(regularization=1e-6, regularize_intercept=False).fit(X[:400], y[:400])
    section = surelearn.audit(model, X[400:], y[400:], **QUICK)["coverage"]
    assert section.findings[0].severity == "warning"
    assert "cut at fifths of the held-back rows' predictions" in section.notes[0]
    assert sum(int(row[1]) for row in section.tables[0].rows) == 1200


# --------------------------------------------------------------------------------------------------


def test_a_change_of_every_number_names_the_columns_that_stay():
    frame = rows(200).assign(
        sex=np.arange(200) % 2, town=np.where(np.arange(200) % 3, "north", "south")
    )
    asked = {**QUICK, "skip": ("poisoning", "membership", "attribution")}
    section = surelearn.audit(
        frame, target="state", models={"linear": LogisticRegression()}, **asked
    )["robustness"]
    assert "standard deviations in L∞ (sex, town unchanged)" in section.findings[0].text
    assert any("are not changed: sex, town." in note for note in section.notes)
    about = [claim for claim in section.claims if claim.theorem == "robust_accuracy"]
    assert about
    assert all(
        claim.label.endswith("0.1 standard deviations in L∞ (sex, town unchanged)")
        for claim in about
    )
    only = surelearn.audit(
        rows(200), target="state", models={"linear": LogisticRegression()}, **asked
    )["robustness"]
    assert "unchanged" not in only.findings[0].text
