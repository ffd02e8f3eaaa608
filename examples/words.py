"""
Which words push a review towards which class?
==============================================

A model that adds up the terms of texts says exactly what each word contributed: what the word's terms
add to the score, less their mean over the rows it was fitted on. A forest does not add up words, so
they are left out of texts, one at a time.
"""

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from surelearn.attribution import words
from surelearn.selection.preparation import preparation

rng = np.random.default_rng(0)
plain = np.array(
    ["the", "film", "a", "plot", "its", "actor", "and", "scene", "of", "music", "with", "story"]
)
telling = np.array([["dull", "flat", "tired", "clumsy"], ["moving", "fresh", "funny", "warm"]])
liked = rng.integers(2, size=600)
opinion = telling[liked[:, None], rng.integers(4, size=(600, 9))]
texts = np.where(rng.random((600, 9)) < 1 / 3, opinion, rng.choice(plain, (600, 9)))
X = pd.DataFrame(
    {"review": [" ".join(row) for row in texts], "year": rng.integers(1990, 2020, 600)}
)
y = np.where(liked, "liked", "not liked")
fit, new = X[:400], X[400:]
kinds = {"review": "text", "year": "number"}

# %%
# Words, pairs of words and runs of letters, TF-IDF, and a logistic regression: exact. The signs say
# towards (+) or against (−) the second class, "not liked".

linear = make_pipeline(preparation(kinds, "many"), LogisticRegression()).fit(fit, y[:400])
found = words(linear, new, fit)
print(found)

# %%
# One review: the contributions of its words, and of all the rest, are its score less the mean score.

contributions = found.contributions(0)[0]
print(new["review"].iloc[0])
for at in np.argsort(-np.abs(contributions))[:4]:
    print(f"  {found.words[at]:<12} {contributions[at]:+.2f}")
print(f"all words and the rest: {contributions.sum() + found.rest(0)[0]:+.6f}")
print(f"score less its mean:    {found.scores[0, 0] - found.mean_scores[0]:+.6f}")

# %%
# A forest on the first singular directions of the same words.

forest = RandomForestClassifier(200, min_samples_leaf=5, random_state=0)
forest = make_pipeline(preparation(kinds, "few"), forest).fit(fit, y[:400])
print(words(forest, new, fit))
