"""What scikit-learn asks of every learner."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from surelearn.boosting import AdaBoostClassifier, DecisionStump


@parametrize_with_checks(
    [
        AdaBoostClassifier(n_rounds=10),
        AdaBoostClassifier(n_rounds=10, method="binned"),
        AdaBoostClassifier(n_rounds=10, thresholds=(-1.0, 0.0, 1.0)),
        DecisionStump(),
        DecisionStump(method="binned"),
    ]
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)
