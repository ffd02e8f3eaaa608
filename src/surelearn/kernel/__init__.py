"""Kernels: one definition of each for the whole project."""
