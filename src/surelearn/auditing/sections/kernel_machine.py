"""Sections: the spectrum of a kernel machine's kernel; in the details what was chosen, measured
and guaranteed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from surelearn.auditing.claims import own_certificate
from surelearn.auditing.context import Context
from surelearn.auditing.sections.one_row import classes_of, in_units
from surelearn.auditing.writing import Entry
from surelearn.certificate import Certificate
from surelearn.claim import Claim
from surelearn.lacking import Lacking
from surelearn.plain import show
from surelearn.report import Chart, PageTable, Section
from surelearn.subject import Subject, subject_of
from surelearn.subject.machines import Expansion
from surelearn.types import Array

_SHOWN = 40  # eigenvalues drawn
_NAMES = {"gaussian": "Gaussian", "laplace": "Laplace", "matern": "Matérn"}
_STOPPED = {
    "passes": "as many as allowed",
    "time": "as many as the time allowed",
    "converged": "then it had converged",
}


def section(context: Context) -> Section | None:
    """What a prediction is, and how many directions it was fitted in; nothing for a model that
    is no EigenPro learner.
    """
    machine = subject_of(context.model).expansion
    if isinstance(machine, Lacking):
        return None
    spectrum = _spectrum(context, machine)
    return ENTRY.says(
        notes=(_what(machine), _freedom(machine, spectrum)),
        charts=(_decay(machine, spectrum.eigenvalues),),
    )


def numbers(context: Context) -> Section | None:
    """What was chosen and measured, and what the learner itself guarantees."""
    subject = subject_of(context.model)
    machine = subject.expansion
    if isinstance(machine, Lacking):
        return None
    tables = (_chosen(machine), _measured(subject, machine, _spectrum(context, machine)))
    return NUMBERS.says(claims=_guaranteed(context, subject, machine), tables=tables)


def _spectrum(context: Context, machine: Expansion) -> Any:
    """Of at most 2,000 of the rows it holds; both sections read it."""
    from surelearn.kernel.spectrum import kernel_spectrum

    return context.once(
        "spectrum",
        lambda seed: kernel_spectrum(machine.kernel, machine.centers, 2000, seed),
    )


def _kernel_words(machine: Expansion) -> str:
    kernel = machine.kernel
    words = f"{_NAMES.get(kernel.name, kernel.name)} kernel"
    width = getattr(kernel, "bandwidth", None)
    return words if width is None else f"{words} of bandwidth {show(width, 'number')}"


def _what(machine: Expansion) -> str:
    facts, how = machine.facts, "solved exactly"
    if facts["solver"] != "direct":
        stopped = _STOPPED.get(facts["stopped"], f"then the {facts['stopped']}")
        how = f"found by EigenPro in {facts['epochs']} passes ({stopped})"
    some = f"{len(machine.centers):,} of " if "centres" in facts else ""
    rows, tuned = (
        f"{some}{facts['n']:,} fit rows",
        ", from the median distance of rows" if facts["tuned"] else "",
    )
    return (
        f"The model is a kernel expansion over {rows} with a {_kernel_words(machine)}{tuned};"
        f" {how}."
    )


def _freedom(machine: Expansion, spectrum: Any) -> str:
    """The effective dimension, from the eigenvalues and the penalty, as a sentence."""
    penalty, rows = machine.facts["regularization"], machine.facts["n"]
    if penalty == 0:
        return "There is no penalty: every eigendirection is fitted, noise as well."
    # that of a subsample is smaller, in expectation
    least = "" if len(spectrum.eigenvalues) == rows else "at least "
    return (
        "Eigendirections above the penalty are fitted, those far below it are not. The effective"
        f" dimension is {least}about {_about(spectrum.effective_dimension(penalty))} for {rows:,}"
        " rows."
    )


def _about(value: float) -> str:
    return show(float(f"{value:.2g}"), "number")


def _decay(machine: Expansion, eigenvalues: Array) -> Chart:
    """Eigenvalues above rounding, and the penalty."""
    penalty, rows = machine.facts["regularization"], len(machine.centers)
    kept = int((eigenvalues > 1e-12 * eigenvalues[0]).sum())
    index = np.unique(np.geomspace(1, max(kept, 1), _SHOWN).round().astype(int))
    data = {
        "x": index.tolist(),
        "y": eigenvalues[index - 1].tolist(),
        "x_label": "eigendirection",
        "unit": "number",
        "log": True,
    }
    if penalty > 0:
        data |= {"level": penalty, "level_label": f"penalty {_about(penalty)}"}
    where = "the fit rows" if len(eigenvalues) == rows else f"{len(eigenvalues):,} of the fit rows"
    return Chart(
        kind="curve",
        title=f"Eigenvalues of the kernel matrix of {where}, divided by their number",
        data=data,
    )


def _chosen(machine: Expansion) -> PageTable:
    facts = machine.facts
    by = "from the median distance of rows" if facts["tuned"] else "as stated"
    rows = [
        ("kernel", f"{_kernel_words(machine)} ({by})"),
        ("penalty λ", show(facts["regularization"], "number")),
    ]
    if facts["solver"] == "direct":
        rows.append(("solver", "direct: Cholesky"))
    else:
        rows.append(("solver", f"EigenPro, {facts['dtype']}, {facts['epochs']} passes"))
        sizes = {
            "subsampled rows s": "subsample",
            "preconditioned directions q": "directions",
            "batch size m": "batch_size",
        }
        sizes |= {"centers": "centres"}
        rows += [(words, f"{facts[name]:,}") for words, name in sizes.items() if name in facts]
    return PageTable(header=("chosen", "value"), rows=tuple(rows))


def _measured(subject: Subject, machine: Expansion, spectrum: Any) -> PageTable:
    facts, rows, scaling = machine.facts, [], subject.target
    left = _left_out(subject, machine)
    if not isinstance(left, Lacking):
        error = "mean absolute error on" if subject.learner.classes is None else "errors on"
        rows.append((f"leave-one-out: {error} fit rows (exact)", left))
    unit = "" if scaling is None else ", target in standard deviations"
    rows.append((f"RKHS norm of the fitted function{unit}", _about(facts["norm"])))
    rows.append(("critical batch size of plain SGD", _about(spectrum.critical_batch_size())))
    if facts["solver"] != "direct":
        names = {
            "critical_batch_size_preconditioned": (
                "critical batch size with q directions preconditioned"
            ),
            "acceleration_predicted": (
                "acceleration by the preconditioner, predicted from the spectrum"
            ),
            "acceleration_measured": (
                "acceleration by the preconditioner, measured on rows outside the sample"
            ),
        }
        rows += [
            (words, _about(facts[name]))
            for name, words in names.items()
            if facts.get(name) is not None
        ]
    return PageTable(header=("measured", "value"), rows=tuple(rows))


def _left_out(subject: Subject, machine: Expansion) -> str | Lacking:
    """The exact leave-one-out error in the task's own measure."""
    if isinstance(fits_of := subject.leave_one_out, Lacking):
        return fits_of
    # it holds its rows and targets
    fits = fits_of(machine.centers, np.empty(0), machine.centers[:1], None)
    if subject.learner.classes is not None:
        return show(float((classes_of(fits.own) != classes_of(fits.targets)).mean()), "rate")
    own, targets = (in_units(part, subject.target) for part in (fits.own, fits.targets))
    return show(float(np.abs(own - targets).mean()), "number")


def _guaranteed(context: Context, subject: Subject, machine: Expansion) -> tuple[Claim, ...]:
    """The learner's own claims, as far as they are not void here; how near the minimizer it
    came holds on any rows.
    """
    certificate = subject.learner.certificate
    claims = [] if isinstance(certificate, Lacking) else list(certificate.claims)
    if not isinstance(
        own_certificate(context.model, context.selection, context.suspects), Certificate
    ):
        claims = [claim for claim in claims if claim.quantity == "distance_to_the_minimizer"]
    return tuple(
        replace(claim, sources={}) for claim in claims if not _says_nothing(claim, machine)
    )


def _says_nothing(claim: Claim, machine: Expansion) -> bool:
    """Vacuous, or farther from the minimizer than the fitted function from nothing."""
    return claim.vacuous or (
        claim.quantity == "distance_to_the_minimizer" and claim.value >= machine.facts["norm"]
    )


ENTRY = Entry(key="kernel", title="Kernel spectrum", write=section)
NUMBERS = Entry(
    key="kernel_numbers",
    title="Kernel machine: settings and measurements",
    write=numbers,
    place="details",
)
