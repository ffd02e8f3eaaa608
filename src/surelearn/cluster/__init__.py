"""Clustering with its certificate."""

from surelearn.cluster.kmeans import KMeans

__all__ = ["KMeans"]
