"""
Shapley values, from a game of gloves to a model
================================================

A value shares out what a group achieved among those in it. The players may be people with gloves,
switches, or the columns of a table; the function that says what each coalition achieves is the
*game*, and another game gives other shares.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

from surelearn.attribution import banzhaf, explain, saliency, shapley

# %%
# One player has a right-hand glove, two have a left-hand one; only a pair is worth anything. Few
# players: every coalition is
# asked, in exact fractions.


def gloves(coalition):
    return int(0 in coalition and len(coalition) > 1)


print("Shapley:", *shapley(gloves, 3).values)
print("Banzhaf:", *banzhaf(gloves, 3).values)

# %%
# Two switches, either of which lights the lamp: x₁ OR x₂. With both on, a small change of one of
# them does nothing, so the
# gradient sees nothing. Shapley values ask what happens without a switch, and find that the two
# share the light.


def lamp(switches):
    return np.minimum(1.0, switches.sum(axis=1))


both_on, both_off = np.array([[1.0, 1.0]]), np.array([[0.0, 0.0]])
print("gradient:", saliency(lamp, both_on).values[0])
print("Shapley: ", explain(lamp, both_on, both_off).values[0])

# %%
# The columns of a table play the same game: what a model says of a patient when only some columns
# are known, the others
# coming from background rows. For a forest all paths are counted, and the shares are exact: they
# add up to the difference
# between what it says of this patient and what it says on average.

X, y = load_diabetes(return_X_y=True, as_frame=True)
model = RandomForestRegressor(30, max_depth=6, random_state=0).fit(X[:350], y[:350])
background = X[:100]
made = explain(model, X[350:400], background)
print(made)
patient = made.values[0]
first = np.argsort(-np.abs(patient))[:3]
print("for one patient:", ", ".join(f"{X.columns[j]} {patient[j]:+.1f}" for j in first))
print(f"all shares: {patient.sum():.4f}; prediction − average: {made.full[0] - made.empty[0]:.4f}")

# %%
# Would another background name other columns? The ranking says itself how sure it is.

sure = made.stable_top(3)
print(f"first three: {', '.join(sure.names)}; {sure.reason}")
