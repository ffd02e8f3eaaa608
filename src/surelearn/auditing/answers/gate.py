"""`gate_answers`: may this system pass, by the answers that it gave? Pass or fail alone, for people who
improve it against the same rows; see `surelearn.auditing.gate`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from surelearn.auditing.answers.counted import CountedAnswers
from surelearn.auditing.answers.flow import certify_units, look_at, roles_and_options
from surelearn.auditing.answers.operating import divide_units
from surelearn.auditing.answers.roles import Roles
from surelearn.auditing.answers.units import Units, read_units
from surelearn.auditing.answers.verdict import remedy
from surelearn.auditing.claims import Withholding
from surelearn.auditing.gate import (
    Gate,
    check_counted,
    check_risk,
    check_share,
    opened,
    tried,
    vouched,
    with_try,
)
from surelearn.auditing.headline import headline_of
from surelearn.auditing.independence import UNLABELLED
from surelearn.auditing.operating import passes
from surelearn.auditing.options import OptionError, Options
from surelearn.certificate import Certificate
from surelearn.data.columns import shown
from surelearn.data.frames import Source
from surelearn.data.independence import search_frame
from surelearn.fingerprint import fixed_models
from surelearn.jobs.threads import limits
from surelearn.selection.ledger import LedgerArgument


def gate_answers(
    source: Source | None,
    *,
    max_risk: float | None = None,
    at_least: float | None = None,
    ledger: LedgerArgument = None,
    number: int | None = None,
    **given: Any,
) -> Gate:
    """Pass or fail, and nothing else about the rows: of answers that somebody wrote down.

    Parameters
    ----------
    source : a file, or a data frame, with one row per unit: the same units at every try, with other
        answers
    max_risk : the largest share of errors to be guaranteed (with ``cost``: mean cost; of forecasts:
        the distance of the interval; of passes and duels: the share that fails or is lost)
    at_least : instead, the pass rate, mean grade or win rate to be guaranteed; or ``require``, what the
        operating point must keep
    ledger, number : as in `surelearn.gate`
    **given : as in `surelearn.auditing.answers.audit_answers`; ``delta`` is that of all tries together

    Examples
    --------
    >>> import pandas as pd
    >>> judged = pd.DataFrame({"prompt": range(200), "passed": [True] * 190 + [False] * 10})
    >>> bool(gate_answers(judged, passed="passed", at_least=0.85, ledger=False, number=1))
    True
    """
    roles, options = roles_and_options(given)
    if options.sets is not None:
        raise OptionError(lambda s: f"a gate only says pass or fail: leave out {s}", "sets")
    if options.require is None:
        check_goals(max_risk, at_least, roles)
    elif max_risk is not None or at_least is not None:
        other = "at_least" if max_risk is None else "max_risk"
        raise OptionError(
            lambda o, r: f"{o} and {r} are two goals: leave out one", other, "require"
        )
    check_counted(ledger, number)
    return _try_units(
        read_units(source, roles, options.positive, walked=options.require is not None),
        roles,
        options,
        max_risk,
        at_least,
        ledger,
        number,
    )


def check_goals(max_risk: float | None, at_least: float | None, roles: Roles) -> None:
    """Refuse a goal that is about something else, none, or two of them."""
    judged = roles.kind in ("passes", "grades", "duels")
    if (max_risk is None) == (at_least is None):
        raise OptionError(
            lambda m, a: f"pass {m}, the largest risk, or {a}, the least grade: one of them",
            "max_risk",
            "at_least",
        )
    if max_risk is not None:
        check_risk(max_risk)
    if at_least is not None and not judged:
        raise OptionError(
            lambda a, p, g, w, m: f"{a} goes with {p}, {g} or {w}; of errors say {m}",
            "at_least",
            "passed",
            "grade",
            "winner",
            "max_risk",
        )
    if max_risk is not None and roles.kind == "grades":
        raise OptionError(
            lambda m, a: f"{m} is about errors: of a mean grade say {a}", "max_risk", "at_least"
        )


def check_goal(
    units: Units | CountedAnswers, options: Options, max_risk: float | None, at_least: float | None
) -> None:
    """Refuse a goal that is beyond what is certified: a share of rows above 1, a grade that there is
    none of.
    """
    rate = units.task == "losses" or (units.task == "classification" and options.cost is None)
    if max_risk is not None and rate:
        check_share(max_risk)
    low, high = units.bounds or (0.0, 1.0)
    if at_least is not None and not low <= at_least <= high:
        raise OptionError(
            lambda a: f"{a} must be a number from {low:g} to {high:g}, as what is certified is, not {at_least:g}",
            "at_least",
        )  # fmt: skip


def _refuse_contradicted(units: Units, options: Options) -> None:
    """Refuse rows that no try could pass with, before one is counted: by the columns beside the
    answers alone, so that nothing is told about the answers.
    """

    def ask(name: str, value: object) -> str:
        return f"--{name}" if value is True else f"--{name} {value}"

    found = () if options.independent else search_frame(units.beside, units.groups).found
    if found:
        text = found[0].text[:200].rstrip(".")
        raise ValueError(f"{units.name}: {text}: say {remedy(found, ask)}")
    differ = [name for name in _differ(units) if name in units.beside.columns]
    if differ and options.population is None:
        raise ValueError(
            f"{units.name}: rows without a label differ from the labeled ones in column"
            f" {shown(differ[0])}: say --population labelled if only labeled ones matter"
        )


def _differ(units: Units) -> list[str]:
    """The columns in which rows without a label are others."""
    found = next((one for one in units.findings if one.code == UNLABELLED), None)
    return [] if found is None else found.numbers["columns"]


@limits.one_thread()
def _try_units(
    units: Units,
    roles: Roles,
    options: Options,
    max_risk: float | None,
    at_least: float | None,
    ledger: LedgerArgument,
    number: int | None,
) -> Gate:
    """Count the try, and answer it."""
    check_goal(units, options, max_risk, at_least)
    _refuse_contradicted(units, options)
    book = opened(ledger, units.path, units.known, number, units.name)
    rows, rungs = len(units.y), None
    if options.requirement is not None and options.requirement.quantity != "mean_error":
        units, rungs = divide_units(units, options.requirement, options)
    rivals = [] if units.rival is None else [units.rival]

    def make(asked: Options, withheld: Withholding) -> Certificate | None:
        if asked.population is None and _differ(units):
            return None
        return certify_units(units, roles, asked, withheld, rungs=rungs)

    def enough(certificate: Certificate) -> bool:
        claim = headline_of(certificate)
        if max_risk is None and at_least is None:
            return passes(certificate)
        if claim is None or not isinstance(claim.value, float):
            return False
        if max_risk is not None:
            risk = 1 - claim.value if claim.relation == ">=" else claim.value
            return risk <= max_risk
        return at_least is not None and claim.value >= at_least

    with fixed_models(units.model, *rivals):
        look = look_at(
            units, roles, options, kind="gate", more=(repr((max_risk, at_least)), *vouched(options))
        )
        recorded, delta, certificate = tried(
            book, units.known, look, number, options, units.name, make, enough
        )
    answer = Gate(
        passed=certificate is not None,
        number=recorded.turn,
        delta=delta,
        max_risk=max_risk,
        at_least=at_least,
        require=options.require,
        rows=rows,
        chosen=repr(units.model),
        repeated=bool(recorded.answer),
    )
    return (
        answer
        if certificate is None
        else replace(answer, certificate=with_try(certificate, answer))
    )
