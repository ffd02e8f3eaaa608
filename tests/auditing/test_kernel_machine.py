"""The kernel machine as a candidate, and what the page says about it."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

import surelearn
from surelearn.auditing.sections import one_row
from surelearn.kernel import Compute
from surelearn.kernel.eigenpro import EigenProClassifier, EigenProRegressor
from surelearn.kernel.functions import Gaussian
from surelearn.linear import Ridge
from surelearn.selection.catalogue import (
    EIGENPRO,
    EIGENPRO_ROWS,
    default_candidates,
    named_candidates,
)

pytest.importorskip("torch")
QUICK = {
    "ledger": False,
    "refits": 2,
    "curve_repeats": 0,
    "skip": ("robustness", "poisoning", "membership", "attribution"),
}
KINDS = {"x": "number"}


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_it_is_a_candidate_where_there_is_torch(task, monkeypatch):
    most, centers = EIGENPRO_ROWS[task]
    for n, expected in ((most, None), (most + 1, centers)):
        affordable = default_candidates(task, KINDS, n, budget=np.inf)
        assert EIGENPRO in [candidate.name for candidate in affordable]
        (made,) = named_candidates([EIGENPRO], task, KINDS, n)
        assert [
            value for name, value in made.model.get_params().items() if name.endswith("__centers")
        ] == [expected]
    monkeypatch.setitem(sys.modules, "torch", None)
    assert EIGENPRO not in [
        candidate.name for candidate in named_candidates(["all"], task, KINDS, 100)
    ]
    with pytest.raises(
        ValueError, match=r"^EigenPro needs PyTorch: pip install 'surelearn\[torch\]'$"
    ):
        named_candidates([EIGENPRO], task, KINDS, 100)


def test_the_page_of_one_that_was_solved_exactly():
    result = surelearn.audit("diabetes", models=EIGENPRO, n_jobs=1, **QUICK)
    section, numbers = result["kernel"], result["kernel_numbers"]
    assert "a Laplace kernel of bandwidth" in section.notes[0]
    assert "solved exactly" in section.notes[0]
    (chart,) = section.charts
    assert chart.data["log"]
    assert chart.data["x"][0] == 1
    assert np.all(np.diff(chart.data["y"]) <= 0)
    chosen, measured = numbers.tables
    assert chosen.rows[-1] == ("solver", "direct: Cholesky")
    assert [str(claim).split(" ≤ ")[0] for claim in numbers.claims] == ["distance to the minimizer"]
    assert [claim.surely() for claim in numbers.claims] == ["always"]
    scaled, machine = result.model[-1].transformer_, result.model[-1].regressor_
    # mean absolute ≤ root mean square
    expected = np.sqrt(machine.facts_["leave_one_out_error"]) * scaled.scale_[0]
    left = float(measured.rows[0][1].replace(",", ""))
    assert 0.6 * expected < left < expected
    assert "guaranteed" not in str(section)


@pytest.mark.usefixtures("forked")
def test_the_page_of_one_that_was_iterated_does_not_depend_on_jobs():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(2600, 2)), columns=["a", "b"])
    frame["y"] = np.where(frame["a"] * frame["b"] > 0, "one", "two")
    options = {"target": "y", "models": EIGENPRO, "ledger": False, "refits": 1, "curve_repeats": 0}
    options["effort"] = 0.1  # every section is written, from less work
    options["certify_fraction"] = 0.2  # just more rows to fit on than are solved at once
    one, two = (surelearn.audit(frame, n_jobs=jobs, **options) for jobs in (1, 2))
    assert one.to_json() == two.to_json()
    assert "found by EigenPro in" in one["kernel"].notes[0]
    assert "2,000 of the fit rows" in one["kernel"].charts[0].title
    rows = dict(row for table in one["kernel_numbers"].tables for row in table.rows)
    assert rows["batch size m"] == "1,000"
    assert {
        "acceleration by the preconditioner, predicted from the spectrum",
        "acceleration by the preconditioner, measured on rows outside the sample",
    } < set(rows)
    assert not any("leave-one-out" in name for name in rows)


def refits(model, X, y, new, scores):
    before, found, n = scores(clone(model).fit(X, y), new), [], len(y)
    for i in range(n):
        rows, other = np.delete(np.arange(n), i), clone(model)
        # the total penalty nλ stays
        other[-1].set_params(regularization=model[-1].regularization * n / (n - 1))
        found.append(scores(other.fit(X[rows], y[rows]), new) - before)
    return found


@pytest.mark.parametrize(
    ("data", "learner"),
    [
        (
            "wine",
            EigenProClassifier(
                Gaussian(bandwidth=0.07071), regularization=1e-3, compute=Compute(device="cpu")
            ),
        ),
        (
            "diabetes",
            EigenProRegressor(
                Gaussian(bandwidth=0.5), regularization=0.01, compute=Compute(device="cpu")
            ),
        ),
    ],
)
def test_what_one_row_does_is_what_n_refits_say(data, learner, monkeypatch):
    seen = {}
    measure = one_row.measure
    monkeypatch.setattr(
        one_row,
        "measure",
        lambda context, refits: seen.update(context=context) or measure(context, refits),
    )
    model = make_pipeline(Normalizer(), learner)
    result = surelearn.audit(data, models={"it": model}, n_jobs=1, **QUICK)
    context = seen["context"]
    (train, labels), new = (
        map(np.asarray, context.rows("train")),
        np.asarray(context.rows("certify")[0], dtype=float),
    )
    finding = result["stability"].findings[1]
    assert "in closed form" in finding.text
    if data == "diabetes":
        moved = refits(model, train.astype(float), labels, new, lambda m, Z: m.predict(Z))
        assert finding.numbers["largest_change"] == pytest.approx(
            max(np.abs(change).max() for change in moved), rel=1e-4
        )
    else:
        codes = {label: i for i, label in enumerate(np.unique(labels))}
        moved = refits(
            model,
            train.astype(float),
            labels,
            new,
            lambda m, Z: np.array([codes[c] for c in m.predict(Z)]),
        )
        assert finding.numbers["share"] == pytest.approx(
            max((change != 0).mean() for change in moved)
        )
        assert finding.numbers["rows_left_out"] == len(labels)


def test_its_own_claims_join_the_page_if_nothing_was_looked_at_before():
    learner = EigenProClassifier(
        Gaussian(bandwidth=1.0), regularization=0.01, compute=Compute(device="cpu")
    )
    alone = surelearn.audit(
        "breast_cancer", models={"it": make_pipeline(Normalizer(), learner)}, n_jobs=1, **QUICK
    )
    claims = [claim.quantity for claim in alone.certificate.claims]
    assert "risk_from_the_fit_rows" in claims
    prepared = surelearn.audit("breast_cancer", models={"it": learner}, n_jobs=1, **QUICK)
    assert "risk_from_the_fit_rows" not in [claim.quantity for claim in prepared.certificate.claims]
    assert [claim.quantity for claim in prepared["kernel_numbers"].claims] == [
        "distance_to_the_minimizer"
    ]


def test_other_models_have_no_kernel_section():
    model = make_pipeline(FunctionTransformer(), Ridge(regularization=1.0))
    result = surelearn.audit("diabetes", models={"it": model}, n_jobs=1, **QUICK)
    assert not any("kernel" in section.key for section in result.sections)


def test_the_page_of_one_with_fewer_centers(monkeypatch):
    monkeypatch.setitem(EIGENPRO_ROWS, "classification", (50, 30))
    result = surelearn.audit("wine", models=EIGENPRO, n_jobs=1, **QUICK)
    assert "30 of 119 fit rows" in result["kernel"].notes[0]
    rows = dict(row for table in result["kernel_numbers"].tables for row in table.rows)
    assert rows["centers"] == "30"
