"""Learners are saved as arrays and JSON."""

from collections import namedtuple

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.persistence.saved import Learner, table

from surelearn import Certificate, Facts, load, save
from surelearn.bounds import hoeffding
from surelearn.fingerprint import fingerprint_model
from surelearn.persistence import read_model
from surelearn.selection.preparation import DateParts, HashedWords


def assert_identical(one, other):
    """Values and types, of all parts."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert (
            one.tolist() == other.tolist()
            if one.dtype.hasobject
            else one.tobytes() == other.tobytes()
        )
    elif isinstance(one, dict):
        assert list(one) == list(other)
        one, other = list(one.values()), list(other.values())
    if isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_identical(*pair)
    elif not isinstance(one, np.ndarray):
        assert repr(one) == repr(other)  # NaN equals itself here


GRID = np.arange(24.0).reshape(2, 3, 4)
STATES = {
    "Fortran order": np.asfortranarray(GRID[0]),
    "every second": GRID[:, ::2, ::-1],
    "transposed": GRID.transpose(2, 0, 1),
    "broadcast": np.broadcast_to(np.arange(3.0), (4, 3)),
    "one column": GRID[0, :, 1],
    "float32": np.array([0.1, np.inf, -np.inf, np.nan, -0.0, 1e-45], dtype=np.float32),
    "float16": np.array([0.1, 6e4], dtype=np.float16),
    "integers": [np.arange(-3, 3, dtype=kind) for kind in ("i1", "i2", "i4", "i8")],
    "natural numbers": [np.arange(3, dtype=kind) for kind in ("u1", "u2", "u4", "u8")],
    "truth": np.array([[True], [False]])[::-1],
    "a number of no dimension": np.array(2.5),
    "empty": [np.empty((0, 3)), np.empty(0, dtype=np.int32), np.empty((2, 0), dtype=bool)],
    "words": np.array([["a", "größer"], ["", "z"]]),
    "words as objects": np.array(["a", "bc", "d"], dtype=object)[::2],
    "no words": np.array([], dtype="U3"),
    "none": None,
    "plain": [True, False, 0, -1, 10**30, 0.1, -0.0, "", "text", "\u2028"],
    "not finite": (float("inf"), float("-inf"), float("nan"), 5e-324),
    "scalars": [
        np.float64(0.1),
        np.float32(0.1),
        np.int8(-3),
        np.uint64(2**63),
        np.bool_(True),
        np.str_("a"),
    ],
    "scalars, not finite": [np.float64("nan"), np.float32("inf"), np.float16("-inf")],
    "numbered": {1: (2, GRID[0]), -3: {}},
    "a model": [LogisticRegression(C=2.0), None],
    "nested": {
        "a": ([1, (2, {"b": (GRID[0].T, None)})], {}),
        "array": {"dict": []},
        "number": "inf",
    },
    "same array twice": [GRID, GRID[1]],
}


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", STATES)
def test_the_state_of_a_learner(name, tmp_path):
    model = Learner(alpha=0.1, part_=STATES[name], last_=np.arange(2))
    again = load(save(model, tmp_path / "model"))
    assert type(again) is Learner
    assert_identical(vars(again), vars(model))
    assert [path.suffix for path in tmp_path.glob("model/model-*")] == [".safetensors"]


@pytest.mark.usefixtures("registered")
def test_the_arrays_of_a_learner_can_be_written_to(tmp_path):
    again = load(save(Learner(weights_=np.zeros(3)), tmp_path / "model"))
    again.weights_ += 1  # as partial_fit would


class Text(str):
    __slots__ = ()


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    "part",
    [
        np.ma.masked_array([1.0, 2.0], mask=[True, False]),
        np.eye(2).view(np.matrix),
        np.array([1.0], dtype=np.longdouble),
        np.array([1.0], dtype=">f8"),
        np.array([{}], dtype=object),
        np.zeros(2, dtype=[("a", "f8")]),
        np.zeros(2, dtype=complex),
        np.longdouble(1),
        1j,
        b"bytes",
        {1.5: 2},
        {1, 2},
        namedtuple("Pair", "a b")(1, 2),
        Text("a"),
        np.random.default_rng(0),
    ],
    ids=lambda part: (
        type(part).__name__ + (f" of {part.dtype}" if isinstance(part, np.ndarray) else "")
    ),
)
def test_a_state_that_would_not_come_back_as_it_was(part, tmp_path):
    with pytest.raises(
        ValueError, match=f"the model's part_ is a {type(part).__name__}, which cannot be saved"
    ):
        save(Learner(part_=[part]), tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.usefixtures("registered")
def test_preparations_as_learners(tmp_path):
    X = table(1)
    for model, column in ((HashedWords(n_features=16), ["note"]), (DateParts(), ["seen"])):
        model.fit(X[column])
        again = load(save(model, tmp_path / "model"))
        assert_identical(vars(again), vars(model))
        np.testing.assert_array_equal(again.transform(X[column]), model.transform(X[column]))


def learner_certificate():
    facts = Facts(
        subject="Learner()",
        setting="fitted on 100 rows",
        values={"risk": 0.1, "n": 100, "none": float("inf")},
    )
    claim = facts.claim(hoeffding, {"risk": "risk", "n": "n"}, delta=0.05)
    return Certificate(facts=facts, claims=(claim,))


@pytest.mark.usefixtures("registered")
def test_a_learner_keeps_its_certificate(tmp_path):
    model = Learner(certificate_=learner_certificate(), alpha=1)
    saved = read_model(save(model, tmp_path / "model"))
    assert saved.certificate == saved.model.certificate_ == learner_certificate()
    assert fingerprint_model(saved.model) == fingerprint_model(model)


@pytest.mark.usefixtures("registered")
def test_a_learner_with_a_certificate_from_elsewhere(tmp_path):
    model = Learner(alpha=1)
    saved = read_model(save(model, tmp_path / "model", certificate=learner_certificate()))
    assert saved.certificate == learner_certificate()
    assert_identical(vars(saved.model), vars(model))
