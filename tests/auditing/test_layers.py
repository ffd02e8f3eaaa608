"""Vanishing gradients on the page: a deep stack of sigmoids has the finding, ReLU with batch
normalization has none.
"""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import surelearn
from surelearn.auditing.sections import skippable

rng = np.random.default_rng(0)
X = rng.normal(size=(160, 5))
y = np.where(X[:, 0] * X[:, 1] > 0, "up", "down")
OF_MODULES = {"classes": ["down", "up"], "task": "classification"}
ONLY = {
    "skip": [key for key in skippable() if key != "layers"],
    "ledger": False,
    "effort": 0.1,
}


def stack(activation, normalized, depth=8):
    """Layers as torch begins them, trained for a few epochs by the one loop."""
    torch = pytest.importorskip("torch")
    from surelearn.neural import Shuffled, Training, train

    torch.manual_seed(0)
    layers, d = [], 5
    for _ in range(depth):
        layers += [torch.nn.Linear(d, 16), *([torch.nn.BatchNorm1d(16)] if normalized else [])]
        layers.append(activation())
        d = 16
    module = torch.nn.Sequential(*layers, torch.nn.Linear(d, 2))
    rows, codes = torch.tensor(X, dtype=torch.float32), torch.tensor((y == "up").astype(int))
    loss = torch.nn.functional.cross_entropy
    plan = Training(epochs=5, learning_rate=0.01)
    train(lambda at: loss(module(rows[at]), codes[at]), module, Shuffled(160, 40), plan)
    return module


def audited(module):
    return surelearn.audit(module, X, y, **OF_MODULES, **ONLY)


def test_a_deep_stack_of_sigmoids_has_the_finding_and_relu_with_batch_normalization_none():
    torch = pytest.importorskip("torch")
    page = audited(stack(torch.nn.Sigmoid, normalized=False))
    (finding,) = page["layers"].findings
    assert (finding.code, finding.severity) == ("SL411", "warning")
    assert finding.numbers["share"] < 1e-5
    assert (finding.numbers["layer"], finding.numbers["layers"]) == (1, 9)
    assert finding.text.startswith(
        "The gradient of the log loss vanishes: at layer 1 of 9 (0) its norm is"
    )
    (chart,) = page["layers"].charts
    assert chart.data["y"][0] < 1e-5 * chart.data["y"][-1]
    assert "SL411" in page.to_html()

    page = audited(stack(torch.nn.ReLU, normalized=True))
    assert page["layers"].findings == ()
    assert page["layers"].notes[0].startswith("The gradient of the log loss reaches all 9 layers")
    assert len(page["layers"].charts) == 1


def test_a_shallower_stack_of_sigmoids_is_a_notice():
    torch = pytest.importorskip("torch")
    (finding,) = audited(stack(torch.nn.Sigmoid, normalized=False, depth=4))["layers"].findings
    assert finding.severity == "notice"
    assert 1e-5 < finding.numbers["share"] < 1e-3


def test_rows_it_was_fitted_on_are_looked_at_where_they_are_known_and_the_page_is_the_same_again():
    torch = pytest.importorskip("torch")
    module = stack(torch.nn.Sigmoid, normalized=False)
    pages = [
        surelearn.audit(module, X[:80], y[:80], **OF_MODULES, **ONLY, **seen)
        for seen in ({}, {"seen": (X[80:], y[80:])}, {"seen": (X[80:], y[80:])})
    ]
    elsewhere, one, again = (page["layers"].findings[0].numbers["share"] for page in pages)
    assert one == again != elsewhere


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_networks_have_the_section_and_models_without_layers_do_not():
    network = MLPClassifier(hidden_layer_sizes=(8, 8), max_iter=20, random_state=0).fit(
        X[80:], y[80:]
    )
    linear = LogisticRegression().fit(X[80:], y[80:])
    page, without = (surelearn.audit(m, X[:80], y[:80], **ONLY) for m in (network, linear))
    assert page["layers"].notes[0].startswith("The gradient of the log loss reaches all 3 layers")
    assert "layers" not in {section.key for section in without.sections}
