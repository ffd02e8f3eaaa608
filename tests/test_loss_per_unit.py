"""`certify` on any loss per independent unit: with no model, in any stated range, for a shifted
population.
"""

import contextlib
import hashlib
import itertools
import math
from functools import partial

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression
from tests.simulation import at_most, more_than

from surelearn import Certificate, certify
from surelearn.bounds import (
    betting_upper,
    clopper_pearson,
    paired_difference,
    reweighted_mean,
    shifted_mean,
)
from surelearn.certification import LONGEST_NAME, uncounted
from surelearn.measurement import flow, units
from surelearn.monitoring import Watch
from surelearn.slicing import cut

N = 200
RATES = np.random.default_rng(0).beta(1, 9, N)
WORSE = np.minimum(RATES + 0.1, 1)


def shuffled(values, certificate):
    """The order in which `measure` bets on units, drawn by the hash of the rows."""
    drawn_by = hashlib.sha256(certificate.facts.hashes["rows"].encode()).digest()[:16]
    order = np.random.default_rng(int.from_bytes(drawn_by, "big")).permutation(len(values))
    return np.asarray(values, dtype=float)[np.argsort(order)]


def test_losses_alone_are_certified_by_betting_in_the_callers_words():
    certificate = certify(losses=RATES, loss="word error rate", delta=0.1)
    (claim,) = certificate.claims
    assert claim.value == betting_upper(shuffled(RATES, certificate), 0.1)
    assert claim.label == "mean word error rate"
    assert claim.covers.loss == "word error rate"
    assert "units like these" in claim.covers.population
    assert certificate.facts.subject == "word error rate per unit"
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_a_classifier_is_one_named_set_of_losses():
    """The errors of a model and the same errors brought as losses have the same bound, and so
    have groups and slices.
    """
    y = np.random.default_rng(1).integers(0, 2, N)
    X, groups = np.random.default_rng(2).random((N, 1)), np.arange(N) // 4
    model = DummyClassifier(strategy="constant", constant=0).fit(X, [0, 1] * (N // 2))
    for shared in ({}, {"groups": groups}, {"groups": groups, "largest_group": 4}):
        asked = {"slices": {"low": X[:, 0] < 0.5}, **shared}
        by_model = certify(model, X, y, majority=0, **asked)
        by_losses = certify(None, X, y, losses=model.predict(X) != y, delta=0.05, **asked)
        share = by_model["risk"].delta, by_losses["mean_loss"].delta
        assert share[0] == share[1]
        assert by_losses["mean_loss"].value == by_model["risk"].value
        assert by_losses["mean_loss"].theorem == by_model["risk"].theorem
        assert by_losses["slice_loss"].measured == by_model["slice_risk"].measured


def test_a_regressions_losses_are_the_same_facts():
    X = np.arange(N, dtype=float).reshape(-1, 1)
    y = X[:, 0] + np.random.default_rng(0).normal(size=N)
    model = LinearRegression().fit(X, y)
    by_model = certify(model, X, y, loss_bound=9.0)
    away = np.abs(model.predict(X) - y)
    by_losses = certify(None, X, y, losses=away, loss_range=(0, 9), loss="distance")
    assert by_losses.facts["loss.losses"] == by_model.facts["loss.losses"]
    assert (
        by_losses["mean_loss"].at(0.05, candidates=1).value
        == by_model["mean_loss"].at(0.05, candidates=1).value
    )


@pytest.mark.parametrize("kind", [bool, int, np.uint8, list])
def test_what_can_only_be_0_or_1_is_counted(kind):
    wrong = RATES < 0.05
    given = wrong.astype(int).tolist() if kind is list else wrong.astype(kind)
    claim = certify(losses=given)["mean_loss"]
    assert (claim.theorem, claim.value) == (
        "clopper_pearson",
        clopper_pearson(int(wrong.sum()), N, 0.05),
    )
    assert claim.bound().endswith("%")


def test_numbers_that_happen_to_be_0_or_1_are_bet_on():
    """To count them because of the values seen would be choosing the theorem by the units."""
    assert certify(losses=(RATES < 0.05).astype(float))["mean_loss"].theorem == "betting_upper"
    assert certify(losses=RATES < 0.05, loss_range=(0, 2))["mean_loss"].theorem == "betting_upper"


@pytest.mark.parametrize(("low", "high"), [(-3.0, 1.0), (0.0, 7.0), (5.0, 6.0)])
def test_any_range_is_claimed_in_its_own_units(low, high):
    span, slices = high - low, {"half": np.arange(N) < N // 2}
    units = np.arange(N)[:, None]  # which the order is drawn by
    plain = certify(X=units, losses=RATES, baseline_losses=WORSE, slices=slices)
    scaled = certify(
        X=units,
        losses=low + span * RATES,
        baseline_losses=low + span * WORSE,
        slices=slices,
        loss_range=(low, high),
        loss="regret",
    )
    assert scaled["mean_loss"].value == pytest.approx(low + span * plain["mean_loss"].value)
    assert scaled["slice_loss"].value == pytest.approx(low + span * plain["slice_loss"].value)
    assert scaled["gain"].value == pytest.approx(span * plain["gain"].value)
    assert scaled["mean_loss"].measured == pytest.approx(low + span * RATES.mean())
    assert scaled.verify(
        X=units, losses=low + span * RATES, baseline_losses=low + span * WORSE, slices=slices
    )


def test_baseline_slices_and_novel_units():
    languages, novel = (
        np.array(["en", "de", None, "en"] * (N // 4), dtype=object),
        np.arange(N) % 2 == 0,
    )
    certificate = certify(
        losses=RATES, baseline_losses=WORSE, slices={"language": languages}, novel=novel
    )
    assert certificate["gain"].value == paired_difference(
        shuffled(RATES, certificate), shuffled(WORSE, certificate), 0.025 / 3
    )
    names = {claim.label for claim in certificate.claims if claim.quantity == "slice_loss"}
    assert names == {f"mean loss where language = {name}" for name in ("en", "de", "missing")}
    assert certificate["novel_loss"].covers.population.endswith("not new patients")
    assert sum(claim.delta for claim in certificate.claims) == pytest.approx(0.05)


def test_slices_that_were_cut_on_other_units():
    units = np.random.default_rng(0).random((N, 2))
    slices = cut(np.random.default_rng(1).random((100, 2)), 0, bins=3)
    certificate = certify(X=units, losses=RATES, slices=slices)
    assert sum(claim.quantity == "slice_loss" for claim in certificate.claims) == 3
    assert certificate.verify(X=units, losses=RATES)
    with pytest.raises(ValueError, match="slices is a function of the units"):
        certify(losses=RATES, slices=slices)


class Scorer:
    """What a later family of models hands over: losses of units that are no rows."""

    def __init__(self, offset):
        self.offset = offset

    def unit_losses(self, units):
        return np.array([min(len(unit) / 100 + self.offset, 1.0) for unit in units])


def test_a_model_with_a_function_of_units():
    documents = ["a" * int(100 * rate) for rate in RATES]
    model = Scorer(0.01)
    certificate = certify(model, documents, loss="length")
    assert certificate["mean_loss"].measured == pytest.approx(model.unit_losses(documents).mean())
    assert certificate.verify(model, documents)
    assert not certificate.verify(Scorer(0.02), documents)
    assert not certificate.verify(model, documents[::-1])
    same = certify(losses=model.unit_losses, X=documents, loss="length")
    assert same["mean_loss"].value == certificate["mean_loss"].value
    ragged = [list(range(1 + i % 7)) for i in range(N)]
    assert certify(losses=lambda _: RATES, X=ragged).verify(X=ragged, losses=RATES)


def test_verify_measures_again_from_losses():
    certificate = certify(losses=RATES, baseline_losses=WORSE)
    assert certificate.verify()
    assert certificate.verify(losses=RATES, baseline_losses=WORSE)
    assert certificate.verify(losses=RATES)  # what it says of the baseline stays unchecked
    found = certificate.verify(losses=np.append(RATES[:-1], 0.5))
    assert "fact 'loss.losses' is not what model and rows give" in str(found)
    published = Certificate.from_json(certificate.published().to_json())
    assert str(RATES[0])[:10] not in published.to_json()
    assert len(published.verify().unchecked) == 2
    assert published.verify(losses=RATES, baseline_losses=WORSE).unchecked == ()
    with pytest.raises(ValueError, match="losses go with a certificate of losses"):
        certify(lambda X: X[:, 0], np.eye(2), [1, 0], task="classification", classes=[0, 1]).verify(
            losses=[0, 1]
        )


def test_several_losses_of_the_same_units_are_several_looks():
    units = np.random.default_rng(9).random((N, 1))
    said = "model 2 that this process certified on these rows"
    for shared in (
        {"X": units},
        {"groups": 7 + np.arange(N) // 3},
        {"baseline_losses": WORSE + 1e-9},
    ):
        assert "this process" not in certify(losses=RATES, **shared).facts.setting
        # the same once more
        assert "this process" not in certify(losses=RATES, **shared).facts.setting
        assert said in certify(losses=RATES / 2, **shared).facts.setting


def test_the_name_is_escaped_and_bounded():
    certificate = certify(losses=RATES, loss="<b>loss</b>")
    assert "<b>loss" not in certificate._repr_html_()
    assert "mean &lt;b&gt;loss" in certificate._repr_html_()
    assert certify(losses=RATES, loss="x" * LONGEST_NAME)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"losses": []}, "losses must not be empty"),
        ({"losses": [[0.1, 0.2]]}, r"losses must be one number per unit, not of shape \(1, 2\)"),
        ({"losses": 0.1}, "losses must be one number per unit"),
        ({"losses": ["a", "b"]}, "losses must be numbers"),
        ({"losses": [0.1, np.nan, np.inf]}, "losses must be finite: 2 of 3 are not"),
        ({"losses": [0.1, 1.5]}, r"loss_range=\(0, 1\) is not the range of losses: 1 of 2 lie outside, such as 1.5"),
        ({"losses": [0, 2]}, "is not the range of losses"),
        ({"loss_range": (1, 1)}, "loss_range must be two finite numbers"),
        ({"loss_range": (0, math.inf)}, "loss_range must be two finite numbers"),
        ({"loss_range": (1, 0)}, "the lower one first"),
        ({"loss_range": 3}, "loss_range must be two"),
        ({"loss_range": (0, 1, 2)}, "loss_range must be two"),
        ({"loss_range": (-1e308, 1e308)}, "loss_range must be two finite"),
        ({"X": np.zeros((3, 1))}, f"X has 3 units and losses has {N}"),
        ({"groups": [1, 2]}, "groups must name one group"),
        ({"baseline_losses": [0.1]}, f"losses has {N} units and baseline_losses has 1"),
        ({"baseline_losses": WORSE + 1}, "is not the range of baseline_losses"),
        ({"slices": {"a": np.ones(3, dtype=bool)}}, "slice 'a' must be a boolean mask"),
        ({"slices": {"a": np.arange(N)}}, f"slice 'a' has {N} values, more than 100"),
        ({"loss": ""}, "loss must say what the loss is in 1 to 60 printable characters"),
        ({"loss": "x" * 61}, "loss must say what the loss is"),
        ({"loss": "a\nb"}, "loss must say what the loss is"),
        ({"positive": 1}, "positive goes with a model that predicts"),
        ({"loss_bound": 2.0}, "loss_bound goes with a model that predicts"),
        ({"largest_group": 2}, "largest_group needs groups"),
        ({"losses": RATES - 1, "loss_range": (-1, 0), "groups": np.arange(N), "largest_group": 1}, "starts at 0"),
        ({"losses": lambda _: RATES}, "losses is a function of the units: pass them, too"),
        ({"losses": None}, "certify needs a model with X and y, or losses"),
        ({"losses": None, "loss_range": (0, 1)}, "loss_range goes with losses"),
        ({"weights": np.ones(N)}, "takes both weights and weight_bound"),
        ({"weight_bound": 2.0}, "takes both weights and weight_bound"),
        ({"proportional": True}, "takes both weights and weight_bound"),
        ({"weights": np.ones(N), "weight_bound": 0.5}, "weight_bound must be finite and at least 1"),
        ({"weights": np.ones(N), "weight_bound": math.nan}, "weight_bound must be positive and finite"),
        ({"weights": np.ones(N), "weight_bound": "2"}, "weight_bound must be positive and finite"),
        ({"weights": np.ones(3), "weight_bound": 2.0}, r"weights must be one number per unit: it has shape \(3,\)"),
        ({"weights": -np.ones(N), "weight_bound": 2.0}, "some unit has -1"),
        ({"weights": np.full(N, 3.0), "weight_bound": 2.0}, r"weights must lie in \[0, weight_bound=2\], and some"),
        ({"weights": np.full(N, np.nan), "weight_bound": 2.0}, "weights must be finite"),
        ({"weights": np.full(N, 0.1), "weight_bound": 2.0}, "weights must be a density ratio, whose mean is 1"),
    ],
)  # fmt: skip
def test_refusals_are_one_sentence(asked, message):
    with pytest.raises(ValueError, match=message) as caught:
        certify(**{"losses": RATES, **asked})
    assert "\n" not in str(caught.value)


# --------------------------------------------------------------------------------------------------

HARD, EASY = 0.3, 0.02  # the loss's mean on the two kinds of units
# easy, hard: a fifth of the units drawn is hard, four fifths of those that come are
WEIGHTS = np.array([0.25, 4.0])
SHIFTED = 0.8 * HARD + 0.2 * EASY


def drawn(rng, n):
    hard = rng.random(n) < 0.2
    return rng.random(n) < np.where(hard, HARD, EASY), WEIGHTS[hard.astype(int)], hard


def test_a_shift_is_bet_on_as_weight_times_loss():
    wrong, weights, hard = drawn(np.random.default_rng(0), N)
    asked = {
        "weights": weights,
        "weight_bound": 4.0,
        "slices": {"hard": hard},
        "baseline_losses": np.ones(N),
    }
    certificate = certify(losses=wrong, **asked)
    x, w = shuffled(wrong, certificate), shuffled(weights, certificate)
    assert certificate["mean_loss"].value == shifted_mean(x, w, 4.0, 0.025)
    assert certificate["mean_loss"].value == pytest.approx(4 * betting_upper(w * x / 4, 0.025))
    assert (
        certificate["mean_loss"].covers.population == "units like these, shifted as the weights say"
    )
    assert any(
        "exactly, and so have mean 1" in line for line in certificate["mean_loss"].assumptions
    )
    assert certificate["slice_loss"].theorem == "reweighted_mean"
    assert certificate["slice_loss"].measured == pytest.approx(wrong[hard].mean())
    assert certificate["gain"].measured == pytest.approx(1 - np.average(wrong, weights=weights))
    assert certificate.verify(
        losses=wrong, **{k: v for k, v in asked.items() if k != "weight_bound"}
    )
    published = certificate.published()
    assert published["mean_loss"].inputs["weights"]["n"] == N
    scaled = certify(losses=wrong, weights=10 * weights, weight_bound=40.0, proportional=True)
    x, w = shuffled(wrong, scaled), shuffled(weights, scaled)
    assert scaled["mean_loss"].value == pytest.approx(reweighted_mean(x, w, 4.0, 0.05))


def test_a_model_under_a_shift_and_what_is_not_claimed_then():
    rng = np.random.default_rng(3)
    wrong, weights, hard = drawn(rng, 400)
    y = rng.integers(0, 2, 400)
    X = np.column_stack([np.where(wrong, 1 - y, y), hard])
    options = {
        "task": "classification",
        "classes": [0, 1],
        "positive": 1,
        "weights": weights,
        "weight_bound": 4.0,
    }
    certificate = certify(lambda X: X[:, 0], X, y, **options)
    assert certificate["risk"].theorem == "shifted_mean"
    assert certificate["risk"].measured == pytest.approx(np.mean(weights * wrong))
    ill = y == 1
    assert certificate["sensitivity"].measured == pytest.approx(
        np.average(~wrong[ill], weights=weights[ill])
    )
    assert certificate["sensitivity"].value < certificate["sensitivity"].measured
    with pytest.raises(ValueError, match="shifted population"):
        Watch(certificate)
    with pytest.raises(ValueError, match="losses per unit is not watched"):
        Watch(certify(losses=wrong))
    shared = {"task": "regression", "loss_bound": 1.0, "weights": weights, "weight_bound": 4.0}
    numbers = certify(lambda X: X[:, 0], X, y, **shared)
    assert numbers["mean_loss"].value == certificate["risk"].at(0.05, candidates=1).value
    with pytest.raises(KeyError, match="not of a shifted population"):
        numbers["error_quantile"]


def test_groups_are_shifted_by_the_mean_of_weight_times_loss():
    wrong, weights, _ = drawn(np.random.default_rng(5), N)
    groups = np.arange(N) // 4
    certificate = certify(losses=wrong, weights=weights, weight_bound=4.0, groups=groups)
    products = np.multiply(certificate.facts["loss.losses"], certificate.facts["loss.weights"])
    assert np.sort(products) == pytest.approx(
        np.sort((wrong * weights).reshape(-1, 4).mean(axis=1))
    )
    assert "groups are independent" in certificate["mean_loss"].assumptions[0]


def test_the_numbers_of_the_theorems_from_their_definition():
    """The capital, multiplied out factor by factor with its own bets; both refute every larger
    candidate than the bound.
    """
    rng = np.random.default_rng(2)
    loss, weight, delta = rng.random(60), rng.choice([0.0, 0.5, 3.0], 60), 0.1

    def wealth(x, bets, cap):
        capital = most = 1.0
        for value, bet in zip(x, bets, strict=True):
            capital *= 1 + min(bet, cap) * value
            most = max(most, capital)
        return most

    def bets_on(x):
        found, seen, variance = [], [], 0.25
        for value in x:
            found.append(math.sqrt(2 * math.log(1 / delta) / (variance * len(x))))
            seen.append(value)
            means = [(0.5 + sum(seen[: i + 1])) / (i + 2) for i in range(len(seen))]
            variance = (0.25 + sum((a - m) ** 2 for a, m in zip(seen, means, strict=True))) / (
                len(seen) + 1
            )
        return found

    shifted = shifted_mean(loss, weight, 3.0, delta) / 3
    x = weight * loss / 3
    for candidate, refuted in ((shifted - 1e-9, False), (shifted + 1e-9, True)):
        capital = wealth(candidate - x, bets_on(1 - x), 0.75 / (1 - candidate))
        assert (capital >= 1 / delta) == refuted
    ratio = reweighted_mean(loss, weight, 3.0, delta)
    size = weight / 3
    earlier = [(0.5 + x[:i].sum()) / (1 + size[:i].sum()) for i in range(60)]
    for candidate, refuted in ((ratio - 1e-9, False), (ratio + 1e-9, True)):
        bets = bets_on(1 - (x + np.array(earlier) * (1 - size)))
        assert (
            wealth(size * (candidate - loss), bets, 0.75 / (1 - candidate)) >= 1 / delta
        ) == refuted


def test_the_claims_about_a_shifted_population_hold_and_wrong_uses_do_not():
    """δ = 0.2: the headline is false in at most δ of the certificates; without the weights in
    nearly all of them.
    """
    rng, trials, delta = np.random.default_rng(11), 300, 0.2
    false, ignored, normalized = np.zeros(2), 0, 0
    for _ in range(trials):
        wrong, weights, _ = drawn(rng, 120)
        shift = {"weights": weights, "weight_bound": 4.0, "delta": delta}
        false += [
            certify(losses=wrong, proportional=p, **shift)["mean_loss"].value < SHIFTED
            for p in (False, True)
        ]
        ignored += certify(losses=wrong, delta=delta)["mean_loss"].value < SHIFTED
        # known up to a factor, and called exact
        divided = {**shift, "weights": weights / 4, "weight_bound": 1.0}
        with contextlib.suppress(ValueError):  # weights must be a density ratio, whose mean is 1
            normalized += certify(losses=wrong, **divided)["mean_loss"].value < SHIFTED
    assert (false / trials <= delta).all()
    assert (false > 0).all()  # the claims are not so loose that the test could not fail
    assert ignored / trials > 0.9
    assert normalized == 0
    with pytest.raises(ValueError, match=r"weights must lie in \[0, weight_bound=2\]"):
        certify(losses=wrong, weights=weights, weight_bound=2.0)


def test_the_reweighted_bound_on_every_sequence_of_units():
    """A unit weighs a and is wrong (with probability q), or weighs b and is right: R = qa/(qa +
    (1 − q)b).
    """
    n, delta, a, b = 10, 0.1, 4.0, 1.0
    sequences = np.array(list(itertools.product([0, 1], repeat=n)), dtype=float)
    upper = np.array([reweighted_mean(s, np.where(s == 1, a, b), a, delta) for s in sequences])
    k = sequences.sum(axis=1)

    def worst(bound):
        rates = np.linspace(0.001, 0.999, 400)
        truth = rates * a / (rates * a + (1 - rates) * b)
        return max(
            np.sum((q**k * (1 - q) ** (n - k))[bound < r])
            for q, r in zip(rates, truth, strict=True)
        )

    measured = k * a / (k * a + (n - k) * b)
    assert delta / 4 <= worst(upper) <= delta
    assert worst((upper + measured) / 2) > 2 * delta  # half the slack is too little


@pytest.mark.parametrize("size", [100, 400])
def test_a_file_that_is_sorted_by_its_losses_keeps_the_promise(size, monkeypatch):
    """Grades of 0 or 1, best first. With one order for all files, that of 100 rows is so unlucky
    that a claim at δ = 15% was false in half of them.
    """
    delta, trials, p = 0.15, 120, 0.8

    def false(seed):
        rng, count = np.random.default_rng(seed), 0
        with uncounted():
            for _ in range(trials):
                grades = np.sort((rng.random(size) < p).astype(float))[::-1]
                claim = certify(losses=grades, better="higher", delta=delta).claims[0]
                count += claim.value > p
        return count

    assert at_most(false(size), delta, trials)
    if size == 100:
        one_for_all = partial(units.Sampler, drawn_by="")
        monkeypatch.setattr(
            flow, "Sampler", lambda n, groups, weights, _: one_for_all(n, groups, weights)
        )
        assert more_than(false(size), delta, trials)
