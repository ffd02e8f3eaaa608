"""Film reviews end to end: from sentences to hashed words, a logistic regression and its
certificates.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.pipeline import make_pipeline
from tests.making import make

import surelearn
from surelearn.linear.logistic.learner import LogisticRegression

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "sst2"
REGULARIZATION = 1e-5

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the sentences of SST-2 are not here")


def reviews(part):
    return pd.read_csv(FOLDER / f"sst2_{part}.tsv", sep="\t", header=None, quoting=3)


def pipeline(learner):
    """Words and pairs of words, a million features, rows of norm 1."""
    return make_pipeline(
        HashingVectorizer(n_features=2**20, ngram_range=(1, 2), alternate_sign=False), learner
    )


@pytest.fixture(scope="module")
def fit():
    return reviews("train")


@pytest.fixture(scope="module")
def model(fit):
    options = {
        "epochs": 20,
        "finish": None,
        "dtype": "float32",
        "x_bound": 1.0001,
        "random_state": 0,
    }
    return pipeline(make(LogisticRegression, regularization=REGULARIZATION, **options)).fit(
        fit[0], fit[1]
    )


def test_as_accurate_as_scikit_learn(fit, model):
    """At least 76% right on either part, and at most 1.5 points behind scikit-learn's pipeline
    with LIBLINEAR.
    """
    peer = pipeline(Peer(C=1 / (2 * len(fit) * REGULARIZATION), solver="liblinear")).fit(
        fit[0], fit[1]
    )
    for part in ("dev", "test"):
        new = reviews(part)
        accuracy = model.score(new[0], new[1])
        assert accuracy > 0.76
        assert accuracy > peer.score(new[0], new[1]) - 0.015


def test_the_fit_is_near_the_minimizer(fit):
    """With single words, a thousand features: within what the certificate says."""
    words = HashingVectorizer(n_features=2**10, alternate_sign=False).transform(fit[0])
    model = LogisticRegression(regularization=1e-3, epochs=20, finish=None, random_state=0).fit(
        words, fit[1]
    )
    exact = LogisticRegression(regularization=1e-3, finish="lbfgs").fit(words, fit[1])
    gap = model.facts_["objective"] - exact.facts_["objective"]
    assert -1e-9 < gap <= model.certificate_["suboptimality"].value < 0.01
    assert model.certificate_.verify()


def test_certified_on_rows_it_has_not_seen(fit, model):
    """An error that is certified on one part is not exceeded on another."""
    new, later = reviews("dev"), reviews("test")
    certificate = surelearn.certify(
        model, new[0], new[1], positive=1, majority=int(fit[1].mode()[0])
    )
    risk = certificate["risk"].value
    assert np.mean(model.predict(new[0]) != new[1]) < risk < 0.3
    assert 1 - model.score(later[0], later[1]) <= risk
    assert certificate.verify(model, new[0], new[1])


def test_text_in_a_file_of_columns(tmp_path, fit):
    """The same reviews as LIBSVM text from disk: the weights of rows in memory."""
    from sklearn.datasets import dump_svmlight_file

    words = HashingVectorizer(n_features=2**16, alternate_sign=False).transform(fit[0])
    dump_svmlight_file(words, fit[1], str(tmp_path / "reviews.svm"), zero_based=False)
    options = {"regularization": REGULARIZATION, "epochs": 2, "finish": None, "random_state": 0}
    memory = make(LogisticRegression, **options).fit(words, fit[1])
    disk = make(LogisticRegression, **options).fit_file(tmp_path / "reviews.svm", features=2**16)
    np.testing.assert_allclose(disk.coef_, memory.coef_, atol=1e-8)
