"""Which types a saved model may hold, beside classes of surelearn that have a key
(`surelearn.keys`).
"""

from __future__ import annotations

# Types beyond skops' own list that the default candidates, and scikit-learn's calibrations and
# votes around them, are made of; making one runs nothing that a file says. Each with the one way in
# which skops writes it, and the length of its state where compiled code takes that for granted.
TRUSTED: dict[str, tuple[str, int | None]] = {
    "numpy.dtype": ("DTypeNode", None),
    "sklearn.calibration._CalibratedClassifier": ("ObjectNode", None),
    "sklearn.calibration._SigmoidCalibration": ("ObjectNode", None),
    "sklearn.calibration._TemperatureScaling": ("ObjectNode", None),
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor": ("ObjectNode", None),
    "sklearn.metrics._dist_metrics.EuclideanDistance64": ("ObjectNode", 3),
    "sklearn.neighbors._ball_tree.BallTree": ("ObjectNode", 13),
    "sklearn.neighbors._kd_tree.KDTree": ("ObjectNode", 13),
    "sklearn.tree._tree.Tree": ("TreeNode", None),
    "sklearn.utils._bunch.Bunch": ("DictNode", None),
}
# the one way in which skops writes a class with a key
OURS: tuple[str, int | None] = ("ObjectNode", None)
