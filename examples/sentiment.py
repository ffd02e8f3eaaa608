"""
Sentiment classification: from text to a certificate
====================================================

Words and pairs of words are hashed to a million features, a logistic regression is fitted, and
reviews that it has not seen say how often it errs. The sentences are those of SST-2 where
``../shared/data/sst2`` holds them; elsewhere a few thousand are made up, so that the example runs
everywhere.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import make_pipeline

import surelearn
from surelearn.linear import SGD
from surelearn.linear.logistic.learner import LogisticRegression

FOLDER = Path("../shared/data/sst2")


def made_up(n, rng):
    """Reviews of eight words, of which one in three tells whether the film was liked."""
    plain = np.array(
        ["the", "film", "a", "plot", "its", "actor", "and", "scene", "of", "music", "with", "story"]
    )
    telling = np.array([["dull", "flat", "tired", "clumsy"], ["moving", "fresh", "funny", "warm"]])
    liked = rng.integers(2, size=n)
    opinion = telling[liked[:, None], rng.integers(4, size=(n, 8))]
    words = np.where(rng.random((n, 8)) < 1 / 3, opinion, rng.choice(plain, (n, 8)))
    return pd.DataFrame({0: [" ".join(row) for row in words], 1: liked})


def reviews(part, n, rng):
    file = FOLDER / f"sst2_{part}.tsv"
    return pd.read_csv(file, sep="\t", header=None, quoting=3) if file.exists() else made_up(n, rng)


rng = np.random.default_rng(0)
fit, new = reviews("train", 6000, rng), reviews("dev", 800, rng)

words = HashingVectorizer(n_features=2**20, ngram_range=(1, 2), alternate_sign=False)
learner = LogisticRegression(
    regularization=1e-5, epochs=20, finish=None, sgd=SGD(dtype="float32"), random_state=0
)
model = make_pipeline(words, learner).fit(fit[0], fit[1])
print(
    f"{len(fit):,} reviews fitted, {np.mean(model.predict(new[0]) == new[1]):.1%} of {len(new):,}"
    " new ones right"
)

# %%
# What the new reviews guarantee about reviews to come. The learner's own certificate is about the
# fit: how far the weights
# are from the best ones.

print(surelearn.certify(model, new[0], new[1], positive=1, majority=int(fit[1].mode()[0])))
print(learner.certificate_["suboptimality"])

# %%
# Which words speak for a good film, and which against it? A hashed feature has no name, but a word
# has a place.

counts = pd.Series(" ".join(fit[0]).split()).value_counts()
frequent = counts.index[counts >= 30]
weights = learner.decision_function(words.transform(frequent)) - learner.intercept_[0]
effect = pd.Series(weights, index=frequent).sort_values()
print("against:", ", ".join(effect.index[:8]))
print("for:", ", ".join(effect.index[:-9:-1]))
