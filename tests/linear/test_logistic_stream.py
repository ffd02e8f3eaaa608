"""LIBSVM text from disk: parsed as scikit-learn parses it, fitted as the same rows in memory,
in any order of the file.
"""

from __future__ import annotations

import gzip
import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from tests.making import make

from surelearn.data import pieces
from surelearn.data.sparse_rows import sparse_source
from surelearn.linear import SGD
from surelearn.linear.logistic.learner import LogisticRegression
from surelearn.linear.logistic.stream import read_rows


def bag(n=300, d=40, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = sparse.random(
        n, d, density=0.2, format="csr", random_state=seed, data_rvs=rng.standard_normal
    )
    return X, (X @ rng.normal(size=(d, classes)) * 2 + rng.gumbel(size=(n, classes))).argmax(axis=1)


@pytest.fixture
def file(tmp_path):
    X, y = bag()
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False)
    return tmp_path / "rows.svm"


def gathered(path, width, **options):
    """All rows of a file, and how many parts they were read in."""
    parts = list(read_rows(path, features=width, **options))
    return (
        np.vstack([X.toarray() for X, _ in parts]),
        np.concatenate([labels for _, labels in parts]),
        len(parts),
    )


def set_piece(monkeypatch, size):
    monkeypatch.setattr(pieces, "PIECE", size)


@pytest.mark.parametrize("piece", [7, 97, 1000, 1 << 18])
def test_rows_are_read_as_scikit_learn_reads_them(file, piece, monkeypatch):
    set_piece(monkeypatch, piece)
    X, labels, parts = gathered(file, 40)
    want, y = load_svmlight_file(str(file), n_features=40, zero_based=False)
    np.testing.assert_allclose(X, want.toarray(), rtol=1e-15)
    assert np.array_equal(labels, y)
    assert parts > 1 or piece >= 1000


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
@pytest.mark.parametrize("piece", range(1, 30))
def test_every_line_is_in_one_piece(tmp_path, piece, ending, monkeypatch):
    """Whatever the size of a piece, and in any order of the pieces."""
    set_piece(monkeypatch, piece)
    (tmp_path / "a").write_bytes(("1 1:1\n2\n\n3 1:22222222222\n4 2:1" + ending).encode())
    with sparse_source(tmp_path / "a", 2, "float64") as source:
        in_order, mixed = (
            [label for piece, _ in source.pieces(order) for label in piece.labels.tolist()]
            for order in (None, np.random.RandomState(piece))
        )
        fractions = [fraction for _, fraction in source.pieces()]
    assert in_order == [1, 2, 3, 4]
    assert sorted(mixed) == in_order
    assert sum(fractions) == pytest.approx(1, abs=0.2)


def test_pieces_of_a_pass():
    """Each once, from all over the file, in a new order every pass, the groups of nearly one
    size.
    """
    generator = np.random.RandomState(0)
    one, other = (list(pieces.visits(1000, generator)) for _ in range(2))
    for groups in (one, other):
        assert sorted(np.concatenate(groups).tolist()) == list(range(1000))
        assert {len(group) for group in groups} <= {31, 32}
        assert all(np.ptp(group) > 500 for group in groups)
    assert one[0].tolist() != other[0].tolist()
    assert [group.tolist() for group in pieces.visits(32, generator)] == [list(range(32))]


NUMBERS = [
    "0",
    "1",
    "-1",
    "+2.5",
    ".5",
    "5.",
    "1e3",
    "1E-3",
    "-2.5e+10",
    "123456789012345678901234",
    "1e-320",
    "0.1",
]


@pytest.mark.parametrize(
    "number", [*NUMBERS, "3.14159265358979", "7e22", "1e23", "000.0001234567890123456789", "0e5"]
)
def test_numbers(tmp_path, number):
    (tmp_path / "a").write_text(f"1 1:{number}\n")
    X, _, _ = gathered(tmp_path / "a", 1)
    assert X[0, 0] == pytest.approx(float(number), rel=4e-16, abs=5e-324)


def test_comments_blank_lines_and_line_ends(tmp_path):
    (tmp_path / "a").write_bytes(b"# head\n\n1 2:3 # tail\r\n-1\t1:1  3:2\n  \n+1")
    X, labels, _ = gathered(tmp_path / "a", 3)
    assert X.tolist() == [[0, 3, 0], [1, 0, 2], [0, 0, 0]]
    assert labels.tolist() == [1, -1, 1]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("x 1:2", "not LIBSVM"),
        ("1 1", "not LIBSVM"),
        ("1 1:", "not LIBSVM"),
        ("1 1:2x", "not LIBSVM"),
        ("1 a:2", "not LIBSVM"),
        ("1 1:nan", "not LIBSVM"),
        ("1 1:1e999", "too large"),
        ("1 1:1e", "not LIBSVM"),
        ("1,2,3", "not LIBSVM"),
        ("1 0:2", "outside of 1"),
        ("1 41:2", "outside of 1"),
        ("1 99999999999999999999:2", "not LIBSVM"),
    ],
)
@pytest.mark.parametrize("piece", [1, 10, 1 << 18])
@pytest.mark.parametrize("packed", [False, True])
def test_a_bad_line_is_named(tmp_path, line, word, piece, packed, monkeypatch):
    set_piece(monkeypatch, piece)
    text = f"1 1:1\n0 2:1\n{line}\n1 1:1\n".encode()
    path = tmp_path / ("a.gz" if packed else "a")
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(ValueError, match=f"^{path.name}, line 3: .*{word}"):
        gathered(path, 40)


def test_too_many_labels(tmp_path):
    (tmp_path / "a").write_text("\n".join(f"{k / 8} 1:1" for k in range(5000)))
    with pytest.raises(ValueError, match=r"^a, line 4097 has label number 4,097: a classifier"):
        LogisticRegression().fit_file(tmp_path / "a", features=2)
    (tmp_path / "b").write_text("0.5 1:1\n1.5 1:1\n")
    with pytest.raises(ValueError, match="continuous"):
        LogisticRegression().fit_file(tmp_path / "b", features=2)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_file_is_fitted_as_its_rows_in_memory(tmp_path, average, classes):
    X, y = bag(classes=classes)
    X.sum_duplicates()
    dump_svmlight_file(X, y, str(tmp_path / "a"), zero_based=False)
    (tmp_path / "a.gz").write_bytes(gzip.compress((tmp_path / "a").read_bytes()))
    model = LogisticRegression(epochs=3, finish=None, sgd=SGD(average=average), random_state=0).fit(
        X, y
    )
    for name in ("a", "a.gz"):
        read = LogisticRegression(epochs=3, finish=None, sgd=SGD(average=average), random_state=0)
        read.fit_file(tmp_path / name, features=40)
        np.testing.assert_allclose(read.coef_, model.coef_, atol=1e-10)
        np.testing.assert_allclose(read.intercept_, model.intercept_, atol=1e-10)
        assert read.facts_["n"] == 300
        assert np.array_equal(read.predict(X), model.predict(X))
        assert read.certificate_.verify()


def objective(model, X, y):
    margins = np.where(y == 1, 1, -1) * model.decision_function(X)
    return np.logaddexp(0, -margins).mean() + model.regularization * (
        (model.coef_**2).sum() + model.intercept_[0] ** 2
    )


@pytest.mark.parametrize("passes", [1, 5])
def test_a_file_sorted_by_label_does_no_harm(tmp_path, passes, monkeypatch):
    """In groups of 32 pieces: within two hundredths of the same rows shuffled in memory; read
    in order it is far off.
    """
    set_piece(monkeypatch, 4000)
    X, y = bag(n=8000, d=60)
    X.sum_duplicates()
    order = np.argsort(y, kind="stable")
    dump_svmlight_file(X[order], y[order], str(tmp_path / "sorted"), zero_based=False)
    options = {"regularization": 1e-3, "epochs": passes, "finish": None, "random_state": 0}
    shuffled = objective(make(LogisticRegression, **options).fit(X, y), X, y)
    mixed = make(LogisticRegression, **options).fit_file(tmp_path / "sorted", features=60)
    assert mixed.t_ == 8000 * passes
    assert objective(mixed, X, y) < shuffled * 1.02
    monkeypatch.setattr(
        "surelearn.data.sparse_rows.visits", lambda count, _: np.arange(count).reshape(-1, 1)
    )
    in_order = make(LogisticRegression, **options).fit_file(
        tmp_path / "sorted", features=60, classes=[0, 1]
    )
    assert objective(in_order, X, y) > shuffled * 1.02


def test_the_order_is_reproducible(file, monkeypatch):
    set_piece(monkeypatch, 500)
    one, again, other = (
        LogisticRegression(epochs=2, random_state=seed)
        .fit_file(file, features=40, classes=[0, 1])
        .coef_
        for seed in (0, 0, 1)
    )
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_hashing(file):
    """To a table of 1,024 weights: no entry is lost, and the fit is as good."""
    X, y, _ = gathered(file, 1024, hashed=True)
    plain, _, _ = gathered(file, 40)
    np.testing.assert_allclose(X.sum(axis=1), plain.sum(axis=1), atol=1e-12)
    assert (X != 0).any(axis=0).sum() >= 36
    model = LogisticRegression(epochs=10, random_state=0).fit_file(file, features=1024, hashed=True)
    assert model.coef_.shape == (1, 1024)
    assert model.score(X, y) > 0.8
    for features in (1000, 1, 2**32):
        with pytest.raises(ValueError, match="features"):
            LogisticRegression().fit_file(file, features=features, hashed=True)


def test_consecutive_features_do_not_meet(tmp_path):
    """Fibonacci hashing spreads 512 consecutive indices over 1,024 places without a collision."""
    (tmp_path / "a").write_text("1 " + " ".join(f"{j}:1" for j in range(1, 513)) + "\n")
    X, _, _ = gathered(tmp_path / "a", 1024, hashed=True)
    assert X.max() == 1


def test_the_single_pass_guarantee_of_a_file(file):
    options = {
        "schedule": "constant",
        "step": 0.1,
        "intercept_step": 1,
        "average": True,
        "x_bound": 20.0,
        "norm_bound": 1.0,
    }
    once = make(LogisticRegression, epochs=1, regularization=0.0, **options).fit_file(
        file, features=40
    )
    claim = once.certificate_["excess_risk"]
    assert claim.value == pytest.approx(1 / (0.2 * 300) + 0.1 * 401 / 2, rel=1e-12)
    assert "a single pass: a fresh row each step" in claim.met
    twice = make(LogisticRegression, epochs=2, regularization=0.0, **options).fit_file(
        file, features=40
    )
    with pytest.raises(KeyError, match="2 passes"):
        twice.certificate_["excess_risk"]
    with pytest.raises(KeyError, match="do not keep the rows"):
        LogisticRegression(x_bound=20.0).fit_file(file, features=40).certificate_["risk"]


def test_refusals(file, tmp_path):
    for options in (
        {"l1_regularization": 0.1},
        {"engine": "lazy"},
        {"finish": "newton"},
        {"early_stopping": "training"},
    ):
        with pytest.raises(ValueError, match="a file is"):
            make(LogisticRegression, **options).fit_file(file, features=40)
    with pytest.raises(ValueError, match="x_bound"):
        LogisticRegression(x_bound=0.1).fit_file(file, features=40)
    (tmp_path / "one").write_text("1 1:1\n1 2:1\n")
    (tmp_path / "none").write_text("\n")
    with pytest.raises(ValueError, match="classes="):
        LogisticRegression().fit_file(tmp_path / "one", features=40)
    with pytest.raises(ValueError, match="holds the label 1"):
        LogisticRegression().fit_file(tmp_path / "one", features=40, classes=[0, 2])
    with pytest.raises(ValueError, match="none is empty"):
        LogisticRegression().fit_file(tmp_path / "none", features=40)
    assert math.isfinite(
        LogisticRegression().fit_file(tmp_path / "one", features=2, classes=[0, 1]).intercept_[0]
    )
