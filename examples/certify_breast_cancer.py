"""
Certify a classifier on rows it has not seen
============================================

Fit a scikit-learn pipeline on breast-cancer data, hold 171 rows back, and ask what those rows
guarantee.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import surelearn
from surelearn.slicing import cut

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
order = np.random.default_rng(0).permutation(len(y))
fit, hold = order[171:], order[:171]

model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X.iloc[fit], y.iloc[fit])

# Slices and the majority come from the fit rows: nothing about the certificate may be chosen on the
# rows held back.
slices = cut(X.iloc[fit], "mean radius")
certificate = surelearn.certify(
    model, X.iloc[hold], y.iloc[hold], positive="malignant", majority="benign", slices=slices
)
print(certificate)

# %%
# The certificate can be stored, read back, and checked: from its own facts, and from the model and
# the rows.

again = surelearn.Certificate.from_json(certificate.to_json())
print(again.verify(model, X.iloc[hold], y.iloc[hold], slices=slices))
