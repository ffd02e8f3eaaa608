"""Bounds: a million Clopper–Pearson bounds, a betting interval on 100,000 losses, tail
inversion at n = 60,000.
"""

from __future__ import annotations

import numpy as np
from _timing import compare
from scipy.special import betainccinv
from scipy.stats import beta

from surelearn.bounds import (
    betting_interval,
    campi_garatti,
    chernoff_kl,
    clopper_pearson,
    hypergeometric_tail_inversion,
)

rng = np.random.default_rng(0)
n = rng.integers(50, 10_000, 1_000_000)
errors = rng.binomial(n, 0.05)


def statsmodels_interval() -> object:
    from statsmodels.stats.proportion import proportion_confint

    return proportion_confint(errors, n, 0.1, method="beta")


compare(
    "a million Clopper–Pearson upper bounds",
    {
        "surelearn clopper_pearson": lambda: clopper_pearson(errors, n, 0.05),
        "the limit: scipy.special.betainccinv alone": lambda: betainccinv(
            errors + 1.0, n - errors, 0.05
        ),
        "scipy.stats.beta.isf": lambda: beta.isf(0.05, errors + 1, n - errors),
        "statsmodels proportion_confint (both ends)": statsmodels_interval,
    },
    repeats=3,
)
losses = rng.beta(1, 9, 100_000)
compare(
    "betting interval, 100,000 losses",
    {
        "surelearn betting_interval": lambda: betting_interval(losses, 0.05),
        "surelearn betting_interval, anytime": lambda: betting_interval(losses, 0.05, anytime=True),
        "the limit: 2 × 53 passes of log1p": lambda: [np.log1p(losses) for _ in range(106)],
    },
    repeats=3,
    note="53 halvings an end; each evaluates 100,000 logarithms",
)
compare(
    "one bound at n = 60,000",
    {
        "hypergeometric_tail_inversion, VC 7": lambda: hypergeometric_tail_inversion(
            3000, 60_000, 0.05, 7
        ),
        "hypergeometric_tail_inversion, VC 785": lambda: hypergeometric_tail_inversion(
            3000, 60_000, 0.05, 785
        ),
        "campi_garatti, 1,000 support rows": lambda: campi_garatti(1000, 60_000, 0.05),
        "chernoff_kl": lambda: chernoff_kl(0.05, 60_000, 0.05),
    },
)
