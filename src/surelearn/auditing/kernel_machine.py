"""Sections: the spectrum of a kernel machine's kernel; in the details what was chosen, measured and guaranteed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from surelearn.auditing.context import Context
from surelearn.auditing.one_row import classes_of, in_units, kernel_machine, learner_of, own_certificate
from surelearn.certificate import Certificate
from surelearn.claim import Claim
from surelearn.plain import show
from surelearn.report import Chart, Section, Table

_SHOWN = 40  # eigenvalues drawn
_NAMES = {"gaussian": "Gaussian", "laplace": "Laplace", "matern": "Matérn"}
_STOPPED = {"passes": "as many as allowed", "time": "as many as the time allowed", "converged": "then it had converged"}


def section(context: Context) -> Section | None:
    """What a prediction is, and how many directions it was fitted in; nothing for a model that is no EigenPro learner."""
    found = kernel_machine(learner_of(context.model)[1])
    if found is None:
        return None
    machine = found[1]
    spectrum = _spectrum(context, machine)
    return Section(
        key="kernel",
        title="The kernel and its spectrum",
        notes=(_what(machine), _freedom(machine, spectrum)),
        charts=(_decay(machine, spectrum.eigenvalues),),
    )


def details(context: Context) -> Section | None:
    """What was chosen and measured, and what the learner itself guarantees."""
    found = kernel_machine(learner_of(context.model)[1])
    if found is None:
        return None
    scaling, machine = found
    tables = (_chosen(machine), _measured(machine, scaling, _spectrum(context, machine)))
    return Section(
        key="kernel in numbers",
        title="The kernel machine in numbers",
        place="details",
        claims=_guaranteed(context, machine),
        tables=tables,
    )


def _spectrum(context: Context, machine: Any) -> Any:
    """Of at most 2,000 of the rows it holds."""
    from surelearn.kernel.left_out import kernel_of
    from surelearn.kernel.spectrum import kernel_spectrum

    return kernel_spectrum(kernel_of(machine), machine.centers_, 2000, context.seed("spectrum"))


def _kernel_words(machine: Any) -> str:
    from surelearn.kernel.left_out import kernel_of

    kernel = kernel_of(machine)
    words = f"{_NAMES.get(kernel.name, kernel.name)} kernel"
    width = getattr(kernel, "bandwidth", None)
    return words if width is None else f"{words} of bandwidth {show(width, 'number')}"


def _what(machine: Any) -> str:
    facts, how = machine.facts_, "solved exactly"
    if facts["solver"] != "direct":
        stopped = _STOPPED.get(facts["stopped"], f"then the {facts['stopped']}")
        how = f"found by EigenPro in {facts['epochs']} passes ({stopped})"
    some = f"{len(machine.centers_):,} of " if "centres" in facts else ""
    rows, tuned = f"{some}{facts['n']:,} fit rows", ", from the median distance of rows" if facts["tuned"] else ""
    return f"A prediction is a weighted sum over {rows} in which near rows count: a {_kernel_words(machine)}{tuned}; {how}."


def _freedom(machine: Any, spectrum: Any) -> str:
    """What the eigenvalues and the penalty say."""
    penalty, rows = machine.facts_["regularization"], machine.facts_["n"]
    if penalty == 0:
        return "Each eigenvalue is the strength of one direction. There is no penalty: all are fitted, noise as well."
    least = "" if len(spectrum.eigenvalues) == rows else "at least "  # that of a subsample is smaller, in expectation
    return (
        "Each eigenvalue is the strength of one direction. Directions above the penalty are fitted, those far below it are "
        f"not: together the freedom of {least}about {_about(spectrum.effective_dimension(penalty))} parameters for {rows:,} "
        "rows (effective dimension)."
    )


def _about(value: float) -> str:
    return show(float(f"{value:.2g}"), "number")


def _decay(machine: Any, eigenvalues: Any) -> Chart:
    """Eigenvalues above rounding, and the penalty."""
    penalty, rows = machine.facts_["regularization"], len(machine.centers_)
    kept = int((eigenvalues > 1e-12 * eigenvalues[0]).sum())
    index = np.unique(np.geomspace(1, max(kept, 1), _SHOWN).round().astype(int))
    data = {"x": index.tolist(), "y": eigenvalues[index - 1].tolist(), "x_label": "direction", "unit": "number", "log": True}
    if penalty > 0:
        data |= {"level": penalty, "level_label": f"penalty {_about(penalty)}"}
    where = "the fit rows" if len(eigenvalues) == rows else f"{len(eigenvalues):,} of the fit rows"
    return Chart(kind="curve", title=f"Eigenvalues of the kernel matrix of {where}, divided by their number", data=data)


def _chosen(machine: Any) -> Table:
    facts = machine.facts_
    by = "from the median distance of rows" if facts["tuned"] else "as stated"
    rows = [("kernel", f"{_kernel_words(machine)} ({by})"), ("penalty λ", show(facts["regularization"], "number"))]
    if facts["solver"] == "direct":
        rows.append(("solver", "direct: Cholesky"))
    else:
        rows.append(("solver", f"EigenPro, {facts['dtype']}, {facts['epochs']} passes"))
        sizes = {"sampled rows s": "subsample", "flattened directions q": "directions", "rows in a block m": "batch_size"}
        sizes |= {"rows that the function is built on": "centres"}
        rows += [(words, f"{facts[name]:,}") for words, name in sizes.items() if name in facts]
    return Table(header=("chosen", "value"), rows=tuple(rows))


def _measured(machine: Any, scaling: Any, spectrum: Any) -> Table:
    facts, rows = machine.facts_, []
    if left := _left_out(machine, scaling):
        error = "errors on" if hasattr(machine, "classes_") else "mean absolute error on"
        rows.append((f"{error} fit rows, each left out in turn (exact)", left))
    unit = "" if scaling is None else ", target in standard deviations"
    rows.append((f"norm of the fitted function in the kernel’s space{unit}", _about(facts["norm"])))
    rows.append(("batch beyond which plain gradient steps gain little", _about(spectrum.critical_batch_size())))
    if facts["solver"] != "direct":
        names = {
            "critical_batch_size_preconditioned": "the same with q directions flattened",
            "acceleration_predicted": "times fewer steps with them flattened, predicted from the spectrum",
            "acceleration_measured": "the same, measured on rows outside the sample",
        }
        rows += [(words, _about(facts[name])) for name, words in names.items() if facts.get(name) is not None]
    return Table(header=("measured", "value"), rows=tuple(rows))


def _left_out(machine: Any, scaling: Any) -> str:
    """The exact leave-one-out error in the task's own measure, or ""."""
    from surelearn.kernel.left_out import left_out

    fits = left_out(machine, machine.centers_[:1])
    if fits is None:
        return ""
    targets = fits.own + fits.pull
    if hasattr(machine, "classes_"):
        return show(float((classes_of(fits.own) != classes_of(targets)).mean()), "rate")
    return show(float(np.abs(in_units(fits.own, scaling) - in_units(targets, scaling)).mean()), "number")


def _guaranteed(context: Context, machine: Any) -> tuple[Claim, ...]:
    """The learner's own claims, as far as they are not void here; how near the minimizer it came holds on any rows."""
    claims = list(machine.certificate_.claims)
    if not isinstance(own_certificate(context.model, context.selection, context.suspects), Certificate):
        claims = [claim for claim in claims if claim.quantity == "distance to the minimizer"]
    return tuple(replace(claim, sources={}) for claim in claims if not _says_nothing(claim, machine))


def _says_nothing(claim: Any, machine: Any) -> bool:
    """Vacuous, or farther from the minimizer than the fitted function from nothing."""
    return claim.vacuous or (claim.quantity == "distance to the minimizer" and claim.value >= machine.facts_["norm"])
