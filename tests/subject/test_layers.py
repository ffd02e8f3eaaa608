"""Gradient norms by layer: by hand, by autograd, by finite differences; who has layers and who not."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surelearn.lacking import Lacking
from surelearn.subject import subject_of

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4)) * [1.0, 5.0, 0.2, 1.0] + 3.0
LABELS = {2: np.array(["no", "yes"]), 3: np.array(["a", "b", "c"])}


def labels(classes):
    """So many, as frequent as each other, by the first two columns."""
    total = X[:, 0] + X[:, 1]
    return LABELS[classes][np.argsort(np.argsort(total)) * classes // len(X)]


def by_differences(model, row, label, layer):
    """‖∂J/∂(W, b)‖ of a scikit-learn network, number by number."""
    mlp, total = model[-1], 0.0
    for array in (mlp.coefs_[layer], mlp.intercepts_[layer]):
        for at in np.ndindex(array.shape):
            kept, found = array[at], []
            for move in (1e-6, -1e-6):
                array[at] = kept + move
                if label is None:
                    found.append(model.predict(row)[0])
                else:
                    (code,) = np.flatnonzero(model.classes_ == label)
                    found.append(-np.log(model.predict_proba(row)[0, code]))
            array[at] = kept
            total += ((found[0] - found[1]) / 2e-6) ** 2
    return np.sqrt(total)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [2, 3, "numbers"])
def test_a_network_of_scikit_learn_behind_a_scaler_against_differences(kind):
    make, y = (
        (MLPRegressor, X[:, 0] * X[:, 2]) if kind == "numbers" else (MLPClassifier, labels(kind))
    )
    model = make_pipeline(
        StandardScaler(),
        make(hidden_layer_sizes=(5, 3), activation="tanh", max_iter=15, random_state=0),
    ).fit(X, y)
    subject = subject_of(model)
    assert subject.layers == ("layer 1", "layer 2", "layer 3")
    found = subject.layer_gradients(X[:4], y[:4])
    for i in range(4):
        for layer in range(3):
            label = None if kind == "numbers" else y[i]
            expected = by_differences(model, X[i : i + 1], label, layer)
            assert found.norms[i, layer] == pytest.approx(expected, rel=1e-4, abs=1e-9)
    np.testing.assert_allclose(found.by_layer, np.sqrt((found.norms**2).mean(axis=0)))


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_torch_module_has_the_gradients_of_its_loss_row_by_row(outputs):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.ReLU(), torch.nn.Dropout(0.5),
        torch.nn.Linear(6, outputs),
    )  # fmt: skip
    names = LABELS[max(outputs, 2)]
    y = labels(len(names))[:5]
    subject = subject_of(module, classes=names)
    assert subject.layers == ("0", "4")
    found = subject.layer_gradients(X[:5], y)
    assert module.training
    assert all(p.grad is None for p in module.parameters())
    module.eval()
    for i in range(5):
        scores = module(torch.tensor(X[i : i + 1], dtype=torch.float32))
        code = torch.tensor(np.flatnonzero(names == y[i]))
        loss = (
            torch.nn.functional.binary_cross_entropy_with_logits(scores[:, 0], code.float())
            if outputs == 1
            else torch.nn.functional.cross_entropy(scores, code)
        )
        module.zero_grad()
        loss.backward()
        for layer, at in enumerate((0, 4)):
            squares = sum(float((p.grad**2).sum()) for p in module[at].parameters())
            assert found.norms[i, layer] == pytest.approx(np.sqrt(squares), rel=1e-4)


def test_a_module_names_what_it_holds_itself_after_its_parts():
    torch = pytest.importorskip("torch")

    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = torch.nn.Parameter(torch.ones(3, 2))
            self.shift = torch.nn.Parameter(torch.zeros(2))
            self.body = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.LayerNorm(3))
            self.again = self.body[0]  # the same layer, counted once

        def forward(self, x):
            return self.again(torch.tanh(self.body(x)) @ torch.ones(3, 4)) @ self.head + self.shift

    assert subject_of(Own(), classes=[0, 1]).layers == ("body.0", "head")


def test_ours_declare_their_layers():
    pytest.importorskip("torch")
    from surelearn.neural import NetworkClassifier, NetworkRegressor

    y = labels(2)
    small = {"members": 2, "width": 8, "epochs": 2, "random_state": 0, "device": "cpu"}
    for model, target in ((NetworkClassifier(**small), y), (NetworkRegressor(**small), X[:, 0])):
        subject = subject_of(make_pipeline(StandardScaler(), model).fit(X, target))
        assert subject.layers[-3:] == ("hidden.0", "hidden.1", "head")
        found = subject.layer_gradients(X, target)
        assert found.norms.shape == (60, len(subject.layers))
        assert (found.by_layer > 0).all()


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (LogisticRegression(), "no network whose layers are known"),
        (RandomForestClassifier(3, random_state=0), "no network|no gradient"),
        (MLPClassifier(hidden_layer_sizes=(), max_iter=5), "fewer than two layers"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_others_have_none_and_say_why(model, why):
    subject = subject_of(model.fit(X, labels(2)))
    assert isinstance(subject.layers, Lacking)
    found = subject.layer_gradients(X, labels(2))
    assert isinstance(found, Lacking)
    assert pytest.importorskip("re").search(why, str(found))
