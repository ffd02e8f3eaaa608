"""Least squares and ridge regression: `learner` fits, `spectrum` factors, `sparse` solves
without a factorization.
"""
