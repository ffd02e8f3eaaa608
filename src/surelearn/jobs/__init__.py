"""Independent tasks on joblib: progress and time left, a journal (SQLite), resume after a kill, any
backend.

Results do not depend on ``n_jobs``, on the backend or on where an earlier run was killed: every
task runs with one BLAS and one OpenMP thread, takes its randomness from its own key (`seed_for`),
and journaled results come back bit for bit.
"""

from surelearn.jobs.journal import Journal
from surelearn.jobs.progress import Progress, rich_progress, silent
from surelearn.jobs.tasks import Runner, Task, TaskError, run, seed_for

__all__ = [
    "Journal",
    "Progress",
    "Runner",
    "Task",
    "TaskError",
    "rich_progress",
    "run",
    "seed_for",
    "silent",
]
