"""New rows through a saved model: the columns of LIBSVM files, which older releases counted
otherwise.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from surelearn.data.schema import Feature, Schema
from surelearn.prediction import Predictor


def predictor(*columns):
    """A model whose answer is its first column, that was fitted on a LIBSVM file with these
    columns.
    """
    features = tuple(Feature(name, "number") for name in columns)
    schema = Schema(
        features, "label", "regression", "number", None, ("label", *columns), header=False
    )
    model = SimpleNamespace(predict=lambda X: np.asarray(X)[:, 0])
    return Predictor(SimpleNamespace(schema=schema, model=model, certificate=None))


def answers(made, path):
    return [number for table in made.tables(path) for number in table["prediction"].to_pylist()]


def test_an_index_0_is_refused_by_a_model_that_counts_from_1(tmp_path):
    """Models of 0.2 from files that begin at 0 call it index 1: their columns would be read one
    too late.
    """
    path = tmp_path / "t.svm"
    path.write_text("1 0:5 1:6\n0 0:7 1:8\n")
    with pytest.raises(
        ValueError, match=r"^t\.svm has an index 0, which the model's table had not"
    ):
        answers(predictor("feature 1", "feature 2"), path)
    assert answers(predictor("feature 0", "feature 1"), path) == [5.0, 7.0]


def test_a_file_without_index_0_is_read_as_it_counts(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1 1:6\n0 2:8\n")
    assert answers(predictor("feature 0", "feature 1"), path) == [0.0, 0.0]
    assert answers(predictor("feature 1", "feature 2"), path) == [6.0, 0.0]
