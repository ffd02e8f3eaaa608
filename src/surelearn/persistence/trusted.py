"""Which types a saved model may hold."""

from __future__ import annotations

# Types beyond skops' own list that the default candidates are made of; making one runs nothing that a file says. Each with
# the one way in which skops writes it, and the length of its state where compiled code takes that for granted.
TRUSTED: dict[str, tuple[str, int | None]] = {
    "numpy.dtype": ("DTypeNode", None),
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor": ("ObjectNode", None),
    "sklearn.metrics._dist_metrics.EuclideanDistance64": ("ObjectNode", 3),
    "sklearn.neighbors._ball_tree.BallTree": ("ObjectNode", 13),
    "sklearn.neighbors._kd_tree.KDTree": ("ObjectNode", 13),
    "sklearn.tree._tree.Tree": ("TreeNode", None),
}
# surelearn's own estimators: alone they are kept as arrays and JSON, inside a pipeline by skops.
LEARNERS = {
    "surelearn.boosting.adaboost.AdaBoostClassifier",
    "surelearn.boosting.stump.DecisionStump",
    "surelearn.cluster.kmeans.KMeans",
    "surelearn.kernel.eigenpro.EigenProClassifier",
    "surelearn.kernel.eigenpro.EigenProRegressor",
    "surelearn.kernel.linear_form.LinearEigenProRegressor",
    "surelearn.kernel.random_features.FourierFeatures",
    "surelearn.kernel.random_features.RandomFeaturesRegressor",
    "surelearn.kernel.random_features.ReluFeatures",
    "surelearn.linear.dp_logistic.DPLogisticRegression",
    "surelearn.linear.logistic.learner.LogisticRegression",
    "surelearn.linear.naive_bayes.NaiveBayes",
    "surelearn.linear.perceptron.learner.Perceptron",
    "surelearn.linear.ridge.learner.LeastSquares",
    "surelearn.linear.ridge.learner.Ridge",
    "surelearn.linear.robust.regression.HuberRegression",
    "surelearn.linear.robust.regression.VariationalRegression",
    "surelearn.linear.robust.lasso.SquareRootLasso",
    "surelearn.linear.svm.learner.SupportVectorMachine",
    "surelearn.optim.dp_module.DPModule",
    "surelearn.robust.adversarial.AdversarialLinearClassifier",
    "surelearn.selection.preparation.DateParts",
    "surelearn.selection.preparation.HashedWords",
}
# Kernels, which are plain data: a learner alone keeps them by name and parameters.
KERNELS = {
    "surelearn.kernel.composites.Product",
    "surelearn.kernel.composites.Sum",
    "surelearn.kernel.functions.Gaussian",
    "surelearn.kernel.functions.Laplace",
    "surelearn.kernel.functions.Linear",
    "surelearn.kernel.functions.Matern",
    "surelearn.kernel.functions.Polynomial",
    "surelearn.kernel.functions.Precomputed",
}
TRUSTED |= dict.fromkeys(sorted(LEARNERS | KERNELS), ("ObjectNode", None))
