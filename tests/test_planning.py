"""Rows needed: known numbers, a naive search over every n, simulations, and what the audit
really does.
"""

import math
import re
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import surelearn
from surelearn import planning
from surelearn.auditing.sections import skippable
from surelearn.bounds import (
    clopper_pearson,
    clopper_pearson_lower,
    conformal_rank_pac,
    paired_difference,
)
from surelearn.bounds.holdout import predictable_bets
from surelearn.certification import certify
from surelearn.planning import (
    SHARES,
    allotment,
    gain_power,
    gain_rows,
    interval_rows,
    plan,
    rows_holding,
    rows_needed,
    sensitivity_rows,
)
from surelearn.selection.split import split_rows


def at_most(k, n, p):
    """P(Bin(n, p) ≤ k), by adding."""
    return math.fsum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1))


def naive_powers(most, r, p, delta):
    """The power at n = 0 … most: count up the failures that Clopper–Pearson lets pass, then add
    their probabilities.
    """
    powers, k = [], -1
    for n in range(most + 1):
        while k + 1 <= n and clopper_pearson(k + 1, n, delta) <= r:
            k += 1
        powers.append(at_most(k, n, p))
    return np.array(powers)


# -------------------------------------------------------------------------------- errors


def test_without_errors_the_logarithm_decides():
    assert rows_needed(0.05) == math.ceil(math.log(0.025) / math.log(0.95)) == 72
    assert rows_needed(0.05, share=1.0) == math.ceil(math.log(0.05) / math.log(0.95)) == 59
    assert rows_needed(0.01, delta=0.1, candidates=7) == math.ceil(
        math.log(0.1 / 14) / math.log(0.99)
    )


def test_the_published_sample_sizes_for_95_95():
    """59, 93, 124, 153, 181, 208: the rows that may contain 0, 1, 2, … failures (S. S. Wilks's
    tolerance limits).
    """
    p = 0.01
    for k, n in enumerate((59, 93, 124, 153, 181, 208)):
        assert planning.power(n, 0.05, p, share=1.0) == pytest.approx(at_most(k, n, p), rel=1e-12)
        before = 0 if k == 0 else at_most(k - 1, n - 1, p)
        assert planning.power(n - 1, 0.05, p, share=1.0) == pytest.approx(before, rel=1e-12)


@pytest.mark.parametrize(
    ("r", "p", "delta", "power"),
    [
        (0.05, 0.02, 0.025, 0.8),
        (0.05, 0.0, 0.05, 0.8),
        (0.1, 0.05, 0.05, 0.9),
        (0.1, 0.08, 0.2, 0.6),
        (0.3, 0.2, 0.01, 0.95),
        (0.5, 0.25, 0.25, 0.8),  # exact ties: 0.5² = 0.25
        (0.5, 0.4, 0.5, 0.5),
        (0.9, 0.7, 0.05, 0.99),
        (0.02, 0.001, 0.05, 0.3),
        (0.2, 0.1, 0.8, 0.97),
    ],
)
def test_rows_needed_is_the_last_failing_n_and_one(r, p, delta, power):
    answer = rows_needed(r, p, delta=delta, share=1.0, power=power)
    powers = naive_powers(2 * answer + 100, r, p, delta)
    assert answer == np.flatnonzero(powers < power)[-1] + 1
    np.testing.assert_allclose(
        planning.power(np.arange(powers.size), r, p, delta=delta, share=1.0), powers, atol=1e-10
    )


def test_the_power_is_a_sawtooth():
    """Otherwise the test above could not tell the last failing n from the first that does not
    fail.
    """
    powers = naive_powers(400, 0.05, 0.02, 0.025)
    assert np.flatnonzero(powers >= 0.8)[0] < rows_needed(0.05, 0.02) == 338
    assert (np.diff(powers) < 0).any()


def test_delta_is_divided():
    assert rows_needed(0.05, 0.02, delta=0.05, share=0.5) == rows_needed(
        0.05, 0.02, delta=0.025, share=1.0
    )
    assert rows_needed(0.05, 0.02, delta=0.06, candidates=6) == rows_needed(0.05, 0.02, delta=0.01)
    assert planning.power(300, 0.05, 0.02, delta=0.06, candidates=6) == planning.power(
        300, 0.05, 0.02, delta=0.01
    )


@pytest.mark.parametrize("seed", range(20))
def test_power_follows_clopper_pearson(seed):
    draw = np.random.default_rng(seed)
    r, delta, n = (
        draw.uniform(0.001, 0.9),
        10 ** draw.uniform(-6, -0.1),
        int(10 ** draw.uniform(0, 4)),
    )
    p = r * draw.uniform(0, 0.99)
    passing = clopper_pearson(np.arange(n + 1), n, delta) <= r
    from scipy.stats import binom

    expected = binom.pmf(np.arange(n + 1), n, p)[passing].sum()
    assert planning.power(n, r, p, delta=delta, share=1.0) == pytest.approx(expected, abs=1e-9)


def test_a_simulation_certifies_as_often_as_stated():
    n = rows_needed(0.05, 0.02)
    errors = np.random.default_rng(1).binomial(n, 0.02, size=100_000)
    often = np.mean(clopper_pearson(errors, n, 0.025) <= 0.05)
    assert often == pytest.approx(planning.power(n, 0.05, 0.02), abs=4 * math.sqrt(0.25 / 100_000))


def test_hundreds_of_thousands_of_rows_take_no_time():
    began = time.monotonic()
    n = rows_needed(0.001, 0.0009)
    assert time.monotonic() - began < 2
    after = np.concatenate([np.arange(n, n + 3000), np.arange(n, 3 * n, 997)])
    assert planning.power(n - 1, 0.001, 0.0009) < 0.8 <= planning.power(after, 0.001, 0.0009).min()


@pytest.mark.slow
@pytest.mark.parametrize(("r", "p"), [(0.5, 0.4999), (0.01, 0.00999), (1e-8, 0.0)])
def test_hundreds_of_millions_of_rows(r, p):
    began = time.monotonic()
    n = rows_needed(r, p)
    assert time.monotonic() - began < 10
    assert n > 10**8
    after = n + np.unique(np.geomspace(1, 10**9 - n, 2000).round())
    assert planning.power(n - 1, r, p) < 0.8 <= planning.power([n, *after], r, p).min()


def test_more_power_less_delta_and_more_candidates_cost_rows():
    assert rows_needed(0.05, 0.02, power=0.9) > rows_needed(0.05, 0.02)
    assert rows_needed(0.05, 0.02, delta=0.01) > rows_needed(0.05, 0.02)
    assert (
        rows_needed(0.05, 0.02, candidates=6)
        > rows_needed(0.05, 0.02)
        > rows_needed(0.05, 0.02, share=1.0)
    )
    assert rows_needed(0.05, 0.03) > rows_needed(0.05, 0.02) > rows_needed(0.05, 0.01)


# -------------------------------------------------------------------------------- intervals


def test_interval_rows():
    assert interval_rows(0.1, share=1.0) == math.ceil(math.log(0.05) / math.log(0.9)) == 29
    assert interval_rows(0.1) == math.ceil(math.log(0.025) / math.log(0.9)) == 36
    assert interval_rows(0.5, delta=0.25, share=1.0) == 2  # an exact tie


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.1, 0.25, 0.5, 0.9])
# the powers are ties, which logarithms miss
@pytest.mark.parametrize("delta", [0.001, 0.05, 0.5, 0.95**4, 0.75**9])
def test_interval_rows_are_where_the_rank_becomes_finite(alpha, delta):
    n = interval_rows(alpha, delta=delta, share=1.0)
    assert math.isfinite(conformal_rank_pac(n, alpha, delta))
    assert n == 1 or math.isinf(conformal_rank_pac(n - 1, alpha, delta))


def test_the_share_inside_falls_to_what_is_promised():
    answer = plan(interval=0.1)
    assert answer.header[:2] == ("rows", "inside")
    shares = [share for *_, share in answer.table]
    assert shares[0] == 1
    assert shares == sorted(shares, reverse=True)
    assert 0.9 < shares[-1] < 0.91
    assert all(rank == conformal_rank_pac(n, 0.1, 0.025) for n, rank, _ in answer.table)


# -------------------------------------------------------------------------------- sensitivities


@pytest.mark.parametrize(
    ("least", "expected", "share"),
    [(0.9, 1.0, 1.0), (0.9, 0.95, 1.0), (0.8, 0.9, 1 / 12), (0.5, 0.9, 0.5)],
)
def test_sensitivity_rows(least, expected, share):
    answer = sensitivity_rows(least, expected, share=share)
    powers = []
    for n in range(1, 2 * answer + 50):
        # misses 0, 1, …
        passing = clopper_pearson_lower(np.arange(n, -1, -1), n, 0.05 * share) >= least
        powers.append(at_most(np.count_nonzero(passing) - 1, n, 1 - expected))
    assert answer == np.flatnonzero(np.array([0, *powers]) < 0.8)[-1] + 1


def test_rows_holding_is_the_first_that_suffices():
    for positives, prevalence, power in (
        (1, 0.1, 0.8),
        (29, 0.1, 0.8),
        (10, 0.9, 0.99),
        (3, 0.5, 0.3),
    ):
        chances = [1 - at_most(positives - 1, n, prevalence) for n in range(1000)]
        assert (
            rows_holding(positives, prevalence, power)
            == np.flatnonzero(np.array(chances) >= power)[0]
        )


def test_the_chance_with_a_prevalence_counts_both_kinds_of_luck():
    answer = plan(min_sensitivity=0.9, expected_sensitivity=0.95, prevalence=0.2)
    assert answer.rows == rows_holding(sensitivity_rows(0.9, 0.95), 0.2)
    draw = np.random.default_rng(2)
    for n, _, chance in answer.table[1:4]:
        positives = draw.binomial(int(n), 0.2, size=20_000)
        found = draw.binomial(positives, 0.95)
        often = np.mean(clopper_pearson_lower(found, positives, 0.05 / 16) >= 0.9)
        assert often == pytest.approx(chance, abs=4 * math.sqrt(0.25 / 20_000))


def test_many_positives_are_not_all_added():
    """Above four thousand counts some are left out; the chance is as smooth there as if they
    were not.
    """
    answer = plan(min_sensitivity=0.9, expected_sensitivity=0.9015, prevalence=0.5)
    n, _, chance = answer.table[3]
    assert 12 * math.sqrt(n * 0.25) > 4000
    draw = np.random.default_rng(3)
    positives = draw.binomial(int(n), 0.5, size=40_000)
    often = np.mean(
        clopper_pearson_lower(draw.binomial(positives, 0.9015), positives, 0.05 / 16) >= 0.9
    )
    assert often == pytest.approx(chance, abs=4 * math.sqrt(0.25 / 40_000))


# -------------------------------------------------------------------------------- gains


@pytest.mark.parametrize(
    ("n", "least", "gain", "differ"),
    [(300, 0.02, 0.1, 0.2), (200, -0.05, 0.0, 0.06), (60, 0.3, 0.5, 0.5)],
)
def test_the_simulated_power_is_that_of_paired_difference(n, least, gain, differ):
    """Draws of our own, and the theorem itself; powers far from 0 and 1."""
    draw, won = np.random.default_rng(4), 0
    for _ in range(400):
        u = draw.random(n)
        losses, baseline = u < (differ - gain) / 2, (u >= (differ - gain) / 2) & (u < differ)
        won += paired_difference(losses, baseline, 0.05) >= least
    simulated = gain_power(n, least, gain, differ, share=1.0)
    assert 0.1 < simulated < 0.9
    assert won / 400 == pytest.approx(simulated, abs=4 * math.sqrt(0.25 / 400 + 0.25 / 1000))


def test_a_simulated_row_counts_as_the_theorem_counts_it(monkeypatch):
    """The same draws given to the theorem itself, which takes sixty times as long: the same
    answers, not only as many.
    """
    seen = []

    def bets(x, delta, anytime):
        seen.append(x)
        return predictable_bets(x, delta, anytime)

    monkeypatch.setattr("surelearn.planning.gains.predictable_bets", bets)
    simulated = gain_power(150, 0.05, 0.15, 0.3, share=1.0, repeats=301)
    bounds = [
        paired_difference(np.maximum(1 - 2 * x, 0), np.maximum(2 * x - 1, 0), 0.05) for x in seen
    ]
    assert 60 < sum(bound >= 0.05 for bound in bounds) == round(301 * simulated) < 240


def test_gain_rows_reach_the_power_and_not_much_fewer_do():
    n = gain_rows(0.02, 0.05, 0.1)
    assert gain_power(n, 0.02, 0.05, 0.1) >= 0.8
    assert gain_power(round(0.97 * n), 0.02, 0.05, 0.1) < 0.8
    assert gain_rows(0.02, 0.05, 0.1, share=1.0) < n < gain_rows(0.02, 0.05, 0.1, power=0.9)


def test_a_simulation_is_repeatable_and_states_its_error():
    assert gain_power(200, 0.0, 0.1, 0.2) == gain_power(200, 0.0, 0.1, 0.2)
    text = plan(min_gain=0.0, expected_gain=0.1, disagreement=0.2).needs[0].text
    assert text.endswith("± 2.6%)")  # 1.96·√(0.8·0.2/1000) = 2.5%


def test_certain_gains_need_few_rows():
    assert gain_rows(0.5, 1.0, 1.0, share=1.0) < 30


# -------------------------------------------------------------------------------- what the audit re


def certificate_of(**options):
    """Of an audit as anyone runs it: slices are chosen, metrics and calibration are claimed."""
    draw = np.random.default_rng(5)
    frame = pd.DataFrame(draw.normal(size=(400, 2)), columns=["x", "z"])
    frame["y"] = np.where(frame.x + 0.3 * draw.normal(size=400) > 0, "yes", "no")
    model = {"stump": DecisionTreeClassifier(max_depth=1)}
    made = surelearn.audit(
        frame, target="y", models=model, ledger=False, refits=0, skip=skippable(), **options
    )
    assert {"slice_risk", "brier_score", "calibration"} <= {c.quantity for c in made.claims}
    return made.certificate


def test_shares_are_those_of_an_audit():
    plain, positive = certificate_of(), certificate_of(positive="yes")
    assert plain["risk"].delta == positive["risk"].delta == 0.05 * SHARES["risk"]
    assert positive["sensitivity"].delta == pytest.approx(0.05 * SHARES["sensitivity"], rel=1e-12)
    assert plain["gain"].delta == pytest.approx(0.05 * SHARES["gain"], rel=1e-12)
    # as the page of a plan says
    assert positive["gain"].delta == pytest.approx(0.05 / 16, rel=1e-12)
    asked = certificate_of(positive="yes", slices=["z"])
    assert asked["gain"].delta == pytest.approx(0.05 / 18, rel=1e-12)


def test_prediction_sets_have_half_of_what_the_headline_leaves():
    both = certificate_of(positive="yes", sets=0.2)
    assert both["risk"].delta == 0.05 * SHARES["risk"]
    assert both["set_coverage"].delta == 0.05 * SHARES["sets"]
    assert both["sensitivity"].delta == pytest.approx(0.05 * SHARES["sensitivity"] / 2, rel=1e-12)
    alone = plan(sets=0.2)
    assert [need.delta for need in alone.needs] == [0.05 * SHARES["sets"], 0.05]
    assert alone.rows == interval_rows(0.2, share=SHARES["sets"])
    # exactly: with one row less even the largest score covers too little too often
    assert 0.8**alone.rows <= 0.0125 < 0.8 ** (alone.rows - 1)
    asked = {"min_sensitivity": 0.9, "expected_sensitivity": 0.95}
    beside, without = plan(**asked, sets=0.2), plan(**asked)
    assert beside.needs[0].delta == pytest.approx(both["sensitivity"].delta)
    assert beside.rows > without.rows
    assert beside.needs[1] == without.needs[1]
    assert plan(0.05, sets=0.2).needs == plan(0.05).needs  # the headline has its half all the same
    with pytest.raises(ValueError, match="sets are of labels"):
        plan(interval=0.1, sets=0.2)
    with pytest.raises(ValueError, match="sets"):
        plan(sets=1.5)


def test_an_interval_without_a_loss_bound_has_all_of_delta():
    def middle(X):
        return np.zeros(len(X))

    X, y = np.zeros((50, 1)), np.random.default_rng(6).normal(size=50)
    alone = certify(middle, X, y, task="regression")
    beside = certify(middle, X, y, task="regression", loss_bound=10.0)
    assert alone["error_quantile"].delta == 0.05
    assert beside["error_quantile"].delta == 0.05 * SHARES["interval"]


@pytest.mark.parametrize("n", [1, 2, 10, 149, 150, 151, 999, 1000, 5001, 19_999, 20_000, 60_001])
def test_the_allotment_is_that_of_split_rows(n):
    split = split_rows(np.arange(n, dtype=np.uint64))
    assert allotment(n) == (split.fit.size, split.select.size, split.certify.size)


@pytest.mark.parametrize("rows", [100, 250, 900, 1000, 1100])
def test_what_would_be_enough_is_enough_and_no_more(rows):
    answer = plan(0.05, 0.02, rows=rows)
    given = answer.allotment
    held = split_rows(np.arange(rows, dtype=np.uint64)).certify.size
    assert given.certify == held
    assert given.enough == (planning.power(held, 0.05, 0.02) >= 0.8)
    if given.enough:
        assert given.fraction is None
        assert given.total is None
        return
    assert allotment(given.total)[2] >= answer.rows > allotment(given.total - 1)[2]
    enough = [n for n in range(held, rows) if planning.power(n, 0.05, 0.02) >= 0.8]
    if not enough:
        assert given.fraction is None
        return
    split = split_rows(np.arange(rows, dtype=np.uint64), certify=given.fraction)
    assert split.certify.size == enough[0]
    step = 10 ** -max(2, math.ceil(math.log10(rows)))
    assert round((given.fraction - step) * rows) < enough[0]


def test_an_allotment_in_words():
    text = str(plan(0.05, 0.02, rows=1000).allotment)
    assert "fits on 700 and holds back 300" in text
    errors = max(k for k in range(20) if clopper_pearson(k, 300, 0.025) <= 0.05)
    assert f"up to {errors} of them may be wrong" in text
    assert "compares candidates on 2,000" in str(plan(0.05, 0.02, rows=20_000).allotment)
    assert "too few even without an error" in str(plan(0.05, 0.02, rows=100).allotment)
    # it would leave no row to fit on
    assert "--certify" not in str(plan(0.05, 0.02, rows=100).allotment)


def test_the_fraction_of_a_large_table_is_printed_in_full():
    rows = 3_000_000
    given = plan(0.001, 0.0009, rows=rows).allotment
    printed = float(re.search(r"--certify ([\d.]+),", str(given))[1])
    assert planning.power(round(printed * rows), 0.001, 0.0009) >= 0.8
    assert planning.power(round(printed * rows) - 1, 0.001, 0.0009) < 0.8


def test_an_interval_of_an_audit_with_and_without_a_loss_bound():
    both = plan(interval=0.1, rows=200).allotment  # 66 held back
    neither = plan(interval=0.1, rows=50).allotment  # 17
    one = plan(interval=0.1, rows=90).allotment  # 30
    assert both.enough
    assert both.says.count("must contain") == 2
    assert not neither.enough
    assert neither.says.count("too few") == 2
    assert one.says.index("too few") < one.says.index("must contain 30 of them (100.0%)")
    assert split_rows(np.arange(90, dtype=np.uint64), certify=one.fraction).certify.size >= 36


# -------------------------------------------------------------------------------- the answer


@pytest.mark.parametrize(
    "question",
    [
        {"max_risk": 0.05, "expected_risk": 0.02},
        {"interval": 0.2},
        {"min_sensitivity": 0.9, "expected_sensitivity": 0.97},
        {"min_sensitivity": 0.9, "expected_sensitivity": 0.97, "prevalence": 0.3},
        {"min_gain": 0.0, "expected_gain": 0.2, "disagreement": 0.3},
    ],
    ids=["risk", "interval", "positives", "prevalence", "gain"],
)
def test_a_plan_is_complete_and_reads_well(question):
    answer = plan(**question)
    text = str(answer)
    assert answer.rows == answer.needs[0].rows > answer.needs[1].rows
    assert text.index(f"{answer.rows:,}") < text.index(f"{answer.needs[1].rows:,}")
    assert max(map(len, text.splitlines())) <= 125
    assert "nan" not in text
    assert answer.rows in [row[0] for row in answer.table]
    assert len({len(row) for row in answer.table} | {len(answer.header)}) == 1
    for curve, need in zip(answer.curves, answer.needs, strict=True):
        assert curve.label == need.label
        assert len(curve.rows) == len(curve.values) > 5
        assert min(curve.rows) >= 1
        assert all(0 <= value <= 1 for value in curve.values)
        assert max(curve.rows) >= 2 * answer.rows
    assert answer._repr_html_().startswith("<pre>")


def test_the_curves_are_the_power():
    first, second = plan(0.05, 0.02).curves
    assert first.values == tuple(planning.power(first.rows, 0.05, 0.02))
    assert second.values == tuple(planning.power(second.rows, 0.05, 0.02, share=1.0))


def test_candidates_are_explained():
    answer = plan(0.05, 0.02, candidates=6)
    assert answer.rows == rows_needed(0.05, 0.02, candidates=6)
    assert "there it is 1" in str(answer)
    assert "the audit's" not in str(answer)
    assert "there it is 1" not in str(plan(0.05, 0.02))


REFUSED = [
    ({}, "say what to certify"),
    ({"max_risk": 0.05, "interval": 0.1}, "max_risk or interval, not both"),
    (
        {"max_risk": 0.05, "expected_risk": 0.05},
        "expected_risk must be below max_risk 0.05, not 0.05",
    ),
    ({"max_risk": 0.05, "expected_risk": -0.1}, "expected_risk must lie between 0 and 1"),
    ({"max_risk": 1.0}, "max_risk must lie strictly between 0 and 1, not 1.0"),
    ({"max_risk": math.nan}, "max_risk must lie strictly"),
    ({"max_risk": "5%"}, "max_risk must lie strictly between 0 and 1, not '5%'"),
    ({"expected_risk": 0.02}, "expected_risk belongs to max_risk"),
    ({"interval": 0.1, "prevalence": 0.1}, "prevalence belongs to min_sensitivity"),
    ({"interval": 0.0}, "interval must lie strictly"),
    ({"interval": 1e-12}, "more than 1,000,000,000 rows"),
    (
        {"min_sensitivity": 0.9, "expected_sensitivity": 0.9},
        "expected_sensitivity must be above min_sensitivity",
    ),
    ({"min_sensitivity": 0.9, "prevalence": 0.0}, "prevalence must lie strictly"),
    ({"min_sensitivity": 0.9, "prevalence": 1e-12}, "prevalence 1e-12 is so small"),
    ({"min_sensitivity": 0.9, "rows": 100}, "rows needs prevalence"),
    ({"min_gain": 0.02}, "min_gain needs expected_gain and disagreement"),
    (
        {"min_gain": 0.05, "expected_gain": 0.05, "disagreement": 0.1},
        "expected_gain must be above min_gain",
    ),
    (
        {"min_gain": 0.0, "expected_gain": 0.2, "disagreement": 0.1},
        "disagreement must be above 0 and at least",
    ),
    ({"min_gain": -0.1, "expected_gain": 0.0, "disagreement": 0.0}, "disagreement must be above 0"),
    ({"min_gain": -1.0, "expected_gain": 0.0, "disagreement": 0.1}, "min_gain must be above -1"),
    ({"min_gain": 0.0, "expected_gain": 1e-4, "disagreement": 0.1}, "more than 50,000 rows"),
    ({"max_risk": 0.05, "delta": 0.0}, "delta must lie strictly"),
    ({"max_risk": 0.05, "power": 1.0}, "power must lie strictly"),
    ({"max_risk": 0.05, "candidates": 0}, "candidates must be a whole number of at least 1"),
    ({"max_risk": 0.05, "rows": 0}, "rows must be a whole number from 1"),
    ({"max_risk": 0.05, "rows": 10.5}, "rows must be a whole number from 1"),
    ({"max_risk": 1e-10}, "more than 1,000,000,000 rows"),
    ({"max_risk": 0.5, "expected_risk": 0.49999}, "more than 1,000,000,000 rows"),
]


@pytest.mark.parametrize(
    ("question", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED]
)
def test_refusals(question, sentence):
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")) as refused:
        plan(**question)
    assert "\n" not in str(refused.value)


def test_share_and_n_are_checked():
    with pytest.raises(ValueError, match="share must be above 0"):
        rows_needed(0.05, share=0.0)
    for n in (-1, 0.5, math.nan, 2 * 10**9, "many"):
        with pytest.raises(ValueError, match="n must be a whole number"):
            planning.power(n)
    with pytest.raises(ValueError, match=r"1,000,000,000, not -3$"):
        planning.power([1, -3, 2])
    assert planning.power(0) == 0
