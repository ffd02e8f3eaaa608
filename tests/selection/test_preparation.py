import numpy as np
import pandas as pd

from surelearn.selection.preparation import (
    DateParts,
    HashedWords,
    PixelScaler,
    preparation,
    reads_columns_alone,
)


def test_date_parts_are_days_month_and_weekday():
    dates = pd.DataFrame({"when": pd.to_datetime(["1970-01-01", "1970-01-05", "2024-02-29", None])})
    parts = DateParts().fit(dates).transform(dates)
    assert parts[0].tolist() == [0, 0, 3]  # a Thursday in January
    assert parts[1].tolist() == [4, 0, 0]  # a Monday
    assert parts[2].tolist() == [19782, 1, 3]
    assert np.isnan(parts[3]).all()


def test_hashed_words_ignore_order_and_have_none_where_text_is_missing():
    texts = pd.DataFrame({"note": ["red ball", "ball red", "blue", None]}, dtype=object)
    words = HashedWords(n_features=64).fit(texts).transform(texts)
    assert words.shape == (4, 64)
    assert np.array_equal(words[0], words[1])
    assert not np.array_equal(words[0], words[2])
    assert not words[3].any()


def test_filling_is_learned_on_the_rows_fitted_on_and_unseen_categories_pass():
    fit = pd.DataFrame({"x": [1.0, 3.0, np.nan, 50.0] * 5, "c": ["a", "b", "a", "b"] * 5})
    prepared = preparation({"x": "number", "c": "category"}).fit(fit)
    new = pd.DataFrame({"x": [3.0, np.nan], "c": ["a", "never seen"]})
    values = prepared.transform(new)
    names = prepared.get_feature_names_out().tolist()
    # the median of the fit rows, 3
    assert values[0, names.index("x")] == values[1, names.index("x")]
    assert np.isfinite(values).all()


def test_pixels_are_scaled_alike(tmp_path):
    """By one mean and one spread of each channel; the form is known, and saved."""
    from sklearn.pipeline import make_pipeline

    import surelearn
    from surelearn.linear import LogisticRegression
    from surelearn.subject import subject_of

    rng = np.random.default_rng(0)
    X = rng.integers(0, 255, (60, 12)).astype(float)  # 2 × 2 pixels in three channels
    X[:, ::3] = 7.0
    made = PixelScaler(3).fit_transform(X)
    channels = made.reshape(60, 4, 3)
    np.testing.assert_allclose(channels.mean(axis=(0, 1)), 0, atol=1e-12)
    np.testing.assert_allclose(channels.std(axis=(0, 1)), [0, 1, 1])
    spread = X.reshape(-1, 3).std(axis=0)[1]
    np.testing.assert_allclose(
        np.diff(made[:, [1, 4]], axis=0), np.diff(X[:, [1, 4]], axis=0) / spread
    )
    assert reads_columns_alone(PixelScaler(3))
    model = make_pipeline(PixelScaler(3), LogisticRegression()).fit(X, X[:, 1] > 100)
    np.testing.assert_allclose(
        subject_of(model).scores.scores(X)[:, -1], model[-1].decision_function(made), rtol=1e-9
    )
    again = surelearn.load(surelearn.save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
