"""Everything of ours is saved: models inside learners, torch modules alone, inside others, and
of a user's own class.
"""

import json
import sys
import types

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from surelearn import certify, load, save
from surelearn.attacks import domain
from surelearn.base import learners
from surelearn.fingerprint import fingerprint_model
from surelearn.linear import LogisticRegression as OwnLogisticRegression
from surelearn.linear import Ridge
from surelearn.persistence import MANIFEST, read_model
from surelearn.robust import AdversarialClassifier, PartitionClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "yes", "no")
WHERE = domain(3, low=-9.0, high=9.0, choices={2: (0.0, 1.0)})

INSIDE = {
    "adversarial": AdversarialClassifier(LogisticRegression(), rounds=2, random_state=0),
    "adversarial, ours": AdversarialClassifier(
        OwnLogisticRegression(random_state=0), rounds=2, random_state=0
    ),
    "adversarial, within a domain": AdversarialClassifier(
        LogisticRegression(), rounds=2, where=WHERE, random_state=0
    ),
    "adversarial, a pipeline": AdversarialClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()), rounds=1, random_state=0
    ),
    "partitions": PartitionClassifier(partitions=5),
    "partitions of ours": PartitionClassifier(OwnLogisticRegression(random_state=0), partitions=3),
    "partitions of support vectors": PartitionClassifier(
        make_pipeline(StandardScaler(), SVC()), partitions=3
    ),
    "adversarial in a pipeline": make_pipeline(
        StandardScaler(), AdversarialClassifier(LogisticRegression(), rounds=1, random_state=0)
    ),
    "partitions in a pipeline": make_pipeline(StandardScaler(), PartitionClassifier(partitions=3)),
}


def check(model, again, rows=X):
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert fingerprint_model(again) == fingerprint_model(model)
    assert type(again) is type(model)


@pytest.mark.parametrize("name", INSIDE)
def test_a_model_inside_a_learner(name, tmp_path):
    model = INSIDE[name].fit(X, Y)
    saved = read_model(save(model, tmp_path / "model"))
    check(model, saved.model)
    if hasattr(model, "certificate_"):
        assert saved.certificate == model.certificate_
        assert saved.certificate.verify(saved.model)


class Own(LogisticRegression):
    """A user's class, known to Python by a module's name."""


def test_a_type_inside_is_refused_as_everywhere(tmp_path, monkeypatch):
    module = types.ModuleType("users_own_models")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(Own, "__module__", module.__name__)
    module.Own = Own
    model, folder = PartitionClassifier(Own(), partitions=2).fit(X, Y), tmp_path / "model"
    with pytest.raises(
        ValueError, match=r"holds users_own_models\.Own, which is not on the list .*: pass trusted="
    ):
        save(model, folder)
    assert not folder.exists()
    save(model, folder, trusted=["users_own_models.Own"])
    check(model, load(folder, trusted=["users_own_models.Own"]))
    with pytest.raises(
        ValueError, match=r"model holds users_own_models\.Own, which is not on the list"
    ):
        load(folder)


def test_every_learner_can_be_saved_before_it_is_fitted(tmp_path):
    """Which kinds of parameters there are is known then; a module is a parameter that must be
    given.
    """
    for made in learners():
        if made.__name__ not in ("DPModule", "AdversarialClassifier"):
            check_unfitted = load(save(made(), tmp_path / made.__name__))
            assert check_unfitted.get_params() == made().get_params()


# --------------------------------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def private(torch, module):
    from surelearn.optim.dp_module import DPModule

    return DPModule(module, epsilon=20.0, batch_size=16, epochs=1, random_state=0)


def layers(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))


def own(torch):
    """A network as people write it."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden, self.last = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)

        def forward(self, x):
            return self.last(torch.tanh(self.hidden(x)))

    torch.manual_seed(0)
    return Net


def test_a_private_module_inside_others(torch, tmp_path):
    for i, model in enumerate(
        [
            make_pipeline(StandardScaler(), private(torch, layers(torch))),
            AdversarialClassifier(private(torch, layers(torch)), rounds=1, random_state=0),
            make_pipeline(
                StandardScaler(),
                AdversarialClassifier(private(torch, layers(torch)), rounds=1, random_state=0),
            ),
        ]
    ):
        model.fit(X, Y)
        folder = save(model, tmp_path / str(i))
        check(model, load(folder))
        manifest = json.loads((folder / MANIFEST).read_text())
        assert "torch" in manifest["versions"]


def test_a_private_module_of_ones_own_class_in_a_pipeline(torch, tmp_path):
    made = own(torch)
    model = make_pipeline(StandardScaler(), private(torch, made())).fit(X, Y)
    folder = save(model, tmp_path / "model", factory="mine.networks:Net")
    check(model, load(folder, into=made()))
    with pytest.raises(
        ValueError, match=r"pass into= with a module made like it \(mine\.networks:Net made it\)"
    ):
        load(folder)


def test_a_module_alone(torch, tmp_path):
    module = layers(torch)
    again = load(save(module, tmp_path / "model"))
    assert torch.equal(again(torch.tensor(X).float()), module(torch.tensor(X).float()))
    assert fingerprint_model(again) == fingerprint_model(module)


def test_a_module_of_a_users_class_is_saved_by_arrays_under_the_factory_that_the_user_names(
    torch, tmp_path
):
    made = own(torch)
    module = made().eval()
    certificate = certify(
        module,
        X.astype(np.float32),
        (Y == "yes").astype(int),
        task="classification",
        classes=[0, 1],
    )
    folder = save(module, tmp_path / "model", certificate=certificate, factory="mine.networks:Net")
    assert json.loads((folder / MANIFEST).read_text())["factory"] == "mine.networks:Net"
    saved = read_model(folder, into=made())
    assert torch.equal(saved.model(torch.ones(2, 3)), module(torch.ones(2, 3)))
    assert saved.certificate.verify(saved.model, X.astype(np.float32), (Y == "yes").astype(int))
    with pytest.raises(ValueError, match=r"\(mine\.networks:Net made it\)"):
        load(folder)
    with pytest.raises(ValueError, match=r"Net, not a torch\.nn"):
        load(folder, into=layers(torch))
    assert not [name for name in sys.modules if name.startswith("mine")]


def test_a_factory_is_for_modules_and_has_a_form(torch, tmp_path):
    with pytest.raises(ValueError, match="leave it out"):
        save(Ridge().fit(X, X[:, 0]), tmp_path / "model", factory="a:b")
    for odd in ("mine", "a:b:c", "__import__('os').system('x')", "a b:c"):
        with pytest.raises(
            ValueError, match=r"factory must be of the form package\.module:function"
        ):
            save(layers(torch), tmp_path / "model", factory=odd)
    assert not (tmp_path / "model").exists()
