"""CatBoost's binary form, tried out in a process of its own before CatBoost reads it in this one.

Nothing but CatBoost reads it: its own checks find most damage, and what they do not find ends the
other process.
"""

from __future__ import annotations

from surelearn.persistence.trial import tried

_TRIAL = """
import numpy, catboost
model = catboost.CatBoost()
model.load_model(blob=sys.stdin.buffer.read(), format="cbm")
count = len(model.feature_names_)
words = set(model.get_cat_feature_indices()) | set(model.get_text_feature_indices())
random = numpy.random.RandomState(0)
rows = [
    [str(random.randint(4)) if j in words else [0.0, float("nan"), random.standard_normal(), 1e30][i % 4]
     for j in range(count)] for i in range(64)
]
model.predict(rows, thread_count=1)
model.predict(rows, prediction_type="RawFormulaVal", thread_count=1)
"""


def check_cbm(content: bytes) -> None:
    """Refuse what CatBoost does not load and predict with, also where it would end the process."""
    tried(_TRIAL, content, "CatBoost")
