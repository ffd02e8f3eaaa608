"""An operating point, chosen and guaranteed: through `certify` near the worst cases, its wrong uses, what
is no longer claimed, and every number of its certificate.
"""

from __future__ import annotations

import copy
import json
import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.simulation import at_most, more_than
from tests.test_verified_to_the_bottom import edit, numbers, read

import surelearn
from surelearn.bounds import clopper_pearson_lower, fixed_sequence_lower
from surelearn.certification import CHOSEN_HERE, uncounted
from surelearn.operating import Requirement, Walk, ladder


class Scored:
    """A model whose probability of class 1 stands in the first column."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return (X[:, 0] >= 0.5).astype(int)

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def certified(X, y, require, thresholds, **options):
    with uncounted():
        return surelearn.certify(
            Scored(), X, y, positive=1, require=require, thresholds=thresholds, **options
        )


def halved(counts, sizes, delta):
    """Clopper and Pearson's lower bounds with half their slack."""
    rate = np.asarray(counts) / np.maximum(sizes, 1)
    return (rate + clopper_pearson_lower(counts, sizes, delta)) / 2


# ── coverage near the worst case ─────────────────────────────────────────────────────────────────────

STEPS = (0.0, 0.2, 0.4, 0.6, 0.8)


def draw(rng, n, positive, of_positives, of_others):
    """Rows of two classes whose scores lie, with the given probabilities, just above each step."""
    y = (rng.random(n) < positive).astype(int)
    steps = np.where(y == 1, rng.choice(5, n, p=of_positives), rng.choice(5, n, p=of_others))
    return (np.asarray(STEPS)[steps] + 0.1)[:, None], y


def test_a_sensitivity_and_the_other_class_hold_together_and_not_with_half_the_slack():
    """The second threshold just misses the level; passing it is the only way to be wrong, and the
    false alarms are counted on the other rows.
    """
    level, n, trials, rng = 0.9, 300, 900, np.random.default_rng(1)
    of_positives = (0.0, 0.1 + 1e-9, 0.1, 0.1, 0.7 - 1e-9)
    of_others = (0.3, 0.4, 0.1, 0.1, 0.1)
    sensitive, specific = 1 - np.cumsum(of_positives)[:4], np.cumsum(of_others)[:4]
    wrong = other = half = other_half = 0
    for _ in range(trials):
        X, y = draw(rng, n, 0.5, of_positives, of_others)
        made = certified(X, y, f"sensitivity >= {level}", STEPS[1:], delta=0.4)
        step, claim, second = made.facts["walk.step"], made["sensitivity"], made["specificity"]
        assert (claim.delta, second.delta) == (pytest.approx(0.2), pytest.approx(0.1))
        wrong += claim.value > sensitive[step]
        half += halved(claim.inputs["counts"][1], claim.inputs["sizes"][1], claim.delta) >= level
        other += second.value > specific[step]
        other_half += (second.measured + second.value) / 2 > specific[step]
    assert at_most(wrong, 0.2, trials), wrong
    assert more_than(wrong, 0.1, trials), wrong  # near the worst case: at half of δ it would fail
    assert more_than(half, 0.2, trials), half
    assert at_most(other, 0.1, trials), other
    assert more_than(other_half, 0.1, trials), other_half


def test_errors_among_the_answered_and_how_many_are_answered_hold_together():
    """Every threshold is just above the allowed error."""
    n, trials, rng, wrong, fewer = 1600, 700, np.random.default_rng(2), 0, 0
    level, cuts = 0.2, (0.9, 0.8, 0.7, 0.6)
    answered = (0.25, 0.5, 0.75, 1.0)
    for _ in range(trials):
        confidence = rng.choice([0.95, 0.85, 0.75, 0.65], n)
        y = (rng.random(n) >= level + 1e-9).astype(int)  # the answer is 1
        made = certified(confidence[:, None], y, f"error <= {level}", cuts, delta=0.4)
        step, claim, share = made.facts["walk.step"], made["selective_error"], made["answered"]
        wrong += claim.value < level + 1e-9
        fewer += share.value > answered[step]
    assert at_most(wrong, claim.delta, trials), wrong
    assert more_than(wrong, claim.delta / 2, trials), wrong
    assert at_most(fewer, share.delta, trials), fewer


def test_a_mean_cost_holds():
    n, trials, rng, wrong = 150, 150, np.random.default_rng(3), 0
    for _ in range(trials):
        y = (rng.random(n) < 0.5).astype(int)
        missed = rng.random(n) < 0.2
        X = np.where((y == 1) & ~missed, 0.9, 0.1)[:, None]
        made = certified(X, y, "mean_cost <= 0.4999999", (0.5,), cost=5.0, delta=0.4)
        wrong += made["mean_cost"].value < 0.5  # in truth 0.5 · 0.2 · 5
    assert at_most(wrong, made["mean_cost"].delta, trials), wrong
    assert wrong > 0


# ── wrong uses ───────────────────────────────────────────────────────────────────────────────────────


def test_a_mutant_that_takes_the_best_threshold_of_the_certified_rows_breaks_its_promise():
    """Precision is just below the level at every threshold; one that other rows chose holds."""
    rng, trials, level = np.random.default_rng(4), 200, 0.7
    broken = {"beforehand": 0, "by these rows": 0}

    def rows():
        X = rng.random((400, 1))
        return X, (rng.random(400) < level - 1e-9).astype(int)

    def best(X, y):
        cuts = np.linspace(0.02, 0.9, 60)
        called = cuts <= X
        found = (called & (y == 1)[:, None]).sum(axis=0)
        return float(cuts[np.argmax(clopper_pearson_lower(found, called.sum(axis=0), 0.2))])

    for _ in range(trials):
        other, (X, y) = rows(), rows()
        for name, chosen in (("beforehand", best(*other)), ("by these rows", best(X, y))):
            made = certified(X, y, f"precision >= {level}", (chosen,), delta=0.4)
            broken[name] += made["precision"].value > level - 1e-9
    assert at_most(broken["beforehand"], 0.2, trials), broken
    assert more_than(broken["by these rows"], 0.2, trials), broken


def test_a_mutant_with_plain_binomial_bounds_beside_a_walk_that_saw_both_classes_breaks_its_promise():
    """The second threshold passes on precision where many positives are found: where their share is
    exaggerated. The band holds; after a walk on specificity the plain bound holds, too.
    """
    rng, trials, n, delta = np.random.default_rng(5), 1500, 200, 0.2
    y = np.repeat([1, 0], [n, 40])
    level = clopper_pearson_lower(106, 146, 0.25)
    truth = {0.6: 0.2, 0.4: 0.5}
    walk = Walk(Requirement("precision", float(level)), (0.6, 0.4), 0.25)
    apart = Walk(Requirement("specificity", 0.8), (0.6, 0.4), 0.25)
    plain = band = untouched = 0
    for _ in range(trials):
        scores = np.where(y == 1, rng.choice([0.7, 0.5, 0.3], y.size, p=[0.2, 0.3, 0.5]), 0.5)
        end = walk.end(walk.count(scores, y == 1, np.asarray))
        right = truth[end["walk.threshold"]]
        plain += clopper_pearson_lower(end["sensitivity.count"], n, delta) > right
        band += end["sensitivity.count"] / n - math.sqrt(math.log(1 / delta) / (2 * n)) > right
        scores[y == 0] = rng.choice([0.5, 0.3], 40, p=[0.1, 0.9])
        end = apart.end(apart.count(scores, y == 1, np.asarray))
        untouched += clopper_pearson_lower(end["sensitivity.count"], n, delta) > truth[end["walk.threshold"]]  # fmt: skip
    assert more_than(plain, delta, trials), plain
    assert at_most(band, delta, trials), band
    assert at_most(untouched, delta, trials), untouched
    assert more_than(untouched, delta / 2, trials), untouched


def test_precision_at_a_chosen_threshold_is_not_bounded_by_what_was_measured_there():
    X, y = np.linspace(0, 1, 400)[:, None], (np.arange(400) >= 100).astype(int)
    made = certified(X, y, "precision >= 0.8", (0.9, 0.5, 0.2))
    claim = made["precision"]
    counts, sizes = (claim.inputs[name][-1] for name in ("counts", "sizes"))
    assert claim.value == 0.8 < clopper_pearson_lower(counts, sizes, claim.delta)
    assert {made[name].theorem for name in ("sensitivity", "specificity")} == {"dkw_lower"}


# ── what the certificate says ────────────────────────────────────────────────────────────────────────


def rows(n=600, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(int)
    return np.clip(rng.normal(0.35 + 0.3 * y, 0.15), 0, 1)[:, None], y


REQUIRED = [
    ("sensitivity >= 0.9", (0.25, 0.3, 0.4, 0.5), {}, ["clopper_pearson_lower", "dkw_distance"]),
    ("specificity >= 0.8", (0.9, 0.6, 0.5, 0.4), {}, ["clopper_pearson_lower", "dkw_distance"]),
    ("precision >= 0.7", (0.7, 0.6, 0.5, 0.4), {}, ["dkw_lower"]),
    ("error <= 0.2", (0.8, 0.7, 0.6, 0.55), {}, ["dkw_lower"]),
    ("mean_cost <= 0.5", (0.4, 0.3), {"cost": 3.0}, ["dkw_lower"]),
]


@pytest.mark.parametrize(("require", "thresholds", "options", "beside"), REQUIRED)
def test_only_what_holds_at_a_chosen_threshold_is_claimed(require, thresholds, options, beside):
    X, y = rows()
    metrics = ("auc", "brier", "log_loss", "calibration", "f1", "balanced_accuracy")
    made = certified(X, y, require, thresholds, metrics=metrics, slices={"first": y < 2}, **options)
    requirement = Requirement.parse(require)
    assert requirement.met_by(made.claims[0].value)
    assert made.claims[0].value == requirement.level
    free = {"auc", "brier_score", "log_loss", "calibration"}
    others = [c for c in made.claims[1:] if c.quantity not in free]
    assert {c.theorem for c in others} == set(beside)
    assert math.fsum(c.delta for c in made.claims) == pytest.approx(0.05)
    assert made.claims[0].delta == pytest.approx(0.025)
    lacking = {item.what for item in made.lacking if item.reason == CHOSEN_HERE}
    assert lacking == {"risk", "class_error", "slice_risk", "f1", "balanced_accuracy"}
    assert made.facts["walk.threshold"] in thresholds
    assert made.verify(Scored(), X, y), made.verify(Scored(), X, y)


@pytest.mark.parametrize(("require", "thresholds", "options", "beside"), REQUIRED)
def test_every_edited_number_is_found(require, thresholds, options, beside):
    X, y = rows(n=200 if "cost" in options else 600)
    made = certified(X, y, require, thresholds, metrics=("auc",), **options)
    plain = json.loads(made.to_json())
    assert read(plain).verify(Scored(), X, y)
    # alpha is that of an interval for numbers: nothing here depends on it
    paths = [p for p in numbers(plain) if p[0] != "version" and p[2:] != ("alpha",)]
    losses = [path for path in paths if path[:3] == ("facts", "values", "walk.losses")]
    for path in [*(p for p in paths if p not in losses), *losses[::37]]:
        certificate = read(edit(plain, path))
        if certificate is None or not certificate.verify():
            continue
        assert path[0] == "facts", path  # by the file alone
        if path[2] in ("classes", "positive"):  # other labels cannot even be measured
            with pytest.raises(ValueError, match=r"label|tuple"):
                certificate.verify(Scored(), X, y)
            continue
        assert not certificate.verify(Scored(), X, y), path


def test_an_edited_end_of_a_walk_is_found_by_the_file_alone():
    X, y = rows()
    made = certified(X, y, "sensitivity >= 0.9", (0.1, 0.3, 0.4, 0.5))
    plain = json.loads(made.to_json())
    for name in ("walk.step", "walk.passed", "walk.threshold", "specificity.count"):
        assert not read(edit(plain, ("facts", "values", name))).verify(), name
    earlier = copy.deepcopy(plain)  # another step, in all that says which one it is
    values = earlier["facts"]["values"]
    values |= {"walk.step": 0, "walk.threshold": 0.1, "walk.passed": 1}
    earlier["claims"][0]["inputs"]["step"] = 0
    assert not read({**earlier, "hash": surelearn.plain.content_hash(earlier)}).verify()
    higher = copy.deepcopy(plain)  # a level that these rows would have passed, too
    higher["claims"][0]["inputs"]["level"] = higher["claims"][0]["value"] = 0.905
    found = read({**higher, "hash": surelearn.plain.content_hash(higher)}).verify()
    assert "its level is not that of the options" in str(found)


def test_where_nothing_passes_the_first_threshold_is_used_and_its_own_bound_claimed():
    X, y = rows(60)
    made = certified(X, y, "sensitivity >= 0.95", (0.0, 0.2, 0.3))
    positives = int((y == 1).sum())
    assert (made.facts["walk.passed"], made.facts["walk.threshold"]) == (0, 0.0)
    assert made["sensitivity"].value == 0.025 ** (1 / positives) < 0.95
    assert made["sensitivity"].value == fixed_sequence_lower([positives], [positives], 0.95, 0, 0.025)  # fmt: skip
    assert made.verify(Scored(), X, y)


def test_a_class_without_rows_is_lacking():
    X, y = rows(80)
    made = certified(X[y == 1], y[y == 1], "sensitivity >= 0.8", (0.0, 0.2))
    assert "specificity" not in {c.quantity for c in made.claims}
    assert any(item.what == "specificity" for item in made.lacking)
    none = certified(X[y == 0], y[y == 0], "sensitivity >= 0.8", (0.0, 0.2))
    assert none["sensitivity"].value == 0.0
    assert none["sensitivity"].vacuous


def test_candidates_share_the_delta_of_the_walk():
    X, y = rows()
    alone, several = (
        certified(X, y, "sensitivity >= 0.9", tuple(np.linspace(0, 0.6, 40)), candidates=k)
        for k in (1, 20)
    )
    assert several["sensitivity"].inputs["delta"] == pytest.approx(0.025 / 20)
    assert several.facts["walk.threshold"] < alone.facts["walk.threshold"]
    assert several.verify(Scored(), X, y)


def test_numbers_are_required_by_their_mean_error():
    rng = np.random.default_rng(6)
    X = rng.random((300, 1))
    y = X[:, 0] + rng.normal(0, 0.1, 300)
    made = surelearn.certify(
        lambda X: X[:, 0], X, y, task="regression", loss_bound=2.0, require="mean_error <= 0.3"
    )
    assert made.facts.options["require"] == "mean_error <= 0.3"
    assert Requirement.parse("mean_error <= 0.3").met_by(made["mean_loss"].value)
    assert made.verify(X=X, y=y)


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sensitvity >= 0.9", "did you mean sensitivity"),
        ("sensitivity <= 0.9", "bounded from below, so write 'sensitivity >= 0.9'"),
        ("error >= 1%", "bounded from above, so write 'error <= 1%'"),
        ("precision > 0.9", "write 'precision >= 0.9'"),
        ("sensitivity >= 95", "or 95%"),
        ("sensitivity >= much", "'much' is not a number"),
        ("sensitivity >= nan", "strictly between 0 and 1"),
        ("mean_cost <= -1", "positive and finite"),
        ("mean_cost <= inf", "positive and finite"),
        ("sensitivity", "as in 'sensitivity >= 0.95'"),
        ("", "as in"),
        (0.95, "as in"),
        ("beauty >= 0.9", "say one of sensitivity"),
    ],
)
def test_bad_requirements_are_refused_in_one_sentence(text, said):
    with pytest.raises(ValueError, match="require") as refused:
        Requirement.parse(text)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 250


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("recall>=95%", "sensitivity >= 0.95"),
        ("Mean cost ≤ 0.2", "mean_cost <= 0.2"),
        ("PPV => 0.5", "precision >= 0.5"),
        (" error  <=  1e-2 ", "error <= 0.01"),
        ("mean-error <= 3", "mean_error <= 3"),
    ],
)
def test_requirements_are_read_as_people_write_them(text, meant):
    assert str(Requirement.parse(text)) == meant
    assert Requirement.parse(meant) == Requirement.parse(text)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"thresholds": None}, "require needs thresholds"),
        ({"thresholds": ()}, "at least one"),
        ({"thresholds": (0.1, math.nan)}, "finite"),
        ({"thresholds": "lowest"}, "finite numbers"),
        ({"thresholds": [0.1] * 2000}, "at most 1,000"),
        ({"positive": None}, "needs positive"),
        ({"require": None}, "thresholds go with require"),
        ({"groups": np.arange(100)}, "groups"),
        ({"weights": np.ones(100), "weight_bound": 2.0}, "weights"),
        ({"cost": 3.0}, "cost and require"),
        ({"require": "mean_cost <= 0.2"}, "cost and require"),
        ({"require": "mean_error <= 3"}, "absolute error of numbers"),
    ],
)
def test_what_does_not_go_together_is_refused(options, said):
    X, y = rows(100)
    given = {"positive": 1, "require": "sensitivity >= 0.9", "thresholds": (0.1,), **options}
    with pytest.raises(ValueError, match=said):
        surelearn.certify(Scored(), X, y, **given)


def test_more_losses_than_can_be_kept_are_refused(monkeypatch):
    monkeypatch.setattr("surelearn.operating.walk.MOST_LOSSES", 150)
    X, y = rows(100)
    with pytest.raises(ValueError, match="fix fewer beforehand"):
        certified(X, y, "mean_cost <= 0.5", (0.4, 0.3), cost=3.0)
    assert certified(X, y, "mean_cost <= 0.5", (0.4,), cost=3.0).claims


def test_a_model_without_scores_is_refused():
    X, y = rows(100)
    with pytest.raises(ValueError, match="gives a score of 1"):
        surelearn.certify(
            lambda X: np.ones(len(X), int), X, y, classes=[0, 1], positive=1,
            require="sensitivity >= 0.9", thresholds=(0.1,),
        )  # fmt: skip


# ── thresholds from other rows ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text", ["sensitivity >= 0.9", "specificity >= 0.8", "precision >= 0.7", "error <= 0.2"]
)
def test_ladders_begin_where_the_requirement_is_surest(text):
    X, y = rows(400, seed=7)
    requirement, scores, good = Requirement.parse(text), X[:, 0], y == 1
    if requirement.quantity == "error":
        scores, good = np.maximum(scores, 1 - scores), (scores >= 0.5) == (y == 1)
    rungs = ladder(requirement, scores, good, 1000, 0.025)
    rising = requirement.quantity == "sensitivity"
    assert list(rungs.thresholds) == sorted(set(rungs.thresholds), reverse=not rising)
    assert requirement.met_by(rungs.expected)
    if requirement.quantity in ("precision", "error"):
        called = 1000 * (scores >= rungs.thresholds[0]).mean()
        least = requirement.level if text.startswith("precision") else 1 - requirement.level
        assert called >= math.log(0.025) / math.log(least)


def test_where_all_rows_are_too_few_the_ladder_begins_with_all_of_them():
    scores, good = np.linspace(0.1, 0.9, 50), np.ones(50, dtype=bool)
    rungs = ladder(
        Requirement.parse("precision >= 0.99"), scores, good, 100, 0.05
    )  # 299 are needed
    assert (rungs.thresholds, rungs.share) == ((0.0,), 1.0)


def test_where_no_threshold_leaves_enough_rows_the_ladder_begins_where_the_bound_comes_nearest():
    """All answers with a confidence of at least 0.8 are right; with all rows it is one in eight."""
    scores = np.linspace(0.5, 1, 200)
    good = (scores >= 0.8) | (np.arange(200) % 5 > 0)
    rungs = ladder(
        Requirement.parse("error <= 0.001"), scores, good, 600, 0.025
    )  # 3,688 are needed
    assert rungs.thresholds[0] == pytest.approx(0.79, abs=0.01)
    assert rungs.expected == 0.0


def walked_with_few_positives(text, trials=60, n=1972, share=0.055):
    """Where walks on ladders from other rows end, their false alarms, and how many thresholds they had."""
    rng, requirement, ends = np.random.default_rng(1), Requirement.parse(text), []
    for _ in range(trials):
        good = rng.random(n) < share
        scores = 1 / (1 + np.exp(2 - rng.normal(size=n) - 3.5 * good))
        part = rng.random(n) < 0.25
        kept = scores[~part], good[~part]
        rungs = ladder(requirement, scores[part], good[part], int((~part).sum()), 0.025)
        walk = Walk(requirement, rungs.thresholds, 0.025)
        end = walk.end(walk.count(*kept, np.asarray))
        called = kept[0] >= end["walk.threshold"]
        alarms, found = called[~kept[1]].mean(), called[kept[1]].mean()
        ends.append((end["walk.threshold"], alarms, found, len(rungs.thresholds)))
    return np.array(ends).T


def test_few_positives_do_not_end_a_walk_where_every_row_is_called():
    """The step between two of 27 positives loses more than 95% allows; with thresholds at scores of all
    rows the walk called every row in 10% of draws, with one for each positive in 77%.
    """
    thresholds, alarms, _, steps = walked_with_few_positives("sensitivity >= 0.95")
    assert np.mean(thresholds == 0) < 0.3
    assert alarms.mean() < 0.4
    assert steps.max() <= 1000


def test_few_others_do_not_end_a_walk_where_no_row_is_called():
    thresholds, alarms, found, _ = walked_with_few_positives("specificity >= 0.95", share=0.945)
    assert np.mean(thresholds == 1) < 0.3
    assert alarms.mean() < 0.05
    assert found.mean() > 0.6


@pytest.mark.parametrize("text", ["precision >= 0.7", "error <= 0.1"])
def test_a_walk_that_calls_more_and_more_rows_takes_small_steps(text):
    rng, requirement = np.random.default_rng(3), Requirement.parse(text)
    scores = np.sort(rng.random(4000))
    good = rng.random(4000) < scores
    if text.startswith("error"):
        scores, good = np.maximum(scores, 1 - scores), (scores >= 0.5) == good
    cuts = ladder(requirement, scores, good, 4000, 0.025).thresholds
    called = np.array([np.sum(scores >= cut) for cut in cuts])
    assert len(cuts) <= 1000
    steps = called[1:] / called[:-1]
    assert steps.max() < 1.15
    assert np.sum(steps < 1.03) > 5  # where the walk is expected to end


def test_a_ladder_needs_no_rows_of_either_class():
    for text in ("sensitivity >= 0.9", "specificity >= 0.8", "precision >= 0.7", "error <= 0.2"):
        for scores, good in ((np.empty(0), np.empty(0, bool)), (np.array([0.5]), np.array([True])),
                             (np.array([3.0, -7.0]), np.array([False, False]))):  # fmt: skip
            rungs = ladder(Requirement.parse(text), scores, good, 100, 0.05)
            assert rungs.thresholds
            assert np.isfinite(rungs.thresholds).all()


def test_a_fitted_model_is_walked_by_its_probabilities_or_its_decision_function():
    from sklearn.svm import LinearSVC

    X, y = rows(900, seed=8)
    for model in (LogisticRegression(), LinearSVC()):
        model.fit(X[:300], y[:300])
        scores = model.decision_function(X) if isinstance(model, LinearSVC) else model.predict_proba(X)[:, 1]  # fmt: skip
        rungs = ladder(Requirement.parse("sensitivity >= 0.9"), scores[300:500], y[300:500] == 1, 400, 0.025)  # fmt: skip
        made = surelearn.certify(
            model, X[500:], y[500:], positive=1, require="sensitivity >= 0.9",
            thresholds=rungs.thresholds,
        )  # fmt: skip
        called = scores[500:] >= made.facts["walk.threshold"]
        assert made["sensitivity"].measured == pytest.approx(called[y[500:] == 1].mean())
        assert made["specificity"].measured == pytest.approx(1 - called[y[500:] == 0].mean())
        assert made["sensitivity"].value == 0.9
