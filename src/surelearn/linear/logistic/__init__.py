"""Logistic regression for sparse, streaming data: `learner` fits, `sgd` steps, `record` says
what holds.
"""
