"""Logistic regression for sparse, streaming data: `learner` fits, `sgd` steps, `claims` says what holds."""
