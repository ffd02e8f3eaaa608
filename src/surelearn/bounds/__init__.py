"""Theorems: numbers in, numbers out.

Every bound is a pure function with its reference and assumptions attached: ``hoeffding(0.03, 1000,
0.05)`` is a number, ``hoeffding.certify(0.03, 1000, 0.05)`` a claim. `theorems()` lists them all.
"""

from __future__ import annotations

from typing import Any

from surelearn.bounds.blocks import block_gain, block_mean_lower, block_mean_upper
from surelearn.bounds.boosting import boosting_tail_inversion, log_growth_of_stump_votes
from surelearn.bounds.capacity import (
    boosting_finite,
    boosting_vc,
    finite_class,
    growth_function_bound,
    hypergeometric_tail_inversion,
    number_of_stumps,
    sauer,
    structural_risk,
    vapnik,
    vc,
    vc_dimension_of_halfspaces,
    vc_dimension_of_sigmoid_network,
    vc_dimension_of_stumps,
    vc_dimension_of_two_layer_sigmoid,
)
from surelearn.bounds.clustering import (
    kmeans_optimum_lower_bound,
    kmeans_plus_plus_ratio,
    kmeans_ratio,
    kmeans_spectral_lower_bound,
    kmeans_spectral_ratio,
)
from surelearn.bounds.compression import campi_garatti, floyd_warmuth
from surelearn.bounds.convergence import (
    adaboost_training_error,
    gradient_descent_convex,
    gradient_descent_nonconvex,
    gradient_descent_strongly_convex,
    perceptron_mistakes,
    sgd_learnability,
)
from surelearn.bounds.counts import moments_gain, moments_lower, moments_upper, paired_counts
from surelearn.bounds.groups import row_weighted_betting
from surelearn.bounds.holdout import (
    after_selection,
    betting_interval,
    betting_lower,
    betting_upper,
    chernoff_kl,
    clopper_pearson,
    clopper_pearson_interval,
    clopper_pearson_lower,
    conformal_radius,
    conformal_rank,
    conformal_rank_pac,
    conformal_score,
    empirical_bernstein,
    hoeffding,
    paired_difference,
)
from surelearn.bounds.logistic import logistic_lipschitz, logistic_loss_bound, sgd_lipschitz
from surelearn.bounds.margin import (
    boosting_margin_finite,
    boosting_margin_vc,
    rademacher_margin,
    smallest_margin,
)
from surelearn.bounds.optimality import (
    beta_near_minimizer,
    distance_from_gap,
    distance_to_minimizer,
    duality_gap,
    regularization_of_price,
    stability_near_minimizer,
    strong_convexity_gap,
)
from surelearn.bounds.pac_bayes import (
    catoni,
    deterministic_linear_classifier,
    gibbs_linear_classifier,
    mcallester,
    pac_bayes_kl,
    pac_bayes_quadratic,
)
from surelearn.bounds.poisoning import (
    classification_pull,
    partition_radius,
    poisoning_threshold,
    poisoning_threshold_machines,
    poisoning_threshold_regression,
    regression_pull,
)
from surelearn.bounds.poisoning_range import (
    poisoning_threshold_flipped,
    poisoning_threshold_moved,
    poisoning_threshold_reversed,
)
from surelearn.bounds.prediction_sets import conformal_coverage
from surelearn.bounds.privacy import (
    dp_sgd_epsilon,
    dp_sgd_renyi,
    gaussian_mechanism,
    laplace_mechanism,
    randomized_response,
)
from surelearn.bounds.ranking import auc_lower
from surelearn.bounds.rates import balanced_accuracy_lower, f1_lower, rate_difference
from surelearn.bounds.ridge import (
    beta_ridge_removed,
    leave_one_out_error,
    padded_norm,
    ridge_loss_bound,
    ridge_loss_change,
)
from surelearn.bounds.robust_regression import (
    beta_huber,
    column_perturbations,
    huber_loss_bound,
    square_root_lasso_optimum,
)
from surelearn.bounds.robustness import (
    kernel_radius,
    linear_radius,
    lipschitz_radius,
    polynomial_radius,
    robust_accuracy,
    smoothed_radius,
    smoothing_radius,
)
from surelearn.bounds.squared_hinge import squared_hinge_lipschitz
from surelearn.bounds.stability import (
    beta_hinge,
    beta_logistic,
    beta_ridge,
    beta_sgd_convex,
    beta_sgd_permuted,
    beta_sgd_strongly_convex,
    beta_tikhonov,
    bousquet_elisseeff,
    expected_gap,
    uniform_stability,
    uniform_stability_nonnegative,
)
from surelearn.bounds.thresholds import (
    dkw_distance,
    dkw_lower,
    fixed_sequence_lower,
    fixed_sequence_mean,
    fixed_sequence_upper,
)
from surelearn.bounds.units import (
    range_gain,
    range_mean_lower,
    range_mean_upper,
    reweighted_gain,
    reweighted_mean,
    reweighted_mean_lower,
    shifted_mean,
)
from surelearn.claim import Theorem, registered_theorems


def theorems() -> tuple[Theorem[..., Any], ...]:
    """Every theorem of this package, in the order of its files.

    Examples
    --------
    >>> [t.key for t in theorems() if t.claims.quantity == "vc_dimension"][:2]
    ['vc_dimension_of_stumps', 'vc_dimension_of_halfspaces']
    """
    return registered_theorems()


__all__ = [
    "adaboost_training_error",
    "after_selection",
    "auc_lower",
    "balanced_accuracy_lower",
    "beta_hinge",
    "beta_huber",
    "beta_logistic",
    "beta_near_minimizer",
    "beta_ridge",
    "beta_ridge_removed",
    "beta_sgd_convex",
    "beta_sgd_permuted",
    "beta_sgd_strongly_convex",
    "beta_tikhonov",
    "betting_interval",
    "betting_lower",
    "betting_upper",
    "block_gain",
    "block_mean_lower",
    "block_mean_upper",
    "boosting_finite",
    "boosting_margin_finite",
    "boosting_margin_vc",
    "boosting_tail_inversion",
    "boosting_vc",
    "bousquet_elisseeff",
    "campi_garatti",
    "catoni",
    "chernoff_kl",
    "classification_pull",
    "clopper_pearson",
    "clopper_pearson_interval",
    "clopper_pearson_lower",
    "column_perturbations",
    "conformal_coverage",
    "conformal_radius",
    "conformal_rank",
    "conformal_rank_pac",
    "conformal_score",
    "deterministic_linear_classifier",
    "distance_from_gap",
    "distance_to_minimizer",
    "dkw_distance",
    "dkw_lower",
    "dp_sgd_epsilon",
    "dp_sgd_renyi",
    "duality_gap",
    "empirical_bernstein",
    "expected_gap",
    "f1_lower",
    "finite_class",
    "fixed_sequence_lower",
    "fixed_sequence_mean",
    "fixed_sequence_upper",
    "floyd_warmuth",
    "gaussian_mechanism",
    "gibbs_linear_classifier",
    "gradient_descent_convex",
    "gradient_descent_nonconvex",
    "gradient_descent_strongly_convex",
    "growth_function_bound",
    "hoeffding",
    "huber_loss_bound",
    "hypergeometric_tail_inversion",
    "kernel_radius",
    "kmeans_optimum_lower_bound",
    "kmeans_plus_plus_ratio",
    "kmeans_ratio",
    "kmeans_spectral_lower_bound",
    "kmeans_spectral_ratio",
    "laplace_mechanism",
    "leave_one_out_error",
    "linear_radius",
    "lipschitz_radius",
    "log_growth_of_stump_votes",
    "logistic_lipschitz",
    "logistic_loss_bound",
    "mcallester",
    "moments_gain",
    "moments_lower",
    "moments_upper",
    "number_of_stumps",
    "pac_bayes_kl",
    "pac_bayes_quadratic",
    "padded_norm",
    "paired_counts",
    "paired_difference",
    "partition_radius",
    "perceptron_mistakes",
    "poisoning_threshold",
    "poisoning_threshold_flipped",
    "poisoning_threshold_machines",
    "poisoning_threshold_moved",
    "poisoning_threshold_regression",
    "poisoning_threshold_reversed",
    "polynomial_radius",
    "rademacher_margin",
    "randomized_response",
    "range_gain",
    "range_mean_lower",
    "range_mean_upper",
    "rate_difference",
    "regression_pull",
    "regularization_of_price",
    "reweighted_gain",
    "reweighted_mean",
    "reweighted_mean_lower",
    "ridge_loss_bound",
    "ridge_loss_change",
    "robust_accuracy",
    "row_weighted_betting",
    "sauer",
    "sgd_learnability",
    "sgd_lipschitz",
    "shifted_mean",
    "smallest_margin",
    "smoothed_radius",
    "smoothing_radius",
    "square_root_lasso_optimum",
    "squared_hinge_lipschitz",
    "stability_near_minimizer",
    "strong_convexity_gap",
    "structural_risk",
    "theorems",
    "uniform_stability",
    "uniform_stability_nonnegative",
    "vapnik",
    "vc",
    "vc_dimension_of_halfspaces",
    "vc_dimension_of_sigmoid_network",
    "vc_dimension_of_stumps",
    "vc_dimension_of_two_layer_sigmoid",
]
