"""Optimization with its certificates: descent, stochastic descent, when to stop, and DP-SGD of
torch modules.
"""

from surelearn.optim.dp_module import DPModule, PrivateFit, fit_private

__all__ = ["DPModule", "PrivateFit", "fit_private"]
