"""What is true of every theorem: it computes, certifies, survives JSON, refuses nonsense by
name, and is monotone.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each

from surelearn import bounds
from surelearn.claim import Claim

THEOREMS = bounds.theorems()
BY_KEY = {theorem.key: theorem for theorem in THEOREMS}
WITH_DELTA = [theorem for theorem in THEOREMS if "delta" in theorem.signature.parameters]
few = settings(derandomize=True, deadline=None, max_examples=8)
many = settings(derandomize=True, deadline=None, max_examples=100)

deltas = st.floats(-300, math.log10(0.5)).map(lambda exponent: 10**exponent)
counts = st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
rates = st.floats(0, 1)


def numeric_arguments(theorem):
    options = ("bool", "Literal")
    return [
        name
        for name, p in theorem.signature.parameters.items()
        if not str(p.annotation).startswith(options)
    ]


def is_count(theorem, name):
    return type(theorem.example.get(name)) is int or name in ("ghost", "messages", "errors")


def is_sample(theorem, name):
    return isinstance(theorem.example.get(name), tuple)


def spoiled(theorem, name, value):
    """The example with one argument, or one number of a sample, made wrong."""
    if is_sample(theorem, name):
        value = (*theorem.example[name], value)
    return {**theorem.example, name: value}


def numbers(value):
    return np.atleast_1d(np.asarray(value, dtype=float))


def by_argument(select=None):
    """A case for each theorem and numeric argument."""
    return [
        (f"{t.key}-{name}", (t, name))
        for t in THEOREMS
        for name in numeric_arguments(t)
        if select is None or select(t, name)
    ]


def parameters(cases):
    return [pytest.param(*arguments, id=name) for name, arguments in cases]


def by_key(theorem):
    return theorem.key


# Claims.


def test_the_list_is_complete():
    public = {key for key in bounds.__all__ if hasattr(getattr(bounds, key), "certify")}
    assert public == set(BY_KEY)
    assert len(THEOREMS) >= 57


@pytest.mark.parametrize("theorem", THEOREMS, ids=by_key)
def test_the_example_computes_and_certifies(theorem):
    value = theorem(**theorem.example)
    assert not np.isnan(numbers(value)).any()
    claim = theorem.certify(**theorem.example)
    assert claim.value == claim.recompute() == value
    assert claim.theorem == theorem.key
    assert claim.assumptions == theorem.assumes
    assert claim.confidence == (
        0.95 if theorem.claims.holds.endswith("delta") else theorem.claims.holds
    )
    assert claim.inputs.keys() == theorem.signature.parameters.keys()


@pytest.mark.parametrize("theorem", THEOREMS, ids=by_key)
def test_claims_survive_strict_json(theorem):
    claim = theorem.certify(**theorem.example)
    read = Claim.from_dict(json.loads(json.dumps(claim.to_dict(), allow_nan=False)))
    assert read == claim
    assert read.recompute() == claim.value


@pytest.mark.parametrize(
    ("theorem", "inputs"),
    [
        (bounds.conformal_rank, {"n": 5, "alpha": 0.1}),
        (bounds.conformal_radius, {"residuals": [1.0], "alpha": 0.1, "delta": 0.05}),
        (bounds.empirical_bernstein, {"losses": [0.5], "delta": 0.05}),
        (bounds.sauer, {"n": 10**5, "vc_dimension": 5000}),
    ],
    ids=lambda part: getattr(part, "key", ""),
)
def test_infinite_claims_survive_strict_json(theorem, inputs):
    claim = theorem.certify(**inputs)
    assert claim.value == math.inf
    assert Claim.from_dict(json.loads(json.dumps(claim.to_dict(), allow_nan=False))) == claim


@pytest.mark.parametrize("theorem", [t for t in THEOREMS if t.claims.measured], ids=by_key)
def test_what_was_measured_lies_on_the_claimed_side(theorem):
    claim = theorem.certify(**theorem.example)
    low, high = {"<=": (-math.inf, claim.value), ">=": (claim.value, math.inf), "in": claim.value}[
        claim.relation
    ]
    assert low <= claim.measured <= high


@pytest.mark.parametrize(
    ("theorem", "inputs", "measured"),
    [
        (bounds.clopper_pearson, {}, 0.03),
        (bounds.clopper_pearson, {"errors": 0, "n": 0}, None),
        (bounds.clopper_pearson_lower, {"successes": 21}, 1 / 3),
        (bounds.clopper_pearson_lower, {"successes": 0, "n": 0}, None),
        (bounds.hypergeometric_tail_inversion, {}, 0.05),
        (bounds.floyd_warmuth, {"errors": 9}, 0.025),
        (bounds.floyd_warmuth, {"size": 397, "errors": 1}, 1.0),
        (bounds.floyd_warmuth, {"size": 398}, 0.0),
        (bounds.gibbs_linear_classifier, {"margins": [0.0, 0.5, -0.2, 1.0]}, 0.5),
        (bounds.paired_difference, {}, 0.25),
        (bounds.conformal_radius, {}, 90.0),
    ],
    ids=lambda part: getattr(part, "key", ""),
)
def test_what_was_measured(theorem, inputs, measured):
    assert theorem.certify(**{**theorem.example, **inputs}).measured == (
        measured and pytest.approx(measured)
    )


@pytest.mark.parametrize(
    "theorem", [t for t in WITH_DELTA if t.claims.holds.endswith("delta")], ids=by_key
)
def test_candidates_share_delta(theorem):
    claim = theorem.certify(**theorem.example, candidates=7)
    assert claim.confidence == 0.95
    assert (
        claim.value
        == theorem(**{**theorem.example, "delta": theorem.example["delta"] / 7})
        == claim.recompute()
    )


# Refusals.


@each(
    (f"{theorem.key}-{delta}", (theorem, delta))
    for theorem in WITH_DELTA
    for delta in (0, 1, -0.1, 1.5, math.nan, [0.05, 0.0])
)
def test_impossible_delta_is_refused_by_name(theorem, delta):
    with pytest.raises(ValueError, match="delta"):
        theorem(**{**theorem.example, "delta": delta})


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, math.nan])
@pytest.mark.parametrize(
    "theorem",
    [bounds.conformal_rank, bounds.conformal_rank_pac, bounds.conformal_radius],
    ids=by_key,
)
def test_impossible_alpha_is_refused_by_name(theorem, alpha):
    with pytest.raises(ValueError, match="alpha"):
        theorem(**{**theorem.example, "alpha": alpha})


@each(by_argument())
def test_nan_is_refused_by_name(theorem, name):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        theorem(**spoiled(theorem, name, math.nan))


@each(by_argument())
def test_words_are_refused_by_name(theorem, name):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        theorem(**spoiled(theorem, name, "many"))


def must_not_be_negative(theorem, name):
    free = {  # of either sign
        ("conformal_score", "scores"),
        ("uniform_stability", "risk"),
        ("duality_gap", "primal"),
        ("duality_gap", "dual"),
        ("poisoning_threshold", "inner"),
        ("poisoning_threshold_flipped", "gain"),
        ("poisoning_threshold_reversed", "gain"),
        ("poisoning_threshold_machines", "inner"),
        ("poisoning_threshold_regression", "inner"),
    }
    return (theorem.key, name) not in free and name != "low"


@each(by_argument(must_not_be_negative))
def test_negative_numbers_are_refused_by_name(theorem, name):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        theorem(**spoiled(theorem, name, -2))


@each(by_argument(is_count))
def test_fractions_of_a_count_are_refused_by_name(theorem, name):
    with pytest.raises(ValueError, match=rf"\b{name}\b.* whole number"):
        theorem(**spoiled(theorem, name, 2.5))


AT_LEAST_ONE = {
    "n",
    "rounds",
    "index",
    "ghost",
    "k",
    "d",
    "parameters",
    "operations",
    "inputs_per_unit",
    "messages",
}


def must_be_positive(theorem, name):
    # no rows: the bound is 1, or 0
    return name in AT_LEAST_ONE and not theorem.key.startswith(("clopper_pearson", "f1_lower"))


@each(by_argument(must_be_positive))
def test_empty_counts_are_refused_by_name(theorem, name):
    with pytest.raises(ValueError, match=rf"\b{name}\b must be at least 1"):
        theorem(**spoiled(theorem, name, 0))


POSITIVE = {
    "radius",
    "margin",
    "regularization",
    "loss_bound",
    "c",
    "smoothness",
    "strong_convexity",
    "norm_bound",
    "scale",
}


@each(by_argument(lambda _, name: name in POSITIVE))
def test_zero_is_refused_by_name_where_it_would_divide(theorem, name):
    with pytest.raises(ValueError, match=rf"\b{name}\b must"):
        theorem(**spoiled(theorem, name, 0.0))


def must_be_a_rate(theorem, name):
    return name == "margin_error" or (name == "risk" and "loss_bound" not in theorem.example)


@each(by_argument(must_be_a_rate))
def test_rates_above_one_are_refused_by_name(theorem, name):
    with pytest.raises(ValueError, match=rf"\b{name}\b must lie in \[0, 1\], not 1.05"):
        theorem(**spoiled(theorem, name, 1.05))


# the others of their example's numbers ask for more
LARGER = (bounds.boosting_margin_vc, bounds.row_weighted_betting)


@pytest.mark.parametrize("theorem", [t for t in THEOREMS if t not in LARGER], ids=by_key)
def test_counts_of_one_are_enough(theorem):
    ones = {name: 1 for name in theorem.example if is_count(theorem, name)}
    assert not np.isnan(numbers(theorem(**{**theorem.example, **ones}))).any()


@each(by_argument(is_count))
def test_infinite_counts_are_refused_by_name(theorem, name):
    with pytest.raises(ValueError, match="whole number"):
        theorem(**spoiled(theorem, name, math.inf))


@each(by_argument(lambda t, name: not is_count(t, name)))
def test_infinite_numbers_are_refused_by_name_or_give_a_number(theorem, name):
    try:
        value = theorem(**spoiled(theorem, name, math.inf))
    except ValueError as refusal:
        assert name in str(refusal)  # noqa: PT017 - both outcomes are right
    else:
        assert not np.isnan(numbers(value)).any()


@each(by_argument(is_sample))
def test_samples_are_vectors(theorem, name):
    for value in (0.1, [], [[0.1, 0.2]]):
        with pytest.raises(ValueError, match=rf"\b{name}\b"):
            theorem(**{**theorem.example, name: value})


# Arrays.


def next_to(value):
    return value + 1 if isinstance(value, int) else 0.9 * value + 0.01


def broadcasts(theorem, name):
    return str(theorem.signature.parameters[name].annotation).startswith(
        "npt.ArrayLike"
    ) and not is_sample(theorem, name)


@pytest.mark.parametrize("theorem", THEOREMS, ids=by_key)
def test_arrays_give_the_scalars_elementwise(theorem):
    names = [name for name in theorem.example if broadcasts(theorem, name)]
    pairs = {name: [theorem.example[name], next_to(theorem.example[name])] for name in names}
    for together in (*({name: pair} for name, pair in pairs.items()), pairs):
        if not together:
            continue
        scalars = [
            theorem(**{**theorem.example, **{name: pair[i] for name, pair in together.items()}})
            for i in (0, 1)
        ]
        array = theorem(**{**theorem.example, **together})
        np.testing.assert_allclose(array, np.transpose(scalars), rtol=1e-12)
        column = theorem(
            **{
                **theorem.example,
                **{name: np.reshape(pair, (2, 1)) for name, pair in together.items()},
            }
        )
        np.testing.assert_array_equal(np.reshape(column, np.shape(array)), array)


@pytest.mark.parametrize("theorem", THEOREMS, ids=by_key)
def test_scalars_give_plain_floats(theorem):
    value = theorem(**theorem.example)
    assert {type(part) for part in (value if isinstance(value, tuple) else (value,))} == {float}


# Limits and ranges.


@pytest.mark.parametrize("theorem", WITH_DELTA, ids=by_key)
def test_tiny_delta_costs_something_but_breaks_nothing(theorem):
    sure = numbers(theorem(**{**theorem.example, "delta": 1e-300}))
    usual = numbers(theorem(**theorem.example))
    assert not np.isnan(sure).any()
    outwards = {"<=": [1], ">=": [-1], "in": [-1, 1], "=": [1]}[theorem.claims.relation]
    assert (outwards * (sure - usual) > 0).all()


@given(counts, deltas)
@many
def test_count_bounds_stay_in_range_and_around_the_rate(count, delta):
    errors, n = count
    low, high = bounds.clopper_pearson_interval(errors, n, delta)
    assert 0 <= low <= errors / n <= high <= 1
    assert low <= bounds.clopper_pearson_lower(errors, n, delta) <= errors / n
    assert errors / n <= bounds.clopper_pearson(errors, n, delta) <= high
    assert errors / n <= bounds.chernoff_kl(errors / n, n, delta) <= 1


@given(counts, deltas)
@many
def test_binomial_below_kl_below_hoeffding(count, delta):
    errors, n = count
    binomial, kl = (
        bounds.clopper_pearson(errors, n, delta),
        bounds.chernoff_kl(errors / n, n, delta),
    )
    assert binomial <= kl * (1 + 1e-12)
    assert kl <= bounds.hoeffding(errors / n, n, delta) * (1 + 1e-12)


@given(counts, deltas)
@many
def test_compression_bounds_stay_in_range(count, delta):
    size, n = count
    assert 0 < bounds.campi_garatti(size, n, delta) <= 1
    rest = n - size
    for errors in {0, rest // 2, rest}:
        assert errors / max(rest, 1) <= bounds.floyd_warmuth(size, n, delta, errors=errors) <= 1


@given(rates, st.floats(0, 1e3), st.integers(1, 10**6), deltas)
@many
def test_pac_bayes_stays_in_range_and_below_its_relaxations(risk, kl, n, delta):
    tight = bounds.pac_bayes_kl(risk, kl, n, delta)
    assert risk <= tight <= 1
    assert tight <= bounds.pac_bayes_quadratic(risk, kl, n, delta) * (1 + 1e-12)
    assert tight <= bounds.mcallester(risk, kl, n, delta) * (1 + 1e-12)
    assert bounds.chernoff_kl(risk, n, delta) <= tight * (1 + 1e-12)


@given(st.lists(rates, min_size=1, max_size=40), deltas, st.booleans())
@many
def test_betting_stays_in_range_and_around_the_mean(losses, delta, anytime):
    low, high = bounds.betting_interval(losses, delta, anytime)
    assert 0 <= low <= np.mean(losses) * (1 + 1e-12)
    assert np.mean(losses) * (1 - 1e-12) <= high <= 1
    assert low <= high
    assert bounds.empirical_bernstein(losses, delta) >= np.mean(losses)
    assert -1 <= bounds.paired_difference(losses, losses[::-1], delta) <= 1e-12


@given(
    st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.integers(1, 10),
    deltas,
)
@few
def test_hypergeometric_stays_in_range_and_below_vc(count, d, delta):
    errors, n = count
    value = bounds.hypergeometric_tail_inversion(errors, n, delta, d)
    assert max(errors / n, 1 / (4 * n)) <= value <= 1
    if n >= d:
        assert value <= bounds.vc(errors / n, n, delta, d)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), deltas)
@settings(few, max_examples=4)
def test_gibbs_stays_in_range(margins, delta):
    gibbs = bounds.gibbs_linear_classifier(margins, delta)
    assert 0 < gibbs <= 1
    assert bounds.deterministic_linear_classifier(margins, delta) == 2 * gibbs


@given(st.integers(1, 10**4), st.floats(1e-6, 1 - 1e-6), deltas)
@many
def test_a_rank_that_covers_surely_covers_on_average(n, alpha, delta):
    rank, sure = bounds.conformal_rank(n, alpha), bounds.conformal_rank_pac(n, alpha, delta)
    assert 1 <= rank <= n or rank == math.inf
    # at δ ≤ ½ the median of Bin(n, 1 − α) is passed, which lies next to its mean
    assert rank - 1 <= sure
    assert sure <= n or sure == math.inf


@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-12])
def test_one_row(delta):
    assert bounds.clopper_pearson(0, 1, delta) == pytest.approx(1 - delta, rel=1e-12)
    assert bounds.clopper_pearson(1, 1, delta) == 1.0
    assert bounds.clopper_pearson_lower(1, 1, delta) == pytest.approx(delta, rel=1e-12)
    assert bounds.clopper_pearson_lower(0, 1, delta) == 0.0
    assert bounds.chernoff_kl(0.0, 1, delta) == pytest.approx(1 - delta, rel=1e-12)
    assert bounds.chernoff_kl(1.0, 1, delta) == 1.0
    assert bounds.floyd_warmuth(0, 1, delta) == pytest.approx(1 - delta / 2, rel=1e-12)
    assert bounds.hypergeometric_tail_inversion(1, 1, delta, 1) == 1.0
    assert bounds.pac_bayes_kl(0.0, 0.0, 1, delta) == pytest.approx(1 - delta / 2, rel=1e-12)


def test_no_rows():
    assert bounds.clopper_pearson(0, 0, 0.05) == 1.0
    assert bounds.clopper_pearson_lower(0, 0, 0.05) == 0.0


# Monotonicity.


@pytest.mark.parametrize("theorem", WITH_DELTA, ids=by_key)
@given(pair=st.tuples(deltas, deltas).map(sorted))
@few
def test_more_confidence_never_tightens(theorem, pair):
    sure, loose = (numbers(theorem(**{**theorem.example, "delta": delta})) for delta in pair)
    slack = 1e-12 * (1 + abs(loose))
    outwards = {"<=": [1], ">=": [-1], "in": [-1, 1], "=": [1]}[theorem.claims.relation]
    finite = np.isfinite(loose)
    assert (outwards * np.subtract(sure, loose, where=finite, out=np.zeros_like(sure)) >= -slack)[
        finite
    ].all()
    assert (sure[~finite] == loose[~finite]).all()


RISING = {
    *(
        "errors",
        "successes",
        "risk",
        "margin_error",
        "kl",
        "log_growth",
        "vc_dimension",
        "size",
        "rounds",
        "index",
    ),
    *(
        "messages",
        "norm",
        "radius",
        "beta",
        "loss_bound",
        "lipschitz",
        "x_bound",
        "y_bound",
        "total_step",
        "passes",
    ),
    *(
        "parameters",
        "operations",
        "exponentials",
        "inputs_per_unit",
        "distance",
        "gap",
        "norm_bound",
    ),
    *("primal", "rounding"),
}


def rises(theorem, name):
    # Theorem 3.5's k jumps with V; a larger loss_bound must not be stated below the losses; a lower
    # bound falls.
    lower = theorem.key == "poisoning_threshold_moved" and name in ("norm", "x_bound")
    known = (
        name in RISING
        and (theorem.key, name) != ("boosting_margin_vc", "vc_dimension")
        and not lower
    )
    return known and (name in theorem.example or name in ("messages", "errors"))


@pytest.mark.parametrize(("theorem", "name"), parameters(by_argument(rises)))
@given(steps=st.tuples(st.integers(0, 20), st.integers(1, 20)))
@few
def test_bounds_rise_with_what_makes_things_worse(theorem, name, steps):
    start = theorem.example.get(name, theorem.signature.parameters[name].default)
    unit = 1 if is_count(theorem, name) else 0.01
    if name == "successes":
        start -= 40
    before, after = (
        theorem(**{**theorem.example, name: start + unit * s}) for s in (steps[0], sum(steps))
    )
    assert np.all(np.greater_equal(after, np.multiply(before, 1 - 1e-12)))
    # powers of two; all labellings from d = n on
    if name not in ("norm", "radius") and theorem is not bounds.sauer:
        assert np.all(np.greater(after, before))


FALLING = {"regularization", "strong_convexity", "margin", "iterations"}


def falls(theorem, name):
    upper = theorem.key != "poisoning_threshold_moved"  # a lower bound, which a penalty raises
    # the slope of loss and penalty together, which grows with both
    upper = upper and theorem.key != "sgd_lipschitz"
    # whose k jumps with θ, too
    return name in FALLING and upper and theorem.key != "boosting_margin_vc"


@pytest.mark.parametrize(("theorem", "name"), parameters(by_argument(falls)))
@given(factors=st.tuples(st.integers(1, 5), st.integers(2, 5)))
@few
def test_bounds_fall_with_what_makes_things_better(theorem, name, factors):
    start = theorem.example[name] / (1 if is_count(theorem, name) else 25)
    before, after = (
        theorem(**{**theorem.example, name: start * f}) for f in (factors[0], math.prod(factors))
    )
    assert after <= before
    assert after < before or name == "margin"


WITH_ROWS = [
    theorem
    for theorem in WITH_DELTA
    if {"risk", "margin_error"} & theorem.example.keys()
    and "n" in theorem.example
    and theorem.key != "boosting_margin_vc"
]


@pytest.mark.parametrize("theorem", WITH_ROWS, ids=by_key)
@given(factors=st.tuples(st.integers(1, 10), st.integers(2, 10)))
@few
def test_more_rows_at_the_same_risk_tighten(theorem, factors):
    def value(factor):
        inputs = {**theorem.example, "n": theorem.example["n"] * factor}
        if "beta" in inputs:  # as the constants of learners do
            inputs["beta"] /= factor
        return theorem(**inputs)

    assert value(math.prod(factors)) < value(factors[0])


@pytest.mark.parametrize(
    ("theorem", "count"),
    [
        (bounds.clopper_pearson, "errors"),
        (bounds.hypergeometric_tail_inversion, "errors"),
        (bounds.campi_garatti, "size"),
        (bounds.floyd_warmuth, "size"),
    ],
    ids=lambda part: getattr(part, "key", part),
)
@given(
    share=st.tuples(st.integers(0, 30), st.integers(31, 60)),
    factors=st.tuples(st.integers(1, 4), st.integers(2, 4)),
)
@few
def test_more_rows_at_the_same_rate_tighten(theorem, count, share, factors):
    few_rows, more_rows = (
        theorem(**{**theorem.example, count: share[0] * factor, "n": share[1] * factor})
        for factor in (factors[0], math.prod(factors))
    )
    assert more_rows < few_rows or few_rows == 1


@given(counts.filter(lambda c: c[0] < c[1]), st.integers(2, 20), deltas)
@many
def test_lower_bounds_rise_with_rows_at_the_same_rate(count, factor, delta):
    successes, n = count
    few_rows, more_rows = (
        bounds.clopper_pearson_lower(successes * f, n * f, delta) for f in (1, factor)
    )
    assert few_rows * (1 - 1e-12) <= more_rows
