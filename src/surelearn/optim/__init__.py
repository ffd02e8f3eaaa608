"""Optimization with its certificates: descent, stochastic descent, and when to stop."""
