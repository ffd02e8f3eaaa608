"""What leaving out a row does, of fitted models as a user has them: against refits, in
pipelines, with prepared targets.
"""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.linear_model import Ridge as PeerRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surelearn.attacks import leave_one_out, model_influence
from surelearn.kernel import Compute, EigenProRegressor
from surelearn.lacking import Lacking
from surelearn.linear import LogisticRegression, Ridge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * [1.0, 5.0, 0.2]
Y = (X @ [1.0, -0.4, 2.0] + 0.8 * RNG.normal(size=40) > 0).astype(int)
T = X @ [1.0, -0.4, 2.0] + RNG.normal(size=40)
NEW, LABELS = X[:15] + 0.1, Y[:15]


def test_a_ridge_in_a_pipeline_is_left_out_exactly():
    model = make_pipeline(StandardScaler(), Ridge(regularization=0.1)).fit(X, T)
    fits = leave_one_out(model, X, T, NEW, rows=[3, 7])
    Z, points = model[:-1].transform(X), model[:-1].transform(NEW)
    for row, values in zip((3, 7), fits.each(), strict=True):
        kept = np.delete(np.arange(40), row)
        again = Ridge(regularization=0.1 * 40 / 39).fit(Z[kept], T[kept])  # the total penalty stays
        np.testing.assert_allclose(values[:, 0], again.predict(points), rtol=1e-8)
    np.testing.assert_allclose(fits.full[:, 0], model.predict(NEW))
    told = model_influence(model, X, T, NEW, T[:15])
    assert (told.found.method, told.loss) == ("exact", "squared loss")
    every = [
        ((values[:, 0] - T[:15]) ** 2).mean() for values in leave_one_out(model, X, T, NEW).each()
    ]
    np.testing.assert_allclose(
        told.found.risk, np.array(every) - ((model.predict(NEW) - T[:15]) ** 2).mean(), atol=1e-12
    )


def test_scikit_learns_logistic_regression_to_first_order_and_ours_exactly():
    first = model_influence(PeerLogistic(C=0.5, tol=1e-10).fit(X, Y), X, Y, NEW, LABELS)
    exact = model_influence(
        LogisticRegression(regularization=1 / 40, epochs=0, finish="newton").fit(X, Y),
        X,
        Y,
        NEW,
        LABELS,
    )
    assert (first.found.method, exact.found.method) == ("influence function", "exact")
    assert np.corrcoef(first.found.risk, exact.found.risk)[0, 1] > 0.9
    assert first.error(0) >= 0


def test_targets_that_were_prepared_are_prepared_for_the_fits_too():
    inside = EigenProRegressor(
        "gaussian",
        bandwidth=3.0,
        regularization=0.01,
        solver="direct",
        compute=Compute(device="cpu", dtype="float64"),
    )
    model = TransformedTargetRegressor(inside, transformer=StandardScaler()).fit(X, T)
    told = model_influence(model, X, T, NEW, T[:15])
    assert told.found.method == "exact"
    scaled = (T - T.mean()) / T.std()
    kept = np.arange(1, 40)
    again = EigenProRegressor(
        "gaussian",
        bandwidth=3.0,
        regularization=0.01 * 40 / 39,
        solver="direct",
        compute=Compute(device="cpu", dtype="float64"),
    ).fit(X[kept], scaled[kept])
    risk = ((again.predict(NEW) - scaled[:15]) ** 2).mean() - told.base
    assert told.found.risk[0] == pytest.approx(risk, rel=1e-4)
    wrapped = TransformedTargetRegressor(
        Ridge(regularization=0.1), transformer=StandardScaler()
    ).fit(X, T)
    assert model_influence(wrapped, X, T, NEW, T[:15]).found.risk.shape == (40,)


def test_without_a_closed_form_there_is_a_reason():
    assert isinstance(leave_one_out(PeerRidge().fit(X, T), X, T, NEW), Lacking)
    weighted = Ridge(regularization=0.1).fit(X, T, sample_weight=np.arange(1.0, 41.0))
    assert "rows of equal weight" in leave_one_out(weighted, X, T, NEW).reason
    assert isinstance(model_influence(PeerRidge().fit(X, T), X, T, NEW, T[:15]), Lacking)
