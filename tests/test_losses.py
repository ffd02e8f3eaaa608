"""Each loss has one home, `surelearn.losses`: derivatives by differences, copies that must stay held to
it number by number, and a scan that fails where a new copy appears.
"""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import surelearn
from surelearn import losses
from surelearn.losses import (
    LOGISTIC,
    LOSSES,
    SQUARED,
    SQUARED_HINGE,
    ConvexLoss,
    find_loss,
    huber,
    huber_loss,
    log_loss_curved,
    log_loss_slopes,
    log_losses,
)

SOURCE = Path(surelearn.__file__).parent
MARGINS = np.concatenate([np.linspace(-40, 40, 161), [-800.0, -1e-9, 0.0, 1e-9, 1.0, 800.0]])


def by_name(loss):
    return loss.name


@pytest.fixture
def rows():
    """Scores of seven rows for four classes, some of them far apart, and the rows' classes."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(7, 4)) * [[1], [1], [5], [5], [30], [300], [0]], rng.integers(0, 4, 7)


@pytest.mark.parametrize("loss", [*LOSSES.values(), huber(0.3)], ids=by_name)
def test_the_second_derivative_is_that_of_the_first(loss):
    t, h = np.linspace(-3, 3, 1001) + 1e-4, 1e-6  # beside the kinks
    difference = (loss.derivative(t + h) - loss.derivative(t - h)) / (2 * h)
    found = loss.second_derivative(t)
    np.testing.assert_allclose(found, difference, rtol=1e-5, atol=1e-5)
    assert loss.least_curvature <= found.min()
    assert found.max() <= loss.curvature


def test_at_a_kink():
    """0 at a kink of the loss itself; inside the knee of Huber's, outside of the squared hinge's."""
    assert find_loss("hinge").second_derivative(np.array([1.0])) == 0
    assert find_loss("perceptron").second_derivative(np.array([0.0])) == 0
    assert SQUARED_HINGE.second_derivative(np.array([1.0])) == 0
    assert huber(2.0).second_derivative(np.array([-2.0, 2.0])).tolist() == [1.0, 1.0]


def test_without_a_second_derivative():
    absolute = ConvexLoss("absolute", "residual", np.abs, np.sign, np.inf, 0.0, 1.0, (-1.0, 1.0))
    with pytest.raises(ValueError, match="second_derivative of the absolute loss must be stated"):
        absolute.curvature_of_scores(np.zeros(2), np.zeros(2))


@pytest.mark.parametrize("loss", LOSSES.values(), ids=by_name)
def test_losses_of_scores(loss):
    """Of margins y·s and residuals s − y, with their derivatives by s."""
    rng = np.random.default_rng(1)
    scores, h = rng.normal(size=50), 1e-5
    y = rng.choice([-1.0, 1.0], 50) if loss.of == "margin" else rng.normal(size=50)
    t = y * scores if loss.of == "margin" else scores - y
    np.testing.assert_array_equal(loss.of_scores(scores, y), loss.value(t))
    up, down = loss.of_scores(scores + h, y), loss.of_scores(scores - h, y)
    np.testing.assert_allclose(loss.slope_of_scores(scores, y), (up - down) / (2 * h), atol=1e-5)
    np.testing.assert_array_equal(loss.curvature_of_scores(scores, y), loss.second_derivative(t))


def test_logistic_by_hand():
    """Its values where nothing overflows, its limits, and ℓ″ = −ℓ′(1 + ℓ′), which Newton's method
    of the leave-one-out fits uses.
    """
    t = np.linspace(-30, 30, 601)
    np.testing.assert_allclose(LOGISTIC.value(t), np.log1p(np.exp(-t)), rtol=1e-14)
    slope = LOGISTIC.derivative(t)
    np.testing.assert_allclose(slope, -1 / (1 + np.exp(t)), rtol=1e-14)
    np.testing.assert_allclose(LOGISTIC.second_derivative(t), -slope * (1 + slope), atol=1e-15)
    assert LOGISTIC.value(np.array([-800.0, 800.0])).tolist() == [800.0, 0.0]
    assert LOGISTIC.derivative(np.array([-800.0, 800.0])).tolist() == [-1.0, 0.0]


def test_the_log_loss_of_several_classes(rows):
    scores, codes = rows
    h, rng = 1e-5, np.random.default_rng(2)
    by_hand = [np.log(np.exp(s - s[c]).sum()) for s, c in zip(scores[:5], codes[:5], strict=True)]
    np.testing.assert_allclose(log_losses(scores, codes)[:5], by_hand, rtol=1e-12, atol=1e-15)
    T = rng.normal(size=scores.shape)
    up, down = scores + h * T, scores - h * T
    slopes = log_loss_slopes(scores, codes)
    difference = (log_losses(up, codes) - log_losses(down, codes)) / (2 * h)
    np.testing.assert_allclose((slopes * T).sum(1), difference, atol=1e-6)
    bend = (log_loss_slopes(up, codes) - log_loss_slopes(down, codes)) / (2 * h)
    np.testing.assert_allclose(log_loss_curved(scores, T), bend, atol=1e-6)
    np.testing.assert_allclose(slopes.sum(1), 0, atol=1e-15)


def test_two_classes_of_the_log_loss_are_the_logistic_loss():
    pair = np.column_stack([np.zeros_like(MARGINS), MARGINS])
    for code, sign in ((1, 1.0), (0, -1.0)):
        codes = np.full(len(pair), code)
        np.testing.assert_allclose(
            log_losses(pair, codes), LOGISTIC.of_scores(MARGINS, sign), rtol=1e-12, atol=1e-15
        )
        np.testing.assert_allclose(
            log_loss_slopes(pair, codes)[:, 1],
            LOGISTIC.slope_of_scores(MARGINS, sign),
            rtol=1e-9,
            atol=1e-15,
        )


def test_huber_of_many_thresholds():
    t, eta = np.linspace(-3, 3, 13)[:, None], np.array([0.5, 1.0, 2.0])
    each = np.column_stack([huber(e).value(t[:, 0]) for e in eta])
    np.testing.assert_array_equal(huber_loss(t, eta), each)


# Copies that must stay.


def test_compiled_logistic():
    from surelearn.linear.logistic.compiled import logistic_loss, logistic_slope

    for m in MARGINS:
        at = np.array(m)
        assert logistic_loss(m) == pytest.approx(float(LOGISTIC.value(at)), rel=1e-14, abs=1e-300)
        assert logistic_slope(m) == pytest.approx(
            float(LOGISTIC.derivative(at)), rel=1e-14, abs=1e-300
        )


def test_compiled_log_loss(rows):
    from surelearn.linear.logistic.compiled import gaps

    scores, codes = rows
    expected = log_loss_slopes(scores, codes)
    for i, loss in enumerate(log_losses(scores, codes)):
        z = scores[i].copy()
        assert gaps(z, int(codes[i])) == pytest.approx(loss, rel=1e-13, abs=1e-15)
        np.testing.assert_allclose(z, expected[i], rtol=1e-13, atol=1e-15)


def test_newton_of_logistic_regression(rows):
    """The losses, slopes and curvatures that it takes from one exponential."""
    from surelearn.linear.logistic.newton import Softmax

    scores, codes = rows
    n, T = len(scores), np.random.default_rng(3).normal(size=scores.shape)
    several = Softmax(np.eye(n), codes, np.empty(0), scores.shape[1], 0.0)
    value, P = several.at(scores)
    assert value == pytest.approx(log_losses(scores, codes).mean(), rel=1e-13)
    near = {"rtol": 1e-12, "atol": 1e-15}
    np.testing.assert_allclose(
        n * several.gradient(scores, P), log_loss_slopes(scores, codes), **near
    )
    np.testing.assert_allclose(n * several.curved(P, T), log_loss_curved(scores, T), **near)

    one, labels = scores[:, :1], codes % 2
    signs = (2.0 * labels - 1)[:, None]
    two = Softmax(np.eye(n), labels, np.empty(0), 1, 0.0)
    value, P = two.at(one)
    assert value == pytest.approx(LOGISTIC.of_scores(one, signs).mean(), rel=1e-13)
    np.testing.assert_allclose(
        n * two.gradient(one, P), LOGISTIC.slope_of_scores(one, signs), **near
    )
    np.testing.assert_allclose(
        n * two.curved(P, T[:, :1]), LOGISTIC.curvature_of_scores(one, signs) * T[:, :1], **near
    )


def test_conjugates_of_the_worst_case_objective():
    """−ℓ*(−a) = ℓ(m) + a·m at a = −ℓ′(m)."""
    from surelearn.robust.adversarial_gap import _conjugate

    m = np.linspace(-20, 0.9, 100)
    for name in ("logistic", "squared_hinge"):
        loss = find_loss(name)
        a = -loss.derivative(m)
        np.testing.assert_allclose(_conjugate(a, name), loss.value(m) + a * m, atol=1e-10)


def test_directions_of_evasion(rows):
    """The slopes of the log loss, divided by 1 − p_y, which would vanish."""
    from surelearn.attacks.evasion import _weights

    scores, codes = rows
    found = _weights(scores[:4], codes[:4], "cross_entropy", False, np.float64)
    slopes = log_loss_slopes(scores[:4], codes[:4])
    np.testing.assert_allclose(
        found, slopes / -slopes[np.arange(4), codes[:4]][:, None], rtol=1e-10, atol=1e-12
    )


def test_losses_of_torch(rows):
    """Its softplus is rounded to a straight line where e^{-20} is left."""
    torch = pytest.importorskip("torch")
    from surelearn.attacks.poison_further import _two_classes
    from surelearn.attacks.poison_modules import _named
    from surelearn.optim.dp_module import _loss

    scores, codes = rows
    outputs, labels = torch.from_numpy(scores), torch.from_numpy(codes)
    for several in (_named("logistic"), _loss("cross_entropy")):
        np.testing.assert_allclose(
            several(outputs, labels).numpy(), log_losses(scores, codes), rtol=1e-12, atol=1e-15
        )
    first, targets = outputs[:, :1], outputs[:, 1]
    for squared in (_named("squared"), _loss("squared")):
        np.testing.assert_allclose(
            squared(first, targets).numpy(), SQUARED.of_scores(scores[:, 0], scores[:, 1])
        )
    np.testing.assert_allclose(
        _two_classes(first, labels % 2).numpy(),
        LOGISTIC.of_scores(scores[:, 0], 2.0 * (codes % 2) - 1),
        rtol=1e-8,
        atol=1e-15,
    )


# How losses are usually spelled, and every module that spells so, with its reason. A new copy of a loss
# fails here: evaluate `surelearn.losses` instead.
NOT_A_LOSS = "a sum of exponentials, of other things than losses"
PROBABILITIES = "probabilities of a prediction, no loss"
A_SHARE = "what is left of a probability or of a share"
TORCH = "torch differentiates it; held to the home above"
SPELLED = {
    "losses": ({"expit", "logaddexp", "softmax", "log_softmax", "hinge", "huber"}, "the home"),
    "attacks/epsilon_audit": ({"1 / (1 + exp)"}, "the chance that an ε allows"),
    "attacks/evasion": ({"softmax by hand"}, "directions in the scores' own precision; held above"),
    "attacks/poison_further": ({"softplus"}, TORCH),
    "attacks/poison_modules": ({"cross_entropy"}, TORCH),
    "auditing/sections/one_row": ({"expit"}, PROBABILITIES),
    "bounds/convergence": ({"hinge"}, "the factor of a contraction"),
    "bounds/holdout": ({"hinge"}, A_SHARE),
    "bounds/logistic": ({"logaddexp"}, "the largest loss that a theorem allows, not one of a row"),
    "bounds/privacy_loss": ({"logaddexp"}, NOT_A_LOSS),
    "bounds/renyi": ({"logaddexp"}, NOT_A_LOSS),
    "kernel/random_features": ({"hinge"}, A_SHARE),
    "linear/dp_logistic": ({"softmax"}, PROBABILITIES),
    "linear/logistic/compiled": ({"log(1 + exp)"}, "for compiled loops; held above"),
    "linear/logistic/learner": ({"softmax"}, PROBABILITIES),
    "linear/logistic/newton": (
        {"1 / (1 + exp)", "softmax by hand"},
        "loss, slopes and curvature from one exponential; held above",
    ),
    "linear/naive_bayes": ({"expit", "softmax"}, PROBABILITIES),
    "monitoring/betting": ({"logaddexp"}, NOT_A_LOSS),
    "neural/activations": ({"sigmoid", "expit"}, "an activation, no loss"),
    "neural/images": ({"cross_entropy", "softmax"}, f"{TORCH}; {PROBABILITIES}"),
    "neural/network": ({"cross_entropy"}, TORCH),
    "neural/tables": ({"log_softmax"}, PROBABILITIES),
    "operating/sets": ({"softmax"}, PROBABILITIES),
    "optim/dp_module": ({"cross_entropy", "softmax"}, f"{TORCH}; {PROBABILITIES}"),
    "papers/criteria_tables_families": ({"1 / (1 + exp)"}, PROBABILITIES),
    "papers/kernel_gaussian_or_laplace": ({"hinge"}, A_SHARE),
    "persistence/model_files/foreign_boosters": ({"softmax"}, PROBABILITIES),
    "persistence/model_files/model_file": ({"expit", "softmax"}, PROBABILITIES),
    "robust/adversarial": ({"cross_entropy"}, TORCH),
    "selection/combined": ({"softmax"}, PROBABILITIES),
    "subject/agreement": ({"softmax by hand"}, PROBABILITIES),
    "subject/forms": ({"softmax by hand"}, PROBABILITIES),
}
FUNCTIONS = {
    "expit", "log_expit", "log_softmax", "logaddexp", "logsigmoid", "sigmoid", "softmax", "softplus",
    "cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "hinge_loss", "log_loss", "smooth_l1_loss",
}  # fmt: skip


def called(node):
    """The name of the function that a node calls, without its module."""
    if not isinstance(node, ast.Call):
        return ""
    return ast.unparse(node.func).rsplit(".", 1)[-1]


def has_exponential(node):
    return any(called(part) == "exp" for part in ast.walk(node))


def is_number(node, value):
    return isinstance(node, ast.Constant) and node.value == value


def one_and_exponential(node):
    """1 + exp(…)."""
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add)
        and (is_number(node.left, 1) or is_number(node.right, 1))
        and has_exponential(node)
    )


def spelled(node):
    """The loss that a node of the syntax tree spells, or ""."""
    name = called(node)
    if name in FUNCTIONS:
        return name
    if name == "log1p" and called(node.args[0]) == "exp":
        return "log(1 + exp)"
    if name == "log" and one_and_exponential(node.args[0]):
        return "log(1 + exp)"
    if name in ("maximum", "max", "clip", "clamp", "relu"):
        short = [part for part in node.args if isinstance(part, ast.BinOp)]
        if any(isinstance(part.op, ast.Sub) and is_number(part.left, 1) for part in short) and (
            name == "relu" or any(is_number(part, 0) for part in node.args)
        ):
            return "hinge"
    if name == "where" and len(node.args) == 3 and isinstance(node.args[0], ast.Compare):
        inside = ast.unparse(node.args[1])
        if re.search(r"\*\* 2|square\(", inside) and re.search(r"0\.5|/ 2", inside):
            return "huber"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return "1 / (1 + exp)" if one_and_exponential(node.right) else ""
    taken = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) else None
    taken = (
        node.value if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub) else taken
    )
    if called(taken) in ("max", "amax") and "keepdims=True" in ast.unparse(taken):
        return "softmax by hand"
    return ""


def spellings(text):
    return {found for node in ast.walk(ast.parse(text)) if (found := spelled(node))}


def test_no_other_copy_of_a_loss():
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if kinds := spellings(path.read_text(encoding="utf-8")):
            found[path.relative_to(SOURCE).with_suffix("").as_posix()] = kinds
    assert found == {where: kinds for where, (kinds, _) in SPELLED.items()}, (
        "evaluate `surelearn.losses`; what is no loss, or must stay, is listed with its reason"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("np.logaddexp(0, -m)", "logaddexp"),
        ("-special.expit(-m)", "expit"),
        ("np.log1p(np.exp(-m))", "log(1 + exp)"),
        ("np.log(1 + np.exp(-m))", "log(1 + exp)"),
        ("-1.0 / (1.0 + math.exp(m))", "1 / (1 + exp)"),
        ("np.maximum(1 - y * s, 0)", "hinge"),
        ("np.maximum(0.0, 1.0 - m) ** 2", "hinge"),
        ("max(0, 1 - m)", "hinge"),
        ("np.clip(1 - m, 0, None)", "hinge"),
        ("np.where(abs(r) <= k, r**2 / 2, k * abs(r) - k**2 / 2)", "huber"),
        ("np.where(r < k, 0.5 * np.square(r), k * r)", "huber"),
        ("s - s.max(axis=1, keepdims=True)", "softmax by hand"),
        ("s -= np.max(s, axis=1, keepdims=True)", "softmax by hand"),
        ("functional.cross_entropy(s, y)", "cross_entropy"),
    ],
)
def test_the_scan_sees_what_it_looks_for(text, kind):
    assert spellings(text) == {kind}


def test_the_earlier_place_has_the_same_losses():
    from surelearn.optim import losses as earlier

    for name in ("LOSSES", "ConvexLoss", "find_loss", "huber"):
        assert getattr(earlier, name) is getattr(losses, name)
