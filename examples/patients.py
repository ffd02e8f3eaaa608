"""
Grouped rows: a hundred patients, ten visits each
=================================================

Every simulated patient has measurements that hardly change from visit to visit, and a diagnosis
drawn by tossing a coin. There is nothing to learn. But a model can recognize a *patient* it has
seen before, and an audit that takes the thousand visits for a thousand independent rows holds back
visits of patients the model already knows.
"""

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.neighbors import KNeighborsClassifier

import surelearn

rng = np.random.default_rng(0)
patients, visits = 100, 10
patient = np.repeat(np.arange(patients), visits)
typical = rng.normal([170, 75, 125], [9, 14, 15], size=(patients, 3))
measured = typical[patient] + rng.normal(scale=[0.3, 1.0, 1.0], size=(patients * visits, 3))
table = pd.DataFrame(measured, columns=["height", "weight", "blood pressure"])
table["patient"] = patient
table["diagnosis"] = rng.choice(["healthy", "ill"], size=patients)[patient]

options = {
    "target": "diagnosis",
    "models": {"majority": DummyClassifier(), "nearest neighbour": KNeighborsClassifier(1)},
    "ledger": False,
    "refits": 0,
    "curve_repeats": 0,
    "skip": ("robustness", "poisoning", "membership", "attribution"),
}

# %%
# The audit sees that independence is contradicted, by the column and by the clumps that visits
# make, and gives no verdict.

by_rows = surelearn.audit(table, **options)
print(by_rows.verdict.text)
for finding in by_rows.findings:
    if finding.code in ("SL117", "SL118"):
        print(finding)

# %%
# Whoever vouches for what is not so gets a page that looks certified, with a note that it was
# vouched for.

vouched = surelearn.audit(table, independent=True, **options)
print(vouched.verdict.text)

# %%
# Told which rows belong together, it keeps patients whole and asks how the model does on a patient
# it has never seen. The
# verdict collapses to what is true: nothing does better than always giving the same answer.

by_patient = surelearn.audit(table, group="patient", **options)
print(by_patient.verdict.sentence.replace("**", ""))
print(by_patient.certificate["risk"])
