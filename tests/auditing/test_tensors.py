"""Tokens and images reach a model as they were given: nothing casts or flattens what nobody
asked to.
"""

import numpy as np
import pytest

from surelearn import audit, certify
from surelearn.attribution import explain
from surelearn.data.novelty import Novelty

N = 60
RNG = np.random.default_rng(0)
ROWS = {
    "tokens": RNG.integers(0, 50, (2 * N, 12)),
    "gray images": RNG.random((2 * N, 6, 5), dtype=np.float32),
    "color images": RNG.integers(0, 256, (2 * N, 4, 4, 3), dtype=np.uint8),
}
QUICK = {"ledger": False, "effort": 0.1}


class Recorder:
    """Says how bright a row is, and remembers the type and shape of every row that it was asked
    about.
    """

    classes_ = np.array([0, 1])

    def __init__(self):
        self.given = set()

    def predict_proba(self, X):
        self.given.add((type(X).__name__, X.dtype.name, X.shape[1:]))
        share = X.reshape(len(X), -1).astype(float).mean(axis=1) / (
            50 if X.dtype.kind in "iu" else 1
        )
        return np.column_stack([1 - np.clip(share, 0.1, 0.9), np.clip(share, 0.1, 0.9)])

    def predict(self, X):
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)


def notes_of(page, title):
    return " ".join(
        note for section in page.sections if section.title == title for note in section.notes
    )


@pytest.mark.parametrize("name", ROWS)
def test_certify_and_audit_ask_in_the_rows_own_type_and_shape(name):
    X, y, model = ROWS[name], RNG.integers(0, 2, 2 * N), Recorder()
    given = {("ndarray", X.dtype.name, X.shape[1:])}
    certificate = certify(model, X[:N], y[:N])
    assert certificate.verify(X=X[:N], y=y[:N])
    assert model.given == given
    page = audit(model, X[:N], y[:N], seen=(X[N:], y[N:]), **QUICK)
    assert model.given == given
    assert page.columns == np.prod(X.shape[1:])
    small = notes_of(page, "Adversarial robustness")
    if name == "tokens":
        assert "whole numbers, such as tokens, which do not change by a little" in small
    else:
        assert f"each row is of shape {X.shape[1:]}" in small
        assert "Shapley values are for tables" in notes_of(page, "Feature attribution")


def test_shares_of_tokens_mix_tokens():
    model, X = Recorder(), ROWS["tokens"][:5, :4]
    made = explain(model, X, X[:3])
    assert model.given == {("ndarray", X.dtype.name, (4,))}
    floats = X.astype(float)
    as_floats = explain(
        lambda rows: Recorder().predict_proba(rows.astype(int))[:, 1], floats, floats[:3]
    )
    np.testing.assert_allclose(made.values, as_floats.values, atol=1e-12)


def test_modules_are_given_tokens_and_images_as_they_are():
    torch = pytest.importorskip("torch")
    given = set()

    class Words(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.out = torch.nn.Embedding(50, 4), torch.nn.Linear(4, 2)

        def forward(self, tokens):
            given.add((tokens.dtype, tuple(tokens.shape[1:])))
            return self.out(self.embedding(tokens).mean(dim=1))

    class Images(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution, self.out = torch.nn.Conv1d(6, 3, 2), torch.nn.Linear(3, 2)

        def forward(self, images):
            given.add((images.dtype, tuple(images.shape[1:])))
            return self.out(self.convolution(images).mean(dim=2))

    y, shared = RNG.integers(0, 2, 2 * N), {"task": "classification", "classes": [0, 1]}
    for module, name, kind in (
        (Words(), "tokens", torch.int64),
        (Images(), "gray images", torch.float32),
    ):
        X = ROWS[name]
        certificate = certify(module, X[:N], y[:N], **shared)
        assert certificate.verify(module, X[:N], y[:N])
        page = audit(module, X[:N], y[:N], seen=(X[N:], y[N:]), **shared, **QUICK)
        assert given == {(kind, X.shape[1:])}
        assert "not on tokens (whole numbers) or tensors" in notes_of(page, "Data poisoning")
        given.clear()
    # a table of counts, which a linear layer takes as floats only
    whole = RNG.integers(0, 9, (2 * N, 6))
    table = torch.nn.Linear(6, 2)
    assert (
        certify(table, whole, y, **shared)["risk"].value
        == certify(table, whole.astype(float), y, **shared)["risk"].value
    )


def test_large_images_are_compared_as_a_whole():
    images = RNG.integers(0, 256, (120, 30, 30, 3), dtype=np.uint8)
    new = np.concatenate(
        [images[:5].astype(float), RNG.integers(0, 256, (3, 30, 30, 3)).astype(float)]
    )
    found = Novelty(images, len(new)).compare(new)
    assert found.copies.tolist() == found.near.tolist() == [True] * 5 + [False] * 3
    assert found.novel.sum() == 3
    assert not found.looks_near
