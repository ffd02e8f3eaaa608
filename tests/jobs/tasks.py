"""What the tests of this folder share."""

import sys

import cloudpickle
import numpy as np

from surelearn.jobs import Progress, Task

# workers cannot import this file by its name
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def powers(n):
    return [Task(f"2^{i}", pow, {"base": 2, "exp": i}) for i in range(n)]


def same(a, b):
    """Equal in type and bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (a != a and b != b)


class Counting(Progress):
    def __init__(self):
        self.calls = []

    def start(self, total, what):  # noqa: ARG002
        self.calls.append(total)

    def advance(self, key):
        self.calls.append(key)

    def finish(self):
        self.calls.append("finish")
