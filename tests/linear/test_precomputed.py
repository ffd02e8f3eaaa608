"""A kernel matrix in place of rows: support vector machines, perceptrons and the selection
between them.
"""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict
from sklearn.svm import SVC
from sklearn.utils import get_tags

from surelearn.auditing import audit
from surelearn.kernel import Compute, EigenProClassifier
from surelearn.kernel.functions import Gaussian, Laplace, Linear, Matern, Polynomial, Precomputed
from surelearn.kernel.precomputed import check_matrix
from surelearn.linear import Perceptron, SupportVectorMachine
from surelearn.linear.svm.machine import MarginProblem, train
from surelearn.linear.svm.optimality import optimality
from surelearn.persistence import load, save
from surelearn.selection import nested_cross_validation, select

KERNELS = [
    Gaussian(bandwidth=1.0),
    Laplace(1.5),
    Matern(1.0, nu=2.5),
    Linear() + 0.5 * Gaussian(bandwidth=0.7071),
    Linear() * Polynomial(2),
]
LEARNERS = [
    SupportVectorMachine(),
    SupportVectorMachine(fit_intercept=False, C=10.0),
    SupportVectorMachine(regularize_intercept=False),
    Perceptron(),
    Perceptron(averaged=True, shuffle=True, validation_fraction=0.2, random_state=0, patience=5),
]
RICH = [
    SupportVectorMachine(margin="hard"),
    SupportVectorMachine(margin="hard", regularize_intercept=False),
]


def words(learner):
    """A short name for a test."""
    usual = type(learner)().get_params(deep=False)
    changed = {k: v for k, v in learner.get_params(deep=False).items() if v != usual[k]}
    return f"{type(learner).__name__} {changed}"


def rows(n=60, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 20, 3))
    score = X[:, 0] * X[:, 1] + 0.3 * X[:, 2]
    y = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    return X[:n], y[:n], X[n:]


@pytest.mark.parametrize("k", KERNELS, ids=repr)
@pytest.mark.parametrize("learner", LEARNERS, ids=words)
def test_the_matrix_does_what_the_kernel_does(learner, k):
    X, y, new = rows()
    plain = learner.set_params(kernel=k).fit(X, y)
    found = plain.decision_function(new)
    looked = learner.set_params(kernel="precomputed").fit(k.gram(X), y)
    np.testing.assert_allclose(looked.decision_function(k(new, X)), found, rtol=1e-6, atol=1e-7)
    assert (looked.predict(k(new, X)) == looked.classes_[(found > 0).astype(int)]).all()
    assert looked.support_vectors_ is None


@pytest.mark.parametrize(
    "learner",
    [LEARNERS[0], LEARNERS[2], LEARNERS[3], Perceptron(multiclass="one_vs_one")],
    ids=words,
)
def test_several_classes_and_weights(learner):
    X, y, new = rows(90, classes=3)
    k = Gaussian(bandwidth=0.7071)
    weights = {} if isinstance(learner, Perceptron) else {"sample_weight": np.arange(90) % 4}
    one = learner.set_params(kernel=k).fit(X, y, **weights).decision_function(new)
    other = (
        learner.set_params(kernel=Precomputed())
        .fit(k.gram(X), y, **weights)
        .decision_function(k(new, X))
    )
    np.testing.assert_allclose(one, other, atol=1e-7)


@pytest.mark.parametrize("learner", RICH, ids=words)
def test_hard_margins(learner):
    X, y, new = rows()
    k = Gaussian(bandwidth=0.5)
    one = learner.set_params(kernel=k).fit(X, y).decision_function(new)
    other = learner.set_params(kernel="precomputed").fit(k.gram(X), y).decision_function(k(new, X))
    np.testing.assert_allclose(one, other, atol=1e-7)


def test_the_gaussian_matrix_to_ten_digits():
    X, y, new = rows()
    k = Gaussian(bandwidth=1.0)
    for one, other in (
        (
            SupportVectorMachine(kernel=k, tol=1e-12),
            SupportVectorMachine(kernel="precomputed", tol=1e-12),
        ),
        (Perceptron(kernel=k), Perceptron(kernel="precomputed")),
    ):
        values = one.fit(X, y).decision_function(new)
        np.testing.assert_allclose(
            other.fit(k.gram(X), y).decision_function(k(new, X)), values, rtol=1e-10, atol=1e-10
        )


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_the_objective_is_that_of_libsvm(C):
    X, y, _ = rows()
    K, signs = Laplace(1.0).gram(X), np.where(y == 1, 1.0, -1.0)

    def objective(model):
        weights = np.zeros(y.size)
        weights[model.support_] = np.ravel(model.dual_coef_)
        hinge = np.maximum(0.0, 1.0 - signs * (K @ weights + model.intercept_[0]))
        return weights @ K @ weights / 2 + C * hinge.sum()

    ours = SupportVectorMachine(kernel="precomputed", regularize_intercept=False, C=C).fit(K, y)
    peer = objective(SVC(kernel="precomputed", C=C, tol=1e-10).fit(K, y))
    # theirs, in single precision, may be above
    assert objective(ours) == pytest.approx(peer, rel=1e-5)
    assert objective(ours) - peer <= ours.certificate_["suboptimality"].value
    assert ours.certificate_["suboptimality"].value <= 1e-6 * peer


def test_what_is_claimed_of_a_matrix():
    X, y, _ = rows()
    K = Gaussian(bandwidth=1.0).gram(X)
    svm = SupportVectorMachine(kernel="precomputed").fit(K, y).certificate_
    reasons = {absent.theorem: absent.reason for absent in svm.lacking}
    assert set(reasons) == {
        "beta_near_minimizer",
        "stability_near_minimizer",
        "rademacher_margin",
    }, reasons
    assert all("nothing bounds k(x, x) at new ones" in reason for reason in reasons.values())
    compressed = next(claim for claim in svm.claims if claim.theorem == "campi_garatti")
    assert any(
        "one kernel, fixed before seeing the rows" in line for line in compressed.assumptions
    )
    same = SupportVectorMachine(kernel=Gaussian(bandwidth=1.0)).fit(X, y).certificate_
    assert compressed.value == pytest.approx(
        next(c.value for c in same.claims if c.theorem == "campi_garatti")
    )
    settled = Perceptron(kernel="precomputed").fit(K, y)
    assert settled.facts_["mistakes"] <= settled.certificate_["mistakes"].value
    assert any("one kernel" in line for line in settled.certificate_["risk"].assumptions)
    assert svm.verify()
    with pytest.raises(ValueError, match="x_bound is about rows"):
        SupportVectorMachine(kernel="precomputed", x_bound=5.0).fit(K, y)
    machine = EigenProClassifier(
        "precomputed", regularization=0.1, compute=Compute(device="cpu")
    ).fit(K, y)
    assert any("nothing bounds k(x, x)" in absent.reason for absent in machine.certificate_.lacking)


@pytest.mark.parametrize(
    "learner",
    [LEARNERS[0], LEARNERS[3], EigenProClassifier(compute=Compute(device="cpu"))],
    ids=words,
)
def test_cross_validation_and_selection_cut_rows_and_columns(learner):
    X, y, _ = rows()
    k = Gaussian(bandwidth=1.0)
    K = k.gram(X)
    plain, looked = (clone(learner).set_params(kernel=kernel) for kernel in (k, "precomputed"))
    assert get_tags(looked).input_tags.pairwise
    assert not get_tags(plain).input_tags.pairwise
    assert (cross_val_predict(plain, X, y, cv=4) == cross_val_predict(looked, K, y, cv=4)).all()
    options = {"task": "classification", "random_state": 0, "n_jobs": 1}
    on_rows, on_matrix = (
        select({"it": plain}, X, y, **options),
        select({"it": looked}, K, y, **options),
    )
    np.testing.assert_array_equal(on_rows.losses, on_matrix.losses)
    assert nested_cross_validation({"it": looked}, K, y, **options).value == pytest.approx(
        nested_cross_validation({"it": plain}, X, y, **options).value
    )
    with pytest.raises(ValueError, match="candidates must all take rows, or all a kernel matrix"):
        nested_cross_validation({"rows": plain, "matrix": looked}, K, y, **options)


@pytest.mark.parametrize("learner", [LEARNERS[0], LEARNERS[3]], ids=words)
def test_saved_and_loaded(learner, tmp_path):
    X, y, new = rows()
    k = Matern(1.0)
    model = learner.set_params(kernel="precomputed").fit(k.gram(X), y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(
        again.decision_function(k(new, X)), model.decision_function(k(new, X))
    )
    assert again.certificate_.to_dict() == model.certificate_.to_dict()


@pytest.mark.parametrize("learner", [LEARNERS[0], LEARNERS[3]], ids=words)
def test_matrices_that_are_none(learner):
    X, y, new = rows()
    K, made = Gaussian(bandwidth=0.7071).gram(X), learner.set_params(kernel="precomputed")
    with pytest.raises(
        ValueError,
        match=r"^X must be the square matrix k\(x_i, x_j\) of the training rows, not of shape",
    ):
        made.fit(K[:, :50], y)
    bent = K.copy()
    bent[0, 1] += 0.1
    with pytest.raises(ValueError, match=r"^X must be a symmetric kernel matrix"):
        made.fit(bent, y)
    with pytest.raises(
        ValueError,
        match=r"^X must be a positive semidefinite matrix, but it is not a kernel: Σ c_i c_j",
    ):
        made.fit(K - 0.5 * np.eye(60), y)
    holed = K.copy()
    holed[3, 7] = np.nan
    with pytest.raises(ValueError, match=r"^X holds NaN or infinity, first in row 3, column 7"):
        made.fit(holed, y)
    made.fit(K, y)
    with pytest.raises(ValueError, match=r"^X holds NaN or infinity, first in row 3, column 7"):
        made.predict(holed)
    with pytest.raises(ValueError, match="50 features"):
        made.predict(Gaussian(bandwidth=0.7071)(new, X)[:, :50])


def test_rounding_is_no_fault():
    X, y, _ = rows(200)
    K = Gaussian(bandwidth=5.0).gram(X)
    assert np.linalg.eigvalsh(K)[0] < 1e-12
    single = K.astype(np.float32)
    shifts = [
        check_matrix(matrix)[1] for matrix in (K, K + np.triu(np.full_like(K, 1e-14)), single)
    ]
    assert shifts[0] <= shifts[1] < 1e-8 < shifts[2] < 1e-2
    exact = check_matrix(K + np.triu(np.full_like(K, 1e-14)))[0]
    assert (exact == exact.T).all()
    assert 0.0 < SupportVectorMachine(kernel="precomputed").fit(single, y).record_.gap < 0.1


@pytest.mark.parametrize("intercept", ["none", "regularized"])
def test_the_gap_covers_what_the_diagonal_lacks(intercept):
    X, y, _ = rows()
    K, signs, upper, shift = (
        Gaussian(bandwidth=0.7071).gram(X),
        np.where(y == 1, 1.0, -1.0),
        np.full(60, 2.0),
        0.05,
    )
    problem = MarginProblem(K, signs, upper, Precomputed(), intercept, shift)
    machine = train(problem, tol=1e-9, passes=1000, random=np.random.RandomState(0))
    proof = optimality(problem, machine)
    whole = K + shift * np.eye(60) + problem.padding
    weights = machine.alpha * signs
    dual = machine.alpha.sum() - weights @ whole @ weights / 2
    primal = weights @ whole @ weights / 2 + upper @ np.maximum(
        0.0, 1.0 - signs * (whole @ weights)
    )
    assert proof is not None
    assert 1e-6 < primal - dual <= proof.gap


def test_a_large_matrix_is_looked_at_in_part(monkeypatch):
    X, y, _ = rows()
    monkeypatch.setattr("surelearn.kernel.precomputed.MOST_ROWS", 20)
    monkeypatch.setattr("surelearn.linear.svm.record.MOST_ROWS", 20)
    model = SupportVectorMachine(kernel="precomputed").fit(Gaussian(bandwidth=0.7071).gram(X), y)
    assert any(
        "rows were looked at" in line for line in model.certificate_["suboptimality"].assumptions
    )
    with pytest.raises(ValueError, match="positive semidefinite"):
        model.fit(Gaussian(bandwidth=0.7071).gram(X) - 0.5 * np.eye(60), y)


@pytest.mark.parametrize(
    "k", [Linear(), Polynomial(2), Gaussian(bandwidth=1.0), Laplace(1.0), KERNELS[3]], ids=repr
)
@pytest.mark.parametrize("learner", [LEARNERS[0], LEARNERS[2], LEARNERS[3]], ids=words)
def test_sparse_rows(learner, k):
    X, y, new = rows()
    X, new = X * (np.abs(X) > 0.3), new * (np.abs(new) > 0.3)
    found = learner.set_params(kernel=k).fit(X, y).decision_function(new)
    for kind in (sparse.csr_array, sparse.csr_matrix):
        other = learner.fit(kind(X), y).decision_function(kind(new))
        np.testing.assert_allclose(other, found, rtol=1e-6, atol=1e-6)


def test_a_sparse_matrix_of_values():
    X, y, new = rows()
    k = Linear()
    X, new = X * (X > 0), new * (new > 0)
    for learner in (LEARNERS[0], LEARNERS[3]):
        model = learner.set_params(kernel="precomputed").fit(sparse.csr_array(k.gram(X)), y)
        same = model.decision_function(sparse.csr_array(k(new, X)))
        np.testing.assert_allclose(same, model.decision_function(k(new, X)), rtol=1e-12, atol=1e-12)
        holed = sparse.csr_array(np.where(np.arange(60) == 7, np.nan, k(new, X)))
        with pytest.raises(ValueError, match="first in row 0, column 7"):
            model.predict(holed)


@pytest.mark.parametrize("averaged", [False, True])
def test_columns_that_are_not_kept_change_nothing(averaged, monkeypatch):
    X, y, new = rows()
    learner = Perceptron(kernel=Gaussian(bandwidth=0.7071), averaged=averaged)
    kept = learner.fit(X, y).decision_function(new)
    monkeypatch.setattr("surelearn.linear.perceptron.learner._KEPT", 300)
    np.testing.assert_array_equal(learner.fit(X, y).decision_function(new), kept)


@pytest.mark.parametrize(
    "learner",
    [LEARNERS[0], LEARNERS[3], EigenProClassifier(compute=Compute(device="cpu"))],
    ids=words,
)
def test_the_audit_cuts_rows_and_columns(learner):
    X, y, _ = rows(160)
    k = Gaussian(bandwidth=1.0)
    model = clone(learner).set_params(kernel="precomputed").fit(k.gram(X[:80]), y[:80])
    seen = k.gram(X[:80]), y[:80]
    page = audit(
        model, k(X[80:], X[:80]), y[80:], seen=seen, ledger=False, effort=0.2, show_rows=True
    )
    told = " ".join(note for section in page.sections for note in section.notes)
    assert "a precomputed kernel has no rows to move" in told
    assert "square matrix" not in told
    # no refit on certify rows
    assert "a kernel matrix has columns for the rows fitted on alone" in told
    assert {"SL621", "SL622"} <= {finding.code for finding in page.findings}


def test_whole_numbers_are_not_taken_for_rounded_ones():
    """The adjacency matrix of a long cycle has the eigenvalue −2: no rounding of single
    precision explains that.
    """
    cycle = np.roll(np.eye(1200), 1, axis=1) + np.roll(np.eye(1200), -1, axis=1)
    with pytest.raises(ValueError, match="positive semidefinite"):
        check_matrix(cycle)


def test_kernel_matrices_are_exactly_symmetric():
    X = np.random.default_rng(0).normal(size=(1500, 4))
    for k in (Gaussian(bandwidth=1.0), Laplace(1.0)):
        K = k.gram(X)
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_allclose(K[:50], k(X[:50], X), atol=1e-12)
