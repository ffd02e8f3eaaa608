"""All fits without one row, or with one row replaced, at about the price of one fit."""

from surelearn.linear.leave_one_out.fits import (
    Change,
    LeaveOneOutFits,
    largest_change,
    logistic_leave_one_out,
    logistic_replace_one,
    ridge_leave_one_out,
    ridge_replace_one,
)

__all__ = [
    "Change",
    "LeaveOneOutFits",
    "largest_change",
    "logistic_leave_one_out",
    "logistic_replace_one",
    "ridge_leave_one_out",
    "ridge_replace_one",
]
