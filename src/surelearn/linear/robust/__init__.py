"""Regression that outliers, or perturbed columns, move little."""
