"""Learners made from parameters by their own names, those that stand in groups too: tests vary one
at a time.
"""

from surelearn.earlier import gathered, of_today


def make(cls, *args, **parameters):
    """A learner; ``step`` is ``sgd__step`` or ``preconditioner__step``."""
    return cls(*args, **gathered(cls.groups, of_today(cls.earlier, parameters)))
