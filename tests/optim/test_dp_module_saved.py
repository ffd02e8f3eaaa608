"""Private modules on disk: they come back as they were, by layers from a list or into a module
given; nothing is run.
"""

from __future__ import annotations

import copy
import json
import sys

import numpy as np
import pytest
from sklearn.base import clone

from surelearn import load, save
from surelearn.persistence import MANIFEST, read_model
from surelearn.plain import content_hash

torch = pytest.importorskip("torch")
nn = torch.nn

from surelearn.optim.dp_module import DPModule  # noqa: E402

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((80, 16)).astype(np.float32)
Y = np.where(X[:, 0] > 0, "yes", "no")


class Own(nn.Module):
    """A class of a user."""

    def __init__(self, wide=4):
        super().__init__()
        self.inner, self.last = nn.Linear(16, wide), nn.Linear(wide, 2)

    def forward(self, x):
        return self.last(torch.tanh(self.inner(x)))


class Renamed(Own):
    """The same under another name."""


def images():
    return nn.Sequential(
        nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 4, 3, stride=(1, 1), padding="same", bias=False), nn.GroupNorm(2, 4),
        nn.LeakyReLU(0.2), nn.AvgPool2d(2), nn.Conv2d(4, 3, 1, padding=1, padding_mode="circular"), nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 2),
    )  # fmt: skip


def nested():
    inner = nn.Sequential(
        nn.Linear(16, 8, bias=False), nn.LayerNorm(8), nn.GELU("tanh"), nn.Dropout(0.1)
    )
    module = nn.Sequential()
    module.add_module("first", inner)
    module.add_module(
        "second", nn.Sequential(nn.Identity(), nn.Linear(8, 2, dtype=torch.float32), nn.ELU())
    )
    return module


def lines():
    return nn.Sequential(
        nn.Unflatten(1, (2, 8)), nn.Conv1d(2, 3, 3), nn.MaxPool1d(2), nn.SiLU(), nn.AvgPool1d(2), nn.SELU(), nn.Flatten(),
        nn.Softplus(), nn.Sigmoid(), nn.Tanh(), nn.Softmax(1), nn.Linear(3, 2), nn.LogSoftmax(1),
    )  # fmt: skip


def frozen():
    module = nn.Sequential(nn.Linear(16, 4), nn.ReLU(), nn.Linear(4, 2))
    module[0].weight.requires_grad_(False)
    module[1].eval()
    return module


def reused():
    relu = nn.ReLU()
    return nn.Sequential(nn.Linear(16, 4), relu, nn.Linear(4, 4), relu, nn.Linear(4, 2))


def one_layer():
    return nn.Linear(16, 2)


MODULES = {made.__name__: made for made in (images, nested, lines, frozen, reused, one_layer)}


def evaluated(module):
    return [
        name for name, part in module.named_modules(remove_duplicate=False) if not part.training
    ]


def fitted(module, **options):
    return DPModule(module, epsilon=5.0, batch_size=20, epochs=1, random_state=0, **options).fit(
        X, Y
    )


@pytest.mark.parametrize("name", MODULES)
def test_layers_on_the_list_come_back(name, tmp_path):
    model = fitted(MODULES[name]())
    saved = read_model(save(model, tmp_path / "model"))
    found = saved.model
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))
    assert saved.certificate == model.certificate_ == found.certificate_
    assert found.certificate_.verify(found)
    assert found.facts_ == model.facts_
    # the seed of the noise is not saved
    assert repr(found) == repr(clone(model).set_params(random_state=None))
    wanted = [
        (name, value.requires_grad, value.dtype) for name, value in model.module.named_parameters()
    ]
    assert [
        (name, value.requires_grad, value.dtype) for name, value in found.module.named_parameters()
    ] == wanted
    assert evaluated(found.module) == evaluated(model.module)
    again, other = (
        clone(model).fit(X, Y),
        clone(found).set_params(random_state=model.random_state).fit(X, Y),
    )  # the first weights are there too
    np.testing.assert_array_equal(again.predict_proba(X), other.predict_proba(X))


def test_numbers_that_no_array_holds_are_a_sentence(tmp_path):
    model = fitted(one_layer())
    model.module.to(torch.bfloat16)
    with pytest.raises(
        ValueError,
        match=r"^module must have weights that arrays can keep: weight is of torch.bfloat16",
    ):
        model.fit(X, Y)
    with pytest.raises(
        ValueError,
        match=r"^the module's weight is of torch.bfloat16, which cannot be saved: convert",
    ):
        save(model, tmp_path / "model")


def test_the_file_can_be_saved_again_and_holds_the_privacy_statement(tmp_path):
    model = fitted(images())
    first, second = (
        save(model, tmp_path / "first"),
        save(load(save(model, tmp_path / "first")), tmp_path / "second"),
    )
    assert (first / MANIFEST).read_text() == (second / MANIFEST).read_text()
    claims = json.loads((first / MANIFEST).read_text())["certificate"]["claims"]
    epsilon = next(claim["value"] for claim in claims if claim["quantity"] == "epsilon")
    assert epsilon == model.certificate_["epsilon"].value
    assert epsilon <= 5.0


def test_a_module_of_ones_own_is_given_again(tmp_path):
    model = fitted(Own())
    path = save(model, tmp_path / "model")
    assert "Own are not on the list: pass into= with a module made like it" in refusal(path)
    given = Own()
    before = copy.deepcopy(given.state_dict())
    found = load(path, into=given)
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))
    # a copy took the weights
    assert all(torch.equal(value, before[name]) for name, value in given.state_dict().items())
    assert "of inner.weight, (4, 16) was saved, the module has (5, 16)" in refusal(
        path, into=Own(5)
    )
    assert "Own, not a " in refusal(path, into=Renamed())
    assert "into= must be a torch module, not a str" in refusal(path, into="Own")
    changed = Own()
    changed.last.note = "other"
    assert "is not the one that was saved" in refusal(path, into=changed)


def shared():
    layer = nn.Linear(16, 16)
    return nn.Sequential(layer, nn.ReLU(), layer, nn.Linear(16, 2))


def tied():
    module = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16), nn.Linear(16, 2))
    module[2].weight = module[0].weight
    return module


def with_attribute():
    module = nn.Sequential(nn.Linear(16, 2))
    module.note = "mine"
    return module


@pytest.mark.parametrize("made", [shared, tied, with_attribute])
def test_what_layers_do_not_say_is_not_lost(made, tmp_path):
    module = made()
    model = fitted(module)
    path = save(model, tmp_path / "model")
    assert "not on the list" in refusal(path)
    np.testing.assert_array_equal(load(path, into=module).predict_proba(X), model.predict_proba(X))


def refusal(path, **options):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the sentence is matched by whoever asks
        load(path, **options)
    assert type(caught.value) is ValueError
    message = str(caught.value)
    assert message.isprintable()
    return message


def edited(path, change):
    """The manifest changed by someone who knows how it is hashed."""
    manifest = json.loads((path / MANIFEST).read_text())
    change(manifest, manifest["parameters"]["module"]["module"]["dict"])
    manifest.pop("hash")
    (path / MANIFEST).write_text(json.dumps({**manifest, "hash": content_hash(manifest)}))
    return path


def layer(name, **settings):
    return {"dict": {"layer": name, "settings": {"dict": settings}, "parts": {"dict": {}}}}


CHANGES = {
    "a class outside the list": (
        lambda _, module: module.update(layers=layer("Module")),
        "no layer that is made again",
    ),
    "a function": (
        lambda _, module: module.update(layers=layer("modules.os.system")),
        "no layer that is made again",
    ),
    "settings": (
        lambda _, module: module.update(layers=layer("Linear", device="cuda")),
        "no layer that is made again",
    ),
    "a layer of another size": (
        lambda _, module: module.update(
            layers=layer("Linear", in_features=9, out_features=2, bias=True)
        ),
        "other weights than were saved",
    ),
    "a layer that fills the memory": (
        lambda _, module: module.update(
            layers=layer("Linear", in_features=10**6, out_features=10**9, bias=True)
        ),
        "other weights than were saved",
    ),
    "no layers": (lambda _, module: module.update(layers=3), "is damaged"),
    "no weights": (lambda _, module: module.pop("weights"), "is damaged"),
    "a weight that is missing": (
        lambda _, module: module["weights"]["dict"].popitem(),
        "other weights than were saved",
    ),
    "weights of another name": (
        lambda _, module: module["weights"]["dict"].update(b=module["weights"]["dict"].pop("bias")),
        "other weights than were saved",
    ),
    "swapped for the learned ones": (
        lambda m, module: module.update(weights=m["parameters"]["weights_"]),
        "not the one that was saved",
    ),
    "another ε": (
        lambda m, _: m["parameters"]["facts_"]["dict"].update(epsilon=0.1),
        "not the one that was saved",
    ),
    "another learner": (
        lambda m, _: m.update({"class": "surelearn.cluster.kmeans.KMeans"}),
        "not the one that was saved",
    ),
    "no learner": (
        lambda m, _: m.update({"class": "torch.nn.modules.linear.Linear"}),
        "no learner of this surelearn",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_manifest_that_was_tampered_with_gets_a_sentence(name, tmp_path):
    path = save(fitted(nn.Linear(16, 2)), tmp_path / "model")
    change, says = CHANGES[name]
    assert says in refusal(edited(path, change))


def test_a_changed_byte_of_the_weights_is_refused(tmp_path):
    path = save(fitted(nn.Linear(16, 2)), tmp_path / "model")
    file = next(path.glob("*.safetensors"))
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert "was changed after it was written" in refusal(path)


def test_without_torch_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    path = save(fitted(nn.Linear(16, 2)), tmp_path / "model")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ModuleNotFoundError,
        match=r"model holds a torch module, .*pip install 'surelearn\[torch\]'$",
    ):
        load(path)


def test_functions_cannot_be_saved_and_into_is_for_modules(tmp_path):
    model = fitted(nn.Linear(16, 2), optimizer=lambda weights: torch.optim.SGD(weights, 0.1))
    with pytest.raises(ValueError, match="holds a function"):
        save(model, tmp_path / "model")
    from sklearn.linear_model import LogisticRegression

    from surelearn.cluster.kmeans import KMeans

    path = save(LogisticRegression().fit(X, Y), tmp_path / "other")
    assert "not a torch module: leave out into=" in refusal(path, into=Own())
    path = save(KMeans(2, random_state=0).fit(X), tmp_path / "ours")
    assert "without a torch module: leave out into=" in refusal(path, into=Own())
