"""
Data poisoning and membership inference
=======================================

Training rows can be attacked twice. An attacker who may add rows can move the model, from a certain
share of poison on. And a model that memorized its training rows reveals who was among them, unless
it was trained with differential privacy.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier

from surelearn.attacks import LinearObjective, loss_threshold, transition
from surelearn.bounds.poisoning import poisoning_threshold
from surelearn.linear import DPLogisticRegression

X, progression = load_diabetes(return_X_y=True)
# does the disease progress fast? The columns come scaled
X, labels = 10 * X, (progression > 140).astype(int)
order = np.random.default_rng(0).permutation(len(labels))
fit, new = order[:220], order[220:]

# %%
# How much poison does it take to turn a logistic regression into exactly its opposite, −w? Below
# the threshold no rows
# whatever can do it; above it the attack finds rows that do. The transition is sharp. (Other
# weights that flip as many
# answers, −t·w with a small t, take less: ``bounds.poisoning_range`` has the threshold of all of
# them, within a range.)

objective = LinearObjective("logistic", intercept=False)
target = -objective.fit(X[fit], labels[fit])
threshold = poisoning_threshold(float(target @ objective.gradient(target, X[fit], labels[fit])))
found = transition(
    objective, target, X[fit], labels[fit], threshold=threshold, multiples=(0.5, 0.9, 1.1, 1.5)
)
print(f"below {threshold:.2f} poisoned rows per clean row nobody reaches exactly −w")
for fraction, reached in zip(found.fractions, found.reached, strict=True):
    print(f"   with {fraction:.2f}: {'reached' if reached else 'not reached'}")
found.plot(plt.subplots(figsize=(6, 4))[1])

# %%
# A forest with deep trees memorizes its training rows: their losses are smaller than those of other
# rows. The AUC of the
# attack that thresholds the loss says how well members can be told from others; guessing has an AUC
# of 0.5.


def losses(model, rows):
    chances = model.predict_proba(X[rows])[np.arange(len(rows)), labels[rows]]
    return -np.log(np.maximum(chances, 1e-6))


forest = RandomForestClassifier(50, random_state=0).fit(X[fit], labels[fit])
leak = loss_threshold(losses(forest, fit), losses(forest, new))
print(
    f"forest: loss-threshold attack, AUC {leak.auc:.2f} ({leak.auc_low:.2f} to {leak.auc_high:.2f})"
)

# %%
# Differential privacy bounds what *any* attacker can learn: ε says how much more likely (e^ε times)
# the weights can become
# because one row was there. The certificate states it; the attack measures what this one attacker
# achieves.

private = DPLogisticRegression(epsilon=1.0, dp_delta=1e-4, random_state=0).fit(X[fit], labels[fit])
leak = loss_threshold(losses(private, fit), losses(private, new))
print(f"private model: accuracy {private.score(X[new], labels[new]):.1%} on new rows")
print(f"loss-threshold attack, AUC {leak.auc:.2f} ({leak.auc_low:.2f} to {leak.auc_high:.2f})")
print(private.certificate_["epsilon"])

# The seed makes this example repeatable, and would undo the privacy: whoever knows it can remove
# the noise.
