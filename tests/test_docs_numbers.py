"""Sentences of the docs that state a number of the code: each is written here with the number that
the code has today, and must stand on its page. It fails when either of them changes.
"""

import inspect
import math
import re
from pathlib import Path

import numpy as np
import pytest

import surelearn
from surelearn import documents, unpacking
from surelearn.attribution import explaining, spread
from surelearn.auditing import rare, seen, single_rows
from surelearn.auditing.options import Options
from surelearn.auditing.sections import ENTRIES, calibration, coverage, stability
from surelearn.auditing.sections.attribution import words as attributing
from surelearn.auditing.sections.membership import epsilon as canaries
from surelearn.auditing.sections.membership import words as membership
from surelearn.auditing.sections.membership import work as membership_work
from surelearn.auditing.sections.poisoning import words as poisoning
from surelearn.auditing.sections.poisoning import work as poisoning_work
from surelearn.auditing.sections.robustness import words as robustness
from surelearn.auditing.sections.robustness import work as robustness_work
from surelearn.commands import watch
from surelearn.data import (
    columns,
    excel,
    header,
    independence,
    json_lines,
    novelty,
    oddities,
    opening,
)
from surelearn.kernel import choosing, composites, fitting, iteration, linear_form, machine
from surelearn.kernel import precomputed as kernel_matrices
from surelearn.linear import LeastSquares
from surelearn.linear.ridge import learner as ridge
from surelearn.linear.robust import lasso, losses, regression
from surelearn.monitoring import label_shift, reference
from surelearn.monitoring import losses as watched
from surelearn.optim import spread as column_spread
from surelearn.planning import rows_needed
from surelearn.report import document
from surelearn.robust.poisoning import cancelling
from surelearn.selection import ledger, split
from surelearn.selection.criteria import criteria, resampled

ROOT = Path(__file__).parent.parent
WORDS = {
    1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 9: "nine", 10: "ten", 12: "twelve", 20: "twenty",
    100: "hundred", 1000: "thousand", 1e9: "billion",
}  # fmt: skip
PARTS = {2: "half", 3: "third", 4: "quarter", 5: "fifth", 9: "ninth", 10: "tenth"}
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def word(number):
    """A number as a word: 20 is twenty."""
    return WORDS.get(number, str(number))


def part(share):
    """A share as a word: 0.1 is a tenth."""
    assert abs(share * round(1 / share) - 1) < 1e-12
    return PARTS[round(1 / share)]


def percent(share):
    return f"{100 * share:.12g}%"


def mib(size):
    return f"{size / 2**20:g} MiB"


def ten_to(number):
    """A power of ten: 1e-6 is 10⁻⁶."""
    exponent = math.log10(number)
    assert abs(exponent - round(exponent)) < 1e-12
    return f"10{str(round(exponent)).translate(SUPERSCRIPTS)}"


def raised(number):
    """The same as reStructuredText."""
    return f"10\\ :sup:`{round(math.log10(number))}`"


def default(function, name):
    return inspect.signature(function).parameters[name].default


def listed(numbers):
    return ", ".join(f"{number:g}" for number in numbers)


TRUSTED = ("robustness", "poisoning", "membership", "attribution")

README = [
    f"(Python {re.search(r'requires-python = .>=([0-9.]+)', (ROOT / 'pyproject.toml').read_text())[1]} or newer, pip)",
    f"how many labeled rows it takes: {rows_needed(max_risk=0.05)} without an error",
    f"exit code {watch.ALARM} if live rows contradict a claim, {watch.DRIFT} for drift",
]

AUDIT = [
    f"A line of JSON may have {mib(json_lines.LONGEST_LINE)},"
    f" a workbook {excel.MOST_CELLS / 1e6:g} million cells;",
    f"is decided by the first {opening.HEAD / 2**10:g} kB, for a whole table too",
    f"A line may have {mib(opening.LONGEST_LINE)}.",
    f"What unpacks to more than {mib(unpacking.SMALL)} must not be more than {unpacking.RATIO}"
    " times its packed size",
    f"beyond {columns.LARGEST:.0e}".replace("e+", "e") + " refused, by column",
    f"judgment by the first {header.LOOKED_AT:,} rows",
    f"against a fixed fraction (a {part(split.COIN_CERTIFY)} is held back)",
    f"compared on the next ones, in {word(resampled.STEPS)} steps",
    f"The page has one δ, {Options().delta:g} by default: {part(default(surelearn.certify, 'headline'))}"
    " of it is for the headline",
    f"where a class has less than a {part(rare.RARE / 2)} of the fit rows (of K classes: less than"
    f" {rare.RARE:g}/K; less than a {part(rare.NAMED / 2)}, if there are two and its name says that it"
    " matters, such as yes, positive, sick, fraud, cancer or 1) and the guaranteed bound on its errors is"
    " more than"
    f" {'twice' if rare.FAR == 2 else rare.FAR} the headline",
    f"than one independent row in a {word(round(1 / novelty.BY_CHANCE))} would",
    f"the distance to its {novelty.NEIGHBOR}th nearest fit row",
    f"above a {word(novelty.MOST_WORK)} row pairs times columns",
    f"at least {percent(novelty.LEAST_SHARE)} of the fit rows have a near copy among the others, and"
    f" {word(novelty.LEAST_CONTENTS)} held-back rows without one",
    f"Images of more than {novelty.MOST_NUMBERS:,} numbers are compared",
    f"{word(sum(entry.key in TRUSTED for entry in ENTRIES)).capitalize()} sections attack or explain",
    f"named as a slice from {word(single_rows.FEWEST)} fit rows on",
    f'``format`` "{document.FORMAT}", ``version`` {document.VERSION} (',
    f"in fewer than one case in {1 / seen.LEAST_CHANCE:,.0f}, and otherwise a finding (SL104), a"
    f" warning in fewer than one case in {1 / seen._SELDOM:.0f}.",
]

FINDINGS = [
    f"compare columns use at most {oddities.MAX_STUDIED:,} rows",
    f"differs in {percent(columns.NAMES_ROWS)} of the rows",
    f"errs in at most {percent(oddities.TOLD)} of the rows (and in at most"
    f" {percent(oddities.TOLD_OF_MAJORITY)} of the errors of always answering the majority)",
    f"of their ranks, above {oddities.TOLD_AMOUNTS:g}",
    f"fewer than {word(oddities.RARE_ROWS)} rows, or fewer than {percent(oddities.RARE_SHARE)} of",
    f"at most {columns.MOST_CLASSES} different values (and at most {columns.FEW_CLASSES}, or a"
    f" {part(columns.CLASSES_SHARE)} of the rows)",
    f"is at least {oddities.ALIKE:g}, over at least {oddities.FEWEST_GROUPS} values that repeat",
    f"distance at least {oddities.MOVED:g}, p below {raised(oddities.MOVED_BY_CHANCE)} divided",
    f"with a correlation beyond ±{oddities.COPIES:g}",
    f"At least {percent(independence.LEAST_COPIES)} of the rows repeat an earlier row",
    f"more than {word(independence.DEPENDENCE)} times the largest of these",
    f"numeric columns have over {independence.FEW_VALUES} values, and among rows with texts of"
    f" {word(independence.LONG_TEXT)} words and more",
    f"larger by over {percent(independence.LEAST_EXCESS)} and over"
    f" {word(independence.LEAST_ERRORS)} standard errors, for one of *k* ="
    f" {listed(independence.NEIGHBORS)} (",
    f"*c* = {listed(independence.RATIOS)}.",
    f"if there are {word(independence.FEWEST_NUMBERS)} of them and {independence.FEWEST_ROWS} rows; at"
    f" most {independence.MOST_STUDIED:,} rows are compared with at most"
    f" {independence.MOST_COMPARED:,}",
    f"or at least {independence.FEW_VALUES} values appear so equally often that independent rows do so"
    f" with a probability below {raised(independence.EQUAL_BY_CHANCE)}",
    f"a false alarm in about {percent(reference.FAMILYWISE)} of tables)",
    f"looked for from {reference.FEWEST_ROWS} such rows on",
    f"bins of equal size and {percent(1 - calibration.ALPHA)} intervals",
    f"the largest {part(1 / coverage.FIFTHS)} of predictions",
    f"({percent(coverage.CHANCE)} for all fifths together)",
    f"on {word(10 * stability.SHARE)} tenths of the fit rows",
    f"above a {part(stability.CHANGED)} of changed predictions",
    f"Numbers beyond ±{raised(columns.LARGEST)} are refused",
    f"do not differ about {percent(reference.FAMILYWISE)} show any finding. Every run is another look:"
    f" the *k*-th has 6/(π²k²) of this {percent(reference.FAMILYWISE)}",
    f"together {percent(1 - label_shift.FALSE_ALARMS / 2)} sure), and gamblers bet against both bounds"
    f" on every live row (false alarms at most {percent(label_shift.FALSE_ALARMS / 2)}): together at"
    f" most {percent(label_shift.FALSE_ALARMS)} false alarms",
    f"``watch`` ends with exit code {watch.DRIFT} if no claim is contradicted",
    f"Accuracy under an L∞ attack within {robustness.SMALL:g} standard deviations",
    f"({robustness_work._ROWS} rows, {robustness_work._QUERIES} queries each). A notice above"
    f" {100 * robustness.NOTICE:g} points lost, a warning above {100 * robustness.WARNING:g}, serious"
    f" if {robustness.TINY:g} standard deviations already cost {100 * robustness.SERIOUS:g}.",
    f"when one category in one column is substituted. A notice above {part(robustness.TURNED)}.",
    f"attack within {robustness.SMALL:g} standard deviations moves the prediction of a regression"
    f" model. A notice above {part(robustness.MOVED)} of its mean absolute error",
    f"Refits with {100 * min(poisoning_work.FRACTIONS):g} to"
    f" {percent(max(poisoning_work.FRACTIONS))} of the training labels",
    f"The finding is about a {part(poisoning.TYPICAL)}, or",
    f"by more than {part(poisoning.NOTICE[0])} of the share that was changed (and"
    f" {100 * poisoning.NOTICE[1]:g} points), a warning by more than"
    f" {'twice' if poisoning.WARNING[0] == 2 else 0} (and {100 * poisoning.WARNING[1]:g} points)",
    f"A notice above {percent(poisoning.INFLUENCE[0])} of the loss, a warning above"
    f" {percent(poisoning.INFLUENCE[1])};",
    f"within {word(poisoning._ERRORS)} standard errors over the held-back rows",
    f"at {cancelling.MULTIPLES[0]:g} times the certified threshold for flipping every prediction, then"
    f" at {cancelling.MULTIPLES[1]:g} times and more",
    f"at most {membership_work._MOST_TRIED:,} training rows against at most"
    f" {membership_work._MOST_TRIED:,} certify rows",
    "at false positive rates of " + " and ".join(map(percent, membership.TABLED)),
    f"A warning from an AUC of {membership.LEAKS[0]:g} on, or where the true positive rate at"
    f" {percent(membership.TABLED[0])} is above a {part(membership.LEAKS[1])}",
    f"up to {membership_work._MOST_REFITS} shadow models",
    f"a lower bound on ε at {percent(1 - canaries.ALPHA)} confidence",
    f"resampled {spread.RESAMPLES} times; the ranking is stable if the same first features (up to"
    f" {word(spread._FIRST)}) lead in {percent(spread.SETTLED)} of the resamples",
    f"One of at least {word(attributing.FEWEST_COLUMNS)} features has"
    f" {percent(attributing.ALMOST_ALL)} or more",
]

LEARNERS = [
    f"max(standard deviation, range/{column_spread.TAIL:g})",
    f"λ = 1/n and a free intercept; with a stated bound {ridge.FIXED:g} and a regularized one",
    f"below {ten_to(LeastSquares().tol)} of the largest are left out",
    f"threshold {losses.KNEE:g}·scale of the residuals, λ = {ten_to(regression.PENALTY)} in spreads",
    f"threshold {regression.CLIPPED:g}·scale, λ = {ten_to(regression.PENALTY)} in spreads",
    f"radius {'½' if lasso.RELATIVE == 0.5 else lasso.RELATIVE} in spreads",
    f"λ = {linear_form.RELATIVE:g}/n in spreads",
    f"λ = {machine.PENALTY:g}/n, columns divided by their spread",
    f"in pieces of {composites._PIECE * 8 / 2**20:g} MB",
    f"up to {kernel_matrices.MOST_ROWS:,} rows all of it is looked at",
]

KERNELS = [
    f"the Laplace kernel, {word(choosing.FACTORS['laplace'][0])} median distances, λ = 0",
    f"{word(choosing.FACTORS['gaussian'][1])} median distance, and a λ above 0",
    f"(1/{1 / choosing._SPREAD[0]:g} to {choosing._SPREAD[-1]:g} median distances) meet on a"
    f" {part(choosing._sizes(9000)[0] / 9000)} of ``rows``",
    f"meet on a {part(choosing._sizes(9000)[1] / 9000)}, and those",
    f"({default(choosing.choose_kernel, 'rows'):,} unless told)."
    f" A step of fewer than {choosing._FEWEST} rows is left out.",
    f"s: {iteration._SUBSAMPLE[0]:,} rows, from {iteration._MANY:,} rows on"
    f" {iteration._SUBSAMPLE[1]:,}",
    f"m: {iteration._BATCH[0]:,} rows, from {iteration._MANY:,} on {iteration._BATCH[1]:,}",
    f"moves f as far as {iteration._USED:g}·m single rows do, m* = β/λ_{{q+1}} ≥"
    f" {iteration._USED / (1 - iteration._USED):.3g}(m − 1)",
    f"above rounding ({iteration._FLATTEST[4]:.0e}".replace("e-0", "e-")
    + " of the first in single precision)",
    f"Up to {fitting.DIRECT_ROWS:,} rows are solved directly",
]

PRODUCTION = [
    f"has δ·6/(4π²): plan it with ``--delta {ledger.allowance(0.05, 2):.4f}``",
    f"(``--delta``, {default(surelearn.monitoring.Watch, 'delta'):g}) is divided before any live row"
    f" is seen: {part(watched.HEADLINE)} for the headline",
    f"rows since the last full {word(watch.SAVE_EVERY)} are not recorded",
    f"at most {percent(label_shift.FALSE_ALARMS)} false alarms, however often one looks",
    f"the *k*-th has 6/(π²k²) of {percent(reference.FAMILYWISE)}",
    f"more than {mib(unpacking.SMALL)} and {unpacking.RATIO} times its packed size",
    f"JSON of more than {mib(documents.MOST_BYTES)}, {word(documents.MOST_VALUES / 1e6)} million values"
    f" or a {word(documents.DEEPEST)} levels",
    f"* - {watch.ALARM} - alarm:",
    f"* - {watch.DRIFT} - drift:",
]

OTHERS = {
    "docs/attribution.rst": [
        f"enumerates up to {explaining.AFFORDABLE / 1e6:g} million predictions"
    ],
    "docs/criteria.rst": [f"knows {word(len(criteria()))} criteria"],
    "docs/poisoning.rst": [
        f"with {cancelling.MULTIPLES[0]:g} times the certified threshold, then with"
        f" {cancelling.MULTIPLES[1]:g} times and more",
    ],
}

SENTENCES = {
    "README.md": README,
    "docs/audit.rst": AUDIT,
    "docs/findings.rst": FINDINGS,
    "docs/learners.rst": LEARNERS,
    "docs/kernels.rst": KERNELS,
    "docs/production.rst": PRODUCTION,
    **OTHERS,
}


DOCSTRINGS = [
    (
        columns.infer_task,
        f"at most {columns.MOST_CLASSES} different values, and at most {columns.FEW_CLASSES} or at most"
        f" a {part(columns.CLASSES_SHARE)} of the rows",
    ),
    (columns.describe, f"different in {percent(columns.NAMES_ROWS)} of the rows"),
    (
        independence.near_copies,
        f"by over {percent(independence.LEAST_EXCESS)} and over {independence.LEAST_ERRORS:g} standard"
        " errors",
    ),
    (independence.copies, f"{word(independence.DEPENDENCE)} times the largest of these is allowed"),
    (independence.copies_of_texts, f"texts of {word(independence.LONG_TEXT)} words and more"),
    (independence.names_groups, f"probability below {ten_to(independence.EQUAL_BY_CHANCE)} comes"),
    (
        oddities._tells_classes,
        f"At most {percent(oddities.TOLD)} errors, or {percent(oddities.TOLD_OF_MAJORITY)} of the",
    ),
    (
        oddities._drift,
        f"distance of at least {oddities.MOVED:g} and p below {ten_to(oddities.MOVED_BY_CHANCE)}",
    ),
    (composites.Kernel.pieces, f"each at most {composites._PIECE * 8 / 2**20:g} MB"),
    (
        choosing._sizes,
        "a {}, a {} and all".format(*(part(s / 9000) for s in choosing._sizes(9000)[:2])),
    ),
]


def on_one_line(text):
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize(
    ("page", "sentence"), [(page, said) for page, all_of in SENTENCES.items() for said in all_of]
)
def test_a_sentence_has_the_number_of_the_code(page, sentence):
    assert sentence in on_one_line((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("documented", "sentence"), DOCSTRINGS, ids=lambda part: getattr(part, "__name__", None)
)
def test_a_docstring_has_the_number_of_the_code(documented, sentence):
    assert sentence in on_one_line(documented.__doc__)


def test_the_default_of_each_kernels_length_is_bold():
    """The table of losses by length: in each row the default of `FACTORS` is set in bold."""
    text = (ROOT / "docs" / "kernels.rst").read_text(encoding="utf-8")
    table = text[text.index("     - 1/8\n") : text.index("(Bold: the default")]
    lengths, *rows = re.split(r"\n   \* - ", table)
    lengths = [eval(length) for length in re.findall(r"- (\S+)", lengths)]  # noqa: S307
    found = {}
    for row in rows:
        name, *cells = row.split("\n     - ")
        (bold,) = np.flatnonzero([cell.startswith("**") for cell in cells])
        kernel = name.split()[0].strip(",").lower().replace("é", "e")
        found[kernel, "leave-one-out" in name] = lengths[bold]
    assert found == {
        (kernel, penalized): float(factors[penalized])
        for kernel, factors in choosing.FACTORS.items()
        for penalized in (False, True)
    }


def test_benchmarks_that_measured_something_exist():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.rst")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    named = set(re.findall(r"benchmarks/\w+\.py", text))
    assert "benchmarks/count_flow.py" in named
    assert not [name for name in named if not (ROOT / name).is_file()]
