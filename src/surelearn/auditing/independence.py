"""Where the table contradicts that rows are independent draws, or rows without a label are
others: claims and words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from surelearn.auditing.context import Context
from surelearn.claim import Finding
from surelearn.data import Table
from surelearn.data.schema import Notes, Schema
from surelearn.monitoring import Reference, drift
from surelearn.monitoring.reference import FAMILYWISE, FEWEST_ROWS
from surelearn.report import Verdict
from surelearn.subject import scores_of
from surelearn.types import Model

FOUND = ("SL116", "SL117", "SL118")  # independence is contradicted
UNLABELLED = "SL119"  # rows without a label are others


def no_verdict(context: Context) -> Verdict | None:
    """No verdict, with what was seen and what to say, where independence is contradicted and
    nobody vouches for it.
    """
    found = context.contradicted
    if not found:
        return None
    named = [finding for finding in found if "column" in finding.numbers]
    if context.split is None:
        say = "Pass `groups=` if rows belong together, or `independent=True` to vouch for them."
    elif named:
        option, column = named[0].numbers["option"], _short(named[0].numbers["column"])
        say = (
            f"Say `{option} {column}`, or `--independent` to vouch that rows are independent draws."
        )
    else:
        say = (
            "Say `--group COLUMN` or `--time COLUMN`, or `--independent` to vouch that rows are"
            " independent draws."
        )
    return Verdict(
        kind="no verdict",
        sentence=f"No verdict: {found[0].text[0].lower()}{found[0].text[1:]} {say}",
    )


def about_labelled(context: Context, verdict: Verdict) -> Verdict:
    """The verdict, which says first that it is about labeled rows where those without a label
    differ.
    """
    if (
        not any(finding.code == UNLABELLED for finding in context.findings)
        or verdict.kind == "no verdict"
    ):
        return verdict
    return replace(verdict, sentence=f"Labeled rows only: {verdict.sentence}")


def unlabelled_differ(
    table: Table, schema: Schema, reference: Reference, model: Model
) -> tuple[Finding, ...]:
    """SL119 where rows without a target differ from the certify rows, in a feature or in what the
    model says of them.

    Chi-square tests of every column and score, with Holm's correction: a false alarm in about 1% of
    tables.
    """
    if not comparable(table):
        return ()
    rows = schema.conform(
        pa.Table.from_pandas(table.unlabelled, preserve_index=False), table.name, Notes()
    )
    return labels_missing(drift(reference, rows, scores_of(model, rows)), len(rows))


def labels_missing(drifted: Sequence[Finding], rows: int) -> tuple[Finding, ...]:
    """SL119, from the findings on how so many rows without a label differ from the others."""
    moved = [found for found in drifted if "p" in found.numbers]
    if not moved:
        return ()
    said = (
        moved[0]
        .text.replace("of rows", "of rows without a label", 1)
        .replace("the certify rows", "labeled rows")
    )
    text = f"The {rows:,} rows without a label differ from the labeled ones. {said}"
    columns = [found.numbers["column"] for found in moved]
    numbers = {
        "columns": columns,
        "rows": rows,
        "p": moved[0].numbers["p"],
        "false_alarms": FAMILYWISE,
    }
    return (Finding(code=UNLABELLED, text=text, severity="serious", numbers=numbers),)


def not_compared(rows: int, searched: int) -> Finding:
    """SL119 of rows without a label of which none was kept to compare: they may be others."""
    text = (
        f"The {rows:,} rows without a label were not all compared with the labeled ones: of a file that"
        f" is read in one pass only the first {searched:,} rows are kept. They may be others."
    )
    return Finding(code=UNLABELLED, text=text, severity="serious", numbers={"rows": rows})


def comparable(table: Table) -> bool:
    """Whether rows without a target are compared: at least 30, and rows count one by one."""
    return len(table.unlabelled) >= FEWEST_ROWS and table.group is None and table.time is None


def assumed_independent(context: Context) -> str:
    """The assumption of independent rows, what was looked for, and what was not."""
    search = context.search
    said = [
        "Rows are"
        f" independent{'' if context.groups is None else f' between {context.group_name} values'}."
    ]
    if context.groups is not None:
        said.append(f"Rows of the same {context.group_name} need not be.")
    if search.found:
        vouched = context.options.independent
        said.append(
            "The table contradicts it, but whoever made this page vouches for it (`--independent`):"
            if vouched
            else "The table contradicts it:"
        )
        said += [finding.text for finding in search.found]
    else:
        hints = () if context.groups is not None else ("SL104", "SL108")
        said += [finding.text for finding in context.findings if finding.code in hints]
    if search.looked_for:
        nothing = "" if search.found else ", and found nothing"
        said.append(f"The audit looked for {', '.join(search.looked_for)}{nothing}.")
    said += [f"It did not look for {', '.join(search.not_looked_for)}."] * bool(
        search.not_looked_for
    )
    said.append(
        "Groups that no column names and no clump shows cannot be found: if rows belong together,"
        " use `--group`."
    )
    return " ".join(said)


def assumed_population(context: Context) -> str:
    """What is known of rows without a label; "" where there are none."""
    codes = {finding.code: finding for finding in context.findings}
    if UNLABELLED in codes:
        said = (
            "said with `--population labelled`"
            if context.options.population
            else "checks fail until that is said"
        )
        return f"{codes[UNLABELLED].text} So the page is about labeled rows only ({said})."
    if "SL110" not in codes:
        return ""
    if context.unlabelled_compared:
        return (
            "Rows without a label were compared with labeled ones: no difference (false alarms:"
            f" about {FAMILYWISE:.0%})."
        )
    return (
        "Whether rows without a label are others was not looked for: the page is about labeled"
        " rows."
    )


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:39]}…"
