"""
Adversarial robustness: attacks, certified radii and adversarial training
=========================================================================

How small a change of a row makes a model err? An attack finds such changes and proves nothing when
it finds none. A theorem gives a certified radius within which no change alters the prediction. The
true robust accuracy lies between the two.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from surelearn.attacks import decision_attack, domain, simplest_change, smallest_change
from surelearn.robust import AdversarialLinearClassifier, certify_robustness, robustness_curve

data = load_breast_cancer()
X, y = data.data, data.target_names[data.target]
order = np.random.default_rng(0).permutation(len(y))
fit, new = order[:400], order[400:]

# Changes are measured in standard deviations, and no measurement becomes negative or larger than
# any that was seen.
where = domain(data.feature_names, low=0.0, high=X.max(axis=0), scale=X[fit].std(axis=0))

# %%
# For a linear model the attack and the theorem meet. For a support vector machine with a Gaussian
# kernel there is a gap.

radii = [0.0, 0.05, 0.1, 0.2, 0.3]
models = {"logistic regression": LogisticRegression(), "support vector machine": SVC(C=10.0)}
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
for ax, (name, learner) in zip(axes, models.items(), strict=True):
    model = make_pipeline(StandardScaler(), learner).fit(X[fit], y[fit])
    curve = robustness_curve(model, X[new], y[new], radii, where=where)
    print(f"{name}: {curve}\n")
    curve.plot(ax).set_title(name)

# %%
# The smallest change that was found for one patient, in as few columns as will do.

logistic = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[fit], y[fit])
found = simplest_change(
    logistic, smallest_change(logistic, X[new[:1]], y[new[:1]], largest=3.0, where=where)
)
print(f"{found.before[0]} becomes {found.after[0]}, if")
for column, old, now in found.changes(0)[:4]:
    print(f"   {column}: {old:.4g} → {now:.4g}")

# %%
# A forest has no gradient. A black-box attack needs predictions only, here 300 queries per patient.

forest = RandomForestClassifier(30, random_state=0).fit(X[fit], y[fit])
some = new[:20]
asked = decision_attack(
    forest, X[some], y[some], others=X[fit], budget=300, where=where, random_state=0
)
print(f"{asked}; the median change is {np.median(asked.distance):.2f} standard deviations (L2)")

# %%
# Adversarial training makes the linear model more robust. What that means for new patients is a
# claim, made from rows that
# it was not fitted on.

hard = make_pipeline(StandardScaler(), AdversarialLinearClassifier(radius=0.2)).fit(X[fit], y[fit])
for name, model in {"as usual": logistic, "adversarially": hard}.items():
    certificate = certify_robustness(model, X[new], y[new], radius=0.2, norm="linf", where=where)
    print(
        f"trained {name}: accuracy {model.score(X[new], y[new]):.1%};"
        f" {certificate['robust_accuracy']}"
    )
