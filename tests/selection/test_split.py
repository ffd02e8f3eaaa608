import numpy as np
import pytest

from surelearn.bounds import clopper_pearson
from surelearn.selection.split import _mix, certify_fraction, group_keys, row_keys, split_rows

PINNED = [2, 3, 6, 11, 16, 17, 19, 24, 25, 26]


def hashes(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2**63, n).astype(np.uint64)


@pytest.mark.parametrize(
    ("n", "fit", "select", "certify"),
    [(150, 100, 0, 50), (1000, 700, 0, 300), (50_000, 35_000, 5_000, 10_000)],
)
def test_the_fractions_follow_n(n, fit, select, certify):
    split = split_rows(hashes(n))
    assert (split.fit.size, split.select.size, split.certify.size) == (fit, select, certify)


def test_every_row_has_one_purpose():
    split = split_rows(hashes(30_000))
    together = np.concatenate([split.fit, split.select, split.certify])
    assert np.array_equal(np.sort(together), np.arange(30_000))


def test_the_split_depends_on_content_not_on_order():
    rows = hashes(1000)
    order = np.random.default_rng(1).permutation(1000)
    there, here = split_rows(rows), split_rows(rows[order])
    assert set(rows[there.certify].tolist()) == set(rows[order][here.certify].tolist())


def test_the_salt_is_fixed():
    """Another salt would give every earlier audit's rows away: these positions must never
    change.
    """
    assert split_rows(np.arange(30, dtype=np.uint64)).certify.tolist() == PINNED


def test_copies_of_a_row_do_not_travel_together():
    rows = np.repeat(hashes(20), 50)
    split = split_rows(rows)
    for content in np.unique(rows):
        share = np.isin(np.flatnonzero(rows == content), split.certify).mean()
        assert 0.05 < share < 0.65


def test_certify_rows_are_a_uniform_draw():
    """Over many tables, a label that has nothing to do with the split is certified as often as
    it should be.
    """
    rng = np.random.default_rng(2)
    shares = []
    for seed in range(400):
        label = rng.random(200) < 0.3
        shares.append(label[split_rows(hashes(200, seed)).certify].mean())
    assert np.mean(shares) == pytest.approx(0.3, abs=4 * np.std(shares) / 20)


def violations(split, contents, trials=500):
    """How often Clopper–Pearson at δ = 0.05 fails for a model that errs on some contents, in
    one population.
    """
    rng, wrong = np.random.default_rng(3), 0
    errs, weights = np.arange(contents.size) % 2 == 0, rng.dirichlet(np.ones(contents.size))
    risk = weights[errs].sum()
    for _ in range(trials):
        drawn = rng.choice(contents.size, 300, p=weights)
        certify = split(contents[drawn])
        wrong += clopper_pearson(int(errs[drawn[certify]].sum()), certify.size, 0.05) < risk
    return wrong / trials


POPULATIONS = [hashes(distinct, seed) for distinct in (2, 4, 16) for seed in range(8)]
ALLOWED = 0.05 + 4 * np.sqrt(0.05 * 0.95 / 500)


def test_rows_that_repeat_keep_the_coverage_in_every_population():
    rates = [
        violations(lambda rows: split_rows(rows).certify, contents) for contents in POPULATIONS
    ]
    assert max(rates) <= ALLOWED


def by_first_draws(key):
    """A split as ours, but by another key of the rows."""
    return lambda rows: np.argsort(_mix(key(rows)), kind="stable")[
        : round(certify_fraction(rows.size) * rows.size)
    ]


def test_mutant_copies_kept_together_break_it():
    assert (
        max(violations(by_first_draws(lambda rows: rows), contents) for contents in POPULATIONS)
        > 0.3
    )


def test_mutant_copies_that_fall_the_same_way_in_every_table_break_it():
    assert (
        max(violations(by_first_draws(row_keys), contents) for contents in POPULATIONS)
        > 2 * ALLOWED
    )


def test_where_no_row_repeats_a_new_row_moves_no_other():
    rows = hashes(1000)
    before, after = split_rows(rows), split_rows(np.append(rows, np.uint64(12345)))
    moved = set(before.certify.tolist()) ^ set(after.certify.tolist())
    assert len(moved - {1000}) <= 1  # the rank at which the held-back rows end


def test_groups_stay_whole():
    groups = np.random.default_rng(0).integers(0, 100, 1000)
    split = split_rows(hashes(1000), groups=groups)
    assert not set(groups[split.fit]) & set(groups[split.certify])
    assert np.unique(groups[split.certify]).size == round(
        certify_fraction(1000) * np.unique(groups).size
    )
    assert group_keys(["a", "b", "a"])[0] == group_keys(np.array(["a"]))[0]


def test_time_certifies_on_the_last_rows():
    time = np.random.default_rng(0).permutation(1000)
    split = split_rows(hashes(1000), time=time)
    assert time[split.certify].min() > time[split.fit].max()
    assert split.order == "time"


def test_groups_and_time_certify_on_new_groups_after_every_row_that_was_fitted_on():
    rng = np.random.default_rng(0)
    begins = np.repeat(rng.permutation(100), 10)
    time = begins + np.tile(np.arange(10) * 3, 100)  # groups overlap
    groups = np.repeat(np.arange(100), 10)
    split = split_rows(hashes(1000), groups=groups, time=time, select=0.1)
    assert time[split.certify].min() > max(time[split.fit].max(), time[split.select].max())
    assert not set(groups[split.certify]) & set(groups[np.union1d(split.fit, split.select)])
    assert set(groups[split.certify]) == set(groups[begins >= begins[split.certify].min()])
    assert (
        split.certify.size
        == 300
        > 1000 - split.fit.size - split.select.size - split.certify.size
        > 0
    )
    with pytest.raises(ValueError, match="use --group or --time alone"):
        split_rows(
            hashes(100), groups=np.repeat(np.arange(10), 10), time=np.tile(np.arange(10), 10)
        )


def test_fractions_can_be_set_and_are_checked():
    split = split_rows(hashes(1000), certify=0.5, select=0.1)
    assert (split.certify.size, split.select.size) == (500, 100)
    with pytest.raises(ValueError, match="certify must be a fraction"):
        split_rows(hashes(10), certify=1.5)
    with pytest.raises(ValueError, match="leave no row"):
        split_rows(hashes(10), certify=0.6, select=0.4)
